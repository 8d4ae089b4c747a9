/*
 * cron.c
 *	  Recurring tasks: definitions, and what a firing does
 *	  (doc/spec/policy.md 15).
 *
 * pg_cron keeps the time, and calls fire_cron() as the role that owns the
 * recurring task.  Why there is one task for each minute (or second, where the
 * schedule is in seconds):
 *	- A firing locks the row of the recurring task until its transaction ends, so
 *	  two firings decide one after the other.
 *	- The row says for which time it was last, and the task has an id that is made
 *	  of the id of the recurring task and that time.  Both are written by the
 *	  transaction that creates the task.  So a server to which a failover or a
 *	  restore has led has either both or none, and a task is found by its id even
 *	  if the row says otherwise.
 *
 * The row is locked before all else; see the order of locks in doc/internals.md.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "../core/state.h"
#include "../storage/registry.h"
#include "../storage/rows.h"
#include "../storage/tasks.h"
#include "../util/compat.h"
#include "../util/util.h"
#include "engine.h"

/* A job of pg_cron has this in front of the name, and room for 63 bytes. */
#define JOB_PREFIX "tq:"
#define NAME_BYTES 60

/* ---- definitions ---- */

static void
check_name(const char *name)
{
	size_t length = strlen(name);

	if (length >= 1 && length <= NAME_BYTES && tq_is_printable(name))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid name \"%s\"", tq_error_clip(name)),
			 errdetail("It has %zu bytes, or a character that is not allowed.",
					   length),
			 errhint("Give 1 to %d printable ASCII characters.", NAME_BYTES)));
}

static void
check_overlap(const char *overlap)
{
	if (strcmp(overlap, "allow") == 0 || strcmp(overlap, "skip") == 0 ||
		strcmp(overlap, "replace") == 0)
		return;
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid overlap \"%s\"", tq_error_clip(overlap)),
					errdetail("It says what a firing does while the last task "
							  "is unresolved."),
					errhint("Give allow, skip or replace.")));
}

/*
 * Raises TQ403 unless the caller may have a recurring task of that name, or any
 * of that queue.
 */
static void
require_right(const TqCron *cron)
{
	tq_access_require(
		tq_need_any(2, tq_need("queue:schedule-cron:%s", cron->name),
					tq_need("queue:schedule-cron-in-queue:%s",
							cron->task_queue_id)));
}

/* Checks a definition, and that the caller may have it. */
void
tq_cron_check(const TqCron *cron)
{
	check_name(cron->name);
	check_overlap(cron->overlap);
	require_right(cron);
}

pg_noreturn static void
refuse_missing(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("recurring task \"%s\" does not exist",
					tq_error_clip(name)),
			 errdetail("It was never scheduled, or it was unscheduled."),
			 errhint("Call tq.schedule_cron() first.")));
}

/* Raises TQ403 unless the caller owns the recurring task or may do all. */
static void
require_owner(const TqCron *cron)
{
	if (tq_access_is_unlimited() ||
		has_privs_of_role(tq_spi_caller(), cron->role))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_FORBIDDEN),
			 errmsg("recurring task \"%s\" has another owner", cron->name),
			 errdetail("Its owner is role \"%s\".", tq_error_role(cron->role)),
			 errhint("Call as that role, or as a member of tq_admin.")));
}

/* Raises TQ409 if the role that owns a recurring task was dropped. */
static void
require_role(const TqCron *cron)
{
	if (GetUserNameFromId(cron->role, true) != NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("the owner of recurring task \"%s\" was dropped",
					cron->name),
			 errdetail("Its tasks were created with the rights of that role."),
			 errhint("Call tq.unschedule_cron() as a member of tq_admin, and "
					 "tq.schedule_cron() as another role.")));
}

/*
 * Locks the recurring task of that name, which the caller must own.  A caller
 * without the right waits for no lock.
 */
static void
get_own(const char *name, TqCron *cron)
{
	TqCron missing = {.name = unconstify(char *, name),
					  .task_queue_id = pstrdup("")};

	if (!tq_cron_find(name, cron))
	{
		require_right(&missing);
		refuse_missing(name);
	}
	require_right(cron);
	require_owner(cron);
	if (!tq_cron_lock(name, cron))
		refuse_missing(name);
	require_owner(cron);
}

/* ---- jobs of pg_cron ---- */

static char *
job_name(const TqCron *cron)
{
	return psprintf(JOB_PREFIX "%s", cron->name);
}

