-- doc/spec/taskcluster.md 3.1: every row of the table of transitions, by its
-- number.  Their messages are in 6.0_transitions.sql.
BEGIN;
\ir helper.psql

-- #1 to #4: creation
SELECT is(pg_temp.create('t1', '{"retries": 3}'), 'pending 3: scheduled>pending', '3.1 #1 createTask without dependencies');
SELECT is(pg_temp.create('t2', '{"$deps": ["t1"], "retries": 0}'), 'unscheduled 0:', '3.1 #2 createTask, dependencies not met');
SELECT pg_temp.resolved('t3d', 'completed');
SELECT is(pg_temp.create('t3', '{"$deps": ["t3d"], "retries": 49}'), 'pending 49: scheduled>pending', '3.1 #3 createTask, dependencies met');
SELECT is(pg_temp.line(tq.define_task(pg_temp.id('t4'), pg_temp.def('t4'))), 'unscheduled 5:', '3.1 #4 defineTask');

-- #5 to #11: unscheduled
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('t4'))), 'pending 5: scheduled>pending', '3.1 #5 unscheduled, scheduleTask');
SELECT pg_temp.create('t6d');
SELECT pg_temp.create('t6e');
SELECT pg_temp.create('t6', '{"$deps": ["t6d", "t6e"]}');
SELECT pg_temp.take(n) FROM unnest('{t6d,t6e}'::text[]) AS n;
SELECT pg_temp.report('t6d', 'completed');
SELECT is(pg_temp.look('t6'), 'unscheduled 5:', '3.1 #6 unscheduled, not the last dependency');
SELECT pg_temp.report('t6e', 'completed');
SELECT is(pg_temp.look('t6'), 'pending 5: scheduled>pending', '3.1 #6 unscheduled, the last dependency is met');
SELECT pg_temp.running('t7d', '{"$deadline": "2 hours", "$expires": "3 hours"}');
SELECT pg_temp.create('t7', '{"$deps": ["t7d"], "$deadline": "10 minutes"}');
SET tq.clock_offset = '11 minutes';
SELECT pg_temp.report('t7d', 'completed');
SELECT is(pg_temp.look('t7'), 'unscheduled 5:', '3.1 #7 unscheduled, the dependency is met after the deadline');
SELECT is(pg_temp.pass(), 'deadline 1', '3.1 #7 the deadline is processed');
SELECT is(pg_temp.look('t7'), 'exception 5: exception>exception/deadline-exceeded', '3.1 #7 and resolves it');
RESET tq.clock_offset;
SELECT pg_temp.create('t8', '{"$deps": ["t1"], "retries": 49}');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('t8'))), 'pending 49: rerun>pending', '3.1 #8 unscheduled, rerunTask');
SELECT pg_temp.create('t9', '{"$deps": ["t1"], "retries": 2}');
SELECT is(pg_temp.report('t9', 'canceled'), 'exception 2: exception>exception/canceled', '3.1 #9 unscheduled, cancelTask');
SELECT pg_temp.create('t9g', '{"$deps": ["t1"], "$group": "g9"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('g9'))$$, '3.1 #9 its group is sealed');
SELECT lives_ok($$SELECT tq.cancel_task_group(pg_temp.id('g9'))$$, '3.1 #9 unscheduled, cancelTaskGroup');
SELECT is(pg_temp.look('t9g'), 'exception 5: exception>exception/canceled', '3.1 #9 the same');
SELECT pg_temp.create('t10', '{"$deps": ["t1"], "$deadline": "1 minute"}');
SELECT is(pg_temp.pass('61 seconds'), 'deadline 1', '3.1 #10 unscheduled, deadline');
SELECT is(pg_temp.look('t10'), 'exception 5: exception>exception/deadline-exceeded', '3.1 #10 an exception run');
RESET tq.clock_offset;
SELECT pg_temp.create('t11', '{"$deps": ["t1"]}');
SELECT pg_temp.throws(query, 'TQ404', '3.1 #11 unscheduled, ' || query)
FROM unnest(ARRAY['SELECT tq.claim_task(pg_temp.id(''t11''), 0, ''wg'', ''w1'')', 'SELECT tq.reclaim_task(pg_temp.id(''t11''), 0)',
	'SELECT tq.report_completed(pg_temp.id(''t11''), 0)', 'SELECT tq.report_failed(pg_temp.id(''t11''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''t11''), 0, ''internal-error'')']) AS query;
SELECT is(pg_temp.claims('test/q-t11'), '', '3.1 #11 unscheduled, claimWork finds nothing');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('t11'), '{0}')), 'not-found', '3.1 #11 unscheduled, resolve');
SELECT is(pg_temp.look('t11'), 'unscheduled 5:', '3.1 #11 it has not changed');

