/*
 * transition.c
 *	  The transitions of runs: what they write, and what follows from them
 *	  (doc/spec/taskcluster.md 2.3 to 2.6, 2.11, 2.12, 3.2; doc/spec/policy.md
 *	  4, 5).
 *
 * Every end of a run and every run that becomes pending comes through here:
 * reports of workers, expired claims, timeouts, cancel, skip, deadlines; new
 * tasks, schedule, rerun, deferred runs, released dependents.  Only claims are
 * apart (claim.c).  A call makes its transitions in five steps:
 *	1 lock		the rows with the locations of the tasks, in the order that
 *				task_location.c gives.  Clients wait; maintenance skips what
 *				another session has locked, and inserts its timer again.  A
 *				report writes the row of the run that it ends, and that write
 *				waits for other transitions of the task as a lock would.
 *	2 decide	by state.c whether the event applies, and by policy.c whether
 *				another run follows.
 *	3 write		the ends, in one pass over each table.
 *	4 follow	released dependents; then next runs, in one pass; dead letters.
 *				Groups and dependents that a policy cancels go to the work list,
 *				and the steps are repeated for them until the list is empty.
 *	5 append	the messages of all to the outbox.
 *
 * The input of a round is the result of step 1 (TqLockedTasks) and one event,
 * because each caller has only one event.
 *
 * A run that ends and is retried gets its successor in the same transaction,
 * so at every commit a task has exactly one location.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "lib/qunique.h"
#include "utils/snapmgr.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

/* ---- decide ---- */

/*
 * Keeps the locked tasks to which an event applies and whose deadline is after
 * that time.
 */
static void
keep_applicable(TqLockedTasks *locked, TqEvent event, TimestampTz after)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->tasks[i].deadline > after &&
			tq_state_verdict(locked->runs[i].state, event) == TQ_VERDICT_APPLY)
			tq_locked_tasks_keep(locked, i);
	}
}

/* Sets the state, reason and time of the end of a run. */
void
tq_transition_end_run(TqRun *run, TqResolved reason, TimestampTz now)
{
	run->state = tq_resolved_state(reason);
	run->reason = reason;
	run->resolved = now;
}

/*
 * Finds what follows a run that ends for this reason, by the policy of its
 * task.
 */
static void
find_next(const TqRun *run, const TqRunDetail *detail, const TqTask *task,
		  TqResolved reason, TimestampTz now, TqNext *next)
{
	TqPolicy policy = *tq_policy_get(task->policy);
	TqRunDetail filled;

	if (detail == NULL)
	{
		tq_run_fill(run, &policy, &filled);
		detail = &filled;
	}
	if (detail->retry_delay != TQ_OFF)
	{
		TqPolicy delayed = policy;

		/*
		 * The policy with the retry delay that a worker gave in place of its
		 * backoff.
		 */
		delayed.backoff = TQ_BACKOFF_FIXED;
		delayed.retry_delay = detail->retry_delay;
		delayed.max_delay = delayed.jitter = 0;
		policy = delayed;
	}
	tq_policy_follow(&policy, &detail->budget, reason, now, task->deadline,
					 tq_max_runs,
					 policy.jitter > 0 ? pg_prng_double(&pg_global_prng_state)
									   : 0,
					 next);
}

/* ---- runs that become pending ---- */

/*
 * Adds a run that becomes pending with these budgets, and its message and that
 * of the run that it replaces, if any.
 */
static TqStart *
add_start(TqTransitions *transitions, TqTask *task, const TqRun *replaced,
		  TqCreated created, const TqBudget *budget)
{
	TqStart *start = transitions->starts;
	TqRun run = {.run_id = budget->run_id,
				 .state = TQ_STATE_PENDING,
				 .created = created};

	if (transitions->nstarts == transitions->room)
	{
		Size size;

		transitions->room = Max(transitions->n, 2 * transitions->room + 1);
		size = sizeof(TqStart) * transitions->room;
		transitions->starts = start == NULL ? palloc(size)
											: repalloc_huge(start, size);
	}
	start = &transitions->starts[transitions->nstarts++];
	*start = (TqStart){.task = task,
					   .created = created,
					   .scheduled = transitions->now,
					   .detail = {.task = task->id,
								  .budget = *budget,
								  .retry_delay = TQ_OFF}};
	tq_transition_announce(transitions, task,
						   replaced == NULL ? &run : replaced, &run);
	return start;
}

