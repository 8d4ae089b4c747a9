/*
 * router_api.h
 *	  What a session of a router knows of tasks.
 */
#ifndef TQ_ROUTER_API_H
#define TQ_ROUTER_API_H

#include "../util/slugid.h"

extern void tq_router_note_task(const TqSlug *id, int32 shard);

#endif /* TQ_ROUTER_API_H */
