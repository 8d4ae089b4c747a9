-- doc/spec/taskcluster.md 7.2: what a role with rights to its own queues can do to
-- the tasks of another application.
BEGIN;
\ir helper.psql

CREATE ROLE bank;
CREATE ROLE teller;
CREATE ROLE spy;
SELECT tq.grant_queue('bank', 'bank/*', 'produce'), tq.grant_queue('bank', 'bank/*', 'work'),
	tq.grant_queue('teller', 'bank/*', 'produce'), tq.grant_queue('spy', 'mine/*', 'produce') \g /dev/null

-- Calls as a role: its result, or its error.
CREATE FUNCTION pg_temp.call_as(who name, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	detail text;
BEGIN
	PERFORM set_config('role', who, true);
	EXECUTE call INTO result;
	PERFORM set_config('role', 'none', true);
	RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || detail;
END $$;
CREATE FUNCTION pg_temp.state_of(id tq.slugid) RETURNS text LANGUAGE sql AS $$
	SELECT tq.status(id) ->> 'state' || coalesce(' ' || (tq.status(id) #>> '{runs,-1,reasonResolved}'), '')
$$;
\set forbidden 'TQ403 The call requires one of (queue:join-in-queue:<taskQueueId>, queue:create-task:lowest:<taskQueueId>).'
\set cancels '{"onUnsuccessful": "cancel-group"}'

SET ROLE bank;
SELECT tq.enqueue('bank/lone') AS lone, tq.slugid() AS shared \gset
SELECT tq.enqueue('bank/a', task_group_id => :'shared') AS a, tq.enqueue('bank/b', task_group_id => :'shared') AS b \gset
SELECT task_id FROM tq.claim_work('bank/a', 'g', 'w') \g /dev/null
RESET ROLE;

-- No policy of another application reaches a task: its tasks are not in the group.
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, policy => %L, deadline => ''1 s'')', task_group, :'cancels')), :'forbidden', what)
FROM (VALUES (:'lone', 'the group of a lone task'), (:'shared', 'a group of several tasks')) AS v (task_group, what);
SELECT is(pg_temp.call_as('spy', format('SELECT tq.create_task(%L, %L)', id, pg_temp.def('x', '{"taskQueueId": "mine/q"}') || jsonb_build_object('taskGroupId', :'shared') - 'schedulerId')), :'forbidden', 'create_task')
FROM tq.slugid() AS id;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.define_task(%L, %L)', id, pg_temp.def('x', '{"taskQueueId": "mine/q"}') || jsonb_build_object('taskGroupId', :'lone') - 'schedulerId')), :'forbidden', 'define_task')
FROM tq.slugid() AS id;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue_tasks(''mine/q'', ''{"{}","{}"}'', task_group_id => %L)', :'shared')), :'forbidden', 'enqueue_tasks');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.on_group_resolved(%L, ''mine/q'')', :'shared')) ~ '^TQ403 ', true, 'on_group_resolved');
SELECT pg_temp.pass('1 hour') \g /dev/null
RESET tq.clock_offset;
SELECT is(pg_temp.state_of(:'a'), 'pending', 'the claim has expired, and its retry waits');
SELECT is(pg_temp.state_of(:'b'), 'pending', 'pending as before');
SELECT is(pg_temp.state_of(:'lone'), 'pending', 'the lone one, too');

-- Those who produce in the queue of its first task may join it, and what was granted the right.
SELECT is(pg_temp.call_as('teller', format('SELECT tq.enqueue(''bank/c'', task_group_id => %L) IS NOT NULL', :'shared')), 'true', 'a producer of the same queues');
SELECT is(pg_temp.call_as('teller', format('SELECT tq.enqueue(''bank/c'', task_group_id => %L) IS NOT NULL', :'lone')), 'true', 'and of a lone task');
SELECT tq.grant_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L) IS NOT NULL', :'shared')), 'true', 'with the right to join');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L)', :'lone')), :'forbidden', 'which is for one queue');
SELECT tq.revoke_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L)', :'shared')), :'forbidden', 'and can be revoked');

-- A task does not become part of a group that another application has begun under its id.
SELECT tq.slugid() AS guessed \gset
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, policy => %L) IS NOT NULL', :'guessed', :'cancels')), 'true', 'a group of its own');
SELECT is(pg_temp.call_as('bank', format('SELECT tq.enqueue(''bank/q'', task_id => %L)', :'guessed')), :'forbidden', 'its first task decides whose it is');

-- A schedulerId is a right to its groups, as in Taskcluster, and no access gives every one.
SELECT is(pg_temp.call_as('spy', $$SELECT tq.enqueue('mine/q', scheduler_id => 'bank')$$), 'TQ403 The call requires queue:scheduler-id:bank.', 'the schedulerId of another application');
SELECT tq.grant_scopes('bank', '{queue:scheduler-id:bank}'), tq.grant_scopes('spy', '{queue:scheduler-id:bank}') \g /dev/null
SELECT tq.slugid() AS scheduled \gset
SELECT is(pg_temp.call_as('bank', format('SELECT tq.enqueue(''bank/q'', task_group_id => %L, scheduler_id => ''bank'') IS NOT NULL', :'scheduled')), 'true', 'a group of a scheduler');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, scheduler_id => ''bank'') IS NOT NULL', :'scheduled')), 'true', 'who has its schedulerId may join');

