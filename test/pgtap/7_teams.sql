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

SELECT * FROM finish();
ROLLBACK;
