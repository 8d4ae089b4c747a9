/*
 * database.c
 *	  Connections, by role, and statements.
 *
 * An access is the connections of a role.  Those of a person were made at a login,
 * by a password that is not kept, and are shared by the sessions of that role;
 * when the last is lost, so are the sessions.  The program's own can be made again,
 * and act as the role that a request names: they are one pool, of which each role
 * has an access with a limit of its own.  One lock, which no statement is run
 * under.  A connection has one user at a time.
 *
 * A statement is sent, and its result waited for, no longer than its own time and
 * some seconds: a server that is there and does not answer keeps no worker.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define KEYWORDS_MAX 64
#define IDLE_MAX 16
#define STATEMENT_TIME 2000 /* as in the settings */
#define CALL_TIME 10000
#define LONG_TIME 60000
#define GRACE 5000 /* for an answer to come, beyond that */
#define LOOK 200   /* at whether a statement is to stop */

struct Access
{
	Access *next;
	char role[ROLE_LENGTH];
	int users; /* sessions, and pages that are being made */
	int limit;
	int busy;
	int nidle;
	PGconn *idle[IDLE_MAX];
	Access *pool;  /* whose connections it takes, which act as its role */
	bool is_login; /* has no connections */
	bool is_gone;
};

static const char *const settings =
	"SET search_path = pg_catalog, pg_temp; SET TimeZone = 'UTC';"
	" SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres';"
	" SET statement_timeout = '2s'; SET lock_timeout = '1s';"
	" SET idle_in_transaction_session_timeout = '60s'; SET jit = off;"
	" SET extra_float_digits = 1; SET bytea_output = 'hex';"
	" SET default_transaction_read_only = on";

static void interrupt(const Page *page);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PQconninfoOption *parsed;
static const char *database;
static bool is_choosy; /* the conninfo says which server of several it is */
static Access own = {.users = 1};
static Access unknown = {.pool = &own, .users = 1};
static Access logins = {.is_login = true, .users = 1};
static Access *accesses; /* of roles */

/* ---- the conninfo ---- */

static const char *
value_of(const PQconninfoOption *option, const char *keyword)
{
	while (option->keyword != NULL && strcmp(option->keyword, keyword) != 0)
		option++;
	return option->val;
}

/*
 * Notes which database it is, as libpq finds it: by the conninfo, a service or the
 * environment, and otherwise by our own name.  A person who logs in would else have
 * that of the person's name.
 */
static void
find_database(void)
{
	const char *service = value_of(parsed, "service");
	const char *attributes;
	PQconninfoOption *defaults;

	if (service != NULL)
		setenv("PGSERVICE", service, 1);
	defaults = PQconndefaults();
	if (defaults == NULL)
		abort();
	database = value_of(parsed, "dbname");
	if (database == NULL)
		database = value_of(defaults, "dbname");
	if (database == NULL)
		database = value_of(parsed, "user");
	if (database == NULL)
		database = value_of(defaults, "user");
	database = copy_text(database == NULL ? "" : database);
	attributes = value_of(parsed, "target_session_attrs");
	if (attributes == NULL)
		attributes = value_of(defaults, "target_session_attrs");
	is_choosy = attributes != NULL && strcmp(attributes, "any") != 0;
	PQconninfoFree(defaults);
}

/* Reads the conninfo once; what a person enters is never a part of it. */
void
database_start(void)
{
	const char *conninfo = options.conninfo;
	char *message = NULL;
	char *alone = NULL;

	if (strchr(conninfo, '=') == NULL && strstr(conninfo, "://") == NULL &&
		*conninfo != '\0')
	{
		Buffer quoted = {0};

		buffer_put(&quoted, "dbname='");
		for (const char *at = conninfo; *at != '\0'; at++)
			buffer_put(&quoted, *at == '\'' || *at == '\\' ? "\\%c" : "%c",
					   *at);
		buffer_put(&quoted, "'");
		conninfo = alone = quoted.data;
	}
	parsed = PQconninfoParse(conninfo, &message);
	free(alone);
	if (parsed == NULL)
	{
		log_line(LOG_ERROR, NULL, "%s", message == NULL ? "" : message);
		exit(EXIT_USAGE);
	}
	find_database();
	unknown.limit = logins.limit = (options.workers + 3) / 4;
}

