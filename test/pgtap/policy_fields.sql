-- doc/spec/policy.md 2: each field of a policy alone: absent, set, 0, null.
BEGIN;
\ir policy.psql

-- A task with such a policy, or with none when there is no key.
CREATE FUNCTION pg_temp.given(name text, key text, value jsonb, overrides jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, '{"$deadline": "1 day"}'::jsonb || jsonb_build_object('policy', jsonb_build_object(key, value)) || overrides)
$$;

-- The reasons after which another run may follow, with its
-- reasonCreated, except timeouts.
CREATE TEMP TABLE reasons (reason text, created text, plain bool);
INSERT INTO reasons VALUES ('failed', 'failure-retry', false), ('worker-shutdown', 'retry', true), ('intermittent-task', 'task-retry', true),
	('resource-unavailable', 'retry', false), ('internal-error', 'retry', false);

-- ---------------------------------------------------------------------------
-- 1 retries
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT is(pg_temp.create('none'), 'pending 5: scheduled>pending', 'retries: 5 by default');
SELECT is(pg_temp.create('empty', '{"policy": {}}'), 'pending 5: scheduled>pending', 'retries: 5 by default with an empty policy');
SELECT is(pg_temp.given('other', 'deadLetter', 'true', '{"retries": 2}'), 'pending 2: scheduled>pending', 'retries: the definition''s, if the policy has none');
SELECT is(pg_temp.given('null', 'retries', 'null', '{"retries": 2}'), 'pending 2: scheduled>pending', 'retries null: the definition''s');
SELECT is(pg_temp.given('both', 'retries', '1', '{"retries": 2}'), 'pending 1: scheduled>pending', 'retries 1 takes precedence over the definition''s');
SELECT is(tq.task(pg_temp.id('both')) -> 'retries', '1', 'retries 1 is what the definition shows');
SELECT is(pg_temp.given('zero', 'retries', '0'), 'pending 0: scheduled>pending', 'retries 0');
SELECT is(pg_temp.work('zero', 'worker-shutdown'), 'exception 0: scheduled>exception/worker-shutdown', 'retries 0: the first run is the last');
SELECT is(pg_temp.work('both', 'worker-shutdown'), 'pending 0: scheduled>exception/worker-shutdown retry>pending', 'retries 1: a second run');
SELECT is(pg_temp.attempts('both'), '0 1', 'retries 1: the second is attempt 1');
SELECT is(pg_temp.run('both') ->> 'attempt', '1', 'retries 1: as its run shows');
SELECT is(pg_temp.run('both', 0) ? 'attempt', false, 'retries 1: attempt 0 of run 0 is not shown');
SELECT is(pg_temp.work('both', 'intermittent-task'), 'exception 0: scheduled>exception/worker-shutdown retry>exception/intermittent-task', 'retries 1: and no third');
SELECT is(pg_temp.given('most', 'retries', '49'), 'pending 49: scheduled>pending', 'retries 49, which is the maximum');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 2 retryOn
-- ---------------------------------------------------------------------------

SELECT pg_temp.given('d-' || reason, 'deadLetter', 'false') FROM reasons;
SELECT is(pg_temp.work('d-' || reason, reason), CASE WHEN plain THEN format('pending 4: scheduled>exception/%s %s>pending', reason, created)
	ELSE format('%1$s 5: scheduled>%1$s/%2$s', CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END, reason) END, 'retryOn by default: ' || reason) FROM reasons;
ROLLBACK TO s;
SELECT pg_temp.given('n-' || reason, 'retryOn', 'null') FROM reasons;
SELECT is(split_part(pg_temp.work('n-' || reason, reason), ' ', 1) = 'pending', plain, 'retryOn null: the default, ' || reason) FROM reasons;
ROLLBACK TO s;
SELECT pg_temp.given('o-' || reason, 'retryOn', jsonb_build_array(reason)) FROM reasons;
SELECT is(pg_temp.work('o-' || reason, reason), format('pending 4: scheduled>%s/%s %s>pending', CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END, reason, created),
	format('retryOn only %s: retried', reason)) FROM reasons;
SELECT is(pg_temp.attempts('o-' || reason), '0 1', format('retryOn only %s: a new attempt', reason)) FROM reasons;
SELECT is(pg_temp.wait('o-' || reason), interval '0', format('retryOn only %s: at once', reason)) FROM reasons;
ROLLBACK TO s;
-- A reason that is not listed is final.
SELECT pg_temp.given('x-' || r.reason, 'retryOn', (SELECT jsonb_agg(o.reason) FROM reasons AS o WHERE o.reason <> r.reason)) FROM reasons AS r;
SELECT is(pg_temp.work('x-' || reason, reason), format('%1$s 5: scheduled>%1$s/%2$s', CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END, reason),
	format('retryOn all but %s: final', reason)) FROM reasons;
ROLLBACK TO s;
SELECT pg_temp.given('e-' || reason, 'retryOn', '[]') FROM reasons;
SELECT is(split_part(pg_temp.work('e-' || reason, reason), ' ', 1), CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END, 'retryOn of nothing: final, ' || reason) FROM reasons;
ROLLBACK TO s;
SELECT pg_temp.given('m', 'retryOn', '["failed", "internal-error"]');
SELECT is(pg_temp.work('m', 'malformed-payload'), 'exception 5: scheduled>exception/malformed-payload', 'retryOn: malformed-payload is never retried');
ROLLBACK TO s;
SELECT pg_temp.given('c1', 'retryOn', '["claim-expired"]'), pg_temp.given('c2', 'retryOn', '["failed"]'), pg_temp.given('c3', 'retries', '3');
SELECT pg_temp.take(n) FROM unnest('{c1,c2,c3}'::text[]) AS n;
SELECT is(pg_temp.pass('20 minutes'), 'claim-expired 3', 'retryOn claim-expired: three claims expire');
SELECT is(pg_temp.look(n), line, 'retryOn claim-expired: ' || what) FROM (VALUES
	('c1', 'pending 4: scheduled>exception/claim-expired retry>pending', 'given'),
	('c2', 'exception 5: scheduled>exception/claim-expired', 'not given'),
	('c3', 'pending 2: scheduled>exception/claim-expired retry>pending', 'by default')) AS v (n, line, what);
