/*
 * released.c
 *	  C functions of released SQL that this library has no longer.
 *
 * After a package was installed and before ALTER EXTENSION tq UPDATE the SQL of a
 * release calls them, and a restore may create it.  Each raises the error of
 * version.c, in place of one of the server that names a missing function.  A function
 * whose arguments change gets another name in C, with the version from which it is
 * so, and its old name is here: a value is never read as one of another type.
 * test/upgrade/run calls every function of a release with this library.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "utils/syscache.h"

#include "api.h"

#define TQ_GONE(name)                                                         \
	PG_FUNCTION_INFO_V1(name);                                                \
	Datum name(PG_FUNCTION_ARGS)                                              \
	{                                                                         \
		return refuse_gone(fcinfo, #name);                                    \
	}

/* Returns whether SQL declares a function in C with that name, now. */
static bool
is_declared(Oid function, const char *name)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool is_null;
	bool found;

	if (!HeapTupleIsValid(tuple))
		return false;
	found = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId &&
			strcmp(TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple,
													   Anum_pg_proc_prosrc,
													   &is_null)),
				   name) == 0;
	ReleaseSysCache(tuple);
	return found;
}

/*
 * Raises the error of a function that went.  A call that has waited for the update
 * is of a function that SQL has replaced: the same statement calls that one now.
 */
static Datum
refuse_gone(FunctionCallInfo fcinfo, const char *name)
{
	tq_call_begin_idle(); /* raises it for SQL of another version */
	if (!is_declared(fcinfo->flinfo->fn_oid, name))
		ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						errmsg("extension tq was updated"),
						errdetail("It was while this call began."),
						errhint("Try the transaction again.")));
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("function %s() is not in this version of tq", name),
					errdetail("No function of this version calls it."),
					errhint("Drop the function that was declared with it.")));
}

/* clang-format off */
TQ_GONE(tq_artifact_info)
TQ_GONE(tq_bind)
TQ_GONE(tq_bucket_counts)
TQ_GONE(tq_buckets)
TQ_GONE(tq_cancel_group_callbacks)
TQ_GONE(tq_claim_lines)
TQ_GONE(tq_claim_lines_of_queues)
TQ_GONE(tq_claim_task)
TQ_GONE(tq_claim_work)
TQ_GONE(tq_claim_work_of_queues)
TQ_GONE(tq_conductor_policy)
TQ_GONE(tq_conductor_status)
TQ_GONE(tq_cron_jobs)
TQ_GONE(tq_cron_time_zone)
TQ_GONE(tq_declare_worker)
TQ_GONE(tq_fire_cron)
TQ_GONE(tq_get_artifact)
TQ_GONE(tq_get_latest_artifact)
TQ_GONE(tq_get_provisioner)
TQ_GONE(tq_get_queue_settings)
TQ_GONE(tq_get_task_queue)
TQ_GONE(tq_get_worker)
TQ_GONE(tq_get_worker_type)
TQ_GONE(tq_grant_queue)
TQ_GONE(tq_grant_scopes)
TQ_GONE(tq_group_dot)
TQ_GONE(tq_group_gantt_sql)
TQ_GONE(tq_group_mermaid)
TQ_GONE(tq_group_tree)
TQ_GONE(tq_has_task)
TQ_GONE(tq_has_task_group)
TQ_GONE(tq_health)
TQ_GONE(tq_install_cron_upkeep)
TQ_GONE(tq_latest_artifact_info)
TQ_GONE(tq_list_artifacts)
TQ_GONE(tq_list_claimed_tasks)
TQ_GONE(tq_list_dead_letters)
TQ_GONE(tq_list_latest_artifacts)
TQ_GONE(tq_list_pending_tasks)
TQ_GONE(tq_list_provisioners)
TQ_GONE(tq_list_task_queues)
TQ_GONE(tq_list_worker_types)
TQ_GONE(tq_list_workers)
TQ_GONE(tq_maintenance_activity_shown)
TQ_GONE(tq_messages)
TQ_GONE(tq_pause_cron)
TQ_GONE(tq_pause_queue)
TQ_GONE(tq_pending_tasks)
TQ_GONE(tq_published_id_shown)
TQ_GONE(tq_quarantine_worker)
TQ_GONE(tq_queue_counts)
TQ_GONE(tq_reclaim_task)
TQ_GONE(tq_report_exception)
TQ_GONE(tq_report_failed)
TQ_GONE(tq_report_html)
TQ_GONE(tq_resolve_and_claim)
TQ_GONE(tq_resume_cron)
TQ_GONE(tq_resume_queue)
TQ_GONE(tq_revoke_queue)
TQ_GONE(tq_revoke_scopes)
TQ_GONE(tq_rotate_secret)
TQ_GONE(tq_run_cron_now)
TQ_GONE(tq_schedule_cron)
TQ_GONE(tq_set_buckets)
TQ_GONE(tq_set_queue)
TQ_GONE(tq_status_row)
TQ_GONE(tq_subscribe)
TQ_GONE(tq_taskbroker_policy)
TQ_GONE(tq_taskbroker_status)
TQ_GONE(tq_unbind)
TQ_GONE(tq_unschedule_cron)
TQ_GONE(tq_unsubscribe)
TQ_GONE(tq_wait_for_task)
TQ_GONE(tq_wait_for_task_group)
TQ_GONE(tq_worker_removed)
/* clang-format on */

PG_FUNCTION_INFO_V1(tq_is_awaited);

/*
 * is_awaited(xid xid8) -> bool, of 0.1.0: a dump works with any library, and has
 * all messages then
 */
Datum
tq_is_awaited(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		tq_error_null("xid");
	PG_RETURN_BOOL(true);
}
