-- doc/spec/taskcluster.md 8.6: the audit trail.
BEGIN;
\ir helper.psql
SELECT no_plan();

CREATE ROLE admin IN ROLE tq_admin;
CREATE ROLE worker IN ROLE tq_worker;
CREATE ROLE reader IN ROLE tq_reader, pg_monitor;
CREATE ROLE claimer;
SELECT tq.grant_scopes('claimer', '{queue:claim-work:*,queue:worker-id:*}') \g /dev/null

-- ---------------------------------------------------------------------------
-- What each function leaves
-- ---------------------------------------------------------------------------

-- The tasks: p pending, r running, c completed, u unscheduled, d and e dead, all
-- of queue test/q.  What a client writes into them says "secret".
SELECT tq.create_task(pg_temp.id(name), pg_temp.def(name, '{"taskQueueId": "test/q", "schedulerId": "sched", "projectId": "proj", "payload": {"a": "secret"},
	"tags": {"a": "secret"}, "extra": {"a": "secret"}}' || more::jsonb))
FROM (VALUES ('r', '{"priority": "high"}'), ('c', '{"priority": "high"}'), ('d', '{"priority": "high", "policy": {"deadLetter": true}}'),
	('p', '{}'), ('u', '{"$deps": ["u"]}'), ('s', '{"$group": "sealed"}')) AS v (name, more) \g /dev/null
SELECT tq.claim_task(pg_temp.id(name), 0, 'g', 'w') FROM unnest('{r,c,d}'::text[]) AS name \g /dev/null
SELECT tq.report_completed(pg_temp.id('c'), 0, result => '"secret"'), tq.report_exception(pg_temp.id('d'), 0, 'malformed-payload', error => '{"message": "secret"}'),
	tq.seal_task_group(pg_temp.id('sealed')) \g /dev/null
SELECT tq.declare_worker('test', 'q', 'g', 'w', now() + interval '1 day'), tq.subscribe('sub', 'task-defined') \g /dev/null

SET cron.database_name = 'elsewhere';
SELECT tq.schedule_cron('cr', '* * * * *', 'test/q') \g /dev/null

-- A row for each function: its class, a call, and the tasks, runs and arguments
-- of the row that it leaves.  <x> is the id of task or group x, DEF a definition.
CREATE TEMP TABLE act (fn text, class text, call text, tasks text[], runs int[], arguments jsonb);
INSERT INTO act VALUES
	-- operators
	('schedule_task', 'operator', $$tq.schedule_task('<u>')$$, '{<u>}', NULL, '{}'),
	('add_dependencies', 'operator', $$tq.add_dependencies('<u>', '{<p>}')$$, '{<u>}', NULL, '{"dependencies": ["<p>"]}'),
	('reschedule_task', 'operator', $$tq.reschedule_task('<p>', '2020-01-01 00:00+00')$$, '{<p>}', NULL, '{"run_at": "2020-01-01T00:00:00.000Z"}'),
	('rerun_task', 'operator', $$tq.rerun_task('<c>')$$, '{<c>}', NULL, '{"downstream": false}'),
	('cancel_task', 'operator', $$tq.cancel_task('<p>')$$, '{<p>}', NULL, '{}'),
	('skip_task', 'operator', $$tq.skip_task('<p>', '"secret"')$$, '{<p>}', NULL, '{}'),
	('delete_task', 'operator', $$tq.delete_task('<p>')$$, '{<p>}', NULL, '{}'),
	('purge', 'operator', $$tq.purge('test/q', '{completed,failed}', '90 minutes', 10)$$, NULL, NULL,
		'{"task_queue_id": "test/q", "states": ["completed", "failed"], "older_than": 5400, "max": 10}'),
	('change_task_priority', 'operator', $$tq.change_task_priority('<p>', 'highest')$$, '{<p>}', NULL, '{"priority": "highest"}'),
	('change_task_group_priority', 'operator', $$tq.change_task_group_priority('<p>', 'high')$$, NULL, NULL, '{"task_group_id": "<p>", "priority": "high"}'),
	('seal_task_group', 'operator', $$tq.seal_task_group('<p>')$$, NULL, NULL, '{"task_group_id": "<p>"}'),
	('cancel_group_callbacks', 'operator', $$tq.cancel_group_callbacks('<p>', '<d>')$$, '{<d>}', NULL, '{"task_group_id": "<p>"}'),
	('cancel_task_group', 'operator', $$tq.cancel_task_group('<sealed>')$$, NULL, NULL, '{"task_group_id": "<sealed>"}'),
	('retry_task_group', 'operator', $$tq.retry_task_group('<sealed>', '1 hour', '{failed}')$$, NULL, NULL, '{"task_group_id": "<sealed>", "deadline": 3600, "reasons": ["failed"], "downstream": true}'),
	('redrive', 'operator', $$tq.redrive('<d>')$$, '{<d>}', NULL, '{}'),
	('redrive_queue', 'operator', $$tq.redrive_queue('test/q', 7)$$, NULL, NULL, '{"task_queue_id": "test/q", "max": 7}'),
	('discard_dead_letter', 'operator', $$tq.discard_dead_letter('<d>')$$, '{<d>}', NULL, '{}'),
	('quarantine_worker', 'operator', $$tq.quarantine_worker('test', 'q', 'g', 'w', '2000-01-01 00:00+00', 'secret')$$, NULL, NULL,
		'{"provisioner_id": "test", "worker_type": "q", "worker_group": "g", "worker_id": "w", "quarantine_until": "2000-01-01T00:00:00.000Z"}'),
	('set_queue', 'operator', $$tq.set_queue('test/q', '{"claimTimeout": 60, "paused": null}')$$, NULL, NULL, '{"task_queue_id": "test/q", "settings": {"claimTimeout": 60, "paused": null}}'),
	('pause_queue', 'operator', $$tq.pause_queue('test/q')$$, NULL, NULL, '{"task_queue_id": "test/q"}'),
	('resume_queue', 'operator', $$tq.resume_queue('test/q')$$, NULL, NULL, '{"task_queue_id": "test/q"}'),
	('schedule_cron', 'operator', $$tq.schedule_cron('new', '0 6 * * *', 'test/q', '{"a": "secret"}', tags => '{"a": "secret"}', overlap => 'skip')$$, NULL, NULL,
		'{"name": "new", "schedule": "0 6 * * *", "task_queue_id": "test/q"}'),
	('unschedule_cron', 'operator', $$tq.unschedule_cron('cr')$$, NULL, NULL, '{"name": "cr"}'),
	('pause_cron', 'operator', $$tq.pause_cron('cr')$$, NULL, NULL, '{"name": "cr"}'),
	('resume_cron', 'operator', $$tq.resume_cron('cr')$$, NULL, NULL, '{"name": "cr"}'),
	('worker_removed', 'operator', $$tq.worker_removed('test', 'q', 'g', 'w', 'secret')$$, NULL, NULL,
		'{"provisioner_id": "test", "worker_type": "q", "worker_group": "g", "worker_id": "w"}'),
	('bind', 'operator', $$tq.bind('ch', 'task-defined', 'a.#')$$, NULL, NULL, '{"channel": "ch", "exchange": "task-defined", "routing_key_pattern": "a.#"}'),
	('unbind', 'operator', $$tq.unbind('ch', 'task-defined')$$, NULL, NULL, '{"channel": "ch", "exchange": "task-defined", "pattern": "#"}'),
	('subscribe', 'operator', $$tq.subscribe('sub2', 'task-pending')$$, NULL, NULL, '{"name": "sub2", "exchange": "task-pending", "pattern": "#"}'),
	('unsubscribe', 'operator', $$tq.unsubscribe('sub')$$, NULL, NULL, '{"name": "sub"}'),
	('grant_scopes', 'operator', $$tq.grant_scopes('worker', '{x,y:*}')$$, NULL, NULL, '{"role": "worker", "scopes": ["x", "y:*"]}'),
	('revoke_scopes', 'operator', $$tq.revoke_scopes('worker', '{x}')$$, NULL, NULL, '{"role": "worker", "scopes": ["x"]}'),
	('grant_queue', 'operator', $$tq.grant_queue('worker', 'test/*', 'read')$$, NULL, NULL, '{"role": "worker", "task_queue_id": "test/*", "access": "read"}'),
	('revoke_queue', 'operator', $$tq.revoke_queue('worker', 'test/q', 'work')$$, NULL, NULL, '{"role": "worker", "task_queue_id": "test/q", "access": "work"}'),
	('set_buckets', 'operator', $$tq.set_buckets('{[0,1024)}')$$, NULL, NULL, '{"buckets": "{[0,1024)}"}'),
	('rotate_secret', 'operator', $$tq.rotate_secret(true)$$, NULL, NULL, '{"revoke": true}'),
	('reset_queue_stats', 'operator', $$tq.reset_queue_stats()$$, NULL, NULL, '{}'),
	-- producers and workers
	('create_task', 'client', $$tq.create_task('<new>', DEF)$$, '{<new>}', NULL, '{}'),
	('define_task', 'client', $$tq.define_task('<new>', DEF)$$, '{<new>}', NULL, '{}'),
	('create_tasks', 'client', $$tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', '<new>', 'task', DEF), jsonb_build_object('taskId', '<new2>', 'task', DEF)))$$,
		'{<new>,<new2>}', NULL, '{}'),
	('enqueue', 'client', $$tq.enqueue('test/q', '{"a": "secret"}', '<new>', task_group_id => '<g>', scopes => '{secret}', name => 'secret', tags => '{"a": "secret"}')$$,
		'{<new>}', NULL, '{"task_queue_id": "test/q", "task_group_id": "<g>", "priority": "lowest"}'),
	('enqueue_tasks', 'client', $$tq.enqueue_tasks('test/q', ARRAY['{"a": "secret"}', '{}']::jsonb[], '{<new>,<new2>}', name => 'secret')$$,
		'{<new>,<new2>}', NULL, '{"task_queue_id": "test/q", "priority": "lowest"}'),
	('on_group_resolved', 'client', $$tq.on_group_resolved('<p>', 'test/q', '{"a": "secret"}', '<new>', name => 'secret', tags => '{"a": "secret"}')$$,
		'{<new>}', NULL, '{"task_queue_id": "test/q", "task_group_id": "<p>", "priority": "lowest"}'),
	('claim_work', 'client', $$tq.claim_work('test/q', 'g', 'v', 1)$$, '{<p>}', '{0}', '{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "v"}'),
	('claim_lines', 'client', $$tq.claim_lines('test/q', 'g', 'v', 1)$$, '{<p>}', '{0}', '{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "v"}'),
	('claim_task', 'client', $$tq.claim_task('<p>', 0, 'g', 'v')$$, '{<p>}', '{0}', '{"worker_group": "g", "worker_id": "v"}'),
	('reclaim_task', 'client', $$tq.reclaim_task('<r>', 0)$$, '{<r>}', '{0}', '{}'),
	('report_completed', 'client', $$tq.report_completed('<r>', 0, NULL, '"secret"')$$, '{<r>}', '{0}', '{}'),
	('report_failed', 'client', $$tq.report_failed('<r>', 0, NULL, '{"message": "secret"}')$$, '{<r>}', '{0}', '{}'),
	('report_exception', 'client', $$tq.report_exception('<r>', 0, 'worker-shutdown', NULL, '{"message": "secret"}')$$, '{<r>}', '{0}', '{"reason": "worker-shutdown"}'),
	('defer_task', 'client', $$tq.defer_task('<r>', 0, '1 minute')$$, '{<r>}', '{0}', '{}'),
	('report_progress', 'client', $$tq.report_progress('<r>', 0, 1, 2)$$, '{<r>}', '{0}', '{}'),
	('resolve_and_claim', 'client', $$tq.resolve_and_claim('[{"taskId": "<r>", "runId": 0, "reason": "failed", "error": {"message": "secret"}}]', 'test/q', 'g', 'w')$$,
		'{<r>,<p>}', '{0,0}', '{"task_queue_id": "test/q", "worker_group": "g", "worker_id": "w"}'),
	('resolve', 'client', $$tq.resolve('{<u>,<r>,<missing>,<c>}', '{0,0,0,0}')$$, '{<r>,<c>}', '{0,0}', '{"reason": "completed"}'),
	('resolve_lines', 'client', $$tq.resolve_lines(E'<u>\t0\n<r>\t0\n<missing>\t0\n<c>\t0\n')$$, '{<r>,<c>}', '{0,0}', '{"reason": "completed"}'),
	('declare_worker', 'client', $$tq.declare_worker('test', 'q', 'g', 'v', now() + interval '1 day')$$, NULL, NULL,
		'{"provisioner_id": "test", "worker_type": "q", "worker_group": "g", "worker_id": "v"}');

-- Functions that leave none: they read, or change only how far a reader is, the
-- scopes of a transaction, artifacts, or what is due by itself.
CREATE TEMP TABLE silent (fn text);
INSERT INTO silent SELECT unnest('{ack, artifact_info, assume, bucket, bucket_counts, buckets, buckets_settled, has_task, has_task_group, slugid_in_bucket, conductor_policy, conductor_status, create_artifact, current_scopes, dependency_results, fetch,
	finish_artifact, get_artifact, get_latest_artifact, get_provisioner, get_task_group, get_task_queue,get_queue_settings, get_worker, get_worker_type, group_progress, report_html, group_gantt, group_tree, group_dot, group_mermaid,
	health, latest_artifact_info, list_artifacts, list_claimed_tasks, list_dead_letters, list_dependent_tasks, list_latest_artifacts,
	list_pending_tasks, list_provisioners, list_task_group, list_task_queues, list_worker_types, list_workers, maintenance_activity, message,
	messages, pending_tasks, published_id, queue_channel, queue_counts, result, satisfies, slugid, stable_slugid, start_maintenance, status,
	status_row, statuses, task, task_queue_counts, taskbroker_policy, taskbroker_status, tasks, top, topic_match, upkeep, wait_for_task,
	wait_for_task_group, wait_for_work, why, worker_channel}'::text[]);
INSERT INTO silent VALUES ('cancel_tasks'), ('move_tasks');	-- not silent, but tested in policy_12_many.sql, because they commit
INSERT INTO silent VALUES ('fire_cron'), ('run_cron_now'), ('install_cron_upkeep');	-- not silent, but tested in policy_15_cron.sql

SELECT is(array(SELECT DISTINCT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace
		AND p.proname NOT IN (SELECT fn FROM act UNION ALL SELECT fn FROM silent) ORDER BY 1), '{}', '8.6 every function is in one of the tables');
SELECT is(array(SELECT fn FROM (SELECT fn FROM act UNION ALL SELECT fn FROM silent) AS t
		WHERE fn NOT IN (SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace) ORDER BY 1), '{}', '8.6 and nothing else');
SELECT is((SELECT count(*) FROM (SELECT fn FROM act UNION ALL SELECT fn FROM silent) AS t GROUP BY fn HAVING count(*) > 1), NULL, '8.6 nor twice');

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
UPDATE act SET call = pg_temp.fill(call), tasks = pg_temp.fill(tasks::text)::text[], arguments = pg_temp.fill(arguments::text)::jsonb;

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
		CROSS JOIN LATERAL (SELECT jsonb_agg(to_jsonb(l)) AS trail FROM pg_temp.leaves('SELECT ' || a.call, s.setting) AS l) AS l;
SELECT is((SELECT jsonb_agg(row - '{at,id}'::text[]) FROM jsonb_array_elements(trail) AS row),
	jsonb_build_array(jsonb_build_object('session_role', session_user, 'role', 'admin', 'client_ids', NULL, 'function', fn, 'task_ids', tasks, 'run_ids', runs,
		'arguments', arguments)), format('8.6 %s leaves a row', fn))
FROM trail WHERE setting = 'all';
SELECT is(array(SELECT fn FROM trail WHERE setting = 'off' AND trail IS NOT NULL), '{}', '8.6 off: none does');
SELECT is(array(SELECT fn FROM trail WHERE setting = 'operators' AND (trail IS NOT NULL) <> (class = 'operator')), '{}', '8.6 operators: those of operators');
SELECT is((SELECT count(*) FROM trail AS a JOIN trail AS o USING (fn) WHERE a.setting = 'all' AND o.setting = 'operators' AND o.class = 'operator'
	AND a.trail -> 0 ->> 'arguments' IS DISTINCT FROM o.trail -> 0 ->> 'arguments'), 0::bigint, '8.6 operators: the same rows');
SELECT is(array(SELECT fn FROM trail WHERE trail::text LIKE '%secret%' AND fn <> 'rotate_secret'), '{}', '8.6 nothing that a client writes into a task');
SELECT ok(bool_and(abs(extract(epoch FROM (trail -> 0 ->> 'at')::timestamptz - clock_timestamp())) < 300), '8.6 at') FROM trail WHERE setting = 'all';
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
SELECT is((SELECT format('%s %s', session_role, role) FROM pg_temp.leaves($$SELECT tq.seal_task_group(pg_temp.id('p'))$$)), session_user || ' admin', '8.6 SET ROLE');

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
SELECT tq.reclaim_task(task_id, 0, credentials) FROM claim WHERE name = 'k1' \g /dev/null
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
SELECT tq.seal_task_group(pg_temp.id('p')) \g /dev/null
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
