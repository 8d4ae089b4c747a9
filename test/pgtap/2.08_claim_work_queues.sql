-- doc/spec/taskcluster.md 2.8: claims from several queues: order, shares, patterns, limits.
-- Who is woken: test/isolation/specs/wait-several-queues.spec, test/t/055_wait_queues.pl.
BEGIN;
\ir policy.psql
-- The limits of which are tested below: set before the transaction writes anything that is counted.
SELECT tq.set_queue('lim/q1', '{"concurrentLimit": 2}'), tq.set_queue('lim/q2', '{"rateCount": 1, "rateInterval": 60}');

-- What a call claims: the number of runs of each queue, in the order of the call.
CREATE FUNCTION pg_temp.from_queues(queues text[], n int, mode text DEFAULT 'strict', worker text DEFAULT 'w1') RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(name || ' ' || claims, ', ' ORDER BY first), '')
	FROM (SELECT split_part(task_queue_id, '/', 2) AS name, count(*) AS claims, min(ordinality) AS first
		FROM tq.claim_work(queues, 'wg', worker, n, mode => mode) WITH ORDINALITY AS c GROUP BY 1) AS x
$$;
-- Removes what is pending; runs that were claimed stay.
CREATE FUNCTION pg_temp.clear() RETURNS void LANGUAGE sql AS $$ DELETE FROM tq_internal.pending $$;
CREATE FUNCTION pg_temp.fill_queue(queue text, n int) RETURNS void LANGUAGE sql AS $$ SELECT tq.enqueue_tasks(queue, array_fill('{}'::jsonb, ARRAY[n])) $$;
CREATE FUNCTION pg_temp.fill_queues(VARIADIC sizes int[]) RETURNS void LANGUAGE sql AS $$
	SELECT pg_temp.clear();
	SELECT pg_temp.fill_queue('test/q' || i, sizes[i]) FROM generate_subscripts(sizes, 1) AS i WHERE sizes[i] > 0
$$;

-- Which form a call is: an argument without a type is a text
SELECT pg_temp.fill_queue('test/q1', 9);
SELECT is((SELECT array_agg(x ORDER BY x) FROM (SELECT jsonb_object_keys(to_jsonb(c)) AS x FROM tq.claim_work('test/q1', 'wg', 'w1') AS c) AS k),
	'{credentials,payload,run_id,status,taken_until,task,task_id,worker_group,worker_id}', '2.8 a literal is one queue');
SELECT is((SELECT array_agg(x ORDER BY x) FROM (SELECT jsonb_object_keys(to_jsonb(c)) AS x FROM tq.claim_work(array['test/q1'], 'wg', 'w1') AS c) AS k),
	'{credentials,payload,run_id,status,taken_until,task,task_id,task_queue_id,worker_group,worker_id}', '2.8 an array is several, and its rows name theirs');
SELECT is((SELECT count(*) FROM tq.claim_work(task_queue_id => 'test/q1', worker_group => 'wg', worker_id => 'w1')), 1::bigint, '2.8 the name of the argument says which');
SELECT is((SELECT task_queue_id FROM tq.claim_work(task_queue_ids => '{test/q1}', worker_group => 'wg', worker_id => 'w1')), 'test/q1', '2.8 or several');
SELECT is((SELECT count(*) FROM tq.claim_work('test/q1', 'wg', 'w1', 1, '0')), 1::bigint, '2.8 with all arguments');
SELECT is((SELECT count(*) FROM tq.claim_work('test/q1', 'wg', 'w1', wait => '0', tasks => 1)), 1::bigint, '2.8 with some by name');
SELECT is((SELECT task_queue_id FROM tq.claim_work('{test/q1}', 'wg', 'w1', mode => 'strict')), 'test/q1', '2.8 mode is of the other form only');
PREPARE claim AS SELECT tq.claim_work($1, $2, $3, $4);
SELECT is((SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'claim'), '{text,text,text,integer}', '2.8 parameters of unknown type');
PREPARE claims AS SELECT tq.claim_work($1::text[], $2, $3, $4);
SELECT is((SELECT parameter_types::text FROM pg_prepared_statements WHERE name = 'claims'), '{text[],text,text,integer}', '2.8 with a cast');
DEALLOCATE ALL;
SELECT throws_ok($$SELECT tq.claim_work('{test/q1}', 'wg', 'w1')$$, 'TQ400', NULL, '2.8 without a type it is no queue');

