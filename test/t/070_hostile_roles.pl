# Roles with few rights do not disturb maintenance: statements that the server
# refuses, or that are rolled back, or that name another table.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('roles', 'max_worker_processes = 20');
my $db = 'shop';
my $pid;

$node->safe_psql('postgres', "CREATE DATABASE $db");
$node->safe_psql('postgres', 'CREATE ROLE guest LOGIN; CREATE ROLE owner LOGIN; CREATE ROLE maker LOGIN CREATEDB');
$node->safe_psql($db, 'CREATE EXTENSION tq');
$pid = wait_worker($node, $db);

# A task beside it all, which must be resolved when its deadline comes.
sub served
{
	my ($title) = @_;
	my $id = enqueue($node, $db, "deadline => '300 ms'");

	ok(wait_state($node, $db, $id, 'exception'), "$title: a healthy task is served");
	cmp_ok(lateness($node, $db, $id, 0, "(s ->> 'deadline')::timestamptz"), '<', 5, "$title: in time");
	return;
}

# Run statements as a role in a session that stays; errors are expected.
sub session_as
{
	my ($role, $database, @statements) = @_;
	my $session = $node->background_psql($database, on_error_stop => 0);

	$session->query("SET SESSION AUTHORIZATION $role");
	$session->query($_) foreach @statements;
	return $session;
}

served('at first');

# CREATE EXTENSION that fails, or does nothing, does not mark the session.
my @sessions = (
	session_as('guest', $db, 'SET check_function_bodies = off', 'CREATE EXTENSION tq'),
	session_as('guest', $db, 'SET check_function_bodies = off', 'CREATE EXTENSION IF NOT EXISTS tq'));
served('CREATE EXTENSION by a role without rights');
push @sessions, session_as('guest', $db, "SET application_name = 'pg_restore: data'", 'SELECT 1');
served('a session that calls itself pg_restore');
push @sessions, session_as('postgres', $db, 'SET check_function_bodies = off', 'CREATE EXTENSION IF NOT EXISTS tq');
served('CREATE EXTENSION IF NOT EXISTS by a superuser');
$_->quit foreach @sessions;

# ALTER EXTENSION: the maintenance worker is restarted by a statement that succeeded.
my $guest = session_as('guest', $db);
$guest->query('BEGIN; SAVEPOINT s');
$guest->query('ALTER EXTENSION tq UPDATE');
$guest->query('ROLLBACK TO s; COMMIT');
is($guest->query('SELECT 1'), 1, 'ALTER EXTENSION by a role without rights, in a savepoint');
served('ALTER EXTENSION by a role without rights');
is(worker_in($node, $db), $pid, 'the maintenance worker is the same');
my $super = session_as('postgres', $db);
$super->query('SET client_min_messages = warning; BEGIN; SAVEPOINT s; ALTER EXTENSION tq UPDATE; ROLLBACK TO s; COMMIT');
served('ALTER EXTENSION in a savepoint that is rolled back');
is(worker_in($node, $db), $pid, 'the maintenance worker is the same');
$super->query('SET client_min_messages = warning; BEGIN; SAVEPOINT s; ALTER EXTENSION tq UPDATE; RELEASE s; COMMIT');
$pid = wait_worker($node, $db, $pid);
ok($pid, 'the maintenance worker is restarted by ALTER EXTENSION in a savepoint that is kept');
served('ALTER EXTENSION');

# While a failed ALTER EXTENSION's transaction is open, it holds no lock.
$guest->query('BEGIN; SAVEPOINT s');
$guest->query('ALTER EXTENSION tq UPDATE');
served('ALTER EXTENSION by a role without rights, its transaction still open');
$guest->query('ROLLBACK');

