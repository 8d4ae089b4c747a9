# The server's table of locks is finite: a call that joins 20,000 groups takes
# few locks, while other sessions join and seal groups; and so does a transaction
# that joins very many in single calls.  What ends in the middle keeps none.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Tq;

my $node = new_node('node', 'max_locks_per_transaction = 64');		# the default
my $db = 'postgres';
my $groups = 20_000;

$node->safe_psql($db, 'CREATE EXTENSION tq');
wait_worker($node, $db);
$node->safe_psql($db, q{
	CREATE FUNCTION slug(n bigint) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS
		$$ SELECT overlay(overlay(md5(n::text) PLACING '4' FROM 13) PLACING '8' FROM 17)::uuid::tq.slugid $$;
	CREATE FUNCTION graph(first bigint, groups int) RETURNS jsonb LANGUAGE sql AS $$
		SELECT jsonb_agg(jsonb_build_object('taskId', slug(first + n), 'task', jsonb_build_object(
			'taskQueueId', 'p/many', 'payload', '{}'::jsonb, 'created', clock_timestamp(), 'deadline', clock_timestamp() + interval '1 day',
			'taskGroupId', slug(1000000 + n), 'metadata', '{"name": "n", "description": "d", "owner": "o", "source": "https://example.com"}'::jsonb)))
		FROM generate_series(1, groups) AS n $$;
	CREATE TABLE answer (client int, state text, call text);
});

# Answers of calls are kept: TQ409 is right for a group that is sealed.
$node->safe_psql($db, q{
	CREATE FUNCTION try(call text) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE call;
		INSERT INTO answer VALUES (pg_backend_pid(), 'ok', left(call, 30));
	EXCEPTION WHEN OTHERS THEN
		INSERT INTO answer VALUES (pg_backend_pid(), SQLSTATE, SQLERRM);
	END $$;
	CREATE PROCEDURE disturb(client int, seals bool) LANGUAGE plpgsql AS $$
	BEGIN
		FOR n IN 1 .. 100000 LOOP
			EXIT WHEN EXISTS (SELECT FROM answer WHERE state = 'done');
			IF seals AND n % 2 = 0 THEN
				PERFORM try(format('SELECT tq.seal_task_group(slug(%s))', 2000000 + n / 2));
				PERFORM try(format('SELECT tq.enqueue(%L, task_group_id => slug(%s))', 'p/w', 2000000 + n / 2));
			ELSE
				PERFORM try(format('SELECT tq.enqueue(%L, task_group_id => slug(%s))', 'p/w', 2000000 + (n + 1) / 2));
				PERFORM try(format('SELECT tq.enqueue(%L, task_group_id => slug(%s))', 'p/w', 1000000 + n));
			END IF;
			COMMIT;
		END LOOP;
	END $$;
});

my @others = map {
	my $session = $node->background_psql($db, on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\nCALL disturb($_, " . ($_ % 2 ? 'true' : 'false') . ");\n\\echo ended\n");
	$session
} 1 .. 4;
$node->poll_query_until($db, 'SELECT count(DISTINCT client) = 4 FROM answer') or die 'the others do not work';

my ($status, $out, $err) = $node->psql($db, "SELECT tq.create_tasks(graph(0, $groups))");
is($err, '', 'a call that joins 20,000 groups succeeds beside others');
is($out, $groups, 'and has created all of them');

# in two sessions at once, the same groups in another order
$groups = 5_000;
my $second = $node->background_psql($db, on_error_stop => 0);
$second->query_until(qr/begun/, "\\echo begun\nSELECT try('SELECT tq.create_tasks(graph(100000, $groups))');\n");
($status, $out, $err) = $node->psql($db, qq{
	SELECT tq.create_tasks((SELECT jsonb_agg(e ORDER BY i DESC) FROM jsonb_array_elements(graph(200000, $groups)) WITH ORDINALITY AS x (e, i)))});
is($err, '', 'two calls at once join the same groups');
$second->query_safe('SELECT 1');
$second->quit;

# one by one, in one transaction
($status, $out, $err) = $node->psql($db, qq{
	BEGIN;
	SELECT count(tq.enqueue('p/w', task_group_id => slug(3000000 + n))) FROM generate_series(1, $groups) AS n;
	SELECT count(*) < 1000 FROM pg_locks WHERE pid = pg_backend_pid();
	COMMIT});
is($err, '', 'a transaction that joins 5,000 groups in single calls succeeds');
is($out, "$groups\nt", 'and holds few locks');

$node->safe_psql($db, "INSERT INTO answer VALUES (0, 'done', '')");
foreach my $other (@others)
{
	$other->query_safe('SELECT 1');
	$other->quit;
}
is($node->safe_psql($db, "SELECT DISTINCT state FROM answer WHERE client <> 0 ORDER BY 1"), "TQ409\nok", 'the others got no other answers than are right');
is($node->safe_psql($db, "SELECT string_agg(DISTINCT left(call, 80), '; ') FROM answer WHERE state NOT IN ('ok', 'TQ409', 'done')"), '', 'no deadlock, no lack of memory');
is($node->safe_psql($db, "SELECT count(*) > 0 FROM answer WHERE call LIKE '%seal%'"), 't', 'groups were sealed meanwhile');
is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.task_group AS g JOIN tq_internal.task AS t ON t.group_id = g.id WHERE t.created > g.sealed}), 0, 'no task joined a group after it was sealed');
is($node->safe_psql($db, q{SELECT count(*) FROM tq_internal.task_group AS g WHERE sealed IS NULL AND NOT EXISTS (SELECT FROM tq_internal.task AS t WHERE t.group_id = g.id)}), 0, 'no group is without a task');
is($node->safe_psql($db, 'SELECT (SELECT count(*) FROM tq_internal.task) = (SELECT count(*) FROM tq_internal.pending)'), 't', 'and every task is pending');

