/*
 * calls.c
 *	  What is asked of the database, and what is done with its answers.
 *
 * An idle connection takes the first of: a call that waits in a queue, reports of
 * runs that have ended, a claim.  A claim with nothing to report waits in the
 * database.  Each call but a claim may be repeated; if the answer of a claim is
 * lost, its runs are claimed again when the claim has expired.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

#define WAIT "60 s"
#define CLAIM_PAUSE_LAST 30000
#define REPORTS_DELAY 50 /* milliseconds that a batch waits for others */
#define SECOND_AFTER 1000
#define SECOND_IDLE 10000

/*
 * What is asked of a run that is claimed, as ClaimColumn numbers it after the
 * outcome; attempt is that of the policy.  How long its claim lasts is from now
 * on, not from when the statement began to wait.
 */
#define CLAIM_COLUMNS                                                                   \
	" c.task_id, c.run_id, c.payload, c.credentials,"                                   \
	" (extract(epoch FROM c.taken_until - clock_timestamp()) * 1000)::bigint AS lasts," \
	" to_char(c.taken_until AT TIME ZONE 'UTC',"                                        \
	" 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS taken_until,"                             \
	" c.task ->> 'taskQueueId' AS queue,"                                               \
	" c.task #>> '{metadata,name}' AS name,"                                            \
	" CASE WHEN c.status ? 'runDetails' THEN"                                           \
	" (SELECT d ->> 'attempt' FROM jsonb_array_elements(c.status -> 'runDetails')"      \
	" d WHERE (d ->> 'runId')::int = c.run_id) END AS attempt,"                         \
	" c.task ->> 'deadline' AS deadline, c.task ->> 'expires' AS expires,"              \
	" c.task #>> '{tags,traceparent}' AS traceparent,"                                  \
	" c.status ->> 'retriesLeft' AS retries_left"

static const char *statements[STATEMENTS] = {
	[SQL_VERSION] = "SELECT e.extversion FROM pg_catalog.pg_extension e"
					" WHERE e.extname IN ('tq', 'tq_shard')",
	[SQL_CHANNEL] = "SELECT quote_ident(tq.worker_channel($1, $2))",
	[SQL_DECLARE] = "SELECT tq.declare_worker($1, $2, $3,"
					" now() + interval '1 day', $4::int,"
					" 'tq-worker " TQ_VERSION "')",
	[SQL_RESOLVE] = "SELECT r.outcome, r.task_id, r.run_id"
					" FROM tq.resolve($1::jsonb) r",
	[SQL_RECLAIM] =
		"SELECT (extract(epoch FROM c.taken_until - clock_timestamp()) * 1000)"
		"::bigint FROM tq.reclaim_task($1, $2::int,"
		" claim_for => $3::interval, credentials => $4::jsonb) c",
	[SQL_PROGRESS] = "SELECT FROM (SELECT $3::jsonb) p (p),"
					 " tq.report_progress($1, $2::int,"
					 " (p ->> 'done')::bigint, (p ->> 'total')::bigint,"
					 " p ->> 'message', credentials => $4::jsonb)",
	[SQL_ARTIFACT] = "SELECT FROM tq.create_artifact($1, $2::int, $5,"
					 " jsonb_build_object('expires', coalesce($6::timestamptz,"
					 " now() + interval '30 days')) || $3::jsonb,"
					 " credentials => $4::jsonb)",
	[SQL_DEFER] = "SELECT FROM tq.defer_task($1, $2::int, $3::interval,"
				  " credentials => $4::jsonb)",
};

static Call *first_call;
static bool ready; /* the database is one of tq */
static bool claimed_ever;
static bool claiming;
static bool found_nothing; /* by the last claim */
static Moment claim_at;
static int claim_pause;
static bool listening;

/* ---- results ---- */

/* Returns the SQLSTATE of an error, or "". */
const char *
result_state(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return state == NULL ? "" : state;
}

bool
result_is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* Returns an error with its detail and hint, until the next call. */
const char *
result_error(const PGresult *result)
{
	static Buffer text;
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	buffer_free(&text);
	buffer_put(&text, "%s", message == NULL ? "no answer" : message);
	if (detail != NULL)
		buffer_put(&text, " DETAIL: %s", detail);
	if (hint != NULL)
		buffer_put(&text, " HINT: %s", hint);
	return text.data;
}

