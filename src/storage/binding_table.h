/*
 * binding_table.h
 *	  Rows of tq_internal.binding and tq_internal.disabled_channel: which
 *	  messages are sent to which channel.
 */
#ifndef TQ_BINDING_TABLE_H
#define TQ_BINDING_TABLE_H

#include "../core/types.h"
#include "../util/spi.h"

typedef struct TqBinding
{
	char *channel; /* or subscription; NULL: the default channel */
	TqExchange exchange;
	char *pattern;
} TqBinding;

extern uint64 tq_bindings_generation(void);
extern void tq_bindings_changed(void);
extern int tq_bindings_wanted(void);
extern TqBinding *tq_bindings_list(int *found);
extern void tq_binding_insert(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_delete(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_set_default(TqExchange exchange, bool bound);
extern TqBinding *tq_bindings_select(TqStatement *statement,
									 const Datum *values, int *found);
extern void tq_binding_change(TqStatement *statement, const char *name,
							  TqExchange exchange, const char *pattern);

#endif /* TQ_BINDING_TABLE_H */
