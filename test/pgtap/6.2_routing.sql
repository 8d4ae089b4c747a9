-- doc/spec/taskcluster.md 6.2 to 6.4: routing keys and CC, how messages() filters
-- by them, bindings, and names of channels.  What a
-- listener receives is tested in test/t/040_notify.pl.
\ir messages.psql

-- ---------------------------------------------------------------------------
-- 6.2: ten words of a task, 6.3: four of a group
-- ---------------------------------------------------------------------------

SELECT format('.%s._', pg_temp.id('a')) AS a, format('.%s._', pg_temp.id('g')) AS g, pg_temp.id('a') AS id
\gset
SELECT pg_temp.create('a', '{"taskQueueId": "prov/wt"}');
SELECT is(string_agg(exchange || ' ' || routing_key || ' ' || cc::text, ', ' ORDER BY id),
	format('task-defined primary.%s._._._.prov.wt.-%s {}, task-pending primary.%1$s.0._._.prov.wt.-%2$s {}', pg_temp.id('a'), :'a'),
	'6.2 absent words are _, the last one always; no scheduler is -; the group of a lone task is itself') FROM pg_temp.news();
SELECT pg_temp.take('a');
SELECT is(string_agg(routing_key, ' '), format('primary.%s.0.wg.w1.prov.wt.-%s', pg_temp.id('a'), :'a'), '6.2 task-running: all words') FROM pg_temp.news();
SELECT pg_temp.report('a', 'intermittent-task');
SELECT is(string_agg(routing_key, ' '), format('primary.%s.1._._.prov.wt.-%s', pg_temp.id('a'), :'a'), '6.2 task-pending of a retry: no worker') FROM pg_temp.news();
SELECT tq.claim_task(pg_temp.id('a'), 1, '-', '_');
SELECT pg_temp.report('a', 'completed');
SELECT is(string_agg(exchange || ' ' || routing_key, ', ' ORDER BY id),
	format('task-running primary.%s.1.-._.prov.wt.-%s, task-completed primary.%1$s.1.-._.prov.wt.-%2$s, task-group-resolved primary.%1$s.-._', pg_temp.id('a'), :'a'),
	'6.2 D-18 ids that are - and _ themselves; 6.3 four words') FROM pg_temp.news();
SELECT pg_temp.create('b', '{"taskQueueId": "_/-", "schedulerId": "a-b_c", "$group": "g", "projectId": "a.b/c"}');
SELECT tq.claim_task(pg_temp.id('b'), 0, 'G-1_a', '-_-');
SELECT pg_temp.report('b', 'failed');
SELECT pg_temp.last_id();
SELECT tq.seal_task_group(pg_temp.id('g'));
SELECT is(string_agg(exchange || ' ' || routing_key, ', ' ORDER BY id),
	format('task-defined primary.%s._._._._.-.a-b_c%s, task-pending primary.%1$s.0._._._.-.a-b_c%2$s, task-running primary.%1$s.0.G-1_a.-_-._.-.a-b_c%2$s, '
		'task-failed primary.%1$s.0.G-1_a.-_-._.-.a-b_c%2$s, task-group-resolved primary.%3$s.a-b_c._, task-group-sealed primary.%3$s.a-b_c._', pg_temp.id('b'), :'g', pg_temp.id('g')),
	'6.2 - and _ in all ids; a project is not in the key') FROM pg_temp.news();
SELECT pg_temp.create('long', jsonb_build_object('taskQueueId', repeat('p', 38) || '/' || repeat('w', 38), 'schedulerId', repeat('s', 38)));
SELECT tq.claim_task(pg_temp.id('long'), 0, repeat('g', 128), repeat('i', 128));
SELECT is((array_agg(routing_key ORDER BY id))[3], format('primary.%s.0.%s.%s.%s.%s.%s.%1$s._', pg_temp.id('long'), repeat('g', 128), repeat('i', 128), repeat('p', 38), repeat('w', 38), repeat('s', 38)),
	'6.2 the longest words') FROM pg_temp.news();
