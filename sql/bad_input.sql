-- Every argument of every function and procedure: NULL, empty, too long, malformed.  The right SQLSTATE, and nothing changed.
\getenv srcdir PG_ABS_SRCDIR
\getenv builddir PG_ABS_BUILDDIR
\set helper :srcdir /sql/helper.psql
\set calls :builddir /test/calls.sql
\set ECHO none
\i :helper
\i :calls
\pset format unaligned
\pset footer off

-- A pg_cron that is in another database
SET cron.database_name = 'elsewhere';
SET client_min_messages = warning;
SELECT pg_temp.reach_all('regress/w') \g /dev/null
SELECT tq.enqueue('regress/k', task_id => pg_temp.id('k')) \g /dev/null
SELECT tq.claim_work('regress/k', 'g', 'w') \g /dev/null
DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM tq.messages()) LOOP PERFORM tq.upkeep(); COMMIT; END LOOP;
END $$;
SET tq.credentials = on;
CREATE TEMP TABLE known AS SELECT jsonb_build_object('credentials', credentials::text, 'm', (SELECT max(id) FROM tq.messages())) AS facts FROM tq.reclaim_task(pg_temp.id('k'), 0);
RESET tq.credentials;
SELECT pg_temp.stored() AS before \gset

-- Good values of arguments that the samples of src/sql/functions leave out, where the default does not say much: of any function, or of one
CREATE TEMP TABLE better (fn text, arg text, good text);
INSERT INTO better VALUES (NULL, 'payload', $$'{"a": 1}'$$), (NULL, 'task_id', $$'another_QAGAAAAAAAAAAA'$$), (NULL, 'task_group_id', $$'newgroupQAGAAAAAAAAAAA'$$), (NULL, 'dependencies', $$'{p_______QAGAAAAAAAAAAA}'$$),
	(NULL, 'requires', $$'all-resolved'$$), (NULL, 'priority', $$'high'$$), (NULL, 'retries', $$3$$), (NULL, 'deadline', $$'1 hour'$$), (NULL, 'expires', $$'1 day'$$), (NULL, 'delay', $$'0'$$),
	(NULL, 'routes', $$'{r}'$$), (NULL, 'scopes', $$'{s}'$$), (NULL, 'tags', $$'{"t": "u"}'$$), (NULL, 'extra', $$'{"e": 1}'$$), (NULL, 'name', $$'n'$$), (NULL, 'overlap', $$'skip'$$), (NULL, 'downstream', $$true$$),
	(NULL, 'max', $$10$$), (NULL, 'max_rows', $$10$$), (NULL, 'max_nodes', $$10$$), (NULL, 'result', $$'{"r": 1}'$$), (NULL, 'error', $$'{"message": "m"}'$$), (NULL, 'output', $$'{"o": 1}'$$), (NULL, 'states', $$'{pending}'$$),
	(NULL, 'retry_delay', $$'1 s'$$), (NULL, 'retries_left', $$3$$), (NULL, 'error_message', $$'m'$$), (NULL, 'message', $$'m'$$), (NULL, 'wait', $$'0'$$), (NULL, 'quarantined', $$false$$), (NULL, 'quarantine_info', $$'info'$$),
	(NULL, 'workflow_task', $$'{"optional": true}'$$), (NULL, 'scheduled', $$'2026-01-01'$$), (NULL, 'exchange', $$'task-defined'$$), (NULL, 'reasons', $$'{failed}'$$),
	('on_group_resolved', 'retry', $$5$$), ('resolve', 'reason', $$'failed'$$), ('resolve_lines', 'reason', $$'failed'$$), ('worker_removed', 'reason', $$'gone'$$),
	('list_dependent_tasks', 'after', $$'u_______QAGAAAAAAAAAAA'$$), ('list_task_group', 'after', $$'a_______QAGAAAAAAAAAAA'$$), ('list_dead_letters', 'after', $$'a_______QAGAAAAAAAAAAA'$$),
	('list_pending_tasks', 'after', $$'1'$$), ('list_claimed_tasks', 'after', $$'1.1'$$), ('list_workers', 'after', $$'a/b'$$), ('list_task_queues', 'after', $$'regress/d'$$),
	('list_artifacts', 'after', $$'a'$$), ('list_latest_artifacts', 'after', $$'a'$$);

