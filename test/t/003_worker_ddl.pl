# Statements that need the database without the maintenance worker, or that
# change the extension under it: they are never blocked, and the maintenance
# worker comes back.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('ddl', 'allow_in_place_tablespaces = on', 'max_worker_processes = 20');

# A database with the extension and a maintenance worker; its process.
sub make_database
{
	my ($db, $template) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db" . ($template ? " TEMPLATE $template" : ''));
	$node->safe_psql($db, 'CREATE EXTENSION tq') unless $template;
	return wait_worker($node, $db);
}

# Does the maintenance worker of that database work?
sub works
{
	my ($db) = @_;
	my $id = enqueue($node, $db, "deadline => '500 ms'");

	return wait_state($node, $db, $id, 'exception');
}

# DROP DATABASE, plain, again and again, and by force.
foreach my $i (1 .. 5)
{
	make_database('dropped');
	$node->safe_psql('postgres', 'DROP DATABASE dropped');
}
pass('DROP DATABASE with a maintenance worker connected, five times');
make_database('dropped');
$node->safe_psql('postgres', 'DROP DATABASE dropped WITH (FORCE)');
ok(wait_no_worker($node, 'dropped'), 'DROP DATABASE WITH (FORCE)');

# Beside the wait of a worker that was killed: its session does not know that yet.
make_database('dropped');
my $killed = $node->background_psql('dropped');
$killed->query_until(qr/begun/, "\\echo begun\nSELECT FROM tq.claim_work('p/q', 'g', 'w', wait => '60 s');\n");
$node->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = 'dropped' AND state = 'active' AND wait_event_type = 'Extension'))
	or die 'it does not wait';
$killed->{run}->signal('KILL');
eval { $killed->{run}->finish };
is(($node->psql('postgres', 'DROP DATABASE dropped'))[0], 0, 'DROP DATABASE after a worker was killed that waits');

# Just after CREATE EXTENSION, when the maintenance worker may be anywhere in its start.
foreach my $i (1 .. 10)
{
	$node->safe_psql('postgres', 'CREATE DATABASE young');
	$node->safe_psql('young', 'CREATE EXTENSION tq');
	$node->safe_psql('postgres', 'DROP DATABASE young');
}
pass('DROP DATABASE while the maintenance worker starts, ten times');

# RENAME.
my $pid = make_database('before');
$node->safe_psql('postgres', 'ALTER DATABASE before RENAME TO after');
ok(wait_worker($node, 'after', $pid), 'ALTER DATABASE RENAME: the maintenance worker is back');
ok(works('after'), 'and works');
$pid = worker_in($node, 'after');
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; ALTER DATABASE after RENAME TO later');
is(worker_in($node, 'after'), '', 'RENAME in a transaction: no maintenance worker until it ends');
my $id;
$session->query_safe('ROLLBACK');
ok(wait_worker($node, 'after', $pid), 'after its rollback the maintenance worker is back');


# SET TABLESPACE.
$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION ''");
$pid = worker_in($node, 'after');
$node->safe_psql('postgres', 'ALTER DATABASE after SET TABLESPACE other');
ok(wait_worker($node, 'after', $pid), 'ALTER DATABASE SET TABLESPACE: the maintenance worker is back');
ok(works('after'), 'and works');

# As a template.
$pid = worker_in($node, 'after');
ok(make_database('copy', 'after'), 'CREATE DATABASE TEMPLATE: the copy has a maintenance worker');
ok(wait_worker($node, 'after', $pid), 'and the template again');
ok(works('copy'), 'the first works');
ok(works('after'), 'and the second');
$node->safe_psql('template1', 'CREATE EXTENSION tq');
wait_worker($node, 'template1');
$node->safe_psql('postgres', "CREATE DATABASE child$_") foreach 1 .. 3;
ok(wait_worker($node, "child$_"), "child $_ of template1 has a maintenance worker") foreach 1 .. 3;
$node->safe_psql('template1', 'DROP EXTENSION tq');
ok(wait_no_worker($node, 'template1'), 'template1 has none any more');

# A statement that fails for want of rights does not stop the maintenance worker.
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN');
$pid = worker_in($node, 'after');
foreach my $sql ('DROP DATABASE after', 'ALTER DATABASE after RENAME TO mine',
	'ALTER DATABASE after SET TABLESPACE pg_default', 'CREATE DATABASE mine TEMPLATE after')
{
	my ($status) = $node->psql('postgres', "SET ROLE nobody; $sql", on_error_stop => 1);
	isnt($status, 0, "refused: $sql");
}
is(worker_in($node, 'after'), $pid, 'and the maintenance worker is the same');

