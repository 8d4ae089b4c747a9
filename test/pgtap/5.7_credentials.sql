-- doc/spec/taskcluster.md 5.7: credentials of claims.
BEGIN;
\ir helper.psql
SET tq.credentials = on;

-- ---------------------------------------------------------------------------
-- What they are
-- ---------------------------------------------------------------------------

-- Claims, by the name of the task and what claimed them.
CREATE TEMP TABLE claimed (name text, run_id int, worker_id text, taken_until timestamptz, credentials jsonb);
CREATE FUNCTION pg_temp.claim(name text, worker text DEFAULT 'w1') RETURNS jsonb
LANGUAGE sql AS $$
	INSERT INTO claimed
	SELECT name, run_id, worker_id, taken_until, credentials FROM tq.claim_work('test/q-' || name, 'wg', worker)
	RETURNING credentials
$$;
CREATE FUNCTION pg_temp.of(name text, worker text DEFAULT 'w1') RETURNS jsonb
LANGUAGE sql AS $$
	SELECT credentials FROM claimed AS c WHERE c.name = of.name AND c.worker_id = of.worker ORDER BY run_id DESC LIMIT 1
$$;
CREATE FUNCTION pg_temp.certificate(credentials jsonb) RETURNS jsonb
LANGUAGE sql AS $$ SELECT (credentials ->> 'certificate')::jsonb $$;
CREATE FUNCTION pg_temp.ms(t timestamptz) RETURNS bigint
LANGUAGE sql AS $$ SELECT floor(extract(epoch FROM date_trunc('milliseconds', t)) * 1000)::bigint $$;

