# Leaving: prepare_drop() ends the jobs of pg_cron and names all that DROP EXTENSION
# leaves; when its statements have run, nothing of tq is left, and nothing fails.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT new_cron_node);

my $node = new_cron_node("shared_preload_libraries = 'tq, pg_cron'", 'wal_level = logical', 'tq.max_batch = 1000');
my $db = 'postgres';

sub query { return $node->safe_psql($_[1] // $db, $_[0], extra_params => ['-q']); }

query('CREATE EXTENSION tq');
is(query('SELECT moment, object, statement FROM tq.prepare_drop()') =~ s/^after\|(?!schema).*\n?//mgr, "drop|extension tq, with all tasks|DROP EXTENSION tq\nafter|schema tq|DROP SCHEMA tq\n",
	'without users there is only the extension, and its schema');
query($_) foreach 'CREATE EXTENSION pg_cron', 'CREATE ROLE app LOGIN IN ROLE tq_admin', 'CREATE ROLE guest LOGIN';

# ---- what users have made ----

query($_) foreach split /;\n/, q{
	CREATE TABLE "my order" (id int, task tq.slugid DEFAULT tq.slugid() PRIMARY KEY, CHECK (tq.queue_channel(id::text) <> ''), tasks tq.slugid[], claim tq.claim);
	CREATE VIEW shown AS SELECT * FROM tq.task_overview;
	CREATE VIEW orders AS SELECT task FROM "my order";
	CREATE MATERIALIZED VIEW kept AS SELECT state, count(*) FROM tq.task_overview GROUP BY state;
	CREATE FUNCTION by_task(tq.slugid) RETURNS text LANGUAGE sql AS 'SELECT 1';
	CREATE INDEX ON "my order" (task, id);
	CREATE PUBLICATION tq_copy FOR TABLE tq_internal.task, tq_internal.run;
	CREATE PUBLICATION other FOR TABLE "my order";
	ALTER DATABASE postgres SET tq.max_wait = '1 min';
	ALTER ROLE app SET tq.max_queues = 7;
	ALTER ROLE app IN DATABASE postgres SET tq.max_workers = 7;
	ALTER SYSTEM SET tq.expire_batch = 500;
	SELECT tq.enqueue('p/q')};
query("SET ROLE app; SELECT tq.schedule_cron('a', '0 0 1 1 *', 'p/q')");
query('CREATE DATABASE third');
query("SELECT cron.schedule_in_database('tq:a of third', '0 0 1 1 *', 'SELECT * FROM tq_internal.fire_cron(''a'')', 'third')");
query("SELECT cron.schedule('both', '0 0 1 1 *', 'SELECT tq.upkeep(), count(*) FROM \"my order\"')");
query("SELECT cron.schedule('tq upkeep', '0 0 1 1 *', 'SELECT tq.upkeep()'), cron.schedule('mine', '0 0 1 1 *', 'INSERT INTO \"my order\" SELECT 1, tq.enqueue(''p/q'')'), cron.schedule('other', '0 0 1 1 *', 'SELECT 1')");
like((($node->psql($db, "SET ROLE guest; SELECT tq.prepare_drop()", extra_params => [ '-v', 'VERBOSITY=verbose' ]))[2]), qr/TQ403/, 'not everyone may do it');
is(query('SELECT count(*) FROM cron.job'), 6, 'and then nothing is done');

# ---- the list ----

my @rows = map { [ split /\|/, $_, -1 ] } split /\n/, query(q{SELECT * FROM tq.prepare_drop()});
my %statement = map { $_->[1] => $_->[2] } @rows;

is(join(', ', map { $_->[1] =~ s/job \d+/job N/r } grep { $_->[0] eq 'done' } @rows), 'job N of pg_cron, "tq:a", job N of pg_cron, "tq upkeep"', 'jobs that call only tq have ended');
is(query('SELECT string_agg(jobname, \', \' ORDER BY jobid) FROM cron.job'), 'tq:a of third, both, mine, other', 'and no others: of no other database, and none that also does something else');
like($statement{'job of pg_cron, "both": SELECT tq.upkeep(), count(*) FROM "my order"'}, qr/^SELECT cron\.unschedule\(\d+\)$/, 'such a one is named');
like($statement{'job of pg_cron, "mine": INSERT INTO "my order" SELECT 1, tq.enqueue(\'p/q\')'}, qr/^SELECT cron\.unschedule\(\d+\)$/, 'a job that calls tq is named');
is($statement{'publication tq_copy of tables of tq'}, 'DROP PUBLICATION tq_copy', 'a publication of its tables');
is($statement{'setting tq.max_wait of database postgres'}, 'ALTER DATABASE postgres RESET tq.max_wait', 'a setting of the database');
is($statement{'setting tq.max_queues of role app'}, 'ALTER ROLE app RESET tq.max_queues', 'one of a role');
is($statement{'setting tq.max_workers of role app in database postgres'}, 'ALTER ROLE app IN DATABASE postgres RESET tq.max_workers', 'one of both');
is($statement{'setting tq.expire_batch of the server'}, 'ALTER SYSTEM RESET tq.expire_batch', 'one of the server');
is($statement{'setting tq.max_batch of the server'}, '', 'one of its file, which has no statement');
is($statement{q{tq in shared_preload_libraries, if no other database has it: leave ' pg_cron', and restart}}, '', 'the library');

# A second database that has tq keeps the roles.
query('CREATE DATABASE second');
query('CREATE EXTENSION tq', 'second');
is(query(q{SELECT count(*) || ' ' || count(statement) FROM tq.prepare_drop() WHERE object LIKE 'role tq_%'}), '5 0', 'roles that another database uses have no statement');
is(query(q{SELECT object FROM tq.prepare_drop() WHERE object LIKE 'role tq_admin%'}), 'role tq_admin, which is needed in database second', 'but the name of the database');
like(query(q{SELECT statement FROM tq.prepare_drop() WHERE moment = 'elsewhere'}, 'second'), qr/^SELECT cron\.unschedule\(jobid\) FROM cron\.job WHERE database = 'second'/, 'there pg_cron is elsewhere');
query('DROP DATABASE second');

# ---- it is right ----

query($_) foreach grep { $_ ne '' } split /\n/, query(q{SELECT statement FROM tq.prepare_drop()});
is(query(q{SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tq%'}), 0, 'no schema is left');
is(query(q{SELECT count(*) FROM pg_roles WHERE rolname LIKE 'tq%'}), 0, 'no role');
is(query(q{SELECT count(*) FROM pg_db_role_setting WHERE setconfig::text LIKE '%tq.%'}), 0, 'no setting');
is(query(q{SELECT string_agg(jobname, ', ' ORDER BY jobid) FROM cron.job}), 'tq:a of third, other', 'no job of this database');
is(query(q{SELECT string_agg(pubname, ' ') FROM pg_publication}), 'other', 'no publication');
is(query(q{SELECT string_agg(format('%s %s', attname, atttypid::regtype), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '"my order"'::regclass AND attnum > 0}),
	'id integer, task text, tasks text, claim text', 'data of users are still there');
ok(wait_no_worker($node, $db), 'the maintenance worker has ended');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_cron'");
$node->restart;
unlike(slurp_file($node->logfile) =~ s/^.*TQ403.*\n//mgr =~ s/^.*scopes are not sufficient.*\n//mgr, qr/ERROR|FATAL:(?!.*(?:administrator|shutting down|starting up))|WARNING|PANIC:/, 'and nothing has failed');
$node->stop;
done_testing();
