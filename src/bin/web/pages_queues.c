/*
 * pages_queues.c
 *	  Queues, and one of them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define SPARKS_KEPT 60000

static const Column queue_columns[] =
	{{.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "alarm", .title = "Alert", .kind = COLUMN_STATE},
	 {.name = "pending",
	  .title = "Pending",
	  .kind = COLUMN_COUNT,
	  .hint = "runs that can be claimed"},
	 {.name = "running",
	  .title = "Running",
	  .kind = COLUMN_COUNT,
	  .hint = "runs that a worker has"},
	 {.name = "running_limit",
	  .title = "Limit",
	  .kind = COLUMN_COUNT,
	  .hint = "how many may run at a time"},
	 {.name = "delayed",
	  .title = "Delayed",
	  .kind = COLUMN_COUNT,
	  .hint = "runs that can be claimed later"},
	 {.name = "blocked",
	  .title = "Blocked",
	  .kind = COLUMN_COUNT,
	  .hint = "tasks that wait for others, or to be scheduled"},
	 {.name = "oldest_pending",
	  .title = "Oldest waits",
	  .kind = COLUMN_DURATION,
	  .hint = "how long ago the first of the pending runs was scheduled"},
	 {.name = "ended_per_s",
	  .title = "Ended/s",
	  .kind = COLUMN_RATE,
	  .hint = "runs that ended per second in the last minute"},
	 {.name = "created_per_s",
	  .title = "Created/s",
	  .kind = COLUMN_RATE,
	  .hint = "tasks created per second in the last minute",
	  .hidden = true},
	 {.name = "spark",
	  .title = "Last hour",
	  .kind = COLUMN_SPARK,
	  .hint = "runs that ended per second",
	  .unit = " per second"},
	 {.name = "wait_p50",
	  .title = "Wait p50",
	  .kind = COLUMN_DURATION,
	  .hint = "median of the times from claimable to claimed",
	  .minor = true},
	 {.name = "wait_p99",
	  .title = "Wait p99",
	  .kind = COLUMN_DURATION,
	  .hint = "99 % of these times are not longer"},
	 {.name = "run_p50",
	  .title = "Run p50",
	  .kind = COLUMN_DURATION,
	  .hint = "median of the times from claimed to resolved",
	  .minor = true},
	 {.name = "run_p99",
	  .title = "Run p99",
	  .kind = COLUMN_DURATION,
	  .hint = "99 % of these times are not longer"},
	 {.name = "failed",
	  .title = "Failed",
	  .kind = COLUMN_COUNT,
	  .hint =
		  "runs failed or ended as exception since the totals are counted"},
	 {.name = "completed",
	  .title = "Completed",
	  .kind = COLUMN_COUNT,
	  .hint = "runs completed since the totals are counted",
	  .hidden = true},
	 {.name = "workers",
	  .title = "Workers",
	  .kind = COLUMN_COUNT,
	  .hint = "workers that were seen and have not expired"},
	 {.name = NULL}};

#define NUMBERS                                                               \
	"task_queue_id, paused, unattended, limits, pending, running, delayed,"   \
	" blocked, oldest_pending, ended_per_s, created_per_s, wait_p50,"         \
	" wait_p99, run_p50, run_p99, failed, exception, completed, workers"

/* $2 is what tq.queue_stats has, read once for a page; $3 are the spark lines. */
static const Table queue_table = {
	.id = "queues",
	.caption = "Queues",
	.sql = "SELECT s.task_queue_id, CASE WHEN s.paused THEN 'paused'"
		   " WHEN s.unattended THEN 'unattended' END AS alarm,"
		   " s.pending, s.running, (s.limits ->> 'concurrentLimit')::int"
		   " AS running_limit, s.delayed, s.blocked, s.oldest_pending,"
		   " s.ended_per_s, s.created_per_s, $3::jsonb -> s.task_queue_id AS"
		   " spark, s.wait_p50, s.wait_p99,"
		   " s.run_p50, s.run_p99, s.failed + s.exception AS failed,"
		   " s.completed, s.workers"
		   " FROM jsonb_populate_recordset(NULL::tq.queue_stats, $2) AS s"
		   " WHERE $1::text IS NULL OR strpos(s.task_queue_id, $1) > 0",
	.columns = queue_columns,
	.sort = "task_queue_id",
	.limit = 500,
	.empty = "There is no queue that you may see",
	.empty_hint = "A queue begins with its first task: SELECT "
				  "tq.enqueue('shop/mail', '{}'). Rights to see it: SELECT "
				  "tq.grant_queue('your_role', 'shop/*', 'read').",
};

