-- invariants.sql: what must hold of the tables of tq at any moment, seen by
-- one snapshot.  One row for each thing that does not: (what, task, detail).
WITH holder AS (
	SELECT task, 'unscheduled' AS place FROM tq.unscheduled
	UNION ALL SELECT task, 'pending' FROM tq.pending
	UNION ALL SELECT task, 'delayed' FROM tq.delayed
	UNION ALL SELECT task, 'running' FROM tq.run WHERE state = 2
), every_run AS (
	SELECT task, run_id, state, reason_created FROM tq.run
	UNION ALL SELECT task, run_id, 1, reason_created FROM tq.pending
	UNION ALL SELECT task, run_id, 1, reason_created FROM tq.delayed
), last_run AS (
	SELECT DISTINCT ON (task) task, run_id, state FROM every_run ORDER BY task, run_id DESC
), met AS (
	SELECT e.dependent, e.required,
		EXISTS (SELECT FROM every_run r WHERE r.task = e.required AND r.run_id >= e.from_run
			AND (r.state = 3
				OR u.all_resolved AND r.state IN (4, 5)
				AND NOT EXISTS (SELECT FROM every_run n WHERE n.task = r.task
					AND n.run_id = r.run_id + 1 AND n.reason_created IN (2, 3)))) AS is_met
	FROM tq.unscheduled u JOIN tq.edge e ON e.dependent = u.task
), leased AS (
	SELECT unnest(tasks) AS task, due FROM tq.lease
), timed AS (
	SELECT unnest(tasks) AS task, due, kind FROM tq.timer
)
-- where a task is
SELECT 'more than one row holds an unresolved task' AS what, task, string_agg(place, ' ') AS detail
	FROM holder GROUP BY task HAVING count(*) > 1
UNION ALL
SELECT 'a task is nowhere', t.id, t.task_id::text
	FROM tq.task t LEFT JOIN holder h ON h.task = t.id LEFT JOIN last_run l ON l.task = t.id
	WHERE h.task IS NULL AND (l.task IS NULL OR l.state NOT IN (3, 4, 5))
UNION ALL
SELECT 'an unscheduled task has runs', u.task, l.run_id::text
	FROM tq.unscheduled u JOIN last_run l ON l.task = u.task
UNION ALL
SELECT 'a row of no task in ' || h.place, h.task, NULL
	FROM holder h WHERE NOT EXISTS (SELECT FROM tq.task t WHERE t.id = h.task)
-- runs
UNION ALL
SELECT 'runs are not dense from 0', task, array_agg(run_id ORDER BY run_id)::text
	FROM every_run GROUP BY task
	HAVING min(run_id) <> 0 OR max(run_id) <> count(*) - 1 OR count(DISTINCT run_id) <> count(*)
UNION ALL
SELECT 'a run before the last one is unresolved', r.task, r.run_id::text
	FROM every_run r JOIN last_run l ON l.task = r.task
	WHERE r.run_id < l.run_id AND r.state NOT IN (3, 4, 5)
UNION ALL
SELECT 'a run has an impossible row', task, run_id::text
	FROM tq.run
	WHERE state NOT BETWEEN 2 AND 5
		OR (state = 2) <> (resolved IS NULL)
		OR (state = 2) <> (reason_resolved = 0)
		OR (worker IS NULL) <> (started IS NULL)
		OR (worker IS NULL) <> (taken_until IS NULL)
		OR state IN (2, 3, 4) AND worker IS NULL
UNION ALL
SELECT 'a run of no task', r.task, r.run_id::text
	FROM tq.run r WHERE NOT EXISTS (SELECT FROM tq.task t WHERE t.id = r.task)
UNION ALL
SELECT 'a pending row differs from its task', p.task, p.queue || ' ' || p.priority
	FROM tq.pending p JOIN tq.task t ON t.id = p.task
	WHERE p.queue <> t.queue OR p.priority <> t.priority
-- dependencies
UNION ALL
SELECT 'unmet is wrong', u.task, u.unmet || ' instead of ' || count(m.required) FILTER (WHERE NOT m.is_met)
	FROM tq.unscheduled u LEFT JOIN met m ON m.dependent = u.task WHERE u.shares = 0
	GROUP BY u.task, u.unmet HAVING u.unmet <> count(m.required) FILTER (WHERE NOT m.is_met)
UNION ALL
SELECT 'a share of unmet is wrong', task, share || ': ' || coalesce(s.unmet, 0) || ' instead of ' || coalesce(e.unmet, 0)
	FROM (SELECT n.* FROM tq.unmet n JOIN tq.unscheduled u ON u.task = n.task) AS s FULL JOIN (
		SELECT u.task, m.required % u.shares AS share, count(*) AS unmet FROM tq.unscheduled u JOIN met m ON m.dependent = u.task
		WHERE u.shares > 0 AND NOT m.is_met GROUP BY 1, 2) AS e USING (task, share)
	WHERE coalesce(s.unmet, 0) <> coalesce(e.unmet, 0)
UNION ALL
SELECT 'the number of shares is wrong', u.task, u.unmet || ' instead of ' || (SELECT count(*) FROM tq.unmet n WHERE n.task = u.task)
	FROM tq.unscheduled u WHERE u.shares > 0 AND u.unmet <> (SELECT count(*) FROM tq.unmet n WHERE n.task = u.task)
UNION ALL
SELECT 'an unscheduled task waits for nothing', u.task, u.unmet::text
	FROM tq.unscheduled u JOIN tq.task t ON t.id = u.task
	WHERE u.unmet <= 0 AND t.deadline > clock_timestamp() + coalesce(current_setting('tq.clock_offset', true), '0')::interval
UNION ALL
SELECT 'an edge of no task', e.dependent, e.required::text
	FROM tq.edge e WHERE NOT EXISTS (SELECT FROM tq.task t WHERE t.id = e.dependent)
UNION ALL
SELECT 'a task waits for one that is gone', u.task, e.required::text
	FROM tq.unscheduled u JOIN tq.edge e ON e.dependent = u.task
	WHERE NOT EXISTS (SELECT FROM tq.task t WHERE t.id = e.required)
UNION ALL
SELECT 'copy of all_resolved differs', u.task, NULL
	FROM tq.unscheduled u JOIN tq.task t ON t.id = u.task WHERE u.all_resolved <> t.all_resolved
-- time
UNION ALL
SELECT 'a running run has no lease', r.task, r.run_id || ' until ' || r.taken_until
	FROM tq.run r
	WHERE r.state = 2 AND NOT EXISTS (SELECT FROM leased l
		WHERE l.task = r.task AND l.due <= r.taken_until + interval '1 ms')
UNION ALL
SELECT 'an unresolved task has no deadline timer', t.id, t.deadline::text
	FROM holder h JOIN tq.task t ON t.id = h.task
	WHERE NOT EXISTS (SELECT FROM timed x WHERE x.task = t.id AND x.kind = 1
		AND x.due <= t.deadline + coalesce(current_setting('tq.deadline_delay', true), '0')::interval + interval '1 ms')
UNION ALL
SELECT 'a task has no timer for its expiry', t.id, t.expires::text
	FROM tq.task t
	WHERE NOT EXISTS (SELECT FROM timed x WHERE x.task = t.id AND x.kind = 1)
		AND NOT EXISTS (SELECT FROM timed x WHERE x.task = t.id AND x.kind = 2)
ORDER BY 1, 2
