# What one caller may cost, as a superuser has set it for a role: which sessions the
# limits hold for, that the role cannot raise them, and how many sessions may wait.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

our $db = 'postgres';
my $node;

sub session_of
{
	my ($role) = @_;

	return $node->background_psql($db, on_error_stop => 0, extra_params => [ '-U', $role ]);
}

# What a statement answers in a session: its rows, or the SQLSTATE.
sub answer
{
	my ($session, $statement) = @_;
	my ($rows, $state) = split /\n?state /, $session->query("$statement;\n\\echo state :SQLSTATE");

	return $state eq '00000' ? $rows // '' : $state;
}

# The same in a session of its own.
sub answer_of
{
	my ($role, @statements) = @_;
	my $session = session_of($role);
	my $result;

	$result = answer($session, $_) foreach @statements;
	$session->quit;
	return $result;
}

sub prepare
{
	$node->safe_psql($db, q{
		CREATE EXTENSION IF NOT EXISTS tq;
		CREATE ROLE guest LOGIN IN ROLE tq_producer, tq_worker;
		CREATE ROLE member LOGIN IN ROLE guest;
		CREATE ROLE other LOGIN IN ROLE tq_producer, tq_worker;
		GRANT guest TO other;
		ALTER ROLE guest SET tq.max_batch = 2;
		ALTER ROLE guest SET tq.max_payload = 2000;
		ALTER ROLE guest SET tq.max_waiters = 2});
	return;
}

my $three = q{SELECT cardinality(tq.enqueue_tasks('p/w', '{"{}","{}","{}"}'))};

# ---- settings of a role, with and without the preload ----

sub check_roles
{
	my ($what) = @_;

	is(answer_of('guest', $three), 'TQ400', "$what: the limit of a role holds");
	is(answer_of('guest', q{SELECT tq.enqueue('p/w', jsonb_build_object('a', repeat('x', 3000)))}), 'TQ400', "$what: another limit, too");
	is(answer_of('guest', q{SELECT cardinality(tq.enqueue_tasks('p/w', '{"{}","{}"}'))}), 2, "$what: and lets pass what is below it");
	is(answer_of('other', $three), 3, "$what: not for another role");
	is(answer_of('member', $three), 3, "$what: nor for a member of the role");
	is(answer_of('other', 'SET ROLE guest', $three), 3, "$what: nor after SET ROLE, as with every setting");
	is(answer_of('member', 'SET ROLE guest', 'RESET ROLE', $three), 3, "$what: and back");

	# In the first statement of a session the library may not be loaded.
	is(answer_of('guest', 'SET tq.max_batch = 10', $three), 'TQ400', "$what: SET first");
	is(answer_of('guest', q{SELECT tq.slugid() IS NOT NULL}, 'SET tq.max_batch = 10'), '42501', "$what: SET is refused");
	is(answer_of('guest', 'BEGIN', 'SET LOCAL tq.max_batch = 10', $three), $what =~ /without/ ? 'TQ400' : '25P02', "$what: SET LOCAL first");
	is(answer_of('guest', q{SELECT set_config('tq.max_batch', '10', false)}, $three), 'TQ400', "$what: set_config() first");
	is(answer_of('guest', 'SET tq.max_batch = 10', 'RESET tq.max_batch', $three), 'TQ400', "$what: SET and RESET");
	is(answer_of('guest', 'RESET ALL', $three), 'TQ400', "$what: RESET ALL");
	is(answer_of('guest', 'DISCARD ALL', $three), 'TQ400', "$what: DISCARD ALL");
	is(answer_of('guest', 'RESET tq.max_batch', $three), 'TQ400', "$what: RESET");
	foreach my $statement ('ALTER ROLE guest SET tq.max_batch = 10', 'ALTER ROLE guest RESET tq.max_batch', 'ALTER ROLE guest RESET ALL',
		'ALTER ROLE guest IN DATABASE postgres SET tq.max_batch = 10')
	{
		answer_of('guest', $statement);
		is(answer_of('guest', $three), 'TQ400', "$what: $statement");
	}
	# The server refuses the connection, or the library each call.  A psql that is refused
	# may end before it reads its input.
	foreach my $options ('-c tq.max_batch=10', '-ctq.max_batch=10', '--tq.max_batch=10', '--tq.max-batch=10', '--TQ.Max_Batch=10', '-c\\ tq.max_batch=10 -c tq\\.max_batch=10')
	{
		local $ENV{PGOPTIONS} = $options;
		my ($code, $out, $error) = $node->psql($db, '', extra_params => [ '-U', 'guest', '-c', $three ]);
		isnt($code, 0, "$what: PGOPTIONS=$options");
		isnt($out, 3, "$what: and not the limit of the default");
	}
	{
		local $ENV{PGOPTIONS} = '-c tq.credentials=on -c work_mem=1MB';
		is($node->safe_psql($db, q{SELECT cardinality(tq.enqueue_tasks('p/w', '{"{}","{}"}'))}, extra_params => [ '-U', 'guest' ]), 2, "$what: other settings of a connection");
		local $ENV{PGOPTIONS} = '-c tq.max_batch=2';
		isnt($node->psql($db, $three), 0, "$what: a superuser may set it so");
	}
	isnt(answer_of('guest', 'CREATE TEMP TABLE t ()', q{CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql SET tq.max_batch = 10 AS $$ } . $three . ' $$', 'SELECT pg_temp.f()'),
		3, "$what: SET of a function does not raise it");
	is($node->safe_psql($db, q{SELECT array_to_string(setconfig, ' ') FROM pg_db_role_setting WHERE setrole = 'guest'::regrole}),
		'tq.max_batch=2 tq.max_payload=2000 tq.max_waiters=2', "$what: the settings of the role are what they were");
	return;
}