/* Returns whether a person's connection does not take it from the conninfo. */
static bool
is_personal(const char *keyword)
{
	static const char *const personal[] = {"user",    "password", "passfile",
										   "sslcert", "sslkey",   "options",
										   NULL};

	for (int i = 0; personal[i] != NULL; i++)
		if (strcmp(keyword, personal[i]) == 0)
			return true;
	return false;
}

/* ---- statements that are sent, and waited for ---- */

static bool
is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

static bool
is_stopped(const Page *page)
{
	return __atomic_load_n(&page->is_stopped, __ATOMIC_RELAXED);
}

/*
 * Waits until the next result is there, or the connection lost; false: it takes too
 * long.  The statement of a page that is to stop is interrupted again and again,
 * because the server ignores that before it has begun.
 */
static bool
wait_for(PGconn *connection, const Page *page, Moment end)
{
	for (;;)
	{
		int unsent = PQflush(connection);
		struct pollfd it = {.fd = PQsocket(connection), .events = POLLIN};

		if (PQstatus(connection) != CONNECTION_OK || unsent < 0 ||
			(unsent == 0 && !PQisBusy(connection)))
			return true;
		if (page != NULL && is_stopped(page))
		{
			end = end == NEVER ? clock_now() + GRACE : end;
			interrupt(page);
		}
		if (clock_now() > end)
			return false;
		if (unsent > 0)
			it.events |= POLLOUT;
		if (poll(&it, 1, LOOK) > 0 && (it.revents & ~POLLOUT) != 0 &&
			!PQconsumeInput(connection))
			return true;
	}
}

/*
 * Runs a statement, with parameters if there are any; returns the last result, which
 * is NULL if it took too long: then the connection is good for nothing more.
 */
static PGresult *
execute(PGconn *connection, const Page *page, const char *sql, int n,
		const char *const *values, Moment time)
{
	Moment end = time == NEVER ? NEVER : clock_now() + time + GRACE;
	PGresult *last = NULL;
	PGresult *next;
	int sent = n == 0 ? PQsendQuery(connection, sql)
					  : PQsendQueryParams(connection, sql, n, NULL, values,
										  NULL, NULL, 0);

	if (!sent)
		return PQmakeEmptyPGresult(connection, PGRES_FATAL_ERROR);
	do
	{
		if (!wait_for(connection, page, end))
		{
			PQclear(last);
			return NULL;
		}
		next = PQgetResult(connection);
		if (next != NULL)
		{
			PQclear(last);
			last = next;
		}
	} while (next != NULL);
	return last;
}

/* ---- connections ---- */

/* Gives a connection our settings; false: it has not taken them. */
static bool
has_settings(PGconn *connection)
{
	PGresult *result = execute(connection, NULL, settings, 0, NULL,
							   STATEMENT_TIME);
	bool good = is_good(result);

	if (!good)
		log_line(LOG_WARNING, NULL,
				 "a connection does not take its settings: %s",
				 PQerrorMessage(connection));
	PQclear(result);
	return good;
}

static void
ignore_notice(void *subject, const PGresult *result)
{
}

/*
 * Connects, as the conninfo says, or as a person.  User and password are values,
 * and the name of the database is not read as a conninfo.  NULL: the connection
 * would have had other settings than ours, such as no statement_timeout.
 */
PGconn *
database_connect(const char *user, const char *password)
{
	const char *names[KEYWORDS_MAX + 8];
	const char *values[KEYWORDS_MAX + 8];
	int n = 0;
	PGconn *connection;

	for (PQconninfoOption *option = parsed; option->keyword != NULL; option++)
		if (option->val != NULL && n < KEYWORDS_MAX &&
			(user == NULL || !is_personal(option->keyword)))
		{
			names[n] = option->keyword;
			values[n++] = option->val;
		}
	names[n] = "dbname", values[n++] = database;
	names[n] = "fallback_application_name", values[n++] = "tq-web " TQ_VERSION;
	names[n] = "client_encoding", values[n++] = "UTF8";
	names[n] = "connect_timeout", values[n++] = "5";
	names[n] = "tcp_user_timeout", values[n++] = "15000";
	if (user != NULL)
	{
		names[n] = "user", values[n++] = user;
		names[n] = "password", values[n++] = password;
	}
	names[n] = values[n] = NULL;
	connection = PQconnectdbParams(names, values, 0);
	if (connection == NULL)
		abort();
	PQsetNoticeReceiver(connection, ignore_notice, NULL);
	PQsetnonblocking(connection, 1);
	if (PQstatus(connection) == CONNECTION_OK && !has_settings(connection))
	{
		PQfinish(connection);
		return NULL;
	}
	return connection;
}

