/* src/sql/tq.sql: the whole of the extension's SQL, in one readable order. */

\echo Use "CREATE EXTENSION tq" to load this file. \quit

-- ---------------------------------------------------------------------------
-- Schema and roles
-- ---------------------------------------------------------------------------

DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'tq_shard') THEN
		RAISE EXCEPTION 'extension "tq_shard" is installed in this database'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = 'A database is a router, with tq_shard, or a shard, with tq.',
				HINT = 'Create another database for the shard.';
	END IF;
END
$$;

-- The owner of a schema may drop everything in it, so it must be trusted.  What
-- another role has left in it could be taken for the server's own by the views.
DO $$
DECLARE
	owner pg_catalog.name;
	maker pg_catalog.text;
	left_object pg_catalog.text;
BEGIN
	SELECT r.rolname INTO owner
		FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = n.nspowner
		WHERE n.nspname = 'tq' AND NOT r.rolsuper AND r.rolname <> current_user;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "tq" is owned by another role'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = pg_catalog.format('Its owner is "%s", which is not a superuser and could drop the extension.', owner),
				HINT = 'Drop or rename that schema, or give it to a superuser, and run CREATE EXTENSION tq again.';
	END IF;
	SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END INTO maker
		FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a
			LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
		WHERE n.nspname = 'tq' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND r.rolsuper IS NOT TRUE
		ORDER BY a.grantee LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'another role may create objects in schema "tq"'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = pg_catalog.format('The schema exists, and %s has the right CREATE on it.', maker),
				HINT = pg_catalog.format('Run REVOKE CREATE ON SCHEMA tq FROM %s, and CREATE EXTENSION tq again.', maker);
	END IF;
	SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) INTO left_object
		FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_namespace n ON d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.refobjid = n.oid
		WHERE n.nspname = 'tq' AND d.classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass
		ORDER BY d.classid, d.objid LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "tq" is not empty'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = pg_catalog.format('It has %s.', left_object),
				HINT = 'Drop or rename that schema, and run CREATE EXTENSION tq again.';
	END IF;
END
$$;

-- Roles of this server that a user grants to roles of its own.
DO $$
DECLARE
	made pg_catalog.name;
	heir pg_catalog.name;
	heirs pg_catalog.text;
BEGIN
	FOREACH made IN ARRAY ARRAY['tq_admin', 'tq_producer', 'tq_worker', 'tq_reader'] LOOP
		BEGIN
			IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = made) THEN
				EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', made);
				CONTINUE;
			END IF;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
			CONTINUE;		-- created concurrently by CREATE EXTENSION in another database
		END;
		IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = made AND rolcanlogin) THEN
			RAISE WARNING 'role "%" exists and can log in', made
				USING DETAIL = 'It has rights to tq in every database of this server.',
					HINT = pg_catalog.format('If that is not intended: ALTER ROLE %I NOLOGIN.', made);
		END IF;
		SELECT m.rolname INTO heir
			FROM pg_catalog.pg_auth_members a
				JOIN pg_catalog.pg_roles g ON g.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
			WHERE g.rolname = made AND a.admin_option AND NOT m.rolsuper
			ORDER BY m.rolname LIMIT 1;
		IF FOUND THEN
			RAISE WARNING 'role "%" exists and can be granted by role "%"', made, heir
				USING DETAIL = 'Its members have rights to tq in every database of this server.',
					HINT = pg_catalog.format('If that is not intended: REVOKE ADMIN OPTION FOR %I FROM %I.', made, heir);
		END IF;
		SELECT pg_catalog.string_agg(DISTINCT pg_catalog.quote_ident(m.rolname), ', ') INTO heirs
			FROM pg_catalog.pg_auth_members a
				JOIN pg_catalog.pg_roles g ON g.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
			WHERE g.rolname = made AND NOT a.admin_option AND NOT m.rolsuper;
		IF heirs IS NOT NULL THEN
			RAISE WARNING 'role "%" exists and has members', made
				USING DETAIL = pg_catalog.format('They have rights to tq in this database, too: %s.', heirs),
					HINT = pg_catalog.format('If that is not intended: REVOKE %I FROM the role.', made);
		END IF;
	END LOOP;
END
$$;

-- What users see is in schema tq; tables and inner functions are in this one.
CREATE SCHEMA tq_internal;
COMMENT ON SCHEMA tq_internal IS 'tables of the extension tq, and functions that its views, triggers and types call';

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
COMMENT ON FUNCTION tq.slugid() IS 'a new random slugid';

CREATE FUNCTION tq_internal.slugid_from_uuid(uuid) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_from_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_from_uuid(uuid) IS 'cast of a version 4 UUID to a slugid';

CREATE FUNCTION tq_internal.slugid_to_uuid(tq.slugid) RETURNS uuid
	AS 'MODULE_PATHNAME', 'tq_slugid_to_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.slugid_to_uuid(tq.slugid) IS 'cast of a slugid to a UUID';

CREATE FUNCTION tq.slugid_in_bucket(bucket int) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_slugid_in_bucket' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.slugid_in_bucket(int) IS 'a new random slugid in one of the buckets 0 to 1023';

CREATE FUNCTION tq.bucket(id tq.slugid) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_bucket' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.bucket(tq.slugid) IS 'bucket of the id of a task or group, 0 to 1023';

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

CREATE OPERATOR CLASS tq_internal.slugid_ops DEFAULT FOR TYPE tq.slugid USING btree AS
	OPERATOR 1 pg_catalog.<, OPERATOR 2 pg_catalog.<=, OPERATOR 3 pg_catalog.=, OPERATOR 4 pg_catalog.>=, OPERATOR 5 pg_catalog.>,
	FUNCTION 1 tq_internal.slugid_cmp(tq.slugid, tq.slugid);
CREATE OPERATOR CLASS tq_internal.slugid_hash_ops DEFAULT FOR TYPE tq.slugid USING hash AS
	OPERATOR 1 pg_catalog.=,
	FUNCTION 1 tq_internal.slugid_hash(tq.slugid),
	FUNCTION 2 tq_internal.slugid_hash_extended(tq.slugid, bigint);

CREATE TYPE tq.claim AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text,
	taken_until timestamptz, payload jsonb, credentials jsonb);
COMMENT ON TYPE tq.claim IS 'one claimed run: what a worker needs to work on it';
COMMENT ON COLUMN tq.claim.task_id IS 'id of the task';
COMMENT ON COLUMN tq.claim.run_id IS 'number of the run';
COMMENT ON COLUMN tq.claim.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.claim.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.claim.taken_until IS 'until when, unless it is reclaimed';
COMMENT ON COLUMN tq.claim.payload IS 'payload of the task';
COMMENT ON COLUMN tq.claim.credentials IS 'what its holder may act on the run with, until taken_until: {clientId, accessToken, certificate}';

-- A type of its own, so that a claim from one queue does not look up its name.
CREATE TYPE tq.queue_claim AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text, taken_until timestamptz, payload jsonb, credentials jsonb,
	task_queue_id text);
COMMENT ON TYPE tq.queue_claim IS 'one run that was claimed from several queues: a claim, and its queue';
COMMENT ON COLUMN tq.queue_claim.task_id IS 'id of the task';
COMMENT ON COLUMN tq.queue_claim.run_id IS 'number of the run';
COMMENT ON COLUMN tq.queue_claim.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.queue_claim.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.queue_claim.taken_until IS 'until when, unless it is reclaimed';
COMMENT ON COLUMN tq.queue_claim.payload IS 'payload of the task';
COMMENT ON COLUMN tq.queue_claim.credentials IS 'what its holder may act on the run with, until taken_until: {clientId, accessToken, certificate}';
COMMENT ON COLUMN tq.queue_claim.task_queue_id IS 'queue of the task';

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
COMMENT ON COLUMN tq.task_entry.task IS 'its definition';
CREATE TYPE tq.resolution AS (task_id tq.slugid, run_id int, outcome text);
COMMENT ON TYPE tq.resolution IS 'row of resolve(): the outcome for one run';
COMMENT ON COLUMN tq.resolution.task_id IS 'id of the task';
COMMENT ON COLUMN tq.resolution.run_id IS 'number of the run';
COMMENT ON COLUMN tq.resolution.outcome IS 'resolved, retried, or why it was not resolved';
CREATE TYPE tq.worker_run AS (
	task_id tq.slugid, run_id int, outcome text, worker_group text, worker_id text,
	taken_until timestamptz, payload jsonb, credentials jsonb);
COMMENT ON TYPE tq.worker_run IS 'row of resolve_and_claim(): a run that was reported on, or one that was claimed';
COMMENT ON COLUMN tq.worker_run.task_id IS 'id of the task';
COMMENT ON COLUMN tq.worker_run.run_id IS 'number of the run';
COMMENT ON COLUMN tq.worker_run.outcome IS 'claimed; or of a report, as in tq.resolution';
COMMENT ON COLUMN tq.worker_run.worker_group IS 'of a claimed run, as in tq.claim; NULL: it was reported on';
COMMENT ON COLUMN tq.worker_run.worker_id IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.taken_until IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.payload IS 'of a claimed run, as in tq.claim';
COMMENT ON COLUMN tq.worker_run.credentials IS 'of a claimed run, as in tq.claim';
CREATE TYPE tq.progress AS (
	tasks bigint, unscheduled bigint, delayed bigint, pending bigint, running bigint,
	completed bigint, failed bigint, exception bigint, tolerated bigint,
	outcome text, first_created timestamptz, last_resolved timestamptz, done float8);
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
CREATE TYPE tq.exchange_message AS (
	id bigint, exchange text, routing_key text, cc text[], payload jsonb, published timestamptz);
COMMENT ON TYPE tq.exchange_message IS 'row of messages(), message() and fetch(): one message of an exchange; payload is NULL if it cannot be built';
COMMENT ON COLUMN tq.exchange_message.id IS 'place in the order of publication';
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
COMMENT ON COLUMN tq.pending_entry.page IS 'place in the list, for after';
CREATE TYPE tq.claimed_entry AS (
	task_id tq.slugid, run_id int, worker_group text, worker_id text, claimed timestamptz, task jsonb, page text);
COMMENT ON TYPE tq.claimed_entry IS 'row of list_claimed_tasks(): a run that a worker has, and since when';
COMMENT ON COLUMN tq.claimed_entry.task_id IS 'id of the task';
COMMENT ON COLUMN tq.claimed_entry.run_id IS 'number of the run';
COMMENT ON COLUMN tq.claimed_entry.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.claimed_entry.worker_id IS 'worker that has the run';
COMMENT ON COLUMN tq.claimed_entry.claimed IS 'when the run was first claimed';
COMMENT ON COLUMN tq.claimed_entry.task IS 'its definition';
COMMENT ON COLUMN tq.claimed_entry.page IS 'place in the list, for after';
CREATE TYPE tq.task_queue_entry AS (
	task_queue_id text, provisioner_id text, worker_type text, expires timestamptz, last_date_active timestamptz,
	description text, stability text, page text);
COMMENT ON TYPE tq.task_queue_entry IS 'row of list_task_queues() and list_worker_types(): a queue that workers ask for work';
COMMENT ON COLUMN tq.task_queue_entry.task_queue_id IS 'name of the queue';
COMMENT ON COLUMN tq.task_queue_entry.provisioner_id IS 'first part of its name';
COMMENT ON COLUMN tq.task_queue_entry.worker_type IS 'second part of its name';
COMMENT ON COLUMN tq.task_queue_entry.expires IS 'when it is no longer listed, unless a worker asks it for work';
COMMENT ON COLUMN tq.task_queue_entry.last_date_active IS 'when a worker last asked it for work; recorded with a delay';
COMMENT ON COLUMN tq.task_queue_entry.description IS 'empty';
COMMENT ON COLUMN tq.task_queue_entry.stability IS 'experimental';
COMMENT ON COLUMN tq.task_queue_entry.page IS 'place in the list, for after';
CREATE TYPE tq.provisioner_entry AS (
	provisioner_id text, expires timestamptz, last_date_active timestamptz, description text, stability text, page text);
COMMENT ON TYPE tq.provisioner_entry IS 'row of list_provisioners(): the latest times of its task queues';
COMMENT ON COLUMN tq.provisioner_entry.provisioner_id IS 'name of the provisioner';
COMMENT ON COLUMN tq.provisioner_entry.expires IS 'latest expiry of its queues';
COMMENT ON COLUMN tq.provisioner_entry.last_date_active IS 'when a worker last asked one of its queues for work; recorded with a delay';
COMMENT ON COLUMN tq.provisioner_entry.description IS 'empty';
COMMENT ON COLUMN tq.provisioner_entry.stability IS 'experimental';
COMMENT ON COLUMN tq.provisioner_entry.page IS 'place in the list, for after';
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
COMMENT ON COLUMN tq.worker_entry.page IS 'place in the list, for after';

-- ---------------------------------------------------------------------------
-- Tables
--
-- The state of a task follows from the table that has a row for it: an
-- unresolved task has either a row in unscheduled, in pending or in delayed, or
-- a last run that is running; a resolved task has a last run that is resolved.
-- A transition locks that row.  Numbers of states and reasons: src/tq.h.
-- ---------------------------------------------------------------------------

-- Task ids, task group ids and positions in a queue come from one sequence, so
-- that a run that is claimable at once has the id of its task as its position.
CREATE SEQUENCE tq_internal.id_seq AS bigint;
COMMENT ON SEQUENCE tq_internal.id_seq IS 'internal ids of tasks and groups, positions of runs in their queue';

CREATE TABLE tq_internal.queue (
	id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task_queue_id text NOT NULL UNIQUE,
	expires timestamptz,			-- NULL: no worker has been seen
	last_date_active timestamptz,	-- written at most once per tq.seen_interval
	retired xid8,					-- by that transaction: nothing refers to it; src/storage/interned.c
	settled xid8
);
CREATE INDEX queue_by_provisioner ON tq_internal.queue (task_queue_id COLLATE "C");	-- of patterns
COMMENT ON TABLE tq_internal.queue IS 'task queues, interned: provisionerId/workerType; deleted when they have expired and nothing refers to them';

