-- doc/spec/taskcluster.md 3.5: deadlines.
BEGIN;
\ir helper.psql

SELECT pg_temp.create('p', '{"$deadline": "10 minutes"}');
SELECT pg_temp.create('u', '{"$deadline": "10 minutes", "$deps": ["p"]}');
SELECT pg_temp.create('ur', '{"$deadline": "10 minutes", "$deps": ["p"], "requires": "all-resolved"}');
SELECT pg_temp.running('r', '{"$deadline": "10 minutes"}');
SELECT pg_temp.resolved('c', 'completed', '{"$deadline": "10 minutes"}');
SELECT pg_temp.resolved('f', 'failed', '{"$deadline": "10 minutes"}');
SELECT pg_temp.resolved('t', 'worker-shutdown', '{"$deadline": "10 minutes"}');
SELECT pg_temp.create('later', '{"$deadline": "30 minutes"}');
SELECT pg_temp.create('after', '{"$deadline": "30 minutes", "$deps": ["p", "r", "u"], "requires": "all-resolved"}');
SELECT pg_temp.create('never', '{"$deadline": "30 minutes", "$deps": ["p"]}');
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{c,f,later,never}'::text[]) AS n;

SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', '3.5 before the deadline nothing happens');

-- between the deadline and the pass of upkeep()
SET tq.clock_offset = '10 minutes 1 second';
SELECT is(pg_temp.state('p') || ' ' || pg_temp.state('u') || ' ' || pg_temp.state('r'), 'pending unscheduled running', '3.5 the deadline itself changes nothing until upkeep() processes it');
SELECT is(pg_temp.claims('test/q-p'), '', '3.5 pending runs are no longer handed out');
SELECT is((tq.task_queue_counts('test/q-p') -> 'pendingTasks')::bigint, 0::bigint, '8.1 nor counted');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('p'), 0, 'wg', 'w1')$$, 'TQ409', '3.5 claim_task refuses');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('r'), 0)$$, 'TQ409', '3.5 reclaim_task refuses');
SAVEPOINT s;
SELECT is(pg_temp.report('r', reason), line, '3.5 the worker may still report ' || reason)
FROM (VALUES ('completed', 'completed 5: scheduled>completed/completed')) AS v (reason, line);
ROLLBACK TO SAVEPOINT s;
SELECT is(pg_temp.report('r', reason), line, '3.5 the worker may still report ' || reason)
FROM (VALUES ('malformed-payload', 'exception 5: scheduled>exception/malformed-payload')) AS v (reason, line);
ROLLBACK TO SAVEPOINT s;

-- the pass of upkeep()
SELECT is(pg_temp.pass(), 'deadline 5', '3.5 upkeep() processes the deadline');
SELECT is(pg_temp.look(n), line, '3.5 at the deadline: ' || line) FROM (VALUES
	('p', 'exception 5: scheduled>exception/deadline-exceeded'),
	('u', 'exception 5: exception>exception/deadline-exceeded'),
	('ur', 'exception 5: exception>exception/deadline-exceeded'),
	('r', 'exception 5: scheduled>exception/deadline-exceeded'),
	('t', 'exception 4: scheduled>exception/worker-shutdown retry>exception/deadline-exceeded')) AS v (n, line);
SELECT is(tq.status(pg_temp.id(n)), status, '3.5 unchanged: ' || pg_temp.look(n)) FROM before;
SELECT ok(pg_temp.near(pg_temp.run(n) ->> 'resolved', pg_temp.clock()), '3.5 resolved is now: ' || n) FROM unnest('{p,u,r}'::text[]) AS n;
SELECT is(pg_temp.run('u') ->> 'scheduled', pg_temp.run('u') ->> 'resolved', '1.4 a run that is created resolved: scheduled is resolved');
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', '4.4 a deadline meets all-resolved dependencies');
SELECT is(pg_temp.pass(), '', '3.5 it is processed once');
SELECT pg_temp.throws(query, 'TQ409', '3.5 the worker is refused: ' || query)
FROM unnest(ARRAY['SELECT tq.report_completed(pg_temp.id(''r''), 0)', 'SELECT tq.report_exception(pg_temp.id(''r''), 0, ''internal-error'')']) AS query;
SELECT pg_temp.throws(format('SELECT tq.%s(pg_temp.id(%L))', f, n), 'TQ409', format('3.5 it is final: %s %s', f, n))
FROM unnest('{schedule_task,rerun_task,cancel_task}'::text[]) AS f, unnest('{p,u,r}'::text[]) AS n;
SELECT is(tq.task_queue_counts('test/q-r') ->> 'claimedTasks', '0', '3.5 it is not counted as claimed');
SELECT is(pg_temp.pass('25 minutes'), '', '3.6 its claim timer has no effect');
SELECT is(pg_temp.pass('30 minutes 1 second'), 'deadline 3', '3.5 each at its own deadline');
RESET tq.clock_offset;