/*
 * Adds the first run of a task.  A run that is pending from the task's
 * creation has the task's id as its sequence number in the queue.
 */
void
tq_transition_start_first(TqTransitions *transitions, TqTask *task,
						  bool at_creation)
{
	TqBudget budget = {.run_id = 0};
	TqStart *first;

	tq_policy_first(tq_policy_get(task->policy), task->retries,
					tq_policy_visible(task->created, task->delay,
									  transitions->now),
					&budget);
	first = add_start(transitions, task, NULL, TQ_CREATED_SCHEDULED, &budget);
	first->seq = at_creation ? task->id : 0;
	first->is_first = true;
}

/*
 * Returns whether a task that has had so many runs has never been pending: all
 * of them were resolved at their creation.
 */
bool
tq_transition_never_pending(int64 task, int runs)
{
	for (int run_id = runs - 1; run_id >= 0; run_id--)
	{
		TqRun run;

		if (!tq_run_find(task, run_id, &run) ||
			(run.created != TQ_CREATED_SKIP &&
			 run.created != TQ_CREATED_EXCEPTION))
			return false;
	}
	return true;
}

/*
 * Adds a run of a task that had been resolved, was unscheduled again by a
 * repair, and can go on now.
 */
static void
start_again(TqTransitions *transitions, TqTask *task, int run_id)
{
	TqBudget budget = {.run_id = run_id};
	TqStart *start;

	tq_policy_first(tq_policy_get(task->policy),
					tq_rerun_retries(task->retries, tq_max_runs, run_id),
					tq_policy_after(transitions->now, task->delay), &budget);
	start = add_start(transitions, task, NULL, TQ_CREATED_REPAIR, &budget);
	start->is_first = tq_transition_never_pending(task->id, run_id);
}

/*
 * Adds one more run, with no delay, and with fresh retry budgets as far as
 * tq.max_runs allows (doc/spec/taskcluster.md 2.4).
 *
 * Inserts another deadline timer.  If the deadline comes between the check and
 * the commit of this call, the maintenance worker may already have taken the
 * first timer, and dropped it because the task was resolved.
 */
static void
rerun(TqTransitions *transitions, TqTask *task, const TqRun *last,
	  TqCreated created)
{
	TqBudget budget = {.run_id = last->run_id + 1};
	TqStart *start;

	if (last->state != TQ_STATE_COMPLETED)
		tq_failures_delete(&task->id, 1);
	tq_count_rerun(task, last);
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(task->deadline, tq_deadline_delay),
					&task->id, 1);
	tq_policy_first(tq_policy_get(task->policy),
					tq_rerun_retries(task->retries, tq_max_runs,
									 budget.run_id),
					transitions->now, &budget);
	start = add_start(transitions, task, NULL, created, &budget);
	start->is_first = tq_transition_never_pending(task->id, budget.run_id);
}

/*
 * Adds a rerun of a locked task, which makes its group active again if so
 * requested; returns false if the task has a run already.  If that is pending,
 * its message is appended again.
 */
bool
tq_transition_repair(TqTransitions *transitions, TqTask *task,
					 const TqRun *last, bool activates)
{
	if (tq_state_verdict(last->state, TQ_EVENT_RERUN) != TQ_VERDICT_APPLY)
	{
		if (last->state == TQ_STATE_PENDING)
			tq_transition_announce(transitions, task, last, last);
		return false;
	}
	if (last->location == TQ_LOCATION_UNSCHEDULED)
	{
		tq_unscheduled_delete(&task->id, 1);
		tq_count_scheduled(task);
	}
	activates = activates ||
				(last->state == TQ_STATE_UNSCHEDULED && last->run_id >= 0);
	rerun(transitions, task, last,
		  activates ? TQ_CREATED_REPAIR : TQ_CREATED_RERUN);
	return true;
}

/* ---- runs that end ---- */

/*
 * Adds the messages of a run that has ended or become pending; `last` is the
 * run that follows it, or the run itself.  The task of a completed run is NULL
 * if it was not read, because its message is not wanted.  When a run is
 * retried, only the new run is published, and only if it is pending, unless
 * tq.publish_retried_exceptions is on (doc/spec/taskcluster.md D-05).
 */
