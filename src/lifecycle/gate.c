/*
 * gate.c
 *	  Gates: tasks that wait for others with the same key (doc/spec/policy.md
 *	  11.2, 11.3).
 *
 * The tasks of a queue with one serialKey, or with one concurrencyKey that is
 * limited, have a gate in common.  A run of such a task does not go to
 * tq_internal.pending, where claims look, but is parked: it goes to
 * tq_internal.delayed, visible at infinity.  The step "admit" of maintenance
 * moves it on when its gates let it pass, the serial one first.  So a claim
 * never meets a run that it may not have, and costs nothing more, however many
 * wait.
 *
 * Clients ------- A transaction in which something happens to such a task
 * inserts a timer of the task that is due at once, and the row of the task in
 * gate_member if it has none: when a run of it is parked or delayed, when it is
 * resolved, when it is deleted.  It takes no lock that another transaction with
 * the same key takes, so that tasks with one key are created and resolved side
 * by side.
 *
 * The step
 * --------
 * It takes timers, locks all gates of the database, and takes its snapshots
 * after that.  If another pass has them locked, it leaves its timers for later.
 * It is alone in changing what members are.  For each task it looks
 * where its current run is, and then at its gates:
 *
 *	serial		if no member is admitted, the first one is, in order of creation
 *	concurrency	as many of those that are ready as there are positions free; a
 *				member is admitted from when it can be claimed until its run
 *				ends or is deferred
 *
 * Nothing is missed: a transaction that changes where a task is commits its
 * timer too.  If the step's snapshot does not show the change, a later pass
 * takes the timer.  Until then the member counts as what it was: it may hold a
 * position too long, never too short.  A position is given away only by the
 * step, which moves the run in the same transaction; if that is rolled back, so
 * is all of it.
 *
 * The timer of a task leads to the gates of which it is a member.  A pass that
 * removes a member for another reason than its timer looks at the gate itself,
 * or inserts a timer of a member that waits there.
 *
 * A rerun finds its task still a member, and the step may remove that before it
 * sees the rerun, from one of its gates or from both.  Then the task is parked,
 * and no member of a gate that it has to pass.  The timer of the rerun brings
 * the step there, which makes it a member again.
 */
#include "postgres.h"

#include "../core/state.h"
#include "lifecycle.h"

/* ---- clients ---- */

/* Returns the gates of a task, as a set of 1 << TqTaskKey. */
static uint32
gates_of(const TqTask *task)
{
	const TqPolicy *policy;
	uint32 kinds = 0;

	if (task->policy == 0)
		return 0;
	policy = tq_policy_get(task->policy);
	if (tq_policy_has_key(policy, TQ_KEY_SERIAL))
		kinds |= 1u << TQ_KEY_SERIAL;
	if (tq_policy_has_key(policy, TQ_KEY_CONCURRENCY) &&
		tq_queue_settings_limit_keys(tq_queue_settings(task->queue)))
		kinds |= 1u << TQ_KEY_CONCURRENCY;
	return kinds;
}

/* Returns whether a run of this task has to be parked. */
bool
tq_gate_applies(const TqTask *task)
{
	return task->policy != 0 && gates_of(task) != 0;
}

/* Returns whether a task may be a member of a gate, also by former settings. */
bool
tq_gate_may_have(const TqTask *task)
{
	const TqPolicy *policy;

	if (task->policy == 0)
		return false;
	policy = tq_policy_get(task->policy);
	return tq_policy_has_key(policy, TQ_KEY_SERIAL) ||
		   tq_policy_has_key(policy, TQ_KEY_CONCURRENCY);
}

/* Has the step look at the gates of these tasks, at once. */
static void
visit_gate(const int64 *tasks, int n, TimestampTz now)
{
	tq_timer_insert(TQ_TIMER_GATE, now, tasks, n);
}

/*
 * Makes those of the tasks whose runs become pending members of their gates, if
 * they have any.
 */
void
tq_gates_enter(const TqEntrant *entrants, int n, TimestampTz now)
{
	TqGateEntry *entries = palloc(sizeof(TqGateEntry) * n);
	int64 *tasks = palloc(sizeof(int64) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		const TqTask *task = entrants[i].task;
		uint32 kinds = gates_of(task);
		bool is_ready = entrants[i].visible_at <= now &&
						kinds == 1u << TQ_KEY_CONCURRENCY;

		if (kinds == 0)
			continue;
		tasks[count] = task->id;
		entries[count++] = (TqGateEntry){.task = task->id,
										 .queue = task->queue,
										 .priority = task->priority,
										 .kinds = kinds,
										 .state = is_ready
													  ? TQ_GATE_READY
													  : TQ_GATE_NOT_READY};
	}
	tq_gates_insert(entries, count);
	visit_gate(tasks, count, now);
}

