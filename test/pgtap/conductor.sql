-- The life-cycle of a Conductor task, as its page draws it: every arrow of the
-- state diagram (CC-001 to CC-020), every row of the three tables.  The
-- sequence diagrams and timeouts are in conductor_2_timeouts.sql, the delays
-- in conductor_3_delays.sql, what a task does to its workflow in
-- conductor_4_workflows.sql, the messages in conductor_5_messages.sql.
--
-- Each case is rolled back before the next, with its clock; not the last, because
-- finish() needs it.
BEGIN;
\ir conductor.psql
SAVEPOINT cc;

-- ---------------------------------------------------------------------------
-- The arrows of the state diagram
-- ---------------------------------------------------------------------------

-- [*] --> SCHEDULED
SELECT is(pg_temp.start('a'), 'pending 3: scheduled>pending', 'CC-001 a task is scheduled: one run');
SELECT is(pg_temp.words('a'), 'SCHEDULED', 'CC-001 SCHEDULED');
SELECT is(pg_temp.keys(pg_temp.run('a')), 'reasonCreated runId scheduled state', 'CC-001 a scheduledTime, no startTime, no delay, retryCount 0 is not shown');
SELECT is(attempt, 0, 'CC-001 retryCount 0') FROM tq.run_overview;
SELECT ok(pg_temp.near(pg_temp.run('a') ->> 'scheduled', pg_temp.clock()), 'CC-001 scheduledTime is now');
SELECT is(pg_temp.claims('test/q-a'), 'a', 'CC-001 it can be polled');
ROLLBACK TO cc;

-- other ways to create a task
SELECT is(tq.enqueue('test/q', task_id => pg_temp.id('e'), policy => tq.conductor_policy('{"retryCount": 2, "pollTimeoutSeconds": 60}', '{"startDelay": 10}'))::text, pg_temp.id('e')::text, 'CC-001 enqueue');
SELECT is(tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('c')::text, 'task',
	pg_temp.def('c', '{"$deadline": "1 day"}') || jsonb_build_object('policy', tq.conductor_policy('{"retryCount": 2, "pollTimeoutSeconds": 60}', '{"startDelay": 10}'))))), 1::bigint, 'CC-001 create_tasks');
SELECT is(tq.define_task(pg_temp.id('d'), pg_temp.def('d', '{"$deadline": "1 day"}')
	|| jsonb_build_object('policy', tq.conductor_policy('{"retryCount": 2, "pollTimeoutSeconds": 60}', '{"startDelay": 10}'))) ->> 'state', 'unscheduled', 'CC-001 define_task');
SELECT pg_temp.at(pg_temp.clock() + interval '10 s');
SELECT is(pg_temp.words('e', 'c', 'd'), 'SCHEDULED SCHEDULED -', 'CC-001 SCHEDULED, except the task that is only defined');
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('d'))), 'pending 2: scheduled>pending', 'CC-001 schedule_task');
SELECT is(pg_temp.time(n) - pg_temp.time(n, 'scheduled'), interval '10 s', 'CC-001 each waits from when it is scheduled: ' || n) FROM unnest('{e,c,d}'::text[]) AS n;
SELECT is(pg_temp.at(pg_temp.time('c') + interval '60 s') || ', ' || pg_temp.at(pg_temp.time('d') + interval '60 s'), 'pending-timeout 2 delayed 1, pending-timeout 1', 'CC-001 and has a timeout');
ROLLBACK TO cc;

-- SCHEDULED --> IN_PROGRESS: worker polls task
SELECT is(pg_temp.polled('a'), 'running 3: scheduled>running', 'CC-002 a worker polls the task');
SELECT is(pg_temp.words('a'), 'IN_PROGRESS', 'CC-002 IN_PROGRESS');
SELECT is(pg_temp.run('a') ->> 'workerId', 'w1', 'CC-002 workerId');
SELECT ok(pg_temp.near(pg_temp.run('a') ->> 'started', pg_temp.clock()), 'CC-002 startTime is now');
SELECT is(pg_temp.claims('test/q-a'), '', 'CC-002 it cannot be polled twice');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"responseTimeoutSeconds": 20, "timeoutSeconds": 30, "timeoutPolicy": "RETRY", "pollTimeoutSeconds": 5}');
SELECT is(taken_until, pg_temp.time('a', 'started') + interval '20 s', 'CC-002 tq: polled by its name: the response timeout is its own')
FROM tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1');
SELECT tq.reclaim_task(pg_temp.id('a'), 0) IS NULL;
SELECT is(pg_temp.before(pg_temp.time('a', 'takenUntil')), '', 'CC-002 it no longer has a poll timeout');
SELECT tq.reclaim_task(pg_temp.id('a'), 0) IS NULL;
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), 'run-timeout 1', 'CC-002 and its task timeout');
ROLLBACK TO cc;
SELECT tq.create_task(pg_temp.id(n), pg_temp.def(n, '{"taskQueueId": "test/mixed", "$deadline": "1 day"}') || CASE WHEN r IS NULL THEN '{}'
	ELSE jsonb_build_object('policy', tq.conductor_policy(jsonb_build_object('responseTimeoutSeconds', r, 'timeoutSeconds', r, 'timeoutPolicy', 'RETRY'))) END) IS NULL
