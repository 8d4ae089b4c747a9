/*
 * process.c
 *	  The server's processes.
 *
 * The view pg_stat_activity shows a role only its own processes in full, and
 * none that is not connected to a database.
 */
#include "postgres.h"

#include "storage/proc.h"

#include "util.h"

/*
 * Returns how many background workers are running, of which the server can have
 * max_worker_processes.  Takes no lock: the number may be out of date anyway.
 */
int
tq_process_background_workers(void)
{
	int n = 0;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const PGPROC *proc = &ProcGlobal->allProcs[i];

		if (proc->procgloballist == &ProcGlobal->bgworkerFreeProcs &&
			proc->procLatch.owner_pid != 0)
			n++;
	}
	return n;
}
