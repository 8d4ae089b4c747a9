-- Conductor's delays between attempts (CC-051 to CC-063), measured on
-- runs that fail: from the end of a run to the moment at which the next one
-- can be polled.  A list as '60 120 FAILED' says how long each retry has
-- waited, in seconds, and the final status of the task.
--
-- Each case is rolled back before the next, with its clock; not the last, because
-- finish() needs it.
BEGIN;
\ir conductor.psql
SAVEPOINT cc;

-- ---------------------------------------------------------------------------
-- Growth and cap
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.waits(def || jsonb_build_object('retryCount', n), 9), waits, description) FROM (VALUES
	('{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 60, "backoffScaleFactor": 2}'::jsonb, 3, '120 240 360 FAILED', 'CC-051 LINEAR, delay 60, scale 2'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 60}', 3, '60 120 240 FAILED', 'CC-053 EXPONENTIAL, delay 60'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 1}', 12, '1 2 4 8 16 32 64 128 256 SCHEDULED', 'CC-053 EXPONENTIAL, delay 1, nine failures'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 60, "maxRetryDelaySeconds": 200}', 4, '60 120 200 200 FAILED', 'CC-054 EXPONENTIAL, delay 60, cap 200'),
	('{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 60, "backoffScaleFactor": 2, "maxRetryDelaySeconds": 250}', 4, '120 240 250 250 FAILED', 'CC-055 LINEAR, delay 60, scale 2, cap 250'),
	('{"retryLogic": "FIXED", "retryDelaySeconds": 60, "maxRetryDelaySeconds": 10}', 2, '10 10 FAILED', 'CC-056 FIXED, delay 60, cap 10'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 10, "maxRetryDelaySeconds": 0}', 3, '10 20 40 FAILED', 'CC-057 EXPONENTIAL, delay 10, cap 0 means no cap'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2, "maxRetryDelaySeconds": 3}', 3, '2 3 3 FAILED', 'CC-062 EXPONENTIAL, delay 2, cap 3'),
	('{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2, "backoffScaleFactor": 2, "maxRetryDelaySeconds": 5}', 3, '4 5 5 FAILED', 'CC-062 LINEAR, delay 2, scale 2, cap 5'),
	('{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 60}', 3, '60 120 180 FAILED', 'CC-051 LINEAR, scale 1 where none is given'),
	('{"retryLogic": "FIXED", "retryDelaySeconds": 60, "backoffScaleFactor": 5}', 2, '60 60 FAILED', 'CC-051 scale is of LINEAR only: FIXED'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 60, "backoffScaleFactor": 5}', 2, '60 120 FAILED', 'CC-051 scale is of LINEAR only: EXPONENTIAL'),
	('{"retryLogic": "FIXED", "retryDelaySeconds": 60, "maxRetryDelaySeconds": 60}', 1, '60 FAILED', 'CC-056 a cap that is just enough')) AS v (def, n, waits, description);
ROLLBACK TO cc;

-- the delay is of the attempt that failed, whatever its reason
SELECT pg_temp.polled('mix', '{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 10, "responseTimeoutSeconds": 20, "timeoutSeconds": 20, "pollTimeoutSeconds": 20, "timeoutPolicy": "RETRY", "retryCount": 4}');
SELECT pg_temp.report('mix', 'failed');
SELECT is(pg_temp.wait('mix'), 10.0, 'CC-053 one after a failure');
SELECT pg_temp.at(pg_temp.time('mix'));
SELECT pg_temp.take('mix');
SELECT pg_temp.at(pg_temp.time('mix', 'takenUntil'));
SELECT is(pg_temp.wait('mix'), 20.0, 'CC-053 the next after a task timeout');
SELECT pg_temp.at(pg_temp.time('mix') + interval '20 s');
SELECT is(pg_temp.wait('mix'), 40.0, 'CC-053 the next after a poll timeout');
SELECT is(pg_temp.look('mix'), 'pending 1: scheduled>failed/failed failure-retry>exception/run-timeout retry>exception/pending-timeout retry>pending', 'CC-053 each has consumed a retry');
SELECT is((SELECT string_agg(attempt::text, ' ' ORDER BY run_id) FROM tq.run_overview), '0 1 2 3', 'CC-053 retryCount');
SELECT is((SELECT string_agg(coalesce(run ->> 'attempt', '-'), ' ' ORDER BY n) FROM jsonb_array_elements(pg_temp.runs(tq.status(pg_temp.id('mix')))) WITH ORDINALITY AS u (run, n)),
	'- 1 2 3', 'CC-053 which the status shows where it is not 0');
ROLLBACK TO cc;

