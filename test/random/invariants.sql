-- invariants.sql: what must hold of the tables of tq at any moment, seen by
-- one snapshot.  One row for each thing that does not: (what, task, detail).
-- Upkeep has done all that was due at random.done.  What upkeep skipped because
-- another session had locked it is due again within 100 ms (TQ_AGAIN_MS): so for
-- a time that has passed, a timer that is due by "again" is right as well.
WITH holder AS (
	SELECT task, 'unscheduled' AS place FROM tq_internal.unscheduled
	UNION ALL SELECT task, 'pending' FROM tq_internal.pending
	UNION ALL SELECT task, 'delayed' FROM tq_internal.delayed
	UNION ALL SELECT task, 'running' FROM tq_internal.run WHERE state = 2
), stored AS (
	SELECT task, run_id, state, reason_created, reason_resolved, retries_left, scheduled, started, taken_until, has_detail, 'run' AS place FROM tq_internal.run
	UNION ALL SELECT task, run_id, 1, reason_created, 0, retries_left, scheduled, NULL, NULL, has_detail, 'pending' FROM tq_internal.pending
	UNION ALL SELECT task, run_id, 1, reason_created, 0, retries_left, scheduled, NULL, NULL, has_detail, 'delayed' FROM tq_internal.delayed
), rule AS (
	SELECT t.id AS task, q.task_queue_id LIKE 'own%' AS is_own, t.retries, t.delay, t.deadline, coalesce(t.effective_deadline, t.deadline) AS due, y.policy,
		coalesce((y.policy ->> 'lostRetries')::int, -1) AS lost,
		coalesce((y.policy ->> 'timeoutAlertOnly')::bool, false) AS alerts,
		(SELECT jsonb_object_agg(key, extract(epoch FROM CASE jsonb_typeof(value)
				WHEN 'number' THEN value::float8 * interval '1 s' ELSE (value #>> '{}')::interval END))
			FROM jsonb_each(y.policy) WHERE key LIKE '%Timeout') AS seconds
	FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue LEFT JOIN tq_internal.policy y ON y.id = t.policy
), every_run AS (
	SELECT s.*, r.is_own, r.retries, r.policy, r.lost, r.due, r.alerts,
		coalesce(d.started, s.started) AS first_started,
		coalesce(d.attempt, 0) AS attempt, coalesce(d.lost_retries_left, r.lost) AS lost_left,
		coalesce(s.started, d.started) + (r.seconds ->> 'runTimeout')::float8 * interval '1 s' AS run_until,
		CASE WHEN s.started IS NULL AND d.started IS NULL AND s.state = 1
			THEN coalesce(d.pending_until, s.scheduled + (r.seconds ->> 'pendingTimeout')::float8 * interval '1 s') END AS pending_until,
		lag(s.run_id) OVER before AS last_id, lag(s.reason_resolved) OVER before AS last_reason,
		lag(coalesce(d.attempt, 0)) OVER before AS last_attempt, lag(s.retries_left) OVER before AS last_retries_left,
		lag(coalesce(d.lost_retries_left, r.lost)) OVER before AS last_lost_left,
		lead(s.reason_created) OVER before AS next_created
	FROM stored s LEFT JOIN rule r ON r.task = s.task
		LEFT JOIN tq_internal.run_detail d ON s.has_detail AND d.task = s.task AND d.run_id = s.run_id
	WINDOW before AS (PARTITION BY s.task ORDER BY s.run_id)
), last_run AS (
	SELECT DISTINCT ON (task) task, run_id, state, reason_resolved FROM every_run ORDER BY task, run_id DESC
), edge AS (
	SELECT dependent, required, from_run, NULL::bool AS settled FROM tq_internal.dependency WHERE dependent <> 0
	UNION ALL SELECT dependent, required, from_run, settled FROM tq_internal.foreign_dependency
), met AS (
	SELECT e.dependent, e.required, e.settled,
		EXISTS (SELECT FROM every_run r WHERE r.task = e.required AND r.run_id >= e.from_run
			AND (e.required = e.dependent AND r.reason_created NOT IN (5, 6)
				OR e.required <> e.dependent AND r.state = 3
				OR e.required <> e.dependent AND (u.all_resolved OR coalesce(tq_internal.is_tolerated(r.policy, r.reason_resolved), false)) AND r.state IN (4, 5)
				AND coalesce(r.next_created, 0) NOT IN (2, 3, 7))) AS is_met
	FROM tq_internal.unscheduled u JOIN edge e ON e.dependent = u.task
), counted AS (
	SELECT dependent, required, coalesce(settled, is_met) AS is_met FROM met
), leased AS (
	SELECT unnest(tasks) AS task, due FROM tq_internal.claim_timer
	UNION ALL SELECT task, due FROM tq_internal.left_timer WHERE is_claim
), timed AS (
	SELECT unnest(tasks) AS task, due, kind FROM tq_internal.timer
	UNION ALL SELECT task, due, 1 FROM tq_internal.left_timer WHERE NOT is_claim
), again AS (
	SELECT clock_timestamp() + coalesce(current_setting('tq.clock_offset', true), '0')::interval + interval '100 ms' AS at
), done AS (
	SELECT coalesce(nullif(current_setting('random.done', true), ''), '-infinity')::timestamptz AS at
)
-- the row that holds a task
SELECT 'more than one row holds an unresolved task' AS what, task, string_agg(place, ' ') AS detail
	FROM holder GROUP BY task HAVING count(*) > 1
UNION ALL
SELECT 'no row holds a task', t.id, t.task_id::text
	FROM tq_internal.task t LEFT JOIN holder h ON h.task = t.id LEFT JOIN last_run l ON l.task = t.id
	WHERE h.task IS NULL AND (l.task IS NULL OR l.state NOT IN (3, 4, 5))
UNION ALL
SELECT 'the next run of an unscheduled task is wrong', u.task, concat_ws(' ', u.next_run, l.run_id)
	FROM tq_internal.unscheduled u LEFT JOIN last_run l ON l.task = u.task
	WHERE coalesce(u.next_run, 0) <> coalesce(l.run_id + 1, 0)
UNION ALL
SELECT 'a row of no task in ' || h.place, h.task, NULL
	FROM holder h WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = h.task)
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
	FROM tq_internal.run
	WHERE state NOT BETWEEN 2 AND 5
		OR (state = 2) <> (resolved IS NULL)
		OR (state = 2) <> (reason_resolved = 0)
		OR (worker IS NULL) <> (started IS NULL)
		OR worker IS NULL AND taken_until IS NOT NULL
		OR worker IS NOT NULL AND taken_until IS NULL AND (NOT has_detail OR reason_resolved NOT IN (3, 4, 14, 15))
		OR state IN (2, 3, 4) AND worker IS NULL AND reason_resolved <> 15
UNION ALL
SELECT 'a run of no task', r.task, r.run_id::text
	FROM tq_internal.run r WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = r.task)
UNION ALL
SELECT 'a pending row differs from its task', p.task, p.queue || ' ' || p.priority
	FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task
	WHERE p.queue <> t.queue OR p.priority <> t.priority
-- failures, and the view of all tasks
UNION ALL
SELECT 'a failure is missing or wrong', coalesce(e.task, f.task), coalesce(e.state, f.state)::text
	FROM (SELECT l.task, l.state, t.queue, l.run_id FROM last_run l JOIN tq_internal.task t ON t.id = l.task
			WHERE l.state IN (4, 5) AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)) AS e
		FULL JOIN tq_internal.failure f ON f.task = e.task
	WHERE e.state IS DISTINCT FROM f.state OR e.queue IS DISTINCT FROM f.queue OR e.run_id IS DISTINCT FROM f.run_id OR f.task IS NULL
