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

/*
 * Defines a function that SQL calls.  Its body, which follows, is not called before
 * SQL is known to declare it so (src/util/declared.c).  A session looks at each
 * declaration once: ALTER EXTENSION UPDATE makes other functions.
 */
#define TQ_ROUTER_FUNCTION(name, signature)                                   \
	PG_FUNCTION_INFO_V1(name);                                                \
	static Datum name##_body(PG_FUNCTION_ARGS);                               \
	Datum name(PG_FUNCTION_ARGS)                                              \
	{                                                                         \
		static Oid checked = InvalidOid;                                      \
                                                                              \
		if (checked != fcinfo->flinfo->fn_oid)                                \
			tq_check_declared(fcinfo, "tq_shard", signature);                 \
		checked = fcinfo->flinfo->fn_oid;                                     \
		return name##_body(fcinfo);                                           \
	}                                                                         \
	static Datum name##_body(PG_FUNCTION_ARGS)

/* ---- tq_shard.c: the lock of a router's map ---- */

extern bool tq_router_map_lock(bool over_commits);
extern void tq_router_map_unlock(void);

/* ---- router_lines.c: jsonb values whose bytes a shard has sent ---- */

/* ---- router_api.c: what a session of a router knows of tasks ---- */

extern void tq_router_note_task(const TqSlug *id, int32 shard);

#endif /* TQ_ROUTER_H */
