/*
 * gantt.c
 *	  Runs by worker and time.
 *
 * A worker has as many rows as it had runs at once, up to eight, the last of
 * which has what the others have no space for.  Runs that were never
 * claimed have a row of their own, at the end.  What is narrower than a pixel
 * is drawn together with its neighbours, so that the size of the picture
 * follows from its rows and not from the number of runs.
 */
#include "postgres.h"

#include <math.h>

#include "../../core/names.h"
#include "picture.h"

#define LEFT 190
#define CHART 800
#define TOP 64
#define ROW 20
#define BAR 14
#define RIGHT 40
#define ROWS_OF_WORKER 8

/* Bars that are drawn at most. */
#define DRAWN 20000

/* A bar that is drawn: one run, or several that are close. */
typedef struct Drawn
{
	const TqBar *first;
	int runs;
	double x;
	double end;
	double wait; /* where its wait begins */
} Drawn;

/* A row of the picture. */
typedef struct Row
{
	const char *worker; /* NULL: runs that were not claimed */
	TimestampTz busy_until;
	bool is_crowded; /* runs of the row overlap */
	Drawn last;      /* not appended yet; runs = 0: none */
} Row;

typedef struct Chart
{
	const TqGantt *gantt;
	TimestampTz begin;
	double span; /* in microseconds */
	int nrows;
	int max_rows; /* for which there is space in rows */
	Row *rows;
	int drawn;
	int left_out;       /* runs */
	StringInfoData out; /* the bars */
} Chart;

static TimestampTz
begin_of(const TqBar *bar)
{
	return bar->started != 0 ? bar->started : bar->claimable;
}

static TimestampTz
end_of(const TqGantt *gantt, const TqBar *bar)
{
	return Max(bar->resolved != 0 ? bar->resolved : gantt->now, begin_of(bar));
}

/* By worker, those without one last, then by time. */
static int
compare_bars(const void *a, const void *b)
{
	const TqBar *x = a;
	const TqBar *y = b;
	int order;

	if (x->worker == NULL || y->worker == NULL)
		order = (x->worker == NULL) - (y->worker == NULL);
	else
		order = strcmp(x->worker, y->worker);
	if (order != 0)
		return order;
	if (begin_of(x) != begin_of(y))
		return begin_of(x) < begin_of(y) ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order != 0 ? order : x->run_id - y->run_id;
}

static double
gantt_x_of(const Chart *chart, TimestampTz t)
{
	double x = LEFT + CHART * (double) (t - chart->begin) / chart->span;

	return floor(x * 10 + 0.5) / 10;
}

/* Returns a duration in words, as short as it is clear. */
static char *
duration(double microseconds)
{
	double s = microseconds / USECS_PER_SEC;

	if (s < 1)
		return psprintf("%.0f ms", s * 1000);
	if (s < 100)
		return psprintf("%.3g s", s);
	if (s < 6000)
		return psprintf("%.3g min", s / 60);
	return s < 360000 ? psprintf("%.3g h", s / 3600)
					  : psprintf("%.4g d", s / 86400);
}

/* Appends what the pointer shows on a bar. */
static void
append_tip(Chart *chart, const Drawn *drawn)
{
	const TqBar *bar = drawn->first;
	StringInfo out = &chart->out;

	appendStringInfoString(out, "<title>");
	if (drawn->runs > 1)
		appendStringInfo(out, "%d runs, the first: ", drawn->runs);
	tq_label_html(out, bar->name);
	appendStringInfo(out, ", run %d: %s", bar->run_id,
					 tq_state_name(bar->state));
	if (bar->reason != NULL && strcmp(bar->reason, tq_state_name(bar->state)))
		appendStringInfo(out, ", %s", bar->reason);
	if (bar->progress[0] != '\0')
		appendStringInfoString(out, ": ");
	tq_label_html(out, bar->progress);
	if (bar->started != 0)
		appendStringInfo(out, "; waited %s, took %s",
						 duration(Max(bar->started - bar->claimable, 0)),
						 duration(end_of(chart->gantt, bar) - bar->started));
	else
		appendStringInfo(out, "; waited %s",
						 duration(end_of(chart->gantt, bar) - bar->claimable));
	appendStringInfoString(out, "</title>");
}

