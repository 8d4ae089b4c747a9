/*
 * claim_queues.c
 *	  Claims from several queues in one call (doc/spec/taskcluster.md 2.8).
 *
 * Decides in which order the queues are asked, for how many runs each, and what
 * becomes of a wake-up from one of them.  claim.c does the claim from each
 * queue, and claim_wait.c has the same for a single one.
 *
 * Elements are asked in their order.  The queues of one element, which are
 * several if it is a pattern, take turns, because their order is not the
 * caller's choice, and any fixed one would starve the last of them.  With mode
 * round-robin all queues of the call take turns.  They begin at another queue
 * in each call of the session, the first time at a random one, so that calls of
 * short sessions are spread, too.
 *
 * A wake-up is for a row of one queue.  A try that gets enough runs before it
 * comes to that queue passes the wake-up on, and so does a worker that is in
 * quarantine there.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "datatype/timestamp.h"
#include "utils/memutils.h"

#include "../shmem/shmem.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "engine.h"

#define BARRED_MS 1000 /* interval of looks whether a quarantine is over */

/* A claim in progress. */
typedef struct Try
{
	TqQueueSet *set;
	const char *group;
	const char *id;
	int max;
	uint32 turn;      /* where queues that take turns begin */
	bool takes_turns; /* all queues, not only those of a pattern */
	TqWait wait;
	TqClaim *claims; /* room for max; NULL: none yet */
	int found;
	TimestampTz again; /* when there may be some without a wake-up; 0: not */
	bool is_barred;    /* in quarantine in some of the queues */
	bool passed_on;    /* a wake-up that could not be used */
} Try;

/* ---- one try ---- */

/*
 * Finds out whether a claim from a queue can find anything.  A new worker is
 * not inserted before there is something to claim, as in claim_wait.c.  Returns
 * whether it is to be inserted.
 */
static bool
look_at(Try *try, TqSetQueue *queue, TimestampTz now)
{
	TimestampTz again = 0;
	TqWorkerSeat seat;

	if (queue->number == 0)
		return false;
	if (tq_worker_seat_find(queue->number, try->group, try->id, &seat))
	{
		queue->is_barred = seat.quarantine_until > now;
		queue->may_claim = !queue->is_barred;
		try->is_barred |= queue->is_barred;
		return false;
	}
	queue->may_claim = tq_claim_is_possible(queue->number, now, &again);
	queue->is_asked = !queue->may_claim;
	try->again = tq_earlier(try->again, again);
	return queue->may_claim;
}

/* Inserts the worker in those queues where it is new and may claim. */
static void
insert_worker(Try *try)
{
	int order[TQ_QUEUE_SET_MAX];
	TqWorkerSeat seat;

	tq_queue_set_by_name(try->set, order);
	for (int i = 0; i < try->set->n; i++)
	{
		const TqSetQueue *queue = &try->set->queues[order[i]];

		if (queue->may_claim)
			tq_worker_seat_intern(queue->number, try->group, try->id, &seat);
	}
}

static void
look_at_queues(Try *try)
{
	TimestampTz now = tq_clock_now();
	bool is_new = false;

	for (int i = 0; i < try->set->n; i++)
		is_new |= look_at(try, &try->set->queues[i], now);
	if (is_new)
		insert_worker(try);
}

/* Claims up to max runs of one queue; returns how many. */
static int
claim_from(Try *try, TqSetQueue *queue, int max)
{
	TimestampTz again;
	int found;
	TqClaim *claims = tq_claim_best(queue->name, try->group, try->id, max,
									tq_clock_now(), &found, &again);

	queue->is_asked = true;
	queue->is_empty = found < max;
	queue->claimed += found;
	try->again = tq_earlier(try->again, again);
	if (found > 0 && try->claims == NULL)
		try->claims = palloc(sizeof(TqClaim) * try->max);
	for (int i = 0; i < found; i++)
	{
		claims[i].queue = queue->name;
		try->claims[try->found++] = claims[i];
	}
	return found;
}

/* Returns how many runs the queues that may have more have given. */
static int
claimed_of(const TqSetQueue *queues, int n)
{
	int claimed = 0;

	for (int i = 0; i < n; i++)
	{
		if (queues[i].may_claim && !queues[i].is_empty)
			claimed += queues[i].claimed;
	}
	return claimed;
}

/*
 * Asks each of n queues that may have more for as many runs as it lacks of an
 * equal share; the first ones that have it get one more if the runs cannot be
 * shared equally.  Returns how many queues may have more than that.
 */
static int
claim_shares(Try *try, TqSetQueue *queues, int n, int sharing)
{
	int total = try->max - try->found + claimed_of(queues, n);
	int more = total % sharing;
	int full = 0;

	for (int i = 0; i < n && try->found < try->max; i++)
	{
		TqSetQueue *queue = &queues[(i + try->turn) % n];
		int wanted = total / sharing + (more > 0 ? 1 : 0) - queue->claimed;

		if (!queue->may_claim || queue->is_empty ||
			(wanted > 0 && claim_from(try, queue, wanted) < wanted))
			continue;
		full++;
		more -= more > 0 ? 1 : 0;
	}
	return full;
}

/*
 * Claims from n queues that take turns.  What one of them does not give is
 * shared out among those that have more, until there are enough.
 */
