-- doc/spec/taskcluster.md 8.5: views, why(), health().
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.why(name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(reason, ', ') FROM tq.why(pg_temp.id(name))
$$;
CREATE FUNCTION pg_temp.detail(name text, of text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(detail, '; ') FROM tq.why(pg_temp.id(name)) WHERE reason = of
$$;
CREATE FUNCTION pg_temp.advice(name text, of text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(advice, '; ') FROM tq.why(pg_temp.id(name)) WHERE reason = of
$$;
CREATE FUNCTION pg_temp.overview(name text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', o.state, o.reason, o.attempt, o.worker) FROM tq.task_overview o WHERE task_id = pg_temp.id(overview.name)
$$;

-- each state
SELECT pg_temp.create('a', '{"taskQueueId": "test/q"}');
SELECT pg_temp.create('b', '{"taskQueueId": "test/q"}');
SELECT pg_temp.create('c', '{"taskQueueId": "test/q", "$deps": ["a"]}');
SELECT pg_temp.create('d', '{"taskQueueId": "test/q", "$deps": ["d"]}');
SELECT pg_temp.create('later', '{"taskQueueId": "test/q", "policy": {"delay": 600}}');
SELECT is(pg_temp.overview('a'), 'pending scheduled 0', '8.5 a pending task');
SELECT is(pg_temp.overview('c'), 'unscheduled', '8.5 an unscheduled task');
SELECT is(pg_temp.overview('later'), 'pending scheduled 0', '8.5 a delayed task');
SELECT is(pg_temp.claims('test/q', 1), 'a', '8.5 a claim');
SELECT is(pg_temp.overview('a'), 'running scheduled 0 wg/w1', '8.5 a running task');
SELECT is((SELECT string_agg(state, ' ' ORDER BY state) FROM tq.task_overview WHERE task_queue_id = 'test/q'), 'pending pending running unscheduled unscheduled', '8.5 each task once');
SELECT is((SELECT since FROM tq.task_overview WHERE task_id = pg_temp.id('a')), (SELECT started FROM tq.task_details WHERE task_id = pg_temp.id('a')), '8.5 since when it is running');
SELECT is((SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('c')), 1, '8.5 unmet dependencies');
SELECT is((SELECT dependencies FROM tq.task_details WHERE task_id = pg_temp.id('c')), ARRAY[pg_temp.id('a')::text], '8.5 dependencies as texts');
SELECT is((SELECT format('%s %s %s', required_task_id, state, met) FROM tq.dependency_overview WHERE task_id = pg_temp.id('c')), pg_temp.id('a') || ' running f', '8.5 a dependency that is not met');
SELECT is((SELECT format('%s %s %s', pending, delayed, running) FROM tq.queue_stats WHERE task_queue_id = 'test/q'), '1 1 1', '8.5 counts of a queue');
SELECT is((SELECT workers FROM tq.queue_stats WHERE task_queue_id = 'test/q'), 1::bigint, '8.5 workers of a queue');
SELECT is((SELECT format('%s %s %s', worker_id, state, running) FROM tq.worker_overview WHERE task_queue_id = 'test/q'), 'w1 running 1', '8.5 a worker that has a run');

-- why
SELECT is(pg_temp.why('a'), 'claimed', '8.5 why: claimed');
SELECT matches(pg_temp.detail('a', 'claimed'), '^by wg/w1 until 20', '8.5 why: by which worker, until when');
SELECT is(pg_temp.why('b'), 'next', '8.5 why: the first of its queue');
SELECT is(pg_temp.why('c'), 'unscheduled', '8.5 why: unscheduled');
SELECT is(pg_temp.detail('c', 'unscheduled'), 'it depends on a: running', '8.5 why: because of which task');
SELECT is(pg_temp.advice('c', 'unscheduled'), format('SELECT * FROM tq.why(%L)', pg_temp.id('a')), '8.5 why: look at that');
SELECT is(pg_temp.detail('d', 'unscheduled'), 'it depends on itself, so it waits for a call', '8.5 why: a task that waits for schedule_task()');
SELECT is(pg_temp.why('later'), 'delayed', '8.5 why: delayed');
SELECT matches(pg_temp.detail('later', 'delayed'), '^it cannot be claimed before ', '8.5 why: until when');
SET LOCAL TimeZone = 'Asia/Kolkata';
SELECT is(substring(pg_temp.detail('later', 'delayed') FROM '[0-9]{4}-.*$'), to_char(visible_at AT TIME ZONE 'Asia/Kolkata', 'YYYY-MM-DD HH24:MI:SS') || '+05:30',
	'8.5 why: in the time zone of the session, with its offset') FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task WHERE t.task_id = pg_temp.id('later');
RESET TimeZone;
SELECT pg_temp.create('e', '{"taskQueueId": "test/q"}');
SELECT is(pg_temp.why('e'), 'behind others', '8.5 why: others come before it');
SELECT is(pg_temp.detail('e', 'behind others'), '1 before it in test/q', '8.5 why: how many');
SELECT pg_temp.create('f', '{"taskQueueId": "test/q", "priority": "highest"}');
SELECT is(pg_temp.detail('e', 'behind others'), '2 before it in test/q', '8.5 why: with a higher priority, too');
SELECT is(pg_temp.why('f'), 'next', '8.5 why: the one with the highest priority is the next');
SELECT pg_temp.create('nobody', '{"taskQueueId": "test/empty"}');
SELECT is(pg_temp.why('nobody'), 'no worker, next', '8.5 why: no worker polls the queue');
SELECT matches(pg_temp.detail('nobody', 'no worker'), '^no worker has asked its queue for work$', '8.5 why: never');
SELECT tq.quarantine_worker('test/q', 'wg', 'w1', pg_temp.clock() + interval '1 day', 'broken') IS NOT NULL;
SELECT is(pg_temp.why('f'), 'quarantine, next', '8.5 why: all workers are in quarantine');
SELECT matches(pg_temp.detail('f', 'quarantine'), '^workers: 1; first until \d{4}-', '8.5 why: how many, until when');
SELECT is((SELECT state FROM tq.worker_overview WHERE task_queue_id = 'test/q'), 'quarantined', '8.5 a worker in quarantine');
SELECT is((SELECT workers_quarantined FROM tq.queue_stats WHERE task_queue_id = 'test/q'), 1::bigint, '8.5 workers in quarantine');
SELECT tq.quarantine_worker('test/q', 'wg', 'w1', pg_temp.clock() - interval '1 day', 'repaired') IS NOT NULL;
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.overview('a'), 'failed failed 0 wg/w1', '8.5 a failed task');
SELECT is(pg_temp.why('a'), 'failed', '8.5 why: it failed');
SELECT is(pg_temp.advice('a', 'failed'), format('SELECT tq.rerun_task(%L)', pg_temp.id('a')), '8.5 why: rerun it');
SELECT tq.enqueue('test/err', task_id => pg_temp.id(n)) FROM unnest('{ea,eb,ec,ed}'::text[]) AS u (n);
SELECT tq.report_failed(task_id, run_id, error => CASE task_id WHEN pg_temp.id('ea') THEN '{"code": 5, "message": "disk\nfull"}' WHEN pg_temp.id('eb') THEN to_jsonb(repeat('x', 60000)) WHEN pg_temp.id('ec') THEN '[1, null]' END)
	FROM tq.claim_work('test/err', 'wg', 'w1', tasks => 4);
SELECT matches(pg_temp.detail('ea', 'failed'), '^run 0: failed, [-+: 0-9]+; error: disk full$', '8.5 why: the message of its error');
SELECT matches(pg_temp.detail('eb', 'failed'), '; error: x{40}[.]{3}$', '8.5 why: a long one is cut');
SELECT matches(pg_temp.detail('ec', 'failed'), '; error: \[1, null\]$', '8.5 why: any JSON');
SELECT unalike(pg_temp.detail('ed', 'failed'), '%error%', '8.5 why: none');
SELECT tq.rerun_task(pg_temp.id('ea')) IS NOT NULL;
SELECT unalike(tq.why(pg_temp.id('ea'))::text, '%disk%', '8.5 why: a task that is rerun has no error');
SELECT tq.delete_task(pg_temp.id(n)) FROM unnest('{ea,eb,ec,ed}'::text[]) AS u (n);
SELECT is(pg_temp.advice('c', 'unscheduled'), format('SELECT tq.rerun_task(%L); SELECT tq.schedule_task(%L)', pg_temp.id('a'), pg_temp.id('c')), '8.5 why: a required task that failed');
SELECT is((SELECT format('%s %s %s %s %s', name, task_queue_id, state, reason, runs) FROM tq.failure_overview), 'a test/q failed failed 1', '8.5 failure_overview');
SELECT pg_temp.report('b', 'canceled');
SELECT is(pg_temp.overview('b'), 'exception canceled 0', '8.5 a canceled task');
SELECT is((SELECT count(*) FROM tq.failure_overview), 2::bigint, '8.5 failure_overview has exceptions');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.overview('a'), 'pending rerun 1', '8.5 a task that is rerun');
SELECT is((SELECT count(*) FROM tq.failure_overview), 1::bigint, '8.5 it is no failure any more');
SELECT task_id IS NOT NULL FROM tq.claim_task(pg_temp.id('a'), 1, 'wg', 'w1');
SELECT pg_temp.report('a', 'completed', 1);
SELECT is(pg_temp.overview('a'), 'completed completed 1 wg/w1', '8.5 a completed task');
SELECT is(pg_temp.why('a'), 'completed', '8.5 why: it is over');
SELECT is((SELECT met FROM tq.dependency_overview WHERE task_id = pg_temp.id('c')), true, '8.5 a dependency that is met');
SELECT is(pg_temp.why('c'), 'behind others', '8.5 why: the dependent is pending');
SELECT tq.delete_task(pg_temp.id('b'));
SELECT is((SELECT count(*) FROM tq.failure_overview), 0::bigint, '8.5 a deleted task is no failure');

-- what is retried is shown as it failed, whether its next run is pending, delayed or running
CREATE FUNCTION pg_temp.failures() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', name, state, reason, runs, worker, error ->> 'message', CASE WHEN retrying THEN 'retrying' END), ', ' ORDER BY name)
	FROM tq.failure_overview WHERE task_queue_id IN ('test/q-r1', 'test/q-r2')
$$;
SELECT pg_temp.running('r1', '{"retries": 1}'), pg_temp.running('r2', '{"policy": {"retries": 3, "retryOn": ["failed"], "retryBackoff": {"delay": 600}}}') \g /dev/null
SELECT is(pg_temp.failures(), NULL, '8.5 a first run is no failure');
SELECT pg_temp.report('r1', 'worker-shutdown'), tq.report_failed(pg_temp.id('r2'), 0, error_message => 'boom') \g /dev/null
SELECT is(pg_temp.failures(), 'r1 exception worker-shutdown 1 wg/w1 retrying, r2 failed failed 1 wg/w1 boom retrying', '8.5 failure_overview: a retry that is pending, and one that is delayed');
SELECT pg_temp.take('r1') \g /dev/null
SELECT is(pg_temp.failures(), 'r1 exception worker-shutdown 1 wg/w1 retrying, r2 failed failed 1 wg/w1 boom retrying', '8.5 failure_overview: a retry that runs');
SELECT pg_temp.report('r1', 'completed'), pg_temp.report('r2', 'canceled') \g /dev/null
SELECT is(pg_temp.failures(), 'r2 exception canceled 2', '8.5 failure_overview: a retry that ended');
SELECT tq.delete_task(pg_temp.id('r2')) \g /dev/null

-- when a worker was last seen, and what is cut
SELECT pg_temp.running('x', '{"taskQueueId": "test/seen"}');
SET tq.clock_offset = '3 hours';
SELECT pg_temp.create('y', '{"taskQueueId": "test/seen"}');
SELECT is(pg_temp.why('y'), 'no worker, next', '8.5 why: no worker has polled the queue for hours');
SELECT matches(pg_temp.detail('y', 'no worker'), '^no worker has asked since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d$', '8.5 why: since when');
RESET tq.clock_offset;
SELECT is(pg_temp.advice('y', 'no worker'), NULL, '8.5 why: now a worker was seen');
SELECT tq.enqueue(format('%s/%1$s', repeat('w', 38)), task_id => pg_temp.id(n), name => repeat('n', 38), dependencies => CASE n WHEN 'narrow' THEN pg_temp.ids('wide') ELSE '{}' END)
	FROM unnest('{wide, narrow, held}'::text[]) AS u (n);
SELECT task_id IS NOT NULL FROM tq.claim_task(pg_temp.id('held'), 0, repeat('g', 38), repeat('w', 38));
SELECT is(pg_temp.detail('narrow', 'unscheduled'), 'it depends on nnnnnnnnnnnnnnnnnnn...: pending', '8.5 why: long names are cut');

-- dead letters and groups
SELECT pg_temp.running('dead', '{"taskQueueId": "test/dead", "$group": "group", "policy": {"deadLetter": true}}');
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('dead')], ARRAY[0], 'failed-terminal');
SELECT is((SELECT format('%s %s %s', name, task_queue_id, reason) FROM tq.dead_letter_overview), 'dead test/dead failed-terminal', '8.5 dead_letter_overview');
SELECT is((SELECT format('%s %s', tasks, failed) FROM tq.group_overview WHERE task_group_id = pg_temp.id('group')), '1 1', '8.5 group_overview');

