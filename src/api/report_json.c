/*
 * report_json.c
 *	  Reads the reports of workers: results and errors of runs, and lists of
 *	  reports from JSON (doc/spec/taskcluster.md 2.12).
 *
 * The keys of a report are those of KEYS below.  A key that is null is as
 * absent.  Whatever is wrong with the reports is TQ400, and DETAIL names the
 * element and the key.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

/* ---- results and errors ---- */

/* The ends of hints: what a worker reports instead of what is refused. */
#define KEPT_ELSEWHERE                                                        \
	"or with a reference to where it is kept, such as an artifact of tq.create_artifact()."
#define SAID_INSTEAD                                                          \
	"which is cut, what went wrong. tq.create_artifact() keeps the rest."

/*
 * Returns what is wrong with a result, as a text that follows "it" in an error,
 * or NULL: it may have at most tq.max_inline_artifact bytes as JSON text.
 */
static const char *
result_fault(const Jsonb *result)
{
	Size bytes = tq_json_size_over(&result->root, tq_max_inline_artifact);

	if (bytes == 0)
		return NULL;
	return psprintf("has %zu bytes, and may have %d (tq.max_inline_artifact)",
					bytes, tq_max_inline_artifact);
}

/* Returns a result, which is any jsonb that is not too large, or NULL. */
Jsonb *
tq_arg_result(FunctionCallInfo fcinfo, int n, const char *name)
{
	Jsonb *result;
	const char *fault;

	if (PG_ARGISNULL(n))
		return NULL;
	result = PG_GETARG_JSONB_P(n);
	fault = result_fault(result);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("%s is too large", name), errdetail("It %s.", fault),
				 errhint("Report without %s, " KEPT_ELSEWHERE, name)));
	return result;
}

#define ERROR_MAX_BYTES (64 * 1024) /* as JSON text */

/*
 * Returns how many bytes the message of an error may have beside its details.
 */
static Size
message_room(const Jsonb *details)
{
	Size rest = strlen("{\"message\": \"\"}");

	if (details != NULL)
		rest += strlen(", \"details\": ") + tq_json_size(&details->root, true);
	return rest > ERROR_MAX_BYTES ? 0 : ERROR_MAX_BYTES - rest;
}

/*
 * Returns the error of a run: what a worker has given, with its message, if it
 * has given one, as {message, details}; NULL for neither.  A JSON null is none,
 * because that is what some drivers make of NULL.  A message that is too long
 * is cut, because a worker that cannot report a failure leaves the run claimed.
 */
static Jsonb *
error_with_message(Jsonb *error, char *message)
{
	JsonbParseState *state;

	if (error != NULL && tq_json_is_null(error))
		error = NULL;
	if (message == NULL)
		return error;
	state = tq_json_begin();
	tq_json_add_text(&state, "message",
					 tq_json_cut(message, message_room(error)));
	if (error != NULL)
		tq_json_add_object(&state, "details", error);
	return tq_json_end(&state);
}

/*
 * Returns what is wrong with the error of a run, as a text that follows "it"
 * in an error, or NULL.
 */
static const char *
error_fault(const Jsonb *error)
{
	Size bytes = tq_json_size_over(&error->root, ERROR_MAX_BYTES);

	if (bytes == 0)
		return NULL;
	return psprintf("has %zu bytes, and may have %d", bytes, ERROR_MAX_BYTES);
}

/*
 * Returns the error that a worker reports for a run, of the arguments error and
 * error_message, or NULL.
 */
Jsonb *
tq_arg_error(FunctionCallInfo fcinfo, int error_arg, int message_arg)
{
	Jsonb *error = PG_ARGISNULL(error_arg) ? NULL
										   : PG_GETARG_JSONB_P(error_arg);
	const char *fault;

	error = error_with_message(error, PG_ARGISNULL(message_arg)
										  ? NULL
										  : tq_arg_text(fcinfo, message_arg,
														"error_message"));
	fault = error == NULL ? NULL : error_fault(error);
	if (fault != NULL)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("error is too large"),
			 errdetail("With error_message, it %s.", fault),
			 errhint(
				 "Report without error, and say in error_message, " SAID_INSTEAD)));
	return error;
}

/* ---- lists of reports ---- */

/* The keys of a report, in the order of TqJsonKey. */
#define KEYS(KEY)                                                             \
	KEY(ERROR, "error")                                                       \
	KEY(RUN_ID, "runId")                                                      \
	KEY(REASON, "reason")                                                     \
	KEY(RESULT, "result")                                                     \
	KEY(TASK_ID, "taskId")                                                    \
	KEY(RETRY_DELAY, "retryDelay")                                            \
	KEY(CREDENTIALS, "credentials")                                           \
	KEY(RETRIES_LEFT, "retriesLeft")                                          \
	KEY(ERROR_MESSAGE, "errorMessage")

enum
{
	KEYS(TQ_JSON_KEY_NUMBER)
};

static const TqJsonKey keys[] = {KEYS(TQ_JSON_KEY_NAME)};

