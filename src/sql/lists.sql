-- ---------------------------------------------------------------------------
-- Lists of queues and of their runs
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.list_pending_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.pending_entry
	AS 'MODULE_PATHNAME', 'tq_list_pending_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_pending_tasks(text, text, int) IS 'runs of a queue that can be claimed, in the order in which they became pending; go on after the page of the last row';

CREATE FUNCTION tq.list_claimed_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.claimed_entry
	AS 'MODULE_PATHNAME', 'tq_list_claimed_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_claimed_tasks(text, text, int) IS 'runs of a queue that workers have, in the order in which they were claimed; go on after the page of the last row';

CREATE FUNCTION tq.list_task_queues(after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.task_queue_entry
	AS 'MODULE_PATHNAME', 'tq_list_task_queues' LANGUAGE C;
COMMENT ON FUNCTION tq.list_task_queues(text, int) IS 'queues that workers ask for work, by name; go on after the last name';

CREATE FUNCTION tq.get_task_queue(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_task_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.get_task_queue(text) IS 'a queue: when a worker last asked it for work, and when it expires';

CREATE FUNCTION tq.list_worker_types(provisioner_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.task_queue_entry
	AS 'MODULE_PATHNAME', 'tq_list_worker_types' LANGUAGE C;
COMMENT ON FUNCTION tq.list_worker_types(text, text, int) IS 'queues of a provisioner, by worker type; go on after the last worker type';

CREATE FUNCTION tq.get_worker_type(provisioner_id text, worker_type text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_worker_type' LANGUAGE C;
COMMENT ON FUNCTION tq.get_worker_type(text, text) IS 'get_task_queue() by the two parts of its name';

CREATE FUNCTION tq.list_provisioners(after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.provisioner_entry
	AS 'MODULE_PATHNAME', 'tq_list_provisioners' LANGUAGE C;
COMMENT ON FUNCTION tq.list_provisioners(text, int) IS 'provisioners of queues that workers ask for work, by name; go on after the last name';

CREATE FUNCTION tq.get_provisioner(provisioner_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_provisioner' LANGUAGE C;
COMMENT ON FUNCTION tq.get_provisioner(text) IS 'a provisioner: the latest times of its queues';
