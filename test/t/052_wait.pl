# Workers that wait for work: who is woken, by what, and how a wait ends.
#
# A waiter that is not woken looks by itself after 10 seconds.  So a wake-up
# must come sooner than that, or it was none.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq qw(:DEFAULT start finish);
use Time::HiRes qw(time usleep);

my $SOON = 8;
my $db = 'postgres';
my $node = new_node('wait', 'max_connections = 300', 'shared_buffers = 16MB',
	'log_min_duration_statement = -1', "log_statement = 'none'");

# ---- waiters: each a session of its own ----

my @sessions;

# It is used throughout the test: its time is that of one query.
sub new_session
{
	my (%option) = @_;
	my $session = $node->background_psql($db, on_error_stop => 0, %option);

	$session->set_query_timer_restart;
	push @sessions, $session;
	return $session;
}

# End it, whatever has become of it.
sub leave
{
	my ($session) = @_;

	$session->{timeout}->start;
	eval { $session->quit };
	return;
}

# The output of one that must have been woken: what it got, and whether it was.
sub is_woken
{
	my ($session, $expected, $what) = @_;
	my $output = finish($session);

	is($output, $expected, $what);
	cmp_ok(time - $session->{begun}, '<', $SOON, "$what, without looking by itself");
	return;
}

sub claim
{
	my ($worker, %option) = @_;

	return sprintf(q{SELECT worker_id FROM tq.claim_work('%s', 'g', '%s', %d, '%s')},
		$option{queue} // 'p/w', $worker, $option{tasks} // 1, $option{wait} // '60 s');
}

my $sleepers = q{FROM pg_stat_activity WHERE backend_type = 'client backend'
	AND state = 'active' AND wait_event_type = 'Extension'};

# Wait until so many sleep in tq.
sub asleep
{
	my ($n, $where) = @_;

	$where //= $node;
	return $where->poll_query_until($db, "SELECT count(*) = $n $sleepers")
	  || die "there are not $n sleepers";
}

# Begin a statement in which the session sleeps; $n do then.
sub start_waiting
{
	my ($n, $session, $sql) = @_;

	start($session, $sql);
	return asleep($n);
}

# Stop a session while it sleeps, as $n do, so that it cannot look by itself.
sub stop_asleep
{
	my ($n, $session) = @_;

	kill 'STOP', $session->{pid};
	until ($node->safe_psql($db, "SELECT count(*) = $n $sleepers") eq 't')
	{
		kill 'CONT', $session->{pid};
		asleep($n);
		kill 'STOP', $session->{pid};
	}
	return;
}

# A session that waits, and sleeps already; $n do then.
sub waiter
{
	my ($n, $sql, %option) = @_;
	my $session = new_session();

	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_safe($option{first}) if $option{first};
	start_waiting($n, $session, $sql);
	return $session;
}

# Read what a session says of errors, until it says that or ends.
sub read_errors
{
	my ($session, $message) = @_;

	$session->{timeout}->start;
	eval { $session->{run}->pump until $session->{stderr} =~ $message };
	return;
}

# How often a process has gone to sleep so far; undef where the system does not
# count that.
sub sleeps_of
{
	my ($pid) = @_;

	open(my $file, '<', "/proc/$pid/status") or return;
	local $/ = undef;
	return <$file> =~ /^voluntary_ctxt_switches:\s*(\d+)/m ? $1 : undef;
}

# It has not been woken since, unless so long ago that it may have looked.
sub is_undisturbed
{
	my ($session, $sleeps, $what) = @_;

  SKIP:
	{
		skip 'the system does not count wake-ups', 1 unless defined $sleeps;
		skip 'too slow', 1 if time - $session->{begun} > $SOON;
		is(sleeps_of($session->{pid}), $sleeps, $what);
	}
	return;
}

sub new_task
{
	my (@arguments) = @_;

	return enqueue($node, $db, @arguments);
}

# Nothing is left for the next test.
sub clear
{
	$node->safe_psql($db, 'TRUNCATE tq_internal.task, tq_internal.task_group, tq_internal.unscheduled, tq_internal.pending, tq_internal.delayed, tq_internal.run, tq_internal.dependency, tq_internal.claim_timer, tq_internal.timer');
	return;
}

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/w', 'g', 'first')");

# ---- k tasks wake k, the longest first ----

my $a = waiter(1, claim('a'));
my $b = waiter(2, claim('b'));
my $c = waiter(3, claim('c'));
my $other = waiter(4, claim('other', queue => 'p/other'));
my ($sleeps, $others) = (sleeps_of($c->{pid}), sleeps_of($other->{pid}));
is($node->safe_psql($db, "SELECT count(backend_xid) $sleepers"), 0, 'a waiter has no transaction id');
$node->safe_psql($db, "BEGIN; SELECT FROM tq.enqueue('p/w'); SELECT FROM tq.enqueue('p/w'); COMMIT");
is_woken($a, 'a', 'two tasks wake the first');
is_woken($b, 'b', 'and the second');
asleep(2);
is_undisturbed($c, $sleeps, 'but not the third');
new_task();
is_woken($c, 'c', 'a third task wakes the third');
is_undisturbed($other, $others, 'and none of them the waiter of another queue');
$node->safe_psql($db, "SELECT tq.enqueue('p/other')");
is_woken($other, 'other', 'which is woken by a task of its queue');

# One that was woken in vain keeps its place in the wait queue.  Its clock is a day ahead,
# so that the first task is past its deadline.
start_waiting(1, $a, "SET tq.clock_offset = '1 day'; " . claim('a') . "; RESET tq.clock_offset");
start_waiting(2, $b, claim('b'));
$sleeps = sleeps_of($a->{pid});
new_task("deadline => '1 hour'");
SKIP:
{
	skip 'the system does not count wake-ups', 5 unless defined $sleeps;
	usleep(1000) until sleeps_of($a->{pid}) > $sleeps || time - $a->{begun} > $SOON;
	asleep(2);
	stop_asleep(2, $a);
	$sleeps = sleeps_of($b->{pid});
	new_task("deadline => '5 days'");
	kill 'CONT', $a->{pid};
	is_woken($a, 'a', 'woken in vain, it keeps its place');
	is_undisturbed($b, $sleeps, 'and the other sleeps on');
}
finish($a) unless defined $sleeps;
new_task();
is_woken($b, 'b', 'and the other is next');
clear();

# The task is locked when its waiter claims, and unlocked then.
start_waiting(1, $a, claim('a'));
$sleeps = sleeps_of($a->{pid});
kill 'STOP', $a->{pid};
new_task();
$b->query_safe('BEGIN; SELECT FROM tq_internal.pending FOR UPDATE');
kill 'CONT', $a->{pid};
SKIP:
{
	skip 'the system does not count wake-ups', 2 unless defined $sleeps;
	usleep(1000) until sleeps_of($a->{pid}) > $sleeps || time - $a->{begun} > $SOON;
	$b->query_safe('COMMIT');
	is_woken($a, 'a', 'a task that was locked for a moment');
}
$b->query_safe('COMMIT') unless defined $sleeps;
finish($a) unless defined $sleeps;
clear();

# A session that creates a dependent locks the task before its waiter claims, and
# unlocks it then.
foreach my $end (qw(COMMIT ROLLBACK))
{
	my $required = new_task();

	$b->query_safe("BEGIN; SELECT tq.enqueue('p/after', dependencies => ARRAY['$required']::tq.slugid[])");
	start_waiting(1, $a, claim('a'));
	$b->query_safe($end);
	is_woken($a, 'a', "a task that was required, $end");
}
clear();

# A waiter takes as much as it asked for.
start_waiting(1, $a, claim('a', tasks => 10));
$node->safe_psql($db, "DO \$\$ BEGIN FOR i IN 1 .. 4 LOOP PERFORM tq.enqueue('p/w'); END LOOP; END \$\$");
is_woken($a, "a\na\na\na", 'several at once');

# Savepoints and blocks of PL/pgSQL that fail.
start_waiting(1, $a, 'BEGIN; SAVEPOINT s; ' . claim('a') . '; ROLLBACK TO s; ' . claim('a', wait => '1 s') . '; COMMIT');
new_task();
is_woken($a, "a\na", 'what a savepoint claimed and gave back is claimed again');
start($a, q{DO $$ BEGIN
	BEGIN
		PERFORM tq.claim_work('p/w', 'g', 'a', wait => '60 s');
	EXCEPTION WHEN query_canceled THEN
		NULL;
	END;
	PERFORM tq.claim_work('p/w', 'g', 'a', wait => '60 s');
END $$; SELECT 'done'});
asleep(1);
start_waiting(2, $b, claim('b'));
$sleeps = sleeps_of($a->{pid}) // 0;
$node->safe_psql($db, "SELECT pg_cancel_backend($a->{pid})");
SKIP:
{
	skip 'the system does not count wake-ups', 1 unless $sleeps;
	usleep(1000) until sleeps_of($a->{pid}) > $sleeps || time - $b->{begun} > $SOON;
	asleep(2);
	new_task();
	is_woken($b, 'b', 'a session that catches the cancel of its wait waits again, behind others');
}
new_task();
is_woken($a, 'done', 'and is woken after them');
finish($b) unless $sleeps;
clear();

# ---- ends of a wait ----

my $begun = time;
start($a, claim('a', wait => '200 ms'));
is(finish($a), '', 'the time is over: no rows');
cmp_ok(time - $begun, '>=', 0.2, 'not before');
is($node->safe_psql($db, "SELECT tq.get_worker('p/w', 'g', 'a') IS NOT NULL"), 't', 'the worker was seen');

start($a, "SET statement_timeout = '200 ms'; " . claim('a') . '; RESET statement_timeout');
is(finish($a), '', 'statement_timeout ends a wait');
like($a->{stderr}, qr/canceling statement due to statement timeout/, 'with its message');
$a->{stderr} = '';

# One that was woken, and ends before it has claimed, passes the task on.  Its
# process is stopped meanwhile, so that both meet.
foreach my $case (
	[ 'cancel', 'SELECT pg_cancel_backend(%d)', qr/canceling statement due to user request/ ],
	[ 'pg_terminate_backend', 'SELECT pg_terminate_backend(%d)', qr/terminating connection/ ])
{
	my ($name, $sql, $message) = @$case;

	$a = waiter(1, claim('a'));
	start_waiting(2, $b, claim('b'));
	kill 'STOP', $a->{pid};
	new_task();
	$node->safe_psql($db, sprintf($sql, $a->{pid}));
	kill 'CONT', $a->{pid};
	is_woken($b, 'b', "$name after the wake-up: the next gets the task");
	read_errors($a, $message);
	like($a->{stderr}, $message, "$name ends with its message");
	leave($a);
}

# The same by statement_timeout, in a block that goes on.
$a = waiter(1, q{DO $$ BEGIN PERFORM tq.claim_work('p/w', 'g', 'a', wait => '60 s');
	EXCEPTION WHEN query_canceled THEN PERFORM pg_advisory_lock(1); END $$}, first => "SET statement_timeout = '3 s'");
kill 'STOP', $a->{pid};
$c->query_safe('SELECT pg_advisory_lock(1)');
start_waiting(2, $b, claim('b'));
new_task();
usleep(10_000) until time - $a->{begun} > 3.1;
kill 'CONT', $a->{pid};
is_woken($b, 'b', 'statement_timeout that is caught after the wake-up: the next gets the task');
$c->query_safe('SELECT pg_advisory_unlock(1)');
finish($a);
$a->query_safe('RESET statement_timeout; SELECT pg_advisory_unlock_all()');

# The client is gone: the session ends before it claims.
my $gone = waiter(1, claim('gone'));
start_waiting(2, $b, claim('b'));
$gone->{run}->signal('KILL');
eval { $gone->{run}->finish };
new_task();
is_woken($b, 'b', 'a waiter whose client is gone claims nothing');
ok( $node->poll_query_until($db, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $gone->{pid}"),
	'its session ends');

# The setting by which the server looks for its client stays that of the session.
foreach my $interval ('0', '1h')
{
	$a->query_safe("SET client_connection_check_interval = '$interval'");
	start_waiting(1, $a, claim('a') . '; SHOW client_connection_check_interval');
	new_task();
	is_woken($a, "a\n$interval", "client_connection_check_interval = $interval");
}
$a->query_safe('RESET client_connection_check_interval');

# A worker in quarantine waits for its whole time, gets nothing, and delays no
# other worker.
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/w', 'g', 'q'); SELECT tq.quarantine_worker('p/w', 'g', 'q', now() + interval '1 hour', 'test')");
start_waiting(1, $a, claim('q', wait => '3 s'));
start_waiting(2, $b, claim('b'));
new_task();
is_woken($b, 'b', 'a worker in quarantine is passed over');
new_task();
is(finish($a), '', 'and gets nothing');
cmp_ok(time - $a->{begun}, '>=', 3, 'in all its time');
clear();
# Quarantine begins while it sleeps.
start_waiting(1, $c, claim('c', wait => '30 s'));
start_waiting(2, $b, claim('b'));
$node->safe_psql($db, "SELECT tq.quarantine_worker('p/w', 'g', 'c', now() + interval '1 hour', 'test')");
new_task();
is_woken($b, 'b', 'also one that has come into it since');
$node->safe_psql($db, "SELECT tq.quarantine_worker('p/w', 'g', 'c', now() - interval '1 hour', 'test')");
new_task();
is_woken($c, 'c', 'and is served once it is out of it');

# ---- what wakes ----

# A queue that is not used yet: a waiter does not block the session that creates it.
start_waiting(1, $a, claim('n', queue => 'p/new'));
$node->safe_psql($db, "SET statement_timeout = '5 s'; SELECT tq.enqueue('p/new')");
is_woken($a, 'n', 'the first task of a new queue');
start_waiting(1, $a, claim('n', queue => 'p/newer'));
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/newer', 'g', 'x')");
$node->safe_psql($db, "SELECT tq.enqueue('p/newer')");
is_woken($a, 'n', 'a queue that became known without a task');

start_waiting(1, $a, claim('d'));
my $parent = $node->safe_psql($db, "SELECT tq.enqueue('p/parent')");
new_task("dependencies => ARRAY['$parent']::tq.slugid[]");
asleep(1);
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/parent', 'g', 'x'); SELECT tq.report_completed('$parent', 0)");
is_woken($a, 'd', 'a dependency that is met');

my $id = new_task();
$node->safe_psql($db, "SET tq.claim_timeout = '500ms'; SELECT FROM tq.claim_work('p/w', 'g', 'x')");
start($a, claim('e'));
is_woken($a, 'e', 'the retry after a claim has expired');
$node->safe_psql($db, "SELECT tq.report_completed('$id', 1)");

$id = new_task();
$node->safe_psql($db, "SELECT FROM tq.claim_work('p/w', 'g', 'x')");
start_waiting(1, $a, claim('r'));
$node->safe_psql($db, "SELECT tq.report_exception('$id', 0, 'worker-shutdown')");
is_woken($a, 'r', 'the retry after worker-shutdown');
$node->safe_psql($db, "SELECT tq.report_failed('$id', 1)");
start_waiting(1, $a, claim('r'));
$node->safe_psql($db, "SELECT tq.rerun_task('$id')");
is_woken($a, 'r', 'a rerun');

# A delayed run, once upkeep finds it due.
new_task();
$node->safe_psql($db, q{WITH p AS (DELETE FROM tq_internal.pending RETURNING *)
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT clock_timestamp() + '1 hour', task, scheduled, queue, priority, run_id, retries_left, reason_created FROM p});
start_waiting(1, $a, claim('l'));
$node->safe_psql($db, "SET tq.clock_offset = '2 hours'; SELECT tq.upkeep()");
is_woken($a, 'l', 'a delayed run that is due');
clear();

# Rows that a restore, or a DBA, writes.
new_task();
$node->safe_psql($db, 'CREATE TABLE spare AS SELECT * FROM tq_internal.pending; DELETE FROM tq_internal.pending');
start_waiting(1, $a, claim('i'));
$node->safe_psql($db, 'INSERT INTO tq_internal.pending SELECT * FROM spare; DROP TABLE spare');
is_woken($a, 'i', 'a row that is written by hand');
clear();

# ---- many ----

# As many waiters as 256, and tasks one by one: each wakes one process.
my $clients = 256;
my $tasks = 20;
my $script = $node->basedir . '/wait.sql';
append_to_file($script, "SELECT FROM tq.claim_work('p/w', 'g', 'w' || :client_id, 1, '60 s');\n");
my ($out, $err) = ('', '');
my $bench = IPC::Run::start(
	[ 'pgbench', '-n', '-c', $clients, '-j', 1, '-t', 1, '-f', $script, $node->connstr($db) ],
	'<', \undef, '>', \$out, '2>', \$err);
asleep($clients);
my $all = sub { return split /\n/, $node->safe_psql($db, "SELECT pid $sleepers") };
my %sleeps = map { $_ => sleeps_of($_) // 0 } $all->();
$begun = time;
foreach my $i (1 .. $tasks)
{
	new_task();
	asleep($clients - $i);
}
my $lasted = time - $begun;
my @left = $all->();
my $disturbed = 0;
$disturbed += (sleeps_of($_) // 0) - $sleeps{$_} foreach @left;
note("$tasks tasks in $lasted s; the others went to sleep $disturbed times");
is(scalar(@left), $clients - $tasks, 'a task for each');
# They look by themselves, each every 10 seconds, and then sleep a few times.
cmp_ok($disturbed, '<', @left * ($tasks / 4 + $lasted / 2), 'a task does not wake them all');
$node->safe_psql($db, "SELECT count(tq.enqueue('p/w')) FROM generate_series(1, $clients - $tasks)");
$bench->finish;
is($bench->result(0), 0, 'all of them have got one') or diag($err);
is($node->safe_psql($db, 'SELECT count(*) FROM tq_internal.run WHERE state = 2'), $clients, 'each another');
is(violations($node, $db), '', 'all is well');
clear();

# ---- wait_for_work ----

sub call
{
	my ($queue, $wait) = @_;

	return "CALL tq.wait_for_work('$queue'" . (defined $wait ? ", '$wait'" : '') . ')';
}

$begun = time;
start($a, call('p/w', '200 ms') . "; SELECT 'over'");
is(finish($a), 'over', 'wait_for_work ends when the time is over');
cmp_ok(time - $begun, '>=', 0.2, 'not before');
start_waiting(1, $a, call('p/called') . "; SELECT 'woken'");
is($node->safe_psql($db, "SELECT num_nonnulls(backend_xmin, backend_xid) $sleepers"),
	0, 'wait_for_work holds no snapshot and no transaction id');
is($node->safe_psql($db, "SELECT count(*) FROM pg_locks JOIN pg_class c ON c.oid = relation WHERE relnamespace = 'tq_internal'::regnamespace AND pid = $a->{pid}"),
	0, 'and no lock');
$node->safe_psql($db, "SET statement_timeout = '5 s'; SELECT tq.enqueue('p/called')");
is_woken($a, 'woken', 'a task wakes it');
start($a, call('p/called') . "; SELECT 'there'");
is_woken($a, 'there', 'there is one already');

# What it was woken for, it claims; and if it never does, the next is woken.
$a = waiter(1, call('p/w'));
start_waiting(2, $b, claim('b'));
$sleeps = sleeps_of($b->{pid});
new_task();
is_woken($a, '', 'the longest waiter is woken, however it waits');
is($a->query_safe(claim('a', wait => '0')), 'a', 'and claims');
is_undisturbed($b, $sleeps, 'while the other sleeps on');
leave($a);
ok($node->poll_query_until($db, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $a->{pid}"), 'then it ends');
is_undisturbed($b, $sleeps, 'and has nothing to be passed on');
$a = waiter(2, call('p/w'));
start_waiting(3, $c, claim('c'));
new_task();
is_woken($b, 'b', 'the one that has waited longer');
new_task();
is_woken($a, '', 'then the caller of wait_for_work');
leave($a);
is_woken($c, 'c', 'which ends without a claim: the next has it');
$a = waiter(1, call('p/w'));
start_waiting(2, $b, claim('b'));
new_task();
finish($a);
start($a, call('p/other', '1 s'));
is_woken($b, 'b', 'one that waits for another queue then passes it on');
finish($a);
start_waiting(1, $a, call('p/w'));
start_waiting(2, $b, claim('b'));
kill 'STOP', $a->{pid};
new_task();
$node->safe_psql($db, "SELECT pg_cancel_backend($a->{pid})");
kill 'CONT', $a->{pid};
is_woken($b, 'b', 'cancel of wait_for_work after the wake-up');
finish($a);
$a->{stderr} = '';
clear();

# Where it cannot be called.
foreach my $case (
	[ 'a transaction block', 'BEGIN; ' . call('p/w') ],
	[ 'a function', 'CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN ' . call('p/w') . '; END $$; SELECT f()' ],
	[ 'a block with exceptions', 'DO $$ BEGIN ' . call('p/w') . q{; EXCEPTION WHEN division_by_zero THEN NULL; END $$} ],
	[ 'a procedure with settings', 'CREATE PROCEDURE s() LANGUAGE plpgsql SET work_mem = 100 AS $$ BEGIN ' . call('p/w') . '; END $$; CALL s()' ])
{
	my ($name, $sql) = @$case;
	my ($ret, $stdout, $stderr) = $node->psql($db, "\\set VERBOSITY verbose\n$sql");

	like($stderr, qr/TQ400: +tq.wait_for_work\(\) cannot run inside a transaction block/, "not in $name");
	like($stderr, qr/HINT: .*claim_work/, 'with a hint');
}
is($node->safe_psql($db, 'CREATE PROCEDURE again(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. n LOOP '
		. call('p/w', '10 ms') . "; END LOOP; END \$\$; CALL again(3); SELECT 'done'"),
	'done', 'but in a procedure');

# A caller without rights on any table, whose objects try to mislead it.
$node->safe_psql($db, q{
	CREATE ROLE low LOGIN IN ROLE tq_admin;
	CREATE SCHEMA low AUTHORIZATION low;
	CREATE ROLE nobody LOGIN});
my $low = new_session(extra_params => [ '-U', 'low' ]);
$low->query_safe(q{
	CREATE FUNCTION low.trap(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
	CREATE OPERATOR low.= (LEFTARG = text, RIGHTARG = text, FUNCTION = low.trap);
	CREATE TABLE low.queue (id int, task_queue_id text);
	SET search_path = low, pg_catalog});
start_waiting(1, $low, call('p/low') . '; SELECT current_user, current_schema');
is($node->safe_psql($db, "SELECT usename $sleepers"), 'low', 'it waits as the caller');
$node->safe_psql($db, "SELECT tq.enqueue('p/low')");
is_woken($low, 'low|low', 'a caller without rights on the tables; its rights and path are its own afterwards');
is($low->query_safe(q{CREATE TEMP TABLE seen (schema text);
		DO $$ BEGIN CALL tq.wait_for_work('p/low'); INSERT INTO pg_temp.seen VALUES (current_schema); END $$;
		SELECT * FROM seen}), 'low', 'in the same transaction, too');
$low->query('SELECT FROM tq_internal.pending');
like($low->{stderr}, qr/permission denied for table pending/, 'it still has none');
$low->{stderr} = '';
my ($ret, $stdout, $stderr) = $node->psql($db, call('p/w'), extra_params => [ '-U', 'nobody' ]);
like($stderr, qr/scopes are not sufficient/, 'not for every role');

# An error while it looks, with the owner's rights, gives them up.
$node->safe_psql($db, "ALTER TABLE tq_internal.queue ADD CONSTRAINT broken CHECK (task_queue_id <> 'p/broken')");
($ret, $stdout, $stderr) = $node->psql($db, call('p/broken') . ";\nSELECT current_user, current_setting('search_path')",
	extra_params => [ '-U', 'low' ], on_error_stop => 0);
$node->safe_psql($db, 'ALTER TABLE tq_internal.queue DROP CONSTRAINT broken');
like($stderr, qr/violates check constraint "broken"/, 'an error while it looks');
like($stdout, qr/^low\|"\$user", public$/, 'the caller is who it was');
clear();

# ---- where no waiting can help ----

foreach my $level ('REPEATABLE READ', 'SERIALIZABLE')
{
	($ret, $stdout, $stderr) = $node->psql($db, "\\set VERBOSITY verbose\nBEGIN ISOLATION LEVEL $level; " . claim('a'));
	like($stderr, qr/TQ400: /, "no wait under $level");
}
is($node->safe_psql($db, 'BEGIN ISOLATION LEVEL REPEATABLE READ; ' . claim('a', wait => '0') . '; COMMIT'),
	'', 'but without a wait');
$begun = time;
($ret, $stdout, $stderr) = $node->psql($db, 'BEGIN READ ONLY; ' . claim('a'));
like($stderr, qr/read-only transaction/, 'not read-only');
cmp_ok(time - $begun, '<', $SOON, 'which is said at once');

$node->backup('standby');
my $standby = PostgreSQL::Test::Cluster->new('wait_standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->start;
$begun = time;
foreach my $sql (claim('a'), claim('new', queue => 'p/unheard'), call('p/w'), call('p/unheard'))
{
	($ret, $stdout, $stderr) = $standby->psql($db, $sql);
	like($stderr, qr/read-only transaction|during recovery/, 'not on a standby');
}
cmp_ok(time - $begun, '<', $SOON, 'which is said at once');
$standby->stop;

# ---- what a commit publishes that wakes a waiter ----

my $last_id = $node->safe_psql($db, 'SELECT last_value FROM tq_internal.message_id_seq');
my $waiting = waiter(1, claim('a'));
my $published = new_task();
is_woken($waiting, 'a', 'a task whose messages are published');
ok($node->poll_query_until($db, qq{SELECT string_agg(exchange, ' ' ORDER BY id) = 'task-defined task-pending task-running'
	FROM tq.messages(after => $last_id) WHERE payload -> 'status' ->> 'taskId' = '$published'}),
	'the messages of the task, and of the claim that they have woken');
leave($waiting);
clear();

# ---- shutdown ----

sub is_over
{
	my ($where, @sessions) = @_;
	my $start = time;

	ok($where->stop('fast', fail_ok => 1), 'fast shutdown');
	cmp_ok(time - $start, '<', $SOON, 'in time');
	foreach (@sessions)
	{
		read_errors($_, qr/terminating connection/);
		like($_->{stderr}, qr/terminating connection/, 'a waiter gets the message of the shutdown');
		leave($_);
	}
	return;
}

leave($_) foreach @sessions;
is_over($node, waiter(1, claim('a')), waiter(2, claim('b', queue => 'p/unheard')), waiter(3, call('p/w')));

# A smart one waits for the sessions: a wait ends in its time, without an error.
$node->start;
my @patient = map { { sql => $_, out => '', err => '' } }
  (claim('a', wait => '4 s'), claim('b', queue => 'p/unheard', wait => '4 s'), call('p/w', '4 s'));
$_->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($db), '-c', $_->{sql} ], '>', \$_->{out}, '2>', \$_->{err})
  foreach @patient;
asleep(3);
$begun = time;
ok($node->stop('smart', fail_ok => 1), 'smart shutdown');
cmp_ok(time - $begun, '<', $SOON, 'in time');
foreach (@patient)
{
	ok($_->{run}->finish, 'a waiter ends without an error');
	is($_->{out} . $_->{err}, '', 'in vain');
}

# ---- two phases: the ends of prepared transactions ----

$node->append_conf('postgresql.conf', 'max_prepared_transactions = 5');
$node->start;
$a = waiter(1, claim('p'));
$node->safe_psql($db, "BEGIN; SELECT FROM tq.enqueue('p/w'); PREPARE TRANSACTION 'p'");
asleep(1);
$node->safe_psql($db, "COMMIT PREPARED 'p'");
is_woken($a, 'p', 'COMMIT PREPARED of a task');
new_task();
$node->safe_psql($db, "BEGIN; SELECT FROM tq.claim_work('p/w', 'g', 'x'); PREPARE TRANSACTION 'p'");
start_waiting(1, $a, claim('p'));
$node->safe_psql($db, "ROLLBACK PREPARED 'p'");
is_woken($a, 'p', 'ROLLBACK PREPARED of a claim');
clear();
leave($a);
$node->stop;

# ---- without shared_preload_libraries there is no wake-up: a waiter polls ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
$a = waiter(1, claim('a'));
new_task();
is_woken($a, 'a', 'claim_work without preload');
start_waiting(1, $a, claim('a', queue => 'p/late'));
$node->safe_psql($db, "SELECT tq.enqueue('p/late')");
is_woken($a, 'a', 'also of a new queue');
start_waiting(1, $a, call('p/w'));
new_task();
is_woken($a, '', 'wait_for_work without preload');
clear();
leave($a);
is_over($node, waiter(1, claim('a')), waiter(2, call('p/w')));

done_testing();
