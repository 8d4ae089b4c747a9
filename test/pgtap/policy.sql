-- doc/spec/policy.md 8 (C1 to C18), 10 (1 to 14) and 4: how fields of policies act
-- together.  Each field alone is in policy_fields.sql, errors in
-- policy_validation.sql, the rest in policy_*.sql.
BEGIN;
\ir policy.psql

-- ---------------------------------------------------------------------------
-- Section 4: the one function of resolution
-- ---------------------------------------------------------------------------

SAVEPOINT s;
-- Budgets apart: retries and lost runs.
SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"retries": 2, "lostRetries": 2, "retryBackoff": {"delay": 60, "kind": "exponential"}, "claimTimeout": 600}}');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.attempts('a') || ', ' || pg_temp.wait('a'), 'pending 2: scheduled>exception/claim-expired retry>pending, 0 0, 00:00:00', '4 a lost run: the same attempt, at once');
SELECT pg_temp.work('a', 'worker-shutdown');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.attempts('a') || ', ' || pg_temp.wait('a'),
	'pending 1: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>pending, 0 0 1, 00:01:00', '4 a retry after it: the next attempt, with the delay of the first');
SELECT pg_temp.pass('11 minutes');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('21 minutes');
SELECT is(pg_temp.attempts('a') || ', ' || pg_temp.wait('a') || ', ' || (tq.status(pg_temp.id('a')) ->> 'retriesLeft'), '0 0 1 1, 00:00:00, 1', '4 lost again: the second attempt goes on at once');
SELECT pg_temp.work('a', 'intermittent-task');
SELECT is(pg_temp.attempts('a') || ', ' || pg_temp.wait('a') || ', ' || (tq.status(pg_temp.id('a')) ->> 'retriesLeft'), '0 0 1 1 2, 00:02:00, 0', '4 a retry: the delay of the second');
SELECT pg_temp.pass('23 minutes');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('33 minutes');
SELECT is(pg_temp.state('a') || ', ' || pg_temp.attempts('a'), 'exception, 0 0 1 1 2', '4 a third lost run is final');
ROLLBACK TO s;
-- lostRetries are of the task, not of each attempt; a rerun resets both budgets.
SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"retries": 1, "lostRetries": 1, "claimTimeout": 600}}');
SELECT pg_temp.pass('10 minutes');
SELECT pg_temp.work('a', 'worker-shutdown');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('20 minutes');
SELECT is(pg_temp.look('a'), 'exception 0: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>exception/claim-expired', '4 a retry does not reset lost runs');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))), 'pending 1: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>exception/claim-expired rerun>pending', '4 a rerun resets the retries');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('30 minutes');
SELECT is(pg_temp.state('a') || ', ' || pg_temp.attempts('a'), 'pending, 0 0 1 0 0', '4 and the lost runs, and begins with attempt 0');
ROLLBACK TO s;

-- Many at once: their timers and rows are written and read in batches.
SELECT is(cardinality(tq.enqueue_tasks('test/many', array_fill('{}'::jsonb, ARRAY[2500]), policy => '{"pendingTimeout": 600, "runTimeout": 600, "claimTimeout": 600, "retryOn": ["run-timeout"], "retryBackoff": {"delay": 60}}')), 2500, '4 2500 tasks of one policy');
SELECT is((SELECT count(*) FROM tq.claim_work('test/many', 'wg', 'w1', 1000)), 1000::bigint, '4 1000 of them in one claim');
SET tq.clock_offset = '5 minutes';
SELECT is((SELECT count(*) FROM tq.claim_work('test/many', 'wg', 'w1', 500)), 500::bigint, '4 500 in another, later');
SELECT is(pg_temp.pass('10 minutes'), 'run-timeout 1000 pending-timeout 1000', '4 one pass: 1000 run too long, 1000 are pending too long');
SELECT is((SELECT string_agg(concat_ws(' ', state, last_run_id, n), ', ' ORDER BY state, last_run_id) FROM (SELECT state, last_run_id, count(*) AS n FROM tq.task_details GROUP BY 1, 2) AS t), 'exception 0 1000, pending 1 1000, running 0 500', '4 each has its expected state');
SELECT is(pg_temp.pass('11 minutes'), 'delayed 1000', '4 1000 retries are due at once');
SELECT is((SELECT count(*) || ' ' || min(run_id) || ' ' || max(run_id) FROM tq.claim_work('test/many', 'wg', 'w1', 1000)), '1000 1 1', '4 and can be claimed');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Section 8
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.resolved('a', 'failed'), 'failed 5: scheduled>failed/failed', 'C1 failed is not retried by default');
SELECT is(pg_temp.resolved('b', 'failed', '{"policy": {"retryOn": ["failed"]}}'), 'pending 4: scheduled>failed/failed failure-retry>pending', 'C1 but where a policy says so');
SELECT is(pg_temp.run('b', 0) ->> 'state' || ' ' || (tq.status(pg_temp.id('b')) ->> 'state'), 'failed pending', 'C1 the run has failed, the task has not');
SELECT is(pg_temp.work('b', 'worker-shutdown'), 'exception 4: scheduled>failed/failed failure-retry>exception/worker-shutdown', 'C1 a reason that is not in the list is then final');
ROLLBACK TO s;

