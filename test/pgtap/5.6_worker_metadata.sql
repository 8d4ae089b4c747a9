-- doc/spec/taskcluster.md 5.6: when workers and queues are recorded as seen, and their recent
-- tasks.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.recent(worker text) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(pg_temp.name((r ->> 'taskId')::tq.slugid) || '/' || (r ->> 'runId'), ' ' ORDER BY n), '')
	FROM jsonb_array_elements(tq.get_worker('test/q', 'wg', worker) -> 'recentTasks') WITH ORDINALITY AS u (r, n)
$$;

SELECT pg_temp.claims('test/q');
SELECT is(w ->> 'workerId', 'w1', '5.6 claim_work: seen also without a task to claim') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'firstClaim', now()) AND pg_temp.near(w ->> 'lastDateActive', now()) AND pg_temp.near(w ->> 'expires', now() + interval '1 day'), '5.6 claim_work: firstClaim, lastDateActive, expires in a day')
FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT pg_temp.create('t' || n, '{"taskQueueId": "test/q", "$deadline": "3 hours"}') FROM generate_series(1, 3) AS n;
SET tq.clock_offset = '2 hours';
SELECT is(pg_temp.claims('test/q', 2), 't1 t2', '5.6 two hours later');
SELECT ok(pg_temp.near(w ->> 'firstClaim', now()), '5.6 claim_work: firstClaim does not move') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'lastDateActive', pg_temp.clock()) AND pg_temp.near(w ->> 'expires', pg_temp.clock() + interval '1 day'), '5.6 claim_work: lastDateActive and expires do')
FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT is(pg_temp.recent('w1'), 't1/0 t2/0', '5.6 recentTasks: appended per claim');
RESET tq.clock_offset;
SELECT is(pg_temp.claims('test/q', 1), 't3', '5.6 a claim at an earlier time');
SELECT ok(pg_temp.near(tq.get_worker('test/q', 'wg', 'w1') ->> 'expires', now() + interval '1 day 2 hours'), '5.6 expires never moves backwards');

-- reclaim
SET tq.clock_offset = '2 hours 40 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t1'), 0)$$, '5.6 a reclaim');
SELECT ok(pg_temp.near(w ->> 'lastDateActive', pg_temp.clock()) AND pg_temp.near(w ->> 'expires', pg_temp.clock() + interval '1 day'), '5.6 reclaim_task: seen')
FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
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
SELECT is(jsonb_array_length(tq.get_worker('test/q', 'wg', 'w2') -> 'recentTasks'), 20, '5.6 recentTasks: 20 are kept');
SELECT is(pg_temp.recent('w2'), (SELECT string_agg('m' || n || '/0', ' ' ORDER BY n) FROM generate_series(6, 25) AS n), '5.6 recentTasks: the last ones, oldest first');


-- a worker that claims fast: all of its last 20 are shown at once
SELECT count(tq.enqueue('fast/q')) FROM generate_series(1, 30);
CREATE FUNCTION pg_temp.claimed_last() RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_agg(jsonb_build_object('taskId', task_id::text, 'runId', 0) ORDER BY id)
	FROM (SELECT t.task_id, t.id FROM tq_internal.run r JOIN tq_internal.worker w ON w.id = r.worker JOIN tq_internal.task t ON t.id = r.task
		WHERE w.worker_id = 'fast' ORDER BY t.id DESC LIMIT 20) AS x
$$;
CREATE FUNCTION pg_temp.row_of(named text) RETURNS text
LANGUAGE sql AS $$
	SELECT ctid || ' ' || last_date_active FROM tq_internal.worker WHERE worker_id = named
$$;
SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast');
CREATE TEMP TABLE stored AS SELECT pg_temp.row_of('fast') AS r;
DO $$ BEGIN FOR i IN 1..22 LOOP PERFORM tq.claim_work('fast/q', 'wg', 'fast'); END LOOP; END $$;
SELECT is(tq.get_worker('fast/q', 'wg', 'fast') -> 'recentTasks', pg_temp.claimed_last(), '5.6 the last 20 claims of a fast worker are shown at once');
SELECT is((SELECT latest_task_id FROM tq.list_workers('fast/q')), (pg_temp.claimed_last() -> -1 ->> 'taskId')::tq.slugid, '5.6 list_workers shows the last one');
SELECT is(pg_temp.row_of('fast'), r, '5.6 without a write of its row') FROM stored;
SET tq.clock_offset = '20 seconds';
SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast');
SELECT is(pg_temp.row_of('fast'), r, '5.6 nor is it written within tq.seen_interval') FROM stored;
SELECT ok(pg_temp.near(tq.get_worker('fast/q', 'wg', 'fast') ->> 'lastDateActive', pg_temp.clock()), '5.6 though it is shown when it was seen');
SET tq.clock_offset = '40 seconds';
SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast');
SELECT isnt(pg_temp.row_of('fast'), r, '5.6 but later it is') FROM stored;
SELECT is((SELECT array_agg(t.task_id::text ORDER BY u.n) FROM tq_internal.worker w, unnest(w.recent_tasks) WITH ORDINALITY AS u (id, n) JOIN tq_internal.task t ON t.id = u.id WHERE worker_id = 'fast'),
	(SELECT array_agg(x ->> 'taskId') FROM jsonb_array_elements(pg_temp.claimed_last()) AS x), '5.6 with the last 20');
SET tq.seen_interval = 0;
UPDATE stored SET r = pg_temp.row_of('fast');
SET tq.clock_offset = '41 seconds';
SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast');
SELECT isnt(pg_temp.row_of('fast'), r, '5.6 tq.seen_interval = 0: each time') FROM stored;
RESET tq.seen_interval;
RESET tq.clock_offset;
-- a claim that is rolled back was none
SAVEPOINT s;
SELECT count(*) FROM tq.claim_work('fast/q', 'wg', 'fast');
SELECT jsonb_array_length(tq.get_worker('fast/q', 'wg', 'fast') -> 'recentTasks');
ROLLBACK TO s;
SELECT is(tq.get_worker('fast/q', 'wg', 'fast') -> 'recentTasks' -> -1, pg_temp.claimed_last() -> -1, '5.6 a claim that is rolled back is not shown');
-- polls that find nothing
SET tq.clock_offset = '50 minutes';
SELECT pg_temp.claims('fast/none', 1, 'idle');
SET tq.clock_offset = '50 minutes 20 seconds';
CREATE TEMP TABLE idle AS SELECT pg_temp.row_of('idle') AS r;
SELECT pg_temp.claims('fast/none', 1, 'idle');
SELECT is(pg_temp.row_of('idle'), r, '5.6 a poll that finds nothing writes nothing within the interval') FROM idle;
SELECT is(w ->> 'lastDateActive' > pg_temp.iso(pg_temp.clock() - interval '5 seconds'), true, '5.6 but is shown') FROM tq.get_worker('fast/none', 'wg', 'idle') AS w;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
