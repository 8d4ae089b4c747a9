-- doc/spec/taskcluster.md 2.11, 2.12: resolve, the batch form of the reports.
-- The reasons failed-terminal and canceled are in policy_reports.sql.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.outcomes(ids tq.slugid[], runs int[], reason text DEFAULT 'completed') RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(run_id || ' ' || outcome, ', ' ORDER BY ordinality), '')
	FROM tq.resolve(ids, runs, reason) WITH ORDINALITY AS r
$$;

-- nothing
SELECT is(pg_temp.outcomes('{}', '{}'), '', 'resolve of none');

-- every outcome
SELECT pg_temp.running(n) FROM unnest('{a,b,c,lost,other}'::text[]) AS n;
SELECT pg_temp.create('p');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.resolved('done', 'completed');
SELECT pg_temp.resolved('fail', 'failed');
SELECT pg_temp.report('lost', 'canceled');
SELECT pg_temp.create('after', '{"$deps": ["a", "b", "c"]}');
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{lost,other,p,u,done,fail}'::text[]) AS n;
CREATE TEMP TABLE r AS SELECT task_id, run_id, outcome, ordinality AS n FROM tq.resolve(
	pg_temp.ids('a', 'p', 'nobody', 'b', 'done', 'u', 'fail', 'lost', 'a', 'c'),
	'{0,0,0,0,0,0,0,0,3,0}') WITH ORDINALITY AS t;
SELECT is(count(*), 10::bigint, 'resolve: one row per run asked for') FROM r;
SELECT is((SELECT outcome FROM r WHERE task_id::text = pg_temp.id(v.name)::text AND run_id = v.run), v.outcome, format('resolve: %s %s', v.name, v.outcome))
FROM (VALUES ('a', 0, 'resolved'), ('b', 0, 'resolved'), ('c', 0, 'resolved'), ('p', 0, 'conflict'), ('nobody', 0, 'not-found'), ('done', 0, 'repeated'),
	('u', 0, 'not-found'), ('fail', 0, 'conflict'), ('lost', 0, 'conflict'), ('a', 3, 'not-found')) AS v (name, run, outcome);
SELECT is((SELECT array_agg(task_id::text ORDER BY n) FROM r), pg_temp.ids('a', 'p', 'nobody', 'b', 'done', 'u', 'fail', 'lost', 'a', 'c')::text[],
	'resolve: in the order of the arguments');
SELECT is(pg_temp.look(n), 'completed 5: scheduled>completed/completed', 'resolve: completed ' || n) FROM unnest('{a,b,c}'::text[]) AS n;
SELECT is(tq.status(pg_temp.id(n)), status, 'resolve: not changed, ' || n) FROM before;
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', '4.4 resolve: a dependent of several of them is released once');
SELECT is(count(DISTINCT pg_temp.run(n) ->> 'resolved'), 1::bigint, 'resolve: one time for all') FROM unnest('{a,b,c}'::text[]) AS n;

-- repeats
SELECT is(pg_temp.outcomes(pg_temp.ids('a', 'b'), '{0,0}'), '0 repeated, 0 repeated', 'resolve: a repeat');
SELECT is(pg_temp.outcomes(pg_temp.ids('a', 'b'), '{0,0}', 'failed'), '0 conflict, 0 conflict', 'resolve: for another reason');
SELECT pg_temp.running('twice');
SELECT is(pg_temp.outcomes(pg_temp.ids('twice', 'twice'), '{0,0}'), '0 resolved, 0 repeated', 'resolve: the same run twice in one call');
SELECT is(pg_temp.look('twice'), 'completed 5: scheduled>completed/completed', 'resolve: is resolved once');