-- the last attempt has no delay, because nothing follows it
SELECT pg_temp.polled('last', '{"retryCount": 0, "retryDelaySeconds": 60}');
SELECT is(pg_temp.report('last', 'failed'), 'failed 0: scheduled>failed/failed', 'CC-044 no retries: nothing is delayed');
SELECT is((SELECT count(*) FROM tq_internal.delayed), 0::bigint, 'CC-044 nothing waits');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Overflow: at most 2147483647 s
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled(n, d::jsonb) FROM (VALUES
	('linear', '{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 100000, "backoffScaleFactor": 1000000}'),
	('most', '{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2147483647, "backoffScaleFactor": 2147483647}'),
	('just', '{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 65537, "backoffScaleFactor": 65535}'),
	('less', '{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2147483646, "backoffScaleFactor": 1}'),
	('fixed', '{"retryDelaySeconds": 2147483647}'),
	('capped', '{"retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2147483647, "backoffScaleFactor": 2147483647, "maxRetryDelaySeconds": 7}')) AS v (n, d);
SELECT pg_temp.report(n, 'failed') FROM unnest('{linear,most,just,less,fixed,capped}'::text[]) AS n;
SELECT is(pg_temp.wait(n), seconds, 'CC-052 ' || description) FROM (VALUES
	('linear', 2147483647.0, 'LINEAR, 100000 * 1000000'),
	('most', 2147483647, 'LINEAR, the largest of both'),
	('just', 2147483647, 'LINEAR, 65537 * 65535 = 2^32 - 1'),
	('less', 2147483646, 'LINEAR, one less than the largest'),
	('fixed', 2147483647, 'FIXED, the largest'),
	('capped', 7, 'a cap comes after it')) AS v (n, seconds, description);
SELECT is(pg_temp.state(n), 'pending', 'CC-052 it is pending: ' || n) FROM unnest('{linear,most}'::text[]) AS n;
SELECT is(pg_temp.at(pg_temp.clock() + interval '1 day') || ' ' || pg_temp.look('linear'), 'deadline 6 exception 2: scheduled>failed/failed failure-retry>exception/deadline-exceeded', 'CC-052 until its deadline');
ROLLBACK TO cc;

-- for the second failure, a first delay of 34 years or more must be over; the
-- second would end after the deadline
SET tq.max_deadline = 2147483647;
SELECT is(pg_temp.waits(def, 2, jsonb_build_object('$deadline', '24800 days', '$expires', '200000 days')), waits, 'CC-053 ' || description) FROM (VALUES
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 1073741823}'::jsonb, '1073741823 2147483646 TIMED_OUT', 'EXPONENTIAL, nearly the largest'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 1073741824}', '1073741824 2147483647 TIMED_OUT', 'EXPONENTIAL, 2^31 is one too many'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2000000000}', '2000000000 2147483647 TIMED_OUT', 'EXPONENTIAL, 4 * 10^9')) AS v (def, waits, description);
RESET tq.max_deadline;
ROLLBACK TO cc;

-- 2^attempt is too large for any integer
SELECT is(pg_temp.waits('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 1, "maxRetryDelaySeconds": 1, "retryCount": 49}', 60), repeat('1 ', 49) || 'FAILED', 'CC-053 EXPONENTIAL with a cap, 49 retries');
SELECT is(pg_temp.waits('{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 0, "retryCount": 49}', 60), repeat('0 ', 49) || 'FAILED', 'CC-053 EXPONENTIAL of 0, 49 retries');
SELECT pg_temp.refuses('{"policy": {"retries": 50}}', 'CC-053 tq: more than 50 runs are refused (doc/spec/policy.md C18)');
SELECT throws_ok($$SELECT tq.conductor_policy('{"retryCount": 50}')$$, 'TQ400', NULL, 'CC-053 tq: so they are by the preset');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Jitter: after the cap, even over [0, n] milliseconds
-- ---------------------------------------------------------------------------

-- Many tasks of one definition fail, in calls of 1000; the delays of their
-- retries are in waited, in milliseconds.
CREATE FUNCTION pg_temp.sample(task_def jsonb, tasks int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', tq.slugid()::text, 'task',
			pg_temp.def('many', '{"taskQueueId": "test/many", "$group": "many", "$deadline": "1 day"}') || jsonb_build_object('policy', policy)))
		FROM generate_series(1, tasks), tq.conductor_policy(task_def) AS policy));
	FOR n IN 1 .. tasks BY 1000 LOOP
		PERFORM tq.resolve(array_agg(task_id), array_agg(run_id), 'failed')
		FROM tq.claim_work('test/many', 'wg', 'w1', 1000);
	END LOOP;
	DROP TABLE IF EXISTS waited;
	CREATE TEMP TABLE waited AS
		SELECT extract(epoch FROM r.visible_at - f.resolved) * 1000 AS ms
		FROM tq.run_overview AS r JOIN tq.run_overview AS f ON f.task_id::text = r.task_id::text
		WHERE r.run_id = 1 AND f.run_id = 0;
END
$$;
SAVEPOINT sample;

