-- doc/spec/policy.md 5: skip_task and defer_task, in every state.
BEGIN;
\ir policy.psql

-- A task in each state, named after it.
CREATE FUNCTION pg_temp.each() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.create('unscheduled', '{"$deps": ["unscheduled"]}');
	PERFORM pg_temp.create('pending');
	PERFORM pg_temp.create('delayed', '{"delay": 600}');
	PERFORM pg_temp.resolved('backed-off', 'worker-shutdown', '{"policy": {"retryBackoff": {"delay": 600}}}');
	PERFORM pg_temp.running('deferred'), tq.defer_task(pg_temp.id('deferred'), 0, '10 minutes');
	PERFORM pg_temp.running('running');
	PERFORM pg_temp.resolved('completed', 'completed');
	PERFORM pg_temp.resolved('failed', 'failed');
	PERFORM pg_temp.resolved('exception', 'internal-error');
	PERFORM pg_temp.resolved('canceled', 'canceled');
	PERFORM pg_temp.resolved('rerun', 'failed'), tq.rerun_task(pg_temp.id('rerun'));
END
$$;

-- ---------------------------------------------------------------------------
-- skip_task
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.each();
SELECT pg_temp.throws($$SELECT tq.skip_task(pg_temp.id('nobody'))$$, 'TQ404', 'skip: no such task');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id(n))), line, 'skip: ' || n) FROM (VALUES
	('unscheduled', 'completed 5: skip>completed/skipped'), ('pending', 'completed 5: scheduled>completed/skipped'), ('delayed', 'completed 5: scheduled>completed/skipped'),
	('deferred', 'completed 5: scheduled>completed/skipped'), ('backed-off', 'completed 4: scheduled>exception/worker-shutdown retry>completed/skipped'),
	('rerun', 'completed 5: scheduled>failed/failed rerun>completed/skipped')) AS v (n, line);
SELECT pg_temp.throws(format('SELECT tq.skip_task(pg_temp.id(%L))', n), 'TQ409', 'skip: conflict, ' || n) FROM unnest('{running,completed,failed,exception,canceled}'::text[]) AS n;
SELECT pg_temp.keeps(format('SELECT tq.skip_task(pg_temp.id(%L))', n), n, 'skip again: harmless, ' || n) FROM unnest('{unscheduled,pending,delayed,deferred,backed-off,rerun}'::text[]) AS n;
SELECT is(tq.skip_task(pg_temp.id('pending')), tq.status(pg_temp.id('pending')), 'skip: the result is the status');
SELECT ok(pg_temp.near(r ->> 'resolved', pg_temp.clock()), 'skip: resolved is now, ' || n) FROM unnest('{unscheduled,pending,delayed}'::text[]) AS n, pg_temp.run(n) AS r;
SELECT is(r ->> 'scheduled', r ->> 'resolved', 'skip: a run that is created resolved is scheduled at that time') FROM pg_temp.run('unscheduled') AS r;
SELECT is(r ? 'started' OR r ? 'takenUntil', false, 'skip: it was never started, ' || n) FROM unnest('{unscheduled,pending,delayed,backed-off,rerun}'::text[]) AS n, pg_temp.run(n) AS r;
SELECT is(string_agg(pg_temp.claims('test/q-' || n), ''), '', 'skip: nothing can be claimed') FROM unnest('{unscheduled,pending,delayed,deferred,backed-off,rerun}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq_internal.pending) + (SELECT count(*) FROM tq_internal.delayed) + (SELECT count(*) FROM tq_internal.unscheduled), 0::bigint, 'skip: no rows are left in unscheduled, pending and delayed');
SELECT pg_temp.throws(format('SELECT tq.%s', f), 'TQ409', 'skip: it is resolved, ' || f)
FROM unnest(ARRAY['claim_task(pg_temp.id(''pending''), 0, ''wg'', ''w1'')', 'reclaim_task(pg_temp.id(''pending''), 0)', 'report_completed(pg_temp.id(''pending''), 0)', 'report_failed(pg_temp.id(''pending''), 0)', 'defer_task(pg_temp.id(''pending''), 0, ''1 minute'')']) AS f;
SELECT pg_temp.keeps($$SELECT tq.cancel_task(pg_temp.id('pending'))$$, 'pending', 'skip: canceling it changes nothing');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('unscheduled'))$$, 'unscheduled', 'skip: nor does scheduling it');
SELECT is(pg_temp.pass('11 minutes'), '', 'skip: nor do its old timers');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id(n))), line, 'skip: it can be rerun, ' || n) FROM (VALUES
	('unscheduled', 'pending 5: skip>completed/skipped rerun>pending'), ('pending', 'pending 5: scheduled>completed/skipped rerun>pending')) AS v (n, line);
