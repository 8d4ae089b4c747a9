/*
 * metrics_api.c
 *	  tq.metrics(): what the server counts, in the text form of Prometheus
 *	  (doc/spec/taskcluster.md 8.2).
 *
 * The numbers of queues are the counters in shared memory: no rows are counted.
 * While the numbers of tasks are not exact they are left out, and the totals are
 * not.  What is not of a queue is in the view tq_internal.other_metric.
 *
 * As many queues as tq.metrics_queues says have a label of their own, those with
 * the lowest numbers: they are the same in each scrape.  The rest together are
 * queue="other".
 *
 * Since when the first run has been pending is read from the rows, of LOOKS queues
 * in one call at most, those first at which none has looked for the longest time.
 * What was found is kept in shared memory.
 *
 * Cost, for 1,000 queues of which all have tasks: 3 ms, and 3 MB of text.  So
 * each line is put together of pieces that are made once.
 *
 * Locks: that of the counters, in share mode, as a commit has it; those of the
 * wait queue and of claim cursors, for microseconds.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_metrics);
PG_FUNCTION_INFO_V1(tq_metric_label);

#define LOOKS 50
#define SEEN_MS INT64CONST(60000) /* a worker that asked since then is there */
/*
 * Bytes of address space that a page begins with.  The C library keeps as much of
 * what is freed after that, so that the next scrape of the session finds memory
 * that is mapped.
 */
#define RESERVED ((Size) 31 * 1024 * 1024)

#define LINE_ROOM 256 /* bytes of a line beside its labels */

/* ---- text ---- */

/* A text that grows, in the memory of the caller of the function. */
typedef struct MetricsPage
{
	char *data;
	Size length;
	Size room;
} MetricsPage;

/* Makes room for a line with so many bytes of labels. */
static inline void
page_reserve(MetricsPage *page, Size more)
{
	if (page->room - page->length >= more + LINE_ROOM)
		return;
	page->room = (page->room + more + LINE_ROOM) * 2;
	page->data = repalloc_huge(page->data, page->room);
}

static inline void
put(MetricsPage *page, const char *text, Size length)
{
	memcpy(page->data + page->length, text, length);
	page->length += length;
}

#define PUT(page, text) put(page, text, strlen(text))

static inline void
put_number(MetricsPage *page, int64 value)
{
	page->length += pg_lltoa(value, page->data + page->length);
}

/* Puts microseconds, as seconds. */
static inline void
put_seconds(MetricsPage *page, int64 us)
{
	char *fraction;

	put_number(page, us / USECS_PER_SEC);
	if (us % USECS_PER_SEC == 0)
		return;
	put(page, ".", 1);
	fraction = page->data + page->length;
	pg_ultostr_zeropad(fraction, (uint32) (us % USECS_PER_SEC), 6);
	page->length += 6;
}

static void
put_family(MetricsPage *page, const char *name, const char *kind,
		   const char *help)
{
	page_reserve(page, 2 * strlen(name) + strlen(help));
	PUT(page, "# HELP ");
	PUT(page, name);
	PUT(page, " ");
	PUT(page, help);
	PUT(page, "\n# TYPE ");
	PUT(page, name);
	PUT(page, " ");
	PUT(page, kind);
	PUT(page, "\n");
}

/* Returns name="value", in which the value may have any character. */
static char *
metric_label(const char *name, const char *value)
{
	StringInfoData label;

	initStringInfo(&label);
	appendStringInfo(&label, "%s=\"", name);
	for (const char *c = value; *c != '\0'; c++)
	{
		if (*c == '\n')
			appendStringInfoString(&label, "\\n");
		else if (*c == '"' || *c == '\\')
			appendStringInfo(&label, "\\%c", *c);
		else
			appendStringInfoChar(&label, *c);
	}
	appendStringInfoChar(&label, '"');
	return label.data;
}

/* metric_label(name text, value text) -> text, as a sample has it */
Datum
tq_metric_label(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(metric_label(text_to_cstring(PG_GETARG_TEXT_PP(0)),
									 text_to_cstring(PG_GETARG_TEXT_PP(1)))));
}

/* ---- queues ---- */

/* A queue that has a label, or all others. */
typedef struct MetricsQueue
{
	const char *label;
	Size length; /* of the label */
	TqQueueCounts *counts;
	int64 waiters;
	int64 workers;
} MetricsQueue;

