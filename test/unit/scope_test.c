/*
 * scope_test.c
 *	  Scopes of src/core/scope.c without a server, printed as TAP.
 *
 * The reference for sorted sets is the rule applied to each scope in turn.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/core/scope.h"
#include "tap.h"

/* Sorts and reduces, as the server does for a role. */
static int
sort(TqScope *scopes, int n)
{
	qsort(scopes, n, sizeof(TqScope), tq_scope_compare);
	return tq_scopes_reduce(scopes, n);
}

static const struct
{
	const char *pattern;
	const char *required;
	bool		good;
}			rules[] = {
	{"a:b", "a:b", true},
	{"a:b", "a:c", false},
	{"a:b", "a:bc", false},
	{"a:bc", "a:b", false},
	{"a:b", "A:b", false},
	{"a:*", "a:b", true},
	{"a:*", "a:", true},
	{"a:*", "a", false},
	{"a*", "a", true},
	{"*", "a:b", true},
	{"*", "", true},
	{"*", "*", true},
	{"", "", true},
	{"", "a", false},
	{"abc:*", "abc:*", true},	/* a required scope may end in a star */
	{"ab*", "abc:*", true},
	{"abc:x", "abc:*", false},
	{"abc:x*", "abc:*", false},
	{"abc:*:d", "abc:x:d", false},	/* a star is special at the end only */
	{"abc:*:d", "abc:*:d", true},
	{"*:d", "abc:d", false},
	{"a**", "a*b", true},
	{"a**", "ab", false},
};

static void
check_rules(void)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
	{
		char		what[100];
		TqScope		scope = tq_scope_read(rules[i].pattern);

		snprintf(what, sizeof(what), "\"%s\" %s \"%s\"", rules[i].pattern,
				 rules[i].good ? "satisfies" : "does not satisfy", rules[i].required);
		check(tq_scope_satisfies(rules[i].pattern, rules[i].required) == rules[i].good &&
			  tq_scopes_satisfy(&scope, sort(&scope, 1), rules[i].required) == rules[i].good,
			  what);
	}
}

/* A text of up to four characters of a, b and *, in memory of its size. */
static char *
random_text(void)
{
	int			length = rand() % 5;
	char	   *text = malloc(length + 1);

	for (int i = 0; i < length; i++)
		text[i] = "ab*"[rand() % 3];
	text[length] = '\0';
	return text;
}

static bool
any_satisfies(char **texts, int n, const char *required)
{
	for (int i = 0; i < n; i++)
	{
		if (tq_scope_satisfies(texts[i], required))
			return true;
	}
	return false;
}

/* One random set, and ten required scopes. */
static bool
random_set_agrees(void)
{
	int			n = rand() % 9;
	char	   *texts[9];
	TqScope    *scopes = malloc(sizeof(TqScope) * (n + 1));
	bool		good = true;
	int			kept;

	for (int i = 0; i < n; i++)
	{
		texts[i] = random_text();
		scopes[i] = tq_scope_read(texts[i]);
	}
	kept = sort(scopes, n);
	good = kept <= n && (n == 0 || kept > 0);
	for (int i = 0; i < 10; i++)
	{
		char	   *required = random_text();

		good = good && tq_scopes_satisfy(scopes, kept, required) == any_satisfies(texts, n, required);
		free(required);
	}
	for (int i = 0; i < n; i++)
		free(texts[i]);
	free(scopes);
	return good;
}

static void
check_random(void)
{
	unsigned	seed = (unsigned) time(NULL);
	bool		good = true;

	srand(seed);
	printf("# seed %u\n", seed);
	for (int i = 0; i < 100000; i++)
		good = random_set_agrees() && good;
	check(good, "a sorted set satisfies what one of its scopes satisfies");
}

static void
check_sort(void)
{
	TqScope		scopes[5] = {
		tq_scope_read("a:b"), tq_scope_read("b"), tq_scope_read("a:*"), tq_scope_read("a:b:*"), tq_scope_read("b")
	};

	check(sort(scopes, 5) == 2 && strcmp(scopes[0].text, "a:*") == 0 &&
		  strcmp(scopes[1].text, "b") == 0, "scopes that others cover are left out");
	check(!tq_scopes_satisfy(NULL, 0, ""), "no scopes satisfy nothing");
}

static void
check_needs(void)
{
	TqScope		scopes[2] = {tq_scope_read("a"), tq_scope_read("b:*")};
	TqNeed		a = {.kind = TQ_NEED_SCOPE, .scope = "a"};
	TqNeed		b = {.kind = TQ_NEED_SCOPE, .scope = "b:x"};
	TqNeed		c = {.kind = TQ_NEED_SCOPE, .scope = "c"};
	const TqNeed *ab[2] = {&a, &b};
	const TqNeed *ca[2] = {&c, &a};
	const TqNeed *cc[2] = {&c, &c};
	TqNeed		all = {.kind = TQ_NEED_ALL, .parts = ab, .n = 2};
	TqNeed		not_all = {.kind = TQ_NEED_ALL, .parts = ca, .n = 2};
	TqNeed		any = {.kind = TQ_NEED_ANY, .parts = ca, .n = 2};
	TqNeed		not_any = {.kind = TQ_NEED_ANY, .parts = cc, .n = 2};
	const TqNeed *nested[2] = {&c, &all};
	TqNeed		deep = {.kind = TQ_NEED_ANY, .parts = nested, .n = 2};
	TqNeed		no_all = {.kind = TQ_NEED_ALL};
	TqNeed		no_any = {.kind = TQ_NEED_ANY};

	check(tq_need_is_met(&a, scopes, 2) && !tq_need_is_met(&c, scopes, 2), "a single scope");
	check(tq_need_is_met(&all, scopes, 2) && !tq_need_is_met(&not_all, scopes, 2), "all of two");
	check(tq_need_is_met(&any, scopes, 2) && !tq_need_is_met(&not_any, scopes, 2), "any of two");
	check(tq_need_is_met(&deep, scopes, 2) && !tq_need_is_met(&deep, scopes, 1), "any of one, and all of two");
	check(tq_need_is_met(&no_all, scopes, 0), "all of none is met");
	check(!tq_need_is_met(&no_any, scopes, 2), "any of none is not met");
}

int
main(void)
{
	check_rules();
	check_sort();
	check_random();
	check_needs();
	return end_of_checks();
}