-- tq.deadline_delay
SET tq.deadline_delay = '60s';
SELECT pg_temp.create('delay', '{"$deadline": "10 minutes"}');
SELECT is(pg_temp.pass('10 minutes 30 seconds'), '', '3.5 with a delay it is not processed at once');
SELECT pg_temp.throws($$SELECT tq.cancel_task(pg_temp.id('delay'))$$, 'TQ409', '3.5 but the deadline holds');
SELECT is(pg_temp.claims('test/q-delay'), '', '3.5 nor is it handed out');
SELECT is(pg_temp.pass('11 minutes 1 second'), 'deadline 1', '3.5 but after the delay');
RESET tq.clock_offset;
RESET tq.deadline_delay;

-- every unresolved task has a timer for its deadline, however it was created, or will
-- have it when its task-defined is published
SELECT tq.enqueue('test/enq', deadline => '45 minutes') IS NULL;
SELECT tq.define_task(pg_temp.id('def'), pg_temp.def('def')) ->> 'state';
SELECT is((SELECT count(*) FROM tq.task_details AS o JOIN tq_internal.task AS t ON t.task_id::text = o.task_id::text
	WHERE o.state IN ('unscheduled', 'pending', 'running')
		AND NOT EXISTS (SELECT FROM tq_internal.timer AS r WHERE r.kind = 1 AND r.due = t.deadline AND t.id = ANY (r.tasks))
		AND NOT EXISTS (SELECT FROM tq_internal.left_timer AS m WHERE NOT m.is_claim AND m.due = t.deadline AND m.task = t.id)), 0::bigint,
	'0.2 every unresolved task has a timer for its deadline');

-- takenUntil is not capped
SELECT pg_temp.running('cap', '{"$deadline": "5 minutes"}');
SELECT ok(pg_temp.near(pg_temp.run('cap') ->> 'takenUntil', pg_temp.clock() + interval '20 minutes'), '3.5 takenUntil is not capped by the deadline');

-- a rerun keeps its deadline; many deadlines of one moment
SELECT pg_temp.resolved('again', 'completed', '{"$deadline": "8 minutes"}');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('again'))), 'pending 5: scheduled>completed/completed rerun>pending', '3.5 a rerun');
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('batch' || n)::text, 'task', pg_temp.def('batch', '{"taskQueueId": "test/batch", "$deadline": "8 minutes"}')))
	FROM generate_series(1, 500) AS n)), 500::bigint, '3.5 500 tasks of one call');
SELECT is((SELECT count(*) FROM tq.claim_work('test/batch', 'wg', 'w1', 250)), 250::bigint, '3.5 half of them running');
SELECT is(pg_temp.pass('8 minutes 1 second'), 'deadline 502', '3.5 all meet their deadline');
SELECT is(pg_temp.look('again'), 'exception 5: scheduled>completed/completed rerun>exception/deadline-exceeded', '3.5 the rerun too');
SELECT is((SELECT string_agg(DISTINCT pg_temp.line(tq.status(pg_temp.id('batch' || n))), ', ') FROM generate_series(1, 500) AS n), 'exception 5: scheduled>exception/deadline-exceeded', '3.5 every one of the batch');
SELECT is((SELECT count(*) FROM tq_internal.pending JOIN tq_internal.task ON id = task WHERE deadline < pg_temp.clock()), 0::bigint, '3.5 nothing past its deadline is pending');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
