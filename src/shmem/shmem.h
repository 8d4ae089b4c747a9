/*
 * shmem.h
 *	  The shared memory of tq: what the sessions of a server share beside rows.
 *
 * Decides the order of locks on this memory, and what a commit, an abort and a
 * crash leave in it.  All of it is a hint or can be built again from the
 * tables; what the tables contain, and which rows are counted, the layers above
 * decide.
 */
#ifndef TQ_SHMEM_H
#define TQ_SHMEM_H

#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"
#include "utils/hsearch.h"

#include "../core/histogram.h"
#include "../core/types.h"
#include "../util/util.h"

/* ---- shmem.c: the memory, and the parts that it consists of ---- */

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

/* ---- database.c: what the processes of a database share ---- */

/* How a maintenance worker ended: what the launcher does next. */
typedef enum TqExit
{
	TQ_EXIT_FAILED,    /* start it again, a little later */
	TQ_EXIT_REQUESTED, /* it was asked to end: start it again */
	TQ_EXIT_ABSENT     /* no extension there: start none until requested */
} TqExit;

/* What a maintenance worker does, for tq.maintenance_overview. */
typedef enum TqMaintenanceState
{
	TQ_MAINTENANCE_ABSENT,  /* there is none */
	TQ_MAINTENANCE_RUNNING, /* it does what is due */
	TQ_MAINTENANCE_OFF,     /* tq.maintenance is off */
	TQ_MAINTENANCE_UNUSED   /* no client has used the database yet */
} TqMaintenanceState;

/* What the launcher sees of a slot. */
typedef struct TqMaintenanceSlotView
{
	Oid database; /* InvalidOid: the slot is free */
	bool settled; /* its worker has found the extension */
	bool ended;
	TqExit how; /* once it has ended */
} TqMaintenanceSlotView;

extern const TqShmemPart tq_database_shmem;

/* The side of sessions. */
extern void tq_maintenance_slot_wake(Oid database, TimestampTz due,
									 bool message);
extern void tq_maintenance_slot_expect_claim(Oid database);
extern void tq_clock_note_other(void);
extern bool tq_clock_is_shared(void);
extern void tq_launcher_ask(Oid database);
extern int tq_maintenance_slot_stop(Oid database, bool by_force);
extern int tq_maintenance_slot_running(void);
extern TqMaintenanceState tq_maintenance_slot_state(int slot);

/* The launcher's side. */
extern void tq_launcher_attach(void);
extern int tq_launcher_asked(Oid *databases, int max, bool *rescan);
extern TqMaintenanceSlotView tq_maintenance_slot_view(int slot);
extern int tq_maintenance_slot_take(Oid database, uint64 *generation);
extern void tq_maintenance_slot_free(int slot);

/* The maintenance worker's side. */
extern bool tq_maintenance_slot_attach(int slot, uint64 generation);
extern void tq_maintenance_slot_settle(void);
extern bool tq_maintenance_slot_must_exit(void);
extern void tq_maintenance_slot_end(TqExit how);
extern void tq_maintenance_slot_set_state(TqMaintenanceState state);
extern TimestampTz tq_maintenance_slot_cycle_begin(void);
extern bool tq_maintenance_slot_take_expected_claim(void);
extern void tq_maintenance_slot_publication_begin(void);
extern TimestampTz tq_maintenance_slot_cycle_end(TimestampTz due,
												 bool *messages);

/* What a maintenance worker has done. */

#define TQ_STATS_STEPS 18
#define TQ_STATS_CYCLES TQ_STATS_STEPS /* in place of a step */
#define TQ_STATS_ERROR 256             /* bytes kept of an error message */

/* A step, or the cycles; for tq.maintenance_activity(). */
typedef struct TqActivity
{
	int64 batches;
	int64 tasks;
	TimestampTz last_at; /* DT_NOBEGIN: never */
	int64 last_late;     /* microseconds */
	int64 max_late;
	TimestampTz max_late_at; /* DT_NOBEGIN: nothing was due */
	int64 failures;
	bool failing;          /* the last batch failed */
	TimestampTz failed_at; /* DT_NOBEGIN: never */
	char error[TQ_STATS_ERROR];
} TqActivity;

extern void tq_stats_count_batch(int step, uint64 tasks, TimestampTz now,
								 int64 late);
extern void tq_stats_count_failure(int step, TimestampTz now,
								   const char *error);
