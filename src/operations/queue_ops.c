/*
 * queue_ops.c
 *	  Requests of clients about a queue: change its settings, pause, resume
 *	  (doc/spec/policy.md 6).
 *
 * Two sessions that change the settings of one queue meet at its row: the
 * second waits for the first and adds to what that wrote.  The commit makes all
 * sessions read the settings again, and wakes the sessions that wait for work
 * of the queue.
 */
#include "postgres.h"

#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../lifecycle/lifecycle.h"
#include "../shmem/shmem.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "operations.h"

static void
refuse(const char *queue_name, const char *fault)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid settings of queue \"%s\"", queue_name),
					errdetail("They %s.", fault),
					errhint("Correct them; a key that is null is removed.")));
}

/* Checks the default policy as that of a task with its retries. */
static void
check_policy(const char *queue_name, const Jsonb *policy)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(policy, &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy,
								given.retries == TQ_OFF ? 0 : given.retries,
								tq_max_runs);
	if (fault != NULL)
		refuse(queue_name,
			   psprintf("must have a \"policy\" that is one, which %s",
						fault));
}

static void
check(const char *queue_name, const Jsonb *settings)
{
	TqGivenSettings given;
	const char *fault = tq_queue_settings_parse(settings, &given);

	if (fault != NULL)
		refuse(queue_name, fault);
	if (given.policy != NULL)
		check_policy(queue_name, given.policy);
}

/*
 * Changes settings of a queue, and returns all that it has then.  A key that is
 * null is removed.
 */
Jsonb *
tq_queue_set(const char *queue_name, Jsonb *changes)
{
	int32 queue;
	Jsonb *settings;

	check(queue_name, changes);
	queue = tq_queue_intern(queue_name);
	settings = tq_queue_settings_merge(queue, changes);
	check(queue_name, settings);
	tq_limits_begin(queue);
	tq_gates_settings_changed(queue, tq_clock_now());
	tq_request_cycle(tq_clock_now());
	if (JB_ROOT_COUNT(settings) == 0)
		tq_queue_settings_delete(queue);
	tq_wait_note_opened(queue);
	return settings;
}

/* Pauses a queue, or resumes it; returns its settings. */
Jsonb *
tq_queue_pause(const char *queue_name, bool pause)
{
	JsonbParseState *state = tq_json_begin();

	if (pause)
		tq_json_add_bool(&state, "paused", true);
	else
		tq_json_add_null(&state, "paused");
	return tq_queue_set(queue_name, tq_json_end(&state));
}

/* Returns the settings of a queue; those of an unknown one are empty. */
Jsonb *
tq_queue_get_settings(const char *queue_name)
{
	int32 queue = tq_queue_find(queue_name);
	Jsonb *settings = queue == 0 ? NULL : tq_queue_settings_read(queue);
	JsonbParseState *state;

	if (settings != NULL)
		return settings;
	state = tq_json_begin();
	return tq_json_end(&state);
}
