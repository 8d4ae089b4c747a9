# The statements of tq walk indexes whatever the settings of a session are, also
# when they are planned again because others change the tables' catalog entries.
use strict;
use warnings FATAL => 'all';

use FindBin qw($RealBin);
use lib $RealBin;

use Tq;

my $node = new_node('plans', 'autovacuum = off', 'tq.maintenance = off');
my $dir = PostgreSQL::Test::Utils::tempdir();
my @tables = qw(dependency queue run task task_group);
my $count = 'SELECT pg_stat_force_next_flush(); SELECT relname, seq_scan FROM pg_stat_user_tables'
  . " WHERE schemaname = 'tq_internal' AND relname IN ('" . join("', '", @tables) . "') ORDER BY 1";

$node->safe_psql('postgres', q{
	CREATE EXTENSION tq;
	SELECT tq.enqueue('p/w', task_id => tq.stable_slugid('head'));
	SELECT count(tq.enqueue('p/w', task_id => tq.stable_slugid(n::text), task_group_id => tq.stable_slugid('head'), dependencies => ARRAY[tq.stable_slugid('head')]))
		FROM generate_series(1, 1000) AS n});
append_to_file("$dir/read.sql", q{
	\set n random(1, 1000)
	SELECT tq.status(tq.stable_slugid(:n::text));
	SELECT count(*) FROM tq.list_task_group(tq.stable_slugid('head'), tq.stable_slugid(:n::text), 5);
	SELECT count(*) FROM tq.list_dependent_tasks(tq.stable_slugid('head'), tq.stable_slugid(:n::text), 5);
	SELECT count(*) FROM tq.statuses(ARRAY[tq.stable_slugid(:n::text), tq.stable_slugid('head')]);
	SELECT tq.enqueue('p/w' || :n, task_group_id => tq.stable_slugid('head'));
});
append_to_file("$dir/change.sql", join "\n", map { "GRANT SELECT ON tq_internal.$_ TO tq_admin; REVOKE SELECT ON tq_internal.$_ FROM tq_admin;" } @tables);

my $before = $node->safe_psql('postgres', $count);
is(join(' ', $before =~ /^(\w+)\|\d+$/mg), "@tables", 'the scans of each table are counted');
my @hostile = map { "-c $_" } map { "enable_$_=off" } qw(indexscan indexonlyscan bitmapscan nestloop sort);

foreach my $mode ('auto', 'force_custom_plan', 'force_generic_plan')
{
	local $ENV{PGOPTIONS} = "@hostile -c plan_cache_mode=$mode";
	my @pgbench = ('pgbench', '-n', '-h', $node->host, '-p', $node->port);
	my $changes = IPC::Run::start([ @pgbench, '-c', '1', '-T', '4', '-f', "$dir/change.sql", 'postgres' ], '>', '/dev/null', '2>', '/dev/null');

	$node->command_ok([ @pgbench, '-c', '2', '-T', '4', '-f', "$dir/read.sql", 'postgres' ], "$mode: calls while catalogs change");
	ok($changes->finish, "$mode: the catalogs change");
	is($node->safe_psql('postgres', $count), $before, "$mode: no statement reads a whole table");
}

# The publisher finds the messages that are new by their transactions, also if the
# log was small when its plans were made, and while other transactions run.
$node->safe_psql('postgres', 'CREATE DATABASE analyzed');
$node->safe_psql('analyzed', 'CREATE EXTENSION tq');
$node->safe_psql('analyzed', 'VACUUM ANALYZE');
{
	local $ENV{PGOPTIONS} = '-c tq.maintenance=on -c default_transaction_isolation=read\\ committed';
	my $reads = q{SELECT pg_stat_force_next_flush(); SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname ~ '^message_\d$'};
	my $enqueue = q{DO $$ BEGIN FOR i IN 1 .. 3000 LOOP PERFORM tq.enqueue('p/w'); COMMIT; END LOOP; END $$};
	my $other = $node->background_psql('analyzed');
	my $publisher = $node->background_psql('analyzed');
	my @passes;

	$publisher->query_safe(q{SELECT tq.enqueue('p/w'); SELECT count(*) FROM tq.upkeep()}) foreach 1 .. 10;
	$node->safe_psql('analyzed', $enqueue);
	$publisher->query_safe('SELECT count(*) FROM tq.upkeep(); SELECT pg_stat_force_next_flush()');
	foreach my $pass (1 .. 3)
	{
		$other->query_safe(q{BEGIN; SELECT tq.enqueue('p/other')});
		my $before = (split /\n/, $node->safe_psql('analyzed', $reads))[-1];
		$publisher->query_safe(q{SELECT tq.enqueue('p/w'); SELECT count(*) FROM tq.upkeep()});
		$other->query_safe('COMMIT');
		$publisher->query_safe('SELECT count(*) FROM tq.upkeep(); SELECT pg_stat_force_next_flush()');
		push @passes, (split /\n/, $node->safe_psql('analyzed', $reads))[-1] - $before;
	}
	$_->quit foreach $other, $publisher;
	cmp_ok($_, '<', 100, 'a pass of the publisher does not read the whole log') foreach @passes;
	is($node->safe_psql('analyzed', q{SELECT sum(messages) FROM tq_internal.tick}), '6032', 'it has published a task-defined and a task-pending of each');
}

# The statements of the session are planned by its settings, one of a trigger
# within one of ours as well.
$node->safe_psql('postgres', q{
	CREATE TABLE planned (line text);
	CREATE TABLE other (id int PRIMARY KEY);
	CREATE FUNCTION explain() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		line text;
	BEGIN
		FOR line IN EXPLAIN (COSTS OFF) SELECT FROM public.other WHERE id = 1 LOOP
			INSERT INTO public.planned VALUES (line);
		END LOOP;
		RETURN NULL;
	END $$;
	CREATE TRIGGER explain AFTER INSERT ON tq_internal.queue FOR EACH ROW EXECUTE FUNCTION explain();
	SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
	SELECT tq.enqueue('p/explain')});
like($node->safe_psql('postgres', 'SELECT line FROM planned LIMIT 1'), qr/^Seq Scan on other/, 'a statement of a trigger is planned by the settings of the session');

$node->stop;
done_testing();
