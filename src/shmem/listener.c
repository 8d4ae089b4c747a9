/*
 * listener.c
 *	  Which channels sessions listen on.
 *
 * A session records a channel before it listens.  The publisher of the database
 * reads the channels after it has taken the snapshot of the messages that it
 * will publish.  A message that a listener must get was committed after its
 * LISTEN was, and so after the channel was recorded.
 *
 * Channels may share a bit of a set of channels, so a set says that a session
 * may listen, or that none does.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/proc.h"

#include "../util/compat.h"
#include "shmem.h"

/*
 * One per process that can have a session, by the number of its PGPROC.
 * Written by that process before it listens and when it ends.
 */
typedef struct Listener
{
	Oid database;
	pg_atomic_uint64 channels; /* tq_listener_channel_bit() of each */
} Listener;

static Listener *listeners = NULL;

static Size
size(void)
{
	return mul_size(MaxBackends, sizeof(Listener));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	listeners = memory;
	for (int i = 0; is_new && i < MaxBackends; i++)
		pg_atomic_init_u64(&listeners[i].channels, 0);
}

const TqShmemPart tq_listener_shmem = {.name = "tq listeners",
									   .size = size,
									   .startup = startup};

/*
 * Returns the bit of a channel.  All channels of queues share one bit, and those
 * of workers another, because there are many.
 */
uint64
tq_listener_channel_bit(const char *channel)
{
	if (strncmp(channel, TQ_QUEUE_CHANNEL, strlen(TQ_QUEUE_CHANNEL)) == 0)
		return UINT64CONST(1) << 63;
	if (strncmp(channel, TQ_WORKER_CHANNEL, strlen(TQ_WORKER_CHANNEL)) == 0)
		return UINT64CONST(1) << 62;
	return UINT64CONST(1) << hash_bytes((const unsigned char *) channel,
										strlen(channel)) %
								 62;
}

static void
session_ends(int code, Datum arg)
{
	pg_atomic_write_u64(&listeners[TqMyProcNumber()].channels, 0);
}

/*
 * Records that this session is about to LISTEN, and may do so until it ends.
 */
void
tq_listener_add(const char *channel)
{
	static bool attached = false;
	Listener *listener = &listeners[TqMyProcNumber()];

	if (!attached)
		on_shmem_exit(session_ends, (Datum) 0);
	attached = true;
	listener->database = MyDatabaseId;
	pg_atomic_fetch_or_u64(&listener->channels,
						   tq_listener_channel_bit(channel));
	pg_memory_barrier();
}

/*
 * Returns the set of channels of this database on which a session may listen;
 * the set of all channels without shared memory.
 */
uint64
tq_listener_channels(void)
{
	uint64 channels = 0;

	if (listeners == NULL)
		return PG_UINT64_MAX;
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		if (listeners[i].database == MyDatabaseId)
			channels |= pg_atomic_read_u64(&listeners[i].channels);
	}
	return channels;
}