# ---- without the preload ----

$node = PostgreSQL::Test::Cluster->new('plain');
$node->init;
$node->start;
prepare();
check_roles('without the preload');
$node->stop;

# ---- with it ----

$node = new_node('preloaded', "max_connections = 40\nlisten_addresses = '127.0.0.1'");
prepare();
wait_worker($node, $db);
check_roles('with the preload');

# ---- quotas ----

$node->safe_psql($db, "ALTER ROLE guest SET tq.max_queues = 2");
my $queues = q{SELECT count(tq.enqueue('quota/q' || n)) FROM generate_series(%d, %d) AS n};
is(answer_of('guest', sprintf($queues, 1, 3)), '53400', 'quotas: more queues than the role may make');
is(answer_of('guest', sprintf($queues, 1, 1)), 1, 'quotas: what was rolled back does not count');
is(answer_of('guest', 'SET tq.max_queues = 10', sprintf($queues, 1, 3)), '53400', 'quotas: the role cannot set them');
is(answer_of('other', 'SET ROLE guest', sprintf($queues, 11, 14)), 4, 'quotas: they are of the role that has logged in');
is(answer_of('guest', sprintf($queues, 11, 14)), 4, 'quotas: names that there are');
{
	# Of transactions that are open at the same time, each sees its own queues.
	my @open = map { session_of('guest') } 1 .. 2;

	$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_queues = 3');
	@open = map { $_->quit; session_of('guest') } @open;
	is(answer($open[$_], 'BEGIN') . answer($open[$_], sprintf($queues, 2 + $_, 2 + $_)), '1', "quotas: open transactions, $_") foreach 0 .. 1;
	is(answer($open[$_], 'COMMIT'), '', "quotas: do not wait, $_") foreach 0 .. 1;
	$_->quit foreach @open;
}
is(answer_of('guest', sprintf($queues, 5, 5)), '53400', 'quotas: what is committed counts');
$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_queues = -1');
is(answer_of('guest', sprintf($queues, 5, 30)), 26, 'quotas: a superuser raises them');

# ---- quotas of what a queue has, by its counters ----