typedef struct Metrics
{
	TimestampTz now;
	TqQueueRow *rows; /* of those with a label, by number */
	MetricsQueue *queues;
	int n;              /* of both; the others are behind them */
	bool has_others;    /* some queue has no label */
	bool has_gauges;    /* the numbers of tasks are exact */
	TqQueueCounts rest; /* of the others */
	TqQueueCounts *counts;
	int ncounts;
	int64 waiters; /* for a task */
} Metrics;

static int
compare_numbers(const void *a, const void *b)
{
	int32 x = ((const TqQueueRow *) a)->id;
	int32 y = ((const TqQueueRow *) b)->id;

	return (x > y) - (x < y);
}

/* Returns what is shown of a queue: its own, or that of all others. */
static MetricsQueue *
queue_of(Metrics *metrics, int32 id)
{
	TqQueueRow key = {.id = id};
	TqQueueRow *row = bsearch(&key, metrics->rows, metrics->n,
							  sizeof(TqQueueRow), compare_numbers);

	return &metrics->queues[row == NULL ? metrics->n : row - metrics->rows];
}

/* Reads which queues have a label. */
static void
read_labels(Metrics *metrics)
{
	int found;

	metrics->rows = tq_queues_first(tq_metrics_queues + 1, &found);
	metrics->n = Min(found, tq_metrics_queues);
	metrics->has_others = found > metrics->n;
	metrics->queues = palloc0(sizeof(MetricsQueue) * (metrics->n + 1));
	for (int i = 0; i <= metrics->n; i++)
	{
		MetricsQueue *queue = &metrics->queues[i];

		queue->label = metric_label("queue", i < metrics->n
												 ? metrics->rows[i].name
												 : "other");
		queue->length = strlen(queue->label);
	}
}

/*
 * Leaves out the queues that have no counters, though they may have tasks, because
 * other queues have all counters: they are among the others.
 */
static void
drop_uncounted(Metrics *metrics, const TqQueueCounts *empty)
{
	MetricsQueue others = metrics->queues[metrics->n];
	int kept = 0;

	for (int i = 0; i < metrics->n; i++)
	{
		if (metrics->queues[i].counts == empty)
			continue;
		metrics->rows[kept] = metrics->rows[i];
		metrics->queues[kept++] = metrics->queues[i];
	}
	metrics->n = kept;
	metrics->queues[kept] = others;
	metrics->has_others = true;
}

/* Adds to a queue, or to the others, what is counted. */
static void
read_counters(Metrics *metrics)
{
	TqQueueCounts *empty = palloc0(sizeof(TqQueueCounts));

	metrics->counts = tq_counts_read_totals(tq_locked_table,
											tq_count_identity(),
											&metrics->ncounts, &metrics->rest);
	metrics->has_gauges = metrics->rest.has_gauges;
	empty->has_gauges = metrics->has_gauges;
	for (int i = 0; i < metrics->n; i++)
		metrics->queues[i].counts = empty;
	metrics->queues[metrics->n].counts = &metrics->rest;
	for (int i = 0; i < metrics->ncounts; i++)
	{
		TqQueueCounts *counts = &metrics->counts[i];
		MetricsQueue *queue = queue_of(metrics, counts->queue);

		if (queue->counts == empty)
			queue->counts = counts;
		else
		{
			for (int c = 0; c < TQ_QUEUE_COUNTERS; c++)
				metrics->rest.counters[c] += counts->counters[c];
		}
	}
	if (metrics->rest.is_full)
		drop_uncounted(metrics, empty);
}

/* Adds the sessions that wait, and the workers that asked a moment ago. */
static void
read_workers(Metrics *metrics)
{
	TqSleepers sleepers = tq_wait_list();
	int n;
	int32 *seen = tq_workers_seen(tq_clock_add_ms(metrics->now, -SEEN_MS), &n);

	for (int i = 0; i < sleepers.n; i++)
	{
		if (sleepers.list[i].queue < 0)
			metrics->waiters++;
		else
			queue_of(metrics, sleepers.list[i].queue)->waiters++;
	}
	for (int i = 0; i < n; i++)
		queue_of(metrics, seen[i])->workers++;
}