-- why a task is unscheduled
SELECT pg_temp.create('gone', '{"taskQueueId": "test/u"}');
SELECT pg_temp.create('orphan', '{"taskQueueId": "test/u", "$deps": ["gone"]}');
SELECT tq.delete_task(pg_temp.id('gone'));
SELECT is(pg_temp.why('orphan'), 'unscheduled', '8.5 why: a required task was deleted');
SELECT is(pg_temp.detail('orphan', 'unscheduled'), format('it depends on %s, deleted', pg_temp.id('gone')), '8.5 why: which');
SELECT is(pg_temp.advice('orphan', 'unscheduled'), format('SELECT tq.schedule_task(%L)', pg_temp.id('orphan')), '8.5 why: go on without it');
SELECT pg_temp.create('free', '{"taskQueueId": "test/u"}');
SELECT tq.define_task(pg_temp.id('defined'), pg_temp.def('defined', '{"taskQueueId": "test/u", "$deps": ["free"]}')) IS NOT NULL;
SELECT is(pg_temp.detail('defined', 'unscheduled'), 'it depends on free: pending; it depends on itself, so it waits for a call', '8.5 why: a task that was defined');
SELECT pg_temp.work('free', 'completed');
SELECT is(pg_temp.detail('defined', 'unscheduled'), 'it depends on itself, so it waits for a call', '8.5 why: its dependencies are met');
SELECT is(pg_temp.advice('defined', 'unscheduled'), format('SELECT tq.schedule_task(%L)', pg_temp.id('defined')), '8.5 why: schedule it');
SELECT pg_temp.create('gone', '{"taskQueueId": "test/u"}');
SELECT is(pg_temp.detail('orphan', 'unscheduled'), 'it depends on gone: pending', '8.5 why: a new task with the id of the deleted one');
SELECT pg_temp.work('gone', 'completed');
SELECT is(pg_temp.detail('orphan', 'unscheduled'), 'each task that it depends on is resolved', '8.5 why: that does not release it');
SELECT is(pg_temp.advice('orphan', 'unscheduled'), format('SELECT tq.schedule_task(%L)', pg_temp.id('orphan')), '8.5 why: schedule it');
SELECT tq.enqueue('test/u', task_id => pg_temp.id('nameless'));
SELECT pg_temp.create('waits', '{"taskQueueId": "test/u", "$deps": ["nameless"]}');
SELECT is(pg_temp.detail('waits', 'unscheduled'), format('it depends on %s: pending', pg_temp.id('nameless')), '8.5 why: a required task without a name');

