-- The messages of the life-cycle of a Conductor task: those of the four
-- sequence diagrams, of optional tasks, skips and workflows that end, and one
-- task-alert for each timeout under ALERT_ONLY (CC-027, CC-033, CC-039).
-- Written as in messages.psql: 'PEND t1 pending 1._._'.
\ir messages.psql
\ir conductor.psql

-- The clock advances by hours between a message and its reading.
SET tq.message_retention = '1d';

-- Each case is a workflow of its own.
INSERT INTO known SELECT 'wf' || n FROM generate_series(1, 30) AS n;
CREATE FUNCTION pg_temp.wf(n int) RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('$group', 'wf' || n)
$$;

-- ---------------------------------------------------------------------------
-- The sequence diagrams
-- ---------------------------------------------------------------------------

SELECT pg_temp.forget();
SELECT pg_temp.polled('q1', '{"retryDelaySeconds": 600}', '{}', pg_temp.wf(1));
SELECT is(pg_temp.sent(), 'DEF q1 unscheduled _._._, PEND q1 pending 0._._, RUN q1 running 0.wg.w1', 'Q1 polled');
SELECT pg_temp.report('q1', 'failed');
SELECT is(pg_temp.sent(), 'PEND q1 pending 1._._', 'Q1 FAILED: a message of the new run only');
SELECT is(pg_temp.at(pg_temp.time('q1')), 'delayed 1', 'Q1 the delay is over');
SELECT is(pg_temp.sent(), '', 'Q1 which sends nothing');
SELECT pg_temp.take('q1', 'w2');
SELECT is(pg_temp.sent(), 'RUN q1 running 1.wg.w2', 'Q1 polled again');
SELECT pg_temp.report('q1', 'completed');
SELECT is(pg_temp.sent(), 'COMP q1 completed 1.wg.w2, GROUP wf1', 'Q1 COMPLETED, and so is the workflow');
RESET tq.clock_offset;

SELECT pg_temp.start('q2', '{"pollTimeoutSeconds": 600, "timeoutPolicy": "RETRY", "retryCount": 1}', '{}', pg_temp.wf(2));
SELECT pg_temp.forget();
SELECT pg_temp.at(pg_temp.time('q2') + interval '600 s');
SELECT is(pg_temp.sent(), 'PEND q2 pending 1._._', 'Q2 TIMED_OUT: a message of the new run only');
SELECT pg_temp.at(pg_temp.time('q2') + interval '600 s');
SELECT is(pg_temp.sent(), 'EXC q2 exception 1._._, GROUP wf2', 'Q2 TIMED_OUT finally: of no worker; the workflow has ended');
RESET tq.clock_offset;

SELECT pg_temp.polled('q3', '{"responseTimeoutSeconds": 600, "retryCount": 1, "retryDelaySeconds": 0}', '{}', pg_temp.wf(3));
SELECT pg_temp.forget();
SELECT pg_temp.at(pg_temp.time('q3', 'takenUntil'));
SELECT is(pg_temp.sent(), 'PEND q3 pending 1._._', 'Q3 TIMED_OUT: a message of the new run only');
SELECT pg_temp.take('q3', 'w2');
SELECT pg_temp.at(pg_temp.time('q3', 'takenUntil'));
SELECT is(pg_temp.sent(), 'RUN q3 running 1.wg.w2, EXC q3 exception 1.wg.w2, GROUP wf3', 'Q3 TIMED_OUT finally: of that worker');
RESET tq.clock_offset;

