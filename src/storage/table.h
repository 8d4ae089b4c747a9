/*
 * table.h
 *	  Writes rows through the table access method.
 */
#ifndef TQ_TABLE_H
#define TQ_TABLE_H

#include "access/tableam.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/lockoptions.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#include "../util/compat.h"

extern int64 tq_id_next(void);

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
extern bool tq_table_insert_entries(TqTable *table, TupleTableSlot *slot,
									Oid arbiter);
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

/*
 * Set columns, numbered from 1, of a row that is being built; tq_put_time()
 * stores 0 as NULL.
 */
static inline void
tq_put(TupleTableSlot *slot, int column, Datum value)
{
	slot->tts_values[column - 1] = value;
	slot->tts_isnull[column - 1] = false;
}

static inline void
tq_put_unless(TupleTableSlot *slot, int column, Datum value, bool isnull)
{
	slot->tts_values[column - 1] = value;
	slot->tts_isnull[column - 1] = isnull;
}

static inline void
tq_put_null(TupleTableSlot *slot, int column)
{
	slot->tts_values[column - 1] = (Datum) 0;
	slot->tts_isnull[column - 1] = true;
}

static inline void
tq_put_time(TupleTableSlot *slot, int column, TimestampTz time)
{
	tq_put_unless(slot, column, TimestampTzGetDatum(time), time == 0);
}

/* By type; 0 and false are stored as NULL in columns of the types _or_null. */
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

#endif /* TQ_TABLE_H */
