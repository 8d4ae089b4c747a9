-- doc/settings.md "Quotas": how much a role may make.  Sessions of roles, and settings
-- that are theirs: test/t/080_callers.pl.
BEGIN;
\ir helper.psql
SELECT tq.set_queue('counted/q', '{"maxPending": 9}') \g /dev/null
SELECT isnt((tq_internal.count_state()).source, 'rebuilding', '7 quotas: the server has counted');

SET cron.database_name = 'elsewhere';
SET client_min_messages = warning;
CREATE ROLE guest LOGIN;
CREATE ROLE other LOGIN IN ROLE guest;
SELECT tq.grant_queue(r::regrole, 'mine/*', access) FROM unnest('{guest,other}'::text[]) AS r, unnest('{produce,work,manage}'::text[]) AS access \g /dev/null
SELECT tq.grant_scopes(r::regrole, '{queue:set-queue:mine/*,queue:list-task-group:*}') FROM unnest('{guest,other}'::text[]) AS r \g /dev/null

-- What a call answers in a session of a role: 'ok', or the error.
CREATE FUNCTION pg_temp.as_role(role text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	me text := session_user;
	detail text;
	hint text;
BEGIN
	PERFORM set_config('session_authorization', role, true);
	EXECUTE call;
	PERFORM set_config('session_authorization', me, true);
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE, SQLERRM, detail, hint);
END $$;
CREATE FUNCTION pg_temp.as_guest(call text) RETURNS text LANGUAGE sql RETURN pg_temp.as_role('guest', call);
CREATE FUNCTION pg_temp.code(answer text) RETURNS text LANGUAGE sql RETURN split_part(answer, ' | ', 1);

-- ---- defaults ----

SELECT is(jsonb_object_agg(name, setting), '{"tq.max_queues": "1000", "tq.max_limited_queues": "100", "tq.max_workers": "10000", "tq.max_cron_jobs": "1000", "tq.max_callbacks": "10000",
	"tq.max_unresolved_tasks": "1000000", "tq.max_groups": "10000000", "tq.max_unique_keys": "10000000", "tq.max_foreign_dependencies": "1000000"}', '7 quotas: defaults')
	FROM pg_settings WHERE name LIKE 'tq.max%' AND min_val = '-1';
SELECT is(pg_temp.code(pg_temp.as_guest(format('SET %s = -1', name))), '42501', '7 quotas: the role cannot set ' || name) FROM pg_settings WHERE name LIKE 'tq.max%' AND min_val = '-1';
SELECT is(pg_temp.code(pg_temp.as_guest('ALTER ROLE guest SET tq.max_queues = -1')), '42501', '7 quotas: nor by ALTER ROLE');

-- ---- queues ----

SET tq.max_queues = 2;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q1')$$), 'ok', '7 queues: the first');
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q2', 'g', 'w')$$), 'ok', '7 queues: the second, by a worker');
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q3')$$),
	'53400 | role "guest" has too many queues | It would have 3, and may have 2 (tq.max_queues). | A queue counts until it has expired and has no tasks. Or a superuser can raise tq.max_queues for the role.',
	'7 queues: one too many');
SELECT is(pg_temp.code(pg_temp.as_guest(call)), '53400', '7 queues: also by ' || split_part(call, '(', 1)) FROM unnest(ARRAY[
	$$SELECT * FROM tq.claim_work('mine/q3', 'g', 'w')$$, $$SELECT tq.set_queue('mine/q3', '{"retainFailed": "1 day"}')$$,
	$$SELECT tq.enqueue_tasks('mine/q3', '{"{}"}')$$, $$SELECT tq.declare_worker('mine/q3', 'g', 'w', now())$$]) AS call;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q1'), tq.enqueue('mine/q2')$$), 'ok', '7 queues: those that there are');