UNION ALL
SELECT 'current_task differs from the tables', coalesce(e.task, c.id), coalesce(c.state, 'none') || ' instead of ' || coalesce(e.state, 'none')
	FROM (SELECT t.id AS task, CASE WHEN u.task IS NOT NULL THEN 'unscheduled' ELSE tq_internal.state_name(l.state) END AS state, l.run_id
			FROM tq_internal.task t LEFT JOIN last_run l ON l.task = t.id LEFT JOIN tq_internal.unscheduled u ON u.task = t.id) AS e
		FULL JOIN tq_internal.current_task c ON c.id = e.task
	WHERE e.state IS DISTINCT FROM c.state OR e.run_id IS DISTINCT FROM c.run_id
-- dependencies
UNION ALL
SELECT 'unmet is wrong', u.task, u.unmet || ' instead of ' || count(m.required) FILTER (WHERE NOT m.is_met)
	FROM tq_internal.unscheduled u LEFT JOIN counted m ON m.dependent = u.task WHERE u.stripes = 0
	GROUP BY u.task, u.unmet HAVING u.unmet <> count(m.required) FILTER (WHERE NOT m.is_met)
UNION ALL
SELECT 'a foreign dependency was settled too early', dependent, required::text FROM met WHERE settled AND NOT is_met
UNION ALL
SELECT 'a foreign dependency was not settled', m.dependent, m.required::text FROM met m CROSS JOIN done
	WHERE NOT m.settled AND m.is_met AND NOT EXISTS (SELECT FROM tq_internal.run r WHERE r.task = m.required AND r.resolved > done.at)
