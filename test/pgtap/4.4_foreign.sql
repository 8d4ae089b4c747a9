-- doc/spec/taskcluster.md 4.4: dependencies on tasks of other applications.
BEGIN;
\ir helper.psql

CREATE ROLE foreigner;
CREATE FUNCTION pg_temp.own(name text, VARIADIC required text[] DEFAULT '{}') RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue('mine/q-' || name, task_id => pg_temp.id(name), dependencies => coalesce(pg_temp.ids(VARIADIC required), '{}'), name => name)
$$;
SELECT tq.grant_queue('foreigner', 'mine/*', a) FROM unnest('{produce,manage,read}'::text[]) AS a \g /dev/null
SELECT tq.grant_queue('foreigner', 'test/*', 'depend') \g /dev/null
DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO foreigner', (SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema())); END $$;

CREATE FUNCTION pg_temp.settle() RETURNS bigint LANGUAGE sql AS $$ SELECT sum(tasks)::bigint FROM tq.upkeep() WHERE step = 'settle' $$;
CREATE FUNCTION pg_temp.edge(required text, dependent text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT format('%s %s', f.from_run, f.settled) FROM tq_internal.foreign_dependency f
		JOIN tq_internal.task r ON r.id = f.required JOIN tq_internal.task d ON d.id = f.dependent
		WHERE r.task_id = pg_temp.id(edge.required) AND d.task_id = pg_temp.id(edge.dependent));
END $$;
CREATE FUNCTION pg_temp.timers() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM tq_internal.timer WHERE kind = 9 $$;

-- an end leaves its dependents to maintenance, and one timer
SELECT pg_temp.create('a');
SET ROLE foreigner;
SELECT pg_temp.own('d', 'a'), pg_temp.own('e', 'a');
RESET ROLE;
SELECT is(pg_temp.edge('a', 'd'), '0 f', 'a foreign dependency has its own row');
SELECT is((SELECT count(*) FROM tq_internal.dependency), 0::bigint, 'and no other');
SELECT is(pg_temp.look('d'), 'unscheduled 5:', 'it is counted');
SELECT pg_temp.settle();
SELECT is(pg_temp.look('d'), 'unscheduled 5:', 'a pass before the end changes nothing');
SELECT is((SELECT array_agg(dependent) FROM tq_internal.dependency), '{0}', 'but marks the required task');
SELECT is(pg_temp.timers(), 0::bigint, 'and takes the timer');
SELECT pg_temp.finish_task('a');
SELECT is(pg_temp.look('d'), 'unscheduled 5:', 'the end releases no foreign dependent');
SELECT is(pg_temp.timers(), 1::bigint, 'and leaves one timer');
SELECT is(pg_temp.settle(), 2::bigint, 'settle counts them down');
SELECT is(pg_temp.look('d') || pg_temp.look('e'), repeat('pending 5: scheduled>pending', 2), 'they are scheduled');
SELECT is(pg_temp.edge('a', 'd'), '0 t', 'the dependency is settled');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('a'))), 2::bigint, 'it stays in the list');
SELECT is(pg_temp.timers(), 0::bigint, 'nothing is left');

-- an end before the pass: the history shows it, also after a rerun
SELECT pg_temp.create('b'), pg_temp.create('c');
SET ROLE foreigner;
SELECT pg_temp.own('db', 'b'), pg_temp.own('dc', 'c');
RESET ROLE;
SELECT pg_temp.finish_task('b'), pg_temp.finish_task('c');
SELECT tq.rerun_task(pg_temp.id('c')) ->> 'state';
SELECT pg_temp.settle();
SELECT is(pg_temp.state('db') || ' ' || pg_temp.state('dc'), 'pending pending', 'an end before the first pass is seen in the history');

-- what is met at the creation is never counted
SET ROLE foreigner;
SELECT pg_temp.own('met', 'a');
RESET ROLE;
SELECT is(pg_temp.edge('a', 'met') || ' ' || pg_temp.state('met'), '0 t pending', 'met at creation');
SELECT pg_temp.settle();
SELECT is(pg_temp.look('met'), 'pending 5: scheduled>pending', 'and not again');

