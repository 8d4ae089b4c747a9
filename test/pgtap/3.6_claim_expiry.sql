-- doc/spec/taskcluster.md 3.6: claims that expire.
BEGIN;
\ir helper.psql

-- when
SELECT pg_temp.running('a');
SELECT is(pg_temp.pass('19 minutes 30 seconds'), '', '3.6 before takenUntil nothing happens');
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '3.6 the run is running');
SET tq.clock_offset = '20 minutes 30 seconds';
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '3.6 nor at takenUntil, until upkeep() processes it');
SELECT is(pg_temp.pass(), 'claim-expired 1', '3.6 then the claim expires');
SELECT is(pg_temp.look('a'), 'pending 4: scheduled>exception/claim-expired retry>pending', '3.6 and the task is retried');
SELECT is(pg_temp.run('a', 0) ->> 'workerId', 'w1', '3.6 the run keeps its worker');
SELECT ok((pg_temp.run('a', 0) ->> 'resolved')::timestamptz >= (pg_temp.run('a', 0) ->> 'takenUntil')::timestamptz, '3.6 and takenUntil; resolved is after it');
SELECT ok(pg_temp.near(pg_temp.run('a', 1) ->> 'scheduled', pg_temp.clock()), '3.6 the retry is scheduled now');
SELECT is(pg_temp.pass(), '', '3.6 it is processed once');
SELECT pg_temp.throws(query, 'TQ409', '5.4 the worker is refused: ' || query)
FROM unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(''a''), 0)', 'SELECT tq.report_completed(pg_temp.id(''a''), 0)', 'SELECT tq.report_failed(pg_temp.id(''a''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''a''), 0, ''worker-shutdown'')', 'SELECT tq.claim_task(pg_temp.id(''a''), 0, ''wg'', ''w1'')']) AS query;
SELECT is(pg_temp.take('a', 'w1'), 1, '5.4 the same worker may claim the retry');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0)$$, 'TQ409', '5.4 and still not report the run it lost');
SELECT is(pg_temp.report('a', 'completed', 1), 'completed 4: scheduled>exception/claim-expired retry>completed/completed', '5.4 but the new one');
RESET tq.clock_offset;

-- reclaims: the claim timer is early then
SELECT pg_temp.running('b', '{"$deadline": "3 hours"}');
SET tq.clock_offset = '5 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('b'), 0)$$, '3.6 reclaim at 5 minutes');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('b'), 0)$$, '3.6 reclaim at 10 minutes');
SELECT is(pg_temp.pass('20 minutes 30 seconds'), '', '3.6 the claim timer of the claim has been replaced');
SELECT is(pg_temp.pass('25 minutes 30 seconds'), '', '3.6 the first reclaim''s too');
SELECT is(pg_temp.look('b'), 'running 5: scheduled>running', '3.6 it is running');
SELECT is(pg_temp.pass('30 minutes 30 seconds'), 'claim-expired 1', '3.6 that of the last reclaim has not');
SELECT is(pg_temp.look('b'), 'pending 4: scheduled>exception/claim-expired retry>pending', '3.6 and the task is retried');
RESET tq.clock_offset;

-- an old claim timer of a resolved run does not expire the next run
SELECT pg_temp.running('c', '{"$deadline": "3 hours"}');
SET tq.clock_offset = '15 minutes';
SELECT pg_temp.report('c', 'worker-shutdown');
SELECT pg_temp.take('c', 'w2');
SELECT is(pg_temp.pass('20 minutes 30 seconds'), '', '3.6 a claim timer of an earlier run');
SELECT is(pg_temp.look('c'), 'running 4: scheduled>exception/worker-shutdown retry>running', '3.6 does not expire the next');
SELECT is(pg_temp.pass('35 minutes 30 seconds'), 'claim-expired 1', '3.6 whose own claim timer does');
SELECT is(pg_temp.look('c'), 'pending 3: scheduled>exception/worker-shutdown retry>exception/claim-expired retry>pending', '3.6 in its time');
RESET tq.clock_offset;

-- resolved runs
SELECT pg_temp.resolved(n, r, '{"$deadline": "3 hours"}') FROM (VALUES ('rc', 'completed'), ('rf', 'failed'), ('re', 'internal-error'), ('rx', 'canceled')) AS v (n, r);
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{rc,rf,re,rx}'::text[]) AS n;
SELECT is(pg_temp.pass('21 minutes'), '', '3.6 claim timers of resolved runs');
SELECT is(tq.status(pg_temp.id(n)), status, '3.6 change nothing: ' || n) FROM before;
RESET tq.clock_offset;