static void
claim_in_turns(Try *try, TqSetQueue *queues, int n)
{
	int sharing = 0;

	for (int i = 0; i < n; i++)
		sharing += queues[i].may_claim ? 1 : 0;
	while (sharing > 0 && try->found < try->max)
		sharing = claim_shares(try, queues, n, sharing);
}

/* Returns how many queues from this one on are of the same element. */
static int
length_of_element(const TqQueueSet *set, int first)
{
	int n = 1;

	while (first + n < set->n &&
		   set->queues[first + n].element == set->queues[first].element)
		n++;
	return n;
}

/*
 * Passes the wake-up on for which this try was made, unless the try has looked
 * for the row, or the wake-up was for a new name.
 */
static void
pass_on(Try *try)
{
	int32 number;

	if (!tq_wait_is_for(&try->wait, &number) || number == 0)
		return;
	for (int i = 0; i < try->set->n; i++)
	{
		if (try->set->queues[i].number == number &&
			try->set->queues[i].is_asked)
			return;
	}
	tq_wait_requeue_wakeup(&try->wait);
	try->passed_on = true;
}

/* Tries once, with the queues of the set as it was read. */
static bool
claim(Try *try)
{
	TqQueueSet *set = try->set;
	int n;

	try->claims = NULL;
	try->found = 0;
	try->again = 0;
	try->is_barred = false;
	look_at_queues(try);
	for (int i = 0; i < set->n && try->found < try->max; i += n)
	{
		n = try->takes_turns ? set->n : length_of_element(set, i);
		claim_in_turns(try, &set->queues[i], n);
	}
	pass_on(try);
	if (try->again != 0)
		tq_wait_look_in(&try->wait, tq_clock_ms_until(try->again));
	if (try->is_barred)
		tq_wait_look_in(&try->wait, BARRED_MS);
	return try->found > 0;
}

/* ---- waiting ---- */

/*
 * Tries once more, with the queues that there are now, in the memory of the
 * previous try.
 */
static bool
claim_again(Try *try, MemoryContext memory)
{
	MemoryContext outer = MemoryContextSwitchTo(memory);
	bool found;

	MemoryContextReset(memory);
	tq_queue_set_read(try->set);
	found = claim(try);
	MemoryContextSwitchTo(outer);
	return found;
}

/*
 * Enters the lists of the queues, then tries to claim.  If there are other
 * queues by then, or a wake-up was passed on, does both again.
 */
static bool
enter_and_claim(Try *try, MemoryContext memory)
{
	TqSetLists lists = tq_queue_set_lists(try->set);
	TqSetLists entered;

	do
	{
		entered = lists;
		try->passed_on = false;
		tq_wait_enter(&try->wait, entered.numbers, entered.n);
		if (claim_again(try, memory))
			return true;
		lists = tq_queue_set_lists(try->set);
	} while (try->passed_on || !tq_set_lists_are_equal(&lists, &entered));
	return false;
}

/* Sleeps and tries until there are runs or the time is over. */
static void
claim_in_time(Try *try)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq claim queues",
												 ALLOCSET_DEFAULT_SIZES);

	while (!enter_and_claim(try, memory))
	{
		if (!tq_wait_tried(&try->wait) &&
			tq_wait_sleep(&try->wait, TQ_WAIT_CLAIM_WORK) == TQ_WAKEUP_OVER)
			break;
	}
}

/* ---- the call ---- */

/* Returns where the queues of this call begin, each time at the next one. */
static uint32
next_turn(void)
{
	static bool has_begun = false;
	static uint32 turn;

	if (!has_begun)
		turn = pg_prng_uint32(&pg_global_prng_state) / 2;
	has_begun = true;
	return turn++;
}

/* Takes over the wake-up of an earlier wait_for_work(). */
static void
take_over(Try *try)
{
	TqSetLists lists = tq_queue_set_lists(try->set);

	(void) tq_wait_take_over(&try->wait, lists.numbers, lists.n);
}

/*
 * Records the worker as active in the queues that are named and have given it
 * nothing.  Inserts no new queue if others have.
 */
static void
note_seen(const Try *try)
{
	int order[TQ_QUEUE_SET_MAX];

	tq_queue_set_by_name(try->set, order);
	for (int i = 0; i < try->set->n; i++)
	{
		const TqSetQueue *queue = &try->set->queues[order[i]];

		if (queue->claimed == 0 && !queue->by_pattern &&
			(queue->number != 0 || try->found == 0))
			tq_claim_note_seen(queue->name, try->group, try->id,
							   tq_clock_now());
	}
}

/*
 * Claims up to max runs of the queues of a set.  If there is none, waits until
 * there is one, for at most wait_ms milliseconds.
 */
TqClaim *
tq_claim_queues(TqQueueSet *set, bool takes_turns, const char *worker_group,
				const char *worker_id, int max, int64 wait_ms, int *found)
{
	Try try = {.set = set,
			   .group = worker_group,
			   .id = worker_id,
			   .max = max,
			   .turn = next_turn(),
			   .takes_turns = takes_turns};

	tq_wait_begin(&try.wait, wait_ms);
	tq_queue_set_read(set);
	take_over(&try);
	if (!claim(&try))
	{
		(void) tq_wait_tried(&try.wait);
		if (wait_ms > 0)
			claim_in_time(&try);
	}
	(void) tq_wait_tried(&try.wait);
	tq_wait_end(&try.wait);
	note_seen(&try);
	*found = try.found;
	return try.claims;
}
