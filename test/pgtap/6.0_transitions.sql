-- doc/spec/taskcluster.md 3.1, and 2.1 to 2.12 on repeats: the messages
-- that each row of the table sends, or does not send, in order.  Written as in
-- 'PEND a pending 0._._': exchange, task, state of the status, runId, workerGroup,
-- workerId. GROUP follows by 4.5 whenever the last task of a group is resolved;
-- most tasks here are a group of their own.
\ir messages.psql

-- A task in each of several states: with a dependency that can be met, and with
-- one that cannot.
SELECT pg_temp.create('never', '{"$deps": ["never"]}');
SELECT pg_temp.resolved('met', 'completed');
SELECT pg_temp.forget();

-- ---------------------------------------------------------------------------
-- Rows 1 to 4: new tasks
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('t1');
SELECT is(pg_temp.sent(), 'DEF t1 unscheduled _._._, PEND t1 pending 0._._', '1 createTask without dependencies');
SELECT lives_ok($$SELECT tq.enqueue('test/q-t1e', task_id => pg_temp.id('t1e'), name => 't1e')$$, '1 enqueue');
SELECT is(pg_temp.sent(), 'DEF t1e unscheduled _._._, PEND t1e pending 0._._', '1 sends the same');
SELECT pg_temp.create('t2', '{"$deps": ["t1", "met"]}');
SELECT is(pg_temp.sent(), 'DEF t2 unscheduled _._._', '2 createTask, not all dependencies are met');
SELECT pg_temp.create('t3', '{"$deps": ["met"]}');
SELECT is(pg_temp.sent(), 'DEF t3 unscheduled _._._, PEND t3 pending 0._._', '3 createTask, all dependencies are met');
SELECT pg_temp.create('t3f', '{"$deps": ["met"], "requires": "all-resolved"}');
SELECT is(pg_temp.sent(), 'DEF t3f unscheduled _._._, PEND t3f pending 0._._', '3 createTask, all are resolved');
SELECT lives_ok($$SELECT tq.define_task(pg_temp.id('t4'), pg_temp.def('t4'))$$, '4 defineTask');
SELECT is(pg_temp.sent(), 'DEF t4 unscheduled _._._', '4 sends no task-pending');
SELECT is(pg_temp.code(query), code, code || ' createTask: ' || description)
FROM (VALUES ($$SELECT pg_temp.create('t1', '{"priority": "high"}')$$, 'TQ409', 'another definition'),
	($$SELECT pg_temp.create('new', '{"$deps": ["nobody"]}')$$, 'TQ400', 'a dependency that does not exist'),
	($$SELECT pg_temp.create('new', '{"$deadline": "-1 minute"}')$$, 'TQ400', 'a deadline that has passed'),
	($$SELECT pg_temp.create('new', '{"foo": 1}')$$, 'TQ400', 'an unknown key'),
	($$SELECT pg_temp.create('new', '{"$group": "t1", "schedulerId": "another"}')$$, 'TQ409', 'another scheduler'),
	($$SELECT tq.define_task(pg_temp.id('t1'), pg_temp.def('t1'))$$, 'TQ409', 'defined instead of created'),
	($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.entry('new'), pg_temp.entry('new2', '{"$deps": ["nobody"]}')))$$, 'TQ400', 'one of two is wrong')) AS v (query, code, description);
SELECT is(pg_temp.sent(), '', '1 a refused call sends nothing');

-- many at once: each is defined before it is pending, and a task before those
-- that depend on it, whatever their order in the call
SELECT lives_ok($$SELECT tq.create_tasks(jsonb_build_array(
	pg_temp.entry('c3', '{"$deps": ["c2", "c1"]}'), pg_temp.entry('c2', '{"$deps": ["c1"]}'), pg_temp.entry('c1'),
	pg_temp.entry('c4', '{"$deps": ["met"]}'), pg_temp.entry('c5', '{"$deps": ["c5"]}')))$$, '1 create_tasks');
SELECT is(pg_temp.sent(), 'DEF c1 unscheduled _._._, PEND c1 pending 0._._, DEF c4 unscheduled _._._, PEND c4 pending 0._._, '
	'DEF c5 unscheduled _._._, DEF c2 unscheduled _._._, DEF c3 unscheduled _._._', '1, 2, 3 create_tasks sends for each what createTask would');

-- ---------------------------------------------------------------------------
-- Rows 5 to 11: unscheduled
-- ---------------------------------------------------------------------------

SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('t4'))$$, '5 unscheduled, scheduleTask');
SELECT is(pg_temp.sent(), 'PEND t4 pending 0._._', '5 sends task-pending');
SELECT pg_temp.running('r6', '{"$group": "g6"}');
SELECT pg_temp.running('r6f', '{"$group": "g6"}');
SELECT pg_temp.create('d6', '{"$group": "g6", "$deps": ["r6"]}');
SELECT pg_temp.create('d6all', '{"$group": "g6", "$deps": ["r6f"], "requires": "all-resolved"}');
SELECT pg_temp.create('d6two', '{"$group": "g6", "$deps": ["r6", "r6f"], "requires": "all-resolved"}');
SELECT pg_temp.create('d6no', '{"$group": "g6", "$deps": ["r6f"]}');
SELECT pg_temp.forget();
SELECT pg_temp.report('r6', 'completed');
SELECT is(pg_temp.sent(), 'COMP r6 completed 0.wg.w1, PEND d6 pending 0._._', '6 unscheduled, the last dependency is met: after its task-completed');
SELECT pg_temp.report('r6f', 'failed');
SELECT is(pg_temp.sent(), 'FAIL r6f failed 0.wg.w1, PEND d6all pending 0._._, PEND d6two pending 0._._',
	'6 all-resolved, by a failure; the all-completed one stays');
