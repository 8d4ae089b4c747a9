/*
 * layout.c
 *	  Where the nodes and edges of a graph are drawn.
 *
 * Each level is a column.  An edge that passes columns has a position in each,
 * as if it were a node there, so that it crosses no box.  The order in a column
 * follows from the mean of the neighbours (barycenters), in passes to the right
 * and to the left; then each position moves towards the mean of its neighbours,
 * as far as the order and the distance allow.
 */
#include "postgres.h"

#include "picture.h"

#define PASSES 8

/* Without positions for edges that pass columns if there were more. */
#define PASSING 20000

/* Distance of two positions, in rows: of nodes, and of edges that pass. */
#define OF_NODES 1.0
#define OF_EDGES 0.35

/* A position while the layout is made. */
typedef struct Vertex
{
	int column;
	bool is_node;
	double order; /* what it is sorted by */
	int left;     /* first of its links in `to_left` */
	int nleft;
	int right;
	int nright;
} Vertex;

typedef struct Plan
{
	TqLayout *layout;
	Vertex *vertices;
	int *to_left;  /* neighbours in the column before, by vertex */
	int *to_right; /* in the column after */
	int *column;   /* vertices by column, in order */
	int *first;    /* of each column in `column` */
} Plan;

/* Returns how many positions edges need in the columns that they pass. */
static int64
count_passing(const TqGraph *graph)
{
	int64 n = 0;

	for (int i = 0; i < graph->nedges; i++)
		n += graph->nodes[graph->edges[i].to].level -
			 graph->nodes[graph->edges[i].from].level - 1;
	return n;
}

/* Makes the positions of nodes, and the routes of edges with their positions. */
static void
make_routes(const TqGraph *graph, TqLayout *layout)
{
	int64 passing = count_passing(graph);
	bool has_positions = passing <= PASSING;

	layout->positions = palloc0(
		sizeof(TqPosition) *
		(graph->nnodes + (has_positions ? passing : 0) + 1));
	layout->routes = palloc(sizeof(TqRoute) * Max(graph->nedges, 1));
	layout->npositions = graph->nnodes;
	for (int i = 0; i < graph->nnodes; i++)
		layout->positions[i].column = graph->nodes[i].level;
	for (int i = 0; i < graph->nedges; i++)
	{
		const TqGraphEdge *edge = &graph->edges[i];
		TqRoute *route = &layout->routes[i];
		int from = graph->nodes[edge->from].level;
		int to = graph->nodes[edge->to].level;

		route->positions = palloc(sizeof(int) *
								  (has_positions ? to - from + 1 : 2));
		route->npositions = 0;
		route->positions[route->npositions++] = edge->from;
		for (int column = from + 1; has_positions && column < to; column++)
		{
			layout->positions[layout->npositions].column = column;
			route->positions[route->npositions++] = layout->npositions++;
		}
		route->positions[route->npositions++] = edge->to;
	}
}

/* Counts the links of each vertex, or enters them. */
static void
walk_links(Plan *plan, const TqGraph *graph, bool is_entered)
{
	for (int i = 0; i < graph->nedges; i++)
	{
		const TqRoute *route = &plan->layout->routes[i];

		for (int k = 1; k < route->npositions; k++)
		{
			Vertex *from = &plan->vertices[route->positions[k - 1]];
			Vertex *to = &plan->vertices[route->positions[k]];

			if (is_entered)
			{
				plan->to_right[from->right + from->nright] =
					route->positions[k];
				plan->to_left[to->left + to->nleft] = route->positions[k - 1];
			}
			from->nright++;
			to->nleft++;
		}
	}
}

/* Makes the vertices with their links. */
static void
make_vertices(Plan *plan, const TqGraph *graph)
{
	int n = plan->layout->npositions;
	int left = 0;
	int right = 0;

	plan->vertices = palloc0(sizeof(Vertex) * (n + 1));
	for (int i = 0; i < n; i++)
	{
		plan->vertices[i].column = plan->layout->positions[i].column;
		plan->vertices[i].is_node = i < graph->nnodes;
	}
	walk_links(plan, graph, false);
	for (int i = 0; i < n; i++)
	{
		Vertex *vertex = &plan->vertices[i];

		vertex->left = left;
		vertex->right = right;
		left += vertex->nleft;
		right += vertex->nright;
		vertex->nleft = vertex->nright = 0;
	}
	plan->to_left = palloc(sizeof(int) * (left + 1));
	plan->to_right = palloc(sizeof(int) * (right + 1));
	walk_links(plan, graph, true);
}

/* Puts the vertices into their columns, in the order of tasks. */
static void
make_columns(Plan *plan)
{
	int n = plan->layout->npositions;
	int columns = plan->layout->columns;
	int *next = palloc0(sizeof(int) * (columns + 2));

	plan->column = palloc(sizeof(int) * (n + 1));
	plan->first = palloc0(sizeof(int) * (columns + 2));
	for (int i = 0; i < n; i++)
		plan->first[plan->vertices[i].column + 1]++;
	for (int i = 0; i < columns; i++)
		plan->first[i + 1] += plan->first[i];
	memcpy(next, plan->first, sizeof(int) * (columns + 1));
	for (int i = 0; i < n; i++)
		plan->column[next[plan->vertices[i].column]++] = i;
}

/* Returns the mean position of the neighbours on one side, or its own. */
static double
mean_of(const Plan *plan, int vertex, bool of_left)
{
	const Vertex *v = &plan->vertices[vertex];
	const int *links = of_left ? plan->to_left + v->left
							   : plan->to_right + v->right;
	int n = of_left ? v->nleft : v->nright;
	double sum = 0;

	if (n == 0)
		return plan->layout->positions[vertex].y;
	for (int i = 0; i < n; i++)
		sum += plan->layout->positions[links[i]].y;
	return sum / n;
}