FROM (VALUES (1, 'm1', 30), (2, 'm2', NULL), (3, 'm3', 10), (4, 'm4', 30)) AS v (i, n, r) ORDER BY i;
SELECT is(pg_temp.claims('test/mixed'), 'm1 m2 m3 m4', 'CC-002 one worker polls several tasks');
SELECT is((SELECT string_agg(extract(epoch FROM pg_temp.time('m' || n, 'takenUntil') - pg_temp.time('m' || n, 'started'))::int::text, ' ' ORDER BY n) FROM generate_series(1, 4) AS n),
	'30 1200 10 30', 'CC-002 each has its own response timeout');
SELECT is(pg_temp.at(pg_temp.time('m3', 'takenUntil')) || ', ' || pg_temp.at(pg_temp.time('m4', 'takenUntil')), 'run-timeout 1, run-timeout 2', 'CC-002 and its own task timeout');
ROLLBACK TO cc;

-- SCHEDULED --> TIMED_OUT: poll timeout exceeded
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 1}');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '60 s'), 'pending-timeout 1', 'CC-003 no poll for 60 s');
SELECT is(pg_temp.look('a'), 'pending 0: scheduled>exception/pending-timeout retry>pending', 'CC-003 TIMED_OUT by the poll timeout, a new run is SCHEDULED');
SELECT is(pg_temp.words('a') || ' ' || (pg_temp.run('a') ->> 'attempt'), 'SCHEDULED 1', 'CC-003 its retryCount is 1');
SELECT is(pg_temp.keys(pg_temp.run('a', 0)), 'reasonCreated reasonResolved resolved runId scheduled state', 'CC-003 the first run had no worker');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 0}');
SELECT pg_temp.at(pg_temp.time('a') + interval '60 s');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.words('a'), 'exception 0: scheduled>exception/pending-timeout TIMED_OUT', 'CC-003 TIMED_OUT is the task, where no retries are left');
ROLLBACK TO cc;

-- SCHEDULED --> CANCELED: workflow terminated; also IN_PROGRESS tasks
-- (doc/spec/conductor.md 13.4)
SELECT pg_temp.start('a');
SELECT pg_temp.start('later', '{}', '{"startDelay": 600}');
SELECT pg_temp.polled('b');
SELECT pg_temp.start('c', '{}', '{}', '{"$deps": ["b"]}');
SELECT is(pg_temp.terminate(), 4, 'CC-004 the workflow is terminated');
SELECT is(pg_temp.words('a', 'later', 'b', 'c'), 'CANCELED CANCELED CANCELED CANCELED', 'CC-004 SCHEDULED is CANCELED, and IN_PROGRESS too, and those not yet scheduled');
SELECT is(pg_temp.look(n), line, 'CC-004 ' || n) FROM (VALUES
	('a', 'exception 3: scheduled>exception/canceled'), ('later', 'exception 3: scheduled>exception/canceled'),
	('b', 'exception 3: scheduled>exception/canceled'), ('c', 'exception 3: exception>exception/canceled')) AS v (n, line);
SELECT is(pg_temp.claims('test/q-' || n), '', 'CC-004 a poll returns nothing: ' || n) FROM unnest('{a,later,b,c}'::text[]) AS n;
SELECT is(pg_temp.outcome(), 'canceled', 'CC-004 the workflow is TERMINATED');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 hours') || pg_temp.claims('test/q-later'), '', 'CC-004 nothing is retried');
ROLLBACK TO cc;

