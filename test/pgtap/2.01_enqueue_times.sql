-- doc/spec/taskcluster.md 2.1, doc/spec/policy.md 10.12: delay, run_at, and the
-- times of enqueue() and enqueue_tasks(), which count from when a task is visible.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.span(name text) RETURNS text LANGUAGE sql AS $$
	SELECT format('visible %s, deadline %s, expires %s', pg_temp.wait(name), (t ->> 'deadline')::timestamptz - (t ->> 'created')::timestamptz,
		(t ->> 'expires')::timestamptz - (t ->> 'deadline')::timestamptz) FROM tq.task(pg_temp.id(name)) AS t
$$;
SET intervalstyle = 'postgres';

-- delay: the deadline counts from when it is over
SELECT tq.enqueue('test/q-a', task_id => pg_temp.id('a'), delay => '10 days', deadline => '1 hour', expires => '3 days');
SELECT is(pg_temp.span('a'), 'visible 10 days, deadline 10 days 01:00:00, expires 3 days', 'delay beyond tq.max_deadline');
SELECT tq.enqueue('test/q-b', task_id => pg_temp.id('b'), policy => '{"delay": "10 days"}', deadline => '1 day');
SELECT is(pg_temp.span('b'), 'visible 10 days, deadline 11 days, expires 30 days', 'delay of the policy');
SELECT tq.set_queue('test/q-c', '{"policy": {"delay": "10 days"}}');
SELECT tq.enqueue('test/q-c', task_id => pg_temp.id('c'), deadline => '1 day');
SELECT is(pg_temp.span('c'), 'visible 10 days, deadline 11 days, expires 30 days', 'delay of the queue');
SELECT tq.enqueue('test/q-c', task_id => pg_temp.id('d'), delay => '1 hour', deadline => '1 day');
SELECT is(pg_temp.span('d'), 'visible 01:00:00, deadline 1 day 01:00:00, expires 30 days', 'delay in place of that of the queue');
SELECT tq.enqueue_tasks('test/q', '{"{}","{}"}', task_ids => pg_temp.ids('e', 'f'), delay => '10 days', deadline => '1 day');
SELECT is(pg_temp.span(n), 'visible 10 days, deadline 11 days, expires 30 days', 'enqueue_tasks: ' || n) FROM unnest('{e,f}'::text[]) AS n;
SELECT tq.enqueue('test/q', task_id => pg_temp.id('year'), delay => '7000 years');
SELECT is(tq.task(pg_temp.id('year')) ->> 'delay', (7000 * 360 * 86400::bigint)::text, 'a delay of 7000 years, of 360 days');

-- run_at
CREATE TEMP TABLE run AS SELECT pg_temp.base() + interval '8 days' AS at;
SELECT tq.enqueue('test/q-r', task_id => pg_temp.id('r'), run_at => at, deadline => '1 day') FROM run;
SELECT is((pg_temp.run('r') ->> 'visibleAt')::timestamptz, at, 'run_at: visible then') FROM run;
SELECT is((tq.task(pg_temp.id('r')) ->> 'deadline')::timestamptz, at + interval '1 day', 'run_at: the deadline counts from then') FROM run;
SELECT ok((tq.task(pg_temp.id('r')) ->> 'delay')::numeric BETWEEN 8 * 86400 - 60 AND 8 * 86400, 'run_at: the definition shows it as a delay');
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/q-r', task_id => pg_temp.id('r'), run_at => at, deadline => '1 day')) FROM run$$, 'r', 'run_at: a repeat, which comes later');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q-r', task_id => pg_temp.id('r'), run_at => at + interval '1 second') FROM run$$, 'TQ409', 'run_at: another time');
SELECT tq.enqueue('test/q-p', task_id => pg_temp.id('p'), run_at => now() - interval '1 year', deadline => '1 day');
SELECT is(pg_temp.span('p'), 'visible 00:00:00, deadline 1 day, expires 30 days', 'run_at in the past: at once');
SELECT is(pg_temp.take('p'), 0, 'run_at in the past: it can be claimed');
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/q-p', task_id => pg_temp.id('p'), run_at => '1999-01-01', deadline => '1 day'))$$, 'p', 'run_at: times of the past are alike');
SELECT tq.enqueue('test/q', task_id => pg_temp.id('u'), run_at => '2100-01-01 00:00:00.0000001+00'), tq.enqueue('test/q', task_id => pg_temp.id('v'), run_at => '2100-01-01 00:00:00.000001+00');
SELECT is(pg_temp.run(n) ->> 'visibleAt', at, 'run_at: never earlier, ' || n) FROM (VALUES ('u', '2100-01-01T00:00:00.000Z'), ('v', '2100-01-01T00:00:00.001Z')) AS v (n, at);
SELECT tq.enqueue('test/q-c', task_id => pg_temp.id('w'), run_at => now(), policy => '{"delay": 60}');
SELECT is(pg_temp.wait('w'), '0'::interval, 'run_at wins over the delays of the policy and of the queue');
SELECT pg_temp.pass('8 days 1 second');
SELECT is(pg_temp.take('r'), 0, 'run_at: it can be claimed after that time');
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/q-r', task_id => pg_temp.id('r'), run_at => at, deadline => '1 day')) FROM run$$, 'r', 'run_at: a repeat after that time');
SET tq.clock_offset = '0';

