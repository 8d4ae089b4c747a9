/*
 * columns.h
 *	  The columns of tables, and SQL that several tables share.
 *
 * Each list has the columns of one table in their order in tables.sql, which
 * .ci/checks/columns compares: table, column, type, field of the struct.  The
 * numbers of the columns, and what reads and writes a row, are made of it.
 * The type says how a value is kept: tq_row_TYPE() and tq_put_TYPE() in
 * rows.h.  Columns of the type `own` are read and written one by one, and have
 * no field.
 *
 * A reader reads the rows that an index scan finds, and those of a statement
 * that selects all columns of the table.
 */
#ifndef TQ_COLUMNS_H
#define TQ_COLUMNS_H

/*
 * Numbers the columns of a table, from 1: Anum_table_column.  `table` is the
 * name of the table or its last word: that of task_group must be `group`,
 * because Anum_task_group_id is the column group_id of task.
 */
#define TQ_NUMBERS(COLUMNS, table)                                            \
	enum                                                                      \
	{                                                                         \
		Anum_##table##_none,                                                  \
		COLUMNS(TQ_NUMBER, table) Natts_##table##_1,                          \
		Natts_##table = Natts_##table##_1 - 1                                 \
	}
#define TQ_NUMBER(table, column, type, field) Anum_##table##_##column,

/* Read a column of `slot` into `row`, and write it. */
#define TQ_GET(table, column, type, field)                                    \
	row->field = tq_row_##type(slot, Anum_##table##_##column);
#define TQ_PUT(table, column, type, field)                                    \
	tq_put_##type(slot, Anum_##table##_##column, row->field);

/* Defines a TqReader, which reads these columns into a struct. */
#define TQ_READER(name, type, COLUMNS, table)                                 \
	static void name(TupleTableSlot *slot, void *into)                        \
	{                                                                         \
		type *row = into;                                                     \
                                                                              \
		COLUMNS(TQ_GET, table)                                                \
	}

#define TQ_TASK_TIMES(X, t)                                                   \
	X(t, id, int64, id)                                                       \
	X(t, created, time, created)                                              \
	X(t, deadline, time, defined_deadline)                                    \
	X(t, expires, time, expires)
#define TQ_TASK_CORE(X, t)                                                    \
	X(t, delay, int64_or_null, delay)                                         \
	X(t, group_id, int64_or_null, group_id)                                   \
	X(t, queue, int32, queue)                                                 \
	X(t, policy, int32_or_null, policy)                                       \
	X(t, priority, int16, priority)                                           \
	X(t, retries, int16, retries)                                             \
	X(t, all_resolved, bool, all_resolved)                                    \
	X(t, task_id, slug, task_id)                                              \
	X(t, expires_given, bool_or_null, expires_given)
#define TQ_TASK_LARGE(X, t)                                                   \
	X(t, routes, varlena, routes)                                             \
	X(t, scopes, varlena, scopes)                                             \
	X(t, payload, varlena, payload)                                           \
	X(t, metadata, varlena, metadata)                                         \
	X(t, tags, varlena, tags)                                                 \
	X(t, extra, varlena, extra)
#define TQ_TASK_COLUMNS(X, t)                                                 \
	TQ_TASK_TIMES(X, t)                                                       \
	X(t, effective_deadline, own, deadline)                                   \
	TQ_TASK_CORE(X, t)                                                        \
	X(t, scheduler_id, own, scheduler_id)                                     \
	X(t, project_id, own, project_id)                                         \
	X(t, dependencies, own, dependencies)                                     \
	TQ_TASK_LARGE(X, t)                                                       \
	X(t, xid, own, )                                                          \
	X(t, first_priority, own, )

#define TQ_DEPARTED_TASK(X, t)                                                \
	X(t, created, time, named.task.created)                                   \
	X(t, deadline, time, named.task.defined_deadline)                         \
	X(t, effective_deadline, time, named.task.deadline)                       \
	X(t, expires, time, named.task.expires)                                   \
	X(t, queue, int32, named.task.queue)                                      \
	X(t, priority, int16, named.task.priority)                                \
	X(t, retries, int16, named.task.retries)                                  \
	X(t, task_id, slug, named.task.task_id)                                   \
	X(t, task_group_id, slug, named.group_slug)                               \
	X(t, scheduler_id, scheduler, named.scheduler_id)
