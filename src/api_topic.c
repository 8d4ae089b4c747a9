/*
 * api_topic.c
 *	  The SQL function that matches a routing key (doc/spec/taskcluster.md
 *	  6.2).
 *
 * Room 5.  Leaves the matching to topic.c.  Caches the compiled pattern until
 * the calling statement ends, because a statement applies it to many rows.
 */
#include "api.h"

#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(tq_topic_match_sql);

/*
 * A routing key of AMQP has at most 255 bytes.  This limit is more generous;
 * there is one because a match cannot be interrupted.
 */
#define MAX_LENGTH 65535

/* The pattern of the last call. */
typedef struct Memory
{
	TqPattern *pattern;
	size_t length;
	char text[FLEXIBLE_ARRAY_MEMBER];
} Memory;

static void
check_length(const char *what, const text *value)
{
	if (VARSIZE_ANY_EXHDR(value) > MAX_LENGTH)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("%s is too long", what),
				 errdetail("It has %zu bytes, and may have %d.",
						   (size_t) VARSIZE_ANY_EXHDR(value),
						   MAX_LENGTH),
				 errhint("A routing key rarely has more than 255 bytes.")));
}

/* Compiles a pattern in that memory context. */
static Memory *
memorize(const text *pattern, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	size_t length = VARSIZE_ANY_EXHDR(pattern);
	Memory *memory = palloc(offsetof(Memory, text) + length + 1);

	memcpy(memory->text, VARDATA_ANY(pattern), length);
	memory->text[length] = '\0';
	memory->length = length;
	memory->pattern = tq_topic_compile(memory->text);
	MemoryContextSwitchTo(caller);
	return memory;
}

static void
forget(Memory *memory)
{
	if (memory == NULL)
		return;
	pfree(memory->pattern);
	pfree(memory);
}

/*
 * Returns the compiled pattern, from the cache if an earlier call had the
 * same.
 */
static const TqPattern *
recall(FmgrInfo *function, const text *pattern)
{
	Memory *memory = function->fn_extra;

	if (memory == NULL || memory->length != VARSIZE_ANY_EXHDR(pattern) ||
		memcmp(memory->text, VARDATA_ANY(pattern), memory->length) != 0)
	{
		function->fn_extra = NULL;
		forget(memory);
		check_length("pattern", pattern);
		memory = memorize(pattern, function->fn_mcxt);
		function->fn_extra = memory;
	}
	return memory->pattern;
}

/* topic_match(pattern text, routing_key text) -> bool */
Datum
tq_topic_match_sql(PG_FUNCTION_ARGS)
{
	const TqPattern *pattern = recall(fcinfo->flinfo, PG_GETARG_TEXT_PP(0));
	text *key = PG_GETARG_TEXT_PP(1);

	check_length("routing key", key);
	PG_RETURN_BOOL(tq_topic_match(pattern, text_to_cstring(key)));
}
