/*
 * message_record.h
 *	  How the messages of a row are stored.
 */
#ifndef TQ_MESSAGE_RECORD_H
#define TQ_MESSAGE_RECORD_H

#include "../core/types.h"

/* What a record has of a message. */
typedef struct TqRecord
{
	int64 task;
	int run_id; /* -1: none */
	int last_run;
	TqExchange exchange;
	TqState state;
	int priority;
} TqRecord;

extern bytea *tq_records_begin(int n, int64 task);
extern void tq_records_add(bytea *records, const TqRecord *record,
						   int64 before);
extern int tq_records_count(const bytea *records);
extern const uint8 *tq_records_first(const bytea *records);
extern const uint8 *tq_records_next(const bytea *records, const uint8 *at,
									int64 before, TqRecord *record);

#endif /* TQ_MESSAGE_RECORD_H */
