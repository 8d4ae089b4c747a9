/*
 * page_task.c
 *	  A task: why it does not move, what it is, its runs, and what it waits for.
 *
 * Credentials are in none of what is read here.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

static const Column fact_columns[] =
	{{.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "task_id", .title = "Task", .kind = COLUMN_ID},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "task_group_id",
	  .title = "Group",
	  .kind = COLUMN_ID,
	  .link = "/group?id={task_group_id}"},
	 {.name = "worker",
	  .title = "Worker",
	  .kind = COLUMN_TEXT,
	  .link = "/worker?queue={task_queue_id}&group={worker_group}&id="
			  "{worker_id}"},
	 {.name = "priority", .title = "Priority", .kind = COLUMN_TEXT},
	 {.name = "attempt", .title = "Attempt", .kind = COLUMN_COUNT},
	 {.name = "unmet",
	  .title = "Waits for tasks",
	  .kind = COLUMN_COUNT,
	  .hint = "dependencies that are not met"},
	 {.name = "created", .title = "Created", .kind = COLUMN_TIME},
	 {.name = "scheduled", .title = "Scheduled", .kind = COLUMN_TIME},
	 {.name = "visible_at", .title = "Not before", .kind = COLUMN_TIME},
	 {.name = "started", .title = "Started", .kind = COLUMN_TIME},
	 {.name = "taken_until", .title = "Claimed until", .kind = COLUMN_TIME},
	 {.name = "resolved", .title = "Resolved", .kind = COLUMN_TIME},
	 {.name = "deadline", .title = "Deadline", .kind = COLUMN_TIME},
	 {.name = "expires", .title = "Expires", .kind = COLUMN_TIME},
	 {.name = "scheduler", .title = "Scheduler", .kind = COLUMN_TEXT},
	 {.name = "project", .title = "Project", .kind = COLUMN_TEXT},
	 {.name = "tags", .title = "Tags", .kind = COLUMN_JSON},
	 {.name = "routes", .title = "Routes", .kind = COLUMN_TEXT},
	 {.name = "scopes", .title = "Scopes", .kind = COLUMN_TEXT},
	 {.name = "policy", .title = "Policy", .kind = COLUMN_JSON},
	 {.name = "name", .kind = COLUMN_NONE},
	 {.name = "worker_group", .kind = COLUMN_NONE},
	 {.name = "worker_id", .kind = COLUMN_NONE},
	 {.name = "error_text", .kind = COLUMN_NONE},
	 {.name = "result_text", .kind = COLUMN_NONE},
	 {.name = "payload_text", .kind = COLUMN_NONE},
	 {.name = "is_dead", .kind = COLUMN_NONE},
	 {.name = NULL}};

#define FACTS                                                                 \
	"SELECT d.*, coalesce(d.reason_resolved, d.reason_created) AS reason,"    \
	" nullif(d.scheduler_id, '-') AS scheduler, nullif(d.project_id, 'none')" \
	" AS project,"                                                            \
	" d.worker_group || '/' || d.worker_id AS worker, jsonb_pretty(d.error)"  \
	" AS error_text, jsonb_pretty(d.result) AS result_text,"                  \
	" jsonb_pretty(d.payload) AS payload_text, EXISTS (SELECT FROM"           \
	" tq.dead_letter_overview AS l WHERE l.task_id = d.task_id) AS is_dead"   \
	" FROM tq.task_details AS d"                                              \
	" WHERE d.task_id = $1"

static const Column run_columns[] = {
	{.name = "run", .title = "Run", .kind = COLUMN_TEXT},
	{.name = "state", .title = "State", .kind = COLUMN_STATE},
	{.name = "reason_created", .title = "Created for", .kind = COLUMN_TEXT},
	{.name = "reason_resolved", .title = "Ended as", .kind = COLUMN_TEXT},
	{.name = "worker", .title = "Worker", .kind = COLUMN_TEXT},
	{.name = "scheduled", .title = "Scheduled", .kind = COLUMN_TIME},
	{.name = "waited", .title = "Waited", .kind = COLUMN_DURATION},
	{.name = "ran", .title = "Ran", .kind = COLUMN_DURATION},
	{.name = "resolved", .title = "Resolved", .kind = COLUMN_TIME},
	{.name = "progress", .title = "Progress", .kind = COLUMN_TEXT},
	{.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	{.name = "result", .title = "Result", .kind = COLUMN_JSON, .hidden = true},
	{.name = NULL}};

static const Table run_table = {
	.id = "runs",
	.caption = "Runs",
	.sql = "SELECT run_id AS run, state, reason_created,"
		   " reason_resolved, worker_group || '/' || worker_id AS worker,"
		   " scheduled, started - greatest(scheduled, visible_at) AS waited,"
		   " coalesce(resolved, now()) - started AS ran, resolved,"
		   " concat_ws(' ', done || ' of ' || total, message) AS progress,"
		   " coalesce(error ->> 'message', error #>> '{}') AS error, result"
		   " FROM tq.run_overview WHERE task_id = $1",
	.columns = run_columns,
	.sort = "run",
	.limit = 100,
	.empty = "It has not run",
};

static const Column artifact_columns[] =
	{{.name = "name",
	  .title = "Artifact",
	  .kind = COLUMN_TEXT,
	  .link = "/artifact?id={task_id}&run={run_id}&name={name}"},
	 {.name = "run_id", .title = "Run", .kind = COLUMN_COUNT},
	 {.name = "storage_type", .title = "Storage", .kind = COLUMN_TEXT},
	 {.name = "content_type", .title = "Type", .kind = COLUMN_TEXT},
	 {.name = "content_length", .title = "Bytes", .kind = COLUMN_COUNT},
	 {.name = "expires", .title = "Expires", .kind = COLUMN_TIME},
	 {.name = "task_id", .kind = COLUMN_NONE},
	 {.name = NULL}};

static const Table artifact_table = {
	.id = "artifacts",
	.caption = "Artifacts",
	.sql = "SELECT a.*, r.task_id FROM tq.run_overview AS r CROSS JOIN LATERAL"
		   " tq.list_artifacts(r.task_id, r.run_id, max => 100) AS a WHERE"
		   " r.task_id = $1",
	.columns = artifact_columns,
	.sort = "-run_id",
	.limit = 100,
	.empty = "Its runs have left no artifact",
};

static const Column link_columns[] =
	{{.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "name",
	  .title = "Name",
	  .kind = COLUMN_TEXT,
	  .link = "/task?id={task_id}"},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "met", .title = "met", .kind = COLUMN_FLAG},
	 {.name = NULL}};

static const Table required_table = {
	.id = "required",
	.caption = "Tasks that it depends on",
	.sql = "SELECT required_task_id AS task_id, required_name AS name, state,"
		   " met FROM tq.dependency_overview WHERE task_id = $1",
	.columns = link_columns,
	.sort = "state",
	.limit = 100,
	.empty = "It depends on no task",
};

static const Table dependent_table = {
	.id = "dependents",
	.caption = "Tasks that depend on it",
	.sql = "SELECT task_id, task #>> '{metadata,name}' AS name,"
		   " status ->> 'state' AS state, NULL::bool AS met FROM"
		   " tq.list_dependent_tasks($1, max => 101)",
	.columns = link_columns,
	.sort = "state",
	.limit = 100,
	.empty = "No task depends on it",
};

static const Column message_columns[] =
	{{.name = "id",
	  .title = "Id",
	  .kind = COLUMN_COUNT,
	  .link = "/message?id={id}"},
	 {.name = "published", .title = "Published", .kind = COLUMN_TIME},
	 {.name = "exchange", .title = "Exchange", .kind = COLUMN_TEXT},
	 {.name = "run", .title = "Run", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Table message_table = {
	.id = "messages",
	.caption = "Messages",
	.sql = "SELECT id, published, exchange, payload ->> 'runId' AS run FROM"
		   " tq.messages(pattern => 'primary.' || $1 || '.#', after => -1000)",
	.columns = message_columns,
	.sort = "id",
	.limit = 100,
	.empty = "The last 1,000 messages have none of it",
};

/* Where what tq.why() speaks of is shown. */
static const struct
{
	const char *word;
	const char *title;
	const char *path;
} places[] = {{"tq.health()", "Health", "/health"},
			  {"tq.failure_overview", "Failures", "/failures"},
			  {"quarantine_worker()", "Workers", "/workers"},
			  {"set_queue()", "The queue", "/queue"},
			  {"concurrentLimit", "The queue", "/queue"},
			  {"rateCount", "The queue", "/queue"},
			  {"correct queue", "The queue", "/queue"}};