#define TQ_DEPARTED_COLUMNS(X, t)                                             \
	X(t, id, own, )                                                           \
	X(t, since, own, )                                                        \
	TQ_DEPARTED_TASK(X, t)                                                    \
	X(t, project_id, own, )                                                   \
	X(t, routes, own, )                                                       \
	X(t, tags, own, )                                                         \
	X(t, xid, own, )                                                          \
	X(t, first_priority, own, )

#define TQ_RUN_COLUMNS(X, t)                                                  \
	X(t, task, int64, task)                                                   \
	X(t, scheduled, time, scheduled)                                          \
	X(t, started, time, started)                                              \
	X(t, taken_until, time, taken_until)                                      \
	X(t, resolved, time, resolved)                                            \
	X(t, worker, int32_or_null, worker)                                       \
	X(t, run_id, int16, run_id)                                               \
	X(t, state, int16, state)                                                 \
	X(t, reason_created, int16, created)                                      \
	X(t, reason_resolved, int16, reason)                                      \
	X(t, retries_left, int16, retries_left)                                   \
	X(t, by_claim_task, bool, by_claim_task)                                  \
	X(t, has_detail, bool, has_detail)

#define TQ_TASK_GROUP_COLUMNS(X, t)                                           \
	X(t, id, int64, id)                                                       \
	X(t, task_group_id, slug, task_group_id)                                  \
	X(t, scheduler_id, scheduler, scheduler_id)                               \
	X(t, expires, time, expires)                                              \
	X(t, sealed, time, sealed)                                                \
	X(t, queue, int32, queue)                                                 \
	X(t, name, text, name)

/* A run that waits in pending or delayed. */
#define TQ_WAITING_RUN(X, t)                                                  \
	X(t, run_id, int16, run_id)                                               \
	X(t, retries_left, int16, retries_left)                                   \
	X(t, reason_created, int16, created)                                      \
	X(t, has_detail, bool, has_detail)
#define TQ_WAITING(X, t)                                                      \
	X(t, task, int64, task)                                                   \
	X(t, scheduled, time, scheduled)                                          \
	X(t, queue, int32, queue)                                                 \
	X(t, priority, int16, priority)                                           \
	TQ_WAITING_RUN(X, t)
#define TQ_PENDING_COLUMNS(X, t)                                              \
	X(t, seq, int64, seq)                                                     \
	TQ_WAITING(X, t)
#define TQ_DELAYED_COLUMNS(X, t)                                              \
	X(t, visible_at, time, visible_at)                                        \
	TQ_WAITING(X, t)                                                          \
	X(t, group_id, int64_or_null, group_id)

#define TQ_RUN_DETAIL_TIMES(X, t)                                             \
	X(t, visible_at, time, budget.visible_at)                                 \
	X(t, pending_until, time, budget.pending_until)
#define TQ_RUN_DETAIL_BUDGET(X, t)                                            \
	X(t, attempt, int16, budget.attempt)                                      \
	X(t, lost_retries_left, int16, budget.lost_retries_left)                  \
	X(t, retry_delay, int64, retry_delay)
#define TQ_RUN_DETAIL_COLUMNS(X, t)                                           \
	X(t, task, int64, task)                                                   \
	TQ_RUN_DETAIL_TIMES(X, t)                                                 \
	X(t, started, own, started)                                               \
	X(t, worker, own, worker)                                                 \
	X(t, run_id, int16, run_id)                                               \
	TQ_RUN_DETAIL_BUDGET(X, t)                                                \
	X(t, error, own, error)                                                   \
	X(t, result, own, result)                                                 \
	X(t, reported, own, reported)                                             \
	X(t, done, own, done)                                                     \
	X(t, total, own, total)                                                   \
	X(t, message, own, message)

#define TQ_POSTPONED_COLUMNS(X, t)                                            \
	X(t, task, int64, task)                                                   \
	X(t, due, time, due)                                                      \
	X(t, origin, time, origin)                                                \
	X(t, since, time, since)                                                  \
	X(t, failures, int32, failures)                                           \
	X(t, step, text, step)                                                    \
	X(t, error, text, error)

