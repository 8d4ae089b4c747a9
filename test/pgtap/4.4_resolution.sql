-- doc/spec/taskcluster.md 4.4: what a resolution does to dependents.
BEGIN;
\ir helper.psql

-- (1) every dependent is reached, whatever the order
SELECT pg_temp.create('r');
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('w' || n)::text, 'task', pg_temp.def('w',
		CASE WHEN n % 2 = 0 THEN '{"$deps": ["r"], "taskQueueId": "test/w", "requires": "all-resolved"}'::jsonb ELSE '{"$deps": ["r"], "taskQueueId": "test/w"}' END)))
	FROM generate_series(1, 250) AS n)), 250::bigint, '4.4 (1) 250 dependents of both kinds');
SELECT pg_temp.finish_task('r', 'failed');
SELECT is((SELECT count(*) FROM tq.statuses((SELECT array_agg(pg_temp.id('w' || n)) FROM generate_series(1, 250) AS n)) WHERE status ->> 'state' = 'pending'), 125::bigint,
	'4.4 (1) all all-resolved ones are scheduled, whatever their order');
SELECT is((SELECT count(*) FROM tq.statuses((SELECT array_agg(pg_temp.id('w' || n)) FROM generate_series(1, 250) AS n)) WHERE status ->> 'state' = 'unscheduled'), 125::bigint,
	'4.4 (2) the all-completed ones are skipped');
SELECT is((tq.task_queue_counts('test/w') -> 'pendingTasks')::bigint, 125::bigint, '4.4 (3) they are pending in their queue');
SELECT tq.rerun_task(pg_temp.id('r')) ->> 'state';
SELECT pg_temp.finish_task('r');
SELECT is((tq.task_queue_counts('test/w') -> 'pendingTasks')::bigint, 250::bigint, '4.4 rerun and completed: the others follow');

-- (3) not if it has a run, in any state
SELECT pg_temp.create(n) FROM unnest('{a1,a2,a3,a4}'::text[]) AS n;
SELECT pg_temp.create('cancelled', '{"$deps": ["a1"]}');
SELECT pg_temp.report('cancelled', 'canceled');
SELECT pg_temp.create('scheduled', '{"$deps": ["a1"]}');
SELECT tq.schedule_task(pg_temp.id('scheduled')) ->> 'state';
SELECT pg_temp.create('ran', '{"$deps": ["a1"]}');
SELECT tq.schedule_task(pg_temp.id('ran')) ->> 'state';
SELECT pg_temp.finish_task('ran', 'failed');
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{cancelled,scheduled,ran}'::text[]) AS n;
SELECT pg_temp.finish_task('a1');
SELECT is(tq.status(pg_temp.id(n)), status, '4.4 (3) not scheduled again: ' || pg_temp.look(n)) FROM before;

-- (3) not if its deadline has passed
SELECT pg_temp.create('late', '{"$deps": ["a2"], "$deadline": "5 minutes"}');
SET tq.clock_offset = '6 minutes';
SELECT pg_temp.finish_task('a2');
SELECT is(pg_temp.look('late'), 'unscheduled 5:', '4.4 (3) not scheduled when its deadline has passed');
RESET tq.clock_offset;

-- all-completed and the dependency fails
SELECT pg_temp.create('wait', '{"$deps": ["a3"], "$deadline": "10 minutes"}');
SELECT pg_temp.create('byhand', '{"$deps": ["a3"]}');
SELECT pg_temp.create('wait2', '{"$deps": ["wait"]}');
SELECT pg_temp.finish_task('a3', 'failed');
SELECT is(pg_temp.look('wait'), 'unscheduled 5:', '4.4 a dependency fails: no cascade');
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('byhand'))), 'pending 5: scheduled>pending', '4.4 it may be scheduled by hand');
SELECT pg_temp.pass('11 minutes');
SELECT is(pg_temp.look('wait'), 'exception 5: exception>exception/deadline-exceeded', '4.4 or hits its own deadline');
SELECT is(pg_temp.look('wait2'), 'unscheduled 5:', '4.4 and so on');
RESET tq.clock_offset;

-- a failed dependency that is rerun and completes
SELECT pg_temp.create('again', '{"$deps": ["a4"]}');
SELECT pg_temp.finish_task('a4', 'internal-error');
SELECT tq.rerun_task(pg_temp.id('a4')) ->> 'state';
SELECT is(pg_temp.look('again'), 'unscheduled 5:', '4.4 a failed dependency that is rerun');
SELECT pg_temp.finish_task('a4');
SELECT is(pg_temp.look('again'), 'pending 5: scheduled>pending', '4.4 and completes: scheduled');

