# A logical copy of tq's tables, in a server that runs tq itself: it stays a
# copy, and replication goes on, while things come due on both sides.  The part `majors`
# copies from an older major version.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $source = new_older('source', "shared_preload_libraries = 'tq'", 'wal_level = logical', 'max_wal_senders = 10');
my $copy = new_node('copy', 'max_worker_processes = 20', 'max_logical_replication_workers = 8');
my $db = 'shop';

# As doc/operations.md has it.
my ($publish) = slurp_file("$FindBin::RealBin/../../doc/operations.md") =~ /^(DO \$\$ BEGIN\n    EXECUTE.*?^END \$\$;)$/ms;
ok($publish, 'doc/operations.md shows how to publish');

$_->safe_psql('postgres', "CREATE DATABASE $db") foreach $source, $copy;
$source->safe_psql($db, 'CREATE EXTENSION tq');
$source->safe_psql($db, $publish);
$copy->safe_psql('postgres', "ALTER DATABASE $db SET tq.maintenance = off");
$copy->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($_, $db) foreach $source, $copy;

# Before the first copy, and after it.
sub work
{
	my ($round) = @_;

	$source->safe_psql($db, qq{
		SELECT tq.enqueue('p/done-$round');
		SELECT r.outcome FROM tq.claim_work('p/done-$round', 'g', 'w') c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id]) r;
		SELECT tq.enqueue('p/overdue-$round', deadline => '1 s');
		SELECT tq.enqueue('p/delayed-$round', delay => '1 s');
		SELECT tq.enqueue('p/lost-$round');
		SET tq.claim_timeout = '1s';
		SELECT count(*) FROM tq.claim_work('p/lost-$round', 'g', 'w');
		SELECT tq.enqueue('p/fatal-$round', policy => '{"deadLetter": true, "runTimeout": 1}');
		RESET tq.claim_timeout;
		SELECT count(*) FROM tq.claim_work('p/fatal-$round', 'g', 'w')});
	return;
}

my $all_done = q{SELECT bool_and(CASE split_part(task_queue_id, '-', 1)
	WHEN 'p/done' THEN state = 'completed' WHEN 'p/overdue' THEN state = 'exception' WHEN 'p/delayed' THEN state = 'pending' AND visible_at IS NULL
	WHEN 'p/lost' THEN last_run_id = 1 WHEN 'p/fatal' THEN last_run_id = 1 OR state = 'exception' END) FROM tq.task_details};
my $picture = q{SELECT string_agg(format('%s %s %s %s', task_id, state, last_run_id, resolved), E'\n' ORDER BY task_id::text COLLATE "C") FROM tq.task_details};
my $timers = q{SELECT md5(string_agg(format('%s %s %s', due, kind, tasks), ',' ORDER BY kind, due, seq)) FROM tq_internal.timer};

work('before');
my $connection = $source->connstr($db) =~ s/'/''/gr;
$copy->safe_psql($db, "CREATE SUBSCRIPTION tq_copy CONNECTION '$connection' PUBLICATION tq_copy");
$copy->wait_for_subscription_sync($source, 'tq_copy', $db);
work('after');
ok($source->poll_query_until($db, $all_done), 'the source does what is due');
$source->safe_psql($db, 'SELECT tq.enqueue_tasks(\'p/many\', array_fill(\'{}\'::jsonb, ARRAY[1000]))');

ok($source->poll_query_until($db, q{SELECT NOT EXISTS (SELECT FROM tq_internal.unpublished)}),
	'all is published, and the timers of deadlines inserted');
$source->wait_for_catchup('tq_copy');
is($copy->safe_psql($db, $picture), $source->safe_psql($db, $picture), 'the copy shows what the source shows');
is($copy->safe_psql($db, $timers), $source->safe_psql($db, $timers), 'timers are those of the source');
is($copy->safe_psql($db, 'SELECT (tq.task_queue_counts(\'p/many\') -> \'pendingTasks\')::bigint'), 1000, 'the copy can be read');
is($copy->safe_psql($db, "SELECT state FROM tq.maintenance_overview WHERE step = 'turn'"), 'off', 'and has no maintenance');
my $log = slurp_file($copy->logfile);
unlike($log, qr/duplicate key|ERROR:.*conflict/, 'replication met no conflict');
is($copy->safe_psql($db, 'SELECT count(*) FROM pg_stat_subscription WHERE pid IS NULL AND relid IS NULL'), 0, 'and goes on');

