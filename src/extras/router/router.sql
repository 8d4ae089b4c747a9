/*
 * src/extras/router/router.sql: what of the extension tq_shard is written by hand.
 * src/extras/router/generate makes of it and of src/sql the script that is installed.
 */

\echo Use "CREATE EXTENSION tq_shard" to load this file. \quit

-- ---------------------------------------------------------------------------
-- Schemas
-- ---------------------------------------------------------------------------

DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'tq') THEN
		RAISE EXCEPTION 'extension "tq" is installed in this database'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = 'A database is a router, with tq_shard, or a shard, with tq.',
				HINT = 'Create another database for the router.';
	END IF;
END
$$;

@guard@
CREATE SCHEMA tq_shard;
COMMENT ON SCHEMA tq_shard IS 'functions of the router: which shards there are, and what they have';
CREATE SCHEMA tq_shard_internal;
COMMENT ON SCHEMA tq_shard_internal IS 'tables of the extension tq_shard, and functions that its functions call';

-- The language of the functions that run on shards: PL/Proxy, with the SQLSTATE of a
-- connection for a shard that does not answer.  src/extras/router/generate puts it in place of
-- plproxy.
CREATE FUNCTION tq_shard_internal.call() RETURNS language_handler
	AS 'MODULE_PATHNAME', 'tq_shard_call' LANGUAGE C;
