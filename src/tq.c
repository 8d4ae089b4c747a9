/*
 * tq.c
 *	  Initialization of the library.
 *
 * Defines the settings and installs the planner hook always; sets up
 * shared memory and registers the launcher only under
 * shared_preload_libraries, and never during pg_upgrade.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "bgworker/launcher.h"
#include "bgworker/utility_hook.h"
#include "shmem/shmem.h"
#include "util/guc.h"
#include "util/spi.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/* Initializes the library when the server loads it. */
void
_PG_init(void)
{
	tq_guc_define();
	tq_spi_init();
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	tq_shmem_init();
	tq_launcher_register();
	tq_utility_hook_install();
}