static const Column total_columns[] =
	{{.name = "queues", .title = "Queues", .kind = COLUMN_COUNT},
	 {.name = "pending", .title = "Pending", .kind = COLUMN_COUNT},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "delayed", .title = "Delayed", .kind = COLUMN_COUNT},
	 {.name = "blocked", .title = "Blocked", .kind = COLUMN_COUNT},
	 {.name = "ended_per_s", .title = "Ended/s", .kind = COLUMN_RATE},
	 {.name = "oldest_pending",
	  .title = "Oldest waits",
	  .kind = COLUMN_DURATION},
	 {.name = "workers", .title = "Workers", .kind = COLUMN_COUNT},
	 {.name = "numbers", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* The sums of all queues, large; returns what they are of, as JSON. */
static char *
show_totals(Page *page)
{
	char *sql = table_select(
		"SELECT count(*) AS queues, sum(pending) AS pending, sum(running) AS"
		" running, sum(delayed) AS delayed, sum(blocked) AS blocked,"
		" sum(ended_per_s) AS ended_per_s, max(oldest_pending) AS"
		" oldest_pending, sum(workers) AS workers, jsonb_agg(s) AS numbers"
		" FROM (SELECT " NUMBERS " FROM tq.queue_stats) AS s",
		total_columns);
	PGresult *row = database_query(page, sql, 0, NULL);
	char *numbers = NULL;

	free(sql);
	if (row != NULL && row_number(row, 0, "queues") > 0)
	{
		html(page, "<div class=totals>");
		table_facts(page, total_columns, row, 0);
		html(page, "</div>");
		numbers = copy_text(row_get(row, 0, "numbers"));
	}
	PQclear(row);
	return numbers;
}

/* ---- spark lines ---- */

/*
 * What an hour was changes slowly, and takes as long as all else of the page: it is
 * kept for a minute, for a role.  The lock is held for a look only.
 */
typedef struct Sparks
{
	char role[ROLE_LENGTH];
	Moment made;
	char *lines; /* as JSON, by queue */
} Sparks;

static Sparks kept[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the place of a role, or the one that was made first. */
static Sparks *
sparks_of(const char *role)
{
	Sparks *oldest = kept;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
	{
		if (strcmp(kept[i].role, role) == 0 && kept[i].lines != NULL)
			return &kept[i];
		if (kept[i].made < oldest->made)
			oldest = &kept[i];
	}
	return oldest;
}

static char *
find_sparks(const char *role)
{
	Sparks *sparks;
	char *lines = NULL;

	pthread_mutex_lock(&lock);
	sparks = sparks_of(role);
	if (strcmp(sparks->role, role) == 0 &&
		clock_now() - sparks->made < SPARKS_KEPT)
		lines = copy_text(sparks->lines);
	pthread_mutex_unlock(&lock);
	return lines;
}

static void
keep_sparks(const char *role, const char *lines)
{
	Sparks *sparks;

	pthread_mutex_lock(&lock);
	sparks = sparks_of(role);
	snprintf(sparks->role, sizeof(sparks->role), "%s", role);
	sparks->made = clock_now();
	free(sparks->lines);
	sparks->lines = copy_text(lines);
	pthread_mutex_unlock(&lock);
}

/* Returns the spark lines of the queues that a role sees. */
static char *
read_sparks(Page *page)
{
	char *lines = find_sparks(page->role);
	PGresult *made;

	if (lines != NULL)
		return lines;
	made = database_query(
		page,
		"SELECT coalesce(jsonb_object_agg(task_queue_id, spark), '{}') FROM"
		" (SELECT task_queue_id, array_agg(completed_per_s + failed_per_s +"
		" exception_per_s ORDER BY at) AS spark FROM tq.queue_history('*',"
		" step => '5 minutes') GROUP BY task_queue_id) AS h",
		0, NULL);
	if (made == NULL)
		return NULL;
	lines = copy_text(PQgetvalue(made, 0, 0));
	PQclear(made);
	keep_sparks(page->role, lines);
	return lines;
}

/* /queues?find=shop */
void
page_queues(Page *page)
{
	const char *values[] = {page_query(page, "find"), NULL, NULL};
	char *numbers;
	char *lines;

	page_title(page, "Queues");
	html_find(page, "find", "Part of the name");
	region_begin(page, "totals");
	numbers = show_totals(page);
	region_end(page);
	region_begin(page, "all");
	lines = numbers == NULL ? NULL : read_sparks(page);
	values[1] = numbers == NULL ? "[]" : numbers;
	values[2] = lines == NULL ? "{}" : lines;
	if (numbers == NULL && page->error != NULL)
		html_error(page);
	else
		table_show(page, &queue_table, 3, values);
	region_end(page);
	free(numbers);
	free(lines);
}

/* ---- one queue ---- */

static const Column state_columns[] =
	{{.name = "pending", .title = "Pending", .kind = COLUMN_COUNT},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "delayed", .title = "Delayed", .kind = COLUMN_COUNT},
	 {.name = "blocked", .title = "Blocked", .kind = COLUMN_COUNT},
	 {.name = "oldest_pending",
	  .title = "Oldest waits",
	  .kind = COLUMN_DURATION},
	 {.name = "ended_per_s", .title = "Ended/s", .kind = COLUMN_RATE},
	 {.name = "wait_p99", .title = "Wait p99", .kind = COLUMN_DURATION},
	 {.name = "run_p99", .title = "Run p99", .kind = COLUMN_DURATION},
	 {.name = "paused", .title = "paused", .kind = COLUMN_NONE},
	 {.name = "unattended", .title = "unattended", .kind = COLUMN_NONE},
	 {.name = "limits", .title = "limits", .kind = COLUMN_NONE},
	 {.name = NULL}};

static const Column count_columns[] =
	{{.name = "created", .title = "Created", .kind = COLUMN_COUNT},
	 {.name = "claimed", .title = "Claimed", .kind = COLUMN_COUNT},
	 {.name = "completed", .title = "Completed", .kind = COLUMN_COUNT},
	 {.name = "failed", .title = "Failed", .kind = COLUMN_COUNT},
	 {.name = "exception", .title = "Exception", .kind = COLUMN_COUNT},
	 {.name = "retried", .title = "Retried", .kind = COLUMN_COUNT},
	 {.name = "expired_claims",
	  .title = "Expired claims",
	  .kind = COLUMN_COUNT},
	 {.name = "workers", .title = "Workers", .kind = COLUMN_COUNT},
	 {.name = "workers_quarantined",
	  .title = "In quarantine",
	  .kind = COLUMN_COUNT},
	 {.name = "waiters", .title = "Sessions that wait", .kind = COLUMN_COUNT},
	 {.name = "last_date_active",
	  .title = "A worker last asked",
	  .kind = COLUMN_TIME},
	 {.name = "since", .title = "Counted since", .kind = COLUMN_TIME},
	 {.name = "reasons", .title = "Reasons", .kind = COLUMN_JSON},
	 {.name = "limits", .title = "Limits", .kind = COLUMN_JSON},
	 {.name = NULL}};

static const Series rate_series[] = {{"created_per_s", "created", 4},
									 {"completed_per_s", "completed", 2},
									 {"failed_per_s", "failed", 3},
									 {NULL, NULL, 0}};
static const Series depth_series[] = {{"pending", "pending", 5},
									  {"running", "running", 1},
									  {"delayed", "delayed", 4},
									  {NULL, NULL, 0}};
static const Series wait_series[] = {{"wait_p50", "p50", 1},
									 {"wait_p99", "p99", 3},
									 {NULL, NULL, 0}};
static const Series run_series[] = {{"run_p50", "p50", 1},
									{"run_p99", "p99", 3},
									{NULL, NULL, 0}};
static const Chart charts[] = {{.title = "Rates",
								.unit = "runs per second",
								.series = rate_series},
							   {.title = "In the queue",
								.unit = "tasks",
								.series = depth_series,
								.is_whole = true},
							   {.title = "Wait",
								.unit = "until claimed",
								.series = wait_series,
								.is_time = true},
							   {.title = "Run",
								.unit = "until resolved",
								.series = run_series,
								.is_time = true}};

/* Spans of time, and the steps by which they are drawn. */
static const struct
{
	const char *name;
	const char *span;
	const char *step;
} ranges[] = {{"1 h", "1 hour", "1 minute"},
			  {"6 h", "6 hours", "5 minutes"},
			  {"1 d", "1 day", "20 minutes"},
			  {"7 d", "7 days", "2 hours"}};

#define RANGES (sizeof(ranges) / sizeof(ranges[0]))

static size_t
chosen_range(const Page *page)
{
	const char *range = page_query(page, "range");

	for (size_t i = 0; range != NULL && i < RANGES; i++)
		if (strcmp(ranges[i].name, range) == 0)
			return i;
	return 0;
}

static void
show_charts(Page *page, const char *name)
{
	size_t range = chosen_range(page);
	const char *values[] = {name, ranges[range].span, ranges[range].step};
	PGresult *rows = database_query(
		page,
		"SELECT extract(epoch FROM at) AS at, created_per_s, completed_per_s,"
		" failed_per_s + exception_per_s AS failed_per_s, pending, running,"
		" delayed, extract(epoch FROM wait_p50) AS wait_p50, extract(epoch FROM"
		" wait_p99) AS wait_p99, extract(epoch FROM run_p50) AS run_p50,"
		" extract(epoch FROM run_p99) AS run_p99"
		" FROM tq.queue_history($1, now() - $2::interval, step => $3::interval)"
		" ORDER BY at",
		3, values);

	html(page, "<div class=tabs role=group aria-label=\"Span of time\">");
	for (size_t i = 0; i < RANGES; i++)
	{
		char *url = url_of("/queue", "name", name, "range", ranges[i].name,
						   NULL);

		html(page, "<a href=\"%s\"%s>%s</a>", url,
			 i == range ? " aria-current=true" : "", ranges[i].name);
		free(url);
	}
	html(page, "</div>");
	if (rows == NULL)
	{
		html_error(page);
		return;
	}
	html(page, "<div class=charts>");
	for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++)
		chart_show(page, &charts[i], rows);
	html(page, "</div>");
	PQclear(rows);
}

