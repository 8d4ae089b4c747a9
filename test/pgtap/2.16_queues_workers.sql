-- doc/spec/taskcluster.md 2.16: counts, getWorker, quarantineWorker, declareWorker,
-- and a worker that was removed.  The lists are in 2.16_lists.sql.
BEGIN;
\ir helper.psql

-- pendingTasks, taskQueueCounts
SELECT is((tq.task_queue_counts('test/unknown') -> 'pendingTasks')::bigint, 0::bigint, '2.16 pendingTasks: 0 for an unknown queue');
SELECT is(tq.task_queue_counts('test/unknown'), '{"provisionerId": "test", "workerType": "unknown", "taskQueueId": "test/unknown", "pendingTasks": 0, "claimedTasks": 0}',
	'2.16 taskQueueCounts: of an unknown queue');
SELECT pg_temp.create('c' || n, '{"taskQueueId": "test/counts"}') FROM generate_series(1, 5) AS n;
SELECT pg_temp.claims('test/counts', 2);
SELECT is(tq.task_queue_counts('test/counts'), '{"provisionerId": "test", "workerType": "counts", "taskQueueId": "test/counts", "pendingTasks": 3, "claimedTasks": 2}', '2.16 taskQueueCounts');
SELECT is((tq.task_queue_counts('test/counts') -> 'pendingTasks')::bigint, 3::bigint, '2.16 pendingTasks');

-- getWorker
SELECT pg_temp.create('a', '{"taskQueueId": "prov/type"}');
SELECT is(pg_temp.claims('prov/type', 1, 'me'), 'a', '2.16 a worker claims');
CREATE TEMP TABLE w AS SELECT tq.get_worker('prov/type', 'wg', 'me') AS w;
SELECT is(w - '{expires,firstClaim,lastDateActive,quarantineUntil,recentTasks,quarantineDetails}'::text[],
	'{"provisionerId": "prov", "workerType": "type", "taskQueueId": "prov/type", "workerGroup": "wg", "workerId": "me"}', '2.16 getWorker: its names') FROM w;
SELECT is(pg_temp.keys(w), 'expires firstClaim lastDateActive provisionerId recentTasks taskQueueId workerGroup workerId workerType', '2.16 getWorker: all keys; nothing about a quarantine') FROM w;
SELECT is(w -> 'recentTasks', jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a')::text, 'runId', 0)), '2.16 getWorker: recentTasks') FROM w;
SELECT ok(w ->> k ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', '2.16 getWorker: the form of ' || k) FROM w, unnest('{expires,firstClaim,lastDateActive}'::text[]) AS k;
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/type', 'wg', 'you')$$, 'TQ404', '2.16 getWorker: unknown worker');
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/other', 'wg', 'me')$$, 'TQ404', '2.16 getWorker: unknown queue');
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/type', 'wh', 'me')$$, 'TQ404', '2.16 getWorker: unknown group');
SELECT pg_temp.throws(format('SELECT tq.get_worker(%s)', args), 'TQ400', '2.16 getWorker: refused ' || args)
FROM unnest(ARRAY['''p./q'', ''wg'', ''w1''', '''p/q.'', ''wg'', ''w1''', '''p/q'', ''w/g'', ''w1''', '''p/q'', ''wg'', ''''']) AS args;
SET tq.clock_offset = '23 hours 59 minutes';
SELECT lives_ok($$SELECT tq.get_worker('prov/type', 'wg', 'me')$$, '8.4 getWorker: until it expires');
SET tq.clock_offset = '24 hours 1 minute';
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/type', 'wg', 'me')$$, 'TQ404', '8.4 getWorker: an expired worker is hidden');
RESET tq.clock_offset;

-- quarantineWorker; what a quarantine does is 5.5
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov/type', 'wg', 'you', now() + interval '1 hour')$$, 'TQ404', '2.16 quarantineWorker: unknown worker');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov/nope', 'wg', 'me', now() + interval '1 hour')$$, 'TQ404', '2.16 quarantineWorker: unknown queue');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov/type', 'wg', 'me', now() + interval '1 hour', repeat('x', 4001))$$, 'TQ400', '2.16 quarantineWorker: info of 4001 characters');
SELECT pg_temp.claims('prov/type', 1, 'other');
SELECT lives_ok($$SELECT tq.quarantine_worker('prov/type', 'wg', 'other', now() + interval '1 hour', repeat('é', 4000))$$, '2.16 quarantineWorker: info of 4000 characters');
CREATE TEMP TABLE q AS SELECT tq.quarantine_worker('prov/type', 'wg', 'me', date_trunc('milliseconds', now()) + interval '1 hour', 'because') AS w;
SELECT is(w, tq.get_worker('prov/type', 'wg', 'me'), '2.16 quarantineWorker: returns the worker') FROM q;
SELECT is(w ->> 'quarantineUntil', pg_temp.iso(now() + interval '1 hour'), '2.16 quarantineWorker: quarantineUntil') FROM q;
SELECT ok(pg_temp.near(w ->> 'expires', now() + interval '1 day'), '2.16 quarantineWorker: expires is a day from now at least') FROM q;
SET tq.clock_offset = '10 minutes';
SELECT ok(pg_temp.near(tq.quarantine_worker('prov/type', 'wg', 'me', now() + interval '3 days') ->> 'expires', pg_temp.clock() + interval '1 day'), '2.16 quarantineWorker: expires moves');
RESET tq.clock_offset;
SELECT ok(pg_temp.near(tq.quarantine_worker('prov/type', 'wg', 'me', now() + interval '3 days') ->> 'expires', now() + interval '1 day 10 minutes'), '2.16 quarantineWorker: but never back');
CREATE FUNCTION pg_temp.details() RETURNS jsonb
LANGUAGE sql AS $$
	SELECT tq.get_worker('prov/type', 'wg', 'me') -> 'quarantineDetails'
