-- Conductor's four sequence diagrams with their times (CC-021 to CC-025), and
-- its timeouts under each timeoutPolicy (CC-026 to CC-050).  Times that are
-- reached are reached exactly: nothing has happened a few milliseconds
-- before.
--
-- Each case is rolled back before the next, with its clock; not the last, because
-- finish() needs it.
BEGIN;
\ir conductor.psql
SAVEPOINT cc;

-- ---------------------------------------------------------------------------
-- Q1: failed, and retried after a delay
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('t1', '{"retryLogic": "FIXED", "retryDelaySeconds": 5, "retryCount": 3}');
SELECT pg_temp.start('t2', '{}', '{}', '{"$deps": ["t1"]}');
SELECT pg_temp.go(pg_temp.time('t1', 'started') + interval '10 s');
SELECT is(pg_temp.report('t1', 'failed'), 'pending 2: scheduled>failed/failed failure-retry>pending', 'CC-021 polled, FAILED at 10 s: that run is kept, a new one exists');
SELECT ok(pg_temp.time('t1', 'resolved', 0) - pg_temp.time('t1', 'started', 0) BETWEEN '10 s' AND '15 s', 'CC-021 it has worked for 10 s');
SELECT is(pg_temp.wait('t1'), 5.0, 'CC-021 visible at 15 s');
SELECT is(pg_temp.words('t1', 't2'), 'SCHEDULED -', 'CC-021 SCHEDULED; the next task waits');
SELECT is(pg_temp.at(pg_temp.time('t1') - interval '1 s') || pg_temp.claims('test/q-t1'), '', 'CC-021 at 14 s a poll returns nothing');
SELECT is(pg_temp.before(pg_temp.time('t1'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-t1')$$), '', 'CC-021 just before 15 s, neither');
SELECT is(pg_temp.at(pg_temp.time('t1')), 'delayed 1', 'CC-021 at 15 s');
SELECT is(pg_temp.take('t1', 'w2'), 1, 'CC-021 a poll returns the new run');
SELECT is(pg_temp.words('t1'), 'IN_PROGRESS', 'CC-021 IN_PROGRESS');
SELECT is(pg_temp.report('t1', 'completed'), 'completed 2: scheduled>failed/failed failure-retry>completed/completed', 'CC-021 COMPLETED; the old run is still FAILED');
SELECT is(pg_temp.words('t1', 't2'), 'COMPLETED SCHEDULED', 'CC-021 the next task is scheduled');
SELECT pg_temp.work('t2', 'completed');
SELECT is(pg_temp.outcome(), 'completed', 'CC-021 the workflow is COMPLETED');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Q2: no worker polls
-- ---------------------------------------------------------------------------

SELECT pg_temp.start('t1', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 1, "retryDelaySeconds": 0}');
SELECT pg_temp.start('t2', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 0}', '{}', '{"$group": "wf2"}');
SELECT is(pg_temp.at(pg_temp.time('t1') + interval '59 s'), '', 'CC-022 no poll for 59 s: no change');
SELECT is(pg_temp.before(pg_temp.time('t1') + interval '60 s'), '', 'CC-022 nor just before 60 s');
SELECT is(pg_temp.words('t1', 't2'), 'SCHEDULED SCHEDULED', 'CC-022 SCHEDULED');
SELECT is(pg_temp.at(pg_temp.time('t2') + interval '60 s'), 'pending-timeout 2', 'CC-022 at 60 s');
SELECT is(pg_temp.look('t1'), 'pending 0: scheduled>exception/pending-timeout retry>pending', 'CC-022 TIMED_OUT, and a retry if one is left');
SELECT is(pg_temp.look('t2'), 'exception 0: scheduled>exception/pending-timeout', 'CC-022 TIMED_OUT, and none if not');
SELECT ok(pg_temp.time('t2', 'resolved') >= pg_temp.time('t2') + interval '60 s', 'CC-022 its endTime is not before');
SELECT is(pg_temp.outcome() || ' ' || pg_temp.outcome('wf2'), 'active timed-out', 'CC-022 which resolves its workflow');
ROLLBACK TO cc;

-- a poll in time; and one in time for the first, but not for the retry
SELECT pg_temp.start('t1', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryDelaySeconds": 5}');
SELECT is(pg_temp.before(pg_temp.time('t1') + interval '60 s', $$SELECT pg_temp.claims('test/q-t1')$$), 't1', 'CC-022 a poll just before 60 s is in time');
SELECT is(pg_temp.at(pg_temp.time('t1') + interval '60 s'), '', 'CC-022 and nothing happens at 60 s');
SELECT pg_temp.report('t1', 'failed');
SELECT is(pg_temp.before(pg_temp.time('t1') + interval '60 s'), 'delayed 1', 'CC-022 a retry has 60 s from when it is visible');
SELECT is(pg_temp.at(pg_temp.time('t1') + interval '60 s'), 'pending-timeout 1', 'CC-022 and not more; its delay is not counted twice (doc/spec/policy.md C13)');
SELECT is(pg_temp.look('t1'), 'pending 1: scheduled>failed/failed failure-retry>exception/pending-timeout retry>pending', 'CC-022 TIMED_OUT is the retry');
ROLLBACK TO cc;

-- the time is over, but no pass has been: a poll does not return it
SELECT pg_temp.start('t1', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY"}');
SELECT pg_temp.go(pg_temp.time('t1') + interval '60 s');
SELECT is(pg_temp.claims('test/q-t1'), '', 'CC-022 tq: a poll at 60 s returns nothing, whether a pass has been or not');
SELECT is(pg_temp.pass(), 'pending-timeout 1', 'CC-022 which it then finds');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Q3: the worker crashes
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('t1', '{"responseTimeoutSeconds": 20, "retryDelaySeconds": 5}');
SELECT is(pg_temp.time('t1', 'takenUntil') - pg_temp.time('t1', 'started'), interval '20 s', 'CC-023 the worker has 20 s');
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '19 s'), '', 'CC-023 at 19 s: no change');
SELECT is(pg_temp.before(pg_temp.time('t1', 'started') + interval '20 s'), '', 'CC-023 nor just before 20 s');
SELECT is(pg_temp.words('t1'), 'IN_PROGRESS', 'CC-023 IN_PROGRESS');
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '20 s'), 'claim-expired 1', 'CC-023 at 20 s');
SELECT is(pg_temp.look('t1'), 'pending 2: scheduled>exception/claim-expired retry>pending', 'CC-023 TIMED_OUT, and a new run, which consumes a retry (13.9)');
SELECT is(pg_temp.run('t1') ->> 'attempt', '1', 'CC-023 retryCount 1');
SELECT is(pg_temp.wait('t1'), 5.0, 'CC-023 visible at 25 s');
SELECT is(pg_temp.before(pg_temp.time('t1'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-t1')$$), '', 'CC-023 not before');
SELECT is(pg_temp.at(pg_temp.time('t1')) || ', ' || pg_temp.claims('test/q-t1', worker => 'w2'), 'delayed 1, t1', 'CC-023 but then');
SELECT is(pg_temp.update('t1', 'completed', 0), 'conflict', 'CC-023 a late report of the worker is ignored');
SELECT is(pg_temp.look('t1'), 'running 2: scheduled>exception/claim-expired retry>running', 'CC-023 and does not disturb the new run');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Q4: endless callbacks
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.q4(timeout_policy text, OUT before_callback text, OUT called_back text, OUT early text, OUT visible text, OUT polled text)
LANGUAGE plpgsql AS $$
DECLARE
	first timestamptz;
BEGIN
	PERFORM pg_temp.polled('t1', jsonb_build_object('timeoutSeconds', 30, 'responseTimeoutSeconds', 30, 'timeoutPolicy', timeout_policy, 'retryDelaySeconds', 5));
	first := pg_temp.time('t1', 'started');
	FOR i IN 1 .. 3 LOOP
		before_callback := concat_ws(', ', before_callback, pg_temp.words('t1'));
		called_back := concat_ws(', ', called_back, pg_temp.callback('t1', '9 s') || ' ' || pg_temp.words('t1'));
		early := concat_ws(', ', early, pg_temp.before(pg_temp.time('t1'), 'SELECT pg_temp.pass() || pg_temp.claims(''test/q-t1'')'));
		visible := concat_ws(', ', visible, pg_temp.at(pg_temp.time('t1')));
		EXIT WHEN i = 3;
		polled := concat_ws(', ', polled, pg_temp.take('t1', 'w' || i + 1) || ' ' || (pg_temp.time('t1', 'started') - first) || ' ' || (pg_temp.run('t1') ->> 'workerId'));
	END LOOP;
END
$$;
CREATE TEMP TABLE q4 AS SELECT * FROM pg_temp.q4('RETRY');
SELECT is(called_back, 'pending 3: scheduled>pending SCHEDULED, pending 3: scheduled>pending SCHEDULED, pending 3: scheduled>pending SCHEDULED',
	'CC-024 IN_PROGRESS with a callback after 9 s: the same run is SCHEDULED again') FROM q4;
SELECT is(early, ', , ', 'CC-024 invisible for 9 s') FROM q4;
SELECT is(visible, 'delayed 1, delayed 1, delayed 1', 'CC-024 and no longer') FROM q4;
SELECT is(polled, '0 00:00:00 w2, 0 00:00:00 w3', 'CC-024 polled again, by any worker: the same run with the same startTime') FROM q4;
SELECT is(before_callback, 'IN_PROGRESS, IN_PROGRESS, IN_PROGRESS', 'CC-024 IN_PROGRESS again') FROM q4;
SELECT pg_temp.take('t1', 'w4');
SELECT ok(pg_temp.clock() BETWEEN pg_temp.time('t1', 'started') + interval '27 s' AND pg_temp.time('t1', 'started') + interval '29 s', 'CC-024 27 s have passed');
SELECT ok(pg_temp.time('t1', 'takenUntil') > pg_temp.time('t1', 'started') + interval '55 s', 'CC-024 each poll gives the worker the whole response time');
SELECT is(pg_temp.before(pg_temp.time('t1', 'started') + interval '30 s'), '', 'CC-024 just before 30 s: no change');
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '30 s'), 'run-timeout 1', 'CC-024 30 s after the first poll');
SELECT is(pg_temp.look('t1'), 'pending 2: scheduled>exception/run-timeout retry>pending', 'CC-024 TIMED_OUT, and a retry');
SELECT is(pg_temp.wait('t1'), 5.0, 'CC-024 after its delay');
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('t1')) AS status;
SELECT pg_temp.go(pg_temp.time('t1', 'started', 0) + interval '32 s');
SELECT is(pg_temp.update('t1', 'completed', 0), 'conflict', 'CC-024 COMPLETED at 32 s is ignored');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('t1'), 0)$$, 'TQ409', 'CC-024 tq: a single call is refused');
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('t1'), 0, '9 s')$$, 'TQ409', 'CC-024 so is another callback');
SELECT is(tq.status(pg_temp.id('t1')), status, 'CC-024 the old run is TIMED_OUT, the retry is as it was') FROM before;
SELECT is(pg_temp.at(pg_temp.time('t1')) || ', ' || pg_temp.claims('test/q-t1'), 'delayed 1, t1', 'CC-024 the retry is polled');
SELECT ok(pg_temp.time('t1', 'started') > pg_temp.time('t1', 'started', 0) + interval '34 s', 'CC-024 and has a startTime of its own');
SELECT is(pg_temp.before(pg_temp.time('t1', 'started') + interval '30 s'), '', 'CC-024 and 30 s of its own');
ROLLBACK TO cc;