extern void tq_stats_step_succeeds(int step);
extern void tq_stats_read(int slot, int step, TqActivity *activity);
extern void tq_stats_count_expired(int64 claims, TimestampTz now);
extern int64 tq_stats_expired(int slot, TimestampTz now);

/* What a session needs of its database at first. */
typedef struct TqFacts
{
	int wanted;        /* exchanges of which messages are written, as bits */
	int segment;       /* of the message log that is written to */
	bool is_shard;     /* it has not all buckets */
	bool has_settings; /* a queue has some */
} TqFacts;

extern const TqXactEnd tq_facts_xact_end;

extern bool tq_facts_find(Oid extension, TqFacts *facts, uint64 *change);
extern void tq_facts_store(Oid extension, const TqFacts *facts, uint64 change);
extern int32 tq_facts_find_queue(Oid extension, const char *name,
								 uint64 *change);
extern void tq_facts_store_queue(Oid extension, const char *name, int32 id,
								 uint64 change);
extern void tq_facts_change_at_commit(void);
extern void tq_facts_change(void);

/* Which channels sessions listen on. */

#define TQ_QUEUE_CHANNEL "tq_queue_"   /* prefix of the channels of queues */
#define TQ_WORKER_CHANNEL "tq_worker_" /* and of workers */

extern uint64 tq_listener_channel_bit(const char *channel);
extern void tq_listener_add(const char *channel);
extern uint64 tq_listener_channels(void);

/* ---- database_request.c: what a commit asks of background processes ---- */

typedef enum TqRequest
{
	TQ_REQUEST_WAKE,    /* maintenance worker: look for due work */
	TQ_REQUEST_RESTART, /* maintenance worker: end and be started again */
	TQ_REQUEST_START,   /* launcher: the database has the extension */
	TQ_REQUEST_RESCAN   /* launcher: look for databases; also at abort */
} TqRequest;

extern const TqXactEnd tq_request_xact_end;

extern void tq_request_cycle(TimestampTz due);
extern void tq_request_publication(void);
extern void tq_request_note_woken(void);
extern void tq_request_add(TqRequest what, Oid database);

/* ---- wait_queue.c: sessions that wait for a run, or for a task ---- */

extern const TqShmemPart tq_wait_shmem;
extern const TqXactEnd tq_wait_xact_end;

extern void tq_wait_wake(int32 queue, int n);
extern void tq_wait_wake_all(Oid database);

extern void tq_wait_note_queue(void);
extern void tq_wait_note_opened(int32 queue);
extern int32 tq_wait_number_of_task(int64 task);
extern void tq_wait_note_resolved(int64 task);

/* One wait, or one try to claim.  Allocated on the stack of the waiter. */
typedef struct TqWait
{
	instr_time begun;
	int64 ms;      /* longest duration */
	int delay;     /* ms until the next look without a wake-up */
	bool callable; /* false: no process can wake it */
	uint64 ticket; /* order among all waits; 0: it has none yet */
} TqWait;

/* Why a sleep has ended. */
typedef enum TqWakeup
{
	TQ_WAKEUP_WOKEN, /* a run may have become claimable for this waiter */
	TQ_WAKEUP_POLL,  /* not woken: look nevertheless */
	TQ_WAKEUP_OVER   /* the time is over */
} TqWakeup;

/* Where the waiter sleeps, as pg_stat_activity shows it. */
typedef enum TqWaitSite
{
	TQ_WAIT_CLAIM_WORK,
	TQ_WAIT_FOR_WORK,
	TQ_WAIT_FOR_TASK
} TqWaitSite;

/* A session that is in the wait queue. */
typedef struct TqSleeper
{
	int pid;
	int32 queue; /* 0: a queue that is not known yet; less: a task */
} TqSleeper;

typedef struct TqSleepers
{
	TqSleeper *list;
	int n;
	int room;
} TqSleepers;

/* The lists in which a session can wait: 100 queues, and queue 0. */
#define TQ_WAIT_LISTS 101

extern TqSleepers tq_wait_list(void);
extern void tq_wait_begin(TqWait *wait, int64 ms);
extern bool tq_wait_has_wakeup(void);
extern bool tq_wait_take_over(TqWait *wait, const int32 *queues, int n);
extern void tq_wait_enter(TqWait *wait, const int32 *queues, const int *wants,
						  int n);
