-- doc/spec/taskcluster.md 1.7: the fields of an artifact.
BEGIN;
\ir helper.psql

-- The keys that each type requires and accepts, and a value for each.
CREATE TEMP TABLE types (storage text, must text[], may text[]);
INSERT INTO types VALUES
	('blob', '{contentType}', '{contentLength,uploadId}'),
	('object', '{contentType}', '{contentLength,uploadId}'),
	('reference', '{contentType,url}', '{}'),
	('link', '{artifact}', '{contentType}'),
	('error', '{reason,message}', '{}'),
	('inline', '{contentType,content}', '{}');
CREATE TEMP TABLE keys AS SELECT key, value FROM jsonb_each('{"contentType": "text/plain", "contentLength": 17,
	"uploadId": "upload__QAGAAAAAAAAAAA", "url": "https://example.com/x", "artifact": "public/y",
	"reason": "file-missing-on-worker", "message": "not there", "content": "text"}');

-- The minimal request of that type, with overrides.
CREATE FUNCTION pg_temp.art(storage_type text, overrides jsonb DEFAULT '{}', without text[] DEFAULT '{}') RETURNS jsonb
LANGUAGE sql AS $$
	SELECT (jsonb_build_object('storageType', storage, 'expires', pg_temp.iso(pg_temp.base() + interval '1 day'))
		|| (SELECT jsonb_object_agg(key, value) FROM keys WHERE key = ANY (must)) || overrides) - without
	FROM types WHERE storage = storage_type
$$;

CREATE FUNCTION pg_temp.call(name text, request jsonb) RETURNS text
LANGUAGE sql AS $$
	SELECT format('SELECT tq.create_artifact(pg_temp.id(''t''), 0, %L, %L)', name, request)
$$;

CREATE FUNCTION pg_temp.artifacts() RETURNS text
LANGUAGE sql AS $$
	SELECT md5(string_agg(a::text, E'\n' ORDER BY a::text)) FROM tq_internal.artifact a
$$;

-- The request is refused as bad input, and nothing is stored.
CREATE FUNCTION pg_temp.bad(request jsonb, description text, name text DEFAULT 'bad') RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	before text := pg_temp.artifacts();
BEGIN
	RETURN QUERY SELECT pg_temp.throws(pg_temp.call(name, request), 'TQ400', description);
	IF pg_temp.artifacts() IS DISTINCT FROM before THEN
		RETURN NEXT ok(false, description || ': an artifact is stored');
	END IF;
END
$$;

-- The request is accepted, and this column of the row is as expected.
CREATE FUNCTION pg_temp.good(request jsonb, description text, what text DEFAULT 'true', expected text DEFAULT 'true') RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	name text := md5(description || request::text);
	error jsonb := pg_temp.error(pg_temp.call(name, request));
	found text;
BEGIN
	EXECUTE format('SELECT (%s)::text FROM tq_internal.artifact a WHERE a.name = %L', what, name) INTO found;
	RETURN NEXT is(found, expected, description);
	IF error ->> 'sqlstate' <> '00000' THEN
		RETURN NEXT diag(error::text);
	END IF;
END
$$;

SELECT pg_temp.running('t');

-- what each type accepts, requires, and refuses
SELECT pg_temp.good(pg_temp.art(storage), '1.7 the minimal request of type ' || storage) FROM types;
SELECT pg_temp.good(pg_temp.art(storage, jsonb_build_object(key, value)), format('1.7 %s may have %s', storage, key))
FROM types, keys WHERE key = ANY (may);
SELECT pg_temp.bad(pg_temp.art(storage, without => ARRAY[key]), format('1.7 %s must have %s', storage, key))
FROM types, unnest('{storageType,expires}' || must) AS key;
SELECT pg_temp.bad(pg_temp.art(storage, jsonb_build_object(key, value)), format('1.7 %s has no %s', storage, key))
FROM types, keys WHERE key <> ALL (must || may);
SELECT pg_temp.bad(pg_temp.art(storage, jsonb_build_object(key, 'x')), format('2.15 unknown key %L: %s', key, storage))
FROM types, unnest('{name,present,""}'::text[]) AS key;
SELECT pg_temp.bad(request, '2.15 no object: ' || request::text) FROM unnest('{[],17,"null",true,"\"inline\""}'::jsonb[]) AS request;

