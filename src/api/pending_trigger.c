/*
 * pending_trigger.c
 *	  Trigger that maintains the claim cursor when SQL writes
 *	  tq_internal.pending.
 *
 * Knows which columns the cursor needs.  The trigger is for statements that
 * write the table: a restore, replication, a superuser's DELETE.  The other
 * files of this layer write it through the access methods, which fire no
 * trigger, and call the cursor themselves.  What follows from that is decided
 * by claim_cursor.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "../shmem/claim_cursor.h"

PG_FUNCTION_INFO_V1(tq_track_pending);

/* Raises the error of a call outside of the triggers of tq_internal.pending. */
static void
refuse_call(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		 errmsg(
			 "tq_internal.track_pending() is for the triggers of tq_internal.pending"),
		 errdetail("It is called before a row is updated or deleted, after "
				   "one is inserted or updated, and after TRUNCATE."),
		 errhint("Do not call it, nor use it for other triggers.")));
}

/*
 * Returns a column by name; refuses a table whose column is missing, has
 * another type, or is null.
 */
static Datum
field(HeapTuple row, TupleDesc columns, const char *name, Oid type)
{
	int number = SPI_fnumber(columns, name);
	Datum value;
	bool isnull;

	if (number <= 0 || SPI_gettypeid(columns, number) != type)
		refuse_call();
	value = heap_getattr(row, number, columns, &isnull);
	if (isnull)
		refuse_call();
	return value;
}

typedef void (*Note)(Oid pending, int32 queue, int priority, int64 seq);

/* Passes the position of a row in its queue to a function of the cursor. */
static void
note(Note what, Relation pending, HeapTuple row)
{
	TupleDesc columns = RelationGetDescr(pending);

	what(RelationGetRelid(pending),
		 DatumGetInt32(field(row, columns, "queue", INT4OID)),
		 DatumGetInt16(field(row, columns, "priority", INT2OID)),
		 DatumGetInt64(field(row, columns, "seq", INT8OID)));
}

/*
 * Records that a row is about to be deleted or moved; returns the row with
 * which the statement continues.
 */
static HeapTuple
before_row(TriggerData *trigger)
{
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		refuse_call();
	note(tq_cursor_track_delete, trigger->tg_relation, trigger->tg_trigtuple);
	return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
													  : trigger->tg_trigtuple;
}

/* Records that a row was inserted or moved. */
static void
after_row(TriggerData *trigger)
{
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		refuse_call();
	note(tq_cursor_track_insert,
		 trigger->tg_relation,
		 TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
													: trigger->tg_trigtuple);
}

/*
 * tq_internal.track_pending() returns trigger
 *
 * Records for the claim cursor which rows of tq_internal.pending a statement
 * inserts, deletes or moves.  A deletion is recorded before it happens,
 * because AFTER triggers do not fire if the statement fails half way, and
 * scanners of other sessions may have passed over the deleted row by then.
 */
Datum
tq_track_pending(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		refuse_call();
	if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
		tq_cursor_track_all();
	else if (!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		refuse_call();
	else if (TRIGGER_FIRED_BEFORE(trigger->tg_event))
		return PointerGetDatum(before_row(trigger));
	else
		after_row(trigger);
	return PointerGetDatum(NULL);
}