CREATE TABLE tq_internal.queue_settings (
	queue int PRIMARY KEY,
	settings jsonb NOT NULL			-- as they were given to set_queue()
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
	id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
	UNIQUE (queue, worker_group, worker_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE tq_internal.worker IS 'workers, interned per task queue; deleted when they have expired and nothing refers to them';

CREATE TABLE tq_internal.task_group (
	id bigint PRIMARY KEY,
	task_group_id tq.slugid NOT NULL UNIQUE,
	scheduler_id text,				-- NULL: '-'
	expires timestamptz NOT NULL,
	sealed timestamptz,
	queue int NOT NULL				-- of its first task: whose producers may join it
) WITH (fillfactor = 70);
COMMENT ON TABLE tq_internal.task_group IS 'task groups that have or had a task other than the one of the same id, or are sealed';

CREATE TABLE tq_internal.policy (
	id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	policy jsonb NOT NULL UNIQUE,
	retired xid8,					-- as of a queue
	settled xid8
);
COMMENT ON TABLE tq_internal.policy IS 'policies of tasks, interned as they were given; deleted when no task has them';

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
	extra jsonb
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.task IS 'task definitions, which do not change, except for the priority, the queue, and for due when a task is scheduled after it was created';
CREATE INDEX task_group_idx ON tq_internal.task (group_id, task_id) WHERE group_id IS NOT NULL;
CREATE INDEX task_dependent ON tq_internal.task (id) WHERE dependencies IS NOT NULL;	-- for a list of them

CREATE TABLE tq_internal.unscheduled (
	task bigint PRIMARY KEY,
	unmet int NOT NULL,				-- unmet dependencies; or rows of tq_internal.dependency_counter that count some
	stripes smallint NOT NULL,		-- stripes of the counter in tq_internal.dependency_counter; 0: no rows there
	all_resolved bool NOT NULL,		-- copy of that of the task
	next_run smallint				-- number of its next run, if it was resolved before; NULL: 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.unscheduled IS 'one row per unscheduled task, with the number of its unmet dependencies';

CREATE TABLE tq_internal.dependency_counter (
	task bigint NOT NULL,
	stripe smallint NOT NULL,		-- counts required tasks whose id modulo the number of stripes is this
	unmet int NOT NULL,
	PRIMARY KEY (task, stripe)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
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
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000, autovacuum_vacuum_cost_delay = 0);
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
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
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
	state smallint NOT NULL			-- of the task: failed or exception
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
	state smallint NOT NULL,		-- src/storage/gate_table.h
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
	client text,					-- of the credentials that it had assumed: only their scopes counted
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
COMMENT ON TABLE tq_internal.dependency IS 'dependencies; whether one is met follows from the runs of the required task';

CREATE TABLE tq_internal.claim_timer (
	due timestamptz NOT NULL,
	seq bigint NOT NULL DEFAULT nextval('tq_internal.id_seq'),
	tasks bigint[] NOT NULL,
	PRIMARY KEY (due, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.claim_timer IS 'claim timers, when to check whether claims have expired: first soon after the claim, last at its end; stale rows are harmless';

CREATE TABLE tq_internal.timer (
	due timestamptz NOT NULL,
	seq bigint NOT NULL DEFAULT nextval('tq_internal.id_seq'),
	kind smallint NOT NULL,			-- src/store.h
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
	step text NOT NULL,				-- src/bgworker/maintenance.h
	error text NOT NULL,
	PRIMARY KEY (task, step)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE tq_internal.postponed IS 'tasks for which a step of maintenance failed, until it succeeds or the task is deleted';
CREATE INDEX postponed_due ON tq_internal.postponed (due);

CREATE TABLE tq_internal.activation (
	since timestamptz NOT NULL,
	swept timestamptz				-- when rows that nothing refers to were last looked for
);
COMMENT ON TABLE tq_internal.activation IS 'since when this database is in use: empty until a function of tq that may change something is called, and in a copy';

CREATE TABLE tq_internal.dead_letter (
	task_id tq.slugid PRIMARY KEY,
	task bigint NOT NULL,			-- the task may have expired
	queue int NOT NULL,
	failed_at timestamptz NOT NULL,
	seq bigint NOT NULL,			-- order of writing
	reason smallint NOT NULL,		-- src/tq.h
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
	storage_type smallint NOT NULL,	-- src/tq.h
	present bool NOT NULL,			-- false: an object that is not finished
	name text COLLATE "C" NOT NULL,
	content_type text NOT NULL,
	details jsonb NOT NULL,			-- url, artifact, reason and message, uploadId, or content
	PRIMARY KEY (task, run_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE tq_internal.artifact IS 'artifacts of runs: a reference to the content, or the content inline';
CREATE INDEX artifact_expires ON tq_internal.artifact (expires);

-- Messages, in narrow rows: one for each call that appends some, in its own
-- transaction.  Each is stamped with its top-level transaction, by which the
-- publisher finds what has become visible since the last tick.  The message log
-- has six segments; src/storage/log_segment_table.c.
CREATE TABLE tq_internal.message (
	xid xid8 NOT NULL,				-- top-level transaction that wrote it
	seq bigint NOT NULL,			-- order of writing
	taken_until timestamptz,		-- of the runs that the messages show as running
	due timestamptz,				-- of the timer that the publisher inserts: of a deadline, of a claim
	worker int,						-- that had claimed them
	segment smallint NOT NULL,
	records bytea NOT NULL,			-- the messages, in some bytes each; src/storage/message_record.c
	detail jsonb					-- content of an artifact, priority or group message
) PARTITION BY LIST (segment);
COMMENT ON TABLE tq_internal.message IS 'messages as transitions wrote them: outbox and message log in one, in segments';
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
	exchange smallint NOT NULL,		-- src/tq.h
	pattern text NOT NULL,
	PRIMARY KEY (channel, exchange, pattern)
);
COMMENT ON TABLE tq_internal.binding IS 'bindings of channels to exchanges, other than the default ones';

CREATE TABLE tq_internal.disabled_channel (
	exchange smallint PRIMARY KEY
);
COMMENT ON TABLE tq_internal.disabled_channel IS 'exchanges whose default channel is disabled';

CREATE TABLE tq_internal.cron (
	name text PRIMARY KEY,
	id tq.slugid NOT NULL,			-- of which the ids of its tasks are made
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
	last_task tq.slugid
) WITH (fillfactor = 50);
COMMENT ON TABLE tq_internal.cron IS 'recurring tasks: what pg_cron calls fire_cron() for, and what that has left';

-- What a role may do, in addition to what it may as a member of others.
CREATE TABLE tq_internal.scope_grant (
	role regrole NOT NULL,
	scope text NOT NULL,
	PRIMARY KEY (role, scope)
);
COMMENT ON TABLE tq_internal.scope_grant IS 'scopes of roles; rows of dropped roles have no effect';

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

SELECT pg_catalog.pg_extension_config_dump('tq_internal.id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.queue', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.worker', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task_group', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.policy', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.task', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.unscheduled', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.dependency_counter', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.pending', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.delayed', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.run', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.run_detail', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.failure', '');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.dependency', '');
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
-- dumped.  Ticks and the state of segments belong to one server.
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_0', 'WHERE tq_internal.is_awaited(xid)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_1', 'WHERE tq_internal.is_awaited(xid)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_2', 'WHERE tq_internal.is_awaited(xid)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_3', 'WHERE tq_internal.is_awaited(xid)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_4', 'WHERE tq_internal.is_awaited(xid)');
SELECT pg_catalog.pg_extension_config_dump('tq_internal.message_5', 'WHERE tq_internal.is_awaited(xid)');
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

-- ---------------------------------------------------------------------------
-- Tasks
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.create_task(task_id tq.slugid, task jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_create_task' LANGUAGE C;
COMMENT ON FUNCTION tq.create_task(tq.slugid, jsonb) IS 'create a task from a Taskcluster task definition; repeats of the same are harmless; returns its status';

CREATE FUNCTION tq.create_tasks(tasks jsonb) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_create_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.create_tasks(jsonb) IS 'create many tasks, all or none, from [{"taskId", "task"}]; they may depend on each other; returns how many are new';

CREATE FUNCTION tq.enqueue(
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_id tq.slugid DEFAULT NULL,
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT '{}',
	requires text DEFAULT 'all-completed',
	priority text DEFAULT 'lowest',
	retries int DEFAULT NULL,
	deadline interval DEFAULT '1 day',
	expires interval DEFAULT NULL,
	delay interval DEFAULT '0',
	routes text[] DEFAULT '{}',
	scopes text[] DEFAULT '{}',
	tags jsonb DEFAULT '{}',
	extra jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	scheduler_id text DEFAULT '-',
	project_id text DEFAULT 'none',
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	run_at timestamptz DEFAULT NULL
) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_enqueue' LANGUAGE C;
COMMENT ON FUNCTION tq.enqueue(text, jsonb, tq.slugid, tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, text, jsonb, int, timestamptz) IS
	'create a task from SQL arguments; deadline counts from when the task becomes visible, expires from the deadline, or NULL: by retention; retry is how often failures and lost runs are retried, with backoff; returns its id';

CREATE FUNCTION tq.enqueue_tasks(
	task_queue_id text,
	payloads jsonb[],
	task_ids tq.slugid[] DEFAULT NULL,
	task_group_id tq.slugid DEFAULT NULL,
	dependencies tq.slugid[] DEFAULT '{}',
	requires text DEFAULT 'all-completed',
	priority text DEFAULT 'lowest',
	retries int DEFAULT NULL,
	deadline interval DEFAULT '1 day',
	expires interval DEFAULT NULL,
	delay interval DEFAULT '0',
	routes text[] DEFAULT '{}',
	scopes text[] DEFAULT '{}',
	tags jsonb DEFAULT '{}',
	extra jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	scheduler_id text DEFAULT '-',
	project_id text DEFAULT 'none',
	policy jsonb DEFAULT NULL,
	retry int DEFAULT NULL,
	run_at timestamptz DEFAULT NULL
) RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_enqueue_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.enqueue_tasks(text, jsonb[], tq.slugid[], tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, text, jsonb, int, timestamptz) IS
	'create a task for each payload, alike in all else, as enqueue does; returns their ids in the same order';

CREATE FUNCTION tq.define_task(task_id tq.slugid, task jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_define_task' LANGUAGE C;
COMMENT ON FUNCTION tq.define_task(tq.slugid, jsonb) IS 'create a task that depends on itself, so that it waits for schedule_task; returns its status';

CREATE FUNCTION tq.schedule_task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_schedule_task' LANGUAGE C;
COMMENT ON FUNCTION tq.schedule_task(tq.slugid) IS 'make an unscheduled task pending regardless of its dependencies; returns its status';

CREATE FUNCTION tq.rerun_task(task_id tq.slugid, deadline interval DEFAULT NULL, downstream bool DEFAULT false) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_rerun_task' LANGUAGE C;
COMMENT ON FUNCTION tq.rerun_task(tq.slugid, interval, bool) IS 'add a pending run to a resolved task, with a new deadline from now if one is given; downstream: the unsuccessful tasks that depend on it wait for it again; returns its status';

CREATE FUNCTION tq.reschedule_task(task_id tq.slugid, run_at timestamptz DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_reschedule_task' LANGUAGE C;
COMMENT ON FUNCTION tq.reschedule_task(tq.slugid, timestamptz) IS 'make the pending or delayed run of a task claimable at that time, NULL: now; returns its status';

CREATE FUNCTION tq.add_dependencies(task_id tq.slugid, dependencies tq.slugid[]) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_add_task_dependencies' LANGUAGE C;
COMMENT ON FUNCTION tq.add_dependencies(tq.slugid, tq.slugid[]) IS 'give an unscheduled task further dependencies; those that it has already change nothing; returns its status';

CREATE FUNCTION tq.cancel_task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_cancel_task' LANGUAGE C;
COMMENT ON FUNCTION tq.cancel_task(tq.slugid) IS 'resolve an unresolved task as exception, canceled; returns its status';

CREATE FUNCTION tq.skip_task(task_id tq.slugid, output jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_skip_task' LANGUAGE C;
COMMENT ON FUNCTION tq.skip_task(tq.slugid, jsonb) IS 'resolve an unscheduled or pending task as completed, skipped, so that its dependents go on; output is its result; returns its status';

CREATE FUNCTION tq.delete_task(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_delete_task' LANGUAGE C;
COMMENT ON FUNCTION tq.delete_task(tq.slugid) IS 'delete a task in any state, with its runs, artifacts and dead letter; tasks that depend on it stay unscheduled';

CREATE FUNCTION tq.purge(
	task_queue_id text,
	states text[] DEFAULT '{completed,failed,exception}',
	older_than interval DEFAULT '1 day',
	max int DEFAULT 1000
) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_purge' LANGUAGE C;
COMMENT ON FUNCTION tq.purge(text, text[], interval, int) IS 'delete resolved tasks of a queue that are in one of these states and were resolved so long ago, except those that unresolved tasks need; returns how many';

-- The procedure ends transactions.
CREATE PROCEDURE tq.cancel_tasks(
	task_queue_id text,
	name text DEFAULT NULL,
	tags jsonb DEFAULT NULL,
	states text[] DEFAULT '{unscheduled,pending}',
	max bigint DEFAULT NULL,
	INOUT tasks bigint DEFAULT NULL
)
	AS 'MODULE_PATHNAME', 'tq_cancel_tasks' LANGUAGE C;
COMMENT ON PROCEDURE tq.cancel_tasks(text, text, jsonb, text[], bigint, bigint) IS 'cancel the tasks of a queue that are in one of these states and have this name and these tags, at most so many; commits after each batch, so not in a transaction block; tasks is how many';

-- The procedure ends transactions.
CREATE PROCEDURE tq.move_tasks(
	task_queue_id text,
	to_task_queue_id text,
	max bigint DEFAULT NULL,
	INOUT tasks bigint DEFAULT NULL
)
	AS 'MODULE_PATHNAME', 'tq_move_tasks' LANGUAGE C;
COMMENT ON PROCEDURE tq.move_tasks(text, text, bigint, bigint) IS 'move the unscheduled, delayed and pending tasks of a queue to another one, at most so many; commits after each batch, so not in a transaction block; tasks is how many';

CREATE FUNCTION tq.change_task_priority(task_id tq.slugid, priority text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_change_task_priority' LANGUAGE C;
COMMENT ON FUNCTION tq.change_task_priority(tq.slugid, text) IS 'change the priority of an unresolved task; returns its status';

CREATE FUNCTION tq.status(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_status' LANGUAGE C;
COMMENT ON FUNCTION tq.status(tq.slugid) IS 'the task status structure: state, retriesLeft, runs';

CREATE FUNCTION tq.task(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_task' LANGUAGE C;
COMMENT ON FUNCTION tq.task(tq.slugid) IS 'the task definition, with every default filled in';

CREATE FUNCTION tq.result(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_result' LANGUAGE C;
COMMENT ON FUNCTION tq.result(tq.slugid) IS 'the result of the last run, as given to report_completed(), or the output given to skip_task(); NULL if there is none';

CREATE FUNCTION tq.dependency_results(task_id tq.slugid) RETURNS SETOF tq.dependency_result
	AS 'MODULE_PATHNAME', 'tq_dependency_results' LANGUAGE C;
COMMENT ON FUNCTION tq.dependency_results(tq.slugid) IS 'state and result of each task that this one depends on, in the order of its definition; the state of one that has expired or was deleted is missing';

CREATE FUNCTION tq.statuses(task_ids tq.slugid[]) RETURNS SETOF tq.task_status
	AS 'MODULE_PATHNAME', 'tq_statuses' LANGUAGE C;
COMMENT ON FUNCTION tq.statuses(tq.slugid[]) IS 'status of each of these tasks; unknown ids are left out';

CREATE FUNCTION tq.tasks(task_ids tq.slugid[]) RETURNS SETOF tq.task_definition
	AS 'MODULE_PATHNAME', 'tq_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.tasks(tq.slugid[]) IS 'definition of each of these tasks; unknown ids are left out';

CREATE FUNCTION tq.list_dependent_tasks(task_id tq.slugid, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.task_entry
	AS 'MODULE_PATHNAME', 'tq_list_dependent_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_dependent_tasks(tq.slugid, tq.slugid, int) IS 'tasks that name this one in their dependencies, by task id; go on after the last id seen';

-- ---------------------------------------------------------------------------
-- Task groups
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.get_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.get_task_group(tq.slugid) IS 'taskGroupId, schedulerId, expires and, once it is, sealed';

CREATE FUNCTION tq.list_task_group(task_group_id tq.slugid, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.task_entry
	AS 'MODULE_PATHNAME', 'tq_list_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.list_task_group(tq.slugid, tq.slugid, int) IS 'tasks of a group, by task id; go on after the last id seen';

CREATE FUNCTION tq.seal_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_seal_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.seal_task_group(tq.slugid) IS 'seal a group permanently, so that no more tasks can be created in it';

CREATE FUNCTION tq.cancel_task_group(task_group_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_cancel_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.cancel_task_group(tq.slugid) IS 'cancel every unresolved task of a sealed group';

CREATE FUNCTION tq.retry_task_group(
	task_group_id tq.slugid,
	deadline interval DEFAULT NULL,
	reasons text[] DEFAULT NULL,
	downstream bool DEFAULT true
) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_retry_task_group' LANGUAGE C;
COMMENT ON FUNCTION tq.retry_task_group(tq.slugid, interval, text[], bool) IS 'rerun the tasks of a group that ended without success for these reasons, by default any but canceled, with a new deadline from now if one is given; downstream: what depends on them waits for them again; returns how many tasks run again or wait again';

CREATE FUNCTION tq.change_task_group_priority(task_group_id tq.slugid, priority text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_change_task_group_priority' LANGUAGE C;
COMMENT ON FUNCTION tq.change_task_group_priority(tq.slugid, text) IS 'change the priority of those tasks of a group that were never resolved';

CREATE FUNCTION tq.on_group_resolved(
	task_group_id tq.slugid,
	task_queue_id text,
	payload jsonb DEFAULT '{}',
	task_id tq.slugid DEFAULT NULL,
	priority text DEFAULT 'lowest',
	retry int DEFAULT NULL,
	deadline interval DEFAULT '1 day',
	tags jsonb DEFAULT '{}',
	name text DEFAULT NULL,
	policy jsonb DEFAULT NULL
) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_on_group_resolved' LANGUAGE C;
COMMENT ON FUNCTION tq.on_group_resolved(tq.slugid, text, jsonb, tq.slugid, text, int, interval, jsonb, text, jsonb) IS
	'create a task, once, when no task of the group is unresolved any more; its payload has the outcome as "group"; deadline counts from then; returns its id';

CREATE FUNCTION tq.cancel_group_callbacks(task_group_id tq.slugid, task_id tq.slugid DEFAULT NULL) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_cancel_group_callbacks' LANGUAGE C;
COMMENT ON FUNCTION tq.cancel_group_callbacks(tq.slugid, tq.slugid) IS
	'take back what on_group_resolved() has registered for a group and has not created yet: the task of that id, or all; returns how many';

CREATE FUNCTION tq.group_progress(task_group_id tq.slugid) RETURNS tq.progress
	AS 'MODULE_PATHNAME', 'tq_group_progress' LANGUAGE C;
COMMENT ON FUNCTION tq.group_progress(tq.slugid) IS 'number of tasks of a group in each state, and its outcome';

CREATE FUNCTION tq.group_tree(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_group_tree' LANGUAGE C;
COMMENT ON FUNCTION tq.group_tree(tq.slugid, int) IS 'a task group as lines for a terminal: each task below the last that it depends on, with its state';

CREATE FUNCTION tq.group_dot(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_group_dot' LANGUAGE C;
COMMENT ON FUNCTION tq.group_dot(tq.slugid, int) IS 'the graph of a task group for Graphviz';

CREATE FUNCTION tq.group_mermaid(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_group_mermaid' LANGUAGE C;
COMMENT ON FUNCTION tq.group_mermaid(tq.slugid, int) IS 'the graph of a task group as a flowchart of Mermaid';

CREATE FUNCTION tq.group_gantt(task_group_id tq.slugid, max_rows int DEFAULT 100) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_group_gantt_sql' LANGUAGE C;
COMMENT ON FUNCTION tq.group_gantt(tq.slugid, int) IS 'the runs of a task group by worker and time, as an SVG';

CREATE FUNCTION tq.report_html(task_group_id tq.slugid, max_nodes int DEFAULT 200) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_report_html' LANGUAGE C;
COMMENT ON FUNCTION tq.report_html(tq.slugid, int) IS 'a task group as a page of HTML that needs no other file: progress, failures, graph and runs';

-- ---------------------------------------------------------------------------
-- Workers
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.claim_work(
	task_queue_id text, worker_group text, worker_id text, tasks int DEFAULT 1, wait interval DEFAULT '0')
	RETURNS SETOF tq.claim
	AS 'MODULE_PATHNAME', 'tq_claim_work' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_work(text, text, text, int, interval) IS 'claim up to that many pending runs of a queue, by priority, then in order; with wait, at most 60 s, sleep until there is one';

CREATE FUNCTION tq.claim_work(
	task_queue_ids text[], worker_group text, worker_id text, tasks int DEFAULT 1, wait interval DEFAULT '0', mode text DEFAULT 'strict')
	RETURNS SETOF tq.queue_claim
	AS 'MODULE_PATHNAME', 'tq_claim_work_of_queues' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_work(text[], text, text, int, interval, text) IS 'claim up to that many pending runs of several queues, or of patterns like app/*, which stand for all queues of a provisioner: in this order, or with mode round-robin in turns and equal shares';

CREATE FUNCTION tq.claim_lines(
	task_queue_id text, worker_group text, worker_id text, tasks int DEFAULT 1, wait interval DEFAULT '0')
	RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_claim_lines' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_lines(text, text, text, int, interval) IS 'claim_work() with the claims as lines of text, for routers';

CREATE FUNCTION tq.claim_lines(
	task_queue_ids text[], worker_group text, worker_id text, tasks int DEFAULT 1, wait interval DEFAULT '0', mode text DEFAULT 'strict')
	RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_claim_lines_of_queues' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_lines(text[], text, text, int, interval, text) IS 'claim_work() of several queues with the claims as lines of text, for routers';

-- The procedure ends transactions.
CREATE PROCEDURE tq.wait_for_work(task_queue_id text, wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_work' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_work(text, interval) IS 'sleep until a task of the queue can be claimed, at most that long, at most an hour; holds no snapshot, so not in a transaction block';

CREATE PROCEDURE tq.wait_for_work(task_queue_ids text[], wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_work_of_queues' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_work(text[], interval) IS 'sleep until a task of any of these queues, or patterns like app/*, can be claimed; the rest as for one queue';

CREATE PROCEDURE tq.wait_for_task(task_id tq.slugid, wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_task' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_task(tq.slugid, interval) IS 'wait until a task is resolved, without holding a snapshot; returns then or when the time is over';

CREATE PROCEDURE tq.wait_for_task_group(task_group_id tq.slugid, wait interval DEFAULT '5 minutes')
	AS 'MODULE_PATHNAME', 'tq_wait_for_task_group' LANGUAGE C;
COMMENT ON PROCEDURE tq.wait_for_task_group(tq.slugid, interval) IS 'wait until no task of a group is unresolved, without holding a snapshot; returns then or when the time is over';

CREATE FUNCTION tq.claim_task(task_id tq.slugid, run_id int, worker_group text, worker_id text)
	RETURNS SETOF tq.claim ROWS 1
	AS 'MODULE_PATHNAME', 'tq_claim_task' LANGUAGE C;
COMMENT ON FUNCTION tq.claim_task(tq.slugid, int, text, text) IS 'claim this pending run; no row when the worker is quarantined';

CREATE FUNCTION tq.reclaim_task(
	task_id tq.slugid, run_id int, credentials jsonb DEFAULT NULL, wait interval DEFAULT '0') RETURNS tq.claim
	AS 'MODULE_PATHNAME', 'tq_reclaim_task' LANGUAGE C;
COMMENT ON FUNCTION tq.reclaim_task(tq.slugid, int, jsonb, interval) IS 'extend the claim on a running run, after a wait that ends with the run; the payload is left out';

CREATE FUNCTION tq.report_completed(task_id tq.slugid, run_id int, credentials jsonb DEFAULT NULL, result jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_completed' LANGUAGE C;
COMMENT ON FUNCTION tq.report_completed(tq.slugid, int, jsonb, jsonb) IS 'resolve a running run as completed, with a result for result(); returns the status of the task';

CREATE FUNCTION tq.report_failed(
	task_id tq.slugid, run_id int, credentials jsonb DEFAULT NULL, error jsonb DEFAULT NULL,
	retry_delay interval DEFAULT NULL, retries_left int DEFAULT NULL, error_message text DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_failed' LANGUAGE C;
COMMENT ON FUNCTION tq.report_failed(tq.slugid, int, jsonb, jsonb, interval, int, text) IS 'resolve a running run as failed, with an error, any JSON, and an error_message, which are kept as {message, details} if there is a message; retry_delay and retries_left override the policy for the next attempts; returns the status of the task';

CREATE FUNCTION tq.report_exception(
	task_id tq.slugid, run_id int, reason text, credentials jsonb DEFAULT NULL, error jsonb DEFAULT NULL,
	retry_delay interval DEFAULT NULL, retries_left int DEFAULT NULL, error_message text DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_exception' LANGUAGE C;
COMMENT ON FUNCTION tq.report_exception(tq.slugid, int, text, jsonb, jsonb, interval, int, text) IS 'resolve a running run as exception, with error, error_message, retry_delay and retries_left as report_failed() has; by default worker-shutdown and intermittent-task are retried while retries are left';

CREATE FUNCTION tq.defer_task(task_id tq.slugid, run_id int, after interval, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_defer_task' LANGUAGE C;
COMMENT ON FUNCTION tq.defer_task(tq.slugid, int, interval, jsonb) IS 'return a running run to its queue, to be claimed again after that time; returns the status of the task';

CREATE FUNCTION tq.report_progress(task_id tq.slugid, run_id int, done bigint, total bigint, message text DEFAULT NULL, credentials jsonb DEFAULT NULL)
	RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_report_progress' LANGUAGE C;
COMMENT ON FUNCTION tq.report_progress(tq.slugid, int, bigint, bigint, text, jsonb) IS 'show how far a running run is: done of total, in any unit, or NULL; stored once a second at most; returns the status of the task';

CREATE FUNCTION tq.resolve(task_ids tq.slugid[], run_ids int[], reason text DEFAULT 'completed', credentials jsonb DEFAULT NULL)
	RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_resolve' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve(tq.slugid[], int[], text, jsonb) IS 'resolve many runs for one reason; returns an outcome for each instead of raising an error';

CREATE FUNCTION tq.resolve(reports jsonb) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_resolve_each' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve(jsonb) IS 'resolve many runs, each as its report says: [{taskId, runId, reason, result, error, errorMessage, retryDelay, retriesLeft, credentials}]; returns an outcome for each instead of raising an error';

CREATE FUNCTION tq.resolve_lines(runs text, reason text DEFAULT 'completed', credentials jsonb DEFAULT NULL) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_resolve_lines' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve_lines(text, text, jsonb) IS 'resolve() with the runs and the outcomes as lines of text, for routers';

CREATE FUNCTION tq.resolve_and_claim(
	reports jsonb, task_queue_id text, worker_group text, worker_id text, tasks int DEFAULT 1)
	RETURNS SETOF tq.worker_run
	AS 'MODULE_PATHNAME', 'tq_resolve_and_claim' LANGUAGE C;
COMMENT ON FUNCTION tq.resolve_and_claim(jsonb, text, text, text, int) IS 'resolve runs as resolve(reports) does, then claim up to that many as claim_work() does; returns first an outcome for each report, then the claims';

CREATE FUNCTION tq.assume(credentials jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_assume' LANGUAGE C;
COMMENT ON FUNCTION tq.assume(jsonb) IS 'have the scopes of these credentials, in place of those of the role, until the transaction ends';

CREATE FUNCTION tq.rotate_secret(revoke bool DEFAULT false) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_rotate_secret' LANGUAGE C;
COMMENT ON FUNCTION tq.rotate_secret(bool) IS 'sign credentials with a new secret from now on; those of the claims that are out stay valid, unless revoke is true';

CREATE FUNCTION tq.quarantine_worker(
	provisioner_id text, worker_type text, worker_group text, worker_id text,
	quarantine_until timestamptz, quarantine_info text DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_quarantine_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.quarantine_worker(text, text, text, text, timestamptz, text) IS 'let a worker claim no tasks until then; a past time ends the quarantine';

CREATE FUNCTION tq.get_worker(provisioner_id text, worker_type text, worker_group text, worker_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.get_worker(text, text, text, text) IS 'a worker: when it was seen, its recent tasks, and its quarantines with their reasons';

CREATE FUNCTION tq.list_workers(
	provisioner_id text, worker_type text, quarantined bool DEFAULT NULL, after text DEFAULT NULL, max int DEFAULT 1000
) RETURNS SETOF tq.worker_entry
	AS 'MODULE_PATHNAME', 'tq_list_workers' LANGUAGE C;
COMMENT ON FUNCTION tq.list_workers(text, text, bool, text, int) IS 'workers of a queue by group and id, all or only those that are, or are not, in quarantine; go on after the page of the last row';

CREATE FUNCTION tq.declare_worker(
	provisioner_id text, worker_type text, worker_group text, worker_id text, expires timestamptz
) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_declare_worker' LANGUAGE C;
COMMENT ON FUNCTION tq.declare_worker(text, text, text, text, timestamptz) IS 'make a worker and its queue known until then at least; returns the worker';

CREATE FUNCTION tq.worker_removed(
	provisioner_id text, worker_type text, worker_group text, worker_id text, reason text DEFAULT NULL
) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_worker_removed' LANGUAGE C;
COMMENT ON FUNCTION tq.worker_removed(text, text, text, text, text) IS 'resolve the runs of a worker that is gone as worker-shutdown, so that they are retried; the reason becomes their error';

-- ---------------------------------------------------------------------------
-- Policies: dead letters, and equivalents of other systems
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.list_dead_letters(task_queue_id text, after tq.slugid DEFAULT NULL, max int DEFAULT 1000)
	RETURNS SETOF tq.dead_letter_entry
	AS 'MODULE_PATHNAME', 'tq_list_dead_letters' LANGUAGE C;
COMMENT ON FUNCTION tq.list_dead_letters(text, tq.slugid, int) IS 'tasks of a queue that failed for good, by task id; go on after the last id seen';

CREATE FUNCTION tq.redrive(task_id tq.slugid) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_redrive' LANGUAGE C;
COMMENT ON FUNCTION tq.redrive(tq.slugid) IS 'run a dead letter again: as a rerun, or past the deadline as a new task that refers to the old one; returns the status of the task that is to run';

CREATE FUNCTION tq.redrive_queue(task_queue_id text, max int DEFAULT 1000) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_redrive_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.redrive_queue(text, int) IS 'redrive() up to that many dead letters of a queue, in the order in which they failed, skipping those that are locked or that a rule refuses; returns how many';

CREATE FUNCTION tq.discard_dead_letter(task_id tq.slugid) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_discard_dead_letter' LANGUAGE C;
COMMENT ON FUNCTION tq.discard_dead_letter(tq.slugid) IS 'drop a dead letter; the task stays as it is';

CREATE FUNCTION tq.conductor_policy(task_def jsonb, workflow_task jsonb DEFAULT '{}') RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_conductor_policy' LANGUAGE C STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION tq.conductor_policy(jsonb, jsonb) IS 'the policy that corresponds to a Conductor task definition and its use in a workflow';

CREATE FUNCTION tq.taskbroker_policy(activation jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_taskbroker_policy' LANGUAGE C STABLE PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION tq.taskbroker_policy(jsonb) IS 'the policy that corresponds to a Taskbroker activation';

CREATE FUNCTION tq.conductor_status(task_id tq.slugid) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_conductor_status' LANGUAGE C;
COMMENT ON FUNCTION tq.conductor_status(tq.slugid) IS 'the state of a task as a Conductor status; NULL while it is unscheduled';

CREATE FUNCTION tq.taskbroker_status(task_id tq.slugid) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_taskbroker_status' LANGUAGE C;
COMMENT ON FUNCTION tq.taskbroker_status(tq.slugid) IS 'the state of a task as a Taskbroker status';

-- ---------------------------------------------------------------------------
-- Queues
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.pending_tasks(task_queue_id text) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_pending_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.pending_tasks(text) IS 'number of tasks of a queue that are pending and not past their deadline';

CREATE FUNCTION tq.task_queue_counts(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_task_queue_counts' LANGUAGE C;
COMMENT ON FUNCTION tq.task_queue_counts(text) IS 'pendingTasks and claimedTasks of a queue';

CREATE FUNCTION tq.list_pending_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.pending_entry
	AS 'MODULE_PATHNAME', 'tq_list_pending_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_pending_tasks(text, text, int) IS 'runs of a queue that can be claimed, in the order in which they became pending; go on after the page of the last row';

CREATE FUNCTION tq.list_claimed_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.claimed_entry
	AS 'MODULE_PATHNAME', 'tq_list_claimed_tasks' LANGUAGE C;
COMMENT ON FUNCTION tq.list_claimed_tasks(text, text, int) IS 'runs of a queue that workers have, in the order in which they were claimed; go on after the page of the last row';

CREATE FUNCTION tq.list_task_queues(after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.task_queue_entry
	AS 'MODULE_PATHNAME', 'tq_list_task_queues' LANGUAGE C;
COMMENT ON FUNCTION tq.list_task_queues(text, int) IS 'queues that workers ask for work, by name; go on after the last name';

CREATE FUNCTION tq.get_task_queue(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_task_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.get_task_queue(text) IS 'a queue: when a worker last asked it for work, and when it expires';

CREATE FUNCTION tq.list_worker_types(provisioner_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.task_queue_entry
	AS 'MODULE_PATHNAME', 'tq_list_worker_types' LANGUAGE C;
COMMENT ON FUNCTION tq.list_worker_types(text, text, int) IS 'queues of a provisioner, by worker type; go on after the last worker type';

CREATE FUNCTION tq.get_worker_type(provisioner_id text, worker_type text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_worker_type' LANGUAGE C;
COMMENT ON FUNCTION tq.get_worker_type(text, text) IS 'get_task_queue() by the two parts of its name';

CREATE FUNCTION tq.list_provisioners(after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.provisioner_entry
	AS 'MODULE_PATHNAME', 'tq_list_provisioners' LANGUAGE C;
COMMENT ON FUNCTION tq.list_provisioners(text, int) IS 'provisioners of queues that workers ask for work, by name; go on after the last name';

CREATE FUNCTION tq.get_provisioner(provisioner_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_provisioner' LANGUAGE C;
COMMENT ON FUNCTION tq.get_provisioner(text) IS 'a provisioner: the latest times of its queues';

CREATE FUNCTION tq.set_queue(task_queue_id text, settings jsonb) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_set_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.set_queue(text, jsonb) IS 'change settings of a queue: limits, timeouts, retention, default policy; null removes one; returns all';

CREATE FUNCTION tq.get_queue_settings(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_queue_settings' LANGUAGE C;
COMMENT ON FUNCTION tq.get_queue_settings(text) IS 'settings of a queue, as they were given; {}: none';

CREATE FUNCTION tq.pause_queue(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_pause_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.pause_queue(text) IS 'hand out no tasks of a queue until resume_queue(); nothing is lost, and time goes on';

CREATE FUNCTION tq.resume_queue(task_queue_id text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_resume_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.resume_queue(text) IS 'hand out tasks of a paused queue again, first to the workers that wait';

-- ---------------------------------------------------------------------------
-- Recurring tasks
-- ---------------------------------------------------------------------------

CREATE TYPE tq.cron_entry AS (name text, schedule text, active bool, owner text, job_id bigint, command text);
COMMENT ON TYPE tq.cron_entry IS 'row of schedule_cron(), unschedule_cron(), pause_cron() and resume_cron(): a recurring task after the call';
COMMENT ON COLUMN tq.cron_entry.name IS 'name of the recurring task';
COMMENT ON COLUMN tq.cron_entry.schedule IS 'when it fires, as pg_cron reads it';
COMMENT ON COLUMN tq.cron_entry.active IS 'whether it fires';
COMMENT ON COLUMN tq.cron_entry.owner IS 'role with whose rights it creates tasks';
COMMENT ON COLUMN tq.cron_entry.job_id IS 'its job in pg_cron; NULL: none in this database';
COMMENT ON COLUMN tq.cron_entry.command IS 'what is left to run in the database of pg_cron; NULL: nothing';

-- The arguments after payload, but overlap, are passed on to enqueue() by name.
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
	deadline interval DEFAULT NULL,
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
) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_schedule_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.schedule_cron(text, text, text, jsonb, tq.slugid, tq.slugid[], text, text, int, interval, interval, interval, text[], text[], jsonb, jsonb, text, text, jsonb, int, text) IS
	'have pg_cron create a task at each time of a schedule, as enqueue does, or change that; NULL: the default of enqueue; returns one row';

CREATE FUNCTION tq.unschedule_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_unschedule_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.unschedule_cron(text) IS 'end a recurring task; the tasks that it has created stay';

CREATE FUNCTION tq.pause_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_pause_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.pause_cron(text) IS 'let a recurring task create no tasks until resume_cron()';

CREATE FUNCTION tq.resume_cron(name text) RETURNS SETOF tq.cron_entry
	AS 'MODULE_PATHNAME', 'tq_resume_cron' LANGUAGE C ROWS 1;
COMMENT ON FUNCTION tq.resume_cron(text) IS 'let a recurring task create tasks again, and make its job in pg_cron again if that is missing';

CREATE FUNCTION tq.run_cron_now(name text) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_run_cron_now' LANGUAGE C;
COMMENT ON FUNCTION tq.run_cron_now(text) IS 'create a task of a recurring task now, apart from its schedule; returns its id, or NULL: skipped, because the last one is unresolved';

CREATE FUNCTION tq.fire_cron(name text, scheduled timestamptz DEFAULT NULL) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_fire_cron' LANGUAGE C;
COMMENT ON FUNCTION tq.fire_cron(text, timestamptz) IS 'what pg_cron calls: create the task of a recurring task for that minute or second, once; NULL: for the present one; returns its id, or NULL: there is none';

CREATE FUNCTION tq_internal.cron_jobs() RETURNS TABLE (name text, role text, job_id bigint, active bool, status text, message text, started timestamptz, finished timestamptz)
	AS 'MODULE_PATHNAME', 'tq_cron_jobs' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.cron_jobs() IS 'jobs of recurring tasks in pg_cron, with the last entry of its log; none if it is in another database';

CREATE FUNCTION tq_internal.cron_time_zone() RETURNS text
	AS 'MODULE_PATHNAME', 'tq_cron_time_zone' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.cron_time_zone() IS 'time zone of the schedules of pg_cron; NULL: it is not preloaded';

-- ---------------------------------------------------------------------------
-- Artifacts
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.create_artifact(task_id tq.slugid, run_id int, name text, artifact jsonb, credentials jsonb DEFAULT NULL) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_create_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.create_artifact(tq.slugid, int, text, jsonb, jsonb) IS 'create an artifact of a run, from a Taskcluster createArtifact request; repeats of the same are harmless';

CREATE FUNCTION tq.finish_artifact(task_id tq.slugid, run_id int, name text, upload_id tq.slugid, credentials jsonb DEFAULT NULL) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_finish_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.finish_artifact(tq.slugid, int, text, tq.slugid, jsonb) IS 'mark the content of an object artifact as uploaded';

CREATE FUNCTION tq.get_artifact(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.get_artifact(tq.slugid, int, text) IS 'where the content of an artifact is, or inline the content; links are followed';

CREATE FUNCTION tq.get_latest_artifact(task_id tq.slugid, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_get_latest_artifact' LANGUAGE C;
COMMENT ON FUNCTION tq.get_latest_artifact(tq.slugid, text) IS 'get_artifact() of the last run';

CREATE FUNCTION tq.artifact_info(task_id tq.slugid, run_id int, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_artifact_info' LANGUAGE C;
COMMENT ON FUNCTION tq.artifact_info(tq.slugid, int, text) IS 'an artifact without its content, with the keys of Taskcluster; links are not followed';

CREATE FUNCTION tq.latest_artifact_info(task_id tq.slugid, name text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tq_latest_artifact_info' LANGUAGE C;
COMMENT ON FUNCTION tq.latest_artifact_info(tq.slugid, text) IS 'artifact_info() of the last run';

CREATE FUNCTION tq.list_artifacts(task_id tq.slugid, run_id int, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	AS 'MODULE_PATHNAME', 'tq_list_artifacts' LANGUAGE C;
COMMENT ON FUNCTION tq.list_artifacts(tq.slugid, int, text, int) IS 'artifacts of a run, by name; go on after the last name seen';

CREATE FUNCTION tq.list_latest_artifacts(task_id tq.slugid, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.artifact_entry
	AS 'MODULE_PATHNAME', 'tq_list_latest_artifacts' LANGUAGE C;
COMMENT ON FUNCTION tq.list_latest_artifacts(tq.slugid, text, int) IS 'list_artifacts() of the last run';

-- ---------------------------------------------------------------------------
-- Exchange messages
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.topic_match(pattern text, routing_key text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_topic_match_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.topic_match(text, text) IS 'whether this AMQP topic pattern (* one word, # any number) matches this routing key';

CREATE FUNCTION tq.bind(channel text, exchange text, routing_key_pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_bind' LANGUAGE C;
COMMENT ON FUNCTION tq.bind(text, text, text) IS 'bind a channel to an exchange, so that NOTIFY on it sends the messages that match';

CREATE FUNCTION tq.unbind(channel text, exchange text, pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_unbind' LANGUAGE C;
COMMENT ON FUNCTION tq.unbind(text, text, text) IS 'remove a binding; also disables a default channel';

CREATE FUNCTION tq.queue_channel(task_queue_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_queue_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.queue_channel(text) IS 'the channel that is notified when runs of this queue become claimable';

CREATE FUNCTION tq.worker_channel(worker_group text, worker_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_worker_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.worker_channel(text, text) IS 'the channel that is notified when a running run is taken from this worker: canceled, expired, timed out, removed or deleted';

CREATE FUNCTION tq.messages(after bigint DEFAULT 0, max int DEFAULT 1000, exchange text DEFAULT NULL, pattern text DEFAULT '#') RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_messages' LANGUAGE C;
COMMENT ON FUNCTION tq.messages(bigint, int, text, text) IS 'messages in the order of publication, after that id; go on after the last id seen';

CREATE FUNCTION tq.message(id bigint) RETURNS tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_message' LANGUAGE C;
COMMENT ON FUNCTION tq.message(bigint) IS 'the message of that id, whole';

CREATE FUNCTION tq.published_id() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_published_id' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq.published_id() IS 'the last id of a message that readers may have seen: it is on the synchronous standbys, for which the call waits';

CREATE FUNCTION tq.subscribe(name text, exchange text, pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_subscribe' LANGUAGE C;
COMMENT ON FUNCTION tq.subscribe(text, text, text) IS 'create a durable subscription, or bind it to another exchange';

CREATE FUNCTION tq.unsubscribe(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_unsubscribe' LANGUAGE C;
COMMENT ON FUNCTION tq.unsubscribe(text) IS 'drop a durable subscription';

CREATE FUNCTION tq.fetch(name text, max int DEFAULT 100) RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_fetch' LANGUAGE C;
COMMENT ON FUNCTION tq.fetch(text, int) IS 'the first messages of a durable subscription that are not acknowledged';

CREATE FUNCTION tq.ack(name text, id bigint) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_ack' LANGUAGE C;
COMMENT ON FUNCTION tq.ack(text, bigint) IS 'acknowledge the messages of a durable subscription up to that id';

CREATE FUNCTION tq_internal.is_awaited(xid xid8) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_is_awaited' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.is_awaited(xid8) IS 'for pg_dump: whether messages of this transaction are unpublished, or not acknowledged by a subscription';

-- ---------------------------------------------------------------------------
-- Scopes
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.grant_scopes(role regrole, scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_grant_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.grant_scopes(regrole, text[]) IS 'grant scopes to a role and its members; a star at the end of a scope stands for any text';

CREATE FUNCTION tq.revoke_scopes(role regrole, scopes text[]) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_revoke_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.revoke_scopes(regrole, text[]) IS 'revoke scopes that were granted to a role, each as it was granted';

CREATE FUNCTION tq.grant_queue(role regrole, task_queue_id text, access text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_grant_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.grant_queue(regrole, text, text) IS 'grant a role the scopes to produce, work, read, manage or join in a queue, or in all whose names begin like that when it ends in a star';

CREATE FUNCTION tq.revoke_queue(role regrole, task_queue_id text, access text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_revoke_queue' LANGUAGE C;
COMMENT ON FUNCTION tq.revoke_queue(regrole, text, text) IS 'revoke the scopes that grant_queue() with the same arguments grants';

CREATE FUNCTION tq.current_scopes() RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_current_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.current_scopes() IS 'the scopes of the caller, without those that others cover';

CREATE FUNCTION tq.satisfies(have text[], required text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_satisfies' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq.satisfies(text[], text) IS 'whether one of these scopes satisfies the required one';

-- ---------------------------------------------------------------------------
-- Maintenance
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.upkeep() RETURNS TABLE (step text, tasks bigint)
	AS 'MODULE_PATHNAME', 'tq_upkeep' LANGUAGE C;
COMMENT ON FUNCTION tq.upkeep() IS 'one pass of maintenance: deadlines, timeouts, expired claims, delayed runs, expiry, and, outside of a transaction block, publication';

CREATE PROCEDURE tq.install_cron_upkeep(schedule text DEFAULT NULL)
	AS 'MODULE_PATHNAME', 'tq_install_cron_upkeep' LANGUAGE C;
COMMENT ON PROCEDURE tq.install_cron_upkeep(text) IS 'have pg_cron call upkeep() as the caller, where tq is not preloaded; schedule: NULL is each second, or each minute before pg_cron 1.5';

CREATE FUNCTION tq.maintenance_activity()
	RETURNS TABLE (step text, state text, batches bigint, tasks bigint, last_at timestamptz,
		last_late interval, max_late interval, max_late_at timestamptz,
		failures bigint, failed_at timestamptz, error text)
	AS 'MODULE_PATHNAME', 'tq_maintenance_activity' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.maintenance_activity() IS 'what the maintenance worker of this database has done since it was started, how late, and what failed: its cycles, then each step; without a maintenance worker one row that says so';

CREATE FUNCTION tq.start_maintenance() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_start_maintenance' LANGUAGE C;
COMMENT ON FUNCTION tq.start_maintenance() IS 'request the maintenance worker of this database; done by CREATE EXTENSION';

-- ---------------------------------------------------------------------------
-- Names of stored numbers, and views that show them
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.clock_now() RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tq_clock_now_sql' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.clock_now() IS 'the time by which functions decide';

-- Functions of schema tq that views call, without the check of scopes.
CREATE FUNCTION tq_internal.group_progress(task_group_id tq.slugid) RETURNS tq.progress
	AS 'MODULE_PATHNAME', 'tq_group_progress_shown' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.group_progress(tq.slugid) IS 'tq.group_progress() for views';

CREATE FUNCTION tq_internal.published_id() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_published_id_shown' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.published_id() IS 'tq.published_id() for views';

CREATE FUNCTION tq_internal.maintenance_activity()
	RETURNS TABLE (step text, state text, batches bigint, tasks bigint, last_at timestamptz,
		last_late interval, max_late interval, max_late_at timestamptz,
		failures bigint, failed_at timestamptz, error text)
	AS 'MODULE_PATHNAME', 'tq_maintenance_activity_shown' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.maintenance_activity() IS 'tq.maintenance_activity() for views';

CREATE FUNCTION tq_internal.expired_claims() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_expired_claims' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.expired_claims() IS 'claims that have expired within the last hour and since the maintenance worker was started; NULL: there is none';

CREATE FUNCTION tq_internal.background_workers() RETURNS int
	AS 'MODULE_PATHNAME', 'tq_background_workers' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.background_workers() IS 'background workers of the server that are running';

CREATE FUNCTION tq_internal.waiters() RETURNS TABLE (pid int, queue int)
	AS 'MODULE_PATHNAME', 'tq_waiters' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.waiters() IS 'sessions of this database that wait: for a run of a queue, 0 if it is new, or for a task, then queue is NULL';

CREATE FUNCTION tq_internal.queue_counters() RETURNS TABLE (queue int,
	unscheduled bigint, delayed bigint, pending bigint, running bigint,
	created bigint, claimed bigint, completed bigint, failed bigint, exception bigint, reasons jsonb,
	retried bigint, expired_claims bigint, created_per_s float8, claimed_per_s float8, ended_per_s float8,
	wait_p50 interval, wait_p95 interval, wait_p99 interval, wait_histogram jsonb,
	run_p50 interval, run_p95 interval, run_p99 interval, run_histogram jsonb)
	AS 'MODULE_PATHNAME', 'tq_queue_counters' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.queue_counters() IS 'counters of the queues in which there is or was something';

CREATE FUNCTION tq_internal.count_state(OUT source text, OUT since timestamptz)
	AS 'MODULE_PATHNAME', 'tq_count_state' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.count_state() IS 'where the numbers of tasks in tq.queue_stats are from, and since when totals are counted';

CREATE FUNCTION tq_internal.state_name(state int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_state_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.state_name(int) IS 'name of a stored state';
CREATE FUNCTION tq_internal.reason_created_name(reason int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_reason_created_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.reason_created_name(int) IS 'name of a stored reasonCreated';
CREATE FUNCTION tq_internal.reason_resolved_name(reason int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_reason_resolved_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.reason_resolved_name(int) IS 'name of a stored reasonResolved, NULL if there is none';
CREATE FUNCTION tq_internal.priority_name(priority int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_priority_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.priority_name(int) IS 'name of a stored priority';

CREATE FUNCTION tq_internal.exchange_name(exchange int) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_exchange_name_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.exchange_name(int) IS 'name of a stored exchange';

CREATE FUNCTION tq_internal.is_tolerated(policy jsonb, reason int) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_is_tolerated_sql' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.is_tolerated(jsonb, int) IS 'whether a task with this policy that was resolved for this stored reasonResolved is unsuccessful, but tolerated or forgiven';

-- A timer that is left to the publisher: its message is not visible in the last
-- tick.  The records begin with the id of the first task.
CREATE VIEW tq_internal.left_timer AS
	SELECT ('x' || encode(substr(m.records, 1, 8), 'hex'))::bit(64)::bigint AS task, m.due, m.taken_until IS NOT NULL AS is_claim
	FROM tq_internal.message m
	WHERE m.due IS NOT NULL
		AND m.xid >= coalesce((SELECT pg_snapshot_xmin(upto) FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1), '0')
		AND NOT pg_visible_in_snapshot(m.xid, (SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1));
COMMENT ON VIEW tq_internal.left_timer IS 'timers of deadlines and claims that the publisher will insert when it publishes their messages';

CREATE VIEW tq.run_overview AS
	SELECT t.task_id, r.run_id::int AS run_id, tq_internal.state_name(r.state) AS state,
		tq_internal.reason_created_name(r.reason_created) AS reason_created,
		tq_internal.reason_resolved_name(r.reason_resolved) AS reason_resolved,
		w.worker_group, w.worker_id, COALESCE(d.attempt, 0)::int AS attempt,
		r.scheduled, COALESCE(d.visible_at, r.scheduled) AS visible_at,
		r.started, r.taken_until, r.resolved, d.error, d.result, d.done, d.total, d.message, d.reported
	FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task LEFT JOIN tq_internal.worker w ON w.id = r.worker
		LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id
	UNION ALL
	SELECT t.task_id, p.run_id, 'pending', tq_internal.reason_created_name(p.reason_created), NULL,
		w.worker_group, w.worker_id, COALESCE(d.attempt, 0), p.scheduled, COALESCE(d.visible_at, p.scheduled),
		d.started, NULL, NULL, NULL, NULL, d.done, d.total, d.message, d.reported
	FROM (SELECT task, run_id, reason_created, scheduled, has_detail FROM tq_internal.pending
		UNION ALL SELECT task, run_id, reason_created, scheduled, has_detail FROM tq_internal.delayed) p
		JOIN tq_internal.task t ON t.id = p.task
		LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id
		LEFT JOIN tq_internal.worker w ON w.id = d.worker;
COMMENT ON VIEW tq.run_overview IS 'every run of every task, with names instead of numbers';
COMMENT ON COLUMN tq.run_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.run_overview.run_id IS 'number of the run, from 0';
COMMENT ON COLUMN tq.run_overview.state IS 'state of the run';
COMMENT ON COLUMN tq.run_overview.reason_created IS 'why it was created';
COMMENT ON COLUMN tq.run_overview.reason_resolved IS 'why it was resolved; NULL: it is not';
COMMENT ON COLUMN tq.run_overview.worker_group IS 'group of the worker that has it, or had it';
COMMENT ON COLUMN tq.run_overview.worker_id IS 'that worker';
COMMENT ON COLUMN tq.run_overview.attempt IS 'which attempt it is, from 0; a run that replaces a lost one is the same attempt';
COMMENT ON COLUMN tq.run_overview.scheduled IS 'when it was created';
COMMENT ON COLUMN tq.run_overview.visible_at IS 'from when on it can be claimed';
COMMENT ON COLUMN tq.run_overview.started IS 'when it was claimed';
COMMENT ON COLUMN tq.run_overview.taken_until IS 'until when it is claimed';
COMMENT ON COLUMN tq.run_overview.resolved IS 'when it was resolved';
COMMENT ON COLUMN tq.run_overview.error IS 'error that the worker reported';
COMMENT ON COLUMN tq.run_overview.result IS 'result that the worker reported';
COMMENT ON COLUMN tq.run_overview.done IS 'how much of it was done when the worker last called report_progress(); NULL: it did not';
COMMENT ON COLUMN tq.run_overview.total IS 'of how much; NULL: not known';
COMMENT ON COLUMN tq.run_overview.message IS 'what the worker said then';
COMMENT ON COLUMN tq.run_overview.reported IS 'when that was';

-- The id of a task's group is computed, and a filter by it is split by the
-- support function of slugid_eq(); src/api/group_filter.c.
CREATE FUNCTION tq_internal.group_slug(group_id bigint, task_id tq.slugid) RETURNS tq.slugid
	AS 'MODULE_PATHNAME', 'tq_group_slug_sql' LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_internal.group_slug(bigint, tq.slugid) IS 'id of the group of a task';
CREATE FUNCTION tq_internal.group_number(task_group_id tq.slugid) RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_group_number' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tq_internal.group_number(tq.slugid) IS 'number of a group; NULL if it has no row';

CREATE VIEW tq_internal.named_task AS
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id) AS task_group_id,
		y.policy || CASE WHEN y.policy ?| '{uniqueKey,serialKey,concurrencyKey,fairnessKey}' THEN COALESCE(
			(SELECT jsonb_object_agg(('{uniqueKey,serialKey,concurrencyKey,fairnessKey}'::text[])[k.kind + 1], k.key) FROM tq_internal.task_key k WHERE k.task = t.id), '{}')
			ELSE '{}' END AS given_policy
	FROM tq_internal.task t
		JOIN tq_internal.queue q ON q.id = t.queue
		LEFT JOIN tq_internal.policy y ON y.id = t.policy;
COMMENT ON VIEW tq_internal.named_task IS 'definitions of tasks, with names in place of numbers';

CREATE VIEW tq_internal.named_run AS
	SELECT r.*, w.worker_group, w.worker_id, COALESCE(d.attempt, r.run_id) AS attempt, d.error, d.result,
		d.done, d.total
	FROM tq_internal.run r
		LEFT JOIN tq_internal.worker w ON w.id = r.worker
		LEFT JOIN LATERAL (SELECT * FROM tq_internal.run_detail d
			WHERE r.has_detail AND d.task = r.task AND d.run_id = r.run_id OFFSET 0) AS d ON true;	-- not hashed
COMMENT ON VIEW tq_internal.named_run IS 'claimed and resolved runs, with their details, and the names of their workers';

CREATE VIEW tq_internal.claimable_run AS
	SELECT p.*, COALESCE(d.attempt, p.run_id) AS attempt
	FROM tq_internal.pending p
		LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id;
COMMENT ON VIEW tq_internal.claimable_run IS 'pending runs that can be claimed, with their details';

-- Running runs are found by their timers, because an index on the state of runs
-- would keep the updates of runs from being HOT.  Each has one at every commit,
-- whether it is due or not (src/storage/timer_table.c).
-- The planner takes LIMIT to leave a tenth of the ten elements that it expects of
-- each array.  Without it, it expects so many tasks that it reads all runs.
CREATE VIEW tq_internal.watched_task AS
	SELECT u.task FROM tq_internal.claim_timer l CROSS JOIN LATERAL (SELECT unnest(l.tasks) AS task LIMIT cardinality(l.tasks)) AS u
	UNION SELECT l.task FROM tq_internal.left_timer l WHERE l.is_claim
	UNION SELECT p.task FROM tq_internal.postponed p WHERE p.step = 'claim-expired';
COMMENT ON VIEW tq_internal.watched_task IS 'tasks that have a claim timer, or will: all running ones, and others';

-- A running run is the last of its task.  LIMIT makes it a look-up by index for
-- each task, whatever the statistics say about tables that change so fast.
CREATE VIEW tq_internal.claimed_run AS
	SELECT r.*
	FROM tq_internal.watched_task x
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run q WHERE q.task = x.task ORDER BY q.run_id DESC LIMIT 1) AS r
	WHERE r.state = 2;
COMMENT ON VIEW tq_internal.claimed_run IS 'running runs';

CREATE VIEW tq_internal.running_run AS
	SELECT r.*
	FROM tq_internal.claimed_run c JOIN tq_internal.named_run r ON r.task = c.task AND r.run_id = c.run_id;
COMMENT ON VIEW tq_internal.running_run IS 'running runs, with their details, and the names of their workers';

-- Each task once, with its current run.  A state is a constant of each branch,
-- and names are looked up within it, so that a query for a state, a queue or a
-- task reads only what it needs of each branch.  The last run is not looked up by
-- LATERAL, so that a filter by worker or time comes first.
CREATE VIEW tq_internal.current_task AS
	SELECT t.*, 'unscheduled' AS state, (u.next_run - 1)::smallint AS run_id, NULL::smallint AS attempt,
		NULL::smallint AS reason_created, NULL::smallint AS reason_resolved,
		CASE WHEN u.stripes > 0 THEN (SELECT sum(m.unmet)::int FROM tq_internal.dependency_counter m WHERE m.task = t.id) ELSE u.unmet END AS unmet,
		NULL::timestamptz AS scheduled, NULL::timestamptz AS visible_at, NULL::timestamptz AS started,
		NULL::timestamptz AS taken_until, NULL::timestamptz AS resolved, NULL AS worker_group, NULL AS worker_id,
		NULL::jsonb AS error, NULL::jsonb AS result, t.created AS since, NULL::float8 AS done
	FROM tq_internal.unscheduled u JOIN tq_internal.named_task t ON t.id = u.task
	UNION ALL
	SELECT t.*, 'pending', p.run_id, p.attempt, p.reason_created, NULL, NULL, p.scheduled, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.claimable_run p JOIN tq_internal.named_task t ON t.queue = p.queue AND t.priority = p.priority AND t.id = p.seq AND t.id = p.task
	UNION ALL
	SELECT t.*, 'pending', p.run_id, p.attempt, p.reason_created, NULL, NULL, p.scheduled, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.claimable_run p JOIN tq_internal.named_task t ON t.id = p.task
	WHERE p.seq <> p.task
	UNION ALL
	SELECT t.*, 'pending', p.run_id, COALESCE(d.attempt, p.run_id), p.reason_created, NULL, NULL, p.scheduled, p.visible_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.scheduled, NULL
	FROM tq_internal.delayed p JOIN tq_internal.named_task t ON t.id = p.task
		LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id
	UNION ALL
	SELECT t.*, 'running', r.run_id, r.attempt, r.reason_created, NULL, NULL, r.scheduled, NULL, r.started, r.taken_until, NULL,
		r.worker_group, r.worker_id, r.error, r.result, r.started, r.done::float8 / nullif(r.total, 0)
	FROM tq_internal.named_run r JOIN tq_internal.named_task t ON t.id = r.task
	WHERE r.state = 2 AND r.task IN (SELECT w.task FROM tq_internal.watched_task w)	-- not running_run, which begins with the timers
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'failed', r.run_id, r.attempt, r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		r.worker_group, r.worker_id, r.error, r.result, f.resolved, NULL
	FROM tq_internal.failure f
		JOIN tq_internal.queue q ON q.id = f.queue	-- not t.queue, so that the index by queue serves
		JOIN tq_internal.task t ON t.id = f.task
		LEFT JOIN tq_internal.policy y ON y.id = t.policy
		JOIN tq_internal.named_run r ON r.task = f.task
	WHERE f.state = 4 AND NOT EXISTS (SELECT FROM tq_internal.run x WHERE x.task = r.task AND x.run_id > r.run_id)
	UNION ALL
	SELECT t.*, q.task_queue_id, tq_internal.group_slug(t.group_id, t.task_id), y.policy,
		'exception', r.run_id, r.attempt, r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		r.worker_group, r.worker_id, r.error, r.result, f.resolved, NULL
	FROM tq_internal.failure f
		JOIN tq_internal.queue q ON q.id = f.queue	-- not t.queue, so that the index by queue serves
		JOIN tq_internal.task t ON t.id = f.task
		LEFT JOIN tq_internal.policy y ON y.id = t.policy
		JOIN tq_internal.named_run r ON r.task = f.task
	WHERE f.state = 5 AND NOT EXISTS (SELECT FROM tq_internal.run x WHERE x.task = r.task AND x.run_id > r.run_id)
	UNION ALL
	SELECT t.*, 'completed', r.run_id, r.attempt, r.reason_created, r.reason_resolved, NULL, r.scheduled, NULL, r.started, NULL, r.resolved,
		r.worker_group, r.worker_id, r.error, r.result, r.resolved, NULL
	FROM tq_internal.named_run r JOIN tq_internal.named_task t ON t.id = r.task
	WHERE r.state = 3 AND NOT EXISTS (SELECT FROM tq_internal.run x WHERE x.task = r.task AND x.run_id > r.run_id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = r.task AND p.seq <> p.task)
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = r.task);
COMMENT ON VIEW tq_internal.current_task IS 'every task with its state and current run';

CREATE VIEW tq.task_overview AS
	SELECT c.task_id, c.metadata ->> 'name' AS name, c.task_queue_id, c.state,
		COALESCE(tq_internal.reason_resolved_name(c.reason_resolved), tq_internal.reason_created_name(c.reason_created)) AS reason,
		tq_internal.priority_name(c.priority) AS priority, c.attempt::int AS attempt,
		c.since,
		c.worker_group || '/' || c.worker_id AS worker, c.done
	FROM tq_internal.current_task c;
COMMENT ON VIEW tq.task_overview IS 'every task with its state; tq.task_details has the rest';
COMMENT ON COLUMN tq.task_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_overview.name IS 'metadata.name; NULL if enqueue() got none';
COMMENT ON COLUMN tq.task_overview.task_queue_id IS 'queue in which workers find the task';
COMMENT ON COLUMN tq.task_overview.state IS 'unscheduled, pending, running, completed, failed or exception';
COMMENT ON COLUMN tq.task_overview.reason IS 'why the last run was resolved or, before that, created';
COMMENT ON COLUMN tq.task_overview.priority IS 'priority among the pending tasks of the queue';
COMMENT ON COLUMN tq.task_overview.attempt IS 'which attempt the last run is, from 0; NULL: no run';
COMMENT ON COLUMN tq.task_overview.since IS 'since when the task has been in this state';
COMMENT ON COLUMN tq.task_overview.worker IS 'group and id of the worker that has the last run, or had it';
COMMENT ON COLUMN tq.task_overview.done IS 'of a running task whose worker calls report_progress(), the share that is done, from 0 to 1';

CREATE VIEW tq.task_details AS
	SELECT c.task_id, c.metadata ->> 'name' AS name, c.task_queue_id, c.task_group_id,
		tq_internal.priority_name(c.priority) AS priority, c.state,
		tq_internal.reason_created_name(c.reason_created) AS reason_created,
		tq_internal.reason_resolved_name(c.reason_resolved) AS reason_resolved,
		c.run_id::int AS last_run_id, c.attempt::int AS attempt, c.unmet,
		c.state IN ('failed', 'exception') AND c.given_policy IS NOT NULL
			AND tq_internal.is_tolerated(c.given_policy, c.reason_resolved) AS tolerated,
		c.worker_group, c.worker_id, c.scheduled, c.visible_at, c.started, c.taken_until, c.resolved,
		c.created, COALESCE(c.effective_deadline, c.deadline) AS deadline, c.expires,
		COALESCE(c.scheduler_id, '-') AS scheduler_id, COALESCE(c.project_id, 'none') AS project_id,
		c.dependencies::text[] AS dependencies, c.routes, c.scopes, c.tags, c.metadata, c.extra, c.given_policy AS policy, c.payload, c.error, c.result
	FROM tq_internal.current_task c;
COMMENT ON VIEW tq.task_details IS 'every task with all that is known of it, the payload and the last error and result included';
COMMENT ON COLUMN tq.task_details.task_id IS 'id of the task';
COMMENT ON COLUMN tq.task_details.name IS 'metadata.name; NULL if enqueue() got none';
COMMENT ON COLUMN tq.task_details.task_queue_id IS 'queue in which workers find the task';
COMMENT ON COLUMN tq.task_details.task_group_id IS 'group of the task';
COMMENT ON COLUMN tq.task_details.priority IS 'priority among the pending tasks of the queue';
COMMENT ON COLUMN tq.task_details.state IS 'unscheduled, pending, running, completed, failed or exception';
COMMENT ON COLUMN tq.task_details.reason_created IS 'why the last run was created';
COMMENT ON COLUMN tq.task_details.reason_resolved IS 'why the last run was resolved';
COMMENT ON COLUMN tq.task_details.last_run_id IS 'number of the last run, from 0';
COMMENT ON COLUMN tq.task_details.attempt IS 'which attempt the last run is, from 0';
COMMENT ON COLUMN tq.task_details.unmet IS 'how many dependencies an unscheduled task waits for';
COMMENT ON COLUMN tq.task_details.tolerated IS 'whether its policy makes the failure count as a success for its group';
COMMENT ON COLUMN tq.task_details.worker_group IS 'group of the worker that has the last run, or had it';
COMMENT ON COLUMN tq.task_details.worker_id IS 'that worker';
COMMENT ON COLUMN tq.task_details.scheduled IS 'when the last run was created';
COMMENT ON COLUMN tq.task_details.visible_at IS 'until when a pending run is delayed; NULL: it is not';
COMMENT ON COLUMN tq.task_details.started IS 'when the last run was claimed';
COMMENT ON COLUMN tq.task_details.taken_until IS 'until when a running run is claimed';
COMMENT ON COLUMN tq.task_details.resolved IS 'when the last run was resolved';
COMMENT ON COLUMN tq.task_details.created IS 'when the task was created';
COMMENT ON COLUMN tq.task_details.deadline IS 'when the task is resolved as deadline-exceeded, at the latest';
COMMENT ON COLUMN tq.task_details.expires IS 'when the task is deleted';
COMMENT ON COLUMN tq.task_details.scheduler_id IS 'schedulerId of the definition';
COMMENT ON COLUMN tq.task_details.project_id IS 'projectId of the definition';
COMMENT ON COLUMN tq.task_details.dependencies IS 'tasks that it depends on; NULL: none';
COMMENT ON COLUMN tq.task_details.routes IS 'routes of its messages; NULL: none';
COMMENT ON COLUMN tq.task_details.scopes IS 'scopes of its credentials; NULL: none';
COMMENT ON COLUMN tq.task_details.tags IS 'tags of the definition';
COMMENT ON COLUMN tq.task_details.metadata IS 'metadata of the definition';
COMMENT ON COLUMN tq.task_details.extra IS 'extra of the definition';
COMMENT ON COLUMN tq.task_details.policy IS 'policy as it was given; NULL: none';
COMMENT ON COLUMN tq.task_details.payload IS 'payload of the definition';
COMMENT ON COLUMN tq.task_details.error IS 'error that the worker of the last run reported';
COMMENT ON COLUMN tq.task_details.result IS 'result that it reported';

CREATE VIEW tq.failure_overview AS
	SELECT f.resolved, t.task_id, t.metadata ->> 'name' AS name, q.task_queue_id,
		tq_internal.state_name(f.state) AS state, tq_internal.reason_resolved_name(r.reason_resolved) AS reason,
		(r.run_id + 1)::int AS runs, r.worker_group || '/' || r.worker_id AS worker, r.error
	FROM tq_internal.failure f
		JOIN tq_internal.task t ON t.id = f.task
		JOIN tq_internal.queue q ON q.id = f.queue
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.named_run r WHERE r.task = f.task ORDER BY r.run_id DESC LIMIT 1) AS r;
COMMENT ON VIEW tq.failure_overview IS 'tasks that ended without success: failed or exception';
COMMENT ON COLUMN tq.failure_overview.resolved IS 'when the task ended';
COMMENT ON COLUMN tq.failure_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.failure_overview.name IS 'metadata.name';
COMMENT ON COLUMN tq.failure_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.failure_overview.state IS 'failed or exception';
COMMENT ON COLUMN tq.failure_overview.reason IS 'why the last run was resolved';
COMMENT ON COLUMN tq.failure_overview.runs IS 'how many runs the task has had';
COMMENT ON COLUMN tq.failure_overview.worker IS 'group and id of the worker that had the last run';
COMMENT ON COLUMN tq.failure_overview.error IS 'error that it reported';

CREATE VIEW tq.dead_letter_overview AS
	SELECT l.failed_at, l.task_id, l.definition #>> '{metadata,name}' AS name, q.task_queue_id,
		tq_internal.reason_resolved_name(l.reason) AS reason, jsonb_array_length(l.runs) AS runs, l.error
	FROM tq_internal.dead_letter l JOIN tq_internal.queue q ON q.id = l.queue;
COMMENT ON VIEW tq.dead_letter_overview IS 'dead letters of all queues; tq.list_dead_letters() has their definitions and runs';
COMMENT ON COLUMN tq.dead_letter_overview.failed_at IS 'when the task failed for good';
COMMENT ON COLUMN tq.dead_letter_overview.task_id IS 'id of the task';
COMMENT ON COLUMN tq.dead_letter_overview.name IS 'metadata.name';
COMMENT ON COLUMN tq.dead_letter_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.dead_letter_overview.reason IS 'why the last run was resolved';
COMMENT ON COLUMN tq.dead_letter_overview.runs IS 'how many runs the task had';
COMMENT ON COLUMN tq.dead_letter_overview.error IS 'error that the last worker reported';

CREATE VIEW tq.group_overview AS
	SELECT g.task_group_id, p.outcome, p.tasks, p.unscheduled, p.delayed, p.pending, p.running, p.completed, p.failed, p.exception,
		p.first_created, p.last_resolved, g.sealed
	FROM tq_internal.task_group g CROSS JOIN LATERAL tq_internal.group_progress(g.task_group_id) AS p;
COMMENT ON VIEW tq.group_overview IS 'task groups of more than one task, or sealed, and how far they are';
COMMENT ON COLUMN tq.group_overview.task_group_id IS 'id of the group';
COMMENT ON COLUMN tq.group_overview.outcome IS 'outcome of the group, as in group_progress()';
COMMENT ON COLUMN tq.group_overview.tasks IS 'tasks of the group';
COMMENT ON COLUMN tq.group_overview.unscheduled IS 'tasks that wait for others, or for schedule_task()';
COMMENT ON COLUMN tq.group_overview.delayed IS 'pending tasks that are delayed';
COMMENT ON COLUMN tq.group_overview.pending IS 'tasks that can be claimed';
COMMENT ON COLUMN tq.group_overview.running IS 'tasks that a worker has';
COMMENT ON COLUMN tq.group_overview.completed IS 'completed tasks';
COMMENT ON COLUMN tq.group_overview.failed IS 'failed tasks';
COMMENT ON COLUMN tq.group_overview.exception IS 'tasks that ended as an exception';
COMMENT ON COLUMN tq.group_overview.first_created IS 'when the first task was created';
COMMENT ON COLUMN tq.group_overview.last_resolved IS 'when the last task was resolved';
COMMENT ON COLUMN tq.group_overview.sealed IS 'when the group was sealed; NULL: tasks can join it';

CREATE VIEW tq.callback_overview AS
	SELECT c.task_group_id, c.task_id, c.definition ->> 'taskQueueId' AS task_queue_id, c.definition #>> '{metadata,name}' AS name,
		pg_get_userbyid(c.role)::text AS role, c.client, c.registered, p.failures, p.due AS next_attempt, p.error
	FROM tq_internal.group_callback c LEFT JOIN tq_internal.postponed p ON p.task = c.id AND p.step = 'callback';
COMMENT ON VIEW tq.callback_overview IS 'tasks that on_group_resolved() will create, and why one could not be created';
COMMENT ON COLUMN tq.callback_overview.task_group_id IS 'group whose end they wait for';
COMMENT ON COLUMN tq.callback_overview.task_id IS 'id that the task will have';
COMMENT ON COLUMN tq.callback_overview.task_queue_id IS 'queue of the task';
COMMENT ON COLUMN tq.callback_overview.name IS 'metadata.name of the task';
COMMENT ON COLUMN tq.callback_overview.role IS 'role that called on_group_resolved(), whose scopes count when the task is created';
COMMENT ON COLUMN tq.callback_overview.client IS 'clientId of the credentials that it had assumed: only their scopes counted, at the call; NULL: none';
COMMENT ON COLUMN tq.callback_overview.registered IS 'when that was';
COMMENT ON COLUMN tq.callback_overview.failures IS 'how often the task could not be created; NULL: never';
COMMENT ON COLUMN tq.callback_overview.next_attempt IS 'when that is tried again';
COMMENT ON COLUMN tq.callback_overview.error IS 'why, the last time';

CREATE VIEW tq.dependency_overview AS
	SELECT t.task_id, d.required_task_id, r.metadata ->> 'name' AS required_name,
		CASE WHEN r.id IS NOT NULL THEN COALESCE(f.state, 'pending') END AS state,
		COALESCE(f.state = 'completed' OR (t.all_resolved AND f.state IN ('failed', 'exception'))
			OR (f.state IN ('failed', 'exception') AND y.policy IS NOT NULL AND tq_internal.is_tolerated(y.policy, f.reason_resolved)), false) AS met
	FROM tq_internal.task t
		CROSS JOIN LATERAL unnest(t.dependencies) AS d (required_task_id)
		LEFT JOIN tq_internal.task r ON r.task_id = d.required_task_id
		LEFT JOIN tq_internal.policy y ON y.id = r.policy
		LEFT JOIN LATERAL (SELECT 'unscheduled' AS state, NULL::smallint AS reason_resolved FROM tq_internal.unscheduled u WHERE u.task = r.id
			UNION ALL (SELECT tq_internal.state_name(l.state), l.reason_resolved FROM tq_internal.run l WHERE l.task = r.id
				AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = r.id)
				AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = r.id AND p.seq <> p.task)
				AND NOT EXISTS (SELECT FROM tq_internal.delayed p WHERE p.task = r.id)
				ORDER BY l.run_id DESC LIMIT 1)) AS f ON true
	WHERE t.dependencies IS NOT NULL;
COMMENT ON VIEW tq.dependency_overview IS 'what each task depends on';
COMMENT ON COLUMN tq.dependency_overview.task_id IS 'task that depends on another';
COMMENT ON COLUMN tq.dependency_overview.required_task_id IS 'task that it depends on';
COMMENT ON COLUMN tq.dependency_overview.required_name IS 'metadata.name of that task';
COMMENT ON COLUMN tq.dependency_overview.state IS 'state of that task; NULL: it was deleted';
COMMENT ON COLUMN tq.dependency_overview.met IS 'whether its present state meets the dependency';

CREATE VIEW tq.queue_stats AS
	SELECT q.task_queue_id, s.source,
		COALESCE(c.pending, 0) AS pending, COALESCE(c.delayed, 0) AS delayed, COALESCE(c.unscheduled, 0) AS blocked,
		COALESCE(c.running, 0) AS running, COALESCE(i.waiters, 0) AS waiters, tq_internal.clock_now() - p.oldest AS oldest_pending,
		COALESCE(w.workers, 0) AS workers, COALESCE(w.quarantined, 0) AS workers_quarantined, COALESCE(c.running, 0) AS workers_running,
		greatest(COALESCE(w.workers, 0) - COALESCE(w.quarantined, 0) - COALESCE(c.running, 0), 0) AS workers_idle,
		COALESCE(c.created, 0) AS created, COALESCE(c.claimed, 0) AS claimed, COALESCE(c.completed, 0) AS completed,
		COALESCE(c.failed, 0) AS failed, COALESCE(c.exception, 0) AS exception, COALESCE(c.reasons, '{}') AS reasons,
		COALESCE(c.retried, 0) AS retried, COALESCE(c.expired_claims, 0) AS expired_claims,
		COALESCE(c.created_per_s, 0) AS created_per_s, COALESCE(c.claimed_per_s, 0) AS claimed_per_s, COALESCE(c.ended_per_s, 0) AS ended_per_s,
		c.wait_p50, c.wait_p95, c.wait_p99, c.run_p50, c.run_p95, c.run_p99,
		COALESCE(c.wait_histogram, '{}') AS wait_histogram, COALESCE(c.run_histogram, '{}') AS run_histogram,
		s.since, q.last_date_active, p.oldest,
		COALESCE((g.settings -> 'paused')::bool, false) AS paused, COALESCE(g.settings - '{paused,claimTimeout,retainCompleted,retainFailed,policy}'::text[], '{}') AS limits
	FROM tq_internal.queue q
		LEFT JOIN tq_internal.queue_settings g ON g.queue = q.id
		CROSS JOIN tq_internal.count_state() AS s
		LEFT JOIN tq_internal.queue_counters() AS c ON c.queue = q.id
		CROSS JOIN LATERAL (SELECT min(f.scheduled) AS oldest FROM generate_series(1, 7) AS y (priority) CROSS JOIN LATERAL (
			SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = y.priority ORDER BY p.seq LIMIT 1) AS f) AS p
		LEFT JOIN (SELECT queue, count(*) AS workers, count(*) FILTER (WHERE quarantine_until > tq_internal.clock_now()) AS quarantined
			FROM tq_internal.worker WHERE expires > tq_internal.clock_now() GROUP BY queue) AS w ON w.queue = q.id
		LEFT JOIN (SELECT queue, count(*) AS waiters FROM tq_internal.waiters() GROUP BY queue) AS i ON i.queue = q.id;
COMMENT ON VIEW tq.queue_stats IS 'queues: how much is in them, what has happened since the last reset, how long runs wait and take; from counters in shared memory';
COMMENT ON COLUMN tq.queue_stats.task_queue_id IS 'name of the queue';
COMMENT ON COLUMN tq.queue_stats.source IS 'memory: the numbers of tasks are from counters; rebuilding: the maintenance worker is about to count for them, and rows are counted until then; tables: rows are counted, because tq is not preloaded, this is a standby, or tq.counted_queues is too low';
COMMENT ON COLUMN tq.queue_stats.pending IS 'runs that can be claimed';
COMMENT ON COLUMN tq.queue_stats.delayed IS 'runs that can be claimed later';
COMMENT ON COLUMN tq.queue_stats.blocked IS 'unscheduled tasks: they wait for others, or to be scheduled';
COMMENT ON COLUMN tq.queue_stats.running IS 'runs that a worker has';
COMMENT ON COLUMN tq.queue_stats.waiters IS 'sessions that wait for work';
COMMENT ON COLUMN tq.queue_stats.oldest_pending IS 'how long ago the first of the pending runs was scheduled';
COMMENT ON COLUMN tq.queue_stats.workers IS 'workers that were seen and have not expired';
COMMENT ON COLUMN tq.queue_stats.workers_quarantined IS 'those in quarantine';
COMMENT ON COLUMN tq.queue_stats.workers_running IS 'as running: a worker that has several runs counts for each';
COMMENT ON COLUMN tq.queue_stats.workers_idle IS 'workers that are neither, but not less than 0';
COMMENT ON COLUMN tq.queue_stats.created IS 'tasks created';
COMMENT ON COLUMN tq.queue_stats.claimed IS 'runs claimed';
COMMENT ON COLUMN tq.queue_stats.completed IS 'runs completed, the skipped ones included';
COMMENT ON COLUMN tq.queue_stats.failed IS 'runs failed, those that were retried included';
COMMENT ON COLUMN tq.queue_stats.exception IS 'runs that ended as exception, those that were retried included';
COMMENT ON COLUMN tq.queue_stats.reasons IS 'how many runs failed or ended as exception, by reason';
COMMENT ON COLUMN tq.queue_stats.retried IS 'runs that were followed by a retry';
COMMENT ON COLUMN tq.queue_stats.expired_claims IS 'claims that expired';
COMMENT ON COLUMN tq.queue_stats.created_per_s IS 'tasks created per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.claimed_per_s IS 'runs claimed per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.ended_per_s IS 'runs ended per second in the last minute';
COMMENT ON COLUMN tq.queue_stats.wait_p50 IS 'median of the times from claimable to claimed';
COMMENT ON COLUMN tq.queue_stats.wait_p95 IS '95 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.wait_p99 IS '99 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.run_p50 IS 'median of the times from claimed to resolved';
COMMENT ON COLUMN tq.queue_stats.run_p95 IS '95 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.run_p99 IS '99 % of these times are not longer';
COMMENT ON COLUMN tq.queue_stats.wait_histogram IS 'how many runs waited how long: a key is where a bucket ends, in milliseconds; each doubling has four buckets, and empty ones are left out';
COMMENT ON COLUMN tq.queue_stats.run_histogram IS 'the same for the times from claimed to resolved';
COMMENT ON COLUMN tq.queue_stats.since IS 'since when totals and histograms are counted; NULL: nothing was counted yet';
COMMENT ON COLUMN tq.queue_stats.last_date_active IS 'when a worker last asked for work; recorded with a delay';
COMMENT ON COLUMN tq.queue_stats.oldest IS 'since when the first of the pending runs has been scheduled';
COMMENT ON COLUMN tq.queue_stats.paused IS 'whether nothing is handed out until resume_queue()';
COMMENT ON COLUMN tq.queue_stats.limits IS 'the limits that it was set to';

CREATE VIEW tq.queue_overview AS
	SELECT s.task_queue_id, s.pending, s.delayed, s.running, s.oldest,
		s.workers, s.workers_quarantined AS quarantined, s.waiters, s.last_date_active, s.paused, s.limits
	FROM tq.queue_stats s;
COMMENT ON VIEW tq.queue_overview IS 'queues: what is in them, and who works on it';
COMMENT ON COLUMN tq.queue_overview.task_queue_id IS 'name of the queue';
COMMENT ON COLUMN tq.queue_overview.pending IS 'runs that can be claimed';
COMMENT ON COLUMN tq.queue_overview.delayed IS 'runs that can be claimed later';
COMMENT ON COLUMN tq.queue_overview.running IS 'runs that a worker has';
COMMENT ON COLUMN tq.queue_overview.oldest IS 'since when the first of the pending runs has been scheduled';
COMMENT ON COLUMN tq.queue_overview.workers IS 'workers that were seen and have not expired';
COMMENT ON COLUMN tq.queue_overview.quarantined IS 'those in quarantine';
COMMENT ON COLUMN tq.queue_overview.waiters IS 'sessions that wait for work';
COMMENT ON COLUMN tq.queue_overview.last_date_active IS 'when a worker last asked for work; recorded with a delay';
COMMENT ON COLUMN tq.queue_overview.paused IS 'whether nothing is handed out until resume_queue()';
COMMENT ON COLUMN tq.queue_overview.limits IS 'the limits that it was set to';

CREATE VIEW tq.worker_overview AS
	SELECT q.task_queue_id, w.worker_group, w.worker_id,
		CASE WHEN w.quarantine_until > tq_internal.clock_now() THEN 'quarantined'
			WHEN c.running > 0 THEN 'running' ELSE 'idle' END AS state,
		COALESCE(c.running, 0) AS running, w.last_date_active, w.first_claim,
		CASE WHEN w.quarantine_until > tq_internal.clock_now() THEN w.quarantine_until END AS quarantine_until
	FROM tq_internal.worker w JOIN tq_internal.queue q ON q.id = w.queue
		LEFT JOIN (SELECT worker, count(*) AS running FROM tq_internal.running_run GROUP BY worker) AS c ON c.worker = w.id
	WHERE w.expires > tq_internal.clock_now() OR w.quarantine_until > tq_internal.clock_now() OR c.running > 0;
COMMENT ON VIEW tq.worker_overview IS 'workers that were seen and have not expired, are in quarantine or have a run';
COMMENT ON COLUMN tq.worker_overview.task_queue_id IS 'queue of the worker';
COMMENT ON COLUMN tq.worker_overview.worker_group IS 'group of the worker';
COMMENT ON COLUMN tq.worker_overview.worker_id IS 'id of the worker';
COMMENT ON COLUMN tq.worker_overview.state IS 'quarantined, running or idle';
COMMENT ON COLUMN tq.worker_overview.running IS 'runs that it has';
COMMENT ON COLUMN tq.worker_overview.last_date_active IS 'when it last asked for work; recorded with a delay';
COMMENT ON COLUMN tq.worker_overview.first_claim IS 'when it was first seen';
COMMENT ON COLUMN tq.worker_overview.quarantine_until IS 'until when it is in quarantine; NULL: it is not';

CREATE VIEW tq.waiter_overview AS
	SELECT w.pid, CASE WHEN w.queue IS NULL THEN 'a task' ELSE COALESCE(q.task_queue_id, 'a new queue') END AS waits_for,
		a.query_start AS since, a.application_name, a.client_addr
	FROM tq_internal.waiters() w
		LEFT JOIN tq_internal.queue q ON q.id = w.queue
		LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.pid;
COMMENT ON VIEW tq.waiter_overview IS 'sessions that wait in claim_work(), wait_for_work(), wait_for_task() or wait_for_task_group()';
COMMENT ON COLUMN tq.waiter_overview.pid IS 'process of the session';
COMMENT ON COLUMN tq.waiter_overview.waits_for IS 'queue, or a task; a session that waits for several queues has a row for each, and for a pattern one for new queues';
COMMENT ON COLUMN tq.waiter_overview.since IS 'since when';
COMMENT ON COLUMN tq.waiter_overview.application_name IS 'name that the client gave to the session';
COMMENT ON COLUMN tq.waiter_overview.client_addr IS 'address of the client; NULL: a local one';

CREATE VIEW tq.maintenance_overview AS
	SELECT a.*, (SELECT count(*) FROM tq_internal.postponed p WHERE p.step = a.step) AS postponed
	FROM tq_internal.maintenance_activity() a;
COMMENT ON VIEW tq.maintenance_overview IS 'the maintenance worker of this database: its state, and for each step batches and tasks done since it was started, how late, failures, and tasks that are postponed';
COMMENT ON COLUMN tq.maintenance_overview.step IS 'a step of maintenance; turn: its cycles as a whole';
COMMENT ON COLUMN tq.maintenance_overview.state IS 'of the turn: running, off, unused or absent; of a step: ok or failing';
COMMENT ON COLUMN tq.maintenance_overview.batches IS 'batches done since the maintenance worker was started';
COMMENT ON COLUMN tq.maintenance_overview.tasks IS 'tasks changed in them';
COMMENT ON COLUMN tq.maintenance_overview.last_at IS 'when the last batch was done';
COMMENT ON COLUMN tq.maintenance_overview.last_late IS 'how late it was';
COMMENT ON COLUMN tq.maintenance_overview.max_late IS 'how late a batch has been at most';
COMMENT ON COLUMN tq.maintenance_overview.max_late_at IS 'when that was';
COMMENT ON COLUMN tq.maintenance_overview.failures IS 'how often the step has failed';
COMMENT ON COLUMN tq.maintenance_overview.failed_at IS 'when it failed last';
COMMENT ON COLUMN tq.maintenance_overview.error IS 'the last error';
COMMENT ON COLUMN tq.maintenance_overview.postponed IS 'tasks that the step is to try again later';

CREATE VIEW tq.postponed_overview AS
	SELECT COALESCE(t.task_id, c.task_id) AS task_id, p.step, p.failures, p.since, p.due AS next_attempt, p.error
	FROM tq_internal.postponed p LEFT JOIN tq_internal.task t ON t.id = p.task LEFT JOIN tq_internal.group_callback c ON c.id = p.task;
COMMENT ON VIEW tq.postponed_overview IS 'tasks for which a step of maintenance failed: how often, when it is retried, and the last error';
COMMENT ON COLUMN tq.postponed_overview.task_id IS 'id of the task; NULL: it was deleted';
COMMENT ON COLUMN tq.postponed_overview.step IS 'step of maintenance that failed for it';
COMMENT ON COLUMN tq.postponed_overview.failures IS 'how often';
COMMENT ON COLUMN tq.postponed_overview.since IS 'since when';
COMMENT ON COLUMN tq.postponed_overview.next_attempt IS 'when the step is tried again';
COMMENT ON COLUMN tq.postponed_overview.error IS 'the last error';

CREATE VIEW tq.binding_overview AS
	SELECT channel, tq_internal.exchange_name(exchange) AS exchange, pattern FROM tq_internal.binding
	UNION ALL
	SELECT 'tq_' || replace(tq_internal.exchange_name(e), '-', '_'), tq_internal.exchange_name(e), '#'
	FROM generate_series(1, 12) AS e WHERE e NOT IN (SELECT exchange FROM tq_internal.disabled_channel);
COMMENT ON VIEW tq.binding_overview IS 'every channel that is bound to an exchange, including the default channels';
COMMENT ON COLUMN tq.binding_overview.channel IS 'channel of NOTIFY';
COMMENT ON COLUMN tq.binding_overview.exchange IS 'exchange whose messages it gets';
COMMENT ON COLUMN tq.binding_overview.pattern IS 'pattern of their routing keys';

CREATE VIEW tq.cron_overview AS
	SELECT c.name, pg_get_userbyid(c.role)::text AS owner, c.schedule, tq_internal.cron_time_zone() AS time_zone,
		c.task_queue_id, c.payload, c.options, c.overlap,
		CASE WHEN c.paused THEN false ELSE j.active END AS active,
		c.last_scheduled, c.last_fired, c.last_task AS last_task_id, t.state AS last_state, c.last_skipped,
		j.job_id, j.status AS log_status, j.message AS log_message, j.started AS log_started, j.finished AS log_finished
	FROM tq_internal.cron c
		LEFT JOIN tq_internal.cron_jobs() j ON j.name = c.name AND j.role = pg_get_userbyid(c.role)
		LEFT JOIN LATERAL (SELECT o.state FROM tq.task_overview o WHERE o.task_id = c.last_task) t ON true;
COMMENT ON VIEW tq.cron_overview IS 'recurring tasks: when they fire, what the last firing has left, and what pg_cron''s log says';
COMMENT ON COLUMN tq.cron_overview.name IS 'name of the recurring task';
COMMENT ON COLUMN tq.cron_overview.owner IS 'role with whose rights it creates tasks';
COMMENT ON COLUMN tq.cron_overview.schedule IS 'when it fires, as pg_cron reads it';
COMMENT ON COLUMN tq.cron_overview.time_zone IS 'time zone of the schedule; NULL: pg_cron is not preloaded';
COMMENT ON COLUMN tq.cron_overview.task_queue_id IS 'queue of its tasks';
COMMENT ON COLUMN tq.cron_overview.payload IS 'payload of its tasks, with fields that are replaced';
COMMENT ON COLUMN tq.cron_overview.options IS 'further arguments of enqueue';
COMMENT ON COLUMN tq.cron_overview.overlap IS 'what a firing does while the last task is unresolved: allow, skip or replace';
COMMENT ON COLUMN tq.cron_overview.active IS 'whether it fires; NULL: it has no job in this database';
COMMENT ON COLUMN tq.cron_overview.last_scheduled IS 'minute, or second, for which it has fired last';
COMMENT ON COLUMN tq.cron_overview.last_fired IS 'when it has created a task last';
COMMENT ON COLUMN tq.cron_overview.last_task_id IS 'that task';
COMMENT ON COLUMN tq.cron_overview.last_state IS 'state of that task; NULL: it was deleted';
COMMENT ON COLUMN tq.cron_overview.last_skipped IS 'when a firing was skipped last, because the task before it was unresolved';
COMMENT ON COLUMN tq.cron_overview.job_id IS 'its job in pg_cron';
COMMENT ON COLUMN tq.cron_overview.log_status IS 'status of the last entry of pg_cron''s log about the job: succeeded or failed, or how far it is';
COMMENT ON COLUMN tq.cron_overview.log_message IS 'message of that entry: an error, if it has failed';
COMMENT ON COLUMN tq.cron_overview.log_started IS 'when that run of the job began';
COMMENT ON COLUMN tq.cron_overview.log_finished IS 'when it ended';

CREATE VIEW tq.subscription_overview AS
	SELECT s.name, array_agg(tq_internal.exchange_name(b.exchange) || ' ' || b.pattern ORDER BY b.exchange, b.pattern) AS bindings,
		s.acked_id, t.last_id, s.lost_before, s.created, s.acked_at,
		(SELECT k.published FROM tq_internal.tick k WHERE k.last_id > s.acked_id AND k.messages > 0 ORDER BY k.last_id LIMIT 1) AS oldest_unread, s.creator
	FROM tq_internal.subscription s
		JOIN tq_internal.subscription_binding b ON b.name = s.name
		CROSS JOIN (SELECT tq_internal.published_id() AS last_id) AS t
	GROUP BY s.name, t.last_id;
COMMENT ON VIEW tq.subscription_overview IS 'durable subscriptions: up to which id each has acknowledged, and what it has lost (lost_before)';
COMMENT ON COLUMN tq.subscription_overview.name IS 'name of the subscription';
COMMENT ON COLUMN tq.subscription_overview.bindings IS 'exchanges and patterns';
COMMENT ON COLUMN tq.subscription_overview.acked_id IS 'messages up to this id are acknowledged';
COMMENT ON COLUMN tq.subscription_overview.last_id IS 'id of the last message that was published';
COMMENT ON COLUMN tq.subscription_overview.lost_before IS 'messages with lower ids were dropped before they were acknowledged; NULL: none';
COMMENT ON COLUMN tq.subscription_overview.created IS 'when it was made';
COMMENT ON COLUMN tq.subscription_overview.acked_at IS 'when it last acknowledged';
COMMENT ON COLUMN tq.subscription_overview.oldest_unread IS 'when the first message that is not acknowledged was published';
COMMENT ON COLUMN tq.subscription_overview.creator IS 'role that had logged in when it was made, for tq.max_subscriptions';

CREATE VIEW tq.audit AS
	SELECT at, id, session_role, role, client_ids, function, task_ids, run_ids, arguments FROM tq_internal.audit;
COMMENT ON VIEW tq.audit IS 'audit trail: which role made which call, as tq.audit says, kept for tq.audit_retention';
COMMENT ON COLUMN tq.audit.at IS 'when the call ended';
COMMENT ON COLUMN tq.audit.id IS 'order of writing';
COMMENT ON COLUMN tq.audit.session_role IS 'role that had logged in, or that of SET SESSION AUTHORIZATION';
COMMENT ON COLUMN tq.audit.role IS 'effective role, whose scopes counted: that of SET ROLE, or the owner of a SECURITY DEFINER function';
COMMENT ON COLUMN tq.audit.client_ids IS 'clientId of the credentials of claims that the call used, given or assumed; NULL: none';
COMMENT ON COLUMN tq.audit.function IS 'function of schema tq that was called';
COMMENT ON COLUMN tq.audit.task_ids IS 'tasks that the call created, claimed or changed, at most 1000 in a row; NULL: it names none, but a group, a queue or something else';
COMMENT ON COLUMN tq.audit.run_ids IS 'the run of each of them; NULL: the call is about no run in particular';
COMMENT ON COLUMN tq.audit.arguments IS 'the other arguments that say what it was about, by name: group, queue, worker, channel, role and scopes of a grant; times in UTC, intervals in seconds';

CREATE VIEW tq_internal.claimable_task AS
	SELECT t.task_id, p.*
	FROM tq_internal.task t JOIN tq_internal.pending p ON p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id
	UNION ALL
	SELECT t.task_id, p.*
	FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task
	WHERE p.seq <> p.task;
COMMENT ON VIEW tq_internal.claimable_task IS 'tasks that can be claimed, with their place in the queue';

CREATE FUNCTION tq_internal.shorten(given text, size int) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN length(s) > size THEN left(s, size - 3) || '...' ELSE s END
		FROM btrim(regexp_replace(given, '\s+', ' ', 'g')) AS s;
	END;
COMMENT ON FUNCTION tq_internal.shorten(text, int) IS 'a text in one line of at most so many characters, for why() and health()';

CREATE FUNCTION tq_internal.local_time(given timestamptz) RETURNS text
	LANGUAGE sql STABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT to_char(given, 'YYYY-MM-DD HH24:MI:SS');
	END;
COMMENT ON FUNCTION tq_internal.local_time(timestamptz) IS 'a time in 19 characters, in the time zone of the session, for why()';

CREATE FUNCTION tq_internal.may_see_statements(role oid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_may_see_statements' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.may_see_statements(oid) IS 'whether the caller of why() may see the statements of a role, as pg_stat_activity decides';

CREATE VIEW tq_internal.lock_holder AS
	SELECT t.task_id, l.pid, a.xact_start AS since, CASE WHEN tq_internal.may_see_statements(a.usesysid) THEN a.query END AS query
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT u.xmax FROM tq_internal.unscheduled u WHERE u.task = t.id
			UNION ALL SELECT p.xmax FROM tq_internal.pending p WHERE p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id
			UNION ALL SELECT p.xmax FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task
			UNION ALL SELECT d.xmax FROM tq_internal.delayed d WHERE d.task = t.id
			UNION ALL SELECT r.xmax FROM tq_internal.run r WHERE r.task = t.id) AS x
		JOIN pg_catalog.pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = x.xmax AND l.granted AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()
		LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid;
COMMENT ON VIEW tq_internal.lock_holder IS 'sessions whose open transactions have locked or changed a task; query is NULL if the caller may not see it';

CREATE FUNCTION tq_internal.rate_until(queue int) RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tq_rate_until' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.rate_until(int) IS 'until when the claims of the interval of a queue are used up; NULL: they are not, or it is not known';

CREATE VIEW tq_internal.limited_task AS
	SELECT p.task_id, p.queue, q.task_queue_id, s.settings
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue JOIN tq_internal.queue_settings s ON s.queue = p.queue;
COMMENT ON VIEW tq_internal.limited_task IS 'tasks that can be claimed, of queues with settings';

-- Why a task is where it is: each branch finds one reason, and what to do.  In
-- psql the rows have at most 120 columns: a reason has up to 14 characters, a
-- detail 50, an advice 49.
CREATE VIEW tq_internal.task_reason AS
	SELECT c.task_id, 10 AS place, 'unscheduled' AS reason,
		CASE WHEN o.required_task_id = c.task_id THEN 'it depends on itself, so it waits for a call'
			WHEN o.state IS NULL THEN format('it depends on %s, deleted', o.required_task_id)
			ELSE format('it depends on %s: %s', COALESCE(tq_internal.shorten(o.required_name, 22), o.required_task_id::text), o.state) END AS detail,
		CASE WHEN o.required_task_id = c.task_id OR o.state IS NULL THEN format('SELECT tq.schedule_task(%L)', c.task_id)
			WHEN o.state IN ('failed', 'exception') THEN format('SELECT tq.rerun_task(%L)', o.required_task_id)
			ELSE format('SELECT * FROM tq.why(%L)', o.required_task_id) END AS advice
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
		JOIN tq.dependency_overview o ON o.task_id = c.task_id
	WHERE NOT o.met
	UNION ALL
	SELECT c.task_id, 11, 'unscheduled', 'it can go on without what failed', format('SELECT tq.schedule_task(%L)', c.task_id)
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
	WHERE EXISTS (SELECT FROM tq.dependency_overview o WHERE o.task_id = c.task_id AND NOT o.met AND o.state IN ('failed', 'exception'))
	UNION ALL
	SELECT c.task_id, 12, 'unscheduled', 'each task that it depends on is resolved', format('SELECT tq.schedule_task(%L)', c.task_id)
	FROM tq_internal.unscheduled u JOIN tq_internal.task c ON c.id = u.task
	WHERE NOT EXISTS (SELECT FROM tq.dependency_overview o WHERE o.task_id = c.task_id AND NOT o.met)
	UNION ALL
	SELECT t.task_id, 20, 'delayed', format('it cannot be claimed before %s', tq_internal.local_time(d.visible_at)), 'wait until then'
	FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task
	WHERE d.visible_at < 'infinity'
	UNION ALL
	SELECT t.task_id, 21, 'serial key', format('behind %s of key %s', f.task_id, tq_internal.shorten(m.key, 12)), format('SELECT * FROM tq.why(%L)', f.task_id)
	FROM tq_internal.task t JOIN tq_internal.gate_member m ON m.task = t.id AND m.kind = 1 AND m.state = 1
		CROSS JOIN LATERAL (SELECT o.task FROM tq_internal.gate_member o	-- 0: admitted, 1: waits
			WHERE o.queue = m.queue AND o.kind = 1 AND o.key = m.key AND o.state IN (0, 1) AND (o.state = 0 OR o.task < m.task)
			ORDER BY o.state, o.priority DESC, o.task LIMIT 1) AS o
		JOIN tq_internal.task f ON f.id = o.task
	UNION ALL
	SELECT t.task_id, 22, 'key at limit', format('%s run or are next: key %s', a.n, tq_internal.shorten(m.key, 18)), 'wait, or raise its limits by tq.set_queue()'
	FROM tq_internal.task t JOIN tq_internal.gate_member m ON m.task = t.id AND m.kind = 2 AND m.state IN (1, 4)
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM tq_internal.gate_member o
			WHERE o.queue = m.queue AND o.kind = 2 AND o.key = m.key AND o.state = 0) AS a
	UNION ALL
	SELECT p.task_id, 23, 'paused', format('queue %s is paused', tq_internal.shorten(p.task_queue_id, 33)), format('SELECT tq.resume_queue(%L)', tq_internal.shorten(p.task_queue_id, 23))
	FROM tq_internal.limited_task p
	WHERE (p.settings -> 'paused')::bool
	UNION ALL
	SELECT p.task_id, 24, 'queue at limit', format('%s run in %s', c.running, tq_internal.shorten(p.task_queue_id, 25)), 'wait, or raise concurrentLimit'
	FROM tq_internal.limited_task p
		CROSS JOIN LATERAL (SELECT c.running FROM tq_internal.queue_counters() AS c WHERE c.queue = p.queue OFFSET 0) AS c
	WHERE c.running >= nullif((p.settings -> 'concurrentLimit')::int, 0)
	UNION ALL
	SELECT p.task_id, 25, 'rate used up', format('no claim before %s', tq_internal.local_time(r.until)), 'wait, or raise rateCount'
	FROM tq_internal.limited_task p CROSS JOIN LATERAL (SELECT tq_internal.rate_until(p.queue) AS until) AS r
	WHERE r.until > tq_internal.clock_now()
	UNION ALL
	SELECT h.task_id, 30, 'locked', format('by process %s', h.pid) || COALESCE(' since ' || tq_internal.local_time(h.since), ''),
		format('wait, or pg_terminate_backend(%s)', h.pid)
	FROM tq_internal.lock_holder h
	UNION ALL
	SELECT h.task_id, 31, 'locked', 'query: ' || tq_internal.shorten(h.query, 43), 'wait for the end of its transaction'
	FROM tq_internal.lock_holder h
	WHERE h.query <> ''
	UNION ALL
	SELECT p.task_id, 40, 'no worker', COALESCE('no worker in its queue since ' || tq_internal.local_time(q.last_date_active), 'no worker has asked its queue for work'),
		format('start one, or correct queue %s', tq_internal.shorten(q.task_queue_id, 21))
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue
	WHERE NOT EXISTS (SELECT FROM tq_internal.waiters() w WHERE w.queue = p.queue)
		AND NOT EXISTS (SELECT FROM tq_internal.worker w WHERE w.queue = p.queue AND w.last_date_active > tq_internal.clock_now() - interval '1 hour')
	UNION ALL
	SELECT p.task_id, 50, 'quarantine', format('workers: %s; the first until %s', w.workers, tq_internal.local_time(w.until)),
		'start another, or end it by quarantine_worker()'
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue
		CROSS JOIN LATERAL (SELECT count(*) AS workers, min(w.quarantine_until) AS until,
				bool_and(w.quarantine_until IS NOT NULL AND w.quarantine_until > tq_internal.clock_now()) AS barred
			FROM tq_internal.worker w WHERE w.queue = p.queue AND w.expires > tq_internal.clock_now()) AS w
	WHERE w.barred
	UNION ALL
	SELECT p.task_id, 60, CASE WHEN b.n = 0 THEN 'next' ELSE 'behind others' END,
		CASE WHEN b.n = 0 THEN format('it is the first of queue %s', tq_internal.shorten(q.task_queue_id, 25))
			ELSE format('%s%s before it in %s', CASE WHEN b.n > 10000 THEN 'more than ' ELSE '' END, least(b.n, 10000), tq_internal.shorten(q.task_queue_id, 21)) END,
		CASE WHEN b.n = 0 THEN 'wait for the next claim' ELSE 'more workers, or tq.change_task_priority()' END
	FROM tq_internal.claimable_task p JOIN tq_internal.queue q ON q.id = p.queue
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM tq_internal.pending o
			WHERE o.queue = p.queue AND (o.priority > p.priority OR (o.priority = p.priority AND o.seq < p.seq)) LIMIT 10001) AS o) AS b
	UNION ALL
	SELECT t.task_id, 70, CASE WHEN r.taken_until > tq_internal.clock_now() THEN 'claimed' ELSE 'claim expired' END,
		format('by %s until %s', tq_internal.shorten(r.worker_group || '/' || r.worker_id, 21), tq_internal.local_time(r.taken_until)),
		CASE WHEN r.taken_until > tq_internal.clock_now() THEN format('wait for its report on run %s', r.run_id)
			ELSE 'maintenance is late: see tq.health()' END
	FROM tq_internal.task t JOIN tq_internal.named_run r ON r.task = t.id
	WHERE r.state = 2
	UNION ALL
	SELECT t.task_id, 80, 'past deadline', format('its deadline was %s', tq_internal.local_time(COALESCE(t.effective_deadline, t.deadline))),
		'maintenance is late: see tq.health()'
	FROM tq_internal.task t
	WHERE COALESCE(t.effective_deadline, t.deadline) <= tq_internal.clock_now()
		AND (EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
			OR EXISTS (SELECT FROM tq_internal.pending p WHERE p.queue = t.queue AND p.priority = t.priority AND p.seq = t.id)
			OR EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
			OR EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id)
			OR EXISTS (SELECT FROM tq_internal.run r WHERE r.task = t.id AND r.state = 2))
	UNION ALL
	SELECT t.task_id, 90, 'postponed', format('step %s has failed %s times', p.step, p.failures),
		'it is tried again at ' || tq_internal.local_time(p.due)
	FROM tq_internal.postponed p JOIN tq_internal.task t ON t.id = p.task
	UNION ALL
	SELECT t.task_id, 91, 'postponed', 'error: ' || tq_internal.shorten(p.error, 43), 'correct the cause'
	FROM tq_internal.postponed p JOIN tq_internal.task t ON t.id = p.task
	UNION ALL
	SELECT t.task_id, 100, tq_internal.state_name(r.state),
		format('run %s: %s, %s', r.run_id, tq_internal.reason_resolved_name(r.reason_resolved), tq_internal.local_time(r.resolved)),
		CASE WHEN r.state = 3 THEN 'nothing: it is over'
			WHEN COALESCE(t.effective_deadline, t.deadline) < tq_internal.clock_now() THEN 'call tq.rerun_task() with a new deadline'
			ELSE format('SELECT tq.rerun_task(%L)', t.task_id) END
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = t.id ORDER BY r.run_id DESC LIMIT 1) AS r
	WHERE r.state > 2
		AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id)
	UNION ALL
	SELECT t.task_id, 101, tq_internal.state_name(r.state),
		'error: ' || tq_internal.shorten(left(COALESCE(e.error ->> 'message', e.error #>> '{}'), 1000), 43), 'see its error in tq.run_overview'
	FROM tq_internal.task t
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = t.id ORDER BY r.run_id DESC LIMIT 1) AS r
		JOIN tq_internal.run_detail e ON r.has_detail AND e.task = r.task AND e.run_id = r.run_id
	WHERE r.state > 3 AND e.error IS NOT NULL
		AND NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = t.id)
		AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = t.id AND p.seq <> p.task)
		AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = t.id);
COMMENT ON VIEW tq_internal.task_reason IS 'reasons why a task does not move, for tq.why()';

CREATE FUNCTION tq.why(task_id tq.slugid) RETURNS TABLE (reason text, detail text, advice text)
	AS 'MODULE_PATHNAME', 'tq_why' LANGUAGE C;
COMMENT ON FUNCTION tq.why(tq.slugid) IS 'why a task does not move, or how it ended; and what to do';

-- Messages that are not visible in the last tick, as many as health() counts.
-- The order makes the planner read the index: the log has no statistics.
CREATE VIEW tq_internal.unpublished AS
	WITH t AS (SELECT (SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1) AS upto)
	SELECT m.xid, m.seq
	FROM t CROSS JOIN LATERAL pg_snapshot_xip(t.upto) AS x (xid)
		CROSS JOIN LATERAL (SELECT m.xid, m.seq FROM tq_internal.message m WHERE m.xid = x.xid ORDER BY m.xid, m.seq LIMIT 10001) AS m
	UNION ALL
	SELECT m.xid, m.seq
	FROM t CROSS JOIN LATERAL (SELECT m.xid, m.seq FROM tq_internal.message m WHERE m.xid >= COALESCE(pg_snapshot_xmax(t.upto), '0') ORDER BY m.xid, m.seq LIMIT 10001) AS m;
COMMENT ON VIEW tq_internal.unpublished IS 'messages that wait for the publisher: the first 10,001 of each transaction that was in progress at the last tick, and of the later ones';

-- When the first of each kind of timer is due.  Rows that have expired may wait.
CREATE VIEW tq_internal.first_due AS
	SELECT (SELECT c.due FROM tq_internal.claim_timer c ORDER BY c.due LIMIT 1) AS due
	UNION ALL
	SELECT (SELECT d.visible_at FROM tq_internal.delayed d ORDER BY d.visible_at LIMIT 1)
	UNION ALL
	SELECT (SELECT t.due FROM tq_internal.timer t WHERE t.kind = k ORDER BY t.due LIMIT 1)
	FROM (VALUES (1), (3), (4), (5), (6), (7), (8)) AS v (k);	-- TqTimer, without TQ_TIMER_EXPIRE
COMMENT ON VIEW tq_internal.first_due IS 'when the next deadline, timeout, claim expiry or delay of each kind is due';

-- Transactions that hold back vacuum in this database, as far as the caller may
-- see them.  VACUUM itself does not.
CREATE VIEW tq_internal.open_transaction AS
	SELECT format('process %s', a.pid) AS name, a.xact_start AS began, a.backend_type IS NULL AS hidden
	FROM pg_catalog.pg_stat_activity a
	WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		AND (a.backend_type IS NULL OR (a.xact_start IS NOT NULL AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)))
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v WHERE v.pid = a.pid)
	UNION ALL
	SELECT format('prepared %s', tq_internal.shorten(gid, 18)), prepared, false
	FROM pg_catalog.pg_prepared_xacts WHERE database = current_database();
COMMENT ON VIEW tq_internal.open_transaction IS 'transactions of this database that hold back vacuum';

-- Tables that autovacuum cleans; the message log is emptied by TRUNCATE.  A
-- table is neglected when vacuum has not come for ten minutes though it should
-- within one, and vacuum is in vain when a million dead rows stay, which is more
-- than a minute of the highest load leaves.
CREATE VIEW tq_internal.dead_rows AS
	SELECT s.relname, s.n_dead_tup AS dead, s.dead > 100000 AND s.vacuumed < tq_internal.clock_now() - interval '10 minutes' AS is_neglected,
		s.dead > 1000000 AS is_in_vain
	FROM (SELECT relname, n_dead_tup, CASE WHEN n_dead_tup > n_live_tup THEN n_dead_tup ELSE 0 END AS dead,
			COALESCE(greatest(last_vacuum, last_autovacuum), '-infinity') AS vacuumed
		FROM pg_catalog.pg_stat_all_tables
		WHERE schemaname = 'tq_internal' AND relname !~ '^(message|tick)_\d') AS s;
COMMENT ON VIEW tq_internal.dead_rows IS 'tables with their dead rows, and whether vacuum does not come or is in vain';

-- What an operator looks at first.  In psql the rows have at most 120 columns:
-- a detail has 51 characters, a hint 42.
CREATE VIEW tq_internal.health_check AS
	SELECT 1 AS place, 'preload' AS name, p.loaded AS ok,
		CASE WHEN p.loaded THEN 'the server has preloaded tq' ELSE 'the server has not preloaded tq' END AS detail,
		'set shared_preload_libraries, restart' AS hint
	FROM (SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'tq.queue_slots') AS loaded) AS p	-- defined only then
	UNION ALL
	SELECT 2, 'maintenance', a.state IN ('running', 'unused') OR pg_is_in_recovery(),
		CASE WHEN pg_is_in_recovery() THEN 'it begins when this standby is promoted'
			WHEN a.state = 'off' THEN 'tq.maintenance is off'
			WHEN a.state = 'unused' THEN 'it begins with the first call that writes'
			ELSE format('the maintenance worker is %s', a.state) END,
		CASE a.state WHEN 'off' THEN 'set tq.maintenance to on' ELSE 'see the server''s log, or call tq.upkeep()' END
	FROM tq_internal.maintenance_activity() a WHERE a.step = 'turn'
	UNION ALL
	SELECT 3, 'lateness', COALESCE(min(d.due) > tq_internal.clock_now() - interval '5 s', true) OR pg_is_in_recovery(),
		CASE WHEN min(d.due) <= tq_internal.clock_now() THEN format('what is due has waited for %s', date_trunc('second', tq_internal.clock_now() - min(d.due)))
			ELSE 'nothing that is due waits' END,
		'see maintenance, steps'
	FROM tq_internal.first_due d
	UNION ALL
	SELECT 4, 'steps', count(*) = 0,
		COALESCE('failing: ' || tq_internal.shorten(string_agg(a.step, ', ' ORDER BY a.step), 42), 'no step fails'),
		'see error in tq.maintenance_overview'
	FROM tq_internal.maintenance_activity() a WHERE a.state = 'failing'
	UNION ALL
	SELECT 5, 'postponed', count(*) = 0,
		CASE WHEN count(*) = 0 THEN 'no step has failed for a task' ELSE format('tasks for which a step has failed: %s', count(*)) END,
		'see tq.postponed_overview'
	FROM tq_internal.postponed
	UNION ALL
	SELECT 6, 'worker slots', w.used < w.slots, format('%s of %s background workers are in use', w.used, w.slots),
		'raise max_worker_processes, restart'
	FROM (SELECT tq_internal.background_workers() AS used, current_setting('max_worker_processes')::int AS slots) AS w
	UNION ALL
	SELECT 7, 'publisher', count(*) <= 10000 OR pg_is_in_recovery(),
		format('%s%s rows of messages are not published', CASE WHEN count(*) > 10000 THEN 'more than ' ELSE '' END, least(count(*), 10000)),
		'see maintenance, steps; or it is behind'
	FROM (SELECT FROM tq_internal.unpublished LIMIT 10001) AS m
	UNION ALL
	SELECT 8, 'subscriptions', count(*) FILTER (WHERE s.late) = 0,
		COALESCE('unread for an hour: ' || tq_internal.shorten(string_agg(s.name, ', ' ORDER BY s.name) FILTER (WHERE s.late), 31),
			CASE WHEN count(*) = 0 THEN 'there are none' ELSE format('none of %s is unread for an hour', count(*)) END),
		'read it, or tq.unsubscribe() it'
	FROM (SELECT name, COALESCE(oldest_unread < tq_internal.clock_now() - interval '1 hour', false) AS late FROM tq.subscription_overview) AS s
	UNION ALL
	SELECT 9, 'notifications', pg_notification_queue_usage() < 0.1,
		format('the notification queue is %s %% full', round(pg_notification_queue_usage()::numeric * 100)),
		'end the session that does not read it'
	UNION ALL
	SELECT 10, 'oldest pending', COALESCE(min(p.scheduled) > tq_internal.clock_now() - interval '1 hour', true),
		CASE WHEN count(*) = 0 THEN 'no run is pending'
			ELSE format('for %s in %s', date_trunc('second', tq_internal.clock_now() - min(p.scheduled)),
				tq_internal.shorten((array_agg(q.task_queue_id ORDER BY p.scheduled))[1], 24)) END,
		'start workers; see tq.why() of a task'
	FROM tq_internal.queue q
		CROSS JOIN generate_series(1, 7) AS v (priority)
		CROSS JOIN LATERAL (SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = v.priority ORDER BY p.seq LIMIT 1) AS p
	UNION ALL
	SELECT 11, 'expired claims', COALESCE(x.claims <= 100, true),
		COALESCE(x.claims || ' within an hour', 'not counted without a maintenance worker'),
		'workers have died, or reclaim too late'
	FROM (SELECT tq_internal.expired_claims() AS claims) AS x
	UNION ALL
	SELECT 12, 'transactions', COALESCE(min(t.began) > tq_internal.clock_now() - interval '10 minutes', true),
		CASE WHEN count(t.began) = 0 THEN CASE WHEN bool_or(t.hidden) THEN 'none that you may see' ELSE 'none is open' END
			ELSE format('%s for %s', (array_agg(t.name ORDER BY t.began))[1], date_trunc('second', tq_internal.clock_now() - min(t.began))) END,
		'end it: it holds back vacuum'
	FROM tq_internal.open_transaction t
	UNION ALL
	SELECT 13, 'dead rows', NOT bool_or(d.is_neglected OR d.is_in_vain),
		format('%s in %s; %s in all', (array_agg(d.dead ORDER BY d.is_in_vain OR d.is_neglected DESC, d.dead DESC))[1],
			(array_agg(d.relname ORDER BY d.is_in_vain OR d.is_neglected DESC, d.dead DESC))[1],
			(SELECT pg_size_pretty(sum(pg_catalog.pg_total_relation_size(c.oid)))
			FROM pg_catalog.pg_class c WHERE c.relnamespace = 'tq_internal'::regnamespace AND c.relkind = 'r')),
		CASE WHEN bool_or(d.is_neglected) THEN 'vacuum does not come: is autovacuum on?' ELSE 'vacuum is in vain: see transactions' END
	FROM tq_internal.dead_rows d
	UNION ALL
	SELECT 14, 'paused', count(*) FILTER (WHERE s.waits) = 0,
		COALESCE(tq_internal.shorten(string_agg(s.task_queue_id, ', ' ORDER BY s.waits DESC, s.task_queue_id), 50), 'no queue is paused'),
		'tasks are pending: tq.resume_queue()'
	FROM (SELECT q.task_queue_id, EXISTS (SELECT FROM tq_internal.pending p WHERE p.queue = q.id) AS waits
		FROM tq_internal.queue_settings s JOIN tq_internal.queue q ON q.id = s.queue WHERE (s.settings -> 'paused')::bool) AS s
	UNION ALL
	SELECT 15, 'limits', COALESCE(min(s.oldest) > tq_internal.clock_now() - interval '1 hour', true),
		COALESCE(tq_internal.shorten(string_agg(s.task_queue_id, ', ' ORDER BY s.oldest, s.task_queue_id), 50), 'no task waits for a concurrentLimit'),
		'waits for an hour: more concurrentLimit'
	FROM (SELECT q.task_queue_id, p.oldest
		FROM tq_internal.queue_settings s JOIN tq_internal.queue q ON q.id = s.queue
			CROSS JOIN LATERAL (SELECT min(f.scheduled) AS oldest FROM generate_series(1, 7) AS y (priority) CROSS JOIN LATERAL (
				SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = y.priority ORDER BY p.seq LIMIT 1) AS f OFFSET 0) AS p
			CROSS JOIN LATERAL (SELECT c.running FROM tq_internal.queue_counters() AS c WHERE c.queue = q.id OFFSET 0) AS c
		WHERE (s.settings -> 'concurrentLimit')::int > 0 AND p.oldest IS NOT NULL AND c.running >= (s.settings -> 'concurrentLimit')::int) AS s
	UNION ALL
	SELECT 16, 'gates', COALESCE(min(t.due) > tq_internal.clock_now() - interval '5 s', true) OR pg_is_in_recovery(),
		CASE WHEN min(t.due) <= tq_internal.clock_now() THEN format('tasks with keys have waited for %s', date_trunc('second', tq_internal.clock_now() - min(t.due)))
			ELSE 'no key waits for maintenance' END,
		'see maintenance, steps'
	FROM (SELECT t.due FROM tq_internal.timer t WHERE t.kind = 7 ORDER BY t.due LIMIT 1) AS t	-- TQ_TIMER_GATE
	UNION ALL
	SELECT 17, 'replay', NOT r.is_standby OR r.is_current OR COALESCE(r.age < interval '1 minute', false),
		CASE WHEN NOT r.is_standby THEN 'this server is no standby'
			WHEN r.is_current THEN 'all that this standby has received is replayed'
			WHEN r.age IS NULL THEN 'nothing has come since this standby was started'
			ELSE format('the last commit that is replayed is %s old', date_trunc('second', r.age)) END,
		'see pg_stat_wal_receiver; end long queries'
	FROM (SELECT pg_is_in_recovery() AS is_standby, tq_internal.clock_now() - pg_last_xact_replay_timestamp() AS age,
		COALESCE(pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn(), false) AND EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver) AS is_current) AS r;
COMMENT ON VIEW tq_internal.health_check IS 'the rows of tq.health()';

CREATE FUNCTION tq.health() RETURNS TABLE (name text, ok bool, detail text, hint text)
	AS 'MODULE_PATHNAME', 'tq_health' LANGUAGE C;
COMMENT ON FUNCTION tq.health() IS 'what keeps this database from working as it should: a row for each check, with a hint where it is not ok';

-- A number in at most 7 characters, and a time in at most 5.
CREATE FUNCTION tq_internal.short_count(given numeric) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN n < 100000 THEN n::text
			WHEN n < 100000000 THEN trunc(n / 1000) || 'k'
			ELSE trunc(n / 1000000) || 'M' END
		FROM round(given) AS n;
	END;
COMMENT ON FUNCTION tq_internal.short_count(numeric) IS 'a number as tq.top() shows it';

CREATE FUNCTION tq_internal.short_age(given interval) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN s < 0 THEN '0s'
			WHEN s < 100 THEN trunc(s) || 's'
			WHEN s < 6000 THEN trunc(s / 60) || 'm'
			WHEN s < 360000 THEN trunc(s / 3600) || 'h'
			ELSE trunc(s / 86400) || 'd' END
		FROM (SELECT extract(epoch FROM given)) AS x (s);
	END;
COMMENT ON FUNCTION tq_internal.short_age(interval) IS 'a time as tq.top() shows it';

-- Groups that may be in progress: new ones, and those of runs that are running.
-- There may be too many groups to look at all.
CREATE VIEW tq_internal.recent_group AS
	SELECT g.id, g.task_group_id, p.*
	FROM (SELECT id FROM (SELECT id FROM tq_internal.task_group ORDER BY id DESC LIMIT 20) AS n
		UNION SELECT t.group_id FROM (SELECT r.task FROM tq_internal.claimed_run r LIMIT 50) AS r JOIN tq_internal.task t ON t.id = r.task WHERE t.group_id IS NOT NULL) AS i
		JOIN tq_internal.task_group g ON g.id = i.id
		CROSS JOIN LATERAL tq_internal.group_progress(g.task_group_id) AS p
	WHERE p.outcome IS NULL AND p.tasks > 0;
COMMENT ON VIEW tq_internal.recent_group IS 'groups in progress that tq.top() shows';

CREATE VIEW tq_internal.reported_run AS
	SELECT t.task_id, t.group_id, q.task_queue_id, r.started, d.done, d.total, d.done::float8 / nullif(d.total, 0) AS share, d.reported
	FROM tq_internal.claimed_run r
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run_detail x WHERE r.has_detail AND x.task = r.task AND x.run_id = r.run_id OFFSET 0) AS d	-- not hashed
		JOIN tq_internal.task t ON t.id = r.task
		JOIN tq_internal.queue q ON q.id = t.queue
	WHERE d.reported IS NOT NULL;
COMMENT ON VIEW tq_internal.reported_run IS 'running runs with a progress that tq.top() shows; no text of theirs, because its callers need not see tasks';

-- The lines of tq.top(): section, number within it (0: a heading), line.  In
-- psql the rows have at most 100 columns.
CREATE VIEW tq_internal.screen AS
	WITH queue AS MATERIALIZED (
		SELECT s.*, row_number() OVER (ORDER BY s.pending + s.running DESC, s.blocked + s.delayed DESC, s.task_queue_id) AS n FROM tq.queue_stats s
	), worker AS MATERIALIZED (
		SELECT w.*, row_number() OVER (ORDER BY w.running DESC, w.last_date_active DESC NULLS LAST, w.task_queue_id, w.worker_group, w.worker_id) AS n FROM tq.worker_overview w
	), task_group AS MATERIALIZED (
		SELECT g.*, g.completed + g.failed + g.exception AS ended, row_number() OVER (ORDER BY g.running DESC, g.first_created DESC, g.task_group_id) AS n FROM tq_internal.recent_group g
	), progress AS MATERIALIZED (
		SELECT p.*, row_number() OVER (ORDER BY p.started, p.task_id) AS n FROM tq_internal.reported_run p
	)
	SELECT 1 AS section, 0::bigint AS n, format('tq %s, %s: %s pending, %s running, %s delayed, %s blocked; %s/s in, %s/s out',
		(SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'tq'), tq_internal.local_time(tq_internal.clock_now()),
		tq_internal.short_count(COALESCE(sum(pending), 0)), tq_internal.short_count(COALESCE(sum(running), 0)), tq_internal.short_count(COALESCE(sum(delayed), 0)),
		tq_internal.short_count(COALESCE(sum(blocked), 0)), tq_internal.short_count(COALESCE(sum(created_per_s), 0)::numeric), tq_internal.short_count(COALESCE(sum(ended_per_s), 0)::numeric)) AS line
	FROM queue
	UNION ALL
	SELECT 2, 0, CASE WHEN bool_and(h.ok) THEN format('health: all %s checks are ok', count(*))
		ELSE 'health: not ok: ' || tq_internal.shorten(string_agg(h.name || ': ' || h.detail, '; ' ORDER BY h.place) FILTER (WHERE NOT h.ok), 81) END
	FROM tq_internal.health_check h
	UNION ALL SELECT 3, 0, ''
	UNION ALL
	SELECT 4, 0, rpad(format('QUEUE (%s)', count(*)), 34) || ' PENDING RUNNING DELAYED BLOCKED    IN/s   OUT/s  OLDEST WORKERS' FROM queue
	UNION ALL
	SELECT 5, q.n, rpad(tq_internal.shorten(q.task_queue_id, 25) || CASE WHEN q.paused THEN ' (paused)' ELSE '' END, 34)
		|| (SELECT string_agg(lpad(f.field, 8), '' ORDER BY f.i) FROM unnest(ARRAY[tq_internal.short_count(q.pending), tq_internal.short_count(q.running),
			tq_internal.short_count(q.delayed), tq_internal.short_count(q.blocked), tq_internal.short_count(q.created_per_s::numeric), tq_internal.short_count(q.ended_per_s::numeric),
			COALESCE(tq_internal.short_age(q.oldest_pending), '-'), tq_internal.short_count(q.workers)]) WITH ORDINALITY AS f (field, i))
	FROM queue q
	UNION ALL SELECT 6, 0, ''
	UNION ALL
	SELECT 7, 0, rpad(format('WORKER (%s)', count(*)), 44) || rpad('QUEUE', 28) || rpad('STATE', 12) || ' RUNS   SEEN' FROM worker
	UNION ALL
	SELECT 8, w.n, rpad(tq_internal.shorten(w.worker_group || '/' || w.worker_id, 43), 44) || rpad(tq_internal.shorten(w.task_queue_id, 27), 28) || rpad(w.state, 12)
		|| lpad(tq_internal.short_count(w.running), 5) || lpad(COALESCE(tq_internal.short_age(tq_internal.clock_now() - w.last_date_active), '-'), 7)
	FROM worker w
	UNION ALL SELECT 9, 0, ''
	UNION ALL
	SELECT 10, 0, rpad(format('GROUP (%s in progress)', count(*)), 24) || rpad('# done, = of running tasks, x failed', 42) || '     DONE    TASKS RUNS FAILED' FROM task_group
	UNION ALL
	SELECT 11, g.n, rpad(g.task_group_id::text, 24) || '[' || rpad(repeat('#', (39 * g.completed / g.tasks)::int) || repeat('=', floor(39 * COALESCE((SELECT sum(p.share) FROM progress p WHERE p.group_id = g.id), 0) / g.tasks)::int)
			|| repeat('x', ceil(39.0 * (g.failed + g.exception) / g.tasks)::int), 39, '.') || '] '
		|| lpad(tq_internal.short_count(g.ended), 9) || lpad(tq_internal.short_count(g.tasks), 9) || lpad(tq_internal.short_count(g.running), 5) || lpad(tq_internal.short_count(g.failed + g.exception), 7)
	FROM task_group g
	UNION ALL SELECT 12, 0, '' WHERE EXISTS (SELECT FROM progress)
	UNION ALL
	SELECT 13, 0, rpad(format('PROGRESS (%s)', count(*)), 24) || rpad('QUEUE', 26) || rpad('# done', 25) || '  DONE  TOTAL   SEEN' FROM progress HAVING count(*) > 0
	UNION ALL
	SELECT 14, p.n, rpad(p.task_id::text, 24) || rpad(tq_internal.shorten(p.task_queue_id, 25), 26)
		|| '[' || rpad(repeat('#', COALESCE(floor(22 * p.share)::int, 0)), 22, '.') || '] '
		|| lpad(tq_internal.short_count(p.done), 6) || lpad(COALESCE(tq_internal.short_count(p.total), '-'), 7) || lpad(tq_internal.short_age(tq_internal.clock_now() - p.reported), 7)
	FROM progress p;
COMMENT ON VIEW tq_internal.screen IS 'the lines of tq.top()';

CREATE FUNCTION tq.top(max_rows int DEFAULT 10) RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_top' LANGUAGE C;
COMMENT ON FUNCTION tq.top(int) IS 'one screen for \watch: health, queues, workers, groups in progress and the progress of running tasks, in lines of at most 98 characters';

CREATE FUNCTION tq.reset_queue_stats() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_reset_queue_stats' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.reset_queue_stats() IS 'sets the totals, rates and histograms of tq.queue_stats to zero, and has the numbers of tasks counted again; not undone by a rollback';

CREATE FUNCTION tq.set_buckets(buckets int4multirange) RETURNS xid8
	AS 'MODULE_PATHNAME', 'tq_set_buckets' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.set_buckets(int4multirange) IS 'begin task groups in these buckets only, because other databases have the others; NULL or all: no longer; returns this transaction';

CREATE FUNCTION tq.buckets() RETURNS int4multirange
	AS 'MODULE_PATHNAME', 'tq_buckets' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.buckets() IS 'buckets in which this database begins task groups; NULL: all';

CREATE FUNCTION tq.buckets_settled(xid xid8) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_buckets_settled' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.buckets_settled(xid8) IS 'whether no transaction is left that may begin a task group by the buckets before that set_buckets(); to be asked until it is';

CREATE FUNCTION tq.bucket_counts(OUT bucket int, OUT task_groups bigint, OUT unresolved bigint) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'tq_bucket_counts' LANGUAGE C VOLATILE ROWS 1024;
COMMENT ON FUNCTION tq.bucket_counts() IS 'task groups, and their tasks that are not resolved, of each bucket that has any; reads all tasks';

CREATE FUNCTION tq.has_task(task_id tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_has_task' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.has_task(tq.slugid) IS 'whether this database has that task, or a dead letter of it';

CREATE FUNCTION tq.has_task_group(task_group_id tq.slugid) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_has_task_group' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq.has_task_group(tq.slugid) IS 'whether this database has that task group';

CREATE FUNCTION tq.status_row(task_id tq.slugid) RETURNS SETOF tq.task_overview
	AS 'MODULE_PATHNAME', 'tq_status_row' LANGUAGE C;
COMMENT ON FUNCTION tq.status_row(tq.slugid) IS 'status of a task as a row of task_overview, for people';

CREATE FUNCTION tq.queue_counts(task_queue_id text) RETURNS SETOF tq.queue_overview
	AS 'MODULE_PATHNAME', 'tq_queue_counts' LANGUAGE C;
COMMENT ON FUNCTION tq.queue_counts(text) IS 'counts of a queue as a row of queue_overview, for people; no row while there is no such queue';

-- ---------------------------------------------------------------------------
-- Grants
-- ---------------------------------------------------------------------------

-- The rights that ALTER DEFAULT PRIVILEGES gives away do not extend to tq.
DO $$
DECLARE
	heir pg_catalog.text;
BEGIN
	FOR heir IN
		SELECT DISTINCT pg_catalog.quote_ident(r.rolname)
		FROM (SELECT c.relacl AS acl FROM pg_catalog.pg_class c WHERE c.relnamespace IN ('tq'::pg_catalog.regnamespace, 'tq_internal'::pg_catalog.regnamespace)
			UNION ALL SELECT p.proacl FROM pg_catalog.pg_proc p WHERE p.pronamespace IN ('tq'::pg_catalog.regnamespace, 'tq_internal'::pg_catalog.regnamespace)
			UNION ALL SELECT n.nspacl FROM pg_catalog.pg_namespace n WHERE n.nspname = 'tq_internal') AS o
			CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
			JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
		WHERE r.rolname <> current_user
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL TABLES IN SCHEMA tq, tq_internal FROM %s', heir);
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA tq, tq_internal FROM %s', heir);
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL ROUTINES IN SCHEMA tq, tq_internal FROM %s', heir);
		EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA tq_internal FROM %s', heir);
	END LOOP;
END
$$;
REVOKE ALL ON ALL TABLES IN SCHEMA tq, tq_internal FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA tq, tq_internal FROM PUBLIC;
REVOKE ALL ON SCHEMA tq_internal FROM PUBLIC;

-- Each function of schema tq checks the scopes of its caller.
REVOKE ALL ON ALL ROUTINES IN SCHEMA tq, tq_internal FROM PUBLIC;
GRANT USAGE ON SCHEMA tq TO PUBLIC;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA tq TO PUBLIC;
REVOKE EXECUTE ON FUNCTION tq.start_maintenance() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION	-- input, output, operators and casts of a type that tables of any role may have
	tq_internal.slugid_in(cstring), tq_internal.slugid_out(tq.slugid), tq_internal.slugid_recv(internal), tq_internal.slugid_send(tq.slugid),
	tq_internal.slugid_cmp(tq.slugid, tq.slugid), tq_internal.slugid_hash(tq.slugid), tq_internal.slugid_hash_extended(tq.slugid, bigint),
	tq_internal.slugid_eq(tq.slugid, tq.slugid), tq_internal.slugid_ne(tq.slugid, tq.slugid),
	tq_internal.slugid_lt(tq.slugid, tq.slugid), tq_internal.slugid_le(tq.slugid, tq.slugid),
	tq_internal.slugid_gt(tq.slugid, tq.slugid), tq_internal.slugid_ge(tq.slugid, tq.slugid),
	tq_internal.slugid_from_uuid(uuid), tq_internal.slugid_to_uuid(tq.slugid) TO PUBLIC;
GRANT EXECUTE ON FUNCTION tq_internal.is_awaited(xid8) TO PUBLIC;	-- for every role that may dump the tables

-- Views do not filter rows.  pg_monitor sees names, states and times, but no payload, error or result.
GRANT SELECT ON tq.run_overview, tq.task_details, tq.failure_overview, tq.dead_letter_overview, tq.cron_overview TO tq_admin, tq_reader;
GRANT SELECT ON tq.task_overview, tq.group_overview, tq.callback_overview, tq.dependency_overview, tq.queue_overview, tq.queue_stats, tq.worker_overview, tq.waiter_overview,
	tq.maintenance_overview, tq.postponed_overview, tq.binding_overview, tq.subscription_overview TO tq_admin, tq_reader, pg_monitor;
GRANT SELECT ON tq.audit TO tq_admin;	-- what roles do is not for all who read tasks
GRANT EXECUTE ON FUNCTION	-- those that views call
	tq_internal.maintenance_activity(), tq_internal.published_id(), tq_internal.group_progress(tq.slugid), tq_internal.waiters(), tq_internal.clock_now(),
	tq_internal.queue_counters(), tq_internal.count_state(), tq_internal.group_slug(bigint, tq.slugid), tq_internal.group_number(tq.slugid),
	tq_internal.expired_claims(), tq_internal.background_workers(), tq_internal.cron_jobs(), tq_internal.cron_time_zone(), tq_internal.shorten(text, int),
	tq_internal.state_name(int), tq_internal.reason_created_name(int), tq_internal.reason_resolved_name(int),
	tq_internal.priority_name(int), tq_internal.exchange_name(int), tq_internal.is_tolerated(jsonb, int) TO tq_admin, tq_reader, pg_monitor;

SELECT tq.start_maintenance();
