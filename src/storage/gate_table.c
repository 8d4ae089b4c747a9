/*
 * gate_table.c
 *	  Rows of tq_internal.gate_member: tasks that wait for others with the same
 *	  key, or that others wait for.
 *
 * Clients only insert rows.  All other changes are made by the step "admit" of
 * maintenance, under a lock that no client takes, so that a client's
 * transaction never holds up that step (lifecycle/gate.c).
 */
#include "postgres.h"

#include "storage/lock.h"

#include "columns.h"
#include "tasks.h"

TQ_NUMBERS(TQ_GATE_MEMBER_COLUMNS, gate_member);

#define TQ_LOCK_CLASS_GATES 7422

/* The order of a serial gate is that of creation; ids of tasks grow. */
static TqStatement insert_members = TQ_STATEMENT(
	"INSERT INTO tq_internal.gate_member (queue, kind, key, state, priority, task)"
	" SELECT v.queue, k.kind, k.key, CASE k.kind WHEN 1 THEN 1 ELSE v.state END,"
	" CASE k.kind WHEN 1 THEN 0 ELSE v.priority END, k.task"
	" FROM unnest($1, $2, $3, $4, $5) AS v (task, queue, priority, kinds, state)"
	" JOIN tq_internal.task_key k ON k.task = v.task AND (v.kinds >> k.kind) & 1 = 1"
	" ON CONFLICT (task, kind) DO NOTHING",
	INT8ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID);

static TqStatement take_priority = TQ_STATEMENT(
	"UPDATE tq_internal.gate_member AS m SET priority = t.priority FROM tq_internal.task t"
	" WHERE m.task = $1 AND m.kind = $2 AND t.id = m.task AND t.priority <> m.priority",
	INT8OID, INT2OID);

static TqStatement with_gates = TQ_STATEMENT(
	"SELECT DISTINCT task FROM tq_internal.gate_member WHERE task = ANY ($1)",
	INT8ARRAYOID);

#define COLUMNS "queue, kind, key, state, priority, task"

static TqStatement members_of = TQ_STATEMENT(
	"SELECT " COLUMNS
	" FROM tq_internal.gate_member WHERE task = ANY ($1) ORDER BY kind, task",
	INT8ARRAYOID);

#define MEMBERS_IN(state)                                                     \
	"(SELECT " COLUMNS                                                        \
	" FROM tq_internal.gate_member WHERE queue = $1 AND kind = $2"            \
	" AND key = $3 AND " state " ORDER BY priority DESC, task LIMIT $5)"

/* Those in READY_AGAIN are among those in READY. */
static TqStatement members_in = TQ_STATEMENT(
	"SELECT " COLUMNS
	" FROM (" MEMBERS_IN("state = $4") " UNION ALL " MEMBERS_IN(
		"state = 4 AND $4 = 1") ") AS m ORDER BY priority DESC, task LIMIT $5",
	INT4OID, INT2OID, TEXTOID, INT2OID, INT4OID);

static TqStatement count_members = TQ_STATEMENT(
	"SELECT count(*) FROM tq_internal.gate_member WHERE queue = $1 AND kind = $2 AND key = $3 AND state = $4",
	INT4OID, INT2OID, TEXTOID, INT2OID);

static TqStatement set_state = TQ_STATEMENT(
	"UPDATE tq_internal.gate_member SET state = $3 WHERE task = $1 AND kind = $2",
	INT8OID, INT2OID, INT2OID);

static TqStatement delete_member = TQ_STATEMENT(
	"DELETE FROM tq_internal.gate_member WHERE task = $1 AND kind = $2",
	INT8OID, INT2OID);

static TqStatement parked = TQ_STATEMENT(
	"SELECT task FROM tq_internal.delayed WHERE task = ANY ($1) AND visible_at = 'infinity'",
	INT8ARRAYOID);

static TqStatement strays = TQ_STATEMENT(
	"SELECT task FROM tq_internal.delayed d WHERE task = ANY ($1) AND visible_at = 'infinity'"
	" AND EXISTS (SELECT FROM tq_internal.task_key k WHERE k.task = d.task AND k.kind IN (1, 2)"
	" AND NOT EXISTS (SELECT FROM tq_internal.gate_member m WHERE m.task = k.task AND m.kind = k.kind))",
	INT8ARRAYOID);

static TqStatement one_of_each = TQ_STATEMENT(
	"SELECT min(task) FROM tq_internal.gate_member WHERE queue = $1 AND kind = $2 AND state IN (1, 4) GROUP BY key",
	INT4OID, INT2OID);

static TqStatement claims_since = TQ_STATEMENT(
	"SELECT r.started FROM tq_internal.gate_member m JOIN tq_internal.run r ON r.task = m.task"
	" WHERE m.queue = $1 AND m.kind = $2 AND m.key = $3 AND m.state IN (0, 3, 4, 5) AND r.started > $4"
	" ORDER BY r.started",
	INT4OID, INT2OID, TEXTOID, TIMESTAMPTZOID);

/* ---- clients ---- */

