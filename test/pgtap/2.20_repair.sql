-- doc/spec/taskcluster.md 2.4, 2.20: rerun_task with a deadline and downstream,
-- retry_task_group.
\ir messages.psql

-- That a call is refused; the publisher works meanwhile, so tables are not compared.
CREATE FUNCTION pg_temp.refused(call text, code text, title text) RETURNS text
LANGUAGE sql AS $$
	SELECT throws_ok(call, code, NULL::text, title)
$$;

-- The states of these tasks.
CREATE FUNCTION pg_temp.states(VARIADIC names text[]) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(pg_temp.state(name), ' ' ORDER BY n) FROM unnest(names) WITH ORDINALITY AS u (name, n)
$$;

-- What a group has by group_progress, and by its tasks.
CREATE FUNCTION pg_temp.progress(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', p.unscheduled, p.pending, p.running, p.completed, p.failed, p.exception, p.outcome) FROM tq.group_progress(pg_temp.id(name)) AS p
$$;
CREATE FUNCTION pg_temp.counted(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', count(*) FILTER (WHERE state = 'unscheduled'), count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'running'),
		count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'exception'))
	FROM tq.task_details WHERE task_group_id = pg_temp.id($1)
$$;

-- How often task-group-resolved was sent for a group since the last look.
CREATE FUNCTION pg_temp.resolutions(name text) RETURNS bigint
LANGUAGE sql AS $$
	SELECT count(*) FROM pg_temp.news() WHERE exchange = 'task-group-resolved' AND payload ->> 'taskGroupId' = pg_temp.id($1)::text
$$;

-- ---- arguments ----
SELECT pg_temp.create('arg');
SELECT pg_temp.refused(format('SELECT tq.rerun_task(pg_temp.id(%L), %s)', 'arg', a), 'TQ400', '2.4 refused: ' || a) FROM unnest('{
	deadline => interval ''0'', deadline => interval ''-1 hour'', deadline => interval ''6 days'', downstream => NULL}'::text[]) AS a;
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('missing'), '1 hour', true)$$, 'TQ404', '2.4 no such task');
SELECT pg_temp.refused(format('SELECT tq.retry_task_group(pg_temp.id(%L), %s)', 'arg', a), 'TQ400', '2.20 refused: ' || a) FROM unnest(ARRAY[
	'reasons => ARRAY[''completed'']', 'reasons => ARRAY[''no-such'']', 'reasons => ARRAY[NULL]', 'deadline => interval ''0''', 'downstream => NULL']) AS a;
SELECT pg_temp.refused($$SELECT tq.retry_task_group(pg_temp.id('missing'))$$, 'TQ404', '2.20 no such group');
SELECT is(tq.retry_task_group(pg_temp.id('arg')), 0::bigint, '2.20 a group without an unsuccessful task');

-- ---- a new deadline ----
SELECT pg_temp.resolved('d', 'failed', '{"$deadline": "10 minutes", "$expires": "20 minutes"}');
SELECT pg_temp.create('dp', '{"$deadline": "10 minutes"}');
SELECT pg_temp.running('dr', '{"$deadline": "10 minutes"}');
SELECT pg_temp.create('du', '{"$deadline": "10 minutes", "$deps": ["du"]}');
SET tq.clock_offset = '11 minutes';
SELECT pg_temp.refused(format('SELECT tq.rerun_task(pg_temp.id(%L), downstream => true)', n), 'TQ409', '2.4 past the deadline without a new one: ' || n)
FROM unnest('{d,dp,dr,du}'::text[]) AS n;
SELECT alike(pg_temp.error(format('SELECT tq.rerun_task(pg_temp.id(%L), downstream => %L)', 'd', downstream)) ->> 'hint', initcap(left(w.advice, 1)) || substr(w.advice, 2) || '%',
	'2.4 it says what why() says, downstream ' || downstream) FROM tq.why(pg_temp.id('d')) AS w, unnest('{false,true}'::bool[]) AS downstream;
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('d'), '30 minutes')), 'pending 5: scheduled>failed/failed rerun>pending', '2.4 a new deadline: a new run');
SELECT ok(pg_temp.near(tq.status(pg_temp.id('d')) ->> 'deadline', pg_temp.clock() + interval '30 minutes'), '2.4 the deadline counts from now');
SELECT ok(pg_temp.near(tq.status(pg_temp.id('d')) ->> 'expires', pg_temp.clock() + interval '40 minutes'), '2.4 expires stays as long after it');
SELECT pg_temp.resolved('d2', 'failed', '{"$deadline": "30 minutes", "$expires": "40 minutes"}');
SELECT tq.rerun_task(pg_temp.id('d2'), '2 hours') \g /dev/null
SELECT lives_ok($$SELECT pg_temp.create('d2', '{"$deadline": "30 minutes", "$expires": "40 minutes"}')$$, '2.4 a repeat of the creation, when expires has moved');
SELECT pg_temp.refused($$SELECT pg_temp.create('d2', '{"$deadline": "30 minutes", "$expires": "5 hours"}')$$, 'TQ409', '2.4 not one with a later expires');
SELECT tq.rerun_task(pg_temp.id('d2'), '5 hours') \g /dev/null
SELECT ok(pg_temp.near(tq.status(pg_temp.id('d2')) ->> 'expires', pg_temp.clock() + interval '5 hours 10 minutes'), '2.4 expires moves again: as long after it as after the former one');
SELECT tq.delete_task(pg_temp.id('d2')) \g /dev/null
SELECT ok(pg_temp.near(tq.task(pg_temp.id('d')) ->> 'deadline', pg_temp.clock() - interval '1 minute'), '2.4 the definition keeps its deadline');
SELECT is(tq.rerun_task(pg_temp.id(n), '30 minutes') ->> 'state', state, '2.4 a new deadline of one that is ' || state)
FROM (VALUES ('dp', 'pending'), ('dr', 'running'), ('du', 'pending')) AS v (n, state);
SELECT is(pg_temp.pass(), '', '2.4 the deadlines have moved');
SELECT is(pg_temp.states('d', 'dp', 'dr', 'du'), 'pending pending running pending', '2.4 and none was handled');
SELECT is(pg_temp.pass('42 minutes'), 'deadline 4', '2.4 the new deadlines are');
SELECT is(pg_temp.look('d'), 'exception 5: scheduled>failed/failed rerun>exception/deadline-exceeded', '2.4 the run ends');
SELECT pg_temp.pass('50 minutes');
SELECT is(pg_temp.state('d'), 'exception', '2.4 it is kept until the new expiry');
SELECT pg_temp.pass('3 hours');
SELECT pg_temp.refused($$SELECT tq.status(pg_temp.id('d'))$$, 'TQ404', '2.4 and deleted then');
RESET tq.clock_offset;