void
tq_transition_announce(TqTransitions *transitions, const TqTask *task,
					   const TqRun *run, const TqRun *last)
{
	bool is_retried = last->run_id > run->run_id &&
					  tq_created_is_retry(last->created);

	if (task == NULL)
		tq_outbox_add_note(&transitions->outbox, run);
	else if (!is_retried || tq_publish_retried_exceptions)
		tq_outbox_add_run(&transitions->outbox, task, run, last);
	if (is_retried && last->state == TQ_STATE_PENDING)
		tq_outbox_add_run(&transitions->outbox, task, last, last);
}

/*
 * Adds what follows the end of a run: another run, or else what its task's end
 * causes; and the messages.  `detail` is NULL if the run has none, and `task`
 * as for tq_transition_announce().  Returns true if the run is retried.
 */
bool
tq_transition_follow(TqTransitions *transitions, const TqRun *run,
					 const TqRunDetail *detail, TqTask *task)
{
	TqNext next = {.follow = TQ_FOLLOW_NONE};
	TqStart *retry;

	if (tq_resolved_retry(run->reason) != TQ_CREATED_NONE)
		find_next(run, detail, task, run->reason, transitions->now, &next);
	if (next.follow == TQ_FOLLOW_NONE)
	{
		if (transitions->finals == NULL)
			transitions->finals = palloc(sizeof(TqFinal) * transitions->n);
		transitions->finals[transitions->nfinals++] = (TqFinal){run, task};
		tq_transition_announce(transitions, task, run, run);
		return false;
	}
	tq_wait_note_resolved(task->id);
	retry = add_start(transitions, task, run, next.created, &next.budget);
	if (detail != NULL)
		retry->detail.retry_delay = detail->retry_delay;
	return true;
}

/* ---- write ---- */

/*
 * Writes these ended runs, in one pass over each table: moves them from the
 * tables that they leave to run, or updates them there.
 */
static void
write_ends(const TqRun *runs, int n)
{
	int64 *left[TQ_LOCATION_RUN + 1]; /* by the location that is left */
	int nleft[TQ_LOCATION_RUN + 1] = {0};
	TqRun *moved = palloc(sizeof(TqRun) * n);
	TqRun *updated = palloc(sizeof(TqRun) * n);
	int nmoved = 0;

	for (int location = 0; location <= TQ_LOCATION_RUN; location++)
		left[location] = palloc(sizeof(int64) * n);
	for (int i = 0; i < n; i++)
	{
		TqTaskLocation from = runs[i].location;

		if (from == TQ_LOCATION_RUN)
			updated[nleft[from]] = runs[i];
		else
			moved[nmoved++] = runs[i];
		left[from][nleft[from]++] = runs[i].task;
	}
	tq_unscheduled_delete(left[TQ_LOCATION_UNSCHEDULED],
						  nleft[TQ_LOCATION_UNSCHEDULED]);
	tq_pending_delete(left[TQ_LOCATION_PENDING], nleft[TQ_LOCATION_PENDING]);
	tq_delayed_delete(left[TQ_LOCATION_DELAYED], nleft[TQ_LOCATION_DELAYED]);
	tq_runs_insert(moved, nmoved);
	tq_runs_update(updated, nleft[TQ_LOCATION_RUN]);
}

/* ---- follow ---- */

/*
 * Returns the slug of the group of a task that was loaded without its
 * group_slug.
 */
static TqSlug
slug_of_group(const TqTask *task)
{
	Snapshot snapshot;
	TqSlug slug;

	if (task->group_id == 0)
		return task->task_id;
	snapshot = RegisterSnapshot(tq_spi_snapshot());
	slug = tq_group_slug(task->group_id, snapshot);
	UnregisterSnapshot(snapshot);
	return slug;
}

/* Adds the dependents of a task to the work list. */
static void
add_culprit(TqTransitions *transitions, int64 task)
{
	Size size = sizeof(int64) * (transitions->nculprits + 1);

	transitions->culprits = transitions->culprits == NULL
								? palloc(size)
								: repalloc_huge(transitions->culprits, size);
	transitions->culprits[transitions->nculprits++] = task;
}

