-- What CREATE EXTENSION creates: every object has its comment and the settings that it needs.
CREATE EXTENSION tq;
\getenv builddir PG_ABS_BUILDDIR
\set calls :builddir /test/calls.sql
\set ECHO none
SET check_function_bodies = off;
\i :calls
RESET check_function_bodies;
\set ECHO all
\pset format unaligned
\pset footer off

SELECT extname, n.nspname, extrelocatable FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace
WHERE extname = 'tq';

-- Functions of schema tq that are not in src/sql/functions, or only there: none
CREATE TEMP VIEW described AS
	SELECT c.fn, p.oid FROM call AS c
		JOIN pg_proc AS p ON p.pronamespace = c.schema::regnamespace AND p.proname = c.name AND coalesce(p.proargnames[1:p.pronargs], '{}') = c.names;
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'tq'::regnamespace AND oid NOT IN (SELECT oid FROM described);
SELECT fn FROM call WHERE fn NOT IN (SELECT fn FROM described);

-- Inner functions that are missing: none; others may be there
SELECT f FROM string_to_table('background_workers(); clock_now(); count_state(); cron_jobs(); cron_time_zone(); exchange_name(integer);
	expired_claims(); group_number(tq.slugid); guard_rows();
	group_progress(tq.slugid); group_slug(bigint, tq.slugid); is_awaited(xid8, bigint); is_tolerated(jsonb, integer); local_time(timestamptz);
	maintenance_activity(); may_see_statements(oid); priority_name(integer); published_id(); queue_counters(); rate_until(integer);
	reason_created_name(integer); reason_resolved_name(integer); short_age(interval); short_count(numeric); shorten(text, integer); slugid_cmp(tq.slugid,
	tq.slugid); slugid_eq(tq.slugid, tq.slugid); slugid_eq_support(internal); slugid_from_uuid(uuid); slugid_ge(tq.slugid, tq.slugid);
	slugid_gt(tq.slugid, tq.slugid); slugid_hash(tq.slugid); slugid_hash_extended(tq.slugid, bigint); slugid_in(cstring); slugid_le(tq.slugid, tq.slugid);
	slugid_lt(tq.slugid, tq.slugid); slugid_ne(tq.slugid, tq.slugid); slugid_out(tq.slugid); slugid_recv(internal); slugid_send(tq.slugid);
	slugid_to_uuid(tq.slugid); stamp_message(); state_name(integer); track_due(); track_grants(); track_pending(); track_queue_settings(); track_shard();
	waiters()', ';') AS f
WHERE to_regprocedure('tq_internal.' || btrim(f, E' \n\t')) IS NULL;

-- Other objects of the extension
SELECT pg_describe_object(classid, objid, 0) AS object
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'tq')
	-- from 17 on arrays and row types are members too; they belong to another member
	AND NOT (classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
		WHERE t.oid = objid AND (t.typcategory = 'A' OR c.relkind IN ('r', 'p', 'v'))))
	AND classid <> 'pg_proc'::regclass
ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";

CREATE TEMP VIEW member AS
	SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'tq')
	-- from 17 on arrays and row types are members too; they belong to another member
	AND NOT (classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
		WHERE t.oid = objid AND (t.typcategory = 'A' OR c.relkind IN ('r', 'p', 'v'))));

-- Functions without a comment: none
SELECT object FROM member
WHERE classid = 'pg_proc'::regclass AND obj_description(objid, 'pg_proc') IS NULL;

-- Tables, views, sequences that have names of their own, types: none without a comment
SELECT object FROM member
WHERE classid = 'pg_class'::regclass AND obj_description(objid, 'pg_class') IS NULL
	AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = member.objid
		AND d.deptype = 'i')
UNION ALL
SELECT object FROM member
WHERE classid = 'pg_type'::regclass AND obj_description(objid, 'pg_type') IS NULL;
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'tq';

-- Tables and sequences that pg_dump would leave empty: the secret, of which a restored database has its own
SELECT object FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND c.oid = objid
WHERE relkind IN ('r', 'S') AND NOT EXISTS (
	SELECT FROM pg_extension WHERE extname = 'tq' AND c.oid = ANY (extconfig));
-- or would dump in part: messages, of which those that a subscription still needs; ticks are of one server
SELECT relation::regclass, condition FROM pg_extension, unnest(extconfig, extcondition) AS u (relation, condition)
WHERE extname = 'tq' AND condition <> '' ORDER BY relation::regclass::text;

-- Functions with the owner's rights, which they assume for their statements only: none
SELECT object FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
WHERE prosecdef;

-- Functions that write but are declared stable, or in C but not found in the library, would be seen elsewhere;
-- those that are parallel safe: the names and the slugid only
SELECT object FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
WHERE proparallel <> 'u' ORDER BY object COLLATE "C";

-- Tables whose rows are updated or deleted have their own storage parameters
SELECT relname, reloptions IS NOT NULL AS own_parameters FROM pg_class
WHERE relnamespace = 'tq_internal'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C";

-- DROP EXTENSION removes everything, and it can be created again.  That roles stay is
-- said if no other database has tq.
SET client_min_messages = warning;
DROP EXTENSION tq;
SELECT count(*) FROM pg_namespace WHERE nspname = 'tq_internal';
SELECT count(*) FROM pg_class WHERE relnamespace = 'tq'::regnamespace;
SELECT count(*) FROM pg_proc WHERE pronamespace = 'tq'::regnamespace;
SELECT count(*) FROM pg_type WHERE typnamespace = 'tq'::regnamespace;
CREATE EXTENSION tq;
SELECT tq.enqueue('regress/w', task_id => 'AAAAAAAAQAGAAAAAAAAAAA');
DROP EXTENSION tq;
CREATE EXTENSION tq;
-- a session goes on with the new extension
SELECT tq.enqueue('regress/w', task_id => 'AAAAAAAAQAGAAAAAAAAAAA');
SELECT tq.status('AAAAAAAAQAGAAAAAAAAAAA') ->> 'state' AS state;
CREATE EXTENSION tq SCHEMA public;
ALTER EXTENSION tq SET SCHEMA public;
