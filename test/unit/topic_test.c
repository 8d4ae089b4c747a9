/*
 * topic_test.c
 *	  Topic matching of src/core/topic.c without a server, printed as TAP.
 *
 * The reference is the definition: a # is tried as no word, and as one word
 * with the # still to come.  It takes exponential time on long input, which the
 * tests of long patterns are for; random patterns and keys are short.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/core/topic.h"
#include "tap.h"

/* Memory of exactly the size that was asked for, so that the sanitizer sees. */
static TqPattern *
compile(const char *pattern)
{
	return tq_topic_build(pattern, malloc(tq_topic_size(pattern)));
}

static bool
match(const char *pattern, const char *key)
{
	TqPattern  *compiled = compile(pattern);
	bool		matches = tq_topic_match(compiled, key);

	free(compiled);
	return matches;
}

/* What follows the first word, or NULL at the end; no word is NULL, too. */
static const char *
rest(const char *words)
{
	const char *dot = strchr(words, '.');

	return dot == NULL ? NULL : dot + 1;
}

static bool
same_word(const char *a, const char *b)
{
	return strcspn(a, ".") == strcspn(b, ".") && memcmp(a, b, strcspn(a, ".")) == 0;
}

static bool
reference(const char *pattern, const char *key)
{
	if (pattern == NULL)
		return key == NULL;
	if (same_word(pattern, "#"))
		return reference(rest(pattern), key) || (key != NULL && reference(pattern, rest(key)));
	return key != NULL && (same_word(pattern, "*") || same_word(pattern, key)) &&
		reference(rest(pattern), rest(key));
}

static bool
reference_match(const char *pattern, const char *key)
{
	return reference(*pattern == '\0' ? NULL : pattern, *key == '\0' ? NULL : key);
}

/* The examples that RabbitMQ documents, and the edges of the definition. */
static const struct
{
	const char *pattern;
	const char *key;
	bool		matches;
}			examples[] = {
	{"*.orange.*", "quick.orange.rabbit", true},
	{"*.*.rabbit", "quick.orange.rabbit", true},
	{"lazy.#", "quick.orange.rabbit", false},
	{"*.orange.*", "lazy.orange.elephant", true},
	{"*.*.rabbit", "lazy.orange.elephant", false},
	{"lazy.#", "lazy.orange.elephant", true},
	{"*.orange.*", "quick.orange.fox", true},
	{"*.*.rabbit", "quick.orange.fox", false},
	{"lazy.#", "lazy.brown.fox", true},
	{"*.orange.*", "lazy.brown.fox", false},
	{"*.*.rabbit", "lazy.pink.rabbit", true},
	{"lazy.#", "lazy.pink.rabbit", true},
	{"*.orange.*", "quick.brown.fox", false},
	{"*.*.rabbit", "quick.brown.fox", false},
	{"lazy.#", "quick.brown.fox", false},
	{"*.orange.*", "orange", false},
	{"*.orange.*", "quick.orange.new.rabbit", false},
	{"lazy.#", "lazy.orange.new.rabbit", true},
	{"lazy.#", "lazy", true},
	{"*.stock.#", "usd.stock", true},
	{"*.stock.#", "eur.stock.db", true},
	{"*.stock.#", "stock.nasdaq", false},

	/* no word at all */
	{"", "", true},
	{"#", "", true},
	{"#.#", "", true},
	{"*", "", false},
	{"#.*", "", false},
	{"a", "", false},
	{"", "a", false},
	{"", ".", false},

	/* words that are empty */
	{"a.", "a.", true},
	{"a.", "a", false},
	{"a", "a.", false},
	{"a.*", "a.", true},
	{"*.a", ".a", true},
	{"*.*", ".", true},
	{"*", ".", false},
	{".", ".", true},
	{"#", "...", true},
	{"*.*.*.*", "...", true},
	{"a..b", "a..b", true},
	{"a..b", "a.b", false},
	{"a.#.b", "a..b", true},
	{"#.a", ".a", true},
	{".#", ".a", true},
	{".#", "a", false},

	/* a wildcard is a word of its own */
	{"a*", "ab", false},
	{"a*", "a*", true},
	{"#a", "ba", false},
	{"**", "ab", false},
	{"##", "", false},
	{"##", "##", true},
	{"a.*#", "a.b", false},

	/* a key has none */
	{"a", "*", false},
	{"a", "#", false},
	{"*", "#", true},
	{"a.*", "a.#", true},

	/* words are compared whole, and case counts */
	{"ab", "a", false},
	{"a", "ab", false},
	{"A", "a", false},
	{"ab.c", "a.bc", false},

	/* any number of words */
	{"a.#", "a", true},
	{"a.#", "a.b.c.d", true},
	{"a.#", "ab", false},
	{"#.z", "z", true},
	{"#.z", "a.b.z", true},
	{"#.z", "a.z.b", false},
	{"#.a.#", "b.a.c", true},
	{"#.a.#", "b.c", false},
	{"a.#.b", "a.b", true},
	{"a.#.b", "a.b.b", true},
	{"a.#.b", "a", false},
	{"#.*.#", "a", true},
	{"*.#.*", "a", false},
	{"*.#.*", "a.b", true},
	{"#.#.a.#.#", "a", true},
	{"primary.#", "primary.dSlITZ4yQgmvxxAi4A8fHQ._._._.prov.wt.-.dSlITZ4yQgmvxxAi4A8fHQ._", true},
	{"primary.*.*.*.*.prov.wt.#", "primary.dSlITZ4yQgmvxxAi4A8fHQ._._._.prov.wt.-.dSlITZ4yQgmvxxAi4A8fHQ._", true},
	{"route.index.*.linux", "route.index.v1.linux", true},
};

