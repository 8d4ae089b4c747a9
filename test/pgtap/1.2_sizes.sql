-- doc/spec/taskcluster.md 1.2: sizes are those of JSON text, as clients and
-- pg_dump read it; a few stored bytes can be many characters.
BEGIN;
\ir helper.psql

-- So many numbers of 131,072 digits each: 14 bytes of stored jsonb for each.
CREATE FUNCTION pg_temp.numbers(n int) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_agg('1e131071'::jsonb) FROM generate_series(1, n)
$$;

SET cron.database_name = 'elsewhere';	-- a pg_cron
SELECT pg_temp.create('run', '{"taskQueueId": "test/run"}') \g /dev/null
SELECT tq.claim_work('test/run', 'g', 'w') \g /dev/null

-- 9,000 of them are over 1 GB as text, which is more than a text value can be.
SELECT is(pg_temp.detail(call), expected, call)
FROM (VALUES
	($$SELECT tq.enqueue('test/q', pg_temp.numbers(9000))$$, 'payload has 1179666000 bytes, and may have 16777216 (tq.max_payload); task has 1179666000 bytes, and may have 20971520 (tq.max_definition).'),
	($$SELECT tq.enqueue('test/q', pg_temp.numbers(128))$$, 'payload has 16777472 bytes, and may have 16777216 (tq.max_payload).'),
	($$SELECT tq.enqueue('test/q', pg_temp.numbers(127))$$, 'none'),
	($$SELECT tq.enqueue('test/q', extra => jsonb_build_object('e', pg_temp.numbers(9000)))$$, 'extra has 1179666007 bytes, and may have 1048576 (tq.max_extra); task has 1179666015 bytes, and may have 20971520 (tq.max_definition).'),
	($$SELECT tq.enqueue('test/q', extra => jsonb_build_object('e', pg_temp.numbers(7)))$$, 'none'),
	($$SELECT tq.enqueue('test/q', tags => (SELECT jsonb_object_agg(i, repeat(E'\u0001', 4000)) FROM generate_series(1001, 1044) AS i))$$, 'tags has 1056528 bytes, and may have 1048576 (tq.max_tags).'),
	($$SELECT tq.enqueue('test/q', tags => (SELECT jsonb_object_agg(i, repeat('"', 4000)) FROM generate_series(1001, 1044) AS i))$$, 'none'),
	($$SELECT tq.enqueue_tasks('test/q', ARRAY['{}', pg_temp.numbers(9000)])$$, 'Element 2: payloads has 1179666000 bytes, and may have 16777216 (tq.max_payload); task has 1179666000 bytes, and may have 20971520 (tq.max_definition).'),
	($$SELECT tq.on_group_resolved(pg_temp.id('run'), 'test/q', jsonb_build_object('p', pg_temp.numbers(9000)))$$, 'payload has 1179666007 bytes, and may have 16777216 (tq.max_payload); task has 1179666007 bytes, and may have 20971520 (tq.max_definition).'),
	($$SELECT tq.schedule_cron('large', '* * * * *', 'test/q', pg_temp.numbers(9000))$$, 'payload has 1179666000 bytes, and may have 16777216 (tq.max_payload).'),
	($$SELECT tq.schedule_cron('large', '* * * * *' || repeat(' ', 991), 'test/q')$$, 'none'),
	($$SELECT tq.schedule_cron('large', '* * * * *' || repeat(' ', 992), 'test/q')$$, 'It has 1001 bytes, and may have 1000.'),
	($$SELECT tq.schedule_cron('large', '* * * * *' || repeat(U&'\00e4', 1000000), 'test/q')$$, 'It has 2000009 bytes, and may have 1000.'),
	($$SELECT tq.schedule_cron('string', '* * * * *', 'test/q', tags => '"x"')$$, 'tags must be an object; it is "x".'),
	($$SELECT tq.schedule_cron('large', '* * * * *', 'test/q', extra => jsonb_build_object('e', pg_temp.numbers(9000)))$$, 'task has 1179666018 bytes, and may have 20971520 (tq.max_definition).'),
	($$SELECT tq.enqueue('test/q', policy => jsonb_build_object('uniqueKey', 'k', 'claimTimeout', '1e-16000'::jsonb))$$, 'policy must not be larger than 2000 bytes.'),
	($$SELECT tq.set_queue('test/q', jsonb_build_object('concurrentLimit', '1e-16000'::jsonb))$$, 'They must not be larger than 16000 bytes.'),
	($$SELECT tq.report_completed(pg_temp.id('run'), 0, result => pg_temp.numbers(9000))$$, 'It has 1179666000 bytes, and may have 1048576 (tq.max_inline_artifact).'),
	($$SELECT tq.report_completed(pg_temp.id('run'), 0, result => pg_temp.numbers(8))$$, 'It has 1048592 bytes, and may have 1048576 (tq.max_inline_artifact).'),
	($$SELECT tq.report_failed(pg_temp.id('run'), 0, error => pg_temp.numbers(9000))$$, 'With error_message, it has 1179666000 bytes, and may have 65536.'),
	($$SELECT tq.report_failed(pg_temp.id('run'), 0, error => pg_temp.numbers(1), error_message => 'm')$$, 'With error_message, it has 131103 bytes, and may have 65536.'),
	($$SELECT tq.resolve(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('run'), 'runId', 0, 'result', pg_temp.numbers(9000))))$$, 'Element 1 of reports has a key "result", which has 1179666000 bytes, and may have 1048576 (tq.max_inline_artifact).'),
	($$SELECT tq.create_artifact(pg_temp.id('run'), 0, 'public/u', jsonb_build_object('storageType', 'reference', 'expires', pg_temp.iso(pg_temp.clock() + '1 h'), 'contentType', 'a/b', 'url', 'https://a/' || repeat('u', 8182)))$$, 'none'),
	($$SELECT tq.create_artifact(pg_temp.id('run'), 0, 'public/v', jsonb_build_object('storageType', 'reference', 'expires', pg_temp.iso(pg_temp.clock() + '1 h'), 'contentType', 'a/b', 'url', 'https://a/' || repeat('u', 8183)))$$,
		'In artifact "public/v" of run 0 of task "' || pg_temp.id('run') || '", "url" must be a URI with a scheme, of at most 8192 bytes.'),
	($$SELECT tq.create_artifact(pg_temp.id('run'), 0, 'public/x', jsonb_build_object('storageType', 'inline', 'expires', pg_temp.iso(pg_temp.clock() + '1 h'), 'contentType', 'application/json', 'content', pg_temp.numbers(9000)))$$, 'In artifact "public/x" of run 0 of task "' || pg_temp.id('run') || '", "content" has 1179666000 bytes as text, and may have 1048576 (tq.max_inline_artifact).')) AS v (call, expected);

