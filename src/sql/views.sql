-- ---------------------------------------------------------------------------
-- Names of stored numbers, and views that show them
-- ---------------------------------------------------------------------------

-- Functions of schema tq that views call, without the check of scopes.
CREATE FUNCTION tq_internal.group_progress(task_group_id tq.slugid) RETURNS tq.progress
	AS 'MODULE_PATHNAME', 'tq_group_progress_shown' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.group_progress(tq.slugid) IS 'tq.group_progress() for views';

CREATE FUNCTION tq_internal.published_id() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_published_id' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.published_id() IS 'the last id of a message that readers may have seen: it is on the synchronous standbys, for which the call waits';

CREATE FUNCTION tq_internal.maintenance_activity()
	RETURNS TABLE (step text, state text, batches bigint, tasks bigint, last_at timestamptz,
		last_late interval, max_late interval, max_late_at timestamptz,
		failures bigint, failed_at timestamptz, error text)
	AS 'MODULE_PATHNAME', 'tq_maintenance_activity' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.maintenance_activity() IS 'what the maintenance worker of this database has done since it was started: its cycles, then each step; without a maintenance worker one row, which says so';

CREATE FUNCTION tq_internal.expired_claims() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_expired_claims' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.expired_claims() IS 'claims that have expired within the last hour and since the maintenance worker was started; NULL: there is none';

CREATE FUNCTION tq_internal.background_workers() RETURNS int
	AS 'MODULE_PATHNAME', 'tq_background_workers' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.background_workers() IS 'background workers of the server that are running';

CREATE FUNCTION tq_internal.waiters() RETURNS TABLE (pid int, queue int)
	AS 'MODULE_PATHNAME', 'tq_waiters' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.waiters() IS 'sessions of this database that wait: for a run of a queue, 0 if it is new, or for a task, then queue is NULL';

CREATE FUNCTION tq_internal.queue_counters() RETURNS TABLE (queue int,
	unscheduled bigint, delayed bigint, pending bigint, running bigint, groups bigint, unique_keys bigint, foreign_dependencies bigint,
	created bigint, claimed bigint, completed bigint, failed bigint, exception bigint, reasons jsonb,
	retried bigint, expired_claims bigint, created_per_s float8, claimed_per_s float8, ended_per_s float8,
	wait_p50 interval, wait_p95 interval, wait_p99 interval, wait_histogram jsonb,
	run_p50 interval, run_p95 interval, run_p99 interval, run_histogram jsonb)
	AS 'MODULE_PATHNAME', 'tq_queue_counters' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.queue_counters() IS 'counters of the queues in which there is or was something';

CREATE FUNCTION tq_internal.queue_totals() RETURNS TABLE (queue int,
	unscheduled bigint, delayed bigint, pending bigint, running bigint,
	created bigint, claimed bigint, retried bigint, dead_letters bigint, ended bigint[],
	waited_us bigint, waited bigint[], ran_us bigint, ran bigint[])
	AS 'MODULE_PATHNAME', 'tq_queue_totals' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.queue_totals() IS 'counters of the queues that have some in shared memory, as they are now, without a count of rows; the numbers of tasks are NULL while they are not exact; ended by stored reasonResolved, waited and ran by bucket';

CREATE FUNCTION tq_internal.count_state(OUT source text, OUT since timestamptz)
	AS 'MODULE_PATHNAME', 'tq_count_state' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.count_state() IS 'where the numbers of tasks in tq.queue_stats are from, and since when totals are counted';

