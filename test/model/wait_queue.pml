/*
 * wait_queue.pml
 *	  Waiters that are woken by the number of tasks (src/shmem/wait_queue.c),
 *	  for spin.
 *
 * ROWS pending runs, in the order of their index, of which the first ones may be
 * of another queue.  A claim looks at one after the other, and each look is one
 * step here; so is the end of a transaction, which others see at once, and each
 * wake-up of waiters by one process, which happens under the lock of a list.
 * Between the steps any process may run.  The property: when no process can do
 * anything, no worker sleeps while a run is pending that it may claim.
 *
 *	here				in src/
 *	wake()				wait_queue_wake(), wait_queue_call()
 *	enter()				tq_wait_enter()
 *	withdraw()			withdraw(): tq_wait_end(), the abort, the end of a session
 *	settle()			tq_wait_used()
 *	claim()				walk_queue() of pending_table.c
 *	wait_and_claim()	claim_or_wait() of claim_wait.c, tq_claim_queues()
 *	produce(), commit()	cursor_commits(); roll_back(): cursor_aborts()
 *
 * A waiter looks by itself after some seconds.  Here it does not, so that no
 * lost wake-up is hidden.
 *
 * CASE chooses the processes.  A FAULT_… is seeded, and must be found: see `run`.
 */
#define WORKERS 3
#define QUEUES 2

#if CASE == 5
#define ROWS 4
#else
#define ROWS 3
#endif
#if CASE == 5
#define QUEUE_OF(row) ((row) < 2 -> 0 : 1)
#else
#define QUEUE_OF(row) 0
#endif

mtype = { ABSENT, PENDING, TAKEN, GONE };
mtype row[ROWS];

mtype = { IDLE, WAITING, WOKEN, RETRYING };
mtype state[WORKERS];
byte credit[WORKERS];			/* rows for which it was woken */
bit woken_for[WORKERS];			/* the queue in whose list it was found */
byte wants[WORKERS];
bool listed[WORKERS * QUEUES];	/* in the order of the workers */
bool barred[WORKERS];			/* in quarantine */

#define min(a, b) ((a) < (b) -> (a) : (b))

/* Wakes waiters of a queue until they want n rows together. */
inline wake(queue, n)
{
	d_step {
		left = n;
		i = 0;
		do
		:: i < WORKERS && left > 0 ->
			if
			:: listed[i * QUEUES + queue] ->
				listed[i * QUEUES + queue] = false;
				if
				:: state[i] == WAITING ->
					state[i] = WOKEN;
					woken_for[i] = queue;
					credit[i] = min(left, wants[i]);
					left = left - credit[i]
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		left = 0
	}
}

/* W1: one list after the other. */
inline enter(want)
{
	if
	:: state[me] == IDLE ->
		d_step {
			wants[me] = want;
			state[me] = WAITING;
			listed[me * QUEUES] = true
		}
		if
		:: both -> listed[me * QUEUES + 1] = true
		:: else
		fi
	:: else
	fi
}

inline leave_lists()
{
	d_step {
		if :: state[me] == WAITING -> state[me] = IDLE :: else fi;
		listed[me * QUEUES] = false
	}
	listed[me * QUEUES + 1] = false
}

/* Ends a wait; passes on what it was woken for. */
inline withdraw()
{
	leave_lists();
	d_step {
		rest = (state[me] == IDLE -> 0 : credit[me]);
		state[me] = IDLE
	}
#ifdef FAULT_ONE
	rest = min(rest, 1);
#endif
#ifndef FAULT_KEEP
	if
	:: rest > 0 -> wake(woken_for[me], rest)
	:: else
	fi;
#endif
	rest = 0
}

/*
 * After a claim that has got rows: one that it was woken for before passes on
 * the rest; one that it was woken for meanwhile, all.
 */
inline settle()
{
#ifdef FAULT_OWN_TRY
	if
	:: state[me] == WOKEN -> leave_lists(); state[me] = RETRYING
	:: else
	fi;
#endif
	if
	:: state[me] == RETRYING ->
		d_step {
#ifdef FAULT_ALL_QUEUES
			rest = got[0] + got[1];
#else
			rest = got[woken_for[me]];
#endif
			rest = credit[me] - min(rest, credit[me]);
			state[me] = IDLE
		}
#ifndef FAULT_NO_REST
		if
		:: rest > 0 -> wake(woken_for[me], rest)
		:: else
		fi;
#endif
		rest = 0
	:: else -> withdraw()
	fi
}

/* Takes up to `want` rows, one after the other. */
inline claim(want)
{
	d_step { got[0] = 0; got[1] = 0; at = 0; is_barred = barred[me] }
	do
	:: is_barred || at == ROWS || got[0] + got[1] == want -> break
	:: else ->
		d_step {
			if
			:: row[at] == PENDING && (QUEUE_OF(at) == 0 || both) ->
				row[at] = TAKEN;
				taken[at] = true;
				got[QUEUE_OF(at)] = got[QUEUE_OF(at)] + 1
			:: else
			fi;
			at++;
			do	/* what is gone stays so */
			:: at < ROWS && row[at] == GONE -> at++
			:: else -> break
			od;
			left = 0
		}
	od;
	at = 0
}

/* The end of a transaction. */
inline commit()
{
	d_step {
		at = 0;
		do
		:: at < ROWS ->
			if :: taken[at] -> row[at] = GONE; taken[at] = false :: else fi;
			at++
		:: else -> break
		od;
		at = 0; got[0] = 0; got[1] = 0
	}
}

