-- ---------------------------------------------------------------------------
-- Shards (doc/spec/policy.md 16)
-- ---------------------------------------------------------------------------

-- Its row is written by one transaction at a time; src/storage/shard_table.c.
CREATE FUNCTION tq_internal.set_buckets(buckets int4multirange) RETURNS xid8
	LANGUAGE tq_operate AS $$
BEGIN
	PERFORM tq_internal.require('*');
	IF NOT buckets <@ '{[0,1024)}'::int4multirange THEN
		RAISE EXCEPTION 'buckets is out of range'
			USING ERRCODE = 'TQ400', DETAIL = 'Buckets are numbered from 0 to 1023.', HINT = 'Give such as ''{[0,512)}'', or NULL for all.';
	END IF;
	LOCK TABLE tq_internal.shard IN SHARE ROW EXCLUSIVE MODE;
	INSERT INTO tq_internal.shard (buckets, changed) VALUES (set_buckets.buckets, pg_current_xact_id())
		ON CONFLICT (is_only) DO UPDATE SET buckets = excluded.buckets, changed = excluded.changed, fence = NULL;
	RETURN pg_current_xact_id();
END
$$;
COMMENT ON FUNCTION tq_internal.set_buckets(int4multirange) IS 'begin task groups in these buckets only, because other databases have the others; NULL or all: no longer; returns this transaction';

CREATE FUNCTION tq_internal.buckets() RETURNS int4multirange
	LANGUAGE tq_read AS $$
BEGIN
	RETURN (SELECT s.buckets FROM tq_internal.shard s);
END
$$;
COMMENT ON FUNCTION tq_internal.buckets() IS 'buckets in which this database begins task groups; NULL: all';

CREATE FUNCTION tq_internal.buckets_settled(xid xid8) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_buckets_settled' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.buckets_settled(xid8) IS 'whether no transaction is left that may begin a task group by the buckets before that set_buckets(); to be asked until it is';

-- A group of one task may have no row.  The groups of unresolved tasks are found by
-- their tasks, so that no list of them is kept.
CREATE FUNCTION tq_internal.bucket_counts(OUT bucket int, OUT task_groups bigint, OUT unresolved bigint) RETURNS SETOF record
	LANGUAGE tq_read ROWS 1024 AS $$
BEGIN
	PERFORM tq_internal.require('queue:health');
	RETURN QUERY
		SELECT x.bucket, sum(x.groups)::bigint, sum(x.tasks)::bigint
		FROM (SELECT tq_internal.bucket(g.task_group_id) AS bucket, 1 AS groups, 0 AS tasks FROM tq_internal.task_group g
			UNION ALL SELECT tq_internal.bucket(t.task_id), 1, 0 FROM tq_internal.task t
				WHERE t.group_id IS NULL AND NOT EXISTS (SELECT FROM tq_internal.task_group g WHERE g.task_group_id = t.task_id)
			UNION ALL SELECT tq_internal.bucket(coalesce(g.task_group_id, t.task_id)), 0, 1
				FROM (SELECT w.task FROM tq_internal.unscheduled w UNION ALL SELECT p.task FROM tq_internal.pending p
						UNION ALL SELECT d.task FROM tq_internal.delayed d
						UNION ALL SELECT r.task FROM tq_internal.run r WHERE r.state = 2) AS u
					JOIN tq_internal.task t ON t.id = u.task LEFT JOIN tq_internal.task_group g ON g.id = t.group_id) AS x
		GROUP BY x.bucket ORDER BY x.bucket;
END
$$;
COMMENT ON FUNCTION tq_internal.bucket_counts() IS 'task groups, and their tasks that are not resolved, of each bucket that has any; reads all tasks';

CREATE FUNCTION tq_internal.has_task(task_id tq.slugid) RETURNS bool
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_id, 'task_id');
	RETURN EXISTS (
		SELECT FROM (SELECT t.queue FROM tq_internal.task t WHERE t.task_id = has_task.task_id
			UNION ALL SELECT l.queue FROM tq_internal.dead_letter l WHERE l.task_id = has_task.task_id) AS x
			JOIN tq_internal.queue q ON q.id = x.queue
		WHERE tq_internal.has_right('status', task_id::text, q.task_queue_id));
END
$$;
COMMENT ON FUNCTION tq_internal.has_task(tq.slugid) IS 'whether this database has that task, or a dead letter of it, and the caller may see it';

CREATE FUNCTION tq_internal.has_task_group(task_group_id tq.slugid) RETURNS bool
	LANGUAGE tq_read AS $$
BEGIN
	PERFORM tq_internal.not_null(task_group_id, 'task_group_id');
	RETURN EXISTS (
		SELECT FROM (SELECT g.queue, g.scheduler_id FROM tq_internal.task_group g WHERE g.task_group_id = has_task_group.task_group_id
			UNION ALL SELECT t.queue, t.scheduler_id FROM tq_internal.task t WHERE t.task_id = has_task_group.task_group_id AND t.group_id IS NULL) AS x
			JOIN tq_internal.queue q ON q.id = x.queue
		WHERE tq_internal.has_right('list-task-group', task_group_id::text, q.task_queue_id)
			OR tq_internal.has_scope('queue:join-in-queue:' || q.task_queue_id) OR CASE WHEN x.scheduler_id IS NOT NULL THEN tq_internal.has_scope('queue:scheduler-id:' || x.scheduler_id) END
			OR EXISTS (SELECT FROM generate_series(1, 7) AS p WHERE tq_internal.has_scope(format('queue:create-task:%s:%s', tq_internal.priority_name(p), q.task_queue_id))));
END
$$;
COMMENT ON FUNCTION tq_internal.has_task_group(tq.slugid) IS 'whether this database has that task group, and the caller may see or join it';