/* Leads to another task, or to the page of what is spoken of. */
static void
put_place(Page *page, const char *advice, const char *queue)
{
	char id[32];
	char *url;

	if (sscanf(advice, "SELECT * FROM tq.why('%31[^']')", id) == 1)
	{
		url = url_of("/task", "id", id, NULL);
		html(page, "<a class=button href=\"%s\">Why that one</a>", url);
		free(url);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strstr(advice, places[i].word) != NULL)
		{
			url = url_of(places[i].path, "name",
						 strcmp(places[i].path, "/queue") == 0 ? queue : NULL,
						 NULL);
			html(page, "<a class=button href=\"%s\">%s</a>", url,
				 places[i].title);
			free(url);
			return;
		}
}

/* Returns how a reason of why() is shown: some are as it should be. */
static const char *
kind_of_reason(const char *reason)
{
	static const char *const usual[] = {"claimed", "next", "behind others",
										"delayed"};

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (strcmp(reason, usual[i]) == 0)
			return "info";
	return strcmp(reason, "completed") == 0 ? "good" : "warning";
}

/* What why() says: the reason, and what to do, with a button for that. */
static void
show_why(Page *page, const char *const *values, const char *queue)
{
	PGresult *why = database_query(page, "SELECT * FROM tq.why($1)", 1,
								   values);

	if (why == NULL)
		html_error(page);
	for (int i = 0; why != NULL && i < PQntuples(why); i++)
	{
		const char *reason = row_get(why, i, "reason");
		const char *detail = row_get(why, i, "detail");
		const char *advice = row_get(why, i, "advice");

		html(page, "<div class=\"notice %s\" role=status><p>%s%s%s</p>",
			 kind_of_reason(reason == NULL ? "" : reason),
			 reason == NULL ? "" : reason, detail == NULL ? "" : ": ",
			 detail == NULL ? "" : detail);
		if (advice != NULL)
		{
			html(page, "<div class=advice><span class=quiet>%s</span>",
				 advice);
			html_advised(page, advice, queue);
			put_place(page, advice, queue);
			html(page, "</div>");
		}
		html(page, "</div>");
	}
	PQclear(why);
}

