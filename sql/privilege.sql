-- Privileges: every role may call the functions, which check its scopes; some read views; none but the owner can do more.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- Rights of PUBLIC on tables: none, and on views those that show what the caller may see
SELECT relname, privilege_type FROM pg_class, aclexplode(coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)))
WHERE relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND relkind IN ('r', 'v', 'S') AND grantee = 0 ORDER BY relname COLLATE "C";
-- on functions: all of schema tq but one, and in the other those of type slugid, and what a dump needs
SELECT p.oid::regprocedure FROM pg_proc AS p WHERE pronamespace = 'tq'::regnamespace
	AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0);
SELECT proname, privilege_type FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner)))
WHERE pronamespace = 'tq_internal'::regnamespace AND grantee = 0 ORDER BY proname COLLATE "C";
-- on schemas: USAGE of tq
SELECT nspname, privilege_type FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
WHERE nspname IN ('tq', 'tq_internal') AND grantee = 0;

-- Rights of other roles than the owner on tables and views
SELECT relname, string_agg(grantee::regrole || ' ' || privilege_type, ', ' ORDER BY grantee::regrole::text COLLATE "C", privilege_type COLLATE "C") FROM pg_class, aclexplode(relacl)
WHERE relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND grantee NOT IN (0, relowner) GROUP BY relname ORDER BY relname COLLATE "C";
-- and on functions, which views call
SELECT p.oid::regprocedure, string_agg(grantee::regrole::text, ', ' ORDER BY grantee::regrole::text COLLATE "C") FROM pg_proc AS p, aclexplode(proacl)
WHERE pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND grantee NOT IN (0, proowner) GROUP BY p.oid ORDER BY p.oid::regprocedure::text COLLATE "C";
-- No function runs with the rights of its owner, or with settings
SELECT oid::regprocedure, prosecdef, proconfig FROM pg_proc WHERE pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND (prosecdef OR proconfig IS NOT NULL)
ORDER BY oid::regprocedure::text COLLATE "C";
SELECT rolname, rolsuper, rolcanlogin, rolinherit, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles WHERE rolname ~ '^tq_' ORDER BY rolname;

SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_admin, regress_tq_nobody;
RESET client_min_messages;
CREATE ROLE regress_tq_admin IN ROLE tq_admin;
CREATE ROLE regress_tq_nobody;
GRANT ALL ON errors TO regress_tq_admin, regress_tq_nobody;

