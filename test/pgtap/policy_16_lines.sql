-- doc/spec/policy.md 16.5.3 to 16.5.6: claims, runs and outcomes as lines of text.
-- test/cluster/t/027_router_lines.pl has the other end, which reads them.
BEGIN;
\ir policy.psql

-- The fields of the claims that a call of claim_lines() returns.
CREATE FUNCTION pg_temp.fields(call text) RETURNS TABLE (task_id text, run_id text, taken_until text, payload text, credentials text, task text, status text, queue text, others text)
LANGUAGE plpgsql AS $$
DECLARE
	value text;
	line text;
	f text[];
BEGIN
	FOR value IN EXECUTE 'SELECT ' || call LOOP
		IF value !~ '\n$' THEN
			RAISE 'the last line has no end: %', value;
		END IF;
		FOREACH line IN ARRAY string_to_array(left(value, -1), E'\n') LOOP
			f := string_to_array(line, E'\t');
			RETURN QUERY SELECT f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9];
		END LOOP;
	END LOOP;
END $$;
-- What is behind the length of a jsonb value is as long in hexadecimal.
CREATE FUNCTION pg_temp.is_hex(field text, value jsonb) RETURNS bool LANGUAGE sql AS $$
	SELECT field ~ '^x[0-9a-f]*$' AND length(field) = 1 + 2 * (pg_column_size(value) - 4)
$$;
CREATE FUNCTION pg_temp.micros(t timestamptz) RETURNS text LANGUAGE sql AS $$
	SELECT (extract(epoch FROM t - '2000-01-01 00:00:00+00') * 1000000)::bigint::text
$$;
CREATE FUNCTION pg_temp.task(name text, payload jsonb, priority text DEFAULT 'lowest', queue text DEFAULT 'test/q') RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue(queue, payload, pg_temp.id(name), priority => priority)
$$;
CREATE FUNCTION pg_temp.line(name text, run int DEFAULT 0) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.id(name)::text || E'\t' || run || E'\n' $$;
CREATE TEMP TABLE claimed (task_id text, run_id text, taken_until text, payload text, credentials text, task text, status text, queue text, others text);
-- Prefixes of jsonb values in hexadecimal are those of the client encoding.
SELECT getdatabaseencoding() AS encoding \gset
SET client_encoding = :'encoding';

