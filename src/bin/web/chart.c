/*
 * chart.c
 *	  Charts and spark lines, as SVG.
 *
 * A chart has an axis with its unit, a legend with the last numbers, and for each
 * step a text that is shown on hover.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "web.h"

#define WIDTH 400.0
#define HEIGHT 150.0
#define LEFT 52.0
#define TOP 8.0
#define BOTTOM 126.0
#define SPARK_MAX 120

/* Returns a time of which the half is read as easily. */
static double
nice_time(double highest)
{
	static const double times[] = {60,   120,   240,   600,   1200,   3600,
								   7200, 14400, 43200, 86400, 172800, 604800};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (highest <= times[i])
			return times[i];
	return highest;
}

/* Returns the number above which nothing is, with one digit that is easily read. */
static double
nice_top(double highest, bool is_time)
{
	double unit;

	if (is_time && highest > 20)
		return nice_time(highest);
	if (!(highest > 0))
		return 1;
	unit = pow(10, floor(log10(highest)));
	if (highest <= unit)
		return unit;
	if (highest <= 2 * unit)
		return 2 * unit;
	return highest <= 5 * unit ? 5 * unit : 10 * unit;
}

static double
highest_of(const Chart *chart, const PGresult *rows)
{
	double highest = 0;

	for (int row = 0; row < PQntuples(rows); row++)
		for (const Series *series = chart->series; series->column; series++)
		{
			double number = row_number(rows, row, series->column);

			if (number > highest)
				highest = number;
		}
	return highest;
}

static void
put_number(Page *page, const Chart *chart, double number)
{
	if (isnan(number))
		html(page, "–");
	else if (chart->is_time)
		html_duration(page, number);
	else if (chart->is_whole)
		html_count(page, number);
	else
		html_rate(page, number);
}

static double
x_of(int row, int rows)
{
	return LEFT + (WIDTH - LEFT - 4) * (rows < 2 ? 0 : row / (rows - 1.0));
}

/* Returns whether the times of a chart need their days. */
static bool
has_days(const PGresult *rows)
{
	return row_number(rows, PQntuples(rows) - 1, "at") -
			   row_number(rows, 0, "at") >
		   86400;
}

/* A time of UTC; the script has it in the reader's zone, by "data-at". */
static void
put_time(Page *page, double at, bool with_day)
{
	time_t seconds = (time_t) at;
	struct tm parts;
	char text[32];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), with_day ? "%d %b %H:%M" : "%H:%M", &parts);
	html(page, "%s UTC", text);
}

/* Lines across, with their numbers; and the times of three steps. */
static void
put_axes(Page *page, const Chart *chart, const PGresult *rows, double top)
{
	static const char *const places[] = {"begin", "middle", "end"};
	int last = PQntuples(rows) - 1;

	for (int i = 0; i <= 2; i++)
	{
		double y = BOTTOM - (BOTTOM - TOP) * i / 2;

		html(page,
			 "<path class=grid d=\"M%.0f %.1fH%.0f\"/><text x=%.0f y=%.1f "
			 "class=end>",
			 LEFT, y, WIDTH - 4, LEFT - 6, y + 4);
		if (!chart->is_time && top * i / 2 == floor(top * i / 2))
			html_count(page, top * i / 2);
		else
			put_number(page, chart, top * i / 2);
		html(page, "</text>");
	}
	for (int i = 0; i <= 2; i++)
	{
		int row = last * i / 2;
		double at = row_number(rows, row, "at");

		html(page, "<text x=%.0f y=%.0f class=%s data-at=%.0f>",
			 x_of(row, last + 1), HEIGHT - 6, places[i], at);
		put_time(page, at, has_days(rows));
		html(page, "</text>");
	}
}

/* A line, with a gap where there is no number; a dot stands for a single one. */
static void
put_line(Page *page, const Series *series, const PGresult *rows, double top)
{
	int n = PQntuples(rows);
	bool drawn = false;

	html(page, "<path class=\"line c%d\" d=\"", series->colour);
	for (int row = 0; row < n; row++)
	{
		double number = row_number(rows, row, series->column);

		if (!isnan(number))
			html(page, "%s%.1f %.1f%s", drawn ? "L" : "M", x_of(row, n),
				 BOTTOM - (BOTTOM - TOP) * number / top, drawn ? "" : "h0");
		drawn = !isnan(number);
	}
	html(page, "\"/>");
}