-- ---- downstream ----
-- r -> (b -> c), done, x; all in a group
SELECT pg_temp.create(n, o::jsonb || '{"$group": "g"}') FROM (VALUES (1, 'r', '{}'), (2, 'side', '{}'), (3, 'b', '{"$deps": ["r", "side"]}'), (4, 'c', '{"$deps": ["b", "r"]}'),
	(5, 'done', '{"$deps": ["r"], "requires": "all-resolved"}'), (6, 'after', '{"$deps": ["done"]}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.finish_task('side');
SELECT pg_temp.finish_task('r', 'failed');
SELECT pg_temp.finish_task('done');
SELECT pg_temp.finish_task('after', 'failed');
SELECT pg_temp.finish_task('b', 'canceled');
SELECT is(pg_temp.resolutions('g'), 0::bigint, '4.5 a group is not resolved before its last task');	-- else two may be sent
SELECT pg_temp.finish_task('c', 'canceled');
SELECT is(pg_temp.resolutions('g'), 1::bigint, '4.5 the group is resolved');
SELECT is(pg_temp.progress('g'), '0 0 0 2 2 2 failed', '2.7 its outcome');
SELECT pg_temp.forget();
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('r'), downstream => true)), 'pending 5: scheduled>failed/failed rerun>pending', '2.4 downstream: the task is rerun');
SELECT is(pg_temp.states('b', 'c', 'done', 'after', 'side'), 'unscheduled unscheduled unscheduled unscheduled completed', '2.4 downstream: dependents wait, completed ones as well');
SELECT is(pg_temp.look('b'), 'unscheduled 5: exception>exception/canceled', '1.3 runs are kept');
SELECT is(pg_temp.progress('g'), '4 1 0 1 0 0', '2.7 the group counts them');
SELECT is(pg_temp.counted('g'), '4 1 0 1 0 0', '2.7 as its tasks are');
SELECT is((SELECT array_agg(exchange) FROM pg_temp.news()), '{task-pending}', '6.0 one message');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id(n)), u, '4.4 unmet dependencies of ' || n) FROM (VALUES ('b', 1), ('c', 2)) AS v (n, u);
SELECT is((SELECT count(*) FROM tq.failure_overview WHERE task_id = ANY (pg_temp.ids('r', 'b', 'c'))), 0::bigint, '8.5 no failure any more');
SELECT is((SELECT string_agg(state || CASE WHEN met THEN ' met' ELSE '' END, ', ' ORDER BY required_name) FROM tq.dependency_overview WHERE task_id = pg_temp.id('c')), 'unscheduled, pending', '8.5 dependencies are shown once');
SELECT pg_temp.refused($$SELECT tq.claim_task(pg_temp.id('b'), 0, 'wg', 'w1')$$, 'TQ409', '3.1 an earlier run cannot be claimed');
SELECT pg_temp.refused($$SELECT tq.change_task_priority(pg_temp.id('b'), 'high')$$, 'TQ409', '2.14 it was resolved before');
SELECT is(tq.rerun_task(pg_temp.id('r'), downstream => true) ->> 'state', 'pending', '2.4 downstream: a repeat');
SELECT is(pg_temp.progress('g'), '4 1 0 1 0 0', '2.4 changes nothing');
SELECT pg_temp.finish_task('r');
SELECT is(pg_temp.look('b'), 'pending 5: exception>exception/canceled rerun>pending', '4.4 the dependent is scheduled again, as its next run');
SELECT is(pg_temp.states('c'), 'unscheduled', '4.4 the next waits');
SELECT is(pg_temp.resolutions('g'), 0::bigint, '4.5 the group is active again');
SELECT pg_temp.finish_task('b'), pg_temp.finish_task('done'), pg_temp.finish_task('after', 'failed');
SELECT is(pg_temp.look('c'), 'pending 5: exception>exception/canceled rerun>pending', '4.4 until all are met again');
SELECT is(pg_temp.resolutions('g'), 0::bigint, '4.5 the group stays active until then');
SELECT pg_temp.finish_task('c');
SELECT is(pg_temp.resolutions('g'), 1::bigint, '4.5 the group is resolved again, once');
SELECT is(pg_temp.progress('g'), '0 0 0 5 1 0 failed', '2.7 the rest of it');

