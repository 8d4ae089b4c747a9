/*
 * callback_table.h
 *	  Rows of tq_internal.group_callback: tasks that are created when a group
 *	  resolves.
 */
#ifndef TQ_CALLBACK_TABLE_H
#define TQ_CALLBACK_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../util/slugid.h"

typedef struct TqCallback
{
	int64 id;
	TimestampTz registered;
	TqSlug task_group_id;
	TqSlug task_id; /* of the task that is created */
	Oid role;       /* that has registered it */
	char *client;   /* of the credentials that it had assumed; NULL: none */
	Jsonb *definition;
} TqCallback;

extern bool tq_callback_insert(const TqCallback *callback);
extern bool tq_callback_lock(int64 id, TqCallback *callback);
extern TqCallback *tq_callbacks_lock_group(const TqSlug *group, int *found);
extern bool tq_callback_exists(int64 id);
extern void tq_callback_delete(int64 id);
extern int64 *tq_callbacks_of_groups(const TqSlug *groups, int n, int *found);

#endif /* TQ_CALLBACK_TABLE_H */
