-- doc/spec/taskcluster.md 2.8: claimWork.  The order of claims is 5.1; quarantine
-- 5.5.
BEGIN;
\ir helper.psql

-- Shape
SELECT is(count(*), 0::bigint, '2.8 an unknown queue has no tasks') FROM tq.claim_work('test/unknown', 'wg', 'w1');
SELECT pg_temp.create('a', '{"taskQueueId": "test/q", "payload": {"do": ["this", 1]}}');
CREATE TEMP TABLE claimed AS SELECT * FROM tq.claim_work('test/q', 'wg', 'w1');
SELECT is((SELECT string_agg(attname || ' ' || atttypid::regtype, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'claimed'::regclass AND attnum > 0),
	'task_id tq.slugid, run_id integer, worker_group text, worker_id text, taken_until timestamp with time zone, payload jsonb, credentials jsonb, task jsonb, status jsonb', '2.8 columns of a claim');
SELECT is(count(*), 1::bigint, '2.8 one task by default') FROM claimed;
SELECT is(task_id::text, pg_temp.id('a')::text, '2.8 the task') FROM claimed;
SELECT is(run_id || ' ' || worker_group || ' ' || worker_id, '0 wg w1', '2.8 the run and the worker') FROM claimed;
SELECT is(payload, '{"do": ["this", 1]}', '2.8 the payload') FROM claimed;

-- A worker that is not named is that of the session.
CREATE FUNCTION pg_temp.named(claim text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM pg_temp.create('named ' || claim || current_setting('application_name'), '{"taskQueueId": "test/named"}');
	EXECUTE 'SELECT worker_group || '' '' || worker_id FROM ' || replace(claim, 'ID', quote_literal(pg_temp.id('named ' || claim || current_setting('application_name')))) INTO answer;
	RETURN answer;
END $$;
SET application_name = 'my app, %"/1';
SELECT ok(pg_temp.named(claim) ~ '^my-app-----1 local-[0-9]+$', '2.8 the name of the application, and the process: ' || claim)
FROM unnest(ARRAY['tq.claim_work(''test/named'')', 'tq.claim_work(''{test/named}''::text[])', 'tq.claim_task(ID, 0)', 'tq.resolve_and_claim(''[]'', ''test/named'')']) AS claim;
SET application_name = '';
SELECT ok(pg_temp.named('tq.claim_work(''test/named'')') ~ ('^' || regexp_replace(session_user, '[^a-zA-Z0-9._-]', '-', 'g') || ' local-[0-9]+$'), '2.8 or the role');
SET application_name = 'app';
SELECT is(pg_temp.named('tq.claim_work(''test/named'', worker_id => ''w'')'), 'app w', '2.8 a group alone');
SELECT ok(pg_temp.named('tq.claim_work(''test/named'', ''g'')') ~ '^g local-[0-9]+$', '2.8 an id alone');
SELECT is(pg_temp.named('tq.claim_work(''test/named'')'), pg_temp.named('tq.claim_task(ID, 0)'), '2.8 one worker in all calls');
RESET application_name;

SELECT is(credentials, NULL, '5.7 no credentials for a role that needs none') FROM claimed;
SELECT is(pg_temp.iso(taken_until), pg_temp.run('a') ->> 'takenUntil', '5.2 takenUntil of the answer is the run''s') FROM claimed;
SELECT is(taken_until, date_trunc('milliseconds', taken_until), '3.6 in whole milliseconds') FROM claimed;
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '2.8 the run is running');
SELECT is((SELECT count(*) FROM tq_internal.pending), 0::bigint, '2.8 no row of it is pending any more');
SELECT is(count(*), 0::bigint, '2.8 an empty queue gives no rows') FROM tq.claim_work('test/q', 'wg', 'w1');

-- How many
SELECT pg_temp.create('t' || n, '{"taskQueueId": "test/q"}') FROM generate_series(1, 7) AS n;
SELECT is(pg_temp.claims('test/q', 2), 't1 t2', '2.8 as many as asked');
SELECT is(pg_temp.claims('test/q', 2), 't3 t4', '2.8 a repeat claims further tasks');
SELECT is(pg_temp.claims('test/q', 1000), 't5 t6 t7', '2.8 fewer, if there are no more');
SELECT is(count(DISTINCT tq.status(pg_temp.id(n)) #>> '{runs,0,takenUntil}'), 1::bigint, '2.8 one call, one takenUntil') FROM unnest('{t5,t6,t7}'::text[]) AS n;
SELECT pg_temp.create('last', '{"taskQueueId": "test/q"}');
SELECT pg_temp.throws(format($$SELECT tq.claim_work('test/q', 'wg', 'w1', %s)$$, n), 'TQ400', '2.8 tasks refused: ' || n) FROM unnest('{0,-1,1001}'::int[]) AS n;
SELECT is(pg_temp.claims('test/q', 1), 'last', '2.8 a refused call has claimed nothing');

-- Only what is of that queue and pending
SELECT pg_temp.create('q1', '{"taskQueueId": "test/one"}');
SELECT pg_temp.create('q2', '{"taskQueueId": "test/two"}');
SELECT pg_temp.create('q3', '{"taskQueueId": "test-two/one"}');
SELECT pg_temp.create('un', '{"taskQueueId": "test/one", "$deps": ["un"]}');
SELECT pg_temp.create('ca', '{"taskQueueId": "test/one"}');
SELECT pg_temp.report('ca', 'canceled');
SELECT is(pg_temp.claims('test/one'), 'q1', '2.8 only pending tasks of that queue');
SELECT is(pg_temp.claims('test/one'), '', '2.8 and each but once');
SELECT is(pg_temp.claims('test-two/one'), 'q3', '2.8 queues differ by provisionerId');
SELECT is(pg_temp.claims('test/two'), 'q2', '2.8 and by workerType');

-- tq.claim_timeout
SET tq.claim_timeout = '90s';
SELECT pg_temp.create('ct', '{"taskQueueId": "test/ct"}');
SELECT pg_temp.claims('test/ct');
SELECT is((r ->> 'takenUntil')::timestamptz - (r ->> 'started')::timestamptz, interval '90 seconds', '5.2 takenUntil is now and tq.claim_timeout') FROM pg_temp.run('ct') AS r;
RESET tq.claim_timeout;

-- claim_for wins over the setting, the queue and the policy, in each call that claims.
CREATE FUNCTION pg_temp.lasts(claim text, definition text DEFAULT '{}') RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
	of_task tq.slugid := pg_temp.id('lasts ' || claim || definition);
BEGIN
	PERFORM pg_temp.create('lasts ' || claim || definition, '{"taskQueueId": "test/for"}'::jsonb || definition::jsonb);
	EXECUTE 'SELECT 1 FROM ' || replace(claim, 'ID', quote_literal(of_task));
	RETURN (SELECT (r ->> 'takenUntil')::timestamptz - (r ->> 'started')::timestamptz FROM pg_temp.run('lasts ' || claim || definition) AS r);
END $$;
SELECT tq.set_queue('test/for', '{"claimTimeout": "7 min"}');
SELECT is(pg_temp.lasts(claim || ', claim_for => ''90 min'')'), interval '90 min', '2.8 claim_for: ' || claim)
FROM unnest(ARRAY['tq.claim_work(''test/for''', 'tq.claim_work(''{test/for}''::text[]', 'tq.claim_task(ID, 0', 'tq.resolve_and_claim(''[]'', ''test/for''']) AS claim;
SELECT is(pg_temp.lasts('tq.claim_work(''test/for'', claim_for => NULL)'), interval '7 min', '2.8 claim_for NULL: as the queue says');
SELECT is(pg_temp.lasts('tq.claim_work(''test/for'', claim_for => ''1 s'')', '{"policy": {"claimTimeout": 9}}'), interval '1 s', '2.8 claim_for wins over the policy');
SELECT is(pg_temp.lasts('tq.claim_work(''test/for'', claim_for => ''2147483647 s'')'), interval '2147483647 s', '2.8 the longest');
SELECT is(pg_temp.lasts('tq.claim_work(''test/for'', claim_for => ''0.001 s'')'), interval '0.001 s', '2.8 the shortest');
SELECT pg_temp.throws(format('SELECT tq.claim_work(''test/for'', claim_for => %L)', f), 'TQ400', '2.8 claim_for refused: ' || f) FROM unnest('{0,-1 s,2147483648 s,0.0009 s}'::text[]) AS f;

-- definition
SELECT pg_temp.create(n, '{"taskQueueId": "test/def", "payload": {"x": 1}, "tags": {"k": "v"}, "scopes": ["s:x"], "metadata": {"name": "n", "description": "d", "owner": "o@x", "source": "https://x/"}}')
FROM unnest('{def1,def2,def3,def4,def5}'::text[]) AS n;
SELECT is((SELECT array_agg(jsonb_build_array(c.task, c.status) = jsonb_build_array(tq.task(c.task_id), tq.status(c.task_id))) FROM tq.claim_work('test/def', 'wg', 'w1', 2, definition => true) AS c),
	'{t,t}', '2.8 definition: the task and the status of each, as task() and status() return them');
SELECT is((SELECT jsonb_build_array(c.task, c.status) FROM tq.claim_work('{test/def,test/none}'::text[], 'wg', 'w1', definition => true) AS c),
	jsonb_build_array(tq.task(pg_temp.id('def3')), tq.status(pg_temp.id('def3'))), '2.8 definition of a claim from several queues');
SELECT is((SELECT jsonb_build_array(c.task, c.status) FROM tq.claim_task(pg_temp.id('def4'), 0, 'wg', 'w1', definition => true) AS c),
	jsonb_build_array(tq.task(pg_temp.id('def4')), tq.status(pg_temp.id('def4'))), '2.9 definition of claim_task()');
SELECT is((SELECT jsonb_agg(jsonb_build_array(c.outcome, c.task, c.status) ORDER BY c.outcome)
		FROM tq.resolve_and_claim(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('def1'), 'runId', 0)), 'test/def', 'wg', 'w1', definition => true) AS c),
	jsonb_build_array(jsonb_build_array('claimed', tq.task(pg_temp.id('def5')), tq.status(pg_temp.id('def5'))), '["resolved", null, null]'::jsonb), '2.12 definition of resolve_and_claim()');
SELECT is((SELECT count(*) FROM tq.claim_work('test/def', 'wg', 'w1', 9, definition => true)), 0::bigint, '2.8 definition: no row if there is none');
SELECT is((SELECT jsonb_build_array(task, status) FROM tq.reclaim_task(pg_temp.id('def2'), 0)), '[null, null]', '2.10 a reclaim has none');
SELECT pg_temp.create('undef', '{"taskQueueId": "test/def"}');
SELECT is((SELECT jsonb_build_array(task, status) FROM tq.claim_work('test/def', 'wg', 'w1')), '[null, null]', '2.8 no definition, unless it is asked for');
SELECT pg_temp.throws('SELECT tq.claim_work(''test/def'', definition => NULL)', 'TQ400', '2.8 definition NULL is refused');

-- A role that may work on the queue, and no more, gets the definition, and reads the task and what it needs.
CREATE ROLE claimer;
SELECT tq.grant_queue('claimer', 'test/mine', 'work') \g /dev/null
SELECT pg_temp.create('need', '{"taskQueueId": "test/mine"}');
SELECT pg_temp.create('foreign', '{"taskQueueId": "test/foreign"}');
SELECT pg_temp.create('mine', '{"taskQueueId": "test/mine", "$deps": ["need", "foreign"]}');
SELECT pg_temp.take(n) FROM unnest('{need,foreign}'::text[]) AS n;
SELECT tq.report_completed(pg_temp.id(n), 0, '"r"') FROM unnest('{need,foreign}'::text[]) AS n \g /dev/null
SET LOCAL ROLE claimer;
SELECT is((SELECT jsonb_build_array(c.task, c.status) FROM tq.claim_work('test/mine', definition => true) AS c), jsonb_build_array(tq.task(pg_temp.id('mine')), tq.status(pg_temp.id('mine'))),
	'2.8 definition for a role that may work only');
SELECT is((SELECT array_agg(d::text) FROM tq.dependency_results(pg_temp.id('mine')) AS d), ARRAY[format('(%s,completed,"""r""")', pg_temp.id('need')), format('(%s,missing,)', pg_temp.id('foreign'))],
	'2.13 and the results that it needs, of tasks that it may see');
RESET ROLE;

-- A claim that is rolled back leaves the task pending
SELECT pg_temp.create('rb', '{"taskQueueId": "test/rb"}');
SAVEPOINT s;
SELECT is(pg_temp.claims('test/rb'), 'rb', '10.13 a claim in a savepoint');
ROLLBACK TO SAVEPOINT s;
SELECT is(pg_temp.look('rb'), 'pending 5: scheduled>pending', '10.13 is rolled back with it');
SELECT is(pg_temp.claims('test/rb', 1, 'w2'), 'rb', '10.13 and can be claimed by another');

SELECT * FROM finish();
ROLLBACK;
