-- ---------------------------------------------------------------------------
-- Pictures of a task group (doc/spec/taskcluster.md 2.7)
--
-- A picture shows one moment: a body reads all rows by one snapshot, and the
-- library tq_picture (src/extras/picture) draws them.
-- ---------------------------------------------------------------------------

CREATE TYPE tq_internal.drawn_task AS (
	task bigint, name text, state smallint, reason smallint, run_id smallint, is_delayed bool, progress text, resolved timestamptz,
	queue int, scheduled timestamptz, started timestamptz);
COMMENT ON TYPE tq_internal.drawn_task IS 'task of a group that is drawn, with its last run, in words the progress of a running one';

CREATE TYPE tq_internal.drawn_run AS (
	task bigint, run_id smallint, state smallint, reason smallint, claimable timestamptz, started timestamptz, resolved timestamptz, worker text);
COMMENT ON TYPE tq_internal.drawn_run IS 'run that is drawn; of one that was not claimed, started and worker are NULL';

CREATE TYPE tq_internal.drawn_fault AS (
	task_id text, name text, task_queue_id text, state smallint, reason smallint, runs int, resolved timestamptz, worker text, error text);
COMMENT ON TYPE tq_internal.drawn_fault IS 'task that failed, in a report';

CREATE TYPE tq_internal.critical_task AS (place int, task bigint, state smallint, ends timestamptz, slack interval);
COMMENT ON TYPE tq_internal.critical_task IS 'task of the critical path of a group: when it ended or is expected to, and how much later that is than the end of the next';

-- ---- what draws ----

