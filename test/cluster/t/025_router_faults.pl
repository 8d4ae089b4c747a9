# What a router refuses: each call of sql/bad_input.sql gets the error of the shard; calls
# of tq_shard that fail leave nothing behind; roles get no rights that they have not.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('faults', 'max_connections = 60');
my $router = 'router';

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my $at = 'host=' . $node->host . ' port=' . $node->port;
my $tree = "$FindBin::RealBin/../../..";

sub ask { return $node->safe_psql($router, $_[0]); }

# The error of a statement, as psql shows it.
sub refused
{
	my ($query, $db) = @_;
	my ($code, $out, $error) = $node->psql($db // $router, "\\set VERBOSITY verbose\n$query");

	return $error;
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ($router, 'direct', 's1', 's2', 's3');
$node->safe_psql('postgres', q{ALTER DATABASE s1 SET cron.database_name = 'elsewhere'});		# as in bad_input.sql
$node->safe_psql($_, 'CREATE EXTENSION tq') foreach ('s1', 's2', 's3');
ask('CREATE EXTENSION tq_shard CASCADE');
ask("CALL tq_shard.add_shard('one', '$at dbname=s1')");
ask("CALL tq_shard.add_shard('two', '$at dbname=s2')");

# ---- bad input: the error of the shard ----

# sql/bad_input.sql runs in a database with tq, where a table gets each statement and
# its answer; what comes before the bad input runs on the first shard, too.
my $helper = slurp_file("$tree/sql/helper.psql");
my $input = slurp_file("$tree/sql/bad_input.sql");
my $dir = PostgreSQL::Test::Utils::tempdir();

mkdir "$dir/sql" or die;
$helper =~ s/(\tIF code = 'XX999' THEN\n\t\tcode := 'ok';)/\tINSERT INTO public.asked (statement, code, message, detail, hint) SELECT statement, replace(a.code, 'XX999', 'ok'), a.message, a.detail, a.hint
		FROM (SELECT answer.code, answer.message, answer.detail, answer.hint) AS a;\n$1/ or die 'sql/helper.psql has another answer()';
append_to_file("$dir/sql/helper.psql", $helper);
my ($before) = $input =~ /\A(.*?)^-- Functions that are not in the manifest/ms or die 'sql/bad_input.sql has no list of functions';

sub run_input
{
	my ($db, $text) = @_;
	my ($out, $error) = ('', '');

	$node->safe_psql($db, 'CREATE TABLE asked (n serial, statement text, code text, message text, detail text, hint text)');
	local $ENV{PG_ABS_SRCDIR} = $dir;
	local $ENV{PG_ABS_BUILDDIR} = $tree;		# test/calls.sql, which the build has made
	IPC::Run::run([ 'psql', '-Xq', '-d', $node->connstr($db) ], '<', \$text, '>', \$out, '2>', \$error);
	return $error;
}

run_input('direct', $input);
is(run_input('s1', $before) =~ s/^(?!.*ERROR).*\n//gmr, '', 'the tasks and queues of bad_input.sql');
$node->safe_psql('s1', q{SELECT tq_internal.set_buckets('{[0,512)}')});		# which the helper has reset
cmp_ok($node->safe_psql('direct', q{SELECT count(*) FROM asked WHERE code <> 'ok'}), '>', 1000, 'its statements');

# The statements that fail in the database with tq, through the router.
my $statements = $node->safe_psql('direct', q{COPY (SELECT * FROM asked WHERE code <> 'ok' AND statement !~ '^SELECT . FROM tq_internal|^SELECT pg_temp[.]called' ORDER BY n) TO STDOUT});
append_to_file("$dir/statements", "$statements\n");
my ($functions) = $helper =~ /^(-- A readable slugid.*?)^-- A status in one line/ms or die;
my $compare = $functions . <<"SQL" . <<'SQL';
SET client_min_messages = error;
SET timezone = 'UTC';
SET search_path = public, tq;
CREATE TABLE asked (n int, statement text, code text, message text, detail text, hint text);
\\copy asked FROM '$dir/statements'
SQL
CREATE TEMP TABLE given AS SELECT NULL::jsonb AS credentials;
CREATE TABLE answered (n int, code text, message text, detail text, hint text);
CREATE FUNCTION pg_temp.answer(statement text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE statement INTO result;
	code := 'ok';
	message := result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	message := left(pg_temp.stable(regexp_replace(message, '^[\w.]+\(\d+\): \[s\d\] REMOTE ERROR: ', '')), 200);
	detail := left(pg_temp.stable(regexp_replace(detail, '^Remote detail: ', '')), 300);
	hint := pg_temp.stable(regexp_replace(hint, '^Remote hint: ', ''));
END
$$;
INSERT INTO answered SELECT a.n, r.* FROM (SELECT n, statement FROM asked ORDER BY n) AS a CROSS JOIN LATERAL pg_temp.answer(a.statement) AS r;
SQL
my $differ = q{SELECT concat_ws(e'\n', statement, concat_ws('|', d.code, d.message, d.detail, d.hint), concat_ws('|', r.code, r.message, r.detail, r.hint))
	FROM asked d JOIN answered r USING (n) WHERE (d.code, d.message, d.detail, d.hint) IS DISTINCT FROM (r.code, r.message, r.detail, r.hint)
		AND NOT (r.code = '0A000' AND r.message LIKE '%does not run through a router')};
ask($compare);
is(ask($differ), '', 'each gets the same SQLSTATE, message, detail and hint through the router');
is(ask(q{SELECT string_agg(DISTINCT substr(statement, 18, strpos(statement, '(') - 18), ' ' ORDER BY substr(statement, 18, strpos(statement, '(') - 18))
	FROM asked JOIN answered r USING (n) WHERE r.code = '0A000'}), 'assume message messages top', 'except those that do not run through it');

foreach my $wait ('NULL', q{'-1 second'}, q{'61 seconds'})
{
	ask(q{SELECT tq.enqueue('app/unwaited')});
	like(refused("SELECT tq.claim_work('app/unwaited', 'g', 'w', 1, $wait)"), qr/TQ400: .*wait/, "claim_work() with a wait of $wait");
	like(refused("SELECT tq.claim_work('{app/unwaited}'::text[], 'g', 'w', 1, $wait)"), qr/TQ400: .*wait/, 'of several queues');
}
is(ask(q{SELECT (tq.task_queue_counts('app/unwaited') -> 'pendingTasks')::bigint}), '3', 'claims nothing');

# Procedures
foreach my $call (q{wait_for_task('one_____QAGAAAAAAAAAAA', NULL)}, q{wait_for_task('one_____QAGAAAAAAAAAAA', '-1 second')}, q{wait_for_task('one_____QAGAAAAAAAAAAA', '2 hours')},
	q{wait_for_task_group('group___QAGAAAAAAAAAAA', NULL)}, q{wait_for_task_group('group___QAGAAAAAAAAAAA', '1 month')}, q{wait_for_task(NULL, '0')}, q{wait_for_task_group(NULL, '0')},
	q{wait_for_task('nobody__QAGAAAAAAAAAAA', '0')})
{
	my ($direct, $routed) = map { join "\n", map { s/tq\.\w+\(\d+\): \[\w+\] REMOTE ERROR: |Remote (?:detail|hint): //gr } refused("CALL tq.$call", $_) =~ /((?:ERROR|DETAIL|HINT): .*)/g } ('direct', $router);
	is($routed, $direct, "CALL $call");
}

# ---- the map ----

# A session stays after an error, and leaves no lock behind.
my $other = $node->background_psql($router, on_error_stop => 0);
my $none = "$at dbname=none";

$node->safe_psql('postgres', q{ALTER DATABASE s3 ALLOW_CONNECTIONS false});
foreach my $call ("DO \$\$BEGIN CALL tq_shard.drain_shard('none'); EXCEPTION WHEN OTHERS THEN NULL; END\$\$", "CALL tq_shard.add_shard('three', '$at dbname=s3')", "CALL tq_shard.add_shard('one', '$none')", q{CALL tq_shard.drain_shard('none')}, q{CALL tq_shard.remove_shard('one')},
	"BEGIN; CALL tq_shard.add_shard('three', '$at dbname=s3'); ROLLBACK",
	"CALL tq_shard.set_connection('one', '$none')", q{BEGIN; SELECT tq_shard.refresh(); SELECT 1 / 0; ROLLBACK}, q{SELECT tq_shard.refresh()})
{
	$other->query($call);
	is(ask(q{SELECT tq_shard.refresh() >= 0}), 't', "no lock after: $call");
}
is(ask(q{SELECT string_agg(concat_ws(' ', name, state, buckets), ', ') FROM tq_shard.map()}), 'one active {[0,512)}, two active {[512,1024)}', 'what failed has changed nothing');
$other->query('BEGIN; SELECT tq_shard.refresh()');
like(refused(q{CALL tq_shard.drain_shard('two')}), qr/55006: another session changes the map/, 'until the end of the transaction');
$other->query('COMMIT');
$other->quit;
$node->safe_psql('postgres', q{ALTER DATABASE s3 ALLOW_CONNECTIONS true});

# Arguments
foreach my $bad ('NULL', q{''}, q{repeat('x', 64)}, q{e'a\nb'})
{
	like(refused("CALL tq_shard.add_shard($bad, '$at dbname=s3')"), qr/22023: invalid name of a shard/, "a name: $bad");
}
my %refused_connection = (
	'NULL' => 'invalid connection string', q{''} => 'invalid connection string', q{'nothing'} => 'invalid connection string',
	q{'postgresql://localhost/s3'} => 'invalid connection string', q{' postgres://web:secret@localhost/s3?user=web'} => 'invalid connection string',
	q{'dbname=s3 password = secret'} => 'must not have a password', q{'dbname=s3 sslpassword=secret'} => 'must not have a password',
	q{'dbname=s3 user=postgres'} => 'must not have a user', q{'dbname=s3 user = postgres'} => 'must not have a user');
foreach my $bad (sort keys %refused_connection)
{
	like(refused("CALL tq_shard.add_shard('three', $bad)"), qr/22023: .*$refused_connection{$bad}/, "a connection: $bad");
	like(refused("CALL tq_shard.set_connection('one', $bad)"), qr/22023: .*$refused_connection{$bad}/, 'of a shard that is there, too');
}
like(refused("CALL tq_shard.add_shard('three', 'bad=s3')"), qr/invalid connection option "bad"/, 'a keyword that libpq does not have');
like(refused("CALL tq_shard.$_"), qr/42704: shard "<NULL>" does not exist/, $_) foreach ('drain_shard(NULL)', 'remove_shard(NULL)', q{set_connection(NULL, 'dbname=s3')});
like(refused("CALL tq_shard.add_shard('three', 'dbname=s2 $at')"), qr/42710: this database is shard "two"/, 'a database that is a shard by another connection');
like(refused("CALL tq_shard.add_shard('three', '$at dbname=$router')"), qr/55000: this database is no shard.*is to a router/s, 'the router itself');
like(refused("CALL tq_shard.add_shard('three', '$at dbname=postgres')"), qr/55000: this database is no shard.*without the extension tq/s, 'a database without tq');
is(ask(q{SELECT count(*) FROM tq_shard.map()}), '2', 'what was refused is not there');

# Objects in the caller's schemas
my $hostile = q{CREATE SCHEMA hostile; SET search_path = hostile, pg_catalog, public;
	CREATE FUNCTION hostile.count() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.cardinality(int[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.array_remove(int[], int) RETURNS int[] LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.pg_sleep(float8) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.format(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.bad(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.bad(int, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE FUNCTION hostile.bad(float8, int) RETURNS float8 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
	CREATE OPERATOR hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.bad);
	CREATE OPERATOR hostile.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.bad);
	CREATE OPERATOR hostile.= (LEFTARG = int, RIGHTARG = int, FUNCTION = hostile.bad);
	CREATE OPERATOR hostile.* (LEFTARG = float8, RIGHTARG = int, FUNCTION = hostile.bad);
	};

# ---- buckets without tasks are not looked up ----

# A transaction that was open has a task in a bucket that moves; the rest has none.
my $open = $node->background_psql('s2', on_error_stop => 0);
my $late = $open->query(q{BEGIN; SELECT tq.enqueue('app/late', task_id => tq_internal.slugid_in_bucket(1023))});
my ($out, $error) = ('', '');
my $adding = IPC::Run::start([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($router), '-c', $hostile, '-c', "CALL tq_shard.add_shard('three', '$at dbname=s3')" ], '<', \undef, '>', \$out, '2>', \$error);
$node->poll_query_until('s2', q{SELECT NOT tq_internal.buckets() @> 1023}) or die 'no bucket is taken';
my $moving = refused(q{SELECT tq.enqueue('app/mail', task_id => tq_shard_internal.slugid_in_bucket(1023))});
like($moving, qr/TQ409: .*belongs to another shard/, 'a new group in a bucket that is moved');
like($moving, qr/HINT: .*is being moved.*repeat the call/, 'the error says that the call is to be repeated');
is($node->safe_psql('s3', q{SELECT tq_internal.buckets() IS NULL}), 't', 'the other shard has not got it');
$open->query('COMMIT');
$open->quit;
IPC::Run::finish($adding) or fail("add_shard: $error");
is($error, '', 'a superuser with a hostile search_path adds a shard');
my $lost = $node->safe_psql('s3', 'SELECT tq_internal.buckets()');
my $used = "SELECT COALESCE(range_agg(int4range(b, b + 1)), '{}') * '$lost' FROM (SELECT tq_internal.bucket(task_id) AS b FROM tq_internal.task UNION SELECT tq_internal.bucket(task_group_id) FROM tq_internal.task_group) AS u";
is(ask(q{SELECT string_agg(name || ' ' || old_buckets::text, ' ' ORDER BY name) FROM tq_shard.map()}),
	join(' ', 'one', $node->safe_psql('s1', $used), 'three {} two', $node->safe_psql('s2', $used)), 'only buckets with tasks are looked up at their old shards');
is(ask(q{SELECT old_buckets @> 1023 FROM tq_shard.map() WHERE name = 'two'}), 't', 'among them that of the transaction that was open');
is(ask("SELECT tq.status('$late') ->> 'state'"), 'pending', 'what came last is found');

# ---- dependencies ----

my ($here) = ask(q{SELECT tq.enqueue('app/mail', task_id => tq_shard_internal.slugid_in_bucket(300))});
my $elsewhere = ask(q{SELECT tq.enqueue('app/mail', task_id => tq_shard_internal.slugid_in_bucket(600))});
my $depends = refused("SELECT tq.enqueue('app/mail', task_group_id => '$here', dependencies => '{$elsewhere}')");
like($depends, qr/TQ400: .*depends on tasks that do not exist/, 'a dependency on another shard');
like($depends, qr/HINT: .*Bucket 600 of task "$elsewhere" belongs to another shard.*create it in the task group/, 'its hint says so');
like(refused("SELECT tq.enqueue('app/mail', task_group_id => '$here', dependencies => '{$elsewhere}')", 's1'), qr/HINT:  Bucket 600/, 'on the shard, too');
unlike(refused("SELECT tq.enqueue('app/mail', task_group_id => '$here', dependencies => ARRAY[tq_shard_internal.slugid_in_bucket(301)])"), qr/another shard/, 'a task that does not exist has the hint of that');
unlike(refused("SELECT tq.enqueue('app/mail', dependencies => '{nobody__QAGAAAAAAAAAAA}')", 'direct'), qr/another shard/, 'so has a database that is no shard');

# ---- messages of a subscription that ended ----

$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN; CREATE ROLE outsider LOGIN');
ask(q{SELECT tq.grant_scopes('reader', '{*}'), tq.subscribe('again', 'task-defined')});
ask(q{SELECT tq.enqueue('app/mail') FROM generate_series(1, 20)});
$node->poll_query_until($router, q{SELECT count(*) = 20 FROM tq.fetch('again', 100)}) or die 'not all is published';
ask(q{DELETE FROM tq_shard_internal.message; SET ROLE reader; SELECT count(*) FROM tq.fetch('again', 100)});
ask(q{SELECT tq.unsubscribe('again'), tq.subscribe('again', 'task-defined')});
ask(q{SELECT tq.enqueue('app/mail') FROM generate_series(1, 20)});
$node->poll_query_until($router, q{SELECT count(*) = 20 FROM tq.fetch('again', 100)}) or die 'not all is published';
is(ask(q{SET ROLE reader; SELECT count(*) FROM tq.ack('again', (SELECT max(id) FROM tq_shard_internal.message))}), '1', 'a role acknowledges what it has fetched of an earlier subscription');
is(ask(q{SELECT count(*) FROM tq.fetch('again', 100)}), '20', 'which acknowledges nothing of the present one');
ask(q{SET ROLE reader; SELECT count(*) FROM tq.fetch('again', 100)});
ask(q{SELECT tq.unsubscribe('again')});
ask(q{SELECT tq_shard.refresh()});
is(ask(q{SELECT count(*) FROM tq_shard_internal.message}), '0', 'refresh() deletes what other roles have fetched');

# ---- the number of a shard that was removed ----

ask(q{SELECT tq.subscribe('numbers', 'task-defined')});
$node->safe_psql('s3', q{SELECT tq.enqueue('app/mail') FROM generate_series(1, 5)});
$node->poll_query_until($router, q{SELECT count(*) = 5 FROM tq.fetch('numbers', 100)}) or die 'not all is published';
my $dead = $node->safe_psql('s3', q{SELECT tq.enqueue('app/dead', policy => '{"deadLetter": true}')});
$node->safe_psql('s3', q{SELECT tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id], 'failed-terminal') FROM tq.claim_work('app/dead', 'g', 'w') AS c});
$node->safe_psql('s3', "SELECT tq.delete_task(task_id) FROM tq.task_overview WHERE task_id <> '$dead'");
is(ask(q{SELECT task_id FROM tq.list_dead_letters('app/dead')}), $dead, 'a dead letter');
$node->safe_psql('s3', 'TRUNCATE tq_internal.task, tq_internal.run, tq_internal.run_detail, tq_internal.failure');		# as when it has expired
ask(q{CALL tq_shard.drain_shard('three')});
like(refused(q{CALL tq_shard.remove_shard('three')}), qr/55000: shard "three" has tasks/, 'a shard with dead letters of tasks that have expired is not removed');
is(ask("SELECT tq.redrive('$dead') IS NOT NULL"), 't', 'they are found there');

$node->safe_psql('s3', q{DELETE FROM tq_internal.dead_letter; SELECT tq.cancel_task(task_id), tq.delete_task(task_id) FROM tq.task_overview; DELETE FROM tq_internal.task_group});
ask(q{CALL tq_shard.remove_shard('three')});
is(ask(q{SELECT count(*) FROM tq_shard_internal.message WHERE shard = 2}), '0', 'what was fetched from a shard that was removed is forgotten, because another one gets its number');

# ---- roles ----

my $own = q{SET ROLE outsider; CREATE USER MAPPING FOR outsider SERVER tq_shard OPTIONS (%s)};
like(refused(sprintf $own, q{user 'postgres'}), qr/42501: permission denied for the option "user"/, 'a role does not become another one on the shards');
like(refused(sprintf $own, q{user 'postgres', password 'x'}), qr/42501/, 'nor with a password');
ask(sprintf $own, q{password 'x'});
like(refused(q{SET ROLE outsider; ALTER USER MAPPING FOR outsider SERVER tq_shard OPTIONS (ADD user 'postgres')}), qr/42501/, 'nor later');
like(refused(q{SET session_replication_role = replica; SET ROLE outsider; ALTER USER MAPPING FOR outsider SERVER tq_shard OPTIONS (ADD user 'postgres')}), qr/42501/, 'nor where triggers are off');
like(refused(q{SET ROLE outsider; SELECT tq.enqueue('app/mail')}), qr/TQ403/, 'its own password, if it wants');
ask(q{DROP USER MAPPING FOR outsider SERVER tq_shard; CREATE USER MAPPING FOR outsider SERVER tq_shard OPTIONS (user 'reader')});
is(ask(q{SET ROLE outsider; SELECT length(tq.enqueue('app/mail')::text)}), '22', 'the owner can give a role another name there');
is(ask(q{SELECT string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.proname) FROM pg_proc p WHERE p.pronamespace IN ('tq_shard'::regnamespace, 'tq_shard_internal'::regnamespace)
	AND has_function_privilege('outsider', p.oid, 'EXECUTE') AND (p.prokind = 'p' OR pg_get_functiondef(p.oid) ~ 'set_buckets|tq_internal[.](?!(claim_lines|resolve_lines|has_task|has_task_group)[(])|ALTER SERVER|tq_shard_(un)?lock_map')}), '', 'no role but the owner changes the map, or looks into tables of a shard');
is(ask(q{SELECT string_agg(p.proname, ', ') FROM pg_proc p WHERE p.pronamespace IN ('tq'::regnamespace, 'tq_shard'::regnamespace, 'tq_shard_internal'::regnamespace) AND p.prosecdef}), '', 'no function has the rights of the owner');

# ---- a shard that does not answer ----

$node->safe_psql('postgres', q{ALTER DATABASE s2 ALLOW_CONNECTIONS false; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 's2' AND backend_type = 'client backend'});
foreach my $call (q{tq.status(tq_shard_internal.slugid_in_bucket(1000))}, q{(tq.task_queue_counts('app/mail') -> 'pendingTasks')::bigint}, q{tq.enqueue('app/mail', task_id => tq_shard_internal.slugid_in_bucket(1000))}, q{count(*) FROM tq.task_overview})
{
	like(refused("SELECT $call"), qr/ERROR:  08001: .*\[s2\] .*not currently accepting connections.*HINT:  The shard has done nothing/s, "08001: $call");
}
is(ask(q{SELECT name, detail ~ 'not currently accepting' FROM tq_shard.status() WHERE NOT reachable}), 'two|t', 'status() says why');
$node->safe_psql('postgres', 'ALTER DATABASE s2 ALLOW_CONNECTIONS true');
like(refused(q{SELECT tq.status('nobody__QAGAAAAAAAAAAA')}), qr/TQ404/, 'errors of the shard stay what they are');
like(refused(q{SELECT tq_shard_internal.has_task(NULL, tq.slugid())}), qr/XX000: .*Hash function returned NULL/, 'so do those that are internal');

# Another server: its database gets another address, and its connections are lost.
my $far = new_node('far', 'restart_after_crash = on');
my $far_at = 'host=' . $far->host . ' port=' . $far->port;
$far->safe_psql('postgres', $_) foreach ('CREATE DATABASE f1', 'CREATE DATABASE f2', 'CREATE ROLE reader LOGIN');
$far->safe_psql($_, 'CREATE EXTENSION tq') foreach ('f1', 'f2');
ask("CALL tq_shard.add_shard('far', '$far_at dbname=f1')");
my ($bucket) = ask(q{SELECT lower(buckets) FROM tq_shard.map() WHERE name = 'far'});
my $far_task = ask("SELECT tq.enqueue('app/far', task_id => tq_shard_internal.slugid_in_bucket($bucket))");
like(refused("CALL tq_shard.set_connection('far', '$far_at dbname=f2')"), qr/55000: this database is not shard "far"/, 'a connection to a database with other buckets');
like(refused("CALL tq_shard.set_connection('far', '$at dbname=s1')"), qr/42710: this database is shard "one"/, 'to another shard');
like(refused("CALL tq_shard.set_connection('far', '$far_at dbname=f3')"), qr/08001: .*\[f3\].*"f3" does not exist/, 'to a database that is not there');
is(ask("SELECT tq.status('$far_task') ->> 'state'"), 'pending', 'they have changed nothing');
my $version = ask('SELECT version FROM tq_shard.map() LIMIT 1');
$other = $node->background_psql($router, on_error_stop => 0);
$other->query("SELECT tq.status('$far_task')");
$far->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'f1'; ALTER DATABASE f1 RENAME TO moved});
like(refused("SELECT tq.status('$far_task')"), qr/08001/, 'a database that has moved');
ask("CALL tq_shard.set_connection('far', '$far_at dbname=moved')");
is(ask("SELECT tq.status('$far_task') ->> 'state'"), 'pending', 'is found by its new connection');
like($other->query("SELECT tq.status('$far_task') ->> 'state'"), qr/pending/, 'by sessions that had the old one, too');
$other->quit;
cmp_ok(ask('SELECT version FROM tq_shard.map() LIMIT 1'), '>', $version, 'the map has another version');
like(refused(qq{SELECT tq.status('$far_task');
\\! kill -9 `psql -XAtq -d "$far_at dbname=postgres" -c "SELECT pid FROM pg_stat_activity WHERE datname = 'moved' AND query ~ 'tq.status'"`
SELECT tq.status('$far_task');}), qr/ERROR:  08006: .*HINT:  The shard may have done/s, 'a connection that is lost is 08006');

# ---- a shard whose addition was interrupted ----

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach ('router2', 't1', 't2', 't3');
$node->safe_psql($_, 'CREATE EXTENSION tq') foreach ('t1', 't2', 't3');
$node->safe_psql('router2', $_) foreach ('CREATE EXTENSION tq_shard CASCADE', "CALL tq_shard.add_shard('t1', '$at dbname=t1')");
my $holder = $node->background_psql('t1', on_error_stop => 0);
$holder->query(q{BEGIN; SELECT tq.enqueue('app/mail')});
like(refused("SET statement_timeout = '2 s'; CALL tq_shard.add_shard('t2', '$at dbname=t2')", 'router2'), qr/57014/, 'add_shard() is interrupted while it waits');
like(refused("CALL tq_shard.add_shard('t3', '$at dbname=t3')", 'router2'), qr/55000: the change of shard "t2" was interrupted\nHINT:  Call tq_shard.add_shard\('t2'/, 'no other change begins before');
$holder->query('COMMIT');
$holder->quit;
$node->safe_psql('router2', q{CALL tq_shard.drain_shard('t2')});
is($node->safe_psql('router2', q{SELECT string_agg(concat_ws(' ', name, state, buckets), ', ') FROM tq_shard.map()}), 't1 active {[0,1024)}, t2 draining {}', 'drain_shard() takes it back');
is($node->safe_psql($_->[0], q{SELECT tq_internal.buckets()}), $_->[1], "$_->[0] knows it") foreach ([ 't1', '{[0,1024)}' ], [ 't2', '{}' ]);
$node->safe_psql('router2', $_) foreach (q{CALL tq_shard.remove_shard('t2')}, "CALL tq_shard.add_shard('t3', '$at dbname=t3')");
is($node->safe_psql('router2', q{SELECT string_agg(concat_ws(' ', name, state, buckets), ', ') FROM tq_shard.map()}), 't1 active {[0,512)}, t3 active {[512,1024)}', 'and another one is added');

done_testing();
