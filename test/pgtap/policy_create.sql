-- Policies and delays by each function: create_task, create_tasks,
-- define_task, enqueue, enqueue_tasks; how they are stored, repeated and shown.
BEGIN;
\ir policy.psql

\set plain_task '''created deadline dependencies expires extra metadata payload priority projectId provisionerId requires retries routes schedulerId scopes tags taskGroupId taskQueueId workerType'''
\set plain_status '''deadline expires priority projectId provisionerId retriesLeft runs schedulerId state taskGroupId taskId taskQueueId workerType'''

-- ---------------------------------------------------------------------------
-- A task without a policy shows what it always did
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.create('none'), pg_temp.create('null', '{"policy": null, "delay": null}'), pg_temp.create('zero', '{"delay": 0}'), pg_temp.create('unscheduled', '{"$deps": ["none"]}');
SELECT tq.enqueue('test/q', task_id => pg_temp.id('enqueued'), name => 'enqueued', deadline => '1 day');
SELECT is(pg_temp.keys(tq.task(pg_temp.id(n))), :plain_task, 'without a policy: keys of the definition, ' || n) FROM unnest('{none,"null",zero,unscheduled,enqueued}'::text[]) AS n;
SELECT is(pg_temp.keys(tq.status(pg_temp.id(n))), :plain_status, 'without a policy: keys of the status, ' || n) FROM unnest('{none,"null",zero,unscheduled,enqueued}'::text[]) AS n;
SELECT is(tq.task(pg_temp.id('null')) - '{metadata,payload,taskQueueId,workerType,taskGroupId}'::text[], tq.task(pg_temp.id('none')) - '{metadata,payload,taskQueueId,workerType,taskGroupId}'::text[], 'without a policy: null is the same as absent');
SELECT is((SELECT count(*) FROM tq_internal.policy), 0::bigint, 'without a policy: none is stored');
SELECT pg_temp.running('w', '{"retries": 3}');
SELECT is(pg_temp.keys(pg_temp.run('w')), 'reasonCreated runId scheduled started state takenUntil workerGroup workerId', 'without a policy: keys of a running run');
SELECT pg_temp.report('w', 'worker-shutdown');
SELECT is(pg_temp.keys(pg_temp.run('w', 0)), 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'without a policy: keys of a run that was retried');
SELECT is(pg_temp.keys(pg_temp.run('w')), 'reasonCreated runId scheduled state', 'without a policy: keys of a retry');
SELECT pg_temp.work('w', 'failed');
SELECT is(pg_temp.keys(pg_temp.run('w')), 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'without a policy: keys of a retry that failed');
SELECT tq.rerun_task(pg_temp.id('w')) ->> 'state';
SELECT is(pg_temp.keys(pg_temp.run('w')), 'reasonCreated runId scheduled state', 'without a policy: keys of a rerun');
SELECT is((SELECT count(*) FROM tq_internal.run_detail), 0::bigint, 'without a policy: runs have no details');
ROLLBACK TO s;

-- not even where a run has an error, a result, or was deferred
SELECT pg_temp.resolved(n, 'worker-shutdown') FROM unnest('{e,r,d}'::text[]) AS n;
SELECT pg_temp.take(n) FROM unnest('{e,r,d}'::text[]) AS n;
SELECT tq.report_failed(pg_temp.id('e'), 1, '{"message": "x"}') ->> 'state', tq.report_completed(pg_temp.id('r'), 1, '1') ->> 'state', tq.defer_task(pg_temp.id('d'), 1, '1 minute') ->> 'state';
SELECT is(pg_temp.run(n) ? 'attempt', false, 'without a policy: a retry shows no attempt, ' || n) FROM unnest('{e,r,d}'::text[]) AS n;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- With one
-- ---------------------------------------------------------------------------

CREATE TEMP TABLE whole AS SELECT '{"retries": 3, "retryOn": ["failed", "claim-expired"], "lostRetries": 2, "retryBackoff": {"delay": 5, "kind": "exponential", "factor": 2, "max": "1 minute", "jitter": 0.5},
	"claimTimeout": 30, "runTimeout": "5 minutes", "pendingTimeout": 600, "totalTimeout": "30 minutes", "timeoutAlertOnly": false, "onUnsuccessful": "tolerate", "deadLetter": true, "delay": 10}'::jsonb AS policy;
