-- doc/spec/taskcluster.md 2.10: reclaimTask; 10.2.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('nobody'), 0)$$, 'TQ404', '2.10 no such task');
SELECT pg_temp.create('a');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('a'), 1)$$, 'TQ404', '2.10 no such run');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, 'TQ409', '2.10 pending');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('u'), 0)$$, 'TQ404', '2.10 an unscheduled task has no run');

SELECT pg_temp.take('a');
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status;
SET tq.clock_offset = '7 minutes';
CREATE TEMP TABLE reclaimed AS SELECT * FROM tq.reclaim_task(pg_temp.id('a'), 0);
SELECT is(task_id::text || run_id || worker_group || worker_id, pg_temp.id('a') || '0wgw1', '2.10 the task, the run and the worker') FROM reclaimed;
SELECT is(payload, NULL, '2.10 the payload is left out') FROM reclaimed;
SELECT is(credentials, NULL, '5.7 no credentials for a role that needs none') FROM reclaimed;
SELECT ok(pg_temp.near(pg_temp.iso(taken_until), pg_temp.clock() + interval '20 minutes'), '5.4 takenUntil is now and the claim timeout, not the old takenUntil and that') FROM reclaimed;
SELECT is(pg_temp.run('a') ->> 'takenUntil', pg_temp.iso(taken_until), '2.10 the run''s takenUntil is the same') FROM reclaimed;
SELECT is(tq.status(pg_temp.id('a')) #- '{runs,0,takenUntil}', status #- '{runs,0,takenUntil}', '2.10 nothing else changes') FROM before;
RESET tq.clock_offset;

-- 10.2: takenUntil never moves backwards
CREATE TEMP TABLE latest AS SELECT pg_temp.run('a') ->> 'takenUntil' AS t;
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, '10.2 a reclaim that would end earlier');
SELECT is(pg_temp.run('a') ->> 'takenUntil', t, '10.2 does not move takenUntil backwards') FROM latest;
SELECT is((SELECT pg_temp.iso(taken_until) FROM tq.reclaim_task(pg_temp.id('a'), 0)), t, '10.2 and returns the real one') FROM latest;
SET tq.claim_timeout = '1s';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, '10.2 nor does a shorter timeout');
SELECT is(pg_temp.run('a') ->> 'takenUntil', t, '10.2 move it') FROM latest;
RESET tq.claim_timeout;

-- A claim that is over but not yet expired by upkeep() can be reclaimed
SET tq.clock_offset = '30 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, '2.10 past takenUntil, not yet expired by upkeep()');
SELECT is(pg_temp.pass(), '', '2.10 then nothing has expired');
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '2.10 and it is running');
SELECT is(pg_temp.pass('49 minutes'), '', '2.10 the new claim holds');
SELECT is(pg_temp.pass('51 minutes'), 'claim-expired 1', '2.10 and ends');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, 'TQ409', '5.4 after upkeep() expired it: conflict');
RESET tq.clock_offset;

-- resolved, not the last
SELECT pg_temp.resolved(n, r) FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('e', 'internal-error'), ('x', 'canceled'), ('r', 'worker-shutdown')) AS v (n, r);
SELECT pg_temp.throws(format('SELECT tq.reclaim_task(pg_temp.id(%L), 0)', n), 'TQ409', '2.10 conflict: ' || pg_temp.look(n)) FROM unnest('{c,f,e,x,r}'::text[]) AS n;

-- deadline
SELECT pg_temp.running('d');
SET tq.clock_offset = '60 minutes 1 second';
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('d'), 0)$$, 'TQ409', '2.10 past the deadline');
RESET tq.clock_offset;
-- a reclaim before it may go beyond it (3.5)
SET tq.clock_offset = '55 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('d'), 0)$$, '2.10 shortly before the deadline');
SELECT ok(pg_temp.near(pg_temp.run('d') ->> 'takenUntil', pg_temp.clock() + interval '20 minutes'), '3.5 takenUntil is not capped by the deadline');
RESET tq.clock_offset;

-- claim_for, which the claim does not keep
SELECT pg_temp.create('for');
SELECT count(*) FROM tq.claim_task(pg_temp.id('for'), 0, 'wg', 'w1', claim_for => '1 s') \g /dev/null
SELECT ok(pg_temp.near(pg_temp.iso(taken_until), pg_temp.clock() + interval '20 minutes'), '2.10 the time of the claim is not that of the reclaim') FROM tq.reclaim_task(pg_temp.id('for'), 0);
SELECT ok(pg_temp.near(pg_temp.iso(taken_until), pg_temp.clock() + interval '3 hours'), '2.10 claim_for') FROM tq.reclaim_task(pg_temp.id('for'), 0, claim_for => '3 hours');
SELECT pg_temp.throws(format($$SELECT tq.reclaim_task(pg_temp.id('for'), 0, claim_for => %L)$$, f), 'TQ400', '2.10 claim_for refused: ' || f) FROM unnest('{0,-1 s,2147483648 s}'::text[]) AS f;

SELECT * FROM finish();
ROLLBACK;
