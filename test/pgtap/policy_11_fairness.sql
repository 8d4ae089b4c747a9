-- doc/spec/policy.md 11.4: claims go round the fairness keys.
BEGIN;
\ir policy.psql

-- Tasks a1, a2, … with key a; those of key - have none.
CREATE FUNCTION pg_temp.keyed(names text, queue text, more jsonb DEFAULT '{}') RETURNS bigint
LANGUAGE sql AS $$
	SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(name), 'task', pg_temp.def(name,
		jsonb_build_object('taskQueueId', queue, '$deadline', '5 hours')
		|| CASE WHEN name LIKE '-%' THEN '{}' ELSE jsonb_build_object('policy', jsonb_build_object('fairnessKey', left(name, 1))) END
		|| more)) ORDER BY n))
	FROM string_to_table(names, ' ') WITH ORDINALITY AS u (name, n)
$$;
CREATE FUNCTION pg_temp.series(key text, first int, last int) RETURNS text
LANGUAGE sql AS $$ SELECT string_agg(key || n, ' ' ORDER BY n) FROM generate_series(first, last) AS n $$;
-- Keys of what a claim takes.
CREATE FUNCTION pg_temp.keys_of(queue text, n int) RETURNS text
LANGUAGE sql AS $$ SELECT regexp_replace(pg_temp.claims(queue, n), '[0-9 ]', '', 'g') $$;

-- settings
SELECT is(tq.set_queue('test/s', '{"fairness": true}'), '{"fairness": true}', '11.4 a setting of the queue');
SELECT is(tq.set_queue('test/s', '{"fairness": null, "fairnessWeights": {"a": 2.5, "": 0.001}}'), '{"fairnessWeights": {"": 0.001, "a": 2.5}}', '11.4 weights by key');
SELECT pg_temp.throws(format('SELECT tq.set_queue(%L, %L)', 'test/s', settings), 'TQ400', '11.4 bad: ' || settings)
FROM unnest(ARRAY['{"fairness": 1}', '{"fairness": "yes"}', '{"fairnessWeights": 3}', '{"fairnessWeights": []}', '{"fairnessWeights": {"a": 0}}',
	'{"fairnessWeights": {"a": -1}}', '{"fairnessWeights": {"a": "2"}}', '{"fairnessWeights": {"a": null, "b": [1]}}', '{"fairnessWeights": {"a": 0.0009}}',
	'{"fairnessWeights": {"a": 1000.1}}', '{"fairnessWeights": {"a": 1e400}}']) AS settings;
SELECT lives_ok($$SELECT tq.set_queue('test/s', '{"fairnessWeights": {"a": 1000, "b": 0.001}}')$$, '11.4 the least and the greatest weight');

-- without the setting, keys have no effect
SAVEPOINT s;
SELECT pg_temp.keyed('a1 a2 a3 b1', 'test/none');
SELECT is(pg_temp.claims('test/none'), 'a1 a2 a3 b1', '11.4 a queue that is not fair');
SELECT is((SELECT count(*) FROM tq_internal.pending WHERE seq <> task), 0::bigint, '11.4 has ids as places');

ROLLBACK TO s;

