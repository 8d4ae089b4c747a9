/*
 * database.c
 *	  The connections, each with one call at a time.
 *
 * The main connection claims, and does all else while it need not wait.  The
 * second one is opened when there is something to say while the first waits for
 * work, or when a command takes long: it listens on the channel of the worker.
 * A connection that is lost is tried again, later each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "worker.h"

#define PAUSE_FIRST 100
#define PAUSE_LAST 10000
#define PATIENCE 30000 /* until a connection must be there */
#define CANCEL_PAUSE 1000
#define CALL_LONG 1000

typedef enum DatabaseState
{
	DATABASE_CLOSED,
	DATABASE_CONNECTING,
	DATABASE_IDLE,
	DATABASE_BUSY
} DatabaseState;

struct Database
{
	const char *name;
	DatabaseState state;
	PGconn *connection;
	PostgresPollingStatusType wants;
	bool wanted; /* it is opened again when it is lost */
	bool renew;  /* it is to be made again */
	Moment open_at;
	Moment give_up_at;
	Moment idle_since;
	Moment cancel_at; /* at the earliest */
	int pause;
	bool said; /* that it is lost */
	Call *call;
	PGresult *result; /* of that call */
	bool preparing;
	bool prepared[STATEMENTS];
};

static Database databases[2] = {{.name = "main"}, {.name = "second"}};
Database *main_database = &databases[0];
Database *second_database = &databases[1];

static bool prepare = true; /* no pooler is between that cannot */
static long losses;

bool
database_is_idle(const Database *db)
{
	return db->state == DATABASE_IDLE && !db->renew;
}

/* Returns whether it waits for work. */
bool
database_waits(const Database *db)
{
	return db->state == DATABASE_BUSY && db->call != NULL && db->call->waits;
}

/* Returns whether it waits for work, or has a call that takes long. */
bool
database_is_taken(const Database *db)
{
	if (db->state != DATABASE_BUSY)
		return false;
	if (db->call->waits || db->call->began + CALL_LONG <= now)
		return true;
	wake_at(db->call->began + CALL_LONG);
	return false;
}

Moment
database_idle_since(const Database *db)
{
	return db->state == DATABASE_IDLE ? db->idle_since : NEVER;
}

long
database_losses(void)
{
	return losses;
}

/* ---- the end of a connection ---- */

/* Frees the connection, and lets its call know that there is no answer. */
static void
drop(Database *db)
{
	Call *call = db->call;

	PQfinish(db->connection);
	PQclear(db->result);
	db->connection = NULL;
	db->result = NULL;
	db->call = NULL;
	db->state = DATABASE_CLOSED;
	db->preparing = db->renew = false;
	memset(db->prepared, 0, sizeof(db->prepared));
	if (call != NULL)
		call->done(call, NULL);
}

/* Returns a pause that differs from that of other workers. */
static int
next_pause(Database *db)
{
	db->pause = db->pause == 0 ? PAUSE_FIRST : 2 * db->pause;
	if (db->pause > PAUSE_LAST)
		db->pause = PAUSE_LAST;
	return db->pause / 2 + (int) (random() % db->pause);
}

/* The connection is lost, or cannot be made: it is tried again. */
static void
lose(Database *db, const char *message)
{
	int pause = next_pause(db);

	log_line(db->said ? LOG_DEBUG : LOG_WARNING, NULL,
			 "the %s connection is lost, and tried again: %s", db->name,
			 message);
	db->said = true;
	losses++;
	db->open_at = now + pause;
	drop(db);
}

/* Closes a connection for good. */
void
database_close(Database *db)
{
	db->wanted = false;
	drop(db);
}

/* ---- its begin ---- */

/* A server that is gone without a word is missed after some seconds. */
static PGconn *
start_connection(void)
{
	const char *const names[] = {"fallback_application_name",
								 "keepalives_idle",
								 "keepalives_interval",
								 "keepalives_count",
								 "tcp_user_timeout",
								 "dbname",
								 "client_encoding",
								 NULL};
	char *name = format_text("tq-worker " TQ_VERSION " %s", options.id);
	const char *const values[] =
		{name,   "10",    "5",
		 "3",    "15000", options.dbname != NULL ? options.dbname : "",
		 "UTF8", NULL};
	PGconn *connection = PQconnectStartParams(names, values, 1);

	free(name);
	if (connection == NULL)
		abort();
	return connection;
}

