-- Known ways of taking over an extension, each of which fails.  The attacker may
-- connect, has a schema of its own and temporary tables.  What it leaves for
-- others to run calls lair.trap(), which counts in whose name it runs: sequences
-- keep the count when a statement fails, or is rolled back.
BEGIN;
\ir helper.psql
\ir ../calls.sql

CREATE ROLE mallory LOGIN;
CREATE ROLE fresh;
CREATE ROLE shop;
CREATE ROLE "o'hara ""%s%n"" $1; --";
CREATE SCHEMA lair AUTHORIZATION mallory;
CREATE SCHEMA shop AUTHORIZATION shop;
GRANT USAGE ON SCHEMA shop TO mallory;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC;

-- Runs a statement in a session of a role, with a search_path in which the
-- attacker's schema comes first, and undoes it.  Returns its SQLSTATE, or
-- 'changed' if the role or the search_path is another one after it.
-- A task that the role may not see is one that does not exist, which is as good as TQ403.
CREATE FUNCTION pg_temp.try(statement text, role name DEFAULT 'mallory') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	path text := 'lair, pg_temp, pg_catalog, public';
BEGIN
	PERFORM pg_catalog.set_config('session_authorization', role, true);
	PERFORM pg_catalog.set_config('search_path', path, true);
	EXECUTE statement;
	IF current_user OPERATOR(pg_catalog.<>) role OR pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>) path THEN
		RAISE EXCEPTION USING ERRCODE = 'OTHER';
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'ALLOW';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN CASE WHEN SQLSTATE = 'ALLOW' THEN '00000' WHEN SQLSTATE = 'OTHER' THEN 'changed' WHEN detail ~ 'no right to see it|the task was never created' OR SQLERRM ~ 'has no dead letter' THEN 'TQ403' ELSE SQLSTATE END;
END $$;

-- The same, and keeps what it has done; errors are raised.
CREATE FUNCTION pg_temp.keep(statement text, role name DEFAULT 'mallory') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	me name := session_user;
BEGIN
	PERFORM pg_catalog.set_config('session_authorization', role, true);
	EXECUTE statement;
	PERFORM pg_catalog.set_config('session_authorization', me, true);
END $$;

-- How often the attacker's code has run: as itself, and as another role.
CREATE FUNCTION pg_temp.ran() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN format('%s as mallory, %s as others', (SELECT last_value - 1 FROM lair.mine), (SELECT last_value - 1 FROM lair.other));
END $$;
CREATE FUNCTION pg_temp.forget() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('lair.mine', 1), setval('lair.other', 1);
END $$;

SELECT pg_temp.keep($do$
	CREATE SEQUENCE lair.mine;
	CREATE SEQUENCE lair.other;
	GRANT USAGE ON SCHEMA lair TO PUBLIC;
	GRANT ALL ON ALL SEQUENCES IN SCHEMA lair TO PUBLIC;
	CREATE FUNCTION lair.trap() RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user OPERATOR(pg_catalog.=) 'mallory' THEN
			PERFORM pg_catalog.nextval('lair.mine'::pg_catalog.regclass);
		ELSE
			PERFORM pg_catalog.nextval('lair.other'::pg_catalog.regclass);
		END IF;
		RETURN true;
	END $$;
	CREATE FUNCTION lair.on_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN NULL; END $$;
$do$) \g /dev/null
SELECT pg_temp.forget() \g /dev/null

-- ---------------------------------------------------------------------------
-- Names of the attacker in front: functions, operators, tables
-- ---------------------------------------------------------------------------

-- A function of each name and the same arguments as one of the server or of tq,
-- an operator like each of theirs, a view like each of their tables.
CREATE FUNCTION pg_temp.attempt_each(statements text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	statement text;
BEGIN
	SET LOCAL check_function_bodies = off;
	PERFORM pg_catalog.set_config('session_authorization', 'mallory', true);
	FOREACH statement IN ARRAY statements LOOP
		BEGIN
			EXECUTE statement;
		EXCEPTION WHEN OTHERS THEN
			NULL;		-- types that PL/pgSQL has not
		END;
	END LOOP;
	PERFORM pg_catalog.set_config('session_authorization', 'postgres', true);
END $$;
SELECT session_user AS me \gset
SELECT pg_temp.attempt_each(array(
	SELECT DISTINCT format('CREATE FUNCTION lair.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', p.proname,
		(SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (t, n)),
		CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || format_type(p.prorettype, NULL),
		CASE WHEN p.proretset THEN 'BEGIN PERFORM lair.trap(); RETURN; END' ELSE 'BEGIN PERFORM lair.trap(); RETURN NULL; END' END)
	FROM pg_proc AS p WHERE p.pronamespace IN ('pg_catalog'::regnamespace, 'tq'::regnamespace, 'tq_internal'::regnamespace)
		AND p.prorettype::regtype::text NOT IN ('internal', 'cstring', 'trigger', 'event_trigger', 'language_handler', 'fdw_handler', 'index_am_handler', 'table_am_handler', 'tsm_handler')
		AND NOT p.proargtypes::oid[] && ARRAY['internal', 'cstring', '"any"']::regtype[]::oid[])) \g /dev/null
SELECT pg_temp.attempt_each(ARRAY['CREATE FUNCTION lair.format(text, VARIADIC anyarray) RETURNS text LANGUAGE plpgsql AS ''BEGIN PERFORM lair.trap(); RETURN NULL; END''',
	'CREATE FUNCTION lair.format(text, text) RETURNS text LANGUAGE plpgsql AS ''BEGIN PERFORM lair.trap(); RETURN NULL; END''',
	'CREATE FUNCTION lair.format(text, tq.slugid) RETURNS text LANGUAGE plpgsql AS ''BEGIN PERFORM lair.trap(); RETURN NULL; END''',
	'CREATE FUNCTION lair.count(anyelement) RETURNS bigint LANGUAGE plpgsql AS ''BEGIN PERFORM lair.trap(); RETURN NULL; END''']) \g /dev/null
SELECT pg_temp.attempt_each(array(
	SELECT format('CREATE OPERATOR lair.%s (%sRIGHTARG = %s, FUNCTION = lair.%I)', o.oprname,
		CASE WHEN o.oprleft <> 0 THEN format('LEFTARG = %s, ', format_type(o.oprleft, NULL)) ELSE '' END, format_type(o.oprright, NULL), p.proname)
	FROM pg_operator AS o JOIN pg_proc AS p ON p.oid = o.oprcode WHERE o.oprnamespace = 'pg_catalog'::regnamespace)) \g /dev/null
SELECT pg_temp.attempt_each(array(
	SELECT format('CREATE VIEW %s.%I AS SELECT %s FROM lair.trap()', place, c.relname, string_agg(format('NULL::%s AS %I', format_type(a.atttypid, NULL), a.attname), ', '))
	FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped, unnest('{lair,pg_temp}'::text[]) AS place
	WHERE c.relkind IN ('r', 'v', 'p', 'S') AND (c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) OR (c.relnamespace = 'pg_catalog'::regnamespace AND place = 'lair'))
	GROUP BY place, c.relname, c.oid)) \g /dev/null
