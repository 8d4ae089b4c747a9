/*
 * limits.c
 *	  Limits of queues: pause, running tasks, claims per interval, tasks that
 *	  wait (doc/spec/policy.md 6).
 *
 * Decides how much a call may claim from a queue, or create in it.  limit_room.c
 * ensures that two transactions do not take the same slot, and counts claims.
 *
 * A claim takes slots for as many runs as it asks for, before it looks for
 * them, and gives back those for which it finds no run.  For a queue without
 * settings it asks for nothing.
 */
#include "postgres.h"

#include "lib/qunique.h"
#include "utils/inval.h"

#include "lifecycle.h"

/* How soon a claim looks again that came while the rows were counted. */
#define COUNTED_MS 100

#define COUNT_PAUSE_MS 1000 /* between counts by this session */

/* ---- errors ---- */

/* Returns whether the server can keep limits. */
static bool
are_kept(void)
{
	return tq_count_shared != NULL && tq_counted_queues > 0;
}

static void
refuse_without_counters(int32 queue)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg("the limits of queue \"%s\" cannot be kept",
				tq_queue_name(queue)),
		 errdetail(
			 "Limits need counters in shared memory, which this server does not have."),
		 errhint(
			 "Put tq into shared_preload_libraries, with tq.counted_queues above 0, and restart the server; or remove the limits with tq.set_queue().")));
}

static void
refuse_without_room(int32 queue)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("the limits of queue \"%s\" cannot be kept",
					tq_queue_name(queue)),
			 errdetail("There are counters for %d queues (tq.counted_queues), "
					   "all of which have limits.",
					   tq_counted_queues),
			 errhint("Raise tq.counted_queues, and restart the server.")));
}

/* ---- requests ---- */

static TqRoomRequest
request_of(int32 queue, int gauge, int limit, int min, int max)
{
	if (!are_kept())
		refuse_without_counters(queue);
	return (TqRoomRequest){.extension = tq_locked_table,
						   .identity = tq_count_identity(),
						   .queue = queue,
						   .gauge = gauge,
						   .limit = limit,
						   .min = min,
						   .max = max};
}

static TqRate
limits_rate_of(int32 queue, const TqQueueSettings *settings)
{
	if (!are_kept())
		refuse_without_counters(queue);
	return (TqRate){.extension = tq_locked_table,
					.queue = queue,
					.claims = settings->rate_count,
					.interval = settings->rate_interval * 1000};
}

/*
 * Counts the rows if they have not been counted since the server was started.
 * Normally the maintenance worker has; a session does it where it does not run,
 * and where the worker has not reached it yet.  A queue that had no counters
 * before is counted by the first session that needs them, while others go on.
 * Returns whether it did.
 */
static bool
limits_count_rows(int32 queue)
{
	static TimestampTz next = TQ_LONG_AGO;
	static int32 last = 0;
	TimestampTz now = tq_clock_real_now();

	if (now < next && queue == last)
		return false;
	next = tq_clock_add_ms(now, COUNT_PAUSE_MS);
	last = queue;
	return tq_count_build_gauges(queue);
}

/* Takes slots, after the rows were counted. */
static TqRoom
limits_take(const TqRoomRequest *request, int *taken)
{
	TqRoom result;

	tq_counts_apply_prepared();
	result = tq_room_take(request, taken);
	if (result == TQ_ROOM_UNKNOWN && limits_count_rows(request->queue))
	{
		tq_counts_apply_prepared();
		result = tq_room_take(request, taken);
	}
	return result;
}

/* Looks for slots, after the rows were counted. */
static TqRoom
limits_read(const TqRoomRequest *request, int64 *rows)
{
	TqRoom result;

	tq_counts_apply_prepared();
	result = tq_room_read(request, rows);
	if (result == TQ_ROOM_UNKNOWN && limits_count_rows(request->queue))
	{
		tq_counts_apply_prepared();
		result = tq_room_read(request, rows);
	}
	return result;
}

/*
 * Prepares for the limits that a queue was set to.  Raises an error if they
 * cannot be kept.
 */
void
tq_limits_begin(int32 queue)
{
	bool has_limits = tq_queue_settings_count(tq_queue_settings(queue));
	TqRoomRequest request;
	int64 rows;

	if (!has_limits && !are_kept())
		return;
	request = request_of(queue, TQ_QUEUE_RUNNING, PG_INT32_MAX, 1, 1);
	if (!tq_room_keep(&request, has_limits) ||
		(has_limits && limits_read(&request, &rows) == TQ_ROOM_UNCOUNTED))
		refuse_without_room(queue);
}

