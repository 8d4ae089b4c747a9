-- An SRE: what is seen of workers that are gone and of a wave of failures, and the way back.
\ir helper.psql
CREATE ROLE users_app IN ROLE tq_producer, tq_worker;
CREATE ROLE users_sre IN ROLE tq_reader;
CREATE ROLE users_monitor IN ROLE pg_monitor;
SELECT tq.grant_queue('users_sre', '*', 'manage') \g /dev/null
CREATE FUNCTION users.health() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(': ', name, detail, hint), '; ') FROM tq.health() WHERE NOT ok AND name NOT IN ('dead rows', 'worker slots')
$$;

-- Three workers of a program have what they can, and two tasks wait.
SET ROLE users_app;
SELECT tq.enqueue_tasks('shop/mail', array_fill('{"step": "mail"}'::jsonb, '{5}')) \g /dev/null
SELECT tq.claim_work('shop/mail', 'eu', 'host-7-' || n) FROM generate_series(1, 3) AS n \g /dev/null
SET ROLE users_sre;
SELECT users.is(users.health(), NULL, 'nothing is wrong');
SELECT users.is((SELECT concat_ws(' ', pending, running, workers_running, unattended) FROM tq.queue_stats), '2 3 3 f', 'what the queue holds');
SELECT users.matches((SELECT string_agg(line, E'\n') FROM tq.top() AS line), 'all \d+ checks are ok.*shop/mail .*host-7-1', 'one screen');
SELECT task_id AS waiting FROM tq.list_pending_tasks('shop/mail', max => 1) \gset

-- An alarm and its metrics need no more than pg_monitor, which sees no payload.
SET ROLE users_monitor;
SELECT users.is((SELECT count(*) FROM tq.health() WHERE NOT ok AND name NOT IN ('dead rows', 'worker slots')), 0, 'the query of an alarm');
SELECT users.is((SELECT created FROM tq.queue_stats), 5, 'the counters of metrics');
SELECT users.matches((SELECT string_agg(line, E'\n') FROM tq.top() AS line), 'shop/mail', 'the screen');
SELECT users.fails('SELECT tq.task(task_id) FROM tq.task_overview', '^(42501|TQ40[34]) ', 'but no payload');

-- All workers are killed: within a minute and a half that is seen.
RESET ROLE;
BEGIN;
SET LOCAL tq.clock_offset = '90 s';
SET LOCAL ROLE users_sre;
SELECT users.matches(users.why(:'waiting'), 'no worker: no worker has asked since .*: start one', 'why says that they are gone');
SELECT users.is((SELECT unattended FROM tq.queue_stats), true, 'the queue says so');
SELECT users.matches((SELECT string_agg(line, E'\n') FROM tq.top() AS line), 'shop/mail: no worker has asked since', 'the screen says so');
SELECT tq.worker_removed('shop/mail', 'eu', 'host-7-*') \g /dev/null
SELECT users.matches(users.health(), 'workers: no worker has asked since .*start workers of shop/mail', 'health has the hint, when nothing runs');
ROLLBACK;
SET ROLE users_sre;

-- The program starts again: one call ends what its last life had.
SELECT users.is((SELECT count(*) FROM tq.worker_removed('shop/mail', 'eu', 'host-7-*', 'restarted') WHERE outcome = 'retried'), 3, 'the runs of its workers are given back');
SELECT users.is((SELECT count(*) FROM tq.worker_removed('shop/mail', 'eu', 'host-8-*')), 0, 'one that was never seen is no error');

-- A wave of failures.
SET ROLE users_app;
SELECT users.is(users.work('{shop/mail}', '{mail}'), 5, 'each fails');
SET ROLE users_sre;
SELECT users.is((SELECT concat_ws(' ', task_queue_id, error ->> 'message', count(*)) FROM tq.failure_overview GROUP BY task_queue_id, error), 'shop/mail no space left 5', 'what failed, where and why');
SELECT users.is((SELECT failed FROM tq.queue_stats), 5, 'the counter of an alarm');
SELECT users.is((SELECT array_agg(name) FROM tq.health('{"failures": 4}') WHERE NOT ok), '{failures}', 'an alarm at a threshold of one''s own');
SELECT users.is((SELECT array_agg(name ORDER BY name) FROM tq.health() WHERE ok AND name IN ('disk', 'wraparound')), '{disk,wraparound}', 'disk and wraparound');
SELECT users.is(tq.pause_queue('shop/mail') IS NOT NULL, true, 'the queue is paused');
SELECT users.is(count(tq.rerun_task(task_id)), 5, 'what failed runs again') FROM tq.failure_overview;
SET ROLE users_app;
SELECT users.is((SELECT count(*) FROM tq.claim_work('shop/mail')), 0, 'but not yet');
SET ROLE users_sre;
SELECT users.matches(users.health(), 'paused: .*shop/mail.*resume_queue', 'health says that it is paused, and what ends that');
SELECT tq.resume_queue('shop/mail') \g /dev/null
SET ROLE users_app;
SELECT users.is(users.work('{shop/mail}'), 5, 'and then it works');
SET ROLE users_sre;
SELECT users.is(users.health(), NULL, 'nothing is wrong any more');