SELECT is(pg_temp.work('unscheduled', 'completed'), 'completed 5: skip>completed/skipped rerun>completed/completed', 'skip: and completed then');
SELECT pg_temp.throws($$SELECT tq.skip_task(pg_temp.id('unscheduled'))$$, 'TQ409', 'skip: it is no longer skipped');
ROLLBACK TO s;

-- past the deadline
SELECT pg_temp.each();
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws(format('SELECT tq.skip_task(pg_temp.id(%L))', n), 'TQ409', 'skip past the deadline: ' || n) FROM unnest('{unscheduled,pending,delayed,deferred,backed-off,running,completed,failed}'::text[]) AS n;
SELECT pg_temp.pass();
SELECT pg_temp.throws(format('SELECT tq.skip_task(pg_temp.id(%L))', n), 'TQ409', 'skip past the deadline, after upkeep(): ' || n) FROM unnest('{unscheduled,pending,delayed}'::text[]) AS n;
ROLLBACK TO s;
SELECT pg_temp.create('t', '{"policy": {"totalTimeout": 60}}');
SET tq.clock_offset = '61 seconds';
SELECT pg_temp.throws($$SELECT tq.skip_task(pg_temp.id('t'))$$, 'TQ409', 'skip past the totalTimeout');
ROLLBACK TO s;

-- dependents are released, whatever they require, and later ones too
SELECT pg_temp.create('dep', '{"$deps": ["dep"]}'), pg_temp.create('dep2');
SELECT pg_temp.create('c', '{"$deps": ["dep"]}'), pg_temp.create('r', '{"$deps": ["dep"], "requires": "all-resolved"}'), pg_temp.create('two', '{"$deps": ["dep", "dep2"]}');
SELECT tq.skip_task(pg_temp.id('dep')) ->> 'state';
SELECT is(pg_temp.look(n), line, 'skip: dependents, ' || what) FROM (VALUES ('c', 'pending 5: scheduled>pending', 'all-completed'), ('r', 'pending 5: scheduled>pending', 'all-resolved'), ('two', 'unscheduled 5:', 'of two')) AS v (n, line, what);
SELECT tq.skip_task(pg_temp.id('dep2')) ->> 'state';
SELECT is(pg_temp.look('two'), 'pending 5: scheduled>pending', 'skip: when the second is skipped too');
SELECT is(pg_temp.create('later', '{"$deps": ["dep"]}'), 'pending 5: scheduled>pending', 'skip: one that is created after it');
ROLLBACK TO s;
-- one that waits for others, and then they complete
SELECT pg_temp.create('dep'), pg_temp.create('a', '{"$deps": ["dep"]}'), pg_temp.create('b', '{"$deps": ["a"]}');
SELECT tq.skip_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.look('b'), 'pending 5: scheduled>pending', 'skip: of one in the middle');
SELECT is(pg_temp.work('dep', 'completed'), 'completed 5: scheduled>completed/completed', 'skip: what it waited for completes');
SELECT is(pg_temp.look('a'), 'completed 5: skip>completed/skipped', 'skip: it stays skipped');
ROLLBACK TO s;

