-- doc/spec/taskcluster.md 6.4: durable subscriptions, the log, and how long it is
-- kept.
\ir messages.psql

CREATE FUNCTION pg_temp.fetched(subscription text, max int DEFAULT 100) RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.last_id();
	SELECT coalesce(string_agg(pg_temp.notified(m), ', ' ORDER BY m.id), '') FROM tq.fetch(subscription, max) AS m
$$;

-- Acknowledge the first n messages that fetch() gives.
CREATE FUNCTION pg_temp.acked(subscription text, n int DEFAULT 100) RETURNS void
LANGUAGE sql AS $$
	SELECT tq.ack(subscription, (SELECT max(id) FROM tq.fetch(subscription, n)))
$$;

-- The acknowledged id of a subscription; 0 at the beginning of this file.
CREATE FUNCTION pg_temp.position(subscription text) RETURNS bigint
LANGUAGE sql AS $$
	SELECT acked_id FROM tq.subscription_overview WHERE name = subscription
$$;

-- ---------------------------------------------------------------------------
-- subscribe, fetch, ack, unsubscribe
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('before');
SELECT pg_temp.last_id();
SELECT lives_ok($$SELECT tq.subscribe('s', 'task-pending')$$, 'subscribe');
SELECT is(pg_temp.fetched('s'), '', 'a subscription begins with what is published after it');
SELECT pg_temp.create('a1');
SELECT is(pg_temp.fetched('s'), 'PEND a1 pending 0._._', 'fetch: only messages of that exchange');
SELECT is(pg_temp.fetched('s'), 'PEND a1 pending 0._._', 'fetch: again, until it is acknowledged');
SELECT pg_temp.create('a2');
SELECT pg_temp.create('a3');
SELECT is(pg_temp.fetched('s'), 'PEND a1 pending 0._._, PEND a2 pending 0._._, PEND a3 pending 0._._', 'fetch: all, in order');
SELECT is(pg_temp.fetched('s', 2), 'PEND a1 pending 0._._, PEND a2 pending 0._._', 'fetch: the first of them');
SELECT is((SELECT string_agg(m::text, E'\n' ORDER BY id) FROM tq.fetch('s') AS m), (SELECT string_agg(m::text, E'\n' ORDER BY f.id) FROM tq.fetch('s') AS f, tq.message(f.id) AS m), 'fetch: rows are those of message()');
SELECT is((SELECT array_agg(id) FROM tq.fetch('s')), (SELECT array_agg(id ORDER BY id) FROM tq.fetch('s')), 'fetch: rows come in the order of ids');
SELECT pg_temp.acked('s', 2);
SELECT is(pg_temp.fetched('s'), 'PEND a3 pending 0._._', 'ack: what is acknowledged is not fetched again');
SELECT lives_ok($$SELECT tq.ack('s', 1)$$, 'ack: an earlier one');
SELECT is(pg_temp.fetched('s'), 'PEND a3 pending 0._._', 'ack: which changes nothing');
BEGIN;
SELECT pg_temp.acked('s');
SELECT is(pg_temp.fetched('s'), '', 'ack: in a transaction');
ROLLBACK;
SELECT is(pg_temp.fetched('s'), 'PEND a3 pending 0._._', 'ack: that is rolled back');
SELECT pg_temp.acked('s');
SELECT is(pg_temp.fetched('s'), '', 'ack: nothing is left');
SELECT lives_ok(format('SELECT tq.ack(''s'', %s)', (SELECT last_id FROM tq.subscription_overview WHERE name = 's')), 'ack: the last one of the log, also one of another exchange');
SELECT is(pg_temp.code(query), code, format('%s: %s', code, left(query, 60)))
FROM (VALUES (format('SELECT tq.ack(''s'', %s)', (SELECT last_id + 1 FROM tq.subscription_overview WHERE name = 's')), 'TQ400'), ('SELECT tq.ack(''s'', 9223372036854775807)', 'TQ400'),
	('SELECT tq.ack(''s'', NULL)', 'TQ400'), ('SELECT tq.ack(NULL, 1)', 'TQ400'), ('SELECT tq.ack(''nobody'', 1)', 'TQ404'), ('SELECT tq.ack(''s'', -1)', '00000'),
	('SELECT tq.fetch(''nobody'')', 'TQ404'), ('SELECT tq.fetch(NULL)', 'TQ400'), ('SELECT tq.fetch('''')', 'TQ400'), ('SELECT tq.fetch(''S'')', 'TQ404'),
	('SELECT tq.fetch(''s'', 0)', 'TQ400'), ('SELECT tq.fetch(''s'', 1001)', 'TQ400'), ('SELECT tq.fetch(''s'', NULL)', 'TQ400'), ('SELECT tq.fetch(''s'', 1000)', '00000'),
	('SELECT tq.unsubscribe(''nobody'')', 'TQ404'), ('SELECT tq.unsubscribe(NULL)', 'TQ400'), ('SELECT tq.subscribe('''', ''task-pending'')', 'TQ400'),
	('SELECT tq.subscribe(NULL, ''task-pending'')', 'TQ400'), ('SELECT tq.subscribe(''t'', ''foo'')', 'TQ400'), ('SELECT tq.subscribe(''t'', NULL)', 'TQ400'),
	('SELECT tq.subscribe(''t'', ''task-pending'', NULL)', 'TQ400'), (format('SELECT tq.subscribe(''t'', ''task-pending'', %L)', repeat('a', 1025)), 'TQ400'),
	(format('SELECT tq.subscribe(%L, ''task-pending'')', repeat('n', 256)), 'TQ400'), (format('SELECT tq.subscribe(%L, ''task-pending'')', repeat('n', 255)), '00000'),
	(format('SELECT tq.unsubscribe(%L)', repeat('n', 255)), '00000'), ('SELECT tq.fetch(''t'')', 'TQ404')) AS v (query, code);
