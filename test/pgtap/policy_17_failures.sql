-- doc/spec/policy.md 17.4: what failed, in groups of errors of one shape.
BEGIN;
\ir policy.psql

-- Shapes.
SELECT is(tq_internal.error_shape(to_jsonb(e.error)), e.shape, '17.4.2 ' || left(e.error, 60))
FROM (VALUES
	('printer 4 is out of paper', 'printer <number> is out of paper'),
	('no route to 10.0.0.1, from 10.0.0.2:5432', 'no route to <address>, from <address>'),
	('[::1]:80, fe80::1%eth0 and 2001:db8::8a2e:370:7334 or ::ffff:192.168.0.1', '[<address>]:<number>, <address> and <address> or <address>'),
	('fe80:: or 00:1b:44:11:3a:b7, at 12:5: x, x.c:12:5: y', '<address> or <address>, at <number>:<number>: x, x.c:<number>:<number>: y'),
	('std::vector<int>::at: a :: b', 'std::vector<int>::at: a :: b'),
	('GET https://example.com/a?b=1&c=2 returned 404', 'GET <address> returned <number>'),
	('mail to ann.x+y@mail.example.com bounced', 'mail to <address> bounced'),
	('open /var/lib/x-1/y.txt: ENOENT', 'open <path>: ENOENT'),
	('open C:\Users\bob\x.txt or \\server\share\x.doc failed', 'open <path> or <path> failed'),
	('./run.sh or ../x or ~/y, and/or', '<path> or <path> or <path>, and/or'),
	('at src/main.py:12', 'at src/main.py:<number>'),
	('key ''abc'' of "x y" isn''t there, can''t open `f`', 'key <text> of <text> isn''t there, can''t open <text>'),
	('task b6fd18a3-2d53-4f3e-9d43-0123456789ab is lost', 'task <id> is lost'),
	('task ' || tq.stable_slugid('x') || ' is lost', 'task <id> is lost'),
	('commit a1b2c3d or 5d41402abc4b2a76b9719d911017c592', 'commit <id> or <id>'),
	('at 0xDEADBEEF, ch_3LxyzAB12cd34EF56', 'at <id>, ch_<id>'),
	('took 15ms of 3.5 s at 100%: 12 kB', 'took <number> of <number> at <number>: <number>'),
	('1,000,000 rows or -5 or 1e10', '<number> rows or <number> or <number>'),
	('E404 utf8 ORA-00942 worker-12 job_17', 'E404 utf8 ORA-<number> worker-<number> job_<number>'),
	('at 2026-01-31T12:00:00.123Z or 2026-01-31 12:00:00+02 or 12:13:14', 'at <time> or <time> or <time>'),
	('ids 1, 2, 3 and 4; (''a'', ''b'')', 'ids <number> ... and <number>; (<text> ...)'),
	(E'one\n  two\tthree', 'one two three'),
	('configuration_is_wrong', 'configuration_is_wrong'),
	('prä 漢字 7', 'prä 漢字 <number>'),
	('', '')) AS e (error, shape);
SELECT is(tq_internal.error_shape(e.error::jsonb), e.shape, '17.4.2 JSON: ' || e.error)
FROM (VALUES
	('{"message": "no route to 10.0.0.1", "code": "E1"}', 'no route to <address>'),
	('{"code": "ENOENT", "errno": 2}', 'code: ENOENT, errno: <number>'),
	('["x", 7]', '[<text>, <number>]'),
	('7', '<number>'),
	('{}', ''),
	('null', NULL)) AS e (error, shape);
SELECT is(length(tq_internal.error_shape(to_jsonb(repeat(t, 8192)))) <= 200, true, '17.4.2 8,192 times ' || t)
FROM unnest('{x,1.,a:,a1,"''","\"",/,@,<id> ,1 ,"\\"}'::text[]) AS t;

-- The groups, read in pages and put together.
CREATE FUNCTION pg_temp.groups(filter jsonb DEFAULT '{}', size int DEFAULT 100, budget interval DEFAULT '1 min') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	place text;
	row record;
	seen jsonb := '{}';
	shown text;