SELECT pg_temp.running('tc', '{"retries": 1, "$deadline": "1 day"}'), pg_temp.running('co', '{"$deadline": "1 day", "policy": {"retries": 1, "retryOn": ["failed", "claim-expired"]}}'), pg_temp.running('tb', '{"$deadline": "1 day", "policy": {"retries": 1, "lostRetries": 4}}');
SELECT is(pg_temp.pass('20 minutes'), 'claim-expired 3', 'C2 three lost runs');
SELECT is((SELECT string_agg(tq.status(pg_temp.id(n)) ->> 'retriesLeft', ' ') FROM unnest('{tc,co,tb}'::text[]) AS n), '0 0 1', 'C2 the one with lostRetries consumes no retry');
ROLLBACK TO s;

SELECT pg_temp.running('tc', '{"$deadline": "1 day"}'), pg_temp.running('co', '{"$deadline": "1 day", "policy": {"retryBackoff": {"delay": 60}}}'), pg_temp.running('tb', '{"$deadline": "1 day", "policy": {"lostRetries": 4, "retryBackoff": {"delay": 60}}}');
SELECT pg_temp.pass('20 minutes');
SELECT is((SELECT string_agg(pg_temp.wait(n)::text, ' ') FROM unnest('{tc,co,tb}'::text[]) AS n), '00:00:00 00:01:00 00:00:00', 'C3 the delay applies to runs that consume a retry');
SELECT is(pg_temp.claims('test/q-tc') || pg_temp.claims('test/q-co') || pg_temp.claims('test/q-tb'), 'tctb', 'C3 so the others can be claimed at once');
SELECT pg_temp.report('tb', 'worker-shutdown');
SELECT is(pg_temp.wait('tb'), interval '1 minute', 'C3 but a requested retry waits');
ROLLBACK TO s;

SELECT pg_temp.running('a', '{"policy": {"retryOn": ["failed"]}}'), pg_temp.running('b', '{"policy": {"deadLetter": true}}');
SELECT pg_temp.report('a', 'failed'), pg_temp.report('b', 'failed');
SELECT pg_temp.throws(format('SELECT tq.%s', f), 'TQ409', 'C4 a late or different report is an error, and changes nothing: ' || f)
FROM unnest(ARRAY['report_completed(pg_temp.id(''a''), 0)', 'report_exception(pg_temp.id(''a''), 0, ''worker-shutdown'')', 'report_failed(pg_temp.id(''a''), 1)', 'report_completed(pg_temp.id(''b''), 0, ''1'')', 'report_exception(pg_temp.id(''b''), 0, ''internal-error'')']) AS f;
SELECT is((SELECT string_agg(outcome, ' ' ORDER BY ordinality) FROM tq.resolve(pg_temp.ids('a', 'b', 'a', 'nobody'), '{0,0,1,0}', 'worker-shutdown') WITH ORDINALITY AS r), 'conflict conflict conflict not-found', 'C4 a batch returns outcomes, and raises no error');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.look('b'), 'pending 4: scheduled>failed/failed failure-retry>pending, failed 5: scheduled>failed/failed', 'C4 nor does it change anything');
ROLLBACK TO s;

SELECT pg_temp.resolved('a', 'failed', '{"policy": {"retryOn": ["failed"]}}');
SELECT is((SELECT c.task_id::text || ' ' || c.run_id FROM tq.claim_work('test/q-a', 'wg', 'w1') AS c), pg_temp.id('a')::text || ' 1', 'C5 a retry is the next run of the same task');
SELECT is(jsonb_array_length(tq.status(pg_temp.id('a')) -> 'runs') || ' ' || (pg_temp.run('a') ->> 'attempt'), '2 1', 'C5 task and attempt identify it for other systems');
ROLLBACK TO s;

SELECT pg_temp.running('a');
SELECT is(pg_temp.line(tq.defer_task(pg_temp.id('a'), 0, '1 minute')), 'pending 5: scheduled>pending', 'C6 a running run is pending again: the same one');
SELECT is(jsonb_array_length(tq.status(pg_temp.id('a')) -> 'runs'), 1, 'C6 its history stays short');
ROLLBACK TO s;

-- As Conductor has it: a claim that expires is retried, other timeouts end the group.
SELECT pg_temp.running(n, jsonb_build_object('$group', 'g-' || n, '$deadline', '1 day', 'policy', '{"retries": 3, "retryOn": ["failed", "claim-expired"], "onUnsuccessful": "cancel-group"}'::jsonb || p::jsonb))
FROM (VALUES ('response', '{"claimTimeout": 600}'), ('task', '{"runTimeout": 600}')) AS v (n, p);
SELECT pg_temp.create('with-' || n, jsonb_build_object('$group', 'g-' || n)) FROM unnest('{response,task}'::text[]) AS n;
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('response') || ', ' || pg_temp.state('with-response'), 'pending 2: scheduled>exception/claim-expired retry>pending, pending', 'C7 a claim that expires is retried, its group goes on');
SELECT is(pg_temp.look('task') || ', ' || pg_temp.state('with-task'), 'exception 3: scheduled>exception/run-timeout, exception', 'C7 a run that takes too long ends its group, with retries left');
ROLLBACK TO s;

SELECT pg_temp.create('a', '{"policy": {"pendingTimeout": 600, "deadLetter": true}}'), pg_temp.create('b', '{"policy": {"pendingTimeout": 600}}');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.look('b'), 'exception 5: scheduled>exception/pending-timeout, exception 5: scheduled>exception/pending-timeout', 'C8 a task that is pending too long is an exception, and not deleted');
SELECT is(pg_temp.letters('test/q-a') || pg_temp.letters('test/q-b'), 'a pending-timeout', 'C8 with a dead letter where the policy has one');
ROLLBACK TO s;