-- #12 to #18: pending
SELECT pg_temp.create('t12');
SELECT is(pg_temp.take('t12'), 0, '3.1 #12 pending, claimWork');
SELECT is(pg_temp.look('t12'), 'running 5: scheduled>running', '3.1 #12 the same run is running');
SELECT pg_temp.create('t12b');
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('t12b'), 0, 'wg', 'w1')), 0, '3.1 #12 pending, claimTask');
SELECT is(pg_temp.look('t12b'), 'running 5: scheduled>running', '3.1 #12 the same run is running');
SELECT pg_temp.create('t13');
SELECT is(pg_temp.report('t13', 'canceled'), 'exception 5: scheduled>exception/canceled', '3.1 #13 pending, cancelTask');
SELECT pg_temp.create('t13g', '{"$group": "g13"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('g13'))$$, '3.1 #13 its group is sealed');
SELECT lives_ok($$SELECT tq.cancel_task_group(pg_temp.id('g13'))$$, '3.1 #13 pending, cancelTaskGroup');
SELECT is(pg_temp.look('t13g'), 'exception 5: scheduled>exception/canceled', '3.1 #13 the same');
SELECT pg_temp.create('t14', '{"$deadline": "1 minute"}');
SELECT is(pg_temp.pass('61 seconds'), 'deadline 1', '3.1 #14 pending, deadline');
SELECT is(pg_temp.look('t14'), 'exception 5: scheduled>exception/deadline-exceeded', '3.1 #14 the same run becomes exception');
SELECT is((SELECT count(*) FROM tq_internal.pending JOIN tq_internal.task ON id = task WHERE task_id::text = pg_temp.id('t14')::text), 0::bigint, '3.1 #14 the pending row is deleted');
RESET tq.clock_offset;
SELECT pg_temp.create('t15');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('t15'))$$, 't15', '3.1 #15 pending, scheduleTask');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('t15'))$$, 't15', '3.1 #16 pending, rerunTask');
SELECT pg_temp.throws(query, 'TQ409', '3.1 #17 pending, ' || query)
FROM unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(''t15''), 0)', 'SELECT tq.report_completed(pg_temp.id(''t15''), 0)',
	'SELECT tq.report_failed(pg_temp.id(''t15''), 0)', 'SELECT tq.report_exception(pg_temp.id(''t15''), 0, ''internal-error'')',
	'SELECT tq.report_exception(pg_temp.id(''t15''), 0, ''worker-shutdown'')']) AS query;
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('t15'), '{0}', r)), 'conflict', '3.1 #17 pending, resolve as ' || r) FROM unnest('{completed,failed,worker-shutdown,internal-error}'::text[]) AS r;
SELECT is(pg_temp.look('t15'), 'pending 5: scheduled>pending', '3.1 #17 it has not changed');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('t15'), pg_temp.def('t15'))$$, 't15', '3.1 #18 pending, createTask again');

