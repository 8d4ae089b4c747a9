/*
 * audit_table.h
 *	  Rows of tq_internal.audit: which role made which call.
 */
#ifndef TQ_AUDIT_TABLE_H
#define TQ_AUDIT_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../util/slugid.h"

typedef struct TqAuditRow
{
	TimestampTz at;
	const char *session_role;
	const char *role;
	char **clients; /* NULL: no credentials */
	int nclients;
	const char *function;
	TqSlug *tasks; /* NULL: none */
	int32 *runs;   /* NULL: none, otherwise one for each task */
	int n;
	Jsonb *arguments;
} TqAuditRow;

extern void tq_audit_insert(const TqAuditRow *row);
extern int tq_audit_delete(TimestampTz before, int max);

#endif /* TQ_AUDIT_TABLE_H */