ok($node->poll_query_until($db, q{SELECT (tq_internal.count_state()).source = 'memory'}), 'the server has counters');
$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_unresolved_tasks = 5000');
{
	# A session makes a thousandth of what is left without a look, and does not see
	# the transaction of the other: two pass 5000 by less than 2 * (1 + 5).
	my @open = map { session_of('guest') } 1 .. 2;
	my $fill = q{DO $$ BEGIN LOOP PERFORM tq.enqueue('quota/q1'); COMMIT; END LOOP; END $$};

	$_->query_until(qr/started/, "\\echo started\n$fill;\n\\echo state :SQLSTATE\n") foreach @open;
	like($_->query('\echo'), qr/state 53400/, 'quotas: one of two sessions that fill a queue') foreach @open;
	$_->quit foreach @open;
}
my $made = $node->safe_psql($db, q{SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'quota/q1'});
ok($made >= 5000 && $made < 5012, "quotas: both made $made of 5000 tasks");
is(answer_of('guest', q{SELECT tq.enqueue('quota/q1')}), '53400', 'quotas: a new session sees all');
$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_unresolved_tasks = 6000');
is(answer_of('guest', q{SELECT 1 FROM tq.enqueue('quota/q1')}), 1, 'quotas: more for the role');
$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_groups = 1');
my $groups = q{SELECT count(tq.enqueue('quota/q2', task_group_id => ('group_%d_QAGAAAAAAAAAAA')::tq.slugid))};
is(answer_of('guest', 'BEGIN', sprintf($groups, 2), 'ROLLBACK', sprintf($groups, 3)), 1, 'quotas: the first group');
is(answer_of('guest', sprintf($groups, 4)), '53400', 'quotas: the second');
$node->safe_psql($db, 'ALTER ROLE guest SET tq.max_groups = 0');
is(answer_of('guest', sprintf($groups, 3)), 1, 'quotas: a lower one refuses none that there is');
is(answer_of('guest', q{SELECT 1 FROM tq.enqueue('quota/q2')}), 1, 'quotas: nor what adds none');

# ---- tasks of a group, by its counters ----

$node->safe_psql($db, 'ALTER ROLE other SET tq.max_group_tasks = 3');
my $join = q{SELECT cardinality(tq.enqueue_tasks('p/g', array_fill('{}'::jsonb, '{%d}'), task_group_id => 'group___QAGAAAAAAAAAAA'))};
is(answer_of('other', sprintf($join, 4)), 'TQ409', 'a group: more than tq.max_group_tasks at once');
is(answer_of('other', sprintf($join, 2)), 2, 'fewer');
is(answer_of('other', sprintf($join, 2)), 'TQ409', 'more, with what is there');
is(answer_of('other', sprintf($join, 1)), 1, 'as many as it allows');
is(answer_of('other', sprintf($join, 1)), 'TQ409', 'one more');
is($node->safe_psql($db, sprintf($join, 1)), 1, 'of a role without a limit');

# ---- waiting sessions ----

# Query for the sessions of a role that wait.
sub waiting
{
	my ($role, $columns) = @_;

	return "SELECT $columns FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND usename = '$role'";
}

# Begin to wait in a session of a role; the name of the statement's queue is q.
sub begin_wait
{
	my ($role, $statement) = @_;
	my $session = session_of($role);

	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	return $session;
}

sub wait_waiters
{
	my ($role, $n) = @_;

	return $node->poll_query_until($db, waiting($role, "count(*) = $n")) || die "not $n waiters of $role";
}

my $claim = q{SELECT count(*) FROM tq.claim_work('p/q', 'g', 'w', 1, '60 s')};
my @waiters = map { begin_wait('guest', $claim) } 1 .. 2;
wait_waiters('guest', 2);
is(answer_of('guest', $claim), '53400', 'no more sessions of a role wait than tq.max_waiters');
is(answer_of('guest', q{CALL tq.wait_for_work('p/q', '1 hour')}), '53400', 'in wait_for_work() either');
my $task = $node->safe_psql($db, "SELECT tq.enqueue('p/long')");
is(answer_of('guest', "CALL tq.wait_for_task('$task', '1 hour')"), '53400', 'nor in wait_for_task()');
is(answer_of('guest', q{SELECT count(*) FROM tq.claim_work('p/q', 'g', 'w')}), 0, 'a claim that does not wait is no waiter');
is(answer_of('guest', q{SELECT count(*) FROM tq.claim_work('p/long', 'g', 'w', 1, '60 s')}), 1, 'nor one that finds work at once');
my $free = begin_wait('other', $claim);
wait_waiters('other', 1);
ok(1, 'other roles wait');
$node->safe_psql('postgres', 'CREATE DATABASE second');
$node->safe_psql('second', 'CREATE EXTENSION tq');
{
	local $db = 'second';
	is(answer_of('guest', $claim), '53400', 'the limit is for all databases together');
}

