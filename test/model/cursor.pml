/*
 * cursor.pml
 *	  The protocol of the claim cursor (src/shmem/claim_cursor.c), for spin.
 *
 * One queue, one priority, ROWS rows by their seq.  Each step that the server
 * takes under an exclusive lock, or that others see at once, is one step here: a
 * look at an index entry, the insertion or deletion of a row, the end of a
 * transaction, and what claim_cursor.c does while it has the lock of an entry in
 * exclusive mode.  What it does in share mode is a step for each number that it
 * reads or changes; a read needs one, because what it reads of the other number
 * changes in exclusive mode only.  Between the steps any process may run.  The properties: where no transaction is between its
 * end and the end of its callback, no row that can be claimed is below the
 * cursor, so that a claim which looks at all from there finds it; and a
 * transaction finds its own rows.
 *
 *	here				in src/
 *	read_cursor()		tq_cursor_read(): read_entry(), read_exclusively(), lower_to_own()
 *	end_interval()		end_interval()
 *	raise_cursor()		tq_cursor_raise(), lowest_since(); left out if the lock is busy
 *	lower()				lower_tracked(): lower_number() of both
 *	forget()			tq_lru_free_database(), of one queue; make_entry() for another
 *	track_insert()			tq_cursor_track_insert(), and _all() when there are no free notes
 *	track_delete()		tq_cursor_track_delete(), likewise
 *	tell_…(), finish()	lower_noted(), transaction_ends()
 *	prepare()			the same, at PRE_PREPARE and PREPARE
 *	roll_back_sub()		subtransaction_ends()
 *	pass(), go_on()		what a store does between S1 and S3 of claim_cursor.c
 *
 * CASE chooses the processes.  A FAULT_… is seeded, and must be found: see `run`.
 */
#ifndef ROWS
#define ROWS 3
#endif

#define BEGIN 0
#define END (ROWS + 1)
#define NOBODY 0

#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) > (b) -> (a) : (b))

/*
 * Rows: the worker that is inserting one, the one that is deleting one, and
 * whether in a subtransaction.  A row that is dead is no longer there: no process
 * can see the difference, and the same entry may come again (a priority that is
 * changed twice).
 */
bool is_there[ROWS + 1];
byte made_by[ROWS + 1];
byte taken_by[ROWS + 1];
bool taken_in_sub[ROWS + 1];

byte telling = 0;		/* are between their end and that of the callback */

/* The entry of the queue. */
bool entry;
byte identity;
byte low;
byte lowered;
byte generation;
byte filling[2];		/* Recent, for blocks of 1 and of 2 intervals */
byte before[2];
byte sharers = 0;		/* have the lock of the entry in share mode, between two steps */

#define is_live(s) (is_there[s] && made_by[s] == NOBODY && taken_by[s] == NOBODY)

/* To that worker's transaction: can it have the row, or is it (a) dead? */
#define can_have(s, me) (is_there[s] && taken_by[s] == NOBODY && (made_by[s] == NOBODY || made_by[s] == me))
#define is_dead(s, me) (!is_there[s] || taken_by[s] == me)

/* (b) may be passed over where nothing is prepared: CASE 7 is strict. */
#if CASE == 7 && !defined(FAULT_STRICT)
#define MAY_PASS_RUNNING false
#else
#define MAY_PASS_RUNNING true
#endif

inline check()
{
	if
	:: entry && telling == 0 ->
		i = 1;
		do
		:: i <= ROWS -> assert(!is_live(i) || low <= i); i++
		:: else -> break
		od;
		i = 0
	:: else
	fi
}

inline forget()
{
	entry = false;
	low = BEGIN;
	lowered = END;
	generation = 0;
	filling[0] = END; filling[1] = END;
	before[0] = END; before[1] = END
}

/* What needs the lock in exclusive mode: the faults take it in share mode. */
#ifdef FAULT_SHARED_RAISE
#define CAN_RAISE true
#else
#define CAN_RAISE (sharers == 0)
#endif
#ifdef FAULT_SHARED_END
#define CAN_END true
#else
#define CAN_END (sharers == 0)
#endif

