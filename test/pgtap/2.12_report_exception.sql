-- doc/spec/taskcluster.md 2.12: reportException; 10.3.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.query(name text, reason text, run int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$
	SELECT format('SELECT tq.report_exception(pg_temp.id(%L), %s, %L)', name, run, reason)
$$;

SELECT pg_temp.throws(pg_temp.query('nobody', 'internal-error'), 'TQ404', '2.12 no such task');
SELECT pg_temp.create('p');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.throws(pg_temp.query('p', 'internal-error', 1), 'TQ404', '2.12 no such run');
SELECT pg_temp.throws(pg_temp.query('u', 'internal-error'), 'TQ404', '2.12 an unscheduled task has no run');
SELECT pg_temp.throws(pg_temp.query('p', r), 'TQ409', '2.12 pending: ' || r) FROM unnest('{internal-error,worker-shutdown}'::text[]) AS r;
SELECT pg_temp.running('b');
SELECT pg_temp.throws(pg_temp.query('b', r), 'TQ400', '2.12 no reason for a worker: ' || quote_literal(r))
FROM unnest('{"",completed,failed,deadline-exceeded,canceled,claim-expired,superseded,Internal-Error,"internal-error ",foo}'::text[]) AS r;

-- final reasons
SELECT pg_temp.running('f-' || r, '{"retries": 5}') FROM unnest('{malformed-payload,resource-unavailable,internal-error}'::text[]) AS r;
SELECT is(pg_temp.report('f-' || r, r), 'exception 5: scheduled>exception/' || r, '2.12 final: ' || r)
FROM unnest('{malformed-payload,resource-unavailable,internal-error}'::text[]) AS r;
SELECT pg_temp.keeps(pg_temp.query('f-' || r, r), 'f-' || r, '2.12 a repeat: ' || r)
FROM unnest('{malformed-payload,resource-unavailable,internal-error}'::text[]) AS r;
SELECT pg_temp.throws(pg_temp.query('f-internal-error', r), 'TQ409', '2.12 another reason: ' || r)
FROM unnest('{malformed-payload,resource-unavailable,worker-shutdown,intermittent-task}'::text[]) AS r;
CREATE TEMP TABLE answer AS SELECT tq.report_exception(pg_temp.id('b'), 0, 'internal-error') AS status;
SELECT is(status, tq.status(pg_temp.id('b')), '2.12 returns the status') FROM answer;
SELECT is(pg_temp.run('b') ->> 'workerId', 'w1', '2.12 the worker is kept');

-- retried reasons
SELECT pg_temp.running('r-' || r, '{"retries": 2}') FROM unnest('{worker-shutdown,intermittent-task}'::text[]) AS r;
CREATE TEMP TABLE kinds (r text, c text);
INSERT INTO kinds VALUES ('worker-shutdown', 'retry'), ('intermittent-task', 'task-retry');
SELECT is(pg_temp.report('r-' || r, r), format('pending 1: scheduled>exception/%s %s>pending', r, c), '2.12 retried: ' || r) FROM kinds;
SELECT pg_temp.keeps(pg_temp.query('r-' || r, r), 'r-' || r, '2.12 a repeat while the retry is pending: ' || r) FROM kinds;
SELECT pg_temp.throws(pg_temp.query('r-' || r, 'internal-error'), 'TQ409', '2.12 another reason while the retry is pending: ' || r) FROM kinds;
SELECT is(pg_temp.take('r-' || r), 1, '2.12 the retry can be claimed: ' || r) FROM kinds;
SELECT pg_temp.keeps(pg_temp.query('r-' || r, r), 'r-' || r, '10.3 a repeat after the retry was claimed: ' || r) FROM kinds;
SELECT is(pg_temp.report('r-' || r, r, 1), format('pending 0: scheduled>exception/%s %s>exception/%s %s>pending', r, c, r, c), '2.12 retried again: ' || r) FROM kinds;
SELECT pg_temp.throws(pg_temp.query('r-' || r, r, 0), 'TQ409', '2.12 a repeat when two runs follow: ' || r) FROM kinds;
SELECT pg_temp.keeps(pg_temp.query('r-' || r, r, 1), 'r-' || r, '2.12 a repeat when one run follows: ' || r) FROM kinds;
SELECT is(pg_temp.take('r-' || r), 2, '2.12 the last retry can be claimed: ' || r) FROM kinds;
SELECT is(pg_temp.report('r-' || r, r, 2), format('exception 0: scheduled>exception/%s %s>exception/%s %s>exception/%s', r, c, r, c, r), '2.12 no retries left: final, ' || r) FROM kinds;
SELECT pg_temp.keeps(pg_temp.query('r-' || r, r, 2), 'r-' || r, '2.12 a repeat of the final one: ' || r) FROM kinds;
SELECT pg_temp.keeps(pg_temp.query('r-' || r, r, 1), 'r-' || r, '2.12 a repeat of the one before, one run follows: ' || r) FROM kinds;

-- 10.3: a repeat does not resolve a run that was retried
SELECT pg_temp.running('dep');
SELECT pg_temp.create('after', '{"$deps": ["dep"], "requires": "all-resolved"}');
SELECT pg_temp.report('dep', 'worker-shutdown');
SELECT pg_temp.take('dep');
SELECT pg_temp.keeps(pg_temp.query('dep', 'worker-shutdown'), 'dep', '10.3 a repeat after the retry was claimed');
SELECT is(pg_temp.look('after'), 'unscheduled 5:', '10.3 an all-resolved dependent is not released');
SELECT pg_temp.report('dep', 'failed');
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', '10.3 until the final resolution');

-- a final exception, then a rerun: one run follows
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('b'))$$, '2.12 a rerun after a final exception');
SELECT pg_temp.keeps(pg_temp.query('b', 'internal-error'), 'b', '2.12 at most one run follows: a repeat');
SELECT pg_temp.throws(pg_temp.query('b', 'malformed-payload'), 'TQ409', '2.12 but not for another reason');

-- conflicts with other resolutions
SELECT pg_temp.resolved(n, r) FROM (VALUES ('c', 'completed'), ('f', 'failed'), ('x', 'canceled')) AS v (n, r);
SELECT pg_temp.throws(pg_temp.query(n, 'worker-shutdown'), 'TQ409', '2.12 conflict with ' || pg_temp.look(n)) FROM unnest('{c,f,x}'::text[]) AS n;

-- after takenUntil, and after the deadline
SELECT pg_temp.running('l');
SET tq.clock_offset = '21 minutes';
SELECT is(pg_temp.report('l', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '5.4 after takenUntil, before upkeep()');
SELECT is(pg_temp.pass(), '', '5.4 then the claim does not expire as well');
RESET tq.clock_offset;
SELECT pg_temp.running('dl', '{"$deadline": "5 minutes"}');
SET tq.clock_offset = '6 minutes';
-- doc/spec/policy.md 10.14 differs from 2.12: no retry is started past the deadline
SELECT is(pg_temp.report('dl', 'intermittent-task'), 'exception 5: scheduled>exception/intermittent-task', '2.12, doc/spec/policy.md 10.14: a report past the deadline is accepted, and not retried');
SELECT is(pg_temp.claims('test/q-dl'), '', '2.12 nothing can be claimed');
SELECT is((tq.task_queue_counts('test/q-dl') -> 'pendingTasks')::bigint, 0::bigint, '2.12 nor is counted');
SELECT is(pg_temp.pass(), '', '2.12 the deadline resolves nothing');
SELECT is(pg_temp.look('dl'), 'exception 5: scheduled>exception/intermittent-task', '2.12 and changes nothing');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