/* Appends a bar with its wait, its name and, of a retry, a mark. */
static void
gantt_append_bar(Chart *chart, Row *row)
{
	const Drawn *drawn = &row->last;
	const TqBar *bar = drawn->first;
	StringInfo out = &chart->out;
	int y = TOP + ROW * (int) (row - chart->rows) + (ROW - BAR) / 2;
	double width = Max(drawn->end - drawn->x, 1);
	int letters = (int) (width - 20) / 6;

	if (drawn->runs == 0)
		return;
	chart->drawn++;
	if (drawn->x - drawn->wait >= 1)
		appendStringInfo(out, "<path class=\"wait\" d=\"M%g %dH%g\"/>",
						 drawn->wait, y + BAR / 2, drawn->x);
	appendStringInfoString(out, "<g>");
	append_tip(chart, drawn);
	tq_svg_box(out, drawn->x, y, width, BAR, bar->state);
	if (bar->is_critical)
		appendStringInfo(out, "<path class=\"path\" d=\"M%g %dH%g\"/>",
						 drawn->x, y + BAR + 1, drawn->x + width);
	if (bar->run_id > 0 && drawn->runs == 1)
		appendStringInfo(out, "<path class=\"mark\" d=\"M%g %dl6 -5h-12z\"/>",
						 drawn->x, y + 3);
	if (letters >= 4 && drawn->runs == 1)
		tq_svg_text(out, drawn->x + 18, y + 11, "small in",
					tq_label(bar->progress[0] == '\0'
								 ? bar->name
								 : psprintf("%s: %s", bar->name,
											bar->progress),
							 letters));
	appendStringInfoString(out, "</g>\n");
	row->last.runs = 0;
}

/* Returns whether a run is drawn together with the last one of its row. */
static bool
is_close(const Chart *chart, const Row *row, const TqBar *bar, double x,
		 double end)
{
	const Drawn *last = &row->last;

	if (last->runs == 0 || last->first->state != bar->state ||
		last->first->is_critical != bar->is_critical)
		return false;
	if (bar->worker == NULL)
		return fabs(x - last->x) < 1 && fabs(end - last->end) < 1;
	if (row->is_crowded)
		return x - last->end < 1;
	return x - last->end < 1 && end - x < 2 &&
		   (last->runs > 1 || last->end - last->x < 2);
}

/*
 * Returns the row of a run: the first one of its worker that is free then, or a
 * new one; NULL if there is no space.  `first` is the first row of the worker.
 */
static Row *
gantt_find_row(Chart *chart, int first, const TqBar *bar)
{
	Row *row;

	for (int i = first; i < chart->nrows; i++)
	{
		if (bar->worker == NULL || chart->rows[i].busy_until <= begin_of(bar))
			return &chart->rows[i];
	}
	if (chart->nrows == first + ROWS_OF_WORKER)
	{
		chart->rows[chart->nrows - 1].is_crowded = true;
		return &chart->rows[chart->nrows - 1];
	}
	if (chart->nrows == chart->max_rows)
		return NULL;
	row = &chart->rows[chart->nrows++];
	*row = (Row){.worker = bar->worker, .busy_until = chart->begin};
	return row;
}

/* Adds a run to its row. */
static void
add_bar(Chart *chart, int first, const TqBar *bar)
{
	Row *row = chart->drawn < DRAWN ? gantt_find_row(chart, first, bar) : NULL;
	double x = gantt_x_of(chart, begin_of(bar));
	double end = gantt_x_of(chart, end_of(chart->gantt, bar));

	if (row == NULL)
	{
		chart->left_out++;
		return;
	}
	if (is_close(chart, row, bar, x, end))
	{
		row->last.runs++;
		row->last.end = Max(row->last.end, end);
	}
	else
	{
		TimestampTz wait = Max(bar->claimable, row->busy_until);

		gantt_append_bar(chart, row);
		row->last = (Drawn){.first = bar,
							.runs = 1,
							.x = x,
							.end = end,
							.wait = gantt_x_of(chart,
											   Min(wait, begin_of(bar)))};
	}
	row->busy_until = Max(row->busy_until, end_of(chart->gantt, bar));
}

/* Puts all runs into rows. */
static void
fill_rows(Chart *chart)
{
	const TqGantt *gantt = chart->gantt;
	int first = 0;

	for (int i = 0; i < gantt->nbars; i++)
	{
		const char *worker = gantt->bars[i].worker;

		if (i > 0 && (worker == NULL) == (gantt->bars[i - 1].worker == NULL) &&
			(worker == NULL || strcmp(worker, gantt->bars[i - 1].worker) == 0))
		{
			add_bar(chart, first, &gantt->bars[i]);
			continue;
		}
		for (int row = first; row < chart->nrows; row++)
			gantt_append_bar(chart, &chart->rows[row]);
		first = chart->nrows;
		if (worker == NULL)
			chart->max_rows = first + 1; /* has a position of its own */
		add_bar(chart, first, &gantt->bars[i]);
	}
	for (int row = first; row < chart->nrows; row++)
		gantt_append_bar(chart, &chart->rows[row]);
}

