/*
 * creations.pml
 *	  How the publisher finds the new tasks whose messages it derives
 *	  (src/shmem/numbers.c, "Open numbers"), for spin.
 *
 * Creators take numbers of blocks of STEP, one for each transaction, and the
 * publisher makes passes at any time.  Each read or write of shared memory is one
 * step here, and so are a look at the sequence, a snapshot, the moment at which a
 * commit becomes visible, and that of a tick with all that it publishes.  Between
 * the steps any process may run.  A set of tasks, as that of a snapshot, has a bit
 * for each number.  The properties: each task is published once, after its commit,
 * if one more pass begins when all has ended; and of the tasks of a restored
 * database, which have numbers below FIRST, none is read.
 *
 *	here				in src/
 *	next_number()		tq_numbers_next(): T1 to T3 of numbers.c are one step
 *	begin_block()		prepare_block(), nextval_internal(), and begin_block(), which
 *						locks other sessions out, and is one step, too
 *	create()			tq_numbers_open(), O1 to O3; the commit, O4; close_number(), O5
 *	read_open()			tq_numbers_read_open(): P1 and P2
 *	list()				tq_tick_creations() of tick_table.c
 *	publish()			publisher_publish() and tick_of() of publisher.c, messages_new
 *						of outbox_table.c
 *	crash				what is in shared memory, and what is not committed, is lost
 *
 * Numbers ascend here: there is no setval().  What was visible survives a crash.
 * Where that is not so, because of synchronous_commit = off, all that came later is
 * lost with it, ticks too, and the model begins from an earlier state.
 *
 * CASE chooses the processes.  A FAULT_… is seeded, and must be found: see `run`.
 */
#define CREATORS 2
#if CASE == 3
#define PARTS true
#else
#define PARTS false
#endif

#define STEP 2		/* INCREMENT BY */
#define NEAR 1
#ifndef DRAWS
#define DRAWS 3		/* at most; more of them waste numbers alone */
#endif
#define FIRST 2		/* the first number since the activation */
#define PUBLISHER CREATORS

#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) > (b) -> (a) : (b))
#define bit_of(number) (1 << (number))
#define from_on(number) (-1 << (number))

/* The sequence, and the entry of the database in shared memory. */
byte drawn = FIRST - STEP;		/* last_value */
bool entry, block;
byte next, end;
bool mine[CREATORS];
byte slot[CREATORS];			/* 0: none; twice a number, and 1 if exact */

/* Tasks that a snapshot shows now, and those that were published. */
int visible, published;

/* The last tick. */
int upto;
byte low = FIRST;
int open;
bool is_part;
int part_of;
byte after_seq;

byte running = 0;
bool crashed[CREATORS + 1];

/* ---- creators ---- */

inline begin_block()
{
	d_step { entry = true; prepared = (block -> end : 0) }
	if
	:: d_step { drawn < DRAWS * STEP -> drawn = drawn + STEP; first = drawn }
	:: drawn == DRAWS * STEP -> goto end_pruned
	fi;
	atomic {
		if
		:: (block -> end : 0) == prepared -> block = true; next = first; end = first + STEP; mine[me] = true
		:: else
		fi;
		prepared = 0; first = 0
	}
}

inline next_number()
{
	do
	:: d_step { mine[me] && next < end -> got = next; next++ } break
	:: d_step { !mine[me] || next == end } begin_block()
	od
}

inline create()
{
	if
	:: !mine[me] -> next_number()
	:: mine[me]
	fi;
#ifndef FAULT_SLOT_LATE
	got = next;
	slot[me] = got * 2;
#endif
	next_number();
	slot[me] = got * 2 + 1;
#ifdef FAULT_CLOSE_EARLY
	slot[me] = 0;
#endif
	if
	:: visible = visible | bit_of(got)
	:: aborts
	fi;
	d_step { got = 0; slot[me] = 0 }
}

proctype creator(byte me; byte transactions; bool aborts)
{
	byte got, prepared, first;

	do
	:: atomic { transactions > 0 -> transactions-- }
#if CASE == 4
		{ create() } unless { d_step {
			crashed[me] -> crashed[me] = false;
			got = 0; prepared = 0; first = 0
		} }
#else
		create()
#endif
	:: atomic { transactions == 0 -> running--; break }
	od;
	goto ended;
end_pruned:
	false;
ended:
	skip
}

/* ---- the publisher ---- */

/* P1: 0 if a session is about to begin the first block, NONE if none has begun to. */
#define NONE 255

#define NEXT (block -> next : (entry -> 0 : NONE))

inline read_next()
{
#ifdef FAULT_LAST_VALUE
	from = (block -> next : NONE)
#else
	d_step { from = NEXT }
	if
	:: from == NONE -> last = drawn; d_step { from = NEXT; last = (from == NONE -> last : 0) }
	:: from != NONE
	fi
#endif
}