-- The outcome of a call that is rolled back.
CREATE FUNCTION pg_temp.try(query text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	RAISE EXCEPTION USING ERRCODE = 'XX999';
EXCEPTION
	WHEN SQLSTATE 'XX999' THEN RETURN 'ok';
	WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;
-- Whether credentials are valid.
CREATE FUNCTION pg_temp.valid(credentials jsonb) RETURNS text
LANGUAGE sql AS $$ SELECT pg_temp.try(format('SELECT tq.assume(%L)', credentials)) $$;

SELECT pg_temp.create('a', '{"scopes": ["secrets:get:a/*", "say:\"quoted\" \\ /", "*"]}');
SELECT pg_temp.claim('a');
SELECT is(pg_temp.keys(credentials), 'accessToken certificate clientId', '5.7 keys') FROM claimed;
SELECT is(credentials ->> 'clientId', format('task-client/%s/0/on/wg/w1/until/%s', pg_temp.id('a'), pg_temp.ms(taken_until) / 1000), '5.7 clientId') FROM claimed;
SELECT matches(credentials ->> 'accessToken', '^[A-Za-z0-9_-]{44}$', '5.7 accessToken') FROM claimed;
SELECT is(pg_temp.keys(pg_temp.certificate(credentials)), 'expiry issuer scopes seed signature start version', '5.7 keys of the certificate') FROM claimed;
SELECT is(pg_temp.certificate(credentials) -> 'version', '1', '5.7 version') FROM claimed;
SELECT is(pg_temp.certificate(credentials) -> 'scopes', jsonb_build_array('queue:reclaim-task:' || pg_temp.id('a') || '/0', 'queue:resolve-task:' || pg_temp.id('a') || '/0',
	'queue:create-artifact:' || pg_temp.id('a') || '/0', 'secrets:get:a/*', 'say:"quoted" \ /', '*'), '5.7 scopes: those of the claim, then those of the task') FROM claimed;
SELECT is((pg_temp.certificate(credentials) ->> 'expiry')::bigint, pg_temp.ms(taken_until), '5.7 expiry is takenUntil') FROM claimed;
SELECT is(pg_temp.certificate(credentials) -> 'start', to_jsonb(pg_temp.ms((pg_temp.run('a') ->> 'started')::timestamptz)), '5.7 start is when the claim started') FROM claimed;
SELECT matches(pg_temp.certificate(credentials) ->> 'signature', '^[A-Za-z0-9+/]{43}=$', '5.7 signature') FROM claimed;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 they are valid') FROM claimed;

-- only who wants them
SELECT pg_temp.create('w'), pg_temp.create('w2');
SET tq.credentials = off;
SELECT is((SELECT credentials FROM tq.claim_work('test/q-w', 'wg', 'w1')), NULL, 'tq.credentials = off: none');
SELECT is((SELECT credentials FROM tq.reclaim_task(pg_temp.id('w'), 0)), NULL, 'off: reclaim_task');
SET tq.credentials = auto;
SELECT is((SELECT credentials FROM tq.claim_task(pg_temp.id('w2'), 0, 'wg', 'w1')), NULL, 'auto: none for a role that may do everything');
SET tq.credentials = on;
CREATE TEMP TABLE wanted AS SELECT * FROM tq.reclaim_task(pg_temp.id('w'), 0);
SELECT ok(credentials IS NOT NULL, 'on: also for a claim that had none') FROM wanted;
SET tq.credentials = auto;
SELECT ok((SELECT credentials FROM tq.reclaim_task(pg_temp.id('w'), 0, credentials => wanted.credentials)) IS NOT NULL, 'auto: a caller that gives credentials gets new ones') FROM wanted;
SET tq.credentials = off;
SELECT ok((SELECT credentials FROM tq.reclaim_task(pg_temp.id('w'), 0, credentials => wanted.credentials)) IS NULL, 'off: it gets none') FROM wanted;
SET tq.credentials = on;

-- no scopes; a batch; claim_task and its repeat; reclaim_task
SELECT pg_temp.create('b1', '{"taskQueueId": "test/q-b"}'), pg_temp.create('b2', '{"taskQueueId": "test/q-b"}'), pg_temp.create('b3', '{"taskQueueId": "test/q-b", "scopes": ["s"]}');
CREATE TEMP TABLE batch AS SELECT * FROM tq.claim_work('test/q-b', 'wg', 'w1', 3);
SELECT is(count(DISTINCT credentials ->> 'accessToken'), 3::bigint, '5.7 a batch: each claim has its own') FROM batch;
SELECT is(jsonb_array_length(pg_temp.certificate(credentials) -> 'scopes'), CASE pg_temp.name(task_id) WHEN 'b3' THEN 4 ELSE 3 END, '5.7 a batch: with the scopes of its task') FROM batch;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 a batch: valid') FROM batch;
SELECT pg_temp.create('c', '{"scopes": ["s:c"]}');
CREATE TEMP TABLE one AS SELECT * FROM tq.claim_task(pg_temp.id('c'), 0, 'wg', 'w1');
INSERT INTO one SELECT * FROM tq.claim_task(pg_temp.id('c'), 0, 'wg', 'w1');
SELECT is(count(DISTINCT credentials), 2::bigint, '5.7 claim_task, and its repeat, which gives new ones') FROM one;
SELECT is(count(DISTINCT credentials -> 'clientId'), 1::bigint, '5.7 for the same time') FROM one;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 valid, both') FROM one;
SET tq.clock_offset = '5 minutes';
CREATE TEMP TABLE later AS SELECT * FROM tq.reclaim_task(pg_temp.id('c'), 0, credentials => (SELECT credentials FROM one LIMIT 1));
SELECT is(credentials ->> 'clientId', format('task-client/%s/0/on/wg/w1/until/%s', pg_temp.id('c'), pg_temp.ms(taken_until) / 1000), '5.7 reclaim_task: clientId') FROM later;
SELECT is(pg_temp.certificate(credentials) -> 'scopes' -> 3, '"s:c"', '5.7 reclaim_task: scopes of the task') FROM later;
SELECT is((pg_temp.certificate(l.credentials) ->> 'start')::bigint - (pg_temp.certificate(o.credentials) ->> 'start')::bigint >= 300000, true, '5.7 reclaim_task: start is now') FROM later AS l, one AS o LIMIT 1;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 reclaim_task: the new ones are valid') FROM later;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 reclaim_task: the old ones remain valid') FROM one;
SET tq.clock_offset = '20 minutes 1 second';
SELECT throws_ok(format('SELECT tq.assume(%L)', credentials), 'TQ403', 'credentials are not valid', '5.7 until their own expiry') FROM one;
SELECT is(pg_temp.valid(credentials), 'ok', '5.7 when the new ones are still valid') FROM later;
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- Who takes them
-- ---------------------------------------------------------------------------

