/*
 * pages_open.c
 *	  What is read without a login: the login itself, and the metrics.
 */
#include <stdlib.h>
#include <string.h>

#include "web.h"

/* / leads to the queues. */
void
page_home(Page *page)
{
	page_redirect(page, copy_text("/queues"));
}

static const char *
reason_of(const char *why)
{
	if (why != NULL && strcmp(why, "lost") == 0)
		return "The connection to the database was lost: please log in again.";
	return NULL;
}

/* The form, with what was wrong with the last attempt. */
void
page_login(Page *page)
{
	const char *next = page->post ? page_form(page, "next")
								  : page_query(page, "next");
	const char *role = page->post ? page_form(page, "role") : NULL;
	const char *why = reason_of(page_query(page, "why"));

	if (options.as != NULL || options.role_header != NULL)
	{
		page_redirect(page, copy_text("/"));
		return;
	}
	page_title(page, "Log in");
	if (why != NULL)
		html_notice(page, "info", "%s", why);
	html_error(page);
	html(
		page,
		"<form class=login method=post action=/login>"
		"<input type=hidden name=next value=\"%s\">"
		"<label for=role>Role of PostgreSQL</label>"
		"<input id=role name=role value=\"%s\" autocomplete=username required "
		"autofocus spellcheck=false autocapitalize=none maxlength=63>",
		next == NULL ? "/" : next, role == NULL ? "" : role);
	html(page,
		 "<label for=password>Password</label>"
		 "<input id=password name=password type=password "
		 "autocomplete=current-password required>"
		 "<button class=main>Log in</button>"
		 "<p class=quiet>You see and do here what this role may see and do "
		 "in SQL.</p></form>");
}

/* Returns whether a request has the token, in a time that says nothing of it. */
static bool
has_token(const Page *page)
{
	const char *given = page_header(page, "Authorization");
	const char *token = options.metrics_token;
	unsigned char differs = 0;

	if (token == NULL || given == NULL || strncmp(given, "Bearer ", 7) != 0 ||
		strlen(given + 7) != strlen(token))
		return false;
	for (size_t i = 0; token[i] != '\0'; i++)
		differs |= (unsigned char) (token[i] ^ given[7 + i]);
	return differs == 0;
}

/* Says whether the database takes connections. */
void
page_health_check(Page *page)
{
	bool good = database_answers();

	page->is_plain = true;
	page->type = "text/plain; charset=utf-8";
	page->status = good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
	buffer_put(&page->body, "%s\n", good ? "ok" : "no database");
}

/* tq.metrics(), read as the program's own role. */
void
page_metrics(Page *page)
{
	PGresult *result;

	page->is_plain = true;
	page->type = "text/plain; version=0.0.4; charset=utf-8";
	if (!has_token(page) &&
		!trust_has_address(options.scrapers, options.nscrapers, page->client))
	{
		page->status = MHD_HTTP_FORBIDDEN;
		buffer_put(&page->body,
				   "This needs the token of --metrics-token, or an "
				   "address of --metrics-from.\n");
		return;
	}
	result = database_query(page, "SELECT tq.metrics()", 0, NULL);
	if (result != NULL)
		buffer_put(&page->body, "%s", PQgetvalue(result, 0, 0));
	else
	{
		page->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		buffer_put(&page->body, "%s\n", page->error);
	}
	PQclear(result);
}