-- its output is its result
SELECT pg_temp.create(n) FROM unnest('{a,b,c,big}'::text[]) AS n;
SELECT is(tq.skip_task(pg_temp.id('a'), '{"out": [1, null]}') ->> 'state', 'completed', 'skip with an output');
SELECT is(tq.result(pg_temp.id('a')), '{"out": [1, null]}', 'skip: the output is the result');
SELECT is(pg_temp.keys(pg_temp.run('a')) ~ 'out|result', false, 'skip: the status does not show it');
SELECT pg_temp.keeps($$SELECT tq.skip_task(pg_temp.id('a'), '{"out": 2}')$$, 'a', 'skip again with another output');
SELECT is(tq.result(pg_temp.id('a')), '{"out": [1, null]}', 'skip: the first stays');
SELECT is(tq.skip_task(pg_temp.id('b'), output => NULL) ->> 'state', 'completed', 'skip with no output');
SELECT is(tq.result(pg_temp.id('b')), NULL, 'skip: no result');
SELECT is(tq.skip_task(task_id => pg_temp.id('c'), output => '7') ->> 'state', 'completed', 'skip: arguments by name');
SELECT is(tq.result(pg_temp.id('c')), '7', 'skip: any JSON is an output');
SET tq.max_inline_artifact = 1000;
SELECT pg_temp.throws($$SELECT tq.skip_task(pg_temp.id('big'), to_jsonb(repeat('x', 2000)))$$, 'TQ400', 'skip: an output that is too large');
SELECT is(tq.skip_task(pg_temp.id('big'), to_jsonb(repeat('x', 500))) ->> 'state', 'completed', 'skip: one that is not');
ROLLBACK TO s;
SELECT pg_temp.create('u', '{"$deps": ["u"]}'), pg_temp.create('after', '{"$deps": ["u"]}');
SELECT tq.skip_task(pg_temp.id('u'), '"given"') ->> 'state';
SELECT is(tq.result(pg_temp.id('u')), '"given"', 'skip of an unscheduled task: its output');
SELECT is((SELECT format('%s %s', state, result) FROM tq.dependency_results(pg_temp.id('after'))), 'completed "given"', 'skip: as a dependent reads it');
SELECT tq.rerun_task(pg_temp.id('u')) ->> 'state';
SELECT is(tq.result(pg_temp.id('u')), NULL, 'skip: a rerun has none yet');
ROLLBACK TO s;

-- a group; policies do not matter
SELECT pg_temp.create('a', '{"$group": "g", "policy": {"onUnsuccessful": "cancel-group", "deadLetter": true, "retryOn": ["failed"]}}'), pg_temp.create('b', '{"$group": "g"}');
SELECT tq.skip_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.progress('g'), '2: p1 c1 -', 'skip: it counts as completed');
SELECT tq.skip_task(pg_temp.id('b')) ->> 'state';
SELECT is(pg_temp.progress('g'), '2: c2 completed', 'skip: of all: the group is completed');
SELECT is((SELECT count(*) FROM tq_internal.dead_letter), 0::bigint, 'skip: no dead letter');
ROLLBACK TO s;
SELECT pg_temp.create('a', '{"$group": "g"}');
SELECT tq.seal_task_group(pg_temp.id('g')) ->> 'sealed' IS NULL;
SELECT is(tq.skip_task(pg_temp.id('a')) ->> 'state', 'completed', 'skip: in a sealed group');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- defer_task
-- ---------------------------------------------------------------------------

