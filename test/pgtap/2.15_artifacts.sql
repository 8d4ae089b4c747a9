-- doc/spec/taskcluster.md 2.15: artifacts; 6.1 artifact-created; D-07, D-08; 10.10.
BEGIN;
\ir helper.psql

-- A minimal request of the type, with overrides.  $expires is an
-- interval from base().
CREATE FUNCTION pg_temp.art(storage text, overrides jsonb DEFAULT '{}') RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('storageType', storage,
		'expires', pg_temp.iso(pg_temp.base() + coalesce(overrides ->> '$expires', '1 hour')::interval))
	|| CASE storage
		WHEN 'reference' THEN '{"contentType": "text/plain", "url": "https://example.com/x"}'::jsonb
		WHEN 'link' THEN '{"artifact": "target"}'
		WHEN 'error' THEN '{"reason": "too-large-file-on-worker", "message": "it has 1 TB"}'
		WHEN 'inline' THEN '{"contentType": "text/plain", "content": "text"}'
		ELSE '{"contentType": "text/plain"}' END
	|| overrides - '$expires'
$$;

CREATE FUNCTION pg_temp.put(task text, name text, request jsonb, run int DEFAULT 0) RETURNS jsonb
LANGUAGE sql AS $$ SELECT tq.create_artifact(pg_temp.id(task), run, name, request) $$;