SELECT is(pg_temp.fetched('s'), '', 'it had no effect');
SELECT pg_temp.create('a4');
SELECT is(pg_temp.fetched('s'), 'PEND a4 pending 0._._', 'the next');
SELECT lives_ok($$SELECT tq.subscribe('s', 'task-pending')$$, 'subscribe: again');
SELECT is(pg_temp.fetched('s'), 'PEND a4 pending 0._._', 'subscribe: changes nothing');
SELECT lives_ok($$SELECT tq.unsubscribe('s')$$, 'unsubscribe');
SELECT is(pg_temp.code($$SELECT tq.fetch('s')$$), 'TQ404', 'unsubscribe: it is deleted');
SELECT lives_ok($$SELECT tq.subscribe('s', 'task-running')$$, 'subscribe: the name again');
SELECT pg_temp.running('a5');
SELECT is(pg_temp.fetched('s'), 'RUN a5 running 0.wg.w1', 'subscribe: without the old bindings, and from now on');
BEGIN;
SELECT tq.subscribe('t', 'task-pending');
SELECT pg_temp.create('a6');
COMMIT;
SELECT is(pg_temp.fetched('t'), 'PEND a6 pending 0._._', 'subscribe: the messages of the same transaction, too');
BEGIN;
SELECT tq.unsubscribe('t');
ROLLBACK;
SELECT is(pg_temp.fetched('t'), 'PEND a6 pending 0._._', 'unsubscribe: that is rolled back');
SELECT tq.unsubscribe(name) FROM tq.subscription_overview;

-- the role that made it reads its row, with or without the scope
CREATE ROLE sub_maker;
CREATE ROLE sub_other;
SELECT tq.grant_scopes('sub_maker', '{queue:subscribe:own,queue:read-messages:task-pending}');
SET SESSION AUTHORIZATION sub_maker;
SELECT tq.subscribe('own', 'task-pending');
RESET SESSION AUTHORIZATION;
SELECT tq.revoke_scopes('sub_maker', '{queue:subscribe:own}');
SELECT tq.subscribe('other', 'task-pending');
SET ROLE sub_maker;
SELECT is((SELECT string_agg(name, ' ') FROM tq.subscription_overview), 'own', 'subscription_overview: of the role that made it');
SET ROLE sub_other;
SELECT is((SELECT string_agg(name, ' ') FROM tq.subscription_overview), NULL, 'subscription_overview: of no other');
RESET ROLE;
SELECT tq.unsubscribe(name) FROM tq.subscription_overview;
SELECT tq.revoke_scopes('sub_maker', '{queue:read-messages:task-pending}');
DROP ROLE sub_maker, sub_other;

