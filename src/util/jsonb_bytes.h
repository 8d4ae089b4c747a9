/*
 * jsonb_bytes.h
 *	  The bytes of a jsonb value as text.
 */
#ifndef TQ_JSONB_BYTES_H
#define TQ_JSONB_BYTES_H

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

extern void tq_jsonb_add_hex(StringInfo text, const Jsonb *value);
extern Jsonb *tq_jsonb_of_hex(const char *hex);

#endif /* TQ_JSONB_BYTES_H */
