/*
 * picture.h
 *	  The library tq_picture: pictures of task groups, as text, SVG and HTML.
 *
 * Decides how a graph, runs and a report are drawn.  It has no access to
 * tables: src/sql/pictures.sql reads what it draws.  All texts are labels, made
 * safe to show by label.c.
 */
#ifndef TQ_PICTURE_H
#define TQ_PICTURE_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "utils/array.h"

#include "../../core/types.h"

/* ---- label.c: text of users, made safe to show and escaped ---- */

/*
 * Each state differs in more than its colour: in a terminal by a mark,
 * elsewhere by its name, the shape or a pattern of lines.
 */
typedef struct TqStateStyle
{
	const char *fill;  /* of Okabe and Ito, who chose them for all eyes */
	const char *ink;   /* colour of text on it */
	const char *shape; /* in Graphviz */
	const char *style; /* in Graphviz */
	const char *open;  /* in Mermaid, around the label */
	const char *close;
	char mark; /* in a terminal */
} TqStateStyle;

extern const TqStateStyle tq_state_styles[TQ_STATES];

extern char *tq_label(const char *text, int max);
extern char *tq_label_lines(const char *text, int max);
extern char *tq_label_pattern(const char *name, bool without_suffix);
extern void tq_label_html(StringInfo out, const char *label);
extern void tq_label_dot(StringInfo out, const char *label);
extern void tq_label_mermaid(StringInfo out, const char *label);
extern char *tq_label_time(TimestampTz t);

/* ---- graph.c: the graph of a task group, and what it is collapsed to ---- */

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
	int place;    /* of one task on the critical path, from 1; 0: it is not */
	char *link;   /* of one task: where its box leads; NULL: nowhere */
	bool is_held; /* depends on itself: waits for schedule_task() */
	int level;    /* the longest way from a task that depends on none */
	int parent;   /* a dependency of the highest level; -1: none */
} TqNode;

/* `to` depends on `from`.  Edges are in order of `to`, then `from`. */
typedef struct TqGraphEdge
{
	int from;
	int to;
	int count; /* dependencies that it stands for */
} TqGraphEdge;

typedef struct TqGraph
{
	int nnodes;
	TqNode *nodes;
	int nedges;
	TqGraphEdge *edges;
	int levels;
	int tasks;
	int count[TQ_STATES];
	const char
		*collapsed; /* by what tasks were drawn as one; NULL: none was */
	bool is_alone;  /* not in a page */
} TqGraph;

extern void tq_graph_finish(TqGraph *graph);
extern TqGraph *tq_graph_collapse(TqGraph *graph, int max);
extern TqState tq_node_state(const TqNode *node);
extern TqState tq_node_most(const TqNode *node);
extern char *tq_node_summary(const TqNode *node);

/* ---- layout.c: where the nodes and edges of a graph are drawn ---- */

/* A node, or a position at which an edge passes a column. */
typedef struct TqPosition
{
	int column;
	double y; /* of its middle, in rows from 0 */
} TqPosition;

/* The positions of an edge, from its first node to its last one. */
typedef struct TqRoute
{
	int npositions;
	int *positions;
} TqRoute;

typedef struct TqLayout
{
	int npositions; /* the first ones are those of the nodes */
	TqPosition *positions;
	TqRoute *routes; /* of the edges */
	int columns;
	double rows;
} TqLayout;

extern void tq_graph_svg(StringInfo out, const TqGraph *graph,
						 const char *title);

/* ---- svg.c: elements, style and legend of pictures in SVG ---- */

extern void tq_svg_begin(StringInfo out, int width, int height,
						 const char *label, bool is_alone);
extern void tq_svg_end(StringInfo out);
extern void tq_svg_style(StringInfo out);
extern void tq_svg_patterns(StringInfo out);
extern void tq_svg_text(StringInfo out, double x, double y, const char *class,
						const char *label);
extern void tq_svg_box(StringInfo out, double x, double y, double width,
					   double height, TqState state);
extern void tq_svg_shares(StringInfo out, double x, double y, double width,
						  double height, const int *count, bool numbered);
extern void tq_svg_legend(StringInfo out, int x, int y);

/* ---- graph_text.c: a graph for a terminal, for Graphviz, for Mermaid ---- */

extern void tq_graph_tree(StringInfo out, const TqGraph *graph,
						  const char *title);
extern void tq_graph_dot(StringInfo out, const TqGraph *graph,
						 const char *title);
extern void tq_graph_mermaid(StringInfo out, const TqGraph *graph,
							 const char *title);
extern void tq_graph_counts(StringInfo out, const TqGraph *graph);

/* ---- gantt.c: runs by worker and time ---- */

/* A run.  All texts are labels. */
typedef struct TqBar
{
	char *worker; /* NULL: it was not claimed */
	char *name;
	const char *progress; /* that a running run has reported; or "" */
	int run_id;
	TqState state;
	const char *reason; /* NULL: not resolved */
	TimestampTz claimable;
	TimestampTz started;  /* 0: it was not claimed */
	TimestampTz resolved; /* 0: it is not */
	bool is_critical;     /* its task is on the critical path */
} TqBar;

typedef struct TqGantt
{
	const char *title;
	TimestampTz now;
	int max_rows;
	int nbars;
	TqBar *bars;
	bool is_alone; /* not in a page */
} TqGantt;

extern void tq_gantt_svg(StringInfo out, const TqGantt *gantt);

/* ---- path.c: the critical path ---- */

/* When a task ends. */
typedef struct TqEnd
{
	TimestampTz at;
	TimestampTz scheduled; /* its last run; 0: it waits for others */
	int64 takes;           /* its run, in microseconds */
} TqEnd;

typedef struct TqPathTask
{
	int task;
	TimestampTz second; /* end of the next best; DT_NOBEGIN: there is none */
} TqPathTask;

extern int tq_path_find(const TqGraph *graph, TqEnd *ends, TimestampTz now,
						TqPathTask *path);

/* ---- page.c: the report on a task group: one page of HTML ---- */

/* A task that failed.  All texts are labels. */
typedef struct TqFault
{
	char *name;
	char *task_id;
	char *queue;
	char *worker; /* NULL: none */
	char *error;  /* NULL: none */
	TqState state;
	const char *reason;
	int runs;
	TimestampTz resolved;
} TqFault;

typedef struct TqGroupPage
{
	char *title; /* id and name of the group, a label */
	TimestampTz now;
	TimestampTz sealed;  /* 0: it is not */
	const char *outcome; /* NULL: not all tasks are resolved */
	const TqGraph *graph;
	const TqGantt *gantt;
	char *path; /* names of the tasks of the critical path, a label */
	TqFault *faults;
	int nfaults;
	int all_faults; /* of which `faults` are the last */
} TqGroupPage;

extern void tq_page_html(StringInfo out, const TqGroupPage *page);

/* ---- tq_picture.c: reads the rows of a task group, for all of these ---- */

typedef struct TqGroupPicture
{
	TqGraph graph;
	int64 *ids; /* of the tasks, in order; the nodes have the same indexes */
} TqGroupPicture;

#endif /* TQ_PICTURE_H */
