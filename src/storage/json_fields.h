/*
 * json_fields.h
 *	  Reads JSON objects into structs, field by field.
 */
#ifndef TQ_JSON_FIELDS_H
#define TQ_JSON_FIELDS_H

#include "utils/jsonb.h"

/*
 * Stores a value in its field.  Returns NULL, or what the value has to be, as
 * a text that follows `must have a "key" that`.
 */
typedef const char *TqReadField(const JsonbValue *value, void *place);

typedef struct TqField
{
	const char *key;
	TqReadField *read;
	size_t place; /* offset in the struct that is filled */
} TqField;

extern const char *tq_field_count(const JsonbValue *value, void *place);
extern const char *tq_field_time(const JsonbValue *value, void *place);
extern const char *tq_field_flag(const JsonbValue *value, void *place);
extern const char *tq_fields_read(const JsonbContainer *object,
								  const TqField *fields, int n, void *base);
extern const char *tq_duration_parse(const JsonbValue *value, int64 *ms);

#endif /* TQ_JSON_FIELDS_H */