UNION ALL
SELECT 'a stripe of unmet is wrong', task, stripe || ': ' || coalesce(s.unmet, 0) || ' instead of ' || coalesce(e.unmet, 0)
	FROM (SELECT n.* FROM tq_internal.dependency_counter n JOIN tq_internal.unscheduled u ON u.task = n.task) AS s FULL JOIN (
		SELECT u.task, m.required % u.stripes AS stripe, count(*) AS unmet FROM tq_internal.unscheduled u JOIN counted m ON m.dependent = u.task
		WHERE u.stripes > 0 AND NOT m.is_met GROUP BY 1, 2) AS e USING (task, stripe)
	WHERE coalesce(s.unmet, 0) <> coalesce(e.unmet, 0)
UNION ALL
SELECT 'the number of stripes is wrong', u.task, u.unmet || ' instead of ' || (SELECT count(*) FROM tq_internal.dependency_counter n WHERE n.task = u.task)
	FROM tq_internal.unscheduled u WHERE u.stripes > 0 AND u.unmet <> (SELECT count(*) FROM tq_internal.dependency_counter n WHERE n.task = u.task)
UNION ALL
SELECT 'an unscheduled task waits for nothing', u.task, u.unmet::text
	FROM tq_internal.unscheduled u JOIN tq_internal.task t ON t.id = u.task
	WHERE u.unmet <= 0 AND coalesce(t.effective_deadline, t.deadline) > clock_timestamp() + coalesce(current_setting('tq.clock_offset', true), '0')::interval
UNION ALL
SELECT 'a dependency of no task', e.dependent, e.required::text
	FROM tq_internal.dependency e WHERE e.dependent <> 0 AND NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = e.dependent)
UNION ALL
SELECT 'a task waits for one that is gone', u.task, e.required::text
	FROM tq_internal.unscheduled u JOIN tq_internal.dependency e ON e.dependent = u.task
	WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = e.required)
UNION ALL
SELECT 'copy of all_resolved differs', u.task, NULL
	FROM tq_internal.unscheduled u JOIN tq_internal.task t ON t.id = u.task WHERE u.all_resolved <> t.all_resolved
-- details of runs, and their budgets; how many retries there are
-- after a run its worker may have said
UNION ALL
SELECT 'a detail and its run do not fit', coalesce(s.task, d.task), coalesce(s.run_id, d.run_id)::text
	FROM stored s FULL JOIN tq_internal.run_detail d ON d.task = s.task AND d.run_id = s.run_id
	WHERE s.has_detail IS DISTINCT FROM (d.task IS NOT NULL)
UNION ALL
SELECT 'a budget is out of range', task, concat_ws(' ', run_id, retries_left, lost_left, attempt)
	FROM every_run
	WHERE retries_left NOT BETWEEN 0 AND coalesce(current_setting('tq.max_runs', true), '50')::int - 1 OR attempt NOT BETWEEN 0 AND run_id
		OR CASE WHEN lost = -1 THEN lost_left <> -1 ELSE lost_left NOT BETWEEN 0 AND lost END
UNION ALL
SELECT 'a run is not paid for', task, concat_ws(' ', last_id, last_reason, last_retries_left, last_lost_left, last_attempt,
		'then', run_id, reason_created, retries_left, lost_left, attempt)
	FROM every_run
	WHERE last_id IS NOT NULL AND CASE
		WHEN reason_created IN (4, 5, 6, 8)
			THEN (retries_left, lost_left, attempt) <> (least(retries, coalesce(current_setting('tq.max_runs', true), '50')::int - (run_id + 1)), lost, 0)
		WHEN last_reason = 6 AND lost <> -1
			THEN (retries_left, lost_left, attempt) <> (last_retries_left, last_lost_left - 1, last_attempt)
		ELSE lost_left <> last_lost_left OR policy IS NOT NULL AND attempt <> last_attempt + 1
			OR retries_left <> last_retries_left - 1 AND NOT (is_own AND last_reason IN (2, 7, 8, 9, 10, 11)) END