$$;
SELECT is(jsonb_array_length(pg_temp.details()), 3, '2.16 quarantineWorker: each call is added to the details');
SELECT is(pg_temp.keys(pg_temp.details() -> 0), 'clientId quarantineInfo quarantineUntil updatedAt', '2.16 quarantineWorker: keys of the details');
SELECT is(d ->> 'quarantineInfo', 'because', '2.16 quarantineWorker: the reason can be read') FROM (SELECT pg_temp.details() -> 0) AS x (d);
SELECT is(d ->> 'clientId', session_user::text, '2.16 quarantineWorker: and who gave it') FROM (SELECT pg_temp.details() -> 0) AS x (d);
SELECT is(pg_temp.details() -> -1 ->> 'quarantineInfo', '[unspecified]', '2.16 quarantineWorker: no info given');
SELECT is(tq.quarantine_worker('prov/type', 'wg', 'other', now() - interval '1 hour') ->> 'quarantineUntil', pg_temp.iso(now() - interval '1 hour'), '2.16 quarantineWorker: an ended quarantine is shown');
SET tq.clock_offset = '2 days';
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/type', 'wg', 'me')$$, 'TQ404', '2.16 getWorker: not while its queue has expired, though it is in quarantine');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('prov/type', 'wg', 'me', now() + interval '9 days')$$, 'TQ404', '2.16 quarantineWorker: nor this');
SELECT pg_temp.claims('prov/type', 1, 'third');
SELECT lives_ok($$SELECT tq.get_worker('prov/type', 'wg', 'me')$$, '5.5 an expired worker under quarantine is visible when its queue is seen again');
SELECT is(jsonb_array_length(pg_temp.details()), 3, '2.16 with its reasons');
SELECT is(pg_temp.claims('prov/type', 1, 'me'), '', '5.5 and the quarantine holds');
SET tq.clock_offset = '4 days';
SELECT pg_temp.claims('prov/type', 1, 'third');
SELECT pg_temp.throws($$SELECT tq.get_worker('prov/type', 'wg', 'me')$$, 'TQ404', '5.5 until the quarantine ends');
RESET tq.clock_offset;

