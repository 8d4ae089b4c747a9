-- ---------------------------------------------------------------------------
-- Recurring tasks (doc/spec/policy.md 15)
--
-- pg_cron keeps the time, and calls fire_cron() as the role that owns the recurring
-- task.  Why there is one task for each minute (or second, where the schedule is in
-- seconds):
--	- A firing locks the row of the recurring task until its transaction ends, so two
--	  firings decide one after the other.
--	- The row says for which time it was last, and the task has an id that is made of
--	  the id of the recurring task and that time.  Both are written by the transaction
--	  that creates the task.  So a server to which a failover or a restore has led has
--	  either both or none, and a task is found by its id even if the row says otherwise.
--
-- The row is locked before all else; see the order of locks in doc/internals.md.
-- ---------------------------------------------------------------------------

CREATE TYPE tq.cron_entry AS (name text, schedule text, active bool, owner text, job_id bigint, command text);
COMMENT ON TYPE tq.cron_entry IS 'row of schedule_cron(), unschedule_cron(), pause_cron() and resume_cron(): a recurring task after the call';
COMMENT ON COLUMN tq.cron_entry.name IS 'name of the recurring task';
COMMENT ON COLUMN tq.cron_entry.schedule IS 'when it fires, as pg_cron reads it';
COMMENT ON COLUMN tq.cron_entry.active IS 'whether it fires';
COMMENT ON COLUMN tq.cron_entry.owner IS 'role with whose rights it creates tasks';
COMMENT ON COLUMN tq.cron_entry.job_id IS 'its job in pg_cron; NULL: none in this database';
COMMENT ON COLUMN tq.cron_entry.command IS 'what is left to run in the database of pg_cron; NULL: nothing';

-- ---- pg_cron ----
--
-- It is in one database of the server, cron.database_name.  There its functions are
-- called with the rights of tq's owner, a superuser: only a superuser may make a job
-- that another role runs.  In the other databases nothing can be called; a user is
-- given the command to run.
--
-- The role of a job is named even where it does not change: pg_cron may refuse jobs
-- of superusers, and means the caller otherwise.  Its tables are known since version
-- 1.4: cron.job, whose column jobname has the type name before 1.5, and
-- cron.job_run_details.

CREATE FUNCTION tq_internal.pg_cron_is_here() RETURNS bool LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'pg_cron');
END
$$;
COMMENT ON FUNCTION tq_internal.pg_cron_is_here() IS 'whether pg_cron is in this database';

CREATE FUNCTION tq_internal.pg_cron_is_elsewhere() RETURNS bool LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN coalesce(current_setting('cron.database_name', true) <> current_database(), false);
END
$$;
COMMENT ON FUNCTION tq_internal.pg_cron_is_elsewhere() IS 'whether pg_cron is preloaded for another database';

CREATE FUNCTION tq_internal.require_pg_cron() RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF tq_internal.pg_cron_is_here() OR tq_internal.pg_cron_is_elsewhere() THEN
		RETURN;
	ELSIF current_setting('cron.database_name', true) IS NOT NULL THEN
		RAISE EXCEPTION 'extension "pg_cron" does not exist'
			USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'The server has preloaded it for this database.',
				HINT = 'Run CREATE EXTENSION pg_cron as a superuser.';
	END IF;
	RAISE EXCEPTION 'pg_cron is not available'
		USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = 'Recurring tasks need it to keep the time, and the server has not preloaded it.',
			HINT = format('Install it (in Debian postgresql-VERSION-cron), add pg_cron to shared_preload_libraries, '
				'set cron.database_name = ''%s'', restart the server, and run CREATE EXTENSION pg_cron.', current_database());
END
$$;
COMMENT ON FUNCTION tq_internal.require_pg_cron() IS 'raises an error unless pg_cron is in this database, or preloaded for another one';

CREATE FUNCTION tq_internal.pg_cron_has_seconds() RETURNS bool LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'pg_cron'
		AND string_to_array(substring(e.extversion, '^[0-9]+[.][0-9]+'), '.')::int[] >= '{1,5}');
END
$$;
COMMENT ON FUNCTION tq_internal.pg_cron_has_seconds() IS 'whether a schedule may be a number of seconds';

CREATE FUNCTION tq_internal.job_of(job_name text, role_name text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT j.jobid FROM cron.job j
		WHERE j.jobname::text = job_name AND j.username = role_name AND j.database = current_database() ORDER BY j.jobid LIMIT 1);
END
$$;
COMMENT ON FUNCTION tq_internal.job_of(text, text) IS 'job of pg_cron of that name and role; NULL: none';

-- DROP ROLE leaves jobs behind, with which pg_cron 1.6 does not start.
CREATE FUNCTION tq_internal.unschedule_job(job_name text, role_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF role_name IS NULL THEN
		PERFORM cron.unschedule(j.jobid) FROM cron.job j
			WHERE j.jobname::text = job_name AND j.database = current_database()
				AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = j.username);
	ELSE
		PERFORM cron.unschedule(o.jobid) FROM tq_internal.job_of(job_name, role_name) AS o (jobid) WHERE o.jobid IS NOT NULL;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.unschedule_job(text, text) IS 'removes the job of that name and role; role NULL: the jobs whose roles were dropped';

