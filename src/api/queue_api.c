/*
 * queue_api.c
 *	  Functions about queues: counts (doc/spec/taskcluster.md 2.16), settings,
 *	  buckets.
 */
#include "postgres.h"

#include "utils/xid8.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_task_queue_counts);

/*
 * task_queue_counts(task_queue_id text) -> {..., pendingTasks, claimedTasks}
 */
Datum
tq_task_queue_counts(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	TimestampTz now = tq_clock_now();
	int32 queue;
	Jsonb *result;

	tq_call_begin(true);
	tq_access_require(tq_need_all(2, tq_need("queue:pending-count:%s", name),
								  tq_need("queue:claimed-count:%s", name)));
	queue = tq_queue_find(name);
	result = tq_spi_keep(
		tq_counts_json(name, queue == 0 ? 0 : tq_count_pending(queue, now),
					   queue == 0 ? 0 : tq_count_claimed(queue, now)));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/* ---- settings: what src/sql/settings.sql calls (doc/spec/policy.md 6) ---- */

PG_FUNCTION_INFO_V1(tq_sql_check_settings);
PG_FUNCTION_INFO_V1(tq_sql_settings_changed);

static void
queue_settings_refuse(const char *queue_name, const char *fault)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid settings of queue \"%s\"", queue_name),
					errdetail("They %s.", fault),
					errhint("%s", tq_settings_hint(false, fault))));
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

/* ---- buckets ---- */

PG_FUNCTION_INFO_V1(tq_buckets_settled);

/*
 * buckets_settled(xid xid8) -> whether every transaction has ended that may have
 * used the buckets before set_buckets() returned that xid; it is asked again
 * until it is.  TQ409 if that transaction was rolled back (16.4).
 */
Datum
tq_buckets_settled(PG_FUNCTION_ARGS)
{
	bool is_settled;

	if (PG_ARGISNULL(0))
		tq_error_null("xid");
	tq_call_begin(false);
	tq_access_require(tq_need("*"));
	is_settled = tq_shard_is_settled(PG_GETARG_FULLTRANSACTIONID(0));
	tq_call_end();
	PG_RETURN_BOOL(is_settled);
}