-- A kind of task must stop.
SET ROLE users_app;
SELECT tq.enqueue_tasks('shop/letters', array_fill('{}'::jsonb, '{30}'), tags => '{"campaign": "7"}') \g /dev/null
SELECT tq.enqueue_tasks('shop/letters', array_fill('{}'::jsonb, '{20}')) \g /dev/null
SET ROLE users_sre;
CALL tq.cancel_tasks('shop/letters', tags => '{"campaign": "7"}') \gset
SELECT users.is(:tasks, 30, 'a campaign is canceled');
CALL tq.move_tasks('shop/letters', 'shop/letters-2') \gset
SELECT users.is(:tasks, 20, 'and the others are moved');

-- Whatever the guide has to intervene.
SET ROLE users_app;
SELECT tq.slugid() AS grp, tq.enqueue('shop/export', delay => '1 day') AS later, tq.enqueue('shop/export') AS other \gset
SELECT tq.enqueue('shop/export', task_group_id => :'grp', dependencies => ARRAY[:'later']) AS waits \gset
SELECT tq.enqueue('shop/export', '{"step": "export"}', task_group_id => :'grp', policy => '{"deadLetter": true}', priority => 'highest') AS broken \gset
SELECT tq.seal_task_group(:'grp') \g /dev/null
SELECT tq.claim_task(:'broken', 0), tq.report_failed(:'broken', 0, error_message => 'no route') \g /dev/null
SET ROLE users_sre;
SELECT users.is(tq.add_dependencies(:'waits', ARRAY[:'other']) ->> 'state', 'unscheduled', 'a task waits for one more');
SELECT users.is(tq.reschedule_task(:'later') ->> 'state', 'pending', 'one goes now');
SELECT users.is(tq.change_task_priority(:'later', 'high') ->> 'priority', 'high', 'and first');
SELECT users.is(tq.change_task_group_priority(:'grp', 'low') ->> 'newPriority', 'low', 'a group goes later');
SELECT users.is(tq.skip_task(:'other', '{"file": "old"}') ->> 'state', 'completed', 'one is skipped');
SELECT users.is(tq.schedule_task(:'waits') ->> 'state', 'pending', 'one does not wait any longer');
SELECT users.is((SELECT task_id FROM tq.dead_letter_overview)::text, :'broken', 'a dead letter');
SELECT users.is(tq.redrive(:'broken') ->> 'state', 'pending', 'is tried again');
SELECT users.is(tq.redrive_queue('shop/export'), 0, 'and there is no other');
SELECT users.is(tq.cancel_task_group(:'grp') ->> 'cancelledCount', '2', 'a sealed group is canceled');
SELECT users.is(tq.retry_task_group(:'grp', reasons => '{canceled}'), 2, 'and repaired');
SELECT users.is(tq.cancel_task(:'waits') ->> 'state', 'exception', 'a task is canceled');
SELECT users.is(tq.rerun_task(:'waits') ->> 'state', 'pending', 'and runs again');
SELECT users.is(tq.quarantine_worker('shop/mail', 'eu', 'host-7-1', now() + interval '1 day', 'its disk is full') IS NOT NULL, true, 'a worker gets nothing');
SELECT users.is((SELECT state FROM tq.worker_overview WHERE worker_id = 'host-7-1'), 'quarantined', 'and is shown so');
SELECT tq.delete_task(:'later') \g /dev/null
SELECT users.fails(format('SELECT tq.status(%L)', :'later'), '^TQ404', 'a task is deleted');
SELECT users.is(tq.purge('shop/mail', '{completed}', '0'), 5, 'what is completed is purged');

-- An outage of a month, with tasks that have a deadline.
SET ROLE users_app;
SELECT tq.enqueue_tasks('shop/offer', array_fill('{}'::jsonb, '{1000}'), deadline => '1 day') \g /dev/null
RESET ROLE;
BEGIN;
SET LOCAL tq.clock_offset = '30 days';
SELECT users.is((SELECT tasks FROM tq.upkeep() WHERE step = 'deadline'), 1000, 'a thousand overdue tasks end at once');
SET ROLE users_sre;
SELECT users.is((SELECT pending FROM tq.queue_stats WHERE task_queue_id = 'shop/letters-2'), 20, 'those without a deadline wait');
SELECT users.is((SELECT count(*) FROM tq.maintenance_overview WHERE state = 'failing'), 0, 'no step fails');
ROLLBACK;
SELECT '1..' || currval('users.n');
