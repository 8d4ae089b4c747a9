/*
 * page_create.c
 *	  The form that creates a task, or one like another.
 *
 * Its fields are the arguments of tq.enqueue().  What is empty has the default of that
 * function, and the database checks the rest; what it refuses stays in the form.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

typedef enum FieldKind
{
	FIELD_LINE,
	FIELD_TEXT, /* of several lines */
	FIELD_CHOICE
} FieldKind;

#define CHOICES 8

typedef struct CreateField
{
	const char *name; /* of the argument, too */
	const char *title;
	const char *example;
	FieldKind kind;
	bool is_rare; /* among those that are shown when they are asked for */
	const char *choices[CHOICES];
} CreateField;

static const CreateField fields[] = {
	{.name = "task_queue_id", .title = "Queue", .example = "shop/mail"},
	{.name = "name", .title = "Name", .example = "send order 17"},
	{.name = "payload",
	 .title = "Payload, in JSON",
	 .example = "{}",
	 .kind = FIELD_TEXT},
	{.name = "priority",
	 .title = "Priority",
	 .kind = FIELD_CHOICE,
	 .choices = {"", "highest", "very-high", "high", "medium", "low",
				 "very-low", "lowest"}},
	{.name = "retry", .title = "Retries, with backoff", .example = "5"},
	{.name = "delay", .title = "Not before: a delay", .example = "10 minutes"},
	{.name = "run_at", .title = "Or a time", .example = "2026-12-31 18:00+01"},
	{.name = "deadline",
	 .title = "Deadline, from then on",
	 .example = "1 day, or none"},
	{.name = "expires",
	 .title = "Deleted after the deadline by",
	 .example = "30 days"},
	{.name = "tags",
	 .title = "Tags, in JSON",
	 .example = "{\"customer\": \"17\"}",
	 .kind = FIELD_TEXT},
	{.name = "task_group_id",
	 .title = "Group",
	 .example = "id of a group",
	 .is_rare = true},
	{.name = "task_id",
	 .title = "Id, to be created once",
	 .example = "22 letters and digits",
	 .is_rare = true},
	{.name = "dependencies",
	 .title = "Depends on these ids, with spaces",
	 .is_rare = true},
	{.name = "requires",
	 .title = "They have to be",
	 .kind = FIELD_CHOICE,
	 .is_rare = true,
	 .choices = {"", "all-completed", "all-resolved"}},
	{.name = "retries",
	 .title = "Retries of lost runs",
	 .example = "5",
	 .is_rare = true},
	{.name = "scheduler_id",
	 .title = "Scheduler",
	 .example = "-",
	 .is_rare = true},
	{.name = "project_id",
	 .title = "Project",
	 .example = "none",
	 .is_rare = true},
	{.name = "policy",
	 .title = "Policy, in JSON",
	 .kind = FIELD_TEXT,
	 .is_rare = true},
	{.name = "routes",
	 .title = "Routes, each in a line",
	 .kind = FIELD_TEXT,
	 .is_rare = true},
	{.name = "scopes",
	 .title = "Scopes, each in a line",
	 .kind = FIELD_TEXT,
	 .is_rare = true},
	{.name = "extra",
	 .title = "Extra, in JSON",
	 .kind = FIELD_TEXT,
	 .is_rare = true}};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Of $1, an object with what is not empty. */
