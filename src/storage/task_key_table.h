/*
 * task_key_table.h
 *	  Rows of tq_internal.task_key: the keys that tasks have by their policies.
 */
#ifndef TQ_TASK_KEY_TABLE_H
#define TQ_TASK_KEY_TABLE_H

#include "../core/policy.h"

/* A key of a task. */
typedef struct TqKeyOfTask
{
	int64 task;
	TqTaskKey kind;
	char *key;
} TqKeyOfTask;

extern void tq_task_keys_insert(const TqKeyOfTask *keys, int n);
extern void tq_task_keys_read(int64 task, char **keys);

#endif /* TQ_TASK_KEY_TABLE_H */
