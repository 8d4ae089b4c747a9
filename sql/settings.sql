-- Settings: names, limits, defaults, who may set them, and what each does.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
RESET tq.default_deadline;
\set ECHO all

SELECT name, vartype, unit, boot_val, min_val, max_val, context, setting = boot_val AS is_default
FROM pg_settings WHERE name LIKE 'tq.%' ORDER BY name COLLATE "C";
SELECT name FROM pg_settings WHERE name LIKE 'tq.%' AND (short_desc = '' OR short_desc IS NULL);

-- Units and limits
SET tq.claim_timeout = '20min';
SHOW tq.claim_timeout;
SET tq.claim_timeout = '1500ms';
SHOW tq.claim_timeout;
-- (from 17 on the server writes units in ranges)
SELECT name, setting, a.code, regexp_replace(a.message, ' m?s(?=[ )])', '', 'g') AS message, a.detail, a.hint
FROM (VALUES ('tq.claim_timeout', '0'), ('tq.claim_timeout', '-1'), ('tq.claim_timeout', 'soon'), ('tq.claim_timeout', '100d'),
	('tq.max_deadline', '0'), ('tq.max_deadline', '100000d'), ('tq.deadline_delay', '-1'),
	('tq.max_runs', '0'), ('tq.max_runs', '1001'), ('tq.max_runs', '1002'), ('tq.max_dependencies', '-1'), ('tq.max_dependencies', '10001'),
	('tq.max_batch', '0'), ('tq.max_wait', '-1'), ('tq.max_wait', '61min'), ('tq.max_waiters', '-1'), ('tq.max_subscriptions', '-1'),
	('tq.max_bindings', '-1'), ('tq.max_group_tasks', '-1'), ('tq.max_queues', '-2'),
	('tq.expire_batch', '0'), ('tq.expire_batch', '1000001'),
	('tq.clock_offset', 'rubbish'), ('tq.clock_offset', '-20000 days'), ('tq.clock_offset', '1 month'), ('tq.clock_offset', '1 year'), ('tq.clock_offset', ''),
	('tq.clock_offset', '100000 days'),
	('tq.clock_offset', '1.5 seconds'),
	('tq.no_such_setting', '1')) x (name, setting), pg_temp.answer(format('SELECT set_config(%L, %L, false)', name, setting)) a;
-- Times that a clock cannot show
SELECT setting, a.code IN ('22007', '22008', '22023') AS refused FROM unnest('{infinity,2147483647 days,-2147483647 days,200000000 days,-10000000 days}'::text[]) setting,
	pg_temp.answer(format('SELECT set_config(''tq.clock_offset'', %L, false)', setting)) a;

-- Only a superuser may set them; any role tq.credentials and tq.default_deadline, for itself (42601: ALTER ROLE returns no rows)
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_nobody;
RESET client_min_messages;
CREATE ROLE regress_tq_nobody IN ROLE tq_admin;
GRANT ALL ON errors TO regress_tq_nobody;
SET ROLE regress_tq_nobody;
SELECT name, a.code AS "set", r.code AS "alter role", current_setting(name) IS NOT NULL AS may_read
FROM pg_settings, pg_temp.answer(format('SELECT set_config(%L, %L, false)', name, setting)) a,
	pg_temp.answer(format('ALTER ROLE regress_tq_nobody SET %s = %L', name, setting)) r
WHERE name LIKE 'tq.%' ORDER BY name COLLATE "C";
RESET ROLE;
ALTER ROLE regress_tq_nobody SET tq.claim_timeout = '1h';
ALTER ROLE regress_tq_nobody SET tq.max_runs = 0;
DROP OWNED BY regress_tq_nobody;
DROP ROLE regress_tq_nobody;

-- tq.claim_timeout: how long a claim lasts
RESET tq.claim_timeout;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('one'));
SELECT task_id, taken_until FROM tq.claim_work('regress/w', 'g', 'w') \gset
SELECT :'taken_until' - started AS lasts FROM tq.run_overview WHERE task_id = :'task_id';
SET tq.claim_timeout = '1h';
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('two'));
SELECT task_id, taken_until FROM tq.claim_work('regress/w', 'g', 'w') \gset
SELECT :'taken_until' - started AS lasts FROM tq.run_overview WHERE task_id = :'task_id';
RESET tq.claim_timeout;

-- tq.max_deadline: the maximum of a definition is 5 days and 15 minutes; enqueue has none
CREATE FUNCTION pg_temp.until(name text, deadline interval) RETURNS text LANGUAGE sql AS $$
	SELECT tq.create_task(pg_temp.id(name), pg_temp.def(jsonb_build_object('deadline', now() + deadline))) ->> 'state' $$;
