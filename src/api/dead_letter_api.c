/*
 * dead_letter_api.c
 *	  SQL functions on dead letters (doc/spec/policy.md 2, 10.13).
 *
 * Raises TQ404 for a task that has no dead letter.  A queue that does not exist
 * has none either, which is no error.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_redrive);
PG_FUNCTION_INFO_V1(tq_redrive_queue);
PG_FUNCTION_INFO_V1(tq_discard_dead_letter);

/* redrive(task_id slugid) -> status of the task that is to run */
Datum
tq_redrive(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *status;

	tq_call_begin(false);
	status = tq_spi_keep(
		tq_status_of(tq_dead_letter_redrive(task_id, tq_clock_now())));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* redrive_queue(task_queue_id text, max int) -> how many were redriven */
Datum
tq_redrive_queue(PG_FUNCTION_ARGS)
{
	char *queue_name = tq_arg_task_queue_id(fcinfo, 0);
	int max = tq_arg_max(fcinfo, 1);
	int32 queue;
	int64 n = 0;

	tq_call_begin(false);
	tq_require_dead_letters(queue_name);
	queue = tq_queue_find(queue_name);
	if (queue != 0)
		n = tq_dead_letters_redrive(queue, max, tq_clock_now());
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_INT64(n);
}

/* discard_dead_letter(task_id slugid) */
Datum
tq_discard_dead_letter(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	tq_call_begin(false);
	tq_dead_letter_discard(task_id);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}