-- a completed part: w1 -> w2 -> w3, and ws that was skipped; u waits for w2 and another; p is pending, x runs
CREATE FUNCTION pg_temp.plan(name text, deadline interval DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', pg_temp.name(task_id), state, action, why), ', ') FROM tq.rerun_plan(pg_temp.id(name), deadline)
$$;
SELECT pg_temp.create(n, o::jsonb || '{"$group": "w"}') FROM (VALUES (1, 'w1', '{}'), (2, 'other', '{}'), (3, 'w2', '{"$deps": ["w1"]}'), (4, 'w3', '{"$deps": ["w2", "w1"]}'), (5, 'ws', '{"$deps": ["w1"]}'),
	(6, 'u', '{"$deps": ["w2", "other"]}'), (7, 'u2', '{"$deps": ["u"]}'), (8, 'p', '{"$deps": ["w3"]}'), (9, 'x', '{"$deps": ["w3"]}'), (10, 'x2', '{"$deps": ["x"]}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.finish_task(n) FROM unnest('{w1,w2,w3}'::text[]) AS n;
SELECT tq.skip_task(pg_temp.id('ws')) ->> 'state', pg_temp.take('x') >= 0;
SELECT is(pg_temp.plan('w1'), 'w1 completed rerun, w2 completed wait, w3 completed wait, ws completed wait, u unscheduled waits, u2 unscheduled waits, p pending left it has a run already, x running left it has a run already',
	'2.4 the plan of a completed part');
SELECT is((SELECT string_agg(action, ' ') FROM tq.rerun_plan(pg_temp.id('w1'), downstream => false)), 'rerun', '2.4 the plan of one task');
SELECT is(pg_temp.states('w1', 'w2', 'w3', 'ws', 'u', 'p', 'x'), 'completed completed completed completed unscheduled pending running', '2.4 which changes nothing');
SELECT pg_temp.forget();
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('w1'), downstream => true)), 'pending 5: scheduled>completed/completed rerun>pending', '2.4 a completed part is rerun');
SELECT is(pg_temp.states('w2', 'w3', 'ws', 'u', 'u2', 'p', 'x', 'x2'), 'unscheduled unscheduled unscheduled unscheduled unscheduled pending running unscheduled', '2.4 its completed tasks wait; what has a run is left alone');
SELECT is(pg_temp.look('w2'), 'unscheduled 5: scheduled>completed/completed', '1.3 the runs are kept');
SELECT is((SELECT array_agg(exchange) FROM pg_temp.news()), '{task-pending}', '6.0 one message');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id(n)), u, '4.4 unmet dependencies of ' || n) FROM (VALUES ('w2', 1), ('w3', 2), ('ws', 1), ('u', 2), ('u2', 1)) AS v (n, u);
SELECT is(pg_temp.progress('w'), pg_temp.counted('w'), '2.7 the group counts them');
SELECT is((SELECT count(*) FROM tq.task_overview WHERE task_id = pg_temp.id('w2')), 1::bigint, '8.5 each is shown once');
SELECT is((SELECT string_agg(state, ' ') FROM tq.dependency_results(pg_temp.id('w3'))), 'unscheduled pending', '2.13 dependency_results');
SELECT is((SELECT status ->> 'state' FROM tq.statuses(pg_temp.ids('w2'))), 'unscheduled', '2.13 statuses');
SELECT is((SELECT string_agg(reason, ' ') FROM tq.why(pg_temp.id('ws'))), 'unscheduled', '8.5 why() says that it waits');
SELECT is(tq.report_completed(pg_temp.id('w2'), 0) ->> 'state', 'unscheduled', '2.11 a repeated report of its last run');
SELECT pg_temp.refused($$SELECT tq.claim_task(pg_temp.id('w2'), 0, 'wg', 'w1')$$, 'TQ409', '3.1 an earlier run cannot be claimed');
SELECT pg_temp.create('new', '{"$deps": ["w2"], "$group": "w"}');
SELECT is(tq.rerun_task(pg_temp.id('w1'), downstream => true) ->> 'state', 'pending', '2.4 a repeat');
SELECT is((SELECT string_agg(unmet::text, ' ' ORDER BY v.n) FROM (VALUES ('w2'), ('w3'), ('ws'), ('u'), ('u2')) AS v (n) JOIN tq.task_details d ON d.task_id = pg_temp.id(v.n)), '2 1 1 2 1', '2.4 changes nothing');
SELECT pg_temp.finish_task('other');
SELECT is(pg_temp.states('u'), 'unscheduled', '2.4 what had been met is unmet again');
SELECT pg_temp.finish_task('w1');
SELECT is(pg_temp.states('w2', 'ws', 'w3', 'u'), 'pending pending unscheduled unscheduled', '4.4 the next ones are scheduled again');
SELECT is(pg_temp.look('w2'), 'pending 5: scheduled>completed/completed rerun>pending', '4.4 as their next runs');
SELECT pg_temp.finish_task('w2');
SELECT is(pg_temp.states('w3', 'u', 'new'), 'pending pending pending', '4.4 until all are met again');
SELECT pg_temp.finish_task(n) FROM unnest('{p,x,x2,ws,u,u2,new}'::text[]) AS n;
SELECT is(pg_temp.resolutions('w'), 0::bigint, '4.5 the group is active again');
SELECT pg_temp.finish_task('w3');
SELECT is(pg_temp.resolutions('w'), 1::bigint, '4.5 until the last of them is completed again');
SELECT is(pg_temp.progress('w'), '0 0 0 11 0 0 completed', '2.7 its outcome');
SELECT is((SELECT count(*) FROM tq_internal.unscheduled), (SELECT count(*) FROM tq.task_overview WHERE state = 'unscheduled'), '4.4 no row is left');