/* Returns whether our role can connect: of several servers, only so one is asked for
 * what the conninfo wants of it. */
static bool
ask_by_login(void)
{
	PGconn *connection = database_connect(NULL, NULL);
	bool good = PQstatus(connection) == CONNECTION_OK;

	PQfinish(connection);
	return good;
}

/* Returns whether the server takes connections; it is asked without a login. */
static bool
ask_server(void)
{
	const char *names[KEYWORDS_MAX + 3];
	const char *values[KEYWORDS_MAX + 3];
	int n = 0;

	for (PQconninfoOption *option = parsed; option->keyword != NULL; option++)
		if (option->val != NULL && n < KEYWORDS_MAX)
		{
			names[n] = option->keyword;
			values[n++] = option->val;
		}
	names[n] = "dbname", values[n++] = database;
	names[n] = "connect_timeout", values[n++] = "3";
	names[n] = values[n] = NULL;
	return PQpingParams(names, values, 0) == PQPING_OK;
}

/* Likewise, as it was within a second: so any number of requests asks once. */
bool
database_answers(void)
{
	static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
	static Moment asked = -1000;
	static bool answers;
	bool good;

	pthread_mutex_lock(&asking);
	if (clock_now() - asked >= 1000)
	{
		answers = is_choosy ? ask_by_login() : ask_server();
		asked = clock_now();
	}
	good = answers;
	pthread_mutex_unlock(&asking);
	return good;
}

/* Returns the name of the database, for the page's head. */
const char *
database_name(void)
{
	return database;
}

/* ---- accesses ---- */

/* That of requests without a login: few at a time. */
Access *
database_unknown(void)
{
	return &unknown;
}

/* That of requests which make a connection, as few. */
Access *
database_logins(void)
{
	return &logins;
}

/* Adds an access to the list; with the lock held. */
static Access *
add_access(const char *role, Access *pool)
{
	Access *access = allocate(sizeof(Access));

	strncpy(access->role, role, ROLE_LENGTH - 1);
	access->limit = options.connections;
	access->pool = pool;
	access->next = accesses;
	accesses = access;
	return access;
}

/* Finds that of a role, with connections of its own or of a pool; likewise. */
static Access *
find_access(const char *role, const Access *pool)
{
	Access *access = accesses;

	while (access != NULL && (access->is_gone || access->pool != pool ||
							  strcmp(access->role, role) != 0))
		access = access->next;
	return access;
}

/* That by which our connections act as a role, with one user more. */
Access *
database_role(const char *role)
{
	Access *access;

	pthread_mutex_lock(&lock);
	access = find_access(role, &own);
	if (access == NULL)
		access = add_access(role, &own);
	access->users++;
	pthread_mutex_unlock(&lock);
	return access;
}

/* Adds a connection to those of a role, and a session to its users. */
Access *
database_join(const char *role, PGconn *connection)
{
	Access *access;

	pthread_mutex_lock(&lock);
	access = find_access(role, NULL);
	if (access == NULL)
		access = add_access(role, NULL);
	access->users++;
	if (access->nidle + access->busy < access->limit)
	{
		access->idle[access->nidle++] = connection;
		connection = NULL;
	}
	pthread_mutex_unlock(&lock);
	PQfinish(connection);
	return access;
}

/* Returns whether a role has one connection only, which an action would take. */
bool
database_wants_more(Access *access)
{
	bool wants;

	pthread_mutex_lock(&lock);
	wants = access->nidle + access->busy < 2 && access->limit > 1;
	pthread_mutex_unlock(&lock);
	return wants;
}

/* Takes an access from the list; with the lock held. */
static void
unlink_access(const Access *access)
{
	for (Access **at = &accesses; *at != NULL; at = &(*at)->next)
		if (*at == access)
		{
			*at = access->next;
			return;
		}
}

/* Another user of an access. */
void
database_keep(Access *access)
{
	pthread_mutex_lock(&lock);
	access->users++;
	pthread_mutex_unlock(&lock);
}

/* One user less; the last one ends the connections. */
void
database_leave(Access *access)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --access->users == 0;
	if (last)
		unlink_access(access);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	for (int i = 0; i < access->nidle; i++)
		PQfinish(access->idle[i]);
	free(access);
}

/*
 * Takes a connection for a page; false: there is none now.  One of our own may be
 * missing yet, and is made when it is used; those that are lost for good are taken,
 * and the page says so.
 */
