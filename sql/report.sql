-- report_completed, report_failed, report_exception; retries; repeats.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

CREATE FUNCTION pg_temp.running(name text, retries int DEFAULT 5) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue('regress/w', task_id => pg_temp.id(name), retries => retries);
	SELECT task_id FROM tq.claim_task(pg_temp.id(name), 0, 'g', 'w') $$;

SELECT pg_temp.running('com');
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('com'), 0));
SELECT pg_temp.running('fail');
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('fail'), 0));
SELECT reason, pg_temp.brief(tq.report_exception(pg_temp.running('x' || n), 0, reason))
FROM unnest('{malformed-payload,resource-unavailable,internal-error,worker-shutdown,intermittent-task}'::text[]) WITH ORDINALITY x (reason, n);
SELECT reason, pg_temp.brief(tq.report_exception(pg_temp.running('y' || n, 0), 0, reason)) AS no_retries_left
FROM unnest('{worker-shutdown,intermittent-task}'::text[]) WITH ORDINALITY x (reason, n);
SELECT jsonb_object_keys(tq.status(pg_temp.id('com')) -> 'runs' -> 0) AS key ORDER BY 1;

-- A repeat is the same; another report is a conflict
SELECT pg_temp.stored() AS before \gset
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('com'), 0));
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('fail'), 0));
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('x1'), 0, 'malformed-payload'));
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('x4'), 0, 'worker-shutdown'));
SELECT what, a.code, a.message FROM (VALUES
	('completed, then failed', $$report_failed(pg_temp.id('com'), 0)$$),
	('failed, then completed', $$report_completed(pg_temp.id('fail'), 0)$$),
	('completed, then exception', $$report_exception(pg_temp.id('com'), 0, 'internal-error')$$),
	('exception, then another', $$report_exception(pg_temp.id('x1'), 0, 'internal-error')$$),
	('retried, then another', $$report_exception(pg_temp.id('x4'), 0, 'intermittent-task')$$),
	('retried, then completed', $$report_completed(pg_temp.id('x4'), 0)$$),
	('retry not claimed', $$report_completed(pg_temp.id('x4'), 1)$$),
	('retry not claimed', $$report_exception(pg_temp.id('x4'), 1, 'worker-shutdown')$$),
	('no such run', $$report_completed(pg_temp.id('com'), 1)$$),
	('no such run', $$report_failed(pg_temp.id('com'), -1)$$),
	('no such task', $$report_completed(pg_temp.id('nobody'), 0)$$),
	('no such task', $$report_failed(pg_temp.id('nobody'), 0)$$),
	('no such task', $$report_exception(pg_temp.id('nobody'), 0, 'internal-error')$$),
	('not a worker''s reason', $$report_exception(pg_temp.id('com'), 0, 'canceled')$$),
	('not a worker''s reason', $$report_exception(pg_temp.id('com'), 0, 'deadline-exceeded')$$),
	('not a worker''s reason', $$report_exception(pg_temp.id('com'), 0, 'completed')$$),
	('no reason at all', $$report_exception(pg_temp.id('com'), 0, 'rubbish')$$)) x (what, call),
	pg_temp.answer('SELECT tq.' || call) a;
SELECT pg_temp.stored() = :'before' AS unchanged;

-- Retries until none is left
SELECT pg_temp.running('retry', 2);
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('retry'), 0, 'worker-shutdown'));
SELECT task_id, run_id FROM tq.claim_task(pg_temp.id('retry'), 1, 'g', 'w2');
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('retry'), 0, 'worker-shutdown')) AS repeated_while_the_retry_runs;
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('retry'), 1, 'intermittent-task'));
SELECT * FROM pg_temp.answer($$SELECT tq.report_exception(pg_temp.id('retry'), 0, 'worker-shutdown')$$);
SELECT task_id, run_id FROM tq.claim_task(pg_temp.id('retry'), 2, 'g', 'w3');
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('retry'), 2, 'worker-shutdown'));
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('retry')));
SELECT * FROM pg_temp.answer($$SELECT tq.report_completed(pg_temp.id('retry'), 2)$$);

-- After the end of the claim and after the deadline, before the maintenance acts on it
SELECT pg_temp.running('late');
SELECT pg_temp.running('later');
SET tq.clock_offset = '21 minutes';
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('late'), 0));
SET tq.clock_offset = '25 hours';
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('later'), 0));
RESET tq.clock_offset;

-- A report in the same transaction as other work, and the next claim: all or nothing
SELECT tq.enqueue('regress/t', task_id => pg_temp.id('one'));
SELECT tq.enqueue('regress/t', task_id => pg_temp.id('two'));
SELECT task_id FROM tq.claim_work('regress/t', 'g', 'w');
BEGIN;
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('one'), 0));
SELECT task_id FROM tq.claim_work('regress/t', 'g', 'w');
ROLLBACK;
SELECT pg_temp.brief(tq.status(pg_temp.id('one'))), pg_temp.brief(tq.status(pg_temp.id('two')));
BEGIN;
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('one'), 0));
SELECT task_id FROM tq.claim_work('regress/t', 'g', 'w');
COMMIT;
SELECT pg_temp.brief(tq.status(pg_temp.id('one'))), pg_temp.brief(tq.status(pg_temp.id('two')));

-- A session caches the TID of what it claimed: it is not used beyond the end of the table
SELECT cardinality(tq.enqueue_tasks('regress/place', array_fill('{}'::jsonb, ARRAY[500])));
CREATE TEMP TABLE claimed AS SELECT task_id FROM tq.claim_work('regress/place', 'g', 'w', 500);
SELECT max(task) AS last FROM tq_internal.run \gset
DELETE FROM tq_internal.task WHERE id <> :last AND task_id = ANY (SELECT task_id FROM claimed);
DELETE FROM tq_internal.run WHERE task NOT IN (SELECT id FROM tq_internal.task);
VACUUM FULL tq_internal.run;
SELECT task_id AS last FROM tq_internal.task WHERE id = :last \gset
SELECT tq.report_completed(:'last', 0) ->> 'state' AS state;

-- A READ ONLY transaction writes nothing, whatever there is to write
SELECT tq.enqueue('regress/ro', task_id => pg_temp.id('ro1')), tq.enqueue('regress/ro', task_id => pg_temp.id('ro2'));
SELECT count(*) FROM tq.claim_work('regress/ro', 'g', 'w');
CREATE TEMP TABLE bound AS SELECT 'tq_' || replace(e, '-', '_') AS channel, e FROM unnest(ARRAY['task-completed', 'task-exception', 'task-group-resolved']) AS e;
SELECT count(tq.unbind(channel, e)) FROM bound;
BEGIN READ ONLY;
SELECT tq.report_completed(pg_temp.id('ro1'), 0);
ROLLBACK;
BEGIN READ ONLY;
SELECT tq.cancel_task(pg_temp.id('ro2'));
ROLLBACK;
BEGIN READ ONLY;
SELECT tq.claim_work('regress/ro', 'g', 'w');
ROLLBACK;
SELECT tq.status(pg_temp.id('ro1')) ->> 'state' AS ro1, tq.status(pg_temp.id('ro2')) ->> 'state' AS ro2;
SELECT count(tq.bind(channel, e)) FROM bound;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
