/*
 * pages_work.c
 *	  Recurring tasks, and workers with what they run now.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

/* ---- recurring tasks ---- */

static const Column cron_columns[] =
	{{.name = "name", .title = "Name", .kind = COLUMN_TEXT},
	 {.name = "alarm", .title = "Alert", .kind = COLUMN_STATE},
	 {.name = "schedule", .title = "Schedule", .kind = COLUMN_TEXT},
	 {.name = "time_zone", .title = "Zone", .kind = COLUMN_TEXT},
	 {.name = "next",
	  .title = "Next",
	  .kind = COLUMN_TIME,
	  .hint = "when its next task is created"},
	 {.name = "last_fired", .title = "Last", .kind = COLUMN_TIME},
	 {.name = "last_state",
	  .title = "Last task",
	  .kind = COLUMN_STATE,
	  .link = "/task?id={last_task_id}"},
	 {.name = "last_skipped",
	  .title = "Last skipped",
	  .kind = COLUMN_TIME,
	  .hint = "the task before had not ended",
	  .hidden = true},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "owner", .title = "Owner", .kind = COLUMN_TEXT},
	 {.name = "overlap",
	  .title = "Overlap",
	  .kind = COLUMN_TEXT,
	  .hint = "what happens while the task before has not ended",
	  .hidden = true},
	 {.name = "payload",
	  .title = "Payload",
	  .kind = COLUMN_JSON,
	  .hidden = true},
	 {.name = "fault", .title = "Fault", .kind = COLUMN_TEXT},
	 {.name = "last_task_id", .kind = COLUMN_NONE},
	 {.name = "active", .kind = COLUMN_NONE},
	 {.name = NULL}};

static void
cron_buttons(Page *page, const PGresult *rows, int row)
{
	const char *name = row_get(rows, row, "name");
	const char *owner = row_get(rows, row, "owner");
	const char *active = row_get(rows, row, "active");
	bool runs = active != NULL && *active == 't';

	if (name == NULL || owner == NULL)
		return;
	html_action(page, "Run now", "run_cron_now", "name", name, "owner", owner,
				NULL);
	html_action(page, runs ? "Pause" : "Resume",
				runs ? "pause_cron" : "resume_cron", "name", name, "owner",
				owner, NULL);
	html_action(page, "End …", "unschedule_cron", "name", name, "owner", owner,
				NULL);
}

static const Table cron_table = {
	.id = "cron",
	.caption = "Recurring tasks",
	.sql = "SELECT name, CASE WHEN fault IS NOT NULL THEN 'faulty'"
		   " WHEN NOT active THEN 'paused' END AS alarm, schedule, time_zone,"
		   " next_fires[1] AS next, last_fired, last_state, last_skipped,"
		   " task_queue_id, owner, overlap, payload, fault, last_task_id,"
		   " active FROM tq.cron_overview",
	.columns = cron_columns,
	.sort = "next",
	.limit = 500,
	.empty = "There is no recurring task that you may see",
	.empty_hint =
		"SELECT tq.schedule_cron('nightly', '0 3 * * *', 'shop/report') "
		"makes one; it needs the extension pg_cron.",
	.buttons = cron_buttons,
};

/* /cron */
void
page_cron(Page *page)
{
	page_title(page, "Cron");
	region_begin(page, "all");
	table_show(page, &cron_table, 0, NULL);
	region_end(page);
}

/* ---- workers ---- */

static const Column worker_columns[] =
	{{.name = "worker",
	  .title = "Worker",
	  .kind = COLUMN_TEXT,
	  .link = "/worker?queue={task_queue_id}&group={worker_group}&id="
			  "{worker_id}"},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "now",
	  .title = "Now",
	  .kind = COLUMN_TEXT,
	  .hint = "the tasks that it has had longest"},
	 {.name = "longest",
	  .title = "For",
	  .kind = COLUMN_DURATION,
	  .hint = "how long it has had the first of them"},
	 {.name = "last_date_active", .title = "Last asked", .kind = COLUMN_TIME},
	 {.name = "first_claim",
	  .title = "First claim",
	  .kind = COLUMN_TIME,
	  .hidden = true},
	 {.name = "quarantine_until",
	  .title = "In quarantine until",
	  .kind = COLUMN_TIME},
	 {.name = "worker_group", .kind = COLUMN_NONE},
	 {.name = "worker_id", .kind = COLUMN_NONE},
	 {.name = NULL}};

