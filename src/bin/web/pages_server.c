/*
 * pages_server.c
 *	  Messages and who reads them, health, the audit trail.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

/* ---- messages ---- */

#define EXCHANGES                                                             \
	"task-defined", "task-pending", "task-running", "artifact-created",       \
		"task-completed", "task-failed", "task-exception",                    \
		"task-group-resolved", "task-group-sealed", "task-priority-changed",  \
		"task-group-priority-changed", "task-alert", "task-progress"

static const Column message_columns[] =
	{{.name = "id",
	  .title = "Id",
	  .kind = COLUMN_COUNT,
	  .link = "/message?id={id}"},
	 {.name = "published", .title = "Published", .kind = COLUMN_TIME},
	 {.name = "exchange", .title = "Exchange", .kind = COLUMN_TEXT},
	 {.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "run", .title = "Run", .kind = COLUMN_TEXT},
	 {.name = "task_queue_id",
	  .title = "Queue",
	  .kind = COLUMN_TEXT,
	  .link = "/queue?name={task_queue_id}"},
	 {.name = "routing_key", .title = "Routing key", .kind = COLUMN_TEXT},
	 {.name = "cc", .title = "CC", .kind = COLUMN_TEXT, .hidden = true},
	 {.name = "payload",
	  .title = "Payload",
	  .kind = COLUMN_JSON,
	  .hidden = true},
	 {.name = NULL}};

/* The last of the log, or what comes before an id; greatest() would ignore a NULL. */
#define LOOKED_THROUGH                                                        \
	"tq.messages(nullif($1, ''), coalesce(nullif($2, ''), '#'), CASE WHEN"    \
	" $3::bigint IS NULL THEN -1000 ELSE greatest($3::bigint - 1001, 0) END," \
	" 1000) AS m WHERE $3 IS NULL OR m.id < $3::bigint"

static const Table message_table = {
	.id = "messages",
	.caption = "Messages",
	.sql =
		"SELECT m.id, m.published, m.exchange, m.payload #>>"
		" '{status,taskId}' AS task_id, m.payload ->> 'runId' AS run,"
		" m.payload #>> '{status,taskQueueId}' AS task_queue_id,"
		" m.routing_key, array_to_string(m.cc, ' ') AS cc, m.payload FROM " LOOKED_THROUGH,
	.columns = message_columns,
	.sort = "-id",
	.limit = 200,
	.empty = "None of the last 1,000 messages is like that",
	.empty_hint = "A pattern has the words of a routing key with * for one "
				  "and # for any number: primary.*.*.*.*.shop.#",
};

