-- doc/spec/taskcluster.md 1.2 and 1.2.1: the task definition, its defaults, limits
-- and dates.
BEGIN;
\ir helper.psql

-- What is required
SELECT pg_temp.refuses_task(pg_temp.def('x') - key, '1.2 ' || key || ' is required')
FROM unnest('{created,deadline,payload,metadata,taskQueueId}'::text[]) AS key;
SELECT pg_temp.refuses_task(pg_temp.def('x') - 'taskQueueId' || v, '1.2 not enough: ' || v::text)
FROM unnest(ARRAY['{"provisionerId": "test"}', '{"workerType": "q"}']::jsonb[]) AS v;
SELECT pg_temp.refuses('{"provisionerId": "other", "workerType": "q"}', '1.2 provisionerId, workerType and taskQueueId must agree');
SELECT pg_temp.refuses('{"taskQueueId": "test/q", "provisionerId": "test", "workerType": "r"}', '1.2 workerType must agree');
SELECT pg_temp.refuses('{"taskQueueId": "test/q", "provisionerId": "rest"}', '1.2 provisionerId alone must agree');
SELECT pg_temp.accepts('{"taskQueueId": "test/q", "provisionerId": "test", "workerType": "q"}', '1.2 both forms, if they agree');
SELECT is(tq.create_task(pg_temp.id('pw'), pg_temp.def('pw') - 'taskQueueId' || '{"provisionerId": "test", "workerType": "q"}')
	->> 'taskQueueId', 'test/q', '1.2 taskQueueId from provisionerId and workerType');

-- Unknown keys
SELECT pg_temp.refuses(v, '1.2 unknown key: ' || v::text)
FROM unnest(ARRAY['{"taskId": "dSlITZ4yQgmvxxAi4A8fHQ"}', '{"runs": []}', '{"retriesLeft": 5}', '{"state": "pending"}',
	'{"": 1}', '{"Priority": "high"}', '{"foo": null}']::jsonb[]) AS v;

-- Not an object
SELECT pg_temp.throws(format('SELECT tq.create_task(pg_temp.id(''x''), %L)', v), 'TQ400', '1.2 a definition is an object, not ' || quote_nullable(v))
FROM unnest('{[],"\"x\"",1,true,null,NULL}'::text[]) AS v;
SELECT pg_temp.refuses_task('{}', '1.2 an empty definition');
SELECT pg_temp.throws(format('SELECT tq.create_task(NULL, %L)', pg_temp.def('x')), 'TQ400', '1.2 no task id');

-- Types
SELECT pg_temp.refuses(jsonb_build_object(key, value), format('1.2 wrong type: %s %s', key, value))
FROM (VALUES
	('taskQueueId', '1'::jsonb), ('provisionerId', '1'), ('workerType', '[]'), ('schedulerId', '1'), ('projectId', '{}'),
	('taskGroupId', '1'), ('dependencies', '"a"'), ('dependencies', '{}'), ('dependencies', '[1]'), ('dependencies', '[null]'),
	('dependencies', '[[]]'), ('requires', '1'), ('routes', '"r"'), ('routes', '[1]'), ('routes', '[null]'), ('routes', '{}'),
	('priority', '5'), ('retries', '"5"'), ('retries', '1.5'), ('retries', 'true'), ('retries', '[]'), ('created', '1'),
	('created', '{}'), ('deadline', 'true'), ('expires', '0'), ('scopes', '"s"'), ('scopes', '[1]'), ('scopes', '{}'),
	('payload', '[]'), ('payload', '"x"'), ('payload', '1'), ('payload', 'true'), ('metadata', '[]'), ('metadata', '"x"'),
	('tags', '[]'), ('tags', '"x"'), ('tags', '{"a": 1}'), ('tags', '{"a": null}'), ('tags', '{"a": {}}'), ('tags', '{"a": ["b"]}'),
	('extra', '[]'), ('extra', '"x"'), ('extra', '1')) AS v (key, value);
SELECT pg_temp.refuses(jsonb_build_object(key, NULL), '1.2 null is no value of ' || key)
FROM unnest('{taskQueueId,provisionerId,workerType,schedulerId,projectId,taskGroupId,dependencies,requires,routes,priority,retries,created,deadline,expires,scopes,payload,metadata,tags,extra}'::text[]) AS key;