SELECT pg_temp.create('a', jsonb_build_object('policy', policy, 'retries', 7)) FROM whole;
SELECT is(pg_temp.keys(tq.task(pg_temp.id('a'))), 'created deadline delay dependencies expires extra metadata payload policy priority projectId provisionerId requires retries routes schedulerId scopes tags taskGroupId taskQueueId workerType',
	'the definition also has policy and delay');
SELECT is(tq.task(pg_temp.id('a')) -> 'policy', policy, 'the policy is unchanged') FROM whole;
SELECT is(tq.task(pg_temp.id('a')) -> 'delay', '10', 'the delay is that of the policy');
SELECT is(tq.task(pg_temp.id('a')) -> 'retries', '3', 'the retries are those of the policy');
SELECT is(pg_temp.keys(tq.status(pg_temp.id('a')) - 'runDetails'), :plain_status, 'the status has no other keys but runDetails');
SELECT is(pg_temp.keys(pg_temp.run('a')), 'reasonCreated runId scheduled state visibleAt', 'nor has its run, except visibleAt');
SELECT pg_temp.create('b', '{"policy": {"deadLetter": true}}');
SELECT is(pg_temp.keys(tq.task(pg_temp.id('b'))), replace(:plain_task, 'payload', 'payload policy'), 'without a delay: no such key');
SELECT is(pg_temp.keys(pg_temp.run('b')), 'reasonCreated runId scheduled state', 'without a delay: nor in the run');
SELECT pg_temp.create('c', '{"delay": "90 seconds"}');
SELECT is(pg_temp.keys(tq.task(pg_temp.id('c'))), replace(:plain_task, 'deadline', 'deadline delay'), 'with a delay, without a policy: no such key');
SELECT is(tq.task(pg_temp.id('c')) -> 'delay', '90', 'a delay is shown in seconds');
SELECT is((SELECT task FROM tq.tasks(ARRAY[pg_temp.id('a')])), tq.task(pg_temp.id('a')), 'tasks() shows the same');
SELECT is((SELECT task FROM tq.list_task_group(pg_temp.id('a'))), tq.task(pg_temp.id('a')), 'list_task_group() shows the same');
SELECT pg_temp.create('d', '{"$deps": ["b"], "policy": {"retries": 1}}');
SELECT is((SELECT task FROM tq.list_dependent_tasks(pg_temp.id('b'))), tq.task(pg_temp.id('d')), 'list_dependent_tasks() shows the same');
SELECT is((SELECT status FROM tq.statuses(ARRAY[pg_temp.id('a')])), tq.status(pg_temp.id('a')), 'statuses() shows what status() does');
-- runs with a policy
SELECT pg_temp.take('b');
SELECT is(pg_temp.keys(pg_temp.run('b')), 'reasonCreated runId scheduled started state takenUntil workerGroup workerId', 'a running run 0 shows nothing else');
SELECT pg_temp.report('b', 'worker-shutdown');
SELECT is(pg_temp.keys(pg_temp.run('b')), 'attempt reasonCreated runId scheduled state', 'a retry shows its attempt');
SELECT is(jsonb_typeof(pg_temp.run('b') -> 'attempt'), 'number', 'which is a number');
SELECT pg_temp.work('b', 'failed');
SELECT tq.rerun_task(pg_temp.id('b')) ->> 'state';
SELECT is(pg_temp.run('b') -> 'attempt', '0', 'a rerun begins again with attempt 0');
SELECT is(pg_temp.attempts('b'), '0 1 0', 'and keeps the earlier ones');
SELECT is(pg_temp.line(tq.status(pg_temp.id('b'))), 'pending 5: scheduled>exception/worker-shutdown retry>failed/failed rerun>pending', 'with all its retries');
ROLLBACK TO s;

