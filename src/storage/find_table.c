/*
 * find_table.c
 *	  What the functions of src/sql/find.sql answer to tq.apply().
 *
 * They are bodies: they read the tables with the plans of bodies, and the scopes
 * are those of the caller.  No lock is taken.
 */
#include "postgres.h"

#include "executor/spi.h"

#include "tasks.h"

static TqStatement find_all =
	TQ_BODY_STATEMENT("SELECT f.ids, f.states, f.queues, f.is_fixed"
					  " FROM tq_internal.apply_find($1, $2) AS f",
					  JSONBOID, INT8OID);

static TqStatement find_still = TQ_BODY_STATEMENT(
	"SELECT s.id FROM tq_internal.apply_still($1, $2) AS s (id)"
	" ORDER BY s.id",
	JSONBOID, INT8ARRAYOID);

static TqStatement count_found =
	TQ_BODY_STATEMENT("SELECT tq_internal.apply_counts($1)", INT8ARRAYOID);

static TqStatement read_how = TQ_BODY_STATEMENT(
	"SELECT h.number, h.downstream, h.deadline, h.priority, h.queue, h.until"
	" FROM tq_internal.apply_how($1, $2) AS h",
	TEXTOID, JSONBOID);

/* Returns an array of numbers, which are not copied; NULL: no array. */
static void *
read_array(TupleTableSlot *slot, int column, int *n)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);
	ArrayType *array;

	*n = 0;
	if (isnull)
		return NULL;
	array = DatumGetArrayTypeP(value);
	*n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return ARR_DATA_PTR(array);
}

/* Reads what a row has of the filter. */
static void
read_filter(TupleTableSlot *slot, TqFound *found)
{
	int n;
	int32 *states = read_array(slot, 2, &n);
	int32 *queues;
	bool isnull;

	for (int i = 0; i < (states == NULL ? TQ_STATES : n); i++)
		found->of[states == NULL ? i : states[i]] = true;
	queues = read_array(slot, 3, &n);
	if (queues != NULL)
	{
		Size size = sizeof(int32) * n;

		found->queues = MemoryContextAlloc(found->ids.memory, Max(size, 1));
		found->nqueues = n;
		memcpy(found->queues, queues, size);
	}
	found->is_fixed = DatumGetBool(slot_getattr(slot, 4, &isnull));
}

static void
read_part(TupleTableSlot *slot, TqFound *found)
{
	int n;
	int64 *ids = read_array(slot, 1, &n);

	tq_ids_add(&found->ids, ids, n);
}

static void
read_counts(TupleTableSlot *slot, void *row)
{
	bool isnull;

	*(Jsonb **) row = tq_spi_keep(
		DatumGetJsonbP(slot_getattr(slot, 1, &isnull)));
}

/* Turns the order of ids round. */
static void
reverse(TqIds *ids)
{
	for (int i = 0, j = ids->n - 1; i < j; i++, j--)
	{
		int64 id = ids->ids[i];

		ids->ids[i] = ids->ids[j];
		ids->ids[j] = id;
	}
}

/*
 * Finds the tasks of a filter, up to max, by one snapshot; the ids are in
 * found->ids, in their order.  Raises TQ400 for a filter that is not valid.
 */
void
tq_find_all(Jsonb *filter, int64 max, TqFound *found)
{
	uint64 n = tq_spi_run(&find_all,
						  TQ_VALUES(JsonbPGetDatum(filter),
									Int64GetDatum(max)),
						  NULL);
	TupleTableSlot *slot = tq_spi_slot();

	for (uint64 i = 0; i < n; i++)
	{
		tq_spi_store(slot, i);
		if (i == 0)
			read_filter(slot, found);
		read_part(slot, found);
	}
	ExecDropSingleTupleTableSlot(slot);
	tq_spi_free_result();
	reverse(&found->ids);
}

/* Returns how many of these tasks are in each queue and state; it outlives the call. */
Jsonb *
tq_find_counts(const TqFound *found)
{
	Jsonb *counts = NULL;

	(void) tq_spi_read(&count_found,
					   TQ_VALUES(tq_array_int64(found->ids.ids, found->ids.n)),
					   read_counts, &counts);
	return counts;
}

static int
compare_queues(const void *a, const void *b)
{
	int32 left = *(const int32 *) a;
	int32 right = *(const int32 *) b;

	return left < right ? -1 : left > right;
}

/* Returns whether a task is in one of the queues and states of the filter. */
bool
tq_found_is_still(const TqFound *found, const TqTask *task, const TqRun *run)
{
	return found->of[run->state] &&
		   (found->queues == NULL ||
			bsearch(&task->queue, found->queues, found->nqueues, sizeof(int32),
					compare_queues) != NULL);
}

/* Returns those of these tasks, both by id, that a filter finds still. */
int64 *
tq_find_still(Jsonb *filter, const int64 *ids, int n, int *found)
{
	return tq_spi_run_ids(&find_still,
						  TQ_VALUES(JsonbPGetDatum(filter),
									tq_array_int64(ids, n)),
						  found);
}

static void
read_action(TupleTableSlot *slot, void *row)
{
	TqFoundAction *action = row;
	bool isnull;
	Datum value;

	action->number = DatumGetInt32(slot_getattr(slot, 1, &isnull));
	action->downstream = DatumGetBool(slot_getattr(slot, 2, &isnull));
	value = slot_getattr(slot, 3, &isnull);
	if (!isnull)
	{
		action->deadline = SPI_palloc(sizeof(Interval));
		*action->deadline = *DatumGetIntervalP(value);
	}
	action->priority = DatumGetInt32(slot_getattr(slot, 4, &isnull));
	value = slot_getattr(slot, 5, &isnull);
	if (!isnull)
	{
		char *queue = TextDatumGetCString(value);

		action->queue = strcpy(SPI_palloc(strlen(queue) + 1), queue);
	}
	value = slot_getattr(slot, 6, &isnull);
	if (!isnull)
		action->until = DatumGetTimestampTz(value);
}

/*
 * Reads an action and its arguments, which outlive the call; raises TQ400 for
 * what is not valid.
 */
void
tq_find_action(Datum action, Jsonb *arguments, TqFoundAction *read)
{
	(void) tq_spi_read(&read_how, TQ_VALUES(action, JsonbPGetDatum(arguments)),
					   read_action, read);
}