bool
database_take(Page *page)
{
	Access *access = page->access;
	Access *from = access->pool == NULL ? access : access->pool;
	bool good;

	pthread_mutex_lock(&lock);
	good = access->pool != NULL || access->is_login
			   ? access->busy < access->limit
			   : access->nidle > 0 || access->is_gone;
	if (good && from->nidle > 0)
		page->connection = from->idle[--from->nidle];
	access->busy += good;
	pthread_mutex_unlock(&lock);
	return good;
}

/* Ends the idle connections of a role whose server has gone; with the lock held. */
static void
end_lost(Access *access)
{
	int kept = 0;

	for (int i = 0; i < access->nidle; i++)
	{
		PGconn *connection = access->idle[i];

		/* the first may read what the server has said last */
		if (PQconsumeInput(connection) && PQconsumeInput(connection) &&
			PQstatus(connection) == CONNECTION_OK)
			access->idle[kept++] = connection;
		else
			PQfinish(connection);
	}
	access->nidle = kept;
}

/*
 * Gives it back, unless it is lost, or in a transaction.  Where one of a person is lost,
 * the others may be: then the session is over at once, and not after one page for each.
 */
void
database_give(Page *page)
{
	Access *access = page->access;
	Access *to = access->pool == NULL ? access : access->pool;
	PGconn *connection = page->connection;
	bool lost = false;

	page->connection = NULL;
	page->is_acting = false;
	if (connection != NULL && PQtransactionStatus(connection) != PQTRANS_IDLE)
	{
		PQfinish(connection);
		connection = NULL;
	}
	if (connection != NULL)
		PQsetNoticeReceiver(connection, ignore_notice, NULL);
	pthread_mutex_lock(&lock);
	access->busy--;
	if (connection != NULL && to->nidle < IDLE_MAX)
		to->idle[to->nidle++] = connection;
	else if (connection != NULL)
		PQfinish(connection);
	if (access->pool == NULL && connection == NULL)
		end_lost(access);
	if (access->pool == NULL && !access->is_login && !access->is_gone &&
		access->nidle + access->busy == 0)
		access->is_gone = lost = true;
	pthread_mutex_unlock(&lock);
	if (lost)
	{
		log_line(LOG_WARNING, NULL, "the connections of role %s are lost",
				 access->role);
		session_forget(access);
	}
}

/* Returns whether the connections of a role are lost for good. */
bool
database_is_gone(const Access *access)
{
	bool gone;

	pthread_mutex_lock(&lock);
	gone = access->is_gone;
	pthread_mutex_unlock(&lock);
	return gone;
}

/* ---- statements ---- */

static char *
field_of(const PGresult *result, int field)
{
	return copy_text(PQresultErrorField(result, field));
}

/* Says that there is no database, once in a while. */
static void
log_silence(const char *message)
{
	static Moment said = -30000;
	Moment present = clock_now();
	char *clean;

	if (present - __atomic_load_n(&said, __ATOMIC_RELAXED) < 30000)
		return;
	__atomic_store_n(&said, present, __ATOMIC_RELAXED);
	clean = clean_text(message, strlen(message));
	clean[strcspn(clean, "\n")] = '\0';
	log_line(LOG_WARNING, NULL, "the database does not answer: %s", clean);
	free(clean);
}

static void
forget_error(Page *page)
{
	free(page->error);
	free(page->detail);
	free(page->hint);
	page->error = page->detail = page->hint = NULL;
	memset(page->state, 0, sizeof(page->state));
}

/* Keeps what the database has said for the reader. */
static void
keep_error(Page *page, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = page->connection == NULL
							  ? ""
							  : PQerrorMessage(page->connection);

	forget_error(page);
	page->error = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
	page->detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
	page->hint = field_of(result, PG_DIAG_MESSAGE_HINT);
	snprintf(page->state, sizeof(page->state), "%s",
			 state == NULL ? "08006" : state);
	if (page->error == NULL)
	{
		log_silence(message);
		page->error = copy_text("the database does not answer");
		page->hint = copy_text("It is being started, or cannot be reached. "
							   "The page looks again.");
	}
}

/* Ends a connection that cannot be used any more. */
static void
drop(Page *page)
{
	PQfinish(page->connection);
	page->connection = NULL;
	page->is_acting = false;
}

