/*
 * group_filter.c
 *	  Lets filters by task_group_id of a view use the indexes of
 *	  tq_internal.task.
 *
 * A task has the number of its group, or none if the group is named after the
 * task.  So the id of the group, as views show it, is computed, and a
 * comparison of it with a constant would read all tasks.  The planner asks the
 * support function of "=", which splits the comparison into one by the id of the
 * task and one by the number of the group:
 *
 *		group_slug(group_id, task_id) = X
 *	->	(group_id IS NULL AND task_id = X) OR group_id = group_number(X)
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "../storage/tasks.h"

PG_FUNCTION_INFO_V1(tq_group_slug_sql);
PG_FUNCTION_INFO_V1(tq_group_number);
PG_FUNCTION_INFO_V1(tq_slugid_eq_support);

/*
 * group_slug(group_id bigint, task_id slugid) -> slugid: the id of the group of
 * a task; group_id is NULL for the group that is named after the task
 */
Datum
tq_group_slug_sql(PG_FUNCTION_ARGS)
{
	TqSlug *slug;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	slug = palloc(sizeof(TqSlug));
	if (!tq_group_read_slug(PG_GETARG_INT64(0), GetActiveSnapshot(), slug))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(slug);
}

/*
 * group_number(task_group_id slugid) -> bigint: the number of a group, NULL if
 * it has no row
 */
Datum
tq_group_number(PG_FUNCTION_ARGS)
{
	int64 number = tq_group_number_of(PG_GETARG_TQ_SLUG_P(0),
									  GetActiveSnapshot());

	if (number == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(number);
}

/* Returns whether an expression is a call of group_slug(). */
static bool
is_group_slug(Node *node)
{
	FuncExpr *call = (FuncExpr *) node;
	FmgrInfo function;

	if (!IsA(node, FuncExpr) || list_length(call->args) != 2)
		return false;
	fmgr_info(call->funcid, &function);
	return function.fn_addr == tq_group_slug_sql;
}

/* Returns whether a value is the same for all rows of a query. */
static bool
is_fixed(Node *value)
{
	return IsA(value, Const) || IsA(value, Param);
}

/* Returns "left = right", both of this type. */
static Expr *
make_equal(Oid type, Node *left, Node *right)
{
	return make_opclause(lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr,
						 BOOLOID, false, copyObject((Expr *) left),
						 copyObject((Expr *) right), InvalidOid, InvalidOid);
}

/*
 * Returns "group_number(slug)".  Looks the function up without a check of
 * rights, because a reader of a view has none on its schema.
 */
static Node *
make_number(Oid type, Node *slug)
{
	Oid schema = get_namespace_oid(TQ_SCHEMA, false);
	Oid function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
								   CStringGetDatum("group_number"),
								   PointerGetDatum(buildoidvector(&type, 1)),
								   ObjectIdGetDatum(schema));

	if (!OidIsValid(function))
		elog(ERROR, "function tq_internal.group_number does not exist");
	return (Node *) makeFuncExpr(function, INT8OID, list_make1(slug),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* Returns the conditions that "group_slug(group_id, task_id) = slug" means. */
static Node *
split(FuncExpr *call, Node *slug)
{
	Oid type = call->funcresulttype;
	Node *group_id = linitial(call->args);
	NullTest *has_own = makeNode(NullTest);
	Expr *in_own;
	Expr *in_other;

	has_own->arg = copyObject((Expr *) group_id);
	has_own->nulltesttype = IS_NULL;
	has_own->location = -1;
	in_own = make_andclause(
		list_make2(has_own, make_equal(type, lsecond(call->args), slug)));
	in_other = make_equal(INT8OID, group_id, make_number(type, slug));
	return (Node *) make_orclause(list_make2(in_own, in_other));
}

/* slugid_eq_support(internal) -> internal: planner support function */
Datum
tq_slugid_eq_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = (void *) PG_GETARG_POINTER(0);
	Node *left;
	Node *right;

	if (!IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(NULL);
	left = linitial(request->fcall->args);
	right = lsecond(request->fcall->args);
	if (is_group_slug(left) && is_fixed(right))
		PG_RETURN_POINTER(split((FuncExpr *) left, right));
	if (is_group_slug(right) && is_fixed(left))
		PG_RETURN_POINTER(split((FuncExpr *) right, left));
	PG_RETURN_POINTER(NULL);
}