/* Those at which none has looked for the longest time come first. */
static int
compare_looks(const void *a, const void *b)
{
	uint32 x = (*(TqQueueCounts *const *) a)->looked;
	uint32 y = (*(TqQueueCounts *const *) b)->looked;

	return (x > y) - (x < y);
}

/* Looks since when the first run of some queues has been pending. */
static void
look(Metrics *metrics)
{
	TqQueueCounts **due = palloc(sizeof(TqQueueCounts *) * (metrics->n + 1));
	int32 queues[LOOKS];
	TimestampTz oldest[LOOKS];
	int n = 0;

	for (int i = 0; i < metrics->n; i++)
	{
		TqQueueCounts *counts = metrics->queues[i].counts;

		if (counts->has_gauges && counts->counters[TQ_QUEUE_PENDING] > 0)
			due[n++] = counts;
		else
			counts->looked = 0;
	}
	qsort(due, n, sizeof(TqQueueCounts *), compare_looks);
	n = Min(n, LOOKS);
	for (int i = 0; i < n; i++)
		queues[i] = due[i]->queue;
	tq_pending_oldest(queues, n, oldest);
	for (int i = 0; i < n; i++)
	{
		due[i]->oldest = oldest[i];
		due[i]->looked = (uint32) tq_clock_real_seconds();
	}
	if (metrics->ncounts > 0)
		tq_counts_note_oldest(tq_locked_table, metrics->counts,
							  metrics->ncounts);
}

/* ---- samples of queues ---- */

/* Puts what a sample begins with: name{queue="shop/mail"; `more` goes on. */
static inline void
put_head(MetricsPage *page, const char *name, Size length,
		 const MetricsQueue *queue, const char *more, Size more_length)
{
	page_reserve(page, length + queue->length + more_length);
	put(page, name, length);
	put(page, queue->label, queue->length);
	put(page, more, more_length);
}

#define PUT_HEAD(page, name, queue, more)                                     \
	put_head(page, name, strlen(name), queue, more, strlen(more))

static inline void
put_value(MetricsPage *page, int64 value)
{
	put_number(page, value);
	put(page, "\n", 1);
}

/* Returns the queues that are shown; the others are the last one. */
static int
shown(const Metrics *metrics)
{
	return metrics->n + (metrics->has_others ? 1 : 0);
}

static void
put_tasks(MetricsPage *page, const Metrics *metrics)
{
	static const char *const states[TQ_QUEUE_STATES] =
		{[TQ_QUEUE_UNSCHEDULED] = ",state=\"unscheduled\"} ",
		 [TQ_QUEUE_DELAYED] = ",state=\"delayed\"} ",
		 [TQ_QUEUE_PENDING] = ",state=\"pending\"} ",
		 [TQ_QUEUE_RUNNING] = ",state=\"running\"} "};

	put_family(page, "tq_tasks", "gauge", "Unresolved tasks, by state.");
	for (int i = 0; i < shown(metrics); i++)
	{
		const MetricsQueue *queue = &metrics->queues[i];

		for (int state = 0;
			 state < TQ_QUEUE_STATES && queue->counts->has_gauges; state++)
		{
			PUT_HEAD(page, "tq_tasks{", queue, states[state]);
			put_value(page, Max(queue->counts->counters[state], 0));
		}
	}
}

static void
put_oldest(MetricsPage *page, const Metrics *metrics)
{
	put_family(page, "tq_oldest_pending_seconds", "gauge",
			   "How long the first of the pending tasks has been pending.");
	for (int i = 0; i < metrics->n; i++)
	{
		const MetricsQueue *queue = &metrics->queues[i];
		const TqQueueCounts *counts = queue->counts;
		bool is_empty = counts->counters[TQ_QUEUE_PENDING] <= 0;

		if (!counts->has_gauges || (!is_empty && counts->looked == 0))
			continue;
		PUT_HEAD(page, "tq_oldest_pending_seconds{", queue, "} ");
		put_seconds(page, is_empty || counts->oldest == 0
							  ? 0
							  : Max(metrics->now - counts->oldest, 0));
		put(page, "\n", 1);
	}
}

/* What is shown of each queue by one number. */
typedef enum Shown
{
	SHOWN_COUNTER, /* the counter of that number */
	SHOWN_ENDED,   /* runs that ended in that state */
	SHOWN_WAITERS,
	SHOWN_WORKERS
} Shown;

