-- doc/spec/policy.md 11: keys of tasks: how they are given and shown.
BEGIN;
\ir policy.psql

SELECT is(pg_temp.create('a', '{"taskQueueId": "test/q", "policy": {"uniqueKey": "u1", "uniqueScope": "database", "retries": 3}}'), 'pending 3: scheduled>pending', '11 a task with a key');
SELECT is(tq.task(pg_temp.id('a')) -> 'policy', '{"uniqueKey": "u1", "uniqueScope": "database", "retries": 3}', '11 task() returns it as it was given');
SELECT is(pg_temp.create('b', '{"taskQueueId": "test/q", "policy": {"uniqueKey": "u2", "uniqueScope": "database", "retries": 3}}'), 'pending 3: scheduled>pending', '11 another key');
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, '11 needs no other policy');
SELECT is(tq.task(pg_temp.id('b')) #>> '{policy,uniqueKey}', 'u2', '11 each task has its own');
SELECT is(pg_temp.create('a', '{"taskQueueId": "test/q", "policy": {"uniqueKey": "u1", "uniqueScope": "database", "retries": 3}}'), 'pending 3: scheduled>pending', '11 a repeat');
SELECT pg_temp.throws($$SELECT pg_temp.create('a', '{"taskQueueId": "test/q", "policy": {"uniqueKey": "u9", "uniqueScope": "database", "retries": 3}}')$$, 'TQ409', '11 with another key it is another definition');
SELECT pg_temp.create('c', '{"taskQueueId": "test/q", "policy": {"serialKey": "s", "concurrencyKey": "k", "fairnessKey": "tenant é", "serialOnFailure": "hold"}}');
SELECT is(tq.task(pg_temp.id('c')) -> 'policy', '{"serialKey": "s", "concurrencyKey": "k", "fairnessKey": "tenant é", "serialOnFailure": "hold"}', '11 several keys');
SELECT is((tq.tasks(pg_temp.ids('a', 'c'))).task #>> '{policy,uniqueKey}', 'u1', '11 tasks() too') LIMIT 1;
SELECT lives_ok($$SELECT tq.enqueue('test/e', task_id => pg_temp.id('e'), policy => '{"concurrencyKey": "k"}')$$, '11 enqueue()');
SELECT is(tq.task(pg_temp.id('e')) -> 'policy', '{"concurrencyKey": "k"}', '11 the same');
SELECT lives_ok($$SELECT tq.enqueue_tasks('test/e', ARRAY['{}', '{}']::jsonb[], policy => '{"fairnessKey": "f"}')$$, '11 enqueue_tasks()');

SELECT pg_temp.throws(format('SELECT tq.enqueue(%L, policy => %L)', 'test/bad', policy), 'TQ400', '11 bad: ' || left(policy, 60))
FROM unnest(ARRAY['{"uniqueKey": ""}', '{"uniqueKey": 3}', '{"uniqueKey": true}', '{"serialKey": ["a"]}', '{"uniqueScope": "world"}',
	'{"uniqueStates": []}', '{"uniqueStates": ["asleep"]}', '{"onConflict": "maybe"}', '{"serialOnFailure": true}', '{"uniquePeriod": -1}',
	jsonb_build_object('fairnessKey', repeat('x', 256))::text]) AS policy;
SELECT is((SELECT count(*) FROM tq.delete_task(pg_temp.id('c')), tq_internal.task_key k JOIN tq_internal.task t ON t.id = k.task WHERE t.task_id = pg_temp.id('c')), 3::bigint, '11 (its keys)');
SELECT is((SELECT count(*) FROM tq_internal.task_key k WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = k.task)), 0::bigint, '11 keys go with the task');

SELECT * FROM finish();
ROLLBACK;
