# No setting of a database or of the server stops maintenance, except
# tq.maintenance; what stops it is shown in the view and in the log.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('settings', 'max_worker_processes = 20', 'max_prepared_transactions = 5');
my $db = 'shop';

# A column of the row of a step in the view.
sub seen
{
	my ($step, $column) = @_;

	return $node->safe_psql($db, "SELECT $column FROM tq.maintenance_overview WHERE step = '$step'");
}

sub wait_seen
{
	my ($step, $condition, $title) = @_;

	return ok($node->poll_query_until($db, "SELECT $condition FROM tq.maintenance_overview WHERE step = '$step'"), $title);
}

# Tasks of which each needs another step; the maintenance worker must be in time.
sub served
{
	my ($title) = @_;
	my $overdue = enqueue($node, $db, "deadline => '300 ms'");
	my $delayed = $node->safe_psql($db, "SELECT tq.enqueue('p/delayed', delay => '300 ms')");
	my $lost = $node->safe_psql($db, "SELECT tq.enqueue('p/lost')");

	$node->safe_psql($db, "SET tq.claim_timeout = '300 ms'; SELECT 1 FROM tq.claim_work('p/lost', 'g', 'w')");
	ok(wait_state($node, $db, $overdue, 'exception'), "$title: a deadline");
	ok($node->poll_query_until($db, "SELECT jsonb_array_length(tq.status('$lost') -> 'runs') = 2"), "$title: a lost claim");
	ok($node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.claim_work('p/delayed', 'g', 'w')"), "$title: a delayed task");
	$node->safe_psql($db, "SELECT tq.cancel_task('$lost')");
	cmp_ok(lateness($node, $db, $overdue, 0, "(s ->> 'deadline')::timestamptz"), '<', 5, "$title: in time");
	return;
}

$node->safe_psql('postgres', "CREATE DATABASE $db");
$node->safe_psql('postgres', 'CREATE ROLE weak; CREATE ROLE weaker SUPERUSER; ALTER ROLE weaker SET work_mem = 64');
$node->safe_psql($db, 'CREATE EXTENSION tq');
my $pid = wait_worker($node, $db);
served('by default');
is(seen('turn', 'state'), 'running', 'the view shows that the maintenance worker works');

# Settings that take the maintenance worker's rights away, or make it slow, or end it.
my @settings = (
	[ role => 'weak' ], [ session_authorization => 'weak' ], [ search_path => 'nowhere' ],
	[ default_transaction_read_only => 'on' ], [ default_transaction_isolation => 'serializable' ],
	[ statement_timeout => "'1ms'" ], [ lock_timeout => "'1ms'" ], [ idle_in_transaction_session_timeout => "'1ms'" ],
	[ session_replication_role => 'replica' ], [ plan_cache_mode => 'force_custom_plan' ], [ row_security => 'off' ],
	[ check_function_bodies => 'off' ], [ datestyle => "'SQL, DMY'" ], [ timezone => "'Asia/Tokyo'" ]);
foreach my $setting (@settings)
{
	my ($name, $value) = @$setting;

	$node->safe_psql('postgres', "ALTER DATABASE $db SET $name = $value");
}
$node->restart;
wait_worker($node, $db);
{
	# Sessions of the test are not what is tested.
	local $ENV{PGOPTIONS} = join ' ', '-c role=none -c search_path=public -c default_transaction_read_only=off',
	  '-c default_transaction_isolation=read\ committed -c statement_timeout=0 -c lock_timeout=0',
	  '-c idle_in_transaction_session_timeout=0 -c session_replication_role=origin -c session_authorization=postgres';
	served('with fourteen settings of the database, after a restart');
	is(seen('deadline', 'failures'), 0, 'no step failed');
	$node->safe_psql('postgres', "ALTER DATABASE $db RESET ALL");
}
wait_worker($node, $db);
served('when they are reset');

# A step that fails is seen, and the others are taken.
$node->safe_psql($db, 'ALTER TABLE tq_internal.claim_timer RENAME TO claim_timer_away');
wait_seen('claim-expired', "state = 'failing' AND failures > 0 AND failed_at <= now()", 'a step that fails is seen');
like(seen('claim-expired', 'error'), qr/claim_timer/, 'with its error');
my $id = enqueue($node, $db, "deadline => '300 ms'");
ok(wait_state($node, $db, $id, 'exception'), 'the other steps are taken');
is(seen('deadline', 'state'), 'ok', 'and the view shows them as ok');
$node->safe_psql($db, 'ALTER TABLE tq_internal.claim_timer_away RENAME TO claim_timer');
served('when the step can be taken again');
wait_seen('claim-expired', "state = 'ok' AND failures > 0", 'the failures stay in the view');

# The setting for it: nothing is done, and that is seen.
$pid = worker_in($node, $db);
$node->safe_psql('postgres', "ALTER DATABASE $db SET tq.maintenance = off");
$pid = wait_worker($node, $db, $pid);
wait_seen('turn', "state = 'off'", 'tq.maintenance = off is seen in the view');
ok($node->wait_for_log(qr/LOG: .*tq does not maintain database "$db"/), 'and in the log');
$id = enqueue($node, $db, "deadline => '100 ms'");
wait_past_deadline($node, $db, $id);
my ($code, $out, $error) = $node->psql($db, 'SELECT sum(tasks) FROM tq.upkeep()');
is($out, 0, 'upkeep() does nothing, too');
like($error, qr/NOTICE: .*tq.maintenance is off/, 'and says why');
# The maintenance worker of another database is a clock: it acts, this one does not.
$node->safe_psql('postgres', 'CREATE EXTENSION tq');
my $check = enqueue($node, 'postgres', "deadline => '500 ms'");
ok(wait_state($node, 'postgres', $check, 'exception'), 'another database is not concerned');
is(state_of($node, $db, $id), 'pending', 'nothing is done while maintenance is off');
$node->safe_psql($db, "SELECT count(tq.enqueue('p/busy', deadline => '5 s')) FROM generate_series(1, 100)");
is(seen('turn', 'batches < 50'), 't', 'commits do not keep an idle maintenance worker busy');
$node->safe_psql('postgres', "ALTER DATABASE $db RESET tq.maintenance");
ok(wait_state($node, $db, $id, 'exception'), 'when it is on again, all is done that was due');
ok($node->poll_query_until($db, "SELECT bool_and(state = 'exception') FROM tq.task_details WHERE task_queue_id = 'p/busy'"),
	'what came due meanwhile, too');
wait_seen('turn', "state = 'running'", 'and the view shows it');
served('after tq.maintenance = off');

# By the configuration file, too, without a restart.
$node->append_conf('postgresql.conf', 'tq.maintenance = off');
$node->reload;
wait_seen('turn', "state = 'off'", 'off in postgresql.conf');
$node->append_conf('postgresql.conf', 'tq.maintenance = on');
$node->reload;
wait_seen('turn', "state = 'running'", 'on in postgresql.conf');
served('after off and on in postgresql.conf');

# A database that no client has used: a restore may be filling it.
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION tq');
wait_worker($node, 'fresh');
ok($node->poll_query_until('fresh', "SELECT state = 'unused' FROM tq.maintenance_overview WHERE step = 'turn'"),
	'a database that is not used is seen in the view');
ok($node->wait_for_log(qr/LOG: .*tq does not maintain database "fresh" yet/), 'and in the log');
$node->safe_psql('fresh', "BEGIN; SELECT tq.enqueue('p/w'); ROLLBACK");
is($node->safe_psql('fresh', 'SELECT count(*) FROM tq_internal.activation'), 0, 'a call that was rolled back does not put it in use');
$node->safe_psql('fresh', "BEGIN; SAVEPOINT s; SELECT tq.enqueue('p/w'); ROLLBACK TO s; SELECT tq.enqueue('p/w'); COMMIT");
is($node->safe_psql('fresh', 'SELECT count(*) FROM tq_internal.activation'), 1, 'after a savepoint that was rolled back, the next call is');
ok($node->poll_query_until('fresh', "SELECT state = 'running' FROM tq.maintenance_overview WHERE step = 'turn'"),
	'maintenance begins with the first call');
$node->safe_psql('fresh', 'DROP EXTENSION tq; CREATE EXTENSION tq');
ok($node->poll_query_until('fresh', "SELECT state = 'unused' FROM tq.maintenance_overview WHERE step = 'turn'"),
	'another extension is not in use');
$id = $node->safe_psql('fresh', "BEGIN; SELECT tq.enqueue('p/w', deadline => '200 ms'); PREPARE TRANSACTION 'p'");
is($node->safe_psql('fresh', 'SELECT count(*) FROM tq_internal.activation'), 0, 'nor by a transaction that is prepared');
$node->safe_psql('fresh', "COMMIT PREPARED 'p'");
ok(wait_state($node, 'fresh', $id, 'exception'), 'but when it is committed');

unlike(slurp_file($node->logfile), qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

# Too few processes: the databases are named at once, in the log, and again.
my $small = new_node('few', 'max_worker_processes = 2', 'max_logical_replication_workers = 0');
$small->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(one two), '"Three and"';
($code, $out, $error) = $small->psql('one', 'CREATE EXTENSION tq');
unlike($error, qr/NOTICE|WARNING/, 'a process is free: CREATE EXTENSION says nothing');
wait_worker($small, 'one');
enqueue($small, 'one');
($code, $out, $error) = $small->psql('two', 'CREATE EXTENSION tq');
is($code, 0, 'no process is free: CREATE EXTENSION succeeds');
like($error, qr/NOTICE: .*no background worker process is free for tq in database "two"/, 'and says so');
like($error, qr/HINT: .*max_worker_processes/, 'with a hint');
is($small->safe_psql('two', "SELECT state FROM tq.maintenance_overview"), 'absent', 'the view shows that there is no maintenance worker');
$small->psql('Three and', 'CREATE EXTENSION tq');
my $complaint = qr/WARNING: .*no background worker process is free for tq in \d databases?: /;
ok($small->wait_for_log(qr/${complaint}two\b/), 'the log names the database');
ok($small->wait_for_log(qr/${complaint}.*"Three and"/), 'and the other');
my $size = -s $small->logfile;
ok($small->wait_for_log($complaint, $size), 'again, while it lasts');
my $two = enqueue($small, 'two', "deadline => '1 s'");
$small->safe_psql($_, 'DROP EXTENSION tq') foreach 'Three and', 'one';
ok(wait_state($small, 'two', $two, 'exception'), 'a maintenance worker starts when a process is free');
$small->stop;

done_testing();
