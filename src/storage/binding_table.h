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

/* Classes of advisory locks; 1 and 2 are those of SQL functions. */
typedef enum TqBindingLockClass
{
	TQ_LOCK_CLASS_BINDINGS = 7420,
	TQ_LOCK_CLASS_SUBSCRIPTIONS = 7421
} TqBindingLockClass;

/* Counts the bindings of a name, none if one of them is the given one. */
#define TQ_BINDING_COUNT(table, column)                                       \
	TQ_STATEMENT("SELECT count(*) FROM tq_internal." table " WHERE " column   \
				 " = $1"                                                      \
				 " AND NOT EXISTS (SELECT FROM tq_internal." table            \
				 " WHERE " column                                             \
				 " = $1 AND exchange = $2 AND pattern = $3)",                 \
				 TEXTOID, INT2OID, TEXTOID)

extern void tq_binding_lock(const char *name, TqBindingLockClass class);
extern int64 tq_binding_count(const char *channel, TqExchange exchange,
							  const char *pattern);
extern int64 tq_binding_count_by(TqStatement *statement, const char *name,
								 TqExchange exchange, const char *pattern);
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
