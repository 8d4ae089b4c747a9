/*
 * shmem.c
 *	  The shared memory of tq.
 *
 * Requests and sets up the structures of a table (tq.c) when the server starts.
 * A process that writes to one registers itself what is to be undone at its
 * exit.  Without shared_preload_libraries there is no shared memory: the
 * addresses of the structures stay NULL, and what sessions note for other
 * processes is dropped.
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/shmem.h"

#include "shmem.h"

static const TqShmemPart *const *shmem_parts;
static int nparts;

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
request(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	for (int i = 0; i < nparts; i++)
	{
		RequestAddinShmemSpace(shmem_parts[i]->size());
		if (shmem_parts[i]->tables != NULL)
			RequestAddinShmemSpace(shmem_parts[i]->tables());
		if (shmem_parts[i]->tranche != NULL)
			RequestNamedLWLockTranche(shmem_parts[i]->tranche,
									  shmem_parts[i]->locks);
	}
}

static void
shmem_startup(void)
{
	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < nparts; i++)
	{
		bool found;
		void *memory = ShmemInitStruct(shmem_parts[i]->name,
									   shmem_parts[i]->size(), &found);

		if (!found)
			memset(memory, 0, shmem_parts[i]->size());
		shmem_parts[i]->startup(memory, !found,
								shmem_parts[i]->tranche == NULL
									? NULL
									: GetNamedLWLockTranche(
										  shmem_parts[i]->tranche));
	}
	LWLockRelease(AddinShmemInitLock);
}

/* Requests the shared memory; called only under shared_preload_libraries. */
void
tq_shmem_init(const TqShmemPart *const *parts, int n)
{
	shmem_parts = parts;
	nparts = n;
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}
