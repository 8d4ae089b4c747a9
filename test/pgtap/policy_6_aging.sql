-- doc/spec/policy.md 6: agingInterval: a pending run rises one priority per interval.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.add(name text, priority text, more jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('taskQueueId', 'test/a', 'priority', priority, '$deadline', '5 hours') || more)
$$;
-- Priorities of pending runs, as in 'a1 high'.
CREATE FUNCTION pg_temp.places() RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(pg_temp.name(t.task_id) || ' ' || tq_internal.priority_name(p.priority), ', ' ORDER BY p.priority DESC, p.seq)
	FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task
$$;
CREATE FUNCTION pg_temp.at(minutes numeric) RETURNS text
LANGUAGE sql AS $$ SELECT set_config('tq.clock_offset', minutes * 60000 || 'ms', true) $$;

-- settings
SELECT is(tq.set_queue('test/a', '{"agingInterval": "10 min"}'), '{"agingInterval": "10 min"}', '6 agingInterval');
SELECT pg_temp.throws(format('SELECT tq.set_queue(%L, %L)', 'test/a', settings), 'TQ400', '6 bad: ' || settings)
FROM unnest(ARRAY['{"agingInterval": -1}', '{"agingInterval": "soon"}', '{"agingInterval": true}', '{"agingInterval": []}']) AS settings;

-- rises, one by one
SAVEPOINT s;
SELECT pg_temp.add('a1', 'lowest'), pg_temp.add('a2', 'lowest'), pg_temp.add('m1', 'medium'), pg_temp.add('h1', 'highest');
SELECT is(pg_temp.pass(), '', '6 nothing is due');
SELECT is(pg_temp.at(9.9), '594000.0ms', '6 just before');
SELECT is(pg_temp.pass(), '', '6 nothing is due before the interval is over');
SELECT pg_temp.at(10.1);
SELECT pg_temp.add('l1', 'very-low');
SELECT is(pg_temp.pass(), 'reorder 3', '6 each rises but the highest');
SELECT is(pg_temp.places(), 'h1 highest, m1 high, l1 very-low, a1 very-low, a2 very-low', '6 behind what is there');
SELECT is(pg_temp.pass(), '', '6 once');
SELECT is(tq.task(pg_temp.id('a1')) ->> 'priority', 'lowest', '6 the task has its own priority');
SELECT is((SELECT priority FROM tq.task_overview WHERE task_id = pg_temp.id('a1')), 'lowest', '6 also in the views');
SELECT is(pg_temp.look('a1'), 'pending 5: scheduled>pending', '6 its status is the same');
SELECT is((SELECT pending FROM tq.queue_stats WHERE task_queue_id = 'test/a'), 5::bigint, '6 it is counted once');
SELECT is((SELECT count(*) FROM tq.list_pending_tasks('test/a')), 5::bigint, '6 and listed once');
SELECT pg_temp.at(20.2);
SELECT is(pg_temp.pass(), 'reorder 4', '6 and so on');
SELECT is(pg_temp.places(), 'h1 highest, m1 very-high, a1 low, a2 low, l1 low', '6 by the time since each became claimable');
SELECT pg_temp.at(45);
SELECT is(pg_temp.pass(), 'reorder 4', '6 several intervals at once');
SELECT is(pg_temp.places(), 'h1 highest, m1 highest, a1 high, a2 high, l1 high', '6 never above the highest');
-- others find it
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('a1'), 0, 'wg', 'w1')), 0, '6 claim_task finds it');
SELECT is(pg_temp.report('a2', 'canceled'), 'exception 5: scheduled>exception/canceled', '6 so does cancel_task');
SELECT is((SELECT count(*) FROM tq.why(pg_temp.id('l1')) WHERE reason = 'behind others'), 1::bigint, '6 and why()');
SELECT is(tq.skip_task(pg_temp.id('l1'), '{}') ->> 'state', 'completed', '6 and skip_task');
SELECT is(pg_temp.claims('test/a'), 'h1 m1', '6 and claims');
-- a retry begins with its own priority
SELECT pg_temp.report('a1', 'worker-shutdown');
SELECT is(pg_temp.places(), 'a1 lowest', '6 the next run begins with the priority of its task');
SELECT pg_temp.at(54);
SELECT is(pg_temp.pass(), '', '6 and its age is its own');
SELECT pg_temp.at(56);
SELECT is(pg_temp.pass(), 'reorder 1', '6 it ages as well');
SELECT is(pg_temp.claims('test/a'), 'a1', '6 claim it');
ROLLBACK TO s;

