/*
 * dead_letter.h
 *	  Room 2: letters that are locked, and the oldest first.
 *
 * For dead_letter.c.
 */
#ifndef TQ_DEAD_LETTER_H
#define TQ_DEAD_LETTER_H

#include "store.h"

extern bool tq_dead_letter_lock(const TqSlug *task_id, TqLock mode,
								TqDeadLetter *letter);
extern TqDeadLetter *tq_dead_letters_by_age(int32 queue,
											const TqDeadLetter *after, int max,
											int *found);

#endif /* TQ_DEAD_LETTER_H */