-- by group: named after a task, of others, and of both
SELECT pg_temp.create('own', '{"taskQueueId": "test/q"}');
SELECT pg_temp.create('joined', '{"taskQueueId": "test/q", "$group": "own"}');
SELECT is((SELECT string_agg(name, ' ' ORDER BY name) FROM tq.task_details WHERE task_group_id = pg_temp.id('own')), 'joined own', '8.5 tasks of a group that is named after one');
SELECT is((SELECT string_agg(name, ' ') FROM tq.task_details WHERE pg_temp.id('group') = task_group_id), 'dead', '8.5 tasks of a group with a name of its own');
SELECT is((SELECT count(*) FROM tq.task_details WHERE task_group_id = pg_temp.id('joined')), 0::bigint, '8.5 a task that is in another group');
SELECT is((SELECT count(*) FROM tq.task_details WHERE task_group_id = NULL), 0::bigint, '8.5 no group');
SELECT is((SELECT count(*) FROM tq.task_details o JOIN (SELECT DISTINCT task_group_id FROM tq.task_details) g USING (task_group_id)),
	(SELECT count(*) FROM tq_internal.task), '8.5 each task has a group');
SELECT is((SELECT task_group_id::text FROM tq.task_details WHERE task_id = pg_temp.id('joined')), pg_temp.id('own')::text, '8.5 the group of a task');
PREPARE of_group AS SELECT string_agg(name, ' ' ORDER BY name) FROM tq.task_details WHERE task_group_id = $1;
SET plan_cache_mode = force_generic_plan;
SELECT results_eq(format('EXECUTE of_group(%L)', pg_temp.id('own')), $$VALUES ('joined own')$$, '8.5 by a parameter');
RESET plan_cache_mode;
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text = '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP plan = plan || line || E'\n'; END LOOP;
	RETURN plan;
