/*
 * worker_api.h
 *	  Rows that functions for workers return.
 */
#ifndef TQ_WORKER_API_H
#define TQ_WORKER_API_H

#include "funcapi.h"

#include "../engine/report.h"

extern void tq_put_outcome(ReturnSetInfo *rsinfo, const TqReport *report);

#endif /* TQ_WORKER_API_H */
