/*
 * clock.c
 *	  tq's clock, and the text form of times.  No other file reads the time.
 *
 * Times are truncated to milliseconds, so that what is stored is what is shown
 * (doc/spec/taskcluster.md 1.2.1, 3.6).  The transaction's start time is never
 * used, because order and claims must advance within one transaction.
 * tq.clock_offset shifts the clock of a session, for tests.
 */
#include "postgres.h"

#include "utils/datetime.h"

#include "util.h"

#define USECS_PER_MS INT64CONST(1000)
#define TIME_SIZE 32   /* of a time as text, years to 294276 */
#define SPAN_BYTES 256 /* limit of interval_in() for its text */

int64 tq_clock_offset = 0; /* us; guc.c sets it */

/* Truncates a time to milliseconds, towards the past. */
TimestampTz
tq_clock_truncate(TimestampTz t)
{
	int64 rest;

	if (TIMESTAMP_NOT_FINITE(t))
		return t;
	rest = t % USECS_PER_MS;
	return t - (rest < 0 ? rest + USECS_PER_MS : rest);
}

/* Returns the time of tq's clock. */
TimestampTz
tq_clock_now(void)
{
	return tq_clock_truncate(GetCurrentTimestamp() + tq_clock_offset);
}

/* Returns the time of the machine's clock, for statistics. */
TimestampTz
tq_clock_real_now(void)
{
	return GetCurrentTimestamp();
}

/* The same, in seconds. */
int64
tq_clock_real_seconds(void)
{
	return GetCurrentTimestamp() / USECS_PER_SEC;
}

/* The same, in milliseconds since 1970. */
uint64
tq_clock_unix_ms(void)
{
	return (uint64) (GetCurrentTimestamp() / USECS_PER_MS +
					 (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) *
						 (SECS_PER_DAY * INT64CONST(1000)));
}

/*
 * Returns whether the clock was set back since the last time that a process has
 * read from it, which this time becomes.
 */
bool
tq_clock_went_back(TimestampTz *last, TimestampTz now)
{
	bool result = now < tq_clock_add_ms(*last, -TQ_AHEAD_MS);

	*last = now;
	return result;
}

/*
 * Returns the same month, day and time of the next year; 29 February becomes 1
 * March.
 */
TimestampTz
tq_clock_next_year(TimestampTz t)
{
	struct pg_tm tm;
	fsec_t fsec;
	Timestamp result;

	if (timestamp2tm(t, NULL, &tm, &fsec, NULL, NULL) != 0)
		return t;
	tm.tm_year++;
	if (tm.tm_mon == 2 && tm.tm_mday == 29)
	{
		tm.tm_mon = 3;
		tm.tm_mday = 1;
	}
	if (tm2timestamp(&tm, fsec, NULL, &result) != 0)
		return t;
	return result;
}

/* Returns how many milliseconds it is until a time; 0 if it is over. */
int64
tq_clock_ms_until(TimestampTz t)
{
	TimestampTz now = tq_clock_now();

	return t <= now ? 0 : (t - now) / 1000 + 1;
}

/*
 * Returns the start of the last day whose year has four digits, because JSON
 * and a dump can represent no later year.
 */
TimestampTz
tq_clock_latest(void)
{
	return (TimestampTz) (date2j(9999, 12, 31) - POSTGRES_EPOCH_JDATE) *
		   USECS_PER_DAY;
}

#define LONGEST_YEARS 8000

static bool
is_within(int64 amount, int64 per_year)
{
	return amount / per_year < LONGEST_YEARS &&
		   amount / per_year > -LONGEST_YEARS;
}

/* Returns whether adding the interval to a present time cannot overflow. */
static bool
is_sane(const Interval *span)
{
	return is_within(span->month, MONTHS_PER_YEAR) &&
		   is_within(span->day, 366) &&
		   is_within(span->time, USECS_PER_DAY * 366);
}

/*
 * Returns t + span, with calendar months and days counted in UTC; DT_NOEND if
 * t is later than tq_clock_latest() or span is too long to be added.
 */
TimestampTz
tq_clock_add_interval(TimestampTz t, Interval *span)
{
	Datum sum;

	if (t > tq_clock_latest() || !is_sane(span))
		return DT_NOEND;
	sum = DirectFunctionCall2(timestamp_pl_interval, TimestampGetDatum(t),
							  IntervalPGetDatum(span));
	return tq_clock_truncate(DatumGetTimestamp(sum));
}

/*
 * Returns the milliseconds of an interval, rounded down; a month counts 30
 * days.  The result cannot overflow, not even for an infinite interval (17),
 * whose fields have their greatest values.
 */
int64
tq_clock_span_ms(const Interval *span)
{
	int64 days = (int64) span->month * DAYS_PER_MONTH + span->day;
	int64 ms = span->time / USECS_PER_MS;

	if (span->time % USECS_PER_MS < 0)
		ms--;
	return days * (USECS_PER_DAY / USECS_PER_MS) + ms;
}

/* Parses an interval as interval_in() does, but returns false on an error. */
static bool
parse_interval(char *text, Interval *span)
{
	char work[SPAN_BYTES];
	char *field[MAXDATEFIELDS];
	int ftype[MAXDATEFIELDS];
	int nf, dtype, error;
	struct pg_itm_in parts = {0};

	error = ParseDateTime(text, work, sizeof(work), field, ftype,
						  MAXDATEFIELDS, &nf);
	if (error == 0)
		error = DecodeInterval(field, ftype, nf, INTERVAL_FULL_RANGE, &dtype,
							   &parts);
	if (error == DTERR_BAD_FORMAT)
	{
		memset(&parts, 0, sizeof(parts));
		error = DecodeISO8601Interval(text, &dtype, &parts);
	}
	return error == 0 && dtype == DTK_DELTA &&
		   itmin2interval(&parts, span) == 0;
}