extern bool tq_wait_is_for(const TqWait *wait, int32 *queue);
extern TqWakeup tq_wait_sleep(TqWait *wait, TqWaitSite site);
extern void tq_wait_used(const TqWait *wait, int n);
extern bool tq_wait_tried(TqWait *wait);
extern void tq_wait_recheck_in(TqWait *wait, int64 ms);
extern void tq_wait_requeue_wakeup(const TqWait *wait);
extern void tq_wait_end(const TqWait *wait);
extern void tq_wait_hand_off(const TqWait *wait);

/* ---- lru_set.c: entries by key, of which the least recently used one goes ---- */

#define TQ_LRU_LOCKS 64 /* each set uses one of them */

/* What an entry is about; tq_lru_key() makes it. */
typedef struct TqLruKey
{
	Oid database; /* InvalidOid: the entry is free */
	Oid table;    /* another one after DROP and CREATE EXTENSION */
	int32 id;     /* of a queue or worker in the table */
	int32 priority;
	uint64 hash; /* of a text; 0: none */
	uint32 set;
} TqLruKey;

/* What each entry begins with. */
typedef struct TqLruEntry
{
	TqLruKey key;
	pg_atomic_uint32 used; /* the clock of the set at the last use */
} TqLruEntry;

typedef struct TqLruSets
{
	int nsets;
	int nentries; /* of each set */
	Size entry_size;
	LWLockPadded *locks;
	char *memory; /* NULL: no shared memory */
} TqLruSets;

/* The size of a set, which begins with its clock. */
#define TQ_LRU_SET_HEAD MAXALIGN(sizeof(pg_atomic_uint32))
#define TQ_LRU_SET_SIZE(nentries, entry_size)                                 \
	(TQ_LRU_SET_HEAD + (nentries) * (entry_size))

extern Size tq_lru_size(const TqLruSets *sets);
extern void tq_lru_attach(TqLruSets *sets, void *memory, LWLockPadded *locks);
extern TqLruKey tq_lru_key(const TqLruSets *sets, Oid table, int32 id,
						   int32 priority, uint64 hash);

/* The lock of the set that a key belongs to. */
#define tq_lru_lock(sets, key) (&(sets)->locks[(key)->set % TQ_LRU_LOCKS].lock)

extern void *tq_lru_find(const TqLruSets *sets, const TqLruKey *key);
extern void *tq_lru_make(const TqLruSets *sets, const TqLruKey *key);
extern void tq_lru_free(TqLruEntry *entry);
extern TqLruEntry *tq_lru_entry(const TqLruSets *sets, int n);
extern void tq_lru_free_database(const TqLruSets *sets);

/* ---- numbers.c: numbers of a sequence that sessions share ---- */

extern const TqShmemPart tq_numbers_shmem;

extern const TqXactEnd tq_numbers_xact_end;

/* Numbers of creations that were in progress, all or some of those there are. */
typedef struct TqOpenNumbers
{
	int64 next; /* that is to be taken; 0: none was */
	int64 from; /* all from this one on */
	int64 *numbers;
	int n;
} TqOpenNumbers;

extern int64 tq_numbers_next(Oid sequence);
extern int64 tq_numbers_open(Oid sequence, bool *opened);
extern bool tq_numbers_read_open(Oid sequence, TqOpenNumbers *result);

/* ---- claim_cursor.c: a hint where claims begin in each queue ---- */

#define TQ_CURSOR_BEGIN PG_INT64_MIN /* scan all entries of that priority */
#define TQ_CURSOR_END PG_INT64_MAX   /* scan none of them */

/*
 * What a scanner reads before a pass.  It may skip the index entries of a
 * priority with seq < low.  The other fields are for tq_cursor_raise().
 */
typedef struct TqCursor
{
	Oid pending; /* Oid of the table; differs after DROP EXTENSION */
	int32 queue;
	uint64 identity; /* of the entry in shared memory; 0: there is none */
	uint64 generation[TQ_PRIORITY_HIGHEST + 1];
	int64 low[TQ_PRIORITY_HIGHEST + 1];
} TqCursor;

extern const TqShmemPart tq_cursor_shmem;
extern const TqXactEnd tq_cursor_xact_end;

extern bool tq_cursor_is_strict(void);
extern void tq_cursor_read(Oid pending, int32 queue, TqCursor *cursor);
extern void tq_cursor_raise(const TqCursor *cursor, int priority, int64 low);

extern void tq_cursor_track_insert(Oid pending, int32 queue, int priority,
								   int64 seq);
