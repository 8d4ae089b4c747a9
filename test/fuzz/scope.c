/*
 * scope.c
 *	  A fuzz target: do sorted scopes satisfy what each of them alone does?
 *
 * The first line of an input is the shape of what is required: s a scope, a
 * all of the parts up to the next ), o any of them.  Then come the scopes that
 * are required, a line each, an empty line, and the scopes that are granted;
 * the empty scope is made of those by leaving out a byte.  The rule is stated here once more, in another form (doc/spec/taskcluster.md 7.1).
 */
#include <stdbool.h>

#include "../../src/core/scope.h"
#include "fuzz.h"

#define SCOPES_MAX 24
#define PARTS_MAX 64
#define DEPTH_MAX 16

static char *required[SCOPES_MAX];
static char *granted[SCOPES_MAX];
static int nrequired;
static int ngranted;

/* Returns whether one granted scope satisfies a required one. */
static bool
satisfies(const char *scope, const char *text)
{
	const char *end = strrchr(scope, '*');

	if (strcmp(scope, text) == 0)
		return true;
	return end != NULL && end[1] == '\0' &&
		   strncmp(scope, text, end - scope) == 0;
}

static bool
any_satisfies(const char *text)
{
	for (int i = 0; i < ngranted; i++)
	{
		if (satisfies(granted[i], text))
			return true;
	}
	return false;
}

/* ---- sets ---- */

static int
reduce(TqScope *scopes, int n)
{
	qsort(scopes, n, sizeof(TqScope), tq_scope_compare);
	return tq_scopes_reduce(scopes, n);
}

/* Reads n granted scopes from a first one on, going round; reduces them. */
static int
read_set(TqScope *scopes, int first, int n)
{
	for (int i = 0; i < n; i++)
		scopes[i] = tq_scope_read(granted[(first + i) % ngranted]);
	return reduce(scopes, n);
}

static void
require_same(const TqScope *a, int na, const TqScope *b, int nb)
{
	require(na == nb, "the same scopes make sets of different sizes");
	for (int i = 0; i < na; i++)
		require(a[i].length == b[i].length &&
					a[i].is_prefix == b[i].is_prefix &&
					memcmp(a[i].text, b[i].text, a[i].length) == 0,
				"the same scopes make different sets");
}

static void
check_one(const TqScope *set, int n, const char *text)
{
	for (int i = 0; i < ngranted; i++)
		require(tq_scope_satisfies(granted[i], text) ==
					satisfies(granted[i], text),
				"one scope");
	require(tq_scopes_satisfy(set, n, text) == any_satisfies(text),
			"the set differs from its scopes one by one");
}

/* Checks a text, and those that are one byte longer or shorter. */
static void
check_near(const TqScope *set, int n, const char *text)
{
	size_t length = strlen(text);
	char *other;

	check_one(set, n, text);
	other = malloc(length + 2);
	memcpy(other, text, length + 1);
	strcpy(other + length, "!");
	check_one(set, n, other);
	strcpy(other + length, "*");
	check_one(set, n, other);
	other[length > 0 ? length - 1 : 0] = '\0';
	check_one(set, n, other);
	free(other);
}

/* No scope of a reduced set covers another one. */
static void
check_reduced(const TqScope *set, int n)
{
	for (int i = 0; i < n; i++)
	{
		for (int j = 0; j < n; j++)
			require(i == j || !satisfies(set[i].text, set[j].text),
					"a scope that another one covers was left in");
	}
}

/* Neither the order of the scopes matters, nor sets that are merged. */
static void
check_orders(const TqScope *set, int n, TqScope *other)
{
	int half = ngranted / 2;
	int m;

	for (int first = 1; first < ngranted; first += 1 + ngranted / 4)
		require_same(set, n, other, read_set(other, first, ngranted));
	m = read_set(other, 0, half);
	m += read_set(other + m, half, ngranted - half);
	require_same(set, n, other, reduce(other, m));
}

/* ---- what a call requires ---- */

static TqNeed needs[PARTS_MAX];
static const TqNeed *parts[PARTS_MAX][PARTS_MAX];
static int nneeds;
static int nscopes;

/* Reads a need from a shape; returns NULL at its end. */
static const TqNeed *
read_need(const char **shape, int depth)
{
	TqNeed *need;
	const TqNeed *part;
	char kind;

	do
		kind = **shape == '\0' ? ')' : *(*shape)++;
	while (strchr("sao)", kind) == NULL);
	if (kind == ')' || nneeds == PARTS_MAX || depth == DEPTH_MAX)
		return NULL;
	need = &needs[nneeds];
	*need = (TqNeed){.kind = kind == 'a'   ? TQ_NEED_ALL
							 : kind == 'o' ? TQ_NEED_ANY
										   : TQ_NEED_SCOPE,
					 .scope = required[nscopes++ % nrequired],
					 .parts = parts[nneeds]};
	nneeds++;
	if (kind != 's')
	{
		while ((part = read_need(shape, depth + 1)) != NULL)
			need->parts[need->n++] = part;
	}
	return need;
}

static bool
is_met(const TqNeed *need)
{
	int met = 0;

	if (need->kind == TQ_NEED_SCOPE)
		return any_satisfies(need->scope);
	for (int i = 0; i < need->n; i++)
		met += is_met(need->parts[i]);
	return need->kind == TQ_NEED_ALL ? met == need->n : met > 0;
}

static void
check_need(const TqScope *set, int n, const char *shape)
{
	const TqNeed *need;

	nneeds = 0;
	nscopes = 0;
	if (nrequired == 0)
		return;
	need = read_need(&shape, 0);
	if (need != NULL)
		require(tq_need_is_met(need, set, n) == is_met(need),
				"what a call requires");
}

/* ---- the target ---- */

static void
check(const char *shape)
{
	TqScope *set = malloc(sizeof(TqScope) * (ngranted + 1));
	TqScope *other = malloc(sizeof(TqScope) * (ngranted + 1));
	int n = ngranted == 0 ? 0 : read_set(set, 0, ngranted);

	for (int i = 0; i < nrequired; i++)
		check_near(set, n, required[i]);
	for (int i = 0; i < ngranted; i++)
	{
		require(tq_scopes_satisfy(set, n, granted[i]),
				"a set does not satisfy its own scope");
		check_near(set, n, granted[i]);
	}
	check_reduced(set, n);
	if (ngranted > 0)
		check_orders(set, n, other);
	check_need(set, n, shape);
	free(set);
	free(other);
}

/* Reads lines up to an empty one; returns how many. */
static int
read_lines(char **lines, const uint8_t **data, size_t *size)
{
	int n = 0;
	char *line;

	while (n < SCOPES_MAX && (line = fuzz_line(data, size)) != NULL)
	{
		if (*line == '\0')
		{
			free(line);
			break;
		}
		lines[n++] = line;
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *shape = fuzz_line(&data, &size);

	nrequired = read_lines(required, &data, &size);
	ngranted = read_lines(granted, &data, &size);
	check(shape);
	free(shape);
	while (nrequired > 0)
		free(required[--nrequired]);
	while (ngranted > 0)
		free(granted[--ngranted]);
	return 0;
}
