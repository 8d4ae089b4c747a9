-- Arguments and errors of a wait; its behavior is tested in test/isolation and test/t.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- No task to claim, and no wait
SELECT count(*) FROM tq.claim_work('regress/wait', 'g', 'w', 1);
SELECT count(*) FROM tq.claim_work('regress/wait', 'g', 'w', 1, '0');
SELECT count(*) FROM tq.claim_work('regress/wait', 'g', 'w', wait => '1 millisecond');
CALL tq.wait_for_work('regress/wait', '1 millisecond');

-- A task to claim, and no need to wait
SELECT tq.enqueue('regress/wait', task_id => pg_temp.id('a')), tq.enqueue('regress/wait', task_id => pg_temp.id('b'));
CALL tq.wait_for_work('regress/wait');
SELECT task_id FROM tq.claim_work('regress/wait', 'g', 'w', wait => '1 minute');
CALL tq.wait_for_work('regress/wait', '1 hour');

-- Several queues, and a literal without a type, which is one queue
SELECT tq.enqueue('regress/wait3', task_id => pg_temp.id('c'));
SELECT task_id, task_queue_id FROM tq.claim_work('{regress/none,regress/wait3}'::text[], 'g', 'w', wait => '1 millisecond');
CALL tq.wait_for_work('{regress/none,regress/wait,other/*}'::text[]);
CALL tq.wait_for_work(task_queue_ids => '{regress/none}', wait => '1 millisecond');
CALL tq.wait_for_work('{regress/none}', '1 millisecond');
CALL tq.wait_for_work(ARRAY[NULL]::text[]);
CALL tq.wait_for_work('{}'::text[]);
CALL tq.wait_for_work(NULL::text[]);
CALL tq.wait_for_work('{a/b}'::text[], '1 hour 1 second');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT tq.claim_work('{regress/wait}'::text[], 'g', 'w', wait => '1 second');
ROLLBACK;

-- Too long, negative, NULL
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '61 seconds');
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '1 month');
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '-1 second');
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => NULL);
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '178000000 years');
CALL tq.wait_for_work('regress/wait', '1 hour 1 second');
CALL tq.wait_for_work('regress/wait', '-1 second');
CALL tq.wait_for_work('regress/wait', NULL);
CALL tq.wait_for_work(NULL);
CALL tq.wait_for_work('no queue');

-- One snapshot for the transaction
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT task_id FROM tq.claim_work('regress/wait', 'g', 'w', wait => '0');
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '1 second');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT tq.claim_work('regress/wait', 'g', 'w', wait => '1 second');
ROLLBACK;

-- wait_for_work ends its transaction
\set SHOW_CONTEXT never
BEGIN;
CALL tq.wait_for_work('regress/wait', '1 second');
ROLLBACK;
DO $$ BEGIN CALL tq.wait_for_work('regress/wait', '1 millisecond'); END $$;
CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL tq.wait_for_work('regress/wait', '1 millisecond'); END $$;
SELECT pg_temp.f();

-- On behalf of a role that has no rights on the tables
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_waiter;
RESET client_min_messages;
CREATE ROLE regress_tq_waiter;
SET ROLE regress_tq_waiter;
CALL tq.wait_for_work('regress/wait', '1 millisecond');
RESET ROLE;
GRANT tq_admin TO regress_tq_waiter;
SET ROLE regress_tq_waiter;
CALL tq.wait_for_work('regress/wait2', '1 millisecond');
RESET ROLE;
DROP ROLE regress_tq_waiter;

-- A busy worker: complete a batch, and claim the next, in one statement
SELECT tq.enqueue('regress/busy', jsonb_build_object('n', n), retries => 5) IS NOT NULL AS made FROM generate_series(1, 3) AS n;
SELECT array_agg(task_id)::text AS ids, array_agg(run_id)::text AS runs FROM tq.claim_work('regress/busy', 'g', 'w', 3) \gset
WITH done AS (SELECT count(*) AS n FROM tq.resolve(:'ids', :'runs', 'worker-shutdown'))
SELECT c.run_id, c.payload FROM done, LATERAL tq.claim_work('regress/busy', 'g', 'w', 100 + 0 * done.n::int) AS c;

-- Waits for a task and for a group
SELECT tq.enqueue('regress/wait2', task_id => pg_temp.id('t'), task_group_id => pg_temp.id('tg'));
CALL tq.wait_for_task(pg_temp.id('t'), '1 millisecond');
CALL tq.wait_for_task_group(pg_temp.id('tg'), '1 millisecond');
SELECT FROM tq.cancel_task(pg_temp.id('t'));
CALL tq.wait_for_task(pg_temp.id('t'));
CALL tq.wait_for_task_group(pg_temp.id('tg'), '1 hour');
CALL tq.wait_for_task(pg_temp.id('none'));
CALL tq.wait_for_task_group(pg_temp.id('none'));
CALL tq.wait_for_task(NULL);
CALL tq.wait_for_task_group(NULL);
CALL tq.wait_for_task(pg_temp.id('t'), NULL);
CALL tq.wait_for_task(pg_temp.id('t'), '1 hour 1 second');
CALL tq.wait_for_task_group(pg_temp.id('t'), '-1 second');
BEGIN;
CALL tq.wait_for_task(pg_temp.id('t'), '1 second');
ROLLBACK;
BEGIN;
CALL tq.wait_for_task_group(pg_temp.id('t'), '1 second');
ROLLBACK;

-- A queue without a slash
SELECT tq.enqueue('regress_plain', task_id => pg_temp.id('plain'));
CALL tq.wait_for_work('regress_plain');
CALL tq.move_tasks('regress_plain', 'regress_other');
SELECT tq.status(pg_temp.id('plain')) ->> 'taskQueueId' AS queue;
CALL tq.cancel_tasks('regress_other');
SELECT tq.status(pg_temp.id('plain')) ->> 'state' AS state;
