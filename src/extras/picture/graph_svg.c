/*
 * graph_svg.c
 *	  A graph as an SVG of a page.
 */
#include "postgres.h"

#include "picture.h"

#define MARGIN 10
#define BOX_WIDTH 180
#define BOX_HEIGHT 36
#define COLUMN 240
#define ROW 48
#define LEGEND 30

/* Characters that a line of a box has space for. */
#define NAME_MAX 24
#define STATE_MAX 30

static double
graph_svg_x_of(const TqPosition *position)
{
	return MARGIN + COLUMN * position->column;
}

static double
y_of(const TqPosition *position)
{
	return MARGIN + BOX_HEIGHT / 2 + (int) (ROW * position->y + 0.5);
}

/* Appends an edge: curves between columns, and straight where it passes one. */
static void
append_edge(StringInfo out, const TqLayout *layout, const TqRoute *route)
{
	const TqPosition *last = &layout->positions[route->positions[0]];

	appendStringInfo(out, "<path class=\"line\" d=\"M%g %g",
					 graph_svg_x_of(last) + BOX_WIDTH, y_of(last));
	for (int i = 1; i < route->npositions; i++)
	{
		const TqPosition *position = &layout->positions[route->positions[i]];
		double middle =
			(graph_svg_x_of(last) + BOX_WIDTH + graph_svg_x_of(position)) / 2;

		appendStringInfo(out, "C%g %g %g %g %g %g", middle, y_of(last), middle,
						 y_of(position), graph_svg_x_of(position),
						 y_of(position));
		if (i < route->npositions - 1)
			appendStringInfo(out, "h%d", BOX_WIDTH);
		last = position;
	}
	appendStringInfo(out, "\"/><path class=\"tip\" d=\"M%g %gl-7 -4v8z\"/>",
					 graph_svg_x_of(last), y_of(last));
	appendStringInfoChar(out, '\n');
}

/* Appends a node with its name and state; of several tasks, in a stack. */
static void
append_node(StringInfo out, const TqNode *node, const TqPosition *position)
{
	double x = graph_svg_x_of(position);
	double y = y_of(position) - BOX_HEIGHT / 2;
	TqState state = tq_node_state(node);
	char *summary = tq_node_summary(node);
	char *name = node->tasks == 1
					 ? node->name
					 : psprintf("%d x %s", node->tasks, node->name);

	appendStringInfoString(out, "<g class=\"node\"><title>");
	tq_label_html(out, name);
	appendStringInfoString(out, ": ");
	tq_label_html(out, summary);
	appendStringInfoString(out, "</title>");
	if (node->tasks > 1)
		tq_svg_box(out, x + 4, y + 4, BOX_WIDTH, BOX_HEIGHT, state);
	tq_svg_box(out, x, y, BOX_WIDTH, BOX_HEIGHT, state);
	tq_svg_text(out, x + 20, y + 15, "in", tq_label(name, NAME_MAX));
	tq_svg_text(out, x + 20, y + 29, "small in", tq_label(summary, STATE_MAX));
	appendStringInfoString(out, "</g>\n");
}

/* Appends the picture of a graph, with what the states look like below it. */
void
tq_graph_svg(StringInfo out, const TqGraph *graph, const char *title)
{
	TqLayout *layout = tq_layout(graph);
	int width = 2 * MARGIN + COLUMN * (Max(layout->columns, 1) - 1) +
				BOX_WIDTH + 4;
	int height = 2 * MARGIN + (int) (ROW * layout->rows) + LEGEND;

	tq_svg_begin(out, Max(width, 680), height, title, false);
	for (int i = 0; i < graph->nedges; i++)
		append_edge(out, layout, &layout->routes[i]);
	for (int i = 0; i < graph->nnodes; i++)
		append_node(out, &graph->nodes[i], &layout->positions[i]);
	tq_svg_legend(out, MARGIN, height - LEGEND + 6);
	tq_svg_end(out);
}