-- A definition with all of it can be used again.
SELECT pg_temp.create('a', '{"delay": "1.5 s", "policy": {"retries": 2, "delay": "1 minute", "retryBackoff": {"delay": "5 s"}}}');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), tq.task(pg_temp.id('a')))$$, 'a', 'a repeat by the result of task()');
SELECT lives_ok($$SELECT tq.create_task(pg_temp.id('b'), (tq.task(pg_temp.id('a')) - 'taskGroupId'))$$, 'another task by the result of task()');
SELECT is(tq.task(pg_temp.id('b')) - 'taskGroupId', tq.task(pg_temp.id('a')) - 'taskGroupId', 'which is the same');
SELECT is(pg_temp.wait('b'), pg_temp.wait('a'), 'also in its delay');
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, 'with one policy');
ROLLBACK TO s;
SELECT pg_temp.create('a', '{"delay": 0, "policy": {"delay": "1 minute"}}');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), tq.task(pg_temp.id('a')))$$, 'a', 'a repeat by the result of task(), of a delay of 0 that takes precedence over another');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Equal policies are stored once
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a' || n, p::jsonb) FROM (VALUES (1, '{"policy": {"retries": 3, "deadLetter": true, "retryBackoff": {"delay": 5, "max": 9}}}'),
	(2, '{"policy": {"retryBackoff": {"max": 9, "delay": 5}, "deadLetter": true, "retries": 3}}'), (3, '{"policy": {"retries": 3, "retries": 3, "deadLetter": true, "retryBackoff": {"delay": 5, "max": 9}}, "priority": "high"}')) AS v (n, p);
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, 'the same policy, its keys in another order: stored once');
SELECT is((SELECT count(DISTINCT policy) FROM tq_internal.task), 1::bigint, 'and shared');
SELECT pg_temp.create('b', '{"policy": {"retries": 4, "deadLetter": true, "retryBackoff": {"delay": 5, "max": 9}}}');
SELECT is((SELECT count(*) FROM tq_internal.policy), 2::bigint, 'a different policy is another');
SELECT is(tq.create_tasks((SELECT jsonb_agg(pg_temp.entry('m' || n, jsonb_build_object('policy', jsonb_build_object('retries', n % 3)))) FROM generate_series(1, 300) AS n)), 300::bigint, '300 tasks with three policies');
SELECT is((SELECT count(*) FROM tq_internal.policy), 5::bigint, 'make three');
SELECT is((SELECT count(*) FROM generate_series(1, 300) AS n WHERE tq.task(pg_temp.id('m' || n)) ->> 'retries' <> (n % 3)::text), 0::bigint, 'each task has its own');
SELECT is(cardinality(tq.enqueue_tasks('test/e', array_fill('{}'::jsonb, ARRAY[50]), policy => '{"retries": 1}')), 50, '50 tasks by enqueue_tasks, with a policy that exists');
SELECT is((SELECT count(*) FROM tq_internal.policy), 5::bigint, 'make none');
SELECT is((SELECT count(*) FROM tq_internal.task AS t JOIN tq_internal.policy AS p ON p.id = t.policy WHERE p.policy = '{"retries": 1}'), 150::bigint, 'all use it');
ROLLBACK TO s;

-- A policy that was rolled back is not used from the cache.
SAVEPOINT inner_savepoint;
SELECT pg_temp.create('a', '{"policy": {"retries": 3}}');
ROLLBACK TO inner_savepoint;
SELECT is((SELECT count(*) FROM tq_internal.policy), 0::bigint, 'a policy that was rolled back');
SELECT is(pg_temp.create('a', '{"policy": {"retries": 3}}'), 'pending 3: scheduled>pending', 'is stored again');
SELECT is((SELECT p.policy FROM tq_internal.task AS t JOIN tq_internal.policy AS p ON p.id = t.policy), '{"retries": 3}', 'and found');
SELECT is(tq.task(pg_temp.id('a')) -> 'policy', '{"retries": 3}', 'and shown');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Repeats
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('p', '{"policy": {"retries": 3, "claimTimeout": 60}}'), pg_temp.create('d', '{"delay": 600}'), pg_temp.create('n'), pg_temp.create('pd', '{"policy": {"delay": 600}}');
SELECT pg_temp.keeps(format('SELECT tq.create_task(pg_temp.id(%1$L), pg_temp.def(%1$L, %2$L))', n, o), n, 'a repeat with the same: ' || n || ' ' || o) FROM (VALUES
	('p', '{"policy": {"claimTimeout": 60, "retries": 3}}'), ('p', '{"policy": {"retries": 3, "claimTimeout": 60}, "delay": 0}'), ('d', '{"delay": 600}'), ('d', '{"delay": "10 minutes"}'), ('d', '{"delay": 600, "policy": null}'),
	('n', '{"policy": null, "delay": null}'), ('n', '{"delay": 0}'), ('n', '{"policy": {}}'), ('pd', '{"policy": {"delay": 600}}')) AS v (n, o);
