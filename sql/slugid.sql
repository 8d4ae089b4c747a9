-- The type tq.slugid: what it accepts, how it reads, sorts, hashes and casts.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS tq;
RESET client_min_messages;
SET search_path = tq, tq_internal, public;

-- Text form and its UUID.
SELECT 'VXsQuC_aQKefY1jt9qNbJA'::slugid;
SELECT 'VXsQuC_aQKefY1jt9qNbJA'::slugid::uuid;
SELECT '557b10b8-2fda-40a7-9f63-58edf6a35b24'::uuid::slugid;
SELECT '557b10b8-2fda-40a7-9f63-58edf6a35b24'::slugid, '557B10B8-2FDA-40A7-9F63-58EDF6A35B24'::slugid;
SELECT '00000000-0000-4000-8000-000000000000'::uuid::slugid AS lowest,
	'ffffffff-ffff-4fff-bfff-ffffffffffff'::uuid::slugid AS highest;
SELECT typname, typlen, typbyval, typalign, typstorage, typsend::text, typreceive::text
	FROM pg_type WHERE oid = 'slugid'::regtype;

-- Refused: each is one character away from a slugid.
CREATE FUNCTION pg_temp.try(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	detail text;
	hint text;
BEGIN
	EXECUTE sql INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' ', sqlstate, sqlerrm, nullif(detail, ''), nullif(hint, ''));
END
$$;
SELECT why, pg_temp.try(format('SELECT %L::tq.slugid', bad)) FROM (VALUES
	(1, 'empty', ''),
	(2, 'too short', 'VXsQuC_aQKefY1jt9qNbJ'),
	(3, 'too long', 'VXsQuC_aQKefY1jt9qNbJAA'),
	(4, 'padding', 'VXsQuC_aQKefY1jt9qNbJA=='),
	(5, 'space before', ' VXsQuC_aQKefY1jt9qNbJA'),
	(6, 'space behind', 'VXsQuC_aQKefY1jt9qNbJA '),
	(7, 'plus', 'VXsQuC+aQKefY1jt9qNbJA'),
	(8, 'slash', 'VXsQuC/aQKefY1jt9qNbJA'),
	(9, 'full stop', 'VXsQuC_aQKefY1jt9qNb.A'),
	(10, 'version 3', 'VXsQuC_aMKefY1jt9qNbJA'),
	(11, 'version 5', 'VXsQuC_aUKefY1jt9qNbJA'),
	(12, 'variant', 'VXsQuC_aQKBfY1jt9qNbJA'),
	(13, 'bits behind the end', 'VXsQuC_aQKefY1jt9qNbJB'),
	(14, 'a UUID of version 7 as text', '557b10b8-2fda-70a7-9f63-58edf6a35b24'),
	(15, 'a UUID that is too short', '557b10b8-2fda-40a7-9f63-58edf6a35b2'),
	(16, 'a UUID without hyphens', '557b10b82fda40a79f6358edf6a35b24'),
	(17, 'a UUID with other hyphens', '557b-10b82fda-40a7-9f63-58edf6a35b24'),
	(18, 'a UUID with a letter too far', '557b10b8-2fda-40a7-9f63-58edf6a35b2g'),
	(19, 'a UUID in braces', '{557b10b8-2fda-40a7-9f63-58edf6a35b24}'),
	(20, 'of 36 characters', repeat('-', 36))
) AS t(n, why, bad) ORDER BY n;
SELECT why, pg_temp.try(format('SELECT %L::uuid::tq.slugid', bad)) FROM (VALUES
	(1, 'nil', '00000000-0000-0000-0000-000000000000'),
	(2, 'version 1', '557b10b8-2fda-10a7-9f63-58edf6a35b24'),
	(3, 'version 7', '557b10b8-2fda-70a7-9f63-58edf6a35b24'),
	(4, 'variant 0', '557b10b8-2fda-40a7-1f63-58edf6a35b24'),
	(5, 'variant 3', '557b10b8-2fda-40a7-cf63-58edf6a35b24')
) AS t(n, why, bad) ORDER BY n;

