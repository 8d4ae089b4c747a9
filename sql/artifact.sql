-- Artifacts: the functions, their errors, their messages, who may call them.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all
TRUNCATE tq_internal.artifact;

-- The surface
SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, provolatile AS v
FROM pg_proc WHERE pronamespace = 'tq'::regnamespace AND proname ~ 'artifact' ORDER BY proname COLLATE "C";
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'tq.artifact_entry'::regclass ORDER BY attnum;

-- A request; the time at which artifacts expire is always the same.
SELECT clock_timestamp() + interval '1 hour' AS soon \gset
SELECT set_config('regress.soon', :'soon', false) IS NOT NULL AS set;
CREATE FUNCTION pg_temp.art(storage text, extra jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('storageType', storage, 'expires', current_setting('regress.soon')::timestamptz)
		|| CASE WHEN storage IN ('link', 'error') THEN '{}' ELSE '{"contentType": "text/plain"}'::jsonb END || extra $$;
CREATE FUNCTION pg_temp.running(name text) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue('regress/w', task_id => pg_temp.id(name), routes => '{some.route}', expires => '1 day');
	SELECT task_id FROM tq.claim_task(pg_temp.id(name), 0, 'g', 'w') $$;

-- Each type: created, created again, read
SELECT pg_temp.running('one');
CREATE TEMP TABLE request (n int, name text, artifact jsonb);
INSERT INTO request VALUES
	(1, 'blob', pg_temp.art('blob', '{"uploadId": "upload__QAGAAAAAAAAAAA", "contentLength": 17}')),
	(2, 'object', pg_temp.art('object', '{"uploadId": "upload__QAGAAAAAAAAAAA"}')),
	(3, 'reference', pg_temp.art('reference', '{"url": "https://example.com/x"}')),
	(4, 'link', pg_temp.art('link', '{"artifact": "text"}')),
	(5, 'error', pg_temp.art('error', '{"reason": "file-missing-on-worker", "message": "there is no x"}')),
	(6, 'text', pg_temp.art('inline', '{"content": "line\nline\n"}')),
	(7, 'json', pg_temp.art('inline', '{"contentType": "application/json", "content": {"a": [1, null]}}'));
SELECT name, pg_temp.stable(tq.create_artifact(pg_temp.id('one'), 0, name, artifact)::text) AS answer FROM request ORDER BY n;
SELECT name, pg_temp.stable(tq.create_artifact(task_id => pg_temp.id('one'), run_id => 0, name => name, artifact => artifact)::text) AS again FROM request ORDER BY n;
SELECT name, a.* FROM request, pg_temp.answer(format('SELECT tq.get_artifact(task_id => pg_temp.id(''one''), run_id => 0, name => %L)', name)) a ORDER BY n;
SELECT tq.finish_artifact(pg_temp.id('one'), 0, 'blob', 'upload__QAGAAAAAAAAAAA');
SELECT tq.finish_artifact(task_id => pg_temp.id('one'), run_id => 0, name => 'object', upload_id => 'upload__QAGAAAAAAAAAAA');
SELECT name, tq.get_artifact(pg_temp.id('one'), 0, name) FROM unnest('{blob,object}'::text[]) AS name;
SELECT tq.get_latest_artifact(task_id => pg_temp.id('one'), name => 'link') ->> 'content' AS content;
SELECT run_id, name, storage_type, content_type, content_length, expires = date_trunc('milliseconds', :'soon'::timestamptz) AS expires, present
FROM tq.list_artifacts(task_id => pg_temp.id('one'), run_id => 0, after => NULL, max => 100);
SELECT name FROM tq.list_latest_artifacts(task_id => pg_temp.id('one'), after => 'json', max => 2);
-- with the keys of Taskcluster and no others
SELECT tq.artifact_info(task_id => pg_temp.id('one'), run_id => 0, name => 'blob') - 'expires' AS info;
SELECT tq.latest_artifact_info(task_id => pg_temp.id('one'), name => 'link') - 'expires' AS info;

-- Its messages
DO $$ BEGIN
	WHILE EXISTS (SELECT FROM tq_internal.unpublished) LOOP
		PERFORM tq.upkeep();
	END LOOP;
END $$;
CREATE TEMP VIEW message AS
	SELECT id, routing_key, cc, payload FROM tq.messages(exchange => 'artifact-created') WHERE payload #>> '{status,taskId}' = pg_temp.id('one')::text;
SELECT payload #>> '{artifact,storageType}' AS storage_type, payload #>> '{artifact,name}' AS name FROM message ORDER BY id;
SELECT DISTINCT routing_key, cc, jsonb_build_object('runId', payload -> 'runId', 'workerGroup', payload -> 'workerGroup', 'workerId', payload -> 'workerId',
	'version', payload -> 'version', 'state', payload #> '{status,state}') AS payload FROM message;
SELECT DISTINCT string_agg(key, ' ' ORDER BY key COLLATE "C") AS keys FROM message, jsonb_object_keys(payload) AS key GROUP BY id;
SELECT DISTINCT string_agg(key, ' ' ORDER BY key COLLATE "C") AS artifact_keys FROM message, jsonb_object_keys(payload -> 'artifact') AS key GROUP BY id;
SELECT pg_temp.stable((payload -> 'artifact')::text) AS artifact FROM message ORDER BY id LIMIT 1;
-- the run of the artifact and its worker, though a later run exists; nothing of a transaction that was rolled back
SELECT max(id) AS seen FROM message \gset
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('one'), 0, 'worker-shutdown'));
SELECT run_id FROM tq.claim_task(pg_temp.id('one'), 1, 'g2', 'w2');
BEGIN;
SELECT tq.create_artifact(pg_temp.id('one'), 0, 'late', pg_temp.art('inline', '{"content": 1}'));
SAVEPOINT s;
SELECT tq.create_artifact(pg_temp.id('one'), 0, 'never', pg_temp.art('inline', '{"content": 1}'));
ROLLBACK TO s;
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'late', pg_temp.art('inline', '{"content": 2}'));
COMMIT;
SELECT tq.finish_artifact(pg_temp.id('one'), 0, 'object', 'upload__QAGAAAAAAAAAAA');
DO $$ BEGIN
	WHILE EXISTS (SELECT FROM tq_internal.unpublished) LOOP
		PERFORM tq.upkeep();
	END LOOP;
