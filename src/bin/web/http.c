/*
 * http.c
 *	  Requests, from libmicrohttpd's thread to a worker and back.
 *
 * That thread reads a request, refuses what is too large, comes from another host
 * or asks for no page, and suspends the connection until a worker has made the
 * answer.  What a POST sends is kept only after its header has been found to be one
 * of a session; a login may send little.  What a page is sent, and its answer until it
 * is read, may not be more of one role than room is left for others.
 *
 * A worker takes the first page for which there is a connection of its role: so a role
 * that has slow statements waits for itself only.  The lock of the list is held while
 * that of the accesses is taken.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "web.h"

#define UPLOAD_MAX (256 * 1024)
#define LOGIN_MAX (8 * 1024)         /* what a POST without a login may send */
#define HELD_MAX (32L * 1024 * 1024) /* of what is sent and answered, in all */
#define HEADER_MAX (16 * 1024)
#define WAITING_MAX 512
#define STACK_SIZE (256 * 1024)
#define PATIENCE 20 /* seconds without a byte, after which a client is gone */

static const char *const policy =
	"default-src 'none'; style-src 'self'; script-src 'self'; "
	"img-src 'self' data:; connect-src 'self'; form-action 'self'; "
	"frame-ancestors 'none'; base-uri 'none'";

static struct MHD_Daemon *server;
static pthread_t *workers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Page *first; /* those that wait */
static Page **last = &first;
static int waiting;
static bool stopping;
static Page *holders; /* those that hold memory; of libmicrohttpd's thread */

/* ---- a page ---- */

Page *
page_new(void)
{
	Page *page = allocate(sizeof(Page));

	page->status = MHD_HTTP_OK;
	page->type = "text/html; charset=utf-8";
	return page;
}

/* What was sent may have a password. */
static void
forget_upload(Page *page)
{
	if (page->upload.data != NULL)
		explicit_bzero(page->upload.data, page->upload.length);
	buffer_free(&page->upload);
}

void
page_free(Page *page)
{
	if (page->access != NULL)
		database_leave(page->access);
	forget_upload(page);
	fields_free(&page->query);
	fields_free(&page->form);
	buffer_free(&page->body);
	free(page->path);
	free(page->query_text);
	free(page->title);
	free(page->location);
	free(page->cookie);
	free(page->error);
	free(page->detail);
	free(page->hint);
	if (page->response != NULL)
		MHD_destroy_response(page->response);
	free(page);
}

const char *
page_query(const Page *page, const char *name)
{
	return fields_get(&page->query, name);
}

const char *
page_form(const Page *page, const char *name)
{
	return fields_get(&page->form, name);
}

/* The lines of a header of one name. */
typedef struct Lines
{
	const char *name;
	const char *last;
	int n;
} Lines;

static enum MHD_Result
note_line(void *subject, enum MHD_ValueKind kind, const char *name,
		  const char *value)
{
	Lines *lines = subject;

	if (strcasecmp(name, lines->name) == 0)
	{
		lines->last = value;
		lines->n++;
	}
	return MHD_YES;
}

static Lines
lines_of(const Page *page, const char *name)
{
	Lines lines = {.name = name};

	if (page->http != NULL)
		MHD_get_connection_values(page->http, MHD_HEADER_KIND, note_line,
								  &lines);
	return lines;
}

/* Returns a header of the request; one that is there twice says nothing. */
const char *
page_header(const Page *page, const char *name)
{
	Lines lines = lines_of(page, name);

	return lines.n == 1 ? lines.last : NULL;
}

void
page_title(Page *page, const char *format, ...)
{
	va_list arguments;

	free(page->title);
	page->title = NULL;
	va_start(arguments, format);
	if (vasprintf(&page->title, format, arguments) < 0)
		abort();
	va_end(arguments);
}

/* Has the browser go elsewhere; takes the location. */
void
page_redirect(Page *page, char *location)
{
	free(page->location);
	page->location = location;
	page->status = MHD_HTTP_SEE_OTHER;
}

/* Answers by a page that says why there is none. */
static void
refuse(Page *page, unsigned int status, const char *title, const char *why)
{
	page->status = status;
	page_title(page, "%s", title);
	html_empty(page, why, NULL);
}

