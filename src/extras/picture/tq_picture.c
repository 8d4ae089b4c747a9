/*
 * tq_picture.c
 *	  The library tq_picture: what SQL calls to draw a task group.
 *
 * The library is one of its own, so that a server in which no picture is drawn
 * has nothing of it in memory.  It uses no function and no variable of the
 * library tq (src/extras/router/tq_shard.c says why); it has its copies of
 * core/names.c and util/declared.c.
 *
 * The functions of schema tq check the arguments and the caller's scopes, and
 * read the rows of the group by one snapshot (src/sql/pictures.sql).  The
 * functions here get these rows as arrays, and return what is drawn.  Only
 * bodies call them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "../../core/names.h"
#include "../../util/util.h"
#include "picture.h"

/*
 * ---- rows of a group: a graph, runs and failures ----
 *
 * A row is a composite value, of the types of src/sql/pictures.sql.  A task of
 * another group is not shown, as the caller may have no right to read it; a
 * node says how many of its dependencies are outside.
 */

/* Characters of a label. */
#define LABEL_MAX 60
#define ERROR_MAX 1000

/* ---- rows ---- */

/* Columns of tq_internal.drawn_task. */
enum
{
	TASK_ID,
	TASK_NAME,
	TASK_STATE,
	TASK_REASON,
	TASK_RUN_ID,
	TASK_IS_DELAYED,
	TASK_NEEDED,
	TASK_PROGRESS = TASK_NEEDED,
	TASK_RESOLVED,
	TASK_QUEUE,
	TASK_SCHEDULED,
	TASK_STARTED,
	TASK_COLUMNS
};

/* Columns of tq_internal.drawn_run. */
enum
{
	RUN_TASK,
	RUN_ID,
	RUN_STATE,
	RUN_REASON,
	RUN_CLAIMABLE,
	RUN_NEEDED,
	RUN_STARTED = RUN_NEEDED,
	RUN_RESOLVED,
	RUN_WORKER,
	RUN_COLUMNS
};

/* Columns of tq_internal.drawn_fault. */
enum
{
	FAULT_TASK_ID,
	FAULT_NAME,
	FAULT_QUEUE,
	FAULT_STATE,
	FAULT_REASON,
	FAULT_RUNS,
	FAULT_RESOLVED,
	FAULT_NEEDED,
	FAULT_WORKER = FAULT_NEEDED,
	FAULT_ERROR,
	FAULT_COLUMNS
};

#define MAX_COLUMNS 11

StaticAssertDecl(TASK_COLUMNS <= MAX_COLUMNS && RUN_COLUMNS <= MAX_COLUMNS &&
					 FAULT_COLUMNS <= MAX_COLUMNS,
				 "MAX_COLUMNS is too small");

/* Rows of an array, and the one that was read last. */
typedef struct Rows
{
	TupleDesc desc;
	Datum *rows;
	int n;
	int needed; /* of the columns, so many are never NULL */
	Datum values[MAX_COLUMNS];
	bool nulls[MAX_COLUMNS];
} Rows;

/* Opens an array of rows, of that many columns. */
static void
open_rows(Rows *rows, ArrayType *array, int columns, int needed)
{
	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE,
					  &rows->rows, NULL, &rows->n);
	rows->desc = lookup_rowtype_tupdesc_copy(ARR_ELEMTYPE(array), -1);
	rows->needed = needed;
	if (rows->desc->natts != columns)
		elog(ERROR, "a row that is drawn has %d columns", rows->desc->natts);
}

/* Reads a row. */
static void
group_graph_read_row(Rows *rows, int n)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(rows->rows[n]);
	HeapTupleData row = {.t_len = HeapTupleHeaderGetDatumLength(header),
						 .t_data = header};

	heap_deform_tuple(&row, rows->desc, rows->values, rows->nulls);
	for (int i = 0; i < rows->needed; i++)
	{
		if (rows->nulls[i])
			elog(ERROR, "column %d of a row that is drawn is NULL", i + 1);
	}
}

/* Returns a column as a label; NULL: it is NULL. */
static char *
group_graph_label_of(const Rows *rows, int column, int max)
{
	if (rows->nulls[column])
		return NULL;
	return tq_label(TextDatumGetCString(rows->values[column]), max);
}

