/*
 * grant_table.c
 *	  Rows of tq_internal.scope_grant: the scopes of roles.
 *
 * Each session caches what it has compiled from the rows (rules/access.c,
 * watched_table.c).
 *
 * A role that is dropped leaves its rows behind, because PostgreSQL knows
 * nothing of them.  Nothing is done with such rows, pg_dump leaves them out,
 * and maintenance deletes them.
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "../rows/rows.h"
#include "../util/util.h"
#include "columns.h"
#include "registry.h"

TQ_NUMBERS(TQ_SCOPE_GRANT_COLUMNS, scope_grant);

static TqRelation grants = TQ_RELATION("scope_grant");

static TqWatched watched = TQ_WATCHED(grants);

static TqStatement delete_dropped = TQ_STATEMENT(
	"DELETE FROM tq_internal.scope_grant AS g"
	" WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid = g.role)");

/* Returns a number that changes whenever the table may have changed. */
uint64
tq_grants_generation(void)
{
	tq_watched_begin(&watched);
	return watched.generation;
}

/* Makes tq_grants_generation() ignore changes of other tables. */
void
tq_grants_watch(void)
{
	tq_watched_read(&watched);
}

/* Makes all sessions read the table again; see tq_watched_changed(). */
void
tq_grants_changed(void)
{
	tq_watched_changed(&watched);
}

TQ_READER(read_grant, TqGrant, TQ_SCOPE_GRANT_COLUMNS, scope_grant)

/*
 * Returns all rows as they are now, whatever the snapshot of the transaction
 * is: what is compiled from them is used by later transactions too.
 */
TqGrant *
tq_grants_all(int *found)
{
	int room = 64;
	TqGrant *rows = palloc(sizeof(TqGrant) * room);
	TqTableScan *scan;

	PushActiveSnapshot(GetLatestSnapshot());
	scan = tq_table_scan_open(&grants);
	for (*found = 0; tq_table_scan_next(scan); (*found)++)
	{
		if (*found == room)
			rows = repalloc_huge(rows, sizeof(TqGrant) * (room *= 2));
		read_grant(scan->slot, &rows[*found]);
	}
	tq_table_scan_close(scan);
	PopActiveSnapshot();
	return rows;
}

/* Deletes the rows of roles that no longer exist; returns how many. */
uint64
tq_grants_delete_of_dropped_roles(void)
{
	return tq_spi_run(&delete_dropped, NULL, NULL);
}
