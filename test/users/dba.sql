-- A DBA with two teams: from the grants to the quotas, the audit trail and a repair.
\ir helper.psql
CREATE ROLE users_shop_app;
CREATE ROLE users_shop_ops;
CREATE ROLE users_bank_app;
CREATE ROLE users_bank_ops;
SELECT tq.grant_queue('users_shop_app', 'shop/*', 'produce') \g /dev/null
SELECT tq.grant_queue('users_shop_app', 'shop/*', 'work', 'shop/*') \g /dev/null
SELECT tq.grant_queue('users_shop_ops', 'shop/*', 'manage') \g /dev/null
SELECT tq.grant_queue('users_bank_app', 'bank/*', 'produce') \g /dev/null
SELECT tq.grant_queue('users_bank_app', 'bank/*', 'work', 'bank/*') \g /dev/null
SELECT tq.grant_queue('users_bank_ops', 'bank/*', 'manage') \g /dev/null

-- Each team works; what is the other's does not exist.
SET ROLE users_shop_app;
SELECT tq.enqueue('shop/mail', '{"order": 1}', name => 'order 1') AS mail \gset
SET ROLE users_bank_app;
SELECT tq.enqueue('bank/pay', '{"card": "secret"}', name => 'pay 1') AS pay \gset
SELECT users.fails(format('SELECT tq.status(%L)', :'mail'), '^TQ404', 'a task of the other team does not exist');
SELECT users.fails('SELECT tq.claim_work(''shop/mail'', ''bank'', ''w1'')', '^TQ403 .*queue:claim-work:shop/mail.*tq.grant_queue', 'its queue: the scope that is missing, and who grants it');
SELECT users.fails('SELECT tq.enqueue(''shop/mail'')', '^TQ403 .*queue:create-task', 'nor is anything created there');
SELECT users.is((SELECT array_agg(task_queue_id) FROM tq.task_overview), '{bank/pay}', 'the views show what is one''s own');
SELECT users.fails('SELECT * FROM tq.health()', '^TQ403 .*queue:health', 'a team does not see the health of the server');
SELECT users.is((SELECT count(*) FROM tq.claim_work('bank/pay', 'bank', 'w1')), 1, 'a team claims its own');
SELECT users.is(tq.report_failed(:'pay', 0, error_message => 'declined') ->> 'state', 'failed', 'and reports');

-- A team repairs its own, and no other.
SET ROLE users_shop_ops;
SELECT users.fails(format('SELECT tq.rerun_task(%L)', :'pay'), '^TQ404', 'operators do not repair what is not theirs');
SET ROLE users_bank_ops;
SELECT users.is((SELECT name || ': ' || (error ->> 'message') FROM tq.failure_overview), 'pay 1: declined', 'its operators see the failure');
SELECT users.is((SELECT array_agg(task_queue_id) FROM tq.queue_stats), '{bank/pay}', 'and the counts of its queues');
SELECT users.is(tq.rerun_task(:'pay') ->> 'state', 'pending', 'and repair it');

-- Quotas.
RESET ROLE;
ALTER ROLE users_shop_app LOGIN;
ALTER ROLE users_shop_app SET tq.max_queues = 1;
SELECT current_user AS superuser \gset
\c - users_shop_app
SELECT tq.enqueue('shop/second') \g /dev/null
SELECT users.fails('SELECT tq.enqueue(''shop/third'')', '^53400 .*users_shop_app.*tq.max_queues', 'a quota: the setting and the role');
SELECT users.is(tq.enqueue('shop/second') IS NOT NULL, true, 'what is there goes on');
\c - :superuser
ALTER ROLE users_bank_app LOGIN;
ALTER ROLE users_bank_app SET tq.max_unresolved_tasks = 2;
\c - users_bank_app
SELECT users.fails('SELECT tq.enqueue_tasks(''bank/pay'', array_fill(''{}''::jsonb, ''{3}''))', '^53400 .*tq.max_unresolved_tasks', 'a quota of what a queue has');
\c - :superuser

-- What the DBA looks at.
SELECT users.is((SELECT count(*) FROM tq.health() WHERE name IN ('preload', 'maintenance', 'steps', 'postponed') AND ok), 4, 'health answers');
SELECT users.is((SELECT sum(pending) FROM tq.queue_stats), 4, 'queue_stats has every queue');
SELECT users.is((SELECT role || ' ' || session_role FROM tq.audit WHERE function = 'rerun_task'), 'users_bank_ops ' || :'superuser', 'the audit trail has who repaired');
SELECT users.is((SELECT count(*) FROM tq.audit WHERE function = 'grant_queue'), 6, 'and who granted');

-- A team leaves.
SELECT tq.revoke_queue('users_shop_app', 'shop/*', 'produce') \g /dev/null
SET ROLE users_shop_app;
SELECT users.fails('SELECT tq.enqueue(''shop/mail'')', '^TQ403', 'a right that was revoked');
RESET ROLE;
DROP ROLE users_shop_ops;
CALL tq.cancel_tasks('shop/mail') \gset
SELECT users.is(:tasks, 1, 'what it left is canceled');

-- A second database, in which the same roles have the same rights, is nothing to warn of.
CREATE ROLE users_chief IN ROLE tq_admin;
SELECT current_database() AS first \gset
DROP DATABASE IF EXISTS users_second;
CREATE DATABASE users_second;
\c users_second
CREATE EXTENSION tq;
SET ROLE users_chief;
SELECT count(*) AS tasks FROM tq.task_overview \gset
\c :first
DROP DATABASE users_second WITH (FORCE);
SELECT users.is(:tasks, 0, 'a second database is empty');

-- The extension goes, by what prepare_drop() lists; its roles stay, which other databases use.
SELECT users.is((SELECT array_agg(DISTINCT moment ORDER BY moment) FROM tq.prepare_drop()), '{after,drop}', 'nothing is in the way');
SELECT users.is((SELECT count(*) FROM tq.prepare_drop() WHERE statement ~ 'users_shop_app.*RESET'), 1, 'the setting of a role is listed');
SELECT statement FROM tq.prepare_drop() WHERE moment = 'drop' OR object ~ '^schema tq' \gexec
SELECT users.is((SELECT array_agg(nspname) FROM pg_namespace WHERE nspname LIKE 'tq%'), NULL, 'nothing of it is left');
CREATE EXTENSION tq;
SELECT users.is((SELECT count(*) FROM tq.task_overview), 0, 'and it can be created again');
SELECT '1..' || currval('users.n');
