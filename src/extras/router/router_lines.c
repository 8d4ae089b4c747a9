/*
 * router_lines.c
 *	  Functions of the extension tq_shard for what goes between a router and its
 *	  shards as text: claims, runs and outcomes (src/api/worker_api.c).
 *
 * Callgrind has counted 1.5 million instructions of a router for a claim and a
 * resolution of 100 tasks.  With a row for each task it was 2.6 million, and
 * with lines whose JSON was text 2.0.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"
#include "utils/tuplestore.h"

#include "router.h"

/*
 * ---- jsonb values whose bytes a shard has sent (src/util/lines.c) ----
 *
 * The server has used the same form since 9.4.  But functions of the server trust
 * a value that is stored, so nothing becomes one here before every length, type,
 * string and number in it is known to be what they expect.  That the keys of an
 * object are in order is not: if they are not, an operator may not find one, and
 * does no harm.
 *
 * Both servers must have one byte order, and one encoding; the caller sees to it.
 */

static bool check_container(const JsonbContainer *container, uint32 size,
							bool is_root);

/*
 * A number is a finite numeric: a length word, a header of one word of 16 bits or
 * of two, and digits to the base of 10000, of which neither the first nor the last
 * is 0.  Without digits it is zero, which has neither a sign nor a weight.
 */
static bool
check_number(const char *data, uint32 size)
{
	const uint16 *words = (const uint16 *) (data + VARHDRSZ);
	uint32 n;
	uint32 header;

	if (size < VARHDRSZ + sizeof(uint16) || size % sizeof(uint16) != 0 ||
		!VARATT_IS_4B_U(data) || VARSIZE(data) != size)
		return false;
	n = (size - VARHDRSZ) / sizeof(uint16);
	if ((words[0] & 0xC000) == 0xC000) /* not a number, or infinite */
		return false;
	header = (words[0] & 0xC000) == 0x8000 ? 1 : 2;
	if (n < header)
		return false;
	for (uint32 i = header; i < n; i++)
		if (words[i] > 9999)
			return false;
	if (n > header)
		return words[header] != 0 && words[n - 1] != 0;
	return header == 1 ? (words[0] & 0x207F) == 0
					   : (words[0] & 0xC000) == 0 && words[1] == 0;
}

/* Checks what is from begin to end; numbers and containers are aligned. */
static bool
check_entry(JEntry entry, const char *data, uint32 begin, uint32 end)
{
	uint32 aligned = INTALIGN(begin);

	if (JBE_ISSTRING(entry))
		return pg_verify_mbstr(GetDatabaseEncoding(), data + begin,
							   end - begin, true);
	if (JBE_ISBOOL(entry) || JBE_ISNULL(entry))
		return begin == end;
	if (aligned > end)
		return false;
	if (JBE_ISNUMERIC(entry))
		return check_number(data + aligned, end - aligned);
	return JBE_ISCONTAINER(entry) &&
		   check_container((const JsonbContainer *) (data + aligned),
						   end - aligned, false);
}

/* Returns whether the header of a container of that many bytes is one. */
static bool
check_header(uint32 header, uint32 size, bool is_root)
{
	uint32 kind = header & ~JB_CMASK;
	uint32 n = header & JB_CMASK;

	if (kind == (JB_FARRAY | JB_FSCALAR))
		return is_root && n == 1 && size >= sizeof(JEntry);
	if (kind == JB_FOBJECT)
		n *= 2;
	else if (kind != JB_FARRAY)
		return false;
	return n <= size / sizeof(JEntry);
}

/*
 * Returns whether these bytes are an array, an object or, as the root, a scalar,
 * and nothing more.  An entry has its length, or where it ends.
 */