-- round the keys
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 8), 'test/f');
SELECT pg_temp.keyed('b1 b2 b3', 'test/f');
SELECT pg_temp.keyed('-1 -2', 'test/f');
SELECT is(pg_temp.claims('test/f', 4), 'a1 b1 -1 a2', '11.4 each key in turn, and the tasks without one');
SELECT pg_temp.keyed('c1 c2', 'test/f');
SELECT is(pg_temp.claims('test/f', 20), 'b2 -2 c1 a3 b3 a4 c2 a5 a6 a7 a8', '11.4 a key that comes later is neither first nor last');
SELECT is(pg_temp.keyed('a9 b4 a10 b5', 'test/f'), 4::bigint, '11.4 one call with two keys');
SELECT is(pg_temp.claims('test/f', 20), 'a9 b4 a10 b5', '11.4 keys that come back');
SELECT is(tq.task(pg_temp.id('a9')) #>> '{policy,fairnessKey}', 'a', '11.4 task() shows the key');
ROLLBACK TO s;

-- one by one, the order within a key is that of creation
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(name, 'test/f') FROM string_to_table('a1 a2 b1 a3 c1 b2 a4 c2', ' ') AS name;
SELECT is(pg_temp.claims('test/f', 20), 'a1 b1 c1 a2 b2 c2 a3 a4', '11.4 single creations');
ROLLBACK TO s;

-- ever new keys do not hold up an old one
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 3), 'test/f');
CREATE FUNCTION pg_temp.flood(rounds int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	got text := '';
BEGIN
	FOR i IN 1..rounds LOOP
		PERFORM pg_temp.keyed(format('x%s y%s', i, i), 'test/f', jsonb_build_object('policy', jsonb_build_object('fairnessKey', 'k' || i)));
		got := got || left(pg_temp.claims('test/f', 1), 1);
	END LOOP;
	RETURN got;
END $$;
SELECT is(length(replace(replace(pg_temp.flood(12), 'x', ''), 'y', '')), 3, '11.4 a stream of new keys');
ROLLBACK TO s;

-- many keys: in order of arrival
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(string_agg(chr(n) || '1', ' ' ORDER BY n DESC), 'test/f') FROM generate_series(ascii('b'), ascii('y')) AS n;
SELECT is(pg_temp.keys_of('test/f', 30), 'yxwvutsrqponmlkjihgfedcb', '11.4 keys that come at one time, first come first served');
ROLLBACK TO s;

-- weights
SELECT tq.set_queue('test/f', '{"fairnessWeights": {"a": 2, "b": 0.5}}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 20), 'test/f'), pg_temp.keyed(pg_temp.series('b', 1, 20), 'test/f'), pg_temp.keyed(pg_temp.series('c', 1, 20), 'test/f');
SELECT is(regexp_replace(pg_temp.keys_of('test/f', 28), 'c|b', '', 'g'), repeat('a', 16), '11.4 weights: 16 of 28 have weight 2');
SELECT is(regexp_replace(pg_temp.keys_of('test/f', 7), '[ac]', '', 'g'), 'b', '11.4 one of 7 has weight 0.5');
ROLLBACK TO s;
SELECT tq.set_queue('test/f', '{"fairnessWeights": {"": 3}}');
SELECT pg_temp.keyed(pg_temp.series('-', 1, 20), 'test/f'), pg_temp.keyed(pg_temp.series('b', 1, 20), 'test/f');
SELECT is(length(replace(pg_temp.keys_of('test/f', 12), 'b', '')), 9, '11.4 the tasks without a key have a weight, too');
SELECT tq.set_queue('test/f', '{"fairness": true, "fairnessWeights": null}');
SELECT pg_temp.keyed(pg_temp.series('c', 1, 6), 'test/f'), pg_temp.keyed(pg_temp.series('d', 1, 6), 'test/f');
SELECT is(regexp_replace(pg_temp.keys_of('test/f', 30), '[-b]', '', 'g'), 'cdcdcdcdcdcd', '11.4 weights that are removed hold no longer');
ROLLBACK TO s;

-- priorities
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 5), 'test/f'), pg_temp.keyed('b1 b2', 'test/f');
SELECT pg_temp.keyed('c1 c2 c3', 'test/f', '{"priority": "high"}'), pg_temp.keyed('d1', 'test/f', '{"priority": "high"}');
SELECT is(pg_temp.claims('test/f', 5), 'c1 d1 c2 c3 a1', '11.4 a higher priority comes first, and is fair in itself');
SELECT is(pg_temp.look('a4'), 'pending 5: scheduled>pending', '11.4 pending');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a5'), 'high')$$, '11.4 change a priority');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a4'), 'high')$$, '11.4 of another one');
SELECT pg_temp.keyed('e1', 'test/f', '{"priority": "high"}');
SELECT is(pg_temp.claims('test/f', 20), 'a5 e1 a4 b1 a2 b2 a3', '11.4 it goes behind its key in the new priority');
ROLLBACK TO s;