/* Records the tasks that ended without success. */
static void
write_failures(TqTransitions *transitions)
{
	TqFailure *failures = palloc(sizeof(TqFailure) * transitions->nfinals);
	int n = 0;

	for (int i = 0; i < transitions->nfinals; i++)
	{
		const TqRun *run = transitions->finals[i].run;
		const TqTask *task = transitions->finals[i].task;

		if (run->state == TQ_STATE_COMPLETED)
			continue;
		failures[n++] = (TqFailure){.task = run->task,
									.queue = task->queue,
									.resolved = run->resolved,
									.state = run->state,
									.run_id = run->run_id};
	}
	tq_failures_insert(failures, n);
}

/* Orders groups to cancel. */
static int
compare_cancels(const void *a, const void *b)
{
	const TqGroupCancel *x = a;
	const TqGroupCancel *y = b;
	int by_slug = tq_slug_compare(&x->slug, &y->slug);

	return by_slug != 0
			   ? by_slug
			   : (x->creator > y->creator) - (x->creator < y->creator);
}

/* Adds the group of a task to the work list. */
static void
add_group(TqTransitions *transitions, const TqTask *task)
{
	Size size = sizeof(TqGroupCancel) * (transitions->ngroups + 1);

	transitions->groups = transitions->groups == NULL
							  ? palloc(size)
							  : repalloc(transitions->groups, size);
	transitions->groups[transitions->ngroups++] =
		(TqGroupCancel){.slug = slug_of_group(task),
						.creator = tq_policy_creator(task->policy)};
}

/*
 * Writes the dead letters of tasks that ended without success, and adds their
 * dependents, or their groups, each once, to the work list where their policies
 * say so.
 */
static void
follow_failures(TqTransitions *transitions)
{
	int64 *dead = NULL;
	int ndead = 0;
	int done = transitions->ngroups;

	for (int i = 0; i < transitions->nfinals; i++)
	{
		const TqTask *task = transitions->finals[i].task;
		TqResolved reason = transitions->finals[i].run->reason;
		const TqPolicy *policy;

		if (task == NULL || task->policy == 0 || !tq_policy_applies(reason))
			continue;
		policy = tq_policy_get(task->policy);
		if (dead == NULL)
			dead = palloc(sizeof(int64) * transitions->nfinals);
		if (policy->dead_letter && reason != TQ_RESOLVED_CANCELED_BY_WORKER)
			dead[ndead++] = task->id;
		if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_GROUP)
			add_group(transitions, task);
		if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS)
			add_culprit(transitions, task->id);
	}
	tq_dead_letters_write(dead, ndead, transitions->now);
	if (transitions->ngroups == done)
		return;
	qsort(transitions->groups + done, transitions->ngroups - done,
		  sizeof(TqGroupCancel), compare_cancels);
	transitions->ngroups = done + (int) qunique(transitions->groups + done,
												transitions->ngroups - done,
												sizeof(TqGroupCancel),
												compare_cancels);
}

/* Drops the payloads of completed tasks whose policies say so. */
static void
drop_payloads(TqTransitions *transitions)
{
	int64 *ids = NULL;
	int n = 0;

	for (int i = 0; i < transitions->nfinals; i++)
	{
		const TqTask *task = transitions->finals[i].task;

		if (task == NULL || task->policy == 0 ||
			transitions->finals[i].run->state != TQ_STATE_COMPLETED ||
			!tq_policy_get(task->policy)->drop_payload)
			continue;
		if (ids == NULL)
			ids = palloc(sizeof(int64) * transitions->nfinals);
		ids[n++] = task->id;
	}
	tq_tasks_drop_payload(ids, n);
}

/* Lets tasks go on that wait for those that have ended, by a key. */
static void
leave_gates(TqTransitions *transitions)
{
	int64 *ids = NULL;
	int n = 0;

	for (int i = 0; i < transitions->nfinals; i++)
	{
		const TqTask *task = transitions->finals[i].task;

		if (task == NULL || !tq_gate_may_have(task))
			continue;
		if (ids == NULL)
			ids = palloc(sizeof(int64) * transitions->nfinals);
		ids[n++] = task->id;
	}
	tq_gates_leave(ids, n, transitions->now);
}