static void
refuse_busy(Page *page, const char *why)
{
	refuse(page, MHD_HTTP_SERVICE_UNAVAILABLE, "Busy", why);
	page->retry_after = 5;
}

/* Goes to the login, and from there back to this page. */
static void
ask_for_login(Page *page, const char *why)
{
	Buffer here = {0};

	buffer_put(&here, "%s", page->path);
	if (page->query_text != NULL && *page->query_text != '\0')
		buffer_put(&here, "?%s", page->query_text);
	page_redirect(page, url_of("/login", "next", page->post ? NULL : here.data,
							   "why", why, NULL));
	buffer_free(&here);
}

/* What the error of the database says about the page as a whole. */
static void
set_status(Page *page)
{
	if (strncmp(page->state, "08", 2) == 0 ||
		strncmp(page->state, "57P", 3) == 0)
	{
		page->status = MHD_HTTP_SERVICE_UNAVAILABLE;
		page->retry_after = 5;
	}
}

/* Runs the function of the route, with a connection of the role. */
void
page_run(Page *page)
{
	if (page->access != NULL && database_is_gone(page->access))
	{
		ask_for_login(page, "lost");
		return;
	}
	if (!page->post)
		page->route->show(page);
	else if (!action_is_possible() && !page->route->is_open &&
			 page->route->act != session_logout)
		refuse(page, MHD_HTTP_FORBIDDEN, "Not done",
			   "Nothing can be changed here.");
	else if (!page->route->is_open && !session_may_act(page))
		refuse(page, MHD_HTTP_FORBIDDEN, "Not done",
			   "This form is not one of this session: go back, load the page "
			   "again, and repeat it.");
	else
		page->route->act(page);
	set_status(page);
}

/* ---- the answer ---- */

static void
add_headers(struct MHD_Response *response, const char *content)
{
	MHD_add_response_header(response, "Content-Security-Policy", content);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "X-Frame-Options", "DENY");
	MHD_add_response_header(response, "Referrer-Policy", "same-origin");
	MHD_add_response_header(response, "Cross-Origin-Opener-Policy",
							"same-origin");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
							"same-origin");
}

