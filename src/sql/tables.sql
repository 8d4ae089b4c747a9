-- ---------------------------------------------------------------------------
-- Tables
--
-- The state of a task follows from the table that has a row for it: an
-- unresolved task has either a row in unscheduled, in pending or in delayed, or
-- a last run that is running; a resolved task has a last run that is resolved.
-- A transition locks that row.  Numbers of states and reasons: src/core/types.h.
-- ---------------------------------------------------------------------------

-- Task ids, task group ids and positions in a queue come from one sequence, so
-- that a run that is claimable at once has the id of its task as its position.
CREATE SEQUENCE tq_internal.id_seq AS bigint INCREMENT BY 64;	-- a block of numbers that sessions share: src/shmem/numbers.c
COMMENT ON SEQUENCE tq_internal.id_seq IS 'internal ids of tasks and groups, positions of runs in their queue, order of messages';

CREATE TABLE tq_internal.queue (
	id int GENERATED ALWAYS AS IDENTITY (CYCLE) PRIMARY KEY,
	task_queue_id text NOT NULL UNIQUE,
	expires timestamptz,			-- NULL: no worker has been seen
	last_date_active timestamptz,	-- written at most once per tq.seen_interval
	retired xid8,					-- by that transaction: nothing refers to it; src/storage/interned.c
	settled xid8,
	creator text					-- role that had logged in: for tq.max_queues; a name, as in the next tables, because the role may be dropped
);
CREATE INDEX queue_by_provisioner ON tq_internal.queue (task_queue_id COLLATE "C");	-- of patterns
COMMENT ON TABLE tq_internal.queue IS 'task queues, interned: provisionerId/workerType; deleted when they have expired and nothing refers to them';

CREATE TABLE tq_internal.queue_settings (
	queue int PRIMARY KEY,
	settings jsonb NOT NULL,		-- as they were given to set_queue()
	creator text					-- role that has limited it: for tq.max_limited_queues
);
COMMENT ON TABLE tq_internal.queue_settings IS 'what queues are set to: paused, limits, defaults of their tasks';

CREATE FUNCTION tq_internal.track_queue_settings() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_track_queue_settings' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.track_queue_settings() IS 'trigger: makes sessions read the settings of queues again';
CREATE TRIGGER track_queue_settings AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON tq_internal.queue_settings
	FOR EACH STATEMENT EXECUTE FUNCTION tq_internal.track_queue_settings();
ALTER TABLE tq_internal.queue_settings ENABLE ALWAYS TRIGGER track_queue_settings;

CREATE TABLE tq_internal.shard (
	is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
	buckets int4multirange,			-- NULL: all
	changed xid8 NOT NULL,			-- by that transaction
	fence xid8						-- the next transaction once that had committed; NULL: not asked yet; src/storage/shard_table.c
);
COMMENT ON TABLE tq_internal.shard IS 'the buckets in which this database begins task groups, if it shares the work with others';

CREATE FUNCTION tq_internal.track_shard() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_track_shard' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.track_shard() IS 'trigger: makes sessions read the buckets of this database again';
CREATE TRIGGER track_shard AFTER INSERT OR UPDATE OF buckets OR DELETE OR TRUNCATE ON tq_internal.shard
	FOR EACH STATEMENT EXECUTE FUNCTION tq_internal.track_shard();
ALTER TABLE tq_internal.shard ENABLE ALWAYS TRIGGER track_shard;

CREATE TABLE tq_internal.worker (
	id int GENERATED ALWAYS AS IDENTITY (CYCLE) PRIMARY KEY,
	queue int NOT NULL,
	worker_group text NOT NULL,
	worker_id text NOT NULL,
	expires timestamptz,			-- NULL: not seen by claim_work, so not listed
	first_claim timestamptz,
	last_date_active timestamptz,	-- written at most once per tq.seen_interval
	quarantine_until timestamptz,	-- NULL: never
	quarantine_details jsonb,
	recent_tasks bigint[] NOT NULL DEFAULT '{}',	-- the last 20 claimed, when last_date_active was written
	recent_runs int[] NOT NULL DEFAULT '{}',
	retired xid8,					-- as of a queue
	settled xid8,
	creator text,					-- for tq.max_workers; NULL: it has expired
	capacity int,					-- as it was declared, like the next; NULL: it was not
	version text,
	UNIQUE (queue, worker_group, worker_id)
) WITH (fillfactor = 70);
CREATE INDEX worker_creator ON tq_internal.worker (creator);
COMMENT ON TABLE tq_internal.worker IS 'workers, interned per task queue; deleted when they have expired and nothing refers to them';

CREATE TABLE tq_internal.task_group (
	id bigint PRIMARY KEY,
	task_group_id tq.slugid NOT NULL UNIQUE,
	scheduler_id text,				-- NULL: '-'
	expires timestamptz NOT NULL,
	sealed timestamptz,
	queue int NOT NULL,				-- of its first task: whose producers may join it
	name text						-- for people; NULL: none was given
) WITH (fillfactor = 70);
COMMENT ON TABLE tq_internal.task_group IS 'task groups that have or had a task other than the one of the same id, or are sealed';

