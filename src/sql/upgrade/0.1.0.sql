\echo Use "ALTER EXTENSION tq UPDATE" to load this file. \quit

-- ---------------------------------------------------------------------------
-- From 0.1.0
--
-- What follows this part was made of the other files: functions are replaced, views
-- made again.  Calls wait from here to the commit (src/util/catalog.c), so no
-- statement rewrites a table or reads that of tasks as a whole.
-- ---------------------------------------------------------------------------

LOCK TABLE tq_internal.task IN ACCESS EXCLUSIVE MODE;

-- ---- what went ----

DROP FUNCTION tq.queue_counts(text), tq.status_row(tq.slugid);
DO $$
BEGIN
	EXECUTE (SELECT 'DROP VIEW ' || pg_catalog.string_agg(c.oid::pg_catalog.regclass::pg_catalog.text, ', ')
		FROM pg_catalog.pg_class c WHERE c.relnamespace IN ('tq'::pg_catalog.regnamespace, 'tq_internal'::pg_catalog.regnamespace) AND c.relkind = 'v');
END
$$;

DROP FUNCTION tq.bind(text, text, text), tq.bucket(tq.slugid), tq.bucket_counts(), tq.buckets(), tq.buckets_settled(xid8),
	tq.claim_task(tq.slugid, int, text, text), tq.claim_work(text, text, text, int, interval), tq.claim_work(text[], text, text, int, interval, text),
	tq.claim_lines(text, text, text, int, interval), tq.claim_lines(text[], text, text, int, interval, text),
	tq.declare_worker(text, text, text, text, timestamptz), tq.fire_cron(text, timestamptz), tq.get_provisioner(text),
	tq.get_queue_settings(text), tq.get_worker(text, text, text, text), tq.get_worker_type(text, text), tq.grant_queue(regrole, text, text),
	tq.has_task(tq.slugid), tq.has_task_group(tq.slugid), tq.health(), tq.list_provisioners(text, int), tq.list_worker_types(text, text, int),
	tq.list_workers(text, text, bool, text, int), tq.maintenance_activity(), tq.messages(bigint, int, text, text), tq.pause_cron(text),
	tq.pending_tasks(text), tq.published_id(), tq.quarantine_worker(text, text, text, text, timestamptz, text),
	tq.reclaim_task(tq.slugid, int, jsonb, interval), tq.report_completed(tq.slugid, int, jsonb, jsonb),
	tq.report_exception(tq.slugid, int, text, jsonb, jsonb, interval, int, text), tq.report_failed(tq.slugid, int, jsonb, jsonb, interval, int, text),
	tq.reset_queue_stats(), tq.resolve_and_claim(jsonb, text, text, text, int), tq_internal.queue_counters(), tq.resolve_lines(text, text, jsonb), tq.resume_cron(text), tq.run_cron_now(text), tq.satisfies(text[], text),
	tq.set_buckets(int4multirange), tq.slugid_in_bucket(int), tq.start_maintenance(), tq.topic_match(text, text),
	tq.unschedule_cron(text), tq.worker_removed(text, text, text, text, text);
DROP PROCEDURE tq.install_cron_upkeep(text), tq.wait_for_task(tq.slugid, interval), tq.wait_for_task_group(tq.slugid, interval);
DROP TYPE tq.provisioner_entry;

-- ---- roles ----

DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tq_monitor') THEN
		CREATE ROLE tq_monitor NOLOGIN;
		COMMENT ON ROLE tq_monitor IS 'role of the extension tq';
	END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
	NULL;		-- updated concurrently in another database
END
$$;

-- ---- what is stored ----

-- An aborted transaction takes numbers, too.
ALTER SEQUENCE tq_internal.queue_id_seq CYCLE;
ALTER SEQUENCE tq_internal.worker_id_seq CYCLE;
ALTER SEQUENCE tq_internal.policy_id_seq CYCLE;

-- Sessions share a block of numbers: src/shmem/numbers.c.
ALTER SEQUENCE tq_internal.id_seq INCREMENT BY 64;

ALTER TABLE tq_internal.unscheduled SET (vacuum_truncate = false);
ALTER TABLE tq_internal.dependency_counter SET (vacuum_truncate = false);
ALTER TABLE tq_internal.pending SET (vacuum_truncate = false);
ALTER TABLE tq_internal.delayed SET (vacuum_truncate = false);
ALTER TABLE tq_internal.claim_timer SET (vacuum_truncate = false);

-- Who has made a queue, a limit or a worker before is not known: it counts for none.
ALTER TABLE tq_internal.queue ADD COLUMN creator text;
ALTER TABLE tq_internal.queue_settings ADD COLUMN creator text;
ALTER TABLE tq_internal.worker ADD COLUMN creator text, ADD COLUMN capacity int, ADD COLUMN version text;
CREATE INDEX worker_creator ON tq_internal.worker (creator);

