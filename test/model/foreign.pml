/*
 * foreign.pml
 *	  Foreign dependencies (src/lifecycle/foreign_dependency.c), for spin.
 *
 * A required task, and one that depends on it, of another application.  The end of
 * a transaction is one step, and so is what a statement reads; between the steps any
 * process may run.  The properties: the dependent is released once, not before a
 * run that meets the dependency, and if there is one, it is released when no
 * process can do anything.
 *
 *	here			in src/
 *	create			leave_foreign(), write_edges() of dependency.c
 *	end_run()		tq_dependencies_met(), leave_to_settle()
 *	upkeep			settle_task(), mark()
 *	count_down()	tq_foreign_take(), tq_foreign_take_idle()
 *	rerun			tq_transition_request()
 *	repair			lock_foreign(), find_unmet(), write_wait() of repair.c
 *
 * CASE chooses the processes.  A FAULT_… is seeded, and must be found: see `run`.
 */
#if CASE == 1 /* an end */
#elif CASE == 2 /* the required task is rerun */
#define RERUN
#elif CASE == 3 /* the dependent is canceled and repaired */
#define REPAIR
#elif CASE == 4 /* both */
#define RERUN
#define REPAIR
#endif

/* What is committed of the required task. */
byte completed;		/* how many of its runs */
bool is_resolved;	/* the last one */
bool has_mark;
byte timers;

/* Of the dependency and of the dependent. */
bool has_edge;
byte from_run;
bool is_settled;
bool is_unscheduled;
byte unmet;
byte released;

/* Locks of rows. */
bool task_locked;
bool edge_locked;
bool dependent_locked;

#define lock(row) atomic { !row -> row = true }

/* Makes the dependent pending, within a step. */
inline release()
{
	is_unscheduled = false;
	assert(completed > from_run);
	released++;
	assert(released == 1)
}

/* Peeks at the required task, and does not lock it. */
active proctype create()
{
	bool is_met;

	d_step { is_met = is_resolved; from_run = (is_resolved -> completed - 1 : completed) };
	d_step {
		has_edge = true;
		is_settled = is_met;
		if
		:: is_met -> release()
		:: else -> is_unscheduled = true; unmet = 1;
#ifndef FAULT_NO_TIMER
			timers++
#endif
		fi
	}
}

/* A run is completed; what it finds, it finds before its commit. */
inline end_run()
{
	lock(task_locked);
	found = has_mark;
	d_step {
		is_resolved = true;
		completed++;
#ifndef FAULT_SILENT
		timers = timers + found;
#endif
		task_locked = false
	}
}

active proctype report()
{
	bool found;

	end_run();
#ifdef RERUN
	lock(task_locked);
	d_step { is_resolved = false; task_locked = false };
	if
	:: end_run()
	:: true /* it does not end */
	fi
#endif
}

/* Settles the dependency if nothing is locked; else it is looked at again. */
inline count_down()
{
	if
	:: atomic { !edge_locked && is_unscheduled && !dependent_locked ->
			edge_locked = true; dependent_locked = true };
		d_step {
			assert(unmet == 1);
			unmet = 0;
			is_settled = true;
			release();
			dependent_locked = false;
			edge_locked = false
		}
	:: atomic { !edge_locked && !is_unscheduled ->
#ifndef FAULT_IDLE
			edge_locked = true };
		d_step { is_settled = !is_unscheduled;
			again = is_unscheduled;
#else
			skip };
		lock(edge_locked);
		d_step { is_settled = true;
#endif
			edge_locked = false
		}
	:: atomic { edge_locked || (is_unscheduled && dependent_locked) -> again = true }
	fi
}

active proctype upkeep()
{
	bool again;
	bool is_met;
	bool marked;

end_idle:
	do
	:: d_step { timers > 0 -> timers--; marked = has_mark };
#ifdef FAULT_READ_FIRST
		is_met = completed > from_run;
#endif
#ifdef FAULT_NO_MARK
		marked = true;
#endif
		if
		:: marked
		:: !marked ->
#ifdef FAULT_UNLOCKED
			d_step { has_mark = true; marked = true }
#else
			if
			:: lock(task_locked);
				d_step { has_mark = true; marked = true; task_locked = false }
			:: atomic { task_locked -> again = true }
			fi
#endif
		fi;
#ifdef FAULT_LAST_RUN
		is_met = is_resolved && completed > from_run;
#elif !defined(FAULT_READ_FIRST)
		is_met = completed > from_run;
#endif
		if
		:: marked && is_met && has_edge && !is_settled -> count_down()
		:: else
		fi;
		d_step { timers = timers + again; again = false; is_met = false; marked = false }
	od
}

#ifdef REPAIR
/* Cancels the dependent, and makes it unscheduled or pending again. */
active proctype repair()
{
	bool is_unmet;

end_released:
	atomic { is_unscheduled && !dependent_locked -> dependent_locked = true };
	d_step { is_unscheduled = false; unmet = 0; dependent_locked = false };
#ifndef FAULT_REPAIR
	lock(edge_locked);
#endif
	is_unmet = !is_settled;
	d_step {
		if
		:: is_unmet -> is_unscheduled = true; unmet = 1; timers++
		:: else -> release()
		fi;
#ifndef FAULT_REPAIR
		edge_locked = false
#endif
	}
}
#endif

/* No step is left. */
active proctype check()
{
	timeout;
	assert(completed <= from_run || released == 1)
}
