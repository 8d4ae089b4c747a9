/*
 * live.c
 *	  Pages that change while they are read, by server-sent events.
 *
 * One connection asks once a second whether anything has happened.  If so, each page
 * that is open is made again, once for all readers of a role, a few at a time; its
 * regions that have changed go to them.  A message is shared by its readers, and a
 * reader that is slow gets the next one whole: so a reader costs no statement, and no
 * memory but its connection.
 *
 * Where a reader takes gzip, its stream is one: the head, then blocks that refer to nothing
 * before them.  So a message is packed once, for all of its readers, and none has a state
 * of deflate, which would take 40 to 256 kB.  A stream ends without the end of gzip, as it
 * does when a connection is lost.
 *
 * Readers and pages belong to a role, or to an address where all have one role.  Each may
 * have as many as there is room for others: alone a half, a second one a quarter, and so
 * on; so none can have all, and of pages that are due, those are made first whose role has
 * fewest under way.  The same is so for the memory of pages; if slow readers hold too
 * many old versions, these readers are closed, and begin again.
 *
 * One lock, under which those of libmicrohttpd, of the accesses and of the sessions
 * are taken, and http.c's list.  A reader is there as long as its connection; a
 * connection that is suspended is not closed by others.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define MAKING_MAX 4 /* pages at a time */
#define STALE 10000  /* after which a page is made again in any case */
#define PING 15000   /* after which a reader gets a byte, lest it is gone */
#define SESSION_LOOK 5000
#define READERS_MAX 3000
#define FEEDS_MAX 512
#define KEPT_MAX                                                              \
	(32L * 1024 * 1024)          /* what pages have in their regions, in all */
#define KEPT_FIRST (256L * 1024) /* what one counts before it is made */
#define OLD_MAX                                                               \
	(8L * 1024 * 1024) /* of versions that slow readers still read */

/* Bytes that several readers are being sent. */
typedef struct Message
{
	int users;
	bool is_old; /* its feed has a newer one */
	Buffer text;
	Buffer packed; /* the same in blocks of deflate */
} Message;

/* What was last in a region. */
typedef struct Part
{
	char *id;
	uint64_t hash;
	Buffer text; /* as an event */
	Buffer packed;
} Part;

/* A page that is open, as its role sees it. */
struct Feed
{
	Feed *next;
	struct Reader *readers;
	char *path;
	char *query;
	const Route *route;
	char role[ROLE_LENGTH];
	char owner[ROLE_LENGTH]; /* who has opened it */
	Access *access;
	bool is_making;
	bool is_over; /* its role has to log in again */
	bool in_trouble;
	int version;
	Moment made;
	long made_at; /* the change that it shows */
	Part parts[REGIONS_MAX];
	int nparts;
	long kept;       /* bytes of these, and of the messages with them */
	Message *whole;  /* of this version, if it was needed */
	Message *change; /* from the version before */
};

typedef struct Reader
{
	struct Reader *next; /* of its feed */
	Feed *feed;
	struct MHD_Connection *http;
	char owner[ROLE_LENGTH];
	char session[TOKEN_LENGTH];
	bool is_suspended;
	bool is_packed;
	bool is_over; /* its session has ended */
	int version;
	Moment sent;
	Message *message; /* that is being sent */
	size_t at;
} Reader;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tick;
static pthread_t thread;
static Feed *feeds;
static int nfeeds;
static int nreaders;
static int making;
static long changes;
static long old; /* bytes of old messages */
static bool stopping;

/* ---- messages ---- */

/* The head of gzip: no name, no time, made by Unix. */
static const char gzip_head[] = {0x1f, (char) 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};

static Message *
message_new(void)
{
	Message *message = allocate(sizeof(Message));

	message->users = 1;
	return message;
}

/* Appends a text that is short. */
static void
message_put(Message *message, const char *text)
{
	buffer_add(&message->text, text, strlen(text));
	blocks_store(&message->packed, text, strlen(text));
}

