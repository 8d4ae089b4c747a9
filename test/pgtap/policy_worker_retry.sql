-- doc/spec/policy.md 7 (SetTaskStatus max_attempts, delay_on_retry): what a worker
-- that reports sets for the next attempts, in place of the policy.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.waits(name text) RETURNS interval LANGUAGE sql AS $$
	SELECT visible_at - scheduled FROM tq.run_overview WHERE task_id = pg_temp.id(name) ORDER BY run_id DESC LIMIT 1
$$;
CREATE FUNCTION pg_temp.left_(name text) RETURNS int LANGUAGE sql AS $$
	SELECT (tq.status(pg_temp.id(name)) ->> 'retriesLeft')::int
$$;

-- retry_delay, for this attempt and the next ones
SELECT pg_temp.running('a', '{"policy": {"retries": 9, "retryOn": ["failed", "intermittent-task", "claim-expired"], "lostRetries": 2, "retryBackoff": {"delay": 60, "kind": "exponential", "max": 100, "jitter": 5}}}');
SELECT tq.report_failed(pg_temp.id('a'), 0, retry_delay => '7 s');
SELECT is(pg_temp.waits('a'), '7 s'::interval, 'retry_delay: in place of the backoff, exactly');
SELECT pg_temp.pass('1 minute');
SELECT tq.claim_task(pg_temp.id('a'), 1, 'g', 'w');
SELECT tq.report_exception(pg_temp.id('a'), 1, 'intermittent-task');
SELECT is(pg_temp.waits('a'), '7 s'::interval, 'retry_delay: kept for the next attempt');
SELECT pg_temp.pass('2 minutes');
SELECT tq.claim_task(pg_temp.id('a'), 2, 'g', 'w');
SELECT pg_temp.pass('30 minutes');
SELECT is(pg_temp.waits('a'), '0'::interval, 'retry_delay: a lost run is retried at once nevertheless');
SELECT tq.claim_task(pg_temp.id('a'), 3, 'g', 'w');
SELECT tq.defer_task(pg_temp.id('a'), 3, '0');
SELECT tq.upkeep();
SELECT tq.claim_task(pg_temp.id('a'), 3, 'g', 'w');
SELECT tq.report_failed(pg_temp.id('a'), 3);
SELECT is(pg_temp.waits('a'), '7 s'::interval, 'retry_delay: kept through a loss and a deferral');
SELECT pg_temp.pass('31 minutes');
SELECT tq.claim_task(pg_temp.id('a'), 4, 'g', 'w');
SELECT tq.report_failed(pg_temp.id('a'), 4, retry_delay => '0');
SELECT is(pg_temp.waits('a'), '0'::interval, 'retry_delay: 0 is at once');
SELECT tq.cancel_task(pg_temp.id('a')), tq.rerun_task(pg_temp.id('a'));
SELECT tq.claim_task(pg_temp.id('a'), 6, 'g', 'w');
SELECT tq.report_failed(pg_temp.id('a'), 6);
SELECT ok(pg_temp.waits('a') BETWEEN '60 s' AND '65 s', 'retry_delay: reset by a rerun');
RESET tq.clock_offset;

-- without a policy
SELECT pg_temp.running('b');
SELECT tq.report_exception(pg_temp.id('b'), 0, 'intermittent-task', retry_delay => '10 s');
SELECT is(pg_temp.waits('b'), '10 s'::interval, 'retry_delay: for a task without a policy');
SELECT pg_temp.running('c');
SELECT tq.report_failed(pg_temp.id('c'), 0, retry_delay => '10 s', retries_left => 3);
SELECT is(tq.status(pg_temp.id('c')) ->> 'state', 'failed', 'both: a reason that is not in retryOn is not retried');

-- retries_left
SELECT pg_temp.running(n, '{"policy": {"retries": 2, "retryOn": ["failed"]}}') FROM unnest('{d,e,f}'::text[]) AS n;
SELECT tq.report_failed(pg_temp.id('d'), 0, retries_left => 0);
SELECT is(tq.status(pg_temp.id('d')) ->> 'state', 'failed', 'retries_left: 0 makes the failure final');
SELECT is(pg_temp.left_('d'), 2, 'retries_left: the resolved run keeps its value');
SELECT tq.report_failed(pg_temp.id('e'), 0, retries_left => 5);
SELECT is(pg_temp.left_('e'), 4, 'retries_left: so many further attempts, of which this is one');
SELECT tq.report_failed(pg_temp.id('f'), 0);
SELECT is(pg_temp.left_('f'), 1, 'retries_left: not given');

-- bad input
SELECT pg_temp.running('g');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('g'), 0, retry_delay => '-1 ms')$$, 'TQ400', 'retry_delay: negative');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('g'), 0, retry_delay => '100 years')$$, 'TQ400', 'retry_delay: too long');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('g'), 0, retries_left => -1)$$, 'TQ400', 'retries_left: negative');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('g'), 0, retries_left => 50)$$, 'TQ400', 'retries_left: more than the maximum of runs');
SELECT is(tq.status(pg_temp.id('g')) ->> 'state', 'running', 'bad input changes nothing');

SELECT * FROM finish();
ROLLBACK;
