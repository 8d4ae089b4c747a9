-- doc/spec/taskcluster.md 2.16: lists of runs, queues, worker types, provisioners and
-- workers: what is in them, their order, and pages.
BEGIN;
\ir helper.psql

-- The names of the tasks of a list, which is read in pages of that size.
CREATE FUNCTION pg_temp.pages(list text, queue text, size int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	place text;
	names text := '';
	row record;
	n int;
BEGIN
	LOOP
		n := 0;
		FOR row IN EXECUTE format('SELECT task_id, page FROM tq.%I($1, $2, $3)', list) USING queue, place, size LOOP
			names := names || ' ' || pg_temp.name(row.task_id);
			place := row.page;
			n := n + 1;
		END LOOP;
		EXIT WHEN n < size OR length(names) > 1000;
	END LOOP;
	RETURN ltrim(names);
END
$$;

-- listPendingTasks
SELECT is_empty($$SELECT * FROM tq.list_pending_tasks('test/unknown')$$, '2.16 listPendingTasks: of an unknown queue');
SELECT pg_temp.create('p' || n, jsonb_build_object('taskQueueId', 'test/list', 'priority', (ARRAY['low', 'highest', 'lowest'])[n % 3 + 1], 'metadata', pg_temp.def('p' || n) -> 'metadata'))
FROM generate_series(1, 7) AS n;
SELECT pg_temp.create('other', '{"taskQueueId": "test/list2"}');
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 1000), 'p1 p2 p3 p4 p5 p6 p7', '2.16 listPendingTasks: in the order of becoming pending, whatever the priority');
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', n), 'p1 p2 p3 p4 p5 p6 p7', '2.16 listPendingTasks: in pages of ' || n) FROM generate_series(1, 4) AS n;
SELECT is(r.task, tq.task(pg_temp.id('p1')), '2.16 listPendingTasks: task') FROM tq.list_pending_tasks('test/list', max => 1) AS r;
SELECT is(r.inserted, (tq.status(pg_temp.id('p1')) #>> '{runs,0,scheduled}')::timestamptz, '2.16 listPendingTasks: inserted') FROM tq.list_pending_tasks('test/list', max => 1) AS r;
SELECT is(r.run_id, 0, '2.16 listPendingTasks: runId') FROM tq.list_pending_tasks('test/list', max => 1) AS r;
SELECT is(array_agg(inserted ORDER BY page::bigint), array_agg(inserted ORDER BY inserted), '2.16 listPendingTasks: times are in order') FROM tq.list_pending_tasks('test/list');
SELECT is(tq.change_task_priority(pg_temp.id('p7'), 'very-high') ->> 'priority', 'very-high', '2.16 the last one gets another priority');
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 3), 'p1 p2 p3 p4 p5 p6 p7', '2.16 listPendingTasks: and keeps its place');
SELECT pg_temp.create('dead', '{"taskQueueId": "test/list", "$deadline": "10 minutes"}');
SELECT pg_temp.create('wait', '{"taskQueueId": "test/list", "delay": 600}');
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 100), 'p1 p2 p3 p4 p5 p6 p7 dead', '2.16 listPendingTasks: without those that are delayed');
SET tq.clock_offset = '11 minutes';
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 2), 'p1 p2 p3 p4 p5 p6 p7', '2.16 listPendingTasks: without those past their deadline');
SELECT pg_temp.pass();
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 2), 'p1 p2 p3 p4 p5 p6 p7 wait', '2.16 listPendingTasks: a delayed one, when it is due');
SELECT is(r.inserted, (tq.status(pg_temp.id('wait')) #>> '{runDetails,0,visibleAt}')::timestamptz, '2.16 listPendingTasks: and since then') FROM tq.list_pending_tasks('test/list') AS r WHERE task_id = pg_temp.id('wait');
RESET tq.clock_offset;
-- a page is a place, not a row: it may have been claimed meanwhile
CREATE TEMP TABLE place AS SELECT page FROM tq.list_pending_tasks('test/list', max => 2) OFFSET 1;
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id(n), 0, 'wg', 'w1')), 1::bigint, '2.16 ' || n || ' is claimed') FROM unnest('{p2,p3}'::text[]) AS n;
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY i.page::bigint) FROM tq.list_pending_tasks('test/list', place.page) AS i), 'p4 p5 p6 p7 wait', '2.16 listPendingTasks: goes on after a run that was claimed') FROM place;
SELECT pg_temp.report('p2', 'intermittent-task');
SELECT is(pg_temp.pages('list_pending_tasks', 'test/list', 2), 'p1 p4 p5 p6 p7 wait p2', '2.16 listPendingTasks: a retry is the last one');
SELECT is(r.run_id, 1, '2.16 listPendingTasks: its runId') FROM tq.list_pending_tasks('test/list') AS r WHERE task_id = pg_temp.id('p2');