static bool
check_container(const JsonbContainer *container, uint32 size, bool is_root)
{
	uint32 n;
	uint32 keys;
	uint32 begin = 0;
	const char *data;

	check_stack_depth();
	if (size < sizeof(uint32) ||
		!check_header(container->header, size - sizeof(uint32), is_root))
		return false;
	keys = JsonContainerIsObject(container) ? JsonContainerSize(container) : 0;
	n = keys + JsonContainerSize(container);
	data = (const char *) &container->children[n];
	size -= data - (const char *) container;
	for (uint32 i = 0; i < n; i++)
	{
		JEntry entry = container->children[i];
		uint32 end = JBE_OFFLENFLD(entry);

		if (!JBE_HAS_OFF(entry))
			end += begin;
		if (end < begin || end > size || (i < keys && !JBE_ISSTRING(entry)) ||
			(JsonContainerIsScalar(container) && JBE_ISCONTAINER(entry)) ||
			!check_entry(entry, data, begin, end))
			return false;
		begin = end;
	}
	return begin == size;
}

/* Returns the value of these bytes; NULL if they are none. */
static Jsonb *
router_jsonb_of_hex(const char *hex)
{
	size_t digits = strlen(hex);
	Jsonb *value = palloc(VARHDRSZ + digits / 2);
	uint32 size = hex_decode(hex, digits, VARDATA(value));

	SET_VARSIZE(value, VARHDRSZ + size);
	return check_container(&value->root, size, true) ? value : NULL;
}

/* ---- lines ---- */

/*
 * Raises an error that claim_work() does not take for a shard that does not
 * answer: this one has claimed tasks, and the caller must learn why it has none
 * of them.
 */
pg_noreturn static void
refuse_answer(const char *what)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
		 errmsg("a shard has answered with invalid %s", what),
		 errhint(
			 "Run ALTER EXTENSION UPDATE on the router and on the shards, so that they have one version of tq.")));
}

/* ---- claims ---- */

/* Reads the columns of tq.claim, but for those that the caller knows. */
static bool
read_claim(TqLines *lines, TqSlug *task_id, Datum *values)
{
	int32 run_id;
	int64 taken_until;

	if (!tq_lines_slug(lines, '\t', task_id) ||
		!tq_lines_int32(lines, '\t', &run_id) ||
		!tq_lines_int64(lines, '\t', &taken_until))
		return false;
	values[0] = PointerGetDatum(task_id);
	values[1] = Int32GetDatum(run_id);
	values[4] = TimestampTzGetDatum(taken_until);
	return true;
}

/* Reads a column of JSON; an empty one is NULL. */
static bool
read_json(TqLines *lines, char ends, Datum *value, bool *is_null)
{
	char *field = tq_lines_field(lines, ends);

	if (field == NULL)
		return false;
	*is_null = *field == '\0';
	if (*field == 'x')
	{
		*value = PointerGetDatum(router_jsonb_of_hex(field + 1));
		return DatumGetPointer(*value) != NULL;
	}
	if (!*is_null)
		*value = DirectFunctionCall1(jsonb_in, CStringGetDatum(field));
	return true;
}

/*
 * Reads the payload and credentials into columns 5 and 6, and the definition and
 * status into two from `last` on.
 */
static bool
read_documents(TqLines *lines, int last, bool has_queue, Datum *values,
			   bool *nulls)
{
	return read_json(lines, '\t', &values[5], &nulls[5]) &&
		   read_json(lines, '\t', &values[6], &nulls[6]) &&
		   read_json(lines, '\t', &values[last], &nulls[last]) &&
		   read_json(lines, has_queue ? '\t' : '\n', &values[last + 1],
					 &nulls[last + 1]);
}

static bool
router_lines_read_queue(TqLines *lines, Datum *value)
{
	char *field = tq_lines_field(lines, '\n');

	if (field != NULL)
		*value = CStringGetTextDatum(field);
	return field != NULL;
}

/*
 * Columns of tq.claim; tq.queue_claim has one more before the definition
 * (src/api/worker_api.c).
 */
#define CLAIM_COLUMNS 9
#define CLAIM_DEFINITION 7

/*
 * Returns the claims that a shard has returned as rows.  This session knows from
 * now on that the tasks are there.
 */
