/*
 * graph_text.h
 *	  A graph as text: for a terminal, for Graphviz and for Mermaid.
 */
#ifndef TQ_GRAPH_TEXT_H
#define TQ_GRAPH_TEXT_H

#include "lib/stringinfo.h"

#include "graph.h"

extern void tq_graph_tree(StringInfo out, const TqGraph *graph,
						  const char *title);
extern void tq_graph_dot(StringInfo out, const TqGraph *graph,
						 const char *title);
extern void tq_graph_mermaid(StringInfo out, const TqGraph *graph,
							 const char *title);
extern void tq_graph_counts(StringInfo out, const TqGraph *graph);

#endif /* TQ_GRAPH_TEXT_H */