SELECT pg_temp.polled('q4', '{"timeoutSeconds": 1800, "timeoutPolicy": "RETRY", "retryCount": 0}', '{}', pg_temp.wf(4));
SELECT pg_temp.forget();
SELECT pg_temp.callback('q4', '9 minutes');
SELECT is(pg_temp.sent(), 'PEND q4 pending 0._._', 'Q4 a callback: the same run is pending');
SELECT is(pg_temp.at(pg_temp.time('q4')), 'delayed 1', 'Q4 it is due');
SELECT is(pg_temp.sent(), '', 'Q4 which sends nothing');
SELECT pg_temp.take('q4', 'w2');
SELECT is(pg_temp.sent(), 'RUN q4 running 0.wg.w2', 'Q4 polled again: the same run, another worker');
SELECT pg_temp.at(pg_temp.time('q4', 'started') + interval '1800 s');
SELECT is(pg_temp.sent(), 'EXC q4 exception 0.wg.w2, GROUP wf4', 'Q4 TIMED_OUT');
SELECT is(pg_temp.update('q4', 'completed', 0), 'conflict', 'Q4 COMPLETED, too late');
SELECT is(pg_temp.sent(), '', 'Q4 sends nothing');
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- Other arrows
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('o1', '{"retryCount": 0}', '{"optional": true}', pg_temp.wf(5));
SELECT pg_temp.start('o2', '{}', '{}', '{"$deps": ["o1"]}' || pg_temp.wf(5));
SELECT pg_temp.forget();
SELECT pg_temp.report('o1', 'failed');
SELECT is(pg_temp.sent(), 'FAIL o1 failed 0.wg.w1, PEND o2 pending 0._._', 'CC-010 COMPLETED_WITH_ERRORS is a failure to listeners, and the next is pending');
SELECT lives_ok($$SELECT tq.skip_task(pg_temp.id('o2'))$$, 'CC-011 the next is skipped');
SELECT is(pg_temp.sent(), 'COMP o2 completed 0.tq.skipped, GROUP wf5', 'CC-011 which sends task-completed, without a real worker (doc/spec/policy.md 10.9)');

SELECT pg_temp.start('s1', '{}', '{}', pg_temp.wf(6));
SELECT pg_temp.start('s2', '{}', '{}', '{"$deps": ["s1"]}' || pg_temp.wf(6));
SELECT pg_temp.forget();
SELECT lives_ok($$SELECT tq.skip_task(pg_temp.id('s2'))$$, 'CC-011 an unscheduled task is skipped');
SELECT is(pg_temp.sent(), 'COMP s2 completed 0.tq.skipped', 'CC-011 sends the same, and no task-pending');

SELECT pg_temp.polled('f1', '{}', '{}', pg_temp.wf(7));
SELECT pg_temp.forget();
SELECT is(pg_temp.update('f1', 'failed-terminal'), 'resolved', 'CC-007 FAILED_WITH_TERMINAL_ERROR');
SELECT is(pg_temp.sent(), 'FAIL f1 failed 0.wg.w1, GROUP wf7', 'CC-007 is a failure');

-- a workflow that ends: first the task that has ended it, then the others; the group once
SELECT pg_temp.polled('c1', '{"retryCount": 0}', '{}', pg_temp.wf(8));
SELECT pg_temp.polled('c2', '{}', '{}', pg_temp.wf(8));
SELECT pg_temp.start('c3', '{}', '{}', '{"$deps": ["c1"]}' || pg_temp.wf(8));
SELECT pg_temp.forget();
SELECT pg_temp.report('c1', 'failed');
SELECT is(pg_temp.sent(), 'FAIL c1 failed 0.wg.w1, EXC c2 exception 0.wg.w1, EXC c3 exception 0._._, GROUP wf8', 't13 a failure ends the workflow: a message of each, and one of the workflow');
SELECT pg_temp.polled('d1', '{"timeoutSeconds": 1800, "responseTimeoutSeconds": 1800}', '{}', pg_temp.wf(9));
SELECT pg_temp.start('d2', '{}', '{}', pg_temp.wf(9));
SELECT pg_temp.forget();
SELECT pg_temp.at(pg_temp.time('d1', 'takenUntil'));
SELECT is(pg_temp.sent(), 'EXC d1 exception 0.wg.w1, EXC d2 exception 0._._, GROUP wf9', 'CC-028 TIME_OUT_WF, likewise');
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- ALERT_ONLY
-- ---------------------------------------------------------------------------

