-- doc/spec/policy.md 14: on_group_resolved.  Other sessions:
-- test/isolation/specs/callback-vs-resolve.spec; a crash, the maintenance worker,
-- dump and restore: test/t/036_callbacks.pl.
BEGIN;
\ir policy.psql

-- A callback of group g, whose task is that of this name in the queue test/q-name.
CREATE FUNCTION pg_temp.register(name text, grp text DEFAULT 'g', payload jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$ SELECT (tq.on_group_resolved(pg_temp.id(grp), 'test/q-' || name, payload, pg_temp.id(name), name => name) = pg_temp.id(name))::text $$;
CREATE FUNCTION pg_temp.callbacks() RETURNS text
LANGUAGE sql AS $$ SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM tq.callback_overview $$;
CREATE FUNCTION pg_temp.exists(name text) RETURNS bool
LANGUAGE sql AS $$ SELECT EXISTS (SELECT FROM tq.statuses(pg_temp.ids(name))) $$;
CREATE FUNCTION pg_temp.outcome(name text) RETURNS jsonb
LANGUAGE sql AS $$ SELECT tq.task(pg_temp.id(name)) #> '{payload,group}' $$;
CREATE FUNCTION pg_temp.counts(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', o ->> 'outcome', o ->> 'tasks', o ->> 'completed', o ->> 'failed', o ->> 'exception', o ->> 'tolerated') FROM pg_temp.outcome(name) AS o
$$;

-- ---------------------------------------------------------------------------
-- 1, 2: when, and what
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.register('cb', payload => '{"mail": "x"}'), 'true', '14.1 returns the id');
SELECT is(pg_temp.callbacks(), 'cb', '14.1 registered');
SELECT is(pg_temp.exists('cb'), false, '14.1 no task yet');
SELECT is(pg_temp.pass(), '', '14.1 nor by maintenance');
SELECT pg_temp.take(n) FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT tq.report_completed(pg_temp.id('a'), 0) \g /dev/null
SELECT is(pg_temp.pass('1 minute'), '', '14.1 a task is unresolved');
SELECT tq.report_failed(pg_temp.id('b'), 0) \g /dev/null
SELECT is(pg_temp.pass('3 minutes'), 'callback 1', '14.1 the last task is resolved');
SELECT is(pg_temp.state('cb'), 'pending', '14.1 its task');
SELECT is(tq.task(pg_temp.id('cb')) ->> 'taskGroupId', pg_temp.id('cb')::text, '14.2 in a group of its own');
SELECT is(tq.task(pg_temp.id('cb')) #>> '{payload,mail}', 'x', '14.2 the payload that was given');
SELECT is(pg_temp.counts('cb'), 'failed 2 1 1 0 0', '14.2 the outcome');
SELECT is(pg_temp.outcome('cb') ->> 'taskGroupId', pg_temp.id('g')::text, '14.2 of which group');
SELECT is(pg_temp.outcome('cb') -> 'lastResolved', to_jsonb(pg_temp.iso((tq.group_progress(pg_temp.id('g'))).last_resolved)), '14.2 when it ended');
SELECT is((SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(pg_temp.outcome('cb')) AS k), 'completed exception failed firstCreated lastResolved outcome taskGroupId tasks tolerated', '14.2 all that it has');
SELECT ok(pg_temp.near(tq.task(pg_temp.id('cb')) ->> 'created', pg_temp.clock()), '14.2 created when the group was resolved');
SELECT is(tq.task(pg_temp.id('cb')) ->> 'deadline', NULL, '14.2 it has no deadline');
SELECT is(pg_temp.callbacks(), '', '14.1 the callback is used up');
SELECT is((tq.group_progress(pg_temp.id('g'))).outcome, 'failed', '14.2 the group stays resolved');
-- 3: once
SELECT tq.rerun_task(pg_temp.id('b')) \g /dev/null
SELECT pg_temp.take('b') \g /dev/null
SELECT tq.report_completed(pg_temp.id('b'), 1) \g /dev/null
SELECT is(pg_temp.pass('20 minutes'), '', '14.3 not again when the group resolves again');
SELECT is(pg_temp.register('cb2'), 'true', '14.4 a group that is resolved');
SELECT is(pg_temp.counts('cb2'), 'completed 2 2 0 0 0', '14.4 its task is created at once');
SELECT is(pg_temp.callbacks(), '', '14.4 and nothing waits');
SELECT is(pg_temp.register('cb2'), 'true', '14.5 a repeat with the id of a task');
SELECT is(pg_temp.callbacks(), '', '14.5 does nothing');
ROLLBACK TO s;

-- several; repeats; a rerun before maintenance looks
SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT pg_temp.register(n) FROM unnest('{x,y,z,y}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.callbacks(), 'x y z', '14.5 a repeat registers nothing');
SELECT tq.cancel_task(pg_temp.id(n)) FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT tq.rerun_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.pass('1 minute'), '', '14.1 a task runs again');
SELECT tq.cancel_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.pass('5 minutes'), 'callback 3', '14.1 each of them');
SELECT is(pg_temp.counts('y'), 'canceled 2 0 0 2 0', '14.2 canceled');
ROLLBACK TO s;

-- a group of one task; a task that is deleted; a group that is gone
SELECT pg_temp.create(n) FROM unnest('{o,p}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.register('co', 'o') || pg_temp.register('cp', 'p'), 'truetrue', '14.1 groups of one task');
SELECT tq.skip_task(pg_temp.id('o')), tq.delete_task(pg_temp.id('p')) \g /dev/null
SELECT is(pg_temp.pass('1 minute'), 'callback 2', '14.1 resolved, and deleted');
SELECT is(pg_temp.counts('co'), 'completed 1 1 0 0 0', '14.2 of one');
SELECT is(pg_temp.counts('cp'), 'completed 0 0 0 0 0', '14.2 of none');
ROLLBACK TO s;

-- the options, and that tasks of the callback's group can be waited for in turn
SELECT pg_temp.create('a') \g /dev/null
SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/opt', '{}', pg_temp.id('c'), priority => 'high', deadline => '2 hours', tags => '{"t": "1"}', name => 'named',
	policy => '{"retryOn": ["failed"], "uniqueKey": "u"}') \g /dev/null
SELECT isnt(tq.on_group_resolved(pg_temp.id('a'), 'test/opt'), NULL, '14.1 an id of its own');
SELECT is((SELECT string_agg(task_queue_id || ' ' || coalesce(name, '-') || ' ' || role || ' ' || coalesce(failures, 0), ',' ORDER BY name) FROM tq.callback_overview),
	format('test/opt named %1$s 0,test/opt test/opt %1$s 0', current_user), '14.6 callback_overview');
SELECT tq.cancel_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.pass('1 hour'), 'callback 2', '14.1 both');
SELECT is(tq.task(pg_temp.id('c')) #>> ARRAY[k], v, '14.2 ' || k)
FROM (VALUES ('priority', 'high'), ('tags', '{"t": "1"}'), ('policy', '{"retryOn": ["failed"], "uniqueKey": "u"}')) AS o (k, v);
SELECT is(tq.task(pg_temp.id('c')) #>> '{metadata,name}', 'named', '14.2 name');
SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/opt', task_id => pg_temp.id('r'), retry => 3) \g /dev/null
SELECT is((SELECT retries_left FROM (SELECT (tq.status(pg_temp.id('r')) ->> 'retriesLeft')::int) AS s (retries_left)), 3, '14.2 retry');
SELECT is((SELECT count(DISTINCT policy - 'x') FROM tq.task_details WHERE task_id = pg_temp.id('r') AND policy ? 'retryOn'), 1::bigint, '14.2 which stands for a policy');
SELECT ok(pg_temp.near(tq.task(pg_temp.id('c')) ->> 'deadline', pg_temp.clock() + interval '2 hours'), '14.2 deadline');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 6: what cannot be created
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT tq.on_group_resolved(pg_temp.id('g'), 'test/q-f', '{}', pg_temp.id('f' || n), name => 'f' || n) FROM generate_series(1, 25) AS n \g /dev/null
-- another client has taken their ids
SELECT pg_temp.create('f' || n) FROM generate_series(1, 25) AS n \g /dev/null
SELECT pg_temp.register('ok') \g /dev/null
SELECT tq.cancel_task(pg_temp.id(n)) FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.pass('1 minute'), 'callback 1', '14.6 callbacks that fail hold up no other one');
SELECT is(pg_temp.exists('ok'), true, '14.6 whose task is created');
SELECT is((SELECT count(*) FROM tq.callback_overview WHERE failures = 1 AND error ~ 'exists' AND next_attempt > pg_temp.clock() - interval '10 s'), 25::bigint, '14.6 the others are postponed, with the error');
SELECT is((SELECT count(*) FROM tq.postponed_overview WHERE step = 'callback' AND task_id = pg_temp.id('f7')), 1::bigint, '14.6 postponed_overview');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'postponed'), false, '14.6 health');
SELECT is(pg_temp.pass('2 minutes'), '', '14.6 still not');
SELECT is((SELECT DISTINCT failures FROM tq.callback_overview), 2, '14.6 tried again');
SELECT tq.delete_task(pg_temp.id('f' || n)) FROM generate_series(1, 25) AS n \g /dev/null
SELECT is(pg_temp.pass('10 minutes'), 'postponed 25', '14.6 the ids are free');
SELECT is(pg_temp.callbacks() || (SELECT count(*) FROM tq.postponed_overview), '0', '14.6 all are created');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 7: what is refused
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a') \g /dev/null
SELECT pg_temp.throws(call, code, '14.7 ' || call) FROM (VALUES
	($$SELECT tq.on_group_resolved(pg_temp.id('none'), 'test/x')$$, 'TQ404'),
	($$SELECT tq.on_group_resolved(NULL, 'test/x')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'no slash!')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', '{"group": 1}')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', '[]')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', deadline => '8000 years')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', deadline => '-1 s')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', priority => 'x')$$, 'TQ400'),
	($$SELECT tq.on_group_resolved(pg_temp.id('a'), 'test/x', policy => '{"x": 1}')$$, 'TQ400')) AS v (call, code);
