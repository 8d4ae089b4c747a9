/*
 * errors.h
 *	  Runs work in a subtransaction, so that it can fail alone.
 */
#ifndef TQ_ERRORS_H
#define TQ_ERRORS_H

#include "lib/stringinfo.h"

/* The SQLSTATEs of tq; doc/reference.md lists them. */
#define ERRCODE_TQ_BAD_INPUT MAKE_SQLSTATE('T', 'Q', '4', '0', '0')
#define ERRCODE_TQ_FORBIDDEN MAKE_SQLSTATE('T', 'Q', '4', '0', '3')
#define ERRCODE_TQ_NOT_FOUND MAKE_SQLSTATE('T', 'Q', '4', '0', '4')
#define ERRCODE_TQ_CONFLICT MAKE_SQLSTATE('T', 'Q', '4', '0', '9')
#define ERRCODE_TQ_EXPIRED MAKE_SQLSTATE('T', 'Q', '4', '1', '0')
#define ERRCODE_TQ_ERROR_ARTIFACT MAKE_SQLSTATE('T', 'Q', '4', '2', '4')

extern char *tq_error_clip(const char *text);
extern const char *tq_error_role(Oid role);
extern void tq_error_list(StringInfo list, const char *separator,
						  const char *name);

typedef void (*TqWorkFunction)(void *arg);

extern ErrorData *tq_attempt(TqWorkFunction work, void *arg);
extern ErrorData *tq_attempt_all(TqWorkFunction work, void *arg);
extern void tq_rehearse(TqWorkFunction work, void *arg);

/* Work on a batch of items, some of which may fail. */
typedef struct TqBatchWork
{
	void (*run)(void *arg, int from, int n); /* does n items, in order */
	void (*failed)(void *arg, int item, ErrorData *error);
	void *arg;
} TqBatchWork;

extern void tq_attempt_halves(const TqBatchWork *work, int from, int n);

#endif /* TQ_ERRORS_H */