static void
ignore_notice(void *subject, const PGresult *result)
{
}

static void
connect_now(Database *db)
{
	db->connection = start_connection();
	db->state = DATABASE_CONNECTING;
	db->wants = PGRES_POLLING_WRITING;
	db->give_up_at = now + PATIENCE;
	if (PQstatus(db->connection) == CONNECTION_BAD)
		lose(db, PQerrorMessage(db->connection));
	else
		PQsetNoticeReceiver(db->connection, ignore_notice, NULL);
}

/* Opens a connection, unless it is open. */
void
database_open(Database *db)
{
	db->wanted = true;
}

/* Goes a step on with a connection that is being made. */
static void
go_on_connecting(Database *db)
{
	db->wants = PQconnectPoll(db->connection);
	if (db->wants == PGRES_POLLING_FAILED)
		lose(db, PQerrorMessage(db->connection));
	else if (db->wants == PGRES_POLLING_OK)
	{
		PQsetnonblocking(db->connection, 1);
		db->state = DATABASE_IDLE;
		db->idle_since = now;
		calls_begin(db);
	}
}

/* SIGHUP: the connections are made again, with what a password file says now. */
void
database_renew(void)
{
	for (Database *db = databases; db < databases + 2; db++)
	{
		db->renew = true;
		db->open_at = now;
		db->pause = 0;
	}
}

void
database_init(void)
{
	unsigned seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed))
		abort();
	srandom(seed);
	database_open(main_database);
}

/* ---- calls ---- */

/* Returns how many parameters a statement has; what is in quotes is none. */
static int
parameter_count(const char *sql)
{
	int n = 0;
	bool quoted = false; /* as the names of fields are */

	for (; (sql = strpbrk(sql, "'$")) != NULL; sql++)
		if (*sql == '\'')
			quoted = !quoted;
		else if (!quoted && atoi(sql + 1) > n)
			n = atoi(sql + 1);
	return n;
}

/* Sends the call, or prepares its statement before. */
static bool
send_now(Database *db)
{
	const Call *call = db->call;
	const char *sql = calls_sql(call->statement);
	const char *const *parameters = (const char *const *) call->parameters;
	int n = parameter_count(sql);
	bool named = prepare && call->statement != SQL_LISTEN;
	char name[16];

	snprintf(name, sizeof(name), "tq%d", call->statement);
	db->preparing = named && !db->prepared[call->statement];
	if (db->preparing)
		return PQsendPrepare(db->connection, name, sql, n, NULL);
	if (named)
		return PQsendQueryPrepared(db->connection, name, n, parameters, NULL,
								   NULL, 0);
	return PQsendQueryParams(db->connection, sql, n, NULL, parameters, NULL,
							 NULL, 0);
}

/* Sends a call over a connection that is idle. */
void
database_send(Database *db, Call *call)
{
	db->call = call;
	db->state = DATABASE_BUSY;
	call->began = now;
	if (!send_now(db) || PQflush(db->connection) < 0)
		lose(db, PQerrorMessage(db->connection));
}

/* Returns whether an error is one of the moment, and the call to be repeated. */
static bool
is_passing(const PGresult *result)
{
	static const char *const states[] = {"08",    "25006", "40",    "53000",
										 "53100", "53200", "53300", "57P",
										 "58",    NULL};
	const char *state = result_state(result);

	for (int i = 0; states[i] != NULL; i++)
		if (strncmp(state, states[i], strlen(states[i])) == 0)
			return true;
	return *state == '\0' && !result_is_good(result);
}

/*
 * Returns whether a call was interrupted, which is to be repeated, because it may
 * be another than the claim that was to be.
 */
static bool
is_interrupted(const Call *call, const PGresult *result)
{
	const char *state = result_state(result);

	return call->statement != SQL_CLAIM &&
		   call->statement != SQL_RESOLVE_AND_CLAIM &&
		   (strcmp(state, "57014") == 0 || strcmp(state, "55P03") == 0);
}

/*
 * Returns whether a pooler has lost, or kept, a statement that was prepared, or an
 * update of the extension has changed what it returns.
 */
static bool
is_unprepared(const PGresult *result)
{
	const char *state = result_state(result);

	return prepare &&
		   (strcmp(state, "26000") == 0 || strcmp(state, "42P05") == 0 ||
			strcmp(state, "0A000") == 0);
}

