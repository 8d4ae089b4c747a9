-- doc/spec/taskcluster.md 2.22: add_dependencies.
\ir helper.psql

-- What a call that must fail says: code, message, detail.
CREATE FUNCTION pg_temp.failure(call text) RETURNS text
LANGUAGE sql AS $$
	SELECT format('%s: %s. %s', error ->> 'sqlstate', error ->> 'message', error ->> 'detail') FROM pg_temp.error(call) AS error
$$;

CREATE FUNCTION pg_temp.add(name text, VARIADIC required text[]) RETURNS text
LANGUAGE sql AS $$
	SELECT tq.add_dependencies(pg_temp.id(name), ARRAY(SELECT pg_temp.id(r) FROM unnest(required) AS r)) ->> 'state'
$$;

-- How many dependencies are unmet, as stored.
CREATE FUNCTION pg_temp.unmet(name text) RETURNS bigint
LANGUAGE sql AS $$
	SELECT CASE WHEN u.stripes = 0 THEN u.unmet ELSE (SELECT sum(c.unmet) FROM tq_internal.dependency_counter c WHERE c.task = u.task) END
	FROM tq_internal.unscheduled u JOIN tq_internal.task t ON t.id = u.task WHERE t.task_id = pg_temp.id(name)
$$;

-- ---- what it does ----
SELECT pg_temp.running('r'), pg_temp.create('a'), pg_temp.create('b'), pg_temp.create('t', '{"$deps": ["a"]}');
SELECT is(pg_temp.add('t', 'b', 'r'), 'unscheduled', '2.22 the status of the task');
SELECT is(pg_temp.unmet('t'), 3::bigint, '2.22 the new dependencies are unmet');
SELECT is(tq.task(pg_temp.id('t')) -> 'dependencies', (SELECT jsonb_agg(d) FROM (SELECT pg_temp.id('a')::text UNION ALL
	(SELECT i::text FROM unnest(ARRAY[pg_temp.id('b'), pg_temp.id('r')]) AS i ORDER BY i)) AS s (d)), '2.22 the definition has them, behind its own');
SELECT is(pg_temp.add('t', 'b', 'a', 'b'), 'unscheduled', '2.22 a repeat');
SELECT is(pg_temp.unmet('t'), 3::bigint, '2.22 changes nothing');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('b'))), 1::bigint, '2.22 list_dependent_tasks knows');
SELECT pg_temp.report('r', 'completed'), pg_temp.take('a'), pg_temp.report('a', 'completed');
SELECT is(pg_temp.state('t'), 'unscheduled', '2.22 two of three are met');
SELECT pg_temp.take('b'), pg_temp.report('b', 'completed');
SELECT is(pg_temp.state('t'), 'pending', '2.22 the last one makes it pending');
SELECT is(pg_temp.add('t', 'b'), 'pending', '2.22 a repeat does not mind the state');

-- ---- met already ----
SELECT pg_temp.create('w'), pg_temp.create('m', '{"$deps": ["w"]}'), pg_temp.resolved('f', 'failed');
SELECT is(pg_temp.add('m', 'a', 'b'), 'unscheduled', '4.1 required tasks that are completed');
SELECT is(pg_temp.unmet('m'), 1::bigint, '4.1 are met');
SELECT pg_temp.add('m', 'f');
SELECT is(pg_temp.unmet('m'), 2::bigint, '4.1 one that has failed is not');
SELECT pg_temp.take('w'), pg_temp.report('w', 'completed');
SELECT is(pg_temp.state('m'), 'unscheduled', '4.1 so the task waits');
SELECT tq.rerun_task(pg_temp.id('f')) ->> 'state', pg_temp.take('f'), pg_temp.report('f', 'completed');
SELECT is(pg_temp.state('m'), 'pending', '4.1 until a later run of it is completed');
SELECT pg_temp.create('w2'), pg_temp.resolved('f2', 'failed'), pg_temp.create('all', '{"$deps": ["w2"], "requires": "all-resolved"}');
SELECT pg_temp.add('all', 'f2');
SELECT is(pg_temp.unmet('all'), 1::bigint, '4.1 all-resolved: one that has failed is met');

