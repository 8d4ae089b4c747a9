# Ids of messages over a failover to an asynchronous standby, which lacks the
# last commits of the primary.  Readers of the primary have seen their ids; the
# standby that is promoted must not give them to other messages, because a reader
# that continues after the last id that it has seen would miss those.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use File::Copy qw(copy);
use Time::HiRes qw(usleep);

my $db = 'postgres';
my $epoch = 2**40;

# ---- helpers ----

sub new_standby
{
	my ($primary, $name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;
	return $standby;
}

# A task of which the message is published.
sub notified
{
	my ($node, $what) = @_;
	my $id = enqueue($node, $db);

	ok($node->poll_query_until($db, $published), "$what: published");
	return $id;
}

# The tasks of which a reader gets a message after that id, and the last id.
sub read_after
{
	my ($node, $after) = @_;

	return split /\|/, $node->safe_psql($db, qq{
		SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id), max(id)
		FROM tq.messages(after => $after, exchange => 'task-defined')});
}

sub fetched
{
	my ($node) = @_;

	return $node->safe_psql($db, q{
		SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id) FROM tq.fetch('sub', 1000)});
}

# ---- a primary whose end no standby has ----

my $first = new_node('first');
$first->safe_psql($db, "CREATE EXTENSION tq; SELECT tq.subscribe('sub', 'task-defined')");
wait_worker($first, $db);
$first->backup('base');
my $second = new_standby($first, 'second');
my $third = new_standby($first, 'third');
my @kept = notified($first, 'all have it');
my (undef, $all_have) = read_after($first, 0);
$first->wait_for_catchup($_, 'replay', $first->lsn('insert')) foreach $second, $third;
$third->stop;
push @kept, notified($first, 'one standby has it');
my ($tasks, $one_has) = read_after($first, 0);
is($tasks, "@kept", 'the primary has both');
$first->wait_for_catchup($second, 'replay', $first->lsn('insert'));
is($second->safe_psql($db, 'SELECT tq_internal.published_id()'), $first->safe_psql($db, 'SELECT tq_internal.published_id()'), 'a standby says how far it is');
$second->stop;
my $listener = $first->background_psql($db);
$listener->set_query_timer_restart();
$listener->query_safe('LISTEN tq_task_defined');
my @lost = map { notified($first, 'no standby has it') } 1 .. 5;
my ($seen_tasks, $seen) = read_after($first, 0);
is($seen_tasks, "@kept @lost", 'a reader has seen it');
my $shown = $first->safe_psql($db, 'SELECT tq_internal.published_id()');
my $heard = '';
foreach (1 .. 600)
{
	$heard .= $listener->query_safe('SELECT 1');
	last if $heard =~ /"id": $seen,/;
	usleep(50_000);
}
like($heard, qr/"id": $seen,/, 'and a listener');
is($seen, $shown - 1, 'ids of one timeline have no gaps');
$listener->quit;
$first->stop('immediate');

# ---- one is promoted ----

$second->start;
$second->promote;
wait_worker($second, $db);
is($second->safe_psql($db, 'SELECT count(*) FROM tq_internal.tick WHERE timeline > 1'), 0, 'promoted: nothing is published yet');
cmp_ok($second->safe_psql($db, 'SELECT tq_internal.published_id()'), '>=', $shown, 'published_id() is not below what readers have seen');
is(fetched($second), "@kept", 'promoted: the subscription has what came through');
is($second->psql($db, "SELECT tq.ack('sub', $seen)"), 0, 'what was fetched from the old primary can be acknowledged');
is(fetched($second), '', 'and is');
my ($status, $out, $err) = $second->psql($db, 'SELECT tq.ack(\'sub\', tq_internal.published_id() + 1)');
like($err, qr/has not been published/, 'and no id that no server can have given');

my @new = map { notified($second, 'promoted') } 1 .. 3;
($tasks, my $second_seen) = read_after($second, $seen);
is($tasks, "@new", 'a reader that continues after the last id it has seen gets all that is new');
($tasks) = read_after($second, $one_has);
is($tasks, "@new", 'so does one that had not seen the end');
($tasks) = read_after($second, 0);
is($tasks, "@kept @new", 'one from the beginning gets all that is there, in order');
is(fetched($second), "@new", 'the subscription goes on');
cmp_ok($second_seen, '<', 2 * $epoch, 'one epoch was left out');
cmp_ok($second_seen, '<', 2**53, 'ids are exact in JavaScript');

# A crash is no promotion.
$second->stop('immediate');
$second->start;
wait_worker($second, $db);
push @new, notified($second, 'after a crash');
($tasks, my $after_crash) = read_after($second, $seen);
is($tasks, "@new", 'after a crash it goes on');
cmp_ok($after_crash, '<', $second_seen + 1000, 'and leaves nothing out');

# ---- another is promoted that has nothing of either ----

# It knows of the second timeline, as from an archive, so its own is the third.
$second->stop('immediate');
$third->start;
copy($second->data_dir . '/pg_wal/00000002.history', $third->data_dir . '/pg_wal/') or die "cannot copy: $!";
chmod(0600, $third->data_dir . '/pg_wal/00000002.history');
$third->promote;
wait_worker($third, $db);
is($third->safe_psql($db, 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)'), '00000003', 'the third timeline');
my @newer = map { notified($third, 'promoted later') } 1 .. 3;
($tasks, my $third_seen) = read_after($third, $after_crash);
is($tasks, "@newer", 'a reader of both misses nothing');
is($third->psql($db, "SELECT tq.ack('sub', $after_crash)"), 0, 'what was fetched from the second one can be acknowledged');
is(fetched($third), "@newer", 'and what is new is delivered');

# A read that crosses the gap is not cut short there, however many messages the
# ids that are left out would be.
my @more = map { notified($third, 'more') } 1 .. 30;
($tasks) = read_after($third, 0);
is($tasks, "$kept[0] @newer @more", 'one call reads over the gap');
is(fetched($third), "@newer @more", 'and so does fetch()');

# ---- a tick without messages draws an id, too ----

$third->backup('again');
my $fourth = PostgreSQL::Test::Cluster->new('fourth');
$fourth->init_from_backup($third, 'again', has_streaming => 1);
$fourth->append_conf('postgresql.conf', "tq.message_retention = '4s'");
$fourth->start;
$third->wait_for_catchup($fourth, 'replay', $third->lsn('insert'));
$fourth->stop;
push @more, notified($third, 'lost with the third');
(undef, $third_seen) = read_after($third, 0);
$third->stop('immediate');
$fourth->start;
$fourth->promote;
wait_worker($fourth, $db);
ok($fourth->poll_query_until($db, "SELECT max(last_id) > $third_seen FROM tq_internal.tick WHERE messages = 0"),
	'the log changes its segment first');
my $last = notified($fourth, 'after that');
($tasks) = read_after($fourth, $third_seen);
is($tasks, $last, 'a reader misses nothing');
is(violations($fourth, $db), '', 'tables are consistent');
unlike(slurp_file($_->logfile), qr/PANIC:|TRAP:|was terminated by signal/, $_->name . ': nothing crashed') foreach $first, $second, $third, $fourth;
$fourth->stop;

done_testing();