CREATE FUNCTION tq_internal.schedule_job(job_name text, schedule text, command text, role_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	has_seconds bool := tq_internal.pg_cron_has_seconds();
	job bigint;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role_name AND r.rolcanlogin) THEN
		RAISE EXCEPTION 'role "%" cannot log in', role_name
			USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'pg_cron runs a job as the role that owns it.',
				HINT = format('Run ALTER ROLE %I LOGIN, or call as a role that can log in.', role_name);
	END IF;
	job := tq_internal.job_of(job_name, role_name);
	PERFORM tq_internal.unschedule_job(job_name, NULL);
	IF job IS NULL THEN
		RETURN cron.schedule_in_database(job_name, schedule, command, current_database()::text, role_name, true);
	END IF;
	PERFORM cron.alter_job(job_id => job, username => role_name, schedule => schedule_job.schedule, command => schedule_job.command, active => true);
	RETURN job;
EXCEPTION WHEN invalid_parameter_value THEN
	RAISE EXCEPTION 'invalid schedule "%"', tq_internal.clip(schedule)
		USING ERRCODE = 'TQ400',
			DETAIL = 'pg_cron does not accept it.' || CASE WHEN has_seconds THEN '' ELSE ' Before version 1.5 the shortest interval is a minute.' END,
			HINT = 'Give five fields: minute, hour, day of month, month, day of week'
				|| CASE WHEN has_seconds THEN '; or an interval from "1 second" to "59 seconds".' ELSE '.' END;
END
$$;
COMMENT ON FUNCTION tq_internal.schedule_job(text, text, text, text) IS 'makes a job of pg_cron, or changes the one of that name and role; returns its id';

