/*
 * message_record.c
 *	  How the messages of a row are stored.
 *
 * The column tq_internal.message.records begins with the id of the first task,
 * eight bytes in network byte order, and the number of records, two bytes.
 * Each record has:
 *	- the exchange in the upper half of a byte, the state in the lower one;
 *	- flags in the upper half of a byte, the priority in the lower one;
 *	- the id of the task, as the difference from that of the record before, with
 *	  the sign in the lowest bit, seven bits a byte, the lowest first; the
 *	  highest bit of a byte says that another follows;
 *	- run and last run, two bytes each in network byte order, unless a flag says
 *	  that both are 0, or that there is none.
 *
 * So the two messages of a new task take six bytes where many are created in a
 * call, and need no compression, which took a sixth of that call.
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "../core/types.h"
#include "../util/compat.h"
#include "log.h"

/* Flags; without one, the record has run and last run. */
#define FIRST_RUN 0x10 /* both are 0 */
#define NO_RUN 0x20    /* both are -1 */

#define HEADER_BYTES 10
#define RECORD_MAX 16 /* bytes of the longest record */

/* The bytes of a value that is not toasted, which may have a short header. */
#define BYTES(records) ((const uint8 *) VARDATA_ANY(records))

/*
 * Returns a column without records, with room for n of them, the first of which
 * will be about that task.
 */
bytea *
tq_records_begin(int n, int64 task)
{
	bytea *records = palloc(VARHDRSZ + HEADER_BYTES + RECORD_MAX * n);
	uint64 first = pg_hton64((uint64) task);

	SET_VARSIZE(records, VARHDRSZ + HEADER_BYTES);
	memset(VARDATA(records), 0, HEADER_BYTES);
	memcpy(VARDATA(records), &first, sizeof(first));
	return records;
}

/* Returns the number of records. */
int
tq_records_count(const bytea *records)
{
	return VARSIZE_ANY_EXHDR(records) < HEADER_BYTES
			   ? 0
			   : BYTES(records)[8] << 8 | BYTES(records)[9];
}

static uint8 *
put_number(uint8 *to, int64 number)
{
	uint64 rest = (uint64) number << 1 ^ (uint64) (number >> 63);

	for (; rest > 0x7F; rest >>= 7)
		*to++ = (uint8) (rest | 0x80);
	*to++ = (uint8) rest;
	return to;
}

static uint8 *
put_run(uint8 *to, int run)
{
	*to++ = (uint8) (run >> 8);
	*to++ = (uint8) run;
	return to;
}

/* Adds a record; `before` is the task of the one before it, or 0. */
void
tq_records_add(bytea *records, const TqRecord *record, int64 before)
{
	uint8 *header = (uint8 *) VARDATA(records);
	uint8 *to = (uint8 *) records + VARSIZE(records);
	int n = tq_records_count(records) + 1;
	int flags = 0;

	if (record->run_id == 0 && record->last_run == 0)
		flags = FIRST_RUN;
	else if (record->run_id == -1 && record->last_run == -1)
		flags = NO_RUN;
	*to++ = (uint8) ((int) record->exchange << 4 | (int) record->state);
	*to++ = (uint8) (flags | record->priority);
	to = put_number(to, record->task - before);
	if (flags == 0)
		to = put_run(put_run(to, record->run_id), record->last_run);
	(void) put_run(header + 8, n);
	SET_VARSIZE(records, to - (uint8 *) records);
}

/* ---- reading ---- */

/* Returns the place of the first record. */
const uint8 *
tq_records_first(const bytea *records)
{
	return BYTES(records) + HEADER_BYTES;
}

static void
refuse_damaged(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED), errmsg("message is damaged"),
			 errdetail("A row of tq_internal.message ends within a record."),
			 errhint("Restore the table from a backup, or delete the row.")));
}

static const uint8 *
get_byte(const uint8 *at, const uint8 *end, int *byte)
{
	if (at >= end)
		refuse_damaged();
	*byte = *at;
	return at + 1;
}

static const uint8 *
get_number(const uint8 *at, const uint8 *end, int64 *number)
{
	uint64 all = 0;
	int byte;
	int shift = 0;

	do
	{
		at = get_byte(at, end, &byte);
		all |= (uint64) (byte & 0x7F) << Min(shift, 63);
		shift += 7;
	} while (byte & 0x80);
	*number = (int64) (all >> 1) ^ -(int64) (all & 1);
	return at;
}

static const uint8 *
get_run(const uint8 *at, const uint8 *end, int *run)
{
	int high;
	int low;

	at = get_byte(get_byte(at, end, &high), end, &low);
	*run = (int16) (high << 8 | low);
	return at;
}

/*
 * Reads the record at that place, and returns the place of the next; `before`
 * is the task of the one before it, or 0.
 */
const uint8 *
tq_records_next(const bytea *records, const uint8 *at, int64 before,
				TqRecord *record)
{
	const uint8 *end = BYTES(records) + VARSIZE_ANY_EXHDR(records);
	int kind;
	int flags;

	at = get_byte(get_byte(at, end, &kind), end, &flags);
	at = get_number(at, end, &record->task);
	record->task += before;
	record->exchange = (TqExchange) (kind >> 4);
	record->state = (TqState) (kind & 0x0F);
	record->priority = flags & 0x0F;
	record->run_id = record->last_run = flags & FIRST_RUN ? 0 : -1;
	if (!(flags & (FIRST_RUN | NO_RUN)))
		at = get_run(get_run(at, end, &record->run_id), end,
					 &record->last_run);
	return at;
}
