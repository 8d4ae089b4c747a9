/*
 * task_key_table.h
 *	  Rows of tq_internal.task_key: the keys that tasks have by their policies.
 */
#ifndef TQ_TASK_KEY_TABLE_H
#define TQ_TASK_KEY_TABLE_H

#include "../core/policy.h"
#include "index_scan.h"

/* A key of a task. */
typedef struct TqKeyOfTask
{
	int64 task;
	TqTaskKey kind;
	char *key;
} TqKeyOfTask;

extern void tq_task_keys_insert(const TqKeyOfTask *keys, int n);
extern void tq_task_keys_read(int64 task, char **keys);

/* A look-up of the keys of one kind. */
typedef struct TqTaskKeyReader TqTaskKeyReader;

extern TqTaskKeyReader *tq_task_key_reader_begin(TqTaskKey kind);
extern char *tq_task_key_find(TqTaskKeyReader *reader, int64 task);
extern void tq_task_key_reader_end(TqTaskKeyReader *reader);

extern TqScan *tq_task_key_scan_begin(const char *key, Snapshot snapshot);
extern bool tq_task_key_scan_next(TqScan *scan, int64 *task);

#endif /* TQ_TASK_KEY_TABLE_H */