SELECT pg_temp.each();
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('nobody'), 0, '1 minute')$$, 'TQ404', 'defer: no such task');
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('running'), 1, '1 minute')$$, 'TQ404', 'defer: no such run');
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('unscheduled'), 0, '1 minute')$$, 'TQ404', 'defer: unscheduled, there is no run');
SELECT pg_temp.throws(format('SELECT tq.defer_task(pg_temp.id(%L), 0, ''1 minute'')', n), 'TQ409', 'defer: conflict, ' || n) FROM unnest('{pending,delayed,backed-off,deferred,completed,failed,exception,canceled,rerun}'::text[]) AS n;
SELECT pg_temp.throws(format('SELECT tq.defer_task(pg_temp.id(%L), 1, ''1 minute'')', n), 'TQ409', 'defer: conflict, the second run of ' || n) FROM unnest('{backed-off,rerun}'::text[]) AS n;
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('running'), 0, $$ || after || ')', 'TQ400', 'defer: by ' || after) FROM unnest(ARRAY['''-1 second''', '''-1 ms''', '''1 hour -61 minutes''', 'NULL']) AS after;
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('running'), NULL, '1 minute')$$, pg_temp.error($$SELECT tq.reclaim_task(pg_temp.id('running'), NULL)$$) ->> 'sqlstate', 'defer: no run is given');
CREATE TEMP TABLE before AS SELECT pg_temp.run('running') AS run;
CREATE TEMP TABLE answer AS SELECT tq.defer_task(pg_temp.id('running'), 0, '10 minutes') AS status;
SELECT is(status, tq.status(pg_temp.id('running')), 'defer: the result is the status') FROM answer;
SELECT is(pg_temp.look('running'), 'pending 5: scheduled>pending', 'defer: the same run is pending, no budget is used');
SELECT is(pg_temp.run('running') ? 'takenUntil', false, 'defer: it has no worker');
SELECT ok(abs(extract(epoch FROM (pg_temp.run('running') ->> 'visibleAt')::timestamptz - pg_temp.clock() - interval '10 minutes')) < 30, 'defer: it shows when it can be claimed');
SELECT is(pg_temp.run('running') ->> 'scheduled', run ->> 'scheduled', 'defer: scheduled does not change') FROM before;
SELECT is(pg_temp.claims('test/q-running'), '', 'defer: it is not handed out');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('running'), 0, 'wg', 'w1')$$, 'TQ409', 'defer: nor by its id');
SELECT is((tq.task_queue_counts('test/q-running') -> 'pendingTasks')::bigint, 0::bigint, 'defer: it is not counted as pending');
SELECT is(tq.task_queue_counts('test/q-running') ->> 'claimedTasks', '0', 'defer: nor as claimed');
SELECT is(pg_temp.progress('running'), '1: d1 -', 'defer: but as delayed');
SELECT pg_temp.throws(format('SELECT tq.%s', f), 'TQ409', 'defer: its worker is refused, ' || f)
FROM unnest(ARRAY['report_completed(pg_temp.id(''running''), 0)', 'report_failed(pg_temp.id(''running''), 0)', 'report_exception(pg_temp.id(''running''), 0, ''worker-shutdown'')', 'reclaim_task(pg_temp.id(''running''), 0)', 'defer_task(pg_temp.id(''running''), 0, ''10 minutes'')']) AS f;
SELECT is(pg_temp.resolve('completed', 'running'), 'conflict', 'defer: in a batch that is an outcome');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('running'))$$, 'running', 'defer: scheduling it changes nothing');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('running'))$$, 'running', 'defer: nor does rerunning it');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'defer: not before its time');
SELECT is(pg_temp.pass('10 minutes 30 seconds'), 'delayed 4', 'defer: but then, like other delayed runs');
SELECT is(pg_temp.claims('test/q-running', 1, 'w2'), 'running', 'defer: another worker gets it');
SELECT is(pg_temp.look('running'), 'running 5: scheduled>running', 'defer: it is still the first run');
SELECT is(pg_temp.run('running') ->> 'started', run ->> 'started', 'defer: whose start is that of the first claim') FROM before;
SELECT is(pg_temp.run('running') ->> 'workerId', 'w2', 'defer: by another');
SELECT ok(pg_temp.near(pg_temp.run('running') ->> 'takenUntil', pg_temp.clock() + interval '20 minutes'), 'defer: its claim is a new one');
SELECT is(pg_temp.pass('21 minutes'), '', 'defer: the end of the first claim does not touch it');
SELECT is(pg_temp.report('running', 'completed'), 'completed 5: scheduled>completed/completed', 'defer: it completes');
ROLLBACK TO s;

