/*
 * page.h
 *	  The report on a task group: one page of HTML.
 */
#ifndef TQ_PAGE_H
#define TQ_PAGE_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

#include "../core/types.h"
#include "gantt.h"
#include "graph.h"

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

typedef struct TqPage
{
	char *task_group_id;
	TimestampTz now;
	TimestampTz sealed;  /* 0: it is not */
	const char *outcome; /* NULL: not all tasks are resolved */
	const TqGraph *graph;
	const TqGantt *gantt;
	TqFault *faults;
	int nfaults;
	int all_faults; /* of which `faults` are the last */
} TqPage;

extern void tq_page_html(StringInfo out, const TqPage *page);

#endif /* TQ_PAGE_H */