-- listClaimedTasks
SELECT is_empty($$SELECT * FROM tq.list_claimed_tasks('test/unknown')$$, '2.16 listClaimedTasks: of an unknown queue');
SELECT pg_temp.create('c' || n, '{"taskQueueId": "test/claims"}') FROM generate_series(1, 9) AS n;
SELECT is(pg_temp.claims('test/claims', 4, 'w1'), 'c1 c2 c3 c4', '2.16 four are claimed at once');
SELECT is(pg_temp.claims('test/claims', 1, 'w2'), 'c5', '2.16 then one');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('c7'), 0, 'wg', 'w3')), 1::bigint, '2.16 one by name');
SET tq.clock_offset = '1 second';
SELECT is(pg_temp.claims('test/claims', 1, 'w1'), 'c6', '2.16 and one more');
RESET tq.clock_offset;
SELECT is(pg_temp.pages('list_claimed_tasks', 'test/claims', n), 'c1 c2 c3 c4 c5 c7 c6', '2.16 listClaimedTasks: in the order of claims, in pages of ' || n) FROM unnest('{1,2,3,7,1000}'::int[]) AS n;
SELECT is(r.worker_group || '/' || r.worker_id || '/' || r.run_id, 'wg/w3/0', '2.16 listClaimedTasks: who has it') FROM tq.list_claimed_tasks('test/claims') AS r WHERE task_id = pg_temp.id('c7');
SELECT is(r.task, tq.task(pg_temp.id('c7')), '2.16 listClaimedTasks: task') FROM tq.list_claimed_tasks('test/claims') AS r WHERE task_id = pg_temp.id('c7');
SELECT is(r.claimed, (tq.status(pg_temp.id('c7')) #>> '{runs,0,started}')::timestamptz, '2.16 listClaimedTasks: claimed') FROM tq.list_claimed_tasks('test/claims') AS r WHERE task_id = pg_temp.id('c7');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('c1'), 0)$$, '2.16 a reclaim');
SELECT pg_temp.report('c2', 'completed');
SELECT pg_temp.report('c3', 'worker-shutdown');
SELECT is(pg_temp.pages('list_claimed_tasks', 'test/claims', 2), 'c1 c4 c5 c7 c6', '2.16 listClaimedTasks: once each, without those that are resolved');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('c4'), 0)$$, '2.16 a later reclaim');
SET tq.clock_offset = '21 minutes';
SELECT is(pg_temp.pages('list_claimed_tasks', 'test/claims', 2), 'c4', '2.16 listClaimedTasks: without claims that have expired');
SELECT is((tq.task_queue_counts('test/claims') ->> 'claimedTasks')::int, 1, '8.1 as they are counted');
RESET tq.clock_offset;
SELECT pg_temp.throws(format('SELECT * FROM tq.%s', call), 'TQ400', '2.16 refused: ' || call)
FROM unnest(ARRAY['list_pending_tasks(''a/b'', ''x'')', 'list_pending_tasks(''a/b'', '''')', 'list_pending_tasks(''a/b'', ''1.2'')', 'list_pending_tasks(''a/b'', ''99999999999999999999'')',
	'list_pending_tasks(''a/b/c'')', 'list_pending_tasks(''a/b'', max => 0)', 'list_pending_tasks(''a/b'', max => 1001)', 'list_pending_tasks(NULL)',
	'list_claimed_tasks(''a/b'', ''1'')', 'list_claimed_tasks(''a/b'', ''1.'')', 'list_claimed_tasks(''a/b'', ''.1'')', 'list_workers(''a/b'', after => ''x'')', 'list_task_queues(max => NULL)']) AS call;

-- queues, worker types, provisioners
SELECT pg_temp.claims(q, 1) FROM unnest('{lp/b,lp/a,lq/c,lp/d}'::text[]) AS q;
SET tq.clock_offset = '2 hours';
SELECT pg_temp.claims('lp/c', 1);
RESET tq.clock_offset;
SELECT pg_temp.create('unseen', '{"taskQueueId": "lr/unseen"}');
SELECT is((SELECT string_agg(task_queue_id, ' ' ORDER BY ordinality) FROM tq.list_task_queues() WITH ORDINALITY AS q WHERE task_queue_id LIKE 'l_/%'),
	'lp/a lp/b lp/c lp/d lq/c', '2.16 listTaskQueues: by name; not those that no worker has asked');
SELECT is((SELECT string_agg(task_queue_id, ' ') FROM tq.list_task_queues('lp/b', 2)), 'lp/c lp/d', '2.16 listTaskQueues: a page');
SELECT is(to_jsonb(q) - '{expires,last_date_active}'::text[], '{"task_queue_id": "lp/c", "provisioner_id": "lp", "worker_type": "c", "description": "", "stability": "experimental", "page": "lp/c"}', '2.16 listTaskQueues: a row')
FROM tq.list_task_queues('lp/b', 1) AS q;
SELECT is(w - '{expires,lastDateActive}'::text[], '{"taskQueueId": "lp/c", "provisionerId": "lp", "workerType": "c", "description": "", "stability": "experimental", "settings": {}}', '2.16 getTaskQueue') FROM tq.get_task_queue('lp/c') AS w;
SELECT ok(pg_temp.near(w ->> 'expires', now() + interval '26 hours') AND pg_temp.near(w ->> 'lastDateActive', now() + interval '2 hours'), '2.16 getTaskQueue: its times') FROM tq.get_task_queue('lp/c') AS w;
SELECT pg_temp.throws('SELECT tq.' || call, 'TQ404', '2.16 unknown: ' || call)
FROM unnest(ARRAY['get_task_queue(''lp/z'')', 'get_task_queue(''lr/unseen'')']) AS call;
SET tq.clock_offset = '25 hours';
SELECT is((SELECT string_agg(task_queue_id, ' ') FROM tq.list_task_queues('l') WHERE task_queue_id LIKE 'l_/%'), 'lp/c', '2.16 expired queues are hidden');
SELECT pg_temp.throws($$SELECT tq.get_task_queue('lp/a')$$, 'TQ404', '2.16 getTaskQueue: expired');
RESET tq.clock_offset;

-- listWorkers
SELECT pg_temp.claims('lw/t', 1, w) FROM unnest('{w3,w1,w2}'::text[]) AS w;
SELECT count(*) FROM tq.claim_work('lw/t', 'a.b', 'z');
SELECT is((SELECT string_agg(page, ' ') FROM tq.list_workers('lw/t')), 'a.b/z wg/w1 wg/w2 wg/w3', '2.16 listWorkers: by group and id');
SELECT is((SELECT string_agg(page, ' ') FROM tq.list_workers('lw/t', NULL, 'a.b/z', 2)), 'wg/w1 wg/w2', '2.16 listWorkers: a page');
SELECT is(to_jsonb(w) - '{first_claim,last_date_active}'::text[],
	'{"worker_group": "wg", "worker_id": "w1", "latest_task_id": null, "latest_run_id": null, "quarantine_until": null, "page": "wg/w1"}', '2.16 listWorkers: a row') FROM tq.list_workers('lw/t', after => 'a.b/z', max => 1) AS w;
SELECT ok(abs(extract(epoch FROM first_claim - now())) < 30 AND abs(extract(epoch FROM last_date_active - now())) < 30, '2.16 listWorkers: its times') FROM tq.list_workers('lw/t', after => 'a.b/z', max => 1) AS w;
SELECT lives_ok($$SELECT tq.quarantine_worker('lw/t', 'wg', 'w2', now() + interval '2 days')$$, '2.16 one is in quarantine');
SELECT is((SELECT string_agg(page, ' ') FROM tq.list_workers('lw/t', true)), 'wg/w2', '2.16 listWorkers: those in quarantine');
SELECT is((SELECT string_agg(page, ' ') FROM tq.list_workers('lw/t', false)), 'a.b/z wg/w1 wg/w3', '2.16 listWorkers: the others');
SELECT is((SELECT quarantine_until FROM tq.list_workers('lw/t', true)), date_trunc('milliseconds', now()) + interval '2 days', '2.16 listWorkers: quarantineUntil');
SELECT pg_temp.create('lw' || n, '{"taskQueueId": "lw/t"}') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.claims('lw/t', 2, 'w1') || pg_temp.claims('lw/t', 1, 'w3'), 'lw1 lw2lw3', '2.16 claims');
SELECT is((SELECT string_agg(worker_id || ' ' || pg_temp.name(latest_task_id) || '/' || latest_run_id, ' ') FROM tq.list_workers('lw/t') WHERE latest_task_id IS NOT NULL), 'w1 lw2/0 w3 lw3/0', '2.16 listWorkers: the latest task');
SET tq.clock_offset = '25 hours';
SELECT is((SELECT string_agg(page, ' ') FROM tq.list_workers('lw/t')), 'wg/w2', '2.16 listWorkers: without those that have expired, unless in quarantine');
SET tq.clock_offset = '49 hours';
SELECT is_empty($$SELECT * FROM tq.list_workers('lw/t')$$, '2.16 listWorkers: until it ends');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
