-- doc/spec/taskcluster.md 2.3: scheduleTask.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.schedule_task(pg_temp.id('nobody'))$$, 'TQ404', '2.3 no such task');
SELECT pg_temp.create('dep');
SELECT pg_temp.create('a', '{"$deps": ["dep"]}');
CREATE TEMP TABLE answer AS SELECT tq.schedule_task(pg_temp.id('a')) AS status;
SELECT is(status, tq.status(pg_temp.id('a')), '2.3 returns the status') FROM answer;
SELECT is(pg_temp.look('a'), 'pending 5: scheduled>pending', '2.3 run 0 is pending regardless of unmet dependencies');
SELECT is((SELECT count(*) FROM tq_internal.unscheduled WHERE task = (SELECT id FROM tq_internal.task WHERE task_id::text = pg_temp.id('a')::text)), 0::bigint, '2.3 its row in unscheduled is deleted');
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 1::bigint, '2.3 it is counted as pending');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('a'))$$, 'a', '2.3 pending: no change');
SELECT pg_temp.work('dep', 'completed');
SELECT is(pg_temp.look('a'), 'pending 5: scheduled>pending', '2.3 the dependency, met later, schedules nothing more');
SELECT pg_temp.take('a');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('a'))$$, 'a', '2.3 running: no change');
SELECT pg_temp.report('a', 'failed');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('a'))$$, 'a', '2.3 failed: never reschedules');
SELECT pg_temp.resolved('comp', 'completed');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('comp'))$$, 'comp', '2.3 completed: no change');
SELECT pg_temp.create('canc', '{"$deps": ["canc"]}');
SELECT pg_temp.report('canc', 'canceled');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('canc'))$$, 'canc', '2.3 canceled: no change');
SELECT pg_temp.resolved('ret', 'worker-shutdown');
SELECT pg_temp.keeps($$SELECT tq.schedule_task(pg_temp.id('ret'))$$, 'ret', '2.3 a retry that is pending: no change');

SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.create('p');
SELECT pg_temp.running('r');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws(format('SELECT tq.schedule_task(pg_temp.id(%L))', n), 'TQ409', format('2.3 past the deadline, %s: conflict', pg_temp.state(n)))
FROM unnest('{u,p,r,a,comp,canc,ret}'::text[]) AS n;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