SELECT pg_temp.running('r6x');
SELECT pg_temp.create('d6x', '{"$deps": ["r6x"], "requires": "all-resolved"}');
SELECT pg_temp.forget();
SELECT pg_temp.report('r6x', 'canceled');
SELECT is(pg_temp.sent(), 'EXC r6x exception 0.wg.w1, PEND d6x pending 0._._, GROUP r6x', '6 all-resolved, by a cancel');
SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('d6no'))$$, '6 scheduled by hand');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('r6f'))$$, '6 its dependency is rerun');
SELECT pg_temp.take('r6f');
SELECT pg_temp.forget();
SELECT pg_temp.report('r6f', 'completed');
SELECT is(pg_temp.sent(), 'COMP r6f completed 1.wg.w1', '6 a dependent that has a run already sends nothing again');
SELECT pg_temp.running('r7');
SELECT pg_temp.create('d7', '{"$deps": ["r7"], "$deadline": "1 minute"}');
SELECT pg_temp.forget();
SET tq.clock_offset = '2 minutes';
SELECT pg_temp.report('r7', 'completed');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'COMP r7 completed 0.wg.w1, GROUP r7', '7 unscheduled, the dependency is met after the deadline');
SELECT pg_temp.cancel('d7');
SELECT pg_temp.create('t8', '{"$deps": ["never"]}');
SELECT pg_temp.forget();
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t8'))$$, '8 unscheduled, rerunTask');
SELECT is(pg_temp.sent(), 'PEND t8 pending 0._._', '8 sends task-pending');
SELECT pg_temp.create('t9', '{"$deps": ["never"]}');
SELECT pg_temp.forget();
SELECT pg_temp.cancel('t9');
SELECT is(pg_temp.sent(), 'EXC t9 exception 0._._, GROUP t9', '9 unscheduled, cancelTask');
SELECT pg_temp.create('t10', '{"$deps": ["never"], "$deadline": "1 minute"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', '10 unscheduled, deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC t10 exception 0._._, GROUP t10', '10 sends task-exception of run 0');
SELECT is(pg_temp.code(query), 'TQ404', '11 unscheduled, ' || query)
FROM unnest(ARRAY['SELECT tq.claim_task(pg_temp.id(''never''), 0, ''wg'', ''w1'')', 'SELECT tq.reclaim_task(pg_temp.id(''never''), 0)',
	'SELECT tq.report_completed(pg_temp.id(''never''), 0)', 'SELECT tq.report_failed(pg_temp.id(''never''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''never''), 0, ''internal-error'')']) AS query;
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('never'), '{0}')), 'not-found', '11 unscheduled, resolve');
SELECT is(pg_temp.claims('test/q-never'), '', '11 unscheduled, claimWork');
SELECT is(pg_temp.sent(), '', '11 sends nothing');
SELECT is(pg_temp.code($$SELECT pg_temp.create('never', '{"$deps": ["never"]}')$$), '00000', '2.1 unscheduled, createTask again');
SELECT is(pg_temp.sent(), 'DEF never unscheduled _._._', '2.1 task-defined is sent again');
SELECT is(pg_temp.code($$SELECT tq.define_task(pg_temp.id('never'), pg_temp.def('never'))$$), '00000', '2.2 unscheduled, defineTask again');
SELECT is(pg_temp.sent(), 'DEF never unscheduled _._._', '2.2 task-defined is sent again');

-- ---------------------------------------------------------------------------
-- Rows 12 to 18: pending
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('t12');
SELECT pg_temp.forget();
SELECT is(pg_temp.take('t12'), 0, '12 pending, claimWork');
SELECT is(pg_temp.sent(), 'RUN t12 running 0.wg.w1', '12 sends task-running');
SELECT pg_temp.create('t12t');
SELECT pg_temp.forget();
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('t12t'), 0, 'wg-2', 'w_2')), 0, '12 pending, claimTask');
SELECT is(pg_temp.sent(), 'RUN t12t running 0.wg-2.w_2', '12 sends task-running');
SELECT pg_temp.create(n, jsonb_build_object('taskQueueId', 'test/many', 'priority', p))
FROM (VALUES (1, 'm1', 'low'), (2, 'm2', 'high'), (3, 'm3', 'low'), (4, 'm4', 'high'), (5, 'm5', 'medium')) AS v (i, n, p) ORDER BY i;
SELECT pg_temp.forget();
SELECT is(pg_temp.claims('test/many', 4), 'm2 m4 m5 m1', '12 pending, claimWork of many');
SELECT is(pg_temp.sent(), 'RUN m2 running 0.wg.w1, RUN m4 running 0.wg.w1, RUN m5 running 0.wg.w1, RUN m1 running 0.wg.w1',
	'12 sends task-running for each, in the order of the claims');
