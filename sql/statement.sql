-- statement: a call sees the changes of earlier calls in the same statement.
\getenv srcdir PG_ABS_SRCDIR
\getenv builddir PG_ABS_BUILDDIR
\set helper :srcdir /sql/helper.psql
\set calls :builddir /test/calls.sql
\set ECHO none
\i :helper
\i :calls
\set ECHO all
\pset format unaligned
\pset footer off

SELECT tq.status(tq.enqueue('regress/w', task_id => pg_temp.id('one'))) ->> 'state' AS state;
SELECT (SELECT tq.task(id) ->> 'taskQueueId') AS queue, (SELECT count(*) FROM tq.statuses(ARRAY[id])) AS statuses,
	(SELECT tq.report_completed(c.task_id, c.run_id, result => '7') ->> 'state' FROM tq.claim_work('regress/w2', 'g', 'w') AS c) AS report, tq.result(id) AS result
	FROM tq.enqueue('regress/w2', task_id => pg_temp.id('two')) AS id;

-- What every function that reads shows of the changes of every function that
-- writes: in one statement with it the same as in the next one.  The calls are the
-- samples of src/sql/functions, each about the task, group and queue of a pair.
SET cron.database_name = 'elsewhere';	-- a pg_cron
SET client_min_messages = warning;

-- In a session whose clock is ahead
CREATE FUNCTION pg_temp.later(statement text, span text DEFAULT '1 min') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('tq.clock_offset', span, true);
	EXECUTE statement INTO result;
	PERFORM set_config('tq.clock_offset', '0', true);
	RETURN result;
END $$;

CREATE TEMP TABLE writer (name text, state text, call text);
INSERT INTO writer
	SELECT fn, state, format('(SELECT count(*) FROM %s.%s(%s))', schema, name, args) FROM call WHERE does = 'writes' AND NOT alone;
INSERT INTO writer VALUES ('rerun_task (downstream)', 'dead', $$tq.rerun_task('<t>', '1 h', true)$$);
UPDATE writer SET call = $$pg_temp.later($r$SELECT tq.reclaim_task('<t>', 0)$r$)$$ WHERE name = 'reclaim_task';
UPDATE writer SET call = $$pg_temp.later($r$SELECT count(*) FROM tq.upkeep()$r$, '25 h')$$, state = 'pending' WHERE name = 'upkeep';
-- What no function shows that is called here: rights, messages, jobs of pg_cron, counters
DELETE FROM writer WHERE name IN ('grant_scopes', 'revoke_scopes', 'grant_queue', 'revoke_queue', 'rotate_secret', 'bind', 'unbind', 'subscribe',
	'unsubscribe', 'ack', 'schedule_cron', 'unschedule_cron', 'pause_cron', 'resume_cron', 'reset_queue_stats', 'buckets_settled', 'prepare_drop');

CREATE TEMP TABLE reader (name text, call text);
INSERT INTO reader SELECT fn, format('%s.%s(%s)', schema, name, args) FROM call WHERE does = 'reads' AND NOT alone;
-- What shows times, locks, counters, messages or rights
DELETE FROM reader WHERE name IN ('why', 'critical_path', 'group_gantt', 'report_html', 'health', 'metrics', 'task_name_stats', 'queue_history', 'top', 'messages', 'message',
	'fetch', 'current_scopes', 'assume');

