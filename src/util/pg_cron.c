/*
 * pg_cron.c
 *	  Calls the extension pg_cron, which keeps the time.
 *
 * pg_cron lives in one database of the server, cron.database_name.  In that one
 * its functions are called with the rights of tq's owner, a superuser: only a
 * superuser may make a job that another role runs.  In the other databases
 * nothing can be called; a user is given the command to run.
 *
 * The role of a job is named even where it does not change: pg_cron may refuse
 * jobs of superusers, and means the caller otherwise.
 *
 * Its tables are known since version 1.4: cron.job, whose column jobname has the
 * type name before 1.5, and cron.job_run_details.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "util.h"

static TqStatement find_job = TQ_STATEMENT(
	"SELECT jobid FROM cron.job WHERE jobname::text = $1 AND username = $2"
	" AND database = pg_catalog.current_database() ORDER BY jobid LIMIT 1",
	TEXTOID, TEXTOID);

static TqStatement make_job = TQ_STATEMENT(
	"SELECT cron.schedule_in_database($1, $2, $3, pg_catalog.current_database()::text, $4, $5)",
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, BOOLOID);

static TqStatement alter_job = TQ_STATEMENT(
	"SELECT cron.alter_job(job_id => $1, username => $2, schedule => $3, command => $4, active => $5)",
	INT8OID, TEXTOID, TEXTOID, TEXTOID, BOOLOID);

static TqStatement set_active = TQ_STATEMENT(
	"SELECT cron.alter_job(job_id => $1, username => $2, active => $3)",
	INT8OID, TEXTOID, BOOLOID);

static TqStatement drop_job = TQ_STATEMENT("SELECT cron.unschedule($1)",
										   INT8OID);

/* DROP ROLE leaves jobs behind, with which pg_cron 1.6 does not start. */
#define IS_ORPHAN                                                             \
	"NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = username)"

static TqStatement drop_orphans = TQ_STATEMENT(
	"SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname::text = $1"
	" AND database = pg_catalog.current_database() AND " IS_ORPHAN,
	TEXTOID);

static TqStatement version = TQ_STATEMENT(
	"SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'pg_cron'"
	" AND pg_catalog.string_to_array(pg_catalog.substring(extversion, '^[0-9]+[.][0-9]+'), '.')::int[] >= '{1,5}'",
	InvalidOid);

static TqStatement list_jobs = TQ_STATEMENT(
	"SELECT j.jobid, j.jobname::text, j.username, j.active, d.status, d.return_message, d.start_time, d.end_time"
	" FROM cron.job AS j LEFT JOIN LATERAL (SELECT * FROM cron.job_run_details AS r"
	" WHERE r.jobid = j.jobid ORDER BY r.runid DESC LIMIT 1) AS d ON true"
	" WHERE j.jobname::text LIKE $1 AND j.database = pg_catalog.current_database() ORDER BY j.jobid",
	TEXTOID);

/* Returns whether pg_cron is in this database. */
bool
tq_pg_cron_is_here(void)
{
	return OidIsValid(get_extension_oid("pg_cron", true));
}

/*
 * Returns whether the schedule may be a number of seconds.  pg_cron must be in
 * this database.
 */
bool
tq_pg_cron_has_seconds(void)
{
	return tq_spi_run_int64(&version, NULL, 0) > 0;
}

/* Returns the database that pg_cron is in, or NULL if it is not preloaded. */
static const char *
home(void)
{
	return GetConfigOption("cron.database_name", true, false);
}

/*
 * Returns the time zone of schedules, or NULL if pg_cron is not preloaded.
 * Before 1.5 it is GMT.
 */
const char *
tq_pg_cron_time_zone(void)
{
	const char *zone = GetConfigOption("cron.timezone", true, false);

	if (zone != NULL)
		return zone;
	return home() == NULL && !tq_pg_cron_is_here() ? NULL : "GMT";
}

/* Returns whether pg_cron is preloaded for another database. */
bool
tq_pg_cron_is_elsewhere(void)
{
	return home() != NULL &&
		   strcmp(home(), get_database_name(MyDatabaseId)) != 0;
}

/*
 * Raises an error unless pg_cron is in this database, or preloaded for another
 * one.
 */
void
tq_pg_cron_require(void)
{
	if (tq_pg_cron_is_here() || tq_pg_cron_is_elsewhere())
		return;
	if (home() != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"pg_cron\" does not exist"),
				 errdetail("The server has preloaded it for this database."),
				 errhint("Run CREATE EXTENSION pg_cron as a superuser.")));
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg("pg_cron is not available"),
		 errdetail(
			 "Recurring tasks need it to keep the time, and the server has not preloaded it."),
		 errhint(
			 "Install it (in Debian postgresql-VERSION-cron), add pg_cron to shared_preload_libraries, set cron.database_name = '%s', restart the server, and run CREATE EXTENSION pg_cron.",
			 get_database_name(MyDatabaseId))));
}

/* Returns the id of a job of this database, or 0. */
static int64
job_id(const char *name, const char *role)
{
	return tq_spi_run_int64(&find_job,
							TQ_VALUES(CStringGetTextDatum(name),
									  CStringGetTextDatum(role)),
							0);
}

/* Makes a job, or changes the one of that name and role; returns its id. */
static int64
make_or_alter(const TqJob *job)
{
	int64 id = job_id(job->name, job->role);

	tq_pg_cron_unschedule(job->name, NULL);
	if (id == 0)
		return tq_spi_run_int64(&make_job,
								TQ_VALUES(CStringGetTextDatum(job->name),
										  CStringGetTextDatum(job->schedule),
										  CStringGetTextDatum(job->command),
										  CStringGetTextDatum(job->role),
										  BoolGetDatum(job->is_active)),
								0);
	tq_spi_run(&alter_job,
			   TQ_VALUES(Int64GetDatum(id), CStringGetTextDatum(job->role),
						 CStringGetTextDatum(job->schedule),
						 CStringGetTextDatum(job->command),
						 BoolGetDatum(job->is_active)),
			   NULL);
	return id;
}

