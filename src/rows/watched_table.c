/*
 * watched_table.c
 *	  Tables whose rows each session caches.
 *
 * A trigger on such a table sends a relcache invalidation, whatever writes it:
 * a function of tq, a restore, replication, a superuser.  So a call that begins
 * after the commit reads the rows again.  The session that changes the table
 * reads them again at once, and once more if its changes are undone.
 */
#include "postgres.h"

#include "utils/inval.h"

#include "rows.h"

static TqWatched *all = NULL;    /* that this session watches */
static bool has_changed = false; /* one of them, by this transaction */

/* Relcache callback: notes that a table may have changed. */
static void
watched_forget(Datum arg, Oid relid)
{
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
	{
		if (relid == InvalidOid || relid == watched->oid ||
			watched->oid == InvalidOid)
			watched->generation++;
		if (watched->note_change != NULL &&
			(relid == InvalidOid || relid == watched->oid))
			watched->note_change();
	}
}

/* Changes the generation of a table from now on when that has changed. */
void
tq_watched_begin(TqWatched *watched)
{
	static bool is_registered = false;

	if (watched->is_watched)
		return;
	if (!is_registered)
		CacheRegisterRelcacheCallback(watched_forget, (Datum) 0);
	is_registered = true;
	watched->is_watched = true;
	watched->next = all;
	all = watched;
}

/* Watches a table which is about to be read, and ignores changes of others. */
void
tq_watched_read(TqWatched *watched)
{
	tq_watched_begin(watched);
	watched->oid = tq_relation_oid(watched->table);
}

/*
 * Makes all sessions read a table again once this transaction has committed,
 * and this one at once.
 */
void
tq_watched_changed(TqWatched *watched)
{
	tq_watched_begin(watched);
	CacheInvalidateRelcacheByRelid(tq_relation_oid(watched->table));
	watched->generation++;
	watched->changed_here = has_changed = true;
}

/* Makes this session forget what it has read of changes that are undone. */
static void
undo_changes(SubTransactionId id)
{
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
		watched->generation += watched->changed_here ? 1 : 0;
}

static void
end_changes(void)
{
	undo_changes(TopSubTransactionId);
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
		watched->changed_here = false;
	has_changed = false;
}

const TqXactEnd tq_watched_xact_end = {.has_work = &has_changed,
									   .abort = undo_changes,
									   .reset = end_changes};
