/*
 * guc.c
 *	  Settings of tq.
 *
 * Defines names, limits and defaults (doc/reference.md); the code that uses a
 * setting says what it means.  Only superusers may change them, because they
 * are limits that a client must not evade; but for tq.credentials and
 * tq.default_deadline, which are none.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"
#include "utils/guc_tables.h"

#include "util.h"

int tq_claim_timeout = 20 * 60 * 1000;
int tq_max_deadline = 5 * 24 * 60 * 60;
int64 tq_default_deadline = 0;
int tq_deadline_delay = 0;
int tq_max_runs = 50;
int tq_max_dependencies = 10000;
int tq_expire_batch = 1000;
int tq_max_inline_artifact = 1024 * 1024;
int tq_message_retention = 60 * 60;
int tq_subscription_retention = 24 * 60 * 60;
int tq_publish_interval = 5;
int tq_seen_interval = 30 * 1000;
int tq_log_expired_claims = 60 * 1000;
int tq_log_failures = -1;
int tq_log_min_wait = -1;
int tq_metrics_queues = 200;
int tq_retain_completed = 7 * 24 * 60 * 60;
int tq_retain_failed = 30 * 24 * 60 * 60;
int tq_retain_dead_letters = 90 * 24 * 60 * 60;
int tq_queue_slots = 4096;
int tq_counted_queues = 0; /* without the preload */
int tq_counted_group = 1000;
int tq_max_payload = 16 * 1024 * 1024;
int tq_max_definition = 20 * 1024 * 1024;
int tq_max_tags = 1024 * 1024;
int tq_max_extra = 1024 * 1024;
int tq_max_batch = 1000000;
int tq_max_wait = 60 * 60 * 1000;
int tq_max_waiters = 0;
int tq_max_subscriptions = 1000;
int tq_max_bindings = 0;
int tq_max_group_tasks = 0;
int tq_max_queues = 1000;
int tq_max_limited_queues = 100;
int tq_max_workers = 10000;
int tq_max_cron_jobs = 1000;
int tq_max_callbacks = 10000;
int tq_max_unresolved_tasks = 1000000;
int tq_max_groups = 10000000;
int tq_max_unique_keys = 10000000;
int tq_max_foreign_dependencies = 1000000;
int tq_quotas_left = 0;
bool tq_maintenance = true;
bool tq_ordered_ids = true;
bool tq_publish_retried_exceptions = false;
int tq_credentials = TQ_CREDENTIALS_AUTO;
int tq_notify_payload = TQ_NOTIFY_AUTO;
int tq_audit = TQ_AUDIT_OPERATORS;
static int history_seconds = 60 * 60;
static int history_minutes = 24 * 60 * 60;
static int history_hours = 90 * 24 * 60 * 60;
int tq_audit_retention = 90 * 24 * 60 * 60;

static const struct config_enum_entry notify_payloads[] =
	{{"auto", TQ_NOTIFY_AUTO, false},
	 {"full", TQ_NOTIFY_FULL, false},
	 {"ids", TQ_NOTIFY_IDS, false},
	 {"off", TQ_NOTIFY_OFF, false},
	 {NULL, 0, false}};

static const struct config_enum_entry audits[] = {{"off", TQ_AUDIT_OFF, false},
												  {"operators",
												   TQ_AUDIT_OPERATORS, false},
												  {"all", TQ_AUDIT_ALL, false},
												  {NULL, 0, false}};

static char *clock_offset_text = NULL;

#define MIN_OFFSET_DAYS (-9000) /* after 2000: a time is never negative */
#define MAX_OFFSET_DAYS 1000000
#define MAX_DEADLINE_MS (INT64CONST(1000) * 366 * 24 * 3600 * 1000)

/*
 * Returns the interval that a text is, or NULL.  Catches the error of any other,
 * which would end the postmaster when it reads its files.
 */
static Interval *
read_interval(char *text)
{
	MemoryContext context = CurrentMemoryContext;
	Interval *volatile span = NULL;

	PG_TRY();
	{
		span = DatumGetIntervalP(
			DirectFunctionCall3(interval_in, CStringGetDatum(text),
								ObjectIdGetDatum(InvalidOid),
								Int32GetDatum(-1)));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		GUC_check_errdetail("It must be an interval.");
	}
	PG_END_TRY();
	return span;
}