/* ---- errors ---- */

#define HINT                                                                  \
	"Give an array of objects of taskId, runId, reason, result, error, errorMessage, retryDelay, retriesLeft and credentials."

#define NOT_STORED "No report of this call was stored. Repeat it without this "

/* Raises TQ400 for an element, counted from 0. */
pg_noreturn static void
refuse(int element, const char *rule, const char *hint)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid report"),
					errdetail("Element %d of reports %s.", element + 1, rule),
					errhint("%s", hint)));
	pg_unreachable();
}

pg_noreturn static void
refuse_element(int element, const char *rule)
{
	refuse(element, rule, HINT);
}

/* Raises TQ400 for a key of the report that is read. */
static void
refuse_key(const TqJsonReader *reader, const char *key, const char *rule)
{
	refuse_element(*(const int *) reader->owner,
				   psprintf("has a key \"%s\", which %s", key, rule));
}

static void
report_json_refuse(const TqJsonReader *reader, int key, const char *rule)
{
	refuse_key(reader, keys[key].name, rule);
}

/* Raises TQ400 for the fault of what a run is reported with. */
static void
refuse_content(const TqJsonReader *reader, int key, const char *fault,
			   const char *hint)
{
	refuse(*(const int *) reader->owner,
		   psprintf("has a key \"%s\", which %s", keys[key].name, fault),
		   hint);
}

/* ---- keys ---- */

/* Returns the value of a key, or NULL if it is absent or null. */
static const JsonbValue *
value_at(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = tq_json_at(reader, key);

	return value == NULL || value->type == jbvNull ? NULL : value;
}

/* Returns a number, which must be from 0 to max. */
static int
report_json_read_number(const TqJsonReader *reader, int key, int max)
{
	int64 number;

	if (!tq_json_whole_number(value_at(reader, key), 0, max, &number))
		report_json_refuse(reader, key,
						   psprintf("must be a whole number from 0 to %d",
									max));
	return (int) number;
}

static void
report_json_require(const TqJsonReader *reader, int key)
{
	if (value_at(reader, key) == NULL)
		refuse_element(*(const int *) reader->owner,
					   psprintf("has no key \"%s\"", keys[key].name));
}

/*
 * Returns the reason of that name with which resolve() ends a run, which has
 * more choices than report_exception(), or TQ_RESOLVED_NONE.
 */
TqResolved
tq_report_reason(const char *name)
{
	TqResolved reason = tq_resolved_parse(name);

	if (reason == TQ_RESOLVED_CANCELED)
		return TQ_RESOLVED_CANCELED_BY_WORKER;
	return reason == TQ_RESOLVED_COMPLETED || reason == TQ_RESOLVED_FAILED ||
				   reason == TQ_RESOLVED_FAILED_TERMINAL ||
				   tq_resolved_is_reportable(reason)
			   ? reason
			   : TQ_RESOLVED_NONE;
}

static TqResolved
read_reason(const TqJsonReader *reader)
{
	TqResolved reason;

	if (value_at(reader, KEY_REASON) == NULL)
		return TQ_RESOLVED_COMPLETED;
	reason = tq_report_reason(tq_json_read_string(reader, KEY_REASON));
	if (reason == TQ_RESOLVED_NONE)
		report_json_refuse(reader, KEY_REASON,
						   "must be one of " TQ_REPORT_REASONS);
	return reason;
}

/* Returns the value of a key as jsonb, or NULL if it is absent or null. */
static Jsonb *
json_at(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = value_at(reader, key);

	return value == NULL ? NULL
						 : JsonbValueToJsonb(unconstify(JsonbValue *, value));
}

/* Returns the result, after checking it, or NULL if there is none. */
static Jsonb *
read_result(const TqJsonReader *reader)
{
	Jsonb *result = json_at(reader, KEY_RESULT);
	const char *fault = result == NULL ? NULL : result_fault(result);

	if (fault != NULL)
		refuse_content(reader, KEY_RESULT, fault,
					   NOT_STORED "\"result\", " KEPT_ELSEWHERE);
	return result;
}

/* Returns the error with its message, after checking it, or NULL for neither. */
static Jsonb *
read_error(const TqJsonReader *reader)
{
	char *message = value_at(reader, KEY_ERROR_MESSAGE) == NULL
						? NULL
						: tq_json_read_string(reader, KEY_ERROR_MESSAGE);
	Jsonb *error = error_with_message(json_at(reader, KEY_ERROR), message);
	const char *fault = error == NULL ? NULL : error_fault(error);

	if (fault != NULL)
		refuse_content(
			reader, KEY_ERROR, fault,
			NOT_STORED
			"\"error\", and say in \"errorMessage\", " SAID_INSTEAD);
	return error;
}

