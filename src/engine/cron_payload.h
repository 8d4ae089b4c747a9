/*
 * cron_payload.h
 *	  Fields in the payload of a recurring task.
 */
#ifndef TQ_CRON_PAYLOAD_H
#define TQ_CRON_PAYLOAD_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

/* What the fields of one firing stand for. */
typedef struct TqCronFields
{
	const char *name;
	TimestampTz scheduled;
	TimestampTz previous;
	TimestampTz fired;
} TqCronFields;

extern Jsonb *tq_cron_payload(const Jsonb *payload,
							  const TqCronFields *fields);

#endif /* TQ_CRON_PAYLOAD_H */
