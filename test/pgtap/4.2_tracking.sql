-- doc/spec/taskcluster.md 4.2: dependencies at creation; 10.6.
BEGIN;
\ir helper.psql

-- (1) repeats keep met dependencies
SELECT pg_temp.resolved('a', 'completed');
SELECT pg_temp.create('b');
SELECT pg_temp.create('d', '{"$deps": ["a", "b"]}');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('d'), pg_temp.def('d', '{"$deps": ["a", "b"]}'))$$, 'd', '4.2 (1) a repeat while one of two is met');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('d'), pg_temp.def('d', '{"$deps": ["a", "b"]}'))$$, 'd', '4.2 (1) and another');
SELECT is(pg_temp.look('d'), 'unscheduled 5:', '4.2 (1) do not count it twice');
SELECT pg_temp.work('b', 'completed');
SELECT is(pg_temp.look('d'), 'pending 5: scheduled>pending', '4.2 (1) the other one schedules it');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('d'), pg_temp.def('d', '{"$deps": ["a", "b"]}'))$$, 'd', '4.2 (1) a repeat when it is pending');

-- (2), (3) missing and expiring
SELECT pg_temp.throws($$SELECT pg_temp.create('m', '{"$deps": ["nobody"]}')$$, 'TQ400', '4.2 (3) a missing dependency');
SELECT pg_temp.throws($$SELECT pg_temp.create('m', '{"$deps": ["a", "nobody", "b"]}')$$, 'TQ400', '4.2 (3) one of several is missing');
SELECT pg_temp.throws($$SELECT pg_temp.create('m', '{"$deps": ["m", "nobody"]}')$$, 'TQ400', '4.2 (3) with a self-dependency');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('m'))$$, 'TQ404', '4.2 (3) the task does not exist');
SELECT is((SELECT count(*) FROM tq_internal.dependency WHERE required NOT IN (SELECT id FROM tq_internal.task) OR dependent NOT IN (SELECT id FROM tq_internal.task)), 0::bigint, '4.2 (3) nor do its dependencies');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('a'))), 1::bigint, '4.2 (3) listDependentTasks does not know it');
CREATE TEMP TABLE missing AS SELECT pg_temp.error($$SELECT pg_temp.create('m', '{"$deps": ["a", "nobody", "b", "none"]}')$$) AS error;
SELECT ok(error ->> 'detail' LIKE '%' || pg_temp.id('nobody') || '%' AND error ->> 'detail' LIKE '%' || pg_temp.id('none') || '%', '4.2 (3) DETAIL names the missing ones') FROM missing;
SELECT is(pg_temp.create('m', '{"$deps": ["a", "b"]}'), 'pending 5: scheduled>pending', '4.2 (3) the id can be used afterwards');
SELECT pg_temp.resolved('soon', 'completed', '{"$deadline": "10 minutes", "$expires": "20 minutes"}');
SELECT pg_temp.create('soon2', '{"$deadline": "10 minutes", "$expires": "20 minutes"}');
SELECT pg_temp.throws(format($$SELECT pg_temp.create('e', '{"$deps": ["%s"], "$deadline": "20 minutes 0.001 seconds"}')$$, n), 'TQ400', '4.2 (2) a dependency that expires before the deadline: ' || pg_temp.look(n))
FROM unnest('{soon,soon2}'::text[]) AS n;
CREATE TEMP TABLE expiring AS SELECT pg_temp.error($$SELECT pg_temp.create('e', '{"$deps": ["a", "soon"]}')$$) AS error;
SELECT ok(error ->> 'detail' LIKE '%' || pg_temp.id('soon') || '%', '4.2 (3) DETAIL names the expiring ones') FROM expiring;
SELECT is(pg_temp.create('e', '{"$deps": ["soon"], "$deadline": "20 minutes"}'), 'pending 5: scheduled>pending', '4.2 (2) one that expires at the deadline');
SELECT is(pg_temp.create('f', '{"$deps": ["soon2"], "$deadline": "20 minutes"}'), 'unscheduled 5:', '4.2 (2) the same, not met yet');
SELECT pg_temp.throws($$SELECT pg_temp.create('h', '{"$deps": ["nobody"], "$group": "newgroup"}')$$, 'TQ400', '4.2 (3) in a new group');
SELECT lives_ok($$SELECT pg_temp.create('h2', '{"$group": "newgroup", "schedulerId": "any"}')$$, '4.2 (3) which can be created afterwards');

-- (4)
SELECT is(pg_temp.create('all', '{"$deps": ["a", "b"]}'), 'pending 5: scheduled>pending', '4.2 (4) all are met: run 0 is scheduled');
SELECT pg_temp.create('open');
SELECT is(pg_temp.create('one', '{"$deps": ["a", "open", "b"]}'), 'unscheduled 5:', '4.2 (4) one is not: unscheduled');

-- across groups, schedulers, projects and queues
SELECT pg_temp.create('far', '{"$group": "fg", "schedulerId": "fs", "projectId": "fp", "taskQueueId": "far/queue"}');
SELECT is(pg_temp.create('near', '{"$group": "ng", "schedulerId": "ns", "projectId": "np", "$deps": ["far"]}'), 'unscheduled 5:', '4.2 dependencies may cross groups, schedulers and projects');
SELECT pg_temp.claims('far/queue');
SELECT pg_temp.report('far', 'completed');
SELECT is(pg_temp.look('near'), 'pending 5: scheduled>pending', '4.2 and are met across them');

-- a task may depend on existing tasks only: only create_tasks could make a cycle
SELECT pg_temp.throws($$SELECT pg_temp.create('c1', '{"$deps": ["c2"]}')$$, 'TQ400', '4.2 a required task cannot be defined later');

-- 10.6: a repeat whose dependency has been deleted does not delete the task
SELECT pg_temp.create('gone', '{"$deadline": "10 minutes", "$expires": "20 minutes"}');
SELECT pg_temp.create('keep', '{"$deps": ["gone"], "$deadline": "20 minutes", "$expires": "3 days"}');
CREATE TEMP TABLE kept AS SELECT pg_temp.def('keep', '{"$deps": ["gone"], "$deadline": "20 minutes", "$expires": "3 days"}') AS task;
SELECT pg_temp.pass('51 minutes');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('gone'))$$, 'TQ404', '10.6 a dependency is deleted');
CREATE TEMP TABLE repeated AS SELECT pg_temp.error($$SELECT tq.create_task(pg_temp.id('keep'), (SELECT task FROM kept))$$) AS error;
SELECT is(pg_temp.look('keep'), 'exception 5: exception>exception/deadline-exceeded', '10.6 a repeat does not delete its dependent');
SELECT is(error ->> 'sqlstate', 'TQ400', '10.6 (it is refused because it comes too late)') FROM repeated;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
