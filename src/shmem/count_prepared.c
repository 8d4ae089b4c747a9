/*
 * count_prepared.c
 *	  By how much prepared transactions change counters.
 *
 * A prepared transaction ends in another session, without any code of tq.  So
 * its changes stay here, and a session that reads the counters applies them
 * when it finds that the transaction has committed.  What is not kept, because
 * there were too many changes, or the server was restarted since, is unknown:
 * then the gauges are counted again.
 *
 * The lock of the counters protects the list.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "miscadmin.h"

#include "shmem.h"

static TqCountPrepared *prepared = NULL;

/* Entries of transactions that have ended may not be removed yet. */
static int
entries(void)
{
	return 2 * max_prepared_xacts;
}

static Size
size(void)
{
	return mul_size(Max(entries(), 1), sizeof(TqCountPrepared));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	prepared = memory;
}

const TqShmemPart tq_count_prepared_shmem = {.name = "tq count prepared",
											 .size = size,
											 .startup = startup};

/*
 * Keeps the changes of a transaction; returns false if there is no room.  n is
 * -1 if they are not known.
 */
bool
tq_count_prepared_add(Oid extension, TransactionId xid,
					  const TqCountChange *changes, int n)
{
	for (int i = 0; i < entries(); i++)
	{
		TqCountPrepared *entry = &prepared[i];

		if (OidIsValid(entry->database))
			continue;
		entry->database = MyDatabaseId;
		entry->extension = extension;
		entry->xid = xid;
		entry->n = n > TQ_PREPARED_CHANGES ? -1 : n;
		if (entry->n > 0)
			memcpy(entry->changes, changes, sizeof(TqCountChange) * n);
		return true;
	}
	return false;
}

/*
 * Returns the first entry of this database from a place on, and sets *place to
 * where it is; NULL if there is none.
 */
const TqCountPrepared *
tq_count_prepared_next(int *place)
{
	for (; *place < entries(); (*place)++)
	{
		if (prepared[*place].database == MyDatabaseId)
			return &prepared[*place];
	}
	return NULL;
}

/* Returns whether there is an entry of a transaction of this database. */
bool
tq_count_prepared_has(TransactionId xid)
{
	for (int i = 0; i < entries(); i++)
	{
		if (prepared[i].database == MyDatabaseId && prepared[i].xid == xid)
			return true;
	}
	return false;
}

/* Returns whether there is room for another transaction. */
bool
tq_count_prepared_has_room(void)
{
	for (int i = 0; i < entries(); i++)
	{
		if (!OidIsValid(prepared[i].database))
			return true;
	}
	return false;
}

/*
 * Returns whether there is a transaction of this database whose changes are not
 * known.
 */
bool
tq_count_prepared_is_unknown(void)
{
	for (int i = 0; i < entries(); i++)
	{
		if (prepared[i].database == MyDatabaseId && prepared[i].n < 0)
			return true;
	}
	return false;
}

/* Removes the entry at a place. */
void
tq_count_prepared_remove(int place)
{
	prepared[place].database = InvalidOid;
}
