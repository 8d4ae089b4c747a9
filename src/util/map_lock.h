/*
 * map_lock.h
 *	  The lock of a router's map.
 */
#ifndef TQ_MAP_LOCK_H
#define TQ_MAP_LOCK_H

#include "xact_end.h"

extern bool tq_map_lock(bool over_commits);
extern void tq_map_unlock(void);

extern const TqXactEnd tq_map_lock_xact_end;

#endif /* TQ_MAP_LOCK_H */