/* Runs a statement; NULL: the page has the error. */
static PGresult *
run(Page *page, const char *sql, int n, const char *const *values, Moment time)
{
	PGresult *result = execute(page->connection, page, sql, n, values, time);

	if (is_good(result))
		return result;
	keep_error(page, result);
	if (result == NULL)
		drop(page);
	PQclear(result);
	return NULL;
}

/* Runs statements without parameters, for what follows. */
static bool
prepare_for(Page *page, const char *sql)
{
	PGresult *result = run(page, sql, 0, NULL, STATEMENT_TIME);

	PQclear(result);
	return result != NULL;
}

/*
 * Makes of a connection what it was, for whom has it next: a second time if the
 * first was interrupted.  One that stays otherwise is used no more.
 */
static void
restore(Page *page)
{
	for (int attempt = 0; page->connection != NULL && attempt < 2; attempt++)
	{
		PGresult *result = execute(page->connection, NULL,
								   "SET default_transaction_read_only = on;"
								   " SET statement_timeout = '2s'",
								   0, NULL, STATEMENT_TIME);
		bool good = is_good(result);

		PQclear(result);
		if (good)
			return;
	}
	drop(page);
}

/* Has our connection act as the role of the page. */
static bool
act_as(Page *page)
{
	char *name = PQescapeIdentifier(page->connection, page->role,
									strlen(page->role));
	char *sql = format_text("SET ROLE %s",
							page->role[0] == '\0' || name == NULL ? "none"
																  : name);
	bool good = name != NULL && prepare_for(page, sql);

	PQfreemem(name);
	free(sql);
	return good;
}

/*
 * Has a connection of ours that acts as the role of the page; one that was lost is
 * made again, once.
 */
static bool
connect_own(Page *page)
{
	bool is_new = false;

	if (page->is_acting && PQstatus(page->connection) == CONNECTION_OK)
		return true;
	for (;;)
	{
		if (PQstatus(page->connection) == CONNECTION_OK && act_as(page))
		{
			page->is_acting = true;
			return true;
		}
		if (is_new || PQstatus(page->connection) == CONNECTION_OK)
			break;
		drop(page);
		forget_error(page);
		page->connection = database_connect(NULL, NULL);
		is_new = true;
	}
	if (PQstatus(page->connection) != CONNECTION_OK)
		keep_error(page, NULL);
	return false;
}

/* Has a connection that acts as the role of the page; false: the page has the error. */
bool
database_ready(Page *page)
{
	if (page->access->pool != NULL)
		return connect_own(page);
	if (page->connection != NULL)
		return true;
	keep_error(page, NULL);
	return false;
}

/* Runs a statement that reads; it may take longer for a page that is long. */
static PGresult *
read_by(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result;

	if (!page->is_long)
		return run(page, sql, n, values, STATEMENT_TIME);
	if (!prepare_for(page, "SET statement_timeout = '60s'"))
		return NULL;
	result = run(page, sql, n, values, LONG_TIME);
	restore(page);
	return result;
}

/*
 * Reads by a statement.  NULL: the page has the error.  A connection of ours that
 * was lost since its last use is made again, once.
 */
PGresult *
database_query(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result;

	if (!database_ready(page))
		return NULL;
	result = read_by(page, sql, n, values);
	if (result != NULL || page->access->pool == NULL ||
		page->connection == NULL ||
		PQstatus(page->connection) == CONNECTION_OK)
		return result;
	forget_error(page);
	return database_ready(page) ? read_by(page, sql, n, values) : NULL;
}

/* Changes something by a statement, once; never where nothing can be changed. */
PGresult *
database_call(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result = NULL;

	if (!action_is_possible() || is_stopped(page) || !database_ready(page))
		return NULL;
	if (prepare_for(page, page->is_long
							  ? "SET default_transaction_read_only = off;"
								" SET statement_timeout = 0"
							  : "SET default_transaction_read_only = off;"
								" SET statement_timeout = '10s'"))
		result = run(page, sql, n, values, page->is_long ? NEVER : CALL_TIME);
	restore(page);
	return result;
}

/*
 * Has another connection of the role cancel what runs on that of a page: unlike
 * PQcancel() it waits no longer than a statement, and is encrypted.
 */
static void
interrupt(const Page *page)
{
	Page *other = page_new();
	char *process = format_text("%d", PQbackendPID(page->connection));
	const char *values[] = {process};

	other->access = page->access;
	database_keep(other->access);
	if (database_take(other))
	{
		PQclear(
			database_query(other, "SELECT pg_cancel_backend($1)", 1, values));
		database_give(other);
	}
	page_free(other);
	free(process);
}