SELECT pg_temp.sample('{"retryDelaySeconds": 60, "backoffJitterMs": 5000}', 3000);
SELECT is(count(*), 3000::bigint, 'CC-058 FIXED 60, jitter 5000: 3000 samples') FROM waited;
SELECT is((min(ms) >= 60000, max(ms) <= 65000), (true, true), 'CC-058 none is outside [60000, 65000] ms') FROM waited;
SELECT is((min(ms) < 60100, max(ms) > 64900), (true, true), 'CC-058 but they come near both ends') FROM waited;
SELECT ok(avg(ms) BETWEEN 62300 AND 62700, 'CC-058 around the middle') FROM waited;	-- standard deviation: 26
SELECT ok(min(n) > 450 AND max(n) < 750, 'CC-058 the fifths are equally frequent')	-- 600, standard deviation: 22
FROM (SELECT count(*) AS n FROM waited GROUP BY width_bucket(ms, 60000, 65001, 5)) AS s;
SELECT ok(count(DISTINCT ms) > 1500, 'CC-058 tasks of one call have each their own') FROM waited;
SELECT ok(bool_and(ms = trunc(ms)), 'CC-058 whole milliseconds') FROM waited;
SELECT is((SELECT count(DISTINCT policy) FROM tq_internal.policy), 1::bigint, 'CC-058 they have all one policy');
ROLLBACK TO sample;

SELECT pg_temp.sample('{"retryDelaySeconds": 60, "backoffJitterMs": 0}', 50);
SELECT is((min(ms), max(ms)), (60000.0, 60000.0), 'CC-058 jitter 0: exactly 60000 ms') FROM waited;
ROLLBACK TO sample;
SELECT pg_temp.sample('{"retryDelaySeconds": 30, "backoffJitterMs": 1}', 200);
SELECT is((SELECT string_agg(DISTINCT trim_scale(ms)::text, ' ') FROM waited), '30000 30001', 'CC-058 FIXED 30, jitter 1: 30000 or 30001 ms');
SELECT ok(count(*) FILTER (WHERE ms = 30000) BETWEEN 50 AND 150, 'CC-058 each as often') FROM waited;	-- 100, standard deviation: 7
ROLLBACK TO sample;

SELECT pg_temp.start('exp', '{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 10, "backoffJitterMs": 2000}');
SELECT pg_temp.failing('exp', 2);
SELECT is((pg_temp.wait('exp', 1) BETWEEN 10 AND 12, pg_temp.wait('exp', 2) BETWEEN 20 AND 22), (true, true), 'CC-059 EXPONENTIAL 10, jitter 2000: 10 to 12 s, then 20 to 22');
ROLLBACK TO sample;

SELECT pg_temp.start('s' || n, '{"retryDelaySeconds": 10, "backoffJitterMs": 2000}') FROM generate_series(1, 10) AS n;
SELECT pg_temp.failing('s' || n, 1) FROM generate_series(1, 10) AS n;
SELECT ok(count(DISTINCT pg_temp.wait('s' || n)) > 1, 'CC-060 ten samples of jitter 2000 are not all equal') FROM generate_series(1, 10) AS n;
ROLLBACK TO sample;
SELECT pg_temp.start('one', '{"retryDelaySeconds": 10, "backoffJitterMs": 2000, "retryCount": 10}');
SELECT pg_temp.failing('one', 10);
SELECT ok(count(DISTINCT pg_temp.wait('one', n)) > 1, 'CC-060 neither are ten of one task') FROM generate_series(1, 10) AS n;
ROLLBACK TO sample;

SELECT pg_temp.start('cap', '{"retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2, "maxRetryDelaySeconds": 3, "backoffJitterMs": 2000}');
SELECT pg_temp.failing('cap', 2);
SELECT is((pg_temp.wait('cap', 1) BETWEEN 2 AND 4, pg_temp.wait('cap', 2) BETWEEN 3 AND 5), (true, true), 'CC-061 EXPONENTIAL 2, cap 3, jitter 2000: the cap is before the jitter');
ROLLBACK TO sample;
SELECT pg_temp.sample('{"retryDelaySeconds": 60, "maxRetryDelaySeconds": 3, "backoffJitterMs": 2000}', 500);
SELECT is((min(ms) >= 3000, max(ms) BETWEEN 4500 AND 5000), (true, true), 'CC-061 which may go beyond the cap') FROM waited;
ROLLBACK TO sample;
SELECT pg_temp.sample('{"retryDelaySeconds": 0, "backoffJitterMs": 2000}', 200);
SELECT is((min(ms) BETWEEN 0 AND 200, max(ms) BETWEEN 1800 AND 2000), (true, true), 'CC-061 jitter alone delays, too') FROM waited;
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- No delay
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a', '{"retryDelaySeconds": 0}');
SELECT pg_temp.report('a', 'failed');
SELECT ok(NOT pg_temp.run('a') ? 'visibleAt' AND (SELECT count(*) FROM tq_internal.delayed) = 0, 'CC-063 delay 0: nothing is delayed');
SELECT is(pg_temp.take('a', 'w2'), 1, 'CC-063 the retry can be polled at once, without a pass');
SELECT is(pg_temp.waits('{"retryDelaySeconds": 0}', 9), '0 0 0 FAILED', 'CC-063 so can each');

SELECT * FROM finish();
ROLLBACK;
