/*
 * trigger.c
 *	  Triggers for rows that SQL writes: who may write them, pending runs,
 *	  timers and scopes.
 *
 * They are for statements that write the tables: a restore, replication, a
 * superuser's DELETE.  Storage writes through the access methods, which fire no
 * trigger, and calls the claim cursor and the maintenance worker itself.  What
 * follows from that is decided by claim_cursor.c and database_request.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "../storage/registry.h"

PG_FUNCTION_INFO_V1(tq_guard_rows);
PG_FUNCTION_INFO_V1(tq_track_pending);
PG_FUNCTION_INFO_V1(tq_track_due);
PG_FUNCTION_INFO_V1(tq_track_grants);
PG_FUNCTION_INFO_V1(tq_track_queue_settings);
PG_FUNCTION_INFO_V1(tq_track_shard);

/* ---- the owner ---- */

/* Raises the error of a call outside of the triggers of tq's tables. */
static void
refuse_guard(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		 errmsg("tq_internal.guard_rows() is for the triggers of tq's tables"),
		 errdetail("It is called before a statement that writes a table."),
		 errhint("Do not call it, nor use it for other triggers.")));
}

/*
 * tq_internal.guard_rows() returns trigger
 *
 * Refuses a statement that writes a table of tq, unless the effective role owns
 * the table: members of pg_write_all_data have the right to write every table.
 * The statements of a call of tq have the rights of the owner (util/spi.c).
 */
Datum
tq_guard_rows(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		refuse_guard();
	if (!TqOwnsTable(RelationGetRelid(trigger->tg_relation)))
		ereport(
			ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for table \"%s\"",
					RelationGetRelationName(trigger->tg_relation)),
			 errdetail(
				 "Only the owner of the extension writes the tables of tq; role \"%s\" is not a member of it.",
				 GetUserNameFromId(GetUserId(), false)),
			 errhint("Call the functions of schema tq.")));
	return PointerGetDatum(NULL);
}

/* ---- pending ---- */

/* Raises the error of a call outside of the triggers of tq_internal.pending. */
static void
refuse_pending(void)
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
		refuse_pending();
	value = heap_getattr(row, number, columns, &isnull);
	if (isnull)
		refuse_pending();
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
		refuse_pending();
	note(tq_cursor_track_delete, trigger->tg_relation, trigger->tg_trigtuple);
	return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
													  : trigger->tg_trigtuple;
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
		refuse_pending();
	tq_count_doubt();
	if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
		tq_cursor_track_all();
	else if (!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		refuse_pending();
	else if (TRIGGER_FIRED_BEFORE(trigger->tg_event))
		return PointerGetDatum(before_row(trigger));
	else
	{
		/* Record that a row was inserted or moved. */
		if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
			refuse_pending();
		note(tq_cursor_track_insert, trigger->tg_relation,
			 TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)
				 ? trigger->tg_newtuple
				 : trigger->tg_trigtuple);
	}
	return PointerGetDatum(NULL);
}

/* ---- timers ---- */

/* Raises the error of a call outside of the triggers of the timers. */
static void
refuse_due(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		 errmsg(
			 "tq_internal.track_due() is for the triggers of tq_internal.claim_timer, tq_internal.timer and tq_internal.delayed"),
		 errdetail("It is called after a row is inserted or updated."),
		 errhint("Do not call it, nor use it for other triggers.")));
}

/*
 * tq_internal.track_due() returns trigger
 *
 * Requests a cycle of maintenance at the time of a row that a statement has
 * written, so that the maintenance worker does not sleep past it.  The time is
 * the first column.
 */
Datum
tq_track_due(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	TupleDesc columns;
	HeapTuple row;
	bool isnull;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		!TRIGGER_FIRED_AFTER(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		refuse_due();
	columns = RelationGetDescr(trigger->tg_relation);
	if (SPI_gettypeid(columns, 1) != TIMESTAMPTZOID)
		refuse_due();
	row = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
													 : trigger->tg_trigtuple;
	tq_request_cycle(
		DatumGetTimestampTz(heap_getattr(row, 1, columns, &isnull)));
	return PointerGetDatum(NULL);
}

/* ---- what sessions cache ---- */

/*
 * Raises an error unless a trigger function is called after a statement that
 * writes its table.
 */
static void
check_statement_trigger(FunctionCallInfo fcinfo, const char *function,
						const char *table)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (CALLED_AS_TRIGGER(fcinfo) && TRIGGER_FIRED_AFTER(trigger->tg_event) &&
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("tq_internal.%s() is for the trigger of tq_internal.%s",
					function, table),
			 errdetail(
				 "It is called after a statement that writes that table."),
			 errhint("Do not call it, nor use it for other triggers.")));
}

/*
 * tq_internal.track_grants() returns trigger
 *
 * Makes all sessions read tq_internal.scope_grant again, whatever has written
 * it: a function of tq, a restore, replication, a superuser.
 */
Datum
tq_track_grants(PG_FUNCTION_ARGS)
{
	check_statement_trigger(fcinfo, "track_grants", "scope_grant");
	tq_grants_changed();
	return PointerGetDatum(NULL);
}

/*
 * tq_internal.track_queue_settings() returns trigger
 *
 * The same for tq_internal.queue_settings.
 */
Datum
tq_track_queue_settings(PG_FUNCTION_ARGS)
{
	check_statement_trigger(fcinfo, "track_queue_settings", "queue_settings");
	tq_queue_settings_changed();
	return PointerGetDatum(NULL);
}

/*
 * tq_internal.track_shard() returns trigger
 *
 * The same for tq_internal.shard.
 */
Datum
tq_track_shard(PG_FUNCTION_ARGS)
{
	check_statement_trigger(fcinfo, "track_shard", "shard");
	tq_shard_changed();
	return PointerGetDatum(NULL);
}
