/*
 * pages_groups.c
 *	  Groups of tasks, with the pictures that the database draws of them.
 *
 * A picture has styles of its own: its answer has a policy that lets in these, and
 * nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define PICTURE_POLICY                                                        \
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; " \
	"base-uri 'none'; form-action 'none'; sandbox allow-popups"

static const Column group_columns[] =
	{{.name = "task_group_id",
	  .title = "Group",
	  .kind = COLUMN_ID,
	  .link = "/group?id={task_group_id}"},
	 {.name = "name",
	  .title = "Name",
	  .kind = COLUMN_TEXT,
	  .link = "/group?id={task_group_id}"},
	 {.name = "outcome", .title = "Outcome", .kind = COLUMN_STATE},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "unresolved",
	  .title = "Unresolved",
	  .kind = COLUMN_COUNT,
	  .hint = "tasks that are unscheduled, delayed, pending or running"},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "failures",
	  .title = "Failed",
	  .kind = COLUMN_COUNT,
	  .hint = "tasks that failed or ended as exception"},
	 {.name = "first_created", .title = "Begun", .kind = COLUMN_TIME},
	 {.name = "last_resolved", .title = "Last ended", .kind = COLUMN_TIME},
	 {.name = "is_sealed", .title = "sealed", .kind = COLUMN_FLAG},
	 {.name = "page", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* A link to those that began before; the last row may say that the time was over. */
static void
put_more_groups(Page *page, const PGresult *rows)
{
	int last = row_end(rows, "task_group_id");
	bool is_cut = row_get(rows, last, "task_group_id") == NULL;
	char *url;

	if (!is_cut && PQntuples(rows) < 100)
		return;
	url = url_of("/groups", "find", page_query(page, "find"), "after",
				 row_get(rows, last, "page"), NULL);
	html(page, "<p class=more><a class=button href=\"%s\"%s>%s</a></p>", url,
		 is_cut ? " data-on" : "", is_cut ? "Search on" : "Next 100");
	free(url);
}

static const Table group_table = {
	.id = "groups",
	.caption = "Groups",
	.sql = "SELECT task_group_id, name, CASE WHEN task_group_id IS NOT NULL"
		   " THEN coalesce(outcome, 'unresolved') END AS outcome, tasks,"
		   " unscheduled + delayed + pending + running AS unresolved, running,"
		   " failed + exception AS failures, first_created, last_resolved,"
		   " sealed IS NOT NULL AS is_sealed, page"
		   " FROM tq.find_groups(nullif($1, ''), nullif($2, ''))",
	.columns = group_columns,
	.empty = "There is no such group that you may see",
	.empty_hint = "Tasks that are created with the same taskGroupId are a "
				  "group; tq.name_task_group() gives it a name. A name may "
				  "end in a star.",
	.foot = put_more_groups,
};

/* Returns whether a text is an id. */
static bool
is_id(const char *text)
{
	return strlen(text) == 22 &&
		   strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
						"0123456789-_") == 22;
}

/* /groups?find=build *: the newest first, or one by its id */
void
page_groups(Page *page)
{
	const char *find = page_query(page, "find");
	const char *after = page_query(page, "after");
	const char *values[] = {find == NULL ? "" : find,
							after == NULL ? "" : after};

	page_title(page, "Groups");
	if (is_id(values[0]))
	{
		page_redirect(page, url_of("/group", "id", values[0], NULL));
		return;
	}
	html_find(page, "find", "Name, such as build *, or id");
	region_begin(page, "all");
	table_show(page, &group_table, 2, values);
	region_end(page);
}

/* ---- a group ---- */

static const Column progress_columns[] =
	{{.name = "outcome", .title = "Outcome", .kind = COLUMN_STATE},
	 {.name = "percent", .title = "Done, %", .kind = COLUMN_RATE},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "unscheduled", .title = "Unscheduled", .kind = COLUMN_COUNT},
	 {.name = "delayed", .title = "Delayed", .kind = COLUMN_COUNT},
	 {.name = "pending", .title = "Pending", .kind = COLUMN_COUNT},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "completed", .title = "Completed", .kind = COLUMN_COUNT},
	 {.name = "failed", .title = "Failed", .kind = COLUMN_COUNT},
	 {.name = "exception", .title = "Exception", .kind = COLUMN_COUNT},
	 {.name = "first_created", .title = "Begun", .kind = COLUMN_TIME},
	 {.name = "last_resolved", .title = "Last ended", .kind = COLUMN_TIME},
	 {.name = "blocked_text", .kind = COLUMN_NONE},
	 {.name = NULL}};