SELECT is(pg_temp.as_role('other', $$SELECT tq.enqueue('mine/o1'), tq.enqueue('mine/q1')$$), 'ok', '7 queues: another role has a number of its own');
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/o1')$$), 'ok', '7 queues: what another role has made costs nothing');
SELECT is(pg_temp.as_role('other', $$SET LOCAL ROLE guest; SELECT tq.enqueue('mine/o2')$$), 'ok', '7 queues: SET ROLE changes nothing, for the role that has logged in');
SELECT is(pg_temp.code(pg_temp.as_role('other', $$SET LOCAL ROLE guest; SELECT tq.enqueue('mine/o3')$$)), '53400', '7 queues: and against it');
RESET ROLE;
SELECT ok(tq.enqueue('mine/s' || n) IS NOT NULL, '7 queues: a superuser has no quota') FROM generate_series(1, 3) AS n;
SAVEPOINT aborted;
SET tq.max_queues = 3;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q3')$$), 'ok', '7 queues: the third, once it may have three');
ROLLBACK TO aborted;
SET tq.max_queues = 3;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q4')$$), 'ok', '7 queues: what was rolled back does not count');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.enqueue('mine/q5')$$)), '53400', '7 queues: what was not, does');
SET tq.max_queues = 1;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q4')$$), 'ok', '7 queues: a lower number takes none away');
SET tq.max_queues = 0;
SELECT is(pg_temp.code(pg_temp.as_role('other', $$SELECT tq.enqueue('mine/o4')$$)), '53400', '7 queues: 0 is none');
SET tq.max_queues = -1;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/q5'), tq.enqueue('mine/q6')$$), 'ok', '7 queues: -1 is no limit');
SET tq.max_queues = 6;
UPDATE tq_internal.queue SET retired = pg_current_xact_id() WHERE task_queue_id = 'mine/q6';
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q7', '{"retainFailed": "1 day"}')$$), 'ok', '7 queues: one that has retired counts no longer');
SET tq.max_queues = 5;
DELETE FROM tq_internal.queue WHERE task_queue_id = 'mine/q7';
UPDATE tq_internal.queue SET retired = pg_current_xact_id() WHERE task_queue_id = 'mine/o1';
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/o1', '{"retainFailed": "1 day"}')$$), 'ok', '7 queues: one that is revived counts for the role that does it');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.enqueue('mine/q8')$$)), '53400', '7 queues: and fills its quota');
RESET tq.max_queues;

-- ---- queues with limits ----

SET tq.max_limited_queues = 1;
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q1', '{"retainFailed": "1 day", "concurrentLimit": 0}'), tq.set_queue('mine/q2', '{"agingInterval": "1 hour"}')$$), 'ok', '7 limits: settings that need no counters');
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q1', '{"concurrentLimit": 3}')$$), 'ok', '7 limits: one queue');
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q1', '{"concurrentLimit": 4, "maxPending": 9}')$$), 'ok', '7 limits: of which others are set');
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q2', '{"maxDelayed": 9}')$$),
	'53400 | role "guest" has too many queues with limits | It would have 2, and may have 1 (tq.max_limited_queues). | Remove limits with tq.set_queue(). Or a superuser can raise tq.max_limited_queues for the role.',
	'7 limits: one too many');
SELECT is(pg_temp.as_role('other', $$SELECT tq.set_queue('mine/q1', '{"maxRunning": 9}'), tq.set_queue('mine/q2', '{"rateCount": 9, "rateInterval": 1}')$$), 'ok', '7 limits: another role');
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q1', '{"concurrentLimit": null, "maxPending": 0, "maxRunning": null}')$$), 'ok', '7 limits: removed');
SELECT is(pg_temp.as_guest($$SELECT tq.set_queue('mine/q4', '{"maxDelayed": 9}')$$), 'ok', '7 limits: another queue may have some then');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.set_queue('mine/q1', '{"maxDelayed": 9}')$$)), '53400', '7 limits: but not both');
RESET tq.max_limited_queues;

-- ---- workers ----

SET tq.max_workers = 2;	-- it has one, of the queues above
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q1', 'g', 'w')$$), 'ok', '7 workers: the same name in another queue is another worker');
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q1', 'g', 'w2')$$),
	'53400 | role "guest" has too many workers | It would have 3, and may have 2 (tq.max_workers). | A worker counts until it has expired. Or a superuser can raise tq.max_workers for the role.',
	'7 workers: one too many');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.declare_worker('mine/q1', 'g', 'w3', now())$$)), '53400', '7 workers: also by declare_worker');
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q1', 'g', 'w')$$), 'ok', '7 workers: those that there are');
SET tq.clock_offset = '3 days';
SELECT tq.upkeep() \g /dev/null
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q1', 'g', 'w2')$$), 'ok', '7 workers: one that has expired counts no longer');
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q2', 'g', 'w')$$), 'ok', '7 workers: it counts again when it is seen');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/q1', 'g', 'w4')$$)), '53400', '7 workers: and fills the quota');
RESET tq.clock_offset;
RESET tq.max_workers;

