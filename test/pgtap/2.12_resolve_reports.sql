-- doc/spec/taskcluster.md 2.12: resolve(reports), a mixed batch; resolve_and_claim.
BEGIN;
\ir helper.psql

SELECT tq.set_queue('test/lim', '{"concurrentLimit": 1}') \g /dev/null

-- A report on the run of a task, with more keys.
CREATE FUNCTION pg_temp.rep(name text, more jsonb DEFAULT '{}', run int DEFAULT 0) RETURNS jsonb
LANGUAGE sql AS $$ SELECT jsonb_build_object('taskId', pg_temp.id(name), 'runId', run) || more $$;

CREATE FUNCTION pg_temp.outcomes(VARIADIC reports jsonb[]) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(run_id || ' ' || outcome, ', ' ORDER BY ordinality), '')
	FROM tq.resolve(to_jsonb(reports)) WITH ORDINALITY AS r
$$;

SELECT is((SELECT count(*) FROM tq.resolve('[]')), 0::bigint, 'no report');

-- every reason in one call
SELECT pg_temp.running('x-' || r, '{"retries": 1}')
FROM unnest('{completed,failed,failed-terminal,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task,canceled,none}'::text[]) AS r;
CREATE TEMP TABLE r AS SELECT task_id, run_id, outcome, ordinality AS n FROM tq.resolve((
	SELECT jsonb_agg(pg_temp.rep('x-' || r, CASE r WHEN 'none' THEN '{}' ELSE jsonb_build_object('reason', r) END) ORDER BY n)
	FROM unnest('{intermittent-task,completed,canceled,failed,none,worker-shutdown,failed-terminal,malformed-payload,resource-unavailable,internal-error}'::text[])
		WITH ORDINALITY AS u (r, n))) WITH ORDINALITY AS t;
SELECT is((SELECT string_agg(pg_temp.name(task_id) || ' ' || outcome, ', ' ORDER BY n) FROM r),
	'x-intermittent-task retried, x-completed resolved, x-canceled resolved, x-failed resolved, x-none resolved, x-worker-shutdown retried, '
	'x-failed-terminal resolved, x-malformed-payload resolved, x-resource-unavailable resolved, x-internal-error resolved',
	'each for its reason, in the order given');
SELECT is(pg_temp.look('x-' || r), line, 'reason ' || r)
FROM (VALUES ('completed', 'completed 1: scheduled>completed/completed'), ('failed', 'failed 1: scheduled>failed/failed'),
	('failed-terminal', 'failed 1: scheduled>failed/failed-terminal'), ('canceled', 'exception 1: scheduled>exception/canceled'),
	('none', 'completed 1: scheduled>completed/completed'),
	('worker-shutdown', 'pending 0: scheduled>exception/worker-shutdown retry>pending'), ('malformed-payload', 'exception 1: scheduled>exception/malformed-payload'),
	('resource-unavailable', 'exception 1: scheduled>exception/resource-unavailable'), ('internal-error', 'exception 1: scheduled>exception/internal-error'),
	('intermittent-task', 'pending 0: scheduled>exception/intermittent-task task-retry>pending')) AS v (r, line);
SELECT is(count(DISTINCT pg_temp.run('x-' || r, 0) ->> 'resolved'), 1::bigint, 'one time for all') FROM unnest('{completed,failed,worker-shutdown,canceled}'::text[]) AS r;

-- every outcome
SELECT pg_temp.running(n) FROM unnest('{a,b,c,lost}'::text[]) AS n;
SELECT pg_temp.create('p');
SELECT pg_temp.create('after', '{"$deps": ["a", "b"], "requires": "all-resolved"}');
SELECT pg_temp.resolved('done', 'completed');
SELECT pg_temp.report('lost', 'canceled');
SELECT is(pg_temp.outcomes(pg_temp.rep('b', '{"reason": "failed"}'), pg_temp.rep('p'), pg_temp.rep('nobody'), pg_temp.rep('done'), pg_temp.rep('done', '{"reason": "failed"}', 1),
	pg_temp.rep('lost', '{"reason": "completed"}'), pg_temp.rep('a')),
	'0 resolved, 0 conflict, 0 not-found, 0 repeated, 1 not-found, 0 conflict, 0 resolved', 'every outcome');
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', 'a dependent of several of them, which end differently, is released once');
SELECT is(pg_temp.outcomes(pg_temp.rep('b', '{"reason": "failed"}'), pg_temp.rep('a', '{"reason": "failed"}')), '0 repeated, 0 conflict', 'a repeat; another reason');

