-- Invalid task definitions: each key with each wrong value, unknown keys, times, dependencies, cycles.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT tq.enqueue('regress/w', task_id => pg_temp.id('one'));
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('short'), deadline => '1 hour', expires => '0');
SELECT pg_temp.stored() AS before \gset

CREATE FUNCTION pg_temp.create_with(extra jsonb, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE sql AS $$
	SELECT code, CASE WHEN code <> 'ok' THEN message END, detail, hint
	FROM pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''new''), %L) ->> ''state''', pg_temp.def() || extra)) $$;
CREATE FUNCTION pg_temp.create_without(key text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE sql AS $$
	SELECT code, CASE WHEN code <> 'ok' THEN message END, detail, hint
	FROM pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''new''), %L) ->> ''state''', pg_temp.def() - key)) $$;

-- Required keys
SELECT key, a.* FROM unnest('{taskQueueId,created,deadline,payload,metadata,provisionerId}'::text[]) key, pg_temp.create_without(key) a;
SELECT key, a.* FROM unnest('{name,description,owner,source}'::text[]) key,
	pg_temp.create_with(jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') - key)) a;

-- Each key with a value of each type
SELECT key, value, a.code, a.detail
FROM unnest('{taskQueueId,provisionerId,workerType,schedulerId,projectId,taskGroupId,dependencies,requires,routes,priority,retries,created,deadline,expires,scopes,payload,metadata,tags,extra}'::text[])
	WITH ORDINALITY k (key, k), unnest(ARRAY['null', 'true', '7', '1.5', '""', '"x y"', '[]', '["a"]', '[1]', '{}', '{"a": 1}']::jsonb[]) WITH ORDINALITY v (value, v),
	pg_temp.create_with(jsonb_build_object(key, value)) a ORDER BY k, v;

-- Unknown keys, at each level
SELECT extra, a.* FROM unnest('{"{\"taskid\": \"x\"}","{\"Payload\": {}}","{\"\": 1}","{\"taskId\": \"one_____QAGAAAAAAAAAAA\"}"}'::jsonb[]) extra, pg_temp.create_with(extra) a;
SELECT a.* FROM pg_temp.create_with(jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || '{"more": "x"}')) a;
SELECT a.code, left(a.message, 50) AS message FROM pg_temp.create_with(jsonb_build_object(repeat('k', 100000), 1)) a;

-- Lengths and limits: the last valid value, the first invalid one
SELECT what, a.* FROM (VALUES
	(1, 'routes 64', jsonb_build_object('routes', (SELECT jsonb_agg('r' || n) FROM generate_series(1, 64) n))),
	(2, 'routes 65', jsonb_build_object('routes', (SELECT jsonb_agg('r' || n) FROM generate_series(1, 65) n))),
	(3, 'route of 249', jsonb_build_object('routes', jsonb_build_array(repeat('r', 249)))),
	(4, 'route of 250', jsonb_build_object('routes', jsonb_build_array(repeat('r', 250)))),
	(5, 'route of 0', '{"routes": [""]}'),
	(6, 'routes twice', '{"routes": ["r", "r"]}'),
	(7, 'retries 49', '{"retries": 49}'), (8, 'retries 50', '{"retries": 50}'), (9, 'retries -1', '{"retries": -1}'),
	(10, 'retries 1e0', '{"retries": 1e0}'), (11, 'retries 5.0', '{"retries": 5.0}'), (12, 'retries 99999999999999999999', '{"retries": 99999999999999999999}'),
	(13, 'schedulerId 38', jsonb_build_object('schedulerId', repeat('s', 38))), (14, 'schedulerId 39', jsonb_build_object('schedulerId', repeat('s', 39))),
	(15, 'projectId 500', jsonb_build_object('projectId', repeat('p', 500))), (16, 'projectId 501', jsonb_build_object('projectId', repeat('p', 501))),
	(17, 'projectId colon', '{"projectId": "a:b"}'),
	(18, 'name 255', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('name', repeat('n', 255)))),
	(19, 'name 256', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('name', repeat('n', 256)))),
	(20, 'description 32768', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('description', repeat('n', 32768)))),
	(21, 'description 32769', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('description', repeat('n', 32769)))),
	(22, 'owner 256', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('owner', repeat('n', 256)))),
	(23, 'source 4096', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('source', 'https://' || repeat('n', 4088)))),
	(24, 'source 4097', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('source', 'https://' || repeat('n', 4089)))),
	(25, 'source ftp', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || '{"source": "ftp://x"}')),
	(26, 'source ssh', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || '{"source": "ssh://x"}')),
	(27, 'source git', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || '{"source": "git@x:y"}')),
	(28, 'name number', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || '{"name": 1}')),
	(29, 'tag 4096', jsonb_build_object('tags', jsonb_build_object('t', repeat('t', 4096)))),
	(30, 'tag 4097', jsonb_build_object('tags', jsonb_build_object('t', repeat('t', 4097)))),
	(31, 'tag null', '{"tags": {"t": null}}'), (32, 'tag object', '{"tags": {"t": {}}}'),
	(33, 'scope star', '{"scopes": ["a*"]}'), (34, 'scope two stars', '{"scopes": ["a", "a**"]}'),
	(35, 'scope not ASCII', '{"scopes": ["\t"]}'), (36, 'scope empty', '{"scopes": [""]}'),
	(37, 'queue inconsistent', '{"provisionerId": "other", "workerType": "w"}'),
	(38, 'queue in part', '{"provisionerId": "regress"}'),
	(39, 'queue consistent', '{"provisionerId": "regress", "workerType": "w"}'),
	(40, 'length in characters, not bytes', jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object('name', repeat(U&'\00e4', 255))))) x (n, what, extra),
	pg_temp.create_with(extra) a ORDER BY n;