END
$$;
SELECT unalike(pg_temp.plan(format('SELECT * FROM tq.task_details WHERE task_group_id = %L', pg_temp.id('own'))), '%group_slug(%', '8.5 a filter by group does not compute that of each task');
SET enable_seqscan = off;
SELECT unalike(pg_temp.plan(format('SELECT * FROM tq.run_overview WHERE task_id = %L', pg_temp.id('own'))), '%Seq Scan on pending%', '8.5 the runs of a task are found without all that are pending');
SELECT matches(pg_temp.plan(format('SELECT * FROM tq.run_overview WHERE task_id = %L', pg_temp.id('own'))), 'pending_order[^\n]*\n *Index Cond', '8.5 but by their indexes');
RESET enable_seqscan;
SELECT alike(pg_temp.plan($$SELECT * FROM tq.task_overview WHERE state = 'running'$$), '%Seq Scan on claim_timer%', '8.5 running tasks are found by their claims');

-- indexes that an administrator has added: by the columns of a filter, and of
-- another kind, which the executor maintains
CREATE INDEX task_name ON tq_internal.task ((metadata ->> 'name')) WHERE (metadata ->> 'name') IS NOT NULL;
SELECT pg_temp.create('indexed', '{"taskQueueId": "test/q"}');
SELECT tq.enqueue('test/q', name => 'enqueued') IS NOT NULL;
SELECT tq.enqueue('test/q') IS NOT NULL;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT alike(pg_temp.plan($$SELECT FROM tq.task_overview WHERE name = 'indexed'$$), '%task_name%', '8.5 an index on names is used');
SELECT is((SELECT string_agg(task_id::text, ' ') FROM tq.task_overview WHERE name = 'indexed'), pg_temp.id('indexed')::text, '8.5 a task is in an index on names');
SELECT is((SELECT count(*) FROM tq.task_overview WHERE name IN ('enqueued', 'own')), 2::bigint, '8.5 so are others');
RESET enable_bitmapscan;
CREATE INDEX task_tags ON tq_internal.task USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL;
SELECT tq.enqueue('test/q', tags => '{"kind": "tagged"}', name => 'tagged') IS NOT NULL;
SET enable_indexscan = off;
SELECT alike(pg_temp.plan($$SELECT FROM tq.task_details WHERE tags @> '{"kind": "tagged"}'$$), '%task_tags%', '8.5 an index on tags is used');
SELECT is((SELECT string_agg(name, ' ') FROM tq.task_details WHERE tags @> '{"kind": "tagged"}'), 'tagged', '8.5 a task is in an index on tags');
RESET enable_indexscan;
SELECT is((SELECT count(*) FROM tq.task_overview WHERE name = 'tagged'), 1::bigint, '8.5 and still in that on names');
DROP INDEX tq_internal.task_tags;
RESET enable_seqscan;