typedef struct Number
{
	const char *name;
	const char *kind;
	const char *help;
	Shown what;
	int which;
} Number;

static const Number numbers[] =
	{{"tq_tasks_created_total", "counter", "Tasks created.", SHOWN_COUNTER,
	  TQ_QUEUE_CREATED},
	 {"tq_runs_claimed_total", "counter", "Runs claimed.", SHOWN_COUNTER,
	  TQ_QUEUE_CLAIMED},
	 {"tq_runs_completed_total", "counter",
	  "Runs completed, the skipped ones included.", SHOWN_ENDED,
	  TQ_STATE_COMPLETED},
	 {"tq_runs_failed_total", "counter",
	  "Runs failed, those that were retried included.", SHOWN_ENDED,
	  TQ_STATE_FAILED},
	 {"tq_runs_retried_total", "counter",
	  "Runs that were followed by a retry.", SHOWN_COUNTER, TQ_QUEUE_RETRIED},
	 {"tq_claims_expired_total", "counter", "Claims that expired.",
	  SHOWN_COUNTER, TQ_QUEUE_ENDED + TQ_RESOLVED_CLAIM_EXPIRED},
	 {"tq_dead_letters_total", "counter", "Tasks that became dead letters.",
	  SHOWN_COUNTER, TQ_QUEUE_DEAD_LETTERS},
	 {"tq_waiters", "gauge", "Sessions that wait for work.", SHOWN_WAITERS, 0},
	 {"tq_workers", "gauge", "Workers that asked for work within a minute.",
	  SHOWN_WORKERS, 0}};

static int64
number_of(const Number *number, const MetricsQueue *queue)
{
	switch (number->what)
	{
		case SHOWN_COUNTER:
			return queue->counts->counters[number->which];
		case SHOWN_ENDED:
			return tq_runs_ended(queue->counts, (TqState) number->which);
		case SHOWN_WAITERS:
			return queue->waiters;
		case SHOWN_WORKERS:
			return queue->workers;
	}
	return 0;
}

static void
put_numbers(MetricsPage *page, const Metrics *metrics)
{
	for (int i = 0; i < lengthof(numbers); i++)
	{
		char *name = psprintf("%s{", numbers[i].name);
		Size length = strlen(name);

		put_family(page, numbers[i].name, numbers[i].kind, numbers[i].help);
		for (int j = 0; j < shown(metrics); j++)
		{
			const MetricsQueue *queue = &metrics->queues[j];

			put_head(page, name, length, queue, "} ", 2);
			put_value(page, number_of(&numbers[i], queue));
		}
	}
}

/* Runs that ended as exception, by reason; those that did not happen are left out. */
static void
put_exceptions(MetricsPage *page, const Metrics *metrics)
{
	put_family(
		page, "tq_runs_exception_total", "counter",
		"Runs that ended as exception, by reason, those that were retried included.");
	for (int reason = 1; reason <= TQ_RESOLVED_LAST; reason++)
	{
		char *more = psprintf(",reason=\"%s\"} ",
							  tq_resolved_name((TqResolved) reason));

		if (tq_resolved_state((TqResolved) reason) != TQ_STATE_EXCEPTION)
			continue;
		for (int i = 0; i < shown(metrics); i++)
		{
			const MetricsQueue *queue = &metrics->queues[i];
			int64 runs = tq_runs_ended_for(queue->counts, (TqResolved) reason);

			if (runs == 0)
				continue;
			PUT_HEAD(page, "tq_runs_exception_total{", queue, more);
			put_value(page, runs);
		}
	}
}

/*
 * Where the buckets that are shown end, in ms: at ends of those that are counted
 * (core/histogram.c).
 */
static const int64 ends[] = {1,       5,       20,       80,      320,
							 1280,    5120,    20480,    81920,   327680,
							 1310720, 5242880, 20971520, 83886080};

#define ENDS lengthof(ends)

/* What the buckets of a histogram have in common. */
typedef struct Buckets
{
	char *name; /* with the brace behind it */
	Size length;
	char *le[ENDS + 1]; /* what follows the label of the queue */
	Size le_length[ENDS + 1];
	int first_behind[ENDS +
					 1]; /* the buckets that are counted, from this on */
} Buckets;