SELECT pg_temp.create('dots', '{"taskQueueId": "prov/wt"}');
SELECT tq.claim_task(pg_temp.id('dots'), 0, 'eu.example.org', '.pod-7f.');
SELECT is((array_agg(routing_key ORDER BY id))[3], format('primary.%s.0.eu%%2Eexample%%2Eorg.%%2Epod-7f%%2E.prov.wt.-.%1$s._', pg_temp.id('dots')), '6.2 a dot of a worker is %2E')
FROM pg_temp.news();
SELECT is((SELECT count(*) FROM tq.messages(exchange => 'task-running', pattern => 'primary.*.*.eu%2Eexample%2Eorg.#')), 1::bigint, '6.2 and is so in a pattern');
SELECT is((SELECT payload ->> 'workerId' FROM tq.messages(exchange => 'task-running', pattern => 'primary.*.*.eu%2Eexample%2Eorg.#')), '.pod-7f.', '6.2 but not in the payload');
SELECT is(count(*), 0::bigint, '6.2 ten words, or four for a group, each of them') FROM pg_temp.messages_after(0) AS m
WHERE cardinality(string_to_array(routing_key, '.')) <> CASE WHEN exchange LIKE 'task-group-%' THEN 4 ELSE 10 END OR routing_key !~ '^primary\.([a-zA-Z0-9_%-]+\.)+_$';

-- ---------------------------------------------------------------------------
-- 6.4: CC
-- ---------------------------------------------------------------------------

CREATE TEMP TABLE routed AS SELECT '["z.y.x", "a", "z.y", "#", "*", ".", "a..b", "a b", "ü.é", "route.x", "primary.#", "\"\\"]'::jsonb AS routes;
SELECT pg_temp.create('r', jsonb_build_object('routes', routes)) FROM routed;
CREATE TEMP TABLE news AS SELECT * FROM pg_temp.news();
SELECT is(string_agg(exchange, ' ' ORDER BY id), 'task-defined task-pending', '6.4 one message each, whatever the routes') FROM news;
SELECT is(cc, (SELECT array_agg('route.' || r ORDER BY n) FROM routed, jsonb_array_elements_text(routes) WITH ORDINALITY AS u (r, n)), '6.4 every route, as it is, in order: ' || exchange)
FROM news ORDER BY id;
SELECT pg_temp.work('r', 'worker-shutdown');
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('r', 'worker-shutdown', 0);
RESET tq.publish_retried_exceptions;
SELECT pg_temp.work('r', 'failed');
SELECT tq.rerun_task(pg_temp.id('r'));
SELECT pg_temp.work('r', 'completed');
SELECT tq.rerun_task(pg_temp.id('r'));
SELECT tq.seal_task_group(pg_temp.id('r'));
SELECT pg_temp.cancel('r');
SELECT is(string_agg(DISTINCT exchange, ' ' ORDER BY exchange), 'task-completed task-exception task-failed task-pending task-running', '6.4 all exchanges of tasks have the routes')
FROM pg_temp.messages_after(0), routed WHERE payload #>> '{status,taskId}' = pg_temp.id('r')::text AND exchange <> 'task-defined'
	AND cc = (SELECT array_agg('route.' || r ORDER BY n) FROM jsonb_array_elements_text(routes) WITH ORDINALITY AS u (r, n));
SELECT is(count(*), 0::bigint, '6.4 no message of the task is without') FROM pg_temp.news() WHERE exchange NOT LIKE 'task-group-%' AND cardinality(cc) <> 12;
SELECT is(string_agg(DISTINCT exchange || ' ' || cc::text, ', ' ORDER BY exchange || ' ' || cc::text), 'task-group-resolved {}, task-group-sealed {}', '6.4 messages of groups have no CC')
FROM pg_temp.messages_after(0) WHERE exchange LIKE 'task-group-%';
SELECT pg_temp.create('r64', (SELECT jsonb_build_object('routes', jsonb_agg(rpad('r' || n || '.', 249, 'x') ORDER BY n DESC)) FROM generate_series(1, 64) AS n));
SELECT is(cc, (SELECT array_agg('route.' || rpad('r' || n || '.', 249, 'x') ORDER BY n DESC) FROM generate_series(1, 64) AS n), '6.4 64 routes of 249 characters: ' || exchange) FROM pg_temp.news() ORDER BY id;
SELECT pg_temp.create('r249', jsonb_build_object('routes', jsonb_build_array(repeat('é', 249))));
SELECT is(cc, ARRAY['route.' || repeat('é', 249)], '6.4 a route of 249 characters that are 498 bytes: ' || exchange) FROM pg_temp.news() ORDER BY id;