/* P2: the slots in any order. */
inline read_slots()
{
	do
	:: d_step { left & 1 -> left = left & ~1; read_slot(0) }
	:: d_step { left & 2 -> left = left & ~2; read_slot(1) }
	:: left == 0 -> break
	od
}

inline read_slot(i)
{
	if
	:: slot[i] == 0
#ifdef FAULT_BOUND
	:: slot[i] > 0 -> exact = exact | bit_of(slot[i] / 2)
#else
	:: slot[i] > 0 && slot[i] % 2 == 1 -> exact = exact | bit_of(slot[i] / 2)
	:: slot[i] > 0 && slot[i] % 2 == 0 -> lowest = min(lowest, slot[i] / 2)
#endif
	fi
}

inline read_open()
{
#ifdef FAULT_NEXT_LATE
	read_slots();
	read_next();
#else
	read_next();
	read_slots();
#endif
#ifdef FAULT_LAST_VALUE
	if :: from == NONE -> last = drawn :: from != NONE fi;
#endif
}

/* What may be open: all from new_low on, and new_open. */
inline list()
{
	if
	:: from == NONE -> new_low = max(low, last); new_open = 0
	:: from == 0 -> new_low = low; new_open = open
	:: else ->
		from = min(from, lowest);
#ifdef FAULT_NEAR
		near = from - NEAR;
#else
		near = max(from - NEAR, min(low, from));
#endif
		new_open = exact & ~from_on(near);
		new_low = (exact == new_open -> from : near);
#ifdef FAULT_NOT_LISTED
		new_open = 0;
#endif
		near = 0
	fi
}

/* What the pass reads: goal is its snapshot. */
#ifdef FAULT_NO_XID
#define UNPUBLISHED goal
#elif defined(FAULT_NO_GOAL)
#define UNPUBLISHED ~upto
#else
#define UNPUBLISHED (goal & ~upto)
#endif
#define READ (visible & (from_on(low) | open) & UNPUBLISHED & from_on(is_part -> after_seq + 1 : 0))

/* A tick: all that is left, or a part, which is the first of it. */
inline publish()
{
	assert(low >= FIRST);
	rows = READ;
	if
	:: PARTS && (rows & (rows - 1)) ->
		rows = rows & -rows;
		after_seq = 0;
		do
		:: bit_of(after_seq) < rows -> after_seq++
		:: else -> break
		od;
		is_part = true;
		part_of = goal;
#ifdef FAULT_PART_LOW
		low = new_low; open = new_open
#endif
	:: rows || is_part ->
		upto = goal; low = new_low; open = new_open;
		is_part = false; part_of = 0; after_seq = 0
	:: rows == 0 && !is_part		/* no tick */
	fi;
	assert((published & rows) == 0);
	published = published | rows;
	is_over = was_last && !is_part;
	forget_pass()
}

inline forget_pass()
{
	goal = 0; exact = 0; from = 0; lowest = 0; last = 0; left = 0; rows = 0; new_low = 0; new_open = 0;
	was_last = false
}

inline pass()
{
	d_step { was_last = (running == 0 && !is_part); left = bit_of(CREATORS) - 1; lowest = NONE }
	if
	:: !is_part ->
#ifdef FAULT_SNAPSHOT_EARLY
		goal = visible;
		read_open();
		atomic {
#else
		read_open();
		atomic {
			goal = visible;
#endif
			list();
			publish()
		}
	:: atomic { is_part ->
#ifdef FAULT_PART_GOAL
			goal = visible;
#else
			goal = part_of;
#endif
			new_low = low; new_open = open;
			publish()
		}
	fi
}

proctype publisher()
{
	int goal, exact, rows, new_open;
	byte from, lowest, last, left, new_low, near;
	bool was_last, is_over;

	do
	:: !is_over ->
#if CASE == 4
		{ pass() } unless { d_step { crashed[PUBLISHER] -> crashed[PUBLISHER] = false; forget_pass() } }
#else
		pass()
#endif
	:: is_over -> break
	od;
	assert(published == visible)
}

proctype crash()
{
	byte i;

	d_step {
		entry = false; block = false; next = 0; end = 0;
		do
		:: i < CREATORS -> slot[i] = 0; mine[i] = false; crashed[i] = true; i++
		:: i == CREATORS -> crashed[i] = true; break
		od;
		i = 0;
		running--
	}
}

#if CASE == 1		/* creators, of which one goes on */
#define PROCESSES running = 2; run creator(0, 2, false); run creator(1, 1, false)
#elif CASE == 2		/* transactions that are rolled back */
#define PROCESSES running = 2; run creator(0, 2, true); run creator(1, 1, true)
#elif CASE == 3		/* passes that are divided into parts */
#define PROCESSES running = 2; run creator(0, 2, false); run creator(1, 1, false)
#elif CASE == 4		/* a crash at any time */
#define PROCESSES running = 3; run creator(0, 1, false); run creator(1, 2, false); run crash()
#else
#error "say which: -DCASE=…"
#endif

init
{
	atomic { PROCESSES; run publisher() }
}
