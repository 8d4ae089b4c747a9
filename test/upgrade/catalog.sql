-- What the extension tq consists of, one line an attribute, in an order that does
-- not depend on when or how it came: a database that was updated is compared with a
-- fresh one by the two texts.
\set QUIET on
\pset format unaligned
\pset tuples_only on
SET search_path = pg_catalog;
WITH member AS MATERIALIZED (
	SELECT d.classid, d.objid, o.type, o.identity
	FROM pg_depend d, pg_extension e, pg_identify_object(d.classid, d.objid, 0) o
	WHERE e.extname = 'tq' AND d.refclassid = 'pg_extension'::regclass
		AND d.refobjid = e.oid AND d.deptype = 'e'
), relation AS (
	SELECT c.*, m.type, m.identity FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
), line (kind, name, what, text) AS (
	SELECT type, identity, 'member', coalesce(obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)), '-')
	FROM member
	UNION ALL
	SELECT type, identity, 'relation', concat_ws(' ', relkind, relpersistence, relreplident, relrowsecurity,
		relforcerowsecurity, array_to_string(reloptions, ','), pg_get_userbyid(relowner) = current_user)
	FROM relation
	UNION ALL
	SELECT type, identity, 'acl', array_to_string(ARRAY(SELECT a::text FROM unnest(coalesce(relacl, acldefault('r', relowner))) a ORDER BY 1), ' ')
	FROM relation
	UNION ALL
	SELECT type, identity, 'column', concat_ws(' ', to_char(row_number() OVER (PARTITION BY attrelid ORDER BY attnum), 'FM00'),
		attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' END, attstorage, attcompression,
		attidentity, attgenerated, 'stat', nullif(attstattarget, -1), regexp_replace(array_to_string(attoptions, ','), 'pg_attver=[0-9]+', ''),
		'default ' || pg_get_expr(adbin, adrelid), array_to_string(attacl, ','), '-- ' || col_description(attrelid, attnum))
	FROM relation r JOIN pg_attribute a ON attrelid = r.oid AND attnum > 0 AND NOT attisdropped
		LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
	UNION ALL
	SELECT r.type, identity, 'constraint', concat_ws(' ', conname, pg_get_constraintdef(o.oid), obj_description(o.oid, 'pg_constraint'))
	FROM relation r JOIN pg_constraint o ON conrelid = r.oid AND contype <> 'n'
	UNION ALL
	SELECT r.type, identity, 'index', concat_ws(' ', pg_get_indexdef(indexrelid), indisclustered, indisreplident, indisvalid)
	FROM relation r JOIN pg_index ON indrelid = r.oid
	UNION ALL
	SELECT r.type, identity, 'trigger', concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled)
	FROM relation r JOIN pg_trigger t ON tgrelid = r.oid AND NOT tgisinternal
	UNION ALL
	SELECT r.type, identity, 'policy', concat_ws(' ', polname, polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
	FROM relation r JOIN pg_policy ON polrelid = r.oid
	UNION ALL
	SELECT r.type, identity, 'statistics', pg_get_statisticsobjdef(s.oid)
	FROM relation r JOIN pg_statistic_ext s ON stxrelid = r.oid
	UNION ALL
	SELECT r.type, identity, 'rule', pg_get_ruledef(w.oid) FROM relation r JOIN pg_rewrite w ON ev_class = r.oid
	UNION ALL
	SELECT r.type, identity, 'sequence', concat_ws(' ', format_type(seqtypid, NULL), seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
	FROM relation r JOIN pg_sequence ON seqrelid = r.oid
	UNION ALL
	SELECT r.type, identity, 'dumped', coalesce(nullif(e.extcondition[array_position(e.extconfig, r.oid)], ''), 'all')
	FROM relation r, pg_extension e WHERE extname = 'tq' AND r.oid = ANY (e.extconfig)
	UNION ALL
	SELECT m.type, identity, 'function', concat_ws(' ', CASE WHEN prokind <> 'a' THEN pg_get_functiondef(p.oid)
		ELSE (SELECT concat_ws(' ', aggtransfn, aggfinalfn, aggcombinefn, aggsortop::regoperator, format_type(aggtranstype, NULL), agginitval) FROM pg_aggregate WHERE aggfnoid = p.oid) END,
		proparallel, procost, prorows)
	FROM member m JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL
	SELECT m.type, identity, 'acl', array_to_string(ARRAY(SELECT a::text FROM unnest(coalesce(proacl, acldefault('f', proowner))) a ORDER BY 1), ' ')
	FROM member m JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL
	SELECT m.type, identity, 'type', concat_ws(' ', typlen, typbyval, typtype, typcategory, typispreferred, typinput, typoutput, typreceive,
		typsend, typmodin, typmodout, typanalyze, typalign, typstorage, typnotnull, format_type(nullif(typbasetype, 0), typtypmod), typdefault,
		array_to_string(typacl, ','),
		(SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
		(SELECT string_agg(concat_ws(' ', conname, pg_get_constraintdef(oid)), ',' ORDER BY conname) FROM pg_constraint WHERE contypid = t.oid))
	FROM member m JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid
	UNION ALL
	SELECT m.type, identity, 'attribute', concat_ws(' ', to_char(attnum, 'FM00'), attname, format_type(atttypid, atttypmod))
	FROM member m JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid AND typtype = 'c'
		JOIN pg_attribute a ON attrelid = typrelid AND attnum > 0 AND NOT attisdropped
	UNION ALL
	SELECT m.type, identity, 'cast', concat_ws(' ', castfunc::regprocedure, castcontext, castmethod)
	FROM member m JOIN pg_cast c ON classid = 'pg_cast'::regclass AND objid = c.oid
	UNION ALL
	SELECT m.type, identity, 'operator', concat_ws(' ', oprcode, oprcom::regoperator, oprnegate::regoperator, oprrest, oprjoin, oprcanmerge, oprcanhash)
	FROM member m JOIN pg_operator o ON classid = 'pg_operator'::regclass AND objid = o.oid
	UNION ALL
	SELECT m.type, identity, 'family', concat_ws(' ', amopstrategy, amopopr::regoperator, amoppurpose)
	FROM member m JOIN pg_amop o ON classid = 'pg_opfamily'::regclass AND objid = amopfamily
	UNION ALL
	SELECT m.type, identity, 'family', concat_ws(' ', amprocnum, amproc::regprocedure)
	FROM member m JOIN pg_amproc o ON classid = 'pg_opfamily'::regclass AND objid = amprocfamily
	UNION ALL
	SELECT m.type, identity, 'class', concat_ws(' ', opcdefault, format_type(opcintype, NULL), format_type(nullif(opckeytype, 0), NULL))
	FROM member m JOIN pg_opclass c ON classid = 'pg_opclass'::regclass AND objid = c.oid
	UNION ALL
	SELECT m.type, identity, 'acl', array_to_string(nspacl, ' ')
	FROM member m JOIN pg_namespace n ON classid = 'pg_namespace'::regclass AND objid = n.oid
	UNION ALL
	SELECT m.type, identity, 'event trigger', concat_ws(' ', evtevent, evtenabled, array_to_string(evttags, ','), evtfoid::regprocedure)
	FROM member m JOIN pg_event_trigger t ON classid = 'pg_event_trigger'::regclass AND objid = t.oid
)
SELECT line FROM (SELECT concat_ws(' | ', kind, name, what, replace(text, E'\n', E'\\n')) AS line FROM line) l
ORDER BY line COLLATE "C";
