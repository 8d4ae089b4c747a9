/*
 * unique_key.h
 *	  Which task holds a unique key, and the key of a task that is to run again.
 */
#ifndef TQ_UNIQUE_KEY_H
#define TQ_UNIQUE_KEY_H

#include "datatype/timestamp.h"

#include "../core/policy.h"
#include "../storage/table.h"
#include "../storage/task_table.h"
#include "../storage/unique_key_table.h"

extern TqUniqueKey tq_unique_key_of(const TqTask *task, char *key);
extern bool tq_unique_is_held_by(int64 holder, const TqPolicy *policy,
								 TimestampTz now);
extern const char *tq_unique_name_of(int64 task);

/* The unique key of a task that is to run again. */
typedef enum TqRerunKey
{
	TQ_RERUN_FREE,  /* the task may take it, or needs none */
	TQ_RERUN_HELD,  /* another task holds it */
	TQ_RERUN_LOCKED /* another session is about to take it */
} TqRerunKey;

extern TqRerunKey tq_unique_rerun(const TqTask *task, TqLock mode,
								  TimestampTz now, TqUniqueKey *key);
extern void tq_unique_take(const TqTask *task, TqUniqueKey *key);
extern void tq_unique_error_rerun(const TqTask *task, int64 holder);

#endif /* TQ_UNIQUE_KEY_H */
