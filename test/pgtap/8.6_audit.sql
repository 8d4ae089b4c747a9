-- doc/spec/taskcluster.md 8.6: the audit trail.
BEGIN;
\ir helper.psql
\ir ../calls.sql

CREATE ROLE admin LOGIN IN ROLE tq_admin;
CREATE ROLE worker IN ROLE tq_worker;
CREATE ROLE reader IN ROLE tq_reader, pg_monitor;
CREATE ROLE claimer;
SELECT tq.grant_scopes('claimer', '{queue:claim-work:*,queue:worker-id:*}') \g /dev/null

-- ---------------------------------------------------------------------------
-- What each function leaves
-- ---------------------------------------------------------------------------

-- A task in each state, of queue test/q: p pending, r running, c completed and so on.
-- What a client writes into them says "secret".
SET cron.database_name = 'elsewhere';
SELECT pg_temp.reach_all('test/q') \g /dev/null
UPDATE tq_internal.cron SET role = 'admin';

-- A row for each call: its class, and the tasks, runs and arguments of the row that it
-- leaves.  First the samples of src/sql/functions: each leaves a row, or, if its class is
-- '-', none.
CREATE TEMP TABLE act (fn text, class text, call text, tasks tq.slugid[], runs int[], arguments jsonb);

-- The value of an argument as the trail shows it: times in UTC, intervals in seconds.
CREATE FUNCTION pg_temp.shown(value text, type regtype) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	answer jsonb;
BEGIN
	EXECUTE format(CASE type WHEN 'timestamptz'::regtype THEN 'SELECT to_jsonb(pg_temp.iso(%s::%s))' WHEN 'interval'::regtype THEN 'SELECT to_jsonb(extract(epoch FROM %s::%s)::int)'
		WHEN 'jsonb'::regtype THEN 'SELECT %s::%s' WHEN 'int4multirange'::regtype THEN 'SELECT to_jsonb((%s::%s)::text)' ELSE 'SELECT to_jsonb(%s::%s)' END, value, type) INTO answer;
	RETURN answer;
END $$;
-- The arguments of a sample, with those that it leaves out.
CREATE TEMP TABLE given AS
	SELECT a.fn, a.arg, pg_temp.fill(coalesce(a.given, a.otherwise), pg_temp.facts(c.state, 'test/q')) AS value, p.proargtypes[array_position(c.names, a.arg) - 1]::regtype AS type
	FROM pg_temp.samples('test/q') AS s JOIN pg_proc AS p ON p.oid = s.oid JOIN call AS c USING (fn) JOIN call_argument AS a USING (fn);