static bool
transition_is_unsuccessful(const TqFinal *final)
{
	return final->run->state != TQ_STATE_COMPLETED;
}

static bool
has_policy(const TqFinal *final)
{
	return final->task != NULL && final->task->policy != 0;
}

/*
 * What follows the ends of a round, in this order.  A follower is entered only
 * if one of the ends concerns it: most tasks have no policy, and are completed.
 */
static const struct
{
	bool (*concerns)(const TqFinal *final);
	void (*follow)(TqTransitions *transitions);
} followers[] = {{transition_is_unsuccessful, write_failures},
				 {has_policy, follow_failures},
				 {has_policy, drop_payloads},
				 {has_policy, leave_gates}};

/* Calls the followers. */
static void
follow_ends(TqTransitions *transitions)
{
	for (int i = 0; i < lengthof(followers); i++)
	{
		int n = 0;

		while (n < transitions->nfinals &&
			   !followers[i].concerns(&transitions->finals[n]))
			n++;
		if (n < transitions->nfinals)
			followers[i].follow(transitions);
	}
}

/* Starts tasks that have been released, with the runs that they get. */
static void
start_released(TqTransitions *transitions, TqTask *released,
			   const int *next_runs, int n)
{
	Assert(tq_state_verdict(TQ_STATE_UNSCHEDULED, TQ_EVENT_DEPENDENCIES_MET) ==
		   TQ_VERDICT_APPLY);
	for (int i = 0; i < n; i++)
	{
		if (next_runs[i] == 0)
			tq_transition_start_first(transitions, &released[i], false);
		else
			start_again(transitions, &released[i], next_runs[i]);
	}
}

/*
 * Releases the dependents of the tasks that have ended, which leave
 * unscheduled, and starts them.  Returns them.
 */
static TqTask *
release_dependents(TqTransitions *transitions, int *n)
{
	int *next_runs = NULL;
	TqTask *released = tq_dependency_release(transitions->finals,
											 transitions->nfinals,
											 transitions->now, &next_runs, n);

	for (int i = 0; i < transitions->nfinals; i++)
		tq_wait_note_resolved(transitions->finals[i].run->task);
	start_released(transitions, released, next_runs, *n);
	return released;
}

/*
 * Writes what follows a round: releases dependents, makes runs pending, and
 * what concerns the ends.  Dependents are released before groups are canceled:
 * the release waits for locks of rows in unscheduled, and takes them in their
 * order, while the cancellation skips locked rows and never waits.
 */
static void
end_round(TqTransitions *transitions)
{
	int n = 0;
	TqTask *released = NULL;

	if (transitions->nfinals > 0)
		released = release_dependents(transitions, &n);
	if (transitions->nstarts > 0)
		tq_pending_runs_add(transitions->starts, transitions->nstarts,
							transitions->now);
	for (int i = 0; i < n; i++)
		tq_count_scheduled(&released[i]); /* in the queue that it has now */
	if (transitions->nfinals > 0)
		follow_ends(transitions);
}

/* ---- rounds ---- */

/*
 * Leaves out the tasks that would be finally resolved while another session
 * has one of their dependents locked.
 */
static void
drop_blocked(TqLockedTasks *locked, TqResolved reason, TimestampTz now)
{
	bool *is_final;

	if (tq_resolved_retry(reason) == TQ_CREATED_NONE)
	{
		tq_dependency_drop_blocked(locked, NULL);
		return;
	}
	is_final = palloc(sizeof(bool) * Max(locked->n, 1));
	tq_locked_tasks_read_details(locked);
	for (int i = 0; i < locked->n; i++)
	{
		TqNext next;

		find_next(&locked->runs[i], locked->details[i], &locked->tasks[i],
				  reason, now, &next);
		is_final[i] = next.follow == TQ_FOLLOW_NONE;
	}
	tq_dependency_drop_blocked(locked, is_final);
}

/*
 * Adds the notes for the workers of running runs that are about to end, which
 * no worker has asked for: a report does not come through here.
 */