/* Returns whether an error says that the run is no longer ours. */
bool
result_is_lost(const PGresult *result)
{
	const char *state = result_state(result);

	return strcmp(state, "TQ409") == 0 || strcmp(state, "TQ404") == 0;
}

/* ---- calls ---- */

const char *
calls_sql(Statement statement)
{
	return statements[statement];
}

/* Returns a call about a run, whose ids are the first parameters, or none. */
Call *
call_new(Statement statement, Job *job, void (*done)(Call *, PGresult *))
{
	Call *call = allocate(sizeof(Call));

	call->statement = statement;
	call->job = job;
	call->done = done;
	if (job != NULL)
	{
		call->parameters[0] = copy_text(job->task_id);
		call->parameters[1] = copy_text(job->run_id);
	}
	return call;
}

void
call_free(Call *call)
{
	for (int i = 0; i < PARAMETERS; i++)
		free(call->parameters[i]);
	free(call);
}

/* Has a call wait for a connection, before or after the others. */
void
call_enqueue(Call *call, bool first)
{
	Call **place = &first_call;

	while (!first && *place != NULL)
		place = &(*place)->next;
	call->next = *place;
	*place = call;
}

/* ---- the begin of a connection ---- */

/* Ends a worker that cannot work with this database. */
static void refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void
refuse(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	log_line(LOG_ERROR, NULL, "%s", text);
	free(text);
	stop_worker(1);
}

/* A connection listens: what was taken before is found by a reclaim. */
static void
listen_done(Call *call, PGresult *result)
{
	call_free(call);
	if (result != NULL && result_is_good(result))
		jobs_doubt_all();
	else
		listening = false;
}

/* Has a call whose answer is lost come again; frees it if there is one. */
static bool
asked_again(Call *call, const PGresult *result)
{
	if (result == NULL)
		call_enqueue(call, true);
	else
		call_free(call);
	return result == NULL;
}

static void
declare_done(Call *call, PGresult *result)
{
	if (asked_again(call, result))
		return;
	if (!result_is_good(result))
		log_line(LOG_DEBUG, NULL, "the worker is not declared: %s",
				 result_error(result));
}

/* Declares the worker to its queues, except those that a star stands for. */
static void
declare(void)
{
	for (int i = 0; i < options.nqueues; i++)
	{
		Call *call;

		if (strchr(options.queues[i], '*') != NULL)
			continue;
		call = call_new(SQL_DECLARE, NULL, declare_done);
		call->parameters[0] = copy_text(options.queues[i]);
		call->parameters[1] = copy_text(options.group);
		call->parameters[2] = copy_text(options.id);
		call->parameters[3] = format_text("%d", options.jobs);
		call_enqueue(call, false);
	}
}

static void
channel_done(Call *call, PGresult *result)
{
	if (asked_again(call, result))
		return;
	if (!result_is_good(result))
	{
		refuse("%s%s", result_error(result),
			   strcmp(result_state(result), "42501") == 0 ||
					   strcmp(result_state(result), "TQ403") == 0
				   ? "; the role needs the rights of a worker: GRANT tq_worker"
					 " TO the role, and SELECT tq.grant_queue('ROLE', 'QUEUE',"
					 " 'work')"
				   : "");
		return;
	}
	statements[SQL_LISTEN] = format_text("LISTEN %s",
										 PQgetvalue(result, 0, 0));
	declare();
	ready = true;
	service_ready();
}

static void
ask_channel(void)
{
	Call *call = call_new(SQL_CHANNEL, NULL, channel_done);

	call->parameters[0] = copy_text(options.group);
	call->parameters[1] = copy_text(options.id);
	call_enqueue(call, true);
}

/* Compares "0.2" of "0.2.1". */
static bool
is_known_version(const char *version)
{
	static const char ours[] = TQ_VERSION;
	size_t major = strcspn(ours, ".") + 1;
	size_t length = major + strcspn(&ours[major], ".");

	return strncmp(version, ours, length) == 0;
}

