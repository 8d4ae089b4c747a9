-- doc/spec/taskcluster.md 2.1: create_tasks, the batch form of createTask.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.batch(VARIADIC entries jsonb[]) RETURNS bigint
LANGUAGE sql AS $$
	SELECT tq.create_tasks(to_jsonb(entries))
$$;

SELECT is(tq.create_tasks('[]'), 0::bigint, 'create_tasks of none');
SELECT is(pg_temp.batch(pg_temp.entry('a')), 1::bigint, 'create_tasks of one');
SELECT is(pg_temp.look('a'), 'pending 5: scheduled>pending', 'create_tasks: the task exists');
SELECT is(tq.task(pg_temp.id('a')) ->> 'expires', pg_temp.iso(pg_temp.next_year(pg_temp.base() + interval '1 hour')), 'create_tasks: with its defaults');

-- dependencies inside the batch, in any order
SELECT is(pg_temp.batch(
	pg_temp.entry('sink', '{"$deps": ["left", "right"]}'),
	pg_temp.entry('left', '{"$deps": ["source"]}'),
	pg_temp.entry('source'),
	pg_temp.entry('right', '{"$deps": ["source", "a"], "requires": "all-resolved"}')), 4::bigint, 'create_tasks: a diamond, dependents first');
SELECT is(string_agg(n || ' ' || pg_temp.state(n), ', '), 'source pending, left unscheduled, right unscheduled, sink unscheduled',
	'create_tasks: only the source is pending') FROM unnest('{source,left,right,sink}'::text[]) AS n;
SELECT pg_temp.work('source', 'completed');
SELECT is(pg_temp.state('left') || ' ' || pg_temp.state('right'), 'pending unscheduled', 'create_tasks: dependents go on');
SELECT pg_temp.report('a', 'canceled');
SELECT is(pg_temp.state('right'), 'pending', 'create_tasks: each by its own rule');
SELECT pg_temp.take(n) FROM unnest('{left,right}'::text[]) AS n;
SELECT pg_temp.report(n, 'completed') FROM unnest('{left,right}'::text[]) AS n;
SELECT is(pg_temp.state('sink'), 'pending', 'create_tasks: the last dependency schedules the sink');
SELECT is(pg_temp.batch(pg_temp.entry('late', '{"$deps": ["source", "left"]}')), 1::bigint, 'create_tasks: on tasks that are done');
SELECT is(pg_temp.look('late'), 'pending 5: scheduled>pending', 'create_tasks: pending at once');
SELECT is(pg_temp.batch(pg_temp.entry('self', '{"$deps": ["self"]}')), 1::bigint, 'create_tasks: a self-dependency');
SELECT is(pg_temp.look('self'), 'unscheduled 5:', 'create_tasks: keeps the task unscheduled');

-- order of the batch is the order of the queue
SELECT is(pg_temp.batch(VARIADIC ARRAY(SELECT pg_temp.entry('o' || n, '{"taskQueueId": "test/order"}') FROM generate_series(9, 1, -1) AS n)), 9::bigint, 'create_tasks of nine');
SELECT is(pg_temp.claims('test/order'), 'o9 o8 o7 o6 o5 o4 o3 o2 o1', '5.1 they are claimed in the order of the array');

-- repeats
SELECT is(pg_temp.batch(pg_temp.entry('sink', '{"$deps": ["left", "right"]}'), pg_temp.entry('new')), 1::bigint, 'create_tasks: only the new ones are counted');
SELECT is(pg_temp.look('sink'), 'pending 5: scheduled>pending', 'create_tasks: the old tasks have not changed');
SELECT pg_temp.unchanged($$SELECT pg_temp.batch(pg_temp.entry('new'), pg_temp.entry('self', '{"$deps": ["self"]}'))$$, 'create_tasks: all repeats change nothing');
SELECT is(pg_temp.batch(pg_temp.entry('new')), 0::bigint, 'create_tasks: a repeat counts nothing');

SELECT is(pg_temp.batch(pg_temp.entry('new'), pg_temp.entry('new2', '{"$deps": ["new", "self"]}'), pg_temp.entry('self', '{"$deps": ["self"]}')), 1::bigint, 'create_tasks: on repeats of the same batch');
SELECT pg_temp.work('new', 'completed');
SELECT is(pg_temp.look('new2'), 'unscheduled 5:', 'create_tasks: it waits for both');
SELECT tq.schedule_task(pg_temp.id('self')) ->> 'state';
SELECT pg_temp.work('self', 'completed');
SELECT is(pg_temp.look('new2'), 'pending 5: scheduled>pending', 'create_tasks: and goes on');
SELECT pg_temp.create('new3');