static void
message_put_part(Message *message, const Part *part)
{
	buffer_add(&message->text, part->text.data, part->text.length);
	buffer_add(&message->packed, part->packed.data, part->packed.length);
}

static long
message_size(const Message *message)
{
	return (long) (message->text.length + message->packed.length);
}

static void
message_leave(Message *message)
{
	if (message == NULL || --message->users > 0)
		return;
	if (message->is_old)
		old -= message_size(message);
	buffer_free(&message->text);
	buffer_free(&message->packed);
	free(message);
}

/* Its feed has a newer one: who reads it has it still. */
static void
message_retire(Message *message)
{
	if (message == NULL)
		return;
	message->is_old = true;
	old += message_size(message);
	message_leave(message);
}

/* Appends an event; data may have several lines, and of first is one. */
static void
put_event(Buffer *out, const char *event, const char *first, const char *data,
		  size_t length)
{
	const char *end = data + length;

	buffer_put(out, "event: %s\ndata: %.*s\n", event,
			   (int) strcspn(first, "\r\n"), first);
	while (data < end)
	{
		const char *line = memchr(data, '\n', end - data);

		if (line == NULL)
			line = end;
		buffer_add(out, "data: ", 6);
		buffer_add(out, data, line - data);
		buffer_add(out, "\n", 1);
		data = line + 1;
	}
	buffer_add(out, "\n", 1);
}

/* Returns the message with all regions. */
static Message *
whole_of(Feed *feed)
{
	if (feed->whole != NULL)
		return feed->whole;
	feed->whole = message_new();
	for (int i = 0; i < feed->nparts; i++)
		message_put_part(feed->whole, &feed->parts[i]);
	message_put(feed->whole, feed->is_over      ? "event: login\ndata:\n\n"
							 : feed->in_trouble ? "event: trouble\ndata:\n\n"
												: "event: good\ndata:\n\n");
	return feed->whole;
}

/* ---- readers ---- */

static void
wake(Reader *reader)
{
	if (!reader->is_suspended)
		return;
	reader->is_suspended = false;
	MHD_resume_connection(reader->http);
}

static void
wake_all(Feed *feed)
{
	for (Reader *reader = feed->readers; reader != NULL; reader = reader->next)
		wake(reader);
}

/* Chooses what a reader is sent next; false: nothing yet. */
static bool
choose(Reader *reader)
{
	Feed *feed = reader->feed;
	Message *message;

	if (reader->version != feed->version)
	{
		message = feed->version == reader->version + 1 && feed->change != NULL
					  ? feed->change
					  : whole_of(feed);
		message->users++;
		reader->version = feed->version;
	}
	else if (clock_now() - reader->sent >= PING)
	{
		message = message_new();
		message_put(message, ":\n\n");
	}
	else
		return false;
	reader->message = message;
	reader->at = 0;
	return true;
}