-- ---- recurring tasks ----

SET tq.max_cron_jobs = 1;
SELECT is(pg_temp.as_guest($$SELECT tq.schedule_cron('a', '0 6 * * *', 'mine/q1')$$), 'ok', '7 cron: the first');
SELECT is(pg_temp.as_guest($$SELECT tq.schedule_cron('a', '0 7 * * *', 'mine/q1')$$), 'ok', '7 cron: again');
SELECT is(pg_temp.as_guest($$SELECT tq.schedule_cron('b', '0 7 * * *', 'mine/q1')$$),
	'53400 | role "guest" has too many recurring tasks | It would have 2, and may have 1 (tq.max_cron_jobs). | End others with tq.unschedule_cron(). Or a superuser can raise tq.max_cron_jobs for the role.',
	'7 cron: one too many');
SELECT is(pg_temp.as_role('other', $$SELECT tq.schedule_cron('o', '0 7 * * *', 'mine/q1')$$), 'ok', '7 cron: another role');
SELECT is(pg_temp.code(pg_temp.as_role('other', $$SET LOCAL ROLE guest; SELECT tq.schedule_cron('c', '0 7 * * *', 'mine/q1')$$)), '53400', '7 cron: they count for their owner');
RESET ROLE;
SELECT is(pg_temp.as_guest($$SELECT tq.unschedule_cron('a'); SELECT tq.schedule_cron('b', '0 7 * * *', 'mine/q1')$$), 'ok', '7 cron: one that was ended does not count');
RESET tq.max_cron_jobs;

-- ---- callbacks ----

SET tq.max_callbacks = 1;
SELECT pg_temp.create(name, format('{"$group": %s, "$expires": "1 day"}', to_jsonb(name || 'g'))::jsonb) FROM unnest('{a,b}'::text[]) AS name \g /dev/null
CREATE FUNCTION pg_temp.callback(name text, id text) RETURNS text LANGUAGE sql RETURN pg_temp.as_guest(format($$SELECT tq.on_group_resolved(%L, 'mine/q1', task_id => %L)$$, pg_temp.id(name), pg_temp.id(id)));
SELECT is(pg_temp.callback('ag', 'c1'), 'ok', '7 callbacks: the first');
SELECT is(pg_temp.callback('ag', 'c1'), 'ok', '7 callbacks: again');
SELECT is(pg_temp.callback('bg', 'c2'),
	'53400 | role "guest" has too many callbacks of groups | It would have 2, and may have 1 (tq.max_callbacks). | A callback counts until its group is resolved; see tq.cancel_group_callbacks(). Or a superuser can raise tq.max_callbacks for the role.',
	'7 callbacks: one too many');
SELECT tq.cancel_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.callback('bg', 'c2'), 'ok', '7 callbacks: a task for a group that is resolved is created at once');
SELECT is(pg_temp.as_guest(format('SELECT tq.cancel_group_callbacks(%L)', pg_temp.id('ag'))), 'ok', '7 callbacks: taken back');
SELECT is(pg_temp.callback('ag', 'c3'), 'ok', '7 callbacks: there is room again');
RESET tq.max_callbacks;

-- ---- unresolved tasks ----

SET tq.max_unresolved_tasks = 3;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1'), tq.enqueue('mine/t1', run_at => now() + interval '1 hour')$$), 'ok', '7 tasks: two');
SELECT is(pg_temp.as_guest($$SELECT tq.define_task(pg_temp.id('t3'), pg_temp.def('t3', '{"taskQueueId": "mine/t1"}'))$$), 'ok', '7 tasks: the third, which is unscheduled');
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$),
	'53400 | queue "mine/t1" has too many unresolved tasks for role "guest" | It would have 4, and may have 3 (tq.max_unresolved_tasks). | Create tasks when others are resolved, or cancel some. Or a superuser can raise tq.max_unresolved_tasks for the role.',
	'7 tasks: one too many');