-- declareWorker
SELECT is(w - '{expires}'::text[], '{"provisionerId": "dec", "workerType": "t", "taskQueueId": "dec/t", "workerGroup": "g.1", "workerId": "pod.1", "recentTasks": []}', '2.16 declareWorker: creates queue and worker')
FROM tq.declare_worker('dec/t', 'g.1', 'pod.1', now() + interval '3 days') AS w;
SELECT cmp_ok(tq.get_task_queue('dec/t') ->> 'lastDateActive', '>=', pg_temp.iso(now()), '2.16 declareWorker: lastDateActive of the queue');
SELECT is(w ->> 'expires', pg_temp.iso(now() + interval '3 days'), '2.16 declareWorker: expires') FROM tq.get_worker('dec/t', 'g.1', 'pod.1') AS w;
SELECT is(w ->> 'expires', pg_temp.iso(now() + interval '3 days'), '2.16 declareWorker: which never moves back') FROM tq.declare_worker('dec/t', 'g.1', 'pod.1', now() + interval '1 hour') AS w;
SELECT is(w ->> 'expires', pg_temp.iso(now() + interval '4 days'), '2.16 declareWorker: but forward') FROM tq.declare_worker('dec/t', 'g.1', 'pod.1', now() + interval '4 days') AS w;
SELECT is((tq.declare_worker('dec/t', 'g.1', 'pod.1', now(), 4, 'runner 1.2') ->> 'capacity')::int, 4, '2.16 declareWorker: capacity');
SELECT is(concat_ws(' ', w ->> 'capacity', w ->> 'version'), '4 runner 1.2', '2.16 declareWorker: which stay without') FROM tq.declare_worker('dec/t', 'g.1', 'pod.1', now()) AS w;
SELECT is((SELECT concat_ws(' ', capacity, version) FROM tq.worker_overview WHERE worker_id = 'pod.1'), '4 runner 1.2', '8.5 are shown');
SELECT pg_temp.throws(format('SELECT tq.declare_worker(''dec/t'', ''g.1'', ''pod.1'', now(), %s)', args), 'TQ400', '2.16 declareWorker: refused capacity, version ' || args)
FROM unnest(ARRAY['0', '1000001', 'NULL, repeat(''x'', 4001)']) AS args;
SET tq.clock_offset = '3 days 23 hours';
SELECT lives_ok($$SELECT tq.get_worker('dec/t', 'g.1', 'pod.1')$$, '2.16 declareWorker: the queue does not expire before it');
RESET tq.clock_offset;
SELECT lives_ok($$SELECT tq.quarantine_worker('dec/t', 'g.1', 'pod.1', now() + interval '1 hour')$$, '2.16 quarantineWorker: a declared worker that never claimed');
SELECT pg_temp.create('d1', '{"taskQueueId": "dec/t"}');
SELECT is((SELECT count(*) FROM tq.claim_work('dec/t', 'g.1', 'pod.1')), 0::bigint, '5.5 which then gets nothing');
SELECT lives_ok($$SELECT tq.quarantine_worker('dec/t', 'g.1', 'pod.1', now() - interval '1 hour')$$, '2.16 quarantineWorker: its end');
SELECT is((SELECT count(*) FROM tq.claim_work('dec/t', 'g.1', 'pod.1')), 1::bigint, '5.5 then it does');
SELECT ok(w ? 'firstClaim' AND w -> 'recentTasks' -> 0 ->> 'taskId' = pg_temp.id('d1')::text, '5.6 and its first claim is known') FROM tq.get_worker('dec/t', 'g.1', 'pod.1') AS w;
SELECT ok((tq.declare_worker('dec/t', 'g.1', 'pod.2', '-infinity') ->> 'expires')::timestamptz > '2020-01-01', '2.16 declareWorker: -infinity is now');
SELECT is((tq.quarantine_worker('dec/t', 'g.1', 'pod.1', '-infinity') ->> 'quarantineUntil')::timestamptz > pg_temp.clock() - interval '1 minute', true, '2.16 quarantineWorker: -infinity is now');
SELECT pg_temp.throws($$SELECT tq.quarantine_worker('dec/t', 'g.1', 'pod.1', 'infinity')$$, 'TQ400', '2.16 quarantineWorker: infinity is refused');
SELECT pg_temp.throws(format('SELECT tq.declare_worker(%s)', args), 'TQ400', '2.16 declareWorker: refused ' || args)
FROM unnest(ARRAY['''p/q'', ''wg'', ''w1'', NULL', '''p/q'', ''wg'', ''w1'', ''infinity''', '''p/q'', ''w/g'', ''w1'', now()', '''p./q'', ''wg'', ''w1'', now()']) AS args;

-- a worker that was removed; what becomes of a run is #33 of 3.1
SELECT pg_temp.create('m' || n, '{"taskQueueId": "rem/t", "retries": 1}') FROM generate_series(1, 5) AS n;
SELECT pg_temp.create('m6', '{"taskQueueId": "rem/t", "retries": 0, "priority": "highest"}');
SELECT is(pg_temp.claims('rem/t', 3, 'gone'), 'm6 m1 m2', '2.16 a worker has three runs');
SELECT is(pg_temp.claims('rem/t', 1, 'other'), 'm3', '2.16 another one has one');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('m4'), 0, 'wg', 'gone')$$, '2.16 one by claim_task');
SELECT pg_temp.report('m1', 'completed');
SELECT is((SELECT string_agg(pg_temp.name(task_id) || '/' || run_id || ' ' || outcome, ', ' ORDER BY pg_temp.name(task_id)) FROM tq.worker_removed('rem/t', 'wg', 'gone', 'spot instance')),
	'm2/0 retried, m4/0 retried, m6/0 resolved', '2.16 worker_removed: each run that it holds');
