/*
 * topic.c
 *	  A fuzz target: does a pattern match the routing keys that it should?
 *
 * The first line of an input is the pattern, each further one a key.  What
 * matches is decided here word by word, by trying all that a # can stand for.
 */
#include <stdbool.h>

#include "../../src/core/topic.h"
#include "fuzz.h"

#define WORDS_MAX 200

/* A text cut into words; the empty one has none. */
typedef struct Words
{
	int n;
	char *words[WORDS_MAX];
} Words;

static Words
cut(const char *text)
{
	Words words = {0};

	while (*text != '\0' && words.n < WORDS_MAX)
	{
		const char *dot = strchr(text, '.');
		size_t length = dot == NULL ? strlen(text) : (size_t) (dot - text);

		words.words[words.n++] = fuzz_string(text, length);
		text += length;
		if (dot == NULL)
			break;
		if (*++text == '\0' && words.n < WORDS_MAX)
			words.words[words.n++] = fuzz_string("", 0);
	}
	return words;
}

static void
free_words(Words *words)
{
	while (words->n > 0)
		free(words->words[--words->n]);
}

/* What is known of a word of the pattern and one of the key: 0 is nothing. */
static signed char known[WORDS_MAX + 1][WORDS_MAX + 1];

/* Returns whether the rest of a pattern matches the rest of a key. */
static bool
match(const Words *pattern, int i, const Words *key, int j)
{
	const char *word = pattern->words[i];
	bool good;

	if (i == pattern->n)
		return j == key->n;
	if (known[i][j] != 0)
		return known[i][j] > 0;
	if (strcmp(word, "#") == 0)
		good = match(pattern, i + 1, key, j) ||
			   (j < key->n && match(pattern, i, key, j + 1));
	else
		good = j < key->n &&
			   (strcmp(word, "*") == 0 || strcmp(word, key->words[j]) == 0) &&
			   match(pattern, i + 1, key, j + 1);
	known[i][j] = good ? 1 : -1;
	return good;
}

static void
check(const TqPattern *compiled, const Words *pattern, const char *text)
{
	Words key = cut(text);
	bool good;

	if (key.n < WORDS_MAX)
	{
		for (int i = 0; i <= pattern->n; i++)
			memset(known[i], 0, key.n + 1);
		good = match(pattern, 0, &key, 0);
		require(tq_topic_match(compiled, text) == good,
				good ? "a key is not matched" : "a key is matched");
	}
	free_words(&key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_line(&data, &size);
	Words pattern = cut(text);
	char *original = fuzz_string(text, strlen(text));
	void *memory;
	TqPattern *compiled;
	char *key;

	if (pattern.n < WORDS_MAX)
	{
		memory = malloc(tq_topic_size(text));
		compiled = tq_topic_build(text, memory);
		free(text); /* the pattern has a copy */
		text = NULL;
		check(compiled, &pattern, original);
		while ((key = fuzz_line(&data, &size)) != NULL)
		{
			check(compiled, &pattern, key);
			free(key);
		}
		check(compiled, &pattern, original); /* matching leaves no trace */
		free(memory);
	}
	free(text);
	free(original);
	free_words(&pattern);
	return 0;
}
