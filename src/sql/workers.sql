-- ---------------------------------------------------------------------------
-- Workers: what is known of them
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.quarantine_worker(
	provisioner_id text, worker_type text, worker_group text, worker_id text,
	quarantine_until timestamptz, quarantine_info text DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_quarantine_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.quarantine_worker(text, text, text, text, timestamptz, text) IS 'let a worker claim no tasks until then; a past time ends the quarantine';

CREATE FUNCTION tq.get_worker(provisioner_id text, worker_type text, worker_group text, worker_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.get_worker(text, text, text, text) IS 'a worker: when it was seen, its recent tasks, and its quarantines with their reasons';

CREATE FUNCTION tq.list_workers(
	provisioner_id text, worker_type text, quarantined bool DEFAULT NULL, after text DEFAULT NULL, max int DEFAULT 1000
) RETURNS SETOF tq.worker_entry
	AS 'MODULE_PATHNAME', 'tq_list_workers' LANGUAGE C;
COMMENT ON FUNCTION tq.list_workers(text, text, bool, text, int) IS 'workers of a queue by group and id, all or only those that are, or are not, in quarantine; go on after the page of the last row';

CREATE FUNCTION tq.declare_worker(
	provisioner_id text, worker_type text, worker_group text, worker_id text, expires timestamptz
) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_declare_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.declare_worker(text, text, text, text, timestamptz) IS 'make a worker and its queue known until then at least; returns the worker';

CREATE FUNCTION tq.worker_removed(
	provisioner_id text, worker_type text, worker_group text, worker_id text, reason text DEFAULT NULL
) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_worker_removed' LANGUAGE C;
COMMENT ON FUNCTION tq.worker_removed(text, text, text, text, text) IS 'resolve the runs of a worker that is gone as worker-shutdown, so that they are retried; the reason becomes their error';