-- several bindings, patterns, CC
SELECT lives_ok($$SELECT tq.subscribe('m', 'task-pending', 'route.a.#'), tq.subscribe('m', 'task-pending', '#.b'), tq.subscribe('m', 'task-pending', 'primary.*.0.#'), tq.subscribe('m', 'task-completed'),
	tq.subscribe(name => 'one queue', exchange => 'task-running', pattern => 'primary.*.*.*.*.sub.q1.#'), tq.subscribe('one queue', 'task-failed', 'route.*')$$, 'subscribe: several bindings');
SELECT is((SELECT bindings FROM tq.subscription_overview WHERE name = 'm'), ARRAY['task-pending #.b', 'task-pending primary.*.0.#', 'task-pending route.a.#', 'task-completed #'], 'subscription_overview shows them');
SELECT pg_temp.create('m1', '{"routes": ["a.b", "a", "x.b"], "taskQueueId": "sub/q1"}');
SELECT pg_temp.create('m2', '{"taskQueueId": "sub/q2", "routes": ["c"]}');
SELECT is(pg_temp.claims('sub/q1') || pg_temp.claims('sub/q2'), 'm1m2', 'two are claimed');
SELECT pg_temp.report('m1', 'completed');
SELECT pg_temp.report('m2', 'failed');
SELECT is(pg_temp.fetched('m'), 'PEND m1 pending 0._._, PEND m2 pending 0._._, COMP m1 completed 0.wg.w1', 'fetch: a message once, however many bindings match');
SELECT is(pg_temp.fetched('one queue'), 'RUN m1 running 0.wg.w1, FAIL m2 failed 0.wg.w1', 'fetch: by a queue, and by a route');
SELECT pg_temp.acked('m', 1);
SELECT tq.rerun_task(pg_temp.id('m1'));
SELECT is(pg_temp.fetched('m'), 'PEND m2 pending 0._._, COMP m1 completed 0.wg.w1, PEND m1 pending 1._._', 'fetch: by a route alone');
SELECT is(pg_temp.fetched('one queue'), 'RUN m1 running 0.wg.w1, FAIL m2 failed 0.wg.w1', 'fetch: each subscription has its own acknowledged id');
SELECT pg_temp.take('m1');

-- exchanges without other bindings
SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview;
SELECT lives_ok($$SELECT tq.subscribe('only', 'task-completed', 'route.#')$$, 'subscribe: nothing else is bound');
SELECT pg_temp.forget();
SELECT pg_temp.report('m1', 'completed');
SELECT is(pg_temp.sent(), 'COMP m1 completed 1.wg.w1', 'a subscribed exchange is sent');
SELECT is(pg_temp.fetched('only'), 'COMP m1 completed 1.wg.w1', 'and got');
SELECT tq.unsubscribe(name) FROM tq.subscription_overview;
SELECT tq.bind('tq_' || replace(e, '-', '_'), e) FROM (SELECT tq_internal.exchange_name(n) FROM generate_series(1, 12) AS n) AS v (e);
SELECT is((SELECT count(*) FROM tq.binding_overview), 12::bigint, 'all are bound again');

-- messages of deleted tasks
SELECT tq.subscribe('gone', 'task-defined');
SELECT pg_temp.create(n) FROM unnest('{d1,d2,d3}'::text[]) AS n;
SELECT is(pg_temp.fetched('gone'), 'DEF d1 unscheduled _._._, DEF d2 unscheduled _._._, DEF d3 unscheduled _._._', 'fetch: of three tasks');
SELECT id AS d2 FROM tq_internal.task WHERE task_id = pg_temp.id('d2')
\gset
DELETE FROM tq_internal.pending WHERE task = :d2;
DELETE FROM tq_internal.task WHERE id = :d2;
SELECT is(pg_temp.fetched('gone'), 'DEF d1 unscheduled _._._, DEF d3 unscheduled _._._', 'fetch: one has been deleted');
SELECT pg_temp.acked('gone');
SELECT is(pg_temp.fetched('gone'), '', 'ack: beyond it');
SELECT tq.unsubscribe('gone');

