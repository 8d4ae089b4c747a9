/*
 * definition_json.h
 *	  Reads a task definition from JSON.
 */
#ifndef TQ_DEFINITION_JSON_H
#define TQ_DEFINITION_JSON_H

#include "utils/jsonb.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"
#include "definition.h"

extern void tq_definition_parse_existing(const TqSlug *task_id,
										 const JsonbContainer *json,
										 TqTaskDefinition *definition);
extern void tq_definition_read(TqFaults *faults, const JsonbContainer *json,
							   bool any_payload, TqTaskDefinition *definition);
extern void tq_definition_parse(const TqSlug *task_id,
								const JsonbContainer *json,
								TqTaskDefinition *definition);

#endif /* TQ_DEFINITION_JSON_H */
