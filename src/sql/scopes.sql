-- ---------------------------------------------------------------------------
-- Scopes (doc/spec/taskcluster.md 7)
--
-- Only a caller with every scope may grant or revoke any.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.built_in_scopes(role oid) RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_sql_built_in_scopes' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.built_in_scopes(oid) IS 'scopes that a role has by the extension (rules/access.c)';

CREATE FUNCTION tq_internal.check_role(role regrole) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq_internal.not_null(role, 'role');
	IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = check_role.role) THEN
		RAISE EXCEPTION 'role % does not exist', role::oid
			USING ERRCODE = 'TQ400', DETAIL = 'Scopes are granted to roles that exist.', HINT = 'Give the name of a role, not a number or "-".';
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.check_role(regrole) IS 'raises TQ400 for the argument role unless it exists';

CREATE FUNCTION tq_internal.check_scopes(scopes text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	wrong record;
BEGIN
	PERFORM tq_internal.not_null(scopes, 'scopes');
	IF cardinality(scopes) > 1000 THEN
		RAISE EXCEPTION 'too many scopes'
			USING ERRCODE = 'TQ400', DETAIL = format('There are %s, and may be 1000 in one call.', cardinality(scopes)),
				HINT = 'Give fewer, or one that ends in a star.';
	END IF;
	SELECT s.scope, s.n, s.fault INTO wrong
		FROM (SELECT u.scope, u.n, CASE
				WHEN u.scope = '' THEN 'is empty'
				WHEN octet_length(u.scope) > 1500 THEN format('has %s bytes', octet_length(u.scope))
				WHEN u.scope !~ '^[ -~]*$' THEN 'has a character that is not printable ASCII'
				WHEN right(u.scope, 2) = '**' THEN 'ends in "**"' END AS fault
			FROM unnest(scopes) WITH ORDINALITY AS u (scope, n)) AS s
		WHERE s.scope IS NULL OR s.fault IS NOT NULL ORDER BY s.n LIMIT 1;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	PERFORM tq_internal.element_not_null(wrong.scope, 'scopes', wrong.n::int);
	RAISE EXCEPTION 'invalid scope "%"', tq_internal.clip(wrong.scope)
		USING ERRCODE = 'TQ400', DETAIL = format('It %s.', wrong.fault),
			HINT = 'Give 1 to 1500 printable ASCII characters; a star at the end stands for any text.';
END
$$;
COMMENT ON FUNCTION tq_internal.check_scopes(text[]) IS 'raises TQ400 for the argument scopes unless each may be granted';

CREATE FUNCTION tq.grant_scopes(role regrole, scopes text[]) RETURNS void
	LANGUAGE tq_operate AS $$
BEGIN
	PERFORM tq_internal.check_role(role);
	PERFORM tq_internal.check_scopes(scopes);
	PERFORM tq_internal.require('*');
	DELETE FROM tq_internal.scope_grant g WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = g.role);
	INSERT INTO tq_internal.scope_grant SELECT grant_scopes.role, unnest(scopes) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION tq.grant_scopes(regrole, text[]) IS 'grant scopes to a role and its members; a star at the end of a scope stands for any text';

CREATE FUNCTION tq.revoke_scopes(role regrole, scopes text[]) RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	own text;
	other tq_internal.scope_grant;
BEGIN
	PERFORM tq_internal.check_role(role);
	PERFORM tq_internal.check_scopes(scopes);
	PERFORM tq_internal.require('*');
	SELECT b INTO own FROM unnest(tq_internal.built_in_scopes(role)) AS b WHERE b = ANY (scopes) LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'scope "%" cannot be revoked from role "%"', own, pg_get_userbyid(role)
			USING ERRCODE = 'TQ409', DETAIL = 'The role has it by the extension.',
				HINT = 'Revoke that role from its members, and grant them what they need.';
	END IF;
	DELETE FROM tq_internal.scope_grant g WHERE g.role = revoke_scopes.role AND g.scope = ANY (scopes) AND g.access = '';
	SELECT * INTO other FROM tq_internal.scope_grant g WHERE g.role = revoke_scopes.role AND g.scope = ANY (scopes)
		ORDER BY g.scope, g.queues, g.access LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'scope "%" cannot be revoked from role "%"', other.scope, pg_get_userbyid(role)
			USING ERRCODE = 'TQ409', DETAIL = format('The role has the access %s to "%s".', other.access, other.queues),
				HINT = 'Revoke that with tq.revoke_queue().';
	END IF;
