/*
 * gantt.h
 *	  Runs by worker and time.
 */
#ifndef TQ_GANTT_H
#define TQ_GANTT_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

#include "../core/types.h"

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

/* More runs than this are not read. */
#define TQ_GANTT_RUNS 100000

extern void tq_gantt_svg(StringInfo out, const TqGantt *gantt);

#endif /* TQ_GANTT_H */
