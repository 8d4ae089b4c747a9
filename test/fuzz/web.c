/*
 * web.c
 *	  A fuzz target: what tq-web reads of a request, and what it writes of a text.
 *
 * Sources: src/bin/text.c src/bin/web/fields.c src/bin/web/trust.c src/bin/web/html.c src/bin/web/chart.c src/bin/web/action.c
 *
 * An input is a query, a text to be shown and the numbers of a spark line, and its
 * lines are addresses, names of hosts and URLs to go to.  What these sources call
 * of others is not linked; no rule needs it.
 */
#include <arpa/inet.h>
#include <ctype.h>

#include "web.h"
#include "fuzz.h"

#define LINES_MAX 40

const char *const program_name = "fuzz";
Options options;
const Route routes[1];

const char *
page_header(const Page *page, const char *name)
{
	return NULL;
}

/* ---- fields ---- */

/* The character that begins a text is UTF-8 as RFC 3629 has it: its length, or 0. */
static size_t
character(const unsigned char *text)
{
	static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80   ? 1
					: text[0] < 0xC0 ? 0
					: text[0] < 0xE0 ? 2
					: text[0] < 0xF0 ? 3
					: text[0] < 0xF8 ? 4
									 : 0;
	unsigned int code = length < 2 ? text[0] : text[0] & (0x7F >> length);

	for (size_t i = 1; i < length; i++)
	{
		if ((text[i] & 0xC0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3F);
	}
	if (length == 0 || code < least[length] || code > 0x10FFFF ||
		(code >= 0xD800 && code < 0xE000))
		return 0;
	return length;
}

static bool
is_text(const char *text)
{
	while (*text != '\0')
	{
		size_t length = character((const unsigned char *) text);

		if (length == 0)
			return false;
		text += length;
	}
	return true;
}

static void
require_same(const Fields *one, const Fields *other)
{
	require(one->n == other->n, "fields are as many when they are read again");
	for (int i = 0; i < one->n; i++)
		require(strcmp(one->all[i].name, other->all[i].name) == 0 &&
					strcmp(one->all[i].value, other->all[i].value) == 0,
				"a field is the same when it is read again");
}

static void
check_fields(const char *text, size_t size)
{
	Fields fields;
	Fields again;
	Buffer url = {0};

	if (!fields_read(&fields, text, size))
	{
		require(fields.n == 0 && fields.all == NULL,
				"what is malformed has no fields");
		return;
	}
	for (int i = 0; i < fields.n; i++)
	{
		require(is_text(fields.all[i].name) && is_text(fields.all[i].value),
				"a field is UTF-8");
		require(fields_get(&fields, fields.all[i].name) != NULL,
				"a field is found");
		buffer_put(&url, "%s", i > 0 ? "&" : "");
		url_add(&url, fields.all[i].name);
		buffer_put(&url, "=");
		url_add(&url, fields.all[i].value);
	}
	require(url.data == NULL || strpbrk(url.data, "<>\"'\\ \r\n\t") == NULL,
			"a URL has no character that HTML or a header knows");
	if (size > 0)
	{
		require(fields_read(&again, url.data, url.length),
				"fields are written so that they are read");
		require_same(&fields, &again);
		fields_free(&again);
	}
	buffer_free(&url);
	fields_free(&fields);
}

/* ---- HTML ---- */

/* Takes what one character of a text became; returns what follows, or NULL. */
static const char *
take(const char *html, char wanted)
{
	static const char *const names[][2] = {{"&", "&amp;"},
										   {"<", "&lt;"},
										   {">", "&gt;"},
										   {"\"", "&quot;"},
										   {"'", "&#39;"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (wanted == names[i][0][0])
			return strncmp(html, names[i][1], strlen(names[i][1])) == 0
					   ? html + strlen(names[i][1])
					   : NULL;
	if ((unsigned char) wanted >= ' ' && wanted != '\177')
		return *html == wanted ? html + 1 : NULL;
	if (wanted == '\n' || wanted == '\t')
		return *html == wanted ? html + 1 : NULL;
	if (wanted == '\r') /* a form sends it before the end of a line */
		return html;
	return strncmp(html, "\357\277\275", 3) == 0 ? html + 3 : NULL;
}

static void
check_html(const char *text)
{
	Page page = {0};
	const char *at;

	html(&page, "[%s]", text);
	at = page.body.data + 1;
	for (; *text != '\0'; text++)
	{
		at = take(at, *text);
		require(at != NULL, "a text is shown as it is");
	}
	require(strcmp(at, "]") == 0, "nothing is added to a text");
	buffer_free(&page.body);
}

/* Digits and commands between "d=" and the end of the path. */
static void
check_spark(const char *text)
{
	Page page = {0};
	const char *path;

	chart_spark(&page, text, NULL);
	path = page.body.data == NULL ? NULL : strstr(page.body.data, " d=\"");
	if (path != NULL)
		require(path[4 + strspn(path + 4, "ML0123456789.- ")] == '"',
				"a spark line has numbers");
	buffer_free(&page.body);
}

/* ---- addresses and hosts ---- */

/* Reads what inet_pton() does, as an address of IPv6; returns its bits, or 0. */
static int
read_bits(const char *text, bool *bits)
{
	unsigned char bytes[16] = {[10] = 0xff, [11] = 0xff};
	bool four = inet_pton(AF_INET, text, bytes + 12) == 1;

	if (!four && inet_pton(AF_INET6, text, bytes) != 1)
		return 0;
	for (int i = 0; i < 128; i++)
		bits[i] = bytes[i / 8] >> (7 - i % 8) & 1;
	return four ? 32 : 128;
}

/* Returns how many bits of a network count, or -1: it is none. */
static int
read_network(const char *text, bool *bits)
{
	char *copy = fuzz_string(text, strlen(text));
	char *slash = strchr(copy, '/');
	int whole;
	int count = 0;

	if (slash != NULL)
		*slash++ = '\0';
	whole = read_bits(copy, bits);
	if (slash == NULL)
		count = whole;
	else if (*slash == '\0' || strlen(slash) > 9 ||
			 slash[strspn(slash, "0123456789")] != '\0')
		whole = 0;
	else
		count = (int) strtol(slash, NULL, 10);
	free(copy);
	return whole == 0 || count > whole ? -1 : 128 - whole + count;
}

static void
check_address(const char *network, const char *address)
{
	bool one[128];
	bool other[128];
	int bits = read_network(network, one);
	bool good = bits >= 0 && read_bits(address, other) > 0;

	require(trust_reads_address(network) == (bits >= 0),
			"a network is read as it is written");
	for (int i = 0; i < bits && good; i++)
		good = one[i] == other[i];
	require(trust_has_address(&network, 1, address) == good,
			good ? "a network has its address" : "it has no other");
}

static void
check_host(const char *host)
{
	static const char *const names[] = {"localhost", "tq.example.org"};
	bool bits[128];
	char *name = fuzz_string(host, strlen(host));
	bool good;

	options.hosts[0] = names[1];
	options.nhosts = 1;
	name[strcspn(name, *name == '[' ? "]" : ":")] = '\0';
	good = read_bits(name + (*name == '['), bits) > 0;
	for (int i = 0; i < 2; i++)
		good |= strcasecmp(name + (*name == '['), names[i]) == 0;
	require(trust_has_host(host) == good,
			good ? "a host is known" : "no other is");
	free(name);
}

/* ---- where to go ---- */

/* What a browser makes of a URL: no blanks around, no tabs and lines, one slash. */
static void
check_target(const char *url)
{
	char *seen = fuzz_string(url, strlen(url));
	char *to = seen;

	if (action_is_here(url))
	{
		while (*url != '\0' && (unsigned char) *url <= ' ')
			url++;
		for (; *url != '\0'; url++)
			if (strchr("\t\r\n", *url) == NULL)
				*to++ = *url == '\\' ? '/' : *url;
		*to = '\0';
		require(seen[0] == '/' && seen[1] != '/', "a way leads to no host");
		for (to = seen; *to != '\0'; to++)
			require(!iscntrl((unsigned char) *to), "nor does it end a header");
	}
	free(seen);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_string(data, size);
	char *network;
	char *line;

	check_fields(text, size);
	check_html(text);
	check_spark(text);
	require(text_is_clean(text, strlen(text)) == is_text(text),
			"what the database takes is UTF-8");
	free(text);
	network = fuzz_line(&data, &size);
	check_host(network);
	check_target(network);
	for (int i = 0; i < LINES_MAX; i++)
	{
		line = fuzz_line(&data, &size);
		if (line == NULL)
			break;
		check_address(network, line);
		check_host(line);
		check_target(line);
		free(line);
	}
	free(network);
	return 0;
}
