-- ---------------------------------------------------------------------------
-- Exchange messages
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.topic_match(pattern text, routing_key text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_topic_match_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.topic_match(text, text) IS 'whether this AMQP topic pattern (* one word, # any number) matches this routing key';

CREATE FUNCTION tq_internal.arg_exchange(exchange text) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_arg_exchange' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_exchange(text) IS 'number of the exchange that the argument names';

CREATE FUNCTION tq_internal.bindings_changed() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_bindings_changed' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.bindings_changed() IS 'makes all sessions read the bindings again once this transaction has committed';

CREATE FUNCTION tq_internal.lock_bindings_of(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_lock_bindings_of' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.lock_bindings_of(text) IS 'keeps the number of bindings of a name from growing, until the end of the transaction';

CREATE FUNCTION tq_internal.lock_subscriptions_of(creator text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_lock_subscriptions_of' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.lock_subscriptions_of(text) IS 'the same for the number of subscriptions that a role has created';

CREATE FUNCTION tq_internal.check_length(value text, name text, at_least int, at_most int) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM tq_internal.not_null(value, name);
	IF octet_length(value) NOT BETWEEN at_least AND at_most THEN
		RAISE EXCEPTION 'invalid length of %', name
			USING ERRCODE = 'TQ400', DETAIL = format('It has %s bytes.', octet_length(value)), HINT = format('Give 1 to %s bytes.', at_most);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.check_length(text, text, int, int) IS 'raises TQ400 for a text argument that is too long or too short';

CREATE FUNCTION tq_internal.check_bindings(name text, present bigint, hint text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF present >= current_setting('tq.max_bindings')::int THEN
		RAISE EXCEPTION '"%" has too many bindings', tq_internal.clip(name)
			USING ERRCODE = 'configuration_limit_exceeded', HINT = hint,
				DETAIL = format('It has %s, and may have %s (tq.max_bindings).', present, current_setting('tq.max_bindings'));
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.check_bindings(text, bigint, text) IS 'raises an error if a name has as many bindings as it may have';

-- The first exchanges have a default channel, to which they are bound until it is
-- disabled (TQ_EXCHANGE_LAST_DEFAULT).
CREATE FUNCTION tq_internal.is_default_binding(channel text, exchange int, pattern text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN exchange <= 12 AND channel = 'tq_' || replace(tq_internal.exchange_name(exchange), '-', '_') AND pattern = '#';
END
$$;
COMMENT ON FUNCTION tq_internal.is_default_binding(text, int, text) IS 'whether this is the default binding of an exchange';

-- A routing key is primary and nine words more, of a group three, in which no slash can
-- be; or route and what a task has as its route, which may be any text.
CREATE FUNCTION tq_internal.check_pattern(pattern text, exchange int) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
	of_groups bool := starts_with(tq_internal.exchange_name(exchange), 'task-group-');
	words text[] := string_to_array(pattern, '.');
	size int := CASE WHEN of_groups THEN 4 ELSE 10 END;
	needed int := cardinality(array_remove(words, '#'));
BEGIN
	IF NOT of_groups AND (pattern = '#' OR words[1] IN ('route', '*', '#') AND cardinality(words) > 1)
		OR words[1] IN ('primary', '*', '#') AND strpos(pattern, '/') = 0 AND (needed = size OR needed < size AND '#' = ANY (words)) THEN
		RETURN;
	END IF;
	RAISE EXCEPTION 'pattern "%" matches no routing key', tq_internal.clip(pattern)
		USING ERRCODE = 'TQ400', DETAIL = format('A key of %s has %s words, separated by dots, the first of which is primary%s.', tq_internal.exchange_name(exchange), size,
				CASE WHEN of_groups THEN '' ELSE '; or route, a dot and a route of the task' END),
			HINT = CASE WHEN of_groups THEN 'Give primary.<taskGroupId>.#, or # for all.'
				WHEN pattern ~ '^[^./]+/[^./]+$' THEN format('For the queue of that name, give primary.*.*.*.*.%s.#', replace(tq_internal.clip(pattern), '/', '.'))
				ELSE 'Give primary.<taskId>.#, primary.*.*.*.*.<provisionerId>.<workerType>.#, route.<route>, or # for all.' END;
END
$$;
COMMENT ON FUNCTION tq_internal.check_pattern(text, int) IS 'raises TQ400 for a pattern that no routing key of an exchange can match';

CREATE FUNCTION tq.bind(channel text, exchange text, pattern text DEFAULT '#') RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	number int;
BEGIN
	PERFORM tq_internal.check_length(channel, 'channel', 1, 63);
	number := tq_internal.arg_exchange(exchange);
	PERFORM tq_internal.check_length(pattern, 'pattern', 0, 1024), tq_internal.check_pattern(pattern, number);
	PERFORM tq_internal.require_all('queue:bind:' || channel, 'queue:read-messages:' || tq_internal.exchange_name(number));
	IF tq_internal.is_default_binding(channel, number, bind.pattern) THEN
		DELETE FROM tq_internal.disabled_channel d WHERE d.exchange = number;
	ELSE
		IF current_setting('tq.max_bindings')::int > 0 THEN
			PERFORM tq_internal.lock_bindings_of(channel);
			PERFORM tq_internal.check_bindings(bind.channel, count(*), 'Bind a pattern that matches more, or unbind others.')
				FROM tq_internal.binding b
				WHERE b.channel = bind.channel
					AND NOT EXISTS (SELECT FROM tq_internal.binding o
						WHERE o.channel = bind.channel AND o.exchange = number AND o.pattern = bind.pattern);
		END IF;
		INSERT INTO tq_internal.binding (channel, exchange, pattern) VALUES (bind.channel, number, bind.pattern) ON CONFLICT DO NOTHING;
	END IF;
	PERFORM tq_internal.bindings_changed();
END
$$;
COMMENT ON FUNCTION tq.bind(text, text, text) IS 'bind a channel to an exchange, so that NOTIFY on it sends the messages that match';

CREATE FUNCTION tq.unbind(channel text, exchange text, pattern text DEFAULT '#') RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	number int;
BEGIN
	PERFORM tq_internal.check_length(channel, 'channel', 1, 63);
	number := tq_internal.arg_exchange(exchange);
	PERFORM tq_internal.check_length(pattern, 'pattern', 0, 1024);
	PERFORM tq_internal.require('queue:bind:' || channel);
	IF tq_internal.is_default_binding(channel, number, pattern) THEN
		INSERT INTO tq_internal.disabled_channel VALUES (number) ON CONFLICT DO NOTHING;
	ELSE
		DELETE FROM tq_internal.binding b WHERE b.channel = unbind.channel AND b.exchange = number AND b.pattern = unbind.pattern;
	END IF;
	PERFORM tq_internal.bindings_changed();
END
$$;
COMMENT ON FUNCTION tq.unbind(text, text, text) IS 'remove a binding; also disables a default channel';

CREATE FUNCTION tq.queue_channel(task_queue_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_queue_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.queue_channel(text) IS 'the channel that is notified when runs of this queue become claimable';

CREATE FUNCTION tq.worker_channel(worker_group text, worker_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_worker_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.worker_channel(text, text) IS 'the channel that is notified when a running run is taken from this worker: canceled, expired, timed out, removed or deleted';

CREATE FUNCTION tq.messages(exchange text DEFAULT NULL, pattern text DEFAULT '#', after bigint DEFAULT 0, max int DEFAULT 1000) RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_messages_0_2' LANGUAGE C;
COMMENT ON FUNCTION tq.messages(text, text, bigint, int) IS 'messages in the order of publication, after that id, which is counted from the last one if it is negative; go on after the last id seen';

CREATE FUNCTION tq.message(id bigint) RETURNS tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_message' LANGUAGE C;
COMMENT ON FUNCTION tq.message(bigint) IS 'the message of that id, whole';

-- It gets the messages that are published after this.
CREATE FUNCTION tq.subscribe(name text, exchange text, pattern text DEFAULT '#') RETURNS void
	LANGUAGE tq_operate AS $$
DECLARE
	number int;
	present bigint;
BEGIN
	PERFORM tq_internal.check_length(name, 'name', 1, 255);
	number := tq_internal.arg_exchange(exchange);
	PERFORM tq_internal.check_length(pattern, 'pattern', 0, 1024), tq_internal.check_pattern(pattern, number);
	PERFORM tq_internal.require_all('queue:subscribe:' || name, 'queue:read-messages:' || tq_internal.exchange_name(number));
	IF current_setting('tq.max_subscriptions')::int > 0 THEN
		PERFORM tq_internal.lock_subscriptions_of(session_user);
		SELECT count(*) INTO present
			FROM tq_internal.subscription s
			WHERE s.creator = session_user AND NOT EXISTS (SELECT FROM tq_internal.subscription o WHERE o.name = subscribe.name);
		IF present >= current_setting('tq.max_subscriptions')::int THEN
			RAISE EXCEPTION 'role "%" has too many subscriptions', session_user
				USING ERRCODE = 'configuration_limit_exceeded', HINT = 'End others by tq.unsubscribe().',
					DETAIL = format('It has created %s, and may create %s (tq.max_subscriptions).', present, current_setting('tq.max_subscriptions'));
		END IF;
	END IF;
	IF current_setting('tq.max_bindings')::int > 0 THEN
		PERFORM tq_internal.lock_bindings_of(name);
		PERFORM tq_internal.check_bindings(subscribe.name, count(*), 'Use a pattern that matches more, or another subscription.')
			FROM tq_internal.subscription_binding b
			WHERE b.name = subscribe.name
				AND NOT EXISTS (SELECT FROM tq_internal.subscription_binding o
					WHERE o.name = subscribe.name AND o.exchange = number AND o.pattern = subscribe.pattern);
	END IF;
	INSERT INTO tq_internal.subscription (name, acked_id, created, creator)
		SELECT subscribe.name, CASE WHEN m.is_called THEN m.last_value ELSE 0 END, tq_internal.clock_now(), session_user
		FROM tq_internal.message_id_seq m ON CONFLICT DO NOTHING;
	INSERT INTO tq_internal.subscription_binding (name, exchange, pattern) VALUES (subscribe.name, number, subscribe.pattern) ON CONFLICT DO NOTHING;
	PERFORM tq_internal.bindings_changed();
END
$$;
COMMENT ON FUNCTION tq.subscribe(text, text, text) IS 'create a durable subscription, or bind it to another exchange';

CREATE FUNCTION tq.unsubscribe(name text) RETURNS void
	LANGUAGE tq_operate AS $$
BEGIN
	PERFORM tq_internal.check_length(name, 'name', 1, 255);
	PERFORM tq_internal.require('queue:subscribe:' || name);
	DELETE FROM tq_internal.subscription_binding b WHERE b.name = unsubscribe.name;
	DELETE FROM tq_internal.subscription s WHERE s.name = unsubscribe.name;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'subscription "%" does not exist', tq_internal.clip(name)
			USING ERRCODE = 'TQ404', DETAIL = 'It was never made, or it was ended.', HINT = 'Call tq.subscribe() first.';
	END IF;
	PERFORM tq_internal.bindings_changed();
END
$$;
COMMENT ON FUNCTION tq.unsubscribe(text) IS 'drop a durable subscription';

CREATE FUNCTION tq.fetch(name text, max int DEFAULT 100) RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_fetch' LANGUAGE C;
COMMENT ON FUNCTION tq.fetch(text, int) IS 'the first messages of a durable subscription that are not acknowledged';

CREATE FUNCTION tq.ack(name text, id bigint) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_ack' LANGUAGE C;
COMMENT ON FUNCTION tq.ack(text, bigint) IS 'acknowledge the messages of a durable subscription up to that id';

CREATE FUNCTION tq_internal.is_awaited(xid xid8, seq bigint) RETURNS bool
	LANGUAGE sql STABLE STRICT
	BEGIN ATOMIC
		SELECT CASE WHEN is_awaited.xid = '2' THEN is_awaited.seq > (SELECT coalesce(min(s.acked_id), 9223372036854775807) FROM tq_internal.subscription s)
			ELSE NOT pg_visible_in_snapshot(is_awaited.xid, coalesce(
				(SELECT k.upto FROM tq_internal.tick k WHERE k.last_id <= (SELECT coalesce(min(s.acked_id), 9223372036854775807) FROM tq_internal.subscription s)
					ORDER BY k.last_id DESC LIMIT 1),
				(SELECT k.since FROM tq_internal.tick k ORDER BY k.last_id LIMIT 1))) END;
	END;
COMMENT ON FUNCTION tq_internal.is_awaited(xid8, bigint) IS 'for pg_dump: whether the messages of a row are unpublished, or not acknowledged by a subscription';
