/*
 * label.c
 *	  Text of users in pictures: made safe to show, and escaped.
 *
 * Names of tasks, workers and errors are any text, and what is drawn is read by
 * a terminal, a browser or Graphviz.  A label is such a text without control
 * characters and without the format characters that change the direction of
 * what follows, and of a limited length.  Each language then has its escapes.
 */
#include "postgres.h"

#include <ctype.h>

#include "mb/pg_wchar.h"
#include "utils/timestamp.h"

#include "picture.h"

/* ---- how pictures show the state of a task ---- */

const TqStateStyle tq_state_styles[TQ_STATES] =
	{[TQ_STATE_UNSCHEDULED] = {"#bbbbbb", "#000000", "box", "filled,dashed",
							   "[", "]", '.'},
	 [TQ_STATE_PENDING] = {"#f0e442", "#000000", "box", "filled,rounded", "(",
						   ")", '-'},
	 [TQ_STATE_RUNNING] = {"#56b4e9", "#000000", "cds", "filled,bold", ">",
						   "]", '='},
	 [TQ_STATE_COMPLETED] = {"#009e73", "#000000", "box", "filled", "[", "]",
							 '#'},
	 [TQ_STATE_FAILED] = {"#d55e00", "#000000", "octagon", "filled,bold", "{{",
						  "}}", 'x'},
	 [TQ_STATE_EXCEPTION] = {"#cc79a7", "#000000", "hexagon", "filled", "{{",
							 "}}", '!'}};

/* ---- labels ---- */

/* What stands for a character that is not shown. */
#define REPLACEMENT '?'

/*
 * Returns whether a character of Unicode may be shown: no control character, no
 * separator of lines, no surrogate, and none that sets the direction of text.
 */
static bool
is_shown(pg_wchar c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return false;
	if (c == 0xad || c == 0x61c || c == 0xfeff || (c >= 0xfff9 && c <= 0xffff))
		return false;
	if ((c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x206f))
		return false;
	return (c < 0xd800 || c > 0xdfff) && (c < 0xe0000 || c > 0xe007f) &&
		   c <= 0x10ffff;
}

/*
 * Returns the length of the character at `text`, and whether it may be shown.
 * Other encodings than UTF-8 have no format characters that we know.
 */
static int
character(const char *text, const char *end, bool *shown)
{
	unsigned char first = *text;
	int len = Max(pg_mblen(text), 1);

	*shown = first >= 0x20 && first != 0x7f;
	if (len > end - text)
	{
		*shown = false;
		return end - text;
	}
	if (first < 0x80)
		return 1;
	if (GetDatabaseEncoding() == PG_UTF8)
		*shown = is_shown(utf8_to_unicode((const unsigned char *) text));
	else if (len == 1)
		*shown = first >= 0xa0;
	return len;
}

/*
 * Returns a text as a label, in which the end of a line is kept or a blank.  No
 * character becomes longer, so that the text and an ellipsis have space: a group
 * has a label for each task and each run.
 */
static char *
make_label(const char *text, int max, bool has_lines)
{
	size_t size = strlen(text);
	const char *end = text + size;
	char *label = palloc(size + sizeof("..."));
	char *at = label;

	for (int n = 0; text < end; n++)
	{
		bool shown;
		int len = character(text, end, &shown);

		if (n == max - 3 && pg_mbstrlen(text) > 3)
		{
			memcpy(at, "...", 3);
			at += 3;
			break;
		}
		if (*text == '\n' && has_lines)
			*at++ = '\n';
		else if (*text == '\n' || *text == '\r' || *text == '\t')
			*at++ = ' ';
		else if (!shown)
			*at++ = REPLACEMENT;
		else
		{
			memcpy(at, text, len);
			at += len;
		}
		text += len;
	}
	*at = '\0';
	return label;
}

/*
 * Returns a text as a label of at most `max` characters.  White space is a
 * blank, and what is not shown a question mark.
 */
char *
tq_label(const char *text, int max)
{
	return make_label(text, max, false);
}

/* Returns a text of several lines as a label for a page. */
char *
tq_label_lines(const char *text, int max)
{
	return make_label(text, max, true);
}

/*
 * Returns what the names of similar tasks have in common: each number is a
 * star; without a suffix, so is all that follows the first separator.
 */
char *
tq_label_pattern(const char *name, bool without_suffix)
{
	StringInfoData pattern;

	initStringInfo(&pattern);
	for (; *name != '\0'; name++)
	{
		if (without_suffix && pattern.len > 0 && strchr(" -_./:#(", *name))
		{
			appendStringInfo(&pattern, "%c*", *name);
			break;
		}
		if (!isdigit((unsigned char) *name))
			appendStringInfoChar(&pattern, *name);
		else if (pattern.len == 0 || pattern.data[pattern.len - 1] != '*')
			appendStringInfoChar(&pattern, '*');
	}
	return pattern.data;
}

/*
 * Appends a label to a page or an SVG.  What is not ASCII is a numeric
 * reference, so that the page has the same bytes in every client_encoding.
 */
void
tq_label_html(StringInfo out, const char *label)
{
	const char *text = pg_server_to_any(label, strlen(label), PG_UTF8);
	const unsigned char *p = (const unsigned char *) text;
	const unsigned char *end = p + strlen(text);

	while (p < end)
	{
		int len = pg_utf_mblen(p);

		if (*p < 0x80 && (isalnum(*p) || strchr(" \n.,:/_-()[]*+?!", *p)))
			appendStringInfoChar(out, *p);
		else if (len <= end - p && pg_utf8_islegal(p, len))
			appendStringInfo(out, "&#%u;", utf8_to_unicode(p));
		else
			appendStringInfoChar(out, REPLACEMENT);
		p += Min(len, end - p);
	}
}

/* Appends a label within a quoted string of Graphviz. */
void
tq_label_dot(StringInfo out, const char *label)
{
	for (; *label != '\0'; label++)
	{
		if (*label == '&')
			appendStringInfoString(out, "&amp;");
		else
		{
			if (*label == '"' || *label == '\\')
				appendStringInfoChar(out, '\\');
			appendStringInfoChar(out, *label);
		}
	}
}

/*
 * Appends a label within a quoted string of Mermaid, which reads Markdown,
 * HTML and its own entities there.
 */
void
tq_label_mermaid(StringInfo out, const char *label)
{
	for (; *label != '\0'; label++)
	{
		unsigned char c = *label;

		if (c >= 0x80 || isalnum(c) || strchr(" .,:/-()", c))
			appendStringInfoChar(out, c);
		else
			appendStringInfo(out, "#%d;", c);
	}
}

/* Returns a time in UTC, as the JSON of tq has it. */
char *
tq_label_time(TimestampTz t)
{
	struct pg_tm tm;
	fsec_t fsec;

	if (TIMESTAMP_NOT_FINITE(t) ||
		timestamp2tm(t, NULL, &tm, &fsec, NULL, NULL) != 0)
		return pstrdup(timestamptz_to_str(t));
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year,
					tm.tm_mon, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
					(int) (fsec / 1000));
}