static Datum
claims_of(FunctionCallInfo fcinfo, bool has_queue)
{
	TqLines lines = tq_lines_of(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool nulls[CLAIM_COLUMNS + 1] = {false};
	Datum values[CLAIM_COLUMNS + 1] =
		{[2] = PG_GETARG_DATUM(2), [3] = PG_GETARG_DATUM(3)};

	InitMaterializedSRF(fcinfo, 0);
	while (tq_lines_are_left(&lines))
	{
		TqSlug task_id;

		if (!read_claim(&lines, &task_id, values) ||
			!read_documents(&lines, CLAIM_DEFINITION + has_queue, has_queue,
							values, nulls) ||
			(has_queue &&
			 !router_lines_read_queue(&lines, &values[CLAIM_DEFINITION])))
			refuse_answer("claims");
		tq_router_note_task(&task_id, PG_GETARG_INT32(1));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

#define CLAIM "slugid,int4,text,text,timestamptz,jsonb,jsonb"
#define CLAIMS(queue)                                                         \
	"text, int4, text, text -> setof (" CLAIM queue ",jsonb,jsonb) strict"

/* claims(lines text, shard int, worker_group, worker_id text) -> tq.claim */
TQ_ROUTER_FUNCTION(tq_shard_claims, CLAIMS(""))
{
	return claims_of(fcinfo, false);
}

/* queue_claims(the same) -> tq.queue_claim */
TQ_ROUTER_FUNCTION(tq_shard_queue_claims, CLAIMS(",text"))
{
	return claims_of(fcinfo, true);
}

/* ---- reports ---- */

/* Returns whether an array is a list without NULL. */
static bool
is_list(const ArrayType *array)
{
	return ARR_NDIM(array) <= 1 && !ARR_HASNULL(array);
}

static int
length(const ArrayType *array)
{
	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
}

/*
 * runs(task_ids slugid[], run_ids int[]) -> the runs as lines; NULL if these
 * are not two lists of one length without NULL
 */
TQ_ROUTER_FUNCTION(tq_shard_runs, "slugid[], int4[] -> text strict")
{
	ArrayType *ids = PG_GETARG_ARRAYTYPE_P(0);
	ArrayType *numbers = PG_GETARG_ARRAYTYPE_P(1);
	const TqSlug *slugs = (const TqSlug *) ARR_DATA_PTR(ids);
	const int32 *runs = (const int32 *) ARR_DATA_PTR(numbers);
	int n = length(ids);
	StringInfoData lines;

	if (!is_list(ids) || !is_list(numbers) || length(numbers) != n)
		PG_RETURN_NULL();
	initStringInfo(&lines);
	for (int i = 0; i < n; i++)
	{
		tq_lines_add_slug(&lines, &slugs[i], '\t');
		tq_lines_add_number(&lines, runs[i], '\n');
	}
	PG_RETURN_TEXT_P(cstring_to_text_with_len(lines.data, lines.len));
}

/*
 * resolutions(task_ids slugid[], run_ids int[], outcomes text) -> rows of
 * tq.resolution: those of runs() with these arrays, and what a shard has
 * returned for them
 */
TQ_ROUTER_FUNCTION(tq_shard_resolutions,
				   "slugid[], int4[], text -> setof (slugid,int4,text) strict")
{
	ArrayType *ids = PG_GETARG_ARRAYTYPE_P(0);
	ArrayType *numbers = PG_GETARG_ARRAYTYPE_P(1);
	const TqSlug *slugs = (const TqSlug *) ARR_DATA_PTR(ids);
	const int32 *runs = (const int32 *) ARR_DATA_PTR(numbers);
	TqLines lines = tq_lines_of(PG_GETARG_TEXT_PP(2));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int n = length(ids);

	if (!is_list(ids) || !is_list(numbers) || length(numbers) != n ||
		tq_lines_count(&lines) != n)
		refuse_answer("outcomes");
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		char *outcome = tq_lines_field(&lines, '\n');
		Datum values[3] = {PointerGetDatum(&slugs[i]), Int32GetDatum(runs[i])};
		bool nulls[3] = {false};

		if (outcome == NULL)
			refuse_answer("outcomes");
		values[2] = CStringGetTextDatum(outcome);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}