-- words, and retries
SELECT pg_temp.running(n, '{"retries": 5, "policy": {"retryOn": ["failed", "internal-error"]}}') FROM unnest('{w1,w2,w3,w4,w5}'::text[]) AS n;
SELECT is(pg_temp.outcomes(
	pg_temp.rep('w1', '{"result": {"size": 3}}'),
	pg_temp.rep('w2', '{"reason": "failed", "error": {"message": "m", "details": [1]}, "retriesLeft": 1, "retryDelay": 60}'),
	pg_temp.rep('w3', '{"reason": "internal-error", "retriesLeft": 0}'),
	pg_temp.rep('w4', '{"reason": "failed", "retryDelay": "2 minutes", "error": null, "retriesLeft": null, "credentials": null, "result": null}'),
	pg_temp.rep('w5', '{"reason": null, "result": 7}')),
	'0 resolved, 0 retried, 0 resolved, 0 retried, 0 resolved', 'with results, errors and retries');
SELECT is(tq.result(pg_temp.id('w1')), '{"size": 3}', 'a result');
SELECT is(tq.result(pg_temp.id('w5')), '7', 'a result that is a number');
SELECT is(pg_temp.run('w2', 0) -> 'error', '{"message": "m", "details": [1]}', 'an error');
SELECT pg_temp.running('w7'), pg_temp.running('w8'), pg_temp.running('w9');
SELECT tq.resolve(jsonb_build_array(pg_temp.rep('w7', '{"reason": "failed", "error": "trace", "errorMessage": "m"}'), pg_temp.rep('w8', '{"reason": "failed", "error": [1], "errorMessage": null}'),
	pg_temp.rep('w9', '{"reason": "internal-error", "errorMessage": "m"}')));
SELECT is(pg_temp.run(n, 0) -> 'error', e::jsonb, 'errorMessage: ' || n) FROM (VALUES ('w7', '{"message": "m", "details": "trace"}'), ('w8', '[1]'), ('w9', '{"message": "m"}')) AS v (n, e);
SELECT is(pg_temp.look('w2'), 'pending 0: scheduled>failed/failed failure-retry>pending', 'retriesLeft');
SELECT is(pg_temp.look('w3'), 'exception 5: scheduled>exception/internal-error', 'retriesLeft 0: no retry');
SELECT ok(pg_temp.near(pg_temp.run('w2') ->> 'visibleAt', clock_timestamp() + interval '60 s'), 'retryDelay, a number of seconds');
SELECT ok(pg_temp.near(pg_temp.run('w4') ->> 'visibleAt', clock_timestamp() + interval '120 s'), 'retryDelay, a text');

-- credentials
SET tq.credentials = on;
SELECT pg_temp.create('k' || n, '{"taskQueueId": "test/k"}') FROM generate_series(1, 3) AS n;
CREATE TEMP TABLE k AS SELECT pg_temp.name(task_id) AS name, credentials FROM tq.claim_work('test/k', 'wg', 'w1', 3);
SELECT is(pg_temp.outcomes(
	pg_temp.rep('k1', jsonb_build_object('credentials', (SELECT credentials FROM k WHERE name = 'k2'))),
	pg_temp.rep('k2', jsonb_build_object('credentials', (SELECT credentials FROM k WHERE name = 'k2'))),
	pg_temp.rep('k3')), '0 forbidden, 0 resolved, 0 resolved', 'credentials of another run, of this one, none');
RESET tq.credentials;
CREATE ROLE outsider;
GRANT ALL ON FUNCTION pg_temp.rep, pg_temp.outcomes TO PUBLIC;
SET ROLE outsider;
SELECT is(pg_temp.outcomes(pg_temp.rep('c')), '0 not-found', 'of a task that the caller may not see');
RESET ROLE;
SELECT tq.grant_scopes('outsider', '{queue:status:*}') \g /dev/null
SET ROLE outsider;
SELECT is(pg_temp.outcomes(pg_temp.rep('c')), '0 forbidden', 'without the scope of the run');
SELECT throws_ok($$SELECT * FROM tq.resolve_and_claim(jsonb_build_array(pg_temp.rep('c')), 'test/q-c', 'wg', 'w1')$$, 'TQ403', NULL, 'resolve_and_claim without the scope of the queue');
RESET ROLE;
SELECT is(pg_temp.state('c'), 'running', 'nothing is resolved');