SELECT is(pg_temp.claims('test/nothing', 10), '', '12 claimWork of an empty queue');
SELECT is(pg_temp.sent(), '', '12 sends nothing');
SELECT lives_ok($$SELECT tq.quarantine_worker('test/many', 'wg', 'w1', pg_temp.clock() + interval '1 hour')$$, '12 a worker in quarantine');
SELECT is(pg_temp.claims('test/many', 4), '', '12 claimWork gives it nothing');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('m3'), 0, 'wg', 'w1')), 0::bigint, '12 nor does claimTask');
SELECT is(pg_temp.sent(), '', '12 and that sends nothing');
SELECT pg_temp.create('t13');
SELECT pg_temp.forget();
SELECT pg_temp.cancel('t13');
SELECT is(pg_temp.sent(), 'EXC t13 exception 0._._, GROUP t13', '13 pending, cancelTask: no worker');
SELECT pg_temp.create('t14', '{"$deadline": "1 minute"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', '14 pending, deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC t14 exception 0._._, GROUP t14', '14 sends task-exception: no worker');
SELECT pg_temp.create('t15');
SELECT pg_temp.forget();
SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('t15'))$$, '15 pending, scheduleTask');
SELECT is(pg_temp.sent(), '', '15 sends nothing');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t15'))$$, '16 pending, rerunTask');
SELECT is(pg_temp.sent(), 'PEND t15 pending 0._._', '16 task-pending is sent again');
SELECT is(pg_temp.code(query), 'TQ409', '17 pending, ' || query)
FROM unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(''t15''), 0)',
	'SELECT tq.report_completed(pg_temp.id(''t15''), 0)', 'SELECT tq.report_failed(pg_temp.id(''t15''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''t15''), 0, ''internal-error'')', 'SELECT tq.report_exception(pg_temp.id(''t15''), 0, ''worker-shutdown'')']) AS query;
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('t15'), '{0}', r)), 'conflict', '17 pending, resolve as ' || r) FROM unnest('{completed,failed,worker-shutdown,internal-error}'::text[]) AS r;
SELECT is(pg_temp.sent(), '', '17 sends nothing');
SELECT pg_temp.create('t15');
SELECT is(pg_temp.sent(), 'DEF t15 unscheduled _._._, PEND t15 pending 0._._', '18 pending, createTask again: both are sent again');
SELECT lives_ok($$SELECT tq.enqueue('test/q-t1e', task_id => pg_temp.id('t1e'), name => 't1e')$$, '18 pending, enqueue again');
SELECT is(pg_temp.sent(), 'DEF t1e unscheduled _._._, PEND t1e pending 0._._', '18 both are sent again');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.entry('c3', '{"$deps": ["c2", "c1"]}'), pg_temp.entry('c1'), pg_temp.entry('c6', '{"$deps": ["c1"]}'))),
	1::bigint, '18 create_tasks again, with one more');
SELECT is(pg_temp.sent(), 'DEF c1 unscheduled _._._, PEND c1 pending 0._._, DEF c3 unscheduled _._._, DEF c6 unscheduled _._._', '18 sends those of the old ones again, too');
SELECT pg_temp.take('t15');
SELECT pg_temp.forget();
SELECT pg_temp.create('t15');
SELECT is(pg_temp.sent(), 'DEF t15 unscheduled _._._', '18 running, createTask again: only task-defined');
SELECT pg_temp.report('t15', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'PEND t15 pending 1._._', '23 a retry');
SELECT pg_temp.create('t15');
SELECT is(pg_temp.sent(), 'DEF t15 unscheduled _._._', '18 run 1 is pending, createTask again: only task-defined');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t15'))$$, '16 run 1 is pending, rerunTask');
SELECT is(pg_temp.sent(), 'PEND t15 pending 1._._', '16 task-pending of run 1 is sent again');
SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('t15'))$$, '15 run 1 is pending, scheduleTask');
SELECT is(pg_temp.sent(), '', '15 sends nothing');
SELECT pg_temp.cancel('t15');
SELECT is(pg_temp.sent(), 'EXC t15 exception 1._._, GROUP t15', '13 run 1 is pending, cancelTask: no worker, though run 0 had one');
SELECT pg_temp.create('t15');
SELECT is(pg_temp.sent(), 'DEF t15 unscheduled _._._', '18 resolved, createTask again: only task-defined');

-- ---------------------------------------------------------------------------
-- Rows 19 to 26: running, and reports of its worker
-- ---------------------------------------------------------------------------

SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t12'), 0)$$, '19 running, reclaimTask');
SELECT is(pg_temp.sent(), '', '19 sends nothing');
SELECT pg_temp.running(n, o::jsonb) FROM (VALUES ('t20', '{}'), ('t21', '{}'), ('t22m', '{}'), ('t22r', '{}'), ('t22i', '{}'),
	('t23', '{"retries": 1}'), ('t25', '{"retries": 1}'), ('t23on', '{"retries": 1}'), ('t25on', '{"retries": 1}')) AS v (n, o);
SELECT pg_temp.running(n, '{"retries": 0}') FROM unnest('{t24,t26,t24on,t26on}'::text[]) AS n;
SELECT pg_temp.forget();
SELECT pg_temp.report('t20', 'completed');
SELECT is(pg_temp.sent(), 'COMP t20 completed 0.wg.w1, GROUP t20', '20 running, reportCompleted');
SELECT pg_temp.report('t21', 'failed');
SELECT is(pg_temp.sent(), 'FAIL t21 failed 0.wg.w1, GROUP t21', '21 running, reportFailed');
SELECT pg_temp.report('t22m', 'malformed-payload');
SELECT is(pg_temp.sent(), 'EXC t22m exception 0.wg.w1, GROUP t22m', '22 running, malformed-payload');
SELECT pg_temp.report('t22r', 'resource-unavailable');
SELECT is(pg_temp.sent(), 'EXC t22r exception 0.wg.w1, GROUP t22r', '22 running, resource-unavailable');
SELECT pg_temp.report('t22i', 'internal-error');
SELECT is(pg_temp.sent(), 'EXC t22i exception 0.wg.w1, GROUP t22i', '22 running, internal-error');
SELECT is(pg_temp.code(format('SELECT tq.report_exception(pg_temp.id(''t23''), 0, %L)', r)), 'TQ400', format('2.12 running, "%s" is not a reason', r))
FROM unnest('{"",completed,canceled,claim-expired,deadline-exceeded,foo}'::text[]) AS r;
SELECT is(pg_temp.code('SELECT tq.report_completed(pg_temp.id(''t23''), 1)'), 'TQ404', '2.11 running, another run');
SELECT is(pg_temp.code('SELECT tq.report_completed(pg_temp.id(''nobody''), 0)'), 'TQ404', '2.11 no such task');
SELECT is(pg_temp.sent(), '', '2.11, 2.12 a refused call sends nothing');