-- Defaults
SELECT is(pg_temp.create('d'), 'pending 5: scheduled>pending', '1.2 the minimal definition');
SELECT is(tq.task(pg_temp.id('d')), pg_temp.def('d') || jsonb_build_object(
		'provisionerId', 'test', 'workerType', 'q-d', 'taskQueueId', 'test/q-d', 'schedulerId', '-', 'projectId', 'none',
		'taskGroupId', pg_temp.id('d')::text, 'dependencies', '[]'::jsonb, 'requires', 'all-completed', 'routes', '[]'::jsonb,
		'priority', 'lowest', 'retries', 5, 'expires', pg_temp.iso(pg_temp.next_year(pg_temp.base() + interval '1 hour')),
		'scopes', '[]'::jsonb, 'tags', '{}'::jsonb, 'extra', '{}'::jsonb),
	'1.2 every default is filled in, and nothing else');

-- A full definition is returned unchanged
SELECT is(pg_temp.create('dep1'), 'pending 5: scheduled>pending', '1.2 a task to depend on');
CREATE TEMP TABLE full_definition AS SELECT pg_temp.def('f', jsonb_build_object(
		'provisionerId', 'test', 'workerType', 'q-f', 'schedulerId', 'sched', 'projectId', 'proj/x',
		'$group', 'grp', '$deps', '["dep1"]'::jsonb, 'requires', 'all-resolved', 'routes', '["z", "a", "é"]'::jsonb,
		'priority', 'very-high', 'retries', 0, '$expires', '2 days', 'scopes', '["b", "a:*", "b"]'::jsonb,
		'payload', '{"z": [1, null, {"a": 1.50}], "a": "\u00e9"}'::jsonb, 'tags', '{"kind": "x", "": "", "a.b": "c"}'::jsonb,
		'extra', '{"deep": {"er": [[]]}}'::jsonb)) AS task;
SELECT is(tq.create_task(pg_temp.id('f'), task) ->> 'state', 'unscheduled', '1.2 a full definition') FROM full_definition;
SELECT is(tq.task(pg_temp.id('f')), task, '1.2 a full definition is returned unchanged') FROM full_definition;
SELECT is(tq.task(pg_temp.id('f'))::text, task::text, '1.2 down to the spelling of its numbers') FROM full_definition;

-- Limits
SELECT pg_temp.accepts(jsonb_build_object('retries', n), '1.2 retries ' || n) FROM unnest('{0,1,49}'::int[]) AS n;
SELECT pg_temp.refuses(jsonb_build_object('retries', n), '1.2 retries refused: ' || n)
FROM unnest('{-1,50,1000,2147483648,99999999999999999999}'::numeric[]) AS n;
SELECT pg_temp.accepts(jsonb_build_object('priority', p), '1.2 priority ' || p)
FROM unnest('{highest,very-high,high,medium,low,very-low,lowest}'::text[]) AS p;
SELECT pg_temp.refuses(jsonb_build_object('priority', p), '1.2 priority refused: ' || quote_literal(p))
FROM unnest('{"",HIGH,urgent,"high ",7}'::text[]) AS p;
SELECT pg_temp.refuses('{"priority": "normal"}', 'D-24 priority normal is refused');
SELECT pg_temp.accepts(jsonb_build_object('requires', r), '1.2 requires ' || r) FROM unnest('{all-completed,all-resolved}'::text[]) AS r;
SELECT pg_temp.refuses(jsonb_build_object('requires', r), '1.2 requires refused: ' || quote_literal(r)) FROM unnest('{"",any,all}'::text[]) AS r;
SELECT pg_temp.accepts(jsonb_build_object('routes', (SELECT jsonb_agg('r' || n) FROM generate_series(1, 64) AS n)), '1.2 64 routes');
SELECT pg_temp.refuses(jsonb_build_object('routes', (SELECT jsonb_agg('r' || n) FROM generate_series(1, 65) AS n)), '1.2 65 routes');
SELECT pg_temp.refuses('{"routes": ["a", "b", "a"]}', '1.2 routes are unique');
SELECT pg_temp.refuses('{"$deps": ["dep1", "dep1"]}', '1.2 dependencies are unique');
SELECT pg_temp.accepts('{"scopes": ["a", "a"]}', '1.2 scopes need not be unique');
SELECT pg_temp.refuses('{"scopes": ["a", "b:**"]}', '1.2.1 a scope may not end in two stars');