END
$$;
COMMENT ON FUNCTION tq.revoke_scopes(regrole, text[]) IS 'revoke scopes that were granted to a role, each as it was granted';

-- A percent sign stands for the task queue id or the pattern, "%/" for what is below it, and "@" for the names of workers.
CREATE VIEW tq_internal.scope_of_access (scope, accesses) AS VALUES
	('queue:create-task:highest:%', '{produce}'::text[]),
	('queue:create-task:project:*', '{produce}'),
	('queue:scheduler-id:-', '{produce}'),
	('queue:schedule-cron-in-queue:%', '{produce}'),
	('queue:claim-work:%', '{work}'),
	('queue:claim-task:%', '{work}'),
	('queue:worker-id:@', '{work}'),
	('queue:reclaim-task-in-queue:%', '{work}'),
	('queue:resolve-task-in-queue:%', '{work}'),
	('queue:create-artifact-in-queue:%', '{work}'),
	('queue:declare-worker:%/', '{work}'),
	('queue:status-in-queue:%', '{produce,work,read,manage,depend}'),
	('queue:get-task-in-queue:%', '{produce,work,read,manage}'),
	('queue:list-dependent-tasks-in-queue:%', '{produce,read,manage}'),
	('queue:get-artifact-in-queue:%', '{produce,work,read,manage}'),
	('queue:list-artifacts-in-queue:%', '{produce,work,read,manage}'),
	('queue:pending-count:%', '{produce,work,read,manage}'),
	('queue:claimed-count:%', '{read,manage}'),
	('queue:pending-list:%', '{read,manage}'),
	('queue:claimed-list:%', '{read,manage}'),
	('queue:get-task-queue:%', '{read,manage}'),
	('queue:get-worker-type:%', '{read,manage}'),
	('queue:list-workers:%', '{read,manage}'),
	('queue:get-worker:%/', '{read,manage}'),
	('queue:schedule-task-in-queue:%', '{produce,manage}'),
	('queue:rerun-task-in-queue:%', '{manage}'),
	('queue:reschedule-task-in-queue:%', '{manage}'),
	('queue:add-dependencies-in-queue:%', '{manage}'),
	('queue:cancel-task-in-queue:%', '{manage}'),
	('queue:skip-task-in-queue:%', '{manage}'),
	('queue:delete-task-in-queue:%', '{manage}'),
	('queue:change-task-priority-in-queue:%', '{manage}'),
	('queue:move-tasks:%', '{manage}'),
	('queue:dead-letters:%', '{manage}'),
	('queue:quarantine-worker:%/', '{manage}'),
	('queue:worker-removed:%/', '{manage}'),
	('queue:pause-queue:%', '{manage}'),
	('queue:set-queue:%', '{manage}'),
	('queue:list-task-group-in-queue:%', '{produce,read,manage}'),
	('queue:seal-task-group-in-queue:%', '{produce,manage}'),
	('queue:cancel-task-group-in-queue:%', '{manage}'),
	('queue:retry-task-group-in-queue:%', '{manage}'),
	('queue:change-task-group-priority-in-queue:%', '{manage}'),
	('queue:join-in-queue:%', '{join}'),
	('queue:depend-in-queue:%', '{manage,depend}'),
	('queue:unique-in-queue:%', '{unique}');
COMMENT ON VIEW tq_internal.scope_of_access IS 'scopes of each access that grant_queue() grants to queues';

