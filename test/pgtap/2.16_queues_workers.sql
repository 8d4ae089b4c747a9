-- doc/spec/taskcluster.md 2.16, as far as functions exist: counts, getWorker,
-- quarantineWorker. (The lists, declareWorker and the like are no part of tq yet.)
BEGIN;
\ir helper.psql
SELECT plan(35);

-- pendingTasks, taskQueueCounts
SELECT is(tq.pending_tasks('test/unknown'), 0::bigint, '2.16 pendingTasks: 0 for an unknown queue');
SELECT is(tq.task_queue_counts('test/unknown'), '{"provisionerId": "test", "workerType": "unknown", "taskQueueId": "test/unknown", "pendingTasks": 0, "claimedTasks": 0}',
	'2.16 taskQueueCounts: of an unknown queue');
SELECT pg_temp.create('c' || n, '{"taskQueueId": "test/counts"}') FROM generate_series(1, 5) AS n;
SELECT pg_temp.claims('test/counts', 2);
SELECT is(tq.task_queue_counts('test/counts'), '{"provisionerId": "test", "workerType": "counts", "taskQueueId": "test/counts", "pendingTasks": 3, "claimedTasks": 2}', '2.16 taskQueueCounts');
SELECT is(tq.pending_tasks('test/counts'), 3::bigint, '2.16 pendingTasks');

-- getWorker
SELECT pg_temp.create('a', '{"taskQueueId": "prov/type"}');
SELECT is(pg_temp.claims('prov/type', 1, 'me'), 'a', '2.16 a worker claims');
CREATE TEMP TABLE w AS SELECT tq.get_worker('prov', 'type', 'wg', 'me') AS w;
SELECT is(w - '{expires,firstClaim,lastDateActive,quarantineUntil,recentTasks,quarantineDetails}'::text[],
	'{"provisionerId": "prov", "workerType": "type", "taskQueueId": "prov/type", "workerGroup": "wg", "workerId": "me"}', '2.16 getWorker: its names') FROM w;
SELECT ok(w ?& '{recentTasks,expires,quarantineUntil,firstClaim,lastDateActive}'::text[], '2.16 getWorker: all keys') FROM w;
SELECT is(w -> 'recentTasks', jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a')::text, 'runId', 0)), '2.16 getWorker: recentTasks') FROM w;
SELECT ok(w ->> k ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', '2.16 getWorker: the form of ' || k) FROM w, unnest('{expires,firstClaim,lastDateActive,quarantineUntil}'::text[]) AS k;
SELECT pg_temp.throws($$SELECT tq.get_worker('prov', 'type', 'wg', 'you')$$, 'TQ404', '2.16 getWorker: unknown worker');
SELECT pg_temp.throws($$SELECT tq.get_worker('prov', 'other', 'wg', 'me')$$, 'TQ404', '2.16 getWorker: unknown queue');
SELECT pg_temp.throws($$SELECT tq.get_worker('prov', 'type', 'wh', 'me')$$, 'TQ404', '2.16 getWorker: unknown group');
SELECT pg_temp.throws(format('SELECT tq.get_worker(%s)', args), 'TQ400', '2.16 getWorker: refused ' || args)
FROM unnest(ARRAY['''p.'', ''q'', ''wg'', ''w1''', '''p'', ''q.'', ''wg'', ''w1''', '''p'', ''q'', ''w.g'', ''w1''', '''p'', ''q'', ''wg'', ''''']) AS args;
SET tq.clock_offset = '23 hours 59 minutes';
SELECT lives_ok($$SELECT tq.get_worker('prov', 'type', 'wg', 'me')$$, '8.4 getWorker: until it expires');
SET tq.clock_offset = '24 hours 1 minute';
SELECT pg_temp.throws($$SELECT tq.get_worker('prov', 'type', 'wg', 'me')$$, 'TQ404', '8.4 getWorker: an expired worker is hidden');
RESET tq.clock_offset;

-- quarantineWorker; what a quarantine does is 5.5
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov', 'type', 'wg', 'you', now() + interval '1 hour')$$, 'TQ404', '2.16 quarantineWorker: unknown worker');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov', 'nope', 'wg', 'me', now() + interval '1 hour')$$, 'TQ404', '2.16 quarantineWorker: unknown queue');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov', 'type', 'wg', 'me', now() + interval '1 hour', repeat('x', 4001))$$, 'TQ400', '2.16 quarantineWorker: info of 4001 characters');
SELECT pg_temp.claims('prov/type', 1, 'other');
SELECT lives_ok($$SELECT tq.quarantine_worker('prov', 'type', 'wg', 'other', now() + interval '1 hour', repeat('é', 4000))$$, '2.16 quarantineWorker: info of 4000 characters');
CREATE TEMP TABLE q AS SELECT tq.quarantine_worker('prov', 'type', 'wg', 'me', date_trunc('milliseconds', now()) + interval '1 hour', 'because') AS w;
SELECT is(w, tq.get_worker('prov', 'type', 'wg', 'me'), '2.16 quarantineWorker: returns the worker') FROM q;
SELECT is(w ->> 'quarantineUntil', pg_temp.iso(now() + interval '1 hour'), '2.16 quarantineWorker: quarantineUntil') FROM q;
SELECT ok(pg_temp.near(w ->> 'expires', now() + interval '1 day'), '2.16 quarantineWorker: expires is a day from now at least') FROM q;
SET tq.clock_offset = '10 minutes';
SELECT ok(pg_temp.near(tq.quarantine_worker('prov', 'type', 'wg', 'me', now() + interval '3 days') ->> 'expires', pg_temp.clock() + interval '1 day'), '2.16 quarantineWorker: expires moves');
RESET tq.clock_offset;
SELECT ok(pg_temp.near(tq.quarantine_worker('prov', 'type', 'wg', 'me', now() + interval '3 days') ->> 'expires', now() + interval '1 day 10 minutes'), '2.16 quarantineWorker: but never back');
SELECT is((SELECT jsonb_array_length(quarantine_details) FROM tq_internal.worker WHERE worker_id = 'me'), 3, '2.16 quarantineWorker: each call is added to the details');
SELECT is((SELECT pg_temp.keys(quarantine_details -> 0) FROM tq_internal.worker WHERE worker_id = 'me'), 'clientId quarantineInfo quarantineUntil updatedAt', '2.16 quarantineWorker: keys of the details');
SELECT is((SELECT quarantine_details -> -1 ->> 'quarantineInfo' FROM tq_internal.worker WHERE worker_id = 'me'), '[unspecified]', '2.16 quarantineWorker: no info given');
SET tq.clock_offset = '2 days';
SELECT lives_ok($$SELECT tq.get_worker('prov', 'type', 'wg', 'me')$$, '5.5 an expired worker under quarantine is visible');
SET tq.clock_offset = '4 days';
SELECT pg_temp.throws($$SELECT tq.get_worker('prov', 'type', 'wg', 'me')$$, 'TQ404', '5.5 until the quarantine ends');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
