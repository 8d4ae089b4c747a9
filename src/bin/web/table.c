/*
 * table.c
 *	  Tables and lists of facts: a statement, and what its columns are.
 *
 * A table is sorted by a link of its head, and shows the columns that the reader
 * chooses; both stand in the URL.  The statement is put together of constants only.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define TEXT_MAX 120 /* of JSON and text in a cell */
#define TEXT_CUT 40  /* from which on a narrow cell may cut a text */

const char *
row_get(const PGresult *result, int row, const char *name)
{
	int column = PQfnumber(result, name);

	return column < 0 || PQgetisnull(result, row, column)
			   ? NULL
			   : PQgetvalue(result, row, column);
}

/* Returns a number; NAN: there is none. */
double
row_number(const PGresult *result, int row, const char *name)
{
	const char *text = row_get(result, row, name);

	return text == NULL ? NAN : strtod(text, NULL);
}

/*
 * Returns the row after which a search goes on: the one without that key, by which it
 * says that its time was over, else that with the lowest page, in whatever order.
 */
int
row_end(const PGresult *result, const char *key)
{
	int end = 0;

	for (int row = 0; row < PQntuples(result); row++)
	{
		if (row_get(result, row, key) == NULL)
			return row;
		if (row_number(result, row, "page") < row_number(result, end, "page"))
			end = row;
	}
	return end;
}

static bool
is_number(ColumnKind kind)
{
	switch (kind)
	{
		case COLUMN_COUNT:
		case COLUMN_RATE:
		case COLUMN_DURATION:
			return true;
		case COLUMN_TEXT:
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_STATE:
		case COLUMN_FLAG:
		case COLUMN_JSON:
		case COLUMN_SPARK:
		case COLUMN_NONE:
			return false;
	}
	return false;
}

/* ---- the statement ---- */

/* Returns a statement whose times are seconds, and which has the present time. */
char *
table_select(const char *sql, const Column *columns)
{
	Buffer all = {0};

	buffer_put(&all, "SELECT extract(epoch FROM now()) AS present");
	for (const Column *column = columns; column->name != NULL; column++)
		if (column->kind == COLUMN_TIME || column->kind == COLUMN_DURATION)
			buffer_put(&all, ", extract(epoch FROM t.%s) AS %s", column->name,
					   column->name);
		else
			buffer_put(&all, ", t.%s", column->name);
	buffer_put(&all, " FROM (%s) AS t", sql);
	return all.data;
}

/* What the reader wants of a table. */
typedef struct View
{
	const Table *table;
	const Column *sort; /* NULL: as the statement has it */
	bool descends;
	char *sort_name; /* of the parameters of the URL */
	char *show_name;
	bool is_chosen; /* which columns are shown */
} View;

static const Column *
column_of(const Table *table, const char *name)
{
	for (const Column *column = table->columns; column->name != NULL; column++)
		if (column->kind != COLUMN_NONE && strcmp(column->name, name) == 0)
			return column;
	return NULL;
}

static void
view_begin(View *view, const Page *page, const Table *table)
{
	const char *sort;

	view->table = table;
	view->sort_name = format_text("%s.sort", table->id);
	view->show_name = format_text("%s.show", table->id);
	view->is_chosen = !table->plain &&
					  page_query(page, view->show_name) != NULL;
	sort = table->plain ? NULL : page_query(page, view->sort_name);
	if (sort == NULL || column_of(table, sort + (*sort == '-')) == NULL)
		sort = table->sort;
	view->sort = sort == NULL ? NULL : column_of(table, sort + (*sort == '-'));
	view->descends = sort != NULL && *sort == '-';
}

static void
view_end(View *view)
{
	free(view->sort_name);
	free(view->show_name);
}

static bool
is_shown(const View *view, const Page *page, const Column *column)
{
	if (column->kind == COLUMN_NONE)
		return false;
	if (!view->is_chosen)
		return !column->hidden;
	for (int i = 0; i < page->query.n; i++)
		if (strcmp(page->query.all[i].name, view->show_name) == 0 &&
			strcmp(page->query.all[i].value, column->name) == 0)
			return true;
	return false;
}

static char *
statement_of(const View *view)
{
	const Table *table = view->table;
	char *select = table_select(table->sql, table->columns);
	Buffer all = {0};

	buffer_put(&all, "%s", select);
	free(select);
	if (view->sort != NULL)
		buffer_put(&all, " ORDER BY t.%s %s NULLS LAST", view->sort->name,
				   view->descends ? "DESC" : "ASC");
	if (view->sort != NULL && view->sort != table->columns &&
		table->columns[0].kind != COLUMN_JSON)
		buffer_put(&all, ", t.%s", table->columns[0].name);
	if (table->limit > 0)
		buffer_put(&all, " LIMIT %d", table->limit + 1);
	return all.data;
}

/* ---- cells ---- */