-- bad input: the error names the element
CREATE FUNCTION pg_temp.fault(reports jsonb) RETURNS text
LANGUAGE sql AS $$ SELECT pg_temp.detail(format('SELECT tq.resolve(%L::jsonb)', reports)) $$;
SELECT matches(pg_temp.fault(CASE jsonb_typeof(bad) WHEN 'object' THEN jsonb_build_array(pg_temp.rep('c')) || (pg_temp.rep('b') || bad) ELSE bad END), wanted, 'TQ400: ' || left(bad::text, 50))
FROM (VALUES ('{"reason": "foo"}'::jsonb, '^Element 2 of reports has a key "reason", which must be one of completed'), ('{"reason": "claim-expired"}', '^Element 2 of reports has a key "reason"'),
	('{"reason": 1}', '^Element 2 of reports has a key "reason", which must be a string'), ('{"runId": -1}', '^Element 2 of reports has a key "runId"'),
	('{"runId": "0"}', '"runId", which must be a whole number'), ('{"runId": 0.5}', '"runId"'), ('{"runId": null}', '^Element 2 of reports has no key "runId"'),
	('{"runId": 2147483648}', '"runId"'), ('{"taskId": null}', 'has no key "taskId"'), ('{"taskId": "x"}', '"taskId", which must be a slugid'), ('{"taskId": 1}', '"taskId"'),
	('{"foo": 1}', '^Element 2 of reports has an unknown key "foo"'), ('{"state": "failed"}', 'unknown key "state"'), ('{"run_id": 0}', 'unknown key "run_id"'),
	('{"error": {}}', '"error", which a report with the reason completed does not have'), ('{"retriesLeft": 1}', '"retriesLeft", which a report'), ('{"retryDelay": 1}', '"retryDelay", which a report'),
	('{"reason": "failed", "result": 1}', '"result", which only'), ('{"reason": "failed", "errorMessage": 1}', '"errorMessage", which must be a string'),
	(jsonb_build_object('reason', 'failed', 'error', repeat('x', 70000)), '"error", which has [0-9]+ bytes, and may have 65536'), ('{"errorMessage": "x"}', '"errorMessage", which a report with the reason completed does not have'),
	('{"reason": "failed", "retriesLeft": -1}', '"retriesLeft"'), ('{"reason": "failed", "retriesLeft": 50}', '"retriesLeft", which must be a whole number from 0 to 49'),
	('{"reason": "failed", "retryDelay": -1}', '"retryDelay", which must be from 0'), ('{"reason": "failed", "retryDelay": "soon"}', '"retryDelay"'), ('{"reason": "failed", "retryDelay": 2147483648}', '"retryDelay"'),
	('{"credentials": {}}', '"credentials", which must be an object of the strings'), ('{"credentials": []}', '"credentials"'), ('{"credentials": 1}', '"credentials"'),
	(jsonb_build_array(1), '^Element 1 of reports is not an object'), ('[[]]', '^Element 1 of reports is not an object'), ('[null]', '^Element 1 of reports is not an object'),
	('"x"', 'The argument is "x"'), ('null', 'The argument is null')) AS v (bad, wanted);
SELECT matches(pg_temp.fault('{}'), 'The argument is {}', 'TQ400: an object');
SELECT is(pg_temp.fault(jsonb_build_array(pg_temp.rep('c'), pg_temp.rep('c', '{}', 1), pg_temp.rep('c', '{"reason": "failed"}'))), 'Element 3 of reports names the same run as element 1.',
	'TQ400: a run twice');
SELECT matches(pg_temp.fault(jsonb_build_array(pg_temp.rep('c', jsonb_build_object('result', repeat('x', 1100000))))), '"result", which has 1100\d\d\d bytes', 'TQ400: a result that is too large');
SELECT pg_temp.throws('SELECT tq.resolve(NULL::jsonb)', 'TQ400', 'TQ400: NULL');
SELECT is(pg_temp.state('c'), 'running', 'nothing is resolved');