SELECT pg_temp.polled('t1', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "RETRY"}');
SELECT pg_temp.go(pg_temp.time('t1', 'started') + interval '25 s');
SELECT pg_temp.callback('t1', '9 s');
SELECT is(pg_temp.before(pg_temp.time('t1', 'started', 0) + interval '30 s'), '', 'CC-025 between callbacks, just before 30 s');
SELECT is(pg_temp.words('t1'), 'SCHEDULED', 'CC-025 SCHEDULED');
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '30 s'), 'run-timeout 1', 'CC-025 at 30 s');
SELECT is(pg_temp.look('t1'), 'pending 2: scheduled>exception/run-timeout retry>pending', 'CC-025 TIMED_OUT all the same, and a retry');
SELECT is(pg_temp.at(pg_temp.time('t1', 'resolved', 0) + interval '20 s') || pg_temp.claims('test/q-t1'), '', 'CC-025 the callback does not make it pending');
ROLLBACK TO cc;
SELECT pg_temp.polled('t1', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "RETRY"}');
SELECT pg_temp.go(pg_temp.time('t1', 'started') + interval '15 s');
SELECT pg_temp.callback('t1', '9 s');
SELECT is(pg_temp.before(pg_temp.time('t1', 'started', 0) + interval '30 s'), 'delayed 1', 'CC-025 visible again, but not polled');
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '30 s'), 'run-timeout 1', 'CC-025 TIMED_OUT at 30 s');
SELECT is(pg_temp.look('t1') || pg_temp.claims('test/q-t1'), 'pending 2: scheduled>exception/run-timeout retry>pending', 'CC-025 and the old run cannot be polled');
ROLLBACK TO cc;

