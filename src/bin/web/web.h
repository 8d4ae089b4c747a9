/*
 * web.h
 *	  What the files of tq-web offer to one another.
 *
 * One thread of libmicrohttpd reads requests and writes answers; a request for a
 * page waits for one of a few workers, which run the function of its route.
 * main.c has the options and the end.  http.c has the requests, session.c who is
 * who, database.c the connections and statements.  html.c writes what is read
 * from the database, and is the only one that escapes it; table.c and chart.c
 * have the components, picture.c what the database draws.  routes.c lists the
 * pages, pages_*.c are they.
 */
#ifndef TQ_WEB_H
#define TQ_WEB_H

#include <libpq-fe.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdarg.h>

#include "program.h"

#define EXIT_USAGE 2

#define ROLE_LENGTH 64  /* with its NUL, as NAMEDATALEN */
#define TOKEN_LENGTH 65 /* with its NUL: 32 random bytes in hexadecimal */
#define MASKED_LENGTH (2 * TOKEN_LENGTH - 1)
#define PARAMETERS_MAX 9 /* of a statement */
#define TOKEN_MARK '\1'  /* where a form has the token of the session */

typedef struct Page Page;
typedef struct Route Route;
typedef struct Access Access;
typedef struct Feed Feed;

/* ---- main.c: what the command line says ---- */

typedef struct Options
{
	const char *conninfo;
	const char *address; /* where to listen */
	int port;
	const char *certificate; /* files */
	const char *key;
	const char *role_header;
	const char *as; /* a role: no login, and nothing is changed */
	const char *metrics_token;
	const char *hosts[16]; /* names under which the page is known */
	int nhosts;
	const char *trusted[16]; /* addresses of proxies */
	int ntrusted;
	const char *scrapers[16]; /* addresses that may read /metrics */
	int nscrapers;
	bool read_only;
	int workers;
	int connections; /* of a role, at most */
	int clients;     /* connections of HTTP, at most */
	int idle;        /* seconds until a session ends */
} Options;

extern Options options;
extern Moment clock_now(void);

/* ---- fields.c: what a form or a query says ---- */

typedef struct Field
{
	char *name;
	char *value;
} Field;

typedef struct Fields
{
	char *text; /* in which names and values are */
	size_t length;
	Field *all;
	int n;
} Fields;

extern bool fields_read(Fields *fields, const char *text, size_t length);
extern void fields_free(Fields *fields);
extern const char *fields_get(const Fields *fields, const char *name);
extern void url_add(Buffer *url, const char *text);
extern char *url_of(const char *path, ...) __attribute__((sentinel));

/* ---- http.c: requests ---- */

typedef struct Region
{
	const char *id;
	size_t begin; /* in the page's body */
	size_t end;
} Region;

#define REGIONS_MAX 16

/* A request, and the answer to it.  One thread has it at a time. */
struct Page
{
	Page *next; /* of those that wait for a worker */
	struct MHD_Connection *http;
	const Route *route;
	bool post;
	bool is_live; /* regions are wanted only, for a feed */
	Feed *feed;
	char *path;
	bool is_cut;     /* by a NUL */
	bool is_refused; /* what it sends is not kept */
	size_t received; /* of that */
	size_t held;     /* for that, and for the answer */
	Page *next_holder;
	char *query_text;
	Fields query;
	Fields form;
	Buffer upload;
	char peer[INET6_ADDRSTRLEN];   /* who has connected */
	char client[INET6_ADDRSTRLEN]; /* for whom, if that is a proxy of ours */
	bool is_secure;                /* the browser speaks TLS */
	/* who asks */
	char session[TOKEN_LENGTH];
	char token[TOKEN_LENGTH];
	char masked[MASKED_LENGTH]; /* as this answer has it */
	char role[ROLE_LENGTH];
	Access *access;
	PGconn *connection;
	bool is_acting;  /* the connection, as that role */
	bool is_long;    /* its statements may take long */
	bool is_stopped; /* they are to end; set by another thread */
	/* the answer */
	unsigned int status;
	char *title;
	Buffer body; /* between the frame's parts */
	Region regions[REGIONS_MAX];
	int nregions;
	char *location;
	char *cookie;
	int retry_after;
	const char *type;
	const char *policy; /* of its content; NULL: that of a page */
	bool refreshes;     /* where there is no script */
	bool is_plain;      /* the body is the answer, without a frame */
	bool is_packed;
	bool is_done;
	struct MHD_Response *response;
	size_t length; /* of that */
	/* the last error of the database */
	char *error;
	char *detail;
	char *hint;
	char state[6];
};

