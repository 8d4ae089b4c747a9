# The operators of tq.slugid are in pg_catalog: pg_dump, restore, pg_upgrade and
# DROP EXTENSION leave nothing out and nothing behind.  And a stable slugid is
# the same in every encoding.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_older('node', "shared_preload_libraries = 'tq'");
my $dir = PostgreSQL::Test::Utils::tempdir();
my $operators = 'SELECT count(*) FROM pg_operator WHERE oid >= 16384 OR oprcode::oid >= 16384';
my $casts = 'SELECT count(*) FROM pg_cast WHERE oid >= 16384';

# ---- objects of a user's that need the operators and casts ----

my $user = q{
	CREATE TABLE job (id int PRIMARY KEY, task_id tq.slugid UNIQUE, external uuid, name text,
		CHECK (task_id <> 'AAAAAAAAQAaAAAAAAAAAAg'), CHECK (task_id = external));
	CREATE INDEX ON job USING hash (task_id);
	CREATE INDEX ON job (tq.stable_slugid(name)) WHERE task_id > 'AAAAAAAAQAaAAAAAAAAAAg';
	CREATE VIEW running AS SELECT j.name, o.state FROM job j JOIN tq.task_details o USING (task_id) WHERE task_id <> ALL ('{AAAAAAAAQAaAAAAAAAAAAg}');
	CREATE VIEW by_name AS SELECT task_id FROM tq.task_details o WHERE EXISTS (SELECT FROM job j WHERE o.task_id = tq.stable_slugid(j.name) ORDER BY o.task_id);
	INSERT INTO job SELECT n, x, x, 'job ' || n FROM generate_series(1, 5) AS n, tq.enqueue('p/w', task_id => tq.stable_slugid('job ' || n)) AS x;
};
my $contents = q{
	SELECT 'job', j::text FROM job j UNION ALL SELECT 'running', r::text FROM running r UNION ALL SELECT 'by_name', b::text FROM by_name b
	UNION ALL SELECT 'search', id::text FROM job WHERE task_id = 'AAAAAAAAQAaAAAAAAAAAAg' OR task_id = tq.stable_slugid('job 3')
	ORDER BY 1, 2};
my $before = $node->safe_psql('postgres', "$operators; $casts");
$node->safe_psql('postgres', 'CREATE DATABASE old');
$node->safe_psql('old', "CREATE EXTENSION tq; $user");
my $expect = $node->safe_psql('old', $contents);
my $counts = $node->safe_psql('old', "$operators; $casts");
like($expect, qr/^search\|3$/m, 'the objects work');
is($counts, "8\n4", 'eight operators, four casts');

# ---- pg_dump and restore ----

my $file = "$dir/old.sql";

$node->command_ok([ 'pg_dump', '-f', $file, '-d', $node->connstr('old') ], 'pg_dump');
my $dump = slurp_file($file);
unlike($dump, qr/(CREATE|ALTER|COMMENT ON) (OPERATOR|CAST|TYPE|FUNCTION)/, 'a dump has no object of the extension');
like($dump, qr/\(task_id OPERATOR\(pg_catalog\.\S+\)|task_id <> '/, 'a dump names the operators');
$node->safe_psql('postgres', 'CREATE DATABASE new');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $file, '-d', $node->connstr('new') ], 'restored');
is($node->safe_psql('new', $contents), $expect, 'the same rows, found by the same searches');
$node->command_ok([ 'pg_dump', '--schema-only', '-f', "$dir/new.sql", '-d', $node->connstr('new') ], 'pg_dump of the copy');
$node->command_ok([ 'pg_dump', '--schema-only', '-f', "$dir/old2.sql", '-d', $node->connstr('old') ], 'pg_dump of the original');
is(slurp_file("$dir/new.sql") =~ s/^\\(un)?restrict .*$//mgr, slurp_file("$dir/old2.sql") =~ s/^\\(un)?restrict .*$//mgr, 'the same schema');

# ---- DROP EXTENSION ----

my ($rc, $out, $err) = $node->psql('new', 'DROP EXTENSION tq');
like($err, qr/cannot drop extension tq because other objects depend on it/, 'a use holds the extension');
$node->safe_psql('new', 'DROP TABLE job CASCADE; DROP EXTENSION tq');
is($node->safe_psql('new', "$operators; $casts"), $before, 'nothing is left in pg_catalog');
$node->safe_psql('new', "CREATE EXTENSION tq; $user");
is($node->safe_psql('new', $contents), $expect, 'it comes again');
$node->safe_psql('new', 'DROP EXTENSION tq CASCADE');
is($node->safe_psql('new', "$operators; $casts"), $before, 'nothing is left by CASCADE');

# ---- a role that is no superuser ----

($rc, $out, $err) = $node->psql('new', 'CREATE ROLE maker; GRANT CREATE ON DATABASE new TO maker; SET ROLE maker; CREATE EXTENSION tq');
like($err, qr/permission denied to create extension "tq"/, 'only a superuser makes the extension');

# ---- encodings ----

foreach my $encoding (qw(UTF8 LATIN1 SQL_ASCII EUC_JP))
{
	my $db = lc $encoding;

	$node->safe_psql('postgres', "CREATE DATABASE $db ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	$node->safe_psql($db, 'CREATE EXTENSION tq');
	is($node->safe_psql($db, q{SELECT tq.stable_slugid('job 1'), tq.stable_slugid('')}),
		'6JKmDA5rRlq6qmAG-4E5Lw|w_V3G9vcSMulpbFpxduXeQ', "$encoding: ASCII");
	next if $encoding eq 'EUC_JP';
	is($node->safe_psql($db, $encoding eq 'SQL_ASCII' ? q{SELECT tq.stable_slugid(E'Stra\xc3\x9fe')} : q{SET client_encoding = UTF8; SELECT tq.stable_slugid(U&'Stra\00dfe')}),
		'Qe0wS5uuRpW4cH_pAyP3QQ', "$encoding: beyond ASCII");
}
($rc, $out, $err) = $node->psql('sql_ascii', q{SELECT tq.stable_slugid(E'Stra\xdfe')});
like($err, qr/invalid byte sequence for encoding "UTF8"/, 'SQL_ASCII: bytes of another encoding are refused');

# ---- pg_upgrade ----

$node->safe_psql('postgres', "DROP DATABASE $_") foreach qw(new sql_ascii latin1 euc_jp utf8);
my $upgraded = pg_upgrade($node, "shared_preload_libraries = 'tq'");
is($upgraded->safe_psql('old', $contents), $expect, 'upgraded: the same rows, found by the same searches');
is($upgraded->safe_psql('old', "$operators; $casts"), $counts, 'upgraded: the same operators and casts');
is($upgraded->safe_psql('old', q{SELECT count(*), min(oprnamespace::regnamespace::text), bool_and(d.deptype = 'e')
	FROM pg_operator o LEFT JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.refclassid = 'pg_extension'::regclass
	WHERE oprleft = 'tq.slugid'::regtype}), '8|pg_catalog|t', 'upgraded: they are members of the extension');
is($upgraded->safe_psql('old', 'DROP TABLE job CASCADE; DROP EXTENSION tq' . "; $operators; $casts"), $before, 'upgraded: they go with it');

done_testing();
