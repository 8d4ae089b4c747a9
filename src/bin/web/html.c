/*
 * html.c
 *	  HTML: the only place that escapes, and what pages are made of.
 *
 * What html() is given as an argument is text, whatever is in it; what is HTML
 * stands in its format, which is constant.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "web.h"

/* Appends a text, so that it is shown as it is. */
static void
put_text(Buffer *out, const char *text)
{
	for (; *text != '\0'; text++)
	{
		size_t length = strcspn(text,
								"&<>\"'\1\2\3\4\5\6\7\b\v\f\r\16\17\20\21"
								"\22\23\24\25\26\27\30\31\32\33\34\35\36\37"
								"\177");

		buffer_add(out, text, length);
		text += length;
		if (*text == '\0')
			return;
		switch (*text)
		{
			case '&':
				buffer_add(out, "&amp;", 5);
				break;
			case '<':
				buffer_add(out, "&lt;", 4);
				break;
			case '>':
				buffer_add(out, "&gt;", 4);
				break;
			case '"':
				buffer_add(out, "&quot;", 6);
				break;
			case '\'':
				buffer_add(out, "&#39;", 5);
				break;
			case '\r': /* of the end of a line */
				break;
			default: /* a control character */
				buffer_add(out, "\357\277\275", 3);
		}
	}
}

