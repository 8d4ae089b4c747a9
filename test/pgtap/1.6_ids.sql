-- doc/spec/taskcluster.md 1.6: numbers of queues, workers and policies.  A call that is
-- rolled back burns them; they begin again after the last one, and skip those in use.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.near_end(entity text, n int) RETURNS void LANGUAGE sql AS $$
	SELECT setval(pg_get_serial_sequence('tq_internal.' || entity, 'id'), 2147483647 - n)
$$;
SELECT is(array_agg(s.seqcycle AND s.seqmax = 2147483647 ORDER BY t), '{t,t,t}', '1.6 ids begin again')
FROM unnest('{queue,worker,policy}'::text[]) AS t JOIN pg_sequence s ON s.seqrelid = pg_get_serial_sequence('tq_internal.' || t, 'id')::regclass;

-- The first numbers are in use.
SELECT tq.enqueue('ids/q' || n, policy => jsonb_build_object('totalTimeout', n || ' h')) FROM generate_series(1, 5) AS n \g /dev/null
SELECT count(*) FROM generate_series(1, 5) AS n, tq.claim_work('ids/q' || n, 'g', 'w' || n) \g /dev/null
SELECT pg_temp.near_end(e, 2) FROM unnest('{queue,worker,policy}'::text[]) AS e \g /dev/null
SELECT lives_ok(format($$SELECT tq.enqueue('ids/r%s', policy => '{"totalTimeout": "%s h"}'), tq.declare_worker('ids/r%s', 'g', 'w', now() + '1 day')$$, n, 10 + n, n), '1.6 ids: ' || n)
FROM generate_series(1, 8) AS n;
SELECT is((SELECT count(*) FROM tq.claim_work('ids/r' || n, 'g', 'w')), 1::bigint, '1.6 ids: a worker gets the task of its queue: ' || n) FROM generate_series(1, 8) AS n;
SELECT is((SELECT count(DISTINCT id) FROM tq_internal.queue WHERE task_queue_id ~ '^ids/'), 13::bigint, '1.6 ids: each queue has a number of its own');
SELECT is((SELECT array_agg(tq.task(t.task_id) -> 'policy' ->> 'totalTimeout' ORDER BY task_queue_id) FROM tq.task_overview t WHERE task_queue_id ~ '^ids/r'),
	'{"11 h","12 h","13 h","14 h","15 h","16 h","17 h","18 h"}', '1.6 ids: and each policy');
SELECT ok(min(id) < 1000 AND max(id) = 2147483647, '1.6 ids: they went round: ' || e) FROM (SELECT 'queue', id FROM tq_internal.queue UNION ALL SELECT 'worker', id FROM tq_internal.worker UNION ALL SELECT 'policy', id FROM tq_internal.policy) AS x (e, id) GROUP BY e;

-- What has a number of a former queue is not taken for that of the new one.
SELECT tq.set_queue('ids/r7', '{"concurrentLimit": 1}') \g /dev/null
SELECT pg_temp.near_end('queue', 0);
SELECT tq.enqueue('ids/s1') \g /dev/null
SELECT is((SELECT count(*) FROM tq.claim_work('ids/s1', 'g', 'w', 5)), 1::bigint, '1.6 ids: a new queue has its own tasks');
SELECT is(tq.get_task_queue('ids/s1') -> 'settings', '{}', '1.6 ids: and no settings');

SELECT * FROM finish();
ROLLBACK;