CREATE TABLE tq_internal.policy (
	id int GENERATED ALWAYS AS IDENTITY (CYCLE) PRIMARY KEY,
	policy jsonb NOT NULL,			-- sessions that store one at the same moment have a row each
	retired xid8,					-- as of a queue
	settled xid8,
	creator regrole					-- of the tasks, if it cancels groups, which needs the rights of that role; NULL: none, or credentials
);
COMMENT ON TABLE tq_internal.policy IS 'policies of tasks, interned as they were given; deleted when no task has them';
CREATE INDEX policy_value ON tq_internal.policy (policy);

CREATE TABLE tq_internal.task (
	id bigint PRIMARY KEY,
	created timestamptz NOT NULL,
	deadline timestamptz NOT NULL,
	expires timestamptz NOT NULL,
	effective_deadline timestamptz,				-- effective deadline, if totalTimeout of the policy ends before the deadline
	delay bigint,					-- milliseconds from scheduled until claimable; below 0: from created; NULL: none
	group_id bigint,				-- NULL: the group has the task's own id
	queue int NOT NULL,
	policy int,						-- NULL: none
	priority smallint NOT NULL,		-- 1 lowest to 7 highest
	retries smallint NOT NULL,
	all_resolved bool NOT NULL,		-- requires = all-resolved
	task_id tq.slugid NOT NULL UNIQUE,
	expires_given bool,				-- true: kept until expires; NULL: deleted earlier, by retention
	scheduler_id text,				-- NULL: '-'
	project_id text,				-- NULL: 'none'
	dependencies tq.slugid[],		-- NULL, as in the next: none
	routes text[],
	scopes text[],
	payload jsonb NOT NULL,
	metadata jsonb,					-- NULL: made by enqueue() without a name
	tags jsonb,
	extra jsonb,
	xid xid8,						-- top-level transaction that created it, if the publisher derives its first messages from this row
	first_priority smallint			-- that they have; NULL: the priority has not changed
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.task IS 'task definitions, which do not change, except for the priority, the queue, and effective_deadline when a task is scheduled after it was created';
CREATE INDEX task_group_idx ON tq_internal.task (group_id, task_id) WHERE group_id IS NOT NULL;
CREATE INDEX task_dependent ON tq_internal.task (id) WHERE dependencies IS NOT NULL;	-- for a list of them

-- Only messages find what is here: the task and its other rows are deleted.
CREATE TABLE tq_internal.departed (
	id bigint PRIMARY KEY,			-- of the task, by which messages name it
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
	scheduler_id text,				-- NULL, as in the next: as in task
	project_id text,
	routes text[],
	tags jsonb,
	xid xid8,						-- as in task
	first_priority smallint
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE tq_internal.departed IS 'tasks that have expired, as the messages about them that are kept need them; src/storage/departed_table.c';
CREATE INDEX departed_since ON tq_internal.departed (since);

-- Of the tables whose rows come and go with each task a vacuum does not cut off the empty end: it
-- would lock out all creations and claims meanwhile, for a flush at least (vacuum_truncate).
CREATE TABLE tq_internal.unscheduled (
	task bigint PRIMARY KEY,
	unmet int NOT NULL,				-- unmet dependencies; or rows of tq_internal.dependency_counter that count some
	stripes smallint NOT NULL,		-- stripes of the counter in tq_internal.dependency_counter; 0: no rows there
	all_resolved bool NOT NULL,		-- copy of that of the task
	next_run smallint				-- number of its next run, if it was resolved before; NULL: 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE tq_internal.unscheduled IS 'one row per unscheduled task, with the number of its unmet dependencies';

CREATE TABLE tq_internal.dependency_counter (
	task bigint NOT NULL,
	stripe smallint NOT NULL,		-- counts required tasks whose id modulo the number of stripes is this
	unmet int NOT NULL,
	PRIMARY KEY (task, stripe)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE tq_internal.dependency_counter IS 'striped counter of the unmet dependencies of an unscheduled task that has many, so that transactions that resolve required tasks do not wait for each other';

CREATE TABLE tq_internal.pending (
	seq bigint NOT NULL,			-- position in the queue: order of becoming pending; below 0 by fairness
	task bigint NOT NULL,
	scheduled timestamptz NOT NULL,
	queue int NOT NULL,
	priority smallint NOT NULL,
	run_id smallint NOT NULL,
	retries_left smallint NOT NULL,
	reason_created smallint NOT NULL,
	has_detail bool NOT NULL DEFAULT false	-- in run_detail
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE tq_internal.pending IS 'one row per claimable run, deleted when it is claimed';
CREATE UNIQUE INDEX pending_order ON tq_internal.pending (queue, priority DESC, seq);
CREATE UNIQUE INDEX pending_moved ON tq_internal.pending (task) WHERE seq <> task;	-- the others are found by pending_order
ALTER TABLE tq_internal.pending REPLICA IDENTITY USING INDEX pending_order;

-- Claims begin at the claim cursor in shared memory.  This trigger maintains it
-- for rows that the functions of tq do not write (a restore, a DBA).
CREATE FUNCTION tq_internal.track_pending() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_track_pending' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.track_pending() IS 'trigger: notes a row of pending that a statement has written, for the claim cursor';
CREATE TRIGGER track_delete BEFORE UPDATE OR DELETE ON tq_internal.pending
	FOR EACH ROW EXECUTE FUNCTION tq_internal.track_pending();
CREATE TRIGGER track_insert AFTER INSERT OR UPDATE ON tq_internal.pending
	FOR EACH ROW EXECUTE FUNCTION tq_internal.track_pending();
CREATE TRIGGER track_all AFTER TRUNCATE ON tq_internal.pending
	FOR EACH STATEMENT EXECUTE FUNCTION tq_internal.track_pending();
ALTER TABLE tq_internal.pending ENABLE ALWAYS TRIGGER track_delete;
ALTER TABLE tq_internal.pending ENABLE ALWAYS TRIGGER track_insert;
ALTER TABLE tq_internal.pending ENABLE ALWAYS TRIGGER track_all;

CREATE TABLE tq_internal.delayed (
	visible_at timestamptz NOT NULL,
	task bigint PRIMARY KEY,
	scheduled timestamptz NOT NULL,
	queue int NOT NULL,
	priority smallint NOT NULL,
	run_id smallint NOT NULL,
	retries_left smallint NOT NULL,
	reason_created smallint NOT NULL,
	has_detail bool NOT NULL DEFAULT false,
	group_id bigint					-- of the task
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE tq_internal.delayed IS 'pending runs that are not claimable before visible_at; moved to pending when due';
CREATE INDEX delayed_due ON tq_internal.delayed (visible_at, task);

CREATE TABLE tq_internal.run (
	task bigint NOT NULL,
	scheduled timestamptz NOT NULL,
	started timestamptz,
	taken_until timestamptz,
	resolved timestamptz,
	worker int,
	run_id smallint NOT NULL,
	state smallint NOT NULL,
	reason_created smallint NOT NULL,
	reason_resolved smallint NOT NULL DEFAULT 0,
	retries_left smallint NOT NULL,
	by_claim_task bool NOT NULL DEFAULT false,	-- claimed by claim_task, not claim_work
	has_detail bool NOT NULL DEFAULT false,		-- in run_detail
	PRIMARY KEY (task, run_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.run IS 'one row per run that was claimed or resolved; updated in place (HOT) at reclaim and resolve';

CREATE TABLE tq_internal.departed_run (LIKE tq_internal.run INCLUDING DEFAULTS, PRIMARY KEY (task, run_id))
	WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE tq_internal.departed_run IS 'runs of departed tasks';

-- Most runs have no row here, and their rows in other tables stay narrow.  It is
-- written under the lock of the row of the run in pending, delayed or run.
CREATE TABLE tq_internal.run_detail (
	task bigint NOT NULL,
	visible_at timestamptz NOT NULL,	-- not claimable before
	pending_until timestamptz,			-- when its pendingTimeout ends; NULL: never
	started timestamptz,				-- of a run that was deferred
	worker int NOT NULL,				-- that deferred it; 0: none
	run_id smallint NOT NULL,
	attempt smallint NOT NULL,			-- from 0
	lost_retries_left smallint NOT NULL,		-- of lostRetries; -1: lost runs use retries
	retry_delay bigint NOT NULL,		-- milliseconds, from a worker, in place of retryBackoff; -1: none
	error jsonb,						-- that the worker reported
	result jsonb,
	reported timestamptz,				-- when it reported its progress last; NULL: never
	done bigint,
	total bigint,						-- NULL: it did not say
	message text,
	PRIMARY KEY (task, run_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.run_detail IS 'what only some runs have: delays, attempts and budgets of a policy, a deferral, progress, an error or a result';

CREATE TABLE tq_internal.failure (
	resolved timestamptz NOT NULL,
	task bigint PRIMARY KEY,
	queue int NOT NULL,
	state smallint NOT NULL,		-- of the task: failed or exception
	run_id smallint NOT NULL		-- its last run
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.failure IS 'one row per task that ended without success, until it is rerun or deleted';
CREATE INDEX failure_resolved ON tq_internal.failure (resolved);
CREATE INDEX failure_queue ON tq_internal.failure (queue, resolved);

CREATE TABLE tq_internal.task_key (
	task bigint NOT NULL,
	kind smallint NOT NULL,			-- src/core/policy.h
	key text COLLATE "C" NOT NULL,
	PRIMARY KEY (task, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.task_key IS 'keys of tasks: uniqueKey, serialKey, concurrencyKey and fairnessKey of their policies';
CREATE INDEX task_key_fair ON tq_internal.task_key (key, task) WHERE kind = 3;	-- fairnessKey: its newest tasks

-- Clients insert rows; the step "admit" of maintenance makes all other changes.
CREATE TABLE tq_internal.gate_member (
	queue int NOT NULL,
	kind smallint NOT NULL,			-- of task_key
	key text COLLATE "C" NOT NULL,
	state smallint NOT NULL,		-- src/storage/tasks.h
	priority smallint NOT NULL,		-- 0 where only the order of creation counts
	task bigint NOT NULL,
	PRIMARY KEY (task, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.gate_member IS 'tasks with a serialKey or a limited concurrencyKey, from when they are pending until they are resolved';
CREATE INDEX gate_member_order ON tq_internal.gate_member (queue, kind, key, state, priority DESC, task);

CREATE TABLE tq_internal.unique_key (
	queue int NOT NULL,				-- 0: the key is unique in the database
	key text COLLATE "C" NOT NULL,
	task bigint NOT NULL,
	PRIMARY KEY (queue, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.unique_key IS 'one row per uniqueKey: the task that was created or rerun with it last';

CREATE TABLE tq_internal.group_callback (
	id bigint PRIMARY KEY,			-- of id_seq, as those of tasks: timers name it
	registered timestamptz NOT NULL,
	task_group_id tq.slugid NOT NULL,
	task_id tq.slugid UNIQUE NOT NULL,	-- of the task that is created
	role regrole NOT NULL,			-- that has registered it, and needs the scopes when the task is created
	client text,					-- of the credentials that it had assumed: only their scopes counted; '': they were revoked
	definition jsonb NOT NULL		-- as if it had been created then
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE tq_internal.group_callback IS 'tasks that are created when a group resolves, until then';
CREATE INDEX group_callback_group ON tq_internal.group_callback (task_group_id);

CREATE TABLE tq_internal.dependency (
	required bigint NOT NULL,
	dependent bigint NOT NULL,
	from_run smallint NOT NULL,		-- first run of the required task that can meet it
	PRIMARY KEY (required, dependent)
);
COMMENT ON TABLE tq_internal.dependency IS 'dependencies; whether one is met follows from the runs of the required task; dependent 0: the task has foreign ones';

CREATE TABLE tq_internal.foreign_dependency (
	required bigint NOT NULL,
	dependent bigint NOT NULL,
	queue int NOT NULL,				-- of the dependent when it was created, for tq.max_foreign_dependencies
	from_run smallint NOT NULL,		-- as in dependency
	all_resolved boolean NOT NULL,	-- what the dependent requires
	settled boolean NOT NULL,		-- met, and no longer counted by the dependent
	PRIMARY KEY (required, dependent)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.foreign_dependency IS 'dependencies on tasks of queues in which the creator may not create tasks; maintenance settles them';
CREATE INDEX foreign_dependency_unsettled ON tq_internal.foreign_dependency (required, all_resolved, from_run) WHERE NOT settled;

CREATE TABLE tq_internal.claim_timer (
	due timestamptz NOT NULL,
	seq bigint NOT NULL DEFAULT nextval('tq_internal.id_seq'),
	tasks bigint[] NOT NULL,
	PRIMARY KEY (due, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE tq_internal.claim_timer IS 'claim timers, when to check whether claims have expired: first soon after the claim, last at its end; stale rows are harmless';

CREATE TABLE tq_internal.timer (
	due timestamptz NOT NULL,
	seq bigint NOT NULL DEFAULT nextval('tq_internal.id_seq'),
	kind smallint NOT NULL,			-- src/storage/tasks.h
	tasks bigint[] NOT NULL,
	PRIMARY KEY (kind, due, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.timer IS 'when to check tasks for anything other than claim expiry: deadlines, timeouts, expiry; stale rows are harmless';

-- The maintenance worker sleeps until the next thing is due.  This trigger wakes
-- it for rows that the functions of tq do not write (a restore, a DBA).
CREATE FUNCTION tq_internal.track_due() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_track_due' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.track_due() IS 'trigger: notes a row of claim_timer, timer or delayed that a statement has written, for the maintenance worker';
CREATE TRIGGER track_due AFTER INSERT OR UPDATE ON tq_internal.claim_timer
	FOR EACH ROW EXECUTE FUNCTION tq_internal.track_due();
CREATE TRIGGER track_due AFTER INSERT OR UPDATE ON tq_internal.timer
	FOR EACH ROW EXECUTE FUNCTION tq_internal.track_due();
CREATE TRIGGER track_due AFTER INSERT OR UPDATE ON tq_internal.delayed
	FOR EACH ROW EXECUTE FUNCTION tq_internal.track_due();
ALTER TABLE tq_internal.claim_timer ENABLE ALWAYS TRIGGER track_due;
ALTER TABLE tq_internal.timer ENABLE ALWAYS TRIGGER track_due;
ALTER TABLE tq_internal.delayed ENABLE ALWAYS TRIGGER track_due;

CREATE TABLE tq_internal.postponed (
	task bigint NOT NULL,
	due timestamptz NOT NULL,		-- when the step is retried
	origin timestamptz NOT NULL,	-- due time of the timer that caused the step
	since timestamptz NOT NULL,
	failures int NOT NULL,
	step text NOT NULL,				-- src/bgworker/bgworker.h
	error text NOT NULL,
	PRIMARY KEY (task, step)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE tq_internal.postponed IS 'tasks for which a step of maintenance failed, until it succeeds or the task is deleted';
CREATE INDEX postponed_due ON tq_internal.postponed (due);

CREATE TABLE tq_internal.activation (
	since timestamptz NOT NULL,
	swept timestamptz				-- when rows that nothing refers to were last looked for
);
-- It has no key, for which first calls would wait for each other.
ALTER TABLE tq_internal.activation REPLICA IDENTITY FULL;
COMMENT ON TABLE tq_internal.activation IS 'since when this database is in use: empty until a function of tq that may change something is called, and in a copy';

CREATE TABLE tq_internal.dead_letter (
	task_id tq.slugid PRIMARY KEY,
	task bigint NOT NULL,			-- the task may have expired
	queue int NOT NULL,
	failed_at timestamptz NOT NULL,
	seq bigint NOT NULL,			-- order of writing
	reason smallint NOT NULL,		-- src/core/types.h
	error jsonb,
	definition jsonb NOT NULL,
	runs jsonb NOT NULL
);
COMMENT ON TABLE tq_internal.dead_letter IS 'tasks that failed for good and whose policy has deadLetter, until they are redriven, rerun or discarded';
CREATE INDEX dead_letter_queue ON tq_internal.dead_letter (queue, task_id);
CREATE INDEX dead_letter_failed_at ON tq_internal.dead_letter (queue, failed_at, seq);

CREATE TABLE tq_internal.artifact (
	task bigint NOT NULL,
	expires timestamptz NOT NULL,
	content_length bigint,
	run_id smallint NOT NULL,
	storage_type smallint NOT NULL,	-- src/core/types.h
	present bool NOT NULL,			-- false: an object that is not finished
	name text COLLATE "C" NOT NULL,
	content_type text NOT NULL,
	details jsonb NOT NULL,			-- url, artifact, reason and message, uploadId, or content
	PRIMARY KEY (task, run_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.artifact IS 'artifacts of runs: a reference to the content, or the content inline';
CREATE INDEX artifact_expires ON tq_internal.artifact (expires);

-- Messages, in narrow rows: one for each call that appends some, in its own
-- transaction, and those in which a tick keeps what was derived.  Each is stamped
-- with its top-level transaction, by which the publisher finds what has become
-- visible since the last tick.  The message log has six segments;
-- src/storage/log_segment_table.c.
CREATE TABLE tq_internal.message (
	xid xid8 NOT NULL,				-- top-level transaction that wrote it; 2: what the publisher has derived
	seq bigint NOT NULL,			-- order of writing; of what was derived, last_id of the tick
	taken_until timestamptz,		-- of the runs that the messages show as running
	due timestamptz,				-- of the timer that the publisher inserts: of a deadline, of a claim
	worker int,						-- that had claimed them
	segment smallint NOT NULL,
	records bytea NOT NULL,			-- the messages, in some bytes each; src/storage/outbox_table.c
	detail jsonb					-- content of an artifact, priority or group message
) PARTITION BY LIST (segment);
COMMENT ON TABLE tq_internal.message IS 'messages as transitions wrote them or the publisher derived them: outbox and message log in one, in segments';
CREATE INDEX message_xid ON tq_internal.message (xid, seq);

CREATE TABLE tq_internal.tick (
	first_id bigint NOT NULL,		-- ids of the messages that became visible
	last_id bigint NOT NULL,
	published timestamptz NOT NULL,
	unsent bigint,					-- NOTIFY has to be sent from this id on
	messages int NOT NULL,
	segments int NOT NULL,			-- segments of the log that hold them, as bits
	segment smallint NOT NULL,
	since pg_snapshot NOT NULL,
	upto pg_snapshot NOT NULL,		-- what is visible in it has been published
	part_of pg_snapshot,			-- this is a part of what is visible in it, and others follow
	xid xid8,						-- the transaction that published it
	timeline int NOT NULL,			-- of the server, when it published it
	after_seq bigint,				-- a part has the rows between these two
	upto_seq bigint,
	xids xid8[],					-- of these transactions; NULL if the tick is not a part
	derived int,					-- how many messages it has that the publisher has derived; NULL: none
	low bigint,						-- of tasks with lower numbers none was being created when upto was taken
	open bigint[],					-- except of these
	PRIMARY KEY (last_id, segment)
) PARTITION BY LIST (segment);
COMMENT ON TABLE tq_internal.tick IS 'publications: which messages became visible between two snapshots, and the ids they got';
CREATE INDEX tick_unsent ON tq_internal.tick (unsent) WHERE unsent IS NOT NULL;

CREATE TABLE tq_internal.message_0 PARTITION OF tq_internal.message FOR VALUES IN (0) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_0 IS 'segment 0 of the message log';
CREATE TABLE tq_internal.message_1 PARTITION OF tq_internal.message FOR VALUES IN (1) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_1 IS 'segment 1 of the message log';
CREATE TABLE tq_internal.message_2 PARTITION OF tq_internal.message FOR VALUES IN (2) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_2 IS 'segment 2 of the message log';
CREATE TABLE tq_internal.message_3 PARTITION OF tq_internal.message FOR VALUES IN (3) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_3 IS 'segment 3 of the message log';
CREATE TABLE tq_internal.message_4 PARTITION OF tq_internal.message FOR VALUES IN (4) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_4 IS 'segment 4 of the message log';
CREATE TABLE tq_internal.message_5 PARTITION OF tq_internal.message FOR VALUES IN (5) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.message_5 IS 'segment 5 of the message log';
CREATE TABLE tq_internal.tick_0 PARTITION OF tq_internal.tick FOR VALUES IN (0) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_0 IS 'segment 0 of the ticks of the message log';
CREATE TABLE tq_internal.tick_1 PARTITION OF tq_internal.tick FOR VALUES IN (1) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_1 IS 'segment 1 of the ticks of the message log';
CREATE TABLE tq_internal.tick_2 PARTITION OF tq_internal.tick FOR VALUES IN (2) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_2 IS 'segment 2 of the ticks of the message log';
CREATE TABLE tq_internal.tick_3 PARTITION OF tq_internal.tick FOR VALUES IN (3) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_3 IS 'segment 3 of the ticks of the message log';
CREATE TABLE tq_internal.tick_4 PARTITION OF tq_internal.tick FOR VALUES IN (4) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_4 IS 'segment 4 of the ticks of the message log';
CREATE TABLE tq_internal.tick_5 PARTITION OF tq_internal.tick FOR VALUES IN (5) WITH (autovacuum_enabled = off);
COMMENT ON TABLE tq_internal.tick_5 IS 'segment 5 of the ticks of the message log';

CREATE SEQUENCE tq_internal.message_id_seq AS bigint;
COMMENT ON SEQUENCE tq_internal.message_id_seq IS 'ids of messages, in the order of publication';

CREATE TABLE tq_internal.log_segment (
	segment smallint PRIMARY KEY,
	since timestamptz NOT NULL		-- of the first write: the newest is the current segment
);
COMMENT ON TABLE tq_internal.log_segment IS 'segments of the message log: which one is written to, and since when';
INSERT INTO tq_internal.log_segment SELECT segment, '-infinity' FROM generate_series(0, 5) AS segment;
UPDATE tq_internal.log_segment SET since = clock_timestamp() WHERE segment = 0;

-- The first tick: nothing of transactions in progress has been published.
-- The name of a WAL file begins with the timeline, as eight digits.
INSERT INTO tq_internal.tick (first_id, last_id, published, messages, segments, segment, since, upto, timeline)
	SELECT 0, 0, clock_timestamp(), 0, 0, 0, s, s, CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS bit(32)) AS int)
	FROM format('%1$s:%1$s:', least(pg_snapshot_xmin(pg_current_snapshot()), pg_current_xact_id())) AS f (t),
		CAST(f.t AS pg_snapshot) AS s;

-- Rows that a restore loads from another database are published in this one.
CREATE FUNCTION tq_internal.stamp_message() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_stamp_message' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.stamp_message() IS 'trigger: stamps a message that is loaded, as in a restore, so that it is published again';
CREATE TRIGGER stamp_message BEFORE INSERT ON tq_internal.message
	FOR EACH ROW EXECUTE FUNCTION tq_internal.stamp_message();

CREATE TABLE tq_internal.binding (
	channel text NOT NULL,
	exchange smallint NOT NULL,		-- src/core/types.h
	pattern text NOT NULL,
	PRIMARY KEY (channel, exchange, pattern)
);
COMMENT ON TABLE tq_internal.binding IS 'bindings of channels to exchanges, other than the default ones';

CREATE TABLE tq_internal.disabled_channel (
	exchange smallint PRIMARY KEY
);
COMMENT ON TABLE tq_internal.disabled_channel IS 'exchanges whose default channel is disabled';

CREATE TABLE tq_internal.cron (
	name text NOT NULL,				-- one of its owner
	id tq.slugid NOT NULL,			-- all of it random: of it the ids of its tasks are made, which no other role can guess
	role regrole NOT NULL,			-- that owns it
	schedule text NOT NULL,
	task_queue_id text NOT NULL,
	overlap text NOT NULL,			-- allow, skip or replace
	paused bool NOT NULL DEFAULT false,
	payload jsonb NOT NULL,
	options jsonb NOT NULL,			-- further arguments of enqueue(), by name
	created timestamptz NOT NULL,
	last_scheduled timestamptz,		-- the minute, or second, for which it has fired last
	last_fired timestamptz,
	last_skipped timestamptz,
	last_task tq.slugid,
	PRIMARY KEY (name, role)
) WITH (fillfactor = 50);
COMMENT ON TABLE tq_internal.cron IS 'recurring tasks: what pg_cron calls fire_cron() for, and what that has left';

-- What a role may do, in addition to what it may as a member of others.
CREATE TABLE tq_internal.scope_grant (
	role regrole NOT NULL,
	scope text NOT NULL,
	queues text NOT NULL DEFAULT '',	-- arguments of the grant_queue() that gave it;
	access text NOT NULL DEFAULT '',	-- '': grant_scopes() did
	PRIMARY KEY (role, scope, queues, access)
);
COMMENT ON TABLE tq_internal.scope_grant IS 'scopes of roles, and the grant from which each comes; rows of dropped roles have no effect';

CREATE FUNCTION tq_internal.track_grants() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_track_grants' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.track_grants() IS 'trigger: makes sessions read the scopes of roles again';
CREATE TRIGGER track_grants AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON tq_internal.scope_grant
	FOR EACH STATEMENT EXECUTE FUNCTION tq_internal.track_grants();
ALTER TABLE tq_internal.scope_grant ENABLE ALWAYS TRIGGER track_grants;

-- Names, not numbers, because a row outlives the roles and the tasks.
CREATE TABLE tq_internal.audit (
	at timestamptz NOT NULL,
	id bigint GENERATED ALWAYS AS IDENTITY,	-- order of writing
	session_role text NOT NULL,
	role text NOT NULL,
	client_ids text[],				-- NULL: no credentials
	function text NOT NULL,
	task_ids tq.slugid[],			-- NULL: the call names none
	run_ids int[],					-- one for each task
	arguments jsonb NOT NULL,
	PRIMARY KEY (at, id)			-- retention deletes in this order
);
COMMENT ON TABLE tq_internal.audit IS 'audit trail: which role made which call, kept for tq.audit_retention';

CREATE TABLE tq_internal.subscription (
	name text PRIMARY KEY,
	acked_id bigint NOT NULL,			-- messages with greater ids are not acknowledged
	created timestamptz NOT NULL,
	acked_at timestamptz,
	lost_before bigint,				-- messages with lower ids were dropped before they were acknowledged
	creator text						-- the role that had logged in
) WITH (fillfactor = 50);
COMMENT ON TABLE tq_internal.subscription IS 'durable subscriptions, and up to which id each has acknowledged';

CREATE TABLE tq_internal.subscription_binding (
	name text NOT NULL,
	exchange smallint NOT NULL,
	pattern text NOT NULL,
	PRIMARY KEY (name, exchange, pattern)
);
COMMENT ON TABLE tq_internal.subscription_binding IS 'bindings of durable subscriptions';

CREATE TABLE tq_internal.queue_history (
	seconds smallint NOT NULL,		-- of the step: 10, 60 or 3600
	at timestamptz NOT NULL,		-- when it began
	queue int NOT NULL,				-- whose row may be gone: it holds none
	created int NOT NULL,
	claimed int NOT NULL,
	retried int NOT NULL,
	completed int NOT NULL,
	failed int NOT NULL,
	exception int NOT NULL,
	expired_claims int NOT NULL,
	blocked int,					-- these four at its end; NULL: not known
	delayed int,
	pending int,
	running int,
	waited bytea,					-- distributions; src/api/history_api.c
	ran bytea,
	PRIMARY KEY (seconds, at, queue)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.queue_history IS 'what has happened in queues, by steps of ten seconds, a minute and an hour; not dumped, as it is of one server';

CREATE TABLE tq_internal.task_name_history (
	day timestamptz NOT NULL,		-- when it began, in UTC
	queue int NOT NULL,				-- as in queue_history
	is_rest bool NOT NULL,			-- of all names that have no row
	name text COLLATE "C" NOT NULL,	-- the beginning of it; '': the tasks have none
	completed int NOT NULL,
	failed int NOT NULL,
	exception int NOT NULL,
	waited bytea,					-- as in queue_history
	ran bytea,
	PRIMARY KEY (day, queue, is_rest, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.task_name_history IS 'runs that have ended on a day, by the name of their task; not dumped, as it is of one server';

-- Its only writer is the maintenance worker.
CREATE TABLE tq_internal.task_name_pass (
	since xid8 PRIMARY KEY,			-- the pass counts what transactions from this one on have ended
	upto xid8 NOT NULL,				-- ... and before this one, all of which are over
	block bigint,					-- of the table of runs: from which it goes on; NULL: it is over
	seen timestamptz NOT NULL,		-- what had happened by then is of transactions before upto
	next xid8 NOT NULL,				-- ... and by that time of those before this one
	next_seen timestamptz NOT NULL
) WITH (fillfactor = 10);
COMMENT ON TABLE tq_internal.task_name_pass IS 'one row: how far the runs that have ended are counted by the names of their tasks; empty until there is something to count; not dumped, as it is of one server';

-- Row security without a policy hides the rows from roles that may read all data.
CREATE TABLE tq_internal.secret (
	id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),	-- of no other server
	secret bytea NOT NULL DEFAULT pg_catalog.sha256(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) OPERATOR(pg_catalog.||) pg_catalog.uuid_send(pg_catalog.gen_random_uuid())),
	since timestamptz NOT NULL,
	until timestamptz				-- when what it signed is refused; NULL: it signs
);
COMMENT ON TABLE tq_internal.secret IS 'secrets that sign the credentials of claims; not dumped, as those of a database are of no use in another one';
ALTER TABLE tq_internal.secret ENABLE ROW LEVEL SECURITY;
INSERT INTO tq_internal.secret (since) VALUES (pg_catalog.clock_timestamp());

-- Members of pg_write_all_data may write every table, but not those of tq.
CREATE FUNCTION tq_internal.guard_rows() RETURNS trigger
	AS 'MODULE_PATHNAME', 'tq_guard_rows' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.guard_rows() IS 'trigger: refuses a statement of a role that does not own the table';
DO $$
DECLARE
	guarded pg_catalog.regclass;
BEGIN
	FOR guarded IN SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = 'tq_internal'::pg_catalog.regnamespace AND c.relkind IN ('r', 'p') LOOP
		EXECUTE pg_catalog.format('CREATE TRIGGER guard_rows BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s
			FOR EACH STATEMENT EXECUTE FUNCTION tq_internal.guard_rows()', guarded);
		EXECUTE pg_catalog.format('ALTER TABLE %s ENABLE ALWAYS TRIGGER guard_rows', guarded);
	END LOOP;
END
$$;

SELECT pg_catalog.pg_extension_config_dump('tq_internal.id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.queue', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.worker', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task_group', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.policy', '');
-- The transactions that tasks name are of this server: elsewhere they would be taken
-- for creations that are to be published.  What is to be published has a row of
-- messages, below.
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task', 'WHERE false UNION ALL SELECT id, created, deadline, expires, effective_deadline, delay, group_id, queue, policy, priority, retries, all_resolved, task_id, expires_given, scheduler_id, project_id, dependencies, routes, scopes, payload, metadata, tags, extra, NULL::xid8, NULL::smallint FROM tq_internal.task');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.departed', 'WHERE false UNION ALL SELECT id, since, created, deadline, effective_deadline, expires, queue, priority, retries, task_id, task_group_id, scheduler_id, project_id, routes, tags, NULL::xid8, NULL::smallint FROM tq_internal.departed');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.unscheduled', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.dependency_counter', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.pending', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.delayed', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.run', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.departed_run', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.run_detail', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.failure', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.dependency', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.foreign_dependency', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.claim_timer', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.timer', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.postponed', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.activation', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.dead_letter', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.queue_settings', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.shard', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task_key', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.gate_member', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.unique_key', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.artifact', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_id_seq', '');

-- Only messages that are unpublished or not acknowledged by a subscription are
-- dumped.  Ticks and the state of segments belong to one server.  Of a task whose
-- messages are to be derived, pg_dump reads a row of messages.
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_0', 'WHERE tq_internal.is_awaited(xid, seq) UNION ALL SELECT * FROM tq_internal.underived_message()');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_1', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_2', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_3', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_4', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_5', 'WHERE tq_internal.is_awaited(xid, seq)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_0', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_1', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_2', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_3', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_4', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.tick_5', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.log_segment', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.binding', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.disabled_channel', '');
-- A role that was dropped is a number, which may be another role elsewhere.
SELECT pg_catalog.pg_extension_config_dump('tq_internal.scope_grant', 'WHERE role::oid IN (SELECT oid FROM pg_catalog.pg_roles)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.group_callback', 'WHERE role::oid IN (SELECT oid FROM pg_catalog.pg_roles)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.cron', 'WHERE role::oid IN (SELECT oid FROM pg_catalog.pg_roles)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.audit', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.subscription', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.subscription_binding', '');
SELECT pg_catalog.pg_extension_config_dump(pg_get_serial_sequence('tq_internal.queue', 'id')::regclass, '');
SELECT pg_catalog.pg_extension_config_dump(pg_get_serial_sequence('tq_internal.worker', 'id')::regclass, '');
SELECT pg_catalog.pg_extension_config_dump(pg_get_serial_sequence('tq_internal.policy', 'id')::regclass, '');
SELECT pg_catalog.pg_extension_config_dump(pg_get_serial_sequence('tq_internal.audit', 'id')::regclass, '');
