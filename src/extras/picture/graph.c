/*
 * graph.c
 *	  The graph of a task group, and what it is collapsed to.
 *
 * A node has the level of the longest way to it, so that each edge leads to a
 * higher level.  Nodes of one level are drawn as one where their names differ
 * only in numbers; where that is not enough, where they begin alike; at last,
 * all nodes of a range of levels.  Edges still lead upwards then, so what is
 * drawn has no cycle, however the tasks are named.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/hsearch.h"

#include "../../core/names.h"
#include "picture.h"

/* Edges that are drawn at most, and nodes that may have all edges. */
#define EDGES_DRAWN 5000
#define BANDS 100

/* How tasks are drawn as one. */
typedef enum Coarseness
{
	BY_NUMBER,
	BY_PREFIX,
	BY_BAND,
	COARSENESSES
} Coarseness;

static int
compare_edges(const void *a, const void *b)
{
	const TqGraphEdge *x = a;
	const TqGraphEdge *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The edges that begin at each node: first[node] to first[node + 1]. */
typedef struct Outgoing
{
	int *first;
	int *edge;
} Outgoing;

static Outgoing
list_outgoing(const TqGraph *graph)
{
	Outgoing out = {.first = palloc0(sizeof(int) * (graph->nnodes + 2)),
					.edge = palloc(sizeof(int) * Max(graph->nedges, 1))};

	for (int i = 0; i < graph->nedges; i++)
		out.first[graph->edges[i].from + 2]++;
	for (int i = 2; i <= graph->nnodes + 1; i++)
		out.first[i] += out.first[i - 1];
	for (int i = 0; i < graph->nedges; i++)
		out.edge[out.first[graph->edges[i].from + 1]++] = i;
	return out;
}

/*
 * Gives each node its level, in an order in which a node comes after all that
 * it depends on.  Nodes in a cycle, which no call can make, are left at 0, and
 * edges that do not lead upwards are dropped.
 */
static void
set_levels(TqGraph *graph)
{
	Outgoing out = list_outgoing(graph);
	int *unmet = palloc0(sizeof(int) * Max(graph->nnodes, 1));
	int *ready = palloc(sizeof(int) * Max(graph->nnodes, 1));
	int nready = 0;
	int n = 0;

	for (int i = 0; i < graph->nedges; i++)
		unmet[graph->edges[i].to]++;
	for (int i = 0; i < graph->nnodes; i++)
	{
		graph->nodes[i].level = 0;
		if (unmet[i] == 0)
			ready[nready++] = i;
	}
	for (int done = 0; done < nready; done++)
	{
		int node = ready[done];

		for (int k = out.first[node]; k < out.first[node + 1]; k++)
		{
			int to = graph->edges[out.edge[k]].to;

			graph->nodes[to].level = Max(graph->nodes[to].level,
										 graph->nodes[node].level + 1);
			if (--unmet[to] == 0)
				ready[nready++] = to;
		}
	}
	for (int i = 0; i < graph->nnodes; i++)
	{
		if (unmet[i] > 0)
			graph->nodes[i].level = 0;
	}
	for (int i = 0; i < graph->nedges; i++)
	{
		const TqGraphEdge *edge = &graph->edges[i];

		if (graph->nodes[edge->from].level < graph->nodes[edge->to].level)
			graph->edges[n++] = *edge;
	}
	graph->nedges = n;
}

/* Fills in what follows from the nodes and edges of a graph. */
void
tq_graph_finish(TqGraph *graph)
{
	int n = 0;

	/*
	 * Order the edges, make one of those that are the same, drop those to
	 * self.
	 */
	qsort(graph->edges, graph->nedges, sizeof(TqGraphEdge), compare_edges);
	for (int i = 0; i < graph->nedges; i++)
	{
		TqGraphEdge edge = graph->edges[i];

		if (edge.from == edge.to)
			continue;
		if (n > 0 && compare_edges(&graph->edges[n - 1], &edge) == 0)
			graph->edges[n - 1].count += edge.count;
		else
			graph->edges[n++] = edge;
	}
	graph->nedges = n;
	set_levels(graph);
	graph->levels = 0;
	for (int i = 0; i < graph->nnodes; i++)
	{
		graph->nodes[i].parent = -1;
		graph->levels = Max(graph->levels, graph->nodes[i].level + 1);
	}
	for (int i = 0; i < graph->nedges; i++)
	{
		TqNode *node = &graph->nodes[graph->edges[i].to];
		int from = graph->edges[i].from;

		if (node->parent < 0 ||
			graph->nodes[from].level > graph->nodes[node->parent].level)
			node->parent = from;
	}
}

/* ---- collapse ---- */

/* A task that others are drawn with is found by its key. */
typedef struct GraphKey
{
	uint64 hash; /* of the pattern */
	int level;
	int padding;
} GraphKey;

typedef struct GraphEntry
{
	GraphKey key;
	int node;
} GraphEntry;

static GraphKey
graph_key_of(const TqGraph *graph, const TqNode *node, Coarseness coarseness,
			 int bands)
{
	GraphKey key = {.level = node->level};
	char *pattern;

	if (coarseness == BY_BAND)
	{
		key.level = (int) ((int64) node->level * bands / graph->levels);
		return key;
	}
	pattern = tq_label_pattern(node->name, coarseness == BY_PREFIX);
	key.hash = hash_bytes_extended((const unsigned char *) pattern,
								   strlen(pattern), 0);
	pfree(pattern);
	return key;
}

/* Adds a node to the one that it is drawn with. */
static void
add_node(TqNode *to, const TqNode *node)
{
	to->tasks += node->tasks;
	for (int state = 0; state < TQ_STATES; state++)
		to->count[state] += node->count[state];
	to->outside += node->outside;
	to->is_held |= node->is_held;
	to->remark = "";
	to->link = NULL;
	to->runs = 0;
}

/* Returns the name of a node that stands for several tasks. */
static char *
collapsed_name(const TqNode *first, Coarseness coarseness, bool same_pattern)
{
	if (same_pattern)
		return tq_label_pattern(first->name, coarseness == BY_PREFIX);
	return psprintf("%s, ...", first->name);
}

/*
 * Returns a graph in which nodes with the same key are one; *node_of has the
 * new number of each.
 */
static TqGraph *
merge_nodes(const TqGraph *graph, Coarseness coarseness, int bands,
			int *node_of)
{
	HASHCTL control = {.keysize = sizeof(GraphKey),
					   .entrysize = sizeof(GraphEntry),
					   .hcxt = CurrentMemoryContext};
	HTAB *table = hash_create("nodes of a picture", 256, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	TqGraph *merged = palloc(sizeof(TqGraph));
	bool *is_one_pattern = palloc(Max(graph->nnodes, 1));
	char **pattern = palloc(sizeof(char *) * Max(graph->nnodes, 1));

	*merged = *graph;
	merged->nodes = palloc(sizeof(TqNode) * Max(graph->nnodes, 1));
	merged->nnodes = 0;
	for (int i = 0; i < graph->nnodes; i++)
	{
		const TqNode *node = &graph->nodes[i];
		GraphKey key = graph_key_of(graph, node, coarseness, bands);
		bool exists;
		GraphEntry *entry = hash_search(table, &key, HASH_ENTER, &exists);
		char *own = tq_label_pattern(node->name, coarseness == BY_PREFIX);

		if (!exists)
		{
			entry->node = merged->nnodes++;
			merged->nodes[entry->node] = *node;
			is_one_pattern[entry->node] = true;
			pattern[entry->node] = own;
		}
		else
		{
			add_node(&merged->nodes[entry->node], node);
			is_one_pattern[entry->node] &= strcmp(pattern[entry->node], own) ==
										   0;
		}
		node_of[i] = entry->node;
	}
	for (int i = 0; i < merged->nnodes; i++)
	{
		if (merged->nodes[i].tasks > 1)
			merged->nodes[i].name = collapsed_name(&merged->nodes[i],
												   coarseness,
												   is_one_pattern[i]);
	}
	hash_destroy(table);
	return merged;
}

/* Returns a graph that is collapsed in one way. */
static TqGraph *
collapse(const TqGraph *graph, Coarseness coarseness, int max)
{
	static const char *const how[COARSENESSES] =
		{[BY_NUMBER] = "tasks of one level whose names differ in numbers",
		 [BY_PREFIX] = "tasks of one level whose names begin alike",
		 [BY_BAND] = "levels"};
	int *node_of = palloc(sizeof(int) * Max(graph->nnodes, 1));
	int bands = Min(Min(max, BANDS), graph->levels);
	TqGraph *merged = merge_nodes(graph, coarseness, bands, node_of);

	merged->edges = palloc(sizeof(TqGraphEdge) * Max(graph->nedges, 1));
	for (int i = 0; i < graph->nedges; i++)
		merged->edges[i] = (TqGraphEdge){.from = node_of[graph->edges[i].from],
										 .to = node_of[graph->edges[i].to],
										 .count = graph->edges[i].count};
	merged->collapsed = how[coarseness];
	tq_graph_finish(merged);
	return merged;
}

/* Returns a graph of at most `max` nodes, collapsed no more than it must be. */
TqGraph *
tq_graph_collapse(TqGraph *graph, int max)
{
	TqGraph *drawn = graph;

	for (int coarseness = 0; coarseness < COARSENESSES; coarseness++)
	{
		if (drawn->nnodes <= max && drawn->nedges <= EDGES_DRAWN)
			break;
		drawn = collapse(graph, (Coarseness) coarseness, max);
	}
	return drawn;
}

/* ---- nodes ---- */

/* Returns the state that a node is drawn in: the one to look at first. */
TqState
tq_node_state(const TqNode *node)
{
	static const TqState first[TQ_STATES] = {TQ_STATE_FAILED,
											 TQ_STATE_EXCEPTION,
											 TQ_STATE_RUNNING,
											 TQ_STATE_PENDING,
											 TQ_STATE_UNSCHEDULED,
											 TQ_STATE_COMPLETED};

	for (int i = 0; i < TQ_STATES; i++)
	{
		if (node->count[first[i]] > 0)
			return first[i];
	}
	return TQ_STATE_COMPLETED;
}

/* Returns the state that most tasks of a node have. */
TqState
tq_node_most(const TqNode *node)
{
	TqState most = tq_node_state(node);

	for (int state = 0; state < TQ_STATES; state++)
	{
		if (node->count[state] > node->count[most])
			most = (TqState) state;
	}
	return most;
}

/* Returns the state of a node in words: of several tasks, how many are in each. */
char *
tq_node_summary(const TqNode *node)
{
	StringInfoData text;

	initStringInfo(&text);
	if (node->tasks > 1)
	{
		for (int state = 0; state < TQ_STATES; state++)
		{
			if (node->count[state] > 0)
				appendStringInfo(&text, "%s%d %s", text.len > 0 ? ", " : "",
								 node->count[state], tq_state_name(state));
		}
	}
	else
		appendStringInfoString(&text, tq_state_name(tq_node_state(node)));
	if (node->remark[0] != '\0')
		appendStringInfo(&text, ": %s", node->remark);
	if (node->runs > 0)
		appendStringInfo(&text, ", %d %s", node->runs,
						 node->runs == 1 ? "retry" : "retries");
	if (node->is_held)
		appendStringInfoString(&text, ", held");
	if (node->outside > 0)
		appendStringInfo(&text, ", +%d outside", node->outside);
	return text.data;
}