SELECT pg_temp.attempt_each(array(
	SELECT format('CREATE TRIGGER trap INSTEAD OF %s ON %s.%I FOR EACH ROW EXECUTE FUNCTION lair.on_row()', event, c.relnamespace::regnamespace, c.relname)
	FROM pg_class AS c, unnest('{INSERT,UPDATE,DELETE}'::text[]) AS event WHERE c.relkind = 'v' AND c.relowner = 'mallory'::regrole)) \g /dev/null
SELECT ok(count(*) > 2000, 'the attacker has functions named like those of the server: ' || count(*)) FROM pg_proc WHERE pronamespace = 'lair'::regnamespace;
SELECT ok(count(*) > 700, 'and operators: ' || count(*)) FROM pg_operator WHERE oprnamespace = 'lair'::regnamespace;
SELECT is(count(*), 0::bigint, 'and tables like each of tq, in pg_temp too')
FROM pg_class AS c, (VALUES ('lair'::regnamespace), (pg_my_temp_schema()::regnamespace)) AS place (oid)
WHERE c.relkind IN ('r', 'v') AND c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)
	AND NOT EXISTS (SELECT FROM pg_class AS o WHERE o.relnamespace = place.oid AND o.relname = c.relname);

SELECT is(pg_temp.ran(), '0 as mallory, 0 as others', 'none of them has run');
SELECT is(pg_temp.try($$SELECT md5('x')$$), '00000', 'its own statement runs them');
SELECT is(pg_temp.try($$SELECT 1 FROM task$$), '00000', 'and reads them');
SELECT is(pg_temp.try($$SELECT 1 + 1$$), '00000', 'and uses them');
SELECT is(pg_temp.ran(), '3 as mallory, 0 as others', 'as itself');
SELECT pg_temp.forget() \g /dev/null

-- Tasks of others, one in each state: p pending, r running, c completed and so on.
SET cron.database_name = 'elsewhere';
SELECT pg_temp.reach_all('test/q') \g /dev/null
SELECT tq.claim_work('test/other', 'g', 'w'), tq.declare_worker('test/q', 'g', 'w', now() + interval '1 day') \g /dev/null
SELECT tq.create_artifact(pg_temp.id('r'), 0, name, jsonb_build_object('expires', now() + interval '1 minute') || more::jsonb)
FROM (VALUES ('inline', '{"storageType": "inline", "contentType": "text/plain", "content": "x"}'),
	('object', '{"storageType": "object", "contentType": "text/plain", "uploadId": "upload__QAGAAAAAAAAAAA"}')) AS v (name, more) \g /dev/null
SELECT tq.schedule_cron('cr1', '* * * * *', 'test/q', '{"x": "$scheduled"}', overlap => 'replace') \g /dev/null
INSERT INTO tq_internal.cron (name, id, role, schedule, task_queue_id, overlap, payload, options, created)
	SELECT name, tq.slugid(), 'mallory', schedule, task_queue_id, overlap, payload, options, created FROM tq_internal.cron;

-- Calls of each function, without a name that the caller's search_path decides: the
-- samples of src/sql/functions, and others with more arguments.
CREATE TEMP TABLE attack_call (fn text, call text, needs_scope bool);
INSERT INTO attack_call SELECT name, call, needs <> '[[]]' FROM pg_temp.samples('test/q') WHERE needs IS NOT NULL;
-- Those that need the credentials of a claim are in 5.7.
SELECT is(array(SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace AND p.prokind = 'f'
		AND p.proname NOT IN (SELECT fn FROM attack_call UNION ALL SELECT name FROM call WHERE state IN ('published', 'claimed') OR needs IS NULL) ORDER BY 1), '{}', 'each function is called');