-- Passes, one after another, from that time on, each in its transaction.
CREATE PROCEDURE pg_temp.passes(t timestamptz, n int)
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM pg_temp.at(t + (i - 1) * interval '7 seconds');
		COMMIT;
	END LOOP;
END
$$;

-- the task timeout: a worker that responds regularly
SELECT pg_temp.polled('run', '{"timeoutSeconds": 1800, "responseTimeoutSeconds": 1800, "timeoutPolicy": "ALERT_ONLY", "retryDelaySeconds": 0}', '{}', pg_temp.wf(10));
SELECT pg_temp.go(pg_temp.time('run', 'started') + interval '1790 s');
SELECT tq.reclaim_task(pg_temp.id('run'), 0) IS NULL;
SELECT pg_temp.forget();
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('run')) AS status;
SELECT is(pg_temp.before(pg_temp.time('run', 'started') + interval '1800 s'), '', 'CC-027 just before timeoutSeconds, nothing');
CALL pg_temp.passes(pg_temp.time('run', 'started') + interval '1800 s', 9);
CREATE TEMP TABLE news OF tq.exchange_message;
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is(string_agg(pg_temp.notified(n), ', '), 'task-alert run running 0.wg.w1', 'CC-027 one task-alert, after nine passes') FROM news AS n;
SELECT is(tq.status(pg_temp.id('run')), status, 'CC-027 nothing has changed') FROM before;
SELECT is(payload -> 'status', status, 'CC-027 it has the status of the task') FROM news, before;
SELECT is(payload ->> 'timeout', 'run-timeout', 'CC-027 it names the timeout') FROM news;
SELECT is(routing_key, format('primary.%s.0.wg.w1.test.q-run.-.%s._', pg_temp.id('run'), pg_temp.id('wf10')), 'CC-027 its routing key is that of a task-exception') FROM news;
SELECT is(tq.reclaim_task(pg_temp.id('run'), 0) IS NULL, false, 'CC-027 the worker can continue');
CALL pg_temp.passes(pg_temp.time('run', 'started') + interval '1900 s', 2);
SELECT pg_temp.callback('run', '2 minutes');
CALL pg_temp.passes(pg_temp.time('run') - interval '1 minute', 2);
SELECT pg_temp.at(pg_temp.time('run'));
SELECT pg_temp.take('run', 'w2');
CALL pg_temp.passes(pg_temp.time('run') + interval '1 minute', 2);
SELECT is(pg_temp.sent(), 'PEND run pending 0._._, RUN run running 0.wg.w2', 'CC-027 a callback is not a new run: it sends a message, but no second task-alert');
SELECT pg_temp.report('run', 'failed');
SELECT pg_temp.take('run', 'w3');
SELECT pg_temp.go(pg_temp.time('run', 'started') + interval '1790 s');
SELECT tq.reclaim_task(pg_temp.id('run'), 1) IS NULL;
CALL pg_temp.passes(pg_temp.time('run', 'started') + interval '1800 s', 3);
SELECT is(pg_temp.sent(), 'PEND run pending 1._._, RUN run running 1.wg.w3, task-alert run running 1.wg.w3', 'CC-027 a new run that is late has its own');

-- all keys of a task-exception, and the timeout
SELECT pg_temp.cancel('run');
SELECT is(pg_temp.keys(n.payload), replace(pg_temp.keys(m.payload), 'task version', 'task timeout version'), 'CC-027 a task-alert has the keys of a task-exception') FROM news AS n, pg_temp.news() AS m WHERE m.exchange = 'task-exception';
SELECT is(pg_temp.keys(payload - 'timeout'), 'runId status task version workerGroup workerId', 'CC-027 which are these') FROM news;
RESET tq.clock_offset;

