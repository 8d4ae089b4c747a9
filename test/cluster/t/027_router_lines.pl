# Claims, runs and outcomes between a router and its shards are lines of text (doc/spec/policy.md
# 16.5.3 to 16.5.6): every payload arrives as it is stored, as bytes and as text, and no
# answer of a shard that is not so becomes a value, or ends the server.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Tq;

my $node = new_node('lines', 'max_connections = 50', "tq.max_payload = '10MB'");

plan skip_all => 'there is no plproxy' unless $node->safe_psql('postgres', q{SELECT 1 FROM pg_available_extensions WHERE name = 'plproxy'});

my $at = 'host=' . $node->host . ' port=' . $node->port;
my $seed = $ENV{TQ_SEED} // int(rand(1e6));

srand($seed);
note("seed $seed");
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING " . ($_ eq 'latin' ? 'LATIN1' : 'UTF8')) foreach ('router', 'to_latin', 's1', 'latin');
$node->safe_psql($_, 'CREATE EXTENSION tq') foreach ('s1', 'latin');
my %shard_of = (router => 's1', to_latin => 'latin');
$node->safe_psql($_, "CREATE EXTENSION tq_shard CASCADE; CALL tq_shard.add_shard('one', '$at dbname=$shard_of{$_}')") foreach (sort keys %shard_of);

sub ask { return $node->safe_psql('router', $_[0]); }

sub refused
{
	my ($code, $out, $error) = $node->psql('router', "\\set VERBOSITY verbose\n$_[0]");

	return $error;
}

# ---- payloads ----

sub one_of { return $_[ int(rand(@_)) ]; }

sub text
{
	my @parts = ('a', 'somebody@example.com', '\t', '\n', '\"', '\\\\', '\u0001', "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", ' ', 'x' x int(rand(200)), '\ud83d\ude00');

	return '"' . join('', map { one_of(@parts) } 1 .. int(rand(5))) . '"';
}

sub number
{
	return one_of('0', '-0', '1', '-1', '0.0', '1.50', '12345', '10000', '99999999', '-0.00001', '1e100', '1e-100', '1E+20', '3.14159265358979323846264338327950288', int(rand(1e9)), rand());
}

sub value
{
	my ($depth) = @_;
	my $kind = int(rand($depth > 4 ? 4 : 6));

	return text() if $kind == 0;
	return number() if $kind == 1;
	return one_of('true', 'false', 'null') if $kind == 2;
	return one_of('[]', '{}') if $kind == 3;
	return '[' . join(',', map { value($depth + 1) } 1 .. int(rand(7))) . ']' if $kind == 4;
	return '{' . join(',', map { text() . ':' . value($depth + 1) } 1 .. int(rand(7))) . '}';
}

# One array and one object have more elements than a stride of offsets, one is deep.
my @payloads = (
	(map { value(0) } 1 .. 400),
	'[' . join(',', map { number() } 1 .. 500) . ']',
	'{' . join(',', map { qq{"key$_":} . text() } 1 .. 500) . '}',
	'[' x 500 . '7' . ']' x 500, '""', '[[]]', '{"":{}}');

# The server makes the payloads of these itself.
my $large = q{SELECT to_jsonb(repeat('a long text ', 200000)) UNION ALL SELECT jsonb_agg(n) FROM generate_series(1, 200000) AS n UNION ALL SELECT to_jsonb('x'::text)};

sub literal
{
	my ($json) = @_;

	$json =~ s/'/''/g;
	return "'$json'";
}

my $file = PostgreSQL::Test::Utils::tempdir() . '/payloads.sql';
append_to_file($file, "CREATE TABLE given (n serial, payload jsonb);\n" . join('', map { 'INSERT INTO given (payload) VALUES (' . literal($_) . ");\n" } @payloads) . "INSERT INTO given (payload) $large;\n");

# Returns how many payloads of a shard a router has claimed, and how many are not the same there.
sub differences
{
	my ($shard, $router) = @_;

	$node->safe_psql($shard, q{SELECT tq.enqueue_tasks('app/w', array_agg(payload ORDER BY n)) FROM given});
	return $node->safe_psql($router, <<'SQL');
CREATE TEMP TABLE claimed AS SELECT payload FROM tq.claim_work('app/w', 'g', 'w', 1000);
SELECT count(*), count(*) FILTER (WHERE c.payload::text IS DISTINCT FROM g.payload::text), count(*) FILTER (WHERE c.payload IS DISTINCT FROM g.payload)
FROM (SELECT payload, row_number() OVER () AS n FROM claimed) AS c FULL JOIN (SELECT payload, row_number() OVER (ORDER BY n) AS n FROM given) AS g USING (n);
SQL
}

