-- doc/spec/taskcluster.md 2.14: changeTaskPriority, changeTaskGroupPriority.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.change(name text, priority text) RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.line(s) || ', ' || (s ->> 'priority') FROM tq.change_task_priority(pg_temp.id(name), priority) AS s
$$;
CREATE FUNCTION pg_temp.change_group(g text, priority text) RETURNS text
LANGUAGE sql AS $$
	SELECT format('%s %s: %s', r ->> 'tasksAffected', r ->> 'newPriority',
		(SELECT string_agg(pg_temp.name(i::tq.slugid), ' ' ORDER BY pg_temp.name(i::tq.slugid)) FROM jsonb_array_elements_text(r -> 'taskIds') AS i))
	FROM tq.change_task_group_priority(pg_temp.id(g), priority) AS r
$$;
-- That of the definition, and that of the waiting run, if there is one.
CREATE FUNCTION pg_temp.stored(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', tq_internal.priority_name(t.priority), tq_internal.priority_name(p.priority), tq_internal.priority_name(d.priority))
	FROM tq_internal.task t LEFT JOIN tq_internal.pending p ON p.task = t.id LEFT JOIN tq_internal.delayed d ON d.task = t.id
	WHERE t.task_id::text = pg_temp.id(name)::text
$$;

-- invalid priorities, unknown tasks
SELECT pg_temp.create('a');
SELECT pg_temp.throws(format($$SELECT tq.change_task_priority(pg_temp.id('a'), %L)$$, p), 'TQ400', format('2.14 no priority: "%s"', p))
FROM unnest(ARRAY['normal', '', 'High', 'highest ', '7', NULL]) AS p;
SELECT pg_temp.throws(format($$SELECT tq.change_task_group_priority(pg_temp.id('a'), %L)$$, p), 'TQ400', format('2.14 nor for a group: "%s"', p))
FROM unnest(ARRAY['normal', '', 'High', NULL]) AS p;
SELECT pg_temp.throws($$SELECT tq.change_task_priority(NULL, 'high')$$, 'TQ400', '2.14 no task id');
SELECT pg_temp.throws($$SELECT tq.change_task_group_priority(NULL, 'high')$$, 'TQ400', '2.14 no group id');
SELECT pg_temp.throws($$SELECT tq.change_task_priority('x', 'high')$$, '22P02', '2.14 what is no slugid');
SELECT pg_temp.throws($$SELECT tq.change_task_priority(pg_temp.id('nobody'), 'high')$$, 'TQ404', '2.14 no such task');
SELECT pg_temp.throws($$SELECT tq.change_task_priority(pg_temp.id('nobody'), 'normal')$$, 'TQ400', '2.14 an invalid priority is reported first');
SELECT pg_temp.throws($$SELECT tq.change_task_group_priority(pg_temp.id('nobody'), 'high')$$, 'TQ404', '2.14 no such group');

-- pending: every priority in turn, in status and definition, and nothing else
SELECT is(pg_temp.change('a', p), 'pending 5: scheduled>pending, ' || p, '2.14 a pending task gets ' || p)
FROM unnest('{highest,very-high,high,medium,low,very-low,lowest}'::text[]) AS p;
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status, tq.task(pg_temp.id('a')) AS task;
CREATE TEMP TABLE answer AS SELECT tq.change_task_priority(pg_temp.id('a'), 'medium') AS status;
SELECT is(answer.status, before.status || '{"priority": "medium"}', '2.14 returns the status, in which only the priority is new') FROM answer, before;
SELECT is(tq.status(pg_temp.id('a')), status, '2.14 which is then that of the task') FROM answer;
SELECT is(tq.task(pg_temp.id('a')), task || '{"priority": "medium"}', '2.14 and of its definition') FROM before;
SELECT pg_temp.throws($$SELECT tq.change_task_priority(pg_temp.id('a'), 'medium')$$, 'TQ409', '2.14 the same priority again');
SELECT isnt(pg_temp.error($$SELECT tq.change_task_priority(pg_temp.id('a'), 'medium')$$) ->> 'message', NULL, '2.14 has a message');
SELECT unalike(pg_temp.error($$SELECT tq.change_task_priority(pg_temp.id('a'), 'medium')$$) ->> 'message', '%resolved%', '10 (15) which does not speak of a resolved task');
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a'))$$, 'TQ409', '2.1 a repeat of create_task conflicts after a change');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"priority": "medium"}'))$$, 'a', '2.1 but not with the new priority');

