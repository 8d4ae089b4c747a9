/*
 * queue_settings_api.c
 *	  What the bodies of functions about settings of queues call
 *	  (src/sql/settings.sql, doc/spec/policy.md 6).
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "../lifecycle/lifecycle.h"

PG_FUNCTION_INFO_V1(tq_sql_check_settings);
PG_FUNCTION_INFO_V1(tq_sql_settings_changed);

static void
queue_settings_refuse(const char *queue_name, const char *fault)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid settings of queue \"%s\"", queue_name),
					errdetail("They %s.", fault),
					errhint("Correct them; a key that is null is removed.")));
}

/* Checks the default policy as that of a task with its retries. */
static void
check_policy(const char *queue_name, const Jsonb *policy)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(policy, &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy,
								given.retries == TQ_OFF ? 0 : given.retries,
								tq_max_runs);
	if (fault != NULL)
		queue_settings_refuse(
			queue_name,
			psprintf("must have a \"policy\" that is one, which %s", fault));
}

static void
queue_settings_check(const char *queue_name, const Jsonb *settings)
{
	TqGivenSettings given;
	const char *fault = tq_queue_settings_parse(settings, &given);

	if (fault != NULL)
		queue_settings_refuse(queue_name, fault);
	if (given.policy != NULL)
		check_policy(queue_name, given.policy);
}

/* check_settings(task_queue_id text, settings jsonb): raises TQ400 */
Datum
tq_sql_check_settings(PG_FUNCTION_ARGS)
{
	queue_settings_check(text_to_cstring(PG_GETARG_TEXT_PP(0)),
						 PG_GETARG_JSONB_P(1));
	PG_RETURN_VOID();
}

/* settings_changed(queue int): the limits, gates and waiters of a queue */
Datum
tq_sql_settings_changed(PG_FUNCTION_ARGS)
{
	int32 queue = PG_GETARG_INT32(0);
	TimestampTz now = tq_clock_now();

	tq_spi_begin_part();
	tq_limits_begin(queue);
	tq_gates_settings_changed(queue, now);
	tq_request_cycle(now);
	tq_wait_note_opened(queue);
	tq_spi_end_part();
	PG_RETURN_VOID();
}
