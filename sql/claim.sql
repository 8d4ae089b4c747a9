-- claim_work, claim_task, reclaim_task, quarantine.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT count(tq.enqueue('regress/w', jsonb_build_object('n', n), task_id => pg_temp.id('t' || n), priority => priority))
FROM (VALUES (1, 'lowest'), (2, 'high'), (3, 'lowest'), (4, 'highest'), (5, 'high')) x (n, priority);
SELECT (tq.task_queue_counts('regress/w') -> 'pendingTasks')::bigint, tq.task_queue_counts('regress/w');

-- What a worker gets
SELECT task_id, run_id, worker_group, worker_id, payload, credentials FROM tq.claim_work('regress/w', 'g', 'w');
SELECT task_id, run_id, payload FROM tq.claim_work('regress/w', 'g', 'w', 3);
SELECT task_id, run_id, payload FROM tq.claim_work('regress/w', 'g', 'w', 3);
SELECT task_id, run_id, payload FROM tq.claim_work('regress/w', 'g', 'w');
SELECT task_id FROM tq.claim_work('regress/other', 'g', 'w');
SELECT (tq.task_queue_counts('regress/w') -> 'pendingTasks')::bigint, tq.task_queue_counts('regress/w');
SELECT pg_temp.brief(tq.status(pg_temp.id('t1')));
SELECT jsonb_object_keys(tq.status(pg_temp.id('t1')) -> 'runs' -> 0) AS key ORDER BY 1;
-- one claim timer a call, for all that it claimed, soon after; that of a single claim is left to the publisher
SELECT cardinality(tasks) AS tasks, (SELECT due - max(started) BETWEEN '5 s' AND '6 s' FROM tq_internal.run WHERE task = tasks[1]) AS due FROM tq_internal.claim_timer WHERE cardinality(tasks) > 2 AND EXISTS (SELECT FROM tq_internal.run WHERE task = tasks[1]);
SELECT count(DISTINCT x.task) AS tasks, bool_and(x.due BETWEEN r.started + interval '5 seconds' AND r.taken_until) AS due
FROM (SELECT unnest(tasks) AS task, due FROM tq_internal.claim_timer UNION ALL SELECT task, due FROM tq_internal.left_timer WHERE is_claim) AS x
	JOIN tq_internal.run r USING (task);

-- claim_task: this run, by this worker
SELECT tq.enqueue('regress/w', '{"n": 6}', task_id => pg_temp.id('t6'));
SELECT pg_temp.stored() AS before \gset
SELECT f.what, a.code, a.message FROM (VALUES ('no such task', 'nobody', 0), ('no such run', 't6', 1), ('negative', 't6', -1), ('held by claim_work, same worker', 't1', 0)) f (what, task, run),
	pg_temp.answer(format('SELECT tq.claim_task(pg_temp.id(%L), %s, ''g'', ''w'')', task, run)) a;
SELECT pg_temp.stored() = :'before' AS unchanged;
SELECT task_id, run_id, worker_group, worker_id, payload FROM tq.claim_task(pg_temp.id('t6'), 0, 'g', 'w');
SELECT pg_temp.stored() AS before \gset
SELECT taken_until FROM tq.run_overview WHERE task_id = pg_temp.id('t6') \gset
SELECT taken_until = :'taken_until' AS same_claim, payload FROM tq.claim_task(pg_temp.id('t6'), 0, 'g', 'w');
SELECT pg_temp.stored() = :'before' AS unchanged;
SELECT * FROM pg_temp.answer($$SELECT tq.claim_task(pg_temp.id('t6'), 0, 'g', 'w2')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.claim_task(pg_temp.id('t6'), 0, 'g2', 'w')$$);
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('t7'), dependencies => ARRAY[pg_temp.id('t7')]);
SELECT code, message FROM pg_temp.answer($$SELECT tq.claim_task(pg_temp.id('t7'), 0, 'g', 'w')$$);

-- reclaim_task: counted from now, never shorter, without a payload
SET tq.clock_offset = '10 minutes';
SELECT task_id, run_id, worker_group, worker_id, payload, credentials, taken_until - :'taken_until' BETWEEN '10 minutes' AND '11 minutes' AS longer
FROM tq.reclaim_task(pg_temp.id('t6'), 0);
RESET tq.clock_offset;
SELECT taken_until FROM tq.run_overview WHERE task_id = pg_temp.id('t6') \gset
SELECT taken_until = :'taken_until' AS not_shorter FROM tq.reclaim_task(pg_temp.id('t6'), 0);
SELECT taken_until = :'taken_until' AS not_shorter FROM tq.run_overview WHERE task_id = pg_temp.id('t6');
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('pend'));
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('done'));
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('done')));
SELECT f.what, a.code, a.message FROM (VALUES ('no such task', 'nobody', 0), ('no such run', 't6', 1), ('unscheduled', 't7', 0), ('pending', 'pend', 0), ('resolved', 'done', 0)) f (what, task, run),
	pg_temp.answer(format('SELECT tq.reclaim_task(pg_temp.id(%L), %s)', task, run)) a;
-- past the end of the claim it can still be prolonged, past the deadline it cannot
SET tq.clock_offset = '1 hour';
SELECT tq.task_queue_counts('regress/w');
SELECT task_id FROM tq.reclaim_task(pg_temp.id('t6'), 0);
SET tq.clock_offset = '25 hours';
SELECT * FROM pg_temp.answer($$SELECT tq.reclaim_task(pg_temp.id('t6'), 0)$$);
SELECT * FROM pg_temp.answer($$SELECT tq.claim_task(pg_temp.id('pend'), 0, 'g', 'w')$$);
SELECT task_id FROM tq.claim_work('regress/x', 'g', 'w');
SELECT (tq.task_queue_counts('regress/x') -> 'pendingTasks')::bigint;
RESET tq.clock_offset;

-- A quarantined worker gets no new run, but keeps its claims
SELECT * FROM pg_temp.answer($$SELECT tq.quarantine_worker('regress/x', 'g', 'unknown', '2100-01-01')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.get_worker('regress/x', 'g', 'unknown')$$);
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('held'), priority => 'high');
SELECT task_id FROM tq.claim_work('regress/x', 'g', 'w');
SELECT replace(pg_temp.stable(jsonb_pretty(tq.quarantine_worker('regress/x', 'g', 'w', '2100-01-01', 'smells of smoke'))), session_user, '<user>') AS worker;
SELECT task_id FROM tq.claim_work('regress/x', 'g', 'w');
SELECT task_id FROM tq.claim_task(pg_temp.id('pend'), 0, 'g', 'w');
SELECT task_id FROM tq.reclaim_task(pg_temp.id('held'), 0);
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('held'), 0));
SELECT replace(pg_temp.stable(jsonb_pretty(tq.quarantine_worker('regress/x', 'g', 'w', '2020-01-01'))), session_user, '<user>') AS worker;
SELECT task_id FROM tq.claim_work('regress/x', 'g', 'w');
SELECT jsonb_object_keys(tq.get_worker('regress/x', 'g', 'w')) AS key ORDER BY 1;

-- Claims that are rolled back
SELECT tq.enqueue('regress/r', task_id => pg_temp.id('r1'));
BEGIN;
SELECT task_id, run_id FROM tq.claim_work('regress/r', 'g', 'new-worker');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT task_id, run_id FROM tq.claim_work('regress/r', 'g', 'new-worker');
ROLLBACK TO s;
SELECT task_id, run_id FROM tq.claim_work('regress/r', 'g', 'new-worker');
COMMIT;
SELECT pg_temp.brief(tq.status(pg_temp.id('r1')));

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
