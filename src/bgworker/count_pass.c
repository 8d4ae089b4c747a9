/*
 * count_pass.c
 *	  Counts rows for the counters in shared memory.
 *
 * The maintenance worker counts all gauges of its database when it has none:
 * after a start of the server, and after rows were written by other statements
 * than those of tq.  Then it counts the groups that had counters before the
 * start, one in each cycle.  While such statements go on, it counts again after
 * a pause: a second, or twenty times as long as the last count took.
 */
#include "postgres.h"

#include "../events/events.h"
#include "bgworker.h"

#define PAUSE_MS 1000
#define PAUSE_RATIO 20

/* When the gauges may be counted again. */
static TimestampTz next_count = TQ_LONG_AGO;

/*
 * Returns when there is something to count: now, after the pause, or DT_NOEND.
 * The caller has called tq_call_begin().
 */
TimestampTz
tq_count_pass_due(TimestampTz now)
{
	Oid extension = tq_catalog_locked_table();

	tq_counts_settle();
	/* If the clock was set back, a count does not wait for it. */
	if (next_count > tq_clock_add_ms(now, TQ_HOUR_MS))
		next_count = now;
	if (tq_count_must_build(extension, tq_count_identity()))
		return Max(now, next_count);
	return tq_count_group_to_build(extension) != 0 ? now : DT_NOEND;
}

/* Counts the gauges, or else a group; in a transaction of its own. */
void
tq_count_pass(void)
{
	TimestampTz began = tq_clock_now();
	TimestampTz end;
	Oid extension;

	tq_call_begin(true);
	extension = tq_catalog_locked_table();
	if (!tq_count_must_build(extension, tq_count_identity()))
		tq_group_count_again(tq_count_group_to_build(extension));
	else
	{
		/* set before, so that an error is followed by a pause, too */
		next_count = tq_clock_add_ms(began, PAUSE_MS);
		(void) tq_count_build_gauges();
		end = tq_clock_now();
		next_count = tq_clock_add_ms(end, Max(PAUSE_MS, (end - began) / 1000 *
															PAUSE_RATIO));
	}
	tq_call_end();
}
