-- What one caller may cost: tq.max_batch, max_wait, max_bindings, max_subscriptions,
-- max_group_tasks.  tq.max_waiters, and settings of roles: test/t/080_callers.pl.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT tq.enqueue('regress/w', task_id => pg_temp.id('one'));

-- tq.max_batch: what one call creates, claims or names; dependencies have a limit of their own
SET tq.max_batch = 2;
SELECT what, a.* FROM (VALUES ('create_tasks', $$SELECT tq.create_tasks('[{}, {}, {}]')$$),
	('enqueue_tasks', $$SELECT tq.enqueue_tasks('regress/b', '{"{}","{}","{}"}')$$),
	('enqueue_tasks: ids', $$SELECT tq.enqueue_tasks('regress/b', '{"{}"}', ARRAY[pg_temp.id('one'), pg_temp.id('one'), pg_temp.id('one')])$$),
	('resolve', $$SELECT tq.resolve(ARRAY[pg_temp.id('one'), pg_temp.id('two'), pg_temp.id('one')], '{0,0,0}')$$),
	('resolve: runs', $$SELECT tq.resolve(ARRAY[pg_temp.id('one')], '{0,0,0}')$$),
	('statuses', $$SELECT tq.statuses(ARRAY[pg_temp.id('one'), pg_temp.id('two'), pg_temp.id('one')])$$),
	('tasks', $$SELECT tq.tasks(ARRAY[pg_temp.id('one'), pg_temp.id('two'), pg_temp.id('one')])$$),
	('claim_work', $$SELECT tq.claim_work('regress/b', 'g', 'w', 3)$$)) x (what, call), pg_temp.answer(call) a;
SELECT cardinality(tq.enqueue_tasks('regress/b', '{"{}","{}"}')) AS enqueued;
SELECT count(*) AS claimed FROM tq.claim_work('regress/b', 'g', 'w', 2);
SELECT count(tq.enqueue('regress/b', dependencies => ARRAY(SELECT tq.enqueue('regress/b') FROM generate_series(1, 3)))) AS with_dependencies;
RESET tq.max_batch;

-- tq.max_wait: a longer wait ends then; what was out of range remains so
SET tq.max_wait = '10ms';
SELECT now() AS before \gset
SELECT count(*) FROM tq.claim_work('regress/none', 'g', 'w', 1, '60 s');
CALL tq.wait_for_work('regress/none', '1 hour');
CALL tq.wait_for_task(pg_temp.id('one'), '1 hour');
SELECT now() - :'before' < '30 s' AS shortened;
SELECT * FROM pg_temp.answer($$SELECT tq.claim_work('regress/none', 'g', 'w', 1, '61 s')$$);
SET tq.max_wait = 0;
SELECT count(*) FROM tq.claim_work('regress/none', 'g', 'w', 1, '60 s');
RESET tq.max_wait;

-- tq.max_bindings: of a subscription, and of a channel without its default
SET tq.max_bindings = 2;
SELECT tq.subscribe('regress', 'task-defined', pattern) FROM unnest('{route.a.#,route.a.#,route.b.#}'::text[]) AS pattern;
SELECT a.* FROM unnest('{route.a.#,route.c.#}'::text[]) AS pattern, pg_temp.answer(format($$SELECT tq.subscribe('regress', 'task-defined', %L)$$, pattern)) AS a;
SELECT * FROM pg_temp.answer($$SELECT tq.subscribe('regress', 'task-pending', 'route.a.#')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.subscribe('regress2', 'task-defined', 'route.c.#')$$);
SELECT tq.bind('regress', 'task-defined', pattern) FROM unnest('{route.a.#,route.a.#,route.b.#}'::text[]) AS pattern;
SELECT a.* FROM unnest('{route.a.#,route.c.#}'::text[]) AS pattern, pg_temp.answer(format($$SELECT tq.bind('regress', 'task-defined', %L)$$, pattern)) AS a;
SELECT * FROM pg_temp.answer($$SELECT tq.bind('regress2', 'task-defined', 'route.c.#')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.bind('tq_task_defined', 'task-defined')$$);
SELECT tq.unbind('regress', 'task-defined', 'route.a.#');
SELECT * FROM pg_temp.answer($$SELECT tq.bind('regress', 'task-defined', 'route.c.#')$$);
RESET tq.max_bindings;
SELECT tq.bind('regress', 'task-defined', 'route.c.#'), tq.bind('regress', 'task-defined', 'route.d.#');
SELECT tq.unbind('regress', 'task-defined', pattern) FROM unnest('{route.b.#,route.c.#,route.d.#}'::text[]) AS pattern;

-- tq.max_subscriptions: those that the session user has created; SET ROLE does not change it
SET tq.max_subscriptions = 2;
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_creator;
RESET client_min_messages;
CREATE ROLE regress_tq_creator IN ROLE tq_admin;
GRANT ALL ON errors TO regress_tq_creator;
SELECT tq.subscribe('regress2', 'task-defined');
SET ROLE regress_tq_creator;
SELECT code, replace(message, session_user, 'me') AS message, detail, hint FROM pg_temp.answer($$SELECT tq.subscribe('regress3', 'task-defined')$$);
RESET ROLE;
SET SESSION AUTHORIZATION regress_tq_creator;
SELECT tq.subscribe('regress3', 'task-defined'), tq.subscribe('regress', 'task-pending');
RESET SESSION AUTHORIZATION;
SELECT name, replace(creator, session_user, 'me') AS creator, bindings FROM tq.subscription_overview ORDER BY 1;
SELECT tq.unsubscribe('regress');
SELECT * FROM pg_temp.answer($$SELECT tq.subscribe('regress4', 'task-defined')$$);
SELECT tq.unsubscribe('regress2'), tq.unsubscribe('regress3');
RESET tq.max_subscriptions;
DROP OWNED BY regress_tq_creator;
DROP ROLE regress_tq_creator;

-- tq.max_group_tasks: without the task that the group is named after; a repeat adds none
SET tq.max_group_tasks = 3;
SELECT count(tq.enqueue('regress/g', task_id => pg_temp.id(name), task_group_id => pg_temp.id('group'))) FROM unnest('{group,g1,g2,g3}'::text[]) AS name;
SELECT name, a.* FROM unnest('{g4,g1,group}'::text[]) AS name,
	pg_temp.answer(format($$SELECT tq.enqueue('regress/g', task_id => pg_temp.id(%L), task_group_id => pg_temp.id('group'))$$, name)) AS a;
SELECT a.* FROM pg_temp.answer($$SELECT tq.enqueue_tasks('regress/g', array_fill('{}'::jsonb, '{4}'), task_group_id => pg_temp.id('other'))$$) a;
SELECT cardinality(tq.enqueue_tasks('regress/g', array_fill('{}'::jsonb, '{3}'), task_group_id => pg_temp.id('other'))) AS joined;
BEGIN;
SELECT tq.delete_task(task_id) FROM tq_internal.task WHERE group_id = (SELECT id FROM tq_internal.task_group WHERE task_group_id = pg_temp.id('other')) LIMIT 1;
SELECT count(tq.enqueue('regress/g', task_group_id => pg_temp.id('other'))) AS in_its_place;
SELECT a.* FROM pg_temp.answer($$SELECT tq.enqueue('regress/g', task_group_id => pg_temp.id('other'))$$) a;
ROLLBACK;
-- what has ended counts, and a resolved task that runs again counts once
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('g1')));
SELECT code FROM pg_temp.answer($$SELECT tq.enqueue('regress/g', task_group_id => pg_temp.id('group'))$$);
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('g1')));
RESET tq.max_group_tasks;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