CREATE FUNCTION tq_internal.state_name(state int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_state_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.state_name(int) IS 'name of a stored state';
CREATE FUNCTION tq_internal.reason_created_name(reason int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_reason_created_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.reason_created_name(int) IS 'name of a stored reasonCreated';
CREATE FUNCTION tq_internal.reason_resolved_name(reason int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_reason_resolved_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.reason_resolved_name(int) IS 'name of a stored reasonResolved, NULL if there is none';
CREATE FUNCTION tq_internal.priority_name(priority int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_priority_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.priority_name(int) IS 'name of a stored priority';

CREATE FUNCTION tq_internal.exchange_name(exchange int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_exchange_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.exchange_name(int) IS 'name of a stored exchange';

CREATE FUNCTION tq_internal.is_tolerated(policy jsonb, reason int) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_is_tolerated_sql' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.is_tolerated(jsonb, int) IS 'whether a task with this policy that was resolved for this stored reasonResolved is unsuccessful, but tolerated or forgiven';

-- New tasks whose messages the publisher has not derived yet: it finds them by their
-- numbers (src/events/publisher.c).  Those of the parts of a publication that are done
-- have been derived.
CREATE VIEW tq_internal.underived AS
	SELECT n.id AS task, n.xid, n.deadline, n.priority
	FROM (SELECT k.upto, coalesce(k.low, 0) AS low, k.open, k.part_of, k.upto_seq FROM tq_internal.tick k ORDER BY k.last_id DESC LIMIT 1) AS t
		CROSS JOIN LATERAL (
			SELECT c.id, c.xid, coalesce(c.effective_deadline, c.deadline) AS deadline, coalesce(c.first_priority, c.priority) AS priority FROM tq_internal.task c WHERE c.id >= t.low
			UNION ALL
			SELECT c.id, c.xid, coalesce(c.effective_deadline, c.deadline), coalesce(c.first_priority, c.priority) FROM tq_internal.task c WHERE c.id = ANY (t.open) AND c.id < t.low
			UNION ALL
			SELECT c.id, c.xid, c.effective_deadline, coalesce(c.first_priority, c.priority) FROM tq_internal.departed c WHERE c.id >= t.low
			UNION ALL
			SELECT c.id, c.xid, c.effective_deadline, coalesce(c.first_priority, c.priority) FROM tq_internal.departed c WHERE c.id = ANY (t.open) AND c.id < t.low) AS n
	WHERE NOT pg_visible_in_snapshot(n.xid, t.upto) AND EXISTS (SELECT FROM tq_internal.activation)
		AND NOT coalesce(n.id <= t.upto_seq AND pg_visible_in_snapshot(n.xid, t.part_of), false);
COMMENT ON VIEW tq_internal.underived IS 'new tasks whose first messages wait for the publisher, which derives them from the tasks';

-- pg_dump reads no views.
CREATE FUNCTION tq_internal.underived_message()
	RETURNS TABLE (xid xid8, seq bigint, taken_until timestamptz, due timestamptz, worker int, segment smallint, records bytea, detail jsonb)
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT c.xid, c.id, NULL::timestamptz, nullif(c.deadline, 'infinity'), c.priority::int, 0::smallint, ''::bytea, NULL::jsonb
		FROM (SELECT k.upto, coalesce(k.low, 0) AS low, k.open, k.part_of, k.upto_seq FROM tq_internal.tick k ORDER BY k.last_id DESC LIMIT 1) AS t
			CROSS JOIN (
				SELECT n.id, n.xid, coalesce(n.effective_deadline, n.deadline) AS deadline, coalesce(n.first_priority, n.priority) AS priority FROM tq_internal.task n
				UNION ALL
				SELECT n.id, n.xid, n.effective_deadline, coalesce(n.first_priority, n.priority) FROM tq_internal.departed n) AS c
		WHERE (c.id >= t.low OR c.id = ANY (t.open)) AND NOT pg_visible_in_snapshot(c.xid, t.upto)
			AND NOT coalesce(c.id <= t.upto_seq AND pg_visible_in_snapshot(c.xid, t.part_of), false)
			AND EXISTS (SELECT FROM tq_internal.activation);
	END;
COMMENT ON FUNCTION tq_internal.underived_message() IS 'for pg_dump: the same as rows of message, which have no records; none before the database is in use, as its messages have been loaded';

-- A timer that is left to the publisher: its message is not visible in the last
-- tick.  The records begin with the id of the first task.
CREATE VIEW tq_internal.left_timer AS
	SELECT CASE WHEN m.records = '' THEN m.seq ELSE ('x' || encode(substr(m.records, 1, 8), 'hex'))::bit(64)::bigint END AS task, m.due, m.taken_until IS NOT NULL AS is_claim
	FROM tq_internal.message m
	WHERE m.due IS NOT NULL
		AND m.xid >= coalesce((SELECT pg_snapshot_xmin(upto) FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1), '0')
		AND NOT pg_visible_in_snapshot(m.xid, (SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1))
	UNION ALL
	SELECT u.task, u.deadline, false FROM tq_internal.underived u WHERE u.deadline < 'infinity';
COMMENT ON VIEW tq_internal.left_timer IS 'timers of deadlines and claims that the publisher will insert when it publishes their messages';

-- ---- rows that the caller may see ----
--
-- tq.x is what visible_x() returns: the rows of all_x that the caller may see.  For a
-- role that may read all_x the planner takes all_x() instead (api/view_choice.c), so
-- that its plans are those of all_x.  Of a view that may be large visible_x is a
-- security barrier, and the planner puts it into the query, so that conditions which
-- leak nothing are still looked up by index.  The others are read by the function,
-- with the rights of the owner, because they call functions that no other role may.

CREATE FUNCTION tq_internal.choose_rows(internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'tq_choose_rows' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.choose_rows(internal) IS 'planner support of visible_x(): calls all_x() for a role that may read the view all_x';

CREATE FUNCTION tq_internal.visible_queues("right" text) RETURNS text[]
	LANGUAGE tq_read STABLE PARALLEL RESTRICTED AS $$
BEGIN
	RETURN ARRAY(SELECT q.task_queue_id FROM tq_internal.queue q
		WHERE CASE "right"
			WHEN 'status' THEN tq_internal.has_right('status', '*', q.task_queue_id)
			WHEN 'get-task' THEN tq_internal.has_right('get-task', '*', q.task_queue_id)
			WHEN 'dead-letters' THEN tq_internal.has_right('dead-letters', q.task_queue_id, q.task_queue_id) END);
END
$$;
COMMENT ON FUNCTION tq_internal.visible_queues(text) IS 'queues to all tasks of which the caller has the right status, get-task or dead-letters';

CREATE FUNCTION tq_internal.is_own(role text) RETURNS bool LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT tq_internal.has_scope('*')
			OR EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = role AND pg_has_role(tq_internal.caller(), r.oid, 'USAGE'));
	END;
COMMENT ON FUNCTION tq_internal.is_own(text) IS 'whether the caller has the privileges of that role, or may do all';

CREATE FUNCTION tq_internal.may_see_statements(role oid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_may_see_statements' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.may_see_statements(oid) IS 'whether the caller may see the statements of a role, as pg_stat_activity decides';

CREATE FUNCTION tq_internal.make_rows(name text, is_large bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION tq_internal.all_%1$s() RETURNS SETOF tq_internal.all_%1$s LANGUAGE sql STABLE
		BEGIN ATOMIC SELECT * FROM tq_internal.all_%1$s; END', name);
	EXECUTE format(CASE WHEN is_large
		THEN 'CREATE FUNCTION tq_internal.visible_%1$s() RETURNS SETOF tq_internal.all_%1$s
			LANGUAGE sql STABLE PARALLEL RESTRICTED SUPPORT tq_internal.choose_rows BEGIN ATOMIC SELECT * FROM tq_internal.visible_%1$s; END'
		ELSE 'CREATE FUNCTION tq_internal.visible_%1$s() RETURNS SETOF tq_internal.all_%1$s
			AS %2$L, %3$L LANGUAGE C STABLE SUPPORT tq_internal.choose_rows' END, name, 'MODULE_PATHNAME', 'tq_visible_rows');
	EXECUTE format('COMMENT ON VIEW tq_internal.all_%1$s IS ''all rows of tq.%1$s''', name);
	EXECUTE format('COMMENT ON VIEW tq_internal.visible_%1$s IS ''rows of tq.%1$s that the caller may see''', name);
	EXECUTE format('COMMENT ON FUNCTION tq_internal.all_%1$s() IS ''all rows of tq.%1$s, for a role that may read them''', name);
	EXECUTE format('COMMENT ON FUNCTION tq_internal.visible_%1$s() IS ''rows of tq.%1$s that the caller may see''', name);
END
$$;
COMMENT ON FUNCTION tq_internal.make_rows(text, bool) IS 'makes the functions of a view; dropped below';

CREATE VIEW tq_internal.all_run_overview AS
	SELECT t.task_id, r.run_id::int AS run_id, tq_internal.state_name(r.state) AS state,
		tq_internal.reason_created_name(r.reason_created) AS reason_created,
		tq_internal.reason_resolved_name(r.reason_resolved) AS reason_resolved,
		w.worker_group, w.worker_id, COALESCE(d.attempt, 0)::int AS attempt,
		r.scheduled, COALESCE(d.visible_at, r.scheduled) AS visible_at,
		r.started, r.taken_until, r.resolved, d.error, d.result, d.done, d.total, d.message, d.reported
	FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task LEFT JOIN tq_internal.worker w ON w.id = r.worker
		LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id
	UNION ALL
	SELECT p.task_id, p.run_id, 'pending', tq_internal.reason_created_name(p.reason_created), NULL,
		w.worker_group, w.worker_id, COALESCE(d.attempt, 0), p.scheduled, COALESCE(d.visible_at, p.scheduled),
		d.started, NULL, NULL, NULL, NULL, d.done, d.total, d.message, d.reported
	FROM (SELECT t.task_id, p.task, p.run_id, p.reason_created, p.scheduled, p.has_detail FROM tq_internal.pending p JOIN tq_internal.task t
			ON t.queue = p.queue AND t.priority = p.priority AND t.id = p.seq AND t.id = p.task		-- of one task it is found by pending_order
		UNION ALL SELECT t.task_id, p.task, p.run_id, p.reason_created, p.scheduled, p.has_detail FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task AND p.seq <> p.task
		UNION ALL SELECT t.task_id, p.task, p.run_id, p.reason_created, p.scheduled, p.has_detail FROM tq_internal.delayed p JOIN tq_internal.task t ON t.id = p.task) AS p
		LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id
		LEFT JOIN tq_internal.worker w ON w.id = d.worker;
CREATE VIEW tq_internal.visible_run_overview WITH (security_barrier) AS
	SELECT o.*
	FROM tq_internal.all_run_overview o
		JOIN tq_internal.task t ON t.task_id = o.task_id
		JOIN tq_internal.queue q ON q.id = t.queue
	WHERE q.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]);
SELECT tq_internal.make_rows('run_overview', true);
CREATE VIEW tq.run_overview AS SELECT * FROM tq_internal.visible_run_overview();
COMMENT ON VIEW tq.run_overview IS 'every run of every task, with names instead of numbers';
COMMENT ON COLUMN tq.run_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.run_overview.run_id IS 'number of the run, from 0';
COMMENT ON COLUMN tq.run_overview.state IS 'state of the run';
COMMENT ON COLUMN tq.run_overview.reason_created IS 'why it was created';
COMMENT ON COLUMN tq.run_overview.reason_resolved IS 'why it was resolved; NULL: it is not';
COMMENT ON COLUMN tq.run_overview.worker_group IS 'group of the worker that has it, or had it';
COMMENT ON COLUMN tq.run_overview.worker_id IS 'that worker';
COMMENT ON COLUMN tq.run_overview.attempt IS 'which attempt it is, from 0; a run that replaces a lost one is the same attempt';
COMMENT ON COLUMN tq.run_overview.scheduled IS 'when it was created';
COMMENT ON COLUMN tq.run_overview.visible_at IS 'from when on it can be claimed';
COMMENT ON COLUMN tq.run_overview.started IS 'when it was claimed';
COMMENT ON COLUMN tq.run_overview.taken_until IS 'until when it is claimed';
COMMENT ON COLUMN tq.run_overview.resolved IS 'when it was resolved';
COMMENT ON COLUMN tq.run_overview.error IS 'error that the worker reported';
COMMENT ON COLUMN tq.run_overview.result IS 'result that the worker reported';
COMMENT ON COLUMN tq.run_overview.done IS 'how much of it was done when the worker last called report_progress(); NULL: it did not';
COMMENT ON COLUMN tq.run_overview.total IS 'of how much; NULL: not known';
COMMENT ON COLUMN tq.run_overview.message IS 'what the worker said then';
COMMENT ON COLUMN tq.run_overview.reported IS 'when that was';

-- The id of a task's group is computed, and a filter by it is split by the
-- support function of slugid_eq(); src/api/group_filter.c.
CREATE FUNCTION tq_internal.group_slug(group_id bigint, task_id tq.slugid) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_group_slug_sql' LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_internal.group_slug(bigint, tq.slugid) IS 'id of the group of a task';
CREATE FUNCTION tq_internal.group_number(task_group_id tq.slugid) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_group_number' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_internal.group_number(tq.slugid) IS 'number of a group; NULL if it has no row';

CREATE VIEW tq_internal.named_run AS
	SELECT r.*, w.worker_group, w.worker_id, COALESCE(d.attempt, r.run_id) AS attempt, d.error, d.result,
		d.done, d.total
	FROM tq_internal.run r
		LEFT JOIN tq_internal.worker w ON w.id = r.worker
		LEFT JOIN LATERAL (SELECT * FROM tq_internal.run_detail d
			WHERE r.has_detail AND d.task = r.task AND d.run_id = r.run_id OFFSET 0) AS d ON true;	-- not hashed
COMMENT ON VIEW tq_internal.named_run IS 'claimed and resolved runs, with their details, and the names of their workers';

-- Running runs are found by their timers, because an index on the state of runs
-- would keep the updates of runs from being HOT.  Each has one at every commit,
-- whether it is due or not (src/storage/timer_table.c).
-- The planner takes LIMIT to leave a tenth of the ten elements that it expects of
-- each array.  Without it, it expects so many tasks that it reads all runs.
CREATE VIEW tq_internal.watched_task AS
	SELECT u.task FROM tq_internal.claim_timer l CROSS JOIN LATERAL (SELECT unnest(l.tasks) AS task LIMIT cardinality(l.tasks)) AS u
	UNION SELECT l.task FROM tq_internal.left_timer l WHERE l.is_claim
	UNION SELECT p.task FROM tq_internal.postponed p WHERE p.step = 'claim-expired';
COMMENT ON VIEW tq_internal.watched_task IS 'tasks that have a claim timer, or will: all running ones, and others';

-- A running run is the last of its task.  LIMIT makes it a look-up by index for
-- each task, whatever the statistics say about tables that change so fast.
CREATE VIEW tq_internal.claimed_run AS
	SELECT r.*
	FROM tq_internal.watched_task x
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run q WHERE q.task = x.task ORDER BY q.run_id DESC LIMIT 1) AS r
	WHERE r.state = 2;
COMMENT ON VIEW tq_internal.claimed_run IS 'running runs';

CREATE VIEW tq_internal.running_run AS
	SELECT r.*
	FROM tq_internal.claimed_run c JOIN tq_internal.named_run r ON r.task = c.task AND r.run_id = c.run_id;
COMMENT ON VIEW tq_internal.running_run IS 'running runs, with their details, and the names of their workers';

-- Each task once, with its current run.  A state is a constant of each branch, and names
-- are looked up within it, so that a query for a state, a queue or a task reads only what
-- it needs of each branch.  The last run is not looked up by LATERAL, so that a filter by
-- worker or time comes first; a failure says which it is.
--
-- To plan such a view takes longer than to find a task by it.  So inner joins are conditions
-- of WHERE, because the planner copies the columns of each JOIN; what a query may not ask
-- for is an outer join by a unique key, which the planner removes; and nothing is looked
-- up by a subquery for each row, because its cost is estimated to be that of reading from
-- disk, and PostgreSQL compiles queries of such a cost (jit_above_cost).
CREATE VIEW tq_internal.current_task AS
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id) AS task_group_id, y.policy AS given_policy,
		'unscheduled' AS state, (u.next_run - 1)::smallint AS run_id, NULL::smallint AS attempt,
		NULL::smallint AS reason_created, NULL::smallint AS reason_resolved,
		CASE WHEN u.stripes > 0 THEN (SELECT sum(m.unmet)::int FROM tq_internal.dependency_counter m WHERE m.task = t.id) ELSE u.unmet END AS unmet,
		NULL::timestamptz AS scheduled, NULL::timestamptz AS visible_at, NULL::timestamptz AS started,
		NULL::timestamptz AS taken_until, NULL::timestamptz AS resolved, NULL AS worker_group, NULL AS worker_id,
		NULL::jsonb AS error, NULL::jsonb AS result, t.created AS since, NULL::float8 AS done
	FROM tq_internal.unscheduled u, tq_internal.queue q, tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = u.task AND q.id = t.queue
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'pending', p.run_id, COALESCE(d.attempt, p.run_id), p.reason_created, NULL, NULL, p.scheduled, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.pending p LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id, tq_internal.queue q,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.queue = p.queue AND t.priority = p.priority AND t.id = p.seq AND t.id = p.task AND q.id = t.queue
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'pending', p.run_id, COALESCE(d.attempt, p.run_id), p.reason_created, NULL, NULL, p.scheduled, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.pending p LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id, tq_internal.queue q,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = p.task AND p.seq <> p.task AND q.id = t.queue
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'pending', p.run_id, COALESCE(d.attempt, p.run_id), p.reason_created, NULL, NULL, p.scheduled, p.visible_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.delayed p LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id, tq_internal.queue q,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = p.task AND q.id = t.queue
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'running', r.run_id, COALESCE(d.attempt, r.run_id), r.reason_created, NULL, NULL, r.scheduled, NULL, r.started, r.taken_until, NULL,
		w.worker_group, w.worker_id, d.error, d.result, r.started, d.done::float8 / nullif(d.total, 0)
	FROM tq_internal.queue q, tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = r.task AND q.id = t.queue AND r.state = 2
		AND r.task IN (SELECT w.task FROM tq_internal.watched_task w)	-- not running_run, which begins with the timers
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'failed', r.run_id, COALESCE(d.attempt, r.run_id), r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		w.worker_group, w.worker_id, d.error, d.result, f.resolved, NULL
	FROM tq_internal.failure f, tq_internal.queue q, tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = f.task AND q.id = f.queue AND r.task = f.task AND r.run_id = f.run_id AND f.state = 4	-- not t.queue, so that the index by queue serves
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'exception', r.run_id, COALESCE(d.attempt, r.run_id), r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		w.worker_group, w.worker_id, d.error, d.result, f.resolved, NULL
	FROM tq_internal.failure f, tq_internal.queue q, tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = f.task AND q.id = f.queue AND r.task = f.task AND r.run_id = f.run_id AND f.state = 5	-- not t.queue, so that the index by queue serves
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'completed', r.run_id, COALESCE(d.attempt, r.run_id), r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		w.worker_group, w.worker_id, d.error, d.result, r.resolved, NULL
	FROM tq_internal.queue q, tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id,
		tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy
	WHERE t.id = r.task AND q.id = t.queue AND r.state = 3
		AND NOT EXISTS (SELECT FROM tq_internal.run x WHERE x.task = r.task AND x.run_id > r.run_id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = r.task AND p.seq <> p.task)	-- one of them all would read pending for each run
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = r.task)
		AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = r.task);
COMMENT ON VIEW tq_internal.current_task IS 'every task with its state and current run';

CREATE VIEW tq_internal.all_task_overview AS
	SELECT c.task_id, c.metadata ->> 'name' AS name, c.task_queue_id, c.state,
		COALESCE(tq_internal.reason_resolved_name(c.reason_resolved), tq_internal.reason_created_name(c.reason_created)) AS reason,
		tq_internal.priority_name(c.priority) AS priority, c.attempt::int AS attempt,
		c.since,
		c.worker_group || '/' || c.worker_id AS worker, c.done
	FROM tq_internal.current_task c;
CREATE VIEW tq_internal.visible_task_overview WITH (security_barrier) AS
	SELECT o.task_id, CASE WHEN o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('get-task'))::text[]) THEN o.name END AS name,
		o.task_queue_id, o.state, o.reason, o.priority, o.attempt, o.since, o.worker, o.done
	FROM tq_internal.all_task_overview o
	WHERE o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]);
