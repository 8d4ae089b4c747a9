/*
 * topic.c
 *	  AMQP topic matching: does a pattern match a routing key?
 *
 * Pure C.  Patterns and keys are words separated by dots.  The empty text has
 * no word; "a." has two, "a" and the empty one.  In a pattern the word "*"
 * stands for exactly one word, and "#" for any number of words, including none.
 *
 * A pattern with n words other than "#" has n + 1 positions; a position is the
 * number of those words matched so far.  Matching goes once over the words of
 * the key and keeps the set of possible positions: a word that matches leads
 * to the next position, and where there is a "#" any word also leads back to
 * the same one.  The set is an array of bits.  Time is therefore at most the
 * product of both lengths, memory is proportional to the pattern, and nothing
 * is tried twice.
 */
#include <stdint.h>
#include <string.h>

#include "topic.h"

#define BITS 64

typedef struct Word
{
	const char *text;
	size_t length;
} Word;

/*
 * Length of the word at the last position: no word of a key is that long, so
 * the position leads nowhere.
 */
#define NO_WORD SIZE_MAX

struct TqPattern
{
	size_t end;      /* the last position: all words matched */
	size_t blocks;   /* of each set of positions */
	bool open_ended; /* there is a # at the end */
	Word *words;     /* by position */
	uint64_t *any;   /* positions whose word is a * */
	uint64_t *many;  /* positions that have a # */
	uint64_t *now;   /* possible positions: working memory */
};

/* Advances to the next word; returns false if this was the last one. */
static bool
next_word(const char **word, size_t length)
{
	if ((*word)[length] == '\0')
		return false;
	*word += length + 1;
	return true;
}

static size_t
word_length(const char *word)
{
	return strcspn(word, ".");
}

static bool
is_word(const char *word, size_t length, char wildcard)
{
	return length == 1 && *word == wildcard;
}

/* Counts the words other than #, which is also the last position. */
static size_t
count_words(const char *pattern)
{
	size_t words = 0;
	size_t length;

	if (*pattern == '\0')
		return 0;
	do
	{
		length = word_length(pattern);
		words += !is_word(pattern, length, '#');
	} while (next_word(&pattern, length));
	return words;
}

static size_t
count_blocks(size_t words)
{
	return words / BITS + 1;
}

static void
topic_add(uint64_t *set, size_t position)
{
	set[position / BITS] |= UINT64_C(1) << position % BITS;
}

static bool
has(const uint64_t *set, size_t position)
{
	return (set[position / BITS] >> position % BITS & 1) != 0;
}

/* Returns how much memory tq_topic_build() needs, aligned as for any type. */
size_t
tq_topic_size(const char *pattern)
{
	size_t words = count_words(pattern);

	return sizeof(TqPattern) + 3 * count_blocks(words) * sizeof(uint64_t) +
		   (words + 1) * sizeof(Word) + strlen(pattern) + 1;
}

/*
 * Lays out the parts of a pattern in its memory; returns where its text goes.
 */
static char *
lay_out(TqPattern *compiled, size_t words)
{
	size_t blocks = count_blocks(words);

	compiled->end = words;
	compiled->blocks = blocks;
	compiled->words = (Word *) (compiled + 1);
	compiled->any = (uint64_t *) (compiled->words + words + 1);
	compiled->many = compiled->any + blocks;
	compiled->now = compiled->many + blocks;
	memset(compiled->any, 0, 3 * blocks * sizeof(uint64_t));
	return (char *) (compiled->now + blocks);
}

/*
 * Compiles a pattern into memory of tq_topic_size() bytes, and copies its
 * text.
 */
TqPattern *
tq_topic_build(const char *pattern, void *memory)
{
	TqPattern *compiled = memory;
	const char *word = lay_out(compiled, count_words(pattern));
	size_t position = 0;
	size_t length;

	strcpy((char *) word, pattern);
	if (*word != '\0')
	{
		do
		{
			length = word_length(word);
			if (is_word(word, length, '#'))
				topic_add(compiled->many, position);
			else
			{
				if (is_word(word, length, '*'))
					topic_add(compiled->any, position);
				compiled->words[position].text = word;
				compiled->words[position++].length = length;
			}
		} while (next_word(&word, length));
	}
	compiled->words[position].length = NO_WORD;
	compiled->open_ended = has(compiled->many, position);
	return compiled;
}

/*
 * Returns those of these positions, none of which is a *, that have this word.
 */
static uint64_t
fitting(const Word *words, uint64_t positions, const char *word, size_t length)
{
	uint64_t fit = 0;

	for (; positions != 0; positions &= positions - 1)
	{
		const Word *other = &words[__builtin_ctzll(positions)];

		if (other->length == length && memcmp(other->text, word, length) == 0)
			fit |= positions & -positions;
	}
	return fit;
}

/*
 * Advances the set of positions by one word of the key; returns false if it is
 * empty then.
 */
static bool
step(const TqPattern *pattern, const char *word, size_t length)
{
	uint64_t carry = 0;
	uint64_t left = 0;

	for (size_t i = 0; i < pattern->blocks; i++)
	{
		uint64_t now = pattern->now[i];
		uint64_t any = now & pattern->any[i];
		uint64_t fit = any | fitting(&pattern->words[i * BITS], now & ~any,
									 word, length);

		pattern->now[i] = (now & pattern->many[i]) | fit << 1 | carry;
		carry = fit >> (BITS - 1);
		left |= pattern->now[i];
	}
	return left != 0;
}

/* Returns whether the pattern matches the whole key. */
bool
tq_topic_match(const TqPattern *pattern, const char *routing_key)
{
	size_t length;

	if (pattern->end == 0 && pattern->open_ended)
		return true;
	if (*routing_key == '\0')
		return pattern->end == 0;
	memset(pattern->now, 0, pattern->blocks * sizeof(uint64_t));
	topic_add(pattern->now, 0);
	do
	{
		length = word_length(routing_key);
		if (!step(pattern, routing_key, length))
			return false;
		/* The # at the end matches the rest of the key. */
		if (pattern->open_ended && has(pattern->now, pattern->end))
			return true;
	} while (next_word(&routing_key, length));
	return has(pattern->now, pattern->end);
}
