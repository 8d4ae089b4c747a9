-- ---------------------------------------------------------------------------
-- Recurring tasks
-- ---------------------------------------------------------------------------

CREATE TYPE tq.cron_entry AS (name text, schedule text, active bool, owner text, job_id bigint, command text);
COMMENT ON TYPE tq.cron_entry IS 'row of schedule_cron(), unschedule_cron(), pause_cron() and resume_cron(): a recurring task after the call';
COMMENT ON COLUMN tq.cron_entry.name IS 'name of the recurring task';
COMMENT ON COLUMN tq.cron_entry.schedule IS 'when it fires, as pg_cron reads it';
COMMENT ON COLUMN tq.cron_entry.active IS 'whether it fires';
COMMENT ON COLUMN tq.cron_entry.owner IS 'role with whose rights it creates tasks';
COMMENT ON COLUMN tq.cron_entry.job_id IS 'its job in pg_cron; NULL: none in this database';
COMMENT ON COLUMN tq.cron_entry.command IS 'what is left to run in the database of pg_cron; NULL: nothing';

-- The arguments after payload, but overlap, are passed on to enqueue() by name.
CREATE FUNCTION tq.schedule_cron(
	name text,
	schedule text,
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT NULL,
	requires text DEFAULT NULL,
	priority text DEFAULT NULL,
	retries int DEFAULT NULL,
	deadline interval DEFAULT NULL,
	expires interval DEFAULT NULL,
	delay interval DEFAULT NULL,
	routes text[] DEFAULT NULL,
	scopes text[] DEFAULT NULL,
	tags jsonb DEFAULT NULL,
	extra jsonb DEFAULT NULL,
	scheduler_id text DEFAULT NULL,
	project_id text DEFAULT NULL,
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	overlap text DEFAULT 'allow'
) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_schedule_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.schedule_cron(text, text, text, jsonb, tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, jsonb, int, text) IS
	'have pg_cron create a task at each time of a schedule, as enqueue does, or change that; NULL: the default of enqueue; returns one row';

CREATE FUNCTION tq.unschedule_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_unschedule_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.unschedule_cron(text) IS 'end a recurring task; the tasks that it has created stay';

CREATE FUNCTION tq.pause_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_pause_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.pause_cron(text) IS 'let a recurring task create no tasks until resume_cron()';

CREATE FUNCTION tq.resume_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_resume_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.resume_cron(text) IS 'let a recurring task create tasks again, and make its job in pg_cron again if that is missing';

CREATE FUNCTION tq.run_cron_now(name text) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_run_cron_now' LANGUAGE C;
COMMENT ON FUNCTION tq.run_cron_now(text) IS 'create a task of a recurring task now, apart from its schedule; returns its id, or NULL: skipped, because the last one is unresolved';

CREATE FUNCTION tq.fire_cron(name text, scheduled timestamptz DEFAULT NULL) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_fire_cron' LANGUAGE C;
COMMENT ON FUNCTION tq.fire_cron(text, timestamptz) IS 'what pg_cron calls: create the task of a recurring task for that minute or second, once; NULL: for the present one; returns its id, or NULL: there is none';

CREATE FUNCTION tq_internal.cron_jobs() RETURNS TABLE (name text, role text, job_id bigint, active bool, status text, message text, started timestamptz, finished timestamptz)
	AS 'MODULE_PATHNAME', 'tq_cron_jobs' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.cron_jobs() IS 'jobs of recurring tasks in pg_cron, with the last entry of its log; none if it is in another database';

CREATE FUNCTION tq_internal.cron_time_zone() RETURNS text
	AS 'MODULE_PATHNAME', 'tq_cron_time_zone' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.cron_time_zone() IS 'time zone of the schedules of pg_cron; NULL: it is not preloaded';