static void
begin_buckets(Buckets *buckets, const char *name)
{
	buckets->name = psprintf("%s_bucket{", name);
	buckets->length = strlen(buckets->name);
	for (int i = 0; i < ENDS; i++)
	{
		buckets->le[i] = psprintf(",le=\"%.9g\"} ", (double) ends[i] / 1000);
		buckets->first_behind[i] = tq_histogram_bucket(ends[i]);
	}
	buckets->le[ENDS] = pstrdup(",le=\"+Inf\"} ");
	buckets->first_behind[ENDS] = TQ_BUCKETS;
	for (int i = 0; i <= ENDS; i++)
		buckets->le_length[i] = strlen(buckets->le[i]);
}

/*
 * Puts the buckets of a queue; returns how much they have together.  Most of the
 * lines are like the one before but for the end of the bucket.
 */
static int64
put_buckets(MetricsPage *page, const Buckets *buckets,
			const MetricsQueue *queue, const int64 *counts)
{
	Size head_length = buckets->length + queue->length;
	int64 below = 0;
	int at = 0;
	char value[MAXINT8LEN + 1];
	Size length = 0;
	Size head;

	page_reserve(page, (ENDS + 1) * (head_length + LINE_ROOM));
	head = page->length;
	for (int i = 0; i <= ENDS; i++)
	{
		int64 last = below;

		while (at < buckets->first_behind[i])
			below += counts[at++];
		if (i == 0)
		{
			put(page, buckets->name, buckets->length);
			put(page, queue->label, queue->length);
		}
		else
			put(page, page->data + head, head_length);
		put(page, buckets->le[i], buckets->le_length[i]);
		if (i == 0 || below != last)
		{
			length = pg_lltoa(below, value);
			value[length++] = '\n';
		}
		put(page, value, length);
	}
	return below;
}

static void
put_histogram(MetricsPage *page, const Metrics *metrics, const char *name,
			  int counter, int sum)
{
	char *sum_name = psprintf("%s_sum{", name);
	char *count_name = psprintf("%s_count{", name);
	Buckets buckets;

	begin_buckets(&buckets, name);
	for (int i = 0; i < shown(metrics); i++)
	{
		const MetricsQueue *queue = &metrics->queues[i];
		const int64 *counters = queue->counts->counters;
		int64 runs = put_buckets(page, &buckets, queue, counters + counter);

		PUT_HEAD(page, sum_name, queue, "} ");
		put_seconds(page, counters[sum]);
		put(page, "\n", 1);
		PUT_HEAD(page, count_name, queue, "} ");
		put_value(page, runs);
	}
}

/* A limit of a queue: how much it may have, and has. */
typedef struct MetricsLimit
{
	const char *name;
	int bound; /* 0: none */
	int gauge;
} MetricsLimit;

static void
put_limits_of(MetricsPage *page, const Metrics *metrics, bool used)
{
	for (int i = 0; i < metrics->n; i++)
	{
		const MetricsQueue *queue = &metrics->queues[i];
		const TqQueueSettings *settings = tq_queue_settings(
			metrics->rows[i].id);
		MetricsLimit limits[] = {{",limit=\"concurrentLimit\"} ",
								  settings->concurrent_limit,
								  TQ_QUEUE_RUNNING},
								 {",limit=\"maxRunning\"} ",
								  settings->max_running, TQ_QUEUE_RUNNING},
								 {",limit=\"maxPending\"} ",
								  settings->max_pending, TQ_QUEUE_PENDING},
								 {",limit=\"maxDelayed\"} ",
								  settings->max_delayed, TQ_QUEUE_DELAYED}};

		for (int j = 0; j < lengthof(limits); j++)
		{
			if (limits[j].bound == 0 || (used && !queue->counts->has_gauges))
				continue;
			PUT_HEAD(page, used ? "tq_queue_limit_used{" : "tq_queue_limit{",
					 queue, limits[j].name);
			put_value(page, used ? queue->counts->counters[limits[j].gauge]
								 : limits[j].bound);
		}
	}
}

