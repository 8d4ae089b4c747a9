/*
 * picture_api.c
 *	  SQL functions that draw a task group: group_tree, group_dot,
 *	  group_mermaid, group_gantt, report_html.
 *
 * They read what list_task_group() reads, and need the same scope.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "../core/names.h"
#include "../events/events.h"
#include "../lifecycle/lifecycle.h"
#include "../picture/picture.h"
#include "../rules/rules.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_group_tree);
PG_FUNCTION_INFO_V1(tq_group_dot);
PG_FUNCTION_INFO_V1(tq_group_mermaid);
PG_FUNCTION_INFO_V1(tq_group_gantt_sql);
PG_FUNCTION_INFO_V1(tq_report_html);

#define MAX_NODES 2000
#define MAX_ROWS 1000

/* Of a report: failures, characters of an error, rows of workers. */
#define FAULTS 100
#define ERROR_MAX 1000
#define REPORT_ROWS 100

/* Begins the call, and reads the group in the first argument. */
static const TqSlug *
begin(FunctionCallInfo fcinfo, TqGroup *group)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");

	tq_call_begin(true);
	tq_access_require(tq_need("queue:list-task-group:%s", tq_slug_text(slug)));
	tq_group_get(slug, group);
	return slug;
}

/* Draws the graph of the group in the first argument. */
static char *
draw(FunctionCallInfo fcinfo,
	 void (*append)(StringInfo out, const TqGraph *graph, const char *title))
{
	int max = tq_arg_int(fcinfo, 1, "max_nodes", 1, MAX_NODES);
	TqGroup group;
	TqGroupPicture picture;
	StringInfoData out;

	(void) begin(fcinfo, &group);
	tq_group_graph(&group, &picture);
	initStringInfo(&out);
	append(&out, tq_graph_collapse(&picture.graph, max),
		   tq_slug_text(&group.task_group_id));
	return out.data;
}

/* Ends the call, and returns a text, without the end of its last line. */
static Datum
end(const char *drawn)
{
	int len = strlen(drawn);
	text *result = tq_spi_keep(cstring_to_text_with_len(drawn, len - 1));

	tq_call_end();
	PG_RETURN_TEXT_P(result);
}

/*
 * group_tree(task_group_id slugid, max_nodes int) -> lines of text, without
 * control characters
 */
Datum
tq_group_tree(PG_FUNCTION_ARGS)
{
	char *line;
	char *rest;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	rest = draw(fcinfo, tq_graph_tree);
	while ((line = strsep(&rest, "\n")) != NULL && rest != NULL)
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo,
				   (Datum[]){CStringGetTextDatum(line)}, (bool[]){false});
	tq_call_end();
	return (Datum) 0;
}

/* group_dot(task_group_id slugid, max_nodes int) -> text for Graphviz */
Datum
tq_group_dot(PG_FUNCTION_ARGS)
{
	return end(draw(fcinfo, tq_graph_dot));
}

/* group_mermaid(task_group_id slugid, max_nodes int) -> text for Mermaid */
Datum
tq_group_mermaid(PG_FUNCTION_ARGS)
{
	return end(draw(fcinfo, tq_graph_mermaid));
}

/* group_gantt(task_group_id slugid, max_rows int) -> text: an SVG */
Datum
tq_group_gantt_sql(PG_FUNCTION_ARGS)
{
	int max = tq_arg_int(fcinfo, 1, "max_rows", 1, MAX_ROWS);
	TqGroup group;
	TqGroupPicture picture;
	TqGantt gantt = {.max_rows = max, .is_alone = true};
	StringInfoData out;

	(void) begin(fcinfo, &group);
	tq_group_graph(&group, &picture);
	tq_group_gantt(&group, &picture, &gantt);
	gantt.title = psprintf("task group %s",
						   tq_slug_text(&group.task_group_id));
	initStringInfo(&out);
	tq_gantt_svg(&out, &gantt);
	return end(out.data);
}

/* By the time at which they failed, the last one first. */
static int
compare_faults(const void *a, const void *b)
{
	const TqGroupTask *x = *(TqGroupTask *const *) a;
	const TqGroupTask *y = *(TqGroupTask *const *) b;

	if (x->resolved != y->resolved)
		return x->resolved > y->resolved ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static TqFault
fault_of(const TqGroupTask *task)
{
	char *error = tq_group_rows_error(task->id, task->run_id, ERROR_MAX);
	char *worker = NULL;

	if (task->worker_id != NULL)
		worker = tq_label(psprintf("%s/%s", task->worker_group,
								   task->worker_id),
						  2 * TQ_LABEL_MAX);
	return (TqFault){.name = tq_label(task->name, TQ_LABEL_MAX),
					 .task_id = tq_slug_text(&task->task_id),
					 .queue = task->queue_name,
					 .worker = worker,
					 .error = error == NULL ? NULL
											: tq_label_lines(error, ERROR_MAX),
					 .state = task->state,
					 .reason = tq_resolved_name(task->reason),
					 .runs = task->run_id + 1,
					 .resolved = task->resolved};
}

/* Adds the last failures of a group to its report. */
static void
add_faults(const TqGroupPicture *picture, TqGroupPage *page)
{
	TqGroupTask **failed = palloc(sizeof(*failed) * Max(picture->ntasks, 1));
	int n = 0;

	for (int i = 0; i < picture->ntasks; i++)
	{
		if (picture->tasks[i].state == TQ_STATE_FAILED ||
			picture->tasks[i].state == TQ_STATE_EXCEPTION)
			failed[n++] = &picture->tasks[i];
	}
	qsort(failed, n, sizeof(*failed), compare_faults);
	page->all_faults = n;
	page->nfaults = Min(n, FAULTS);
	page->faults = palloc(sizeof(TqFault) * FAULTS);
	for (int i = 0; i < page->nfaults; i++)
		page->faults[i] = fault_of(failed[i]);
}

/* report_html(task_group_id slugid, max_nodes int) -> text: a page of HTML */
Datum
tq_report_html(PG_FUNCTION_ARGS)
{
	int max = tq_arg_int(fcinfo, 1, "max_nodes", 1, MAX_NODES);
	TqGroup group;
	TqProgress progress;
	TqGroupPicture picture;
	TqGantt gantt = {.max_rows = REPORT_ROWS, .title = "runs by worker"};
	TqGroupPage page = {.gantt = &gantt};
	StringInfoData out;

	(void) begin(fcinfo, &group);
	tq_group_count(&group, &progress);
	tq_group_graph(&group, &picture);
	tq_group_gantt(&group, &picture, &gantt);
	add_faults(&picture, &page);
	page.task_group_id = tq_slug_text(&group.task_group_id);
	page.now = tq_clock_now();
	page.sealed = group.sealed;
	page.outcome = tq_group_outcome(&progress);
	page.graph = tq_graph_collapse(&picture.graph, max);
	initStringInfo(&out);
	tq_page_html(&out, &page);
	return end(out.data);
}