-- #19 to #36: running
SELECT pg_temp.running('t19');
SET tq.clock_offset = '10 minutes';
SELECT ok(taken_until > pg_temp.clock() + interval '19 minutes', '3.1 #19 running, reclaimTask: later takenUntil') FROM tq.reclaim_task(pg_temp.id('t19'), 0);
SELECT is(pg_temp.look('t19'), 'running 5: scheduled>running', '3.1 #19 it is running');
RESET tq.clock_offset;
SELECT pg_temp.running('t' || n, '{"retries": 2}') FROM generate_series(20, 22) AS n;
SELECT is(pg_temp.report('t20', 'completed'), 'completed 2: scheduled>completed/completed', '3.1 #20 running, reportCompleted');
SELECT is(pg_temp.report('t21', 'failed'), 'failed 2: scheduled>failed/failed', '3.1 #21 running, reportFailed');
SELECT is(pg_temp.report('t22', 'malformed-payload'), 'exception 2: scheduled>exception/malformed-payload', '3.1 #22 running, malformed-payload');
SELECT is(pg_temp.resolved('t22b', 'resource-unavailable'), 'exception 5: scheduled>exception/resource-unavailable', '3.1 #22 running, resource-unavailable');
SELECT is(pg_temp.resolved('t22c', 'internal-error'), 'exception 5: scheduled>exception/internal-error', '3.1 #22 running, internal-error');
SELECT is(pg_temp.resolved('t23', 'worker-shutdown', '{"retries": 1}'), 'pending 0: scheduled>exception/worker-shutdown retry>pending', '3.1 #23 running, retries left, worker-shutdown');
SELECT is(pg_temp.resolved('t24', 'worker-shutdown', '{"retries": 0}'), 'exception 0: scheduled>exception/worker-shutdown', '3.1 #24 running, no retries left, worker-shutdown');
SELECT is(pg_temp.resolved('t25', 'intermittent-task', '{"retries": 1}'), 'pending 0: scheduled>exception/intermittent-task task-retry>pending', '3.1 #25 running, retries left, intermittent-task');
SELECT is(pg_temp.resolved('t26', 'intermittent-task', '{"retries": 0}'), 'exception 0: scheduled>exception/intermittent-task', '3.1 #26 running, no retries left, intermittent-task');
SAVEPOINT s;
DELETE FROM tq_internal.claim_timer;
UPDATE tq_internal.message SET due = NULL;
SELECT pg_temp.running('t27', '{"retries": 1}');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 1', '3.1 #27 running, retries left, the claim expires');
SELECT is(pg_temp.look('t27'), 'pending 0: scheduled>exception/claim-expired retry>pending', '3.1 #27 a new run');
RESET tq.clock_offset;
SELECT pg_temp.running('t28', '{"retries": 0}');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 1', '3.1 #28 running, no retries left, the claim expires');
SELECT is(pg_temp.look('t28'), 'exception 0: scheduled>exception/claim-expired', '3.1 #28 an exception');
RESET tq.clock_offset;
SET tq.deadline_delay = '1h';
SELECT pg_temp.running('t29', '{"$deadline": "10 minutes"}');
SELECT is(pg_temp.pass('21 minutes'), '', '3.1 #29 running, past the deadline: the claim does not expire');
SELECT is(pg_temp.look('t29'), 'running 5: scheduled>running', '3.1 #29 unchanged');
SELECT pg_temp.pass('71 minutes');
SELECT is(pg_temp.look('t29'), 'exception 5: scheduled>exception/deadline-exceeded', '3.1 #29 the deadline will resolve it');
RESET tq.clock_offset;
RESET tq.deadline_delay;
SELECT pg_temp.running('t30');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t30'), 0)$$, '3.1 #30 running, reclaimed');
SELECT is(pg_temp.pass('21 minutes'), '', '3.1 #30 the old claim timer does not match');
SELECT is(pg_temp.look('t30'), 'running 5: scheduled>running', '3.1 #30 unchanged');
RESET tq.clock_offset;
ROLLBACK TO SAVEPOINT s;
SELECT pg_temp.running('t31');
SELECT is(pg_temp.report('t31', 'canceled'), 'exception 5: scheduled>exception/canceled', '3.1 #31 running, cancelTask');
SELECT is(pg_temp.run('t31') ->> 'workerGroup' || (pg_temp.run('t31') ->> 'workerId'), 'wgw1', '3.1 #31 the worker ids are kept');
SELECT pg_temp.running('t31g', '{"$group": "g31"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('g31'))$$, '3.1 #31 its group is sealed');
SELECT lives_ok($$SELECT tq.cancel_task_group(pg_temp.id('g31'))$$, '3.1 #31 running, cancelTaskGroup');
SELECT is(pg_temp.look('t31g'), 'exception 5: scheduled>exception/canceled', '3.1 #31 the same');
SELECT pg_temp.running('t32', '{"$deadline": "1 minute"}');
SELECT is(pg_temp.pass('61 seconds'), 'deadline 1', '3.1 #32 running, deadline');
SELECT is(pg_temp.look('t32'), 'exception 5: scheduled>exception/deadline-exceeded', '3.1 #32 not retried though retries are left');
SELECT is(pg_temp.run('t32') ->> 'workerId', 'w1', '3.1 #32 the run keeps its worker (only the message does not name it)');
RESET tq.clock_offset;
SELECT pg_temp.create('t33' || n, jsonb_build_object('taskQueueId', 'test/removed', 'retries', n)) FROM unnest('{1,0}'::int[]) AS n;
SELECT pg_temp.claims('test/removed', 2, 'gone');
SELECT is((SELECT count(*) FROM tq.worker_removed('test/removed', 'wg', 'gone', 'for a test')), 2::bigint, '3.1 #33 running, the worker is removed');
SELECT is(pg_temp.look('t331'), 'pending 0: scheduled>exception/worker-shutdown retry>pending', '3.1 #33 as #23');
SELECT is(pg_temp.look('t330'), 'exception 0: scheduled>exception/worker-shutdown', '3.1 #33 as #24');
SELECT pg_temp.running('t34');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('t34'))$$, 't34', '3.1 #34 running, rerunTask');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('t34'))$$, 't34', '3.1 #34 running, scheduleTask');
CREATE TEMP TABLE t35 AS SELECT tq.status(pg_temp.id('t12b')) AS status;
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('t12b'), 0, 'wg', 'w1')), 0, '3.1 #35 running, claimTask by the same worker');
SELECT is(tq.status(pg_temp.id('t12b')), status, '3.1 #35 unchanged') FROM t35;
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('t12b'), 0, 'wg', 'w2')$$, 'TQ409', '3.1 #36 running, claimTask by another worker');
SELECT is(pg_temp.claims('test/q-t12b', 1, 'w2'), '', '3.1 #36 running, claimWork by another worker');

