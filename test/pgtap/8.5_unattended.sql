-- doc/spec/taskcluster.md 8.5: workers that are gone are seen within a minute.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.reasons(name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(regexp_replace(concat_ws(': ', reason, detail, advice), ' \d{4}-[^;]*?\d\d:\d\d:\d\d[+-]\d\d(:\d\d)?', ' <time>'), '; ') FROM tq.why(pg_temp.id(name))
$$;
CREATE FUNCTION pg_temp.stats(queue text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', CASE WHEN unattended THEN 'unattended' ELSE 'attended' END, round(extract(epoch FROM last_date_active - now()) / 30) * 30) FROM tq.queue_stats WHERE task_queue_id = queue
$$;
CREATE FUNCTION pg_temp.health() RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', ok, regexp_replace(detail, '\d{4}-.*\d\d:\d\d:\d\d[+-]\d\d(:\d\d)?', '<time>'), hint) FROM tq.health() WHERE name = 'workers'
$$;
CREATE FUNCTION pg_temp.lines() RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(regexp_replace(line, '\d{4}-.*\d\d:\d\d:\d\d[+-]\d\d(:\d\d)?', '<time>'), ' / '), '') FROM tq.top() AS line WHERE line ~ ': no worker has asked'
$$;
SET intervalstyle = 'postgres';

-- Tasks of a queue, of which a worker claims the first.
SELECT tq.enqueue('test/q', task_id => pg_temp.id(n)) FROM unnest('{a,b,c}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.reasons('a'), 'no worker: no worker has asked its queue for work: start one, or correct queue test/q; next: it is the first of queue test/q: start a worker', 'none has ever asked');
SELECT is(pg_temp.stats('test/q'), 'attended', 'but only for a moment');
SELECT pg_temp.take('a') \g /dev/null
SELECT is(pg_temp.reasons('b'), 'next: it is the first of queue test/q: wait for the next claim; sessions that wait: 0', 'a worker has asked');
SET tq.clock_offset = '10 seconds';
SELECT pg_temp.report('a', 'completed') \g /dev/null
SELECT pg_temp.take('b') \g /dev/null
SET tq.clock_offset = '20 seconds';
SELECT is((SELECT taken_until > now() FROM tq.reclaim_task(pg_temp.id('b'), 0)), true, 'a reclaim');
SELECT is(pg_temp.stats('test/q'), 'attended 30', 'the time of the last is exact, though no row has it');
SET tq.clock_offset = '70 seconds';
SELECT is(pg_temp.stats('test/q'), 'attended 30', 'within a minute');
SELECT is(pg_temp.reasons('c'), 'next: it is the first of queue test/q: wait for the next claim; sessions that wait: 0', 'within a minute: why');
SET tq.clock_offset = '90 seconds';
SELECT is(pg_temp.stats('test/q'), 'unattended 30', 'after a minute');
SELECT is(pg_temp.reasons('c'), 'no worker: no worker has asked since <time>: start one, or correct queue test/q; next: it is the first of queue test/q: start a worker', 'after a minute: why');
SELECT is(pg_temp.lines(), 'test/q: no worker has asked since <time>; 1 pending, 1 running', 'after a minute: top');
SELECT is(pg_temp.health(), 't no worker has asked since <time>', 'health says so, but the worker may have no time to ask');
SELECT pg_temp.report('b', 'completed') \g /dev/null
SELECT is(pg_temp.health(), 'f no worker has asked since <time> start workers of test/q', 'health is not ok when nothing runs');
SELECT is(length(detail) <= 51 AND length(hint) <= 42, true, 'in short columns') FROM tq.health() WHERE name = 'workers';

-- Several queues; the one that has waited longest is named.
SELECT tq.enqueue('test/other') FROM generate_series(1, 2) \g /dev/null
SELECT is((SELECT count(*) FROM tq.claim_work('test/empty', 'g', 'w')), 0::bigint, 'a queue without work');
SET tq.clock_offset = '5 minutes';
SELECT is(pg_temp.health(), 'f no worker has ever asked (+1) start workers of test/other', 'more than one');
SELECT is(pg_temp.lines(), 'test/other: no worker has asked; 2 pending, 0 running / test/q: no worker has asked since <time>; 1 pending, 0 running', 'each in top');
SELECT is(max(length(line)) <= 98, true, 'in lines of at most 98 characters') FROM tq.top() AS line;
SELECT is(pg_temp.stats('test/empty'), 'attended 90', 'nothing waits in it');

-- A paused queue hands out nothing; a claim, even one that gets nothing, ends it all.
SELECT tq.pause_queue('test/other') \g /dev/null
SELECT is(pg_temp.stats('test/other'), 'attended', 'not while it is paused');
SELECT is((SELECT count(*) FROM tq.claim_work('test/other', 'g', 'w')), 0::bigint, 'a claim in vain');
SELECT tq.resume_queue('test/other') \g /dev/null
SELECT is(pg_temp.stats('test/other'), 'attended 300', 'which is one');
SELECT pg_temp.take('c') \g /dev/null
SELECT matches(pg_temp.health(), '^t workers ask for what is pending; \d+ wait$', 'all is well');
SELECT is(pg_temp.lines(), '', 'in top, too');

SELECT * FROM finish();
ROLLBACK;
