-- Changes of priority: what is refused, and with which errors.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT tq.enqueue('regress/w', task_id => pg_temp.id('one'));
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('two'), task_group_id => pg_temp.id('group'), scheduler_id => 's');
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('three'), task_group_id => pg_temp.id('group'), scheduler_id => 's', dependencies => ARRAY[pg_temp.id('two')]);
SELECT tq.enqueue('regress/r', task_id => pg_temp.id('done'), task_group_id => pg_temp.id('group'), scheduler_id => 's');
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('late'), deadline => '1 minute');
SELECT tq.cancel_task(pg_temp.id('done')) ->> 'state' AS state;

-- One task
SELECT pg_temp.stable(jsonb_pretty(tq.change_task_priority(pg_temp.id('two'), 'high')));
SELECT task_id FROM tq.claim_work('regress/w', 'g', 'w', 10);
SELECT tq.change_task_priority(task_id => pg_temp.id('one'), priority => 'very-low') ->> 'priority' AS priority;

-- A group
SELECT jsonb_pretty(tq.change_task_group_priority(pg_temp.id('group'), 'low'));
SELECT jsonb_pretty(tq.change_task_group_priority(task_group_id => pg_temp.id('group'), priority => 'low'));
SELECT left(task_id::text, 8) AS task, priority, state FROM tq.task_details ORDER BY task_id;

-- What is refused
SELECT md5(string_agg(o::text, '' ORDER BY task_id)) AS before FROM tq.task_details o \gset
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('one'), 'normal')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('one'), '')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('one'), repeat('high', 1000))$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('one'), NULL)$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(NULL, 'high')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('nobody'), 'high')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('one'), 'very-low')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('done'), 'high')$$);
SET tq.clock_offset = '2 minutes';
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('late'), 'high')$$);
RESET tq.clock_offset;
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_group_priority(pg_temp.id('group'), 'normal')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_group_priority(pg_temp.id('group'), NULL)$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_group_priority(NULL, 'high')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_group_priority(pg_temp.id('nobody'), 'high')$$);
SELECT md5(string_agg(o::text, '' ORDER BY task_id)) = :'before' AS "nothing has changed" FROM tq.task_details o;
SELECT tq.rerun_task(pg_temp.id('done')) ->> 'state' AS state;
SELECT * FROM pg_temp.answer($$SELECT tq.change_task_priority(pg_temp.id('done'), 'high')$$);

-- A change and its reverse in one transaction, and a change by a cursor over many tasks
BEGIN;
SELECT tq.change_task_priority(pg_temp.id('one'), 'high') ->> 'priority' AS priority;
SAVEPOINT s;
SELECT tq.change_task_priority(pg_temp.id('one'), 'highest') ->> 'priority' AS priority;
ROLLBACK TO s;
SELECT tq.change_task_priority(pg_temp.id('one'), 'low') ->> 'priority' AS priority;
COMMIT;
SELECT tq.status(pg_temp.id('one')) ->> 'priority' AS priority;
SELECT count(tq.enqueue('regress/m', task_id => pg_temp.id(n))) FROM generate_series(1, 20) n;
SELECT count(tq.change_task_priority(task_id, 'high')) FROM tq.task_details WHERE task_queue_id = 'regress/m';
SELECT count(*), min(priority), max(priority) FROM tq.task_details WHERE task_queue_id = 'regress/m';

-- With ISOLATION LEVEL REPEATABLE READ and SERIALIZABLE
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT tq.change_task_priority(pg_temp.id('one'), 'medium') ->> 'priority' AS priority;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT tq.change_task_group_priority(pg_temp.id('group'), 'medium') -> 'tasksAffected' AS affected;
COMMIT;
TABLE poor_errors;
