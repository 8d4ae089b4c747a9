-- Invariants of the tables, for tests: what does not hold, and of which task.
WITH last AS (
	SELECT DISTINCT ON (task) * FROM tq_internal.run ORDER BY task, run_id DESC
), holder AS (
	SELECT task, 'unscheduled' AS place, NULL::int AS run_id FROM tq_internal.unscheduled
	UNION ALL SELECT task, 'pending', run_id FROM tq_internal.pending
	UNION ALL SELECT task, 'delayed', run_id FROM tq_internal.delayed
	UNION ALL SELECT task, 'running', run_id FROM last WHERE state = 2
), timer AS (	-- by task, so that large databases are checked by a hash
	SELECT kind, NULL::timestamptz AS due, unnest(tasks) AS task FROM tq_internal.timer WHERE kind IN (1, 9)
	UNION ALL SELECT 1, NULL, task FROM tq_internal.left_timer WHERE NOT is_claim
	UNION ALL SELECT 0, due, unnest(tasks) FROM tq_internal.claim_timer
	UNION ALL SELECT 0, due, task FROM tq_internal.left_timer WHERE is_claim
), task AS (
	SELECT t.id, coalesce(t.effective_deadline, t.deadline) AS deadline, count(h.task) AS holders, max(h.place) AS place,
		max(h.run_id) AS held,
		(SELECT count(*) FROM tq_internal.run r WHERE r.task = t.id) AS runs,
		(SELECT max(run_id) FROM tq_internal.run r WHERE r.task = t.id) AS last_run
	FROM tq_internal.task t LEFT JOIN holder h ON h.task = t.id GROUP BY t.id
)
SELECT 'more than one holder', id FROM task WHERE holders > 1
UNION ALL
SELECT 'no holder and no run', id FROM task WHERE holders = 0 AND runs = 0
UNION ALL
SELECT 'holder without a task', task FROM holder h
	WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = h.task)
UNION ALL
SELECT 'runs not dense', id FROM task WHERE runs <> COALESCE(last_run + 1, 0)
UNION ALL
SELECT 'waiting run is not the next', id FROM task
	WHERE place IN ('pending', 'delayed') AND held <> runs
UNION ALL
SELECT 'unscheduled with a run', id FROM task WHERE place = 'unscheduled' AND runs > 0
UNION ALL
SELECT 'earlier run is not resolved', r.task FROM tq_internal.run r JOIN last l USING (task)
	WHERE r.run_id < l.run_id AND (r.state < 3 OR r.resolved IS NULL)
UNION ALL
SELECT 'running and waiting at once', h.task FROM holder h JOIN tq_internal.run r USING (task)
	WHERE h.place IN ('pending', 'delayed') AND r.state = 2
UNION ALL
SELECT 'running without a lease', task FROM last l WHERE state = 2
	AND NOT EXISTS (SELECT FROM timer e WHERE e.kind = 0 AND e.task = l.task AND e.due <= l.taken_until)
UNION ALL
SELECT 'unresolved without a deadline timer', id FROM task t WHERE holders > 0 AND t.deadline < 'infinity'
	AND NOT EXISTS (SELECT FROM timer e WHERE e.kind = 1 AND e.task = t.id)
UNION ALL
SELECT 'unsettled dependencies that are not counted', u.task FROM tq_internal.unscheduled u WHERE u.stripes = 0
	AND u.unmet < (SELECT count(*) FROM tq_internal.foreign_dependency f WHERE f.dependent = u.task AND NOT f.settled)
UNION ALL
SELECT 'met dependency that no timer settles', f.dependent FROM tq_internal.foreign_dependency f JOIN last l ON l.task = f.required
	WHERE NOT f.settled AND l.state = 3 AND l.run_id >= f.from_run
	AND NOT EXISTS (SELECT FROM timer e WHERE e.kind = 9 AND e.task = f.required);
