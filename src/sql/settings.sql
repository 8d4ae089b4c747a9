-- ---------------------------------------------------------------------------
-- Settings of queues (doc/spec/policy.md 6)
--
-- Sessions cache the settings of all queues; a trigger of the table makes them
-- read it again (storage/queue_settings_table.c).
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.check_settings(task_queue_id text, settings jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_check_settings' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.check_settings(text, jsonb) IS 'raises TQ400 for settings that a queue may not have';

CREATE FUNCTION tq_internal.settings_changed(queue int) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_settings_changed' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.settings_changed(int) IS 'makes the limits and gates of a queue follow its settings, and wakes those that wait for its tasks at commit';

-- What src/core/queue_settings.c says.
CREATE FUNCTION tq_internal.needs_counters(settings jsonb) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN EXISTS (SELECT FROM jsonb_each(settings) AS s WHERE s.value <> '0' AND s.value <> 'null'
		AND s.key IN ('concurrentLimit', 'rateCount', 'maxPending', 'maxDelayed', 'maxRunning'));
END
$$;
COMMENT ON FUNCTION tq_internal.needs_counters(jsonb) IS 'whether settings of a queue need its counters in shared memory';

CREATE FUNCTION tq_internal.change_settings(name text, changes jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	number int;
	answer jsonb;
	was_limited bool;
BEGIN
	PERFORM tq_internal.check_settings(name, changes);
	number := tq_internal.intern_queue(name);
	SELECT tq_internal.needs_counters(s.settings) INTO was_limited FROM tq_internal.queue_settings s WHERE s.queue = number;
	-- It waits for a concurrent change of the same queue, and adds to that.
	INSERT INTO tq_internal.queue_settings AS s VALUES (number, jsonb_strip_nulls(changes), session_user)
		ON CONFLICT (queue) DO UPDATE SET settings = jsonb_strip_nulls(s.settings || changes),
			creator = CASE WHEN was_limited THEN s.creator ELSE session_user END
		RETURNING s.settings INTO answer;
	PERFORM tq_internal.check_settings(name, answer);
	IF was_limited IS NOT TRUE AND tq_internal.needs_counters(answer) THEN
		PERFORM tq_internal.check_quota('tq.max_limited_queues');
	END IF;
	IF answer = '{}' THEN
		DELETE FROM tq_internal.queue_settings s WHERE s.queue = number;
	END IF;
	PERFORM tq_internal.settings_changed(number);
	RETURN answer;
END
$$;
COMMENT ON FUNCTION tq_internal.change_settings(text, jsonb) IS 'changes settings of a queue, of which a key that is null is removed; returns all that it has then';

CREATE FUNCTION tq.set_queue(task_queue_id text, settings jsonb) RETURNS jsonb
	LANGUAGE tq_operate AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
BEGIN
	PERFORM tq_internal.not_null(settings, 'settings');
	PERFORM tq_internal.require('queue:set-queue:' || name);
	RETURN tq_internal.change_settings(name, settings);
END
$$;
COMMENT ON FUNCTION tq.set_queue(text, jsonb) IS 'change settings of a queue: limits, timeouts, retention, default policy; null removes one; returns all';

CREATE FUNCTION tq.pause_queue(task_queue_id text) RETURNS jsonb
	LANGUAGE tq_operate AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
BEGIN
	PERFORM tq_internal.require('queue:pause-queue:' || name);
	RETURN tq_internal.change_settings(name, '{"paused": true}');
END
$$;
COMMENT ON FUNCTION tq.pause_queue(text) IS 'hand out no tasks of a queue until resume_queue(); nothing is lost, and time goes on';

CREATE FUNCTION tq.resume_queue(task_queue_id text) RETURNS jsonb
	LANGUAGE tq_operate AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
BEGIN
	PERFORM tq_internal.require('queue:pause-queue:' || name);
	RETURN tq_internal.change_settings(name, '{"paused": null}');
END
$$;
COMMENT ON FUNCTION tq.resume_queue(text) IS 'hand out tasks of a paused queue again, first to the workers that wait';