-- A call of each function that takes credentials, for task a: $c are the credentials.
CREATE TEMP TABLE call (name text, call text);
INSERT INTO call VALUES
	('reclaim_task', 'SELECT tq.reclaim_task($t, 0, credentials => $c)'),
	('report_completed', 'SELECT tq.report_completed($t, 0, credentials => $c)'),
	('report_failed', 'SELECT tq.report_failed($t, 0, credentials => $c)'),
	('report_exception', $$SELECT tq.report_exception($t, 0, 'worker-shutdown', credentials => $c)$$),
	('defer_task', $$SELECT tq.defer_task($t, 0, '1 minute', $c)$$),
	('report_progress', $$SELECT tq.report_progress($t, 0, 1, 2, credentials => $c)$$),
	('create_artifact', $$SELECT tq.create_artifact($t, 0, 'a', jsonb_build_object('storageType', 'reference', 'url', 'https://example.org', 'contentType', 'text/plain', 'expires', now() + interval '10 minutes'), $c)$$),
	('finish_artifact', $$SELECT tq.finish_artifact($t, 0, 'object', 'upload__QAGAAAAAAAAAAA', $c)$$),
	('assume', 'SELECT tq.assume($c)');
SELECT is((SELECT array_agg(name ORDER BY name COLLATE "C") FROM call),
	array_agg(proname::text ORDER BY proname COLLATE "C"), 'each function that takes credentials is here, but resolve and resolve_lines')
	FROM pg_proc WHERE pronamespace = 'tq'::regnamespace AND 'credentials' = ANY (proargnames[1:pronargs]) AND proname NOT IN ('resolve', 'resolve_lines');
CREATE FUNCTION pg_temp.call(call text, name text, credentials jsonb) RETURNS text
LANGUAGE sql AS $$ SELECT replace(replace(call, '$t', quote_literal(pg_temp.id(name))), '$c', quote_nullable(credentials) || '::jsonb') $$;
SELECT tq.create_artifact(pg_temp.id('a'), 0, 'object', jsonb_build_object('storageType', 'object', 'contentType', 'text/plain', 'expires', now() + interval '10 minutes', 'uploadId', 'upload__QAGAAAAAAAAAAA'));
SELECT is(pg_temp.try(pg_temp.call(call, 'a', pg_temp.of('a'))), 'ok', name || ': the right ones') FROM call;
SELECT is(pg_temp.try(pg_temp.call(call, 'a', NULL)), CASE name WHEN 'assume' THEN 'TQ400 credentials must not be NULL' ELSE 'ok' END, name || ': none') FROM call;

-- Credentials that are not valid
CREATE TEMP TABLE wrong (name text, credentials jsonb);
SELECT pg_temp.create('other'), pg_temp.claim('other');
INSERT INTO wrong VALUES
	('token of another claim', pg_temp.of('a') || jsonb_build_object('accessToken', pg_temp.of('other') -> 'accessToken')),
	('certificate of another claim', pg_temp.of('a') || jsonb_build_object('certificate', pg_temp.of('other') -> 'certificate')),
	('clientId of another claim', pg_temp.of('a') || jsonb_build_object('clientId', pg_temp.of('other') -> 'clientId')),
	('no token', pg_temp.of('a') || '{"accessToken": ""}'),
	('no certificate', pg_temp.of('a') || '{"certificate": ""}'),
	('a short certificate', pg_temp.of('a') || '{"certificate": "\"}"}'),
	('no clientId', pg_temp.of('a') || '{"clientId": ""}'),
	('a longer token', pg_temp.of('a') || jsonb_build_object('accessToken', (pg_temp.of('a') ->> 'accessToken') || 'A')),
	('a byte moved from one part to the next', pg_temp.of('a') || jsonb_build_object('clientId', (pg_temp.of('a') ->> 'clientId') || left(pg_temp.of('a') ->> 'accessToken', 1),
		'accessToken', substr(pg_temp.of('a') ->> 'accessToken', 2))),
	('a longer certificate', pg_temp.of('a') || jsonb_build_object('certificate', ' ' || (pg_temp.of('a') ->> 'certificate'))),
	('a certificate with a line end', pg_temp.of('a') || jsonb_build_object('certificate', (pg_temp.of('a') ->> 'certificate') || E'\n')),
	('a certificate without its end', pg_temp.of('a') || jsonb_build_object('certificate', left(pg_temp.of('a') ->> 'certificate', -1))),
	('a certificate with more scopes', pg_temp.of('a') || jsonb_build_object('certificate', replace(pg_temp.of('a') ->> 'certificate', '"scopes":[', '"scopes":["*",'))),
	('a certificate that is written again', pg_temp.of('a') || jsonb_build_object('certificate', pg_temp.certificate(pg_temp.of('a'))::text)),
	('a certificate without a signature', pg_temp.of('a') || jsonb_build_object('certificate', (pg_temp.certificate(pg_temp.of('a')) - 'signature')::text)),
	('a signature with spaces', pg_temp.of('a') || jsonb_build_object('certificate', left(pg_temp.of('a') ->> 'certificate', -46) || repeat(' ', 44) || '"}')),
	('much', pg_temp.of('a') || jsonb_build_object('certificate', repeat('{"', 100000)));