inline end_interval()
{
	if
	:: lowered < END ->
		before[0] = filling[0];
		filling[0] = lowered;
		if
		:: generation % 2 == 0 -> before[1] = filling[1]; filling[1] = lowered
		:: else -> filling[1] = min(filling[1], lowered)
		fi;
		generation++;
		lowered = END
	:: else
	fi
}

/* T4, in share mode: one step if `low` stays, as it does not rise meanwhile. */
inline lower(seq)
{
	if
	:: d_step { entry && low > seq -> sharers++; lowered = min(lowered, seq) }
		d_step { low = min(low, seq); sharers-- }
	:: d_step { entry && low <= seq -> lowered = min(lowered, seq) }
	:: !entry
	fi
}

/*
 * Notes.  The subtransaction of one is the last that there was: 1 is the
 * transaction itself, 2 the subtransaction within it.
 */
#define latest(level) (in_sub || level == 2 -> 2 : 1)

inline track_insert(seq)
{
	if
	:: made = min(made, seq)
	:: overflows -> all_noted = latest(all_noted)
	fi
}

inline track_delete(seq)
{
	if
	:: taken = min(taken, seq); taken_level = latest(taken_level)
	:: overflows -> all_noted = latest(all_noted)
	fi
}

inline tell_made()
{
	if :: made < END -> lower(made) :: else fi;
	if :: d_step { all_noted > 0 && sharers == 0 -> forget() } :: all_noted == 0 fi
}

inline tell_taken(since)
{
	if :: taken < END && taken_level >= since -> lower(taken) :: else fi;
	if :: d_step { all_noted >= since && sharers == 0 -> forget() } :: all_noted < since fi
}

/* S1 */
inline read_cursor()
{
	if
	:: all_noted > 0 -> cur_low = BEGIN
	:: else ->
		if
		:: !entry -> entry = true; identity++	/* none has the lock: who has, has found it */
		:: entry && CAN_END -> end_interval()
		:: entry
		fi;
		cur_identity = identity;
		cur_generation = generation;
		cur_low = low;
#ifndef FAULT_OWN
		cur_low = min(cur_low, made)
#endif
	fi;
	i = 1;
	do
	:: i <= ROWS -> assert(!(made_by[i] == me && can_have(i, me)) || cur_low <= i); i++
	:: else -> break
	od;
	i = 0
}

/* The lowest of the values lowered to since S1, or lower. */
#define ended (generation - cur_generation)
#ifdef FAULT_OVERFLOW
#define OVERFLOWN END
#else
#define OVERFLOWN BEGIN
#endif
#if CASE == 5
#define lowest_since (ended == 0 -> END : (ended == 1 -> min(filling[0], before[0]) : OVERFLOWN))
#else
#define lowest_since (ended == 0 -> END : (ended == 1 -> min(filling[0], before[0]) : \
	(ended == 2 -> min(filling[1], before[1]) : OVERFLOWN)))
#endif

#ifdef FAULT_IDENTITY
#define is_same (cur_identity > 0)
#else
#define is_same (cur_identity == identity)
#endif

/* S3 */
inline raise_cursor()
{
	if
	:: entry && is_same && upto > cur_low && CAN_RAISE ->
		end_interval();
#ifdef FAULT_NO_RING
		low = max(low, upto)
#else
		low = max(low, min(upto, lowest_since))
#endif
	:: else
	fi
}

/* Delete the row; it is noted before that. */
inline take()
{
#ifdef FAULT_NOTE_LATE
	unnoted = s;
#else
	track_delete(s);
#endif
	taken_by[s] = me;
	taken_in_sub[s] = in_sub
}

/*
 * Where the scan has come to, the cursor may be raised to.  The fault is a scan
 * that ends soon, behind its last entry, and is taken to have ended at that.
 */
#ifdef FAULT_NEAR
#define HAS_ENTRY (is_there[s] || !goes_on)
#else
#define HAS_ENTRY true
#endif

/* S2: one entry.  Also what can be had may be left: for its deadline, or a lock. */
inline look()
{
	if
	:: can_have(s, me) ->
		if
		:: take()
		:: stopped = true
		fi
	:: else -> stopped = stopped || !(is_dead(s, me) || MAY_PASS_RUNNING)
	fi;
	if :: !stopped && HAS_ENTRY -> upto = s + 1 :: else fi;
	s++
}

