/*
 * page.c
 *	  The report on a task group: one page of HTML.
 *
 * The page needs nothing but itself.  It has no script, and forbids itself to
 * load or run anything (Content-Security-Policy), in case that a name of a user
 * should get past tq_label_html().
 */
#include "postgres.h"

#include "../../core/names.h"
#include "picture.h"

static void
append_head(StringInfo out, const TqGroupPage *page)
{
	appendStringInfoString(
		out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
			 "<meta charset=\"utf-8\">\n"
			 "<meta http-equiv=\"Content-Security-Policy\" "
			 "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
			 "<meta name=\"viewport\" "
			 "content=\"width=device-width, initial-scale=1\">\n"
			 "<meta name=\"color-scheme\" content=\"light dark\">\n"
			 "<title>Task group ");
	tq_label_html(out, page->title);
	appendStringInfoString(out, "</title>\n<style>");
	tq_svg_style(out);
	appendStringInfoString(
		out,
		"body{font:14px sans-serif;margin:16px;background:#fff;color:#111}"
		".wide{overflow:auto;max-height:85vh;border:1px solid #888}"
		"svg{display:block}"
		"table{border-collapse:collapse}"
		"th,td{border:1px solid #888;padding:4px 8px;text-align:left;"
		"vertical-align:top;overflow-wrap:anywhere}"
		"td.error{font-family:monospace;white-space:pre-wrap}"
		"@media(prefers-color-scheme:dark)"
		"{body{background:#161616;color:#eee}}"
		"</style>\n</head>\n<body>\n"
		"<svg width=\"0\" height=\"0\" aria-hidden=\"true\">");
	tq_svg_patterns(out);
	appendStringInfoString(out, "</svg>\n");
}

/* Appends how far the group is. */
static void
append_progress(StringInfo out, const TqGroupPage *page)
{
	const TqGraph *graph = page->graph;
	int resolved = graph->count[TQ_STATE_COMPLETED] +
				   graph->count[TQ_STATE_FAILED] +
				   graph->count[TQ_STATE_EXCEPTION];

	appendStringInfoString(out, "<h1>Task group ");
	tq_label_html(out, page->title);
	appendStringInfoString(out, "</h1>\n<p id=\"progress\">");
	tq_graph_counts(out, graph);
	appendStringInfo(out,
					 ".<br>%s; %d %% of the tasks are resolved; %s.</p>\n",
					 page->outcome != NULL
						 ? psprintf("Outcome: %s", page->outcome)
						 : "In progress",
					 graph->tasks == 0
						 ? 0
						 : (int) (100.0 * resolved / graph->tasks),
					 page->sealed != 0 ? psprintf("sealed at %s",
												  tq_label_time(page->sealed))
									   : "not sealed");
	tq_svg_begin(out, 800, 24, "progress", false);
	tq_svg_shares(out, 0, 2, 800, 20, graph->count, true);
	tq_svg_end(out);
}

static void
append_cell(StringInfo out, const char *class, const char *label)
{
	appendStringInfo(out, "<td%s><bdi>", class);
	if (label != NULL)
		tq_label_html(out, label);
	appendStringInfoString(out, "</bdi></td>");
}

/* Appends the table of failures. */
static void
append_faults(StringInfo out, const TqGroupPage *page)
{
	appendStringInfo(out, "<h2>Failures</h2>\n");
	if (page->nfaults == 0)
	{
		appendStringInfoString(out, "<p id=\"failures\">None.</p>\n");
		return;
	}
	if (page->nfaults < page->all_faults)
		appendStringInfo(out, "<p>The last %d of %d.</p>\n", page->nfaults,
						 page->all_faults);
	appendStringInfoString(
		out, "<div class=\"wide\"><table id=\"failures\">\n<tr><th>Task</th>"
			 "<th>State</th><th>Error</th><th>Runs</th><th>Worker</th>"
			 "<th>Queue</th><th>Resolved</th><th>Task id</th></tr>\n");
	for (int i = 0; i < page->nfaults; i++)
	{
		const TqFault *fault = &page->faults[i];
		const char *state = tq_state_name(fault->state);

		appendStringInfoString(out, "<tr>");
		append_cell(out, "", fault->name);
		append_cell(out, "",
					strcmp(state, fault->reason) == 0
						? state
						: psprintf("%s: %s", state, fault->reason));
		append_cell(out, " class=\"error\"", fault->error);
		append_cell(out, "", psprintf("%d", fault->runs));
		append_cell(out, "", fault->worker);
		append_cell(out, "", fault->queue);
		append_cell(out, "", tq_label_time(fault->resolved));
		append_cell(out, "", fault->task_id);
		appendStringInfoString(out, "</tr>\n");
	}
	appendStringInfoString(out, "</table></div>\n");
}

/* Appends the report on a task group. */
void
tq_page_html(StringInfo out, const TqGroupPage *page)
{
	append_head(out, page);
	append_progress(out, page);
	append_faults(out, page);
	appendStringInfoString(out, "<h2>Graph</h2>\n");
	if (page->graph->collapsed != NULL)
		appendStringInfo(out, "<p>Drawn as one: %s.</p>\n",
						 page->graph->collapsed);
	appendStringInfoString(out, "<div class=\"wide\" id=\"graph\">\n");
	tq_graph_svg(out, page->graph, "tasks and what they depend on");
	appendStringInfoString(
		out, "</div>\n<h2>Runs</h2>\n<p id=\"path\">Critical path: ");
	tq_label_html(out, page->path);
	appendStringInfoString(out, ".</p>\n<div class=\"wide\" id=\"runs\">\n");
	tq_gantt_svg(out, page->gantt);
	appendStringInfo(out,
					 "</div>\n<p>State of %s, by tq.report_html().</p>\n"
					 "</body>\n</html>\n",
					 tq_label_time(page->now));
}
