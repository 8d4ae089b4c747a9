/*
 * table_scan.c
 *	  Reads all rows of a small table without a statement.
 *
 * Every session reads some tables of a few rows in its first call, and seldom
 * again.  To parse and plan a statement for that costs far more than to read
 * the rows, and opens their indexes in addition: three such statements were
 * two thirds of the instructions of a session's first enqueue().
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/snapmgr.h"

#include "rows.h"

/* Begins to read a table with the snapshot of a statement. */
TqTableScan *
tq_table_scan_open(TqRelation *which)
{
	TqTableScan *scan = palloc(sizeof(TqTableScan));

	scan->rel = table_open(tq_relation_oid(which), AccessShareLock);
	scan->snapshot = RegisterSnapshot(tq_spi_snapshot());
	scan->slot = table_slot_create(scan->rel, NULL);
	scan->desc = table_beginscan(scan->rel, scan->snapshot, 0, NULL);
	return scan;
}

/* Moves to the next row; returns false if there is none. */
bool
tq_table_scan_next(TqTableScan *scan)
{
	return table_scan_getnextslot(scan->desc, ForwardScanDirection,
								  scan->slot);
}

/* Ends the scan; keeps the lock on the table. */
void
tq_table_scan_close(TqTableScan *scan)
{
	table_endscan(scan->desc);
	ExecDropSingleTupleTableSlot(scan->slot);
	UnregisterSnapshot(scan->snapshot);
	table_close(scan->rel, NoLock);
	pfree(scan);
}
