/*
 * report_json.h
 *	  Reads the reports of workers from JSON.
 */
#ifndef TQ_REPORT_JSON_H
#define TQ_REPORT_JSON_H

#include "utils/jsonb.h"

#include "../core/types.h"
#include "../engine/report.h"

#define TQ_EXCEPTION_REASONS                                                  \
	"worker-shutdown, malformed-payload, resource-unavailable, internal-error, intermittent-task"
#define TQ_REPORT_REASONS                                                     \
	"completed, failed, failed-terminal, " TQ_EXCEPTION_REASONS ", canceled"

extern TqResolved tq_report_reason(const char *name);
extern TqReport *tq_reports_read(Jsonb *json, int *n);

#endif /* TQ_REPORT_JSON_H */
