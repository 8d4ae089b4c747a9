-- doc/spec/policy.md 6: settings of a queue: pause, timeouts, retention, default policy.
BEGIN;
\ir policy.psql

-- set, get, merge, remove
SELECT pg_temp.throws($$SELECT tq.get_task_queue('test/new')$$, 'TQ404', '6 a queue that is not known has no settings');
SELECT is(tq.set_queue('test/q', '{"claimTimeout": "5 min", "retainFailed": 60}'), '{"claimTimeout": "5 min", "retainFailed": 60}', '6 set_queue returns the settings as they were given');
SELECT is(tq.set_queue('test/q', '{"retainFailed": null, "retainCompleted": "1 day"}'), '{"claimTimeout": "5 min", "retainCompleted": "1 day"}', '6 it merges keys, null removes one');
SELECT is(tq.get_task_queue('test/q') -> 'settings', '{"claimTimeout": "5 min", "retainCompleted": "1 day"}', '6 get_task_queue');
SELECT is(tq.set_queue('test/q', '{}'), '{"claimTimeout": "5 min", "retainCompleted": "1 day"}', '6 no key, no change');
SELECT is(tq.set_queue('test/q', '{"claimTimeout": null, "retainCompleted": null}'), '{}', '6 all removed');
SELECT is((SELECT count(*) FROM tq_internal.queue_settings), 0::bigint, '6 leaves nothing behind');
SELECT pg_temp.throws($$SELECT tq.get_task_queue('test/q')$$, 'TQ404', '6 it is not known any more');
SELECT count(*) FROM tq.claim_work('test/asked', 'g', 'w');
SELECT is(tq.get_task_queue('test/asked') -> 'settings', '{}', '6 a queue without settings');

-- bad settings change nothing
SELECT tq.set_queue('test/q', '{"claimTimeout": 60}');
SELECT pg_temp.throws(format('SELECT tq.set_queue(%L, %L)', 'test/q', settings), 'TQ400', '6 bad: ' || settings)
FROM unnest(ARRAY['[]', '3', '"paused"', '{"colour": 1}', '{"paused": 1}', '{"claimTimeout": -1}', '{"claimTimeout": "soon"}',
	'{"retainCompleted": "infinity"}', '{"concurrentLimit": -1}', '{"concurrentLimit": 1.5}', '{"rateCount": 5}',
	'{"rateCount": 5, "rateInterval": 0}', '{"claimTimeout": 0}', '{"maxPending": "many"}', '{"policy": []}', '{"policy": {"colour": 1}}',
	'{"policy": {"retries": 1000000}}', '{"policy": {"claimTimeout": 5, "runTimeout": 1}}', '{"policy": {"queueDefault": {}}}']) AS settings;
SELECT is(tq.get_task_queue('test/q') -> 'settings', '{"claimTimeout": 60}', '6 and nothing has changed');
SELECT pg_temp.throws($$SELECT tq.set_queue('noslash/', '{}')$$, 'TQ400', '6 bad name');

-- claimTimeout: of the policy, else of the queue, else tq.claim_timeout
SELECT pg_temp.create('plain', '{"taskQueueId": "test/q"}');
SELECT pg_temp.create('own', '{"taskQueueId": "test/q", "policy": {"claimTimeout": 10}}');
SELECT pg_temp.create('other', '{}');
SELECT is(pg_temp.claims('test/q', 2), 'plain own', '6 claim both');
SELECT pg_temp.take('other');
SELECT ok(pg_temp.claimed_for('plain') BETWEEN '55 s' AND '65 s', '6 claimTimeout of the queue');
SELECT ok(pg_temp.claimed_for('own') BETWEEN '5 s' AND '15 s', '6 that of the policy wins');
SELECT ok(pg_temp.claimed_for('other') BETWEEN '19 min' AND '21 min', '6 another queue has tq.claim_timeout');
SELECT tq.set_queue('test/q', '{"claimTimeout": 600}');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('plain'), 0)$$, '6 reclaim');
SELECT ok(pg_temp.claimed_for('plain') BETWEEN '9 min' AND '11 min', '6 follows the settings of that moment');

-- pause
SELECT pg_temp.create('p' || n, '{"taskQueueId": "test/p", "$deadline": "2 hours"}') FROM generate_series(1, 3) AS n;
SELECT pg_temp.create('late', '{"taskQueueId": "test/p", "delay": 60}');
SELECT is(pg_temp.claims('test/p', 1), 'p1', '6 a queue');
SELECT is(tq.pause_queue('test/p'), '{"paused": true}', '6 pause it');
SELECT is(tq.pause_queue('test/p'), '{"paused": true}', '6 twice');
SELECT is(pg_temp.claims('test/p', 5), '', '6 paused: nothing is handed out');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('p2'), 0, 'wg', 'w1')), 0::bigint, '6 neither by claim_task');
SELECT is((tq.task_queue_counts('test/p') -> 'pendingTasks')::bigint, 2::bigint, '6 nothing is lost');
SELECT lives_ok($$SELECT tq.enqueue('test/p')$$, '6 tasks can be created');
SELECT is(pg_temp.report('p1', 'completed'), 'completed 5: scheduled>completed/completed', '6 what is claimed may be finished');
SELECT pg_temp.pass('61 seconds');
SELECT is((tq.task_queue_counts('test/p') -> 'pendingTasks')::bigint, 4::bigint, '6 time goes on: the delay is over');
SELECT is(tq.resume_queue('test/p'), '{}', '6 resume it');
SELECT is((SELECT count(*) FROM tq.claim_work('test/p', 'wg', 'w1', 10)), 4::bigint, '6 all are there');
RESET tq.clock_offset;
SAVEPOINT s;
SELECT tq.pause_queue('test/p');
ROLLBACK TO s;
SELECT lives_ok($$SELECT tq.enqueue('test/p', task_id => pg_temp.id('after'))$$, '6 a pause that is rolled back');
SELECT is((SELECT count(*) FROM tq.claim_work('test/p', 'wg', 'w1')), 1::bigint, '6 pauses nothing');

