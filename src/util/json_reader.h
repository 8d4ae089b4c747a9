/*
 * json_reader.h
 *	  Reads values out of JSON objects, key by key.
 */
#ifndef TQ_JSON_READER_H
#define TQ_JSON_READER_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "slugid.h"

extern JsonbValue *tq_json_member(const JsonbContainer *object,
								  const char *key);
extern JsonbValue *tq_json_get(const Jsonb *object, const char *key);
extern char *tq_json_get_text(const Jsonb *object, const char *key);
extern Jsonb *tq_json_unless_empty(Jsonb *object);

extern char *tq_json_string_of(const JsonbValue *value);
extern bool tq_json_has_text(const JsonbValue *value, const char *text);
extern bool tq_json_is_string(const JsonbValue *value, int max);
extern bool tq_json_is_object(const JsonbValue *value);
extern bool tq_json_is_array(const JsonbValue *value);
extern bool tq_json_whole_number(const JsonbValue *value, int64 min, int64 max,
								 int64 *number);
extern bool tq_json_parse_whole(const char *text, int64 *number);

/* The members of an object, or the elements of an array, one by one. */
typedef struct TqJsonIterator
{
	JsonbIterator *next;
	JsonbValue key; /* of a member */
	JsonbValue value;
} TqJsonIterator;

extern TqJsonIterator tq_json_iterate(const JsonbContainer *container);
extern bool tq_json_next(TqJsonIterator *iterator);

/*
 * An object of which every value must be valid.  `refuse` raises the error that
 * the value of a key breaks a rule; it does not return.
 */
typedef struct TqJsonReader
{
	const Jsonb *json;
	void (*refuse)(const struct TqJsonReader *reader, const char *key,
				   const char *rule);
	const void *owner; /* for refuse(): what the object describes */
} TqJsonReader;

extern char *tq_json_read_string(const TqJsonReader *reader, const char *key);
extern char **tq_json_read_strings(const TqJsonReader *reader, const char *key,
								   int *n);
extern bool tq_json_read_time(const TqJsonReader *reader, const char *key,
							  TimestampTz *t);
extern bool tq_json_read_slug(const TqJsonReader *reader, const char *key,
							  TqSlug *slug);
extern Jsonb *tq_json_read_object(const TqJsonReader *reader, const char *key);

#endif /* TQ_JSON_READER_H */
