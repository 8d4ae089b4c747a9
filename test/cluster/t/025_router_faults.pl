# What a router refuses: each call of sql/bad_input.sql gets the error of the shard; calls
# of tq_shard that fail leave nothing behind; roles get no rights that they have not.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

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
my ($before) = $input =~ /\A(.*?)^-- Functions with arguments that are not in the list/ms or die 'sql/bad_input.sql has no list of functions';

sub run_input
{
	my ($db, $text) = @_;
	my ($out, $error) = ('', '');

	$node->safe_psql($db, 'CREATE TABLE asked (n serial, statement text, code text, message text, detail text, hint text)');
	local $ENV{PG_ABS_SRCDIR} = $dir;
	IPC::Run::run([ 'psql', '-Xq', '-d', $node->connstr($db) ], '<', \$text, '>', \$out, '2>', \$error);
	return $error;
}

run_input('direct', $input);
is(run_input('s1', $before) =~ s/^(?!.*ERROR).*\n//gmr, '', 'the tasks and queues of bad_input.sql');
cmp_ok($node->safe_psql('direct', q{SELECT count(*) FROM asked WHERE code <> 'ok'}), '>', 1000, 'its statements');

# The statements that fail in the database with tq, through the router.
my $statements = $node->safe_psql('direct', q{COPY (SELECT * FROM asked WHERE code <> 'ok' AND statement !~ '^SELECT . FROM tq_internal' ORDER BY n) TO STDOUT});
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
	FROM asked JOIN answered r USING (n) WHERE r.code = '0A000'}), 'assume buckets_settled message messages top', 'except those that do not run through it');

foreach my $wait ('NULL', q{'-1 second'}, q{'61 seconds'})
{
	ask(q{SELECT tq.enqueue('app/unwaited')});
	like(refused("SELECT tq.claim_work('app/unwaited', 'g', 'w', 1, $wait)"), qr/TQ400: .*wait/, "claim_work() with a wait of $wait");
	like(refused("SELECT tq.claim_work('{app/unwaited}'::text[], 'g', 'w', 1, $wait)"), qr/TQ400: .*wait/, 'of several queues');
}
is(ask(q{SELECT tq.pending_tasks('app/unwaited')}), '3', 'claims nothing');

# Procedures
foreach my $call (q{wait_for_task('one_____QAGAAAAAAAAAAA', NULL)}, q{wait_for_task('one_____QAGAAAAAAAAAAA', '-1 second')}, q{wait_for_task('one_____QAGAAAAAAAAAAA', '2 hours')},
	q{wait_for_task_group('group___QAGAAAAAAAAAAA', NULL)}, q{wait_for_task_group('group___QAGAAAAAAAAAAA', '1 month')}, q{wait_for_task(NULL, '0')}, q{wait_for_task_group(NULL, '0')},
	q{wait_for_task('nobody__QAGAAAAAAAAAAA', '0')})
{
	my ($direct, $routed) = map { join "\n", map { s/tq\.\w+\(\d+\): \[\w+\] REMOTE ERROR: |Remote (?:detail|hint): //gr } refused("CALL tq.$call", $_) =~ /((?:ERROR|DETAIL|HINT): .*)/g } ('direct', $router);
	is($routed, $direct, "CALL $call");
}

done_testing();
