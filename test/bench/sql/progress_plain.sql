-- A group of one task, which is claimed and completed; or another is.
SELECT tq.slugid() AS g \gset
SELECT tq.enqueue('bench/w', :payload, task_group_id => :g);
SELECT tq.resolve(ARRAY[task_id], ARRAY[run_id]) FROM tq.claim_work('bench/w', 'g', 'w' || :client_id::text);
