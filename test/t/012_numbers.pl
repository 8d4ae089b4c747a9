# Numbers from blocks that the sessions of a database share: in the order in which
# they are taken, and none twice, whatever becomes of the server, the sequence, the
# extension and the database.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my @conf = ('tq.maintenance = off', 'autovacuum = off', 'log_statement = none');
my $node = new_node('numbers', @conf, 'restart_after_crash = on');
my $db = 'postgres';

# number() creates a task, and returns its number.
my $setup = q{
	CREATE EXTENSION tq;
	CREATE OR REPLACE FUNCTION number() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE new CONSTANT tq.slugid = tq.enqueue('n/w');
	BEGIN RETURN (SELECT id FROM tq_internal.task WHERE task_id = new); END $$};

sub number { my ($session) = @_; return $session->query_safe('SELECT number()'); }
sub numbers { my ($session, $n) = @_; return map { number($session) } 1 .. $n; }

# Publishes what is committed.
sub publish
{
	my $session = $node->background_psql($db);

	$session->query_safe('SET tq.maintenance = on; SELECT count(*) FROM tq.upkeep()');
	$session->quit;
	return;
}

# All numbers: of tasks and of rows of messages, but those that the publisher derives.
my $all = q{(SELECT id FROM tq_internal.task UNION ALL SELECT seq FROM tq_internal.message WHERE xid <> '2' AND records <> '') AS x (n)};
my $twice = "SELECT count(*) - count(DISTINCT n) FROM $all";
my $highest = "SELECT max(n) FROM $all";

$node->safe_psql($db, $setup);
my ($a, $b) = map { $node->background_psql($db) } 1 .. 2;

# ---- sessions ----

# The activation takes one, and messages that are written take some.
is_deeply([ numbers($a, 3) ], [ 2, 4, 5 ], 'a session takes the numbers of a block: for tasks, and for messages');
is(number($b), 66, 'the first number of another one begins a block');
is_deeply([ map { number($_) } ($a, $b, $b, $a) ], [ 67, 68, 69, 70 ], 'which both take from');
$a->query_safe('BEGIN');
is_deeply([ numbers($a, 3) ], [ 71, 72, 74 ], 'a transaction takes some, and for the messages of all its tasks but one');
$a->query_safe('ROLLBACK');
is_deeply([ number($b), numbers($a, 1) ], [ 76, 77 ], 'they do not come back');
is_deeply([ (numbers($a, 60))[ 49, 50, 51 ] ], [ 127, 128, 129 ], 'a block follows the other');

# ---- the sequence is locked ----

$a->query_safe('BEGIN; ALTER SEQUENCE tq_internal.id_seq CACHE 1');
my $next = number($a);
is(number($b), $next + 1, 'the other session takes what is there');
is((numbers($a, 40))[-1], $next + 80, 'this one draws a block under its own lock');
$a->query_safe('COMMIT');
$next = number($a);
is(number($b), $next + 1, 'for both');

# ---- the sequence is set ----

$node->safe_psql($db, q{SELECT setval('tq_internal.id_seq', 100000)});
cmp_ok(number($a), '<', $next + 64, 'a session goes on in its block');
is($node->safe_psql($db, 'SELECT number()'), 100065, 'another one begins behind what was set');
is(number($a), 100066, 'and takes the others with it');
publish();
$node->safe_psql($db, q{SELECT setval('tq_internal.id_seq', 5000)});
is($node->safe_psql($db, 'SELECT number()'), 5065, 'if it was set back as well');
is((numbers($a, 40))[-1], 5105, 'nothing waits for what is below');
publish();
is($node->safe_psql($db, 'SELECT sum(messages) = (SELECT 2 * count(*) FROM tq_internal.task) FROM tq_internal.tick'), 't', 'all of it is published');
$node->safe_psql($db, q{ALTER SEQUENCE tq_internal.id_seq INCREMENT BY 1 RESTART WITH 200000});
my @single = numbers($a, 40);
cmp_ok($single[38], '>', 200000, 'a step of 1, as before the upgrade,');
is($single[39], $single[38] + 1, 'has blocks of one number');
$node->safe_psql($db, q{ALTER SEQUENCE tq_internal.id_seq INCREMENT BY 64});
is($node->safe_psql($db, $twice), 0, 'no number is there twice');

# ---- databases ----

