-- doc/spec/policy.md 6, 11: what why(), health() and the views say of queues that
-- hand out nothing, and of tasks that wait for a key.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.why(name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(': ', reason, detail, advice), ', ') FROM tq.why(pg_temp.id(name)) WHERE reason NOT IN ('no worker', 'next', 'behind others')
$$;
CREATE FUNCTION pg_temp.check(check_name text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(': ', ok, detail, hint) FROM tq.health() WHERE name = check_name
$$;
CREATE FUNCTION pg_temp.make(name text, queue text, policy jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('taskQueueId', queue, 'policy', policy, '$deadline', '5 hours'))
$$;

-- the first limit of a database counts its tasks, of which this transaction has none yet
SELECT tq.set_queue('test/l', '{"concurrentLimit": 1, "claimTimeout": 100000}');

-- paused
SELECT pg_temp.make('p1', 'test/p');
SELECT is((SELECT concat_ws(' ', paused, limits) FROM tq.queue_stats WHERE task_queue_id = 'test/p'), 'f {}', '6 a queue without settings');
SELECT is(pg_temp.check('paused'), 't: no queue is paused', '6 health: no queue is paused');
SELECT is(pg_temp.why('p1'), NULL, '6 why: nothing keeps a task');
SELECT tq.pause_queue('test/p');
SELECT is(pg_temp.why('p1'), 'paused: queue test/p is paused: SELECT tq.resume_queue(''test/p'')', '6 why: its queue is paused');
SELECT is((SELECT concat_ws(' ', paused, limits) FROM tq.queue_stats WHERE task_queue_id = 'test/p'), 't {}', '6 queue_stats: paused');
SELECT is((SELECT concat_ws(' ', paused, limits) FROM tq.queue_stats WHERE task_queue_id = 'test/p'), 't {}', '6 queue_stats: paused');
SELECT is(pg_temp.check('paused'), 'f: test/p: tasks are pending: tq.resume_queue()', '6 health: tasks wait in a queue that is paused');
SELECT tq.cancel_task(pg_temp.id('p1')) IS NULL AS canceled \g /dev/null
SELECT is(pg_temp.check('paused'), 't: test/p', '6 health: one that is paused, without tasks');

-- limits
SELECT pg_temp.make('l' || n, 'test/l') FROM generate_series(1, 2) AS n;
SELECT is((SELECT limits FROM tq.queue_stats WHERE task_queue_id = 'test/l'), '{"concurrentLimit": 1}', '6 queue_stats: limits, and no other settings');
SELECT is(pg_temp.check('limits'), 't: no task waits for a concurrentLimit', '6 health: no task waits');
SELECT is(pg_temp.claims('test/l', 5), 'l1', '6 one runs');
SELECT is(pg_temp.why('l2'), 'queue at limit: 1 run in test/l: wait, or raise concurrentLimit', '6 why: its queue is at its limit');
SELECT is(pg_temp.check('limits'), 't: test/l', '6 health: a task waits');
SET tq.clock_offset = '61 minutes';
SELECT is(pg_temp.check('limits'), 'f: test/l: it waits for long: more concurrentLimit', '6 health: it waits for an hour');
RESET tq.clock_offset;
SELECT tq.set_queue('test/l', '{"concurrentLimit": null, "rateCount": 1, "rateInterval": 3600}');
SELECT is(pg_temp.why('l2'), NULL, '6 why: there is a claim left');
SELECT is(pg_temp.claims('test/l', 5), 'l2', '6 claim it');
SELECT pg_temp.make('l3', 'test/l');
SELECT matches(pg_temp.why('l3'), '^rate used up: no claim before \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d: wait, or raise rateCount$', '6 why: the claims of the interval are used up');

-- keys
SELECT tq.set_queue('test/k', '{"keyConcurrentLimit": 1}');
SELECT pg_temp.make('s' || n, 'test/k', '{"serialKey": "serial"}'), pg_temp.make('k' || n, 'test/k', '{"concurrencyKey": "key"}') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.check('gates'), 't: tasks with keys have waited for 00:00:00', '11 health: maintenance is about to look');
SET tq.clock_offset = '10 seconds';
SELECT is(pg_temp.check('gates'), 'f: tasks with keys have waited for 00:00:10: see maintenance, steps', '11 health: it is late');
SELECT pg_temp.pass();
SELECT is(pg_temp.check('gates'), 't: no key waits for maintenance', '11 health: it has looked');
SELECT is(pg_temp.why('s2'), format('serial key: behind %s of key serial: SELECT * FROM tq.why(%L)', pg_temp.id('s1'), pg_temp.id('s1')), '11.2 why: the task that it waits for');
SELECT is(pg_temp.why('s3'), format('serial key: behind %s of key serial: SELECT * FROM tq.why(%L)', pg_temp.id('s1'), pg_temp.id('s1')), '11.2 why: the one that was admitted, also for the third');
SELECT is(pg_temp.why('s1'), NULL, '11.2 why: the first does not wait');
SELECT is(pg_temp.why('k2'), 'key at limit: 1 run or are next: key key: wait, or raise its limits by tq.set_queue()', '11.3 why: its key is at its limit');
SELECT is((SELECT policy FROM tq.task_details WHERE task_id = pg_temp.id('s2')), '{"serialKey": "serial"}', '11 task_details: the key');
SELECT is((SELECT count(*) FROM tq.why(pg_temp.id('s2')) AS w WHERE length(w.reason) <= 14 AND length(w.detail) <= 50 AND length(w.advice) <= 49), 1::bigint, '11 why: its width');

SELECT * FROM finish();
ROLLBACK;