ROLLBACK TO s;
SELECT pg_temp.create(n, jsonb_build_object('$deadline', '1 day', 'policy', p::jsonb)) FROM (VALUES
	('p1', '{"pendingTimeout": "10 minutes", "retryOn": ["pending-timeout"]}'), ('p2', '{"pendingTimeout": "10 minutes"}'),
	('r1', '{"runTimeout": "10 minutes", "retryOn": ["run-timeout"]}'), ('r2', '{"runTimeout": "10 minutes"}')) AS v (n, p);
SELECT pg_temp.take('r1'), pg_temp.take('r2');
SELECT is(pg_temp.pass('10 minutes'), 'run-timeout 2 pending-timeout 2', 'retryOn of timeouts: four have passed');
SELECT is(pg_temp.look(n), line, 'retryOn of timeouts: ' || what) FROM (VALUES
	('p1', 'pending 4: scheduled>exception/pending-timeout retry>pending', 'pending-timeout is listed'),
	('p2', 'exception 5: scheduled>exception/pending-timeout', 'pending-timeout, by default not'),
	('r1', 'pending 4: scheduled>exception/run-timeout retry>pending', 'run-timeout is listed'),
	('r2', 'exception 5: scheduled>exception/run-timeout', 'run-timeout, by default not')) AS v (n, line, what);
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 3 lostRetries
-- ---------------------------------------------------------------------------