-- the order of claims
SELECT pg_temp.create(n, '{"taskQueueId": "test/order"}') FROM unnest('{o1,o2,o3,o4,o5}'::text[]) AS n;
SELECT is(pg_temp.change('o4', 'high'), 'pending 5: scheduled>pending, high', '2.14 raise the fourth');
SELECT is(pg_temp.change('o2', 'very-high'), 'pending 5: scheduled>pending, very-high', '2.14 raise the second further');
SELECT is(pg_temp.change('o5', 'high'), 'pending 5: scheduled>pending, high', '2.14 raise the fifth as the fourth');
SELECT is(pg_temp.change('o4', 'lowest'), 'pending 5: scheduled>pending, lowest', '2.14 and lower the fourth again');
SELECT is(pg_temp.claims('test/order'), 'o2 o5 o1 o3 o4', '5.1 claimed by priority, then in the order of becoming pending');

-- unscheduled: until it is scheduled, and then
SELECT pg_temp.create('u1', '{"$deps": ["u1"]}');
SELECT pg_temp.create('u2', '{"$deps": ["u1"], "taskQueueId": "test/late"}');
SELECT pg_temp.create('u3', '{"taskQueueId": "test/late"}');
SELECT is(pg_temp.change('u1', 'high'), 'unscheduled 5:, high', '2.14 an unscheduled task');
SELECT is(pg_temp.change('u2', 'low'), 'unscheduled 5:, low', '2.14 and one that waits for it');
SELECT is(pg_temp.stored('u2'), 'low', '2.14 it is stored');
SELECT tq.schedule_task(pg_temp.id('u1')) ->> 'state';
SELECT is(pg_temp.stored('u1'), 'high high', '2.14 scheduled by hand, the run has it');
SELECT pg_temp.work('u1', 'completed');
SELECT is(pg_temp.stored('u2'), 'low low', '2.14 scheduled by its dependency, the run has it');
SELECT is(pg_temp.claims('test/late'), 'u2 u3', '2.14 and is claimed before an earlier one of lower priority');

-- a rerun of a task that never had a run is not a resolution
SELECT pg_temp.create('v', '{"$deps": ["v"]}');
SELECT tq.rerun_task(pg_temp.id('v')) ->> 'state';
SELECT is(pg_temp.change('v', 'high'), 'pending 5: rerun>pending, high', '2.14 a first run by rerun_task');
SELECT is(pg_temp.stored('v'), 'high high', '2.14 its run has it');
SELECT pg_temp.work('v', 'worker-shutdown');
SELECT is(pg_temp.change('v', 'low'), 'pending 4: rerun>exception/worker-shutdown retry>pending, low', '2.14 nor is its retry');

-- delayed
SELECT pg_temp.create('d', '{"taskQueueId": "test/delayed"}');
SELECT pg_temp.create('e', '{"taskQueueId": "test/delayed"}');
WITH moved AS (DELETE FROM tq_internal.pending WHERE task = (SELECT id FROM tq_internal.task WHERE task_id::text = pg_temp.id('d')::text) RETURNING *)
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT pg_temp.base() + interval '10 minutes', task, scheduled, queue, priority, run_id, retries_left, reason_created FROM moved;
SELECT is(pg_temp.change('d', 'highest'), 'pending 5: scheduled>pending, highest', '2.14 a delayed run');
SELECT is(pg_temp.stored('d'), 'highest highest', '2.14 has it');
SELECT is(pg_temp.pass('11 minutes'), 'delayed 1', '2.14 when it is due');
SELECT is(pg_temp.claims('test/delayed'), 'd e', '2.14 it is claimed by it');
RESET tq.clock_offset;