-- ---- what is refused ----
SELECT is(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 't', 'w')), format('TQ409: task "%s" takes no more dependencies. The task is pending.', pg_temp.id('t')), '2.22 a pending task');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'r', 'w')), '^TQ409: .* The task is completed', '2.22 a resolved task');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'r', 'r')), '^TQ409: .* The task is completed', '2.22 the state comes before a cycle');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'r', 'missing')), '^TQ409: .* The task is completed', '2.22 and before what does not exist');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'missing', 'w')), '^TQ404', '2.22 no such task');
SELECT pg_temp.create('x'), pg_temp.create('c1', '{"$deps": ["x"]}'), pg_temp.create('c2', '{"$deps": ["c1"]}'), pg_temp.create('c3', '{"$deps": ["c2"]}');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L, %L)', 'c1', 'w', 'missing')), format('^TQ400: .*missingTaskDependencies: \[%s\]', pg_temp.id('missing')), '4.2 a required task that does not exist');
SELECT is(pg_temp.unmet('c1'), 1::bigint, '2.22 nothing is added then');
SELECT pg_temp.create('soon', '{"$deadline": "5 minutes", "$expires": "6 minutes"}');
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'c1', 'soon')), format('^TQ400: .*expiringTaskDependencies: \[%s\]', pg_temp.id('soon')), '4.2 one that expires before the deadline');
SELECT is(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'c1', 'c1')),
	format('TQ400: dependencies of task "%1$s" would close a cycle. It would depend on itself: task %1$s, on which it would depend.', pg_temp.id('c1')), '2.22 itself');
SELECT is(pg_temp.failure(format('SELECT pg_temp.add(%L, %L, %L)', 'c1', 'x', 'c3')),
	format('TQ400: dependencies of task "%1$s" would close a cycle. It would depend on itself: task %1$s, on which depends %2$s, on which depends %3$s, on which it would depend.',
		pg_temp.id('c1'), pg_temp.id('c2'), pg_temp.id('c3')), '2.22 a cycle is named');
SELECT is(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'c1', 'c2')),
	format('TQ400: dependencies of task "%1$s" would close a cycle. It would depend on itself: task %1$s, on which depends %2$s, on which it would depend.', pg_temp.id('c1'), pg_temp.id('c2')), '2.22 a cycle of two');
SELECT is(pg_temp.add('c3', 'c1'), 'unscheduled', '2.22 two ways to one task are no cycle');
SELECT is(pg_temp.add('c3', 'w2'), 'unscheduled', '2.22 another one');
SET tq.max_dependencies = 4;
SELECT is(pg_temp.failure(format('SELECT pg_temp.add(%L, %L, %L)', 'c3', 'x', 'b')),
	format('TQ400: dependencies of task "%s" are too many. It has 3, would get 2 more, and may have 4 (tq.max_dependencies).', pg_temp.id('c3')), '2.22 the limit counts old and new');
SELECT is(pg_temp.add('c3', 'x', 'c1'), 'unscheduled', '2.22 what is there does not count twice');
RESET tq.max_dependencies;
SELECT pg_temp.create('late', '{"$deps": ["x"], "$deadline": "5 minutes"}');
SET tq.clock_offset = '6 minutes';
SELECT matches(pg_temp.failure(format('SELECT pg_temp.add(%L, %L)', 'late', 'w2')), '^TQ409: .*past its deadline', '2.22 past the deadline');
RESET tq.clock_offset;
SELECT pg_temp.create('defined', '{"$deps": ["defined"]}');
SELECT is(pg_temp.add('defined', 'x'), 'unscheduled', '2.22 a task that was defined');
SELECT is(pg_temp.unmet('defined'), 2::bigint, '2.22 waits for both');
SELECT is(tq.schedule_task(pg_temp.id('defined')) ->> 'state', 'pending', '2.3 schedule_task does not mind');

-- ---- many ----
SELECT count(pg_temp.create('n' || n)) FROM generate_series(1, 400) AS n;
SELECT pg_temp.create('many', jsonb_build_object('$deps', (SELECT jsonb_agg('n' || n) FROM generate_series(1, 300) AS n)));
SELECT is(tq.add_dependencies(pg_temp.id('many'), ARRAY(SELECT pg_temp.id('n' || n) FROM generate_series(250, 400) AS n)) ->> 'state', 'unscheduled', 'many: added');
SELECT is(pg_temp.unmet('many'), 400::bigint, 'many: all are counted');
SELECT count(*) FROM (SELECT pg_temp.take('n' || n), pg_temp.report('n' || n, 'completed') FROM generate_series(1, 399) AS n) AS s;
SELECT is(pg_temp.state('many'), 'unscheduled', 'many: the last one is left');
SELECT pg_temp.take('n400'), pg_temp.report('n400', 'completed');
SELECT is(pg_temp.state('many'), 'pending', 'many: it was');

SELECT * FROM finish();
