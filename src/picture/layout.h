/*
 * layout.h
 *	  Where the nodes and edges of a graph are drawn.
 */
#ifndef TQ_LAYOUT_H
#define TQ_LAYOUT_H

#include "graph.h"

/* A node, or a place at which an edge passes a column. */
typedef struct TqPlace
{
	int column;
	double y; /* of its middle, in rows from 0 */
} TqPlace;

/* The places of an edge, from its first node to its last one. */
typedef struct TqRoute
{
	int nplaces;
	int *places;
} TqRoute;

typedef struct TqLayout
{
	int nplaces; /* the first ones are those of the nodes */
	TqPlace *places;
	TqRoute *routes; /* of the edges */
	int columns;
	double rows;
} TqLayout;

extern TqLayout *tq_layout(const TqGraph *graph);

#endif /* TQ_LAYOUT_H */