# A database that takes no connections gets no maintenance worker, and one when it does.
$node->safe_psql('postgres', 'ALTER DATABASE copy ALLOW_CONNECTIONS false');
$node->safe_psql('postgres',
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'copy'");
ok(wait_no_worker($node, 'copy'), 'a database without connections has no maintenance worker');
$node->safe_psql('postgres', 'ALTER DATABASE copy ALLOW_CONNECTIONS true');
ok(wait_worker($node, 'copy'), 'until it takes them again');

# ALTER EXTENSION: nothing is done in the middle, everything after it.
my $inside = $node->background_psql('after');
$id = enqueue($node, 'after', "deadline => '3 seconds'");
$inside->query_safe('SET client_min_messages = warning; BEGIN; ALTER EXTENSION tq UPDATE');
ok(wait_past_deadline($node, 'after', $id), 'deadline passes during ALTER EXTENSION');
is(state_of($node, 'after', $id), 'pending', 'the maintenance worker leaves the tables alone');
$pid = worker_in($node, 'after');
$inside->query_safe('COMMIT');
ok(wait_state($node, 'after', $id, 'exception'), 'and does what is due after the commit');
ok(wait_worker($node, 'after', $pid), 'in another process');

# DROP EXTENSION while a task is due, and rolled back.
$id = enqueue($node, 'after', "deadline => '1 second'");
$inside->query_safe('BEGIN; DROP EXTENSION tq');
ok( $node->poll_query_until('postgres',
		"SELECT clock_timestamp() > xact_start + '1.2 s' FROM pg_stat_activity"
		  . " WHERE datname = 'after' AND state = 'idle in transaction'"),
	'deadline passes during DROP EXTENSION');
$inside->query_safe('ROLLBACK');
ok(wait_state($node, 'after', $id, 'exception'), 'DROP EXTENSION that was rolled back');

# An update while much is due: first one to a version that this library does not serve, which
# is undone, and then one that finds nothing to do, but locks as any does.
my $share = $node->config_data('--sharedir') . '/extension';
SKIP:
{
	skip "cannot write to $share", 5 unless -w $share;
	my ($version) = slurp_file("$share/tq.control") =~ /default_version = '(.*)'/;
	my $script = "$share/tq--$version--99.0.0.sql";

	append_to_file($script,
		"ALTER TABLE tq_internal.task ADD COLUMN test_only int;\nALTER TABLE tq_internal.timer ADD COLUMN test_only int;\n"
		  . "ALTER TABLE tq_internal.pending ADD COLUMN test_only int;\n");
	my $load = $node->background_psql('after');
	$load->query_safe("SELECT count(tq.enqueue('p/many', deadline => '200 ms' + n * '5 ms'::interval))"
		  . " FROM generate_series(1, 400) AS n");
	foreach my $to (1 .. 3)
	{
		my ($code, $out, $err) = $node->psql('after', "\\set VERBOSITY sqlstate\nALTER EXTENSION tq UPDATE TO '99.0.0'");
		like($err, qr/ERROR:  55000/, 'a version that the library does not serve is refused');
		$node->safe_psql('after', 'SET client_min_messages = warning; ALTER EXTENSION tq UPDATE');
	}
	unlink $script;
	ok($node->poll_query_until('after',
			"SELECT count(*) = 400 FROM tq.task_details WHERE task_queue_id = 'p/many' AND state = 'exception'"),
		'and everything is done');
	ok(works('after'), 'the maintenance worker works with the version that stays');
	$load->quit;
}
is(violations($node, 'after'), '', 'tables are consistent');

# DROP OWNED and DROP SCHEMA reach the extension by other ways.
$session->quit;
$inside->quit;
$node->safe_psql('copy', 'DROP SCHEMA tq CASCADE');
ok(wait_no_worker($node, 'copy'), 'DROP SCHEMA CASCADE ends the maintenance worker');

my $log = slurp_file($node->logfile);
unlike($log, qr/deadlock detected/, 'no deadlock');
unlike($log, qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
note("logged: $_") foreach $log =~ /^.*(?:FATAL|WARNING).*$/mg;
$node->stop;

done_testing();