-- callbacks: a worker that has deferred the task, and other timeouts
SELECT pg_temp.polled('t1', '{"responseTimeoutSeconds": 20}');
SELECT pg_temp.callback('t1', '9 s');
SELECT is(pg_temp.time('t1') - interval '9 s' <= pg_temp.clock() AND pg_temp.time('t1') > pg_temp.clock(), true, 'callbacks: 9 s from now');
SELECT pg_temp.throws(query, 'TQ409', 'callbacks: the worker no longer has it: ' || query)
FROM unnest(ARRAY['SELECT tq.report_completed(pg_temp.id(''t1''), 0)', 'SELECT tq.reclaim_task(pg_temp.id(''t1''), 0)', 'SELECT tq.defer_task(pg_temp.id(''t1''), 0, ''9 s'')']) AS query;
SELECT is(pg_temp.before(pg_temp.time('t1')), '', 'callbacks: no pass changes it before');
SELECT is(pg_temp.at(pg_temp.clock() + interval '30 s'), 'delayed 1', 'callbacks: the response time does not run meanwhile (CC-038)');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 hours'), '', 'callbacks: nor until it is polled');
SELECT is(pg_temp.take('t1'), 0, 'callbacks: it is polled');
SELECT is(pg_temp.before(pg_temp.time('t1', 'takenUntil')), '', 'callbacks: the worker has time');
SELECT is(pg_temp.at(pg_temp.time('t1', 'takenUntil')), 'claim-expired 1', 'callbacks: and no more');
SELECT is(pg_temp.look('t1'), 'pending 2: scheduled>exception/claim-expired retry>pending', 'callbacks: the callbacks have consumed no retry, this has');
ROLLBACK TO cc;
SELECT pg_temp.polled('t1', '{"retryCount": 0}');
SELECT is((SELECT string_agg(pg_temp.callback('t1', '0 s') || ' ' || pg_temp.take('t1'), ', ') FROM generate_series(1, 200)),
	(SELECT string_agg('pending 0: scheduled>pending 0', ', ') FROM generate_series(1, 200)), 'callbacks: 200 of them, each at once: still run 0, although runs are limited to 50');
