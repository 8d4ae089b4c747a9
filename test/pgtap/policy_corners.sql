-- doc/spec/policy.md: cases that need a certain order of events, or a large
-- number of them.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.known(name text) RETURNS bool LANGUAGE sql AS $$
	SELECT EXISTS (SELECT FROM tq_internal.task t JOIN tq_internal.policy p ON p.id = t.policy WHERE t.task_id = pg_temp.id(name))
$$;

-- A policy whose insertion was rolled back is inserted again, whatever happened in between
SAVEPOINT outer_one;
SELECT tq.enqueue('c/a', policy => '{"lostRetries": 3}');
SAVEPOINT inner_one;
SELECT tq.enqueue('c/a', policy => '{"lostRetries": 4}');
ROLLBACK TO inner_one;
SELECT tq.enqueue('c/a', policy => '{"lostRetries": 3}');
ROLLBACK TO outer_one;
SELECT tq.enqueue('c/a', task_id => pg_temp.id('a'), policy => '{"lostRetries": 3}');
SELECT ok(pg_temp.known('a'), 'interning: after a rollback the policy exists');
SELECT is((SELECT count(*) FROM tq.claim_work('c/a', 'g', 'w')), 1::bigint, 'interning: and its task can be claimed');

-- A dependency that a tolerated failure has met is not met again by a rerun that completes, though
-- no exchange is bound and the session that reports has claimed the run
SAVEPOINT s;
SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview;
SELECT tq.enqueue('c/b', task_id => pg_temp.id('b'), retries => 0, policy => '{"onUnsuccessful": "tolerate"}');
SELECT tq.enqueue('c/other', task_id => pg_temp.id('other'));
SELECT tq.enqueue('c/dep', task_id => pg_temp.id('dep'), dependencies => pg_temp.ids('b', 'other'));
SELECT tq.claim_work('c/b', 'g', 'w');
SELECT tq.report_failed(pg_temp.id('b'), 0);
SELECT tq.rerun_task(pg_temp.id('b'));
SELECT tq.claim_work('c/b', 'g', 'w');
SELECT tq.resolve(pg_temp.ids('b'), '{1}');
SELECT is(pg_temp.look('dep'), 'unscheduled 5:', 'tolerate: a dependency is met once');
SELECT tq.claim_work('c/other', 'g', 'w');
SELECT tq.resolve(pg_temp.ids('other'), '{0}');
SELECT is(pg_temp.look('dep'), 'pending 5: scheduled>pending', 'tolerate: and the other one afterwards');
ROLLBACK TO s;

-- More retries than a definition alone may have: the result of task() can be used again, and redriven
SET tq.max_runs = 200;
SELECT tq.enqueue('c/c', task_id => pg_temp.id('c'), deadline => '1 hour', policy => '{"retries": 100, "deadLetter": true}');
SELECT lives_ok($$SELECT tq.create_task(pg_temp.id('c'), tq.task(pg_temp.id('c')))$$, 'retries: 100, by the result of task()');
SELECT tq.claim_work('c/c', 'g', 'w');
SELECT tq.report_failed(pg_temp.id('c'), 0);
SET tq.clock_offset = '2 hours';
SELECT is(tq.redrive(pg_temp.id('c')) ->> 'retriesLeft', '100', 'retries: 100, by a redrive past the deadline');
RESET tq.clock_offset;
SET tq.max_runs = 4;
SELECT lives_ok($$SELECT tq.enqueue('c/d', policy => '{"deadLetter": true}')$$, 'retries: a policy without retries is not refused for the 5 of the definition');
SELECT pg_temp.throws($$SELECT tq.enqueue('c/d', policy => '{"lostRetries": 3}')$$, 'TQ400', 'retries: but for the sum with lostRetries');
RESET tq.max_runs;

-- An alert is sent once for a run, though upkeep() is late and has many timers for it
SAVEPOINT s;
SELECT tq.enqueue('c/al', task_id => pg_temp.id('al'), policy => '{"runTimeout": 100, "claimTimeout": 10, "lostRetries": 3, "timeoutAlertOnly": true}');
SELECT tq.claim_work('c/al', 'g', 'w');
SELECT pg_temp.pass('11 s');
DO $$ BEGIN
	FOR i IN 1..120 LOOP
		PERFORM set_config('tq.clock_offset', (12 + i / 1000.0) || ' s', false);
		PERFORM tq.enqueue('c/many', policy => '{"runTimeout": 100, "timeoutAlertOnly": true}');
		PERFORM tq.claim_work('c/many', 'g', 'w');
	END LOOP;
END $$;
SET tq.clock_offset = '13 s';
SELECT tq.claim_work('c/al', 'g', 'w');
DO $$ BEGIN
	FOR i IN 2..13 LOOP
		PERFORM set_config('tq.clock_offset', (i * 9) || ' s', false);
		PERFORM tq.reclaim_task(pg_temp.id('al'), 1);
	END LOOP;
END $$;
SET tq.clock_offset = '120 s';
SELECT is((SELECT sum(tasks) FROM tq.upkeep() WHERE step = 'run-timeout'), 121::numeric, 'alerts: one for each run');
SELECT is((SELECT sum(tasks) FROM tq.upkeep() WHERE step = 'run-timeout'), 0::numeric, 'alerts: and no more');
RESET tq.clock_offset;
ROLLBACK TO s;

-- A claim that may last for decades leaves no timer for decades
SELECT tq.enqueue('c/e', task_id => pg_temp.id('e'), policy => tq.conductor_policy('{}', '{"asyncComplete": true, "type": "HTTP"}') || '{"runTimeout": 2147483647, "pendingTimeout": 2147483647}', deadline => '1 day');
SELECT tq.claim_work('c/e', 'g', 'w');
SELECT ok((tq.status(pg_temp.id('e')) #>> '{runs,0,takenUntil}')::timestamptz > now() + interval '60 years', 'far ahead: the claim lasts');
SELECT is((SELECT count(*) FROM tq_internal.claim_timer WHERE due > now() + interval '2 days') + (SELECT count(*) FROM tq_internal.timer WHERE due > now() + interval '2 days'), 0::bigint,
	'far ahead: but past the deadline it has no timer');

-- A total time of many tasks is written with them
SELECT tq.enqueue_tasks('c/f', array_fill('{}'::jsonb, ARRAY[200]), policy => '{"totalTimeout": 60}');
SELECT is((SELECT count(*) FROM tq_internal.task t JOIN tq_internal.queue q ON q.id = t.queue WHERE task_queue_id = 'c/f' AND effective_deadline = created + interval '60 s' AND deadline > effective_deadline), 200::bigint, 'total time: of each');
SET tq.clock_offset = '61 s';
SELECT is((SELECT tasks FROM tq.upkeep() WHERE step = 'deadline'), 200::bigint, 'total time: upkeep() processes it');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
