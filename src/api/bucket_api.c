/*
 * bucket_api.c
 *	  SQL functions about the buckets of a database (doc/spec/policy.md 16).
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/multirangetypes.h"
#include "utils/xid8.h"

#include "../rules/rules.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_set_buckets);
PG_FUNCTION_INFO_V1(tq_buckets);
PG_FUNCTION_INFO_V1(tq_buckets_settled);
PG_FUNCTION_INFO_V1(tq_bucket_counts);
PG_FUNCTION_INFO_V1(tq_has_task);
PG_FUNCTION_INFO_V1(tq_has_task_group);

/*
 * set_buckets(buckets int4multirange) -> xid8 of this transaction.  Makes this
 * database a shard that begins groups in these buckets only, each 0 to 1023;
 * NULL or all 1024: it is none.  TQ400 for others, TQ403 without the scope *
 * (16.2).
 */
Datum
tq_set_buckets(PG_FUNCTION_ARGS)
{
	MultirangeType *ranges = PG_ARGISNULL(0) ? NULL
											 : PG_GETARG_MULTIRANGE_P(0);
	FullTransactionId change;

	tq_call_begin(false);
	tq_access_require(tq_need("*"));
	change = tq_bucket_set(ranges);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_FULLTRANSACTIONID(change);
}

/* buckets() -> int4multirange, as it was set; NULL: not a shard (16.2) */
Datum
tq_buckets(PG_FUNCTION_ARGS)
{
	MultirangeType *ranges;

	tq_call_begin(true);
	ranges = tq_shard_read();
	if (ranges != NULL)
		ranges = tq_spi_keep(ranges);
	tq_call_end();
	if (ranges == NULL)
		PG_RETURN_NULL();
	PG_RETURN_MULTIRANGE_P(ranges);
}

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

/*
 * bucket_counts() -> (bucket int, task_groups bigint, unresolved bigint) of each
 * bucket with groups; reads all tasks (16.5)
 */
Datum
tq_bucket_counts(PG_FUNCTION_ARGS)
{
	TqBucketCount *counts;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:health"));
	counts = tq_shard_counts(&n);
	for (int i = 0; i < n; i++)
	{
		Datum values[] = {Int32GetDatum(counts[i].bucket),
						  Int64GetDatum(counts[i].groups),
						  Int64GetDatum(counts[i].unresolved)};
		bool nulls[lengthof(values)] = {false};

		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	tq_call_end();
	return (Datum) 0;
}

/*
 * has_task(task_id slugid) -> whether this database has that task, or a dead
 * letter of it, which may outlive it (16.5)
 */
Datum
tq_has_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	bool exists;

	tq_call_begin(true);
	exists = tq_task_exists(task_id) || tq_dead_letter_exists(task_id);
	tq_call_end();
	PG_RETURN_BOOL(exists);
}

/* has_task_group(task_group_id slugid) -> the same for a task group (16.5) */
Datum
tq_has_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqGroup group;
	bool exists;

	tq_call_begin(true);
	exists = tq_group_find(slug, &group) != TQ_GROUP_NONE;
	tq_call_end();
	PG_RETURN_BOOL(exists);
}
