/*
 * graph.h
 *	  The graph of a task group, and what it is collapsed to.
 */
#ifndef TQ_GRAPH_H
#define TQ_GRAPH_H

#include "../core/types.h"

/* A task, or several that are drawn as one. */
typedef struct TqNode
{
	char *name;         /* a label */
	const char *remark; /* reason, progress or another remark on one task; or
						   "" */
	int tasks;
	int count[TQ_STATES];
	int outside;  /* dependencies on tasks that are not in the group */
	int runs;     /* runs of one task after its first */
	bool is_held; /* depends on itself: waits for schedule_task() */
	int level;    /* the longest way from a task that depends on none */
	int parent;   /* a dependency of the highest level; -1: none */
} TqNode;

/* `to` depends on `from`.  Edges are in order of `to`, then `from`. */
typedef struct TqEdge
{
	int from;
	int to;
	int count; /* dependencies that it stands for */
} TqEdge;

typedef struct TqGraph
{
	int nnodes;
	TqNode *nodes;
	int nedges;
	TqEdge *edges;
	int levels;
	int tasks;
	int count[TQ_STATES];
	const char
		*collapsed; /* by what tasks were drawn as one; NULL: none was */
} TqGraph;

/* More tasks or dependencies than this are not read. */
#define TQ_GRAPH_TASKS 50000
#define TQ_GRAPH_EDGES 500000

extern void tq_graph_finish(TqGraph *graph);
extern TqGraph *tq_graph_collapse(TqGraph *graph, int max);
extern TqState tq_node_state(const TqNode *node);
extern char *tq_node_summary(const TqNode *node);

#endif /* TQ_GRAPH_H */
