-- doc/spec/taskcluster.md 5.5: quarantine; 10.17.
BEGIN;
\ir helper.psql

SELECT pg_temp.create('t' || n, '{"taskQueueId": "test/q", "$deadline": "3 hours"}') FROM generate_series(1, 6) AS n;
SELECT is(pg_temp.claims('test/q', 2, 'bad'), 't1 t2', '5.5 a worker has two tasks');
SELECT lives_ok($$SELECT tq.quarantine_worker('test/q', 'wg', 'bad', now() + interval '30 minutes', 'for a test')$$, '5.5 quarantine it');

-- no new runs
SELECT is(pg_temp.claims('test/q', 1, 'bad'), '', '5.5 claim_work gives it nothing');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('t3'), 0, 'wg', 'bad')), 0::bigint, '10.17 claim_task returns no row');
SELECT is(pg_temp.look('t3'), 'pending 5: scheduled>pending', '5.5 and claims nothing');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('t3'), 7, 'wg', 'bad')), 0::bigint, '2.9 quarantine comes before the run');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('nobody'), 0, 'wg', 'bad')$$, 'TQ404', '2.9 an unknown task comes first');
SET tq.clock_offset = '20 seconds';
SELECT is(pg_temp.claims('test/q', 1, 'bad'), '', '5.5 it may call claim_work');
SELECT ok(pg_temp.near(tq.get_worker('test/q', 'wg', 'bad') ->> 'lastDateActive', pg_temp.clock()), '5.5 which is recorded as seen');
RESET tq.clock_offset;

-- others are unaffected
SELECT is(pg_temp.claims('test/q', 1, 'good'), 't3', '5.5 another worker');
SELECT is((SELECT count(*) FROM tq.claim_work('test/q', 'other', 'bad')), 1::bigint, '5.5 the same name in another group');
SELECT pg_temp.create('elsewhere', '{"taskQueueId": "test/r"}');
SELECT is(pg_temp.claims('test/r', 1, 'bad'), 'elsewhere', '5.5 the same worker in another queue');

-- what it holds, it may finish
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('t1'), 0)$$, '5.5 reclaim is unaffected');
SELECT is(pg_temp.report('t1', 'completed'), 'completed 5: scheduled>completed/completed', '5.5 report too');
SELECT is(pg_temp.report('t2', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '5.5 of exceptions too');

-- the end of the quarantine
SET tq.clock_offset = '31 minutes';
SELECT is(pg_temp.claims('test/q', 1, 'bad'), 't5', '5.5 when the quarantine is over, it gets work again');
RESET tq.clock_offset;
SELECT is(pg_temp.claims('test/q', 1, 'bad'), '', '5.5 (it is not over before)');
SELECT lives_ok($$SELECT tq.quarantine_worker('test/q', 'wg', 'bad', now() - interval '1 hour')$$, '2.16 a past time lifts it');
SELECT is(pg_temp.claims('test/q', 1, 'bad'), 't6', '2.16 at once');
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('t2'), 1, 'wg', 'bad')), 1, '2.16 claim_task too');

-- claim_task by an unknown worker: no quarantine, no row is inserted
SELECT pg_temp.create('new');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('new'), 0, 'wg', 'stranger')), 1::bigint, '5.5 an unknown worker is not in quarantine');
SELECT pg_temp.throws($$SELECT tq.get_worker('test/q-new', 'wg', 'stranger')$$, 'TQ404', '2.9 claim_task does not insert the worker');

SELECT * FROM finish();
ROLLBACK;