-- no retries left; the dependents
SELECT pg_temp.running('last', '{"retries": 0, "$deadline": "3 hours"}');
SELECT pg_temp.create('all', '{"$deps": ["last"], "requires": "all-resolved", "$deadline": "3 hours"}');
SELECT pg_temp.create('comp', '{"$deps": ["last"], "$deadline": "3 hours"}');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 1', '3.6 no retries left');
SELECT is(pg_temp.look('last'), 'exception 0: scheduled>exception/claim-expired', '3.6 it is final');
SELECT is(pg_temp.look('all') || ', ' || pg_temp.look('comp'), 'pending 5: scheduled>pending, unscheduled 5:', '4.4 its dependents are released');
RESET tq.clock_offset;

-- D-11: exception, never failed
SELECT is(pg_temp.run('last') ->> 'state', 'exception', 'D-11 an expired claim is an exception, not a failure');

-- past the deadline
SET tq.deadline_delay = '2h';
SELECT pg_temp.running('dl', '{"$deadline": "15 minutes"}');
SELECT is(pg_temp.pass('21 minutes'), '', '3.6 past the deadline the claim does not expire');
SELECT is(pg_temp.look('dl'), 'running 5: scheduled>running', '3.6 the deadline will resolve it');
SELECT pg_temp.pass('136 minutes');
SELECT is(pg_temp.look('dl'), 'exception 5: scheduled>exception/deadline-exceeded', '3.6 which resolves it');
RESET tq.clock_offset;
RESET tq.deadline_delay;

-- both at once: the deadline comes first
SELECT pg_temp.running('both', '{"$deadline": "15 minutes"}');
SELECT is(pg_temp.pass('21 minutes'), 'deadline 1', '5.4 when deadline and takenUntil are both over, the deadline decides');
SELECT is(pg_temp.look('both'), 'exception 5: scheduled>exception/deadline-exceeded', '5.4 with no retry');
RESET tq.clock_offset;

-- one call, several runs; some are reclaimed, some reported
SELECT pg_temp.create('m' || n, '{"taskQueueId": "test/many", "$deadline": "3 hours"}') FROM generate_series(1, 6) AS n;
SELECT is(pg_temp.claims('test/many', 6), 'm1 m2 m3 m4 m5 m6', '3.6 six runs in one claim');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n), '3.6 reclaim ' || n) FROM unnest('{m2,m5}'::text[]) AS n;
SELECT pg_temp.report('m3', 'completed');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 3', '3.6 the others expire');
SELECT is(string_agg(pg_temp.state(n), ' ' ORDER BY n), 'pending running completed pending running pending', '3.6 and only they') FROM unnest('{m1,m2,m3,m4,m5,m6}'::text[]) AS n;
SELECT is(pg_temp.pass('31 minutes'), 'claim-expired 2', '3.6 the reclaimed ones later');
RESET tq.clock_offset;

-- claim_task and tq.claim_timeout
SET tq.claim_timeout = '30s';
SELECT pg_temp.create('k', '{"$deadline": "3 hours"}');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('k'), 0, 'wg', 'w1')$$, '3.6 a claim by claim_task, of 30 seconds');
RESET tq.claim_timeout;
SELECT is(pg_temp.pass(), '', '3.6 holds');
SELECT is(pg_temp.pass('61 seconds'), 'claim-expired 1', '3.6 and expires');
RESET tq.clock_offset;

-- every running run has a claim timer, or will have it when its task-running is published
SELECT pg_temp.running('z' || n) FROM generate_series(1, 2) AS n;
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('z2'), 0)$$, '3.6 a claim and a reclaim');
SELECT is((SELECT count(*) FROM tq_internal.run WHERE state = 2), 2::bigint, '3.6 two runs are running');
SELECT is((SELECT count(*) FROM tq_internal.run r WHERE r.state = 2 AND NOT EXISTS (SELECT FROM tq_internal.claim_timer l WHERE r.task = ANY (l.tasks) AND l.due <= r.taken_until)
		AND NOT EXISTS (SELECT FROM tq_internal.left_timer l WHERE l.is_claim AND l.task = r.task AND l.due <= r.taken_until)),
	0::bigint, '0.2 every running run has a claim timer, due no later than its takenUntil');

SELECT * FROM finish();
ROLLBACK;