SELECT tq_internal.make_rows('task_overview', true);
CREATE VIEW tq.task_overview AS SELECT * FROM tq_internal.visible_task_overview();
COMMENT ON VIEW tq.task_overview IS 'every task with its state; tq.task_details has the rest';
COMMENT ON COLUMN tq.task_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_overview.name IS 'metadata.name; NULL if enqueue() got none';
COMMENT ON COLUMN tq.task_overview.task_queue_id IS 'queue in which workers find the task';
COMMENT ON COLUMN tq.task_overview.state IS 'unscheduled, pending, running, completed, failed or exception';
COMMENT ON COLUMN tq.task_overview.reason IS 'why the last run was resolved or, before that, created';
COMMENT ON COLUMN tq.task_overview.priority IS 'priority among the pending tasks of the queue';
COMMENT ON COLUMN tq.task_overview.attempt IS 'which attempt the last run is, from 0; NULL: no run';
COMMENT ON COLUMN tq.task_overview.since IS 'since when the task has been in this state';
COMMENT ON COLUMN tq.task_overview.worker IS 'group and id of the worker that has the last run, or had it';
COMMENT ON COLUMN tq.task_overview.done IS 'of a running task whose worker calls report_progress(), the share that is done, from 0 to 1';

CREATE VIEW tq_internal.detailed_task AS
	SELECT c.task_id, c.metadata ->> 'name' AS name, c.task_queue_id, c.task_group_id,
		tq_internal.priority_name(c.priority) AS priority, c.state,
		tq_internal.reason_created_name(c.reason_created) AS reason_created,
		tq_internal.reason_resolved_name(c.reason_resolved) AS reason_resolved,
		c.run_id::int AS last_run_id, c.attempt::int AS attempt, c.unmet,
		c.state IN ('failed', 'exception') AND c.given_policy IS NOT NULL
			AND tq_internal.is_tolerated(c.given_policy, c.reason_resolved) AS tolerated,
		c.worker_group, c.worker_id, c.scheduled, c.visible_at, c.started, c.taken_until, c.resolved,
		c.created, nullif(COALESCE(c.effective_deadline, c.deadline), 'infinity') AS deadline, nullif(c.expires, 'infinity') AS expires,
		COALESCE(c.scheduler_id, '-') AS scheduler_id, COALESCE(c.project_id, 'none') AS project_id,
		c.dependencies::text[] AS dependencies, c.routes, c.scopes, c.tags, c.metadata, c.extra,
		c.given_policy || CASE WHEN c.given_policy ?| '{uniqueKey,serialKey,concurrencyKey,fairnessKey}' THEN COALESCE(
			(SELECT jsonb_object_agg(('{uniqueKey,serialKey,concurrencyKey,fairnessKey}'::text[])[k.kind + 1], k.key) FROM tq_internal.task_key k WHERE k.task = c.id), '{}')
			ELSE '{}' END AS policy,
		c.payload, c.error, c.result, c.group_id
	FROM tq_internal.current_task c;
COMMENT ON VIEW tq_internal.detailed_task IS 'rows of tq.task_details, and the numbers of their groups';
CREATE VIEW tq_internal.all_task_details AS
	SELECT o.task_id, o.name, o.task_queue_id, o.task_group_id, o.priority, o.state, o.reason_created, o.reason_resolved, o.last_run_id, o.attempt, o.unmet, o.tolerated,
		o.worker_group, o.worker_id, o.scheduled, o.visible_at, o.started, o.taken_until, o.resolved, o.created, o.deadline, o.expires, o.scheduler_id, o.project_id,
		o.dependencies, o.routes, o.scopes, o.tags, o.metadata, o.extra, o.policy, o.payload, o.error, o.result, g.name AS group_name
	FROM tq_internal.detailed_task o LEFT JOIN tq_internal.task_group g ON g.id = o.group_id;	-- removed from a plan that does not read the name
-- Groups are joined, because group_slug() would be called with the rights of the caller.
CREATE VIEW tq_internal.visible_task_details WITH (security_barrier) AS
	SELECT o.task_id, CASE WHEN s.in_full THEN o.name END AS name, o.task_queue_id,
		CASE WHEN o.group_id IS NULL THEN o.task_id ELSE g.task_group_id END AS task_group_id,
		o.priority, o.state, o.reason_created, o.reason_resolved, o.last_run_id, o.attempt, o.unmet, o.tolerated, o.worker_group, o.worker_id, o.scheduled,
		o.visible_at, o.started, o.taken_until, o.resolved, o.created, o.deadline, o.expires, o.scheduler_id, o.project_id,
		CASE WHEN s.in_full THEN o.dependencies END AS dependencies, CASE WHEN s.in_full THEN o.routes END AS routes,
		CASE WHEN s.in_full THEN o.scopes END AS scopes, CASE WHEN s.in_full THEN o.tags END AS tags, CASE WHEN s.in_full THEN o.metadata END AS metadata,
		CASE WHEN s.in_full THEN o.extra END AS extra, CASE WHEN s.in_full THEN o.policy END AS policy, CASE WHEN s.in_full THEN o.payload END AS payload,
		o.error, o.result, CASE WHEN s.in_full THEN g.name END AS group_name
	FROM tq_internal.detailed_task o LEFT JOIN tq_internal.task_group g ON g.id = o.group_id
		CROSS JOIN LATERAL (SELECT o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('get-task'))::text[]) AS in_full) AS s
	WHERE o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]);
SELECT tq_internal.make_rows('task_details', true);
CREATE VIEW tq.task_details AS SELECT * FROM tq_internal.visible_task_details();
COMMENT ON VIEW tq.task_details IS 'every task with all that is known of it, the payload and the last error and result included';
COMMENT ON COLUMN tq.task_details.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_details.name IS 'metadata.name; NULL if enqueue() got none';
COMMENT ON COLUMN tq.task_details.task_queue_id IS 'queue in which workers find the task';
COMMENT ON COLUMN tq.task_details.task_group_id IS 'group of the task';
COMMENT ON COLUMN tq.task_details.priority IS 'priority among the pending tasks of the queue';
COMMENT ON COLUMN tq.task_details.state IS 'unscheduled, pending, running, completed, failed or exception';
COMMENT ON COLUMN tq.task_details.reason_created IS 'why the last run was created';
COMMENT ON COLUMN tq.task_details.reason_resolved IS 'why the last run was resolved';
COMMENT ON COLUMN tq.task_details.last_run_id IS 'number of the last run, from 0';
COMMENT ON COLUMN tq.task_details.attempt IS 'which attempt the last run is, from 0';
COMMENT ON COLUMN tq.task_details.unmet IS 'how many dependencies an unscheduled task waits for';
COMMENT ON COLUMN tq.task_details.tolerated IS 'whether its policy makes the failure count as a success for its group';
COMMENT ON COLUMN tq.task_details.worker_group IS 'group of the worker that has the last run, or had it';
COMMENT ON COLUMN tq.task_details.worker_id IS 'that worker';
COMMENT ON COLUMN tq.task_details.scheduled IS 'when the last run was created';
COMMENT ON COLUMN tq.task_details.visible_at IS 'until when a pending run is delayed; NULL: it is not';
COMMENT ON COLUMN tq.task_details.started IS 'when the last run was claimed';
COMMENT ON COLUMN tq.task_details.taken_until IS 'until when a running run is claimed';
COMMENT ON COLUMN tq.task_details.resolved IS 'when the last run was resolved';
COMMENT ON COLUMN tq.task_details.created IS 'when the task was created';
COMMENT ON COLUMN tq.task_details.deadline IS 'when the task is resolved as deadline-exceeded, at the latest; NULL: it has no deadline';
COMMENT ON COLUMN tq.task_details.expires IS 'when the task is deleted, at the latest; NULL: when retention is over after its end';
COMMENT ON COLUMN tq.task_details.scheduler_id IS 'schedulerId of the definition';
COMMENT ON COLUMN tq.task_details.project_id IS 'projectId of the definition';
COMMENT ON COLUMN tq.task_details.dependencies IS 'tasks that it depends on; NULL: none';
COMMENT ON COLUMN tq.task_details.routes IS 'routes of its messages; NULL: none';
COMMENT ON COLUMN tq.task_details.scopes IS 'scopes of its credentials; NULL: none';
COMMENT ON COLUMN tq.task_details.tags IS 'tags of the definition';
COMMENT ON COLUMN tq.task_details.metadata IS 'metadata of the definition';
COMMENT ON COLUMN tq.task_details.extra IS 'extra of the definition';
COMMENT ON COLUMN tq.task_details.policy IS 'policy as it was given; NULL: none';
COMMENT ON COLUMN tq.task_details.payload IS 'payload of the definition';
COMMENT ON COLUMN tq.task_details.error IS 'error that the worker of the last run reported';
COMMENT ON COLUMN tq.task_details.result IS 'result that it reported';
COMMENT ON COLUMN tq.task_details.group_name IS 'name of its group, which name_task_group() gave; NULL: none';

-- Their seq is not their task's, so that the partial index serves.
CREATE VIEW tq_internal.retried_run AS
	SELECT p.task, p.run_id, p.queue FROM tq_internal.pending p WHERE p.seq <> p.task AND p.reason_created IN (2, 3, 7)
	UNION ALL SELECT d.task, d.run_id, d.queue FROM tq_internal.delayed d WHERE d.reason_created IN (2, 3, 7)
	UNION ALL SELECT r.task, r.run_id, t.queue FROM tq_internal.claimed_run r JOIN tq_internal.task t ON t.id = r.task WHERE r.reason_created IN (2, 3, 7);
COMMENT ON VIEW tq_internal.retried_run IS 'pending and running runs by which a run that ended without success is retried';

-- A scan of failure alone, so that the latest ones are found by its index.
CREATE VIEW tq_internal.all_failure_overview AS
	SELECT f.resolved, t.task_id, t.metadata ->> 'name' AS name, q.task_queue_id,
		tq_internal.state_name(f.state) AS state, tq_internal.reason_resolved_name(r.reason_resolved) AS reason,
		(r.run_id + 1)::int AS runs, r.worker_group || '/' || r.worker_id AS worker, r.error, f.retrying
	FROM (SELECT f.resolved, f.task, f.queue, f.state, f.run_id, false AS retrying FROM tq_internal.failure f
			UNION ALL SELECT l.resolved, x.task, x.queue, l.state, l.run_id, true
			FROM tq_internal.retried_run x CROSS JOIN LATERAL (SELECT l.resolved, l.state, l.run_id FROM tq_internal.run l
				WHERE l.task = x.task AND l.run_id < x.run_id ORDER BY l.run_id DESC LIMIT 1) AS l) AS f
		JOIN tq_internal.task t ON t.id = f.task
		JOIN tq_internal.queue q ON q.id = f.queue
		CROSS JOIN LATERAL (SELECT r.run_id, r.reason_resolved, w.worker_group, w.worker_id, d.error
			FROM tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker
				LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id
			WHERE r.task = f.task AND r.run_id = f.run_id OFFSET 0) AS r;	-- two small joins are planned quicker than one
CREATE VIEW tq_internal.visible_failure_overview WITH (security_barrier) AS
	SELECT o.resolved, o.task_id, CASE WHEN o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('get-task'))::text[]) THEN o.name END AS name,
		o.task_queue_id, o.state, o.reason, o.runs, o.worker, o.error, o.retrying
	FROM tq_internal.all_failure_overview o
	WHERE o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]);
