/*
 * preset.h
 *	  What the presets for Conductor and Taskbroker have in common.
 */
#ifndef TQ_PRESET_H
#define TQ_PRESET_H

#include "utils/jsonb.h"

#include "../core/types.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

#define TQ_PRESET_SECONDS_MAX PG_INT32_MAX /* longest time of a policy */

/* A JSON object of the other system. */
typedef struct TqPreset
{
	const char *name;              /* name in errors */
	const Jsonb *json;             /* NULL: empty */
	const struct TqPreset *behind; /* for keys absent here; NULL: none */
	bool numbers_as_text;          /* protobuf writes 64-bit numbers as text */
} TqPreset;

extern void tq_preset_check(const TqPreset *source);
extern JsonbValue *tq_preset_find(const TqPreset **source, const char *key);
extern bool tq_preset_whole(const TqPreset *source, const JsonbValue *value,
							int64 *number);
extern int tq_preset_index(const JsonbValue *value, const char *prefix,
						   const char *const *names);

/* Values of keys; these raise an error for a value that is invalid. */
extern int64 tq_preset_number_of(const TqPreset *source, const char *key,
								 JsonbValue *value, int64 min,
								 const char *otherwise);
extern int64 tq_preset_number(const TqPreset *source, const char *key,
							  int64 min, int64 if_absent);
extern bool tq_preset_flag(const TqPreset *source, const char *key);
extern int tq_preset_choice(const TqPreset *source, const char *key,
							const char *const *names, int if_absent);
extern void tq_preset_error(const TqPreset *source, const char *key,
							JsonbValue *value, const char *hint);
extern void tq_preset_error_choice(const TqPreset *source, const char *key,
								   JsonbValue *value,
								   const char *const *names);

/* The policy that is built. */
extern void tq_preset_add_time(JsonbParseState **state, const char *key,
							   int64 seconds);
extern void tq_preset_add_retry_on(JsonbParseState **state,
								   const TqResolved *reasons, int n);
extern Jsonb *tq_preset_policy(const TqPreset *source, Jsonb *policy);

extern TqRun tq_preset_run(const TqTask *task);

#endif /* TQ_PRESET_H */