/*
 * The next pass of a claim reads again, and relies on it that what was passed
 * over before still is.
 */
inline go_on()
{
	read_cursor();
#ifndef FAULT_GO_ON
	if
	:: cur_low < upto -> stopped = true; upto = cur_low
	:: else
	fi
#endif
}

/*
 * A pass begins with a read; it ends before any entry, and perhaps by an error.
 * Another may go on from there.
 */
inline pass()
{
	atomic { read_cursor(); s = (cur_low > 1 -> cur_low : 1); upto = cur_low }
	do
	:: atomic { s <= ROWS -> look() }
#ifdef FAULT_LATE_GENERATION
		d_step { if :: cur_identity == identity && entry -> cur_generation = generation :: else fi }
#endif
	:: d_step { goes_on && s > 1 && s <= ROWS -> raise_cursor(); check() }
		atomic { go_on() }
	:: break
	od;
	atomic {
		if
		:: errors -> failed = true
		:: true ->
#ifdef FAULT_NOTE_LATE
			if :: unnoted > 0 -> track_delete(unnoted) :: else fi;
#endif
			if :: s > ROWS && !stopped -> upto = END :: else fi;
			raise_cursor();
			check()
		fi;
#ifdef FAULT_NOTE_LATE
		unnoted = 0;
#endif
		s = 0; upto = 0; stopped = false;
		cur_low = 0; cur_generation = 0; cur_identity = 0
	}
}

/* Insert a row: the next one, or one with a number of long ago. */
inline insert()
{
	atomic {
		if
		:: s = 1
		:: s = 2
		:: s = ROWS
		fi;
		if
		:: !is_there[s] -> track_insert(s); is_there[s] = true; made_by[s] = me
		:: else
		fi;
		s = 0
	}
}

inline roll_back_sub()
{
	d_step {
		i = 1;
		do
		:: i <= ROWS ->
			if :: taken_by[i] == me && taken_in_sub[i] -> taken_by[i] = NOBODY; taken_in_sub[i] = false :: else fi;
			i++
		:: else -> break
		od;
		i = 0;
		telling++
	}
#ifndef FAULT_SUBABORT
	tell_taken(2);
#endif
	d_step {
		telling--;
		check();
		in_sub = false;
		failed = false
	}
}

/* T3: what the transaction did is true, or undone, for all at once. */
inline become_visible(committed)
{
	i = 1;
	do
	:: i <= ROWS ->
		if
		:: taken_by[i] == me ->
			is_there[i] = !committed && made_by[i] == NOBODY;
			taken_by[i] = NOBODY; taken_in_sub[i] = false
		:: else ->
			if :: made_by[i] == me -> is_there[i] = committed :: else fi
		fi;
		if :: made_by[i] == me -> made_by[i] = NOBODY :: else fi;
		i++
	:: else -> break
	od;
	i = 0
}

inline drop_notes()
{
	made = END; taken = END; taken_level = 0; all_noted = 0
}

/* T3, and T4 in the callback. */
inline finish()
{
#ifdef FAULT_LOWER_EARLY
	tell_made(); tell_taken(1);
	d_step { drop_notes() }
#endif
	if
	:: d_step { !failed -> become_visible(true); telling++ }
#ifndef FAULT_COMMIT
		tell_made();
#endif
		d_step { telling--; drop_notes(); check() }
	:: d_step { true -> become_visible(false); telling++ }
#ifndef FAULT_ABORT
		tell_taken(1);
#endif
		d_step { telling--; drop_notes(); check() }
	fi
}

/* The session that ends it later has no callback of tq. */
inline prepare()
{
#ifndef FAULT_PREPARE
	tell_made(); tell_taken(1);
#endif
	d_step { drop_notes() }
	if
	:: d_step { true -> become_visible(true); check() }
	:: d_step { true -> become_visible(false); check() }
	fi
}

/*
 * A session: how many transactions it has, how many passes and insertions each
 * of them; whether it has savepoints, prepares, fails, has no free notes,
 * has claims of many passes.
 */
