/*
 * audit.h
 *	  The audit trail: which role made which call.
 */
#ifndef TQ_AUDIT_H
#define TQ_AUDIT_H

#include "utils/jsonb.h"

#include "../util/slugid.h"

#define TQ_NO_RUN (-1)

/* A task, or a run of it, that a call is about. */
typedef struct TqActRun
{
	TqSlug task_id;
	int run_id;         /* TQ_NO_RUN: none in particular */
	const char *client; /* of the credentials that were given; NULL: none */
} TqActRun;

/* A call that succeeds. */
typedef struct TqAct
{
	const char *function;
	Jsonb *arguments; /* those that identify what the call is about */
	const TqActRun *runs;
	int n;
} TqAct;

extern void tq_audit_write(const TqAct *act);

#endif /* TQ_AUDIT_H */