-- a met dependency stays met, and is never counted twice
SELECT pg_temp.create(n) FROM unnest('{b1,b2,b3,b4,b5,b6}'::text[]) AS n;
SELECT pg_temp.create('sticky', '{"$deps": ["b1", "b2"]}');
SELECT pg_temp.finish_task('b1');
SELECT tq.rerun_task(pg_temp.id('b1')) ->> 'state';
SELECT is(pg_temp.look('sticky'), 'unscheduled 5:', '4.4 a completed dependency that is rerun');
SELECT pg_temp.finish_task('b1');
SELECT is(pg_temp.look('sticky'), 'unscheduled 5:', '4.4 and completes again is counted once');
SELECT tq.rerun_task(pg_temp.id('b1')) ->> 'state';
SELECT pg_temp.finish_task('b1', 'failed');
SELECT is(pg_temp.look('sticky'), 'unscheduled 5:', '4.4 nor is a failure counted');
SELECT pg_temp.finish_task('b2');
SELECT is(pg_temp.look('sticky'), 'pending 5: scheduled>pending', '4.4 the dependency stays met though the dependency failed later');
SELECT pg_temp.create('stickyr', '{"$deps": ["b3", "b4"], "requires": "all-resolved"}');
SELECT pg_temp.finish_task('b3', 'failed');
SELECT tq.rerun_task(pg_temp.id('b3')) ->> 'state';
SELECT pg_temp.finish_task('b3');
SELECT is(pg_temp.look('stickyr'), 'unscheduled 5:', '4.4 all-resolved: failed, rerun and completed is counted once');
SELECT tq.rerun_task(pg_temp.id('b3')) ->> 'state';
SELECT pg_temp.finish_task('b4', 'canceled');
SELECT is(pg_temp.look('stickyr'), 'pending 5: scheduled>pending', '4.4 all-resolved: satisfied though the dependency is pending again');
SELECT pg_temp.create('mixed', '{"$deps": ["b5", "b6"]}');
SELECT pg_temp.finish_task('b5', 'failed');
SELECT tq.rerun_task(pg_temp.id('b5')) ->> 'state';
SELECT pg_temp.finish_task('b5');
SELECT tq.rerun_task(pg_temp.id('b5')) ->> 'state';
SELECT pg_temp.finish_task('b5');
SELECT is(pg_temp.look('mixed'), 'unscheduled 5:', '4.4 all-completed: failed, completed, completed is counted once');
SELECT pg_temp.finish_task('b6');
SELECT is(pg_temp.look('mixed'), 'pending 5: scheduled>pending', '4.4 and the other one schedules it');

-- created while the dependency is being rerun (4.2 (2): its current state counts)
SELECT pg_temp.create(n) FROM unnest('{e1,e2}'::text[]) AS n;
SELECT pg_temp.finish_task('e1');
SELECT tq.rerun_task(pg_temp.id('e1')) ->> 'state';
SELECT is(pg_temp.create('during', '{"$deps": ["e1"]}'), 'unscheduled 5:', '4.2 (2) created while a completed dependency is being rerun: not met');
SELECT is(pg_temp.create('duringr', '{"$deps": ["e1"], "requires": "all-resolved"}'), 'unscheduled 5:', '4.2 (2) nor with all-resolved');
SELECT is(pg_temp.create('during2', '{"$deps": ["e1", "e2"]}'), 'unscheduled 5:', '4.2 (2) nor with another one');
SELECT pg_temp.finish_task('e1', 'failed');
SELECT is(pg_temp.look('during') || ' ' || pg_temp.look('duringr'), 'unscheduled 5: pending 5: scheduled>pending', '4.4 the rerun fails: all-resolved only');
SELECT tq.rerun_task(pg_temp.id('e1')) ->> 'state';
SELECT pg_temp.finish_task('e1');
SELECT is(pg_temp.look('during'), 'pending 5: scheduled>pending', '4.4 rerun and completed: met');
SELECT is(pg_temp.look('during2'), 'unscheduled 5:', '4.4 the one with another waits');
SELECT pg_temp.finish_task('e2');
SELECT is(pg_temp.look('during2'), 'pending 5: scheduled>pending', '4.4 and goes on');
SELECT pg_temp.create('done');
SELECT pg_temp.finish_task('done');
SELECT tq.rerun_task(pg_temp.id('done')) ->> 'state';
SELECT pg_temp.finish_task('done', 'failed');
SELECT is(pg_temp.create('lastcounts', '{"$deps": ["done"]}'), 'unscheduled 5:', '4.2 (2) created after a completed task was rerun and failed: not met');