-- Policies that cancel groups act as they did.
ALTER TABLE tq_internal.policy ADD COLUMN creator regrole, DROP CONSTRAINT policy_policy_key;
CREATE INDEX policy_value ON tq_internal.policy (policy);

-- The queue of the task that it is named after, or of one of its tasks: which was first
-- would be a read of all.  Of a group without tasks none, so that only those join it who
-- may create in all queues.
ALTER TABLE tq_internal.task_group ADD COLUMN queue int NOT NULL DEFAULT 0;
UPDATE tq_internal.task_group g SET queue = COALESCE((SELECT t.queue FROM tq_internal.task t WHERE t.id = g.id),
	(SELECT t.queue FROM tq_internal.task t WHERE t.group_id = g.id ORDER BY t.group_id, t.task_id LIMIT 1), 0);
ALTER TABLE tq_internal.task_group ALTER COLUMN queue DROP DEFAULT, ADD COLUMN name text;

ALTER TABLE tq_internal.failure ADD COLUMN run_id smallint NOT NULL DEFAULT 0;
UPDATE tq_internal.failure f SET run_id = r.run_id
	FROM (SELECT g.task, (SELECT max(x.run_id) FROM tq_internal.run x WHERE x.task = g.task) AS run_id FROM tq_internal.failure g) AS r
	WHERE r.task = f.task AND r.run_id > 0;
ALTER TABLE tq_internal.failure ALTER COLUMN run_id DROP DEFAULT;

ALTER TABLE tq_internal.activation REPLICA IDENTITY FULL;

-- The publisher derives messages of new tasks: src/events/publisher.c.
ALTER TABLE tq_internal.task ADD COLUMN xid xid8, ADD COLUMN first_priority smallint;
COMMENT ON TABLE tq_internal.task IS 'task definitions, which do not change, except for the priority, the queue, and effective_deadline when a task is scheduled after it was created';
COMMENT ON SEQUENCE tq_internal.id_seq IS 'internal ids of tasks and groups, positions of runs in their queue, order of messages';
COMMENT ON TABLE tq_internal.message IS 'messages as transitions wrote them or the publisher derived them: outbox and message log in one, in segments';
ALTER TABLE tq_internal.tick ADD COLUMN derived int, ADD COLUMN low bigint, ADD COLUMN open bigint[];
UPDATE tq_internal.tick SET low = (SELECT last_value FROM tq_internal.id_seq) WHERE last_id = (SELECT max(last_id) FROM tq_internal.tick);
DROP FUNCTION tq_internal.is_awaited(xid8);
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_0', 'WHERE tq_internal.is_awaited(xid, seq) UNION ALL SELECT * FROM tq_internal.underived_message()');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task', 'WHERE false UNION ALL SELECT id, created, deadline, expires, effective_deadline, delay, group_id, queue, policy, priority, retries, all_resolved, task_id, expires_given, scheduler_id, project_id, dependencies, routes, scopes, payload, metadata, tags, extra, NULL::xid8, NULL::smallint FROM tq_internal.task');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_1', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_2', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_3', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_4', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_5', 'WHERE tq_internal.is_awaited(xid, seq)');

-- Jobs of pg_cron name the recurring task, which one of that name in all was.
ALTER TABLE tq_internal.cron DROP CONSTRAINT cron_pkey, ADD PRIMARY KEY (name, role);

ALTER TABLE tq_internal.scope_grant ADD COLUMN queues text NOT NULL DEFAULT '', ADD COLUMN access text NOT NULL DEFAULT '',
	DROP CONSTRAINT scope_grant_pkey;
ALTER TABLE tq_internal.scope_grant ADD PRIMARY KEY (role, scope, queues, access);