-- metadata, tags
SELECT pg_temp.refuses_task(pg_temp.def('x') #- ARRAY['metadata', key], '1.2 metadata needs ' || key)
FROM unnest('{name,description,owner,source}'::text[]) AS key;
SELECT pg_temp.refuses_task(jsonb_set(pg_temp.def('x'), ARRAY['metadata', key], '1'), '1.2 metadata.' || key || ' is a string')
FROM unnest('{name,description,owner,source}'::text[]) AS key;
SELECT pg_temp.refuses_task(jsonb_set(pg_temp.def('x'), '{metadata,email}', '"x"'), '1.2 metadata has no other keys');
SELECT pg_temp.refuses('{"metadata": {}}', '1.2 metadata may not be empty');
SELECT pg_temp.accepts(jsonb_build_object('metadata', pg_temp.def('x') -> 'metadata' || jsonb_build_object(key, repeat('é', n))),
	format('1.2 metadata.%s of %s characters', key, n))
FROM (VALUES ('name', 255), ('description', 32768), ('owner', 255), ('name', 0), ('description', 0), ('owner', 0)) AS v (key, n);
SELECT pg_temp.refuses(jsonb_build_object('metadata', pg_temp.def('x') -> 'metadata' || jsonb_build_object(key, repeat('é', n))),
	format('1.2 metadata.%s of %s characters is refused', key, n))
FROM (VALUES ('name', 256), ('description', 32769), ('owner', 256)) AS v (key, n);
SELECT pg_temp.accepts(jsonb_build_object('metadata', pg_temp.def('x') -> 'metadata' || jsonb_build_object('source', v)), '1.2 source ' || left(v, 30))
FROM unnest(ARRAY['http://x', 'https://x', 'ssh://x', 'git@x', 'https://' || repeat('s', 4088)]) AS v;
SELECT pg_temp.refuses(jsonb_build_object('metadata', pg_temp.def('x') -> 'metadata' || jsonb_build_object('source', v)), '1.2 source refused: ' || quote_literal(left(v, 30)))
FROM unnest(ARRAY['', 'ftp://x', 'x https://x', 'HTTP://x', 'git', 'https://' || repeat('s', 4089)]) AS v;
SELECT pg_temp.accepts('{"metadata": {"name": "", "description": "", "owner": "not an address", "source": "git@"}}', 'D-25 owner is free text');
SELECT pg_temp.accepts(jsonb_build_object('tags', jsonb_build_object('k', repeat('é', 4096))), '1.2 a tag of 4096 characters');
SELECT pg_temp.refuses(jsonb_build_object('tags', jsonb_build_object('k', repeat('é', 4097))), '1.2 a tag of 4097 characters');

-- 1.2.1 dates
SELECT pg_temp.accepts('{"$created": "-14 minutes -30 seconds"}', '1.2.1 (1) created 14.5 minutes ago');
SELECT pg_temp.refuses('{"$created": "-15 minutes -30 seconds"}', '1.2.1 (1) created in the past');
SELECT pg_temp.accepts('{"$created": "14 minutes 30 seconds"}', '1.2.1 (2) created 14.5 minutes from now');
SELECT pg_temp.refuses('{"$created": "15 minutes 30 seconds"}', '1.2.1 (2) created in the future');
SELECT pg_temp.refuses('{"$created": "10 minutes", "$deadline": "9 minutes 59.999 seconds"}', '1.2.1 (3) deadline before created');
SELECT pg_temp.accepts('{"$created": "10 minutes", "$deadline": "10 minutes"}', '1.2.1 (3) deadline equal to created');
SELECT pg_temp.refuses('{"$created": "-10 minutes", "$deadline": "-5 minutes"}', '1.2.1 (4) deadline in the past');
SELECT pg_temp.accepts('{"$deadline": "5 days 14 minutes 30 seconds"}', '1.2.1 (5) deadline in 5 days and 14.5 minutes');
SELECT pg_temp.refuses('{"$deadline": "5 days 16 minutes"}', '1.2.1 (5) deadline too far');
SET tq.max_deadline = '1d';
SELECT pg_temp.accepts('{"$deadline": "1 day 14 minutes 30 seconds"}', '1.2.1 (5) tq.max_deadline with its 15 minutes');
SELECT pg_temp.refuses('{"$deadline": "1 day 16 minutes"}', '1.2.1 (5) tq.max_deadline exceeded');
SET tq.max_deadline = '10d';
SELECT pg_temp.accepts('{"$deadline": "10 days 14 minutes"}', '1.2.1 (5) tq.max_deadline may be more');
RESET tq.max_deadline;
SELECT pg_temp.accepts('{"$deadline": "1 hour", "$expires": "1 hour"}', '1.2.1 (6) expires equal to deadline');
SELECT pg_temp.refuses('{"$deadline": "1 hour", "$expires": "59 minutes 59.999 seconds"}', '1.2.1 (6) expires before deadline');
SELECT pg_temp.accepts('{"$expires": "20000 days"}', '1.2.1 (6) expires has no upper limit');

-- the default of expires is a calendar year
SELECT set_config('tq.clock_offset', (timestamptz '2027-02-28 12:00Z' - now())::text, false);
SELECT is(pg_temp.create('y1', '{"deadline": "2027-03-01T00:00:00.000Z"}'), 'pending 5: scheduled>pending', '1.2 a deadline in a year before a leap year');
SELECT is(tq.task(pg_temp.id('y1')) ->> 'expires', '2028-03-01T00:00:00.000Z', '1.2 expires is the same day of the next year');
SELECT set_config('tq.clock_offset', (timestamptz '2028-02-28 12:00Z' - now())::text, false);
SELECT is(pg_temp.create('y2', '{"deadline": "2028-02-29T10:00:00.5Z"}'), 'pending 5: scheduled>pending', '1.2 a deadline on 29 February');
SELECT is(tq.task(pg_temp.id('y2')) ->> 'expires', '2029-03-01T10:00:00.500Z', '1.2 29 February and a year is 1 March');
RESET tq.clock_offset;

-- normal form
SELECT set_config('tq.clock_offset', (timestamptz '2030-06-01 00:00Z' - now())::text, false);
SELECT is(pg_temp.create('n', '{"created": "2030-06-01T00:00:00Z", "deadline": "2030-06-01T14:00:00.98765+02:00", "expires": "2030-06-30T23:59:59.9999999-11:30"}'),
	'pending 5: scheduled>pending', '1.2.1 other notations of dates');
SELECT is(tq.task(pg_temp.id('n')) ->> 'created', '2030-06-01T00:00:00.000Z', '1.2.1 created is normalised to milliseconds');
SELECT is(tq.task(pg_temp.id('n')) ->> 'deadline', '2030-06-01T12:00:00.987Z', '1.2.1 deadline to UTC, more digits are dropped');
SELECT is(tq.task(pg_temp.id('n')) ->> 'expires', '2030-07-01T11:29:59.999Z', '1.2.1 truncated, not rounded');
SELECT is(tq.status(pg_temp.id('n')) ->> 'deadline', '2030-06-01T12:00:00.987Z', '1.2.1 the same in the status');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('n'), pg_temp.def('n',
	'{"created": "2030-06-01T01:00:00.0001+01:00", "deadline": "2030-06-01T12:00:00.9879999Z", "expires": "2030-07-01T11:29:59.999Z"}'))$$,
	'n', '1.2.1 a repeat with dates in another notation is the same');
SELECT pg_temp.refuses(jsonb_build_object('deadline', v), '1.2.1 not a date-time: ' || quote_literal(v))
FROM unnest(ARRAY['', 'now', 'tomorrow', 'infinity', '2030-06-02', '2030-06-02T00:00:00', '2030-06-02T00:00Z', '2030-13-01T00:00:00Z',
	'2030-06-31T00:00:00Z', '2030-06-02T24:00:00Z', '2030-06-02T00:60:00Z', '2030-06-02T00:00:00.Z', '2030-06-02T00:00:00+0200',
	'2030-06-02T00:00:00 UTC', ' 2030-06-02T00:00:00Z', '2030-06-02T00:00:00Zx', '20300602T000000Z', '1906588800']) AS v;
SELECT pg_temp.refuses('{"expires": "infinity"}', '1.2.1 expires is a date-time too');
SELECT pg_temp.refuses('{"created": "now"}', '1.2.1 created is a date-time too');
RESET tq.clock_offset;

-- a refused definition leaves no rows
SELECT is((SELECT count(*) FROM tq_internal.task WHERE task_id::text = pg_temp.id('x')::text), 0::bigint, '1.2 a refused definition creates no task');

SELECT * FROM finish();
ROLLBACK;