static void
check_examples(void)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
	{
		char		what[200];

		snprintf(what, sizeof(what), "'%s' %s '%s'", examples[i].pattern,
				 examples[i].matches ? "matches" : "does not match", examples[i].key);
		check(match(examples[i].pattern, examples[i].key) == examples[i].matches &&
			  reference_match(examples[i].pattern, examples[i].key) == examples[i].matches, what);
	}
}

/* Random numbers that are the same in every run. */
static uint32_t
dice(uint32_t sides)
{
	static uint64_t seed = 20170425;

	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) (seed >> 33) % sides;
}

/* Up to that many words of a short list: the more are alike, the more match. */
static void
random_words(char *text, const char *const *list, uint32_t listed, uint32_t most)
{
	uint32_t	n = dice(most + 1);

	*text = '\0';
	for (uint32_t i = 0; i < n; i++)
	{
		if (i > 0)
			strcat(text, ".");
		strcat(text, list[dice(listed)]);
	}
}

static void
check_random(uint32_t most, const char *what)
{
	static const char *const words[] = {"a", "b", "a", "ab", "", "*", "#", "*", "#", "aa"};
	int			wrong = 0;
	int			matching = 0;

	for (int i = 0; i < 40000; i++)
	{
		char		pattern[200];
		TqPattern  *compiled;

		random_words(pattern, words, 10, most);
		compiled = compile(pattern);
		for (int j = 0; j < 5; j++)
		{
			char		key[200];
			bool		matches;

			random_words(key, words, 5, most);
			matches = tq_topic_match(compiled, key);
			matching += matches;
			if (matches == reference_match(pattern, key))
				continue;
			if (wrong++ < 5)
				printf("# '%s' and '%s': %s\n", pattern, key, matches ? "matches" : "does not match");
		}
		free(compiled);
	}
	printf("# %d of 200000 match\n", matching);
	check(wrong == 0 && matching > 10000 && matching < 180000, what);
}

/* n times the same words, with dots between, and then the last. */
static char *
repeat(const char *words, int n, const char *last)
{
	size_t		length = strlen(words);
	char	   *text = malloc((length + 1) * n + strlen(last) + 1);
	char	   *end = text;

	for (int i = 0; i < n; i++, end += length + 1)
	{
		memcpy(end, words, length);
		end[length] = '.';
	}
	strcpy(end, last);
	return text;
}

static bool
match_long(const char *words, int n, const char *last, const char *key_words, int key_n, const char *key_last)
{
	char	   *pattern = repeat(words, n, last);
	char	   *key = repeat(key_words, key_n, key_last);
	bool		matches = match(pattern, key);

	free(pattern);
	free(key);
	return matches;
}

/* Patterns whose positions are more than fit into one block of bits. */
static void
check_blocks(void)
{
	int			wrong = 0;

	for (int n = 1; n <= 260; n++)
	{
		wrong += !match_long("*", n, "z", "a", n, "z");
		wrong += !match_long("a", n, "z", "a", n, "z");
		wrong += !match_long("a", n, "*", "a", n, "z");
		wrong += !match_long("a", n, "#", "a", n, "z");
		wrong += !match_long("a", n, "#", "a", n - 1, "a");
		wrong += !match_long("#.a", n, "#.z", "a.b", n, "z");
		wrong += match_long("*", n, "z", "a", n + 1, "z");
		wrong += match_long("*", n, "z", "a", n - 1, "z");
		wrong += match_long("a", n, "#", "a", n - 2 > 0 ? n - 2 : 0, "a") && n > 1;
		wrong += match_long("a", n, "y", "a", n, "z");
		wrong += match_long("#.a", n, "#.z", "a.b", n - 1, "z");
	}
	check(wrong == 0, "patterns of 1 to 260 words");
}

/* Where trying one way after another would not come to an end. */
static void
check_long(void)
{
	clock_t		start = clock();
	char	   *pattern;

	check(!match_long("#.a", 30, "b", "a", 200, "c"), "#.a.#.a... against a.a.a..., which fails at the end");
	check(match_long("#.a", 30, "b", "a", 200, "b"), "and the same when it fits");
	check(!match_long("#.*", 3000, "b", "a", 3000, "c"), "3,000 times #.*, 3,000 words");
	check(match_long("word.*", 8000, "#", "word.other", 8000, "end"), "56 kB of a pattern");
	check(!match_long("#", 30000, "b", "a", 30000, "c"), "60 kB of nothing but #");
	check(match_long("#", 30000, "#", "", 0, ""), "and no word at all");
	check(match_long(".", 30000, "#", ".", 30000, ""), "60,000 words that are empty");
	check(clock() - start < 20 * CLOCKS_PER_SEC, "all that in less than 20 s");

	pattern = repeat("*", 30000, "#");
	check(tq_topic_size(pattern) < 20 * strlen(pattern), "memory is in proportion to the pattern");
	free(pattern);
}

static void
check_reuse(void)
{
	char		text[] = "a.*.c.#";
	TqPattern  *pattern = compile(text);
	int			wrong = 0;

	memset(text, 'x', sizeof(text) - 1);
	for (int i = 0; i < 1000000; i++)
	{
		wrong += !tq_topic_match(pattern, "a.b.c");
		wrong += tq_topic_match(pattern, "a.b.d.c");
		wrong += !tq_topic_match(pattern, "a..c.d.e");
		wrong += tq_topic_match(pattern, "");
	}
	check(wrong == 0, "a pattern keeps a copy of its text, and nothing of the last key");
	free(pattern);
}

int
main(void)
{
	check_examples();
	check_random(4, "40,000 random patterns of up to 4 words, 5 keys each");
	check_random(9, "and of up to 9 words");
	check_blocks();
	check_long();
	check_reuse();
	return end_of_checks();
}
