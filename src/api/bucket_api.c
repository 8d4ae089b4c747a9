/*
 * bucket_api.c
 *	  SQL function that waits for a change of buckets (doc/spec/policy.md 16).
 */
#include "postgres.h"

#include "utils/xid8.h"

#include "api.h"

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