extern void tq_cursor_track_delete(Oid pending, int32 queue, int priority,
								   int64 seq);
extern void tq_cursor_track_delete_locked(Oid pending, int32 queue,
										  int priority, int64 seq);
extern void tq_cursor_track_lock(Oid pending, int32 queue, int priority);
extern void tq_cursor_track_all(void);

/* ---- fair_clock.c: virtual time of a queue that is fair to its keys ---- */

/*
 * Tags are negative, and ids are not.  A turn is the distance of two tags of a
 * key of weight 1.
 */
#define TQ_FAIR_FIRST (PG_INT64_MIN / 2)
#define TQ_FAIR_TURN (INT64CONST(1) << 22)

/* The tasks of a key, in a queue and priority. */
typedef struct TqFairKey
{
	Oid pending; /* Oid of the table; differs after DROP EXTENSION */
	int32 queue;
	int32 priority;
	uint64 hash; /* of the text; see tq_fair_hash() */
} TqFairKey;

/* What became of a request for a tag. */
typedef enum TqFair
{
	TQ_FAIR_TAKEN,
	TQ_FAIR_NO_TIME, /* tq_fair_set_time(), and try again */
	TQ_FAIR_NO_LAST, /* tq_fair_set_last(), and try again */
	TQ_FAIR_NO_ROOM  /* there are no more tags */
} TqFair;

extern const TqShmemPart tq_fair_shmem;

extern bool tq_fair_is_kept(void);
extern uint64 tq_fair_hash(const char *key);
extern TqFair tq_fair_take(const TqFairKey *key, double weight,
						   TimestampTz now, int64 after, int64 *tag);
extern int64 tq_fair_take_other(const TqFairKey *key, int64 tag, int tries);
extern void tq_fair_set_time(const TqFairKey *key, int64 tag);
extern int64 tq_fair_last(const TqFairKey *key);
extern void tq_fair_set_last(const TqFairKey *key, int64 tag, TimestampTz now);

/* ---- worker_activity.c: what task workers did since it was stored ---- */

/* How many claims of a worker are shown. */
#define TQ_RECENT_MAX 20

/* A claim, by the internal id of its task. */
typedef struct TqRecentClaim
{
	int64 task;
	int32 run_id;
} TqRecentClaim;

/* The last claims of a worker, oldest first, and when it was last seen. */
typedef struct TqWorkerActivity
{
	TimestampTz seen; /* 0: not known here */
	int n;
	TqRecentClaim claims[TQ_RECENT_MAX];
} TqWorkerActivity;

extern const TqShmemPart tq_activity_shmem;

extern void tq_activity_forget(Oid table, int32 worker);
extern void tq_activity_note(Oid table, int32 worker, int32 queue,
							 TimestampTz seen, const TqRecentClaim *claims,
							 int n);
extern int32 *tq_activity_queues(Oid table, TimestampTz since, int *n);
extern void tq_activity_read(Oid table, int32 worker,
							 TqWorkerActivity *activity);

/* ---- counter_changes.c: by how much this transaction changes counters ---- */

/* What has counters. */
typedef enum TqCounted
{
	TQ_COUNTED_QUEUE,
	TQ_COUNTED_GROUP,
	TQ_COUNTED_MARK /* nothing; divides the list of changes */
} TqCounted;

/*
 * The counters of a queue.  The first are gauges: how many rows there are.  The
 * others are totals: how often something has happened.
 */