-- a change of the priority
SELECT pg_temp.add('a1', 'lowest'), pg_temp.add('a2', 'low'), pg_temp.add('a3', 'low');
SELECT pg_temp.at(11);
SELECT is(pg_temp.pass(), 'reorder 3', '6 three rise');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a1'), 'high')$$, '6 change the priority of one that has risen');
SELECT is(pg_temp.places(), 'a1 high, a2 medium, a3 medium', '6 it has that one');
SELECT is(pg_temp.pass(), 'reorder 1', '6 and its age counts from there');
SELECT is(pg_temp.places(), 'a1 very-high, a2 medium, a3 medium', '6 raised by its age');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a2'), 'medium')$$, '6 the one to which it has risen');
SELECT is(pg_temp.pass(), 'reorder 1', '6 rises from it');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a1'), 'lowest')$$, '6 lower one');
SELECT is(pg_temp.pass(), 'reorder 1', '6 rises again');
SELECT is(pg_temp.places(), 'a2 high, a3 medium, a1 very-low', '6 as its age says');
ROLLBACK TO s;

-- delays: from when it is claimable
SELECT pg_temp.add('d1', 'lowest', '{"policy": {"delay": "20 min"}}'), pg_temp.add('d2', 'lowest');
SELECT pg_temp.at(21);
SELECT is(pg_temp.pass(), 'delayed 1 reorder 1', '6 a delayed run');
SELECT is(pg_temp.places(), 'd2 low, d1 lowest', '6 has no age before it is claimable');
SELECT pg_temp.at(31);
SELECT is(pg_temp.pass(), 'reorder 2', '6 from then on it ages');
SELECT is(pg_temp.places(), 'd2 medium, d1 very-low', '6 like any other');
ROLLBACK TO s;

-- other queues, and settings that change
SELECT pg_temp.add('a1', 'lowest'), pg_temp.create('o1', '{"taskQueueId": "test/other", "priority": "lowest", "$deadline": "5 hours"}');
SELECT pg_temp.at(30);
SELECT is(pg_temp.pass(), 'reorder 1', '6 other queues do not age');
SELECT tq.set_queue('test/a', '{"agingInterval": 0}');
SELECT pg_temp.at(60);
SELECT is(pg_temp.pass(), '', '6 an interval of 0 is none');
SELECT is(pg_temp.places(), 'a1 medium, o1 lowest', '6 what has risen stays');
SELECT tq.set_queue('test/a', '{"agingInterval": 60}');
SELECT is(pg_temp.pass(), 'reorder 1', '6 another interval');
SELECT is(pg_temp.places(), 'a1 highest, o1 lowest', '6 holds at once');
ROLLBACK TO s;

-- many: in batches, the oldest first
SELECT count(*) FROM unnest(tq.enqueue_tasks('test/a', array_fill('{}'::jsonb, '{2500}')));
SELECT pg_temp.at(10.5);
SELECT is(pg_temp.pass(), 'reorder 2500', '6 many rise in batches');
SELECT is((SELECT count(*) FROM tq_internal.pending WHERE priority = 2), 2500::bigint, '6 all of them');
SELECT is((SELECT count(*) FROM (SELECT task < lag(task) OVER (ORDER BY seq) AS wrong FROM tq_internal.pending) AS p WHERE wrong), 0::bigint, '6 in order');
SELECT is(pg_temp.pass(), '', '6 then nothing is due');
ROLLBACK TO s;

-- with fairness
SELECT tq.set_queue('test/a', '{"fairness": true}');
SELECT pg_temp.add('x' || n, 'lowest', '{"policy": {"fairnessKey": "x"}}') FROM generate_series(1, 3) AS n;
SELECT pg_temp.add('y1', 'lowest', '{"policy": {"fairnessKey": "y"}}'), pg_temp.add('z1', 'very-low', '{"policy": {"fairnessKey": "z"}}');
SELECT pg_temp.at(11);
SELECT pg_temp.add('z2', 'very-low', '{"policy": {"fairnessKey": "z"}}');
SELECT is(pg_temp.pass(), 'reorder 5', '6 in a queue that is fair');
SELECT is(pg_temp.places(), 'z1 low, x1 very-low, y1 very-low, z2 very-low, x2 very-low, x3 very-low', '6 each goes behind its key');
SELECT is(pg_temp.claims('test/a', 10), 'z1 x1 y1 z2 x2 x3', '6 and is claimed there');
ROLLBACK TO s;

-- a steady stream of others does not starve it
CREATE FUNCTION pg_temp.starve(minutes int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
	claim record;
BEGIN
	PERFORM pg_temp.add('poor', 'lowest');
	FOR i IN 1..minutes LOOP
		PERFORM pg_temp.at(i), pg_temp.add('rich' || i || n, 'highest') FROM generate_series(1, 2) AS n;
		PERFORM pg_temp.pass();
		FOR claim IN SELECT * FROM tq.claim_work('test/a', 'wg', 'w1', 2) LOOP
			PERFORM tq.report_completed(claim.task_id, claim.run_id);
			IF claim.task_id = pg_temp.id('poor') THEN
				RETURN i;
			END IF;
		END LOOP;
	END LOOP;
	RETURN 0;
END $$;
SELECT is(pg_temp.starve(70), 61, '6 a task of the lowest priority is claimed after six intervals');

SELECT * FROM finish();
ROLLBACK;
