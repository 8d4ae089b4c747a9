-- Life-cycles of tasks that fail once: a worker that claims a first run fails it,
-- one that claims another completes it.
SELECT tq.create_tasks(:batch)
SELECT task_id, run_id, payload FROM tq.claim_work('bench/w', 'g', 'w' || :client::text, :n)
SELECT r.outcome FROM (SELECT run > 0 AS again, array_agg(id) AS ids, array_agg(run) AS runs FROM unnest(:task_id::tq.slugid[], :run_id::int[]) AS c (id, run) GROUP BY 1) AS c, tq.resolve(c.ids, c.runs, CASE WHEN c.again THEN 'completed' ELSE 'failed' END) AS r
SELECT task_id, run_id, payload FROM tq.claim_work('bench/w', 'g', 'w' || :client::text, :n)
SELECT r.outcome FROM (SELECT run > 0 AS again, array_agg(id) AS ids, array_agg(run) AS runs FROM unnest(:task_id::tq.slugid[], :run_id::int[]) AS c (id, run) GROUP BY 1) AS c, tq.resolve(c.ids, c.runs, CASE WHEN c.again THEN 'completed' ELSE 'failed' END) AS r
