/*
 * worker_request.h
 *	  What a transaction requests of background processes at its commit.
 */
#ifndef TQ_WORKER_REQUEST_H
#define TQ_WORKER_REQUEST_H

#include "datatype/timestamp.h"

#include "../util/xact_end.h"

typedef enum TqRequest
{
	TQ_REQUEST_WAKE,    /* maintenance worker: look for due work */
	TQ_REQUEST_RESTART, /* maintenance worker: end and be started again */
	TQ_REQUEST_START,   /* launcher: the database has the extension */
	TQ_REQUEST_RESCAN   /* launcher: look for databases; also at abort */
} TqRequest;

extern const TqXactEnd tq_request_xact_end;

extern void tq_request_cycle(TimestampTz due);
extern void tq_request_publication(void);
extern void tq_request_add(TqRequest what, Oid database);

#endif /* TQ_WORKER_REQUEST_H */