-- storageType
SELECT pg_temp.bad(pg_temp.art('inline', jsonb_build_object('storageType', t)), '1.7 storageType ' || t::text)
FROM unnest('{"\"s3\"","\"azure\"","\"\"","\"Inline\"","\"none\"","null",6,"{}"}'::jsonb[]) AS t;
SELECT ok(pg_temp.error(pg_temp.call('x', pg_temp.art('inline', '{"storageType": "s3"}'))) ->> 'hint' LIKE '%' || storage || '%',
	'D-07 the hint on s3 names ' || storage) FROM types;

-- the name
SELECT is(pg_temp.error(pg_temp.call(name, pg_temp.art('inline'))) ->> 'sqlstate', '00000', '1.1 artifact name: ' || left(name, 20))
FROM unnest(ARRAY['a', ' ', '~', '/', 'public/logs/live.log', '..', 'a:b*c?"<>|', repeat('x', 1024)]) AS name;
SELECT pg_temp.bad(pg_temp.art('inline'), '1.1 no artifact name: ' || to_json(left(name, 20)), name)
FROM unnest(ARRAY['', repeat('x', 1025), 'ä', E'a\nb', E'\t', chr(127), chr(31), 'a' || chr(128)]) AS name;
SELECT pg_temp.throws(format('SELECT tq.%s', call), 'TQ400', '1.1 artifact name: ' || call)
FROM unnest(ARRAY[$$get_artifact(pg_temp.id('t'), 0, '')$$, $$get_latest_artifact(pg_temp.id('t'), 'ä')$$,
	$$artifact_info(pg_temp.id('t'), 0, E'a\nb')$$, $$latest_artifact_info(pg_temp.id('t'), repeat('x', 1025))$$,
	$$finish_artifact(pg_temp.id('t'), 0, '', tq.slugid())$$]) AS call;

-- contentType
SELECT pg_temp.good(pg_temp.art(storage, jsonb_build_object('contentType', t)), format('1.7 contentType of %s characters: %s', length(t), storage),
	'content_type', t)
FROM types, unnest(ARRAY['', 'text/plain; charset=utf-8', repeat('x', 255), repeat('ä', 255)]) AS t
WHERE 'contentType' = ANY (must || may);
SELECT pg_temp.bad(pg_temp.art(storage, jsonb_build_object('contentType', t)), format('1.7 no contentType: %s, %s', storage, left(t::text, 10)))
FROM types, unnest(ARRAY[to_jsonb(repeat('x', 256)), '17', 'null', '["text/plain"]']) AS t
WHERE 'contentType' = ANY (must || may);
SELECT pg_temp.good(pg_temp.art(storage), '1.7 contentType where none is given: ' || storage, 'content_type', 'application/binary')
FROM types WHERE 'contentType' <> ALL (must);

-- contentLength
SELECT pg_temp.good(pg_temp.art(storage, jsonb_build_object('contentLength', n)), format('1.7 contentLength %s: %s', n, storage),
	'content_length', trunc(n::numeric)::text)
FROM types, unnest('{0,1,5.0,1e3,9223372036854775807}'::jsonb[]) AS n WHERE 'contentLength' = ANY (may);
SELECT pg_temp.good(pg_temp.art(storage), '1.7 no contentLength: ' || storage, 'content_length IS NULL') FROM types;
SELECT pg_temp.bad(pg_temp.art('object', jsonb_build_object('contentLength', n)), '1.7 no contentLength: ' || left(n::text, 25))
FROM unnest('{-1,0.5,9223372036854775808,1e400,-1e400,"\"5\"","null",[5],true}'::jsonb[]) AS n;

