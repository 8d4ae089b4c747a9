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
#include "lib/qunique.h"
#include "utils/memutils.h"

#include "lifecycle.h"

/* ---- the queues of a call ---- */

/*
 * The queues from which one call claims, or for which it waits
 * (doc/spec/taskcluster.md 2.8, 5.3).
 *
 * Decides which queues the elements of task_queue_ids stand for.  An element is
 * a queue, or a pattern that stands for all queues of a provisioner that are
 * known when it is read.  So a session that waits reads the set again at each
 * try; while a name is unknown or there is a pattern, it also waits in queue 0
 * of the wait queue, whose waiters are woken when a name becomes known.
 *
 * A pattern interns nothing: a queue that only a pattern stands for would
 * otherwise never expire.
 */

StaticAssertDecl(TQ_QUEUE_SET_MAX + 1 == TQ_WAIT_LISTS,
				 "a session waits in a list per queue, and in queue 0");

static bool
is_pattern(const char *element)
{
	return element[strlen(element) - 1] == '*';
}

/* Returns the earlier one of two times, of which 0 is none. */
static TimestampTz
earlier(TimestampTz a, TimestampTz b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* ---- elements ---- */

static bool
has_element(const TqQueueSet *set, const char *element)
{
	for (int i = 0; i < set->nelements; i++)
	{
		if (strcmp(set->elements[i], element) == 0)
			return true;
	}
	return false;
}

/*
 * Prepares a set of these elements, of which it keeps the first of those that
 * are equal.  Raises TQ400 if there are none, or too many, or one is invalid.
 */
void
tq_queue_set_init(TqQueueSet *set, char **elements, int n)
{
	*set = (TqQueueSet){.elements = palloc(sizeof(char *) * TQ_QUEUE_SET_MAX)};
	if (n == 0)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("task_queue_ids is empty"),
						errdetail("There is no queue to claim from."),
						errhint("Give at least one task queue or pattern.")));
	for (int i = 0; i < n; i++)
	{
		char *element = tq_queue_or_pattern(elements[i]);

		if (has_element(set, element))
			continue;
		if (set->nelements == TQ_QUEUE_SET_MAX)
			ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
							errmsg("task_queue_ids has too many elements"),
							errdetail("There are more than %d different ones.",
									  TQ_QUEUE_SET_MAX),
							errhint("Give at most %d task queues or patterns.",
									TQ_QUEUE_SET_MAX)));
		set->elements[set->nelements++] = element;
		set->has_pattern |= is_pattern(element);
	}
}

/* ---- scopes ---- */

/* Returns the need of a scope for each element, and room for another part. */
static TqNeed *
needs_of(const TqQueueSet *set)
{
	TqNeed *needs = tq_need_list(TQ_NEED_ALL, set->nelements + 1);

	for (int i = 0; i < set->nelements; i++)
		tq_need_add(needs, tq_need("queue:claim-work:%s", set->elements[i]));
	return needs;
}

/*
 * Checks the right to all queues of a set.  That to a pattern is a scope which
 * ends in its star, so that it holds for each queue that comes into being.
 */
void
tq_queue_set_require(const TqQueueSet *set)
{
	tq_access_require(needs_of(set));
}

/* Checks the right to claim from a set as this worker. */
void
tq_queue_set_require_claim(const TqQueueSet *set, const char *worker_group,
						   const char *worker_id)
{
	TqNeed *needs;

	if (tq_access_is_unlimited())
		return;
	needs = needs_of(set);
	tq_need_add(needs,
				tq_need("queue:worker-id:%s/%s", worker_group, worker_id));
	tq_access_check(needs);
}

/* ---- queues ---- */

/* Adds a queue, unless an earlier element stands for it. */
static void
claim_queues_add_queue(TqQueueSet *set, const char *name, int32 number,
					   int element, bool by_pattern)
{
	TqSetQueue *queue = &set->queues[set->n];

	for (int i = 0; i < set->n; i++)
	{
		if (strcmp(set->queues[i].name, name) != 0)
			continue;
		set->queues[i].by_pattern &= by_pattern;
		return;
	}
	if (set->n == TQ_QUEUE_SET_MAX)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("pattern \"%s\" stands for too many queues",
					set->elements[element]),
			 errdetail("With it, there are more than %d queues in one call.",
					   TQ_QUEUE_SET_MAX),
			 errhint(
				 "Name the queues, and share them out among calls of different workers.")));
	*queue = (TqSetQueue){.number = number,
						  .element = element,
						  .by_pattern = by_pattern};
	strlcpy(queue->name, name, sizeof(queue->name));
	set->n++;
}