-- the poll timeout
SELECT pg_temp.start('poll', '{"pollTimeoutSeconds": 1800, "timeoutPolicy": "ALERT_ONLY", "retryDelaySeconds": 600}', '{}', pg_temp.wf(11));
SELECT pg_temp.forget();
TRUNCATE before, news;
INSERT INTO before SELECT tq.status(pg_temp.id('poll'));
SELECT is(pg_temp.before(pg_temp.time('poll') + interval '1800 s'), '', 'CC-033 just before pollTimeoutSeconds, nothing');
CALL pg_temp.passes(pg_temp.time('poll') + interval '1800 s', 9);
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is(string_agg(pg_temp.notified(n), ', '), 'task-alert poll pending 0._._', 'CC-033 one task-alert, after nine passes') FROM news AS n;
SELECT is(payload ->> 'timeout', 'pending-timeout', 'CC-033 it names the timeout') FROM news;
SELECT is(pg_temp.keys(payload - 'timeout'), 'runId status task version', 'CC-033 the keys of a task-exception without a worker') FROM news;
SELECT is(tq.status(pg_temp.id('poll')), status, 'CC-033 nothing has changed') FROM before;
SELECT is(pg_temp.take('poll'), 0, 'CC-033 it can be polled');
CALL pg_temp.passes(pg_temp.time('poll', 'started') + interval '1 minute', 2);
SELECT pg_temp.report('poll', 'failed');
CALL pg_temp.passes(pg_temp.time('poll') + interval '1790 s', 1);
SELECT is(pg_temp.sent(), 'RUN poll running 0.wg.w1, PEND poll pending 1._._', 'CC-033 the retry has its own time, from when it is visible');
CALL pg_temp.passes(pg_temp.time('poll') + interval '1800 s', 3);
SELECT is(pg_temp.sent(), 'task-alert poll pending 1._._', 'CC-033 and its own task-alert');
RESET tq.clock_offset;

-- the total timeout
SELECT pg_temp.polled('total', '{"totalTimeoutSeconds": 1800, "timeoutPolicy": "ALERT_ONLY", "retryDelaySeconds": 0}', '{}', pg_temp.wf(12));
SELECT pg_temp.forget();
TRUNCATE before, news;
INSERT INTO before SELECT tq.status(pg_temp.id('total'));
SELECT is(pg_temp.before(pg_temp.time('total', 'scheduled') + interval '1800 s'), '', 'CC-039 just before totalTimeoutSeconds, nothing');
CALL pg_temp.passes(pg_temp.time('total', 'scheduled') + interval '1800 s', 9);
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is(string_agg(pg_temp.notified(n), ', '), 'task-alert total running 0.wg.w1', 'CC-039 one task-alert, after nine passes') FROM news AS n;
SELECT is(payload ->> 'timeout', 'total-timeout', 'CC-039 it names the timeout') FROM news;
SELECT is(tq.status(pg_temp.id('total')), status, 'CC-039 nothing has changed') FROM before;
SELECT is(pg_temp.report('total', 'completed'), 'completed 3: scheduled>completed/completed', 'CC-039 it can be completed');
CALL pg_temp.passes(pg_temp.time('total', 'resolved') + interval '1 minute', 2);
SELECT is(pg_temp.sent(), 'COMP total completed 0.wg.w1, GROUP wf12', 'CC-039 and no more is sent');
RESET tq.clock_offset;

-- resolved tasks send no alert
SELECT pg_temp.polled('over', '{"timeoutSeconds": 1800, "pollTimeoutSeconds": 1800, "totalTimeoutSeconds": 1800, "timeoutPolicy": "ALERT_ONLY"}', '{}', pg_temp.wf(13));
SELECT pg_temp.report('over', 'completed');
SELECT pg_temp.forget();
CALL pg_temp.passes(pg_temp.clock() + interval '2 hours', 3);
SELECT is(pg_temp.sent(), '', 'CC-027 a task that is completed sends no task-alert');
RESET tq.clock_offset;

SELECT * FROM finish();
