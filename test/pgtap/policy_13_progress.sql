-- doc/spec/policy.md 13: report_progress.  Other sessions:
-- test/isolation/specs/progress-vs-others.spec.
BEGIN;
\ir policy.psql

-- The progress of a run in the status: 'done/total message'; '-' for none.
CREATE FUNCTION pg_temp.progress(status jsonb, n int DEFAULT -1) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(nullif(concat_ws(' ', (p ->> 'done') || coalesce('/' || (p ->> 'total'), ''), p ->> 'message'), ''), '-')
	FROM (SELECT pg_temp.runs(status) -> n -> 'progress' AS p) AS v
$$;
CREATE FUNCTION pg_temp.stored(name text) RETURNS text
LANGUAGE sql AS $$ SELECT pg_temp.progress(tq.status(pg_temp.id(name))) $$;

-- ---------------------------------------------------------------------------
-- 1, 2: who may report, and what
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.create('a') \g /dev/null
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('a'), 0, 1, 2)$$, 'TQ409', '13.1 a pending run');
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('a'), 1, 1, 2)$$, 'TQ404', '13.1 no such run');
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('none'), 0, 1, 2)$$, 'TQ404', '13.1 no such task');
SELECT pg_temp.take('a') \g /dev/null
SELECT is(pg_temp.stored('a'), '-', '13.3 before a report');
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 3, 10, 'reading')), '3/10 reading', '13.3 a report shows itself');
SELECT ok(pg_temp.near(pg_temp.run('a') #>> '{progress,reported}', pg_temp.clock()), '13.3 when it was reported');
SELECT is((SELECT string_agg(key, ' ' ORDER BY key) FROM jsonb_object_keys(pg_temp.run('a') -> 'progress') AS key), 'done message reported total', '13.3 its keys');
SELECT is(pg_temp.refusal(call, '; '), expected, '13.2 ' || call) FROM (VALUES
	($$SELECT tq.report_progress(pg_temp.id('a'), 0, -1, 2)$$, 'done is out of range; It is -1, and may be 0 or more.'),
	($$SELECT tq.report_progress(pg_temp.id('a'), 0, 3, 2)$$, 'total is out of range; It is 2, and done is 3.'),
	($$SELECT tq.report_progress(pg_temp.id('a'), 0, 0, -1)$$, 'total is out of range; It is -1, and done is 0.'),
	($$SELECT tq.report_progress(pg_temp.id('a'), 0, NULL, 2)$$, 'done must not be NULL; The argument done is NULL.')) AS v (call, expected);
SET tq.clock_offset = '1 minute';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 0, 0, repeat('é', 500))), '0/0 ' || repeat('é', 500), '13.2 the longest message; nothing to do');
SET tq.clock_offset = '80 s';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 0, 0, repeat('é', 501))), '0/0 ' || repeat('é', 495) || '... [cut]', '13.2 a longer one is cut');
SET tq.clock_offset = '90 s';
SELECT is(tq.report_progress(pg_temp.id('a'), 0, 1, 1, E'\x01\x1b[2J\u202e\r\n') #>> '{runDetails,0,progress,message}', E'\x01\x1b[2J\u202e\r\n', '13.2 a message of control characters, as it is');
SET tq.clock_offset = '2 minutes';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 7, NULL)), '7', '13.2 neither a total nor a message');
SET tq.clock_offset = '3 minutes';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 9223372036854775807, 9223372036854775807)), '9223372036854775807/9223372036854775807', '13.2 the greatest numbers');
SET tq.clock_offset = '4 minutes';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 2, 10)), '2/10', '13.2 less than before');
SELECT is((SELECT taken_until FROM tq.run_overview WHERE task_id = pg_temp.id('a')), (SELECT taken_until FROM tq.task_details WHERE task_id = pg_temp.id('a')), '13.1 the claim');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('a'), 0, 5, 10)$$, 'TQ409', '13.1 past the deadline');
ROLLBACK TO s;

