/*
 * compat.h
 *	  Differences between the versions of PostgreSQL.
 *
 * This is the only file of tq that uses PG_VERSION_NUM.
 */
#ifndef TQ_COMPAT_H
#define TQ_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "tq needs PostgreSQL 15 or later"
#endif

#include "utils/jsonb.h"

/* Variable-length values have a header of their own since 16. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* A named wait event since 17, PG_WAIT_EXTENSION before. */
#if PG_VERSION_NUM >= 170000
#define TqWaitEvent(slot, name)                                               \
	((slot) != 0 ? (slot) : ((slot) = WaitEventExtensionNew(name)))
#else
#define TqWaitEvent(slot, name) ((void) (slot), PG_WAIT_EXTENSION)
#endif

/*
 * Soft errors of input functions since 16; before, ereturn() raises the error.
 */
#if PG_VERSION_NUM < 160000
#define ereturn(context, dummy_value, ...) ereport(ERROR, __VA_ARGS__)
#endif

/* Settings are allocated by malloc() before 16. */
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#endif

/* Intervals can be infinite since 17. */
#if PG_VERSION_NUM >= 170000
#define TqIntervalIsForever(span) INTERVAL_IS_NOEND(span)
#else
#define TqIntervalIsForever(span) ((void) (span), false)
#endif

/*
 * index_beginscan() takes an argument for instrumentation since 18, and flags
 * since 19, as scans, updates and deletes of tables do.
 */
#if PG_VERSION_NUM >= 190000
#define TqIndexBeginScan(heap, index, snapshot, nkeys)                        \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0, SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define TqIndexBeginScan(heap, index, snapshot, nkeys)                        \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define TqIndexBeginScan(heap, index, snapshot, nkeys)                        \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

#if PG_VERSION_NUM >= 190000
#define TqTableBeginScan(rel, snapshot)                                       \
	table_beginscan(rel, snapshot, 0, NULL, SO_NONE)
#define TqTableUpdate(rel, tid, slot, command, failure, mode, indexes)        \
	table_tuple_update(rel, tid, slot, command, 0, InvalidSnapshot,           \
					   InvalidSnapshot, true, failure, mode, indexes)
#define TqTableDelete(rel, tid, command, wait, failure)                       \
	table_tuple_delete(rel, tid, command, 0, InvalidSnapshot,                 \
					   InvalidSnapshot, wait, failure)
#else
#define TqTableBeginScan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL)
#define TqTableUpdate(rel, tid, slot, command, failure, mode, indexes)        \
	table_tuple_update(rel, tid, slot, command, InvalidSnapshot,              \
					   InvalidSnapshot, true, failure, mode, indexes)
#define TqTableDelete(rel, tid, command, wait, failure)                       \
	table_tuple_delete(rel, tid, command, InvalidSnapshot, InvalidSnapshot,   \
					   wait, failure, false)
#endif

/*
 * The search for a leaf page of a btree, which takes the table since 16, and no
 * snapshot since 17.  Of later versions than are known it finds none, and the
 * caller does without.  Needs access/nbtree.h.
 */
#if PG_VERSION_NUM >= 190000
#define TqBtreeSearch(index, heap, key, buffer, access)                       \
	((void) (heap), (void) (access), *(buffer) = InvalidBuffer)
#elif PG_VERSION_NUM >= 170000
#define TqBtreeSearch(index, heap, key, buffer, access)                       \
	_bt_freestack(_bt_search(index, heap, key, buffer, access))
#elif PG_VERSION_NUM >= 160000
#define TqBtreeSearch(index, heap, key, buffer, access)                       \
	_bt_freestack(_bt_search(index, heap, key, buffer, access, NULL))
#else
#define TqBtreeSearch(index, heap, key, buffer, access)                       \
	_bt_freestack(_bt_search(index, key, buffer, access, NULL))
#endif

/*
 * Whether indexes need new entries after an update, and inserting them.  Since
 * 16 there are summarizing indexes, which may need an entry when the others do
 * not.  Since 19 what is to be done is in flags.
 */
#if PG_VERSION_NUM >= 160000
#define TqUpdateIndexes TU_UpdateIndexes
#define TqNeedsEntries(indexes) ((indexes) != TU_None)
#else
#define TqUpdateIndexes bool
#define TqNeedsEntries(indexes) (indexes)
#endif
#if PG_VERSION_NUM >= 190000
#define TqInsertUpdatedEntries(result, slot, estate, indexes)                 \
	((void) ExecInsertIndexTuples(result, estate,                             \
								  (indexes) == TU_Summarizing                 \
									  ? EIIT_ONLY_SUMMARIZING                 \
									  : 0,                                    \
								  slot, NIL, NULL))
#define TqInsertEntries(result, slot, estate, conflict, arbiters)             \
	((void) ExecInsertIndexTuples(result, estate,                             \
								  (conflict) != NULL ? EIIT_NO_DUPE_ERROR     \
													 : 0,                     \
								  slot, arbiters, conflict))
#elif PG_VERSION_NUM >= 160000
#define TqInsertUpdatedEntries(result, slot, estate, indexes)                 \
	((void) ExecInsertIndexTuples(result, slot, estate, false, false, NULL,   \
								  NIL, (indexes) == TU_Summarizing))
#define TqInsertEntries(result, slot, estate, conflict, arbiters)             \
	((void) ExecInsertIndexTuples(result, slot, estate, false,                \
								  (conflict) != NULL, conflict, arbiters,     \
								  false))
