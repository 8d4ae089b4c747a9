/*
 * clock.h
 *	  tq's clock, and the text form of times.  No other file reads the
 *	  time.
 */
#ifndef TQ_CLOCK_H
#define TQ_CLOCK_H

#include "datatype/timestamp.h"

extern TimestampTz tq_clock_now(void);
extern TimestampTz tq_clock_real_now(void);
extern int64 tq_clock_real_seconds(void);
extern TimestampTz tq_clock_truncate(TimestampTz t);
extern TimestampTz tq_clock_add_ms(TimestampTz t, int64 ms);
extern int64 tq_clock_ms_until(TimestampTz t);
extern TimestampTz tq_clock_latest(void);
extern TimestampTz tq_clock_next_year(TimestampTz t);
extern TimestampTz tq_clock_add_interval(TimestampTz t, Interval *span);
extern int64 tq_clock_span_ms(const Interval *span);
extern bool tq_clock_parse_span(const char *text, size_t len, int64 *ms);
extern char *tq_clock_interval_text(Interval *span);
extern bool tq_clock_parse(const char *text, size_t len, TimestampTz *t);
extern char *tq_clock_text(TimestampTz t);

#define TQ_HOUR_MS INT64CONST(3600000)

/* A due time in the past on which arithmetic works: the year 2000. */
#define TQ_LONG_AGO ((TimestampTz) 0)

#endif /* TQ_CLOCK_H */