-- #37 to #46: resolved
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id(n))), line, '3.1 #37 resolved, rerunTask')
FROM (VALUES ('t20', 'pending 2: scheduled>completed/completed rerun>pending'), ('t21', 'pending 2: scheduled>failed/failed rerun>pending'),
	('t22', 'pending 2: scheduled>exception/malformed-payload rerun>pending'), ('t9', 'pending 2: exception>exception/canceled rerun>pending'),
	('t24', 'pending 0: scheduled>exception/worker-shutdown rerun>pending'), ('t31', 'pending 5: scheduled>exception/canceled rerun>pending')) AS v (n, line);
SET tq.max_runs = 2;
SELECT pg_temp.report('t20', 'canceled');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('t20'))$$, 'TQ409', '3.1 #38 resolved, as many runs as allowed, rerunTask');
RESET tq.max_runs;
SELECT pg_temp.resolved(n, r) FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('e', 'internal-error'), ('x', 'canceled')) AS v (n, r);
SELECT pg_temp.keeps(format('SELECT tq.schedule_task(pg_temp.id(%L))', n), n, '3.1 #39 resolved, scheduleTask: ' || pg_temp.state(n)) FROM unnest('{c,f,e,x}'::text[]) AS n;
SELECT pg_temp.keeps($$SELECT tq.cancel_task(pg_temp.id('x'))$$, 'x', '3.1 #40 canceled, cancelTask');
SELECT pg_temp.keeps(format('SELECT tq.cancel_task(pg_temp.id(%L))', n), n, '3.1 #41 resolved otherwise, cancelTask: ' || pg_temp.state(n)) FROM unnest('{c,f,e}'::text[]) AS n;
SELECT pg_temp.resolved('t42' || n, r, '{"$deadline": "1 minute"}') FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('e', 'internal-error'), ('x', 'canceled')) AS v (n, r);
CREATE TEMP TABLE t42 AS SELECT n, tq.status(pg_temp.id('t42' || n)) AS status FROM unnest('{c,f,e,x}'::text[]) AS n;
SELECT is(pg_temp.pass('61 seconds'), '', '3.1 #42 resolved, deadline: nothing is done');
SELECT is(tq.status(pg_temp.id('t42' || n)), status, '3.1 #42 unchanged: ' || n) FROM t42;
RESET tq.clock_offset;
SELECT pg_temp.throws(format(query, n), 'TQ409', format('3.1 #43 %s, %s', pg_temp.state(n), format(query, n)))
FROM unnest('{c,f,e,x}'::text[]) AS n, unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(%L), 0)', 'SELECT tq.claim_task(pg_temp.id(%L), 0, ''wg'', ''w1'')']) AS query;
SELECT is(pg_temp.claims('test/q-' || n), '', '3.1 #43 resolved, claimWork finds nothing') FROM unnest('{c,f,e,x}'::text[]) AS n;
SELECT pg_temp.keeps($$SELECT tq.report_completed(pg_temp.id('c'), 0)$$, 'c', '3.1 #44 completed, reportCompleted');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('f'), 0)$$, 'f', '3.1 #45 failed, reportFailed');
SELECT pg_temp.resolved('t46', 'worker-shutdown');
SELECT pg_temp.take('t46');
SELECT pg_temp.throws(query, 'TQ409', '3.1 #46 not the last run, ' || query)
FROM unnest(ARRAY['SELECT tq.report_completed(pg_temp.id(''t46''), 0)', 'SELECT tq.report_failed(pg_temp.id(''t46''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''t46''), 0, ''internal-error'')', 'SELECT tq.reclaim_task(pg_temp.id(''t46''), 0)',
	'SELECT tq.claim_task(pg_temp.id(''t46''), 0, ''wg'', ''w1'')']) AS query;
