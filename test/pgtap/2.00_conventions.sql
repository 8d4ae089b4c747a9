-- doc/spec/taskcluster.md 2.0: kinds of errors, their order, and their texts.
BEGIN;
\ir helper.psql

SELECT pg_temp.create('a');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.resolved('c', 'completed');

-- Every method: 404 for an unknown task
SELECT pg_temp.throws(format(query, 'pg_temp.id(''unknown'')'), 'TQ404', '2.0 unknown task: ' || split_part(query, '(', 1))
FROM unnest(ARRAY['SELECT tq.status(%s)', 'SELECT tq.task(%s)', 'SELECT tq.schedule_task(%s)', 'SELECT tq.rerun_task(%s)',
	'SELECT tq.cancel_task(%s)', 'SELECT tq.claim_task(%s, 0, ''wg'', ''w1'')', 'SELECT tq.reclaim_task(%s, 0)',
	'SELECT tq.report_completed(%s, 0)', 'SELECT tq.report_failed(%s, 0)', 'SELECT tq.report_exception(%s, 0, ''internal-error'')',
	'SELECT tq.list_dependent_tasks(%s)', 'SELECT tq.get_task_group(%s)', 'SELECT tq.list_task_group(%s)',
	'SELECT tq.seal_task_group(%s)', 'SELECT tq.cancel_task_group(%s)', 'SELECT tq.group_progress(%s)']) AS query;

-- 404 for an unknown run
SELECT pg_temp.throws(format(query, format('pg_temp.id(%L)', name), run), 'TQ404', format('2.0 unknown run %s of %s: %s', run, name, split_part(query, '(', 1)))
FROM unnest(ARRAY['SELECT tq.claim_task(%s, %s, ''wg'', ''w1'')', 'SELECT tq.reclaim_task(%s, %s)',
	'SELECT tq.report_completed(%s, %s)', 'SELECT tq.report_failed(%s, %s)', 'SELECT tq.report_exception(%s, %s, ''internal-error'')']) AS query,
	(VALUES ('a', 1), ('a', 49), ('a', 1000), ('u', 0), ('c', 1)) AS v (name, run);

-- NULL arguments
SELECT pg_temp.throws(query, 'TQ400', '2.0 an argument is NULL: ' || substr(query, 8))
FROM unnest(ARRAY['SELECT tq.status(NULL)', 'SELECT tq.task(NULL)', 'SELECT tq.schedule_task(NULL)', 'SELECT tq.rerun_task(NULL)',
	'SELECT tq.cancel_task(NULL)', 'SELECT tq.define_task(NULL, ''{}'')', 'SELECT tq.define_task(tq.slugid(), NULL)',
	'SELECT tq.create_tasks(NULL)', 'SELECT tq.enqueue(NULL)', 'SELECT tq.statuses(NULL)', 'SELECT tq.tasks(NULL)',
	'SELECT tq.claim_work(NULL, ''wg'', ''w1'')', 'SELECT tq.claim_work(''test/q'', ''wg'', ''w1'', NULL)',
	'SELECT tq.claim_task(NULL, 0, ''wg'', ''w1'')', 'SELECT tq.claim_task(pg_temp.id(''a''), NULL, ''wg'', ''w1'')',
	'SELECT tq.reclaim_task(NULL, 0)', 'SELECT tq.reclaim_task(pg_temp.id(''a''), NULL)',
	'SELECT tq.report_completed(NULL, 0)', 'SELECT tq.report_completed(pg_temp.id(''a''), NULL)',
	'SELECT tq.report_failed(NULL, 0)', 'SELECT tq.report_failed(pg_temp.id(''a''), NULL)',
	'SELECT tq.report_exception(NULL, 0, ''internal-error'')', 'SELECT tq.report_exception(pg_temp.id(''a''), NULL, ''internal-error'')',
	'SELECT tq.report_exception(pg_temp.id(''a''), 0, NULL)',
	'SELECT tq.resolve(NULL, ''{0}'')', 'SELECT tq.resolve(pg_temp.ids(''a''), NULL)', 'SELECT tq.resolve(pg_temp.ids(''a''), ''{0}'', NULL)',
	'SELECT tq.list_dependent_tasks(NULL)', 'SELECT tq.list_dependent_tasks(pg_temp.id(''a''), NULL, NULL)',
	'SELECT tq.get_task_group(NULL)', 'SELECT tq.list_task_group(NULL)', 'SELECT tq.list_task_group(pg_temp.id(''a''), NULL, NULL)',
	'SELECT tq.seal_task_group(NULL)', 'SELECT tq.cancel_task_group(NULL)', 'SELECT tq.group_progress(NULL)',
	'SELECT tq.task_queue_counts(NULL)',
	'SELECT tq.get_worker(NULL, ''wg'', ''w1'')', 'SELECT tq.get_worker(NULL, ''wg'', ''w1'')',
	'SELECT tq.get_worker(''test/q'', NULL, ''w1'')', 'SELECT tq.get_worker(''test/q'', ''wg'', NULL)',
	'SELECT tq.quarantine_worker(''test/q-c'', ''wg'', ''w1'', NULL)', 'SELECT tq.quarantine_worker(NULL, ''wg'', ''w1'', now())']) AS query;

