/*
 * action.c
 *	  What can be done: calls of one statement, and the forms for them.
 *
 * A call that loses something is asked for once more, by a page that names it.
 * Arguments are parameters; a field that is empty is NULL.  What may be done, the
 * database decides.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define ARGUMENTS_MAX 6

typedef struct Call
{
	const char *name;
	const char *title;
	const char *sql;
	const char *arguments[ARGUMENTS_MAX]; /* fields, in order */
	const char *question;                 /* or NULL: it is done at once */
} Call;

static const Call calls[] = {
	{.name = "cancel_task",
	 .title = "Cancel task",
	 .sql = "SELECT tq.cancel_task($1)",
	 .arguments = {"task"},
	 .question =
		 "Its run is taken from the worker, and what depends on it may never "
		 "start."},
	{.name = "rerun_task",
	 .title = "Rerun task",
	 .sql =
		 "SELECT tq.rerun_task($1, $2::interval, coalesce($3::bool, false))",
	 .arguments = {"task", "deadline", "downstream"}},
	{.name = "schedule_task",
	 .title = "Schedule task",
	 .sql = "SELECT tq.schedule_task($1)",
	 .arguments = {"task"}},
	{.name = "skip_task",
	 .title = "Skip task",
	 .sql = "SELECT tq.skip_task($1, $2::jsonb)",
	 .arguments = {"task", "output"},
	 .question = "It becomes completed without being run."},
	{.name = "reschedule_task",
	 .title = "Change time of task",
	 .sql = "SELECT tq.reschedule_task($1, $2::timestamptz)",
	 .arguments = {"task", "at"}},
	{.name = "change_task_priority",
	 .title = "Change priority of task",
	 .sql = "SELECT tq.change_task_priority($1, $2)",
	 .arguments = {"task", "priority"}},
	{.name = "delete_task",
	 .title = "Delete task",
	 .sql = "SELECT tq.delete_task($1)",
	 .arguments = {"task"},
	 .question = "Its runs, artifacts and dead letter go with it."},
	{.name = "redrive",
	 .title = "Redrive dead letter",
	 .sql = "SELECT tq.redrive($1)",
	 .arguments = {"task"}},
	{.name = "discard_dead_letter",
	 .title = "Discard dead letter",
	 .sql = "SELECT tq.discard_dead_letter($1)",
	 .arguments = {"task"},
	 .question = "It cannot be redriven then."},
	{.name = "redrive_queue",
	 .title = "Redrive dead letters of queue",
	 .sql = "SELECT tq.redrive_queue($1)",
	 .arguments = {"queue"},
	 .question = "Up to 1,000 are tried again, in the order in which they "
				 "failed."},
	{.name = "retry_task_group",
	 .title = "Retry group",
	 .sql = "SELECT tq.retry_task_group($1, $2::interval)",
	 .arguments = {"group", "deadline"},
	 .question = "Its tasks that ended without success run again."},
	{.name = "cancel_task_group",
	 .title = "Cancel group",
	 .sql = "SELECT tq.cancel_task_group($1)",
	 .arguments = {"group"},
	 .question =
		 "All its unresolved tasks are canceled. It has to be sealed."},
	{.name = "seal_task_group",
	 .title = "Seal group",
	 .sql = "SELECT tq.seal_task_group($1)",
	 .arguments = {"group"},
	 .question = "It takes no more tasks then, for good."},
	{.name = "change_task_group_priority",
	 .title = "Change priority of group",
	 .sql = "SELECT tq.change_task_group_priority($1, $2)",
	 .arguments = {"group", "priority"}},
	{.name = "pause_queue",
	 .title = "Pause queue",
	 .sql = "SELECT tq.pause_queue($1)",
	 .arguments = {"queue"}},
	{.name = "resume_queue",
	 .title = "Resume queue",
	 .sql = "SELECT tq.resume_queue($1)",
	 .arguments = {"queue"}},
	{.name = "set_queue",
	 .title = "Change settings of queue",
	 .sql = "SELECT tq.set_queue($1, $2::jsonb)",
	 .arguments = {"queue", "settings"},
	 .question =
		 "Settings that are not named stay as they are; null takes one "
		 "back to its default."},
	{.name = "quarantine_worker",
	 .title = "Quarantine worker",
	 .sql = "SELECT tq.quarantine_worker($1, $2, $3, coalesce($4::timestamptz,"
			" now() + '1 day'), $5)",
	 .arguments = {"queue", "worker_group", "worker_id", "until", "why"},
	 .question = "It is given no runs for a day, or until the time that is "
				 "given; what it runs goes on."},
	{.name = "end_quarantine",
	 .title = "End quarantine",
	 .sql = "SELECT tq.quarantine_worker($1, $2, $3, now() - '1 s'::interval)",
	 .arguments = {"queue", "worker_group", "worker_id"}},
	{.name = "worker_removed",
	 .title = "Worker is gone",
	 .sql = "SELECT count(*) FROM tq.worker_removed($1, $2, $3, $4)",
	 .arguments = {"queue", "worker_group", "worker_id", "why"},
	 .question =
		 "Its runs end as worker-shutdown, and are retried elsewhere."},
	{.name = "run_cron_now",
	 .title = "Run now",
	 .sql = "SELECT tq.run_cron_now($1, $2)",
	 .arguments = {"name", "owner"}},
	{.name = "pause_cron",
	 .title = "Pause recurring task",
	 .sql = "SELECT tq.pause_cron($1, $2)",
	 .arguments = {"name", "owner"}},
	{.name = "resume_cron",
	 .title = "Resume recurring task",
	 .sql = "SELECT tq.resume_cron($1, $2)",
	 .arguments = {"name", "owner"}},
	{.name = "unschedule_cron",
	 .title = "End recurring task",
	 .sql = "SELECT tq.unschedule_cron($1, $2)",
	 .arguments = {"name", "owner"},
	 .question = "It fires no more; the tasks that it has created stay."},
	{.name = "unsubscribe",
	 .title = "End subscription",
	 .sql = "SELECT tq.unsubscribe($1)",
	 .arguments = {"name"},
	 .question = "What it has not fetched is lost to it."},
};

