/*
 * rows.h
 *	  Access to rows by table and index access methods.
 *
 * Decides how a row is found, locked, written and indexed without the executor,
 * and what each backend caches of small tables.  Which columns a row has, and
 * what it is for, is left to storage.
 */
#ifndef TQ_ROWS_H
#define TQ_ROWS_H

#include "access/genam.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "nodes/lockoptions.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

#include "../shmem/shmem.h"

/* ---- table.c: writes rows through the table access method ---- */

extern int64 tq_id_next(void);
extern int64 tq_id_open(bool *opened);
extern bool tq_id_read_open(TqOpenNumbers *numbers);

#define TQ_MAX_KEYS 3

/* A table or an index of tq, by name; static data, like a TqStatement. */
typedef struct TqRelation
{
	const char *name;
	Oid oid; /* InvalidOid: not looked up yet */
	int nkeys;
	FmgrInfo equal[TQ_MAX_KEYS]; /* equality functions of an index's columns */
	struct TqRelation *next;     /* in the list of those that were looked up */
} TqRelation;

#define TQ_RELATION(name_)                                                    \
	{                                                                         \
		.name = (name_)                                                       \
	}

extern Oid tq_relation_oid(TqRelation *relation);

/* The maximum number of rows that are inserted together. */
#define TQ_TABLE_BATCH 64

/* An open table. */
typedef struct TqTable
{
	Relation rel;
	LOCKMODE lock_mode;
	struct TqEntries *entries; /* open indexes; NULL: not open */
	EState *estate;            /* like result, NULL unless it is needed */
	ResultRelInfo *result;
	bool has_executor_indexes; /* the executor inserts the entries */
	TupleTableSlot **slots;    /* rows that are not inserted yet */
	int room;                  /* slots that exist */
	int filled;                /* slots that hold a row */
} TqTable;

typedef enum TqLock
{
	TQ_LOCK_SHARE,  /* the row must not change meanwhile */
	TQ_LOCK_UPDATE, /* the caller is about to change the row */
	TQ_LOCK_SKIP    /* like UPDATE, but skips a locked row */
} TqLock;

extern TqTable *tq_table_open(TqRelation *which);
extern void tq_table_close(TqTable *table);
extern TupleTableSlot *tq_table_new_row(TqTable *table);
extern void tq_table_flush(TqTable *table);
extern void tq_table_copy_values(TupleTableSlot *copy, TupleTableSlot *slot);
extern TupleTableSlot *tq_table_copy_row(TqTable *table, TupleTableSlot *slot);
extern void tq_table_insert_rows(TqTable *table);
extern int tq_table_insert_entries(TqTable *table, TupleTableSlot **slots,
								   int n, Oid arbiter);
extern bool tq_table_has_delete_trigger(const TqTable *table);
extern TM_Result tq_table_delete(TqTable *table, ItemPointer tid, bool wait);
extern TM_Result tq_table_delete_if_free(TqTable *table, TupleTableSlot *slot);
extern TM_Result tq_table_update(TqTable *table, ItemPointer tid,
								 TupleTableSlot *slot);
extern bool tq_table_lock_row(TqTable *table, TupleTableSlot *slot,
							  TqLock mode);
extern TM_Result tq_table_lock(TqTable *table, TupleTableSlot *slot,
							   LockTupleMode mode, LockWaitPolicy policy);
extern void tq_table_changed_under_us(const TqTable *table, TM_Result result);
pg_noreturn extern void tq_table_error(const TqTable *table, TM_Result result);

/* Sets a column, numbered from 1, of a row that is being built. */
static inline void
tq_put_unless(TupleTableSlot *slot, int column, Datum value, bool isnull)
{
	slot->tts_values[column - 1] = value;
	slot->tts_isnull[column - 1] = isnull;
}

#define tq_put(slot, column, value) tq_put_unless(slot, column, value, false)
#define tq_put_null(slot, column) tq_put_unless(slot, column, (Datum) 0, true)

/*
 * By type; 0 and false are stored as NULL in columns of the types _or_null and
 * of times.
 */
#define tq_put_time(slot, column, value)                                      \
	tq_put_unless(slot, column, TimestampTzGetDatum(value), (value) == 0)
#define tq_put_int64(slot, column, value)                                     \
	tq_put(slot, column, Int64GetDatum(value))