SELECT pg_temp.create(n, o::jsonb || '{"taskQueueId": "test/q", "$deadline": "1 day"}') FROM (VALUES (1, 'd30', '{"delay": 30}'), (2, 'd10', '{"delay": 10}'), (3, 'now', '{}'), (4, 'd10high', '{"delay": 10, "priority": "high"}'), (5, 'd20', '{"delay": 20}'), (6, 'high', '{"priority": "high"}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.create('failing', '{"taskQueueId": "test/f", "$deadline": "1 day", "policy": {"retryBackoff": {"delay": 25}}}');
SELECT is(pg_temp.pass('60 seconds'), 'delayed 4', 'C9 four are due');
SELECT pg_temp.create('last', '{"taskQueueId": "test/q", "$deadline": "1 day"}');
SELECT is(pg_temp.claims('test/q'), 'high d10high now d10 d20 d30 last', 'C9 claimed by priority, then by the time at which they could be');
ROLLBACK TO s;
SELECT pg_temp.create(n, '{"taskQueueId": "test/q", "policy": {"retryBackoff": {"delay": 60}}}') FROM unnest('{a,b,c}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT is(pg_temp.claims('test/q', 1), 'a', 'C9 the first is claimed');
SELECT pg_temp.report('a', 'worker-shutdown');
SELECT is(pg_temp.claims('test/q', 1), 'b', 'C9 fails, and the second is claimed');
SELECT pg_temp.pass('60 seconds');
SELECT pg_temp.create('d', '{"taskQueueId": "test/q"}');
SELECT is(pg_temp.claims('test/q'), 'c a d', 'C9 a retry comes after runs that were pending when it was due, and before later ones');
ROLLBACK TO s;

SELECT pg_temp.running(e, jsonb_build_object('$group', 'g-' || e, 'policy', jsonb_build_object('onUnsuccessful', e))) FROM unnest('{block,cancel-group,tolerate,forgive}'::text[]) AS e;
SELECT pg_temp.create(r || '-' || e, jsonb_build_object('$group', 'g-' || e, '$deps', jsonb_build_array(e), 'requires', r)) FROM unnest('{all-completed,all-resolved}'::text[]) AS r, unnest('{block,cancel-group,tolerate,forgive}'::text[]) AS e;
SELECT pg_temp.report(e, 'failed') FROM unnest('{block,cancel-group,tolerate,forgive}'::text[]) AS e;
SELECT is(pg_temp.state('all-completed-' || e) || ' ' || pg_temp.state('all-resolved-' || e), states, 'C10 dependents of a failure, all-completed and all-resolved: ' || e)
FROM (VALUES ('block', 'unscheduled pending'), ('cancel-group', 'exception exception'), ('tolerate', 'pending pending'), ('forgive', 'pending pending')) AS v (e, states);
ROLLBACK TO s;

SELECT pg_temp.create('p', '{"policy": {"pendingTimeout": 600}}'), pg_temp.running('r', '{"policy": {"runTimeout": 600}}'), pg_temp.running('c', '{"retries": 0, "policy": {"claimTimeout": 600}}'), pg_temp.create('d', '{"delay": 600}'), pg_temp.running('t', '{"policy": {"totalTimeout": 600}}');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'C11 no timeout acts before its time');
SET tq.clock_offset = '40 minutes';
SELECT is((SELECT string_agg(pg_temp.state(n), ' ') FROM unnest('{p,r,c,d,t}'::text[]) AS n), 'pending running running pending running', 'C11 nor after it without a pass');
SELECT is(pg_temp.pass(), 'deadline 1 run-timeout 1 pending-timeout 1 claim-expired 1 delayed 1', 'C11 but with the first pass, in the order of section 5');
SELECT is((SELECT string_agg(pg_temp.state(n) || coalesce('/' || (pg_temp.run(n) ->> 'reasonResolved'), ''), ' ') FROM unnest('{p,r,c,d,t}'::text[]) AS n),
	'exception/pending-timeout exception/run-timeout exception/claim-expired pending exception/deadline-exceeded', 'C11 each as it should be');
SELECT is(pg_temp.pass(), '', 'C11 and once');
ROLLBACK TO s;
-- which of them counts, if several have passed
SELECT pg_temp.running('rc', '{"policy": {"runTimeout": 600, "claimTimeout": 600}}'), pg_temp.running('rt', '{"policy": {"runTimeout": 600, "totalTimeout": 600, "claimTimeout": 600}}'), pg_temp.create('pt', '{"policy": {"pendingTimeout": 600, "totalTimeout": 600}}'), pg_temp.create('dp', '{"policy": {"delay": 300, "pendingTimeout": 300}}');
SELECT pg_temp.pass('10 minutes');
SELECT is((SELECT string_agg(pg_temp.run(n) ->> 'reasonResolved', ' ') FROM unnest('{rc,rt,pt,dp}'::text[]) AS n), 'run-timeout deadline-exceeded deadline-exceeded pending-timeout', 'C11 the deadline before the others, the time to run before the claim');
ROLLBACK TO s;

SELECT pg_temp.running('a', '{"policy": {"retries": 0, "retryOn": ["failed", "intermittent-task"]}}'), pg_temp.running('b', '{"policy": {"retries": 1, "retryOn": ["failed", "intermittent-task"]}}');
SELECT is(pg_temp.resolve('intermittent-task', 'a', 'b'), 'resolved retried', 'C12 the queue decides whether a retry is left');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.look('b'), 'exception 0: scheduled>exception/intermittent-task, pending 0: scheduled>exception/intermittent-task task-retry>pending', 'C12 whatever the worker requests');
ROLLBACK TO s;

SELECT pg_temp.create('a', '{"policy": {"delay": 600, "pendingTimeout": 300, "runTimeout": 900}}'), pg_temp.create('b', '{"policy": {"delay": 600, "pendingTimeout": 300, "runTimeout": 900}}');
SELECT is(pg_temp.pass('10 minutes'), 'delayed 2', 'C13 a delay');
SELECT pg_temp.take('b');
SELECT is(pg_temp.pass('14 minutes 30 seconds'), '', 'C13 the pending timeout is not yet over');
SELECT is(pg_temp.pass('15 minutes'), 'pending-timeout 1', 'C13 the delay counts once: over at 600 + 300 s');
SELECT is(pg_temp.pass('25 minutes'), 'run-timeout 1', 'C13 nor is it added to the time to run: over 900 s after the start');
ROLLBACK TO s;
SELECT pg_temp.resolved('x' || n, 'worker-shutdown', jsonb_build_object('policy', jsonb_build_object('retryBackoff', b::jsonb))) FROM (VALUES (1, '{"delay": 2147483647}'), (2, '{"delay": 2147483647, "kind": "linear", "factor": 1000}'), (3, '{"delay": 2147483647, "kind": "linear", "factor": 2147483647}'),
	(4, '{"delay": 2147483647, "kind": "linear", "factor": 1000, "max": 60}')) AS v (n, b);
SELECT is(extract(epoch FROM (pg_temp.run('x' || n) ->> 'visibleAt')::timestamptz) - extract(epoch FROM (pg_temp.run('x' || n) ->> 'scheduled')::timestamptz), w::numeric, 'C13 an unbounded delay is 2147483647 s, or the maximum: ' || n)
FROM (VALUES (1, 2147483647), (2, 2147483647), (3, 2147483647), (4, 60)) AS v (n, w);
-- 2 to the power of 48, by the second
SELECT pg_temp.create('y', '{"$deadline": "1 day", "policy": {"retries": 48, "retryBackoff": {"delay": 1, "kind": "exponential", "max": 1}}}');
CREATE FUNCTION pg_temp.fail_on(name text, times int) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. times LOOP
		PERFORM pg_temp.work(name, 'worker-shutdown');
		PERFORM set_config('tq.clock_offset', (pg_temp.shift() + interval '1 second')::text, false), tq.upkeep();
	END LOOP;
	RETURN pg_temp.state(name) || ' ' || (tq.status(pg_temp.id(name)) ->> 'retriesLeft') || ' ' || (pg_temp.run(name) ->> 'attempt') || ' ' || pg_temp.wait(name);
END
$$;
SELECT is(pg_temp.fail_on('y', 48), 'pending 0 48 00:00:01', 'C13 exponential growth up to attempt 48');
SELECT is(split_part(pg_temp.work('y', 'worker-shutdown'), ' ', 1), 'exception', 'C13 then the retries are used up');
ROLLBACK TO s;

SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"totalTimeout": 1800, "retries": 1, "lostRetries": 1, "claimTimeout": 300}}');
SELECT pg_temp.pass('5 minutes');
SELECT pg_temp.work('a', 'worker-shutdown'), pg_temp.work('a', 'worker-shutdown');
SELECT is(pg_temp.state('a'), 'exception', 'C14 all budgets are used up');
SELECT is(tq.rerun_task(pg_temp.id('a')) ->> 'retriesLeft', '1', 'C14 a rerun before the deadline has them again');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.state('a') || ' ' || pg_temp.attempts('a'), 'pending 0 0 1 0 0', 'C14 that of lost runs as well');
SELECT pg_temp.work('a', 'failed');
SET tq.clock_offset = '30 minutes';
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'C14 but the total time does not begin again: no rerun after it');
ROLLBACK TO s;