enum
{
	TQ_QUEUE_UNSCHEDULED,
	TQ_QUEUE_DELAYED,
	TQ_QUEUE_PENDING,
	TQ_QUEUE_RUNNING,
	TQ_QUEUE_STATES,                   /* those above count unresolved tasks */
	TQ_QUEUE_GROUPS = TQ_QUEUE_STATES, /* as the next two: for quotas */
	TQ_QUEUE_UNIQUE_KEYS,
	TQ_QUEUE_FOREIGN, /* dependencies of its tasks on those of others */
	TQ_QUEUE_GAUGES,
	TQ_QUEUE_CREATED = TQ_QUEUE_GAUGES,
	TQ_QUEUE_CLAIMED,
	TQ_QUEUE_RETRIED,
	TQ_QUEUE_DEAD_LETTERS, /* tasks, when they became one */
	TQ_QUEUE_WAITED_US,    /* runs that were claimed, together */
	TQ_QUEUE_RAN_US,       /* runs that a worker had, together */
	TQ_QUEUE_ENDED,        /* runs, by reason */
	TQ_QUEUE_WAITED = TQ_QUEUE_ENDED + TQ_RESOLVED_LAST + 1, /* by bucket */
	TQ_QUEUE_RAN = TQ_QUEUE_WAITED + TQ_BUCKETS,             /* by bucket */
	TQ_QUEUE_COUNTERS = TQ_QUEUE_RAN + TQ_BUCKETS,
	/* Rows were changed by other statements than those of tq; for queue 0. */
	TQ_QUEUE_DOUBT = TQ_QUEUE_COUNTERS,
	TQ_QUEUE_GONE, /* the queue was deleted */
	/*
	 * Plus a gauge: rows for which this transaction has reserved room
	 * (limit_room.c); the end of the transaction gives it back.
	 */
	TQ_QUEUE_RESERVED,
	/*
	 * This transaction has made the counters, or the first use of them for
	 * limits; its abort removes them, or lets them go to other queues.
	 */
	TQ_QUEUE_ENTERED = TQ_QUEUE_RESERVED + TQ_QUEUE_GAUGES
};

/*
 * The counters of a group, without the task of its own name: sums, then times,
 * of which the earliest or the latest is kept.
 */
enum
{
	TQ_GROUP_UNSCHEDULED,
	TQ_GROUP_DELAYED,
	TQ_GROUP_PENDING,
	TQ_GROUP_RUNNING,
	TQ_GROUP_COMPLETED,
	TQ_GROUP_FAILED,
	TQ_GROUP_EXCEPTION,
	TQ_GROUP_TOLERATED,
	TQ_GROUP_FORGIVEN,
	TQ_GROUP_REPORTED, /* runs that have reported progress, if only once */
	TQ_GROUP_SUMS,
	TQ_GROUP_FIRST_CREATED = TQ_GROUP_SUMS, /* earliest */
	TQ_GROUP_LAST_RESOLVED,                 /* latest */
	TQ_GROUP_FIRST_BAD,                     /* earliest */
	TQ_GROUP_COUNTERS,
	/*
	 * The end of a task counts no longer: LAST_RESOLVED (latest) and FIRST_BAD
	 * (earliest) of those.  GONE: tasks were deleted.  NEW: this transaction
	 * has inserted the row of the group, which had no other task.
	 */
	TQ_GROUP_UNDONE_RESOLVED = TQ_GROUP_COUNTERS,
	TQ_GROUP_UNDONE_BAD,
	TQ_GROUP_GONE,
	TQ_GROUP_NEW
};

#define TQ_COUNT_NO_TIME 0 /* in place of a time: there is none */

typedef struct TqCountChange
{
	int64 id; /* of the queue or group */
	int64 value;
	TqCounted what;
	int counter;
	SubTransactionId subid;
	int before; /* the change that had its position in the index, or -1 */
} TqCountChange;

extern void tq_count_merge(TqCounted what, int counter, int64 *value,
						   int64 by);
extern void tq_count(TqCounted what, int64 id, int counter, int64 by);
extern void tq_count_doubt(void);
/* What is among the changes of this transaction. */
typedef struct TqCountChanged
{
	bool any;
	bool reserved;   /* some may give back what was reserved */
	bool new_groups; /* rows of groups were inserted */
} TqCountChanged;

extern TqCountChanged tq_count_changed;

extern void tq_count_change(Oid extension, TqCounted what, int64 id,
							int counter, int64 value);
extern void tq_count_changes_make_room(void);
extern int64 tq_count_changes_own(Oid extension, int32 queue, int counter);
extern const TqCountChange *tq_count_changes(int *n, Oid *extension);
extern bool tq_count_changes_abort(SubTransactionId id);
extern void tq_count_changes_subcommit(SubTransactionId id,
									   SubTransactionId parent);
extern void tq_count_changes_reset(void);

