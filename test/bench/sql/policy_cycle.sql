-- Life-cycles of tasks that have a policy, and differ in their payloads only.
SELECT tq.enqueue_tasks('bench/w', :batch, policy => :policy)
SELECT task_id, run_id, payload FROM tq.claim_work('bench/w', 'g', 'w' || :client::text, :n)
SELECT outcome FROM tq.resolve(:task_id, :run_id)