SELECT is(pg_temp.look('m2'), 'pending 0: scheduled>exception/worker-shutdown retry>pending', '2.16 worker_removed: is retried');
SELECT is(pg_temp.look('m6'), 'exception 0: scheduled>exception/worker-shutdown', '2.16 worker_removed: if it has retries left');
SELECT is(pg_temp.look('m3'), 'running 1: scheduled>running', '2.16 worker_removed: not the runs of others');
SELECT is(pg_temp.look('m1'), 'completed 1: scheduled>completed/completed', '2.16 worker_removed: nor what it had completed');
SELECT is(tq.status(pg_temp.id('m2')) #> '{runDetails,0,error}', '{"message": "spot instance"}', '2.16 worker_removed: the reason is kept');
SELECT is((SELECT count(*) FROM tq.worker_removed('rem/t', 'wg', 'gone')), 0::bigint, '2.16 worker_removed: again, and without a reason');
SELECT is((SELECT count(*) FROM tq.worker_removed(q, 'wg', w, 'x')), 0::bigint, '2.16 worker_removed: an unknown worker holds nothing: ' || q || ' ' || w)
FROM (VALUES ('rem/t', 'never'), ('rem/u', 'gone'), ('rem/t', 'never*'), ('rem/u', '*')) AS v (q, w);
SELECT pg_temp.throws(format('SELECT tq.worker_removed(''rem/t'', ''wg'', %L)', w), 'TQ400', '2.16 worker_removed: no name: ' || w) FROM unnest('{a*b,*a,a**,**,"",**a*}'::text[]) AS w;
SELECT pg_temp.create('h' || n, '{"taskQueueId": "rem/h"}') FROM generate_series(1, 4) AS n;
SELECT pg_temp.claims('rem/h', 1, w) FROM unnest('{host-1,host-2,hos,other}'::text[]) AS w \g /dev/null
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY pg_temp.name(task_id)) FROM tq.worker_removed('rem/h', 'wg', 'host-*', 'host is off')), 'h1 h2', '2.16 worker_removed: all that begin like that');
SELECT is((SELECT count(*) FROM tq.worker_removed('rem/h', 'xx', '*')), 0::bigint, '2.16 worker_removed: of the group');
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY pg_temp.name(task_id)) FROM tq.worker_removed('rem/h', 'wg', '*')), 'h3 h4', '2.16 worker_removed: all of it');
CREATE ROLE remover;
SELECT tq.grant_scopes('remover', '{queue:worker-removed:rem/h/wg/host-*}') \g /dev/null
SET ROLE remover;
SELECT lives_ok(format('SELECT tq.worker_removed(''rem/h'', ''wg'', %L)', w), '2.16 worker_removed: within its scope: ' || w) FROM unnest('{host-1,host-*,host-1*}'::text[]) AS w;
SELECT throws_ok(format('SELECT tq.worker_removed(''rem/h'', ''wg'', %L)', w), 'TQ403', NULL, '2.16 worker_removed: beyond it: ' || w) FROM unnest('{host*,*,hos}'::text[]) AS w;
RESET ROLE;
SELECT pg_temp.throws($$SELECT tq.worker_removed('rem/t', 'wg', 'gone', repeat('x', 4001))$$, 'TQ400', '2.16 worker_removed: a reason of 4001 characters');

SELECT * FROM finish();
ROLLBACK;