/* Returns a link with the values of a row; NULL: one of them is missing. */
static char *
link_of(const char *link, const PGresult *rows, int row)
{
	Buffer url = {0};

	while (*link != '\0')
	{
		size_t length = strcspn(link, "{");
		char name[64];
		const char *value;

		buffer_add(&url, link, length);
		link += length;
		if (*link == '\0')
			break;
		length = strcspn(link, "}");
		snprintf(name, sizeof(name), "%.*s", (int) length - 1, link + 1);
		value = row_get(rows, row, name);
		if (value == NULL)
		{
			buffer_free(&url);
			return NULL;
		}
		url_add(&url, value);
		link += length + 1;
	}
	return url.data;
}

/* A text that may be long: its beginning, and all of it on hover. */
static void
put_long(Page *page, const char *text, const char *class)
{
	size_t length = strlen(text);
	size_t shown = length < TEXT_MAX ? length : TEXT_MAX;
	char begin[TEXT_MAX + 1];

	while (shown < length && ((unsigned char) text[shown] & 0xC0) == 0x80)
		shown--;
	memcpy(begin, text, shown);
	begin[shown] = '\0';
	if (length > TEXT_CUT)
		html(page, "<span class=\"%s\" title=\"%s\">%s%s</span>", class, text,
			 begin, shown < length ? "…" : "");
	else
		html(page, "<span class=\"%s\">%s</span>", class, text);
}

/* What is in a cell, as its kind is shown. */
static void
put_value(Page *page, const Column *column, const PGresult *rows, int row,
		  const char *url)
{
	const char *text = row_get(rows, row, column->name);

	if (text == NULL)
		return;
	switch (column->kind)
	{
		case COLUMN_TEXT:
			put_long(page, text, "text");
			break;
		case COLUMN_ID:
			html_id(page, text, url);
			break;
		case COLUMN_COUNT:
			html_count(page, strtod(text, NULL));
			break;
		case COLUMN_RATE:
			html_rate(page, strtod(text, NULL));
			break;
		case COLUMN_TIME:
			html_time(page, strtod(text, NULL),
					  row_number(rows, row, "present"));
			break;
		case COLUMN_DURATION:
			html_duration(page, strtod(text, NULL));
			break;
		case COLUMN_STATE:
			html_state(page, text);
			break;
		case COLUMN_FLAG:
			if (*text == 't')
				html(page, "<span class=flag>%s</span>", column->title);
			break;
		case COLUMN_JSON:
			put_long(page, text, "mono");
			break;
		case COLUMN_SPARK:
			chart_spark(page, text, column->unit);
			break;
		case COLUMN_NONE:
			break;
	}
}

static void
put_linked(Page *page, const Column *column, const PGresult *rows, int row)
{
	char *url = column->link == NULL ? NULL : link_of(column->link, rows, row);
	bool wrapped = url != NULL && column->kind != COLUMN_ID &&
				   row_get(rows, row, column->name) != NULL;

	if (wrapped)
		html(page, "<a href=\"%s\">", url);
	put_value(page, column, rows, row, url);
	if (wrapped)
		html(page, "</a>");
	free(url);
}

/* ---- the table ---- */

/* Returns the URL of this page with another value of one parameter. */
static char *
url_with(const Page *page, const char *name, const char *sign,
		 const char *value)
{
	Buffer url = {0};

	buffer_put(&url, "%s?", page->path);
	for (int i = 0; i < page->query.n; i++)
		if (page->query.all[i].name[0] != '\0' &&
			strcmp(page->query.all[i].name, name) != 0 &&
			strcmp(page->query.all[i].name, "done") != 0)
		{
			url_add(&url, page->query.all[i].name);
			buffer_put(&url, "=");
			url_add(&url, page->query.all[i].value);
			buffer_put(&url, "&");
		}
	buffer_put(&url, "%s=%s%s", name, sign, value);
	return url.data;
}

/* The class of the cells of a column; what the reader has chosen is shown in any window. */
static void
put_class(Page *page, const View *view, const Column *column)
{
	bool minor = column->minor && !view->is_chosen;

	if (is_number(column->kind))
		html(page, minor ? " class=\"n minor\"" : " class=n");
	else if (minor)
		html(page, " class=minor");
}

/* The head of a column: the first link sorts numbers from the largest on. */
static void
put_head(Page *page, const View *view, const Column *column)
{
	bool sorted = view->sort == column;
	bool descends = sorted ? !view->descends : is_number(column->kind);
	char *url;

	html(page, "<th scope=col");
	put_class(page, view, column);
	html(page, "%s%s", sorted && view->descends ? " aria-sort=descending" : "",
		 sorted && !view->descends ? " aria-sort=ascending" : "");
	if (column->hint != NULL)
		html(page, " title=\"%s\"", column->hint);
	html(page, ">");
	if (view->table->plain || column->kind == COLUMN_SPARK ||
		column->kind == COLUMN_JSON)
	{
		html(page, "%s</th>", column->title);
		return;
	}
	url = url_with(page, view->sort_name, descends ? "-" : "", column->name);
	html(page, "<a href=\"%s\">%s</a></th>", url, column->title);
	free(url);
}