static void
add_page_headers(const Page *page, struct MHD_Response *response)
{
	char seconds[16];

	add_headers(response, page->policy == NULL ? policy : page->policy);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "Content-Type", page->type);
	if (page->is_packed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	if (page->location != NULL)
		MHD_add_response_header(response, "Location", page->location);
	if (page->cookie != NULL)
		MHD_add_response_header(response, "Set-Cookie", page->cookie);
	snprintf(seconds, sizeof(seconds), "%d", page->retry_after);
	if (page->retry_after > 0)
		MHD_add_response_header(response, "Retry-After", seconds);
	if (page->status == MHD_HTTP_SERVICE_UNAVAILABLE && !page->is_plain)
		MHD_add_response_header(response, "Refresh", seconds);
	if (page->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD, POST");
}

/* Returns whether the reader takes what is packed by gzip. */
bool
page_takes_gzip(const Page *page)
{
	const char *accepted = page_header(page, "Accept-Encoding");

	return accepted != NULL && strstr(accepted, "gzip") != NULL;
}

/* Makes of what the page has the answer. */
static void
make_response(Page *page)
{
	Buffer out = {0};

	if (page->location == NULL && !page->is_plain)
		html_frame(page, &out);
	else if (page->location == NULL && page->body.length > 0)
		buffer_add(&out, page->body.data, page->body.length);
	buffer_free(&page->body);
	page->is_packed = page_takes_gzip(page) && out.length > 1000 &&
					  asset_pack(&out);
	page->response =
		MHD_create_response_from_buffer(out.length, out.data,
										out.data == NULL
											? MHD_RESPMEM_PERSISTENT
											: MHD_RESPMEM_MUST_FREE);
	if (page->response == NULL)
		abort();
	page->length = out.length;
	add_page_headers(page, page->response);
}

/* ---- workers ---- */

/* Takes the first page that can go on, with a connection; with the lock held. */
static Page *
take_page(void)
{
	for (Page **at = &first; *at != NULL; at = &(*at)->next)
	{
		Page *page = *at;

		if (!database_take(page))
			continue;
		*at = page->next;
		if (page->next == NULL)
			last = at;
		waiting--;
		return page;
	}
	return NULL;
}

/* A page is made: for its reader, or for the feed of many. */
static void
finish(Page *page)
{
	if (page->is_live)
	{
		live_made(page);
		return;
	}
	make_response(page);
	page->is_done = true;
	MHD_resume_connection(page->http);
}

static void *
work(void *subject)
{
	pthread_mutex_lock(&lock);
	while (!stopping)
	{
		Page *page = take_page();

		if (page == NULL)
		{
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		page_run(page);
		database_give(page);
		finish(page);
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Gives a page to the workers; false: they end. */
bool
http_submit(Page *page)
{
	bool taken;

	pthread_mutex_lock(&lock);
	taken = !stopping;
	if (taken)
	{
		if (page->http != NULL)
			MHD_suspend_connection(page->http);
		page->next = NULL;
		*last = page;
		last = &page->next;
		waiting++;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

/* A connection is free that no worker has given back. */
void
http_nudge(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/*
 * Returns whether too many pages wait, or too many of the role of this one; without a
 * login, of its address.
 */
static bool
is_busy(const Page *page)
{
	int same = 0;
	int same_client = 0;
	bool busy;

	pthread_mutex_lock(&lock);
	for (const Page *other = first; other != NULL; other = other->next)
		if (other->access == page->access)
		{
			same++;
			same_client += strcmp(other->client, page->client) == 0;
		}
	busy = waiting >= WAITING_MAX || same >= WAITING_MAX / 8 ||
		   (page->route->is_open && same_client >= WAITING_MAX / 32);
	pthread_mutex_unlock(&lock);
	return busy;
}

/* ---- what a POST sends ---- */

static size_t
upload_limit(const Page *page)
{
	return page->route != NULL && !page->route->is_open ? UPLOAD_MAX
														: LOGIN_MAX;
}

/* ---- memory, of which no role has all ---- */

/*
 * Has a page hold memory, for what it is sent or answers; false: its role has as
 * much as all others together could still have.  A page without a login is small.
 */
static bool
hold(Page *page, size_t length)
{
	long all = (long) length;
	long same = (long) length;

	if (page->route == NULL || page->route->is_open || page->access == NULL)
		return true;
	for (const Page *other = holders; other; other = other->next_holder)
	{
		all += (long) other->held;
		if (other->access == page->access)
			same += (long) other->held;
	}
	if (same > HELD_MAX - all)
		return false;
	if (page->held == 0 && length > 0)
	{
		page->next_holder = holders;
		holders = page;
	}
	page->held += length;
	return true;
}

static void
let_go(Page *page)
{
	for (Page **at = &holders; *at != NULL; at = &(*at)->next_holder)
		if (*at == page)
		{
			*at = page->next_holder;
			page->held = 0;
			return;
		}
}

/* ---- what a request asks for ---- */

static void
read_address(const struct sockaddr *address, char *text)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) address;
	const struct sockaddr_in *four = (const struct sockaddr_in *) address;

	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET, &four->sin_addr, text, INET6_ADDRSTRLEN);
	else if (address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, text, INET6_ADDRSTRLEN);
}

/* Notes who has connected, and for whom if it is a proxy of ours. */
static void
read_client(Page *page)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(page->http,
								MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	/* A proxy adds to the line that it was sent, or a line of its own. */
	const char *forwarded = lines_of(page, "X-Forwarded-For").last;
	const char *protocol = page_header(page, "X-Forwarded-Proto");

	read_address(info->client_addr, page->peer);
	strcpy(page->client, page->peer);
	page->is_secure = options.certificate != NULL;
	if (!trust_has_address(options.trusted, options.ntrusted, page->peer))
		return;
	page->is_secure |= protocol != NULL && strcasecmp(protocol, "https") == 0;
	if (forwarded == NULL)
		return;
	if (strrchr(forwarded, ',') != NULL)
		forwarded = strrchr(forwarded, ',') + 1;
	forwarded += strspn(forwarded, " ");
	if (trust_reads_address(forwarded) && strchr(forwarded, '/') == NULL)
		snprintf(page->client, sizeof(page->client), "%s", forwarded);
}

/* Returns whether the form can be read. */
static bool
read_form(Page *page)
{
	const char *type = page_header(page, "Content-Type");
	bool good =
		type != NULL &&
		strncasecmp(type, "application/x-www-form-urlencoded", 33) == 0 &&
		fields_read(&page->form, page->upload.data, page->upload.length);

	forget_upload(page);
	if (!good)
		refuse(page, MHD_HTTP_BAD_REQUEST, "Bad request",
			   "A field is not UTF-8, or malformed.");
	return good;
}

static bool
read_query(Page *page)
{
	return fields_read(&page->query, page->query_text,
					   page->query_text == NULL ? 0
												: strlen(page->query_text));
}

/* Says who may not have this page, or sends whom we do not know to the login. */
static bool
has_access(Page *page)
{
	if (page->route->is_open)
	{
		page->access = page->post ? database_logins() : database_unknown();
		database_keep(page->access);
	}
	else if (session_find(page))
		return true;
	else if (options.role_header != NULL)
		refuse(
			page, MHD_HTTP_FORBIDDEN, "Who are you?",
			"The proxy before this page has not said which role you are, or "
			"its address is not one of --trust.");
	else
		ask_for_login(page, NULL);
	return page->access != NULL;
}

/* Checks the header of a request; true: a worker is to make the page. */
static bool
is_for_worker(Page *page)
{
	if (!trust_has_host(page_header(page, "Host")))
		refuse(page, MHD_HTTP_MISDIRECTED_REQUEST, "Wrong host",
			   "This page is not known by that name. Start tq-web with --host "
			   "and the name.");
	else if (!read_query(page))
		refuse(page, MHD_HTTP_BAD_REQUEST, "Bad request",
			   "A field is not UTF-8, or malformed.");
	else if (page->is_cut || (page->route = route_find(page->path)) == NULL)
		refuse(page, MHD_HTTP_NOT_FOUND, "Not found",
			   "There is no such page.");
	else if (page->post ? page->route->act == NULL : page->route->show == NULL)
		refuse(page, MHD_HTTP_METHOD_NOT_ALLOWED, "Not done",
			   "This page is not for that method.");
	else if (page->post && !trust_has_origin(page))
		refuse(page, MHD_HTTP_FORBIDDEN, "Not done",
			   "The form was sent by a page of another host.");
	else
		return has_access(page);
	return false;
}

/* Notes what the connection of a request does. */
static void
set_client(struct MHD_Connection *http, ClientState state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (info != NULL && info->socket_context != NULL)
		client_set(info->socket_context, state);
}

/* Sends what the page has; the connection has its own hold on it. */
static enum MHD_Result
answer(Page *page)
{
	if (page->response == NULL)
		make_response(page);
	if (!hold(page, page->length))
	{
		MHD_destroy_response(page->response);
		free(page->location);
		page->location = NULL;
		page->is_plain = false;
		page->type = "text/html; charset=utf-8";
		refuse_busy(page, "Too many answers are not read yet.");
		make_response(page);
	}
	set_client(page->http, CLIENT_READING);
	return MHD_queue_response(page->http, page->status, page->response);
}

/* Begins a stream, which live.c goes on with. */
static enum MHD_Result
stream(Page *page)
{
	MHD_add_response_header(page->response, "X-Accel-Buffering", "no");
	add_page_headers(page, page->response);
	set_client(page->http, CLIENT_FOLLOWING);
	return MHD_queue_response(page->http, page->status, page->response);
}

/* Answers by a file that is inside; false: there is none of that name. */
static bool
answer_asset(Page *page, enum MHD_Result *result)
{
	unsigned int status = MHD_HTTP_OK;
	struct MHD_Response *asset = asset_find(page->path, page_takes_gzip(page),
											page_header(page, "If-None-Match"),
											&status);

	if (asset == NULL || page->post)
		return false;
	set_client(page->http, CLIENT_READING);
	*result = MHD_queue_response(page->http, status, asset);
	return true;
}

/* The request is whole, but for what was not kept of it. */
static enum MHD_Result
begin(Page *page)
{
	enum MHD_Result result;

	if (answer_asset(page, &result))
		return result;
	if (page->is_refused || (page->post && !read_form(page)))
		return answer(page);
	if (page->route->show == page_live)
		return live_open(page) ? stream(page) : answer(page);
	if (!is_busy(page))
	{
		set_client(page->http, CLIENT_ASKING);
		if (http_submit(page))
			return MHD_YES;
	}
	refuse_busy(page, "Too many requests wait. The page looks again.");
	return answer(page);
}

/* ---- libmicrohttpd ---- */

static enum MHD_Result
note_blank(void *subject, enum MHD_ValueKind kind, const char *name,
		   const char *value)
{
	*(bool *) subject |= strpbrk(name, " \t") != NULL;
	return MHD_YES;
}

/*
 * Returns whether a proxy before us may see another end of the request than
 * libmicrohttpd, which takes the first length of several.
 */
static bool
is_ambiguous(const Page *page)
{
	int lengths = lines_of(page, "Content-Length").n;
	int encodings = lines_of(page, "Transfer-Encoding").n;
	bool blank = false;

	MHD_get_connection_values(page->http, MHD_HEADER_KIND, note_blank, &blank);
	return blank || lengths + encodings > 1;
}

/*
 * The header has been read.  What is too large is refused at once; what is refused
 * otherwise is read to its end, and dropped, so that the browser reads the answer.
 */
static enum MHD_Result
begin_request(Page *page, struct MHD_Connection *http, const char *path,
			  const char *method)
{
	const char *text;
	size_t length = 0;

	page->http = http;
	page->path = copy_text(path);
	page->post = strcmp(method, "POST") == 0;
	read_client(page);
	page->is_refused = !is_for_worker(page);
	if (page->post)
	{
		text = page_header(page, "Content-Length");
		length = text == NULL ? upload_limit(page) : strtoull(text, NULL, 10);
	}
	if (!page->post && strcmp(method, "GET") != 0 &&
		strcmp(method, "HEAD") != 0)
		refuse(page, MHD_HTTP_METHOD_NOT_ALLOWED, "Not done",
			   "There is no page for that method.");
	else if (is_ambiguous(page))
		refuse(page, MHD_HTTP_BAD_REQUEST, "Bad request",
			   "How long the request is stands in it more than once.");
	else if (length > upload_limit(page))
		refuse(page, MHD_HTTP_CONTENT_TOO_LARGE, "Too large",
			   "What was sent is too large.");
	else if (page->is_refused || hold(page, length))
		return MHD_YES;
	else
		refuse_busy(page, "Too much is being sent. Try again.");
	return answer(page);
}

/* Keeps a part of what a POST sends, or drops it. */
static enum MHD_Result
take_upload(Page *page, const char *upload, size_t *length)
{
	page->received += *length;
	if (page->received > upload_limit(page))
		return MHD_NO;
	if (!page->is_refused)
		buffer_add(&page->upload, upload, *length);
	*length = 0;
	return MHD_YES;
}

static enum MHD_Result
handle(void *subject, struct MHD_Connection *http, const char *path,
	   const char *method, const char *version, const char *upload,
	   size_t *upload_length, void **context)
{
	Page *page = *context;

	if (page == NULL)
		return MHD_NO;
	if (page->http == NULL)
		return begin_request(page, http, path, method);
	if (*upload_length > 0)
		return take_upload(page, upload, upload_length);
	return page->is_done ? answer(page) : begin(page);
}

/* The first line of a request has been read: the query is not decoded here. */
static void *
begin_line(void *subject, const char *uri, struct MHD_Connection *http)
{
	Page *page = page_new();
	const char *query = strchr(uri, '?');
	const char *zero = strstr(uri, "%00");

	/* the path would end there */
	page->is_cut = zero != NULL && (query == NULL || zero < query);
	if (query != NULL)
		page->query_text = copy_text(query + 1);
	return page;
}

static void
end_request(void *subject, struct MHD_Connection *http, void **context,
			enum MHD_RequestTerminationCode code)
{
	if (*context != NULL)
	{
		let_go(*context);
		page_free(*context);
	}
	*context = NULL;
	set_client(http, CLIENT_WAITING);
}

static void
begin_or_end_client(void *subject, struct MHD_Connection *http, void **context,
					enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
	{
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);

		*context = client_begin(info->connect_fd);
	}
	else if (*context != NULL)
	{
		client_end(*context);
		*context = NULL;
	}
}

static void ignore_message(void *subject, const char *format,
						   va_list arguments)
	__attribute__((format(printf, 2, 0)));

static void
ignore_message(void *subject, const char *format, va_list arguments)
{
}

/* ---- begin and end ---- */

/* Reads a file that may be a secret; ends the program if there is none. */
static char *
read_file(const char *name)
{
	FILE *file = fopen(name, "r");
	Buffer text = {0};
	char piece[4096];
	size_t n;

	if (file == NULL)
	{
		log_line(LOG_ERROR, NULL, "%s cannot be read: %m", name);
		exit(EXIT_FAILURE);
	}
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
		buffer_add(&text, piece, n);
	fclose(file);
	return text.data;
}

/* Returns the address to listen on. */
static struct sockaddr_storage
listen_address(void)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in *four = (struct sockaddr_in *) &storage;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *) &storage;

	if (inet_pton(AF_INET, options.address, &four->sin_addr) == 1)
	{
		storage.ss_family = AF_INET;
		four->sin_port = htons(options.port);
	}
	else if (inet_pton(AF_INET6, options.address, &six->sin6_addr) == 1)
	{
		storage.ss_family = AF_INET6;
		six->sin6_port = htons(options.port);
	}
	else
	{
		log_line(LOG_ERROR, NULL, "--listen: %s is not an address",
				 options.address);
		exit(EXIT_USAGE);
	}
	return storage;
}

static void
start_server(void)
{
	struct sockaddr_storage address = listen_address();
	bool tls = options.certificate != NULL;
	char *key = tls ? read_file(options.key) : NULL;
	char *certificate = tls ? read_file(options.certificate) : NULL;
	struct MHD_OptionItem more[] =
		{{tls ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, key},
		 {MHD_OPTION_HTTPS_MEM_CERT, 0, certificate},
		 {MHD_OPTION_END, 0, NULL}};
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD |
						 MHD_USE_INTERNAL_POLLING_THREAD |
						 MHD_USE_SUSPEND_RESUME | MHD_USE_ITC |
						 MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0) |
						 (address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);

	server = MHD_start_daemon(flags, (uint16_t) options.port, NULL, NULL,
							  handle, NULL, MHD_OPTION_EXTERNAL_LOGGER,
							  ignore_message, NULL, MHD_OPTION_SOCK_ADDR,
							  &address, MHD_OPTION_URI_LOG_CALLBACK,
							  begin_line, NULL, MHD_OPTION_NOTIFY_COMPLETED,
							  end_request, NULL, MHD_OPTION_NOTIFY_CONNECTION,
							  begin_or_end_client, NULL,
							  MHD_OPTION_CONNECTION_MEMORY_LIMIT,
							  (size_t) HEADER_MAX, MHD_OPTION_CONNECTION_LIMIT,
							  (unsigned int) options.clients,
							  MHD_OPTION_CONNECTION_TIMEOUT,
							  (unsigned int) PATIENCE,
							  MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u,
							  MHD_OPTION_STRICT_FOR_CLIENT, 1,
							  MHD_OPTION_THREAD_STACK_SIZE,
							  (size_t) STACK_SIZE, MHD_OPTION_ARRAY, more,
							  MHD_OPTION_END);
	free(key);
	free(certificate);
	if (server != NULL)
		return;
	log_line(LOG_ERROR, NULL, "cannot listen on %s:%d: %m", options.address,
			 options.port);
	exit(EXIT_FAILURE);
}

void
http_start(void)
{
	pthread_attr_t attributes;

	workers = allocate(options.workers * sizeof(*workers));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (int i = 0; i < options.workers; i++)
		if (pthread_create(&workers[i], &attributes, work, NULL) != 0)
			abort();
	pthread_attr_destroy(&attributes);
	start_server();
}

/* Ends the workers, with the pages that they make, and then all connections. */
void
http_stop(void)
{
	Page *page;

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < options.workers; i++)
		pthread_join(workers[i], NULL);
	jobs_stop();
	live_stop();
	pthread_mutex_lock(&lock);
	page = first;
	first = NULL;
	last = &first;
	pthread_mutex_unlock(&lock);
	while (page != NULL)
	{
		Page *next = page->next;

		if (page->is_live)
		{
			page_free(page);
			page = next;
			continue;
		}
		refuse(page, MHD_HTTP_SERVICE_UNAVAILABLE, "Stopped",
			   "The program is being stopped.");
		page->is_done = true;
		MHD_resume_connection(page->http);
		page = next;
	}
	MHD_stop_daemon(server);
	free(workers);
}