SELECT pg_temp.throws(format('SELECT tq.create_task(pg_temp.id(%1$L), pg_temp.def(%1$L, %2$L))', n, o), 'TQ409', 'a repeat with another: ' || n || ' ' || o) FROM (VALUES
	('p', '{"policy": {"retries": 3, "claimTimeout": 61}}'), ('p', '{"policy": {"retries": 3}}'), ('p', '{"retries": 3}'), ('p', '{}'), ('p', '{"policy": {"retries": 3, "claimTimeout": 60}, "delay": 1}'),
	('p', '{"policy": {"retries": 3, "claimTimeout": 60, "deadLetter": true}}'), ('p', '{"policy": null}'), ('p', '{"policy": {}}'),
	('d', '{"delay": 601}'), ('d', '{}'), ('d', '{"delay": 0}'), ('d', '{"delay": 600, "policy": {"retries": 5}}'), ('n', '{"policy": {"retries": 5}}'), ('n', '{"delay": 1}'), ('pd', '{}'), ('pd', '{"policy": {"delay": 601}}')) AS v (n, o);
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.entry('p', '{"policy": {"retries": 3, "claimTimeout": 60}}'), pg_temp.entry('d', '{"delay": 600}'), pg_temp.entry('new', '{"policy": {"retries": 3}}'))), 1::bigint, 'create_tasks: repeats beside a new one');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.entry('new2'), pg_temp.entry('p', '{"policy": {"retries": 4, "claimTimeout": 60}}')))$$, 'TQ409', 'create_tasks: one with another policy');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.entry('twice', '{"policy": {"retries": 4}}'), pg_temp.entry('twice', '{"policy": {"retries": 5}}')))$$,
	pg_temp.error($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.entry('thrice', '{"retries": 4}'), pg_temp.entry('thrice', '{"retries": 5}')))$$) ->> 'sqlstate', 'create_tasks: one id with two policies is as one id with two definitions');
SELECT lives_ok($$SELECT tq.define_task(pg_temp.id('def'), pg_temp.def('def', '{"policy": {"retries": 3}}'))$$, 'define_task with a policy');
SELECT pg_temp.keeps($$SELECT tq.define_task(pg_temp.id('def'), pg_temp.def('def', '{"policy": {"retries": 3}}'))$$, 'def', 'define_task: a repeat with the same');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('def'), pg_temp.def('def', '{"policy": {"retries": 2}}'))$$, 'TQ409', 'define_task: a repeat with another');
-- Later transitions do not matter.
SELECT pg_temp.take('p'), pg_temp.report('p', 'worker-shutdown');
SELECT pg_temp.pass('55 minutes');
RESET tq.clock_offset;
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('p'), pg_temp.def('p', '{"policy": {"retries": 3, "claimTimeout": 60}}'))$$, 'p', 'a repeat after a retry');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('d'), pg_temp.def('d', '{"delay": 600}'))$$, 'd', 'a repeat after the delay was over');
ROLLBACK TO s;
-- Nor that a delay which begins now would end past the deadline.
SELECT pg_temp.create('d', '{"delay": 3300}');
CREATE TEMP TABLE given AS SELECT pg_temp.def('d', '{"delay": 3300}') AS task;
SET tq.clock_offset = '10 minutes';
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('d'), task) FROM given$$, 'd', 'a repeat of a delayed one, ten minutes later');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- create_tasks, define_task
-- ---------------------------------------------------------------------------

SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.entry('c', '{"$deps": ["a", "b"], "policy": {"claimTimeout": 60}}'), pg_temp.entry('a', '{"policy": {"onUnsuccessful": "tolerate"}}'),
	pg_temp.entry('b', '{"delay": 600}'), pg_temp.entry('e', '{"policy": {"delay": 60, "pendingTimeout": 60}}'), pg_temp.entry('f'))), 5::bigint, 'create_tasks: with and without');
