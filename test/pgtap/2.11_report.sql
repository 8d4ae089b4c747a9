-- doc/spec/taskcluster.md 2.11: reportCompleted and reportFailed.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.query(how text, name text, run int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$
	SELECT format('SELECT tq.report_%s(pg_temp.id(%L), %s)', how, name, run)
$$;

SELECT pg_temp.throws(pg_temp.query(h, 'nobody'), 'TQ404', format('2.11 %s: no such task', h)) FROM unnest('{completed,failed}'::text[]) AS h;
SELECT pg_temp.create('p');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.throws(pg_temp.query(h, 'p', 1), 'TQ404', format('2.11 %s: no such run', h)) FROM unnest('{completed,failed}'::text[]) AS h;
SELECT pg_temp.throws(pg_temp.query(h, 'u'), 'TQ404', format('2.11 %s: an unscheduled task has no run', h)) FROM unnest('{completed,failed}'::text[]) AS h;
SELECT pg_temp.throws(pg_temp.query(h, 'p'), 'TQ409', format('2.11 %s: pending', h)) FROM unnest('{completed,failed}'::text[]) AS h;

-- running
SELECT pg_temp.running('c', '{"retries": 2}');
CREATE TEMP TABLE before AS SELECT pg_temp.run('c') AS run;
CREATE TEMP TABLE answer AS SELECT tq.report_completed(pg_temp.id('c'), 0) AS status;
SELECT is(status, tq.status(pg_temp.id('c')), '2.11 completed: returns the status') FROM answer;
SELECT is(pg_temp.look('c'), 'completed 2: scheduled>completed/completed', '2.11 completed: state and reason, retriesLeft unchanged');
SELECT ok(pg_temp.near(pg_temp.run('c') ->> 'resolved', pg_temp.clock()), '2.11 completed: resolved is now');
SELECT is(pg_temp.run('c') - '{state,reasonResolved,resolved}'::text[], run - 'state', '2.11 completed: the rest of the run stays') FROM before;
SELECT pg_temp.running('f');
CREATE TEMP TABLE answer_f AS SELECT tq.report_failed(pg_temp.id('f'), 0) AS status;
SELECT is(status, tq.status(pg_temp.id('f')), '2.11 failed: returns the status') FROM answer_f;
SELECT is(pg_temp.look('f'), 'failed 5: scheduled>failed/failed', '2.11 failed: never retried, retriesLeft unchanged');
SELECT is(tq.task_queue_counts('test/q-f') ->> 'claimedTasks', '0', '2.11 a reported run is not claimed any more');

-- repeats and conflicts
SELECT pg_temp.keeps(pg_temp.query('completed', 'c'), 'c', '2.11 completed: a repeat');
SELECT pg_temp.keeps(pg_temp.query('failed', 'f'), 'f', '2.11 failed: a repeat');
SELECT pg_temp.throws(pg_temp.query('failed', 'c'), 'TQ409', '2.11 completed, then failed');
SELECT pg_temp.throws(pg_temp.query('completed', 'f'), 'TQ409', '2.11 failed, then completed');
SELECT pg_temp.resolved('e', 'internal-error');
SELECT pg_temp.resolved('x', 'canceled');
SELECT pg_temp.throws(pg_temp.query(h, n), 'TQ409', format('2.11 %s: conflict with %s', h, pg_temp.look(n)))
FROM unnest('{completed,failed}'::text[]) AS h, unnest('{e,x}'::text[]) AS n;
SELECT pg_temp.throws($$SELECT tq.report_exception(pg_temp.id('c'), 0, 'internal-error')$$, 'TQ409', '2.12 completed, then exception');

-- a run that is not the last
SELECT lives_ok(format('SELECT tq.rerun_task(pg_temp.id(%L))', n), '2.11 rerun ' || n) FROM unnest('{c,f}'::text[]) AS n;
SELECT pg_temp.throws(pg_temp.query('completed', 'c', 0), 'TQ409', '2.11 completed, rerun: a repeat for the old run');
SELECT pg_temp.throws(pg_temp.query('failed', 'f', 0), 'TQ409', '2.11 failed, rerun: a repeat for the old run');
SELECT pg_temp.take('c');
SELECT pg_temp.throws(pg_temp.query('completed', 'c', 0), 'TQ409', '2.11 also when the new run is running');
SELECT is(pg_temp.report('c', 'completed', 1), 'completed 2: scheduled>completed/completed rerun>completed/completed', '2.11 the new run');
SELECT pg_temp.throws(pg_temp.query('completed', 'c', 0), 'TQ409', '2.11 also when the new run is completed');
SELECT pg_temp.keeps(pg_temp.query('completed', 'c', 1), 'c', '2.11 a repeat for the last run');
SELECT pg_temp.resolved('r', 'worker-shutdown');
SELECT pg_temp.throws(pg_temp.query(h, 'r', 0), 'TQ409', format('2.11 %s: a run that was retried', h)) FROM unnest('{completed,failed}'::text[]) AS h;

-- no deadline check, no check of takenUntil
SELECT pg_temp.running('d' || n) FROM generate_series(1, 2) AS n;
SET tq.clock_offset = '2 hours';
SELECT is(pg_temp.report('d1', 'completed'), 'completed 5: scheduled>completed/completed', '2.11 completed after the deadline, before upkeep()');
SELECT is(pg_temp.report('d2', 'failed'), 'failed 5: scheduled>failed/failed', '2.11 failed after the deadline, before upkeep()');
SELECT is(pg_temp.pass(), 'deadline ' || (SELECT count(*) FROM unnest('{p,u,f,r}'::text[])), '2.11 reported tasks are not resolved by the deadline, others are');
SELECT is(pg_temp.look('d1') || ' ' || pg_temp.look('d2'), 'completed 5: scheduled>completed/completed failed 5: scheduled>failed/failed', '2.11 they stay as reported');
RESET tq.clock_offset;
SELECT pg_temp.running('l');
SET tq.clock_offset = '21 minutes';
SELECT is(pg_temp.report('l', 'completed'), 'completed 5: scheduled>completed/completed', '5.4 reported after takenUntil, before upkeep()');
SELECT is(pg_temp.pass(), '', '5.4 then the claim does not expire');
RESET tq.clock_offset;

-- claimed by claimTask
SELECT pg_temp.create('k');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('k'), 0, 'wg', 'w9')$$, '2.11 claimed by claim_task');
SELECT is(pg_temp.report('k', 'failed'), 'failed 5: scheduled>failed/failed', '2.11 reported like any other');

SELECT * FROM finish();
ROLLBACK;