static int
compare_vertices(const void *a, const void *b, void *arg)
{
	const Vertex *vertices = arg;
	int x = *(const int *) a;
	int y = *(const int *) b;

	if (vertices[x].order != vertices[y].order)
		return vertices[x].order < vertices[y].order ? -1 : 1;
	return x < y ? -1 : x > y;
}

static double
distance(const Plan *plan, int a, int b)
{
	return plan->vertices[a].is_node || plan->vertices[b].is_node ? OF_NODES
																  : OF_EDGES;
}

/*
 * Places the vertices of a column as near as possible to where they should be,
 * in the order that they have.  Then the whole column moves by what they are
 * off on the mean.
 */
static void
position_column(Plan *plan, int column)
{
	TqPosition *positions = plan->layout->positions;
	int first = plan->first[column];
	int end = plan->first[column + 1];
	double off = 0;

	for (int i = first; i < end; i++)
	{
		int vertex = plan->column[i];
		double y = plan->vertices[vertex].order;

		if (i > first)
		{
			int above = plan->column[i - 1];

			y = Max(y, positions[above].y + distance(plan, above, vertex));
		}
		off += y - plan->vertices[vertex].order;
		positions[vertex].y = y;
	}
	for (int i = first; i < end; i++)
		positions[plan->column[i]].y -= off / (end - first);
}

/* Orders and positions all columns by one side. */
static void
pass(Plan *plan, bool of_left)
{
	int columns = plan->layout->columns;

	for (int i = 0; i < columns; i++)
	{
		int column = of_left ? i : columns - 1 - i;
		int first = plan->first[column];
		int n = plan->first[column + 1] - first;

		for (int k = first; k < first + n; k++)
			plan->vertices[plan->column[k]].order =
				mean_of(plan, plan->column[k], of_left);
		qsort_arg(plan->column + first, n, sizeof(int), compare_vertices,
				  plan->vertices);
		position_column(plan, column);
	}
}

/* Returns where the nodes and edges of a graph are drawn. */
static TqLayout *
layout_graph(const TqGraph *graph)
{
	Plan plan = {.layout = palloc0(sizeof(TqLayout))};
	TqLayout *layout = plan.layout;
	double least;

	layout->columns = graph->levels;
	make_routes(graph, layout);
	make_vertices(&plan, graph);
	make_columns(&plan);
	for (int i = 0; i < layout->columns; i++)
	{
		for (int k = plan.first[i]; k < plan.first[i + 1]; k++)
			layout->positions[plan.column[k]].y = k - plan.first[i];
	}
	for (int i = 0; i < PASSES; i++)
		pass(&plan, i % 2 == 0);
	/* Move all positions so that the highest one is in row 0. */
	least = layout->npositions > 0 ? layout->positions[0].y : 0;
	for (int i = 0; i < layout->npositions; i++)
		least = Min(least, layout->positions[i].y);
	for (int i = 0; i < layout->npositions; i++)
	{
		layout->positions[i].y -= least;
		layout->rows = Max(layout->rows, layout->positions[i].y + 1);
	}
	return layout;
}

/* ---- a graph as an SVG of a page ---- */

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
	TqState state = tq_node_most(node);
	char *summary = tq_node_summary(node);
	char *name = node->tasks == 1
					 ? node->name
					 : psprintf("%d x %s", node->tasks, node->name);

	if (node->link != NULL)
	{
		appendStringInfoString(out, "<a href=\"");
		tq_label_html(out, node->link);
		appendStringInfoString(out, "\">");
	}
	appendStringInfoString(out, "<g class=\"node\"><title>");
	tq_label_html(out, name);
	appendStringInfoString(out, ": ");
	tq_label_html(out, summary);
	appendStringInfoString(out, "</title>");
	if (node->tasks > 1)
		tq_svg_box(out, x + 4, y + 4, BOX_WIDTH, BOX_HEIGHT, state);
	if (node->count[state] == node->tasks)
		tq_svg_box(out, x, y, BOX_WIDTH, BOX_HEIGHT, state);
	else
		tq_svg_shares(out, x, y, BOX_WIDTH, BOX_HEIGHT, node->count, false);
	tq_svg_text(out, x + 20, y + 15, "in", tq_label(name, NAME_MAX));
	tq_svg_text(out, x + 20, y + 29, "small in", tq_label(summary, STATE_MAX));
	appendStringInfo(out, "</g>%s\n", node->link != NULL ? "</a>" : "");
}

/* Appends the picture of a graph, with what the states look like below it. */
void
tq_graph_svg(StringInfo out, const TqGraph *graph, const char *title)
{
	TqLayout *layout = layout_graph(graph);
	int width = 2 * MARGIN + COLUMN * (Max(layout->columns, 1) - 1) +
				BOX_WIDTH + 4;
	int height = 2 * MARGIN + (int) (ROW * layout->rows) + LEGEND;

	tq_svg_begin(out, Max(width, 680), height, title, graph->is_alone);
	for (int i = 0; i < graph->nedges; i++)
		append_edge(out, layout, &layout->routes[i]);
	for (int i = 0; i < graph->nnodes; i++)
		append_node(out, &graph->nodes[i], &layout->positions[i]);
	tq_svg_legend(out, MARGIN, height - LEGEND + 6);
	tq_svg_end(out);
}
