/*
 * picture.c
 *	  Pictures that the database draws, shown within a page.
 *
 * A picture becomes a part of the page only if all that is in it is known here: shapes,
 * texts, and links to tasks.  Names in it are escaped by the database; one that had
 * got through would be no known element, and the picture would not be shown.  Its
 * style is that of the page.
 */
#include <stdio.h>
#include <string.h>

#include "web.h"

/* Returns whether a text begins with one of some words that a space separates. */
static bool
is_one_of(const char *text, size_t length, const char *words)
{
	while (*words != '\0')
	{
		size_t word = strcspn(words, " ");

		if (word == length && strncmp(text, words, length) == 0)
			return true;
		words += word + (words[word] == ' ');
	}
	return false;
}

/* Reads one attribute; returns where it ends, or NULL: it is not known. */
static const char *
skip_attribute(const char *at)
{
	size_t name = strcspn(at, "=<>\"' ");
	const char *value = at + name + 2;

	if (!is_one_of(at, name,
				   "class d x y rx width height fill id patternUnits stroke "
				   "stroke-width href") ||
		at[name] != '=' || at[name + 1] != '"')
		return NULL;
	if (name == 4 && strncmp(at, "href", 4) == 0 &&
		strncmp(value, "/task?id&#61;", 13) != 0)
		return NULL;
	value += strcspn(value, "\"<>");
	return *value == '"' ? value + 1 : NULL;
}

/* Reads one element; returns where it ends, or NULL: it is not known. */
static const char *
skip_element(const char *at)
{
	size_t name = strcspn(at, "</> \"'");

	if (*at == '/')
	{
		name = strcspn(++at, "> ");
		return is_one_of(at, name, "g a title text defs pattern svg") &&
					   at[name] == '>'
				   ? at + name + 1
				   : NULL;
	}
	if (!is_one_of(at, name, "g a title text defs pattern path rect"))
		return NULL;
	at += name;
	while (*at == ' ')
	{
		at = skip_attribute(at + 1);
		if (at == NULL)
			return NULL;
	}
	if (*at == '/')
		at++;
	return *at == '>' ? at + 1 : NULL;
}

/* Returns whether all that follows the head of a picture is known. */
static bool
is_known(const char *at)
{
	while (*(at += strcspn(at, "<")) != '\0')
	{
		at = skip_element(at + 1);
		if (at == NULL)
			return false;
	}
	return true;
}

/* Shows an SVG that the database has drawn, within the page. */
void
picture_show(Page *page, const char *svg, const char *label)
{
	int width = 0;
	int height = 0;
	const char *rest = strstr(svg, "</style>");

	if (sscanf(svg,
			   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
			   "height=\"%d\"",
			   &width, &height) != 2 ||
		rest == NULL || !is_known(rest + strlen("</style>")))
	{
		html_notice(page, "error",
					"The picture is not one that can be shown "
					"here.");
		return;
	}
	html(page,
		 "<svg width=%d height=%d viewBox=\"0 0 %d %d\" role=group "
		 "aria-label=\"%s\">",
		 width, height, width, height, label);
	buffer_put(&page->body, "%s", rest + strlen("</style>"));
}