-- IN_PROGRESS --> COMPLETED: worker reports success
SELECT pg_temp.polled('a');
SELECT is(pg_temp.line(tq.report_completed(pg_temp.id('a'), 0, result => '{"answer": 42}')), 'completed 3: scheduled>completed/completed', 'CC-005 the worker reports success');
SELECT is(pg_temp.words('a'), 'COMPLETED', 'CC-005 COMPLETED');
SELECT ok(pg_temp.near(pg_temp.run('a') ->> 'resolved', pg_temp.clock()), 'CC-005 endTime is now');
SELECT is(tq.result(pg_temp.id('a')), '{"answer": 42}', 'CC-005 the output is kept');
SELECT is(pg_temp.outcome(), 'completed', 'CC-005 the workflow is COMPLETED');
ROLLBACK TO cc;

-- IN_PROGRESS --> FAILED: worker reports failure
SELECT pg_temp.polled('a', '{"retryCount": 1}');
SELECT is(pg_temp.line(tq.report_failed(pg_temp.id('a'), 0, error => '{"message": "no disk", "details": {"code": 28}}')),
	'pending 0: scheduled>failed/failed failure-retry>pending', 'CC-006 the worker reports failure: that run is FAILED, a new one is SCHEDULED');
SELECT is(pg_temp.words('a') || ' ' || (pg_temp.run('a') ->> 'attempt'), 'SCHEDULED 1', 'CC-006 its retryCount is 1');
SELECT is(pg_temp.run('a', 0) -> 'error', '{"message": "no disk", "details": {"code": 28}}', 'CC-006 the first run keeps the reason');
SELECT ok(NOT pg_temp.run('a') ? 'error', 'CC-006 the new one has none');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('a'), 0)$$, 'a', 'CC-006 tq: the same report again is answered as before (doc/spec/policy.md 10.8)');
ROLLBACK TO cc;
SELECT pg_temp.polled(n, '{"retryCount": 1}') FROM unnest('{a,b}'::text[]) AS n;
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('a', 'b'), '{0,0}', 'failed')), 'retried retried', 'CC-006 the batch returns retried for each');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('a', 'b'), '{0,0}', 'failed')), 'repeated repeated', 'CC-006 and repeated for the same report');
ROLLBACK TO cc;

-- IN_PROGRESS --> FAILED_WITH_TERMINAL_ERROR: non-retryable failure
SELECT pg_temp.polled('a', '{"retryCount": 5}');
SELECT is(pg_temp.update('a', 'failed-terminal'), 'resolved', 'CC-007 a failure that is not to be retried');
SELECT is(pg_temp.look('a'), 'failed 5: scheduled>failed/failed-terminal', 'CC-007 there is no new run');
SELECT is(pg_temp.words('a'), 'FAILED_WITH_TERMINAL_ERROR', 'CC-007 FAILED_WITH_TERMINAL_ERROR');
SELECT is(pg_temp.outcome(), 'failed', 'CC-007 the workflow is FAILED');
SELECT is(attempt, 0, 'CC-007 retryCount 0') FROM tq.run_overview;
ROLLBACK TO cc;

-- IN_PROGRESS --> TIMED_OUT: response timeout exceeded
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 20, "retryCount": 1, "retryDelaySeconds": 5}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '20 s'), 'claim-expired 1', 'CC-008 silent for 20 s');
SELECT is(pg_temp.look('a'), 'pending 0: scheduled>exception/claim-expired retry>pending', 'CC-008 that run is TIMED_OUT, a new one is SCHEDULED');
SELECT is(pg_temp.wait('a'), 5.0, 'CC-008 visible 5 s later');
SELECT is(pg_temp.before(pg_temp.time('a'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-a')$$), '', 'CC-008 not a moment before');
SELECT is(pg_temp.at(pg_temp.time('a')) || ', ' || pg_temp.claims('test/q-a'), 'delayed 1, a', 'CC-008 but then');
ROLLBACK TO cc;

-- IN_PROGRESS --> TIMED_OUT: task timeout exceeded
SELECT pg_temp.polled('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "RETRY", "retryCount": 1}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), 'run-timeout 1', 'CC-009 30 s have passed');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.words('a'), 'pending 0: scheduled>exception/run-timeout retry>pending SCHEDULED', 'CC-009 that run is TIMED_OUT, a new one is SCHEDULED');
SELECT is(pg_temp.run('a', 0) ->> 'workerId', 'w1', 'CC-009 the first run keeps its worker');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "RETRY", "retryCount": 0}');
SELECT pg_temp.at(pg_temp.time('a', 'started') + interval '30 s');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.words('a'), 'exception 0: scheduled>exception/run-timeout TIMED_OUT', 'CC-009 TIMED_OUT is the task, where no retries are left');
ROLLBACK TO cc;

-- IN_PROGRESS --> COMPLETED_WITH_ERRORS: optional task fails
SELECT pg_temp.polled('a', '{"retryCount": 0}', '{"optional": true}');
SELECT pg_temp.start('next', '{}', '{}', '{"$deps": ["a"]}');
SELECT is(pg_temp.words('a', 'next'), 'IN_PROGRESS -', 'CC-010 an optional task, and the next');
SELECT is(pg_temp.report('a', 'failed'), 'failed 0: scheduled>failed/failed', 'CC-010 it fails');
SELECT is(pg_temp.words('a', 'next'), 'COMPLETED_WITH_ERRORS SCHEDULED', 'CC-010 COMPLETED_WITH_ERRORS, and the next is SCHEDULED');
SELECT is(pg_temp.outcome(), 'active', 'CC-010 the workflow goes on');
SELECT pg_temp.work('next', 'completed');
SELECT is(pg_temp.outcome(), 'completed-with-errors', 'CC-010 and completes');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"retryCount": 1, "retryDelaySeconds": 0}', '{"optional": true}');
SELECT pg_temp.start('next', '{}', '{}', '{"$deps": ["a"]}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a', 'next'), 'SCHEDULED -', 'CC-010 but first it uses its retries (13.3)');
ROLLBACK TO cc;