UNION ALL
SELECT 'a delay is too short', s.task, s.run_id || ' ' || d.visible_at
	FROM stored s JOIN tq_internal.run_detail d ON d.task = s.task AND d.run_id = s.run_id
	WHERE d.visible_at < s.scheduled
		OR s.place = 'delayed' AND d.visible_at <> (SELECT y.visible_at FROM tq_internal.delayed y WHERE y.task = s.task AND y.visible_at < 'infinity')
UNION ALL
SELECT 'a run is delayed and has no detail', task, run_id::text FROM stored WHERE place = 'delayed' AND NOT has_detail
	AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = stored.task AND d.visible_at = 'infinity')
UNION ALL
SELECT 'a run is parked and waits for no gate', d.task, NULL FROM tq_internal.delayed d
	WHERE d.visible_at = 'infinity' AND NOT EXISTS (SELECT FROM tq_internal.gate_member m WHERE m.task = d.task)
UNION ALL
SELECT 'two tasks have passed the gate of a serial key', min(task), key FROM tq_internal.gate_member
	WHERE kind = 1 AND state = 0 GROUP BY queue, key HAVING count(*) > 1
UNION ALL
SELECT 'an early deadline is wrong', r.task, r.due || ' ' || (r.seconds ->> 'totalTimeout')
	FROM rule r JOIN tq_internal.task t ON t.id = r.task
		LEFT JOIN (SELECT task, min(scheduled) AS first FROM stored WHERE reason_created NOT IN (5, 6) GROUP BY task) AS s ON s.task = r.task
	WHERE NOT r.is_own AND t.effective_deadline IS DISTINCT FROM CASE WHEN NOT r.alerts AND s.first IS NOT NULL
		THEN nullif(least(s.first + (r.seconds ->> 'totalTimeout')::float8 * interval '1 s', t.deadline), t.deadline) END
UNION ALL
SELECT 'a dead letter of a task that is not dead', l.task, l.task_id::text
	FROM tq_internal.dead_letter l JOIN last_run r ON r.task = l.task
	WHERE r.state NOT IN (4, 5) OR r.reason_resolved <> l.reason OR r.reason_resolved IN (4, 16)
-- time
UNION ALL
SELECT 'what was due has not been done', h.task, x.what || ' ' || x.due
	FROM holder h JOIN rule r ON r.task = h.task LEFT JOIN every_run e ON e.task = h.task AND e.state IN (1, 2)
		CROSS JOIN done
		CROSS JOIN LATERAL (VALUES ('deadline', r.due), ('claim', CASE WHEN e.state = 2 THEN e.taken_until END),
			('run', CASE WHEN NOT r.alerts THEN e.run_until END), ('pending', CASE WHEN NOT r.alerts THEN e.pending_until END),
			('delayed', (SELECT y.visible_at FROM tq_internal.delayed y WHERE y.task = h.task))) AS x (what, due)
	WHERE x.due <= done.at
UNION ALL
SELECT 'a run has no timer for its timeout', e.task, e.run_id || ' ' || x.due
	FROM every_run e CROSS JOIN LATERAL (VALUES (3, e.run_until), (4, e.pending_until)) AS x (kind, due)
	WHERE e.state IN (1, 2) AND x.due < e.due AND NOT e.alerts
		AND NOT EXISTS (SELECT FROM timed i, again a WHERE i.task = e.task AND i.kind = x.kind AND i.due <= greatest(x.due, a.at) + interval '1 ms')
UNION ALL
SELECT 'a running run has no claim timer', r.task, r.run_id || ' until ' || r.taken_until
	FROM tq_internal.run r
	WHERE r.state = 2 AND NOT EXISTS (SELECT FROM leased l, again a
		WHERE l.task = r.task AND l.due <= greatest(r.taken_until, a.at) + interval '1 ms')
UNION ALL
SELECT 'an unresolved task has no deadline timer', t.id, coalesce(t.effective_deadline, t.deadline)::text
	FROM holder h JOIN tq_internal.task t ON t.id = h.task
	WHERE coalesce(t.effective_deadline, t.deadline) < 'infinity' AND NOT EXISTS (SELECT FROM timed x, again a WHERE x.task = t.id AND x.kind = 1
		AND x.due <= greatest(coalesce(t.effective_deadline, t.deadline) + coalesce(current_setting('tq.deadline_delay', true), '0')::interval, a.at) + interval '1 ms')
UNION ALL
SELECT 'a task has no timer for its expiry', t.id, t.expires::text
	FROM tq_internal.task t
	WHERE t.expires < 'infinity' AND NOT EXISTS (SELECT FROM timed x WHERE x.task = t.id AND x.kind = 1)
		AND NOT EXISTS (SELECT FROM timed x WHERE x.task = t.id AND x.kind = 2)