-- what maintenance has not come to
SELECT pg_temp.take('f');
SET tq.clock_offset = '20 minutes 30 seconds';
SELECT is(pg_temp.why('f'), 'claim expired', '8.5 why: an expired claim');
SELECT is(pg_temp.advice('f', 'claim expired'), 'maintenance is late: see tq.health()', '8.5 why: maintenance is late');
SET tq.clock_offset = '200 hours';
SELECT is(pg_temp.why('e'), 'no worker, next, past deadline', '8.5 why: past its deadline');
RESET tq.clock_offset;
INSERT INTO tq_internal.postponed SELECT id, now() + interval '1 minute', now(), now(), 3, 'deadline', 'out of memory' FROM tq_internal.task WHERE task_id = pg_temp.id('e');
SELECT is(pg_temp.why('e'), 'next, postponed, postponed', '8.5 why: a step of maintenance failed for it');
SELECT matches(pg_temp.detail('e', 'postponed'), '^step deadline has failed 3 times; error: out of memory$', '8.5 why: which, and why');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'postponed'), false, '8.5 health: postponed tasks');

-- health
SELECT pg_temp.throws(format('SELECT tq.health(%L)', given), 'TQ400', '8.5 health: ' || given)
FROM (VALUES ('[]'), ('{"disc": "1 GB"}'), ('{"disk": "much"}'), ('{"failures": "few"}'), ('{"queues": []}'), ('{"queues": {"test/q": "long"}}'), ('{"lateness": "290000 years"}')) AS t (given);
SELECT is((SELECT count(*) FROM tq.health('{"lateness": null, "failures": 5, "queues": {"test/q": "1 day"}}')), (SELECT count(*) FROM tq.health()), '8.5 health: other thresholds');
SELECT is((SELECT string_agg(name, ' ') FROM tq.health()),
	'version preload maintenance lateness steps postponed worker slots publisher subscriptions notifications oldest pending expired claims transactions dead rows paused limits gates replay clock listeners workers cron policies failures disk wraparound', '8.5 health: its checks');