static TqCredentials *
report_json_read_credentials(const TqJsonReader *reader)
{
	const JsonbValue *value = value_at(reader, KEY_CREDENTIALS);
	TqCredentials *credentials;

	if (value == NULL)
		return NULL;
	credentials = palloc(sizeof(TqCredentials));
	if (value->type != jbvBinary ||
		!tq_credentials_read(value->val.binary.data, credentials))
		report_json_refuse(
			reader, KEY_CREDENTIALS,
			"must be an object of the strings \"clientId\", \"accessToken\" and \"certificate\"");
	return credentials;
}

/*
 * Refuses a key that does not belong to the reason, as the functions for one
 * run do not have that argument.
 */
static void
report_json_check_keys(const TqJsonReader *reader, TqResolved reason)
{
	static const int of_others[] = {KEY_ERROR, KEY_ERROR_MESSAGE,
									KEY_RETRY_DELAY, KEY_RETRIES_LEFT};

	if (reason != TQ_RESOLVED_COMPLETED &&
		value_at(reader, KEY_RESULT) != NULL)
		report_json_refuse(reader, KEY_RESULT,
						   "only a report with the reason completed has");
	for (int i = 0; i < lengthof(of_others); i++)
	{
		if (reason == TQ_RESOLVED_COMPLETED &&
			value_at(reader, of_others[i]) != NULL)
			report_json_refuse(
				reader, of_others[i],
				"a report with the reason completed does not have");
	}
}

/* ---- reports ---- */

/* Reads a report; `element` is its position, counted from 0. */
static void
report_json_read_report(const JsonbValue *value, int element, TqReport *report)
{
	TqJsonReader reader = {.keys = keys,
						   .nkeys = lengthof(keys),
						   .refuse = refuse_key,
						   .owner = &element};
	JsonbValue unknown;
	const JsonbValue *delay;
	const char *fault;

	if (!tq_json_is_object(value))
		refuse_element(element, "is not an object");
	if (!tq_json_open(&reader, value->val.binary.data, &unknown))
		refuse_element(element,
					   psprintf("has an unknown key \"%s\"",
								tq_error_clip(tq_json_string_of(&unknown))));
	report_json_require(&reader, KEY_TASK_ID);
	report_json_require(&reader, KEY_RUN_ID);
	(void) tq_json_read_slug(&reader, KEY_TASK_ID, &report->task_id);
	report->run_id = report_json_read_number(&reader, KEY_RUN_ID,
											 PG_INT32_MAX);
	report->reason = read_reason(&reader);
	report_json_check_keys(&reader, report->reason);
	report->result = read_result(&reader);
	report->error = read_error(&reader);
	report->credentials = report_json_read_credentials(&reader);
	delay = value_at(&reader, KEY_RETRY_DELAY);
	report->has_retry_delay = delay != NULL;
	if (delay != NULL)
	{
		fault = tq_duration_parse(delay, &report->retry_delay);
		if (fault != NULL)
			report_json_refuse(&reader, KEY_RETRY_DELAY, fault);
	}
	report->has_retries_left = value_at(&reader, KEY_RETRIES_LEFT) != NULL;
	if (report->has_retries_left)
		report->retries_left = report_json_read_number(&reader,
													   KEY_RETRIES_LEFT,
													   tq_max_runs - 1);
	report->is_checked = true;
}

/* Compares reports by the runs that they name, then by their positions. */
static int
compare_runs(const void *a, const void *b)
{
	const TqReport *x = *(const TqReport *const *) a;
	const TqReport *y = *(const TqReport *const *) b;
	int order = tq_slug_compare(&x->task_id, &y->task_id);

	if (order != 0)
		return order;
	if (x->run_id != y->run_id)
		return x->run_id < y->run_id ? -1 : 1;
	return x < y ? -1 : x > y;
}

/*
 * Raises TQ400 if two reports name the same run, because they may be about
 * different ends.
 */
static void
check_runs(const TqReport *reports, int n)
{
	const TqReport **sorted = palloc(sizeof(TqReport *) * Max(n, 1));

	for (int i = 0; i < n; i++)
		sorted[i] = &reports[i];
	qsort(sorted, n, sizeof(TqReport *), compare_runs);
	for (int i = 1; i < n; i++)
	{
		const TqReport *before = sorted[i - 1];
		const TqReport *report = sorted[i];

		if (report->run_id == before->run_id &&
			tq_slug_compare(&report->task_id, &before->task_id) == 0)
			refuse_element((int) (report - reports),
						   psprintf("names the same run as element %d",
									(int) (before - reports) + 1));
	}
}

/* Returns the reports of an array, or raises TQ400. */
TqReport *
tq_reports_read(Jsonb *json, int *n)
{
	TqJsonIterator elements;
	TqReport *reports;
	int i = 0;

	if (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("reports must be an array"),
				 errdetail("The argument is %s.", tq_json_clip(&json->root)),
				 errhint(HINT)));
	elements = tq_json_iterate(&json->root);
	tq_check_batch("reports", elements.n);
	*n = elements.n;
	reports = palloc0(sizeof(TqReport) * Max(*n, 1));
	for (; tq_json_next(&elements); i++)
		report_json_read_report(&elements.value, i, &reports[i]);
	check_runs(reports, *n);
	return reports;
}