# Each way in which a wait ends makes room for another.
$node->safe_psql($db, "SELECT tq.enqueue('p/q')");
wait_waiters('guest', 1);
push @waiters, begin_wait('guest', $claim);
wait_waiters('guest', 2);
ok(1, 'one that has found work makes room');
my ($pid) = split /\n/, $node->safe_psql($db, waiting('guest', 'pid'));
$node->safe_psql($db, "SELECT pg_cancel_backend($pid)");
wait_waiters('guest', 1);
push @waiters, begin_wait('guest', $claim);
wait_waiters('guest', 2);
ok(1, 'so does one that is cancelled');
($pid) = split /\n/, $node->safe_psql($db, waiting('guest', 'pid'));
$node->safe_psql($db, "SELECT pg_terminate_backend($pid)");
wait_waiters('guest', 1);
push @waiters, begin_wait('guest', q{CALL tq.wait_for_work('p/q', '1 hour')});
wait_waiters('guest', 2);
ok(1, 'so does one whose session ends, and wait_for_work() counts');
is(answer_of('guest', $claim), '53400', 'and no further one');
$node->safe_psql($db, q{SELECT tq.enqueue_tasks('p/q', '{"{}","{}","{}"}')});
wait_waiters('guest', 0);
is(answer_of('guest', q{CALL tq.wait_for_work('p/q', '10 ms')}), '', 'a time that is over makes room');
is(answer_of('guest', q{BEGIN; SAVEPOINT s; SELECT 1 FROM tq.claim_work('p/none', 'g', 'w', 1, '10 ms'); ROLLBACK TO s}), '', 'so does a savepoint');
@waiters = (@waiters, map { begin_wait('guest', q{SELECT count(*) FROM tq.claim_work('p/none', 'g', 'w', 1, '60 s')}) } 1 .. 2);
wait_waiters('guest', 2);
ok(1, 'as many as before wait');
$node->safe_psql($db, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('guest', 'other')});

# Sessions that begin at the same moment: never more than the limit, and as many.
my @crowd = map { begin_wait('guest', q{SELECT count(*) FROM tq.claim_work('p/none', 'g', 'w', 1, '60 s')}) } 1 .. 8;
ok($node->poll_query_until($db, q{SELECT count(*) FILTER (WHERE wait_event_type = 'Extension') = 2 AND count(*) FILTER (WHERE state = 'idle') = 6
	FROM pg_stat_activity WHERE usename = 'guest' AND backend_type = 'client backend'}), 'of eight that begin at once, two wait and six are refused');
$node->safe_psql($db, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('guest', 'other')});

# The worker that a session is: its host and process, which no other one has.
$node->safe_psql($db, q{SELECT tq.enqueue_tasks('p/named', '{"{}","{}","{}"}')});
my $named = q{SELECT worker_id FROM tq.claim_work('p/named')};
my $first = session_of('guest');
my @ids = (answer($first, $named), answer_of('guest', $named), $node->safe_psql($db, $named, connstr => $node->connstr($db) . ' host=127.0.0.1'));
like($ids[2], qr/^127\.0\.0\.1-\d+$/, 'the address of a client');
like($ids[0], qr/^local-\d+$/, 'or local');
isnt($ids[0], $ids[1], 'two sessions are two workers');
$first->quit;
unlike(slurp_file($node->logfile), qr/PANIC:|TRAP:|was terminated by signal/, 'nothing crashed');
$node->stop('immediate');

done_testing();
