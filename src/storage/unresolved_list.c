/*
 * unresolved_list.c
 *	  Pages of the unresolved tasks of a queue.
 *
 * There is no index on names and tags, nor on the queue of a task that is not
 * pending.  A page has so many rows of an index, whether they are wanted or not,
 * so that a page is short work however few are.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "../rows/rows.h"
#include "../util/util.h"
#include "columns.h"
#include "registry.h"
#include "tasks.h"

/* Parameters: the page, then the filter. */
#define QUEUE "$1"
#define PRIORITY "$2"
#define AFTER "$3"
#define MAX "$4"
#define PARAMETERS                                                            \
	INT4OID, INT2OID, INT8OID, INT4OID, TIMESTAMPTZOID, BOOLOID, TEXTOID,     \
		JSONBOID, TEXTOID

/*
 * Whether task t is wanted.  A task without metadata is shown with the name of
 * its queue, $9.
 */
#define IS_WANTED                                                               \
	"(t.queue = " QUEUE                                                         \
	" AND t.created <= $5 AND ($6 OR coalesce(t.metadata ->> 'name', $9) = $7)" \
	" AND coalesce(t.tags, '{}') @> $8)"

/* A page of a table in order of its tasks. */
#define BY_TASK(table)                                                        \
	"SELECT p.task, p.task, " IS_WANTED                                       \
	" FROM (SELECT q.task FROM tq_internal." table " q WHERE q.task > " AFTER \
	" ORDER BY q.task LIMIT " MAX                                             \
	") AS p JOIN tq_internal.task t ON t.id = p.task ORDER BY p.task"

static TqStatement unscheduled_page = TQ_STATEMENT(BY_TASK("unscheduled"),
												   PARAMETERS);
static TqStatement delayed_page = TQ_STATEMENT(BY_TASK("delayed"), PARAMETERS);
static TqStatement running_page = TQ_STATEMENT(BY_TASK("claimed_run"),
											   PARAMETERS);
static TqStatement pending_page = TQ_STATEMENT(
	"SELECT p.task, p.seq, " IS_WANTED
	" FROM (SELECT q.task, q.seq FROM tq_internal.pending q WHERE q.queue = " QUEUE
	" AND q.priority = " PRIORITY " AND q.seq > " AFTER
	" ORDER BY q.seq LIMIT " MAX
	") AS p JOIN tq_internal.task t ON t.id = p.task ORDER BY p.seq",
	PARAMETERS);

static TqStatement *
statement_of(TqTaskLocation location)
{
	switch (location)
	{
		case TQ_LOCATION_UNSCHEDULED:
			return &unscheduled_page;
		case TQ_LOCATION_DELAYED:
			return &delayed_page;
		case TQ_LOCATION_RUN:
			return &running_page;
		case TQ_LOCATION_PENDING:
		case TQ_LOCATION_NONE:
			break;
	}
	return &pending_page;
}

static void
read_page(TupleTableSlot *slot, void *row)
{
	*(TqUnresolvedRow *) row =
		(TqUnresolvedRow){.task = tq_row_int64(slot, 1),
						  .place = tq_row_int64(slot, 2),
						  .is_wanted = tq_row_bool(slot, 3)};
}

/*
 * Returns a page of the tasks at a location, in order of their places, beginning
 * after that one; of the pending ones, those of a priority.  It is the last page
 * if it has fewer than max rows.
 */
TqUnresolvedRow *
tq_unresolved_page(const TqUnresolvedFilter *filter, TqTaskLocation location,
				   int priority, int64 after, int max, int *found)
{
	const char *name = filter->name == NULL ? "" : filter->name;
	Datum tags = filter->tags == NULL
					 ? DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"))
					 : JsonbPGetDatum(filter->tags);
	Datum values[9] = {Int32GetDatum(filter->queue),
					   Int16GetDatum(priority),
					   Int64GetDatum(after),
					   Int32GetDatum(max),
					   TimestampTzGetDatum(filter->created_by),
					   BoolGetDatum(filter->name == NULL),
					   CStringGetTextDatum(name),
					   tags,
					   CStringGetTextDatum(tq_queue_name(filter->queue))};

	return tq_spi_read_all(statement_of(location), values, read_page,
						   sizeof(TqUnresolvedRow), found);
}
