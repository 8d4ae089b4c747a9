# Plans and caches of a backend while others change the tables' catalog entries,
# and while a trigger of the owner's calls tq from within tq: no crash, no error.
use strict;
use warnings FATAL => 'all';

use FindBin qw($RealBin);
use lib $RealBin;

use Tq;

my $node = new_node('invalidated');
my $dir = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', 'CREATE EXTENSION tq');
append_to_file("$dir/enqueue.sql", "SELECT tq.enqueue('short/w' || (random() * 50)::int);\n");
append_to_file("$dir/grant.sql", join "\n", map { "GRANT SELECT ON tq_internal.$_ TO tq_admin; REVOKE SELECT ON tq_internal.$_ FROM tq_admin;" } qw(queue task pending timer));

# Enqueue and change catalogs side by side; the number of enqueued tasks.
sub storm
{
	my $changes = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '2', '-t', '300', '-h', $node->host, '-p', $node->port, '-f', "$dir/grant.sql", 'postgres' ],
		'>', '/dev/null', '2>', '/dev/null');

	$node->command_ok(
		[ 'pgbench', '-n', '-c', '3', '-t', '1000', '-h', $node->host, '-p', $node->port, '-f', "$dir/enqueue.sql", 'postgres' ],
		'enqueue while catalogs change');
	$changes->finish;
	return $node->safe_psql('postgres', 'SELECT count(*) FROM tq_internal.task');
}

is(storm(), 3000, 'nothing is lost');

is($node->safe_psql('postgres', 'SELECT count(*) FROM tq_internal.task WHERE id NOT IN (SELECT task FROM tq_internal.pending)'),
	0, 'and all are claimable');

# The first use of a queue's name is a statement, and fires triggers.
$node->safe_psql('postgres', q{
	CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF pg_trigger_depth() < 2 THEN
			PERFORM tq.enqueue('short/nested');
			PERFORM (tq.task_queue_counts('short/nested') -> 'pendingTasks')::bigint;
			PERFORM tq.status(task_id) FROM tq.claim_work('short/nested', 'g', 'w');
		END IF;
		RETURN NULL;
	END $$;
	CREATE TRIGGER nest AFTER INSERT ON tq_internal.queue FOR EACH ROW EXECUTE FUNCTION nest();
});
append_to_file("$dir/enqueue.sql", "SELECT tq.enqueue('new/' || :client_id || 'w' || (random() * 1000)::int);\n");
is(storm(), 9000 + $node->safe_psql('postgres', "SELECT count(*) FROM tq_internal.queue WHERE task_queue_id ~ '^new/'"),
	'nor when a trigger enqueues a task for each new queue');

# A trigger that would not be fired is refused, and what refers to a task is no such.
$node->safe_psql('postgres', q{
	DROP TRIGGER nest ON tq_internal.queue;
	CREATE TABLE mine (task_id tq.slugid REFERENCES tq_internal.task (task_id));
	CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'});
is($node->safe_psql('postgres', "INSERT INTO mine SELECT tq.enqueue('short/w'); SELECT count(*) FROM mine"), 1, 'a foreign key to a task');
foreach my $event ([ 'INSERT', 'task' ], [ 'INSERT', 'run' ], [ 'UPDATE', 'run' ], [ 'DELETE', 'pending' ])
{
	my ($what, $table) = @$event;

	$node->safe_psql('postgres', "CREATE TRIGGER never AFTER $what ON tq_internal.$table FOR EACH ROW EXECUTE FUNCTION never()");
	my ($ret, $out, $err) = $node->psql('postgres', q{
		SELECT tq.enqueue('refused/w');
		SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('refused/w', 'g', 'w')});
	like($err, qr/table "tq_internal.$table" must not have triggers/, "$what on tq_internal.$table is refused");
	$node->safe_psql('postgres', "DROP TRIGGER never ON tq_internal.$table");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/terminated by signal|TRAP:/, 'no process crashed');
done_testing();