-- The rows of a call, or its error; optionally with a call before it in the same statement that writes
CREATE FUNCTION pg_temp.show(reader text, writer text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE coalesce('WITH w AS MATERIALIZED (SELECT ' || writer || ')', 'WITH w AS (SELECT 1)') ||
		' SELECT (SELECT string_agg(r::text, E''\n'') FROM ' || reader || ' AS r) FROM w' INTO result;
	RETURN result;
EXCEPTION WHEN SQLSTATE 'TQ404' THEN
	result := SQLERRM;
	IF writer IS NOT NULL THEN		-- which the error has rolled back
		EXECUTE 'SELECT ' || writer;
	END IF;
	RETURN result;
END $$;

-- Every pair, each in a subtransaction that is rolled back
CREATE FUNCTION pg_temp.compare(OUT writer text, OUT reader text, OUT is_same bool, OUT is_changed bool) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
	w record; r record; n int := 0; before text; within text; after text; written text; reading text; facts jsonb;
BEGIN
	FOR w IN SELECT x.*, s.statement FROM writer AS x JOIN state AS s ON s.name = x.state ORDER BY x.name LOOP
		FOR r IN SELECT * FROM reader AS x ORDER BY x.name LOOP
			n := n + 10;
			facts := pg_temp.facts(w.state, format('pair/q%s', n), jsonb_build_object('t', pg_temp.id(n), 'g', pg_temp.id(n + 1), 'd', pg_temp.id(n + 2),
				'u', pg_temp.id(n + 3), 'n', pg_temp.id(n + 4), 'c', pg_temp.id('two')));
			written := pg_temp.fill(w.call, facts);
			reading := pg_temp.fill(r.call, facts);
			BEGIN
				EXECUTE pg_temp.fill(w.statement, facts);
				before := pg_temp.show(reading);
				within := pg_temp.show(reading, written);
				after := pg_temp.show(reading);
				RAISE USING ERRCODE = 'XX999';
			EXCEPTION WHEN SQLSTATE 'XX999' THEN
				writer := w.name; reader := r.name;
				is_same := within IS NOT DISTINCT FROM after;
				is_changed := within IS DISTINCT FROM before;
				RETURN NEXT;
			END;
		END LOOP;
	END LOOP;
END $$;

\set ECHO none
-- What is known to show the changes of what.  Of a function that is not here a change is shown somewhere, or it shows one.
CREATE TEMP TABLE known (writers text[], readers text[]);
INSERT INTO known VALUES
	('{add_dependencies}', '{group_dot, group_graph, group_mermaid, group_tree, list_dependent_tasks, list_task_group, task, tasks}'),
	('{cancel_group_callbacks, on_group_resolved, resume_queue}', '{}'),
	('{cancel_task}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_pending_tasks, list_task_group, status, statuses, task_queue_counts, taskbroker_status}'),
	('{cancel_task_group}', '{bucket_counts, conductor_status, group_dot, group_graph, group_mermaid, group_progress, group_tree, list_pending_tasks,
		list_task_group, status, statuses, task_queue_counts, taskbroker_status}'),
	('{change_task_group_priority, change_task_priority}', '{list_pending_tasks, list_task_group, status, statuses, task, tasks}'),
	('{claim_lines, claim_lines/2, claim_work, claim_work/2}', '{conductor_status, dependency_results, get_task_queue,
		get_worker, group_dot, group_graph, group_mermaid, group_progress, group_tree, list_claimed_tasks, list_pending_tasks,
		list_task_group, list_task_queues, list_workers, status, statuses, task_queue_counts,
		taskbroker_status}'),
	('{claim_task}', '{conductor_status, dependency_results, get_task_queue, group_dot, group_graph, group_mermaid,
		group_progress, group_tree, list_claimed_tasks, list_pending_tasks, list_task_group, list_task_queues,
		status, statuses, task_queue_counts, taskbroker_status}'),
	('{create_artifact, finish_artifact}', '{artifact_info, get_artifact, get_latest_artifact, latest_artifact_info, list_artifacts,
		list_latest_artifacts}'),
	('{create_task, create_tasks, enqueue}', '{artifact_info, bucket_counts, conductor_status, get_artifact, get_latest_artifact, get_task_group,
		group_dot, group_graph, group_mermaid, group_progress, group_tree, has_task, has_task_group, latest_artifact_info, list_artifacts, list_dependent_tasks,
		list_latest_artifacts, list_pending_tasks, list_task_group, result, status, statuses, task, task_queue_counts,
		taskbroker_status, tasks}'),
	('{declare_worker}', '{get_task_queue, list_task_queues,
		list_workers}'),
	('{defer_task}', '{conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree, list_claimed_tasks,
		list_task_group, status, statuses, task_queue_counts, taskbroker_status}'),
	('{define_task}', '{artifact_info, bucket_counts, conductor_status, get_artifact, get_latest_artifact, get_task_group, group_dot,
		group_graph, group_mermaid, group_progress, group_tree, has_task, has_task_group, latest_artifact_info, list_artifacts, list_dependent_tasks,
		list_latest_artifacts, list_task_group, result, status, statuses, task, taskbroker_status, tasks}'),
	('{delete_task}', '{artifact_info, bucket_counts, conductor_status, dependency_results, get_artifact, get_latest_artifact, get_worker,
		group_dot, group_graph, group_mermaid, group_progress, group_tree, has_task, latest_artifact_info, list_artifacts, list_claimed_tasks, list_dependent_tasks,
		list_latest_artifacts, list_task_group, list_workers, result, status, statuses, task, task_queue_counts, taskbroker_status, tasks}'),
	('{discard_dead_letter}', '{list_dead_letters}'),
	('{enqueue_tasks}', '{artifact_info, bucket_counts, conductor_status, dependency_results, get_artifact, get_latest_artifact, get_task_group,
		group_dot, group_graph, group_mermaid, group_progress, group_tree, has_task, has_task_group, latest_artifact_info, list_artifacts, list_dependent_tasks,
		list_latest_artifacts, list_pending_tasks, list_task_group, result, status, statuses, task, task_queue_counts,
		taskbroker_status, tasks}'),
	('{fire_cron, run_cron_now}', '{bucket_counts, list_pending_tasks, task_queue_counts}'),
	('{pause_queue, set_queue}', '{get_task_queue}'),
	('{purge}', '{artifact_info, bucket_counts, conductor_status, get_artifact, get_latest_artifact, get_worker, latest_artifact_info,
		list_artifacts, list_dependent_tasks, list_latest_artifacts, list_workers, result, status, statuses, task, taskbroker_status, tasks}'),
	('{quarantine_worker}', '{get_worker, list_workers}'),
	('{reclaim_task}', '{get_task_queue, get_worker, list_task_group, list_task_queues,
		list_workers, status, statuses}'),
	('{redrive, redrive_queue, rerun_task (downstream), retry_task_group}', '{bucket_counts, conductor_status, get_latest_artifact,
		latest_artifact_info, list_dead_letters, list_pending_tasks, status, statuses, task_queue_counts, taskbroker_status}'),
	('{report_completed, resolve/2}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_claimed_tasks, list_dependent_tasks, list_pending_tasks, list_task_group, result, status, statuses,
		task_queue_counts, taskbroker_status}'),
	('{report_exception, worker_removed}', '{conductor_status, dependency_results, get_latest_artifact, group_dot, group_graph, group_mermaid, group_progress,
		group_tree, latest_artifact_info, list_claimed_tasks, list_pending_tasks, list_task_group, status, statuses,
		task_queue_counts, taskbroker_status}'),
	('{report_failed}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_claimed_tasks, list_dead_letters, list_task_group, status, statuses, task_queue_counts, taskbroker_status}'),
	('{report_progress}', '{group_dot, group_graph, group_mermaid, group_progress, group_tree, list_task_group, status, statuses}'),
	('{rerun_task}', '{bucket_counts, conductor_status, get_latest_artifact, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		latest_artifact_info, list_pending_tasks, list_task_group, result, status, statuses, task_queue_counts,
		taskbroker_status}'),
	('{reschedule_task}', '{group_dot, group_graph, group_mermaid, group_progress, group_tree, list_pending_tasks, list_task_group, status,
		statuses, task_queue_counts, taskbroker_status}'),
	('{resolve, resolve_lines}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_claimed_tasks, list_dependent_tasks, list_pending_tasks, list_task_group, status, statuses, task_queue_counts,
		taskbroker_status}'),
	('{resolve_and_claim}', '{get_latest_artifact, get_worker, group_dot, group_graph, group_mermaid, group_tree, latest_artifact_info, list_claimed_tasks,
		list_task_group, list_workers, status, statuses}'),
	('{schedule_task}', '{artifact_info, conductor_status, get_artifact, get_latest_artifact, group_dot, group_graph, group_mermaid, group_progress,
		group_tree, latest_artifact_info, list_artifacts, list_dependent_tasks, list_latest_artifacts, list_pending_tasks, list_task_group,
		status, statuses, task_queue_counts}'),
	('{seal_task_group}', '{get_task_group}'),
	('{set_buckets}', '{buckets}'),
	('{skip_task}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_dependent_tasks, list_pending_tasks, list_task_group, result, status, statuses, taskbroker_status}'),
	('{upkeep}', '{bucket_counts, conductor_status, dependency_results, group_dot, group_graph, group_mermaid, group_progress, group_tree,
		list_dependent_tasks, list_pending_tasks, list_task_group, status, statuses, task_queue_counts, taskbroker_status}');

\set ECHO all
SET client_min_messages = error;
CREATE TEMP TABLE pair AS SELECT * FROM pg_temp.compare();
-- Pairs in which a change is not seen in the same statement: none
SELECT writer, reader FROM pair WHERE NOT is_same;
-- Pairs that are known, and show no change, or that show one, and are not known as such: none
WITH w AS (SELECT DISTINCT unnest(writers) AS writer FROM known), r AS (SELECT DISTINCT unnest(readers) AS reader FROM known),
	k AS (SELECT writer, reader FROM known, unnest(writers) AS writer, unnest(readers) AS reader)
SELECT writer, reader, k IS NOT NULL AS is_known, is_changed
	FROM w CROSS JOIN r LEFT JOIN k USING (writer, reader) LEFT JOIN pair AS p USING (writer, reader)
	WHERE (k IS NOT NULL) IS DISTINCT FROM is_changed ORDER BY writer, reader;
-- Functions that write and of which nothing is shown, and functions that read and show nothing: none
SELECT writer FROM pair WHERE NOT EXISTS (SELECT FROM known WHERE writer = ANY (writers)) GROUP BY writer HAVING NOT bool_or(is_changed);
SELECT reader FROM pair GROUP BY reader HAVING NOT bool_or(is_changed);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FILTER (WHERE is_changed) > 100 AS many, count(*) FILTER (WHERE NOT is_same) AS not_seen FROM pg_temp.compare();
ROLLBACK;
RESET client_min_messages;

-- A function that reads is VOLATILE, because its result may change within a statement
SELECT p.proname FROM pg_proc AS p JOIN reader AS r ON r.name = p.proname WHERE p.pronamespace = 'tq'::regnamespace AND p.provolatile <> 'v';