-- running: the run goes on, its retry has the new priority
SELECT pg_temp.running('r', '{"taskQueueId": "test/retry"}');
SELECT pg_temp.create('s', '{"taskQueueId": "test/retry"}');
CREATE TEMP TABLE running AS SELECT tq.status(pg_temp.id('r')) AS status;
SELECT is(pg_temp.change('r', 'low'), 'running 5: scheduled>running, low', '2.14 a running task');
SELECT is(tq.status(pg_temp.id('r')) -> 'runs', status -> 'runs', '2.14 its run stays as it was') FROM running;
SELECT is(pg_temp.report('r', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '2.14 it is retried');
SELECT is(pg_temp.stored('r'), 'low low', '2.14 the retry has the new priority');
SELECT is(pg_temp.change('r', 'high'), 'pending 4: scheduled>exception/worker-shutdown retry>pending, high', '2.14 a retry is no resolution: change it again');
SELECT is(pg_temp.claims('test/retry'), 'r s', '2.14 the retry goes first');
SELECT is(pg_temp.report('r', 'intermittent-task'), 'pending 3: scheduled>exception/worker-shutdown retry>exception/intermittent-task task-retry>pending', '2.14 retried by the task');
SELECT is(pg_temp.stored('r'), 'high high', '2.14 with its priority');
SELECT pg_temp.take('r');
SELECT is(pg_temp.change('r', 'medium'), 'running 3: scheduled>exception/worker-shutdown retry>exception/intermittent-task task-retry>running, medium', '2.14 running again');
SELECT alike(pg_temp.pass('21 minutes'), 'claim-expired %', '2.14 its claim expires');
SELECT is(pg_temp.stored('r'), 'medium medium', '2.14 and the retry has the new priority');
RESET tq.clock_offset;
SELECT pg_temp.running('k', '{"taskQueueId": "test/batch"}');
SELECT is(pg_temp.change('k', 'very-low'), 'running 5: scheduled>running, very-low', '2.14 one that is resolved by resolve()');
SELECT is(outcome, 'retried', '2.14 with a retry') FROM tq.resolve(pg_temp.ids('k'), '{0}', 'worker-shutdown');
SELECT is(pg_temp.stored('k'), 'very-low very-low', '2.14 the retry has the new priority');

-- resolved, also after a rerun
SELECT pg_temp.resolved('c1', 'completed');
SELECT pg_temp.resolved('c2', 'failed');
SELECT pg_temp.resolved('c3', 'malformed-payload');
SELECT pg_temp.create('c4');
SELECT pg_temp.report('c4', 'canceled');
SELECT pg_temp.create('c5', '{"$deps": ["c5"]}');
SELECT pg_temp.report('c5', 'canceled');
SELECT pg_temp.throws(format($$SELECT tq.change_task_priority(pg_temp.id(%L), 'high')$$, n), 'TQ409', '2.14 resolved: ' || pg_temp.look(n))
FROM unnest('{c1,c2,c3,c4,c5}'::text[]) AS n;
SELECT alike(pg_temp.error($$SELECT tq.change_task_priority(pg_temp.id('c1'), 'high')$$) ->> 'message', '%resolved%', '2.14 the message names the reason');
SELECT tq.rerun_task(pg_temp.id(n)) ->> 'state' FROM unnest('{c1,c2,c5}'::text[]) AS n;
SELECT pg_temp.take('c2');
SELECT pg_temp.throws(format($$SELECT tq.change_task_priority(pg_temp.id(%L), 'high')$$, n), 'TQ409', '2.14 and after a rerun: ' || pg_temp.look(n))
FROM unnest('{c1,c2,c5}'::text[]) AS n;
SELECT pg_temp.report('c2', 'worker-shutdown');
SELECT pg_temp.throws($$SELECT tq.change_task_priority(pg_temp.id('c2'), 'high')$$, 'TQ409', '2.14 and a retry of a rerun: ' || pg_temp.look('c2'));

-- the deadline
SELECT pg_temp.create('l1', '{"$deadline": "5 minutes"}');
SELECT pg_temp.create('l2', '{"$deadline": "5 minutes", "$deps": ["l2"]}');
SELECT pg_temp.running('l3', '{"$deadline": "5 minutes"}');
SET tq.clock_offset = '4 minutes';
SELECT is(pg_temp.change('l1', 'high'), 'pending 5: scheduled>pending, high', '3.1 (48) before its deadline');
SET tq.clock_offset = '6 minutes';
SELECT pg_temp.throws(format($$SELECT tq.change_task_priority(pg_temp.id(%L), 'low')$$, n), 'TQ409', '3.1 (48) past its deadline: ' || pg_temp.state(n))
FROM unnest('{l1,l2,l3}'::text[]) AS n;
SELECT pg_temp.throws($$SELECT tq.change_task_priority(pg_temp.id('l1'), 'high')$$, 'TQ409', '3.1 (48) which comes before the check for the same priority');
SELECT alike(pg_temp.error($$SELECT tq.change_task_priority(pg_temp.id('l1'), 'high')$$) ->> 'message', '%deadline%', '3.1 (48) by its message');
RESET tq.clock_offset;

-- a change that is rolled back
SELECT pg_temp.create('w');
DO $$
BEGIN
	PERFORM tq.change_task_priority(pg_temp.id('w'), 'high');
	RAISE EXCEPTION 'undo';
EXCEPTION WHEN raise_exception THEN NULL;
END $$;
SELECT is(pg_temp.stored('w'), 'lowest lowest', '2.14 a change that is rolled back has no effect');

-- groups
SELECT pg_temp.create('p', '{"$group": "g"}');
SELECT pg_temp.running('q', '{"$group": "g"}');
SELECT pg_temp.create('x', '{"$group": "g", "$deps": ["p"]}');
SELECT pg_temp.create('y', '{"$group": "g", "priority": "high"}');
SELECT pg_temp.create('z', '{"$group": "g", "$deadline": "5 minutes"}');
SELECT pg_temp.resolved('m', 'failed', '{"$group": "g"}');
SELECT pg_temp.resolved('n', 'completed', '{"$group": "g"}');
SELECT tq.rerun_task(pg_temp.id('n')) ->> 'state';
SELECT pg_temp.resolved('t', 'intermittent-task', '{"$group": "g"}');
SELECT pg_temp.create('other', '{"$group": "h"}');
SET tq.clock_offset = '6 minutes';
CREATE TEMP TABLE others AS SELECT n, pg_temp.stored(n) AS stored FROM unnest('{y,z,m,n,other}'::text[]) AS n;
CREATE TEMP TABLE changed AS SELECT tq.change_task_group_priority(pg_temp.id('g'), 'high') AS r;
SELECT is(pg_temp.keys(r), 'newPriority schedulerId taskGroupId taskIds tasksAffected', '2.14 keys of the answer') FROM changed;
SELECT is(r - 'taskIds', jsonb_build_object('taskGroupId', pg_temp.id('g'), 'schedulerId', '-', 'newPriority', 'high', 'tasksAffected', 4), '2.14 and values') FROM changed;
SELECT is((SELECT string_agg(pg_temp.name(i::tq.slugid), ' ' ORDER BY pg_temp.name(i::tq.slugid)) FROM jsonb_array_elements_text(r -> 'taskIds') AS i),
	'p q t x', '2.14 taskIds are those that were changed') FROM changed;
SELECT is(r -> 'taskIds', (SELECT jsonb_agg(i ORDER BY i::tq.slugid) FROM jsonb_array_elements_text(r -> 'taskIds') AS i),
	'2.14 in their order') FROM changed;
SELECT is(pg_temp.stored(n), stored, '2.14 changed: ' || n) FROM (VALUES ('p', 'high high'), ('q', 'high'), ('t', 'high high'), ('x', 'high')) AS v (n, stored);
SELECT is(pg_temp.stored(n), stored, '2.14 left as it was: ' || n) FROM others;
SELECT is(pg_temp.change_group('g', 'high'), '0 high: ', '2.14 a repeat changes nothing');
SELECT is(tq.change_task_group_priority(pg_temp.id('g'), 'high') -> 'taskIds', '[]', '2.14 and taskIds is an empty array');
SELECT is(pg_temp.change_group('g', 'low'), '5 low: p q t x y', '2.14 another change has the one that had that priority, too');
RESET tq.clock_offset;

-- the group of a task alone, sealed groups, groups with another scheduler
SELECT pg_temp.create('lone', '{"schedulerId": "sched"}');
SELECT is(pg_temp.change_group('lone', 'low'), '1 low: lone', '2.14 the group of a task alone');
SELECT is(tq.change_task_group_priority(pg_temp.id('lone'), 'low') ->> 'schedulerId', 'sched', '2.14 schedulerId is the group''s');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('lone'))$$, '2.14 seal it');
SELECT is(pg_temp.change_group('lone', 'high'), '1 high: lone', '2.14 a sealed group may change');

