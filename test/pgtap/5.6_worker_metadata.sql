-- doc/spec/taskcluster.md 5.6: when workers and queues are recorded as seen, and their recent
-- tasks.
BEGIN;
\ir helper.psql
SELECT plan(23);

CREATE FUNCTION pg_temp.recent(worker text) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(pg_temp.name((r ->> 'taskId')::tq.slugid) || '/' || (r ->> 'runId'), ' ' ORDER BY n), '')
	FROM jsonb_array_elements(tq.get_worker('test', 'q', 'wg', worker) -> 'recentTasks') WITH ORDINALITY AS u (r, n)
$$;

SELECT pg_temp.claims('test/q');
SELECT is(w ->> 'workerId', 'w1', '5.6 claim_work: seen also without a task to claim') FROM tq.get_worker('test', 'q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'firstClaim', now()) AND pg_temp.near(w ->> 'lastDateActive', now()) AND pg_temp.near(w ->> 'expires', now() + interval '1 day'), '5.6 claim_work: firstClaim, lastDateActive, expires in a day')
FROM tq.get_worker('test', 'q', 'wg', 'w1') AS w;
SELECT pg_temp.create('t' || n, '{"taskQueueId": "test/q", "$deadline": "3 hours"}') FROM generate_series(1, 3) AS n;
SET tq.clock_offset = '2 hours';
SELECT is(pg_temp.claims('test/q', 2), 't1 t2', '5.6 two hours later');
SELECT ok(pg_temp.near(w ->> 'firstClaim', now()), '5.6 claim_work: firstClaim does not move') FROM tq.get_worker('test', 'q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'lastDateActive', pg_temp.clock()) AND pg_temp.near(w ->> 'expires', pg_temp.clock() + interval '1 day'), '5.6 claim_work: lastDateActive and expires do')
FROM tq.get_worker('test', 'q', 'wg', 'w1') AS w;
SELECT is(pg_temp.recent('w1'), 't1/0 t2/0', '5.6 recentTasks: appended per claim');
RESET tq.clock_offset;
SELECT is(pg_temp.claims('test/q', 1), 't3', '5.6 a claim at an earlier time');
SELECT ok(pg_temp.near(tq.get_worker('test', 'q', 'wg', 'w1') ->> 'expires', now() + interval '1 day 2 hours'), '5.6 expires never moves backwards');

-- reclaim
SET tq.clock_offset = '2 hours 40 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t1'), 0)$$, '5.6 a reclaim');
SELECT ok(pg_temp.near(w ->> 'lastDateActive', pg_temp.clock()) AND pg_temp.near(w ->> 'expires', pg_temp.clock() + interval '1 day'), '5.6 reclaim_task: seen')
FROM tq.get_worker('test', 'q', 'wg', 'w1') AS w;
RESET tq.clock_offset;

-- claim_task: recentTasks if the worker is known
SELECT pg_temp.create('k1', '{"taskQueueId": "test/q"}');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('k1'), 0, 'wg', 'w1')$$, '5.6 claim_task');
SELECT is(pg_temp.recent('w1'), 't1/0 t2/0 t3/0 k1/0', '5.6 claim_task: appended for a worker that is known');

-- queues: seen by both; no function shows it yet
CREATE FUNCTION pg_temp.queue_expires(queue text) RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.iso(expires) FROM tq_internal.queue WHERE task_queue_id = queue_expires.queue
$$;
SELECT pg_temp.claims('test/seen');
SELECT ok(pg_temp.near(pg_temp.queue_expires('test/seen'), now() + interval '1 day'), '5.6 claim_work: the queue is seen, and expires in a day');
SELECT pg_temp.create('k2', '{"taskQueueId": "test/seen5"}');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('k2'), 0, 'wg', 'w1')$$, '5.6 claim_task in a queue not used by claim_work');
SELECT ok(pg_temp.near(pg_temp.queue_expires('test/seen5'), now() + interval '5 days'), '5.6 claim_task: the queue is seen, and expires in five days');
SET tq.clock_offset = '1 hour';
SELECT pg_temp.claims('test/seen5');
SELECT ok(pg_temp.near(pg_temp.queue_expires('test/seen5'), now() + interval '5 days'), '5.6 claim_work does not move it back');
RESET tq.clock_offset;

-- the last 20
SELECT pg_temp.create('m' || n, '{"taskQueueId": "test/q"}') FROM generate_series(1, 25) AS n;
SELECT is(length(pg_temp.claims('test/q', 10, 'w2')) > 0, true, '5.6 ten tasks');
SELECT is(length(pg_temp.claims('test/q', 15, 'w2')) > 0, true, '5.6 fifteen more');
SELECT is(jsonb_array_length(tq.get_worker('test', 'q', 'wg', 'w2') -> 'recentTasks'), 20, '5.6 recentTasks: 20 are kept');
SELECT is(pg_temp.recent('w2'), (SELECT string_agg('m' || n || '/0', ' ' ORDER BY n) FROM generate_series(6, 25) AS n), '5.6 recentTasks: the last ones, oldest first');


-- a worker that claims fast: all of the first 20, then one write a second
SELECT count(tq.enqueue('fast/q')) FROM generate_series(1, 30);
DO $$ BEGIN FOR i IN 1..22 LOOP PERFORM tq.claim_work('fast/q', 'wg', 'fast'); END LOOP; END $$;
CREATE TEMP TABLE claimed AS SELECT r.task, row_number() OVER (ORDER BY r.task) AS n
	FROM tq_internal.run r JOIN tq_internal.worker w ON w.id = r.worker WHERE w.worker_id = 'fast';
SELECT is((SELECT recent_tasks FROM tq_internal.worker WHERE worker_id = 'fast'), (SELECT array_agg(task ORDER BY n) FROM claimed WHERE n <= 20),
	'5.6 the first 20 claims are kept, the next within a second are not');
SET tq.clock_offset = '10 seconds';
SELECT is((SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast')), 1::bigint, '5.6 a claim a little later');
SELECT is((SELECT recent_tasks[20] FROM tq_internal.worker WHERE worker_id = 'fast'),
	(SELECT max(r.task) FROM tq_internal.run r JOIN tq_internal.worker w ON w.id = r.worker WHERE w.worker_id = 'fast'), '5.6 is kept again');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