#define ENQUEUE                                                                 \
	"SELECT tq.enqueue(f ->> 'task_queue_id', payload =>"                       \
	" coalesce((f ->> 'payload')::jsonb, '{}'), task_id =>"                     \
	" (f ->> 'task_id')::tq.slugid, task_group_id =>"                           \
	" (f ->> 'task_group_id')::tq.slugid, dependencies =>"                      \
	" coalesce(regexp_split_to_array(btrim(f ->> 'dependencies', E' \\r\\n,')," \
	" '[[:space:],]+')::tq.slugid[], '{}'), requires =>"                        \
	" coalesce(f ->> 'requires', 'all-completed'), priority =>"                 \
	" coalesce(f ->> 'priority', 'lowest'), retries =>"                         \
	" (f ->> 'retries')::int, deadline => CASE WHEN f ->> 'deadline' ="         \
	" 'none' THEN NULL ELSE coalesce((f ->> 'deadline')::interval,"             \
	" '-178000000 years') END, expires => (f ->> 'expires')::interval,"         \
	" delay => coalesce((f ->> 'delay')::interval, '0'), routes =>"             \
	" coalesce(regexp_split_to_array(btrim(f ->> 'routes', E' \\r\\n'),"        \
	" E'[\\r\\n]+'), '{}'), scopes =>"                                          \
	" coalesce(regexp_split_to_array(btrim(f ->> 'scopes', E' \\r\\n'),"        \
	" E'[\\r\\n]+'), '{}'), tags => coalesce((f ->> 'tags')::jsonb, '{}'),"     \
	" extra => coalesce((f ->> 'extra')::jsonb, '{}'), name =>"                 \
	" f ->> 'name', scheduler_id => coalesce(f ->> 'scheduler_id', '-'),"       \
	" project_id => coalesce(f ->> 'project_id', 'none'), policy =>"            \
	" (f ->> 'policy')::jsonb, retry => (f ->> 'retry')::int, run_at =>"        \
	" (f ->> 'run_at')::timestamptz) FROM (SELECT $1::jsonb AS f) AS given"

/* What another task has; not what is of it alone, as its id and its group. */
#define LIKE_ANOTHER                                                           \
	"SELECT d ->> 'taskQueueId' AS task_queue_id, jsonb_pretty(d ->"           \
	" 'payload') AS payload, d ->> 'priority' AS priority, d ->> 'retries' AS" \
	" retries, nullif(jsonb_pretty(d -> 'tags'), E'{\\n}') AS tags,"           \
	" nullif(jsonb_pretty(d -> 'extra'), E'{\\n}') AS extra,"                  \
	" jsonb_pretty(d -> 'policy') AS policy, d #>> '{metadata,name}' AS name," \
	" nullif(d ->> 'schedulerId', '-') AS scheduler_id,"                       \
	" nullif(d ->> 'projectId', 'none') AS project_id, nullif(d ->>"           \
	" 'requires', 'all-completed') AS requires, (SELECT string_agg(r,"         \
	" E'\\n') FROM jsonb_array_elements_text(d -> 'routes') AS r) AS routes,"  \
	" (SELECT string_agg(s, E'\\n') FROM"                                      \
	" jsonb_array_elements_text(d -> 'scopes') AS s) AS scopes"                \
	" FROM tq.task($1) AS d"

/* Returns whether a word stands at the begin of a line, or after "invalid". */
static bool
is_named(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; text != NULL && (at = strstr(at, word));
		 at += length)
	{
		bool is_first = at == text || at[-1] == '\n';
		bool is_invalid = at - text >= 8 &&
						  strncmp(at - 8, "invalid ", 8) == 0;

		if ((is_first || is_invalid) && strchr(" .:,;\n", at[length]) != NULL)
			return true;
	}
	return false;
}

/* Returns whether the error of the database speaks of a field, or quotes it. */
static bool
is_refused(const Page *page, const CreateField *field, const char *value)
{
	Buffer quoted = {0};
	bool found;

	if (page->error == NULL)
		return false;
	buffer_put(&quoted, "\"%s\"", value);
	found = is_named(page->error, field->name) ||
			is_named(page->detail, field->name) ||
			(*value != '\0' && strstr(page->error, quoted.data) != NULL) ||
			(strlen(value) > 20 && page->detail != NULL &&
			 strstr(page->detail, value) != NULL); /* an id */
	buffer_free(&quoted);
	return found;
}

static void
put_choices(Page *page, const CreateField *field, const char *value,
			const char *mark)
{
	html(page, "<select id=%s name=%s%s>", field->name, field->name, mark);
	for (int i = 0; i < CHOICES && field->choices[i] != NULL; i++)
		html(page, "<option%s value=\"%s\">%s</option>",
			 strcmp(field->choices[i], value) == 0 ? " selected" : "",
			 field->choices[i],
			 *field->choices[i] == '\0' ? "by default" : field->choices[i]);
	html(page, "</select></p>");
}

