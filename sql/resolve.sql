-- resolve: many runs in one call, each with its own outcome; dependents are released once.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT count(tq.enqueue('regress/w', task_id => pg_temp.id('t' || n), retries => n % 2)) FROM generate_series(1, 6) n;
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('all'), dependencies => ARRAY[pg_temp.id('t1'), pg_temp.id('t2'), pg_temp.id('t3')]);
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('any'), dependencies => ARRAY[pg_temp.id('t1'), pg_temp.id('t4'), pg_temp.id('t5')], requires => 'all-resolved');
SELECT task_id, run_id FROM tq.claim_work('regress/w', 'g', 'w', 6);

-- In the order of the arguments, with the outcome of each
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('t2'), pg_temp.id('nobody'), pg_temp.id('t1'), pg_temp.id('t1'), pg_temp.id('t3'), pg_temp.id('t3'), pg_temp.id('all')],
	ARRAY[0, 0, 0, 0, 1, 0, 0]);
SELECT rtrim(left(task_id::text, 8), '_') AS task, state, unmet FROM tq.task_details ORDER BY 1;
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('t1'), pg_temp.id('t2')], ARRAY[0, 0], 'failed');
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('t4'), pg_temp.id('t5')], ARRAY[0, 0], 'worker-shutdown');
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('t4'), pg_temp.id('t5')], ARRAY[0, 0], 'worker-shutdown');
SELECT rtrim(left(task_id::text, 8), '_') AS task, state, unmet FROM tq.task_details ORDER BY 1;
SELECT task_id, run_id FROM tq.claim_work('regress/w', 'g', 'w', 6);
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('t5'), pg_temp.id('t6')], ARRAY[1, 0], 'intermittent-task');
SELECT rtrim(left(task_id::text, 8), '_') AS task, pg_temp.brief(tq.status(task_id)) FROM tq.task_details ORDER BY 1;
SELECT * FROM tq.resolve('{}', '{}');

-- Each reason that may be given
SELECT count(tq.enqueue('regress/r', task_id => pg_temp.id('r' || n), retries => 1)) FROM generate_series(1, 20) n;
SELECT count(*) FROM tq.claim_work('regress/r', 'g', 'w', 20);
CREATE FUNCTION pg_temp.resolved(task tq.slugid, reason text, OUT code text, OUT outcome text, OUT status text) LANGUAGE plpgsql AS $$
BEGIN
	code := 'ok';
	SELECT r.outcome INTO outcome FROM tq.resolve(ARRAY[task], ARRAY[0], reason) r;
	status := pg_temp.brief(tq.status(task));
EXCEPTION WHEN OTHERS THEN
	code := SQLSTATE;
END $$;
SELECT reason, a.* FROM unnest('{completed,failed,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task,
	deadline-exceeded,claim-expired,superseded,rubbish}'::text[]) WITH ORDINALITY x (reason, n), pg_temp.resolved(pg_temp.id('r' || n), reason) a;

-- Arrays that do not match
SELECT what, a.code, CASE WHEN a.code <> 'ok' THEN a.message END AS message FROM (VALUES ('more tasks', 'ARRAY[pg_temp.id(''r1''), pg_temp.id(''r2'')], ARRAY[0]'), ('more runs', 'ARRAY[pg_temp.id(''r1'')], ARRAY[0, 0]'),
	('null task', 'ARRAY[pg_temp.id(''r1''), NULL], ARRAY[0, 0]'), ('null run', 'ARRAY[pg_temp.id(''r12'')], ARRAY[NULL]::int[]'),
	('two dimensions', 'ARRAY[[pg_temp.id(''r12'')], [pg_temp.id(''r13'')]], ARRAY[[0], [0]]'), ('other bounds', 'ARRAY[pg_temp.id(''r12'')], ''[5:5]={0}''')) x (what, args),
	pg_temp.answer(format('SELECT * FROM tq.resolve(%s)', args)) a;

