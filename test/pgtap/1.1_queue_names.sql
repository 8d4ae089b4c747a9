-- doc/spec/taskcluster.md 1.1: a name without a slash, as an argument, is a task
-- queue of the provisioner "-", in each function that takes a queue.
BEGIN;
\ir helper.psql

CREATE TEMP TABLE known AS SELECT oid::regprocedure::text AS fn, false AS seen FROM pg_proc
WHERE pronamespace = 'tq'::regnamespace AND EXISTS (SELECT FROM unnest(proargnames[1:pronargs]) a WHERE a ~ 'task_queue_id');
CREATE FUNCTION pg_temp.same(fn text, call text, expected text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	UPDATE known SET seen = true WHERE known.fn LIKE same.fn || '(%';
	EXECUTE call INTO got;
	RETURN NEXT is(got, expected, fn || ': ' || call);
END $$;

SELECT pg_temp.same('tq.enqueue', $$SELECT tq.task(tq.enqueue('mailers', task_id => pg_temp.id('a'))) ->> 'taskQueueId'$$, '-/mailers');
SELECT is(tq.task(pg_temp.id('a')) ->> 'provisionerId', '-', 'provisionerId');
SELECT is(tq.task(pg_temp.id('a')) ->> 'workerType', 'mailers', 'workerType');
SELECT pg_temp.same('tq.enqueue_tasks', $$SELECT tq.status((tq.enqueue_tasks('mailers', '{"{}","{}","{}"}', policy => '{"deadLetter": true}'))[1]) ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.task_queue_counts', $$SELECT (tq.task_queue_counts('mailers') -> 'pendingTasks')::bigint$$, '4');
SELECT is((tq.task_queue_counts('-/mailers') -> 'pendingTasks')::bigint, 4::bigint, 'the same queue by its whole name');
SELECT pg_temp.same('tq.task_queue_counts', $$SELECT tq.task_queue_counts('mailers') ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.list_pending_tasks', $$SELECT count(*) FROM tq.list_pending_tasks('mailers')$$, '4');
SELECT pg_temp.same('tq.claim_work', $$SELECT task_id::text FROM tq.claim_work('mailers', 'wg', 'w1')$$, pg_temp.id('a')::text);
SELECT pg_temp.same('tq.claim_work', $$SELECT string_agg(DISTINCT task_queue_id, ' ') FROM tq.claim_work('{mailers,-/mailers,-/*}'::text[], 'wg', 'w1', 3)$$, '-/mailers');
SELECT pg_temp.same('tq.list_claimed_tasks', $$SELECT count(*) FROM tq.list_claimed_tasks('mailers')$$, '4');
SELECT pg_temp.same('tq.get_task_queue', $$SELECT tq.get_task_queue('mailers') ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.get_worker', $$SELECT tq.get_worker('mailers', 'wg', 'w1') ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.list_workers', $$SELECT count(*) FROM tq.list_workers('mailers')$$, '1');
SELECT pg_temp.same('tq.declare_worker', $$SELECT tq.declare_worker('mailers', 'wg', 'w2', now() + interval '1 day') ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.quarantine_worker', $$SELECT tq.quarantine_worker('mailers', 'wg', 'w2', now() + interval '1 day') ->> 'taskQueueId'$$, '-/mailers');
SELECT pg_temp.same('tq.worker_removed', $$SELECT count(*) FROM tq.worker_removed('mailers', 'wg', 'w2')$$, '0');
SELECT tq.enqueue('mailers', task_id => pg_temp.id('b'));
SELECT pg_temp.same('tq.resolve_and_claim', format($$SELECT runs[1].task_id FROM (SELECT array_agg(r) AS runs FROM tq.resolve_and_claim(%L, 'mailers', 'wg', 'w1') r WHERE r.task_id = %L) x$$,
	'[]', pg_temp.id('b')), pg_temp.id('b')::text);
SELECT tq.report_failed(task_id, run_id) FROM tq.list_claimed_tasks('-/mailers') \g /dev/null
SELECT pg_temp.same('tq.list_dead_letters', $$SELECT count(*) FROM tq.list_dead_letters('mailers')$$, '3');
SELECT pg_temp.same('tq.redrive_queue', $$SELECT tq.redrive_queue('mailers', 2)$$, '2');
SELECT pg_temp.same('tq.purge', $$SELECT tq.purge('mailers', '{failed}', '0')$$, '3');
SELECT pg_temp.same('tq.set_queue', $$SELECT tq.set_queue('mailers', '{"claimTimeout": 60}') ->> 'claimTimeout'$$, '60');
SELECT is(tq.get_task_queue('-/mailers') #>> '{settings,claimTimeout}', '60', 'the settings of the queue by its whole name');
SELECT pg_temp.same('tq.pause_queue', $$SELECT tq.pause_queue('mailers') ->> 'paused'$$, 'true');
SELECT pg_temp.same('tq.resume_queue', $$SELECT tq.resume_queue('mailers') ->> 'paused'$$, NULL);
SELECT pg_temp.same('tq.queue_channel', $$SELECT tq.queue_channel('mailers') = tq.queue_channel('-/mailers')$$, 'true');
CREATE ROLE queue_names;
SELECT pg_temp.same('tq.grant_queue', $$SELECT count(*) FROM tq.grant_queue('queue_names', 'mailers', 'produce')$$, '1');
SELECT ok(bool_or(scope LIKE '%:-/mailers'), 'grant_queue: the scopes name the queue') FROM tq_internal.scope_grant WHERE role = 'queue_names'::regrole;
SELECT pg_temp.same('tq.revoke_queue', $$SELECT count(*) FROM tq.revoke_queue('queue_names', 'mailers', 'produce')$$, '1');
SELECT ok(NOT coalesce(bool_or(scope LIKE '%:-/mailers'), false), 'revoke_queue: no more') FROM tq_internal.scope_grant WHERE role = 'queue_names'::regrole;
SELECT tq.enqueue('mailers', task_group_id => pg_temp.id('g'));
SELECT pg_temp.same('tq.on_group_resolved', $$SELECT tq.on_group_resolved(pg_temp.id('g'), 'mailers', task_id => pg_temp.id('h'))$$, pg_temp.id('h')::text);
SET cron.database_name = 'elsewhere';	-- a pg_cron
SELECT pg_temp.same('tq.schedule_cron', $$SELECT task_queue_id FROM tq.schedule_cron('plain', '0 6 * * *', 'mailers') CROSS JOIN LATERAL (SELECT tq.task(tq.run_cron_now(name)) ->> 'taskQueueId' AS task_queue_id) t$$, '-/mailers');
SELECT tq.enqueue_tasks('mailers', '{"{}","{}"}') \g /dev/null
SELECT pg_temp.same('tq_internal.claim_lines', $$SELECT count(*) FROM tq_internal.claim_lines('mailers', 'wg', 'w1')$$, '1');
SELECT pg_temp.same('tq_internal.claim_lines', $$SELECT split_part(tq_internal.claim_lines('{mailers,-/*}'::text[], 'wg', 'w1'), E'\t', 8)$$, E'-/mailers\n');
-- Procedures that commit: what they refuse they have read.
SELECT pg_temp.throws($$CALL tq.cancel_tasks('mailers')$$, 'TQ400', 'cancel_tasks in a transaction');
SELECT bag_eq($$SELECT fn FROM known WHERE NOT seen$$, $$SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'tq'::regnamespace AND proname IN ('cancel_tasks', 'move_tasks', 'wait_for_work') AND prokind = 'p'$$,
	'every function but these was called');

SELECT pg_temp.throws(format('SELECT tq.task_queue_counts(%L)', name), 'TQ400', 'refused: ' || name) FROM unnest(ARRAY['', 'a.b', '*', 'a/', '/a', 'a b', 'a/b/c', repeat('q', 39)]) AS name;
SELECT is((tq.task_queue_counts(repeat('q', 38)) -> 'pendingTasks')::bigint, 0::bigint, '38 characters');
SELECT pg_temp.throws($$SELECT tq.claim_work('{*}'::text[], 'g', 'w')$$, 'TQ400', 'a star alone is no pattern');
SELECT pg_temp.refuses('{"taskQueueId": "mailers"}', 'a definition needs the whole name');

SELECT * FROM finish();
ROLLBACK;
