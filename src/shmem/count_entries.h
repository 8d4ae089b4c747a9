/*
 * count_entries.h
 *	  The counters in shared memory, by database, queue and group.
 */
#ifndef TQ_COUNT_ENTRIES_H
#define TQ_COUNT_ENTRIES_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/hsearch.h"

#include "count_changes.h"
#include "shmem.h"

#define TQ_RATES 3 /* of created, claimed, and ended runs */

#define TQ_COUNT_DATABASES 128

/* A rate is measured in periods; the last one is not over yet. */
#define TQ_COUNT_PERIOD_S 5
#define TQ_COUNT_PERIODS (60 / TQ_COUNT_PERIOD_S + 1)

typedef enum TqGaugeState
{
	TQ_GAUGES_NONE,     /* to be counted */
	TQ_GAUGES_COUNTING, /* by a session, with a stored snapshot */
	TQ_GAUGES_EXACT
} TqGaugeState;

/* Of something that is counted. */
typedef struct TqCountGauges
{
	TqGaugeState state;
	int snapshot;    /* while counting */
	bool is_spoiled; /* the count is not to be used */
} TqCountGauges;

typedef struct TqCountDatabase
{
	Oid oid;           /* InvalidOid: free */
	Oid extension;     /* another one after DROP and CREATE EXTENSION */
	uint64 identity;   /* of the tables when they were counted */
	TimestampTz since; /* the totals; 0: no change yet */
	TqCountGauges gauges;
	bool is_full;   /* some queues have no entry */
	int groups;     /* that have counters */
	bool has_rates; /* the rate windows are loaded (rate_window.c) */
} TqCountDatabase;

typedef struct TqCountKey
{
	Oid database;
	Oid extension;
	int64 id;
} TqCountKey;

typedef struct TqCountPeriod
{
	pg_atomic_uint32 number;
	pg_atomic_uint32 events[TQ_RATES];
} TqCountPeriod;

typedef struct TqCountQueue
{
	TqCountKey key;
	pg_atomic_uint64 counters[TQ_QUEUE_COUNTERS];
	pg_atomic_uint64 reserved[TQ_QUEUE_GAUGES]; /* slots.c */
	pg_atomic_uint32 is_limited;                /* a claim was refused */
	pg_atomic_uint32 refused; /* claims, since slots were last given back */
	pg_atomic_uint32 limit;   /* of running tasks, as a claim has seen it */
	TqCountPeriod periods[TQ_COUNT_PERIODS];
} TqCountQueue;

typedef struct TqCountGroup
{
	TqCountKey key;
	TqCountGauges gauges;
	uint32 used; /* seconds: when it was last changed or read */
	pg_atomic_uint64 counters[TQ_GROUP_COUNTERS];
} TqCountGroup;

typedef struct TqCountShared
{
	LWLock *lock;
	TqCountDatabase databases[TQ_COUNT_DATABASES];
} TqCountShared;

extern const TqShmemPart tq_counts_shmem;

extern TqCountShared *tq_count_shared; /* NULL: there are no counters */
extern HTAB *tq_count_queues;
extern HTAB *tq_count_groups;

extern TqCountKey tq_count_key(Oid extension, int64 id);
extern void tq_count_lock(LWLockMode mode);
extern void tq_count_unlock(void);
extern TqCountDatabase *tq_count_find_database(void);
extern TqCountDatabase *tq_count_enter_database(Oid extension);
extern TqCountQueue *tq_count_find_queue(const TqCountKey *key);
extern TqCountQueue *tq_count_enter_queue(const TqCountKey *key);
extern bool tq_count_has_room(void);
extern void tq_count_remove_queue(const TqCountKey *key);
extern TqCountGroup *tq_count_enter_group(TqCountDatabase *database,
										  const TqCountKey *key);
extern void tq_count_remove_group(TqCountDatabase *database,
								  const TqCountKey *key);
extern void tq_count_remove_groups(TqCountDatabase *database);
extern int64 tq_count_group_tasks(TqCountGroup *group);
extern void tq_count_doubt_gauges(TqCountGauges *gauges);
extern void tq_counts_forget_database(Oid oid);

#endif /* TQ_COUNT_ENTRIES_H */