my $all = @payloads + 3;

$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($_), '-f', $file ], "payloads in $_") foreach ('router', 's1');
is(differences('s1', 'router'), "$all|0|0", 'payloads as bytes arrive as they are');

# A shard of another encoding sends text.
$node->safe_psql($_, <<'SQL') foreach ('to_latin', 'latin');
CREATE TABLE given (n serial, payload jsonb);
INSERT INTO given (payload) VALUES (jsonb_build_object('name', 'M' || convert_from('\xc3bc', 'UTF8') || 'ller', 'tab', E'\t', 'lines', E'\n\n', 'n', 1.50)), ('[]'), ('"x"'), ('{"x": [1, null, true]}');
SQL
is(differences('latin', 'to_latin'), '4|0|0', 'payloads as text arrive as they are');
$node->safe_psql('latin', q{SELECT tq.enqueue_tasks('app/w', ARRAY['{"a": 1}', '{"a": 1}']::jsonb[])});
like($node->safe_psql('latin', q{SET client_encoding = 'UTF8'; SELECT tq_internal.claim_lines('app/w', 'g', 'w')}), qr/\t\{"a": 1\}\t\t\t$/, 'in lines as text');
like($node->safe_psql('latin', q{SET client_encoding = 'LATIN1'; SELECT tq_internal.claim_lines('app/w', 'g', 'w')}), qr/\tx[0-9a-f]+\t\t\t$/, 'to a client of its encoding, as bytes');

# ---- several queues, credentials, outcomes ----

$node->safe_psql('s1', q{SELECT tq.enqueue('app/' || left('ab', 1 + n % 2), to_jsonb(n)) FROM generate_series(1, 6) AS n});
is(ask(q{SELECT task_queue_id, array_agg(payload), bool_and(credentials IS NULL), min(worker_group), min(worker_id), bool_and(taken_until - now() BETWEEN '19 min' AND '21 min')
	FROM tq.claim_work('{app/*,other/a}'::text[], 'g', 'w', 10) GROUP BY 1 ORDER BY 1}), "app/a|{2,4,6}|t|g|w|t\napp/ab|{1,3,5}|t|g|w|t", 'claims of several queues');
$node->safe_psql('s1', q{ALTER SYSTEM SET tq.credentials = on});
$node->safe_psql('s1', q{SELECT pg_reload_conf()});
ok($node->poll_query_until('s1', q{SELECT current_setting('tq.credentials') = 'on'}), 'credentials');
$node->safe_psql('s1', q{SELECT tq.enqueue('app/c', to_jsonb(n)) FROM generate_series(1, 5) AS n});
is(ask(q{WITH c AS MATERIALIZED (SELECT * FROM tq.claim_work('app/c', 'g', 'w', 5))
	SELECT string_agg(r.outcome, ' ') FROM (SELECT array_agg(task_id) AS ids, array_agg(run_id) AS runs, jsonb_agg(credentials) AS credentials FROM c) AS c, tq.resolve(c.ids, c.runs, 'completed', c.credentials) AS r}),
	'resolved resolved resolved resolved resolved', 'credentials of claims are those of their reports');