/* Has the gates looked at of tasks that were resolved or deleted. */
void
tq_gates_leave(const int64 *tasks, int n, TimestampTz now)
{
	visit_gate(tasks, n, now);
}

/* Has the gates of these tasks looked at, because their priority has changed. */
void
tq_gates_priority_changed(const int64 *tasks, int n, TimestampTz now)
{
	int64 *members = tq_gates_with(tasks, n, &n);

	visit_gate(members, n, now);
}

/* Has the gates of a queue looked at, because their limits may have changed. */
void
tq_gates_settings_changed(int32 queue, TimestampTz now)
{
	int n;
	int64 *tasks = tq_gate_one_of_each(queue, TQ_KEY_CONCURRENCY, &n);

	visit_gate(tasks, n, now);
}

/* ---- the step ---- */

/* What a pass does. */
typedef struct GatePass
{
	TimestampTz now;
	TqGate *gates; /* of concurrency keys, to be looked at */
	int ngates;
	TqPending *released; /* runs that became claimable */
	int nreleased;
	int room;     /* for both */
	int64 *again; /* tasks that another session has locked */
	int nagain;
} GatePass;

/* Makes room for another gate, and another run. */
static void
gate_make_room(GatePass *pass)
{
	int most = Max(Max(pass->ngates, pass->nreleased), pass->nagain);

	if (most < pass->room)
		return;
	pass->room = most * 2;
	pass->gates = repalloc_huge(pass->gates, sizeof(TqGate) * pass->room);
	pass->released = repalloc_huge(pass->released,
								   sizeof(TqPending) * pass->room);
	pass->again = repalloc_huge(pass->again, sizeof(int64) * pass->room);
}

/* Has a gate of a concurrency key looked at later in this pass. */
static void
add_gate(GatePass *pass, const TqGate *gate)
{
	for (int i = 0; i < pass->ngates; i++)
	{
		if (pass->gates[i].queue == gate->queue &&
			pass->gates[i].kind == gate->kind &&
			strcmp(pass->gates[i].key, gate->key) == 0)
			return;
	}
	gate_make_room(pass);
	pass->gates[pass->ngates++] = *gate;
}

/* Where the current run of a task is, as far as gates are concerned. */
typedef enum Where
{
	WHERE_GONE,
	WHERE_RESOLVED,
	WHERE_FAILED,  /* resolved without success, and not canceled */
	WHERE_PARKED,  /* waits for its gates */
	WHERE_DELAYED, /* waits for something else */
	WHERE_OPEN     /* can be claimed, or runs */
} Where;

static Where
where_is(int64 task, TqRun *run)
{
	int n;

	if (!tq_run_peek(task, run))
		return WHERE_GONE;
	switch (run->location)
	{
		case TQ_LOCATION_NONE:
			return WHERE_DELAYED;
		case TQ_LOCATION_UNSCHEDULED:
			return WHERE_GONE; /* it enters them again with its next run */
		case TQ_LOCATION_DELAYED:
			(void) tq_gate_parked(&task, 1, &n);
			return n > 0 ? WHERE_PARKED : WHERE_DELAYED;
		case TQ_LOCATION_PENDING:
			return WHERE_OPEN;
		case TQ_LOCATION_RUN:
			break;
	}
	if (!tq_state_is_resolved(run->state))
		return WHERE_OPEN;
	return run->state == TQ_STATE_COMPLETED ||
				   run->reason == TQ_RESOLVED_CANCELED ||
				   run->reason == TQ_RESOLVED_CANCELED_BY_WORKER
			   ? WHERE_RESOLVED
			   : WHERE_FAILED;
}

/* Moves a parked run to pending; returns false if its task is locked. */
static bool
release(GatePass *pass, int64 task)
{
	TqPending *row;

	gate_make_room(pass);
	row = &pass->released[pass->nreleased];
	if (tq_delayed_take_one(task, row))
	{
		if (row->run_id == 0)
			row->seq = task; /* its position in the queue by its creation */
		tq_pending_insert(row, 1);
		tq_count_visible(row);
		pass->nreleased++;
		return true;
	}
	pass->again[pass->nagain++] = task;
	return false;
}

