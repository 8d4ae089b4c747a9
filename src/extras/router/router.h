/*
 * router.h
 *	  The library tq_shard: the router of the extension tq_shard.
 *
 * Decides what a session of a router knows of its shards, and how an answer of a
 * shard becomes rows.  What a task is, the shards decide.
 */
#ifndef TQ_ROUTER_H
#define TQ_ROUTER_H

#include "../../util/util.h"

/* ---- tq_shard.c: the lock of a router's map ---- */

extern bool tq_router_map_lock(bool over_commits);
extern void tq_router_map_unlock(void);

/* ---- router_lines.c: jsonb values whose bytes a shard has sent ---- */

/* ---- router_api.c: what a session of a router knows of tasks ---- */

extern void tq_router_note_task(const TqSlug *id, int32 shard);

#endif /* TQ_ROUTER_H */
