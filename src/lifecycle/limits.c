/*
 * limits.c
 *	  Limits of queues: pause, running tasks, claims per interval, tasks that
 *	  wait (doc/spec/policy.md 6); and quotas of what a role may have in one.
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
 * Returns for how many runs a wait for up to max is woken: one where a limit may
 * let it have fewer.
 */
int
tq_limits_want(int32 queue, int max)
{
	const TqQueueSettings *settings = tq_queue_settings(queue);

	return settings->concurrent_limit > 0 || settings->rate_count > 0 ? 1
																	  : max;
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

/* ---- quotas of what a queue has ---- */

/*
 * What each task adds to is limited by queue, because the counters say how much
 * a queue has (shmem/counters.c): a look at them counts nothing, and takes no
 * lock but theirs.  They are of committed transactions and of this one, so that
 * what is rolled back counts no longer, and transactions that are open at the
 * same time do not see each other.
 *
 * A session does not look for each task.  Of what a look finds to be left it
 * makes a thousandth without another look: so much can each session of a role
 * pass a quota by, beside what was not committed yet.  It is a sixteenth where
 * the queue has no counters, and all such queues of the database have more than
 * the quota together, so that the rows of the database are counted.  No quota is
 * looked at while they are counted after a start of the server.
 */
#define LEFT_BY_COUNTERS 1000
#define LEFT_BY_ROWS 16

typedef struct QueueQuota
{
	TqQuota quota;
	int first; /* gauges that are added up */
	int last;
} QueueQuota;

static const QueueQuota queue_quotas[] =
	{{{"tq.max_unresolved_tasks", &tq_max_unresolved_tasks, "unresolved tasks",
	   "Create tasks when others are resolved, or cancel some."},
	  TQ_QUEUE_UNSCHEDULED,
	  TQ_QUEUE_RUNNING},
	 {{"tq.max_groups", &tq_max_groups, "task groups",
	   "A group counts until it has expired and has no tasks."},
	  TQ_QUEUE_GROUPS,
	  TQ_QUEUE_GROUPS},
	 {{"tq.max_unique_keys", &tq_max_unique_keys, "unique keys",
	   "A key counts until the task that had it last is deleted."},
	  TQ_QUEUE_UNIQUE_KEYS,
	  TQ_QUEUE_UNIQUE_KEYS},
	 {{"tq.max_foreign_dependencies", &tq_max_foreign_dependencies,
	   "dependencies on tasks of others",
	   "A dependency counts until one of its tasks is deleted."},
	  TQ_QUEUE_FOREIGN,
	  TQ_QUEUE_FOREIGN}};

/* Where tq_quotas_left may be used up. */
static Oid left_to = InvalidOid;
static int32 left_in = 0;

static int64
sum_of_gauges(const QueueQuota *quota, const int64 *gauges)
{
	int64 sum = 0;

	for (int i = quota->first; i <= quota->last; i++)
		sum += gauges[i];
	return sum;
}

/* Returns whether this transaction has added to what a quota limits. */
static bool
has_added(const QueueQuota *quota, int32 queue)
{
	int64 added = 0;

	for (int i = quota->first; i <= quota->last; i++)
		added += tq_count_changes_own(tq_locked_table, queue, i);
	return added > 0;
}

/*
 * Returns how much of the quotas of a queue is left; below 0 if one is passed
 * that this transaction has added to, which *passed is then.
 */
static int64
left_of(int32 queue, const int64 *gauges, const QueueQuota **passed)
{
	int64 least = PG_INT32_MAX;

	for (int i = 0; i < lengthof(queue_quotas); i++)
	{
		const QueueQuota *quota = &queue_quotas[i];
		int64 left = *quota->quota.limit - sum_of_gauges(quota, gauges);

		if (*quota->quota.limit < 0)
			continue;
		if (left < 0 && !has_added(quota, queue))
			left = 0;
		if (left < least)
			*passed = quota;
		least = Min(least, left);
	}
	return least;
}

/* Looks at the quotas of a queue; returns how much the session may make then. */
static int
look(int32 queue)
{
	const QueueQuota *quota = NULL;
	int64 gauges[TQ_QUEUE_GAUGES];
	int share = LEFT_BY_COUNTERS;
	TqCountSource source;
	int64 left;

	if (superuser_arg(GetSessionUserId()))
		return PG_INT32_MAX;
	source = tq_count_read_gauges(queue, false, gauges);
	if (source == TQ_COUNT_REBUILDING)
	{
		tq_request_cycle(tq_clock_now());
		return 0;
	}
	left = left_of(queue, gauges, &quota);
	if (left < 0 && source == TQ_COUNT_TABLES)
	{
		share = LEFT_BY_ROWS;
		(void) tq_count_read_gauges(queue, true, gauges);
		left = left_of(queue, gauges, &quota);
	}
	if (left < 0)
		tq_quota_refuse(&quota->quota,
						GetUserNameFromId(GetSessionUserId(), false),
						tq_queue_name(queue), sum_of_gauges(quota, gauges));
	return (int) (left / share);
}

/*
 * Raises 53400 if a queue, in which this call has created tasks, has more than
 * the settings allow of what they have added: that many tasks and dependencies
 * at most.
 */
void
tq_quota_check_queue(int32 queue, int64 made)
{
	if (queue == left_in && GetSessionUserId() == left_to &&
		made <= tq_quotas_left)
	{
		tq_quotas_left -= (int) made;
		return;
	}
	tq_quotas_left = look(queue);
	left_in = queue;
	left_to = GetSessionUserId();
}
