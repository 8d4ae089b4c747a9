/*
 * pages_failures.c
 *	  What failed, by the shape of its error, and dead letters.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

static const struct
{
	const char *name;
	const char *span; /* NULL: all that is stored */
} spans[] = {{"All", NULL},
			 {"New since 1 h", "1 hour"},
			 {"1 d", "1 day"},
			 {"7 d", "7 days"}};

#define SPANS (sizeof(spans) / sizeof(spans[0]))

static const Column failure_columns[] =
	{{.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "first_failed",
	  .title = "First",
	  .kind = COLUMN_TIME,
	  .minor = true},
	 {.name = "last_failed", .title = "Last", .kind = COLUMN_TIME},
	 {.name = "queues", .title = "Queues", .kind = COLUMN_TEXT},
	 {.name = "task_id",
	  .title = "Latest task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}",
	  .minor = true},
	 {.name = "find",
	  .title = "Tasks like it",
	  .kind = COLUMN_TEXT,
	  .link = "/tasks?filter={filter}"},
	 {.name = "filter", .kind = COLUMN_NONE},
	 {.name = "page", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* Says how far a search has come whose time was over. */
static void
put_more(Page *page, const PGresult *rows)
{
	int last = row_end(rows, "task_id");
	const char *after = row_get(rows, last, "page");
	const char *queue = page_query(page, "queue");
	char *url;

	if (after == NULL)
		return;
	url = url_of("/failures", "queue", queue == NULL ? "" : queue, "after",
				 after, NULL);
	html(page,
		 "<p class=more>These are of the tasks that were created since ");
	html_time(page, row_number(rows, last, "first_failed"),
			  row_number(rows, last, "present"));
	html(page, ". <a class=button href=\"%s\">Those before</a>", url);
	free(url);
	url = url_of("/failures", "queue", queue == NULL ? "" : queue, "new",
				 page_query(page, "new"), "long", "1", NULL);
	if (page_query(page, "long") == NULL)
		html(page, " <a class=button href=\"%s\">Search for longer</a>", url);
	html(page, "</p>");
	free(url);
}

/* A dry run of the tasks of a row, as its filter finds them. */
static void
failure_buttons(Page *page, const PGresult *rows, int row)
{
	const char *filter = row_get(rows, row, "filter");

	if (filter != NULL)
		html_bulk_button(page, "Rerun …", "rerun", filter);
}

/* Of a shape the longest part without a placeholder is looked for. */
static const Table failure_table = {
	.id = "failures",
	.caption = "Failures",
	.sql =
		"SELECT CASE WHEN f.task_id IS NOT NULL THEN coalesce(nullif(f.error,"
		" ''), CASE WHEN f.reason IS NULL THEN '(others)' ELSE '(no error)'"
		" END) END AS error, f.reason, f.tasks, f.first_failed,"
		" f.last_failed, array_to_string(f.task_queue_ids, ', ') AS queues,"
		" f.task_id, CASE WHEN f.reason IS NOT NULL THEN 'find' END AS find,"
		" CASE WHEN f.reason IS NOT NULL THEN jsonb_strip_nulls("
		"jsonb_build_object('queue', f.task_queue_ids, 'state', CASE WHEN"
		" f.reason = 'failed' THEN 'failed' ELSE 'exception' END, 'reason',"
		" f.reason, 'error', nullif((SELECT btrim(p) FROM"
		" regexp_split_to_table(f.error, '<[a-z]+>|[.]{3}') AS p ORDER BY"
		" length(p) DESC LIMIT 1), '')))::text END AS filter, f.page"
		" FROM tq.failure_groups(jsonb_strip_nulls(jsonb_build_object("
		"'queue', nullif($1, ''))), nullif($2, ''), budget => $4::interval) AS f"
		" WHERE f.task_id IS NULL OR $3::interval IS NULL OR f.first_failed >"
		" now() - $3::interval",
	.columns = failure_columns,
	.buttons = failure_buttons,
	.empty = "Nothing has failed",
	.empty_hint = "Tasks that failed, or ended as exception, are grouped here "
				  "by the shape of their error.",
	.foot = put_more,
};

/* /failures?queue=shop/mail&new=1 */
void
page_failures(Page *page)
{
	const char *queue = page_query(page, "queue");
	const char *after = page_query(page, "after");
	const char *chosen = page_query(page, "new");
	size_t span = chosen == NULL ? 0 : (size_t) atoi(chosen);
	const char *values[4] = {queue == NULL ? "" : queue,
							 after == NULL ? "" : after};

	if (span >= SPANS)
		span = 0;
	values[2] = spans[span].span;
	values[3] = page_query(page, "long") == NULL ? "150 ms" : "1.5 s";
	page_title(page, "Failures");
	html_find(page, "queue", "Queue, such as shop/*");
	html(page,
		 "<div class=tabs role=group aria-label=\"Since when it fails\">");
	for (size_t i = 0; i < SPANS; i++)
	{
		char number[8] = {(char) ('0' + i)};
		char *url = url_of("/failures", "queue", values[0], "new", number,
						   NULL);

		html(page, "<a href=\"%s\"%s>%s</a>", url,
			 i == span ? " aria-current=true" : "", spans[i].name);
		free(url);
	}
	html(page, "</div>");
	region_begin(page, "all");
	table_show(page, &failure_table, 4, values);
	region_end(page);
}

/* ---- dead letters ---- */

static const Column letter_columns[] =
	{{.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "name", .title = "Name", .kind = COLUMN_TEXT},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "failed_at", .title = "Failed", .kind = COLUMN_TIME},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "runs", .title = "Runs", .kind = COLUMN_COUNT},
	 {.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static void
letter_buttons(Page *page, const PGresult *rows, int row)
{
	const char *id = row_get(rows, row, "task_id");

	html_action(page, "Redrive", "redrive", "task", id, NULL);
	html_action(page, "Discard", "discard_dead_letter", "task", id, NULL);
}

static const Table letter_table = {
	.id = "letters",
	.caption = "Dead letters",
	.sql =
		"SELECT task_id, name, task_queue_id, failed_at, reason, runs,"
		" coalesce(error ->> 'message', error #>> '{}') AS error FROM"
		" tq.dead_letter_overview WHERE ($1 = '' OR task_queue_id = $1 OR"
		" (right($1, 1) = '*' AND starts_with(task_queue_id, left($1, -1))))"
		" AND ($2 = '' OR strpos(error ->> 'message', $2) > 0 OR"
		" strpos(error #>> '{}', $2) > 0)",
	.columns = letter_columns,
	.sort = "-failed_at",
	.limit = 200,
	.pick = true,
	.empty = "There are no dead letters that you may see",
	.empty_hint = "A task whose policy says so is kept as one when its "
				  "retries are spent.",
	.buttons = letter_buttons,
};

/* The queue, and a text of the error. */
static void
put_letter_fields(Page *page, const char *const *values)
{
	html(page,
		 "<form class=fields role=search><div><label for=queue>Queue</label>"
		 "<input id=queue name=queue value=\"%s\" placeholder=\"shop/*\">"
		 "</div><div><label for=error>Error</label><input id=error name=error "
		 "value=\"%s\" placeholder=\"text of the last error\"></div>"
		 "<button>Find</button></form>",
		 values[0], values[1]);
}

/* Actions on what is ticked, or found; a dead letter whose task has expired is not found. */
static void
put_letter_actions(Page *page, const char *const *values)
{
	Buffer filter = {0};

	buffer_put(&filter, "{\"deadLetter\": true");
	if (*values[0] != '\0')
	{
		buffer_put(&filter, ", \"queue\": ");
		json_put_text(&filter, values[0]);
	}
	if (*values[1] != '\0')
	{
		buffer_put(&filter, ", \"error\": ");
		json_put_text(&filter, values[1]);
	}
	buffer_put(&filter, "}");
	html(page, "<div class=bar>");
	html_bulk(page, "letters", filter.data, "redrive discard");
	html(page, "</div>");
	buffer_free(&filter);
}

/* /dead-letters?queue=shop/mail&error=timeout */
void
page_dead_letters(Page *page)
{
	const char *queue = page_query(page, "queue");
	const char *error = page_query(page, "error");
	const char *values[] = {queue == NULL ? "" : queue,
							error == NULL ? "" : error};

	page_title(page, "Dead letters");
	put_letter_fields(page, values);
	put_letter_actions(page, values);
	region_begin(page, "all");
	table_show(page, &letter_table, 2, values);
	region_end(page);
}