-- run_at and dependencies: whichever is later
SELECT tq.enqueue('test/q-s', task_id => pg_temp.id('s')), tq.enqueue('test/q-t', task_id => pg_temp.id('t'));
SELECT tq.enqueue('test/q-x', task_id => pg_temp.id('x'), dependencies => pg_temp.ids('s'), run_at => pg_temp.base() + interval '1 hour'),
	tq.enqueue('test/q-y', task_id => pg_temp.id('y'), dependencies => pg_temp.ids('t'), run_at => pg_temp.base() + interval '1 hour');
SET tq.clock_offset = '20 minutes';
SELECT pg_temp.work('s', 'completed');
SELECT ok(pg_temp.wait('x') BETWEEN '39 minutes' AND '40 minutes', 'run_at after the dependencies are met');
SET tq.clock_offset = '2 hours';
SELECT pg_temp.work('t', 'completed');
SELECT is(pg_temp.wait('y'), '0'::interval, 'run_at before they are');
SELECT is(pg_temp.take('y'), 0, 'it can be claimed at once');
SET tq.clock_offset = '0';

-- A retry and a redrive do not wait again
SELECT tq.enqueue('test/q-z', task_id => pg_temp.id('z'), run_at => pg_temp.base() + interval '6 days', deadline => '2 hours', policy => '{"deadLetter": true}'),
	tq.enqueue('test/q-m', task_id => pg_temp.id('m'), delay => '6 days', deadline => '2 hours', policy => '{"deadLetter": true}');
SELECT pg_temp.pass('7 days');
SELECT is(tq.status(pg_temp.id(n)) ->> 'state', 'exception', 'the deadline is over: ' || n) FROM unnest('{z,m}'::text[]) AS n;
CREATE TEMP TABLE new AS SELECT n, tq.redrive(pg_temp.id(n)) AS status FROM unnest('{z,m}'::text[]) AS n;
SELECT is((status ->> 'runDetails'), NULL, 'a redrive of a run_at is not delayed') FROM new WHERE n = 'z';
SELECT is((status ->> 'deadline')::timestamptz - (tq.task((status ->> 'taskId')::tq.slugid) ->> 'created')::timestamptz, '2 hours'::interval, 'its deadline counts from now') FROM new WHERE n = 'z';
SELECT is((status ->> 'deadline')::timestamptz - (tq.task((status ->> 'taskId')::tq.slugid) ->> 'created')::timestamptz, '6 days 2 hours'::interval, 'a redrive of a delay has the times of the dead task') FROM new WHERE n = 'm';
SET tq.clock_offset = '0';

-- uniqueKey that replaces
SELECT tq.enqueue('test/q-k', task_id => pg_temp.id('k'), delay => '1 hour', policy => '{"uniqueKey": "k", "onConflict": "replace"}');
SELECT tq.enqueue('test/q-k', run_at => pg_temp.base() + interval '2 hours', policy => '{"uniqueKey": "k", "onConflict": "replace"}');
SELECT is((pg_temp.run('k') ->> 'visibleAt')::timestamptz, pg_temp.base() + interval '2 hours', 'replaced by a run_at');
SELECT tq.enqueue('test/q-k', run_at => now() - interval '1 hour', policy => '{"uniqueKey": "k", "onConflict": "replace"}');
SELECT is(pg_temp.take('k'), 0, 'replaced by one of the past');

-- The beginning of time is in the past, and now
SELECT tq.enqueue('test/q-first', task_id => pg_temp.id('first'), run_at => '-infinity');
SELECT ok(NOT pg_temp.run('first') ? 'visibleAt', '-infinity is now');
SELECT is(tq.enqueue('test/q-first', task_id => pg_temp.id('first'), run_at => '-infinity'), pg_temp.id('first'), 'and can be repeated');
SELECT is(pg_temp.take('first'), 0, 'and claimed at once');

-- What is refused
SELECT pg_temp.throws(call, 'TQ400', call) FROM (VALUES
	($$SELECT tq.enqueue('test/q', delay => '1 second', run_at => now())$$), ($$SELECT tq.enqueue_tasks('test/q', '{"{}"}', delay => '1 second', run_at => now())$$),
	($$SELECT tq.enqueue('test/q', run_at => 'infinity')$$), ($$SELECT tq.enqueue('test/q', run_at => '10000-01-01')$$),
	($$SELECT tq.enqueue('test/q', run_at => '294276-12-31')$$), ($$SELECT tq.enqueue('test/q', delay => '10000 years')$$), ($$SELECT tq.enqueue('test/q', delay => '178000000 years')$$),
	($$SELECT tq.enqueue('test/q', delay => '10 days', deadline => '8000 years')$$), ($$SELECT tq.enqueue('test/q', delay => '1 hour', deadline => '-1 minute')$$),
	($$SELECT tq.enqueue('test/q', run_at => '9999-12-30', deadline => '5 days')$$)) AS v (call);
SELECT pg_temp.throws($$SELECT pg_temp.create('o', '{"delay": "2 hours"}')$$, 'TQ400', 'a definition keeps its rule: no delay past the deadline');

SELECT * FROM finish();
ROLLBACK;