SELECT tq_internal.make_rows('failure_overview', true);
CREATE VIEW tq.failure_overview AS SELECT * FROM tq_internal.visible_failure_overview();
COMMENT ON VIEW tq.failure_overview IS 'tasks whose last resolved run ended without success: failed or exception, or retried now';
COMMENT ON COLUMN tq.failure_overview.resolved IS 'when that run ended';
COMMENT ON COLUMN tq.failure_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.failure_overview.name IS 'metadata.name';
COMMENT ON COLUMN tq.failure_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.failure_overview.state IS 'state of that run: failed or exception';
COMMENT ON COLUMN tq.failure_overview.reason IS 'why that run was resolved';
COMMENT ON COLUMN tq.failure_overview.runs IS 'how many runs the task has had up to that one';
COMMENT ON COLUMN tq.failure_overview.worker IS 'group and id of the worker that had that run';
COMMENT ON COLUMN tq.failure_overview.error IS 'error that it reported';
COMMENT ON COLUMN tq.failure_overview.retrying IS 'whether the task is retried: its next run is pending, delayed or running; false: the task has failed for good';

CREATE VIEW tq_internal.all_dead_letter_overview AS
	SELECT l.failed_at, l.task_id, l.definition #>> '{metadata,name}' AS name, q.task_queue_id,
		tq_internal.reason_resolved_name(l.reason) AS reason, jsonb_array_length(l.runs) AS runs, l.error
	FROM tq_internal.dead_letter l JOIN tq_internal.queue q ON q.id = l.queue;
CREATE VIEW tq_internal.visible_dead_letter_overview WITH (security_barrier) AS
	SELECT o.*
	FROM tq_internal.all_dead_letter_overview o
	WHERE o.task_queue_id = ANY ((SELECT tq_internal.visible_queues('dead-letters'))::text[]);
SELECT tq_internal.make_rows('dead_letter_overview', true);
CREATE VIEW tq.dead_letter_overview AS SELECT * FROM tq_internal.visible_dead_letter_overview();
COMMENT ON VIEW tq.dead_letter_overview IS 'dead letters of all queues; tq.list_dead_letters() has their definitions and runs';
COMMENT ON COLUMN tq.dead_letter_overview.failed_at IS 'when the task failed for good';
COMMENT ON COLUMN tq.dead_letter_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.dead_letter_overview.name IS 'metadata.name';
COMMENT ON COLUMN tq.dead_letter_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.dead_letter_overview.reason IS 'why the last run was resolved';
COMMENT ON COLUMN tq.dead_letter_overview.runs IS 'how many runs the task had';
COMMENT ON COLUMN tq.dead_letter_overview.error IS 'error that the last worker reported';

CREATE FUNCTION tq_internal.group_is_blocked(group_number bigint, task_group_id tq.slugid) RETURNS bool LANGUAGE tq_read STABLE AS $$
BEGIN
	RETURN (tq_internal.block_of_group(group_number, task_group_id, 1000)).blocked;
END
$$;
COMMENT ON FUNCTION tq_internal.group_is_blocked(bigint, tq.slugid) IS 'whether a group that only waits is blocked, for a view of many groups; NULL: more than 1,000 tasks wait';

-- What is blocked is looked for in groups that only wait, and only if the column is read.
CREATE VIEW tq_internal.all_group_overview AS
	SELECT g.task_group_id, COALESCE(g.name, t.metadata ->> 'name') AS name, (s.p).outcome,
		CASE WHEN (s.p).unscheduled > 0 AND (s.p).delayed + (s.p).pending + (s.p).running = 0 THEN tq_internal.group_is_blocked(g.id, g.task_group_id) ELSE false END AS blocked,
		(s.p).tasks, (s.p).unscheduled, (s.p).delayed, (s.p).pending, (s.p).running, (s.p).completed, (s.p).failed, (s.p).exception,
		(s.p).first_created, (s.p).last_resolved, g.sealed
	FROM tq_internal.task_group g LEFT JOIN tq_internal.task t ON t.task_id = g.task_group_id AND COALESCE(t.group_id, g.id) = g.id	-- not one of another group
		CROSS JOIN LATERAL (SELECT tq_internal.group_progress(g.task_group_id) AS p OFFSET 0) AS s;	-- called once for a row, and not if only groups are counted
CREATE VIEW tq_internal.visible_group_overview AS
	SELECT o.*
	FROM tq_internal.task_group g JOIN tq_internal.queue q ON q.id = g.queue
		JOIN tq_internal.all_group_overview o ON o.task_group_id = g.task_group_id
	WHERE tq_internal.has_right('list-task-group', g.task_group_id::text, q.task_queue_id);
SELECT tq_internal.make_rows('group_overview', false);
CREATE VIEW tq.group_overview AS SELECT * FROM tq_internal.visible_group_overview();
COMMENT ON VIEW tq.group_overview IS 'task groups of more than one task, or sealed, and how far they are';
COMMENT ON COLUMN tq.group_overview.task_group_id IS 'id of the group';
COMMENT ON COLUMN tq.group_overview.name IS 'name that name_task_group() gave it, else that of the task that it is named after; NULL: none';
COMMENT ON COLUMN tq.group_overview.outcome IS 'outcome of the group, as in group_progress()';
COMMENT ON COLUMN tq.group_overview.blocked IS 'whether nothing of it runs, is pending or delayed, and what is unscheduled can never start; NULL: more than 1,000 tasks are unscheduled, ask group_progress(), which also says what blocks it';
COMMENT ON COLUMN tq.group_overview.tasks IS 'tasks of the group';
COMMENT ON COLUMN tq.group_overview.unscheduled IS 'tasks that wait for others, or for schedule_task()';
COMMENT ON COLUMN tq.group_overview.delayed IS 'pending tasks that are delayed';
COMMENT ON COLUMN tq.group_overview.pending IS 'tasks that can be claimed';
COMMENT ON COLUMN tq.group_overview.running IS 'tasks that a worker has';
COMMENT ON COLUMN tq.group_overview.completed IS 'completed tasks';
COMMENT ON COLUMN tq.group_overview.failed IS 'failed tasks';
COMMENT ON COLUMN tq.group_overview.exception IS 'tasks that ended as an exception';
COMMENT ON COLUMN tq.group_overview.first_created IS 'when the first task was created';
COMMENT ON COLUMN tq.group_overview.last_resolved IS 'when the last task was resolved';
COMMENT ON COLUMN tq.group_overview.sealed IS 'when the group was sealed; NULL: tasks can join it';

CREATE VIEW tq_internal.all_callback_overview AS
	SELECT c.task_group_id, g.name AS group_name, c.task_id, c.definition ->> 'taskQueueId' AS task_queue_id, c.definition #>> '{metadata,name}' AS name,
		pg_get_userbyid(c.role)::text AS role, c.client, c.registered, p.failures, p.due AS next_attempt, p.error
	FROM tq_internal.group_callback c LEFT JOIN tq_internal.task_group g ON g.task_group_id = c.task_group_id
		LEFT JOIN tq_internal.postponed p ON p.task = c.id AND p.step = 'callback';
CREATE VIEW tq_internal.visible_callback_overview AS
	SELECT o.* FROM tq_internal.all_callback_overview o WHERE tq_internal.is_own(o.role);
SELECT tq_internal.make_rows('callback_overview', false);
CREATE VIEW tq.callback_overview AS SELECT * FROM tq_internal.visible_callback_overview();
COMMENT ON VIEW tq.callback_overview IS 'tasks that on_group_resolved() will create, and why one could not be created';
COMMENT ON COLUMN tq.callback_overview.task_group_id IS 'group whose end they wait for';
COMMENT ON COLUMN tq.callback_overview.group_name IS 'name that name_task_group() gave that group; NULL: none';
COMMENT ON COLUMN tq.callback_overview.task_id IS 'id that the task will have';
COMMENT ON COLUMN tq.callback_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.callback_overview.name IS 'metadata.name of the task';
COMMENT ON COLUMN tq.callback_overview.role IS 'role that called on_group_resolved(), whose scopes count when the task is created';
COMMENT ON COLUMN tq.callback_overview.client IS 'clientId of the credentials that it had assumed: only their scopes counted, at the call; empty: they were revoked; NULL: none';
COMMENT ON COLUMN tq.callback_overview.registered IS 'when that was';
COMMENT ON COLUMN tq.callback_overview.failures IS 'how often the task could not be created; NULL: never';
COMMENT ON COLUMN tq.callback_overview.next_attempt IS 'when that is tried again';
COMMENT ON COLUMN tq.callback_overview.error IS 'why, the last time';

CREATE VIEW tq_internal.all_dependency_overview AS
	SELECT t.task_id, d.required_task_id, r.metadata ->> 'name' AS required_name,
		CASE WHEN r.id IS NOT NULL THEN COALESCE(f.state, 'pending') END AS state,
		COALESCE(f.state = 'completed' OR (t.all_resolved AND f.state IN ('failed', 'exception'))
			OR (f.state IN ('failed', 'exception') AND y.policy IS NOT NULL AND tq_internal.is_tolerated(y.policy, f.reason_resolved)), false) AS met
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT unnest(t.dependencies) AS required_task_id LIMIT cardinality(t.dependencies)) AS d	-- as in watched_task
		LEFT JOIN tq_internal.task r ON r.task_id = d.required_task_id
		LEFT JOIN tq_internal.policy y ON y.id = r.policy
		LEFT JOIN LATERAL (SELECT 'unscheduled' AS state, NULL::smallint AS reason_resolved FROM tq_internal.unscheduled u WHERE u.task = r.id
			UNION ALL (SELECT tq_internal.state_name(l.state), l.reason_resolved FROM tq_internal.run l WHERE l.task = r.id
				AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = r.id)
				AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = r.id AND p.seq <> p.task)
				AND NOT EXISTS (SELECT FROM tq_internal.delayed p WHERE p.task = r.id)
				ORDER BY l.run_id DESC LIMIT 1)) AS f ON true
	WHERE t.dependencies IS NOT NULL;
CREATE VIEW tq_internal.visible_dependency_overview WITH (security_barrier) AS
	SELECT o.task_id, o.required_task_id,
		CASE WHEN p.task_queue_id = ANY ((SELECT tq_internal.visible_queues('get-task'))::text[]) THEN o.required_name END AS required_name,
		CASE WHEN p.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]) THEN o.state END AS state,
		CASE WHEN p.task_queue_id = ANY ((SELECT tq_internal.visible_queues('status'))::text[]) THEN o.met END AS met
	FROM tq_internal.all_dependency_overview o
		JOIN tq_internal.task t ON t.task_id = o.task_id
		JOIN tq_internal.queue q ON q.id = t.queue
		LEFT JOIN tq_internal.task r ON r.task_id = o.required_task_id
		LEFT JOIN tq_internal.queue p ON p.id = r.queue
	WHERE q.task_queue_id = ANY ((SELECT tq_internal.visible_queues('get-task'))::text[]);
SELECT tq_internal.make_rows('dependency_overview', true);
CREATE VIEW tq.dependency_overview AS SELECT * FROM tq_internal.visible_dependency_overview();
COMMENT ON VIEW tq.dependency_overview IS 'what each task depends on';
COMMENT ON COLUMN tq.dependency_overview.task_id IS 'task that depends on another';
COMMENT ON COLUMN tq.dependency_overview.required_task_id IS 'task that it depends on';
COMMENT ON COLUMN tq.dependency_overview.required_name IS 'metadata.name of that task';
COMMENT ON COLUMN tq.dependency_overview.state IS 'state of that task; NULL: it was deleted';
COMMENT ON COLUMN tq.dependency_overview.met IS 'whether its present state meets the dependency';

-- A worker has asked when it has claimed, or tried to, waited or reclaimed.
CREATE VIEW tq_internal.attended_queue AS
	SELECT q.id AS queue, q.task_queue_id, w.asked, COALESCE(i.waiters, 0) AS waiters, p.oldest, s.paused, m.is_attended,
		NOT m.is_attended AND NOT s.paused AND COALESCE(p.oldest < m.since, false) AS unattended
	FROM tq_internal.queue q
		CROSS JOIN LATERAL (SELECT COALESCE(bool_or((g.settings -> 'paused')::bool), false) AS paused FROM tq_internal.queue_settings g WHERE g.queue = q.id) AS s
		CROSS JOIN LATERAL (SELECT greatest(q.last_date_active, max(w.last_date_active)) AS asked FROM tq_internal.seen_worker w WHERE w.queue = q.id) AS w
		CROSS JOIN LATERAL (SELECT min(f.scheduled) AS oldest FROM generate_series(1, 7) AS y (priority) CROSS JOIN LATERAL (
			SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = y.priority ORDER BY p.seq LIMIT 1) AS f) AS p
		LEFT JOIN (SELECT queue, count(*) AS waiters FROM tq_internal.waiters() GROUP BY queue) AS i ON i.queue = q.id
		CROSS JOIN LATERAL (SELECT x.since, COALESCE(i.waiters > 0, false) OR COALESCE(w.asked > x.since, false) AS is_attended
			FROM (SELECT tq_internal.clock_now() - interval '1 minute' AS since) AS x) AS m;