-- D-05: an exception that is retried is sent only if the setting is on
SELECT pg_temp.report('t23', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'PEND t23 pending 1._._', '23 running, retries left, worker-shutdown: only task-pending');
SELECT pg_temp.report('t24', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'EXC t24 exception 0.wg.w1, GROUP t24', '24 running, no retries left, worker-shutdown');
SELECT pg_temp.report('t25', 'intermittent-task');
SELECT is(pg_temp.sent(), 'PEND t25 pending 1._._', '25 running, retries left, intermittent-task: only task-pending');
SELECT pg_temp.report('t26', 'intermittent-task');
SELECT is(pg_temp.sent(), 'EXC t26 exception 0.wg.w1, GROUP t26', '26 running, no retries left, intermittent-task');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('t23on', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'EXC t23on pending 0.wg.w1, PEND t23on pending 1._._', '23 D-05 on: task-exception of the run, then task-pending of the next');
SELECT pg_temp.report('t24on', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'EXC t24on exception 0.wg.w1, GROUP t24on', '24 D-05 on: the same');
SELECT pg_temp.report('t25on', 'intermittent-task');
SELECT is(pg_temp.sent(), 'EXC t25on pending 0.wg.w1, PEND t25on pending 1._._', '25 D-05 on: task-exception, then task-pending');
SELECT pg_temp.report('t26on', 'intermittent-task');
SELECT is(pg_temp.sent(), 'EXC t26on exception 0.wg.w1, GROUP t26on', '26 D-05 on: the same');
RESET tq.publish_retried_exceptions;

-- ---------------------------------------------------------------------------
-- 2.12: a repeated report.  t23 and t25 have a retry that is pending.
-- ---------------------------------------------------------------------------

SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i exception 0.wg.w1, GROUP t22i', '2.12 a repeat of a final exception is sent again');
SELECT pg_temp.report('t24', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'EXC t24 exception 0.wg.w1, GROUP t24', '2.12 a repeat, where no retries were left');
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'PEND t23 pending 1._._', '2.12 a repeat while the retry is pending: task-pending again');
SELECT pg_temp.report('t25', 'intermittent-task', 0);
SELECT is(pg_temp.sent(), 'PEND t25 pending 1._._', '2.12 the same for intermittent-task');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'EXC t23 pending 0.wg.w1, PEND t23 pending 1._._', '2.12 D-05 on, a repeat while the retry is pending: both again');
SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i exception 0.wg.w1, GROUP t22i', '2.12 D-05 on, a repeat of a final exception: the same');
RESET tq.publish_retried_exceptions;
SELECT is(pg_temp.code(format('SELECT pg_temp.report(%L, ''malformed-payload'', 0)', n)), 'TQ409', '2.12 another reason: ' || n) FROM unnest('{t22i,t23,t24}'::text[]) AS n;
SELECT is(pg_temp.sent(), '', '2.12 which sends nothing');
SELECT pg_temp.take('t23', 'w2');
SELECT is(pg_temp.sent(), 'RUN t23 running 1.wg.w2', '12 the retry is claimed');
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), '', '2.12, 10.3 a repeat after the retry was claimed: nothing, because it was retried');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'EXC t23 running 0.wg.w1', '2.12 D-05 on, a repeat after the retry was claimed: task-exception');
RESET tq.publish_retried_exceptions;
SELECT pg_temp.report('t23', 'completed', 1);
SELECT is(pg_temp.sent(), 'COMP t23 completed 1.wg.w2, GROUP t23', '20 the retry is completed');
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), '', '2.12 a repeat after the retry was completed: nothing');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('t23', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'EXC t23 completed 0.wg.w1', '2.12, 10.3 D-05 on, a repeat after the retry was completed: task-exception, which resolves nothing');
RESET tq.publish_retried_exceptions;
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t23'))$$, '37 a rerun');
SELECT is(pg_temp.sent(), 'PEND t23 pending 2._._', '37 sends task-pending');
SELECT is(pg_temp.code($$SELECT pg_temp.report('t23', 'worker-shutdown', 0)$$), 'TQ409', '46 two runs follow');
SELECT is(pg_temp.sent(), '', '46 which sends nothing');

