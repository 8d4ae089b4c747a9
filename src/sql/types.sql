-- ---------------------------------------------------------------------------
-- Types
-- ---------------------------------------------------------------------------

CREATE TYPE tq.slugid;

CREATE FUNCTION tq_internal.slugid_in(cstring) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_in(cstring) IS 'input of a slugid: a version 4 UUID, or its URL-safe base64 of 22 characters';

CREATE FUNCTION tq_internal.slugid_out(tq.slugid) RETURNS cstring
	AS 'MODULE_PATHNAME', 'tq_slugid_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_out(tq.slugid) IS 'output of a slugid';

CREATE FUNCTION tq_internal.slugid_recv(internal) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_recv(internal) IS 'binary input of a slugid: 16 bytes, checked';

CREATE FUNCTION tq_internal.slugid_send(tq.slugid) RETURNS bytea
	AS 'MODULE_PATHNAME', 'tq_slugid_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_send(tq.slugid) IS 'binary output of a slugid: 16 bytes';

CREATE TYPE tq.slugid (
	INPUT = tq_internal.slugid_in, OUTPUT = tq_internal.slugid_out,
	RECEIVE = tq_internal.slugid_recv, SEND = tq_internal.slugid_send,
	INTERNALLENGTH = 16, ALIGNMENT = char, STORAGE = plain
);
COMMENT ON TYPE tq.slugid IS 'a version 4 UUID that reads as the 22-character slug of Taskcluster';

CREATE FUNCTION tq.slugid() RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION tq.slugid() IS 'a new slugid, which begins with the time unless tq.ordered_ids is off';

CREATE FUNCTION tq.slugid(ordered bool) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.slugid(bool) IS 'the same; false: one that is random as a whole';

CREATE FUNCTION tq_internal.slugid_from_uuid(uuid) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_from_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_from_uuid(uuid) IS 'cast of a version 4 UUID to a slugid';

CREATE FUNCTION tq_internal.slugid_to_uuid(tq.slugid) RETURNS uuid
	AS 'MODULE_PATHNAME', 'tq_slugid_to_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_to_uuid(tq.slugid) IS 'cast of a slugid to a UUID';

CREATE FUNCTION tq_internal.slugid_in_bucket(bucket int) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_in_bucket' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_in_bucket(int) IS 'a new slugid in one of the buckets 0 to 1023';

CREATE FUNCTION tq_internal.bucket(id tq.slugid) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_bucket' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.bucket(tq.slugid) IS 'bucket of the id of a task or group, 0 to 1023';

CREATE FUNCTION tq.stable_slugid(name text) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_stable_slugid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.stable_slugid(text) IS 'the slugid of a name: the same for the same name, always and everywhere';

-- Implicit, so that a task id may be a uuid or a string parameter of a driver.
-- Overloads for these types would make untyped literals ambiguous.
CREATE CAST (uuid AS tq.slugid) WITH FUNCTION tq_internal.slugid_from_uuid(uuid) AS IMPLICIT;
CREATE CAST (text AS tq.slugid) WITH INOUT AS IMPLICIT;
CREATE CAST (varchar AS tq.slugid) WITH INOUT AS IMPLICIT;
CREATE CAST (tq.slugid AS uuid) WITH FUNCTION tq_internal.slugid_to_uuid(tq.slugid) AS ASSIGNMENT;

