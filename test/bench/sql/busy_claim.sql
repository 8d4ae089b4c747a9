-- A busy worker: completes what it has and claims the next, in one statement.
-- The number to claim asks for what was done, so that this is done first.
WITH done AS (SELECT count(*)::int AS n FROM tq.resolve(:ids::tq.slugid[], :runs::int[]))
SELECT coalesce(array_agg(task_id), '{}')::text AS ids, coalesce(array_agg(run_id), '{}')::text AS runs
FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text, :n + 0 * (SELECT n FROM done)) \gset