# DROP DATABASE and its like, by roles that may not run them.
$node->safe_psql('postgres', "ALTER DATABASE $db OWNER TO owner; ALTER DATABASE $db IS_TEMPLATE true");
foreach my $case (
	[ 'guest', "DROP DATABASE $db" ],
	[ 'maker', "DROP DATABASE $db" ],
	[ 'maker', "ALTER DATABASE $db RENAME TO mine" ],
	[ 'owner', "ALTER DATABASE $db RENAME TO mine" ],    # has no CREATEDB
	[ 'guest', "CREATE DATABASE mine TEMPLATE $db" ],    # any role may read a template
	[ 'guest', "ALTER DATABASE $db SET TABLESPACE pg_default" ],
	[ 'guest', "ALTER DATABASE $db SET work_mem = '1MB'" ],
	[ 'owner', "BEGIN; DROP DATABASE $db; ROLLBACK" ])
{
	my ($role, $sql) = @$case;
	my $session = session_as($role, 'postgres', split(/; */, $sql));

	$session->quit;
	is(worker_in($node, $db), $pid, "$role: $sql: the maintenance worker is not disturbed");
}
served('refused statements on the database');

# ALTER TABLE on a table that only has the name: sessions that wait sleep on.
# A session that sleeps gives the processor away once for each time it is woken.
sub switches
{
	my ($process) = @_;
	my ($n) = slurp_file("/proc/$process/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m;

	return $n;
}

sub wakes_while_waiting
{
	my ($table) = @_;
	my $waiter = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%p/quiet%' AND pid <> pg_backend_pid()"
	  . " AND wait_event_type = 'Extension'";
	my $wait = $node->background_psql($db, on_error_stop => 0);

	$wait->query_until(qr/waits/, "\\echo waits\nSELECT count(*) FROM tq.claim_work('p/quiet', 'g', 'w', 1, '30 s');\n");
	$node->poll_query_until($db, "SELECT count(*) = 1 FROM ($waiter) AS w") or die 'no session waits';
	my $process = $node->safe_psql($db, $waiter);
	my $before = switches($process);
	$node->safe_psql($db, "ALTER TABLE $table SET (fillfactor = $_)") foreach 51 .. 70;
	my $wakes = switches($process) - $before;
	$node->safe_psql($db, "SELECT pg_cancel_backend($process)");
	$wait->quit;
	return $wakes;
}
SKIP:
{
	skip 'no /proc', 2 unless -r "/proc/$$/status";
	$node->safe_psql($db, 'CREATE SCHEMA other; CREATE TABLE other.pending (a int)');
	my $quiet = wakes_while_waiting('other.pending');
	my $awake = wakes_while_waiting('tq_internal.pending');
	note("wake-ups: $quiet, $awake");
	cmp_ok($quiet, '<', 10, 'ALTER TABLE on another table named pending wakes no session');
	cmp_ok($awake, '>=', 15, 'ALTER TABLE on tq_internal.pending wakes each time');
}

# A schema tq that is there before the extension.
sub create_in
{
	my ($database, $setup, $role) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, $setup);
	my ($code, $out, $error) = $node->psql($database, "SET ROLE $role; CREATE EXTENSION tq",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $code == 0 ? "created $error" : $error;
}
my $answer = create_in('taken', 'CREATE SCHEMA tq AUTHORIZATION guest', 'postgres');
like($answer, qr/ERROR:  42501: schema "tq" is owned by another role/, 'a schema of a role without rights is refused');
like($answer, qr/DETAIL: .*"guest"/, 'the error names the role');
like($answer, qr/HINT: /, 'and says what to do');
is($node->safe_psql('taken', "SELECT count(*) FROM pg_extension WHERE extname = 'tq'"), 0, 'nothing was made');
like(create_in('own', 'CREATE SCHEMA tq', 'postgres'), qr/^created/, 'a schema of the caller is used');
$node->safe_psql('postgres', 'CREATE ROLE root2 SUPERUSER');
like(create_in('super', 'CREATE SCHEMA tq AUTHORIZATION root2', 'postgres'), qr/^created/, 'a schema of a superuser is used');

like(create_in('open', 'CREATE SCHEMA tq; GRANT CREATE ON SCHEMA tq TO guest', 'postgres'),
	qr/ERROR:  42501: another role may create objects in schema "tq".*DETAIL: [^\n]*guest.*HINT: [^\n]*REVOKE CREATE ON SCHEMA tq FROM guest/s,
	'a schema in which another role may create objects is refused');
like(create_in('planted', 'CREATE SCHEMA tq; CREATE FUNCTION tq.format(text, int) RETURNS text LANGUAGE sql AS $$ SELECT $1 $$', 'postgres'),
	qr/ERROR:  55000: schema "tq" is not empty.*DETAIL: [^\n]*format\(text,integer\).*HINT: /s, 'a schema in which something is left is refused');

# why() shows the statements of other sessions to those who see them in pg_stat_activity.
my $locked = enqueue($node, $db);
my $holder = session_as('postgres', $db, 'BEGIN');
$holder->query_safe("SELECT tq.claim_task('$locked', 0, 'g', 'secret-name')");
my $why = "SELECT string_agg(reason || ' ' || detail, '; ') FROM tq.why('$locked')";
$node->safe_psql($db, "SELECT tq.grant_scopes('guest', '{queue:status:*}'); GRANT pg_read_all_stats TO maker; SELECT tq.grant_scopes('maker', '{queue:status:*}')");
like($node->safe_psql($db, $why), qr/locked by process \d+.*query: SELECT tq\.claim_task/, 'why() shows a superuser the query of the session that has locked a task');
like($node->safe_psql($db, "SET ROLE maker; $why"), qr/query: SELECT tq\.claim_task/, 'and to a member of pg_read_all_stats');
my $hidden = $node->safe_psql($db, "SET ROLE guest; $why");
like($hidden, qr/locked by process \d+/, 'others see which session it is');
unlike($hidden, qr/query/, 'but not its query');
$holder->query('ROLLBACK');
$holder->quit;

# A session whose role is dropped has no scopes any more.
$node->safe_psql($db, "CREATE ROLE leaver LOGIN; SELECT tq.grant_queue('leaver', 'p/*', 'produce')");
my $leaver = $node->background_psql($db, on_error_stop => 0, extra_params => [ '-U', 'leaver' ]);
is($leaver->query("SELECT tq.enqueue('p/left') IS NOT NULL"), 't', 'a role that may create a task');
$node->safe_psql($db, 'DROP ROLE leaver');
is($leaver->query("SELECT tq.enqueue('p/left') IS NOT NULL"), '', 'its session may not when it has been dropped');
is($leaver->query('SELECT tq.current_scopes()'), '{}', 'it has no scopes');
$leaver->quit;
is($node->safe_psql($db, "SELECT tq.task_queue_counts('p/left') ->> 'pendingTasks'"), 1, 'nothing was created');

# A role tq_admin that is there before the extension.
unlike(create_in('plain', 'SELECT 1', 'postgres'), qr/WARNING/, 'tq_admin as tq made it: no warning');
like(create_in('login', 'ALTER ROLE tq_admin LOGIN', 'postgres'),
	qr/^created .*WARNING: .*role "tq_admin" exists and can log in/s, 'tq_admin that can log in: a warning');
$node->safe_psql('postgres', 'ALTER ROLE tq_admin NOLOGIN; GRANT tq_admin TO guest WITH ADMIN OPTION');
like(create_in('granted', 'SELECT 1', 'postgres'),
	qr/^created .*WARNING: .*can be granted by role "guest"/s, 'tq_admin that a role may grant: a warning');
$node->safe_psql('postgres', 'REVOKE tq_admin FROM guest; GRANT tq_worker TO guest');
unlike(create_in('second', 'SELECT 1', 'postgres'), qr/WARNING/, 'members of a role that tq has made are meant: no warning');
my $members = create_in('members', 'COMMENT ON ROLE tq_worker IS NULL', 'postgres');
like($members, qr/^created .*WARNING: .*role "tq_worker" exists and has members.*DETAIL: [^\n]*guest/s, 'a role with members: a warning that names them');
unlike($members, qr/WARNING.*WARNING/s, 'and no more');
$node->safe_psql('postgres', 'REVOKE tq_worker FROM guest; GRANT tq_admin TO root2 WITH ADMIN OPTION');
unlike(create_in('granted2', 'SELECT 1', 'postgres'), qr/WARNING/, 'a superuser may grant it: no warning');

served('in the end');
is(worker_in($node, $db), $pid, 'by the same maintenance worker');
my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC:|was terminated by signal|TRAP:/, 'nothing crashed');
$node->stop;

done_testing();
