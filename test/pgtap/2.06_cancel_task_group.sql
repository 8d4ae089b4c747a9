-- doc/spec/taskcluster.md 2.6: cancelTaskGroup.
BEGIN;
\ir helper.psql

-- The result without its ids, which come as sorted names.
CREATE FUNCTION pg_temp.cancel_group(g text) RETURNS text
LANGUAGE sql AS $$
	SELECT format('%s of %s: %s', r ->> 'cancelledCount', r ->> 'taskGroupSize',
		(SELECT string_agg(pg_temp.name(i::tq.slugid), ' ' ORDER BY pg_temp.name(i::tq.slugid)) FROM jsonb_array_elements_text(r -> 'taskIds') AS i))
	FROM tq.cancel_task_group(pg_temp.id(g)) AS r
$$;

SELECT pg_temp.throws($$SELECT tq.cancel_task_group(pg_temp.id('nobody'))$$, 'TQ404', '2.6 no such group');

SELECT pg_temp.create('p', '{"$group": "g"}');
SELECT pg_temp.running('r', '{"$group": "g"}');
SELECT pg_temp.create('u', '{"$group": "g", "$deps": ["p"]}');
SELECT pg_temp.resolved('c', 'completed', '{"$group": "g"}');
SELECT pg_temp.resolved('f', 'failed', '{"$group": "g"}');
SELECT pg_temp.resolved('t', 'intermittent-task', '{"$group": "g"}');
SELECT pg_temp.create('x', '{"$group": "g"}');
SELECT pg_temp.report('x', 'canceled');
SELECT pg_temp.create('short', '{"$group": "g", "$deadline": "5 minutes"}');
SELECT pg_temp.create('other', '{"$group": "h"}');
SELECT pg_temp.create('after', '{"$group": "h", "$deps": ["p"], "requires": "all-resolved"}');
SELECT pg_temp.create('never', '{"$group": "h", "$deps": ["p"]}');

SELECT pg_temp.throws($$SELECT tq.cancel_task_group(pg_temp.id('g'))$$, 'TQ409', '2.6 the group is not sealed');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('g'))$$, '2.6 seal it');
SET tq.clock_offset = '6 minutes';
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{c,f,x,short,other}'::text[]) AS n;
CREATE TEMP TABLE answer AS SELECT tq.cancel_task_group(pg_temp.id('g')) AS r;
SELECT is(pg_temp.keys(r), 'cancelledCount taskGroupId taskGroupSize taskIds', '2.6 keys of the answer') FROM answer;
SELECT is(r ->> 'taskGroupId', pg_temp.id('g')::text, '2.6 taskGroupId') FROM answer;
SELECT is(r -> 'taskGroupSize', '8', '2.6 taskGroupSize counts all tasks of the group') FROM answer;
SELECT is(r -> 'cancelledCount', '4', '2.6 cancelledCount counts those that this call changed') FROM answer;
SELECT is((SELECT string_agg(pg_temp.name(i::tq.slugid), ' ' ORDER BY pg_temp.name(i::tq.slugid)) FROM answer, jsonb_array_elements_text(r -> 'taskIds') AS i),
	'p r t u', '2.6 taskIds names them');
SELECT is(pg_temp.look(n), line, '2.6 as cancelTask does: ' || n) FROM (VALUES
	('p', 'exception 5: scheduled>exception/canceled'),
	('r', 'exception 5: scheduled>exception/canceled'),
	('u', 'exception 5: exception>exception/canceled'),
	('t', 'exception 4: scheduled>exception/intermittent-task task-retry>exception/canceled')) AS v (n, line);
SELECT is(pg_temp.run('r') ->> 'workerId', 'w1', '2.6 the worker of a running run is kept');
SELECT is(tq.status(pg_temp.id(n)), status, format('2.6 %s is left as it was', n)) FROM before;
SELECT is(pg_temp.state('after'), 'pending', '4.4 a canceled dependency releases all-resolved dependents of other groups');
SELECT is(pg_temp.state('never'), 'unscheduled', '4.4 and no others');
SELECT is((tq.task_queue_counts('test/q-p') -> 'pendingTasks')::bigint + (tq.task_queue_counts('test/q-t') -> 'pendingTasks')::bigint, 0::bigint, '2.6 nothing of it is pending any more');

SELECT is(pg_temp.cancel_group('g'), '0 of 8: ', '2.6 a repeat cancels nothing');
SELECT is((tq.cancel_task_group(pg_temp.id('g'))) -> 'taskIds', '[]', '2.6 and taskIds is an empty array');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('r'))$$, '2.6 a rerun in a sealed group');
SELECT is(pg_temp.cancel_group('g'), '1 of 8: r', '2.6 then only the new run is canceled');
SELECT is(pg_temp.look('r'), 'exception 5: scheduled>exception/canceled rerun>exception/canceled', '2.6 the new run');
RESET tq.clock_offset;

-- a dependency and its dependent in one group: canceling one first must not leave the other pending
SELECT pg_temp.create('d1', '{"$group": "k"}');
SELECT pg_temp.create('d2', '{"$group": "k", "$deps": ["d1"], "requires": "all-resolved"}');
SELECT pg_temp.create('d3', '{"$group": "k", "$deps": ["d2"], "requires": "all-resolved"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('k'))$$, '2.6 a chain of all-resolved');
SELECT is(pg_temp.cancel_group('k'), '3 of 3: d1 d2 d3', '2.6 all of the chain are canceled');
SELECT is(pg_temp.state('d1') || pg_temp.state('d2') || pg_temp.state('d3'), 'exceptionexceptionexception', '2.6 none is left over');

-- the group of a task alone
SELECT pg_temp.create('lone');
SELECT pg_temp.throws($$SELECT tq.cancel_task_group(pg_temp.id('lone'))$$, 'TQ409', '2.6 the group of a task alone, not sealed');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('lone'))$$, '2.6 seal it');
SELECT is(pg_temp.cancel_group('lone'), '1 of 1: lone', '2.6 cancel it');

SELECT * FROM finish();
ROLLBACK;
