-- SECURITY.md: the tables of tq are written by their owner alone, each of them by each
-- kind of statement: not by a role that may write all data, nor by an admin of tq.
-- test/pgtap/7_scopes.sql makes every call as roles without a right to a table.
BEGIN;
\ir helper.psql

CREATE ROLE scribe;
CREATE ROLE chief;
CREATE ROLE clerk;
CREATE ROLE head;
SELECT format('GRANT pg_write_all_data, pg_read_all_data TO scribe; GRANT tq_admin, pg_write_all_data TO chief; GRANT tq_admin TO clerk; GRANT %I TO head', current_user) \gexec

CREATE FUNCTION pg_temp.answer(who name, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM set_config('role', who, true);
	EXECUTE statement;
	RAISE EXCEPTION USING ERRCODE = 'XXOK1';	-- rolls it back
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN CASE WHEN SQLSTATE = 'XXOK1' THEN 'ok' ELSE rtrim(SQLSTATE || ' ' || detail) END;
END $$;

CREATE TEMP TABLE written AS
	SELECT c.oid::regclass AS relation, c.relkind, a.act, s.statement
	FROM pg_class AS c, pg_attribute AS f,
		unnest('{insert,update,delete,truncate}'::text[]) WITH ORDINALITY AS a (act, n),
		format((ARRAY['INSERT INTO %s DEFAULT VALUES', 'UPDATE %s SET %I = DEFAULT', 'DELETE FROM %s', 'TRUNCATE %s'])[a.n], c.oid::regclass, f.attname) AS s (statement)
	WHERE c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND c.relkind IN ('r', 'p') AND f.attrelid = c.oid AND f.attnum = 1;
SELECT cmp_ok(count(DISTINCT relation), '>', 40::bigint, 'all tables, of the catalog') FROM written;

-- PostgreSQL gives pg_write_all_data no TRUNCATE, and tq_admin no right to a table.
CREATE FUNCTION pg_temp.passed(who name) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(format('%s %s: %s', act, relation, answer), '; ' ORDER BY relation::text, act)
	FROM written, pg_temp.answer(who, statement) AS answer
	WHERE answer <> CASE WHEN who = 'clerk' OR act = 'truncate' THEN '42501'
		ELSE format('42501 Only the owner of the extension writes the tables of tq; role "%s" is not a member of it.', who) END
$$;
SELECT is(pg_temp.passed(who), NULL, who || ' writes no table of tq') FROM unnest('{scribe,chief,clerk}'::name[]) AS who;
SET session_replication_role = replica;
SELECT is(pg_temp.passed('scribe'), NULL, 'nor as an origin of replication');
RESET session_replication_role;

-- What a view shows is written by the role that names the view.
SELECT is(string_agg(format('%s: %s', c.oid::regclass, answer), '; '), NULL, 'nor through a view')
FROM pg_class AS c, pg_temp.answer('scribe', format('DELETE FROM %s', c.oid::regclass)) AS answer
WHERE c.relnamespace = 'tq'::regnamespace AND c.relkind = 'v' AND answer !~ '^(42501 Only the owner|55000 )';

-- The owner of the extension may, and a role that is a member of it.
SELECT is(string_agg(format('%s %s: %s', act, relation, answer), '; '), NULL, 'the owner and its members write them')
FROM (VALUES (current_user), ('head')) AS r (who), written, pg_temp.answer(who, statement) AS answer
WHERE act IN ('delete', 'truncate') AND answer <> 'ok';

-- Calls write them, with the rights of the owner.
SET ROLE clerk;
SELECT lives_ok($$SELECT tq.grant_queue('scribe', 'mine/*', 'produce'), tq.set_queue('mine/q', '{"concurrentLimit": 2}'), tq.subscribe('sub', 'task-pending')$$, 'calls of an admin');
SELECT lives_ok($$SELECT tq.report_failed(c.task_id, c.run_id) FROM tq.enqueue('mine/q', policy => '{"serialKey": "k", "deadLetter": true}') AS e, tq.claim_work('mine/q', 'g', 'w') AS c$$, 'and those of a worker');
RESET ROLE;
SELECT cmp_ok(count(*), '>', 1::bigint, 'the trail has them') FROM tq.audit WHERE role = 'clerk';

SELECT * FROM finish();
ROLLBACK;
