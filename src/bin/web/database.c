/*
 * database.c
 *	  Connections, by role, and statements.
 *
 * An access is the connections of a role.  Those of a person were made at a login,
 * by a password that is not kept, and are shared by the sessions of that role;
 * when the last is lost, so are the sessions.  The program's own can be made again,
 * and act as the role that a request names.  One lock, which no statement is run
 * under.  A connection has one user at a time.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define KEYWORDS_MAX 64
#define IDLE_MAX 16
#define LOGINS_MAX 4

struct Access
{
	Access *next;
	char role[ROLE_LENGTH];
	int users; /* sessions, and pages that are being made */
	int limit;
	int busy;
	int nidle;
	PGconn *idle[IDLE_MAX];
	bool is_own;
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PQconninfoOption *parsed;
static Access own = {.is_own = true, .users = 1};
static Access logins = {.is_login = true, .users = 1, .limit = LOGINS_MAX};
static Access *accesses; /* of persons */

/* ---- connections ---- */

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
	own.limit = options.connections;
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

static void
ignore_notice(void *subject, const PGresult *result)
{
}

/*
 * Connects, as the conninfo says, or as a person.  User and password are values,
 * and the name of the database is not read as a conninfo.
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
	if (PQstatus(connection) == CONNECTION_OK)
		PQclear(PQexec(connection, settings));
	return connection;
}

/* Returns whether the server takes connections; it is asked without a login. */
bool
database_answers(void)
{
	const char *names[KEYWORDS_MAX + 2];
	const char *values[KEYWORDS_MAX + 2];
	int n = 0;

	for (PQconninfoOption *option = parsed; option->keyword != NULL; option++)
		if (option->val != NULL && n < KEYWORDS_MAX)
		{
			names[n] = option->keyword;
			values[n++] = option->val;
		}
	names[n] = "connect_timeout", values[n++] = "3";
	names[n] = values[n] = NULL;
	return PQpingParams(names, values, 0) == PQPING_OK;
}

/* Returns the name of the database, for the page's head. */
const char *
database_name(void)
{
	for (PQconninfoOption *option = parsed; option->keyword != NULL; option++)
		if (strcmp(option->keyword, "dbname") == 0 && option->val != NULL)
			return option->val;
	return getenv("PGDATABASE") == NULL ? "" : getenv("PGDATABASE");
}

/* ---- accesses ---- */

Access *
database_own(void)
{
	return &own;
}

/* That of requests which make a connection: few at a time. */
Access *
database_logins(void)
{
	return &logins;
}