static const Column path_columns[] =
	{{.name = "place", .title = "Place", .kind = COLUMN_COUNT},
	 {.name = "name",
	  .title = "Task",
	  .kind = COLUMN_TEXT,
	  .link = "/task?id={task_id}"},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "waiting", .title = "Waited", .kind = COLUMN_DURATION},
	 {.name = "running", .title = "Ran", .kind = COLUMN_DURATION},
	 {.name = "retrying", .title = "Retried", .kind = COLUMN_DURATION},
	 {.name = "percent", .title = "% of the whole", .kind = COLUMN_RATE},
	 {.name = "slack",
	  .title = "Slack",
	  .kind = COLUMN_DURATION,
	  .hint = "how much earlier the next best ended"},
	 {.name = "task_id", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* Tasks of a group up to which its graph is a part of the page. */
#define GRAPH_TASKS 200

/* And up to which its critical path is looked for without being asked to. */
#define PATH_TASKS 2000

static const Table path_table = {
	.id = "path",
	.caption = "Critical path",
	.sql = "SELECT place, coalesce(name, task_id::text) AS name, state,"
		   " waiting, running, retrying, 100 * share AS percent, slack,"
		   " task_id FROM tq.critical_path($1) ORDER BY place",
	.columns = path_columns,
	.plain = true,
	.limit = 100,
	.empty = "It has none",
};

static const Table member_table = {
	.id = "members",
	.caption = "Tasks",
	.sql = "SELECT * FROM tq.find_tasks(jsonb_build_object('group',"
		   " $1::text), max => 100) WHERE task_id IS NOT NULL",
	.columns = found_columns,
	.sort = "-created",
	.limit = 100,
	.empty = "It has no task that you may see",
};

static PGresult *
read_progress(Page *page, const char *const *values)
{
	char *sql = table_select(
		"SELECT p.*, 100 * p.done AS percent, array_to_string(p.blocked_by,"
		" ', ') AS blocked_text FROM tq.group_progress($1) AS p",
		progress_columns);
	PGresult *row = database_query(page, sql, 1, values);

	free(sql);
	return row;
}

/* How far the group is. */
static void
show_progress(Page *page, const PGresult *row)
{
	if (row_get(row, 0, "blocked_text") != NULL)
		html_notice(page, "warning", "It is blocked by %s.",
					row_get(row, 0, "blocked_text"));
	html(page, "<div class=totals>");
	table_facts(page, progress_columns, row, 0);
	html(page, "</div>");
}

/* How large the graph is drawn; the names are classes, too. */
static const struct
{
	const char *name;
	const char *title;
} zooms[] = {{"fit", "Fit"}, {"whole", "100 %"}, {"large", "200 %"}};

#define ZOOMS (sizeof(zooms) / sizeof(zooms[0]))

/* Unless it is chosen, a graph fits; a large one, which would be a line, is whole. */
static size_t
chosen_zoom(const Page *page, double tasks)
{
	const char *zoom = page_query(page, "zoom");

	for (size_t i = 0; zoom != NULL && i < ZOOMS; i++)
		if (strcmp(zooms[i].name, zoom) == 0)
			return i;
	return tasks > GRAPH_TASKS;
}

/* The graph: a part of the page or, if that would take long, loaded for itself. */
static void
put_graph(Page *page, const char *id, double tasks)
{
	const char *values[] = {id};
	PGresult *drawn;
	char *url;

	if (tasks > GRAPH_TASKS)
	{
		url = url_of("/graph", "id", id, NULL);
		html(page,
			 "<img src=\"%s\" loading=lazy alt=\"Graph of the group: tasks "
			 "of one name are drawn as one\">",
			 url);
		free(url);
		return;
	}
	drawn = database_query(page, "SELECT tq.group_graph($1, 200, '/task?id=')",
						   1, values);
	if (drawn == NULL)
		html_error(page);
	else
		picture_show(page, PQgetvalue(drawn, 0, 0), "Graph of the group");
	PQclear(drawn);
}

static void
show_graph(Page *page, const char *id, double tasks)
{
	size_t zoom = chosen_zoom(page, tasks);
	char *picture = url_of("/graph", "id", id, NULL);

	html(page, "<h2 id=drawn>Graph</h2><div class=tabs role=group "
			   "aria-label=\"Size of the graph\">");
	for (size_t i = 0; i < ZOOMS; i++)
	{
		char *url = url_of("/group", "id", id, "zoom", zooms[i].name, NULL);

		html(page, "<a href=\"%s#drawn\"%s>%s</a>", url,
			 i == zoom ? " aria-current=true" : "", zooms[i].title);
		free(url);
	}
	html(page,
		 "<a href=\"%s\">By itself</a></div><div class=\"scroll graph "
		 "%s\" tabindex=0 role=region aria-label=\"Graph\">",
		 picture, zooms[zoom].name);
	free(picture);
	region_begin(page, "graph");
	put_graph(page, id, tasks);
	region_end(page);
	html(page, "</div>");
}

static void
show_gantt(Page *page, const char *id)
{
	char *gantt = url_of("/gantt", "id", id, NULL);

	html(page,
		 "<h2>Gantt chart</h2><a href=\"%s\"><img class=picture src=\"%s\" "
		 "loading=lazy alt=\"Gantt chart of the group: when its tasks waited "
		 "and ran\"></a>",
		 gantt, gantt);
	free(gantt);
}

/* Of a large group it takes long, so that one has to ask for it. */
static void
show_path(Page *page, const char *const *values, double tasks)
{
	char *url;

	if (tasks <= PATH_TASKS || page_query(page, "path") != NULL)
	{
		table_part(page, "critical", "Critical path", &path_table, 1, values);
		return;
	}
	url = url_of("/group", "id", values[0], "path", "1", NULL);
	html(page,
		 "<h2>Critical path</h2><p><a class=button href=\"%s\">Look for it"
		 "</a></p>",
		 url);
	free(url);
}

/* Finds a group by its id or its name: a row with both, or NULL after an error. */
static PGresult *
group_find(Page *page)
{
	const char *values[] = {page_query(page, "id")};

	if (values[0] == NULL)
		values[0] = "";
	return database_query(
		page,
		is_id(values[0])
			? "SELECT $1::text AS id, (SELECT d.group_name FROM tq.task_details"
			  " AS d WHERE d.task_id = (SELECT g.task_id FROM"
			  " tq.list_task_group($1::tq.slugid, max => 1) AS g)) AS name"
			: "SELECT coalesce((SELECT g.task_group_id::text FROM"
			  " tq.find_groups(rtrim($1::text, '*'), max => 1, budget => '1 s') AS g"
			  " WHERE g.task_group_id IS NOT NULL), $1) AS id, $1 AS name",
		1, values);
}

/* What the database says where there is no group to be shown. */
static void
refuse(Page *page)
{
	if (strcmp(page->state, "TQ404") == 0)
		page->status = MHD_HTTP_NOT_FOUND;
	html_error(page);
}

static void
put_group_buttons(Page *page, const char *id)
{
	char *report = url_of("/report", "id", id, NULL);
	char *tasks = url_of("/tasks", "group", id, NULL);

	html(page, "<div class=buttons>");
	html_action(page, "Retry what failed", "retry_task_group", "group", id,
				NULL);
	html_action(page, "Cancel", "cancel_task_group", "group", id, NULL);
	html_action(page, "Seal", "seal_task_group", "group", id, NULL);
	html_action(page, "Priority …", "change_task_group_priority", "group", id,
				NULL);
	html(page,
		 "<a class=button href=\"%s\">Its tasks</a><a class=button "
		 "href=\"%s\">Report</a></div>",
		 tasks, report);
	free(report);
	free(tasks);
}

static void
show_group(Page *page, const char *id)
{
	const char *values[] = {id};
	PGresult *row = read_progress(page, values);
	double tasks;

	if (row == NULL)
	{
		refuse(page);
		return;
	}
	tasks = row_number(row, 0, "tasks");
	put_group_buttons(page, id);
	region_begin(page, "progress");
	show_progress(page, row);
	region_end(page);
	PQclear(row);
	show_graph(page, id, tasks);
	show_gantt(page, id);
	show_path(page, values, tasks);
	table_part(page, "newest", "Newest tasks", &member_table, 1, values);
}

/* /group?id=ID or NAME */
void
page_group(Page *page)
{
	PGresult *row = group_find(page);
	const char *name = row == NULL ? NULL : row_get(row, 0, "name");

	page_title(page, "Group %s",
			   name != NULL  ? name
			   : row == NULL ? ""
							 : row_get(row, 0, "id"));
	if (row == NULL)
		refuse(page);
	else
		show_group(page, row_get(row, 0, "id"));
	PQclear(row);
}

/* Answers by what a function draws. */
static void
draw(Page *page, const char *sql, const char *type)
{
	const char *values[] = {page_query(page, "id")};
	PGresult *drawn = database_query(page, sql, 1, values);

	if (drawn == NULL || PQgetisnull(drawn, 0, 0))
	{
		page_title(page, "Not drawn");
		page->status = strcmp(page->state, "TQ404") == 0
						   ? MHD_HTTP_NOT_FOUND
						   : MHD_HTTP_BAD_REQUEST;
		html_error(page);
	}
	else
	{
		page->is_plain = true;
		page->type = type;
		page->policy = PICTURE_POLICY;
		buffer_put(&page->body, "%s", PQgetvalue(drawn, 0, 0));
	}
	PQclear(drawn);
}

/* /graph?id=... */
void
page_graph(Page *page)
{
	draw(page, "SELECT tq.group_graph($1)", "image/svg+xml; charset=utf-8");
}

/* /gantt?id=... */
void
page_gantt(Page *page)
{
	draw(page, "SELECT tq.group_gantt($1)", "image/svg+xml; charset=utf-8");
}

/* /report?id=... */
void
page_report(Page *page)
{
	draw(page, "SELECT tq.report_html($1)", "text/html; charset=utf-8");
}