SELECT is(pg_temp.try(pg_temp.call(call, 'a', credentials)), 'TQ403 credentials are not valid', call.name || ': ' || wrong.name) FROM call, wrong;
SELECT is(pg_temp.try(pg_temp.call(call, 'a', pg_temp.of('other'))), 'TQ403 credentials are not valid', call.name || ': another task') FROM call WHERE name <> 'assume';
SELECT is(pg_temp.try(pg_temp.call(replace(call, ', 0', ', 1'), 'a', pg_temp.of('a'))), 'TQ403 credentials are not valid', call.name || ': another run') FROM call WHERE name <> 'assume';
SELECT is(pg_temp.try(pg_temp.call(call, 'nobody', pg_temp.of('a'))), 'TQ403 credentials are not valid', call.name || ': no such task') FROM call WHERE name <> 'assume';
SET tq.clock_offset = '20 minutes';
SELECT is(pg_temp.try(pg_temp.call(call, 'a', pg_temp.of('a'))), 'TQ403 credentials are not valid', call.name || ': expired') FROM call;
RESET tq.clock_offset;
-- malformed
SELECT is(pg_temp.try(pg_temp.call(call, 'a', c)), 'TQ400 invalid credentials', call.name || ': ' || left(c::text, 40)) FROM call,
	(VALUES ('{}'::jsonb), ('null'), ('"x"'), ('[]'), ('{"clientId": "x"}'), (pg_temp.of('a') || '{"more": 1}'), (pg_temp.of('a') - 'accessToken'), (pg_temp.of('a') || '{"accessToken": 1}'),
		(pg_temp.of('a') || '{"clientId": null}'), (pg_temp.of('a') || '{"certificate": {}}'), (pg_temp.of('a') - 'clientId' || '{"clientid": "x"}')) AS v (c);

-- The error says nothing about which it is
SELECT is(count(DISTINCT e - 'context'), 1::bigint, 'one error for all') FROM wrong, LATERAL pg_temp.error(format('SELECT tq.assume(%L)', credentials)) AS e;

-- Every byte, by each other value of its lowest three bits, is part of what is signed
CREATE FUNCTION pg_temp.altered(credentials jsonb, part text) RETURNS TABLE (altered int, valid int)
LANGUAGE plpgsql AS $$
DECLARE
	bytes bytea := convert_to(credentials ->> part, 'UTF8');
	byte int;
BEGIN
	altered := 0;
	valid := 0;
	FOR i IN 0 .. length(bytes) - 1 LOOP
		FOR bit IN 1 .. 7 LOOP
			byte := get_byte(bytes, i) # bit;
			CONTINUE WHEN byte > 126;
			altered := altered + 1;
			BEGIN
				PERFORM tq.assume(jsonb_set(credentials, ARRAY[part], to_jsonb(convert_from(set_byte(bytes, i, byte), 'UTF8'))));
				valid := valid + 1;
			EXCEPTION WHEN SQLSTATE 'TQ403' THEN
				NULL;
			END;
		END LOOP;
	END LOOP;
	RETURN NEXT;
END
$$;
CREATE TEMP TABLE altered AS SELECT part, a.* FROM unnest('{clientId,accessToken,certificate}'::text[]) AS part, pg_temp.altered(pg_temp.of('a'), part) AS a;
SELECT cmp_ok(altered, '>=', length(pg_temp.of('a') ->> part) * 6, part || ': bytes were altered') FROM altered;
SELECT is(valid, 0, part || ': each is refused') FROM altered;

-- ---------------------------------------------------------------------------
-- What a claim becomes
-- ---------------------------------------------------------------------------