-- retries do not resolve
SELECT pg_temp.running('f1', '{"retries": 1}');
SELECT pg_temp.create('afterf1', '{"$deps": ["f1"], "requires": "all-resolved"}');
SELECT pg_temp.report('f1', 'intermittent-task');
SELECT is(pg_temp.look('afterf1'), 'unscheduled 5:', '4.4 an auto-retried dependency meets nothing');
SELECT is(pg_temp.create('afterf1b', '{"$deps": ["f1"], "requires": "all-resolved"}'), 'unscheduled 5:', '4.4 nor for one that is created then');
SELECT pg_temp.finish_task('f1', 'intermittent-task');
SELECT is(pg_temp.look('afterf1') || ' ' || pg_temp.look('afterf1b'), 'pending 5: scheduled>pending pending 5: scheduled>pending', '4.4 until its final resolution');

-- canceling
SELECT pg_temp.create('g1', '{"$deps": ["g1"]}');
SELECT pg_temp.create('cg', '{"$deps": ["g1"]}');
SELECT pg_temp.create('ag', '{"$deps": ["g1"], "requires": "all-resolved"}');
SELECT pg_temp.report('g1', 'canceled');
SELECT is(pg_temp.look('cg') || ' ' || pg_temp.look('ag'), 'unscheduled 5: pending 5: scheduled>pending', '4.4 canceling an unscheduled dependency meets all-resolved dependencies only');
SELECT pg_temp.unchanged($$SELECT tq.cancel_task(pg_temp.id('g1'))$$, '4.4 canceling it again does nothing more');
SELECT tq.rerun_task(pg_temp.id('g1')) ->> 'state';
SELECT pg_temp.finish_task('g1');
SELECT is(pg_temp.look('cg'), 'pending 5: scheduled>pending', '4.4 rerun and completed it satisfies the other');

-- a chain is released step by step, a diamond once
SELECT pg_temp.create('k0');
SELECT pg_temp.create('k' || n, format('{"$deps": ["k%s"]}', n - 1)::jsonb) FROM generate_series(1, 5) AS n;
SELECT pg_temp.finish_task('k' || n) FROM generate_series(0, 4) AS n;
SELECT is(pg_temp.state('k4') || ' ' || pg_temp.state('k5'), 'completed pending', '4.4 a chain');
SELECT pg_temp.running('fan' || n) FROM generate_series(1, 200) AS n;
SELECT pg_temp.create('in', jsonb_build_object('$deps', (SELECT jsonb_agg('fan' || n) FROM generate_series(1, 200) AS n)));
SELECT is((SELECT count(*) FROM tq.resolve((SELECT array_agg(pg_temp.id('fan' || n)) FROM generate_series(1, 199) AS n), array_fill(0, ARRAY[199])) WHERE outcome = 'resolved'),
	199::bigint, '4.4 199 of 200 dependencies, in one call');
SELECT is(pg_temp.look('in'), 'unscheduled 5:', '4.4 are not enough');
SELECT pg_temp.report('fan200', 'completed');
SELECT is(pg_temp.look('in'), 'pending 5: scheduled>pending', '4.4 the last is');

-- a resolve call that is repeated, or has the same task twice, counts once
SELECT pg_temp.running('h1');
SELECT pg_temp.running('h2');
SELECT pg_temp.create('hh', '{"$deps": ["h1", "h2"]}');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('h1', 'h1', 'h1'), '{0,0,0}')), 'resolved repeated repeated', '4.4 the same run three times');
SELECT pg_temp.unchanged($$SELECT tq.report_completed(pg_temp.id('h1'), 0)$$, '4.4 and once more');
SELECT is(pg_temp.look('hh'), 'unscheduled 5:', '4.4 is counted once');

-- a dependency and its dependent, both running, in one call
SELECT pg_temp.running('i1');
SELECT pg_temp.create('i2', '{"$deps": ["i1"]}');
SELECT pg_temp.create('i3', '{"$deps": ["i1", "i2"]}');
SELECT tq.schedule_task(pg_temp.id('i2')) ->> 'state';
SELECT pg_temp.take('i2');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('i2', 'i1'), '{0,0}')), 'resolved resolved', '4.4 a dependency and its dependent in one call');
SELECT is(pg_temp.look('i2') || ', ' || pg_temp.look('i3'), 'completed 5: scheduled>completed/completed, pending 5: scheduled>pending', '4.4 the dependent is not scheduled again; a task that requires both is');

-- a dependency that expires after it was met does not affect its dependent
SELECT pg_temp.resolved('x1', 'completed', '{"$deadline": "10 minutes", "$expires": "15 minutes"}');
SELECT pg_temp.create('x2');
SELECT pg_temp.create('x3', '{"$deps": ["x1", "x2"], "$deadline": "15 minutes", "$expires": "2 hours"}');
SELECT pg_temp.take('x2');
SET tq.clock_offset = '14 minutes';
SELECT pg_temp.report('x2', 'completed');
SELECT is(pg_temp.look('x3'), 'pending 5: scheduled>pending', '4.4 both are met');
RESET tq.clock_offset;

-- claim expiry and deadlines release too: 3.5, 3.6
SELECT * FROM finish();
ROLLBACK;