CREATE FUNCTION pg_temp.whole(fn text) RETURNS text LANGUAGE sql AS $$ SELECT DISTINCT schema || '.' || name FROM call WHERE name = whole.fn $$;
CREATE FUNCTION pg_temp.call(fn text, args text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
	def text := pg_temp.def('new', '{"taskQueueId": "test/q"}')::text;
BEGIN
	FOR name IN SELECT DISTINCT m[1] FROM regexp_matches(args, '<(\w+)>', 'g') AS m LOOP
		args := replace(args, '<' || name || '>', pg_temp.id(name)::text);
	END LOOP;
	RETURN format('SELECT * FROM %s(%s)', pg_temp.whole(fn), replace(replace(replace(args, 'DEF', quote_literal(def)), 'JSON', def), 'SOON', pg_temp.iso(pg_temp.base() + interval '1 minute')));
END $$;
INSERT INTO attack_call SELECT fn, pg_temp.call(fn, args), true
FROM (VALUES ('create_task', $$'<new>', DEF$$), ('create_tasks', $$'[{"taskId": "<new>", "task": JSON}]'$$),
	('enqueue', $$'test/q', '{"x": 1}', task_group_id => '<gp>', dependencies => '{<p>}', routes => '{r}', scheduler_id => 'sched'$$), ('enqueue_tasks', $$'test/q', '{"{}","{}"}'$$),
	('on_group_resolved', $$'<gp>', 'test/q', '{"x": 1}'$$), ('cancel_group_callbacks', $$'<gp>', '<p>'$$),
	('schedule_cron', $$'cr2', '* * * * *', 'test/q', '{"x": "$name"}', tags => '{"a": "b"}', deadline => '1 hour'$$), ('run_cron_now', $$'cr1'$$), ('fire_cron', $$'cr1'$$),
	('add_dependencies', $$'<u>', '{<p>}'$$), ('rerun_task', $$'<c>', '1 hour', true$$), ('reschedule_task', $$'<p>'$$), ('skip_task', $$'<p>', '{"x": 1}'$$),
	('retry_task_group', $$'<gs>', '1 hour', '{failed}'$$), ('statuses', $$'{<p>,<r>}'$$), ('tasks', $$'{<p>,<r>}'$$),
	('why', $$'<u>'$$), ('why', $$'<r>'$$), ('why', $$'<c>'$$), ('why', $$'<d>'$$), ('why', $$'<a>'$$), ('why', $$'<s>'$$),
	('claim_work', $$'test/q', 'g', 'w', 5$$), ('claim_work', $$'{test/q,test/*}'::pg_catalog.text[], 'g', 'w', 5, mode => 'round-robin'$$), ('claim_lines', $$'test/q', 'g', 'w', 5$$),
	('claim_lines', $$'{test/q,test/*}'::pg_catalog.text[], 'g', 'w', 5, mode => 'round-robin'$$), ('report_completed', $$'<r>', 0, result => '{"x": 1}'$$),
	('resolve_and_claim', $$'[]', 'test/q', 'g', 'w'$$), ('set_queue', $$'test/q', '{"claimTimeout": 60}'$$), ('purge', $$'test/q', older_than => '0'$$),
	('create_artifact', $$'<r>', 0, 'new', '{"storageType": "reference", "url": "https://example.com/", "contentType": "a/b", "expires": "SOON"}'$$),
	('finish_artifact', $$'<r>', 0, 'object', 'upload__QAGAAAAAAAAAAA'$$), ('get_artifact', $$'<r>', 0, 'inline'$$), ('get_latest_artifact', $$'<r>', 'inline'$$), ('messages', ''),
	('rotate_secret', ''), ('grant_scopes', $$'fresh', '{x}'$$), ('revoke_scopes', $$'fresh', '{x}'$$), ('grant_queue', $$'fresh', 'test/*', 'read'$$), ('revoke_queue', $$'fresh', 'test/*', 'read'$$)) AS v (fn, args);

-- With every scope, so that each function gets as far as it can, and writes to the audit trail.
SET LOCAL tq.audit = 'all';
SELECT tq.grant_scopes('mallory', '{*}') \g /dev/null
SELECT is(pg_temp.try(call), '00000', 'names in front: ' || call) FROM attack_call;
SELECT is(pg_temp.try(call, :'me'), '00000', 'by a superuser with that search_path: ' || call) FROM attack_call;
SELECT is(pg_temp.ran(), '0 as mallory, 0 as others', 'no call has run a function, operator or table of the attacker');
GRANT tq_reader, tq_admin TO fresh;
SELECT is(pg_temp.try(format('SELECT pg_catalog.count(x::pg_catalog.text) FROM tq.%I AS x', relname), reader), '00000', format('names in front: tq.%I, read by %s', relname, reader))
FROM pg_class, (VALUES ('fresh'), (:'me')) AS v (reader) WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' ORDER BY relname COLLATE "C";
SELECT is(pg_temp.ran(), '0 as mallory, 0 as others', 'nor has a view');
REVOKE tq_reader, tq_admin FROM fresh;

-- Statements are planned and run with the attacker's settings: each that a user may set.
CREATE FUNCTION pg_temp.set_and_call(setting text, value text) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.try(format('SELECT pg_catalog.set_config(%L, %L, true); SELECT tq.enqueue(''test/q'', task_group_id => %L, scheduler_id => ''sched''); SELECT tq.claim_work(''test/q'', ''g'', ''w'', 5);
		SELECT tq.resolve(%L, ''{0}''); SELECT tq.why(%L); SELECT tq.health(); SELECT tq.cancel_task(%L); SELECT tq.messages()',
		setting, value, pg_temp.id('gp'), ARRAY[pg_temp.id('r')], pg_temp.id('u'), pg_temp.id('u')))
$$;
SELECT is(pg_temp.set_and_call(name, value), '00000', format('with %s = %s', name, value))
FROM pg_settings, unnest(CASE vartype WHEN 'bool' THEN '{on,off}' ELSE enumvals END) AS value
WHERE context = 'user' AND vartype IN ('bool', 'enum') AND value <> setting
	AND name NOT IN ('client_min_messages', 'default_transaction_read_only', 'transaction_read_only', 'transaction_isolation', 'transaction_deferrable', 'exit_on_error') AND name !~ '^(trace_|debug_print|log_)'
	AND (name <> 'standard_conforming_strings' OR current_setting('server_version_num')::int < 190000);	-- which 19 refuses to turn off
SELECT is(pg_temp.set_and_call(name, min_val), '00000', format('with %s = %s', name, min_val))
FROM pg_settings WHERE context = 'user' AND vartype IN ('integer', 'real') AND category ~ '^Query Tuning|^Resource' AND name <> 'temp_buffers';
SELECT is(pg_temp.set_and_call('transaction_read_only', 'on'), '25006', 'with transaction_read_only');
SELECT is(pg_temp.set_and_call(name, value), '42501', format('%s cannot be set', name))
FROM (VALUES ('session_replication_role', 'replica'), ('tq.clock_offset', '1 day'), ('tq.max_payload', '1GB'), ('tq.maintenance', 'off'), ('session_preload_libraries', 'x'),
	('role', :'me'), ('role', 'tq_admin'), ('role', 'shop')) AS v (name, value);
SELECT is(pg_temp.ran(), '0 as mallory, 0 as others', 'settings lead to no code of the attacker');

-- ---------------------------------------------------------------------------
-- Arguments: domains, casts, functions, cursors, prepared statements
-- ---------------------------------------------------------------------------

SELECT pg_temp.keep($do$
	CREATE DOMAIN lair.name_of AS text CHECK (lair.trap());
	CREATE DOMAIN lair.json_of AS jsonb CHECK (lair.trap());
	CREATE DOMAIN lair.slug_of AS tq.slugid CHECK (lair.trap());
	CREATE DOMAIN lair.int_of AS int CHECK (lair.trap());
	CREATE TYPE lair.kind AS ENUM ('test/q');
	CREATE TYPE lair.pair AS (a text, b int);
	CREATE FUNCTION lair.as_text(lair.kind) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN 'test/q'; END $$;
	CREATE FUNCTION lair.as_slug(lair.pair) RETURNS tq.slugid LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN ($1).a; END $$;
	CREATE FUNCTION lair.as_json(lair.pair) RETURNS json LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN '{"x": 1}'; END $$;
	CREATE FUNCTION lair.as_jsonb(lair.pair) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN '{"x": 1}'; END $$;
	CREATE CAST (lair.kind AS text) WITH FUNCTION lair.as_text(lair.kind) AS IMPLICIT;
	CREATE CAST (lair.pair AS tq.slugid) WITH FUNCTION lair.as_slug(lair.pair) AS IMPLICIT;
	CREATE CAST (lair.pair AS json) WITH FUNCTION lair.as_json(lair.pair) AS IMPLICIT;
	CREATE CAST (lair.pair AS jsonb) WITH FUNCTION lair.as_jsonb(lair.pair) AS IMPLICIT;
	CREATE FUNCTION lair.arg(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN $1; END $$;
	CREATE FUNCTION lair.become(role text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.set_config('role', role, false); RETURN 'test/q'; END $$;
	CREATE FUNCTION lair.belong(role text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.set_config('session_authorization', role, false); RETURN 'test/q'; END $$;
	CREATE FUNCTION lair.caught(call text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE call; EXCEPTION WHEN OTHERS THEN PERFORM lair.trap(); END $$;
$do$) \g /dev/null
SELECT pg_temp.forget() \g /dev/null
SELECT is(pg_temp.try(replace(call, '<p>', pg_temp.id('p')::text)), code, 'arguments: ' || call)
FROM (VALUES ('00000', $$SELECT tq.enqueue('test/q'::lair.name_of, '{}'::lair.json_of, task_id => 'dom_____QAGAAAAAAAAAAA'::lair.name_of)$$),
	('00000', $$SELECT tq.enqueue('test/q'::lair.kind)$$), ('00000', $$SELECT tq.status('<p>'::lair.slug_of)$$), ('00000', $$SELECT tq.status(ROW('<p>', 1)::lair.pair)$$),
	('00000', $$SELECT tq.enqueue('test/q', ROW('x', 1)::lair.pair)$$), ('00000', $$SELECT tq.enqueue_tasks('test/q', ARRAY['{}'::lair.json_of])$$),
	('00000', $$SELECT tq.statuses(ARRAY['<p>'::lair.slug_of])$$), ('00000', $$SELECT (tq.status('<p>'))::lair.json_of$$), ('00000', $$SELECT (tq.status('<p>')::pg_catalog.text)::lair.name_of$$),
	('00000', $$SELECT * FROM tq.why('<p>') WHERE lair.arg(reason) IS NOT NULL$$), ('00000', $$SELECT lair.arg(reason) FROM tq.why('<p>')$$),
	('00000', $$SELECT tq.claim_work(lair.arg('test/q'), lair.arg('g'), lair.arg('w'), 5::lair.int_of)$$),
	('00000', $$SELECT lair.caught('SELECT tq.status(NULL)'), lair.caught('SELECT tq.report_completed(''<p>'', 7)'), lair.caught('SELECT tq.enqueue(''test/q'', retries => -1)')$$),
	('00000', $o$DO $d$ DECLARE c refcursor; r record; BEGIN OPEN c FOR SELECT lair.arg(reason), tq.status('<p>'), current_user FROM tq.why('<p>'); FETCH c INTO r; PERFORM lair.trap(); FETCH c INTO r; END $d$$o$),
	('00000', $$PREPARE one (text) AS SELECT tq.enqueue($1), lair.arg($1); EXECUTE one('test/q'); DEALLOCATE one$$),
	('42501', format('SELECT tq.enqueue(lair.become(%L))', :'me')), ('42501', $$SELECT tq.enqueue(lair.become('tq_admin'))$$), ('42501', $$SELECT tq.enqueue(lair.become('shop'))$$)) AS v (code, call);
SELECT ok(pg_temp.ran() ~ '^\d\d as mallory, 0 as others$', 'what arguments and results run is run as the attacker: ' || pg_temp.ran());
SELECT pg_temp.forget() \g /dev/null

-- Who calls is decided by each call, whatever was prepared or opened before.
SELECT tq.revoke_scopes('mallory', '{*}') \g /dev/null
SELECT pg_temp.id('p') AS p \gset
PREPARE prepared AS SELECT tq.task(:'p');
EXECUTE prepared \g /dev/null
SELECT is(pg_temp.try('EXECUTE prepared'), 'TQ403', 'a statement that another role has prepared');
DECLARE opened CURSOR WITHOUT HOLD FOR SELECT tq.task(:'p') FROM generate_series(1, 100);
FETCH 1 FROM opened \g /dev/null
SELECT is(pg_temp.try('FETCH 1 FROM opened'), 'TQ403', 'a cursor that another role has opened');
SELECT is(pg_temp.keep($$PREPARE granted AS SELECT tq.status('one_____QAGAAAAAAAAAAA')$$)::text, '', 'a statement that the attacker has prepared');
SELECT is(pg_temp.try('EXECUTE granted'), 'TQ403', 'has no right that the attacker lacks');

-- SECURITY DEFINER: the caller is the owner of that function, in both directions.
SELECT tq.grant_scopes('shop', '{queue:create-task:*,queue:scheduler-id:*}') \g /dev/null
SELECT pg_temp.keep($do$
	CREATE FUNCTION shop.enqueue(queue text) RETURNS tq.slugid SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN RETURN tq.enqueue(queue); END $$;
	CREATE FUNCTION shop.task(id tq.slugid) RETURNS jsonb SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN RETURN tq.task(id); END $$;
	CREATE FUNCTION shop.scopes() RETURNS text[] SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN RETURN tq.current_scopes(); END $$;
$do$, 'shop') \g /dev/null
SELECT pg_temp.keep('CREATE FUNCTION lair.shown(id tq.slugid) RETURNS jsonb SECURITY DEFINER LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.trap(); RETURN tq.task(id); END $$') \g /dev/null
SELECT is(pg_temp.try(replace(call, '<p>', pg_temp.id('p')::text), caller), code, format('SECURITY DEFINER: %s by %s', call, caller))
FROM (VALUES ('mallory', '00000', $$SELECT shop.enqueue('test/q')$$), ('mallory', 'TQ403', $$SELECT tq.enqueue('test/q')$$), ('mallory', 'TQ403', $$SELECT shop.enqueue('test/q'), tq.enqueue('test/q')$$),
	('mallory', 'TQ403', $$SELECT shop.task('<p>')$$), (:'me', 'TQ403', $$SELECT lair.shown('<p>')$$), (:'me', 'TQ403', $$SELECT shop.task('<p>')$$),
	('mallory', '42501', format('CREATE OR REPLACE FUNCTION shop.enqueue(queue text) RETURNS tq.slugid LANGUAGE sql AS %L', 'SELECT tq.enqueue(queue)')),
	('mallory', '00000', $$SELECT shop.scopes()$$)) AS v (caller, code, call);
SELECT is(pg_temp.ran(), '1 as mallory, 0 as others', 'SECURITY DEFINER: each function as its owner');

-- ---------------------------------------------------------------------------
-- Objects of tq
-- ---------------------------------------------------------------------------

-- Without scopes: each call is refused, and nothing changes.
SELECT is(pg_temp.try(call), CASE WHEN needs_scope THEN 'TQ403' ELSE '00000' END, 'without scopes: ' || call) FROM attack_call WHERE fn NOT IN ('resolve', 'resolve_lines', 'statuses', 'tasks');
SELECT is(pg_temp.try(format('SELECT 1 OPERATOR(pg_catalog./) pg_catalog.count(*) FROM (%s) AS s', call)), '22012', 'without scopes no rows: ' || call) FROM attack_call WHERE fn IN ('statuses', 'tasks');
SELECT is(pg_temp.try(format($$SELECT 1 OPERATOR(pg_catalog./) pg_catalog.count(*) FROM tq.resolve('{%s}', '{0}') WHERE outcome OPERATOR(pg_catalog.<>) 'not-found'$$, pg_temp.id('r'))), '22012', 'without scopes: resolve() resolves nothing');
SELECT is(pg_temp.try(format($$SELECT 1 OPERATOR(pg_catalog./) (tq_internal.resolve_lines(E'%s\t0\n') OPERATOR(pg_catalog.<>) E'not-found\n')::pg_catalog.int4$$, pg_temp.id('r'))), '22012', 'without scopes: nor does resolve_lines()');
SELECT is(pg_temp.try('SELECT tq_internal.start_maintenance()'), '42501', 'start_maintenance() is for superusers');

-- Nothing can be hung on them, and none can be read, written, locked or taken.  What is no
-- primary key (42704) or is a partition (42809) is refused before rights are checked.
SELECT is(regexp_replace(pg_temp.try(format(attempt, c.oid::regclass)), '^(42704|42809)$', '42501'), '42501', format(attempt, c.oid::regclass))
FROM pg_class AS c, unnest(ARRAY['SELECT FROM %s', 'SELECT FROM ONLY %s FOR UPDATE', 'INSERT INTO %s DEFAULT VALUES', 'DELETE FROM %s', 'TRUNCATE %s', 'LOCK TABLE %s IN ACCESS SHARE MODE',
	'COPY %s TO PROGRAM ''true''', 'COPY %s FROM PROGRAM ''true''', 'CREATE TRIGGER t BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION lair.on_row()', 'CREATE RULE r AS ON INSERT TO %s DO ALSO SELECT lair.trap()',
	'CREATE POLICY p ON %s USING (lair.trap())', 'ALTER TABLE %s ENABLE ROW LEVEL SECURITY', 'ALTER TABLE %s OWNER TO mallory', 'ALTER TABLE %s ADD COLUMN x int', 'CREATE INDEX ON %s ((lair.trap()))',
	'CREATE TABLE lair.heir () INHERITS (%s)', 'CREATE TABLE lair.heir (LIKE %s)', 'CREATE TABLE lair.heir (x %s)', 'CREATE TABLE lair.heir (x %s[])', 'CREATE FUNCTION lair.heir() RETURNS SETOF %s LANGUAGE sql AS ''SELECT NULL''', 'CREATE TABLE lair.heir (x bigint REFERENCES %s)', 'DROP TABLE %s', 'GRANT SELECT ON %s TO mallory', 'COMMENT ON TABLE %s IS NULL']) AS attempt
WHERE c.relnamespace = 'tq_internal'::regnamespace AND c.relkind = 'r';
-- Of the views, those that show what the caller may see.
CREATE FUNCTION pg_temp.is_shown(c pg_class) RETURNS bool LANGUAGE sql AS $$
	SELECT c.relkind = 'v' AND CASE c.relnamespace WHEN 'tq'::regnamespace THEN c.relname NOT IN ('audit', 'maintenance_overview') ELSE coalesce(c.reloptions @> '{security_barrier=true}', false) END
$$;
SELECT is(pg_temp.try(format('SELECT FROM %s', c.oid::regclass)), CASE WHEN pg_temp.is_shown(c) THEN '00000' ELSE '42501' END, format('SELECT FROM %s', c.oid::regclass)) FROM pg_class AS c
WHERE c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND c.relkind IN ('v', 'S');
SELECT is(pg_temp.try(statement), '42501', statement)
FROM (SELECT unnest(ARRAY['CREATE FUNCTION tq.mine() RETURNS int LANGUAGE sql AS ''SELECT 1''', 'CREATE OR REPLACE FUNCTION tq.slugid() RETURNS tq.slugid LANGUAGE sql AS ''SELECT NULL::tq.slugid''',
	'CREATE TABLE tq.mine ()', 'CREATE TABLE tq_internal.mine ()', 'ALTER SCHEMA tq OWNER TO mallory', 'ALTER SCHEMA tq RENAME TO mine', 'DROP SCHEMA tq CASCADE',
	'ALTER FUNCTION tq.status(tq.slugid) SECURITY DEFINER', 'ALTER FUNCTION tq.status(tq.slugid) SET search_path = lair', 'ALTER EXTENSION tq ADD SCHEMA lair', 'ALTER EXTENSION tq UPDATE', 'ALTER EXTENSION tq DROP SCHEMA tq_internal',
	'DROP EXTENSION tq CASCADE', 'DROP TYPE tq.slugid CASCADE', 'CREATE CAST (bigint AS tq.slugid) WITH FUNCTION lair.as_slug(lair.pair)', 'ALTER TYPE tq.slugid SET (RECEIVE = none)',
	'CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION lair.on_row()', 'CREATE TRIGGER t AFTER INSERT ON lair.own EXECUTE FUNCTION tq_internal.track_grants()',
	'CREATE FUNCTION lair.c() RETURNS int LANGUAGE c AS ''tq'', ''tq_status''', 'CREATE OPERATOR CLASS lair.ops DEFAULT FOR TYPE tq.slugid USING btree AS FUNCTION 1 lair.compare(tq.slugid, tq.slugid)',
	'GRANT tq_admin TO mallory', 'ALTER ROLE tq_admin LOGIN', 'ALTER ROLE tq_admin RENAME TO x', 'DROP ROLE tq_admin', 'CREATE ROLE tq_other', 'ALTER DATABASE ' || quote_ident(current_database()) || ' SET search_path = lair',
	'ALTER SYSTEM SET tq.maintenance = off', 'LOAD ''tq''', 'SELECT tq_internal.clock_now()'])) AS s (statement)
WHERE statement !~ 'lair\.own|^ALTER SYSTEM|^LOAD';
SELECT is(pg_temp.ran(), '1 as mallory, 0 as others', 'objects: no code of the attacker has run');

-- ---------------------------------------------------------------------------
-- Names
-- ---------------------------------------------------------------------------

-- What a user names is a value: quotes, format specifiers and SQL change nothing.
CREATE TEMP TABLE odd (name text);
INSERT INTO odd VALUES ($$x'; SELECT lair.trap(); --$$), ($$"; DROP TABLE tq_internal.task; --$$), ('%s%n%1$s%L'), ($$\'); COPY odd TO PROGRAM 'touch /tmp/tq'; --$$), ('$1 || lair.trap()'), ('{"a": "b"}'), (E'a\nb');
SELECT tq.grant_scopes('mallory', '{*}') \g /dev/null
CREATE FUNCTION pg_temp.odd_state(fn text, args text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN pg_temp.try('SELECT * FROM ' || pg_temp.whole(fn) || '(' || args || ')') IN ('00000', 'TQ400', 'TQ404', '22P02', '42704', '42602', '22007') THEN 'value' ELSE 'other' END
$$;
SELECT is(pg_temp.odd_state(fn, format(args, name)), 'value', format('%s(%s)', pg_temp.whole(fn), format(args, name)))
FROM odd, (VALUES ('enqueue', '%L'), ('enqueue', $$'test/q', routes => ARRAY[%L]$$), ('enqueue', $$'test/q', scopes => ARRAY[%L]$$), ('enqueue', $$'test/q', task_id => %L$$),
	('claim_work', $$'test/q', %1$L, %1$L$$), ('claim_work', $$%L, 'g', 'w'$$), ('claim_work', $$ARRAY[%L], 'g', 'w'$$), ('claim_work', $$'{test/q}'::text[], 'g', 'w', mode => %L$$), ('claim_lines', $$'test/q', %1$L, %1$L$$), ('claim_lines', $$%L, 'g', 'w'$$), ('claim_lines', $$ARRAY[%L], 'g', 'w', mode => %1$L$$), ('resolve_lines', '%L'), ('resolve_lines', $$'', %L$$), ('bind', $$%L, 'task-defined'$$), ('bind', $$'c', %L$$), ('bind', $$'c', 'task-defined', %L$$),
	('subscribe', $$%L, 'task-defined'$$), ('fetch', '%L'), ('messages', 'pattern => %L'), ('messages', 'exchange => %L'), ('queue_channel', '%L'), ('worker_channel', '%1$L, %1$L'), ('list_workers', '%L'), ('list_task_queues', '%L'),
	('grant_scopes', '%L, ARRAY[''x'']'), ('grant_scopes', '''fresh'', ARRAY[%L]'), ('grant_queue', '''fresh'', %L, ''read'''), ('satisfies', 'ARRAY[%1$L], %1$L'), ('topic_match', '%1$L, %1$L'), ('stable_slugid', '%L'),
	('get_latest_artifact', format('%L, %%L', pg_temp.id('r'))), ('worker_removed', '''test/q'', ''g'', ''w'', %L'), ('why', '%L'), ('status', '%L')) AS v (fn, args);
SELECT is(pg_temp.odd_state(fn, format(args, jsonb_build_object(name, name))), 'value', format('%s(%s)', pg_temp.whole(fn), format(args, jsonb_build_object(name, name))))
FROM odd, (VALUES ('enqueue', $$'test/q', %L$$), ('enqueue', $$'test/q', tags => %L$$), ('enqueue', $$'test/q', policy => %L$$), ('create_task', $$'new_____QAGAAAAAAAAAAA', %L$$), ('conductor_policy', '%L'), ('taskbroker_policy', '%L'),
	('report_completed', format('%L, 0, result => %%L', pg_temp.id('r'))), ('report_failed', format('%L, 0, error => %%L', pg_temp.id('r')))) AS v (fn, args);
SELECT tq.enqueue('test/odd', jsonb_build_object(name, name), tags => jsonb_build_object(name, name), task_id => pg_temp.id(name)) FROM odd \g /dev/null
SELECT is(tq.task(pg_temp.id(name)) -> 'payload', jsonb_build_object(name, name), 'payload stays as it is: ' || name) FROM odd;
SELECT is(tq.task(pg_temp.id(name)) -> 'tags', jsonb_build_object(name, name), 'tags stay as they are: ' || name) FROM odd;
SELECT lives_ok(format('SELECT tq.grant_scopes(%L, %L)', quote_ident(r), ARRAY['%s%n:' || r]), 'a role with such a name has scopes') FROM (VALUES ($$o'hara "%s%n" $1; --$$)) AS v (r);
SELECT is(pg_temp.try('SELECT tq.health()', $$o'hara "%s%n" $1; --$$), 'TQ403', 'and is refused what it may not');
SELECT is(pg_temp.ran(), '1 as mallory, 0 as others', 'names: no code of the attacker has run');
SELECT tq.revoke_scopes('mallory', '{*}') \g /dev/null

-- ---------------------------------------------------------------------------
-- What a fresh role may use, by the catalogs
-- ---------------------------------------------------------------------------

SELECT is(array(SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)
	AND CASE WHEN c.relkind IN ('r', 'v', 'm', 'p', 'f') THEN has_table_privilege('fresh', c.oid, 'INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')
			OR has_any_column_privilege('fresh', c.oid, 'INSERT,UPDATE,REFERENCES')
			OR (has_any_column_privilege('fresh', c.oid, 'SELECT') AND NOT pg_temp.is_shown(c))
		WHEN c.relkind = 'S' THEN has_sequence_privilege('fresh', c.oid, 'USAGE,SELECT,UPDATE') END), '{}', 'a fresh role: no table, column or sequence, and no view but those of what it may see');
SELECT is(array(SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace AND NOT has_function_privilege('fresh', p.oid, 'EXECUTE') ORDER BY 1),
	array(SELECT name FROM call WHERE needs IS NULL ORDER BY 1), 'each function of schema tq but those of the owner');
SELECT is(array(SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq_internal'::regnamespace AND has_function_privilege('fresh', p.oid, 'EXECUTE')
	AND p.proname !~ '^slugid_(in|out|recv|send|cmp|hash|hash_extended|eq|ne|lt|le|gt|ge|larger|smaller|like|not_like|from_uuid|to_uuid)$' ORDER BY 1), array(SELECT unnest('{is_awaited,is_tolerated,priority_name,reason_created_name,reason_resolved_name,state_name,underived_message,visible_queues}'::text[])
	UNION ALL SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq_internal'::regnamespace AND p.proretset AND p.proname ~ '^(all|visible)_'
	UNION ALL SELECT name FROM call WHERE schema = 'tq_internal' ORDER BY 1), 'of the inner ones those of type slugid, what a dump and views need, and those of routers and tests');
SELECT is(has_schema_privilege('fresh', 'tq', 'USAGE') || '/' || has_schema_privilege('fresh', 'tq', 'CREATE') || '/' || has_schema_privilege('fresh', 'tq_internal', 'CREATE'), 'true/false/false', 'schemas: no CREATE');
SELECT is(array(SELECT t.oid::regtype::text FROM pg_type AS t WHERE t.typnamespace = 'tq_internal'::regnamespace AND t.typtype NOT IN ('c', 'b')), '{}', 'no type but row types and arrays in the inner schema');
SELECT is(array(SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)
	UNION SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)), ARRAY[quote_ident(:'me')], 'all belong to the owner of the extension');
SELECT is(array(SELECT defaclacl::text FROM pg_default_acl WHERE defaclnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)), '{}', 'no default privileges');
SELECT is(array(SELECT format('%s %s', c.oid::regclass, a.grantee::regrole) FROM pg_class AS c, aclexplode(c.relacl) AS a
	WHERE c.relnamespace = 'tq_internal'::regnamespace AND a.grantee <> c.relowner AND NOT (c.relkind = 'v' AND c.relname ~ '^(all|visible)_')), '{}', 'and the five roles have no right on a table either');

-- ---------------------------------------------------------------------------
-- What was there before CREATE EXTENSION
-- ---------------------------------------------------------------------------

DROP EXTENSION tq CASCADE;
-- The SQLSTATE of CREATE EXTENSION after these statements; undone.
CREATE FUNCTION pg_temp.created_after(statements text, probe text DEFAULT 'SELECT 1') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE statements;
	CREATE EXTENSION tq;
	EXECUTE probe INTO answer;
	RAISE EXCEPTION USING ERRCODE = 'ALLOW', MESSAGE = answer;
EXCEPTION WHEN OTHERS THEN
	RETURN CASE SQLSTATE WHEN 'ALLOW' THEN SQLERRM ELSE SQLSTATE END;
END $$;
CREATE FUNCTION pg_temp.planted(statement text) RETURNS text LANGUAGE sql AS $$
	SELECT format('DROP SCHEMA IF EXISTS tq; CREATE SCHEMA tq; GRANT CREATE, USAGE ON SCHEMA tq TO mallory; SET LOCAL ROLE mallory; %s; RESET ROLE; REVOKE ALL ON SCHEMA tq FROM mallory', statement)
$$;
SELECT is(pg_temp.created_after('DROP SCHEMA IF EXISTS tq; ' || setup), state, 'before CREATE EXTENSION: ' || setup)
FROM (VALUES ('CREATE SCHEMA tq AUTHORIZATION mallory', '42501'), ('CREATE SCHEMA tq; GRANT CREATE ON SCHEMA tq TO mallory', '42501'), ('CREATE SCHEMA tq; GRANT CREATE ON SCHEMA tq TO PUBLIC', '42501'),
	('ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory', '42501'), ('CREATE SCHEMA tq_internal AUTHORIZATION mallory', '42P06'), ('CREATE SCHEMA tq_internal', '42P06'), ('CREATE SCHEMA tq; GRANT USAGE ON SCHEMA tq TO mallory', '1'), ('CREATE SCHEMA tq', '1'), ('SELECT 1', '1')) AS v (setup, state);
SELECT is(pg_temp.created_after(pg_temp.planted(statement)), '55000', 'left in schema tq: ' || statement)
FROM unnest(ARRAY['CREATE FUNCTION tq.format(text, int) RETURNS text LANGUAGE sql AS ''SELECT lair.trap()::text''', 'CREATE OPERATOR tq.|| (LEFTARG = text, RIGHTARG = int, FUNCTION = lair.join)', 'CREATE TABLE tq.task ()',
	'CREATE TYPE tq.t AS ENUM ()', 'CREATE DOMAIN tq.d AS text', 'CREATE COLLATION tq.c FROM "C"', 'CREATE AGGREGATE tq.count(int) (SFUNC = int4pl, STYPE = int)', 'CREATE VIEW tq.v AS SELECT 1', 'CREATE SEQUENCE tq.id_seq',
	'CREATE TEXT SEARCH DICTIONARY tq.d (TEMPLATE = simple)', 'CREATE CONVERSION tq.c FOR ''LATIN1'' TO ''UTF8'' FROM iso8859_1_to_utf8']) AS statement
WHERE statement !~ 'OPERATOR';
-- Rights that the owner gives away by default are not given away for tq.
SELECT is(pg_temp.created_after('ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory, PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory, PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO mallory; ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO mallory',
	$$SELECT string_agg(what, ', ' ORDER BY what) FROM (
		SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND CASE WHEN c.relkind IN ('r', 'v') THEN
				has_table_privilege('mallory', c.oid, 'INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER') OR (has_table_privilege('mallory', c.oid, 'SELECT') AND NOT pg_temp.is_shown(c)) WHEN c.relkind = 'S' THEN has_sequence_privilege('mallory', c.oid, 'USAGE,SELECT,UPDATE') END
		UNION ALL SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq_internal'::regnamespace AND p.proname !~ '^(slugid|all|visible)_' AND has_function_privilege('mallory', p.oid, 'EXECUTE')
			AND NOT EXISTS (SELECT FROM call WHERE schema = 'tq_internal' AND name = p.proname)
		UNION ALL SELECT 'tq_internal.start_maintenance' WHERE has_function_privilege('mallory', 'tq_internal.start_maintenance()', 'EXECUTE')
		UNION ALL SELECT n.nspname::text FROM pg_namespace AS n WHERE n.nspname = 'tq_internal' AND has_schema_privilege('mallory', n.oid, 'CREATE')
		UNION ALL SELECT 'CREATE' WHERE has_schema_privilege('mallory', 'tq', 'CREATE')) AS u (what)$$), 'is_awaited, is_tolerated, priority_name, reason_created_name, reason_resolved_name, state_name, underived_message', 'default privileges of the owner');

SELECT * FROM finish();
ROLLBACK;
