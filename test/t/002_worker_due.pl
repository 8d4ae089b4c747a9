# The maintenance worker does what is due when it is due, woken by commits and not
# by polling.
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('due', 'max_prepared_transactions = 5', 'log_min_duration_statement = -1');
my $db = 'postgres';
my $deadline = "(s ->> 'deadline')::timestamptz";
my $taken = "(run ->> 'takenUntil')::timestamptz";

# The machine may be slow: the bound is generous, the figure is shown.
sub is_prompt
{
	my ($id, $run, $from, $what) = @_;
	my $late = lateness($node, $db, $id, $run, $from);

	ok($late >= 0 && $late < 5, "$what: not before, and not much later");
	note("$what: $late s late");
}

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);

# A deadline.
my $id = enqueue($node, $db, "deadline => '3 seconds'");
is(state_of($node, $db, $id), 'pending', 'nothing happens before the deadline');
ok(wait_state($node, $db, $id, 'exception'), 'the deadline step resolves it');
is_prompt($id, 0, $deadline, 'deadline');
is($node->safe_psql($db, "SELECT tq.status('$id') -> 'runs' -> 0 ->> 'reasonResolved'"),
	'deadline-exceeded', 'for that reason');

# An earlier one is committed while the maintenance worker sleeps for a later one.
enqueue($node, $db, "deadline => '1 hour'");
$id = enqueue($node, $db, "deadline => '1 second'");
ok(wait_state($node, $db, $id, 'exception'), 'an earlier deadline wakes the maintenance worker');
is_prompt($id, 0, $deadline, 'earlier deadline');

# A claim that expires; the retry, too.
$id = enqueue($node, $db, "deadline => '1 hour'", "priority => 'highest'");
is($node->safe_psql($db, "SET tq.claim_timeout = '500ms'; SELECT task_id = '$id' FROM tq.claim_work('p/w', 'g', 'w'); SELECT tq.status('$id') ->> 'state'"),
	"t\nrunning", 'claimed');
ok(wait_state($node, $db, $id, 'pending'), 'claim expires');
is_prompt($id, 0, $taken, 'claim');
is($node->safe_psql($db, "SELECT tq.status('$id') -> 'runs' -> 0 ->> 'reasonResolved'"),
	'claim-expired', 'for that reason');