static void
put_field(Page *page, const CreateField *field, const char *value)
{
	const char *mark = "";

	if (is_refused(page, field, value))
		mark = " aria-invalid=true aria-describedby=refused";
	html(page, "<p%s><label for=%s>%s</label>",
		 field->kind == FIELD_TEXT ? " class=wide" : "", field->name,
		 field->title);
	switch (field->kind)
	{
		case FIELD_CHOICE:
			put_choices(page, field, value, mark);
			break;
		case FIELD_TEXT:
			html(page,
				 "<textarea id=%s name=%s rows=4 placeholder=\"%s\"%s>\n%s"
				 "</textarea></p>",
				 field->name, field->name,
				 field->example == NULL ? "" : field->example, mark, value);
			break;
		case FIELD_LINE:
			html(page,
				 "<input id=%s name=%s value=\"%s\" placeholder=\"%s\"%s%s>"
				 "</p>",
				 field->name, field->name, value,
				 field->example == NULL ? "" : field->example, mark,
				 field == fields ? " required" : "");
			break;
	}
}

static void
put_fields(Page *page, const char *const *values, bool rare)
{
	html(page, "<div class=pairs>");
	for (size_t i = 0; i < FIELDS; i++)
		if (fields[i].is_rare == rare)
			put_field(page, &fields[i], values[i] == NULL ? "" : values[i]);
	html(page, "</div>");
}

/* The form, and beside it what the database says against it. */
static void
show_form(Page *page, const char *const *values)
{
	bool is_open = false;

	for (size_t i = 0; i < FIELDS; i++)
	{
		const char *value = values[i] == NULL ? "" : values[i];

		is_open |= fields[i].is_rare &&
				   (*value != '\0' || is_refused(page, &fields[i], value));
	}
	html(page, "<div class=beside><form class=create method=post "
			   "action=/create><input type=hidden name=token value=\"");
	buffer_put(&page->body, "%c", TOKEN_MARK);
	html(page, "\">");
	put_fields(page, values, false);
	html(page, "<details class=choice%s><summary>More</summary>",
		 is_open ? " open" : "");
	put_fields(page, values, true);
	html(page, "</details><button class=main>Create</button></form>");
	if (page->error != NULL)
	{
		html(page, "<div id=refused>");
		html_error(page);
		html(page, "</div>");
	}
	html(page, "</div>");
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
		row = database_query(page, LIKE_ANOTHER, 1, from);
	for (size_t i = 0; i < FIELDS; i++)
	{
		values[i] = page_query(page, fields[i].name);
		if (values[i] == NULL && row != NULL && PQntuples(row) == 1)
			values[i] = row_get(row, 0, fields[i].name);
	}
	show_form(page, values);
	PQclear(row);
}

/* Returns what is given and not empty, as an object. */
static char *
object_of(const char *const *values)
{
	Buffer object = {0};
	const char *mark = "{";

	for (size_t i = 0; i < FIELDS; i++)
	{
		if (values[i] == NULL || *values[i] == '\0')
			continue;
		buffer_put(&object, "%s", mark);
		json_put_text(&object, fields[i].name);
		buffer_put(&object, ": ");
		json_put_text(&object, values[i]);
		mark = ", ";
	}
	buffer_put(&object, "%s}", *mark == '{' ? "{" : "");
	return object.data;
}

/* POST /create: what is empty has the default. */
void
act_create(Page *page)
{
	const char *given[FIELDS];
	const char *values[1];
	char *object;
	PGresult *done;

	for (size_t i = 0; i < FIELDS; i++)
		given[i] = page_form(page, fields[i].name);
	object = object_of(given);
	values[0] = object;
	done = database_call(page, ENQUEUE, 1, values);
	free(object);
	page_title(page, "Create task");
	if (done != NULL && PQntuples(done) == 1)
		page_redirect(page,
					  url_of("/task", "id", PQgetvalue(done, 0, 0), NULL));
	else
	{
		page->status = MHD_HTTP_CONFLICT;
		show_form(page, given);
	}
	PQclear(done);
}