SELECT is(pg_temp.callbacks(), '', '14.7 nothing is registered');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 8: the role that registered, when the task is created
-- ---------------------------------------------------------------------------

CREATE ROLE cb_role;
CREATE ROLE cb_gone;
CREATE ROLE cb_other;
SELECT tq.grant_scopes(r::regrole, '{queue:create-task:*,queue:scheduler-id:*,queue:list-task-group:*}') FROM unnest('{cb_role,cb_gone,cb_other}'::text[]) AS r \g /dev/null
CREATE FUNCTION pg_temp.register_as(role text, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	g tq.slugid := pg_temp.id('g');
	t tq.slugid := pg_temp.id(name);
BEGIN
	EXECUTE format('SET ROLE %I', role);
	PERFORM tq.on_group_resolved(g, 'test/x', task_id => t, name => name);
	RESET ROLE;
END $$;
SAVEPOINT roles;
SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT pg_temp.register_as('cb_gone', 'gone'), pg_temp.register_as('cb_role', 'lost'), pg_temp.register_as('cb_other', 'kept') \g /dev/null
SELECT is((SELECT string_agg(name || ' ' || role, ', ' ORDER BY name) FROM tq.callback_overview), 'gone cb_gone, kept cb_other, lost cb_role', '14.8 callback_overview has the role');
ALTER ROLE cb_other RENAME TO cb_renamed;
SELECT tq.revoke_scopes('cb_role', '{queue:create-task:*}') \g /dev/null
DROP ROLE cb_gone;
SELECT tq.cancel_task(pg_temp.id(n)) FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.pass('1 minute'), 'callback 1', '14.8 roles without the scopes hold up no other one');
SELECT is(pg_temp.exists('kept'), true, '14.8 a role that was renamed');
SELECT is((SELECT string_agg(name || ': ' || error, ', ' ORDER BY name) FROM tq.callback_overview),
	'gone: the role that registered the task was dropped, lost: scopes are not sufficient', '14.8 callback_overview has the error');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'postponed'), false, '14.8 health');