SELECT is(pg_temp.report('t1', 'completed'), 'completed 0: scheduled>completed/completed', 'callbacks: and it completes');
ROLLBACK TO cc;
SELECT pg_temp.polled('t1', '{"retryCount": 1, "retryDelaySeconds": 5}');
SELECT pg_temp.callback('t1', '9 s');
SELECT pg_temp.at(pg_temp.time('t1'));
SELECT pg_temp.work('t1', 'failed');
SELECT is(pg_temp.wait('t1') || ' ' || (pg_temp.run('t1') ->> 'attempt'), '5 1', 'callbacks: a failure after one has the delay of a first failure');
ROLLBACK TO cc;

-- extendLease is reclaim_task (13.11)
SELECT pg_temp.polled('t1', '{"responseTimeoutSeconds": 20, "timeoutSeconds": 100}');
SELECT pg_temp.go(pg_temp.time('t1', 'started') + interval '15 s');
SELECT is(taken_until - pg_temp.clock() BETWEEN '19 s' AND '20 s', true, 'extendLease: the worker has 20 s from now') FROM tq.reclaim_task(pg_temp.id('t1'), 0);
SELECT is(pg_temp.at(pg_temp.time('t1', 'started') + interval '20 s'), '', 'extendLease: the first 20 s no longer count');
SELECT is(pg_temp.before(pg_temp.time('t1', 'takenUntil')), '', 'extendLease: nothing before the new ones');
SELECT is(pg_temp.at(pg_temp.time('t1', 'takenUntil')), 'claim-expired 1', 'extendLease: but then');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Task timeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a', '{"timeoutSeconds": 1, "timeoutPolicy": "RETRY"}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '2 s'), 'run-timeout 1', 'CC-026 timeoutSeconds 1, RETRY, started 2 s ago');
SELECT is(pg_temp.run('a', 0) ->> 'reasonResolved' || ' ' || pg_temp.words('a'), 'run-timeout SCHEDULED', 'CC-026 TIMED_OUT with its reason, and a retry');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "ALERT_ONLY"}');
SELECT pg_temp.go(pg_temp.time('a', 'started') + interval '50 s');
SELECT tq.reclaim_task(pg_temp.id('a'), 0) IS NULL;
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status;
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '60 s'), '', 'CC-027 ALERT_ONLY: just before, nothing');
SELECT pg_temp.at(pg_temp.time('a', 'started') + interval '60 s');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '62 s'), '', 'CC-027 at 60 s one pass sends an alert, and no second');
SELECT is(tq.status(pg_temp.id('a')), status, 'CC-027 it stays IN_PROGRESS') FROM before;
SELECT is(pg_temp.report('a', 'completed') || ' ' || pg_temp.outcome(), 'completed 3: scheduled>completed/completed completed', 'CC-027 and can be completed');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"timeoutSeconds": 1, "timeoutPolicy": "TIME_OUT_WF"}');
SELECT pg_temp.polled('b');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '1 s'), '', 'CC-028 TIME_OUT_WF: just before, nothing');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '2 s'), 'run-timeout 1', 'CC-028 then it times out');
SELECT is(pg_temp.look('a'), 'exception 3: scheduled>exception/run-timeout', 'CC-028 TIMED_OUT with its reason, and no retry');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'TIMED_OUT CANCELED timed-out', 'CC-028 the workflow is TIMED_OUT, the other task CANCELED');
ROLLBACK TO cc;

SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"$deadline": "1 day"}')) IS NULL;
SELECT pg_temp.take('a');
SELECT is(pg_temp.before(pg_temp.time('a', 'takenUntil')), '', 'CC-029 without a definition there are no timeouts');
SELECT is(pg_temp.at(pg_temp.time('a', 'takenUntil')) || ' ' || pg_temp.look('a'), 'claim-expired 1 pending 4: scheduled>exception/claim-expired retry>pending', 'CC-029 tq: but Taskcluster''s');
ROLLBACK TO cc;

SELECT pg_temp.start('a', '{"timeoutSeconds": 1}');
SELECT is(pg_temp.at(pg_temp.clock() + interval '5 hours') || pg_temp.words('a'), 'SCHEDULED', 'CC-030 a task that was never polled is not timed out by timeoutSeconds');
SELECT pg_temp.take('a');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '1 s'), '', 'CC-030 its time begins when it is polled');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '1 s'), 'run-timeout 1', 'CC-030 and then ends');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Poll timeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 1, "timeoutPolicy": "RETRY"}');
SELECT pg_temp.go(pg_temp.time('a') + interval '2 s');
SELECT pg_temp.start('b', '{"pollTimeoutSeconds": 100, "timeoutPolicy": "RETRY"}');
SELECT is(pg_temp.pass(), 'pending-timeout 1', 'CC-031 pollTimeoutSeconds 1, scheduled 2 s ago');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.look('b'), 'pending 2: scheduled>exception/pending-timeout retry>pending, pending 3: scheduled>pending', 'CC-031 TIMED_OUT; what was scheduled now stays SCHEDULED');
ROLLBACK TO cc;

SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 1, "timeoutPolicy": "TIME_OUT_WF", "retryCount": 3}');
SELECT pg_temp.polled('b');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '1 s'), 'pending-timeout 1', 'CC-032 TIME_OUT_WF');
SELECT is(pg_temp.look('a'), 'exception 3: scheduled>exception/pending-timeout', 'CC-032 no retry, although three are left');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'TIMED_OUT CANCELED timed-out', 'CC-032 the workflow is TIMED_OUT');
ROLLBACK TO cc;

SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 1, "timeoutPolicy": "ALERT_ONLY"}');
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status;
SELECT is(pg_temp.before(pg_temp.time('a') + interval '1 s'), '', 'CC-033 ALERT_ONLY: just before, nothing');
SELECT pg_temp.at(pg_temp.time('a') + interval '1 s');
SELECT is(pg_temp.pass(), '', 'CC-033 then one pass sends an alert, and no second');
SELECT is(tq.status(pg_temp.id('a')), status, 'CC-033 it stays SCHEDULED') FROM before;
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 1::bigint, 'CC-033 it is counted');
SELECT is(pg_temp.claims('test/q-a'), 'a', 'CC-033 and can be polled');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 1, "timeoutPolicy": "ALERT_ONLY"}');
SELECT pg_temp.go(pg_temp.time('a') + interval '1 s');
SELECT is(pg_temp.claims('test/q-a') || pg_temp.pass(), 'a', 'CC-033 also before a pass; a task polled then is not late');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"pollTimeoutSeconds": 1, "timeoutPolicy": "RETRY"}');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '50 minutes') || pg_temp.words('a'), 'IN_PROGRESS', 'CC-034 an IN_PROGRESS task has no poll timeout');
SELECT pg_temp.callback('a', '9 s');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '2 hours'), 'delayed 1', 'CC-034 tq: nor has a task that was called back (doc/spec/policy.md 10.3)');
SELECT is(pg_temp.claims('test/q-a') || ' ' || pg_temp.look('a'), 'a running 3: scheduled>running', 'CC-034 it is polled again whenever that may be');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '1 s'), 'pending-timeout 1', 'CC-034 but a retry has it again');
ROLLBACK TO cc;
SELECT pg_temp.polled('first');
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY"}', '{}', '{"$deps": ["first"]}');
SELECT pg_temp.go(pg_temp.clock() + interval '10 minutes');
SELECT pg_temp.report('first', 'completed');
SELECT is(pg_temp.before(pg_temp.time('a') + interval '60 s'), '', 'CC-034 for a task that waited for another, the time begins then');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '60 s'), 'pending-timeout 1', 'CC-034 and no more');
ROLLBACK TO cc;