SELECT pg_temp.create('a', '{"policy": {"claimTimeout": 600, "lostRetries": 4}}');
SELECT pg_temp.take('a', 'anonymous');
SET tq.clock_offset = '8 minutes';
SELECT is((SELECT worker_group || ' ' || worker_id FROM tq.reclaim_task(pg_temp.id('a'), 0)), 'wg anonymous', 'C15 a worker without a name claims under a common one, and may reclaim');
SELECT is(pg_temp.pass('17 minutes'), '', 'C15 which prolongs the claim');
ROLLBACK TO s;

SELECT pg_temp.create(n, jsonb_build_object('$group', 'g-' || n, 'policy', '{"retries": 0, "onUnsuccessful": "cancel-group", "runTimeout": 600}'::jsonb)) FROM unnest('{timed-out,canceled,failed}'::text[]) AS n;
SELECT pg_temp.create('with-' || n, jsonb_build_object('$group', 'g-' || n)) FROM unnest('{timed-out,canceled,failed}'::text[]) AS n;
SELECT pg_temp.take(n) FROM unnest('{timed-out,canceled,failed}'::text[]) AS n;
SELECT pg_temp.resolve('canceled', 'canceled'), pg_temp.report('failed', 'failed');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.progress('g-' || n), line, 'C16 a task determines the outcome of its group, those that it cancels do not: ' || n) FROM (VALUES ('timed-out', '2: e2 timed-out'), ('canceled', '2: e2 canceled'), ('failed', '2: f1 e1 failed')) AS v (n, line);
ROLLBACK TO s;

