-- doc/spec/taskcluster.md 5.2: the claim of one run.  (5.3, waiting, is in
-- test/t/052_wait.pl.)
BEGIN;
\ir helper.psql

SELECT pg_temp.create('a');
CREATE TEMP TABLE before AS SELECT pg_temp.run('a') AS run;
SELECT pg_temp.take('a', 'w7');
SELECT is(pg_temp.run('a') - '{started,takenUntil}'::text[], run || '{"state": "running", "workerGroup": "wg", "workerId": "w7"}', '5.2 the run is running, with its worker; the rest stays') FROM before;
SELECT ok(pg_temp.near(pg_temp.run('a') ->> 'started', pg_temp.clock()), '5.2 started is now');
SELECT is((r ->> 'takenUntil')::timestamptz - (r ->> 'started')::timestamptz, interval '20 minutes', '5.2 takenUntil is now and the claim timeout') FROM pg_temp.run('a') AS r;
SELECT is(tq.status(pg_temp.id('a')) ->> 'retriesLeft', '5', '5.2 a claim costs no retry');

-- preconditions: the last run, and pending
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w8')$$, 'TQ409', '5.2 not pending any more');
SELECT is(pg_temp.claims('test/q-a', 1, 'w8'), '', '5.2 claim_work does not see it');
SELECT pg_temp.report('a', 'worker-shutdown');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w7')$$, 'TQ409', '5.2 not the last run');
SET tq.clock_offset = '3 minutes';
SELECT is(pg_temp.take('a', 'w8'), 1, '5.2 the last run');
SELECT is((r ->> 'workerId') || pg_temp.near(r ->> 'started', now() + interval '3 minutes')::text, 'w8true', '5.2 has its own worker and its own times') FROM pg_temp.run('a', 1) AS r;
SELECT is(pg_temp.run('a', 0) ->> 'workerId', 'w7', '5.2 the run before keeps its own');
RESET tq.clock_offset;

-- cancel against claim: the second is refused
SELECT pg_temp.create('c');
SELECT pg_temp.report('c', 'canceled');
SELECT is(pg_temp.claims('test/q-c'), '', '5.4 canceled before the claim: claim_work drops it');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('c'), 0, 'wg', 'w1')$$, 'TQ409', '5.4 canceled before the claim: claim_task conflicts');

-- claimed by claim_task, it is not handed out by claim_work, and the other way
SELECT pg_temp.create('k1', '{"taskQueueId": "test/k"}');
SELECT pg_temp.create('k2', '{"taskQueueId": "test/k"}');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('k1'), 0, 'wg', 'w1')$$, '5.2 claim_task takes it out of the queue');
SELECT is(pg_temp.claims('test/k'), 'k2', '5.2 claim_work gives the next');

-- one worker may have many runs, also of several queues
SELECT pg_temp.create('m' || n) FROM generate_series(1, 3) AS n;
SELECT is((SELECT string_agg(pg_temp.take('m' || n, 'w1')::text, ',') FROM generate_series(1, 3) AS n), '0,0,0', '5.2 a worker may hold several runs');
SELECT is(pg_temp.report('m2', 'completed'), 'completed 5: scheduled>completed/completed', '5.2 and report each');
SELECT is(pg_temp.state('m1') || pg_temp.state('m3'), 'runningrunning', '5.2 the others stay running');

SELECT * FROM finish();
ROLLBACK;