-- A run whose number the column cannot hold does not exist, whatever the number is modulo 65,536
SELECT tq.enqueue('regress/n', task_id => pg_temp.id('narrow'));
SELECT task_id, run_id FROM tq.claim_work('regress/n', 'g', 'w');
SELECT call, a.code, CASE WHEN a.code <> 'ok' THEN a.message END AS message FROM (VALUES ('report_completed(%L, %s)'), ('report_failed(%L, %s)'), ('report_exception(%L, %s, ''malformed-payload'')'),
		('reclaim_task(%L, %s)'), ('report_progress(%L, %s, 1, 2)'), ('defer_task(%L, %s, ''1 s'')'), ('claim_task(%L, %s, ''g'', ''w'')'), ('create_artifact(%L, %s, ''public/a'', ''{"storageType": "inline", "content": "x", "contentType": "text/plain", "expires": "2000-01-01T00:00:00Z"}'' || jsonb_build_object(''expires'', now() + interval ''1 h''))'),
		('finish_artifact(%L, %s, ''public/a'', tq.slugid())'), ('get_artifact(%L, %s, ''public/a'')'), ('artifact_info(%L, %s, ''public/a'')'), ('list_artifacts(%L, %s)')) AS c (call),
	pg_temp.answer(format('SELECT tq.' || call, pg_temp.id('narrow'), 65536)) AS a;
SELECT run_id, outcome FROM tq.resolve(array_fill(pg_temp.id('narrow'), ARRAY[6]), '{65536, -65536, 131072, -2147483648, 32768, -1}');
SELECT pg_temp.brief(tq.status(pg_temp.id('narrow')));
SELECT run_id, outcome FROM tq.resolve(ARRAY[pg_temp.id('narrow'), pg_temp.id('narrow')], '{65536, 0}');

-- The claims of a transaction that was rolled back are no longer cached; no exchange is bound, so that the cache is used to find tasks
SELECT tq.unbind('tq_task_completed', 'task-completed'), tq.unbind('tq_task_group_resolved', 'task-group-resolved');
BEGIN;
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('back'));
SELECT run_id FROM tq.claim_work('regress/b', 'g', 'w');
ROLLBACK;
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('back'));
SELECT run_id FROM tq.claim_task(pg_temp.id('back'), 0, 'g', 'w');
SELECT run_id, outcome FROM tq.resolve(ARRAY[pg_temp.id('back'), pg_temp.id('back')], '{0, 0}');
-- a rollback to a savepoint
BEGIN;
SAVEPOINT s;
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('back2'));
SELECT run_id FROM tq.claim_work('regress/b', 'g', 'w');
ROLLBACK TO s;
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('back2'));
SELECT run_id FROM tq.claim_task(pg_temp.id('back2'), 0, 'g', 'w');
SELECT run_id, outcome FROM tq.resolve(ARRAY[pg_temp.id('back2'), pg_temp.id('back2')], '{0, 0}');
COMMIT;
-- nor is the number of a task that was deleted, and whose id a new task has
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('again'));
SELECT run_id FROM tq.claim_work('regress/b', 'g', 'w');
DELETE FROM tq_internal.run WHERE task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id('again'));
DELETE FROM tq_internal.task WHERE task_id = pg_temp.id('again');
SELECT tq.enqueue('regress/b', task_id => pg_temp.id('again'));
SELECT run_id FROM tq.claim_task(pg_temp.id('again'), 0, 'g', 'w');
SELECT run_id, outcome FROM tq.resolve(ARRAY[pg_temp.id('again'), pg_temp.id('again')], '{0, 0}');
SELECT pg_temp.brief(tq.status(t)) FROM unnest(ARRAY[pg_temp.id('back'), pg_temp.id('back2'), pg_temp.id('again')]) AS t;
SELECT tq.bind('tq_task_completed', 'task-completed'), tq.bind('tq_task_group_resolved', 'task-group-resolved');

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
