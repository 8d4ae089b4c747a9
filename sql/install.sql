-- What CREATE EXTENSION creates: every object has its comment and the settings that it needs.
CREATE EXTENSION tq;

SELECT extname, n.nspname, extrelocatable FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace
WHERE extname = 'tq';

-- Objects of the extension
SELECT pg_describe_object(classid, objid, 0) AS object
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'tq')
	-- from 17 on arrays and row types are members too; they belong to another member
	AND NOT (classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
		WHERE t.oid = objid AND (t.typcategory = 'A' OR c.relkind IN ('r', 'p', 'v'))))
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

-- DROP EXTENSION removes everything, and it can be created again.
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