/* What runs is few, and found by its timers. */
static const Table worker_table = {
	.id = "workers",
	.caption = "Workers",
	.sql =
		"SELECT w.worker_group || '/' || w.worker_id AS worker,"
		" w.task_queue_id, w.state, w.running, r.now, r.longest,"
		" w.last_date_active, w.first_claim, w.quarantine_until,"
		" w.worker_group, w.worker_id FROM tq.worker_overview AS w"
		" LEFT JOIN (SELECT n.task_queue_id, n.worker, string_agg(n.title,"
		" ', ' ORDER BY n.place) FILTER (WHERE n.place <= 3) AS now,"
		" now() - min(n.since) AS longest FROM (SELECT task_queue_id,"
		" worker, since, coalesce(name, task_id::text) AS title, row_number() OVER"
		" (PARTITION BY task_queue_id, worker ORDER BY since) AS place"
		" FROM tq.task_overview WHERE state = 'running') AS n GROUP BY 1, 2)"
		" AS r ON r.task_queue_id = w.task_queue_id AND r.worker ="
		" w.worker_group || '/' || w.worker_id"
		" WHERE $1::text IS NULL OR strpos(w.worker_group || '/' ||"
		" w.worker_id, $1) > 0 OR strpos(w.task_queue_id, $1) > 0",
	.columns = worker_columns,
	.sort = "-running",
	.limit = 500,
	.empty = "No worker that you may see has asked for work",
	.empty_hint = "tq-worker --queue shop/mail -- ./send-mail runs a command "
				  "for each task; doc/clients.md shows workers of other "
				  "languages.",
};

/* /workers?find=host-7 */
void
page_workers(Page *page)
{
	const char *find = page_query(page, "find");
	const char *values[] = {find};

	page_title(page, "Workers");
	html_find(page, "find", "Part of a worker or queue");
	region_begin(page, "all");
	table_show(page, &worker_table, 1, values);
	region_end(page);
}

static const Column fact_columns[] =
	{{.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "running", .title = "Running", .kind = COLUMN_COUNT},
	 {.name = "last_date_active", .title = "Last asked", .kind = COLUMN_TIME},
	 {.name = "first_claim", .title = "First claim", .kind = COLUMN_TIME},
	 {.name = "quarantine_until",
	  .title = "In quarantine until",
	  .kind = COLUMN_TIME},
	 {.name = NULL}};

#define TASKS_OF_WORKER(more)                                                 \
	"SELECT task_id, name, state, reason, created, resolved, error FROM"      \
	" tq.find_tasks(jsonb_build_object('queue', $1::text, 'worker',"          \
	" $2 || '/' || $3" more "), max => 50, budget => '80 ms') WHERE"          \
	" task_id IS NOT NULL"

static const Table now_table = {
	.id = "now",
	.caption = "What it runs now",
	.sql = TASKS_OF_WORKER(", 'state', 'running'"),
	.columns = found_columns,
	.sort = "created",
	.limit = 50,
	.empty = "It runs nothing",
};

static const Table latest_table = {
	.id = "latest",
	.caption = "Latest tasks",
	.sql = TASKS_OF_WORKER(""),
	.columns = found_columns,
	.sort = "-created",
	.limit = 50,
	.empty = "It has had no task that is still there",
};

static void
show_worker(Page *page, const char *const *values, const PGresult *row)
{
	const char *state = row_get(row, 0, "state");
	bool apart = row_get(row, 0, "quarantine_until") != NULL &&
				 state != NULL && strcmp(state, "quarantined") == 0;

	region_begin(page, "worker");
	html(page, "<div class=buttons>");
	html_action(page, apart ? "End quarantine" : "Quarantine for a day",
				apart ? "end_quarantine" : "quarantine_worker", "queue",
				values[0], "worker_group", values[1], "worker_id", values[2],
				NULL);
	html_action(page, "It is gone", "worker_removed", "queue", values[0],
				"worker_group", values[1], "worker_id", values[2], NULL);
	html(page, "</div><div class=totals>");
	table_facts(page, fact_columns, row, 0);
	html(page, "</div>");
	region_end(page);
	table_part(page, "runs-now", "Runs now", &now_table, 3, values);
	table_part(page, "runs-latest", "Latest tasks", &latest_table, 3, values);
}

/* /worker?queue=shop/mail&group=eu&id=host-7 */
void
page_worker(Page *page)
{
	const char *values[] = {page_query(page, "queue"),
							page_query(page, "group"), page_query(page, "id")};
	char *sql = table_select("SELECT * FROM tq.worker_overview WHERE"
							 " task_queue_id = $1 AND worker_group = $2 AND"
							 " worker_id = $3",
							 fact_columns);
	PGresult *row = database_query(page, sql, 3, values);

	free(sql);
	page_title(page, "%s/%s", values[1] == NULL ? "" : values[1],
			   values[2] == NULL ? "" : values[2]);
	if (row == NULL)
		html_error(page);
	else if (PQntuples(row) == 0)
	{
		page->status = MHD_HTTP_NOT_FOUND;
		html_empty(page, "There is no such worker that you may see",
				   "A worker is forgotten when it has not asked for work for "
				   "some time.");
	}
	else
		show_worker(page, values, row);
	PQclear(row);
}
