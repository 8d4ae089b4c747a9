-- ---------------------------------------------------------------------------
-- Leaving: what DROP EXTENSION tq does not drop
--
-- Each kind of trace is a SELECT below, with the statement that removes it.  Only jobs
-- of pg_cron, which fail again and again without tq, are removed here.
-- ---------------------------------------------------------------------------

-- Jobs of other users that call tq are theirs to change.
CREATE FUNCTION tq_internal.leave_pg_cron() RETURNS TABLE (moment text, object text, statement text) LANGUAGE plpgsql AS $$
DECLARE
	calls_tq CONSTANT text := '\mtq(_internal)?[.]';
	is_own CONSTANT text := '^\s*SELECT\s+(\*\s+FROM\s+)?(tq_internal[.]fire_cron|tq[.]upkeep)\((''([^'']|'''')*''|[^()'';])*\)\s*;?\s*$';
BEGIN
	IF tq_internal.pg_cron_is_here() THEN
		-- not a subquery: the planner would call unschedule() before it looks at the database
		RETURN QUERY WITH own AS MATERIALIZED (
				SELECT j.jobid, j.jobname FROM cron.job j WHERE j.database = current_database() AND j.command ~* is_own ORDER BY j.jobid)
			SELECT 'done', format('job %s of pg_cron, "%s"', j.jobid, j.jobname), NULL::text FROM own j WHERE cron.unschedule(j.jobid);
		RETURN QUERY SELECT 'before', format('job of pg_cron, %s: %s', coalesce('"' || j.jobname::text || '"', 'without a name'), tq_internal.shorten(j.command, 60)),
				format('SELECT cron.unschedule(%s)', j.jobid)
			FROM cron.job j WHERE j.database = current_database() AND j.command ~* calls_tq ORDER BY j.jobid;
	ELSIF tq_internal.pg_cron_is_elsewhere() THEN
		RETURN QUERY SELECT 'elsewhere', format('jobs of pg_cron, in database "%s"', current_setting('cron.database_name')),
			format('SELECT cron.unschedule(jobid) FROM cron.job WHERE database = %L AND command ~* %L', current_database(), calls_tq);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.leave_pg_cron() IS 'unschedules the jobs of pg_cron that call only tq, and lists the others that call it';

-- What depends on the extension's objects without being one of them, or part of one.  An
-- index follows its column.
CREATE VIEW tq_internal.dependent_object AS
	SELECT DISTINCT array_position(ARRAY['view', 'materialized view', 'trigger', 'default value', 'table constraint', 'table column'], o.type) AS rank, o.type, o.identity,
		CASE WHEN f.oid IS NOT NULL THEN format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', f.adrelid::regclass, (SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid = f.adrelid AND a.attnum = f.adnum))
			WHEN n.oid IS NOT NULL AND n.conrelid <> 0 THEN format('ALTER TABLE %s DROP CONSTRAINT %I', n.conrelid::regclass, n.conname)
			WHEN o.type = 'table column' THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE text', d.objid::regclass, (SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid = d.objid AND a.attnum = d.objsubid))
			WHEN o.type IN ('view', 'materialized view', 'function', 'procedure', 'aggregate', 'trigger', 'domain') THEN format('DROP %s %s', upper(o.type), o.identity) END AS statement
	FROM (SELECT CASE WHEN r.oid IS NOT NULL THEN 'pg_class'::regclass ELSE d.classid END AS classid, COALESCE(r.ev_class, d.objid) AS objid,
			CASE WHEN r.oid IS NOT NULL OR v.oid IS NOT NULL THEN 0 ELSE d.objsubid END AS objsubid
		FROM (SELECT m.classid, m.objid FROM pg_catalog.pg_depend m JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid AND e.extname = 'tq'
				WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
				UNION SELECT 'pg_type'::regclass, t.oid FROM pg_catalog.pg_type t WHERE t.typnamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace)) AS m
			JOIN pg_catalog.pg_depend d ON d.refclassid = m.classid AND d.refobjid = m.objid AND d.deptype = 'n'
			LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
			LEFT JOIN pg_catalog.pg_class v ON d.classid = 'pg_class'::regclass AND v.oid = d.objid AND v.relkind IN ('v', 'm')) AS d
		LEFT JOIN pg_catalog.pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
		LEFT JOIN pg_catalog.pg_constraint n ON d.classid = 'pg_constraint'::regclass AND n.oid = d.objid
		CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) AS o
	WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend x WHERE x.classid = d.classid AND x.objid = d.objid AND x.refclassid = 'pg_extension'::regclass AND x.deptype = 'e')
		AND o.identity !~ '(^|^for | on )tq(_internal)?[.]' AND o.type !~ 'of access method$|^index|^toast|^rule$';
COMMENT ON VIEW tq_internal.dependent_object IS 'objects of users that need the extension, each with the statement that ends that, if one statement does';

-- Settings tq.x that stay: of databases and roles, and of the server's files.
CREATE VIEW tq_internal.left_setting AS
	SELECT format('setting %s of %s', n.name, concat_ws(' in ', 'role ' || r.rolname, 'database ' || d.datname)) AS object,
		CASE WHEN r.rolname IS NULL THEN format('ALTER DATABASE %I RESET %s', d.datname, n.name)
			ELSE format('ALTER ROLE %I%s RESET %s', r.rolname, ' IN DATABASE ' || quote_ident(d.datname), n.name) END AS statement
	FROM pg_catalog.pg_db_role_setting s
		LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
		LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
		CROSS JOIN LATERAL (SELECT split_part(c, '=', 1) AS name FROM unnest(s.setconfig) AS c WHERE c LIKE 'tq.%') AS n
	WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
	UNION ALL
	SELECT format('setting %s of the server', f.name), CASE WHEN f.sourcefile LIKE '%/postgresql.auto.conf' THEN format('ALTER SYSTEM RESET %s', f.name) END
	FROM (SELECT DISTINCT name, sourcefile FROM pg_catalog.pg_file_settings WHERE name LIKE 'tq.%') AS f;
COMMENT ON VIEW tq_internal.left_setting IS 'settings of tq that stay when the extension is dropped, each with the statement that removes it; NULL: a line of a file';

-- A database that has tq has rights of some of these roles, and needs all.
CREATE VIEW tq_internal.left_role AS
	SELECT format('role %s%s', r.rolname, ', which is needed in database ' || u.others) AS object,
		CASE WHEN u.others IS NULL THEN format('DROP ROLE %I', r.rolname) END AS statement
	FROM pg_catalog.pg_roles r
		CROSS JOIN LATERAL (SELECT string_agg(DISTINCT quote_ident(d.datname), ', ') AS others
			FROM pg_catalog.pg_shdepend s JOIN pg_catalog.pg_database d ON d.oid = s.dbid
			WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid IN (SELECT a.oid FROM pg_catalog.pg_roles a WHERE a.rolname IN ('tq_admin', 'tq_producer', 'tq_worker', 'tq_reader', 'tq_monitor')) AND d.datname <> current_database()) AS u
	WHERE r.rolname IN ('tq_admin', 'tq_producer', 'tq_worker', 'tq_reader', 'tq_monitor');
COMMENT ON VIEW tq_internal.left_role IS 'roles that CREATE EXTENSION has made, each with the statement that removes it; NULL: other databases use it';

CREATE FUNCTION tq.prepare_drop() RETURNS TABLE (moment text, object text, statement text)
	LANGUAGE tq_operate AS $$
DECLARE
	libraries text := (SELECT string_agg(l, ',' ORDER BY n) FROM unnest(string_to_array(current_setting('shared_preload_libraries'), ',')) WITH ORDINALITY AS u (l, n)
		WHERE btrim(l, E' "''') !~ '^(.*/)?tq([.]so)?$');