$_->quit foreach $a, $b;
$node->safe_psql($db, "CREATE DATABASE other TEMPLATE $db");
$b = $node->background_psql('other');
$a = $node->background_psql($db);
my @mine = numbers($a, 2);
my @other = numbers($b, 2);
is_deeply([ numbers($a, 2), numbers($b, 2) ], [ $mine[1] + 1, $mine[1] + 2, $other[1] + 1, $other[1] + 2 ], 'each database has its own');
is($node->safe_psql($_, $twice), 0, "$_: no number is there twice") foreach $db, 'other';
$b->quit;
my $oid = $node->safe_psql($db, q{SELECT oid FROM pg_database WHERE datname = 'other'});
$node->safe_psql($db, 'DROP DATABASE other');
$node->safe_psql($db, "CREATE DATABASE other OID = $oid");
$node->safe_psql('other', $setup);
is($node->safe_psql('other', 'SELECT number()'), 2, 'a database with the oid of one that was dropped has its own numbers');

# ---- the extension ----

$node->safe_psql($db, $_) foreach 'DROP EXTENSION tq CASCADE', $setup;
is(number($a), 2, 'the extension that is created again begins with 1');
$a->query_safe('BEGIN; DROP EXTENSION tq CASCADE;' . $setup);
is_deeply([ numbers($a, 2) ], [ 2, 4 ], 'so does one in a transaction');
$a->query_safe('ROLLBACK');
$next = number($a);
cmp_ok($next, '>', $node->safe_psql($db, "SELECT max(id) FROM tq_internal.task WHERE id < $next"), 'whose end brings the old one back');
is($node->safe_psql($db, $twice), 0, 'no number is there twice');

# ---- a dump ----

$a->query_safe('SELECT number() FROM generate_series(1, 100)');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr($db) ], 'pg_dump');
$node->safe_psql($db, 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', $dump, '-d', $node->connstr('restored') ], 'and restore');
cmp_ok($node->safe_psql('restored', 'SELECT number()'), '>', $node->safe_psql($db, $highest), 'numbers go on behind those of the original');
is($node->safe_psql('restored', $twice), 0, 'no number is there twice');
$a->quit;

# ---- crashes, under load ----

my $script = PostgreSQL::Test::Utils::tempdir() . '/create.sql';
append_to_file($script, "SELECT tq.enqueue('n/w')");
foreach my $end ('a backend', 'the server', 'the server, without waiting for commits')
{
	my $log = '';
	my @load = ('pgbench', '-n', '-c', 8, '-j', 2, '-T', 60, '-f', $script, $node->connstr($db));
	my $before = $node->safe_psql($db, $highest);

	$node->safe_psql($db, q{ALTER SYSTEM SET synchronous_commit = off}) if $end =~ /without/;
	$node->reload;
	my $load = IPC::Run::start(\@load, '>', \$log, '2>', \$log);
	$node->poll_query_until($db, "SELECT ($highest) > $before + 1000") or die 'no load';
	if ($end eq 'a backend')
	{
		kill 'KILL', $node->safe_psql($db, q{SELECT pid FROM pg_stat_activity WHERE query ~ 'n/w' AND pid <> pg_backend_pid() LIMIT 1});
		$load->finish;
		$node->poll_query_until($db, 'SELECT true');
	}
	else
	{
		$node->stop('immediate');
		$load->finish;
		$node->start;
	}
	$before = $node->safe_psql($db, $highest);
	cmp_ok($node->safe_psql($db, 'SELECT number()'), '>', $before, "$end is killed: numbers go on");
	is($node->safe_psql($db, $twice), 0, 'and none is there twice');
}

# ---- a promotion ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql($db, 'SELECT number() FROM generate_series(1, 100)');
my (undef, undef, $error) = $standby->psql($db, 'SELECT number()');
like($error, qr/read-only transaction|during recovery|recovery is in progress/, 'a standby takes none');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$node->stop('immediate');
$standby->promote;
my $last = $standby->safe_psql($db, $highest);
cmp_ok($standby->safe_psql($db, 'SELECT number()'), '>', $last, 'when it is promoted, it goes on behind all that it has');
is($standby->safe_psql($db, $twice), 0, 'no number is there twice');

# ---- no shared memory ----

$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$standby->restart;
$a = $standby->background_psql($db);
number($a);
my $drawn = number($a);
is(number($a), $drawn + 2 * 64, 'without it a creation draws two numbers: for the task, and for its messages');
$a->quit;

$standby->stop;
done_testing();