-- resolved: still valid, so that the report can be repeated
SELECT is(tq.report_completed(pg_temp.id('other'), 0, credentials => pg_temp.of('other')) ->> 'state', 'completed', '5.7 a report');
SELECT is(tq.report_completed(pg_temp.id('other'), 0, credentials => pg_temp.of('other')) ->> 'state', 'completed', '5.7 its repeat');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('other'), 0, credentials => pg_temp.of('other'))$$, 'TQ409', '5.7 another report is a conflict');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('other'), 0, credentials => pg_temp.of('other'))$$, 'TQ409', '5.7 and to prolong the claim');
-- rerun: the new run is another one
SELECT is(tq.rerun_task(pg_temp.id('other')) ->> 'state', 'pending', '5.7 rerun');
SELECT pg_temp.claim('other');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('other'), 1, credentials => (SELECT credentials FROM claimed WHERE name = 'other' AND run_id = 0))$$, 'TQ403', '5.7 those of the run before');
SELECT is(tq.report_completed(pg_temp.id('other'), 1, credentials => pg_temp.of('other')) ->> 'state', 'completed', '5.7 those of the run');
-- expired: another worker has the next run
SELECT pg_temp.create('e', '{"$deadline": "50 minutes"}'), pg_temp.claim('e');
SELECT is(pg_temp.pass('21 minutes'), 'claim-expired 7', '5.7 claims expire');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('e'), 0, credentials => pg_temp.of('e'))$$, 'TQ403', '5.7 then credentials do, too');
RESET tq.clock_offset;
-- deferred: a worker that claims the run again does not have the credentials of the one before
SELECT pg_temp.create('d'), pg_temp.claim('d');
SELECT is(tq.defer_task(pg_temp.id('d'), 0, '0', pg_temp.of('d')) ->> 'state', 'pending', '5.7 defer_task');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('d'), 0, credentials => pg_temp.of('d'))$$, 'TQ403', '5.7 a run that is pending again');
SELECT pg_temp.claim('d', 'w2');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('d'), 0, credentials => pg_temp.of('d'))$$, 'TQ403', '5.7 a run that another worker has');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('d'), 0, credentials => pg_temp.of('d', 'w2'))$$, '5.7 that worker has its own');
-- rolled back: the claim was never made
CREATE FUNCTION pg_temp.lost(query text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
	credentials jsonb;
BEGIN
	EXECUTE query INTO credentials;
	RAISE EXCEPTION USING ERRCODE = 'XX999';
EXCEPTION WHEN SQLSTATE 'XX999' THEN RETURN credentials;
END
$$;
SELECT pg_temp.create('r');
CREATE TEMP TABLE lost AS SELECT pg_temp.lost($$SELECT pg_temp.claim('r')$$) AS credentials;
SELECT is(pg_temp.state('r'), 'pending', '5.7 a claim is rolled back');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('r'), 0, credentials => credentials) FROM lost$$, 'TQ403', '5.7 then its credentials are not valid');
SET tq.clock_offset = '1 second';
SELECT pg_temp.claim('r');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('r'), 0, credentials => credentials) FROM lost$$, 'TQ403', '5.7 also when the same worker has the run later');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('r'), 0, credentials => pg_temp.of('r'))$$, '5.7 by other credentials');
-- prolonged, and that was rolled back: the credentials are for longer than the claim
SET tq.clock_offset = '10 minutes';
UPDATE lost SET credentials = pg_temp.lost($$SELECT (tq.reclaim_task(pg_temp.id('r'), 0)).credentials$$);
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('r'), 0, credentials => credentials) FROM lost$$, 'TQ403', '5.7 a reclaim that was rolled back');
RESET tq.clock_offset;
-- the task is deleted
SELECT pg_temp.create('x'), pg_temp.claim('x');
SELECT tq.delete_task(pg_temp.id('x'));
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('x'), 0, credentials => pg_temp.of('x'))$$, 'TQ403', '5.7 a task that was deleted');

