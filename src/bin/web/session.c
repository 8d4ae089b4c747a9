/*
 * session.c
 *	  Who is who: logins, sessions, and the role that a request acts as.
 *
 * A session has the id that the cookie has, and the token that its forms have, both
 * new at each login.  Where a header of a proxy says the role, each role has one
 * session, without a cookie: so the token of one role is good for no other.  An answer
 * has the token under a mask of its own, so that the length of compressed answers says
 * nothing about it (BREACH), whatever text of a request stands beside it.  The list
 * has a lock of its own, under which that of the accesses may be taken.
 *
 * A role has so many sessions at most, and a new one takes the place of its oldest.
 * Where the list is full, the role that has the most gives way.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "web.h"

#define SESSIONS_MAX 2000
#define SESSIONS_OF_ROLE 100

typedef struct Session
{
	struct Session *next;
	char id[TOKEN_LENGTH];
	char token[TOKEN_LENGTH];
	char role[ROLE_LENGTH];
	Access *access;
	Moment used;
} Session;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Session *sessions;
static int nsessions;

/* Makes an id that cannot be guessed. */
void
session_token(char *token)
{
	unsigned char bytes[(TOKEN_LENGTH - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
	{
		token[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		token[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	token[TOKEN_LENGTH - 1] = '\0';
}

/* Compares in a time that does not depend on where they differ. */
static bool
is_same(const char *one, const char *other)
{
	unsigned char differs = strlen(other) != TOKEN_LENGTH - 1;

	for (int i = 0; i < TOKEN_LENGTH - 1 && !differs; i++)
		;
	if (differs)
		return false;
	for (int i = 0; i < TOKEN_LENGTH - 1; i++)
		differs |= (unsigned char) (one[i] ^ other[i]);
	return differs == 0;
}

/* Ends a session; with the lock held. */
static void
end_session(Session **at)
{
	Session *session = *at;

	*at = session->next;
	nsessions--;
	database_leave(session->access);
	explicit_bzero(session, sizeof(*session));
	free(session);
}

/* Ends the sessions of an access whose connections are lost. */
void
session_forget(const Access *access)
{
	pthread_mutex_lock(&lock);
	for (Session **at = &sessions; *at != NULL;)
		if ((*at)->access == access)
			end_session(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&lock);
}

/* Ends those that were not used for long. */
void
session_sweep(void)
{
	Moment oldest = clock_now() - (Moment) options.idle * 1000;

	pthread_mutex_lock(&lock);
	for (Session **at = &sessions; *at != NULL;)
		if ((*at)->used < oldest)
		{
			log_line(LOG_INFO, NULL, "session of role %s ends: it was idle",
					 (*at)->role);
			end_session(at);
		}
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&lock);
}

/* Finds a session by its id, or by its role if that has one only. */
static Session *
find(const char *id, const char *role)
{
	Session *session = sessions;

	if (options.role_header != NULL)
		while (session != NULL && strcmp(session->role, role) != 0)
			session = session->next;
	else
		while (session != NULL && !is_same(session->id, id))
			session = session->next;
	return session;
}

/* Notes that a session is used; false: it has ended. */
bool
session_touch(const char *id, const char *role)
{
	Session *session;

	pthread_mutex_lock(&lock);
	session = find(id, role);
	if (session != NULL)
		session->used = clock_now();
	pthread_mutex_unlock(&lock);
	return session != NULL;
}

static int
count_of(const char *role)
{
	int n = 0;

	for (const Session *one = sessions; one != NULL; one = one->next)
		n += strcmp(one->role, role) == 0;
	return n;
}

/* Returns the role that has to give way to one more session, or NULL: none has. */
static const char *
crowded_role(const char *role)
{
	const char *crowded = NULL;
	int most = 0;

	if (count_of(role) >= SESSIONS_OF_ROLE)
		return role;
	if (nsessions < SESSIONS_MAX)
		return NULL;
	for (const Session *one = sessions; one != NULL; one = one->next)
	{
		int n = crowded != NULL && strcmp(one->role, crowded) == 0
					? 0
					: count_of(one->role);

		if (n > most)
		{
			most = n;
			crowded = one->role;
		}
	}
	return crowded;
}

/* Ends the session of a role that was used longest ago. */
static void
end_oldest(const char *role)
{
	Session **oldest = NULL;

	for (Session **at = &sessions; *at != NULL; at = &(*at)->next)
		if (strcmp((*at)->role, role) == 0 &&
			(oldest == NULL || (*at)->used < (*oldest)->used))
			oldest = at;
	end_session(oldest);
}

/* Adds a session, which is a user of an access; with the lock held. */
static Session *
add_session(const char *role, Access *access)
{
	const char *crowded = crowded_role(role);
	Session *session = allocate(sizeof(Session));

	if (crowded != NULL)
		end_oldest(crowded);
	session_token(session->id);
	session_token(session->token);
	strcpy(session->role, role);
	session->access = access;
	session->next = sessions;
	sessions = session;
	nsessions++;
	return session;
}

/* Has a page be of a session; with the lock held. */
static void
use(Session *session, Page *page)
{
	session->used = clock_now();
	strcpy(page->token, session->token);
	strcpy(page->role, session->role);
	page->access = session->access;
	database_keep(page->access);
}

/* ---- the request ---- */

/* Behind TLS a browser takes the cookie from no other host of our domain. */
static const char *
cookie_name(const Page *page)
{
	return page->is_secure ? "__Host-tq_session" : "tq_session";
}

/* Has the page act as the role of its cookie. */
static bool
find_by_cookie(Page *page)
{
	const char *id = MHD_lookup_connection_value(page->http, MHD_COOKIE_KIND,
												 cookie_name(page));
	Session *session;

	if (id == NULL)
		return false;
	pthread_mutex_lock(&lock);
	session = find(id, NULL);
	if (session != NULL)
	{
		use(session, page);
		strcpy(page->session, session->id);
	}
	pthread_mutex_unlock(&lock);
	return session != NULL;
}

/* No role can have the name none, by which SET ROLE would leave us what we are. */
static bool
is_role(const char *role)
{
	return role != NULL && *role != '\0' && strlen(role) < ROLE_LENGTH &&
		   strcmp(role, "none") != 0 && text_is_clean(role, strlen(role));
}

/* Has the page act as the role of --as, which nothing is changed as. */
static bool
find_by_option(Page *page)
{
	if (!is_role(options.as))
		return false;
	strcpy(page->role, options.as);
	page->access = database_role(page->role);
	return true;
}

/* Has the page act as the role of the header of a proxy. */
static bool
find_by_header(Page *page)
{
	const char *role = page_header(page, options.role_header);
	Session *session;

	if (!trust_has_address(options.trusted, options.ntrusted, page->peer) ||
		!is_role(role))
		return false;
	pthread_mutex_lock(&lock);
	session = find(NULL, role);
	if (session == NULL)
		session = add_session(role, database_role(role));
	use(session, page);
	pthread_mutex_unlock(&lock);
	return true;
}

/* Finds who asks; false: no role that we know. */
bool
session_find(Page *page)
{
	if (options.as != NULL)
		return find_by_option(page);
	return options.role_header != NULL ? find_by_header(page)
									   : find_by_cookie(page);
}

/* ---- the token of forms ---- */

/* Returns the value of a digit that session_token() writes, or -1. */
static int
value_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Writes the sum of two tokens, digit by digit; false: one is none. */
static bool
add_mask(const char *mask, const char *token, char *sum)
{
	for (int i = 0; i < TOKEN_LENGTH - 1; i++)
	{
		int digits[] = {value_of(mask[i]), value_of(token[i])};

		if (digits[0] < 0 || digits[1] < 0)
			return false;
		sum[i] = "0123456789abcdef"[digits[0] ^ digits[1]];
	}
	sum[TOKEN_LENGTH - 1] = '\0';
	return true;
}

/* Writes the token for an answer: a new mask, and the token under it. */
void
session_mask(Page *page)
{
	session_token(page->masked);
	if (!add_mask(page->masked, page->token, page->masked + TOKEN_LENGTH - 1))
		page->masked[0] = '\0'; /* there is no session */
}

/* Returns whether a POST is one that a form of ours has sent. */
bool
session_may_act(const Page *page)
{
	const char *masked = page_form(page, "token");
	char token[TOKEN_LENGTH];

	return masked != NULL && strlen(masked) == MASKED_LENGTH - 1 &&
		   add_mask(masked, masked + TOKEN_LENGTH - 1, token) &&
		   is_same(page->token, token);
}

/* ---- the login ---- */

static char *
cookie_of(const Page *page, const char *id, bool ends)
{
	return format_text("%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s",
					   cookie_name(page), id,
					   page->is_secure ? "; Secure" : "",
					   ends ? "; Max-Age=0" : "");
}

/* Connects as that person; says why not. */
static PGconn *
try_login(Page *page, const char *role, const char *password)
{
	PGconn *connection = database_connect(role, password);

	if (PQstatus(connection) == CONNECTION_OK &&
		PQconnectionUsedPassword(connection))
		return connection;
	if (PQstatus(connection) == CONNECTION_OK)
	{
		page->status = MHD_HTTP_FORBIDDEN;
		page->error = copy_text("the server did not ask for the password");
		page->hint = copy_text(
			"Its pg_hba.conf lets everyone in from here. Have "
			"it ask tq-web for scram-sha-256.");
	}
	else if (!database_answers())
	{
		page->error = copy_text("the database does not answer");
		page->hint = copy_text("It is being started, or cannot be reached.");
		strcpy(page->state, "08006");
	}
	else
	{
		page->status = MHD_HTTP_UNAUTHORIZED;
		page->error = copy_text("the name or the password is wrong");
		page->detail = copy_text(
			"Or the role may not connect to this database.");
	}
	log_line(LOG_WARNING, NULL, "login of role %s from %s failed: %s", role,
			 page->client,
			 PQstatus(connection) == CONNECTION_OK
				 ? "the server did not ask for the password"
				 : PQerrorMessage(connection));
	PQfinish(connection);
	return NULL;
}

/* Returns whether a name and a password are worth a try, which counts from now. */
static bool
may_try(Page *page, const char *role, const char *password)
{
	int wait;

	if (role == NULL || password == NULL || *role == '\0' ||
		*password == '\0' || strlen(role) >= ROLE_LENGTH)
	{
		page->status = MHD_HTTP_BAD_REQUEST;
		page->error = copy_text("a name and a password are needed");
		return false;
	}
	wait = throttle_try(role, page->client);
	if (wait == 0)
		return true;
	page->status = MHD_HTTP_TOO_MANY_REQUESTS;
	page->retry_after = wait;
	page->error = format_text("too many attempts: try again in %d s", wait);
	return false;
}

/* Begins a session; a role has a second connection, for what takes long. */
static void
join(Page *page, const char *role, const char *password, PGconn *connection)
{
	Access *access = database_join(role, connection);
	Session *session;

	if (database_wants_more(access))
	{
		connection = database_connect(role, password);
		if (PQstatus(connection) == CONNECTION_OK &&
			PQconnectionUsedPassword(connection))
			database_leave(database_join(role, connection));
		else
			PQfinish(connection);
	}
	pthread_mutex_lock(&lock);
	session = add_session(role, access);
	session->used = clock_now();
	strcpy(page->session, session->id);
	pthread_mutex_unlock(&lock);
}

/* POST /login. */
void
session_login(Page *page)
{
	const char *role = page_form(page, "role");
	const char *password = page_form(page, "password");
	PGconn *connection = NULL;

	if (may_try(page, role, password))
		connection = try_login(page, role, password);
	if (connection == NULL)
	{
		page_login(page);
		return;
	}
	throttle_forgive(role, page->client);
	strcpy(page->role, role);
	join(page, role, password, connection);
	log_line(LOG_INFO, NULL, "login of role %s from %s", role, page->client);
	page->cookie = cookie_of(page, page->session, false);
	page_redirect(page, copy_text(action_is_here(page_form(page, "next"))
									  ? page_form(page, "next")
									  : "/"));
}

/* POST /logout. */
void
session_logout(Page *page)
{
	pthread_mutex_lock(&lock);
	for (Session **at = &sessions; *at != NULL;)
		if (strcmp((*at)->id, page->session) == 0)
			end_session(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&lock);
	log_line(LOG_INFO, NULL, "logout of role %s from %s", page->role,
			 page->client);
	page->cookie = cookie_of(page, "", true);
	page_redirect(page, copy_text("/login"));
}
