-- doc/spec/taskcluster.md 1.1: identifiers and patterns.
BEGIN;
\ir helper.psql

-- slugid: the type
SELECT is(v::tq.slugid::text, v, '1.1 slugid ' || v || ' is read and written')
FROM unnest('{dSlITZ4yQgmvxxAi4A8fHQ,AAAAAAAAQACAAAAAAAAAAA,________T_6__________w,--------S--abcdefghijg}'::text[]) AS v;
SELECT pg_temp.throws(format('SELECT %L::tq.slugid', v), '22P02', '1.1 slugid refused: ' || why)
FROM (VALUES
	('', 'empty'),
	('dSlITZ4yQgmvxxAi4A8fH', '21 characters'),
	('dSlITZ4yQgmvxxAi4A8fHQA', '23 characters'),
	('dSlITZ4yAgmvxxAi4A8fHQ', 'ninth character not of Q to T (version)'),
	('dSlITZ4yUgmvxxAi4A8fHQ', 'ninth character U'),
	('dSlITZ4yQgAvxxAi4A8fHQ', 'eleventh character A (variant)'),
	('dSlITZ4yQgnvxxAi4A8fHQ', 'eleventh character n'),
	('dSlITZ4yQgmvxxAi4A8fHR', 'last character not of AQgw'),
	('dSlITZ4+QgmvxxAi4A8fHQ', 'a plus sign'),
	('dSlITZ4/QgmvxxAi4A8fHQ', 'a slash'),
	('dSlITZ4.QgmvxxAi4A8fHQ', 'a dot'),
	('dSlITZ4éQgmvxxAi4A8fH', 'not ASCII'),
	(' dSlITZ4yQgmvxxAi4A8fHQ', 'leading space'),
	('dSlITZ4yQgmvxxAi4A8fHQ ', 'trailing space'),
	('dSlITZ4yQgmvxxAi4A8fHQ==', 'padding')) AS bad (v, why);
SELECT throws_ok(format('SELECT %L::tq.slugid', 'dSlITZ4yQgmvxxAi4A8fH' || c), '22P02', NULL,
	'1.1 last character ' || c || ' is refused')
FROM unnest('{B,P,R,f,h,v,x,9,-,_}'::text[]) AS c;
SELECT is((SELECT string_agg(c, '' ORDER BY n) FROM
	regexp_split_to_table('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', '') WITH ORDINALITY AS u (c, n)
	WHERE pg_temp.error(format('SELECT %L::tq.slugid', 'dSlITZ4yQg' || c || 'vxxAi4A8fHQ')) ->> 'sqlstate' = '00000'),
	'CGKOSWaeimquy26-', '1.1 the eleventh character is one of CGKOSWaeimquy26-');
SELECT is((SELECT string_agg(c, '' ORDER BY n) FROM
	regexp_split_to_table('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', '') WITH ORDINALITY AS u (c, n)
	WHERE pg_temp.error(format('SELECT %L::tq.slugid', 'dSlITZ4y' || c || 'gmvxxAi4A8fHQ')) ->> 'sqlstate' = '00000'),
	'QRST', '1.1 the ninth character is one of QRST');
SELECT is((SELECT string_agg(c, '' ORDER BY n) FROM
	regexp_split_to_table('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', '') WITH ORDINALITY AS u (c, n)
	WHERE pg_temp.error(format('SELECT %L::tq.slugid', 'dSlITZ4yQgmvxxAi4A8fH' || c)) ->> 'sqlstate' = '00000'),
	'AQgw', '1.1 the last character is one of AQgw');
SELECT is(tq.slugid()::text ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$',
	true, '1.1 slugid() makes a slugid');
SELECT is((SELECT count(DISTINCT tq.slugid()::text) FROM generate_series(1, 1000)), 1000::bigint,
	'1.1 slugid() returns a different one each time');
SELECT is('dSlITZ4yQgmvxxAi4A8fHQ'::tq.slugid::uuid, '7529484d-9e32-4209-afc7-1022e00f1f1d'::uuid,
	'1.1 a slugid is the UUID in URL-safe base64');
SELECT is('7529484d-9e32-4209-afc7-1022e00f1f1d'::uuid::tq.slugid::text, 'dSlITZ4yQgmvxxAi4A8fHQ',
	'1.1 and the other way');