/* ---- claims ---- */

/*
 * Takes slots for runs that are to run at the same time; returns false if there
 * are none.
 */
static bool
take_slots(TqAllowance *allowance, int limit, TimestampTz now)
{
	allowance->request = request_of(allowance->queue, TQ_QUEUE_RUNNING, limit,
									1, allowance->n);
	switch (limits_take(&allowance->request, &allowance->slots))
	{
		case TQ_ROOM_TAKEN:
			allowance->n = allowance->slots;
			return true;
		case TQ_ROOM_FULL:
			return false;
		case TQ_ROOM_UNKNOWN:
			allowance->again = tq_clock_add_ms(now, COUNTED_MS);
			return false;
		case TQ_ROOM_UNCOUNTED:
			break;
	}
	refuse_without_room(allowance->queue);
	return false;
}

/* Returns whether the claims before the start of the server are counted. */
static bool
are_loaded(const TqRate *rate)
{
	return tq_rates_are_loaded(rate->extension) ||
		   (limits_count_rows(rate->queue) &&
			tq_rates_are_loaded(rate->extension));
}

/* Counts claims of this interval; returns false if there may be no more. */
static bool
take_rate(TqAllowance *allowance, const TqQueueSettings *settings,
		  TimestampTz now)
{
	int n;

	allowance->rate = limits_rate_of(allowance->queue, settings);
	if (!are_loaded(&allowance->rate))
	{
		allowance->again = tq_clock_add_ms(now, COUNTED_MS);
		return false;
	}
	n = tq_rate_take(&allowance->rate, allowance->n, true, now,
					 &allowance->again);
	if (n == TQ_RATE_NO_ROOM)
		refuse_without_room(allowance->queue);
	allowance->n = allowance->claims = n;
	return n > 0;
}

/*
 * Takes what a claim of up to max runs needs: returns false if the queue hands
 * out nothing now.  Otherwise, the caller says by tq_limits_use() how many runs
 * it has claimed, or raises an error; it need not if nothing was taken.
 */
bool
tq_limits_take(int32 queue, int max, TimestampTz now, TqAllowance *allowance)
{
	TqQueueSettings settings;

	AcceptInvalidationMessages();
	settings = *tq_queue_settings(queue);
	*allowance = (TqAllowance){.queue = queue, .n = max, .at = now};
	if (settings.is_paused)
		return false;
	if (settings.concurrent_limit > 0 &&
		!take_slots(allowance, settings.concurrent_limit, now))
		return false;
	if (settings.rate_count == 0 || take_rate(allowance, &settings, now))
		return true;
	tq_limits_use(allowance, 0, now);
	return false;
}

/*
 * Gives back what a claim has taken beyond n runs, which have started at this
 * time.
 */
void
tq_limits_use(const TqAllowance *allowance, int n, TimestampTz now)
{
	if (allowance->claims > 0)
		tq_rate_use(&allowance->rate, allowance->claims, allowance->at, n,
					now);
	if (allowance->slots > n)
		tq_room_give_back(&allowance->request, allowance->slots - n);
}

/* Returns whether slots are free of those that run at the same time. */
static bool
has_slot(int32 queue, int limit, TimestampTz now, TimestampTz *again)
{
	TqRoomRequest request = request_of(queue, TQ_QUEUE_RUNNING, limit, 1, 1);
	int64 rows;

	switch (limits_read(&request, &rows))
	{
		case TQ_ROOM_TAKEN:
		case TQ_ROOM_FULL:
			return rows < limit;
		case TQ_ROOM_UNKNOWN:
			*again = tq_clock_add_ms(now, COUNTED_MS);
			return false;
		case TQ_ROOM_UNCOUNTED:
			break;
	}
	refuse_without_room(queue);
	return false;
}

static bool
has_rate(int32 queue, const TqQueueSettings *settings, TimestampTz now,
		 TimestampTz *again)
{
	TqRate rate = limits_rate_of(queue, settings);

	if (are_loaded(&rate))
		return tq_rate_take(&rate, 1, false, now, again) > 0;
	*again = tq_clock_add_ms(now, COUNTED_MS);
	return false;
}

/*
 * Returns whether a queue may hand out a run now.  If not, sets *again to when
 * it may, if no wake-up will say so, or else to 0.
 */
bool
tq_limits_allow(int32 queue, TimestampTz now, TimestampTz *again)
{
	TqQueueSettings settings;

	AcceptInvalidationMessages();
	settings = *tq_queue_settings(queue);
	*again = 0;
	if (settings.is_paused)
		return false;
	if (settings.concurrent_limit > 0 &&
		!has_slot(queue, settings.concurrent_limit, now, again))
		return false;
	return settings.rate_count == 0 || has_rate(queue, &settings, now, again);
}

