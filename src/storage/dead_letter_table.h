/*
 * dead_letter_table.h
 *	  Rows of tq_internal.dead_letter: tasks that failed finally, and how.
 */
#ifndef TQ_DEAD_LETTER_TABLE_H
#define TQ_DEAD_LETTER_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../util/slugid.h"
#include "table.h"

typedef struct TqDeadLetter
{
	TqSlug task_id;
	int64 task;
	int32 queue;
	TimestampTz failed_at;
	int64 seq; /* order of writing; tq_dead_letter_insert() sets it */
	TqResolved reason;
	Jsonb *error; /* NULL: none */
	Jsonb *definition;
	Jsonb *runs;
} TqDeadLetter;

extern void tq_dead_letter_insert(const TqDeadLetter *letter);
extern bool tq_dead_letter_lock(const TqSlug *task_id, TqLock mode,
								TqDeadLetter *letter);
extern bool tq_dead_letter_exists(const TqSlug *task_id);
extern int tq_dead_letters_delete(TimestampTz before, int max);
extern bool tq_dead_letter_delete(const TqSlug *task_id);
extern TqDeadLetter *tq_dead_letters_by_age(int32 queue,
											const TqDeadLetter *after, int max,
											int *found);
extern TqDeadLetter *tq_dead_letters_list(int32 queue, const TqSlug *after,
										  int max, int *found);

#endif /* TQ_DEAD_LETTER_TABLE_H */