-- A member of tq_admin calls each function
SET ROLE regress_tq_admin;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('a'));
SELECT pg_temp.brief(tq.create_task(pg_temp.id('b'), pg_temp.def()));
SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('c'), 'task', pg_temp.def('{"taskGroupId": "group___QAGAAAAAAAAAAA"}'))));
SELECT pg_temp.brief(tq.define_task(pg_temp.id('d'), pg_temp.def()));
SELECT pg_temp.brief(tq.schedule_task(pg_temp.id('d')));
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('d')));
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('d')));
SELECT pg_temp.brief(tq.status(pg_temp.id('a')));
SELECT tq.task(pg_temp.id('a')) ->> 'taskQueueId';
SELECT task_id FROM tq.statuses(ARRAY[pg_temp.id('a')]);
SELECT task_id FROM tq.tasks(ARRAY[pg_temp.id('a')]);
SELECT task_id FROM tq.list_dependent_tasks(pg_temp.id('d'));
SELECT tq.get_task_group(pg_temp.id('group')) ->> 'schedulerId';
SELECT task_id FROM tq.list_task_group(pg_temp.id('group'));
SELECT tq.seal_task_group(pg_temp.id('group')) ? 'sealed';
SELECT tq.cancel_task_group(pg_temp.id('group')) ->> 'cancelledCount';
SELECT tasks, exception FROM tq.group_progress(pg_temp.id('group'));
SELECT task_id, run_id FROM tq.claim_work('regress/w', 'g', 'w', 2);
SELECT task_id, run_id FROM tq.claim_task(pg_temp.id('d'), 1, 'g', 'w');
SELECT task_id, run_id FROM tq.reclaim_task(pg_temp.id('a'), 0);
SELECT pg_temp.brief(tq.report_exception(pg_temp.id('a'), 0, 'worker-shutdown'));
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('b'), 0));
SELECT pg_temp.brief(tq.report_failed(pg_temp.id('d'), 1));
SELECT * FROM tq.resolve(ARRAY[pg_temp.id('d')], ARRAY[1], 'failed');
SELECT tq.quarantine_worker('regress/w', 'g', 'w', '2000-01-01') ->> 'workerId';
SELECT tq.get_worker('regress/w', 'g', 'w') ->> 'workerId';
SELECT worker_id FROM tq.list_workers('regress/w');
SELECT tq.declare_worker('regress/w', 'g', 'declared', '2000-01-01') ->> 'workerId';
SELECT tq.get_task_queue('regress/w') ->> 'workerType';
SELECT (SELECT count(*) FROM tq.list_task_queues()) AS queues;
SELECT (SELECT count(*) FROM tq.list_pending_tasks('regress/w')) AS pending, (SELECT count(*) FROM tq.list_claimed_tasks('regress/w')) AS claimed;
SELECT count(*) FROM tq.worker_removed('regress/w', 'g', 'declared', 'gone');
SELECT (tq.task_queue_counts('regress/w') -> 'pendingTasks')::bigint;
SELECT tq.task_queue_counts('regress/w');
SELECT count(*) > 0 AS steps FROM tq.upkeep();
SELECT tq.bind('regress', 'task-defined'), tq.unbind('regress', 'task-defined'), tq.queue_channel('regress/w'), tq.worker_channel('g', 'w');
SELECT tq.subscribe('regress', 'task-defined'), tq.unsubscribe('regress');
SELECT count(*) >= 0 AS messages FROM tq.messages();
SELECT count(*) FROM tq.binding_overview;
SELECT count(*) FROM tq.subscription_overview;
SELECT tq_internal.state_name(1), tq_internal.reason_created_name(1), tq_internal.reason_resolved_name(1), tq_internal.priority_name(1);
SELECT count(*) FROM tq.run_overview;
SELECT count(*) FROM tq.task_overview;
SELECT tq.slugid() <> tq.slugid() AS different, tq.slugid()::uuid::tq.slugid IS NOT NULL AS cast;
-- but reads and writes no table, and is not a superuser
SELECT * FROM pg_temp.answer('SELECT * FROM tq_internal.task');
SELECT * FROM pg_temp.answer('DELETE FROM tq.task_overview');
SELECT * FROM pg_temp.answer($$SELECT nextval('tq_internal.id_seq')$$);
SELECT * FROM pg_temp.answer('SELECT tq_internal.start_maintenance()');
SELECT * FROM pg_temp.answer('CREATE TABLE tq.mine ()');
SELECT * FROM pg_temp.answer('DROP EXTENSION tq');
-- The bodies of functions have the rights of the owner; no other role writes one
SELECT l AS language, a.code, a.message, d.code AS inline FROM unnest(ARRAY['tq_read', 'tq_call', 'tq_client', 'tq_operate']) l,
	pg_temp.answer(format('CREATE FUNCTION pg_temp.mine() RETURNS int LANGUAGE %s AS $b$ BEGIN RETURN 1; END $b$', l)) a, pg_temp.answer(format('DO LANGUAGE %s $b$ BEGIN END $b$', l)) d;
RESET ROLE;
SELECT * FROM pg_temp.answer('GRANT USAGE ON LANGUAGE tq_read TO regress_tq_nobody');
SELECT code, detail ~ 'extension tq depends on extension plpgsql' AS by_tq FROM pg_temp.answer('DROP EXTENSION plpgsql');

-- Another role may call each function, which refuses it (TQ403) after it has checked its arguments (TQ400)
SET ROLE regress_tq_nobody;
-- (of schema tq_internal those that are granted, but those of views; a strict function is not called with NULL)
SELECT nspname, code, CASE WHEN code = '42501' THEN regexp_replace(message, '\S+$', '…') END AS message, count(*) > 1 AS many, CASE WHEN code = 'ok' THEN array_agg(proname ORDER BY proname COLLATE "C") END AS functions FROM (
	SELECT n.nspname, p.proname, a.* FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace, pg_temp.answer(format('SELECT * FROM %s.%I(%s)', nspname, proname, (
		SELECT string_agg(format('%sNULL::%s', CASE WHEN n = pronargs AND provariadic <> 0 THEN 'VARIADIC ' END, CASE t WHEN '"any"'::regtype THEN 'text' ELSE format_type(t, NULL) END), ', ')
		FROM unnest(proargtypes) WITH ORDINALITY AS u (t, n)))) a
	WHERE (nspname = 'tq' OR nspname = 'tq_internal' AND NOT proisstrict AND proname !~ '^visible_') AND prokind = 'f'
		AND NOT proargtypes::oid[] && ARRAY['internal'::regtype, 'cstring'::regtype]::oid[]) x GROUP BY 1, 2, 3 ORDER BY 1, 2;
SELECT code, regexp_replace(message, '\S+$', '…') AS message, count(*) > 0 FROM (
	SELECT a.* FROM pg_class, pg_temp.answer(format('SELECT count(*) FROM %s.%I', relnamespace::regnamespace, relname)) a
	WHERE relnamespace = 'tq_internal'::regnamespace AND relkind IN ('r', 'v', 'S')) x GROUP BY 1, 2;