/* What may be of use in its state; the database decides. */
static void
show_buttons(Page *page, const char *id, const PGresult *row)
{
	const char *state = row_get(row, 0, "state");
	bool is_over = strcmp(state, "completed") == 0 ||
				   strcmp(state, "failed") == 0 ||
				   strcmp(state, "exception") == 0;

	html(page, "<div class=buttons>");
	if (is_over)
	{
		html_action(page, "Rerun", "rerun_task", "task", id, NULL);
		html_action(page, "Rerun with …", "rerun_task", "task", id, NULL);
		html_action(page, "Delete", "delete_task", "task", id, NULL);
	}
	if (*row_get(row, 0, "is_dead") == 't')
	{
		html_action(page, "Redrive", "redrive", "task", id, NULL);
		html_action(page, "Discard dead letter", "discard_dead_letter", "task",
					id, NULL);
	}
	if (strcmp(state, "unscheduled") == 0)
		html_action(page, "Schedule", "schedule_task", "task", id, NULL);
	if (!is_over && strcmp(state, "running") != 0)
		html_action(page, "Skip", "skip_task", "task", id, NULL);
	if (!is_over)
		html_action(page, "Priority …", "change_task_priority", "task", id,
					NULL);
	if (!is_over && strcmp(state, "running") != 0)
		html_action(page, "Time …", "reschedule_task", "task", id, NULL);
	/* Where Cancel was are buttons that ask, when the task ends meanwhile. */
	if (!is_over)
		html_action(page, "Cancel", "cancel_task", "task", id, NULL);
	if (action_is_possible())
	{
		char *url = url_of("/create", "from", id, NULL);

		html(page, "<a class=button href=\"%s\">New one like it</a>", url);
		free(url);
	}
	if (strcmp(state, "pending") == 0 &&
		row_number(row, 0, "visible_at") > row_number(row, 0, "present"))
		html_action(page, "Now", "reschedule_task", "task", id, "at", "now",
					NULL);
	html(page, "</div>");
}

static void
show_json(Page *page, const char *title, const char *text)
{
	if (text == NULL)
		return;
	html(page, "<h2>%s</h2>", title);
	html_json(page, text);
}