static void
version_done(Call *call, PGresult *result)
{
	if (asked_again(call, result))
		return;
	if (!result_is_good(result))
		refuse("%s", result_error(result));
	else if (PQntuples(result) == 0)
		refuse("the database has no extension tq; run CREATE EXTENSION tq in"
			   " it, or name another database with --dbname");
	else if (!is_known_version(PQgetvalue(result, 0, 0)))
		refuse("the database has tq %s, and this is tq-worker " TQ_VERSION
			   "; run ALTER EXTENSION tq UPDATE there, or install the"
			   " tq-worker of that version",
			   PQgetvalue(result, 0, 0));
	else
		ask_channel();
}

/* Does what a new connection begins with. */
void
calls_begin(Database *db)
{
	static bool asked;

	if (db == second_database)
		listening = false;
	else if (!asked)
		call_enqueue(call_new(SQL_VERSION, NULL, version_done), true);
	asked = asked || db == main_database;
}

/* ---- claims ---- */

/* Puts the fields that arguments name behind the columns of a claim. */
static char *
claim_sql(const char *before, const char *after)
{
	Buffer sql = {0};

	buffer_put(&sql, "%s" CLAIM_COLUMNS, before);
	for (int i = 0; i < options.nfields; i++)
	{
		buffer_put(&sql, ", c.payload #>> '");
		for (const char *at = options.fields[i]; *at != '\0'; at++)
			buffer_put(&sql, *at == '\'' ? "''" : "%c", *at);
		buffer_put(&sql, "' AS field");
	}
	buffer_put(&sql, "%s", after);
	return sql.data;
}

void
calls_init(void)
{
	statements[SQL_CLAIM] = claim_sql(
		"SELECT 'claimed' AS outcome,",
		" FROM tq.claim_work($1::text[], $2, $3, $4::int, wait => $5::interval,"
		" claim_for => $6::interval, definition => true) c");
	statements[SQL_RESOLVE_AND_CLAIM] =
		claim_sql("SELECT c.outcome,",
				  " FROM tq.resolve_and_claim($1::jsonb, $2, $3, $4, $5::int,"
				  " claim_for => $6::interval, definition => true) c");
}

bool
calls_claim(void)
{
	return claiming;
}

/* Returns whether there was no work, and none is asked for. */
bool
calls_found_nothing(void)
{
	return found_nothing && !claiming;
}

/* Returns whether the one task that was wanted has been there. */
bool
calls_had_enough(void)
{
	return options.once && claimed_ever;
}

/* Returns whether no command is there for what may be claimed. */
bool
calls_are_closed(void)
{
	return options.serve && !serve_takes_any();
}

/* Returns how many runs the worker has room for. */
static int
room(void)
{
	int waiting = jobs_count(JOB_READY);

	if (stopping || calls_had_enough() || (options.drain && found_nothing) ||
		calls_are_closed())
		return 0;
	if (options.batch > 1)
		return waiting > options.batch / 2 ? 0 : options.batch;
	return options.jobs - waiting - jobs_count(JOB_RUNNING);
}

/* Claims no more for a while, longer each time. */
void
calls_pause(void)
{
	claim_pause = claim_pause == 0 ? 100 : 2 * claim_pause;
	if (claim_pause > CLAIM_PAUSE_LAST)
		claim_pause = CLAIM_PAUSE_LAST;
	claim_at = now + claim_pause;
}

/* Claims work again: the next pause is short. */
void
calls_go_on(void)
{
	claim_pause = 0;
}

/* An error of the server: fatal before the first claim, else claimed again. */
static void
claim_failed(const PGresult *result)
{
	if (strcmp(result_state(result), "57014") == 0)
		return; /* its wait was canceled */
	if (!claimed_ever && claim_pause == 0)
		refuse("%s", result_error(result));
	else
		log_line(LOG_ERROR, NULL, "no task can be claimed: %s",
				 result_error(result));
	calls_pause();
}

