# Message ids and synchronous standbys.  An id that a reader has seen must mean
# the same message on the server that is promoted: no id is shown, by whatever
# way, before the synchronous standbys have the publication that gave it.  And
# an ack that waited for another one of the same messages does not pass.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use Time::HiRes qw(time usleep);

my $db = 'postgres';
my $last_tick = 'SELECT max(last_id) FROM tq_internal.tick';

# The database commits locally, so that the publisher, the clients of this test
# and the rest of maintenance do not wait: each id still has to.
my $primary = new_node('primary', 'wal_sender_timeout = 0');
$primary->safe_psql($db, "ALTER DATABASE $db SET synchronous_commit = local");
$primary->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($primary, $db);
$primary->backup('base');

# ---- helpers ----

sub new_standby
{
	my ($name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $primary->connstr . " application_name=$name'");
	$standby->start;
	return $standby;
}

sub set_synchronous
{
	my ($names) = @_;

	$primary->safe_psql($db, "ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$primary->reload;
	return $names eq '' || $primary->poll_query_until($db, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
}

# What a query says within a second, or the error that it ends with.
sub within_a_second
{
	my ($query, @settings) = @_;
	my ($status, $out, $err) = $primary->psql($db, join('; ', "SET statement_timeout = '1s'", @settings, $query));

	return $err =~ /ERROR: +(.*)/ ? "ERROR $1" : $out;
}

# What a listener was notified of by now: ids.
sub heard
{
	my ($session, $query) = @_;
	my $output = $session->query_safe($query // 'SELECT 1');

	return $output =~ /with payload "\{"id": (\d+)/g;
}

sub hear
{
	my ($session, $count) = @_;
	my @ids;

	foreach (1 .. 600)
	{
		push @ids, heard($session);
		last if @ids >= $count;
		usleep(50_000);
	}
	return "@ids";
}

sub wait_published
{
	my ($node, $what) = @_;

	return ok($node->poll_query_until($db, $published), $what);
}

my $timed_out = 'ERROR canceling statement due to statement timeout';

# ---- no synchronous standby: nothing waits ----

my $standby = new_standby('b');
$primary->safe_psql($db, "SELECT tq.subscribe('sub', 'task-defined')");
enqueue($primary, $db);
wait_published($primary, 'published');
$standby->stop('immediate');
enqueue($primary, $db);
wait_published($primary, 'an asynchronous standby is away: published');
is(within_a_second('SELECT count(*) FROM tq.messages()'), 4, 'an asynchronous standby is away: messages() does not wait');
is(within_a_second(q{SELECT count(*) FROM tq.fetch('sub')}), 2, 'nor does fetch()');
$standby->start;

# ---- the synchronous standby goes away ----

ok(set_synchronous('b'), 'a synchronous standby');
my $listener = $primary->background_psql($db);
$listener->set_query_timer_restart();
$listener->query_safe('LISTEN tq_task_defined');
enqueue($primary, $db);
wait_published($primary, 'it is here: published');
is(within_a_second('SELECT max(id) FROM tq.messages()'), 6, 'it is here: messages() has everything');
like(hear($listener, 1), qr/^5$/, 'it is here: NOTIFY is sent');
my $seen = within_a_second('SELECT max(id) FROM tq.messages()');
is(within_a_second(q{SELECT max(id) FROM tq.fetch('sub')}), 5, 'it is here: fetch() has everything');

$listener->query_safe('LISTEN "tq_queue_p/delayed"');
$primary->safe_psql($db, q{SELECT tq.enqueue('p/delayed', delay => '1 s')});
my $claimable = '';
foreach (1 .. 600)
{
	$claimable .= $listener->query_safe('SELECT 1');
	last if $claimable =~ /pending/;
	usleep(50_000);
}
like($claimable, qr/"taskQueueId": "p\/delayed", "pending": 1/, 'it is here: queues are notified of delayed runs');
wait_published($primary, 'published');
$seen = within_a_second('SELECT max(id) FROM tq.messages()');

# A task that the standby has, and is not published; then the standby goes.
my $lock = $primary->background_psql($db);
$lock->query_safe('BEGIN; LOCK TABLE tq_internal.tick IN EXCLUSIVE MODE');
my $kept = enqueue($primary, $db);
$primary->wait_for_catchup('b', 'flush', $primary->lsn('insert'));
$standby->stop('immediate');
my $lost = enqueue($primary, $db);
$lock->query_safe('COMMIT');
wait_published($primary, 'it is away: what a local commit did is published');

is(within_a_second('SELECT count(*) FROM tq.messages()'), $timed_out, 'it is away: messages() waits, and can be cancelled');
is(within_a_second("SELECT max(id) FROM tq.messages(after => $seen)"), $timed_out, 'after an id as well');
is(within_a_second('SELECT max(id) FROM tq.messages()', "SET synchronous_commit = $_"), $timed_out, "with synchronous_commit = $_")
  foreach qw(off remote_apply);
is(within_a_second('SELECT id FROM tq.message(' . ($seen + 1) . ')'), $timed_out, 'message() waits');
is(within_a_second(q{SELECT max(id) FROM tq.fetch('sub')}), $timed_out, 'fetch() waits');
is(within_a_second(q{SELECT last_id FROM tq.subscription_overview}), $timed_out, 'subscription_overview waits');
is(join(' ', heard($listener)), '', 'NOTIFY is not sent');
is(within_a_second("SELECT count(*) FROM tq.messages(after => $seen + 1000)"), 0, 'a reader that has read all does not wait');

# What a reader has seen, it goes on from.
foreach my $shown (within_a_second('SELECT max(id) FROM tq.messages()'))
{
	$seen = $shown if $shown =~ /^\d+$/;
}

# What a reader waits for can be cancelled, and ends with an error.
my $reader = $primary->background_psql($db, on_error_stop => 0);
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
$reader->query_until(qr/go/, "\\echo go\nSELECT max(id) FROM tq.messages();\n\\echo gone\n");
ok($primary->poll_query_until($db, "SELECT wait_event IS NOT NULL AND state = 'active' FROM pg_stat_activity WHERE pid = $pid"), 'a reader waits');
$primary->safe_psql($db, "SELECT pg_cancel_backend($pid)");
$reader->query_until(qr/gone/, '');
like($reader->{stderr}, qr/canceling statement due to user request/, 'a reader that is cancelled gets an error');
unlike($reader->{stdout}, qr/^\d+$/m, 'and no ids');
$reader->{stderr} = '';
$reader->quit;

# The rest of maintenance goes on, with a maintenance worker that is restarted, too.
my $id = enqueue($primary, $db, "deadline => '100 ms'");
ok(wait_state($primary, $db, $id, 'exception'), 'it is away: deadlines are kept');
my $worker = worker_in($primary, $db);
$primary->safe_psql($db, "SELECT pg_terminate_backend($worker)");
wait_worker($primary, $db, $worker);
$id = enqueue($primary, $db, "deadline => '100 ms'");
ok(wait_state($primary, $db, $id, 'exception'), 'also by another maintenance worker');
is(join(' ', heard($listener)), '', 'NOTIFY is still not sent');
$listener->quit;

# A crash makes a publication neither more durable nor less.
$primary->stop('immediate');
$primary->start;
wait_worker($primary, $db);
is(within_a_second('SELECT max(id) FROM tq.messages()'), $timed_out, 'after a crash: messages() waits');

# ---- failover ----

$primary->stop('immediate');
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$standby->start;
$standby->promote;
wait_worker($standby, $db);
wait_published($standby, 'promoted: published');
is($standby->safe_psql($db, qq{SELECT count(*) FROM tq.messages(after => $seen) WHERE exchange = 'task-defined' AND payload #>> '{status,taskId}' = '$kept'}),
	1, 'a reader goes on from the last id that it has seen, and misses nothing');
my $next = enqueue($standby, $db);
wait_published($standby, 'promoted: a new task is published');
is($standby->safe_psql($db, qq{
	SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id) FROM tq.messages(after => $seen, exchange => 'task-defined')}), "$kept $next",
	'nor what comes after');
$standby->safe_psql($db, "SELECT tq.ack('sub', $seen)");
is($standby->safe_psql($db, q{SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id) FROM tq.fetch('sub')}), "$kept $next",
	'a subscription whose ack is repeated misses nothing');
eval { $lock->quit };

# ---- the standby comes back ----

# With commits that wait: those of the publisher, too.
$primary = $standby;
$primary->safe_psql($db, "ALTER DATABASE $db RESET synchronous_commit");
$primary->safe_psql($db, "ALTER SYSTEM RESET synchronous_standby_names");
$primary->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
$primary->adjust_conf('postgresql.conf', 'primary_conninfo', undef);
$primary->restart;
wait_worker($primary, $db);
$primary->backup('base');
$standby = new_standby('c');
ok(set_synchronous('c'), 'another synchronous standby');
$listener = $primary->background_psql($db);
$listener->set_query_timer_restart();
$listener->query_safe('LISTEN tq_task_defined');
$id = enqueue($primary, $db);
is(scalar(split / /, hear($listener, 1)), 1, 'commits that wait: NOTIFY is sent');
$seen = within_a_second('SELECT max(id) FROM tq.messages()');
$standby->stop('immediate');
my $client = $primary->background_psql($db);
$client->query_safe('SET synchronous_commit = local');
$id = $client->query_safe(q{SELECT tq.enqueue('p/w')});
$worker = worker_in($primary, $db);
ok($primary->poll_query_until($db, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $worker"), 'the publisher waits in its commit');
is(within_a_second("SELECT count(*) FROM tq.messages(after => $seen)"), 0, 'nothing is shown');

# The commit that waits may be another one of the maintenance worker, such as a
# step of the history: each is ended until the publication was committed.
my $waiting = "FROM pg_stat_activity WHERE backend_type = 'tq worker' AND wait_event = 'SyncRep'";
ok( $primary->poll_query_until(
		$db, qq{
	SELECT CASE WHEN max(last_id) > $seen THEN true ELSE (SELECT count(pg_terminate_backend(pid)) < 0 $waiting) END FROM tq_internal.tick}),
	'its wait is cancelled: the publication is there');
is(within_a_second("SELECT count(*) FROM tq.messages(after => $seen)"), $timed_out, 'and is not shown');
is(join(' ', heard($listener)), '', 'nor sent');

# A reader restarts while its commit waits for the standby.
my @readers = map { $primary->background_psql($db, on_error_stop => 0) } 1 .. 2;
$primary->safe_psql($db, "SET synchronous_commit = local; SELECT tq.subscribe('twice', 'task-defined')");
$client->query_safe("UPDATE tq_internal.subscription SET acked_id = 0 WHERE name = 'twice'");
my $ack = "SELECT tq.ack('twice', 2)";
my @pids = map { $_->query_safe('SELECT pg_backend_pid()') } @readers;
$readers[0]->query_until(qr/go/, "\\echo go\nBEGIN; $ack; COMMIT;\n\\echo gone\n");
ok($primary->poll_query_until($db, "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $pids[0]"), 'a reader waits in its commit');
$readers[1]->query_until(qr/go/, "\\echo go\nBEGIN; $ack; COMMIT;\n\\echo gone\n");
ok($primary->poll_query_until($db, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pids[1]"), 'the ack of another one waits for it');
$standby->start;
$_->query_until(qr/gone/, '') foreach @readers;
is($readers[0]->{stderr} =~ /ERROR/ ? 1 : 0, 0, 'the first one passes');
like($readers[1]->{stderr}, qr/ERROR: +messages of subscription "twice" were acknowledged by another transaction/, 'the second one does not');
$_->{stderr} = '' foreach @readers;
is($readers[1]->query("$ack;") // '', '', 'an ack that is repeated');
unlike($readers[1]->{stderr}, qr/ERROR/, 'is harmless');
$_->quit foreach @readers;
is(hear($listener, 1), $seen + 1, 'NOTIFY is sent when the standby is back');
is($primary->safe_psql($db, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM tq.messages(after => $seen)"), ($seen + 1) . ' ' . ($seen + 2), 'messages() has it');

# A standby that is not listed any more is not waited for.
$standby->stop('immediate');
$client->query_safe(q{SELECT tq.enqueue('p/w')});
ok(set_synchronous(''), 'no synchronous standby');
wait_published($primary, 'published');
is(within_a_second("SELECT count(*) FROM tq.messages(after => $seen)"), 4, 'nothing waits any more');
is(scalar(split / /, hear($listener, 1)), 1, 'and NOTIFY is sent');

# ---- a healthy task beside it ----

$id = $client->query_safe(q{SELECT tq.enqueue('p/healthy')});
is($primary->safe_psql($db, q{SELECT task_id FROM tq.claim_work('p/healthy', 'g', 'w')}), $id, 'a healthy task beside it was served in time');
$client->quit;
$listener->quit;
unlike(slurp_file($_->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed') foreach $primary, $standby;
$primary->stop;

done_testing();
