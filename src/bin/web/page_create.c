/*
 * page_create.c
 *	  The form that creates a task, or one like another.
 *
 * What is empty has the default of tq.enqueue(), and the database checks the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

static const struct
{
	const char *name;
	const char *title;
	const char *hint;
	bool is_large;
} fields[] = {{"queue", "Queue", "shop/mail", false},
			  {"payload", "Payload, in JSON", "{}", true},
			  {"group", "Group, an id", "", false},
			  {"priority", "Priority", "lowest", false},
			  {"retries", "Retries of lost runs", "", false},
			  {"deadline", "Deadline, an interval", "1 day", false},
			  {"delay", "Delay, an interval", "10 minutes", false},
			  {"tags", "Tags, in JSON", "{}", true},
			  {"name", "Name", "", false}};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static void
show_form(Page *page, const char *const *values)
{
	html(page, "<form class=create method=post action=/create><input "
			   "type=hidden name=token value=\"");
	buffer_put(&page->body, "%c", TOKEN_MARK);
	html(page, "\">");
	for (size_t i = 0; i < FIELDS; i++)
	{
		const char *value = values[i] == NULL ? "" : values[i];

		html(page, "<p><label for=\"%s\">%s</label>", fields[i].name,
			 fields[i].title);
		if (fields[i].is_large)
			html(page,
				 "<textarea id=\"%s\" name=\"%s\" rows=4>%s</textarea></p>",
				 fields[i].name, fields[i].name, value);
		else
			html(page,
				 "<input id=\"%s\" name=\"%s\" value=\"%s\" "
				 "placeholder=\"%s\"></p>",
				 fields[i].name, fields[i].name, value, fields[i].hint);
	}
	html(page, "<button>Create</button></form>");
}

/* /create?from=TASK: what is given, and else what that task has. */
void
page_create(Page *page)
{
	const char *from[] = {page_query(page, "from")};
	const char *values[FIELDS];
	PGresult *row = NULL;

	page_title(page, "Create task");
	if (!action_is_possible())
	{
		page->status = MHD_HTTP_NOT_FOUND;
		html_empty(page, "Nothing can be created here.", NULL);
		return;
	}
	if (from[0] != NULL)
	{
		row = database_query(
			page,
			"SELECT d ->> 'taskQueueId' AS queue, jsonb_pretty(d -> 'payload')"
			" AS payload, d ->> 'priority' AS priority, d ->> 'retries' AS"
			" retries, jsonb_pretty(d -> 'tags') AS tags,"
			" d #>> '{metadata,name}' AS name FROM tq.task($1) AS d",
			1, from);
		html_error(page);
	}
	for (size_t i = 0; i < FIELDS; i++)
	{
		values[i] = page_query(page, fields[i].name);
		if (values[i] == NULL && row != NULL && PQntuples(row) == 1)
			values[i] = row_get(row, 0, fields[i].name);
	}
	show_form(page, values);
	PQclear(row);
}

/* POST /create: what is empty has the default. */
void
act_create(Page *page)
{
	const char *given[FIELDS];
	const char *values[FIELDS];
	PGresult *done;

	for (size_t i = 0; i < FIELDS; i++)
	{
		given[i] = page_form(page, fields[i].name);
		values[i] = given[i] == NULL || *given[i] == '\0' ? NULL : given[i];
	}
	done = database_call(
		page,
		"SELECT tq.enqueue($1, payload => coalesce($2::jsonb, '{}'),"
		" task_group_id => $3, priority => coalesce($4, 'lowest'),"
		" retries => $5::int, deadline => coalesce($6::interval,"
		" '-178000000 years'), delay => coalesce($7::interval, '0'),"
		" tags => coalesce($8::jsonb, '{}'), name => $9)",
		(int) FIELDS, values);
	page_title(page, "Create task");
	if (done != NULL && PQntuples(done) == 1)
		page_redirect(page,
					  url_of("/task", "id", PQgetvalue(done, 0, 0), NULL));
	else
	{
		page->status = MHD_HTTP_CONFLICT;
		html_error(page);
		show_form(page, given);
	}
	PQclear(done);
}