BEGIN
	LOOP
		FOR row IN SELECT * FROM tq.failure_groups(filter, place, size, budget) LOOP
			place := row.page;
			shown := coalesce(row.reason, 'others') || coalesce(' ' || row.error, '');
			IF row.task_id IS NOT NULL THEN
				seen := seen || jsonb_build_object(shown, row.tasks + coalesce((seen ->> shown)::bigint, 0));
			END IF;
		END LOOP;
		EXIT WHEN place IS NULL;
	END LOOP;
	RETURN (SELECT string_agg(value || ' ' || key, ', ' ORDER BY value::int DESC, key) FROM jsonb_each_text(seen));
END
$$;
CREATE FUNCTION pg_temp.fails(queue text, VARIADIC errors text[]) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(tq.enqueue(queue, name => e)) FROM unnest(errors) AS e;
	SELECT count(tq.report_failed(c.task_id, c.run_id, error_message => tq.task(c.task_id) #>> '{metadata,name}')) FROM tq.claim_work(queue, 'wg', 'w1', 1000) AS c
$$;
SELECT pg_temp.fails('fg/a', 'printer 4 is out of paper', 'printer 5 is out of paper', 'cannot open /etc/x'), pg_temp.fails('fg/b', 'printer 77 is out of paper') \g /dev/null
SELECT pg_temp.create('lost', '{"taskQueueId": "fg/b", "retries": 0}'), pg_temp.take('lost'), pg_temp.report('lost', 'worker-shutdown');
SELECT pg_temp.create('done', '{"taskQueueId": "fg/b"}'), pg_temp.take('done'), pg_temp.report('done', 'completed');
SELECT pg_temp.create('waits', '{"taskQueueId": "fg/b"}');
SELECT tq.enqueue('fg/c', name => 'again', task_id => pg_temp.id('again'), retry => 3), pg_temp.take('again') \g /dev/null
SELECT tq.report_failed(pg_temp.id('again'), 0, error_message => 'printer 8 is out of paper') \g /dev/null
SELECT is(pg_temp.groups(), '3 failed printer <number> is out of paper, 1 failed cannot open <path>, 1 worker-shutdown', '17.4.1 all that failed');
SELECT is(pg_temp.groups(filter::jsonb), expected, '17.4.1 ' || filter)
FROM (VALUES
	('{"queue": "fg/a"}', '2 failed printer <number> is out of paper, 1 failed cannot open <path>'),
	('{"queue": "fg/b"}', '1 failed printer <number> is out of paper, 1 worker-shutdown'),
	('{"state": "exception"}', '1 worker-shutdown'),
	('{"state": "pending"}', '1 failure-retry printer <number> is out of paper'),
	('{"state": ["pending", "failed"], "error": "paper"}', '3 failed printer <number> is out of paper, 1 failure-retry printer <number> is out of paper'),
	('{"state": ["unscheduled", "pending", "running", "completed", "failed", "exception"]}', '3 failed printer <number> is out of paper, 1 failed cannot open <path>, 1 failure-retry printer <number> is out of paper, 1 worker-shutdown'),
	('{"state": "completed"}', NULL),
	('{"error": "printer 5"}', '1 failed printer <number> is out of paper'),
	('{"queue": "nothing/*"}', NULL)) AS f (filter, expected);
SELECT row_eq($$SELECT error, reason, tasks, first_failed, last_failed, task_queue_ids, task_id, page FROM tq.failure_groups() LIMIT 1$$,
	(SELECT ROW('printer <number> is out of paper'::text, 'failed'::text, 3::bigint, min(resolved), max(resolved), '{fg/a,fg/b}'::text[], (array_agg(task_id ORDER BY name DESC))[1], NULL::text)
		FROM tq.failure_overview WHERE error ->> 'message' LIKE 'printer%' AND NOT retrying), '17.4.3 the row of a group');
SELECT is(last_failed, (SELECT resolved FROM tq.failure_overview WHERE retrying), '17.4.3 a task that is retried failed when its last run did') FROM tq.failure_groups('{"state": "pending"}');

-- A list of failures that is too long is walked, by the table that has them.
CREATE FUNCTION pg_temp.walked(filter jsonb, size int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	l record := tq_internal.find_list(tq_internal.arg_filter(filter), 1);
	before bigint := 9223372036854775807;
	seen bigint[] := '{}';
	chunks int := 0;
	chunk record;
BEGIN
	WHILE before IS NOT NULL LOOP
		chunk := tq_internal.find_chunk(l.f, l.list, before, size, NULL);
		seen := seen || chunk.ids;
		before := chunk.next;
		chunks := chunks + 1;
	END LOOP;
	RETURN concat_ws(' ', cardinality(seen), (SELECT count(DISTINCT s) FROM unnest(seen) AS s), chunks);
END
$$;
SELECT is(pg_temp.walked('{"state": ["failed", "exception"]}', size), expected, '17.2.3 all of five failures once, in chunks of ' || size)
FROM (VALUES (1, '5 5 6'), (2, '5 5 3'), (5, '5 5 2'), (6, '5 5 1')) AS v (size, expected);
SELECT is(pg_temp.walked('{"state": "failed", "queue": "fg/b"}', 2), '1 1 3', '17.2.3 those of a queue');

-- At most so many groups; the others together.
SELECT is(pg_temp.groups('{}', 1), '3 failed printer <number> is out of paper, 2 others', '17.4.4 the largest group and the others');
SELECT results_eq($$SELECT tasks, reason, error, task_queue_ids FROM tq.failure_groups(max => 1)$$,
	$$VALUES (3::bigint, 'failed', 'printer <number> is out of paper', '{fg/a,fg/b}'::text[]), (2, NULL, NULL, '{fg/a,fg/b}')$$, '17.4.4 the others are the last row');

-- A budget.
SELECT pg_temp.fails('fg/many', VARIADIC (SELECT array_agg(CASE WHEN n % 2 = 0 THEN 'code ' || n ELSE 'other ' || n END) FROM generate_series(1, 200) AS n)) \g /dev/null
SELECT is(pg_temp.groups('{}', 100, '0'), pg_temp.groups(), '17.4.5 pages of a budget of 0 come to an end, and count each task once');
SELECT is(pg_temp.groups('{"queue": "fg/many"}', 100, '0'), '100 failed code <number>, 100 failed other <number>', '17.4.5 of a list');
SELECT row_eq($$SELECT count(*), count(task_id), count(page), bool_and(first_failed BETWEEN c.first AND c.last) FILTER (WHERE page IS NOT NULL)
	FROM tq.failure_groups('{"queue": "fg/many"}', budget => '0'), (SELECT min(created) AS first, max(created) AS last FROM tq.find_tasks('{"queue": "fg/many"}', max => 1000, budget => '1 min')) AS c$$,
	ROW(3::bigint, 2::bigint, 1::bigint, true), '17.4.5 the last row has a page, and how far the call came');
SELECT is(pg_temp.call_as('none', format('SELECT count(*) FROM tq.failure_groups(%s)', arguments)) ~ '^TQ400 ', true, '17.4 invalid: ' || arguments)
FROM unnest(ARRAY['NULL', '''[]''', '''7''', '''{"stat": "failed"}''', 'after => ''x''', 'max => 0', 'max => 1001', 'budget => ''-1 s''', 'budget => NULL']) AS arguments;

-- 10,000 errors of different shapes.
SELECT pg_temp.fails('fg/wide', VARIADIC (SELECT array_agg('x' || translate((n + part * 1000)::text, '0123456789', 'abcdefghij')) FROM generate_series(1, 1000) AS n)) FROM generate_series(0, 9) AS part \g /dev/null
SELECT row_eq($$SELECT count(*), sum(tasks), max(tasks), count(page) FROM tq.failure_groups('{"queue": "fg/wide"}', max => 1000, budget => '1 min')$$, ROW(1001::bigint, 10000::numeric, 9000::bigint, 0::bigint), '17.4.4 10,000 shapes');

-- What a role of one queue finds.
CREATE ROLE looker;
SELECT is(pg_temp.call_as('looker', 'SELECT count(*) FROM tq.failure_groups()'), '0', '17.4.1 a role without rights finds nothing');
SELECT tq.grant_queue('looker', 'fg/b', 'depend') \g /dev/null
SELECT is(pg_temp.call_as('looker', format('SELECT string_agg(concat_ws('' '', tasks, reason, error, task_queue_ids), '', '' ORDER BY reason) FROM tq.failure_groups(%L)', filter)), expected, '17.4.1 who sees fg/b: ' || filter)
FROM (VALUES ('{}', '1 failed printer <number> is out of paper {fg/b}, 1 worker-shutdown {fg/b}'), ('{"queue": "fg/a"}', 'NULL'), ('{"tags": {}}', 'NULL'), ('{"name": "*"}', 'NULL')) AS v (filter, expected);

SELECT * FROM finish();
ROLLBACK;