SELECT pg_temp.given('none', 'retries', '2'), pg_temp.given('null', 'lostRetries', 'null'), pg_temp.given('zero', 'lostRetries', '0'), pg_temp.given('one', 'lostRetries', '1');
SELECT pg_temp.take(n) FROM unnest('{none,"null",zero,one}'::text[]) AS n;
SELECT is(pg_temp.pass('20 minutes'), 'claim-expired 4', 'lostRetries: four runs are lost');
SELECT is(pg_temp.look('none'), 'pending 1: scheduled>exception/claim-expired retry>pending', 'lostRetries by default: retries are used');
SELECT is(pg_temp.attempts('none'), '0 1', 'lostRetries by default: for a new attempt');
SELECT is(pg_temp.look('null'), 'pending 4: scheduled>exception/claim-expired retry>pending', 'lostRetries null: retries are used');
SELECT is(pg_temp.attempts('null'), '0 1', 'lostRetries null: for a new attempt');
SELECT is(pg_temp.look('zero'), 'exception 5: scheduled>exception/claim-expired', 'lostRetries 0: final, with all retries left');
SELECT is(pg_temp.look('one'), 'pending 5: scheduled>exception/claim-expired retry>pending', 'lostRetries 1: the retries are kept');
SELECT is(pg_temp.attempts('one'), '0 0', 'lostRetries 1: the same attempt continues');
SELECT is(pg_temp.run('one') -> 'attempt', '0', 'lostRetries 1: as its run shows, which is not the first');
SELECT pg_temp.take('one');
SELECT is(pg_temp.pass('40 minutes'), 'claim-expired 1', 'lostRetries 1: lost again');
SELECT is(pg_temp.look('one'), 'exception 5: scheduled>exception/claim-expired retry>exception/claim-expired', 'lostRetries 1: that exceeds the limit');
ROLLBACK TO s;
SELECT pg_temp.given('a', 'lostRetries', '2');
SELECT is(pg_temp.work('a', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'lostRetries: other reasons use retries');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 4 retryBackoff
-- ---------------------------------------------------------------------------

-- The delays of the first retries of a task that always fails.
CREATE FUNCTION pg_temp.waits(name text, backoff jsonb, n int DEFAULT 3) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	result text := '';
BEGIN
	PERFORM pg_temp.given(name, 'retryBackoff', backoff);
	FOR i IN 1 .. n LOOP
		PERFORM pg_temp.work(name, 'worker-shutdown');
		result := concat_ws(' ', nullif(result, ''), trim_scale(extract(epoch FROM pg_temp.wait(name))::numeric));
		PERFORM set_config('tq.clock_offset', (pg_temp.shift() + pg_temp.wait(name))::text, false), tq.upkeep();
	END LOOP;
	RETURN result;
END
$$;

SELECT is(pg_temp.waits('b' || n, backoff::jsonb), wanted, format('retryBackoff %s: waits %s', backoff, wanted))
FROM (VALUES (1, 'null', '0 0 0'), (2, '{}', '0 0 0'), (3, '{"kind": "exponential"}', '0 0 0'),
	(4, '{"delay": 0, "kind": "linear", "factor": 3}', '0 0 0'), (5, '{"delay": null, "kind": null, "factor": null, "max": null, "jitter": null}', '0 0 0'),
	(6, '{"delay": 60}', '60 60 60'), (7, '{"delay": 60, "kind": "fixed"}', '60 60 60'), (8, '{"delay": 60, "kind": null}', '60 60 60'),
	(9, '{"delay": 60, "kind": "fixed", "factor": 3}', '60 60 60'), (10, '{"delay": "1 minute 500 ms"}', '60.5 60.5 60.5'), (11, '{"delay": 0.25}', '0.25 0.25 0.25'),
	(12, '{"delay": 60, "kind": "linear"}', '60 120 180'), (13, '{"delay": 60, "kind": "linear", "factor": null}', '60 120 180'),
	(14, '{"delay": 60, "kind": "linear", "factor": 2}', '120 240 360'),
	(15, '{"delay": 60, "kind": "exponential"}', '60 120 240'), (16, '{"delay": 60, "kind": "exponential", "factor": 5}', '60 120 240'),
	(17, '{"delay": 60, "max": 10}', '10 10 10'), (18, '{"delay": 60, "max": "2 hours"}', '60 60 60'),
	(19, '{"delay": 60, "kind": "linear", "factor": 2, "max": 250}', '120 240 250'),
	(20, '{"delay": 60, "kind": "exponential", "max": 200}', '60 120 200'),
	(21, '{"delay": 10, "kind": "exponential", "max": 0}', '10 20 40'), (22, '{"delay": 10, "kind": "exponential", "max": null}', '10 20 40'),
	(23, '{"delay": 30, "jitter": 0}', '30 30 30'), (24, '{"delay": 30, "jitter": null}', '30 30 30')) AS v (n, backoff, wanted) ORDER BY n;
ROLLBACK TO s;
SELECT pg_temp.given('j' || n, 'retryBackoff', '{"delay": 60, "jitter": 2}') FROM generate_series(1, 20) AS n;
SELECT pg_temp.work('j' || n, 'worker-shutdown') FROM generate_series(1, 20) AS n;
SELECT ok(min(w) >= interval '60 seconds' AND max(w) <= interval '62 seconds', 'retryBackoff jitter 2: from 60 to 62 s') FROM generate_series(1, 20) AS n, pg_temp.wait('j' || n) AS w;
SELECT ok(count(DISTINCT w) > 1, 'retryBackoff jitter 2: not always the same') FROM generate_series(1, 20) AS n, pg_temp.wait('j' || n) AS w;
SELECT pg_temp.given('k' || n, 'retryBackoff', '{"delay": 60, "max": 10, "jitter": "2 seconds"}') FROM generate_series(1, 20) AS n;
SELECT pg_temp.work('k' || n, 'worker-shutdown') FROM generate_series(1, 20) AS n;
SELECT ok(min(w) >= interval '10 seconds' AND max(w) <= interval '12 seconds' AND max(w) > interval '10 seconds', 'retryBackoff jitter is added after the limit by max')
FROM generate_series(1, 20) AS n, pg_temp.wait('k' || n) AS w;
SELECT pg_temp.given('l' || n, 'retryBackoff', '{"jitter": 5}') FROM generate_series(1, 20) AS n;
SELECT pg_temp.work('l' || n, 'worker-shutdown') FROM generate_series(1, 20) AS n;
SELECT ok(max(w) <= interval '5 seconds' AND max(w) > interval '0', 'retryBackoff jitter alone delays too') FROM generate_series(1, 20) AS n, pg_temp.wait('l' || n) AS w;
ROLLBACK TO s;

-- A delayed run is not claimable.
SELECT pg_temp.given('a', 'retryBackoff', '{"delay": 600}');
SELECT is(pg_temp.wait('a'), interval '0', 'retryBackoff: the first run is not delayed');
SELECT pg_temp.work('a', 'worker-shutdown');
SELECT is(pg_temp.claims('test/q-a'), '', 'retryBackoff: a delayed run is not handed out');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 1, 'wg', 'w1')$$, 'TQ409', 'retryBackoff: nor by its id');
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 0::bigint, 'retryBackoff: it is not counted as pending');
SELECT is(pg_temp.progress('a'), '1: d1 -', 'retryBackoff: but as delayed');
SELECT is(pg_temp.state('a'), 'pending', 'retryBackoff: its state is pending');
SELECT is(pg_temp.pass('570 seconds'), '', 'retryBackoff: not before its time');
SELECT is(pg_temp.pass('600 seconds'), 'delayed 1', 'retryBackoff: but then');
SELECT is(pg_temp.take('a'), 1, 'retryBackoff: it is handed out');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 5 claimTimeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none'), pg_temp.given('null', 'claimTimeout', 'null'), pg_temp.given('given', 'claimTimeout', '"5 minutes"'), pg_temp.given('long', 'claimTimeout', '2147483647'), pg_temp.given('short', 'claimTimeout', '0.001');
SELECT pg_temp.take(n) FROM unnest('{none,"null",given,long,short}'::text[]) AS n;
SELECT is(pg_temp.claimed_for('none'), interval '20 minutes', 'claimTimeout: 20 minutes without a policy');
SELECT is(pg_temp.claimed_for('null'), interval '20 minutes', 'claimTimeout null: the same');
SELECT is(pg_temp.claimed_for('given'), interval '5 minutes', 'claimTimeout 5 minutes: takenUntil');
SELECT is(extract(epoch FROM pg_temp.claimed_for('long')), 2147483647::numeric, 'claimTimeout of 68 years');
SELECT is(pg_temp.claimed_for('short'), interval '1 ms', 'claimTimeout of a millisecond: a claim is over at once');
SELECT is(pg_temp.pass(), 'claim-expired 1', 'claimTimeout of a millisecond: upkeep() expires it');
SELECT is(pg_temp.look('short'), 'pending 4: scheduled>exception/claim-expired retry>pending', 'claimTimeout of a millisecond: the next pass retries it');
SET tq.clock_offset = '4 minutes';
SELECT is((c.taken_until - pg_temp.clock()) BETWEEN interval '4 minutes 30 seconds' AND interval '5 minutes', true, 'claimTimeout 5 minutes: from a reclaim on') FROM tq.reclaim_task(pg_temp.id('given'), 0) AS c;
SELECT is(pg_temp.pass('8 minutes 30 seconds'), '', 'claimTimeout 5 minutes: a reclaimed run stays claimed');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), 'claim-expired 1', 'claimTimeout 5 minutes: then it expires');
SELECT is(pg_temp.look('given'), 'pending 4: scheduled>exception/claim-expired retry>pending', 'claimTimeout 5 minutes: and is retried');
SELECT is((SELECT taken_until - (pg_temp.run('given') ->> 'scheduled')::timestamptz < interval '6 minutes' FROM tq.claim_task(pg_temp.id('given'), 1, 'wg', 'w1')), true, 'claimTimeout 5 minutes: also by claim_task');
SELECT is(pg_temp.claimed_for('given'), interval '5 minutes', 'claimTimeout 5 minutes: of the next run too');
SET tq.claim_timeout = '1min';
SELECT pg_temp.given('other', 'retries', '1'), pg_temp.given('two', 'claimTimeout', '120');
SELECT pg_temp.take('other'), pg_temp.take('two');
SELECT is(pg_temp.claimed_for('other') || ' ' || pg_temp.claimed_for('two'), '00:01:00 00:02:00', 'claimTimeout: tq.claim_timeout applies to tasks without one');
-- Claims of one call, each with its own timeout.
SELECT pg_temp.given('m1', 'claimTimeout', '30', '{"taskQueueId": "test/m"}'), pg_temp.create('m2', '{"taskQueueId": "test/m"}'), pg_temp.given('m3', 'claimTimeout', '600', '{"taskQueueId": "test/m"}');
SELECT is(pg_temp.claims('test/m'), 'm1 m2 m3', 'claimTimeout: three in one call');
SELECT is(string_agg(pg_temp.claimed_for(n)::text, ' ' ORDER BY n), '00:00:30 00:01:00 00:10:00', 'claimTimeout: each for its own timeout') FROM unnest('{m1,m2,m3}'::text[]) AS n;
SELECT pg_temp.given('m4', 'claimTimeout', '77');
CREATE TEMP TABLE claim AS SELECT * FROM tq.claim_work('test/q-m4', 'wg', 'w1');
SELECT is(pg_temp.iso(taken_until), pg_temp.run('m4') ->> 'takenUntil', 'claimTimeout: a claim and the status show the same') FROM claim;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 6 runTimeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none', '{"$deadline": "1 day"}'), pg_temp.given('null', 'runTimeout', 'null'), pg_temp.given('given', 'runTimeout', '"10 minutes"'), pg_temp.given('zero', 'runTimeout', '0'), pg_temp.given('wait', 'runTimeout', '600');
SELECT is(pg_temp.pass(), '', 'runTimeout: nothing runs yet');
SELECT pg_temp.take(n) FROM unnest('{none,"null",given,zero}'::text[]) AS n;
SELECT is(pg_temp.pass(), 'run-timeout 1', 'runTimeout 0: over at once');
SELECT is(pg_temp.look('zero'), 'exception 5: scheduled>exception/run-timeout', 'runTimeout 0: an exception, final by default');
SELECT is(pg_temp.keys(pg_temp.run('zero')), 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'runTimeout 0: its run has the usual keys');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'runTimeout 10 minutes: not before');
SELECT lives_ok(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n), 'runTimeout: reclaim ' || n) FROM unnest('{none,"null",given}'::text[]) AS n;
SET tq.clock_offset = '10 minutes';
SELECT is(pg_temp.state('given'), 'running', 'runTimeout 10 minutes: it is running until the next pass');
SELECT is(pg_temp.pass(), 'run-timeout 1', 'runTimeout 10 minutes: then it is over, though it was reclaimed');
SELECT is(pg_temp.look('given'), 'exception 5: scheduled>exception/run-timeout', 'runTimeout 10 minutes: an exception');
SELECT is(pg_temp.run('given') ->> 'workerId', 'w1', 'runTimeout 10 minutes: of that worker');
SELECT pg_temp.throws(format('SELECT tq.%s', f), 'TQ409', 'runTimeout: its worker is refused, ' || f)
FROM unnest(ARRAY['report_completed(pg_temp.id(''given''), 0)', 'report_failed(pg_temp.id(''given''), 0)', 'reclaim_task(pg_temp.id(''given''), 0)', 'defer_task(pg_temp.id(''given''), 0, ''1 minute'')']) AS f;
SELECT is(pg_temp.state('none') || ' ' || pg_temp.state('null'), 'running running', 'runTimeout null: none, and none without a policy');
SELECT is(pg_temp.state('wait'), 'pending', 'runTimeout: not for a pending run');
SELECT is(pg_temp.pass('29 minutes'), '', 'runTimeout: once');
ROLLBACK TO s;
-- A report before the next pass counts (section 5).
SELECT pg_temp.given(n, 'runTimeout', '600') FROM unnest('{a,b}'::text[]) AS n;
SELECT pg_temp.take(n) FROM unnest('{a,b}'::text[]) AS n;
SET tq.clock_offset = '11 minutes';
SELECT is(pg_temp.report('a', 'completed'), 'completed 5: scheduled>completed/completed', 'runTimeout: over, but before the next pass: completed');
SELECT is(pg_temp.report('b', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'runTimeout: over, but before the next pass: retried');
SELECT is(pg_temp.pass(), '', 'runTimeout: upkeep() does not change the next run');
SELECT pg_temp.take('b');
SELECT is(pg_temp.pass('20 minutes 30 seconds'), '', 'runTimeout: it counts from the start of each run');
SELECT is(pg_temp.pass('21 minutes'), 'run-timeout 1', 'runTimeout: which is over in its turn');
SELECT is(pg_temp.look('b'), 'exception 4: scheduled>exception/worker-shutdown retry>exception/run-timeout', 'runTimeout: of the second run');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 7 pendingTimeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none', '{"$deadline": "1 day"}'), pg_temp.given('null', 'pendingTimeout', 'null'), pg_temp.given('given', 'pendingTimeout', '"10 minutes"'), pg_temp.given('zero', 'pendingTimeout', '0'),
	pg_temp.given('taken', 'pendingTimeout', '600'), pg_temp.given('unscheduled', 'pendingTimeout', '600', '{"$deps": ["none"]}');
SELECT is(pg_temp.look('zero'), 'pending 5: scheduled>pending', 'pendingTimeout 0: pending at first');
SELECT is(pg_temp.claims('test/q-zero'), '', 'pendingTimeout 0: but never handed out');
SELECT is(pg_temp.pass(), 'pending-timeout 1', 'pendingTimeout 0: over at once');
SELECT is(pg_temp.look('zero'), 'exception 5: scheduled>exception/pending-timeout', 'pendingTimeout 0: an exception, final by default');
SELECT is(pg_temp.keys(pg_temp.run('zero')), 'reasonCreated reasonResolved resolved runId scheduled state', 'pendingTimeout 0: with no worker');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'pendingTimeout 10 minutes: not before');
SELECT is(pg_temp.take('taken'), 0, 'pendingTimeout 10 minutes: until then it is handed out');
SET tq.clock_offset = '10 minutes';
SELECT is(pg_temp.state('given'), 'pending', 'pendingTimeout 10 minutes: it stays until the next pass');
SELECT is(pg_temp.claims('test/q-given'), '', 'pendingTimeout 10 minutes: but is no longer handed out');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('given'), 0, 'wg', 'w1')$$, 'TQ409', 'pendingTimeout 10 minutes: nor by its id');
SELECT is(pg_temp.pass(), 'pending-timeout 1', 'pendingTimeout 10 minutes: then it is over');
SELECT is(pg_temp.look('given'), 'exception 5: scheduled>exception/pending-timeout', 'pendingTimeout 10 minutes: an exception');
SELECT is(pg_temp.look('taken'), 'running 5: scheduled>running', 'pendingTimeout: not of a run that was claimed in time');
SELECT is(pg_temp.state('none') || ' ' || pg_temp.state('null'), 'pending pending', 'pendingTimeout null: none, and none without a policy');
SELECT is(pg_temp.state('unscheduled'), 'unscheduled', 'pendingTimeout: not of a run that is not pending');
SELECT pg_temp.work('none', 'completed');
SELECT is(pg_temp.state('unscheduled'), 'pending', 'pendingTimeout: a dependency is met');
SELECT is(pg_temp.pass('19 minutes 30 seconds'), '', 'pendingTimeout: it counts from when a task is pending');
SELECT is(pg_temp.pass('20 minutes'), 'pending-timeout 1', 'pendingTimeout: and is over then');
SELECT is(pg_temp.look('unscheduled'), 'exception 5: scheduled>exception/pending-timeout', 'pendingTimeout: of the dependent');
ROLLBACK TO s;
-- A run that is past its time is skipped, and later ones are handed out.
SELECT pg_temp.given('p1', 'pendingTimeout', '60', '{"taskQueueId": "test/p"}'), pg_temp.create('p2', '{"taskQueueId": "test/p"}'), pg_temp.given('p3', 'pendingTimeout', '60', '{"taskQueueId": "test/p"}'), pg_temp.create('p4', '{"taskQueueId": "test/p"}');
SET tq.clock_offset = '2 minutes';
SELECT is(pg_temp.claims('test/p', 1) || ' ' || pg_temp.claims('test/p', 9), 'p2 p4', 'pendingTimeout: the later ones are handed out');
SELECT is(pg_temp.pass(), 'pending-timeout 2', 'pendingTimeout: the others are over');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 8 totalTimeout
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none', '{"policy": {"totalTimeout": "2 hours"}}'), pg_temp.create('null', '{"policy": {"totalTimeout": null}}'), pg_temp.create('given', '{"policy": {"totalTimeout": "10 minutes"}}'),
	pg_temp.create('zero', '{"policy": {"totalTimeout": 0}}'), pg_temp.create('unscheduled', '{"policy": {"totalTimeout": 600}, "$deps": ["given"]}');
