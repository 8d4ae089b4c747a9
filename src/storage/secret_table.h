/*
 * secret_table.h
 *	  Rows of tq_internal.secret: what credentials are signed with.
 */
#ifndef TQ_SECRET_TABLE_H
#define TQ_SECRET_TABLE_H

#include "datatype/timestamp.h"

#define TQ_SECRET_BYTES 32

/* A secret. */
typedef struct TqSecret
{
	TimestampTz since;
	TimestampTz until; /* when what it signed is refused; 0: it signs */
	uint8 bytes[TQ_SECRET_BYTES];
} TqSecret;

extern const TqSecret *tq_secrets(int *n);
extern const TqSecret *tq_secret_current(void);
extern void tq_secret_lock(void);
extern void tq_secret_rotate(TimestampTz now, TimestampTz until);

#endif /* TQ_SECRET_TABLE_H */
