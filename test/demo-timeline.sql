/*
 * demo-timeline.sql: the runs of a task group as a table and a timeline.
 *
 * One row for each run, in the order in which the tasks were first started, and
 * its time to the right of it; at the end the sums.  psql variables: group,
 * columns, killed (the time at which a worker was killed), red and plain for
 * colours, and colors, a text array from which the workers take theirs; it may
 * be empty.
 */
SELECT greatest(:columns - 38, 20) AS width
\gset

WITH run AS (
	SELECT o.name, r.*, coalesce(r.resolved, clock_timestamp()) AS ended,
		min(r.started) OVER (PARTITION BY r.task_id) AS first_started,
		r.reason_resolved IS NOT DISTINCT FROM 'claim-expired' AS lost
	FROM tq.task_details o JOIN tq.run_overview r USING (task_id)
	WHERE o.task_group_id = :'group'
), span AS (
	/* unit: seconds in a column */
	SELECT min(scheduled) AS began,
		extract(epoch FROM max(ended) - min(scheduled)) / :width AS unit
	FROM run
), worker AS (
	SELECT worker_id, right(worker_id, 1) AS mark,
		(:'colors'::text[])[1 + (row_number() OVER (ORDER BY worker_id) - 1)
			% greatest(cardinality(:'colors'::text[]), 1)] AS color
	FROM run
	WHERE worker_id IS NOT NULL
	GROUP BY worker_id
), place AS (
	/* the columns at which the run was scheduled, started, lost and ended */
	SELECT run.*, mark, color,
		floor(extract(epoch FROM scheduled - began) / unit)::int AS a,
		floor(extract(epoch FROM coalesce(started, ended) - began) / unit)::int AS b,
		CASE WHEN lost THEN
			floor(extract(epoch FROM :'killed'::timestamptz - began) / unit)::int END AS c,
		floor(extract(epoch FROM ended - began) / unit)::int AS d,
		CASE state WHEN 'completed' THEN '' ELSE ' ' || coalesce(reason_resolved, state) END AS remark
	FROM span, run LEFT JOIN worker USING (worker_id)
), bar AS (
	/* the remark stands to the right, or else to the left */
	SELECT *, CASE WHEN fits THEN repeat(' ', a) ELSE lpad(substr(remark, 2) || ' ', a) END
			|| repeat('.', b - a) AS before,
		repeat(coalesce(mark, ''), greatest(coalesce(c, d), b + 1) - b) AS alive,
		CASE WHEN lost THEN repeat('x', d - greatest(c, b + 1)) ELSE '' END AS dead,
		CASE WHEN fits THEN remark ELSE '' END AS after
	FROM (SELECT *, a <= length(remark) OR d + length(remark) <= :width AS fits FROM place) p
), step AS (
	/* seconds from one number of the scale to the next */
	SELECT min(s) AS s
	FROM span, unnest('{1,2,5,10,20,30,60,120,300,600}'::int[]) s
	WHERE s / unit >= 6
)
SELECT line FROM (
	SELECT 1 AS part, NULL::timestamptz AS at, '' AS task, 0 AS run,
		'task               run by   wait   run ' || string_agg(rpad(k * s || ' s',
			(floor((k + 1) * s / unit) - floor(k * s / unit))::int), '' ORDER BY k) AS line
	FROM span, step, generate_series(0, floor((:width - 4) * unit / s)::int) k
	UNION ALL
	SELECT 2, first_started, task_id::text, run_id,
		format('%-20s %s %-2s %5s %5s ', CASE run_id WHEN 0 THEN left(name, 20) ELSE '' END,
			run_id, coalesce(worker_id, ' -'), round(extract(epoch FROM started - scheduled), 1),
			round(extract(epoch FROM ended - started), 1))
		|| before || coalesce(color || alive || :'plain', alive)
		|| CASE dead WHEN '' THEN '' ELSE :'red' || dead || :'plain' END || after
	FROM bar
) t ORDER BY part, at, task, run;

SELECT '';

SELECT format('%s tasks, %s runs on %s workers in %s s; the runs together %s s',
	count(DISTINCT task_id), count(*), count(DISTINCT r.worker_id),
	round(extract(epoch FROM max(r.resolved) - min(r.scheduled)), 1),
	round(extract(epoch FROM sum(r.resolved - r.started)
		FILTER (WHERE r.reason_resolved <> 'claim-expired')), 1))
FROM tq.task_details o JOIN tq.run_overview r USING (task_id)
WHERE o.task_group_id = :'group';
