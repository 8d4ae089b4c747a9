/*
 * unique_key_table.h
 *	  Rows of tq_internal.unique_key: which task has a unique key, or had it last.
 */
#ifndef TQ_UNIQUE_KEY_TABLE_H
#define TQ_UNIQUE_KEY_TABLE_H

/* A unique key, and the task that was created or rerun with it last. */
typedef struct TqUniqueKey
{
	int32 queue; /* 0: the key is unique in the database */
	char *key;
	int64 task; /* 0: none, because the row is new */
} TqUniqueKey;

extern void tq_unique_keys_lock(TqUniqueKey *keys, int n);
extern bool tq_unique_key_try_lock(TqUniqueKey *key);
extern void tq_unique_keys_set(const TqUniqueKey *keys, int n);
extern void tq_unique_keys_release(const int64 *tasks, int n);

#endif /* TQ_UNIQUE_KEY_TABLE_H */
