# Messages around other events: on a standby and after its promotion, without the
# maintenance worker, around DROP EXTENSION, in several databases, with listeners
# that exit or do not read, at a shutdown, and while the publisher cannot write.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT $published);
use Time::HiRes qw(usleep);

my $db = 'postgres';
my $primary = new_node('primary', 'max_connections = 40', 'max_prepared_transactions = 5', 'shared_buffers = 32MB');

my $last_id = 'SELECT max(last_id) FROM tq_internal.tick';

# ---- helpers ----

# Ids of the tasks of which the log has a message, after that id, in order.
sub logged
{
	my ($node, $database, $after, $exchange) = @_;

	return $node->safe_psql($database, qq{
		SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id)
		FROM tq.messages(after => $after, exchange => '$exchange')});
}

sub wait_published
{
	my ($node, $database, $what) = @_;

	return ok($node->poll_query_until($database, $published), $what);
}

sub listener
{
	my ($node, $database, @channels) = @_;
	my $session = $node->background_psql($database);

	$session->set_query_timer_restart();
	$session->query_safe(join(' ', map { qq{LISTEN "$_";} } @channels));
	return $session;
}

# Ids of the tasks that a session is notified of, until there are so many, or it
# is that one.
sub heard
{
	my ($session, $count, $query) = @_;
	my $output = $session->query_safe($query // 'SELECT 1');

	foreach (1 .. 100)
	{
		last if $count =~ /^\d+$/ ? (() = $output =~ /^Asynchronous/mg) >= $count : $output =~ /$count/;
		usleep(50_000);
		$output .= $session->query_safe('SELECT 1');
	}
	return join(' ', $output =~ /^Asynchronous .* with payload "\{"id": \d+, .*?"taskId": "([^"]+)"/mg);
}

# Keep the publisher from writing until the session ends its transaction; what
# it is about to publish is published then.
sub hold_publisher
{
	my ($node, $database, $mode) = @_;
	my $session = $node->background_psql($database);

	$session->set_query_timer_restart();
	$session->query_safe("BEGIN; LOCK TABLE tq_internal.tick IN $mode MODE");
	return $session;
}

$primary->safe_psql($db, "CREATE EXTENSION tq; SELECT tq.subscribe('sub', 'task-defined')");
wait_worker($primary, $db);

# ---- listeners ----

my ($reader, $lazy, $victim) = map { listener($primary, $db, 'tq_task_defined') } 1 .. 3;
my $id = enqueue($primary, $db);
is(heard($_, 1), $id, 'every listener is notified') foreach $reader, $lazy, $victim;

# One does not read, another exits.
$primary->safe_psql($db, 'SELECT pg_terminate_backend(' . $victim->query_safe('SELECT pg_backend_pid()') . ')');
$lazy->query_safe('BEGIN; SELECT 1');
my @ids = map { enqueue($primary, $db) } 1 .. 20;
is(heard($reader, 20), "@ids", 'the others are notified when one has exited and one does not read');
is(logged($primary, $db, 0, 'task-defined'), "$id @ids", 'and the log has it all');
is(heard($lazy, 20, 'COMMIT'), "@ids", 'the one that did not read gets it when it does');

# The client of one is stopped: it takes nothing from its socket.
my $client = $reader->{run}->{KIDS}->[0]->{PID};
kill('STOP', $client);
my $after = $primary->safe_psql($db, $last_id);
my $many = $primary->safe_psql($db, q{
	SELECT string_agg(tq.enqueue('p/w')::text, ' ' ORDER BY n) FROM generate_series(1, 1000) AS n});
wait_published($primary, $db, 'a client that is stopped does not stop the publisher');
is(heard($lazy, 1000), $many, 'nor the other listeners');
kill('CONT', $client);
is(heard($reader, 1000), $many, 'nor does it miss anything');
is($primary->safe_psql($db, 'SELECT count(*) FROM tq_internal.tick WHERE unsent IS NOT NULL'), 0, 'nothing is left');

# ---- several databases ----

$primary->safe_psql('postgres', 'CREATE DATABASE second');
$primary->safe_psql('second', 'CREATE EXTENSION tq');
wait_worker($primary, 'second');
my $second = listener($primary, 'second', 'tq_task_defined');
my %made;
foreach my $round (1 .. 10)
{
	push @{ $made{$_} }, enqueue($primary, $_) foreach $db, 'second';
}
is(heard($second, 10), "@{ $made{second} }", 'a listener is notified of its own database');
is(heard($lazy, 10), "@{ $made{$db} }", 'and only of that');
is(logged($primary, 'second', 0, 'task-defined'), "@{ $made{second} }", 'so is the log');
is($primary->safe_psql('second', 'SELECT min(id), max(id) FROM tq.messages()'), '1|20', 'each has its own ids');

# ---- DROP EXTENSION and CREATE EXTENSION ----

my $worker = worker_in($primary, 'second');
$primary->safe_psql('second', 'DROP EXTENSION tq CASCADE');
$primary->safe_psql('second', 'CREATE EXTENSION tq');
wait_worker($primary, 'second');
$id = enqueue($primary, 'second');
is(heard($second, 1), $id, 'dropped and created again: a listener from before is notified');
is(logged($primary, 'second', 0, 'task-defined'), $id, 'the log starts from empty');
is($primary->safe_psql('second', 'SELECT min(id) FROM tq.messages()'), 1, 'so do the ids');

# In a session that has known the old one, with messages that are outstanding.
my $session = $primary->background_psql('second');
$session->set_query_timer_restart();
$session->query_safe("SELECT tq.enqueue('p/w')");
$session->query_safe("BEGIN; SELECT tq.enqueue('p/w'); DROP EXTENSION tq CASCADE; CREATE EXTENSION tq; COMMIT");
$id = $session->query_safe("SELECT tq.enqueue('p/w')");
wait_published($primary, 'second', 'all in one session: everything is published');
like(heard($second, $id), qr/$id$/, 'a listener is notified');
is(logged($primary, 'second', 0, 'task-defined'), $id, 'and nothing of before');
$session->query_safe('BEGIN; DROP EXTENSION tq CASCADE; ROLLBACK');
$id = $session->query_safe("SELECT tq.enqueue('p/w')");
is(heard($second, 1), $id, 'DROP EXTENSION that is rolled back changes nothing');
$session->quit;

# ---- the publisher cannot write ----

# Producers and workers go on; their messages come later, and nothing is lost.
$after = $primary->safe_psql($db, $last_id);
my $lock = hold_publisher($primary, $db, 'ACCESS EXCLUSIVE');
@ids = map { enqueue($primary, $db) } 1 .. 5;
is($primary->safe_psql($db, "SELECT count(*) FROM tq.claim_work('p/w', 'g', 'w', 5)"), 5, 'tq_internal.tick is locked: others work');
$lock->query_safe('COMMIT');
wait_published($primary, $db, 'everything is published when it is free');
is(logged($primary, $db, $after, 'task-defined'), "@ids", 'in order');
is(heard($lazy, 5), "@ids", 'and sent');

# An error is logged, and tried again; what else is due is done.
$after = $primary->safe_psql($db, $last_id);
$primary->safe_psql($db, 'ALTER TABLE tq_internal.tick ADD CONSTRAINT broken CHECK (messages < 0) NOT VALID');
@ids = map { enqueue($primary, $db) } 1 .. 5;
ok($primary->wait_for_log(qr/violates check constraint "broken"/), 'an error of the publisher is logged');
$id = enqueue($primary, $db, "deadline => '200 ms'");
ok(wait_state($primary, $db, $id, 'exception'), 'the other steps are taken');
is(logged($primary, $db, $after, 'task-defined'), '', 'nothing is published');
$primary->safe_psql($db, 'ALTER TABLE tq_internal.tick DROP CONSTRAINT broken');
wait_published($primary, $db, 'until the error is gone');
is(logged($primary, $db, $after, 'task-defined'), "@ids $id", 'and nothing is lost');
is(logged($primary, $db, $after, 'task-exception'), $id, 'nor out of order');
is(heard($lazy, 6), "@ids $id", 'nor sent twice');

# ---- a shutdown with messages outstanding ----

# Once the publisher has done its first pass the next is a minute away; the test
# does not wait for it.
$_->quit foreach $reader, $lazy, $second;
$primary->safe_psql('postgres', "ALTER SYSTEM SET tq.publish_interval = '60s'");
$primary->restart;
foreach my $mode (qw(smart fast immediate))
{
	wait_worker($primary, $db);
	$primary->poll_query_until('postgres', worker_of($db) =~ s/^SELECT pid/SELECT state = 'idle'/r) or die 'no turn';
	$after = $primary->safe_psql($db, $last_id);
	my $prepared = $primary->safe_psql($db, "BEGIN; SELECT tq.enqueue('p/w'); PREPARE TRANSACTION 'tq'");
	@ids = map { enqueue($primary, $db) } 1 .. 3;
	is(logged($primary, $db, $after, 'task-defined'), '', "$mode: messages are outstanding");
	ok($primary->stop($mode), "$mode: the server stops");
	$primary->start;
	wait_published($primary, $db, "$mode: what was outstanding is published");
	is(logged($primary, $db, $after, 'task-defined'), "@ids", "$mode: nothing is lost, nothing twice");
	$primary->safe_psql($db, "COMMIT PREPARED 'tq'");
	$primary->restart;					# not to wait a minute
	wait_published($primary, $db, "$mode: what was prepared before is published when it is committed");
	is(logged($primary, $db, $after, 'task-defined'), "@ids $prepared", "$mode: after the others");
}
$primary->safe_psql('postgres', 'ALTER SYSTEM RESET tq.publish_interval');
$primary->restart;
unlike(slurp_file($primary->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed');

# ---- a standby ----

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$after = $primary->safe_psql($db, $last_id);
@ids = map { enqueue($primary, $db) } 1 .. 3;
wait_published($primary, $db, 'the primary publishes');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $messages = "SELECT id, exchange, routing_key, cc, payload, published FROM tq.messages(after => $after) ORDER BY id";
is($standby->safe_psql($db, $messages), $primary->safe_psql($db, $messages), 'messages() on a standby');
is($standby->safe_psql($db, "SELECT m FROM tq.message($after + 1) AS m"),
	$primary->safe_psql($db, "SELECT m FROM tq.message($after + 1) AS m"), 'message()');
is($standby->safe_psql($db, "SELECT tq_internal.topic_match('a.#', 'a.b.c'), tq_internal.topic_match('a.*', 'a.b.c')"), 't|f', 'topic_match()');
is($standby->safe_psql($db, 'SELECT count(*) FROM tq.binding_overview'), 12, 'the views');
$standby->command_ok([ 'pg_dump', '-d', $standby->connstr($db), '-f', PostgreSQL::Test::Utils::tempdir() . '/dump' ], 'pg_dump');
my ($status, $out, $err) = $standby->psql($db, "SELECT tq.ack('sub', $after)");
like($err, qr/cannot write to tq during recovery/, 'what writes is refused');
is($standby->safe_psql($db, "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'tq%'"), 0, 'nothing is published there');

# The primary goes with some that are committed, and not published.
my $read = $primary->safe_psql($db, $last_id);
$lock = hold_publisher($primary, $db, 'EXCLUSIVE');
my @rest = map { enqueue($primary, $db) } 1 .. 3;
my $running = $primary->safe_psql($db, "SELECT task_id FROM tq.claim_work('p/w', 'g', 'w')");
is(logged($primary, $db, $read, 'task-defined'), '', 'some are not published');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $log = $standby->safe_psql($db, 'SELECT * FROM tq.messages(after => greatest(' . $read . ' - 900, 0))');
$primary->stop('immediate');
$standby->promote;
wait_worker($standby, $db);
my $listener = listener($standby, $db, 'tq_task_defined');
wait_published($standby, $db, 'promoted: they are published');
is(logged($standby, $db, $read, 'task-defined'), "@rest", 'after what a cursor has read, each once');
is(logged($standby, $db, $read, 'task-running'), $running, 'of every exchange');
is($standby->safe_psql($db, 'SELECT * FROM tq.messages(after => greatest(' . $read . ' - 900, 0))' . " WHERE id <= $read"), $log,
	'what was published before is as it was');
$id = enqueue($standby, $db);
like(heard($listener, $id), qr/$id$/, 'NOTIFY goes on');
is($standby->safe_psql($db, "SELECT count(*) FROM tq.fetch('sub', 1000)"), 1000, 'the subscription has what it did not acknowledge');
$listener->quit;
eval { $lock->quit };
is(violations($standby, $db), '', 'tables are consistent');
$standby->stop;

# ---- without the maintenance worker ----

my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->start;
$plain->safe_psql($db, 'CREATE EXTENSION tq');
$plain->safe_psql($db, "SELECT tq.subscribe('sub', 'task-defined')");
$listener = listener($plain, $db, 'tq_task_defined', $plain->safe_psql($db, "SELECT tq.queue_channel('p/w')"));
@ids = map { enqueue($plain, $db) } 1 .. 3;
is(logged($plain, $db, 0, 'task-defined'), '', 'no preload: nothing is published');
$plain->safe_psql($db, 'SELECT tq.upkeep()');
is(logged($plain, $db, 0, 'task-defined'), "@ids", 'until upkeep() does');
is(heard($listener, 4), "@ids", 'LISTEN works');
is($plain->safe_psql($db, "SELECT string_agg(payload #>> '{status,taskId}', ' ' ORDER BY id) FROM tq.fetch('sub')"), "@ids",
	'subscriptions work');

# What a transaction has written itself is not published by it; what it cannot
# see has been published is not published again.
$id = $plain->safe_psql($db, "BEGIN; SELECT tq.enqueue('p/w'); SELECT FROM tq.upkeep(); COMMIT");
is(logged($plain, $db, 0, 'task-defined'), "@ids", 'upkeep() in a transaction that writes publishes nothing');
$session = $plain->background_psql($db);
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$plain->safe_psql($db, 'SELECT tq.upkeep()');
$session->query_safe('SELECT tq.upkeep(); COMMIT');
$plain->safe_psql($db, 'SELECT tq.upkeep()');
is(logged($plain, $db, 0, 'task-defined'), "@ids $id", 'nor does one that has an old snapshot publish again');

# In a transaction that is still open, and then rolled back.
@ids = (@ids, $id, enqueue($plain, $db));
$session->query_safe('BEGIN; SELECT tq.upkeep()');
$plain->safe_psql($db, 'SELECT tq.upkeep()');
is(logged($plain, $db, 0, 'task-defined'), "@ids", 'upkeep() within BEGIN and COMMIT holds up no other session');
$session->query_safe('ROLLBACK');
is(logged($plain, $db, 0, 'task-defined'), "@ids", 'nor has it published anything that could be rolled back');
$plain->safe_psql($db, 'SELECT tq.upkeep()');
is(logged($plain, $db, 0, 'task-defined'), "@ids", 'nothing is published twice');
is(heard($listener, 2), "@ids[3, 4]", 'and each is sent once');

$_->quit foreach $session, $listener;
$plain->stop;

done_testing();