BEGIN
	PERFORM tq_internal.require('*');
	RETURN QUERY SELECT * FROM tq_internal.leave_pg_cron();
	RETURN QUERY SELECT 'elsewhere', 'this database is a shard: it is known to a router', NULL::text FROM tq_internal.shard s WHERE s.buckets IS NOT NULL;
	RETURN QUERY SELECT 'before', format('publication %s of tables of tq', p.pubname), format('DROP PUBLICATION %I', p.pubname)
		FROM pg_publication p JOIN pg_publication_tables t ON t.pubname = p.pubname
		WHERE NOT p.puballtables GROUP BY p.pubname HAVING bool_and(t.schemaname IN ('tq', 'tq_internal')) ORDER BY p.pubname;
	RETURN QUERY SELECT 'before', format('replication slot %s of this database', s.slot_name), NULL::text
		FROM pg_replication_slots s WHERE s.database = current_database() AND NOT s.temporary ORDER BY s.slot_name;
	RETURN QUERY SELECT 'before', format('%s %s needs tq', o.type, o.identity), o.statement FROM tq_internal.dependent_object o ORDER BY o.rank, o.identity;
	RETURN QUERY SELECT 'drop', 'extension tq, with all tasks', 'DROP EXTENSION tq';
	RETURN QUERY SELECT 'after', 'schema tq', 'DROP SCHEMA tq';
	RETURN QUERY SELECT 'after', s.object, s.statement FROM tq_internal.left_setting s ORDER BY s.object, s.statement;
	RETURN QUERY SELECT 'after', r.object, r.statement FROM tq_internal.left_role r ORDER BY r.object;
	RETURN QUERY SELECT 'after', format('tq in shared_preload_libraries, if no other database has it: leave ''%s'', and restart', libraries), NULL::text
		WHERE libraries IS DISTINCT FROM NULLIF(current_setting('shared_preload_libraries'), '');
END
$$;
COMMENT ON FUNCTION tq.prepare_drop() IS
	'before DROP EXTENSION tq: unschedule the jobs of pg_cron that call only tq, and list what else is to be done, in that order: done, elsewhere, before, drop, after; statement NULL: by hand, or nothing';
