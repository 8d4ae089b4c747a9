-- Task groups: created by their first task, one scheduler, sealed, canceled, counted.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- A task alone is its own group
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('alone'));
SELECT pg_temp.stable(jsonb_pretty(tq.get_task_group(pg_temp.id('alone'))));
SELECT (tq.get_task_group(pg_temp.id('alone')) ->> 'expires')::timestamptz - expires AS longer FROM tq_internal.task WHERE task_id = pg_temp.id('alone');
SELECT task_id FROM tq.list_task_group(pg_temp.id('alone'));
SELECT tasks, pending, outcome, first_created = (SELECT created FROM tq_internal.task WHERE task_id = pg_temp.id('alone')) AS created, last_resolved FROM tq.group_progress(pg_temp.id('alone'));
SELECT count(*) FROM tq_internal.task_group;

-- Others join it; it lives an hour longer than the last of them
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('more'), task_group_id => pg_temp.id('alone'), expires => '2 years');
SELECT (tq.get_task_group(pg_temp.id('alone')) ->> 'expires')::timestamptz - expires AS longer FROM tq_internal.task WHERE task_id = pg_temp.id('more');
SELECT task_id, status ->> 'state' AS state, task ->> 'taskGroupId' AS task_group_id FROM tq.list_task_group(pg_temp.id('alone'));
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), task_group_id => pg_temp.id('alone'), scheduler_id => 'other')$$);

-- Pages
SELECT count(tq.enqueue('regress/p', task_id => pg_temp.id('p' || n), task_group_id => pg_temp.id('pages'))) FROM generate_series(1, 5) n;
SELECT task_id FROM tq.list_task_group(pg_temp.id('pages'), max => 2);
SELECT task_id FROM tq.list_task_group(pg_temp.id('pages'), pg_temp.id('p2'), 2);
SELECT task_id FROM tq.list_task_group(pg_temp.id('pages'), pg_temp.id('p4'), 2);
SELECT task_id FROM tq.list_task_group(pg_temp.id('pages'), pg_temp.id('p5'), 2);

-- Progress and outcome
SELECT tq.enqueue('regress/g', task_id => pg_temp.id('g1'), task_group_id => pg_temp.id('group'), scheduler_id => 's');
SELECT tq.enqueue('regress/g', task_id => pg_temp.id('g2'), task_group_id => pg_temp.id('group'), scheduler_id => 's', dependencies => ARRAY[pg_temp.id('g1')]);
SELECT tq.enqueue('regress/g', task_id => pg_temp.id('g3'), task_group_id => pg_temp.id('group'), scheduler_id => 's');
SELECT tasks, unscheduled, delayed, pending, running, completed, failed, exception, tolerated, outcome, first_created IS NOT NULL AS created, last_resolved IS NOT NULL AS resolved
FROM tq.group_progress(pg_temp.id('group'));
SELECT task_id FROM tq.claim_work('regress/g', 'g', 'w', 2);
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('g1')], ARRAY[0]);
SELECT tasks, unscheduled, delayed, pending, running, completed, failed, exception, tolerated, outcome, first_created IS NOT NULL AS created, last_resolved IS NOT NULL AS resolved
FROM tq.group_progress(pg_temp.id('group'));
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('g3')], ARRAY[0], 'failed');
SELECT * FROM pg_temp.answer($$SELECT tq.cancel_task_group(pg_temp.id('group'))$$);
SELECT pg_temp.stable(tq.seal_task_group(pg_temp.id('group'))::text);
SELECT tq.seal_task_group(pg_temp.id('group')) = tq.seal_task_group(pg_temp.id('group')) AS the_same;
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/g', task_id => pg_temp.id('new'), task_group_id => pg_temp.id('group'), scheduler_id => 's')$$);
-- repeated later, because the outcome is that of the first unsuccessful task
SET tq.clock_offset = '1 minute';
SELECT tq.cancel_task_group(pg_temp.id('group'));
RESET tq.clock_offset;
SELECT tq.cancel_task_group(pg_temp.id('group'));
SELECT tasks, unscheduled, delayed, pending, running, completed, failed, exception, tolerated, outcome, first_created IS NOT NULL AS created, last_resolved IS NOT NULL AS resolved
FROM tq.group_progress(pg_temp.id('group'));
SELECT rtrim(left(task_id::text, 8), '_') AS task, pg_temp.brief(status) FROM tq.list_task_group(pg_temp.id('group'));

-- A repeat of a creation in a sealed group is refused too; the group of a lone task can be sealed
SELECT pg_temp.brief(tq.create_task(pg_temp.id('lone'), d)) FROM (SELECT pg_temp.def() AS d) x;
SELECT tq.seal_task_group(pg_temp.id('lone')) ->> 'taskGroupId' AS sealed;
SELECT code, message, detail, hint FROM tq.task(pg_temp.id('lone')) d, pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''lone''), %L)', d)) a;
SELECT tq.cancel_task_group(pg_temp.id('lone'));

-- No such group
SELECT f, a.* FROM unnest('{get_task_group,list_task_group,seal_task_group,cancel_task_group,group_progress}'::text[]) f,
	pg_temp.answer(format('SELECT tq.%s(pg_temp.id(''nobody''))', f)) a;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