-- a failed task meets all-resolved only; a rerun that completes, the other
SELECT pg_temp.create('f', '{"retries": 0}');
SET ROLE foreigner;
SELECT pg_temp.own('w', 'f');
SELECT tq.enqueue('mine/q-r', task_id => pg_temp.id('wr'), dependencies => pg_temp.ids('f'), requires => 'all-resolved');
RESET ROLE;
SELECT pg_temp.settle();
SELECT pg_temp.finish_task('f', 'failed');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('w') || ' ' || pg_temp.state('wr'), 'unscheduled pending', 'a failure meets all-resolved only');
SET ROLE foreigner;
SELECT pg_temp.own('w1', 'f');
SELECT is((SELECT detail FROM tq.why(pg_temp.id('w1')) LIMIT 1) ~ 'it depends on .*: failed', true, 'why() shows it');
RESET ROLE;
SELECT is(pg_temp.edge('f', 'w1'), '1 f', 'after a failure the next run counts');
SELECT tq.rerun_task(pg_temp.id('f')) ->> 'state';
SELECT pg_temp.finish_task('f');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('w') || ' ' || pg_temp.state('w1'), 'pending pending', 'the rerun meets both');

-- each end leaves the timer: cancel, deadline, claim expiry
SELECT pg_temp.create('x1', '{"$deadline": "10 minutes"}'), pg_temp.create('x2'), pg_temp.create('x3', '{"retries": 0}');
SET ROLE foreigner;
SELECT tq.enqueue('mine/q-x', task_id => pg_temp.id('y' || n), dependencies => pg_temp.ids('x' || n), requires => 'all-resolved', deadline => '9 minutes') FROM generate_series(1, 3) AS n;
RESET ROLE;
SELECT pg_temp.settle();
SELECT tq.cancel_task(pg_temp.id('x2')) ->> 'state';
SELECT count(*) FROM tq.claim_task(pg_temp.id('x3'), 0, 'g', 'w');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('y1') || ' ' || pg_temp.state('y2') || ' ' || pg_temp.state('y3'), 'unscheduled pending unscheduled', 'a cancel');
SET tq.clock_offset = '11 minutes';
SELECT pg_temp.settle();
SELECT is((SELECT count(*) FROM tq_internal.foreign_dependency f JOIN tq_internal.task t ON t.id = f.required WHERE t.task_id IN (pg_temp.id('x1'), pg_temp.id('x2')) AND f.settled), 2::bigint, 'a deadline');
SELECT count(*) FROM tq.upkeep();
RESET tq.clock_offset;

-- own and foreign dependencies, and one on the task itself
SELECT pg_temp.create('fa');
SET ROLE foreigner;
SELECT pg_temp.own('oa'), pg_temp.own('mixed', 'oa', 'fa');
SELECT tq.define_task(pg_temp.id('self'), jsonb_build_object('taskQueueId', 'mine/q', 'deadline', now() + interval '1 hour', 'created', now(), 'payload', '{}'::jsonb, 'metadata', '{"name":"s","description":"s","owner":"o","source":"https://e.com"}'::jsonb,
	'dependencies', jsonb_build_array(pg_temp.id('fa')))) ->> 'state';
SELECT is(tq.add_dependencies(pg_temp.id('mixed'), pg_temp.ids('x2', 'c')) ->> 'state', 'unscheduled', 'add_dependencies');
RESET ROLE;
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('mixed')), 4, 'all are counted');
SELECT pg_temp.finish_task('fa');
SELECT pg_temp.settle();
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('mixed')), 3, 'the foreign one is met');
SELECT is(pg_temp.state('self'), 'unscheduled', 'a task that depends on itself');
SELECT pg_temp.finish_task('oa');
SELECT pg_temp.finish_task('c');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('mixed')), 2, 'the own one at once, the added one not yet');
SELECT pg_temp.settle();
SELECT tq.rerun_task(pg_temp.id('x2')) ->> 'state';
SELECT pg_temp.finish_task('x2');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('mixed'), 'pending', 'the last one schedules it');

-- a cycle is refused, also over foreign dependencies
SELECT pg_temp.create('k', '{"$deps": ["self"]}');
SET ROLE foreigner;
SELECT pg_temp.own('v', 'k');
RESET ROLE;
CREATE FUNCTION pg_temp.as_foreigner(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL ROLE foreigner;
	EXECUTE call;
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT matches(pg_temp.as_foreigner($$SELECT tq.add_dependencies(pg_temp.id('self'), pg_temp.ids('v'))$$), '^TQ400 .* would close a cycle', 'add_dependencies: a cycle');
RESET ROLE;

-- batches, with turns: two tasks share each
SELECT pg_temp.create('m1'), pg_temp.create('m2');
SET ROLE foreigner;
SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', tq.slugid(), 'task', jsonb_build_object('taskQueueId', 'mine/many', 'deadline', now() + interval '1 hour', 'created', now(), 'payload', '{}'::jsonb,
	'metadata', '{"name":"s","description":"s","owner":"o","source":"https://e.com"}'::jsonb, 'dependencies', jsonb_build_array(pg_temp.id(CASE WHEN n % 2 = 0 THEN 'm1' ELSE 'm2' END))))) FROM generate_series(1, 3000) AS n));
