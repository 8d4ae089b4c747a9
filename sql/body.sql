-- Functions that are written in SQL: what a body may do, sees and shows (src/api/sql_body.c).
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- An error has the context of the caller, and none of the body
\set VERBOSITY terse
CREATE FUNCTION pg_temp.context(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RETURN regexp_replace(context, 'pg_temp_\d+', 'pg_temp', 'g');
END
$$;
CREATE FUNCTION pg_temp.get(queue text) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN tq.get_task_queue(queue); END $$;
SELECT pg_temp.context('SELECT tq.get_task_queue(''regress/none'')');
SELECT pg_temp.context('SELECT tq.get_task_queue(NULL)');
SELECT pg_temp.context('SELECT pg_temp.get(''regress/none'')');
-- as the functions in C have
SELECT pg_temp.context('SELECT tq.task_queue_counts(NULL)');

-- tq_read: one snapshot, and no change
CREATE FUNCTION pg_temp.write() RETURNS void LANGUAGE tq_read AS $$ BEGIN DELETE FROM tq_internal.scope_grant; END $$;
SELECT * FROM pg_temp.answer('SELECT pg_temp.write()');
CREATE FUNCTION pg_temp.snapshots() RETURNS bool LANGUAGE tq_read AS $$
DECLARE
	before text := pg_current_snapshot();
BEGIN
	PERFORM pg_current_xact_id();
	RETURN before = pg_current_snapshot()::text;
END
$$;
SELECT pg_temp.snapshots();
BEGIN READ ONLY;
SELECT count(*) >= 0 AS reads FROM tq.list_task_queues();
ROLLBACK;

-- tq_call, tq_operate: not in a transaction that only reads; what one statement of a body writes, the next one sees
CREATE FUNCTION pg_temp.write_and_read() RETURNS bigint LANGUAGE tq_call AS $$
BEGIN
	INSERT INTO tq_internal.scope_grant VALUES ('regress_tq_nobody', 'body:one') ON CONFLICT DO NOTHING;
	RETURN (SELECT count(*) FROM tq_internal.scope_grant WHERE scope = 'body:one');
END
$$;
CREATE ROLE regress_tq_nobody;
SELECT pg_temp.write_and_read();
BEGIN READ ONLY;
SELECT * FROM pg_temp.answer('SELECT pg_temp.write_and_read()');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pg_temp.write_and_read();
ROLLBACK;

-- The role of the caller decides about scopes; within the body that is the owner, whose search_path is safe
CREATE FUNCTION pg_temp.who(OUT role name, OUT path text, OUT may bool) LANGUAGE tq_read AS $$
BEGIN
	role := current_user;
	path := current_setting('search_path');
	PERFORM tq_internal.require('body:one');
	may := true;
END
$$;
CREATE FUNCTION pg_temp.may_not() RETURNS void LANGUAGE tq_read AS $$ BEGIN PERFORM tq_internal.require('body:two'); END $$;
SET ROLE regress_tq_nobody;
SELECT role = (SELECT extowner::regrole::name FROM pg_extension WHERE extname = 'tq') AS is_owner, path, may FROM pg_temp.who();
\set VERBOSITY default
SELECT pg_temp.may_not();
\set VERBOSITY terse
SELECT current_user, current_setting('search_path') = 'pg_catalog, pg_temp' AS path_stays;
RESET ROLE;

-- What only bodies call answers NULL, or refuses it
SELECT count(*) > 10 AS many, count(*) FILTER (WHERE code = '42883') AS missing
FROM pg_proc p, pg_temp.answer(format('SELECT * FROM tq_internal.%I(%s)', proname, (
	SELECT string_agg(format('NULL::%s', CASE t WHEN '"any"'::regtype THEN 'text' ELSE format_type(t, NULL) END), ', ') FROM unnest(proargtypes) t))) a
WHERE pronamespace = 'tq_internal'::regnamespace AND provariadic = 0 AND (prosrc ~ '^tq_(sql|body)_' OR prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql'));
-- or refuses to be called by others
SELECT code, message FROM pg_temp.answer('SELECT tq_internal.intern_queue(''regress/w'')');
SELECT code, message FROM pg_temp.answer('SELECT tq_internal.audit_task(NULL)');

-- Plans do not depend on the settings of the session
SET plan_cache_mode = force_custom_plan;
SET enable_indexscan = off;
SELECT count(*) FROM tq.list_pending_tasks('regress/none');
RESET enable_indexscan;
RESET plan_cache_mode;
DELETE FROM tq_internal.scope_grant WHERE scope = 'body:one';
DROP ROLE regress_tq_nobody;
