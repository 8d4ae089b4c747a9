# A role that may only CONNECT does not stop, delay or restart maintenance, and
# locks no task: whatever it does, a delayed task becomes pending in time.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('guest', 'max_connections = 30', 'max_prepared_transactions = 5', 'max_worker_processes = 20');
my $db = 'shop';

$node->safe_psql('postgres', "CREATE DATABASE $db; CREATE ROLE guest LOGIN; CREATE ROLE sober LOGIN; GRANT guest TO sober");
$node->safe_psql($db, 'CREATE EXTENSION tq');

# ---- a database that no client has used: a restore may be filling it ----

my $unused = 'SELECT count(*) FROM tq_internal.activation';
foreach my $call (q{tq.create_tasks('[]')}, q{tq.enqueue_tasks('p/w', '{}')}, q{tq.resolve('{}', '{}')},
	q{tq.resolve('{one_____QAGAAAAAAAAAAA}', '{0}')}, q{tq.statuses('{}')}, q{tq.current_scopes()}, q{tq.slugid()}, q{tq.enqueue('p/w')},
	q{tq.claim_work('p/w', 'g', 'w')})
{
	$node->psql($db, "SELECT $call", extra_params => [ '-U', 'guest' ]);
	is($node->safe_psql($db, $unused), 0, "a database is not put in use by $call of a role without rights");
}
begin_use($node, $db);
isnt($node->safe_psql($db, $unused), 0, 'but by a caller that may');
my $pid = wait_worker($node, $db);

# ---- helpers ----

# A delayed task becomes pending, and its message is published.
sub served
{
	my ($title) = @_;
	my $id = $node->safe_psql($db, q{SELECT tq.enqueue('p/delayed', delay => '100 ms')});

	ok($node->poll_query_until($db, "SELECT NOT EXISTS (SELECT FROM tq_internal.delayed)"), "$title: a delayed task is released");
	ok($node->poll_query_until($db, "SELECT count(*) = 1 FROM tq.messages(pattern => 'primary.$id.#', exchange => 'task-pending')"), "$title: its message is published");
	is(worker_in($node, $db), $pid, "$title: by the same maintenance worker");
	return;
}

sub session
{
	my (@statements) = @_;
	my $session = $node->background_psql($db, on_error_stop => 0, extra_params => [ '-U', 'guest' ]);

	$session->query($_) foreach @statements;
	return $session;
}

# The guest's sessions stay while a task is served.
sub beside
{
	my ($title, @sessions) = @_;

	served($title);
	$_->quit foreach @sessions;
	return;
}

sub state_of_call
{
	my ($sql) = @_;
	my ($code, $out, $error) = $node->psql($db, $sql, extra_params => [ '-U', 'guest', '-v', 'VERBOSITY=sqlstate' ]);

	return $error =~ /ERROR:\s+(\w{5})/ ? $1 : "none $out";
}

served('at first');

# ---- rows of tasks ----

# resolve() answers instead of raising; a refused caller must not keep a lock.
my ($running) = enqueue($node, $db);
$node->safe_psql($db, "SELECT FROM tq.claim_task('$running', 0, 'g', 'w')");
my $ended = enqueue($node, $db);
$node->safe_psql($db, "SELECT tq.cancel_task('$ended')");
foreach my $case ([ $running, 'completed' ], [ $running, 'failed' ], [ $running, 'canceled' ], [ $ended, 'completed' ], [ $ended, 'canceled' ], [ $ended, 'worker-shutdown' ])
{
	my ($id, $reason) = @$case;
	my $guest = session('BEGIN');
	my $outcome = $guest->query("SELECT outcome FROM tq.resolve('{$id}', '{0}', '$reason')");

	is($outcome, 'not-found', "resolve() as $reason of a role without rights: $outcome");
	is($node->safe_psql($db, q{SELECT count(*) FROM (SELECT FROM tq_internal.run FOR UPDATE SKIP LOCKED) AS r}),
		$node->safe_psql($db, 'SELECT count(*) FROM tq_internal.run'), 'locks no run');
	$guest->query('COMMIT');
	$guest->quit;
}
my $guest = session('BEGIN', "SELECT tq.resolve('{$running}', '{0}')", 'SAVEPOINT s', "SELECT tq.report_completed('$running', 0)", 'ROLLBACK TO s',
	"SELECT tq.cancel_task('$running')", 'ROLLBACK TO s', "SELECT tq.reclaim_task('$running', 0)", 'ROLLBACK TO s', "SELECT tq.claim_task('$running', 0, 'g', 'w')", 'ROLLBACK TO s',
	"SELECT tq.rerun_task('$ended')", 'ROLLBACK TO s', "SELECT tq.delete_task('$ended')", 'ROLLBACK TO s');
