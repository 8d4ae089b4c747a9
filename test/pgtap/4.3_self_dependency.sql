-- doc/spec/taskcluster.md 4.3: self-dependencies.
BEGIN;
\ir helper.psql

SELECT is(pg_temp.create('s', '{"$deps": ["s"]}'), 'unscheduled 5:', '4.3 its own id is allowed, and keeps the task unscheduled');
SELECT is(tq.task(pg_temp.id('s')) -> 'dependencies', jsonb_build_array(pg_temp.id('s')::text), '4.3 the definition shows it');
SELECT is(pg_temp.create('s2', '{"$deps": ["s2"], "requires": "all-resolved"}'), 'unscheduled 5:', '4.3 also with all-resolved');
SELECT pg_temp.create('a');
SELECT pg_temp.create('as', '{"$deps": ["a", "as"]}');
SELECT pg_temp.create('sa', '{"$deps": ["sa", "a"], "requires": "all-resolved"}');
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.look('as') || pg_temp.look('sa'), 'unscheduled 5:unscheduled 5:', '4.3 it stays unscheduled when the other is completed');
SELECT is(pg_temp.create('as2', '{"$deps": ["a", "as2"]}'), 'unscheduled 5:', '4.3 and when the other was completed before');
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ') FROM tq.list_dependent_tasks(pg_temp.id('s'))), 's', '4.3 listDependentTasks returns itself');

-- scheduling and resolution
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('s'))), 'pending 5: scheduled>pending', '4.3 scheduleTask');
SELECT is(pg_temp.work('s', 'completed'), 'completed 5: scheduled>completed/completed', '4.3 its own dependency is met when it is completed: nothing more is scheduled');
SELECT is(pg_temp.look('s'), 'completed 5: scheduled>completed/completed', '4.3 nor afterwards');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('as'))), 'pending 5: rerun>pending', '4.3 rerunTask');
SELECT is(pg_temp.report('as', 'canceled'), 'exception 5: rerun>exception/canceled', '4.3 cancelTask after that');
SELECT is(pg_temp.report('s2', 'canceled'), 'exception 5: exception>exception/canceled', '4.3 cancelTask while unscheduled: all-resolved by its own resolution, nothing is scheduled');
SELECT is(pg_temp.look('s2'), 'exception 5: exception>exception/canceled', '4.3 nor afterwards');

-- dependents of a self-dependent task
SELECT pg_temp.create('t', '{"$deps": ["t"]}');
SELECT pg_temp.create('after', '{"$deps": ["t"]}');
SELECT tq.schedule_task(pg_temp.id('t')) ->> 'state';
SELECT pg_temp.work('t', 'completed');
SELECT is(pg_temp.look('after'), 'pending 5: scheduled>pending', '4.3 others that wait for it go on');

-- the deadline
SELECT pg_temp.create('d', '{"$deps": ["d"], "requires": "all-resolved", "$deadline": "1 minute"}');
SELECT is(pg_temp.pass('61 seconds'), 'deadline 1', '4.3 the deadline');
SELECT is(pg_temp.look('d'), 'exception 5: exception>exception/deadline-exceeded', '4.3 resolves it');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
