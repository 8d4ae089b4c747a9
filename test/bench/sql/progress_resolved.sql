-- The same, and a task that is created when the group resolves.
SELECT tq.slugid() AS g \gset
SELECT tq.enqueue('bench/w', :payload, task_group_id => :g);
SELECT tq.on_group_resolved(:g, 'bench/after', :payload);
SELECT tq.resolve(ARRAY[task_id], ARRAY[run_id]) FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text);