DELETE FROM given WHERE value = 'NULL';
INSERT INTO act
	SELECT s.name, s.class, s.call, (SELECT ARRAY[pg_temp.shown(value, type) #>> '{}']::tq.slugid[] FROM given AS g WHERE g.fn = s.fn AND arg = 'task_id'),
		(SELECT ARRAY[value::int] FROM given AS g WHERE g.fn = s.fn AND arg = 'run_id'),
		(SELECT coalesce(jsonb_object_agg(arg, pg_temp.shown(value, type)), '{}') FROM given AS g WHERE g.fn = s.fn AND arg = ANY (s.audited))
	FROM pg_temp.samples('test/q') AS s WHERE s.needs IS NOT NULL AND s.name NOT IN ('run_cron_now', 'fire_cron');	-- tested in policy_15_cron.sql
-- Those whose tasks other arguments or the queue name.
UPDATE act SET tasks = v.tasks, runs = v.runs
FROM (VALUES ('create_tasks', '{new}'::text[], NULL::int[]), ('enqueue_tasks', '{new,dnew}', NULL), ('claim_work', '{p}', '{0}'), ('claim_lines', '{p}', '{0}'),
	('resolve', '{r}', '{0}'), ('resolve_lines', '{r}', '{0}'), ('resolve_and_claim', '{r,r}', '{0,1}')) AS w (fn, names, runs),
	LATERAL (SELECT pg_temp.ids(VARIADIC w.names) AS tasks, w.runs) AS v
WHERE act.fn = w.fn;

-- Then others.  <x> is the id of task or group x, DEF a definition.
CREATE TEMP TABLE other (fn text, class text, call text, tasks text, runs int[], arguments text);
INSERT INTO other VALUES
	('reschedule_task', 'operator', $$tq.reschedule_task('<p>', '2020-01-01 00:00+00')$$, '{<p>}', NULL, '{"run_at": "2020-01-01T00:00:00.000Z"}'),
	('rerun_task', 'operator', $$tq.rerun_task('<c>')$$, '{<c>}', NULL, '{"downstream": false}'),
	('purge', 'operator', $$tq.purge('test/q', '{completed,failed}', '90 minutes', 10)$$, NULL, NULL,
		'{"task_queue_id": "test/q", "states": ["completed", "failed"], "older_than": 5400, "max": 10}'),
	('retry_task_group', 'operator', $$tq.retry_task_group('<gs>', '1 hour', '{failed}')$$, NULL, NULL, '{"task_group_id": "<gs>", "deadline": 3600, "reasons": ["failed"], "downstream": true}'),
	('cancel_group_callbacks', 'operator', $$tq.cancel_group_callbacks('<gp>', '<d>')$$, '{<d>}', NULL, '{"task_group_id": "<gp>"}'),
	('quarantine_worker', 'operator', $$tq.quarantine_worker('test/q', 'g', 'w', '2000-01-01 00:00+00', 'secret')$$, NULL, NULL,
		'{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "w", "quarantine_until": "2000-01-01T00:00:00.000Z"}'),
	('set_queue', 'operator', $$tq.set_queue('test/q', '{"claimTimeout": 60, "paused": null}')$$, NULL, NULL, '{"task_queue_id": "test/q", "settings": {"claimTimeout": 60, "paused": null}}'),
	('schedule_cron', 'operator', $$tq.schedule_cron('new', '0 6 * * *', 'test/q', '{"a": "secret"}', tags => '{"a": "secret"}', overlap => 'skip')$$, NULL, NULL,
		'{"name": "new", "schedule": "0 6 * * *", "task_queue_id": "test/q"}'),
	('unbind', 'operator', $$tq.unbind('ch', 'task-defined')$$, NULL, NULL, '{"channel": "ch", "exchange": "task-defined", "pattern": "#"}'),
	('grant_scopes', 'operator', $$tq.grant_scopes('worker', '{x,y:*}')$$, NULL, NULL, '{"role": "worker", "scopes": ["x", "y:*"]}'),
	('set_buckets', 'operator', $$tq_internal.set_buckets('{[0,1024)}')$$, NULL, NULL, '{"buckets": "{[0,1024)}"}'),
	('create_tasks', 'client', $$tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', '<new>', 'task', DEF), jsonb_build_object('taskId', '<new2>', 'task', DEF)))$$,
		'{<new>,<new2>}', NULL, '{}'),
	('create_task', 'client', $$tq.create_task('<new>', DEF)$$, '{<new>}', NULL, '{}'),
	('enqueue', 'client', $$tq.enqueue('test/q', '{"a": "secret"}', '<new>', task_group_id => '<g>', scopes => '{secret}', name => 'secret', tags => '{"a": "secret"}')$$,
		'{<new>}', NULL, '{"task_queue_id": "test/q", "task_group_id": "<g>", "priority": "lowest"}'),
	('claim_work', 'client', $$tq.claim_work('test/q', 'g', 'v', 1)$$, '{<p>}', '{0}', '{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "v"}'),
	('resolve', 'client', $$tq.resolve('{<u>,<r>,<missing>,<c>}', '{0,0,0,0}')$$, '{<r>,<c>}', '{0,0}', '{"reason": "completed"}'),
	('resolve_lines', 'client', $$tq_internal.resolve_lines(E'<u>\t0\n<r>\t0\n<missing>\t0\n<c>\t0\n')$$, '{<r>,<c>}', '{0,0}', '{"reason": "completed"}'),
	('resolve_and_claim', 'client', $$tq.resolve_and_claim('[{"taskId": "<r>", "runId": 0, "reason": "failed", "error": {"message": "secret"}}]', 'test/q', 'g', 'w')$$,
		'{<r>,<p>}', '{0,0}', '{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "w"}');

SELECT is(array(SELECT DISTINCT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace AND p.proname NOT IN (SELECT name FROM call) ORDER BY 1), '{}',
	'8.6 every function is in one of the tables');
SELECT is(array(SELECT name FROM call WHERE name NOT IN (SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = schema::regnamespace) ORDER BY 1), '{}', '8.6 and nothing else');
SELECT is((SELECT count(*) FROM call GROUP BY fn HAVING count(*) > 1), NULL, '8.6 nor twice');

-- Replaces <x> by the id of x, and DEF by a definition.
CREATE FUNCTION pg_temp.fill(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT DISTINCT m[1] FROM regexp_matches(t, '<(\w+)>', 'g') AS m LOOP
		t := replace(t, '<' || name || '>', pg_temp.id(name)::text);
	END LOOP;
	RETURN replace(t, 'DEF', quote_literal(pg_temp.def('new', '{"taskQueueId": "test/q", "payload": {"a": "secret"}, "routes": ["secret"], "scopes": ["secret"],
		"tags": {"a": "secret"}}')) || '::jsonb');
END $$;
INSERT INTO act SELECT fn, class, 'SELECT ' || pg_temp.fill(call), pg_temp.fill(tasks)::tq.slugid[], runs, pg_temp.fill(arguments)::jsonb FROM other;

-- What a statement leaves, by a member of tq_admin; undone afterwards.
CREATE FUNCTION pg_temp.leaves(statement text, setting text DEFAULT 'all') RETURNS SETOF tq.audit LANGUAGE plpgsql AS $$
DECLARE
	left_rows tq.audit[];
BEGIN
	TRUNCATE tq_internal.audit;
	PERFORM set_config('tq.audit', setting, true);
	SET LOCAL ROLE admin;
	EXECUTE statement;
	left_rows := array(SELECT a FROM tq.audit AS a ORDER BY a.id);
	RAISE EXCEPTION USING ERRCODE = 'UNDO0';
EXCEPTION WHEN SQLSTATE 'UNDO0' THEN
	RETURN QUERY SELECT * FROM unnest(left_rows);
END $$;

CREATE TEMP TABLE trail AS
	SELECT a.*, s.setting, l.trail FROM act AS a
		CROSS JOIN unnest('{off,operators,all}'::text[]) AS s (setting)
		CROSS JOIN LATERAL (SELECT jsonb_agg(to_jsonb(l)) AS trail FROM pg_temp.leaves(a.call, s.setting) AS l) AS l
	WHERE a.class <> '-' OR s.setting = 'all';
SELECT is((SELECT jsonb_agg(row - '{at,id}'::text[]) FROM jsonb_array_elements(trail) AS row),
	jsonb_build_array(jsonb_build_object('session_role', session_user, 'role', 'admin', 'client_ids', NULL, 'function', fn, 'task_ids', tasks, 'run_ids', runs,
		'arguments', arguments)), format('8.6 %s leaves a row', fn))
FROM trail WHERE setting = 'all' AND class <> '-';
SELECT is(trail, NULL, format('8.6 %s leaves no row', fn)) FROM trail WHERE class = '-';
SELECT is(array(SELECT fn FROM trail WHERE setting = 'off' AND trail IS NOT NULL), '{}', '8.6 off: none does');
SELECT is(array(SELECT fn FROM trail WHERE setting = 'operators' AND (trail IS NOT NULL) <> (class = 'operator')), '{}', '8.6 operators: those of operators');
SELECT is((SELECT count(*) FROM trail AS a JOIN trail AS o USING (call) WHERE a.setting = 'all' AND o.setting = 'operators' AND o.class = 'operator'
	AND a.trail -> 0 ->> 'arguments' IS DISTINCT FROM o.trail -> 0 ->> 'arguments'), 0::bigint, '8.6 operators: the same rows');
SELECT is(array(SELECT fn FROM trail WHERE trail::text LIKE '%secret%' AND fn <> 'rotate_secret'), '{}', '8.6 nothing that a client writes into a task');
SELECT ok(bool_and(abs(extract(epoch FROM (trail -> 0 ->> 'at')::timestamptz - clock_timestamp())) < 300), '8.6 at') FROM trail WHERE setting = 'all' AND class <> '-';
SELECT is(current_setting('tq.audit'), 'operators', '8.6 the default');

-- ---------------------------------------------------------------------------
-- Calls that leave none, or several
-- ---------------------------------------------------------------------------

SELECT is((SELECT count(*) FROM pg_temp.leaves(call)), 0::bigint, '8.6 no row: ' || call)
FROM unnest(ARRAY[$$SELECT tq.claim_work('test/none', 'g', 'w')$$, $$SELECT tq.claim_work('{test/none,none/*}'::text[], 'g', 'w')$$, $$SELECT tq.create_tasks('[]')$$, $$SELECT tq.enqueue_tasks('test/q', '{}')$$,
	$$SELECT tq.resolve(ARRAY[pg_temp.id('missing')], '{0}')$$, $$SELECT * FROM tq.upkeep()$$]) AS call;
SELECT is((SELECT jsonb_agg(jsonb_build_array(function, task_ids, run_ids, arguments)) FROM pg_temp.leaves($$SELECT tq.claim_work('{test/none,test/q}'::text[], 'g', 'v')$$)),
	jsonb_build_array(jsonb_build_array('claim_work', jsonb_build_array(pg_temp.id('p')), '[0]'::jsonb, '{"task_queue_ids": ["test/none", "test/q"], "worker_group": "g", "worker_id": "v"}'::jsonb)),
	'8.6 claim_work from several queues');
SELECT is((SELECT count(*) FROM pg_temp.leaves(format('SELECT pg_temp.error(%L)', call))), 0::bigint, '8.6 no row of an error: ' || call)
FROM unnest(ARRAY[$$SELECT tq.rerun_task(pg_temp.id('r'))$$, $$SELECT tq.cancel_task(pg_temp.id('missing'))$$, $$SELECT tq.bind('c', 'none')$$]) AS call
WHERE pg_temp.error(call) ->> 'sqlstate' LIKE 'TQ%';
SELECT is(array(SELECT cardinality(task_ids) FROM pg_temp.leaves($$SELECT tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, '{2500}'))$$)), '{1000,1000,500}',
	'8.6 a row for each 1000 tasks');
SELECT is((SELECT count(DISTINCT t) FROM pg_temp.leaves($$SELECT tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, '{2500}'))$$) AS l, unnest(l.task_ids) AS t), 2500::bigint,
	'8.6 each task once');
SELECT is((SELECT string_agg(function, ' ' ORDER BY id) FROM pg_temp.leaves($$SELECT tq.cancel_task(pg_temp.id('p')), tq.cancel_task(pg_temp.id('p'))$$)), 'cancel_task cancel_task',
	'8.6 a repeat that changes nothing leaves a row too');
SAVEPOINT s;
SET LOCAL tq.audit = 'all';
SELECT tq.enqueue('test/q') AS made \gset
SELECT is((SELECT task_ids[1] FROM tq.audit WHERE function = 'enqueue'), :'made'::tq.slugid, '8.6 the id that enqueue has made');
ROLLBACK TO s;

-- a rollback takes it back
TRUNCATE tq_internal.audit;
SAVEPOINT s;
SELECT tq.cancel_task(pg_temp.id('p')) \g /dev/null
SELECT is((SELECT count(*) FROM tq.audit), 1::bigint, '8.6 part of the transaction');
ROLLBACK TO s;
SELECT is((SELECT count(*) FROM tq.audit), 0::bigint, '8.6 a rollback leaves none');

-- ---------------------------------------------------------------------------
-- Who
-- ---------------------------------------------------------------------------

SET LOCAL SESSION AUTHORIZATION admin;
SELECT tq.cancel_task(pg_temp.id('p')) \g /dev/null
RESET SESSION AUTHORIZATION;
CREATE FUNCTION pg_temp.wrapped(task_id tq.slugid) RETURNS jsonb SECURITY DEFINER LANGUAGE sql AS 'SELECT tq.rerun_task(task_id)';
ALTER FUNCTION pg_temp.wrapped(tq.slugid) OWNER TO admin;
SET LOCAL SESSION AUTHORIZATION worker;
SELECT is(pg_temp.wrapped(pg_temp.id('p')) ->> 'state', 'pending', '8.6 a SECURITY DEFINER function');
RESET SESSION AUTHORIZATION;
ALTER ROLE admin RENAME TO other;
SELECT is(array(SELECT format('%s %s %s', session_role, role, function) FROM tq.audit ORDER BY id), '{admin admin cancel_task,worker admin rerun_task}',
	'8.6 session and effective role, by the names that they had');
ALTER ROLE other RENAME TO admin;
SELECT is((SELECT format('%s %s', session_role, role) FROM pg_temp.leaves($$SELECT tq.seal_task_group(pg_temp.id('gp'))$$)), session_user || ' admin', '8.6 SET ROLE');

-- credentials, given or assumed
SAVEPOINT s;
SET LOCAL tq.audit = 'all';
SELECT tq.create_task(pg_temp.id(name), pg_temp.def(name)) FROM unnest('{k1,k2,k3}'::text[]) AS name \g /dev/null
CREATE TEMP TABLE claim (name text, task_id tq.slugid, credentials jsonb);
GRANT ALL ON claim TO claimer;
SET LOCAL ROLE claimer;
INSERT INTO claim SELECT name, c.task_id, c.credentials FROM unnest('{k1,k2,k3}'::text[]) AS name, tq.claim_work('test/q-' || name, 'g', 'w') AS c;
RESET ROLE;
TRUNCATE tq_internal.audit;
SET LOCAL ROLE claimer;
SELECT tq.reclaim_task(task_id, 0, credentials => credentials) FROM claim WHERE name = 'k1' \g /dev/null
SELECT tq.resolve(array_agg(task_id ORDER BY name), '{0,0}', credentials => jsonb_agg(credentials ORDER BY name)) FROM claim WHERE name <> 'k3' \g /dev/null
SELECT tq.assume(credentials) FROM claim WHERE name = 'k3' \g /dev/null
SELECT tq.report_completed(task_id, 0) FROM claim WHERE name = 'k3' \g /dev/null
RESET ROLE;
SELECT is(array(SELECT format('%s %s %s', role, function, cardinality(client_ids)) FROM tq.audit ORDER BY id),
	'{claimer reclaim_task 1,claimer resolve 2,claimer report_completed 1}', '8.6 client_ids');
SELECT is((SELECT client_ids[1] FROM tq.audit WHERE function = 'report_completed'), (SELECT credentials ->> 'clientId' FROM claim WHERE name = 'k3'), '8.6 that was assumed');
SELECT is((SELECT client_ids FROM tq.audit WHERE function = 'resolve'), array(SELECT credentials ->> 'clientId' FROM claim WHERE name <> 'k3' ORDER BY name), '8.6 those that were given');
SELECT is((SELECT count(*) FROM tq.audit AS a, claim AS c WHERE strpos(a::text, c.credentials ->> 'accessToken') > 0 OR strpos(a::text, c.credentials ->> 'certificate') > 0),
	0::bigint, '8.6 no secret of the credentials');
ROLLBACK TO s;

-- credentials that are refused are not shown
SELECT tq.create_task(pg_temp.id('k4'), pg_temp.def('k4')), pg_temp.take('k4') \g /dev/null
SELECT is((SELECT count(*) FROM pg_temp.leaves($$SELECT tq.resolve(ARRAY[pg_temp.id('k4')], '{0}', credentials => '{"clientId": "x", "accessToken": "y", "certificate": "z"}')$$)),
	0::bigint, '8.6 a run that is forbidden');

-- ---------------------------------------------------------------------------
-- Retention, rights
-- ---------------------------------------------------------------------------

TRUNCATE tq_internal.audit;
SELECT tq.seal_task_group(pg_temp.id('gp')) \g /dev/null
SET LOCAL tq.clock_offset = '1 hour';
SELECT tq.unbind('ch', 'task-defined') FROM generate_series(1, 6) \g /dev/null
SET LOCAL tq.clock_offset = '89 days 23 hours';
SELECT tq.upkeep() \g /dev/null
SELECT is((SELECT count(*) FROM tq.audit), 7::bigint, '8.6 tq.audit_retention: 90 days');
SET LOCAL tq.retain_dead_letters = '1000d';
SET LOCAL tq.clock_offset = '90 days 1 minute';
SELECT is((SELECT tasks FROM tq.upkeep() WHERE step = 'sweep'), 1::bigint, '8.6 tq.audit_retention: then a row is deleted');
SELECT is((SELECT count(*) FROM tq.audit WHERE function = 'unbind'), 6::bigint, '8.6 tq.audit_retention: the oldest');
SET LOCAL tq.expire_batch = 4;
SET LOCAL tq.audit_retention = '80d';
SELECT is((SELECT tasks FROM tq.upkeep() WHERE step = 'sweep'), 6::bigint, '8.6 tq.audit_retention: in batches, none forgotten');
SELECT is((SELECT count(*) FROM tq.audit), 0::bigint, '8.6 tq.audit_retention: gone');

SELECT is(array(SELECT grantee::regrole || ' ' || privilege_type FROM pg_class, aclexplode(relacl) WHERE oid = 'tq.audit'::regclass AND grantee <> relowner),
	'{tq_admin SELECT}', '8.6 members of tq_admin read it');
SELECT is((SELECT relacl IS NULL OR NOT EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner) FROM pg_class WHERE oid = 'tq_internal.audit'::regclass), true,
	'8.6 and no role changes it');
SET LOCAL ROLE reader;
SELECT is(pg_temp.error('SELECT * FROM tq.audit') ->> 'sqlstate', '42501', '8.6 tq_reader and pg_monitor do not');
SELECT is(pg_temp.error('SET tq.audit = off') ->> 'sqlstate', '42501', '8.6 only a superuser sets tq.audit');
RESET ROLE;
SET LOCAL ROLE admin;
SELECT is(pg_temp.error('SET tq.audit = off') ->> 'sqlstate', '42501', '8.6 not even tq_admin');
SELECT is(pg_temp.error('DELETE FROM tq.audit') ->> 'sqlstate', '42501', '8.6 nor deletes from it');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
