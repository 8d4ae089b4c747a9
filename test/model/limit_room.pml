/*
 * limit_room.pml
 *	  The protocol of the slots of a queue (src/shmem/limit_room.c), for spin.
 *
 * One queue that may have LIMIT running tasks.  Each access to a word of shared
 * memory is one step here, and so is the end of a transaction, which others see
 * at once.  Between the steps any process may run.  The properties: never more
 * runs than LIMIT are running by what is committed; and when no process can do
 * anything, no worker sleeps while a run is pending and a slot is free.
 *
 *	here				in src/
 *	reserve()			reserve(), rows_of()
 *	take()				take(), note_refusal()
 *	give_back()			tq_room_give_back()
 *	commit()			counts_commit(), tq_room_release(), tq_room_wake()
 *	roll_back()			counts_abort(), release_aborted(), cursor_aborts()
 *	wake(), withdraw()	of wait_queue.c
 *	claim_in_time()		of claim_wait.c
 *
 * A waiter looks by itself after some seconds.  Here it does not, so that no
 * lost wake-up is hidden.
 *
 * CASE chooses the processes.  A FAULT_… is seeded, and must be found: see `run`.
 */
#if CASE == 5
#define LIMIT 1
#else
#define LIMIT 2
#endif
#define WORKERS 3

#define min(a, b) ((a) < (b) -> (a) : (b))

/* What is committed, and pending runs that no transaction has taken. */
byte running;
byte pending;

/* The words of the queue in shared memory. */
byte rows;
byte reserved;
bool is_limited;
byte refused;

mtype = { IDLE, WAITING, WOKEN };
mtype state[WORKERS + 1];

/*
 * Stands for the version: whether `reserved` has changed since that worker read
 * it.
 */
bool has_changed[WORKERS + 1];

/* Changes `reserved`, within a step. */
inline set_reserved(value)
{
	reserved = value;
	i = 1;
	do
	:: i <= WORKERS -> has_changed[i] = true; i++
	:: else -> break
	od;
	i = 0
}

/* Wakes up to n waiters.  All of one list: under its lock. */
inline wake(n)
{
	d_step {
		left = n;
		i = 1;
		do
		:: i <= WORKERS ->
			if
			:: left > 0 && state[i] == WAITING -> state[i] = WOKEN; left--
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0; left = 0
	}
}

/* R1 to R3.  `own` is what this transaction counts less than others do. */
inline reserve()
{
	d_step { word = reserved; has_changed[me] = false }
	do
	:: d_step { counted = rows }
		d_step {
			room = LIMIT - (word + counted + used - ended - held);
			room = min(room, want);
			if
			:: room <= 0 -> room = 0; is_done = true
#ifdef FAULT_NO_VERSION
			:: room > 0 && word == reserved ->
#else
			:: room > 0 && !has_changed[me] ->
#endif
				set_reserved(reserved + room); is_done = true
			:: else -> word = reserved; has_changed[me] = false
			fi
		}
		if
		:: is_done -> break
		:: else
		fi
	od;
	skip;	/* a break may not lead into a d_step */
	d_step { is_done = false; word = 0; has_changed[me] = true; counted = 0; held = held + room }
}

/* Looks again after it has noted that it is refused. */
inline take()
{
	reserve();
	if
	:: room == 0 ->
#ifndef FAULT_NO_FLAG
		is_limited = true;
#endif
		refused++;
#ifndef FAULT_NO_SECOND_LOOK
		reserve()
#endif
	:: else
	fi
}

/* Gives back the slots for which there was no run. */
inline give_back(n)
{
	d_step { set_reserved(reserved - n); held = held - n }
#ifndef FAULT_SILENT
	d_step { woken = min(refused, n); refused = 0 }
	wake(woken)
#endif
}

/* A claim of up to `want` runs.  It may fail when it has taken slots. */
inline claim()
{
	take();
	if
	:: room > 0 && aborts -> has_failed = true
	:: room > 0 ->
		d_step {
			found = min(room, pending);
			pending = pending - found;
			used = used + found
		}
		if
		:: found < room -> give_back(room - found)
		:: else
		fi
	:: else -> found = 0
	fi;
	d_step { room = 0; woken = 0 }
}

/* C1 */
#define count_rows() rows = rows + used - ended
/* C2 */
#define release() d_step { set_reserved(reserved - held) }