# A claim that is renewed expires when the renewed one does.
$node->safe_psql($db, "SET tq.claim_timeout = '500ms'; SELECT tq.claim_work('p/w', 'g', 'w');
	SET tq.claim_timeout = '1 h'; SELECT tq.reclaim_task('$id', 1)");
ok( $node->poll_query_until($db, "SELECT bool_and(due > now() + '1 s') FROM tq_internal.claim_timer"),
	'the maintenance worker looks at the claim that was renewed');
is(state_of($node, $db, $id), 'running', 'and leaves it alone');
$node->safe_psql($db, "SELECT tq.report_completed('$id', 1)");

# Savepoints and rollback: only what is committed wakes the maintenance worker.
$id = $node->safe_psql($db, q{
	BEGIN;
	SAVEPOINT a;
	SELECT FROM tq.enqueue('p/w', deadline => '1 second');
	ROLLBACK TO a;
	SELECT tq.enqueue('p/w', deadline => '2 seconds');
	COMMIT});
ok(wait_state($node, $db, $id, 'exception'), 'after a savepoint that was rolled back');
is_prompt($id, 0, $deadline, 'after a savepoint');
$node->safe_psql($db, "BEGIN; SELECT tq.enqueue('p/w', deadline => '1 second'); ROLLBACK");
$id = enqueue($node, $db, "deadline => '1 second'");
ok(wait_state($node, $db, $id, 'exception'), 'after a rollback');
is_prompt($id, 0, $deadline, 'after a rollback');

# A commit that comes after the deadline.
my $session = $node->background_psql($db);
$id = $session->query_safe("BEGIN; SELECT tq.enqueue('p/w', deadline => '100 ms')");
$session->query_safe("SELECT pg_sleep(0.2)");
$session->query_safe('COMMIT');
ok(wait_state($node, $db, $id, 'exception'), 'due already when it is committed');

# Two phases.
$id = $node->safe_psql($db, q{
	BEGIN;
	SELECT tq.enqueue('p/w', deadline => '1 second');
	PREPARE TRANSACTION 'tq'});
ok($node->poll_query_until($db, "SELECT clock_timestamp() > prepared + '1.5 s' FROM pg_prepared_xacts"),
	'deadline passes while the transaction is prepared');
$node->safe_psql($db, "COMMIT PREPARED 'tq'");
ok(wait_state($node, $db, $id, 'exception'), 'COMMIT PREPARED wakes the maintenance worker');
$node->safe_psql($db, q{
	BEGIN;
	SELECT tq.enqueue('p/w', deadline => '1 second');
	PREPARE TRANSACTION 'tq'});
$node->safe_psql($db, "ROLLBACK PREPARED 'tq'");
$node->safe_psql('postgres', 'CREATE DATABASE prepared');
$node->safe_psql('prepared', "BEGIN; CREATE EXTENSION tq; PREPARE TRANSACTION 'tq'");
is(worker_in($node, 'prepared'), '', 'CREATE EXTENSION that is prepared starts no maintenance worker');
$node->safe_psql('prepared', "COMMIT PREPARED 'tq'");
ok(wait_worker($node, 'prepared'), 'its COMMIT PREPARED does');

# A task that another session locks does not delay the others.
my $held = enqueue($node, $db, "deadline => '3 seconds'");
$session->query_safe("BEGIN; SELECT FROM tq_internal.pending FOR UPDATE");
$id = enqueue($node, $db, "deadline => '3500 ms'");
ok(wait_state($node, $db, $id, 'exception'), 'a task that is locked does not hold up another');
is(state_of($node, $db, $held), 'pending', 'it waits for its lock');
$session->query_safe('COMMIT');
ok(wait_state($node, $db, $held, 'exception'), 'and is resolved as soon as the lock is free');

# An error in one step is logged, and does not stop the others.
my $before = $node->safe_psql($db, 'SELECT max(id) FROM tq_internal.task');
$node->safe_psql($db, "CREATE INDEX broken ON tq_internal.run ((1 / (reason_resolved - 6))) WHERE task > $before");
my $claimed = enqueue($node, $db, "deadline => '1 hour'", "priority => 'highest'");
$node->safe_psql($db, "SET tq.claim_timeout = '100ms'; SELECT tq.claim_task('$claimed', 0, 'g', 'w')");
ok($node->wait_for_log(qr/division by zero/), 'an error in a step is logged');
$id = enqueue($node, $db, "deadline => '1 second'");
ok(wait_state($node, $db, $id, 'exception'), 'the other steps are taken');
my $pid = worker_in($node, $db);
ok($pid, 'the maintenance worker is still there');
$node->safe_psql($db, 'DROP INDEX tq_internal.broken');
ok(wait_state($node, $db, $claimed, 'pending'), 'and the step is tried again');

# Many at once: no wake-up is lost, none twice.
$node->safe_psql($db, q{
	SELECT count(tq.enqueue('p/many', deadline => '500 ms' + n * '1 ms'::interval))
	FROM generate_series(1, 500) AS n});
ok($node->poll_query_until($db,
		"SELECT count(*) = 500 FROM tq.task_details WHERE task_queue_id = 'p/many' AND state = 'exception'"),
	'500 deadlines within a second');
is($node->safe_psql($db, "SET search_path = tq; SELECT count(*) FROM run_overview JOIN task_details USING (task_id)
		WHERE task_queue_id = 'p/many'"), 500, 'each once');
is($node->safe_psql($db, "SET search_path = tq; SELECT count(*) FROM run_overview r JOIN task_details t USING (task_id)
		WHERE task_queue_id = 'p/many' AND r.resolved < t.deadline"), 0, 'none before its time');

# Settings of the database that would hinder the maintenance worker.
$node->safe_psql($db, join(';', map { "ALTER DATABASE postgres SET $_" } (
	"default_transaction_isolation = 'serializable'", 'default_transaction_read_only = on',
	"statement_timeout = '1ms'", "search_path = 'nowhere'")));
{
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=read\\ committed'
	  . ' -c default_transaction_read_only=off -c statement_timeout=0';

	$node->safe_psql($db, "SELECT pg_terminate_backend($pid)");
	wait_worker($node, $db, $pid);
	$id = enqueue($node, $db, "deadline => '1 second'");
	ok(wait_state($node, $db, $id, 'exception'), 'settings of the database do not hinder the maintenance worker');
}

$session->quit;
unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

done_testing();