SELECT pg_temp.keeps($$SELECT tq.report_exception(pg_temp.id('t46'), 0, 'worker-shutdown')$$, 't46', '3.1 #46 but for the repeat of an exception that one run follows');

-- #47, #48: past the deadline, whatever the state
SELECT pg_temp.create('dp');
SELECT pg_temp.create('du', '{"$deps": ["du"]}');
SELECT pg_temp.create('dk');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('dk'), 0, 'wg', 'w1')$$, '3.1 #48 claimed by claim_task');
SET tq.clock_offset = '60 minutes 1 second';
SELECT pg_temp.throws(format('SELECT tq.%s(pg_temp.id(%L))', f, n), 'TQ409', format('3.1 #47 past the deadline, %s: %s', pg_temp.state(n), f))
FROM unnest('{dp,du,t34,c,f,e,x}'::text[]) AS n, unnest('{schedule_task,rerun_task,cancel_task}'::text[]) AS f;
SELECT pg_temp.throws(format('SELECT tq.claim_task(pg_temp.id(%L), 0, ''wg'', ''w1'')', n), 'TQ409', format('3.1 #48 past the deadline, %s: claim_task', pg_temp.state(n)))
FROM unnest('{dp,dk,t34,c,f,e,x}'::text[]) AS n;
SELECT pg_temp.throws(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n), 'TQ409', format('3.1 #48 past the deadline, %s: reclaim_task', pg_temp.state(n)))
FROM unnest('{dp,dk,t34,c,f,e,x}'::text[]) AS n;
RESET tq.clock_offset;
SET tq.clock_offset = '59 minutes 30 seconds';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t34'), 0)$$, '3.1 #48 not yet past it: reclaim_task');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('dp'), 0, 'wg', 'w1')$$, '3.1 #48 not yet past it: claim_task');
SELECT lives_ok($$SELECT tq.schedule_task(pg_temp.id('du'))$$, '3.1 #47 not yet past it: schedule_task');
SELECT lives_ok($$SELECT tq.cancel_task(pg_temp.id('du'))$$, '3.1 #47 not yet past it: cancel_task');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('du'))$$, '3.1 #47 not yet past it: rerun_task');
RESET tq.clock_offset;

-- #49
SELECT pg_temp.resolved('t49', 'completed', '{"$deadline": "1 minute", "$expires": "31 minutes"}');
SELECT pg_temp.pass('30 minutes 30 seconds');
SELECT is(pg_temp.state('t49'), 'completed', '3.1 #49 not before expires');
SET tq.clock_offset = '31 minutes';
SELECT is((SELECT tasks FROM tq.upkeep() WHERE step = 'expired'), 1::bigint, '3.1 #49 expiry');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('t49'))$$, 'TQ404', '3.1 #49 the task is deleted');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