foreach my $claim ("claim_work('app/e', 'g', 'w'", "claim_work('{app/e,other/e}'::text[], 'g', 'w'", "resolve_and_claim('[]', 'app/e', 'g', 'w'")
{
	$node->safe_psql('s1', q{SELECT tq.enqueue('app/e', '{"a": 1}')});
	is(ask("SELECT c.task = tq.task(c.task_id), c.status = tq.status(c.task_id), c.taken_until - now() BETWEEN '179 min' AND '181 min'
		FROM tq.$claim, claim_for => '3 hours', definition => true) AS c"), 't|t|t', "the definition, and how long: $claim");
	is(ask("SELECT count(*) FROM tq.$claim, definition => true)"), 0, "no claim: $claim");
}
is(ask(q{WITH t AS MATERIALIZED (SELECT tq.enqueue('app/d') AS id), c AS MATERIALIZED (SELECT c.* FROM t, tq.claim_work('app/d', 'g', 'w') AS c WHERE t.id IS NOT NULL)
	SELECT string_agg(r.outcome, ' ') FROM c, tq.resolve(ARRAY[c.task_id, tq.slugid(), c.task_id], ARRAY[0, 0, 0]) AS r}), 'resolved not-found repeated', 'outcomes in the order of the runs');
is(ask(q{SELECT string_agg(outcome, ' ') FROM tq.resolve(array_fill(tq.slugid(), ARRAY[2, 2]), '{{0,0},{0,0}}')}), $node->safe_psql('s1', q{SELECT string_agg(outcome, ' ') FROM tq.resolve(array_fill(tq.slugid(), ARRAY[2, 2]), '{{0,0},{0,0}}')}),
	'arrays of two dimensions: as on the shard');
like(refused(q{SELECT tq.resolve(ARRAY[tq.slugid(), NULL], '{0,0}')}), qr/TQ400/, 'NULL is the shard\'s to refuse');
like(refused(q{SELECT tq.resolve(ARRAY[tq.slugid()], '{0,0}')}), qr/TQ400/, 'so are arrays of different lengths');

# ---- answers that are not so ----

my $id = $node->safe_psql('s1', 'SELECT tq.slugid()');

sub claims { return refused("SELECT * FROM tq_shard_internal.claims(E'$_[0]', 1, 'g', 'w')"); }

foreach my $bad ('x', "$id\\t0\\n", "$id\\t0\\t0\\tx\\t\\t\\t\\n", "$id\\t0\\t0\\tx00\\t\\t\\t\\n", "$id\\t0\\t0\\tx00000000\\t\\t\\t\\n", "$id\\tx\\t0\\t1\\t\\t\\t\\n", "$id\\t0\\tx\\t1\\t\\t\\t\\n",
	"one\\t0\\t0\\t1\\t\\t\\t\\n", "$id\\t0\\t0\\t1\\t", "$id\\t0\\t0\\t1\\n", "$id\\t0\\t0\\t1\\t\\t\\t\\n$id\\n", "$id\\t0\\t0\\tx0000004000000000\\t\\t\\t\\n")
{
	like(claims($bad), qr/22P03: a shard has answered with invalid claims/, "claims: $bad");
}
like(claims("$id\\t0\\t0\\txx\\t\\t\\t\\n"), qr/22023: invalid hexadecimal/, 'claims: no hexadecimal');
like(claims("$id\\t0\\t0\\t{\\t\\t\\t\\n"), qr/22P02: invalid input syntax for type json/, 'claims: no JSON');
is(ask("SELECT task_id, run_id, worker_group, worker_id, taken_until AT TIME ZONE 'UTC', payload, credentials FROM tq_shard_internal.claims(E'$id\\t3\\t1000000\\t1\\t\\t\\t\\n', 1, 'g', 'w')"),
	"$id|3|g|w|2000-01-01 00:00:01|1|", 'claims: a valid one');
like(refused("SELECT * FROM tq_shard_internal.resolutions(ARRAY['$id', '$id']::tq.slugid[], '{0,1}', E'$_')"), qr/22P03: a shard has answered with invalid outcomes/, "outcomes: $_")
  foreach ('', 'resolved', 'resolved\\n', 'resolved\\nresolved', 'resolved\\nresolved\\nresolved\\n', 'resolved\\t\\nresolved\\n');
is(ask("SELECT run_id, outcome FROM tq_shard_internal.resolutions(ARRAY['$id', '$id']::tq.slugid[], '{0,1}', E'resolved\\nretried\\n')"), "0|resolved\n1|retried", 'outcomes: valid ones');

# The last digit of a number, which is between 0 and 10000, and a string
foreach my $of ('12345', '"xy"')
{
	my ($line) = $node->safe_psql('s1', "SET tq.credentials = off; BEGIN; SELECT tq.enqueue('app/v', '$of') IS NULL; SELECT tq_internal.claim_lines('app/v', 'g', 'w'); ROLLBACK") =~ /^(.{22}\t.*)/m;

	$line =~ s/\t$/\\t\\n/;
	$line =~ s/\t/\\t/g;
	is(claims($line), '', "claims: the bytes of $of");
	$line =~ s/....((?:\\t){3}\\n)$/ffff$1/;
	like(claims($line), qr/22P03/, "claims: those that cannot be of $of");
	next if $of =~ /"/;
	$line =~ s/....((?:\\t){3}\\n)$/0000$1/;
	like(claims($line), qr/22P03/, 'claims: a number that ends in a zero of its base');
}

# A number without digits is zero: none that has a sign or a weight
{
	my ($line) = $node->safe_psql('s1', "SET tq.credentials = off; BEGIN; SELECT tq.enqueue('app/v', '0') IS NULL; SELECT tq_internal.claim_lines('app/v', 'g', 'w'); ROLLBACK") =~ /^(.{22}\t.*)/m;

	$line =~ s/\t$/\\t\\n/;
	$line =~ s/\t/\\t/g;
	is(claims($line), '', 'claims: the bytes of 0');
	foreach my $header ('00a0', '0580', '4080')
	{
		my $other = $line =~ s/....((?:\\t){3}\\n)$/$header$1/r;

		isnt($other, $line, "another header, $header");
		like(claims($other), qr/22P03/, "claims: no digits, but the header $header");
	}
}

# A shard that answers so is not passed over as one that does not answer.
$node->safe_psql('s1', q{ALTER FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool) RENAME TO claim_lines_of_tq;
	CREATE FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool) RETURNS SETOF text LANGUAGE sql AS $$ SELECT E'another\\tversion\\n' $$});
