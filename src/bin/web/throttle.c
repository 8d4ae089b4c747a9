/*
 * throttle.c
 *	  Attempts to log in are slowed, by address, and by role at an address.
 *
 * Some failures are free.  After each further one the next attempt has to wait,
 * longer each time, up to a minute; after ten minutes all is forgotten.  A role is
 * slowed for all addresses only a little, because others could lock it out.  The
 * table is bounded: an entry takes the place of the one of its slot that has
 * failed longest ago.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "web.h"

#define SLOTS 1024
#define WAYS 4
#define FORGET 600000
#define WAIT_LAST 60000

typedef struct Entry
{
	uint64_t key;
	int failures;
	Moment failed;
} Entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Entry entries[SLOTS][WAYS];

static uint64_t
hash(const char *text, uint64_t seed)
{
	for (; *text != '\0'; text++)
		seed = (seed ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
	return seed;
}

/* Returns the entry of a key, or the place for it. */
static Entry *
entry_of(uint64_t key)
{
	Entry *way = entries[key % SLOTS];
	Entry *oldest = way;

	for (int i = 0; i < WAYS; i++)
	{
		if (way[i].key == key)
			return &way[i];
		if (way[i].failed < oldest->failed)
			oldest = &way[i];
	}
	return oldest;
}

/* Returns for how long an attempt has to wait yet. */
static Moment
wait_of(uint64_t key, int free_ones, Moment last)
{
	const Entry *entry = entry_of(key);
	Moment pause = 1000;
	Moment ready;

	if (entry->key != key || entry->failures < free_ones ||
		clock_now() - entry->failed > FORGET)
		return 0;
	for (int i = free_ones; i < entry->failures && pause < last; i++)
		pause *= 2;
	ready = entry->failed + (pause < last ? pause : last) - clock_now();
	return ready > 0 ? ready : 0;
}

static void
note(uint64_t key, int more)
{
	Entry *entry = entry_of(key);

	if (entry->key != key || clock_now() - entry->failed > FORGET)
		*entry = (Entry){.key = key};
	entry->failures += more;
	if (entry->failures < 0)
		entry->failures = 0;
	if (entry->failures > 100)
		entry->failures = 100;
	if (more > 0)
		entry->failed = clock_now();
}

typedef struct Keys
{
	uint64_t address;
	uint64_t pair;
	uint64_t role;
} Keys;

static Keys
keys_of(const char *role, const char *address)
{
	char network[INET6_ADDRSTRLEN];
	Keys keys;

	trust_network(address, network, sizeof(network));
	keys.address = hash(network, UINT64_C(0xcbf29ce484222325)) | 1;
	keys.pair = hash(role, keys.address) | 1;
	keys.role = hash(role, UINT64_C(0x9ae16a3b2f90404f)) | 1;
	return keys;
}

/*
 * Begins an attempt, which counts as a failure until it is known to be none; returns
 * the seconds that it has to wait, 0: none.  With the lock held from the look to the
 * note, so that attempts at one time do not pass together.
 */
int
throttle_try(const char *role, const char *address)
{
	Keys keys = keys_of(role, address);
	Moment longest;
	Moment other;

	pthread_mutex_lock(&lock);
	longest = wait_of(keys.pair, 5, WAIT_LAST);
	other = wait_of(keys.address, 20, WAIT_LAST);
	longest = other > longest ? other : longest;
	other = wait_of(keys.role, 20, 2000);
	longest = other > longest ? other : longest;
	if (longest == 0)
	{
		note(keys.pair, 1);
		note(keys.address, 1);
		note(keys.role, 1);
	}
	pthread_mutex_unlock(&lock);
	return (int) ((longest + 999) / 1000);
}

/* An attempt was good. */
void
throttle_forgive(const char *role, const char *address)
{
	Keys keys = keys_of(role, address);

	pthread_mutex_lock(&lock);
	note(keys.pair, -100);
	note(keys.address, -1);
	note(keys.role, -100);
	pthread_mutex_unlock(&lock);
}