CREATE FUNCTION pg_temp.putting(task text, name text, request jsonb, run int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT format('SELECT tq.create_artifact(pg_temp.id(%L), %s, %L, %L)', task, run, name, request) $$;

CREATE FUNCTION pg_temp.get(task text, name text, run int DEFAULT 0) RETURNS jsonb
LANGUAGE sql AS $$ SELECT tq.get_artifact(pg_temp.id(task), run, name) $$;

CREATE FUNCTION pg_temp.getting(task text, name text, run int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT format('SELECT tq.get_artifact(pg_temp.id(%L), %s, %L)', task, run, name) $$;

CREATE FUNCTION pg_temp.finish(task text, name text, upload text, run int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$ SELECT format('SELECT tq.finish_artifact(pg_temp.id(%L), %s, %L, %L)', task, run, name, upload) $$;

CREATE FUNCTION pg_temp.row_of(task_name text, artifact text, run int DEFAULT 0) RETURNS tq_internal.artifact
LANGUAGE sql AS $$
	SELECT a FROM tq_internal.artifact a JOIN tq_internal.task t ON t.id = a.task
	WHERE t.task_id = pg_temp.id(task_name) AND a.run_id = run AND a.name = artifact
$$;

CREATE FUNCTION pg_temp.artifacts() RETURNS text
LANGUAGE sql AS $$ SELECT md5(string_agg(a::text, E'\n' ORDER BY a::text)) FROM tq_internal.artifact a $$;

-- The artifact-created messages since the last call, in order and in short form.
-- They are appended in this transaction, and published after its commit.
CREATE TEMP TABLE heard (seq bigint);
INSERT INTO heard VALUES (0);
CREATE FUNCTION pg_temp.said() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	SELECT coalesce(string_agg(concat_ws(' ', detail ->> 'storageType', detail ->> 'name'), ', ' ORDER BY seq), 'nothing') INTO result
	FROM tq_internal.message WHERE detail ? 'storageType' AND seq > (SELECT max(h.seq) FROM heard h);
	INSERT INTO heard SELECT coalesce(max(seq), 0) FROM tq_internal.message;
	RETURN result;
END
$$;

-- The call raises this error, changes no artifact and appends no message.
CREATE FUNCTION pg_temp.refuses(query text, code text, description text, like_this text DEFAULT '%') RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	before text := pg_temp.artifacts() || (SELECT count(*) FROM tq_internal.message);
	error jsonb;
BEGIN
	RETURN QUERY SELECT pg_temp.throws(query, code, description);
	error := pg_temp.error(query);
	IF pg_temp.artifacts() || (SELECT count(*) FROM tq_internal.message) IS DISTINCT FROM before THEN
		RETURN NEXT ok(false, description || ': something is stored');
	END IF;
	IF concat_ws(' ', error ->> 'message', error ->> 'detail') NOT LIKE like_this THEN
		RETURN NEXT ok(false, description || ': ' || error);
	END IF;
END
$$;

-- ---------------------------------------------------------------------------
-- createArtifact: the order of checks
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('r');
SELECT pg_temp.create('p');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.resolved('c', 'completed', '{"$expires": "2 hours"}');
SELECT pg_temp.put('r', 'first', pg_temp.art('inline'));
SELECT pg_temp.said();

SELECT pg_temp.refuses(pg_temp.putting('nobody', 'x', pg_temp.art('inline', '{"$expires": "-16 minutes", "key": 1}')), 'TQ400',
	'2.15 the request comes before the clock', '%"key"%');
SELECT pg_temp.refuses(pg_temp.putting('nobody', 'x', pg_temp.art('inline', '{"$expires": "-16 minutes"}')), 'TQ400',
	'2.15 the clock before the task', '%"expires"%past%');
SELECT pg_temp.refuses(pg_temp.putting('nobody', 'x', pg_temp.art('inline')), 'TQ400', '2.15 no such task: 400', '%task%never created%');
SELECT pg_temp.refuses(pg_temp.putting('r', 'x', pg_temp.art('inline', '{"$expires": "3 years"}'), 1), 'TQ400', '2.15 no such run: 400', '%run 1 %does not exist%');
SELECT pg_temp.refuses(pg_temp.putting('u', 'x', pg_temp.art('inline')), 'TQ400', '2.15 unscheduled, no such run: 400', '%run 0 %does not exist%');
SELECT pg_temp.refuses(pg_temp.putting('p', 'x', pg_temp.art('inline', '{"$expires": "3 years"}')), 'TQ400', '2.15 never claimed: 400', '%never claimed%');
SELECT pg_temp.refuses(pg_temp.putting('p', 'x', pg_temp.art('inline'), 1), 'TQ400', '2.15 a run after one that is pending: 400', '%run 1 %does not exist%');
SELECT pg_temp.refuses(pg_temp.putting('c', 'x', pg_temp.art('inline', '{"$expires": "3 hours"}')), 'TQ400', '2.15 the task''s expires before the state', '%"expires"%the task%');
SELECT pg_temp.refuses(pg_temp.putting('c', 'x', pg_temp.art('inline')), 'TQ409', '2.15 completed: 409', '%completed%');
SELECT pg_temp.refuses(format('SELECT tq.create_artifact(%s)', args), 'TQ400', '2.15 bad argument: ' || args) FROM unnest(ARRAY[
	$$NULL, 0, 'x', pg_temp.art('inline')$$, $$pg_temp.id('r'), NULL, 'x', pg_temp.art('inline')$$,
	$$pg_temp.id('r'), 0, NULL, pg_temp.art('inline')$$, $$pg_temp.id('r'), 0, 'x', NULL$$,
	$$pg_temp.id('r'), -1, 'x', pg_temp.art('inline')$$, $$pg_temp.id('r'), 0, 'x', pg_temp.art('inline'), '{}'$$,
	$$pg_temp.id('r'), 2147483647, 'x', pg_temp.art('inline')$$, $$pg_temp.id('r'), 65536, 'x', pg_temp.art('inline')$$]) AS args;
SELECT is(pg_temp.said(), 'nothing', '6.1 a refused call appends no message');

-- ---------------------------------------------------------------------------
-- The states of the run, and the 25 minutes after an exception
-- ---------------------------------------------------------------------------

SELECT pg_temp.resolved('s-' || r, r, '{"$deadline": "2 hours", "$expires": "3 hours", "retries": 0}')
FROM unnest('{completed,failed,canceled,malformed-payload,resource-unavailable,internal-error,worker-shutdown,intermittent-task}'::text[]) AS r;
SELECT pg_temp.refuses(pg_temp.putting('s-' || r, 'x', pg_temp.art('inline')), 'TQ409', '2.15 not after ' || r) FROM unnest('{completed,failed}'::text[]) AS r;
SELECT is(pg_temp.put('s-' || r, 'x', pg_temp.art('inline')), '{"storageType": "inline"}', '2.15 after the exception ' || r)
FROM unnest('{canceled,malformed-payload,resource-unavailable,internal-error,worker-shutdown,intermittent-task}'::text[]) AS r;
-- claim-expired, deadline-exceeded
SELECT pg_temp.running('s-claim-expired', '{"$deadline": "2 hours", "$expires": "3 hours", "retries": 0}');
SELECT pg_temp.running('s-deadline-exceeded', '{"$deadline": "10 minutes", "$expires": "3 hours"}');
SELECT pg_temp.create('unclaimed', '{"$deadline": "10 minutes", "$expires": "3 hours"}');
SELECT pg_temp.create('unstarted', '{"$deadline": "10 minutes", "$expires": "3 hours", "$deps": ["unstarted"]}');
SELECT pg_temp.create('dropped', '{"$deps": ["dropped"]}');
SELECT pg_temp.report('dropped', 'canceled');
SELECT pg_temp.create('forgotten');
SELECT pg_temp.report('forgotten', 'canceled');
SET LOCAL tq.clock_offset = '20 minutes 1 second';
SELECT pg_temp.pass();
SELECT is(pg_temp.look('s-claim-expired') || ', ' || pg_temp.look('s-deadline-exceeded'),
	'exception 0: scheduled>exception/claim-expired, exception 5: scheduled>exception/deadline-exceeded', '2.15 two that were resolved without a report');
SELECT is(pg_temp.put('s-' || r, 'x', pg_temp.art('inline')), '{"storageType": "inline"}', '2.15 after the exception ' || r)
FROM unnest('{claim-expired,deadline-exceeded}'::text[]) AS r;
SELECT pg_temp.refuses(pg_temp.putting(n, 'x', pg_temp.art('inline')), 'TQ400', '2.15 resolved but never claimed: ' || n, '%never claimed%')
FROM unnest('{unclaimed,unstarted,dropped,forgotten}'::text[]) AS n;
SET LOCAL tq.clock_offset = '24 minutes 50 seconds';
SELECT is(pg_temp.put('s-internal-error', 'y', pg_temp.art('inline')), '{"storageType": "inline"}', '2.15 less than 25 minutes later');
SET LOCAL tq.clock_offset = '25 minutes';
SELECT pg_temp.refuses(pg_temp.putting('s-internal-error', 'z', pg_temp.art('inline')), 'TQ409', '2.15 more than 25 minutes later', '%exception since%');
SELECT pg_temp.refuses(pg_temp.putting('s-internal-error', 'x', pg_temp.art('inline', '{"$expires": "2 hours"}')), 'TQ409', '2.15 nor for a repeat');
SELECT is(pg_temp.put('s-claim-expired', 'y', pg_temp.art('inline')), '{"storageType": "inline"}', '2.15 it counts from when the run was resolved');
SET LOCAL tq.clock_offset = '44 minutes 50 seconds';
SELECT is(pg_temp.put('s-claim-expired', 'z', pg_temp.art('inline')), '{"storageType": "inline"}', '2.15 less than 25 minutes after the claim expired');
SET LOCAL tq.clock_offset = '45 minutes 30 seconds';
SELECT pg_temp.refuses(pg_temp.putting('s-claim-expired', 'zz', pg_temp.art('inline')), 'TQ409', '2.15 more than 25 minutes after the claim expired');
RESET tq.clock_offset;
-- a run that was retried accepts artifacts, while the next one is running
SELECT pg_temp.resolved('retried', 'worker-shutdown');
SELECT pg_temp.put('retried', 'x', pg_temp.art('inline'), 0);
SELECT pg_temp.refuses(pg_temp.putting('retried', 'x', pg_temp.art('inline'), 1), 'TQ400', '2.15 not the retry while it is pending', '%never claimed%');
SELECT pg_temp.take('retried', 'w2');
SELECT pg_temp.put('retried', 'x', pg_temp.art('inline', '{"content": "other"}'), 1);
SELECT is(pg_temp.get('retried', 'x', 0) ->> 'content' || ' ' || (pg_temp.get('retried', 'x', 1) ->> 'content'), 'text other', '2.15 each run has its own');
SELECT pg_temp.report('retried', 'completed');
SELECT pg_temp.put('retried', 'y', pg_temp.art('inline'), 0);
SELECT pg_temp.refuses(pg_temp.putting('retried', 'y', pg_temp.art('inline'), 1), 'TQ409', '2.15 a completed run accepts none');
SELECT pg_temp.said();

-- ---------------------------------------------------------------------------
-- What is stored, returned and published, by type
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('t', '{"projectId": "my/project"}');
CREATE TEMP TABLE types (n int, storage text, details jsonb);
INSERT INTO types VALUES (1, 'blob', '{"uploadId": "upload__QAGAAAAAAAAAAA"}'), (2, 'object', '{"uploadId": "upload__QAGAAAAAAAAAAA"}'),
	(3, 'reference', '{"url": "https://example.com/x"}'), (4, 'link', '{"artifact": "target"}'),
	(5, 'error', '{"reason": "too-large-file-on-worker", "message": "it has 1 TB"}'), (6, 'inline', '{"content": "text"}');

SELECT is(pg_temp.put('t', 'public/' || storage, pg_temp.art(storage, '{"uploadId": "upload__QAGAAAAAAAAAAA"}')),
	jsonb_build_object('storageType', storage, 'name', 't/' || pg_temp.id('t') || '/0/public/' || storage, 'projectId', 'my/project',
		'uploadId', 'upload__QAGAAAAAAAAAAA', 'expires', pg_temp.iso(pg_temp.base() + interval '1 hour')), '2.15 response: ' || storage)
FROM types WHERE storage IN ('blob', 'object');
SELECT is(pg_temp.put('t', 'public/' || storage, pg_temp.art(storage)), jsonb_build_object('storageType', storage), '2.15 response: ' || storage)
FROM types WHERE storage NOT IN ('blob', 'object') ORDER BY n;
SELECT is(pg_temp.said(), 'blob public/blob, reference public/reference, link public/link, error public/error, inline public/inline',
	'D-08 messages at createArtifact');
SELECT is(to_jsonb(pg_temp.row_of('t', 'public/' || storage)) - '{task,expires}'::text[], jsonb_build_object('content_length', NULL, 'run_id', 0,
	'storage_type', CASE storage WHEN 'blob' THEN 1 WHEN 'reference' THEN 2 WHEN 'error' THEN 3 WHEN 'object' THEN 4 WHEN 'link' THEN 5 WHEN 'inline' THEN 6 END,
	'present', storage NOT IN ('blob', 'object'), 'name', 'public/' || storage,
	'content_type', CASE WHEN storage IN ('link', 'error') THEN 'application/binary' ELSE 'text/plain' END, 'details', details),
	'2.15 what is stored: ' || storage) FROM types;
SELECT is((pg_temp.row_of('t', 'public/' || storage)).expires, pg_temp.base() + interval '1 hour', '2.15 expires is stored: ' || storage) FROM types;

-- a message: whole
SELECT is(detail, jsonb_build_object('storageType', 'inline', 'name', 'public/inline', 'contentType', 'text/plain',
	'expires', pg_temp.iso(pg_temp.base() + interval '1 hour')), '6.1 the artifact of the message, and nothing more')
FROM tq_internal.message ORDER BY seq DESC LIMIT 1;
SELECT pg_temp.put('t', 'long', pg_temp.art('blob', '{"contentLength": 17}'));
SELECT is(pg_temp.keys(detail), 'contentType expires name storageType', '10.10 no contentLength in the message') FROM tq_internal.message ORDER BY seq DESC LIMIT 1;
SELECT pg_temp.said();

-- ---------------------------------------------------------------------------
-- createArtifact: repeats
-- ---------------------------------------------------------------------------

-- the same again
SELECT is(pg_temp.put('t', 'public/' || storage, pg_temp.art(storage, CASE WHEN storage IN ('blob', 'object') THEN details ELSE '{}' END)) - '{name,projectId,uploadId,expires}'::text[],
	jsonb_build_object('storageType', storage), '2.15 the same again: ' || storage) FROM types ORDER BY n;
SELECT is(pg_temp.said(), 'blob public/blob, reference public/reference, link public/link, error public/error, inline public/inline',
	'2.15 a repeat appends its message again');
CREATE FUNCTION pg_temp.same_row(call text, name text, description text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	before tid;
	same bool;
BEGIN
	SELECT ctid INTO before FROM tq_internal.artifact a WHERE a.name = same_row.name;
	EXECUTE call;
	SELECT ctid = before INTO same FROM tq_internal.artifact a WHERE a.name = same_row.name;
	RETURN NEXT ok(same, description);
END
$$;
SELECT pg_temp.same_row(pg_temp.putting('t', 'public/' || storage, pg_temp.art(storage)), 'public/' || storage, '2.15 the same again writes nothing: ' || storage) FROM types;

-- expires may only grow
SELECT is(pg_temp.put('t', 'public/' || storage, pg_temp.art(storage, '{"$expires": "2 hours"}')) ->> 'storageType', storage, '2.15 a later expires: ' || storage) FROM types;
SELECT is((pg_temp.row_of('t', 'public/' || storage)).expires, pg_temp.base() + interval '2 hours', '2.15 and it is stored: ' || storage) FROM types;
SELECT pg_temp.said();
SELECT pg_temp.refuses(pg_temp.putting('t', 'public/' || storage, pg_temp.art(storage, '{"$expires": "1 hour 59 minutes 59.999 seconds"}')), 'TQ409',
	'2.15 an earlier expires: ' || storage, '%earlier expires%') FROM types;
-- contentType is kept, and compared unless the new one is a link
SELECT pg_temp.refuses(pg_temp.putting('t', 'public/' || storage, pg_temp.art(storage, '{"$expires": "2 hours", "contentType": "text/html"}')), 'TQ409',
	'2.15 another contentType: ' || storage, '%another contentType%') FROM types WHERE storage NOT IN ('link', 'error');
SELECT is(pg_temp.put('t', 'public/link', pg_temp.art('link', '{"$expires": "2 hours", "contentType": "text/html"}')), '{"storageType": "link"}', '2.15 another contentType of a link');
SELECT is((pg_temp.row_of('t', 'public/link')).content_type, 'application/binary', '2.15 but the first is kept');
SELECT is(detail ->> 'contentType', 'application/binary', '2.15 and is in the message') FROM tq_internal.message ORDER BY seq DESC LIMIT 1;
-- details
SELECT pg_temp.refuses(pg_temp.putting('t', 'public/' || storage, pg_temp.art(storage, overrides || '{"$expires": "2 hours"}')), 'TQ409',
	'2.15 other details: ' || storage || ' ' || overrides, '%other details%')
FROM (VALUES ('blob', '{"uploadId": "other___QAGAAAAAAAAAAA"}'::jsonb), ('object', '{"uploadId": "other___QAGAAAAAAAAAAA"}'), ('link', '{"artifact": "elsewhere"}'),
	('error', '{"message": "it has 2 TB"}'), ('error', '{"reason": "file-missing-on-worker"}'), ('inline', '{"content": "other"}'), ('inline', '{"content": ["text"]}'),
	('inline', '{"content": null}')) AS v (storage, overrides);
SELECT is(pg_temp.put('t', 'public/reference', pg_temp.art('reference', '{"$expires": "2 hours", "url": "https://example.com/y"}')), '{"storageType": "reference"}', '2.15 another url');
SELECT is((pg_temp.row_of('t', 'public/reference')).details, '{"url": "https://example.com/y"}', '2.15 a reference may get another url');
SELECT pg_temp.put('t', 'json', pg_temp.art('inline', '{"content": {"a": 1.0, "b": [2]}}'));
SELECT pg_temp.same_row(pg_temp.putting('t', 'json', pg_temp.art('inline', '{"content": {"b": [2], "a": 1}}')), 'json', '2.15 the same content, in another notation');
-- contentLength
SELECT pg_temp.put('t', 'long', pg_temp.art('blob', '{"contentLength": 18, "$expires": "2 hours"}'));
SELECT is((pg_temp.row_of('t', 'long')).content_length, 17::bigint, '2.15 contentLength keeps the original value');
SELECT pg_temp.put('t', 'long', pg_temp.art('blob', '{"$expires": "2 hours"}'));
SELECT is((pg_temp.row_of('t', 'long')).content_length, 17::bigint, '2.15 also if the repeat has none');
-- types: of all pairs only reference to link
SELECT pg_temp.put('t', 'to-' || b.storage || '/' || a.storage, pg_temp.art(a.storage, '{"contentType": "application/binary"}' - CASE a.storage WHEN 'error' THEN 'contentType' ELSE '' END))
FROM types a, types b WHERE a.n <> b.n;
SELECT pg_temp.refuses(pg_temp.putting('t', 'to-' || b.storage || '/' || a.storage, pg_temp.art(b.storage, '{"contentType": "application/binary"}' - CASE b.storage WHEN 'error' THEN 'contentType' ELSE '' END)), 'TQ409',
	format('2.15 %s cannot become %s', a.storage, b.storage), '%another storageType%')
FROM types a, types b WHERE a.n <> b.n AND (a.storage, b.storage) <> ('reference', 'link');
SELECT pg_temp.put('t', 'turn', pg_temp.art('reference'));
SELECT pg_temp.said();
SELECT is(pg_temp.put('t', 'turn', pg_temp.art('link', '{"artifact": "public/inline"}')), '{"storageType": "link"}', '2.15 a reference can become a link');
SELECT is(pg_temp.said(), 'link turn', '2.15 and its message shows that');
SELECT is(jsonb_build_array(a.storage_type, a.details, a.content_type, a.present), '[5, {"artifact": "public/inline"}, "text/plain", true]', '2.15 its row') FROM pg_temp.row_of('t', 'turn') a;
SELECT pg_temp.refuses(pg_temp.putting('t', 'turn', pg_temp.art('reference')), 'TQ409', '2.15 and no reference again', '%another storageType%');
SELECT is(pg_temp.put('t', 'turn', pg_temp.art('link', '{"artifact": "public/inline"}')), '{"storageType": "link"}', '2.15 the link again');
SELECT pg_temp.refuses(pg_temp.putting('t', 'turn', pg_temp.art('link', '{"artifact": "public/error"}')), 'TQ409', '2.15 but no other', '%other details%');
-- the upload id: the first one that was given or generated
SELECT pg_temp.put('t', 'made', pg_temp.art('object')) ->> 'uploadId' AS made \gset
SELECT is(pg_temp.is_timed(:'made'), false, '2.15 an uploadId is random as a whole');
SELECT is(pg_temp.put('t', 'made', pg_temp.art('object')) ->> 'uploadId', :'made', '2.15 a repeat without uploadId keeps the first one');
SELECT is(pg_temp.put('t', 'made', pg_temp.art('object', jsonb_build_object('uploadId', :'made'))) ->> 'uploadId', :'made', '2.15 a repeat with it');
SELECT pg_temp.refuses(pg_temp.putting('t', 'made', pg_temp.art('object', '{"uploadId": "other___QAGAAAAAAAAAAA"}')), 'TQ409', '2.15 a repeat with another', '%other details%');
SELECT is(pg_temp.put('t', 'made', pg_temp.art('object', '{"$expires": "2 hours"}')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '2 hours'), '2.15 the answer has the new expires');

-- ---------------------------------------------------------------------------
-- finishArtifact
-- ---------------------------------------------------------------------------

SELECT pg_temp.said();
SELECT pg_temp.refuses(pg_temp.finish('nobody', 'x', 'upload__QAGAAAAAAAAAAA'), 'TQ404', '2.15 finish: no such task');
SELECT pg_temp.refuses(pg_temp.finish('t', 'x', 'upload__QAGAAAAAAAAAAA', 1), 'TQ404', '2.15 finish: no such run');
SELECT pg_temp.refuses(pg_temp.finish('u', 'x', 'upload__QAGAAAAAAAAAAA'), 'TQ404', '2.15 finish: no run at all');
SELECT pg_temp.refuses(pg_temp.finish('t', 'x', 'upload__QAGAAAAAAAAAAA'), 'TQ404', '2.15 finish: no such artifact');
SELECT pg_temp.refuses(pg_temp.finish('t', 'public/' || storage, 'upload__QAGAAAAAAAAAAA'), 'TQ400', '2.15 finish: not for ' || storage, '%' || storage || '%')
FROM types WHERE storage NOT IN ('blob', 'object');
SELECT pg_temp.refuses(pg_temp.finish('t', 'public/' || storage, 'other___QAGAAAAAAAAAAA'), 'TQ400', '2.15 finish: another uploadId, ' || storage, '%uploadId%')
FROM types WHERE storage IN ('blob', 'object');
SELECT pg_temp.refuses(format('SELECT tq.finish_artifact(%s)', args), 'TQ400', '2.15 finish: bad argument ' || args) FROM unnest(ARRAY[
	$$NULL, 0, 'x', tq.slugid()$$, $$pg_temp.id('t'), NULL, 'x', tq.slugid()$$, $$pg_temp.id('t'), 0, NULL, tq.slugid()$$,
	$$pg_temp.id('t'), 0, 'x', NULL$$, $$pg_temp.id('t'), -1, 'x', tq.slugid()$$, $$pg_temp.id('t'), 0, 'x', tq.slugid(), '{}'$$]) AS args;
SELECT is(pg_temp.said(), 'nothing', '6.1 a refused call appends no message');
SELECT pg_temp.refuses(pg_temp.getting('t', 'public/' || storage), 'TQ404', '2.15 not present before it is finished: ' || storage, '%not been finished%')
FROM types WHERE storage IN ('blob', 'object');
SELECT tq.finish_artifact(pg_temp.id('t'), 0, 'public/object', 'upload__QAGAAAAAAAAAAA');
SELECT is(pg_temp.said(), 'object public/object', 'D-08 an object is published when it is finished');
SELECT tq.finish_artifact(pg_temp.id('t'), 0, 'public/blob', 'upload__QAGAAAAAAAAAAA');
SELECT is(pg_temp.said(), 'nothing', 'D-08 a blob was published when it was created');
SELECT is(jsonb_build_array(a.present, a.details), '[true, {"uploadId": "upload__QAGAAAAAAAAAAA"}]', '2.15 finished: ' || storage)
FROM types, pg_temp.row_of('t', 'public/' || storage) a WHERE storage IN ('blob', 'object');
SELECT pg_temp.same_row(pg_temp.finish('t', 'public/' || storage, 'upload__QAGAAAAAAAAAAA'), 'public/' || storage, '2.15 finished again, nothing is written: ' || storage)
FROM types WHERE storage IN ('blob', 'object');
SELECT is(pg_temp.said(), 'object public/object', '2.15 finished again, it is published again');
SELECT tq.finish_artifact(pg_temp.id('t'), 0, 'public/object', 'other___QAGAAAAAAAAAAA');
SELECT is(pg_temp.said(), 'object public/object', '2.15 the check for presence comes before that of uploadId');
SELECT pg_temp.put('t', 'public/' || storage, pg_temp.art(storage, '{"$expires": "3 hours"}')) FROM types WHERE storage IN ('blob', 'object') ORDER BY n;
SELECT is(pg_temp.said(), 'blob public/blob', 'D-08 created again after it is finished');
SELECT is(jsonb_build_array(a.present, a.expires), jsonb_build_array(true, pg_temp.base() + interval '3 hours'), '2.15 created again it is still present: ' || storage)
FROM types, pg_temp.row_of('t', 'public/' || storage) a WHERE storage IN ('blob', 'object');
-- in any state of the run, at any time
SELECT pg_temp.running('late');
SELECT pg_temp.put('late', 'late', pg_temp.art('object', '{"uploadId": "upload__QAGAAAAAAAAAAA"}'));
SELECT pg_temp.report('late', 'completed');
SET LOCAL tq.clock_offset = '2 hours';
SELECT tq.finish_artifact(pg_temp.id('late'), 0, 'late', 'upload__QAGAAAAAAAAAAA');
SELECT is(pg_temp.said(), 'object late', '2.15 the state of the run does not matter');
SELECT ok((pg_temp.row_of('late', 'late')).present, '2.15 nor that the artifact has expired');
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- getArtifact, getLatestArtifact
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.get('t', 'public/' || storage), jsonb_build_object('storageType', storage, 'name', 't/' || pg_temp.id('t') || '/0/public/' || storage, 'uploadId', 'upload__QAGAAAAAAAAAAA'),
	'2.15 get: ' || storage) FROM types WHERE storage IN ('blob', 'object');
SELECT is(pg_temp.get('t', 'public/reference'), '{"storageType": "reference", "url": "https://example.com/y"}', '2.15 get: reference');
SELECT is(pg_temp.get('t', 'public/inline'), '{"storageType": "inline", "contentType": "text/plain", "content": "text"}', '2.15 get: inline');
SELECT is(pg_temp.get('t', 'json'), '{"storageType": "inline", "contentType": "text/plain", "content": {"a": 1.0, "b": [2]}}', '2.15 get: inline JSON');
SELECT is(pg_temp.get('t', 'turn'), pg_temp.get('t', 'public/inline'), '2.15 a link is followed');
SELECT pg_temp.refuses(pg_temp.getting('t', 'public/error'), 'TQ424', '2.15 error: 424', '%too-large-file-on-worker: it has 1 TB');
SELECT pg_temp.refuses(pg_temp.getting('nobody', 'x'), 'TQ404', '2.15 get: no such task');
SELECT pg_temp.refuses(pg_temp.getting('t', 'x', 1), 'TQ404', '2.15 get: no such run');
SELECT pg_temp.refuses(pg_temp.getting('u', 'x'), 'TQ404', '2.15 get: no run at all');
SELECT pg_temp.refuses(pg_temp.getting('t', 'x'), 'TQ404', '2.15 get: no such artifact');
SELECT pg_temp.refuses(format('SELECT tq.%s', call), 'TQ400', '2.15 bad argument: ' || call) FROM unnest(ARRAY[
	$$get_artifact(NULL, 0, 'x')$$, $$get_artifact(pg_temp.id('t'), NULL, 'x')$$, $$get_artifact(pg_temp.id('t'), 0, NULL)$$, $$get_artifact(pg_temp.id('t'), -1, 'x')$$,
	$$get_latest_artifact(NULL, 'x')$$, $$get_latest_artifact(pg_temp.id('t'), NULL)$$]) AS call;

-- links: within the run, over several hops
SELECT pg_temp.running('l');
SELECT pg_temp.put('l', name, pg_temp.art('link', jsonb_build_object('artifact', target))) FROM (VALUES
	('a', 'b'), ('b', 'c'), ('c', 'end'), ('one', 'one'), ('x', 'y'), ('y', 'x'), ('tail', 'x'), ('nowhere', 'gone'), ('unfinished', 'upload'),
	('bad', 'error'), ('worse', 'bad')) AS v (name, target);
SELECT pg_temp.put('l', 'end', pg_temp.art('reference'));
SELECT pg_temp.put('l', 'upload', pg_temp.art('object'));
SELECT pg_temp.put('l', 'error', pg_temp.art('error'));
SELECT is(pg_temp.get('l', name), '{"storageType": "reference", "url": "https://example.com/x"}', '2.15 hops from ' || name) FROM unnest('{a,b,c,end}'::text[]) AS name;
SELECT pg_temp.refuses(pg_temp.getting('l', name), 'TQ400', '2.15 a cycle: ' || name, '%' || chain || '%') FROM (VALUES
	('one', 'one -> one.'), ('x', 'x -> y -> x.'), ('y', 'y -> x -> y.'), ('tail', 'tail -> x -> y -> x.')) AS v (name, chain);
SELECT pg_temp.refuses(pg_temp.getting('l', name), code, format('2.15 a link to an unavailable artifact: %s', name), '%' || said || '%') FROM (VALUES
	('nowhere', 'TQ404', '"gone"'), ('unfinished', 'TQ404', '"upload"'), ('bad', 'TQ424', 'too-large'), ('worse', 'TQ424', '"error"')) AS v (name, code, said);
SELECT pg_temp.put('l', 'chain-' || n, pg_temp.art('link', jsonb_build_object('artifact', 'chain-' || n + 1))) FROM generate_series(1, 500) AS n;
SELECT pg_temp.refuses(pg_temp.getting('l', 'chain-1'), 'TQ404', '2.15 500 hops, into nothing', '%"chain-501"%');
SELECT pg_temp.put('l', 'chain-501', pg_temp.art('link', '{"artifact": "chain-500"}'));
SELECT ok(length(error ->> 'detail') < 1200 AND error ->> 'sqlstate' = 'TQ400', '2.15 500 hops and a cycle: the error stays short')
FROM pg_temp.error(pg_temp.getting('l', 'chain-1')) AS error;
-- not into another run
SELECT pg_temp.report('l', 'intermittent-task');
SELECT pg_temp.take('l');
SELECT pg_temp.put('l', 'a', pg_temp.art('link', '{"artifact": "end"}'), 1);
SELECT pg_temp.refuses(pg_temp.getting('l', 'a', 1), 'TQ404', '2.15 a link does not lead out of its run');
SELECT pg_temp.refuses($$SELECT tq.get_latest_artifact(pg_temp.id('l'), 'end')$$, 'TQ404', '2.15 latest: the last run only, though it is running');
SELECT pg_temp.put('l', 'end', pg_temp.art('inline', '{"content": 17}'), 1);
SELECT is(tq.get_latest_artifact(pg_temp.id('l'), 'a') ->> 'content', '17', '2.15 latest: links are followed in the last run');
SELECT pg_temp.report('l', 'worker-shutdown');
SELECT pg_temp.refuses($$SELECT tq.get_latest_artifact(pg_temp.id('l'), 'a')$$, 'TQ404', '2.15 latest: the last run, also when it is pending');
SELECT pg_temp.refuses($$SELECT tq.get_latest_artifact(pg_temp.id('nobody'), 'a')$$, 'TQ404', '2.15 latest: no such task');
SELECT pg_temp.refuses($$SELECT tq.get_latest_artifact(pg_temp.id('u'), 'a')$$, 'TQ404', '2.15 latest: no run', '%no run yet%');
SELECT is(tq.get_latest_artifact(pg_temp.id('t'), 'public/inline'), pg_temp.get('t', 'public/inline'), '2.15 latest: the only run');

-- expiry
SELECT pg_temp.running('e', '{"$deadline": "1 hour", "$expires": "1 day"}');
SELECT pg_temp.put('e', 'soon-' || storage, pg_temp.art(storage, '{"$expires": "10 minutes"}')) FROM types WHERE storage IN ('inline', 'error', 'reference');
SELECT pg_temp.put('e', 'soon-object', pg_temp.art('object', '{"$expires": "10 minutes"}'));
SELECT pg_temp.put('e', 'late-to-soon', pg_temp.art('link', '{"artifact": "soon-inline"}'));
SELECT pg_temp.put('e', 'soon-to-late', pg_temp.art('link', '{"artifact": "late", "$expires": "10 minutes"}'));
SELECT pg_temp.put('e', 'late', pg_temp.art('inline'));
SET LOCAL tq.clock_offset = '9 minutes 50 seconds';
SELECT is(pg_temp.get('e', name) ->> 'content', 'text', '2.15 before it expires: ' || name) FROM unnest('{soon-inline,late-to-soon,soon-to-late}'::text[]) AS name;
SET LOCAL tq.clock_offset = '10 minutes 10 seconds';
SELECT pg_temp.refuses(pg_temp.getting('e', name), 'TQ410', '2.15 expired: 410, ' || name, '%expired%') FROM unnest('{soon-inline,soon-error,soon-reference,late-to-soon,soon-to-late}'::text[]) AS name;
SELECT pg_temp.refuses(pg_temp.getting('e', 'soon-object'), 'TQ404', '2.15 not present comes before expired');
SELECT is(pg_temp.get('e', 'late') ->> 'content', 'text', '2.15 not yet expired');
SELECT is(tq.artifact_info(pg_temp.id('e'), 0, 'soon-inline') ->> 'name', 'soon-inline', '2.15 artifactInfo does not look at expiry');
SELECT is((SELECT count(*) FROM tq.list_artifacts(pg_temp.id('e'), 0)), 7::bigint, '2.15 nor does listArtifacts');
SELECT pg_temp.put('e', 'soon-inline', pg_temp.art('inline', '{"$expires": "20 minutes"}'));
SELECT is(pg_temp.get('e', 'late-to-soon') ->> 'content', 'text', '2.15 expired, and prolonged by a repeat');
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- artifactInfo, listArtifacts and their counterparts for the last run
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('i');
SELECT pg_temp.put('i', name, pg_temp.art('inline')) FROM unnest(ARRAY['b', 'B', 'a', 'a/b', 'a b', '~', ' ', '_', 'ab', 'Z']) AS name;
SELECT pg_temp.put('i', 'up', pg_temp.art('object', '{"contentLength": 17}')) ->> 'uploadId' AS up \gset
SELECT is(to_jsonb(r) - 'expires', '{"run_id": 0, "name": "up", "storage_type": "object", "content_type": "text/plain", "content_length": 17, "present": false}', '2.15 a row of listArtifacts')
FROM tq.list_artifacts(pg_temp.id('i'), 0) AS r WHERE name = 'up';
SELECT is(expires, pg_temp.base() + interval '1 hour', '2.15 expires of listArtifacts') FROM tq.list_artifacts(pg_temp.id('i'), 0) WHERE name = 'up';
SELECT pg_temp.refuses($$SELECT tq.artifact_info(pg_temp.id('i'), 0, 'up')$$, 'TQ404', '2.15 artifactInfo: not present');
SELECT tq.finish_artifact(pg_temp.id('i'), 0, 'up', :'up');
SELECT is(tq.artifact_info(pg_temp.id('i'), 0, 'up'), jsonb_build_object('name', 'up', 'storageType', 'object', 'contentType', 'text/plain', 'contentLength', 17, 'expires', pg_temp.iso(pg_temp.base() + interval '1 hour')), '2.15 artifactInfo: these keys and no others');
SELECT is(tq.artifact_info(pg_temp.id('i'), 0, 'a') ? 'contentLength', false, '2.15 artifactInfo: contentLength only where it was given');
SELECT is(tq.latest_artifact_info(pg_temp.id('i'), 'up'), tq.artifact_info(pg_temp.id('i'), 0, 'up'), '2.15 latestArtifactInfo');
SELECT is(tq.artifact_info(pg_temp.id('t'), 0, 'public/' || storage) ->> 'storageType', storage, '2.15 artifactInfo: of type ' || storage) FROM types;
SELECT pg_temp.refuses(format('SELECT tq.%s', call), 'TQ404', '2.15 ' || call) FROM unnest(ARRAY[
	$$artifact_info(pg_temp.id('nobody'), 0, 'x')$$, $$artifact_info(pg_temp.id('i'), 1, 'up')$$, $$artifact_info(pg_temp.id('i'), 0, 'x')$$, $$artifact_info(pg_temp.id('u'), 0, 'x')$$,
	$$latest_artifact_info(pg_temp.id('nobody'), 'x')$$, $$latest_artifact_info(pg_temp.id('i'), 'x')$$, $$latest_artifact_info(pg_temp.id('u'), 'x')$$,
	$$list_artifacts(pg_temp.id('nobody'), 0)$$, $$list_artifacts(pg_temp.id('i'), 1)$$, $$list_artifacts(pg_temp.id('u'), 0)$$,
	$$list_latest_artifacts(pg_temp.id('nobody'))$$, $$list_latest_artifacts(pg_temp.id('u'))$$]) AS call;
SELECT pg_temp.refuses(format('SELECT tq.%s', call), 'TQ400', '2.15 bad argument: ' || call) FROM unnest(ARRAY[
	$$artifact_info(NULL, 0, 'x')$$, $$artifact_info(pg_temp.id('i'), NULL, 'x')$$, $$artifact_info(pg_temp.id('i'), 0, NULL)$$, $$artifact_info(pg_temp.id('i'), -1, 'x')$$,
	$$latest_artifact_info(NULL, 'x')$$, $$latest_artifact_info(pg_temp.id('i'), NULL)$$,
	$$list_artifacts(NULL, 0)$$, $$list_artifacts(pg_temp.id('i'), NULL)$$, $$list_artifacts(pg_temp.id('i'), -1)$$, $$list_artifacts(pg_temp.id('i'), 0, max => 0)$$,
	$$list_artifacts(pg_temp.id('i'), 0, max => 1001)$$, $$list_artifacts(pg_temp.id('i'), 0, max => NULL)$$,
	$$list_latest_artifacts(NULL)$$, $$list_latest_artifacts(pg_temp.id('i'), max => 0)$$]) AS call;
-- order and pages
CREATE FUNCTION pg_temp.page(after text, max int) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(name, '|' ORDER BY ordinality) FROM tq.list_artifacts(pg_temp.id('i'), 0, after, max)
		WITH ORDINALITY AS l
$$;
SELECT is(pg_temp.page(NULL, 1000), ' |B|Z|_|a|a b|a/b|ab|b|up|~', '2.15 by name, byte by byte');
SELECT is(pg_temp.page(NULL, 3), ' |B|Z', '2.15 the first page');
SELECT is(pg_temp.page('Z', 3), '_|a|a b', '2.15 the next page');
SELECT is(pg_temp.page('a b', 5), 'a/b|ab|b|up|~', '2.15 the last page');
SELECT is(pg_temp.page('~', 5), NULL, '2.15 after the last');
SELECT is(pg_temp.page('', 1), ' ', '2.15 after an empty name');
SELECT is(pg_temp.page('aa', 1), 'ab', '2.15 after a name that does not exist');
SELECT is(pg_temp.page('ä', 1), NULL, '2.15 after an invalid name');
SELECT is(array_agg(l), (SELECT array_agg(r) FROM tq.list_artifacts(pg_temp.id('i'), 0, 'Z', 4) AS r), '2.15 listLatestArtifacts') FROM tq.list_latest_artifacts(pg_temp.id('i'), 'Z', 4) AS l;
SELECT pg_temp.report('i', 'worker-shutdown');
SELECT is((SELECT count(*) FROM tq.list_latest_artifacts(pg_temp.id('i'))), 0::bigint, '2.15 the last run is pending and has none');
SELECT is((SELECT count(*) FROM tq.list_artifacts(pg_temp.id('i'), 0)), 11::bigint, '2.15 those of the first are there');
SELECT pg_temp.refuses($$SELECT tq.latest_artifact_info(pg_temp.id('i'), 'up')$$, 'TQ404', '2.15 latestArtifactInfo: the last run only');

-- ---------------------------------------------------------------------------
-- 8.4: expired artifacts are deleted, half an hour later, or with its task
-- ---------------------------------------------------------------------------

-- (Artifacts have no timer of their own; they are deleted once an hour.)
SELECT pg_temp.running('d', '{"$deadline": "100 minutes", "$expires": "110 minutes"}');
SELECT pg_temp.put('d', expires, pg_temp.art('inline', jsonb_build_object('$expires', expires))) FROM unnest('{40 minutes,60 minutes,110 minutes}'::text[]) AS expires;
SELECT id AS inner_id FROM tq_internal.task WHERE task_id = pg_temp.id('d') \gset
SET LOCAL tq.clock_offset = '85 minutes';
SELECT pg_temp.pass();
SELECT is((SELECT string_agg(name, ', ') FROM tq.list_artifacts(pg_temp.id('d'), 0)), '110 minutes, 60 minutes', '8.4 deleted half an hour after it expired, not before');
SELECT pg_temp.refuses(pg_temp.getting('d', '40 minutes'), 'TQ404', '8.4 once deleted: 404');
SELECT pg_temp.refuses(pg_temp.getting('d', '60 minutes'), 'TQ410', '8.4 before it is deleted: 410');
SET LOCAL tq.clock_offset = '140 minutes 30 seconds';
SELECT pg_temp.pass();
SELECT is((SELECT count(*) FROM tq_internal.task WHERE id = :inner_id), 0::bigint, '8.4 the task is deleted');
SELECT is((SELECT count(*) FROM tq_internal.artifact WHERE task = :inner_id), 0::bigint, '8.4 and its artifacts with it');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