-- by a second one, and of a task that has a run already
SELECT pg_temp.create('y1'), pg_temp.create('y2');
SELECT pg_temp.create('y', '{"$deps": ["y1", "y2"]}');
SELECT pg_temp.finish_task(n) FROM unnest('{y1,y2,y}'::text[]) AS n;
SELECT is(tq.rerun_task(pg_temp.id(n), downstream => true) ->> 'state', 'pending', '2.4 downstream of ' || n) FROM unnest('{y1,y2}'::text[]) AS n;
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('y')), 2, '2.4 it waits for both');
SELECT pg_temp.finish_task('y1');
SELECT is(pg_temp.states('y'), 'unscheduled', '2.4 not for one');
SELECT pg_temp.finish_task('y2');
SELECT is(pg_temp.states('y'), 'pending', '2.4 and runs after both');
SELECT pg_temp.finish_task('y');
SELECT tq.rerun_task(pg_temp.id('y1')) ->> 'state', pg_temp.take('y1') >= 0;
SELECT is(tq.rerun_task(pg_temp.id('y1'), downstream => true) ->> 'state', 'running', '2.4 downstream of one that runs again');
SELECT is(pg_temp.states('y'), 'unscheduled', '2.4 its dependents wait');
SELECT pg_temp.report('y1', 'completed');
SELECT is(pg_temp.states('y'), 'pending', '2.4 for that run');

-- what a completed part is refused for, and that the plan says so
SELECT pg_temp.resolved('z', 'completed');
SELECT pg_temp.create('z1', '{"$deps": ["z"], "policy": {"dropPayload": true}}'), pg_temp.create('z2', '{"$deps": ["z"], "$deadline": "5 minutes"}');
SELECT pg_temp.finish_task('z1'), pg_temp.finish_task('z2');
SELECT is(pg_temp.plan('z'), 'z completed rerun, z1 completed refused its payload was dropped, z2 completed wait', '2.4 the plan: a payload was dropped');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('z'), downstream => true)$$, 'TQ409', '2.4 a payload was dropped');
SELECT tq.delete_task(pg_temp.id('z1'));
SET tq.clock_offset = '6 minutes';
SELECT is(pg_temp.plan('z'), 'z completed rerun, z2 completed refused it is past its deadline, and needs a new one', '2.4 the plan: past a deadline');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('z'), downstream => true)$$, 'TQ409', '2.4 a completed dependent is past its deadline');
SELECT is(pg_temp.plan('z', '1 hour'), 'z completed rerun, z2 completed wait', '2.4 the plan: another deadline');
SELECT is(tq.rerun_task(pg_temp.id('z'), '1 hour', downstream => true) ->> 'state', 'pending', '2.4 all get another deadline');
SELECT is(pg_temp.states('z', 'z2'), 'pending unscheduled', '2.4 and wait');
RESET tq.clock_offset;
SELECT pg_temp.refused(format('SELECT * FROM tq.rerun_plan(pg_temp.id(%L), %s)', 'z', a), 'TQ400', '2.4 the plan is refused: ' || a) FROM unnest('{deadline => interval ''0'', downstream => NULL}'::text[]) AS a;
SELECT pg_temp.refused($$SELECT * FROM tq.rerun_plan(pg_temp.id('missing'))$$, 'TQ404', '2.4 the plan of no task');

-- a dependent that was created before what it requires
SELECT pg_temp.create('early', '{"$deps": ["early"]}'), pg_temp.create('base2');
SELECT pg_temp.create('between', '{"$deps": ["base2"]}');
SELECT tq.add_dependencies(pg_temp.id('early'), pg_temp.ids('between')) ->> 'state';
SELECT pg_temp.finish_task('base2'), pg_temp.finish_task('between');
SELECT tq.schedule_task(pg_temp.id('early')) ->> 'state';
SELECT pg_temp.finish_task('early');
SELECT tq.rerun_task(pg_temp.id('base2'), downstream => true) ->> 'state';
SELECT is(pg_temp.states('base2', 'between', 'early'), 'pending unscheduled unscheduled', '2.4 whichever was created first');
SELECT pg_temp.finish_task('base2');
SELECT is(pg_temp.states('between', 'early'), 'pending unscheduled', '2.4 in the order of dependencies');
SELECT pg_temp.finish_task('between');
SELECT is(pg_temp.states('early'), 'pending', '2.4 to the last');

