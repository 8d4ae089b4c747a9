-- Claims tasks and completes them.
SELECT task_id, run_id, payload FROM tq.claim_work('bench/w', 'g', 'w' || :client::text, :n)
SELECT outcome FROM tq.resolve(:task_id, :run_id)
