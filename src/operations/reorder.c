/*
 * reorder.c
 *	  Moves pending runs within the order of their queues (doc/spec/policy.md 6,
 *	  11.4).
 *
 * A queue may let its runs age: one that has waited for `agingInterval` rises
 * by one priority, and again after each further interval.  The step "reorder" of
 * maintenance moves its row; the priority of its task stays, so that its next
 * run begins with that.  The step also gives positions to the runs that were
 * pending before their queue became fair.
 *
 * Which runs are due is found without an index: in each priority the first run
 * is the oldest, and those behind it are not looked at if it is not due.  Runs
 * that have risen already lie between them, and are passed over.  In a queue
 * that is fair, the order is not that of time, so a pass looks at a bounded
 * number of runs; those behind come forward, or rise when they do.  Runs that
 * are locked are left to a later pass.
 *
 * The step does nothing until the first run is due, which is no earlier than an
 * interval after the last look if nothing was pending then.
 */
#include "postgres.h"

#include "operations.h"

#define MOVES 1000   /* in a pass */
#define LOOKS 2000   /* at runs of a queue and priority, in a pass */
#define PAUSE_MS 100 /* between two passes, unless there is more */
#define IDLE_MS 60000

/* A run that is to be moved. */
typedef struct Move
{
	int64 task;
	int priority;
	TimestampTz since;
} Move;

typedef struct ReorderPass
{
	TimestampTz now;
	TimestampTz next; /* when the next run is due */
	Move moves[MOVES];
	int n;
	/* about the queue and priority that it looks at */
	int64 interval; /* us */
	bool is_fair;
	int looks; /* that are left */
} ReorderPass;

/* When the next pass is due, and for which settings. */
static TimestampTz next_pass = TQ_LONG_AGO;
static uint64 next_version = 0;

static void
add_move(ReorderPass *pass, const TqWalkedRun *run, int priority)
{
	pass->moves[pass->n++] = (Move){run->task, priority, run->since};
}

/* Returns the priority that a run has by its age. */
static int
priority_at(const ReorderPass *pass, const TqWalkedRun *run)
{
	int64 steps = Max(pass->now - run->since, 0) / pass->interval;

	return (int) Min(run->own_priority + steps, TQ_PRIORITY_HIGHEST);
}

/* Has a run moved that is old enough, or notes when it is; a TqVisit. */
static bool
visit_old(const TqWalkedRun *run, void *arg)
{
	ReorderPass *pass = arg;
	int priority = priority_at(pass, run);
	int64 steps = run->priority - run->own_priority + 1;

	if (priority > run->priority)
		add_move(pass, run, priority);
	else
	{
		pass->next = Min(pass->next, run->since + steps * pass->interval);
		if (!pass->is_fair && steps == 1)
			return false;
	}
	return --pass->looks > 0 && pass->n < MOVES;
}

/* Has a run moved that has no position by its key; a TqVisit. */
static bool
visit_unplaced(const TqWalkedRun *run, void *arg)
{
	ReorderPass *pass = arg;

	add_move(pass, run, run->priority);
	return pass->n < MOVES;
}

static int
compare_moves(const void *a, const void *b)
{
	const Move *x = a;
	const Move *y = b;

	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/* Moves what was found, the oldest first; returns how many. */
static int64
make_moves(ReorderPass *pass)
{
	int64 moved = 0;

	qsort(pass->moves, pass->n, sizeof(Move), compare_moves);
	for (int i = 0; i < pass->n; i++)
	{
		const Move *move = &pass->moves[i];

		/* Both walks may have found it. */
		if (i > 0 && move->task == pass->moves[i - 1].task)
			continue;
		moved += tq_pending_move(move->task, move->priority);
	}
	return moved;
}

/* Returns when the next pass is due. */
TimestampTz
tq_reorder_next(TimestampTz now)
{
	uint64 version;
	int n;

	(void) tq_queue_settings_with_moves(&version, &n);
	if (n == 0)
		return DT_NOEND;
	return version == next_version ? next_pass : now;
}

/*
 * Moves runs whose time has come, if a pass is due, or always; returns how
 * many. Sets *more if there may be more.
 */
int64
tq_reorder_pass(TimestampTz now, bool always, bool *more)
{
	uint64 version;
	int n;
	int32 *queues = tq_queue_settings_with_moves(&version, &n);
	ReorderPass *pass;
	int64 moved;

	*more = false;
	if (n == 0 || (!always && tq_reorder_next(now) > now))
		return 0;
	pass = palloc(sizeof(ReorderPass));
	pass->now = now;
	pass->n = 0;
	pass->next = tq_clock_add_ms(now, IDLE_MS);
	for (int i = 0; i < n && pass->n < MOVES; i++)
	{
		TqQueueSettings settings = *tq_queue_settings(queues[i]);

		/* Look for runs of a queue that are to be moved. */
		pass->is_fair = tq_fair_applies(queues[i]);
		pass->interval = settings.aging_interval * 1000;
		for (int p = TQ_PRIORITY_HIGHEST;
			 p >= TQ_PRIORITY_LOWEST && pass->n < MOVES; p--)
		{
			pass->looks = LOOKS;
			if (pass->is_fair)
				tq_pending_walk(queues[i], p, 0, visit_unplaced, pass);
			if (pass->interval > 0 && p < TQ_PRIORITY_HIGHEST &&
				pass->n < MOVES)
				tq_pending_walk(queues[i], p, PG_INT64_MIN, visit_old, pass);
		}
		if (pass->interval > 0)
			pass->next = Min(pass->next, pass->now + pass->interval);
	}
	moved = make_moves(pass);
	*more = pass->n == MOVES && moved > 0;
	if (moved < pass->n)
		pass->next = now;
	next_pass = *more ? now : Max(pass->next, tq_clock_add_ms(now, PAUSE_MS));
	next_version = version;
	return moved;
}
