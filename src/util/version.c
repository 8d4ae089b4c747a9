/*
 * version.c
 *	  The versions of the library and of the SQL that it serves.
 *
 * A package replaces the library, a restart of the server loads it, and ALTER
 * EXTENSION tq UPDATE, in each database, brings the SQL that goes with it.  Days
 * may lie between these, a database of another version may be restored, and the
 * SQL may be updated before the restart.  So a library knows which versions of the
 * SQL it serves, and a call from another raises an error before it reads anything.
 *
 * The version of the SQL is that of the extension in pg_extension.  A session
 * reads it at its first call, and again after a function of the database has
 * changed, as every update changes some; a call costs the test of a flag
 * (catalog.c).  An update waits for the calls that run, because it locks the table
 * that each call has locked; a call that waits for the update processes its
 * invalidations when it has the lock, and reads the version after that.
 *
 * Callgrind has counted, as the mean of 500 calls, 164,200 instructions of enqueue()
 * with that test and 164,400 without, which differ by what the index of ids happens to
 * be, and of claim_work() for one run 172,040 and 172,010.  A start of the server takes
 * no longer than without this file.
 *
 * What pg_dump and a restore call is not checked: they must work with any pair.
 */
#include "postgres.h"

#include "utils/inval.h"
#include "utils/syscache.h"

#include "util.h"

/*
 * The SQL that this library serves, apart from its own: that of the release before,
 * whose functions and tables it knows.  0.1.0 is none: most of its functions call
 * what this library has no longer, and its tables have no owners.
 */
static const char *const served_too[] = {TQ_SERVED_TOO NULL};

bool tq_version_checked = false;

/* Invalidation callback: the SQL may be another. */
static void
version_forget(Datum arg, int cache, uint32 hash)
{
	tq_version_checked = false;
}

/* Returns whether the library serves the SQL of that version. */
static bool
is_served(const char *version)
{
	if (strcmp(version, TQ_VERSION) == 0)
		return true;
	for (int i = 0; served_too[i] != NULL; i++)
	{
		if (strcmp(version, served_too[i]) == 0)
			return true;
	}
	return false;
}

/*
 * Returns the version of the SQL of this database if the library does not serve it,
 * and NULL otherwise.
 */
char *
tq_version_unserved(void)
{
	char *version = tq_extension_version("tq");

	return version == NULL || is_served(version) ? NULL : version;
}

/* Returns whether the version, as in 0.10.1, is before that of the library. */
static bool
is_older(const char *version)
{
	int theirs[3] = {0, 0, 0};
	int ours[3] = {0, 0, 0};

	(void) sscanf(version, "%d.%d.%d", &theirs[0], &theirs[1], &theirs[2]);
	(void) sscanf(TQ_VERSION, "%d.%d.%d", &ours[0], &ours[1], &ours[2]);
	for (int i = 0; i < 3; i++)
	{
		if (theirs[i] != ours[i])
			return theirs[i] < ours[i];
	}
	return false;
}

/*
 * Reports at that level that the library does not serve the SQL of a version, and
 * what is to be done.
 */
void
tq_version_report(int level, const char *version)
{
	ereport(
		level,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg(
			 "the library of tq is of version %s, and the SQL of version %s",
			 TQ_VERSION, version),
		 errdetail(
			 "A library works with the SQL of its own version, and of the release before from 0.2.0 on."),
		 is_older(version)
			 ? errhint("Run ALTER EXTENSION tq UPDATE in this database.")
			 : errhint(
				   "Install the package of version %s, and restart the server.",
				   version)));
}

/*
 * Raises an error unless the library serves the SQL of this database.  The caller
 * has locked the extension (catalog.c).
 */
void
tq_version_check(void)
{
	static bool registered = false;
	char *version;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, version_forget, (Datum) 0);
		registered = true;
	}
	version = tq_version_unserved();
	if (version != NULL)
		tq_version_report(ERROR, version);
	tq_version_checked = true;
}
