/*
 * audit.c
 *	  The audit trail: which role made which call (doc/spec/taskcluster.md 8.6).
 *
 * A call writes its row at its end, in the transaction of the caller.  So a row
 * shows what has happened: a call that is refused, and one that is rolled back,
 * leave none.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "../storage/registry.h"
#include "../util/util.h"
#include "engine.h"

#define RUNS_MAX                                                              \
	1000 /* tasks of a row; a call about more leaves several rows */

static const char *
role_name(Oid role)
{
	const char *name = GetUserNameFromId(role, true);

	return name == NULL ? psprintf("%u", role) : name;
}

/* Adds the clientId of credentials, unless the one before is the same. */
static void
add_client(TqAuditRow *row, const char *client)
{
	if (client == NULL ||
		(row->nclients > 0 &&
		 strcmp(row->clients[row->nclients - 1], client) == 0))
		return;
	row->clients[row->nclients++] = unconstify(char *, client);
}

/* Adds some of the runs of a call, or of the tasks. */
static void
add_runs(TqAuditRow *row, const TqActRun *runs, int n, const char *assumed)
{
	row->clients = palloc(sizeof(char *) * Max(n, 1));
	row->tasks = palloc(sizeof(TqSlug) * Max(n, 1));
	if (n > 0 && runs[0].run_id != TQ_NO_RUN)
		row->runs = palloc(sizeof(int32) * n);
	for (row->n = 0; row->n < n; row->n++)
	{
		const TqActRun *run = &runs[row->n];

		row->tasks[row->n] = run->task_id;
		if (row->runs != NULL)
			row->runs[row->n] = run->run_id;
		add_client(row, run->client == NULL ? assumed : run->client);
	}
	if (n == 0)
		add_client(row, assumed);
}

/*
 * Writes a call to the audit trail: a row, or one for each RUNS_MAX of its
 * tasks.  Its credentials have been verified.
 */
void
tq_audit_write(const TqAct *act)
{
	const TqAuditRow common = {.at = tq_clock_now(),
							   .session_role = role_name(GetSessionUserId()),
							   .role = role_name(tq_spi_caller()),
							   .function = act->function,
							   .arguments = act->arguments};
	int done = 0;

	do
	{
		TqAuditRow row = common;

		add_runs(&row, act->runs + done, Min(act->n - done, RUNS_MAX),
				 tq_access_assumed_client());
		tq_audit_insert(&row);
		done += row.n;
	} while (done < act->n);
}
