/*
 * jobs.c
 *	  Actions on many tasks: all that a filter finds, or rows that were ticked.
 *
 * First a dry run says how many there are, by queue and state.  What is confirmed is
 * done by a thread of its own, over one of the role's connections, and at most on as
 * many tasks; it can be stopped, and what is done stays done.  The list of jobs has a
 * lock, under which nothing is waited for.  A stop is a mark on the page of the thread,
 * which sees it before each statement and while one runs: so none begins after it, and
 * one that has begun is interrupted until it ends.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "web.h"

#define JOBS_MAX 64
#define RUNNING_MAX 8
#define REASONS_MAX 8

typedef struct Kind
{
	const char *name; /* of tq.apply() */
	const char *title;
	const char *argument; /* its key, or NULL */
	const char *sql;      /* for one task; NULL: there is none */
} Kind;

static const Kind kinds[] = {
	{"cancel", "Cancel", NULL, "SELECT tq.cancel_task($1)"},
	{"rerun", "Rerun", "deadline", "SELECT tq.rerun_task($1, $2::interval)"},
	{"schedule", "Schedule", NULL, "SELECT tq.schedule_task($1)"},
	{"priority", "Change priority of", "priority",
	 "SELECT tq.change_task_priority($1, $2)"},
	{"move", "Move", "queue", NULL},
	{"delay", "Delay", "until",
	 "SELECT tq.reschedule_task($1, $2::timestamptz)"},
	{"redrive", "Redrive", NULL, "SELECT tq.redrive($1)"},
	{"discard", "Discard dead letters of", NULL,
	 "SELECT tq.discard_dead_letter($1)"},
	{"delete", "Delete", NULL, "SELECT tq.delete_task($1)"},
	{"expire", "Expire", NULL, NULL},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

typedef enum JobPhase
{
	PHASE_RUNNING,
	PHASE_STOPPED,
	PHASE_FAILED,
	PHASE_DONE
} JobPhase;

/* A reason why tasks were left, and how many. */
typedef struct Refusal
{
	char *reason;
	long n;
} Refusal;

typedef struct Work
{
	struct Work *next;
	char id[TOKEN_LENGTH];
	const Kind *kind;
	char *filter;
	Fields picked; /* if there is no filter */
	int npicked;
	char *argument;
	char *back;
	long total;
	Page *page; /* the role and the connection, while it runs */
	char role[ROLE_LENGTH];
	pthread_t thread;
	JobPhase phase;
	bool is_stopping;
	bool is_joined;
	time_t began;
	time_t ended;
	char progress[300];
	long done;
	Refusal refused[REASONS_MAX];
	char error[600];
} Work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Work *works;

static const Kind *
kind_find(const char *name)
{
	for (size_t i = 0; name != NULL && i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static void
put_tasks(Page *page, double n)
{
	html_count(page, n);
	html(page, n == 1 ? " task" : " tasks");
}

/* ---- the form ---- */

/*
 * Actions on the ticked rows of a table, and on all that the filter finds; filter is
 * JSON.  The boxes of the table belong to this form.  With a list of actions, there are
 * no others.
 */
void
html_bulk(Page *page, const char *table, const char *filter, const char *only)
{
	if (!action_is_possible())
		return;
	html(page,
		 "<form class=bulk id=\"%s-form\" method=post action=/bulk>"
		 "<input type=hidden name=token value=\"",
		 table);
	buffer_put(&page->body, "%c", TOKEN_MARK);
	html(page,
		 "\"><input type=hidden name=filter value=\"%s\"><input type=hidden "
		 "name=back value=\"%s",
		 filter, page->path);
	if (page->query_text != NULL && *page->query_text != '\0')
		html(page, "?%s", page->query_text);
	html(page,
		 "\"><label for=\"%s-action\">Action</label> <select "
		 "id=\"%s-action\" name=action>",
		 table, table);
	for (size_t i = 0; i < KINDS; i++)
		if (only == NULL || strstr(only, kinds[i].name) != NULL)
			html(page, "<option value=\"%s\">%s tasks</option>", kinds[i].name,
				 kinds[i].title);
	html(page, "</select><button name=on value=picked>Selected rows …</button>"
			   "<button name=on value=filter>All that the filter finds "
			   "…</button></form>");
}

/* A button for one action on all that a filter finds; a dry run comes first. */
void
html_bulk_button(Page *page, const char *label, const char *action,
				 const char *filter)
{
	if (!action_is_possible())
		return;
	html_form(page, "/bulk", false);
	html(page,
		 "<input type=hidden name=filter value=\"%s\"><input type=hidden "
		 "name=action value=\"%s\"><input type=hidden name=on value=filter>"
		 "<input type=hidden name=back value=\"%s",
		 filter, action, page->path);
	if (page->query_text != NULL && *page->query_text != '\0')
		html(page, "?%s", page->query_text);
	html(page, "\"><button>%s</button></form>", label);
}

/* ---- the dry run ---- */

static char *
picked_array(const Page *page, int *n)
{
	Buffer array = {0};

	*n = 0;
	buffer_put(&array, "{");
	for (int i = 0; i < page->form.n; i++)
		if (strcmp(page->form.all[i].name, "pick") == 0)
		{
			const char *id = page->form.all[i].value;

			if (strlen(id) > 40 || strpbrk(id, "{},\"\\ ") != NULL)
				continue;
			buffer_put(&array, "%s%s", (*n)++ > 0 ? "," : "", id);
		}
	buffer_put(&array, "}");
	return array.data;
}

/* Has tq.apply() count what a filter finds. */
static PGresult *
count_found(Page *page)
{
	const char *values[] = {page_form(page, "filter")};
	PGresult *found;
	PGresult *rows = NULL;

	page->is_long = true;
	found = database_query(page,
						   "CALL tq.apply($1::jsonb, 'cancel', '{}', true)", 1,
						   values);
	if (found != NULL)
	{
		values[0] = row_get(found, 0, "found");
		rows = database_query(page,
							  "SELECT q.key AS task_queue_id, s.key AS state,"
							  " s.value::bigint AS tasks FROM"
							  " jsonb_each($1::jsonb) AS q,"
							  " jsonb_each_text(q.value) AS s",
							  1, values);
	}
	PQclear(found);
	return rows;
}

/* Counts the rows that are ticked. */
static PGresult *
count_picked(Page *page)
{
	int n;
	char *ids = picked_array(page, &n);
	const char *values[] = {ids};
	PGresult *rows = database_query(
		page,
		"SELECT task_queue_id, state, count(*) AS tasks FROM tq.task_overview"
		" WHERE task_id = ANY ($1::tq.slugid[]) GROUP BY 1, 2 ORDER BY 1, 2",
		1, values);

	free(ids);
	return rows;
}

static void
put_counts(Page *page, const PGresult *rows)
{
	html(page, "<div class=scroll><table><thead><tr><th scope=col>Queue</th>"
			   "<th scope=col>State</th><th scope=col class=n>Tasks</th></tr>"
			   "</thead><tbody>");
	for (int row = 0; row < PQntuples(rows); row++)
	{
		html(page, "<tr><th scope=row>%s</th><td>",
			 row_get(rows, row, "task_queue_id"));
		html_state(page, row_get(rows, row, "state"));
		html(page, "</td><td class=n>");
		html_count(page, row_number(rows, row, "tasks"));
		html(page, "</td></tr>");
	}
	html(page, "</tbody></table></div>");
}

/* The field of an action that needs to know more. */
static void
put_argument(Page *page, const Kind *kind)
{
	if (kind->argument == NULL)
		return;
	html(page, "<p><label for=argument>%s</label> ",
		 strcmp(kind->argument, "until") == 0      ? "Until (UTC)"
		 : strcmp(kind->argument, "deadline") == 0 ? "New deadline, as 1 day"
		 : strcmp(kind->argument, "queue") == 0    ? "To queue"
												   : "Priority");
	if (strcmp(kind->argument, "priority") == 0)
	{
		html_priorities(page, "argument", "");
		html(page, "</p>");
		return;
	}
	html(page, "<input id=argument name=argument type=%s%s></p>",
		 strcmp(kind->argument, "until") == 0 ? "datetime-local" : "text",
		 strcmp(kind->argument, "deadline") == 0 ? "" : " required");
}

/* One confirmation, which names the count. */
static void
put_confirmation(Page *page, const Kind *kind, bool picked, double total)
{
	char count[32];

	snprintf(count, sizeof(count), "%.0f", total);
	html_form(page, "/bulk", false);
	html(page,
		 "<input type=hidden name=action value=\"%s\"><input type=hidden "
		 "name=count value=\"%s\"><input type=hidden name=back "
		 "value=\"%s\">",
		 kind->name, count, page_form(page, "back"));
	for (int i = 0; picked && i < page->form.n; i++)
		if (strcmp(page->form.all[i].name, "pick") == 0)
			html(page, "<input type=hidden name=pick value=\"%s\">",
				 page->form.all[i].value);
	html(page, "<input type=hidden name=on value=%s>",
		 picked ? "picked" : "filter");
	if (!picked)
		html(page, "<input type=hidden name=filter value=\"%s\">",
			 page_form(page, "filter"));
	put_argument(page, kind);
	html(page, "<button class=danger>%s ", kind->title);
	put_tasks(page, total);
	html(page, "</button></form>");
}

static void
put_return(Page *page, const char *back)
{
	if (action_is_here(back))
		html(page, "<p><a href=\"%s\">Back</a></p>", back);
}

/* What would be done. */
static void
show_dry_run(Page *page, const Kind *kind, bool picked)
{
	PGresult *rows = picked ? count_picked(page) : count_found(page);
	double total = 0;

	if (rows == NULL)
	{
		page_title(page, "%s: not done", kind->title);
		html_error(page);
		put_return(page, page_form(page, "back"));
		return;
	}
	for (int row = 0; row < PQntuples(rows); row++)
		total += row_number(rows, row, "tasks");
	page_title(page, "%s tasks?", kind->title);
	if (total == 0)
		html_empty(page, "There is no such task",
				   "Tick rows, or take another "
				   "filter.");
	else
	{
		html(page,
			 "<p>These would be asked to. Each that the rules or the "
			 "rights of %s refuse is left, and counted.</p>",
			 page->role);
		put_counts(page, rows);
		html(page, "<div class=buttons>");
		put_confirmation(page, kind, picked, total);
		html(page, "</div>");
	}
	put_return(page, page_form(page, "back"));
	PQclear(rows);
}

/* ---- the work ---- */

/* tq.apply() says once a second how far it has come. */
static void
take_notice(void *subject, const PGresult *result)
{
	Work *work = subject;
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	pthread_mutex_lock(&lock);
	snprintf(work->progress, sizeof(work->progress), "%s",
			 text == NULL ? "" : text);
	pthread_mutex_unlock(&lock);
	live_nudge();
}

/* Counts a reason; those beyond the first few are one. */
static void
count_refusal(Work *work, const char *reason, long n)
{
	int i = 0;

	while (i < REASONS_MAX - 1 && work->refused[i].reason != NULL &&
		   strcmp(work->refused[i].reason, reason) != 0)
		i++;
	if (work->refused[i].reason == NULL)
		work->refused[i].reason = copy_text(
			i == REASONS_MAX - 1 ? "other reasons" : reason);
	work->refused[i].n += n;
}

/* Takes the outcome of tq.apply(). */
static void
take_outcome(Work *work, PGresult *done)
{
	const char *values[] = {row_get(done, 0, "refused")};
	PGresult *rows = database_query(
		work->page,
		"SELECT key, value FROM jsonb_each_text($1::jsonb) ORDER"
		" BY value::bigint DESC",
		1, values);

	pthread_mutex_lock(&lock);
	work->done = (long) row_number(done, 0, "tasks");
	for (int row = 0; rows != NULL && row < PQntuples(rows); row++)
		count_refusal(work, PQgetvalue(rows, row, 0),
					  atol(PQgetvalue(rows, row, 1)));
	pthread_mutex_unlock(&lock);
	PQclear(rows);
}

/* Calls tq.apply(); false: it has failed, or was stopped. */
static bool
apply_filter(Work *work)
{
	char count[24];
	Buffer arguments = {0};
	const char *values[] = {work->filter, work->kind->name, NULL, count};
	PGresult *done;

	snprintf(count, sizeof(count), "%ld", work->total);
	buffer_put(&arguments, "{");
	if (work->argument != NULL)
	{
		json_put_text(&arguments, work->kind->argument);
		buffer_put(&arguments, ": ");
		json_put_text(&arguments, work->argument);
	}
	buffer_put(&arguments, "}");
	values[2] = arguments.data;
	done = database_call(work->page,
						 "CALL tq.apply($1::jsonb, $2, $3::jsonb, false,"
						 " $4::bigint)",
						 4, values);
	buffer_free(&arguments);
	if (done != NULL)
		take_outcome(work, done);
	PQclear(done);
	return done != NULL;
}

static bool
is_to_stop(const Work *work)
{
	return __atomic_load_n(&work->is_stopping, __ATOMIC_RELAXED);
}

/* Calls the function for each task that was ticked. */
static bool
apply_picked(Work *work)
{
	for (int i = 0, n = 0; i < work->picked.n && !is_to_stop(work); i++)
	{
		const char *values[] = {work->picked.all[i].value, work->argument};
		PGresult *done;

		if (strcmp(work->picked.all[i].name, "pick") != 0)
			continue;
		done = database_call(work->page, work->kind->sql,
							 work->kind->argument == NULL ? 1 : 2, values);
		if (done == NULL &&
			(is_to_stop(work) || work->page->error == NULL ||
			 PQstatus(work->page->connection) != CONNECTION_OK))
			return false; /* it was not refused */
		pthread_mutex_lock(&lock);
		if (done != NULL)
			work->done++;
		else
			count_refusal(work, work->page->error, 1);
		snprintf(work->progress, sizeof(work->progress), "%d of %d", ++n,
				 work->npicked);
		pthread_mutex_unlock(&lock);
		PQclear(done);
		live_nudge();
	}
	return !is_to_stop(work);
}

static void *
do_work(void *subject)
{
	Work *work = subject;
	Page *page = work->page;
	bool good;

	page->is_long = true;
	if (database_ready(page))
		PQsetNoticeReceiver(page->connection, take_notice, work);
	good = work->filter != NULL ? apply_filter(work) : apply_picked(work);
	pthread_mutex_lock(&lock);
	work->phase = good                ? PHASE_DONE
				  : work->is_stopping ? PHASE_STOPPED
									  : PHASE_FAILED;
	if (work->phase == PHASE_FAILED)
		snprintf(work->error, sizeof(work->error), "%s %s",
				 page->error == NULL ? "" : page->error,
				 page->detail == NULL ? "" : page->detail);
	work->ended = time(NULL);
	work->page = NULL;
	pthread_mutex_unlock(&lock);
	database_give(page);
	log_line(LOG_INFO, NULL, "role %s: %s: %ld tasks", work->role,
			 work->kind->name, work->done);
	page_free(page);
	http_nudge();
	live_nudge();
	return NULL;
}

/* ---- the list ---- */

static void
free_work(Work *work)
{
	if (!work->is_joined)
		pthread_join(work->thread, NULL);
	for (int i = 0; i < REASONS_MAX; i++)
		free(work->refused[i].reason);
	fields_free(&work->picked);
	free(work->filter);
	free(work->argument);
	free(work->back);
	free(work);
}

/* Takes the oldest that has ended from a list that is full; with the lock held. */
static Work *
unlink_oldest(void)
{
	Work **oldest = NULL;
	Work *work;
	int n = 0;

	for (Work **at = &works; *at != NULL; at = &(*at)->next, n++)
		if ((*at)->phase != PHASE_RUNNING)
			oldest = at; /* new ones are first */
	if (n <= JOBS_MAX || oldest == NULL)
		return NULL;
	work = *oldest;
	*oldest = work->next;
	return work;
}

static int
count_running(void)
{
	int n = 0;

	for (Work *work = works; work != NULL; work = work->next)
		n += work->phase == PHASE_RUNNING;
	return n;
}

static Work *
work_find(const Page *page, const char *id)
{
	for (Work *work = works; id != NULL && work != NULL; work = work->next)
		if (strcmp(work->id, id) == 0 && strcmp(work->role, page->role) == 0)
			return work;
	return NULL;
}

/* Makes of a confirmation what is to be done. */
static Work *
work_of(Page *page, const Kind *kind, bool picked)
{
	Work *work = allocate(sizeof(Work));
	const char *argument = page_form(page, "argument");

	session_token(work->id);
	work->kind = kind;
	work->total = strtol(page_form(page, "count"), NULL, 10);
	strcpy(work->role, page->role);
	work->back = copy_text(page_form(page, "back"));
	work->began = time(NULL);
	if (argument != NULL && *argument != '\0' && kind->argument != NULL)
		work->argument =
			format_text("%s%s", argument,
						strcmp(kind->argument, "until") == 0 ? "Z" : "");
	if (!picked)
		work->filter = copy_text(page_form(page, "filter"));
	else
	{
		free(picked_array(page, &work->npicked));
		work->picked = page->form;
		memset(&page->form, 0, sizeof(page->form));
	}
	work->page = page_new();
	work->page->access = page->access;
	strcpy(work->page->role, page->role);
	database_keep(page->access);
	return work;
}

/* Begins it, if a connection can be spared; false: none can. */
static bool
begin_work(Work *work)
{
	Work *old;
	bool good;

	pthread_mutex_lock(&lock);
	good = count_running() < RUNNING_MAX && database_take(work->page);
	if (good)
	{
		good = pthread_create(&work->thread, NULL, do_work, work) == 0;
		if (!good)
			abort();
		work->next = works;
		works = work;
	}
	old = unlink_oldest();
	pthread_mutex_unlock(&lock);
	if (old != NULL)
		free_work(old);
	return good;
}

/* POST /bulk: a dry run; with the count, what it stands for. */
void
act_bulk(Page *page)
{
	const Kind *kind = kind_find(page_form(page, "action"));
	const char *on = page_form(page, "on");
	bool picked = on != NULL && strcmp(on, "picked") == 0;
	Work *work;
	char *url;

	if (kind == NULL || (!picked && page_form(page, "filter") == NULL) ||
		(picked && kind->sql == NULL))
	{
		page->status = MHD_HTTP_BAD_REQUEST;
		page_title(page, "Not done");
		html_empty(page, "This action is for all that a filter finds.", NULL);
		put_return(page, page_form(page, "back"));
		return;
	}
	if (page_form(page, "count") == NULL)
	{
		show_dry_run(page, kind, picked);
		return;
	}
	work = work_of(page, kind, picked);
	url = url_of("/job", "id", work->id, NULL);
	if (begin_work(work))
	{
		page_redirect(page, url);
		return;
	}
	free(url);
	page_free(work->page);
	work->is_joined = true;
	free_work(work);
	page->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	page_title(page, "Not done");
	html_empty(page, "Others are being done: try again when they have ended.",
			   NULL);
}

/* ---- the page of one ---- */

static void
put_work(Page *page, const Work *work)
{
	switch (work->phase)
	{
		case PHASE_RUNNING:
			html_notice(page, "info", "Under way for %ld s. %s",
						(long) (time(NULL) - work->began), work->progress);
			break;
		case PHASE_STOPPED:
			html_notice(page, "warning",
						"It was stopped. What was done stays done. %s",
						work->progress);
			break;
		case PHASE_FAILED:
			html_notice(page, "error", "It has failed: %s", work->error);
			break;
		case PHASE_DONE:
			html_notice(page, "good", "Done in %ld s.",
						(long) (work->ended - work->began));
			break;
	}
	html(page, "<dl class=facts><div><dt>Confirmed</dt><dd>");
	html_count(page, work->total);
	html(page, "</dd></div><div><dt>Done</dt><dd>");
	html_count(page, work->done);
	html(page, "</dd></div></dl>");
	if (work->refused[0].reason != NULL)
		html(page, "<h2>Refused</h2><ul>");
	for (int i = 0; i < REASONS_MAX && work->refused[i].reason != NULL; i++)
	{
		html(page, "<li>");
		html_count(page, work->refused[i].n);
		html(page, ": %s</li>", work->refused[i].reason);
	}
	if (work->refused[0].reason != NULL)
		html(page, "</ul>");
	if (work->phase == PHASE_RUNNING)
	{
		html(page, "<div class=buttons>");
		html_form(page, "/job", false);
		html(page,
			 "<input type=hidden name=id value=\"%s\"><button>Stop</button>"
			 "</form></div>",
			 work->id);
	}
}

/* /job?id=...: how far it is. */
void
page_job(Page *page)
{
	Work *work;

	page_title(page, "Action");
	pthread_mutex_lock(&lock);
	work = work_find(page, page_query(page, "id"));
	if (work == NULL)
	{
		page->status = MHD_HTTP_NOT_FOUND;
		html_empty(page, "There is no such action",
				   "It may have ended long "
				   "ago.");
	}
	else
	{
		page_title(page, "%s tasks", work->kind->title);
		region_begin(page, "job");
		put_work(page, work);
		region_end(page);
		if (work->filter != NULL)
			html_json(page, work->filter);
		put_return(page, work->back);
		page->refreshes = work->phase == PHASE_RUNNING;
	}
	pthread_mutex_unlock(&lock);
}

/* Has it stop; with the lock held. */
static void
stop(Work *work)
{
	__atomic_store_n(&work->is_stopping, true, __ATOMIC_RELAXED);
	if (work->page != NULL)
		__atomic_store_n(&work->page->is_stopped, true, __ATOMIC_RELAXED);
}

/* POST /job: stops it. */
void
act_job(Page *page)
{
	const char *id = page_form(page, "id");
	Work *work;

	pthread_mutex_lock(&lock);
	work = work_find(page, id);
	if (work != NULL && work->phase == PHASE_RUNNING)
		stop(work);
	pthread_mutex_unlock(&lock);
	page_redirect(page, url_of("/job", "id", id, NULL));
}

/* Stops all, when the program ends. */
void
jobs_stop(void)
{
	pthread_mutex_lock(&lock);
	for (Work *work = works; work != NULL; work = work->next)
		stop(work);
	pthread_mutex_unlock(&lock);
	while (works != NULL)
	{
		Work *work = works;

		works = work->next;
		free_work(work);
	}
}
