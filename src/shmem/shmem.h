/*
 * shmem.h
 *	  The shared memory of tq.
 */
#ifndef TQ_SHMEM_H
#define TQ_SHMEM_H

#include "storage/lwlock.h"

/* A structure in shared memory, with its LWLocks. */
typedef struct TqShmemPart
{
	const char *name;
	const char *tranche; /* NULL: no locks */
	int locks;
	Size (*size)(void);
	Size (*tables)(void); /* hash tables that startup makes; NULL: none */

	/* Keeps the address; if the memory is new, and zeroed, fills it. */
	void (*startup)(void *memory, bool is_new, LWLockPadded *locks);
} TqShmemPart;

extern void tq_shmem_init(const TqShmemPart *const *parts, int n);

#endif /* TQ_SHMEM_H */