-- SCHEDULED --> SKIPPED: Skip Task API called.  In a sequence in which tasks are
-- skipped, a task requires all before it.
SELECT pg_temp.start('t1');
SELECT pg_temp.start('t2', '{}', '{}', '{"$deps": ["t1"]}');
SELECT pg_temp.start('t3', '{}', '{}', '{"$deps": ["t1", "t2"]}');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('t2'), '{"instead": true}')), 'completed 3: skip>completed/skipped', 'CC-011 t2 is skipped before it is scheduled');
SELECT is(pg_temp.words('t1', 't2', 't3'), 'SCHEDULED SKIPPED -', 'CC-011 SKIPPED; t3 still waits for t1');
SELECT is(tq.result(pg_temp.id('t2')), '{"instead": true}', 'CC-011 with an output');
SELECT pg_temp.work('t1', 'completed');
SELECT is(pg_temp.words('t1', 't2', 't3'), 'COMPLETED SKIPPED SCHEDULED', 'CC-011 after t1, t3 is scheduled, t2 never');
SELECT is(pg_temp.claims('test/q-t2'), '', 'CC-011 t2 cannot be polled');
SELECT pg_temp.work('t3', 'completed');
SELECT is(pg_temp.outcome(), 'completed', 'CC-011 the workflow is COMPLETED');
ROLLBACK TO cc;
SELECT pg_temp.start('t1');
SELECT pg_temp.start('t2', '{}', '{}', '{"$deps": ["t1"]}');
SELECT pg_temp.start('t3', '{}', '{}', '{"$deps": ["t2"]}');
SELECT tq.skip_task(pg_temp.id('t2')) IS NULL;
SELECT is(pg_temp.words('t1', 't2', 't3'), 'SCHEDULED SKIPPED SCHEDULED', 'CC-011 tq: a task that requires t2 alone is released at once');
ROLLBACK TO cc;
SELECT pg_temp.start('t1');
SELECT pg_temp.start('t2', '{}', '{}', '{"$deps": ["t1"]}');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('t1'))), 'completed 3: scheduled>completed/skipped', 'CC-011 tq: a SCHEDULED task can be skipped as well (13.2)');
SELECT is(pg_temp.words('t1', 't2') || pg_temp.claims('test/q-t1'), 'SKIPPED SCHEDULED', 'CC-011 it is SKIPPED, and cannot be polled');
ROLLBACK TO cc;
SELECT pg_temp.start('t1', '{}', '{"startDelay": 600}');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('t1'))), 'completed 3: scheduled>completed/skipped', 'CC-011 also while it is delayed');
SELECT is(pg_temp.at(pg_temp.clock() + interval '20 minutes') || pg_temp.claims('test/q-t1'), '', 'CC-011 it does not become pending');
ROLLBACK TO cc;
SELECT pg_temp.polled('t1');
SELECT pg_temp.throws($$SELECT tq.skip_task(pg_temp.id('t1'))$$, 'TQ409', 'CC-011 an IN_PROGRESS task cannot be skipped');
SELECT pg_temp.callback('t1', '9 s');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('t1'))), 'completed 3: scheduled>completed/skipped', 'CC-011 but between callbacks');
SELECT is(pg_temp.at(pg_temp.clock() + interval '20 s') || pg_temp.claims('test/q-t1'), '', 'CC-011 it is not called back');
ROLLBACK TO cc;