/* Returns whether the end of a task without success keeps its serial key. */
static bool
holds(int64 task)
{
	TqTaskFinder finder = {NULL, NULL};
	TqTask core;
	bool found = tq_task_find_by_id(&finder, task, &core);

	tq_task_finder_end(&finder);
	return found && tq_policy_get(core.policy)->serial_holds;
}

/*
 * Returns whether a resolved task keeps its serial key from others, which wait
 * for a decision about it.
 */
bool
tq_gate_keeps_others(const TqTask *task)
{
	TqGateMember *members;
	TqRun run;
	int n;
	int nwaiting;

	if (task->policy == 0 || !tq_policy_get(task->policy)->serial_holds)
		return false;
	members = tq_gate_members_of(&task->id, 1, &n);
	if (n == 0 || members[0].gate.kind != TQ_KEY_SERIAL ||
		members[0].state != TQ_GATE_ADMITTED ||
		where_is(task->id, &run) != WHERE_FAILED)
		return false;
	(void) tq_gate_members_in(&members[0].gate, TQ_GATE_READY, 1, &nwaiting);
	return nwaiting > 0;
}

/* Returns the position of a task at the gate of its concurrency key, or NULL. */
static TqGateMember *
concurrency_of(int64 task)
{
	int n;
	TqGateMember *members = tq_gate_members_of(&task, 1, &n);

	for (int i = 0; i < n; i++)
	{
		if (members[i].gate.kind == TQ_KEY_CONCURRENCY)
			return &members[i];
	}
	return NULL;
}

/* Returns whether a task has passed the gate of its serial key, if it has one. */
static bool
has_passed_serial(int64 task)
{
	int n;
	const TqGateMember *members = tq_gate_members_of(&task, 1, &n);

	for (int i = 0; i < n; i++)
	{
		if (members[i].gate.kind == TQ_KEY_SERIAL)
			return members[i].state == TQ_GATE_ADMITTED;
	}
	return true;
}

/*
 * Notes what a member of the gate of a concurrency key is now.  If that has a
 * rate, the claims of former runs of the task count.
 */
static void
refresh(TqGateMember *member)
{
	const TqQueueSettings *settings = tq_queue_settings(member->gate.queue);
	bool has_rate = settings->key_rate_count > 0;
	TqRun run;
	bool has_claims;

	switch (where_is(member->task, &run))
	{
		case WHERE_GONE:
			tq_gate_delete(member);
			break;
		case WHERE_RESOLVED:
		case WHERE_FAILED:
			if (has_rate && (run.started != 0 || run.run_id > 0))
				tq_gate_set_state(member, TQ_GATE_ENDED);
			else
				tq_gate_delete(member);
			break;
		case WHERE_PARKED:
			tq_gate_take_priority(member);
			has_claims = has_rate && run.run_id > 0;
			if (has_passed_serial(member->task))
				tq_gate_set_state(member, has_claims ? TQ_GATE_READY_AGAIN
													 : TQ_GATE_READY);
			else
				tq_gate_set_state(member, has_claims ? TQ_GATE_NOT_READY_AGAIN
													 : TQ_GATE_NOT_READY);
			break;
		case WHERE_DELAYED:
			has_claims = has_rate && run.run_id > 0;
			tq_gate_set_state(member, has_claims ? TQ_GATE_NOT_READY_AGAIN
												 : TQ_GATE_NOT_READY);
			break;
		case WHERE_OPEN:
			tq_gate_set_state(member, TQ_GATE_ADMITTED);
			break;
	}
}

/* Lets a parked task go on that has passed the gate of its serial key. */
static void
go_on(GatePass *pass, int64 task)
{
	TqGateMember *member = concurrency_of(task);

	if (member == NULL)
		(void) release(pass, task);
	else
	{
		refresh(member);
		add_gate(pass, &member->gate);
	}
}

/*
 * Looks at the gate of a serial key: removes members that are resolved, and
 * admits the first one if there is none that was.
 */