SELECT is(pg_temp.start('a', '{"pollTimeoutSeconds": 5, "timeoutPolicy": "RETRY"}', '{"startDelay": 10}') || ' ' || pg_temp.words('a'), 'pending 3: scheduled>pending SCHEDULED', 'CC-035 startDelay 10');
SELECT is(pg_temp.time('a') - pg_temp.time('a', 'scheduled'), interval '10 s', 'CC-035 visible at 10 s');
SELECT is(delayed || ' ' || pending, '1 0', 'CC-035 counted as delayed, not as pending') FROM tq.group_progress(pg_temp.id('wf'));
SELECT is(pg_temp.before(pg_temp.time('a'), $$SELECT pg_temp.pass() || pg_temp.claims('test/q-a')$$), '', 'CC-035 not before');
SELECT is(pg_temp.before(pg_temp.time('a') + interval '5 s'), 'delayed 1', 'CC-035 pollTimeoutSeconds 5: nothing just before 15 s');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '5 s'), 'pending-timeout 1', 'CC-035 tq: TIMED_OUT at 15 s, where Conductor counts the delay twice (25 s)');
ROLLBACK TO cc;
SELECT pg_temp.start('first');
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 5, "timeoutPolicy": "RETRY"}', '{"startDelay": 10}', '{"$deps": ["first"]}');
SELECT is(pg_temp.at(pg_temp.clock() + interval '1 minute') || pg_temp.words('a'), '-', 'CC-035 neither runs before the task is scheduled');
SELECT pg_temp.work('first', 'completed');
SELECT is(pg_temp.time('a') - pg_temp.time('a', 'scheduled'), interval '10 s', 'CC-035 startDelay counts from then');
SELECT is(pg_temp.time('a', 'scheduled') >= pg_temp.time('first', 'resolved'), true, 'CC-035 when its required task completes');
SELECT is(pg_temp.at(pg_temp.time('a')) || ', ' || pg_temp.claims('test/q-a'), 'delayed 1, a', 'CC-035 and it can be polled');
ROLLBACK TO cc;
SELECT is(pg_temp.line(tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"delay": 3}') || jsonb_build_object('policy', tq.conductor_policy('{}', '{"startDelay": 10}')))), 'pending 3: scheduled>pending', 'CC-035 a delay in the definition, too');
SELECT is(pg_temp.time('a') - pg_temp.time('a', 'scheduled'), interval '3 s', 'CC-035 tq: takes precedence over startDelay (doc/spec/policy.md 10.2)');
ROLLBACK TO cc;

SELECT pg_temp.throws($$SELECT pg_temp.start('a', '{}', '{"startDelay": 172800}')$$, 'TQ400', 'CC-035 tq: a startDelay past the deadline is refused (doc/spec/policy.md 10.12)');
ROLLBACK TO cc;

-- startDelay is not repeated by a retry, nor counted by the task timeout
SELECT pg_temp.start('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "retryDelaySeconds": 2, "timeoutPolicy": "RETRY"}', '{"startDelay": 100}');
SELECT pg_temp.at(pg_temp.time('a'));
SELECT pg_temp.take('a');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '30 s'), '', 'CC-035 the task timeout counts from the poll');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), 'run-timeout 1', 'CC-035 and no delay is added to it (doc/spec/policy.md C13)');
SELECT is(pg_temp.wait('a'), 2.0, 'CC-035 a retry has its own delay');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Response timeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 10}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '11 s') || ' ' || pg_temp.words('a'), 'claim-expired 1 SCHEDULED', 'CC-036 silent for 11 s: timed out');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 10}', '{"asyncComplete": true}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '20 hours') || pg_temp.words('a'), 'IN_PROGRESS', 'CC-036 asyncComplete: never');
SELECT is(pg_temp.report('a', 'completed'), 'completed 3: scheduled>completed/completed', 'CC-036 a client completes it');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 10, "timeoutSeconds": 60, "timeoutPolicy": "RETRY"}', '{"asyncComplete": true}');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '60 s'), '', 'CC-036 asyncComplete with timeoutSeconds 60: not by the response');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '60 s'), 'run-timeout 1', 'CC-036 but by the task timeout');
ROLLBACK TO cc;

SELECT pg_temp.polled(p, jsonb_build_object('responseTimeoutSeconds', 10, 'retryDelaySeconds', 5, 'timeoutPolicy', p)) FROM unnest('{ALERT_ONLY,TIME_OUT_WF,RETRY}'::text[]) AS p;
SELECT is(pg_temp.at(pg_temp.time('RETRY', 'takenUntil')), 'claim-expired 3', 'CC-037 the response timeout');
SELECT is(pg_temp.look(p) || ' ' || pg_temp.wait(p), 'pending 2: scheduled>exception/claim-expired retry>pending 5', 'CC-037 is a retry, whatever the timeoutPolicy: ' || p) FROM unnest('{ALERT_ONLY,TIME_OUT_WF,RETRY}'::text[]) AS p;
SELECT is(pg_temp.outcome(), 'active', 'CC-037 the workflow goes on');
ROLLBACK TO cc;