SELECT is('7529484d-9e32-4209-afc7-1022e00f1f1d'::tq.slugid::text, 'dSlITZ4yQgmvxxAi4A8fHQ',
	'1.1 a UUID is read as well');
SELECT is(tq.stable_slugid('a name')::text ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$',
	true, '1.1 stable_slugid() makes a slugid');
SELECT is(tq.stable_slugid('a name'), tq.stable_slugid('a name'), '1.1 stable_slugid() makes the same each time');
SELECT throws_ok($$SELECT '7529484d-9e32-1209-afc7-1022e00f1f1d'::uuid::tq.slugid$$, '22P02', NULL,
	'1.1 a UUID of another version is no slugid');
SELECT throws_ok($$SELECT '7529484d-9e32-4209-cfc7-1022e00f1f1d'::uuid::tq.slugid$$, '22P02', NULL,
	'1.1 a UUID of another variant is no slugid');
SELECT throws_ok($$SELECT tq.status('no-slug')$$, '22P02', NULL, '1.1 text that is no slugid, as an argument');

-- slugids inside a definition: TQ400
SELECT pg_temp.refuses(jsonb_build_object(key, value), '1.1 ' || key || ' in a definition must be a slugid: ' || value)
FROM (VALUES
	('taskGroupId', '""'::jsonb), ('taskGroupId', '"abc"'), ('taskGroupId', '"dSlITZ4yQgmvxxAi4A8fHR"'),
	('taskGroupId', '"7529484d-9e32-4209-afc7-1022e00f1f1d"'),
	('dependencies', '["abc"]'), ('dependencies', '[""]'), ('dependencies', '["dSlITZ4yQgmvxxAi4A8fHR"]')) AS v (key, value);
SELECT pg_temp.throws(format('SELECT tq.create_tasks(%L)', jsonb_build_array(jsonb_build_object(
	'taskId', 'abc', 'task', pg_temp.def('x')))), 'TQ400', '1.1 taskId of create_tasks must be a slugid');