-- A final exception that a rerun follows was not retried.
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t22i'))$$, '37 exception, rerunTask');
SELECT is(pg_temp.sent(), 'PEND t22i pending 1._._', '37 sends task-pending');
SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i pending 0.wg.w1', '2.12 a repeat after a rerun: task-exception, and no task-pending of a run that is not a retry');
SELECT pg_temp.take('t22i', 'w2');
SELECT pg_temp.forget();
SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i running 0.wg.w1', '2.12 the same after the rerun was claimed');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i running 0.wg.w1', '2.12 D-05 on, the same');
RESET tq.publish_retried_exceptions;
SELECT pg_temp.report('t22i', 'completed', 1);
SELECT is(pg_temp.sent(), 'COMP t22i completed 1.wg.w2, GROUP t22i', '20 the rerun is completed');
SELECT pg_temp.report('t22i', 'internal-error', 0);
SELECT is(pg_temp.sent(), 'EXC t22i completed 0.wg.w1', '2.12, 10.3 a repeat after the rerun was completed: task-exception, which resolves nothing');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t24'))$$, '37 no retries were left, rerunTask');
SELECT pg_temp.forget();
SELECT pg_temp.report('t24', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'EXC t24 pending 0.wg.w1', '2.12 a repeat after a rerun, where no retries were left: task-exception');

-- ---------------------------------------------------------------------------
-- resolve(), the batch form
-- ---------------------------------------------------------------------------

SELECT pg_temp.running(n, '{"$group": "gb"}') FROM unnest('{b1,b2,b3,lost}'::text[]) AS n;
SELECT pg_temp.create('bp', '{"$group": "gb"}');
SELECT pg_temp.create('bd', '{"$group": "gb", "$deps": ["b1", "b3"]}');
SELECT pg_temp.create('bd2', '{"$group": "gb", "$deps": ["b2", "bp"]}');
SELECT pg_temp.cancel('lost');
SELECT pg_temp.forget();
SELECT is(string_agg(outcome, ' ' ORDER BY ordinality), 'resolved conflict not-found resolved repeated not-found conflict conflict not-found resolved resolved repeated', 'resolve: all outcomes')
FROM tq.resolve(pg_temp.ids('b1', 'bp', 'nobody', 'b2', 't20', 'bd', 't21', 'lost', 'b1', 't12', 'b3', 'b1'), '{0,0,0,0,0,0,0,0,3,0,0,0}')
	WITH ORDINALITY AS r;
SELECT is(pg_temp.sent(), 'COMP b1 completed 0.wg.w1, COMP b2 completed 0.wg.w1, COMP t20 completed 0.wg.w1, COMP t12 completed 0.wg.w1, COMP b3 completed 0.wg.w1, '
	'PEND bd pending 0._._, GROUP ' || g.first || ', GROUP ' || g.last,
	'20, 44 resolve: in the order of the arguments, then the dependents; conflicts and unknown runs send nothing, nor does a repeated run')
FROM (SELECT min(n COLLATE "C"), max(n COLLATE "C") FROM unnest('{t12,t20}'::text[]) AS n) AS names,
	LATERAL (SELECT CASE WHEN pg_temp.id('t12') < pg_temp.id('t20') THEN 't12' ELSE 't20' END,
		CASE WHEN pg_temp.id('t12') < pg_temp.id('t20') THEN 't20' ELSE 't12' END) AS g (first, last);
SELECT pg_temp.running('b4', '{"$group": "gb", "retries": 0}');
SELECT pg_temp.running('b5', '{"$group": "gb", "retries": 1}');
SELECT pg_temp.running('b6', '{"$group": "gb", "retries": 1}');
SELECT pg_temp.create('bd3', '{"$group": "gb", "$deps": ["b4"], "requires": "all-resolved"}');
SELECT pg_temp.create('bd4', '{"$group": "gb", "$deps": ["b5"], "requires": "all-resolved"}');
SELECT pg_temp.forget();
SELECT is(string_agg(outcome, ' ' ORDER BY ordinality), 'retried resolved repeated', 'resolve: as worker-shutdown')
FROM tq.resolve(pg_temp.ids('b5', 'b4', 'b5'), '{0,0,0}', 'worker-shutdown') WITH ORDINALITY AS r;
SELECT is(pg_temp.sent(), 'PEND b5 pending 1._._, EXC b4 exception 0.wg.w1, PEND bd3 pending 0._._', '23, 24 resolve: some retried, some not');
SELECT is(string_agg(outcome, ' ' ORDER BY ordinality), 'repeated repeated', 'resolve: the same again')
FROM tq.resolve(pg_temp.ids('b5', 'b4'), '{0,0}', 'worker-shutdown') WITH ORDINALITY AS r;
SELECT is(pg_temp.sent(), 'PEND b5 pending 1._._, EXC b4 exception 0.wg.w1', '2.12 resolve: repeats are sent again, without the dependents');
SET tq.publish_retried_exceptions = on;
SELECT is(string_agg(outcome, ' ' ORDER BY ordinality), 'repeated retried', 'resolve: D-05 on')
FROM tq.resolve(pg_temp.ids('b5', 'b6'), '{0,0}', 'worker-shutdown') WITH ORDINALITY AS r;
SELECT is(pg_temp.sent(), 'EXC b5 pending 0.wg.w1, PEND b5 pending 1._._, EXC b6 pending 0.wg.w1, PEND b6 pending 1._._', '2.12 resolve: D-05 on, each before its retry');
RESET tq.publish_retried_exceptions;
SELECT is(pg_temp.code($$SELECT tq.resolve(pg_temp.ids('b5', 'b6'), '{1,1}', 'foo')$$), 'TQ400', 'resolve: no such reason');
SELECT is(pg_temp.code($$SELECT tq.resolve(pg_temp.ids('b5', 'b6'), '{1}')$$), 'TQ400', 'resolve: a run is missing');
SELECT is(pg_temp.sent(), '', 'resolve: which sends nothing');

-- ---------------------------------------------------------------------------
-- Rows 27 to 36: running, and other events.  Claims of these tasks last
-- a minute, those of others longer.
-- ---------------------------------------------------------------------------