/*
 * Checks that tq.clock_offset is an interval without months, which have no
 * fixed length.
 */
static bool
check_clock_offset(char **newval, void **extra, GucSource source)
{
	Interval *span;
	int64 days;
	int64 *offset;

	span = read_interval(*newval);
	if (span == NULL)
		return false;
	if (span->month != 0)
	{
		GUC_check_errdetail("Months and years have no fixed length.");
		return false;
	}
	days = span->day + span->time / USECS_PER_DAY;
	if (days < MIN_OFFSET_DAYS || days > MAX_OFFSET_DAYS)
	{
		GUC_check_errdetail("It must be between %d and %d days.",
							MIN_OFFSET_DAYS, MAX_OFFSET_DAYS);
		return false;
	}
	offset = (int64 *) guc_malloc(LOG, sizeof(int64));
	if (offset == NULL)
		return false;
	*offset = span->time + span->day * USECS_PER_DAY;
	*extra = offset;
	return true;
}

static void
assign_clock_offset(const char *newval, void *extra)
{
	tq_clock_offset = *((int64 *) extra);
}

static char *default_deadline_text = NULL;

/*
 * Checks that tq.default_deadline is empty or an interval above 0, of which a
 * month has 30 days; makes it empty for "none" and "infinity".
 */
static bool
check_default_deadline(char **newval, void **extra, GucSource source)
{
	int64 ms = 0;
	int64 *deadline;

	if (pg_strcasecmp(*newval, "none") == 0 ||
		pg_strcasecmp(*newval, "infinity") == 0)
		(*newval)[0] = '\0';
	if ((*newval)[0] != '\0' &&
		(!tq_clock_parse_span(*newval, strlen(*newval), &ms) || ms <= 0 ||
		 ms > MAX_DEADLINE_MS))
	{
		GUC_check_errdetail(
			"It must be an interval above 0, at most 1000 years, or empty for no deadline.");
		return false;
	}
	deadline = (int64 *) guc_malloc(LOG, sizeof(int64));
	if (deadline == NULL)
		return false;
	*deadline = ms;
	*extra = deadline;
	return true;
}

static void
assign_default_deadline(const char *newval, void *extra)
{
	tq_default_deadline = *((int64 *) extra);
}