static void
note_taken(TqTransitions *transitions, const TqLockedTasks *locked,
		   TqResolved reason)
{
	bool is_listened = false;

	for (int i = 0; i < locked->n; i++)
	{
		if (locked->runs[i].state != TQ_STATE_RUNNING)
			continue;
		is_listened = is_listened || tq_worker_channel_is_listened();
		if (!is_listened)
			return;
		tq_worker_channel_add(&transitions->outbox, &locked->tasks[i].task_id,
							  &locked->runs[i], tq_resolved_name(reason));
	}
}

/*
 * Makes one round: ends those of these locked tasks, in any location, to which
 * the event applies.  Unless `again` is TQ_TIMER_NONE, it waits for no lock:
 * tasks that are locked by another session, or have a dependent that is, get a
 * timer of that kind, and the maintenance worker tries them again.  Tasks that
 * are past their deadline are left to the deadline step then.
 */
static void
make_round(TqTransitions *transitions, TqLockedTasks *locked, TqEvent event,
		   TqTimer again)
{
	TqResolved reason = tq_event_resolved(event);
	TimestampTz now = transitions->now;
	bool waits = again == TQ_TIMER_NONE;

	keep_applicable(locked, event,
					waits || event == TQ_EVENT_DEADLINE ? DT_NOBEGIN : now);
	if (!waits)
	{
		drop_blocked(locked, reason, now);
		tq_timer_insert(again, tq_clock_add_ms(now, TQ_AGAIN_MS),
						locked->others, locked->nothers);
	}
	transitions->n = locked->n;
	note_taken(transitions, locked, reason);
	tq_locked_tasks_read_details(locked);
	for (int i = 0; i < locked->n; i++)
	{
		TqRun *run = &locked->runs[i];
		bool is_retried;

		if (waits)
			tq_show_done("ended", i, locked->n);
		if (run->location == TQ_LOCATION_UNSCHEDULED)
		{
			/*
			 * Give an unscheduled task a run that is resolved at its creation
			 * (doc/spec/taskcluster.md 3.3).
			 */
			run->run_id++;
			run->created = reason == TQ_RESOLVED_SKIPPED
							   ? TQ_CREATED_SKIP
							   : TQ_CREATED_EXCEPTION;
			run->retries_left =
				run->run_id == 0 ? locked->tasks[i].retries
								 : tq_rerun_retries(locked->tasks[i].retries,
													tq_max_runs, run->run_id);
			run->scheduled = now;
		}
		tq_transition_end_run(run, reason, now);
		is_retried = tq_transition_follow(transitions, run, locked->details[i],
										  &locked->tasks[i]);
		tq_count_end(tq_count_owner(&locked->tasks[i]), run,
					 locked->tasks[i].policy, is_retried);
		if (tq_log_failures >= 0)
			tq_run_log_failed(locked->tasks[i].queue,
							  &locked->tasks[i].task_id, run, is_retried,
							  NULL);
	}
	if (locked->n > 0)
		write_ends(locked->runs, locked->n);
}

/* Forgets what the last round ended. */
static void
begin_round(TqTransitions *transitions)
{
	transitions->finals = NULL;
	transitions->starts = NULL;
	transitions->nfinals = transitions->nstarts = transitions->room = 0;
}

/*
 * Makes the round that cancels these tasks.  Because it waits for no lock, there
 * is no order of locks to keep, and no deadlock, however many tasks there are
 * and however many sessions report on them.
 */
static void
cancel_tasks(TqTransitions *transitions, const int64 *ids, int n)
{
	TqLockedTasks locked;

	tq_task_lock_unresolved(ids, n, &locked);
	begin_round(transitions);
	make_round(transitions, &locked, TQ_EVENT_CANCEL, TQ_TIMER_CANCEL);
	end_round(transitions);
}

/*
 * Cancels the remaining tasks of a group (doc/spec/policy.md 2), whether it is
 * sealed or not.  It covers the tasks that exist by now.  Does nothing if the role
 * that created the task has lost the right to.
 */
static void
cancel_group(TqTransitions *transitions, const TqGroupCancel *cancel)
{
	TqGroup group;
	int64 *ids;
	int n;

	if (tq_group_find(&cancel->slug, &group) == TQ_GROUP_NONE ||
		!tq_may_still_cancel(cancel->creator, &group))
		return;
	ids = tq_group_unresolved(&group, &n);
	cancel_tasks(transitions, ids, n);
}