CREATE FUNCTION tq_internal.run_elsewhere(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'pg_cron is in database "%", where one command is to be run', coalesce(current_setting('cron.database_name', true), '?')
		USING DETAIL = format('It cannot be called from database "%s".', current_database()),
			HINT = 'Run there as a superuser: ' || command;
	RETURN command;
END
$$;
COMMENT ON FUNCTION tq_internal.run_elsewhere(text) IS 'shows a command that is to be run in the database of pg_cron, and returns it';

-- ---- recurring tasks ----

CREATE FUNCTION tq_internal.run_as(role oid, statement text) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_sql_run_as' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.run_as(oid, text) IS 'what a statement selects that is run with the rights of a role';

CREATE FUNCTION tq_internal.fill_fields(payload jsonb, name text, scheduled timestamptz, previous timestamptz, fired timestamptz) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_sql_fill_fields' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.fill_fields(jsonb, text, timestamptz, timestamptz, timestamptz) IS
	'a payload with the values of its fields, strings such as $scheduled';

CREATE FUNCTION tq_internal.in_bucket(task_id tq.slugid, task_group_id text) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_sql_in_bucket' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.in_bucket(tq.slugid, text) IS 'the id of a task in the bucket of its group, or in one of this database';

CREATE FUNCTION tq_internal.is_unresolved(task_id tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_sql_is_unresolved' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.is_unresolved(tq.slugid) IS 'whether there is that task, unresolved and not past its deadline';

CREATE FUNCTION tq_internal.cancel_unresolved(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_cancel_unresolved' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.cancel_unresolved(tq.slugid) IS 'cancels that task if it is unresolved and not past its deadline';

CREATE FUNCTION tq_internal.interval_text(i interval) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_interval_text' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.interval_text(interval) IS 'an interval as text, which every session reads alike';

CREATE FUNCTION tq_internal.role_name(role oid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT r.rolname FROM pg_roles r WHERE r.oid = role);
END
$$;
COMMENT ON FUNCTION tq_internal.role_name(oid) IS 'name of a role; NULL: it was dropped';

CREATE FUNCTION tq_internal.json_size(value jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_sql_json_size' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.json_size(jsonb) IS 'how many bytes a value has as text, which is not made: it may have too many';

CREATE FUNCTION tq_internal.json_option(value jsonb) RETURNS jsonb
	LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT CASE WHEN jsonb_typeof(value) IN ('object', 'array') OR tq_internal.json_size(value) > 1048576 THEN value ELSE to_jsonb(value::text) END;
	END;
COMMENT ON FUNCTION tq_internal.json_option(jsonb) IS 'an option that is JSON: as it is if it is an object or an array, or too large, and else as text';

-- enqueue() is not overloaded, so that literals need no type.
CREATE FUNCTION tq_internal.enqueue_as_owner(cron tq_internal.cron, payload jsonb, task_id tq.slugid) RETURNS tq.slugid LANGUAGE plpgsql AS $$
DECLARE
	arguments jsonb := cron.options || jsonb_build_object('task_queue_id', cron.task_queue_id, 'payload', payload::text, 'name', cron.name);
BEGIN
	IF task_id IS NOT NULL THEN
		arguments := arguments || jsonb_build_object('task_id', task_id);
	END IF;
	RETURN tq_internal.run_as(cron.role,
		(SELECT 'SELECT tq.enqueue(' || string_agg(format('%I => %L', a.key, a.value), ', ') || ')' FROM jsonb_each_text(arguments) AS a));
END
$$;
COMMENT ON FUNCTION tq_internal.enqueue_as_owner(tq_internal.cron, jsonb, tq.slugid) IS
	'creates a task of a recurring task, with the rights of its owner; returns its id, or that of the task that has its unique key';

-- Makes the job of a recurring task, or says how to make it.
CREATE FUNCTION tq_internal.schedule_firings(cron tq_internal.cron) RETURNS tq.cron_entry LANGUAGE plpgsql AS $$
DECLARE
	job_name text := 'tq:' || cron.name;
	command text := format('SELECT tq_internal.fire_cron(%L)', cron.name);
	owner text := coalesce(tq_internal.role_name(cron.role), '?');
BEGIN
	PERFORM tq_internal.require_pg_cron();
	IF tq_internal.pg_cron_is_here() THEN
		RETURN (cron.name, cron.schedule, true, owner, tq_internal.schedule_job(job_name, cron.schedule, command, owner), NULL::text);
	END IF;
	RETURN (cron.name, cron.schedule, true, owner, NULL::bigint, tq_internal.run_elsewhere(
		format('SELECT cron.schedule_in_database(%L, %L, %L, %L, %L)', job_name, cron.schedule, command, current_database(), owner)));
END
$$;
COMMENT ON FUNCTION tq_internal.schedule_firings(tq_internal.cron) IS 'has pg_cron fire a recurring task; returns it';

-- A name is one of its owner, so that two applications can use the same, and neither
-- learns of the other's.  A dropped owner is named as tq.cron_overview shows it.
CREATE FUNCTION tq_internal.cron_owner(owner text) RETURNS oid LANGUAGE plpgsql STABLE AS $$
DECLARE
	role oid := tq_internal.caller();
BEGIN
	IF owner IS NULL THEN
		RETURN role;
	END IF;
	role := coalesce((SELECT r.oid FROM pg_roles r WHERE r.rolname = owner),
		(SELECT c.role FROM tq_internal.cron c WHERE pg_get_userbyid(c.role) = owner LIMIT 1));
	IF NOT tq_internal.has_scope('*') AND NOT coalesce(pg_has_role(tq_internal.caller(), role, 'USAGE'), false) THEN
		RAISE EXCEPTION 'recurring tasks of role "%" are not those of the caller', tq_internal.clip(owner)
			USING ERRCODE = 'TQ403', DETAIL = 'The caller has not the privileges of that role.',
				HINT = 'Leave out owner for recurring tasks of the caller, or call as a member of tq_admin.';
	END IF;
	RETURN role;
END
$$;
COMMENT ON FUNCTION tq_internal.cron_owner(text) IS 'the role of that name, of whose recurring tasks the caller may be the operator; NULL: the caller';

-- A caller without the right waits for no lock.
CREATE FUNCTION tq_internal.lock_own_cron(name text, owner text) RETURNS tq_internal.cron LANGUAGE plpgsql AS $$
DECLARE
	cron tq_internal.cron;
	its_owner oid;
BEGIN
	PERFORM tq_internal.not_null(name, 'name');
	its_owner := tq_internal.cron_owner(owner);
	SELECT c.* INTO cron FROM tq_internal.cron c WHERE c.name = lock_own_cron.name AND c.role = its_owner;
	PERFORM tq_internal.require_any('queue:schedule-cron:' || name, 'queue:schedule-cron-in-queue:' || coalesce(cron.task_queue_id, ''));
	SELECT c.* INTO cron FROM tq_internal.cron c WHERE c.name = lock_own_cron.name AND c.role = its_owner FOR UPDATE;
	IF cron.name IS NULL THEN
		RAISE EXCEPTION 'recurring task "%" does not exist', tq_internal.clip(name)
			USING ERRCODE = 'TQ404', DETAIL = format('Role "%s" has none of that name.', tq_internal.clip(coalesce(owner, tq_internal.role_name(its_owner)))),
				HINT = 'Call tq.schedule_cron() first; or name the role that owns it as owner.';
	END IF;
	RETURN cron;
END
$$;
COMMENT ON FUNCTION tq_internal.lock_own_cron(text, text) IS 'the recurring task of that name and owner, locked; owner NULL: the caller';

CREATE FUNCTION tq_internal.require_cron_role(cron tq_internal.cron) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF tq_internal.role_name(cron.role) IS NULL THEN
		RAISE EXCEPTION 'the owner of recurring task "%" was dropped', cron.name
			USING ERRCODE = 'TQ409', DETAIL = 'Its tasks were created with the rights of that role.',
				HINT = 'Call tq.unschedule_cron() as a member of tq_admin, and tq.schedule_cron() as another role.';
	ELSIF NOT (SELECT r.rolcanlogin FROM pg_roles r WHERE r.oid = cron.role) THEN
		RAISE EXCEPTION 'the owner of recurring task "%" cannot log in', cron.name
			USING ERRCODE = 'TQ409', DETAIL = format('Its owner is role "%s", and pg_cron runs a job as the role that owns it.', tq_internal.role_name(cron.role)),
				HINT = 'Alter the role to LOGIN, or call tq.unschedule_cron() as a member of tq_admin.';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.require_cron_role(tq_internal.cron) IS 'raises TQ409 if the role that owns a recurring task was dropped, or cannot log in';

CREATE FUNCTION tq_internal.role_has_scope(role oid, scope text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_sql_role_has_scope' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.role_has_scope(oid, text) IS 'whether a role that exists has that scope';

-- Creation at any priority that is not lower than that of the task is enough; as a
-- firing, it also needs the scopes and routes of the task.
CREATE FUNCTION tq_internal.cron_fault(cron tq_internal.cron) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	priorities text[] := '{highest,very-high,high,medium,low,very-low,lowest}';
	lowest int := coalesce(array_position(priorities, cron.options ->> 'priority'), 7);
BEGIN
	IF tq_internal.role_name(cron.role) IS NULL THEN
		RETURN 'its owner was dropped';
	ELSIF NOT (SELECT r.rolcanlogin FROM pg_roles r WHERE r.oid = cron.role) THEN
		RETURN 'its owner cannot log in';
	ELSIF (tq_internal.role_has_scope(cron.role, 'queue:schedule-cron:' || cron.name)
			OR tq_internal.role_has_scope(cron.role, 'queue:schedule-cron-in-queue:' || cron.task_queue_id))
		AND EXISTS (SELECT FROM unnest(priorities[:lowest]) AS p WHERE tq_internal.role_has_scope(cron.role, format('queue:create-task:%s:%s', p, cron.task_queue_id)))
		AND tq_internal.role_has_scope(cron.role, 'queue:create-task:project:' || coalesce(cron.options ->> 'project_id', 'none'))
		AND tq_internal.role_has_scope(cron.role, 'queue:scheduler-id:' || coalesce(cron.options ->> 'scheduler_id', '-'))
		AND NOT EXISTS (SELECT FROM unnest((cron.options ->> 'scopes')::text[]) AS s WHERE NOT tq_internal.role_has_scope(cron.role, s))
		AND NOT EXISTS (SELECT FROM unnest((cron.options ->> 'routes')::text[]) AS r WHERE NOT tq_internal.role_has_scope(cron.role, 'queue:route:' || r)) THEN
		RETURN NULL;
	END IF;
	RETURN 'its owner lacks scopes';
END
$$;
COMMENT ON FUNCTION tq_internal.cron_fault(tq_internal.cron) IS 'why a recurring task creates no task, for what has become of its owner; NULL: it does';

-- Before 1.5 it is GMT.  Only roles that may read all settings may read those of pg_cron.
CREATE FUNCTION tq_internal.cron_time_zone() RETURNS text LANGUAGE tq_read STABLE AS $$
BEGIN
	RETURN coalesce(current_setting('cron.timezone', true), CASE WHEN current_setting('cron.database_name', true) IS NOT NULL
		OR EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'pg_cron') THEN 'GMT' END);
END
$$;
COMMENT ON FUNCTION tq_internal.cron_time_zone() IS 'time zone of the schedules of pg_cron; NULL: it is not preloaded';

CREATE FUNCTION tq_internal.cron_field(field text, lowest int, highest int, names text[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	part text;
	m text[];
	bounds int[];
	found int[] := '{}';
BEGIN
	FOREACH part IN ARRAY string_to_array(lower(field), ',') LOOP
		m := regexp_match(part, '^(\*|[0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?(?:/([1-9][0-9]?))?$');
		bounds := CASE WHEN m[1] = '*' THEN ARRAY[lowest, highest]
			ELSE ARRAY(SELECT CASE WHEN b.text ~ '[0-9]' THEN b.text::int ELSE array_position(names, b.text) + lowest - 1 END
				FROM unnest(ARRAY[m[1], coalesce(m[2], m[1])]) WITH ORDINALITY AS b (text, n) ORDER BY b.n) END;
		IF m IS NULL OR array_position(bounds, NULL) IS NOT NULL OR bounds[1] < lowest OR bounds[2] > highest THEN
			RETURN NULL;
		END IF;
		found := found || ARRAY(SELECT generate_series(bounds[1], bounds[2], coalesce(m[3]::int, 1)));
	END LOOP;
	RETURN found;
END
$$;
COMMENT ON FUNCTION tq_internal.cron_field(text, int, int, text[]) IS 'what a field of a schedule matches; NULL: it is none';

-- As pg_cron reads a schedule: a day matches by both fields of days if one begins with a
-- star, else by either; a local time that a change of clocks leaves out is no firing.
CREATE FUNCTION tq_internal.next_firings(schedule text, zone text, after timestamptz, max int) RETURNS timestamptz[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	seconds int := substring(schedule, '^\s*([0-9]{1,2})\s+[Ss]econds?\s*$');
	f text[] := regexp_split_to_array(btrim(coalesce('{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}'::jsonb ->> schedule, schedule)), '\s+');
	minutes int[] := tq_internal.cron_field(f[1], 0, 59, '{}');
	hours int[] := tq_internal.cron_field(f[2], 0, 23, '{}');
	days int[] := CASE WHEN f[3] = '$' THEN '{}' ELSE tq_internal.cron_field(f[3], 1, 31, '{}') END;
	months int[] := tq_internal.cron_field(f[4], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
	weekdays int[] := tq_internal.cron_field(f[5], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
	day date := (after AT TIME ZONE zone)::date;
	last CONSTANT date := day + 3000;	-- a leap day is at most eight years away
	firings timestamptz[] := '{}';
	by_day bool;
	by_weekday bool;
BEGIN
	IF seconds IS NOT NULL THEN
		RETURN ARRAY(SELECT after + n * seconds * interval '1 second' FROM generate_series(1, max) AS n);
	ELSIF zone IS NULL OR cardinality(f) <> 5 OR minutes IS NULL OR hours IS NULL OR days IS NULL OR months IS NULL OR weekdays IS NULL THEN
		RETURN NULL;
	END IF;
	WHILE day < last LOOP
		IF extract(month FROM day) <> ALL (months) THEN
			day := date_trunc('month', day::timestamp) + interval '1 month';
			CONTINUE;
		END IF;
		by_day := extract(day FROM day) = ANY (days) OR f[3] = '$' AND extract(day FROM day + 1) = 1;
		by_weekday := extract(dow FROM day) = ANY (weekdays) OR extract(dow FROM day) = 0 AND 7 = ANY (weekdays);
		IF by_day AND by_weekday OR (by_day OR by_weekday) AND NOT starts_with(f[3], '*') AND NOT starts_with(f[5], '*') THEN
			firings := firings || ARRAY(SELECT DISTINCT t.at
				FROM unnest(hours) AS h CROSS JOIN unnest(minutes) AS m CROSS JOIN LATERAL (SELECT day + make_interval(hours => h, mins => m) AS local) AS l
					CROSS JOIN LATERAL (SELECT l.local AT TIME ZONE zone AS at) AS t
				WHERE t.at > after AND t.at AT TIME ZONE zone = l.local ORDER BY t.at LIMIT max);
			EXIT WHEN cardinality(firings) >= max;
		END IF;
		day := day + 1;
	END LOOP;
	RETURN firings[:max];
END
$$;
COMMENT ON FUNCTION tq_internal.next_firings(text, text, timestamptz, int) IS 'the next times at which pg_cron fires a schedule in a time zone; NULL: not known';

CREATE FUNCTION tq_internal.say_time_zone(schedule text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	zone text := tq_internal.cron_time_zone();
	now timestamptz := tq_internal.clock_now();
	firings timestamptz[] := tq_internal.next_firings(schedule, zone, now, 3);
BEGIN
	IF firings <> tq_internal.next_firings(schedule, current_setting('TimeZone'), now, 3) THEN
		RAISE NOTICE 'schedule "%" is read in time zone %, and not in % as this session', schedule, zone, current_setting('TimeZone')
			USING DETAIL = format('It fires next at %s.', firings[1]),
				HINT = CASE WHEN current_setting('cron.timezone', true) IS NULL THEN 'pg_cron before 1.5 knows GMT only. Give the hours in GMT.'
					ELSE 'Give the hours in that time zone, or set cron.timezone, which is one for all schedules of the server.' END;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.say_time_zone(text) IS 'says by a NOTICE in which time zone a schedule is read, if that is not the session''s and matters';

CREATE FUNCTION tq_internal.cron_faults() RETURNS TABLE (name text, role oid, fault text, next_fires timestamptz[]) LANGUAGE tq_read AS $$
BEGIN
	RETURN QUERY SELECT c.name, c.role::oid, tq_internal.cron_fault(c),
		CASE WHEN NOT c.paused THEN tq_internal.next_firings(c.schedule, tq_internal.cron_time_zone(), tq_internal.clock_now(), 3) END
		FROM tq_internal.cron c;
END
$$;
COMMENT ON FUNCTION tq_internal.cron_faults() IS 'recurring tasks, each with why it creates no task, NULL: it does; and when it fires next, NULL: not known, or it is paused';

CREATE FUNCTION tq_internal.check_cron_size(name text, value jsonb, setting text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF tq_internal.json_size(value) > pg_size_bytes(current_setting(setting)) THEN
		RAISE EXCEPTION 'invalid %', name
			USING ERRCODE = 'TQ400',
				DETAIL = format('%s has %s bytes, and may have %s (%s).', name, tq_internal.json_size(value), pg_size_bytes(current_setting(setting)), setting),
				HINT = 'Store large data elsewhere, and put its location into the task.';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.check_cron_size(text, jsonb, text) IS
	'raises TQ400 if an argument is too large as text, in which it is passed on to enqueue(), which checks its parts';

-- The arguments after payload, but overlap, are passed on to enqueue() by name.  A
-- task is created and undone, so that what enqueue() refuses is refused now.  A
-- definition that replaces another one keeps its id, and what has fired.
CREATE FUNCTION tq.schedule_cron(
	name text,
	schedule text,
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT NULL,
	requires text DEFAULT NULL,
	priority text DEFAULT NULL,
	retries int DEFAULT NULL,
	deadline interval DEFAULT '-178000000 years',
	expires interval DEFAULT NULL,
	delay interval DEFAULT NULL,
	routes text[] DEFAULT NULL,
	scopes text[] DEFAULT NULL,
	tags jsonb DEFAULT NULL,
	extra jsonb DEFAULT NULL,
	scheduler_id text DEFAULT NULL,
	project_id text DEFAULT NULL,
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	overlap text DEFAULT 'allow'
) RETURNS SETOF tq.cron_entry ROWS 1
	LANGUAGE tq_operate AS $$
DECLARE
	cron tq_internal.cron;
	is_new bool;
BEGIN
	PERFORM tq_internal.not_null(name, 'name'), tq_internal.not_null(schedule, 'schedule');
	cron.task_queue_id := tq_internal.arg_queue(task_queue_id);
	PERFORM tq_internal.not_null(payload, 'payload'), tq_internal.not_null(overlap, 'overlap');
	SELECT coalesce(jsonb_object_agg(o.key, o.value), '{}') INTO cron.options
		FROM (VALUES ('task_group_id', to_jsonb(task_group_id::text)), ('dependencies', to_jsonb(dependencies::text)),
			('requires', to_jsonb(requires)), ('priority', to_jsonb(priority)), ('retries', to_jsonb(retries::text)),
			('deadline', to_jsonb(tq_internal.interval_text(deadline))), ('expires', to_jsonb(tq_internal.interval_text(expires))),
			('delay', to_jsonb(tq_internal.interval_text(delay))), ('routes', to_jsonb(routes::text)), ('scopes', to_jsonb(scopes::text)),
			('tags', tq_internal.json_option(tags)), ('extra', tq_internal.json_option(extra)), ('scheduler_id', to_jsonb(scheduler_id)), ('project_id', to_jsonb(project_id)),
			('policy', tq_internal.json_option(policy)), ('retry', to_jsonb(retry::text))) AS o (key, value)
		WHERE CASE o.key WHEN 'deadline' THEN deadline IS DISTINCT FROM '-178000000 years' ELSE o.value IS NOT NULL END;
	PERFORM tq_internal.check_cron_size('payload', payload, 'tq.max_payload'), tq_internal.check_cron_size('task', cron.options, 'tq.max_definition');
	IF name !~ '^[ -~]{1,60}$' THEN
		RAISE EXCEPTION 'invalid name "%"', tq_internal.clip(name)
			USING ERRCODE = 'TQ400', DETAIL = format('It has %s bytes, or a character that is not allowed.', octet_length(name)),
				HINT = 'Give 1 to 60 printable ASCII characters.';
	ELSIF octet_length(schedule) > 1000 THEN	-- pg_cron checks the rest, where it is
		RAISE EXCEPTION 'invalid schedule "%"', tq_internal.clip(schedule)
			USING ERRCODE = 'TQ400', DETAIL = format('It has %s bytes, and may have 1000.', octet_length(schedule)),
				HINT = 'Give five fields: minute, hour, day of month, month, day of week.';
	ELSIF overlap NOT IN ('allow', 'skip', 'replace') THEN
		RAISE EXCEPTION 'invalid overlap "%"', tq_internal.clip(overlap)
			USING ERRCODE = 'TQ400', DETAIL = 'It says what a firing does while the last task is unresolved.', HINT = 'Give allow, skip or replace.';
	END IF;
	PERFORM tq_internal.require_any('queue:schedule-cron:' || name, 'queue:schedule-cron-in-queue:' || cron.task_queue_id);
	PERFORM tq_internal.require_pg_cron();

	cron.name := name;
	cron.id := tq.slugid(ordered => false);
	cron.role := tq_internal.caller();
	cron.schedule := schedule;
	cron.created := tq_internal.clock_now();
	BEGIN
		PERFORM tq_internal.enqueue_as_owner(cron, tq_internal.fill_fields(payload, name, cron.created, cron.created, cron.created), NULL);
		RAISE EXCEPTION USING ERRCODE = 'TQ999';
	EXCEPTION WHEN SQLSTATE 'TQ999' THEN	-- undone
	END;

	is_new := NOT EXISTS (SELECT FROM tq_internal.cron c WHERE c.name = schedule_cron.name AND c.role = cron.role);
	INSERT INTO tq_internal.cron AS c (name, id, role, schedule, task_queue_id, overlap, payload, options, created)
		VALUES (cron.name, cron.id, cron.role, cron.schedule, cron.task_queue_id, schedule_cron.overlap, schedule_cron.payload, cron.options, cron.created)
		ON CONFLICT ON CONSTRAINT cron_pkey DO UPDATE SET schedule = excluded.schedule, task_queue_id = excluded.task_queue_id,
			overlap = excluded.overlap, paused = false, payload = excluded.payload, options = excluded.options;
	IF is_new THEN
		PERFORM tq_internal.check_quota('tq.max_cron_jobs');
	END IF;
	RETURN NEXT tq_internal.schedule_firings(cron);
	PERFORM tq_internal.say_time_zone(schedule);
END
$$;
COMMENT ON FUNCTION tq.schedule_cron(text, text, text, jsonb, tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, jsonb, int, text) IS
	'have pg_cron create a task at each time of a schedule, as enqueue does, or change that; NULL: no deadline, and the default of enqueue of all else; returns one row';

CREATE FUNCTION tq.unschedule_cron(name text, owner text DEFAULT NULL) RETURNS SETOF tq.cron_entry ROWS 1
	LANGUAGE tq_operate AS $$
DECLARE
	cron tq_internal.cron := tq_internal.lock_own_cron(name, owner);
	role_name text := tq_internal.role_name(cron.role);
	command text;
BEGIN
	DELETE FROM tq_internal.cron c WHERE c.name = cron.name AND c.role = cron.role;
	IF tq_internal.pg_cron_is_here() THEN
		PERFORM tq_internal.unschedule_job('tq:' || name, role_name);
	ELSIF tq_internal.pg_cron_is_elsewhere() THEN
		command := tq_internal.run_elsewhere(format('SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = %L AND %s AND database = %L',
			'tq:' || name, coalesce('username = ' || quote_literal(role_name), 'NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = username)'),
			current_database()));
	END IF;
	RETURN QUERY SELECT name, cron.schedule, false, coalesce(role_name, '?'), NULL::bigint, command;
END
$$;
COMMENT ON FUNCTION tq.unschedule_cron(text, text) IS 'end a recurring task; the tasks that it has created stay';

-- Its firings do nothing then, so that a job in another database need not change.
CREATE FUNCTION tq.pause_cron(name text, owner text DEFAULT NULL) RETURNS SETOF tq.cron_entry ROWS 1
	LANGUAGE tq_operate AS $$
DECLARE
	cron tq_internal.cron := tq_internal.lock_own_cron(name, owner);
	role_name text := coalesce(tq_internal.role_name(cron.role), '?');
BEGIN
	UPDATE tq_internal.cron c SET paused = true WHERE c.name = cron.name AND c.role = cron.role;
	IF tq_internal.pg_cron_is_here() THEN
		PERFORM cron.alter_job(job_id => o.jobid, username => role_name, active => false)
			FROM tq_internal.job_of('tq:' || name, role_name) AS o (jobid) WHERE o.jobid IS NOT NULL;
	END IF;
	RETURN QUERY SELECT name, cron.schedule, false, role_name, NULL::bigint, NULL;
END
$$;
COMMENT ON FUNCTION tq.pause_cron(text, text) IS 'let a recurring task create no tasks until resume_cron()';

CREATE FUNCTION tq.resume_cron(name text, owner text DEFAULT NULL) RETURNS SETOF tq.cron_entry ROWS 1
	LANGUAGE tq_operate AS $$
DECLARE
	cron tq_internal.cron := tq_internal.lock_own_cron(name, owner);
BEGIN
	PERFORM tq_internal.require_cron_role(cron);
	UPDATE tq_internal.cron c SET paused = false WHERE c.name = cron.name AND c.role = cron.role;
	RETURN NEXT tq_internal.schedule_firings(cron);
END
$$;
COMMENT ON FUNCTION tq.resume_cron(text, text) IS 'let a recurring task create tasks again, and make its job in pg_cron again if that is missing';

-- ---- firings ----

-- A firing by hand is apart from the schedule, and has an id of its own; another one
-- is for a minute or second, and has the id that is made of that.  When the buckets of
-- the shard change, it may be another one.
CREATE FUNCTION tq_internal.fire(name text, owner text, moment timestamptz, is_by_hand bool, is_by_clock bool) RETURNS tq.slugid LANGUAGE plpgsql AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	cron tq_internal.cron := tq_internal.lock_own_cron(name, owner);
	scheduled timestamptz := moment;
	task tq.slugid := tq.slugid();
	made tq.slugid;
BEGIN
	PERFORM tq_internal.require_cron_role(cron);
	IF NOT is_by_hand THEN
		IF is_by_clock AND cron.paused THEN
			RETURN NULL;
		END IF;
		scheduled := date_trunc(CASE WHEN cron.schedule ~* '^[^s]*second' THEN 'second' ELSE 'minute' END, moment, 'UTC');
		task := tq.stable_slugid(format('tq.cron %s %s', cron.id, tq_internal.json_time(scheduled)));
	END IF;
	task := tq_internal.in_bucket(task, cron.options ->> 'task_group_id');
	IF EXISTS (SELECT FROM tq_internal.task t WHERE t.task_id = task) THEN
		RETURN task;
	ELSIF NOT is_by_hand AND scheduled = cron.last_scheduled THEN
		RETURN NULL;
	ELSIF cron.overlap = 'skip' AND tq_internal.is_unresolved(cron.last_task) THEN
		UPDATE tq_internal.cron c SET last_skipped = now, last_scheduled = CASE WHEN is_by_hand THEN c.last_scheduled ELSE greatest(c.last_scheduled, scheduled) END
			WHERE c.name = cron.name AND c.role = cron.role;
		RETURN NULL;
	ELSIF cron.overlap = 'replace' THEN
		PERFORM tq_internal.cancel_unresolved(cron.last_task);
	END IF;
	made := tq_internal.enqueue_as_owner(cron,
		tq_internal.fill_fields(cron.payload, cron.name, scheduled, least(coalesce(cron.last_scheduled, cron.created), scheduled), now), task);

	-- Another task than was to be created has the unique key, and may be of any role: the
	-- last task, which the next firing may cancel without a scope, is never such a task.
	UPDATE tq_internal.cron c
		SET last_scheduled = CASE WHEN is_by_hand THEN c.last_scheduled ELSE greatest(c.last_scheduled, scheduled) END,
			last_fired = CASE WHEN made = task THEN now ELSE c.last_fired END,
			last_task = CASE WHEN made = task THEN made ELSE c.last_task END
		WHERE c.name = cron.name AND c.role = cron.role;
	RETURN made;
END
$$;
COMMENT ON FUNCTION tq_internal.fire(text, text, timestamptz, bool, bool) IS 'fires a recurring task; returns the id of the task, or NULL: there is none';

CREATE FUNCTION tq.run_cron_now(name text, owner text DEFAULT NULL) RETURNS tq.slugid
	LANGUAGE tq_operate AS $$
DECLARE
	task tq.slugid := tq_internal.fire(name, owner, tq_internal.clock_now(), true, false);
BEGIN
	PERFORM tq_internal.audit_task(task);
	RETURN task;
END
$$;
COMMENT ON FUNCTION tq.run_cron_now(text, text) IS
	'create a task of a recurring task now, apart from its schedule; returns its id, or NULL: skipped, because the last one is unresolved';

CREATE FUNCTION tq_internal.fire_cron(name text, scheduled timestamptz DEFAULT NULL) RETURNS tq.slugid
	LANGUAGE tq_call AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
BEGIN
	PERFORM tq_internal.not_null(name, 'name');
	IF scheduled > now OR NOT isfinite(scheduled) THEN
		RAISE EXCEPTION 'scheduled must be a time in the past'
			USING ERRCODE = 'TQ400', DETAIL = format('It is %s, and now it is %s.', tq_internal.json_time(scheduled), tq_internal.json_time(now)),
				HINT = 'Leave it out for the present time.';
	END IF;
	RETURN tq_internal.fire(name, NULL, coalesce(scheduled, now), false, scheduled IS NULL);
END
$$;
COMMENT ON FUNCTION tq_internal.fire_cron(text, timestamptz) IS
	'what pg_cron calls: create the task of a recurring task for that minute or second, once; NULL: for the present one; returns its id, or NULL: there is none';

-- ---- for the view ----

CREATE FUNCTION tq_internal.cron_jobs()
	RETURNS TABLE (name text, role text, job_id bigint, active bool, status text, message text, started timestamptz, finished timestamptz)
	LANGUAGE tq_read AS $$
BEGIN
	IF tq_internal.pg_cron_is_here() THEN
		RETURN QUERY
			SELECT substr(j.jobname::text, 4), j.username, j.jobid, j.active, d.status, d.return_message, d.start_time, d.end_time
			FROM cron.job j
				LEFT JOIN LATERAL (SELECT r.* FROM cron.job_run_details r WHERE r.jobid = j.jobid ORDER BY r.runid DESC LIMIT 1) AS d ON true
			WHERE j.jobname::text LIKE 'tq:%' AND j.database = current_database() ORDER BY j.jobid;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.cron_jobs() IS 'jobs of recurring tasks in pg_cron, with the last entry of its log; none if it is in another database';