-- ---------------------------------------------------------------------------
-- A subscription skips messages that it is not bound to
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.create_many(name text, n int) RETURNS void
LANGUAGE sql AS $$
	SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id(name || i)::text, 'task', pg_temp.def(name))) FROM generate_series(1, n) AS i))
$$;

SELECT pg_temp.last_id();
SELECT tq.subscribe('rare', 'task-pending', 'route.rare'), tq.subscribe('kept', 'task-pending', 'route.rare');
SELECT last_id AS start FROM tq.subscription_overview WHERE name = 'rare'
\gset
SELECT pg_temp.create_many('few', 100);
SELECT is(pg_temp.fetched('rare'), '', 'fetch: 200 messages for others');
SELECT is(pg_temp.position('rare'), :start::bigint, 'fetch: reading writes nothing');
SET tq.clock_offset = '61 seconds';
SELECT is(pg_temp.fetched('rare'), '', 'fetch: a minute later');
RESET tq.clock_offset;
SELECT is(pg_temp.position('rare'), :start + 200::bigint, 'fetch: it has skipped them');
SELECT pg_temp.create('rare1', '{"routes": ["rare"]}');
SELECT pg_temp.create_many('some', 600);
SELECT is(pg_temp.fetched('rare'), 'PEND rare1 pending 0._._', 'fetch: before 1,200 more for others');
SELECT is(pg_temp.position('rare'), :start + 200::bigint, 'fetch: it does not skip a message that it has to acknowledge');
SELECT pg_temp.acked('rare');
SELECT is(pg_temp.fetched('rare'), '', 'fetch: and now there are only 1,200 for others');
SELECT is(pg_temp.position('rare'), :start + 1402::bigint, 'fetch: it has skipped them at once');
SELECT pg_temp.create('rare2', '{"routes": ["rare"]}');
SELECT is(pg_temp.fetched('rare'), 'PEND rare2 pending 0._._', 'fetch: the next');
SELECT is(pg_temp.fetched('kept'), 'PEND rare1 pending 0._._, PEND rare2 pending 0._._', 'fetch: another subscription gets both');
SELECT is(pg_temp.fetched('kept', 1), 'PEND rare1 pending 0._._', 'fetch: or the first');
SELECT is(pg_temp.position('kept') < (SELECT min(id) FROM tq.fetch('kept')), true, 'fetch: which it has not skipped');
SELECT is(pg_temp.code(format('SELECT tq.ack(''rare'', %s)', :start)), '00000', 'ack: of skipped messages');
SELECT is(pg_temp.fetched('rare'), 'PEND rare2 pending 0._._', 'ack: changes nothing');

-- ---------------------------------------------------------------------------
-- Pages of messages(): every id once, in order
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.pages(size int, exchange text DEFAULT NULL, pattern text DEFAULT '#') RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
	ids bigint[] := '{}';
	page bigint[];
BEGIN
	LOOP
		page := (SELECT array_agg(id) FROM tq.messages(after => coalesce(ids[cardinality(ids)], 0), max => size, exchange => pages.exchange, pattern => pages.pattern));
		EXIT WHEN page IS NULL;
		ids := ids || page;
	END LOOP;
	RETURN ids;
END
$$;

SELECT pg_temp.last_id();
CREATE TEMP TABLE given AS SELECT n FROM tq_internal.tick, generate_series(first_id, last_id) AS n WHERE messages > 0;
SELECT is((SELECT count(*) FROM given), (SELECT max(last_id) FROM tq_internal.tick), 'every id was given to a message, and once');
CREATE TEMP TABLE paged AS SELECT size, pg_temp.pages(size) AS ids FROM unnest('{1,7,100,1000}'::int[]) AS size;
SELECT is(ids, (SELECT array_agg(DISTINCT id ORDER BY id) FROM unnest(ids) AS id), format('messages(): each once, in order, in pages of %s', size)) FROM paged;
SELECT is((SELECT count(*) FROM given WHERE n <> ALL (ids)), 2::bigint, format('messages(): all but the two of the task that was deleted, in pages of %s', size)) FROM paged;
SELECT is(pg_temp.pages(7, 'task-pending'), (SELECT array_agg(id ORDER BY id) FROM pg_temp.messages_after(0) WHERE exchange = 'task-pending'), 'messages(): the same of one exchange');
SELECT is(cardinality(pg_temp.pages(1, pattern => 'route.rare')), 4, 'messages(): the same of one route');

