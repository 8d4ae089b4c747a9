-- doc/spec/taskcluster.md 5.1: runs that are pending but not claimable before
-- visible_at (tq_internal.delayed).  Rows are moved there by hand; policy_fields.sql
-- has the delays of policies.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.delay(name text, by interval) RETURNS void
LANGUAGE sql AS $$
	WITH moved AS (
		DELETE FROM tq_internal.pending WHERE task = (SELECT id FROM tq_internal.task WHERE task_id::text = pg_temp.id(name)::text) RETURNING *)
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT pg_temp.base() + by, task, scheduled, queue, priority, run_id, retries_left, reason_created FROM moved
$$;
CREATE FUNCTION pg_temp.progress(g text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', tasks, 'u' || unscheduled, 'd' || delayed, 'p' || pending, 'r' || running, 'c' || completed, 'f' || failed, 'e' || exception, coalesce(outcome, '-'))
	FROM tq.group_progress(pg_temp.id(g))
$$;

SELECT pg_temp.create(n, '{"taskQueueId": "test/q", "$group": "g", "retries": 3}') FROM unnest('{a,b,c}'::text[]) AS n;
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status;
SELECT pg_temp.delay('a', '10 minutes');

-- waiting
SELECT is(tq.status(pg_temp.id('a')), status, 'delayed: the status shows a pending run') FROM before;
SELECT is(pg_temp.progress('g'), '3 u0 d1 p2 r0 c0 f0 e0 -', 'delayed: counted by group_progress as delayed');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, 'TQ409', 'delayed: reclaim_task');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0)$$, 'TQ409', 'delayed: report_completed');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1')$$, 'TQ409', 'delayed: claim_task');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('a'))$$, 'a', 'delayed: schedule_task does nothing');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'a', 'delayed: rerun_task does nothing');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"taskQueueId": "test/q", "$group": "g", "retries": 3}'))$$, 'a', 'delayed: a repeat of create_task does nothing');
SELECT is(pg_temp.claims('test/q'), 'b c', 'delayed: claim_work does not hand it out');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'delayed: not before its time');
SELECT is(pg_temp.claims('test/q'), '', 'delayed: nor can it be claimed then');

-- due
SELECT pg_temp.create('d', '{"taskQueueId": "test/q", "$group": "g"}');
SELECT pg_temp.create('e', '{"taskQueueId": "test/q", "$group": "g", "priority": "high"}');
SELECT is(pg_temp.pass('10 minutes 1 second'), 'delayed 1', 'delayed: upkeep moves it when it is due');
SELECT is(tq.status(pg_temp.id('a')), status, 'delayed: the status is the same') FROM before;
SELECT is(pg_temp.progress('g'), '5 u0 d0 p3 r2 c0 f0 e0 -', 'delayed: no longer counted as delayed');
SELECT is(pg_temp.pass(), '', 'delayed: once');
SELECT is((tq.task_queue_counts('test/q') -> 'pendingTasks')::bigint, 3::bigint, 'delayed: counted as pending');
SELECT is(pg_temp.claims('test/q'), 'e d a', 'delayed: it goes to the back of its priority');
SELECT is(pg_temp.look('a'), 'running 3: scheduled>running', 'delayed: retriesLeft and reasonCreated are kept');
RESET tq.clock_offset;

-- canceled, and past the deadline
SELECT pg_temp.create(n, '{"$group": "h", "$deadline": "30 minutes"}') FROM unnest('{x,y,z}'::text[]) AS n;
SELECT pg_temp.create('after', '{"$deps": ["x", "y"], "requires": "all-resolved"}');
SELECT pg_temp.delay(n, '20 minutes') FROM unnest('{x,z}'::text[]) AS n;
SELECT pg_temp.delay('y', '40 minutes');
SELECT is(pg_temp.report('x', 'canceled'), 'exception 5: scheduled>exception/canceled', 'delayed: cancel_task');
SELECT is((SELECT count(*) FROM tq_internal.delayed d JOIN tq_internal.task ON id = d.task WHERE task_id::text = pg_temp.id('x')::text), 0::bigint, 'delayed: the row is deleted');
SET tq.clock_offset = '31 minutes';
SELECT ok((SELECT tasks = 2 FROM tq.upkeep() WHERE step = 'deadline'), 'delayed: the deadline is processed for both, whether due or not');
SELECT is(pg_temp.look(n), 'exception 5: scheduled>exception/deadline-exceeded', 'delayed: deadline-exceeded, ' || n) FROM unnest('{y,z}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq_internal.delayed), 0::bigint, 'delayed: no rows are left');
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', 'delayed: dependents are released');
RESET tq.clock_offset;

-- a group that is canceled
SELECT pg_temp.create('k1', '{"$group": "k"}');
SELECT pg_temp.delay('k1', '10 minutes');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('k'))$$, 'delayed: seal its group');
SELECT is(tq.cancel_task_group(pg_temp.id('k')) -> 'cancelledCount', '1', 'delayed: cancel_task_group');
SELECT is(pg_temp.look('k1'), 'exception 5: scheduled>exception/canceled', 'delayed: it is canceled');

-- due, but past the deadline before upkeep() ran: resolved, not moved
SELECT pg_temp.create('m', '{"$deadline": "12 minutes", "taskQueueId": "test/m"}');
SELECT pg_temp.delay('m', '11 minutes');
SET tq.clock_offset = '13 minutes';
SELECT is(pg_temp.claims('test/m'), '', 'delayed: due and past the deadline: not claimable');
SELECT is(pg_temp.pass(), 'deadline 1', 'delayed: the deadline is processed first');
SELECT is(pg_temp.look('m'), 'exception 5: scheduled>exception/deadline-exceeded', 'delayed: and resolves it');
RESET tq.clock_offset;

-- several are moved in the order in which they are due
SELECT pg_temp.create(n, '{"taskQueueId": "test/order"}') FROM unnest('{o1,o2,o3}'::text[]) AS n;
SELECT pg_temp.delay(n, d::interval) FROM (VALUES ('o1', '3 minutes'), ('o2', '1 minute'), ('o3', '2 minutes')) AS v (n, d);
SELECT is(pg_temp.pass('4 minutes'), 'delayed 3', 'delayed: three are due');
SELECT is(pg_temp.claims('test/order'), 'o2 o3 o1', 'delayed: the one that was due first is claimed first');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