static TimestampTz
group_graph_time_of(const Rows *rows, int column)
{
	return rows->nulls[column] ? 0 : DatumGetTimestampTz(rows->values[column]);
}

static TqState
state_of(const Rows *rows, int column)
{
	int state = DatumGetInt16(rows->values[column]);

	if (state < 0 || state >= TQ_STATES)
		elog(ERROR, "state %d cannot be drawn", state);
	return (TqState) state;
}

static TqResolved
reason_of(const Rows *rows, int column)
{
	int reason = DatumGetInt16(rows->values[column]);

	if (reason < TQ_RESOLVED_NONE || reason > TQ_RESOLVED_LAST)
		elog(ERROR, "reason %d cannot be drawn", reason);
	return (TqResolved) reason;
}

/* ---- the graph ---- */

/* Returns the node of a task. */
static TqNode
node_of(const Rows *rows)
{
	TqNode node = {.name = group_graph_label_of(rows, TASK_NAME, LABEL_MAX),
				   .remark = "",
				   .tasks = 1,
				   .runs = Max(DatumGetInt16(rows->values[TASK_RUN_ID]), 0)};
	TqResolved reason = reason_of(rows, TASK_REASON);

	node.count[state_of(rows, TASK_STATE)] = 1;
	if (DatumGetBool(rows->values[TASK_IS_DELAYED]))
		node.remark = "delayed";
	else if (reason != TQ_RESOLVED_NONE && reason != TQ_RESOLVED_COMPLETED &&
			 reason != TQ_RESOLVED_FAILED)
		node.remark = tq_resolved_name(reason);
	else if (!rows->nulls[TASK_PROGRESS])
		node.remark = group_graph_label_of(rows, TASK_PROGRESS, LABEL_MAX);
	return node;
}

/* Returns the index of a task, or -1 if it is not in the group. */
static int
index_of_task(const TqGroupPicture *picture, int64 task)
{
	int low = 0;
	int high = picture->graph.nnodes - 1;

	while (low <= high)
	{
		int middle = (low + high) / 2;
		int64 id = picture->ids[middle];

		if (id == task)
			return middle;
		if (id < task)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

/*
 * Adds the dependencies of a group to its graph: pairs of the task that
 * depends, and that on which it does.
 */
static void
add_edges(ArrayType *dependencies, TqGroupPicture *picture)
{
	TqGraph *graph = &picture->graph;
	int n = ArrayGetNItems(ARR_NDIM(dependencies), ARR_DIMS(dependencies)) / 2;
	int64 *pairs = (int64 *) ARR_DATA_PTR(dependencies);

	if (array_contains_nulls(dependencies))
		elog(ERROR, "a dependency that is drawn is NULL");
	graph->edges = palloc(sizeof(TqGraphEdge) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		int to = index_of_task(picture, pairs[2 * i]);
		int from = index_of_task(picture, pairs[2 * i + 1]);

		if (to < 0)
			continue;
		if (from < 0)
			graph->nodes[to].outside++;
		else if (from == to)
			graph->nodes[to].is_held |=
				graph->nodes[to].count[TQ_STATE_UNSCHEDULED] > 0;
		else
			graph->edges[graph->nedges++] = (TqGraphEdge){from, to, 1};
	}
}

/* Reads the graph of a group; the tasks are in order of their ids. */
static void
group_graph(ArrayType *tasks, ArrayType *dependencies, TqGroupPicture *picture)
{
	TqGraph *graph = &picture->graph;
	Rows rows;

	memset(picture, 0, sizeof(TqGroupPicture));
	open_rows(&rows, tasks, TASK_COLUMNS, TASK_NEEDED);
	graph->nnodes = graph->tasks = rows.n;
	graph->nodes = palloc(sizeof(TqNode) * Max(rows.n, 1));
	picture->ids = palloc(sizeof(int64) * Max(rows.n, 1));
	for (int i = 0; i < rows.n; i++)
	{
		group_graph_read_row(&rows, i);
		picture->ids[i] = DatumGetInt64(rows.values[TASK_ID]);
		graph->nodes[i] = node_of(&rows);
		graph->count[state_of(&rows, TASK_STATE)]++;
	}
	add_edges(dependencies, picture);
	tq_graph_finish(graph);
}

/* ---- runs and failures ---- */

/* Returns the bar of a run of a task. */
static TqBar
bar_of(const Rows *rows, const TqNode *task)
{
	TqState state = state_of(rows, RUN_STATE);

	return (
		TqBar){.worker = group_graph_label_of(rows, RUN_WORKER, 2 * LABEL_MAX),
			   .name = task->name,
			   .progress = state == TQ_STATE_RUNNING ? task->remark : "",
			   .run_id = DatumGetInt16(rows->values[RUN_ID]),
			   .state = state,
			   .reason = tq_resolved_name(reason_of(rows, RUN_REASON)),
			   .claimable = group_graph_time_of(rows, RUN_CLAIMABLE),
			   .started = group_graph_time_of(rows, RUN_STARTED),
			   .resolved = group_graph_time_of(rows, RUN_RESOLVED),
			   .is_critical = task->place > 0};
}

/* Tasks at each end of the critical path that a report names. */
#define PATH_ENDS 10

/* Gives the tasks of the critical path their places. */
static void
group_path(ArrayType *path, TqGroupPicture *picture)
{
	int n = ArrayGetNItems(ARR_NDIM(path), ARR_DIMS(path));
	int64 *ids = (int64 *) ARR_DATA_PTR(path);

	if (array_contains_nulls(path))
		elog(ERROR, "a task of the path is NULL");
	for (int i = 0; i < n; i++)
	{
		int task = index_of_task(picture, ids[i]);

		if (task >= 0)
			picture->graph.nodes[task].place = i + 1;
	}
}

/* Returns the names of the first and the last tasks of the critical path. */
static char *
path_text(ArrayType *path, const TqGroupPicture *picture)
{
	int n = ArrayGetNItems(ARR_NDIM(path), ARR_DIMS(path));
	int64 *ids = (int64 *) ARR_DATA_PTR(path);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < n; i++)
	{
		int task = index_of_task(picture, ids[i]);

		if (i == PATH_ENDS && n > 2 * PATH_ENDS)
		{
			appendStringInfo(&text, ", %d others", n - 2 * PATH_ENDS);
			i = n - PATH_ENDS - 1;
			continue;
		}
		if (task >= 0)
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "",
							 picture->graph.nodes[task].name);
	}
	return text.data;
}

