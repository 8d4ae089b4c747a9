/*
 * dead_letter.h
 *	  Dead letters: finally failed tasks, kept and redriven.
 */
#ifndef TQ_DEAD_LETTER_H
#define TQ_DEAD_LETTER_H

#include "datatype/timestamp.h"

extern void tq_dead_letters_write(const int64 *tasks, int n, TimestampTz now);

#endif /* TQ_DEAD_LETTER_H */