-- strict
SELECT pg_temp.fill_queues(2, 3, 4);
SELECT is(pg_temp.from_queues('{test/q2,test/q3,test/q1}', 1), 'q2 1', '2.8 the first queue that has work');
SELECT is(pg_temp.from_queues('{test/q2,test/q3,test/q1}', 5), 'q2 2, q3 3', '2.8 then the next, until there are enough');
SELECT is(pg_temp.from_queues('{test/q2,test/none,test/q1,test/q3}', 2), 'q1 2', '2.8 others are empty');
SELECT is(pg_temp.from_queues('{test/q2,test/none,test/q1,test/q3}', 5), 'q3 1', '2.8 fewer');
SELECT is(pg_temp.from_queues('{test/q2,test/none,test/q1,test/q3}', 5), '', '2.8 none');
SELECT pg_temp.fill_queues(5);
SELECT is(pg_temp.from_queues('{test/q1,test/q1,test/q1}', 3), 'q1 3', '2.8 a repeated element counts once');
SELECT tq.enqueue('test/q1', priority => 'highest', task_id => pg_temp.id('high')) \g /dev/null
SELECT is((SELECT task_id FROM tq.claim_work('{test/none,test/q1}', 'wg', 'w1', mode => 'strict')), pg_temp.id('high'), '2.8 within a queue by priority');

-- round-robin: shares
SELECT pg_temp.fill_queues(100, 1, 100);
SELECT is((SELECT string_agg(x, ', ' ORDER BY x) FROM regexp_split_to_table(pg_temp.from_queues('{test/q1,test/q2,test/q3}', 12, 'round-robin'), ', ') AS x) IN ('q1 5, q2 1, q3 6', 'q1 6, q2 1, q3 5'),
	true, '2.8 equal shares of what the others leave');
SELECT is((SELECT array_agg(x ORDER BY x) FROM regexp_split_to_table(pg_temp.from_queues('{test/q1,test/q2,test/q3}', 100, 'round-robin'), ', ') AS x), '{q1 50,q3 50}', '2.8 of those that have work');
SELECT is((SELECT sum(split_part(x, ' ', 2)::int) FROM regexp_split_to_table(pg_temp.from_queues('{test/q1,test/q2,test/q3}', 1000, 'round-robin'), ', ') AS x), 89::bigint, '2.8 all that there is');
SELECT pg_temp.fill_queues(9, 9, 9);
CREATE TEMP TABLE turn AS SELECT n, pg_temp.from_queues('{test/q1,test/q2,test/q3}', 1, 'round-robin') AS got FROM generate_series(1, 9) AS n;
SELECT is((SELECT string_agg(got, ', ' ORDER BY n) FROM turn) IN (rtrim(repeat('q1 1, q2 1, q3 1, ', 3), ', '),
	rtrim(repeat('q2 1, q3 1, q1 1, ', 3), ', '), rtrim(repeat('q3 1, q1 1, q2 1, ', 3), ', ')), true, '2.8 each call begins at the next queue');
SELECT is(length(pg_temp.from_queues('{test/q1,test/q2,test/q3}', 4, 'round-robin')), length('q1 2, q2 1, q3 1'), '2.8 the first gets one more');

-- patterns
SELECT pg_temp.fill_queues(2, 3, 4);
SELECT pg_temp.fill_queue('test2/q1', 5), pg_temp.fill_queue('tes/q1', 5), pg_temp.fill_queue('other/q1', 5);
SELECT is((SELECT array_agg(x ORDER BY x) FROM regexp_split_to_table(pg_temp.from_queues('{test/*}', 1000), ', ') AS x), '{"q1 2","q2 3","q3 4"}', '2.8 a pattern: the queues of that provisioner only');
SELECT pg_temp.fill_queues(9, 9, 9);
SELECT is((SELECT array_agg(split_part(x, ' ', 2) ORDER BY 1) FROM regexp_split_to_table(pg_temp.from_queues('{test/*}', 3), ', ') AS x), '{1,1,1}', '2.8 they take turns, also in strict order');
SELECT is((SELECT array_agg(x ORDER BY x) FROM regexp_split_to_table(pg_temp.from_queues('{test/q2,test/*}', 10), ', ') AS x), '{"q1 1","q2 8","q3 1"}', '2.8 after a queue that comes first');
SELECT is(pg_temp.from_queues('{none/*,test/q1}', 1), 'q1 1', '2.8 a pattern that stands for none');
SELECT tq.enqueue('test/new', task_id => pg_temp.id('new'));
SELECT is((SELECT count(*) FROM tq.claim_work('{test/*}', 'wg', 'w1', 1000, mode => 'strict') WHERE task_queue_id = 'test/new'), 1::bigint, '2.8 a new queue');
SELECT throws_ok($$SELECT tq.claim_work('{test/q*}', 'wg', 'w1', mode => 'strict')$$, 'TQ400', NULL, '2.8 only a whole provisioner');
SELECT pg_temp.fill_queue('many/q' || n, 1) FROM generate_series(1, 100) AS n;
SELECT is((SELECT count(*) FROM tq.claim_work('{many/*}', 'wg', 'w1', 60, mode => 'strict')), 60::bigint, '2.8 a hundred queues');
SELECT is((SELECT count(*) FROM tq.claim_work('{many/q1,many/*,many/q2}', 'wg', 'w1', 60, mode => 'strict')), 40::bigint, '2.8 each counts once');
SELECT tq.enqueue('many/q101');
SELECT throws_ok($$SELECT tq.claim_work('{many/*}', 'wg', 'w1', mode => 'strict')$$, 'TQ409', NULL, '2.8 a pattern of more');
SELECT throws_ok($$SELECT tq.claim_work('{test/*,many/*}', 'wg', 'w1', mode => 'strict')$$, 'TQ409', NULL, '2.8 two patterns');