#define TQ_WORKER_COLUMNS(X, t)                                               \
	X(t, id, own, )                                                           \
	X(t, queue, own, )                                                        \
	X(t, worker_group, own, )                                                 \
	X(t, worker_id, own, )                                                    \
	X(t, expires, own, )                                                      \
	X(t, first_claim, own, )                                                  \
	X(t, last_date_active, own, )                                             \
	X(t, quarantine_until, own, )                                             \
	X(t, quarantine_details, own, )                                           \
	X(t, recent_tasks, own, )                                                 \
	X(t, recent_runs, own, )                                                  \
	X(t, retired, own, )                                                      \
	X(t, settled, own, )                                                      \
	X(t, creator, own, )                                                      \
	X(t, capacity, own, )                                                     \
	X(t, version, own, )

#define TQ_DEAD_LETTER_COLUMNS(X, t)                                          \
	X(t, task_id, slug, task_id)                                              \
	X(t, task, int64, task)                                                   \
	X(t, queue, int32, queue)                                                 \
	X(t, failed_at, time, failed_at)                                          \
	X(t, seq, int64, seq)                                                     \
	X(t, reason, int16, reason)                                               \
	X(t, error, varlena, error)                                               \
	X(t, definition, varlena, definition)                                     \
	X(t, runs, varlena, runs)
#define TQ_FAILURE_COLUMNS(X, t)                                              \
	X(t, resolved, time, resolved)                                            \
	X(t, task, int64, task)                                                   \
	X(t, queue, int32, queue)                                                 \
	X(t, state, int16, state)                                                 \
	X(t, run_id, int16, run_id)
#define TQ_ARTIFACT_COLUMNS(X, t)                                             \
	X(t, task, int64, task)                                                   \
	X(t, expires, time, expires)                                              \
	X(t, content_length, length, content_length)                              \
	X(t, run_id, int16, run_id)                                               \
	X(t, storage_type, int16, storage)                                        \
	X(t, present, bool, present)                                              \
	X(t, name, text, name)                                                    \
	X(t, content_type, text, content_type)                                    \
	X(t, details, varlena, details)

#define TQ_TICK_COLUMNS(X, t)                                                 \
	X(t, first_id, int64, first_id)                                           \
	X(t, last_id, int64, last_id)                                             \
	X(t, published, time, published)                                          \
	X(t, unsent, int64_or_null, unsent)                                       \
	X(t, messages, int32, messages)                                           \
	X(t, segments, int32, segments)                                           \
	X(t, segment, int16, segment)                                             \
	X(t, since, datum, since)                                                 \
	X(t, upto, datum, upto)                                                   \
	X(t, part_of, datum, part_of)                                             \
	X(t, xid, xid8, xid)                                                      \
	X(t, timeline, int32, timeline)                                           \
	X(t, after_seq, int64_or_null, after_seq)                                 \
	X(t, upto_seq, int64_or_null, upto_seq)                                   \
	X(t, xids, datum, xids)                                                   \
	X(t, derived, int32_or_null, derived)                                     \
	X(t, low, int64_or_null, creations.low)                                   \
	X(t, open, datum, creations.open)

#define TQ_SECRET_TIMES(X, t)                                                 \
	X(t, since, time, since)                                                  \
	X(t, until, time, until)
#define TQ_SECRET_COLUMNS(X, t)                                               \
	X(t, id, own, )                                                           \
	X(t, secret, own, )                                                       \
	TQ_SECRET_TIMES(X, t)
#define TQ_QUEUE_SETTINGS_COLUMNS(X, t)                                       \
	X(t, queue, int32, queue)                                                 \
	X(t, settings, varlena, settings)                                         \
	X(t, creator, own, )
#define TQ_SHARD_COLUMNS(X, t)                                                \
	X(t, is_only, own, )                                                      \
	X(t, buckets, varlena, buckets)                                           \
	X(t, changed, xid8, changed)                                              \
	X(t, fence, xid8, fence)
#define TQ_GATE_MEMBER_COLUMNS(X, t)                                          \
	X(t, queue, own, )                                                        \
	X(t, kind, own, )                                                         \
	X(t, key, own, )                                                          \
	X(t, state, own, )                                                        \
	X(t, priority, own, )                                                     \
	X(t, task, own, )
#define TQ_TASK_KEY_COLUMNS(X, t)                                             \
	X(t, task, int64, task)                                                   \
	X(t, kind, int16, kind)                                                   \
	X(t, key, text, key)
#define TQ_UNIQUE_KEY_COLUMNS(X, t)                                           \
	X(t, queue, int32, queue)                                                 \
	X(t, key, text, key)                                                      \
	X(t, task, int64, task)