extern void http_start(void);
extern void http_stop(void);
extern const char *page_query(const Page *page, const char *name);
extern const char *page_form(const Page *page, const char *name);
extern const char *page_header(const Page *page, const char *name);
extern bool page_takes_gzip(const Page *page);
extern void page_title(Page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
extern void page_redirect(Page *page, char *location);
extern void page_run(Page *page);
extern void page_free(Page *page);
extern Page *page_new(void);
extern bool http_submit(Page *page);
extern void http_nudge(void);

/* ---- clients.c: connections of browsers ---- */

typedef struct Client Client;

typedef enum ClientState
{
	CLIENT_WAITING, /* for a request, or the rest of it */
	CLIENT_ASKING,  /* we make the answer */
	CLIENT_READING,
	CLIENT_FOLLOWING, /* a stream */
	CLIENT_CLOSING
} ClientState;

extern Client *client_begin(int socket);
extern void client_end(Client *client);
extern void client_set(Client *client, ClientState state);
extern void clients_sweep(void);

/* ---- trust.c: addresses, names of hosts, origins ---- */

extern bool trust_reads_address(const char *text);
extern bool trust_has_address(const char *const *list, int n,
							  const char *address);
extern void trust_network(const char *address, char *network, size_t room);
extern bool trust_has_host(const char *host);
extern bool trust_has_origin(const Page *page);

/* ---- session.c: who is who ---- */

extern void session_token(char *token);
extern void session_mask(Page *page);
extern bool session_find(Page *page);
extern void session_login(Page *page);
extern void session_logout(Page *page);
extern void session_forget(const Access *access);
extern void session_sweep(void);
extern bool session_touch(const char *id, const char *role);
extern bool session_may_act(const Page *page);

/* ---- throttle.c: attempts to log in ---- */

extern int throttle_try(const char *role, const char *address);
extern void throttle_forgive(const char *role, const char *address);

/* ---- database.c: connections and statements ---- */

extern void database_start(void);
extern Access *database_unknown(void);
extern Access *database_logins(void);
extern Access *database_role(const char *role);
extern Access *database_join(const char *role, PGconn *connection);
extern void database_leave(Access *access);
extern void database_keep(Access *access);
extern bool database_wants_more(Access *access);
extern bool database_ready(Page *page);
extern bool database_take(Page *page);
extern void database_give(Page *page);
extern bool database_is_gone(const Access *access);
extern PGconn *database_connect(const char *user, const char *password);
extern PGresult *database_query(Page *page, const char *sql, int n,
								const char *const *values);
extern PGresult *database_call(Page *page, const char *sql, int n,
							   const char *const *values);
extern const char *database_name(void);
extern bool database_answers(void);

/* ---- html.c: text that is escaped, and the frame ---- */

extern void html(Page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
extern void html_count(Page *page, double number);
extern void html_rate(Page *page, double number);
extern void html_duration(Page *page, double seconds);
extern void html_time(Page *page, double at, double present);
extern void html_state(Page *page, const char *state);
extern void html_id(Page *page, const char *id, const char *url);
extern void html_find(Page *page, const char *name, const char *title);
extern void html_priorities(Page *page, const char *name, const char *chosen);
extern void html_json(Page *page, const char *json);
extern void html_error(Page *page);
extern void html_notice(Page *page, const char *kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
extern void html_empty(Page *page, const char *title, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
extern void html_form(Page *page, const char *action, bool asks);
extern void region_begin(Page *page, const char *id);
extern void region_end(Page *page);
extern void html_frame(Page *page, Buffer *out);
extern void html_with_token(const Page *page, const char *text, size_t length,
							Buffer *out);

/* ---- table.c: rows ---- */

typedef enum ColumnKind
{
	COLUMN_TEXT,
	COLUMN_ID,       /* of a task or group: short, to be copied */
	COLUMN_COUNT,    /* a whole number */
	COLUMN_RATE,     /* per second */
	COLUMN_TIME,     /* timestamptz */
	COLUMN_DURATION, /* interval */
	COLUMN_STATE,    /* a badge */
	COLUMN_FLAG,     /* its title as a badge, if it is true */
	COLUMN_JSON,
	COLUMN_SPARK, /* float8[] */
	COLUMN_NONE   /* for links only */
} ColumnKind;

typedef struct Column
{
	const char *name; /* in the result */
	const char *title;
	ColumnKind kind;
	const char *link; /* "/queue?name={task_queue_id}" */
	const char *hint; /* what it is, in words */
	bool hidden;      /* unless the reader wants it */
	bool minor;       /* hidden where the window is narrow */
	const char *unit; /* of a spark line */
} Column;

/* A list of columns ends with one without a name. */
typedef struct Table
{
	const char *id;
	const char *caption;
	const char *sql; /* constant: values are parameters */
	const Column *columns;
	const char *sort; /* a column, with "-" in front: descending */
	int limit;
	bool pick;  /* each row has a box with its first column */
	bool plain; /* neither sortable nor are columns hidden */
	const char *empty;
	const char *empty_hint;
	void (*buttons)(Page *page, const PGresult *rows, int row); /* or NULL */

	/* What is below; then a row whose first column is NULL is not shown. */
	void (*foot)(Page *page, const PGresult *rows);
} Table;

extern int table_show(Page *page, const Table *table, int n,
					  const char *const *values);
extern void table_part(Page *page, const char *id, const char *title,
					   const Table *table, int n, const char *const *values);
extern void table_facts(Page *page, const Column *columns, const PGresult *row,
						int at);
extern char *table_select(const char *sql, const Column *columns);
extern const char *row_get(const PGresult *result, int row, const char *name);
extern int row_end(const PGresult *result, const char *key);
extern double row_number(const PGresult *result, int row, const char *name);

/* ---- chart.c: pictures of numbers ---- */

typedef struct Series
{
	const char *column;
	const char *title;
	int colour; /* 1 to 6 */
} Series;

typedef struct Chart
{
	const char *title;
	const char *unit;
	const Series *series;
	bool is_time;  /* the numbers are seconds */
	bool is_whole; /* they have no fraction */
} Chart;

extern void chart_show(Page *page, const Chart *chart, const PGresult *rows);
extern void chart_runs(Page *page, const PGresult *rows);
extern void chart_spark(Page *page, const char *numbers, const char *unit);

/* ---- picture.c: pictures that the database draws ---- */

extern void picture_show(Page *page, const char *svg, const char *label);

/* ---- action.c: what can be done ---- */

extern bool action_is_possible(void);
extern const char *action_done(const Page *page);
extern bool action_is_here(const char *url);
extern void html_action(Page *page, const char *label, const char *name, ...)
	__attribute__((sentinel));
extern void html_advised(Page *page, const char *advice, const char *queue);
extern void page_do(Page *page);
extern void act_do(Page *page);

/* ---- jobs.c: actions on many tasks ---- */

extern void html_bulk(Page *page, const char *table, const char *filter,
					  const char *only);
extern void html_bulk_button(Page *page, const char *label, const char *action,
							 const char *filter);
extern void act_bulk(Page *page);
extern void page_job(Page *page);
extern void act_job(Page *page);
extern void jobs_stop(void);

/* ---- routes.c: the pages ---- */

struct Route
{
	const char *path;
	const char *title;  /* in the navigation, or NULL */
	const char *parent; /* what is current there */
	void (*show)(Page *page);
	void (*act)(Page *page); /* a POST */
	bool is_open;            /* without a login */
};

extern const Route routes[];
extern const Route *route_find(const char *path);

/* ---- live.c: pages that change while they are read ---- */

extern void live_start(void);
extern void live_stop(void);
extern void live_nudge(void);
extern bool live_open(Page *page);
extern void live_made(Page *page);
extern void page_live(Page *page);

/* ---- assets.c: what is inside ---- */

extern void asset_start(void);
extern struct MHD_Response *asset_find(const char *path, bool packed,
									   const char *known,
									   unsigned int *status);
extern const char *asset_path(const char *name);
extern bool asset_pack(Buffer *body);
extern void blocks_store(Buffer *blocks, const char *text, size_t length);
extern Buffer blocks_pack(const Buffer *text);

/* ---- pages_open.c: what needs no login ---- */

extern void page_home(Page *page);
extern void page_login(Page *page);
extern void page_metrics(Page *page);
extern void page_health_check(Page *page);

/* ---- pages_queues.c: queues, and one of them ---- */

extern void page_queues(Page *page);
extern void page_queue(Page *page);

/* ---- pages_tasks.c: tasks that a filter finds ---- */

extern const Column found_columns[];
extern void page_tasks(Page *page);

/* ---- page_task.c: one of them ---- */

extern void page_task(Page *page);
extern void page_artifact(Page *page);

/* ---- page_create.c: a new one ---- */

extern void page_create(Page *page);
extern void act_create(Page *page);

/* ---- pages_groups.c: groups, with their pictures ---- */

extern void page_groups(Page *page);
extern void page_group(Page *page);
extern void page_graph(Page *page);
extern void page_gantt(Page *page);
extern void page_report(Page *page);

/* ---- pages_failures.c: failures, dead letters ---- */

extern void page_failures(Page *page);
extern void page_dead_letters(Page *page);

/* ---- pages_work.c: recurring tasks, workers ---- */

extern void page_cron(Page *page);
extern void page_workers(Page *page);
extern void page_worker(Page *page);

/* ---- pages_server.c: messages, health, the audit trail ---- */

extern void page_messages(Page *page);
extern void page_message(Page *page);
extern void page_health(Page *page);
extern void page_audit(Page *page);

#endif
