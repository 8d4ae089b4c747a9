-- statement: a call sees the changes of earlier calls in the same statement.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT tq.status(tq.enqueue('regress/w', task_id => pg_temp.id('one'))) ->> 'state' AS state;
SELECT (SELECT tq.task(id) ->> 'taskQueueId') AS queue, (SELECT count(*) FROM tq.statuses(ARRAY[id])) AS statuses,
	(SELECT tq.report_completed(c.task_id, c.run_id, result => '7') ->> 'state' FROM tq.claim_work('regress/w2', 'g', 'w') AS c) AS report, tq.result(id) AS result
	FROM tq.enqueue('regress/w2', task_id => pg_temp.id('two')) AS id;

-- What every function that reads shows of the changes of every function that
-- writes: in one statement with it the same as in the next one.
-- $t is a task, $g its group, $d a dependent of it, $q its queue, $u an upload.
SET cron.database_name = 'elsewhere';	-- a pg_cron
SET client_min_messages = warning;
CREATE TEMP TABLE fixture (name text PRIMARY KEY, statement text);
INSERT INTO fixture VALUES
	('nothing', 'SELECT 1'),
	('pending', $$SELECT tq.enqueue($q, task_id => $t, task_group_id => $g), tq.enqueue($q, task_id => $d, dependencies => ARRAY[$t])$$),
	('running', $$SELECT tq.enqueue($q, task_id => $t, task_group_id => $g, policy => '{"deadLetter": true}'), tq.enqueue('regress/d', task_id => $d, dependencies => ARRAY[$t]),
		(SELECT run_id FROM tq.claim_work($q, 'g', 'w'))$$),
	('uploading', $$SELECT tq.enqueue($q, task_id => $t), (SELECT run_id FROM tq.claim_work($q, 'g', 'w')),
		tq.create_artifact($t, 0, 'public/a', jsonb_build_object('storageType', 'object', 'contentType', 'text/plain', 'uploadId', $u, 'expires', now() + interval '1 h'))$$),
	('completed', $$SELECT tq.enqueue($q, task_id => $t), (SELECT run_id FROM tq.claim_work($q, 'g', 'w')), tq.report_completed($t, 0)$$),
	('dead', $$SELECT tq.enqueue($q, task_id => $t, policy => '{"deadLetter": true}'), (SELECT run_id FROM tq.claim_work($q, 'g', 'w')), tq.report_failed($t, 0)$$),
	('unscheduled', $$SELECT tq.enqueue($q, task_id => $t, task_group_id => $g, dependencies => ARRAY[$t])$$),
	('cron', $$SELECT name FROM tq.schedule_cron('cr', '* * * * *', $q)$$),
	('sealed', $$SELECT tq.enqueue($q, task_id => $t, task_group_id => $g), tq.seal_task_group($g)$$);

