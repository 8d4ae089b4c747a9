/*
 * pages_tasks.c
 *	  Tasks that a filter finds, page by page.
 *
 * The filter is that of tq.find_tasks(): as text, or put together by the database
 * of the fields of a form.  Both stand in the URL.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define FIELDS 7

static const struct
{
	const char *name;
	const char *title;
	const char *example;
} fields[FIELDS] = {{"queue", "Queue", "shop/*"},
					{"state", "State", NULL},
					{"name", "Name", "send *"},
					{"error", "Error", "text of the last error"},
					{"tags", "Tags", "{\"customer\": \"17\"}"},
					{"group", "Group", "id of a group"},
					{"worker", "Worker", "group/id"}};

static const char *const states[] = {"unscheduled", "delayed",   "pending",
									 "running",     "completed", "failed",
									 "exception"};

/* Returns the filter that the URL says, or NULL after an error. */
static char *
filter_of(Page *page)
{
	const char *values[FIELDS + 1];
	PGresult *made;
	char *filter = NULL;

	for (int i = 0; i < FIELDS; i++)
		values[i] = page_query(page, fields[i].name);
	values[FIELDS] = page_query(page, "filter");
	made = database_query(
		page,
		"SELECT coalesce(nullif($8, '')::jsonb, jsonb_strip_nulls("
		"jsonb_build_object('queue', nullif($1, ''), 'state', nullif($2, ''),"
		" 'name', nullif($3, ''), 'error', nullif($4, ''), 'tags',"
		" nullif($5, '')::jsonb, 'group', nullif($6, ''), 'worker',"
		" nullif($7, ''))))::text",
		FIELDS + 1, values);
	if (made != NULL)
		filter = copy_text(PQgetvalue(made, 0, 0));
	PQclear(made);
	return filter;
}

static void
put_states(Page *page, const char *chosen)
{
	html(page, "<select id=state name=state><option value=\"\">Any</option>");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		html(page, "<option%s>%s</option>",
			 chosen != NULL && strcmp(chosen, states[i]) == 0 ? " selected"
															  : "",
			 states[i]);
	html(page, "</select>");
}

static void
put_fields(Page *page)
{
	html(page, "<form class=fields role=search>");
	for (int i = 0; i < FIELDS; i++)
	{
		const char *value = page_query(page, fields[i].name);

		html(page, "<div><label for=%s>%s</label>", fields[i].name,
			 fields[i].title);
		if (fields[i].example == NULL)
			put_states(page, value);
		else
			html(page, "<input id=%s name=%s value=\"%s\" placeholder=\"%s\">",
				 fields[i].name, fields[i].name, value == NULL ? "" : value,
				 fields[i].example);
		html(page, "</div>");
	}
	html(page, "<button>Find</button></form>");
}

/* The filter as text, which knows more keys than the form. */
static void
put_text(Page *page, const char *filter)
{
	const char *given = page_query(page, "filter");

	html(
		page,
		"<details class=choice%s><summary>Filter as text</summary><form>"
		"<label for=filter class=away>Filter as text</label><textarea "
		"id=filter name=filter rows=3>%s</textarea><p class=quiet>Also "
		"reason, payload, priority, createdAfter, createdBefore, "
		"resolvedAfter, resolvedBefore, runsAtLeast, waitsFor, deadLetter, key, owner; "
		"state and queue may be lists.</p><button>Find</button></form>"
		"</details>",
		given == NULL || *given == '\0' ? "" : " open",
		filter == NULL ? (given == NULL ? "" : given) : filter);
}

/* What other pages show of tasks that they have found. */
const Column found_columns[] =
	{{.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "name",
	  .title = "Name",
	  .kind = COLUMN_TEXT,
	  .link = "/task?id={task_id}"},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "created", .title = "Created", .kind = COLUMN_TIME},
	 {.name = "resolved", .title = "Resolved", .kind = COLUMN_TIME},
	 {.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Column task_columns[] =
	{{.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "name",
	  .title = "Name",
	  .kind = COLUMN_TEXT,
	  .link = "/task?id={task_id}"},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "priority", .title = "Priority", .kind = COLUMN_TEXT},
	 {.name = "created", .title = "Created", .kind = COLUMN_TIME},
	 {.name = "resolved", .title = "Resolved", .kind = COLUMN_TIME},
	 {.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = "page", .kind = COLUMN_NONE},
	 {.name = "filter", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* A link that goes on, and how far the search has come. */
static void
put_more(Page *page, const PGresult *rows)
{
	int last = row_end(rows, "task_id");
	bool is_search = row_get(rows, last, "task_id") == NULL;
	char *url;

	if (!is_search && PQntuples(rows) < 100)
		return;
	url = url_of("/tasks", "filter", row_get(rows, last, "filter"), "after",
				 row_get(rows, last, "page"), NULL);
	html(page, "<p class=more>");
	if (is_search)
	{
		html(page, "All that were created since ");
		html_time(page, row_number(rows, last, "created"),
				  row_number(rows, last, "present"));
		html(page, " are looked through. ");
	}
	html(page, "<a class=button href=\"%s\"%s>%s</a></p>", url,
		 is_search ? " data-on" : "", is_search ? "Search on" : "Next 100");
	free(url);
}

static const Table task_table = {
	.id = "tasks",
	.caption = "Tasks",
	.sql = "SELECT *, $1 AS filter FROM tq.find_tasks($1::jsonb, $2, 100,"
		   " '100 ms')",
	.columns = task_columns,
	.pick = true,
	.empty = "No task that you may see is like that",
	.empty_hint = "Leave a field out, or use * in a name or a queue for any "
				  "characters. What has expired is gone.",
	.foot = put_more,
};

/* /tasks?queue=shop/mail&state=failed, /tasks?filter={"queue": "shop/mail"} */
void
page_tasks(Page *page)
{
	const char *after = page_query(page, "after");
	const char *values[2];
	char *filter = filter_of(page);

	page_title(page, "Tasks");
	put_fields(page);
	put_text(page, filter);
	if (filter == NULL)
	{
		html_error(page);
		return;
	}
	values[0] = filter;
	values[1] = after != NULL && *after == '\0' ? NULL : after;
	html(page, "<div class=bar>");
	html_bulk(page, "tasks", filter, NULL);
	if (action_is_possible())
		html(page, "<a class=button href=/create>New task</a>");
	html(page, "</div>");
	table_show(page, &task_table, 2, values);
	free(filter);
}