COMMENT ON VIEW tq_internal.attended_queue IS 'queues: when a worker asked last, how many sessions wait now; is_attended: one has asked within a minute, or waits; unattended: none has, and a run has been pending for a minute';

CREATE VIEW tq_internal.all_queue_stats AS
	SELECT q.task_queue_id, s.source,
		COALESCE(c.pending, 0) AS pending, COALESCE(c.delayed, 0) AS delayed, COALESCE(c.unscheduled, 0) AS blocked,
		COALESCE(c.running, 0) AS running, p.waiters, tq_internal.clock_now() - p.oldest AS oldest_pending,
		COALESCE(w.workers, 0) AS workers, COALESCE(w.quarantined, 0) AS workers_quarantined, COALESCE(c.running, 0) AS workers_running,
		greatest(COALESCE(w.workers, 0) - COALESCE(w.quarantined, 0) - COALESCE(c.running, 0), 0) AS workers_idle,
		COALESCE(c.created, 0) AS created, COALESCE(c.claimed, 0) AS claimed, COALESCE(c.completed, 0) AS completed,
		COALESCE(c.failed, 0) AS failed, COALESCE(c.exception, 0) AS exception, COALESCE(c.reasons, '{}') AS reasons,
		COALESCE(c.retried, 0) AS retried, COALESCE(c.expired_claims, 0) AS expired_claims,
		COALESCE(c.created_per_s, 0) AS created_per_s, COALESCE(c.claimed_per_s, 0) AS claimed_per_s, COALESCE(c.ended_per_s, 0) AS ended_per_s,
		c.wait_p50, c.wait_p95, c.wait_p99, c.run_p50, c.run_p95, c.run_p99,
		COALESCE(c.wait_histogram, '{}') AS wait_histogram, COALESCE(c.run_histogram, '{}') AS run_histogram,
		s.since, p.asked AS last_date_active, p.oldest,
		p.paused, COALESCE(g.settings - '{paused,claimTimeout,retainCompleted,retainFailed,policy}'::text[], '{}') AS limits,
		p.unattended
	FROM tq_internal.queue q
		LEFT JOIN tq_internal.queue_settings g ON g.queue = q.id
		CROSS JOIN tq_internal.count_state() AS s
		LEFT JOIN tq_internal.queue_counters() AS c ON c.queue = q.id
		JOIN tq_internal.attended_queue p ON p.queue = q.id
		LEFT JOIN (SELECT queue, count(*) AS workers, count(*) FILTER (WHERE quarantine_until > tq_internal.clock_now()) AS quarantined
			FROM tq_internal.worker WHERE expires > tq_internal.clock_now() GROUP BY queue) AS w ON w.queue = q.id;
CREATE VIEW tq_internal.visible_queue_stats AS
	SELECT o.* FROM tq_internal.all_queue_stats o
	WHERE tq_internal.has_scope('queue:pending-count:' || o.task_queue_id) AND tq_internal.has_scope('queue:claimed-count:' || o.task_queue_id)
		AND tq_internal.has_scope('queue:get-task-queue:' || o.task_queue_id);
SELECT tq_internal.make_rows('queue_stats', false);
CREATE VIEW tq.queue_stats AS SELECT * FROM tq_internal.visible_queue_stats();
COMMENT ON VIEW tq.queue_stats IS 'queues: how much is in them, what has happened since the last reset, how long runs wait and take; from counters in shared memory';
COMMENT ON COLUMN tq.queue_stats.task_queue_id IS 'name of the queue';
COMMENT ON COLUMN tq.queue_stats.source IS 'memory: the numbers of tasks are from counters; rebuilding: the maintenance worker is about to count for them, and rows are counted until then; tables: rows are counted, because tq is not preloaded, this is a standby, or tq.counted_queues is too low';
COMMENT ON COLUMN tq.queue_stats.pending IS 'runs that can be claimed';
COMMENT ON COLUMN tq.queue_stats.delayed IS 'runs that can be claimed later';
COMMENT ON COLUMN tq.queue_stats.blocked IS 'unscheduled tasks: they wait for others, or to be scheduled';
COMMENT ON COLUMN tq.queue_stats.running IS 'runs that a worker has';
COMMENT ON COLUMN tq.queue_stats.waiters IS 'sessions that wait for work';
COMMENT ON COLUMN tq.queue_stats.oldest_pending IS 'how long ago the first of the pending runs was scheduled';
COMMENT ON COLUMN tq.queue_stats.workers IS 'workers that were seen and have not expired';
COMMENT ON COLUMN tq.queue_stats.workers_quarantined IS 'those in quarantine';
COMMENT ON COLUMN tq.queue_stats.workers_running IS 'as running: a worker that has several runs counts for each';
COMMENT ON COLUMN tq.queue_stats.workers_idle IS 'workers that are neither, but not less than 0';
COMMENT ON COLUMN tq.queue_stats.created IS 'tasks created';
COMMENT ON COLUMN tq.queue_stats.claimed IS 'runs claimed';
COMMENT ON COLUMN tq.queue_stats.completed IS 'runs completed, the skipped ones included';
COMMENT ON COLUMN tq.queue_stats.failed IS 'runs failed, those that were retried included';
COMMENT ON COLUMN tq.queue_stats.exception IS 'runs that ended as exception, those that were retried included';
COMMENT ON COLUMN tq.queue_stats.reasons IS 'how many runs failed or ended as exception, by reason';
COMMENT ON COLUMN tq.queue_stats.retried IS 'runs that were followed by a retry';
COMMENT ON COLUMN tq.queue_stats.expired_claims IS 'claims that expired';
COMMENT ON COLUMN tq.queue_stats.created_per_s IS 'tasks created per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.claimed_per_s IS 'runs claimed per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.ended_per_s IS 'runs ended per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.wait_p50 IS 'median of the times from claimable to claimed';
COMMENT ON COLUMN tq.queue_stats.wait_p95 IS '95 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.wait_p99 IS '99 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.run_p50 IS 'median of the times from claimed to resolved';
COMMENT ON COLUMN tq.queue_stats.run_p95 IS '95 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.run_p99 IS '99 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.wait_histogram IS 'how many runs waited how long: a key is where a bucket ends, in milliseconds; each doubling has four buckets, and empty ones are left out';
COMMENT ON COLUMN tq.queue_stats.run_histogram IS 'the same for the times from claimed to resolved';
COMMENT ON COLUMN tq.queue_stats.since IS 'since when totals and histograms are counted; NULL: nothing was counted yet';
COMMENT ON COLUMN tq.queue_stats.last_date_active IS 'when a worker last claimed, waited or reclaimed';
COMMENT ON COLUMN tq.queue_stats.oldest IS 'since when the first of the pending runs has been scheduled';
COMMENT ON COLUMN tq.queue_stats.paused IS 'whether nothing is handed out until resume_queue()';
COMMENT ON COLUMN tq.queue_stats.limits IS 'the limits that it was set to';
COMMENT ON COLUMN tq.queue_stats.unattended IS 'whether a run has been pending for a minute, but no worker has asked since then, and no session waits; not while the queue is paused';

CREATE VIEW tq_internal.all_worker_overview AS
	SELECT q.task_queue_id, w.worker_group, w.worker_id,
		CASE WHEN w.quarantine_until > tq_internal.clock_now() THEN 'quarantined'
			WHEN c.running > 0 THEN 'running' ELSE 'idle' END AS state,
		COALESCE(c.running, 0) AS running, w.last_date_active, w.first_claim,
		CASE WHEN w.quarantine_until > tq_internal.clock_now() THEN w.quarantine_until END AS quarantine_until, w.capacity, w.version
	FROM tq_internal.worker w JOIN tq_internal.queue q ON q.id = w.queue
		LEFT JOIN (SELECT worker, count(*) AS running FROM tq_internal.running_run GROUP BY worker) AS c ON c.worker = w.id
	WHERE w.expires > tq_internal.clock_now() OR w.quarantine_until > tq_internal.clock_now() OR c.running > 0;
CREATE VIEW tq_internal.visible_worker_overview AS
	SELECT o.* FROM tq_internal.all_worker_overview o WHERE tq_internal.has_scope('queue:list-workers:' || o.task_queue_id);
SELECT tq_internal.make_rows('worker_overview', false);
CREATE VIEW tq.worker_overview AS SELECT * FROM tq_internal.visible_worker_overview();
COMMENT ON VIEW tq.worker_overview IS 'workers that were seen and have not expired, are in quarantine or have a run';
COMMENT ON COLUMN tq.worker_overview.task_queue_id IS 'queue of the worker';
COMMENT ON COLUMN tq.worker_overview.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.worker_overview.worker_id IS 'id of the worker';
COMMENT ON COLUMN tq.worker_overview.state IS 'quarantined, running or idle';
COMMENT ON COLUMN tq.worker_overview.running IS 'runs that it has';
COMMENT ON COLUMN tq.worker_overview.last_date_active IS 'when it last asked for work; recorded with a delay';
COMMENT ON COLUMN tq.worker_overview.first_claim IS 'when it was first seen';
COMMENT ON COLUMN tq.worker_overview.quarantine_until IS 'until when it is in quarantine; NULL: it is not';
COMMENT ON COLUMN tq.worker_overview.capacity IS 'how many tasks it works on at a time, as it was declared';
COMMENT ON COLUMN tq.worker_overview.version IS 'version of its program, as it was declared';

CREATE VIEW tq_internal.all_waiter_overview AS
	SELECT w.pid, CASE WHEN w.queue IS NULL THEN 'a task' ELSE COALESCE(q.task_queue_id, 'a new queue') END AS waits_for,
		a.query_start AS since, a.application_name, a.client_addr
	FROM tq_internal.waiters() w
		LEFT JOIN tq_internal.queue q ON q.id = w.queue
		LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.pid;
CREATE VIEW tq_internal.visible_waiter_overview AS
	SELECT o.pid, o.waits_for, CASE WHEN s.seen THEN o.since END AS since, CASE WHEN s.seen THEN o.application_name END AS application_name,
		CASE WHEN s.seen THEN o.client_addr END AS client_addr
	FROM tq_internal.all_waiter_overview o
		LEFT JOIN pg_stat_activity a ON a.pid = o.pid
		CROSS JOIN LATERAL (SELECT tq_internal.may_see_statements(a.usesysid) AS seen) AS s
	WHERE strpos(o.waits_for, '/') > 0 AND tq_internal.has_scope('queue:list-workers:' || o.waits_for);
SELECT tq_internal.make_rows('waiter_overview', false);
CREATE VIEW tq.waiter_overview AS SELECT * FROM tq_internal.visible_waiter_overview();
COMMENT ON VIEW tq.waiter_overview IS 'sessions that wait in claim_work(), wait_for_work(), wait_for_task() or wait_for_task_group()';
COMMENT ON COLUMN tq.waiter_overview.pid IS 'process of the session';
COMMENT ON COLUMN tq.waiter_overview.waits_for IS 'queue, or a task; a session that waits for several queues has a row for each, and for a pattern one for new queues';
COMMENT ON COLUMN tq.waiter_overview.since IS 'since when';
COMMENT ON COLUMN tq.waiter_overview.application_name IS 'name that the client gave to the session';
COMMENT ON COLUMN tq.waiter_overview.client_addr IS 'address of the client; NULL: a local one';

CREATE FUNCTION tq_internal.library_version() RETURNS text
	AS 'MODULE_PATHNAME', 'tq_library_version' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.library_version() IS 'version of the library that the server has loaded (src/util/version.c)';

