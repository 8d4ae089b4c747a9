-- doc/spec/taskcluster.md 8.4: expired tasks are gone at once.
BEGIN;
\ir helper.psql

-- Rows of a task in all tables.
CREATE FUNCTION pg_temp.traces(inner_id bigint) RETURNS bigint
LANGUAGE sql AS $$
	SELECT (SELECT count(*) FROM tq_internal.task WHERE id = inner_id) + (SELECT count(*) FROM tq_internal.departed WHERE id = inner_id) + (SELECT count(*) FROM tq_internal.unscheduled WHERE task = inner_id)
		+ (SELECT count(*) FROM tq_internal.pending WHERE task = inner_id) + (SELECT count(*) FROM tq_internal.delayed WHERE task = inner_id)
		+ (SELECT count(*) FROM tq_internal.run WHERE task = inner_id) + (SELECT count(*) FROM tq_internal.dependency WHERE inner_id IN (required, dependent))
$$;

-- in any state at their deadline, which is processed first
SELECT pg_temp.create('p', '{"$deadline": "10 minutes", "$expires": "40 minutes"}');
SELECT pg_temp.create('u', '{"$deadline": "10 minutes", "$expires": "40 minutes", "$deps": ["p"]}');
SELECT pg_temp.running('r', '{"$deadline": "10 minutes", "$expires": "40 minutes"}');
SELECT pg_temp.resolved('c', 'completed', '{"$deadline": "10 minutes", "$expires": "40 minutes"}');
SELECT pg_temp.resolved('t', 'worker-shutdown', '{"$deadline": "10 minutes", "$expires": "40 minutes"}');
SELECT pg_temp.create('g1', '{"$deadline": "10 minutes", "$expires": "40 minutes", "$group": "g"}');
SELECT pg_temp.create('hour', '{"$deadline": "10 minutes", "$expires": "90 minutes"}');
SELECT pg_temp.create('g2', '{"$expires": "1 day", "$group": "g"}');
SELECT pg_temp.create('stay', '{"$deadline": "10 minutes", "$deps": ["p", "stay"]}');
CREATE TEMP TABLE inner_ids AS SELECT n, (SELECT id FROM tq_internal.task WHERE task_id::text = pg_temp.id(n)::text) AS id FROM unnest('{p,u,r,c,t,g1}'::text[]) AS n;
SELECT is(pg_temp.pass('39 minutes 30 seconds'), 'deadline 7', '8.4 not before they expire');
SELECT is(pg_temp.pass(), '', '8.4 nor the next time');
SELECT is(pg_temp.state(n), state, '8.4 status keeps answering until then: ' || n)
FROM (VALUES ('p', 'exception'), ('u', 'exception'), ('r', 'exception'), ('c', 'completed'), ('t', 'exception')) AS v (n, state);
SELECT is(tq.task(pg_temp.id('p')) #>> '{metadata,name}', 'p', '8.4 task too');
SELECT is(pg_temp.pass('40 minutes 1 second'), 'expired 6', '8.4 each goes when it expires');
SELECT pg_temp.throws(format('SELECT tq.status(pg_temp.id(%L))', n), 'TQ404', '8.4 deleted: ' || n) FROM inner_ids;
SELECT is(pg_temp.traces(id), 0::bigint, '8.4 with all of its rows: ' || n) FROM inner_ids;
SELECT is(pg_temp.pass(), '', '8.4 once');
SELECT is(pg_temp.claims('test/q-p') || pg_temp.claims('test/q-t'), '', '8.4 nothing of it can be claimed');
SELECT is(tq.task_queue_counts('test/q-r') ->> 'claimedTasks', '0', '8.4 it is not counted');
SELECT is(pg_temp.look('stay'), 'exception 5: exception>exception/deadline-exceeded', '8.4 a dependent that expires later stays');
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ') FROM tq.list_task_group(pg_temp.id('g'))), 'g2', '8.4 the group has the other task only');
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('g'))), 1::bigint, '8.1 and is smaller');
SELECT pg_temp.throws(format('SELECT tq.%s', f), 'TQ404', '8.4 the worker is refused: ' || f)
FROM unnest(ARRAY['report_completed(pg_temp.id(''r''), 0)', 'reclaim_task(pg_temp.id(''r''), 0)', 'list_dependent_tasks(pg_temp.id(''p''))']) AS f;
SELECT is(pg_temp.create('p'), 'pending 5: scheduled>pending', '8.4 the id can be used again');
SELECT is(pg_temp.look('p'), 'pending 5: scheduled>pending', '8.4 with nothing of the old task');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('p'))), 0::bigint, '8.4 the old dependents are not linked to it');
RESET tq.clock_offset;

-- with another that expires in the same hour, each at its own time
SELECT ok(pg_temp.pass('90 minutes') LIKE '%expired 1', '8.4 one that expires within the hour goes at its own time');
RESET tq.clock_offset;

-- with the deadline in the same pass
SELECT pg_temp.create('both', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.create('bothdep', '{"$deps": ["both"], "requires": "all-resolved", "$deadline": "10 minutes", "$expires": "3 hours"}');
SELECT ok(pg_temp.pass('41 minutes') LIKE 'deadline % expired 1', '8.4 a task whose deadline was not processed before');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('both'))$$, 'TQ404', '8.4 is deleted');
SELECT is(pg_temp.look('bothdep'), 'exception 5: exception>exception/deadline-exceeded', '8.4 its dependent has met its own deadline');
RESET tq.clock_offset;