-- pause, limits
SELECT pg_temp.fill_queues(9, 9, 9);
SELECT tq.pause_queue('test/q1');
SELECT is(pg_temp.from_queues('{test/q1,test/q2}', 4), 'q2 4', '2.8 a queue that is paused is passed over');
SELECT is((SELECT array_agg(x ORDER BY x) FROM regexp_split_to_table(pg_temp.from_queues('{test/q1,test/q2,test/q3}', 6, 'round-robin'), ', ') AS x), '{"q2 3","q3 3"}', '2.8 its share is that of others');
SELECT tq.resume_queue('test/q1');
SELECT pg_temp.fill_queue('lim/q' || n, 9) FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.from_queues('{lim/q1,lim/q2,lim/q3}', 5), 'q1 2, q2 1, q3 2', '2.8 limits and rates are those of each queue');
SELECT is(pg_temp.from_queues('{lim/q1,lim/q2,lim/q3}', 1), 'q3 1', '2.8 at their limits');
SET tq.clock_offset = '61 s';
SELECT is(pg_temp.from_queues('{lim/q1,lim/q2,lim/q3}', 1), 'q2 1', '2.8 the interval is over');
RESET tq.clock_offset;

-- quarantine, activity of workers
SELECT pg_temp.fill_queues(0, 0, 0, 9, 9);
SELECT is(pg_temp.from_queues('{test/q4,test/q5,test/q6}', 1, worker => 'q'), 'q4 1', '5.6 a new worker');
SELECT is((SELECT count(*) FROM tq.list_workers('test/q5') WHERE worker_id = 'q'), 1::bigint, '5.6 it is seen in each queue that is named');
SELECT is(pg_temp.from_queues('{test/none}', 1, worker => 'q'), '', '5.6 nothing');
SELECT is((SELECT count(*) FROM tq.list_workers('test/none') WHERE worker_id = 'q'), 1::bigint, '5.6 also if there is nothing');
SELECT tq.quarantine_worker('test/q4', 'wg', 'q', pg_temp.clock() + '1 hour', 'why');
SELECT is(pg_temp.from_queues('{test/q4,test/q5}', 2, worker => 'q'), 'q5 2', '5.5 in quarantine in one of them');
SELECT pg_temp.fill_queue('seen/q1', 1), pg_temp.fill_queue('seen/q2', 1);
SELECT pg_temp.claims('seen/q2', 1);
SELECT is(pg_temp.from_queues('{seen/*}', 5, worker => 'p'), 'q1 1', '5.6 by a pattern');
SELECT is((SELECT array_agg(w.worker_type || ' ' || x.worker_id ORDER BY 1) FROM tq.list_task_queues() AS w, tq.list_workers(w.task_queue_id) AS x WHERE w.provisioner_id = 'seen'), '{"q1 p","q2 w1"}',
	'5.6 it is seen in those that gave it something');

-- a rollback
SELECT pg_temp.fill_queues(2, 2);
SAVEPOINT s;
SELECT count(*) FROM tq.claim_work('{test/q2}', 'wg', 'w1', 3, mode => 'strict');
ROLLBACK TO s;
SELECT is(pg_temp.from_queues('{test/q1,test/q2}', 4), 'q1 2, q2 2', '2.8 what was rolled back is there again');

SELECT * FROM finish();
ROLLBACK;