-- FAILED --> SCHEDULED: retry (after delay)
SELECT pg_temp.polled('a', '{"retryCount": 1, "retryDelaySeconds": 5}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.wait('a'), 5.0, 'CC-012 after a failure the new run is visible 5 s later');
SELECT is(pg_temp.claims('test/q-a'), '', 'CC-012 a poll before the delay returns nothing');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 1, 'wg', 'w1')$$, 'TQ409', 'CC-012 nor can the run be claimed by name');
SELECT is(pg_temp.before(pg_temp.time('a'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-a')$$), '', 'CC-012 just before it, neither');
SELECT is(pg_temp.at(pg_temp.time('a')), 'delayed 1', 'CC-012 after the delay');
SELECT is(pg_temp.take('a', 'w2'), 1, 'CC-012 a poll returns the new run');
SELECT is(pg_temp.look('a'), 'running 0: scheduled>failed/failed failure-retry>running', 'CC-012 the old one stays FAILED');
ROLLBACK TO cc;

-- TIMED_OUT --> SCHEDULED: retry (after delay)
SELECT pg_temp.start('p', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 1, "retryDelaySeconds": 5}');
SELECT pg_temp.polled('t', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 1, "retryDelaySeconds": 5}');
SELECT pg_temp.polled('r', '{"responseTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 1, "retryDelaySeconds": 5}');
SELECT is(pg_temp.at(pg_temp.time('r', 'takenUntil')), 'run-timeout 1 pending-timeout 1 claim-expired 1', 'CC-013 three tasks time out');
SELECT is(pg_temp.wait(n) || pg_temp.claims('test/q-' || n), '5', 'CC-013 a new run is visible 5 s later, and not before: ' || n) FROM unnest('{p,t,r}'::text[]) AS n;
SELECT is(pg_temp.before(pg_temp.time('t'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-t')$$), '', 'CC-013 just before it, neither');
SELECT is(pg_temp.at(pg_temp.time('r')), 'delayed 3', 'CC-013 after the delay');
SELECT is(pg_temp.claims('test/q-' || n) || ' ' || pg_temp.words(n), n || ' IN_PROGRESS', 'CC-013 a poll returns it: ' || n) FROM unnest('{p,t,r}'::text[]) AS n;
ROLLBACK TO cc;

-- COMPLETED --> [*]
SELECT pg_temp.polled('a');
SELECT tq.report_completed(pg_temp.id('a'), 0, result => '1') IS NULL;
SELECT pg_temp.is_final('a', 'CC-014 COMPLETED');
SELECT is(pg_temp.update('a', 'completed'), 'repeated', 'CC-014 the same update again returns repeated');
SELECT pg_temp.keeps($$SELECT tq.report_completed(pg_temp.id('a'), 0, result => '2')$$, 'a', 'CC-014 and the same status');
SELECT is(tq.result(pg_temp.id('a')), '1', 'CC-014 its output is the first');
ROLLBACK TO cc;

-- FAILED --> [*]: retries exhausted
SELECT pg_temp.start('a', '{"retryCount": 1, "retryDelaySeconds": 5}');
SELECT is(pg_temp.failing('a', 5), '5 FAILED', 'CC-015 two attempts fail, with a retry between them');
SELECT is(pg_temp.look('a'), 'failed 0: scheduled>failed/failed failure-retry>failed/failed', 'CC-015 two runs, both FAILED');
SELECT is(pg_temp.outcome(), 'failed', 'CC-015 the workflow is FAILED');
SELECT pg_temp.is_final('a', 'CC-015 FAILED');
SELECT is(pg_temp.update('a', 'completed', 0) || ' ' || pg_temp.update('a', 'completed', 1), 'conflict conflict', 'CC-015 neither run can be completed');
ROLLBACK TO cc;

-- FAILED_WITH_TERMINAL_ERROR --> [*]
SELECT pg_temp.polled('a');
SELECT pg_temp.update('a', 'failed-terminal');
SELECT pg_temp.is_final('a', 'CC-016 FAILED_WITH_TERMINAL_ERROR');
ROLLBACK TO cc;

-- TIMED_OUT --> [*]: retries exhausted
SELECT pg_temp.start('p', '{"retryCount": 1, "retryDelaySeconds": 5, "timeoutPolicy": "RETRY", "pollTimeoutSeconds": 60}');
SELECT pg_temp.at(pg_temp.time('p') + interval '60 s');
SELECT pg_temp.at(pg_temp.time('p') + interval '60 s');
SELECT is(pg_temp.look('p'), 'exception 0: scheduled>exception/pending-timeout retry>exception/pending-timeout', 'CC-017 both attempts were not polled');
SELECT is(pg_temp.words('p') || ' ' || pg_temp.outcome(), 'TIMED_OUT timed-out', 'CC-017 TIMED_OUT, and the workflow too');
SELECT pg_temp.is_final('p', 'CC-017 TIMED_OUT (poll)');
ROLLBACK TO cc;
SELECT pg_temp.polled('t', '{"retryCount": 1, "retryDelaySeconds": 5, "timeoutPolicy": "RETRY", "timeoutSeconds": 30, "responseTimeoutSeconds": 30}');
SELECT pg_temp.at(pg_temp.time('t', 'started') + interval '30 s');
SELECT pg_temp.at(pg_temp.time('t'));
SELECT pg_temp.take('t', 'w2');
SELECT is(pg_temp.before(pg_temp.time('t', 'started') + interval '30 s'), '', 'CC-017 the second attempt has 30 s of its own');
SELECT is(pg_temp.at(pg_temp.time('t', 'started') + interval '30 s'), 'run-timeout 1', 'CC-017 and no more');
SELECT is(pg_temp.look('t'), 'exception 0: scheduled>exception/run-timeout retry>exception/run-timeout', 'CC-017 both attempts took too long');
SELECT is(pg_temp.words('t') || ' ' || pg_temp.outcome(), 'TIMED_OUT timed-out', 'CC-017 TIMED_OUT, and the workflow too');
SELECT pg_temp.is_final('t', 'CC-017 TIMED_OUT (task)');
ROLLBACK TO cc;
SELECT pg_temp.polled('r', '{"retryCount": 1, "retryDelaySeconds": 5, "responseTimeoutSeconds": 30}');
SELECT pg_temp.at(pg_temp.time('r', 'started') + interval '30 s');
SELECT pg_temp.at(pg_temp.time('r'));
SELECT pg_temp.take('r', 'w2');
SELECT pg_temp.at(pg_temp.time('r', 'started') + interval '30 s');
SELECT is(pg_temp.look('r'), 'exception 0: scheduled>exception/claim-expired retry>exception/claim-expired', 'CC-017 both workers did not respond');
SELECT is(pg_temp.words('r') || ' ' || pg_temp.outcome(), 'TIMED_OUT timed-out', 'CC-017 TIMED_OUT, and the workflow too');
SELECT pg_temp.is_final('r', 'CC-017 TIMED_OUT (response)');
ROLLBACK TO cc;

-- CANCELED --> [*]
SELECT pg_temp.polled('a');
SELECT pg_temp.terminate();
SELECT is(pg_temp.words('a'), 'CANCELED', 'CC-018 CANCELED');
SELECT pg_temp.is_final('a', 'CC-018 CANCELED');
ROLLBACK TO cc;

-- SKIPPED --> [*]
SELECT pg_temp.start('a');
SELECT tq.skip_task(pg_temp.id('a'), '1') IS NULL;
SELECT is(pg_temp.words('a'), 'SKIPPED', 'CC-019 SKIPPED');
SELECT pg_temp.is_final('a', 'CC-019 SKIPPED');
SELECT is(tq.skip_task(pg_temp.id('a'), '2'), tq.status(pg_temp.id('a')), 'CC-019 skipped again: it is answered as before');
SELECT is(tq.result(pg_temp.id('a')), '1', 'CC-019 its output is the first');
ROLLBACK TO cc;

-- COMPLETED_WITH_ERRORS --> [*]
SELECT pg_temp.polled('a', '{"retryCount": 0}', '{"optional": true}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a') || ' ' || pg_temp.outcome(), 'COMPLETED_WITH_ERRORS completed-with-errors', 'CC-020 COMPLETED_WITH_ERRORS is a success to the workflow');
SELECT pg_temp.is_final('a', 'CC-020 COMPLETED_WITH_ERRORS');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- The table of statuses
-- ---------------------------------------------------------------------------

SELECT pg_temp.start('sched');
SELECT pg_temp.start('delayed', '{}', '{"startDelay": 10}');
SELECT pg_temp.polled('back');
SELECT pg_temp.callback('back', '9 s');
SELECT pg_temp.polled('prog');
SELECT pg_temp.polled(n, '{"retryCount": 0}', '{"permissive": true}') FROM unnest('{comp,fail,term,shut,canw}'::text[]) AS n;
SELECT pg_temp.polled('opt', '{"retryCount": 0}', '{"optional": true}');
SELECT pg_temp.start('canc');
SELECT pg_temp.start('skip');
SELECT pg_temp.start('wait', '{}', '{}', '{"$deps": ["prog"]}');
SELECT pg_temp.start('poll', '{"pollTimeoutSeconds": 1, "retryCount": 0, "timeoutPolicy": "RETRY"}', '{"permissive": true}');
SELECT pg_temp.report('comp', 'completed');
SELECT pg_temp.report(n, 'failed') FROM unnest('{fail,opt}'::text[]) AS n;
SELECT pg_temp.update('term', 'failed-terminal');
SELECT pg_temp.update('canw', 'canceled');
SELECT pg_temp.report('shut', 'internal-error');
SELECT pg_temp.report('canc', 'canceled');
SELECT tq.skip_task(pg_temp.id('skip')) IS NULL;
SELECT pg_temp.at(pg_temp.time('poll') + interval '1 s');
SELECT is(pg_temp.words(n), word, 'statuses: ' || coalesce(word, '-') || ': ' || description) FROM (VALUES
	('sched', 'SCHEDULED', 'queued and waiting for a worker'),
	('delayed', 'SCHEDULED', 'and so while it is delayed'),
	('back', 'SCHEDULED', 'and between callbacks'),
	('prog', 'IN_PROGRESS', 'a worker has picked it up'),
	('comp', 'COMPLETED', 'completed'),
	('fail', 'FAILED', 'failed, with no retries left'),
	('shut', 'FAILED', 'tq: an exception that Conductor does not know'),
	('term', 'FAILED_WITH_TERMINAL_ERROR', 'failed with an error that is not retried'),
	('poll', 'TIMED_OUT', 'timed out, with no retries left'),
	('canc', 'CANCELED', 'canceled'),
	('canw', 'CANCELED', 'canceled by its worker'),
	('skip', 'SKIPPED', 'skipped'),
	('opt', 'COMPLETED_WITH_ERRORS', 'failed, but optional'),
	('wait', '-', 'Conductor has no row for a task that waits for another')) AS v (n, word, description);
SELECT throws_ok($$SELECT tq.conductor_status(pg_temp.id('nobody'))$$, 'TQ404', NULL, 'statuses: no such task');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- The table of retry parameters
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.waits(def, 9), waits, 'retry parameters: ' || description) FROM (VALUES
	('{"retryCount": 0, "retryDelaySeconds": 5}'::jsonb, 'FAILED', 'retryCount 0 retries nothing'),
	('{"retryCount": 1, "retryDelaySeconds": 5}', '5 FAILED', 'retryCount 1 is two attempts'),
	('{"retryCount": 4, "retryDelaySeconds": 5}', '5 5 5 5 FAILED', 'retryCount 4 is five'),
	('{"retryDelaySeconds": 5}', '5 5 5 FAILED', 'retryCount is 3 by default'),
	('{"retryCount": 2}', '60 60 FAILED', 'retryDelaySeconds is 60 by default, retryLogic FIXED'),
	('{"retryCount": 2, "retryDelaySeconds": 7}', '7 7 FAILED', 'retryDelaySeconds'),
	('{"retryCount": 3, "retryDelaySeconds": 7, "retryLogic": "FIXED"}', '7 7 7 FAILED', 'retryLogic FIXED: a constant delay'),
	('{"retryCount": 4, "retryDelaySeconds": 7, "retryLogic": "EXPONENTIAL_BACKOFF"}', '7 14 28 56 FAILED', 'retryLogic EXPONENTIAL_BACKOFF: the delay is the base'),
	('{"retryCount": 4, "retryDelaySeconds": 7, "retryLogic": "LINEAR_BACKOFF"}', '7 14 21 28 FAILED', 'retryLogic LINEAR_BACKOFF')) AS v (def, waits, description);
ROLLBACK TO cc;
SELECT is(pg_temp.start('a', '{"retryCount": 7}', '{"retryCount": 1}'), 'pending 1: scheduled>pending', 'retry parameters: the retryCount of the use in a workflow takes precedence');
SELECT is(pg_temp.start('b', '{"retryCount": 7}', '{"retryCount": 0}'), 'pending 0: scheduled>pending', 'retry parameters: also when it is 0');
SELECT is(pg_temp.start('c', '{"retryCount": 7}', '{"retryCount": null}'), 'pending 7: scheduled>pending', 'retry parameters: not when it is null');
SELECT is((tq.task(pg_temp.id('b')) ->> 'retries'), '0', 'retry parameters: and it is what the definition shows');
SELECT is(pg_temp.line(tq.create_task(pg_temp.id('d'), pg_temp.def('d', '{"retries": 9}') || jsonb_build_object('policy', tq.conductor_policy('{"retryCount": 2}')))),
	'pending 2: scheduled>pending', 'retry parameters: the policy''s takes precedence over the definition''s');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- The table of timeout parameters
-- ---------------------------------------------------------------------------

-- without any; with a worker that responds regularly
SELECT pg_temp.start('p');
SELECT pg_temp.polled('t');
SELECT is(pg_temp.time('t', 'takenUntil') - pg_temp.time('t', 'started'), interval '1 hour', 'timeout parameters: responseTimeoutSeconds is an hour where none is given (13.1, doc/spec/policy.md 9)');
SELECT is(pg_temp.before(pg_temp.time('t', 'takenUntil')), '', 'timeout parameters: without any nothing happens for an hour');
SELECT tq.reclaim_task(pg_temp.id('t'), 0) IS NULL;
SELECT is(pg_temp.before(pg_temp.time('t', 'takenUntil')), '', 'timeout parameters: nor in the second, if the worker responds');
SELECT is(pg_temp.words('p', 't'), 'SCHEDULED IN_PROGRESS', 'timeout parameters: pollTimeoutSeconds and timeoutSeconds are off by default');
SELECT is(pg_temp.at(pg_temp.time('t', 'takenUntil')), 'claim-expired 1', 'timeout parameters: only the response timeout is there');
ROLLBACK TO cc;

-- 0 is off, too, but for responseTimeoutSeconds, which null switches off
SELECT pg_temp.start('p', '{"pollTimeoutSeconds": 0, "timeoutSeconds": 0, "totalTimeoutSeconds": 0, "responseTimeoutSeconds": null}');
SELECT pg_temp.polled('t', '{"pollTimeoutSeconds": 0, "timeoutSeconds": 0, "totalTimeoutSeconds": 0}');
SELECT is(pg_temp.before(pg_temp.time('t', 'takenUntil')), '', 'timeout parameters: 0 is off');
SELECT is(pg_temp.words('p', 't'), 'SCHEDULED IN_PROGRESS', 'timeout parameters: nothing has changed');
SELECT pg_temp.take('p');
SELECT is(pg_temp.time('p', 'takenUntil') - pg_temp.time('p', 'started'), interval '20 minutes', 'timeout parameters: tq: without a response timeout, that of the queue is left (doc/spec/policy.md 10.1)');
ROLLBACK TO cc;

-- each, with its policy, which is TIME_OUT_WF by default
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 40}');
SELECT pg_temp.start('b', '{}', '{}', '{"$deps": ["a"]}');
SELECT is(pg_temp.before(pg_temp.time('a') + interval '40 s'), '', 'timeout parameters: pollTimeoutSeconds: not before');
SELECT pg_temp.at(pg_temp.time('a') + interval '40 s');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'TIMED_OUT CANCELED timed-out', 'timeout parameters: timeoutPolicy is TIME_OUT_WF by default');
SELECT is(pg_temp.look('a'), 'exception 3: scheduled>exception/pending-timeout', 'timeout parameters: without a retry');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 40}');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '40 s'), '', 'timeout parameters: responseTimeoutSeconds: not before');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '40 s'), 'claim-expired 1', 'timeout parameters: but then');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 40, "timeoutSeconds": 50}');
SELECT pg_temp.before(pg_temp.time('a', 'started') + interval '40 s');
SELECT tq.reclaim_task(pg_temp.id('a'), 0) IS NULL;
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '50 s'), '', 'timeout parameters: timeoutSeconds: not before');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '50 s'), 'run-timeout 1', 'timeout parameters: but then, although the worker responds');
SELECT is(pg_temp.look('a'), 'exception 3: scheduled>exception/run-timeout', 'timeout parameters: TIME_OUT_WF, without a retry');
ROLLBACK TO cc;
SELECT pg_temp.start(n, d::jsonb) FROM (VALUES
	('retry', '{"pollTimeoutSeconds": 40, "timeoutPolicy": "RETRY"}'),
	('alert', '{"pollTimeoutSeconds": 40, "timeoutPolicy": "ALERT_ONLY"}')) AS v (n, d);
SELECT pg_temp.at(pg_temp.time('alert') + interval '40 s');
SELECT is(pg_temp.look(n), line, 'timeout parameters: timeoutPolicy ' || upper(n)) FROM (VALUES
	('retry', 'pending 2: scheduled>exception/pending-timeout retry>pending'),
	('alert', 'pending 3: scheduled>pending')) AS v (n, line);
SELECT is(pg_temp.outcome(), 'active', 'timeout parameters: neither ends the workflow');

SELECT * FROM finish();
ROLLBACK;