SET tq.claim_timeout = '1min';
SELECT pg_temp.running('t27', '{"retries": 1}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'claim-expired 1', '27 running, retries left, the claim expires');
SELECT is(pg_temp.sent(), 'PEND t27 pending 1._._', '27 only task-pending');
SELECT is(pg_temp.pass(), '', '27 another pass');
SELECT is(pg_temp.sent(), '', '27 sends nothing');
RESET tq.clock_offset;
SELECT pg_temp.running('t27on', '{"retries": 1}');
SELECT pg_temp.forget();
SET tq.clock_offset = '2 minutes';
SET tq.publish_retried_exceptions = on;
SELECT is(pg_temp.pass(), 'claim-expired 1', '27 D-05 on');
SELECT is(pg_temp.sent(), 'EXC t27on pending 0.wg.w1, PEND t27on pending 1._._', '27 D-05 on: task-exception with the worker, then task-pending');
RESET tq.publish_retried_exceptions;
RESET tq.clock_offset;
SELECT pg_temp.running('t28', '{"retries": 0}');
SELECT pg_temp.create('d28', '{"$deps": ["t28"], "requires": "all-resolved"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'claim-expired 1', '28 running, no retries left, the claim expires');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC t28 exception 0.wg.w1, PEND d28 pending 0._._, GROUP t28', '28 task-exception with the worker, and the released dependents');
SELECT pg_temp.running('x27', '{"retries": 0, "$group": "gx"}');
SELECT pg_temp.running('y27', '{"retries": 1, "$group": "gx"}');
SELECT pg_temp.running('z27', '{"retries": 0, "$group": "gx"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'claim-expired 3', '27, 28 three at once');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC x27 exception 0.wg.w1, PEND y27 pending 1._._, EXC z27 exception 0.wg.w1', '27, 28 the same messages as alone');
SET tq.deadline_delay = '1h';
SELECT pg_temp.running('t29', '{"$deadline": "3 minutes"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('4 minutes'), '', '29 running, past the deadline, the claim expires');
RESET tq.clock_offset;
RESET tq.deadline_delay;
SELECT is(pg_temp.sent(), '', '29 sends nothing');
SELECT pg_temp.cancel('t29');
SELECT pg_temp.running('t30');
SELECT pg_temp.forget();
SET tq.claim_timeout = '10min';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t30'), 0)$$, '30 running, reclaimed');
SELECT is(pg_temp.pass('2 minutes'), '', '30 the old claim expires');
RESET tq.clock_offset;
RESET tq.claim_timeout;
SELECT is(pg_temp.sent(), '', '30 sends nothing');
SELECT pg_temp.cancel('t30');
SELECT is(pg_temp.sent(), 'EXC t30 exception 0.wg.w1, GROUP t30', '31 running, cancelTask: with the worker');
SELECT pg_temp.running('t32', '{"$deadline": "1 minute"}');
SELECT pg_temp.create('d32', '{"$deps": ["t32"], "requires": "all-resolved"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', '32 running, deadline');
SELECT is(pg_temp.sent(), 'EXC t32 exception 0._._, PEND d32 pending 0._._, GROUP t32', '32 task-exception without the worker, though retries are left');
SELECT is(pg_temp.pass(), '', '32 another pass');
SELECT is(pg_temp.sent(), '', '32 sends nothing');
RESET tq.clock_offset;
SELECT pg_temp.resolved('t32p', 'worker-shutdown', '{"$deadline": "1 minute"}');
SELECT pg_temp.forget();
SET tq.clock_offset = '2 minutes';
SET tq.publish_retried_exceptions = on;
SELECT is(pg_temp.pass(), 'deadline 1', '14 run 1 is pending, deadline');
RESET tq.publish_retried_exceptions;
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC t32p exception 1._._, GROUP t32p', '14 task-exception of run 1');
-- Row 33, a worker that is removed, has no function yet.
SELECT pg_temp.running('t34');
SELECT pg_temp.forget();
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('t34'))$$, '34 running, rerunTask');
SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('t34'))$$, '34 running, scheduleTask');
SELECT is(pg_temp.sent(), '', '34 send nothing');
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('t12t'), 0, 'wg-2', 'w_2')), 0, '35 running, claimTask by the same worker');
SELECT is(pg_temp.sent(), 'RUN t12t running 0.wg-2.w_2', '35 task-running is sent again');
SELECT is(pg_temp.code(query), 'TQ409', '36 running, ' || query)
FROM unnest(ARRAY['SELECT tq.claim_task(pg_temp.id(''t12t''), 0, ''wg-2'', ''w1'')', 'SELECT tq.claim_task(pg_temp.id(''t12t''), 0, ''wg'', ''w_2'')',
	'SELECT tq.claim_task(pg_temp.id(''t34''), 0, ''wg'', ''w1'')']) AS query;
SELECT is(pg_temp.claims('test/q-t12t'), '', '36 running, claimWork');
SELECT is(pg_temp.sent(), '', '36 sends nothing');

-- ---------------------------------------------------------------------------
-- Rows 37 to 46: resolved
-- ---------------------------------------------------------------------------