/* Appends what one conversion of a format says. */
static void
put_argument(Buffer *out, const char *spec, size_t length, va_list *arguments)
{
	char format[16];
	char kind = spec[length - 1];
	char text[400];

	if (length >= sizeof(format))
		abort();
	memcpy(format, spec, length);
	format[length] = '\0';
	if (kind == 's')
	{
		const char *value = va_arg(*arguments, const char *);

		put_text(out, value == NULL ? "" : value);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (kind == 'f')
		snprintf(text, sizeof(text), format, va_arg(*arguments, double));
	else if (strchr(format, 'z') != NULL)
		snprintf(text, sizeof(text), format, va_arg(*arguments, size_t));
	else if (strchr(format, 'l') != NULL)
		snprintf(text, sizeof(text), format, va_arg(*arguments, long));
	else
		snprintf(text, sizeof(text), format, va_arg(*arguments, int));
#pragma GCC diagnostic pop
	buffer_add(out, text, strlen(text));
}

/* Knows %s, which escapes, and %d, %u, %ld, %zu, %.1f, %%. */
static void
put_format(Buffer *out, const char *format, va_list *arguments)
{
	for (;;)
	{
		size_t length = strcspn(format, "%");

		buffer_add(out, format, length);
		format += length;
		if (*format == '\0')
			return;
		if (format[1] == '%')
		{
			buffer_add(out, "%", 1);
			format += 2;
			continue;
		}
		length = 1 + strcspn(format + 1, "sduf") + 1;
		put_argument(out, format, length, arguments);
		format += length;
	}
}

/* Appends HTML to the page's body; each argument is escaped. */
void
html(Page *page, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_format(&page->body, format, &arguments);
	va_end(arguments);
}

/* ---- numbers and times ---- */

/* Writes digits in groups of three. */
static void
group_digits(char *text, size_t room, double number)
{
	char digits[64];
	char *to = text;
	int length = snprintf(digits, sizeof(digits), "%.0f", fabs(number));

	if (length >= (int) sizeof(digits))
		length = (int) sizeof(digits) - 1;
	if (number < 0)
		*to++ = '-';
	for (int i = 0; i < length && to < text + room - 2; i++)
	{
		*to++ = digits[i];
		if ((length - i) % 3 == 1 && i < length - 1)
			*to++ = ',';
	}
	*to = '\0';
}

/* A whole number. */
void
html_count(Page *page, double number)
{
	char text[96];

	group_digits(text, sizeof(text), number);
	html(page, "%s", text);
}

/* A number per second: as many digits as say something. */
void
html_rate(Page *page, double number)
{
	if (number == 0 || number >= 100)
		html_count(page, number);
	else if (number < 0.01)
		html(page, "&lt;0.01");
	else
		html(page, number < 10 ? "%.2f" : "%.1f", number);
}

static void
write_duration(char *text, size_t room, double seconds)
{
	static const struct
	{
		double length;
		const char *name;
		double part;
		const char *part_name;
	} units[] = {{86400, "d", 3600, "h"},
				 {3600, "h", 60, "min"},
				 {60, "min", 1, "s"}};
	size_t i = 0;

	if (seconds < 0)
		seconds = 0;
	while (i < 3 && seconds < units[i].length)
		i++;
	if (seconds < 0.01 && seconds > 0)
		snprintf(text, room, "%.1f ms", seconds * 1000);
	else if (seconds < 1)
		snprintf(text, room, "%.0f ms", seconds * 1000);
	else if (i == 3)
		snprintf(text, room, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
	else
	{
		double whole = floor(seconds / units[i].length);
		double part = floor((seconds - whole * units[i].length) /
							units[i].part);

		if (part > 0 && whole < 100)
			snprintf(text, room, "%.0f %s %.0f %s", whole, units[i].name, part,
					 units[i].part_name);
		else
			snprintf(text, room, "%.0f %s", whole, units[i].name);
	}
}

/* A length of time, in two units at most. */
void
html_duration(Page *page, double seconds)
{
	char text[64];

	write_duration(text, sizeof(text), seconds);
	html(page, "%s", text);
}

/* A time, as seen from the present one; both in seconds since 1970. */
void
html_time(Page *page, double at, double present)
{
	char text[64];
	char whole[64];
	time_t seconds = (time_t) at;
	struct tm parts;

	if (!isfinite(at) || gmtime_r(&seconds, &parts) == NULL)
	{
		html(page, at > 0 ? "never" : "always");
		return;
	}
	strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%SZ", &parts);
	write_duration(text, sizeof(text), fabs(present - at));
	if (fabs(present - at) < 1)
		strcpy(text, "now");
	html(page, "<time datetime=\"%s\" title=\"%s\">%s%s%s</time>", whole,
		 whole, at > present + 1 ? "in " : "", text,
		 at < present - 1 ? " ago" : "");
}

/* ---- what a task is ---- */

/* The mark of a state: its shape says what its colour says. */
static const char *
mark_of(const char *state)
{
	static const struct
	{
		const char *state;
		const char *shape;
	} marks[] = {
		{"unscheduled", "<rect x=2 y=3 width=12 height=10 class=hollow />"},
		{"delayed", "<circle cx=8 cy=8 r=6 class=hollow /><path d='M8 4v4h3' "
					"class=line />"},
		{"pending", "<rect x=2 y=3 width=12 height=10 rx=4 />"},
		{"running", "<path d='M2 3h8l4 5-4 5H2z'/>"},
		{"completed",
		 "<rect x=2 y=2 width=12 height=12 /><path d='m5 8 2 3 4-6' "
		 "class=cut />"},
		{"failed", "<path d='M5 1h6l4 4v6l-4 4H5l-4-4V5z'/><path d='m5 5 6 "
				   "6m0-6-6 6' class=cut />"},
		{"exception",
		 "<path d='M4 2h8l3 6-3 6H4L1 8z'/><path d='M8 4v5m0 2v1' class=cut />"},
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strcmp(marks[i].state, state) == 0)
			return marks[i].shape;
	return "<circle cx=8 cy=8 r=5 />";
}

/* A state, with its mark. */
void
html_state(Page *page, const char *state)
{
	html(page,
		 "<span class=\"state is-%s\"><svg viewBox=\"0 0 16 16\" "
		 "aria-hidden=true>",
		 state);
	buffer_put(&page->body, "%s", mark_of(state));
	html(page, "</svg>%s</span>", state);
}

/*
 * An id: short, whole on hover, and to be copied.  Its first eight characters are
 * the time for those that tq makes, the same for all that a call has created.
 */
void
html_id(Page *page, const char *id, const char *url)
{
	char begin[13];

	snprintf(begin, sizeof(begin), "%s", id);
	if (url != NULL)
		html(page, "<a class=id href=\"%s\" title=\"%s\">%s</a>", url, id,
			 begin);
	else
		html(page, "<span class=id title=\"%s\">%s</span>", id, begin);
	html(page,
		 "<button type=button class=copy data-copy=\"%s\" "
		 "aria-label=\"Copy id %s\" hidden></button>",
		 id, begin);
}

/* A form of one field, by which a page finds what it shows. */
void
html_find(Page *page, const char *name, const char *title)
{
	const char *value = page_query(page, name);

	html(page,
		 "<form class=find role=search><label for=%s class=away>%s</label>"
		 "<input id=%s name=%s type=search value=\"%s\" placeholder=\"%s\">"
		 "<button>Find</button></form>",
		 name, title, name, name, value == NULL ? "" : value, title);
}

/* A choice of a priority, the highest first. */
void
html_priorities(Page *page, const char *name, const char *chosen)
{
	static const char *const priorities[] = {"highest", "very-high",
											 "high",    "medium",
											 "low",     "very-low",
											 "lowest",  NULL};

	html(page, "<select id=%s name=%s>", name, name);
	for (int i = 0; priorities[i] != NULL; i++)
		html(page, "<option%s>%s</option>",
			 strcmp(priorities[i], chosen) == 0 ? " selected" : "",
			 priorities[i]);
	html(page, "</select>");
}

/* JSON, as it is. */
void
html_json(Page *page, const char *json)
{
	html(page, "<pre class=json tabindex=0>%s</pre>", json);
}

/* ---- what is to be said ---- */

/* A box: kind is "error", "warning", "good" or "info". */
void
html_notice(Page *page, const char *kind, const char *format, ...)
{
	va_list arguments;

	html(page, "<div class=\"notice %s\" role=%s><p>", kind,
		 strcmp(kind, "error") == 0 ? "alert" : "status");
	va_start(arguments, format);
	put_format(&page->body, format, &arguments);
	va_end(arguments);
	html(page, "</p></div>");
}

/* The last error of the database, with what to do. */
void
html_error(Page *page)
{
	if (page->error == NULL)
		return;
	html(page,
		 "<div class=\"notice error\" role=alert><p><strong>%s</strong></p>",
		 page->error);
	if (page->detail != NULL)
		html(page, "<p>%s</p>", page->detail);
	if (page->hint != NULL)
		html(page, "<p class=hint>%s</p>", page->hint);
	if (page->state[0] != '\0')
		html(page, "<p class=quiet>SQLSTATE %s</p>", page->state);
	html(page, "</div>");
}

/* What stands where there is nothing, and what to do then. */
void
html_empty(Page *page, const char *title, const char *format, ...)
{
	va_list arguments;

	html(page, "<div class=empty><p>%s</p>", title);
	if (format != NULL)
	{
		html(page, "<p class=quiet>");
		va_start(arguments, format);
		put_format(&page->body, format, &arguments);
		va_end(arguments);
		html(page, "</p>");
	}
	html(page, "</div>");
}

/* Begins a form that posts, or one that asks first and does nothing. */
void
html_form(Page *page, const char *action, bool asks)
{
	html(page, "<form class=action method=%s action=\"%s\">",
		 asks ? "get" : "post", action);
	if (asks)
		return;
	html(page, "<input type=hidden name=token value=\"");
	buffer_put(&page->body, "%c", TOKEN_MARK);
	html(page, "\">");
}

/* ---- regions, which are replaced in place when they change ---- */

void
region_begin(Page *page, const char *id)
{
	html(page, "<div data-live id=\"%s\">", id);
	if (page->nregions == REGIONS_MAX)
		abort();
	page->regions[page->nregions] = (Region){.id = id,
											 .begin = page->body.length};
}

void
region_end(Page *page)
{
	page->regions[page->nregions++].end = page->body.length;
	html(page, "</div>");
}

/* ---- the frame ---- */

/* Appends what a page has, with the token of the session where forms have it. */
void
html_with_token(const Page *page, const char *text, size_t length, Buffer *out)
{
	const char *end = text + length;

	while (text < end)
	{
		const char *mark = memchr(text, TOKEN_MARK, end - text);

		if (mark == NULL)
			mark = end;
		buffer_add(out, text, mark - text);
		if (mark < end)
			buffer_put(out, "%s", page->masked);
		text = mark + 1;
	}
}

static void put(Buffer *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
put(Buffer *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_format(out, format, &arguments);
	va_end(arguments);
}

static void
put_navigation(const Page *page, Buffer *out)
{
	const char *current = page->route == NULL ? "" : page->route->path;

	if (page->route != NULL && page->route->parent != NULL)
		current = page->route->parent;
	put(out, "<nav aria-label=Pages><ul>");
	for (const Route *route = routes; route->path != NULL; route++)
		if (route->title != NULL)
			put(out, "<li><a href=\"%s\"%s>%s</a></li>", route->path,
				strcmp(current, route->path) == 0 ? " aria-current=page" : "",
				route->title);
	put(out, "</ul></nav>");
}

static void
put_person(const Page *page, Buffer *out)
{
	put(out, "<div class=person><span title=\"Role\">%s</span>", page->role);
	if (page->session[0] != '\0')
		put(out,
			"<form method=post action=/logout><input type=hidden name=token "
			"value=\"%s\"><button class=link>Log out</button></form>",
			page->masked);
	put(out, "</div>");
}

static void
put_head(const Page *page, Buffer *out)
{
	const char *title = page->title == NULL ? "tq" : page->title;

	put(out,
		"<!DOCTYPE html><html lang=en><head><meta charset=utf-8>"
		"<meta name=viewport content=\"width=device-width,initial-scale=1\">"
		"<meta name=color-scheme content=\"light dark\">"
		"<title>%s%s%s</title><link rel=stylesheet href=\"%s\">"
		"<link rel=icon type=image/svg+xml href=\"%s\">"
		"<script src=\"%s\" defer></script><meta name=token "
		"content=\"%s\"><meta name=present content=%ld>",
		title, database_name()[0] == '\0' ? "" : " · ", database_name(),
		asset_path("style.css"), asset_path("icon.svg"), asset_path("live.js"),
		page->masked, (long) time(NULL));
	if (page->refreshes)
		put(out, "<noscript><meta http-equiv=refresh content=3></noscript>");
	put(out,
		"</head><body%s><a class=skip href=#main>Skip to content</a>"
		"<header class=top><a class=brand href=/><strong>tq</strong> "
		"<span>%s</span></a>",
		page->nregions > 0 ? " class=has-live" : "", database_name());
	if (page->access != NULL && page->role[0] != '\0')
	{
		put_navigation(page, out);
		put_person(page, out);
	}
	put(out,
		"</header><main id=main tabindex=-1><div class=heading><h1>%s</h1>"
		"<p id=live class=quiet aria-live=polite></p></div>",
		title);
}

/* Puts the frame around a page. */
void
html_frame(Page *page, Buffer *out)
{
	session_mask(page);
	put_head(page, out);
	if (action_done(page) != NULL)
		put(out,
			"<div class=\"notice good\" role=status><p>Done: %s.</p></div>",
			action_done(page));
	if (page->body.length > 0)
		html_with_token(page, page->body.data, page->body.length, out);
	put(out, "</main><footer class=quiet>tq-web %s%s</footer></body></html>",
		TQ_VERSION, !action_is_possible() ? " · read only" : "");
}