-- A successful call of each function, argument by argument; and of inner ones
CREATE TEMP TABLE argument (fn text, place serial, arg text, good text, otherwise text, proc oid);
INSERT INTO argument (fn, arg, good, otherwise)
	SELECT a.fn, a.arg, pg_temp.fill(coalesce(a.given, o.good, b.good, a.otherwise), pg_temp.facts(c.state, 'regress/w', k.facts)), a.otherwise
	FROM known AS k, call_argument AS a JOIN call AS c USING (fn)
		LEFT JOIN better AS o ON o.fn = c.name AND o.arg = a.arg LEFT JOIN better AS b ON b.fn IS NULL AND b.arg = a.arg
	WHERE NOT (c.alone AND a.arg = 'tasks') AND c.needs IS NOT NULL		-- what a procedure returns
	ORDER BY a.n;
INSERT INTO argument (fn, arg, good) VALUES
	('rate_until', 'queue', $$1$$),
	('is_tolerated', 'policy', $$'{"onUnsuccessful": "forgive"}'$$), ('is_tolerated', 'reason', $$2$$),
	('slugid_from_uuid', '', $$'01234567-89ab-4cde-8123-456789abcdef'$$),
	('group_slug', 'group_id', $$0$$), ('group_slug', 'task_id', $$'p_______QAGAAAAAAAAAAA'$$), ('group_number', 'task_group_id', $$'gs______QAGAAAAAAAAAAA'$$),
	('short_count', 'given', $$12$$), ('short_age', 'given', $$'1 min'::interval$$),
	('shorten', 'given', $$'a b'$$), ('shorten', 'size', $$10$$), ('local_time', 'given', $$'2100-01-01'::timestamptz$$), ('may_see_statements', 'role', $$10$$),
	('is_awaited', 'xid', $$'1'$$), ('is_awaited', 'seq', $$1$$), ('exchange_name', 'exchange', $$1$$),
	('state_name', 'state', $$1$$), ('reason_created_name', 'reason', $$1$$), ('reason_resolved_name', 'reason', $$1$$), ('priority_name', 'priority', $$1$$);

\set ECHO all
UPDATE argument AS a SET proc = p.oid
	FROM pg_proc AS p LEFT JOIN call AS c ON p.pronamespace = c.schema::regnamespace AND c.name = p.proname AND coalesce(p.proargnames[1:p.pronargs], '{}') = c.names
	WHERE a.fn = c.fn OR (p.pronamespace = 'tq_internal'::regnamespace AND a.fn = p.proname);

\set ECHO all
-- Functions that are not in the manifest, and functions of the manifest that are not in the catalog: none
SELECT proname FROM pg_proc WHERE pronamespace = 'tq'::regnamespace AND proname NOT IN (SELECT name FROM call);
SELECT name FROM call WHERE NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = schema::regnamespace AND proname = name AND coalesce(proargnames[1:pronargs], '{}') = names);