SELECT a.code, a.message FROM pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''new''), %L)', pg_temp.def() - 'taskQueueId' || '{"provisionerId": "regress"}')) a;

-- Faults of metadata that do not name the key, or do not show the value and the limit: none
SELECT key, left(value::text, 20) AS value, detail
FROM (VALUES ('name', 255), ('description', 32768), ('owner', 255), ('source', 4096)) k (key, max), unnest(ARRAY['null', '7', '["a"]', to_jsonb('bad ' || repeat('x', max))]::jsonb[]) value,
	pg_temp.create_with(jsonb_build_object('metadata', (pg_temp.def() -> 'metadata') || jsonb_build_object(key, value))) a
WHERE NOT (code = 'TQ400' AND strpos(detail, format('"%s" of at most %s characters', key, max)) > 0 AND strpos(detail, rtrim(left(value::text, 20), '"')) > 0);

-- A wrong value at each place among many, and after values of each length
SELECT a.code, a.detail, count(*) FROM generate_series(1, 100) n, pg_temp.create_with(jsonb_build_object('tags', (
	SELECT jsonb_object_agg(repeat('k', m % 9) || m, repeat('t', CASE WHEN m = n THEN 4097 ELSE m END)) FROM generate_series(1, 100) m))) a GROUP BY 1, 2;
SELECT retries, a.code, a.detail, count(*) FROM generate_series(49, 50) retries, generate_series(1, 8) n,
	pg_temp.create_with(jsonb_build_object('payload', jsonb_build_object('x', repeat('x', n)), 'retries', retries)) a GROUP BY 1, 2, 3 ORDER BY 1;

-- Times (1.2.1), in the order of the rules
SELECT what, a.code, a.message, a.detail, a.hint FROM (VALUES
	(1, 'created 14 min ago', '-14 minutes', '1 hour', NULL), (2, 'created 16 min ago', '-16 minutes', '1 hour', NULL),
	(3, 'created in 14 min', '14 minutes', '1 hour', NULL), (4, 'created in 16 min', '16 minutes', '1 hour', NULL),
	(5, 'deadline before created', '10 minutes', '9 minutes', NULL), (6, 'deadline past', '-10 minutes', '-1 minute', NULL),
	(7, 'deadline in 5 days 14 min', '0', '5 days 14 minutes', NULL), (8, 'deadline in 5 days 16 min', '0', '5 days 16 minutes', NULL),
	(9, 'expires at deadline', '0', '1 hour', '1 hour'), (10, 'expires before deadline', '0', '1 hour', '59 minutes'),
	(11, 'created and deadline wrong', '-16 minutes', '-17 minutes', NULL)) x (n, what, created, deadline, expires),
	LATERAL (SELECT clock_timestamp() AS now) c,
	pg_temp.create_with(jsonb_strip_nulls(jsonb_build_object('created', now + created::interval, 'deadline', now + deadline::interval, 'expires', now + expires::interval))) a ORDER BY n;