is($node->safe_psql($db, "SET lock_timeout = '10 s'; SELECT tq.report_completed('$running', 0) ->> 'state'"), 'completed', 'a worker reports beside all that it tries');
is($node->safe_psql($db, "SET lock_timeout = '10 s'; SELECT tq.rerun_task('$ended') ->> 'state'"), 'pending', 'and a task is rerun');
$guest->quit;

# ---- names and slots ----

my $queues = $node->safe_psql($db, 'SELECT count(*) FROM tq_internal.queue');
$node->psql($db, q{
	DO $$
	BEGIN
		FOR n IN 1 .. 5000 LOOP
			BEGIN
				PERFORM tq.claim_work('made/up' || n, 'g', 'w', 1, '60 s');
			EXCEPTION WHEN OTHERS THEN
				PERFORM tq.current_scopes();
			END;
		END LOOP;
	END $$}, extra_params => [ '-U', 'guest' ]);
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.queue'), $queues, 'queues that a refused call names are not stored');
served('5,000 refused claims');
is(state_of_call(q{CALL tq.wait_for_task('one_____QAGAAAAAAAAAAA', '1 hour')}), 'TQ404', 'no wait for a task that is not there');
is(state_of_call($_), 'TQ403', "refused: $_") foreach (q{CALL tq.wait_for_work('made/up', '1 hour')},
	q{SELECT tq.subscribe('sub', 'task-defined')}, q{SELECT tq.bind('ch', 'task-defined')}, q{SELECT tq.upkeep()});

# ---- locks ----

beside('advisory locks', session('BEGIN', 'SELECT pg_advisory_lock(0), pg_advisory_lock(0, 0), pg_advisory_xact_lock(0), pg_advisory_xact_lock(0, 0)',
	'SELECT count(pg_advisory_lock(n, 0)), count(pg_advisory_lock(n)), count(pg_advisory_lock(0, n)) FROM generate_series(7400, 7430) AS n'));
foreach my $what ('tq.maintenance_overview', 'tq_internal.task', 'tq_internal.activation')
{
	is(state_of_call("BEGIN; LOCK TABLE $what IN ACCESS SHARE MODE"), '42501', "LOCK TABLE $what is refused");
}
is(state_of_call("BEGIN; LOCK TABLE $_ IN SHARE MODE"), '42501', "LOCK TABLE $_ is refused") foreach ('tq.queue_stats', 'tq.task_details');
beside('locks on views that show what a guest may see', session('BEGIN', 'LOCK TABLE tq.queue_stats, tq.task_details IN ACCESS SHARE MODE'));
beside('locks on catalogs', session('BEGIN', 'LOCK TABLE pg_class, pg_extension, pg_database, pg_proc, pg_authid IN ACCESS SHARE MODE'),
	session('BEGIN', 'SAVEPOINT s', 'LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE', 'ROLLBACK TO s', 'LOCK TABLE pg_extension IN SHARE MODE', 'ROLLBACK TO s',
		"COMMENT ON DATABASE $db IS 'mine'", 'ROLLBACK TO s', "COMMENT ON EXTENSION tq IS 'mine'", 'ROLLBACK TO s', 'ALTER EXTENSION tq SET SCHEMA public', 'ROLLBACK TO s',
		'DROP EXTENSION tq', 'ROLLBACK TO s', 'ANALYZE pg_class', 'ALTER TYPE tq.slugid RENAME TO x', 'ROLLBACK TO s', 'DROP ROLE tq_admin', 'ROLLBACK TO s'));
beside('a call in an open transaction', session('BEGIN', 'SELECT tq.current_scopes()', q{SELECT tq.statuses('{}')}));
beside('its type in a table', session('CREATE TEMP TABLE mine (id tq.slugid PRIMARY KEY)', 'BEGIN', q{INSERT INTO mine VALUES (tq.slugid())}, 'LOCK TABLE mine'));

# ---- snapshots and transaction ids ----

beside('an old snapshot', session('BEGIN ISOLATION LEVEL SERIALIZABLE', 'SELECT 1', 'SELECT pg_export_snapshot()'));
beside('an open transaction id, in many savepoints', session('BEGIN', 'SELECT pg_current_xact_id()',
	q{DO $$ BEGIN FOR n IN 1 .. 2000 LOOP BEGIN CREATE TEMP TABLE t (); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$}));
beside('a cursor', session('BEGIN', 'DECLARE c CURSOR FOR SELECT * FROM pg_class', 'FETCH c'));
my $prepared = session('BEGIN', 'SELECT pg_current_xact_id()', q{SELECT tq.resolve('{}', '{}')}, q{PREPARE TRANSACTION 'guest'});
$prepared->quit;
is($node->safe_psql($db, 'SELECT count(*) FROM pg_prepared_xacts'), 1, 'any role may prepare a transaction');
served('a prepared transaction');
$node->safe_psql($db, q{ROLLBACK PREPARED 'guest'});

