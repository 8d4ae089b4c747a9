-- upkeep: all that is due, in one pass.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- Tasks that expire are deleted although the log keeps their messages for an hour.
SET tq.message_retention = '1s';

SELECT step, CASE WHEN step IN ('publish', 'retain') THEN 0 ELSE tasks END AS tasks FROM tq.upkeep();

-- Claims that expire are retried, while retries are left
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('retry'), retries => 1);
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('last'), retries => 0);
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('renew'));
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('done'));
SELECT count(*) FROM tq.claim_work('regress/w', 'g', 'w', 4);
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('done'), 0));
SET tq.clock_offset = '15 minutes';
SELECT task_id FROM tq.reclaim_task(pg_temp.id('renew'), 0);
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SET tq.clock_offset = '21 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SELECT rtrim(left(task_id::text, 8), '_') AS task, pg_temp.brief(tq.status(task_id)) FROM tq.task_details ORDER BY 1;
SET tq.clock_offset = '36 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SELECT task_id, run_id FROM tq.claim_work('regress/w', 'g', 'w2', 5);
SELECT rtrim(left(task_id::text, 8), '_') AS task, pg_temp.brief(tq.status(task_id)) FROM tq.task_details ORDER BY 1;
RESET tq.clock_offset;

-- Deadlines, in each state; dependents are released where that counts
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('d1'), deadline => '1 hour', dependencies => ARRAY[pg_temp.id('d1')]);
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('d2'), deadline => '1 hour', priority => 'low');
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('d3'), deadline => '1 hour', priority => 'high');
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('d4'), deadline => '1 hour', priority => 'high');
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('some'), dependencies => ARRAY[pg_temp.id('d1'), pg_temp.id('d2'), pg_temp.id('d3')], requires => 'all-resolved');
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('none'), dependencies => ARRAY[pg_temp.id('d1')]);
SELECT task_id FROM tq.claim_work('regress/d', 'g', 'w', 2);
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('d4'), 0));
SET tq.clock_offset = '61 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE step = 'deadline';
SELECT rtrim(left(task_id::text, 8), '_') AS task, pg_temp.brief(tq.status(task_id)) FROM tq.task_details
WHERE task_queue_id IN ('regress/d', 'regress/x') ORDER BY 1;
SELECT task_id FROM tq.claim_work('regress/d', 'g', 'w', 2);
SELECT task_id FROM tq.claim_work('regress/x', 'g', 'w', 2);
RESET tq.clock_offset;

-- Delayed runs become claimable when they are due
SELECT tq.enqueue('regress/y', task_id => pg_temp.id('wait'));
SELECT tq.enqueue('regress/y', task_id => pg_temp.id('next'));
WITH p AS (DELETE FROM tq_internal.pending USING tq_internal.task t WHERE t.id = task AND task_id = pg_temp.id('wait') RETURNING pending.*)
INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
SELECT scheduled + interval '10 minutes', task, scheduled, queue, priority, run_id, retries_left, reason_created FROM p;
SELECT pg_temp.brief(tq.status(pg_temp.id('wait')));
SET tq.clock_offset = '9 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SET tq.clock_offset = '11 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SELECT pg_temp.brief(tq.status(pg_temp.id('wait')));
SELECT task_id FROM tq.claim_work('regress/y', 'g', 'w', 2);
RESET tq.clock_offset;

-- Expiry: half an hour after a task expires all of its rows are deleted, whatever its state
SELECT tq.enqueue('regress/z', task_id => pg_temp.id('z1'), deadline => '1 hour', expires => '0', task_group_id => pg_temp.id('zgroup'));
SELECT tq.enqueue('regress/z', task_id => pg_temp.id('z2'), deadline => '1 hour', expires => '1 hour', dependencies => ARRAY[pg_temp.id('z2')]);
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('z1')));
-- the resolution is published, also after the task is deleted
SELECT pg_temp.told();
SET tq.clock_offset = '89 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE step = 'expired';
SELECT pg_temp.told();
SET tq.clock_offset = '91 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE step = 'expired';
SELECT code, message FROM pg_temp.answer($$SELECT tq.status(pg_temp.id('z1'))$$);
SELECT pg_temp.brief(tq.status(pg_temp.id('z2')));
-- the group is deleted an hour after its task
SELECT count(*) FROM tq_internal.task_group WHERE task_group_id = pg_temp.id('zgroup');
SET tq.clock_offset = '1099 days';
SELECT step FROM tq.upkeep() WHERE step = 'expired';
SELECT pg_temp.told();
SET tq.clock_offset = '1100 days';
-- what the publisher has begun to publish is there
DO $$ BEGIN
	FOR i IN 1 .. 2000 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM tq_internal.unpublished);
		PERFORM pg_sleep(0.005);
		COMMIT;
	END LOOP;
END $$;
SELECT step, tasks FROM tq.upkeep() WHERE step = 'expired';
SELECT relname, (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM tq_internal.%I', relname), false, true, '')))[1]::text AS rows
FROM pg_class WHERE relnamespace = 'tq_internal'::regnamespace AND relkind = 'r' AND relname NOT IN ('queue', 'worker', 'queue_history', 'task_name_history', 'task_name_pass') AND relname !~ '^(message_|tick_|log_segment$)' ORDER BY 1;
RESET tq.clock_offset;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