/* libmicrohttpd asks for what comes next. */
static ssize_t
read_on(void *subject, uint64_t position, char *to, size_t room)
{
	Reader *reader = subject;
	const Buffer *text;
	ssize_t length;

	pthread_mutex_lock(&lock);
	if (stopping || reader->is_over ||
		(reader->message == NULL && reader->feed->is_over &&
		 reader->version == reader->feed->version))
	{
		pthread_mutex_unlock(&lock);
		return MHD_CONTENT_READER_END_OF_STREAM;
	}
	if (reader->message == NULL && !choose(reader))
	{
		reader->is_suspended = true;
		MHD_suspend_connection(reader->http);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	text = reader->is_packed ? &reader->message->packed
							 : &reader->message->text;
	length = text->length - reader->at;
	if ((size_t) length > room)
		length = room;
	memcpy(to, text->data + reader->at, length);
	reader->at += length;
	reader->sent = clock_now();
	if (reader->at == text->length)
	{
		message_leave(reader->message);
		reader->message = NULL;
	}
	pthread_mutex_unlock(&lock);
	return length;
}

/* Its connection is closed. */
static void
free_reader(void *subject)
{
	Reader *reader = subject;

	pthread_mutex_lock(&lock);
	for (Reader **at = &reader->feed->readers; *at != NULL; at = &(*at)->next)
		if (*at == reader)
		{
			*at = reader->next;
			break;
		}
	nreaders--;
	message_leave(reader->message);
	pthread_mutex_unlock(&lock);
	free(reader);
}

/* ---- feeds ---- */

static bool
is_same(const char *one, const char *other)
{
	return strcmp(one, other) == 0;
}

/* Says to whom a page counts. */
static void
owner_of(const Page *page, char *owner)
{
	if (options.as == NULL)
		strcpy(owner, page->role);
	else
		trust_network(page->client, owner, ROLE_LENGTH);
}

static Feed *
find_feed(const Page *page, const char *path, const char *query)
{
	Feed *feed = feeds;

	while (feed != NULL &&
		   (feed->is_over || feed->access != page->access ||
			!is_same(feed->path, path) || !is_same(feed->query, query)))
		feed = feed->next;
	return feed;
}

/* Returns whether one has as many pages as there is room for others, or as large ones. */
static bool
has_share(const char *owner)
{
	long kept = 0;
	long all = 0;
	int same = 0;

	for (const Feed *feed = feeds; feed != NULL; feed = feed->next)
	{
		long more = feed->version == 0 ? KEPT_FIRST : feed->kept;
		bool is_own = is_same(feed->owner, owner);

		same += is_own;
		kept += is_own ? more : 0;
		all += more;
	}
	return same >= FEEDS_MAX - nfeeds || kept >= KEPT_MAX - all;
}

/* Begins the feed of a page; NULL: there are too many. */
static Feed *
add_feed(const Page *page, const Route *route, const char *path,
		 const char *query, const char *owner)
{
	Feed *feed;

	if (has_share(owner))
		return NULL;
	feed = allocate(sizeof(Feed));
	feed->path = copy_text(path);
	feed->query = copy_text(query);
	feed->route = route;
	strcpy(feed->role, page->role);
	strcpy(feed->owner, owner);
	feed->access = page->access;
	database_keep(feed->access);
	feed->next = feeds;
	feeds = feed;
	nfeeds++;
	return feed;
}

static void
free_part(Part *part)
{
	free(part->id);
	buffer_free(&part->text);
	buffer_free(&part->packed);
}

static void
free_feed(Feed *feed)
{
	nfeeds--;
	for (int i = 0; i < feed->nparts; i++)
		free_part(&feed->parts[i]);
	message_leave(feed->whole);
	message_leave(feed->change);
	database_leave(feed->access);
	free(feed->path);
	free(feed->query);
	free(feed);
}

static int
count_readers(const char *owner)
{
	int n = 0;

	for (const Feed *feed = feeds; feed != NULL; feed = feed->next)
		for (const Reader *one = feed->readers; one != NULL; one = one->next)
			n += is_same(one->owner, owner);
	return n;
}

/* Adds a reader of a page; NULL: there are too many.  With the lock held. */
static Reader *
add_reader(const Page *page, const Route *route, const char *path,
		   const char *query)
{
	char owner[ROLE_LENGTH];
	Feed *feed = find_feed(page, path, query);
	Reader *reader;

	owner_of(page, owner);
	if (stopping || count_readers(owner) >= READERS_MAX - nreaders)
		return NULL;
	if (feed == NULL)
		feed = add_feed(page, route, path, query, owner);
	if (feed == NULL)
		return NULL;
	nreaders++;
	reader = allocate(sizeof(Reader));
	strcpy(reader->owner, owner);
	strcpy(reader->session, page->session);
	reader->feed = feed;
	reader->next = feed->readers;
	feed->readers = reader;
	reader->http = page->http;
	reader->sent = clock_now();
	reader->is_packed = page->is_packed;
	reader->message = message_new();
	buffer_add(&reader->message->packed, gzip_head, sizeof(gzip_head));
	message_put(reader->message, "retry: 3000\n\n");
	return reader;
}

/* Has the response of a page be a stream; false: there are too many. */
static bool
begin_stream(Page *page, const Route *route, const char *path,
			 const char *query)
{
	Reader *reader;

	page->is_packed = page_takes_gzip(page);
	pthread_mutex_lock(&lock);
	reader = add_reader(page, route, path, query);
	pthread_cond_signal(&tick);
	pthread_mutex_unlock(&lock);
	if (reader == NULL)
		return false;
	page->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096,
													   read_on, reader,
													   free_reader);
	if (page->response == NULL)
		abort();
	return true;
}