-- all that can become of an unscheduled task that has runs
SELECT pg_temp.create('q');
SELECT pg_temp.create(n, '{"$deps": ["q"]}') FROM unnest('{q1,q2,q3,q4,q5,q6,q7}'::text[]) AS n;
SELECT pg_temp.finish_task('q');
SELECT pg_temp.finish_task(n, 'failed') FROM unnest('{q1,q2,q3,q4,q5,q6,q7}'::text[]) AS n;
SELECT is(tq.rerun_task(pg_temp.id('q'), downstream => true) ->> 'state', 'pending', '2.4 a completed task, downstream');
SELECT is(pg_temp.look('q1'), 'unscheduled 5: scheduled>failed/failed', '2.4 what has failed waits');
SELECT is(pg_temp.line(tq.cancel_task(pg_temp.id('q1'))), 'exception 5: scheduled>failed/failed exception>exception/canceled', '2.5 canceled: one more run');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('q2'))), 'completed 5: scheduled>failed/failed skip>completed/skipped', '5 skipped');
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('q3'))), 'pending 5: scheduled>failed/failed rerun>pending', '2.3 scheduled');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('q4'))), 'pending 5: scheduled>failed/failed rerun>pending', '2.4 rerun');
SELECT is((SELECT status ->> 'state' FROM tq.statuses(pg_temp.ids('q5'))), 'unscheduled', '2.13 statuses');
SELECT pg_temp.forget();
SELECT is(tq.report_failed(pg_temp.id('q5'), 0) ->> 'state', 'unscheduled', '2.11 a repeated report of its last run');
SELECT is((SELECT payload #>> '{status,state}' FROM pg_temp.news() WHERE exchange = 'task-failed' AND payload #>> '{status,taskId}' = pg_temp.id('q5')::text), 'failed', '6.1 whose message shows what was');
SELECT lives_ok($$SELECT tq.delete_task(pg_temp.id('q6'))$$, '2.17 deleted');
SELECT is((SELECT string_agg(state, ' ') FROM tq.dependency_results(pg_temp.id('q5'))), 'pending', '2.13 dependency_results');
SELECT pg_temp.create('late', '{"$deps": ["q7"]}'), pg_temp.create('later', '{"$deps": ["q7"], "requires": "all-resolved"}');
SELECT pg_temp.finish_task('q');
SELECT is(pg_temp.states('q1', 'q2', 'q5', 'q7', 'late', 'later'), 'exception completed pending pending unscheduled unscheduled', '4.4 the rest is scheduled');
SELECT pg_temp.finish_task('q7');
SELECT is(pg_temp.states('late', 'later'), 'pending pending', '4.2 a dependent that was created meanwhile');

-- a met dependency on a task outside stays met; an unmet one stays unmet
SELECT pg_temp.create(n) FROM unnest('{m1,m2,m3}'::text[]) AS n;
SELECT pg_temp.create('m', '{"$deps": ["m1", "m2", "m3"]}');
SELECT pg_temp.finish_task('m1', 'failed'), pg_temp.finish_task('m2'), pg_temp.finish_task('m3', 'failed');
SELECT tq.rerun_task(pg_temp.id('m2')) ->> 'state';
SELECT pg_temp.finish_task('m2', 'failed');
SELECT pg_temp.finish_task('m', 'canceled');
SELECT is(tq.rerun_task(pg_temp.id('m1'), downstream => true) ->> 'state', 'pending', '2.4 one of three');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('m')), 2, '2.4 met stays met, unmet unmet');
SELECT pg_temp.finish_task('m1');
SELECT is(pg_temp.states('m'), 'unscheduled', '2.4 it waits for the other');
SELECT tq.rerun_task(pg_temp.id('m3')) ->> 'state';
SELECT pg_temp.finish_task('m3');
SELECT is(pg_temp.states('m'), 'pending', '2.4 and goes on');

-- a task that depends on itself
SELECT pg_temp.create('s');
SELECT pg_temp.create('s1', '{"$deps": ["s1", "s"]}'), pg_temp.create('s2', '{"$deps": ["s2", "s"]}');
SELECT tq.schedule_task(pg_temp.id('s1')) ->> 'state';
SELECT pg_temp.finish_task('s', 'failed'), pg_temp.finish_task('s1', 'failed'), pg_temp.finish_task('s2', 'canceled');
SELECT tq.rerun_task(pg_temp.id('s'), downstream => true) ->> 'state';
SELECT is(pg_temp.states('s1', 's2'), 'unscheduled unscheduled', '4.3 both wait');
SELECT pg_temp.finish_task('s');
SELECT is(pg_temp.states('s1', 's2'), 'pending unscheduled', '4.3 one that was never pending waits for a call');

-- many dependencies, counted in stripes
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('f' || n)::text, 'task', pg_temp.def('f', '{"taskQueueId": "test/f"}'))) FROM generate_series(1, 300) AS n)), 300::bigint, 'many');
SELECT pg_temp.create('fan', jsonb_build_object('dependencies', (SELECT jsonb_agg(pg_temp.id('f' || n)::text) FROM generate_series(1, 300) AS n)));
SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'failed') IS NULL FROM tq.claim_work('test/f', 'wg', 'w1', 300);
SELECT pg_temp.finish_task('fan', 'canceled');
SELECT is(tq.rerun_task(pg_temp.id('f1'), downstream => true) ->> 'state', 'pending', 'many: one is rerun');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('fan')), 300, 'many: all are unmet');
SELECT tq.rerun_task(pg_temp.id('f' || n), downstream => true) ->> 'state' FROM generate_series(2, 300) AS n;
SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'completed') IS NULL FROM tq.claim_work('test/f', 'wg', 'w1', 299);
SELECT is(pg_temp.states('fan'), 'unscheduled', 'many: the last one');
SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'completed') IS NULL FROM tq.claim_work('test/f', 'wg', 'w1', 299);
SELECT is(pg_temp.states('fan'), 'pending', 'many: all are met');

