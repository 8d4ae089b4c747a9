/*
 * graph_text.c
 *	  A graph as text: for a terminal, for Graphviz and for Mermaid.
 *
 * Nodes are named n0, n1 and so on in the languages, so that no name of a user
 * is ever a name there, but only a label in quotes.
 */
#include "postgres.h"

#include "../../core/names.h"
#include "picture.h"

/* Deeper nodes of a tree are indented no further. */
#define DEPTH 12

/* Tasks that a line of a tree names in addition to the one above it. */
#define ALSO 3

/* Appends how many tasks there are, and in which states. */
void
tq_graph_counts(StringInfo out, const TqGraph *graph)
{
	const char *separator = ": ";

	appendStringInfo(out, "%d %s", graph->tasks,
					 graph->tasks == 1 ? "task" : "tasks");
	for (int state = 0; state < TQ_STATES; state++)
	{
		if (graph->count[state] == 0)
			continue;
		appendStringInfo(out, "%s%d %s", separator, graph->count[state],
						 tq_state_name(state));
		separator = ", ";
	}
}

/* Returns the first line and, of a collapsed graph, how it was. */
static char *
heading(const TqGraph *graph, const char *title)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "task group %s, ", title);
	tq_graph_counts(&text, graph);
	if (graph->collapsed != NULL)
		appendStringInfo(&text, "; drawn as one: %s", graph->collapsed);
	return text.data;
}

/* ---- tree ---- */

/* A tree that is drawn. */
typedef struct Tree
{
	StringInfo out;
	const TqGraph *graph;
	int *child;   /* first node below each one, or -1 */
	int *sibling; /* the next node below the same one, or -1 */
	int *edge;    /* the first edge to each one */
	bool more[DEPTH];
} Tree;

/* Links the nodes below their parents, in their order. */
static void
link_nodes(Tree *tree)
{
	const TqGraph *graph = tree->graph;
	int n = graph->nnodes;

	tree->child = palloc(sizeof(int) * (n + 1));
	tree->sibling = palloc(sizeof(int) * (n + 1));
	tree->edge = palloc(sizeof(int) * (n + 1));
	for (int i = 0; i <= n; i++)
		tree->child[i] = tree->sibling[i] = -1;
	for (int i = n - 1; i >= 0; i--)
	{
		int parent = graph->nodes[i].parent;
		int *first = &tree->child[parent < 0 ? n : parent];

		tree->sibling[i] = *first;
		*first = i;
	}
	for (int i = 0, edge = 0; i <= n; i++)
	{
		while (edge < graph->nedges && graph->edges[edge].to < i)
			edge++;
		tree->edge[i] = edge;
	}
}

/* Appends what a node depends on, except for the node that it is below. */
static void
append_also(const Tree *tree, int node)
{
	const TqGraph *graph = tree->graph;
	int others = tree->edge[node + 1] - tree->edge[node] - 1;
	int named = 0;

	if (others < 1)
		return;
	appendStringInfoString(tree->out, "  (also after ");
	for (int i = tree->edge[node]; i < tree->edge[node + 1]; i++)
	{
		int from = graph->edges[i].from;

		if (from == graph->nodes[node].parent || named == ALSO)
			continue;
		appendStringInfo(tree->out, "%s%s", named > 0 ? ", " : "",
						 graph->nodes[from].name);
		named++;
	}
	if (others > named)
		appendStringInfo(tree->out, " and %d others", others - named);
	appendStringInfoChar(tree->out, ')');
}

/*
 * Appends a graph as a tree of lines: each node once, below the one that it
 * depends on and that comes latest.
 */
void
tq_graph_tree(StringInfo out, const TqGraph *graph, const char *title)
{
	Tree tree = {.out = out, .graph = graph};
	int node;
	int depth = 0;

	appendStringInfo(out, "%s\n", heading(graph, title));
	link_nodes(&tree);
	node = tree.child[graph->nnodes];
	while (node >= 0)
	{
		const TqNode *shown;

		if (depth < DEPTH)
			tree.more[depth] = tree.sibling[node] >= 0;
		/* Append the line of a node. */
		shown = &tree.graph->nodes[node];
		for (int i = 1; i < Min(depth, DEPTH); i++)
			appendStringInfoString(tree.out, tree.more[i] ? "|  " : "   ");
		if (depth >= DEPTH)
			appendStringInfo(tree.out, "[%d] ", depth);
		else if (depth > 0)
			appendStringInfoString(tree.out, tree.more[depth] ? "|- " : "`- ");
		appendStringInfo(tree.out, "%c ",
						 tq_state_styles[tq_node_state(shown)].mark);
		/* Append the name of a node, and how many tasks it stands for. */
		appendStringInfoString(tree.out, shown->name);
		if (shown->tasks > 1)
			appendStringInfo(tree.out, " (%d tasks)", shown->tasks);
		appendStringInfo(tree.out, "  %s", tq_node_summary(shown));
		append_also(&tree, node);
		appendStringInfoChar(tree.out, '\n');
		if (tree.child[node] >= 0)
		{
			node = tree.child[node];
			depth++;
			continue;
		}
		while (node >= 0 && tree.sibling[node] < 0)
		{
			node = graph->nodes[node].parent;
			depth--;
		}
		if (node >= 0)
			node = tree.sibling[node];
	}
}