#define tq_put_int32(slot, column, value)                                     \
	tq_put(slot, column, Int32GetDatum(value))
#define tq_put_int16(slot, column, value)                                     \
	tq_put(slot, column, Int16GetDatum(value))
#define tq_put_bool(slot, column, value)                                      \
	tq_put(slot, column, BoolGetDatum(value))
#define tq_put_slug(slot, column, value)                                      \
	tq_put(slot, column, PointerGetDatum(&(value)))
#define tq_put_int64_or_null(slot, column, value)                             \
	tq_put_unless(slot, column, Int64GetDatum(value), (value) == 0)
#define tq_put_int32_or_null(slot, column, value)                             \
	tq_put_unless(slot, column, Int32GetDatum(value), (value) == 0)
#define tq_put_bool_or_null(slot, column, value)                              \
	tq_put_unless(slot, column, BoolGetDatum(value), !(value))
#define tq_put_varlena(slot, column, value)                                   \
	tq_put_unless(slot, column, PointerGetDatum(value), (value) == NULL)
#define tq_put_datum(slot, column, value)                                     \
	tq_put_unless(slot, column, value, (value) == (Datum) 0)
#define tq_put_xid8(slot, column, value)                                      \
	tq_put(slot, column, FullTransactionIdGetDatum(value))

/* The open indexes of a table. */
typedef struct TqEntries TqEntries;

extern const TqXactEnd tq_entries_xact_end;

/* ---- index_scan.c: finds rows by an index, and returns their columns ---- */

/* An index scan for equal values of the first columns, or for a range. */
typedef struct TqScan
{
	TqTable *table;
	Relation index;
	IndexScanDesc desc;
	int nkeys;
	ScanKeyData keys[TQ_MAX_KEYS + 1];
	TupleTableSlot *slot; /* the current row */
	Snapshot registered;  /* when none was given; NULL: none */
	/* for tq_scan_find_near() and tq_scan_next_of() */
	int64 at;      /* the value of the last entry */
	int64 below;   /* where the scan ends */
	bool is_ahead; /* that entry is still to be returned */
} TqScan;

extern TqScan *tq_scan_begin(TqTable *table, TqRelation *index, int nkeys,
							 Snapshot snapshot);
extern void tq_scan_end(TqScan *scan);
extern void tq_scan_close(TqScan *scan);

/* Like tq_scan_begin(), and opens the table; tq_scan_close() closes both. */
#define tq_scan_open(which, index, nkeys, snapshot)                           \
	tq_scan_begin(tq_table_open(which), index, nkeys, snapshot)