static const Call *
call_find(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(calls) / sizeof(calls[0]);
		 i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	return NULL;
}

/* Returns whether anything can be changed here. */
bool
action_is_possible(void)
{
	return !options.read_only && options.as == NULL;
}

/* Returns what was done before this page, in words, or NULL. */
const char *
action_done(const Page *page)
{
	const Call *call = call_find(page_query(page, "done"));

	return call == NULL ? NULL : call->title;
}

/* Returns whether a text leads to a page here, and nowhere else. */
bool
action_is_here(const char *url)
{
	if (url == NULL || url[0] != '/' || url[1] == '/' || url[1] == '\\')
		return false;
	for (const char *at = url; *at != '\0'; at++)
		if (iscntrl((unsigned char) *at) || *at == '\\' || *at == ' ')
			return false;
	return true;
}

/* Returns this page, to come back to. */
static char *
here_of(const Page *page)
{
	Buffer url = {0};
	char mark = '?';

	buffer_put(&url, "%s", page->path);
	for (int i = 0; i < page->query.n; i++)
		if (page->query.all[i].name[0] != '\0' &&
			strcmp(page->query.all[i].name, "done") != 0)
		{
			buffer_put(&url, "%c", mark);
			url_add(&url, page->query.all[i].name);
			buffer_put(&url, "=");
			url_add(&url, page->query.all[i].value);
			mark = '&';
		}
	return url.data;
}

static void
put_hidden(Page *page, const char *name, const char *value)
{
	if (value != NULL)
		html(page, "<input type=hidden name=\"%s\" value=\"%s\">", name,
			 value);
}

/* Returns whether a button says that it asks for more. */
static bool
is_asking(const char *label)
{
	size_t length = strlen(label);

	return length >= 3 && strcmp(label + length - 3, "…") == 0;
}

