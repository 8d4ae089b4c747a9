/*
 * columns.h
 *	  SQL that several tables share.
 */
#ifndef TQ_COLUMNS_H
#define TQ_COLUMNS_H

#define TQ_DEFAULT_SCHEDULER "-"
#define TQ_DEFAULT_PROJECT "none"

/*
 * SQL for the row of tq_internal.pending that belongs to a task.  A first run that
 * became pending when its task was created has the task's id as seq, so that
 * the index on (queue, priority, seq) finds it.  The index on task has entries
 * only for the other rows.
 */
#define TQ_PENDING_OF(task)                                                                    \
	"(SELECT py.* FROM tq_internal.task px JOIN tq_internal.pending py ON py.queue = px.queue" \
	" AND py.priority = px.priority AND py.seq = px.id WHERE px.id = " task                    \
	" UNION ALL SELECT py.* FROM tq_internal.pending py WHERE py.task = " task                 \
	" AND py.seq <> py.task)"

#endif /* TQ_COLUMNS_H */