/* Raises TQ400 for a schedule that pg_cron has refused. */
pg_noreturn static void
refuse_schedule(const TqJob *job, bool has_seconds)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("invalid schedule \"%s\"", tq_error_clip(job->schedule)),
		 has_seconds
			 ? errdetail("pg_cron does not accept it.")
			 : errdetail(
				   "pg_cron does not accept it. Before version 1.5 the shortest interval is a minute."),
		 has_seconds
			 ? errhint(
				   "Give five fields: minute, hour, day of month, month, day of week; or an interval from \"1 second\" to \"59 seconds\".")
			 : errhint(
				   "Give five fields: minute, hour, day of month, month, day of week.")));
}

/* Raises an error for a role that pg_cron could not run a job as. */
static void
check_role(const char *role)
{
	HeapTuple tuple = SearchSysCache1(AUTHNAME, CStringGetDatum(role));
	bool can_log_in = HeapTupleIsValid(tuple) &&
					  ((Form_pg_authid) GETSTRUCT(tuple))->rolcanlogin;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (can_log_in)
		return;
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("role \"%s\" cannot log in", role),
					errdetail("pg_cron runs a job as the role that owns it."),
					errhint("Run ALTER ROLE %s LOGIN, or call as a role that "
							"can log in.",
							quote_identifier(role))));
}

/*
 * Makes a job, or changes the one of that name and role; returns its id.
 * Raises TQ400 if pg_cron does not accept the schedule.
 */
int64
tq_pg_cron_schedule(const TqJob *job)
{
	MemoryContext context = CurrentMemoryContext;
	bool has_seconds = tq_pg_cron_has_seconds();
	volatile int64 id = 0;
	ErrorData *error;

	check_role(job->role);
	PG_TRY();
	{
		id = make_or_alter(job);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_INVALID_PARAMETER_VALUE)
			PG_RE_THROW();
		FlushErrorState();
		refuse_schedule(job, has_seconds);
	}
	PG_END_TRY();
	return id;
}

/*
 * Removes the job of that name and role, if there is one; role NULL: the jobs of
 * that name whose roles were dropped.
 */
void
tq_pg_cron_unschedule(const char *name, const char *role)
{
	int64 id = role == NULL ? 0 : job_id(name, role);

	if (role == NULL)
		tq_spi_run(&drop_orphans, TQ_VALUES(CStringGetTextDatum(name)), NULL);
	else if (id != 0)
		tq_spi_run(&drop_job, TQ_VALUES(Int64GetDatum(id)), NULL);
}

/* Activates a job, or the opposite; returns whether there is one. */
bool
tq_pg_cron_set_active(const char *name, const char *role, bool is_active)
{
	int64 id = job_id(name, role);

	if (id != 0)
		tq_spi_run(&set_active,
				   TQ_VALUES(Int64GetDatum(id), CStringGetTextDatum(role),
							 BoolGetDatum(is_active)),
				   NULL);
	return id != 0;
}

/* ---- commands to run in the database of pg_cron ---- */

/* Returns the command that makes a job of this database. */
char *
tq_pg_cron_schedule_command(const TqJob *job)
{
	return psprintf("SELECT cron.schedule_in_database(%s, %s, %s, %s, %s)",
					quote_literal_cstr(job->name),
					quote_literal_cstr(job->schedule),
					quote_literal_cstr(job->command),
					quote_literal_cstr(get_database_name(MyDatabaseId)),
					quote_literal_cstr(job->role));
}

/*
 * Returns the command that removes a job of this database; role NULL: those whose
 * roles were dropped.
 */
char *
tq_pg_cron_unschedule_command(const char *name, const char *role)
{
	return psprintf(
		"SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = %s AND %s AND database = %s",
		quote_literal_cstr(name),
		role == NULL ? IS_ORPHAN
					 : psprintf("username = %s", quote_literal_cstr(role)),
		quote_literal_cstr(get_database_name(MyDatabaseId)));
}

/* Says that a command is to be run in the database of pg_cron. */
void
tq_pg_cron_note_elsewhere(const char *command)
{
	ereport(
		NOTICE,
		(errmsg(
			 "pg_cron is in database \"%s\", where one command is to be run",
			 home() == NULL ? "?" : home()),
		 errdetail("It cannot be called from database \"%s\".",
				   get_database_name(MyDatabaseId)),
		 errhint("Run there as a superuser: %s", command)));
}

/* ---- jobs ---- */

/* Returns a column of the last statement as text; NULL if it is NULL. */
static char *
text_of(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						column);
}

static int64
int64_of(uint64 row, int column)
{
	bool isnull;
	Datum value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
								column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/*
 * Returns the jobs of this database whose names are like a pattern.  pg_cron
 * must be in this database.
 */
TqJobState *
tq_pg_cron_jobs(const char *name_pattern, int *n)
{
	TqJobState *jobs;

	*n = (int) tq_spi_run(&list_jobs,
						  TQ_VALUES(CStringGetTextDatum(name_pattern)), NULL);
	jobs = palloc(sizeof(TqJobState) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
		jobs[i] = (TqJobState){.id = int64_of(i, 1),
							   .name = text_of(i, 2),
							   .role = text_of(i, 3),
							   .is_active = strcmp(text_of(i, 4), "t") == 0,
							   .status = text_of(i, 5),
							   .message = text_of(i, 6),
							   .started = int64_of(i, 7),
							   .finished = int64_of(i, 8)};
	tq_spi_free_result();
	return jobs;
}