SELECT is((SELECT count(*) FROM tq.health() WHERE ok IS NULL OR detail IS NULL OR (hint IS NULL) <> ok), 0::bigint, '8.5 health: a hint where it is not ok');
SELECT is((SELECT ok FROM tq.health() WHERE name = 'oldest pending'), true, '8.5 health: nothing is pending for long');
SET tq.clock_offset = '2 hours';
SELECT is((SELECT ok FROM tq.health() WHERE name = 'oldest pending'), false, '8.5 health: a run that is pending for long');
SET tq.clock_offset = '-2 hours';
SELECT matches((SELECT concat_ws('; ', ok, detail, hint) FROM tq.health() WHERE name = 'clock'), '^f; stored times are ahead of it by 0[12]:\d\d:\d\d; it was set back', '8.5 health: a clock that was set back');
RESET tq.clock_offset;
SELECT is((SELECT ok FROM tq.health() WHERE name = 'clock'), true, '8.5 health: one that was not');

-- in psql a row has at most 120 columns, lines and margins between them included
SET tq.clock_offset = '5 hours';
SELECT is((SELECT array_agg(DISTINCT w.reason ORDER BY w.reason) FROM tq.task_overview o, tq.why(o.task_id) w)::text,
	'{"behind others","claim expired",completed,delayed,failed,next,"no worker","past deadline",postponed,unscheduled}', '8.5 why: many reasons');
SELECT is((SELECT max(length(w.reason)) + max(length(w.detail)) + max(length(w.advice)) <= 120 - 8 FROM tq.task_overview o, tq.why(o.task_id) w), true, '8.5 why: all of them fit a screen');
SET tq.clock_offset = '500 hours';
SELECT is(pg_temp.advice('dead', 'failed'), 'call tq.rerun_task() with a new deadline', '8.5 why: a rerun after the deadline');
SELECT is((SELECT max(length(w.reason)) + max(length(w.detail)) + max(length(w.advice)) <= 120 - 8 FROM tq.task_overview o, tq.why(o.task_id) w), true, '8.5 why: and those past their deadline');
RESET tq.clock_offset;
SELECT is((SELECT max(length(name)) + 2 + max(length(detail)) + max(length(hint)) <= 120 - 11 FROM tq.health()), true, '8.5 health: it fits a screen');

