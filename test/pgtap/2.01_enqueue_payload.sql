-- doc/spec/taskcluster.md 1.2, 2.1: payloads of enqueue() are any JSON.
BEGIN;
\ir helper.psql

CREATE TEMP TABLE given AS SELECT 'p' || n AS name, v::jsonb AS payload FROM unnest(ARRAY['null', 'true', '1.50', '"x"', '""', '[]', '[1, {"a": null}]', '{}', '{"a": 1}',
	'"' || repeat('long ', 2000) || '"', (SELECT jsonb_agg(repeat(n::text, 100))::text FROM generate_series(1, 100) n)]) WITH ORDINALITY AS u (v, n);
CREATE FUNCTION pg_temp.each(query text, what text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	g record;
	got jsonb;
BEGIN
	FOR g IN SELECT * FROM given LOOP
		EXECUTE replace(query, '<t>', pg_temp.id(g.name)::text) INTO got;
		RETURN NEXT is(got, g.payload, what || ': ' || left(g.payload::text, 20));
	END LOOP;
END $$;

SELECT tq.enqueue('test/p', payload, task_id => pg_temp.id(name), policy => '{"deadLetter": true}', deadline => '1 day') FROM given \g /dev/null
SELECT pg_temp.each($$SELECT tq.task('<t>') -> 'payload'$$, 'task');
SELECT is(pg_temp.look(name), 'pending 5: scheduled>pending', 'status: ' || name) FROM given;
SELECT pg_temp.each($$SELECT (SELECT task FROM tq.tasks('{<t>}')) -> 'payload'$$, 'tasks');
SELECT pg_temp.keeps(format('SELECT tq.status(tq.enqueue(''test/p'', %L, task_id => %L, policy => ''{"deadLetter": true}''))', payload, pg_temp.id(name)), name, 'a repeat: ' || name) FROM given;
SELECT pg_temp.throws(format('SELECT tq.enqueue(''test/p'', ''[2]'', task_id => %L, policy => ''{"deadLetter": true}'')', pg_temp.id(name)), 'TQ409', 'another payload: ' || name) FROM given;
SELECT isnt(tq.why(pg_temp.id(name))::text, NULL, 'why: ' || name) FROM given;
SELECT is((SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'test/p'), 11::bigint, 'views');

CREATE TEMP TABLE claimed AS SELECT * FROM tq.claim_work('test/p', 'wg', 'w1', 20);
SELECT is(c.payload, g.payload, 'claim_work: ' || name) FROM given g JOIN claimed c ON c.task_id = pg_temp.id(name);
SELECT is(count(*), 11::bigint, 'claim_work: all') FROM claimed;
SELECT tq.report_failed(task_id, run_id) FROM claimed \g /dev/null
SELECT pg_temp.each($$SELECT task -> 'payload' FROM tq.list_dead_letters('test/p') WHERE task_id = '<t>'$$, 'dead letter');
SET tq.clock_offset = '2 days';
CREATE TEMP TABLE redriven AS SELECT payload, tq.redrive(pg_temp.id(name)) ->> 'taskId' AS id FROM given;
SELECT isnt(id, NULL) FROM redriven;
SELECT is(c.payload, g.payload, 'claimed after a redrive: ' || left(g.payload::text, 20)) FROM redriven g, LATERAL (SELECT payload FROM tq.claim_task(g.id::tq.slugid, 0, 'wg', 'w1')) c;
SET tq.clock_offset = '0';

-- Many, and replaced ones; a policy that drops the payload
SELECT is((SELECT array_agg(c.payload ORDER BY c.payload::text COLLATE "C") FROM tq.enqueue_tasks('test/many', (SELECT array_agg(payload) FROM given)) AS made, tq.claim_work('test/many', 'wg', 'w1', 20) c),
	(SELECT array_agg(payload ORDER BY payload::text COLLATE "C") FROM given), 'enqueue_tasks');
SELECT tq.enqueue('test/u', '{"a": 1}', task_id => pg_temp.id('u'), policy => '{"uniqueKey": "k", "onConflict": "replace", "dropPayload": true}'),
	tq.enqueue('test/u', '"b"', policy => '{"uniqueKey": "k", "onConflict": "replace", "dropPayload": true}');
SELECT is((SELECT payload FROM tq.claim_work('test/u', 'wg', 'w1')), '"b"', 'replaced');
SELECT tq.report_completed(pg_temp.id('u'), 0);
SELECT is(tq.task(pg_temp.id('u')) -> 'payload', '{}', 'dropped');
SELECT tq.enqueue('test/d', '"b"', task_id => pg_temp.id('d'), policy => '{"dropPayload": true}');
SELECT tq.skip_task(pg_temp.id('d'));
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/d', '"b"', task_id => pg_temp.id('d'), policy => '{"dropPayload": true}'))$$, 'd', 'a repeat of one that was dropped');

-- What is refused
SELECT pg_temp.throws($$SELECT tq.enqueue('test/p', NULL)$$, 'TQ400', 'NULL');
SELECT pg_temp.throws($$SELECT tq.enqueue_tasks('test/p', '{NULL}')$$, 'TQ400', 'NULL among many');
SET LOCAL tq.max_payload = '1kB';
SELECT pg_temp.throws($$SELECT tq.enqueue('test/p', to_jsonb(repeat('x', 2000)))$$, 'TQ400', 'a string that is too long');
SELECT pg_temp.refuses(jsonb_build_object('payload', v::jsonb), 'a definition has an object: ' || v) FROM unnest('{null,1,"\"x\"",[]}'::text[]) AS v;

SELECT * FROM finish();
ROLLBACK;
