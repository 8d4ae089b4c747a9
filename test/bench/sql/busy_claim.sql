-- A busy worker: completes what it has and claims the next, in one call.
SELECT coalesce(jsonb_agg(jsonb_build_object('taskId', task_id, 'runId', run_id)) FILTER (WHERE outcome = 'claimed'), '[]')::text AS reports
FROM tq.resolve_and_claim(:reports, 'bench/w', 'g', 'w' || :client_id::text, :n) \gset
