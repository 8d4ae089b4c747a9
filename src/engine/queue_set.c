/*
 * queue_set.c
 *	  The queues from which one call claims, or for which it waits
 *	  (doc/spec/taskcluster.md 2.8, 5.3).
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
#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/qunique.h"

#include "../shmem/shmem.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "engine.h"

StaticAssertDecl(TQ_QUEUE_SET_MAX + 1 == TQ_WAIT_LISTS,
				 "a session waits in a list per queue, and in queue 0");

static bool
is_pattern(const char *element)
{
	return element[strlen(element) - 1] == '*';
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

static void
refuse_elements(void)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("task_queue_ids has too many elements"),
					errdetail("There are more than %d different ones.",
							  TQ_QUEUE_SET_MAX),
					errhint("Give at most %d task queues or patterns.",
							TQ_QUEUE_SET_MAX)));
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
			refuse_elements();
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

static void
refuse_pattern(const char *pattern)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("pattern \"%s\" stands for too many queues", pattern),
		 errdetail("With it, there are more than %d queues in one call.",
				   TQ_QUEUE_SET_MAX),
		 errhint(
			 "Name the queues, and share them out among calls of different workers.")));
}

/* Adds a queue, unless an earlier element stands for it. */
static void
add_queue(TqQueueSet *set, const char *name, int32 number, int element,
		  bool by_pattern)
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
		refuse_pattern(set->elements[element]);
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
		add_queue(set, queues[i].name, queues[i].id, element, true);
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
			add_queue(set, element, tq_queue_find(element), i, false);
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
void
tq_queue_set_by_name(TqQueueSet *set, int *order)
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
	tq_queue_set_by_name(set, order);
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
		*again = tq_earlier(*again, at);
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
