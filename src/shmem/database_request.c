/*
 * database_request.c
 *	  What a transaction requests of background processes at its commit.
 *
 * A due time noted in a savepoint that was rolled back may be too early, which
 * costs one cycle without work.  A prepared transaction drops its notes and
 * requests; COMMIT PREPARED wakes the maintenance worker in any case
 * (utility_hook.c).
 */
#include "postgres.h"

#include "access/xact.h"

#include "shmem.h"

#define REQUESTS_MAX 16

/* What this transaction has noted for the maintenance worker. */
static TimestampTz noted_due = DT_NOEND;
static bool noted_message = false;
static bool has_woken = false; /* a session that waits, since the last end */
static bool has_work = false;  /* any of these has been set, or a request */

/*
 * A request to background processes.  It belongs to the subtransaction that
 * made it, and is dropped when that is rolled back.
 */
typedef struct Request
{
	TqRequest what;
	Oid database;
	int level; /* nesting level of the transaction */
} Request;

static Request requests[REQUESTS_MAX];
static int nrequests = 0;

/* Notes that this transaction writes something that is due at that time. */
void
tq_request_cycle(TimestampTz due)
{
	noted_due = Min(noted_due, due);
	has_work = true;
}

/* Notes that this transaction writes something that is to be published. */
void
tq_request_publication(void)
{
	noted_message = has_work = true;
}

/* Notes that this process has woken a session that waits to claim. */
void
tq_request_note_woken(void)
{
	has_woken = has_work = true;
}

/*
 * Notes a request for a database, which is sent when this transaction commits.
 */
void
tq_request_add(TqRequest what, Oid database)
{
	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i].what == what && requests[i].database == database)
			return;
	}
	/*
	 * So many requests concern many databases: the worst is a restart that is
	 * lost.
	 */
	if (nrequests == REQUESTS_MAX)
		nrequests--;
	has_work = true;
	requests[nrequests++] =
		(Request){.what = what,
				  .database = database,
				  .level = GetCurrentTransactionNestLevel()};
}

static void
send_requests(void)
{
	for (int i = 0; i < nrequests; i++)
	{
		/* Send a request to the process that it is for. */
		switch (requests[i].what)
		{
			case TQ_REQUEST_WAKE:
				tq_maintenance_slot_wake(requests[i].database, TQ_LONG_AGO,
										 true);
				break;
			case TQ_REQUEST_RESTART:
				(void) tq_maintenance_slot_stop(requests[i].database, false);
				break;
			case TQ_REQUEST_START:
				tq_launcher_ask(requests[i].database);
				tq_maintenance_slot_wake(requests[i].database, TQ_LONG_AGO,
										 true);
				break;
			case TQ_REQUEST_RESCAN:
				tq_launcher_ask(InvalidOid);
				break;
		}
	}
}

static void
requests_commit(void)
{
	if (nrequests > 0)
		send_requests();
	if (noted_message && has_woken)
		tq_maintenance_slot_expect_claim(MyDatabaseId);
	if (noted_due != DT_NOEND || noted_message)
		tq_maintenance_slot_wake(MyDatabaseId, noted_due, noted_message);
}

/*
 * Drops the requests of a transaction or subtransaction that is rolled back.
 * A request to look for databases is sent at the end nevertheless, because it
 * changes nothing.
 */
static void
requests_abort(SubTransactionId id)
{
	int level = GetCurrentTransactionNestLevel();
	int kept = 0;

	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i].level < level || requests[i].what == TQ_REQUEST_RESCAN)
			requests[kept++] = requests[i];
	}
	nrequests = kept;
	if (id == TopSubTransactionId)
		send_requests();
}

/* Passes the requests of a subtransaction to its parent. */
static void
requests_subcommit(SubTransactionId id, SubTransactionId parent)
{
	int level = GetCurrentTransactionNestLevel();

	for (int i = 0; i < nrequests; i++)
		requests[i].level = Min(requests[i].level, level - 1);
}

static void
drop_requests(void)
{
	noted_due = DT_NOEND;
	noted_message = has_woken = has_work = false;
	nrequests = 0;
}

const TqXactEnd tq_request_xact_end = {.has_work = &has_work,
									   .commit = requests_commit,
									   .abort = requests_abort,
									   .reset = drop_requests,
									   .subcommit = requests_subcommit};