/*
 * A button for a call, with names and values of its arguments; one that ends in "…" asks
 * for the others.  It is not there where nothing can be changed.
 */
void
html_action(Page *page, const char *label, const char *name, ...)
{
	const Call *call = call_find(name);
	char *here = here_of(page);
	const char *argument;
	va_list arguments;

	if (call == NULL)
		abort();
	if (action_is_possible())
	{
		html_form(page, "/do", call->question != NULL || is_asking(label));
		put_hidden(page, "call", name);
		put_hidden(page, "back", here);
		va_start(arguments, name);
		while ((argument = va_arg(arguments, const char *)) != NULL)
			put_hidden(page, argument, va_arg(arguments, const char *));
		va_end(arguments);
		html(page, "<button>%s</button></form>", label);
	}
	free(here);
}

/*
 * A button for what tq.why() advises, if that is a call: it is asked for first.  The
 * advice has the beginning of a long name of a queue, so that one is given.
 */
void
html_advised(Page *page, const char *advice, const char *queue)
{
	char name[64];
	char argument[128];
	int length = 0;
	const Call *call;
	char *here;

	if (!action_is_possible() ||
		sscanf(advice, "SELECT tq.%63[a-z_]('%127[^']')%n", name, argument,
			   &length) != 2 ||
		length == 0 || advice[length] != '\0' ||
		(call = call_find(name)) == NULL)
		return;
	here = here_of(page);
	if (strcmp(call->arguments[0], "queue") == 0)
		snprintf(argument, sizeof(argument), "%s", queue);
	html_form(page, "/do", true);
	put_hidden(page, "call", name);
	put_hidden(page, "back", here);
	put_hidden(page, call->arguments[0], argument);
	if (strcmp(call->arguments[0], "task") == 0)
		argument[8] = '\0';
	html(page, "<button>%s <span class=mono>%s</span></button></form>",
		 call->title, argument);
	free(here);
}

/* ---- the question ---- */

static const char *
field_of_call(const Page *page, const char *name)
{
	return page->post ? page_form(page, name) : page_query(page, name);
}

static void
put_back(Page *page)
{
	const char *back = field_of_call(page, "back");

	if (action_is_here(back))
		html(page, "<p><a href=\"%s\">Back</a></p>", back);
}

/* What the call is about, with the fields that are given. */
static void
put_arguments(Page *page, const Call *call)
{
	html(page, "<dl class=facts>");
	for (int i = 0; i < ARGUMENTS_MAX && call->arguments[i] != NULL; i++)
	{
		const char *name = call->arguments[i];
		const char *value = field_of_call(page, name);

		if (value != NULL && *value != '\0')
			html(page, "<div%s><dt>%s</dt><dd class=mono>%s</dd></div>",
				 strlen(value) > 16 ? " class=wide" : "", name, value);
	}
	html(page, "</dl>");
}

/* What may be given to a call beside what its button gives. */
static const struct
{
	const char *name;
	const char *title;
	const char *example;
} inputs[] = {{"deadline", "New deadline, an interval from now", "1 day"},
			  {"downstream", "Also what depends on it: true or false",
			   "false"},
			  {"output", "Its result, in JSON", "{}"},
			  {"at", "New time, of UTC, or now", "2026-12-31 18:00"},
			  {"priority", "New priority", "high"},
			  {"settings", "Settings, in JSON", "{\"concurrentLimit\": 10}"},
			  {"until", "Until, of UTC", "2026-12-31 18:00"},
			  {"why", "Why", ""}};

static void
put_input(Page *page, size_t k, const char *value)
{
	html(page, "<p><label for=%s>%s</label>", inputs[k].name, inputs[k].title);
	if (strcmp(inputs[k].name, "priority") == 0)
		html_priorities(page, "priority", value);
	else
		html(page, "<input id=%s name=%s value=\"%s\" placeholder=\"%s\">",
			 inputs[k].name, inputs[k].name, value, inputs[k].example);
	html(page, "</p>");
}