-- A task depends on tasks of queues in which its creator may create, or has the right to depend; others are tasks that do not exist.
SELECT tq.enqueue('bank/lone') AS vault \gset
SELECT task_id, run_id FROM tq.claim_task(:'vault', 0, 'g', 'w') \g /dev/null
SELECT tq.report_completed(:'vault', 0, result => '"secret"') \g /dev/null
SELECT tq.slugid() AS nowhere \gset
CREATE FUNCTION pg_temp.depend(who name, required text, queue text DEFAULT 'mine/q') RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.call_as(who, format('SELECT tq.enqueue(%L, dependencies => ARRAY[%L]::tq.slugid[])', queue, required))
$$;
SELECT is(replace(pg_temp.depend('spy', :'vault'), :'vault', 'T'), replace(pg_temp.depend('spy', :'nowhere'), :'nowhere', 'T'),
	'4.2 a foreign task is one that does not exist');
SELECT is(pg_temp.depend('spy', :'vault'), format('TQ400 missingTaskDependencies: [%s]; expiringTaskDependencies: [].', :'vault'), '4.2 whatever its expiry');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object(''taskId'', tq.slugid(), ''task'', %L::jsonb)))',
	pg_temp.def('x', '{"taskQueueId": "mine/q"}') - '{schedulerId,taskGroupId}'::text[] || jsonb_build_object('dependencies', jsonb_build_array(:'vault')))) ~ '^TQ400 missingTaskDependencies', true, 'create_tasks');
SELECT is(length(pg_temp.depend('teller', :'vault', 'bank/x')), 22, 'a producer of its queue may');
SELECT tq.grant_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT pg_temp.depend('spy', :'vault') AS own \gset
SELECT is(length(:'own'), 22, 'and a role with the right to depend');
SELECT is(pg_temp.call_as('spy', format('SELECT state || '' '' || result FROM tq.dependency_results(%L)', :'own')), 'completed "secret"', 'which sees the result');
SELECT is(pg_temp.depend('spy', :'a') ~ '^TQ400 missing', true, 'for one queue');
SELECT tq.revoke_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT concat_ws('' '', state, result) FROM tq.dependency_results(%L)', :'own')), 'missing', 'as long as it has it');
SELECT is(pg_temp.depend('spy', :'vault') ~ '^TQ400 missing', true, 'and no longer');

-- The tasks of a group that one may join are its own: a task that creates others lets them depend on itself.
SELECT tq.grant_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT length(tq.enqueue(''mine/q'', task_group_id => %L, dependencies => ARRAY[%L]::tq.slugid[])::text)', :'shared', :'a')), '22', 'a member of its group');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, dependencies => ARRAY[%L]::tq.slugid[])', :'shared', :'vault')) ~ '^TQ400 missing', true, 'but no other');
SELECT tq.revoke_queue('spy', 'bank/a', 'join') \g /dev/null

-- add_dependencies() is the same; tasks of its own queue, a task may depend on.
SELECT tq.grant_queue('spy', 'mine/*', 'manage') \g /dev/null
SELECT tq.slugid() AS waiting, pg_temp.call_as('spy', $$SELECT tq.enqueue('mine/q')$$) AS mine \gset
SELECT pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_id => %L, dependencies => ARRAY[%L]::tq.slugid[])', :'waiting', :'mine')) \g /dev/null
SELECT is(replace(pg_temp.call_as('spy', format('SELECT tq.add_dependencies(%L, ARRAY[%L]::tq.slugid[])', :'waiting', r)), r, 'T'),
	'TQ400 missingTaskDependencies: [T]; expiringTaskDependencies: [].', 'add_dependencies') FROM unnest(ARRAY[:'vault', :'nowhere']) AS r;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.add_dependencies(%L, ARRAY[tq.enqueue(''mine/other'')]) ->> ''state''', :'waiting')), 'unscheduled', 'add_dependencies: a task of its own');

-- Rights are rows: each is revoked by itself.
SELECT tq.grant_queue('spy', 'mine/*', 'work') \g /dev/null
SELECT tq.revoke_queue('spy', 'mine/*', 'work'), tq.revoke_queue('spy', 'mine/*', 'manage') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.status(%L) ->> ''state''', :'mine')), 'pending', 'what another access gives as well stays');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.cancel_task(%L)', :'mine')) ~ '^TQ403', true, 'what no other gives is gone');
SELECT throws_ok($$SELECT tq.revoke_scopes('spy', '{queue:status-in-queue:mine/*}')$$, 'TQ409', 'scope "queue:status-in-queue:mine/*" cannot be revoked from role "spy"', 'revoke_scopes: what an access gives');
SELECT tq.grant_scopes('spy', '{queue:status-in-queue:mine/*}'), tq.revoke_queue('spy', 'mine/*', 'produce') \g /dev/null
SELECT is(pg_temp.call_as('spy', 'SELECT tq.current_scopes()'), '{queue:scheduler-id:bank,queue:status-in-queue:mine/*}', 'nor does revoke_queue() take what grant_scopes() gave');
SELECT tq.revoke_scopes('spy', '{queue:status-in-queue:mine/*}') \g /dev/null
SELECT is(pg_temp.call_as('spy', 'SELECT tq.current_scopes()'), '{queue:scheduler-id:bank}', 'which revoke_scopes() does');

SELECT * FROM finish();
ROLLBACK;
