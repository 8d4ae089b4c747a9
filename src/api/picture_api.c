/*
 * picture_api.c
 *	  SQL functions that draw a task group: group_tree, group_dot,
 *	  group_mermaid, group_gantt.
 *
 * They read what list_task_group() reads, and need the same scope.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "../core/names.h"
#include "../engine/access.h"
#include "../engine/group.h"
#include "../picture/gantt.h"
#include "../picture/graph.h"
#include "../picture/graph_text.h"
#include "../storage/activation.h"
#include "../storage/group_rows.h"
#include "../util/errors.h"
#include "../util/slugid.h"
#include "../util/spi.h"
#include "arguments.h"
#include "group_graph.h"

PG_FUNCTION_INFO_V1(tq_group_tree);
PG_FUNCTION_INFO_V1(tq_group_dot);
PG_FUNCTION_INFO_V1(tq_group_mermaid);
PG_FUNCTION_INFO_V1(tq_group_gantt_sql);

#define MAX_NODES 2000
#define MAX_ROWS 1000

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