-- retries, deferrals, delays: a new place
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed('a1 a2 a3 b1 b2', 'test/f');
SELECT is(pg_temp.claims('test/f', 2), 'a1 b1', '11.4 claim two');
SELECT pg_temp.report('a1', 'worker-shutdown');
SELECT tq.defer_task(pg_temp.id('b1'), 0, '0');
SELECT is(pg_temp.claims('test/f', 20), 'a2 b2 a3 b1 a1', '11.4 retries and deferred runs go behind their key');
SELECT pg_temp.keyed('d1 d2', 'test/f', '{"policy": {"fairnessKey": "d", "delay": "1 hour"}}'), pg_temp.keyed('e1 e2', 'test/f');
SET LOCAL tq.clock_offset = '61 minutes';
SELECT is(pg_temp.pass() ~ 'delayed 2', true, '11.4 delayed ones become claimable');
SELECT is(rtrim(regexp_replace(pg_temp.claims('test/f', 20), '[ab]. ?', '', 'g')), 'e1 d1 e2 d2', '11.4 and get their places then');
ROLLBACK TO s;

-- a retry of an old task knows the newer ones
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 6), 'test/f'), pg_temp.keyed(pg_temp.series('b', 1, 6), 'test/f');
SELECT is(pg_temp.claims('test/f', 2), 'a1 b1', '11.4 claim the oldest');
SET LOCAL tq.clock_offset = '2 s';
SELECT pg_temp.report('a1', 'worker-shutdown');
SELECT pg_temp.keyed('a7', 'test/f');
SELECT is(pg_temp.claims('test/f', 20), 'a2 b2 a3 b3 a4 b4 a5 b5 a6 b6 a1 a7', '11.4 a retry goes behind the newer ones');
ROLLBACK TO s;

-- cancellation, claim by name, deletion
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed('a1 a2 a3 b1 b2 b3', 'test/f');
SELECT is(pg_temp.report('a2', 'canceled'), 'exception 5: scheduled>exception/canceled', '11.4 cancel one');
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('b2'), 0, 'wg', 'w1')), 0, '11.4 claim one by name');
SELECT tq.delete_task(pg_temp.id('b3'));
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY ordinality) FROM tq.list_pending_tasks('test/f') WITH ORDINALITY AS l), 'a1 b1 a3', '11.4 lists are in that order');
SELECT is((SELECT detail FROM tq.why(pg_temp.id('a3')) WHERE reason = 'behind others'), '2 before it in test/f', '11.4 why() counts those before it');
SELECT is(pg_temp.claims('test/f', 20), 'a1 b1 a3', '11.4 the others remain');
ROLLBACK TO s;

-- what is gone is no drawback: a second later the last place is looked up
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed(pg_temp.series('a', 1, 30), 'test/f'), pg_temp.keyed('b1 b2 b3 b4', 'test/f');
SELECT count(tq.cancel_task(pg_temp.id('a' || n))) FROM generate_series(3, 30) AS n;
SAVEPOINT c;
SELECT pg_temp.keyed(pg_temp.series('c', 1, 30), 'test/f');
ROLLBACK TO c;
SET LOCAL tq.clock_offset = '2 s';
SELECT pg_temp.keyed('a31 a32 c31', 'test/f');
SELECT is(pg_temp.claims('test/f', 20), 'a1 b1 c31 a2 b2 b3 a31 b4 a32', '11.4 neither what was cancelled nor what was rolled back');
ROLLBACK TO s;

