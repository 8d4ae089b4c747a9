/*
 * index_scan.h
 *	  Finds rows by an index, and returns their columns.
 */
#ifndef TQ_INDEX_SCAN_H
#define TQ_INDEX_SCAN_H

#include "access/genam.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "../util/spi.h"
#include "table.h"

/* An index scan for equal values of the first columns, or for a range. */
typedef struct TqScan
{
	TqTable *table;
	Relation index;
	IndexScanDesc desc;
	int nkeys;
	ScanKeyData keys[TQ_MAX_KEYS + 1];
	TupleTableSlot *slot; /* the current row */
	Snapshot registered;  /* by tq_scan_open(); NULL: none */
	/* for tq_scan_find_near() */
	int64 at;    /* the value of the last entry */
	int64 below; /* where the scan ends */
} TqScan;

extern TqScan *tq_scan_begin(TqTable *table, TqRelation *index, int nkeys,
							 Snapshot snapshot);
extern void tq_scan_end(TqScan *scan);
extern TqScan *tq_scan_open(TqRelation *which, TqRelation *index, int nkeys,
							Snapshot snapshot);
extern void tq_scan_close(TqScan *scan);
extern void tq_scan_seek(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_next(TqScan *scan);
extern bool tq_scan_find(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_read(TqScan *scan, Datum a, Datum b, Datum c,
						 TqReader *read, void *row);
extern int32 tq_scan_number(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_find_last(TqScan *scan, Datum a, Datum b, Datum c);
extern bool tq_scan_previous(TqScan *scan);

/* Range scans. */
extern TqScan *tq_scan_begin_range(TqTable *table, TqRelation *index,
								   int ncolumns, Snapshot snapshot);
extern TqScan *tq_scan_open_range(TqRelation *which, TqRelation *index,
								  Snapshot snapshot);
extern void tq_scan_seek_range(TqScan *scan, Datum a, Datum b, int64 from,
							   int64 below);
extern bool tq_scan_next_entry(TqScan *scan, int64 *value);
extern bool tq_scan_fetch(TqScan *scan);
extern bool tq_scan_find_near(TqScan *scan, int64 value);

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

#endif /* TQ_INDEX_SCAN_H */
