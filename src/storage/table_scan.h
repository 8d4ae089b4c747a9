/*
 * table_scan.h
 *	  Reads all rows of a small table without a statement.
 */
#ifndef TQ_TABLE_SCAN_H
#define TQ_TABLE_SCAN_H

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "table.h"

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

#endif /* TQ_TABLE_SCAN_H */