-- The call with one argument replaced; name/2 is the second form of a function
-- CALL may return nothing, which EXECUTE ... INTO refuses.
CREATE FUNCTION pg_temp.called(statement text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; RETURN NULL; END $$;
CREATE FUNCTION pg_temp.call(f text, a text DEFAULT NULL, value text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT format(CASE p.prokind WHEN 'p' THEN 'SELECT pg_temp.called($c$CALL %s.%I(%s)$c$)' ELSE 'SELECT * FROM %s.%I(%s)' END, p.pronamespace::regnamespace, p.proname,
		string_agg(CASE WHEN arg = '' THEN '' ELSE arg || ' => ' END || CASE WHEN arg = a THEN value ELSE good END, ', ' ORDER BY place))
	FROM argument JOIN pg_proc AS p ON p.oid = proc WHERE fn = f GROUP BY p.oid, p.prokind, p.pronamespace, p.proname $$;

-- What is said to each value that replaces a good one.  Most functions say the same of an argument of one name: this is shown once,
-- and then what others say.  A procedure that ends transactions has accepted its arguments when it says that it cannot run in one.
CREATE TEMP TABLE said (what text, n int, value text, place int, fn text, arg text, otherwise text, code text, message text);
CREATE FUNCTION pg_temp.accept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.message ~ 'cannot run inside a transaction' AND NEW.fn IN (SELECT fn FROM call WHERE alone) THEN
		NEW.code := 'ok'; NEW.message := NULL;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER accept BEFORE INSERT ON said FOR EACH ROW EXECUTE FUNCTION pg_temp.accept();
CREATE TEMP VIEW outcome AS
	SELECT *, concat_ws(' ', code, CASE WHEN code <> 'ok' THEN
		regexp_replace(regexp_replace(regexp_replace(message, '\m' || CASE arg WHEN '' THEN '-' ELSE arg END || '\M', 'ARG'), '^invalid ARG ".*', 'invalid ARG "VALUE"'), '"[-\w]{22}"', 'ID', 'g') END) AS outcome
	FROM said;
CREATE TEMP VIEW rule AS
	SELECT what, n, value, arg, otherwise, outcome FROM (SELECT o.*, row_number() OVER (PARTITION BY what, value, arg, otherwise ORDER BY count DESC, outcome COLLATE "C") AS r FROM (
		SELECT what, n, value, arg, coalesce(otherwise, '') = 'NULL' AS otherwise, outcome, count(*) FROM outcome GROUP BY 1, 2, 3, 4, 5, 6) AS o) AS o WHERE r = 1;
-- Not shown: an argument that must not be NULL unless that is its default, and a text that is invalid
CREATE TEMP VIEW shown_rule AS
	SELECT what, n, value, outcome, string_agg(arg, ' ' ORDER BY arg COLLATE "C") AS arguments FROM rule
	WHERE outcome <> CASE what WHEN 'NULL' THEN CASE WHEN otherwise THEN 'ok' ELSE 'TQ400 ARG must not be NULL' END WHEN 'text' THEN 'TQ400 invalid ARG "VALUE"' ELSE '' END
	GROUP BY what, n, value, outcome;
CREATE TEMP VIEW exception AS
	SELECT o.what, o.n, o.value, o.place, o.fn, o.arg, o.code, CASE WHEN o.code <> 'ok' OR o.what = 'text' THEN left(o.message, 100) END AS message
	FROM outcome AS o JOIN rule AS r USING (what, value, arg) WHERE r.otherwise = (coalesce(o.otherwise, '') = 'NULL') AND o.outcome <> r.outcome;

-- Valid arguments only: each call succeeds
SELECT fn, code, message
FROM (SELECT fn, min(place) AS place FROM argument GROUP BY fn) f, pg_temp.answer(pg_temp.call(fn)) a
WHERE code <> 'ok' AND (fn, message) NOT IN (SELECT c.fn, format('tq.%s() cannot run inside a transaction block', c.name) FROM call AS c WHERE c.alone) ORDER BY place;

-- NULL
INSERT INTO said SELECT 'NULL', 0, 'NULL', place, fn, arg, otherwise, code, message
FROM argument, pg_temp.answer(pg_temp.call(fn, arg, 'NULL')) a WHERE good <> 'NULL';

-- For texts: the empty string, one that is too long, a word with a point, one that is not ASCII
CREATE TEMP VIEW text_argument AS
	SELECT fn, place, arg FROM argument JOIN pg_proc AS p ON p.oid = proc WHERE proargtypes[array_position(proargnames, arg) - 1] = 'text'::regtype;
INSERT INTO said SELECT 'text', v.n, v.name, place, fn, arg, NULL, code, CASE WHEN code <> 'ok' OR arg <> 'after' THEN left(message, 50) END
FROM text_argument, (VALUES (1, 'empty', ''''''), (2, 'long', $$repeat('a', 100000)$$), (3, 'point', $$'a.b/c d'$$)) AS v (n, name, value), pg_temp.answer(pg_temp.call(fn, arg, v.value)) a;
INSERT INTO said SELECT 'text', 4, 'not ASCII', place, fn, arg, NULL, code, CASE WHEN code <> 'ok' THEN left(message, 50) END
FROM text_argument, pg_temp.answer(pg_temp.call(fn, arg, $$U&'pr\00e4/\00e4'$$)) a
WHERE current_setting('server_encoding') = 'UTF8';

-- Numbers that are too small or too great
INSERT INTO said SELECT 'number', 0, value, place, fn, arg, NULL, code, message
FROM argument, unnest('{-2147483648,-1,0,1000,1001,2147483647}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE arg IN ('max', 'tasks', 'bucket', 'run_id', 'retries', 'retries_left') AND good ~ '^\d';
SELECT fn, value, code, message FROM argument, unnest('{-2147483648,-1,0,1,7,8,16,17,2147483647}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE fn LIKE '%\_name' ORDER BY place, value::bigint;

-- Invalid slugids
SELECT value, code, message, detail, hint FROM unnest(ARRAY['', 'x', 'one_____QAGAAAAAAAAAA', 'one_____QAGAAAAAAAAAAAA', 'one_____QAGAAAAAAAAAAB', 'one_____AAGAAAAAAAAAAA',
	'one_____QAAAAAAAAAAAAA', 'one____ QAGAAAAAAAAAAA', 'one____+QAGAAAAAAAAAAA', 'one____.QAGAAAAAAAAAAA', '01234567-89ab-4cde-8123-456789abcdef']) value,
	pg_temp.answer(pg_temp.call('status', 'task_id', quote_literal(value))) a;
SELECT * FROM pg_temp.answer($$SELECT '01234567-89ab-1cde-8123-456789abcdef'::uuid::tq.slugid$$);

-- Ids that do not exist
INSERT INTO said SELECT 'id', 0, 'unknown', place, fn, arg, NULL, code, message
FROM argument, pg_temp.answer(pg_temp.call(fn, arg, $$'nobody__QAGAAAAAAAAAAA'$$)) a
WHERE good ~ '^''\w{22}''$';

-- Arrays: empty, with NULL, of two dimensions
INSERT INTO said SELECT 'array', v.n, v.name, place, fn, arg, NULL, code, message
FROM argument, (VALUES (1, 'empty', '''{}'''), (2, 'with NULL', '''{NULL}'''), (3, 'two dimensions', '''{{p_______QAGAAAAAAAAAAA},{u_______QAGAAAAAAAAAAA}}''')) AS v (n, name, value), pg_temp.answer(pg_temp.call(fn, arg, v.value)) a
WHERE arg IN ('task_ids', 'task_queue_ids', 'dependencies', 'routes', 'scopes');

-- Intervals and times
SELECT fn, arg, value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM argument, unnest(ARRAY['''-1 second''', '''0''', '''1 millisecond''', '''6 days''', '''1 month''', '''100000 years''', '''-100000 years''', '''2147483647 days''', '''178000000 years''']) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE fn IN ('enqueue', 'defer_task', 'report_failed') AND arg IN ('deadline', 'expires', 'delay', 'after', 'retry_delay') ORDER BY place, value COLLATE "C";
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['''infinity''', '''-infinity''', '''294276-12-31''', '''4713-01-01 BC''']) value, pg_temp.answer(pg_temp.call('quarantine_worker', 'quarantine_until', value)) a;
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['''infinity''', '''-infinity''', '''294276-12-31''', '''4713-01-01 BC''']) value, pg_temp.answer(pg_temp.call('declare_worker', 'expires', value)) a;

-- JSON of the wrong type
INSERT INTO said SELECT 'JSON', 0, value, place, fn, arg, NULL, code, message
FROM argument JOIN pg_proc AS p ON p.oid = proc, unnest(ARRAY['null', 'true', '1', '"x"', '[]', '[1]', '[[]]', '{}', '{"x": 1}']) value, pg_temp.answer(pg_temp.call(fn, arg, quote_literal(value))) a
WHERE proargtypes[array_position(proargnames, arg) - 1] = 'jsonb'::regtype AND pronamespace = 'tq'::regnamespace;

-- What only bodies of functions call answers NULL, or refuses it
SELECT count(*) > 10 AS many, count(*) FILTER (WHERE code = '42883') AS missing
FROM pg_proc AS p, pg_temp.answer(format('SELECT * FROM tq_internal.%I(%s)', proname, (
	SELECT string_agg(format('%sNULL::%s', CASE WHEN n = pronargs AND provariadic <> 0 THEN 'VARIADIC ' END, CASE t WHEN '"any"'::regtype THEN 'text' ELSE format_type(t, NULL) END), ', ')
	FROM unnest(proargtypes) WITH ORDINALITY AS u (t, n)))) a
WHERE pronamespace = 'tq_internal'::regnamespace AND (prosrc ~ '^tq_(sql|body)_' OR prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql'));
DELETE FROM errors WHERE code !~ '^TQ4';

-- How an argument is answered, and by which functions otherwise
SELECT count(*) > 1500 AS many FROM said;
SELECT what, value, outcome, arguments FROM shown_rule ORDER BY what COLLATE "C", n, value COLLATE "C", outcome COLLATE "C";
SELECT what, value, fn, arg, code, message FROM exception ORDER BY what COLLATE "C", n, value COLLATE "C", place;
-- What a text gives that is not invalid
SELECT value, fn, arg, message FROM said WHERE what = 'text' AND value <> 'not ASCII' AND code = 'ok' AND message IS NOT NULL ORDER BY n, place;

-- Invalid words
SELECT arg, value, code, message, detail, hint FROM argument, unnest('{normal,HIGH,all-completed-or-not}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, quote_literal(value))) a
WHERE arg IN ('priority', 'requires') AND fn = 'enqueue' ORDER BY place, value COLLATE "C";

-- Task queue ids and worker ids
SELECT left(value, 50) AS value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM unnest(ARRAY['regress', 'regress/', '/w', 'a/b/c', 'a.b/w', 'regress/W', 'regress/1', 'regress/w-', 'regress/' || repeat('w', 38), 'regress/' || repeat('w', 39),
	repeat('r', 38) || '/w', repeat('r', 39) || '/w', 'A_-9/w', ' regress/w', 'regress/w ']) value,
	pg_temp.answer(pg_temp.call('enqueue', 'task_queue_id', quote_literal(value))) a;
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM unnest(ARRAY[repeat('w', 128), repeat('w', 129), 'A_-9', 'a.b', 'a%2E', 'a/b', 'a b', '_']) value,
	pg_temp.answer(pg_temp.call('claim_work', 'worker_id', quote_literal(value))) a;

SELECT left(value, 50) AS value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['{*}', '{*/*}', '{regress*}', '{regress/w*}', '{regress/**}', '{/*}', '{regress/w,a/b/c}', '{""}', '{regress/w,regress/w,regress/*}',
	(SELECT array_agg('regress/' || n)::text FROM generate_series(1, 100) n), (SELECT array_agg('regress/' || n % 100)::text FROM generate_series(1, 1000) n),
	(SELECT array_agg('regress/' || n)::text FROM generate_series(1, 101) n)]) value,
	pg_temp.answer(pg_temp.call('claim_work/2', 'task_queue_ids', quote_literal(value))) a;
SELECT value, code, message, detail, hint FROM unnest(ARRAY['Strict', 'fair', '']) value, pg_temp.answer(pg_temp.call('claim_work/2', 'mode', quote_literal(value))) a;

-- Bytes that are not valid text
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue(convert_from('\xff', 'UTF8'))$$);
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\u0000"}')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\ud800"}')$$);
SELECT code FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\ud83d\ude00"}')$$);
\set bad `printf "'regress/\377'"`
\set VERBOSITY sqlstate
SELECT tq.enqueue(:bad);
SELECT tq.claim_work('regress/w', :bad, 'w');
SET client_encoding = 'LATIN1';
SELECT tq.enqueue(:bad);
SELECT tq.claim_work('regress/w', 'g', :bad);
RESET client_encoding;
\set VERBOSITY default

-- One bad value for each argument, by its type: errors that do not name the argument, or do not show the value: none.
-- Arguments of other types are refused by the type itself.  What does not exist (TQ404) is named as what it is; credentials
-- are secret; two arguments exclude each other.
CREATE TEMP TABLE bad (type regtype, value text, shown text);
INSERT INTO bad VALUES ('text', $$' bad value*'$$, ' bad value*'), ('int', '-7', '-7'), ('bigint', '-7', '-7'), ('interval', $$'-7 days'$$, '-7 days'), ('interval', $$'-7 days'$$, '-604800'),
	('timestamptz', $$'infinity'$$, 'infinity'), ('jsonb', $$'"bad"'$$, '"bad"'), ('text[]', $$'{NULL}'$$, '1'), ('text[]', $$'{" bad value*"}'$$, ' bad value*'), ('slugid[]', $$'{NULL}'$$, '1'), ('int[]', $$'{-7}'$$, '-7'), ('jsonb[]', $$'{NULL}'$$, '1');
SELECT fn, arg, code, message, detail
FROM argument JOIN pg_proc ON pg_proc.oid = proc AND pronamespace = 'tq'::regnamespace
	JOIN (SELECT type, value, array_agg(shown) AS shown FROM bad GROUP BY 1, 2) b ON type = proargtypes[array_position(proargnames, arg) - 1], pg_temp.answer(pg_temp.call(fn, arg, value)) a, concat_ws(' ', message, detail) said
WHERE code NOT IN ('ok', 'TQ404') AND message !~ 'inside a transaction block' AND arg NOT IN ('credentials', 'retry') AND NOT (said ~ ('\m' || arg || '\M') AND EXISTS (SELECT FROM unnest(shown) s WHERE strpos(said, s) > 0)) ORDER BY place;

SELECT pg_temp.stored() = :'before' AS unchanged;

-- Not all in subtransactions: what state a failed statement leaves in a session
BEGIN;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('gone'), task_group_id => pg_temp.id('gone'), scheduler_id => 'gone');
SELECT tq.enqueue('regress/new', task_id => pg_temp.id('gone2'), dependencies => ARRAY[pg_temp.id('nobody')]);
ROLLBACK;
SELECT pg_temp.stored() = :'before' AS unchanged;
SELECT tq.enqueue('regress/new', task_id => pg_temp.id('gone2'), task_group_id => pg_temp.id('gone'), scheduler_id => 'here');

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
-- Errors that are neither tq's nor the server's own for invalid input: none
SELECT DISTINCT code, message FROM errors WHERE code !~ '^(TQ4|22)';
