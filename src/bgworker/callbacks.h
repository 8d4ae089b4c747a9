/*
 * callbacks.h
 *	  The step of maintenance that creates tasks of resolved groups.
 */
#ifndef TQ_CALLBACKS_H
#define TQ_CALLBACKS_H

#include "bisect.h"

extern int64 tq_callbacks_run(const TqWork *work);

#endif /* TQ_CALLBACKS_H */