/* ---- counters.c: counters by database, queue and group ---- */

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
	bool is_full;                             /* some queues have no entry; */
	pg_atomic_uint64 others[TQ_QUEUE_GAUGES]; /* of all of these together */
	int groups;                               /* that have counters */
	bool has_rates; /* the rate windows are loaded (limit_room.c) */
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
	TqCountGauges gauges; /* exact, unless it got its entry when it had rows */
	pg_atomic_uint64 counters[TQ_QUEUE_COUNTERS];
	pg_atomic_uint64 reserved[TQ_QUEUE_GAUGES]; /* limit_room.c */
	pg_atomic_uint32 has_limits;                /* not to be evicted */
	pg_atomic_uint32 is_limited;                /* a claim was refused */
	pg_atomic_uint32 refused;  /* claims, since slots were last given back */
	pg_atomic_uint32 limit;    /* of running tasks, as a claim has seen it */
	pg_atomic_uint32 looked;   /* seconds: when `oldest` was read; 0: never */
	pg_atomic_uint64 oldest;   /* since when a run has been pending; 0: none */
	pg_atomic_uint64 logged;   /* ms: the last line about a failure; 0: none */
	pg_atomic_uint32 left_out; /* failures without a line since then */
	uint32 entry;              /* its number: its totals began with it */
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
	uint32 entries; /* of queues, made since the start of the server */
	TqCountDatabase databases[TQ_COUNT_DATABASES];
} TqCountShared;

/* How what a reader asked for was found. */
typedef enum TqCountSource
{
	TQ_COUNT_MEMORY,     /* the counters are exact */
	TQ_COUNT_REBUILDING, /* the gauges are being counted, or are about to be */
	TQ_COUNT_TABLES      /* there are no counters */
} TqCountSource;

/* Room that is reserved is in the lower half of a word; limit_room.c. */
#define TQ_ROOM_ROWS(word) ((int64) ((word) &PG_UINT32_MAX))

extern const TqShmemPart tq_counters_shmem;

extern TqCountShared *tq_count_shared; /* NULL: there are no counters */
extern HTAB *tq_count_queues;
extern HTAB *tq_count_groups;

/* The key of a queue or group of this database. */
#define tq_count_key(extension, id)                                           \
	((TqCountKey){MyDatabaseId, (extension), (id)})

/* Take and release the lock of the counters; there are some. */
#define tq_count_lock(mode) LWLockAcquire(tq_count_shared->lock, mode)
#define tq_count_unlock() LWLockRelease(tq_count_shared->lock)

extern TqCountDatabase *tq_count_find_database(void);
extern TqCountDatabase *tq_count_enter_database(Oid extension);
extern TqCountQueue *tq_count_find_queue(const TqCountKey *key);
extern TqCountQueue *tq_count_enter_queue(const TqCountKey *key);
extern TqCountQueue *tq_count_enter_limited(const TqCountKey *key);
extern void tq_count_remove_queue(const TqCountKey *key);
extern TqCountGroup *tq_count_enter_group(TqCountDatabase *database,
										  const TqCountKey *key);
extern void tq_count_remove_group(TqCountDatabase *database,
								  const TqCountKey *key);
extern void tq_count_remove_groups(TqCountDatabase *database);
extern TqCountSource tq_counts_source(const TqCountDatabase *database,
									  Oid extension, uint64 identity);
extern void tq_count_doubt_all(TqCountDatabase *database);
extern bool tq_counts_forget(Oid oid, Oid extension);

/* Which transactions a count of rows includes. */
extern int tq_count_snapshot_take(Snapshot *snapshot);
extern bool tq_count_snapshot_shows(int number, TransactionId xid);
extern void tq_count_snapshot_wait(int number);
extern void tq_count_snapshot_free(int number);

extern void tq_count_commit_begins(TransactionId xid);
extern void tq_count_commit_ends(void);
extern void tq_count_commits_wait(void);

/* Changes by prepared transactions. */
/* More changes than that are not kept. */
#define TQ_PREPARED_CHANGES 32

/* In place of the number of changes: rows are counted if it commits. */
#define TQ_PREPARED_UNKNOWN (-1) /* prepared before the server was started */
#define TQ_PREPARED_MANY (-2)    /* and none in a queue with limits */

/* A prepared transaction. */
typedef struct TqCountPrepared
{
	Oid database; /* InvalidOid: the entry is free */
	Oid extension;
	TransactionId xid;
	int n; /* of its changes, or one of those above */
	TqCountChange changes[TQ_PREPARED_CHANGES];
} TqCountPrepared;

extern bool tq_count_prepared_add(Oid extension, TransactionId xid,
								  const TqCountChange *changes, int n);
extern const TqCountPrepared *tq_count_prepared_next(int *position);
extern bool tq_count_prepared_has_room(void);
extern void tq_count_prepared_remove(int position);

/* ---- counter_commit.c: applies changes when a transaction ends ---- */