-- ---------------------------------------------------------------------------
-- messages(): after, max, exchange, pattern.  One task with routes, one without.
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('p1', '{"taskQueueId": "f/one", "routes": ["tc.x.y", "tc.z"]}');
SELECT pg_temp.create('p2', '{"taskQueueId": "f/two", "schedulerId": "sch"}');
SELECT tq.claim_work('f/one', 'wg', 'w1');
SELECT tq.claim_work('f/two', 'wg', 'w2');
SELECT pg_temp.report(n, 'completed') FROM unnest('{p1,p2}'::text[]) AS n;
SELECT pg_temp.last_id() AS last, current_setting('test.mark') AS first
\gset
CREATE FUNCTION pg_temp.read(first bigint, exchange text, pattern text DEFAULT '#') RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(pg_temp.short(m.exchange) || CASE WHEN m.payload ? 'status' THEN ' ' || pg_temp.name((m.payload #>> '{status,taskId}')::tq.slugid) ELSE '' END, ', ' ORDER BY m.id)
	FROM tq.messages(after => first, exchange => read.exchange, pattern => read.pattern) AS m
$$;
SELECT is(pg_temp.read(:first, exchange, pattern), expected, format('messages() of %s that match "%s"', coalesce(exchange, 'any exchange'), pattern))
FROM (VALUES
	(NULL, '#', 'DEF p1, PEND p1, DEF p2, PEND p2, RUN p1, RUN p2, COMP p1, COMP p2, GROUP, GROUP'),
	('task-running', '#', 'RUN p1, RUN p2'),
	('task-running', format('primary.%s.#', pg_temp.id('p2')), 'RUN p2'),
	('task-running', 'primary.*.0.wg.w1.#', 'RUN p1'),
	('task-pending', 'primary.*.*.*.*.f.two.#', 'PEND p2'),
	('task-pending', 'primary.*.*.*.*.f.two.sch.*._', 'PEND p2'),
	('task-pending', 'primary.*.*.*.*.f.two.sch.*', NULL),
	('task-pending', 'primary.*.0._._.#', 'PEND p1, PEND p2'),
	('task-defined', 'primary.*.0.#', NULL),
	('task-defined', 'primary.*._._._.#', 'DEF p1, DEF p2'),
	(NULL, 'route.#', 'DEF p1, PEND p1, RUN p1, COMP p1'),
	('task-completed', 'route.tc.x.y', 'COMP p1'),
	('task-completed', 'route.tc.*', 'COMP p1'),
	('task-completed', 'route.tc.*.y', 'COMP p1'),
	('task-completed', 'route.tc', NULL),
	('task-completed', 'tc.z', NULL),
	('task-completed', 'route.TC.z', NULL),
	('task-completed', '#.y', 'COMP p1'),
	('task-completed', '#._', 'COMP p1, COMP p2'),
	(NULL, '*.*.*.*', 'DEF p1, PEND p1, RUN p1, COMP p1, GROUP, GROUP'),
	(NULL, '*.*.*', 'DEF p1, PEND p1, RUN p1, COMP p1'),
	(NULL, '*.*', NULL),
	(NULL, '', NULL),
	(NULL, 'primary.*.sch._', 'GROUP'),
	('task-group-resolved', 'route.#', NULL),
	('task-group-resolved', '#', 'GROUP, GROUP'),
	('task-alert', '#', NULL)) AS v (exchange, pattern, expected);
SELECT is(string_agg(exchange, ' ' ORDER BY id), 'task-defined task-pending task-defined', 'messages(): max is the first') FROM tq.messages(after => :first, max => 3);
SELECT is(string_agg(exchange, ' ' ORDER BY id), 'task-running task-running', 'messages(): max counts those that match') FROM tq.messages(after => :first, max => 2, exchange => 'task-running');
SELECT is(string_agg(exchange, ' ' ORDER BY id), 'task-running', 'messages(): the first of them') FROM tq.messages(after => :first, max => 1, exchange => 'task-running');
SELECT is(count(*), 0::bigint, 'messages(): after the last there is none') FROM tq.messages(after => :last);
SELECT is(count(*), 0::bigint, 'messages(): nor after future ids') FROM tq.messages(after => 9223372036854775807);
SELECT is(min(id), 1::bigint, 'messages(): ids begin with 1') FROM tq.messages();
SELECT is(min(id), 1::bigint, 'messages(): after a negative one, as far back as the log goes') FROM tq.messages(after => -9223372036854775808);
SELECT is(array_agg(id ORDER BY id), (SELECT array_agg(id ORDER BY id) FROM (SELECT id FROM tq.messages() ORDER BY id DESC LIMIT 3) AS m), 'messages(): a negative one is counted from the last') FROM tq.messages(after => -3);
SELECT is(array_agg(id), array_agg(id ORDER BY id), 'messages(): rows come in the order of ids') FROM tq.messages();
SELECT is((SELECT count(*) FROM tq.messages(after => :first) AS m, tq.message(m.id) AS o WHERE o::text = m::text), 10::bigint, 'message() gives the row of messages()');
SELECT is(pg_temp.code(query), code, format('%s: %s', code, left(query, 60)))
FROM (VALUES ($$SELECT tq.messages(exchange => 'foo')$$, 'TQ400'), ($$SELECT tq.messages(exchange => '')$$, 'TQ400'), ($$SELECT tq.messages(exchange => 'Task-pending')$$, 'TQ400'),
	($$SELECT tq.messages(exchange => 'exchange/taskcluster-queue/v1/taskPending')$$, 'TQ400'), ('SELECT tq.messages(after => NULL)', 'TQ400'), ('SELECT tq.messages(max => NULL)', 'TQ400'),
	('SELECT tq.messages(max => 0)', 'TQ400'), ('SELECT tq.messages(max => -1)', 'TQ400'), ('SELECT tq.messages(max => 1001)', 'TQ400'), ('SELECT tq.messages(pattern => NULL)', 'TQ400'),
	(format('SELECT tq.messages(pattern => %L)', repeat('a', 1025)), 'TQ400'), (format('SELECT tq.messages(pattern => %L)', repeat('a', 1024)), '00000'),
	('SELECT tq.message(NULL)', 'TQ400'), ('SELECT tq.message(0)', 'TQ404'), ('SELECT tq.message(-1)', 'TQ404'), (format('SELECT tq.message(%s + 1)', :last), 'TQ404'),
	('SELECT tq.message(9223372036854775807)', 'TQ404')) AS v (query, code);

-- ---------------------------------------------------------------------------
-- Bindings
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.bindings(channels text DEFAULT '%') RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', channel, exchange, pattern), ', ' ORDER BY channel, exchange, pattern) FROM tq.binding_overview WHERE channel LIKE channels
$$;

SELECT is(pg_temp.bindings(), 'tq_artifact_created artifact-created #, tq_task_alert task-alert #, tq_task_completed task-completed #, tq_task_defined task-defined #, '
	'tq_task_exception task-exception #, tq_task_failed task-failed #, tq_task_group_priority_changed task-group-priority-changed #, '
	'tq_task_group_resolved task-group-resolved #, tq_task_group_sealed task-group-sealed #, tq_task_pending task-pending #, '
	'tq_task_priority_changed task-priority-changed #, tq_task_running task-running #', 'bindings: a channel for each exchange by default');
SELECT lives_ok($$SELECT tq.bind('mine', 'task-pending', 'route.#'), tq.bind('mine', 'task-pending', 'primary.#'), tq.bind('mine', 'task-running')$$, 'bind: several');
SELECT lives_ok($$SELECT tq.bind('mine', 'task-pending', 'route.#')$$, 'bind: again');
SELECT lives_ok($$SELECT tq.bind(channel => 'mine too', exchange => 'task-group-resolved', pattern => '*.#')$$, 'bind: by name');
SELECT is(pg_temp.bindings('mine%'), 'mine task-pending primary.#, mine task-pending route.#, mine task-running #, mine too task-group-resolved *.#', 'bind: each once');
SELECT lives_ok($$SELECT tq.unbind(channel => 'mine', exchange => 'task-pending', pattern => 'route.#')$$, 'unbind: by name');
SELECT lives_ok($$SELECT tq.unbind('mine', 'task-pending'), tq.unbind('mine', 'task-defined'), tq.unbind('nobody''s', 'task-defined')$$, 'unbind: bindings that do not exist');
SELECT is(pg_temp.bindings('mine%'), 'mine task-pending primary.#, mine task-running #, mine too task-group-resolved *.#', 'unbind: that one, with that pattern');
SELECT lives_ok($$SELECT tq.unbind('mine', 'task-pending', 'primary.#'), tq.unbind('mine', 'task-running', '#'), tq.unbind('mine too', 'task-group-resolved', '*.#')$$, 'unbind: the others');
SELECT is(pg_temp.bindings('mine%'), NULL, 'unbind: none is left');
SELECT lives_ok($$SELECT tq.unbind('tq_task_defined', 'task-defined'), tq.unbind('tq_task_group_priority_changed', 'task-group-priority-changed')$$, 'unbind: default channels');
SELECT lives_ok($$SELECT tq.unbind('tq_task_defined', 'task-defined')$$, 'unbind: again');
SELECT is(pg_temp.bindings('tq\_task\_defined') || pg_temp.bindings('tq\_task\_group\_priority\_changed'), NULL, 'unbind: they are deleted');
SELECT is(count(*), 10::bigint, 'unbind: the other ten exist') FROM tq.binding_overview;
SELECT lives_ok($$SELECT tq.unbind('tq_task_pending', 'task-pending', 'primary.#'), tq.unbind('tq_task_pending', 'task-running'), tq.unbind('tq_task-pending', 'task-pending')$$, 'unbind: a binding that is not a default');
SELECT is(count(*), 10::bigint, 'unbind: leaves the default ones alone') FROM tq.binding_overview;
SELECT lives_ok($$SELECT tq.bind('tq_task_defined', 'task-defined', 'route.#'), tq.bind('tq_task_defined', 'task-pending')$$, 'bind: a default channel to other things');
SELECT is(pg_temp.bindings('tq\_task\_defined'), 'tq_task_defined task-defined route.#, tq_task_defined task-pending #', 'bind: as any channel');
SELECT lives_ok($$SELECT tq.unbind('tq_task_defined', 'task-defined', 'route.#'), tq.unbind('tq_task_defined', 'task-pending')$$, 'unbind: those');
SELECT lives_ok($$SELECT tq.bind('tq_task_defined', 'task-defined'), tq.bind('tq_task_defined', 'task-defined'), tq.bind('tq_task_group_priority_changed', 'task-group-priority-changed')$$, 'bind: the default ones again');
SELECT is(count(*), 12::bigint, 'bind: all exist') FROM tq.binding_overview;
SELECT is(pg_temp.code(query), code, format('%s: %s', code, left(query, 60)))
FROM (VALUES (format('SELECT tq.bind(%L, ''task-pending'')', repeat('c', 63)), '00000'), (format('SELECT tq.bind(%L, ''task-pending'')', repeat('c', 64)), 'TQ400'),
	(format('SELECT tq.unbind(%L, ''task-pending'')', repeat('c', 63)), '00000'), (format('SELECT tq.unbind(%L, ''task-pending'')', repeat('c', 64)), 'TQ400'),
	(format('SELECT tq.bind(%L, ''task-pending'')', repeat('é', 31) || 'e'), '00000'), (format('SELECT tq.unbind(%L, ''task-pending'')', repeat('é', 31) || 'e'), '00000'),
	(format('SELECT tq.bind(%L, ''task-pending'')', repeat('é', 32)), 'TQ400'), ($$SELECT tq.bind('', 'task-pending')$$, 'TQ400'),
	($$SELECT tq.bind(NULL, 'task-pending')$$, 'TQ400'), ($$SELECT tq.bind('c', NULL)$$, 'TQ400'), ($$SELECT tq.bind('c', 'foo')$$, 'TQ400'), ($$SELECT tq.bind('c', 'task-pending', NULL)$$, 'TQ400'),
	(format('SELECT tq.bind(''c'', ''task-pending'', %L)', repeat('a', 1025)), 'TQ400'), ($$SELECT tq.unbind('', 'task-pending')$$, 'TQ400'), ($$SELECT tq.unbind('c', 'foo')$$, 'TQ400'),
	($$SELECT tq.unbind(NULL, 'task-pending')$$, 'TQ400'), ($$SELECT tq.unbind('c', NULL)$$, 'TQ400'), ($$SELECT tq.unbind('c', 'task-pending', NULL)$$, 'TQ400')) AS v (query, code);
SELECT is(count(*), 12::bigint, 'bind: and nothing else') FROM tq.binding_overview;
SELECT is(concat_ws(' ', pg_temp.code(format('SELECT tq.bind(''c'', ''task-pending'', %L), tq.subscribe(''c'', ''task-pending'', %1$L)', pattern)),
	pg_temp.code(format('SELECT tq.bind(''c'', ''task-group-sealed'', %L)', pattern))), codes, format('bind: "%s" of tasks and of groups', pattern))
FROM (VALUES ('#', '00000 00000'), ('primary.*.*.*.*.proj.linux.#', '00000 TQ400'), ('primary.#', '00000 00000'), ('*.*.*.*', '00000 00000'),
	('route.proj/linux', '00000 TQ400'), ('#.proj/linux', '00000 TQ400'), ('*.*.*.*.*', '00000 TQ400'), ('primary.1.2.3.4.5.6.7.8._', '00000 TQ400'), ('primary.*.s._', 'TQ400 00000'),
	('primary.1.2.3.4.5.6.7.8.9._', 'TQ400 TQ400'), ('primary.1.2.3.4.5.6.7.8.#.9._', 'TQ400 TQ400'), ('proj/linux', 'TQ400 TQ400'), ('proj.linux.#', 'TQ400 TQ400'), ('primary', 'TQ400 TQ400'), ('primary.proj/linux.#', 'TQ400 TQ400'),
	('route', 'TQ400 TQ400'), ('*', 'TQ400 TQ400'), ('', 'TQ400 TQ400')) AS v (pattern, codes);
SELECT throws_ok($$SELECT tq.subscribe('s', 'task-completed', 'proj/linux')$$, 'TQ400', 'pattern "proj/linux" matches no routing key', 'subscribe: the name of a queue is no pattern');
SELECT matches(pg_temp.error($$SELECT tq.bind('c', 'task-completed', 'proj/linux')$$) ->> 'hint', 'give primary[.*]+[.]proj[.]linux[.]#$', 'bind: the right form');
SELECT lives_ok($$SELECT tq.unbind('c', 'task-pending', 'proj/linux')$$, 'unbind: what could be bound before');
SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview WHERE channel = 'c' \g /dev/null
SELECT tq.unsubscribe('c') \g /dev/null
SELECT lives_ok($$SELECT tq.bind('seed', 'exchange/taskcluster-queue/v1/task-defined'), tq.bind('seed', 'taskGroupResolved'), tq.bind('seed', 'taskAlert')$$, 'bind: Taskcluster''s names');
SELECT is(pg_temp.bindings('seed'), 'seed task-alert #, seed task-defined #, seed task-group-resolved #', 'bind: which are the same exchanges');
SELECT lives_ok($$SELECT tq.unbind('seed', 'taskDefined'), tq.unbind('seed', 'exchange/taskcluster-queue/v1/task-group-resolved'), tq.unbind('seed', 'task-alert')$$, 'unbind: Taskcluster''s names');
SELECT is(pg_temp.bindings('seed'), NULL, 'unbind: which are the same exchanges');
SELECT is((SELECT array_agg(id) FROM tq.messages(exchange => 'taskPending')), (SELECT array_agg(id) FROM tq.messages(exchange => 'task-pending')), 'messages: taskPending is task-pending');
SELECT is((SELECT array_agg(id) FROM tq.messages(exchange => 'exchange/taskcluster-queue/v1/task-pending')), (SELECT array_agg(id) FROM tq.messages(exchange => 'task-pending')), 'messages: so is its whole name');
SELECT lives_ok($$SELECT tq.subscribe('seed', 'taskFailed'), tq.subscribe('seed', 'exchange/taskcluster-queue/v1/task-exception')$$, 'subscribe: Taskcluster''s names');
SELECT is((SELECT bindings FROM tq.subscription_overview WHERE name = 'seed'), '{"task-failed #","task-exception #"}'::text[], 'subscribe: which are the same exchanges');
SELECT tq.unsubscribe('seed');

-- ---------------------------------------------------------------------------
-- Messages of an exchange without bindings and subscriptions are not written
-- ---------------------------------------------------------------------------

-- How many rows, and records, of messages were written since the last call.
CREATE FUNCTION pg_temp.written() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	rows bigint;
	records bigint;
	last bigint;
BEGIN
	PERFORM pg_temp.last_id();
	SELECT count(*), coalesce(sum(get_byte(m.records, 8) * 256 + get_byte(m.records, 9)), 0), max(seq) INTO rows, records, last
	FROM tq_internal.message AS m WHERE seq > current_setting('test.seq')::bigint;
	PERFORM set_config('test.seq', coalesce(last::text, current_setting('test.seq')), false);
	RETURN format('%s rows, %s records', rows, records);
END
$$;
SELECT set_config('test.seq', max(seq)::text, false) FROM tq_internal.message;
SELECT pg_temp.forget();

SELECT pg_temp.create('n1');
SELECT is(pg_temp.written(), '0 rows, 0 records', 'all are bound: the publisher derives both messages');
SELECT pg_temp.create('n1a'), pg_temp.create('n1b');
SELECT is(pg_temp.written(), '1 rows, 2 records', 'but of one creation in a transaction: two messages in one row');
SELECT lives_ok($$SELECT tq.unbind('tq_task_defined', 'task-defined')$$, 'task-defined is not bound');
SELECT pg_temp.forget();
SELECT pg_temp.create('n2');
SELECT is(pg_temp.written(), '1 rows, 1 records', 'task-defined is not bound: one message');
SELECT is(pg_temp.sent(), 'PEND n2 pending 0._._', 'task-defined is not bound: not sent');
SELECT pg_temp.create('n2d', '{"$deps": ["n2"]}');
SELECT is(pg_temp.written(), '0 rows, 0 records', 'task-defined is not bound: no row without other messages');
BEGIN;
SELECT tq.bind('tq_task_defined', 'task-defined');
SELECT pg_temp.create('n3');
ROLLBACK;
SELECT pg_temp.create('n4');
SELECT is(pg_temp.sent(), 'PEND n4 pending 0._._', 'a binding that was rolled back');
BEGIN;
SAVEPOINT s;
SELECT tq.bind('tq_task_defined', 'task-defined');
SELECT pg_temp.create('n5');
ROLLBACK TO s;
SELECT pg_temp.create('n6');
COMMIT;
SELECT is(pg_temp.sent(), 'PEND n6 pending 0._._', 'a binding whose savepoint was rolled back');
BEGIN;
SELECT tq.bind('tq_task_defined', 'task-defined');
SELECT pg_temp.create('n7');
COMMIT;
SELECT is(pg_temp.sent(), 'DEF n7 unscheduled _._._, PEND n7 pending 0._._', 'a binding of the same transaction');
SELECT pg_temp.written();
SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview;
SELECT is(pg_temp.bindings(), NULL, 'nothing is bound');
SELECT count(*) AS ticks FROM tq_internal.tick
\gset
SELECT pg_temp.create('n8');
SELECT pg_temp.resolved('n9', 'worker-shutdown');
SELECT pg_temp.work('n9', 'completed');
SELECT pg_temp.cancel('n8');
SELECT tq.seal_task_group(pg_temp.id('n8'));
SELECT tq.rerun_task(pg_temp.id('n8'));
SELECT pg_temp.create('n10', '{"$deadline": "1 minute"}');
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', 'nothing is bound: a deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.written(), '0 rows, 0 records', 'nothing is bound: nothing is written');
SELECT is(count(*), :ticks::bigint, 'nothing is bound: no tick') FROM tq_internal.tick;
SELECT is(pg_temp.sent(), '', 'nothing is bound: nothing is sent');
SELECT lives_ok($$SELECT tq.bind('mine', 'task-running', 'route.x.y')$$, 'one exchange is bound, by a pattern');
SELECT pg_temp.running('n11');
SELECT is(pg_temp.written(), '1 rows, 1 records', 'one exchange is bound: it is written, whatever the pattern');
SELECT is(pg_temp.sent(), 'RUN n11 running 0.wg.w1', 'one exchange is bound: messages() has it, whatever the pattern');
SELECT lives_ok($$SELECT tq.subscribe('sub', 'task-completed', 'route.x.y')$$, 'one exchange is subscribed to');
SELECT pg_temp.report('n11', 'completed');
SELECT is(pg_temp.written(), '1 rows, 1 records', 'one exchange is subscribed to: it is written');
SELECT is(pg_temp.sent(), 'COMP n11 completed 0.wg.w1', 'one exchange is subscribed to: messages() has it');
SELECT lives_ok($$SELECT tq.unsubscribe('sub')$$, 'and no more');
SELECT pg_temp.resolved('n12', 'completed');
SELECT is(pg_temp.sent(), 'RUN n12 running 0.wg.w1', 'no subscription: not sent');
SELECT lives_ok($$SELECT tq.unbind('mine', 'task-running', 'route.x.y')$$, 'no binding');
SELECT pg_temp.running('n13');
SELECT is(pg_temp.sent(), '', 'no binding: not sent');

-- ---------------------------------------------------------------------------
-- Channels of queues
-- ---------------------------------------------------------------------------

SELECT is(tq.queue_channel('p/w'), 'tq_queue_p/w', 'queue_channel: the name of the queue');
SELECT is(tq.queue_channel('a-B_c/d-E_f'), 'tq_queue_a-B_c/d-E_f', 'queue_channel: as it is');
SELECT is(octet_length(tq.queue_channel('p/' || repeat('w', 38))), 49, 'queue_channel: a long one, whole');
SELECT is(tq.queue_channel(repeat('p', 15) || '/' || repeat('w', 38)), 'tq_queue_' || repeat('p', 15) || '/' || repeat('w', 38), 'queue_channel: the longest that is whole, 63 bytes');
SELECT is(octet_length(tq.queue_channel(q)), 63, 'queue_channel: shortened to 63 bytes, a name of ' || length(q))
FROM unnest(ARRAY[repeat('p', 16) || '/' || repeat('w', 38), repeat('p', 38) || '/' || repeat('w', 38), repeat('p', 38) || '/' || repeat('w', 16)]) AS q;
SELECT is(tq.queue_channel(q), 'tq_queue_' || left(q, 21) || '_' || md5(q), 'queue_channel: the beginning and the MD5')
FROM (SELECT repeat('p', 38) || '/' || repeat('w', 38)) AS v (q);
SELECT is(count(DISTINCT tq.queue_channel(repeat('p', 38) || '/' || repeat('w', 30) || n)), 1000::bigint, 'queue_channel: shortened ones are distinct') FROM generate_series(1, 1000) AS n;
SELECT is(pg_temp.code(format('SELECT tq.queue_channel(%L)', q)), 'TQ400', 'queue_channel: no task queue: ' || quote_literal(left(q, 20)))
FROM unnest(ARRAY['', 'p.', 'p/', '/w', 'p/w/x', 'p.q/w', 'p/' || repeat('w', 39), 'p/w x']) AS q;
SELECT is(tq.queue_channel(NULL), NULL, 'queue_channel: NULL of NULL');

-- ---------------------------------------------------------------------------
-- Channels of workers
-- ---------------------------------------------------------------------------

SELECT is(tq.worker_channel('eu', 'pod-7.local'), 'tq_worker_eu/pod-7.local', 'worker_channel: group and id');
SELECT is(tq.worker_channel('eu', repeat('w', 50)), 'tq_worker_eu/' || repeat('w', 50), 'worker_channel: the longest that is whole, 63 bytes');
SELECT is(tq.worker_channel('eu', repeat('w', 51)), 'tq_worker_eu/' || repeat('w', 17) || '_' || md5('eu/' || repeat('w', 51)), 'worker_channel: the beginning and the MD5');
SELECT is(count(DISTINCT tq.worker_channel(repeat('g', 128), repeat('w', 124) || n)), 1000::bigint, 'worker_channel: shortened ones are distinct') FROM generate_series(1000, 1999) AS n;
SELECT is(pg_temp.code(format('SELECT tq.worker_channel(%L, %L)', g, w)), 'TQ400', 'worker_channel: no worker: ' || quote_literal(left(g, 20)) || ', ' || quote_literal(left(w, 20)))
FROM (VALUES ('', 'w'), ('g', ''), ('g/h', 'w'), ('g', 'w x'), ('g', repeat('w', 129))) AS v (g, w);
SELECT is(tq.worker_channel('g', NULL), NULL, 'worker_channel: NULL of NULL');

SELECT * FROM finish();