-- the number of runs; deadlines; dead letters; keys
SET tq.max_runs = 2;
SELECT pg_temp.resolved('n', 'failed'), pg_temp.create('n1', '{"$deps": ["n"]}');
SELECT tq.schedule_task(pg_temp.id('n1')) ->> 'state';
SELECT pg_temp.finish_task('n1', 'failed');
SELECT tq.rerun_task(pg_temp.id('n1')) ->> 'state';
SELECT pg_temp.finish_task('n1', 'failed');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('n'), downstream => true)$$, 'TQ409', '2.4 a dependent has as many runs as it may have');
SELECT is(pg_temp.states('n', 'n1'), 'failed failed', '2.4 nothing is changed');
SET tq.max_runs = 4;
SELECT pg_temp.resolved('budget', 'failed'), pg_temp.create('budget1', '{"$deps": ["budget"]}');
SELECT tq.schedule_task(pg_temp.id('budget1')) ->> 'state';
SELECT pg_temp.finish_task('budget1', 'failed');
SELECT tq.rerun_task(pg_temp.id('budget'), downstream => true) ->> 'state';
SELECT is(tq.status(pg_temp.id('budget1')) ->> 'retriesLeft', '2', '2.4 budgets are full again, as far as the runs reach');
SELECT is(pg_temp.line(tq.cancel_task(pg_temp.id('budget1'))), 'exception 2: scheduled>failed/failed exception>exception/canceled', '2.4 and of one that is cancelled then');
RESET tq.max_runs;
SELECT pg_temp.resolved('l', 'failed'), pg_temp.create('l1', '{"$deps": ["l"], "$deadline": "5 minutes"}'), pg_temp.create('l2', '{"$deps": ["l1"], "$deadline": "20 minutes"}'), pg_temp.create('l3', '{"$deps": ["l2"], "$deadline": "5 minutes"}');
SELECT pg_temp.pass('6 minutes');
SELECT is(pg_temp.states('l1', 'l2', 'l3'), 'exception unscheduled exception', '4.4 ends of dependents');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('l'), downstream => true)$$, 'TQ409', '2.4 a dependent is past its deadline');
SELECT is(tq.rerun_task(pg_temp.id('l'), '2 hours', true) ->> 'state', 'pending', '2.4 all get the deadline');
SELECT is(pg_temp.states('l1', 'l2', 'l3'), 'unscheduled unscheduled unscheduled', '2.4 through one that waits');
SELECT ok(bool_and(pg_temp.near(tq.status(pg_temp.id(n)) ->> 'deadline', pg_temp.clock() + interval '2 hours')), '2.4 also one that waits') FROM unnest('{l,l1,l2,l3}'::text[]) AS n;
SELECT pg_temp.pass('130 minutes');
SELECT is(pg_temp.states('l', 'l1', 'l2', 'l3'), 'exception exception exception exception', '2.4 which holds for all');
SELECT is(pg_temp.look('l1'), 'exception 5: exception>exception/deadline-exceeded exception>exception/deadline-exceeded', '2.4 as their next runs');
SELECT is(pg_temp.look('l2'), 'exception 5: exception>exception/deadline-exceeded', '2.4 or the first');
RESET tq.clock_offset;
SELECT pg_temp.resolved('k', 'failed'), pg_temp.create('k1', '{"$deps": ["k"], "policy": {"deadLetter": true, "uniqueKey": "x", "uniqueScope": "database"}}');
SELECT tq.schedule_task(pg_temp.id('k1')) ->> 'state';
SELECT pg_temp.finish_task('k1', 'failed');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-k1')), 1::bigint, 'a dead letter');
SELECT pg_temp.create('k2', '{"policy": {"uniqueKey": "x", "uniqueScope": "database"}}');
SELECT is(pg_temp.plan('k'), 'k failed rerun, k1 failed refused another task holds its unique key', '2.4 the plan says that another task holds the unique key of a dependent');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('k'), downstream => true)$$, 'TQ409', '2.4 another task holds the unique key of a dependent');
SELECT pg_temp.finish_task('k2');
SELECT tq.rerun_task(pg_temp.id('k'), downstream => true) ->> 'state';
SELECT is(pg_temp.states('k1'), 'unscheduled', '2.4 it holds the key');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-k1')), 0::bigint, '2.4 its dead letter is gone');
SELECT pg_temp.refused($$SELECT pg_temp.create('k3', '{"policy": {"uniqueKey": "x", "uniqueScope": "database", "onConflict": "reject"}}')$$, 'TQ409', '2.4 another cannot have it');