/* Makes the job, or says how to make it. */
static TqCronJob
make_job(const TqCron *cron)
{
	TqJob job = {.name = job_name(cron),
				 .schedule = cron->schedule,
				 .command = psprintf("SELECT tq.fire_cron(%s)",
									 quote_literal_cstr(cron->name)),
				 .role = tq_error_role(cron->role),
				 .is_active = true};
	TqCronJob made = {.is_active = true};

	tq_pg_cron_require();
	if (tq_pg_cron_is_here())
		made.id = tq_pg_cron_schedule(&job);
	else
	{
		made.command = tq_pg_cron_schedule_command(&job);
		tq_pg_cron_note_elsewhere(made.command);
	}
	return made;
}

/*
 * Writes a definition that was checked, and makes its job.  It replaces the one
 * of that name, unless that has another owner, which is TQ409.
 */
TqCronJob
tq_cron_schedule(const TqCron *cron)
{
	TqCron present = {.role = InvalidOid};

	if (!tq_cron_put(cron))
	{
		(void) tq_cron_find(cron->name, &present);
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("recurring task \"%s\" has another owner", cron->name),
				 errdetail("Its owner is role \"%s\".",
						   tq_error_role(present.role)),
				 errhint("Choose another name, or have it unscheduled "
						 "by tq.unschedule_cron().")));
	}
	return make_job(cron);
}

/* Deletes a recurring task, its job included; its tasks stay. */
TqCronJob
tq_cron_unschedule(const char *name, TqCron *cron)
{
	TqCronJob job = {0};
	const char *role;

	get_own(name, cron);
	tq_cron_delete(name);
	role = GetUserNameFromId(cron->role, true); /* NULL: it was dropped */
	if (tq_pg_cron_is_here())
		tq_pg_cron_unschedule(job_name(cron), role);
	else if (tq_pg_cron_is_elsewhere())
	{
		job.command = tq_pg_cron_unschedule_command(job_name(cron), role);
		tq_pg_cron_note_elsewhere(job.command);
	}
	return job;
}

/*
 * Pauses a recurring task.  Its firings do nothing then, so that a job in
 * another database need not change.
 */
static TqCronJob
pause_job(const TqCron *cron)
{
	if (tq_pg_cron_is_here())
		(void) tq_pg_cron_set_active(job_name(cron), tq_error_role(cron->role),
									 false);
	return (TqCronJob){0};
}

/* Pauses a recurring task, or resumes it, which makes its job again. */
TqCronJob
tq_cron_pause(const char *name, bool pause, TqCron *cron)
{
	get_own(name, cron);
	if (!pause)
		require_role(cron);
	tq_cron_set_paused(name, pause);
	return pause ? pause_job(cron) : make_job(cron);
}

/* ---- firings ---- */

/* Returns whether the schedule is an interval, such as "30 seconds". */
static bool
is_in_seconds(const char *schedule)
{
	const char *unit = strpbrk(schedule, "sS");

	return unit != NULL && pg_strncasecmp(unit, "second", 6) == 0;
}

/* Returns the minute of a time, or the second if the schedule is in seconds. */
static TimestampTz
slot_of(const TqCron *cron, TimestampTz t)
{
	int64 unit = is_in_seconds(cron->schedule) ? USECS_PER_SEC
											   : USECS_PER_MINUTE;
	int64 rest = t % unit;

	return t - (rest < 0 ? rest + unit : rest);
}

/* Puts the id of a task into the bucket of its group. */
static void
choose_bucket(const TqCron *cron, TqSlug *task_id)
{
	const char *given = tq_json_get_text(cron->options, "task_group_id");
	TqSlug group;

	if (given != NULL && tq_slug_parse(given, strlen(given), &group))
		tq_bucket_choose(task_id, &group);
	else
		tq_bucket_choose(task_id, NULL);
}

/*
 * Makes the id of the task of a recurring task for that time.  When the buckets
 * of the shard change, it may be another one.
 */
static void
make_task_id(const TqCron *cron, TimestampTz scheduled, TqSlug *task_id)
{
	tq_slug_of_name(psprintf("tq.cron %s %s", tq_slug_text(&cron->id),
							 tq_clock_text(scheduled)),
					task_id);
	choose_bucket(cron, task_id);
}

/* Returns the payload of a task, with the values of its fields. */
static Jsonb *
fill_payload(const TqCron *cron, TimestampTz scheduled, TimestampTz now)
{
	TimestampTz previous = cron->last_scheduled == 0 ? cron->created
													 : cron->last_scheduled;
	TqCronFields fields = {.name = cron->name,
						   .scheduled = scheduled,
						   .previous = Min(previous, scheduled),
						   .fired = now};

	return tq_cron_payload(cron->payload, &fields);
}

/* Returns the payload of a task that would be created now. */
Jsonb *
tq_cron_first_payload(const TqCron *cron)
{
	return fill_payload(cron, cron->created, cron->created);
}

