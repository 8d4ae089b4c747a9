-- Presets: policies from Conductor's and Taskbroker's own JSON, and states in their words.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all
\set SHOW_CONTEXT never

-- The surface
SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
FROM pg_proc WHERE pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND proname ~ 'conductor|taskbroker|tolerated' ORDER BY proname COLLATE "C";

-- Keys that differ between two objects, with their values in the first; null: only the other has the key
CREATE FUNCTION pg_temp.but(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(jsonb_object_agg(key, a -> key), '{}') FROM (SELECT jsonb_object_keys(a) UNION SELECT jsonb_object_keys(b)) k (key)
	WHERE a -> key IS DISTINCT FROM b -> key $$;

---- Conductor ----

-- Every default
SELECT jsonb_pretty(tq.conductor_policy('{}'));
SELECT tq.conductor_policy(task_def => '{}', workflow_task => '{}') = tq.conductor_policy('{}') AS same;

-- Every key, in the definition and in its use, which takes precedence; null is the same as absent, but for responseTimeoutSeconds
CREATE FUNCTION pg_temp.conductor(a jsonb, b jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
	SELECT pg_temp.but(tq.conductor_policy(a, b), tq.conductor_policy('{}')) $$;
CREATE TEMP TABLE key (n serial, given jsonb, other jsonb);
INSERT INTO key (given, other) VALUES
	('{"retryCount": 0}', '{"retryCount": 7}'),
	('{"retryCount": 49}', '{"retryCount": 3}'),
	('{"retryCount": 2.0}', '{"retryCount": 3}'),
	('{"retryLogic": "LINEAR_BACKOFF"}', '{"retryLogic": "FIXED"}'),
	('{"retryLogic": "LINEAR_BACKOFF", "backoffScaleFactor": 2}', '{"retryLogic": "FIXED", "backoffScaleFactor": 3}'),
	('{"retryLogic": "EXPONENTIAL_BACKOFF", "backoffScaleFactor": 2}', '{"retryLogic": "LINEAR_BACKOFF", "backoffScaleFactor": 3}'),
	('{"retryDelaySeconds": 5}', '{"retryDelaySeconds": 6}'),
	('{"retryDelaySeconds": 0}', '{"retryDelaySeconds": 6}'),
	('{"maxRetryDelaySeconds": 200}', '{"maxRetryDelaySeconds": 0}'),
	('{"backoffJitterMs": 5000}', '{"backoffJitterMs": 0}'),
	('{"backoffJitterMs": 1}', '{"backoffJitterMs": 2}'),
	('{"backoffJitterMs": 1230}', '{"backoffJitterMs": 1234}'),
	('{"timeoutSeconds": 7200}', '{"timeoutSeconds": 30}'),
	('{"timeoutSeconds": 30}', '{"timeoutSeconds": 7200}'),
	('{"timeoutSeconds": 30, "responseTimeoutSeconds": 30}', '{"responseTimeoutSeconds": 60}'),
	('{"responseTimeoutSeconds": 20}', '{"responseTimeoutSeconds": 21}'),
	('{"pollTimeoutSeconds": 60}', '{"pollTimeoutSeconds": 61}'),
	('{"totalTimeoutSeconds": 100}', '{"totalTimeoutSeconds": 99}'),
	('{"totalTimeoutSeconds": 100, "timeoutSeconds": 100}', '{"totalTimeoutSeconds": 99}'),
	('{"timeoutPolicy": "RETRY"}', '{"timeoutPolicy": "ALERT_ONLY"}'),
	('{"timeoutPolicy": "ALERT_ONLY"}', '{"timeoutPolicy": "RETRY"}'),
	('{"timeoutPolicy": "TIME_OUT_WF"}', '{"timeoutPolicy": "RETRY"}'),
	('{"optional": true}', '{"optional": false}'),
	('{"permissive": true}', '{"permissive": false}'),
	('{"optional": true, "permissive": true}', '{"optional": false}'),
	('{"optional": true, "timeoutPolicy": "TIME_OUT_WF"}', '{"optional": false}'),
	('{"asyncComplete": true}', '{"asyncComplete": false}'),
	('{"asyncComplete": true, "responseTimeoutSeconds": 5}', '{"asyncComplete": false}'),
	('{"asyncComplete": true, "timeoutSeconds": 30, "timeoutPolicy": "RETRY"}', '{}'),
	('{"asyncComplete": true, "timeoutSeconds": 30, "timeoutPolicy": "ALERT_ONLY"}', '{}'),
	('{"startDelay": 10}', '{"startDelay": 11}'),
	('{"retryDelaySeconds": 2147483647, "maxRetryDelaySeconds": 2147483647, "backoffJitterMs": 2147483647}', '{}'),
	('{"timeoutSeconds": 2147483647, "responseTimeoutSeconds": 2147483647, "totalTimeoutSeconds": 2147483647, "pollTimeoutSeconds": 2147483647, "startDelay": 2147483647}', '{}');
SELECT given, pg_temp.conductor(given) AS policy FROM key ORDER BY n;
SELECT given FROM key WHERE pg_temp.conductor(given) IS DISTINCT FROM pg_temp.conductor('{}', given)
	OR pg_temp.conductor(given) IS DISTINCT FROM pg_temp.conductor(other, given)
	OR pg_temp.conductor(given) IS DISTINCT FROM pg_temp.conductor(given, (SELECT jsonb_object_agg(k, NULL) FROM jsonb_object_keys(given) k)) ORDER BY n;
SELECT key, pg_temp.conductor(jsonb_build_object(key, NULL)) AS null_is_absent FROM (SELECT DISTINCT jsonb_object_keys(given) FROM key) k (key) ORDER BY key COLLATE "C";

-- 0 switches a feature off, and the key is left out
SELECT pg_temp.conductor('{"timeoutSeconds": 0, "responseTimeoutSeconds": null, "pollTimeoutSeconds": 0, "totalTimeoutSeconds": 0, "startDelay": 0, "maxRetryDelaySeconds": 0, "backoffJitterMs": 0}');
SELECT pg_temp.conductor('{"timeoutSeconds": 30, "responseTimeoutSeconds": null}');
-- A null in the definition means no response timeout; a number in the use, or the definition, takes precedence
SELECT pg_temp.conductor('{"responseTimeoutSeconds": null}') AS none, pg_temp.conductor('{"responseTimeoutSeconds": null}', '{"responseTimeoutSeconds": 20}') AS used,
	pg_temp.conductor('{"responseTimeoutSeconds": 20}', '{"responseTimeoutSeconds": null}') AS defined, pg_temp.conductor('{}', '{"responseTimeoutSeconds": null}') AS unused,
	pg_temp.conductor('{"responseTimeoutSeconds": null, "asyncComplete": true}') = pg_temp.conductor('{"asyncComplete": true}') AS async;
SELECT a.* FROM unnest('{"{\"responseTimeoutSeconds\": 0}","{\"responseTimeoutSeconds\": 0, \"asyncComplete\": true}"}'::jsonb[]) AS d, pg_temp.answer(format('SELECT tq.conductor_policy(%L)', d)) AS a;

-- Whole definitions: keys that have no meaning for one task are ignored, and so are unknown keys
SELECT tq.conductor_policy('{"name": "encode", "description": "d", "ownerEmail": "a@example.com", "createdBy": "a", "updatedBy": "b", "createTime": 1, "updateTime": 2, "ownerApp": "x",
	"accessPolicy": {}, "retryCount": 2, "timeoutSeconds": 1200, "inputKeys": ["in"], "outputKeys": ["out"], "timeoutPolicy": "RETRY", "retryLogic": "EXPONENTIAL_BACKOFF",
	"retryDelaySeconds": 10, "responseTimeoutSeconds": 600, "concurrentExecLimit": 100, "inputTemplate": {"a": 1}, "rateLimitPerFrequency": 50, "rateLimitFrequencyInSeconds": 60,
	"isolationGroupId": "g", "executionNameSpace": "n", "pollTimeoutSeconds": 300, "totalTimeoutSeconds": 3600, "backoffScaleFactor": 1, "maxRetryDelaySeconds": 120, "backoffJitterMs": 500,
	"baseType": "HTTP", "inputSchema": {"name": "s"}, "outputSchema": null, "enforceSchema": true, "runtimeMetadata": {}, "taskStatusListenerEnabled": true, "of a later version": [1]}',
	'{"name": "encode", "taskReferenceName": "encode_ref", "type": "SIMPLE", "inputParameters": {"retryCount": 9}, "optional": false, "permissive": true, "startDelay": 5, "retryCount": null,
	"asyncComplete": false, "rateLimited": false, "joinOn": [], "defaultExclusiveJoinTask": [], "decisionCases": {}, "loopOver": [], "taskDefinition": {"retryCount": 9}, "expression": null,
	"cacheConfig": {}, "joinStatus": "x", "onStateChange": {}, "sink": "s", "of a later version": [1]}');

-- Each key with each wrong value; valid ones are not listed
CREATE TEMP TABLE conductor_key (key text, value jsonb, n serial);
INSERT INTO conductor_key (key, value) SELECT key, value FROM
	unnest('{retryCount,retryLogic,retryDelaySeconds,backoffScaleFactor,maxRetryDelaySeconds,backoffJitterMs,timeoutSeconds,responseTimeoutSeconds,pollTimeoutSeconds,totalTimeoutSeconds,startDelay,timeoutPolicy,optional,permissive,asyncComplete}'::text[]) WITH ORDINALITY k (key, k),
	unnest(ARRAY['true', '0', '1', '-1', '1.5', '2147483648', '1e400', '"1"', '""', '"FIXED"', '"RETRY"', '"fixed"', '"LINEAR_BACKOFF "', '[]', '[1]', '{}', '{"a": 1}']::jsonb[]) WITH ORDINALITY v (value, v) ORDER BY k, v;
SELECT key, string_agg(value #>> '{}', ', ' ORDER BY n) AS accepted
FROM conductor_key, pg_temp.answer(format('SELECT tq.conductor_policy(%L)', jsonb_build_object(key, value))) a WHERE code = 'ok' GROUP BY key ORDER BY min(n);
SELECT key, a.code, a.message, count(*), string_agg(left(replace(a.detail, format('"%s" is ', key), ''), 20), ' ' ORDER BY n) AS is, a.hint
FROM conductor_key, pg_temp.answer(format('SELECT tq.conductor_policy(%L)', jsonb_build_object(key, value))) a WHERE code <> 'ok' GROUP BY 1, 2, 3, 6 ORDER BY min(n);

-- Times that contradict each other, which of the two objects sets them, and other errors
\x
SELECT what, a.* FROM (VALUES
	('the response takes longer', '{"responseTimeoutSeconds": 31, "timeoutSeconds": 30}'::jsonb, '{}'::jsonb),
	('the response takes longer by its use', '{"timeoutSeconds": 30}', '{"responseTimeoutSeconds": 31}'),
	('even if it is completed asynchronously', '{"responseTimeoutSeconds": 31, "timeoutSeconds": 30, "asyncComplete": true}', '{}'),
	('the task takes longer than all', '{"timeoutSeconds": 61, "totalTimeoutSeconds": 60}', '{}'),
	('the use is wrong', '{}', '{"retryCount": -1}'),
	('the definition is wrong, but the use wins', '{"retryCount": -1}', '{"retryCount": 1}'),
	('more retries than runs', '{"retryCount": 50}', '{}'),
	('an array', '[]', '{}'),
	('a scalar', '{}', '1'),
	('null', 'null', '{}'),
	('long', jsonb_build_object('retryCount', repeat('x', 100000)), '{}')) x (what, a, b),
	pg_temp.answer(format('SELECT tq.conductor_policy(%L, %L)', a, b)) a;
SELECT what, a.* FROM (VALUES
	('no definition', 'tq.conductor_policy(NULL)'), ('no use', $$tq.conductor_policy('{}', NULL)$$)) x (what, call), pg_temp.answer('SELECT ' || call) a;
\x
SET tq.max_runs = 3;
SELECT a.code, a.detail FROM pg_temp.answer($$SELECT tq.conductor_policy('{}')$$) a;
SELECT tq.conductor_policy('{"retryCount": 2}') -> 'retries' AS retries;
RESET tq.max_runs;

---- Taskbroker ----

-- Every default
SELECT jsonb_pretty(tq.taskbroker_policy('{}'));

-- Every key
CREATE FUNCTION pg_temp.taskbroker(a jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT pg_temp.but(tq.taskbroker_policy(a), tq.taskbroker_policy('{}')) $$;
SELECT given, pg_temp.taskbroker(given) AS policy FROM unnest(ARRAY[
	'{"retry_state": {"max_attempts": 3}}', '{"retry_state": {"max_attempts": 3, "attempts": 1}}', '{"retry_state": {"max_attempts": 3, "attempts": 2}}',
	'{"retry_state": {"max_attempts": 3, "attempts": 3}}', '{"retry_state": {"max_attempts": 1}}', '{"retry_state": {"max_attempts": 0}}', '{"retry_state": {"attempts": 7}}',
	'{"retry_state": {"max_attempts": "3", "attempts": "1"}}', '{"retry_state": {}}', '{"retry_state": null}',
	'{"retry_state": {"at_most_once": true}}', '{"retry_state": {"at_most_once": false}}',
	'{"retry_state": {"delay_on_retry": 7}}', '{"retry_state": {"delay_on_retry": "7"}}', '{"retry_state": {"delay_on_retry": 0}}',
	'{"retry_state": {"on_attempts_exceeded": 0}}', '{"retry_state": {"on_attempts_exceeded": 1}}', '{"retry_state": {"on_attempts_exceeded": 2}}', '{"retry_state": {"on_attempts_exceeded": "2"}}',
	'{"retry_state": {"on_attempts_exceeded": "ON_ATTEMPTS_EXCEEDED_UNSPECIFIED"}}', '{"retry_state": {"on_attempts_exceeded": "ON_ATTEMPTS_EXCEEDED_DISCARD"}}',
	'{"retry_state": {"on_attempts_exceeded": "ON_ATTEMPTS_EXCEEDED_DEADLETTER"}}', '{"retry_state": {"on_attempts_exceeded": "DISCARD"}}', '{"retry_state": {"on_attempts_exceeded": "DEADLETTER"}}',
	'{"processing_deadline_duration": 300}', '{"processing_deadline_duration": "300"}', '{"processing_deadline_duration": 0}', '{"processing_deadline_duration": 2147483647}',
	'{"delay": 100}', '{"delay": "100"}', '{"delay": 0}', '{"expires": 60}', '{"expires": "60"}', '{"expires": 0}', '{"expires": 160, "delay": 100}', '{"expires": 100, "delay": 160}',
	'{"delay": null, "expires": null, "processing_deadline_duration": null}',
	'{"retry_state": {"max_attempts": null, "attempts": null, "on_attempts_exceeded": null, "at_most_once": null, "delay_on_retry": null}}']::jsonb[]) WITH ORDINALITY x (given, n) ORDER BY n;

-- A complete one
SELECT tq.taskbroker_policy('{"id": "7d4d2a2e-3a1e-4d0e-9f05-0a53ab1b1a0c", "application": "sentry", "namespace": "ingest", "taskname": "t", "parameters": "{}", "parameters_bytes": "gA==",
	"headers": {"trace": "x"}, "received_at": "2026-01-31T12:00:00Z", "processing_deadline_duration": "30", "expires": "600", "delay": "60", "of a later version": 1,
	"retry_state": {"attempts": 1, "max_attempts": 5, "on_attempts_exceeded": "ON_ATTEMPTS_EXCEEDED_DEADLETTER", "at_most_once": false, "delay_on_retry": "30", "of a later version": 1}}');

-- Each key with each wrong value; valid ones are not listed
CREATE TEMP TABLE taskbroker_key (key text, value jsonb, n serial);
INSERT INTO taskbroker_key (key, value) SELECT key, value FROM
	unnest('{attempts,max_attempts,on_attempts_exceeded,at_most_once,delay_on_retry,processing_deadline_duration,delay,expires}'::text[]) WITH ORDINALITY k (key, k),
	unnest(ARRAY['true', '0', '1', '3', '-1', '1.5', '2147483648', '1e400', '"1"', '"3"', '"-1"', '" 1"', '"+1"', '"1.5"', '""', '"DEADLETTER"', '"deadletter"', '"ON_ATTEMPTS_EXCEEDED_"', '[]', '{}']::jsonb[]) WITH ORDINALITY v (value, v) ORDER BY k, v;
CREATE FUNCTION pg_temp.activation(key text, value jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT CASE WHEN key ~ 'attempt|retry|once' THEN jsonb_build_object('retry_state', jsonb_build_object(key, value)) ELSE jsonb_build_object(key, value) END $$;
SELECT key, string_agg(value::text, ', ' ORDER BY n) AS accepted
FROM taskbroker_key, pg_temp.answer(format('SELECT tq.taskbroker_policy(%L)', pg_temp.activation(key, value))) a WHERE code = 'ok' GROUP BY key ORDER BY min(n);
SELECT key, a.code, a.message, count(*), string_agg(left(replace(a.detail, format('"%s" is ', key), ''), 20), ' ' ORDER BY n) AS is, a.hint
FROM taskbroker_key, pg_temp.answer(format('SELECT tq.taskbroker_policy(%L)', pg_temp.activation(key, value))) a WHERE code <> 'ok' GROUP BY 1, 2, 3, 6 ORDER BY min(n);
\x
SELECT what, a.* FROM (VALUES
	('no activation', 'NULL'),
	('an array', $$'[]'$$),
	('a scalar', $$'"x"'$$),
	('no object inside', $$'{"retry_state": []}'$$),
	('a number inside', $$'{"retry_state": 1}'$$),
	('more attempts than runs', $$'{"retry_state": {"max_attempts": 47}}'$$),
	('as many as can be', $$'{"retry_state": {"max_attempts": 46}}'$$),
	('at most once, more', $$'{"retry_state": {"max_attempts": 50, "at_most_once": true}}'$$),
	('long', $$jsonb_build_object('delay', repeat('x', 100000))$$)) x (what, argument), pg_temp.answer(format('SELECT tq.taskbroker_policy(%s)', argument)) a;
\x

---- The results are policies of tasks ----

-- A task accepts each, and shows it
CREATE TEMP TABLE made (n serial, policy jsonb, task_id tq.slugid);
INSERT INTO made (policy) SELECT tq.conductor_policy(given - 'startDelay' - 'totalTimeoutSeconds') FROM key ORDER BY n;
INSERT INTO made (policy) VALUES (tq.conductor_policy('{"totalTimeoutSeconds": 3600, "startDelay": 60}')),
	(tq.taskbroker_policy('{}')), (tq.taskbroker_policy('{"delay": 60, "expires": 90, "retry_state": {"max_attempts": 5, "delay_on_retry": 5, "on_attempts_exceeded": 2, "at_most_once": true}}'));
UPDATE made SET task_id = tq.enqueue('regress/made', policy => policy);
SELECT count(*), bool_and(tq.task(task_id) -> 'policy' = policy) AS shown, bool_and(tq.task(task_id) -> 'retries' = policy -> 'retries') AS retries FROM made;

---- States ----

CREATE FUNCTION pg_temp.words(name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN format('%s / %s / %s', tq.status(pg_temp.id(name)) ->> 'state', coalesce(tq.conductor_status(task_id => pg_temp.id(name)), '(null)'),
		tq.taskbroker_status(task_id => pg_temp.id(name)));
END $$;
-- A claimed task, with a policy of Conductor's
CREATE FUNCTION pg_temp.running(name text, def jsonb, use jsonb DEFAULT '{}') RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue('regress/w', task_id => pg_temp.id(name), policy => tq.conductor_policy(def, use));
	SELECT task_id FROM tq.claim_task(pg_temp.id(name), 0, 'g', 'w') $$;

-- Unresolved
SELECT pg_temp.words('defined') FROM tq.define_task(pg_temp.id('defined'), pg_temp.def());
SELECT pg_temp.words('pending') FROM tq.enqueue('regress/w', task_id => pg_temp.id('pending'));
SELECT pg_temp.words('delayed') FROM tq.enqueue('regress/w', task_id => pg_temp.id('delayed'), policy => tq.conductor_policy('{}', '{"startDelay": 60}'));
SELECT pg_temp.words('running') FROM pg_temp.running('running', '{}');
-- deferred, with a delay and at once
SELECT pg_temp.words('running') FROM tq.defer_task(pg_temp.id('running'), 0, '9 minutes');
SELECT pg_temp.words('back') FROM pg_temp.running('back', '{}'), tq.defer_task(pg_temp.id('back'), 0, '0');
-- a retry, delayed and at once: the run before does not count
SELECT pg_temp.words('retried') FROM pg_temp.running('retried', '{}'), tq.report_failed(pg_temp.id('retried'), 0);
SELECT pg_temp.words('again') FROM pg_temp.running('again', '{"retryDelaySeconds": 0}'), tq.report_failed(pg_temp.id('again'), 0);

-- Every resolution: reported, at once or after all retries
SELECT pg_temp.words('done') FROM pg_temp.running('done', '{}'), tq.report_completed(pg_temp.id('done'), 0);
SELECT pg_temp.words('skipped') FROM tq.enqueue('regress/w', task_id => pg_temp.id('skipped')), tq.skip_task(pg_temp.id('skipped'));
CREATE FUNCTION pg_temp.resolved(name text, reason text, def jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	run int := 0;
BEGIN
	PERFORM pg_temp.running(name, def || '{"retryDelaySeconds": 0}');
	PERFORM tq.resolve(ARRAY[pg_temp.id(name)], '{0}', reason);
	WHILE tq.status(pg_temp.id(name)) ->> 'state' = 'pending' LOOP
		run := run + 1;
		PERFORM tq.claim_task(pg_temp.id(name), run, 'g', 'w');
		PERFORM tq.resolve(ARRAY[pg_temp.id(name)], ARRAY[run], reason);
	END LOOP;
	RETURN format('%s run%s: %s', run + 1, CASE WHEN run > 0 THEN 's' END, pg_temp.words(name));
END $$;
SELECT reason, pg_temp.resolved('r' || n, reason, '{}') AS final, pg_temp.resolved('o' || n, reason, '{"optional": true}') AS optional, pg_temp.resolved('p' || n, reason, '{"permissive": true}') AS permissive
FROM unnest('{failed,failed-terminal,canceled,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task}'::text[]) WITH ORDINALITY x (reason, n) ORDER BY n;
-- canceled by a client, optional or not
SELECT pg_temp.words('cancel') FROM pg_temp.running('cancel', '{}'), tq.cancel_task(pg_temp.id('cancel'));
SELECT pg_temp.words('cancelo') FROM pg_temp.running('cancelo', '{"optional": true}'), tq.cancel_task(pg_temp.id('cancelo'));
-- each timeout, optional or not
SELECT pg_temp.running('response', '{"retryCount": 0, "responseTimeoutSeconds": 600}'), pg_temp.running('respons2', '{"retryCount": 0, "responseTimeoutSeconds": 600, "optional": true}'),
	pg_temp.running('task', '{"timeoutSeconds": 600}'), pg_temp.running('task2', '{"timeoutSeconds": 600, "optional": true}'),
	pg_temp.running('alert', '{"timeoutSeconds": 600, "timeoutPolicy": "ALERT_ONLY", "asyncComplete": true}'),
	pg_temp.running('async', '{"asyncComplete": true}');
SELECT tq.enqueue('regress/w', task_id => pg_temp.id(name), policy => tq.conductor_policy(def)) FROM (VALUES
	('poll', '{"pollTimeoutSeconds": 600}'::jsonb), ('poll2', '{"pollTimeoutSeconds": 600, "optional": true}'), ('poll3', '{"pollTimeoutSeconds": 600, "timeoutPolicy": "RETRY"}'),
	('total', '{"totalTimeoutSeconds": 600}'), ('total2', '{"totalTimeoutSeconds": 600, "optional": true}')) x (name, def);
SET tq.clock_offset = '11 minutes';
SELECT count(*) > 0 AS done FROM tq.upkeep();
SELECT name, pg_temp.words(name) FROM unnest('{response,respons2,task,task2,alert,async,poll,poll2,poll3,total,total2}'::text[]) WITH ORDINALITY x (name, n) ORDER BY n;
SET tq.clock_offset = '61 minutes';
SELECT count(*) > 0 AS done FROM tq.upkeep();
SELECT pg_temp.words('async') AS no_claim_expires;
RESET tq.clock_offset;
-- and then again
SELECT pg_temp.words('done') FROM tq.rerun_task(pg_temp.id('done'));
SELECT pg_temp.words('o1') FROM tq.rerun_task(pg_temp.id('o1'));

-- Taskbroker's: a delayed retry, a failure, a lost claim that is retried, and one that is not
SELECT tq.enqueue('regress/b', task_id => pg_temp.id(name), policy => tq.taskbroker_policy(a)) FROM (VALUES
	('bretry', '{"retry_state": {"max_attempts": 2, "delay_on_retry": 3600}}'::jsonb), ('bfail', '{"retry_state": {"max_attempts": 2}}'), ('blost', '{"processing_deadline_duration": 3600}'),
	('bonce', '{"processing_deadline_duration": 3600, "retry_state": {"at_most_once": true}}')) x (name, a);
SELECT count(*) FROM tq.claim_work('regress/b', 'g', 'w', 4);
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('bretry')], '{0}', 'intermittent-task');
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('bfail')], '{0}', 'failed-terminal');
SELECT name, pg_temp.words(name) FROM unnest('{bretry,bfail,blost,bonce}'::text[]) WITH ORDINALITY x (name, n) ORDER BY n;
SET tq.clock_offset = '59 minutes';
SELECT tasks FROM tq.upkeep() WHERE step = 'claim-expired';
SET tq.clock_offset = '61 minutes';
SELECT tasks FROM tq.upkeep() WHERE step = 'claim-expired';
RESET tq.clock_offset;
SELECT name, pg_temp.words(name) FROM unnest('{bretry,bfail,blost,bonce}'::text[]) WITH ORDINALITY x (name, n) ORDER BY n;

-- Unknown tasks
SELECT f, a.code, a.message FROM unnest('{conductor_status,taskbroker_status}'::text[]) f, unnest('{"NULL",pg_temp.id(''nobody'')}'::text[]) x, pg_temp.answer(format('SELECT tq.%I(%s)', f, x)) a ORDER BY f, x;
BEGIN READ ONLY;
SELECT tq.conductor_status(pg_temp.id('pending')), tq.taskbroker_status(pg_temp.id('pending')), tq.conductor_policy('{}') ->> 'retries' AS retries;
ROLLBACK;

---- What the views use ----

SELECT effect, string_agg(tq_internal.reason_resolved_name(reason) || CASE WHEN reason = 16 THEN ' by its worker' ELSE '' END, ', ' ORDER BY reason) FILTER (WHERE tq_internal.is_tolerated(jsonb_build_object('onUnsuccessful', effect), reason)) AS tolerated
FROM unnest('{block,cancel-group,cancel-dependents,tolerate,forgive}'::text[]) WITH ORDINALITY x (effect, n), generate_series(-1, 20) reason GROUP BY n, effect ORDER BY n;
SELECT tq_internal.is_tolerated(policy => NULL, reason => 2) AS no_policy, tq_internal.is_tolerated('{"onUnsuccessful": "forgive"}', NULL) AS no_reason, tq_internal.is_tolerated('{}', 2) AS plain,
	tq_internal.is_tolerated('{"onUnsuccessful": "forgive"}', 2147483647) AS far, tq_internal.is_tolerated('{"onUnsuccessful": "forgive"}', -2147483648) AS below;
SELECT policy, a.* FROM unnest('{"{\"a\": 1}","[]","{\"onUnsuccessful\": \"x\"}"}'::jsonb[]) WITH ORDINALITY x (policy, n), pg_temp.answer(format('SELECT tq_internal.is_tolerated(%L, 2)', policy)) a ORDER BY n;
SELECT rtrim(left(task_id::text, 8), '_') AS task, state, tolerated FROM tq.task_details WHERE task_id IN (pg_temp.id('o2'), pg_temp.id('p2'), pg_temp.id('r2'), pg_temp.id('cancelo'), pg_temp.id('o1')) ORDER BY 1;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