-- many
SELECT lives_ok($$SELECT tq.enqueue('test/many', task_group_id => pg_temp.id('many')) FROM generate_series(1, 500)$$, '2.14 a group of 500');
SELECT is(tq.change_task_group_priority(pg_temp.id('many'), 'high') -> 'tasksAffected', '500', '2.14 is changed in one call');
SELECT is(count(*), 500::bigint, '2.14 every run of it') FROM tq_internal.pending p JOIN tq_internal.queue q ON q.id = p.queue WHERE q.task_queue_id = 'test/many' AND p.priority = 5;

-- there and back: each run has two entries in the index of the order, and no pass of a claim ends between them
SELECT tq.enqueue('test/back' || n) FROM generate_series(0, 1) AS n WHERE n = 1;
SELECT tq.enqueue('test/back' || n, task_group_id => pg_temp.id('back')) FROM generate_series(0, 1) AS n, generate_series(1, 600);
SELECT tq.change_task_group_priority(pg_temp.id('back'), 'high') IS NULL;
SELECT tq.change_task_group_priority(pg_temp.id('back'), 'lowest') IS NULL;
SELECT is((SELECT count(*) FROM tq.claim_work('test/back' || n, 'group', 'worker', 1000)), 600 + n, '2.14 there and back: each is claimed, after ' || n)
FROM generate_series(0::bigint, 1) AS n;

SELECT * FROM finish();
ROLLBACK;
