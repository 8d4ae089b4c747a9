-- doc/spec/policy.md 2.1: the argument retry of enqueue() and enqueue_tasks().
BEGIN;
\ir policy.psql

-- What it stands for
SELECT tq.enqueue('test/q-a', task_id => pg_temp.id('a'), retry => 2);
SELECT is(tq.task(pg_temp.id('a')) -> 'policy', '{"retryOn": ["failed", "claim-expired", "worker-shutdown", "intermittent-task"],
	"retryBackoff": {"kind": "exponential", "delay": 10, "max": 3600, "jitter": 10}}', 'the policy that retry stands for');
SELECT is(tq.task(pg_temp.id('a')) -> 'retries', '2', 'the number is that of the task');
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, 'one policy');
SELECT tq.enqueue('test/q-b', task_id => pg_temp.id('b'), retry => 7);
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, 'for all numbers');

-- What is retried: each of the four reasons, and nothing else
CREATE FUNCTION pg_temp.end_by(name text, reason text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.enqueue('test/q-' || name, task_id => pg_temp.id(name), retry => 1);
	PERFORM pg_temp.take(name);
	IF reason = 'failed' THEN
		PERFORM tq.report_failed(pg_temp.id(name), 0);
	ELSIF reason <> 'claim-expired' THEN
		PERFORM tq.report_exception(pg_temp.id(name), 0, reason);
	END IF;
END $$;
SELECT pg_temp.end_by(reason, reason) FROM unnest('{failed,claim-expired,worker-shutdown,intermittent-task,malformed-payload,resource-unavailable,internal-error}'::text[]) AS reason;
SELECT pg_temp.pass('20 minutes');
SELECT is(tq.status(pg_temp.id(reason)) ->> 'state', state, reason || ': ' || state)
FROM (VALUES ('failed', 'pending'), ('claim-expired', 'pending'), ('worker-shutdown', 'pending'), ('intermittent-task', 'pending'),
	('malformed-payload', 'exception'), ('resource-unavailable', 'exception'), ('internal-error', 'exception')) AS v (reason, state);

-- The delays: 10, 20, 40, … seconds, at most an hour, and up to 10 more
SET tq.clock_offset = '0';
SELECT tq.enqueue('test/q-c', task_id => pg_temp.id('c'), retry => 10, deadline => '5 days');
CREATE TEMP TABLE waited (n int, wait interval);
DO $$
BEGIN
	FOR n IN 0 .. 9 LOOP
		PERFORM pg_temp.take('c');
		PERFORM tq.report_failed(pg_temp.id('c'), n);
		INSERT INTO waited VALUES (n, pg_temp.wait('c'));
		PERFORM set_config('tq.clock_offset', (n + 1) * 2 || ' hours', true);
		PERFORM tq.upkeep();
	END LOOP;
END $$;
SELECT is(count(*), 10::bigint, 'ten retries') FROM waited;
SELECT ok(wait BETWEEN least(10 * 2 ^ n, 3600) * interval '1 second' AND (least(10 * 2 ^ n, 3600) + 10) * interval '1 second', format('delay after attempt %s: %s', n, wait)) FROM waited;
SELECT isnt(count(DISTINCT extract(epoch FROM wait)::numeric % 1), 1::bigint, 'the delays have a random part') FROM waited;
SELECT pg_temp.take('c');
SELECT is(tq.report_failed(pg_temp.id('c'), 10) ->> 'state', 'failed', 'the eleventh failure is final');
SET tq.clock_offset = '0';

-- Without it a failure is final
SELECT tq.enqueue('test/q-d', task_id => pg_temp.id('d'));
SELECT pg_temp.take('d');
SELECT is(tq.report_failed(pg_temp.id('d'), 0) ->> 'state', 'failed', 'without retry a failure is final');
SELECT tq.enqueue('test/q-e', task_id => pg_temp.id('e'), retry => 0);
SELECT pg_temp.take('e');
SELECT is(tq.report_failed(pg_temp.id('e'), 0) ->> 'state', 'failed', 'and with retry => 0');

-- Beside other arguments
SELECT tq.enqueue('test/q-f', task_id => pg_temp.id('f'), retry => 3, policy => '{"claimTimeout": 60, "retries": null, "uniqueKey": "k"}');
SELECT is(tq.task(pg_temp.id('f')) -> 'policy' -> 'claimTimeout', '60', 'the rest of a policy holds');
SELECT is(tq.task(pg_temp.id('f')) #> '{policy,retryBackoff,max}', '3600', 'beside what retry adds');
SELECT is(tq.enqueue('test/q-f', retry => 3, policy => '{"uniqueKey": "k"}')::text, pg_temp.id('f')::text, 'and its keys');
SELECT pg_temp.throws(call, 'TQ400', call) FROM (VALUES
	($$SELECT tq.enqueue('test/q', retry => 3, retries => 3)$$), ($$SELECT tq.enqueue('test/q', retry => 3, retries => 5)$$),
	($$SELECT tq.enqueue('test/q', retry => 50)$$), ($$SELECT tq.enqueue('test/q', retry => -1)$$),
	($$SELECT tq.enqueue('test/q', retry => 3, policy => '{"retries": 3}')$$), ($$SELECT tq.enqueue('test/q', retry => 3, policy => '{"retryOn": []}')$$),
	($$SELECT tq.enqueue('test/q', retry => 3, policy => '{"retryBackoff": {}}')$$), ($$SELECT tq.enqueue('test/q', retry => 3, policy => '{"lostRetries": 1}')$$),
	($$SELECT tq.enqueue('test/q', retry => 3, policy => '[]')$$), ($$SELECT tq.enqueue('test/q', retry => 3, policy => '{"nothing": 1}')$$),
	($$SELECT tq.enqueue_tasks('test/q', '{"{}"}', retry => 3, retries => 3)$$)) AS v (call);

-- A repeat, many tasks, and the default policy of a queue
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/q-a', task_id => pg_temp.id('a'), retry => 2))$$, 'a', 'a repeat');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q-a', task_id => pg_temp.id('a'), retry => 3)$$, 'TQ409', 'another number');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q-a', task_id => pg_temp.id('a'), retries => 2)$$, 'TQ409', 'retries in its place');
SELECT tq.enqueue_tasks('test/q-g', '{"{}","{}"}', task_ids => pg_temp.ids('g', 'h'), retry => 4);
SELECT is(tq.task(pg_temp.id(n)) -> 'policy', tq.task(pg_temp.id('a')) -> 'policy', 'enqueue_tasks: ' || n) FROM unnest('{g,h}'::text[]) AS n;
SELECT is(tq.status(pg_temp.id('h')) ->> 'retriesLeft', '4', 'enqueue_tasks: the number');
SELECT tq.set_queue('test/q-i', '{"policy": {"retries": 9, "retryBackoff": {"delay": 1}, "claimTimeout": 30}}');
SELECT tq.enqueue('test/q-i', task_id => pg_temp.id('i'), retry => 1);
SELECT pg_temp.take('i');
SELECT is(pg_temp.claimed_for('i'), '30 seconds'::interval, 'the default policy of the queue adds what retry does not set');
SELECT tq.report_failed(pg_temp.id('i'), 0);
SELECT ok(pg_temp.wait('i') >= '10 seconds'::interval, 'and does not win over it');
SELECT is(tq.status(pg_temp.id('i')) ->> 'retriesLeft', '0', 'nor over the number');
SELECT tq.enqueue('test/q-i', task_id => pg_temp.id('j'), retries => 5);
SELECT is(tq.task(pg_temp.id('j')) -> 'retries', '5', 'retries that are given win, also if they are 5');
SELECT tq.enqueue('test/q-i', task_id => pg_temp.id('k'), retries => NULL);
SELECT is(tq.task(pg_temp.id('k')) -> 'retries', '9', 'NULL is as if they were not given');

SELECT * FROM finish();
ROLLBACK;