-- Arrays and objects within each other: clients read fewer than jsonb has.
CREATE FUNCTION pg_temp.nested(n int) RETURNS jsonb LANGUAGE sql AS $$
	SELECT (repeat('[', n % 2) || repeat('{"k": [', n / 2) || '1' || repeat(']}', n / 2) || repeat(']', n % 2))::jsonb
$$;
SELECT is(pg_temp.detail(call), expected, call)
FROM (SELECT replace(v.call, 'N', n::text) AS call, expected
	FROM (VALUES (500, 'none'), (501, 'It has more than 500 arrays and objects within each other.')) AS n (n, expected), (VALUES
		($$SELECT tq.enqueue('test/q', pg_temp.nested(N))$$), ($$SELECT tq.enqueue_tasks('test/q', ARRAY['{}', pg_temp.nested(N)])$$),
		($$SELECT tq.enqueue('test/q', extra => jsonb_build_object('e', pg_temp.nested(N - 1)))$$),
		($$SELECT tq.create_task(pg_temp.id('nN'), pg_temp.def('n', jsonb_build_object('payload', jsonb_build_object('p', pg_temp.nested(N - 1)))))$$),
		($$SELECT tq.schedule_cron('nested', '* * * * *', 'test/q', pg_temp.nested(N))$$),
		($$SELECT tq.on_group_resolved(pg_temp.id('run'), 'test/q', jsonb_build_object('p', pg_temp.nested(N - 1)))$$),
		($$SELECT tq.create_artifact(pg_temp.id('run'), 0, 'public/nN', jsonb_build_object('storageType', 'inline', 'expires', pg_temp.iso(pg_temp.clock() + '1 h'), 'contentType', 'application/json', 'content', pg_temp.nested(N)))$$),
		($$SELECT tq.report_failed(pg_temp.id('run'), 0, error => jsonb_build_object('e', pg_temp.nested(N - 1)))$$),
		($$SELECT tq.report_completed(pg_temp.id('run'), 0, result => pg_temp.nested(N))$$)) AS v (call)
	WHERE n = 501 OR call !~ 'report_') AS v;	-- which would end the run
SELECT is(pg_temp.error($$SELECT tq.enqueue('test/q', pg_temp.nested(501))$$) ->> 'sqlstate', 'TQ400', 'nested too deeply: as a size');

-- What is refused because of its type is not written as text first.
SELECT is(pg_temp.detail($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.numbers(9000))$$), 'That of task "' || pg_temp.id('x') || '" is an array of 9000 elements.', 'a definition that is none');

-- The size is that of the text, whatever is in it.
CREATE FUNCTION pg_temp.size_of(value jsonb) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.report_completed(pg_temp.id('run'), 0, result => value);
	RAISE 'accepted';
EXCEPTION WHEN SQLSTATE 'TQ400' THEN
	DECLARE
		detail text;
	BEGIN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RETURN substring(detail FROM 'has (\d+) bytes');
	END;
END $$;
SET tq.max_inline_artifact = 0;
SELECT is(pg_temp.size_of(value), octet_length(value::text), left(value::text, 60))
FROM unnest(ARRAY['0', '-0', '7', '-7', '12', '123', '1234', '12345', '99999999', '-100000000', '0.5', '-0.05', '0.00005', '1e-20', '123.4500', '1e3', '1.0e3', '1e300', '-1e131071', '1e-16383',
	'10000.00001', 'true', 'false', 'null', '""', '"a"', '"\""', '"\\"', '"\b\f\n\r\t"', '"\u0001\u001f\u007f"', '"é\u20ac"', '[]', '{}', '[[]]', '[{}]', '{"a": {}}', '[1, 2, 3]',
	'{"a": 1, "bb": [true, null, "x"], "c\n": {"d": -1.5}}', '[[[[[1]]]]]', '["", "", 0]']::jsonb[]) AS value;
SELECT is(pg_temp.size_of(value), octet_length(value::text), 'a large one')
FROM (SELECT jsonb_agg(jsonb_build_object(md5(i::text), i * 1.37, chr(i % 128 + 1), repeat(chr(i % 40 + 1), i % 7), 'n', NULL, 't', i % 2 = 0)) AS value FROM generate_series(1, 3000) AS i) AS v;
RESET tq.max_inline_artifact;

SELECT * FROM finish();
ROLLBACK;