/* Makes tasks members of their gates; those that are already remain as they are. */
void
tq_gates_insert(const TqGateEntry *entries, int n)
{
	int64 *tasks = palloc(sizeof(int64) * Max(n, 1));
	int32 *numbers = palloc(sizeof(int32) * 4 * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		tasks[i] = entries[i].task;
		numbers[i] = entries[i].queue;
		numbers[n + i] = entries[i].priority;
		numbers[2 * n + i] = (int32) entries[i].kinds;
		numbers[3 * n + i] = entries[i].state;
	}
	if (n > 0)
		tq_spi_run(&insert_members,
				   TQ_VALUES(tq_array_int64(tasks, n),
							 tq_array_int32(numbers, n),
							 tq_array_int32(numbers + n, n),
							 tq_array_int32(numbers + 2 * n, n),
							 tq_array_int32(numbers + 3 * n, n)),
				   NULL);
}

/* Returns those of the tasks that have gates. */
int64 *
tq_gates_with(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&with_gates, TQ_VALUES(tq_array_int64(tasks, n)),
						  found);
}

/* ---- the step "admit" ---- */

/*
 * Locks all gates of this database until the end of the transaction; returns
 * false if another transaction has them locked.  Only the step takes the lock.
 * It does not wait, because a client that calls upkeep() may hold the lock as
 * long as it likes.
 */
bool
tq_gates_lock(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, TQ_LOCK_CLASS_GATES);
	return LockAcquire(&tag, ExclusiveLock, false, true) !=
		   LOCKACQUIRE_NOT_AVAIL;
}

static void
gate_read_member(TupleTableSlot *slot, void *into)
{
	*(TqGateMember *) into = (TqGateMember){
		.task = tq_row_int64(slot, Anum_gate_member_task),
		.gate = {.queue = tq_row_int32(slot, Anum_gate_member_queue),
				 .kind = (TqTaskKey) tq_row_int16(slot, Anum_gate_member_kind),
				 .key = tq_row_text(slot, Anum_gate_member_key)},
		.state = (TqGateState) tq_row_int16(slot, Anum_gate_member_state)};
}

/* Returns the positions that these tasks have at gates, the serial ones first. */
TqGateMember *
tq_gate_members_of(const int64 *tasks, int n, int *found)
{
	return tq_spi_read_all(&members_of, TQ_VALUES(tq_array_int64(tasks, n)),
						   gate_read_member, sizeof(TqGateMember), found);
}

/*
 * Returns the first members of a gate that are in this state; with READY, those
 * in READY_AGAIN too.
 */
TqGateMember *
tq_gate_members_in(const TqGate *gate, TqGateState state, int max, int *found)
{
	return tq_spi_read_all(&members_in,
						   TQ_VALUES(Int32GetDatum(gate->queue),
									 Int16GetDatum(gate->kind),
									 CStringGetTextDatum(gate->key),
									 Int16GetDatum(state), Int32GetDatum(max)),
						   gate_read_member, sizeof(TqGateMember), found);
}

/* Returns how many members of a gate are in this state. */
int64
tq_gate_count(const TqGate *gate, TqGateState state)
{
	return tq_spi_run_int64(&count_members,
							TQ_VALUES(Int32GetDatum(gate->queue),
									  Int16GetDatum(gate->kind),
									  CStringGetTextDatum(gate->key),
									  Int16GetDatum(state)),
							0);
}

/* Changes what a member is. */
void
tq_gate_set_state(TqGateMember *member, TqGateState state)
{
	if (member->state == state)
		return;
	member->state = state;
	tq_spi_run(&set_state,
			   TQ_VALUES(Int64GetDatum(member->task),
						 Int16GetDatum(member->gate.kind),
						 Int16GetDatum(state)),
			   NULL);
}

/* Gives a member the priority that its task has now. */
void
tq_gate_take_priority(const TqGateMember *member)
{
	tq_spi_run(&take_priority,
			   TQ_VALUES(Int64GetDatum(member->task),
						 Int16GetDatum(member->gate.kind)),
			   NULL);
}

/* Removes a member from its gate. */
void
tq_gate_delete(const TqGateMember *member)
{
	tq_spi_run(&delete_member,
			   TQ_VALUES(Int64GetDatum(member->task),
						 Int16GetDatum(member->gate.kind)),
			   NULL);
}

/* Returns those of the tasks whose delayed run waits for a gate. */
int64 *
tq_gate_parked(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&parked, TQ_VALUES(tq_array_int64(tasks, n)), found);
}

/*
 * Returns those of the tasks that wait for a gate and are not members of all
 * the gates that their keys may have.
 */
int64 *
tq_gate_ungated(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&strays, TQ_VALUES(tq_array_int64(tasks, n)), found);
}

/* Returns one waiting task of each gate of a queue. */
int64 *
tq_gate_one_of_each(int32 queue, TqTaskKey kind, int *found)
{
	return tq_spi_run_ids(&one_of_each,
						  TQ_VALUES(Int32GetDatum(queue), Int16GetDatum(kind)),
						  found);
}

static void
gate_read_time(TupleTableSlot *slot, void *into)
{
	*(TimestampTz *) into = tq_row_time(slot, 1);
}

/* Returns when the members of a gate were claimed after that time, in order. */
TimestampTz *
tq_gate_claims(const TqGate *gate, TimestampTz since, int *found)
{
	return tq_spi_read_all(&claims_since,
						   TQ_VALUES(Int32GetDatum(gate->queue),
									 Int16GetDatum(gate->kind),
									 CStringGetTextDatum(gate->key),
									 TimestampTzGetDatum(since)),
						   gate_read_time, sizeof(TimestampTz), found);
}