CREATE TEMP TABLE writer (name text, fixture text, call text);
INSERT INTO writer VALUES
	('create_task', 'nothing', $$tq.create_task($t, pg_temp.def(jsonb_build_object('taskQueueId', $q, 'taskGroupId', $g)))$$),
	('create_tasks', 'nothing', $$tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', $t, 'task', pg_temp.def(jsonb_build_object('taskQueueId', $q, 'taskGroupId', $g)))))$$),
	('define_task', 'nothing', $$tq.define_task($t, pg_temp.def(jsonb_build_object('taskQueueId', $q)))$$),
	('enqueue', 'nothing', $$tq.enqueue($q, task_id => $t, task_group_id => $g)$$),
	('fire_cron', 'cron', $$tq.fire_cron('cr')$$),
	('run_cron_now', 'cron', $$tq.run_cron_now('cr')$$),
	('enqueue_tasks', 'nothing', $$tq.enqueue_tasks($q, ARRAY['{}', '{}']::jsonb[], ARRAY[$t, $d], task_group_id => $g)$$),
	('schedule_task', 'unscheduled', $$tq.schedule_task($t)$$),
	('rerun_task', 'completed', $$tq.rerun_task($t)$$),
	('rerun_task (downstream)', 'dead', $$tq.rerun_task($t, '1 h', true)$$),
	('add_dependencies', 'unscheduled', $$tq.add_dependencies($t, ARRAY(SELECT o.task_id FROM tq.task_overview AS o WHERE o.state = 'completed' ORDER BY o.task_id LIMIT 1))$$),
	('reschedule_task', 'pending', $$tq.reschedule_task($t, now() + interval '1 h')$$),
	('cancel_task', 'pending', $$tq.cancel_task($t)$$),
	('skip_task', 'pending', $$tq.skip_task($t, '1')$$),
	('change_task_priority', 'pending', $$tq.change_task_priority($t, 'high')$$),
	('change_task_group_priority', 'pending', $$tq.change_task_group_priority($g, 'high')$$),
	('seal_task_group', 'pending', $$tq.seal_task_group($g)$$),
	('on_group_resolved', 'pending', $$tq.on_group_resolved($g, $q) IS NOT NULL$$),
	('cancel_group_callbacks', 'pending', $$tq.cancel_group_callbacks($g)$$),
	('cancel_task_group', 'sealed', $$tq.cancel_task_group($g)$$),
	('retry_task_group', 'dead', $$tq.retry_task_group($t, '1 h')$$),
	('claim_work', 'pending', $$(SELECT run_id FROM tq.claim_work($q, 'g', 'w'))$$),
	('claim_work_of_queues', 'pending', $$(SELECT run_id FROM tq.claim_work(ARRAY[$q], 'g', 'w'))$$),
	('claim_lines', 'pending', $$(SELECT tq.claim_lines($q, 'g', 'w'))$$),
	('claim_lines_of_queues', 'pending', $$(SELECT tq.claim_lines(ARRAY[$q], 'g', 'w'))$$),
	('claim_task', 'pending', $$(SELECT run_id FROM tq.claim_task($t, 0, 'g', 'w'))$$),
	('reclaim_task', 'running', $$pg_temp.later($r$SELECT tq.reclaim_task($t, 0)$r$)$$),
	('report_completed', 'running', $$tq.report_completed($t, 0, result => '{"a": 1}')$$),
	('report_failed', 'running', $$tq.report_failed($t, 0, error => '{"message": "m"}')$$),
	('report_exception', 'running', $$tq.report_exception($t, 0, 'worker-shutdown')$$),
	('defer_task', 'running', $$tq.defer_task($t, 0, '1 h')$$),
	('report_progress', 'running', $$tq.report_progress($t, 0, 1, 2)$$),
	('resolve', 'running', $$(SELECT outcome FROM tq.resolve(ARRAY[$t], '{0}'))$$),
	('resolve (reports)', 'running', $$(SELECT outcome FROM tq.resolve(jsonb_build_array(jsonb_build_object('taskId', $t, 'runId', 0, 'result', 1))))$$),
	('resolve_lines', 'running', $$tq.resolve_lines($t || E'\t0\n')$$),
	('resolve_and_claim', 'running', $$(SELECT string_agg(outcome, '') FROM tq.resolve_and_claim(jsonb_build_array(jsonb_build_object('taskId', $t, 'runId', 0, 'reason', 'worker-shutdown')), $q, 'g', 'w'))$$),
	('quarantine_worker', 'running', $$tq.quarantine_worker(split_part($q, '/', 1), split_part($q, '/', 2), 'g', 'w', '2100-01-01')$$),
	('declare_worker', 'running', $$tq.declare_worker(split_part($q, '/', 1), split_part($q, '/', 2), 'g', 'w2', now() + interval '2 days')$$),
	('worker_removed', 'running', $$(SELECT string_agg(outcome, '') FROM tq.worker_removed(split_part($q, '/', 1), split_part($q, '/', 2), 'g', 'w', 'gone'))$$),
	('set_queue', 'pending', $$tq.set_queue($q, '{"claimTimeout": 60}')$$),
	('set_buckets', 'pending', $$tq.set_buckets('{[0,1024)}') IS NOT NULL$$),
	('pause_queue', 'pending', $$tq.pause_queue($q)$$),
	('resume_queue', 'pending', $$tq.resume_queue($q)$$),
	('create_artifact', 'running', $$tq.create_artifact($t, 0, 'public/a', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'content', 'x', 'expires', now() + interval '1 h'))$$),
	('finish_artifact', 'uploading', $$tq.finish_artifact($t, 0, 'public/a', $u)$$),
	('redrive', 'dead', $$tq.redrive($t)$$),
	('redrive_queue', 'dead', $$tq.redrive_queue($q)$$),
	('discard_dead_letter', 'dead', $$tq.discard_dead_letter($t)$$),
	('delete_task', 'running', $$tq.delete_task($t)$$),
	('purge', 'dead', $$tq.purge($q, older_than => '0')$$),
	('upkeep', 'pending', $$pg_temp.later($r$SELECT count(*) FROM tq.upkeep()$r$, '25 h')$$);

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