SELECT is(tq.status(pg_temp.id(n)) -> 'deadline', tq.task(pg_temp.id(n)) -> 'deadline', 'totalTimeout ' || what || ': the defined deadline') FROM (VALUES ('none', 'after the deadline'), ('null', 'null'), ('unscheduled', 'while unscheduled')) AS v (n, what);
SELECT is((s ->> 'deadline')::timestamptz, (s #>> '{runs,0,scheduled}')::timestamptz + interval '10 minutes', 'totalTimeout 10 minutes: the deadline is that long after the first run was scheduled') FROM tq.status(pg_temp.id('given')) AS s;
SELECT is(tq.task(pg_temp.id('given')) ->> 'deadline', pg_temp.def('given') ->> 'deadline', 'totalTimeout 10 minutes: the definition shows the defined one');
SELECT is((s ->> 'deadline')::timestamptz, (s #>> '{runs,0,scheduled}')::timestamptz, 'totalTimeout 0: the deadline is then') FROM tq.status(pg_temp.id('zero')) AS s;
SELECT is(pg_temp.claims('test/q-zero'), '', 'totalTimeout 0: it is never handed out');
SELECT is(pg_temp.pass(), 'deadline 1', 'totalTimeout 0: over at once');
SELECT is(pg_temp.look('zero'), 'exception 5: scheduled>exception/deadline-exceeded', 'totalTimeout 0: as by a deadline');
SELECT is(pg_temp.pass('9 minutes 30 seconds'), '', 'totalTimeout 10 minutes: not before');
SET tq.clock_offset = '10 minutes';
SELECT is(pg_temp.claims('test/q-given'), '', 'totalTimeout 10 minutes: it is no longer handed out');
SELECT pg_temp.throws($$SELECT tq.cancel_task(pg_temp.id('given'))$$, 'TQ409', 'totalTimeout 10 minutes: nor canceled');
SELECT is(pg_temp.pass(), 'deadline 1', 'totalTimeout 10 minutes: over');
SELECT is(pg_temp.look('given'), 'exception 5: scheduled>exception/deadline-exceeded', 'totalTimeout 10 minutes: as by a deadline');
SELECT is(pg_temp.state('unscheduled'), 'unscheduled', 'totalTimeout: no time counts while a task is unscheduled');
SELECT is(tq.schedule_task(pg_temp.id('unscheduled')) ->> 'state', 'pending', 'totalTimeout: it is scheduled later');
SELECT is((s ->> 'deadline')::timestamptz, (s #>> '{runs,0,scheduled}')::timestamptz + interval '10 minutes', 'totalTimeout: counts from then') FROM tq.status(pg_temp.id('unscheduled')) AS s;
SELECT is(pg_temp.pass('20 minutes'), 'deadline 1', 'totalTimeout: and is over');
SELECT is(pg_temp.look('unscheduled'), 'exception 5: scheduled>exception/deadline-exceeded', 'totalTimeout: as by a deadline');
SELECT is(pg_temp.pass('60 minutes'), 'deadline 2', 'totalTimeout after the deadline, and null: the deadline resolves them');
ROLLBACK TO s;
-- It counts over all runs.
SELECT pg_temp.given('a', 'totalTimeout', '600');
SELECT pg_temp.take('a');
CREATE TEMP TABLE first AS SELECT tq.status(pg_temp.id('a')) ->> 'deadline' AS deadline;
SET tq.clock_offset = '5 minutes';
SELECT is(pg_temp.report('a', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'totalTimeout: a retry');
SELECT is(tq.status(pg_temp.id('a')) ->> 'deadline', deadline, 'totalTimeout: does not prolong it') FROM first;
SELECT pg_temp.take('a');
SET tq.clock_offset = '10 minutes';
SELECT is(pg_temp.report('a', 'worker-shutdown'), 'exception 4: scheduled>exception/worker-shutdown retry>exception/worker-shutdown', 'totalTimeout: no retry once it is over');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'totalTimeout: nor a rerun');
ROLLBACK TO s;
SELECT pg_temp.given('a', 'totalTimeout', '600');
SELECT pg_temp.work('a', 'failed');
SELECT is(tq.rerun_task(pg_temp.id('a')) ->> 'state', 'pending', 'totalTimeout: a rerun in time');
SELECT is(pg_temp.pass('10 minutes'), 'deadline 1', 'totalTimeout: a rerun does not prolong it');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 9 timeoutAlertOnly: the messages are in policy_messages.sql
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('p' || n, jsonb_build_object('$deadline', '1 day', 'policy', jsonb_build_object('pendingTimeout', 600, 'timeoutAlertOnly', a))) FROM (VALUES (1, 'true'::jsonb), (2, 'false'), (3, 'null')) AS v (n, a);
SELECT pg_temp.create('r' || n, jsonb_build_object('$deadline', '1 day', 'policy', jsonb_build_object('runTimeout', 600, 'timeoutAlertOnly', a))) FROM (VALUES (1, 'true'::jsonb), (2, 'false'), (3, 'null')) AS v (n, a);
SELECT pg_temp.create('t' || n, jsonb_build_object('$deadline', '1 day', 'policy', jsonb_build_object('totalTimeout', 600, 'timeoutAlertOnly', a))) FROM (VALUES (1, 'true'::jsonb), (2, 'false'), (3, 'null')) AS v (n, a);
SELECT pg_temp.take('r' || n) FROM generate_series(1, 3) AS n;
CREATE TEMP TABLE alerted AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{p1,r1,t1}'::text[]) AS n;
SELECT is(s -> 'deadline', tq.task(pg_temp.id('t1')) -> 'deadline', 'timeoutAlertOnly true: totalTimeout is not in the deadline') FROM tq.status(pg_temp.id('t1')) AS s;
SELECT pg_temp.pass('11 minutes');
SELECT is(tq.status(pg_temp.id(n)), status, 'timeoutAlertOnly true: nothing changes, ' || n) FROM alerted;
SELECT is(pg_temp.look(n || i), 'exception 5: scheduled>exception/' || r, format('timeoutAlertOnly %s: %s', CASE i WHEN 2 THEN 'false' ELSE 'null' END, r))
FROM (VALUES ('p', 'pending-timeout'), ('r', 'run-timeout'), ('t', 'deadline-exceeded')) AS v (n, r), generate_series(2, 3) AS i;
SELECT is(pg_temp.pass(), '', 'timeoutAlertOnly true: a second pass finds nothing');
SELECT is(pg_temp.take('p1'), 0, 'timeoutAlertOnly true: a run that was pending too long is still handed out');
SELECT is(pg_temp.take('t1'), 0, 'timeoutAlertOnly true: and one that is past its total timeout');
SELECT is(pg_temp.report(n, 'completed'), 'completed 5: scheduled>completed/completed', 'timeoutAlertOnly true: and completes, ' || n) FROM unnest('{p1,r1,t1}'::text[]) AS n;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 10 onUnsuccessful: more in policy_groups.sql
-- ---------------------------------------------------------------------------

SELECT pg_temp.given(n, 'onUnsuccessful', to_jsonb(n), jsonb_build_object('$group', 'g-' || n)) FROM unnest('{block,cancel-group,tolerate,forgive}'::text[]) AS n;
SELECT pg_temp.given('null', 'onUnsuccessful', 'null', '{"$group": "g-null"}');
SELECT pg_temp.create('none', '{"$group": "g-none"}');
SELECT pg_temp.create('after-' || n, jsonb_build_object('$group', 'g-' || n, '$deps', jsonb_build_array(n))) FROM unnest('{block,cancel-group,tolerate,forgive,"null",none}'::text[]) AS n;
SELECT pg_temp.work(n, 'failed') FROM unnest('{block,cancel-group,tolerate,forgive,"null",none}'::text[]) AS n;
SELECT is(pg_temp.look('after-' || n), line, 'onUnsuccessful ' || n || ': its dependent') FROM (VALUES ('none', 'unscheduled 5:'), ('null', 'unscheduled 5:'), ('block', 'unscheduled 5:'),
	('cancel-group', 'exception 5: exception>exception/canceled'), ('tolerate', 'pending 5: scheduled>pending'), ('forgive', 'pending 5: scheduled>pending')) AS v (n, line);
SELECT is(pg_temp.look(n), 'failed 5: scheduled>failed/failed', 'onUnsuccessful ' || n || ': it has failed itself') FROM unnest('{none,"null",block,cancel-group,tolerate,forgive}'::text[]) AS n;
SELECT is(pg_temp.progress('g-' || n), line, 'onUnsuccessful ' || n || ': its group') FROM (VALUES ('none', '2: u1 f1 -'), ('null', '2: u1 f1 -'), ('block', '2: u1 f1 -'),
	('cancel-group', '2: f1 e1 failed'), ('tolerate', '2: p1 f1 t1 -'), ('forgive', '2: p1 f1 t1 -')) AS v (n, line);
SELECT pg_temp.work('after-' || n, 'completed') FROM unnest('{tolerate,forgive}'::text[]) AS n;
SELECT is(pg_temp.progress('g-tolerate'), '2: c1 f1 t1 failed', 'onUnsuccessful tolerate: the group has failed');
SELECT is(pg_temp.progress('g-forgive'), '2: c1 f1 t1 completed-with-errors', 'onUnsuccessful forgive: the group has not');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 11 deadLetter: more in policy_dead_letters.sql
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none'), pg_temp.given('null', 'deadLetter', 'null'), pg_temp.given('false', 'deadLetter', 'false'), pg_temp.given('true', 'deadLetter', 'true');
SELECT pg_temp.work(n, 'failed') FROM unnest('{none,"null",false,true}'::text[]) AS n;
SELECT is(pg_temp.letters('test/q-' || n), CASE n WHEN 'true' THEN 'true failed' ELSE '' END, 'deadLetter ' || n) FROM unnest('{none,"null",false,true}'::text[]) AS n;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- delay
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('none'), pg_temp.given('null', 'delay', 'null'), pg_temp.given('zero', 'delay', '0'), pg_temp.given('given', 'delay', '"10 minutes"');
SELECT pg_temp.create(n, o::jsonb) FROM (VALUES ('def', '{"delay": 300}'), ('defnull', '{"delay": null}'), ('defzero', '{"delay": 0}'), ('nullgiven', '{"delay": null, "policy": {"delay": 600}}'),
	('both', '{"delay": "5 minutes", "policy": {"delay": 600}}'), ('wins', '{"delay": 0, "policy": {"delay": 600}}')) AS v (n, o);
SELECT is(pg_temp.wait(n)::text || ' ' || coalesce(tq.task(pg_temp.id(n)) ->> 'delay', '-'), wanted, 'delay ' || what) FROM (VALUES
	('none', '00:00:00 -', 'by default none'), ('null', '00:00:00 -', 'null: none'), ('zero', '00:00:00 -', '0: none'), ('given', '00:10:00 600', 'of 10 minutes in the policy'),
	('def', '00:05:00 300', 'of 5 minutes in the definition'), ('defnull', '00:00:00 -', 'null in the definition: none'), ('defzero', '00:00:00 -', '0 in the definition: none'),
	('nullgiven', '00:10:00 600', 'null in the definition: the policy''s'), ('both', '00:05:00 300', 'in both: the definition''s'), ('wins', '00:00:00 0', 'in both: the definition''s, though it is 0, which is then shown')) AS v (n, wanted, what);
SELECT is(pg_temp.look('given'), 'pending 5: scheduled>pending', 'delay: the state is pending');
SELECT is(pg_temp.keys(pg_temp.run('given')), 'reasonCreated runId scheduled state visibleAt', 'delay: the run shows when it can be claimed');
SELECT is(pg_temp.keys(pg_temp.run('zero')), 'reasonCreated runId scheduled state', 'delay 0: it does not');
SELECT is(pg_temp.claims('test/q-given') || pg_temp.claims('test/q-def'), '', 'delay: not handed out');
SELECT is(pg_temp.claims('test/q-zero') || ' ' || pg_temp.claims('test/q-wins'), 'zero wins', 'delay 0: handed out');
SELECT is(pg_temp.progress('given'), '1: d1 -', 'delay: counted as delayed');
SELECT is((tq.task_queue_counts('test/q-given') -> 'pendingTasks')::bigint, 0::bigint, 'delay: not as pending');
SELECT is(pg_temp.pass('4 minutes 30 seconds'), '', 'delay: not before its time');
SELECT is(pg_temp.pass('5 minutes'), 'delayed 2', 'delay of 5 minutes: two are due');
SELECT is(pg_temp.claims('test/q-def') || ' ' || pg_temp.claims('test/q-both'), 'def both', 'delay of 5 minutes: handed out');
SELECT is(pg_temp.wait('def'), interval '5 minutes', 'delay: the run still shows when it could be claimed');
SELECT is(pg_temp.pass('10 minutes'), 'delayed 2', 'delay of 10 minutes: two are due');
SELECT is(pg_temp.claims('test/q-given') || ' ' || pg_temp.claims('test/q-nullgiven'), 'given nullgiven', 'delay of 10 minutes: handed out');
SELECT is(pg_temp.report('def', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'delay: a retry');
SELECT is(pg_temp.wait('def'), interval '0', 'delay: is not delayed by it');
SELECT is(pg_temp.report('given', 'failed'), 'failed 5: scheduled>failed/failed', 'delay: a failure');
SELECT is(tq.rerun_task(pg_temp.id('given')) ->> 'state', 'pending', 'delay: a rerun');
SELECT is(pg_temp.wait('given'), interval '0', 'delay: is not delayed either');
SELECT is(pg_temp.take('given'), 1, 'delay: it is handed out at once');
ROLLBACK TO s;
-- It begins when a task is scheduled.
SELECT pg_temp.create('dep');
SELECT pg_temp.create(n, '{"delay": 600, "$deps": ["dep"]}') FROM unnest('{a,b,c}'::text[]) AS n;
SELECT is(pg_temp.state('a'), 'unscheduled', 'delay: with a dependency it is unscheduled');
SET tq.clock_offset = '5 minutes';
SELECT is(tq.schedule_task(pg_temp.id('b')) ->> 'state', 'pending', 'delay: scheduled by hand');
SELECT is(pg_temp.wait('b'), interval '10 minutes', 'delay: it begins then');
SELECT is(tq.rerun_task(pg_temp.id('c')) ->> 'state', 'pending', 'delay: rerun by hand');
SELECT is(pg_temp.wait('c'), interval '0', 'delay: a rerun has none');
SET tq.clock_offset = '8 minutes';
SELECT pg_temp.work('dep', 'completed');
SELECT is(pg_temp.wait('a'), interval '10 minutes', 'delay: it begins when the dependency is met');
SELECT is(pg_temp.pass('15 minutes'), 'delayed 1', 'delay: one is due');
SELECT is(pg_temp.pass('18 minutes'), 'delayed 1', 'delay: then the other');
SELECT is(pg_temp.claims('test/q-a') || ' ' || pg_temp.claims('test/q-b') || ' ' || pg_temp.claims('test/q-c'), 'a b c', 'delay: all can be claimed');
ROLLBACK TO s;
-- Canceled while it is delayed; its deadline.
SELECT pg_temp.create('x', '{"delay": 600, "$deadline": "20 minutes"}'), pg_temp.create('y', '{"delay": 600, "$deadline": "11 minutes"}');
SELECT is(pg_temp.report('x', 'canceled'), 'exception 5: scheduled>exception/canceled', 'delay: canceled while it is delayed');
SELECT is(pg_temp.pass('12 minutes'), 'deadline 1', 'delay: due, but past the deadline');
SELECT is(pg_temp.look('y'), 'exception 5: scheduled>exception/deadline-exceeded', 'delay: which resolves it');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Durations
-- ---------------------------------------------------------------------------

SELECT pg_temp.given('d' || n, 'claimTimeout', d::jsonb) FROM (VALUES (1, '90'), (2, '1.5'), (3, '0.001'), (4, '"90"'), (5, '"90 seconds"'), (6, '"1 minute 30 seconds"'), (7, '"00:01:30"'),
	(8, '"1 day"'), (9, '"1 week"'), (10, '"1 month"'), (11, '"1 year"'), (12, '"1 month 2 days 03:00:00"'), (13, '"250 ms"'), (14, '"PT1M30S"'), (15, '"0.5"'), (16, '"2 hours -30 minutes"'), (17, '9e1'), (18, '2147483647')) AS v (n, d);
SELECT pg_temp.take('d' || n) FROM generate_series(1, 18) AS n;
SELECT is(extract(epoch FROM (r ->> 'takenUntil')::timestamptz) - extract(epoch FROM (r ->> 'started')::timestamptz), seconds::numeric, 'durations: ' || d)
FROM (VALUES (1, '90', 90.0), (2, '1.5', 1.5), (3, '0.001', 0.001), (4, '"90"', 90), (5, '"90 seconds"', 90), (6, '"1 minute 30 seconds"', 90), (7, '"00:01:30"', 90),
	(8, '"1 day"', 86400), (9, '"1 week"', 604800), (10, '"1 month", of 30 days', 2592000), (11, '"1 year", of 360 days', 31104000), (12, '"1 month 2 days 03:00:00"', 2775600), (13, '"250 ms"', 0.25),
	(14, '"PT1M30S"', 90), (15, '"0.5"', 0.5), (16, '"2 hours -30 minutes"', 5400), (17, '9e1', 90), (18, '2147483647', 2147483647)) AS v (n, d, seconds), pg_temp.run('d' || n) AS r;
SELECT is(tq.task(pg_temp.id('d2')) -> 'policy', '{"claimTimeout": 1.5}', 'durations: shown unchanged, a number');
SELECT is(tq.task(pg_temp.id('d6')) -> 'policy', '{"claimTimeout": "1 minute 30 seconds"}', 'durations: shown unchanged, text');
SELECT pg_temp.create('delay', '{"delay": "1 minute 1.5 seconds"}');
SELECT is(tq.task(pg_temp.id('delay')) -> 'delay', '61.5', 'durations: delay is shown in seconds');
-- The intervalstyle of the session does not matter.
SET intervalstyle = 'sql_standard';
SELECT pg_temp.given('sql', 'claimTimeout', '"1 minute 30 seconds"');
SELECT pg_temp.take('sql');
RESET intervalstyle;
SELECT is(pg_temp.claimed_for('sql'), interval '90 seconds', 'durations: whatever intervalstyle is');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