SELECT value, a.code, a.message, a.detail, a.hint FROM unnest(ARRAY['tomorrow', 'now', 'infinity', '2026-02-30T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01', '2026-01-01T00:00:00', '2026-01-01T25:00:00Z',
	'2026-01-01_00:00:00Z', '2026-01-01T00:00:00.Z', '2026-01-01T00:00:00+25:00', '99999-01-01T00:00:00Z', '0000-01-01T00:00:00Z', '2026-01-01T00:00:00Z ', '']) value,
	pg_temp.create_with(jsonb_build_object('deadline', value)) a;

-- Dependencies: unknown, expiring before the deadline, invalid slugids, duplicates, too many
SELECT a.* FROM pg_temp.create_with('{"dependencies": ["nobody__QAGAAAAAAAAAAA", "one_____QAGAAAAAAAAAAA", "noone___QAGAAAAAAAAAAA"]}') a;
SELECT a.* FROM pg_temp.create_with('{"dependencies": ["short___QAGAAAAAAAAAAA", "one_____QAGAAAAAAAAAAA"]}') a;
SELECT a.* FROM pg_temp.create_with('{"dependencies": ["short___QAGAAAAAAAAAAA", "nobody__QAGAAAAAAAAAAA"]}') a;
SELECT a.* FROM pg_temp.create_with('{"dependencies": ["nobody"]}') a;
SELECT a.* FROM pg_temp.create_with('{"dependencies": ["one_____QAGAAAAAAAAAAA", "one_____QAGAAAAAAAAAAA"]}') a;
SELECT a.code, a.message, a.hint FROM (SELECT jsonb_agg(pg_temp.id(n)) AS d FROM generate_series(1, 10000) n) x, pg_temp.create_with(jsonb_build_object('dependencies', d)) a;
SELECT a.* FROM (SELECT jsonb_agg(pg_temp.id(n)) AS d FROM generate_series(1, 10001) n) x, pg_temp.create_with(jsonb_build_object('dependencies', d)) a;
SELECT a.* FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), dependencies => (SELECT array_agg(pg_temp.id(n)) FROM generate_series(1, 10001) n))$$) a;
SELECT a.* FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), dependencies => ARRAY[pg_temp.id('one'), pg_temp.id('one')])$$) a;

-- create_tasks: the elements, duplicates, cycles
CREATE FUNCTION pg_temp.create_all(tasks jsonb, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE sql AS $$
	SELECT * FROM pg_temp.answer(format('SELECT tq.create_tasks(%L)', tasks)) $$;
CREATE FUNCTION pg_temp.waiting(task text, VARIADIC names text[]) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('taskId', pg_temp.id(task), 'task', pg_temp.def(jsonb_build_object('dependencies',
		(SELECT jsonb_agg(pg_temp.id(n)) FROM unnest(names) n)))) $$;
SELECT value, a.code, a.message, a.detail FROM unnest('{"[1]","[null]","[[]]","[{}]","[{\"taskId\": \"x\", \"task\": {}}]","[{\"taskId\": \"new_____QAGAAAAAAAAAAA\"}]","[{\"taskId\": 1, \"task\": {}}]","[{\"taskId\": \"new_____QAGAAAAAAAAAAA\", \"task\": []}]","[{\"taskId\": \"new_____QAGAAAAAAAAAAA\", \"task\": {}}]","[{\"taskId\": null, \"task\": null}]"}'::jsonb[]) value, pg_temp.create_all(value) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('a', 'one') || '{"more": 1}')) a;
SELECT a.code, a.message FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('a', 'one'), pg_temp.waiting('a', 'one'))) a;
SELECT a.code, a.message FROM (SELECT pg_temp.waiting('a', 'one') AS w) x, pg_temp.create_all(jsonb_build_array(w, w)) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('a', 'a'))) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('a', 'b'), pg_temp.waiting('b', 'a'))) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('x', 'a'), pg_temp.waiting('a', 'one', 'b', 'a'), pg_temp.waiting('b', 'c', 'one'), pg_temp.waiting('c', 'a'), pg_temp.waiting('y', 'one'))) a;
SELECT a.code, a.message, a.hint
FROM (SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id(n), 'task', pg_temp.def(jsonb_build_object('dependencies', jsonb_build_array(pg_temp.id(n % 5000 + 1)))))) AS t
	FROM generate_series(1, 5000) n) x, pg_temp.create_all(t) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('a', 'nobody'), pg_temp.waiting('b', 'a'))) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('one', 'one'), pg_temp.waiting('b', 'one'))) a;
