# Batches of tasks, whose index entries are inserted page by page: sessions that create
# the same ones and others, ordered and not, while claims and deletions go on; then a
# kill of the server, and a standby.  The indexes have what the tables have, each task
# once.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $db = 'postgres';
my $tmp = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('bulk', 'max_connections = 30', 'log_statement = none');

$node->safe_psql($db, 'CREATE EXTENSION tq; CREATE EXTENSION amcheck');
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;

# Ids of which every third is random as a whole, in an order that is not theirs.
$node->safe_psql($db, q{
	CREATE TABLE pool AS SELECT n, tq.slugid(ordered => n % 3 > 0) AS id FROM generate_series(1, 6000) AS n;
	CREATE INDEX ON pool (n);
	CREATE TABLE definition AS SELECT jsonb_build_object('taskQueueId', 'p/w', 'created', now(), 'deadline', now() + interval '1 day', 'payload', '{}'::jsonb,
		'metadata', jsonb_build_object('name', 'n', 'description', 'd', 'owner', 'o', 'source', 'https://example.org/')) AS d;
	CREATE FUNCTION batch(first int, n int) RETURNS bigint LANGUAGE sql
		RETURN (SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', id, 'task', d))) FROM pool, definition WHERE pool.n >= first AND pool.n < first + batch.n);
});
append_to_file("$tmp/same.sql", "\\set first random(1, 5900)\n\\set n random(1, 300)\nSELECT batch(:first, :n);\n");
append_to_file("$tmp/own.sql", "SELECT count(tq.enqueue_tasks('p/w', array_fill('{}'::jsonb, ARRAY[500])));\n");
append_to_file("$tmp/end.sql", "SELECT count(r.*) FROM (SELECT array_agg(task_id) AS ids, array_agg(run_id) AS runs FROM tq.claim_work('p/w', 'g', 'w', 100)) AS c, tq.resolve(c.ids, c.runs) AS r WHERE c.ids IS NOT NULL;\n");

sub load
{
	my ($seconds) = @_;

	return IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', $seconds, '-h', $node->host, '-p', $node->port,
		'-f', "$tmp/same.sql\@4", '-f', "$tmp/own.sql\@1", '-f', "$tmp/end.sql\@1", $db ], '>', "$tmp/out", '2>', "$tmp/err");
}

# Whether each index has all the rows of its table, in order.
sub check_indexes
{
	my ($server, $when) = @_;

	my $checked = $server->safe_psql($db, q{
		SELECT count(bt_index_check(oid, true)) = count(*) AND count(*) > 50 FROM pg_class
		WHERE relnamespace = 'tq_internal'::regnamespace AND relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')});
	is($checked, 't', "$when: the indexes are in order and complete");
	is($server->safe_psql($db, 'SELECT count(*) - count(DISTINCT task_id) FROM tq_internal.task'), 0, "$when: each task is there once");
	return;
}

# No error: no deadlock, no key twice, and a task of another session is met again.
my $run = load(3);
$run->finish;
is(slurp_file("$tmp/err") =~ s/^pgbench: (?!error).*\n//gmr, '', 'no call has failed');
check_indexes($node, 'after the load');
is(violations($node, $db), '', 'tables are consistent');

# A repeat of all is none that is new; those that are left are created.
$node->safe_psql($db, 'SELECT batch(1, 3000)');
is($node->safe_psql($db, 'SELECT batch(1, 3000)'), 0, 'tasks that exist already');
$node->safe_psql($db, 'SELECT batch(3001, 3000)');
is($node->safe_psql($db, 'SELECT count(*) FROM pool JOIN tq_internal.task ON task_id = pool.id'), 6000, 'each of the pool exists');

$node->wait_for_catchup($standby);
check_indexes($standby, 'on a standby');

my $tasks = $node->safe_psql($db, 'SELECT count(*) FROM tq_internal.task');
$run = load(60);
ok($node->poll_query_until($db, "SELECT count(*) > $tasks + 5000 FROM tq_internal.task"), 'a load again');
$node->stop('immediate');
$run->finish;
$node->start;
check_indexes($node, 'after a crash');
is(violations($node, $db), '', 'tables are consistent');
$node->wait_for_catchup($standby);
$standby->promote;
check_indexes($standby, 'of a standby that took over');

done_testing();