/* Puts the limits of queues, and which are paused. */
static void
put_settings(MetricsPage *page, const Metrics *metrics)
{
	put_family(page, "tq_queue_limit", "gauge",
			   "Tasks that a limit of the queue allows.");
	put_limits_of(page, metrics, false);
	put_family(page, "tq_queue_limit_used", "gauge",
			   "Tasks that count for a limit of the queue.");
	put_limits_of(page, metrics, true);
	put_family(page, "tq_queue_rate_limit", "gauge",
			   "Claims per second that the queue allows.");
	for (int i = 0; i < metrics->n; i++)
	{
		const TqQueueSettings *settings = tq_queue_settings(
			metrics->rows[i].id);

		if (settings->rate_count == 0)
			continue;
		PUT_HEAD(page, "tq_queue_rate_limit{", &metrics->queues[i], "} ");
		PUT(page, psprintf("%g\n", (double) settings->rate_count * 1000 /
									   (double) settings->rate_interval));
	}
	put_family(page, "tq_queue_paused", "gauge", "1: the queue is paused.");
	for (int i = 0; i < metrics->n; i++)
	{
		if (!tq_queue_settings(metrics->rows[i].id)->is_paused)
			continue;
		PUT_HEAD(page, "tq_queue_paused{", &metrics->queues[i], "} ");
		put_value(page, 1);
	}
}

/* ---- the page ---- */

static TqStatement others = TQ_STATEMENT(
	"SELECT m.metric, m.kind, m.help, m.sample"
	" FROM tq_internal.other_metric m ORDER BY m.metric, m.sample",
	InvalidOid);

typedef struct OtherMetric
{
	char *name;
	char *kind;
	char *help;
	char *sample;
} OtherMetric;

static void
read_other(TupleTableSlot *slot, void *into)
{
	*(OtherMetric *) into = (OtherMetric){tq_row_text(slot, 1),
										  tq_row_text(slot, 2),
										  tq_row_text(slot, 3),
										  tq_row_text(slot, 4)};
}

static void
put_single(MetricsPage *page, const char *name, const char *help, int64 value)
{
	put_family(page, name, "gauge", help);
	PUT(page, name);
	PUT(page, " ");
	put_value(page, value);
}

/* Puts what is not of a queue. */
static void
put_others(MetricsPage *page, const Metrics *metrics)
{
	int n;
	OtherMetric *rows = tq_spi_read_all(&others, NULL, read_other,
										sizeof(OtherMetric), &n);

	put_single(page, "tq_counters_exact",
			   "1: the numbers of tasks are known; 0: they are counted again.",
			   metrics->has_gauges ? 1 : 0);
	put_single(page, "tq_task_waiters", "Sessions that wait for a task.",
			   metrics->waiters);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
			put_family(page, rows[i].name, rows[i].kind, rows[i].help);
		page_reserve(page, strlen(rows[i].sample));
		PUT(page, rows[i].sample);
		PUT(page, "\n");
	}
}

static void
put_queues(MetricsPage *page, const Metrics *metrics)
{
	put_tasks(page, metrics);
	put_oldest(page, metrics);
	put_numbers(page, metrics);
	put_exceptions(page, metrics);
	put_family(page, "tq_wait_seconds", "histogram",
			   "How long claimed runs waited since they could be claimed.");
	put_histogram(page, metrics, "tq_wait_seconds", TQ_QUEUE_WAITED,
				  TQ_QUEUE_WAITED_US);
	put_family(page, "tq_run_seconds", "histogram",
			   "How long runs that ended had been with their workers.");
	put_histogram(page, metrics, "tq_run_seconds", TQ_QUEUE_RAN,
				  TQ_QUEUE_RAN_US);
	if (tq_queue_settings_exist())
		put_settings(page, metrics);
}

/* metrics() -> text: a scrape */
Datum
tq_metrics(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	Metrics metrics = {.now = tq_clock_now()};
	MetricsPage page = {.length = VARHDRSZ, .room = 64 * 1024};

	tq_call_begin(true);
	tq_access_require(tq_need("queue:metrics"));
	read_labels(&metrics);
	read_counters(&metrics);
	read_workers(&metrics);
	look(&metrics);
	page.room = Max((Size) shown(&metrics) * 4 * 1024, RESERVED);
	page.data = MemoryContextAllocHuge(outer, page.room);
	put_queues(&page, &metrics);
	put_others(&page, &metrics);
	tq_call_end();
	SET_VARSIZE(page.data, page.length);
	PG_RETURN_TEXT_P(page.data);
}