SELECT is(tq.conductor_policy('{"timeoutSeconds": 600, "timeoutPolicy": "TIME_OUT_WF", "retryCount": 0}', '{"optional": true}') ->> 'onUnsuccessful', 'forgive', 'C17 optional takes precedence over TIME_OUT_WF');
SELECT pg_temp.running('a', jsonb_build_object('$group', 'g', 'policy', tq.conductor_policy('{"timeoutSeconds": 600, "responseTimeoutSeconds": 600, "timeoutPolicy": "TIME_OUT_WF", "retryCount": 0}', '{"optional": true}'))), pg_temp.create('b', '{"$group": "g"}');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.state('b'), 'exception 0: scheduled>exception/run-timeout, pending', 'C17 so its group goes on');
SELECT pg_temp.work('b', 'completed');
SELECT is(pg_temp.progress('g'), '2: c1 e1 t1 completed-with-errors', 'C17 and completes');
ROLLBACK TO s;

SET tq.max_runs = 4;
SELECT is(pg_temp.create('a', '{"$deadline": "1 day", "policy": {"retries": 1, "lostRetries": 2, "claimTimeout": 60}}'), 'pending 1: scheduled>pending', 'C18 the maximum of runs');
SELECT pg_temp.refuses('{"policy": {"retries": 2, "lostRetries": 2}}', 'C18 more are refused');
SELECT pg_temp.refuses('{"retries": 2, "policy": {"lostRetries": 2}}', 'C18 in whichever place the retries are set');
SELECT pg_temp.work('a', 'worker-shutdown');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('1 minute');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))), 'pending 0: scheduled>exception/worker-shutdown retry>exception/claim-expired retry>failed/failed rerun>pending', 'C18 a rerun that is the last run has no retries');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('2 minutes');
SELECT is(pg_temp.state('a') || ' ' || jsonb_array_length(tq.status(pg_temp.id('a')) -> 'runs'), 'exception 4', 'C18 nor is it retried when it is lost');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'C18 there is no fifth run');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Section 10
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(k, jsonb_build_object('$deadline', '1 day', 'policy', jsonb_build_object(k, NULL))) FROM unnest('{claimTimeout,runTimeout,pendingTimeout,totalTimeout}'::text[]) AS k;
SELECT pg_temp.take(n) FROM unnest('{claimTimeout,runTimeout}'::text[]) AS n;
SELECT is(pg_temp.pass('19 minutes 30 seconds'), '', '10 (1) null switches a timeout off');
ROLLBACK TO s;
SELECT pg_temp.create(k, jsonb_build_object('$deadline', '1 day', 'policy', jsonb_build_object(k, CASE k WHEN 'claimTimeout' THEN 0.001 ELSE 0 END))) FROM unnest('{claimTimeout,runTimeout,pendingTimeout,totalTimeout}'::text[]) AS k;
SELECT pg_temp.take(n) FROM unnest('{claimTimeout,runTimeout}'::text[]) AS n;
SELECT is(pg_temp.claims('test/q-pendingTimeout') || pg_temp.claims('test/q-totalTimeout'), '', '10 (1) 0 means at once: nothing is handed out');
SELECT is(pg_temp.pass(), 'deadline 1 run-timeout 1 pending-timeout 1 claim-expired 1', '10 (1) 0 means at once: with the first pass');
ROLLBACK TO s;
SELECT pg_temp.create('a', '{"policy": {"delay": 600, "pendingTimeout": 0}}');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', '10 (1) pendingTimeout 0: not before it is visible');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('a'), 'exception 5: scheduled>exception/pending-timeout', '10 (1) but as soon as it is');
ROLLBACK TO s;
SELECT is(p ? k, false, '10 (1) presets leave out keys that are 0 in Conductor: ' || k) FROM tq.conductor_policy('{"timeoutSeconds": 0, "responseTimeoutSeconds": null, "pollTimeoutSeconds": 0, "totalTimeoutSeconds": 0}') AS p, unnest('{runTimeout,claimTimeout,pendingTimeout,totalTimeout}'::text[]) AS k;

SELECT pg_temp.create('a', '{"delay": 60, "retries": 4, "policy": {"delay": 120, "retries": 2}}'), pg_temp.create('b', '{"retries": 4, "policy": {"delay": 120}}'), pg_temp.create('c', '{"delay": 60, "policy": {"retries": 2}}');
SELECT is(pg_temp.wait(n) || ' ' || (tq.status(pg_temp.id(n)) ->> 'retriesLeft'), w, '10 (2) the definition''s delay takes precedence, and the policy''s retries: ' || n) FROM (VALUES ('a', '00:01:00 2'), ('b', '00:02:00 4'), ('c', '00:01:00 2')) AS v (n, w);
ROLLBACK TO s;