-- by 0, twice, many times
SELECT pg_temp.running('a', '{"$deadline": "1 day"}');
SELECT is(tq.defer_task(pg_temp.id('a'), 0, '0') ->> 'state', 'pending', 'defer by 0');
SELECT pg_temp.pass();
SELECT is(pg_temp.take('a'), 0, 'defer by 0: it can be claimed at once');
SELECT is(tq.defer_task(pg_temp.id('a'), 0, '0.001 seconds') ->> 'state', 'pending', 'defer by a millisecond');
SELECT pg_temp.pass('10 seconds');
SELECT is(pg_temp.take('a'), 0, 'defer by a millisecond: it can be claimed');
CREATE FUNCTION pg_temp.around(n int) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM tq.defer_task(pg_temp.id('a'), 0, '1 minute');
		PERFORM set_config('tq.clock_offset', (pg_temp.shift() + interval '1 minute')::text, false);
		PERFORM pg_temp.pass();
		PERFORM pg_temp.take('a', 'w' || i);
	END LOOP;
	RETURN pg_temp.look('a');
END
$$;
SELECT is(pg_temp.around(60), 'running 5: scheduled>running', 'defer: 60 times; it is still the first run (C18)');
SELECT is(pg_temp.report('a', 'failed'), 'failed 5: scheduled>failed/failed', 'defer: which fails in the end');
ROLLBACK TO s;

-- past the deadline
SELECT pg_temp.running('a', '{"$deadline": "10 minutes"}'), pg_temp.running('b', '{"$deadline": "10 minutes"}');
SELECT is(tq.defer_task(pg_temp.id('b'), 0, '5 minutes') ->> 'state', 'pending', 'defer before the deadline');
SET tq.clock_offset = '10 minutes 1 second';
SELECT pg_temp.throws($$SELECT tq.defer_task(pg_temp.id('a'), 0, '1 minute')$$, 'TQ409', 'defer past the deadline');
SELECT is(pg_temp.pass(), 'deadline 2', 'defer: the deadline comes');
SELECT is(pg_temp.look('b'), 'exception 5: scheduled>exception/deadline-exceeded', 'defer: also for a deferred run');
ROLLBACK TO s;

-- a deferred run is canceled, skipped
SELECT pg_temp.running(n) FROM unnest('{a,b}'::text[]) AS n;
SELECT tq.defer_task(pg_temp.id(n), 0, '5 minutes') ->> 'state' FROM unnest('{a,b}'::text[]) AS n;
SELECT is(pg_temp.report('a', 'canceled'), 'exception 5: scheduled>exception/canceled', 'defer: then canceled');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('b'))), 'completed 5: scheduled>completed/skipped', 'defer: then skipped');
SELECT is((SELECT count(*) FROM tq_internal.delayed), 0::bigint, 'defer: no run is delayed any longer');
ROLLBACK TO s;

