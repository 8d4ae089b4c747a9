/*
 * group_graph.h
 *	  Reads a task group as a graph that can be drawn.
 */
#ifndef TQ_GROUP_GRAPH_H
#define TQ_GROUP_GRAPH_H

#include "../picture/gantt.h"
#include "../picture/graph.h"
#include "../storage/group_rows.h"
#include "../storage/group_table.h"

/* A node of the graph is the task with the same index. */
typedef struct TqGroupPicture
{
	TqGraph graph;
	TqGroupTask *tasks; /* in order of their ids */
	int ntasks;
} TqGroupPicture;

/* Characters of a label. */
#define TQ_LABEL_MAX 60

extern void tq_group_graph(const TqGroup *group, TqGroupPicture *picture);
extern int tq_group_graph_find(const TqGroupPicture *picture, int64 task);
extern void tq_group_gantt(const TqGroup *group, const TqGroupPicture *picture,
						   TqGantt *gantt);

#endif /* TQ_GROUP_GRAPH_H */
