/*
 * access.h
 *	  What the caller of a function may do: scopes of roles.
 */
#ifndef TQ_ACCESS_H
#define TQ_ACCESS_H

#include "../core/scope.h"
#include "../util/compat.h"
#include "../util/xact_end.h"

extern const TqXactEnd tq_access_xact_end;

/* What a call requires, built only for a caller that has not every scope. */
extern TqNeed *tq_need(const char *format, ...) pg_attribute_printf(1, 2);
extern TqNeed *tq_need_list(TqNeedKind kind, int n);
extern void tq_need_add(TqNeed *list, const TqNeed *part);
extern TqNeed *tq_need_all(int n, ...);
extern TqNeed *tq_need_any(int n, ...);

extern bool tq_access_is_unlimited(void);
extern uint64 tq_access_version(void);
extern bool tq_access_meets(const TqNeed *need);
extern void tq_access_check(const TqNeed *need);
pg_noreturn extern void tq_access_error(const TqNeed *need);

/* Raises TQ403 unless the caller has the scopes, for example tq_need(...). */
#define tq_access_require(need)                                               \
	do                                                                        \
	{                                                                         \
		if (!tq_access_is_unlimited())                                        \
			tq_access_check(need);                                            \
	} while (0)

/* Functions that call those above, with the argument of tq_access_as(). */
typedef void TqAccessChecks(const void *arg);

extern void tq_access_as(Oid role, TqAccessChecks *checks, const void *arg);

extern char **tq_access_scopes(int *n);
extern void tq_access_assume(const char *client, char *const *scopes, int n);
extern const char *tq_access_assumed_client(void);
extern const char *const *tq_access_built_in(Oid role);
extern uint64 tq_access_forget_dropped_roles(void);

#endif /* TQ_ACCESS_H */
