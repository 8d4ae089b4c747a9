/*
 * queue_settings_api.c
 *	  SQL functions that set task queues, pause and resume them
 *	  (doc/spec/policy.md 6).
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/jsonb.h"

#include "../operations/operations.h"
#include "../rules/rules.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_set_queue);
PG_FUNCTION_INFO_V1(tq_pause_queue);
PG_FUNCTION_INFO_V1(tq_resume_queue);
PG_FUNCTION_INFO_V1(tq_get_queue_settings);

/*
 * set_queue(task_queue_id text, settings jsonb) -> all settings of the queue.
 * Keys are merged with those that it has; null removes one.
 */
Datum
tq_set_queue(PG_FUNCTION_ARGS)
{
	char *queue = tq_arg_task_queue_id(fcinfo, 0);
	Jsonb *changes = tq_arg_jsonb(fcinfo, 1, "settings");
	Jsonb *settings;

	tq_call_begin(false);
	tq_access_require(tq_need("queue:set-queue:%s", queue));
	settings = tq_spi_keep(tq_queue_set(queue, changes));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(settings);
}

static Jsonb *
pause_or_resume(FunctionCallInfo fcinfo, bool pause)
{
	char *queue = tq_arg_task_queue_id(fcinfo, 0);
	Jsonb *settings;

	tq_call_begin(false);
	tq_access_require(tq_need("queue:pause-queue:%s", queue));
	settings = tq_spi_keep(tq_queue_pause(queue, pause));
	tq_audit_operator(fcinfo);
	tq_call_end();
	return settings;
}

/* pause_queue(task_queue_id text) -> all settings of the queue */
Datum
tq_pause_queue(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(pause_or_resume(fcinfo, true));
}

/* resume_queue(task_queue_id text) -> all settings of the queue */
Datum
tq_resume_queue(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(pause_or_resume(fcinfo, false));
}

/* get_queue_settings(task_queue_id text) -> as they were given; {}: none */
Datum
tq_get_queue_settings(PG_FUNCTION_ARGS)
{
	char *queue = tq_arg_task_queue_id(fcinfo, 0);
	Jsonb *settings;

	tq_call_begin(true);
	tq_access_require(tq_need("queue:get-task-queue:%s", queue));
	settings = tq_spi_keep(tq_queue_get_settings(queue));
	tq_call_end();
	PG_RETURN_JSONB_P(settings);
}
