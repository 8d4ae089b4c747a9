-- A fuzz target: task definitions (doc/spec/taskcluster.md 1.2).  An input is a JSON text.
-- create_task() refuses it with TQ400, or makes a task of it of which task() gives the
-- same definition, with the defaults, in a form of which the same task can be made again.

SELECT fuzz.set_clock();
SELECT tq.create_task(fuzz.id('one'), '{"taskQueueId": "fuzz/w", "created": "2030-01-01T00:00:00Z", "deadline": "2030-01-03T00:00:00Z",
	"payload": {}, "metadata": {"name": "n", "description": "d", "owner": "o", "source": "https://example.com"}}');

-- Date and time, to the millisecond, in UTC; timestamp_in() takes fewer zones.
CREATE FUNCTION fuzz.time(t jsonb) RETURNS timestamp LANGUAGE sql STRICT AS $$
	SELECT (left(x, 10) || ' ' || substr(x, 12, 8))::timestamp
		+ rpad(left(coalesce(substring(x FROM '\.(\d+)'), ''), 3), 3, '0')::int * interval '1 ms'
		- CASE WHEN x ~ '[Zz]$' THEN '0' ELSE right(x, 6)::interval END
	FROM (SELECT t #>> '{}') t (x) $$;

-- The queue of a definition, by whichever of its keys.
CREATE FUNCTION fuzz.queue(given jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(given ->> 'taskQueueId', (given ->> 'provisionerId') || '/' || (given ->> 'workerType')) $$;

-- Returns the keys of which a definition that task() gave is not what was given.
CREATE FUNCTION fuzz.differences(id tq.slugid, given jsonb, got jsonb) RETURNS text LANGUAGE sql AS $$
	WITH policy (policy) AS (SELECT CASE jsonb_typeof(given -> 'policy') WHEN 'object' THEN nullif(given -> 'policy', '{}') END),
	delay (delay) AS (SELECT coalesce(nullif(given -> 'delay', 'null'), nullif(policy -> 'delay', 'null'), '0') FROM policy),
	keys (key, is_same) AS (VALUES
		('taskQueueId', got ->> 'taskQueueId' = fuzz.queue(given)),
		('provisionerId', (got ->> 'provisionerId') || '/' || (got ->> 'workerType') = fuzz.queue(given)),
		('schedulerId', got -> 'schedulerId' = coalesce(given -> 'schedulerId', '"-"')),
		('projectId', got -> 'projectId' = coalesce(given -> 'projectId', '"none"')),
		('taskGroupId', got -> 'taskGroupId' = coalesce(given -> 'taskGroupId', to_jsonb(id::text))),
		('priority', got -> 'priority' = coalesce(given -> 'priority', '"lowest"')
			OR got ->> 'priority' = 'lowest' AND given ->> 'priority' = 'normal'),
		('requires', got -> 'requires' = coalesce(given -> 'requires', '"all-completed"')),
		('retries', got -> 'retries' = coalesce(nullif((SELECT policy -> 'retries' FROM policy), 'null'), given -> 'retries', '5')),
		('dependencies', got -> 'dependencies' = coalesce(given -> 'dependencies', '[]')),
		('routes', got -> 'routes' = coalesce(given -> 'routes', '[]')),
		('scopes', got -> 'scopes' = coalesce(given -> 'scopes', '[]')),
		('payload', got -> 'payload' = given -> 'payload'),
		('metadata', got -> 'metadata' = given -> 'metadata'),
		('tags', got -> 'tags' = coalesce(given -> 'tags', '{}')),
		('extra', got -> 'extra' = coalesce(given -> 'extra', '{}')),
		('created', fuzz.time(got -> 'created') = fuzz.time(given -> 'created')),
		('deadline', fuzz.time(got -> 'deadline') = fuzz.time(given -> 'deadline')),
		('expires', fuzz.time(got -> 'expires') = coalesce(fuzz.time(given -> 'expires'), fuzz.time(given -> 'deadline') + interval '1 year')),
		('policy', got -> 'policy' IS NOT DISTINCT FROM (SELECT policy FROM policy)),
		('delay', (SELECT jsonb_typeof(delay) = 'string'
			OR coalesce((got ->> 'delay')::numeric, 0) = trunc((delay #>> '{}')::numeric, 3) FROM delay)))
	SELECT string_agg(key, ', ') FROM (
		SELECT key FROM keys WHERE is_same IS NOT TRUE
		UNION ALL SELECT key FROM jsonb_object_keys(got) key WHERE key NOT IN (SELECT k.key FROM keys k) AND key <> 'workerType') x $$;

CREATE FUNCTION fuzz.is_slug(text text) RETURNS bool LANGUAGE sql AS
$$ SELECT text ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$' $$;

CREATE FUNCTION fuzz.texts(list jsonb) RETURNS SETOF text LANGUAGE sql AS $$ SELECT * FROM jsonb_array_elements_text(list) $$;

-- Returns the keys of which a definition that task() gave breaks a rule.
CREATE FUNCTION fuzz.faults(given jsonb, got jsonb) RETURNS text LANGUAGE sql AS $$
	WITH metadata (name, value, max) AS (
		SELECT name, got -> 'metadata' -> name, max FROM (VALUES ('name', 255), ('description', 32768), ('owner', 255), ('source', 4096)) m (name, max)),
	keys (key, is_good) AS (VALUES
		('taskQueueId', got ->> 'taskQueueId' ~ '^[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{1,38}$'
			AND coalesce(given -> 'provisionerId' = got -> 'provisionerId', true) AND coalesce(given -> 'workerType' = got -> 'workerType', true)),
		('schedulerId', got ->> 'schedulerId' ~ '^[A-Za-z0-9_-]{1,38}$'),
		('projectId', got ->> 'projectId' ~ '^[A-Za-z0-9._/-]{1,255}[A-Za-z0-9._/-]{0,245}$'),
		('taskGroupId', fuzz.is_slug(got ->> 'taskGroupId')),
		('dependencies', (SELECT coalesce(bool_and(fuzz.is_slug(d)), true) AND count(*) = count(DISTINCT d) FROM fuzz.texts(got -> 'dependencies') d)),
		('requires', got ->> 'requires' IN ('all-completed', 'all-resolved')),
		('priority', got ->> 'priority' IN ('highest', 'very-high', 'high', 'medium', 'low', 'very-low', 'lowest')),
		('retries', (got ->> 'retries')::numeric BETWEEN 0 AND 2147483647 AND (got ->> 'retries')::numeric % 1 = 0
			AND ((got ->> 'retries')::numeric <= 49 OR given #>> '{policy,retries}' IS NOT NULL)),
		('routes', (SELECT count(*) <= 64 AND count(*) = count(DISTINCT r) AND coalesce(bool_and(length(r) BETWEEN 1 AND 249), true) FROM fuzz.texts(got -> 'routes') r)),
		('scopes', (SELECT coalesce(bool_and(s ~ '^[ -~]*$' AND right(s, 2) <> '**'), true) FROM fuzz.texts(got -> 'scopes') s)),
		('payload', jsonb_typeof(got -> 'payload') = 'object'),
		('extra', jsonb_typeof(got -> 'extra') = 'object'),
		('metadata', (SELECT bool_and(jsonb_typeof(value) = 'string' AND length(value #>> '{}') <= max) FROM metadata)
			AND (got -> 'metadata') - ARRAY(SELECT name FROM metadata) = '{}' AND got #>> '{metadata,source}' ~ '^(https?://|ssh://|git@)'),
		('tags', (SELECT coalesce(bool_and(jsonb_typeof(value) = 'string' AND length(value #>> '{}') <= 4096), true) FROM jsonb_each(got -> 'tags'))),
		('created', fuzz.time(got -> 'created') BETWEEN '2029-12-31 23:48' AND '2030-01-01 00:19'),
		('deadline', fuzz.time(got -> 'deadline') BETWEEN greatest(fuzz.time(got -> 'created'), '2030-01-01 00:03:17') AND '2031-01-01'),
		('expires', fuzz.time(got -> 'expires') BETWEEN fuzz.time(got -> 'deadline') AND '9999-12-31'),
		('date-time', (SELECT bool_and(given ->> key ~ '^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$')
			FROM unnest('{created,deadline,expires}'::text[]) key WHERE given ? key)),
		('delay', coalesce((got ->> 'delay')::numeric, 0) BETWEEN 0 AND 2147483647),
		('policy', coalesce(jsonb_typeof(got -> 'policy'), 'object') = 'object'),
		('provisionerId', true),
		('workerType', true))
	SELECT string_agg(key, ', ') FROM (
		SELECT key FROM keys WHERE is_good IS NOT TRUE
		UNION ALL SELECT key FROM jsonb_object_keys(given) key WHERE key NOT IN (SELECT k.key FROM keys k)) x $$;

-- Checks a task that was made of a definition.
CREATE FUNCTION fuzz.check_task(id tq.slugid, given jsonb, status jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	got jsonb := tq.task(id);
	other text := fuzz.differences(id, given, got);
	fault text := fuzz.faults(given, got);
BEGIN
	IF fault IS NOT NULL THEN
		PERFORM fuzz.broken('task() breaks the rules of ' || fault, given::text, got::text);
	END IF;
	IF other IS NOT NULL THEN
		PERFORM fuzz.broken('task() differs in ' || other, given::text, got::text);
	ELSIF tq.create_task(id, given) <> status OR tq.create_task(id, got) <> status OR tq.create_tasks(jsonb_build_array(
			jsonb_build_object('taskId', id, 'task', given))) <> 0 THEN
		PERFORM fuzz.broken('to repeat it does something', given::text, got::text);
	END IF;
	PERFORM tq.delete_task(id);
	PERFORM tq.create_task(id, got);
	IF tq.task(id) <> got THEN
		PERFORM fuzz.broken('the definition that task() gave makes another task', got::text, tq.task(id)::text);
	END IF;
END $$;

-- The error of create_tasks(), which must be that of create_task().
CREATE FUNCTION fuzz.create_tasks(id tq.slugid, given jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.create_tasks(fuzz.exact(jsonb_build_array(jsonb_build_object('taskId', id, 'task', given))));
	RAISE EXCEPTION USING ERRCODE = 'FUZZ1';
EXCEPTION
	WHEN SQLSTATE 'FUZZ1' THEN RETURN NULL;
	WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE FUNCTION fuzz.definition(input bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id CONSTANT tq.slugid := fuzz.id('fuzz');
	given jsonb;
	status jsonb;
	detail text;
	hint text;
BEGIN
	BEGIN
		given := convert_from(input, 'UTF8')::jsonb;
	EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
		RETURN 'not JSON';
	END;
	PERFORM fuzz.set_clock();
	BEGIN
		status := tq.create_task(id, fuzz.exact(given));
		PERFORM fuzz.check_task(id, given, status);
		RAISE EXCEPTION USING ERRCODE = 'FUZZ1';
	EXCEPTION
		WHEN SQLSTATE 'FUZZ1' THEN
			RETURN 'created';
		WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			PERFORM fuzz.check_error(SQLSTATE, CASE
				WHEN status IS NOT NULL THEN '{}'
				WHEN given ->> 'taskGroupId' = fuzz.id('one')::text THEN '{TQ400,TQ409}'	-- of another scheduler
				ELSE '{TQ400}' END::text[], SQLERRM, detail, hint);
			IF jsonb_typeof(given) = 'object' AND fuzz.create_tasks(id, given) IS DISTINCT FROM SQLSTATE || ' ' || SQLERRM THEN
				PERFORM fuzz.broken('create_tasks() answers differently', SQLERRM, fuzz.create_tasks(id, given));
			END IF;
			RETURN SQLERRM;
	END;
END $$;
