-- ---------------------------------------------------------------------------
-- Languages of functions that are written in SQL, and what their bodies call
--
-- A body is PL/pgSQL in a call of tq (src/api/sql_body.c).  It has the rights of
-- the owner; it checks its arguments, then the scopes of the caller by require().
-- Columns in it have the name of their table before them, and arguments that of
-- the function, where one might be taken for the other.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.body_read() RETURNS language_handler
	AS 'MODULE_PATHNAME', 'tq_body_read' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.body_read() IS 'calls a function of the language tq_read';
CREATE FUNCTION tq_internal.body_call() RETURNS language_handler
	AS 'MODULE_PATHNAME', 'tq_body_call' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.body_call() IS 'calls a function of the language tq_call';
CREATE FUNCTION tq_internal.body_client() RETURNS language_handler
	AS 'MODULE_PATHNAME', 'tq_body_client' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.body_client() IS 'calls a function of the language tq_client';
CREATE FUNCTION tq_internal.body_operate() RETURNS language_handler
	AS 'MODULE_PATHNAME', 'tq_body_operate' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.body_operate() IS 'calls a function of the language tq_operate';
CREATE FUNCTION tq_internal.body_validate(oid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_body_validate' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.body_validate(oid) IS 'checks a function of these languages when it is created';

-- Not trusted: only a superuser creates functions in them.
CREATE LANGUAGE tq_read HANDLER tq_internal.body_read VALIDATOR tq_internal.body_validate;
COMMENT ON LANGUAGE tq_read IS 'functions of tq that only read, by one snapshot';
CREATE LANGUAGE tq_call HANDLER tq_internal.body_call VALIDATOR tq_internal.body_validate;
COMMENT ON LANGUAGE tq_call IS 'functions of tq that may write';
CREATE LANGUAGE tq_client HANDLER tq_internal.body_client VALIDATOR tq_internal.body_validate;
COMMENT ON LANGUAGE tq_client IS 'functions of tq that may write, as calls of a client in the audit trail';
CREATE LANGUAGE tq_operate HANDLER tq_internal.body_operate VALIDATOR tq_internal.body_validate;
COMMENT ON LANGUAGE tq_operate IS 'functions of tq that may write, as acts of an operator in the audit trail';

CREATE FUNCTION tq_internal.clock_now() RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tq_clock_now_sql' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.clock_now() IS 'the time by which functions decide';

CREATE FUNCTION tq_internal.require(scope text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_require' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.require(text) IS 'raises TQ403 unless the caller has that scope';

CREATE FUNCTION tq_internal.require_any(VARIADIC scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_require_any' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.require_any(text[]) IS 'raises TQ403 unless the caller has one of these scopes';

CREATE FUNCTION tq_internal.require_all(VARIADIC scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_require_all' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.require_all(text[]) IS 'raises TQ403 unless the caller has all of these scopes';

CREATE FUNCTION tq_internal.has_scope(scope text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_sql_has_scope' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.has_scope(text) IS 'whether the caller has that scope';

CREATE FUNCTION tq_internal.has_right("right" text, what text, task_queue_id text) RETURNS bool LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT tq_internal.has_scope(format('queue:%s:%s', "right", what)) OR tq_internal.has_scope(format('queue:%s-in-queue:%s', "right", task_queue_id));
	END;
COMMENT ON FUNCTION tq_internal.has_right(text, text, text) IS 'whether the caller has a right, such as status, to what is named, or to all in that queue';

CREATE FUNCTION tq_internal.caller() RETURNS regrole
	AS 'MODULE_PATHNAME', 'tq_sql_caller' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.caller() IS 'the role that has called the function whose body runs';

CREATE FUNCTION tq_internal.audit_task(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_audit_task' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.audit_task(tq.slugid) IS 'has the audit trail show the call with that task, which its arguments do not name; NULL: not at all';

CREATE FUNCTION tq_internal.not_null(value "any", name text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_not_null' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.not_null("any", text) IS 'raises TQ400 for an argument of that name which is NULL';

CREATE FUNCTION tq_internal.element_not_null(value "any", name text, n int) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_element_not_null' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.element_not_null("any", text, int) IS 'raises TQ400 for an element of an argument which is NULL';

CREATE FUNCTION tq_internal.arg_int(value int, name text, min int, max int) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_arg_int' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_int(int, text, int, int) IS 'an argument of that name, if it is from min to max';

CREATE FUNCTION tq_internal.arg_max(max int) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_arg_max' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_max(int) IS 'the argument max, the size of a page, if it may be that';

CREATE FUNCTION tq_internal.arg_after(after tq.slugid) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_sql_arg_after' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_after(tq.slugid) IS 'the argument after of a list by id; NULL: lower than every id';

CREATE FUNCTION tq_internal.arg_queue(task_queue_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_arg_queue' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_queue(text) IS 'the argument task_queue_id, if it may be the name of a queue';

CREATE FUNCTION tq_internal.clip(value text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_clip' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.clip(text) IS 'the beginning of a value that an error repeats';

CREATE FUNCTION tq_internal.json_time(t timestamptz) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_json_time' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.json_time(timestamptz) IS 'a time as answers and messages have it';

CREATE FUNCTION tq_internal.microseconds(t timestamptz) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_sql_microseconds' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.microseconds(timestamptz) IS 'a time in microseconds since 2000, as a page of a list has it';

CREATE FUNCTION tq_internal.definitions(tasks bigint[]) RETURNS SETOF jsonb
	AS 'MODULE_PATHNAME', 'tq_sql_definitions' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.definitions(bigint[]) IS 'definitions of these tasks, in their order';

-- ---------------------------------------------------------------------------
-- Tasks
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.create_task(task_id tq.slugid, task jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_create_task' LANGUAGE C;
COMMENT ON FUNCTION tq.create_task(tq.slugid, jsonb) IS 'create a task from a Taskcluster task definition; repeats of the same are harmless; returns its status';

CREATE FUNCTION tq.create_tasks(tasks jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_create_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.create_tasks(jsonb) IS 'create many tasks, all or none, from [{"taskId", "task"}]; they may depend on each other; returns how many are new';

-- The default of deadline stands for tq.default_deadline: a constant costs the call nothing.
CREATE FUNCTION tq.enqueue(
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_id tq.slugid DEFAULT NULL,
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT '{}',
	requires text DEFAULT 'all-completed',
	priority text DEFAULT 'lowest',
	retries int DEFAULT NULL,
	deadline interval DEFAULT '-178000000 years',
	expires interval DEFAULT NULL,
	delay interval DEFAULT '0',
	routes text[] DEFAULT '{}',
	scopes text[] DEFAULT '{}',
	tags jsonb DEFAULT '{}',
	extra jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	scheduler_id text DEFAULT '-',
	project_id text DEFAULT 'none',
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	run_at timestamptz DEFAULT NULL
) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_enqueue' LANGUAGE C;
COMMENT ON FUNCTION tq.enqueue(text, jsonb, tq.slugid, tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, text, jsonb, int, timestamptz) IS
	'create a task from SQL arguments; deadline counts from when the task becomes visible, NULL: none, left out: tq.default_deadline; expires from the deadline, or NULL: by retention; retry is how often failures and lost runs are retried, with backoff; returns its id';

CREATE FUNCTION tq.enqueue_tasks(
	task_queue_id text,
	payloads jsonb[],
	task_ids tq.slugid[] DEFAULT NULL,
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT '{}',
	requires text DEFAULT 'all-completed',
	priority text DEFAULT 'lowest',
	retries int DEFAULT NULL,
	deadline interval DEFAULT '-178000000 years',
	expires interval DEFAULT NULL,
	delay interval DEFAULT '0',
	routes text[] DEFAULT '{}',
	scopes text[] DEFAULT '{}',
	tags jsonb DEFAULT '{}',
	extra jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	scheduler_id text DEFAULT '-',
	project_id text DEFAULT 'none',
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	run_at timestamptz DEFAULT NULL
) RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_enqueue_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.enqueue_tasks(text, jsonb[], tq.slugid[], tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, text, jsonb, int, timestamptz) IS
	'create a task for each payload, alike in all else, as enqueue does; returns their ids in the same order';

CREATE FUNCTION tq.define_task(task_id tq.slugid, task jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_define_task' LANGUAGE C;
COMMENT ON FUNCTION tq.define_task(tq.slugid, jsonb) IS 'create a task that depends on itself, so that it waits for schedule_task; returns its status';

CREATE FUNCTION tq.schedule_task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_schedule_task' LANGUAGE C;
COMMENT ON FUNCTION tq.schedule_task(tq.slugid) IS 'make an unscheduled task pending regardless of its dependencies; returns its status';

CREATE FUNCTION tq.rerun_task(task_id tq.slugid, deadline interval DEFAULT NULL, downstream bool DEFAULT false) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_rerun_task' LANGUAGE C;
COMMENT ON FUNCTION tq.rerun_task(tq.slugid, interval, bool) IS 'add a pending run to a resolved task, with a new deadline from now if one is given; downstream: the resolved tasks that depend on it wait for it again; returns its status';

CREATE FUNCTION tq.rerun_plan(task_id tq.slugid, deadline interval DEFAULT NULL, downstream bool DEFAULT true)
	RETURNS TABLE (task_id tq.slugid, state text, action text, why text)
	AS 'MODULE_PATHNAME', 'tq_rerun_plan' LANGUAGE C;
COMMENT ON FUNCTION tq.rerun_plan(tq.slugid, interval, bool) IS 'what rerun_task() would do, without doing it: a row for each task that would get a run (rerun), wait again (wait), wait as before (waits), stay as it is (left), or make it refuse (refused), and why';

CREATE FUNCTION tq.reschedule_task(task_id tq.slugid, run_at timestamptz DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_reschedule_task' LANGUAGE C;
COMMENT ON FUNCTION tq.reschedule_task(tq.slugid, timestamptz) IS 'make the pending or delayed run of a task claimable at that time, NULL: now; returns its status';

CREATE FUNCTION tq.add_dependencies(task_id tq.slugid, dependencies tq.slugid[]) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_add_task_dependencies' LANGUAGE C;
COMMENT ON FUNCTION tq.add_dependencies(tq.slugid, tq.slugid[]) IS 'give an unscheduled task further dependencies; those that it has already change nothing; returns its status';

CREATE FUNCTION tq.cancel_task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_cancel_task' LANGUAGE C;
COMMENT ON FUNCTION tq.cancel_task(tq.slugid) IS 'resolve an unresolved task as exception, canceled; returns its status';

CREATE FUNCTION tq.skip_task(task_id tq.slugid, output jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_skip_task' LANGUAGE C;
COMMENT ON FUNCTION tq.skip_task(tq.slugid, jsonb) IS 'resolve an unscheduled or pending task as completed, skipped, so that its dependents go on; output is its result; returns its status';

CREATE FUNCTION tq.delete_task(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_delete_task' LANGUAGE C;
COMMENT ON FUNCTION tq.delete_task(tq.slugid) IS 'delete a task in any state, with its runs, artifacts and dead letter; tasks that depend on it stay unscheduled';

CREATE FUNCTION tq.purge(
	task_queue_id text,
	states text[] DEFAULT '{completed,failed,exception}',
	older_than interval DEFAULT '1 day',
	max int DEFAULT 1000
) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_purge' LANGUAGE C;
COMMENT ON FUNCTION tq.purge(text, text[], interval, int) IS 'delete resolved tasks of a queue that are in one of these states and were resolved so long ago, except those that unresolved tasks need; returns how many';

-- The procedure ends transactions.
CREATE PROCEDURE tq.cancel_tasks(
	task_queue_id text,
	name text DEFAULT NULL,
	tags jsonb DEFAULT NULL,
	states text[] DEFAULT '{unscheduled,pending}',
	max bigint DEFAULT NULL,
	INOUT tasks bigint DEFAULT NULL
)
	AS 'MODULE_PATHNAME', 'tq_cancel_tasks' LANGUAGE C;
COMMENT ON PROCEDURE tq.cancel_tasks(text, text, jsonb, text[], bigint, bigint) IS 'cancel the tasks of a queue that are in one of these states and have this name and these tags, at most so many; commits after each batch, so not in a transaction block; tasks is how many';

-- The procedure ends transactions.
CREATE PROCEDURE tq.move_tasks(
	task_queue_id text,
	to_task_queue_id text,
	max bigint DEFAULT NULL,
	INOUT tasks bigint DEFAULT NULL
)
	AS 'MODULE_PATHNAME', 'tq_move_tasks' LANGUAGE C;
COMMENT ON PROCEDURE tq.move_tasks(text, text, bigint, bigint) IS 'move the unscheduled, delayed and pending tasks of a queue to another one, at most so many; commits after each batch, so not in a transaction block; tasks is how many';

CREATE FUNCTION tq.change_task_priority(task_id tq.slugid, priority text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_change_task_priority' LANGUAGE C;
COMMENT ON FUNCTION tq.change_task_priority(tq.slugid, text) IS 'change the priority of an unresolved task; returns its status';

CREATE FUNCTION tq.status(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_status' LANGUAGE C;
COMMENT ON FUNCTION tq.status(tq.slugid) IS 'the task status structure: state, retriesLeft, runs';

CREATE FUNCTION tq.task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_task' LANGUAGE C;
COMMENT ON FUNCTION tq.task(tq.slugid) IS 'the task definition, with every default filled in';

CREATE FUNCTION tq.result(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_result' LANGUAGE C;
COMMENT ON FUNCTION tq.result(tq.slugid) IS 'the result of the last run, as given to report_completed(), or the output given to skip_task(); NULL if there is none';

CREATE FUNCTION tq.dependency_results(task_id tq.slugid) RETURNS SETOF tq.dependency_result
	AS 'MODULE_PATHNAME', 'tq_dependency_results' LANGUAGE C;
COMMENT ON FUNCTION tq.dependency_results(tq.slugid) IS 'state and result of each task that this one depends on, in the order of its definition; the state of one that has expired or was deleted is missing';

CREATE FUNCTION tq.statuses(task_ids tq.slugid[]) RETURNS SETOF tq.task_status
	AS 'MODULE_PATHNAME', 'tq_statuses' LANGUAGE C;
COMMENT ON FUNCTION tq.statuses(tq.slugid[]) IS 'status of each of these tasks; unknown ids are left out';

CREATE FUNCTION tq.tasks(task_ids tq.slugid[]) RETURNS SETOF tq.task_definition
	AS 'MODULE_PATHNAME', 'tq_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.tasks(tq.slugid[]) IS 'definition of each of these tasks; unknown ids are left out';

CREATE FUNCTION tq.list_dependent_tasks(task_id tq.slugid, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.task_entry
	AS 'MODULE_PATHNAME', 'tq_list_dependent_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_dependent_tasks(tq.slugid, tq.slugid, int) IS 'tasks that name this one in their dependencies, by task id; go on after the last id seen';

-- ---------------------------------------------------------------------------
-- Task groups
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.get_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.get_task_group(tq.slugid) IS 'taskGroupId, schedulerId, expires and, once it is, sealed';

CREATE FUNCTION tq.list_task_group(task_group_id tq.slugid, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.task_entry
	AS 'MODULE_PATHNAME', 'tq_list_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.list_task_group(tq.slugid, tq.slugid, int) IS 'tasks of a group, by task id; go on after the last id seen';

CREATE FUNCTION tq_internal.group_to_name(task_group_id tq.slugid) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_sql_group_to_name' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.group_to_name(tq.slugid) IS 'number of a group that exists and that the caller may seal, whose row is inserted if it has none; raises TQ400, TQ403 or TQ404';

CREATE FUNCTION tq.name_task_group(task_group_id tq.slugid, name text) RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	number bigint;
BEGIN
	IF length(name) NOT BETWEEN 1 AND 255 THEN
		RAISE EXCEPTION 'invalid length of name'
			USING ERRCODE = 'TQ400', DETAIL = format('It has %s characters.', length(name)), HINT = 'Give 1 to 255 characters, or NULL for no name.';
	END IF;
	LOOP	-- until no expiry has deleted the row in between
		number := tq_internal.group_to_name(task_group_id);
		UPDATE tq_internal.task_group g SET name = name_task_group.name WHERE g.id = number;
		EXIT WHEN FOUND;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq.name_task_group(tq.slugid, text) IS 'give a group a name, which views and pictures show beside its id; NULL: none';

CREATE FUNCTION tq.seal_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_seal_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.seal_task_group(tq.slugid) IS 'seal a group permanently, so that no more tasks can be created in it';

CREATE FUNCTION tq.cancel_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_cancel_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.cancel_task_group(tq.slugid) IS 'cancel every unresolved task of a sealed group';

CREATE FUNCTION tq.retry_task_group(
	task_group_id tq.slugid,
	deadline interval DEFAULT NULL,
	reasons text[] DEFAULT NULL,
	downstream bool DEFAULT true
) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_retry_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.retry_task_group(tq.slugid, interval, text[], bool) IS 'rerun the tasks of a group that ended without success for these reasons, by default any but canceled, with a new deadline from now if one is given; downstream: what depends on them waits for them again; returns how many tasks run again or wait again';

CREATE FUNCTION tq.change_task_group_priority(task_group_id tq.slugid, priority text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_change_task_group_priority' LANGUAGE C;
COMMENT ON FUNCTION tq.change_task_group_priority(tq.slugid, text) IS 'change the priority of those tasks of a group that were never resolved';

CREATE FUNCTION tq.on_group_resolved(
	task_group_id tq.slugid,
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_id tq.slugid DEFAULT NULL,
	priority text DEFAULT 'lowest',
	retry int DEFAULT NULL,
	deadline interval DEFAULT '-178000000 years',
	tags jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	policy jsonb DEFAULT NULL
) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_on_group_resolved' LANGUAGE C;
COMMENT ON FUNCTION tq.on_group_resolved(tq.slugid, text, jsonb, tq.slugid, text, int, interval, jsonb, text, jsonb) IS
	'create a task, once, when no task of the group is unresolved any more; its payload has the outcome as "group"; deadline counts from then, NULL: none, left out: tq.default_deadline; returns its id';

CREATE FUNCTION tq_internal.require_cancel(role regrole, task_id tq.slugid, definition jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_require_cancel' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.require_cancel(regrole, tq.slugid, jsonb) IS 'raises TQ403 unless the caller may take back a task that this role has registered';

CREATE FUNCTION tq.cancel_group_callbacks(task_group_id tq.slugid, task_id tq.slugid DEFAULT NULL) RETURNS int
	LANGUAGE tq_operate AS $$
DECLARE
	callback tq_internal.group_callback;
	canceled int := 0;
BEGIN
	PERFORM tq_internal.not_null(task_group_id, 'task_group_id');
	IF NOT tq_internal.has_scope('queue:list-task-group:' || task_group_id) THEN
		PERFORM tq_internal.group_to_list(task_group_id);
	END IF;
	FOR callback IN SELECT c.* FROM tq_internal.group_callback c WHERE c.task_group_id = cancel_group_callbacks.task_group_id ORDER BY c.id FOR UPDATE LOOP
		CONTINUE WHEN task_id <> callback.task_id;
		PERFORM tq_internal.require_cancel(callback.role, callback.task_id, callback.definition);
		DELETE FROM tq_internal.group_callback c WHERE c.id = callback.id;
		DELETE FROM tq_internal.postponed p WHERE p.task = callback.id AND p.step = 'callback';
		canceled := canceled + 1;
	END LOOP;
	RETURN canceled;
END
$$;
COMMENT ON FUNCTION tq.cancel_group_callbacks(tq.slugid, tq.slugid) IS
	'take back what on_group_resolved() has registered for a group and has not created yet: the task of that id, or all; returns how many';

CREATE FUNCTION tq.group_progress(task_group_id tq.slugid) RETURNS tq.progress
	AS 'MODULE_PATHNAME', 'tq_group_progress' LANGUAGE C;
COMMENT ON FUNCTION tq.group_progress(tq.slugid) IS 'number of tasks of a group in each state, its outcome, and whether it is blocked';

-- ---------------------------------------------------------------------------
-- Workers
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.session_worker() RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_session_worker' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.session_worker() IS 'worker_group and worker_id of a session that gives none';

CREATE FUNCTION tq.claim_work(
	task_queue_id text, worker_group text DEFAULT NULL, worker_id text DEFAULT NULL, tasks int DEFAULT 1, wait interval DEFAULT '0',
	claim_for interval DEFAULT NULL, definition bool DEFAULT false)
	RETURNS SETOF tq.claim
	AS 'MODULE_PATHNAME', 'tq_claim_work_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_work(text, text, text, int, interval, interval, bool) IS 'claim up to that many pending runs of a queue, by priority, then in order; with wait, at most 60 s, sleep until there is one; for claim_for, or the claimTimeout; with their definitions and statuses if definition is true';

CREATE FUNCTION tq.claim_work(
	task_queue_ids text[], worker_group text DEFAULT NULL, worker_id text DEFAULT NULL, tasks int DEFAULT 1, wait interval DEFAULT '0',
	claim_for interval DEFAULT NULL, definition bool DEFAULT false, mode text DEFAULT 'strict')
	RETURNS SETOF tq.queue_claim
	AS 'MODULE_PATHNAME', 'tq_claim_work_of_queues_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_work(text[], text, text, int, interval, interval, bool, text) IS 'claim up to that many pending runs of several queues, or of patterns like app/*, which stand for all queues of a provisioner: in this order, or with mode round-robin in turns and equal shares';

CREATE FUNCTION tq_internal.claim_lines(
	task_queue_id text, worker_group text DEFAULT NULL, worker_id text DEFAULT NULL, tasks int DEFAULT 1, wait interval DEFAULT '0',
	claim_for interval DEFAULT NULL, definition bool DEFAULT false)
	RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_claim_lines_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.claim_lines(text, text, text, int, interval, interval, bool) IS 'claim_work() with the claims as lines of text, for routers';

CREATE FUNCTION tq_internal.claim_lines(
	task_queue_ids text[], worker_group text DEFAULT NULL, worker_id text DEFAULT NULL, tasks int DEFAULT 1, wait interval DEFAULT '0',
	claim_for interval DEFAULT NULL, definition bool DEFAULT false, mode text DEFAULT 'strict')
	RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_claim_lines_of_queues_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.claim_lines(text[], text, text, int, interval, interval, bool, text) IS 'claim_work() of several queues with the claims as lines of text, for routers';

-- The procedure ends transactions.
CREATE PROCEDURE tq.wait_for_work(task_queue_id text, wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_work' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_work(text, interval) IS 'sleep until a task of the queue can be claimed, at most that long, at most an hour; holds no snapshot, so not in a transaction block';

CREATE PROCEDURE tq.wait_for_work(task_queue_ids text[], wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_work_of_queues' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_work(text[], interval) IS 'sleep until a task of any of these queues, or patterns like app/*, can be claimed; the rest as for one queue';

CREATE PROCEDURE tq.wait_for_task(task_id tq.slugid, wait interval DEFAULT '5 minutes', INOUT result text DEFAULT NULL)
	AS 'MODULE_PATHNAME', 'tq_wait_for_task_0_2' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_task(tq.slugid, interval, text) IS 'wait until a task is resolved, without holding a snapshot; result is its state, blocked if it can never start, or unresolved when the time is over';

CREATE PROCEDURE tq.wait_for_task_group(task_group_id tq.slugid, wait interval DEFAULT '5 minutes', INOUT result text DEFAULT NULL)
	AS 'MODULE_PATHNAME', 'tq_wait_for_task_group_0_2' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_task_group(tq.slugid, interval, text) IS 'wait until no task of a group is unresolved, without holding a snapshot; result is its outcome, blocked if what is left can never start, or unresolved when the time is over';

CREATE FUNCTION tq.claim_task(
	task_id tq.slugid, run_id int, worker_group text DEFAULT NULL, worker_id text DEFAULT NULL,
	claim_for interval DEFAULT NULL, definition bool DEFAULT false)
	RETURNS SETOF tq.claim ROWS 1
	AS 'MODULE_PATHNAME', 'tq_claim_task_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_task(tq.slugid, int, text, text, interval, bool) IS 'claim this pending run; no row when the worker is quarantined; claim_for and definition as in claim_work()';

CREATE FUNCTION tq.reclaim_task(
	task_id tq.slugid, run_id int, wait interval DEFAULT '0', claim_for interval DEFAULT NULL, credentials jsonb DEFAULT NULL) RETURNS tq.claim
	AS 'MODULE_PATHNAME', 'tq_reclaim_task_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.reclaim_task(tq.slugid, int, interval, interval, jsonb) IS 'extend the claim on a running run, by claim_for from now, or the claimTimeout, after a wait that ends with the run; the payload is left out';

CREATE FUNCTION tq.report_completed(task_id tq.slugid, run_id int, result jsonb DEFAULT NULL, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_completed' LANGUAGE C;
COMMENT ON FUNCTION tq.report_completed(tq.slugid, int, jsonb, jsonb) IS 'resolve a running run as completed, with a result for result(); returns the status of the task';

CREATE FUNCTION tq.report_failed(
	task_id tq.slugid, run_id int, error jsonb DEFAULT NULL, retry_delay interval DEFAULT NULL,
	retries_left int DEFAULT NULL, error_message text DEFAULT NULL, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_failed_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.report_failed(tq.slugid, int, jsonb, interval, int, text, jsonb) IS 'resolve a running run as failed, with an error, any JSON, and an error_message, which are kept as {message, details} if there is a message; retry_delay and retries_left override the policy for the next attempts; returns the status of the task';

CREATE FUNCTION tq.report_exception(
	task_id tq.slugid, run_id int, reason text, error jsonb DEFAULT NULL, retry_delay interval DEFAULT NULL,
	retries_left int DEFAULT NULL, error_message text DEFAULT NULL, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_exception_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.report_exception(tq.slugid, int, text, jsonb, interval, int, text, jsonb) IS 'resolve a running run as exception, with error, error_message, retry_delay and retries_left as report_failed() has; by default worker-shutdown and intermittent-task are retried while retries are left';

CREATE FUNCTION tq.defer_task(task_id tq.slugid, run_id int, after interval, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_defer_task' LANGUAGE C;
COMMENT ON FUNCTION tq.defer_task(tq.slugid, int, interval, jsonb) IS 'return a running run to its queue, to be claimed again after that time; returns the status of the task';

CREATE FUNCTION tq.report_progress(task_id tq.slugid, run_id int, done bigint, total bigint, message text DEFAULT NULL, credentials jsonb DEFAULT NULL)
	RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_progress' LANGUAGE C;
COMMENT ON FUNCTION tq.report_progress(tq.slugid, int, bigint, bigint, text, jsonb) IS 'show how far a running run is: done of total, in any unit, or NULL; stored once a second at most; returns the status of the task';

CREATE FUNCTION tq.resolve(task_ids tq.slugid[], run_ids int[], reason text DEFAULT 'completed', credentials jsonb DEFAULT NULL)
	RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_resolve' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve(tq.slugid[], int[], text, jsonb) IS 'resolve many runs for one reason; returns an outcome for each instead of raising an error';

CREATE FUNCTION tq.resolve(reports jsonb) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_resolve_each' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve(jsonb) IS 'resolve many runs, each as its report says: [{taskId, runId, reason, result, error, errorMessage, retryDelay, retriesLeft, credentials}]; returns an outcome for each instead of raising an error';

CREATE FUNCTION tq_internal.resolve_lines(runs text, reason text DEFAULT 'completed', credentials jsonb DEFAULT NULL) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_resolve_lines' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.resolve_lines(text, text, jsonb) IS 'resolve() with the runs and the outcomes as lines of text, for routers';

CREATE FUNCTION tq.resolve_and_claim(
	reports jsonb, task_queue_id text, worker_group text DEFAULT NULL, worker_id text DEFAULT NULL, tasks int DEFAULT 1,
	claim_for interval DEFAULT NULL, definition bool DEFAULT false)
	RETURNS SETOF tq.worker_run
	AS 'MODULE_PATHNAME', 'tq_resolve_and_claim_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve_and_claim(jsonb, text, text, text, int, interval, bool) IS 'resolve runs as resolve(reports) does, then claim up to that many as claim_work() does; returns first an outcome for each report, then the claims';

CREATE FUNCTION tq.assume(credentials jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_assume' LANGUAGE C;
COMMENT ON FUNCTION tq.assume(jsonb) IS 'have the scopes of these credentials, in place of those of the role, until the transaction ends';

CREATE FUNCTION tq_internal.secret_changes() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_secret_changes' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.secret_changes() IS 'makes all sessions read the secrets again once this transaction has committed';

CREATE FUNCTION tq_internal.last_claim_ends() RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tq_sql_last_claim_ends' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.last_claim_ends() IS 'when the last claim ends that was made until now, at the latest';

-- What the old secret has signed remains valid until the last claim of now has
-- ended, or is revoked.  The default of the column makes the new one.
CREATE FUNCTION tq.rotate_secret(revoke bool DEFAULT false) RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	last timestamptz;
BEGIN
	PERFORM tq_internal.not_null(revoke, 'revoke');
	PERFORM tq_internal.require('*');
	LOCK TABLE tq_internal.secret IN SHARE ROW EXCLUSIVE MODE;
	PERFORM tq_internal.secret_changes();
	last := CASE WHEN revoke THEN now ELSE tq_internal.last_claim_ends() END;
	UPDATE tq_internal.secret s SET until = last WHERE s.until IS NULL OR s.until > last;
	DELETE FROM tq_internal.secret s WHERE s.until <= now;
	INSERT INTO tq_internal.secret (since) VALUES (now);
	IF revoke THEN
		UPDATE tq_internal.group_callback SET client = '' WHERE client IS NOT NULL;
	END IF;
END
$$;
COMMENT ON FUNCTION tq.rotate_secret(bool) IS 'sign credentials with a new secret from now on; those of the claims that are out, and what on_group_resolved() has registered with them, stay valid, unless revoke is true';

-- ---------------------------------------------------------------------------
-- Dead letters
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.list_dead_letters(task_queue_id text, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.dead_letter_entry LANGUAGE tq_read AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	page_size int := tq_internal.arg_max(max);
BEGIN
	PERFORM tq_internal.require_any('queue:dead-letters:' || name, 'queue:dead-letters-in-queue:' || name);
	RETURN QUERY
		SELECT l.task_id, l.failed_at, tq_internal.reason_resolved_name(l.reason), l.error, l.definition, l.runs
		FROM tq_internal.dead_letter l
		WHERE l.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = name) AND l.task_id > tq_internal.arg_after(after)
		ORDER BY l.task_id LIMIT page_size;
END
$$;
COMMENT ON FUNCTION tq.list_dead_letters(text, tq.slugid, int) IS 'tasks of a queue that failed for good, by task id; go on after the last id seen';

CREATE FUNCTION tq.redrive(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_redrive' LANGUAGE C;
COMMENT ON FUNCTION tq.redrive(tq.slugid) IS 'run a dead letter again: as a rerun, or past the deadline as a new task that refers to the old one; returns the status of the task that is to run';

CREATE FUNCTION tq.redrive_queue(task_queue_id text, max int DEFAULT 1000) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_redrive_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.redrive_queue(text, int) IS 'redrive() up to that many dead letters of a queue, in the order in which they failed, skipping those that are locked or that a rule refuses; returns how many';

CREATE FUNCTION tq.discard_dead_letter(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_discard_dead_letter' LANGUAGE C;
COMMENT ON FUNCTION tq.discard_dead_letter(tq.slugid) IS 'drop a dead letter; the task stays as it is';

-- ---------------------------------------------------------------------------
-- Queues
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.task_queue_counts(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_task_queue_counts' LANGUAGE C;
COMMENT ON FUNCTION tq.task_queue_counts(text) IS 'pendingTasks and claimedTasks of a queue';

-- ---------------------------------------------------------------------------
-- Maintenance
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.upkeep() RETURNS TABLE (step text, tasks bigint)
	AS 'MODULE_PATHNAME', 'tq_upkeep' LANGUAGE C;
COMMENT ON FUNCTION tq.upkeep() IS 'one pass of maintenance: deadlines, timeouts, expired claims, delayed runs, expiry, and, outside of a transaction block, publication';

CREATE FUNCTION tq_internal.start_maintenance() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_start_maintenance' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.start_maintenance() IS 'request the maintenance worker of this database; done by CREATE EXTENSION';

CREATE FUNCTION tq_internal.reset_queue_stats() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_reset_queue_stats' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.reset_queue_stats() IS 'sets the totals, rates and histograms of tq.queue_stats to zero, and has the numbers of tasks counted again; not undone by a rollback';