extern const TqXactEnd tq_counts_xact_end;

extern void tq_counts_apply_prepared(void);

/* ---- counter_scan.c: readers, and counts with which counters begin ---- */

extern const TqXactEnd tq_count_build_xact_end;

extern bool tq_count_must_build(Oid extension, uint64 identity);
extern int64 tq_count_group_to_build(Oid extension);
extern bool tq_count_build_begin(Oid extension, uint64 identity,
								 TqCounted what, int64 id,
								 const TransactionId *prepared, int nprepared,
								 Snapshot *snapshot);
extern void tq_count_build_keep(int32 queue);
extern void tq_count_build_set(int64 id, int counter, int64 value);
extern bool tq_count_build_end(void);

/* The counters of a queue. */
typedef struct TqQueueCounts
{
	int32 queue;
	bool has_gauges; /* those are exact */
	bool is_full;    /* others: they are of queues without counters */
	uint32 looked;   /* as in TqCountQueue */
	uint32 entry;
	TimestampTz oldest;
	int64 counters[TQ_QUEUE_COUNTERS];
	int64 last_minute[TQ_RATES];
} TqQueueCounts;

extern void tq_counts_settle(void);
extern TqCountSource tq_counts_read_gauges(Oid extension, uint64 identity,
										   int32 queue, int64 *gauges);
extern TqCountSource tq_counts_read_queues(Oid extension, uint64 identity,
										   TqQueueCounts **queues, int *n);
extern TqQueueCounts *tq_counts_read_totals(Oid extension, uint64 identity,
											int *n, TqQueueCounts *others);
extern void tq_counts_note_oldest(Oid extension, const TqQueueCounts *counts,
								  int n);
extern bool tq_counts_log_due(Oid extension, int32 queue, int64 ms,
							  uint32 *left_out);
extern int64 tq_counts_read_running(Oid extension);
extern bool tq_counts_read_group(Oid extension, uint64 identity, int64 id,
								 int64 *counters);
extern TimestampTz tq_counts_since(Oid extension);
extern void tq_counts_reset(Oid extension);

/* ---- limit_room.c: limits of queues: room for rows, and for claims ---- */

extern const TqShmemPart tq_limit_shmem;

/* What became of a request for slots. */
typedef enum TqRoom
{
	TQ_ROOM_TAKEN,
	TQ_ROOM_FULL,     /* the limit is reached */
	TQ_ROOM_UNKNOWN,  /* the rows are being counted; later it is known */
	TQ_ROOM_UNCOUNTED /* the queue has no counters; tq.counted_queues */
} TqRoom;

/* Room for rows that count in a gauge of a queue. */
typedef struct TqRoomRequest
{
	Oid extension;
	uint64 identity; /* of the tables */
	int32 queue;
	int gauge;
	int limit;
	int min; /* fewer are of no use */
	int max;
} TqRoomRequest;

extern TqRoom tq_room_take(const TqRoomRequest *request, int *taken);
extern bool tq_room_keep(const TqRoomRequest *request, bool has_limits);
extern TqRoom tq_room_read(const TqRoomRequest *request, int64 *rows);
extern void tq_room_give_back(const TqRoomRequest *request, int n);
extern void tq_room_release(Oid extension, const TqCountChange *changes, int n,
							bool is_aborted);
extern void tq_room_release_locked(Oid extension, const TqCountChange *changes,
								   int n, bool is_aborted);
extern void tq_room_wake(Oid extension, const TqCountChange *changes, int n);

/* The limit of a queue: at most so many claims in each interval. */
typedef struct TqRate
{
	Oid extension;
	int32 queue;
	int claims;
	int64 interval; /* us */
} TqRate;

#define TQ_RATE_NO_ROOM (-1)

extern void tq_rate_remove_queue(const TqCountKey *key);
extern int tq_rate_take(const TqRate *rate, int max, bool are_made,
						TimestampTz now, TimestampTz *next);
extern void tq_rate_use(const TqRate *rate, int allowed, TimestampTz then,
						int n, TimestampTz now);

extern bool tq_rates_are_loaded(Oid extension);
extern void tq_limits_forget(Oid oid, Oid extension);
extern void tq_rates_begin_load(Oid extension);
extern void tq_rate_load(const TqRate *rate, TimestampTz claimed);
extern void tq_rates_end_load(Oid extension);

#endif /* TQ_SHMEM_H */