like(refused(q{SELECT * FROM tq.claim_work('app/w', 'g', 'w')}), qr/22P03: a shard has answered with invalid claims/, 'claim_work(): the error of the answer');
$node->safe_psql('s1', q{DROP FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool); ALTER FUNCTION tq_internal.claim_lines_of_tq(text, text, text, int, interval, interval, bool) RENAME TO claim_lines});

# Bytes of payloads are changed at random.  What is still a jsonb value can be read, compared
# and hashed without another error; all else is refused.
$node->safe_psql('s1', q{SELECT tq.enqueue_tasks('app/m', array_agg(payload ORDER BY n)) FROM given WHERE length(payload::text) < 2000});
my $lines = $node->safe_psql('s1', q{SELECT string_agg(tq, '') FROM (SELECT tq_internal.claim_lines('app/m', 'g', 'w', 400)) AS t (tq)});
my $mutate = <<'SQL';
SELECT setseed(SEED / 1e6::float8) \g /dev/null
CREATE FUNCTION pg_temp.mutate(lines text[], times int, OUT taken int, OUT refused int, OUT other text[]) LANGUAGE plpgsql AS $$
DECLARE
	f text[];
	digits text;
	place int;
BEGIN
	taken := 0;
	refused := 0;
	FOR i IN 1 .. times LOOP
		f := string_to_array(lines[1 + (random() * (cardinality(lines) - 1))::int], E'\t');
		digits := substr(f[4], 2);
		FOR j IN 1 .. 1 + (random() * 2)::int LOOP
			-- most often in the header and the first entries
			place := 1 + (random() * random() * (length(digits) - 1))::int;
			digits := overlay(digits PLACING substr('0123456789abcdef', 1 + (random() * 15)::int, 1) FROM place FOR 1);
		END LOOP;
		IF random() < 0.1 THEN
			digits := left(digits, 2 * (random() * length(digits) / 2)::int);
		END IF;
		BEGIN
			PERFORM c.payload::text, c.payload = c.payload, c.payload @> '{"a": [1]}', jsonb_hash(c.payload), c.payload || '[1]', jsonb_pretty(c.payload), c.payload #> '{a,0}', c.payload -> 1,
				jsonb_path_query_array(c.payload, '$.**'), jsonb_strip_nulls(c.payload), jsonb_send(c.payload), convert_from(convert_to(c.payload::text, 'UTF8'), 'UTF8')
			FROM tq_shard_internal.claims(concat_ws(E'\t', f[1], f[2], f[3], 'x' || digits, '', '', '') || E'\n', 1, 'g', 'w') AS c;
			taken := taken + 1;
		EXCEPTION
			WHEN invalid_binary_representation THEN
				refused := refused + 1;
			-- a scalar cannot be merged, nor a number be too long for the result
			WHEN invalid_parameter_value OR numeric_value_out_of_range THEN
				taken := taken + 1;
			WHEN OTHERS THEN
				other := other || (SQLSTATE || ' ' || SQLERRM);
		END;
	END LOOP;
END $$;
SELECT taken > 0, refused > 0, other[1:5] FROM pg_temp.mutate(string_to_array('LINES', E'\n'), 20000);
SQL
$mutate =~ s/SEED/$seed/;
$mutate =~ s/LINES/$lines/;
my $script = PostgreSQL::Test::Utils::tempdir() . '/mutate.sql';
append_to_file($script, $mutate);
my ($out, $error) = ('', '');
IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('router'), '-f', $script ], '>', \$out, '2>', \$error);
is($error, '', 'no error of its own');
is($out, "t|t|\n", 'changed bytes are a value, or refused');
unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC/, 'no server process has crashed');

$node->stop;
done_testing();