static void
add_pattern(TqQueueSet *set, int element)
{
	const char *pattern = set->elements[element];
	int found;
	TqQueueNumber *queues = tq_queue_numbers_of(pnstrdup(pattern,
														 strlen(pattern) - 2),
												TQ_QUEUE_SET_MAX + 1, &found);

	for (int i = 0; i < found; i++)
		claim_queues_add_queue(set, queues[i].name, queues[i].id, element,
							   true);
}

/* Finds the queues for which the elements of a set stand now. */
void
tq_queue_set_read(TqQueueSet *set)
{
	set->n = 0;
	for (int i = 0; i < set->nelements; i++)
	{
		const char *element = set->elements[i];

		if (is_pattern(element))
			add_pattern(set, i);
		else
			claim_queues_add_queue(set, element, tq_queue_find(element), i,
								   false);
	}
}

static int
compare_names(const void *a, const void *b, void *queues)
{
	return strcmp(((TqSetQueue *) queues)[*(const int *) a].name,
				  ((TqSetQueue *) queues)[*(const int *) b].name);
}

/*
 * Sets order[] to the queues by name.  A call inserts rows of queues and workers
 * in that order, so that two calls do not wait for each other.
 */
static void
order_by_name(TqQueueSet *set, int *order)
{
	for (int i = 0; i < set->n; i++)
		order[i] = i;
	qsort_arg(order, set->n, sizeof(int), compare_names, set->queues);
}

/* Reads a set, after inserting the queues that are named. */
void
tq_queue_set_intern(TqQueueSet *set)
{
	int order[TQ_QUEUE_SET_MAX];

	tq_queue_set_read(set);
	order_by_name(set, order);
	for (int i = 0; i < set->n; i++)
	{
		TqSetQueue *queue = &set->queues[order[i]];

		if (!queue->by_pattern)
			queue->number = tq_queue_intern(queue->name);
	}
}

/*
 * Returns whether a run of one of the queues could be claimed now.  Sets *again
 * to the earliest time at which there may be one without a wake-up, or to 0.
 */
bool
tq_queue_set_is_claimable(const TqQueueSet *set, TimestampTz now,
						  TimestampTz *again)
{
	*again = 0;
	for (int i = 0; i < set->n; i++)
	{
		TimestampTz at = 0;

		if (set->queues[i].number != 0 &&
			tq_claim_is_possible(set->queues[i].number, now, &at))
			return true;
		*again = earlier(*again, at);
	}
	return false;
}

/* ---- lists of the wait queue ---- */

