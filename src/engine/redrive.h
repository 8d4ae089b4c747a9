/*
 * redrive.h
 *	  Runs dead letters again, or discards them.
 */
#ifndef TQ_REDRIVE_H
#define TQ_REDRIVE_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"

extern TqNamedTask *tq_dead_letter_redrive(const TqSlug *task_id,
										   TimestampTz now);
extern int64 tq_dead_letters_redrive(int32 queue, int max, TimestampTz now);
extern void tq_dead_letter_discard(const TqSlug *task_id);

#endif /* TQ_REDRIVE_H */
