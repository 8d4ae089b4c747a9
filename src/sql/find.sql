-- ---------------------------------------------------------------------------
-- Find (doc/spec/policy.md 17)
--
-- A filter is read once, by arg_filter(), into what find_chunk() compares: numbers in
-- place of names, and the queues that the caller may see.  Candidates are tasks by
-- their inner id, from the newest.  They are listed, if the filter has what a short list
-- stands for (its group, the unresolved tasks, the failures of a queue), else the table of
-- tasks is walked.  A chunk is a statement of so many rows; between chunks, and before
-- each comparison that may read much, the time is compared with the budget.
--
-- Takes no lock.  A call reads by one snapshot.  An inner id is never used again and never
-- changes, so what exists throughout all pages has one place in them, whatever changes of
-- it: two calls, of which one ends before an id and the other begins there, cannot both
-- miss it.
-- ---------------------------------------------------------------------------

CREATE TYPE tq_internal.task_filter AS (	-- NULL: any
	queues int[], states smallint[], reasons text[], name text, tags jsonb, payload jsonb, error text,
	group_id tq.slugid, group_number bigint, workers int[], priorities smallint[],
	created_after timestamptz, created_before timestamptz, resolved_after timestamptz, resolved_before timestamptz,
	runs int, required tq.slugid, kinds smallint[], keys text[], owner text, dead bool,
	needs_run bool, needs_details bool, by_queue bool, by_failure bool
);
COMMENT ON TYPE tq_internal.task_filter IS 'a filter of tasks, read by arg_filter()';

CREATE FUNCTION tq_internal.nearest(given text, known text[]) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_nearest' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.nearest(text, text[]) IS 'the name that is meant by one with a few wrong letters; NULL: none is near';

CREATE FUNCTION tq_internal.fits(value text, pattern text) RETURNS bool LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN right(pattern, 1) = '*' THEN starts_with(value, left(pattern, -1)) ELSE value = pattern END;
	END;
COMMENT ON FUNCTION tq_internal.fits(text, text) IS 'whether a text is this one, or begins with what is before a star at the end';

-- ---- reading a filter ----

CREATE FUNCTION tq_internal.filter_keys() RETURNS text[] LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT '{queue,state,reason,name,tags,payload,error,group,worker,priority,createdAfter,createdBefore,resolvedAfter,resolvedBefore,runsAtLeast,waitsFor,key,owner,deadLetter}'::text[];
	END;
COMMENT ON FUNCTION tq_internal.filter_keys() IS 'keys that a filter may have';

