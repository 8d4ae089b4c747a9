-- Claims tasks, and completes them.
SELECT coalesce(array_agg(task_id), '{}')::text AS ids, coalesce(array_agg(run_id), '{}')::text AS runs FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text, :n) \gset
SELECT count(*) FROM tq.resolve(:ids::tq.slugid[], :runs::int[]);
