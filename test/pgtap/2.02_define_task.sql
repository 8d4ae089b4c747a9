-- doc/spec/taskcluster.md 2.2: defineTask; D-01.
BEGIN;
\ir helper.psql

CREATE TEMP TABLE answer AS SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a')) AS status;
SELECT is(status, tq.status(pg_temp.id('a')), '2.2 returns the status') FROM answer;
SELECT is(pg_temp.look('a'), 'unscheduled 5:', '2.2 the task stays unscheduled');
SELECT is(tq.task(pg_temp.id('a')) -> 'dependencies', jsonb_build_array(pg_temp.id('a')::text), '2.2 the definition shows the self-dependency');
SELECT is(pg_temp.claims('test/q-a'), '', '2.2 it cannot be claimed');
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 0::bigint, '2.2 and is not pending');
SELECT pg_temp.keeps($$SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a'))$$, 'a', '2.2 a repeat');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"$deps": ["a"]}'))$$, 'a', 'D-01 the same as createTask with a self-dependency');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a', '{"retries": 1}'))$$, 'TQ409', '2.2 another definition');
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a'))$$, 'TQ409', '2.2 a later createTask without self-dependency conflicts');
SELECT pg_temp.create('c');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('c'), pg_temp.def('c'))$$, 'TQ409', '2.2 and so does defineTask of a created task');

SELECT pg_temp.create(n) FROM unnest('{r1,r2}'::text[]) AS n;
SELECT is(pg_temp.line(tq.define_task(pg_temp.id('b'), pg_temp.def('b', '{"$deps": ["r1", "r2"]}'))), 'unscheduled 5:', '2.2 with dependencies of its own');
SELECT is(tq.task(pg_temp.id('b')) -> 'dependencies', to_jsonb(pg_temp.ids('b', 'r1', 'r2')::text[]), '2.2 the self-dependency is prepended');
SELECT is(pg_temp.line(tq.define_task(pg_temp.id('s'), pg_temp.def('s', '{"$deps": ["r1", "s", "r2"]}'))), 'unscheduled 5:', '2.2 with a self-dependency in it');
SELECT is(tq.task(pg_temp.id('s')) -> 'dependencies', to_jsonb(pg_temp.ids('r1', 's', 'r2')::text[]), '2.2 it keeps its place in the list');
SELECT pg_temp.take(n) FROM unnest('{r1,r2}'::text[]) AS n;
SELECT pg_temp.report(n, 'completed') FROM unnest('{r1,r2}'::text[]) AS n;
SELECT is(pg_temp.state('b') || ' ' || pg_temp.state('s'), 'unscheduled unscheduled', '2.2 it stays unscheduled when the others are completed');

SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('a'))), 'pending 5: scheduled>pending', '2.2 until schedule_task');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('b'))), 'pending 5: rerun>pending', '2.2 or rerun_task');
SELECT pg_temp.keeps($$SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a'))$$, 'a', '2.2 a repeat after that');
SELECT pg_temp.pass('61 minutes');
SELECT is(pg_temp.look('s'), 'exception 5: exception>exception/deadline-exceeded', '2.2 or the deadline');
RESET tq.clock_offset;

SELECT pg_temp.throws(format('SELECT tq.define_task(pg_temp.id(''x''), %L)', pg_temp.def('x', v)), 'TQ400', '2.2 the same checks: ' || v::text)
FROM unnest(ARRAY['{"foo": 1}', '{"retries": 50}', '{"$created": "-1 hour"}', '{"$deps": ["nobody"]}', '{"scopes": ["a**"]}', '{"payload": 1}']::jsonb[]) AS v;
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('x'), '[]')$$, 'TQ400', '2.2 a definition is an object');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('x'), pg_temp.def('x', '{"dependencies": "x"}'))$$, 'TQ400', '2.2 dependencies that are no array');
SET tq.max_dependencies = 2;
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('x'), pg_temp.def('x', '{"$deps": ["r1", "r2"]}'))$$, 'TQ400', '2.2 the self-dependency counts');
RESET tq.max_dependencies;

SELECT * FROM finish();
ROLLBACK;