SELECT pg_temp.start('a', '{"responseTimeoutSeconds": 10}');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '5 hours') || pg_temp.words('a'), 'SCHEDULED', 'CC-038 a SCHEDULED task has no response timeout');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Total timeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.start('now', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "RETRY"}');
SELECT is(pg_temp.pass() || pg_temp.words('now'), 'SCHEDULED', 'CC-039 totalTimeoutSeconds 60, scheduled now: unchanged');
SELECT is((tq.status(pg_temp.id('now')) ->> 'deadline')::timestamptz, pg_temp.time('now') + interval '60 s', 'CC-039 tq: it is a deadline that holds earlier');
SELECT is(tq.task(pg_temp.id('now')) ->> 'deadline', pg_temp.iso(pg_temp.base() + interval '1 day'), 'CC-039 the definition keeps its own');
SELECT is(pg_temp.before(pg_temp.time('now') + interval '60 s'), '', 'CC-039 unchanged until just before');
SELECT is(pg_temp.at(pg_temp.time('now') + interval '60 s'), 'deadline 1', 'CC-039 then it is over');
SELECT is(pg_temp.look('now'), 'exception 3: scheduled>exception/deadline-exceeded', 'CC-039 RETRY: TIMED_OUT; no time is left to retry');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "TIME_OUT_WF"}');
SELECT pg_temp.polled('b');
SELECT is(pg_temp.at(pg_temp.time('a') + interval '120 s'), 'deadline 1', 'CC-039 TIME_OUT_WF');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'TIMED_OUT CANCELED timed-out', 'CC-039 the workflow is terminated');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "ALERT_ONLY"}');
SELECT pg_temp.start('p', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "ALERT_ONLY"}');
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{a,p}'::text[]) AS n;
SELECT is(pg_temp.before(pg_temp.time('a', 'scheduled') + interval '60 s'), '', 'CC-039 ALERT_ONLY: just before, nothing');
SELECT pg_temp.at(pg_temp.time('p') + interval '120 s');
SELECT is(pg_temp.pass(), '', 'CC-039 then one pass sends alerts, and no second');
SELECT is(tq.status(pg_temp.id(n)), status, 'CC-039 unchanged: ' || n) FROM before;
SELECT is((tq.status(pg_temp.id('a')) ->> 'deadline'), tq.task(pg_temp.id('a')) ->> 'deadline', 'CC-039 the deadline is the one defined');
SELECT is(pg_temp.claims('test/q-p') || ' ' || pg_temp.report('a', 'completed'), 'p completed 3: scheduled>completed/completed', 'CC-039 both can be polled and completed');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"totalTimeoutSeconds": 0}');
SELECT is(pg_temp.at(pg_temp.clock() + interval '20 hours') || pg_temp.words('a'), 'SCHEDULED', 'CC-039 totalTimeoutSeconds 0: unchanged');
ROLLBACK TO cc;
SELECT pg_temp.start('first');
SELECT pg_temp.start('a', '{"totalTimeoutSeconds": 60}', '{}', '{"$deps": ["first"]}');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 hours') || pg_temp.words('a'), '-', 'CC-039 a task that is not yet scheduled does not time out');
SELECT pg_temp.work('first', 'completed');
SELECT is((tq.status(pg_temp.id('a')) ->> 'deadline')::timestamptz, pg_temp.time('a', 'scheduled') + interval '60 s', 'CC-039 its time begins when it is');
SELECT is(pg_temp.before(pg_temp.time('a', 'scheduled') + interval '60 s'), '', 'CC-039 just before its end, nothing');
SELECT is(pg_temp.at(pg_temp.time('a', 'scheduled') + interval '60 s') || ' ' || pg_temp.words('a'), 'deadline 1 TIMED_OUT', 'CC-039 then it is over');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"totalTimeoutSeconds": 172800}');
SELECT is(tq.status(pg_temp.id('a')) ->> 'deadline', tq.task(pg_temp.id('a')) ->> 'deadline', 'CC-039 a total time past the deadline does not move it');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"totalTimeoutSeconds": 60}', '{"startDelay": 20}');
SELECT is((tq.status(pg_temp.id('a')) ->> 'deadline')::timestamptz, pg_temp.time('a', 'scheduled') + interval '60 s', 'CC-039 startDelay is part of the total time');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 3}');
SELECT pg_temp.at(pg_temp.time('a') + interval '61 s');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.outcome(), 'exception 3: scheduled>exception/deadline-exceeded timed-out', 'CC-040 RETRY, the total time is over: the workflow is TIMED_OUT, no new run');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 10}');
SELECT pg_temp.go(pg_temp.time('a') + interval '200 s');
SELECT is(pg_temp.report('a', 'failed') || ' ' || pg_temp.outcome(), 'failed 10: scheduled>failed/failed failed', 'CC-041 FAILED after the total time, before a pass: the workflow is FAILED, no retry');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 10}');
SELECT is(pg_temp.before(pg_temp.time('a', 'scheduled') + interval '60 s', $$SELECT pg_temp.report('a', 'failed')$$), 'pending 9: scheduled>failed/failed failure-retry>pending', 'CC-041 just before its end it is retried');
SELECT is(pg_temp.at(pg_temp.time('a', 'scheduled', 0) + interval '60 s') || ' ' || pg_temp.look('a'), 'deadline 1 exception 9: scheduled>failed/failed failure-retry>exception/deadline-exceeded', 'CC-041 and TIMED_OUT while the retry is delayed');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60, "timeoutPolicy": "ALERT_ONLY", "retryCount": 10}');
SELECT pg_temp.go(pg_temp.time('a') + interval '200 s');
SELECT is(pg_temp.report('a', 'failed') || ' ' || pg_temp.outcome(), 'pending 9: scheduled>failed/failed failure-retry>pending active', 'CC-042 tq: under ALERT_ONLY it is retried, where Conductor terminates (doc/spec/policy.md 10.5)');
ROLLBACK TO cc;

SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 3600}');
SELECT is(pg_temp.report('a', 'failed') || ' ' || (pg_temp.run('a') ->> 'attempt'), 'pending 2: scheduled>failed/failed failure-retry>pending 1', 'CC-043 totalTimeoutSeconds 3600, just started: retried, retryCount 1');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 0, "retryCount": 0}');
SELECT is(pg_temp.report('a', 'failed') || ' ' || pg_temp.outcome(), 'failed 0: scheduled>failed/failed failed', 'CC-044 no total time, no retries: FAILED');
ROLLBACK TO cc;

