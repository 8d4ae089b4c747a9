-- doc/spec/policy.md 2, 3, 10: invalid policies.  Each error is TQ400, its
-- detail names the key, and nothing is created; not even the policy is stored.
BEGIN;
\ir policy.psql

-- A task with these overrides is refused because of that key.
CREATE FUNCTION pg_temp.faulty(overrides jsonb, key text, description text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	before text := pg_temp.snapshot();
	error jsonb := pg_temp.error(format('SELECT pg_temp.create(%L, %L)', 'x' || substr(md5(description), 1, 12), overrides));
	changed bool := pg_temp.snapshot() <> before;
BEGIN
	RETURN NEXT is(concat_ws(' ', error ->> 'sqlstate', CASE WHEN position(key IN error ->> 'detail') > 0 THEN 'names ' || key ELSE error ->> 'detail' END,
		CASE WHEN changed THEN 'and something has changed' END), 'TQ400 names ' || key, description);
END
$$;

-- Every key with invalid values.
SELECT pg_temp.faulty(jsonb_build_object('policy', policy::jsonb), key, 'refused: ' || policy) FROM (VALUES
	-- not a policy
	('1', 'policy'), ('"fixed"', 'policy'), ('[]', 'policy'), ('true', 'policy'), ('[{"retries": 1}]', 'policy'),
	-- unknown keys
	('{"foo": 1}', 'foo'), ('{"Retries": 1}', 'Retries'), ('{"retry_on": []}', 'retry_on'), ('{"retrys": null}', 'retrys'), ('{"": 1}', 'policy'), ('{"deadline": 60}', 'deadline'),
	('{"retries": 1, "expires": 60}', 'expires'), ('{"delay_on_retry": 1}', 'delay_on_retry'), ('{"concurrentLimit": 1}', 'concurrentLimit'),
	('{"retryBackoff": {"foo": 1}}', 'foo'), ('{"retryBackoff": {"Delay": 1}}', 'Delay'), ('{"retryBackoff": {"delay": 1, "retries": 1}}', 'retries'),
	-- retries
	('{"retries": "3"}', 'retries'), ('{"retries": 1.5}', 'retries'), ('{"retries": -1}', 'retries'), ('{"retries": true}', 'retries'), ('{"retries": []}', 'retries'),
	('{"retries": {}}', 'retries'), ('{"retries": 50}', 'retries'), ('{"retries": 1e9}', 'retries'), ('{"retries": 1e30}', 'retries'), ('{"retries": 32768}', 'retries'), ('{"retries": 65536}', 'retries'), ('{"retries": 65541}', 'retries'), ('{"retries": 4294967297}', 'retries'),
	-- retryOn
	('{"retryOn": "failed"}', 'retryOn'), ('{"retryOn": {}}', 'retryOn'), ('{"retryOn": {"failed": true}}', 'retryOn'), ('{"retryOn": 1}', 'retryOn'), ('{"retryOn": true}', 'retryOn'),
	('{"retryOn": [1]}', 'retryOn'), ('{"retryOn": [null]}', 'retryOn'), ('{"retryOn": [["failed"]]}', 'retryOn'), ('{"retryOn": [{}]}', 'retryOn'),
	('{"retryOn": ["foo"]}', 'foo'), ('{"retryOn": [""]}', 'retryOn'), ('{"retryOn": ["Failed"]}', 'Failed'), ('{"retryOn": ["claim_expired"]}', 'claim_expired'),
	('{"retryOn": ["failed", "failed"]}', 'failed'), ('{"retryOn": ["worker-shutdown", "failed", "worker-shutdown"]}', 'worker-shutdown'),
	('{"retryOn": ["completed"]}', 'completed'), ('{"retryOn": ["skipped"]}', 'skipped'), ('{"retryOn": ["canceled"]}', 'canceled'), ('{"retryOn": ["superseded"]}', 'superseded'),
	('{"retryOn": ["deadline-exceeded"]}', 'deadline-exceeded'), ('{"retryOn": ["failed-terminal"]}', 'failed-terminal'), ('{"retryOn": ["malformed-payload"]}', 'malformed-payload'),
	('{"retryOn": ["failed", "malformed-payload"]}', 'malformed-payload'), ('{"retryOn": ["scheduled"]}', 'scheduled'), ('{"retryOn": ["retry"]}', 'retry'),
	-- lostRetries, alone and with retries
	('{"lostRetries": "1"}', 'lostRetries'), ('{"lostRetries": -1}', 'lostRetries'), ('{"lostRetries": 0.5}', 'lostRetries'), ('{"lostRetries": true}', 'lostRetries'), ('{"lostRetries": [1]}', 'lostRetries'),
	('{"retries": 0, "lostRetries": 50}', 'lostRetries'), ('{"retries": 5, "lostRetries": 45}', 'lostRetries'), ('{"retries": 49, "lostRetries": 1}', 'lostRetries'),
	('{"lostRetries": 45}', 'lostRetries'), ('{"retries": 1, "lostRetries": 2147483647}', 'lostRetries'),
	-- retryBackoff
	('{"retryBackoff": 60}', 'retryBackoff'), ('{"retryBackoff": "1 minute"}', 'retryBackoff'), ('{"retryBackoff": []}', 'retryBackoff'), ('{"retryBackoff": true}', 'retryBackoff'),
	('{"retryBackoff": {"delay": -1}}', 'delay'), ('{"retryBackoff": {"delay": "x"}}', 'delay'), ('{"retryBackoff": {"delay": true}}', 'delay'), ('{"retryBackoff": {"delay": 2147483648}}', 'delay'),
	('{"retryBackoff": {"kind": "FIXED"}}', 'kind'), ('{"retryBackoff": {"kind": "quadratic"}}', 'kind'), ('{"retryBackoff": {"kind": ""}}', 'kind'), ('{"retryBackoff": {"kind": 1}}', 'kind'), ('{"retryBackoff": {"kind": ["fixed"]}}', 'kind'),
	('{"retryBackoff": {"factor": -1}}', 'factor'), ('{"retryBackoff": {"factor": "2"}}', 'factor'), ('{"retryBackoff": {"factor": true}}', 'factor'), ('{"retryBackoff": {"factor": {}}}', 'factor'), ('{"retryBackoff": {"factor": 1e20}}', 'factor'),
	('{"retryBackoff": {"max": -1}}', 'max'), ('{"retryBackoff": {"max": "long"}}', 'max'), ('{"retryBackoff": {"max": false}}', 'max'), ('{"retryBackoff": {"max": 2147483648}}', 'max'),
	('{"retryBackoff": {"jitter": -0.001}}', 'jitter'), ('{"retryBackoff": {"jitter": []}}', 'jitter'), ('{"retryBackoff": {"jitter": "-1 ms"}}', 'jitter'), ('{"retryBackoff": {"jitter": 2147483648}}', 'jitter'),
	-- times that contradict each other
	('{"claimTimeout": 61, "runTimeout": 60}', 'claimTimeout'), ('{"claimTimeout": "1 minute 1 ms", "runTimeout": 60}', 'claimTimeout'), ('{"claimTimeout": 1, "runTimeout": 0}', 'claimTimeout'),
	('{"runTimeout": 61, "totalTimeout": 60}', 'runTimeout'), ('{"runTimeout": "2 hours", "totalTimeout": "1 hour"}', 'runTimeout'), ('{"runTimeout": 1, "totalTimeout": 0}', 'runTimeout'),
	-- the rest
	('{"timeoutAlertOnly": 1}', 'timeoutAlertOnly'), ('{"timeoutAlertOnly": "true"}', 'timeoutAlertOnly'), ('{"timeoutAlertOnly": []}', 'timeoutAlertOnly'),
	('{"onUnsuccessful": "fail"}', 'onUnsuccessful'), ('{"onUnsuccessful": ""}', 'onUnsuccessful'), ('{"onUnsuccessful": "Block"}', 'onUnsuccessful'), ('{"onUnsuccessful": "cancel_group"}', 'onUnsuccessful'),
	('{"onUnsuccessful": true}', 'onUnsuccessful'), ('{"onUnsuccessful": ["block"]}', 'onUnsuccessful'), ('{"onUnsuccessful": 1}', 'onUnsuccessful'),
	('{"deadLetter": 1}', 'deadLetter'), ('{"dropPayload": 1}', 'dropPayload'), ('{"deadLetter": "yes"}', 'deadLetter'), ('{"deadLetter": {}}', 'deadLetter'),
	-- a delay past the deadline, which is an hour away
	('{"delay": 3601}', 'delay'), ('{"delay": "2 hours"}', 'delay'), ('{"delay": 2147483647}', 'delay')) AS v (policy, key);

-- Every duration.
SELECT pg_temp.faulty(jsonb_build_object('policy', jsonb_build_object(key, value::jsonb)), key, format('refused: %s %s', key, value))
FROM unnest('{claimTimeout,runTimeout,pendingTimeout,totalTimeout,retainCompleted,retainFailed,delay}'::text[]) AS key,
	unnest(ARRAY['-1', '-0.001', '"-1 second"', '"1 minute -61 seconds"', '2147483648', '1e40', '"70 years"', '"25000 days"', '"soon"', '""', '" "', '"infinity"', '"1 minute x"', 'true', '[]', '[60]', '{}', '{"seconds": 1}']) AS value;
SELECT pg_temp.faulty(jsonb_build_object('policy', jsonb_build_object('claimTimeout', value::jsonb)), 'claimTimeout', 'refused: a claim that expires at once, ' || value)
FROM unnest(ARRAY['0', '1e-1000', '0.0009', '"0 s"', '"900 us"']) AS value;

-- delay of the definition
SELECT pg_temp.faulty(jsonb_build_object('delay', value::jsonb), 'delay', 'refused: delay of the definition ' || value)
FROM unnest(ARRAY['-1', '"-1 second"', '2147483648', '"soon"', 'true', '[]', '{}', '3601', '"1 hour 1 ms"', '"2 hours"']) AS value;
SELECT pg_temp.faulty('{"delay": "2 hours", "policy": {"delay": 60}}', 'delay', 'refused: delay of the definition, which takes precedence');

-- A policy that is too long, though it has few keys
SELECT pg_temp.throws(format('SELECT pg_temp.create(''long'', %L)', jsonb_build_object('policy', jsonb_build_object('claimTimeout', '1 minute' || repeat(' ', 3000)))), 'TQ400', 'refused: a policy of 3000 bytes');
SELECT pg_temp.throws(format('SELECT pg_temp.create(''long'', %L)', jsonb_build_object('policy', jsonb_build_object(repeat('k', 100000), 1))), 'TQ400', 'refused: a key of 100,000 bytes');
SELECT pg_temp.throws(format('SELECT pg_temp.create(''long'', %L)', jsonb_build_object('policy', jsonb_build_object('retryOn', (SELECT jsonb_agg('failed'::text) FROM generate_series(1, 10000))))), 'TQ400', 'refused: 10,000 reasons');
SELECT pg_temp.throws(format('SELECT pg_temp.create(''deep'', (''{"policy": {"retryBackoff": '' || repeat(''['', 500) || repeat('']'', 500) || ''}}'')::jsonb)'), 'TQ400', 'refused: 500 arrays in each other');

-- The largest valid values
SAVEPOINT s;
SELECT pg_temp.accepts(jsonb_build_object('policy', policy::jsonb) || overrides::jsonb, 'accepted: ' || policy || ' ' || overrides) FROM (VALUES
	('null', '{}'), ('{}', '{}'), ('{"retries": 49}', '{}'), ('{"retries": 5, "lostRetries": 44}', '{}'), ('{"retries": 0, "lostRetries": 49}', '{}'), ('{"lostRetries": 44}', '{}'),
	('{"lostRetries": 45}', '{"retries": 4}'), ('{"retries": 3.0}', '{}'), ('{"retries": 4, "lostRetries": 45}', '{"retries": 49}'),
	('{"retryOn": ["failed", "claim-expired", "worker-shutdown", "resource-unavailable", "internal-error", "intermittent-task", "pending-timeout", "run-timeout"]}', '{}'),
	('{"claimTimeout": 60, "runTimeout": 60, "totalTimeout": 60}', '{}'), ('{"claimTimeout": 60, "runTimeout": "1 minute"}', '{}'), ('{"runTimeout": 0, "totalTimeout": 0}', '{}'),
	('{"runTimeout": 60}', '{}'), ('{"claimTimeout": 2147483647}', '{}'), ('{"claimTimeout": "68 years"}', '{}'), ('{"runTimeout": 2147483647}', '{}'), ('{"pendingTimeout": 2147483647}', '{}'), ('{"totalTimeout": 2147483647}', '{}'),
	('{"pendingTimeout": "5 hours", "totalTimeout": "1 hour"}', '{}'), ('{"delay": "59 minutes"}', '{}'), ('{"delay": "2 hours"}', '{"$deadline": "3 hours"}'), ('{"delay": "2 hours"}', '{"delay": 60}'),
	('{"retryBackoff": {"delay": 2147483647, "max": 2147483647, "jitter": 2147483647, "factor": 1}}', '{}'),
	('{"retries": null, "retryOn": null, "lostRetries": null, "retryBackoff": null, "claimTimeout": null, "runTimeout": null, "pendingTimeout": null, "totalTimeout": null, "timeoutAlertOnly": null, "onUnsuccessful": null, "deadLetter": null, "retainCompleted": null, "retainFailed": null, "dropPayload": null, "delay": null}', '{}'),
	('{"claimTimeout": 60, "runTimeout": null}', '{}'), ('{"runTimeout": 3600, "totalTimeout": null}', '{}')) AS v (policy, overrides);
SELECT is((SELECT count(*) FROM tq_internal.task WHERE delay IS NOT NULL), 3::bigint, 'accepted: delays');
ROLLBACK TO s;

-- Every field at once.
SELECT pg_temp.create('all', '{"policy": {"retries": 3, "retryOn": ["failed", "claim-expired"], "lostRetries": 2,
	"retryBackoff": {"delay": 5, "kind": "exponential", "factor": 2, "max": "1 minute", "jitter": 0.5}, "claimTimeout": 30, "runTimeout": "5 minutes",
	"pendingTimeout": 600, "totalTimeout": "30 minutes", "timeoutAlertOnly": false, "onUnsuccessful": "tolerate", "deadLetter": true, "retainCompleted": "1 day", "retainFailed": 60, "delay": 10}}');