static const Column failure_columns[] =
	{{.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = "reason", .title = "Reason", .kind = COLUMN_TEXT},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "last_failed", .title = "Last", .kind = COLUMN_TIME},
	 {.name = "task_id",
	  .title = "Latest task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = NULL}};

static const Table failure_table = {
	.id = "failures",
	.caption = "Failures",
	.sql = "SELECT coalesce(error, '(no error)') AS error, reason, tasks,"
		   " last_failed, task_id FROM tq.failure_groups("
		   "jsonb_build_object('queue', $1::text), max => 10,"
		   " budget => '100 ms')"
		   " WHERE task_id IS NOT NULL",
	.columns = failure_columns,
	.sort = "-tasks",
	.limit = 11,
	.plain = true,
	.empty = "Nothing has failed",
};

static const Column worker_columns[] =
	{{.name = "worker", .title = "Worker", .kind = COLUMN_TEXT},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "last_date_active", .title = "Last asked", .kind = COLUMN_TIME},
	 {.name = "quarantine_until",
	  .title = "In quarantine until",
	  .kind = COLUMN_TIME},
	 {.name = NULL}};

static const Table worker_table = {
	.id = "workers",
	.caption = "Workers",
	.sql = "SELECT worker_group || '/' || worker_id AS worker, state, running,"
		   " last_date_active, quarantine_until FROM tq.worker_overview"
		   " WHERE task_queue_id = $1",
	.columns = worker_columns,
	.sort = "-running",
	.limit = 50,
	.empty = "No worker has asked for work",
	.empty_hint =
		"A worker calls tq.claim_work(); tq-worker runs a command for "
		"each task.",
};