SELECT * FROM pg_temp.answer($$SELECT pg_temp.until('five', '5 days 14 minutes')$$);
SELECT code, message FROM pg_temp.answer($$SELECT pg_temp.until('six', '5 days 16 minutes')$$);
SET tq.max_deadline = '1d';
SELECT * FROM pg_temp.answer($$SELECT pg_temp.until('day', '24:14')$$);
SELECT code, message FROM pg_temp.answer($$SELECT pg_temp.until('more', '24:16')$$);
SET tq.max_deadline = '60d';
SELECT * FROM pg_temp.answer($$SELECT pg_temp.until('many', '59 days')$$);
RESET tq.max_deadline;
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), deadline => '1000 days')$$);

-- tq.default_deadline: of those to which none is given
SET tq.default_deadline = '2 days';
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('limited')), tq.enqueue('regress/w', task_id => pg_temp.id('endless'), deadline => NULL);
SELECT task_id, deadline - created AS deadline FROM tq.task_details WHERE task_id IN (pg_temp.id('limited'), pg_temp.id('endless')) ORDER BY created;
SELECT setting, a.code, a.message, a.detail FROM unnest('{0,-1 day,soon,none,infinity,1 mon 3 days}'::text[]) AS setting,
	pg_temp.answer(format('SELECT set_config(''tq.default_deadline'', %L, false)', setting)) AS a;
RESET tq.default_deadline;

-- tq.max_dependencies
SET tq.max_dependencies = 1;
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), dependencies => ARRAY[pg_temp.id('one')])$$);
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), dependencies => ARRAY[pg_temp.id('one'), pg_temp.id('two')])$$);
SET tq.max_dependencies = 0;
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', task_id => pg_temp.id('new'), dependencies => ARRAY[pg_temp.id('one')])$$);
RESET tq.max_dependencies;

-- tq.max_runs: no rerun beyond it, and no more retries than it allows
SET tq.max_runs = 3;
SELECT tq.enqueue('regress/x', task_id => pg_temp.id('runs'));
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('runs')));
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('runs')));
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('runs')));
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('runs')));
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('runs')));
SELECT * FROM pg_temp.answer($$SELECT tq.rerun_task(pg_temp.id('runs'))$$);
RESET tq.max_runs;
SELECT tq.rerun_task(pg_temp.id('runs')) ->> 'retriesLeft' AS retries_left;

-- tq.deadline_delay: the time after the deadline before the task is resolved
SELECT tq.enqueue('regress/y', task_id => pg_temp.id('late'), deadline => '1 hour');
SET tq.deadline_delay = '10min';
SELECT tq.enqueue('regress/y', task_id => pg_temp.id('later'), deadline => '1 hour');
SET tq.clock_offset = '61 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
SET tq.clock_offset = '71 minutes';
SELECT step, tasks FROM tq.upkeep() WHERE tasks > 0 AND step NOT IN ('publish', 'retain');
RESET tq.deadline_delay;

-- tq.clock_offset: a session's own time
RESET tq.clock_offset;
SELECT tq.enqueue('regress/z', task_id => pg_temp.id('clock'));
SET tq.clock_offset = '3 hours';
SELECT task_id FROM tq.claim_work('regress/z', 'g', 'w');
SELECT started - scheduled BETWEEN '3 hours' AND '3 hours 1 minute' AS shifted FROM tq.run_overview WHERE task_id = pg_temp.id('clock');
SELECT * FROM pg_temp.answer($$SELECT tq.create_task(pg_temp.id('new'), pg_temp.def())$$);
BEGIN;
SET LOCAL tq.clock_offset = '0';
SELECT * FROM pg_temp.answer($$SELECT tq.create_task(pg_temp.id('new'), pg_temp.def()) ->> 'state'$$);
ROLLBACK;
SHOW tq.clock_offset;
SET tq.clock_offset = '-3 hours';
SELECT * FROM pg_temp.answer($$SELECT tq.create_task(pg_temp.id('new'), pg_temp.def())$$);
RESET tq.clock_offset;

-- tq.expire_batch: tasks are deleted in batches; one explicit pass deletes all
SET tq.expire_batch = 2;
SET tq.message_retention = '1s';
SELECT count(tq.enqueue('regress/e', deadline => '1 day', expires => '1 day')) FROM generate_series(1, 5);
SELECT count(*) FROM tq_internal.task JOIN tq_internal.queue q ON q.id = queue WHERE task_queue_id = 'regress/e';
SET tq.clock_offset = '25 hours';
SELECT step, tasks FROM tq.upkeep() WHERE step = 'expired';
SELECT pg_temp.told();
SET tq.clock_offset = '49 hours';
SELECT step, tasks FROM tq.upkeep() WHERE step = 'expired';
RESET tq.clock_offset;
RESET tq.expire_batch;
RESET tq.message_retention;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