SELECT is(pg_temp.wait(n), w::interval, 'create_tasks: delay of ' || n) FROM (VALUES ('a', '0'), ('b', '10 minutes'), ('e', '1 minute'), ('f', '0')) AS v (n, w);
SELECT is(string_agg(pg_temp.claims('test/q-' || n), ' ' ORDER BY n), 'a   f', 'create_tasks: the delayed ones wait') FROM unnest('{a,b,e,f}'::text[]) AS n;
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.pass('2 minutes'), 'pending-timeout 1', 'create_tasks: a pending timeout, after a delay that upkeep has not seen');
SELECT is(pg_temp.pass('10 minutes'), 'delayed 1', 'create_tasks: a delay');
SELECT pg_temp.work('b', 'completed');
SELECT is(pg_temp.take('c'), 0, 'create_tasks: both dependencies are met, one by a failure that is tolerated');
SELECT is(pg_temp.claimed_for('c'), interval '1 minute', 'create_tasks: claimTimeout');
ROLLBACK TO s;
SELECT is(tq.define_task(pg_temp.id('a'), pg_temp.def('a', '{"policy": {"delay": 60, "pendingTimeout": 60, "totalTimeout": 600}}')) ->> 'state', 'unscheduled', 'define_task');
SELECT is(pg_temp.pass('20 minutes'), '', 'define_task: no timeout runs yet');
SELECT is(tq.schedule_task(pg_temp.id('a')) ->> 'state', 'pending', 'define_task: scheduled');
SELECT is(pg_temp.wait('a'), interval '1 minute', 'define_task: the delay begins');
SELECT is(pg_temp.pass('22 minutes'), 'pending-timeout 1', 'define_task: the pending timeout follows it');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- enqueue, enqueue_tasks
-- ---------------------------------------------------------------------------

SELECT tq.enqueue('test/e1', task_id => pg_temp.id('e1'), name => 'e1', delay => '10 minutes');
SELECT tq.enqueue('test/e2', task_id => pg_temp.id('e2'), name => 'e2', policy => '{"delay": 60, "claimTimeout": 30}');
SELECT tq.enqueue('test/e3', task_id => pg_temp.id('e3'), name => 'e3', delay => '10 minutes', policy => '{"delay": 60}', retries => 3);
SELECT tq.enqueue('test/e4', task_id => pg_temp.id('e4'), name => 'e4', retries => 3, policy => '{"retries": 1}');
SELECT tq.enqueue('test/e5', task_id => pg_temp.id('e5'), name => 'e5', delay => '0', policy => NULL, deadline => '1 day');
SELECT is(pg_temp.wait(n), w::interval, 'enqueue: ' || what) FROM (VALUES ('e1', '10 minutes', 'delay'), ('e2', '1 minute', 'delay of the policy'), ('e3', '10 minutes', 'delay takes precedence over the policy''s'), ('e4', '0', 'no delay'), ('e5', '0', 'delay 0')) AS v (n, w, what);
SELECT is(pg_temp.look(n), line, 'enqueue: ' || what) FROM (VALUES ('e3', 'pending 3: scheduled>pending', 'retries'), ('e4', 'pending 1: scheduled>pending', 'retries of the policy')) AS v (n, line, what);
SELECT is(tq.task(pg_temp.id(n)) -> 'policy', p::jsonb, 'enqueue: policy is shown, ' || n) FROM (VALUES ('e1', NULL), ('e2', '{"delay": 60, "claimTimeout": 30}'), ('e3', '{"delay": 60}'), ('e4', '{"retries": 1}'), ('e5', NULL)) AS v (n, p);
SELECT is(pg_temp.keys(tq.task(pg_temp.id('e5'))), :plain_task, 'enqueue: no policy, no delay');
SELECT pg_temp.keeps(format('SELECT tq.status(tq.enqueue(%L, task_id => pg_temp.id(%L), name => %L, %s))', 'test/' || n, n, n, args), n, 'enqueue: a repeat of ' || n) FROM (VALUES
	('e1', 'delay => ''600 seconds'''), ('e2', 'policy => ''{"claimTimeout": 30, "delay": 60}'''), ('e3', 'delay => ''10 minutes'', policy => ''{"delay": 60}'', retries => 3'), ('e4', 'policy => ''{"retries": 1}'''), ('e5', 'retries => 5')) AS v (n, args);
SELECT pg_temp.throws(format('SELECT tq.enqueue(%L, task_id => pg_temp.id(%L), name => %L, %s)', 'test/' || n, n, n, args), 'TQ409', 'enqueue: a repeat with another, ' || n) FROM (VALUES
	('e1', 'delay => ''601 seconds'''), ('e1', 'retries => 5'), ('e2', 'policy => ''{"claimTimeout": 31, "delay": 60}'''), ('e2', 'retries => 5'), ('e4', 'policy => ''{"retries": 2}'''), ('e5', 'policy => ''{"retries": 5}'''), ('e5', 'delay => ''1 second''')) AS v (n, args);