-- The claim is not prolonged.
SELECT pg_temp.create('a') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT pg_temp.run('a') ->> 'takenUntil' AS before \gset
SET tq.clock_offset = '5 minutes';
SELECT is(tq.report_progress(pg_temp.id('a'), 0, 1, 10) #>> '{runs,0,takenUntil}', :'before', '13.1 the claim is as long as before');
SET tq.clock_offset = '21 minutes';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 2, 10)), '2/10', '13.1 a claim that has expired, before maintenance');
SELECT is(pg_temp.pass(), 'claim-expired 1', '13.1 maintenance');
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('a'), 0, 3, 10)$$, 'TQ409', '13.1 a run that was lost');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 4: at most one a second
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SET tq.clock_offset = '1 hour';
SET tq.clock_offset = '10 minutes';
SELECT tq.report_progress(pg_temp.id('a'), 0, 1, 10) \g /dev/null
SELECT md5(string_agg(d::text, '')) || string_agg(d.ctid::text, ' ') AS rows FROM tq_internal.run_detail d \gset
SET tq.clock_offset = '599.5 seconds';	-- the clock was set back
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 2, 10)), '2/10', '13.4 a clock that was set back');
SET tq.clock_offset = '10 minutes';
SELECT tq.report_progress(pg_temp.id('a'), 0, 3, 10) \g /dev/null
SELECT is(pg_temp.stored('a'), '2/10', '13.4 within a second: dropped');
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 10, 10, 'ready')), '10/10 ready', '13.4 but not if all is done');
SELECT ctid AS place FROM tq_internal.run_detail \gset
SELECT tq.report_progress(pg_temp.id('a'), 0, 10, 10, 'ready') \g /dev/null
SELECT is((SELECT ctid FROM tq_internal.run_detail), :'place'::tid, '13.4 a repeat of that is dropped');
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 10, 10, 'really')), '10/10 really', '13.4 unless its message is another');
SET tq.clock_offset = '601.2 seconds';
SELECT is(pg_temp.progress(tq.report_progress(pg_temp.id('a'), 0, 4, 10)), '4/10', '13.4 a second later');
-- the row of the run was written once, for the first report
SELECT ctid AS place FROM tq_internal.run \gset
SET tq.clock_offset = '11 minutes';
SELECT tq.report_progress(pg_temp.id('a'), 0, 5, 10) \g /dev/null
SELECT is((SELECT ctid FROM tq_internal.run), :'place'::tid, '13.4 a report writes no row of a run that has a detail');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 3, 5: where it is shown, and until when
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a', '{"policy": {"retries": 2, "retryOn": ["failed"]}, "$deadline": "1 day"}') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT tq.report_progress(pg_temp.id('a'), 0, 1, 4, 'one') \g /dev/null
SELECT is((SELECT concat_ws(' ', done, total, message, reported IS NOT NULL) FROM tq.run_overview WHERE task_id = pg_temp.id('a')), '1 4 one t', '13.3 run_overview');
SELECT is((SELECT done FROM tq.task_overview WHERE task_id = pg_temp.id('a')), 0.25::float8, '13.3 task_overview');
SELECT is((SELECT pg_temp.progress(status) FROM tq.statuses(pg_temp.ids('a'))), '1/4 one', '13.3 statuses');
SELECT is((SELECT pg_temp.progress(status) FROM tq.list_task_group(pg_temp.id('a'))), '1/4 one', '13.3 list_task_group');
SELECT is((tq.status(pg_temp.id('a')) #>> '{runDetails,0,attempt}'), NULL, '13.5 the attempt of the run');
SELECT is(pg_temp.progress(tq.report_failed(pg_temp.id('a'), 0, error => '{"message": "no"}'), 0), '1/4 one', '13.5 a run that is resolved keeps its last report');
SELECT is(pg_temp.progress(tq.status(pg_temp.id('a')), 1), '-', '13.5 a retry begins without one');
SELECT is(pg_temp.attempts('a'), '0 1', '13.5 attempts are counted as before');
SELECT is(tq.status(pg_temp.id('a')) #>> '{runDetails,0,error,message}', 'no', '13.5 beside its error');
SELECT pg_temp.throws($$SELECT tq.report_progress(pg_temp.id('a'), 0, 2, 4)$$, 'TQ409', '13.1 a run that is resolved');
SELECT is((SELECT done FROM tq.task_overview WHERE task_id = pg_temp.id('a')), NULL::float8, '13.3 task_overview: not running');
SELECT pg_temp.take('a') \g /dev/null
SELECT is((SELECT done FROM tq.task_overview WHERE task_id = pg_temp.id('a')), NULL::float8, '13.3 task_overview: nothing reported');
SELECT tq.report_progress(pg_temp.id('a'), 1, 5, NULL) \g /dev/null
SELECT is((SELECT done FROM tq.task_overview WHERE task_id = pg_temp.id('a')), NULL::float8, '13.3 task_overview: no total');
SELECT is(pg_temp.progress(tq.defer_task(pg_temp.id('a'), 1, '0')), '5', '13.5 a run that is deferred keeps it');
SELECT pg_temp.take('a') \g /dev/null
SELECT is(pg_temp.stored('a'), '5', '13.5 and has it when it is claimed again');
SELECT is(tq.report_completed(pg_temp.id('a'), 1, result => '{"r": 1}') ->> 'state', 'completed', '13.5 resolved');
SELECT is(tq.result(pg_temp.id('a')), '{"r": 1}', '13.5 with its result');
SELECT tq.delete_task(pg_temp.id('a')) \g /dev/null
SELECT is((SELECT count(*) FROM tq_internal.run_detail), 0::bigint, '13.5 deleted with its task');
ROLLBACK TO s;
-- without a policy: budgets and attempts are what they were
SELECT pg_temp.create('a', '{"retries": 2}') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT tq.report_exception(pg_temp.id('a'), 0, 'worker-shutdown') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT is((SELECT attempt FROM tq.task_overview WHERE task_id = pg_temp.id('a')), 1, '13.5 without a policy: the attempt before');
SELECT tq.report_progress(pg_temp.id('a'), 1, 1, 4) \g /dev/null
SELECT is((SELECT attempt FROM tq.task_overview WHERE task_id = pg_temp.id('a')), 1, '13.5 the attempt that task_overview shows');
SELECT tq.report_exception(pg_temp.id('a'), 1, 'worker-shutdown') \g /dev/null
SELECT is((SELECT attempt FROM tq.task_overview WHERE task_id = pg_temp.id('a')), 2, '13.5 and that of the next run');
SELECT is(pg_temp.look('a'), 'pending 0: scheduled>exception/worker-shutdown retry>exception/worker-shutdown retry>pending', '13.5 the runs');
ROLLBACK TO s;

-- groups
SELECT pg_temp.create(n, '{"$group": "g"}') FROM unnest('{a,b,c,d}'::text[]) AS n \g /dev/null
SELECT is((tq.group_progress(pg_temp.id('g'))).done, 0::float8, '13.3 group_progress: nothing is done');
SELECT pg_temp.take(n) FROM unnest('{a,b,c}'::text[]) AS n \g /dev/null
SELECT tq.report_progress(pg_temp.id('a'), 0, 1, 2), tq.report_progress(pg_temp.id('b'), 0, 7, NULL), tq.report_progress(pg_temp.id('c'), 0, 0, 0) \g /dev/null
SELECT is((tq.group_progress(pg_temp.id('g'))).done, 0.125::float8, '13.3 group_progress: half of one of four');
SELECT tq.report_completed(pg_temp.id('b'), 0), tq.report_failed(pg_temp.id('c'), 0) \g /dev/null
SELECT is((tq.group_progress(pg_temp.id('g'))).done, 0.625::float8, '13.3 group_progress: and two that are resolved');
SELECT is((tq_internal.group_progress(pg_temp.id('g'))).done, NULL::float8, '13.3 not in a view');
SELECT tq.report_completed(pg_temp.id('a'), 0), tq.cancel_task(pg_temp.id('d')) \g /dev/null
SELECT is((tq.group_progress(pg_temp.id('g'))).done, 1::float8, '13.3 group_progress: all');
-- a group of one task, which has no row
SELECT pg_temp.create('o') \g /dev/null
SELECT pg_temp.take('o') \g /dev/null
SELECT tq.report_progress(pg_temp.id('o'), 0, 3, 4) \g /dev/null
SELECT is((tq.group_progress(pg_temp.id('o'))).done, 0.75::float8, '13.3 group_progress: a group of one task');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- 6: the exchange, which has no default channel
-- ---------------------------------------------------------------------------

SELECT is((SELECT count(*) FROM tq.binding_overview WHERE exchange = 'task-progress'), 0::bigint, '13.6 no default channel');
SELECT pg_temp.create('a') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT count(*) AS before FROM tq_internal.message \gset
SELECT tq.report_progress(pg_temp.id('a'), 0, 1, 4) \g /dev/null
SELECT is((SELECT count(*) FROM tq_internal.message), :before::bigint, '13.6 no message where nothing wants it');
SELECT tq.bind('tq_task_progress', 'task-progress') \g /dev/null
SELECT is((SELECT string_agg(channel || ' ' || pattern, ',') FROM tq.binding_overview WHERE exchange = 'task-progress'), 'tq_task_progress #', '13.6 a channel of that name');
SELECT tq.report_progress(pg_temp.id('a'), 0, 2, 4) \g /dev/null
SELECT is((SELECT count(*) FROM tq_internal.message), :before::bigint, '13.6 no message of what is dropped');
SELECT tq.report_progress(pg_temp.id('a'), 0, 4, 4) \g /dev/null
SELECT is((SELECT count(*) FROM tq_internal.message), :before::bigint + 1, '13.6 a message where a binding wants it');
SELECT tq.unbind('tq_task_progress', 'taskProgress') \g /dev/null
SELECT is((SELECT count(*) FROM tq.binding_overview WHERE exchange = 'task-progress'), 0::bigint, '13.6 unbound again');
ROLLBACK TO s;
SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