-- Order: parameters, body, task, run, state
SELECT pg_temp.throws($$SELECT tq.report_exception(pg_temp.id('unknown'), 0, 'no-reason')$$, 'TQ400', '2.0 the body comes before the task: report_exception');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('unknown'), 0, 'w g', 'w1')$$, 'TQ400', '2.0 the body comes before the task: claim_task');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('unknown'), -1, 'wg', 'w1')$$, 'TQ400', '2.0 a run number below 0 is bad input: claim_task');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), -1)$$, 'TQ400', '2.0 a run number below 0 is bad input: report_completed');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0)$$, 'TQ409', '2.0 the state comes last');
SET tq.clock_offset = '2 hours';
SELECT pg_temp.throws(format(query, 'pg_temp.id(''unknown'')'), 'TQ404', '2.0 the task comes before its deadline: ' || split_part(query, '(', 1))
FROM unnest(ARRAY['SELECT tq.schedule_task(%s)', 'SELECT tq.rerun_task(%s)', 'SELECT tq.cancel_task(%s)', 'SELECT tq.claim_task(%s, 0, ''wg'', ''w1'')']) AS query;
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('a'), 3)$$, 'TQ404', '2.10 the run comes before the deadline: reclaim_task');
RESET tq.clock_offset;

-- Texts of errors
CREATE TEMP TABLE seen (what text, error jsonb);
INSERT INTO seen SELECT query, pg_temp.error(query) FROM unnest(ARRAY[
	'SELECT tq.status(pg_temp.id(''unknown''))',
	'SELECT tq.reclaim_task(pg_temp.id(''unknown''), 0)',
	'SELECT tq.report_completed(pg_temp.id(''unknown''), 1)',
	'SELECT tq.get_task_group(pg_temp.id(''unknown''))']) AS query;
SELECT ok((error ->> 'message') || (error ->> 'detail') LIKE '%' || pg_temp.id('unknown') || '%', '2.0 the error names the id: ' || what) FROM seen;
INSERT INTO seen SELECT query, pg_temp.error(query) FROM unnest(ARRAY[
	'SELECT tq.report_completed(pg_temp.id(''a''), 0)',
	'SELECT tq.reclaim_task(pg_temp.id(''a''), 0)',
	'SELECT tq.claim_task(pg_temp.id(''c''), 0, ''wg'', ''w1'')',
	'SELECT tq.report_failed(pg_temp.id(''c''), 0)']) AS query;
SELECT ok(error ->> 'sqlstate' = 'TQ409' AND (error ->> 'message') || (error ->> 'detail') LIKE '%' || pg_temp.id(substr(what, strpos(what, 'id(''') + 4, 1)) || '%',
	'2.0 the error names the task: ' || what) FROM seen WHERE what NOT LIKE '%unknown%';
INSERT INTO seen SELECT v::text, pg_temp.error(format('SELECT pg_temp.create(''x'', %L)', v)) FROM unnest(ARRAY[
	'{"priority": "urgent"}', '{"retries": 50}', '{"foo": 1}', '{"$created": "-1 hour"}', '{"$expires": "1 minute"}', '{"payload": []}',
	'{"scopes": ["a**"]}']::jsonb[]) AS v;
SELECT ok(error ->> 'message' ~ '^[^A-Z]' AND length(error ->> 'message') < 100 AND error ->> 'message' !~ '[.\n]$',
	'2.0 the message is lower case and short: ' || (error ->> 'message')) FROM seen;
SELECT ok((error ->> 'message') || (error ->> 'detail') LIKE '%' || key || '%', '2.0 the error names ' || key)
FROM seen, LATERAL (SELECT ltrim(k, '$') FROM jsonb_object_keys(what::jsonb) AS k) AS k (key) WHERE what LIKE '{%';

-- A session does not use cached ids that a refused call has inserted
SELECT pg_temp.refuses('{"taskQueueId": "fresh/queue1", "dependencies": ["dSlITZ4yQgmvxxAi4A8fHQ"]}', '2.0 a queue first named by a refused call');
SELECT is(pg_temp.create('fresh', '{"taskQueueId": "fresh/queue1"}'), 'pending 5: scheduled>pending', '2.0 can be used by the next');
SELECT is(pg_temp.claims('fresh/queue1'), 'fresh', '2.0 and claimed from');
SAVEPOINT s;
SELECT pg_temp.create('sp', '{"taskQueueId": "fresh/queue2", "$group": "spg"}');
SELECT is(pg_temp.claims('fresh/queue2', 1, 'fresh-worker'), 'sp', '2.0 a queue, a group and a worker first seen in a savepoint');
ROLLBACK TO SAVEPOINT s;
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('sp'))$$, 'TQ404', '2.0 are rolled back with it');
SELECT pg_temp.throws($$SELECT tq.get_task_group(pg_temp.id('spg'))$$, 'TQ404', '2.0 the group too');
SELECT is(pg_temp.create('sp', '{"taskQueueId": "fresh/queue2", "$group": "spg"}'), 'pending 5: scheduled>pending', '2.0 and can be created again');
SELECT is(pg_temp.claims('fresh/queue2', 1, 'fresh-worker'), 'sp', '2.0 and claimed again');
SELECT is(pg_temp.run('sp') ->> 'workerId', 'fresh-worker', '2.0 by the same worker');
SELECT is(tq.get_worker('fresh/queue2', 'wg', 'fresh-worker') ->> 'workerId', 'fresh-worker', '2.0 which is known');

SELECT * FROM finish();
ROLLBACK;
