/*
 * view_choice.c
 *	  Lets a role that may read all rows of a view read them as before.
 *
 * A view tq.x is SELECT * FROM visible_x(), which returns the rows that the
 * caller may see.  Its support function replaces the call, when a query is
 * planned, by one of all_x() if the caller may read the view all_x.  The planner
 * puts the body of either into the query, so that the plan of an administrator
 * has no barrier, and that of others has one (src/sql/views.sql).
 *
 * What is decided here gives no right: the executor checks that the caller may
 * read the view that the plan has.  A plan is for the role for which it was
 * made, and a cached one is made again for another role.  One that is cached
 * while the role loses its membership raises "permission denied" until it is
 * made again.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"

/* Before 16 it has a function without a prototype. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "nodes/pathnodes.h"
#pragma GCC diagnostic pop

#include "nodes/supportnodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(tq_choose_rows);

#define VISIBLE "visible_"

/* Returns a call of that function, which has no arguments, for the same rows. */
static Node *
call_instead(const FuncExpr *call, const char *name, Oid schema)
{
	FuncExpr *other = copyObject((FuncExpr *) call);
	oidvector *no_arguments = buildoidvector(NULL, 0);

	other->funcid = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
									CStringGetDatum(name),
									PointerGetDatum(no_arguments),
									ObjectIdGetDatum(schema));
	return OidIsValid(other->funcid) ? (Node *) other : NULL;
}

/* Returns a call of all_x() if the caller may read that view, or NULL. */
static Node *
call_for_all(const FuncExpr *call)
{
	Oid schema = get_func_namespace(call->funcid);
	char *name = psprintf("all_%s",
						  get_func_name(call->funcid) + strlen(VISIBLE));
	Oid view = get_relname_relid(name, schema);

	if (!OidIsValid(view) ||
		pg_class_aclcheck(view, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		return NULL;
	return call_instead(call, name, schema);
}

/*
 * choose_rows(internal) -> internal: planner support function of visible_x()
 *
 * visible_x() is PARALLEL RESTRICTED, so that the planner may still make a
 * parallel plan for a caller that may read all_x.  For others there is none,
 * because what looks their scopes up may have to read them.
 */
Datum
tq_choose_rows(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = (void *) PG_GETARG_POINTER(0);
	PlannerGlobal *plan;
	Node *call;

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL)
		PG_RETURN_POINTER(NULL);
	plan = request->root->glob;
	plan->dependsOnRole = true;
	call = call_for_all(request->fcall);
	if (call == NULL)
		plan->parallelModeOK = plan->parallelModeNeeded = false;
	PG_RETURN_POINTER(call);
}
