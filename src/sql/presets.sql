-- ---------------------------------------------------------------------------
-- Presets: equivalents of other systems (doc/spec/policy.md 7, 9, 10)
--
-- What a key of a Conductor TaskDef or WorkflowTask (doc/spec/conductor.md 2, 5, 6), or
-- of a Taskbroker activation (doc/spec/taskbroker.md 1, 2, 4), means here.  Other keys
-- are ignored, whether the other system knows them or not, because its JSON grows with
-- each version.  core/policy.c carries a policy out.
--
-- What is read are sources, [{"name", "json"}], the first of which that has a key wins;
-- null counts as absent.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.json_shown(value jsonb) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_json_shown' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.json_shown(jsonb) IS 'JSON as an error shows it';

CREATE FUNCTION tq_internal.policy_fault(policy jsonb) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_policy_fault' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.policy_fault(jsonb) IS 'what is wrong with a policy; NULL: a task may have it';

CREATE FUNCTION tq_internal.last_run(task_id tq.slugid, OUT state text, OUT reason text, OUT is_delayed bool, OUT is_forgiven bool)
	AS 'MODULE_PATHNAME', 'tq_sql_last_run' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.last_run(tq.slugid) IS 'the last run of a task, which the caller may read: its state, and how it ended';

CREATE FUNCTION tq_internal.preset_source(name text, value jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM tq_internal.not_null(value, name);
	IF jsonb_typeof(value) <> 'object' THEN
		RAISE EXCEPTION '% must be a JSON object', name
			USING ERRCODE = 'TQ400', DETAIL = format('It is %s.', tq_internal.json_shown(value)),
				HINT = 'Give an object, {} for one with defaults only.';
	END IF;
	RETURN jsonb_build_object('name', name, 'json', value);
END
$$;
COMMENT ON FUNCTION tq_internal.preset_source(text, jsonb) IS 'an argument of that name as a source';

CREATE FUNCTION tq_internal.preset_find(sources jsonb, key text, OUT value jsonb, OUT source text) LANGUAGE plpgsql STABLE AS $$
BEGIN
	SELECT s.one -> 'json' -> key, s.one ->> 'name' INTO value, source
		FROM jsonb_array_elements(sources) WITH ORDINALITY AS s (one, n)
		WHERE s.one -> 'json' ->> key IS NOT NULL ORDER BY s.n LIMIT 1;
END
$$;
COMMENT ON FUNCTION tq_internal.preset_find(jsonb, text) IS 'the value of a key, and the name of the source that has it; NULL: none has';

CREATE FUNCTION tq_internal.preset_error(source text, key text, value jsonb, hint text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION 'invalid "%" in %', key, source
		USING ERRCODE = 'TQ400', DETAIL = format('"%s" is %s.', key, tq_internal.json_shown(value)), HINT = hint;
END
$$;
COMMENT ON FUNCTION tq_internal.preset_error(text, text, jsonb, text) IS 'raises the error that the value of a key is invalid';

-- Protobuf writes 64-bit numbers as text.
CREATE FUNCTION tq_internal.preset_whole(value jsonb, as_text bool) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
	given text := value #>> '{}';
BEGIN
	IF jsonb_typeof(value) = 'number' AND trunc(given::numeric) = given::numeric
			OR as_text AND jsonb_typeof(value) = 'string' AND given ~ '^-?[0-9]{1,20}$' THEN
		RETURN given;
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION tq_internal.preset_whole(jsonb, bool) IS 'a value that is a whole number; NULL: it is not';

CREATE FUNCTION tq_internal.preset_number(sources jsonb, key text, if_absent bigint DEFAULT 0, at_least bigint DEFAULT 0, otherwise text DEFAULT '', as_text bool DEFAULT false)
	RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
	at_key record := tq_internal.preset_find(sources, key);
	number numeric := tq_internal.preset_whole(at_key.value, as_text);
BEGIN
	IF at_key.value IS NULL THEN
		RETURN if_absent;
	ELSIF number BETWEEN at_least AND 2147483647 THEN
		RETURN number;
	END IF;
	PERFORM tq_internal.preset_error(at_key.source, key, at_key.value, format('Give a whole number from %s to 2147483647%s.', at_least, otherwise));
END
$$;
COMMENT ON FUNCTION tq_internal.preset_number(jsonb, text, bigint, bigint, text, bool) IS
	'the whole number at a key; the hint of an error ends in what else the key may have';

CREATE FUNCTION tq_internal.preset_flag(sources jsonb, key text) RETURNS bool LANGUAGE plpgsql STABLE AS $$
DECLARE
	at_key record := tq_internal.preset_find(sources, key);
BEGIN
	IF jsonb_typeof(at_key.value) <> 'boolean' THEN
		PERFORM tq_internal.preset_error(at_key.source, key, at_key.value, 'Give true or false.');
	END IF;
	RETURN coalesce(at_key.value::bool, false);
END
$$;
COMMENT ON FUNCTION tq_internal.preset_flag(jsonb, text) IS 'whether a key is true; it is false by default';

CREATE FUNCTION tq_internal.preset_choice(sources jsonb, key text, if_absent text, VARIADIC names text[]) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
	at_key record := tq_internal.preset_find(sources, key);
BEGIN
	IF at_key.value IS NOT NULL AND NOT coalesce(jsonb_typeof(at_key.value) = 'string' AND at_key.value #>> '{}' = ANY (names), false) THEN
		PERFORM tq_internal.preset_error(at_key.source, key, at_key.value,
			format('Give %s or %s.', array_to_string(names[:cardinality(names) - 1], ', '), names[cardinality(names)]));
	END IF;
	RETURN coalesce(at_key.value #>> '{}', if_absent);
END
$$;
COMMENT ON FUNCTION tq_internal.preset_choice(jsonb, text, text, text[]) IS 'the value of a key, which must be one of these names';

CREATE FUNCTION tq_internal.preset_policy(source text, policy jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
	fault text := tq_internal.policy_fault(policy);
BEGIN
	IF fault IS NOT NULL THEN
		RAISE EXCEPTION '% gives a policy that no task may have', source
			USING ERRCODE = 'TQ400', DETAIL = format('The policy %s.', fault),
				HINT = format('Change %s; the policy would be %s.', source, policy);
	END IF;
	RETURN policy;
END
$$;
COMMENT ON FUNCTION tq_internal.preset_policy(text, jsonb) IS 'the policy that was built, if a task may have it';

-- ---- Conductor ----

CREATE FUNCTION tq_internal.check_encloses(sources jsonb, outer_key text, inner_key text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	seconds bigint := tq_internal.preset_number(sources, inner_key);
	time_limit bigint := tq_internal.preset_number(sources, outer_key);
BEGIN
	IF time_limit <> 0 AND seconds > time_limit THEN
		RAISE EXCEPTION 'invalid "%" in %', inner_key, (SELECT f.source FROM tq_internal.preset_find(sources, inner_key) AS f)
			USING ERRCODE = 'TQ400', DETAIL = format('"%s" is %s, and "%s" is %s.', inner_key, seconds, outer_key, time_limit),
				HINT = format('Give a "%s" that is not greater than "%s".', inner_key, outer_key);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.check_encloses(jsonb, text, text) IS
	'raises an error if the inner time is longer than the outer one, which encloses it unless it is 0';

-- timeoutPolicy applies to all timeouts except the response timeout, which is always
-- retried.  A task that is completed asynchronously has no response timeout; only
-- runTimeout, if there is one, ends its claim.  If its timeout only alerts, it must
-- keep its claim beyond the timeout; no claim may outlast runTimeout, so it has none.
-- Conductor refuses a responseTimeoutSeconds of 0, so null means none.  `optional` wins
-- over `permissive` and over TIME_OUT_WF (doc/spec/policy.md 8 C17).
CREATE FUNCTION tq.conductor_policy(task_def jsonb, workflow_task jsonb DEFAULT '{}') RETURNS jsonb
	LANGUAGE tq_read STABLE AS $$
DECLARE
	sources jsonb := jsonb_build_array(tq_internal.preset_source('workflow_task', workflow_task), tq_internal.preset_source('task_def', task_def));
	overdue text := tq_internal.preset_choice(sources, 'timeoutPolicy', 'TIME_OUT_WF', 'RETRY', 'TIME_OUT_WF', 'ALERT_ONLY');
	retries bigint := tq_internal.preset_number(sources, 'retryCount', 3);
	backoff text := tq_internal.preset_choice(sources, 'retryLogic', 'FIXED', 'FIXED', 'LINEAR_BACKOFF', 'EXPONENTIAL_BACKOFF');
	factor bigint := tq_internal.preset_number(sources, 'backoffScaleFactor', 1, 1);
	jitter bigint := tq_internal.preset_number(sources, 'backoffJitterMs');
	retry_delay bigint := tq_internal.preset_number(sources, 'retryDelaySeconds', 60);
	longest_delay bigint := tq_internal.preset_number(sources, 'maxRetryDelaySeconds');
	run_timeout bigint := tq_internal.preset_number(sources, 'timeoutSeconds');
	is_async bool := tq_internal.preset_flag(sources, 'asyncComplete');
	response bigint := tq_internal.preset_number(sources, 'responseTimeoutSeconds',
		CASE WHEN workflow_task ? 'responseTimeoutSeconds' OR task_def ? 'responseTimeoutSeconds' THEN 0 ELSE 3600 END, 1, ', or null for none');
BEGIN
	PERFORM tq_internal.check_encloses(sources, 'timeoutSeconds', 'responseTimeoutSeconds'),
		tq_internal.check_encloses(sources, 'totalTimeoutSeconds', 'timeoutSeconds');
	IF is_async THEN
		response := 2147483647;
		run_timeout := CASE WHEN overdue = 'ALERT_ONLY' THEN 0 ELSE run_timeout END;
	END IF;
	RETURN tq_internal.preset_policy('task_def', jsonb_strip_nulls(jsonb_build_object(
		'retries', retries,
		'retryOn', CASE WHEN overdue = 'RETRY' THEN '["failed", "claim-expired", "pending-timeout", "run-timeout"]' ELSE '["failed", "claim-expired"]' END::jsonb,
		'timeoutAlertOnly', CASE WHEN overdue = 'ALERT_ONLY' THEN true END,
		'retryBackoff', jsonb_build_object(
			'delay', retry_delay,
			'kind', CASE backoff WHEN 'FIXED' THEN 'fixed' WHEN 'LINEAR_BACKOFF' THEN 'linear' ELSE 'exponential' END,
			'factor', CASE WHEN backoff = 'LINEAR_BACKOFF' THEN factor END,
			'max', nullif(longest_delay, 0),
			'jitter', trim_scale(nullif(jitter, 0) / 1000.0)),
		'claimTimeout', nullif(CASE WHEN run_timeout > 0 THEN least(response, run_timeout) ELSE response END, 0),
		'runTimeout', nullif(run_timeout, 0),
		'pendingTimeout', nullif(tq_internal.preset_number(sources, 'pollTimeoutSeconds'), 0),
		'totalTimeout', nullif(tq_internal.preset_number(sources, 'totalTimeoutSeconds'), 0),
		'delay', nullif(tq_internal.preset_number(sources, 'startDelay'), 0),
		'onUnsuccessful', CASE WHEN tq_internal.preset_flag(sources, 'optional') THEN 'forgive'
			WHEN tq_internal.preset_flag(sources, 'permissive') THEN 'tolerate' ELSE 'cancel-group' END)));
END
$$;
COMMENT ON FUNCTION tq.conductor_policy(jsonb, jsonb) IS 'the policy that corresponds to a Conductor task definition and its use in a workflow';

-- A run that is retried is never the last one: its task is SCHEDULED again.
CREATE FUNCTION tq.conductor_status(task_id tq.slugid) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	run record := tq_internal.last_run(task_id);
BEGIN
	RETURN CASE run.state
		WHEN 'unscheduled' THEN NULL
		WHEN 'pending' THEN 'SCHEDULED'
		WHEN 'running' THEN 'IN_PROGRESS'
		ELSE CASE WHEN run.is_forgiven THEN 'COMPLETED_WITH_ERRORS' ELSE
			CASE run.reason
				WHEN 'completed' THEN 'COMPLETED'
				WHEN 'skipped' THEN 'SKIPPED'
				WHEN 'failed-terminal' THEN 'FAILED_WITH_TERMINAL_ERROR'
				WHEN 'deadline-exceeded' THEN 'TIMED_OUT'
				WHEN 'claim-expired' THEN 'TIMED_OUT'
				WHEN 'pending-timeout' THEN 'TIMED_OUT'
				WHEN 'run-timeout' THEN 'TIMED_OUT'
				WHEN 'canceled' THEN 'CANCELED'
				ELSE 'FAILED' END END END;
END
$$;
COMMENT ON FUNCTION tq.conductor_status(tq.slugid) IS 'the state of a task as a Conductor status; NULL while it is unscheduled';

-- ---- Taskbroker ----

-- OnAttemptsExceeded is given by number or by name, with or without its prefix.
CREATE FUNCTION tq_internal.is_deadletter(sources jsonb) RETURNS bool LANGUAGE plpgsql STABLE AS $$
DECLARE
	names text[] := '{UNSPECIFIED,DISCARD,DEADLETTER}';
	at_key record := tq_internal.preset_find(sources, 'on_attempts_exceeded');
	given text := at_key.value #>> '{}';
	number numeric := coalesce(tq_internal.preset_whole(at_key.value, true), array_position(names, regexp_replace(given, '^ON_ATTEMPTS_EXCEEDED_', '')) - 1);
BEGIN
	IF at_key.value IS NOT NULL AND (number BETWEEN 0 AND 2) IS NOT TRUE THEN
		PERFORM tq_internal.preset_error(at_key.source, 'on_attempts_exceeded', at_key.value, 'Give UNSPECIFIED, DISCARD or DEADLETTER.');
	END IF;
	RETURN coalesce(number = 2, false);
END
$$;
COMMENT ON FUNCTION tq_internal.is_deadletter(jsonb) IS 'whether OnAttemptsExceeded is DEADLETTER';

-- A worker has to ask for the attempts that are left after this one.  Both expires and
-- delay count from the time at which the activation is received.
CREATE FUNCTION tq.taskbroker_policy(activation jsonb) RETURNS jsonb
	LANGUAGE tq_read STABLE AS $$
DECLARE
	sources jsonb := jsonb_build_array(tq_internal.preset_source('activation', activation));
	retry jsonb := coalesce(nullif(activation -> 'retry_state', 'null'), '{}');
	at_most_once bool;
	retry_delay bigint;
	delay bigint;
	expires bigint;
BEGIN
	IF jsonb_typeof(retry) <> 'object' THEN
		PERFORM tq_internal.preset_error('activation', 'retry_state', retry, 'Give an object.');
	END IF;
	retry := jsonb_build_array(tq_internal.preset_source('retry_state', retry));
	at_most_once := tq_internal.preset_flag(retry, 'at_most_once');
	retry_delay := tq_internal.preset_number(retry, 'delay_on_retry', as_text => true);
	delay := tq_internal.preset_number(sources, 'delay', as_text => true);
	expires := tq_internal.preset_number(sources, 'expires', NULL, as_text => true);
	RETURN tq_internal.preset_policy('activation', jsonb_strip_nulls(jsonb_build_object(
		'retries', greatest(tq_internal.preset_number(retry, 'max_attempts', as_text => true) - 1
			- tq_internal.preset_number(retry, 'attempts', as_text => true), 0),
		'retryOn', CASE WHEN at_most_once THEN '["intermittent-task"]' ELSE '["intermittent-task", "claim-expired"]' END::jsonb,
		'lostRetries', CASE WHEN NOT at_most_once THEN 4 END,	-- max_processing_attempts is 5
		'retryBackoff', CASE WHEN retry_delay <> 0 THEN jsonb_build_object('delay', retry_delay, 'kind', 'fixed') END,
		'claimTimeout', least(tq_internal.preset_number(sources, 'processing_deadline_duration', 10, as_text => true) + 3, 2147483647),	-- 3: grace
		'pendingTimeout', greatest(expires - delay, CASE WHEN expires IS NOT NULL THEN 0 END),
		'delay', nullif(delay, 0),
		'onUnsuccessful', 'block',
		'deadLetter', tq_internal.is_deadletter(retry))));
END
$$;
COMMENT ON FUNCTION tq.taskbroker_policy(jsonb) IS 'the policy that corresponds to a Taskbroker activation';

-- A delayed run is in delay, whether it is the first attempt, a retry or a deferred run,
-- which Taskbroker does not know.  An unscheduled task is pending, the nearest state
-- that Taskbroker has.  The state retry never appears, because a task that is retried is
-- pending again at once.
CREATE FUNCTION tq.taskbroker_status(task_id tq.slugid) RETURNS text
	LANGUAGE tq_read AS $$
DECLARE
	run record := tq_internal.last_run(task_id);
BEGIN
	RETURN CASE run.state
		WHEN 'unscheduled' THEN 'pending'
		WHEN 'pending' THEN CASE WHEN run.is_delayed THEN 'delay' ELSE 'pending' END
		WHEN 'running' THEN 'processing'
		WHEN 'completed' THEN 'complete'
		ELSE 'failure' END;
END
$$;
COMMENT ON FUNCTION tq.taskbroker_status(tq.slugid) IS 'the state of a task as a Taskbroker status';