-- resolve: an outcome for each run
SELECT pg_temp.create('m1', '{"taskQueueId": "test/q-m"}'), pg_temp.create('m2', '{"taskQueueId": "test/q-m"}'), pg_temp.create('m3', '{"taskQueueId": "test/q-m"}');
CREATE TEMP TABLE many AS SELECT * FROM tq.claim_work('test/q-m', 'wg', 'w1', 3);
CREATE FUNCTION pg_temp.outcomes(credentials jsonb) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(outcome, ' ' ORDER BY ordinality) FROM tq.resolve(pg_temp.ids('m1', 'm2', 'm3'), '{0,0,0}', 'completed', credentials) WITH ORDINALITY AS r
$$;
CREATE FUNCTION pg_temp.rolled_back(credentials jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	outcomes text;
BEGIN
	outcomes := pg_temp.outcomes(credentials);
	RAISE EXCEPTION USING ERRCODE = 'XX999';
EXCEPTION WHEN SQLSTATE 'XX999' THEN RETURN outcomes;
END
$$;
CREATE FUNCTION pg_temp.many(n int) RETURNS jsonb
LANGUAGE sql AS $$ SELECT credentials FROM many WHERE task_id = pg_temp.id('m' || n) $$;
SELECT is(pg_temp.rolled_back(pg_temp.many(2)), 'forbidden resolved forbidden', 'resolve: one for all is right for one');
SELECT is(pg_temp.rolled_back(jsonb_build_array(pg_temp.many(1), pg_temp.many(2), pg_temp.many(3))), 'resolved resolved resolved', 'resolve: an array');
SELECT is(pg_temp.rolled_back(jsonb_build_array(pg_temp.many(1), pg_temp.many(3), pg_temp.many(2))), 'resolved forbidden forbidden', 'resolve: an array in the wrong order');
SELECT is(pg_temp.rolled_back(jsonb_build_array(pg_temp.many(1), NULL, pg_temp.many(3))), 'resolved resolved resolved', 'resolve: none for one');
SELECT is(pg_temp.rolled_back(credentials), 'forbidden forbidden forbidden', 'resolve: ' || name) FROM wrong;
SELECT is(pg_temp.try(format('SELECT pg_temp.outcomes(%L)', c)), 'TQ400 ' || message, 'resolve: ' || left(c::text, 40)) FROM (VALUES
	('{}'::jsonb, 'invalid credentials'), ('null', 'invalid credentials'), ('"x"', 'invalid credentials'), ('[1, 2, 3]', 'invalid credentials'), ('[{}, {}, {}]', 'invalid credentials'),
	('[]', 'credentials and run_ids must be of the same length'), (jsonb_build_array(pg_temp.many(1)), 'credentials and run_ids must be of the same length')) AS v (c, message);
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('m1', 'm1', 'nobody'), '{0,1,0}', 'completed', pg_temp.many(1))), 'resolved forbidden forbidden', 'resolve: another run, no such task');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('m1', 'm2', 'm1'), '{0,0,0}', 'completed', pg_temp.many(1))), 'repeated forbidden repeated', 'resolve: repeated');
SELECT is(pg_temp.state('m2'), 'running', 'resolve: what is forbidden changes nothing');

-- ---------------------------------------------------------------------------
-- Scopes
-- ---------------------------------------------------------------------------

-- A role that may claim, and no more, gets credentials by default.
CREATE ROLE test_claimer;
SELECT tq.grant_scopes('test_claimer', '{queue:claim-work:test/*,queue:claim-task:test/*,queue:worker-id:wg/*}');
CREATE ROLE test_worker IN ROLE tq_worker;
CREATE ROLE test_queue;
SELECT tq.grant_queue('test_queue', 'test/*', 'work');
GRANT ALL ON claimed, call TO test_claimer, test_worker, test_queue;
SELECT pg_temp.create(n, '{"scopes": ["queue:status:*"]}') FROM unnest('{s1,s2,s3,s4,s5}'::text[]) AS n;
RESET tq.credentials;
SET ROLE test_worker;
SELECT is(pg_temp.claim('s1'), NULL, 'auto: none for a role that may resolve every run');
SET ROLE test_queue;
SELECT is(pg_temp.claim('s2'), NULL, 'auto: none for a role that may resolve those of the queue');
SET ROLE test_claimer;
SELECT ok(pg_temp.claim('s3') IS NOT NULL, 'auto: credentials for a role that may not');
SELECT ok((SELECT credentials FROM tq.claim_task(pg_temp.id('s4'), 0, 'wg', 'w1')) IS NOT NULL, 'auto: by claim_task, too');
SELECT is(pg_temp.try(pg_temp.call(call, 's3', NULL)) ~ '^TQ40[034]', true, name || ': not without credentials') FROM call WHERE name <> 'finish_artifact';
SELECT is(pg_temp.try(pg_temp.call(call, 's3', pg_temp.of('s3'))), 'ok', name || ': with credentials') FROM call WHERE name <> 'finish_artifact';
SELECT is(pg_temp.try(pg_temp.call(call, 's1', pg_temp.of('s3'))), 'TQ403 credentials are not valid', name || ': not for another run') FROM call WHERE name <> 'assume';
SELECT ok((SELECT credentials FROM tq.reclaim_task(pg_temp.id('s3'), 0, credentials => pg_temp.of('s3'))) IS NOT NULL, 'auto: new ones by a reclaim');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('s3', 's1'), '{0,0}')), 'not-found not-found', 'resolve: neither scopes nor credentials');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('s1', 's3'), '{0,0}', 'worker-shutdown', jsonb_build_array(NULL, pg_temp.of('s3')))), 'not-found retried', 'resolve: credentials for one run');
SELECT pg_temp.claim('s3');
-- assume
SAVEPOINT s;
SELECT tq.assume(pg_temp.of('s3'));
SELECT is(tq.current_scopes(), ARRAY['queue:create-artifact:' || pg_temp.id('s3') || '/1', 'queue:reclaim-task:' || pg_temp.id('s3') || '/1', 'queue:resolve-task:' || pg_temp.id('s3') || '/1', 'queue:status:*'],
	'assume: the scopes of the credentials');