-- through retries: attempts at 0, 12 and 24 s; the next would be at 36
SELECT pg_temp.start('a', '{"totalTimeoutSeconds": 30, "retryDelaySeconds": 12, "retryCount": 10}');
CREATE TEMP TABLE deadlines AS SELECT 1 AS attempt, tq.status(pg_temp.id('a')) ->> 'deadline' AS deadline;
SELECT is(pg_temp.failing('a', 2), '12 12 SCHEDULED', 'CC-045 two attempts fail');
INSERT INTO deadlines SELECT 3, tq.status(pg_temp.id('a')) ->> 'deadline';
SELECT pg_temp.take('a');
SELECT is(pg_temp.report('a', 'failed') || ' ' || pg_temp.wait('a'), 'pending 7: scheduled>failed/failed failure-retry>failed/failed failure-retry>failed/failed failure-retry>pending 12', 'CC-045 so does the third, and a fourth is scheduled (13.7)');
INSERT INTO deadlines SELECT 4, tq.status(pg_temp.id('a')) ->> 'deadline';
SELECT is((SELECT count(DISTINCT deadline) FROM deadlines), 1::bigint, 'CC-045 the total time counts from the first attempt');
SELECT is(pg_temp.before(pg_temp.time('a', 'scheduled', 0) + interval '30 s'), '', 'CC-045 just before its end, nothing');
SELECT is(pg_temp.at(pg_temp.time('a', 'scheduled', 0) + interval '30 s'), 'deadline 1', 'CC-045 then it is over, with delays and all');
SELECT is(pg_temp.words('a') || ' ' || pg_temp.outcome(), 'TIMED_OUT timed-out', 'CC-045 TIMED_OUT, and the workflow');
SELECT is(pg_temp.at(pg_temp.clock() + interval '10 s') || pg_temp.claims('test/q-a'), '', 'CC-045 the fourth attempt never starts');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60}');
SELECT is(pg_temp.before(pg_temp.time('a', 'scheduled') + interval '60 s', $$SELECT pg_temp.report('a', 'completed')$$), 'completed 3: scheduled>completed/completed', 'CC-045 completed just before the end of the total time');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 minutes') || pg_temp.words('a'), 'COMPLETED', 'CC-045 is completed');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- The time of a whole workflow is the deadline of its tasks
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a', '{}', '{}', '{"$deadline": "5 minutes"}');
SELECT pg_temp.start('b', '{}', '{}', '{"$deadline": "5 minutes", "$deps": ["a"]}');
SELECT is(pg_temp.before(pg_temp.base() + interval '5 minutes'), '', 'CC-046 a time for the whole workflow: just before, nothing');
SELECT is(pg_temp.at(pg_temp.clock() + interval '1 s'), 'deadline 2', 'CC-046 then it is over');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'TIMED_OUT TIMED_OUT timed-out', 'CC-046 tq: the workflow is TIMED_OUT, and so are its tasks, not CANCELED');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Which comes first
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "TIME_OUT_WF"}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), 'run-timeout 1', 'CC-049 task and response timeout are due: the task''s is first');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.outcome(), 'exception 3: scheduled>exception/run-timeout timed-out', 'CC-049 and its policy applies');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "ALERT_ONLY", "retryDelaySeconds": 5}');
SELECT alike(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), '%claim-expired 1', 'CC-049 ALERT_ONLY: the task''s changes nothing, so that the response''s follows');
SELECT is(pg_temp.look('a'), 'pending 2: scheduled>exception/claim-expired retry>pending', 'CC-049 with a retry');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "totalTimeoutSeconds": 30, "timeoutPolicy": "RETRY"}');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '30 s'), 'deadline 1', 'CC-049 total, task and response timeout: the total is first');
SELECT is(pg_temp.look('a'), 'exception 3: scheduled>exception/deadline-exceeded', 'CC-049 and nothing is retried');
ROLLBACK TO cc;

SELECT pg_temp.polled(n, '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30, "timeoutPolicy": "RETRY"}') FROM unnest('{a,b,c,d}'::text[]) AS n;
SELECT pg_temp.go(pg_temp.time('d', 'started') + interval '31 s');
SELECT is(pg_temp.report('a', 'completed') || ' ' || pg_temp.words('a'), 'completed 3: scheduled>completed/completed COMPLETED', 'CC-050 COMPLETED at 31 s, with no pass since 30: COMPLETED');
SELECT is(pg_temp.report('b', 'failed'), 'pending 2: scheduled>failed/failed failure-retry>pending', 'CC-050 FAILED at 31 s, likewise');
SELECT is(pg_temp.callback('c', '9 s'), 'pending 3: scheduled>pending', 'CC-050 a callback at 31 s, likewise');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('d'), 0)$$, 'CC-050 extendLease at 31 s, likewise');
SELECT is(pg_temp.pass(), 'run-timeout 2', 'CC-050 the pass times out the unresolved ones');
SELECT is(pg_temp.look(n), line, 'CC-050 ' || n) FROM (VALUES
	('a', 'completed 3: scheduled>completed/completed'), ('b', 'pending 2: scheduled>failed/failed failure-retry>pending'),
	('c', 'pending 2: scheduled>exception/run-timeout retry>pending'), ('d', 'pending 2: scheduled>exception/run-timeout retry>pending')) AS v (n, line);

-- Left out: CC-047 (ALERT_ONLY of a workflow) and CC-048 (its clock after a
-- retry), because tq has no timeout of a whole group; CC-036 for SUB_WORKFLOW, and
-- the metric of CC-027, because tq has neither.

SELECT * FROM finish();
ROLLBACK;