-- ---------------------------------------------------------------------------
-- Retention.  A thousand seconds, so the segment that is written to changes
-- every 250; this session moves its clock, while the maintenance worker publishes by
-- its own.
-- ---------------------------------------------------------------------------

-- Calls upkeep() until the query is true, because another session may be reading a segment.
CREATE PROCEDURE pg_temp.upkeep_until(query text)
LANGUAGE plpgsql AS $$
DECLARE
	since timestamptz := clock_timestamp();
	result bool;
BEGIN
	LOOP
		PERFORM tq.upkeep();
		COMMIT;
		EXECUTE query INTO result;
		EXIT WHEN result;
		IF clock_timestamp() > since + interval '1 minute' THEN
			RAISE EXCEPTION 'upkeep() has not made this true: %', query;
		END IF;
	END LOOP;
END
$$;

-- Segments that are written to, have messages, have ticks: as in '1, 0 1, 0 1'.
CREATE FUNCTION pg_temp.places() RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(', ', (SELECT segment::text FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1),
		(SELECT coalesce(string_agg(DISTINCT segment::text, ' ' ORDER BY segment::text), 'none') FROM tq_internal.message),
		(SELECT string_agg(DISTINCT segment::text, ' ' ORDER BY segment::text) FROM tq_internal.tick))
$$;

-- Moves the time of all published messages to that time.
CREATE FUNCTION pg_temp.published(ago interval) RETURNS void
LANGUAGE sql AS $$
	SELECT pg_temp.last_id();
	UPDATE tq_internal.tick SET published = pg_temp.clock() - ago WHERE published > pg_temp.clock() - ago
		OR segment = (SELECT segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1)
$$;

SELECT tq.unsubscribe(name) FROM tq.subscription_overview;
SET tq.message_retention = '30d';
SELECT pg_temp.pass('1 day');	-- the deadlines of all tasks
RESET tq.clock_offset;
SELECT pg_temp.last_id();
CREATE TEMP TABLE all_ids AS SELECT pg_temp.pages(1000) AS ids;
-- not since the database was made of which this one is a copy
UPDATE tq_internal.log_segment SET since = pg_temp.clock() WHERE segment = 0;
SET tq.message_retention = '1000s';
SELECT pg_temp.last_id();
SELECT is(pg_temp.places(), '0, 0, 0', 'retention: one segment at first');
SELECT pg_temp.pass();
SELECT is(pg_temp.places(), '0, 0, 0', 'retention: it stays for a while');
SET tq.clock_offset = '300 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '1, 0, 0 1'$$);
SELECT is(pg_temp.places(), '1, 0, 0 1', 'retention: after a quarter of the time the next segment is written to');
SELECT is(array_length(pg_temp.pages(1000), 1), array_length(ids, 1), 'retention: which changes nothing for readers') FROM all_ids;
SELECT pg_temp.create('k1', '{"$deadline": "4 days"}');
SELECT is((SELECT max(segment) || ' ' || count(*) FROM tq_internal.message WHERE segment <> 0), '1 1', 'retention: messages are written there');
SELECT pg_temp.published('0');
SET tq.clock_offset = '600 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '2, 0 1, 0 1 2'$$);
SELECT is(pg_temp.places(), '2, 0 1, 0 1 2', 'retention: and the next');
SELECT pg_temp.create('k2', '{"$deadline": "4 days"}');
SELECT pg_temp.published('0');
SET tq.clock_offset = '950 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '3, 0 1 2, 0 1 2 3'$$);
SELECT is(pg_temp.places(), '3, 0 1 2, 0 1 2 3', 'retention: nothing is too old yet');
SELECT pg_temp.create('k3', '{"$deadline": "4 days"}');
SELECT pg_temp.published('0');
SELECT is(array_length(pg_temp.pages(1000), 1), array_length(ids, 1) + 6, 'retention: all can be read') FROM all_ids;
SET tq.clock_offset = '1150 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '3, 1 2 3, 1 2 3'$$);
SELECT is(pg_temp.places(), '3, 1 2 3, 1 2 3', 'retention: the first segment is too old');
SELECT is(pg_relation_size('tq_internal.message_0') + pg_relation_size('tq_internal.tick_0') + pg_indexes_size('tq_internal.message_0'), 8192::bigint, 'retention: it is empty, but for a page of an index');
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM tq.messages() AS m), 'DEF k1 unscheduled _._._, PEND k1 pending 0._._, DEF k2 unscheduled _._._, PEND k2 pending 0._._, '
	'DEF k3 unscheduled _._._, PEND k3 pending 0._._', 'retention: newer messages can be read');