COMMENT ON FUNCTION tq_shard_internal.call() IS 'calls a function of the language tq_shard';
CREATE FUNCTION tq_shard_internal.validate(oid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_shard_validate' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_shard_internal.validate(oid) IS 'checks a function of the language tq_shard';
CREATE LANGUAGE tq_shard HANDLER tq_shard_internal.call VALIDATOR tq_shard_internal.validate;
COMMENT ON LANGUAGE tq_shard IS 'PL/Proxy, whose errors of connections have their SQLSTATE';

-- ---------------------------------------------------------------------------
-- Types
-- ---------------------------------------------------------------------------
@types@
-- ---------------------------------------------------------------------------
-- Map
-- ---------------------------------------------------------------------------

CREATE TABLE tq_shard_internal.shard (
	number int PRIMARY KEY CHECK (number BETWEEN 0 AND 1023),
	name text NOT NULL UNIQUE,
	connection text NOT NULL UNIQUE,
	state text NOT NULL DEFAULT 'joining' CHECK (state IN ('joining', 'active', 'draining')),
	added timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tq_shard_internal.shard IS 'the shards of this router';

CREATE TABLE tq_shard_internal.bucket (
	bucket int PRIMARY KEY CHECK (bucket BETWEEN 0 AND 1023),
	shard int NOT NULL REFERENCES tq_shard_internal.shard,		-- begins its task groups
	next int REFERENCES tq_shard_internal.shard,				-- will, when it has been moved
	old int[] NOT NULL DEFAULT '{}'								-- those that may still have groups of it
);
COMMENT ON TABLE tq_shard_internal.bucket IS 'the shard of each bucket';

CREATE TABLE tq_shard_internal.version (
	is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
	version bigint NOT NULL,
	changed timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tq_shard_internal.version IS 'number of the last change of the map';

SELECT pg_catalog.pg_extension_config_dump('tq_shard_internal.shard', '');
SELECT pg_catalog.pg_extension_config_dump('tq_shard_internal.bucket', '');
SELECT pg_catalog.pg_extension_config_dump('tq_shard_internal.version', '');

-- The cluster tq_shard of PL/Proxy has 2048 partitions: 0 to 1023 are the buckets,
-- each with the connection of its shard, and 1024 and on are the shards by number.
-- It has one connection to each shard, because it shares one among equal strings.  The
-- second cluster is for a look-up while a function of the first one runs.

-- A session reads of a change of the map, as of any change of the catalog, when it
-- locks a table, or begins a transaction.  So that a transaction of several calls
-- follows it, too, each call reads what there is.
CREATE FUNCTION tq_shard_internal.cluster() RETURNS text
	AS 'MODULE_PATHNAME', 'tq_shard_cluster' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.cluster() IS 'name of the cluster of PL/Proxy, with the map as it is now';
CREATE FUNCTION tq_shard_internal.one_partition(ids tq.slugid[], are_groups bool, owners int[]) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_shard_one_partition' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.one_partition(tq.slugid[], bool, int[]) IS 'partition of the one shard that has all these tasks or groups, or NULL';
CREATE FUNCTION tq_shard_internal.claim_order(queue text, shards int[]) RETURNS int[]
	AS 'MODULE_PATHNAME', 'tq_shard_claim_order' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.claim_order(text, int[]) IS 'shards in the order in which a claim asks them';
CREATE FUNCTION tq_shard_internal.note_empty(queue text, shard int) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_shard_note_empty' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.note_empty(text, int) IS 'notes that a claim has found no work on a shard';

CREATE FUNCTION tq_shard_internal.has_task(on_partition int, id tq.slugid) RETURNS bool
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard_lookup'; RUN ON on_partition; SELECT tq_internal.has_task($2); $$;
COMMENT ON FUNCTION tq_shard_internal.has_task(int, tq.slugid) IS 'whether a shard has that task';
CREATE FUNCTION tq_shard_internal.has_task_group(on_partition int, id tq.slugid) RETURNS bool
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard_lookup'; RUN ON on_partition; SELECT tq_internal.has_task_group($2); $$;
COMMENT ON FUNCTION tq_shard_internal.has_task_group(int, tq.slugid) IS 'whether a shard has that task group';

CREATE FUNCTION tq_shard_internal.tasks_there(on_partition int, ids tq.slugid[]) RETURNS tq.slugid[]
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard_lookup'; RUN ON on_partition;
		SELECT ARRAY(SELECT i FROM pg_catalog.unnest($2) AS i WHERE tq_internal.has_task(i)); $$;
COMMENT ON FUNCTION tq_shard_internal.tasks_there(int, tq.slugid[]) IS 'those of these tasks that a shard has';
CREATE FUNCTION tq_shard_internal.groups_there(on_partition int, ids tq.slugid[]) RETURNS tq.slugid[]
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard_lookup'; RUN ON on_partition;
		SELECT ARRAY(SELECT i FROM pg_catalog.unnest($2) AS i WHERE tq_internal.has_task_group(i)); $$;
COMMENT ON FUNCTION tq_shard_internal.groups_there(int, tq.slugid[]) IS 'those of these task groups that a shard has';

-- The partition of an id whose bucket was moved: the shard that has it, or that of
-- the bucket.
CREATE FUNCTION tq_shard_internal.find(id tq.slugid, is_group bool) RETURNS int
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition tq_shard_internal.bucket;
	candidate int;
	found_there bool;
	stale bool;
	known int := CASE WHEN NOT is_group THEN tq_shard_internal.partition_of_ids(ARRAY[id], false) END;
BEGIN
	IF known IS NOT NULL THEN
		RETURN known;
	END IF;
	SELECT b.* INTO partition FROM tq_shard_internal.bucket b WHERE b.bucket = tq_shard_internal.bucket(id);
	-- a snapshot of an earlier statement may be older than the map that called this
	stale := current_setting('transaction_isolation') IN ('repeatable read', 'serializable');
	IF stale OR cardinality(partition.old) > 0 OR partition.next IS NOT NULL THEN
		-- the next one may begin groups before the map here says that it does
		FOREACH candidate IN ARRAY CASE WHEN stale THEN tq_shard_internal.shards()
			ELSE array_remove(ARRAY[partition.shard, partition.next] || partition.old, NULL) END LOOP
			IF is_group THEN
				found_there := tq_shard_internal.has_task_group(1024 + candidate, id);
			ELSE
				found_there := tq_shard_internal.has_task(1024 + candidate, id);
			END IF;
			IF found_there THEN
				RETURN 1024 + candidate;
			END IF;
		END LOOP;
	END IF;
	RETURN COALESCE(tq_shard_internal.bucket(id), 0);
END
$$;
COMMENT ON FUNCTION tq_shard_internal.find(tq.slugid, bool) IS 'partition of a task or group whose bucket was moved';

-- The same for many ids, with one call to each shard that may have some of them.
CREATE FUNCTION tq_shard_internal.shards_of(ids tq.slugid[], are_groups bool) RETURNS int[]
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int := tq_shard_internal.partition_of_ids(ids, are_groups);
	others int[] := '{}';
BEGIN
	-- as in find()
	IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
		others := tq_shard_internal.shards();
	END IF;
	IF partition IS NOT NULL THEN
		RETURN array_fill(partition - 1024, ARRAY[cardinality(ids)]);
	END IF;
	RETURN (WITH asked AS MATERIALIZED (
			SELECT i.id, i.n, b.shard, b.next, b.old, tq_shard_internal.partition_of_ids(ARRAY[i.id], are_groups) - 1024 AS known
			FROM unnest(ids) WITH ORDINALITY AS i (id, n) JOIN tq_shard_internal.bucket b ON b.bucket = COALESCE(tq_shard_internal.bucket(i.id), 0)
		), candidate AS (
			SELECT c.shard, array_agg(DISTINCT a.id) AS ids
			FROM asked a CROSS JOIN LATERAL unnest(ARRAY[a.shard, a.next] || a.old || others) AS c (shard)
			WHERE a.known IS NULL AND a.id IS NOT NULL AND c.shard IS NOT NULL GROUP BY c.shard
		), found AS MATERIALIZED (
			SELECT DISTINCT ON (f.id) f.id, c.shard
			FROM candidate c CROSS JOIN LATERAL unnest(CASE WHEN are_groups THEN tq_shard_internal.groups_there(1024 + c.shard, c.ids)
				ELSE tq_shard_internal.tasks_there(1024 + c.shard, c.ids) END) AS f (id)
		)
		SELECT array_agg(COALESCE(a.known, f.shard, a.shard) ORDER BY a.n) FROM asked a LEFT JOIN found f USING (id));
END
$$;
COMMENT ON FUNCTION tq_shard_internal.shards_of(tq.slugid[], bool) IS 'the shard of each task or group';

-- The next five are made again by apply_map(), with the map as constants in them, so
-- that a call reads no table.  These here are right, too, and slower: a restored
-- database has them until tq_shard.refresh().
CREATE FUNCTION tq_shard_internal.of_task(id tq.slugid) RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT tq_shard_internal.find(id, false); END;
COMMENT ON FUNCTION tq_shard_internal.of_task(tq.slugid) IS 'partition of a task';
CREATE FUNCTION tq_shard_internal.of_group(id tq.slugid) RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT tq_shard_internal.find(id, true); END;
COMMENT ON FUNCTION tq_shard_internal.of_group(tq.slugid) IS 'partition of a task group';
CREATE FUNCTION tq_shard_internal.of_new() RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT b.bucket FROM tq_shard_internal.bucket b WHERE b.next IS NULL ORDER BY random() LIMIT 1; END;
COMMENT ON FUNCTION tq_shard_internal.of_new() IS 'a partition for a new group, whichever';
CREATE FUNCTION tq_shard_internal.shards() RETURNS int[]
	LANGUAGE sql BEGIN ATOMIC SELECT COALESCE(array_agg(s.number ORDER BY s.number), '{0}') FROM tq_shard_internal.shard s; END;
COMMENT ON FUNCTION tq_shard_internal.shards() IS 'numbers of the shards';

CREATE FUNCTION tq_shard_internal.partition_of_ids(ids tq.slugid[], are_groups bool) RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT tq_shard_internal.one_partition(ids, are_groups, ARRAY(
		SELECT CASE WHEN cardinality(b.old) > 0 OR b.next IS NOT NULL THEN -1 ELSE b.shard END FROM tq_shard_internal.bucket b ORDER BY b.bucket)); END;
COMMENT ON FUNCTION tq_shard_internal.partition_of_ids(tq.slugid[], bool) IS 'partition of all these tasks or groups, or NULL if they may be on several shards';

CREATE FUNCTION tq_shard_internal.first_partition() RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT 1024 + COALESCE(min(s.number), 0) FROM tq_shard_internal.shard s WHERE s.state = 'active'; END;
COMMENT ON FUNCTION tq_shard_internal.first_partition() IS 'partition of the first shard that begins groups';

-- A task without a group begins its own.  One without an id, too, goes to where the
-- first task is that it depends on.
CREATE FUNCTION tq_shard_internal.of_new_task(task_id tq.slugid, task_group_id tq.slugid, dependencies tq.slugid[]) RETURNS int
	LANGUAGE sql BEGIN ATOMIC
		SELECT CASE WHEN task_group_id IS NOT NULL THEN tq_shard_internal.of_group(task_group_id)
			WHEN task_id IS NOT NULL THEN tq_shard_internal.of_group(task_id)
			WHEN dependencies[1] IS NOT NULL THEN tq_shard_internal.of_task(dependencies[1])
			ELSE tq_shard_internal.of_new() END;
	END;
COMMENT ON FUNCTION tq_shard_internal.of_new_task(tq.slugid, tq.slugid, tq.slugid[]) IS 'partition for a task that is created';

-- A text that is no slugid is the shard's to refuse.
CREATE FUNCTION tq_shard_internal.slugid_of(given text) RETURNS tq.slugid
	LANGUAGE sql BEGIN ATOMIC
		SELECT CASE WHEN given ~ '^[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]$'
			OR given ~ '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$'
			THEN given::tq.slugid END;
	END;
COMMENT ON FUNCTION tq_shard_internal.slugid_of(text) IS 'a text as a slugid, or NULL';

CREATE FUNCTION tq_shard_internal.group_of_definition(task_id tq.slugid, task jsonb) RETURNS tq.slugid
	LANGUAGE sql BEGIN ATOMIC SELECT COALESCE(tq_shard_internal.slugid_of(task ->> 'taskGroupId'), task_id); END;
COMMENT ON FUNCTION tq_shard_internal.group_of_definition(tq.slugid, jsonb) IS 'group of a task that is created from a definition';
CREATE FUNCTION tq_shard_internal.of_definition(task_id tq.slugid, task jsonb) RETURNS int
	LANGUAGE sql BEGIN ATOMIC SELECT tq_shard_internal.of_group(tq_shard_internal.group_of_definition(task_id, task)); END;
COMMENT ON FUNCTION tq_shard_internal.of_definition(tq.slugid, jsonb) IS 'partition for a task that is created from a definition';

CREATE FUNCTION tq_shard_internal.refuse(kind text, name text, hint text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	RAISE EXCEPTION '% tq.%() does not run through a router', kind, name
		USING ERRCODE = 'feature_not_supported', HINT = hint;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.refuse(text, text, text) IS 'error of a function that runs on a shard only';

-- ---------------------------------------------------------------------------
-- Views of tq, with the rows of all shards
-- ---------------------------------------------------------------------------

@views@
-- ---------------------------------------------------------------------------
-- Functions of tq, each by its route
-- ---------------------------------------------------------------------------

@functions@
-- ---------------------------------------------------------------------------
-- Many tasks
-- ---------------------------------------------------------------------------

-- Where a call names tasks of several shards, these call one shard after the other;
-- each does all or nothing of its part.

@create_tasks:at@
@create_tasks@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	partitions int[];
	partition int;
	made bigint := 0;
BEGIN
	IF jsonb_typeof(tasks) = 'array' THEN
		partitions := tq_shard_internal.shards_of(ARRAY(SELECT tq_shard_internal.group_of_definition(
				tq_shard_internal.slugid_of(e.task ->> 'taskId'), e.task -> 'task')
			FROM jsonb_array_elements(tasks) WITH ORDINALITY AS e (task, i) ORDER BY e.i), true);
	END IF;
	IF COALESCE(partitions[1] = ALL (partitions), true) THEN
		RETURN tq_shard_internal.create_tasks_at(COALESCE(1024 + partitions[1], 0), tasks);
	END IF;
	FOR partition IN SELECT DISTINCT p FROM unnest(partitions) AS p ORDER BY 1 LOOP
		made := made + tq_shard_internal.create_tasks_at(1024 + partition,
			(SELECT jsonb_agg(e.task ORDER BY e.i) FROM jsonb_array_elements(tasks) WITH ORDINALITY AS e (task, i) WHERE partitions[e.i] = partition));
	END LOOP;
	RETURN made;
END
$$;
@create_tasks:comment@

@enqueue_tasks:at@
@enqueue_tasks@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	partitions int[];
	partition int;
BEGIN
	IF task_group_id IS NULL AND task_ids IS NOT NULL AND cardinality(task_ids) = cardinality(payloads) THEN
		partitions := tq_shard_internal.shards_of(task_ids, true);
	END IF;
	IF COALESCE(partitions[1] = ALL (partitions), true) THEN
		RETURN tq_shard_internal.enqueue_tasks_at(
			COALESCE(1024 + partitions[1], tq_shard_internal.of_new_task(task_ids[1], task_group_id, dependencies)),
			task_queue_id, payloads, task_ids, task_group_id, dependencies, requires, priority, retries, deadline, expires, delay,
			routes, scopes, tags, extra, name, scheduler_id, project_id, policy, retry, run_at);
	END IF;
	FOR partition IN SELECT DISTINCT p FROM unnest(partitions) AS p ORDER BY 1 LOOP
		PERFORM tq_shard_internal.enqueue_tasks_at(1024 + partition, task_queue_id,
			(SELECT array_agg(i.payload ORDER BY i.n) FROM unnest(payloads) WITH ORDINALITY AS i (payload, n) WHERE partitions[i.n] = partition),
			(SELECT array_agg(i.id ORDER BY i.n) FROM unnest(task_ids) WITH ORDINALITY AS i (id, n) WHERE partitions[i.n] = partition),
			task_group_id, dependencies, requires, priority, retries, deadline, expires, delay,
			routes, scopes, tags, extra, name, scheduler_id, project_id, policy, retry, run_at);
	END LOOP;
	RETURN task_ids::text[];
END
$$;
@enqueue_tasks:comment@

@for statuses tasks@
@it:at@
@it@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	partitions int[] := tq_shard_internal.shards_of(task_ids, false);
BEGIN
	IF COALESCE(partitions[1] = ALL (partitions), true) THEN
		RETURN QUERY SELECT * FROM tq_shard_internal.@it:name@_at(COALESCE(1024 + partitions[1], 0), task_ids);
	ELSE
		RETURN QUERY WITH asked AS MATERIALIZED (
				SELECT i.id, i.n, p.partition
				FROM unnest(task_ids) WITH ORDINALITY AS i (id, n) JOIN unnest(partitions) WITH ORDINALITY AS p (partition, n) USING (n)
			), answered AS MATERIALIZED (
				SELECT s.*
				FROM (SELECT a.partition, array_agg(DISTINCT a.id) AS ids FROM asked a GROUP BY a.partition) AS g
					CROSS JOIN LATERAL tq_shard_internal.@it:name@_at(1024 + g.partition, g.ids) AS s
			)
			SELECT s.* FROM asked a JOIN answered s ON s.task_id = a.id ORDER BY a.n;
	END IF;
END
$$;
@it:comment@
@end@

@redrive_queue:at@
@redrive_queue@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	redriven bigint := 0;
BEGIN
	FOREACH partition IN ARRAY tq_shard_internal.shards() LOOP
		IF redriven < max OR redriven = 0 THEN		-- a number that is not valid is refused by the first shard
			redriven := redriven + tq_shard_internal.redrive_queue_at(1024 + partition, task_queue_id, (max - redriven)::int);
		END IF;
	END LOOP;
	RETURN redriven;
END
$$;
@redrive_queue:comment@

-- ---------------------------------------------------------------------------
-- Work
-- ---------------------------------------------------------------------------

-- A claim is of one shard: the first of them that has work.  Each claim of a session
-- begins with the next shard, and asks those last that had no work a moment ago.  A
-- shard that does not answer is passed over.  With wait, the session sleeps on one
-- shard after the other, at most 200 ms each, and asks the others in between: PL/Proxy
-- has one call at a time.

-- Claims, runs and outcomes go between a router and a shard as lines of text.
CREATE FUNCTION tq_shard_internal.claim_lines_at(on_partition int, task_queue_id text, worker_group text, worker_id text, tasks int, wait interval, claim_for interval, definition bool)
	RETURNS SETOF text
	LANGUAGE plproxy AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON on_partition; SELECT tq_internal.claim_lines($2, $3, $4, $5, $6, $7, $8); $$;
COMMENT ON FUNCTION tq_shard_internal.claim_lines_at(int, text, text, text, int, interval, interval, bool) IS 'tq_internal.claim_lines() on a shard';
CREATE FUNCTION tq_shard_internal.claim_lines_of_queues_at(on_partition int, task_queue_ids text[], worker_group text, worker_id text, tasks int, wait interval, claim_for interval, definition bool, mode text)
	RETURNS SETOF text
	LANGUAGE plproxy AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON on_partition; SELECT tq_internal.claim_lines($2, $3, $4, $5, $6, $7, $8, $9); $$;
COMMENT ON FUNCTION tq_shard_internal.claim_lines_of_queues_at(int, text[], text, text, int, interval, interval, bool, text) IS 'the same for several queues';
CREATE FUNCTION tq_shard_internal.resolve_lines_at(on_partition int, runs text, reason text, credentials jsonb) RETURNS text
	LANGUAGE plproxy AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON on_partition; SELECT tq_internal.resolve_lines($2, $3, $4); $$;
COMMENT ON FUNCTION tq_shard_internal.resolve_lines_at(int, text, text, jsonb) IS 'tq_internal.resolve_lines() on a shard';

CREATE FUNCTION tq_shard_internal.claims(lines text, shard int, worker_group text, worker_id text) RETURNS SETOF tq.claim
	AS 'MODULE_PATHNAME', 'tq_shard_claims' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.claims(text, int, text, text) IS 'claims that a shard has returned as lines';
CREATE FUNCTION tq_shard_internal.queue_claims(lines text, shard int, worker_group text, worker_id text) RETURNS SETOF tq.queue_claim
	AS 'MODULE_PATHNAME', 'tq_shard_queue_claims' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_shard_internal.queue_claims(text, int, text, text) IS 'claims from several queues that a shard has returned as lines';
CREATE FUNCTION tq_shard_internal.runs(task_ids tq.slugid[], run_ids int[]) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_shard_runs' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_shard_internal.runs(tq.slugid[], int[]) IS 'runs as lines, or NULL if these are not two lists of one length';
CREATE FUNCTION tq_shard_internal.resolutions(task_ids tq.slugid[], run_ids int[], outcomes text) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_shard_resolutions' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_shard_internal.resolutions(tq.slugid[], int[], text) IS 'runs with the outcomes that a shard has returned as lines';

CREATE FUNCTION tq_shard_internal.session_worker() RETURNS text[]
	AS '$libdir/tq', 'tq_session_worker' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_shard_internal.session_worker() IS 'worker_group and worker_id of a session that gives none, for all shards';

@claim_work@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	ends timestamptz;
	nap interval := '0';				-- how long a claim waits on one shard
	slice interval;
	asked int;
	failures int;
	failure text;
	noted bool;
BEGIN
	worker_group := COALESCE(worker_group, (tq_shard_internal.session_worker())[1]);
	worker_id := COALESCE(worker_id, (tq_shard_internal.session_worker())[2]);
	-- what is no wait is the shard's to refuse
	IF wait IS NULL OR wait < '0' OR wait > '60 s' THEN
		PERFORM tq_shard_internal.claim_lines_at(1024 + (tq_shard_internal.shards())[1], task_queue_id, worker_group, worker_id, tasks, wait, claim_for, definition);
	END IF;
	LOOP
		asked := 0;
		failures := 0;
		FOREACH partition IN ARRAY tq_shard_internal.claim_order(COALESCE(task_queue_id, ''), tq_shard_internal.shards()) LOOP
			asked := asked + 1;
			BEGIN
				RETURN QUERY SELECT c.* FROM tq_shard_internal.claim_lines_at(1024 + partition, task_queue_id, worker_group, worker_id, tasks, nap, claim_for, definition) AS l (lines),
					tq_shard_internal.claims(l.lines, partition, worker_group, worker_id) AS c;
				IF FOUND THEN
					RETURN;
				END IF;
			EXCEPTION WHEN @no_answer@ THEN
				failures := failures + 1;
				failure := SQLERRM;
				IF ends IS NULL THEN		-- once is enough
					RAISE WARNING 'shard "%" does not answer', (SELECT s.name FROM tq_shard_internal.shard s WHERE s.number = partition) USING DETAIL = failure;
				END IF;
			END;
			noted := tq_shard_internal.note_empty(COALESCE(task_queue_id, ''), partition);
			nap := '0';
		END LOOP;
		IF failures >= asked THEN
			RAISE EXCEPTION 'no shard answers' USING ERRCODE = 'connection_failure', DETAIL = failure, HINT = 'tq_shard.status() shows the shards; repeat the call.';
		END IF;
		EXIT WHEN wait = '0';
		IF ends IS NULL THEN
			ends := clock_timestamp() + wait;
			slice := interval '20 ms';
		ELSE
			slice := LEAST(slice * 1.5, interval '200 ms');
		END IF;
		EXIT WHEN clock_timestamp() >= ends;
		nap := LEAST(slice, ends - clock_timestamp());
	END LOOP;
END
$$;
@claim_work:comment@

@claim_work/2@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	ends timestamptz;
	nap interval := '0';				-- how long a claim waits on one shard
	slice interval;
	asked int;
	failures int;
	failure text;
	noted bool;
BEGIN
	worker_group := COALESCE(worker_group, (tq_shard_internal.session_worker())[1]);
	worker_id := COALESCE(worker_id, (tq_shard_internal.session_worker())[2]);
	-- what is no wait is the shard's to refuse
	IF wait IS NULL OR wait < '0' OR wait > '60 s' THEN
		PERFORM tq_shard_internal.claim_lines_of_queues_at(1024 + (tq_shard_internal.shards())[1], task_queue_ids, worker_group, worker_id, tasks, wait, claim_for, definition, mode);
	END IF;
	LOOP
		asked := 0;
		failures := 0;
		FOREACH partition IN ARRAY tq_shard_internal.claim_order(COALESCE(array_to_string(task_queue_ids, ' '), ''), tq_shard_internal.shards()) LOOP
			asked := asked + 1;
			BEGIN
				RETURN QUERY SELECT c.* FROM tq_shard_internal.claim_lines_of_queues_at(1024 + partition, task_queue_ids, worker_group, worker_id, tasks, nap, claim_for, definition, mode) AS l (lines),
					tq_shard_internal.queue_claims(l.lines, partition, worker_group, worker_id) AS c;
				IF FOUND THEN
					RETURN;
				END IF;
			EXCEPTION WHEN @no_answer@ THEN
				failures := failures + 1;
				failure := SQLERRM;
				IF ends IS NULL THEN		-- once is enough
					RAISE WARNING 'shard "%" does not answer', (SELECT s.name FROM tq_shard_internal.shard s WHERE s.number = partition) USING DETAIL = failure;
				END IF;
			END;
			noted := tq_shard_internal.note_empty(COALESCE(array_to_string(task_queue_ids, ' '), ''), partition);
			nap := '0';
		END LOOP;
		IF failures >= asked THEN
			RAISE EXCEPTION 'no shard answers' USING ERRCODE = 'connection_failure', DETAIL = failure, HINT = 'tq_shard.status() shows the shards; repeat the call.';
		END IF;
		EXIT WHEN wait = '0';
		IF ends IS NULL THEN
			ends := clock_timestamp() + wait;
			slice := interval '20 ms';
		ELSE
			slice := LEAST(slice * 1.5, interval '200 ms');
		END IF;
		EXIT WHEN clock_timestamp() >= ends;
		nap := LEAST(slice, ends - clock_timestamp());
	END LOOP;
END
$$;
@claim_work/2:comment@

@claim_task:at@
@claim_task@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
BEGIN
	worker_group := COALESCE(worker_group, (tq_shard_internal.session_worker())[1]);
	worker_id := COALESCE(worker_id, (tq_shard_internal.session_worker())[2]);
	RETURN QUERY SELECT * FROM tq_shard_internal.claim_task_at(tq_shard_internal.of_task(task_id), @claim_task:names@);
END
$$;
@claim_task:comment@

-- The outcomes alone: a shard answers in the order of the ids.
CREATE FUNCTION tq_shard_internal.outcomes_at(on_partition int, task_ids tq.slugid[], run_ids int[], reason text, credentials jsonb) RETURNS text[]
	LANGUAGE plproxy AS $$ CLUSTER tq_shard_internal.cluster(); RUN ON on_partition;
		SELECT pg_catalog.array_agg(r.outcome) FROM tq.resolve($2, $3, $4, $5) AS r; $$;
COMMENT ON FUNCTION tq_shard_internal.outcomes_at(int, tq.slugid[], int[], text, jsonb) IS 'outcomes of tq.resolve() on a shard';

@resolve@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	runs text := tq_shard_internal.runs(task_ids, run_ids);
	partition int := tq_shard_internal.partition_of_ids(task_ids, false);
	partitions int[];
	part record;
	outcomes text[];
	outcomes_there text[];
BEGIN
	IF runs IS NOT NULL AND partition IS NOT NULL THEN
		RETURN QUERY SELECT * FROM tq_shard_internal.resolutions(task_ids, run_ids, tq_shard_internal.resolve_lines_at(partition, runs, reason, credentials));
		RETURN;
	END IF;
	partitions := tq_shard_internal.shards_of(task_ids, false);
	IF COALESCE(partitions[1] = ALL (partitions), true) OR cardinality(task_ids) IS DISTINCT FROM cardinality(run_ids)
		OR (jsonb_typeof(credentials) = 'array' AND jsonb_array_length(credentials) <> cardinality(task_ids)) THEN
		outcomes := tq_shard_internal.outcomes_at(COALESCE(1024 + partitions[1], 0), task_ids, run_ids, reason, credentials);
	ELSE
		outcomes := array_fill(NULL::text, ARRAY[cardinality(task_ids)]);
		FOR partition IN SELECT DISTINCT p FROM unnest(partitions) AS p ORDER BY 1 LOOP
			SELECT array_agg(i.id ORDER BY i.n) AS ids, array_agg(i.run ORDER BY i.n) AS runs, array_agg(i.n ORDER BY i.n) AS positions,
					CASE WHEN jsonb_typeof(credentials) = 'array' THEN jsonb_agg(credentials -> (i.n - 1)::int ORDER BY i.n) ELSE credentials END AS credentials
				INTO part
				FROM ROWS FROM (unnest(task_ids), unnest(run_ids)) WITH ORDINALITY AS i (id, run, n) WHERE partitions[i.n] = partition;
			outcomes_there := tq_shard_internal.outcomes_at(1024 + partition, part.ids, part.runs, reason, part.credentials);
			FOR i IN 1 .. cardinality(part.positions) LOOP
				outcomes[part.positions[i]] := outcomes_there[i];
			END LOOP;
		END LOOP;
	END IF;
	RETURN QUERY SELECT i.id, i.run, i.outcome FROM ROWS FROM (unnest(task_ids), unnest(run_ids), unnest(outcomes)) AS i (id, run, outcome);
END
$$;
@resolve:comment@

-- The shard of each report of resolve(reports).
CREATE FUNCTION tq_shard_internal.partitions_of_reports(reports jsonb) RETURNS int[]
	LANGUAGE sql BEGIN ATOMIC
		SELECT CASE WHEN jsonb_typeof(reports) = 'array' THEN tq_shard_internal.shards_of(ARRAY(
			SELECT tq_shard_internal.slugid_of(e.report ->> 'taskId')
			FROM jsonb_array_elements(reports) WITH ORDINALITY AS e (report, n) ORDER BY e.n), false) END;
	END;
COMMENT ON FUNCTION tq_shard_internal.partitions_of_reports(jsonb) IS 'the shard of each report';

@resolve/2:at@
@resolve/2@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	partitions int[] := tq_shard_internal.partitions_of_reports(reports);
	partition int;
	part record;
	positions bigint[] := '{}';
	outcomes tq.resolution[] := '{}';
BEGIN
	IF COALESCE(partitions[1] = ALL (partitions), true) THEN
		RETURN QUERY SELECT * FROM tq_shard_internal.resolve_2_at(COALESCE(1024 + partitions[1], 0), reports);
		RETURN;
	END IF;
	FOR partition IN SELECT DISTINCT p FROM unnest(partitions) AS p ORDER BY 1 LOOP
		SELECT jsonb_agg(e.report ORDER BY e.n) AS reports, array_agg(e.n ORDER BY e.n) AS positions INTO part
			FROM jsonb_array_elements(reports) WITH ORDINALITY AS e (report, n) WHERE partitions[e.n] = partition;
		positions := positions || part.positions;
		outcomes := outcomes || ARRAY(SELECT r FROM tq_shard_internal.resolve_2_at(1024 + partition, part.reports) AS r);
	END LOOP;
	RETURN QUERY SELECT o.task_id, o.run_id, o.outcome FROM ROWS FROM (unnest(outcomes), unnest(positions)) AS o (task_id, run_id, outcome, position) ORDER BY o.position;
END
$$;
@resolve/2:comment@

@resolve_and_claim:at@
@resolve_and_claim@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	cluster text := tq_shard_internal.cluster();		-- before the map is read
	partitions int[] := tq_shard_internal.partitions_of_reports(reports);
	claimed bool := false;
	answer tq.worker_run;
BEGIN
	worker_group := COALESCE(worker_group, (tq_shard_internal.session_worker())[1]);
	worker_id := COALESCE(worker_id, (tq_shard_internal.session_worker())[2]);
	IF COALESCE(partitions[1] = ALL (partitions), true) THEN
		FOR answer IN SELECT * FROM tq_shard_internal.resolve_and_claim_at(
			COALESCE(1024 + partitions[1], tq_shard_internal.of_new()), reports, task_queue_id, worker_group, worker_id, tasks, claim_for, definition) LOOP
			claimed := claimed OR answer.worker_group IS NOT NULL;
			RETURN NEXT answer;
		END LOOP;
	ELSE
		RETURN QUERY SELECT r.task_id, r.run_id, r.outcome, NULL::text, NULL::text, NULL::timestamptz, NULL::jsonb, NULL::jsonb, NULL::jsonb, NULL::jsonb FROM tq.resolve(reports) AS r;
	END IF;
	IF NOT claimed THEN
		RETURN QUERY SELECT c.task_id, c.run_id, 'claimed', c.worker_group, c.worker_id, c.taken_until, c.payload, c.credentials, c.task, c.status
			FROM tq.claim_work(task_queue_id, worker_group, worker_id, tasks, claim_for => resolve_and_claim.claim_for, definition => resolve_and_claim.definition) AS c;
	END IF;
END
$$;
@resolve_and_claim:comment@

-- The errors of the shards.
CREATE FUNCTION tq_shard_internal.check_wait(wait interval, most interval) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET intervalstyle = postgres
	AS $$
BEGIN
	IF wait IS NULL THEN
		RAISE EXCEPTION 'wait must not be NULL' USING ERRCODE = 'TQ400',
			DETAIL = 'The argument wait is NULL.', HINT = 'Give a value for wait.';
	ELSIF wait < '0' OR wait > most THEN
		RAISE EXCEPTION 'wait is out of range' USING ERRCODE = 'TQ400',
			DETAIL = format('It is %s, and may be from 0 to %s seconds.', wait, extract(epoch FROM most)::int),
			HINT = 'Give an interval in that range, and call again when it is over.';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.check_wait(interval, interval) IS 'error if a session may not wait that long';

-- A procedure that commits can have no search_path of its own: these have one, and evaluate
-- what the waits below need.
CREATE FUNCTION tq_shard_internal.end_of_task(task_id tq.slugid) RETURNS text
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$ BEGIN RETURN (SELECT s ->> 'state' FROM tq.status(task_id) AS s WHERE s ->> 'state' IN ('completed', 'failed', 'exception')); END $$;
COMMENT ON FUNCTION tq_shard_internal.end_of_task(tq.slugid) IS 'state of a task that is resolved; NULL: it is not';
CREATE FUNCTION tq_shard_internal.end_of_group(task_group_id tq.slugid) RETURNS text
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$ BEGIN RETURN (SELECT CASE WHEN p.blocked THEN 'blocked' ELSE p.outcome END FROM tq.group_progress(task_group_id) AS p); END $$;
COMMENT ON FUNCTION tq_shard_internal.end_of_group(tq.slugid) IS 'outcome of a task group, or blocked; NULL: it may go on';
CREATE FUNCTION tq_shard_internal.end_of(wait interval) RETURNS timestamptz
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM tq_shard_internal.check_wait(wait, '1 hour');
	RETURN clock_timestamp() + wait;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.end_of(interval) IS 'when a wait ends';
CREATE FUNCTION tq_shard_internal.sleep_once(pause float8, ends timestamptz) RETURNS float8
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM pg_sleep(LEAST(pause, extract(epoch FROM ends - clock_timestamp())));
	RETURN LEAST(pause * 1.5, 0.5);
END
$$;
COMMENT ON FUNCTION tq_shard_internal.sleep_once(float8, timestamptz) IS 'a pause, at most until that time; the next pause';

-- Asks the shard again and again, less often as time goes on.
@wait_for_task@
	LANGUAGE plpgsql
	AS $$
DECLARE
	ends timestamptz := tq_shard_internal.end_of(wait);
	pause float8 := 0.005;
BEGIN
	LOOP
		result := tq_shard_internal.end_of_task(task_id);
		EXIT WHEN result IS NOT NULL OR pg_catalog.clock_timestamp() >= ends;
		COMMIT;
		pause := tq_shard_internal.sleep_once(pause, ends);
	END LOOP;
	result := COALESCE(result, 'unresolved');
END
$$;
@wait_for_task:comment@

@wait_for_task_group@
	LANGUAGE plpgsql
	AS $$
DECLARE
	ends timestamptz := tq_shard_internal.end_of(wait);
	pause float8 := 0.005;
BEGIN
	LOOP
		result := tq_shard_internal.end_of_group(task_group_id);
		EXIT WHEN result IS NOT NULL OR pg_catalog.clock_timestamp() >= ends;
		COMMIT;
		pause := tq_shard_internal.sleep_once(pause, ends);
	END LOOP;
	result := COALESCE(result, 'unresolved');
END
$$;
@wait_for_task_group:comment@

-- ---------------------------------------------------------------------------
-- Workers and queues
-- ---------------------------------------------------------------------------

-- What all shards have that know a worker or a queue; the error of the last one if
-- none does.
CREATE FUNCTION tq_shard_internal.later(one jsonb, other jsonb) RETURNS jsonb
	LANGUAGE sql BEGIN ATOMIC
		SELECT CASE WHEN one IS NULL THEN other ELSE one || other
			|| jsonb_strip_nulls(jsonb_build_object('expires', GREATEST(one ->> 'expires', other ->> 'expires'),
				'lastDateActive', GREATEST(one ->> 'lastDateActive', other ->> 'lastDateActive'),
				'firstClaim', LEAST(one ->> 'firstClaim', other ->> 'firstClaim')))
			|| CASE WHEN one ? 'recentTasks' THEN jsonb_build_object('recentTasks', (SELECT COALESCE(jsonb_agg(t.task ORDER BY t.n DESC), '[]')
				FROM (SELECT a.task, a.n FROM jsonb_array_elements((one -> 'recentTasks') || (other -> 'recentTasks')) WITH ORDINALITY AS a (task, n)
					ORDER BY a.n DESC LIMIT 20) AS t)) ELSE '{}' END END;
	END;
COMMENT ON FUNCTION tq_shard_internal.later(jsonb, jsonb) IS 'what two shards know about a worker or a queue, as one';

@for get_worker get_task_queue@
@it:at@
@it@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	answer jsonb;
	seen int := 0;
BEGIN
	FOREACH partition IN ARRAY tq_shard_internal.shards() LOOP
		seen := seen + 1;
		BEGIN
			answer := tq_shard_internal.later(answer, tq_shard_internal.@it:name@_at(1024 + partition, @it:names@));
		EXCEPTION WHEN SQLSTATE 'TQ404' THEN
			IF answer IS NULL AND seen = cardinality(tq_shard_internal.shards()) THEN
				RAISE;
			END IF;
		END;
	END LOOP;
	RETURN answer;
END
$$;
@it:comment@
@end@

-- A shard that does not know the worker makes it known first, because it may claim
-- there next.  Where all shards do not, the error is that of the last one.
@quarantine_worker:at@
@declare_worker:at@
@quarantine_worker@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	shards int[] := tq_shard_internal.shards();
	partition int;
	answer jsonb;
	unknown int[] := '{}';
BEGIN
	FOREACH partition IN ARRAY shards LOOP
		BEGIN
			answer := tq_shard_internal.quarantine_worker_at(1024 + partition, @quarantine_worker:names@);
		EXCEPTION WHEN SQLSTATE 'TQ404' THEN
			unknown := unknown || partition;
			IF unknown = shards THEN
				RAISE;
			END IF;
		END;
	END LOOP;
	IF quarantine_until > clock_timestamp() THEN
		FOREACH partition IN ARRAY unknown LOOP
			PERFORM tq_shard_internal.declare_worker_at(1024 + partition, task_queue_id, worker_group, worker_id, quarantine_until, NULL, NULL);
			PERFORM tq_shard_internal.quarantine_worker_at(1024 + partition, @quarantine_worker:names@);
		END LOOP;
	END IF;
	RETURN answer;
END
$$;
@quarantine_worker:comment@

@task_queue_counts:all@
@task_queue_counts@
	LANGUAGE sql BEGIN ATOMIC
		SELECT (array_agg(c))[1] || jsonb_build_object('pendingTasks', sum((c -> 'pendingTasks')::bigint), 'claimedTasks', sum((c -> 'claimedTasks')::bigint))
		FROM tq_shard_internal.task_queue_counts_all(task_queue_id) AS c;
	END;
@task_queue_counts:comment@

-- The partition in a list of runs is that on each shard: "0=17 2=4".
CREATE FUNCTION tq_shard_internal.page_at(after text, shard int) RETURNS text
	LANGUAGE sql BEGIN ATOMIC
		SELECT split_part(p, '=', 2) FROM unnest(string_to_array(after, ' ')) AS p WHERE split_part(p, '=', 1) = shard::text;
	END;
COMMENT ON FUNCTION tq_shard_internal.page_at(text, int) IS 'the partition on a shard, of a partition in a list';

CREATE FUNCTION tq_shard_internal.is_page(after text) RETURNS bool
	LANGUAGE sql IMMUTABLE BEGIN ATOMIC
		SELECT COALESCE(after ~ '^\d+=-?[0-9.]+( \d+=-?[0-9.]+)*$', true);
	END;
COMMENT ON FUNCTION tq_shard_internal.is_page(text) IS 'whether this may be a partition in a list';

-- A partition that only a shard knows.
CREATE FUNCTION tq_shard_internal.refuse_page(after text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	RAISE EXCEPTION 'invalid after "%"', after USING ERRCODE = 'TQ400',
		DETAIL = 'No row of this list has it as its page.', HINT = 'Give the page of the last row, or NULL.';
END
$$;
COMMENT ON FUNCTION tq_shard_internal.refuse_page(text) IS 'error of a partition that is not one of the router';

@list_pending_tasks:at@
@list_pending_tasks@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partitions jsonb;
	row_ record;
BEGIN
	IF NOT tq_shard_internal.is_page(after) THEN		-- the shard refuses it, after other arguments
		PERFORM tq_shard_internal.list_pending_tasks_at(1024 + (tq_shard_internal.shards())[1], task_queue_id, after, max);
		PERFORM tq_shard_internal.refuse_page(after);
	END IF;
	SELECT jsonb_object_agg(s, tq_shard_internal.page_at(after, s)) INTO partitions FROM unnest(tq_shard_internal.shards()) AS s;
	-- A shard lists in the order of claims, in which the times may fall: its rows stay in that order.
	FOR row_ IN SELECT s.shard, p.* FROM unnest(tq_shard_internal.shards()) AS s (shard)
		CROSS JOIN LATERAL tq_shard_internal.list_pending_tasks_at(1024 + s.shard, task_queue_id, partitions ->> s.shard::text, max) WITH ORDINALITY AS p
		ORDER BY max(p.inserted) OVER (PARTITION BY s.shard ORDER BY p.ordinality), s.shard, p.ordinality LIMIT GREATEST(max, 1) LOOP
		partitions := partitions || jsonb_build_object(row_.shard, row_.page);
		RETURN NEXT (row_.task_id, row_.run_id, row_.task, row_.inserted,
			(SELECT string_agg(e.key || '=' || e.value, ' ' ORDER BY e.key::int) FROM jsonb_each_text(partitions) AS e WHERE e.value IS NOT NULL))::tq.pending_entry;
	END LOOP;
END
$$;
@list_pending_tasks:comment@

@list_claimed_tasks:at@
@list_claimed_tasks@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partitions jsonb;
	row_ record;
BEGIN
	IF NOT tq_shard_internal.is_page(after) THEN		-- the shard refuses it, after other arguments
		PERFORM tq_shard_internal.list_claimed_tasks_at(1024 + (tq_shard_internal.shards())[1], task_queue_id, after, max);
		PERFORM tq_shard_internal.refuse_page(after);
	END IF;
	SELECT jsonb_object_agg(s, tq_shard_internal.page_at(after, s)) INTO partitions FROM unnest(tq_shard_internal.shards()) AS s;
	FOR row_ IN SELECT s.shard, p.* FROM unnest(tq_shard_internal.shards()) AS s (shard)
		CROSS JOIN LATERAL tq_shard_internal.list_claimed_tasks_at(1024 + s.shard, task_queue_id, partitions ->> s.shard::text, max) AS p
		ORDER BY p.claimed, s.shard, length(p.page), p.page LIMIT GREATEST(max, 1) LOOP
		partitions := partitions || jsonb_build_object(row_.shard, row_.page);
		RETURN NEXT (row_.task_id, row_.run_id, row_.worker_group, row_.worker_id, row_.claimed, row_.task,
			(SELECT string_agg(e.key || '=' || e.value, ' ' ORDER BY e.key::int) FROM jsonb_each_text(partitions) AS e WHERE e.value IS NOT NULL))::tq.claimed_entry;
	END LOOP;
END
$$;
@list_claimed_tasks:comment@

@list_task_queues:all@
@list_task_queues@
	LANGUAGE sql BEGIN ATOMIC
		SELECT q.task_queue_id, q.provisioner_id, q.worker_type, max(q.expires), max(q.last_date_active), q.description, q.stability, q.page
		FROM tq_shard_internal.list_task_queues_all(after, list_task_queues.max) AS q
		GROUP BY q.task_queue_id, q.provisioner_id, q.worker_type, q.description, q.stability, q.page
		ORDER BY q.page COLLATE "C" LIMIT GREATEST(list_task_queues.max, 1);
	END;
@list_task_queues:comment@

@list_workers:all@
@list_workers@
	LANGUAGE sql BEGIN ATOMIC
		SELECT w.worker_group, w.worker_id, min(w.first_claim), max(w.last_date_active),
			(array_agg(w.latest_task_id ORDER BY w.last_date_active DESC NULLS LAST))[1],
			(array_agg(w.latest_run_id ORDER BY w.last_date_active DESC NULLS LAST))[1], max(w.quarantine_until), w.page
		FROM tq_shard_internal.list_workers_all(list_workers.task_queue_id, quarantined, after, list_workers.max) AS w
		GROUP BY w.worker_group, w.worker_id, w.page
		ORDER BY w.worker_group COLLATE "C", w.worker_id COLLATE "C" LIMIT GREATEST(list_workers.max, 1);
	END;
@list_workers:comment@

@health:at@
@health@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	shard record;
BEGIN
	FOR shard IN SELECT s.number, s.name AS known_as FROM tq_shard_internal.shard s ORDER BY s.number LOOP
		BEGIN
			RETURN QUERY SELECT shard.known_as || ': ' || h.name, h.ok, h.detail, h.hint FROM tq_shard_internal.health_at(1024 + shard.number, thresholds) AS h;
		EXCEPTION WHEN @no_answer@ THEN
			RETURN QUERY SELECT shard.known_as || ': connection', false, SQLERRM, 'the shard does not answer'::text;
		END;
	END LOOP;
END
$$;
@health:comment@

-- ---------------------------------------------------------------------------
-- Messages
-- ---------------------------------------------------------------------------

-- A subscription has a cursor on each shard.  What a role fetches here gets ids of the
-- router, which only grow, for each shard in the order of its ids; ack() of one acknowledges on
-- each shard what was fetched up to it.  Each role has ids of its own, so that no role
-- needs rights to what others fetched.
CREATE SEQUENCE tq_shard_internal.message_id;
CREATE TABLE tq_shard_internal.message (
	role name NOT NULL DEFAULT current_user,
	subscription text NOT NULL,
	id bigint NOT NULL DEFAULT nextval('tq_shard_internal.message_id'),
	shard int NOT NULL,
	shard_id bigint NOT NULL,
	PRIMARY KEY (role, subscription, id),
	UNIQUE (role, subscription, shard, shard_id)
);
COMMENT ON TABLE tq_shard_internal.message IS 'messages that were fetched through the router, and are not acknowledged: id on the router, and on the shard';
ALTER TABLE tq_shard_internal.message ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tq_shard_internal.message USING (role = current_user);
SELECT pg_catalog.pg_extension_config_dump('tq_shard_internal.message_id', '');
SELECT pg_catalog.pg_extension_config_dump('tq_shard_internal.message', '');

@fetch:at@
@ack:at@
@unsubscribe:all@
-- Those of a shard that does not answer come later.
CREATE FUNCTION tq_shard_internal.fetch_of(shard int, name text, max int) RETURNS SETOF tq.exchange_message
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	RETURN QUERY SELECT * FROM tq_shard_internal.fetch_at(1024 + shard, name, max);
EXCEPTION WHEN @no_answer@ THEN
	RAISE WARNING 'shard "%" does not answer', (SELECT s.name FROM tq_shard_internal.shard s WHERE s.number = shard) USING DETAIL = SQLERRM;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.fetch_of(int, text, int) IS 'tq.fetch() on a shard; nothing if it does not answer';

CREATE FUNCTION tq_shard_internal.lock_subscription(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_shard_lock_subscription' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_shard_internal.lock_subscription(text) IS 'locks a subscription of the role until the end of the transaction';

@fetch@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM tq_shard_internal.lock_subscription(name);
	RETURN QUERY
		WITH fetched AS MATERIALIZED (
			SELECT s.shard, f.*, k.id AS known, max(f.published) OVER (PARTITION BY s.shard ORDER BY f.id) AS reached
			FROM unnest(tq_shard_internal.shards()) AS s (shard)
				CROSS JOIN LATERAL tq_shard_internal.fetch_of(s.shard, name, max) AS f
				LEFT JOIN tq_shard_internal.message k
					ON k.role = current_user AND k.subscription = name AND k.shard = s.shard AND k.shard_id = f.id
		), page AS MATERIALIZED (
			SELECT f.* FROM fetched f ORDER BY f.known NULLS LAST, f.reached, f.shard, f.id LIMIT GREATEST(max, 1)
		), numbered AS (
			INSERT INTO tq_shard_internal.message AS m (subscription, shard, shard_id)
				SELECT name, p.shard, p.id FROM page p WHERE p.known IS NULL ORDER BY p.reached, p.shard, p.id
				ON CONFLICT DO NOTHING		-- in an older snapshot than what another session has fetched: 40001
				RETURNING m.id, m.shard, m.shard_id
		)
		SELECT COALESCE(p.known, n.id), p.exchange, p.routing_key, p.cc, p.payload, p.published
		FROM page p LEFT JOIN numbered n ON n.shard = p.shard AND n.shard_id = p.id
		ORDER BY 1;
END
$$;
@fetch:comment@

@ack@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	part record;
BEGIN
	IF id IS NULL THEN
		PERFORM tq_shard_internal.ack_at(1024 + (tq_shard_internal.shards())[1], name, NULL);		-- refused
	END IF;
	PERFORM tq_shard_internal.lock_subscription(name);
	FOR part IN SELECT m.shard, max(m.shard_id) AS shard_id FROM tq_shard_internal.message m
		WHERE m.role = current_user AND m.subscription = name AND m.id <= ack.id AND m.shard = ANY (tq_shard_internal.shards())
		GROUP BY m.shard ORDER BY m.shard LOOP
		PERFORM tq_shard_internal.ack_at(1024 + part.shard, name, part.shard_id);
	END LOOP;
	IF NOT FOUND THEN
		-- nothing to acknowledge: the error of a shard, if there is one
		PERFORM tq_shard_internal.ack_at(1024 + (tq_shard_internal.shards())[1], name, 0);
	END IF;
	DELETE FROM tq_shard_internal.message m WHERE m.role = current_user AND m.subscription = name AND m.id <= ack.id;
END
$$;
@ack:comment@

@unsubscribe@
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM tq_shard_internal.unsubscribe_all(name);
	DELETE FROM tq_shard_internal.message m WHERE m.role = current_user AND m.subscription = name;
END
$$;
@unsubscribe:comment@

-- ---------------------------------------------------------------------------
-- Shards
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_shard_internal.set_buckets_at(on_partition int, buckets text) RETURNS xid8
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq_internal.set_buckets($2::pg_catalog.int4multirange); $$;
COMMENT ON FUNCTION tq_shard_internal.set_buckets_at(int, text) IS 'tq_internal.set_buckets() on a shard';
CREATE FUNCTION tq_shard_internal.buckets_settled_at(on_partition int, xid xid8) RETURNS bool
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq_internal.buckets_settled($2); $$;
COMMENT ON FUNCTION tq_shard_internal.buckets_settled_at(int, xid8) IS 'tq_internal.buckets_settled() on a shard';
CREATE FUNCTION tq_shard_internal.used_buckets_at(on_partition int, OUT bucket int, OUT task_groups bigint, OUT unresolved bigint) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT * FROM tq_internal.bucket_counts(); $$;
COMMENT ON FUNCTION tq_shard_internal.used_buckets_at(int) IS 'tq_internal.bucket_counts() on a shard';
-- The ids of groups and tasks, also of those that are to come: by the end of a group, or
-- of a dead letter whose task has expired.
CREATE FUNCTION tq_shard_internal.task_buckets_at(on_partition int) RETURNS SETOF int
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT DISTINCT tq_internal.bucket(x.id) FROM (SELECT t.task_id AS id FROM tq_internal.task AS t UNION ALL SELECT pg_catalog.unnest(ARRAY[l.task_id, (l.definition ->> 'taskGroupId')::tq.slugid]) FROM tq_internal.dead_letter AS l
			UNION ALL SELECT c.task_group_id FROM tq_internal.group_callback AS c) AS x; $$;
COMMENT ON FUNCTION tq_shard_internal.task_buckets_at(int) IS 'buckets of the ids of the tasks that a shard has';
CREATE FUNCTION tq_shard_internal.few_buckets_at(on_partition int, most int) RETURNS int[]
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT CASE WHEN pg_catalog.count(*) <= $2 THEN COALESCE(pg_catalog.array_agg(DISTINCT tq_internal.bucket(x.id)), '{}') END
		FROM (SELECT * FROM (SELECT t.task_id AS id FROM tq_internal.task AS t UNION ALL SELECT g.task_group_id FROM tq_internal.task_group AS g
			UNION ALL SELECT pg_catalog.unnest(ARRAY[l.task_id, (l.definition ->> 'taskGroupId')::tq.slugid]) FROM tq_internal.dead_letter AS l UNION ALL SELECT c.task_group_id FROM tq_internal.group_callback AS c) AS a LIMIT $2 + 1) AS x; $$;
COMMENT ON FUNCTION tq_shard_internal.few_buckets_at(int, int) IS 'buckets of the groups and tasks that a shard has, if they are that few, or NULL';
CREATE FUNCTION tq_shard_internal.identity_at(on_partition int, OUT database text, OUT buckets text) RETURNS record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT pg_catalog.concat(c.system_identifier, '/', d.oid) AS database, COALESCE(tq_internal.buckets()::text, '{[0,1024)}') AS buckets
		FROM pg_catalog.pg_control_system() AS c CROSS JOIN pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database(); $$;
COMMENT ON FUNCTION tq_shard_internal.identity_at(int) IS 'which database a shard is, and which buckets it begins groups in';

-- Buckets as a multirange, and the other way round.
CREATE FUNCTION tq_shard_internal.ranges(buckets int[]) RETURNS int4multirange
	LANGUAGE sql IMMUTABLE BEGIN ATOMIC
		SELECT COALESCE(range_agg(int4range(b, b + 1)), '{}') FROM unnest(buckets) AS b;
	END;
COMMENT ON FUNCTION tq_shard_internal.ranges(int[]) IS 'buckets as ranges';

-- Gives a cluster of PL/Proxy its 2048 partitions.
CREATE FUNCTION tq_shard_internal.apply_cluster(cluster text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	options text;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = cluster) THEN
		EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER plproxy OPTIONS (p0 '''')', cluster);
		EXECUTE format('GRANT USAGE ON FOREIGN SERVER %I TO PUBLIC', cluster);
		EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER %I', cluster);
	END IF;
	WITH wanted AS (
		SELECT 'p' || b.bucket AS option, s.connection
			FROM tq_shard_internal.bucket b JOIN tq_shard_internal.shard s ON s.number = b.shard
		UNION ALL
		SELECT 'p' || 1024 + n, COALESCE((SELECT s.connection FROM tq_shard_internal.shard s WHERE s.number = n),
				(SELECT s.connection FROM tq_shard_internal.shard s ORDER BY s.number LIMIT 1))
			FROM generate_series(0, 1023) AS n
	), present AS (
		SELECT o.option_name, o.option_value
		FROM pg_foreign_server f CROSS JOIN LATERAL pg_options_to_table(f.srvoptions) AS o WHERE f.srvname = cluster
	)
	SELECT string_agg(format('%s %I %L', CASE WHEN p.option_name IS NULL THEN 'ADD' ELSE 'SET' END, w.option, w.connection), ', ')
		INTO options
		FROM wanted w LEFT JOIN present p ON p.option_name = w.option
		WHERE p.option_value IS DISTINCT FROM w.connection;
	IF options IS NOT NULL THEN
		EXECUTE format('ALTER SERVER %I OPTIONS (%s)', cluster, options);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.apply_cluster(text) IS 'makes a cluster of PL/Proxy of the map';

-- Makes clusters and functions of the tables, so that sessions follow the map from
-- their next statement on.
CREATE FUNCTION tq_shard_internal.apply_map() RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	moved int4multirange;
	open_ int[];
	certain int[];				-- shards of buckets, and -1 where a bucket was moved
	numbers int[];
BEGIN
	IF NOT EXISTS (SELECT FROM tq_shard_internal.bucket) THEN
		RETURN;
	END IF;
	PERFORM tq_shard_internal.apply_cluster('tq_shard');
	PERFORM tq_shard_internal.apply_cluster('tq_shard_lookup');
	SELECT tq_shard_internal.ranges(array_agg(b.bucket) FILTER (WHERE cardinality(b.old) > 0 OR b.next IS NOT NULL)),
			array_agg(b.bucket) FILTER (WHERE b.next IS NULL),
			array_agg(CASE WHEN cardinality(b.old) > 0 OR b.next IS NOT NULL THEN -1 ELSE b.shard END ORDER BY b.bucket)
		INTO moved, open_, certain
		FROM tq_shard_internal.bucket b;
	SELECT array_agg(s.number ORDER BY s.number) INTO numbers FROM tq_shard_internal.shard s WHERE s.state <> 'joining';
	IF isempty(moved) THEN
		EXECUTE 'CREATE OR REPLACE FUNCTION tq_shard_internal.of_task(id tq.slugid) RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT COALESCE(tq_shard_internal.bucket(id), 0); END';
		EXECUTE 'CREATE OR REPLACE FUNCTION tq_shard_internal.of_group(id tq.slugid) RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT COALESCE(tq_shard_internal.bucket(id), 0); END';
	ELSE
		EXECUTE format('CREATE OR REPLACE FUNCTION tq_shard_internal.of_task(id tq.slugid) RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT CASE WHEN tq_shard_internal.bucket(id) <@ %L::int4multirange THEN tq_shard_internal.find(id, false) ELSE COALESCE(tq_shard_internal.bucket(id), 0) END; END', moved);
		EXECUTE format('CREATE OR REPLACE FUNCTION tq_shard_internal.of_group(id tq.slugid) RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT CASE WHEN tq_shard_internal.bucket(id) <@ %L::int4multirange THEN tq_shard_internal.find(id, true) ELSE COALESCE(tq_shard_internal.bucket(id), 0) END; END', moved);
	END IF;
	IF cardinality(open_) < 1024 THEN
		EXECUTE format('CREATE OR REPLACE FUNCTION tq_shard_internal.of_new() RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT (%L::int[])[1 + floor(random() * %s)::int]; END', open_, cardinality(open_));
	ELSE
		EXECUTE 'CREATE OR REPLACE FUNCTION tq_shard_internal.of_new() RETURNS int LANGUAGE sql
			BEGIN ATOMIC SELECT floor(random() * 1024)::int; END';
	END IF;
	EXECUTE format('CREATE OR REPLACE FUNCTION tq_shard_internal.shards() RETURNS int[] LANGUAGE sql
		BEGIN ATOMIC SELECT %L::int[]; END', numbers);
	EXECUTE format('CREATE OR REPLACE FUNCTION tq_shard_internal.partition_of_ids(ids tq.slugid[], are_groups bool) RETURNS int LANGUAGE sql
		BEGIN ATOMIC SELECT tq_shard_internal.one_partition(ids, are_groups, %L::int[]); END', certain);
END
$$;
COMMENT ON FUNCTION tq_shard_internal.apply_map() IS 'makes the clusters of PL/Proxy, and the functions that name a partition, of the map';

-- Only one session changes the map at a time.
CREATE FUNCTION tq_shard_internal.lock_map(over_commits bool) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_shard_lock_map' LANGUAGE C;
COMMENT ON FUNCTION tq_shard_internal.lock_map(bool) IS 'locks the map until the end of the transaction, or over commits until unlock_map() or an error';
CREATE FUNCTION tq_shard_internal.unlock_map() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_shard_unlock_map' LANGUAGE C;
COMMENT ON FUNCTION tq_shard_internal.unlock_map() IS 'ends lock_map(true)';

-- Procedures that commit have no search_path of their own.  So what they do is in
-- functions that have one, which they call by their full names.

-- Moves each bucket that has a next shard there.  In this order no two shards ever
-- begin groups of one bucket: those that lose buckets first, then a wait until no
-- transaction there follows the earlier set, then those that win them, then the
-- router.  What is interrupted goes on when it is called again.
CREATE FUNCTION tq_shard_internal.take_buckets() RETURNS jsonb
	LANGUAGE sql SET search_path = pg_catalog, pg_temp BEGIN ATOMIC
		SELECT COALESCE(jsonb_object_agg(l.shard, tq_shard_internal.set_buckets_at(1024 + l.shard, (tq_shard_internal.ranges(l.kept))::text)), '{}')
		FROM (SELECT b.shard, array_agg(b.bucket) FILTER (WHERE b.next IS NULL) AS kept FROM tq_shard_internal.bucket b
			GROUP BY b.shard HAVING bool_or(b.next IS NOT NULL)) AS l;
	END;
COMMENT ON FUNCTION tq_shard_internal.take_buckets() IS 'takes the buckets that are moved from the shards; returns the transaction of each';

CREATE FUNCTION tq_shard_internal.are_taken(changes jsonb) RETURNS bool
	LANGUAGE sql SET search_path = pg_catalog, pg_temp BEGIN ATOMIC
		SELECT COALESCE(bool_and(tq_shard_internal.buckets_settled_at(1024 + c.key::int, c.value::xid8)), true) FROM jsonb_each_text(changes) AS c;
	END;
COMMENT ON FUNCTION tq_shard_internal.are_taken(jsonb) IS 'whether no transaction on these shards begins groups in the buckets that were taken';

-- A shard that has few ids is asked at once which buckets they are of.  In those that
-- it has lost it begins no group any more, so the others are not looked up there.  One
-- that has many is left to tq_shard.refresh(), because it would read them all.
CREATE FUNCTION tq_shard_internal.give_buckets() RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	kept int[];
BEGIN
	FOR partition IN SELECT DISTINCT b.next FROM tq_shard_internal.bucket b WHERE b.next IS NOT NULL ORDER BY 1 LOOP
		PERFORM tq_shard_internal.set_buckets_at(1024 + partition,
			(SELECT tq_shard_internal.ranges(array_agg(b.bucket))::text FROM tq_shard_internal.bucket b WHERE COALESCE(b.next, b.shard) = partition));
	END LOOP;
	FOR partition IN SELECT DISTINCT b.shard FROM tq_shard_internal.bucket b WHERE b.next IS NOT NULL ORDER BY 1 LOOP
		kept := tq_shard_internal.few_buckets_at(1024 + partition, 10000);
		UPDATE tq_shard_internal.bucket b SET old = array_remove(array_remove(b.old, partition), b.next) || CASE WHEN kept IS NULL OR b.bucket = ANY (kept) THEN ARRAY[partition] ELSE '{}' END,
				shard = b.next, next = NULL
			WHERE b.shard = partition AND b.next IS NOT NULL;
	END LOOP;
	UPDATE tq_shard_internal.shard SET state = 'active' WHERE state = 'joining';
	UPDATE tq_shard_internal.version SET version = version + 1, changed = now();
	PERFORM tq_shard_internal.apply_map();
END
$$;
COMMENT ON FUNCTION tq_shard_internal.give_buckets() IS 'gives the buckets that were taken to their next shards, and ends the move';

CREATE FUNCTION tq_shard_internal.longer(pause float8) RETURNS float8
	LANGUAGE sql BEGIN ATOMIC SELECT LEAST(pause * 2::float8, 0.5::float8); END;
COMMENT ON FUNCTION tq_shard_internal.longer(float8) IS 'the next pause between two looks';

CREATE PROCEDURE tq_shard_internal.move()
	LANGUAGE plpgsql
	AS $$
DECLARE
	changes jsonb;
	pause float8 := 0.01;
BEGIN
	PERFORM tq_shard_internal.apply_map();		-- no new group in a bucket that is moved, whose ids are looked up from now on
	COMMIT;
	changes := tq_shard_internal.take_buckets();
	WHILE NOT tq_shard_internal.are_taken(changes) LOOP
		COMMIT;
		PERFORM pg_catalog.pg_sleep(pause);
		pause := tq_shard_internal.longer(pause);
	END LOOP;
	PERFORM tq_shard_internal.give_buckets();
	COMMIT;
END
$$;
COMMENT ON PROCEDURE tq_shard_internal.move() IS 'moves the buckets that have a next shard';

-- What the others have by functions that run on all shards: a shard that is added gets
-- it from one of them.
CREATE FUNCTION tq_shard_internal.grants_at(on_partition int, OUT role text, OUT scopes text[]) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT r.rolname::pg_catalog.text AS role, pg_catalog.array_agg(g.scope) AS scopes FROM tq_internal.scope_grant AS g JOIN pg_catalog.pg_roles AS r ON r.oid = g.role GROUP BY 1; $$;
COMMENT ON FUNCTION tq_shard_internal.grants_at(int) IS 'scopes of roles on a shard';
CREATE FUNCTION tq_shard_internal.grant_at(on_partition int, role text, scopes text[]) RETURNS void
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq.grant_scopes(pg_catalog.quote_ident($2)::pg_catalog.regrole, $3); $$;
COMMENT ON FUNCTION tq_shard_internal.grant_at(int, text, text[]) IS 'tq.grant_scopes() on a shard';
CREATE FUNCTION tq_shard_internal.queues_at(on_partition int, OUT queue text, OUT settings jsonb) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT q.task_queue_id AS queue, s.settings FROM tq_internal.queue_settings AS s JOIN tq_internal.queue AS q ON q.id = s.queue; $$;
COMMENT ON FUNCTION tq_shard_internal.queues_at(int) IS 'settings of queues on a shard';
CREATE FUNCTION tq_shard_internal.set_queue_at(on_partition int, queue text, settings jsonb) RETURNS jsonb
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq.set_queue($2, $3); $$;
COMMENT ON FUNCTION tq_shard_internal.set_queue_at(int, text, jsonb) IS 'tq.set_queue() on a shard';
CREATE FUNCTION tq_shard_internal.bindings_at(on_partition int, OUT channel text, OUT exchange text, OUT pattern text) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT * FROM tq.binding_overview; $$;
COMMENT ON FUNCTION tq_shard_internal.bindings_at(int) IS 'bindings of channels on a shard';
CREATE FUNCTION tq_shard_internal.bind_at(on_partition int, channel text, exchange text, pattern text) RETURNS void
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq.bind($2, $3, $4); $$;
COMMENT ON FUNCTION tq_shard_internal.bind_at(int, text, text, text) IS 'tq.bind() on a shard';
CREATE FUNCTION tq_shard_internal.unbind_at(on_partition int, channel text, exchange text, pattern text) RETURNS void
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq.unbind($2, $3, $4); $$;
COMMENT ON FUNCTION tq_shard_internal.unbind_at(int, text, text, text) IS 'tq.unbind() on a shard';
CREATE FUNCTION tq_shard_internal.subscriptions_at(on_partition int, OUT subscription text, OUT binding text) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT o.name AS subscription, b.binding AS binding FROM tq.subscription_overview AS o CROSS JOIN LATERAL pg_catalog.unnest(o.bindings) AS b(binding); $$;
COMMENT ON FUNCTION tq_shard_internal.subscriptions_at(int) IS 'subscriptions on a shard';
CREATE FUNCTION tq_shard_internal.subscribe_at(on_partition int, subscription text, exchange text, pattern text) RETURNS void
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; SELECT tq.subscribe($2, $3, $4); $$;
COMMENT ON FUNCTION tq_shard_internal.subscribe_at(int, text, text, text) IS 'tq.subscribe() on a shard';
CREATE FUNCTION tq_shard_internal.quarantines_at(on_partition int, OUT queue text, OUT worker_group text, OUT worker_id text, OUT ends timestamptz) RETURNS SETOF record
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition;
		SELECT w.task_queue_id AS queue, w.worker_group, w.worker_id, w.quarantine_until AS ends FROM tq.worker_overview AS w WHERE w.state = 'quarantined'; $$;
COMMENT ON FUNCTION tq_shard_internal.quarantines_at(int) IS 'workers that are in quarantine on a shard';
CREATE FUNCTION tq_shard_internal.quarantine_at(on_partition int, task_queue_id text, worker_group text, worker_id text, ends timestamptz) RETURNS jsonb
	LANGUAGE plproxy AS $$ CLUSTER 'tq_shard'; RUN ON on_partition; 
		SELECT tq.quarantine_worker($2, $3, $4, $5) FROM tq.declare_worker($2, $3, $4, $5); $$;
COMMENT ON FUNCTION tq_shard_internal.quarantine_at(int, text, text, text, timestamptz) IS 'tq.quarantine_worker() on a shard';

CREATE FUNCTION tq_shard_internal.copy_settings(source int, target int) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	known text[] := ARRAY(SELECT format('%s %s %s', b.channel, b.exchange, b.pattern) FROM tq_shard_internal.bindings_at(source) AS b);
BEGIN
	PERFORM tq_shard_internal.grant_at(target, g.role, g.scopes) FROM tq_shard_internal.grants_at(source) AS g;
	PERFORM tq_shard_internal.set_queue_at(target, q.queue, q.settings) FROM tq_shard_internal.queues_at(source) AS q;
	PERFORM tq_shard_internal.unbind_at(target, b.channel, b.exchange, b.pattern) FROM tq_shard_internal.bindings_at(target) AS b
		WHERE format('%s %s %s', b.channel, b.exchange, b.pattern) <> ALL (known);
	PERFORM tq_shard_internal.bind_at(target, b.channel, b.exchange, b.pattern) FROM tq_shard_internal.bindings_at(source) AS b;
	PERFORM tq_shard_internal.subscribe_at(target, s.subscription, split_part(s.binding, ' ', 1), substr(s.binding, strpos(s.binding, ' ') + 1))
		FROM tq_shard_internal.subscriptions_at(source) AS s;
	PERFORM tq_shard_internal.quarantine_at(target, w.queue, w.worker_group, w.worker_id, w.ends)
		FROM tq_shard_internal.quarantines_at(source) AS w;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.copy_settings(int, int) IS 'gives a shard the grants, settings of queues, bindings, subscriptions and quarantines of another one; partitions';

-- Every role can read the map, and calls a shard by its own name.
CREATE FUNCTION tq_shard_internal.check_connection(name text, connection text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	other text := (SELECT s.name FROM tq_shard_internal.shard s WHERE s.connection = check_connection.connection AND s.name <> check_connection.name);
BEGIN
	IF connection IS NULL OR connection !~ '=' OR connection ~ '^\s*postgres(ql)?://' THEN
		RAISE EXCEPTION 'invalid connection string' USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'PL/Proxy adds the name of the caller to it, as a keyword.',
			HINT = 'Give keywords and values, such as ''host=10.0.0.1 dbname=app''; no URI.';
	ELSIF connection ~ 'password\s*=' THEN
		RAISE EXCEPTION 'a connection string must not have a password' USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'Every role of this database can read it.',
			HINT = 'Use CREATE USER MAPPING for the servers tq_shard and tq_shard_lookup, or a .pgpass file of the server.';
	ELSIF connection ~ 'user\s*=' THEN
		RAISE EXCEPTION 'a connection string must not have a user' USING ERRCODE = 'invalid_parameter_value',
			DETAIL = 'Each caller would have the rights of that role on the shard.',
			HINT = 'Callers have their own names on the shards; use CREATE USER MAPPING for the servers tq_shard and tq_shard_lookup to give one another name.';
	ELSIF other IS NOT NULL THEN
		RAISE EXCEPTION 'this database is shard "%"', other USING ERRCODE = 'duplicate_object',
			DETAIL = 'It has the same connection string.';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.check_connection(text, text) IS 'error if this is no connection string for a shard';

CREATE FUNCTION tq_shard_internal.find_shard(name text) RETURNS tq_shard_internal.shard
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	found_ tq_shard_internal.shard;
BEGIN
	SELECT s.* INTO found_ FROM tq_shard_internal.shard s WHERE s.name = find_shard.name;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'shard "%" does not exist', name USING ERRCODE = 'undefined_object',
			HINT = 'tq_shard.map() shows the shards.';
	END IF;
	RETURN found_;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.find_shard(text) IS 'the shard of that name, or an error';

-- A move that was interrupted must end before another one begins, because its shards
-- may follow it already.
CREATE FUNCTION tq_shard_internal.check_no_move(of_shard int) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	begun tq_shard_internal.shard;
BEGIN
	SELECT s.* INTO begun FROM tq_shard_internal.shard s
		WHERE s.number <> of_shard AND (s.state = 'joining' OR s.state = 'draining' AND EXISTS (SELECT FROM tq_shard_internal.bucket b WHERE b.shard = s.number));
	IF FOUND THEN
		RAISE EXCEPTION 'the change of shard "%" was interrupted', begun.name USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = format('Call %s first.', CASE begun.state WHEN 'joining' THEN format('tq_shard.add_shard(%L, %L) again, or tq_shard.drain_shard(%1$L),', begun.name, begun.connection)
				ELSE format('tq_shard.drain_shard(%L) again', begun.name) END);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.check_no_move(int) IS 'error if the move of another shard was interrupted';

-- That the shard answers, and is no other one.
CREATE FUNCTION tq_shard_internal.check_database(given tq_shard_internal.shard) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	given_database text;
	other tq_shard_internal.shard;
	other_database text;
BEGIN
	BEGIN
		given_database := (tq_shard_internal.identity_at(1024 + given.number)).database;
	EXCEPTION WHEN invalid_schema_name THEN
		RAISE EXCEPTION 'this database is no shard' USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = format('The connection "%s" is to a router, or to a database without the extension tq.', given.connection),
			HINT = 'Call CREATE EXTENSION tq in the database that is to be a shard, and give a connection to it.';
	END;
	FOR other IN SELECT s.* FROM tq_shard_internal.shard s WHERE s.number <> given.number ORDER BY s.number LOOP
		BEGIN
			other_database := (tq_shard_internal.identity_at(1024 + other.number)).database;
		EXCEPTION WHEN @no_answer@ THEN
			CONTINUE;		-- it may be another one that moves, too
		END;
		IF other_database = given_database THEN
			RAISE EXCEPTION 'this database is shard "%"', other.name USING ERRCODE = 'duplicate_object',
				DETAIL = format('The connections "%s" and "%s" are to the same database.', given.connection, other.connection);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.check_database(tq_shard_internal.shard) IS 'error if a shard does not answer, or is another one, too';

-- A shard that is new, in the state joining unless it is the first one.  It has
-- answered before this is committed, so that a wrong connection leaves nothing behind.
CREATE FUNCTION tq_shard_internal.insert_shard(name text, connection text) RETURNS tq_shard_internal.shard
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	added tq_shard_internal.shard;
	actives int := (SELECT count(*) FROM tq_shard_internal.shard s WHERE s.state = 'active');
BEGIN
	INSERT INTO tq_shard_internal.shard (number, name, connection, state)
		SELECT COALESCE(max(s.number) + 1, 0), insert_shard.name, insert_shard.connection, CASE count(*) WHEN 0 THEN 'active' ELSE 'joining' END FROM tq_shard_internal.shard s
		RETURNING * INTO added;
	IF NOT EXISTS (SELECT FROM tq_shard_internal.bucket) THEN
		INSERT INTO tq_shard_internal.bucket (bucket, shard) SELECT b, added.number FROM generate_series(0, 1023) AS b;
		INSERT INTO tq_shard_internal.version (version) VALUES (1);		-- not before, so that a dump can be restored
	ELSE
		-- from those that have most, as many as make all equal
		UPDATE tq_shard_internal.bucket b SET next = added.number
			FROM (SELECT r.bucket FROM (SELECT o.bucket, row_number() OVER (PARTITION BY o.shard ORDER BY o.bucket) AS n FROM tq_shard_internal.bucket o) AS r
				ORDER BY r.n DESC, r.bucket LIMIT 1024 / (actives + 1)) AS taken
			WHERE b.bucket = taken.bucket;
	END IF;
	PERFORM tq_shard_internal.apply_map();
	PERFORM tq_shard_internal.check_database(added);
	RETURN added;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.insert_shard(text, text) IS 'writes a new shard into the map';

-- The first part of add_shard(); what runs on all shards reaches the shard from the
-- commit on.
CREATE FUNCTION tq_shard_internal.begin_adding(name text, connection text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	added tq_shard_internal.shard;
BEGIN
	IF name IS NULL OR name !~ '^[^[:cntrl:]]{1,63}$' THEN
		RAISE EXCEPTION 'invalid name of a shard' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give 1 to 63 characters that can be printed.';
	END IF;
	PERFORM tq_shard_internal.check_connection(name, connection);
	SELECT s.* INTO added FROM tq_shard_internal.shard s WHERE s.name = begin_adding.name;
	IF FOUND AND (added.connection <> connection OR added.state <> 'joining') THEN
		RAISE EXCEPTION 'shard "%" exists', name USING ERRCODE = 'duplicate_object',
			DETAIL = format('It is %s, at "%s".', added.state, added.connection),
			HINT = 'tq_shard.set_connection() changes its connection.';
	END IF;
	PERFORM tq_shard_internal.check_no_move(COALESCE(added.number, -1));
	IF added.number IS NULL THEN
		PERFORM tq_shard_internal.insert_shard(name, connection);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.begin_adding(text, text) IS 'the first part of tq_shard.add_shard()';

CREATE FUNCTION tq_shard_internal.go_on_adding(name text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	added tq_shard_internal.shard := tq_shard_internal.find_shard(name);
BEGIN
	IF added.state = 'joining' THEN
		PERFORM tq_shard_internal.copy_settings(1024 + (SELECT min(s.number) FROM tq_shard_internal.shard s WHERE s.state = 'active'), 1024 + added.number);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.go_on_adding(text) IS 'the second part of tq_shard.add_shard()';

CREATE PROCEDURE tq_shard.add_shard(name text, connection text)
	LANGUAGE plpgsql
	AS $$
BEGIN
	PERFORM tq_shard_internal.lock_map(true);
	PERFORM tq_shard_internal.begin_adding(name, connection);
	COMMIT;
	PERFORM tq_shard_internal.go_on_adding(name);
	CALL tq_shard_internal.move();
	PERFORM tq_shard_internal.unlock_map();
END
$$;
COMMENT ON PROCEDURE tq_shard.add_shard(text, text) IS 'adds a database as a shard: it begins its share of the new task groups, and old ones stay where they are; not in a transaction block; if interrupted, repeat it';

-- A shard that was not added to the end may have got its buckets, so they are taken
-- from it as from any other, and go back.
CREATE FUNCTION tq_shard_internal.begin_draining(name text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	drained tq_shard_internal.shard := tq_shard_internal.find_shard(name);
	others int[];
BEGIN
	PERFORM tq_shard_internal.check_no_move(drained.number);
	others := ARRAY(SELECT s.number FROM tq_shard_internal.shard s LEFT JOIN tq_shard_internal.bucket b ON b.shard = s.number
		WHERE s.state = 'active' AND s.number <> drained.number GROUP BY s.number ORDER BY count(b.bucket), s.number);
	IF others = '{}' THEN
		RAISE EXCEPTION 'shard "%" is the only one that is active', name USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'Add another one first.';
	END IF;
	UPDATE tq_shard_internal.shard s SET state = 'draining' WHERE s.number = drained.number;
	UPDATE tq_shard_internal.bucket b SET shard = drained.number, next = b.shard WHERE b.next = drained.number;
	UPDATE tq_shard_internal.bucket b SET next = others[1 + r.n % cardinality(others)]
		FROM (SELECT o.bucket, row_number() OVER (ORDER BY o.bucket) - 1 AS n FROM tq_shard_internal.bucket o WHERE o.shard = drained.number AND o.next IS NULL) AS r
		WHERE b.bucket = r.bucket;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.begin_draining(text) IS 'the first part of tq_shard.drain_shard()';

CREATE PROCEDURE tq_shard.drain_shard(name text)
	LANGUAGE plpgsql
	AS $$
BEGIN
	PERFORM tq_shard_internal.lock_map(true);
	PERFORM tq_shard_internal.begin_draining(name);
	CALL tq_shard_internal.move();
	PERFORM tq_shard_internal.unlock_map();
END
$$;
COMMENT ON PROCEDURE tq_shard.drain_shard(text) IS 'lets a shard begin no more task groups; those that it has stay until they expire; not in a transaction block; if interrupted, repeat it';

-- The database behind the new connection has the buckets of the shard, or it is
-- another one.
CREATE PROCEDURE tq_shard.set_connection(name text, connection text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	changed tq_shard_internal.shard;
	there text;
BEGIN
	PERFORM tq_shard_internal.lock_map(false);
	changed := tq_shard_internal.find_shard(name);
	PERFORM tq_shard_internal.check_connection(name, connection);
	UPDATE tq_shard_internal.shard s SET connection = set_connection.connection WHERE s.number = changed.number RETURNING s.* INTO changed;
	UPDATE tq_shard_internal.version SET version = version + 1, changed = now();
	PERFORM tq_shard_internal.apply_map();
	PERFORM tq_shard_internal.check_database(changed);
	there := (tq_shard_internal.identity_at(1024 + changed.number)).buckets;
	IF changed.state <> 'joining' AND there <> ALL (SELECT COALESCE(r.ranges, '{}') FROM (
			SELECT tq_shard_internal.ranges(array_agg(b.bucket) FILTER (WHERE b.shard = changed.number))::text AS ranges FROM tq_shard_internal.bucket b
			UNION ALL SELECT tq_shard_internal.ranges(array_agg(b.bucket) FILTER (WHERE b.shard = changed.number AND b.next IS NULL))::text FROM tq_shard_internal.bucket b
			UNION ALL SELECT tq_shard_internal.ranges(array_agg(b.bucket) FILTER (WHERE COALESCE(b.next, b.shard) = changed.number))::text FROM tq_shard_internal.bucket b) AS r) THEN
		RAISE EXCEPTION 'this database is not shard "%"', name USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = format('It begins groups in the buckets %s, and the map has others for that shard.', there),
			HINT = 'Give the connection of a database with the tables of the shard: after a failover, or restored from a dump.';
	END IF;
END
$$;
COMMENT ON PROCEDURE tq_shard.set_connection(text, text) IS 'changes the connection string of a shard, whose database has moved';

-- The buckets of ids that a shard has.
CREATE FUNCTION tq_shard_internal.used_buckets(shard int) RETURNS SETOF int
	LANGUAGE sql BEGIN ATOMIC
		SELECT u.bucket FROM tq_shard_internal.used_buckets_at(1024 + shard) AS u
		UNION SELECT * FROM tq_shard_internal.task_buckets_at(1024 + shard);
	END;
COMMENT ON FUNCTION tq_shard_internal.used_buckets(int) IS 'buckets of the groups and tasks that a shard has';

-- A role that ends a subscription may not delete what other roles have fetched of it.
CREATE FUNCTION tq_shard_internal.forget_messages() RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	known text[] := ARRAY(SELECT DISTINCT n.subscription FROM unnest(tq_shard_internal.shards()) AS s
		CROSS JOIN LATERAL tq_shard_internal.subscriptions_at(1024 + s) AS n);
BEGIN
	DELETE FROM tq_shard_internal.message m WHERE m.subscription <> ALL (known);
END
$$;
COMMENT ON FUNCTION tq_shard_internal.forget_messages() IS 'deletes the ids of messages of subscriptions that no shard has any more';

CREATE FUNCTION tq_shard.refresh() RETURNS int
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	partition int;
	used int[];
	forgotten int := 0;
	n int;
BEGIN
	PERFORM tq_shard_internal.lock_map(false);
	UPDATE tq_shard_internal.version SET version = version;		-- 40001 in a snapshot older than the map
	FOR partition IN SELECT DISTINCT o FROM tq_shard_internal.bucket b CROSS JOIN LATERAL unnest(b.old) AS o ORDER BY 1 LOOP
		used := ARRAY(SELECT tq_shard_internal.used_buckets(partition));
		UPDATE tq_shard_internal.bucket b SET old = array_remove(b.old, partition) WHERE partition = ANY (b.old) AND b.bucket <> ALL (used);
		GET DIAGNOSTICS n = ROW_COUNT;
		forgotten := forgotten + n;
	END LOOP;
	IF forgotten > 0 THEN
		UPDATE tq_shard_internal.version SET version = version + 1, changed = now();
	END IF;
	PERFORM tq_shard_internal.apply_map();
	PERFORM tq_shard_internal.forget_messages();
	RETURN forgotten;
END
$$;
COMMENT ON FUNCTION tq_shard.refresh() IS 'forgets the earlier shards of buckets of which they have no task any more, so that ids of these are not looked up; returns how many; needed after the router was restored from a dump';

CREATE PROCEDURE tq_shard.remove_shard(name text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	removed tq_shard_internal.shard;
	groups_left bigint;
BEGIN
	PERFORM tq_shard_internal.lock_map(false);
	removed := tq_shard_internal.find_shard(name);
	IF removed.state <> 'draining' OR EXISTS (SELECT FROM tq_shard_internal.bucket b WHERE removed.number IN (b.shard, b.next)) THEN
		RAISE EXCEPTION 'shard "%" begins task groups', name USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'Call tq_shard.drain_shard() first.';
	END IF;
	SELECT count(*) INTO groups_left FROM tq_shard_internal.used_buckets(removed.number);
	IF groups_left > 0 THEN
		RAISE EXCEPTION 'shard "%" has tasks', name USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = format('Their ids are in %s buckets.', groups_left),
			HINT = 'Wait until they have expired, or delete them, and their dead letters; tq_shard.status() shows how many there are.';
	END IF;
	UPDATE tq_shard_internal.bucket b SET old = array_remove(b.old, removed.number) WHERE removed.number = ANY (b.old);
	DELETE FROM tq_shard_internal.message m WHERE m.shard = removed.number;		-- another one may get its number
	DELETE FROM tq_shard_internal.shard s WHERE s.number = removed.number;
	UPDATE tq_shard_internal.version SET version = version + 1, changed = now();
	PERFORM tq_shard_internal.apply_map();
END
$$;
COMMENT ON PROCEDURE tq_shard.remove_shard(text) IS 'takes away a shard that was drained and has no task any more';

CREATE FUNCTION tq_shard.map() RETURNS TABLE (version bigint, name text, connection text, state text, buckets int4multirange, old_buckets int4multirange)
	LANGUAGE sql STABLE BEGIN ATOMIC
		SELECT v.version, s.name, s.connection, s.state, tq_shard_internal.ranges(b.own), tq_shard_internal.ranges(b.earlier)
		FROM tq_shard_internal.shard s CROSS JOIN tq_shard_internal.version v
			CROSS JOIN LATERAL (SELECT array_agg(b.bucket) FILTER (WHERE b.shard = s.number) AS own,
				array_agg(b.bucket) FILTER (WHERE s.number = ANY (b.old) OR b.next = s.number) AS earlier FROM tq_shard_internal.bucket b) AS b
		ORDER BY s.number;
	END;
COMMENT ON FUNCTION tq_shard.map() IS 'for clients that go to the shards themselves: the buckets in which each begins task groups, and those of which it may still have old ones; version grows with each change';

CREATE FUNCTION tq_shard.status() RETURNS TABLE (name text, state text, buckets int, reachable bool, task_groups bigint, unresolved bigint, old_groups bigint, detail text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	shard record;
BEGIN
	FOR shard IN SELECT s.*, ARRAY(SELECT b.bucket FROM tq_shard_internal.bucket b WHERE b.shard = s.number) AS own FROM tq_shard_internal.shard s ORDER BY s.number LOOP
		name := shard.name;
		state := shard.state;
		buckets := cardinality(shard.own);
		BEGIN
			SELECT true, COALESCE(sum(u.task_groups), 0), COALESCE(sum(u.unresolved), 0), COALESCE(sum(u.task_groups) FILTER (WHERE u.bucket <> ALL (shard.own)), 0), NULL
				INTO reachable, task_groups, unresolved, old_groups, detail
				FROM tq_shard_internal.used_buckets_at(1024 + shard.number) AS u;
		EXCEPTION WHEN @no_answer@ THEN
			reachable := false;
			task_groups := NULL;
			unresolved := NULL;
			old_groups := NULL;
			detail := SQLERRM;
		END;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq_shard.status() IS 'each shard: whether it answers, its task groups, their tasks that are not resolved, and the groups of buckets that it has no longer; reads all tasks';

-- PL/Proxy wants USAGE on its servers of each role that calls it, and with that a role
-- can make a user mapping for itself.  Its password is its own affair; another user
-- would be another role on the shards.
CREATE FUNCTION tq_shard_internal.check_mapping() RETURNS event_trigger
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() AS c
		JOIN pg_user_mappings AS m ON m.umid = c.objid AND c.classid = 'pg_user_mapping'::regclass
		JOIN pg_foreign_server AS f ON f.oid = m.srvid
		WHERE f.srvname IN ('tq_shard', 'tq_shard_lookup') AND NOT pg_has_role(f.srvowner, 'MEMBER')
			AND EXISTS (SELECT FROM pg_options_to_table(m.umoptions) AS o WHERE lower(o.option_name) = 'user')) THEN
		RAISE EXCEPTION 'permission denied for the option "user" of a user mapping of tq_shard' USING ERRCODE = 'insufficient_privilege',
			DETAIL = 'It is the role that calls of this one have on the shards.',
			HINT = 'The owner of the servers can give it.';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_shard_internal.check_mapping() IS 'error if a role makes itself another one on the shards';
CREATE EVENT TRIGGER tq_shard_mapping ON ddl_command_end WHEN TAG IN ('CREATE USER MAPPING', 'ALTER USER MAPPING')
	EXECUTE FUNCTION tq_shard_internal.check_mapping();
ALTER EVENT TRIGGER tq_shard_mapping ENABLE ALWAYS;
COMMENT ON EVENT TRIGGER tq_shard_mapping IS 'a role is the same on the shards, unless the owner of the servers gives it another one';

-- ---------------------------------------------------------------------------
-- Grants
-- ---------------------------------------------------------------------------

-- What a caller may do is decided on the shard, where it has the same name.
GRANT USAGE ON SCHEMA tq, tq_shard, tq_shard_internal TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA tq TO PUBLIC;
GRANT SELECT, INSERT, DELETE ON tq_shard_internal.message TO PUBLIC;
GRANT USAGE ON SEQUENCE tq_shard_internal.message_id TO PUBLIC;
GRANT SELECT ON tq_shard_internal.shard, tq_shard_internal.bucket, tq_shard_internal.version TO PUBLIC;
REVOKE EXECUTE ON FUNCTION tq_shard.refresh(), tq_shard.status() FROM PUBLIC;
REVOKE EXECUTE ON ALL PROCEDURES IN SCHEMA tq_shard, tq_shard_internal FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION tq_shard_internal.apply_cluster(text), tq_shard_internal.apply_map(), tq_shard_internal.lock_map(bool), tq_shard_internal.unlock_map(),
	tq_shard_internal.take_buckets(), tq_shard_internal.are_taken(jsonb), tq_shard_internal.give_buckets(), tq_shard_internal.copy_settings(int, int),
	tq_shard_internal.check_database(tq_shard_internal.shard), tq_shard_internal.insert_shard(text, text), tq_shard_internal.begin_adding(text, text),
	tq_shard_internal.go_on_adding(text), tq_shard_internal.begin_draining(text), tq_shard_internal.forget_messages(),
	tq_shard_internal.set_buckets_at(int, text), tq_shard_internal.buckets_settled_at(int, xid8), tq_shard_internal.used_buckets_at(int), tq_shard_internal.used_buckets(int),
	tq_shard_internal.task_buckets_at(int), tq_shard_internal.few_buckets_at(int, int), tq_shard_internal.identity_at(int), tq_shard_internal.grants_at(int),
	tq_shard_internal.grant_at(int, text, text[]), tq_shard_internal.queues_at(int), tq_shard_internal.set_queue_at(int, text, jsonb), tq_shard_internal.bindings_at(int),
	tq_shard_internal.bind_at(int, text, text, text), tq_shard_internal.unbind_at(int, text, text, text), tq_shard_internal.subscriptions_at(int),
	tq_shard_internal.subscribe_at(int, text, text, text), tq_shard_internal.quarantines_at(int),
	tq_shard_internal.quarantine_at(int, text, text, text, timestamptz) FROM PUBLIC;