/* Reads the runs of a group whose tasks were read. */
static void
group_gantt(ArrayType *runs, const TqGroupPicture *picture, TqGantt *gantt)
{
	Rows rows;

	open_rows(&rows, runs, RUN_COLUMNS, RUN_NEEDED);
	gantt->bars = palloc(sizeof(TqBar) * Max(rows.n, 1));
	gantt->nbars = 0;
	for (int i = 0; i < rows.n; i++)
	{
		int task;

		group_graph_read_row(&rows, i);
		task = index_of_task(picture, DatumGetInt64(rows.values[RUN_TASK]));
		if (task >= 0)
			gantt->bars[gantt->nbars++] = bar_of(&rows,
												 &picture->graph.nodes[task]);
	}
}

static TqFault
group_graph_fault_of(const Rows *rows)
{
	TqFault fault = {.task_id = TextDatumGetCString(
						 rows->values[FAULT_TASK_ID]),
					 .name = group_graph_label_of(rows, FAULT_NAME, LABEL_MAX),
					 .queue = TextDatumGetCString(rows->values[FAULT_QUEUE]),
					 .state = state_of(rows, FAULT_STATE),
					 .reason = tq_resolved_name(reason_of(rows, FAULT_REASON)),
					 .runs = DatumGetInt32(rows->values[FAULT_RUNS]),
					 .resolved = group_graph_time_of(rows, FAULT_RESOLVED),
					 .worker = group_graph_label_of(rows, FAULT_WORKER,
													2 * LABEL_MAX)};

	if (fault.reason == NULL)
		elog(ERROR, "a failure that is drawn has no reason");
	if (!rows->nulls[FAULT_ERROR])
		fault.error =
			tq_label_lines(TextDatumGetCString(rows->values[FAULT_ERROR]),
						   ERROR_MAX);
	return fault;
}

