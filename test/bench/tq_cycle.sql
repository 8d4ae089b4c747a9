-- One life-cycle of :n tasks in tq: created, claimed, completed, in three
-- transactions.  :def is a definition, sent as a client sends it.
SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', tq.slugid(), 'task', :def::jsonb)) FROM generate_series(1, :n)));
SELECT coalesce(array_agg(task_id), '{}')::text AS ids, coalesce(array_agg(run_id), '{}')::text AS runs FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text, :n) \gset
SELECT count(*) FROM tq.resolve(:ids::tq.slugid[], :runs::int[]);