CREATE VIEW tq.maintenance_overview AS
	SELECT a.*, (SELECT count(*) FROM tq_internal.postponed p WHERE p.step = a.step) AS postponed,
		tq_internal.library_version() AS library_version, (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'tq') AS sql_version
	FROM tq_internal.maintenance_activity() a;
COMMENT ON VIEW tq.maintenance_overview IS 'the maintenance worker of this database: its state, and for each step batches and tasks done since it was started, how late, failures, and tasks that are postponed';
COMMENT ON COLUMN tq.maintenance_overview.step IS 'a step of maintenance; turn: its cycles as a whole';
COMMENT ON COLUMN tq.maintenance_overview.state IS 'of the turn: running, off, unused or absent; of a step: ok or failing';
COMMENT ON COLUMN tq.maintenance_overview.batches IS 'batches done since the maintenance worker was started';
COMMENT ON COLUMN tq.maintenance_overview.tasks IS 'tasks changed in them';
COMMENT ON COLUMN tq.maintenance_overview.last_at IS 'when the last batch was done';
COMMENT ON COLUMN tq.maintenance_overview.last_late IS 'how late it was';
COMMENT ON COLUMN tq.maintenance_overview.max_late IS 'how late a batch has been at most';
COMMENT ON COLUMN tq.maintenance_overview.max_late_at IS 'when that was';
COMMENT ON COLUMN tq.maintenance_overview.failures IS 'how often the step has failed';
COMMENT ON COLUMN tq.maintenance_overview.failed_at IS 'when it failed last';
COMMENT ON COLUMN tq.maintenance_overview.error IS 'the last error';
COMMENT ON COLUMN tq.maintenance_overview.postponed IS 'tasks that the step is to try again later';
COMMENT ON COLUMN tq.maintenance_overview.library_version IS 'version of the library that the server has loaded';
COMMENT ON COLUMN tq.maintenance_overview.sql_version IS 'version of the extension in this database: where it is another, ALTER EXTENSION tq UPDATE is due';

CREATE VIEW tq_internal.all_postponed_overview AS
	SELECT COALESCE(t.task_id, c.task_id) AS task_id, p.step, p.failures, p.since, p.due AS next_attempt, p.error
	FROM tq_internal.postponed p LEFT JOIN tq_internal.task t ON t.id = p.task LEFT JOIN tq_internal.group_callback c ON c.id = p.task;
CREATE VIEW tq_internal.visible_postponed_overview AS
	SELECT o.* FROM tq_internal.all_postponed_overview o
	WHERE EXISTS (SELECT FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue
			WHERE t.task_id = o.task_id AND tq_internal.has_right('status', o.task_id::text, q.task_queue_id))
		OR EXISTS (SELECT FROM tq_internal.group_callback c WHERE c.task_id = o.task_id AND tq_internal.is_own(pg_get_userbyid(c.role)));
SELECT tq_internal.make_rows('postponed_overview', false);
CREATE VIEW tq.postponed_overview AS SELECT * FROM tq_internal.visible_postponed_overview();
COMMENT ON VIEW tq.postponed_overview IS 'tasks for which a step of maintenance failed: how often, when it is retried, and the last error';
COMMENT ON COLUMN tq.postponed_overview.task_id IS 'id of the task; NULL: it was deleted';
COMMENT ON COLUMN tq.postponed_overview.step IS 'step of maintenance that failed for it';
COMMENT ON COLUMN tq.postponed_overview.failures IS 'how often';
COMMENT ON COLUMN tq.postponed_overview.since IS 'since when';
COMMENT ON COLUMN tq.postponed_overview.next_attempt IS 'when the step is tried again';
COMMENT ON COLUMN tq.postponed_overview.error IS 'the last error';

CREATE VIEW tq_internal.all_binding_overview AS
	SELECT channel, tq_internal.exchange_name(exchange) AS exchange, pattern FROM tq_internal.binding
	UNION ALL
	SELECT 'tq_' || replace(tq_internal.exchange_name(e), '-', '_'), tq_internal.exchange_name(e), '#'
	FROM generate_series(1, 12) AS e WHERE e NOT IN (SELECT exchange FROM tq_internal.disabled_channel);
CREATE VIEW tq_internal.visible_binding_overview AS
	SELECT o.* FROM tq_internal.all_binding_overview o WHERE tq_internal.has_scope('queue:bind:' || o.channel);
SELECT tq_internal.make_rows('binding_overview', false);
CREATE VIEW tq.binding_overview AS SELECT * FROM tq_internal.visible_binding_overview();
COMMENT ON VIEW tq.binding_overview IS 'every channel that is bound to an exchange, including the default channels';
COMMENT ON COLUMN tq.binding_overview.channel IS 'channel of NOTIFY';
COMMENT ON COLUMN tq.binding_overview.exchange IS 'exchange whose messages it gets';
COMMENT ON COLUMN tq.binding_overview.pattern IS 'pattern of their routing keys';

CREATE VIEW tq_internal.all_cron_overview AS
	SELECT c.name, pg_get_userbyid(c.role)::text AS owner, c.schedule, tq_internal.cron_time_zone() AS time_zone, f.next_fires,
		c.task_queue_id, c.payload, c.options, c.overlap,
		CASE WHEN c.paused THEN false ELSE j.active END AS active,
		c.last_scheduled, c.last_fired, c.last_task AS last_task_id, t.state AS last_state, c.last_skipped,
		j.job_id, j.status AS log_status, j.message AS log_message, j.started AS log_started, j.finished AS log_finished, f.fault
	FROM tq_internal.cron c
		LEFT JOIN tq_internal.cron_faults() f ON f.name = c.name AND f.role = c.role
		LEFT JOIN tq_internal.cron_jobs() j ON j.name = c.name AND j.role = pg_get_userbyid(c.role)
		LEFT JOIN LATERAL (SELECT o.state FROM tq_internal.all_task_overview o WHERE o.task_id = c.last_task OFFSET 0) t ON true;	-- not hashed
CREATE VIEW tq_internal.visible_cron_overview AS
	SELECT o.* FROM tq_internal.all_cron_overview o WHERE tq_internal.is_own(o.owner);
SELECT tq_internal.make_rows('cron_overview', false);
CREATE VIEW tq.cron_overview AS SELECT * FROM tq_internal.visible_cron_overview();
COMMENT ON VIEW tq.cron_overview IS 'recurring tasks: when they fire, what the last firing has left, and what pg_cron''s log says';
COMMENT ON COLUMN tq.cron_overview.name IS 'name of the recurring task';
COMMENT ON COLUMN tq.cron_overview.owner IS 'role with whose rights it creates tasks';
COMMENT ON COLUMN tq.cron_overview.schedule IS 'when it fires, as pg_cron reads it';
COMMENT ON COLUMN tq.cron_overview.time_zone IS 'time zone of the schedule: cron.timezone, and GMT before pg_cron 1.5, which knows no other; NULL: pg_cron is not preloaded';
COMMENT ON COLUMN tq.cron_overview.next_fires IS 'the next three times at which it fires; of a schedule in seconds, if it has fired now; NULL: it is paused, or pg_cron is not preloaded';
COMMENT ON COLUMN tq.cron_overview.task_queue_id IS 'queue of its tasks';
COMMENT ON COLUMN tq.cron_overview.payload IS 'payload of its tasks, with fields that are replaced';
COMMENT ON COLUMN tq.cron_overview.options IS 'further arguments of enqueue';
COMMENT ON COLUMN tq.cron_overview.overlap IS 'what a firing does while the last task is unresolved: allow, skip or replace';
COMMENT ON COLUMN tq.cron_overview.active IS 'whether it fires; NULL: it has no job in this database';
COMMENT ON COLUMN tq.cron_overview.last_scheduled IS 'minute, or second, for which it has fired last';
COMMENT ON COLUMN tq.cron_overview.last_fired IS 'when it has created a task last';
COMMENT ON COLUMN tq.cron_overview.last_task_id IS 'that task';
COMMENT ON COLUMN tq.cron_overview.last_state IS 'state of that task; NULL: it was deleted';
COMMENT ON COLUMN tq.cron_overview.last_skipped IS 'when a firing was skipped last, because the task before it was unresolved';
COMMENT ON COLUMN tq.cron_overview.job_id IS 'its job in pg_cron';
COMMENT ON COLUMN tq.cron_overview.log_status IS 'status of the last entry of pg_cron''s log about the job: succeeded or failed, or how far it is';
COMMENT ON COLUMN tq.cron_overview.log_message IS 'message of that entry: an error, if it has failed';
COMMENT ON COLUMN tq.cron_overview.log_started IS 'when that run of the job began';
COMMENT ON COLUMN tq.cron_overview.log_finished IS 'when it ended';
COMMENT ON COLUMN tq.cron_overview.fault IS 'why it creates no task: its owner was dropped, cannot log in, or lacks scopes; NULL: it does';

CREATE VIEW tq_internal.all_subscription_overview AS
	SELECT s.name, array_agg(tq_internal.exchange_name(b.exchange) || ' ' || b.pattern ORDER BY b.exchange, b.pattern) AS bindings,
		s.acked_id, t.last_id, s.lost_before, s.created, s.acked_at,
		(SELECT k.published FROM tq_internal.tick k WHERE k.last_id > s.acked_id AND k.messages > 0 ORDER BY k.last_id LIMIT 1) AS oldest_unread, s.creator
	FROM tq_internal.subscription s
		JOIN tq_internal.subscription_binding b ON b.name = s.name
		CROSS JOIN (SELECT tq_internal.published_id() AS last_id) AS t
	GROUP BY s.name, t.last_id;
CREATE VIEW tq_internal.visible_subscription_overview AS
	SELECT o.* FROM tq_internal.all_subscription_overview o WHERE tq_internal.has_scope('queue:subscribe:' || o.name) OR tq_internal.is_own(o.creator);
SELECT tq_internal.make_rows('subscription_overview', false);
CREATE VIEW tq.subscription_overview AS SELECT * FROM tq_internal.visible_subscription_overview();
COMMENT ON VIEW tq.subscription_overview IS 'durable subscriptions: up to which id each has acknowledged, and what it has lost (lost_before)';
COMMENT ON COLUMN tq.subscription_overview.name IS 'name of the subscription';
COMMENT ON COLUMN tq.subscription_overview.bindings IS 'exchanges and patterns';
COMMENT ON COLUMN tq.subscription_overview.acked_id IS 'messages up to this id are acknowledged';
COMMENT ON COLUMN tq.subscription_overview.last_id IS 'id of the last message that was published';
COMMENT ON COLUMN tq.subscription_overview.lost_before IS 'messages with lower ids were dropped before they were acknowledged; NULL: none';
COMMENT ON COLUMN tq.subscription_overview.created IS 'when it was made';
COMMENT ON COLUMN tq.subscription_overview.acked_at IS 'when it last acknowledged';
COMMENT ON COLUMN tq.subscription_overview.oldest_unread IS 'when the first message that is not acknowledged was published';
COMMENT ON COLUMN tq.subscription_overview.creator IS 'role that had logged in when it was made, for tq.max_subscriptions';

DROP FUNCTION tq_internal.make_rows(text, bool);

CREATE VIEW tq.audit AS
	SELECT at, id, session_role, role, client_ids, function, task_ids, run_ids, arguments FROM tq_internal.audit;
COMMENT ON VIEW tq.audit IS 'audit trail: which role made which call, as tq.audit says, kept for tq.audit_retention';
COMMENT ON COLUMN tq.audit.at IS 'when the call ended';
COMMENT ON COLUMN tq.audit.id IS 'order of writing';
COMMENT ON COLUMN tq.audit.session_role IS 'role that had logged in, or that of SET SESSION AUTHORIZATION';
COMMENT ON COLUMN tq.audit.role IS 'effective role, whose scopes counted: that of SET ROLE, or the owner of a SECURITY DEFINER function';
COMMENT ON COLUMN tq.audit.client_ids IS 'clientId of the credentials of claims that the call used, given or assumed; NULL: none';
COMMENT ON COLUMN tq.audit.function IS 'function of schema tq that was called';
COMMENT ON COLUMN tq.audit.task_ids IS 'tasks that the call created, claimed or changed, at most 1000 in a row; NULL: it names none, but a group, a queue or something else';
COMMENT ON COLUMN tq.audit.run_ids IS 'the run of each of them; NULL: the call is about no run in particular';
COMMENT ON COLUMN tq.audit.arguments IS 'the other arguments that say what it was about, by name: group, queue, worker, channel, role and scopes of a grant; times in UTC, intervals in seconds';

