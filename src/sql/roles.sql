\echo Use "CREATE EXTENSION tq" to load this file. \quit

-- ---------------------------------------------------------------------------
-- Schema and roles
-- ---------------------------------------------------------------------------

DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'tq_shard') THEN
		RAISE EXCEPTION 'extension "tq_shard" is installed in this database'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = 'A database is a router, with tq_shard, or a shard, with tq.',
				HINT = 'Create another database for the shard.';
	END IF;
END
$$;

-- The owner of a schema may drop everything in it, so it must be trusted.  What
-- another role has left in it could be taken for the server's own by the views.
DO $$
DECLARE
	owner pg_catalog.name;
	maker pg_catalog.text;
	left_object pg_catalog.text;
BEGIN
	SELECT r.rolname INTO owner
		FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
		WHERE n.nspname = 'tq' AND NOT r.rolsuper AND r.rolname <> current_user;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "tq" is owned by another role'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = pg_catalog.format('Its owner is "%s", which is not a superuser and could drop the extension.', owner),
				HINT = 'Drop or rename that schema, or give it to a superuser, and run CREATE EXTENSION tq again.';
	END IF;
	SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END INTO maker
		FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a
			LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
		WHERE n.nspname = 'tq' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND r.rolsuper IS NOT TRUE
		ORDER BY a.grantee LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'another role may create objects in schema "tq"'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = pg_catalog.format('The schema exists, and %s has the right CREATE on it.', maker),
				HINT = pg_catalog.format('Run REVOKE CREATE ON SCHEMA tq FROM %s, and CREATE EXTENSION tq again.', maker);
	END IF;
	SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) INTO left_object
		FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_namespace n ON d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid = n.oid
		WHERE n.nspname = 'tq' AND d.classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass
		ORDER BY d.classid, d.objid LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "tq" is not empty'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = pg_catalog.format('It has %s.', left_object),
				HINT = 'Drop or rename that schema, and run CREATE EXTENSION tq again.';
	END IF;
END
$$;

-- Roles of this server that a user grants to roles of its own.  A comment marks those
-- that tq has made: their members are meant, in each database.  A role that may make
-- roles can write the comment, too, but since PostgreSQL 16 not without the right to
-- grant what it has made, of which there is a warning all the same.
DO $$
DECLARE
	mark CONSTANT pg_catalog.text := 'role of the extension tq';
	made pg_catalog.name;
	member pg_catalog.name;
	heirs pg_catalog.text;
BEGIN
	FOREACH made IN ARRAY ARRAY['tq_admin', 'tq_producer', 'tq_worker', 'tq_reader', 'tq_monitor'] LOOP
		BEGIN
			IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = made) THEN
				EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', made);
				EXECUTE pg_catalog.format('COMMENT ON ROLE %I IS %L', made, mark);
				CONTINUE;
			END IF;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
			CONTINUE;		-- created concurrently by CREATE EXTENSION in another database
		END;
		IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = made AND rolcanlogin) THEN
			RAISE WARNING 'role "%" exists and can log in', made
				USING DETAIL = 'It has rights to tq in every database of this server.',
					HINT = pg_catalog.format('If that is not intended: ALTER ROLE %I NOLOGIN.', made);
		END IF;
		SELECT m.rolname INTO member
			FROM pg_catalog.pg_auth_members a
				JOIN pg_catalog.pg_roles g ON g.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
			WHERE g.rolname = made AND a.admin_option AND NOT m.rolsuper
			ORDER BY m.rolname LIMIT 1;
		IF FOUND THEN
			RAISE WARNING 'role "%" exists and can be granted by role "%"', made, member
				USING DETAIL = 'Its members have rights to tq in every database of this server.',
					HINT = pg_catalog.format('If that is not intended: REVOKE ADMIN OPTION FOR %I FROM %I.', made, member);
		END IF;
		SELECT pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(m.rolname), ', ') INTO heirs
			FROM pg_catalog.pg_auth_members a
				JOIN pg_catalog.pg_roles g ON g.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
			WHERE g.rolname = made AND NOT a.admin_option AND NOT m.rolsuper
				AND pg_catalog.shobj_description(g.oid, 'pg_authid') IS DISTINCT FROM mark;
		IF heirs IS NOT NULL THEN
			RAISE WARNING 'role "%" exists and has members', made
				USING DETAIL = pg_catalog.format('They have rights to tq in this database, too: %s.', heirs),
					HINT = pg_catalog.format('If that is not intended: REVOKE %I FROM the role.', made);
		END IF;
	END LOOP;
END
$$;

-- What users see is in schema tq; tables and inner functions are in this one.
CREATE SCHEMA tq_internal;
COMMENT ON SCHEMA tq_internal IS 'tables of the extension tq, and functions that its views, triggers and types call';