/* ---- Graphviz ---- */

/* Appends how a node is painted: of several states, in their shares. */
static void
append_style(StringInfo out, const TqNode *node)
{
	const TqStateStyle *style = &tq_state_styles[tq_node_most(node)];
	const char *separator = "";

	if (node->count[tq_node_most(node)] == node->tasks)
	{
		appendStringInfo(out, "shape=%s, style=\"%s\", fillcolor=\"%s\", ",
						 style->shape, style->style, style->fill);
		return;
	}
	appendStringInfoString(out, "shape=box, style=\"striped\", fillcolor=\"");
	for (int state = TQ_STATES - 1; state >= 0; state--)
	{
		if (node->count[state] == 0)
			continue;
		appendStringInfo(out, "%s%s;%g", separator,
						 tq_state_styles[state].fill,
						 (double) node->count[state] / node->tasks);
		separator = ":";
	}
	appendStringInfoString(out, "\", ");
}

/* Appends a graph in the language of Graphviz. */
void
tq_graph_dot(StringInfo out, const TqGraph *graph, const char *title)
{
	appendStringInfoString(out, "digraph tq {\n\tlabel=\"");
	tq_label_dot(out, heading(graph, title));
	appendStringInfoString(out, "\";\n\trankdir=LR;\n\tnode [shape=box, "
								"fontname=\"sans-serif\", fontsize=11];\n");
	for (int i = 0; i < graph->nnodes; i++)
	{
		const TqNode *node = &graph->nodes[i];

		appendStringInfo(out, "\tn%d [label=\"", i);
		tq_label_dot(out, node->name);
		if (node->tasks > 1)
			appendStringInfo(out, " (%d tasks)", node->tasks);
		appendStringInfoString(out, "\\n");
		tq_label_dot(out, tq_node_summary(node));
		appendStringInfoString(out, "\", ");
		append_style(out, node);
		appendStringInfo(out, "fontcolor=\"%s\"];\n",
						 tq_state_styles[tq_node_most(node)].ink);
	}
	for (int i = 0; i < graph->nedges; i++)
		appendStringInfo(out, "\tn%d -> n%d;\n", graph->edges[i].from,
						 graph->edges[i].to);
	appendStringInfoString(out, "}\n");
}

/* ---- Mermaid ---- */

/* Appends a graph in the language of Mermaid. */
void
tq_graph_mermaid(StringInfo out, const TqGraph *graph, const char *title)
{
	char *comment = heading(graph, title);

	/* What would begin a directive of Mermaid is shown as question marks. */
	for (char *c = comment; *c != '\0'; c++)
	{
		if (strchr("%{}", *c) != NULL)
			*c = '?';
	}
	appendStringInfo(out, "%%%% %s\nflowchart LR\n", comment);
	for (int i = 0; i < graph->nnodes; i++)
	{
		const TqNode *node = &graph->nodes[i];
		TqState state = tq_node_most(node);

		appendStringInfo(out, "    n%d%s\"", i, tq_state_styles[state].open);
		tq_label_mermaid(out, node->name);
		if (node->tasks > 1)
			appendStringInfo(out, " (%d tasks)", node->tasks);
		appendStringInfoString(out, "<br/>");
		tq_label_mermaid(out, tq_node_summary(node));
		appendStringInfo(out, "\"%s:::%s\n", tq_state_styles[state].close,
						 tq_state_name(state));
		/* The border is of the state to look at first. */
		if (tq_node_state(node) != state)
			appendStringInfo(out, "    style n%d stroke:%s,stroke-width:4px\n",
							 i, tq_state_styles[tq_node_state(node)].fill);
	}
	for (int i = 0; i < graph->nedges; i++)
		appendStringInfo(out, "    n%d --> n%d\n", graph->edges[i].from,
						 graph->edges[i].to);
	for (int state = 0; state < TQ_STATES; state++)
		appendStringInfo(out, "    classDef %s fill:%s,color:%s\n",
						 tq_state_name(state), tq_state_styles[state].fill,
						 tq_state_styles[state].ink);
}
