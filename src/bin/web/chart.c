/*
 * chart.c
 *	  Charts and spark lines, as SVG.
 *
 * A time line has a bar for each run, after the line of its wait.  A chart has an axis
 * with its unit, a legend with the last numbers, and for each step a text that is shown
 * on hover.
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

/* ---- time lines ---- */

#define LINE_HEIGHT 22.0
#define LINE_WIDTH 800.0
#define LINE_LEFT 56.0

/* From when to when the rows are. */
typedef struct Span
{
	double begin;
	double end;
} Span;

static Span
span_of(const PGresult *rows)
{
	Span span = {row_number(rows, 0, "visible"), 0};

	for (int row = 0; row < PQntuples(rows); row++)
	{
		span.begin = fmin(span.begin, row_number(rows, row, "visible"));
		span.end = fmax(span.end, row_number(rows, row, "ended"));
	}
	if (!(span.end > span.begin))
		span.end = span.begin + 0.001;
	return span;
}

static double
time_x(Span span, double at)
{
	return LINE_LEFT +
		   (LINE_WIDTH - LINE_LEFT - 4) *
			   fmin(fmax(at - span.begin, 0) / (span.end - span.begin), 1);
}

/* What is shown when the pointer is over a run. */
static void
put_run_text(Page *page, const PGresult *rows, int row)
{
	double visible = row_number(rows, row, "visible");
	double started = row_number(rows, row, "started");
	double ended = row_number(rows, row, "ended");
	const char *error = row_get(rows, row, "error");

	html(page, "<title>run %s: %s, waited ", row_get(rows, row, "run"),
		 row_get(rows, row, "state"));
	html_duration(page, (isnan(started) ? ended : started) - visible);
	if (!isnan(started))
	{
		html(page, ", ran ");
		html_duration(page, ended - started);
	}
	html(page, "%s%s</title>", error == NULL ? "" : "\n",
		 error == NULL ? "" : error);
}

static void
put_run(Page *page, const PGresult *rows, int row, Span span)
{
	double y = 4 + LINE_HEIGHT * row;
	double started = row_number(rows, row, "started");
	double begin = time_x(span, row_number(rows, row, "visible"));
	double end = time_x(span, row_number(rows, row, "ended"));
	double start = isnan(started) ? end : time_x(span, started);

	html(page, "<g class=\"is-%s\">", row_get(rows, row, "state"));
	put_run_text(page, rows, row);
	html(page,
		 "<rect class=step x=0 y=%.0f width=%.0f height=%.0f /><text x=0 "
		 "y=%.0f>run %s</text><path class=wait d=\"M%.1f %.0fH%.1f\"/>",
		 y, LINE_WIDTH, LINE_HEIGHT, y + 15, row_get(rows, row, "run"), begin,
		 y + 11, start);
	if (!isnan(started))
		html(page,
			 "<rect class=run x=%.1f y=%.0f width=%.1f height=14 rx=2 />",
			 fmin(start, LINE_WIDTH - 6), y + 4, fmax(end - start, 2));
	html(page, "</g>");
}

/* Shows runs: rows of run, state, visible, started, ended, error. */
void
chart_runs(Page *page, const PGresult *rows)
{
	int n = PQntuples(rows);
	double bottom = 4 + LINE_HEIGHT * n;
	Span span = span_of(rows);

	html(page,
		 "<div class=scroll tabindex=0 role=region aria-label=\"Time line of "
		 "the runs\"><svg class=timeline viewBox=\"0 0 %.0f %.0f\" role=img "
		 "aria-label=\"When each run waited, and ran\"%s>",
		 LINE_WIDTH, bottom + 24,
		 span.end - span.begin > 86400 ? " data-days" : "");
	for (int row = 0; row < n; row++)
		put_run(page, rows, row, span);
	for (int i = 0; i <= 1; i++)
	{
		double at = i == 0 ? span.begin : span.end;

		html(page, "<text x=%.0f y=%.0f class=%s data-at=%.0f>",
			 time_x(span, at), bottom + 16, i == 0 ? "begin" : "end", at);
		put_time(page, at, span.end - span.begin > 86400);
		html(page, "</text>");
	}
	html(page, "<text x=%.0f y=%.0f class=middle>",
		 (LINE_LEFT + LINE_WIDTH) / 2, bottom + 16);
	html_duration(page, span.end - span.begin);
	html(page, "</text></svg></div>");
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