static void
show_bulk_button(Page *page, const char *label, const char *action,
				 const char *name, const char *states)
{
	Buffer filter = {0};

	buffer_put(&filter, "{\"queue\": ");
	json_put_text(&filter, name);
	buffer_put(&filter, ", \"state\": %s}", states);
	html_bulk_button(page, label, action, filter.data);
	buffer_free(&filter);
}

/* Returns whether it is known to be so. */
static bool
is_true(const PGresult *row, const char *name)
{
	const char *value = row_get(row, 0, name);

	return value != NULL && *value == 't';
}

/* What can be done with a queue. */
static void
show_buttons(Page *page, const char *name, const PGresult *row)
{
	bool paused = is_true(row, "paused");

	html(page, "<div class=buttons>");
	html_action(page, paused ? "Resume" : "Pause",
				paused ? "resume_queue" : "pause_queue", "queue", name, NULL);
	show_bulk_button(page, "Rerun failed tasks …", "rerun", name,
					 "[\"failed\", \"exception\"]");
	show_bulk_button(page, "Cancel pending tasks …", "cancel", name,
					 "[\"unscheduled\", \"pending\"]");
	html_action(page, "Change settings …", "set_queue", "queue", name, NULL);
	html(page, "</div>");
}

static void
show_numbers(Page *page, const char *name, const PGresult *row)
{
	const char *values[] = {name};
	char *sql;
	PGresult *more;

	if (is_true(row, "paused"))
		html_notice(page, "warning",
					"The queue is paused: nothing is handed "
					"out until it is resumed.");
	if (is_true(row, "unattended"))
		html_notice(page, "warning",
					"Runs are pending, but no worker has asked "
					"for work for a minute.");
	html(page, "<div class=totals>");
	table_facts(page, state_columns, row, 0);
	html(page, "</div>");
	show_charts(page, name);
	sql =
		table_select("SELECT created, claimed, completed, failed, exception,"
					 " retried, expired_claims, workers,"
					 " workers_quarantined, waiters, last_date_active, since,"
					 " nullif(reasons, '{}') AS reasons, nullif(limits, '{}')"
					 " AS limits FROM tq.queue_stats WHERE task_queue_id = $1",
					 count_columns);
	more = database_query(page, sql, 1, values);
	free(sql);
	html(page, "<h2>Totals and limits</h2>");
	if (more != NULL && PQntuples(more) == 1)
		table_facts(page, count_columns, more, 0);
	PQclear(more);
}