CREATE FUNCTION tq_internal.draw_tree(title text, max_nodes int, tasks tq_internal.drawn_task[], dependencies bigint[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_tree' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.draw_tree(text, int, tq_internal.drawn_task[], bigint[]) IS 'a graph for a terminal';

CREATE FUNCTION tq_internal.draw_dot(title text, max_nodes int, tasks tq_internal.drawn_task[], dependencies bigint[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_dot' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.draw_dot(text, int, tq_internal.drawn_task[], bigint[]) IS 'a graph for Graphviz';

CREATE FUNCTION tq_internal.draw_mermaid(title text, max_nodes int, tasks tq_internal.drawn_task[], dependencies bigint[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_mermaid' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.draw_mermaid(text, int, tq_internal.drawn_task[], bigint[]) IS 'a graph for Mermaid';

CREATE FUNCTION tq_internal.draw_svg(title text, max_nodes int, tasks tq_internal.drawn_task[], dependencies bigint[], link text, ids text[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_svg' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.draw_svg(text, int, tq_internal.drawn_task[], bigint[], text, text[]) IS 'a graph as an SVG, whose boxes lead to the link with the ids of the tasks';

CREATE FUNCTION tq_internal.draw_gantt(
	title text, max_rows int, tasks tq_internal.drawn_task[], dependencies bigint[], runs tq_internal.drawn_run[], now timestamptz, path bigint[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_gantt' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.draw_gantt(text, int, tq_internal.drawn_task[], bigint[], tq_internal.drawn_run[], timestamptz, bigint[]) IS
	'runs by worker and time, as an SVG; those of the tasks of the path are marked';

CREATE FUNCTION tq_internal.draw_report(
	title text, max_nodes int, sealed timestamptz, outcome text, tasks tq_internal.drawn_task[], dependencies bigint[],
	runs tq_internal.drawn_run[], faults tq_internal.drawn_fault[], now timestamptz, path bigint[]) RETURNS text
	AS '$libdir/tq_picture', 'tq_draw_report' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.draw_report(text, int, timestamptz, text, tq_internal.drawn_task[], bigint[],
	tq_internal.drawn_run[], tq_internal.drawn_fault[], timestamptz, bigint[]) IS 'a group as a page of HTML';

CREATE FUNCTION tq_internal.critical_tasks(tasks tq_internal.drawn_task[], dependencies bigint[], queues int[], medians bigint[], now timestamptz)
	RETURNS SETOF tq_internal.critical_task
	AS '$libdir/tq_picture', 'tq_critical_tasks' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.critical_tasks(tq_internal.drawn_task[], bigint[], int[], bigint[], timestamptz) IS
	'the critical path of a group, from its first task; a run takes as long as the median of its queue, in microseconds';

-- ---- what is drawn ----

CREATE FUNCTION tq_internal.group_to_list(task_group_id tq.slugid) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_sql_group_to_list' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.group_to_list(tq.slugid) IS 'number of a group that exists and that the caller may list, 0 if it has no row; raises TQ400, TQ403 or TQ404';

CREATE FUNCTION tq_internal.group_outcome(task_group_id tq.slugid) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_group_outcome' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.group_outcome(tq.slugid) IS 'outcome of a group; NULL while it has unresolved tasks';

-- The task that a group is named after has no group_id.
CREATE FUNCTION tq_internal.members(group_number bigint, task_group_id tq.slugid) RETURNS SETOF tq_internal.task
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT t.* FROM tq_internal.task t WHERE t.group_id = group_number
		UNION ALL
		SELECT t.* FROM tq_internal.task t WHERE t.task_id = members.task_group_id AND t.group_id IS NULL;
	END;
COMMENT ON FUNCTION tq_internal.members(bigint, tq.slugid) IS 'tasks of a group';

-- src/storage/columns.h says why it looks up a row in two ways (TQ_PENDING_OF).
CREATE FUNCTION tq_internal.pending_of(task bigint) RETURNS SETOF tq_internal.pending
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT p.*
		FROM tq_internal.task t
			CROSS JOIN LATERAL (SELECT * FROM tq_internal.pending f WHERE f.queue = t.queue AND f.priority = t.priority AND f.seq = t.id OFFSET 0) AS p
		WHERE t.id = pending_of.task
		UNION ALL
		SELECT p.* FROM tq_internal.pending p WHERE p.task = pending_of.task AND p.seq <> p.task;
	END;
COMMENT ON FUNCTION tq_internal.pending_of(bigint) IS 'the row of a task in pending, if it has one';

CREATE FUNCTION tq_internal.too_large(task_group_id tq.slugid, max int, what text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION 'task group "%" is too large for a picture', task_group_id
		USING ERRCODE = 'TQ400', DETAIL = format('It has more than %s %s.', max, what),
			HINT = 'See tq.group_progress() and tq.failure_overview instead.';
END
$$;
COMMENT ON FUNCTION tq_internal.too_large(tq.slugid, int, text) IS 'raises TQ400 for a group that has more of something than a picture shows';

-- What runs has no other row, and what is unscheduled, pending or delayed is so by one row
-- of one table.  OFFSET 0, and the orders, have the planner take the index that finds it
-- also while a table is nearly empty; src/storage/columns.h says why (TQ_PENDING_OF).
CREATE FUNCTION tq_internal.drawn_tasks(group_number bigint, task_group_id tq.slugid) RETURNS tq_internal.drawn_task[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	tasks tq_internal.drawn_task[] := ARRAY(
		SELECT ROW(m.id, left(coalesce(m.metadata ->> 'name', q.task_queue_id), 100),
			coalesce(w.state, r.state, 0), CASE w.state WHEN 1 THEN 0 ELSE coalesce(r.reason_resolved, 0) END,
			coalesce(w.run_id, r.run_id, -1), coalesce(w.is_delayed, false),
			CASE WHEN r.state = 2 AND r.has_detail THEN (
				SELECT left(concat_ws(', ', CASE WHEN e.total > 0 THEN trunc(100.0 * e.done / e.total) || ' %' ELSE e.done || ' done' END, e.message), 100)
				FROM tq_internal.run_detail e WHERE e.task = r.task AND e.run_id = r.run_id AND e.reported IS NOT NULL) END,
			CASE w.state WHEN 1 THEN NULL ELSE r.resolved END,
			m.queue, CASE WHEN w.state IS NULL THEN r.scheduled ELSE w.scheduled END, r.started)::tq_internal.drawn_task
		FROM tq_internal.members(group_number, drawn_tasks.task_group_id) AS m
			JOIN tq_internal.queue q ON q.id = m.queue
			LEFT JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = m.id ORDER BY r.task DESC, r.run_id DESC LIMIT 1) AS r ON true
			LEFT JOIN LATERAL (
				SELECT 0::smallint AS state, NULL::smallint AS run_id, NULL::timestamptz AS scheduled, false AS is_delayed
				FROM tq_internal.unscheduled u WHERE r.state IS DISTINCT FROM 2 AND u.task = m.id
				UNION ALL
				SELECT 1::smallint, p.run_id, p.scheduled, false FROM (SELECT * FROM tq_internal.pending f
					WHERE r.state IS DISTINCT FROM 2 AND f.queue = m.queue AND f.priority = m.priority AND f.seq = m.id OFFSET 0) AS p
				UNION ALL
				SELECT 1::smallint, p.run_id, p.scheduled, false
				FROM tq_internal.pending p WHERE r.state IS DISTINCT FROM 2 AND p.task = m.id AND p.seq <> p.task
				UNION ALL
				SELECT 1::smallint, d.run_id, d.scheduled, true FROM (SELECT * FROM tq_internal.delayed d
					WHERE r.state IS DISTINCT FROM 2 AND d.task = m.id ORDER BY d.task LIMIT 1) AS d
				LIMIT 1) AS w ON true
		ORDER BY m.id LIMIT 50001);
BEGIN
	IF cardinality(tasks) > 50000 THEN
		PERFORM tq_internal.too_large(task_group_id, 50000, 'tasks');
	END IF;
	RETURN tasks;
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_tasks(bigint, tq.slugid) IS 'tasks of a group, in the order of their numbers; the beginnings of long texts';

CREATE FUNCTION tq_internal.drawn_dependencies(group_number bigint, task_group_id tq.slugid) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	pairs bigint[] := ARRAY(
		SELECT ARRAY[e.dependent, coalesce(t.id, 0)]
		FROM (SELECT m.id AS dependent, unnest(m.dependencies) AS required
				FROM tq_internal.members(group_number, drawn_dependencies.task_group_id) AS m) AS e
			LEFT JOIN tq_internal.task t ON t.task_id = e.required
		LIMIT 500001);
BEGIN
	IF cardinality(pairs) / 2 > 500000 THEN
		PERFORM tq_internal.too_large(task_group_id, 500000, 'dependencies');
	END IF;
	RETURN pairs;
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_dependencies(bigint, tq.slugid) IS
	'pairs of a task of a group and one that it depends on, which may be in no group, or deleted (0)';

-- Runs that were claimed or resolved, and those that were not yet.
CREATE FUNCTION tq_internal.drawn_runs(task_group_id tq.slugid, tasks tq_internal.drawn_task[]) RETURNS tq_internal.drawn_run[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	runs tq_internal.drawn_run[] := ARRAY(
		SELECT ROW(r.task, r.run_id, r.state, r.reason_resolved, coalesce(d.visible_at, r.scheduled),
			CASE WHEN w.id IS NOT NULL THEN r.started END, r.resolved,
			CASE WHEN r.started IS NOT NULL THEN w.worker_group || '/' || w.worker_id END)::tq_internal.drawn_run
		FROM unnest(tasks) AS t
			JOIN tq_internal.run r ON r.task = t.task
			LEFT JOIN tq_internal.worker w ON w.id = r.worker
			LEFT JOIN LATERAL (SELECT d.visible_at FROM tq_internal.run_detail d
				WHERE r.has_detail AND d.task = r.task AND d.run_id = r.run_id OFFSET 0) AS d ON true
		WHERE t.run_id >= CASE t.state WHEN 1 THEN 1 ELSE 0 END
		UNION ALL
		SELECT ROW(t.task, t.run_id, 1, 0, t.scheduled, NULL, NULL, NULL)::tq_internal.drawn_run
		FROM unnest(tasks) AS t WHERE t.state = 1 AND NOT t.is_delayed
		LIMIT 100001);
BEGIN
	IF cardinality(runs) > 100000 THEN
		PERFORM tq_internal.too_large(task_group_id, 100000, 'runs');
	END IF;
	RETURN runs;
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_runs(tq.slugid, tq_internal.drawn_task[]) IS 'runs of the tasks of a group, in no order';

-- The message of an error comes first, in a line of its own.
CREATE FUNCTION tq_internal.drawn_faults(tasks tq_internal.drawn_task[]) RETURNS tq_internal.drawn_fault[] LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN ARRAY(
		SELECT ROW(t.task_id, f.name, q.task_queue_id, f.state, f.reason, f.run_id + 1, f.resolved, w.worker_group || '/' || w.worker_id,
			left(CASE WHEN jsonb_typeof(d.error) = 'object' AND d.error ? 'message'
				THEN concat_ws(E'\n', d.error ->> 'message', nullif((d.error - 'message')::text, '{}')) ELSE d.error #>> '{}' END, 1000))::tq_internal.drawn_fault
		FROM (SELECT u.* FROM unnest(tasks) AS u WHERE u.state IN (4, 5) ORDER BY u.resolved DESC NULLS LAST, u.task LIMIT 100) AS f
			JOIN tq_internal.task t ON t.id = f.task
			JOIN tq_internal.queue q ON q.id = t.queue
			JOIN tq_internal.run r ON r.task = f.task AND r.run_id = f.run_id
			LEFT JOIN tq_internal.worker w ON w.id = r.worker
			LEFT JOIN tq_internal.run_detail d ON d.task = f.task AND d.run_id = f.run_id
		ORDER BY f.resolved DESC NULLS LAST, f.task);
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_faults(tq_internal.drawn_task[]) IS 'the last failures of these tasks, with the first 1,000 characters of their errors';

-- Tasks of other groups may still run; then what waits for them is not blocked.
CREATE FUNCTION tq_internal.drawn_block(group_number bigint, task_group_id tq.slugid, tasks tq_internal.drawn_task[]) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	block tq_internal.block;
BEGIN
	IF NOT EXISTS (SELECT FROM unnest(tasks) AS t WHERE t.state IN (1, 2)) AND EXISTS (SELECT FROM unnest(tasks) AS t WHERE t.state = 0) THEN
		block := tq_internal.block_of_group(group_number, task_group_id);
	END IF;
	RETURN CASE WHEN block.blocked THEN concat_ws(' by ', 'blocked', nullif(array_to_string(block.blocked_by, ', '), ''))
		ELSE 'blocked or not is ' || array_to_string(block.blocked_by, ', ') END;
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_block(bigint, tq.slugid, tq_internal.drawn_task[]) IS 'that a group is blocked, and by what; NULL: it is not';

CREATE FUNCTION tq_internal.drawn_title(task_group_id tq.slugid, remark text DEFAULT NULL) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN concat_ws(', ', concat_ws(' ', task_group_id, left((SELECT coalesce(g.name, t.metadata ->> 'name')
		FROM tq_internal.task_group g LEFT JOIN tq_internal.task t ON t.task_id = g.task_group_id AND COALESCE(t.group_id, g.id) = g.id
		WHERE g.task_group_id = drawn_title.task_group_id), 100)), remark);
END
$$;
COMMENT ON FUNCTION tq_internal.drawn_title(tq.slugid, text) IS 'id and name of a group, and a remark';

-- ---- the critical path ----

CREATE FUNCTION tq_internal.critical_path(tasks tq_internal.drawn_task[], dependencies bigint[], now timestamptz) RETURNS SETOF tq_internal.critical_task LANGUAGE plpgsql STABLE AS $$
DECLARE
	queues int[] := '{}';
	medians bigint[] := '{}';
BEGIN
	IF EXISTS (SELECT FROM unnest(tasks) AS t WHERE t.state < 3) THEN
		SELECT coalesce(array_agg(c.queue ORDER BY c.queue), '{}'), coalesce(array_agg((extract(epoch FROM c.run_p50) * 1000000)::bigint ORDER BY c.queue), '{}')
			INTO queues, medians
			FROM tq_internal.queue_counters() AS c WHERE c.run_p50 IS NOT NULL;
	END IF;
	RETURN QUERY SELECT * FROM tq_internal.critical_tasks(tasks, dependencies, queues, medians, critical_path.now);
END
$$;
COMMENT ON FUNCTION tq_internal.critical_path(tq_internal.drawn_task[], bigint[], timestamptz) IS 'the critical path of a group, by the times that its queues have now';

-- ---- the functions ----
--
-- The clock is read after the rows, because a running run ends now.

-- Rows for a terminal: at most 110 columns in psql.
CREATE FUNCTION tq.group_tasks(task_group_id tq.slugid) RETURNS TABLE (task_id tq.slugid, name text, state text, runs int, detail text)
	LANGUAGE tq_read AS $$
DECLARE
	number bigint := tq_internal.group_to_list(task_group_id);
BEGIN
	RETURN QUERY
		SELECT t.task_id, tq_internal.shorten(d.name, 28), tq_internal.state_name(d.state), d.run_id + 1,
			tq_internal.shorten(CASE WHEN d.is_delayed THEN 'delayed' ELSE coalesce(d.progress, tq_internal.reason_resolved_name(d.reason)) END, 30)
		FROM unnest(tq_internal.drawn_tasks(number, group_tasks.task_group_id)) AS d JOIN tq_internal.task t ON t.id = d.task
		ORDER BY d.task;
END
$$;
COMMENT ON FUNCTION tq.group_tasks(tq.slugid) IS 'the tasks of a group as short rows, in the order of their creation: state, number of runs, and why the last one was resolved, or its progress';

-- The time of a row is from the end of the row before, or from when its task became pending.
CREATE FUNCTION tq.critical_path(task_group_id tq.slugid) RETURNS TABLE (place int, task_id tq.slugid, name text, state text,
		begins timestamptz, ends timestamptz, waiting interval, running interval, retrying interval, share float8, slack interval)
	LANGUAGE tq_read AS $$
DECLARE
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
	dependencies bigint[] := tq_internal.drawn_dependencies(number, task_group_id);
	now timestamptz := tq_internal.clock_now();
BEGIN
	RETURN QUERY
		WITH path AS MATERIALIZED (SELECT * FROM tq_internal.critical_path(tasks, dependencies, now)
		), lasted AS (
			SELECT p.*, coalesce(lag(p.ends) OVER (ORDER BY p.place), r.visible, p.ends) AS begins,
				r.visible, r.last_visible, r.started
			FROM path p CROSS JOIN LATERAL (SELECT min(v.visible) AS visible, max(v.visible) AS last_visible,
						(array_agg(v.started ORDER BY v.run_id DESC))[1] AS started
					FROM (SELECT r.run_id, coalesce(d.visible_at, r.scheduled) AS visible, r.started
							FROM tq_internal.run r LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id WHERE r.task = p.task
						UNION ALL SELECT y.run_id, y.visible_at, NULL FROM tq_internal.delayed y WHERE y.task = p.task
						UNION ALL SELECT y.run_id, y.scheduled, NULL FROM tq_internal.pending_of(p.task) AS y) AS v) AS r
		), parts AS (
			SELECT l.*, greatest(l.last_visible - greatest(l.visible, l.begins), '0') AS retried,
				CASE WHEN l.state = 0 THEN '0' ELSE least(coalesce(l.started, CASE WHEN l.state >= 3 THEN l.ends ELSE now END), l.ends) - l.begins END AS before
			FROM lasted l
		)
		SELECT p.place, t.task_id, left(coalesce(t.metadata ->> 'name', q.task_queue_id), 100), tq_internal.state_name(p.state), p.begins, p.ends,
			greatest(p.before - p.retried, '0'), p.ends - p.begins - greatest(p.before, p.retried, '0'), p.retried,
			coalesce(extract(epoch FROM p.ends - p.begins) / nullif(extract(epoch FROM max(p.ends) OVER () - min(p.begins) OVER ()), 0), 0)::float8, p.slack
		FROM parts p JOIN tq_internal.task t ON t.id = p.task JOIN tq_internal.queue q ON q.id = t.queue
		ORDER BY p.place;
END
$$;
COMMENT ON FUNCTION tq.critical_path(tq.slugid) IS 'the chain of tasks that decided when a group ended, or is expected to decide it: how long each waited, ran and was retried, and by how much another would have come later';

CREATE FUNCTION tq.group_tree(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS SETOF text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_nodes, 'max_nodes', 1, 2000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
BEGIN
	RETURN QUERY SELECT string_to_table(tq_internal.draw_tree(tq_internal.drawn_title(task_group_id, tq_internal.drawn_block(number, task_group_id, tasks)), max,
		tasks, tq_internal.drawn_dependencies(number, task_group_id)), E'\n');
END
$$;
COMMENT ON FUNCTION tq.group_tree(tq.slugid, int) IS 'a task group as lines for a terminal: each task below the last that it depends on, with its state';

CREATE FUNCTION tq.group_dot(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_nodes, 'max_nodes', 1, 2000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
BEGIN
	RETURN tq_internal.draw_dot(tq_internal.drawn_title(task_group_id, tq_internal.drawn_block(number, task_group_id, tasks)), max,
		tasks, tq_internal.drawn_dependencies(number, task_group_id));
END
$$;
COMMENT ON FUNCTION tq.group_dot(tq.slugid, int) IS 'the graph of a task group for Graphviz';

CREATE FUNCTION tq.group_mermaid(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_nodes, 'max_nodes', 1, 2000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
BEGIN
	RETURN tq_internal.draw_mermaid(tq_internal.drawn_title(task_group_id, tq_internal.drawn_block(number, task_group_id, tasks)), max,
		tasks, tq_internal.drawn_dependencies(number, task_group_id));
END
$$;
COMMENT ON FUNCTION tq.group_mermaid(tq.slugid, int) IS 'the graph of a task group as a flowchart of Mermaid';

-- The ids are in the order of the tasks, by one snapshot.
CREATE FUNCTION tq.group_graph(task_group_id tq.slugid, max_nodes int DEFAULT 200, link text DEFAULT NULL) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_nodes, 'max_nodes', 1, 2000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
BEGIN
	RETURN tq_internal.draw_svg(tq_internal.drawn_title(task_group_id, tq_internal.drawn_block(number, task_group_id, tasks)), max,
		tasks, tq_internal.drawn_dependencies(number, task_group_id), link,
		CASE WHEN link IS NOT NULL THEN ARRAY(SELECT m.task_id::text FROM tq_internal.members(number, group_graph.task_group_id) AS m ORDER BY m.id) END);
END
$$;
COMMENT ON FUNCTION tq.group_graph(tq.slugid, int, text) IS 'the graph of a task group as an SVG; with a link, such as /task?id=, the box of a task leads to that with its id';

CREATE FUNCTION tq.group_gantt(task_group_id tq.slugid, max_rows int DEFAULT 100) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_rows, 'max_rows', 1, 1000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
	dependencies bigint[] := tq_internal.drawn_dependencies(number, task_group_id);
	runs tq_internal.drawn_run[] := tq_internal.drawn_runs(task_group_id, tasks);
	now timestamptz := tq_internal.clock_now();
BEGIN
	RETURN tq_internal.draw_gantt('task group ' || tq_internal.drawn_title(task_group_id), max, tasks, '{}', runs, now,
		ARRAY(SELECT c.task FROM tq_internal.critical_path(tasks, dependencies, now) AS c ORDER BY c.place));
END
$$;
COMMENT ON FUNCTION tq.group_gantt(tq.slugid, int) IS 'the runs of a task group by worker and time, as an SVG';

CREATE FUNCTION tq.report_html(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	max int := tq_internal.arg_int(max_nodes, 'max_nodes', 1, 2000);
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.drawn_task[] := tq_internal.drawn_tasks(number, task_group_id);
	dependencies bigint[] := tq_internal.drawn_dependencies(number, task_group_id);
	runs tq_internal.drawn_run[] := tq_internal.drawn_runs(task_group_id, tasks);
	faults tq_internal.drawn_fault[] := tq_internal.drawn_faults(tasks);
	now timestamptz := tq_internal.clock_now();
BEGIN
	RETURN tq_internal.draw_report(tq_internal.drawn_title(task_group_id), max, (SELECT g.sealed FROM tq_internal.task_group g WHERE g.id = number),
		coalesce(tq_internal.drawn_block(number, task_group_id, tasks), tq_internal.group_outcome(task_group_id)),
		tasks, dependencies, runs, faults, now,
		ARRAY(SELECT c.task FROM tq_internal.critical_path(tasks, dependencies, now) AS c ORDER BY c.place));
END
$$;
COMMENT ON FUNCTION tq.report_html(tq.slugid, int) IS 'a task group as a page of HTML that needs no other file: progress, failures, graph and runs';

-- ---- traces ----
--
-- OTLP in JSON: 64-bit numbers are strings, enumerations are numbers, ids are hexadecimal.
-- Ids follow from those of tasks, so that a trace that is sent twice is one.

CREATE FUNCTION tq_internal.trace_id(tags jsonb, task_group_id tq.slugid) RETURNS text LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT COALESCE(split_part(tags ->> 'traceparent', '-', 2), md5('tq ' || task_group_id::text));
	END;
COMMENT ON FUNCTION tq_internal.trace_id(jsonb, tq.slugid) IS 'trace of a task: that of its tag traceparent, or one for each task group';

CREATE FUNCTION tq_internal.span_id(task_id tq.slugid, part text DEFAULT '') RETURNS text LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT left(md5(concat_ws(' ', 'tq', task_id::text, part)), 16);
	END;
COMMENT ON FUNCTION tq_internal.span_id(tq.slugid, text) IS 'span of a task, or of a part of it';

CREATE FUNCTION tq_internal.span(trace_id text, id text, parent text, name text, kind int, begins timestamptz, ends timestamptz, attributes jsonb,
	links jsonb DEFAULT NULL, status jsonb DEFAULT NULL) RETURNS jsonb LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT jsonb_strip_nulls(jsonb_build_object('traceId', trace_id, 'spanId', id, 'parentSpanId', parent, 'name', name, 'kind', kind,
			'startTimeUnixNano', (extract(epoch FROM begins) * 1000000)::bigint || '000',
			'endTimeUnixNano', (extract(epoch FROM greatest(begins, ends)) * 1000000)::bigint || '000',
			'attributes', (SELECT jsonb_agg(jsonb_build_object('key', a.key, 'value', CASE jsonb_typeof(a.value)
					WHEN 'number' THEN jsonb_build_object('intValue', a.value #>> '{}') ELSE jsonb_build_object('stringValue', a.value #>> '{}') END) ORDER BY a.key)
				FROM jsonb_each(attributes) AS a WHERE a.value <> 'null'),
			'links', links, 'status', status));
	END;
COMMENT ON FUNCTION tq_internal.span(text, text, text, text, int, timestamptz, timestamptz, jsonb, jsonb, jsonb) IS 'a span in OTLP';

-- What is of a definition, names, links and the parent, is shown to those who may read it.
CREATE FUNCTION tq_internal.spans(tasks tq_internal.task[]) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
	sees_all bool := tq_internal.has_right('get-task', '*', '*');
BEGIN
	RETURN (
		WITH member AS (
			SELECT t.id, t.task_id, t.created, f.dependencies, q.task_queue_id, left(coalesce(f.metadata ->> 'name', q.task_queue_id), 255) AS name,
				nullif(split_part(f.tags ->> 'traceparent', '-', 3), '') AS parent, g.slug AS group_slug, tq_internal.trace_id(f.tags, g.slug) AS trace,
				r.state, r.reason_resolved, r.resolved
			FROM unnest(tasks) AS t JOIN tq_internal.queue q ON q.id = t.queue
				CROSS JOIN LATERAL (SELECT tq_internal.group_slug(t.group_id, t.task_id) AS slug OFFSET 0) AS g
				LEFT JOIN LATERAL (SELECT t.metadata, t.tags, t.dependencies WHERE sees_all OR tq_internal.has_right('get-task', t.task_id::text, q.task_queue_id)) AS f ON true
				LEFT JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = t.id AND r.state >= 3
					AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id) AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id)
					AND NOT EXISTS (SELECT FROM tq_internal.pending_of(t.id)) AND NOT EXISTS (SELECT FROM tq_internal.run l WHERE l.task = t.id AND l.run_id > r.run_id)
					ORDER BY r.task DESC, r.run_id DESC LIMIT 1) AS r ON true
		), part AS (
			SELECT m.*, r.run_id, r.started, r.resolved AS ended, tq_internal.state_name(r.state) AS run_state, tq_internal.reason_resolved_name(r.reason_resolved) AS reason,
				coalesce(d.visible_at, r.scheduled) AS visible, w.worker_group || '/' || w.worker_id AS worker
			FROM member m JOIN tq_internal.run r ON r.task = m.id LEFT JOIN tq_internal.worker w ON w.id = r.worker
				LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id
		), span AS (
			SELECT m.id, -1 AS run_id, 0 AS nth, tq_internal.span(m.trace, tq_internal.span_id(m.task_id), m.parent, m.name, 1, m.created, m.resolved,
				jsonb_build_object('tq.task_id', m.task_id, 'tq.task_group_id', m.group_slug, 'tq.queue', m.task_queue_id, 'tq.state', tq_internal.state_name(m.state)),
				(SELECT jsonb_agg(jsonb_build_object('traceId', tq_internal.trace_id(x.tags, tq_internal.group_slug(x.group_id, x.task_id)), 'spanId', tq_internal.span_id(x.task_id)) ORDER BY x.id)
					FROM unnest(m.dependencies) AS e (slug) JOIN tq_internal.task x ON x.task_id = e.slug JOIN tq_internal.queue y ON y.id = x.queue
					WHERE x.id <> m.id AND (sees_all OR tq_internal.has_right('get-task', x.task_id::text, y.task_queue_id))),
				CASE WHEN m.state = 3 THEN '{"code": 1}' ELSE jsonb_build_object('code', 2, 'message', tq_internal.reason_resolved_name(m.reason_resolved)) END) AS span
			FROM member m WHERE m.resolved IS NOT NULL
			UNION ALL
			SELECT p.id, p.run_id, 1, tq_internal.span(p.trace, tq_internal.span_id(p.task_id, 'wait ' || p.run_id), tq_internal.span_id(p.task_id), p.name || ' wait', 1, p.visible,
				coalesce(p.started, p.ended), jsonb_build_object('tq.task_id', p.task_id, 'tq.run_id', p.run_id, 'tq.queue', p.task_queue_id))
			FROM part p WHERE coalesce(p.started, p.ended) IS NOT NULL
			UNION ALL
			SELECT p.id, p.run_id, 2, tq_internal.span(p.trace, tq_internal.span_id(p.task_id, 'run ' || p.run_id), tq_internal.span_id(p.task_id), p.name || ' run', 5, p.started, p.ended,
				jsonb_build_object('tq.task_id', p.task_id, 'tq.run_id', p.run_id, 'tq.queue', p.task_queue_id, 'tq.worker', p.worker, 'tq.state', p.run_state, 'tq.reason', p.reason),
				CASE WHEN p.run_id > 0 THEN jsonb_build_array(jsonb_build_object('traceId', p.trace, 'spanId', tq_internal.span_id(p.task_id, 'run 0'))) END,
				CASE WHEN p.run_state = 'completed' THEN '{"code": 1}' ELSE jsonb_build_object('code', 2, 'message', p.reason) END)
			FROM part p WHERE p.started IS NOT NULL AND p.ended IS NOT NULL
		)
		SELECT jsonb_build_object('resourceSpans', jsonb_build_array(jsonb_build_object(
			'resource', jsonb_build_object('attributes', jsonb_build_array(
				jsonb_build_object('key', 'service.name', 'value', jsonb_build_object('stringValue', 'tq')),
				jsonb_build_object('key', 'db.namespace', 'value', jsonb_build_object('stringValue', current_database())))),
			'scopeSpans', jsonb_build_array(jsonb_build_object('scope', jsonb_build_object('name', 'tq', 'version', tq_internal.library_version()),
				'spans', coalesce(jsonb_agg(s.span ORDER BY s.id, s.run_id, s.nth), '[]'))))))
		FROM span s);
END
$$;
COMMENT ON FUNCTION tq_internal.spans(tq_internal.task[]) IS 'what has ended of tasks, as a request of OTLP';

CREATE FUNCTION tq.trace(task_group_id tq.slugid) RETURNS jsonb LANGUAGE tq_read AS $$
DECLARE
	number bigint := tq_internal.group_to_list(task_group_id);
	tasks tq_internal.task[] := ARRAY(SELECT m FROM tq_internal.members(number, trace.task_group_id) AS m ORDER BY m.id LIMIT 10001);
BEGIN
	IF cardinality(tasks) > 10000 THEN
		PERFORM tq_internal.too_large(task_group_id, 10000, 'tasks');
	END IF;
	RETURN tq_internal.spans(tasks);
END
$$;
COMMENT ON FUNCTION tq.trace(tq.slugid) IS 'what has ended of a task group, as a trace in the JSON of OTLP: tasks, their waits and runs';

CREATE FUNCTION tq.trace_task(task_id tq.slugid) RETURNS jsonb LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id'), tq_internal.require_artifact('status', task_id::text, task_id);
	PERFORM tq.status(task_id);	-- TQ404; what a body calls checks no scope
	RETURN tq_internal.spans(ARRAY(SELECT t FROM tq_internal.task t WHERE t.task_id = trace_task.task_id));
END
$$;
COMMENT ON FUNCTION tq.trace_task(tq.slugid) IS 'what has ended of a task, as a trace in the JSON of OTLP';
