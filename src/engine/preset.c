/*
 * preset.c
 *	  What the presets for Conductor and Taskbroker have in common: how they
 *	  read a JSON object of the other system, and how they build a policy.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

/* ---- reading ---- */

/* Raises the error that the value of a key is invalid. */
void
tq_preset_error(const TqPreset *source, const char *key, JsonbValue *value,
				const char *hint)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid \"%s\" in %s", key, source->name),
					errdetail("\"%s\" is %s.", key, tq_json_shown(value)),
					errhint("%s", hint)));
}

/* Raises the error that the value of a key is none of the names. */
void
tq_preset_error_choice(const TqPreset *source, const char *key,
					   JsonbValue *value, const char *const *names)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; names[i] != NULL; i++)
		tq_error_list(&list, names[i + 1] != NULL ? ", " : " or ", names[i]);
	tq_preset_error(source, key, value, psprintf("Give %s.", list.data));
}

/* Checks that what is read is an object. */
void
tq_preset_check(const TqPreset *source)
{
	if (JB_ROOT_IS_OBJECT(source->json))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("%s must be a JSON object", source->name),
			 errdetail("It is %s.", tq_json_clip(&source->json->root)),
			 errhint("Give an object, {} for one with defaults only.")));
}

/*
 * Returns the value of a key, and in *source the object that has it, or NULL
 * if no object has it.  A null counts as absent.
 */
JsonbValue *
tq_preset_find(const TqPreset **source, const char *key)
{
	for (const TqPreset *s = *source; s != NULL; s = s->behind)
	{
		JsonbValue *value = s->json != NULL ? tq_json_get(s->json, key) : NULL;

		if (value == NULL || value->type == jbvNull)
			continue;
		*source = s;
		return value;
	}
	return NULL;
}

/* Reads a value as a whole number; returns false if it is not one. */
bool
tq_preset_whole(const TqPreset *source, const JsonbValue *value, int64 *number)
{
	if (source->numbers_as_text && value->type == jbvString)
		return tq_json_parse_whole(tq_json_string_of(value), number);
	return tq_json_whole_number(value, PG_INT64_MIN, PG_INT64_MAX, number);
}

/*
 * Returns the index of a name, which may have the prefix, or -1 if the value
 * is not in the list.
 */
int
tq_preset_index(const JsonbValue *value, const char *prefix,
				const char *const *names)
{
	const char *name = tq_json_string_of(value);

	if (name == NULL)
		return -1;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	for (int i = 0; names[i] != NULL; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return i;
	}
	return -1;
}

/*
 * Returns the value of a key as a whole number, which must be at least min.
 * The hint of the error ends in what else the key may have.
 */
int64
tq_preset_number_of(const TqPreset *source, const char *key, JsonbValue *value,
					int64 min, const char *otherwise)
{
	int64 number;

	if (!tq_preset_whole(source, value, &number) || number < min ||
		number > PG_INT32_MAX)
		tq_preset_error(source, key, value,
						psprintf("Give a whole number from " INT64_FORMAT
								 " to %d%s.",
								 min, PG_INT32_MAX, otherwise));
	return number;
}

/* Returns the whole number at a key, which must be at least min. */
int64
tq_preset_number(const TqPreset *source, const char *key, int64 min,
				 int64 if_absent)
{
	JsonbValue *value = tq_preset_find(&source, key);

	return value == NULL ? if_absent
						 : tq_preset_number_of(source, key, value, min, "");
}

/* Returns whether a key is true; it is false by default. */
bool
tq_preset_flag(const TqPreset *source, const char *key)
{
	JsonbValue *value = tq_preset_find(&source, key);

	if (value == NULL)
		return false;
	if (value->type != jbvBool)
		tq_preset_error(source, key, value, "Give true or false.");
	return value->val.boolean;
}

/* Returns the value of a key, which must be one of the names, as an index. */
int
tq_preset_choice(const TqPreset *source, const char *key,
				 const char *const *names, int if_absent)
{
	JsonbValue *value = tq_preset_find(&source, key);
	int choice;

	if (value == NULL)
		return if_absent;
	choice = tq_preset_index(value, "", names);
	if (choice < 0)
		tq_preset_error_choice(source, key, value, names);
	return choice;
}

/* ---- building a policy ---- */

/* Adds a time unless it is 0, which means none. */
void
tq_preset_add_time(JsonbParseState **state, const char *key, int64 seconds)
{
	if (seconds > 0)
		tq_json_add_int(state, key, seconds);
}

/* Adds the reasons for which a run is retried. */
void
tq_preset_add_retry_on(JsonbParseState **state, const TqResolved *reasons,
					   int n)
{
	tq_json_key(state, "retryOn");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		tq_json_string(state, WJB_ELEM, tq_resolved_name(reasons[i]));
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/*
 * Returns the policy that was built, or raises an error if no task may have
 * it.
 */
Jsonb *
tq_preset_policy(const TqPreset *source, Jsonb *policy)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(policy, &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy, given.retries, tq_max_runs);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("%s gives a policy that no task may have",
						source->name),
				 errdetail("The policy %s.", fault),
				 errhint("Change %s; the policy would be %s.", source->name,
						 JsonbToCString(NULL, &policy->root,
										VARSIZE(policy)))));
	return policy;
}

/* ---- states ---- */

/* Returns the last run of a task, or the location of an unscheduled one. */
TqRun
tq_preset_run(const TqTask *task)
{
	TqRun run;

	if (!tq_run_peek(task->id, &run))
		tq_error_missing_task(&task->task_id);
	return run;
}
