/*
 * run_log.c
 *	  Lines of the server's log about single runs: those that have waited for
 *	  long, and those that failed (doc/spec/taskcluster.md 8.3).
 *
 * A line has pairs key=value, and a text is in quotes, in which a quote, a
 * backslash and a control character are escaped.  So no text that a client gives
 * makes another line, or another pair.  What a line says has happened in a
 * transaction that may still be rolled back.
 *
 * Both settings are off by default.  A caller compares the setting before it
 * calls; no lock is taken but that of the counters, in share mode.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

#define TEXT_MAX 200 /* bytes that are shown of a text */

/* Adds a text up to the end of its first line: key="text". */
static void
add_text(StringInfo line, const char *key, const char *text)
{
	int length = pg_mbcliplen(text, strcspn(text, "\r\n"), TEXT_MAX);

	appendStringInfo(line, " %s=\"", key);
	for (int i = 0; i < length; i++)
	{
		unsigned char c = text[i];

		if (c < ' ' || c == 0x7F)
			appendStringInfo(line, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			appendStringInfo(line, "\\%c", c);
		else
			appendStringInfoChar(line, (char) c);
	}
	appendStringInfoChar(line, '"');
}

static void
add_run(StringInfo line, int32 queue, const TqSlug *task_id, int run_id)
{
	add_text(line, "queue", tq_queue_name(queue));
	appendStringInfo(line, " task=%s run=%d", tq_slug_text(task_id), run_id);
}

/* Writes a line, for the log only, and without the statement. */
static void
write_line(const char *event, const StringInfoData *pairs)
{
	ereport(LOG_SERVER_ONLY, (errmsg("tq: event=%s%s", event, pairs->data),
							  errhidestmt(true), errhidecontext(true)));
	pfree(pairs->data);
}

/* Says of claimed runs which have waited for longer than tq.log_min_wait. */
void
tq_run_log_claimed(int32 queue, const char *group, const char *worker,
				   const TqClaimed *claimed, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		int64 us = now - claimed[i].claimable;
		StringInfoData line;

		if (us / 1000 < tq_log_min_wait)
			continue;
		initStringInfo(&line);
		add_run(&line, queue, &claimed[i].task_id, claimed[i].run_id);
		appendStringInfo(&line, " seconds=%.3f", (double) us / USECS_PER_SEC);
		add_text(&line, "worker_group", group);
		add_text(&line, "worker_id", worker);
		write_line("waited", &line);
	}
}

/* Returns whether the end of a run for this reason is a failure. */
static bool
is_failure(TqResolved reason)
{
	return tq_resolved_state(reason) != TQ_STATE_COMPLETED &&
		   reason != TQ_RESOLVED_CANCELED &&
		   reason != TQ_RESOLVED_CANCELED_BY_WORKER &&
		   reason != TQ_RESOLVED_SUPERSEDED;
}

/* Returns the text of an error, whatever JSON that is. */
static const char *
text_of_error(Jsonb *error)
{
	JsonbValue *message = JB_ROOT_IS_OBJECT(error)
							  ? tq_json_get(error, "message")
							  : NULL;

	return message != NULL && message->type == jbvString
			   ? tq_json_string_of(message)
			   : tq_json_clip(&error->root);
}

/*
 * Says that a run has failed, unless a line about its queue was written less than
 * tq.log_failures ago; then the next line counts it.
 */
void
tq_run_log_failed(int32 queue, const TqSlug *task_id, const TqRun *run,
				  bool is_retried, Jsonb *error)
{
	uint32 left_out;
	StringInfoData line;

	if (!is_failure(run->reason) ||
		!tq_counts_log_due(tq_locked_table, queue, tq_log_failures, &left_out))
		return;
	initStringInfo(&line);
	add_run(&line, queue, task_id, run->run_id);
	appendStringInfo(&line, " reason=%s retried=%s",
					 tq_resolved_name(run->reason),
					 is_retried ? "true" : "false");
	if (error != NULL)
		add_text(&line, "error", text_of_error(error));
	if (left_out > 0)
		appendStringInfo(&line, " left_out=%u", left_out);
	write_line("failed", &line);
}