/* Adds a connection to those of a role, and a session to its users. */
Access *
database_join(const char *role, PGconn *connection)
{
	Access *access;

	pthread_mutex_lock(&lock);
	for (access = accesses; access != NULL; access = access->next)
		if (!access->is_gone && strcmp(access->role, role) == 0)
			break;
	if (access == NULL)
	{
		access = allocate(sizeof(Access));
		strncpy(access->role, role, ROLE_LENGTH - 1);
		access->limit = options.connections;
		access->next = accesses;
		accesses = access;
	}
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

/* Returns whether a request would have a connection now. */
bool
database_may_take(Access *access)
{
	bool may;

	pthread_mutex_lock(&lock);
	may = access->is_own || access->is_login
			  ? access->busy < access->limit
			  : access->nidle > 0 || access->is_gone;
	pthread_mutex_unlock(&lock);
	return may;
}

/*
 * Returns whether there is a connection for what takes long, beside that of the
 * page which asks.
 */
bool
database_may_spare(Access *access)
{
	bool may;

	pthread_mutex_lock(&lock);
	may = access->is_own ? access->busy < access->limit : access->nidle > 0;
	pthread_mutex_unlock(&lock);
	return may;
}

/* Takes a connection for a page, if it may; one of our own may be missing yet. */
void
database_take(Page *page)
{
	Access *access = page->access;

	pthread_mutex_lock(&lock);
	if (access->nidle > 0)
		page->connection = access->idle[--access->nidle];
	access->busy++;
	pthread_mutex_unlock(&lock);
}

/* Gives it back, unless it is lost, or in a transaction. */
void
database_give(Page *page)
{
	Access *access = page->access;
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
	if (connection != NULL && access->nidle < IDLE_MAX)
		access->idle[access->nidle++] = connection;
	else if (connection != NULL)
		PQfinish(connection);
	if (!access->is_own && !access->is_login && !access->is_gone &&
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

/* Keeps what the database has said for the reader. */
static void
keep_error(Page *page, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = page->connection == NULL
							  ? ""
							  : PQerrorMessage(page->connection);

	free(page->error);
	free(page->detail);
	free(page->hint);
	page->error = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
	page->detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
	page->hint = field_of(result, PG_DIAG_MESSAGE_HINT);
	memset(page->state, 0, sizeof(page->state));
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

static bool
is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* Runs a statement without parameters, for what follows. */
static bool
prepare_for(Page *page, const char *sql)
{
	PGresult *result = PQexec(page->connection, sql);
	bool good = is_good(result);

	if (!good)
		keep_error(page, result);
	PQclear(result);
	return good;
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
 * made again.
 */
static bool
connect_own(Page *page)
{
	for (int attempt = 0; attempt < 2; attempt++)
	{
		bool works = page->connection != NULL &&
					 PQstatus(page->connection) == CONNECTION_OK;

		if (works && (page->is_acting || act_as(page)))
		{
			page->is_acting = true;
			return true;
		}
		if (works && PQstatus(page->connection) == CONNECTION_OK)
			return false;
		PQfinish(page->connection);
		page->is_acting = false;
		page->connection = database_connect(NULL, NULL);
	}
	keep_error(page, NULL);
	return false;
}

/* Has a connection that acts as the role of the page; false: the page has the error. */
bool
database_ready(Page *page)
{
	if (page->access->is_own)
		return connect_own(page);
	if (page->connection != NULL)
		return true;
	keep_error(page, NULL);
	return false;
}

static PGresult *
run(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result;

	if (!database_ready(page) ||
		(page->is_long && !prepare_for(page, "SET statement_timeout = '60s'")))
		return NULL;
	result = PQexecParams(page->connection, sql, n, NULL, values, NULL, NULL,
						  0);
	if (page->is_long)
		PQclear(PQexec(page->connection, "SET statement_timeout = '2s'"));
	return result;
}

/*
 * Reads by a statement.  NULL: the page has the error.  A connection of ours that
 * was lost since its last use is made again, once.
 */
PGresult *
database_query(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result = run(page, sql, n, values);

	if (result != NULL && !is_good(result) && page->access->is_own &&
		PQstatus(page->connection) == CONNECTION_BAD)
	{
		PQclear(result);
		result = run(page, sql, n, values);
	}
	if (result != NULL && is_good(result))
		return result;
	if (result != NULL)
		keep_error(page, result);
	PQclear(result);
	return NULL;
}

/* Changes something by a statement, once; never where nothing can be changed. */
PGresult *
database_call(Page *page, const char *sql, int n, const char *const *values)
{
	PGresult *result;
	bool good;

	if (!action_is_possible() || !database_ready(page) ||
		!prepare_for(page, page->is_long
							   ? "SET default_transaction_read_only = off;"
								 " SET statement_timeout = 0"
							   : "SET default_transaction_read_only = off;"
								 " SET statement_timeout = '10s'"))
		return NULL;
	result = PQexecParams(page->connection, sql, n, NULL, values, NULL, NULL,
						  0);
	good = is_good(result);
	if (!good)
	{
		keep_error(page, result);
		PQclear(result);
	}
	PQclear(PQexec(page->connection, "SET default_transaction_read_only = on;"
									 " SET statement_timeout = '2s'"));
	return good ? result : NULL;
}
