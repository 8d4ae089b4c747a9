/*
 * clients.c
 *	  Connections of browsers: those that hold out too long are closed.
 *
 * libmicrohttpd closes a connection on which nothing moves.  This closes one that
 * sends its request, or reads its answer, byte by byte; and if there are nearly as many as
 * there may be, the one that has waited longest without a request.  The list is in the
 * order of the last change.  It has a lock, under which a socket is shut down: so it is
 * still that of the connection, which libmicrohttpd closes after it has left the list.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "web.h"

#define REQUEST_MAX 30000 /* for a whole request to come */
#define ANSWER_MAX 60000  /* for a whole answer to be read */
#define UNREAD_MAX 131072 /* bytes that the kernel keeps for a client */

struct Client
{
	Client *next;
	Client *before;
	int socket;
	ClientState state;
	Moment since;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Client list = {.next = &list, .before = &list}; /* a ring */
static int n;

static void
append(Client *client)
{
	client->next = &list;
	client->before = list.before;
	list.before->next = client;
	list.before = client;
	client->since = clock_now();
}

static void
unlink_client(Client *client)
{
	client->before->next = client->next;
	client->next->before = client->before;
}

/* Closes the connection that has waited longest for a request, if there is one. */
static void
close_oldest(void)
{
	for (Client *client = list.next; client != &list; client = client->next)
		if (client->state == CLIENT_WAITING)
		{
			shutdown(client->socket, SHUT_RDWR);
			client->state = CLIENT_CLOSING;
			return;
		}
}

/* A connection was accepted. */
Client *
client_begin(int socket)
{
	Client *client = allocate(sizeof(Client));
	int unread = UNREAD_MAX;

	client->socket = socket;
	setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	pthread_mutex_lock(&lock);
	append(client);
	if (++n > options.clients - options.clients / 8)
		close_oldest();
	pthread_mutex_unlock(&lock);
	return client;
}

/* It is about to be closed. */
void
client_end(Client *client)
{
	pthread_mutex_lock(&lock);
	unlink_client(client);
	n--;
	pthread_mutex_unlock(&lock);
	free(client);
}

/* What it does from now on. */
void
client_set(Client *client, ClientState state)
{
	pthread_mutex_lock(&lock);
	if (client->state != CLIENT_CLOSING)
	{
		unlink_client(client);
		client->state = state;
		append(client);
	}
	pthread_mutex_unlock(&lock);
}

/* Closes those that have had their time. */
void
clients_sweep(void)
{
	Moment present = clock_now();

	pthread_mutex_lock(&lock);
	for (Client *client = list.next; client != &list; client = client->next)
		if ((client->state == CLIENT_WAITING &&
			 present - client->since > REQUEST_MAX) ||
			(client->state == CLIENT_READING &&
			 present - client->since > ANSWER_MAX))
		{
			shutdown(client->socket, SHUT_RDWR);
			client->state = CLIENT_CLOSING;
		}
	pthread_mutex_unlock(&lock);
}