-- all or nothing
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('n2', '{"retries": 50}'), pg_temp.entry('n3'))$$, 'TQ400', 'create_tasks: one is invalid, none is created');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('new3', '{"retries": 4}'))$$, 'TQ409', 'create_tasks: one conflicts, none is created');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('n2', '{"$deps": ["nobody"]}'))$$, 'TQ400', 'create_tasks: an unknown dependency, none is created');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1', '{"$group": "g", "schedulerId": "s"}'), pg_temp.entry('n2', '{"$group": "g", "schedulerId": "t"}'))$$,
	'TQ409', 'create_tasks: two schedulers in a new group');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1', '{"$group": "n2", "schedulerId": "s"}'), pg_temp.entry('n2', '{"schedulerId": "t"}'))$$,
	'TQ409', 'create_tasks: two schedulers, one being the group''s own task');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1', '{"$expires": "1 hour", "$deadline": "30 minutes"}'), pg_temp.entry('n2', '{"$deps": ["n1"], "$deadline": "2 hours"}'))$$,
	'TQ400', '4.2 (3) create_tasks: a dependency of the batch that expires before the deadline');
SELECT is((SELECT count(*) FROM tq.statuses(pg_temp.ids('n1', 'n2', 'n3'))), 0::bigint, 'create_tasks: none was created');
SELECT pg_temp.create('sealed', '{"$group": "sg"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('sg'))$$, 'create_tasks: a sealed group');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('n2', '{"$group": "sg"}'))$$, 'TQ409', 'create_tasks: refuses a sealed group');

-- the same id twice
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('n2'), pg_temp.entry('n1'))$$, 'TQ400', 'create_tasks: one id twice');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1'), pg_temp.entry('n1', '{"retries": 1}'))$$, 'TQ400', 'create_tasks: one id, two definitions');

-- cycles
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n1', '{"$deps": ["n2"]}'), pg_temp.entry('n2', '{"$deps": ["n1"]}'))$$, 'TQ400', '4.2 create_tasks: a cycle of two');
SELECT pg_temp.throws($$SELECT pg_temp.batch(pg_temp.entry('n0'), pg_temp.entry('n1', '{"$deps": ["n3", "n0"]}'), pg_temp.entry('n2', '{"$deps": ["n1"]}'),
	pg_temp.entry('n3', '{"$deps": ["n2", "n3"]}'), pg_temp.entry('n4', '{"$deps": ["n1"]}'))$$, 'TQ400', '4.2 create_tasks: a cycle of three among others');
CREATE TEMP TABLE cycle AS SELECT pg_temp.error($$SELECT pg_temp.batch(pg_temp.entry('n0', '{"$deps": ["n1"]}'), pg_temp.entry('n1', '{"$deps": ["n3"]}'),
	pg_temp.entry('n2', '{"$deps": ["n1"]}'), pg_temp.entry('n3', '{"$deps": ["n2", "n4"]}'), pg_temp.entry('n4'))$$) AS error;
SELECT is(array(SELECT n FROM unnest('{n0,n1,n2,n3,n4}'::text[]) AS n WHERE error ->> 'detail' LIKE '%' || pg_temp.id(n) || '%'), '{n1,n2,n3}'::text[],
	'2.1 create_tasks: the error names the tasks of the cycle, and no others') FROM cycle;

-- shape
SELECT pg_temp.throws(format('SELECT tq.create_tasks(%L)', v), 'TQ400', 'create_tasks refuses ' || left(v, 50))
FROM unnest(ARRAY['{}', '"x"', '1', 'null', '[1]', '[null]', '[[]]', '[{}]', '["dSlITZ4yQgmvxxAi4A8fHQ"]', '[{"taskId": "dSlITZ4yQgmvxxAi4A8fHQ"}]',
	'[{"taskId": "dSlITZ4yQgmvxxAi4A8fHQ", "task": null}]', '[{"taskId": "dSlITZ4yQgmvxxAi4A8fHQ", "task": []}]']) AS v;
SELECT pg_temp.throws(format('SELECT tq.create_tasks(%L)', jsonb_build_array(pg_temp.entry('n1') - 'taskId')), 'TQ400', 'create_tasks needs taskId');
SELECT pg_temp.throws(format('SELECT tq.create_tasks(%L)', jsonb_build_array(pg_temp.entry('n1') || '{"taskId": 1}')), 'TQ400', 'create_tasks: taskId is a string');
SELECT pg_temp.throws(format('SELECT tq.create_tasks(%L)', jsonb_build_array(pg_temp.entry('n1') || '{"foo": 1}')), 'TQ400', 'create_tasks takes no other key');

SELECT * FROM finish();
ROLLBACK;