SELECT tq.grant_scopes('cb_role', '{queue:create-task:*}') \g /dev/null
SELECT is(pg_temp.pass('5 minutes'), 'postponed 1', '14.8 created when the role has the scopes');
SELECT is(pg_temp.exists('lost'), true, '14.8 its task');
SELECT is(pg_temp.callbacks(), 'gone', '14.8 that of the dropped role waits');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g')), 1, '14.9 until it is taken back');
SELECT is((SELECT count(*) FROM tq.postponed_overview), 0::bigint, '14.9 which ends the failure');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'postponed'), true, '14.9 health');
ROLLBACK TO roles;

-- credentials: their scopes, which end with the claim, are checked once
SELECT pg_temp.create('x', '{"$group": "g"}') \g /dev/null
SET tq.credentials = on;
SELECT pg_temp.create('holder', '{"scopes": ["queue:create-task:*", "queue:scheduler-id:*", "queue:list-task-group:*"]}') \g /dev/null
SELECT tq.revoke_scopes('cb_role', '{queue:create-task:*,queue:scheduler-id:*,queue:list-task-group:*}') \g /dev/null
CREATE TEMP TABLE holder AS SELECT credentials FROM tq.claim_work('test/q-holder', 'g', 'w');
GRANT SELECT ON holder TO cb_role;
-- the scopes count until the subtransaction is rolled back; what it has written is put back
SAVEPOINT assumed;
SET ROLE cb_role;
SELECT tq.assume(credentials) FROM holder \g /dev/null
RESET ROLE;
SELECT pg_temp.register_as('cb_role', 'cred') \g /dev/null
SELECT to_jsonb(c) AS row FROM tq_internal.group_callback AS c \gset
ROLLBACK TO assumed;
INSERT INTO tq_internal.group_callback SELECT * FROM jsonb_populate_record(NULL::tq_internal.group_callback, :'row');
INSERT INTO tq_internal.timer (kind, due, tasks) SELECT 8, registered, ARRAY[id] FROM tq_internal.group_callback;
SELECT is((SELECT client IS NOT NULL FROM tq.callback_overview), true, '14.8 callback_overview has the client of credentials');
SELECT tq.cancel_task(pg_temp.id('x')) \g /dev/null
SAVEPOINT revoke;
SELECT tq.rotate_secret() \g /dev/null
SELECT is(pg_temp.pass('1 minute'), 'callback 1', '14.8 created, whatever the role may do, also with a new secret');
ROLLBACK TO revoke;
DROP OWNED BY cb_role;
DROP ROLE cb_role;
SELECT is(pg_temp.pass('1 minute'), '', '14.8 not if the role was dropped that had assumed them');
SELECT is((SELECT error FROM tq.callback_overview), 'the role that registered the task was dropped', '14.8 which the view shows, too');
ROLLBACK TO revoke;
SELECT tq.rotate_secret(true) \g /dev/null
SELECT is(pg_temp.pass('1 minute'), '', '14.8 not with credentials that were revoked');
SELECT is((SELECT concat_ws(' ', client, failures, error) FROM tq.callback_overview), ' 1 the credentials by which the task was registered were revoked', '14.8 which the view shows');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'postponed'), false, '14.8 and health');
ROLLBACK TO roles;