/* Takes what a claim has answered, after the rows that are about reports. */
static int
take_claims(const PGresult *result)
{
	int n = 0;

	for (int i = 0; i < PQntuples(result); i++)
	{
		const char *outcome = PQgetvalue(result, i, CLAIM_OUTCOME);
		Job *job;

		if (strcmp(outcome, "claimed") == 0)
		{
			job_new(result, i);
			n++;
			continue;
		}
		job = jobs_find(PQgetvalue(result, i, CLAIM_TASK_ID),
						PQgetvalue(result, i, CLAIM_RUN_ID));
		if (job != NULL && job->state == JOB_REPORTING)
			job_settled(job, outcome);
	}
	if (n > 0)
		claimed_ever = true;
	return n;
}

static void
claim_done(Call *call, PGresult *result)
{
	claiming = false;
	if (result != NULL && !result_is_good(result))
		claim_failed(result);
	else if (result != NULL)
	{
		found_nothing = take_claims(result) == 0;
		/* An answer that did not wait: the queue is paused, or the like. */
		if (found_nothing && !options.drain && now - call->began < 1000 &&
			call->waits)
			calls_pause();
	}
	call_free(call);
}

/* A run is settled: there may be others that it has created. */
void
calls_look_again(void)
{
	found_nothing = false;
}