/* Has the browser keep what it has, and look again later. */
static void
put_off(Page *page)
{
	page->status = MHD_HTTP_OK;
	page->is_packed = false;
	page->type = "text/event-stream";
	buffer_put(&page->body,
			   "retry: 30000\nevent: trouble\ndata: too many pages "
			   "are open\n\n");
}

/* /live?path=/queues%3Ffind%3Dshop: the changes of that page, as events. */
bool
live_open(Page *page)
{
	const char *wanted = page_query(page, "path");
	char *path = copy_text(wanted == NULL ? "" : wanted);
	char *query = strchr(path, '?');
	const Route *route;
	bool good;

	if (query != NULL)
		*query++ = '\0';
	route = route_find(path);
	page->status = MHD_HTTP_NOT_FOUND;
	good = route != NULL && !route->is_open && route->show != NULL &&
		   route->show != page_live;
	if (good && !begin_stream(page, route, path, query == NULL ? "" : query))
	{
		put_off(page);
		good = false;
	}
	if (good)
	{
		page->status = MHD_HTTP_OK;
		page->type = "text/event-stream";
	}
	page->is_plain = true;
	free(path);
	return good;
}

/* Only live_open() serves its route. */
void
page_live(Page *page)
{
}

/* ---- pages that are made again ---- */

/* Returns a hash of a region, but for the words that say how long ago. */
static uint64_t
hash_of(const char *text, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	bool in_time = false;

	for (size_t i = 0; i < length; i++)
	{
		if (text[i] == '<')
			in_time = length - i > 6 && memcmp(text + i, "<time ", 6) == 0;
		if (!in_time || text[i] != ' ')
			hash = (hash ^ (unsigned char) text[i]) * UINT64_C(0x100000001b3);
		if (in_time && text[i] == '>')
			while (i + 1 < length && text[i + 1] != '<')
				i++;
	}
	return hash;
}

/*
 * Makes an event of a region of a page, unless it is as it was.  Without the lock: one
 * page of a feed is made at a time, and only its maker changes the parts.
 */
static void
make_part(const Feed *feed, const Page *page, int i, Part *part)
{
	const Region *region = &page->regions[i];
	const char *text = page->body.data + region->begin;
	size_t length = region->end - region->begin;

	part->hash = hash_of(text, length);
	if (i < feed->nparts && feed->parts[i].hash == part->hash &&
		strcmp(feed->parts[i].id, region->id) == 0)
		return;
	part->id = copy_text(region->id);
	put_event(&part->text, "region", region->id, text, length);
	part->packed = blocks_pack(&part->text);
}

/* Takes one region of a page that has changed. */
static void
take_part(Feed *feed, const Part *part, int i)
{
	if (i >= feed->nparts)
		feed->nparts = i + 1;
	free_part(&feed->parts[i]);
	feed->parts[i] = *part;
}

/* Closes the readers of old messages. */
static void
end_slow(void)
{
	for (Feed *feed = feeds; feed != NULL; feed = feed->next)
		for (Reader *reader = feed->readers; reader; reader = reader->next)
			if (reader->message != NULL && reader->message->is_old)
			{
				message_leave(reader->message);
				reader->message = NULL;
				reader->is_over = true;
			}
}