/* Reads the last failures of a group, for its report, in the order given. */
static void
group_faults(ArrayType *faults, const TqGroupPicture *picture,
			 TqGroupPage *page)
{
	Rows rows;

	open_rows(&rows, faults, FAULT_COLUMNS, FAULT_NEEDED);
	page->all_faults = picture->graph.count[TQ_STATE_FAILED] +
					   picture->graph.count[TQ_STATE_EXCEPTION];
	page->nfaults = rows.n;
	page->faults = palloc(sizeof(TqFault) * Max(rows.n, 1));
	for (int i = 0; i < rows.n; i++)
	{
		group_graph_read_row(&rows, i);
		page->faults[i] = group_graph_fault_of(&rows);
	}
}

/* ---- functions ---- */

PG_MODULE_MAGIC;

/* What SQL declares (src/util/declared.c). */
#define TASKS                                                                 \
	"(int8,text,int2,int2,int2,bool,text,timestamptz,int4,timestamptz,"       \
	"timestamptz)[], int8[]"
#define RUNS "(int8,int2,int2,int2,timestamptz,timestamptz,timestamptz,text)[]"
#define FAULTS "(text,text,text,int2,int2,int4,timestamptz,text,text)[]"
#define DRAW_GRAPH "text, int4, " TASKS " -> text strict"
#define DRAW_SVG "text, int4, " TASKS ", text, text[] -> text"
#define DRAW_GANTT                                                            \
	"text, int4, " TASKS ", " RUNS ", timestamptz, int8[] -> text strict"
#define DRAW_REPORT                                                           \
	"text, int4, timestamptz, text, " TASKS ", " RUNS ", " FAULTS             \
	", timestamptz, int8[] -> text"

#define CRITICAL_TASKS                                                        \
	TASKS ", int4[], int8[], timestamptz -> setof "                           \
		  "(int4,int8,int2,timestamptz,interval) strict"

PG_FUNCTION_INFO_V1(tq_draw_tree);
PG_FUNCTION_INFO_V1(tq_draw_dot);
PG_FUNCTION_INFO_V1(tq_draw_mermaid);
PG_FUNCTION_INFO_V1(tq_draw_svg);
PG_FUNCTION_INFO_V1(tq_draw_gantt);
PG_FUNCTION_INFO_V1(tq_draw_report);
PG_FUNCTION_INFO_V1(tq_critical_tasks);

/* Rows of workers in a report. */
#define REPORT_ROWS 100

/* Characters of a title: id and name of a group, and what blocks it. */
#define TITLE_MAX 500

/* Returns a text without the end of its last line. */
static Datum
text_of(const StringInfoData *drawn)
{
	PG_RETURN_TEXT_P(cstring_to_text_with_len(drawn->data, drawn->len - 1));
}

/*
 * Draws a graph: (title text, max_nodes int, tasks drawn_task[], dependencies
 * bigint[]) -> text
 */
static Datum
tq_picture_draw(FunctionCallInfo fcinfo,
				void (*append)(StringInfo out, const TqGraph *graph,
							   const char *title))
{
	TqGroupPicture picture;
	StringInfoData out;
	char *title;

	tq_check_declared(fcinfo, "tq", DRAW_GRAPH);
	title = tq_label(text_to_cstring(PG_GETARG_TEXT_PP(0)), TITLE_MAX);
	group_graph(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3), &picture);
	initStringInfo(&out);
	append(&out, tq_graph_collapse(&picture.graph, PG_GETARG_INT32(1)), title);
	return text_of(&out);
}

/* draw_tree(...) -> text: a line for each node, without control characters */
Datum
tq_draw_tree(PG_FUNCTION_ARGS)
{
	return tq_picture_draw(fcinfo, tq_graph_tree);
}

/* draw_dot(...) -> text for Graphviz */
Datum
tq_draw_dot(PG_FUNCTION_ARGS)
{
	return tq_picture_draw(fcinfo, tq_graph_dot);
}

/* draw_mermaid(...) -> text for Mermaid */
Datum
tq_draw_mermaid(PG_FUNCTION_ARGS)
{
	return tq_picture_draw(fcinfo, tq_graph_mermaid);
}

/* Gives each task an address: what comes before its id, and the id. */
static void
group_links(const text *link, ArrayType *ids, TqGroupPicture *picture)
{
	char *before = text_to_cstring(link);
	Datum *values;
	bool *nulls;
	int n;

	deconstruct_array(ids, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls,
					  &n);
	for (int i = 0; i < Min(n, picture->graph.nnodes); i++)
	{
		if (!nulls[i])
			picture->graph.nodes[i].link =
				psprintf("%s%s", before, TextDatumGetCString(values[i]));
	}
}