-- a deadline that is processed late: the task is deleted in the end
SET tq.deadline_delay = '2h';
SELECT pg_temp.create('slow', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.pass('131 minutes');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('slow'))$$, 'TQ404', '8.4 a task whose deadline is processed long after expires');
RESET tq.clock_offset;
RESET tq.deadline_delay;

-- tq.expire_batch
SET tq.expire_batch = 4;
SELECT pg_temp.create('b' || n, '{"$deadline": "5 minutes", "$expires": "5 minutes"}') FROM generate_series(1, 10) AS n;
SELECT pg_temp.report('b' || n, 'canceled') FROM generate_series(1, 10) AS n;
SET tq.clock_offset = '36 minutes';
SELECT is((SELECT sum(coalesce(substring(pg_temp.pass() FROM 'expired (\d+)')::int, 0)) FROM generate_series(1, 5)), 10::bigint, '8.4 tq.expire_batch: so many at a time, none forgotten');
SELECT is(pg_temp.pass(), '', '8.4 tq.expire_batch: then there is no more to do');
SELECT is((SELECT count(*) FROM tq.statuses((SELECT array_agg(pg_temp.id('b' || n)) FROM generate_series(1, 10) AS n))), 0::bigint, '8.4 tq.expire_batch: all in the end');
RESET tq.clock_offset;
RESET tq.expire_batch;

-- upkeep() does nothing twice, and leaves no rows behind
SELECT pg_temp.create('f', '{"$deadline": "5 minutes", "$expires": "5 minutes"}');
SELECT pg_temp.pass('2 hours');
SELECT pg_temp.pass();
SELECT is(pg_temp.pass(), '', '8.4 in the end there is nothing more to do');
SELECT is((SELECT count(*) FROM tq_internal.timer WHERE due <= pg_temp.clock() - interval '1 minute'), 0::bigint, '8.4 no stale timers are left');
SELECT is((SELECT count(*) FROM tq_internal.claim_timer WHERE due <= pg_temp.clock() - interval '1 minute'), 0::bigint, '8.4 nor claim timers');
SELECT is((SELECT count(*) FROM tq_internal.dependency WHERE dependent NOT IN (SELECT id FROM tq_internal.task)), 0::bigint, '8.4 nor dependencies of deleted tasks');
RESET tq.clock_offset;

-- upkeep names its steps
SELECT is((SELECT string_agg(step, ',' ORDER BY step) FROM tq.upkeep() WHERE step <> ALL ('{publish,deadline,total-timeout,run-timeout,pending-timeout,claim-expired,delayed,admit,reorder,cancel,settle,callback,postponed,retain,sweep,expired}')), NULL, '8.4 upkeep: no steps but those of the specification');

-- worker info: 30 minutes after it expires, unless in quarantine; groups: 4.5
SELECT pg_temp.create('before', '{"taskQueueId": "test/workers"}');
SELECT is(pg_temp.claims('test/workers', 1, 'old'), 'before', '8.4 a worker claims');
SELECT pg_temp.report('before', 'completed'), pg_temp.claims('test/workers', 1, 'bad');
SELECT lives_ok($$SELECT tq.quarantine_worker('test/workers', 'wg', 'bad', now() + interval '3 days')$$, '8.4 a worker in quarantine');
SELECT pg_temp.pass('26 hours');
SELECT pg_temp.throws($$SELECT tq.get_worker('test/workers', 'wg', 'old')$$, 'TQ404', '8.4 a worker that has not been seen for a day is deleted');
SELECT is(pg_temp.claims('test/workers', 1, 'old'), '', '8.4 it claims again');
SELECT lives_ok($$SELECT tq.get_worker('test/workers', 'wg', 'bad')$$, '8.4 one in quarantine is not deleted');
SELECT ok(pg_temp.near(tq.get_worker('test/workers', 'wg', 'old') ->> 'firstClaim', pg_temp.clock()), '8.4 as a new one');
SELECT pg_temp.create('w', '{"taskQueueId": "test/workers"}');
SELECT is(pg_temp.claims('test/workers', 1, 'bad'), '', '8.4 the other is still in quarantine');
SELECT is(pg_temp.claims('test/workers', 1, 'old'), 'w', '8.4 the new one works');
SELECT is(tq.get_worker('test/workers', 'wg', 'old') -> 'recentTasks', jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('w'), 'runId', 0)), '8.4 and shows nothing from before');
RESET tq.clock_offset;

-- more groups than one batch takes: all in one sweep
SET tq.clock_offset = '2000 days';
SELECT count(tq.enqueue('many/groups', task_group_id => tq.slugid(), deadline => '1 minute', expires => '0')) FROM generate_series(1, 9);
SET tq.expire_batch = 2;
SELECT pg_temp.pass('2001 days');
SELECT pg_temp.pass('2001 days 2 hours');
SELECT is((SELECT count(*) FROM tq_internal.task_group), 0::bigint, '8.4 groups: every one that has expired');
RESET tq.expire_batch;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