static void
visit_serial(GatePass *pass, const TqGate *gate)
{
	for (;;)
	{
		int n;
		TqGateMember *member = tq_gate_members_in(gate, TQ_GATE_ADMITTED, 1,
												  &n);
		TqRun run;

		if (n == 0)
			member = tq_gate_members_in(gate, TQ_GATE_READY, 1, &n);
		if (n == 0)
			return;
		switch (where_is(member->task, &run))
		{
			case WHERE_FAILED:
				if (member->state == TQ_GATE_ADMITTED && holds(member->task))
					return;
				tq_gate_delete(member);
				continue;
			case WHERE_GONE:
			case WHERE_RESOLVED:
				tq_gate_delete(member);
				continue;
			case WHERE_DELAYED:
				return;
			case WHERE_PARKED:
				tq_gate_set_state(member, TQ_GATE_ADMITTED);
				go_on(pass, member->task);
				return;
			case WHERE_OPEN:
				tq_gate_set_state(member, TQ_GATE_ADMITTED);
				return;
		}
	}
}

/* Removes a member that ended while it waited for its serial key. */
static void
leave_serial(const TqGateMember *member)
{
	TqRun run;

	if (member->state == TQ_GATE_ADMITTED)
		return;
	switch (where_is(member->task, &run))
	{
		case WHERE_GONE:
		case WHERE_RESOLVED:
		case WHERE_FAILED:
			tq_gate_delete(member);
			break;
		case WHERE_PARKED:
		case WHERE_DELAYED:
		case WHERE_OPEN:
			break;
	}
}

/* ---- limits of a key ---- */

#define LONGEST_PAUSE_MS 60000
#define EVERY_TASK 1000 /* as many as a batch admits where nothing limits */

/* Returns how many members of a gate are admitted and not yet claimed. */
static int
unclaimed(const TqGate *gate)
{
	int n;
	int count = 0;
	TqGateMember *members = tq_gate_members_in(gate, TQ_GATE_ADMITTED,
											   PG_INT32_MAX, &n);

	for (int i = 0; i < n; i++)
	{
		TqRun run;

		count += tq_run_peek(members[i].task, &run) &&
				 run.location == TQ_LOCATION_PENDING;
	}
	return count;
}

/* Removes members that have ended and whose claims count no longer. */
static void
forget_ended(const TqGate *gate, TimestampTz since)
{
	int n;
	TqGateMember *members = tq_gate_members_in(gate, TQ_GATE_ENDED, EVERY_TASK,
											   &n);

	for (int i = 0; i < n; i++)
	{
		TqRun run;

		if (!tq_run_peek(members[i].task, &run) ||
			Max(run.started, run.resolved) <= since)
			tq_gate_delete(&members[i]);
	}
}

/*
 * Returns how many members of a gate its rate lets pass.  If that is none, has
 * the gate looked at again when there may be some.
 */
static int
free_by_rate(GatePass *pass, const TqGate *gate,
			 const TqQueueSettings *settings)
{
	TimestampTz since = tq_clock_add_ms(pass->now,
										-settings->key_rate_interval);
	int64 pause = Max(settings->key_rate_interval / 4, TQ_AGAIN_MS);
	int open = unclaimed(gate);
	TqGateMember *waiting;
	TimestampTz next;
	int nclaims;
	int n;
	TimestampTz *claims = tq_gate_claims(gate, since, &nclaims);

	/* Claims that a clock that was ahead has noted count no longer. */
	while (nclaims > 0 &&
		   claims[nclaims - 1] > tq_clock_add_ms(pass->now, TQ_AHEAD_MS))
		nclaims--;
	forget_ended(gate, since);
	if (settings->key_rate_count > nclaims + open)
		return settings->key_rate_count - nclaims - open;
	waiting = tq_gate_members_in(gate, TQ_GATE_READY, 1, &n);
	if (n == 0)
		return 0;
	/* The claim of a run that is admitted is not noticed here. */
	next = tq_clock_add_ms(pass->now, Min(pause, LONGEST_PAUSE_MS));
	if (nclaims > 0)
		next = Min(next, tq_clock_add_ms(claims[0],
										 settings->key_rate_interval + 1));
	tq_timer_insert(TQ_TIMER_GATE, Max(next, pass->now + 1), &waiting[0].task,
					1);
	return 0;
}

