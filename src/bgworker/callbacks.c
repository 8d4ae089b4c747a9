/*
 * callbacks.c
 *	  The step of maintenance that creates tasks of resolved groups
 *	  (doc/spec/policy.md 14).
 *
 * The "tasks" of the step are callbacks.  A queue that is full refuses all that
 * are for it, and must not hold up the others.  So each of several is tried in
 * a subtransaction, and one that fails is postponed here, without a limit to how
 * many do.
 */
#include "postgres.h"

#include "../engine/engine.h"
#include "../util/util.h"
#include "bgworker.h"

typedef struct Try
{
	int64 id;
	TimestampTz now;
	bool is_created;
} Try;

static void
try_one(void *arg)
{
	Try *try = (Try *) arg;

	try->is_created = tq_group_callback_try(try->id, try->now);
}

/*
 * Creates the tasks of those callbacks whose groups are resolved; returns how
 * many.
 */
int64
tq_callbacks_run(const TqWork *work)
{
	int64 created = 0;

	if (work->n == 1)
		return tq_group_callback_try(work->tasks[0], work->now) ? 1 : 0;
	for (int i = 0; i < work->n; i++)
	{
		Try try = {.id = work->tasks[i], .now = work->now};
		ErrorData *error = tq_attempt(try_one, &try);

		if (error != NULL)
			tq_bisect_postpone(work, i, error);
		else
			created += try.is_created;
	}
	return created;
}
