/*
 * trust.c
 *	  Which addresses, names of hosts and origins are ours.
 *
 * A page on another host that has its own name lead to this address (DNS rebinding)
 * is refused by the name.  An address in place of a name cannot be made to lead
 * elsewhere.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "web.h"

/* Reads an address into 16 bytes, those of IPv4 as in ::ffff:0:0/96. */
static bool
read_address(const char *text, unsigned char *bytes)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET6, text, bytes) == 1)
		return true;
	memcpy(bytes, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, bytes + 12) == 1;
}

/* Reads "10.0.0.0/8", or an address alone; returns the bits of the prefix. */
static int
read_prefix(const char *text, unsigned char *bytes)
{
	char address[INET6_ADDRSTRLEN];
	size_t length = strcspn(text, "/");
	int whole = memchr(text, ':', length) == NULL ? 32 : 128;
	char *end = NULL;
	long bits = text[length] == '/' ? strtol(text + length + 1, &end, 10)
									: whole;

	if (length >= sizeof(address) || bits < 0 || bits > whole ||
		(end != NULL && (*end != '\0' || text[length + 1] < '0')))
		return -1;
	memcpy(address, text, length);
	address[length] = '\0';
	if (!read_address(address, bytes))
		return -1;
	return (int) bits + 128 - whole;
}

static bool
has_prefix(const unsigned char *address, const unsigned char *prefix, int bits)
{
	int rest = bits % 8;

	if (memcmp(address, prefix, bits / 8) != 0)
		return false;
	return rest == 0 ||
		   ((address[bits / 8] ^ prefix[bits / 8]) >> (8 - rest)) == 0;
}

/* Returns whether a text is an address or a network. */
bool
trust_reads_address(const char *text)
{
	unsigned char bytes[16];

	return read_prefix(text, bytes) >= 0;
}

/* Returns whether a list has an address, or its network. */
bool
trust_has_address(const char *const *list, int n, const char *address)
{
	unsigned char bytes[16];
	unsigned char prefix[16];

	if (!read_address(address, bytes))
		return false;
	for (int i = 0; i < n; i++)
	{
		int bits = read_prefix(list[i], prefix);

		if (bits >= 0 && has_prefix(bytes, prefix, bits))
			return true;
	}
	return false;
}

/* Says which part of an address one client cannot choose. */
void
trust_network(const char *address, char *network, size_t room)
{
	struct in6_addr bytes;

	snprintf(network, room, "%s", address);
	if (inet_pton(AF_INET6, address, &bytes) != 1 ||
		IN6_IS_ADDR_V4MAPPED(&bytes))
		return;
	memset(bytes.s6_addr + 8, 0, 8);
	inet_ntop(AF_INET6, &bytes, network, room);
}

/* Takes the port from "host:port", and the brackets from "[::1]:port". */
static bool
name_of(const char *host, char *name, size_t room)
{
	size_t length = *host == '[' ? strcspn(++host, "]") : strcspn(host, ":");

	if (length == 0 || length >= room)
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	return true;
}

/* Returns whether a request may have this header Host. */
bool
trust_has_host(const char *host)
{
	char name[256];
	unsigned char bytes[16];

	if (host == NULL || !name_of(host, name, sizeof(name)))
		return false;
	if (read_address(name, bytes) || strcasecmp(name, "localhost") == 0)
		return true;
	for (int i = 0; i < options.nhosts; i++)
		if (strcasecmp(name, options.hosts[i]) == 0)
			return true;
	return false;
}

/*
 * Returns whether a POST comes from a page of ours, as far as the browser says
 * where from.  All browsers do with a POST; a login, whose form has no token, has to
 * say so, because another page could else log a person in as another.
 */
bool
trust_has_origin(const Page *page)
{
	const char *origin = page_header(page, "Origin");
	const char *site = page_header(page, "Sec-Fetch-Site");
	const char *host = page_header(page, "Host");

	if (site != NULL && strcmp(site, "same-origin") != 0 &&
		strcmp(site, "none") != 0)
		return false;
	if (origin == NULL)
		return site != NULL || !page->route->is_open;
	if (page->is_secure && strncasecmp(origin, "https://", 8) != 0)
		return false;
	origin = strstr(origin, "://");
	return origin != NULL && host != NULL && strcasecmp(origin + 3, host) == 0;
}