RESET ROLE;
SELECT pg_temp.finish_task('m1'), pg_temp.finish_task('m2');
SELECT is(pg_temp.settle(), 3000::bigint, '3000 dependents of two tasks');
SELECT is((tq.task_queue_counts('mine/many') -> 'pendingTasks')::bigint, 3000::bigint, 'all are scheduled');
SELECT is(pg_temp.timers(), 0::bigint, 'nothing is left');

-- a task with so many dependencies that its counter has stripes
SELECT tq.create_tasks((SELECT jsonb_agg(pg_temp.entry('s' || n, '{"taskQueueId": "test/s"}')) FROM generate_series(1, 300) AS n));
SET ROLE foreigner;
SELECT pg_temp.own('fan', VARIADIC (SELECT array_agg('s' || n) FROM generate_series(1, 300) AS n));
RESET ROLE;
SELECT pg_temp.finish_task('s1');
SELECT pg_temp.settle();
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('fan')), 299, 'a striped counter');
SELECT count(pg_temp.finish_task('s' || n)) FROM generate_series(2, 300) AS n;
SELECT pg_temp.settle();
SELECT is(pg_temp.state('fan'), 'pending', 'the last one schedules it');

-- onUnsuccessful: cancel-dependents, and what waits for those in turn
SELECT pg_temp.create('bad', '{"retries": 0, "policy": {"onUnsuccessful": "cancel-dependents"}}');
SELECT pg_temp.create('mid', '{"$deps": ["bad"]}');
SET ROLE foreigner;
SELECT pg_temp.own('c1', 'bad'), pg_temp.own('c2', 'c1'), pg_temp.own('c3', 'mid');
SELECT tq.enqueue('mine/q-r', task_id => pg_temp.id('c4'), dependencies => pg_temp.ids('bad'), requires => 'all-resolved');
RESET ROLE;
SELECT pg_temp.settle();
SELECT pg_temp.finish_task('bad', 'failed');
SELECT is(pg_temp.state('mid') || ' ' || pg_temp.state('c1'), 'exception unscheduled', 'cancel-dependents: the own ones at once');
SELECT pg_temp.settle();
SELECT is((SELECT string_agg(pg_temp.state(n), ' ' ORDER BY n) FROM unnest('{c1,c2,c3,c4}'::text[]) AS n), 'exception exception exception pending', 'the foreign ones, and what waits for them, by the pass');
SET ROLE foreigner;
SELECT pg_temp.own('c5', 'bad');
RESET ROLE;
SELECT pg_temp.settle();
SELECT is(pg_temp.state('c5'), 'unscheduled', 'not one that was created later');

-- tolerated failures
SELECT pg_temp.create('tol', '{"retries": 0, "policy": {"onUnsuccessful": "tolerate"}}');
SET ROLE foreigner;
SELECT pg_temp.own('t1', 'tol');
RESET ROLE;
SELECT pg_temp.finish_task('tol', 'failed');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('t1'), 'pending', 'a tolerated failure meets it');

-- repair: of the dependent, which counts what is not settled; of both
SELECT pg_temp.create('g', '{"retries": 0}'), pg_temp.create('g2', '{"retries": 0}');
SET ROLE foreigner;
SELECT tq.enqueue('mine/q-p', task_id => pg_temp.id('p'), task_group_id => pg_temp.id('p'), dependencies => pg_temp.ids('g', 'g2'));
RESET ROLE;
SELECT pg_temp.settle();
SELECT tq.cancel_task(pg_temp.id('p')) ->> 'state';
SELECT pg_temp.finish_task('g');
SET ROLE foreigner;
SELECT is(tq.retry_task_group(pg_temp.id('p'), reasons => '{canceled}', downstream => true), 1::bigint, 'a repair of the dependent');
RESET ROLE;
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('p')), 2, 'what is not settled is counted');
SELECT pg_temp.settle();
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('p')), 1, 'and then settled');
SELECT pg_temp.finish_task('g2');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('p'), 'pending', 'the other one as well');
SELECT tq.cancel_task(pg_temp.id('p')) ->> 'state';
SELECT tq.rerun_task(pg_temp.id('g'), downstream => true) ->> 'state';
SELECT is(pg_temp.state('p') || ' ' || pg_temp.edge('g', 'p') || ' ' || pg_temp.edge('g2', 'p'), 'unscheduled 1 f 0 t', 'an administrator repairs the foreign dependents, too');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('p'), 'unscheduled', 'the earlier run does not meet it');
SELECT pg_temp.finish_task('g');
SELECT pg_temp.settle();
SELECT is(pg_temp.state('p'), 'pending', 'the next one does');
-- a dependent that ended before: what is met is settled all the same
SELECT pg_temp.create('h');
SET ROLE foreigner;
SELECT pg_temp.own('q', 'h');
RESET ROLE;
SELECT tq.cancel_task(pg_temp.id('q')) ->> 'state';
SELECT pg_temp.finish_task('h');
SELECT pg_temp.settle();
SELECT is(pg_temp.edge('h', 'q') || ' ' || pg_temp.state('q'), '0 t exception', 'a dependent that has ended is not scheduled');