/* Returns how many members of a gate may pass. */
static int
free_positions(GatePass *pass, const TqGate *gate)
{
	TqQueueSettings settings = *tq_queue_settings(gate->queue);
	int positions = EVERY_TASK;

	if (settings.key_concurrent_limit > 0)
		positions = (int) Max(settings.key_concurrent_limit -
								  tq_gate_count(gate, TQ_GATE_ADMITTED),
							  0);
	if (settings.key_rate_count > 0 && positions > 0)
		positions = Min(positions, free_by_rate(pass, gate, &settings));
	return Min(positions, EVERY_TASK);
}

/*
 * Has a gate looked at again at once, if a member waits.  The timer is of that
 * member, because the gate is found by its members, and those that the pass has
 * met may be removed.
 */
static void
gate_recheck(const GatePass *pass, const TqGate *gate)
{
	int n;
	const TqGateMember *waiting = tq_gate_members_in(gate, TQ_GATE_READY, 1,
													 &n);

	if (n > 0)
		visit_gate(&waiting->task, 1, pass->now);
}

/* Looks at the gate of a concurrency key: admits as many as may pass. */
static void
visit_concurrency(GatePass *pass, const TqGate *gate)
{
	int positions = free_positions(pass, gate);
	int n = 0;
	int nadmitted = 0;
	int nlocked = pass->nagain;
	TqGateMember *members = NULL;

	if (positions > 0)
		members = tq_gate_members_in(gate, TQ_GATE_READY, positions, &n);
	for (int i = 0; i < n; i++)
	{
		TqRun run;

		if (where_is(members[i].task, &run) != WHERE_PARKED)
			refresh(&members[i]);
		else if (release(pass, members[i].task))
		{
			tq_gate_set_state(&members[i], TQ_GATE_ADMITTED);
			nadmitted++;
		}
	}
	nlocked = pass->nagain - nlocked;
	/*
	 * There may be more, or others in the positions of those that were not
	 * there; or the rate says when to look again.
	 */
	if (nadmitted == EVERY_TASK || nadmitted + nlocked < n ||
		(nadmitted > 0 && tq_queue_settings(gate->queue)->key_rate_count > 0))
		gate_recheck(pass, gate);
}

/*
 * Makes tasks that were parked members of those of their gates from which the
 * step has removed them meanwhile.  What has no gate any more goes on.
 */
static void
enter_ungated(GatePass *pass, const int64 *tasks, int n)
{
	TqTaskFinder finder = {NULL, NULL};
	int64 *ids = tq_gate_ungated(tasks, n, &n);

	for (int i = 0; i < n; i++)
	{
		TqTask task;
		TqGateEntry entry;

		if (!tq_task_find_by_id(&finder, ids[i], &task))
			continue;
		entry = (TqGateEntry){.task = task.id,
							  .queue = task.queue,
							  .priority = task.priority,
							  .kinds = gates_of(&task),
							  .state = TQ_GATE_NOT_READY};
		if (entry.kinds != 0)
			tq_gates_insert(&entry, 1);
		else
			(void) release(pass, task.id);
	}
	tq_task_finder_end(&finder);
}

/* Looks at the gates of these tasks; returns how many runs became claimable. */
int64
tq_gates_admit(const int64 *tasks, int n, TimestampTz now)
{
	GatePass pass = {.now = now, .room = 64};
	TqGateMember *members;
	int count;

	if (!tq_gates_lock())
	{
		visit_gate(tasks, n, tq_clock_add_ms(now, TQ_AGAIN_MS));
		return 0;
	}
	pass.gates = palloc(sizeof(TqGate) * pass.room);
	pass.released = palloc(sizeof(TqPending) * pass.room);
	pass.again = palloc(sizeof(int64) * pass.room);
	tq_queue_settings_reload();
	enter_ungated(&pass, tasks, n);
	members = tq_gate_members_of(tasks, n, &count);
	for (int i = 0; i < count; i++)
	{
		if (members[i].gate.kind == TQ_KEY_SERIAL)
		{
			leave_serial(&members[i]);
			visit_serial(&pass, &members[i].gate);
		}
		else
		{
			refresh(&members[i]);
			add_gate(&pass, &members[i].gate);
		}
	}
	for (int i = 0; i < pass.ngates; i++)
		visit_concurrency(&pass, &pass.gates[i]);
	/* Write what follows a pass. */
	tq_outbox_append_claimable(pass.released, pass.nreleased);
	tq_timer_insert(TQ_TIMER_GATE, tq_clock_add_ms(pass.now, TQ_AGAIN_MS),
					pass.again, pass.nagain);
	return pass.nreleased;
}