-- resolve_and_claim
CREATE FUNCTION pg_temp.runs(queue text, VARIADIC reports jsonb[]) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(concat_ws(' ', pg_temp.name(task_id), run_id, outcome, worker_group, worker_id, payload), ', ' ORDER BY ordinality), '')
	FROM tq.resolve_and_claim(to_jsonb(reports), queue, 'wg', 'w1', 2) WITH ORDINALITY AS r
$$;
SELECT pg_temp.create('q' || n, '{"taskQueueId": "test/rc"}') FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.runs('test/rc', VARIADIC '{}'), 'q1 0 claimed wg w1 {"task": "q1"}, q2 0 claimed wg w1 {"task": "q2"}', 'nothing to report: claims');
SELECT is(pg_temp.runs('test/rc', pg_temp.rep('q2'), pg_temp.rep('q1', '{"reason": "failed"}')),
	'q2 0 resolved, q1 0 resolved, q3 0 claimed wg w1 {"task": "q3"}, q4 0 claimed wg w1 {"task": "q4"}', 'the outcomes, then the claims');
SELECT is(pg_temp.runs('test/rc', pg_temp.rep('q2', '{"reason": "failed"}'), pg_temp.rep('q3', '{"reason": "worker-shutdown"}')),
	'q2 0 conflict, q3 0 retried, q5 0 claimed wg w1 {"task": "q5"}, q3 1 claimed wg w1 {"task": "q3"}', 'a conflict is no error; a retry may be claimed by the same call');
SELECT is(pg_temp.runs('test/rc', pg_temp.rep('q4'), pg_temp.rep('q5'), pg_temp.rep('q3', '{}', 1)), 'q4 0 resolved, q5 0 resolved, q3 1 resolved', 'nothing to claim');
SELECT pg_temp.create('l' || n, '{"taskQueueId": "test/lim"}') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.runs('test/lim', VARIADIC '{}'), 'l1 0 claimed wg w1 {"task": "l1"}', 'a queue with a limit');
SELECT is(pg_temp.runs('test/lim', VARIADIC '{}'), '', 'at the limit');
SELECT is(pg_temp.runs('test/lim', pg_temp.rep('l1')), 'l1 0 resolved, l2 0 claimed wg w1 {"task": "l2"}', 'a report frees a slot for the claim of the same call');
SELECT ok((SELECT taken_until > clock_timestamp() AND credentials IS NULL FROM tq.resolve_and_claim(jsonb_build_array(pg_temp.rep('l2')), 'test/lim', 'wg', 'w1') WHERE outcome = 'claimed'), 'until when');
SET tq.credentials = on;
SELECT is((SELECT string_agg(outcome || ' ' || (credentials ? 'clientId')::text, ', ') FROM tq.resolve_and_claim(jsonb_build_array(pg_temp.rep('l3')), 'test/lim', 'wg', 'w1')), NULL, 'the rest');
SELECT pg_temp.create('m1', '{"taskQueueId": "test/rc"}');
SELECT ok((SELECT credentials ? 'clientId' FROM tq.resolve_and_claim('[]', 'test/rc', 'wg', 'w1')), 'credentials of a claim');
RESET tq.credentials;
SELECT pg_temp.throws(format('SELECT tq.resolve_and_claim(%s)', args), 'TQ400', 'TQ400: ' || args)
FROM (VALUES ($$'{}', 'test/rc', 'wg', 'w1'$$), ($$'[]', 'test/', 'wg', 'w1'$$), ($$'[]', 'test/rc', '', 'w1'$$),
	($$'[]', 'test/rc', 'wg', 'w1', 0$$), ($$'[]', 'test/rc', 'wg', 'w1', 1001$$), ($$'[1]', 'test/rc', 'wg', 'w1'$$), ($$NULL, 'test/rc', 'wg', 'w1'$$)) AS v (args);
SELECT tq.quarantine_worker('test/rc', 'wg', 'w1', now() + interval '1 day') \g /dev/null
SELECT is(pg_temp.runs('test/rc', pg_temp.rep('m1')), 'm1 0 resolved', 'a worker in quarantine reports and claims nothing');

SELECT * FROM finish();
ROLLBACK;