static int
compare_numbers(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/* Returns the lists in which to wait: those of all queues that are not barred. */
TqSetLists
tq_queue_set_lists(const TqQueueSet *set)
{
	TqSetLists lists = {.n = 0};

	if (set->has_pattern)
		lists.numbers[lists.n++] = 0;
	for (int i = 0; i < set->n; i++)
	{
		if (!set->queues[i].is_barred)
			lists.numbers[lists.n++] = set->queues[i].number;
	}
	qsort(lists.numbers, lists.n, sizeof(int32), compare_numbers);
	lists.n = (int) qunique(lists.numbers, lists.n, sizeof(int32),
							compare_numbers);
	return lists;
}

bool
tq_set_lists_are_equal(const TqSetLists *a, const TqSetLists *b)
{
	return a->n == b->n &&
		   memcmp(a->numbers, b->numbers, sizeof(int32) * a->n) == 0;
}

/* ---- claims ---- */

#define BARRED_MS 1000 /* interval of looks whether a quarantine is over */

/* A claim in progress. */
typedef struct ClaimQueuesTry
{
	TqQueueSet *set;
	const TqClaimAsk *ask;
	uint32 turn;      /* where queues that take turns begin */
	bool takes_turns; /* all queues, not only those of a pattern */
	TqWait wait;
	TqClaim *claims; /* room for max; NULL: none yet */
	int found;
	TimestampTz again; /* when there may be some without a wake-up; 0: not */
	bool is_barred;    /* in quarantine in some of the queues */
	bool passed_on;    /* a wake-up that could not be used */
} ClaimQueuesTry;

/* ---- one try ---- */

/*
 * Finds out whether a claim from a queue can find anything.  A new worker is
 * not inserted before there is something to claim, as in claim_wait.c.  Returns
 * whether it is to be inserted.
 */
static bool
claim_queues_read(ClaimQueuesTry *try, TqSetQueue *queue, TimestampTz now)
{
	TimestampTz again = 0;
	TqWorkerSeat seat;

	if (queue->number == 0)
		return false;
	if (tq_worker_seat_find(queue->number, try->ask->worker_group,
							try->ask->worker_id, &seat))
	{
		queue->is_barred = seat.quarantine_until > now;
		queue->may_claim = !queue->is_barred;
		try->is_barred |= queue->is_barred;
		return false;
	}
	queue->may_claim = tq_claim_is_possible(queue->number, now, &again);
	queue->is_asked = !queue->may_claim;
	try->again = earlier(try->again, again);
	return queue->may_claim;
}

static void
read_queues(ClaimQueuesTry *try)
{
	TimestampTz now = tq_clock_now();
	bool is_new = false;

	for (int i = 0; i < try->set->n; i++)
		is_new |= claim_queues_read(try, &try->set->queues[i], now);
	if (is_new)
	{
		int order[TQ_QUEUE_SET_MAX];
		TqWorkerSeat seat;

		/* Insert the worker in those queues where it is new and may claim. */
		order_by_name(try->set, order);
		for (int i = 0; i < try->set->n; i++)
		{
			const TqSetQueue *queue = &try->set->queues[order[i]];

			if (queue->may_claim)
				tq_worker_seat_intern(queue->number, try->ask->worker_group,
									  try->ask->worker_id, &seat);
		}
	}
}

/* Claims up to max runs of one queue; returns how many. */
static int
claim_from(ClaimQueuesTry *try, TqSetQueue *queue, int max)
{
	TimestampTz again;
	int found;
	TqClaim *claims = tq_claim_best(queue->name, try->ask, max, tq_clock_now(),
									&found, &again);

	queue->is_asked = true;
	queue->is_empty = found < max;
	queue->claimed += found;
	try->again = earlier(try->again, again);
	if (found > 0 && try->claims == NULL)
		try->claims = palloc(sizeof(TqClaim) * try->ask->max);
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
 * Claims from n queues that take turns.  What one of them does not give is
 * shared out among those that have more, until there are enough.
 */
static void
claim_in_turns(ClaimQueuesTry *try, TqSetQueue *queues, int n)
{
	int sharing = 0;

	for (int i = 0; i < n; i++)
		sharing += queues[i].may_claim ? 1 : 0;
	while (sharing > 0 && try->found < try->ask->max)
	{
		int total = try->ask->max - try->found + claimed_of(queues, n);
		int more = total % sharing;
		int full = 0;

		/*
		 * Ask each of n queues that may have more for as many runs as it lacks of
		 * an equal share; the first ones that have it get one more if the runs
		 * cannot be shared equally.
		 */
		for (int i = 0; i < n && try->found < try->ask->max; i++)
		{
			TqSetQueue *queue = &queues[(i + try->turn) % n];
			int wanted = total / sharing + (more > 0 ? 1 : 0) - queue->claimed;

			if (!queue->may_claim || queue->is_empty ||
				(wanted > 0 && claim_from(try, queue, wanted) < wanted))
				continue;
			full++;
			more -= more > 0 ? 1 : 0;
		}
		sharing = full;
	}
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

/* Returns the queue of that number, or NULL if it is not in the set any more. */
static TqSetQueue *
find_number(TqQueueSet *set, int32 number)
{
	for (int i = 0; i < set->n; i++)
	{
		if (set->queues[i].number == number)
			return &set->queues[i];
	}
	return NULL;
}

/*
 * Passes on the wake-up for which this try was made: all of it if the try has
 * not looked for the rows, or could not, as the worker came into quarantine
 * meanwhile; what it has not got, if it has got any.  Not that for a new name.
 */
static void
pass_on(ClaimQueuesTry *try)
{
	TqSetQueue *queue;
	TqWorkerSeat seat;
	int32 number;

	if (!tq_wait_is_for(&try->wait, &number) || number == 0)
		return;
	queue = find_number(try->set, number);
	if (try->found > 0)
		tq_wait_used(&try->wait, queue == NULL ? 0 : queue->claimed);
	else if (queue == NULL || !queue->is_asked ||
			 (tq_worker_seat_find(number, try->ask->worker_group,
								  try->ask->worker_id, &seat) &&
			  seat.quarantine_until > tq_clock_now()))
	{
		tq_wait_requeue_wakeup(&try->wait);
		try->passed_on = true;
	}
}

/* Tries once, with the queues of the set as it was read. */
static bool
claim_queues_claim(ClaimQueuesTry *try)
{
	TqQueueSet *set = try->set;
	int n;

	try->claims = NULL;
	try->found = 0;
	try->again = 0;
	try->is_barred = false;
	read_queues(try);
	for (int i = 0; i < set->n && try->found < try->ask->max; i += n)
	{
		n = try->takes_turns ? set->n : length_of_element(set, i);
		claim_in_turns(try, &set->queues[i], n);
	}
	pass_on(try);
	if (try->again != 0)
		tq_wait_recheck_in(&try->wait, tq_clock_ms_until(try->again));
	if (try->is_barred)
		tq_wait_recheck_in(&try->wait, BARRED_MS);
	return try->found > 0;
}

/* ---- waiting ---- */

/*
 * Tries once more, with the queues that there are now, in the memory of the
 * previous try.
 */
static bool
claim_queues_claim_again(ClaimQueuesTry *try, MemoryContext memory)
{
	MemoryContext outer = MemoryContextSwitchTo(memory);
	bool found;

	MemoryContextReset(memory);
	tq_queue_set_read(try->set);
	found = claim_queues_claim(try);
	MemoryContextSwitchTo(outer);
	return found;
}

/*
 * Enters the lists of the queues, then tries to claim.  If there are other
 * queues by then, or a wake-up was passed on, does both again.
 */
static bool
claim_queues_enter_and_claim(ClaimQueuesTry *try, MemoryContext memory)
{
	TqSetLists lists = tq_queue_set_lists(try->set);
	TqSetLists entered;

	do
	{
		int wants[TQ_WAIT_LISTS];

		entered = lists;
		for (int i = 0; i < entered.n; i++)
			wants[i] = entered.numbers[i] == 0
						   ? 1
						   : tq_limits_want(entered.numbers[i], try->ask->max);
		try->passed_on = false;
		tq_wait_enter(&try->wait, entered.numbers, wants, entered.n);
		if (claim_queues_claim_again(try, memory))
			return true;
		lists = tq_queue_set_lists(try->set);
	} while (try->passed_on || !tq_set_lists_are_equal(&lists, &entered));
	return false;
}

/* ---- the call ---- */

/* Returns where the queues of this call begin, each time at the next one. */
static uint32
claim_queues_next_turn(void)
{
	static bool has_begun = false;
	static uint32 turn;

	if (!has_begun)
		turn = pg_prng_uint32(&pg_global_prng_state) / 2;
	has_begun = true;
	return turn++;
}

/*
 * Claims runs of the queues of a set.  If there is none, waits until there is
 * one, for as long as the worker asks.
 */
TqClaim *
tq_claim_queues(TqQueueSet *set, bool takes_turns, const TqClaimAsk *ask,
				int *found)
{
	ClaimQueuesTry try = {.set = set,
						  .ask = ask,
						  .turn = claim_queues_next_turn(),
						  .takes_turns = takes_turns};
	TqSetLists lists;
	int order[TQ_QUEUE_SET_MAX];

	tq_wait_begin(&try.wait, ask->wait_ms);
	tq_queue_set_read(set);
	/* Take over the wake-up of an earlier wait_for_work(). */
	lists = tq_queue_set_lists(try.set);
	(void) tq_wait_take_over(&try.wait, lists.numbers, lists.n);
	if (!claim_queues_claim(&try))
	{
		(void) tq_wait_tried(&try.wait);
		if (ask->wait_ms > 0)
		{
			MemoryContext memory =
				AllocSetContextCreate(CurrentMemoryContext, "tq claim queues",
									  ALLOCSET_DEFAULT_SIZES);

			/* Sleep and try until there are runs or the time is over. */
			while (!claim_queues_enter_and_claim(&try, memory))
			{
				if (!tq_wait_tried(&try.wait) &&
					tq_wait_sleep(&try.wait, TQ_WAIT_CLAIM_WORK) ==
						TQ_WAKEUP_OVER)
					break;
			}
		}
	}
	tq_wait_end(&try.wait);
	/*
	 * Record the worker as active in the queues that are named and have given
	 * it nothing.  Inserts no new queue if others have.
	 */
	order_by_name(try.set, order);
	for (int i = 0; i < try.set->n; i++)
	{
		const TqSetQueue *queue = &try.set->queues[order[i]];

		if (queue->claimed == 0 && !queue->by_pattern &&
			(queue->number != 0 || try.found == 0))
			tq_claim_note_seen(queue->name, ask->worker_group, ask->worker_id,
							   tq_clock_now());
	}
	*found = try.found;
	return try.claims;
}