-- schedulerId, as the generic identifier
SELECT pg_temp.accepts(jsonb_build_object('schedulerId', v), '1.1 schedulerId ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['a', '-', '_', '0', 'Az-_09', repeat('s', 22), repeat('s', 38)]) AS v;
SELECT pg_temp.refuses(jsonb_build_object('schedulerId', v), '1.1 schedulerId refused: ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['', 'a.b', 'a b', 'a/b', 'a:b', 'é', E'a\n', repeat('s', 39)]) AS v;

-- provisionerId, workerType and taskQueueId
SELECT pg_temp.accepts(jsonb_build_object('taskQueueId', v), '1.1 taskQueueId ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['a/b', 'A-_9/b', repeat('p', 38) || '/' || repeat('w', 38), 'p/a-b-0', 'p/z9']) AS v;
SELECT pg_temp.accepts('{"taskQueueId": "proj-x/Win_2012-R2"}', 'D-02 a workerType of the loose form of the original');
SELECT pg_temp.refuses(jsonb_build_object('taskQueueId', v), '1.1 taskQueueId refused: ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['', 'a', '/', 'a/', '/b', 'a/b/c', 'a//b', 'a.b/c', 'a/b.c', 'a b/c', 'a/b c', 'é/b', E'a/b\n',
	repeat('p', 39) || '/w', 'p/' || repeat('w', 39)]) AS v;
SELECT pg_temp.refuses_task(pg_temp.def('x') - 'taskQueueId' || v, '1.1 refused: ' || left(v::text, 60))
FROM unnest(ARRAY['{"provisionerId": "", "workerType": "w"}', '{"provisionerId": "p", "workerType": ""}',
	'{"provisionerId": "a.b", "workerType": "w"}', '{"provisionerId": "p", "workerType": "a.b"}',
	'{"provisionerId": "a/b", "workerType": "w"}', '{"provisionerId": "p", "workerType": "a/b"}',
	'{"provisionerId": "p p", "workerType": "w"}', '{"provisionerId": "p", "workerType": "w w"}']::jsonb[]) AS v;
SELECT pg_temp.throws(format('SELECT tq.%s(%L%s)', f, q, args), 'TQ400', format('1.1 %s refuses the queue %L', f, q))
FROM (VALUES ('claim_work', ', ''wg'', ''w1'''), ('list_workers', ''), ('task_queue_counts', '')) AS f (f, args),
	unnest('{"",a.b,a/b/c,a.b/c,a/,/b}'::text[]) AS q;

-- workerGroup and workerId
SELECT is(pg_temp.create('wk', '{"taskQueueId": "test/ids"}'), 'pending 5: scheduled>pending', '1.1 a task to be claimed');
SELECT pg_temp.throws(format('SELECT tq.claim_work(''test/ids'', %L, ''w1'')', v), 'TQ400', '1.1 claim_work refuses workerGroup ' || quote_nullable(left(v, 12)))
FROM unnest(ARRAY['', 'a/b', 'a b', 'é', 'a%2E', repeat('w', 129)]) AS v;
SELECT pg_temp.throws(format('SELECT tq.claim_work(''test/ids'', ''wg'', %L)', v), 'TQ400', '1.1 claim_work refuses workerId ' || quote_nullable(left(v, 12)))
FROM unnest(ARRAY['', 'a/b', 'a b', 'é', 'a%2E', repeat('w', 129)]) AS v;
SELECT pg_temp.throws(format('SELECT tq.claim_task(pg_temp.id(''wk''), 0, %L, ''w1'')', v), 'TQ400', '1.1 claim_task refuses workerGroup ' || quote_nullable(left(v, 12)))
FROM unnest(ARRAY['', 'a/b', 'a b', 'é', 'a%2E', repeat('w', 129)]) AS v;
SELECT pg_temp.throws(format('SELECT tq.claim_task(pg_temp.id(''wk''), 0, ''wg'', %L)', v), 'TQ400', '1.1 claim_task refuses workerId ' || quote_nullable(left(v, 12)))
FROM unnest(ARRAY['', 'a/b', 'a b', 'é', 'a%2E', repeat('w', 129)]) AS v;
SELECT is((SELECT worker_group || '/' || worker_id FROM tq.claim_work('test/ids', repeat('G', 128), repeat('.', 128))),
	repeat('G', 128) || '/' || repeat('.', 128), '1.1 workerGroup and workerId have 1 to 128 characters');
SELECT is(tq.status(pg_temp.id('wk')) -> 'runs' -> 0 ->> 'workerId', repeat('.', 128), '1.1 the status shows them whole');
SELECT pg_temp.create('pod', '{"taskQueueId": "test/ids"}');
SELECT is((SELECT worker_group || '/' || worker_id FROM tq.claim_work('test/ids', 'eu-1.example.org', 'pod-7f.default')),
	'eu-1.example.org/pod-7f.default', '1.1 workerGroup and workerId may have dots');
SELECT is(tq.get_worker('test/ids', 'eu-1.example.org', 'pod-7f.default') ->> 'workerId', 'pod-7f.default', '1.1 get_worker takes them');

-- projectId
SELECT pg_temp.accepts(jsonb_build_object('projectId', v), '1.1 projectId ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['a', 'a.b_c/d-E9', '.', '/', repeat('p', 500)]) AS v;
SELECT pg_temp.refuses(jsonb_build_object('projectId', v), '1.1 projectId refused: ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['', 'a:b', 'a b', 'é', 'a*', repeat('p', 501)]) AS v;

-- scopes
SELECT pg_temp.accepts(jsonb_build_object('scopes', jsonb_build_array(v)), '1.1 scope ' || to_json(v)::text)
FROM unnest(ARRAY['a:b', 'a:*', '*', 'a*b*', ' ~', '']) AS v;
SELECT pg_temp.refuses(jsonb_build_object('scopes', jsonb_build_array(v)), '1.1 scope refused: ' || to_json(v)::text)
FROM unnest(ARRAY['é', E'a\tb', E'a\n', E'\x7f', 'a:**', '**']) AS v;

-- routes
SELECT pg_temp.accepts(jsonb_build_object('routes', jsonb_build_array(v)), '1.1 route ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['r', 'index.a.b', 'é ü', repeat('r', 249), repeat('é', 249)]) AS v;
SELECT pg_temp.refuses(jsonb_build_object('routes', jsonb_build_array(v)), '1.1 route refused: ' || left(to_json(v)::text, 14) || ', length ' || length(v))
FROM unnest(ARRAY['', repeat('r', 250), repeat('é', 250)]) AS v;

SELECT * FROM finish();
ROLLBACK;