SELECT is((SELECT count(*) FROM tq.claim_work('test/e4', 'wg', 'w1')), 1::bigint, 'enqueue: a task that is not delayed can be claimed');
SELECT is((SELECT count(*) FROM unnest('{e1,e2,e3}'::text[]) AS n, tq.claim_work('test/' || n, 'wg', 'w1')), 0::bigint, 'enqueue: a delayed one cannot');
SELECT is(pg_temp.pass('60 seconds'), 'delayed 1', 'enqueue: until it is due');
SELECT is(pg_temp.take('e2'), 0, 'enqueue: then it can');
SELECT is(pg_temp.claimed_for('e2'), interval '30 seconds', 'enqueue: its claim lasts as its policy says');
ROLLBACK TO s;

CREATE TEMP TABLE made AS SELECT tq.enqueue_tasks('test/e', ARRAY['{"n": 1}', '{"n": 2}', '{"n": 3}']::jsonb[], task_ids => pg_temp.ids('t1', 't2', 't3'), delay => '10 minutes', policy => '{"retries": 2, "delay": 5}') AS ids;
SELECT is(ids::text[], pg_temp.ids('t1', 't2', 't3')::text[], 'enqueue_tasks: three of them') FROM made;
SELECT is(pg_temp.look(n) || ' ' || pg_temp.wait(n) || ' ' || (tq.task(pg_temp.id(n)) -> 'policy'), 'pending 2: scheduled>pending 00:10:00 {"delay": 5, "retries": 2}', 'enqueue_tasks: each with policy and delay, ' || n) FROM unnest('{t1,t2,t3}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq_internal.policy), 1::bigint, 'enqueue_tasks: one policy');
SELECT pg_temp.unchanged($$SELECT tq.enqueue_tasks('test/e', ARRAY['{"n": 1}', '{"n": 2}', '{"n": 3}']::jsonb[], task_ids => pg_temp.ids('t1', 't2', 't3'), delay => '10 minutes', policy => '{"retries": 2, "delay": 5}')$$, 'enqueue_tasks: a repeat');
SELECT pg_temp.throws($$SELECT tq.enqueue_tasks('test/e', ARRAY['{"n": 1}', '{"n": 2}', '{"n": 3}']::jsonb[], task_ids => pg_temp.ids('t1', 't2', 't3'), delay => '10 minutes', policy => '{"retries": 1, "delay": 5}')$$, 'TQ409', 'enqueue_tasks: a repeat with another policy');
SELECT is(cardinality(tq.enqueue_tasks('test/f', ARRAY['{}', '{}']::jsonb[], policy => '{"delay": 60}')), 2, 'enqueue_tasks: delay of the policy');
SELECT is((tq.task_queue_counts('test/f') -> 'pendingTasks')::bigint, 0::bigint, 'enqueue_tasks: which waits');
SELECT is(pg_temp.pass('60 seconds'), 'delayed 2', 'enqueue_tasks: until it is due');
SELECT is((tq.task_queue_counts('test/f') -> 'pendingTasks')::bigint, 2::bigint, 'enqueue_tasks: then they can be claimed');
SELECT is(pg_temp.pass('600 seconds'), 'delayed 3', 'enqueue_tasks: the others');
SELECT is((SELECT string_agg(payload ->> 'n', ' ') FROM tq.claim_work('test/e', 'wg', 'w1', 9)), '1 2 3', 'enqueue_tasks: in their order');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Priority of delayed runs
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(n, jsonb_build_object('taskQueueId', 'test/q', 'delay', 60, 'priority', p)) FROM (VALUES (1, 'a', 'low'), (2, 'b', 'high'), (3, 'c', 'low')) AS v (i, n, p) ORDER BY i;
SELECT is(tq.change_task_priority(pg_temp.id('c'), 'highest') ->> 'priority', 'highest', 'the priority of a delayed run is changed');
SELECT is(pg_temp.pass('60 seconds'), 'delayed 3', 'all are due');
SELECT is(pg_temp.claims('test/q'), 'c b a', 'they are handed out by priority');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
