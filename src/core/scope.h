/*
 * scope.h
 *	  Scopes: does a set of granted scopes satisfy what a call requires?
 */
#ifndef TQ_SCOPE_H
#define TQ_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

/* A scope that is granted; its text must outlive it. */
typedef struct TqScope
{
	const char *text;
	size_t length;  /* without the star of a prefix */
	bool is_prefix; /* it ends in a star */
} TqScope;

/* What a call requires: one scope, all of these parts, or any of them. */
typedef enum TqNeedKind
{
	TQ_NEED_SCOPE,
	TQ_NEED_ALL, /* of no parts: nothing is required */
	TQ_NEED_ANY  /* of no parts: nothing satisfies it */
} TqNeedKind;

typedef struct TqNeed
{
	TqNeedKind kind;
	const char *scope; /* of TQ_NEED_SCOPE */
	const struct TqNeed **parts;
	int n; /* number of parts */
} TqNeed;

extern bool tq_scope_satisfies(const char *pattern, const char *required);
extern TqScope tq_scope_read(const char *text);
extern int tq_scope_compare(const void *a, const void *b);
extern int tq_scopes_reduce(TqScope *scopes, int n);
extern bool tq_scopes_satisfy(const TqScope *scopes, int n,
							  const char *required);
extern bool tq_need_is_met(const TqNeed *need, const TqScope *scopes, int n);

#endif /* TQ_SCOPE_H */