/* A call has its whole answer. */
static void
finish_call(Database *db)
{
	Call *call = db->call;
	PGresult *result = db->result;

	db->result = NULL;
	if (PQstatus(db->connection) == CONNECTION_BAD || is_passing(result) ||
		is_interrupted(call, result))
	{
		lose(db, PQresultErrorMessage(result));
		PQclear(result);
		return;
	}
	if (is_unprepared(result) || (db->preparing && result_is_good(result)))
	{
		if (!db->preparing || !result_is_good(result))
			prepare = false;
		db->prepared[call->statement] = true;
		PQclear(result);
		database_send(db, call);
		return;
	}
	db->preparing = false;
	db->call = NULL;
	db->state = DATABASE_IDLE;
	db->idle_since = now;
	db->pause = 0;
	db->said = false;
	call->done(call, result);
	PQclear(result);
}

/* Takes what the server has sent. */
static void
take_answers(Database *db)
{
	PGnotify *notify;

	while (db->state == DATABASE_BUSY && !PQisBusy(db->connection))
	{
		PGresult *result = PQgetResult(db->connection);

		if (result == NULL)
		{
			finish_call(db);
			break;
		}
		PQclear(db->result);
		db->result = result;
	}
	while (db->connection != NULL &&
		   (notify = PQnotifies(db->connection)) != NULL)
	{
		calls_notified(notify->extra);
		PQfreemem(notify);
	}
}

static void
connection_is_ready(void *subject, short events)
{
	Database *db = subject;

	if (db->connection == NULL)
		return;
	if (db->state == DATABASE_CONNECTING)
		go_on_connecting(db);
	else if (!PQconsumeInput(db->connection) || PQflush(db->connection) < 0)
		lose(db, PQerrorMessage(db->connection));
	else
		take_answers(db);
}

/*
 * Sends a cancel.  That is a process of its own, because it connects, and waits for
 * that; it has neither the signals nor the descriptors of the worker.
 */
static void
send_cancel(PGcancel *cancel)
{
	char message[256];
	sigset_t before;

	block_signals(&before);
	if (fork() == 0)
	{
		reset_signals();
		for (int fd = STDERR_FILENO + 1; fd < DESCRIPTORS; fd++)
			close(fd);
		alarm(10);
		PQcancel(cancel, message, sizeof(message));
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/*
 * Interrupts a claim that waits, while it does: a cancel that is there before the
 * statement is lost.  The answer of the claim may have tasks all the same.
 */
static void
cancel_wait(Database *db)
{
	PGcancel *cancel;

	if (now >= db->cancel_at)
	{
		cancel = PQgetCancel(db->connection);
		if (cancel != NULL)
			send_cancel(cancel);
		PQfreeCancel(cancel);
		db->cancel_at = now + CANCEL_PAUSE;
	}
	wake_at(db->cancel_at);
}

/* ---- the loop ---- */

/* Does what a connection has to do at this time. */
static void
work(Database *db)
{
	if (db->state == DATABASE_CONNECTING && now >= db->give_up_at)
		lose(db, "the server does not answer");
	if (database_waits(db) && (stopping || db->renew || calls_are_closed()))
		cancel_wait(db);
	if (db->renew && db->state != DATABASE_BUSY)
		drop(db);
	if (db->wanted && db->state == DATABASE_CLOSED && now >= db->open_at)
		connect_now(db);
}

/* Has the loop wait for what a connection waits for. */
static void
watch_one(Database *db)
{
	short events = POLLIN;

	if (db->state == DATABASE_CLOSED)
	{
		if (db->wanted)
			wake_at(db->open_at);
		return;
	}
	if (db->state == DATABASE_CONNECTING)
	{
		events = db->wants == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
		wake_at(db->give_up_at);
	}
	else if (db->state == DATABASE_BUSY && PQflush(db->connection) > 0)
		events |= POLLOUT;
	watch(PQsocket(db->connection), events, connection_is_ready, db);
}

void
database_watch(void)
{
	for (Database *db = databases; db < databases + 2; db++)
	{
		work(db);
		watch_one(db);
	}
}

/* Says what the connections do. */
void
database_describe(Buffer *buffer)
{
	static const char *const names[] = {"closed", "connecting", "idle",
										"busy"};

	for (Database *db = databases; db < databases + 2; db++)
		buffer_put(buffer, "%s connection: %s%s; ", db->name, names[db->state],
				   database_waits(db) ? ", waits for work" : "");
}
