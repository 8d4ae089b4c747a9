-- doc/spec/taskcluster.md 5.4: races of timeout, reclaim and report, in order of events.
-- Tests that need concurrent sessions are in test/isolation.
BEGIN;
\ir helper.psql

-- the length of a claim
SELECT is(current_setting('tq.claim_timeout'), '20min', '5.4 a claim lasts 20 minutes by default');
SELECT pg_temp.running('a', '{"$deadline": "25 minutes", "$expires": "26 minutes"}');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, '5.4 reclaim');
SELECT ok(pg_temp.near(pg_temp.run('a') ->> 'takenUntil', now() + interval '30 minutes'), '5.4 takenUntil is not capped by deadline or expires');
RESET tq.clock_offset;

-- a reclaim that waits (2.10); test/isolation/specs/wait-reclaim.spec has the wake-ups
SELECT pg_temp.running('w', '{"$deadline": "3 hours"}');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('w'), 0, wait => '10 ms')$$, '2.10 a wait that is over');
SELECT pg_temp.throws(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0, wait => %L)', 'w', w), 'TQ400', '2.10 wait ' || w)
FROM unnest('{61 s,-1 s}'::text[]) AS w;
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('w'), 1, wait => '60 s')$$, 'TQ404', '2.10 no such run: it does not wait');
SET tq.clock_offset = '20 minutes 30 seconds';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('w'), 0, wait => '60 s')$$, '2.10 a claim whose time is over is prolonged at once');
RESET tq.clock_offset;
SELECT tq.report_completed(pg_temp.id('w'), 0) IS NULL;

-- reclaim wins over claim expiry, or the other way
SELECT pg_temp.running('b', '{"$deadline": "3 hours"}');
SET tq.clock_offset = '20 minutes 30 seconds';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('b'), 0)$$, '5.4 reclaim after takenUntil, before upkeep()');
SELECT is(pg_temp.pass(), '', '5.4 then the claim does not expire');
SELECT is(pg_temp.pass('41 minutes'), 'deadline 1 claim-expired 1 expired 1', '5.4 the claim expires (and the other task has met its deadline, and expired)');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('b'), 0)$$, 'TQ409', '5.4 then reclaim conflicts');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('b'), 0)$$, 'TQ409', '5.4 and report too');
SELECT is(pg_temp.take('b', 'w1'), 1, '5.4 the same worker claims the retry');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('b'), 0)$$, 'TQ409', '5.4 the lost run stays lost: reclaim');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('b'), 0)$$, 'TQ409', '5.4 the lost run stays lost: report');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('b'), '{0}')), 'conflict', '5.4 the lost run stays lost: resolve');
SELECT is(pg_temp.report('b', 'completed', 1), 'completed 4: scheduled>exception/claim-expired retry>completed/completed', '5.4 the new one can be reported');
RESET tq.clock_offset;

-- report after takenUntil, before upkeep()
SELECT pg_temp.running('c' || n, '{"$deadline": "3 hours"}') FROM generate_series(1, 4) AS n;
SET tq.clock_offset = '30 minutes';
SELECT is(pg_temp.report('c1', 'completed'), 'completed 5: scheduled>completed/completed', '5.4 late, but accepted: completed');
SELECT is(pg_temp.report('c2', 'failed'), 'failed 5: scheduled>failed/failed', '5.4 late, but accepted: failed');
SELECT is(pg_temp.report('c3', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '5.4 late, but accepted: exception');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('c4'), '{0}')), 'resolved', '5.4 late, but accepted: resolve');
SELECT is(pg_temp.pass(), '', '5.4 no claim is left to expire');
RESET tq.clock_offset;

-- cancel against the worker
SELECT pg_temp.resolved('d', 'canceled');
SELECT pg_temp.throws(query, 'TQ409', '5.4 canceled: ' || query)
FROM unnest(ARRAY['SELECT tq.reclaim_task(pg_temp.id(''d''), 0)', 'SELECT tq.report_completed(pg_temp.id(''d''), 0)', 'SELECT tq.report_failed(pg_temp.id(''d''), 0)',
	'SELECT tq.report_exception(pg_temp.id(''d''), 0, ''worker-shutdown'')']) AS query;
SELECT is(pg_temp.pass('21 minutes'), '', '5.4 its claim does not expire');
RESET tq.clock_offset;

-- a resolved run, then a rerun: the old claim timer does not match
SELECT pg_temp.resolved('e', 'failed', '{"$deadline": "3 hours"}');
SET tq.clock_offset = '5 minutes';
SELECT tq.rerun_task(pg_temp.id('e')) ->> 'state';
SELECT pg_temp.take('e');
SELECT is(pg_temp.pass('21 minutes'), '', '5.4 the claim timer of the run before');
SELECT is(pg_temp.state('e'), 'running', '5.4 does not expire the rerun');
SELECT is(pg_temp.pass('26 minutes'), 'claim-expired 1', '5.4 its own does');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
