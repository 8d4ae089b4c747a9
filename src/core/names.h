/*
 * names.h
 *	  Names of the enumerations, and their parsing.
 */
#ifndef TQ_NAMES_H
#define TQ_NAMES_H

#include <stdbool.h>

#include "types.h"

extern const char *tq_state_name(TqState state);
extern bool tq_state_parse(const char *name, TqState *state);
extern const char *tq_created_name(TqCreated reason);
extern const char *tq_resolved_name(TqResolved reason);
extern TqResolved tq_resolved_parse(const char *name);
extern const char *tq_exchange_name(TqExchange exchange);
extern TqExchange tq_exchange_parse(const char *name);
extern const char *tq_storage_name(TqStorage storage);
extern TqStorage tq_storage_parse(const char *name);
extern const char *tq_priority_name(int priority);
extern int tq_priority_parse(const char *name);

#endif /* TQ_NAMES_H */
