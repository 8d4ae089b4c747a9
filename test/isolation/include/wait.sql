-- wait() lets a worker wait for a task.  The queue exists before, because a new queue name
-- would wake all workers.
include empty id asleep worker
CREATE OR REPLACE FUNCTION wait(name text) RETURNS void LANGUAGE sql AS $$
	SELECT FROM dblink_get_result(name, false) AS r (task_id text, worker_id text);
	SELECT dblink_send_query(name, format('SELECT task_id, worker_id FROM tq.claim_work(%L, %L, %L, wait => %L)',
		'iso/w', 'g', name, '60 s')) $$;
SELECT FROM tq.claim_work('iso/w', 'g', 'first');