/* Fields for the arguments that are not given. */
static void
put_inputs(Page *page, const Call *call)
{
	for (int i = 0; i < ARGUMENTS_MAX && call->arguments[i] != NULL; i++)
		for (size_t k = 0; k < sizeof(inputs) / sizeof(inputs[0]); k++)
		{
			const char *value = field_of_call(page, inputs[k].name);

			if (strcmp(inputs[k].name, call->arguments[i]) == 0 &&
				(page->post || value == NULL || *value == '\0'))
				put_input(page, k, value == NULL ? "" : value);
		}
}

/* What the fields of a form are, if they are none of its inputs. */
static bool
is_kept(const Page *page, const Call *call, const Field *field)
{
	if (strcmp(field->name, "token") == 0 || *field->name == '\0')
		return false;
	for (size_t k = 0; page->post && k < sizeof(inputs) / sizeof(inputs[0]);
		 k++)
		if (strcmp(inputs[k].name, field->name) == 0)
			for (int i = 0; i < ARGUMENTS_MAX && call->arguments[i] != NULL;
				 i++)
				if (strcmp(call->arguments[i], field->name) == 0)
					return false;
	return *field->value != '\0';
}

/* The form that does it, with what is given and what may be. */
static void
put_form(Page *page, const Call *call)
{
	const Fields *given = page->post ? &page->form : &page->query;

	html(page, "<form class=create method=post action=/do><input type=hidden "
			   "name=token value=\"");
	buffer_put(&page->body, "%c", TOKEN_MARK);
	html(page, "\">");
	for (int i = 0; i < given->n; i++)
		if (is_kept(page, call, &given->all[i]))
			put_hidden(page, given->all[i].name, given->all[i].value);
	put_inputs(page, call);
	html(page, "<button class=danger>%s</button></form>", call->title);
}

/* GET /do?call=cancel_task&task=...: asks, and does nothing. */
void
page_do(Page *page)
{
	const Call *call = call_find(page_query(page, "call"));

	if (call == NULL || !action_is_possible())
	{
		page->status = MHD_HTTP_NOT_FOUND;
		page_title(page, "Not found");
		html_empty(page, "There is no such action here.", NULL);
		return;
	}
	page_title(page, "%s?", call->title);
	put_arguments(page, call);
	if (call->question != NULL)
		html_notice(page, "warning", "%s", call->question);
	put_form(page, call);
	put_back(page);
}

/* ---- the call ---- */

/* Shows what the database says against it. */
static void
refuse(Page *page, const Call *call)
{
	page->status = strcmp(page->state, "TQ403") == 0   ? MHD_HTTP_FORBIDDEN
				   : strcmp(page->state, "TQ404") == 0 ? MHD_HTTP_NOT_FOUND
													   : MHD_HTTP_CONFLICT;
	page_title(page, "%s: not done", call->title);
	html_error(page);
	put_arguments(page, call);
	put_form(page, call);
	put_back(page);
}

/* POST /do. */
void
act_do(Page *page)
{
	const Call *call = call_find(page_form(page, "call"));
	const char *back = page_form(page, "back");
	const char *values[ARGUMENTS_MAX] = {0};
	int n = 0;
	PGresult *done;

	if (call == NULL)
	{
		page_do(page);
		return;
	}
	for (; n < ARGUMENTS_MAX && call->arguments[n] != NULL; n++)
	{
		values[n] = page_form(page, call->arguments[n]);
		if (values[n] != NULL && *values[n] == '\0')
			values[n] = NULL;
	}
	done = database_call(page, call->sql, n, values);
	if (done == NULL)
	{
		refuse(page, call);
		return;
	}
	PQclear(done);
	log_line(LOG_INFO, NULL, "role %s from %s: %s %s", page->role,
			 page->client, call->name, values[0] == NULL ? "" : values[0]);
	page_redirect(page, url_of(action_is_here(back) ? back : "/", "done",
							   call->name, NULL));
}
