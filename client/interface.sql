-- interface.sql: the functions of schema tq as a line of JSON each, by name.  client/make
-- puts them into client/interface.json.
WITH columns AS (
	SELECT attrelid, jsonb_agg(jsonb_build_object('name', attname, 'type', format_type(atttypid, atttypmod)) ||
		coalesce(jsonb_build_object('comment', col_description(attrelid, attnum)), '{}') ORDER BY attnum) AS list
	FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid
), arguments AS (
	-- Defaults belong to the last of the arguments that a caller gives.
	SELECT p.oid,
		coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'type', format_type(a.type, NULL)) ||
			CASE WHEN a.given > p.pronargs - p.pronargdefaults THEN jsonb_build_object('default',
				regexp_replace(pg_get_function_arg_default(p.oid, a.given::int), '::[\w. ]+(\[\])?$', '')) ELSE '{}' END
			ORDER BY a.n) FILTER (WHERE a.mode = 'i'), '[]') AS given,
		jsonb_agg(jsonb_build_object('name', a.name, 'type', format_type(a.type, NULL)) ORDER BY a.n)
			FILTER (WHERE a.mode IN ('b', 'o', 't')) AS returned
	FROM pg_proc AS p LEFT JOIN LATERAL (
		SELECT t.type, t.n, p.proargnames[t.n] AS name, coalesce(p.proargmodes[t.n], 'i') AS mode,
			count(*) FILTER (WHERE coalesce(p.proargmodes[t.n], 'i') IN ('i', 'b')) OVER (ORDER BY t.n) AS given
		FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS t (type, n)) AS a ON true
	WHERE p.pronamespace = 'tq'::regnamespace
	GROUP BY p.oid
)
SELECT jsonb_build_object('name', p.proname, 'kind', CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
	'arguments', a.given, 'comment', obj_description(p.oid, 'pg_proc'), 'returns', jsonb_build_object('rows', p.proretset) ||
		CASE WHEN a.returned IS NOT NULL THEN jsonb_build_object('columns', a.returned)
			WHEN t.typtype = 'c' THEN jsonb_build_object('type', format_type(t.oid, NULL), 'columns', c.list)
			ELSE jsonb_build_object('type', format_type(t.oid, NULL)) END)
FROM pg_proc AS p
	JOIN arguments AS a USING (oid)
	LEFT JOIN pg_type AS t ON t.oid = p.prorettype AND t.oid <> 0
	LEFT JOIN columns AS c ON c.attrelid = t.typrelid
WHERE p.pronamespace = 'tq'::regnamespace AND NOT EXISTS (
	SELECT FROM pg_cast WHERE castfunc = p.oid) AND p.prorettype NOT IN ('internal'::regtype, 'trigger'::regtype)
ORDER BY p.proname, pg_get_function_identity_arguments(p.oid) COLLATE "C";
