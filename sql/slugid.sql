-- The type tq.slugid: what it accepts, how it reads, sorts, hashes and casts.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS tq;
RESET client_min_messages;
SET search_path = tq, public;

-- Text form and its UUID.
SELECT 'VXsQuC_aQKefY1jt9qNbJA'::slugid;
SELECT 'VXsQuC_aQKefY1jt9qNbJA'::slugid::uuid;
SELECT '557b10b8-2fda-40a7-9f63-58edf6a35b24'::uuid::slugid;
SELECT '00000000-0000-4000-8000-000000000000'::uuid::slugid AS lowest,
	'ffffffff-ffff-4fff-bfff-ffffffffffff'::uuid::slugid AS highest;
SELECT typname, typlen, typbyval, typalign, typstorage, typsend::text, typreceive::text
	FROM pg_type WHERE oid = 'slugid'::regtype;

-- Refused: each is one character away from a slugid.
CREATE FUNCTION pg_temp.try(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	detail text;
BEGIN
	EXECUTE sql INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(' ', sqlstate, sqlerrm, nullif(detail, ''));
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
	(14, 'a UUID as text', '557b10b8-2fda-40a7-9f63-58edf6a35b24')
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
