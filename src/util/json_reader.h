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

extern double tq_json_double(const JsonbValue *number);
extern char *tq_json_string_of(const JsonbValue *value);
extern bool tq_json_has_text(const JsonbValue *value, const char *text);
extern bool tq_json_is_string(const JsonbValue *value, int max);
extern bool tq_json_is_object(const JsonbValue *value);
extern Size tq_json_size(const JsonbContainer *json);
extern Size tq_json_size_bound(const JsonbContainer *json);
extern Size tq_json_size_over(const JsonbContainer *json, Size limit);
extern char *tq_json_clip(const JsonbContainer *json);
extern char *tq_json_shown(const JsonbValue *value);
extern bool tq_json_is_null(const Jsonb *json);
extern bool tq_json_is_array(const JsonbValue *value);
extern bool tq_json_whole_number(const JsonbValue *value, int64 min, int64 max,
								 int64 *number);
extern bool tq_json_parse_whole(const char *text, int64 *number);

/* The members of an object, or the elements of an array, one by one. */
typedef struct TqJsonIterator
{
	const JsonbContainer *container;
	const char *data; /* of the children */
	int n;
	int next;
	uint32 key_at; /* where the next key is in the data */
	uint32 value_at;
	JsonbValue key; /* of a member */
	JsonbValue value;
} TqJsonIterator;

extern TqJsonIterator tq_json_iterate(const JsonbContainer *container);
extern bool tq_json_next(TqJsonIterator *iterator);

/*
 * The keys that an object may have, in the order that jsonb gives them: by
 * length, then by bytes.  The macros make an enum and an array of TqJsonKey of
 * one list of their names.
 */
typedef struct TqJsonKey
{
	const char *name;
	int len;
} TqJsonKey;

#define TQ_JSON_KEY_NUMBER(key, name) KEY_##key,
#define TQ_JSON_KEY_NAME(key, name) {name, sizeof(name) - 1},

#define TQ_JSON_KEYS_MAX 24

/*
 * An object of which every value must be valid.  `refuse` raises the error that
 * the value of a key breaks a rule, or notes it and returns; then the value
 * counts as absent.
 */
typedef struct TqJsonReader
{
	const TqJsonKey *keys;
	int nkeys;
	void (*refuse)(const struct TqJsonReader *reader, const char *key,
				   const char *rule);
	void *owner;    /* for refuse(): what the object describes */
	uint32 present; /* keys that the object has, as a set of bits */
	JsonbValue values[TQ_JSON_KEYS_MAX];
} TqJsonReader;

extern bool tq_json_open(TqJsonReader *reader, const JsonbContainer *object,
						 JsonbValue *unknown);
extern const JsonbValue *tq_json_at(const TqJsonReader *reader, int key);
extern char *tq_json_read_string(const TqJsonReader *reader, int key);
extern char **tq_json_read_strings(const TqJsonReader *reader, int key,
								   int *n);
extern bool tq_json_read_time(const TqJsonReader *reader, int key,
							  TimestampTz *t);
extern bool tq_json_read_slug(const TqJsonReader *reader, int key,
							  TqSlug *slug);
extern Jsonb *tq_json_read_any(const TqJsonReader *reader, int key);
extern Jsonb *tq_json_read_object(const TqJsonReader *reader, int key);

#endif /* TQ_JSON_READER_H */
