/*
 * tq_shard.c
 *	  Initialization of the library tq_shard.
 *
 * The library is one of its own, so that a shard, and a database that is none, has
 * nothing of a router.  It uses no function and no variable of the library tq: that
 * would need another order of loading, and each such function to be visible outside
 * of tq, which the server's build does not make it from 16 on.  What both need, how
 * an id and a line are read and written, is in two files of util without state, and
 * each library has its copy (.ci/checks/symbols).  The types and functions of tq
 * that a router runs itself are those of the library tq, which SQL names
 * (src/extras/router/generate).
 */
#include "postgres.h"

#include "router.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/* Initializes the library when a session loads it. */
void
_PG_init(void)
{
	tq_router_map_init();
}