-- a foreign dependent keeps no task from being deleted, unless it is about to be counted down
SELECT pg_temp.create('z1', '{"retries": 0}'), pg_temp.create('z2');
SET ROLE foreigner;
SELECT pg_temp.own('zw', 'z1'), pg_temp.own('zx', 'z2');
RESET ROLE;
SELECT pg_temp.settle();
SELECT pg_temp.finish_task('z1', 'failed'), pg_temp.finish_task('z2');
SET tq.clock_offset = '10 seconds';
SELECT is(tq.purge('test/q-z1', '{completed,failed}', '1 second'), 1::bigint, 'purge: a failed task');
SELECT is(tq.purge('test/q-z2', '{completed,failed}', '1 second'), 0::bigint, 'purge: not what is met and not settled');
SELECT pg_temp.settle();
SELECT is(tq.purge('test/q-z2', '{completed,failed}', '1 second'), 1::bigint, 'purge: then it is');
SELECT pg_temp.settle();
SELECT is((SELECT count(*) FROM tq_internal.foreign_dependency f WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = f.required)), 0::bigint, 'the dependencies of what is gone are deleted');
SELECT is(pg_temp.state('zw') || ' ' || pg_temp.state('zx'), 'unscheduled pending', 'the dependent of a failed task waits for its deadline');
RESET tq.clock_offset;
-- also before maintenance has marked the required task
SELECT pg_temp.create('soon1', '{"retries": 0}'), pg_temp.create('soon2');
SET ROLE foreigner;
SELECT pg_temp.own('soonw', 'soon1'), pg_temp.own('soonx', 'soon2');
RESET ROLE;
SELECT pg_temp.finish_task('soon1', 'failed'), pg_temp.finish_task('soon2');
SELECT is((SELECT count(*) FROM tq_internal.dependency e JOIN tq_internal.task t ON t.id = e.required WHERE t.task_id IN (pg_temp.id('soon1'), pg_temp.id('soon2'))),
	0::bigint, 'a required task that is not marked yet');
DELETE FROM tq_internal.timer WHERE kind = 9;
SET tq.clock_offset = '20 seconds';
SELECT is(tq.purge('test/q-soon1', '{completed,failed}', '1 second'), 1::bigint, 'purge: a failed task, not marked');
SELECT is(pg_temp.timers(), 1::bigint, 'which leaves a timer');
SELECT is(tq.purge('test/q-soon2', '{completed,failed}', '1 second'), 0::bigint, 'purge: not what is met, not marked and not settled');
SELECT pg_temp.settle();
RESET tq.clock_offset;
SELECT pg_temp.create('soon3'), pg_temp.finish_task('soon3');
SET ROLE foreigner;
SELECT pg_temp.own('soony', 'soon3');
RESET ROLE;
SELECT is(pg_temp.edge('soon3', 'soony'), '0 t', 'a dependency that is met at creation');
DELETE FROM tq_internal.timer WHERE kind = 9;
SET tq.clock_offset = '30 seconds';
SELECT is(tq.purge('test/q-soon3', '{completed,failed}', '1 second'), 1::bigint, 'purge: what is met and settled, not marked');
SELECT is(pg_temp.timers(), 1::bigint, 'which leaves a timer');
SELECT pg_temp.settle();
SELECT is((SELECT count(*) FROM tq_internal.foreign_dependency f WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = f.required)), 0::bigint, 'by which its dependencies are deleted');
RESET tq.clock_offset;
-- and goes with the dependent
SELECT is(tq.delete_task(pg_temp.id('t1')) IS NOT NULL, true, 'a dependent is deleted');
SELECT is((SELECT count(*) FROM tq_internal.foreign_dependency f WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = f.dependent)), 0::bigint, 'with its dependencies');

-- a dependency within one's own right is as before
SELECT pg_temp.create('own');
SELECT pg_temp.create('near', '{"$deps": ["own"]}');
SELECT pg_temp.finish_task('own');
SELECT is(pg_temp.state('near'), 'pending', 'a dependency of an administrator is met at once');
SELECT * FROM finish();
ROLLBACK;