/* Sets when the picture begins and how long it is. */
static void
set_span(Chart *chart)
{
	const TqGantt *gantt = chart->gantt;
	TimestampTz end = 0;

	for (int i = 0; i < gantt->nbars; i++)
	{
		const TqBar *bar = &gantt->bars[i];
		TimestampTz begin = Min(bar->claimable, begin_of(bar));

		if (i == 0 || begin < chart->begin)
			chart->begin = begin;
		if (i == 0 || end_of(gantt, bar) > end)
			end = end_of(gantt, bar);
	}
	chart->span = Max((double) (end - chart->begin), 1000);
}

/* Appends the lines of the scale, about eight. */
static void
append_scale(StringInfo out, const Chart *chart)
{
	static const double steps[] = {1e3,     2e3,     5e3,     1e4,    2e4,
								   5e4,     1e5,     2e5,     5e5,    1e6,
								   2e6,     5e6,     1e7,     3e7,    6e7,
								   1.2e8,   3e8,     6e8,     1.8e9,  3.6e9,
								   1.08e10, 2.16e10, 4.32e10, 8.64e10};
	int n = 0;
	double step;

	while (n < lengthof(steps) - 1 && chart->span / steps[n] > 9)
		n++;
	step = steps[n] * ceil(chart->span / steps[n] / 9);
	for (double at = 0; at <= chart->span; at += step)
	{
		double x = floor(LEFT + CHART * at / chart->span + 0.5);

		appendStringInfo(out, "<path class=\"grid\" d=\"M%g %dV%d\"/>", x,
						 TOP - 4, TOP + ROW * chart->nrows);
		tq_svg_text(out, x + 2, TOP - 8, "small", duration(at));
	}
	appendStringInfoChar(out, '\n');
}

/* Appends the names of workers, and a stripe behind every other one. */
static void
append_workers(StringInfo out, const Chart *chart)
{
	bool is_striped = true;

	for (int i = 0; i < chart->nrows; i++)
	{
		const char *worker = chart->rows[i].worker;
		bool is_new = i == 0 || worker == NULL ||
					  strcmp(worker, chart->rows[i - 1].worker) != 0;
		int y = TOP + ROW * i;

		is_striped ^= is_new;
		if (is_striped)
			appendStringInfo(out,
							 "<rect class=\"stripe\" y=\"%d\" width=\"%d\" "
							 "height=\"%d\"/>",
							 y, LEFT + CHART + RIGHT, ROW);
		if (is_new)
			tq_svg_text(out, LEFT - 6, y + 14, "end",
						worker != NULL ? tq_label(worker, 28) : "not claimed");
	}
	appendStringInfoChar(out, '\n');
}

/* Appends the picture of the runs of a group. */
void
tq_gantt_svg(StringInfo out, const TqGantt *gantt)
{
	Chart chart = {.gantt = gantt,
				   .max_rows = gantt->max_rows,
				   .rows = palloc0(sizeof(Row) * (gantt->max_rows + 1))};

	qsort(gantt->bars, gantt->nbars, sizeof(TqBar), compare_bars);
	set_span(&chart);
	initStringInfo(&chart.out);
	fill_rows(&chart);
	tq_svg_begin(out, LEFT + CHART + RIGHT, TOP + ROW * chart.nrows + 44,
				 gantt->title, gantt->is_alone);
	tq_svg_text(out, 10, 16, "bold", gantt->title);
	if (gantt->nbars > 0)
		tq_svg_text(
			out, 10, 34, "small",
			psprintf(
				"%d runs, %s from %s; dashed: the wait for a worker; a triangle: a retry; underlined: the critical path",
				gantt->nbars, duration(chart.span),
				tq_label_time(chart.begin)));
	append_workers(out, &chart);
	if (gantt->nbars > 0)
		append_scale(out, &chart);
	appendStringInfoString(out, chart.out.data);
	if (chart.left_out > 0)
		tq_svg_text(
			out, 10, TOP + ROW * chart.nrows + 14, "bold",
			psprintf("%d more runs are not drawn: give a larger max_rows",
					 chart.left_out));
	tq_svg_legend(out, LEFT, TOP + ROW * chart.nrows + 24);
	tq_svg_end(out);
}