SELECT pg_temp.resolved('uk1', 'completed', '{"taskQueueId": "test/y", "policy": {"uniqueKey": "y"}}'), pg_temp.resolved('uk2', 'completed', '{"taskQueueId": "test/y", "$deps": ["uk1"], "policy": {"uniqueKey": "y"}}') \g /dev/null
SELECT is(pg_temp.plan('uk1'), 'uk1 completed rerun, uk2 completed refused another task of the call has its unique key', '2.4 the plan says that two of its tasks have a unique key');
SELECT pg_temp.refused($$SELECT tq.rerun_task(pg_temp.id('uk1'), downstream => true)$$, 'TQ409', '2.4 two tasks have a unique key');

-- a serial key that both have, held by the failure of the second
SELECT pg_temp.create('sk1', '{"taskQueueId": "test/sk", "policy": {"serialKey": "s", "serialOnFailure": "hold"}}');
SELECT pg_temp.create('sk2', '{"taskQueueId": "test/sk", "$deps": ["sk1"], "policy": {"serialKey": "s", "serialOnFailure": "hold"}}');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/sk') -> 'pendingTasks')::bigint = 1$$);
SELECT pg_temp.finish_task('sk1');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/sk') -> 'pendingTasks')::bigint = 1$$);
SELECT pg_temp.finish_task('sk2', 'failed');
SELECT is(tq.rerun_task(pg_temp.id('sk1'), downstream => true) ->> 'state', 'pending', 'policy 11.2 the first is rerun');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/sk') -> 'pendingTasks')::bigint = 1$$);
SELECT pg_temp.finish_task('sk1');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/sk') -> 'pendingTasks')::bigint = 1$$);
SELECT is(pg_temp.finish_task('sk2')::text || pg_temp.state('sk2'), 'completed', 'policy 11.2 the second has left the order, and comes back after it');