CREATE FUNCTION tq_internal.filter_error(detail text, hint text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION 'invalid filter' USING ERRCODE = 'TQ400', DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_error(text, text) IS 'raises the error that a filter is invalid';

CREATE FUNCTION tq_internal.filter_value(filter jsonb, key text, kind text, hint text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	value jsonb := filter -> key;
BEGIN
	IF value IS NOT NULL AND jsonb_typeof(value) <> kind THEN
		PERFORM tq_internal.filter_error(format('"%s" is %s.', key, tq_internal.json_shown(value)), hint);
	END IF;
	RETURN value #>> '{}';
END
$$;
COMMENT ON FUNCTION tq_internal.filter_value(jsonb, text, text, text) IS 'the value of a key of a filter, which must be of that type; NULL: it has none';

CREATE FUNCTION tq_internal.filter_list(filter jsonb, key text, known text[] DEFAULT NULL) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	value jsonb := filter -> key;
	list jsonb := CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE jsonb_build_array(value) END;
	hint text := CASE WHEN known IS NULL THEN format('Give a name in "%s", or a list of 1 to 100.', key)
		ELSE format('Give some of %s in "%s".', array_to_string(known, ', '), key) END;
	wrong jsonb;
BEGIN
	IF value IS NULL THEN
		RETURN NULL;
	ELSIF jsonb_array_length(list) NOT BETWEEN 1 AND 100 THEN
		PERFORM tq_internal.filter_error(format('"%s" has %s names.', key, jsonb_array_length(list)), hint);
	END IF;
	SELECT e INTO wrong FROM jsonb_array_elements(list) AS e
		WHERE jsonb_typeof(e) <> 'string' OR NOT coalesce(e #>> '{}' = ANY (known), true) LIMIT 1;
	IF FOUND THEN
		PERFORM tq_internal.filter_error(format('"%s" has %s.', key, tq_internal.json_shown(wrong)), hint);
	END IF;
	RETURN ARRAY(SELECT jsonb_array_elements_text(list));
END
$$;
COMMENT ON FUNCTION tq_internal.filter_list(jsonb, text, text[]) IS 'names that a filter has at a key, a text or a list of texts, each one of those that are known; NULL: none';

CREATE FUNCTION tq_internal.iso_time(given text) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN CASE WHEN given ~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$' THEN given::timestamptz END;
EXCEPTION WHEN data_exception OR invalid_parameter_value THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION tq_internal.iso_time(text) IS 'a day, or a time with or without a zone, as ISO 8601 writes it; NULL: it is none';

CREATE FUNCTION tq_internal.filter_time(filter jsonb, key text) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
	hint CONSTANT text := format('Give a time in "%s", such as "2026-01-31T12:00:00Z".', key);
	read timestamptz := tq_internal.iso_time(tq_internal.filter_value(filter, key, 'string', hint));
BEGIN
	IF read IS NULL AND filter ? key THEN
		PERFORM tq_internal.filter_error(format('"%s" is %s.', key, tq_internal.json_shown(filter -> key)), hint);
	END IF;
	RETURN read;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_time(jsonb, text) IS 'the time that a filter has at a key; NULL: none';

CREATE FUNCTION tq_internal.filter_id(filter jsonb, key text) RETURNS tq.slugid LANGUAGE plpgsql STABLE AS $$
DECLARE
	hint CONSTANT text := format('Give the id of a task or group in "%s".', key);
	given text := tq_internal.filter_value(filter, key, 'string', hint);
BEGIN
	RETURN given::tq.slugid;
EXCEPTION WHEN OTHERS THEN
	PERFORM tq_internal.filter_error(format('"%s" is %s.', key, tq_internal.json_shown(filter -> key)), hint);
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_id(jsonb, text) IS 'the id that a filter has at a key; NULL: none';

CREATE FUNCTION tq_internal.filter_number(filter jsonb, key text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
	hint CONSTANT text := format('Give a whole number from 1 to 1000000 in "%s".', key);
	given numeric := tq_internal.filter_value(filter, key, 'number', hint);
BEGIN
	IF given <> trunc(given) OR given NOT BETWEEN 1 AND 1000000 THEN
		PERFORM tq_internal.filter_error(format('"%s" is %s.', key, tq_internal.json_shown(filter -> key)), hint);
	END IF;
	RETURN given;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_number(jsonb, text) IS 'the number that a filter has at a key; NULL: none';

CREATE FUNCTION tq_internal.filter_check(filter jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	known CONSTANT text[] := tq_internal.filter_keys();
	hint CONSTANT text := format('A filter has keys of these: %s.', array_to_string(known, ', '));
	unknown text;
BEGIN
	PERFORM tq_internal.not_null(filter, 'filter');
	IF jsonb_typeof(filter) <> 'object' THEN
		PERFORM tq_internal.filter_error(format('It is %s, not an object.', tq_internal.json_shown(filter)), hint);
	ELSIF pg_column_size(filter) > 65536 THEN
		PERFORM tq_internal.filter_error(format('It has %s bytes.', pg_column_size(filter)), 'A filter has at most 65536 bytes.');
	END IF;
	SELECT k INTO unknown FROM jsonb_object_keys(filter) AS k WHERE k <> ALL (known) LIMIT 1;
	IF FOUND THEN
		PERFORM tq_internal.filter_error(format('It must not have the key "%s"%s.', tq_internal.clip(unknown),
			', but may have "' || tq_internal.nearest(unknown, known) || '"'), hint);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_check(jsonb) IS 'raises TQ400 unless a filter is an object with known keys';

-- A condition on what is of the definition finds no task whose definition the caller may not read.
CREATE FUNCTION tq_internal.filter_queues(filter jsonb) RETURNS int[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	names text[] := tq_internal.filter_list(filter, 'queue');
	by_definition bool := filter ?| '{name,tags,payload,waitsFor,key,owner}';
	by_letter bool := filter ? 'deadLetter';
	sees_all bool := tq_internal.has_right('status', '*', '*') AND (NOT by_definition OR tq_internal.has_right('get-task', '*', '*'))
		AND (NOT by_letter OR tq_internal.has_right('dead-letters', '*', '*'));
BEGIN
	PERFORM tq_internal.arg_queues(n) FROM unnest(names) AS n;
	IF names IS NULL AND sees_all THEN
		RETURN NULL;
	END IF;
	RETURN ARRAY(
		SELECT q.id
		FROM (SELECT e.* FROM unnest(names) AS n JOIN tq_internal.queue e ON e.task_queue_id = n
			UNION SELECT p.* FROM tq_internal.queue p
				WHERE names IS NULL OR EXISTS (SELECT FROM unnest(names) AS n WHERE right(n, 1) = '*' AND tq_internal.fits(p.task_queue_id, n))) AS q
		WHERE sees_all OR (tq_internal.has_right('status', '*', q.task_queue_id)
			AND (NOT by_definition OR tq_internal.has_right('get-task', '*', q.task_queue_id))
			AND (NOT by_letter OR tq_internal.has_right('dead-letters', q.task_queue_id, q.task_queue_id))));
END
$$;
COMMENT ON FUNCTION tq_internal.filter_queues(jsonb) IS 'queues that a filter names and whose tasks the caller may see, with their definitions and dead letters if the filter asks about these; NULL: all';

CREATE FUNCTION tq_internal.filter_states(filter jsonb) RETURNS smallint[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	known CONSTANT text[] := ARRAY(SELECT tq_internal.state_name(s) FROM generate_series(0, 5) AS s);
	names text[] := tq_internal.filter_list(filter, 'state', known);
	reasons text[] := tq_internal.filter_list(filter, 'reason', ARRAY(SELECT tq_internal.reason_created_name(n) FROM generate_series(1, 8) AS n
		UNION SELECT tq_internal.reason_resolved_name(n) FROM generate_series(1, 16) AS n));
	states smallint[] := ARRAY(SELECT s FROM generate_series(0, 5) AS s WHERE names IS NULL OR known[s + 1] = ANY (names));
BEGIN
	IF filter ?| '{resolvedAfter,resolvedBefore}' THEN
		states := ARRAY(SELECT s FROM unnest(states) AS s WHERE s > 2);
	END IF;
	IF filter -> 'deadLetter' = 'true' THEN
		states := ARRAY(SELECT s FROM unnest(states) AS s WHERE s > 3);
	END IF;
	IF filter ? 'error' OR NOT reasons && '{completed,skipped}' THEN
		states := array_remove(states, 3::smallint);
	END IF;
	RETURN CASE WHEN cardinality(states) < 6 THEN states END;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_states(jsonb) IS 'states that a task may have which a filter finds; NULL: all';

CREATE FUNCTION tq_internal.filter_key(filter jsonb, INOUT f tq_internal.task_filter) LANGUAGE plpgsql STABLE AS $$
DECLARE
	known CONSTANT text[] := '{unique,serial,concurrency,fairness}';
	hint CONSTANT text := 'Give an object in "key" with texts for some of unique, serial, concurrency and fairness.';
	given jsonb := filter -> 'key';
BEGIN
	PERFORM tq_internal.filter_value(filter, 'key', 'object', hint);
	IF given IS NULL THEN
		RETURN;
	ELSIF given = '{}' OR EXISTS (SELECT FROM jsonb_each(given) AS e WHERE e.key <> ALL (known) OR jsonb_typeof(e.value) <> 'string') THEN
		PERFORM tq_internal.filter_error(format('"key" is %s.', left(given::text, 100)), hint);
	END IF;
	SELECT array_agg(array_position(known, e.key) - 1), array_agg(e.value) INTO f.kinds, f.keys FROM jsonb_each_text(given) AS e;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_key(jsonb, tq_internal.task_filter) IS 'reads the key "key" of a filter: keys of a policy';

CREATE FUNCTION tq_internal.filter_workers(filter jsonb) RETURNS int[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	hint CONSTANT text := 'Give workerGroup/workerId in "worker", or the beginning and a star.';
	given text := tq_internal.filter_value(filter, 'worker', 'string', hint);
BEGIN
	IF given !~ '^[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{0,38}[*]?$' THEN
		PERFORM tq_internal.filter_error(format('"worker" is "%s".', tq_internal.clip(given)), hint);
	END IF;
	RETURN CASE WHEN given IS NOT NULL THEN
		ARRAY(SELECT w.id FROM tq_internal.worker w WHERE tq_internal.fits(w.worker_group || '/' || w.worker_id, given)) END;
END
$$;
COMMENT ON FUNCTION tq_internal.filter_workers(jsonb) IS 'workers that a filter names; NULL: any';

CREATE FUNCTION tq_internal.arg_filter(filter jsonb) RETURNS tq_internal.task_filter LANGUAGE plpgsql STABLE AS $$
DECLARE
	priorities CONSTANT text[] := ARRAY(SELECT tq_internal.priority_name(p) FROM generate_series(1, 7) AS p);
	f tq_internal.task_filter;
	names text[];
BEGIN
	PERFORM tq_internal.filter_check(filter);
	f.queues := tq_internal.filter_queues(filter);
	f.states := tq_internal.filter_states(filter);
	f.reasons := tq_internal.filter_list(filter, 'reason');
	f.name := tq_internal.filter_value(filter, 'name', 'string', 'Give a text in "name", which may end in a star.');
	f.tags := tq_internal.filter_value(filter, 'tags', 'object', 'Give the tags that a task must have as an object in "tags".');
	f.payload := filter -> 'payload';
	f.error := tq_internal.filter_value(filter, 'error', 'string', 'Give a text in "error".');
	f.group_id := tq_internal.filter_id(filter, 'group');
	f.group_number := tq_internal.group_number(f.group_id);
	f.workers := tq_internal.filter_workers(filter);
	names := tq_internal.filter_list(filter, 'priority', priorities);
	f.priorities := CASE WHEN names IS NOT NULL THEN ARRAY(SELECT array_position(priorities, n) FROM unnest(names) AS n) END;
	f.created_after := tq_internal.filter_time(filter, 'createdAfter');
	f.created_before := tq_internal.filter_time(filter, 'createdBefore');
	f.resolved_after := tq_internal.filter_time(filter, 'resolvedAfter');
	f.resolved_before := tq_internal.filter_time(filter, 'resolvedBefore');
	f.runs := tq_internal.filter_number(filter, 'runsAtLeast');
	f.required := tq_internal.filter_id(filter, 'waitsFor');
	f := tq_internal.filter_key(filter, f);
	f.owner := tq_internal.filter_value(filter, 'owner', 'string', 'Give a text in "owner", which may end in a star.');
	f.dead := tq_internal.filter_value(filter, 'deadLetter', 'boolean', 'Give true or false in "deadLetter".');
	f.needs_details := filter ?| '{reason,error,worker,resolvedAfter,resolvedBefore,runsAtLeast}';
	f.needs_run := f.needs_details OR f.states IS NOT NULL;
	RETURN f;
END
$$;
COMMENT ON FUNCTION tq_internal.arg_filter(jsonb) IS 'the argument filter, read; raises TQ400';

-- ---- candidates ----

CREATE FUNCTION tq_internal.current_run(task bigint, queue int, priority smallint)
	RETURNS TABLE (state smallint, run_id smallint, reason_created smallint, reason_resolved smallint, resolved timestamptz, worker int)
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT * FROM (
			SELECT 0::smallint AS state, (u.next_run - 1)::smallint AS run_id, NULL::smallint AS reason_created, NULL::smallint AS reason_resolved, NULL::timestamptz AS resolved, NULL::int AS worker
			FROM tq_internal.unscheduled u WHERE u.task = current_run.task
			UNION ALL
			SELECT 1::smallint, p.run_id, p.reason_created, NULL, NULL, NULL FROM tq_internal.pending p
			WHERE p.queue = current_run.queue AND p.priority = current_run.priority AND p.seq = current_run.task AND p.task = current_run.task
			UNION ALL
			SELECT 1::smallint, p.run_id, p.reason_created, NULL, NULL, NULL FROM tq_internal.pending p WHERE p.task = current_run.task AND p.seq <> p.task
			UNION ALL
			SELECT 1::smallint, d.run_id, d.reason_created, NULL, NULL, NULL FROM tq_internal.delayed d WHERE d.task = current_run.task
			UNION ALL
			(SELECT r.state, r.run_id, r.reason_created, nullif(r.reason_resolved, 0), r.resolved, r.worker FROM tq_internal.run r
			WHERE r.task = current_run.task ORDER BY r.run_id DESC LIMIT 1)) AS c
		LIMIT 1;	-- of the first of them that has one
	END;
COMMENT ON FUNCTION tq_internal.current_run(bigint, int, smallint) IS 'state and current run of a task';

-- A list of more than so many is not read: the walk ends with the first page that is full.
CREATE FUNCTION tq_internal.find_unresolved(f tq_internal.task_filter, size int) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF 0 = ANY (f.states) THEN
		RETURN QUERY SELECT u.task FROM tq_internal.unscheduled u LIMIT size;
	END IF;
	IF 1 = ANY (f.states) THEN
		RETURN QUERY SELECT d.task FROM (SELECT * FROM tq_internal.delayed LIMIT size) AS d;
		IF f.queues IS NULL THEN
			RETURN QUERY SELECT p.task FROM tq_internal.pending p LIMIT size;
		ELSE
			RETURN QUERY SELECT p.task FROM unnest(f.queues) AS q CROSS JOIN LATERAL (SELECT w.task FROM tq_internal.pending w WHERE w.queue = q LIMIT size) AS p LIMIT size;
		END IF;
	END IF;
	IF 2 = ANY (f.states) THEN
		RETURN QUERY SELECT r.task FROM tq_internal.claimed_run r LIMIT size;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.find_unresolved(tq_internal.task_filter, int) IS 'tasks that are unresolved in a state that a filter has, up to so many of each list';

CREATE FUNCTION tq_internal.find_failures(f tq_internal.task_filter, size int) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF NOT f.states && '{4,5}' THEN
		RETURN;
	ELSIF f.queues IS NULL THEN
		RETURN QUERY SELECT l.task FROM tq_internal.failure l WHERE l.resolved >= coalesce(f.resolved_after, '-infinity') ORDER BY l.resolved DESC LIMIT size;
	ELSE
		RETURN QUERY SELECT l.task FROM unnest(f.queues) AS q CROSS JOIN LATERAL (SELECT e.task FROM tq_internal.failure e
			WHERE e.queue = q AND e.resolved >= coalesce(f.resolved_after, '-infinity') LIMIT size) AS l LIMIT size;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.find_failures(tq_internal.task_filter, int) IS 'tasks that ended without success in a queue that a filter has, up to so many';

-- Creation pays for an index, so that only operators make it.
CREATE FUNCTION tq_internal.find_has_index(queues int[]) RETURNS bool LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT cardinality(queues) <= 50 AND EXISTS (
			SELECT FROM pg_index i
				JOIN pg_attribute q ON q.attrelid = i.indrelid AND q.attnum = i.indkey[0] JOIN pg_attribute t ON t.attrelid = i.indrelid AND t.attnum = i.indkey[1]
			WHERE i.indrelid = 'tq_internal.task'::regclass AND i.indisvalid AND i.indpred IS NULL AND q.attname = 'queue' AND t.attname = 'id');
	END;
COMMENT ON FUNCTION tq_internal.find_has_index(int[]) IS 'whether there is an index by which tasks of these queues are found; NULL: of all';

-- A list of a table has tasks of a state, which is not looked up again then.
CREATE FUNCTION tq_internal.find_list(INOUT f tq_internal.task_filter, size int, OUT list bigint[]) LANGUAGE plpgsql STABLE AS $$
DECLARE
	ids bigint[];
	is_of_states bool := false;
BEGIN
	IF cardinality(f.queues) = 0 OR cardinality(f.states) = 0 OR cardinality(f.workers) = 0 THEN
		list := '{}';
		RETURN;
	ELSIF f.group_id IS NOT NULL THEN
		ids := ARRAY(SELECT t.id FROM tq_internal.task t WHERE t.group_id = f.group_number LIMIT size)
			|| ARRAY(SELECT t.id FROM tq_internal.task t WHERE t.task_id = f.group_id AND t.group_id IS NULL);
	ELSIF f.required IS NOT NULL AND EXISTS (SELECT FROM tq_internal.task t WHERE t.task_id = f.required) THEN
		ids := ARRAY(SELECT d.dependent FROM tq_internal.task t CROSS JOIN LATERAL (
			SELECT o.dependent FROM tq_internal.dependency o WHERE o.required = t.id
			UNION ALL SELECT o.dependent FROM tq_internal.foreign_dependency o WHERE o.required = t.id) AS d WHERE t.task_id = f.required LIMIT size);
	ELSIF 3 = ANY (f.states) IS FALSE THEN
		ids := ARRAY(SELECT tq_internal.find_unresolved(f, size)) || ARRAY(SELECT tq_internal.find_failures(f, size));
		is_of_states := cardinality(ids) < size AND (f.states @> '{4,5}' OR NOT f.states && '{4,5}');
	END IF;
	IF is_of_states THEN
		f.states := NULL;
		f.needs_run := f.needs_details;
	END IF;
	f.by_failure := f.states <@ '{4,5}';
	f.by_queue := cardinality(ids) < size IS NOT TRUE AND f.by_failure IS NOT TRUE AND tq_internal.find_has_index(f.queues);
	IF cardinality(ids) < size THEN
		list := ARRAY(SELECT DISTINCT i FROM unnest(ids) AS i ORDER BY i);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.find_list(tq_internal.task_filter, int) IS 'all tasks that a filter may find, by id, if they are fewer than so many; NULL: they are more, or any; and what is left of the filter to be looked up';

-- Ids rise as time passes; a definition may have a created of up to 15 minutes before or after.
CREATE FUNCTION tq_internal.find_start(f tq_internal.task_filter) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
	low bigint := 0;
	high bigint := 9223372036854775807;
	first record;
BEGIN
	WHILE f.created_before IS NOT NULL AND low < high - 1 LOOP
		SELECT t.id, t.created INTO first FROM tq_internal.task t WHERE t.id >= low + (high - low) / 2 AND t.id < high ORDER BY t.id LIMIT 1;
		IF first.created <= f.created_before + interval '1 hour' THEN
			low := first.id;
		ELSE
			high := low + (high - low) / 2;
		END IF;
	END LOOP;
	RETURN high;
END
$$;
COMMENT ON FUNCTION tq_internal.find_start(tq_internal.task_filter) IS 'an id before which are all tasks that were created so early';

-- What is compared when the time is over has no verdict: the next chunk begins with it.
-- OFFSET 0 has each task of a slice looked up by its id: the planner takes a slice for long
-- enough to read the whole table.
CREATE FUNCTION tq_internal.find_chunk(f tq_internal.task_filter, list bigint[], before bigint, size int, until timestamptz, OUT ids bigint[], OUT next bigint)
	LANGUAGE plpgsql STABLE AS $$
DECLARE
	last int := CASE WHEN cardinality(list) > 0 THEN width_bucket(before - 1, list) ELSE 0 END;
	slice bigint[] := list[greatest(last - size + 1, 1):last];
	late bigint;
BEGIN
	IF list IS NULL AND f.by_failure THEN
		slice := ARRAY(SELECT l.task FROM (SELECT w.task FROM tq_internal.failure w WHERE w.task < before ORDER BY w.task DESC LIMIT size) AS l ORDER BY l.task);
		next := CASE WHEN cardinality(slice) = size THEN slice[1] END;
	ELSIF list IS NULL AND f.by_queue THEN
		slice := ARRAY(SELECT i.id FROM (SELECT w.id FROM unnest(f.queues) AS q CROSS JOIN LATERAL (
			SELECT t.id FROM tq_internal.task t WHERE t.queue = q AND t.id < before ORDER BY t.id DESC LIMIT size) AS w ORDER BY w.id DESC LIMIT size) AS i ORDER BY i.id);
		next := CASE WHEN cardinality(slice) = size THEN slice[1] END;
	ELSIF list IS NULL THEN
		next := (SELECT t.id FROM tq_internal.task t WHERE t.id < before ORDER BY t.id DESC OFFSET size - 1 LIMIT 1);
	ELSIF last > size THEN
		next := slice[1];
	END IF;
	SELECT array_agg(o.id ORDER BY o.id DESC) FILTER (WHERE o.verdict), max(o.id) FILTER (WHERE o.verdict IS NULL) INTO ids, late
	FROM (SELECT d.id, CASE WHEN d.verdict THEN coalesce(
				(f.states IS NULL OR c.state = ANY (f.states))
				AND (f.reasons IS NULL OR coalesce(tq_internal.reason_resolved_name(c.reason_resolved), tq_internal.reason_created_name(c.reason_created)) = ANY (f.reasons))
				AND (f.workers IS NULL OR c.worker = ANY (f.workers))
				AND (f.resolved_after IS NULL OR c.resolved >= f.resolved_after)
				AND (f.resolved_before IS NULL OR c.resolved < f.resolved_before)
				AND (f.runs IS NULL OR c.run_id + 1 >= f.runs)
				AND (f.error IS NULL OR strpos(e.error ->> 'message', f.error) > 0 OR strpos(e.error #>> '{}', f.error) > 0), false) END AS verdict
		FROM (SELECT t.id, t.queue, t.priority, CASE WHEN until IS NULL OR tq_internal.clock_now() < until THEN coalesce(
					(f.name IS NULL OR tq_internal.fits(t.metadata ->> 'name', f.name))
					AND (f.owner IS NULL OR tq_internal.fits(t.metadata ->> 'owner', f.owner))
					AND (f.required IS NULL OR f.required = ANY (t.dependencies))
					AND (f.kinds IS NULL OR NOT EXISTS (SELECT FROM unnest(f.kinds, f.keys) AS k (kind, key)
						WHERE NOT EXISTS (SELECT FROM tq_internal.task_key x WHERE x.task = t.id AND x.kind = k.kind AND x.key = k.key)))
					AND (f.dead IS NULL OR f.dead = EXISTS (SELECT FROM tq_internal.dead_letter x WHERE x.task_id = t.task_id))
					AND (f.tags IS NULL OR coalesce(t.tags, '{}') @> f.tags)
					AND (f.payload IS NULL OR t.payload @> f.payload), false) END AS verdict
			FROM ((SELECT * FROM tq_internal.task w WHERE slice IS NULL AND w.id < before AND w.id >= coalesce(next, -9223372036854775808) ORDER BY w.id DESC)
				UNION ALL
				SELECT s.* FROM generate_subscripts(slice, 1, true) AS i CROSS JOIN LATERAL (SELECT * FROM tq_internal.task x WHERE x.id = slice[i] OFFSET 0) AS s) AS t
			WHERE (f.queues IS NULL OR t.queue = ANY (f.queues))
				AND (f.priorities IS NULL OR t.priority = ANY (f.priorities))
				AND (f.created_after IS NULL OR t.created >= f.created_after)
				AND (f.created_before IS NULL OR t.created < f.created_before)
				AND (f.group_id IS NULL OR t.group_id = f.group_number OR (t.group_id IS NULL AND t.task_id = f.group_id))
			OFFSET 0) AS d
			LEFT JOIN LATERAL (SELECT * FROM tq_internal.current_run(d.id, d.queue, d.priority) WHERE f.needs_run AND d.verdict OFFSET 0) AS c ON true
			LEFT JOIN LATERAL (SELECT x.error FROM tq_internal.run_detail x
				WHERE f.error IS NOT NULL AND d.verdict AND x.task = d.id AND x.error IS NOT NULL ORDER BY x.run_id DESC LIMIT 1) AS e ON true
		WHERE d.verdict IS NOT FALSE) AS o;
	IF late IS NOT NULL THEN
		ids := ARRAY(SELECT i FROM unnest(ids) AS i WHERE i > late ORDER BY i DESC);
		next := late + 1;
	ELSIF list IS NULL AND (SELECT t.created FROM tq_internal.task t WHERE t.id = next) < f.created_after - interval '1 hour' THEN
		next := NULL;
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.find_chunk(tq_internal.task_filter, bigint[], bigint, int, timestamptz) IS
	'tasks that a filter finds among the next so many candidates before an id, newest first; next: the id before which to go on, NULL: there are no more';

-- A chunk is to take a twentieth of the time that is left, and 10 ms at most, so that the last one ends in time.
CREATE FUNCTION tq_internal.find_size(size int, took interval, left_over interval) RETURNS int LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT CASE WHEN took < least(left_over / 40, interval '5 ms') THEN least(2 * size, 16384)
			WHEN took > least(left_over / 20, interval '10 ms') THEN greatest(size / 2, 16) ELSE size END;
	END;
COMMENT ON FUNCTION tq_internal.find_size(int, interval, interval) IS 'candidates of the next chunk, after one of that size took so long, and with so much time left';

CREATE FUNCTION tq_internal.arg_budget(budget interval) RETURNS interval LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM tq_internal.not_null(budget, 'budget');
	IF budget NOT BETWEEN interval '0' AND interval '1 hour' THEN
		RAISE EXCEPTION 'budget is out of range'
			USING ERRCODE = 'TQ400', DETAIL = format('It is "%s".', budget), HINT = 'Give an interval from 0 to an hour.';
	END IF;
	RETURN budget;
END
$$;
COMMENT ON FUNCTION tq_internal.arg_budget(interval) IS 'the argument budget, if it is from 0 to an hour';

CREATE FUNCTION tq_internal.find_rows(ids bigint[], sees_all bool)
	RETURNS TABLE (task_id tq.slugid, task_queue_id text, name text, state text, reason text, priority text, created timestamptz, resolved timestamptz, error text, page text)
	LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN QUERY
		SELECT t.task_id, q.task_queue_id, CASE WHEN sees_all OR tq_internal.has_right('get-task', '*', q.task_queue_id) THEN t.metadata ->> 'name' END, tq_internal.state_name(c.state),
			coalesce(tq_internal.reason_resolved_name(c.reason_resolved), tq_internal.reason_created_name(c.reason_created)),
			tq_internal.priority_name(t.priority), t.created, CASE WHEN c.state > 2 THEN c.resolved END,
			CASE WHEN c.state <> 3 THEN tq_internal.shorten(left(coalesce(e.error ->> 'message', e.error #>> '{}'), 1000), 200) END, t.id::text
		FROM generate_subscripts(ids, 1) AS i CROSS JOIN LATERAL (SELECT * FROM tq_internal.task x WHERE x.id = ids[i] OFFSET 0) AS t JOIN tq_internal.queue q ON q.id = t.queue
			LEFT JOIN LATERAL tq_internal.current_run(t.id, t.queue, t.priority) AS c ON true
			LEFT JOIN LATERAL (SELECT d.error FROM tq_internal.run_detail d WHERE d.task = t.id AND d.error IS NOT NULL ORDER BY d.run_id DESC LIMIT 1) AS e ON true;
END
$$;
COMMENT ON FUNCTION tq_internal.find_rows(bigint[], bool) IS 'rows of find_tasks() for these tasks, in this order, with the names that the caller may see';

-- How far the walk came, as the creation of a task that the caller may see.
CREATE FUNCTION tq_internal.find_reached(f tq_internal.task_filter, before bigint) RETURNS timestamptz LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT t.created FROM (SELECT * FROM tq_internal.task w WHERE w.id >= before ORDER BY w.id LIMIT 1000) AS t
		WHERE f.queues IS NULL OR t.queue = ANY (f.queues) ORDER BY t.id LIMIT 1;
	END;
COMMENT ON FUNCTION tq_internal.find_reached(tq_internal.task_filter, bigint) IS 'when the last task was created that was looked at; NULL: not known';

CREATE FUNCTION tq.find_tasks(filter jsonb, after text DEFAULT NULL, max int DEFAULT 100, budget interval DEFAULT '200 ms')
	RETURNS TABLE (task_id tq.slugid, task_queue_id text, name text, state text, reason text, priority text, created timestamptz, resolved timestamptz, error text, page text)
	LANGUAGE tq_read AS $$
#variable_conflict use_column
DECLARE
	began timestamptz := tq_internal.clock_now();
	f tq_internal.task_filter := tq_internal.arg_filter(filter);
	before bigint := CASE WHEN after IS NOT NULL THEN (tq_internal.arg_page(after, 1))[1] END;
	wanted int := tq_internal.arg_max(max);
	until timestamptz := began + tq_internal.arg_budget(budget);
	due timestamptz;	-- none for the first chunk: a call looks at something, whatever its budget
	l record;
	sees_all bool := tq_internal.has_right('get-task', '*', '*');
	size int := CASE WHEN filter ?| '{payload,tags,error}' THEN 16 ELSE greatest(wanted, 16) END;	-- what may be large is compared in small steps first
	chunk record;
BEGIN
	l := tq_internal.find_list(f, 20001);
	f := l.f;
	before := coalesce(before, tq_internal.find_start(f));
	LOOP
		began := tq_internal.clock_now();
		chunk := tq_internal.find_chunk(f, l.list, before, size, due);
		before := chunk.next;
		due := until;
		IF cardinality(chunk.ids) > 0 THEN
			RETURN QUERY SELECT * FROM tq_internal.find_rows(chunk.ids[:wanted], sees_all);
			wanted := wanted - cardinality(chunk.ids);
		END IF;
		EXIT WHEN wanted <= 0 OR before IS NULL;
		IF tq_internal.clock_now() >= until THEN
			RETURN QUERY SELECT NULL::tq.slugid, NULL, NULL, NULL, NULL, NULL, tq_internal.find_reached(f, before), NULL::timestamptz, NULL, before::text;
			EXIT;
		END IF;
		size := tq_internal.find_size(size, tq_internal.clock_now() - began, until - tq_internal.clock_now());
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq.find_tasks(jsonb, text, int, interval) IS 'tasks that a filter finds, newest first, until there are max, or the budget is used: then a last row without a task says how far that came; go on after the page of the last row';

-- ---- groups of tasks ----
--
-- Groups are walked by their numbers, which rise as time passes, from the newest.  How far a
-- group is costs by the number of its tasks, so that the time is looked at after each.

CREATE FUNCTION tq.find_groups(pattern text DEFAULT NULL, after text DEFAULT NULL, max int DEFAULT 100, budget interval DEFAULT '200 ms')
	RETURNS TABLE (task_group_id tq.slugid, name text, outcome text, tasks bigint, unscheduled bigint, delayed bigint, pending bigint, running bigint,
		completed bigint, failed bigint, exception bigint, first_created timestamptz, last_resolved timestamptz, sealed timestamptz, page text)
	LANGUAGE tq_read AS $$
#variable_conflict use_column
DECLARE
	until timestamptz := tq_internal.clock_now() + tq_internal.arg_budget(budget);
	before bigint := CASE WHEN after IS NULL THEN 9223372036854775807 ELSE (tq_internal.arg_page(after, 1))[1] END;
	wanted int := tq_internal.arg_max(max);
	sees_all bool := tq_internal.has_right('list-task-group', '*', '*');
	next bigint;
	g record;
BEGIN
	WHILE before IS NOT NULL LOOP
		next := (SELECT o.id FROM tq_internal.task_group o WHERE o.id < before ORDER BY o.id DESC OFFSET 99 LIMIT 1);
		FOR g IN SELECT o.id, o.task_group_id, o.sealed, coalesce(o.name, t.metadata ->> 'name') AS name, sees_all OR tq_internal.has_right('list-task-group', o.task_group_id::text, q.task_queue_id) AS seen
			FROM tq_internal.task_group o JOIN tq_internal.queue q ON q.id = o.queue
				LEFT JOIN LATERAL (SELECT x.metadata FROM tq_internal.task x WHERE x.task_id = o.task_group_id AND coalesce(x.group_id, o.id) = o.id OFFSET 0) AS t ON true
			WHERE o.id < before AND o.id >= coalesce(next, -9223372036854775808) ORDER BY o.id DESC
		LOOP
			IF g.seen AND (pattern IS NULL OR coalesce(tq_internal.fits(g.name, pattern), false)) THEN
				RETURN QUERY SELECT g.task_group_id, g.name, p.outcome, p.tasks, p.unscheduled, p.delayed, p.pending, p.running,
					p.completed, p.failed, p.exception, p.first_created, p.last_resolved, g.sealed, g.id::text FROM tq_internal.group_progress(g.task_group_id) AS p;
				wanted := wanted - 1;
			END IF;
			IF wanted <= 0 THEN
				RETURN;
			ELSIF tq_internal.clock_now() >= until AND EXISTS (SELECT FROM tq_internal.task_group o WHERE o.id < g.id) THEN
				page := g.id;
				RETURN NEXT;
				RETURN;
			END IF;
		END LOOP;
		before := next;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq.find_groups(text, text, int, interval) IS 'task groups of tq.group_overview, the newest first, of that name, or whose name begins with what is before a star, until there are max, or the budget is used: then a last row without a group says so; go on after the page of the last row';

-- ---- groups of failures ----
--
-- Groups are kept in memory, each as often as it was met, and folded when they are
-- 3,000: then the 1,000 largest stay, and the others become one, which has no reason.

CREATE TYPE tq_internal.failure_group AS (reason text, error text, tasks bigint, first_failed timestamptz, last_failed timestamptz, queues int[], task bigint);
COMMENT ON TYPE tq_internal.failure_group IS 'tasks that failed for one reason with errors of one shape; task: the newest';

-- Each rule leaves what the rules before it have replaced.
CREATE FUNCTION tq_internal.error_shape(error jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	shape text := left(coalesce(error ->> 'message', error #>> '{}'), 500);
	rule text[];
BEGIN
	IF jsonb_typeof(error) = 'object' AND NOT error ? 'message' THEN
		shape := left((SELECT coalesce(string_agg(e.key || ': ' || e.value, ', '), '') FROM jsonb_each_text(error) AS e), 1000);
	END IF;
	FOREACH rule SLICE 1 IN ARRAY ARRAY[
		['"[^"]*"|`[^`]*`|\u201C[^\u201D]*\u201D|\u00AB[^\u00BB]*\u00BB|(?<!\w)''[^'']*''(?!\w)', '<text>'],
		['\m[A-Za-z][A-Za-z0-9+.-]*://[^][\s<>"''`(){},;]+|[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+', '<address>'],
		['(?<![\w.])(?:[A-Za-z]:\\|\\\\)[^][\s<>"''`(){},;:*?|]+|(?<![\w./~<>])(?:~|\.{1,2})?(?:/[\w.@+%=~-]+)+/?', '<path>'],
		['\m\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?: ?(?:Z|UTC|[+-]\d\d:?(?:\d\d)?))?(?!\w)|\m\d\d:\d\d:\d\d(?:[.,]\d+)?\M', '<time>'],
		['\m[[:xdigit:]]{8}-(?:[[:xdigit:]]{4}-){3}[[:xdigit:]]{12}\M|(?<![\w-])[\w-]{8}[Q-T][\w-][CGKOSWaeimquy26-][\w-]{10}[AQgw](?![\w-])', '<id>'],	-- slugid
		['(?<![\w:.])(?:(?:[[:xdigit:]]{1,4})?:(?:[[:xdigit:]]{0,4}:){1,6}(?:\d{1,3}(?:\.\d{1,3}){3}|[[:xdigit:]]{1,4})|[[:xdigit:]]{1,4}(?::[[:xdigit:]]{1,4}){0,6}::)(?:%\w+)?(?![\w:])|\m\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\M', '<address>'],
		['(?<![A-Za-z0-9])(?:0x[[:xdigit:]]+|(?=[[:xdigit:]]*\d)(?=[[:xdigit:]]*[A-Fa-f])[[:xdigit:]]{7,}|(?=(?:[A-Za-z]*\d){4})(?=\d*[A-Za-z])[A-Za-z0-9]{16,})(?![A-Za-z0-9])', '<id>'],
		['(?:(?<![\w<>.])[+-])?(?<![A-Za-z\d.])\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?(?: ?(?:[numk\u00B5]?s|min|h|d|[kKMGTP]i?B|B|%)(?!\w))?', '<number>'],
		['(<(?:text|address|path|time|id|number)>)(?:[\s,;]+\1)+', '\1 ...']
	] LOOP
		shape := regexp_replace(shape, rule[1], rule[2], 'g');
	END LOOP;
	RETURN tq_internal.shorten(shape, 200);
END
$$;
COMMENT ON FUNCTION tq_internal.error_shape(jsonb) IS 'an error in one line, with placeholders for quoted text, addresses, paths, times, ids and numbers';

CREATE FUNCTION tq_internal.failures(ids bigint[]) RETURNS SETOF tq_internal.failure_group LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT l.reason, tq_internal.error_shape(l.error), l.tasks, l.first, l.last, ARRAY[l.queue], l.task
		FROM (SELECT coalesce(tq_internal.reason_resolved_name(c.reason_resolved), tq_internal.reason_created_name(c.reason_created)) AS reason, e.error, count(*) AS tasks,
				min(coalesce(c.resolved, r.resolved)) AS first, max(coalesce(c.resolved, r.resolved)) AS last, t.queue, max(t.id) AS task
			FROM unnest(ids) AS i JOIN tq_internal.task t ON t.id = i
				LEFT JOIN LATERAL tq_internal.current_run(t.id, t.queue, t.priority) AS c ON true
				LEFT JOIN LATERAL (SELECT d.error, d.run_id FROM tq_internal.run_detail d WHERE d.task = t.id AND d.error IS NOT NULL ORDER BY d.run_id DESC LIMIT 1) AS e ON true
				LEFT JOIN tq_internal.run r ON c.state < 3 AND r.task = t.id AND r.run_id = e.run_id
			WHERE c.state > 3 OR (c.state < 3 AND e.error IS NOT NULL)
			GROUP BY 1, 2, t.queue) AS l;
	END;
COMMENT ON FUNCTION tq_internal.failures(bigint[]) IS 'those of these tasks that failed, one row for equal errors in a queue';

CREATE FUNCTION tq_internal.fold_failures(groups tq_internal.failure_group[], size int) RETURNS tq_internal.failure_group[] LANGUAGE sql STABLE
	BEGIN ATOMIC
		WITH same AS (
			SELECT g.reason, g.error, sum(g.tasks) FILTER (WHERE q.n = 1) AS tasks, min(g.first_failed) AS first, max(g.last_failed) AS last, (array_agg(DISTINCT q.queue))[:100] AS queues, max(g.task) AS task
			FROM unnest(groups) AS g CROSS JOIN LATERAL unnest(g.queues) WITH ORDINALITY AS q (queue, n)
			GROUP BY g.reason, g.error
		), ranked AS (SELECT s.*, row_number() OVER (ORDER BY s.reason IS NULL AND s.error IS NULL, s.tasks DESC, s.last DESC, s.task DESC) <= size AS is_large FROM same s)
		SELECT array_agg((f.reason, f.error, f.tasks, f.first, f.last, f.queues, f.task)::tq_internal.failure_group ORDER BY f.reason IS NULL AND f.error IS NULL, f.tasks DESC, f.last DESC, f.task DESC)
		FROM (SELECT r.reason, r.error, r.tasks, r.first, r.last, r.queues, r.task FROM ranked r WHERE r.is_large AND (r.reason IS NOT NULL OR r.error IS NOT NULL)
			UNION ALL
			SELECT NULL, NULL, sum(r.tasks) FILTER (WHERE q.n = 1), min(r.first), max(r.last), (array_agg(DISTINCT q.queue))[:100], max(r.task)
			FROM ranked r CROSS JOIN LATERAL unnest(r.queues) WITH ORDINALITY AS q (queue, n)
			WHERE NOT r.is_large OR (r.reason IS NULL AND r.error IS NULL) HAVING count(*) > 0) AS f;
	END;
COMMENT ON FUNCTION tq_internal.fold_failures(tq_internal.failure_group[], int) IS 'groups of which each is there once, so many of the largest, and the others as one, the last';

CREATE FUNCTION tq.failure_groups(filter jsonb DEFAULT '{}', after text DEFAULT NULL, max int DEFAULT 100, budget interval DEFAULT '200 ms')
	RETURNS TABLE (error text, reason text, tasks bigint, first_failed timestamptz, last_failed timestamptz, task_queue_ids text[], task_id tq.slugid, page text)
	LANGUAGE tq_read AS $$
#variable_conflict use_column
DECLARE
	began timestamptz := tq_internal.clock_now();
	f tq_internal.task_filter := tq_internal.arg_filter('{"state": ["failed", "exception"]}' || filter);
	before bigint := CASE WHEN after IS NOT NULL THEN (tq_internal.arg_page(after, 1))[1] END;
	wanted int := tq_internal.arg_max(max);
	until timestamptz := began + tq_internal.arg_budget(budget);
	due timestamptz;
	size int := 16;
	groups tq_internal.failure_group[];
	l record;
	chunk record;
BEGIN
	f.states := array_remove(coalesce(f.states, '{0,1,2,3,4,5}'), 3::smallint);
	f.needs_run := true;
	l := tq_internal.find_list(f, 20001);
	f := l.f;
	before := coalesce(before, tq_internal.find_start(f));
	LOOP
		began := tq_internal.clock_now();
		chunk := tq_internal.find_chunk(f, l.list, before, size, due);
		before := chunk.next;
		due := until;
		-- An error may take some milliseconds.
		FOR n IN 1 .. coalesce(cardinality(chunk.ids), 0) BY 32 LOOP
			groups := groups || ARRAY(SELECT g FROM tq_internal.failures(chunk.ids[n:n + 31]) AS g);
			IF n + 32 <= cardinality(chunk.ids) AND tq_internal.clock_now() >= until THEN
				before := chunk.ids[n + 31];
				EXIT;
			END IF;
		END LOOP;
		IF cardinality(groups) > 3000 THEN
			groups := tq_internal.fold_failures(groups, 1000);
		END IF;
		EXIT WHEN before IS NULL OR tq_internal.clock_now() >= until;
		size := tq_internal.find_size(size, tq_internal.clock_now() - began, until - tq_internal.clock_now());
	END LOOP;
	RETURN QUERY SELECT g.error, g.reason, g.tasks, g.first_failed, g.last_failed, ARRAY(SELECT q.task_queue_id FROM tq_internal.queue q WHERE q.id = ANY (g.queues) ORDER BY 1), t.task_id, NULL
		FROM unnest(tq_internal.fold_failures(groups, wanted)) WITH ORDINALITY AS g JOIN tq_internal.task t ON t.id = g.task ORDER BY g.ordinality;
	IF before IS NOT NULL THEN
		RETURN QUERY SELECT NULL, NULL, NULL::bigint, tq_internal.find_reached(f, before), NULL::timestamptz, NULL::text[], NULL::tq.slugid, before::text;
	END IF;
END
$$;
COMMENT ON FUNCTION tq.failure_groups(jsonb, text, int, interval) IS
	'tasks that a filter finds and that failed, in groups by reason and shape of their last error, the largest first, and the others as one without a reason; if the budget is used, a last row without a task says how far that came, and has the page after which to go on';

-- ---- apply ----
--
-- What api/apply_api.c asks: the tasks that a filter finds, once, by one snapshot; and in
-- each batch, when they are locked, which of them it finds still.

-- A list is read by one chunk, because each chunk gets a copy of it.
CREATE FUNCTION tq_internal.apply_find(filter jsonb, max bigint) RETURNS TABLE (ids bigint[], states int[], queues int[], is_fixed bool) LANGUAGE plpgsql STABLE AS $$
DECLARE
	f tq_internal.task_filter := tq_internal.arg_filter(filter);
	l record := tq_internal.find_list(f, 1000001);	-- longer than those of find_tasks(): it is read once
	size int := greatest(coalesce(cardinality(l.list), 16384), 1);
	before bigint := tq_internal.find_start(f);
	found bigint := 0;
BEGIN
	states := f.states;
	queues := CASE WHEN f.queues IS NOT NULL THEN ARRAY(SELECT q FROM unnest(f.queues) AS q ORDER BY q) END;
	is_fixed := NOT f.needs_details AND f.priorities IS NULL AND f.payload IS NULL AND f.required IS NULL AND f.kinds IS NULL AND f.dead IS NULL;
	LOOP
		SELECT coalesce(c.ids[:least(max - found, size)::int], '{}'), c.next INTO ids, before FROM tq_internal.find_chunk(l.f, l.list, before, size, NULL) AS c;
		found := found + cardinality(ids);
		IF found > 10000000 THEN
			RAISE EXCEPTION 'the filter finds too many tasks'
				USING ERRCODE = 'TQ400', DETAIL = 'It finds more than 10000000.', HINT = 'Give a max of so many, and make the call again for the others.';
		END IF;
		RETURN NEXT;
		EXIT WHEN before IS NULL OR found >= max;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_find(jsonb, bigint) IS 'up to so many tasks that a filter finds, the newest first, in parts; states and queues of the filter, NULL: any; is_fixed: nothing else that it asks about may change';

CREATE FUNCTION tq_internal.apply_still(filter jsonb, ids bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN QUERY SELECT unnest((tq_internal.find_chunk(tq_internal.arg_filter(filter), ids, 9223372036854775807, cardinality(ids), NULL)).ids);
END
$$;
COMMENT ON FUNCTION tq_internal.apply_still(jsonb, bigint[]) IS 'those of these tasks, which are in the order of their ids, that a filter finds still';

CREATE FUNCTION tq_internal.apply_counts(ids bigint[]) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT coalesce(jsonb_object_agg(q.task_queue_id, q.states), '{}')
		FROM (SELECT n.task_queue_id, jsonb_object_agg(tq_internal.state_name(n.state), n.tasks) AS states
			FROM (SELECT q.task_queue_id, c.state, count(*) AS tasks
				FROM unnest(ids) AS i JOIN tq_internal.task t ON t.id = i JOIN tq_internal.queue q ON q.id = t.queue
					LEFT JOIN LATERAL tq_internal.current_run(t.id, t.queue, t.priority) AS c ON true
				GROUP BY q.task_queue_id, c.state) AS n
			GROUP BY n.task_queue_id) AS q);
END
$$;
COMMENT ON FUNCTION tq_internal.apply_counts(bigint[]) IS 'how many of these tasks are in each queue and state';

CREATE FUNCTION tq_internal.apply_error(action text, detail text, hint text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION 'invalid arguments of the action "%"', tq_internal.clip(action) USING ERRCODE = 'TQ400', DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_error(text, text, text) IS 'raises the error that an action has invalid arguments';

CREATE FUNCTION tq_internal.apply_number(action text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
	known CONSTANT text[] := '{cancel,move,expire,rerun,schedule,priority,delay,redrive,discard,delete}';	-- operations.h
	number int := array_position(known, action) - 1;
BEGIN
	IF number IS NULL THEN
		RAISE EXCEPTION 'invalid action "%"', tq_internal.clip(action)
			USING ERRCODE = 'TQ400', DETAIL = 'There is no action of that name' || coalesce(', but "' || tq_internal.nearest(action, known) || '"', '') || '.',
				HINT = format('Give one of %s.', array_to_string(known, ', '));
	END IF;
	RETURN number;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_number(text) IS 'the number of an action of apply()';

CREATE FUNCTION tq_internal.apply_value(action text, arguments jsonb, key text, kind text, hint text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF jsonb_typeof(arguments -> key) <> kind THEN
		PERFORM tq_internal.apply_error(action, format('"%s" is %s.', key, tq_internal.json_shown(arguments -> key)), hint);
	END IF;
	RETURN arguments ->> key;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_value(text, jsonb, text, text, text) IS 'an argument of an action, which must be of that type; NULL: there is none';

-- A value that a cast refuses is NULL, and so is one that is not there.
CREATE FUNCTION tq_internal.apply_values(arguments jsonb, OUT until timestamptz, OUT deadline interval) LANGUAGE plpgsql STABLE AS $$
BEGIN
	until := tq_internal.iso_time(arguments ->> 'until');
	deadline := arguments ->> 'deadline';
EXCEPTION WHEN data_exception OR invalid_parameter_value THEN
	RETURN;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_values(jsonb) IS 'times among the arguments of an action';

CREATE FUNCTION tq_internal.apply_how(action text, arguments jsonb, OUT number int, OUT downstream bool, OUT deadline interval, OUT priority int, OUT queue text, OUT until timestamptz)
	LANGUAGE plpgsql STABLE AS $$
DECLARE
	known text[];
	unknown text;
	levels CONSTANT text[] := ARRAY(SELECT tq_internal.priority_name(p) FROM generate_series(1, 7) AS p);
BEGIN
	PERFORM tq_internal.not_null(action, 'action'), tq_internal.not_null(arguments, 'arguments');
	number := tq_internal.apply_number(action);
	IF jsonb_typeof(arguments) <> 'object' THEN
		PERFORM tq_internal.apply_error(action, format('They are %s.', tq_internal.json_shown(arguments)), 'Give an object, {} for none.');
	END IF;
	known := CASE action WHEN 'rerun' THEN '{deadline,downstream}' WHEN 'priority' THEN '{priority}' WHEN 'move' THEN '{queue}' WHEN 'delay' THEN '{until}' ELSE '{}' END;
	SELECT k INTO unknown FROM jsonb_object_keys(arguments) AS k WHERE k <> ALL (known) LIMIT 1;
	IF FOUND THEN
		PERFORM tq_internal.apply_error(action, format('They must not have the key "%s".', tq_internal.clip(unknown)),
			format('They may have %s.', coalesce(nullif(array_to_string(known, ', '), ''), 'none')));
	END IF;
	downstream := coalesce(tq_internal.apply_value(action, arguments, 'downstream', 'boolean', 'Give true or false.')::bool, false);
	SELECT v.until, v.deadline INTO until, deadline FROM tq_internal.apply_values(arguments) AS v;
	IF arguments ? 'deadline' AND deadline IS NULL THEN
		PERFORM tq_internal.apply_error(action, format('"deadline" is %s.', tq_internal.json_shown(arguments -> 'deadline')), 'Give an interval from now, such as "1 day".');
	ELSIF action = 'delay' AND until IS NULL THEN
		PERFORM tq_internal.apply_error(action, format('"until" is %s.', coalesce(tq_internal.json_shown(arguments -> 'until'), 'not given')), 'Give a time, such as "2026-01-31T12:00:00Z".');
	ELSIF action = 'priority' AND array_position(levels, arguments ->> 'priority') IS NULL THEN
		PERFORM tq_internal.apply_error(action, format('"priority" is %s.', coalesce(tq_internal.json_shown(arguments -> 'priority'), 'not given')), format('Give one of %s.', array_to_string(levels, ', ')));
	ELSIF action = 'move' AND jsonb_typeof(arguments -> 'queue') IS DISTINCT FROM 'string' THEN
		PERFORM tq_internal.apply_error(action, format('"queue" is %s.', coalesce(tq_internal.json_shown(arguments -> 'queue'), 'not given')), 'Give the name of the other queue.');
	END IF;
	priority := coalesce(array_position(levels, arguments ->> 'priority'), 0);
	IF action = 'move' THEN
		queue := tq_internal.arg_queue(arguments ->> 'queue');
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.apply_how(text, jsonb) IS 'an action of apply() and its arguments; raises TQ400';

-- The procedure ends transactions.
CREATE PROCEDURE tq.apply(
	filter jsonb,
	action text,
	arguments jsonb DEFAULT '{}',
	dry_run bool DEFAULT false,
	max bigint DEFAULT NULL,
	INOUT tasks bigint DEFAULT NULL,
	INOUT refused jsonb DEFAULT NULL,
	INOUT found jsonb DEFAULT NULL
)
	AS 'MODULE_PATHNAME', 'tq_apply' LANGUAGE C;
COMMENT ON PROCEDURE tq.apply(jsonb, text, jsonb, bool, bigint, bigint, jsonb, jsonb) IS 'cancel, rerun, schedule, move, delay, redrive, discard, delete, expire, or give another priority to, all tasks that a filter finds, at most so many; commits after each batch, so not in a transaction block; tasks is how many, refused has the others by reason; a dry run has in found what it would be, by queue and state';