SELECT code, count(*) > 0 FROM pg_class, pg_temp.answer(format('SELECT count(*) FROM %s.%I', relnamespace::regnamespace, relname)) a
	WHERE relnamespace = 'tq'::regnamespace AND relkind IN ('r', 'v', 'S') GROUP BY 1;
SELECT tq.enqueue('regress/w');
SELECT * FROM tq.claim_work('regress/w', 'g', 'w');
SELECT * FROM tq.upkeep();
SELECT tq_internal.start_maintenance();
SELECT * FROM tq.task_overview;
CREATE FUNCTION tq.mine() RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT 'one_____QAGAAAAAAAAAAA'::tq.slugid;
RESET ROLE;
SELECT oid::regclass FROM pg_class WHERE relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)
	AND CASE WHEN relkind IN ('r', 'v') THEN has_table_privilege('regress_tq_nobody', oid, 'INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')
		WHEN relkind = 'S' THEN has_sequence_privilege('regress_tq_nobody', oid, 'USAGE,SELECT,UPDATE') END;

-- pg_monitor reads the views that show no payload, and health(); of the others it sees no row
GRANT pg_monitor TO regress_tq_nobody;
SET ROLE regress_tq_nobody;
SELECT relname, code FROM pg_class, pg_temp.answer(format('SELECT count(x::text) FROM tq.%I AS x', relname)) a
WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' ORDER BY relname COLLATE "C";
SELECT count(*) > 10 AS health FROM tq.health();
SELECT tq.why('one_____QAGAAAAAAAAAAA');
RESET ROLE;
REVOKE pg_monitor FROM regress_tq_nobody;

-- tq_admin reads them all, tq_reader all but the audit trail
GRANT tq_reader TO regress_tq_nobody;
SET ROLE regress_tq_nobody;
SELECT code, count(*) > 10 AS many, CASE WHEN code <> 'ok' THEN array_agg(relname) END AS refused FROM pg_class, pg_temp.answer(format('SELECT count(x::text) FROM tq.%I AS x', relname)) a
WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' GROUP BY code;
RESET ROLE;
REVOKE tq_reader FROM regress_tq_nobody;
SET ROLE regress_tq_admin;
SELECT code, count(*) > 10 AS many FROM pg_class, pg_temp.answer(format('SELECT count(x::text) FROM tq.%I AS x', relname)) a
WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' GROUP BY code;
SELECT count(*) FROM tq.task_details WHERE task_group_id = pg_temp.id('group');	-- by the planner support of =
RESET ROLE;

-- Names of the caller's own do not mislead a function: tables and operators of these
-- names come first on its search path.
CREATE SCHEMA regress_tq_mine AUTHORIZATION regress_tq_admin;
GRANT CREATE ON DATABASE :DBNAME TO regress_tq_admin;
SET ROLE regress_tq_admin;
CREATE TEMP TABLE task AS SELECT 1 AS id;
CREATE TEMP TABLE pending AS SELECT 1 AS id;
CREATE FUNCTION regress_tq_mine.no(a bigint, b bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'called as %', current_user; END $$;
CREATE OPERATOR regress_tq_mine.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = regress_tq_mine.no);
CREATE FUNCTION regress_tq_mine.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'called as %', current_user; END $$;
SET search_path = regress_tq_mine, pg_temp, pg_catalog;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('e'));
SELECT task_id, run_id FROM tq.claim_work('regress/w', 'g', 'w', 5) ORDER BY task_id;
SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('e')], ARRAY[0]);
-- these run statements, for which they assume the owner's rights
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('f'), task_group_id => pg_temp.id('e')) IS NOT NULL AS enqueued;
SELECT tq.change_task_priority(pg_temp.id('f'), 'high') IS NOT NULL AS changed;
SELECT tq.task_queue_counts('regress/w') IS NOT NULL AS counted, (tq.task_queue_counts('regress/w') -> 'pendingTasks')::bigint AS pending;
SELECT (SELECT count(*) FROM tq.group_progress(pg_temp.id('e'))) AS progress, tq.seal_task_group(pg_temp.id('e')) IS NOT NULL AS sealed;
SELECT count(*) FROM tq.list_task_group(pg_temp.id('e'));
SELECT count(*) > 0 AS upkeep, bool_or(tasks IS NULL) AS failed FROM tq.upkeep();
SELECT count(*) >= 0 AS messages FROM tq.messages(max => 10);
SELECT tq.delete_task(pg_temp.id('f'));
SELECT tq.purge('regress/w', older_than => '1 year') AS purged;
SELECT current_user, current_setting('search_path');
RESET search_path;
RESET ROLE;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;

SET client_min_messages = warning;
DROP SCHEMA regress_tq_mine CASCADE;
RESET client_min_messages;
DROP OWNED BY regress_tq_admin, regress_tq_nobody;
DROP ROLE regress_tq_admin, regress_tq_nobody;