/*
 * draw_svg(title text, max_nodes int, tasks drawn_task[], dependencies bigint[],
 * link text, ids text[]) -> text: an SVG.  A box leads to the link with the id of
 * its task; without a link, to nothing.
 */
Datum
tq_draw_svg(PG_FUNCTION_ARGS)
{
	TqGroupPicture picture;
	StringInfoData out;

	tq_check_declared(fcinfo, "tq", DRAW_SVG);
	for (int i = 0; i < 4; i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	group_graph(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3), &picture);
	if (!PG_ARGISNULL(4) && !PG_ARGISNULL(5))
		group_links(PG_GETARG_TEXT_PP(4), PG_GETARG_ARRAYTYPE_P(5), &picture);
	picture.graph.is_alone = true;
	initStringInfo(&out);
	tq_graph_svg(&out, tq_graph_collapse(&picture.graph, PG_GETARG_INT32(1)),
				 tq_label(text_to_cstring(PG_GETARG_TEXT_PP(0)), TITLE_MAX));
	return text_of(&out);
}

/*
 * draw_gantt(title text, max_rows int, tasks drawn_task[], dependencies
 * bigint[], runs drawn_run[], now timestamptz, path bigint[]) -> text: an SVG
 */
Datum
tq_draw_gantt(PG_FUNCTION_ARGS)
{
	TqGroupPicture picture;
	TqGantt gantt = {.is_alone = true};
	StringInfoData out;

	tq_check_declared(fcinfo, "tq", DRAW_GANTT);
	gantt.title = tq_label(text_to_cstring(PG_GETARG_TEXT_PP(0)), TITLE_MAX);
	gantt.max_rows = Max(PG_GETARG_INT32(1), 1);
	gantt.now = PG_GETARG_TIMESTAMPTZ(5);
	group_graph(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3), &picture);
	group_path(PG_GETARG_ARRAYTYPE_P(6), &picture);
	group_gantt(PG_GETARG_ARRAYTYPE_P(4), &picture, &gantt);
	initStringInfo(&out);
	tq_gantt_svg(&out, &gantt);
	return text_of(&out);
}

/*
 * draw_report(title text, max_nodes int, sealed timestamptz, outcome
 * text, tasks drawn_task[], dependencies bigint[], runs drawn_run[], faults
 * drawn_fault[], now timestamptz, path bigint[]) -> text: a page of HTML.
 * sealed and outcome are NULL if there is none.
 */
Datum
tq_draw_report(PG_FUNCTION_ARGS)
{
	TqGroupPicture picture;
	TqGantt gantt = {.title = "runs by worker", .max_rows = REPORT_ROWS};
	TqGroupPage page = {.gantt = &gantt};
	StringInfoData out;

	tq_check_declared(fcinfo, "tq", DRAW_REPORT);
	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i) && i != 2 && i != 3)
			PG_RETURN_NULL();
	}
	gantt.now = page.now = PG_GETARG_TIMESTAMPTZ(8);
	group_graph(PG_GETARG_ARRAYTYPE_P(4), PG_GETARG_ARRAYTYPE_P(5), &picture);
	group_path(PG_GETARG_ARRAYTYPE_P(9), &picture);
	page.path = path_text(PG_GETARG_ARRAYTYPE_P(9), &picture);
	group_gantt(PG_GETARG_ARRAYTYPE_P(6), &picture, &gantt);
	group_faults(PG_GETARG_ARRAYTYPE_P(7), &picture, &page);
	page.title = tq_label(text_to_cstring(PG_GETARG_TEXT_PP(0)), TITLE_MAX);
	page.sealed = PG_ARGISNULL(2) ? 0 : PG_GETARG_TIMESTAMPTZ(2);
	page.outcome = PG_ARGISNULL(3) ? NULL
								   : text_to_cstring(PG_GETARG_TEXT_PP(3));
	page.graph = tq_graph_collapse(&picture.graph, PG_GETARG_INT32(1));
	initStringInfo(&out);
	tq_page_html(&out, &page);
	return text_of(&out);
}

/* ---- the critical path ---- */

/* Numbers of queues, in order, and microseconds that a run of each takes. */
typedef struct Medians
{
	int n;
	const int32 *queues;
	const int64 *takes;
} Medians;