SELECT pg_temp.create('a', '{"$deadline": "1 day", "policy": {"pendingTimeout": 1800, "claimTimeout": 600, "lostRetries": 3, "retryBackoff": {"delay": 300}}}'), pg_temp.create('b', '{"$deadline": "1 day", "policy": {"pendingTimeout": 1800, "claimTimeout": 600, "lostRetries": 3, "retryBackoff": {"delay": 300}}}');
SELECT pg_temp.take('a'), pg_temp.take('b');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('a'), 'pending 5: scheduled>exception/claim-expired retry>pending', '10 (3) a lost run is retried');
SELECT pg_temp.work('b', 'worker-shutdown');
SELECT is(pg_temp.pass('29 minutes 30 seconds'), 'delayed 1', '10 (3) it inherits the pending time, which is not yet over');
SELECT is(pg_temp.pass('30 minutes'), 'pending-timeout 1', '10 (3) it inherits the pending time, which is over');
SELECT is(pg_temp.look('a'), 'exception 5: scheduled>exception/claim-expired retry>exception/pending-timeout', '10 (3) so it is not claimed again');
SELECT is(pg_temp.state('b'), 'pending', '10 (3) a retry has its own');
SELECT is(pg_temp.pass('44 minutes 30 seconds'), '', '10 (3) from when it was visible');
SELECT is(pg_temp.pass('45 minutes'), 'pending-timeout 1', '10 (3) which is over in its turn');
ROLLBACK TO s;
-- until the first claim of an attempt: the deferred run, and then its retry
SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"pendingTimeout": 600, "claimTimeout": 300, "lostRetries": 3}}');
SELECT tq.defer_task(pg_temp.id('a'), 0, '20 minutes') ->> 'state';
SELECT is(pg_temp.pass('15 minutes'), '', '10 (3) a deferred run is not subject to it');
SELECT is(pg_temp.pass('25 minutes'), 'delayed 1', '10 (3) nor is it when it is due');
SELECT pg_temp.take('a');
SELECT ok(pg_temp.pass('30 minutes') LIKE '%claim-expired 1%', '10 (3) claimed again and lost');
SELECT is(pg_temp.look('a'), 'exception 5: scheduled>exception/claim-expired retry>exception/pending-timeout', '10 (3) its retry inherits a time that is over: both in one pass');
ROLLBACK TO s;
-- a rerun begins again
SELECT pg_temp.create('a', '{"$deadline": "1 day", "policy": {"pendingTimeout": 600}}');
SELECT pg_temp.pass('10 minutes');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.pass('19 minutes 30 seconds'), '', '10 (3) a rerun has a time of its own');
SELECT is(pg_temp.pass('20 minutes'), 'pending-timeout 1', '10 (3) which is as long');
ROLLBACK TO s;

SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"runTimeout": 1800, "claimTimeout": 600, "lostRetries": 3}}'), pg_temp.running('b', '{"$deadline": "1 day", "policy": {"runTimeout": 1800, "claimTimeout": 1200}}');
SET tq.clock_offset = '9 minutes';
SELECT lives_ok(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n), '10 (4) a reclaim of ' || n) FROM unnest('{a,b}'::text[]) AS n;
SELECT is(pg_temp.pass('20 minutes'), 'claim-expired 1', '10 (4) one of them is lost');
SELECT pg_temp.take('a');
SELECT tq.defer_task(pg_temp.id('b'), 0, '15 minutes') ->> 'state';
SELECT ok(pg_temp.pass('30 minutes') ~ 'run-timeout 1', '10 (4) the other is deferred, and its time is over: reclaim and defer do not begin it again');
SELECT is(pg_temp.look('b'), 'exception 5: scheduled>exception/run-timeout', '10 (4) it is an exception');
ROLLBACK TO s;
SELECT pg_temp.running('a', '{"$deadline": "1 day", "policy": {"runTimeout": 900, "claimTimeout": 600, "lostRetries": 3}}');
SELECT pg_temp.pass('10 minutes');
SELECT pg_temp.take('a');
SET tq.clock_offset = '19 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 1)$$, '10 (4) the retry of a lost run');
SELECT is(pg_temp.pass('24 minutes 30 seconds'), '', '10 (4) has a clock of its own: 15 minutes after the first began, it runs');
SELECT is(pg_temp.pass('25 minutes'), 'run-timeout 1', '10 (4) until 15 minutes after its own start');
ROLLBACK TO s;

SELECT pg_temp.create('a', '{"$deadline": "1 day", "policy": {"pendingTimeout": 300, "runTimeout": 600, "claimTimeout": 600, "totalTimeout": 900, "timeoutAlertOnly": true, "retries": 2, "retryOn": ["failed", "pending-timeout", "run-timeout", "claim-expired"], "onUnsuccessful": "cancel-group", "deadLetter": true}, "$group": "g"}'), pg_temp.create('b', '{"$group": "g"}');
SELECT pg_temp.pass('20 minutes');
SELECT is(pg_temp.look('a'), 'pending 2: scheduled>pending', '10 (5) alert only: whichever timeout has passed, nothing changes');
SELECT is(pg_temp.work('a', 'failed'), 'pending 1: scheduled>failed/failed failure-retry>pending', '10 (5) a total time that is over does not prevent a retry');
SELECT pg_temp.take('a');
SELECT ok(pg_temp.pass('31 minutes') ~ 'claim-expired 1', '10 (5) a claim expires all the same: it is not a timeout that only alerts');
SELECT is(pg_temp.look('a'), 'pending 0: scheduled>failed/failed failure-retry>exception/claim-expired retry>pending', '10 (5) and is retried');
SELECT is(pg_temp.state('b'), 'pending', '10 (5) its group goes on');
ROLLBACK TO s;