SELECT is(pg_temp.code('SELECT tq.message(1)'), 'TQ404', 'retention: older messages are deleted');
SELECT is((SELECT min(id) FROM tq.messages()) > (SELECT max(n) FROM all_ids, unnest(ids) AS n), true, 'retention: ids go on');
SET tq.clock_offset = '1400 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '4, 2 3, 2 3 4'$$);
SELECT is(pg_temp.places(), '4, 2 3, 2 3 4', 'retention: the second segment is too old');
SET tq.clock_offset = '3000 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '5, none, 5'$$);
SELECT is(pg_temp.places(), '5, none, 5', 'retention: all are too old; the last tick stays');
SELECT is((SELECT count(*) FROM tq.messages()), 0::bigint, 'retention: there is nothing to be read');
SELECT pg_temp.create('k4', '{"$deadline": "4 days"}');
SELECT is((SELECT min(id) FROM pg_temp.messages_after(0)) > (SELECT max(n) + 6 FROM all_ids, unnest(ids) AS n), true, 'retention: ids go on even then');
SELECT pg_temp.published('0');
SET tq.clock_offset = '3300 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '0, 5, 0 5'$$);
SET tq.clock_offset = '3600 seconds';
SELECT pg_temp.create('k5', '{"$deadline": "4 days"}');
SELECT pg_temp.published('0');
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '1, 0 5, 0 1 5'$$);
SELECT is(pg_temp.places(), '1, 0 5, 0 1 5', 'retention: the segments are used in turn');

-- A subscription keeps what it has not acknowledged.
SET tq.subscription_retention = '10000s';
SELECT tq.subscribe('slow', 'task-pending'), tq.subscribe('quick', 'task-pending');
SELECT pg_temp.create('l1', '{"$deadline": "4 days"}');
SELECT pg_temp.published('0');
SELECT pg_temp.acked('quick');
SET tq.clock_offset = '9000 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() = '2, 1, 1 2'$$);
SELECT is(pg_temp.places(), '2, 1, 1 2', 'subscription_retention: older ones are dropped, what it has not acknowledged is kept');
SELECT is(pg_temp.fetched('slow'), 'PEND l1 pending 0._._', 'subscription_retention: it can still be fetched');
SELECT pg_temp.create('l2', '{"$deadline": "4 days"}');
SELECT pg_temp.published('0');
SELECT is((SELECT (oldest_unread = (SELECT published FROM tq.messages(max => 1)))::text || coalesce(lost_before::text, ' none') FROM tq.subscription_overview WHERE name = 'slow'), 'true none', 'subscription_overview: since when it has not read');
SELECT pg_temp.acked('slow', 1);
SET tq.clock_offset = '10200 seconds';
CALL pg_temp.upkeep_until($$SELECT pg_temp.places() LIKE '%, 2, %'$$);
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM tq.messages() AS m), 'DEF l2 unscheduled _._._, PEND l2 pending 0._._', 'subscription_retention: what is acknowledged is dropped');
SELECT is(pg_temp.fetched('slow'), 'PEND l2 pending 0._._', 'subscription_retention: what is not is kept');
SELECT id AS l2 FROM tq.fetch('slow')
\gset