/* What get_task_queue() says, for those who may ask. */
static void
show_settings(Page *page, const char *name)
{
	const char *values[] = {name};
	PGresult *row = database_query(
		page, "SELECT jsonb_pretty(tq.get_task_queue($1) -> 'settings')", 1,
		values);

	html(page, "<h2>Settings</h2>");
	if (row == NULL && strcmp(page->state, "TQ404") != 0)
		html_error(page);
	else if (row == NULL || PQgetisnull(row, 0, 0) ||
			 strcmp(PQgetvalue(row, 0, 0), "{\n}") == 0)
		html_empty(page, "It has the defaults",
				   "SELECT tq.set_queue('%s', '{\"concurrentLimit\": 10}')",
				   name);
	else
		html_json(page, PQgetvalue(row, 0, 0));
	PQclear(row);
}

static void
show_queue(Page *page, const char *name, const PGresult *row)
{
	const char *values[] = {name};
	char *all;

	region_begin(page, "numbers");
	show_buttons(page, name, row);
	show_numbers(page, name, row);
	region_end(page);
	table_part(page, "failed", "Failures by error", &failure_table, 1, values);
	all = url_of("/failures", "queue", name, NULL);
	html(page, "<p><a href=\"%s\">All failures of the queue</a></p>", all);
	free(all);
	table_part(page, "at-work", "Workers", &worker_table, 1, values);
	show_settings(page, name);
}

/* /queue?name=shop/mail */
void
page_queue(Page *page)
{
	const char *name = page_query(page, "name");
	const char *values[] = {name};
	char *sql = table_select("SELECT * FROM tq.queue_stats"
							 " WHERE task_queue_id = $1",
							 state_columns);
	PGresult *row = database_query(page, sql, 1, values);

	free(sql);
	page_title(page, "%s", name == NULL ? "Queue" : name);
	if (row == NULL)
		html_error(page);
	else if (PQntuples(row) == 0)
	{
		page->status = MHD_HTTP_NOT_FOUND;
		html_empty(page, "There is no such queue that you may see",
				   "It may have another name, or have been retired because "
				   "nothing was in it.");
	}
	else
		show_queue(page, name, row);
	PQclear(row);
}