#else
#define TqInsertUpdatedEntries(result, slot, estate, indexes)                 \
	((void) ExecInsertIndexTuples(result, slot, estate, false, false, NULL,   \
								  NIL))
#define TqInsertEntries(result, slot, estate, conflict, arbiters)             \
	((void) ExecInsertIndexTuples(result, slot, estate, false,                \
								  (conflict) != NULL, conflict, arbiters))
#endif

/* A hash table in shared memory has one size since 19, which is fixed. */
#if PG_VERSION_NUM >= 190000
#define TqShmemHash(name, n, control, flags)                                  \
	ShmemInitHash(name, n, control, flags)
#else
#define TqShmemHash(name, n, control, flags)                                  \
	ShmemInitHash(name, n, n, control, flags)
#endif

/* The hook of the planner takes the state of EXPLAIN, too, since 19. */
#if PG_VERSION_NUM >= 190000
#define TQ_PLANNER_PARAMETERS                                                 \
	Query *parse, const char *query_string, int cursor_options,               \
		ParamListInfo params, ExplainState *explain
#define TqPlan(plan)                                                          \
	(plan)(parse, query_string, cursor_options, params, explain)
#else
#define TQ_PLANNER_PARAMETERS                                                 \
	Query *parse, const char *query_string, int cursor_options,               \
		ParamListInfo params
#define TqPlan(plan) (plan)(parse, query_string, cursor_options, params)
#endif

/*
 * Values of jsonb are built in a JsonbInState since 19, which the caller
 * provides, and in a stack of JsonbParseState before, which the first call
 * begins.  The calls here are those of before.
 */
#if PG_VERSION_NUM >= 190000
static inline JsonbValue *
TqPushJsonbValue(JsonbInState **state, JsonbIteratorToken token,
				 JsonbValue *value)
{
	if (*state == NULL)
		*state = palloc0_object(JsonbInState);
	pushJsonbValue(*state, token, value);
	return (*state)->result;
}
#define JsonbParseState JsonbInState
#define pushJsonbValue TqPushJsonbValue
#endif

/* The number of this process's PGPROC: a field of PGPROC before 17. */
#if PG_VERSION_NUM >= 170000
#define TqMyProcNumber() ((uint32) MyProcNumber)
#else
#define TqMyProcNumber() ((uint32) MyProc->pgprocno)
#endif

/* Marks a function that does not return; before 18 by another name. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/*
 * base64 of bytes in a buffer of exactly that size.  Since 18 the bytes are
 * unsigned, and the result, which is the size, must be looked at.
 */
#if PG_VERSION_NUM >= 180000
#define TqBase64(bytes, n, text, size)                                        \
	do                                                                        \
	{                                                                         \
		int written = pg_b64_encode(bytes, n, text, size);                    \
                                                                              \
		Assert(written == (size));                                            \
		(void) written;                                                       \
	} while (0)
#else
#define TqBase64(bytes, n, text, size)                                        \
	((void) pg_b64_encode((const char *) (bytes), n, text, size))
#endif

/* The number of the file of a table, which has another name since 16. */
#if PG_VERSION_NUM >= 160000
#define TqRelFileNumber(rel) ((rel)->rd_locator.relNumber)
#else
#define TqRelFileNumber(rel) ((rel)->rd_node.relNode)
#endif

/* Ownership checks: one function per catalog before 16. */
#if PG_VERSION_NUM >= 160000
#define TqOwnsDatabase(database)                                              \
	object_ownercheck(DatabaseRelationId, database, GetUserId())
#define TqOwnsExtension(extension)                                            \
	object_ownercheck(ExtensionRelationId, extension, GetUserId())
#define TqOwnsTable(table)                                                    \
	object_ownercheck(RelationRelationId, table, GetUserId())
#else
#define TqOwnsDatabase(database) pg_database_ownercheck(database, GetUserId())
#define TqOwnsExtension(extension)                                            \
	pg_extension_ownercheck(extension, GetUserId())
#define TqOwnsTable(table) pg_class_ownercheck(table, GetUserId())
#endif

/* Returns all settings of the session, and sets *n to their number. */
#if PG_VERSION_NUM >= 160000
#define TqSettings(n) get_guc_variables(n)
#else
#define TqSettings(n) (*(n) = GetNumConfigOptions(), get_guc_variables())
#endif

/* The shared state of transaction ids has another name since 17. */
#if PG_VERSION_NUM >= 170000
#define TqTransam TransamVariables
#else
#define TqTransam ShmemVariableCache
#endif

/*
 * Returns whether commits wait for synchronous standbys.  Since 15.13, 16.9,
 * 17.5 and 18 the flag is one of two bits.  The other one, SYNC_STANDBY_INIT,
 * says that synchronous_standby_names has been read since the server was
 * started.
 */
#ifdef SYNC_STANDBY_INIT
#define TqSyncStandbysDefined()                                               \
	((WalSndCtl->sync_standbys_status & SYNC_STANDBY_INIT) != 0               \
		 ? (WalSndCtl->sync_standbys_status & SYNC_STANDBY_DEFINED) != 0      \
		 : SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0')
#else
#define TqSyncStandbysDefined() (WalSndCtl->sync_standbys_defined)
#endif

#endif /* TQ_COMPAT_H */
