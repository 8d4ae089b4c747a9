-- Scopes: what is granted, shown and refused, and the errors that say so.  7_scopes.sql in test/pgtap has every function.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_shop, regress_tq_clerk;
RESET client_min_messages;
CREATE ROLE regress_tq_shop;
CREATE ROLE regress_tq_clerk IN ROLE regress_tq_shop;
SELECT tq.enqueue('shop/mail', task_id => pg_temp.id('one'));
SELECT tq.enqueue('other/mail', task_id => pg_temp.id('other'));
DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM tq.messages()) LOOP PERFORM tq.upkeep(); COMMIT; END LOOP;
END $$;

-- Nothing is allowed at first
SET ROLE regress_tq_clerk;
SELECT tq.current_scopes();
SELECT tq.status(pg_temp.id('one'));
SELECT tq.cancel_task(pg_temp.id('one'));
SELECT tq.claim_work('shop/mail', 'g', 'w');
SELECT tq.enqueue('shop/mail', scopes => '{x}', routes => '{r1,r2}');
SELECT tq.enqueue('shop/mail', priority => 'highest');
SELECT tq.grant_scopes('regress_tq_clerk', '{*}');
RESET ROLE;

-- Rights to queues
SELECT tq.grant_queue('regress_tq_shop', 'shop/*', 'produce'), tq.grant_queue('regress_tq_shop', 'shop/*', 'work');
SET ROLE regress_tq_clerk;
SELECT unnest(tq.current_scopes());
SELECT tq.enqueue('shop/mail', task_id => pg_temp.id('two'), priority => 'high');
SELECT task_id, run_id FROM tq.claim_work('shop/mail', 'g', 'w');
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('two'), pg_temp.id('other'), pg_temp.id('nobody')], '{0,0,0}', 'internal-error');
SELECT tq.enqueue('other/mail');
SELECT tq.status(pg_temp.id('other'));
-- an error about a task that the caller may see names its group and queue
SELECT tq.cancel_task(pg_temp.id('one'));
SELECT tq.cancel_task(pg_temp.id('other'));
RESET ROLE;

-- The procedures that wait, which end transactions
SET ROLE regress_tq_clerk;
CALL tq.wait_for_work('shop/mail', '0');
CALL tq.wait_for_work('other/mail', '0');
CALL tq.wait_for_task(pg_temp.id('two'), '0');
CALL tq.wait_for_task(pg_temp.id('other'), '0');
CALL tq.wait_for_task(pg_temp.id('nobody'), '0');
CALL tq.wait_for_task_group(pg_temp.id('two'), '0');
CALL tq.wait_for_task_group(pg_temp.id('other'), '0');
RESET ROLE;
SELECT tq.grant_scopes('regress_tq_shop', ARRAY['queue:list-task-group:' || pg_temp.id('other')]);
SET ROLE regress_tq_clerk;
CALL tq.wait_for_task_group(pg_temp.id('other'), '0');
RESET ROLE;

-- Those that change many tasks
SET ROLE regress_tq_clerk;
CALL tq.cancel_tasks('shop/mail');
CALL tq.move_tasks('shop/mail', 'shop/other');
RESET ROLE;
SELECT tq.grant_scopes('regress_tq_shop', ARRAY['queue:cancel-task-in-queue:shop/mail', 'queue:move-tasks:shop/mail']);
SET ROLE regress_tq_clerk;
CALL tq.cancel_tasks('shop/mail', 'no such name');
CALL tq.cancel_tasks('other/mail');
CALL tq.move_tasks('shop/mail', 'shop/other');
CALL tq.move_tasks('shop/other', 'shop/mail');
RESET ROLE;
SELECT tq.grant_scopes('regress_tq_shop', ARRAY['queue:move-tasks:shop/other']);
SET ROLE regress_tq_clerk;
CALL tq.move_tasks('shop/mail', 'shop/other');
RESET ROLE;

-- One message of the log, when it is published
DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM tq.messages(max => 1, exchange => 'task-defined')) LOOP
		PERFORM pg_sleep(0.005);
	END LOOP;
END $$;
SELECT min(id) AS id FROM tq.messages(exchange => 'task-defined') \gset
SET ROLE regress_tq_clerk;
SELECT exchange FROM tq.message(:id);
SELECT exchange FROM tq.message(1000000000);
RESET ROLE;
SELECT tq.grant_scopes('regress_tq_shop', '{queue:read-messages:task-defined}');
SET ROLE regress_tq_clerk;
SELECT exchange FROM tq.message(:id);
SELECT count(*) > 0 AS messages FROM tq.messages(exchange => 'task-defined');
SELECT tq.messages();
RESET ROLE;

-- Who and what is granted
SELECT tq.revoke_queue('regress_tq_shop', 'shop/*', 'work'), tq.revoke_queue('regress_tq_shop', 'shop/*', 'produce');
SELECT * FROM tq_internal.scope_grant ORDER BY scope COLLATE "C";
SELECT tq.grant_scopes('regress_tq_nobody', '{a}');
SELECT tq.grant_scopes(4294967295::regrole, '{a}');
SELECT tq.grant_scopes('regress_tq_shop', '{a,""}');
SELECT tq.grant_scopes('regress_tq_shop', ARRAY[repeat('a', 1501)]);
SELECT tq.grant_scopes('regress_tq_shop', array_fill('a'::text, '{1001}'));
SELECT tq.grant_scopes('regress_tq_shop', '{a**}');
SELECT tq.revoke_scopes('tq_producer', '{queue:route:*}');
SELECT tq.grant_queue('regress_tq_shop', 'shop/', 'work');
SELECT tq.grant_queue('regress_tq_shop', 'sh op/*', 'work');
SELECT tq.grant_queue('regress_tq_shop', 'shop/*', 'steal');

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;

DROP ROLE regress_tq_clerk, regress_tq_shop;
SELECT count(*) FROM tq.upkeep();
SELECT * FROM tq_internal.scope_grant;