SELECT pg_temp.resolved(n, r) FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('e', 'internal-error'), ('x', 'canceled')) AS v (n, r);
SELECT pg_temp.forget();
SELECT lives_ok(format('SELECT tq.schedule_task(pg_temp.id(%L))', n), '39 resolved, scheduleTask: ' || pg_temp.state(n)) FROM unnest('{c,f,e,x}'::text[]) AS n;
SELECT is(pg_temp.sent(), '', '39 sends nothing');
SELECT pg_temp.cancel('x');
SELECT is(pg_temp.sent(), 'EXC x exception 0.wg.w1, GROUP x', '40 canceled, cancelTask: task-exception is sent again');
SELECT pg_temp.cancel('t13');
SELECT is(pg_temp.sent(), 'EXC t13 exception 0._._, GROUP t13', '40 canceled before it was claimed: the same, without a worker');
SELECT pg_temp.cancel('t9');
SELECT is(pg_temp.sent(), 'EXC t9 exception 0._._, GROUP t9', '40 canceled while it was unscheduled: the same');
SELECT lives_ok(format('SELECT pg_temp.cancel(%L)', n), '41 resolved otherwise, cancelTask: ' || n) FROM unnest('{c,f,e,t14,t28,t32}'::text[]) AS n;
SELECT is(pg_temp.sent(), '', '41 sends nothing');
SELECT pg_temp.resolved('t42' || n, r, '{"$deadline": "1 minute"}') FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('e', 'internal-error'), ('x', 'canceled')) AS v (n, r);
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), '', '42 resolved, deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), '', '42 sends nothing');
SELECT is(pg_temp.code(format(query, n)), 'TQ409', format('43 resolved, %s', format(query, n)))
FROM unnest('{c,f,e,x}'::text[]) AS n, unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(%L), 0)', 'SELECT tq.claim_task(pg_temp.id(%L), 0, ''wg'', ''w1'')']) AS query;
SELECT is(pg_temp.sent(), '', '43 sends nothing');
SELECT pg_temp.report('c', 'completed');
SELECT is(pg_temp.sent(), 'COMP c completed 0.wg.w1, GROUP c', '44 completed, reportCompleted: task-completed is sent again');
SELECT pg_temp.report('f', 'failed');
SELECT is(pg_temp.sent(), 'FAIL f failed 0.wg.w1, GROUP f', '45 failed, reportFailed: task-failed is sent again');
SELECT is(pg_temp.code(format('SELECT pg_temp.report(%L, %L, 0)', n, r)), 'TQ409', format('2.11 %s, reported as %s', n, r))
FROM (VALUES ('c', 'failed'), ('f', 'completed'), ('e', 'completed'), ('x', 'failed'), ('x', 'worker-shutdown'), ('c', 'internal-error')) AS v (n, r);
SELECT is(pg_temp.sent(), '', '2.11 which sends nothing');
SELECT lives_ok(format('SELECT tq.rerun_task(pg_temp.id(%L))', n), '37 resolved, rerunTask: ' || n) FROM unnest('{c,f,e,x}'::text[]) AS n;
SELECT is(pg_temp.sent(), 'PEND c pending 1._._, PEND f pending 1._._, PEND e pending 1._._, PEND x pending 1._._', '37 task-pending of the new run');
SELECT is(pg_temp.code(format('SELECT pg_temp.report(%L, %L, 0)', n, r)), 'TQ409', format('46 not the last run: %s, reported as %s', n, r))
FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('c', 'failed'), ('x', 'completed')) AS v (n, r);
SELECT is(pg_temp.code(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n)), 'TQ409', '46 not the last run, reclaimTask: ' || n) FROM unnest('{c,x}'::text[]) AS n;
SELECT is(pg_temp.code(format('SELECT tq.claim_task(pg_temp.id(%L), 0, ''wg'', ''w1'')', n)), 'TQ409', '46 not the last run, claimTask: ' || n) FROM unnest('{c,x}'::text[]) AS n;
SELECT is(pg_temp.sent(), '', '46 which sends nothing');
SELECT pg_temp.cancel('c', 'f', 'e', 'x');
SELECT pg_temp.forget();
SET tq.max_runs = 2;
SELECT is(pg_temp.code(format('SELECT tq.rerun_task(pg_temp.id(%L))', n)), 'TQ409', '38 as many runs as allowed, rerunTask: ' || n) FROM unnest('{c,f,e,x}'::text[]) AS n;
RESET tq.max_runs;
SELECT is(pg_temp.sent(), '', '38 sends nothing');

-- ---------------------------------------------------------------------------
-- 2.6, 2.7: groups.  Rows 9, 13, 31
-- ---------------------------------------------------------------------------

INSERT INTO known VALUES ('gc'), ('ge'), ('gb'), ('g6');
SELECT pg_temp.running('gc-run', '{"$group": "gc"}');
SELECT pg_temp.resolved('gc-done', 'completed', '{"$group": "gc"}');
SELECT pg_temp.create('gc-wait', '{"$group": "gc", "$deps": ["gc-run"], "requires": "all-resolved"}');
SELECT pg_temp.resolved('gc-off', 'canceled', '{"$group": "gc"}');
SELECT pg_temp.create('gc-pend', '{"$group": "gc"}');
SELECT pg_temp.create('gc-late', '{"$group": "gc", "$deadline": "1 minute"}');
SELECT pg_temp.create('dc', '{"$deps": ["gc-run", "gc-pend"], "requires": "all-resolved"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.code($$SELECT tq.cancel_task_group(pg_temp.id('gc'))$$), 'TQ409', '2.6 cancelTaskGroup, not sealed');
SELECT is(pg_temp.code($$SELECT tq.seal_task_group(pg_temp.id('nobody'))$$), 'TQ404', '2.7 sealTaskGroup, no such group');
SELECT is(pg_temp.sent(), '', '2.6 which sends nothing');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('gc'))$$, '2.7 sealTaskGroup');
SELECT is(pg_temp.sent(), 'SEAL gc', '2.7 sends task-group-sealed');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('gc'))$$, '2.7 sealTaskGroup again');
SELECT is(pg_temp.sent(), 'SEAL gc', '2.7 is sent by each call');
SELECT is(pg_temp.code($$SELECT pg_temp.create('gc-new', '{"$group": "gc"}')$$), 'TQ409', '2.7 a sealed group takes no task');
SELECT is(pg_temp.code($$SELECT pg_temp.create('gc-pend', '{"$group": "gc"}')$$), 'TQ409', '2.1 nor one that is in it, again');
SELECT is(pg_temp.sent(), '', '2.7 which sends nothing');
SET tq.clock_offset = '2 minutes';
SELECT is(tq.cancel_task_group(pg_temp.id('gc')) ->> 'cancelledCount', '3', '2.6 cancelTaskGroup');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC gc-run exception 0.wg.w1, EXC gc-pend exception 0._._, EXC gc-wait exception 0._._, PEND dc pending 0._._',
	'9, 13, 31 task-exception for each that was canceled, then their dependents');
