# A restored copy stays as it is until a client uses it: the maintenance worker
# does nothing while only some of its rows are loaded, in whatever order.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('restore', 'max_worker_processes = 20');
my $tmp = PostgreSQL::Test::Utils::tempdir;
my %id;

sub state_in
{
	my ($db) = @_;

	return join ' ', map { state_of($node, $db, $id{$_}) } sort keys %id;
}

# Things that come due: a deadline, a claim that expires, a delayed task.
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(source clock plain parallel data psql);
$node->safe_psql('source', 'CREATE EXTENSION tq');
$id{deadline} = enqueue($node, 'source', "deadline => '8 s'");
$id{lost} = $node->safe_psql('source', "SELECT tq.enqueue('p/lost')");
$node->safe_psql('source', "SET tq.claim_timeout = '8s'; SELECT 1 FROM tq.claim_work('p/lost', 'g', 'w')");
$id{delayed} = $node->safe_psql('source', "SELECT tq.enqueue('p/delayed', delay => '8 s')");
my $connection = $node->connstr('source');
command_ok([ 'pg_dump', '-f', "$tmp/plain.sql", '-d', $connection ], 'dump as SQL');
command_ok([ 'pg_dump', '-Fd', '-f', "$tmp/dump", '-d', $connection ], 'dump as a directory');

# Restored in three ways, the tables while things come due.
sub restore
{
	my ($db, @command) = @_;

	command_ok([ @command, '-d', $node->connstr($db) ], "$db: restored");
	wait_worker($node, $db);
	ok($node->poll_query_until($db, "SELECT state = 'unused' FROM tq.maintenance_overview WHERE step = 'turn'"),
		"$db: the view shows that the copy is not in use");
	return;
}
restore('plain', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$tmp/plain.sql");
restore('parallel', 'pg_restore', '-j', '2', "$tmp/dump");
$node->safe_psql('data', 'CREATE EXTENSION tq');
command_ok([ 'pg_restore', '--data-only', '--disable-triggers', '-d', $node->connstr('data'), "$tmp/dump" ], 'data: restored');

# The maintenance worker of the source is the clock: it acts, those of the copies do not.
ok(wait_state($node, 'source', $id{deadline}, 'exception'), 'the source does what is due: a deadline');
ok($node->poll_query_until('source', "SELECT jsonb_array_length(tq.status('$id{lost}') -> 'runs') = 2"), 'a lost claim');
ok($node->poll_query_until('source', "SELECT (tq.task_queue_counts('p/delayed') -> 'pendingTasks')::bigint = 1 AND NOT EXISTS (SELECT FROM tq_internal.delayed)"), 'a delayed task');
foreach my $db (qw(plain parallel data))
{
	is(state_in($db), 'pending pending running', "$db: nothing is done while it is not in use");
	is(violations($node, $db), '', "$db: tables are consistent");
	is($node->safe_psql($db, 'SELECT sum(tasks) FROM tq.upkeep()'), 0, "$db: nor by upkeep()");
	is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.activation'), 0, "$db: reading does not put it in use");

	# The first client, though there is nothing for it.
	is($node->safe_psql($db, "SELECT count(*) FROM tq.claim_work('p/none', 'g', 'w')"), 0, "$db: a client comes");
	ok(wait_state($node, $db, $id{deadline}, 'exception'), "$db: the deadline has passed");
	ok($node->poll_query_until($db, "SELECT jsonb_array_length(tq.status('$id{lost}') -> 'runs') = 2"), "$db: the claim is lost");
	ok($node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.claim_work('p/delayed', 'g', 'w')"), "$db: the delayed task can be claimed");
	is(violations($node, $db), '', "$db: tables are consistent");
}

# A database in which CREATE EXTENSION runs outside a restore is in use at once.
$node->safe_psql('psql', 'CREATE EXTENSION tq');
my $healthy = enqueue($node, 'psql', "deadline => '200 ms'");
ok(wait_state($node, 'psql', $healthy, 'exception'), 'a new database is in use at once');

unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

done_testing();