SELECT is(pg_temp.code(pg_temp.as_guest(call)), '53400', '7 tasks: also by ' || split_part(call, '(', 1)) FROM unnest(ARRAY[
	$$SELECT tq.enqueue_tasks('mine/t1', '{"{}"}')$$, $$SELECT tq.enqueue_tasks('mine/t2', array_fill('{}'::jsonb, '{4}'))$$,
	$$SELECT tq.create_task(pg_temp.id('t4'), pg_temp.def('t4', '{"taskQueueId": "mine/t1"}'))$$,
	$$SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id(n), 'task', pg_temp.def(n, jsonb_build_object('taskQueueId', 'mine/' || n)))) FROM unnest('{t1,t2}'::text[]) AS n))$$]) AS call;
SELECT is(pg_temp.as_guest($$SELECT tq.define_task(pg_temp.id('t3'), pg_temp.def('t3', '{"taskQueueId": "mine/t1"}'))$$), 'ok', '7 tasks: one that there is');
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue_tasks('mine/t2', array_fill('{}'::jsonb, '{3}'))$$), 'ok', '7 tasks: another queue has a number of its own');
SELECT is(pg_temp.code(pg_temp.as_role('other', $$SELECT tq.enqueue('mine/t1')$$)), '53400', '7 tasks: whose tasks they are does not matter');
SELECT is(pg_temp.as_guest($$SELECT * FROM tq.claim_work('mine/t1', 'g', 'w')$$), 'ok', '7 tasks: a worker takes one');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$)), '53400', '7 tasks: which is not resolved');
SELECT ok(tq.enqueue('mine/t1') IS NOT NULL, '7 tasks: a superuser has no quota');
SELECT tq.cancel_task(task_id) FROM tq.task_details WHERE task_queue_id = 'mine/t1' AND task_id <> pg_temp.id('t3') \g /dev/null
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$), 'ok', '7 tasks: there is room when some are resolved');
SAVEPOINT aborted;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$), 'ok', '7 tasks: the last one');
ROLLBACK TO aborted;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$), 'ok', '7 tasks: what was rolled back does not count');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$)), '53400', '7 tasks: what was not, does');
SET tq.max_unresolved_tasks = 10000;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue_tasks('mine/t1', array_fill('{}'::jsonb, '{9988}')); SELECT tq.enqueue('mine/t1') FROM generate_series(1, 9)$$), 'ok', '7 tasks: up to a high number');
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$)), '53400', '7 tasks: exactly, in one session');
SET tq.max_unresolved_tasks = -1;
SELECT is(pg_temp.as_guest($$SELECT tq.enqueue('mine/t1')$$), 'ok', '7 tasks: -1 is no limit');
RESET tq.max_unresolved_tasks;

-- ---- groups, unique keys, dependencies on tasks of others: what a queue has ----

-- A call makes n of something in a queue.
CREATE FUNCTION pg_temp.make(what text, queue text, name text, n int DEFAULT 1) RETURNS text LANGUAGE sql RETURN pg_temp.as_guest(
	format(CASE what WHEN 'group' THEN $$SELECT tq.enqueue(%2$L, task_group_id => pg_temp.id(%1$L || i)) FROM generate_series(1, %3$s) AS i$$
		WHEN 'key' THEN $$SELECT tq.enqueue(%2$L, policy => jsonb_build_object('uniqueKey', %1$L || i)) FROM generate_series(1, %3$s) AS i$$
		ELSE $$SELECT tq.create_task(pg_temp.id('d' || %1$L), pg_temp.def(%1$L, jsonb_build_object('taskQueueId', %2$L, 'dependencies',
			(SELECT jsonb_agg(pg_temp.id('bank' || i)) FROM generate_series(1, %3$s) AS i))))$$ END, name, queue, n));
SELECT tq.grant_queue('guest', 'bank/*', 'depend') \g /dev/null
SELECT pg_temp.create('bank' || i, '{"taskQueueId": "bank/q", "$deadline": "1 day", "$expires": "1 day"}') FROM generate_series(1, 3) AS i \g /dev/null
SELECT set_config(setting, '2', false) FROM unnest('{tq.max_groups,tq.max_unique_keys,tq.max_foreign_dependencies}'::text[]) AS setting \g /dev/null
SELECT is(pg_temp.make(what, 'mine/m1', 'a', 2), 'ok', format('7 %s: two', what)) FROM unnest('{group,key,dependency}'::text[]) AS what;
SELECT is(pg_temp.make('group', 'mine/m1', 'b'),
	'53400 | queue "mine/m1" has too many task groups for role "guest" | It would have 3, and may have 2 (tq.max_groups). | A group counts until it has expired and has no tasks. Or a superuser can raise tq.max_groups for the role.',
	'7 group: one too many');