-- ---------------------------------------------------------------------------
-- 9: cancel_group_callbacks
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT pg_temp.create('o') \g /dev/null
SELECT pg_temp.register(n) FROM unnest('{x,y,z}'::text[]) AS n \g /dev/null
SELECT pg_temp.register('other', 'o') \g /dev/null
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g'), pg_temp.id('y')), 1, '14.9 one');
SELECT is(pg_temp.callbacks(), 'other x z', '14.9 and no other one');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g'), pg_temp.id('y')), 0, '14.9 a repeat');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g'), pg_temp.id('other')), 0, '14.9 that of another group');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('none')), 0, '14.9 no such group');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g')), 2, '14.9 all');
SELECT is(pg_temp.callbacks(), 'other', '14.9 of the group');
SELECT tq.cancel_task(pg_temp.id(n)) FROM unnest('{a,b}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.pass('1 minute'), '', '14.9 nothing is created');
SELECT is(pg_temp.register('y'), 'true', '14.9 the id is free again');
SELECT is(tq.cancel_group_callbacks(pg_temp.id('g')), 0, '14.9 a task that was created stays');
ROLLBACK TO roles;

-- who may
SELECT pg_temp.create('a', '{"$group": "g"}') \g /dev/null
SELECT pg_temp.register_as('cb_role', 'mine') \g /dev/null
CREATE FUNCTION pg_temp.cancel_as(role text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	g tq.slugid := pg_temp.id('g');
	n text;
BEGIN
	EXECUTE format('SET ROLE %I', role);
	n := tq.cancel_group_callbacks(g);
	RESET ROLE;
	RETURN n;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT is(pg_temp.cancel_as('cb_other'), 'TQ404', '14.9 another role');
SELECT tq.grant_scopes('cb_other', '{queue:cancel-task-in-queue:test/x}') \g /dev/null
SAVEPOINT t;
SELECT is(pg_temp.cancel_as('cb_other'), '1', '14.9 which may cancel the task');
ROLLBACK TO t;
SELECT is(pg_temp.cancel_as('cb_role'), '1', '14.9 the role that registered it');
ROLLBACK TO s;
SELECT is((SELECT count(*) FROM tq_internal.group_callback) + (SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
