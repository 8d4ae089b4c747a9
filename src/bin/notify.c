/*
 * notify.c
 *	  What systemd knows of a program that it has started.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "program.h"

/* Sends a datagram to systemd; returns whether there is a systemd that waits for it. */
bool
notify_systemd(const char *text)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = name == NULL ? 0 : strlen(name);
	int fd;

	if (length == 0 || length >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, name, length);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *) &address,
		   offsetof(struct sockaddr_un, sun_path) + length);
	close(fd);
	return true;
}
