/*
 * graph_svg.h
 *	  A graph as an SVG of a page.
 */
#ifndef TQ_GRAPH_SVG_H
#define TQ_GRAPH_SVG_H

#include "lib/stringinfo.h"

#include "graph.h"

extern void tq_graph_svg(StringInfo out, const TqGraph *graph,
						 const char *title);

#endif /* TQ_GRAPH_SVG_H */
