-- ---------------------------------------------------------------------------
-- Presets: equivalents of other systems
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.conductor_policy(task_def jsonb, workflow_task jsonb DEFAULT '{}') RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_conductor_policy' LANGUAGE C STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION tq.conductor_policy(jsonb, jsonb) IS 'the policy that corresponds to a Conductor task definition and its use in a workflow';

CREATE FUNCTION tq.taskbroker_policy(activation jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_taskbroker_policy' LANGUAGE C STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION tq.taskbroker_policy(jsonb) IS 'the policy that corresponds to a Taskbroker activation';

CREATE FUNCTION tq.conductor_status(task_id tq.slugid) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_conductor_status' LANGUAGE C;
COMMENT ON FUNCTION tq.conductor_status(tq.slugid) IS 'the state of a task as a Conductor status; NULL while it is unscheduled';

CREATE FUNCTION tq.taskbroker_status(task_id tq.slugid) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_taskbroker_status' LANGUAGE C;
COMMENT ON FUNCTION tq.taskbroker_status(tq.slugid) IS 'the state of a task as a Taskbroker status';
