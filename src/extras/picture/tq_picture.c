/*
 * tq_picture.c
 *	  The library tq_picture: what SQL calls to draw a task group.
 *
 * The library is one of its own, so that a server in which no picture is drawn
 * has nothing of it in memory.  It uses no function and no variable of the
 * library tq (src/extras/router/tq_shard.c says why); it has its copy of
 * core/names.c.
 *
 * The functions of schema tq check the arguments and the caller's scopes, and
 * read the rows of the group by one snapshot (src/sql/pictures.sql).  The
 * functions here get these rows as arrays, and return what is drawn.  Only
 * bodies call them.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "picture.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(tq_draw_tree);
PG_FUNCTION_INFO_V1(tq_draw_dot);
PG_FUNCTION_INFO_V1(tq_draw_mermaid);
PG_FUNCTION_INFO_V1(tq_draw_gantt);
PG_FUNCTION_INFO_V1(tq_draw_report);

/* Rows of workers in a report. */
#define REPORT_ROWS 100

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
	char *title = text_to_cstring(PG_GETARG_TEXT_PP(0));
	TqGroupPicture picture;
	StringInfoData out;

	tq_group_graph(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3),
				   &picture);
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

/*
 * draw_gantt(title text, max_rows int, tasks drawn_task[], dependencies
 * bigint[], runs drawn_run[], now timestamptz) -> text: an SVG
 */
Datum
tq_draw_gantt(PG_FUNCTION_ARGS)
{
	TqGroupPicture picture;
	TqGantt gantt = {.title = text_to_cstring(PG_GETARG_TEXT_PP(0)),
					 .max_rows = Max(PG_GETARG_INT32(1), 1),
					 .now = PG_GETARG_TIMESTAMPTZ(5),
					 .is_alone = true};
	StringInfoData out;

	tq_group_graph(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3),
				   &picture);
	tq_group_gantt(PG_GETARG_ARRAYTYPE_P(4), &picture, &gantt);
	initStringInfo(&out);
	tq_gantt_svg(&out, &gantt);
	return text_of(&out);
}

/*
 * draw_report(task_group_id text, max_nodes int, sealed timestamptz, outcome
 * text, tasks drawn_task[], dependencies bigint[], runs drawn_run[], faults
 * drawn_fault[], now timestamptz) -> text: a page of HTML.  sealed and outcome
 * are NULL if there is none.
 */
Datum
tq_draw_report(PG_FUNCTION_ARGS)
{
	TqGroupPicture picture;
	TqGantt gantt = {.title = "runs by worker", .max_rows = REPORT_ROWS};
	TqGroupPage page = {.gantt = &gantt};
	StringInfoData out;

	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (PG_ARGISNULL(i) && i != 2 && i != 3)
			PG_RETURN_NULL();
	}
	gantt.now = page.now = PG_GETARG_TIMESTAMPTZ(8);
	tq_group_graph(PG_GETARG_ARRAYTYPE_P(4), PG_GETARG_ARRAYTYPE_P(5),
				   &picture);
	tq_group_gantt(PG_GETARG_ARRAYTYPE_P(6), &picture, &gantt);
	tq_group_faults(PG_GETARG_ARRAYTYPE_P(7), &picture, &page);
	page.task_group_id = text_to_cstring(PG_GETARG_TEXT_PP(0));
	page.sealed = PG_ARGISNULL(2) ? 0 : PG_GETARG_TIMESTAMPTZ(2);
	page.outcome = PG_ARGISNULL(3) ? NULL
								   : text_to_cstring(PG_GETARG_TEXT_PP(3));
	page.graph = tq_graph_collapse(&picture.graph, PG_GETARG_INT32(1));
	initStringInfo(&out);
	tq_page_html(&out, &page);
	return text_of(&out);
}
