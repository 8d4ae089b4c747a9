/*
 * json_writer.h
 *	  Builds JSON objects, key by key.
 */
#ifndef TQ_JSON_WRITER_H
#define TQ_JSON_WRITER_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"

#include "slugid.h"

extern JsonbParseState *tq_json_begin(void);
extern void tq_json_key(JsonbParseState **state, const char *key);
extern void tq_json_string(JsonbParseState **state, JsonbIteratorToken token,
						   const char *text);
extern void tq_json_add_text(JsonbParseState **state, const char *key,
							 const char *text);
extern void tq_json_add_bool(JsonbParseState **state, const char *key,
							 bool flag);
extern void tq_json_add_null(JsonbParseState **state, const char *key);
extern void tq_json_add_int(JsonbParseState **state, const char *key,
							int64 number);
extern void tq_json_add_seconds(JsonbParseState **state, const char *key,
								int64 ms);
extern void tq_json_add_time(JsonbParseState **state, const char *key,
							 TimestampTz t);
extern void tq_json_add_slug(JsonbParseState **state, const char *key,
							 const TqSlug *slug);
extern void tq_json_add_object(JsonbParseState **state, const char *key,
							   Jsonb *object);
extern void tq_json_add_texts(JsonbParseState **state, const char *key,
							  ArrayType *array);
extern void tq_json_add_slugs(JsonbParseState **state, const char *key,
							  const TqSlug *slugs, int n);
extern Jsonb *tq_json_end(JsonbParseState **state);

#endif /* TQ_JSON_WRITER_H */
