/*
 * init.c
 *	  What happens when the library is loaded.
 *
 * Room 6.  Settings always; shared memory and the background worker only
 * under shared_preload_libraries, and never during pg_upgrade.
 */
#include "plumbing.h"

#include "miscadmin.h"

#include "worker.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	tq_guc_define();
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	tq_shmem_init();
	tq_worker_register();
}