-- a task with several runs is there once, with the last: as failed, as completed, and pending again after either
SELECT tq.enqueue('many/runs', retry => 1) AS many_runs \gset
CREATE FUNCTION pg_temp.of_last_run(task tq.slugid) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', o.state, o.reason, d.last_run_id, f.runs), ', ') FROM tq.task_overview o JOIN tq.task_details d USING (task_id)
		LEFT JOIN tq.failure_overview f USING (task_id) WHERE o.task_id = task
$$;
CREATE FUNCTION pg_temp.run_again(report text) RETURNS void LANGUAGE sql AS $$
	UPDATE tq_internal.delayed SET visible_at = '-infinity';
	SELECT tq.upkeep();
	SELECT CASE report WHEN 'failed' THEN tq.report_failed(c.task_id, c.run_id) ELSE tq.report_completed(c.task_id, c.run_id) END FROM tq.claim_work('many/runs', 'g', 'w') AS c
$$;
SELECT pg_temp.run_again('failed'), pg_temp.run_again('failed') \g /dev/null
SELECT is(pg_temp.of_last_run(:'many_runs'), 'failed failed 1 2', '8.5 the last run of a failed task');
SELECT tq.rerun_task(:'many_runs') \g /dev/null
SELECT is(pg_temp.of_last_run(:'many_runs'), 'pending rerun 2', '8.5 pending again after a failure');
SELECT pg_temp.run_again('completed') \g /dev/null
SELECT is(pg_temp.of_last_run(:'many_runs'), 'completed completed 2', '8.5 completed after failures');
SELECT tq.rerun_task(:'many_runs') \g /dev/null
SELECT is(pg_temp.of_last_run(:'many_runs'), 'pending rerun 3', '8.5 a completed task that is pending again');
SELECT pg_temp.run_again('completed') \g /dev/null
SELECT is(pg_temp.of_last_run(:'many_runs'), 'completed completed 3', '8.5 a task that was completed twice');

-- No view is compiled (jit_above_cost) with 200,000 tasks.  Estimates grow with the tables: these have a twentieth.
\ir ../bench/many.sql
CALL many.fill(10000, '5 days', true);
CALL many.add_groups(1000);
ANALYZE;
CREATE ROLE many_team;
SELECT tq.grant_queue('many_team', 'many/*', access) FROM unnest('{produce,work,read,manage}'::text[]) AS access \g /dev/null
CREATE FUNCTION pg_temp.cost_as(who name, query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('role', who, true);
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	PERFORM set_config('role', 'none', true);
	RETURN plan #>> '{0,Plan,Total Cost}';
END
$$;
SELECT cmp_ok(pg_temp.cost_as(who, format('SELECT %s FROM tq.%s', what, relname)), '<', 100000 / 20.0::float8, format('8.5 %s of %s for %s is not compiled', what, relname, who))
FROM pg_class, unnest('{*,count(*)}'::text[]) AS what, unnest('{postgres,many_team}'::name[]) AS who
WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v'
	AND (who = 'postgres' OR relname NOT IN ('audit', 'maintenance_overview')) ORDER BY who, relname, what;
SELECT cmp_ok(pg_temp.cost_as('postgres', 'SELECT * FROM tq_internal.visible_group_overview'), '<', 100000 / 20.0::float8, '8.5 nor is what a function reads for many_team');

-- every column of views and types is described
SELECT is((SELECT string_agg(format('%s.%s', c.relname, a.attname), ' ' ORDER BY c.relname, a.attnum)
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relnamespace = 'tq'::regnamespace AND c.relkind IN ('v', 'c') AND col_description(c.oid, a.attnum) IS NULL), NULL, '8.5 every column has a comment');

SELECT * FROM finish();
ROLLBACK;