SELECT is(pg_temp.try($$SELECT tq.claim_work('test/q-s5', 'wg', 'w1')$$) ~ '^TQ403', true, 'assume: and not those of the role');
SELECT is(tq.status(pg_temp.id('s1')) ->> 'state', 'running', 'assume: also those of the task');
SELECT ok((SELECT credentials FROM tq.reclaim_task(pg_temp.id('s3'), 1)) IS NOT NULL, 'assume: reclaim_task, with new credentials');
SELECT is(tq.report_completed(pg_temp.id('s3'), 1) ->> 'state', 'completed', 'assume: report_completed');
SELECT is(pg_temp.try($$SELECT tq.report_completed(pg_temp.id('s1'), 0)$$) ~ '^TQ403', true, 'assume: not of another run');
ROLLBACK TO s;
SELECT is(pg_temp.try($$SELECT tq.report_completed(pg_temp.id('s3'), 1)$$) ~ '^TQ404', true, 'assume: until a rollback');
SELECT is(pg_temp.try($$SELECT tq.claim_work('test/q-s5', 'wg', 'w1')$$), 'ok', 'assume: then the role has its own');
RESET ROLE;
-- credentials are no more than what they say, also for a role that may do everything
SAVEPOINT s;
SELECT tq.assume(pg_temp.of('s3'));
SELECT is(pg_temp.try('SELECT tq.rotate_secret()') ~ '^TQ403', true, 'assume: a superuser has less');
ROLLBACK TO s;
-- what a SECURITY DEFINER function assumes is not left to its caller, nor what the caller has assumed to another role
CREATE FUNCTION public.test_assume(credentials jsonb) RETURNS text[] LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM tq.assume(credentials);
	RETURN tq.current_scopes();
END $$;
SAVEPOINT s;
CREATE TEMP TABLE had AS SELECT pg_temp.of('s3') AS credentials;
GRANT SELECT ON had TO test_claimer;
SET ROLE test_claimer;
SELECT tq.current_scopes()::text AS own \gset
SELECT is(array_length(public.test_assume(credentials), 1), 4, 'assume: in a SECURITY DEFINER function') FROM had;
SELECT is(tq.current_scopes()::text, :'own', 'assume: its caller has its own scopes');
SELECT tq.assume(credentials) FROM had;
SELECT is(array_length(tq.current_scopes(), 1), 4, 'assume: by the role itself');
RESET ROLE;
SET ROLE test_queue;
SELECT is('queue:status:*' = ANY (tq.current_scopes()), false, 'assume: another role has its own');
RESET ROLE;
ROLLBACK TO s;
DROP FUNCTION public.test_assume(jsonb);
SET tq.credentials = on;

-- ---------------------------------------------------------------------------
-- The secret
-- ---------------------------------------------------------------------------