SELECT pg_temp.running(n, '{"policy": {"onUnsuccessful": "cancel-group"}, "$group": "g"}') FROM unnest('{a,b}'::text[]) AS n;
SELECT pg_temp.create('c', '{"$group": "g"}');
SELECT pg_temp.report('a', 'canceled');
SELECT is(pg_temp.state('b') || ' ' || pg_temp.state('c'), 'running pending', '10 (6) not a cancel by a client');
SELECT pg_temp.resolve('canceled', 'b');
SELECT is(pg_temp.state('c'), 'exception', '10 (6) but a report of its worker as canceled; the group need not be sealed');
ROLLBACK TO s;
SELECT pg_temp.running(n, '{"policy": {"onUnsuccessful": "cancel-group"}, "$group": "g"}') FROM unnest('{a,b}'::text[]) AS n;
SELECT pg_temp.create('c', '{"$group": "g"}'), pg_temp.create('d', '{"$group": "g", "$deps": ["c"], "requires": "all-resolved"}'), pg_temp.create('o', '{"policy": {"onUnsuccessful": "forgive"}, "$group": "g"}'), pg_temp.create('after-o', '{"$deps": ["o"]}');
SELECT tq.seal_task_group(pg_temp.id('g')) IS NULL;
SELECT is(tq.cancel_task_group(pg_temp.id('g')) ->> 'cancelledCount', '5', '10 (6) cancel_task_group counts all that it changed');
SELECT is(pg_temp.progress('g'), '5: e5 canceled', '10 (6) none of them is forgiven');
SELECT is(pg_temp.state('after-o'), 'unscheduled', '10 (6) nor are dependents released');
ROLLBACK TO s;

SELECT pg_temp.running(n, jsonb_build_object('$group', 'g', 'policy', jsonb_build_object('onUnsuccessful', e))) FROM (VALUES (1, 'a', 'forgive'), (2, 'b', 'tolerate'), (3, 'c', 'block')) AS v (i, n, e) ORDER BY i;
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.progress('g'), '3: r2 f1 t1 -', '10 (7) no outcome while active');
SAVEPOINT inner_savepoint;
SELECT pg_temp.report('b', 'completed'), pg_temp.report('c', 'completed');
SELECT is(pg_temp.progress('g'), '3: c2 f1 t1 completed-with-errors', '10 (7) only forgiven ones');
ROLLBACK TO inner_savepoint;
SELECT pg_temp.report('b', 'internal-error'), pg_temp.report('c', 'completed');
SELECT is(pg_temp.progress('g'), '3: c1 f1 e1 t2 failed', '10 (7) one that is tolerated: the group has failed');
ROLLBACK TO s;

SELECT pg_temp.resolved('a', 'failed', '{"policy": {"retryOn": ["failed"]}}');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('a'), 0)$$, 'a', '10 (8) a repeat while one run follows: the same answer');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('a'), '{0}', 'failed')), 'repeated', '10 (8) in a batch: repeated');
SELECT pg_temp.take('a');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('a'), 0)$$, 'a', '10 (8) also when it runs');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('a'), '{0}', 'failed-terminal')), 'conflict', '10 (8) another reason, though it is failed too');
SELECT pg_temp.report('a', 'failed', 1);
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('a'), 0)$$, 'TQ409', '10 (8) when two runs follow: a conflict');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('a'), '{0}', 'failed')), 'conflict', '10 (8) in a batch, too');
ROLLBACK TO s;

-- 10 (9), the message of skip_task: policy_messages.sql