extern void tq_scan_renew(TqScan *scan, Snapshot snapshot);
extern void tq_scan_seek(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_next(TqScan *scan);
extern bool tq_scan_find(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_read(TqScan *scan, Datum a, Datum b, Datum c,
						 TqReader *read, void *row);
extern bool tq_scan_find_last(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_previous(TqScan *scan);

/* Range scans. */
extern TqScan *tq_scan_begin_range(TqTable *table, TqRelation *index,
								   int ncolumns, Snapshot snapshot);
extern void tq_scan_seek_range(TqScan *scan, Datum a, Datum b, int64 from,
							   int64 below);
extern bool tq_scan_next_entry(TqScan *scan, int64 *value);
extern bool tq_scan_fetch(TqScan *scan);
extern bool tq_scan_find_near(TqScan *scan, int64 value);

/* Ascending values. */
extern TqScan *tq_scan_open_ascending(TqRelation *which, TqRelation *index,
									  const int64 *values, int n,
									  Snapshot snapshot);
extern void tq_scan_restart(TqScan *scan, int64 first, Snapshot snapshot);
extern bool tq_scan_next_of(TqScan *scan, int64 value);
extern void tq_scan_mark(TqRelation *which, TqRelation *index,
						 const int64 *values, int n, bool *marked);
extern int64 *tq_scan_those_in(TqRelation *which, TqRelation *index,
							   const int64 *values, int n, int *found);

/* Return columns, numbered from 1, of a row; 0 or false for NULL. */
extern Datum tq_row_value(TupleTableSlot *slot, int column);
extern int64 tq_row_int64(TupleTableSlot *slot, int column);
extern char *tq_row_text(TupleTableSlot *slot, int column);
extern char *tq_row_text_or(TupleTableSlot *slot, int column,
							const char *if_null);
extern void *tq_row_varlena(TupleTableSlot *slot, int column);
extern bool tq_row_is_locked(TupleTableSlot *slot);

#define tq_row_int32(slot, column) DatumGetInt32(tq_row_value(slot, column))
#define tq_row_int16(slot, column) DatumGetInt16(tq_row_value(slot, column))
#define tq_row_bool(slot, column) DatumGetBool(tq_row_value(slot, column))
#define tq_row_oid(slot, column) DatumGetObjectId(tq_row_value(slot, column))
#define tq_row_time tq_row_int64
#define tq_row_int64_or_null tq_row_int64
#define tq_row_int32_or_null tq_row_int32
#define tq_row_bool_or_null tq_row_bool
#define tq_row_slug(slot, column)                                             \
	(*DatumGetTqSlugP(tq_row_value(slot, column)))
#define tq_row_datum(slot, column)                                            \
	PointerGetDatum(tq_row_varlena(slot, column))
#define tq_row_xid8(slot, column)                                             \
	FullTransactionIdFromU64((uint64) tq_row_int64(slot, column))

/* A scan of a table. */
typedef struct TqTableScan
{
	Relation rel;
	Snapshot snapshot;
	TableScanDesc desc;
	TupleTableSlot *slot; /* the current row */
} TqTableScan;

extern TqTableScan *tq_table_scan_open(TqRelation *which);
extern bool tq_table_scan_next(TqTableScan *scan);
extern void tq_table_scan_close(TqTableScan *scan);

/* ---- leaf_batch.c: many keys of a unique index at once ---- */

/* Keys, none of which has a NULL, of rows in the order of inserting them. */
typedef struct TqKeys
{
	Relation heap;
	Relation index; /* unique, a btree */
	int n;
	int ncolumns;
	Datum *values;                     /* by key, then by column */
	ItemPointerData *tids;             /* NULL: they are only looked for */
	struct BTScanInsertData *scan_key; /* NULL: not made yet */
} TqKeys;

extern int tq_keys_insert(TqKeys *keys, IndexUniqueCheck check,
						  IndexInfo *info);
extern int tq_keys_absent(TqKeys *keys, int from);

/* ---- insert_new.c: inserts rows whose key does not exist yet ---- */

extern void tq_table_flush_new(TqTable *table, TqRelation *arbiter, int column,
							   bool *is_new);

/* Gives a row another key; `tries` is how often it got one before. */
typedef void TqRenumber(TupleTableSlot *slot, int tries);

extern void tq_table_flush_renumbered(TqTable *table, TqRelation *arbiter,
									  TqRenumber *renumber);

/* ---- watched_table.c: tables whose rows each session caches ---- */

typedef struct TqWatched
{
	TqRelation *table;
	Oid oid;                   /* when it was read last */
	uint64 generation;         /* differs once the table may have changed */
	bool is_watched;           /* it is in the list */
	bool changed_here;         /* by this transaction */
	void (*note_change)(void); /* NULL, or also called then */
	struct TqWatched *next;
} TqWatched;

/* Until a session notices a change. */
#define TQ_FIRST_GENERATION 1

#define TQ_WATCHED(relation)                                                  \
	{                                                                         \
		.table = &(relation), .generation = TQ_FIRST_GENERATION               \
	}

extern const TqXactEnd tq_watched_xact_end;

extern void tq_watched_begin(TqWatched *watched);
extern void tq_watched_read(TqWatched *watched);
extern void tq_watched_changed(TqWatched *watched);

/*
 * A cache of numbers by name, or of names by number, valid while the table
 * exists; static data.
 */
typedef struct TqNameCache
{
	const char *purpose;
	Size keysize;
	Size entrysize;
	int how;           /* flags for comparing its keys */
	TqWatched watched; /* its table */
	uint64 kept;       /* the generation that is cached */
	HTAB *entries;     /* NULL: empty */
	uint64 found_at;   /* invalidation messages processed before */
} TqNameCache;

extern void *tq_name_find(TqNameCache *cache, const void *key);
extern void tq_name_remove(TqNameCache *cache, const void *key);
extern void *tq_name_add(TqNameCache *cache, const void *key);
extern void tq_name_interning(void);
extern bool tq_name_is_interning(void);

#endif /* TQ_ROWS_H */