static const Column subscription_columns[] =
	{{.name = "name", .title = "Subscription", .kind = COLUMN_TEXT},
	 {.name = "alarm", .title = "Alert", .kind = COLUMN_STATE},
	 {.name = "lag",
	  .title = "Lag",
	  .kind = COLUMN_COUNT,
	  .hint = "ids of the log since the last that was acknowledged"},
	 {.name = "oldest_unread", .title = "Oldest unread", .kind = COLUMN_TIME},
	 {.name = "acked_at", .title = "Acknowledged", .kind = COLUMN_TIME},
	 {.name = "lost_before",
	  .title = "Lost before",
	  .kind = COLUMN_COUNT,
	  .hint = "the log was kept no longer"},
	 {.name = "bindings", .title = "Bindings", .kind = COLUMN_TEXT},
	 {.name = "creator", .title = "Creator", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static void
subscription_buttons(Page *page, const PGresult *rows, int row)
{
	html_action(page, "End …", "unsubscribe", "name",
				row_get(rows, row, "name"), NULL);
}

static const Table subscription_table = {
	.id = "subscriptions",
	.caption = "Subscriptions",
	.sql = "SELECT name, CASE WHEN lost_before IS NOT NULL THEN 'lost' END AS"
		   " alarm, last_id - acked_id AS lag, oldest_unread, acked_at,"
		   " lost_before, array_to_string(bindings, ', ') AS bindings, creator"
		   " FROM tq.subscription_overview",
	.columns = subscription_columns,
	.sort = "-lag",
	.limit = 200,
	.empty = "Nothing reads the messages by a subscription",
	.empty_hint = "SELECT tq.subscribe('bill', 'task-completed', "
				  "'primary.#'), then tq.fetch('bill') and tq.ack().",
	.buttons = subscription_buttons,
};

static void
show_message_form(Page *page, const char *exchange, const char *pattern)
{
	static const char *const exchanges[] = {EXCHANGES};

	html(page, "<form class=find role=search><label for=exchange class=away>"
			   "Exchange</label><select id=exchange name=exchange><option "
			   "value=\"\">All exchanges</option>");
	for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++)
		html(page, "<option%s>%s</option>",
			 exchange != NULL && strcmp(exchange, exchanges[i]) == 0
				 ? " selected"
				 : "",
			 exchanges[i]);
	html(page,
		 "</select><label for=pattern class=away>Pattern of the routing "
		 "key</label><input id=pattern name=pattern value=\"%s\" "
		 "placeholder=\"Pattern of the routing key: #\"><button>Find"
		 "</button></form>",
		 pattern == NULL ? "" : pattern);
}

/* Links to what was published before, or to the newest. */
static void
show_message_links(Page *page, const char *const *values, const char *last)
{
	char *url;

	html(page, "<p class=buttons>");
	if (values[2] != NULL)
	{
		url = url_of("/messages", "exchange", values[0], "pattern", values[1],
					 NULL);
		html(page, "<a class=button href=\"%s\">Newest</a>", url);
		free(url);
	}
	if (last != NULL)
	{
		url = url_of("/messages", "exchange", values[0], "pattern", values[1],
					 "before", last, NULL);
		html(page, "<a class=button href=\"%s\">Before these</a>", url);
		free(url);
	}
	html(page, "</p>");
}

/* The id before which the next page is; NULL: the log begins there. */
static PGresult *
find_earlier(Page *page, const char *const *values)
{
	return database_query(
		page,
		"SELECT CASE WHEN count(*) >= 200 THEN (array_agg(m.id ORDER BY m.id"
		" DESC))[200] ELSE greatest(min(m.id), 1) END AS first FROM " LOOKED_THROUGH,
		3, values);
}

/* /messages?exchange=task-failed&pattern=primary.%23&before=1000 */
void
page_messages(Page *page)
{
	const char *exchange = page_query(page, "exchange");
	const char *pattern = page_query(page, "pattern");
	const char *values[] = {exchange == NULL ? "" : exchange,
							pattern == NULL ? "" : pattern,
							page_query(page, "before")};
	PGresult *earlier;

	page_title(page, "Messages");
	html(page, "<h2>Subscriptions</h2>");
	region_begin(page, "readers");
	table_show(page, &subscription_table, 0, NULL);
	region_end(page);
	html(page, "<h2>Log</h2>");
	show_message_form(page, exchange, pattern);
	region_begin(page, "log");
	table_show(page, &message_table, 3, values);
	region_end(page);
	earlier = find_earlier(page, values);
	if (earlier != NULL)
		show_message_links(page, values, row_get(earlier, 0, "first"));
	PQclear(earlier);
}

/* /message?id=17 */
void
page_message(Page *page)
{
	const char *values[] = {page_query(page, "id")};
	char *sql = table_select(
		"SELECT m.id, m.published, m.exchange, m.routing_key, m.cc, m.payload,"
		" m.payload #>> '{status,taskId}' AS task_id,"
		" m.payload #>> '{status,taskQueueId}' AS"
		" task_queue_id, m.payload ->> 'runId' AS run"
		" FROM tq.message($1::bigint) AS m",
		message_columns);
	PGresult *row = database_query(page, sql, 1, values);

	free(sql);
	page_title(page, "Message %s", values[0] == NULL ? "" : values[0]);
	if (row == NULL)
	{
		if (strcmp(page->state, "TQ404") == 0)
			page->status = MHD_HTTP_NOT_FOUND;
		html_error(page);
		return;
	}
	table_facts(page, message_columns, row, 0);
	PQclear(row);
	row = database_query(
		page, "SELECT jsonb_pretty(payload) FROM tq.message($1::bigint)", 1,
		values);
	html(page, "<h2>Payload</h2>");
	if (row != NULL && !PQgetisnull(row, 0, 0))
		html_json(page, PQgetvalue(row, 0, 0));
	PQclear(row);
}

/* ---- health ---- */

static const Column check_columns[] =
	{{.name = "name", .title = "Check", .kind = COLUMN_TEXT},
	 {.name = "state", .title = "State", .kind = COLUMN_STATE},
	 {.name = "detail", .title = "What it found", .kind = COLUMN_TEXT},
	 {.name = "hint", .title = "What to do", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Table check_table = {
	.id = "checks",
	.caption = "Checks",
	.sql =
		"SELECT name, CASE WHEN ok THEN 'good' ELSE 'attention' END AS state,"
		" detail, hint FROM tq.health() ORDER BY ok",
	.columns = check_columns,
	.plain = true,
	.empty = "There are no checks",
};

static const Column step_columns[] =
	{{.name = "step", .title = "Step", .kind = COLUMN_TEXT},
	 {.name = "state", .title = "State", .kind = COLUMN_TEXT},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "batches",
	  .title = "Batches",
	  .kind = COLUMN_COUNT,
	  .hidden = true},
	 {.name = "last_at", .title = "Last", .kind = COLUMN_TIME},
	 {.name = "last_late", .title = "Late", .kind = COLUMN_DURATION},
	 {.name = "max_late", .title = "Latest", .kind = COLUMN_DURATION},
	 {.name = "failures", .title = "Failures", .kind = COLUMN_COUNT},
	 {.name = "postponed", .title = "Postponed", .kind = COLUMN_COUNT},
	 {.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Table step_table = {
	.id = "maintenance",
	.caption = "Maintenance",
	.sql = "SELECT * FROM tq.maintenance_overview",
	.columns = step_columns,
	.sort = "step",
	.empty = "Maintenance has not begun",
	.empty_hint = "It begins with the first call that writes.",
};

static const Column postponed_columns[] =
	{{.name = "task_id",
	  .title = "Task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "step", .title = "Step", .kind = COLUMN_TEXT},
	 {.name = "failures", .title = "Failures", .kind = COLUMN_COUNT},
	 {.name = "since", .title = "Since", .kind = COLUMN_TIME},
	 {.name = "next_attempt", .title = "Next attempt", .kind = COLUMN_TIME},
	 {.name = "error", .title = "Error", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Table postponed_table = {
	.id = "postponed",
	.caption = "Tasks for which a step failed",
	.sql = "SELECT * FROM tq.postponed_overview",
	.columns = postponed_columns,
	.sort = "-failures",
	.limit = 100,
	.empty = "No step of maintenance has failed for a task",
};

static const Column lock_columns[] =
	{{.name = "pid", .title = "Session", .kind = COLUMN_TEXT},
	 {.name = "role", .title = "Role", .kind = COLUMN_TEXT},
	 {.name = "application", .title = "Application", .kind = COLUMN_TEXT},
	 {.name = "waits", .title = "Waits for", .kind = COLUMN_TEXT},
	 {.name = "blockers", .title = "Of sessions", .kind = COLUMN_TEXT},
	 {.name = "since", .title = "Statement began", .kind = COLUMN_TIME},
	 {.name = "query", .title = "Statement", .kind = COLUMN_TEXT},
	 {.name = NULL}};

static const Table lock_table = {
	.id = "locks",
	.caption = "Sessions that wait for a lock",
	.sql =
		"SELECT pid::text, usename AS role, application_name AS application,"
		" wait_event AS waits, array_to_string(pg_blocking_pids(pid), ', ')"
		" AS blockers, query_start AS since, query FROM pg_stat_activity"
		" WHERE wait_event_type = 'Lock' AND datname = current_database()",
	.columns = lock_columns,
	.sort = "since",
	.limit = 100,
	.empty = "No session waits for a lock",
};

static const Column size_columns[] =
	{{.name = "relation", .title = "Table", .kind = COLUMN_TEXT},
	 {.name = "size",
	  .title = "MB",
	  .kind = COLUMN_RATE,
	  .hint = "with its indexes"},
	 {.name = "live", .title = "Rows", .kind = COLUMN_COUNT},
	 {.name = "dead", .title = "Dead rows", .kind = COLUMN_COUNT},
	 {.name = "vacuumed", .title = "Vacuumed", .kind = COLUMN_TIME},
	 {.name = NULL}};

static const Table size_table = {
	.id = "sizes",
	.caption = "Sizes",
	.sql = "SELECT s.relname AS relation, pg_total_relation_size(s.relid) /"
		   " 1048576.0 AS size, s.n_live_tup AS live, s.n_dead_tup AS dead,"
		   " greatest(s.last_vacuum, s.last_autovacuum) AS vacuumed FROM"
		   " pg_stat_all_tables AS s WHERE s.schemaname = 'tq_internal'",
	.columns = size_columns,
	.sort = "-size",
	.limit = 15,
	.empty = "There are no tables",
};

static const Column version_columns[] =
	{{.name = "tq", .title = "tq", .kind = COLUMN_TEXT},
	 {.name = "sql", .title = "SQL", .kind = COLUMN_TEXT},
	 {.name = "server", .title = "PostgreSQL", .kind = COLUMN_TEXT},
	 {.name = "size", .title = "Database", .kind = COLUMN_TEXT},
	 {.name = "started", .title = "Server started", .kind = COLUMN_TIME},
	 {.name = NULL}};

static void
show_versions(Page *page)
{
	char *sql = table_select(
		"SELECT max(m.library_version) AS tq, max(m.sql_version) AS sql,"
		" current_setting('server_version') AS server, pg_size_pretty("
		"pg_database_size(current_database())) AS size,"
		" pg_postmaster_start_time() AS started FROM tq.maintenance_overview"
		" AS m",
		version_columns);
	PGresult *row = database_query(page, sql, 0, NULL);

	free(sql);
	if (row == NULL)
		html_error(page);
	else
		table_facts(page, version_columns, row, 0);
	PQclear(row);
}

/* /health */
void
page_health(Page *page)
{
	page_title(page, "Health");
	show_versions(page);
	table_part(page, "all", "Checks", &check_table, 0, NULL);
	table_part(page, "steps", "Maintenance", &step_table, 0, NULL);
	table_part(page, "failed", "Postponed", &postponed_table, 0, NULL);
	table_part(page, "waits", "Locks", &lock_table, 0, NULL);
	html(page, "<h2>Sizes</h2>");
	table_show(page, &size_table, 0, NULL);
}

/* ---- the audit trail ---- */

static const Column audit_columns[] =
	{{.name = "at", .title = "At", .kind = COLUMN_TIME},
	 {.name = "role", .title = "Role", .kind = COLUMN_TEXT},
	 {.name = "session_role",
	  .title = "Session's role",
	  .kind = COLUMN_TEXT,
	  .hidden = true},
	 {.name = "clients",
	  .title = "Clients",
	  .kind = COLUMN_TEXT,
	  .hidden = true},
	 {.name = "function", .title = "Call", .kind = COLUMN_TEXT},
	 {.name = "tasks", .title = "Tasks", .kind = COLUMN_COUNT},
	 {.name = "task_id",
	  .title = "First task",
	  .kind = COLUMN_ID,
	  .link = "/task?id={task_id}"},
	 {.name = "arguments", .title = "Arguments", .kind = COLUMN_JSON},
	 {.name = "id", .title = "Id", .kind = COLUMN_COUNT, .hidden = true},
	 {.name = NULL}};

/* Only the last of it is searched, which costs the same however long it is. */
static const Table audit_table = {
	.id = "audit",
	.caption = "Audit trail",
	.sql = "SELECT a.at, a.role, a.session_role, array_to_string(a.client_ids,"
		   " ', ') AS clients, a.function, cardinality(a.task_ids) AS tasks,"
		   " a.task_ids[1] AS task_id, a.arguments, a.id FROM (SELECT * FROM"
		   " tq.audit ORDER BY at DESC LIMIT 10000) AS a WHERE ($1 = '' OR"
		   " a.role = $1 OR a.session_role = $1) AND ($2 = '' OR a.function ="
		   " $2) AND ($3 = '' OR $3 = ANY (a.task_ids::text[]))",
	.columns = audit_columns,
	.sort = "-at",
	.limit = 200,
	.empty = "The last 10,000 calls of the trail have none like that",
	.empty_hint = "The setting tq.audit says which calls are recorded.",
};

/* /audit?role=ana&function=cancel_task&task=... */
void
page_audit(Page *page)
{
	static const char *const names[] = {"role", "function", "task"};
	static const char *const titles[] = {"Role", "Call", "Task"};
	const char *values[3];

	page_title(page, "Audit");
	html(page, "<form class=find role=search>");
	for (int i = 0; i < 3; i++)
	{
		const char *value = page_query(page, names[i]);

		values[i] = value == NULL ? "" : value;
		html(page,
			 "<label for=%s class=away>%s</label><input id=%s name=%s "
			 "value=\"%s\" placeholder=\"%s\">",
			 names[i], titles[i], names[i], names[i], values[i], titles[i]);
	}
	html(page, "<button>Find</button></form>");
	region_begin(page, "all");
	table_show(page, &audit_table, 3, values);
	region_end(page);
}