/*
 * Parses interval text independently of the setting intervalstyle, because
 * text that one session stored is read in another.  Returns false if it is no
 * interval, or an infinite one.
 */
bool
tq_clock_parse_span(const char *text, size_t len, int64 *ms)
{
	int style = IntervalStyle;
	char copy[SPAN_BYTES];
	Interval span;
	bool good;

	if (len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	IntervalStyle = INTSTYLE_POSTGRES;
	good = parse_interval(copy, &span);
	IntervalStyle = style;
	if (good)
		*ms = tq_clock_span_ms(&span);
	return good;
}

/*
 * Returns an interval as text that every session reads as the same interval,
 * whatever intervalstyle is.
 */
char *
tq_clock_interval_text(Interval *span)
{
	int style = IntervalStyle;
	char *text;

	IntervalStyle = INTSTYLE_POSTGRES;
	text = DatumGetCString(
		DirectFunctionCall1(interval_out, IntervalPGetDatum(span)));
	IntervalStyle = style;
	return text;
}

/*
 * Returns whether a text begins like a form: 0 stands for a digit, T for what may
 * be between a date and a time.
 */
static bool
has_form(const char *text, size_t len, const char *form)
{
	size_t i = 0;

	for (; i < len && form[i] != '\0'; i++)
	{
		char c = text[i];

		if (form[i] == '0'   ? c < '0' || c > '9'
			: form[i] == 'T' ? c != 'T' && c != 't' && c != ' '
							 : c != form[i])
			return false;
	}
	return form[i] == '\0';
}

/*
 * Checks the form of a JSON schema "date-time" (RFC 3339),
 * YYYY-MM-DDThh:mm:ss[.f…](Z|±hh:mm), and finds its fraction and its time
 * zone.
 */
static bool
date_time_form(const char *text, size_t len, size_t *fraction, size_t *zone)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t at = sizeof(form) - 1;

	if (!has_form(text, len, form))
		return false;
	*fraction = at;
	if (has_form(text + at, len - at, ".0"))
	{
		for (at++; at < len && (text[at] >= '0' && text[at] <= '9'); at++)
			;
	}
	*zone = at;
	if (len - at == 1)
		return text[at] == 'Z' || text[at] == 'z';
	return len - at == 6 && (has_form(text + at, 6, "+00:00") ||
							 has_form(text + at, 6, "-00:00"));
}

static int
two_digits(const char *p)
{
	return (p[0] - '0') * 10 + (p[1] - '0');
}

/*
 * Parses a date-time to the millisecond; further digits are truncated, not
 * rounded.  Returns false if it is no date-time.
 */
bool
tq_clock_parse(const char *text, size_t len, TimestampTz *t)
{
	struct pg_tm tm = {0};
	size_t fraction, zone;
	int ms = 0;
	int offset = 0;
	Timestamp local;

	if (!date_time_form(text, len, &fraction, &zone))
		return false;
	tm.tm_year = two_digits(text) * 100 + two_digits(text + 2);
	tm.tm_mon = two_digits(text + 5);
	tm.tm_mday = two_digits(text + 8);
	tm.tm_hour = two_digits(text + 11);
	tm.tm_min = two_digits(text + 14);
	tm.tm_sec = two_digits(text + 17);
	if (tm.tm_year < 1 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
		tm.tm_mday > day_tab[isleap(tm.tm_year)][tm.tm_mon - 1] ||
		tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	for (size_t i = 1; i <= 3; i++)
		ms = ms * 10 + (fraction + i < zone ? text[fraction + i] - '0' : 0);
	if (len - zone == 6)
	{
		if (two_digits(text + zone + 1) > 23 ||
			two_digits(text + zone + 4) > 59)
			return false;
		offset = two_digits(text + zone + 1) * 3600 +
				 two_digits(text + zone + 4) * 60;
		if (text[zone] == '-')
			offset = -offset;
	}
	if (tm2timestamp(&tm, ms * USECS_PER_MS, NULL, &local) != 0)
		return false;
	*t = local - offset * USECS_PER_SEC;
	return IS_VALID_TIMESTAMP(*t);
}

/* Returns a time as YYYY-MM-DDThh:mm:ss.mmmZ, in UTC, truncated. */
char *
tq_clock_text(TimestampTz t)
{
	static const char ends[] = "--T::.Z";
	static const int widths[] = {4, 2, 2, 2, 2, 2, 3};
	struct pg_tm tm;
	fsec_t fsec;
	char *text = palloc(TIME_SIZE);
	char *at = text;

	if (TIMESTAMP_NOT_FINITE(t) ||
		timestamp2tm(t, NULL, &tm, &fsec, NULL, NULL) != 0 || tm.tm_year < 0)
		return pstrdup(timestamptz_to_str(t));
	for (int i = 0; i < lengthof(widths); i++)
	{
		const int parts[] = {tm.tm_year,
							 tm.tm_mon,
							 tm.tm_mday,
							 tm.tm_hour,
							 tm.tm_min,
							 tm.tm_sec,
							 (int) (fsec / USECS_PER_MS)};

		at = pg_ultostr_zeropad(at, parts[i], widths[i]);
		*at++ = ends[i];
	}
	*at = '\0';
	return text;
}