/*
 * Leaves those of these locked tasks that are unscheduled, and have no
 * dependent that another session has locked; returns the others, by id.
 */
static int64 *
keep_unscheduled(TqLockedTasks *locked, TimestampTz now, int *nothers)
{
	int64 *moved = palloc(sizeof(int64) * Max(locked->n, 1));
	int64 *others;
	int nmoved = 0;
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->runs[i].location == TQ_LOCATION_UNSCHEDULED)
			tq_locked_tasks_keep(locked, i);
		else
			moved[nmoved++] = locked->runs[i].task;
	}
	drop_blocked(locked, TQ_RESOLVED_CANCELED, now);
	*nothers = nmoved + locked->nothers;
	others = palloc(sizeof(int64) * Max(*nothers, 1));
	memcpy(others, moved, sizeof(int64) * nmoved);
	memcpy(others + nmoved, locked->others, sizeof(int64) * locked->nothers);
	return others;
}

/* Leaves those of these locked tasks that are among these, which are by id. */
static void
keep_these(TqLockedTasks *locked, const int64 *ids, int nids)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&locked->runs[i].task, ids, nids, sizeof(int64),
					tq_compare_ids) != NULL)
			tq_locked_tasks_keep(locked, i);
	}
}

/*
 * Cancels the unscheduled tasks that wait for the completion of the tasks of
 * the work list (doc/spec/policy.md 2, 10.6).  One that another session has
 * locked may be about to leave unscheduled, so that it goes on, and so does
 * what waits for it: these are left out.  A timer of the tasks of the work list
 * then has the maintenance worker look again.
 */
static void
cancel_dependents(TqTransitions *transitions)
{
	int n = transitions->nculprits;
	int64 *culprits = transitions->culprits;
	int64 *ids;
	int64 *others;
	int nids;
	int nothers;
	TqLockedTasks locked;

	transitions->culprits = NULL;
	transitions->nculprits = 0;
	ids = tq_dependencies_doomed(culprits, n, NULL, 0, &nids);
	tq_task_lock_unresolved(ids, nids, &locked);
	others = keep_unscheduled(&locked, transitions->now, &nothers);
	if (nothers > 0)
	{
		ids = tq_dependencies_doomed(culprits, n, others, nothers, &nids);
		keep_these(&locked, ids, nids);
	}
	if (locked.nothers > 0)
		tq_timer_insert(TQ_TIMER_CANCEL,
						tq_clock_add_ms(transitions->now, TQ_AGAIN_MS),
						culprits, n);
	locked.nothers = 0;
	begin_round(transitions);
	make_round(transitions, &locked, TQ_EVENT_CANCEL, TQ_TIMER_CANCEL);
	tq_foreign_doom(locked.runs, locked.n);
	end_round(transitions);
}

/* ---- calls ---- */

/*
 * Writes what follows the transitions that were added, makes the rounds of the
 * work list, and appends the messages.
 */
void
tq_transitions_finish(TqTransitions *transitions)
{
	end_round(transitions);
	for (int i = 0; i < transitions->ngroups; i++)
		cancel_group(transitions, &transitions->groups[i]);
	if (transitions->nculprits > 0)
		cancel_dependents(transitions);
	tq_outbox_append(&transitions->outbox);
}

/*
 * Ends those of these locked tasks to which the event applies, and returns how
 * many; see make_round().
 */
int
tq_transitions_end(TqLockedTasks *locked, TqEvent event, TqTimer again,
				   TimestampTz now)
{
	TqTransitions transitions = {.now = now};

	make_round(&transitions, locked, event, again);
	tq_transitions_finish(&transitions);
	return locked->n;
}

/*
 * Cancels what waits for the completion of those of these resolved tasks whose
 * policy says so, and which are still unsuccessful: what another session had
 * locked when they ended.  Returns how many tasks were cancelled.
 */
int
tq_transitions_cancel_dependents(const TqTask *tasks, int n, TimestampTz now)
{
	TqTransitions transitions = {.now = now};

	for (int i = 0; i < n; i++)
	{
		TqRun last;

		if (tasks[i].policy != 0 &&
			tq_policy_get(tasks[i].policy)->on_unsuccessful ==
				TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS &&
			tq_run_peek(tasks[i].id, &last) &&
			last.state != TQ_STATE_COMPLETED)
			add_culprit(&transitions, tasks[i].id);
	}
	tq_transitions_finish(&transitions);
	return transitions.n;
}