static char *
queue_array(void)
{
	Buffer list = {0};

	for (int i = 0; i < options.nqueues; i++)
	{
		buffer_put(&list, "%s\"", i == 0 ? "{" : ",");
		for (const char *at = options.queues[i]; *at != '\0'; at++)
			buffer_put(&list, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
		buffer_add(&list, "\"", 1);
	}
	buffer_add(&list, "}", 1);
	return list.data;
}

/* Returns a claim that waits in the database. */
static Call *
claim_call(int tasks)
{
	Call *call = call_new(SQL_CLAIM, NULL, claim_done);

	call->parameters[0] = queue_array();
	call->parameters[1] = copy_text(options.group);
	call->parameters[2] = copy_text(options.id);
	call->parameters[3] = format_text("%d", tasks);
	call->parameters[4] = copy_text(options.drain ? "0" : WAIT);
	call->parameters[5] = copy_text(options.claim_for);
	call->waits = !options.drain;
	claiming = true;
	return call;
}

/* ---- reports ---- */

/*
 * Reports of a call whose answer is lost, or that was refused, come again.  One
 * that was refused in a call of several, or which claimed too, comes alone.
 */
static void
reports_return(const PGresult *result, bool claims)
{
	int n = jobs_count(JOB_REPORTING);

	Job *next;

	for (Job *job = jobs_first(); job != NULL; job = next)
	{
		next = job->next;
		if (job->state != JOB_REPORTING)
			continue;
		job_set_state(job, JOB_ENDED);
		if (result != NULL && (n > 1 || claims))
			job->alone = true;
		else if (result != NULL)
			job_refused(job, result);
	}
}

static void
report_done(Call *call, PGresult *result)
{
	bool claims = call->statement == SQL_RESOLVE_AND_CLAIM;

	if (claims)
		claiming = false;
	if (result == NULL || !result_is_good(result))
		reports_return(result, claims);
	else if (take_claims(result) == 0 && claims)
		found_nothing = options.drain;
	call_free(call);
}

/* Returns whether a run is to be reported now. */
static bool
is_reportable(const Job *job)
{
	return job->state == JOB_ENDED && job->calls == 0 && !job->lost &&
		   (job->defer == NULL || job->given_back) && job->progress == NULL;
}

/* Returns whether reports and a claim may be one call, which is of one queue. */
static bool
claims_with_reports(void)
{
	return options.nqueues == 1 && strchr(options.queues[0], '*') == NULL;
}

/* Returns whether there is something to report that need not wait. */
static bool
reports_are_due(bool with_claim)
{
	int n = 0;
	Moment first = NEVER;

	for (Job *job = jobs_first(); job != NULL; job = job->next)
		if (is_reportable(job))
		{
			n++;
			first = job->ended < first ? job->ended : first;
		}
	if (n == 0)
		return false;
	if (with_claim || n >= options.batch || stopping ||
		jobs_count(JOB_READY) + jobs_count(JOB_RUNNING) == 0 ||
		first + REPORTS_DELAY <= now)
		return true;
	wake_at(first + REPORTS_DELAY);
	return false;
}

/* Returns whether the next report is to be alone. */
static bool
report_is_alone(void)
{
	for (Job *job = jobs_first(); job != NULL; job = job->next)
		if (is_reportable(job) && job->alone)
			return true;
	return false;
}

/* Returns the reports that are due as JSON. */
static char *
take_reports(bool alone)
{
	Buffer all = {0};
	int n = 0;

	for (Job *job = jobs_first(); job != NULL; job = job->next)
	{
		if (!is_reportable(job) || job->alone != alone || n == 1000)
			continue;
		buffer_put(&all, "%s", n++ == 0 ? "[" : ", ");
		job_put_report(&all, job);
		job_set_state(job, JOB_REPORTING);
		if (alone)
			break;
	}
	buffer_add(&all, "]", 1);
	return all.data;
}

/* Returns a call that reports, and claims if it can. */
static Call *
report_call(int tasks)
{
	bool alone = report_is_alone();
	bool claims = tasks > 0 && !alone && claims_with_reports();
	Call *call = call_new(claims ? SQL_RESOLVE_AND_CLAIM : SQL_RESOLVE, NULL,
						  report_done);

	call->parameters[0] = take_reports(alone);
	if (!claims)
		return call;
	call->parameters[1] = copy_text(options.queues[0]);
	call->parameters[2] = copy_text(options.group);
	call->parameters[3] = copy_text(options.id);
	call->parameters[4] = format_text("%d", tasks);
	call->parameters[5] = copy_text(options.claim_for);
	claiming = true;
	return call;
}

/* ---- what is said next ---- */

/* Returns the next call for an idle connection, or NULL. */
static Call *
next_call(Database *db)
{
	Call *call = first_call;
	bool claims = db == main_database && !claiming && now >= claim_at;
	int tasks = claims ? room() : 0;

	if (call != NULL)
	{
		first_call = call->next;
		call->next = NULL;
		return call;
	}
	if (!ready)
		return NULL;
	if (jobs_count(JOB_REPORTING) == 0 &&
		reports_are_due(tasks > 0 && claims_with_reports()))
		return report_call(tasks);
	if (db == main_database && room() > 0 && now < claim_at)
		wake_at(claim_at);
	if (tasks <= 0 || jobs_count(JOB_REPORTING) > 0)
		return NULL;
	return claim_call(tasks);
}

/* Returns whether a command runs for so long that the second must listen. */
static bool
something_lasts(void)
{
	bool lasts = false;

	for (Job *job = jobs_first(); job != NULL; job = job->next)
		if (job->state == JOB_RUNNING)
		{
			if (job->started + SECOND_AFTER <= now)
				lasts = true;
			else
				wake_at(job->started + SECOND_AFTER);
		}
	return lasts;
}

/* Opens the second connection when it is needed, and closes it when not. */
static void
keep_second(void)
{
	bool lasts = something_lasts();

	if (!ready)
		return;
	if (lasts || (database_is_taken(main_database) &&
				  (first_call != NULL || reports_are_due(false))))
		database_open(second_database);
	else if (jobs_first() == NULL &&
			 database_idle_since(second_database) != NEVER)
	{
		if (database_idle_since(second_database) + SECOND_IDLE <= now)
			database_close(second_database);
		else
			wake_at(database_idle_since(second_database) + SECOND_IDLE);
	}
	if (lasts && !listening && database_is_idle(second_database))
	{
		listening = true;
		database_send(second_database,
					  call_new(SQL_LISTEN, NULL, listen_done));
	}
}

/* Gives each idle connection what is to be said. */
void
calls_send(void)
{
	Database *each[] = {main_database, second_database};

	keep_second();
	for (int i = 0; i < 2; i++)
	{
		Call *call = database_is_idle(each[i]) ? next_call(each[i]) : NULL;

		if (call != NULL)
			database_send(each[i], call);
	}
}

/*
 * Something was taken from the worker; the payload says what, or is empty.  Any
 * role can send that, so the database is asked.
 */
void
calls_notified(const char *payload)
{
	for (Job *job = jobs_first(); job != NULL; job = job->next)
	{
		char *run = format_text("\"runId\": %s,", job->run_id);

		if (strstr(payload, job->task_id) != NULL &&
			strstr(payload, run) != NULL)
			job_doubt(job, payload);
		free(run);
	}
	if (*payload == '\0')
		jobs_doubt_all();
}
