-- ---------------------------------------------------------------------------
-- Exchange messages
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq.topic_match(pattern text, routing_key text) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_topic_match_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.topic_match(text, text) IS 'whether this AMQP topic pattern (* one word, # any number) matches this routing key';

CREATE FUNCTION tq.bind(channel text, exchange text, routing_key_pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_bind' LANGUAGE C;
COMMENT ON FUNCTION tq.bind(text, text, text) IS 'bind a channel to an exchange, so that NOTIFY on it sends the messages that match';

CREATE FUNCTION tq.unbind(channel text, exchange text, pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_unbind' LANGUAGE C;
COMMENT ON FUNCTION tq.unbind(text, text, text) IS 'remove a binding; also disables a default channel';

CREATE FUNCTION tq.queue_channel(task_queue_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_queue_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.queue_channel(text) IS 'the channel that is notified when runs of this queue become claimable';

CREATE FUNCTION tq.worker_channel(worker_group text, worker_id text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_worker_channel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq.worker_channel(text, text) IS 'the channel that is notified when a running run is taken from this worker: canceled, expired, timed out, removed or deleted';

CREATE FUNCTION tq.messages(after bigint DEFAULT 0, max int DEFAULT 1000, exchange text DEFAULT NULL, pattern text DEFAULT '#') RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_messages' LANGUAGE C;
COMMENT ON FUNCTION tq.messages(bigint, int, text, text) IS 'messages in the order of publication, after that id; go on after the last id seen';

CREATE FUNCTION tq.message(id bigint) RETURNS tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_message' LANGUAGE C;
COMMENT ON FUNCTION tq.message(bigint) IS 'the message of that id, whole';

CREATE FUNCTION tq.published_id() RETURNS bigint
	AS 'MODULE_PATHNAME', 'tq_published_id' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq.published_id() IS 'the last id of a message that readers may have seen: it is on the synchronous standbys, for which the call waits';

CREATE FUNCTION tq.subscribe(name text, exchange text, pattern text DEFAULT '#') RETURNS void
	AS 'MODULE_PATHNAME', 'tq_subscribe' LANGUAGE C;
COMMENT ON FUNCTION tq.subscribe(text, text, text) IS 'create a durable subscription, or bind it to another exchange';

CREATE FUNCTION tq.unsubscribe(name text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_unsubscribe' LANGUAGE C;
COMMENT ON FUNCTION tq.unsubscribe(text) IS 'drop a durable subscription';

CREATE FUNCTION tq.fetch(name text, max int DEFAULT 100) RETURNS SETOF tq.exchange_message
	AS 'MODULE_PATHNAME', 'tq_fetch' LANGUAGE C;
COMMENT ON FUNCTION tq.fetch(text, int) IS 'the first messages of a durable subscription that are not acknowledged';

CREATE FUNCTION tq.ack(name text, id bigint) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_ack' LANGUAGE C;
COMMENT ON FUNCTION tq.ack(text, bigint) IS 'acknowledge the messages of a durable subscription up to that id';

CREATE FUNCTION tq_internal.is_awaited(xid xid8) RETURNS bool
	AS 'MODULE_PATHNAME', 'tq_is_awaited' LANGUAGE C STABLE;
COMMENT ON FUNCTION tq_internal.is_awaited(xid8) IS 'for pg_dump: whether messages of this transaction are unpublished, or not acknowledged by a subscription';