static void
put_row(Page *page, const View *view, const PGresult *rows, int row)
{
	bool first = true;

	html(page, "<tr>");
	if (view->table->pick)
		html(
			page,
			"<td class=pick><input type=checkbox form=\"%s-form\" name=pick value=\"%s\" "
			"aria-label=\"Select %s\"></td>",
			view->table->id, row_get(rows, row, view->table->columns[0].name),
			row_get(rows, row, view->table->columns[0].name));
	for (const Column *column = view->table->columns; column->name; column++)
	{
		if (!is_shown(view, page, column))
			continue;
		html(page, first ? "<th scope=row" : "<td");
		put_class(page, view, column);
		html(page, ">");
		put_linked(page, column, rows, row);
		html(page, first ? "</th>" : "</td>");
		first = false;
	}
	if (view->table->buttons != NULL)
	{
		html(page, "<td>");
		view->table->buttons(page, rows, row);
		html(page, "</td>");
	}
	html(page, "</tr>");
}

/* Boxes by which columns are chosen. */
static void
put_choice(Page *page, const View *view)
{
	html(page, "<details class=choice><summary>Columns</summary><form>");
	for (int i = 0; i < page->query.n; i++)
		if (strcmp(page->query.all[i].name, view->show_name) != 0)
			html(page, "<input type=hidden name=\"%s\" value=\"%s\">",
				 page->query.all[i].name, page->query.all[i].value);
	for (const Column *column = view->table->columns; column->name; column++)
		if (column->kind != COLUMN_NONE)
			html(page,
				 "<label><input type=checkbox name=\"%s\" value=\"%s\"%s> "
				 "%s</label>",
				 view->show_name, column->name,
				 is_shown(view, page, column) ? " checked" : "",
				 column->title);
	html(page, "<button>Show</button></form></details>");
}

static void
put_rows(Page *page, const View *view, const PGresult *rows, int n)
{
	html(page,
		 "<div class=scroll tabindex=0 role=region aria-label=\"%s\"><table "
		 "id=\"%s\"><caption class=away>%s</caption><thead><tr>",
		 view->table->caption, view->table->id, view->table->caption);
	if (view->table->pick)
		html(page, "<th scope=col class=pick><span class=away>Select</span>"
				   "<input type=checkbox class=all aria-label=\"Select all\" "
				   "hidden></th>");
	for (const Column *column = view->table->columns; column->name; column++)
		if (is_shown(view, page, column))
			put_head(page, view, column);
	if (view->table->buttons != NULL)
		html(page, "<th scope=col><span class=away>Actions</span></th>");
	html(page, "</tr></thead><tbody>");
	for (int row = 0; row < n; row++)
		if (view->table->foot == NULL ||
			row_get(rows, row, view->table->columns[0].name) != NULL)
			put_row(page, view, rows, row);
	html(page, "</tbody></table></div>");
}

/* Shows what a statement finds; returns how many rows, or -1 after an error. */
int
table_show(Page *page, const Table *table, int n, const char *const *values)
{
	View view;
	char *sql;
	PGresult *rows;
	int found;

	view_begin(&view, page, table);
	sql = statement_of(&view);
	rows = database_query(page, sql, n, values);
	free(sql);
	if (rows == NULL)
	{
		html_error(page);
		view_end(&view);
		return -1;
	}
	found = PQntuples(rows);
	if (found == 0)
		html_empty(page, table->empty, "%s",
				   table->empty_hint == NULL ? "" : table->empty_hint);
	else
	{
		int shown = table->limit > 0 && found > table->limit ? table->limit
															 : found;

		put_rows(page, &view, rows, shown);
		if (shown < found)
			html(page, "<p class=quiet>The first %d; there are more.</p>",
				 shown);
		if (table->foot != NULL)
			table->foot(page, rows);
		if (!table->plain)
			put_choice(page, &view);
	}
	PQclear(rows);
	view_end(&view);
	return found;
}

/* Shows a table below a title, as a region of the page. */
void
table_part(Page *page, const char *id, const char *title, const Table *table,
		   int n, const char *const *values)
{
	html(page, "<h2>%s</h2>", title);
	region_begin(page, id);
	table_show(page, table, n, values);
	region_end(page);
}

/* Shows what a row has, with titles beside it; what is NULL or hidden is left out. */
void
table_facts(Page *page, const Column *columns, const PGresult *rows, int row)
{
	html(page, "<dl class=facts>");
	for (const Column *column = columns; column->name != NULL; column++)
	{
		const char *text = row_get(rows, row, column->name);

		if (text == NULL || column->hidden || column->kind == COLUMN_NONE ||
			(column->kind == COLUMN_FLAG && *text != 't'))
			continue;
		html(page, "<div%s><dt>%s</dt><dd>",
			 column->kind == COLUMN_JSON ? " class=wide" : "", column->title);
		put_linked(page, column, rows, row);
		html(page, "</dd></div>");
	}
	html(page, "</dl>");
}