UNION ALL
SELECT 'a task without a deadline has a timer of one', t.id, x.due::text
	FROM tq_internal.task t JOIN timed x ON x.task = t.id AND (x.kind = 2 OR (x.kind = 1 AND t.effective_deadline IS NULL))
	WHERE t.deadline = 'infinity'

-- counters
UNION ALL
SELECT 'the gauges of a queue are wrong', NULL, q.task_queue_id || ': ' || concat_ws(' ', s.pending, s.delayed, s.blocked, s.running, 'but', r.pending, r.delayed, r.blocked, r.running)
	FROM tq_internal.queue q JOIN tq.queue_stats s USING (task_queue_id)
		CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE h.place = 'pending' AND coalesce(t.effective_deadline, t.deadline) > tq_internal.clock_now()) AS pending,
				count(*) FILTER (WHERE h.place = 'delayed') AS delayed, count(*) FILTER (WHERE h.place = 'unscheduled') AS blocked,
				count(*) FILTER (WHERE h.place = 'running' AND u.taken_until > tq_internal.clock_now()) AS running
			FROM holder h JOIN tq_internal.task t ON t.id = h.task LEFT JOIN tq_internal.run u ON u.task = h.task AND u.state = 2
			WHERE t.queue = q.id) AS r
	WHERE (s.pending, s.delayed, s.blocked, s.running) IS DISTINCT FROM (r.pending, r.delayed, r.blocked, r.running)
UNION ALL
SELECT 'what quotas count of a queue is wrong', NULL, concat_ws(' ', q.task_queue_id, c.groups, c.unique_keys, c.foreign_dependencies, 'but', r)
	FROM tq_internal.queue q LEFT JOIN tq_internal.queue_counters() AS c ON c.queue = q.id
		CROSS JOIN LATERAL (SELECT (SELECT count(*) FROM tq_internal.task_group g WHERE g.queue = q.id) AS groups,
			(SELECT count(*) FROM tq_internal.unique_key k WHERE k.queue = q.id) AS keys,
			(SELECT count(*) FROM tq_internal.foreign_dependency f WHERE f.queue = q.id) AS edges) AS r
	WHERE (coalesce(c.groups, 0), coalesce(c.unique_keys, 0), coalesce(c.foreign_dependencies, 0)) IS DISTINCT FROM (r.groups, r.keys, r.edges)
UNION ALL
SELECT 'the counters of a group are wrong', g.id, concat_ws(' ', p, 'but', r)
	FROM tq_internal.task_group g CROSS JOIN LATERAL tq.group_progress(g.task_group_id) AS p
		CROSS JOIN LATERAL (SELECT count(*) AS tasks, count(*) FILTER (WHERE h.place = 'unscheduled') AS unscheduled,
				count(*) FILTER (WHERE h.place = 'delayed') AS delayed, count(*) FILTER (WHERE h.place = 'pending') AS pending,
				count(*) FILTER (WHERE h.place = 'running') AS running, count(*) FILTER (WHERE h.place IS NULL AND l.state = 3) AS completed,
				count(*) FILTER (WHERE h.place IS NULL AND l.state = 4) AS failed, count(*) FILTER (WHERE h.place IS NULL AND l.state = 5) AS exception,
				count(*) FILTER (WHERE h.place IS NULL AND l.state IN (4, 5) AND tq_internal.is_tolerated(y.policy, l.reason_resolved)) AS tolerated,
				min(t.created) AS first_created, max(l.resolved) FILTER (WHERE h.place IS NULL) AS last_resolved
			FROM tq_internal.task t LEFT JOIN tq_internal.policy y ON y.id = t.policy LEFT JOIN holder h ON h.task = t.id
				LEFT JOIN LATERAL (SELECT * FROM tq_internal.run u WHERE u.task = t.id ORDER BY u.run_id DESC LIMIT 1) AS l ON true
			WHERE t.group_id = g.id OR (t.task_id = g.task_group_id AND t.group_id IS NULL)) AS r
	WHERE (p.tasks, p.unscheduled, p.delayed, p.pending, p.running, p.completed, p.failed, p.exception, p.tolerated, p.first_created, p.last_resolved)
		IS DISTINCT FROM (r.tasks, r.unscheduled, r.delayed, r.pending, r.running, r.completed, r.failed, r.exception, r.tolerated, r.first_created, r.last_resolved)
ORDER BY 1, 2