END $$;
SELECT payload #>> '{artifact,name}' AS name, payload -> 'runId' AS run, payload ->> 'workerId' AS worker, routing_key,
	pg_temp.brief(payload -> 'status') AS status FROM message WHERE id > :seen ORDER BY id;

-- Errors
CREATE FUNCTION pg_temp.kept() RETURNS text LANGUAGE sql AS $$ SELECT md5(string_agg(a::text, '' ORDER BY a::text)) FROM tq_internal.artifact a $$;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('pending'));
SELECT pg_temp.brief(tq.define_task(pg_temp.id('defined'), pg_temp.def()));
SELECT pg_temp.brief(tq.report_completed(pg_temp.running('done'), 0));
SELECT tq.create_artifact(pg_temp.id('one'), 1, name, artifact) FROM (VALUES
	('a', pg_temp.art('link', '{"artifact": "b"}')), ('b', pg_temp.art('link', '{"artifact": "a"}')),
	('error', pg_temp.art('error', '{"reason": "too-large-file-on-worker", "message": "core has 9 GB"}'))) AS v (name, artifact);
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'upload', pg_temp.art('object')) ->> 'storageType' AS upload;
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'old', pg_temp.art('inline', jsonb_build_object('content', 1, 'expires', clock_timestamp() - interval '10 minutes')));
SELECT pg_temp.kept() AS before \gset
\x
SELECT what, a.* FROM (VALUES
	('no object', $$create_artifact(pg_temp.id('one'), 1, 'x', '[]')$$),
	('a type of today''s that needs a store', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('s3'))$$),
	('no type', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline') - 'storageType')$$),
	('an unknown key', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', '{"content": 1, "contentEncoding": "gzip"}'))$$),
	('a long unknown key', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', jsonb_build_object('content', 1, repeat('x', 9000), 1)))$$),
	('a key of another type', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('error', '{"reason": "x", "message": "x", "contentType": "x"}'))$$),
	('a key missing', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('reference'))$$),
	('a bad URL', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('reference', '{"url": "x"}'))$$),
	('a bad reason', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('error', '{"reason": "x", "message": "x"}'))$$),
	('a bad length', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('object', '{"contentLength": -1}'))$$),
	('a bad upload id', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('object', '{"uploadId": "x"}'))$$),
	('a long content type', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('object', jsonb_build_object('contentType', repeat('x', 256))))$$),
	('too much', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', jsonb_build_object('content', repeat('x', 1048575))))$$),
	('no time', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', '{"content": 1, "expires": "tomorrow"}'))$$),
	('in the past', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', '{"content": 1, "expires": "2020-01-01T00:00:00Z"}'))$$),
	('after the task', $$create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', '{"content": 1, "expires": "9999-01-01T00:00:00Z"}'))$$),
	('a long name', $$create_artifact(pg_temp.id('one'), 1, repeat('x', 1025), pg_temp.art('inline', '{"content": 1}'))$$),
	('no task', $$create_artifact(pg_temp.id('nobody'), 0, 'x', pg_temp.art('inline', '{"content": 1}'))$$),
	('no run', $$create_artifact(pg_temp.id('one'), 2, 'x', pg_temp.art('inline', '{"content": 1}'))$$),
	('no run yet', $$create_artifact(pg_temp.id('defined'), 0, 'x', pg_temp.art('inline', '{"content": 1}'))$$),
	('not claimed', $$create_artifact(pg_temp.id('pending'), 0, 'x', pg_temp.art('inline', '{"content": 1}'))$$),
	('completed', $$create_artifact(pg_temp.id('done'), 0, 'x', pg_temp.art('inline', '{"content": 1}'))$$),
	('other details', $$create_artifact(pg_temp.id('one'), 1, 'late', pg_temp.art('inline', '{"content": 1}'))$$),
	('credentials', $$create_artifact(pg_temp.id('one'), 1, 'late', pg_temp.art('inline', '{"content": 2}'), '{}')$$),
	('finish: no artifact', $$finish_artifact(pg_temp.id('one'), 1, 'x', tq.slugid())$$),
	('finish: another type', $$finish_artifact(pg_temp.id('one'), 1, 'late', tq.slugid())$$),
	('finish: another upload', $$finish_artifact(pg_temp.id('one'), 1, 'upload', 'wrong___QAGAAAAAAAAAAA')$$),
	('get: no task', $$get_artifact(pg_temp.id('nobody'), 0, 'x')$$),
	('get: no run', $$get_artifact(pg_temp.id('one'), 2, 'x')$$),
	('get: no run yet', $$get_latest_artifact(pg_temp.id('defined'), 'x')$$),
	('get: no artifact', $$get_artifact(pg_temp.id('one'), 0, 'x')$$),
	('get: not finished', $$get_artifact(pg_temp.id('one'), 1, 'upload')$$),
	('get: expired', $$get_artifact(pg_temp.id('one'), 1, 'old')$$),
	('get: an error', $$get_artifact(pg_temp.id('one'), 1, 'error')$$),
	('get: links', $$get_artifact(pg_temp.id('one'), 1, 'a')$$),
	('info: not finished', $$artifact_info(pg_temp.id('one'), 1, 'upload')$$),
	('list: no run', $$list_artifacts(pg_temp.id('one'), 2)$$),
	('list: too many', $$list_artifacts(pg_temp.id('one'), 1, max => 1001)$$)) x (what, call),
	pg_temp.answer('SELECT tq.' || call) a;
\x
SELECT pg_temp.kept() = :'before' AS unchanged;

-- Without concurrent sessions the isolation level does not matter
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'serializable', pg_temp.art('inline', '{"content": 1}'));
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'serializable', pg_temp.art('inline', '{"content": 1}'));
SELECT tq.get_artifact(pg_temp.id('one'), 1, 'serializable');
COMMIT;
BEGIN READ ONLY;
SELECT tq.get_artifact(pg_temp.id('one'), 1, 'serializable');
SELECT count(*) FROM tq.list_artifacts(pg_temp.id('one'), 1);
SELECT * FROM pg_temp.answer($$SELECT tq.create_artifact(pg_temp.id('one'), 1, 'x', pg_temp.art('inline', '{"content": 1}'))$$);
ROLLBACK;

-- Who may call them: members of tq_admin, who can read no table; other roles by their scopes
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_admin, regress_tq_nobody;
RESET client_min_messages;
CREATE ROLE regress_tq_admin IN ROLE tq_admin;
CREATE ROLE regress_tq_nobody;
GRANT ALL ON errors TO regress_tq_admin, regress_tq_nobody;
SET ROLE regress_tq_admin;
SELECT tq.create_artifact(pg_temp.id('one'), 1, 'mine', pg_temp.art('object', '{"uploadId": "upload__QAGAAAAAAAAAAA"}')) ->> 'uploadId' AS upload_id;
SELECT tq.finish_artifact(pg_temp.id('one'), 1, 'mine', 'upload__QAGAAAAAAAAAAA');
SELECT tq.get_artifact(pg_temp.id('one'), 1, 'mine') ->> 'name' AS name, tq.get_latest_artifact(pg_temp.id('one'), 'mine') ->> 'name' AS latest;
SELECT tq.artifact_info(pg_temp.id('one'), 1, 'mine') ? 'storageType', tq.latest_artifact_info(pg_temp.id('one'), 'mine') ? 'storageType' AS latest;
SELECT (SELECT count(*) FROM tq.list_artifacts(pg_temp.id('one'), 1, 'late')) AS list, (SELECT count(*) FROM tq.list_latest_artifacts(pg_temp.id('one'), 'late')) AS latest;
SELECT * FROM pg_temp.answer('SELECT * FROM tq_internal.artifact');
SELECT * FROM pg_temp.answer('SET tq.max_inline_artifact = 0');
RESET ROLE;
SET ROLE regress_tq_nobody;
SELECT * FROM pg_temp.answer($$SELECT tq.create_artifact(pg_temp.id('one'), 1, 'mine', pg_temp.art('object'))$$);
SELECT * FROM pg_temp.answer($$SELECT tq.finish_artifact(pg_temp.id('one'), 1, 'mine', 'upload__QAGAAAAAAAAAAA')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.get_artifact(pg_temp.id('one'), 1, 'mine')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.list_artifacts(pg_temp.id('one'), 1)$$);
RESET ROLE;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;

DROP OWNED BY regress_tq_admin, regress_tq_nobody;
DROP ROLE regress_tq_admin, regress_tq_nobody;