CREATE VIEW tq_internal.claimable_task AS
	SELECT t.task_id, p.*
	FROM tq_internal.task t JOIN tq_internal.pending p ON p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id
	UNION ALL
	SELECT t.task_id, p.*
	FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task
	WHERE p.seq <> p.task;
COMMENT ON VIEW tq_internal.claimable_task IS 'tasks that can be claimed, with their position in the queue';

CREATE FUNCTION tq_internal.shorten(given text, size int) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN length(s) > size THEN left(s, size - 3) || '...' ELSE s END
		FROM btrim(regexp_replace(given, '\s+', ' ', 'g')) AS s;
	END;
COMMENT ON FUNCTION tq_internal.shorten(text, int) IS 'a text in one line of at most so many characters, for why() and health()';

CREATE FUNCTION tq_internal.local_time(given timestamptz) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT to_char(given, 'YYYY-MM-DD HH24:MI:SSOF');
	END;
COMMENT ON FUNCTION tq_internal.local_time(timestamptz) IS 'a time in the time zone of the session with its offset, in 22 characters, 25 if that has minutes, for why() and health()';

CREATE VIEW tq_internal.lock_holder AS
	SELECT t.task_id, l.pid, a.xact_start AS since, CASE WHEN tq_internal.may_see_statements(a.usesysid) THEN a.query END AS query
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT u.xmax FROM tq_internal.unscheduled u WHERE u.task = t.id
			UNION ALL SELECT p.xmax FROM tq_internal.pending p WHERE p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id
			UNION ALL SELECT p.xmax FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task
			UNION ALL SELECT d.xmax FROM tq_internal.delayed d WHERE d.task = t.id
			UNION ALL SELECT r.xmax FROM tq_internal.run r WHERE r.task = t.id) AS x
		JOIN pg_catalog.pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = x.xmax AND l.granted AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()
		LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid;
COMMENT ON VIEW tq_internal.lock_holder IS 'sessions whose open transactions have locked or changed a task; query is NULL if the caller may not see it';

CREATE FUNCTION tq_internal.rate_until(queue int) RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tq_rate_until' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.rate_until(int) IS 'until when the claims of the interval of a queue are used up; NULL: they are not, or it is not known';

CREATE VIEW tq_internal.limited_task AS
	SELECT p.task_id, p.queue, q.task_queue_id, s.settings
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue JOIN tq_internal.queue_settings s ON s.queue = p.queue;
COMMENT ON VIEW tq_internal.limited_task IS 'tasks that can be claimed, of queues with settings';

CREATE FUNCTION tq_internal.may_see(task_id tq.slugid) RETURNS bool LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT coalesce(bool_or(tq_internal.has_right('status', t.task_id::text, q.task_queue_id)), true)
			FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue WHERE t.task_id = may_see.task_id;
	END;
COMMENT ON FUNCTION tq_internal.may_see(tq.slugid) IS 'whether the caller may see the status of a task; true of one that does not exist';

-- What unscheduled tasks wait for, at any depth.  OFFSET has each task looked up by its
-- indexes, however many rows the planner expects.
CREATE FUNCTION tq_internal.unscheduled_above(tasks bigint[], seen_only bool, max int) RETURNS SETOF bigint LANGUAGE sql STABLE
	BEGIN ATOMIC
		WITH RECURSIVE w (task) AS (
			SELECT unnest(tasks)
			UNION
			SELECT n.task FROM w CROSS JOIN LATERAL (SELECT u.task FROM tq_internal.task t
					CROSS JOIN LATERAL unnest(t.dependencies) AS d (required)
					JOIN tq_internal.task r ON r.task_id = d.required
					JOIN tq_internal.unscheduled u ON u.task = r.id
				WHERE t.id = w.task AND (NOT seen_only OR tq_internal.may_see(d.required)) OFFSET 0) AS n)
		SELECT w.task FROM w LIMIT max;
	END;
COMMENT ON FUNCTION tq_internal.unscheduled_above(bigint[], bool, int) IS 'these tasks, and the unscheduled ones that they wait for at any depth, or those that the caller may see; at most so many';

CREATE TYPE tq_internal.root_cause AS (dependent bigint, required tq.slugid, name text, state text, is_final bool);
COMMENT ON TYPE tq_internal.root_cause IS 'what an unscheduled task waits for: the task itself, or one that is not unscheduled; state NULL: it was deleted; is_final: it never meets the dependency, unless it is run again';

-- A dependency is met by a run from from_run on.  One on a task that was deleted may have
-- been: the counter of the task says how many are not, and those of tasks that exist are known.
CREATE FUNCTION tq_internal.root_causes(tasks bigint[]) RETURNS SETOF tq_internal.root_cause LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT w.task, n.required, n.name, n.state, n.state IS NULL OR n.state IN ('failed', 'exception')
		FROM unnest(tasks) AS w (task)
			JOIN tq_internal.unscheduled o ON o.task = w.task
			CROSS JOIN LATERAL (SELECT CASE WHEN o.stripes = 0 THEN o.unmet
				ELSE (SELECT sum(k.unmet) FROM tq_internal.dependency_counter k WHERE k.task = o.task) END AS unmet) AS k
			CROSS JOIN LATERAL (
				SELECT d.required, r.metadata ->> 'name' AS name, r.id IS NULL AS is_gone, u.task <> o.task AS is_above, count(r.id) OVER () AS known,
					CASE WHEN u.task IS NOT NULL THEN 'unscheduled' WHEN f.task IS NOT NULL THEN tq_internal.state_name(l.state)
						WHEN r.id IS NULL THEN NULL
						WHEN l.state = 2 AND NOT EXISTS (SELECT FROM tq_internal.delayed y WHERE y.task = r.id) THEN 'running' ELSE 'pending' END AS state
				FROM tq_internal.task t
					CROSS JOIN LATERAL unnest(t.dependencies) AS d (required)
					LEFT JOIN tq_internal.task r ON r.task_id = d.required
					LEFT JOIN tq_internal.unscheduled u ON u.task = r.id
					LEFT JOIN tq_internal.failure f ON f.task = r.id
					LEFT JOIN tq_internal.dependency e ON e.required = r.id AND e.dependent = t.id
					LEFT JOIN LATERAL (SELECT * FROM tq_internal.run l WHERE l.task = r.id ORDER BY l.task DESC, l.run_id DESC LIMIT 1) AS l ON true
					LEFT JOIN tq_internal.policy y ON y.id = r.policy
				WHERE t.id = w.task
					AND NOT EXISTS (SELECT FROM tq_internal.run m WHERE m.task = r.id AND m.run_id >= e.from_run AND m.state = 3)
					AND (f.task IS NULL OR NOT COALESCE(l.run_id >= e.from_run AND (t.all_resolved
						OR (y.policy IS NOT NULL AND tq_internal.is_tolerated(y.policy, l.reason_resolved))), false))
				OFFSET 0) AS n
		WHERE n.is_above IS NOT TRUE AND (NOT n.is_gone OR k.unmet > n.known);
	END;
COMMENT ON FUNCTION tq_internal.root_causes(bigint[]) IS 'what these unscheduled tasks wait for that is not unscheduled itself';

-- A task can never start if one that it waits for never ends as is required, or can never
-- start.  One that waits for a call of schedule_task() can.
CREATE TYPE tq_internal.block AS (blocked bool, blocked_by text[]);
COMMENT ON TYPE tq_internal.block IS 'whether none of some unscheduled tasks can ever start; NULL: they wait for too many to find out; and up to ten tasks that block them, or why that is not known';

CREATE FUNCTION tq_internal.block_of(tasks bigint[], max int DEFAULT 20000) RETURNS tq_internal.block LANGUAGE plpgsql STABLE AS $$
DECLARE
	above bigint[];
	causes tq_internal.root_cause[];
	block tq_internal.block;
BEGIN
	IF cardinality(tasks) <= max THEN
		above := ARRAY(SELECT tq_internal.unscheduled_above(tasks, false, max + 1));
	END IF;
	IF above IS NULL OR cardinality(above) > max THEN
		block.blocked_by := ARRAY[format('not known: more than %s unscheduled tasks', max)];
		RETURN block;
	END IF;
	causes := ARRAY(SELECT c FROM tq_internal.root_causes(above) AS c WHERE c.is_final);
	WITH RECURSIVE a AS MATERIALIZED (SELECT unnest(above) AS task), stuck (task) AS (
		SELECT c.dependent FROM unnest(causes) AS c
		UNION
		SELECT n.dependent FROM stuck CROSS JOIN LATERAL (SELECT e.dependent, e.from_run FROM tq_internal.dependency e WHERE e.required = stuck.task OFFSET 0) AS n
		WHERE CASE WHEN n.dependent IN (SELECT a.task FROM a) THEN	-- hashed
			NOT EXISTS (SELECT FROM tq_internal.run m WHERE m.task = stuck.task AND m.run_id >= n.from_run AND m.state = 3) END)
	SELECT NOT EXISTS (SELECT unnest(tasks) EXCEPT SELECT task FROM stuck) INTO block.blocked;
	IF block.blocked THEN
		block.blocked_by := ARRAY(SELECT c.required::text FROM (SELECT DISTINCT c.required FROM unnest(causes) AS c) AS c
			WHERE tq_internal.may_see(c.required) ORDER BY 1 LIMIT 10);
	END IF;
	RETURN block;
END
$$;
COMMENT ON FUNCTION tq_internal.block_of(bigint[], int) IS 'whether none of these unscheduled tasks can ever start, and what blocks them; not known if they wait for more than max';

CREATE FUNCTION tq_internal.block_of_group(group_number bigint, task_group_id tq.slugid, max int DEFAULT 20000) RETURNS tq_internal.block LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN tq_internal.block_of(ARRAY(SELECT u.task FROM tq_internal.members(group_number, task_group_id) AS m
		JOIN tq_internal.unscheduled u ON u.task = m.id LIMIT max + 1), max);
END
$$;
COMMENT ON FUNCTION tq_internal.block_of_group(bigint, tq.slugid, int) IS 'the same of the unscheduled tasks of a group';

-- Those that the task depends on itself have rows of their own.
CREATE FUNCTION tq_internal.roots_of(task bigint) RETURNS TABLE (detail text, advice text) LANGUAGE plpgsql STABLE AS $$
DECLARE
	above bigint[] := ARRAY(SELECT tq_internal.unscheduled_above(ARRAY[task], true, 20001));
BEGIN
	IF cardinality(above) > 20000 THEN
		RETURN QUERY SELECT 'it waits for more than 20000 unscheduled tasks', 'see tq.failure_overview';
		RETURN;
	END IF;
	RETURN QUERY
	WITH root AS MATERIALIZED (
		SELECT c.required, c.name, c.state, bool_or(c.is_final) AS is_final, min(c.dependent) AS dependent
		FROM tq_internal.root_causes(above) AS c GROUP BY c.required, c.name, c.state HAVING NOT bool_or(c.dependent = roots_of.task)
	), seen AS MATERIALIZED (SELECT * FROM root r WHERE tq_internal.may_see(r.required))
	(SELECT format('at the root: %s: %s', coalesce(tq_internal.shorten(s.name, 22), s.required::text), coalesce(s.state, 'deleted')),
		CASE WHEN s.state IN ('failed', 'exception') THEN format('SELECT tq.rerun_task(%L)', s.required)
			WHEN s.state IS NULL THEN format('SELECT tq.schedule_task(%L)', (SELECT t.task_id FROM tq_internal.task t WHERE t.id = s.dependent))
			WHEN s.state = 'unscheduled' THEN format('SELECT tq.schedule_task(%L)', s.required)
			ELSE format('SELECT * FROM tq.why(%L)', s.required) END
	FROM seen s ORDER BY s.is_final DESC, s.required LIMIT 10)
	UNION ALL
	SELECT format('in all %s tasks are at the root; 10 are shown', count(*)), 'see tq.failure_overview' FROM seen HAVING count(*) > 10;