#define TQ_FOREIGN_DEPENDENCY_COLUMNS(X, t)                                   \
	X(t, required, int64, required)                                           \
	X(t, dependent, int64, dependent)                                         \
	X(t, queue, int32, queue)                                                 \
	X(t, from_run, int16, from_run)                                           \
	X(t, all_resolved, bool, all_resolved)                                    \
	X(t, settled, bool, settled)

#define TQ_GROUP_CALLBACK_COLUMNS(X, t)                                       \
	X(t, id, int64, id)                                                       \
	X(t, registered, time, registered)                                        \
	X(t, task_group_id, slug, task_group_id)                                  \
	X(t, task_id, slug, task_id)                                              \
	X(t, role, oid, role)                                                     \
	X(t, client, text, client)                                                \
	X(t, definition, varlena, definition)

/* Tables whose columns are read one by one. */
/* clang-format off */
#define TQ_SCOPE_GRANT_COLUMNS(X, t)                                          \
	X(t, role, own, )                                                         \
	X(t, scope, own, )                                                        \
	X(t, queues, own, )                                                       \
	X(t, access, own, )
#define TQ_UNSCHEDULED_COLUMNS(X, t)                                          \
	X(t, task, own, ) X(t, unmet, own, ) X(t, stripes, own, )                 \
	X(t, all_resolved, own, ) X(t, next_run, own, )
#define TQ_DEPENDENCY_COUNTER_COLUMNS(X, t)                                   \
	X(t, task, own, ) X(t, stripe, own, ) X(t, unmet, own, )
#define TQ_DEPENDENCY_COLUMNS(X, t)                                           \
	X(t, required, own, ) X(t, dependent, own, ) X(t, from_run, own, )
#define TQ_CLAIM_TIMER_COLUMNS(X, t)                                          \
	X(t, due, own, ) X(t, seq, own, ) X(t, tasks, own, )
#define TQ_TIMER_COLUMNS(X, t)                                                \
	X(t, due, own, ) X(t, seq, own, ) X(t, kind, own, ) X(t, tasks, own, )
#define TQ_QUEUE_COLUMNS(X, t)                                                \
	X(t, id, own, ) X(t, task_queue_id, own, ) X(t, expires, own, )           \
	X(t, last_date_active, own, ) X(t, retired, own, ) X(t, settled, own, )   \
	X(t, creator, own, )
#define TQ_POLICY_COLUMNS(X, t)                                               \
	X(t, id, own, ) X(t, policy, own, )                                       \
	X(t, retired, own, ) X(t, settled, own, ) X(t, creator, own, )
#define TQ_MESSAGE_COLUMNS(X, t)                                              \
	X(t, xid, own, ) X(t, seq, own, ) X(t, taken_until, own, )                \
	X(t, due, own, ) X(t, worker, own, ) X(t, segment, own, ) X(t, records, own, )             \
	X(t, detail, own, )
#define TQ_SUBSCRIPTION_COLUMNS(X, t)                                         \
	X(t, name, own, ) X(t, acked_id, own, ) X(t, created, own, )              \
	X(t, acked_at, own, ) X(t, lost_before, own, )                            \
	X(t, creator, own, )
/* clang-format on */

#define TQ_DEFAULT_SCHEDULER "-"
#define TQ_DEFAULT_PROJECT "none"

#define tq_row_scheduler(slot, column)                                        \
	tq_row_text_or(slot, column, TQ_DEFAULT_SCHEDULER)

/*
 * SQL for the row of tq_internal.pending that belongs to a task.  A first run
 * that became pending when its task was created has the task's id as seq, so
 * that the index on (queue, priority, seq) finds it.  The index on task has
 * entries only for the other rows.
 *
 * OFFSET 0 makes the planner look up all three columns.  As a plain join, it is
 * as cheap to look up seq alone while the table is nearly empty, and the plan is
 * kept: then each look-up reads the whole index, dead entries included.
 */
#define TQ_PENDING_OF(task)                                                    \
	"(SELECT py.* FROM tq_internal.task px CROSS JOIN LATERAL"                 \
	" (SELECT * FROM tq_internal.pending pz WHERE pz.queue = px.queue"         \
	" AND pz.priority = px.priority AND pz.seq = px.id OFFSET 0) AS py"        \
	" WHERE px.id = " task                                                     \
	" UNION ALL SELECT py.* FROM tq_internal.pending py WHERE py.task = " task \
	" AND py.seq <> py.task)"

#endif /* TQ_COLUMNS_H */