SELECT pg_temp.running('twice2');
SELECT is(pg_temp.outcomes(pg_temp.ids('twice2', 'twice2', 'twice2'), '{0,0,1}', 'worker-shutdown'), '0 retried, 0 repeated, 1 not-found', 'resolve: the same run twice, and the retry that it creates');
SELECT is(pg_temp.look('twice2'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'resolve: is retried once');

-- every reason
SELECT pg_temp.running('x-' || r, '{"retries": 1}') FROM unnest('{completed,failed,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task}'::text[]) AS r;
SELECT is(pg_temp.outcomes(pg_temp.ids('x-' || r), '{0}', r), '0 ' || outcome, format('resolve for %s: %s', r, outcome))
FROM (VALUES ('completed', 'resolved'), ('failed', 'resolved'), ('worker-shutdown', 'retried'), ('malformed-payload', 'resolved'), ('resource-unavailable', 'resolved'),
	('internal-error', 'resolved'), ('intermittent-task', 'retried')) AS v (r, outcome);
SELECT is(pg_temp.look('x-' || r), line, 'resolve for ' || r)
FROM (VALUES ('completed', 'completed 1: scheduled>completed/completed'), ('failed', 'failed 1: scheduled>failed/failed'),
	('worker-shutdown', 'pending 0: scheduled>exception/worker-shutdown retry>pending'), ('malformed-payload', 'exception 1: scheduled>exception/malformed-payload'),
	('resource-unavailable', 'exception 1: scheduled>exception/resource-unavailable'), ('internal-error', 'exception 1: scheduled>exception/internal-error'),
	('intermittent-task', 'pending 0: scheduled>exception/intermittent-task task-retry>pending')) AS v (r, line);
SELECT is(pg_temp.outcomes(pg_temp.ids('x-' || r), '{0}', r), '0 repeated', '2.12 resolve: a repeat for ' || r)
FROM unnest('{completed,failed,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task}'::text[]) AS r;
SELECT is(pg_temp.take('x-worker-shutdown'), 1, 'resolve: the retry can be claimed');
SELECT is(pg_temp.outcomes(pg_temp.ids('x-worker-shutdown', 'x-worker-shutdown'), '{1,0}', 'worker-shutdown'), '1 resolved, 0 repeated', 'resolve: no retries are left, and an older run is repeated');
SELECT is(pg_temp.outcomes(pg_temp.ids('x-worker-shutdown'), '{0}', 'completed'), '0 conflict', 'resolve: an older run for another reason');
SELECT pg_temp.throws(format('SELECT tq.resolve(pg_temp.ids(''other''), ''{0}'', %L)', r), 'TQ400', 'resolve: no reason for a worker: ' || quote_literal(r))
FROM unnest('{"",deadline-exceeded,claim-expired,superseded,foo,Completed}'::text[]) AS r;

-- mixed budgets in one call
SELECT pg_temp.running('m0', '{"retries": 0}');
SELECT pg_temp.running('m1', '{"retries": 1}');
SELECT is(pg_temp.outcomes(pg_temp.ids('m0', 'm1'), '{0,0}', 'intermittent-task'), '0 resolved, 0 retried', 'resolve: each by the retries it has');

-- arguments
SELECT pg_temp.throws($$SELECT tq.resolve(pg_temp.ids('other'), '{0,1}')$$, 'TQ400', 'resolve: arrays of different length');
SELECT pg_temp.throws($$SELECT tq.resolve(pg_temp.ids('other'), '{}')$$, 'TQ400', 'resolve: no run ids');
SELECT pg_temp.throws($$SELECT tq.resolve(pg_temp.ids('other'), '{NULL}')$$, 'TQ400', 'resolve: a run id is NULL');
SELECT pg_temp.throws($$SELECT tq.resolve(ARRAY[NULL::tq.slugid], '{0}')$$, 'TQ400', 'resolve: a task id is NULL');

-- a large batch
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('many' || n)::text, 'task', pg_temp.def('many', '{"taskQueueId": "test/many"}'))) FROM generate_series(1, 1000) AS n)),
	1000::bigint, 'resolve: a thousand tasks');
CREATE TEMP TABLE many AS SELECT * FROM tq.claim_work('test/many', 'wg', 'w1', 1000);
SELECT is((SELECT string_agg(DISTINCT outcome, ' ') || count(*) FROM tq.resolve((SELECT array_agg(task_id) FROM many), (SELECT array_agg(run_id) FROM many))),
	'resolved1000', 'resolve: in one call');
SELECT is(count(*), 1000::bigint, 'resolve: all are completed') FROM many, tq.status(task_id) AS s WHERE s ->> 'state' = 'completed';

-- A session remembers what it has claimed: few of 200 tasks are looked up to be resolved,
-- whether their ids begin with the same time, and have the bucket of their group, or not.
CREATE FUNCTION pg_temp.remembered(ordered text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ids tq.slugid[];
	before bigint;
BEGIN
	PERFORM set_config('tq.ordered_ids', ordered, true);
	PERFORM tq.enqueue_tasks('res/remembered', array_fill('{}'::jsonb, ARRAY[200]), task_group_id => tq.slugid());
	ids := array(SELECT task_id FROM tq.claim_work('res/remembered', 'wg', 'w', 200));
	before := pg_stat_get_xact_numscans('tq_internal.task_task_id_key'::regclass);
	PERFORM tq.resolve(ids, array_fill(0, ARRAY[200]));
	RETURN pg_stat_get_xact_numscans('tq_internal.task_task_id_key'::regclass) - before < 50;
END $$;
SELECT is(pg_temp.remembered(ordered), true, '2.12 what the session has claimed is remembered, tq.ordered_ids = ' || ordered) FROM unnest('{on,off}'::text[]) AS ordered;

SELECT * FROM finish();
ROLLBACK;