static Medians
medians_of(ArrayType *queues, ArrayType *takes)
{
	Medians medians = {ArrayGetNItems(ARR_NDIM(queues), ARR_DIMS(queues)),
					   (const int32 *) ARR_DATA_PTR(queues),
					   (const int64 *) ARR_DATA_PTR(takes)};

	if (array_contains_nulls(queues) || array_contains_nulls(takes) ||
		medians.n != ArrayGetNItems(ARR_NDIM(takes), ARR_DIMS(takes)))
		elog(ERROR, "the times of queues are not one for each");
	return medians;
}

static int
compare_queues(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return x < y ? -1 : x > y;
}

/* Returns how long a run of a queue takes; 0: it is not known. */
static int64
median_of(const Medians *medians, int32 queue)
{
	const int32 *found = medians->n == 0
							 ? NULL
							 : bsearch(&queue, medians->queues, medians->n,
									   sizeof(int32), compare_queues);

	return found == NULL ? 0 : medians->takes[found - medians->queues];
}

/* Returns when a task ends, or would if it waited for no other. */
static TqEnd
end_of_task(const Rows *rows, const Medians *medians, TimestampTz now)
{
	TqState state = state_of(rows, TASK_STATE);
	TqEnd end = {.at = group_graph_time_of(rows, TASK_RESOLVED),
				 .scheduled = group_graph_time_of(rows, TASK_SCHEDULED)};

	if (state >= TQ_STATE_COMPLETED)
		return end;
	end.takes = rows->nulls[TASK_QUEUE]
					? 0
					: median_of(medians,
								DatumGetInt32(rows->values[TASK_QUEUE]));
	end.at = state == TQ_STATE_RUNNING
				 ? group_graph_time_of(rows, TASK_STARTED)
				 : now;
	end.at = Max(end.at + end.takes, now);
	return end;
}

static TqEnd *
ends_of_tasks(ArrayType *tasks, const Medians *medians, TimestampTz now)
{
	TqEnd *ends;
	Rows rows;

	open_rows(&rows, tasks, TASK_COLUMNS, TASK_NEEDED);
	ends = palloc(sizeof(TqEnd) * Max(rows.n, 1));
	for (int i = 0; i < rows.n; i++)
	{
		group_graph_read_row(&rows, i);
		ends[i] = end_of_task(&rows, medians, now);
	}
	return ends;
}

/* Appends a task of the path to the result. */
static void
put_path_task(const ReturnSetInfo *result, const TqGroupPicture *picture,
			  const TqPathTask *task, TimestampTz end, int place)
{
	Datum values[] = {Int32GetDatum(place),
					  Int64GetDatum(picture->ids[task->task]),
					  Int16GetDatum((int16) tq_node_state(
						  &picture->graph.nodes[task->task])),
					  TimestampTzGetDatum(end), (Datum) 0};
	bool nulls[] = {false, false, false, false, task->second == DT_NOBEGIN};

	if (!nulls[4])
		values[4] = DirectFunctionCall2(timestamp_mi, values[3],
										TimestampTzGetDatum(task->second));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * critical_tasks(tasks drawn_task[], dependencies bigint[], queues int[],
 * medians bigint[], now timestamptz) -> setof critical_task, the first first
 */
Datum
tq_critical_tasks(PG_FUNCTION_ARGS)
{
	TimestampTz now;
	Medians medians;
	TqGroupPicture picture;
	TqPathTask *path;
	TqEnd *ends;
	int n;

	tq_check_declared(fcinfo, "tq", CRITICAL_TASKS);
	InitMaterializedSRF(fcinfo, 0);
	now = PG_GETARG_TIMESTAMPTZ(4);
	medians = medians_of(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3));
	group_graph(PG_GETARG_ARRAYTYPE_P(0), PG_GETARG_ARRAYTYPE_P(1), &picture);
	ends = ends_of_tasks(PG_GETARG_ARRAYTYPE_P(0), &medians, now);
	path = palloc(sizeof(TqPathTask) * Max(picture.graph.nnodes, 1));
	n = tq_path_find(&picture.graph, ends, now, path);
	for (int i = n - 1; i >= 0; i--)
		put_path_task((ReturnSetInfo *) fcinfo->resultinfo, &picture, &path[i],
					  ends[path[i].task].at, n - i);
	return (Datum) 0;
}