CREATE FUNCTION tq_internal.arg_queues(task_queue_id text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF task_queue_id ~ '^([A-Za-z0-9_-]{0,38}|[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{0,38})[*]$' THEN
		RETURN task_queue_id;
	ELSIF right(task_queue_id, 1) = '*' THEN
		RAISE EXCEPTION 'invalid task_queue_id "%"', tq_internal.clip(task_queue_id)
			USING ERRCODE = 'TQ400', DETAIL = 'No task queue id begins like that.',
				HINT = 'Give provisionerId/workerType, or provisionerId/* for all of a provisioner.';
	END IF;
	RETURN tq_internal.arg_queue(task_queue_id);
END
$$;
COMMENT ON FUNCTION tq_internal.arg_queues(text) IS 'the argument task_queue_id, if it may be the name of a queue, or the beginning of some and a star';

CREATE FUNCTION tq_internal.arg_workers(workers text, access text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq_internal.not_null(workers, 'workers');
	IF workers !~ '^([A-Za-z0-9_-]{0,38}|[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{0,38})[*]$|^[A-Za-z0-9_-]{1,38}/[A-Za-z0-9_-]{1,38}$' THEN
		RAISE EXCEPTION 'invalid workers "%"', tq_internal.clip(workers)
			USING ERRCODE = 'TQ400', DETAIL = 'No worker has a name like that.', HINT = 'Give workerGroup/workerId, or workerGroup/* for all of a group.';
	ELSIF workers <> '*' AND access <> 'work' THEN
		RAISE EXCEPTION 'workers must be "*" for the access "%"', tq_internal.clip(access)
			USING ERRCODE = 'TQ400', DETAIL = format('It is "%s", and only those who work have names of workers.', tq_internal.clip(workers)), HINT = 'Leave it out.';
	END IF;
	RETURN workers;
END
$$;
COMMENT ON FUNCTION tq_internal.arg_workers(text, text) IS 'the argument workers, if it may be the name of a worker, or the beginning of some and a star';

CREATE FUNCTION tq_internal.scopes_of_access(task_queue_id text, access text, workers text DEFAULT '*') RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	queues text := tq_internal.arg_queues(task_queue_id);
	below text := CASE WHEN right(queues, 1) = '*' THEN queues ELSE queues || '/*' END;
	scopes text[];
BEGIN
	PERFORM tq_internal.not_null(access, 'access');
	SELECT array_agg(replace(replace(replace(s.scope, '%/', below), '%', queues), '@', workers)) INTO scopes
		FROM tq_internal.scope_of_access s WHERE access = ANY (s.accesses);
	IF scopes IS NULL THEN
		RAISE EXCEPTION 'invalid access "%"', tq_internal.clip(access)
			USING ERRCODE = 'TQ400', DETAIL = 'There is no access of that name.', HINT = 'Give produce, work, read, manage, join, depend or unique.';
	END IF;
	PERFORM tq_internal.arg_workers(workers, access);
	RETURN scopes;
END
$$;
COMMENT ON FUNCTION tq_internal.scopes_of_access(text, text, text) IS 'the scopes that grant_queue() grants';

CREATE FUNCTION tq_internal.is_shared() RETURNS bool LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT EXISTS (SELECT FROM tq_internal.scope_grant g WHERE CASE g.queues WHEN '' THEN g.scope LIKE '%/%' ELSE g.queues <> '*' END);
	END;
COMMENT ON FUNCTION tq_internal.is_shared() IS 'whether a role has rights to a part of the queues';

CREATE FUNCTION tq.grant_queue(role regrole, task_queue_id text, access text, workers text DEFAULT '*') RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	scopes text[];
BEGIN
	PERFORM tq_internal.check_role(role);
	scopes := tq_internal.scopes_of_access(task_queue_id, access, workers);
	PERFORM tq_internal.require('*');
	IF current_setting('tq.notify_payload') = 'auto' AND task_queue_id <> '*' AND NOT tq_internal.is_shared() THEN
		RAISE NOTICE 'notifications on the default channels carry ids only'
			USING DETAIL = 'Every role may LISTEN, and a role has rights to a part of the queues.',
				HINT = 'Bind a channel of your own by tq.bind(), or read by tq.messages(); tq.notify_payload says what they carry.';
	END IF;
	INSERT INTO tq_internal.scope_grant SELECT grant_queue.role, unnest(scopes), tq_internal.arg_queues(task_queue_id), access ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION tq.grant_queue(regrole, text, text, text) IS
	'grant a role the scopes to produce, work, read, manage, join, depend or unique in a queue, or in all whose names begin like that when it ends in a star; work as workers of these names only';

CREATE FUNCTION tq.revoke_queue(role regrole, task_queue_id text, access text) RETURNS void
	LANGUAGE tq_operate AS $$
BEGIN
	PERFORM tq_internal.check_role(role);
	PERFORM tq_internal.scopes_of_access(task_queue_id, access);
	PERFORM tq_internal.require('*');
	DELETE FROM tq_internal.scope_grant g
		WHERE g.role = revoke_queue.role AND g.queues = tq_internal.arg_queues(task_queue_id) AND g.access = revoke_queue.access;
END
$$;
COMMENT ON FUNCTION tq.revoke_queue(regrole, text, text) IS 'revoke what grant_queue() with the same arguments has granted, and nothing that another grant gives as well';

CREATE FUNCTION tq.current_scopes() RETURNS text[]
	AS 'MODULE_PATHNAME', 'tq_current_scopes' LANGUAGE C;
COMMENT ON FUNCTION tq.current_scopes() IS 'the scopes of the caller, without those that others cover';

CREATE FUNCTION tq_internal.satisfies(have text[], required text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_satisfies' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.satisfies(text[], text) IS 'whether one of these scopes satisfies the required one';