END
$$;
COMMENT ON FUNCTION tq_internal.roots_of(bigint) IS 'what an unscheduled task waits for beyond what it depends on itself, for why()';

-- Why a task is where it is: each branch finds one reason, and what to do.  In
-- psql the rows have at most 120 columns: a reason has up to 14 characters, a
-- detail 50, an advice 49.
CREATE VIEW tq_internal.task_reason AS
	SELECT c.task_id, 10 AS rank, 'unscheduled' AS reason,
		CASE WHEN NOT s.seen THEN format('it depends on %s: not visible', o.required_task_id)
			WHEN o.required_task_id = c.task_id THEN 'it depends on itself, so it waits for a call'
			WHEN o.state IS NULL THEN format('it depends on %s, deleted', o.required_task_id)
			ELSE format('it depends on %s: %s', COALESCE(tq_internal.shorten(o.required_name, 22), o.required_task_id::text), o.state) END AS detail,
		CASE WHEN NOT s.seen THEN 'ask for the right to depend on it'
			WHEN o.required_task_id = c.task_id OR o.state IS NULL THEN format('SELECT tq.schedule_task(%L)', c.task_id)
			WHEN o.state IN ('failed', 'exception') THEN format('SELECT tq.rerun_task(%L)', o.required_task_id)
			ELSE format('SELECT * FROM tq.why(%L)', o.required_task_id) END AS advice
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.all_dependency_overview d WHERE d.task_id = c.task_id AND NOT d.met
			ORDER BY d.required_task_id <> c.task_id AND d.state NOT IN ('failed', 'exception') NULLS FIRST, d.required_task_id LIMIT 10) AS o
		CROSS JOIN LATERAL (SELECT tq_internal.may_see(o.required_task_id) AS seen OFFSET 0) AS s
	UNION ALL
	SELECT c.task_id, 10, 'unscheduled', format('in all %s are not met; 10 are shown', count(*)), 'see tq.dependency_results()'
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
		JOIN tq_internal.all_dependency_overview o ON o.task_id = c.task_id
	WHERE NOT o.met
	GROUP BY c.task_id HAVING count(*) > 10
	UNION ALL
	SELECT c.task_id, 11, 'unscheduled', 'it can go on without what failed', format('SELECT tq.schedule_task(%L)', c.task_id)
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
	WHERE EXISTS (SELECT FROM tq_internal.all_dependency_overview o WHERE o.task_id = c.task_id AND NOT o.met AND o.state IN ('failed', 'exception')
		AND tq_internal.may_see(o.required_task_id))
	UNION ALL
	SELECT c.task_id, 12, 'unscheduled', 'each task that it depends on is resolved', format('SELECT tq.schedule_task(%L)', c.task_id)
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
	WHERE NOT EXISTS (SELECT FROM tq_internal.all_dependency_overview o WHERE o.task_id = c.task_id AND NOT o.met)
	UNION ALL
	SELECT c.task_id, 13, 'unscheduled', r.detail, r.advice
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task CROSS JOIN LATERAL tq_internal.roots_of(u.task) AS r
	UNION ALL
	SELECT t.task_id, 20, 'delayed', format('it cannot be claimed before %s', tq_internal.local_time(d.visible_at)), 'wait until then'
	FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task
	WHERE d.visible_at < 'infinity'
	UNION ALL
	SELECT t.task_id, 21, 'serial key', format('behind %s of key %s', f.task_id, tq_internal.shorten(m.key, 12)), format('SELECT * FROM tq.why(%L)', f.task_id)
	FROM tq_internal.task t JOIN tq_internal.gate_member m ON m.task = t.id AND m.kind = 1 AND m.state = 1
		CROSS JOIN LATERAL (SELECT o.task FROM tq_internal.gate_member o	-- 0: admitted, 1: waits
			WHERE o.queue = m.queue AND o.kind = 1 AND o.key = m.key AND o.state IN (0, 1) AND (o.state = 0 OR o.task < m.task)
			ORDER BY o.state, o.priority DESC, o.task LIMIT 1) AS o
		JOIN tq_internal.task f ON f.id = o.task
	UNION ALL
	SELECT t.task_id, 22, 'key at limit', format('%s run or are next: key %s', a.n, tq_internal.shorten(m.key, 18)), 'wait, or raise its limits by tq.set_queue()'
	FROM tq_internal.task t JOIN tq_internal.gate_member m ON m.task = t.id AND m.kind = 2 AND m.state IN (1, 4)
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM tq_internal.gate_member o
			WHERE o.queue = m.queue AND o.kind = 2 AND o.key = m.key AND o.state = 0) AS a
	UNION ALL
	SELECT p.task_id, 23, 'paused', format('queue %s is paused', tq_internal.shorten(p.task_queue_id, 33)), format('SELECT tq.resume_queue(%L)', tq_internal.shorten(p.task_queue_id, 23))
	FROM tq_internal.limited_task p
	WHERE (p.settings -> 'paused')::bool
	UNION ALL
	SELECT p.task_id, 24, 'queue at limit', format('%s run in %s', c.running, tq_internal.shorten(p.task_queue_id, 25)), 'wait, or raise concurrentLimit'
	FROM tq_internal.limited_task p
		CROSS JOIN LATERAL (SELECT c.running FROM tq_internal.queue_counters() AS c WHERE c.queue = p.queue OFFSET 0) AS c
	WHERE c.running >= nullif((p.settings -> 'concurrentLimit')::int, 0)
	UNION ALL
	SELECT p.task_id, 25, 'rate used up', format('no claim before %s', tq_internal.local_time(r.until)), 'wait, or raise rateCount'
	FROM tq_internal.limited_task p CROSS JOIN LATERAL (SELECT tq_internal.rate_until(p.queue) AS until) AS r
	WHERE r.until > tq_internal.clock_now()
	UNION ALL
	SELECT h.task_id, 30, 'locked', format('by process %s', h.pid) || COALESCE(' since ' || tq_internal.local_time(h.since), ''),
		format('wait, or pg_terminate_backend(%s)', h.pid)
	FROM tq_internal.lock_holder h
	UNION ALL
	SELECT h.task_id, 31, 'locked', 'query: ' || tq_internal.shorten(h.query, 43), 'wait for the end of its transaction'
	FROM tq_internal.lock_holder h
	WHERE h.query <> ''
	UNION ALL
	SELECT p.task_id, 40, 'no worker', COALESCE('no worker has asked since ' || tq_internal.local_time(a.asked), 'no worker has asked its queue for work'),
		format('start one, or correct queue %s', tq_internal.shorten(a.task_queue_id, 21))
	FROM tq_internal.claimable_task p JOIN tq_internal.attended_queue a ON a.queue = p.queue
	WHERE NOT a.is_attended
	UNION ALL
	SELECT p.task_id, 50, 'quarantine', format('workers: %s; first until %s', w.workers, tq_internal.local_time(w.until)),
		'start another, or end it by quarantine_worker()'
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue
		CROSS JOIN LATERAL (SELECT count(*) AS workers, min(w.quarantine_until) AS until,
				bool_and(w.quarantine_until IS NOT NULL AND w.quarantine_until > tq_internal.clock_now()) AS barred
			FROM tq_internal.worker w WHERE w.queue = p.queue AND w.expires > tq_internal.clock_now()) AS w
	WHERE w.barred
	UNION ALL
	SELECT p.task_id, 60, CASE WHEN b.n = 0 THEN 'next' ELSE 'behind others' END,
		CASE WHEN b.n = 0 THEN format('it is the first of queue %s', tq_internal.shorten(q.task_queue_id, 25))
			ELSE format('%s%s before it in %s', CASE WHEN b.n > 10000 THEN 'more than ' ELSE '' END, least(b.n, 10000), tq_internal.shorten(q.task_queue_id, 21)) END,
		CASE WHEN b.n > 0 THEN 'more workers, or tq.change_task_priority()'
			WHEN NOT q.is_attended THEN 'start a worker' ELSE format('wait for the next claim; sessions that wait: %s', q.waiters) END
	FROM tq_internal.claimable_task p JOIN tq_internal.attended_queue q ON q.queue = p.queue
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM tq_internal.pending o
			WHERE o.queue = p.queue AND (o.priority > p.priority OR (o.priority = p.priority AND o.seq < p.seq)) LIMIT 10001) AS o) AS b
	UNION ALL
	SELECT t.task_id, 70, CASE WHEN r.taken_until > tq_internal.clock_now() THEN 'claimed' ELSE 'claim expired' END,
		format('by %s until %s', tq_internal.shorten(r.worker_group || '/' || r.worker_id, 18), tq_internal.local_time(r.taken_until)),
		CASE WHEN r.taken_until > tq_internal.clock_now() THEN format('wait for its report on run %s', r.run_id)
			ELSE 'maintenance is late: see tq.health()' END
	FROM tq_internal.task t JOIN tq_internal.named_run r ON r.task = t.id
	WHERE r.state = 2
	UNION ALL
	SELECT t.task_id, 80, 'past deadline', format('its deadline was %s', tq_internal.local_time(COALESCE(t.effective_deadline, t.deadline))),
		'maintenance is late: see tq.health()'
	FROM tq_internal.task t
	WHERE COALESCE(t.effective_deadline, t.deadline) <= tq_internal.clock_now()
		AND (EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
			OR EXISTS (SELECT FROM tq_internal.pending p WHERE p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id)
			OR EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
			OR EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id)
			OR EXISTS (SELECT FROM tq_internal.run r WHERE r.task = t.id AND r.state = 2))
	UNION ALL
	SELECT t.task_id, 90, 'postponed', format('step %s has failed %s times', p.step, p.failures),
		'it is tried again at ' || tq_internal.local_time(p.due)
	FROM tq_internal.postponed p JOIN tq_internal.task t ON t.id = p.task
	UNION ALL
	SELECT t.task_id, 91, 'postponed', 'error: ' || tq_internal.shorten(p.error, 43), 'correct the cause'
	FROM tq_internal.postponed p JOIN tq_internal.task t ON t.id = p.task
	UNION ALL
	SELECT t.task_id, 100, tq_internal.state_name(r.state),
		format('run %s: %s, %s', r.run_id, tq_internal.reason_resolved_name(r.reason_resolved), tq_internal.local_time(r.resolved)),
		CASE WHEN r.state = 3 THEN 'nothing: it is over'
			WHEN COALESCE(t.effective_deadline, t.deadline) < tq_internal.clock_now() THEN 'call tq.rerun_task() with a new deadline'
			ELSE format('SELECT tq.rerun_task(%L)', t.task_id) END
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = t.id ORDER BY r.run_id DESC LIMIT 1) AS r
	WHERE r.state > 2
		AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id)
	UNION ALL
	SELECT t.task_id, 101, tq_internal.state_name(r.state),
		'error: ' || tq_internal.shorten(left(COALESCE(e.error ->> 'message', e.error #>> '{}'), 1000), 43), 'see its error in tq.run_overview'
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = t.id ORDER BY r.run_id DESC LIMIT 1) AS r
		JOIN tq_internal.run_detail e ON r.has_detail AND e.task = r.task AND e.run_id = r.run_id
	WHERE r.state > 3 AND e.error IS NOT NULL
		AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id);
COMMENT ON VIEW tq_internal.task_reason IS 'reasons why a task does not move, for tq.why()';

CREATE FUNCTION tq.why(task_id tq.slugid) RETURNS TABLE (reason text, detail text, advice text)
	AS 'MODULE_PATHNAME', 'tq_why' LANGUAGE C;
COMMENT ON FUNCTION tq.why(tq.slugid) IS 'why a task does not move, or how it ended; and what to do';
