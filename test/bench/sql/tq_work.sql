-- What a worker does, which waits for a while where there is nothing.
SELECT task_id, run_id, payload FROM tq.claim_work('bench/w', 'g', 'w' || :client::text, :n, '100 ms')
SELECT outcome FROM tq.resolve(:task_id, :run_id)