/* A message takes the place of the last change, and is a new version. */
static void
publish(Feed *feed, Message *change)
{
	message_retire(feed->whole);
	message_retire(feed->change);
	feed->whole = NULL;
	feed->change = change;
	feed->version++;
	feed->kept = 0;
	for (int i = 0; i < feed->nparts; i++)
		feed->kept += 2 * (long) (feed->parts[i].text.length +
								  feed->parts[i].packed.length);
	if (old > OLD_MAX)
		end_slow();
	wake_all(feed);
}

/* Takes the regions that have changed. */
static void
take_parts(Feed *feed, const Part *parts, int n)
{
	Message *change = message_new();

	for (int i = 0; i < n; i++)
	{
		if (parts[i].id == NULL)
			continue;
		take_part(feed, &parts[i], i);
		message_put_part(change, &parts[i]);
	}
	/* the first version is one, lest it is made again and again */
	if (change->text.length == 0 && !feed->in_trouble && feed->version > 0)
	{
		message_leave(change);
		return;
	}
	message_put(change, "event: good\ndata:\n\n");
	feed->in_trouble = false;
	publish(feed, change);
}

/* A page could not be made: its readers keep what they have, and know why. */
static void
take_trouble(Feed *feed, const Page *page)
{
	Message *change;
	Buffer event = {0};

	if (feed->in_trouble && page->location == NULL)
		return;
	change = message_new();
	if (page->location != NULL)
		put_event(&event, "login", "", "", 0);
	else
		put_event(&event, "trouble",
				  page->error == NULL ? "the page cannot be made"
									  : page->error,
				  "", 0);
	message_put(change, event.data);
	buffer_free(&event);
	feed->in_trouble = true;
	feed->is_over = page->location != NULL;
	publish(feed, change);
}

/* A worker has made a page of a feed. */
void
live_made(Page *page)
{
	Feed *feed = page->feed;
	bool is_good = page->location == NULL &&
				   page->status != MHD_HTTP_SERVICE_UNAVAILABLE;
	Part parts[REGIONS_MAX] = {0};

	for (int i = 0; is_good && i < page->nregions; i++)
		make_part(feed, page, i, &parts[i]);
	pthread_mutex_lock(&lock);
	making--;
	feed->is_making = false;
	feed->made = clock_now();
	if (is_good)
		take_parts(feed, parts, page->nregions);
	else
		take_trouble(feed, page);
	pthread_cond_signal(&tick);
	pthread_mutex_unlock(&lock);
	page_free(page);
}

static Page *
page_of(Feed *feed)
{
	Page *page = page_new();

	page->is_live = true;
	page->feed = feed;
	page->route = feed->route;
	page->path = copy_text(feed->path);
	page->query_text = copy_text(feed->query);
	strcpy(page->role, feed->role);
	page->access = feed->access;
	database_keep(page->access);
	fields_read(&page->query, feed->query, strlen(feed->query));
	return page;
}

static bool
is_due(const Feed *feed)
{
	Moment age = clock_now() - feed->made;

	if (feed->is_making || feed->is_over || feed->readers == NULL)
		return false;
	return feed->version == 0 || age >= STALE ||
		   (age >= 1000 && (feed->made_at != changes || feed->in_trouble));
}

static int
count_making(const char *owner)
{
	int n = 0;

	for (const Feed *feed = feeds; feed != NULL; feed = feed->next)
		n += feed->is_making && is_same(feed->owner, owner);
	return n;
}

/* Returns the page that is made next: of whom has fewest, what was made longest ago. */
static Feed *
next_due(void)
{
	Feed *next = NULL;
	int fewest = 0;

	for (Feed *feed = feeds; feed != NULL; feed = feed->next)
	{
		int n;

		if (!is_due(feed))
			continue;
		n = count_making(feed->owner);
		if (next == NULL || n < fewest ||
			(n == fewest && feed->made < next->made))
		{
			next = feed;
			fewest = n;
		}
	}
	return next;
}