-- uploadId
SELECT pg_temp.good(pg_temp.art(storage, '{"uploadId": "upload__QAGAAAAAAAAAAA"}'), '1.7 the uploadId that was given: ' || storage,
	$$details$$, '{"uploadId": "upload__QAGAAAAAAAAAAA"}') FROM types WHERE 'uploadId' = ANY (may);
SELECT pg_temp.good(pg_temp.art(storage), '1.1 an uploadId is generated: ' || storage,
	$$details ->> 'uploadId' ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$'$$)
FROM types WHERE 'uploadId' = ANY (may);
SELECT is(count(DISTINCT details), count(*), '1.1 each new uploadId is different') FROM tq_internal.artifact
WHERE details ? 'uploadId' AND details ->> 'uploadId' <> 'upload__QAGAAAAAAAAAAA';
SELECT pg_temp.bad(pg_temp.art('object', jsonb_build_object('uploadId', u)), '1.1 no uploadId: ' || u::text)
FROM unnest('{"\"\"","\"upload\"","\"upload__AAGAAAAAAAAAAA\"","\"upload__QAGAAAAAAAAAAAA\"",17,"null"}'::jsonb[]) AS u;

-- url
SELECT pg_temp.good(pg_temp.art('reference', jsonb_build_object('url', u)), '1.7 url ' || left(u, 30), $$details ->> 'url'$$, u)
FROM unnest(ARRAY['https://example.com/x?y=z#w', 'HTTP://example.com', 'ftp://[::1]:21/a%20b', 's3:bucket/key', 'a+b-c.9:x', 'urn:isbn:0451450523',
	'https://example.com/' || repeat('x', 5000)]) AS u;
SELECT pg_temp.bad(pg_temp.art('reference', jsonb_build_object('url', u)), '1.7 no url: ' || to_json(u))
FROM unnest(ARRAY['', 'example.com', '/etc/passwd', '//example.com/x', ':x', 'https:', '9p://x', 'ht tp://x', 'https://a b', E'https://a\nb', 'https://ä', 'https://a"b', 'http^://x']) AS u;
SELECT pg_temp.bad(pg_temp.art('reference', jsonb_build_object('url', u)), '1.7 no url: ' || u::text) FROM unnest('{17,"null","[\"https://example.com\"]"}'::jsonb[]) AS u;

-- artifact
SELECT pg_temp.good(pg_temp.art('link', jsonb_build_object('artifact', a)), '1.7 link to ' || left(a, 20), $$details ->> 'artifact'$$, a)
FROM unnest(ARRAY['x', ' ', 'public/y', repeat('x', 1024)]) AS a;
SELECT pg_temp.bad(pg_temp.art('link', jsonb_build_object('artifact', a)), '1.7 no link to ' || left(a::text, 20))
FROM unnest(ARRAY[to_jsonb(repeat('x', 1025)), '""', '"ä"', '"a\nb"', '17', 'null']) AS a;

-- reason, message
SELECT pg_temp.good(pg_temp.art('error', jsonb_build_object('reason', r)), '1.7 reason ' || r, $$details ->> 'reason'$$, r)
FROM unnest('{file-missing-on-worker,invalid-resource-on-worker,too-large-file-on-worker,file-not-readable-on-worker}'::text[]) AS r;
SELECT pg_temp.bad(pg_temp.art('error', jsonb_build_object('reason', r)), '1.7 no reason: ' || r::text)
FROM unnest('{"\"\"","\"file-missing\"","\"File-missing-on-worker\"","\"failed\"",17,"null"}'::jsonb[]) AS r;
SELECT pg_temp.good(pg_temp.art('error', jsonb_build_object('message', m)), '1.7 message of characters: ' || length(m), $$details ->> 'message'$$, m)
FROM unnest(ARRAY['', E'line\nline', repeat('x', 4095) || 'ä']) AS m;
SELECT pg_temp.bad(pg_temp.art('error', jsonb_build_object('message', m)), '1.7 no message: ' || left(m::text, 10))
FROM unnest(ARRAY[to_jsonb(repeat('x', 4097)), '17', 'null', '{}']) AS m;

-- content
SELECT pg_temp.good(pg_temp.art('inline', jsonb_build_object('content', c)), '1.7 content ' || c::text, $$details -> 'content'$$, c::text)
FROM unnest('{"null",true,17.50,"\"\"","\"text\"",[],"{}","[1, [2, null]]","{\"a\": {\"b\": []}}"}'::jsonb[]) AS c;
SET LOCAL tq.max_inline_artifact = 10;
SELECT pg_temp.good(pg_temp.art('inline', jsonb_build_object('content', c)), '1.7 content of 10 bytes ' || c::text, $$octet_length((details -> 'content')::text)$$, '10')
FROM unnest(ARRAY['"12345678"', '1234567890', '[1, 2, 30]', '{"a": 123}', '"ääää"', '"a\n\n\nb"']::jsonb[]) AS c;
SELECT pg_temp.bad(pg_temp.art('inline', jsonb_build_object('content', c)), '1.7 content of more than 10 bytes ' || c::text)
FROM unnest(ARRAY['"123456789"', '12345678901', '[1, 2, 300]', '{"a": 1234}', '"ääää1"', '"a\n\n\nbc"', '1e20']::jsonb[]) AS c;
SET LOCAL tq.max_inline_artifact = 0;
SELECT pg_temp.bad(pg_temp.art('inline'), '1.7 no inline artifact at all');
RESET tq.max_inline_artifact;
SELECT is(current_setting('tq.max_inline_artifact'), '1MB', '1.7 max_inline_artifact is 1 MB');
SELECT pg_temp.good(pg_temp.art('inline', jsonb_build_object('content', repeat('x', 1024 * 1024 - 2))), '1.7 content of 1 MB');
SELECT pg_temp.bad(pg_temp.art('inline', jsonb_build_object('content', repeat('x', 1024 * 1024 - 1))), '1.7 content of more than 1 MB');

-- expires
CREATE FUNCTION pg_temp.at(t timestamptz) RETURNS jsonb
LANGUAGE sql AS $$ SELECT jsonb_build_object('expires', pg_temp.iso(t)) $$;
SELECT pg_temp.good(pg_temp.art(storage, pg_temp.at(pg_temp.clock() - interval '14 minutes 50 seconds')), '1.7 expires 15 minutes ago: ' || storage) FROM types;
SELECT pg_temp.bad(pg_temp.art(storage, pg_temp.at(pg_temp.clock() - interval '15 minutes 10 seconds')), '1.7 expires more than 15 minutes ago: ' || storage) FROM types;
SELECT pg_temp.good(pg_temp.art('inline', jsonb_build_object('expires', tq.task(pg_temp.id('t')) ->> 'expires')), '1.7 expires with the task',
	'expires', (tq.task(pg_temp.id('t')) ->> 'expires')::timestamptz::text);
SELECT pg_temp.bad(pg_temp.art('inline', pg_temp.at((tq.task(pg_temp.id('t')) ->> 'expires')::timestamptz + interval '1 ms')), '1.7 expires after the task');
SELECT pg_temp.good(pg_temp.art('inline', '{"expires": "2099-12-31T23:59:59.999Z"}'), '1.7 expires in another century', 'true', NULL);
SELECT pg_temp.good(pg_temp.art('inline', jsonb_build_object('expires', to_char((pg_temp.base() + interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T23:00:00.123999"') || z)), '1.2.1 expires in milliseconds: ' || z,
	$$to_char(expires, 'HH24:MI:SS.US')$$, h || ':00:00.123000')
FROM (VALUES ('Z', '23'), ('+01:00', '22'), ('-01:00', '00')) AS v (z, h);
SELECT pg_temp.bad(pg_temp.art('inline', jsonb_build_object('expires', e)), '1.7 no expires: ' || e::text)
FROM unnest('{"\"\"","\"tomorrow\"","\"infinity\"","\"2026-01-31\"","\"2026-02-30T00:00:00Z\"","\"2026-01-31T12:00:00\"",1790000000,"null"}'::jsonb[]) AS e;

SELECT * FROM finish();
ROLLBACK;