-- switched on: what was pending gets places, too
SELECT pg_temp.keyed(pg_temp.series('a', 1, 5), 'test/f'), pg_temp.keyed('b1 b2', 'test/f');
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT is(pg_temp.pass(), 'reorder 7', '11.4 maintenance places what was pending before');
SELECT is(pg_temp.pass(), '', '11.4 once');
SELECT pg_temp.keyed('c1', 'test/f');
SELECT is(pg_temp.claims('test/f', 5), 'a1 b1 c1 a2 b2', '11.4 switched on');
-- switched off: places remain, and others come behind
SELECT tq.set_queue('test/f', '{"fairness": false}');
SELECT pg_temp.keyed('d1', 'test/f');
SELECT lives_ok($$SELECT tq.change_task_priority(pg_temp.id('a5'), 'high')$$, '11.4 a place in a queue that was fair');
SELECT pg_temp.keyed('e1', 'test/f', '{"priority": "high"}');
SELECT is(pg_temp.claims('test/f', 20), 'a5 e1 a3 a4 d1', '11.4 switched off');
ROLLBACK TO s;

-- a place that another run has
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed('a1 a2 a3', 'test/f'), pg_temp.keyed('b1 b2 b3 b4 b5 b6', 'test/f');
-- the next place of a is one turn and a number behind the last one
WITH a AS (SELECT max(p.seq) AS seq FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task WHERE t.task_id = pg_temp.id('a3'))
UPDATE tq_internal.pending p SET seq = (a.seq >> 12 << 12) + 4194304 + n.number
FROM a, (SELECT t.id, row_number() OVER (ORDER BY t.id) + 6 AS number FROM tq_internal.task t WHERE t.task_id = ANY (pg_temp.ids('b1', 'b2', 'b3'))) AS n
WHERE p.task = n.id;
SELECT is(pg_temp.keyed('a4', 'test/f'), 1::bigint, '11.4 a place that is taken');
SELECT is((SELECT count(DISTINCT seq) FROM tq_internal.pending), 10::bigint, '11.4 gives another one');
SELECT is(length(pg_temp.keys_of('test/f', 20)), 10, '11.4 all are claimed');
ROLLBACK TO s;

-- what shared memory does not know is read: the tags of another queue stand in
-- for a start of the server
SELECT tq.set_queue('test/f', '{"fairness": true}'), tq.set_queue('test/g', '{"fairness": true}');
SELECT pg_temp.keyed('a1 a2 a3 -1 -2 -3', 'test/f');
UPDATE tq_internal.pending SET queue = g.id FROM tq_internal.queue g WHERE g.task_queue_id = 'test/g';
UPDATE tq_internal.task SET queue = g.id FROM tq_internal.queue g WHERE g.task_queue_id = 'test/g';
SELECT pg_temp.keyed('a4 -4 b1', 'test/g');
SELECT is(replace(pg_temp.claims('test/g', 20), 'b1 ', ''), 'a1 -1 a2 -2 a3 -3 a4 -4', '11.4 after a start of the server');

-- keys with a gate
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT pg_temp.keyed('s1 s2', 'test/f', '{"policy": {"fairnessKey": "s", "serialKey": "s"}}'), pg_temp.keyed('t1 t2 t3', 'test/f');
SELECT is(pg_temp.claims('test/f', 20), 't1 t2 t3', '11.4 a serial key waits apart');
SELECT pg_temp.pass();
SELECT is(pg_temp.claims('test/f', 20), 's1', '11.4 and has a place when it is let in');
ROLLBACK TO s;

-- A key has a time of its own in each priority.  Of 400 keys in seven priorities, some have two of them in one set of
-- shared memory (lru_set.c), where they differ in nothing but the priority: the first task of each begins in the first turn.
SELECT tq.set_queue('test/f', '{"fairness": true}');
SELECT count(tq.enqueue('test/f', priority => tq_internal.priority_name(p), policy => jsonb_build_object('fairnessKey', 'k' || k)))
FROM generate_series(1, 400) AS k, generate_series(1, 7) AS p;
SELECT is((SELECT string_agg(DISTINCT format('%s: %s', priority, (seq + 4611686018427387904) >> 22), ', ') FROM tq_internal.pending),
	'1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1', '11.4 priorities do not share the time of a key');

SELECT * FROM finish();
ROLLBACK;