static void
define_times(void)
{
	DefineCustomIntVariable("tq.claim_timeout",
							"How long a claim lasts unless it is reclaimed.",
							NULL, &tq_claim_timeout, 20 * 60 * 1000, 1,
							INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("tq.clock_offset",
							   "Shifts tq's clock, for tests.",
							   "An interval without months.",
							   &clock_offset_text, "0", PGC_SUSET,
							   GUC_NOT_IN_SAMPLE, check_clock_offset,
							   assign_clock_offset, NULL);
	DefineCustomStringVariable(
		"tq.default_deadline",
		"Deadline of a new task to which none is given; empty: none.",
		"An interval; create_task and define_task always need a deadline.",
		&default_deadline_text, "", PGC_USERSET, 0, check_default_deadline,
		assign_default_deadline, NULL);
	DefineCustomIntVariable(
		"tq.deadline_delay",
		"How long after its deadline an unresolved task is resolved.", NULL,
		&tq_deadline_delay, 0, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL, NULL,
		NULL);
	DefineCustomIntVariable(
		"tq.log_expired_claims",
		"Shortest time between two lines of the log about expired claims; -1: none.",
		NULL, &tq_log_expired_claims, 60 * 1000, -1, INT_MAX, PGC_SUSET,
		GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.log_failures",
		"Shortest time between two lines of the log about failures in a queue; 0: a line for each; -1: none.",
		NULL, &tq_log_failures, -1, -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL,
		NULL, NULL);
	DefineCustomIntVariable(
		"tq.log_min_wait",
		"How long a run has waited of whose claim the log gets a line; 0: each; -1: none.",
		NULL, &tq_log_min_wait, -1, -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL,
		NULL, NULL);
	DefineCustomIntVariable(
		"tq.max_deadline",
		"How far ahead the deadline of a definition may lie.", NULL,
		&tq_max_deadline, 5 * 24 * 60 * 60, 1, INT_MAX, PGC_SUSET, GUC_UNIT_S,
		NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.seen_interval",
		"Shortest time between two writes of when a worker or queue was seen.",
		NULL, &tq_seen_interval, 30 * 1000, 0, 60 * 60 * 1000, PGC_SUSET,
		GUC_UNIT_MS, NULL, NULL, NULL);
}

static void
define_messages(void)
{
	DefineCustomIntVariable("tq.message_retention",
							"How long messages are kept for tq.messages().",
							NULL, &tq_message_retention, 60 * 60, 1, INT_MAX,
							PGC_SUSET, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomEnumVariable("tq.notify_payload", "What NOTIFY carries.",
							 "Every role that may connect can LISTEN.",
							 &tq_notify_payload, TQ_NOTIFY_AUTO,
							 notify_payloads, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.publish_interval",
		"Shortest time between two publications of messages.", NULL,
		&tq_publish_interval, 5, 1, 60000, PGC_SUSET, GUC_UNIT_MS, NULL, NULL,
		NULL);
	DefineCustomBoolVariable(
		"tq.publish_retried_exceptions",
		"Send task-exception also for runs that are retried.", NULL,
		&tq_publish_retried_exceptions, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.subscription_retention",
		"How long messages are kept for a subscription that does not "
		"acknowledge them.",
		NULL, &tq_subscription_retention, 24 * 60 * 60, 1, INT_MAX, PGC_SUSET,
		GUC_UNIT_S, NULL, NULL, NULL);
}

static void
define_retention(void)
{
	DefineCustomIntVariable(
		"tq.retain_completed",
		"How long a completed task is kept whose expires was not given.", NULL,
		&tq_retain_completed, 7 * 24 * 60 * 60, 0, INT_MAX, PGC_SUSET,
		GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("tq.retain_dead_letters",
							"How long a dead letter is kept.", NULL,
							&tq_retain_dead_letters, 90 * 24 * 60 * 60, 0,
							INT_MAX, PGC_SUSET, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.retain_failed",
		"How long a failed or exception task is kept whose expires was not "
		"given.",
		NULL, &tq_retain_failed, 30 * 24 * 60 * 60, 0, INT_MAX, PGC_SUSET,
		GUC_UNIT_S, NULL, NULL, NULL);
}

/* Defines how long a history of queues is kept; only SQL reads it. */
static void
define_history(const char *name, const char *what, int *variable)
{
	DefineCustomIntVariable(name, what, "0 for tq.history_seconds: none is.",
							variable, *variable, 0, INT_MAX, PGC_SUSET,
							GUC_UNIT_S, NULL, NULL, NULL);
}

static void
define_histories(void)
{
	define_history(
		"tq.history_hours",
		"How long the history of queues is kept by the hour, at least.",
		&history_hours);
	define_history(
		"tq.history_minutes",
		"How long the history of queues is kept by the minute, at least.",
		&history_minutes);
	define_history(
		"tq.history_seconds",
		"How long the history of queues is kept by ten seconds; 0: there is none.",
		&history_seconds);
}

static void
define_numbers(void)
{
	DefineCustomIntVariable(
		"tq.expire_batch",
		"How many tasks one transaction deletes, cancels or moves.", NULL,
		&tq_expire_batch, 1000, 1, 1000000, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("tq.max_dependencies",
							"How many tasks a task may depend on.", NULL,
							&tq_max_dependencies, 10000, 0, 10000, PGC_SUSET,
							0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.max_inline_artifact",
		"How large the content of an inline artifact may be.", NULL,
		&tq_max_inline_artifact, 1024 * 1024, 0, 256 * 1024 * 1024, PGC_SUSET,
		GUC_UNIT_BYTE, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.metrics_queues",
		"How many task queues tq.metrics() shows one by one.", NULL,
		&tq_metrics_queues, 200, 0, 10000, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("tq.max_runs", "How many runs a task may have.",
							NULL, &tq_max_runs, 50, 1, 1001, PGC_SUSET, 0,
							NULL, NULL, NULL);
}

/*
 * Limit of the sizes of a definition.  A definition must fit into a jsonb
 * value, which is limited to 256 MB, and as JSON text, with what a client or COPY
 * adds to it, into the 1 GB of a text value.
 */
#define MAX_SIZE (100 * 1024 * 1024)

static void
define_size(const char *name, const char *what, int *variable)
{
	DefineCustomIntVariable(
		name, what,
		"Measured as JSON text, or as jsonb is stored before compression, whichever is larger.",
		variable, *variable, 1024, MAX_SIZE, PGC_SUSET, GUC_UNIT_BYTE, NULL,
		NULL, NULL);
}

/* Defines a limit of what one caller may cost. */
static void
define_limit(const char *name, const char *what, const char *more,
			 int *variable, int min)
{
	DefineCustomIntVariable(name, what, more, variable, *variable, min,
							INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL);
}

static void
define_callers(void)
{
	define_limit("tq.max_batch",
				 "How many tasks or runs one call may create, claim or name.",
				 NULL, &tq_max_batch, 1);
	define_limit(
		"tq.max_bindings",
		"How many bindings a subscription or channel may have; 0: no limit.",
		NULL, &tq_max_bindings, 0);
	define_limit("tq.max_group_tasks",
				 "How many tasks may join a task group; 0: no limit.",
				 "Tasks that other transactions are creating are not counted.",
				 &tq_max_group_tasks, 0);
	define_limit("tq.max_subscriptions",
				 "How many subscriptions a role may create; 0: no limit.",
				 "The role is the one that has logged in.",
				 &tq_max_subscriptions, 0);
	DefineCustomIntVariable("tq.max_wait",
							"How long a call waits; a longer wait ends then.",
							NULL, &tq_max_wait, 60 * 60 * 1000, 0,
							60 * 60 * 1000, PGC_SUSET, GUC_UNIT_MS, NULL, NULL,
							NULL);
	define_limit(
		"tq.max_waiters", "How many sessions of a role may wait; 0: no limit.",
		"The sessions of the role that has logged in, in all databases.",
		&tq_max_waiters, 0);
}

/* Makes the session look at its quotas again, of which one may be lower now. */
static void
assign_quota(int newval, void *extra)
{
	tq_quotas_left = 0;
}

/* Defines a limit of what a role may make and keep (access_table.c). */
static void
define_quota(const char *name, const char *what, int *variable)
{
	DefineCustomIntVariable(name, what, "Superusers have no limit.", variable,
							*variable, -1, INT_MAX, PGC_SUSET, 0, NULL,
							assign_quota, NULL);
}

static void
define_quotas(void)
{
	define_quota("tq.max_callbacks",
				 "How many callbacks of groups a role may have; -1: no limit.",
				 &tq_max_callbacks);
	define_quota("tq.max_cron_jobs",
				 "How many recurring tasks a role may own; -1: no limit.",
				 &tq_max_cron_jobs);
	define_quota(
		"tq.max_foreign_dependencies",
		"How many dependencies on tasks of others the tasks of a queue may have; -1: no limit.",
		&tq_max_foreign_dependencies);
	define_quota("tq.max_groups",
				 "How many task groups a queue may have; -1: no limit.",
				 &tq_max_groups);
	define_quota("tq.max_limited_queues",
				 "How many queues a role may set limits of; -1: no limit.",
				 &tq_max_limited_queues);
	define_quota("tq.max_queues",
				 "How many queues a role may make; -1: no limit.",
				 &tq_max_queues);
	define_quota("tq.max_unique_keys",
				 "How many unique keys a queue may have; -1: no limit.",
				 &tq_max_unique_keys);
	define_quota("tq.max_unresolved_tasks",
				 "How many unresolved tasks a queue may have; -1: no limit.",
				 &tq_max_unresolved_tasks);
	define_quota("tq.max_workers",
				 "How many workers a role may make; -1: no limit.",
				 &tq_max_workers);
}

static const struct config_enum_entry credentials_values[] =
	{{"auto", TQ_CREDENTIALS_AUTO, false},
	 {"on", TQ_CREDENTIALS_ON, false},
	 {"off", TQ_CREDENTIALS_OFF, false},
	 {NULL, 0, false}};

/*
 * Defines the settings that size shared memory, which exists only under
 * shared_preload_libraries.
 */
static void
define_sizes(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	DefineCustomIntVariable(
		"tq.queue_slots",
		"For how many task queues the server keeps a claim cursor.", NULL,
		&tq_queue_slots, 4096, 4, 1024 * 1024, PGC_POSTMASTER, 0, NULL, NULL,
		NULL);
	DefineCustomIntVariable(
		"tq.counted_queues",
		"For how many task queues the server keeps counters; 0: for none.",
		NULL, &tq_counted_queues, 1000, 0, 100000, PGC_POSTMASTER, 0, NULL,
		NULL, NULL);
}

/* Defines all settings; called by _PG_init(). */
void
tq_guc_define(void)
{
	define_sizes();
	DefineCustomEnumVariable("tq.audit", "Which calls the audit trail shows.",
							 "\"all\": also those of producers and workers.",
							 &tq_audit, TQ_AUDIT_OPERATORS, audits, PGC_SUSET,
							 0, NULL, NULL, NULL);
	DefineCustomIntVariable("tq.audit_retention",
							"How long the audit trail is kept.", NULL,
							&tq_audit_retention, 90 * 24 * 60 * 60, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_S, NULL, NULL, NULL);
	define_size("tq.max_definition",
				"How large a task definition may be as a whole.",
				&tq_max_definition);
	define_size("tq.max_extra", "How large \"extra\" of a task may be.",
				&tq_max_extra);
	define_size("tq.max_payload", "How large the payload of a task may be.",
				&tq_max_payload);
	define_size("tq.max_tags", "How large the tags of a task may be.",
				&tq_max_tags);
	define_callers();
	define_quotas();
	DefineCustomBoolVariable(
		"tq.maintenance", "Whether maintenance of tq runs in a database.",
		"Turn it off while a restore or logical replication fills the tables.",
		&tq_maintenance, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"tq.counted_group",
		"Task groups of so many tasks get counters, which group_progress() reads.",
		NULL, &tq_counted_group, 1000, 1, INT_MAX, PGC_SUSET, 0, NULL, NULL,
		NULL);
	DefineCustomBoolVariable("tq.ordered_ids",
							 "Whether new ids begin with the time.",
							 "Each can then be asked when it was made.",
							 &tq_ordered_ids, true, PGC_SUSET, 0, NULL, NULL,
							 NULL);
	/* No limit: any role may change it for itself. */
	DefineCustomEnumVariable(
		"tq.credentials", "Whether claims return credentials.",
		"\"auto\": to a role that could not resolve the run without them.",
		&tq_credentials, TQ_CREDENTIALS_AUTO, credentials_values, PGC_USERSET,
		0, NULL, NULL, NULL);
	define_histories();
	define_messages();
	define_numbers();
	define_retention();
	define_times();
	MarkGUCPrefixReserved("tq");
}

/* ---- settings in a connection string ---- */

/*
 * Without shared_preload_libraries the server does not know these settings when
 * a client connects, and takes what the client gives (PGOPTIONS, a connection
 * string) in place of what is set for the role, the database or the server.  When
 * the library is loaded, it rejects the value of the client, and the setting gets
 * its default: a role could evade its limits that way.  With
 * shared_preload_libraries the server itself refuses such a connection.
 */

#define PREFIX "tq."

pg_noreturn static void
refuse(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to set parameter \"%s\"", name),
			 errdetail(
				 "The connection gives it, and only a superuser may set it."),
			 errhint(
				 "Leave it out of the connection string and of PGOPTIONS.")));
}

/*
 * Raises 42501 if the client of this session has given a setting of tq that it
 * may not set.  Called before the settings are defined.
 */
void
tq_connection_check(void)
{
	int n;
	struct config_generic **settings = TqSettings(&n);

	for (int i = 0; i < n; i++)
	{
		/*
		 * This is a setting of tq that only superusers may set, and the client
		 * of a session that is none has given it.
		 */
		if ((settings[i]->flags & GUC_CUSTOM_PLACEHOLDER) != 0 &&
			pg_strncasecmp(settings[i]->name, PREFIX, strlen(PREFIX)) == 0 &&
			pg_strcasecmp(settings[i]->name, "tq.credentials") != 0 &&
			pg_strcasecmp(settings[i]->name, "tq.default_deadline") != 0 &&
			settings[i]->reset_source == PGC_S_CLIENT &&
			settings[i]->reset_scontext != PGC_SU_BACKEND)
			refuse(settings[i]->name);
	}
}