/* Its end is visible, then the rows are counted, then the slots are free. */
inline commit()
{
	d_step { running = running + used - ended; assert(running <= LIMIT) }
#ifdef FAULT_RELEASE_FIRST
	if :: held > 0 -> release() :: else fi;
	frees = is_limited && used < ended;
	count_rows();
#else
#ifdef FAULT_FLAG_FIRST
	frees = is_limited && used < ended;
	count_rows();
#else
	count_rows();
	frees = is_limited && used < ended;
#endif
	if :: held > 0 -> release() :: else fi;
#endif
	if
	:: frees || held > 0 ->
		d_step {
			woken = held - (used - ended);
			if
			:: woken > 0 && used >= ended -> woken = min(woken, LIMIT - reserved - rows)
			:: else
			fi;
			if :: woken < 0 -> woken = 0 :: else fi
		}
		wake(woken)
	:: else
	fi;
	d_step { frees = false; woken = 0; held = 0; ended = 0 }
}

/* What it has taken is pending again, and its slots are free. */
inline roll_back()
{
	pending = pending + used;
	wake(used);
#ifndef FAULT_ABORT
	if :: held > 0 -> release() :: else fi;
#endif
#ifndef FAULT_ABORT_SILENT
	wake(held);
#endif
	d_step { held = 0; ended = 0; used = 0 }
}

/* Ends a wait; passes on a wake-up that was not used. */
inline withdraw()
{
	d_step { left = (state[me] == WOKEN -> 1 : 0); state[me] = IDLE }
	if
	:: left > 0 -> wake(1)
	:: else
	fi
}

/* Claims, and sleeps as long as there is nothing. */
inline claim_in_time()
{
	do
	:: true ->
		if :: state[me] == IDLE -> state[me] = WAITING :: else fi;
		claim();
		if
		:: found > 0 || has_failed -> withdraw(); break
		:: else
		fi;
		if
		:: d_step { state[me] == WOKEN -> state[me] = IDLE }
			/* a try for the wake-up; if it is in vain, enters the list again */
			claim();
			if
			:: found > 0 -> break
			:: has_failed -> wake(1); break
			:: else
			fi
		:: stop && state[me] == WAITING -> withdraw(); break
		fi
	od
}

/* All tasks were created, and no process can do more: the workers may leave. */
bool stop;

/*
 * A worker: how many claims it makes, of how many runs; whether it ends its runs
 * and claims in one transaction, and whether a transaction may be rolled back.
 */
proctype worker(byte me; byte claims; byte want; bool in_one; bool aborts)
{
	byte i, left, word, counted, held, used, ended, found, has;
	short room, woken;
	bool is_done, frees, has_failed;

	do
	:: claims > 0 && !stop ->
		claims--;
		if
		:: in_one && has > 0 -> ended = has
		:: else
		fi;
		if
		:: ended > 0 -> claim()
		:: else -> claim_in_time()
		fi;
		if
		:: aborts -> roll_back(); has_failed = false
		:: !has_failed ->
			d_step { has = has + used - ended }
			commit();
			used = 0
		fi;
		if
		:: has > 0 && !in_one ->
			d_step { ended = has; has = 0 }
			commit()
		:: has < LIMIT
		:: in_one
		fi
	:: else -> break
	od;
	if
	:: has > 0 -> d_step { ended = has; has = 0 } commit()
	:: else
	fi
}

proctype producer(byte tasks)
{
	byte i, left;

	do
	:: tasks > 0 -> pending++; tasks--; wake(1)
	:: else -> break
	od
}

#if CASE == 1		/* claims of one, with waits */
#define PROCESSES run worker(1, 2, 1, false, false); \
	run worker(2, 2, 1, false, false); \
	run producer(4)
#elif CASE == 2		/* claims of more than there is, so that some are given back */
#define PROCESSES run worker(1, 2, 2, false, false); \
	run worker(2, 1, 2, false, false); \
	run producer(3)
#elif CASE == 3		/* transactions that are rolled back */
#define PROCESSES run worker(1, 2, 1, false, true); \
	run worker(2, 1, 1, false, true); \
	run producer(2)
#elif CASE == 4		/* runs that are ended and claimed in one transaction */
#define PROCESSES run worker(1, 2, 2, true, false); \
	run worker(2, 2, 1, true, false); \
	run producer(3)
#elif CASE == 5		/* three workers, and one slot */
#define PROCESSES run worker(1, 1, 1, false, false); \
	run worker(2, 1, 1, false, false); \
	run worker(3, 1, 1, false, false); \
	pending = 2
#else
#error "say which: -DCASE=…"
#endif

init
{
	byte i;

	atomic {
		i = 1;
		do
		:: i <= WORKERS -> state[i] = IDLE; i++
		:: else -> break
		od;
		i = 0;
		PROCESSES
	}
	/* No process can do anything: those that sleep have nothing to do. */
	timeout;
	d_step {
		i = 1;
		do
		:: i <= WORKERS -> assert(!(state[i] == WAITING && pending > 0 && running < LIMIT)); i++
		:: else -> break
		od;
		i = 0;
		stop = true
	}
	/* All have left: no slot is lost. */
	_nr_pr == 1;
	assert(rows == running && reserved == 0)
}