CREATE TABLE tq_internal.foreign_dependency (
	required bigint NOT NULL,
	dependent bigint NOT NULL,
	queue int NOT NULL,
	from_run smallint NOT NULL,
	all_resolved boolean NOT NULL,
	settled boolean NOT NULL,
	PRIMARY KEY (required, dependent)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX foreign_dependency_unsettled ON tq_internal.foreign_dependency (required, all_resolved, from_run) WHERE NOT settled;
SELECT pg_catalog.pg_extension_config_dump('tq_internal.foreign_dependency', '');

CREATE TABLE tq_internal.queue_history (
	seconds smallint NOT NULL,
	at timestamptz NOT NULL,
	queue int NOT NULL,
	created int NOT NULL,
	claimed int NOT NULL,
	retried int NOT NULL,
	completed int NOT NULL,
	failed int NOT NULL,
	exception int NOT NULL,
	expired_claims int NOT NULL,
	blocked int,
	delayed int,
	pending int,
	running int,
	waited bytea,
	ran bytea,
	PRIMARY KEY (seconds, at, queue)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE tq_internal.departed (
	id bigint PRIMARY KEY,
	since timestamptz NOT NULL,
	created timestamptz NOT NULL,
	deadline timestamptz NOT NULL,
	effective_deadline timestamptz NOT NULL,
	expires timestamptz NOT NULL,
	queue int NOT NULL,
	priority smallint NOT NULL,
	retries smallint NOT NULL,
	task_id tq.slugid NOT NULL,
	task_group_id tq.slugid NOT NULL,
	scheduler_id text,
	project_id text,
	routes text[],
	tags jsonb,
	xid xid8,
	first_priority smallint
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX departed_since ON tq_internal.departed (since);
CREATE TABLE tq_internal.departed_run (LIKE tq_internal.run INCLUDING DEFAULTS, PRIMARY KEY (task, run_id))
	WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
SELECT pg_catalog.pg_extension_config_dump('tq_internal.departed', 'WHERE false UNION ALL SELECT id, since, created, deadline, effective_deadline, expires, queue, priority, retries, task_id, task_group_id, scheduler_id, project_id, routes, tags, NULL::xid8, NULL::smallint FROM tq_internal.departed');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.departed_run', '');

CREATE TABLE tq_internal.task_name_history (
	day timestamptz NOT NULL,
	queue int NOT NULL,
	is_rest bool NOT NULL,
	name text COLLATE "C" NOT NULL,
	completed int NOT NULL,
	failed int NOT NULL,
	exception int NOT NULL,
	waited bytea,
	ran bytea,
	PRIMARY KEY (day, queue, is_rest, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE tq_internal.task_name_pass (
	since xid8 PRIMARY KEY,
	upto xid8 NOT NULL,
	block bigint,
	seen timestamptz NOT NULL,
	next xid8 NOT NULL,
	next_seen timestamptz NOT NULL
) WITH (fillfactor = 10);

ALTER TYPE tq.claim ADD ATTRIBUTE task jsonb, ADD ATTRIBUTE status jsonb;
ALTER TYPE tq.queue_claim ADD ATTRIBUTE task jsonb, ADD ATTRIBUTE status jsonb;
ALTER TYPE tq.worker_run ADD ATTRIBUTE task jsonb, ADD ATTRIBUTE status jsonb;
ALTER TYPE tq.progress ADD ATTRIBUTE blocked bool, ADD ATTRIBUTE blocked_by text[];
CREATE TYPE tq_internal.drawn_task AS (
	task bigint, name text, state smallint, reason smallint, run_id smallint, is_delayed bool, progress text, resolved timestamptz,
	queue int, scheduled timestamptz, started timestamptz);
CREATE TYPE tq_internal.drawn_run AS (
	task bigint, run_id smallint, state smallint, reason smallint, claimable timestamptz, started timestamptz, resolved timestamptz, worker text);
CREATE TYPE tq_internal.drawn_fault AS (
	task_id text, name text, task_queue_id text, state smallint, reason smallint, runs int, resolved timestamptz, worker text, error text);
CREATE TYPE tq_internal.critical_task AS (place int, task bigint, state smallint, ends timestamptz, slack interval);
CREATE TYPE tq_internal.root_cause AS (dependent bigint, required tq.slugid, name text, state text, is_final bool);
CREATE TYPE tq_internal.task_filter AS (
	queues int[], states smallint[], reasons text[], name text, tags jsonb, payload jsonb, error text,
	group_id tq.slugid, group_number bigint, workers int[], priorities smallint[],
	created_after timestamptz, created_before timestamptz, resolved_after timestamptz, resolved_before timestamptz,
	runs int, required tq.slugid, kinds smallint[], keys text[], owner text, dead bool,
	needs_run bool, needs_details bool, by_queue bool, by_failure bool
);
CREATE TYPE tq_internal.failure_group AS (reason text, error text, tasks bigint, first_failed timestamptz, last_failed timestamptz, queues int[], task bigint);
CREATE TYPE tq_internal.block AS (blocked bool, blocked_by text[]);

-- ---- after the rest ----

CREATE OPERATOR pg_catalog.~~ (
	LEFTARG = tq.slugid, RIGHTARG = text, FUNCTION = tq_internal.slugid_like,
	NEGATOR = OPERATOR(pg_catalog.!~~), RESTRICT = likesel, JOIN = likejoinsel);
CREATE OPERATOR pg_catalog.!~~ (
	LEFTARG = tq.slugid, RIGHTARG = text, FUNCTION = tq_internal.slugid_not_like,
	NEGATOR = OPERATOR(pg_catalog.~~), RESTRICT = nlikesel, JOIN = nlikejoinsel);

-- ---------------------------------------------------------------------------
-- Grants that grant_queue() of 0.1.0 gave
--
-- They were scopes and no more.  A role that has all those of an access has what the
-- access gives now, so that revoke_queue() takes it back.  queue:scheduler-id:*, which
-- none gives any longer, stays.
-- ---------------------------------------------------------------------------

WITH old (access, scopes) AS (VALUES
	('produce', '{queue:create-task:highest:%,queue:create-task:project:*,queue:scheduler-id:*,queue:schedule-task-in-queue:%,queue:schedule-cron-in-queue:%,
		queue:status-in-queue:%,queue:get-task-in-queue:%,queue:pending-count:%}'::text[]),
	('work', '{queue:claim-work:%,queue:claim-task:%,queue:worker-id:*,queue:reclaim-task-in-queue:%,queue:resolve-task-in-queue:%,
		queue:create-artifact-in-queue:%,queue:status-in-queue:%,queue:get-task-in-queue:%,queue:pending-count:%,queue:declare-worker:%/}'),
	('manage', '{queue:status-in-queue:%,queue:get-task-in-queue:%,queue:pending-count:%,queue:claimed-count:%,queue:pending-list:%,
		queue:claimed-list:%,queue:get-task-queue:%,queue:get-worker-type:%,queue:list-workers:%,queue:get-worker:%/,
		queue:schedule-task-in-queue:%,queue:rerun-task-in-queue:%,queue:reschedule-task-in-queue:%,queue:add-dependencies-in-queue:%,
		queue:cancel-task-in-queue:%,queue:skip-task-in-queue:%,queue:delete-task-in-queue:%,queue:change-task-priority-in-queue:%,
		queue:move-tasks:%,queue:dead-letters:%,queue:quarantine-worker:%/,queue:worker-removed:%/,queue:pause-queue:%,queue:set-queue:%}'),
	('read', '{queue:status-in-queue:%,queue:get-task-in-queue:%,queue:pending-count:%,queue:claimed-count:%,queue:pending-list:%,
		queue:claimed-list:%,queue:get-task-queue:%,queue:get-worker-type:%,queue:list-workers:%,queue:get-worker:%/}')
), pattern (queues, below) AS (
	SELECT q, CASE WHEN right(q, 1) = '*' THEN q ELSE q || '/*' END
	FROM (SELECT DISTINCT substring(scope, '^queue:pending-count:(.*)$') FROM tq_internal.scope_grant) AS s (q)
	WHERE q ~ '^([A-Za-z0-9_-]{0,38}|[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{0,38})[*]$|^[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{1,38}$'
), found (role, queues, access, scopes) AS (
	SELECT g.role, p.queues, o.access, o.scopes
	FROM (SELECT role, array_agg(scope) AS scopes FROM tq_internal.scope_grant GROUP BY role) AS g, pattern p,
		(SELECT access, pg_catalog.array_agg(s) AS scopes FROM old, unnest(scopes) AS s GROUP BY access) AS w (access, wanted),
		LATERAL (SELECT w.access, ARRAY(SELECT replace(replace(s, '%/', p.below), '%', p.queues) FROM unnest(w.wanted) AS s)) AS o (access, scopes)
	WHERE o.scopes <@ g.scopes
), held AS (
	SELECT * FROM found f WHERE access <> 'read'
		OR NOT EXISTS (SELECT FROM found m WHERE m.role = f.role AND m.queues = f.queues AND m.access = 'manage')
), given AS (
	INSERT INTO tq_internal.scope_grant (role, scope, queues, access)
		SELECT h.role, s, h.queues, h.access FROM held h, unnest(tq_internal.scopes_of_access(h.queues, h.access)) AS s
)
DELETE FROM tq_internal.scope_grant g USING held h
	WHERE g.role = h.role AND g.access = '' AND g.scope = ANY (h.scopes) AND g.scope <> 'queue:scheduler-id:*';

-- ---------------------------------------------------------------------------
-- Jobs of pg_cron in this database, which call fire_cron() where it was
-- ---------------------------------------------------------------------------

DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_cron') THEN
		PERFORM cron.alter_job(job_id => j.jobid, username => j.username, active => j.active,
				command => 'SELECT tq_internal.fire_cron(' || pg_catalog.substr(j.command, pg_catalog.length('SELECT tq.fire_cron(') + 1))
			FROM cron.job j WHERE j.database = pg_catalog.current_database() AND pg_catalog.starts_with(j.command, 'SELECT tq.fire_cron(');
	END IF;
END
$$;