SELECT is(pg_temp.make('key', 'mine/m1', 'b'),
	'53400 | queue "mine/m1" has too many unique keys for role "guest" | It would have 3, and may have 2 (tq.max_unique_keys). | A key counts until the task that had it last is deleted. Or a superuser can raise tq.max_unique_keys for the role.',
	'7 key: one too many');
SELECT is(pg_temp.make('dependency', 'mine/m1', 'b'),
	'53400 | queue "mine/m1" has too many dependencies on tasks of others for role "guest" | It would have 3, and may have 2 (tq.max_foreign_dependencies). | A dependency counts until one of its tasks is deleted. Or a superuser can raise tq.max_foreign_dependencies for the role.',
	'7 dependency: one too many');
SELECT is(pg_temp.code(pg_temp.make(what, 'mine/m2', 'z', 3)), '53400', format('7 %s: three in one call', what)) FROM unnest('{group,key,dependency}'::text[]) AS what;
SELECT is(pg_temp.make(what, 'mine/m2', 'z', 2), 'ok', format('7 %s: what was refused does not count', what)) FROM unnest('{group,key,dependency}'::text[]) AS what;
SELECT is(pg_temp.code(pg_temp.as_guest($$SELECT tq.add_dependencies(pg_temp.id('dz'), pg_temp.ids('bank3'))$$)), '53400', '7 dependency: also by add_dependencies');
SELECT is(pg_temp.make('group', 'mine/m1', 'a', 2), 'ok', '7 group: one that there is');
SELECT is(pg_temp.make('key', 'mine/m1', 'a', 2), 'ok', '7 key: one that there is');
-- What the server counts, and what there is.
CREATE FUNCTION pg_temp.counted(queue text) RETURNS text LANGUAGE sql RETURN (
	SELECT concat_ws(' ', c.groups, c.unique_keys, c.foreign_dependencies, nullif(concat_ws(' ', 'but', r), concat_ws(' ', 'but', row(c.groups, c.unique_keys, c.foreign_dependencies))))
	FROM tq_internal.queue q JOIN tq_internal.queue_counters() AS c ON c.queue = q.id
		CROSS JOIN LATERAL (SELECT (SELECT count(*) FROM tq_internal.task_group g WHERE g.queue = q.id), (SELECT count(*) FROM tq_internal.unique_key k WHERE k.queue = q.id),
			(SELECT count(*) FROM tq_internal.foreign_dependency f WHERE f.queue = q.id)) AS r WHERE q.task_queue_id = counted.queue);
SELECT is(pg_temp.counted('mine/m2'), '2 2 2', '7 quotas: what the server counts');
SELECT tq.cancel_task(task_id) FROM tq.task_details WHERE task_queue_id = 'mine/m2' AND task_id <> pg_temp.id('dz') \g /dev/null
SET tq.clock_offset = '60 days';
SELECT tq.upkeep() FROM generate_series(1, 3) \g /dev/null
SELECT is(pg_temp.counted('mine/m2'), '0 0 0', '7 quotas: what has expired was deleted');
SELECT is(pg_temp.make(what, 'mine/m2', 'y', 2), 'ok', format('7 %s: what was deleted does not count', what)) FROM unnest('{group,key}'::text[]) AS what;
SELECT is(pg_temp.code(pg_temp.make(what, 'mine/m2', 'x')), '53400', format('7 %s: and no more', what)) FROM unnest('{group,key}'::text[]) AS what;
RESET tq.clock_offset;
RESET tq.max_groups;
RESET tq.max_unique_keys;
RESET tq.max_foreign_dependencies;

-- A role that is dropped leaves its names behind, which harm no one.
DROP OWNED BY guest;
DROP ROLE guest;
SELECT ok(tq.enqueue('mine/q1') IS NOT NULL AND tq.set_queue('mine/q1', '{"maxPending": 7}') IS NOT NULL, '7 quotas: a role was dropped');

SELECT * FROM finish();
ROLLBACK;