/*
 * Counts down the dependencies of these unscheduled tasks, which the caller has
 * locked, and starts those that wait for nothing more; returns how many.
 */
int
tq_transitions_release(const TqUnscheduled *waiting, int n, TimestampTz now)
{
	TqTransitions transitions = {.now = now};
	int *next_runs = NULL;
	TqTask *released = tq_dependency_count_down(waiting, n, now, &next_runs,
												&transitions.n);

	start_released(&transitions, released, next_runs, transitions.n);
	n = transitions.n;
	tq_transitions_finish(&transitions);
	for (int i = 0; i < n; i++)
		tq_count_scheduled(&released[i]); /* in the queue that it has now */
	return n;
}

/*
 * Cancels these tasks as far as they are unscheduled, because what they wait for
 * has failed, and what waits for them; returns how many of them.  What another
 * session has locked, or has a dependent that is, is left out.
 */
int
tq_transitions_cancel_waiting(const int64 *ids, int n, TimestampTz now)
{
	TqTransitions transitions = {.now = now};
	TqLockedTasks locked;

	tq_task_lock_unresolved(ids, n, &locked);
	(void) keep_unscheduled(&locked, now, &n);
	locked.nothers = 0;
	make_round(&transitions, &locked, TQ_EVENT_CANCEL, TQ_TIMER_CANCEL);
	for (int i = 0; i < locked.n; i++)
		add_culprit(&transitions, locked.runs[i].task);
	tq_foreign_doom(locked.runs, locked.n);
	tq_transitions_finish(&transitions);
	return locked.n;
}

/*
 * Makes a run pending again whose worker has given it back, with this detail;
 * it keeps the time at which it was scheduled.
 */
void
tq_transition_defer(TqTask *task, const TqRun *run, const TqRunDetail *detail,
					TimestampTz now)
{
	TqTransitions transitions = {.now = now};
	TqStart *start = add_start(&transitions, task, NULL, run->created,
							   &detail->budget);

	start->scheduled = run->scheduled;
	start->detail = *detail;
	tq_wait_note_resolved(task->id);
	tq_transitions_finish(&transitions);
}

/* Returns whether a client asks again for what has happened already. */
static bool
transition_is_repeat(const TqRun *last, TqEvent event)
{
	if (event == TQ_EVENT_RERUN)
		return last->state == TQ_STATE_PENDING;
	return last->reason != TQ_RESOLVED_NONE &&
		   last->reason == tq_event_resolved(event);
}

/*
 * Makes a transition of a locked task that a client asks for; returns false if
 * the event does not apply.  If it has happened already, its message is
 * appended again.
 */
bool
tq_transition_request(TqTask *task, TqRun *last, TqEvent event,
					  TimestampTz now)
{
	TqTransitions transitions = {.now = now};
	TqLockedTasks locked = {.runs = last, .tasks = task, .n = 1};
	bool applies = tq_state_verdict(last->state, event) == TQ_VERDICT_APPLY;

	if (!applies && transition_is_repeat(last, event))
		tq_transition_announce(&transitions, task, last, last);
	else if (applies && tq_event_resolved(event) == TQ_RESOLVED_NONE)
	{
		/* Make a locked task pending by an event that adds a run. */
		if (last->location == TQ_LOCATION_UNSCHEDULED)
		{
			tq_unscheduled_delete(&task->id, 1);
			tq_count_scheduled(task);
		}
		if (event == TQ_EVENT_RERUN)
			rerun(&transitions, task, last,
				  last->state == TQ_STATE_UNSCHEDULED && last->run_id >= 0
					  ? TQ_CREATED_REPAIR
					  : TQ_CREATED_RERUN);
		else if (last->run_id < 0)
			tq_transition_start_first(&transitions, task, false);
		else
			start_again(&transitions, task, last->run_id + 1);
	}
	else if (applies)
		make_round(&transitions, &locked, event, TQ_TIMER_NONE);
	tq_transitions_finish(&transitions);
	return applies;
}
