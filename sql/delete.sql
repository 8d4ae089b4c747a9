-- delete_task(): deletes a task in any state with all of its rows; its dependents stay, and show that.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- Rows that name a task, by table; timers and claim timers are stale, and harmless
CREATE FUNCTION pg_temp.rows_of(number bigint) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(place || ' ' || n, ', ' ORDER BY place), 'none') FROM (
		SELECT 'task' AS place, count(*) AS n FROM tq_internal.task WHERE id = number
		UNION ALL SELECT 'unscheduled', count(*) FROM tq_internal.unscheduled WHERE task = number
		UNION ALL SELECT 'unmet', count(*) FROM tq_internal.dependency_counter WHERE task = number
		UNION ALL SELECT 'pending', count(*) FROM tq_internal.pending WHERE task = number
		UNION ALL SELECT 'delayed', count(*) FROM tq_internal.delayed WHERE task = number
		UNION ALL SELECT 'run', count(*) FROM tq_internal.run WHERE task = number
		UNION ALL SELECT 'detail', count(*) FROM tq_internal.run_detail WHERE task = number
		UNION ALL SELECT 'artifact', count(*) FROM tq_internal.artifact WHERE task = number
		UNION ALL SELECT 'edge', count(*) FROM tq_internal.dependency WHERE number IN (required, dependent)
		UNION ALL SELECT 'letter', count(*) FROM tq_internal.dead_letter WHERE task = number
		UNION ALL SELECT 'postponed', count(*) FROM tq_internal.postponed WHERE task = number) t WHERE n > 0 $$;

-- One task for each state
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('first'));
SELECT tq.enqueue('regress/n', task_id => pg_temp.id('unsched'), dependencies => ARRAY[pg_temp.id('first')]);
SELECT tq.enqueue('regress/n', task_id => pg_temp.id('pending'));
SELECT tq.enqueue('regress/n', task_id => pg_temp.id('delayed'), delay => '1 hour');
SELECT count(tq.enqueue('regress/' || s, task_id => pg_temp.id(s), policy => '{"deadLetter": true}')) FROM unnest('{running,complete,failed,lost,overdue}'::text[]) s;
SELECT count(c.*) FROM unnest('{running,complete,failed,lost}'::text[]) s, LATERAL tq.claim_work('regress/' || s, 'g', 'w') c;
SELECT tq.create_artifact(pg_temp.id('complete'), 0, 'public/log', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain',
	'expires', to_char(now() AT TIME ZONE 'UTC' + '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'content', 'x')) IS NOT NULL AS made;
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('complete'), 0, result => '{"r": 1}'));
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('failed'), 0, error => '{"message": "m"}'));
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('lost'), 0, 'worker-shutdown'));
CREATE TEMP TABLE number AS SELECT rtrim(left(task_id::text, 8), '_') AS name, id FROM tq_internal.task;
SELECT name, pg_temp.rows_of(id) FROM number ORDER BY name COLLATE "C";

-- Past its deadline a task cannot be canceled, by any role, but can be deleted
SET tq.clock_offset = '2 days';
SELECT code, message FROM pg_temp.answer(format('SELECT tq.cancel_task(%L)', pg_temp.id('overdue')));
SELECT tq.delete_task(pg_temp.id('overdue'));
RESET tq.clock_offset;

SELECT count(tq.delete_task(pg_temp.id(name))) FROM number WHERE name NOT IN ('first', 'overdue');
SELECT name, pg_temp.rows_of(id) FROM number ORDER BY name COLLATE "C";
SELECT count(*) AS claimed FROM unnest('{n,running,lost}'::text[]) q, LATERAL tq.claim_work('regress/' || q, 'g', 'w', 10) c;

-- A second time there is no such task
SELECT code, message FROM pg_temp.answer(format('SELECT tq.delete_task(%L)', pg_temp.id('pending')));

-- A running claim is lost: the worker's calls return TQ404
SELECT code FROM pg_temp.answer(format('SELECT tq.reclaim_task(%L, 0)', pg_temp.id('running')));
SELECT code FROM pg_temp.answer(format('SELECT tq.report_completed(%L, 0)', pg_temp.id('running')));
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('running')], ARRAY[0]);

-- A dependent of a deleted task stays unscheduled, and shows what is missing
SELECT tq.enqueue('regress/n', task_id => pg_temp.id('after'), dependencies => ARRAY[pg_temp.id('first'), pg_temp.id('other')]) FROM tq.enqueue('regress/w', task_id => pg_temp.id('other'));
SELECT tq.delete_task(pg_temp.id('first'));
SELECT pg_temp.brief(tq.status(pg_temp.id('after')));
SELECT * FROM tq.dependency_results(pg_temp.id('after'));
SELECT count(*) FROM tq.claim_work('regress/w', 'g', 'w', 10);
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('other')], ARRAY[0]);
SELECT state, unmet FROM tq.task_details WHERE task_id = pg_temp.id('after');
SELECT * FROM tq.dependency_results(pg_temp.id('after'));
-- it can be scheduled by hand, and a new task with the deleted id does not meet the dependency
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('first'));
SELECT c.run_id, outcome FROM tq.claim_work('regress/w', 'g', 'w') c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id]);
SELECT pg_temp.brief(tq.status(pg_temp.id('after')));
SELECT pg_temp.brief(tq.schedule_task(pg_temp.id('after')));

-- The last unresolved task of a group is deleted: the group is resolved
SELECT count(tq.enqueue('regress/' || s, task_id => pg_temp.id(s), task_group_id => pg_temp.id('group'))) FROM unnest('{m1,m2,m3}'::text[]) s;
SELECT r.outcome FROM tq.claim_work('regress/m1', 'g', 'w') c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id]) r;
SELECT pg_temp.told();
SELECT tq.delete_task(pg_temp.id('m2'));
SELECT pg_temp.told();
SELECT count(*) FROM tq.messages(exchange => 'task-group-resolved', pattern => 'primary.' || pg_temp.id('group') || '.#');
SELECT tq.delete_task(pg_temp.id('m3'));
SELECT pg_temp.told();
SELECT pg_temp.told();
SELECT count(*) FROM tq.messages(exchange => 'task-group-resolved', pattern => 'primary.' || pg_temp.id('group') || '.#');

-- Only an administrator may delete
CREATE ROLE regress_tq_other;
SET ROLE regress_tq_other;
SELECT tq.delete_task('after___QAGAAAAAAAAAAA');
RESET ROLE;
DROP ROLE regress_tq_other;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
