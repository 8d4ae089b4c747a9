/*
 * tq.c
 *	  Initialization of the library.
 *
 * Defines the settings, and installs the planner hook and the transaction
 * callback always; sets up shared memory, registers the launcher and loads PL/pgSQL
 * for all sessions (api/sql_body.c) only under shared_preload_libraries, and never
 * during pg_upgrade.
 */
#include "postgres.h"

#include "api/api.h"
#include "bgworker/bgworker.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static const TqShmemPart *const shmem_parts[] =
	{&tq_cursor_shmem,   &tq_wait_shmem,     &tq_database_shmem,
	 &tq_activity_shmem, &tq_counters_shmem, &tq_limit_shmem,
	 &tq_fair_shmem,     &tq_numbers_shmem};

/*
 * What the end of a transaction does, in this order.  The claim cursors are
 * lowered before any waiter is woken, because a waiter that tries to claim
 * before that may miss the row and sleep.  Counters come before the wake-ups,
 * so that what is woken reads them as they are.  A session whose own wait has failed
 * passes its wake-up on when the rows of its try are claimable again.  The
 * maintenance worker and the launcher are woken after the waiters, for which a
 * client waits.  What only this backend caches comes last.
 */
static const TqXactEnd *const xact_ends[] =
	{&tq_cursor_xact_end, &tq_count_build_xact_end, &tq_counts_xact_end,
	 &tq_wait_xact_end,   &tq_facts_xact_end,       &tq_request_xact_end,
	 &tq_run_xact_end,    &tq_entries_xact_end,     &tq_watched_xact_end,
	 &tq_access_xact_end, &tq_drop_xact_end,        &tq_numbers_xact_end};

/* Initializes the library when the server loads it. */
void
_PG_init(void)
{
	tq_connection_check();
	tq_guc_define();
	tq_spi_init();
	tq_xact_end_init(xact_ends, lengthof(xact_ends));
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	tq_shmem_init(shmem_parts, lengthof(shmem_parts));
	tq_launcher_register();
	tq_utility_hook_install();
	tq_body_init();
}