proctype worker(byte me; byte transactions; byte passes; byte inserts; bool subs; bool prepares;
	bool errors; bool overflows; bool goes_on)
{
	byte i, s, upto, p, n;
	byte made = END, taken = END, taken_level, all_noted;
	byte cur_low, cur_generation, cur_identity;
	bool in_sub, had_sub, stopped, failed;
#ifdef FAULT_NOTE_LATE
	byte unnoted;
#endif

	do
	:: atomic { transactions > 0 -> transactions-- }
		do
		:: atomic { !failed && p < passes -> p++ } pass()
		:: atomic { !failed && n < inserts -> n++ } insert()
		:: atomic { !failed && subs && !had_sub -> in_sub = true; had_sub = true }
		:: atomic { in_sub && !failed -> in_sub = false }		/* RELEASE */
		:: in_sub -> roll_back_sub()
		:: atomic { !in_sub || failed -> in_sub = false; had_sub = false; p = 0; n = 0; break }
		od;
		if
		:: prepares && !failed -> prepare()
		:: true -> finish()
		fi;
		failed = false
	:: break
	od
}

/* Another queue wants the entry. */
proctype evict(byte times)
{
	do
	:: d_step { times > 0 && entry && sharers == 0 -> forget(); times-- }
	:: break
	od
}

/*
 * The processes, by CASE.  A worker's arguments: its number, transactions,
 * passes, inserts; subs, prepares, errors, overflows, goes_on.
 */
#if CASE == 1		/* claims, and numbers that come late */
#define PROCESSES run worker(1, 2, 1, 0, 0, 0, 0, 0, 0); \
	run worker(2, 1, 1, 0, 0, 0, 0, 0, 0); \
	run worker(3, 2, 0, 1, 0, 0, 0, 0, 0)
#elif CASE == 2		/* savepoints and errors */
#define PROCESSES run worker(1, 1, 2, 0, 1, 0, 1, 0, 0); \
	run worker(2, 1, 2, 0, 1, 0, 1, 0, 0)
#elif CASE == 3		/* rows that a transaction inserts and claims itself */
#define PROCESSES run worker(1, 1, 1, 1, 1, 0, 0, 0, 0); \
	run worker(2, 1, 1, 0, 0, 0, 0, 0, 0); \
	run worker(3, 1, 0, 1, 0, 0, 0, 0, 0)
#elif CASE == 4		/* more queues than entries */
#define PROCESSES run worker(1, 1, 1, 0, 0, 0, 0, 0, 0); \
	run worker(2, 1, 1, 0, 0, 0, 0, 0, 0); \
	run worker(3, 1, 0, 1, 0, 0, 0, 0, 0); \
	run evict(2)
#elif CASE == 5		/* more intervals than the sums go back, which is one here */
#define PROCESSES run worker(1, 1, 1, 0, 0, 0, 0, 0, 0); \
	run worker(2, 1, 2, 0, 0, 0, 0, 0, 0); \
	run worker(3, 2, 0, 1, 0, 0, 0, 0, 0)
#elif CASE == 6		/* more notes than fit */
#define PROCESSES run worker(1, 1, 1, 0, 1, 0, 0, 1, 0); \
	run worker(2, 1, 1, 0, 0, 0, 0, 1, 0); \
	run worker(3, 1, 0, 1, 0, 0, 0, 1, 0)
#elif CASE == 7		/* prepared transactions */
#define PROCESSES run worker(1, 1, 1, 1, 0, 1, 0, 0, 0); \
	run worker(2, 1, 1, 0, 0, 1, 0, 0, 0); \
	run worker(3, 1, 1, 0, 0, 0, 0, 0, 0)
#elif CASE == 8		/* passes that go on where another has ended */
#define PROCESSES run worker(1, 1, 1, 0, 0, 0, 0, 0, 1); \
	run worker(2, 1, 1, 0, 0, 0, 0, 0, 1); \
	run worker(3, 2, 0, 1, 0, 0, 0, 0, 0)
#else
#error "say which: -DCASE=…"
#endif

init
{
	byte i;

	atomic {
		forget();
		i = 1;
		do
		:: i <= ROWS ->
			if
			:: is_there[i] = true
			:: skip
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		PROCESSES
	}
	/* quiescence */
	d_step { _nr_pr == 1 -> assert(telling == 0); check() }
}