/*
 * Returns until when the claims of the present interval of a queue are used up;
 * 0 if they are not, or if it is not known.
 */
TimestampTz
tq_limits_rate_until(int32 queue, TimestampTz now)
{
	TqQueueSettings settings;
	TimestampTz until = 0;
	TqRate rate;

	AcceptInvalidationMessages();
	settings = *tq_queue_settings(queue);
	if (settings.rate_count == 0 || !are_kept())
		return 0;
	rate = limits_rate_of(queue, &settings);
	if (tq_rates_are_loaded(rate.extension) &&
		tq_rate_take(&rate, 1, false, now, &until) == 0)
		return until;
	return 0;
}

/* ---- creation ---- */

static void
refuse_creation(int32 queue, const char *setting, int limit, int64 more,
				int64 rows)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("queue \"%s\" is full", tq_queue_name(queue)),
		 errdetail(
			 "It has " INT64_FORMAT
			 " of the tasks of which it may have %d (%s), and " INT64_FORMAT
			 " are to be added.",
			 rows, limit, setting, more),
		 errhint(
			 "Create fewer tasks, or later, or raise the limit with tq.set_queue().")));
}

/* Takes slots for all of n tasks that are created, or raises TQ409. */
static void
take_all(int32 queue, int gauge, const char *setting, int limit, int n)
{
	TqRoomRequest request = request_of(queue, gauge, limit, n, n);
	int64 rows;
	int taken;

	switch (limits_take(&request, &taken))
	{
		case TQ_ROOM_TAKEN:
			return;
		case TQ_ROOM_FULL:
			tq_counts_apply_prepared();
			(void) tq_room_read(&request, &rows);
			refuse_creation(queue, setting, limit, n, rows);
			break;
		case TQ_ROOM_UNKNOWN:
			ereport(
				ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("queue \"%s\" cannot accept tasks at the moment",
						tq_queue_name(queue)),
				 errdetail(
					 "It has a limit (%s), and the server has not yet counted its tasks since it was started.",
					 setting),
				 errhint("Try again in a second.")));
		case TQ_ROOM_UNCOUNTED:
			break;
	}
	refuse_without_room(queue);
}

/* Checks the limits of one queue in which tasks are created. */
static void
check_queue(int32 queue, const TqStart *starts, int n, TimestampTz now)
{
	TqQueueSettings settings;
	int pending = 0;
	int delayed = 0;

	AcceptInvalidationMessages();
	settings = *tq_queue_settings(queue);
	if (settings.max_running > 0)
	{
		TqRoomRequest request = request_of(queue, TQ_QUEUE_RUNNING,
										   settings.max_running, 1, 1);
		int64 rows;

		/* Raise TQ409 if so many tasks of a queue run that none may be created. */
		if (limits_read(&request, &rows) == TQ_ROOM_TAKEN &&
			rows >= settings.max_running)
			refuse_creation(queue, "maxRunning", settings.max_running, 0,
							rows);
	}
	if (settings.max_pending == 0 && settings.max_delayed == 0)
		return;
	for (int i = 0; i < n; i++)
	{
		if (starts[i].task->queue != queue)
			continue;
		if (starts[i].detail.budget.visible_at > now ||
			tq_gate_applies(starts[i].task))
			delayed++;
		else
			pending++;
	}
	if (settings.max_pending > 0 && pending > 0)
		take_all(queue, TQ_QUEUE_PENDING, "maxPending", settings.max_pending,
				 pending);
	if (settings.max_delayed > 0 && delayed > 0)
		take_all(queue, TQ_QUEUE_DELAYED, "maxDelayed", settings.max_delayed,
				 delayed);
}

static int
compare_int32(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/*
 * Raises TQ409 if one of the queues may not have the new tasks, some of which
 * become pending by these starts.
 */
void
tq_limits_check_creation(const TqTask *const *tasks, int n,
						 const TqStart *starts, int nstarts, TimestampTz now)
{
	int32 *queues;

	if (n == 0)
		return;
	queues = palloc(sizeof(int32) * n);
	for (int i = 0; i < n; i++)
		queues[i] = tasks[i]->queue;
	qsort(queues, n, sizeof(int32), compare_int32);
	n = (int) qunique(queues, n, sizeof(int32), compare_int32);
	for (int i = 0; i < n; i++)
		check_queue(queues[i], starts, nstarts, now);
}
