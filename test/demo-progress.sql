/*
 * demo-progress.sql: how far a task group is, as lines for a terminal.
 *
 * psql variables: group, columns, workers (a text array), victim (the one that
 * was killed), gone (the one that has left), and what to send to the terminal
 * for colours: green, yellow, cyan, red, plain.
 */
WITH p AS (
	SELECT *, tasks - completed - failed - exception AS unresolved,
		clock_timestamp() - first_created AS age
	FROM tq.group_progress(:'group')
), kind (n, mark, color, word, tasks) AS (
	SELECT v.* FROM p, LATERAL (VALUES
		(1, '#', :'green', 'completed', completed),
		(2, 'x', :'red', 'failed', failed + exception),
		(3, '=', :'yellow', 'running', running),
		(4, '-', :'cyan', 'pending', pending),
		(5, '.', '', 'unscheduled', unscheduled)) v (n, mark, color, word, tasks)
), bar (n, mark, color, first, last) AS (
	SELECT n, mark, color,
		(sum(tasks) OVER (ORDER BY n) - tasks) * (:columns - 2) / (SELECT tasks FROM p),
		sum(tasks) OVER (ORDER BY n) * (:columns - 2) / (SELECT tasks FROM p)
	FROM kind
), worker (n, id, line) AS (
	SELECT w.n, w.id, CASE
			WHEN w.id = :'victim' AND r.run_id IS NOT NULL THEN
				format('killed; its claim of "%s" expires in %s s', o.name,
					round(greatest(extract(epoch FROM r.taken_until - clock_timestamp()), 0), 1))
			WHEN w.id = :'victim' THEN 'killed'
			WHEN r.run_id IS NULL AND w.id = :'gone' THEN 'has left'
			WHEN r.run_id IS NULL THEN 'idle'
			WHEN r.run_id = 0 THEN o.name
			ELSE format('%s, run %s (%s)', o.name, r.run_id, r.reason_created) END
	FROM unnest(:'workers'::text[]) WITH ORDINALITY w (id, n)
		LEFT JOIN tq.task_details o ON o.worker_id = w.id AND o.state = 'running'
			AND o.task_group_id = :'group'
		LEFT JOIN tq.run_overview r ON r.task_id = o.task_id AND r.run_id = o.last_run_id
)
SELECT rpad(format('tq builds tq: %s of %s tasks resolved', tasks - unresolved, tasks), :columns - 10)
	|| lpad(round(extract(epoch FROM age), 1) || ' s', 10) FROM p
UNION ALL
SELECT '[' || string_agg(color || repeat(mark, (floor(last) - floor(first))::int)
	|| CASE color WHEN '' THEN '' ELSE :'plain' END, '' ORDER BY n) || ']' FROM bar
UNION ALL
SELECT string_agg(format('%s%s %s %s%s', color, mark, tasks, word,
	CASE color WHEN '' THEN '' ELSE :'plain' END), '   ' ORDER BY n)
FROM kind WHERE tasks > 0 OR word <> 'failed'
UNION ALL
SELECT CASE id WHEN :'victim' THEN :'red' ELSE '' END
	|| left('  ' || id || '  ' || line, :columns)
	|| CASE id WHEN :'victim' THEN :'plain' ELSE '' END
FROM (SELECT * FROM worker ORDER BY n) w;