# A database beside it on the copying server is maintained.
$copy->safe_psql('postgres', 'CREATE EXTENSION tq');
my $beside = enqueue($copy, 'postgres', "deadline => '300 ms'");
ok(wait_state($copy, 'postgres', $beside, 'exception'), 'a healthy task beside is served');
cmp_ok(lateness($copy, 'postgres', $beside, 0, "(s ->> 'deadline')::timestamptz"), '<', 5, 'in time');
# What the owner of a database may do to it stops no step of maintenance: each
# time, days later, all of them find something to do.
$source->append_conf('postgresql.conf', 'allow_in_place_tablespaces = on') if $source->safe_psql($db, 'SHOW server_version_num') >= 150000;
$source->reload;
my $each_table = sub { return join '; ', map { sprintf $_[0], $_ } split /\n/, $source->safe_psql($db,
	"SELECT oid::regclass FROM pg_class WHERE relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND relkind = 'r' ORDER BY 1") };
my $days = 0;
foreach my $act (
	[ 'a publication for all tables' => 'CREATE PUBLICATION everything FOR ALL TABLES' ],
	[ 'an event trigger' => 'CREATE FUNCTION public.noted() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM pg_event_trigger_ddl_commands(); END $$;'
		. 'CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION public.noted()' ],
	[ 'default privileges' => 'CREATE ROLE stranger; ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO stranger' ],
	[ 'row security' => $each_table->('ALTER TABLE %s ENABLE ROW LEVEL SECURITY') ],
	[ 'VACUUM FULL' => 'VACUUM FULL' ],
	[ 'REINDEX' => "REINDEX DATABASE $db" ],
	[ 'CLUSTER' => 'CLUSTER tq_internal.task USING task_pkey; CLUSTER tq_internal.run USING run_pkey' ],
	[ 'a tablespace' => "CREATE TABLESPACE elsewhere LOCATION ''; ALTER TABLE tq_internal.task SET TABLESPACE elsewhere; ALTER TABLE tq_internal.tick_0 SET TABLESPACE elsewhere" ],
	[ 'no autovacuum' => $each_table->('ALTER TABLE %s SET (autovacuum_enabled = off)') ])
{
	my ($what, $statements) = @$act;
	my ($out, $stderr);

	$source->psql($db, $_, on_error_die => 1) foreach split /;\s*(?![^\$]*END \$\$)/, $statements;
	$days += 3;
	$source->psql($db, qq{
		SET tq.clock_offset = '$days days';
		SELECT tq.upkeep();
		SELECT tq.set_queue('p/set-$days', '{"concurrentLimit": 1}');
		SELECT tq.enqueue('p/first-$days', deadline => '1 minute', expires => '1 hour', policy => '{"serialKey": "k", "retainFailed": 60}');
		SELECT tq.enqueue('p/later-$days', delay => '1 minute', deadline => '2 days', policy => '{"deadLetter": true, "pendingTimeout": 60}');
		SET tq.clock_offset = '@{[ $days + 1 ]} days';
		SELECT step, tasks FROM tq.upkeep();
		SET tq.clock_offset = '@{[ $days + 2 ]} days';
		SELECT tq.upkeep()}, stdout => \$out, stderr => \$stderr, on_error_die => 1);
	is($stderr, '', "$what: no step fails");
	like($out, qr/^deadline\|[1-9]/m, "$what: and they do what is due");
}
is($source->safe_psql($db, q{SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY 1) FROM pg_class c WHERE c.relnamespace = 'tq_internal'::regnamespace
	AND c.relkind = 'r' AND c.relname !~ '^message_' AND c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)}),
	'', 'every table whose rows are changed has a replica identity');
unlike(slurp_file($_->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed') foreach $source, $copy;
$_->stop foreach $copy, $source;

done_testing();