/* When its last runs waited, and ran. */
static void
show_time_line(Page *page, const char *const *values)
{
	PGresult *rows = database_query(
		page,
		"SELECT * FROM (SELECT run_id AS run, state, extract(epoch FROM"
		" greatest(scheduled, visible_at)) AS visible, extract(epoch FROM"
		" started) AS started, extract(epoch FROM coalesce(resolved,"
		" greatest(now(), visible_at))) AS ended, left(coalesce(error ->>"
		" 'message', error #>> '{}'), 300) AS error FROM tq.run_overview WHERE"
		" task_id = $1 ORDER BY run_id DESC LIMIT 20) AS r ORDER BY run",
		1, values);

	if (rows != NULL && PQntuples(rows) > 0)
		chart_runs(page, rows);
	PQclear(rows);
}

/* The end of the log of the latest run, if it has one. */
static void
show_log(Page *page, const char *const *values)
{
	PGresult *log = database_query(
		page,
		"SELECT right(a.content, 20000) AS text, length(a.content) > 20000 AS"
		" cut FROM (SELECT tq.get_latest_artifact(l.task_id, l.name) ->>"
		" 'content' AS content FROM (SELECT $1::tq.slugid AS task_id, name"
		" FROM tq.list_latest_artifacts($1, max => 1000) WHERE name = 'log'"
		" AND storage_type = 'inline') AS l) AS a WHERE a.content IS NOT NULL",
		1, values);

	if (log != NULL && PQntuples(log) == 1)
		show_json(page,
				  *row_get(log, 0, "cut") == 't' ? "The end of its log"
												 : "Log",
				  row_get(log, 0, "text"));
	PQclear(log);
}

static void
show_task(Page *page, const char *const *values, const PGresult *row)
{
	region_begin(page, "facts");
	show_buttons(page, values[0], row);
	show_why(page, values, row_get(row, 0, "task_queue_id"));
	table_facts(page, fact_columns, row, 0);
	show_json(page, "Error", row_get(row, 0, "error_text"));
	show_json(page, "Result", row_get(row, 0, "result_text"));
	region_end(page);
	show_json(page, "Payload", row_get(row, 0, "payload_text"));
	html(page, "<h2>Runs</h2>");
	region_begin(page, "all-runs");
	show_time_line(page, values);
	table_show(page, &run_table, 1, values);
	region_end(page);
	region_begin(page, "log");
	show_log(page, values);
	region_end(page);
	table_part(page, "left", "Artifacts", &artifact_table, 1, values);
	table_part(page, "before", "Depends on", &required_table, 1, values);
	table_part(page, "after", "What depends on it", &dependent_table, 1,
			   values);
	table_part(page, "said", "Messages", &message_table, 1, values);
}

/* /task?id=... */
void
page_task(Page *page)
{
	const char *values[] = {page_query(page, "id")};
	char *sql = table_select(FACTS, fact_columns);
	PGresult *row = database_query(page, sql, 1, values);

	free(sql);
	page_title(page, "Task");
	if (row == NULL)
		html_error(page);
	else if (PQntuples(row) == 0)
	{
		page->status = MHD_HTTP_NOT_FOUND;
		html_empty(page, "There is no such task that you may see",
				   "It may have expired, or been deleted.");
	}
	else
	{
		const char *name = row_get(row, 0, "name");

		page_title(page, "%s", name == NULL ? values[0] : name);
		show_task(page, values, row);
	}
	PQclear(row);
}

/* ---- an artifact ---- */

/* A URL is followed only if it leads to a page of the web. */
static void
show_artifact(Page *page, const PGresult *row)
{
	const char *url = row_get(row, 0, "url");
	const char *content = row_get(row, 0, "content");

	if (url != NULL &&
		(strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0))
		html(page, "<p><a href=\"%s\" rel=\"noreferrer noopener\">%s</a></p>",
			 url, url);
	else if (url != NULL)
		html(page, "<p class=mono>%s</p>", url);
	if (content != NULL)
		html_json(page, content);
	else if (url == NULL)
		html_json(page, row_get(row, 0, "all"));
}

/* /artifact?id=...&run=0&name=log */
void
page_artifact(Page *page)
{
	const char *values[] = {page_query(page, "id"), page_query(page, "run"),
							page_query(page, "name")};
	PGresult *row = database_query(
		page,
		"SELECT a ->> 'url' AS url, left(a ->> 'content', 1000000) AS content,"
		" jsonb_pretty(a) AS all FROM tq.get_artifact($1, $2::int, $3) AS a",
		3, values);

	page_title(page, "%s", values[2] == NULL ? "Artifact" : values[2]);
	if (row == NULL)
	{
		if (strcmp(page->state, "TQ404") == 0)
			page->status = MHD_HTTP_NOT_FOUND;
		html_error(page);
	}
	else
		show_artifact(page, row);
	PQclear(row);
}