/* Has the pages made that are due, a few at a time. */
static void
make_pages(void)
{
	Feed *next;

	while (making < MAKING_MAX && (next = next_due()) != NULL)
	{
		Page *page = page_of(next);

		next->is_making = true;
		next->made_at = changes;
		making++;
		if (!http_submit(page))
			page_free(page);
	}
}

/* Frees what has no reader, and wakes readers that were sent nothing for long. */
static void
sweep(void)
{
	Moment present = clock_now();

	for (Feed **at = &feeds; *at != NULL;)
	{
		Feed *feed = *at;

		if (feed->readers == NULL && !feed->is_making)
		{
			*at = feed->next;
			free_feed(feed);
			continue;
		}
		for (Reader *reader = feed->readers; reader; reader = reader->next)
			if (present - reader->sent >= PING)
				wake(reader);
		at = &feed->next;
	}
}

/* A stream is a use of its session, and ends with it. */
static void
look_at_sessions(void)
{
	static Moment looked;

	if (clock_now() - looked < SESSION_LOOK)
		return;
	looked = clock_now();
	for (Feed *feed = feeds; feed != NULL; feed = feed->next)
		for (Reader *reader = feed->readers; reader; reader = reader->next)
			if (options.as == NULL &&
				!session_touch(reader->session, feed->role))
			{
				reader->is_over = true;
				wake(reader);
			}
}

/* ---- what happens ---- */

/*
 * Notes whether anything has happened since the last time.  Where our role may not
 * see the counters, something may have.
 */
static void
look_for_changes(void)
{
	static char last[40];
	char *state = NULL;
	Page *page = page_new();
	PGresult *result;

	page->access = database_role("");
	if (!database_take(page))
		abort(); /* it has no other user */
	result = database_query(
		page,
		"SELECT md5(string_agg(concat_ws(' ', task_queue_id, pending, delayed,"
		" blocked, running, waiters, workers, workers_quarantined, created,"
		" claimed, completed, failed, exception, paused, limits), ',')) FROM"
		" tq.queue_stats",
		0, NULL);
	if (result != NULL && !PQgetisnull(result, 0, 0))
		state = PQgetvalue(result, 0, 0);
	if (state == NULL || strcmp(state, last) != 0)
		__atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
	last[0] = '\0';
	if (state != NULL && strlen(state) < sizeof(last))
		strcpy(last, state);
	PQclear(result);
	database_give(page);
	page_free(page);
}

static void *
watch_database(void *subject)
{
	pthread_mutex_lock(&lock);
	while (!stopping)
	{
		struct timespec until;

		if (feeds != NULL)
		{
			static Moment looked;

			if (clock_now() - looked >= 1000)
			{
				looked = clock_now();
				pthread_mutex_unlock(&lock);
				look_for_changes();
				pthread_mutex_lock(&lock);
			}
			look_at_sessions();
			sweep();
			make_pages();
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&tick, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Something has happened that the counters do not say. */
void
live_nudge(void)
{
	__atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
	pthread_cond_signal(&tick);
}

void
live_start(void)
{
	pthread_condattr_t steady; /* by a clock that is never set */

	if (pthread_condattr_init(&steady) != 0 ||
		pthread_condattr_setclock(&steady, CLOCK_MONOTONIC) != 0 ||
		pthread_cond_init(&tick, &steady) != 0 ||
		pthread_create(&thread, NULL, watch_database, NULL) != 0)
		abort();
	pthread_condattr_destroy(&steady);
}

/* Ends the streams. */
void
live_stop(void)
{
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&tick);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_mutex_lock(&lock);
	for (Feed *feed = feeds; feed != NULL; feed = feed->next)
		wake_all(feed);
	pthread_mutex_unlock(&lock);
}