/* Raises TQ400 for a time that is not yet there. */
static void
check_past(TimestampTz scheduled, TimestampTz now)
{
	if (scheduled > now || TIMESTAMP_NOT_FINITE(scheduled))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("scheduled must be a time in the past"),
				 errdetail("It is %s, and now it is %s.",
						   tq_clock_text(scheduled), tq_clock_text(now)),
				 errhint("Leave it out for the present time.")));
}

/* Returns the last task, if it exists and is before its deadline; or NULL. */
static TqNamedTask *
last_task(const TqCron *cron, TimestampTz now)
{
	TqNamedTask *named = cron->has_task ? tq_task_by_slug(&cron->last_task)
										: NULL;

	return named == NULL || named->task.deadline < now ? NULL : named;
}

/* Cancels the last task if it is unresolved. */
static void
cancel_last(const TqCron *cron, TimestampTz now)
{
	TqNamedTask *named = last_task(cron, now);
	TqRun run;

	if (named != NULL && tq_run_lock(named->task.id, TQ_LOCK_UPDATE, &run) &&
		!tq_state_is_resolved(run.state))
		tq_task_cancel(&named->task, now);
}

/* Returns whether the last task is unresolved. */
static bool
is_busy(const TqCron *cron, TimestampTz now)
{
	TqNamedTask *named = last_task(cron, now);
	TqRun run;

	return named != NULL && tq_run_peek(named->task.id, &run) &&
		   !tq_state_is_resolved(run.state);
}

/* Does what the recurring task says about a last task that is unresolved. */
static TqCronVerdict
meet_last(const TqCron *cron, TimestampTz now)
{
	if (strcmp(cron->overlap, "skip") == 0 && is_busy(cron, now))
		return TQ_CRON_SKIPPED;
	if (strcmp(cron->overlap, "replace") == 0)
		cancel_last(cron, now);
	return TQ_CRON_CREATE;
}

/* Decides what a firing for a scheduled time is to do. */
static TqCronVerdict
decide_scheduled(TqCronFiring *firing)
{
	const TqCron *cron = &firing->cron;

	if (firing->cause == TQ_CRON_CLOCK && cron->is_paused)
		return TQ_CRON_PAUSED;
	make_task_id(cron, firing->scheduled, &firing->task_id);
	firing->has_task = tq_task_by_slug(&firing->task_id) != NULL;
	if (firing->has_task || firing->scheduled == cron->last_scheduled)
		return TQ_CRON_REPEATED;
	return meet_last(cron, firing->now);
}

/* Writes what a firing has left. */
static void
write_firing(TqCronFiring *firing)
{
	TqCron *cron = &firing->cron;

	if (firing->cause != TQ_CRON_BY_HAND)
		cron->last_scheduled = Max(cron->last_scheduled, firing->scheduled);
	tq_cron_set_fired(cron);
}

/*
 * Begins a firing of the recurring task of that name, which the caller must
 * own, and returns what it is to do.  If that is to create a task, the caller
 * does so, with the rights of the owner, and ends the firing.
 */
TqCronFiring
tq_cron_begin_firing(const char *name, TqCronCause cause,
					 TimestampTz scheduled, TimestampTz now)
{
	TqCronFiring firing = {.cause = cause, .scheduled = scheduled, .now = now};

	if (cause == TQ_CRON_BACKFILL)
		check_past(scheduled, now);
	get_own(name, &firing.cron);
	require_role(&firing.cron);
	if (cause == TQ_CRON_BY_HAND)
	{
		tq_slug_random(&firing.task_id);
		choose_bucket(&firing.cron, &firing.task_id);
		firing.verdict = meet_last(&firing.cron, now);
	}
	else
	{
		firing.scheduled = slot_of(&firing.cron, scheduled);
		firing.verdict = decide_scheduled(&firing);
	}
	if (firing.verdict == TQ_CRON_CREATE)
		firing.payload = fill_payload(&firing.cron, firing.scheduled, now);
	else if (firing.verdict == TQ_CRON_SKIPPED)
	{
		firing.cron.last_skipped = now;
		write_firing(&firing);
	}
	return firing;
}

/*
 * Ends a firing whose enqueue() has returned that task.  Another one than was to
 * be created has the unique key, and may be of any role: the last task, which the
 * next firing may cancel without a scope, is never such a task.
 */
void
tq_cron_end_firing(TqCronFiring *firing, const TqSlug *task_id)
{
	TqCron *cron = &firing->cron;

	if (tq_slug_compare(task_id, &firing->task_id) == 0)
	{
		cron->last_fired = firing->now;
		cron->has_task = true;
		cron->last_task = *task_id;
	}
	firing->has_task = true;
	firing->task_id = *task_id;
	write_firing(firing);
}