inline roll_back()
{
	d_step {
		got[0] = 0; got[1] = 0;
		at = 0;
		do
		:: at < ROWS ->
			if
			:: taken[at] ->
				row[at] = PENDING; taken[at] = false;
				got[QUEUE_OF(at)] = got[QUEUE_OF(at)] + 1
			:: else
			fi;
			at++
		:: else -> break
		od;
		at = 0
	}
#ifndef FAULT_ABORT
	if :: got[0] > 0 -> wake(0, got[0]) :: else fi;
	if :: got[1] > 0 -> wake(1, got[1]) :: else fi
#endif
}

#define found (got[0] + got[1] > 0)

/* Claims, and sleeps as long as there is nothing, or until it is canceled. */
inline wait_and_claim(want)
{
	do
	:: true ->
#ifdef FAULT_TRY_FIRST
		claim(want);
		if :: found :: else -> enter(want) fi;
#else
		if
		:: !barred[me] -> enter(want)
		:: else -> withdraw()
		fi;
		claim(want);
#endif
		if
		:: !found && is_barred -> withdraw()
		:: else
		fi;
		if
		:: found -> settle(); break
		:: else
		fi;
		if
		:: state[me] == WOKEN ->
			leave_lists();
			state[me] = RETRYING;
			if
			:: fails -> withdraw(); fails = false
			:: true ->
				claim(want);
				if
#ifndef FAULT_BARRED
				:: !found && is_barred -> withdraw()
				:: !found && !is_barred -> state[me] = IDLE
#else
				:: !found -> state[me] = IDLE
#endif
				:: found -> settle(); break
				fi
			fi
		:: fails && state[me] == WAITING -> withdraw(); fails = false; break
		:: is_barred && stop -> break
		:: stop && state[me] == WAITING -> withdraw(); break
		fi
	od
}

/* All rows are there, and no process can do more: the workers may leave. */
bool stop;

/*
 * A worker: how many claims it makes, of how many rows; whether of both queues;
 * whether its wait may fail; whether a transaction may be rolled back.
 */
proctype worker(byte me; byte claims; byte want; bool both; bool fails; bool aborts)
{
	byte i, left, at, rest;
	byte got[QUEUES];
	bool taken[ROWS];
	bool is_barred;

	do
	:: claims > 0 && !stop ->
		claims--;
		wait_and_claim(want);
		if
		:: aborts && found -> aborts = false; roll_back()
		:: true -> commit()
		fi
	:: else -> break
	od
}

/* Creates rows in a transaction, and wakes for as many. */
proctype producer(byte first; byte n)
{
	byte i, left, at;

#ifdef FAULT_EARLY
	wake(QUEUE_OF(first), n);
#endif
	d_step {
		at = first;
		do
		:: at < first + n -> row[at] = PENDING; at++
		:: else -> break
		od;
		at = 0
	}
#ifndef FAULT_EARLY
	wake(QUEUE_OF(first), n)
#endif
}

/* Puts a worker into quarantine at any time. */
proctype operator(byte who)
{
	barred[who] = true
}

#if CASE == 1		/* claims of several, commits of several */
#define PROCESSES run worker(0, 1, 2, false, false, false); \
	run worker(1, 1, 1, false, false, false); \
	run worker(2, 2, 1, false, false, false); \
	run producer(0, 2); run producer(2, 1)
#elif CASE == 2		/* waits that are canceled, when they were woken or not */
#define PROCESSES run worker(0, 1, 2, false, true, false); \
	run worker(1, 1, 1, false, false, false); \
	run worker(2, 1, 2, false, false, false); \
	run producer(0, 2); run producer(2, 1)
#elif CASE == 3		/* claims that are rolled back */
#define PROCESSES run worker(0, 1, 2, false, false, true); \
	run worker(1, 1, 1, false, false, true); \
	run worker(2, 1, 2, false, false, false); \
	run producer(0, 2); run producer(2, 1)
#elif CASE == 4		/* workers that come into quarantine */
#define PROCESSES run worker(0, 1, 2, false, false, false); \
	run worker(1, 1, 1, false, false, false); \
	run worker(2, 1, 2, false, false, false); \
	run operator(0); \
	run producer(0, 2); run producer(2, 1)
#elif CASE == 5		/* workers of two queues, and one of one */
#define PROCESSES run worker(0, 1, 2, true, false, false); \
	run worker(1, 1, 2, false, false, false); \
	run worker(2, 1, 2, true, false, false); \
	run producer(0, 2); run producer(2, 2)
#else
#error "say which: -DCASE=…"
#endif

/* Does that worker sleep while it may claim a row that is pending? */
#define misses(w, r) \
	(state[w] == WAITING && row[r] == PENDING && !barred[w] && listed[w * QUEUES + QUEUE_OF(r)])

init
{
	byte i, j;

	atomic {
		i = 0;
		do
		:: i < ROWS -> row[i] = ABSENT; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS -> state[i] = IDLE; i++
		:: else -> break
		od;
		i = 0;
		PROCESSES
	}
	/* No process can do anything: those that sleep have nothing to do. */
	timeout;
	d_step {
		i = 0;
		do
		:: i < WORKERS ->
			j = 0;
			do
			:: j < ROWS -> assert(!misses(i, j)); j++
			:: else -> break
			od;
			i++
		:: else -> break
		od;
		stop = true
	}
	_nr_pr == 1
}