# ---- signals, settings, roles ----

foreach my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	is(state_of_call("SELECT $function($pid)"), '42501', "$function() is refused");
}
is(state_of_call($_), '42501', "refused: $_") foreach ("ALTER DATABASE $db SET statement_timeout = 1", "ALTER DATABASE $db SET tq.maintenance = off", 'ALTER ROLE postgres SET lock_timeout = 1',
	'ALTER ROLE guest SET tq.maintenance = off', 'ALTER SYSTEM SET tq.maintenance = off', 'SELECT pg_reload_conf()', 'SELECT tq_internal.start_maintenance()', 'SELECT pg_switch_wal()',
	'SET SESSION AUTHORIZATION postgres', 'SET ROLE tq_admin', 'SET ROLE postgres');
$node->psql($db, $_, extra_params => [ '-U', 'guest' ]) foreach map { "ALTER ROLE guest SET $_" } 'statement_timeout = 1', 'lock_timeout = 1', 'idle_in_transaction_session_timeout = 1',
  'default_transaction_read_only = on', "search_path = 'pg_temp'", "default_transaction_isolation = 'serializable'";
served('settings of its own');
$node->safe_psql('postgres', 'ALTER ROLE guest RESET ALL');

# SET ROLE and SET SESSION AUTHORIZATION within functions of a role that can log in
$node->safe_psql($db, q{
	CREATE SCHEMA play; GRANT ALL ON SCHEMA play TO guest;
	SELECT tq.grant_scopes('sober', '{queue:status:*}')});
$node->safe_psql($db, q{
	CREATE FUNCTION play.become(role text) RETURNS text[] LANGUAGE plpgsql AS $$
		BEGIN EXECUTE format('SET LOCAL ROLE %I', role); RETURN tq.current_scopes(); END $$;
	CREATE FUNCTION play.authorize(role text) RETURNS text[] LANGUAGE plpgsql AS $$
		BEGIN EXECUTE format('SET LOCAL SESSION AUTHORIZATION %I', role); RETURN tq.current_scopes(); END $$;
	CREATE FUNCTION play.configured() RETURNS text[] LANGUAGE plpgsql AS $$
		BEGIN PERFORM set_config('role', 'tq_admin', true); RETURN tq.current_scopes(); END $$;
	CREATE FUNCTION play.definer(role text) RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN EXECUTE format('SET LOCAL ROLE %I', role); RETURN tq.current_scopes(); END $$}, extra_params => [ '-U', 'guest' ]);
foreach my $call ("play.become('tq_admin')", "play.become('sober')", "play.authorize('postgres')", "play.authorize('sober')", 'play.configured()', "play.definer('guest')", "play.definer('tq_admin')")
{
	isnt(state_of_call("SELECT $call"), 'none {queue:status:*}', "$call does not give what the guest has not");
	unlike(state_of_call("SELECT $call"), qr/\*/, "$call gives no star");
}
my ($code, $out) = $node->psql($db, q{SELECT tq.current_scopes(); SELECT play.become('guest'); BEGIN; SELECT play.become('guest'); SELECT tq.current_scopes(); COMMIT; SELECT tq.current_scopes()},
	extra_params => [ '-U', 'sober' ]);
is($out, "{queue:status:*}\n{}\n{}\n{}\n{queue:status:*}", 'a member that becomes the guest in a function has its scopes until the transaction ends');

# ---- load ----

beside('LISTEN on 5,000 channels, which it does not read', session('DO $$ BEGIN FOR n IN 1 .. 5000 LOOP EXECUTE format(\'LISTEN c%s\', n); END LOOP; END $$',
	'LISTEN tq_task_pending', 'BEGIN', 'SELECT 1'), session(q{SELECT count(pg_notify('c' || n % 5000, repeat('x', 7000))) FROM generate_series(1, 3000) AS n},
	q{SELECT count(pg_notify('tq_task_pending', 'forged')) FROM generate_series(1, 100) AS n}));

# What invalidates caches; the sessions end by themselves when the role may not connect.
my @storm = map { session() } 1 .. 2;
$_->query_until(qr/storm/, q{\echo storm
	DO $$ BEGIN FOR n IN 1 .. 1000000 LOOP CREATE TEMP TABLE IF NOT EXISTS activation (a int PRIMARY KEY); DROP TABLE activation; COMMIT; END LOOP; END $$;
}) foreach @storm;
served('a storm of invalidations');
$node->safe_psql($db, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'});

# All connections that the server has
my @all;
while (@all < 100)
{
	my $one = eval { session() } or last;
	push @all, $one;
}
cmp_ok(scalar @all, '<', 30, 'the connections are used up');
served('without a free connection');
$_->quit foreach @all;

unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed');
is(violations($node, $db), '', 'tables are consistent');
$node->stop('immediate');

done_testing();