-- But not without limit.
SET client_min_messages = error;	-- for the warning, see test/t/045_message_retention.pl
SET tq.clock_offset = '21000 seconds';
CALL pg_temp.upkeep_until($$SELECT NOT EXISTS (SELECT FROM tq_internal.message)$$);
RESET client_min_messages;
SELECT is(pg_temp.fetched('slow'), '', 'subscription_retention: it is lost');
SELECT is((SELECT lost_before FROM tq.subscription_overview WHERE name = 'slow'), :l2 + 1::bigint, 'subscription_overview: and the view shows how much');
SELECT is((SELECT oldest_unread FROM tq.subscription_overview WHERE name = 'slow'), NULL, 'subscription_overview: nothing is unread');
SELECT pg_temp.create('l3', '{"$deadline": "4 days"}');
SELECT is(pg_temp.fetched('slow'), 'PEND l3 pending 0._._', 'subscription_retention: later messages are fetched');
SELECT lives_ok($$SELECT pg_temp.acked('slow')$$, 'subscription_retention: and acknowledged');
SELECT is(pg_temp.fetched('slow'), '', 'subscription_retention: all is read');
SELECT is((SELECT count(*) FROM tq.subscription_overview WHERE name = 'quick' AND lost_before > (SELECT min(id) FROM tq.messages())), 0::bigint, 'subscription_overview: nothing in the log counts as lost');
SELECT tq.unsubscribe(name) FROM tq.subscription_overview;

-- ---------------------------------------------------------------------------
-- The log is never emptied while something in it is unpublished
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('q0', '{"$deadline": "4 days"}');
SELECT pg_temp.published('1 hour');
SELECT segment AS segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1
\gset
SELECT pg_temp.forget();
SET tq.clock_offset = '50000 seconds';
BEGIN;
SELECT tq.upkeep();
SELECT is((SELECT segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1)::int, :segment, 'upkeep: within a transaction block the log is left alone');
COMMIT;

-- A message of an open transaction, in a segment that is too old for it.
CREATE FUNCTION pg_temp.go_on() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	first int := (SELECT segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1);
	next int;
BEGIN
	PERFORM pg_temp.create('q1', '{"$deadline": "4 days"}');
	PERFORM tq.upkeep();
	next := (SELECT segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1);
	PERFORM pg_temp.create('q2', '{"$deadline": "4 days"}');
	PERFORM set_config('tq.clock_offset', '90000 seconds', true);
	PERFORM tq.upkeep();
	RETURN format('%s then %s: %s', CASE WHEN next = first THEN 'the same' ELSE 'another' END,
		CASE WHEN (SELECT segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1) = next THEN 'the same' ELSE 'another' END,
		(SELECT count(*) FROM tq_internal.message WHERE segment = first AND xid = pg_current_xact_id()));
END
$$;
SELECT is(pg_temp.go_on(), 'another then another: 1', 'unpublished: it is too old for its segment, but nothing is dropped');
SELECT is(pg_temp.sent(), 'DEF q1 unscheduled _._._, PEND q1 pending 0._._, DEF q2 unscheduled _._._, PEND q2 pending 0._._', 'unpublished: nothing is lost');
SET tq.clock_offset = '50000 seconds';
SELECT pg_temp.create('q3', '{"$deadline": "4 days"}');
SELECT pg_temp.published('1 hour');
SELECT segment AS segment FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1
\gset
SELECT pg_temp.forget();
SET tq.clock_offset = '100000 seconds';
SELECT pg_temp.id('q4') AS q4, pg_temp.def('q4', '{"$deadline": "4 days"}') AS task
\gset
BEGIN;
SELECT tq.create_task(:'q4', :'task');
PREPARE TRANSACTION 'tq_unpublished';
CALL pg_temp.upkeep_until(format('SELECT segment <> %s FROM tq_internal.log_segment ORDER BY since DESC LIMIT 1', :segment));
SET tq.clock_offset = '120000 seconds';
SELECT count(*) FROM (SELECT pg_temp.pass() FROM generate_series(1, 10)) AS u;
SELECT isnt((SELECT count(*) FROM tq_internal.message WHERE segment = :segment), 0::bigint, 'unpublished: a prepared transaction has written to it, and nothing is dropped');
COMMIT PREPARED 'tq_unpublished';
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'DEF q4 unscheduled _._._, PEND q4 pending 0._._', 'unpublished: nothing is lost');

SELECT * FROM finish();