/* What is shown when the pointer is over a step. */
static void
put_texts(Page *page, const Chart *chart, const PGresult *rows)
{
	int n = PQntuples(rows);
	double width = (WIDTH - LEFT - 4) / (n < 2 ? 1 : n - 1);

	for (int row = 0; row < n; row++)
	{
		html(page,
			 "<rect class=step x=%.1f y=%.0f width=%.1f height=%.0f "
			 "data-at=%.0f><title>",
			 x_of(row, n) - width / 2, TOP, width, BOTTOM - TOP,
			 row_number(rows, row, "at"));
		put_time(page, row_number(rows, row, "at"), has_days(rows));
		for (const Series *series = chart->series; series->column; series++)
		{
			html(page, "\n%s: ", series->title);
			put_number(page, chart, row_number(rows, row, series->column));
		}
		html(page, "</title></rect>");
	}
}

/* Shows rows with "at", in seconds, and a column for each series. */
void
chart_show(Page *page, const Chart *chart, const PGresult *rows)
{
	int n = PQntuples(rows);
	double top = nice_top(highest_of(chart, rows), chart->is_time);

	html(page,
		 "<figure class=chart><figcaption>%s <span class=quiet>%s</span>",
		 chart->title, chart->unit);
	html(page, "<ul class=legend>");
	for (const Series *series = chart->series; series->column; series++)
	{
		html(page, "<li><span class=\"swatch c%d\"></span>%s <b>",
			 series->colour, series->title);
		put_number(page, chart,
				   n == 0 ? NAN : row_number(rows, n - 1, series->column));
		html(page, "</b></li>");
	}
	html(page, "</ul></figcaption>");
	if (n == 0)
		html_empty(page, "There is no history yet",
				   "It is kept from when tq "
				   "counts; look again in a "
				   "minute.");
	else
	{
		html(
			page,
			"<svg viewBox=\"0 0 400 150\" role=img aria-label=\"%s, %s: up to ",
			chart->title, chart->unit);
		put_number(page, chart, highest_of(chart, rows));
		html(page, "\"%s>", has_days(rows) ? " data-days" : "");
		put_axes(page, chart, rows, top);
		for (const Series *series = chart->series; series->column; series++)
			put_line(page, series, rows, top);
		put_texts(page, chart, rows);
		html(page, "</svg>");
	}
	html(page, "</figure>");
}

/* Reads an array of the database, where what is no number is 0; returns how many there are. */
static int
read_numbers(const char *text, double *numbers)
{
	int n = 0;

	while (*text != '\0' && n < SPARK_MAX)
	{
		char *end;
		double number = strtod(text, &end);

		if (end == text)
		{
			if (strncmp(text, "NULL", 4) == 0)
				numbers[n++] = 0;
			text += strncmp(text, "NULL", 4) == 0 ? 4 : 1;
			continue;
		}
		numbers[n++] = isfinite(number) && number > 0 ? number : 0;
		text = end;
	}
	return n;
}

/* A small line of an array of numbers. */
void
chart_spark(Page *page, const char *text, const char *unit)
{
	double numbers[SPARK_MAX];
	int n = text == NULL ? 0 : read_numbers(text, numbers);
	double highest = 0;

	for (int i = 0; i < n; i++)
		if (numbers[i] > highest)
			highest = numbers[i];
	if (n < 2)
		return;
	html(page, "<svg class=spark viewBox=\"0 0 96 22\" role=img><title>now ");
	html_rate(page, numbers[n - 1]);
	html(page, ", up to ");
	html_rate(page, highest);
	html(page, "%s</title><path class=\"line c1\" d=\"",
		 unit == NULL ? "" : unit);
	for (int i = 0; i < n; i++)
		html(page, "%s%.1f %.1f", i == 0 ? "M" : "L", 94.0 * i / (n - 1) + 1,
			 20 - (highest > 0 ? 18 * (numbers[i] / highest) : 0));
	html(page, "\"/></svg>");
}
