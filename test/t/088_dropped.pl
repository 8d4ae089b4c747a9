# DROP EXTENSION beside calls that wait, and again and again: it does not wait for
# them, they end, it names what stays, and nothing of it is left on the server.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Time::HiRes qw(time);
use Tq;

my $QUEUES = 6;
my $node = new_node('node', 'autovacuum = off', "tq.counted_queues = $QUEUES", 'max_worker_processes = 8');
my $db = 'app';
my $slug = "'one_____QAGAAAAAAAAAAA'";
my $rounds = $ENV{TQ_DROP_ROUNDS} // 10;

sub query { my ($sql, $where) = @_; return $node->safe_psql($where // $db, $sql); }

# Makes all queues with limits for which there is room, of rows and of claims.
sub limit_queues
{
	my ($where) = @_;

	return query(join(' ', map { qq{SELECT 1 FROM tq.set_queue('q/$_', '{"maxRunning": 1, "rateCount": 10, "rateInterval": "1 hour"}');} } 1 .. $QUEUES)
			. join(' ', map { "SELECT tq.enqueue('q/$_', '{}'); SELECT 1 FROM tq.claim_work('q/$_', 'g', 'w');" } 1 .. $QUEUES), $where);
}

query("CREATE DATABASE $_", 'postgres') foreach $db, 'beside';
query('CREATE EXTENSION tq', 'beside');

# ---- calls that wait ----

my %waits = (
	claim_work => "SELECT count(*) FROM tq.claim_work('p/q', 'g', 'w', wait => '60 s')",
	reclaim_task => "SELECT count(*) FROM tq.reclaim_task($slug, 0, wait => '60 s')",
	wait_for_work => "CALL tq.wait_for_work('p/q', '60 s')",
	'wait_for_work of many' => "CALL tq.wait_for_work(ARRAY['p/q', 'r/*'], '60 s')",
	wait_for_task => "CALL tq.wait_for_task($slug, '60 s')",
	wait_for_task_group => "CALL tq.wait_for_task_group($slug, '60 s')");
my %ended_early = (claim_work => '0', reclaim_task => '1');

# Starts all of them, and returns when they sleep.
sub start_waits
{
	my %sessions;

	query('CREATE EXTENSION tq');
	query("SELECT tq.enqueue('p/r', '{}', task_id => $slug); SELECT count(*) FROM tq.claim_work('p/r', 'g', 'w')");
	foreach my $name (sort keys %waits)
	{
		$sessions{$name} = $node->background_psql($db, on_error_stop => 0);
		$sessions{$name}->query_until(qr/begun/, "\\set VERBOSITY verbose\n\\echo begun\n$waits{$name};\n\\echo ended :SQLSTATE\n");
	}
	$node->poll_query_until($db, 'SELECT count(*) = ' . keys(%waits) . q( FROM pg_stat_activity WHERE datname = 'app' AND backend_type = 'client backend' AND wait_event ~ 'Extension|Tq')) or die 'not all wait';
	return %sessions;
}

# How they have ended.
sub ends
{
	my (%sessions) = @_;
	my %ends;

	foreach my $name (keys %sessions)
	{
		my $out = $sessions{$name}->query_until(qr/ended \w+/, "\n");

		$ends{$name} = $out =~ s/\s*ended (\w+)\s*$// ? "$1 $out" : $out;
		$sessions{$name}->quit;
	}
	return %ends;
}

my $listener = $node->background_psql($db, on_error_stop => 1);
$listener->query('LISTEN tq');
my %sessions = start_waits();
my $began = time;
my ($status, $out, $err) = $node->psql($db, "SET statement_timeout = '20 s'; DROP EXTENSION tq CASCADE");
is($status, 0, 'a drop does not wait for calls that wait');
unlike($err, qr/DROP ROLE/, 'roles that another database uses are not named');
my %ends = ends(%sessions);
cmp_ok(time - $began, '<', 8, 'they end by a wake-up');	# a waiter looks by itself after 10 seconds
foreach my $name (sort keys %waits)
{
	if (exists $ended_early{$name}) { is($ends{$name}, "00000 $ended_early{$name}", "$name() ends as if its time were over"); }
	else { like($ends{$name}, qr/^42704/, "$name() gets an error"); }
}
is($listener->query('SELECT pg_listening_channels()'), 'tq', 'a session still listens');
$listener->quit;
ok(wait_no_worker($node, $db), 'the maintenance worker has ended');

%sessions = start_waits();
my $altering = $node->background_psql($db, on_error_stop => 1);
$altering->query('BEGIN; ALTER EXTENSION tq UPDATE');
%ends = ends(map { $_ => delete $sessions{$_} } keys %ended_early);
is($ends{$_}, "00000 $ended_early{$_}", "nor would an update: $_() ends") foreach sort keys %ended_early;
$altering->query('COMMIT');
$altering->quit;
is($node->safe_psql($db, q(SELECT count(*) FROM pg_stat_activity WHERE query ~ '^CALL tq' AND state = 'active')), 4, 'those without a transaction go on');

# ---- shared memory ----

limit_queues($db);
is((() = ($node->psql('beside', q(SELECT tq.set_queue('q/1', '{"maxRunning": 1}'))))[2] =~ /counters for/g), 1, 'queues with limits fill the room for them');
query('BEGIN; DROP EXTENSION tq; ROLLBACK');
is((() = ($node->psql('beside', q(SELECT tq.set_queue('q/1', '{"maxRunning": 1}'))))[2] =~ /counters for/g), 1, 'a drop that is rolled back leaves them');
query('BEGIN; SAVEPOINT a; DROP EXTENSION tq; ROLLBACK TO a; COMMIT');
is((() = ($node->psql('beside', q(SELECT tq.set_queue('q/1', '{"maxRunning": 1}'))))[2] =~ /counters for/g), 1, 'so does that of a savepoint');
query('DROP EXTENSION tq');
%ends = ends(%sessions);
limit_queues('beside');
is(query('SELECT count(*) FROM tq_internal.run WHERE state = 2', 'beside'), $QUEUES, 'after a drop another database has the room');
query('DROP EXTENSION tq', 'beside');

# ---- again and again ----

sub files
{
	my $oid = query("SELECT oid FROM pg_database WHERE datname = '$db'", 'postgres');

	query('CHECKPOINT', 'postgres');
	return scalar(grep { !/_(?:fsm|vm)$/ } glob($node->data_dir . "/base/$oid/*"));
}
sub rows { return query(q(SELECT concat_ws(' ', (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_depend), (SELECT count(*) FROM pg_shdepend), (SELECT count(*) FROM pg_init_privs)))); }
my ($files, $rows);

foreach my $round (1 .. $rounds)
{
	query('CREATE EXTENSION tq');
	limit_queues($db);
	query("SELECT tq.subscribe('s', 'task-completed')");
	wait_worker($node, $db) if $round % 10 == 1;
	query($round % 2 ? 'DROP EXTENSION tq' : 'DROP EXTENSION tq CASCADE; DROP SCHEMA tq');
	next unless $round == 1;
	query('DROP SCHEMA IF EXISTS tq');
	($files, $rows) = (files(), rows());
}
query('DROP SCHEMA IF EXISTS tq');
is(rows(), $rows, "$rounds times: the catalogs have no other rows");
cmp_ok(files(), '<=', $files, 'no file is left');
ok(wait_no_worker($node, $db), 'no maintenance worker is left');
query('CREATE EXTENSION tq', 'beside');
limit_queues('beside');
is(query('SELECT count(*) FROM tq_internal.run WHERE state = 2', 'beside'), $QUEUES, 'all room is there');
ok(wait_worker($node, 'beside'), 'and a process for a worker');

# ---- what stays ----

($status, $out, $err) = $node->psql('beside', 'DROP EXTENSION tq CASCADE');
like($err, qr/NOTICE:  roles of tq stay, and no other database uses them: tq_admin, tq_producer, tq_worker, tq_reader, tq_monitor\nHINT:  DROP ROLE tq_admin, tq_producer, tq_worker, tq_reader, tq_monitor/, 'the roles are named');
query('DROP ROLE tq_admin, tq_producer, tq_worker, tq_reader, tq_monitor', 'postgres');
($status, $out, $err) = $node->psql('beside', 'DROP SCHEMA tq');
is($err, '', 'and only when the extension is dropped');
unlike(slurp_file($node->logfile), qr/PANIC:|terminated by signal|could not/, 'the server was not disturbed');
$node->stop;
done_testing();