-- ---------------------------------------------------------------------------
-- 16.5.3 claim_lines
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT is((SELECT count(*) FROM tq_internal.claim_lines('test/q', 'g', 'w', 10)), 0::bigint, '16.5.3 no claim: no value');
SELECT pg_temp.task('high', '{"a": 1}', 'high'), pg_temp.task('low', '[]', 'low'), pg_temp.task('mid', '"x\ty\nz"', 'medium') \g /dev/null
INSERT INTO claimed SELECT * FROM pg_temp.fields($$tq_internal.claim_lines('test/q', 'g', 'w', 10)$$);
SELECT is((SELECT array_agg(task_id) FROM claimed), pg_temp.ids('high', 'mid', 'low')::text[], '16.5.3 the claims in their order');
SELECT is((SELECT array_agg(DISTINCT run_id) FROM claimed), '{0}', '16.5.3 run ids');
SELECT is((SELECT array_agg(DISTINCT taken_until) FROM claimed), (SELECT array_agg(DISTINCT pg_temp.micros((tq.status(pg_temp.id(name)) #>> '{runs,0,takenUntil}')::timestamptz))
	FROM unnest('{high,mid,low}'::text[]) AS name), '16.5.3 when the claim ends');
SELECT is((SELECT array_agg(DISTINCT credentials) FROM claimed), '{""}', '16.5.3 no credentials');
SELECT is((SELECT array_agg(DISTINCT task || status) FROM claimed), '{""}', '16.5.3 no definitions');
SELECT is((SELECT count(queue) FROM claimed), 0::bigint, '16.5.3 no queue, of one');
SELECT is((SELECT array_agg(pg_temp.is_hex(payload, tq.task(task_id::tq.slugid) -> 'payload')) FROM claimed), '{t,t,t}', '16.5.4 payloads as bytes');
SELECT is((SELECT array_agg(run #>> '{workerId}') FROM claimed, jsonb_array_elements(tq.status(task_id::tq.slugid) -> 'runs') AS run), '{w,w,w}', '16.5.3 the runs are claimed');
ROLLBACK TO s;

SELECT pg_temp.task('a', '1'), pg_temp.task('b', 'null') \g /dev/null
SELECT is((SELECT array_agg(task_id) FROM pg_temp.fields($$tq_internal.claim_lines('test/q', 'g', 'w')$$)), pg_temp.ids('a')::text[], '16.5.3 one by default');
SELECT is((SELECT array_agg(ARRAY[task_id, queue, others]) FROM pg_temp.fields($$tq_internal.claim_lines('{test/none,test/*}'::text[], 'g', 'w', mode => 'round-robin')$$)),
	ARRAY[ARRAY[pg_temp.id('b')::text, 'test/q', NULL]], '16.5.3 the queue, of several');
ROLLBACK TO s;

SET LOCAL tq.credentials = on;
SELECT pg_temp.task('a', '{"a": 1}') \g /dev/null
INSERT INTO claimed SELECT * FROM pg_temp.fields($$tq_internal.claim_lines('{test/q}'::text[], 'g', 'w')$$);
SELECT matches(credentials, '^x[0-9a-f]{100,}$', '16.5.3 credentials as bytes') FROM claimed;
SELECT is(queue, 'test/q', '16.5.3 and the queue behind them') FROM claimed;
ROLLBACK TO s;

SELECT pg_temp.task(n, '{"a": 1}') FROM unnest('{a,b}'::text[]) AS n \g /dev/null
INSERT INTO claimed SELECT * FROM pg_temp.fields($$tq_internal.claim_lines('test/q', 'g', 'w', claim_for => '3 h', definition => true)$$);
INSERT INTO claimed SELECT * FROM pg_temp.fields($$tq_internal.claim_lines('{test/q}'::text[], 'g', 'w', claim_for => '3 h', definition => true)$$);
SELECT is((SELECT array_agg(pg_temp.is_hex(task, tq.task(task_id::tq.slugid)) AND pg_temp.is_hex(status, tq.status(task_id::tq.slugid))) FROM claimed), '{t,t}', '16.5.3 definitions and statuses');
SELECT is((SELECT array_agg(queue) FROM claimed), '{NULL,test/q}', '16.5.3 the queue is the last field');
SELECT is((SELECT array_agg((tq.status(task_id::tq.slugid) #>> '{runs,0,takenUntil}')::timestamptz - (tq.status(task_id::tq.slugid) #>> '{runs,0,started}')::timestamptz) FROM claimed),
	'{03:00:00,03:00:00}', '16.5.3 claim_for');
ROLLBACK TO s;

-- Values of a megabyte
SELECT pg_temp.task('t' || n, to_jsonb(repeat('x', 300000))) FROM generate_series(1, 5) AS n \g /dev/null
SELECT is((SELECT array_agg(array_length(regexp_split_to_array(lines, E'\n'), 1) - 1) FROM tq_internal.claim_lines('test/q', 'g', 'w', 5) AS l (lines)), '{2,2,1}', '16.5.3 values of a megabyte or more');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 16.5.4 JSON of another encoding is text
-- ---------------------------------------------------------------------------

SELECT pg_temp.task('a', '{"tab": "\t", "line": "\n", "n": 1.50}') \g /dev/null
SELECT CASE WHEN getdatabaseencoding() = 'UTF8' THEN 'LATIN1' ELSE 'UTF8' END AS other \gset
SET client_encoding = :'other';
INSERT INTO claimed SELECT * FROM pg_temp.fields($$tq_internal.claim_lines('test/q', 'g', 'w')$$);
SET client_encoding = :'encoding';
SELECT is(payload, '{"n": 1.50, "tab": "\t", "line": "\n"}', '16.5.4 as text, whose tabs and newlines are escaped') FROM claimed;
ROLLBACK TO s;
SET client_encoding = :'encoding';

-- ---------------------------------------------------------------------------
-- 16.5.5 resolve_lines
-- ---------------------------------------------------------------------------

SELECT pg_temp.task(name, '{}'), tq.claim_work('test/q', 'g', 'w') FROM unnest('{a,b,c,d}'::text[]) AS name \g /dev/null
SELECT pg_temp.task('p', '{}') \g /dev/null
SELECT is(tq_internal.resolve_lines(''), '', '16.5.5 no run');
SELECT is(tq_internal.resolve_lines(pg_temp.line('a') || pg_temp.line('p') || pg_temp.line('a') || pg_temp.line('none') || pg_temp.line('b') || pg_temp.line('b', 1) || pg_temp.line('b', -1)),
	E'resolved\nconflict\nrepeated\nnot-found\nresolved\nnot-found\nnot-found\n', '16.5.5 outcomes in their order');
SELECT is(pg_temp.state('a') || ' ' || pg_temp.state('b') || ' ' || pg_temp.state('p'), 'completed completed pending', '16.5.5 what became of them');
SELECT is(tq_internal.resolve_lines(pg_temp.line('c'), 'failed'), E'resolved\n', '16.5.5 another reason');
SELECT is(pg_temp.state('c'), 'failed', '16.5.5 is what the run has');
SELECT is(tq_internal.resolve_lines(pg_temp.line('d'), 'worker-shutdown'), E'retried\n', '16.5.5 a retry');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('a', 'p', 'none', 'd'), '{0,0,0,0}')), replace(trim(E'\n' FROM tq_internal.resolve_lines(pg_temp.line('a') || pg_temp.line('p') || pg_temp.line('none')
	|| pg_temp.line('d'))), E'\n', ' '), '16.5.5 outcomes are those of resolve()');
SELECT pg_temp.throws(format('SELECT tq_internal.resolve_lines(%L, %L)', pg_temp.line('p'), bad), 'TQ400', '16.5.5 a bad reason: ' || bad) FROM unnest('{"",lost,deadline-exceeded}'::text[]) AS bad;
SELECT pg_temp.throws('SELECT tq_internal.resolve_lines(NULL)', 'TQ400', '16.5.5 NULL');
ROLLBACK TO s;

-- Lines that are not so
SELECT pg_temp.task('a', '{}'), tq.claim_work('test/q', 'g', 'w') \g /dev/null
CREATE TEMP TABLE bad_line (name text, text text);
INSERT INTO bad_line VALUES ('no newline', trim(E'\n' FROM pg_temp.line('a'))), ('no tab', pg_temp.id('a')::text || E'0\n'), ('a space', pg_temp.id('a')::text || E' 0\n'), ('no run', pg_temp.id('a')::text || E'\t\n'),
	('no id', E'\t0\n'), ('no slugid', E'one\t0\n'), ('no number', pg_temp.id('a')::text || E'\tx\n'), ('behind the number', pg_temp.id('a')::text || E'\t0x\n'), ('a number in spaces', pg_temp.id('a')::text || E'\t 0\n'),
	('too large', pg_temp.id('a')::text || E'\t4294967296\n'), ('larger', pg_temp.id('a')::text || E'\t99999999999999999999\n'), ('a third field', pg_temp.id('a')::text || E'\t0\t0\n'),
	('an empty line', E'\n'), ('behind the last line', 'x');
SELECT pg_temp.throws(format('SELECT tq_internal.resolve_lines(%L)', pg_temp.line('a') || text), 'TQ400', '16.5.5 a bad line: ' || name) FROM bad_line;
SELECT is(pg_temp.state('a'), 'running', '16.5.5 and nothing is resolved');
SELECT throws_like(format('SELECT tq_internal.resolve_lines(%L)', pg_temp.line('a') || 'x'), 'invalid runs', '16.5.5 the message');
ROLLBACK TO s;

SET LOCAL tq.max_batch = 2;
SELECT pg_temp.throws(format('SELECT tq_internal.resolve_lines(%L)', repeat(pg_temp.line('a'), 3)), 'TQ400', '16.5.5 too many');

SELECT * FROM finish();
ROLLBACK;