SELECT is(pg_temp.look('all'), 'pending 3: scheduled>pending', 'accepted: every field at once');
ROLLBACK TO s;

-- tq.max_runs is checked when a task is created.
SET tq.max_runs = 10;
SELECT pg_temp.faulty('{"policy": {"retries": 5, "lostRetries": 5}}', 'lostRetries', 'refused: 11 runs, where the maximum is 10');
SELECT pg_temp.accepts('{"policy": {"retries": 5, "lostRetries": 4}}', 'accepted: 10 runs');
ROLLBACK TO s;

-- By every function; nothing is created, not even the valid tasks of the same call.
SELECT pg_temp.throws(query, 'TQ400', 'refused: ' || call) FROM (VALUES
	('define_task', $$SELECT tq.define_task(pg_temp.id('d'), pg_temp.def('d', '{"policy": {"retries": -1}}'))$$),
	('create_tasks, one of three', $$SELECT tq.create_tasks(jsonb_build_array(
		jsonb_build_object('taskId', pg_temp.id('e')::text, 'task', pg_temp.def('e', '{"policy": {"retries": 1}}')),
		jsonb_build_object('taskId', pg_temp.id('f')::text, 'task', pg_temp.def('f', '{"policy": {"retries": -1}}')),
		jsonb_build_object('taskId', pg_temp.id('g')::text, 'task', pg_temp.def('g'))))$$),
	('create_tasks, delay', $$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('e')::text, 'task', pg_temp.def('e', '{"delay": "2 hours"}'))))$$),
	('enqueue, a key', $$SELECT tq.enqueue('test/q', policy => '{"foo": 1}')$$),
	('enqueue, not an object', $$SELECT tq.enqueue('test/q', policy => '[]')$$),
	('enqueue, retries with lostRetries', $$SELECT tq.enqueue('test/q', retries => 10, policy => '{"lostRetries": 40}')$$),
	('enqueue, delay below 0', $$SELECT tq.enqueue('test/q', delay => '-1 second')$$),
	('enqueue_tasks, a key', $$SELECT tq.enqueue_tasks('test/q', ARRAY['{}', '{}']::jsonb[], policy => '{"foo": 1}')$$),
	('enqueue_tasks, delay below 0', $$SELECT tq.enqueue_tasks('test/q', ARRAY['{}', '{}']::jsonb[], delay => '-1 second')$$)) AS v (call, query);
SELECT is((SELECT count(*) FROM tq_internal.policy) + (SELECT count(*) FROM tq_internal.task), 0::bigint, 'refused: all of them; no task exists');

-- The error: message, detail and hint.
SELECT ok(e ->> 'message' <> '' AND e ->> 'detail' <> '' AND e ->> 'hint' <> '' AND left(e ->> 'message', 1) = lower(left(e ->> 'message', 1)), 'an error has a message, a detail and a hint: ' || p)
FROM unnest(ARRAY['{"foo": 1}', '{"retries": -1}', '{"retryOn": ["completed"]}', '{"claimTimeout": 61, "runTimeout": 60}', '{"retries": 40, "lostRetries": 40}', '{"delay": "2 hours"}']) AS p,
	pg_temp.error(format('SELECT pg_temp.create(''y'', %L)', jsonb_build_object('policy', p::jsonb))) AS e;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