CREATE FUNCTION tq_internal.slugid_eq_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME', 'tq_slugid_eq_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.slugid_eq_support(internal) IS 'planner support: a filter by task_group_id of a view uses indexes';
CREATE FUNCTION tq_internal.slugid_eq(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_eq' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE SUPPORT tq_internal.slugid_eq_support;
COMMENT ON FUNCTION tq_internal.slugid_eq(tq.slugid, tq.slugid) IS 'implementation of = operator';
CREATE FUNCTION tq_internal.slugid_ne(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_ne' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_ne(tq.slugid, tq.slugid) IS 'implementation of <> operator';
CREATE FUNCTION tq_internal.slugid_lt(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_lt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_lt(tq.slugid, tq.slugid) IS 'implementation of < operator';
CREATE FUNCTION tq_internal.slugid_le(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_le' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_le(tq.slugid, tq.slugid) IS 'implementation of <= operator';
CREATE FUNCTION tq_internal.slugid_gt(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_gt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_gt(tq.slugid, tq.slugid) IS 'implementation of > operator';
CREATE FUNCTION tq_internal.slugid_ge(tq.slugid, tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_slugid_ge' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_ge(tq.slugid, tq.slugid) IS 'implementation of >= operator';
CREATE FUNCTION tq_internal.slugid_cmp(tq.slugid, tq.slugid) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_slugid_cmp' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_cmp(tq.slugid, tq.slugid) IS 'btree comparison of slugids, by bytes';
CREATE FUNCTION tq_internal.slugid_hash(tq.slugid) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_slugid_hash' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_hash(tq.slugid) IS 'hash of a slugid';
CREATE FUNCTION tq_internal.slugid_hash_extended(tq.slugid, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_slugid_hash_extended' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_hash_extended(tq.slugid, bigint) IS 'seeded hash of a slugid';

-- In pg_catalog, so that task_id = '...' and JOIN ... USING (task_id) work with
-- every search_path.  They are members of the extension like all the rest.
CREATE OPERATOR pg_catalog.= (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_eq,
	COMMUTATOR = OPERATOR(pg_catalog.=), NEGATOR = OPERATOR(pg_catalog.<>),
	RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR pg_catalog.<> (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_ne,
	COMMUTATOR = OPERATOR(pg_catalog.<>), NEGATOR = OPERATOR(pg_catalog.=),
	RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR pg_catalog.< (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_lt,
	COMMUTATOR = OPERATOR(pg_catalog.>), NEGATOR = OPERATOR(pg_catalog.>=),
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR pg_catalog.<= (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_le,
	COMMUTATOR = OPERATOR(pg_catalog.>=), NEGATOR = OPERATOR(pg_catalog.>),
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR pg_catalog.> (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_gt,
	COMMUTATOR = OPERATOR(pg_catalog.<), NEGATOR = OPERATOR(pg_catalog.<=),
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR pg_catalog.>= (
	LEFTARG = tq.slugid, RIGHTARG = tq.slugid, FUNCTION = tq_internal.slugid_ge,
	COMMUTATOR = OPERATOR(pg_catalog.<=), NEGATOR = OPERATOR(pg_catalog.<),
	RESTRICT = scalargesel, JOIN = scalargejoinsel);

-- What people write about ids of tasks: max(task_id), length(task_id), task_id LIKE 'VXs%'.
-- A cast to text that is implicit, too, would do, but make task_id = text a comparison
-- of texts, for which there is no index.
CREATE FUNCTION tq_internal.slugid_larger(tq.slugid, tq.slugid) RETURNS tq.slugid
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC SELECT CASE WHEN $1 > $2 THEN $1 ELSE $2 END; END;
COMMENT ON FUNCTION tq_internal.slugid_larger(tq.slugid, tq.slugid) IS 'larger of two slugids';
CREATE FUNCTION tq_internal.slugid_smaller(tq.slugid, tq.slugid) RETURNS tq.slugid
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC SELECT CASE WHEN $1 < $2 THEN $1 ELSE $2 END; END;
COMMENT ON FUNCTION tq_internal.slugid_smaller(tq.slugid, tq.slugid) IS 'smaller of two slugids';
CREATE AGGREGATE pg_catalog.max(tq.slugid) (
	SFUNC = tq_internal.slugid_larger, STYPE = tq.slugid, COMBINEFUNC = tq_internal.slugid_larger,
	SORTOP = OPERATOR(pg_catalog.>), PARALLEL = SAFE);
COMMENT ON AGGREGATE pg_catalog.max(tq.slugid) IS 'maximum of slugids, by bytes';
CREATE AGGREGATE pg_catalog.min(tq.slugid) (
	SFUNC = tq_internal.slugid_smaller, STYPE = tq.slugid, COMBINEFUNC = tq_internal.slugid_smaller,
	SORTOP = OPERATOR(pg_catalog.<), PARALLEL = SAFE);
COMMENT ON AGGREGATE pg_catalog.min(tq.slugid) IS 'minimum of slugids, by bytes';
CREATE FUNCTION pg_catalog.length(tq.slugid) RETURNS int
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC SELECT length($1::text); END;
COMMENT ON FUNCTION pg_catalog.length(tq.slugid) IS 'characters of the text of a slugid';
CREATE FUNCTION tq_internal.slugid_like(tq.slugid, text) RETURNS bool
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC SELECT $1::text LIKE $2; END;
COMMENT ON FUNCTION tq_internal.slugid_like(tq.slugid, text) IS 'implementation of LIKE, of the text of a slugid';
CREATE FUNCTION tq_internal.slugid_not_like(tq.slugid, text) RETURNS bool
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE BEGIN ATOMIC SELECT $1::text NOT LIKE $2; END;
COMMENT ON FUNCTION tq_internal.slugid_not_like(tq.slugid, text) IS 'implementation of NOT LIKE, of the text of a slugid';
CREATE OPERATOR pg_catalog.~~ (
	LEFTARG = tq.slugid, RIGHTARG = text, FUNCTION = tq_internal.slugid_like,
	NEGATOR = OPERATOR(pg_catalog.!~~), RESTRICT = likesel, JOIN = likejoinsel);
CREATE OPERATOR pg_catalog.!~~ (
	LEFTARG = tq.slugid, RIGHTARG = text, FUNCTION = tq_internal.slugid_not_like,
	NEGATOR = OPERATOR(pg_catalog.~~), RESTRICT = nlikesel, JOIN = nlikejoinsel);

CREATE OPERATOR CLASS tq_internal.slugid_ops DEFAULT FOR TYPE tq.slugid USING btree AS
	OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
	FUNCTION 1 tq_internal.slugid_cmp(tq.slugid, tq.slugid);
CREATE OPERATOR CLASS tq_internal.slugid_hash_ops DEFAULT FOR TYPE tq.slugid USING hash AS
	OPERATOR 1 pg_catalog.=,
	FUNCTION 1 tq_internal.slugid_hash(tq.slugid),
	FUNCTION 2 tq_internal.slugid_hash_extended(tq.slugid, bigint);

CREATE TYPE tq.claim AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text,
	taken_until timestamptz, payload jsonb, credentials jsonb, task jsonb, status jsonb);
COMMENT ON TYPE tq.claim IS 'one claimed run: what a worker needs to work on it';
COMMENT ON COLUMN tq.claim.task_id IS 'id of the task';
COMMENT ON COLUMN tq.claim.run_id IS 'number of the run';
COMMENT ON COLUMN tq.claim.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.claim.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.claim.taken_until IS 'until when, unless it is reclaimed';
COMMENT ON COLUMN tq.claim.payload IS 'payload of the task';
COMMENT ON COLUMN tq.claim.credentials IS 'what its holder may act on the run with, until taken_until: {clientId, accessToken, certificate}';
COMMENT ON COLUMN tq.claim.task IS 'its definition, as task() returns it; NULL unless definition is true';
COMMENT ON COLUMN tq.claim.status IS 'its status with this run, as status() returns it; NULL unless definition is true';

-- A type of its own, so that a claim from one queue does not look up its name.
CREATE TYPE tq.queue_claim AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text, taken_until timestamptz, payload jsonb, credentials jsonb,
	task_queue_id text, task jsonb, status jsonb);
COMMENT ON TYPE tq.queue_claim IS 'one run that was claimed from several queues: a claim, and its queue';
COMMENT ON COLUMN tq.queue_claim.task_id IS 'id of the task';
COMMENT ON COLUMN tq.queue_claim.run_id IS 'number of the run';
COMMENT ON COLUMN tq.queue_claim.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.queue_claim.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.queue_claim.taken_until IS 'until when, unless it is reclaimed';
COMMENT ON COLUMN tq.queue_claim.payload IS 'payload of the task';
COMMENT ON COLUMN tq.queue_claim.credentials IS 'what its holder may act on the run with, until taken_until: {clientId, accessToken, certificate}';
COMMENT ON COLUMN tq.queue_claim.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.queue_claim.task IS 'its definition, as in tq.claim';
COMMENT ON COLUMN tq.queue_claim.status IS 'its status, as in tq.claim';

CREATE TYPE tq.task_status AS (task_id tq.slugid, status jsonb);
COMMENT ON TYPE tq.task_status IS 'row of statuses()';
COMMENT ON COLUMN tq.task_status.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_status.status IS 'its status, as status() returns it';
CREATE TYPE tq.task_definition AS (task_id tq.slugid, task jsonb);
COMMENT ON TYPE tq.task_definition IS 'row of tasks()';
COMMENT ON COLUMN tq.task_definition.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_definition.task IS 'its definition, as task() returns it';
CREATE TYPE tq.task_entry AS (task_id tq.slugid, status jsonb, task jsonb);
COMMENT ON TYPE tq.task_entry IS 'row of list_task_group() and list_dependent_tasks()';
COMMENT ON COLUMN tq.task_entry.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_entry.status IS 'its status';
COMMENT ON COLUMN tq.task_entry.task IS 'its definition; NULL for a caller that may not get the task';
CREATE TYPE tq.resolution AS (task_id tq.slugid, run_id int, outcome text);
COMMENT ON TYPE tq.resolution IS 'row of resolve(): the outcome for one run';
COMMENT ON COLUMN tq.resolution.task_id IS 'id of the task';
COMMENT ON COLUMN tq.resolution.run_id IS 'number of the run';
COMMENT ON COLUMN tq.resolution.outcome IS 'resolved, retried, or why it was not resolved';
CREATE TYPE tq.worker_run AS (
	task_id tq.slugid, run_id int, outcome text, worker_group text, worker_id text,
	taken_until timestamptz, payload jsonb, credentials jsonb, task jsonb, status jsonb);
COMMENT ON TYPE tq.worker_run IS 'row of resolve_and_claim(): a run that was reported on, or one that was claimed';
COMMENT ON COLUMN tq.worker_run.task_id IS 'id of the task';
COMMENT ON COLUMN tq.worker_run.run_id IS 'number of the run';
COMMENT ON COLUMN tq.worker_run.outcome IS 'claimed; or of a report, as in tq.resolution';
COMMENT ON COLUMN tq.worker_run.worker_group IS 'of a claimed run, as in tq.claim; NULL: it was reported on';
COMMENT ON COLUMN tq.worker_run.worker_id IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.taken_until IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.payload IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.credentials IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.task IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.status IS 'of a claimed run, as in tq.claim';
CREATE TYPE tq.progress AS (
	tasks bigint, unscheduled bigint, delayed bigint, pending bigint, running bigint,
	completed bigint, failed bigint, exception bigint, tolerated bigint,
	outcome text, first_created timestamptz, last_resolved timestamptz, done float8, blocked bool, blocked_by text[]);
COMMENT ON TYPE tq.progress IS 'row of group_progress(): the tasks of a group by state, and its outcome';
COMMENT ON COLUMN tq.progress.tasks IS 'tasks of the group';
COMMENT ON COLUMN tq.progress.unscheduled IS 'tasks that wait for others, or for schedule_task()';
COMMENT ON COLUMN tq.progress.delayed IS 'pending tasks that cannot be claimed yet';
COMMENT ON COLUMN tq.progress.pending IS 'tasks that can be claimed';
COMMENT ON COLUMN tq.progress.running IS 'tasks that a worker has';
COMMENT ON COLUMN tq.progress.completed IS 'completed tasks';
COMMENT ON COLUMN tq.progress.failed IS 'failed tasks';
COMMENT ON COLUMN tq.progress.exception IS 'tasks that ended as an exception';
COMMENT ON COLUMN tq.progress.tolerated IS 'failed ones and exceptions that count as a success';
COMMENT ON COLUMN tq.progress.outcome IS 'of the group as a whole';
COMMENT ON COLUMN tq.progress.first_created IS 'when its first task was created';
COMMENT ON COLUMN tq.progress.last_resolved IS 'when its last task was resolved';
COMMENT ON COLUMN tq.progress.done IS 'share of its tasks that is done, from 0 to 1: the resolved ones, and of the running ones what report_progress() has reported';
COMMENT ON COLUMN tq.progress.blocked IS 'whether nothing of it runs, is pending or delayed, and what is unscheduled can never start unless a task is run again or scheduled by hand; NULL: too many tasks to find out';
COMMENT ON COLUMN tq.progress.blocked_by IS 'tasks that block it, which failed or were deleted: up to ten that the caller may see; if blocked is NULL, why; NULL: it is not blocked';
CREATE TYPE tq.exchange_message AS (
	id bigint, exchange text, routing_key text, cc text[], payload jsonb, published timestamptz);
COMMENT ON TYPE tq.exchange_message IS 'row of messages(), message() and fetch(): one message of an exchange; payload is NULL if it cannot be built';
COMMENT ON COLUMN tq.exchange_message.id IS 'position in the order of publication';
COMMENT ON COLUMN tq.exchange_message.exchange IS 'exchange of the message';
COMMENT ON COLUMN tq.exchange_message.routing_key IS 'words that patterns match';
COMMENT ON COLUMN tq.exchange_message.cc IS 'further routing keys: the routes of the task';
COMMENT ON COLUMN tq.exchange_message.payload IS 'content; NULL if it cannot be built';
COMMENT ON COLUMN tq.exchange_message.published IS 'when it was published';
CREATE TYPE tq.dependency_result AS (task_id tq.slugid, state text, result jsonb);
COMMENT ON TYPE tq.dependency_result IS 'row of dependency_results(): state and result of a required task';
COMMENT ON COLUMN tq.dependency_result.task_id IS 'id of the required task';
COMMENT ON COLUMN tq.dependency_result.state IS 'its state';
COMMENT ON COLUMN tq.dependency_result.result IS 'its result; NULL: none';
CREATE TYPE tq.dead_letter_entry AS (
	task_id tq.slugid, failed_at timestamptz, reason text, error jsonb, task jsonb, runs jsonb);
COMMENT ON TYPE tq.dead_letter_entry IS 'row of list_dead_letters(): a task that failed for good, and how';
COMMENT ON COLUMN tq.dead_letter_entry.task_id IS 'id of the task';
COMMENT ON COLUMN tq.dead_letter_entry.failed_at IS 'when it failed for good';
COMMENT ON COLUMN tq.dead_letter_entry.reason IS 'why its last run was resolved';
COMMENT ON COLUMN tq.dead_letter_entry.error IS 'error that the last worker reported';
COMMENT ON COLUMN tq.dead_letter_entry.task IS 'its definition';
COMMENT ON COLUMN tq.dead_letter_entry.runs IS 'its runs';
CREATE TYPE tq.artifact_entry AS (
	run_id int, name text, storage_type text, content_type text, content_length bigint,
	expires timestamptz, present bool);
COMMENT ON TYPE tq.artifact_entry IS 'row of list_artifacts(): an artifact without its content; present is false until its upload is finished';
COMMENT ON COLUMN tq.artifact_entry.run_id IS 'run that made it';
COMMENT ON COLUMN tq.artifact_entry.name IS 'name of the artifact';
COMMENT ON COLUMN tq.artifact_entry.storage_type IS 'where its content is';
COMMENT ON COLUMN tq.artifact_entry.content_type IS 'type of its content';
COMMENT ON COLUMN tq.artifact_entry.content_length IS 'length of its content in bytes; NULL: not known';
COMMENT ON COLUMN tq.artifact_entry.expires IS 'when it is deleted';
COMMENT ON COLUMN tq.artifact_entry.present IS 'false: its upload is not finished';

CREATE TYPE tq.pending_entry AS (
	task_id tq.slugid, run_id int, task jsonb, inserted timestamptz, page text);
COMMENT ON TYPE tq.pending_entry IS 'row of list_pending_tasks(): a run that can be claimed, and since when';
COMMENT ON COLUMN tq.pending_entry.task_id IS 'id of the task';
COMMENT ON COLUMN tq.pending_entry.run_id IS 'number of the run';
COMMENT ON COLUMN tq.pending_entry.task IS 'its definition';
COMMENT ON COLUMN tq.pending_entry.inserted IS 'when it became pending';
COMMENT ON COLUMN tq.pending_entry.page IS 'position in the list, for after';
CREATE TYPE tq.claimed_entry AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text, claimed timestamptz, task jsonb, page text);
COMMENT ON TYPE tq.claimed_entry IS 'row of list_claimed_tasks(): a run that a worker has, and since when';
COMMENT ON COLUMN tq.claimed_entry.task_id IS 'id of the task';
COMMENT ON COLUMN tq.claimed_entry.run_id IS 'number of the run';
COMMENT ON COLUMN tq.claimed_entry.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.claimed_entry.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.claimed_entry.claimed IS 'when the run was first claimed';
COMMENT ON COLUMN tq.claimed_entry.task IS 'its definition';
COMMENT ON COLUMN tq.claimed_entry.page IS 'position in the list, for after';
CREATE TYPE tq.task_queue_entry AS (
	task_queue_id text, provisioner_id text, worker_type text, expires timestamptz, last_date_active timestamptz,
	description text, stability text, page text);
COMMENT ON TYPE tq.task_queue_entry IS 'row of list_task_queues(): a queue that workers ask for work';
COMMENT ON COLUMN tq.task_queue_entry.task_queue_id IS 'name of the queue';
COMMENT ON COLUMN tq.task_queue_entry.provisioner_id IS 'first part of its name';
COMMENT ON COLUMN tq.task_queue_entry.worker_type IS 'second part of its name';
COMMENT ON COLUMN tq.task_queue_entry.expires IS 'when it is no longer listed, unless a worker asks it for work';
COMMENT ON COLUMN tq.task_queue_entry.last_date_active IS 'when a worker last asked it for work; recorded with a delay';
COMMENT ON COLUMN tq.task_queue_entry.description IS 'empty';
COMMENT ON COLUMN tq.task_queue_entry.stability IS 'experimental';
COMMENT ON COLUMN tq.task_queue_entry.page IS 'position in the list, for after';
CREATE TYPE tq.worker_entry AS (
	worker_group text, worker_id text, first_claim timestamptz, last_date_active timestamptz,
	latest_task_id tq.slugid, latest_run_id int, quarantine_until timestamptz, page text);
COMMENT ON TYPE tq.worker_entry IS 'row of list_workers(): when a worker was seen, what it claimed last, and until when it is in quarantine';
COMMENT ON COLUMN tq.worker_entry.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.worker_entry.worker_id IS 'name of the worker';
COMMENT ON COLUMN tq.worker_entry.first_claim IS 'when it first asked for work; NULL: never';
COMMENT ON COLUMN tq.worker_entry.last_date_active IS 'when it last asked for work or reclaimed; NULL: never';
COMMENT ON COLUMN tq.worker_entry.latest_task_id IS 'task of its last claim';
COMMENT ON COLUMN tq.worker_entry.latest_run_id IS 'run of its last claim';
COMMENT ON COLUMN tq.worker_entry.quarantine_until IS 'until when it is in quarantine; NULL: it is not';
COMMENT ON COLUMN tq.worker_entry.page IS 'position in the list, for after';