SELECT a.* FROM pg_temp.create_all(jsonb_build_array(pg_temp.waiting('b', 'a'), jsonb_build_object('taskId', pg_temp.id('a'), 'task', pg_temp.def() || jsonb_build_object('expires', pg_temp.def() ->> 'deadline') || jsonb_build_object('deadline', now() + interval '1 hour', 'expires', now() + interval '2 hours')))) a;

-- Policies and delays
SELECT left(p.policy, 55) AS policy, a.code, regexp_replace(a.detail, '^Task "\S+": ', '') AS detail
FROM unnest(ARRAY['[]', '"x"', '1', '{"retryLimit": 3}', '{"retries": -1}', '{"retries": 50}', '{"retries": 1.5}', '{"retries": "3"}',
	'{"retryOn": "failed"}', '{"retryOn": ["failing"]}', '{"retryOn": [1]}', '{"retryOn": ["failed", "failed"]}', '{"retryOn": ["completed"]}',
	'{"retryOn": ["skipped"]}', '{"retryOn": ["canceled"]}', '{"retryOn": ["superseded"]}', '{"retryOn": ["deadline-exceeded"]}',
	'{"retryOn": ["failed-terminal"]}', '{"retryOn": ["malformed-payload"]}', '{"lostRetries": -1}', '{"retries": 25, "lostRetries": 25}',
	'{"retryBackoff": 5}', '{"retryBackoff": {"wait": 5}}', '{"retryBackoff": {"delay": -1}}', '{"retryBackoff": {"kind": "cubic"}}',
	'{"retryBackoff": {"factor": 0}}', '{"retryBackoff": {"factor": 1.5}}', '{"retryBackoff": {"max": "-1 s"}}', '{"retryBackoff": {"jitter": true}}',
	'{"claimTimeout": -1}', '{"claimTimeout": "soon"}', '{"claimTimeout": 2147483648}', '{"claimTimeout": 61, "runTimeout": 60}',
	'{"runTimeout": "2 minutes", "totalTimeout": 119}', '{"pendingTimeout": {}}', '{"totalTimeout": "1 fortnight 1"}', '{"timeoutAlertOnly": "yes"}',
	'{"onUnsuccessful": "explode"}', '{"deadLetter": 1}', '{"delay": "-1 s"}', '{"delay": "2 days"}', '{"delay": 1e400}', format('{"claimTimeout": "%s1 s"}', repeat(' ', 3000))])
	WITH ORDINALITY AS p (policy, place), pg_temp.create_with(format('{"policy": %s}', p.policy)::jsonb) a ORDER BY p.place;
SELECT p.delay, a.code, regexp_replace(a.detail, '^Task "\S+": ', '') AS detail
FROM unnest(ARRAY['true', '"a while"', '-0.001', '"-1 ms"', '86400', '"1 month"', '[]']) WITH ORDINALITY AS p (delay, place),
	pg_temp.create_with(format('{"delay": %s}', p.delay)::jsonb) a ORDER BY p.place;

SELECT pg_temp.stored() = :'before' AS unchanged;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
-- Errors that are not tq's: none
SELECT DISTINCT code, message FROM errors WHERE code NOT LIKE 'TQ4%';
