-- doc/spec/taskcluster.md 8.5: a role sees in each view the rows of what it may see.
BEGIN;
\ir helper.psql

CREATE ROLE red;
CREATE ROLE blue;
CREATE ROLE stranger;
CREATE ROLE boss IN ROLE tq_admin;
CREATE ROLE boss2 IN ROLE tq_admin;
CREATE ROLE reader IN ROLE tq_reader;
CREATE ROLE monitor IN ROLE pg_monitor;
SELECT tq.grant_queue(who, who || '/*', access), tq.grant_scopes(who, ARRAY['queue:subscribe:' || who, 'queue:bind:' || who, 'queue:read-messages:*'])
FROM unnest('{red,blue}'::regrole[]) AS who, unnest('{produce,work,read,manage}'::text[]) AS access \g /dev/null

-- ---------------------------------------------------------------------------
-- Two teams with rows in each view
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.claim_of(who text, queue text) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT task_id FROM tq.claim_work(who || queue, who, 'w')
$$;
CREATE FUNCTION pg_temp.fill(who text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	shared tq.slugid := tq.slugid();
	required tq.slugid;
	done tq.slugid;
BEGIN
	PERFORM set_config('role', who, true);
	required := tq.enqueue(who || '/pending', '{"secret": 1}', name => who, tags => '{"t": "secret"}');
	PERFORM tq.enqueue(who || '/waits', '{"secret": 1}', dependencies => ARRAY[required], name => who);
	PERFORM tq.enqueue(who || '/delayed', '{"secret": 1}', name => who, policy => '{"delay": 600}');
	PERFORM tq.enqueue(who || '/' || q, '{"secret": 1}', name => who, task_group_id => shared, policy => '{"deadLetter": true}')
		FROM unnest('{running,done,failed}'::text[]) AS q;
	PERFORM pg_temp.claim_of(who, '/running');
	done := pg_temp.claim_of(who, '/done');
	PERFORM tq.report_completed(done, 0, result => '"result"');
	PERFORM tq.report_failed(pg_temp.claim_of(who, '/failed'), 0, error => '{"message": "error"}');
	PERFORM tq.on_group_resolved(shared, who || '/after', '{"secret": 1}', name => who);
	PERFORM tq.subscribe(who, 'task-defined');
	PERFORM tq.bind(who, 'task-defined');
	PERFORM set_config('cron.database_name', 'elsewhere', true), set_config('client_min_messages', 'error', true);
	PERFORM tq.schedule_cron(who, '* * * * *', who || '/cron', '{"secret": 1}');
	PERFORM set_config('role', 'none', true);
	INSERT INTO tq_internal.postponed SELECT t.id, now(), now(), now(), 1, 'expire', who || ' error' FROM tq_internal.task t WHERE t.task_id = required;
END
$$;
SELECT pg_temp.fill('red'), pg_temp.fill('blue') \g /dev/null
CREATE TEMP TABLE task AS SELECT task_id::text AS id, split_part(task_queue_id, '/', 1) AS team, task_group_id::text AS grp FROM tq.task_details;
GRANT ALL ON task TO PUBLIC;

-- What a column says on whose row it is: the value begins with the team, or is the id of a task or group of it.
CREATE TEMP TABLE view AS
	SELECT c.oid, c.relname::text AS name, v.key
	FROM pg_class c JOIN (VALUES ('run_overview', 'task_id'), ('task_overview', 'task_queue_id'), ('task_details', 'task_queue_id'), ('failure_overview', 'task_queue_id'),
		('dead_letter_overview', 'task_queue_id'), ('group_overview', 'task_group_id'), ('callback_overview', 'task_queue_id'), ('dependency_overview', 'task_id'),
		('queue_stats', 'task_queue_id'), ('worker_overview', 'task_queue_id'), ('waiter_overview', 'waits_for'), ('postponed_overview', 'task_id'),
		('binding_overview', 'channel'), ('cron_overview', 'name'), ('subscription_overview', 'name')) AS v (name, key) ON v.name = c.relname
	WHERE c.relnamespace = 'tq'::regnamespace;
GRANT ALL ON view TO PUBLIC;
SELECT is((SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class c WHERE relnamespace = 'tq'::regnamespace AND relkind = 'v' AND NOT EXISTS (SELECT FROM view v WHERE v.oid = c.oid)),
	'audit maintenance_overview', '8.5 views of what is no queue''s');

-- The rows of a view as a role sees them, without what changes by the clock, those of one team or all.
CREATE FUNCTION pg_temp.rows_as(who name, view text, team text DEFAULT NULL) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	key text := (SELECT v.key FROM view v WHERE v.name = view);
	seen text[];
BEGIN
	PERFORM set_config('role', who, true);
	EXECUTE format('SELECT array_agg(x.row::text ORDER BY x.row::text)
		FROM (SELECT to_jsonb(o) - ''{oldest_pending,created_per_s,claimed_per_s,ended_per_s,last_id,oldest_unread}''::text[] AS row, o.%I::text AS key FROM tq.%I o) AS x
		WHERE $1 IS NULL OR x.key ~ (''^'' || $1) OR EXISTS (SELECT FROM task t WHERE $1 = t.team AND x.key IN (t.id, t.grp))', key, view)
		INTO seen USING team;
	PERFORM set_config('role', 'none', true);
	RETURN coalesce(seen, '{}');
END
$$;

SELECT is(pg_temp.rows_as(team, name), pg_temp.rows_as('boss', name, team), format('8.5 %s sees its rows of %s', team, name))
FROM view, unnest('{red,blue}'::text[]) AS team ORDER BY name, team;
SELECT cmp_ok(cardinality(pg_temp.rows_as('boss', name, 'red')), '>', 0, format('8.5 %s has rows of a team', name)) FROM view WHERE name <> 'waiter_overview' ORDER BY name;
SELECT is(pg_temp.rows_as('stranger', name), '{}', format('8.5 a role without rights sees nothing of %s', name)) FROM view ORDER BY name;
SELECT is(pg_temp.rows_as(who, name), pg_temp.rows_as('postgres', name), format('8.5 %s sees all of %s', who, name))
FROM view, unnest('{boss,reader,monitor}'::text[]) AS who
WHERE who <> 'monitor' OR name NOT IN ('run_overview', 'task_details', 'failure_overview', 'dead_letter_overview', 'cron_overview') ORDER BY name, who;
SELECT is(pg_temp.rows_as('monitor', name), '{}', format('8.5 monitor sees nothing of %s', name))
FROM view WHERE name IN ('run_overview', 'task_details', 'failure_overview', 'dead_letter_overview', 'cron_overview') ORDER BY name;
SET ROLE red;
SELECT throws_ok('SELECT FROM tq.' || name, '42501', NULL, '8.5 not for a team: ' || name) FROM unnest('{audit,maintenance_overview}'::text[]) AS name;
SELECT throws_ok(format('SELECT FROM tq_internal.all_%s', name), '42501', NULL, '8.5 nor all rows: ' || name) FROM view ORDER BY name;
SELECT throws_ok(format('SELECT FROM tq_internal.all_%s()', name), '42501', NULL, '8.5 nor by its function: ' || name) FROM view ORDER BY name;
SELECT is((SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM tq.task_overview GROUP BY state) AS s),
	'completed 1, failed 1, pending 2, running 1, unscheduled 1', '8.5 counts are of what it sees');
SELECT is((SELECT count(*) FROM tq.failure_overview), 1::bigint, '8.5 failures, too');
RESET ROLE;

-- ---------------------------------------------------------------------------
-- Each access alone
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.views_of(access text, queues text DEFAULT 'red/*') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	who text := 'only_' || access;
BEGIN
	EXECUTE format('CREATE ROLE %I', who);
	PERFORM tq.grant_queue(who::regrole, queues, access);
	RETURN (SELECT coalesce(string_agg(v.name || ' ' || s.n, ', ' ORDER BY v.name), '')
		FROM view v, LATERAL (SELECT cardinality(pg_temp.rows_as(who, v.name)) AS n) AS s WHERE s.n > 0);
END
$$;
\set tasks 'failure_overview 1, postponed_overview 1, run_overview 5, task_details 6, task_overview 6'
\set defined 'dependency_overview 1, failure_overview 1, group_overview 1, postponed_overview 1, run_overview 5, task_details 6, task_overview 6'
SELECT is(pg_temp.views_of('produce'), :'defined', '8.5 produce');
SELECT is(pg_temp.views_of('work'), replace(:'defined', 'group_overview 1, ', ''), '8.5 work');
SELECT is(pg_temp.views_of('read'), replace(:'defined', 'run_', 'queue_stats 6, run_') || ', worker_overview 3', '8.5 read');
SELECT is(pg_temp.views_of('manage'), 'dead_letter_overview 1, ' || replace(:'defined', 'run_', 'queue_stats 6, run_') || ', worker_overview 3', '8.5 manage');
SELECT is(pg_temp.views_of('depend'), :'tasks', '8.5 depend');
SELECT is(pg_temp.views_of('join'), '', '8.5 join');
SELECT is(pg_temp.views_of('unique', '*'), '', '8.5 unique');

-- The right to the status shows no definition.
CREATE ROLE dependent;
SELECT tq.grant_queue('dependent', 'red/*', 'depend') \g /dev/null
SET ROLE dependent;
SELECT is((SELECT string_agg(DISTINCT key, ' ' ORDER BY key) FROM tq.task_details AS d, jsonb_each(to_jsonb(d)) WHERE value <> 'null' AND key IN
	('name', 'dependencies', 'routes', 'scopes', 'tags', 'metadata', 'extra', 'policy', 'payload', 'result', 'error', 'state', 'task_group_id')),
	'error result state task_group_id', '8.5 depend: results, not definitions');
SELECT is((SELECT count(name) FROM tq.task_overview), 0::bigint, '8.5 depend: no names');
SELECT is((SELECT count(name) FROM tq.failure_overview), 0::bigint, '8.5 depend: nor of failures');
RESET ROLE;
-- What a task requires of another team is as unknown as in why().
SELECT tq.grant_queue('blue', 'red/*', 'depend') \g /dev/null
SET ROLE blue;
SELECT tq.enqueue('blue/foreign', dependencies => ARRAY[(SELECT id::tq.slugid FROM task WHERE team = 'red' LIMIT 1)]) AS foreign_ \gset
SELECT is((SELECT concat_ws(' ', required_name, state IS NOT NULL, met IS NOT NULL) FROM tq.dependency_overview WHERE task_id = :'foreign_'), 't t', '8.5 the state of a required task, not its name');
RESET ROLE;
SELECT tq.revoke_queue('blue', 'red/*', 'depend') \g /dev/null
SET ROLE blue;
SELECT is((SELECT concat_ws(' ', required_name, state, met) FROM tq.dependency_overview WHERE task_id = :'foreign_'), '', '8.5 nothing of it without the right');
RESET ROLE;
-- A scope of single tasks is no right to a queue.
SELECT tq.grant_scopes('stranger', '{queue:status:r*,queue:list-workers:a*}') \g /dev/null
SELECT is(pg_temp.rows_as('stranger', name), '{}', format('8.5 scopes of other names, %s', name)) FROM view ORDER BY name;

-- ---------------------------------------------------------------------------
-- No function of the caller is given a row that it may not see
-- ---------------------------------------------------------------------------

-- Counts its calls; what is said of it makes it the first condition to check.
CREATE FUNCTION pg_temp.spy(value anyelement) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS $$
BEGIN
	PERFORM set_config('spy.calls', (current_setting('spy.calls')::int + 1)::text, true);
	RETURN true;
END
$$;
CREATE FUNCTION pg_temp.calls_in(query text, view text, col text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('spy.calls', '0', true), set_config('role', 'red', true);
	EXECUTE format(query, view, col);
	PERFORM set_config('role', 'none', true);
	RETURN current_setting('spy.calls')::int;
END
$$;
CREATE TEMP TABLE form (n serial, query text);
INSERT INTO form (query) VALUES
	('SELECT count(*) FROM tq.%1$s o WHERE pg_temp.spy(o.%2$I)'),
	('SELECT * FROM tq.%1$s o WHERE pg_temp.spy(o.%2$I) LIMIT 1'),
	('SELECT count(*) FROM tq.%1$s o ORDER BY bool_or(pg_temp.spy(o.%2$I))'),
	('SELECT pg_temp.spy(o.%2$I) FROM tq.%1$s o'),
	('SELECT count(*) FROM tq.%1$s o WHERE NOT pg_temp.spy(o.%2$I) OR o.%2$I IS NULL'),
	('WITH x AS NOT MATERIALIZED (SELECT * FROM tq.%1$s) SELECT count(*) FROM x WHERE pg_temp.spy(%2$I)'),
	('SELECT count(*) FROM task t LEFT JOIN tq.%1$s o ON pg_temp.spy(o.%2$I) WHERE t.ctid = ''(0,1)'''),
	('SELECT (SELECT count(*) FROM tq.%1$s o WHERE pg_temp.spy(o.%2$I) AND t.id IS NOT NULL) FROM task t LIMIT 1'),
	('SELECT count(*) FROM (SELECT DISTINCT %2$I FROM tq.%1$s) AS o WHERE pg_temp.spy(o.%2$I)');
SELECT is((SELECT string_agg(DISTINCT concat_ws(' ', col, n, calls), ', ') FROM (SELECT a.attname AS col, f.n, pg_temp.calls_in(f.query, v.name, a.attname) AS calls
		FROM pg_attribute a, form f WHERE a.attrelid = v.oid AND a.attnum > 0 AND (f.n <> 9 OR a.atttypid <> 'json'::regtype)) AS s
	WHERE calls > cardinality(pg_temp.rows_as('red', v.name))), NULL, format('8.5 conditions on %s', v.name))
FROM view v ORDER BY v.name;
SELECT cmp_ok(pg_temp.calls_in('SELECT count(*) FROM tq.%1$s o WHERE pg_temp.spy(o.%2$I)', 'task_overview', 'name'), '=', 6, '8.5 the condition is checked');

-- ---------------------------------------------------------------------------
-- Plans
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.plan_as(who name, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	PERFORM set_config('role', who, true);
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	PERFORM set_config('role', 'none', true);
	RETURN regexp_replace(plan, '\mall_', '', 'g');
END
$$;
SELECT is(pg_temp.plan_as('boss', format(query, 'tq.' || name, key)), pg_temp.plan_as('boss', format(query, 'tq_internal.all_' || name, key)), format('8.5 the plan of all rows: %s', replace(format(query, name, key), '%', '%%')))
FROM view, unnest('{SELECT * FROM %s,SELECT count(*) FROM %s,"SELECT * FROM %s o ORDER BY 1 LIMIT 5","SELECT * FROM %s WHERE %s IS NULL LIMIT 5"}'::text[]) AS query ORDER BY name, query;
SELECT matches(pg_temp.plan_as('boss', 'SELECT * FROM tq.failure_overview ORDER BY resolved DESC LIMIT 5'), 'Index Scan Backward using failure_resolved', '8.5 the latest failures by index');
SELECT matches(pg_temp.plan_as('boss', format('SELECT * FROM tq.task_overview WHERE task_id = %L', id)), 'Index Scan using task_task_id_key', '8.5 a task by index') FROM task LIMIT 1;
SELECT matches(pg_temp.plan_as('red', format('SELECT * FROM tq.task_overview WHERE task_id = %L', id)), 'Index Scan using task_task_id_key', '8.5 a task by index, for a team') FROM task LIMIT 1;
SELECT unalike(pg_temp.plan_as('boss', 'SELECT * FROM tq.task_details'), '%visible_queues%', '8.5 no barrier for an administrator');

-- What a team reads is in no parallel plan, for which its scopes could not be read again.
SELECT set_config(name, 'on', true) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \g /dev/null
CREATE FUNCTION pg_temp.count_after_grant(who name, view text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	seen int;
BEGIN
	PERFORM tq.grant_scopes('stranger', ARRAY[view]);
	PERFORM set_config('role', who, true);
	EXECUTE format('SELECT count(*) FROM tq.%I', view) INTO seen;
	PERFORM set_config('role', 'none', true);
	RETURN seen;
END
$$;
SELECT is(pg_temp.count_after_grant('red', name), cardinality(pg_temp.rows_as('red', name)), format('8.5 %s, where all plans are parallel', name)) FROM view ORDER BY name;
SELECT matches(pg_temp.plan_as('boss', 'SELECT * FROM tq.run_overview'), 'Gather', '8.5 an administrator has one');
SELECT set_config(name, 'off', true) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \g /dev/null

-- ---------------------------------------------------------------------------
-- A plan is for one role
-- ---------------------------------------------------------------------------

SET plan_cache_mode = force_generic_plan;
PREPARE teams AS SELECT string_agg(DISTINCT split_part(task_queue_id, '/', 1), ' ') FROM tq.task_overview;
CREATE FUNCTION pg_temp.teams() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT string_agg(DISTINCT split_part(task_queue_id, '/', 1), ' ') FROM tq.task_overview);
END
$$;
CREATE FUNCTION pg_temp.executed() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	seen text;
BEGIN
	EXECUTE 'EXECUTE teams' INTO seen;
	RETURN seen;
END
$$;
-- An old plan may be refused, or made again.
CREATE FUNCTION pg_temp.seen_by_executing() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN coalesce(pg_temp.executed(), '');
EXCEPTION WHEN insufficient_privilege THEN
	RETURN '';
END
$$;
CREATE FUNCTION pg_temp.teams_of_boss() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN pg_temp.teams(); END $$;
CREATE FUNCTION pg_temp.teams_of_red() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN pg_temp.teams(); END $$;
ALTER FUNCTION pg_temp.teams_of_boss() OWNER TO boss;
ALTER FUNCTION pg_temp.teams_of_red() OWNER TO red;
SET ROLE boss;
SELECT is(pg_temp.executed(), 'blue red', '8.5 a statement is prepared by an administrator');
SELECT is(pg_temp.teams(), 'blue red', '8.5 and in a function');
SET ROLE red;
SELECT is(pg_temp.executed(), 'red', '8.5 and executed by a team');
SELECT is(pg_temp.teams(), 'red', '8.5 and there');
SELECT is(pg_temp.teams_of_boss(), 'blue red', '8.5 in a SECURITY DEFINER function its owner counts');
SELECT is(pg_temp.teams(), 'red', '8.5 and the caller afterwards');
SET ROLE stranger;
SELECT is(pg_temp.executed(), NULL, '8.5 by a role without rights');
SELECT is(pg_temp.teams(), NULL, '8.5 and there');
SET ROLE boss;
SELECT is(pg_temp.teams_of_red(), 'red', '8.5 that of a team');
SELECT is(pg_temp.executed(), 'blue red', '8.5 by an administrator again');
RESET ROLE;

-- A role that loses its membership loses the rows with the next execution.
SET ROLE boss2;
SELECT is(pg_temp.executed(), 'blue red', '8.5 a member of tq_admin');
RESET ROLE;
REVOKE tq_admin FROM boss2;
SET ROLE boss2;
SELECT is(pg_temp.seen_by_executing(), '', '8.5 no row by an old plan');
RESET ROLE;
DISCARD PLANS;
SET ROLE boss2;
SELECT is(pg_temp.executed(), NULL, '8.5 a new one shows what it may see');
RESET ROLE;
GRANT SELECT ON tq_internal.all_task_overview TO boss2;
GRANT tq_reader TO boss2;
SET ROLE boss2;
SELECT is(pg_temp.executed(), 'blue red', '8.5 a right that is granted to it');
RESET ROLE;
REVOKE tq_reader FROM boss2;
REVOKE SELECT ON tq_internal.all_task_overview FROM boss2;
SET ROLE boss2;
SELECT is(pg_temp.executed(), NULL, '8.5 and revoked');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