-- ---- retry_task_group ----
-- n1 -> n2 -> n3 -> n4, and n5 for itself; n2 fails
SELECT pg_temp.create(n, (o || '{"$group": "night", "$deadline": "5 minutes"}')::jsonb) FROM (VALUES (1, 'n-a', '{}'::jsonb), (2, 'n-b', '{"$deps": ["n-a"]}'), (3, 'n-c', '{"$deps": ["n-b"]}'), (4, 'n-d', '{"$deps": ["n-c"]}'),
	(5, 'n-e', '{}'), (6, 'n-f', '{}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.create('n-out', '{"$deps": ["n-b"], "$deadline": "5 minutes"}');
SELECT pg_temp.finish_task('n-a'), pg_temp.finish_task('n-b', 'failed'), pg_temp.finish_task('n-e', 'canceled'), pg_temp.finish_task('n-f', 'internal-error');
SELECT pg_temp.pass('6 minutes');
SELECT is(pg_temp.states('n-a', 'n-b', 'n-c', 'n-d', 'n-e', 'n-f', 'n-out'), 'completed failed exception exception exception exception exception', '2.20 the night');
SELECT pg_temp.forget();
SELECT pg_temp.refused($$SELECT tq.retry_task_group(pg_temp.id('night'))$$, 'TQ409', '2.20 past the deadline');
SELECT is(tq.retry_task_group(pg_temp.id('night'), '1 hour'), 5::bigint, '2.20 the morning');
SELECT is(pg_temp.states('n-a', 'n-b', 'n-c', 'n-d', 'n-e', 'n-f', 'n-out'), 'completed pending unscheduled unscheduled exception pending unscheduled', '2.20 from the step that failed; what was canceled stays');
SELECT is(pg_temp.progress('night'), pg_temp.counted('night'), '2.20 the counters');
SELECT is(tq.retry_task_group(pg_temp.id('night'), '1 hour'), 0::bigint, '2.20 a repeat');
SELECT pg_temp.finish_task('n-b'), pg_temp.finish_task('n-c');
SELECT is(pg_temp.resolutions('night'), 0::bigint, '4.5 the group is active');
SELECT pg_temp.finish_task('n-d');
SELECT is(pg_temp.resolutions('night'), 0::bigint, '4.5 as long as a task that was rerun is unresolved');
SELECT pg_temp.finish_task('n-f');
SELECT is(pg_temp.resolutions('night'), 1::bigint, '4.5 and resolved once');
SELECT is(pg_temp.progress('night'), '0 0 0 5 0 1 canceled', '2.20 the outcome');
SELECT is(tq.retry_task_group(pg_temp.id('night'), '1 hour', '{canceled}'), 1::bigint, '2.20 other reasons');
SELECT is(pg_temp.states('n-e', 'n-out'), 'pending pending', '2.20 they are rerun');
RESET tq.clock_offset;
-- a task that had been rerun by hand before
SELECT pg_temp.create(n, '{"$group": "i"}') FROM unnest('{i1,i2}'::text[]) AS n;
SELECT pg_temp.finish_task('i1', 'failed'), pg_temp.finish_task('i2', 'failed');
SELECT tq.rerun_task(pg_temp.id('i2')) ->> 'state';
SELECT pg_temp.finish_task('i2', 'failed');
SELECT is(tq.retry_task_group(pg_temp.id('i')), 2::bigint, '2.20 both');
SELECT pg_temp.forget();
SELECT pg_temp.finish_task('i1');
SELECT is(pg_temp.resolutions('i'), 0::bigint, '4.5 the other keeps the group active');
SELECT pg_temp.take('i2');
SELECT is(pg_temp.resolutions('i'), 0::bigint, '4.5 also while it is running');
SELECT pg_temp.report('i2', 'completed');
SELECT is(pg_temp.resolutions('i'), 1::bigint, '4.5 until it is resolved');
-- without downstream
SELECT pg_temp.create(n, (o || '{"$group": "h"}')::jsonb) FROM (VALUES (1, 'h1', '{}'::jsonb), (2, 'h2', '{"$deps": ["h1"]}'), (3, 'h3', '{}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.finish_task('h1', 'failed'), pg_temp.finish_task('h2', 'canceled'), pg_temp.finish_task('h3', 'failed');
SELECT is(tq.retry_task_group(pg_temp.id('h'), reasons => '{failed,canceled}', downstream => false), 2::bigint, '2.20 not downstream');
SELECT is(pg_temp.states('h1', 'h2', 'h3'), 'pending exception pending', '2.20 a task whose dependency is unmet is left out');
-- a group of one
SELECT pg_temp.resolved('one', 'failed');
SELECT is(tq.retry_task_group(pg_temp.id('one')), 1::bigint, '2.20 a group of one task');
SELECT is(pg_temp.states('one'), 'pending', '2.20 which is rerun');

-- ---- keys, limits and paused queues ----
-- a concurrency key with room for one task
SELECT tq.set_queue('test/ck', '{"keyConcurrentLimit": 1}') \g /dev/null
SELECT pg_temp.create(n, '{"$group": "ck", "taskQueueId": "test/ck", "policy": {"concurrencyKey": "c"}}') FROM unnest('{ck1,ck2}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/ck') -> 'pendingTasks')::bigint = 1$$);
SELECT is(pg_temp.claims('test/ck'), 'ck1', 'policy 11.3 one of a key');
SELECT pg_temp.report('ck1', 'failed');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/ck') -> 'pendingTasks')::bigint = 1$$);
SELECT is(pg_temp.claims('test/ck'), 'ck2', 'policy 11.3 then the other');
SELECT is(tq.retry_task_group(pg_temp.id('ck')), 1::bigint, '2.20 the first is repaired while the other runs');
SELECT pg_temp.await($$SELECT EXISTS (SELECT FROM tq_internal.gate_member m JOIN tq_internal.task t ON t.id = m.task WHERE t.task_id = pg_temp.id('ck1'))$$);
SELECT is(pg_temp.claims('test/ck'), '', 'policy 11.3 and waits for its key');
SELECT is(tq.reschedule_task(pg_temp.id('ck1')) ->> 'state', 'pending', '2.21 to run now');
SELECT is(pg_temp.claims('test/ck'), '', 'policy 11.3 which gives it no key');
SELECT pg_temp.report('ck2', 'completed');
SELECT pg_temp.await($$SELECT (tq.task_queue_counts('test/ck') -> 'pendingTasks')::bigint = 1$$);
SELECT is(pg_temp.claims('test/ck'), 'ck1', 'policy 11.3 until the other has ended');
SELECT is(pg_temp.report('ck1', 'completed'), 'completed 5: scheduled>failed/failed rerun>completed/completed', '2.20 as its next run');

-- a paused queue
SELECT pg_temp.create(n, (o || '{"$group": "pq", "taskQueueId": "test/pq"}')::jsonb) FROM (VALUES (1, 'pq1', '{}'::jsonb), (2, 'pq2', '{"$deps": ["pq1"]}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.finish_task('pq1', 'failed'), tq.cancel_task(pg_temp.id('pq2')) ->> 'state', tq.pause_queue('test/pq') ->> 'paused';
SELECT is(tq.rerun_task(pg_temp.id('pq1'), downstream => true) ->> 'state', 'pending', '2.4 in a paused queue');
SELECT is(pg_temp.claims('test/pq'), '', '2.4 nothing is claimed');
SELECT is(tq.reschedule_task(pg_temp.id('pq1')) ->> 'state', 'pending', '2.21 nor when it is to run now');
SELECT is(pg_temp.claims('test/pq'), '', '2.21 the queue is paused');
SELECT tq.resume_queue('test/pq') ->> 'paused';
SELECT is(pg_temp.claims('test/pq'), 'pq1', '2.4 until it is resumed');
SELECT pg_temp.report('pq1', 'completed');
SELECT is(pg_temp.claims('test/pq'), 'pq2', '4.4 and then the dependent');

-- timeouts that the former deadline made needless
SELECT pg_temp.create('tp', '{"$deadline": "5 minutes", "policy": {"pendingTimeout": "6 minutes"}}'), pg_temp.create('tr', '{"$deadline": "5 minutes", "policy": {"runTimeout": "6 minutes", "claimTimeout": "6 minutes"}}');
SELECT pg_temp.take('tr');
SELECT is(tq.rerun_task(pg_temp.id(n), '30 minutes') ->> 'state', state, '2.4 a later deadline of one that goes on: ' || state) FROM (VALUES ('tp', 'pending'), ('tr', 'running')) AS v (n, state);
SELECT set_config('tq.clock_offset', (current_setting('tq.clock_offset')::interval + interval '7 minutes')::text, false);
SELECT pg_temp.pass();
SELECT alike(pg_temp.look('tp'), '%pending-timeout%', '2.4 its pending timeout holds');
SELECT alike(pg_temp.look('tr'), '%run-timeout%', '2.4 its run timeout, too');

SELECT * FROM finish();