CREATE TEMP TABLE reader (name text, call text);
INSERT INTO reader VALUES
	('status', 'tq.status($t)'), ('task', 'tq.task($t)'), ('result', 'tq.result($t)'), ('dependency_results', 'tq.dependency_results($d)'),
	('statuses', 'tq.statuses(ARRAY[$t])'), ('tasks', 'tq.tasks(ARRAY[$t])'), ('list_dependent_tasks', 'tq.list_dependent_tasks($t)'),
	('get_task_group', 'tq.get_task_group($g)'), ('list_task_group', 'tq.list_task_group($g)'), ('group_progress', 'tq.group_progress($g)'), ('group_tree', 'tq.group_tree($g)'), ('group_dot', 'tq.group_dot($g)'), ('group_mermaid', 'tq.group_mermaid($g)'),
	('get_worker', $$tq.get_worker(split_part($q, '/', 1), split_part($q, '/', 2), 'g', 'w')$$),
	('list_workers', $$tq.list_workers(split_part($q, '/', 1), split_part($q, '/', 2))$$), ('get_task_queue', 'tq.get_task_queue($q)'), ('get_queue_settings', 'tq.get_queue_settings($q)'),
	('get_worker_type', $$tq.get_worker_type(split_part($q, '/', 1), split_part($q, '/', 2))$$), ('list_task_queues', 'tq.list_task_queues(left($q, -1))'),
	('list_worker_types', $$tq.list_worker_types(split_part($q, '/', 1))$$), ('get_provisioner', $$tq.get_provisioner(split_part($q, '/', 1))$$), ('list_provisioners', 'tq.list_provisioners()'),
	('list_pending_tasks', 'tq.list_pending_tasks($q)'), ('list_claimed_tasks', 'tq.list_claimed_tasks($q)'), ('list_dead_letters', 'tq.list_dead_letters($q)'),
	('conductor_status', 'tq.conductor_status($t)'), ('taskbroker_status', 'tq.taskbroker_status($t)'),
	('status_row', 'tq.status_row($t)'), ('has_task', 'tq.has_task($t)'), ('has_task_group', 'tq.has_task_group($g)'), ('buckets', 'tq.buckets()'), ('bucket_counts', '(SELECT sum(task_groups), sum(unresolved) FROM tq.bucket_counts())'),
	('pending_tasks', 'tq.pending_tasks($q)'), ('task_queue_counts', 'tq.task_queue_counts($q)'),
	('get_artifact', $$tq.get_artifact($t, 0, 'public/a')$$), ('get_latest_artifact', $$tq.get_latest_artifact($t, 'public/a')$$),
	('artifact_info', $$tq.artifact_info($t, 0, 'public/a')$$), ('latest_artifact_info', $$tq.latest_artifact_info($t, 'public/a')$$),
	('list_artifacts', 'tq.list_artifacts($t, 0)'), ('list_latest_artifacts', 'tq.list_latest_artifacts($t)');

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
	w record; r record; n int := 0; before text; within text; after text; fixed text; written text; reading text;
	names text[]; parts text[];
BEGIN
	FOR w IN SELECT x.name, x.call, f.statement FROM writer AS x JOIN fixture AS f ON f.name = x.fixture ORDER BY x.name LOOP
		FOR r IN SELECT * FROM reader AS x ORDER BY x.name LOOP
			n := n + 1;
			fixed := w.statement; written := w.call; reading := r.call;
			names := ARRAY['$t', '$g', '$d', '$u', '$q'];
			parts := ARRAY[format('pg_temp.id(%s)', 10 * n), format('pg_temp.id(%s)', 10 * n + 1), format('pg_temp.id(%s)', 10 * n + 2),
				format('pg_temp.id(%s)', 10 * n + 3), format('''pair/q%s''', n)];
			FOR i IN 1..5 LOOP
				fixed := replace(fixed, names[i], parts[i]);
				written := replace(written, names[i], parts[i]);
				reading := replace(reading, names[i], parts[i]);
			END LOOP;
			BEGIN
				EXECUTE fixed;
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

SET client_min_messages = error;
SELECT writer, string_agg(reader, ' ' ORDER BY reader) FILTER (WHERE is_changed) AS shown_by, string_agg(reader, ' ') FILTER (WHERE NOT is_same) AS not_seen_by
	FROM pg_temp.compare() GROUP BY writer ORDER BY writer;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FILTER (WHERE is_changed) > 100 AS many, count(*) FILTER (WHERE NOT is_same) AS not_seen FROM pg_temp.compare();
ROLLBACK;
RESET client_min_messages;

-- The functions in neither list: none reads uncommitted changes of another, except why() and queue_counts(), which show times and locks, and those that show counters or scopes.  Without those that only bodies of functions call.
SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND p.provolatile <> 'i' AND p.prorettype <> 'trigger'::regtype
	AND NOT (p.pronamespace = 'tq_internal'::regnamespace AND (p.prosrc ~ '^tq_(sql|body)_' OR p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')))
	AND proname NOT IN (SELECT name FROM reader UNION ALL SELECT name FROM writer) ORDER BY 1;
-- A function that reads is VOLATILE, because its result may change within a statement
SELECT p.proname FROM pg_proc AS p JOIN reader AS r ON r.name = p.proname WHERE p.pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND p.provolatile <> 'v';