-- timeouts
SELECT pg_temp.running('pend', '{"policy": {"pendingTimeout": 600}}');
SELECT tq.defer_task(pg_temp.id('pend'), 0, '5 minutes') ->> 'state';
SELECT is(pg_temp.pass('11 minutes'), 'delayed 1', 'defer: pendingTimeout does not apply to it, delayed or not');
SELECT is(pg_temp.pass('50 minutes'), '', 'defer: however long it is not claimed');
SELECT is(pg_temp.take('pend'), 0, 'defer: it can be claimed');
ROLLBACK TO s;
SELECT pg_temp.running(n, '{"policy": {"runTimeout": 1800}}') FROM unnest('{deferred,due,again,done}'::text[]) AS n;
SELECT tq.defer_task(pg_temp.id(n), 0, w::interval) ->> 'state' FROM (VALUES ('deferred', '45 minutes'), ('due', '5 minutes'), ('again', '5 minutes'), ('done', '5 minutes')) AS v (n, w);
SELECT is(pg_temp.pass('15 minutes'), 'delayed 3', 'defer: three are due');
SELECT pg_temp.take('again'), pg_temp.take('done');
SELECT is(pg_temp.report('done', 'completed'), 'completed 5: scheduled>completed/completed', 'defer: one completes');
SELECT is(pg_temp.pass('29 minutes 30 seconds'), '', 'defer: runTimeout counts from the first start: not yet');
SELECT is(pg_temp.pass('30 minutes'), 'run-timeout 3', 'defer: runTimeout, of runs that are deferred, due, or running again');
SELECT is(pg_temp.look(n), 'exception 5: scheduled>exception/run-timeout', 'defer: runTimeout, ' || n) FROM unnest('{deferred,due,again}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq_internal.delayed) + (SELECT count(*) FROM tq_internal.pending), 0::bigint, 'defer: none is left to be claimed');
ROLLBACK TO s;
-- a deferred run that times out is retried like any other
SELECT pg_temp.running('a', '{"policy": {"runTimeout": 600, "retryOn": ["run-timeout"], "retryBackoff": {"delay": 60}}}');
SELECT tq.defer_task(pg_temp.id('a'), 0, '30 minutes') ->> 'state';
SELECT is(pg_temp.pass('10 minutes'), 'run-timeout 1', 'defer: over while it is deferred');
SELECT is(pg_temp.look('a'), 'pending 4: scheduled>exception/run-timeout retry>pending', 'defer: and retried');
SELECT is(pg_temp.wait('a'), interval '1 minute', 'defer: after the delay of a retry, not the rest of the other');
SELECT is(pg_temp.pass('11 minutes'), 'delayed 1', 'defer: which is due');
SELECT is(pg_temp.take('a'), 1, 'defer: it is the second run');
SELECT is(pg_temp.pass('20 minutes'), '', 'defer: with a time of its own');
ROLLBACK TO s;

-- a deferred run that is lost after it was claimed again; the budget has not changed
SELECT pg_temp.running('a', '{"policy": {"lostRetries": 1, "retries": 2}}');
SELECT tq.defer_task(pg_temp.id('a'), 0, '1 minute') ->> 'state';
SELECT pg_temp.pass('1 minute');
SELECT pg_temp.take('a');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 1', 'defer: claimed again, and lost');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.attempts('a'), 'pending 2: scheduled>exception/claim-expired retry>pending, 0 0', 'defer: it is retried like the first one');
SELECT is(pg_temp.run('a') ? 'visibleAt', false, 'defer: its delay is not inherited');
ROLLBACK TO s;

-- attempt and budgets continue
SELECT pg_temp.resolved('a', 'worker-shutdown', '{"policy": {"retries": 3, "retryBackoff": {"delay": 60, "kind": "exponential"}}}');
SELECT pg_temp.pass('1 minute');
SELECT pg_temp.take('a');
SELECT tq.defer_task(pg_temp.id('a'), 1, '1 minute') ->> 'state';
SELECT is(pg_temp.attempts('a'), '0 1', 'defer: of a second attempt, which it stays');
SELECT pg_temp.pass('2 minutes');
SELECT pg_temp.take('a');
SELECT is(pg_temp.attempts('a'), '0 1', 'defer: also when it is claimed again');
SELECT is(pg_temp.report('a', 'worker-shutdown'), 'pending 1: scheduled>exception/worker-shutdown retry>exception/worker-shutdown retry>pending', 'defer: and then retried');
SELECT is(pg_temp.attempts('a') || ', ' || pg_temp.wait('a'), '0 1 2, 00:02:00', 'defer: as the third attempt, with its delay');
ROLLBACK TO s;
SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"lostRetries": 1, "claimTimeout": 600}}');
SELECT pg_temp.pass('10 minutes');
SELECT pg_temp.take('a');
SELECT tq.defer_task(pg_temp.id('a'), 1, '0') ->> 'state';
SELECT pg_temp.pass();
SELECT pg_temp.take('a');
SELECT pg_temp.pass('20 minutes');
SELECT is(pg_temp.look('a'), 'exception 5: scheduled>exception/claim-expired retry>exception/claim-expired', 'defer: does not reset lost runs');
ROLLBACK TO s;

-- at the back of its priority
SELECT pg_temp.create(n, jsonb_build_object('taskQueueId', 'test/q', 'priority', p)) FROM (VALUES (1, 'a', 'low'), (2, 'b', 'low'), (3, 'c', 'lowest')) AS v (i, n, p) ORDER BY i;
SELECT is(pg_temp.claims('test/q', 1), 'a', 'defer: of three the first');
SELECT tq.defer_task(pg_temp.id('a'), 0, '1 minute') ->> 'state';
SELECT is(pg_temp.pass('1 minute'), 'delayed 1', 'defer: it is due');
SELECT is(pg_temp.claims('test/q'), 'b a c', 'defer: at the back of its priority');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