-- The type accepts exactly what the pattern of the specification matches.
SELECT count(*) AS tried,
	count(*) FILTER (WHERE accepted) AS accepted,
	count(*) FILTER (WHERE accepted <>
		(bad ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$')) AS wrong
FROM (
	SELECT bad, pg_temp.try(format('SELECT %L::tq.slugid', bad)) = bad AS accepted
	FROM (
		SELECT overlay('VXsQuC_aQKefY1jt9qNbJA' PLACING chr(c) FROM place) AS bad
		FROM generate_series(32, 126) AS c, generate_series(1, 22) AS place
	) AS a
) AS b;

-- New ones are valid, and differ.
CREATE TEMP TABLE made AS SELECT tq.slugid() AS id FROM generate_series(1, 1000);
SELECT count(DISTINCT id) AS made,
	bool_and(id::text ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$') AS pattern,
	bool_and(id::text::slugid = id) AS text_and_back,
	bool_and(id::uuid::slugid = id) AS uuid_and_back
FROM made;

-- Order is that of the UUIDs, by bytes.
SELECT array_agg(id ORDER BY id) = array_agg(id ORDER BY id::uuid) AS same_order FROM made;
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, slugid_cmp(a, b) < 0 AS cmp
FROM (VALUES
	('557b10b8-2fda-40a7-9f63-58edf6a35b24'::uuid::slugid, '557b10b8-2fda-40a7-9f63-58edf6a35b25'::uuid::slugid),
	('557b10b8-2fda-40a7-9f63-58edf6a35b25'::uuid::slugid, '557b10b8-2fda-40a7-9f63-58edf6a35b25'::uuid::slugid),
	('f57b10b8-2fda-40a7-9f63-58edf6a35b25'::uuid::slugid, '557b10b8-2fda-40a7-9f63-58edf6a35b25'::uuid::slugid)
) AS t(a, b);

-- Indexes, hash and merge joins, arrays.
CREATE INDEX made_btree ON made USING btree (id);
CREATE INDEX made_hash ON made USING hash (id);
ANALYZE made;
SET enable_seqscan = off;
SELECT id AS one FROM made ORDER BY random() LIMIT 1 \gset
SELECT count(*) FROM made WHERE id = :'one';
DROP INDEX made_btree;
SELECT count(*) FROM made WHERE id = :'one';
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM made a JOIN (SELECT id FROM made OFFSET 0) b ON a.id = b.id;
RESET enable_mergejoin;
RESET enable_nestloop;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM made a JOIN (SELECT id FROM made OFFSET 0) b ON a.id = b.id;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
SELECT count(*) FROM made WHERE id = ANY (ARRAY(SELECT id FROM made));
SELECT bool_and(slugid_hash_extended(id, 0) & 4294967295 = slugid_hash(id) & 4294967295) AS seed_zero_is_plain,
	bool_and(slugid_hash_extended(id, 0) <> slugid_hash_extended(id, 1)) AS seed_counts
FROM made;

-- Binary form: that of the UUID, checked on input.
\copy made TO 'results/slugid.data' (FORMAT binary)
CREATE TEMP TABLE copied (id slugid);
\copy copied FROM 'results/slugid.data' (FORMAT binary)
SELECT count(*) FROM copied JOIN made USING (id);
\set VERBOSITY sqlstate
\copy (SELECT '557b10b8-2fda-10a7-9f63-58edf6a35b24'::uuid) TO 'results/slugid.data' (FORMAT binary)
\copy copied FROM 'results/slugid.data' (FORMAT binary)
\copy (SELECT 1) TO 'results/slugid.data' (FORMAT binary)
\copy copied FROM 'results/slugid.data' (FORMAT binary)

\set VERBOSITY default

-- NULL stays NULL.
SELECT NULL::slugid IS NULL AS text, NULL::uuid::slugid IS NULL AS uuid, NULL::slugid = slugid() IS NULL AS equal;

-- In a bucket: 1024 of them, whatever the other bits are.
SELECT tq_internal.bucket('00000000-0000-4000-8000-000000000000'::uuid), tq_internal.bucket('00000000-0000-4000-8000-0000000003ff'::uuid) AS all_ones,
	tq_internal.bucket('ffffffff-ffff-4fff-bfff-fffffffffc00'::uuid) AS others, tq_internal.bucket('VXsQuC_aQKefY1jt9qNbJA') AS of_text, tq_internal.bucket(NULL), tq_internal.slugid_in_bucket(NULL);
SELECT count(*), count(DISTINCT id), count(DISTINCT bucket), bool_and(tq_internal.bucket(id) = bucket) AS there,
	bool_and(id::uuid::text ~ '^.{14}4.{4}[89ab]') AS of_version_4, bool_and(id::text::slugid = id AND id::uuid::slugid = id) AS read_again
FROM (SELECT tq_internal.slugid_in_bucket(n % 1024) AS id, n % 1024 AS bucket FROM generate_series(0, 20479) AS n) AS x;
SELECT bucket, pg_temp.try(format('SELECT tq_internal.slugid_in_bucket(%s)', bucket)) FROM unnest(ARRAY[-2147483648, -1, 1024, 2147483647]) AS bucket;
SELECT proname, provolatile, proisstrict, proparallel FROM pg_proc WHERE oid IN ('tq_internal.slugid_in_bucket(int)'::regprocedure, 'tq_internal.bucket(tq.slugid)'::regprocedure) ORDER BY 1;

-- Stable ones, from names: those of sha256() of a constant and the name.
SELECT tq.stable_slugid('order 4711') AS id, tq.stable_slugid('order 4711') = tq.stable_slugid('order 4711') AS same,
	tq.stable_slugid('order 4711') <> tq.stable_slugid('order 4712') AS other, tq.stable_slugid('')::uuid AS empty, tq.stable_slugid(NULL);
SELECT count(*), count(DISTINCT id), bool_and(id = overlay(overlay(substr(hash, 1, 32) PLACING '4' FROM 13)
	PLACING to_hex(b'1000'::int | (('x' || substr(hash, 17, 1))::bit(4) & b'0011')::int) FROM 17)::uuid) AS as_documented
FROM (SELECT tq.stable_slugid(name) AS id, encode(sha256('tq.stable_slugid' || convert_to(name, 'UTF8')), 'hex') AS hash
	FROM (SELECT repeat('é' || n, n) FROM generate_series(0, 200) AS n) AS n (name)) AS x;
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE oid = 'tq.stable_slugid(text)'::regprocedure;

-- With the default search_path, for a role of its own, all operators are found
-- and all that drivers send is taken: untyped text, text, varchar, uuid, arrays.
RESET search_path;
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_tq_plain;
RESET client_min_messages;
CREATE ROLE regress_tq_plain IN ROLE tq_admin;
SET ROLE regress_tq_plain;
SHOW search_path;
SELECT tq.stable_slugid('a') AS a, tq.stable_slugid('b') AS b, tq.stable_slugid('a')::uuid AS a_uuid, tq.stable_slugid('b')::uuid AS b_uuid \gset
SELECT tq.enqueue('regress/slug', task_id => :'a') AS a, tq.enqueue('regress/slug', task_id => :'b', dependencies => ARRAY[:'a']) AS b;
SELECT tq.enqueue('regress/slug', task_id => tq.stable_slugid('third')) AS third;

CREATE TEMP TABLE given (type text, value text);
INSERT INTO given VALUES ('unknown', '%L'), ('text', '%L::text'), ('varchar', '%L::varchar'), ('varchar(40)', '%L::varchar(40)'), ('slugid', '%L::tq.slugid');
CREATE FUNCTION pg_temp.try_all(statement text) RETURNS TABLE (form text, type text, answer text) LANGUAGE sql AS $$
	SELECT f, g.type, pg_temp.try(replace(replace(statement, '$1', format(g.value, id)), '$2', format(g.value, other)))
	FROM given AS g, (VALUES ('slug', tq.stable_slugid('a')::text, tq.stable_slugid('b')::text),
		('uuid', tq.stable_slugid('a')::uuid::text, tq.stable_slugid('b')::uuid::text)) AS i (f, id, other)
	UNION ALL SELECT 'uuid', 'uuid', pg_temp.try(replace(replace(statement, '$1', format('%L::uuid', tq.stable_slugid('a')::uuid)),
		'$2', format('%L::uuid', tq.stable_slugid('b')::uuid)))
$$;
CREATE TEMP TABLE call (n int, call text);
INSERT INTO call VALUES
	(1, 'SELECT task_id FROM tq.task_details WHERE task_id = $1'),
	(2, 'SELECT task_id FROM tq.task_details WHERE $1 = task_id'),
	(3, 'SELECT string_agg(task_id::text, '' '' ORDER BY task_id) FROM tq.task_details WHERE task_id <> $1 AND task_id IN ($1, $2)'),
	(4, 'SELECT count(*) FROM tq.task_details WHERE task_id >= $1 AND task_id <= $1 AND NOT task_id < $1 AND NOT task_id > $1'),
	(5, 'SELECT count(*) FROM tq.task_details WHERE task_id = ANY (ARRAY[$1, $2])'),
	(6, 'SELECT count(*) FROM tq.task_details WHERE task_id <> ALL (ARRAY[$1, $2]) AND task_queue_id = ''regress/slug'''),
	(7, 'SELECT count(*) FROM tq.task_details JOIN (VALUES ($1), ($2)) AS v (task_id) USING (task_id)'),
	(8, 'SELECT count(*) FROM tq.task_details NATURAL JOIN (SELECT $1 AS task_id) AS v'),
	(9, 'SELECT tq.status($1) ->> ''state'''),
	(10, 'SELECT count(*) FROM tq.statuses(ARRAY[$1, $2])'),
	(11, 'SELECT task_id FROM tq.list_dependent_tasks($1, after => $1)'),
	(12, 'SELECT task_id FROM tq.list_dependent_tasks(task_id => $1)'),
	(13, 'SELECT tq.enqueue(''regress/slug'', task_id => $1, dependencies => ARRAY[$2])'),
	(14, 'SELECT count(*) FROM (SELECT $1::tq.slugid AS id UNION SELECT task_id FROM tq.task_details WHERE task_queue_id = ''regress/slug'') AS u'),
	(15, 'SELECT coalesce(task_id, $1) = $1 FROM tq.task_details WHERE task_id = $1'),
	(16, 'SELECT NULLIF(task_id, $1) IS NULL FROM tq.task_details WHERE task_id = $1'),
	(17, 'SELECT CASE task_id WHEN $1 THEN ''first'' WHEN $2 THEN ''second'' END FROM tq.task_details WHERE task_id = $1'),
	(18, 'SELECT task_id IS DISTINCT FROM $1 FROM tq.task_details WHERE task_id = $1'),
	(19, 'SELECT (task_id, 1) = ($1, 1) FROM tq.task_details WHERE task_id = $1'),
	(20, 'SELECT task_id BETWEEN $1 AND $1 FROM tq.task_details WHERE task_id = $1');
SELECT n, answer, string_agg(DISTINCT type, ', ' ORDER BY type) AS types, count(*)
FROM call, pg_temp.try_all(call.call) GROUP BY n, answer ORDER BY n, count(*) DESC;

-- As parameters: of no type, as most drivers send them, and of these
PREPARE untyped AS SELECT task_id FROM tq.task_details WHERE task_id = $1;
EXECUTE untyped (:'a');
EXECUTE untyped (:'a_uuid');
PREPARE untyped_any AS SELECT count(*) FROM tq.task_details WHERE task_id = ANY ($1);
EXECUTE untyped_any (ARRAY[:'a', :'b_uuid']);
PREPARE untyped_call AS SELECT tq.status($1) ->> 'state', (SELECT count(*) FROM tq.statuses($2));
EXECUTE untyped_call (:'a', ARRAY[:'a', :'b']);
PREPARE text_one (text, text[]) AS SELECT tq.status($1) ->> 'state' AS state, (SELECT count(*) FROM tq.statuses($2)) AS statuses,
	(SELECT count(*) FROM tq.task_details WHERE task_id = $1) AS one, (SELECT count(*) FROM tq.task_details WHERE task_id = ANY ($2)) AS both;
EXECUTE text_one (:'a', ARRAY[:'a', :'b']);
EXECUTE text_one (:'a_uuid', ARRAY[:'a_uuid', :'b_uuid']);
PREPARE varchar_one (varchar, varchar[]) AS SELECT tq.status($1) ->> 'state' AS state, (SELECT count(*) FROM tq.statuses($2)) AS statuses,
	(SELECT count(*) FROM tq.task_details WHERE task_id = $1) AS one, (SELECT count(*) FROM tq.task_details WHERE task_id = ANY ($2)) AS both;
EXECUTE varchar_one (:'a', ARRAY[:'a', :'b']);
PREPARE uuid_one (uuid, uuid[]) AS SELECT tq.status($1) ->> 'state' AS state, (SELECT count(*) FROM tq.statuses($2)) AS statuses,
	(SELECT count(*) FROM tq.task_details WHERE task_id = $1) AS one, (SELECT count(*) FROM tq.task_details WHERE task_id = ANY ($2)) AS both;
EXECUTE uuid_one (:'a_uuid', ARRAY[:'a_uuid', :'b_uuid']::uuid[]);

-- Columns of these types are compared, and filled, too.
CREATE TEMP TABLE mine (t text, v varchar, u uuid, id tq.slugid);
INSERT INTO mine SELECT :'a', :'a', x, x FROM (SELECT tq.enqueue('regress/slug', task_id => tq.stable_slugid('mine'))) AS e (x);
INSERT INTO mine VALUES (:'a', :'a', :'a_uuid', :'a'::text);
SELECT t = id AS text, v = id AS varchar, u = id AS uuid FROM mine ORDER BY 1;
SELECT count(*) FROM mine JOIN tq.task_details ON task_id = u;
SELECT count(*) FROM mine JOIN tq.task_details ON task_id = t JOIN tq.run_overview r USING (task_id);

-- max, min, length and LIKE
SELECT max(id) = 'zzzzzzzzSzyzzzzzzzzzzg' AS max, min(id) = 'AAAAAAAASAyAAAAAAAAAAA' AS min, min(id) FILTER (WHERE id IS NULL) AS none
FROM unnest('{zzzzzzzzSzyzzzzzzzzzzg,AAAAAAAASAyAAAAAAAAAAA,VXsQuC_aQKefY1jt9qNbJA,NULL}'::tq.slugid[]) AS id;
SELECT length(id), id LIKE 'VXs%' AS prefix, id LIKE '%x%' AS other, id NOT LIKE 'VXs%' AS not_prefix, id LIKE 'VXsQuC#_a%' ESCAPE '#' AS escaped, id LIKE NULL AS null, id LIKE 'VXs%'::varchar AS varchar
FROM (VALUES ('VXsQuC_aQKefY1jt9qNbJA'::tq.slugid)) AS v (id);
SELECT count(*) AS tasks, max(task_id) >= min(task_id) AS ordered FROM tq.task_details WHERE task_id LIKE left(:'a', 4) || '%';

-- Compared with a uuid of another version: the error says how
SELECT pg_temp.try('SELECT tq.slugid() = ''557b10b8-2fda-70a7-9f63-58edf6a35b24''::uuid') AS uuid,
	pg_temp.try('SELECT ''VXsQuC_aQKefY1jt9qNbJA''::tq.slugid::uuid = ''557b10b8-2fda-70a7-9f63-58edf6a35b24''::uuid') AS cast;

-- Indexes serve all of them.
CREATE TEMP TABLE indexed AS SELECT tq.stable_slugid(n::text) AS id FROM generate_series(1, 2000) AS n;
CREATE UNIQUE INDEX ON indexed (id);
ANALYZE indexed;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT FROM indexed WHERE id = 'VXsQuC_aQKefY1jt9qNbJA';
EXPLAIN (COSTS OFF) SELECT FROM indexed WHERE id = 'VXsQuC_aQKefY1jt9qNbJA'::text;
EXPLAIN (COSTS OFF) SELECT FROM indexed WHERE id = '557b10b8-2fda-40a7-9f63-58edf6a35b24'::uuid;
EXPLAIN (COSTS OFF) SELECT FROM indexed WHERE id = ANY (ARRAY['VXsQuC_aQKefY1jt9qNbJA']);
-- Versions of PostgreSQL show what is around these scans in their own ways.
CREATE FUNCTION pg_temp.scans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Scan' THEN RETURN NEXT ltrim(line, ' ->'); END IF;
	END LOOP;
END $$;
SELECT * FROM pg_temp.scans('SELECT max(id), min(id) FROM indexed');
SET plan_cache_mode = force_generic_plan;
PREPARE by_text (text) AS SELECT FROM indexed WHERE id = $1;
EXPLAIN (COSTS OFF) EXECUTE by_text ('VXsQuC_aQKefY1jt9qNbJA');
RESET plan_cache_mode;
RESET enable_bitmapscan;

-- What the casts and operators must leave as it is: strings among themselves
CREATE TEMP TABLE strings (c char(30), n name, v varchar, t text, u uuid);
INSERT INTO strings VALUES ('a', 'a', 'a', 'a', :'a_uuid');
SELECT c = t, c = v, c = n, n = t, n = v, v = t, v = 'a', t = 'a', c = 'a', n = 'a', v = v, t < 'b', v IN ('a', t), t = ANY (ARRAY[v]),
	u = :'a_uuid', u::text = :'a_uuid', v || t, t || u, v || 1, v LIKE 'a%', coalesce(v, t), greatest(v, 'b'), length(v), upper(t), md5(v)
FROM strings;
SELECT pg_typeof(coalesce(t, v)), pg_typeof(coalesce(v, 'x')), pg_typeof(CASE WHEN true THEN v ELSE t END), pg_typeof(ARRAY[v, t]), pg_typeof(v || 'x') FROM strings;
SELECT task_id || '.log' AS concatenated, task_id::text LIKE '%' AS matched FROM tq.task_details WHERE task_id = :'a';
SELECT pg_temp.try('SELECT coalesce(tq.slugid(), ''x''::text)') AS coalesce,
	split_part(pg_temp.try('SELECT tq.slugid() = ''x''::char(22)'), ' No ', 1) AS bpchar,
	split_part(pg_temp.try('SELECT tq.slugid() = 1'), ' No ', 1) AS integer;

-- A uuid and a string are compared as slugids now, where no operator was found
-- before: a price of the two casts.
SELECT pg_temp.try(format('SELECT %L::uuid = %L::text', :'a_uuid', :'a_uuid')) AS same,
	pg_temp.try('SELECT ''557b10b8-2fda-70a7-9f63-58edf6a35b24''::uuid = ''x''::text') AS not_of_version_4;

-- No function and no argument is ambiguous: each is called with untyped literals,
-- and again with its ids as text, varchar and uuid.
CREATE FUNCTION pg_temp.literal(type regtype, as_type text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE
		WHEN type = 'tq.slugid'::regtype THEN quote_literal(tq.stable_slugid('x')::uuid) || as_type
		WHEN type = 'tq.slugid[]'::regtype THEN format('ARRAY[%s]', quote_literal(tq.stable_slugid('x')::uuid) || as_type)
		WHEN type::text LIKE '%[]' THEN '''{}'''
		WHEN type = 'jsonb'::regtype THEN '''{}'''
		WHEN type = 'text'::regtype THEN '''a/b'''
		WHEN type = 'interval'::regtype THEN '''1 h'''
		WHEN type = 'timestamptz'::regtype THEN '''now'''
		WHEN type = 'boolean'::regtype THEN 'true'	-- tq.slugid('t') would be a cast to the type
		WHEN type = 'int4multirange'::regtype THEN '''{}'''
		ELSE '''0''' END $$;
CREATE FUNCTION pg_temp.bad_calls(as_type text) RETURNS TABLE (function regprocedure, call text, error text) LANGUAGE sql AS $$
	WITH f AS (
		SELECT p.oid::regprocedure AS function, p.proname, n, a FROM pg_proc p,
			generate_series(p.pronargs::int - p.pronargdefaults, p.pronargs::int) AS n,
			LATERAL (SELECT coalesce(string_agg(pg_temp.literal(t, as_type), ', ' ORDER BY i), '')
				FROM unnest(p.proargtypes::regtype[]) WITH ORDINALITY AS x (t, i) WHERE i <= n) AS a (a)
		WHERE p.pronamespace = 'tq'::regnamespace AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
			AND has_function_privilege(p.oid, 'EXECUTE') AND NOT 'internal'::regtype = ANY (p.proargtypes::regtype[])
			AND p.proname !~ '^slugid_')
	SELECT f.function, c.c, e.e FROM f, LATERAL (SELECT format('EXPLAIN SELECT tq.%I(%s)', proname, a)) AS c (c),
		LATERAL (SELECT pg_temp.try(c.c)) AS e (e)
	WHERE e.e !~ '^(Result|ProjectSet|TQ)' $$;
SELECT * FROM pg_temp.bad_calls('');
SELECT * FROM pg_temp.bad_calls('::text');
SELECT * FROM pg_temp.bad_calls('::varchar');
SELECT * FROM pg_temp.bad_calls('::uuid');
RESET ROLE;

-- A role that may not call the functions can compare the ids of its own tables.
SELECT tq.cancel_task(task_id) ->> 'state' AS state FROM tq.task_details WHERE task_queue_id = 'regress/slug' ORDER BY task_id;
CREATE ROLE regress_tq_other;
GRANT SELECT ON mine, indexed TO regress_tq_other;
SET ROLE regress_tq_other;
SELECT count(*) FROM mine WHERE id = :'a' OR id = :'a_uuid'::uuid OR id < id;
SELECT max(id) >= min(id) AS ordered, min(length(id)) AS length, count(*) FILTER (WHERE id LIKE left(:'a', 5) || '%') AS matched, count(*) FILTER (WHERE id NOT LIKE '_%') AS others FROM mine;
SELECT count(*) FROM (SELECT DISTINCT id FROM indexed GROUP BY id ORDER BY id) AS i JOIN indexed USING (id);
RESET ROLE;
DROP OWNED BY regress_tq_plain, regress_tq_other;
DROP ROLE regress_tq_plain, regress_tq_other;

-- The operators are members of the extension, in pg_catalog; the casts.
SELECT count(*), min(oprnamespace::regnamespace::text), bool_and(d.deptype = 'e') AS members, bool_and(o.oprcom <> 0 AND o.oprnegate <> 0 OR oprright = 'text'::regtype) AS complete
FROM pg_operator o LEFT JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.refclassid = 'pg_extension'::regclass
WHERE oprleft = 'tq.slugid'::regtype;
SELECT castsource::regtype, casttarget::regtype, castcontext, castmethod FROM pg_cast
WHERE 'tq.slugid'::regtype IN (castsource, casttarget) ORDER BY castsource::regtype::text COLLATE "C";
SELECT opcname, opcdefault, amname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE opcintype = 'tq.slugid'::regtype ORDER BY 1;