-- default policy
SELECT is(tq.set_queue('test/d', '{"policy": {"retries": 2, "retryOn": ["failed"], "retryBackoff": {"delay": 7, "kind": "exponential"}, "claimTimeout": 90, "onUnsuccessful": "tolerate", "delay": 5}}') #>> '{policy,retries}', '2', '6 a default policy');
SELECT pg_temp.create('d1', '{"taskQueueId": "test/d"}');
SELECT pg_temp.create('d2', '{"taskQueueId": "test/d", "retries": 9, "delay": 1, "policy": {"retryBackoff": {"delay": 3}, "onUnsuccessful": null}}');
SELECT pg_temp.create('d3', '{"taskQueueId": "test/d", "policy": {"retries": 4, "retryOn": []}}');
SELECT is(pg_temp.look('d1'), 'pending 2: scheduled>pending', '6 a task without a policy has that of the queue');
SELECT is(pg_temp.look('d2'), 'pending 9: scheduled>pending', '6 retries of the task win');
SELECT is(pg_temp.look('d3'), 'pending 4: scheduled>pending', '6 those of its policy too');
SELECT is(pg_temp.wait('d1'), '5 s', '6 the delay is that of the queue');
SELECT is(pg_temp.wait('d2'), '1 s', '6 unless the task has one');
SELECT is(tq.task(pg_temp.id('d1')) -> 'policy', NULL, '6 task() returns what was given: no policy');
SELECT is(tq.task(pg_temp.id('d3')) -> 'policy', '{"retries": 4, "retryOn": []}', '6 or its own');
SELECT pg_temp.pass('6 seconds');
SELECT is((SELECT count(*) FROM tq.claim_work('test/d', 'wg', 'w1', 10)), 3::bigint, '6 claim them');
SELECT ok(pg_temp.claimed_for('d1') BETWEEN '85 s' AND '95 s', '6 claimTimeout of the default policy');
SELECT pg_temp.report('d1', 'failed'), pg_temp.report('d2', 'failed'), pg_temp.report('d3', 'failed');
SELECT is(pg_temp.look('d1'), 'pending 1: scheduled>failed/failed failure-retry>pending', '6 it is retried as the queue says');
SELECT is(pg_temp.wait('d1'), '7 s', '6 after its delay');
SELECT is(pg_temp.wait('d2'), '3 s', '6 or after that of the task: the key wins as a whole');
SELECT is(pg_temp.look('d3'), 'failed 4: scheduled>failed/failed', '6 or not at all');

RESET tq.clock_offset;

-- a repeated definition is the same although the default policy has changed
SELECT tq.set_queue('test/d', '{"policy": {"retries": 3}}');
SELECT is(pg_temp.create('d1', '{"taskQueueId": "test/d"}'), pg_temp.look('d1'), '6 a repeat under another default policy');
SELECT is(pg_temp.create('d3', '{"taskQueueId": "test/d", "policy": {"retries": 4, "retryOn": []}}'), pg_temp.look('d3'), '6 of a task with a policy too');
SELECT pg_temp.throws($$SELECT pg_temp.create('d3', '{"taskQueueId": "test/d", "policy": {"retries": 1, "retryOn": []}}')$$, 'TQ409', '6 another definition is refused');

-- retention
SELECT tq.set_queue('test/k', '{"retainCompleted": 60, "retainFailed": "1 hour"}');
SELECT lives_ok(format('SELECT tq.enqueue(%L, task_id => pg_temp.id(%L), policy => %L)', 'test/k', name, policy), '6 enqueue ' || name)
FROM (VALUES ('gone', '{}'), ('failed', '{}'), ('kept', '{"retainCompleted": 7200}')) AS v (name, policy);
SELECT is((SELECT count(*) FROM tq.claim_work('test/k', 'wg', 'w1', 3)), 3::bigint, '6 claim');
SELECT pg_temp.report('gone', 'completed'), pg_temp.report('failed', 'failed'), pg_temp.report('kept', 'completed');
SELECT pg_temp.pass('30 minutes');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('gone'))$$, 'TQ404', '6 retainCompleted of the queue');
SELECT is(pg_temp.state('failed'), 'failed', '6 retainFailed is longer');
SELECT is(pg_temp.state('kept'), 'completed', '6 the policy of the task wins');
SELECT pg_temp.pass('90 minutes');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('failed'))$$, 'TQ404', '6 retainFailed of the queue');
SELECT is(pg_temp.state('kept'), 'completed', '6 it is kept');

SELECT * FROM finish();
ROLLBACK;