SELECT pg_temp.create('u', '{"$deps": ["u"]}'), pg_temp.create('p'), pg_temp.create('d', '{"delay": 60}'), pg_temp.running('r'), pg_temp.running('w'), pg_temp.resolved('c', 'completed'), pg_temp.resolved('f', 'failed'), pg_temp.resolved('x', 'canceled'), pg_temp.create('s'),
	pg_temp.resolved('cwe', 'failed', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('cwe2', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('ft'), pg_temp.resolved('xf', 'canceled', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('t', '{"policy": {"runTimeout": 0}}');
SELECT tq.skip_task(pg_temp.id('s')) ->> 'state', tq.defer_task(pg_temp.id('w'), 0, '1 minute') ->> 'state', pg_temp.resolve('canceled', 'cwe2'), pg_temp.resolve('failed-terminal', 'ft'), pg_temp.pass();
SELECT is(tq.conductor_status(pg_temp.id(n)), c, '10 (10) conductor_status: ' || n) FROM (VALUES ('u', NULL), ('p', 'SCHEDULED'), ('d', 'SCHEDULED'), ('r', 'IN_PROGRESS'), ('w', 'SCHEDULED'), ('c', 'COMPLETED'), ('f', 'FAILED'), ('x', 'CANCELED'), ('s', 'SKIPPED'),
	('cwe', 'COMPLETED_WITH_ERRORS'), ('cwe2', 'COMPLETED_WITH_ERRORS'), ('ft', 'FAILED_WITH_TERMINAL_ERROR'), ('xf', 'CANCELED'), ('t', 'TIMED_OUT')) AS v (n, c);
SELECT is(tq.taskbroker_status(pg_temp.id(n)), b, '10 (10) taskbroker_status: ' || n) FROM (VALUES ('p', 'pending'), ('d', 'delay'), ('r', 'processing'), ('w', 'delay'), ('c', 'complete'), ('f', 'failure'), ('s', 'complete'), ('ft', 'failure'), ('t', 'failure')) AS v (n, b);
ROLLBACK TO s;

-- 10 (11), limits of queues, is not part of this.

SELECT is(pg_temp.create('a', '{"$deadline": "4 days", "delay": "3 days"}'), 'pending 5: scheduled>pending', '10 (12) a delay of days, below the deadline');
SELECT is(pg_temp.wait('a'), interval '3 days', '10 (12) which it is');
SELECT pg_temp.refuses('{"$deadline": "4 days", "delay": "5 days"}', '10 (12) not past the deadline');
ROLLBACK TO s;

SELECT pg_temp.resolved('a', 'failed', '{"policy": {"deadLetter": true, "retries": 2}}'), pg_temp.resolved('b', 'failed', '{"policy": {"deadLetter": true, "retries": 2, "claimTimeout": 60}}'), pg_temp.resolved('c', 'failed');
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('a'))), 'pending 2: scheduled>failed/failed rerun>pending', '10 (13) a redrive before the deadline is a rerun with fresh budgets');
SELECT is(pg_temp.letters('test/q-a'), '', '10 (13) its dead letter is deleted');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('a'))$$, 'TQ404', '10 (13) so there is none to be redriven');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('c'))$$, 'TQ404', '10 (13) nor of a task that has none');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('nobody'))$$, 'TQ404', '10 (13) nor of one that does not exist');
SET tq.clock_offset = '61 minutes';
CREATE TEMP TABLE again AS SELECT tq.redrive(pg_temp.id('b')) AS status;
SELECT isnt(status ->> 'taskId', pg_temp.id('b')::text, '10 (13) after the deadline it is a new task') FROM again;
SELECT is(tq.task((status ->> 'taskId')::tq.slugid) #>> '{extra,redriveOf}', pg_temp.id('b')::text, '10 (13) which names the old') FROM again;
SELECT is(tq.task((status ->> 'taskId')::tq.slugid) -> 'policy', tq.task(pg_temp.id('b')) -> 'policy', '10 (13) with the same policy') FROM again;
SELECT is(pg_temp.line(status) || ', ' || (status ? 'runDetails'), 'pending 2: scheduled>pending, false', '10 (13) pending') FROM again;
SELECT ok((status ->> 'deadline')::timestamptz - pg_temp.clock() BETWEEN interval '59 minutes' AND interval '61 minutes', '10 (13) and a deadline as far away as it was') FROM again;
SELECT is(pg_temp.letters('test/q-b'), '', '10 (13) the dead letter is deleted as well');
ROLLBACK TO s;

SELECT pg_temp.running(n, p::jsonb) FROM (VALUES ('r', '{"policy": {"retryOn": ["failed", "worker-shutdown"], "deadLetter": true}, "$deadline": "10 minutes"}'), ('plain', '{"$deadline": "10 minutes"}'), ('t', '{"policy": {"totalTimeout": 600}}'), ('b', '{"policy": {"retryBackoff": {"delay": 600}}, "$deadline": "12 minutes"}')) AS v (n, p);
SET tq.clock_offset = '9 minutes';
SELECT is(pg_temp.report('b', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '10 (14) a retry that will be due after the deadline is allowed');
SET tq.clock_offset = '10 minutes';
SELECT is(pg_temp.report('r', 'failed'), 'failed 5: scheduled>failed/failed', '10 (14) no retry past the deadline: final');
SELECT is(pg_temp.letters('test/q-r'), 'r failed', '10 (14) with a dead letter');
SELECT is(pg_temp.report('plain', 'worker-shutdown'), 'exception 5: scheduled>exception/worker-shutdown', '10 (14) also without a policy');
SELECT is(pg_temp.report('t', 'intermittent-task'), 'exception 5: scheduled>exception/intermittent-task', '10 (14) also past the total time');
SELECT is(pg_temp.pass('12 minutes'), 'deadline 1', '10 (14) a delayed run is resolved by the deadline');
SELECT is(pg_temp.look('b'), 'exception 4: scheduled>exception/worker-shutdown retry>exception/deadline-exceeded', '10 (14) which resolves it');
ROLLBACK TO s;
-- nor when a claim expires, or a timeout is over, past the deadline that upkeep() has not yet processed
SET tq.deadline_delay = '1h';
SELECT pg_temp.running('c', '{"policy": {"claimTimeout": 900, "lostRetries": 3}, "$deadline": "10 minutes"}'), pg_temp.running('r', '{"policy": {"runTimeout": 900, "retryOn": ["run-timeout"]}, "$deadline": "10 minutes"}'), pg_temp.create('p', '{"policy": {"pendingTimeout": 900, "retryOn": ["pending-timeout"]}, "$deadline": "10 minutes"}');
SELECT pg_temp.pass('16 minutes');
SELECT is((SELECT string_agg(jsonb_array_length(tq.status(pg_temp.id(n)) -> 'runs')::text, ' ') FROM unnest('{c,r,p}'::text[]) AS n), '1 1 1', '10 (14) nor does upkeep() create one');
SELECT pg_temp.pass('71 minutes');
SELECT is((SELECT string_agg(pg_temp.state(n), ' ') FROM unnest('{c,r,p}'::text[]) AS n), 'exception exception exception', '10 (14) in the end all are exceptions');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
