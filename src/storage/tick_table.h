/*
 * tick_table.h
 *	  Rows of tq_internal.tick: the publications.
 */
#ifndef TQ_TICK_TABLE_H
#define TQ_TICK_TABLE_H

#include "access/transam.h"
#include "datatype/timestamp.h"

/*
 * A tick is one publication: the messages that became visible between two
 * snapshots, or a part of them if they are many.
 */
typedef struct TqTick
{
	int64 first_id;
	int64 last_id;
	TimestampTz published;
	int64 unsent; /* NOTIFY is still to be sent from this id on; 0: none */
	int messages;
	int segments;
	int segment;
	Datum since;
	Datum upto; /* what it sees has been published, up to and with this tick */
	FullTransactionId xid; /* the publishing transaction */
	int timeline;          /* of the server, when it published the tick */
	Datum part_of;         /* 0, or the snapshot that later parts complete */
	int64 after_seq; /* a part has the rows that xids wrote between the two */
	int64 upto_seq;
	Datum xids; /* 0: the tick is not a part */
} TqTick;

extern bool tq_publisher_try_lock(void);
extern void tq_publisher_unlock(void);
extern Datum tq_snapshot_now(void);
extern Datum tq_snapshot_acked(void);
extern void tq_tick_last(TqTick *tick);
extern int64 tq_tick_last_id(void);
extern int64 tq_tick_shown_id(void);
extern void tq_tick_begin_ids(void);
extern TimestampTz tq_tick_oldest(void);
extern TimestampTz tq_tick_last_whole(void);
extern bool tq_tick_unsent(TqTick *tick);
extern bool tq_tick_of_segment(int segment, TqTick *tick);
extern bool tq_tick_shows_segment(int segment, TimestampTz since);
extern TqTick *tq_ticks_after(int64 id, int max, bool shown, int *found);
extern void tq_tick_insert(TqTick *row, const TqTick *last, bool notified);
extern void tq_tick_set_unsent(const TqTick *tick, int64 unsent);

#endif /* TQ_TICK_TABLE_H */