SELECT is(tq.cancel_task_group(pg_temp.id('gc')) ->> 'cancelledCount', '1', '2.6 the one that was past its deadline');
SELECT is(pg_temp.sent(), 'EXC gc-late exception 0._._, GROUP gc', '13 and the group is resolved');
SELECT is(tq.cancel_task_group(pg_temp.id('gc')) ->> 'cancelledCount', '0', '2.6 cancelTaskGroup again');
SELECT is(pg_temp.sent(), '', '2.6 sends nothing');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('gc-run'))$$, '2.6 one is rerun');
SELECT pg_temp.forget();
SELECT is(tq.cancel_task_group(pg_temp.id('gc')) ->> 'cancelledCount', '1', '2.6 and canceled again');
SELECT is(pg_temp.sent(), 'EXC gc-run exception 1._._, GROUP gc', '2.6 sends only for the new run');

-- ---------------------------------------------------------------------------
-- Rows 47 to 49: past the deadline, whatever the state
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(n, '{"$deadline": "10 minutes"}') FROM unnest('{lp,lk}'::text[]) AS n;
SELECT pg_temp.create('lu', '{"$deps": ["lu"], "$deadline": "10 minutes"}');
SELECT pg_temp.running('lr', '{"$deadline": "10 minutes"}');
SELECT pg_temp.resolved(n, r, '{"$deadline": "10 minutes"}') FROM (VALUES ('lc', 'completed'), ('lf', 'failed'), ('le', 'internal-error'), ('lx', 'canceled')) AS v (n, r);
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('lk'), 0, 'wg', 'w1')$$, '48 claimed by claimTask');
SELECT pg_temp.forget();
SET tq.clock_offset = '11 minutes';
SELECT is(pg_temp.code(format('SELECT tq.%s(pg_temp.id(%L))', f, n)), 'TQ409', format('47 past the deadline, %s: %s', n, f))
FROM unnest('{lp,lu,lr,lc,lf,le,lx}'::text[]) AS n, unnest('{schedule_task,rerun_task,cancel_task}'::text[]) AS f;
SELECT is(pg_temp.code(format('SELECT tq.claim_task(pg_temp.id(%L), 0, ''wg'', ''w1'')', n)), 'TQ409', format('48 past the deadline, %s: claim_task', n))
FROM unnest('{lp,lk,lr,lc,lf,le,lx}'::text[]) AS n;
SELECT is(pg_temp.code(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n)), 'TQ409', format('48 past the deadline, %s: reclaim_task', n))
FROM unnest('{lp,lk,lr,lc,lf,le,lx}'::text[]) AS n;
SELECT is(pg_temp.claims('test/q-lp'), '', '48 past the deadline, claim_work');
SELECT is(pg_temp.sent(), '', '47, 48 send nothing');
SELECT pg_temp.report('lk', 'completed');
SELECT is(pg_temp.sent(), 'COMP lk completed 0.wg.w1, GROUP lk', '2.11 past the deadline, a report is sent');
SELECT pg_temp.report('lr', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'EXC lr exception 0.wg.w1, GROUP lr', '2.12, doc/spec/policy.md 10.14: and one that would be retried is final');
SELECT is(pg_temp.pass(), 'deadline 2', '10, 14 two at once');
SELECT is(pg_temp.sent(), 'EXC lp exception 0._._, EXC lu exception 0._._, ' || g, '10, 14 the same messages as alone')
FROM (SELECT CASE WHEN pg_temp.id('lp') < pg_temp.id('lu') THEN 'GROUP lp, GROUP lu' ELSE 'GROUP lu, GROUP lp' END) AS v (g);
RESET tq.clock_offset;

SELECT pg_temp.resolved('t49', 'completed', '{"$deadline": "1 minute", "$expires": "2 hours"}');
SELECT pg_temp.pass('61 minutes');	-- the deadlines of all tasks
SELECT pg_temp.forget();
CREATE TEMP TABLE written AS SELECT max(seq) AS seq FROM tq_internal.message;
SELECT pg_temp.pass('6 hours');
SELECT is(pg_temp.code($$SELECT tq.status(pg_temp.id('t49'))$$), 'TQ404', '49 the task has expired');
SELECT is(pg_temp.sent(), '', '49 sends nothing');
SELECT is((SELECT count(*) FROM tq_internal.message, written WHERE message.seq > written.seq), 0::bigint, '49 nor is a message written');
RESET tq.clock_offset;

SELECT * FROM finish();
