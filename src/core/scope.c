/*
 * scope.c
 *	  Scopes: does a set of granted scopes satisfy what a call requires?
 *
 * A granted scope satisfies a required one if both are equal, or if it ends in
 * a star and the required one begins with what is before that star
 * (doc/spec/taskcluster.md 7.1).  Bytes are compared, so case matters.  A star
 * anywhere else is a character like any other, and so is the star at the end
 * of a required scope: "a:*" is satisfied by "a:*" and "a*", not by "a:b".
 *
 * The scopes of a role are sorted once, and those that another one covers are
 * left out.  Then a required scope is compared with a single one: the last that
 * is not greater.  For if a prefix covers it, everything between the two in
 * the order begins with that prefix too, and has been left out.
 */
#include <string.h>

#include "scope.h"

/* Returns a granted scope, which refers to the text. */
TqScope
tq_scope_read(const char *text)
{
	TqScope scope = {.text = text, .length = strlen(text)};

	scope.is_prefix = scope.length > 0 && text[scope.length - 1] == '*';
	if (scope.is_prefix)
		scope.length--;
	return scope;
}

/* Returns whether this text of that length satisfies a granted scope. */
static bool
covers(const TqScope *scope, const char *text, size_t length)
{
	return (scope->is_prefix ? length >= scope->length
							 : length == scope->length) &&
		   memcmp(text, scope->text, scope->length) == 0;
}

/* Returns whether a granted scope satisfies a required one. */
bool
tq_scope_satisfies(const char *pattern, const char *required)
{
	TqScope scope = tq_scope_read(pattern);

	return covers(&scope, required, strlen(required));
}

/* Compares two texts by their bytes; a prefix of another comes before it. */
static int
compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t common = a_length < b_length ? a_length : b_length;
	int order = memcmp(a, b, common);

	return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

/* Compares two granted scopes in the order that tq_scopes_reduce() needs. */
int
tq_scope_compare(const void *a, const void *b)
{
	const TqScope *x = (const TqScope *) a;
	const TqScope *y = (const TqScope *) b;
	int order = compare_text(x->text, x->length, y->text, y->length);

	return order != 0 ? order : y->is_prefix - x->is_prefix;
}

/*
 * Leaves out those of sorted scopes that others cover, and returns how many are
 * left, for tq_scopes_satisfy().
 */
int
tq_scopes_reduce(TqScope *scopes, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		const TqScope *before = kept > 0 ? &scopes[kept - 1] : NULL;

		if (before == NULL ||
			!covers(before, scopes[i].text, scopes[i].length))
			scopes[kept++] = scopes[i];
	}
	return kept;
}

/* Returns whether one of these reduced scopes satisfies the required one. */
bool
tq_scopes_satisfy(const TqScope *scopes, int n, const char *required)
{
	size_t length = strlen(required);
	int low = 0;
	int high = n;

	while (low < high) /* those before low are not greater */
	{
		int middle = low + (high - low) / 2;

		if (compare_text(scopes[middle].text, scopes[middle].length, required,
						 length) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && covers(&scopes[low - 1], required, length);
}

/* Returns whether reduced scopes satisfy what a call requires. */
bool
tq_need_is_met(const TqNeed *need, const TqScope *scopes, int n)
{
	bool all = need->kind == TQ_NEED_ALL;

	if (need->kind == TQ_NEED_SCOPE)
		return tq_scopes_satisfy(scopes, n, need->scope);
	for (int i = 0; i < need->n; i++)
	{
		if (tq_need_is_met(need->parts[i], scopes, n) != all)
			return !all;
	}
	return all;
}