# ---- a call that ends in the middle keeps what it has committed, and no lock ----

my $n = 5000;
my $caller = Tq::session($node, $db);
$caller->do('SET client_min_messages = warning');
$node->safe_psql($db, "SELECT count(tq.enqueue('cut/c')) FROM generate_series(1, $n)");

# Makes a call that ends early: it is cancelled as soon as it has done something, or when its time is over.
sub cut
{
	my ($call, $begun) = @_;
	$caller->do($call, { pg_async => 1 });
	ok($node->poll_query_until($db, $begun), 'it is in the middle') if defined $begun;
	$node->safe_psql($db, "SELECT pg_cancel_backend($caller->{pg_pid})") if defined $begun;
	eval { $caller->pg_result };	# DBD::Pg of sid raises no error here
	is($caller->state, '57014', 'it ends: ' . $call);
	is($node->safe_psql($db, "SELECT count(*) FROM pg_locks WHERE pid = $caller->{pg_pid}"), 0, 'no lock remains');
	return;
}

my $left = "SELECT count(*) FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue WHERE q.task_queue_id = 'cut/c'";
foreach my $turn ([ 'cancel', 'pending', $n ], [ 'rerun', 'exception', 0 ])
{
	my ($action, $state, $before) = @$turn;
	my $call = qq(CALL tq.apply('{"queue": "cut/c", "state": "$state"}', '$action'));
	$caller->do('SET tq.expire_batch = 1');
	cut($call, "SELECT ($left) <> $before");
	my $after = $node->safe_psql($db, $left);
	ok($after > 0 && $after < $n, 'what is committed stays, and something is left');
	my $later = $after;
	for (my $timeout = 100; $later == $after; $timeout *= 2)
	{
		$caller->do("SET statement_timeout = $timeout");
		cut($call);
		$later = $node->safe_psql($db, $left);
	}
	$caller->do('RESET statement_timeout');
	cmp_ok(abs($later - $before), '>', abs($after - $before), 'the same call goes on');
	ok($later > 0 && $later < $n, 'until its time is over');
	$caller->do('RESET tq.expire_batch');
	is($caller->selectrow_array($call), abs($n - $before - $later), 'and then to the end, with what was left');
	is($node->safe_psql($db, $left), $n - $before, 'so that all are done');
}
is($node->safe_psql($db, "SELECT count(*), min(last_run_id), max(last_run_id) FROM tq.task_details WHERE task_queue_id = 'cut/c' AND state = 'pending'"), "$n|1|1", 'no task twice');

my $holder = Tq::session($node, $db);
my $find = q(SELECT count(*) FROM tq.find_tasks('{"queue": "cut/c", "error": "x"}', budget => '1 hour'));
foreach my $timeout ('0', '100ms')
{
	$holder->begin_work;
	$holder->do('LOCK TABLE tq_internal.run_detail IN ACCESS EXCLUSIVE MODE');
	$caller->do("SET statement_timeout = '$timeout'");
	cut($find, $timeout eq '0' ? "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $caller->{pg_pid} AND wait_event_type = 'Lock'" : ());
	$holder->commit;
	$caller->do('RESET statement_timeout');
	is($caller->selectrow_array($find), 0, 'made again, it comes to its end');
}
$_->disconnect for $holder, $caller;

# ---- a healthy task beside it was served in time ----

my $healthy = enqueue($node, $db, "deadline => '1 second'");
ok(wait_state($node, $db, $healthy, 'exception'), 'a healthy task meets its deadline');
cmp_ok(lateness($node, $db, $healthy, 0, q{(s ->> 'deadline')::timestamptz}), '<', 5, 'in time');
$node->stop;

done_testing();