SELECT is(count(*), 1::bigint, 'one secret') FROM tq_internal.secret;
CREATE TEMP TABLE secret AS SELECT * FROM tq_internal.secret;
SELECT is(length(secret), 32, 'of 32 bytes') FROM secret;
SELECT tq.rotate_secret();
SELECT is(count(*), 2::bigint, 'rotate_secret: another secret') FROM tq_internal.secret;
SELECT isnt(n.secret, o.secret, 'rotate_secret: which differs') FROM tq_internal.secret AS n, secret AS o WHERE n.until IS NULL;
SELECT cmp_ok(until, '>=', (SELECT max(taken_until) FROM tq_internal.run WHERE state = 2), 'rotate_secret: the old one is good until the last claim has ended') FROM tq_internal.secret WHERE until IS NOT NULL;
SELECT is(pg_temp.valid(pg_temp.many(2)), 'ok', 'rotate_secret: what the old one has signed is valid');
SELECT pg_temp.create('n'), pg_temp.claim('n');
SELECT is(pg_temp.valid(pg_temp.of('n')), 'ok', 'rotate_secret: and what the new one has signed');
UPDATE tq_internal.secret SET secret = sha256('x') WHERE until IS NOT NULL;
SELECT tq.rotate_secret();
SELECT is(count(*) FILTER (WHERE until IS NULL), 1::bigint, 'rotate_secret: again') FROM tq_internal.secret;
SELECT throws_ok(format('SELECT tq.assume(%L)', pg_temp.many(2)), 'TQ403', NULL, 'the old secret has signed the old ones');
SELECT is(pg_temp.valid(pg_temp.of('n')), 'ok', 'and not the new ones');
SAVEPOINT s;
UPDATE tq_internal.secret SET until = tq_internal.clock_now();
ALTER TABLE tq_internal.secret ENABLE ROW LEVEL SECURITY;	-- it is; has the secrets read again
SELECT throws_ok(format('SELECT tq.assume(%L)', pg_temp.of('n')), 'TQ403', NULL, 'an old secret is good until its time');
SELECT throws_ok($$SELECT tq.reclaim_task(pg_temp.id('n'), 0)$$, 'XX001', NULL, 'without a secret that signs there are no credentials');
ROLLBACK TO s;
-- a claim may be longer than the setting
SELECT pg_temp.create('long', '{"policy": {"claimTimeout": "9 hours"}, "$deadline": "20 hours"}');
SELECT tq.rotate_secret();
SELECT cmp_ok(max(until), '>=', now() + interval '9 hours', 'rotate_secret: also a claim of the longest timeout') FROM tq_internal.secret;
SET tq.clock_offset = '10 hours';
SELECT tq.rotate_secret();
SELECT is(count(*), 2::bigint, 'rotate_secret: secrets that are not good any more are deleted') FROM tq_internal.secret;
RESET tq.clock_offset;
-- rolled back
CREATE TEMP TABLE kept AS SELECT * FROM tq_internal.secret;
SELECT is(pg_temp.try('SELECT tq.rotate_secret(true)'), 'ok', 'rotate_secret: rolled back');
SELECT set_eq('TABLE tq_internal.secret', 'TABLE kept', 'rotate_secret: then nothing has changed');
SELECT pg_temp.create('k'), pg_temp.claim('k');
SELECT is(pg_temp.valid(pg_temp.of('k')), 'ok', 'rotate_secret: nor what signs');
-- revoked
SELECT tq.rotate_secret(revoke => true);
SELECT is(count(*), 1::bigint, 'revoked: the old secrets are gone') FROM tq_internal.secret;
SELECT throws_ok(format('SELECT tq.assume(%L)', pg_temp.of('k')), 'TQ403', NULL, 'revoked: credentials are not valid');
SELECT lives_ok($$SELECT tq.report_completed(pg_temp.id('k'), 0)$$, 'revoked: the claim goes on');
SELECT throws_ok('SELECT tq.rotate_secret(NULL)', 'TQ400', NULL, 'rotate_secret: NULL');

-- No role reads it
CREATE ROLE test_reader IN ROLE tq_admin, pg_read_all_data, pg_monitor;
SET ROLE test_reader;
SELECT is(count(*), 0::bigint, 'a role that reads all data does not read the secret') FROM tq_internal.secret;
RESET ROLE;
SELECT is(count(*), 0::bigint, 'no role has a privilege on it') FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) AS a
	WHERE oid = 'tq_internal.secret'::regclass AND a.grantee <> relowner;
SELECT ok(NOT 'tq_internal.secret'::regclass = ANY (extconfig), 'pg_dump leaves it out') FROM pg_extension WHERE extname = 'tq';
-- no claim fails for want of a row without saying why
DELETE FROM tq_internal.secret;
SELECT tq.rotate_secret();
SELECT is(count(*), 1::bigint, 'rotate_secret: without a secret') FROM tq_internal.secret;
SELECT throws_ok(format('SELECT tq.assume(%L)', pg_temp.of('n')), 'TQ403', NULL, 'nothing is valid then');

SELECT * FROM finish();
ROLLBACK;
