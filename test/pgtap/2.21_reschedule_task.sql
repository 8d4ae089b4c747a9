-- doc/spec/taskcluster.md 2.21: reschedule_task.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.visible(name text) RETURNS timestamptz LANGUAGE sql AS $$
	SELECT (pg_temp.run(name) ->> 'visibleAt')::timestamptz
$$;
CREATE FUNCTION pg_temp.progress(name text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', p.unscheduled, p.delayed, p.pending, p.running) FROM tq.group_progress(pg_temp.id(name)) AS p
$$;

-- refused
SELECT pg_temp.throws($$SELECT tq.reschedule_task(pg_temp.id('missing'))$$, 'TQ404', '2.21 no such task');
SELECT pg_temp.create('u', '{"$deps": ["u"]}'), pg_temp.running('r'), pg_temp.resolved('c', 'completed'), pg_temp.create('p');
SELECT pg_temp.throws(format('SELECT tq.reschedule_task(pg_temp.id(%L))', n), 'TQ409', '2.21 not pending: ' || pg_temp.state(n)) FROM unnest('{u,r,c}'::text[]) AS n;
SELECT pg_temp.throws(format('SELECT tq.reschedule_task(pg_temp.id(%L), %L)', 'p', t), 'TQ400', '2.21 not before the deadline: ' || t) FROM unnest(ARRAY['infinity', '2100-01-01']) AS t;
SELECT pg_temp.keeps($$SELECT tq.reschedule_task(pg_temp.id('p'))$$, 'p', '2.21 claimable, and now: nothing changes');
SELECT pg_temp.keeps($$SELECT tq.reschedule_task(pg_temp.id('p'), '-infinity')$$, 'p', '2.21 nor at a time that has passed');

-- later, at another time, and now
SELECT pg_temp.create(n, '{"taskQueueId": "test/q", "$group": "g"}') FROM unnest('{a,b}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT is(tq.reschedule_task(pg_temp.id('a'), pg_temp.clock() + interval '30 minutes') ->> 'state', 'pending', '2.21 later');
SELECT ok(abs(extract(epoch FROM pg_temp.visible('a') - pg_temp.clock() - interval '30 minutes')) < 30, '2.21 it shows when');
SELECT is(pg_temp.progress('g'), '0 1 1 0', '2.21 it is delayed');
SELECT is(pg_temp.claims('test/q'), 'b', '2.21 and cannot be claimed');
SELECT ok(abs(extract(epoch FROM (tq.reschedule_task(pg_temp.id('a'), pg_temp.clock() + interval '10 minutes') #>> '{runDetails,0,visibleAt}')::timestamptz - pg_temp.clock() - interval '10 minutes')) < 30, '2.21 another time');
SELECT is(pg_temp.pass('10 minutes 1 second'), 'delayed 1', '2.21 it is due');
SELECT is(pg_temp.progress('g'), '0 0 1 1', '2.21 and pending');
SELECT is(tq.reschedule_task(pg_temp.id('a'), pg_temp.clock() + interval '20 minutes') ->> 'state', 'pending', '2.21 later again');
SELECT pg_temp.create('d', '{"taskQueueId": "test/q", "$group": "g"}');
SELECT is(tq.reschedule_task(pg_temp.id('a')) ->> 'state', 'pending', '2.21 now');
SELECT is(pg_temp.progress('g'), '0 0 2 1', '2.21 it is pending at once');
SELECT is(pg_temp.claims('test/q'), 'd a', '2.21 at the end of its priority');
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '2.21 as the same run');
RESET tq.clock_offset;

-- a retry that waits keeps its budgets
SELECT pg_temp.running('w', '{"retries": 3, "policy": {"retryOn": ["failed"], "retryBackoff": {"kind": "fixed", "delay": 600}}}');
SELECT pg_temp.report('w', 'failed');
SELECT is(tq.reschedule_task(pg_temp.id('w')) ->> 'retriesLeft', '2', '2.21 a retry that waits');
SELECT is(pg_temp.take('w'), 1, '2.21 is claimed as the run that it is');
SELECT is(pg_temp.run('w') ->> 'attempt', '1', '2.21 with its attempt');
SELECT is(pg_temp.report('w', 'failed'), 'pending 1: scheduled>failed/failed failure-retry>failed/failed failure-retry>pending', '2.21 and retried again');

-- a pending timeout counts from the new time
SELECT pg_temp.create('t', '{"policy": {"pendingTimeout": 300}}');
SELECT tq.reschedule_task(pg_temp.id('t'), pg_temp.clock() + interval '10 minutes') ->> 'state';
SELECT pg_temp.pass('11 minutes');
SELECT is(pg_temp.state('t'), 'pending', '2.21 the pending timeout has not passed');
SELECT pg_temp.pass('16 minutes');
SELECT is(pg_temp.state('t'), 'exception', '2.21 but five minutes after the time');
RESET tq.clock_offset;

-- keys
SELECT pg_temp.create(n, '{"taskQueueId": "test/k", "policy": {"serialKey": "k"}}') FROM unnest('{k1,k2}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT pg_temp.pass();
SELECT is(tq.reschedule_task(pg_temp.id('k2')) ->> 'state', 'pending', '2.21 one that waits for its key');
SELECT pg_temp.pass();
SELECT is(pg_temp.claims('test/k'), 'k1', '2.21 still does');
SELECT pg_temp.report('k1', 'completed');
SELECT is(tq.reschedule_task(pg_temp.id('k2'), pg_temp.clock() + interval '10 minutes') ->> 'state', 'pending', '2.21 and later');
SELECT pg_temp.pass();
SELECT is(pg_temp.claims('test/k'), '', '2.21 it is delayed');
SELECT tq.reschedule_task(pg_temp.id('k2')) ->> 'state';
SELECT pg_temp.pass();
SELECT is(pg_temp.claims('test/k'), 'k2', '2.21 until it is to run now');

-- to the time at which it was scheduled: it keeps its detail
SET tq.clock_offset = '10 minutes';
SELECT tq.enqueue('test/s', task_id => pg_temp.id('s'), delay => '20 minutes') \g /dev/null
RESET tq.clock_offset;
SELECT is((SELECT has_detail FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task WHERE t.task_id = pg_temp.id('s')), true, '2.21 it has a detail');
SELECT tq.reschedule_task(pg_temp.id('s'), d.scheduled) ->> 'state' FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task WHERE t.task_id = pg_temp.id('s');
SELECT is((SELECT d.has_detail AND d.visible_at = d.scheduled AND r.visible_at = d.visible_at FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task
	JOIN tq_internal.run_detail r ON r.task = t.id AND r.run_id = d.run_id WHERE t.task_id = pg_temp.id('s')), true, '2.21 and its row says so');

-- past the deadline
SELECT pg_temp.create('l');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws($$SELECT tq.reschedule_task(pg_temp.id('l'))$$, 'TQ409', '2.21 past the deadline');

SELECT * FROM finish();
ROLLBACK;
