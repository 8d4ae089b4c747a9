-- doc/spec/taskcluster.md 1.2.2: tasks of enqueue(), enqueue_tasks(), schedule_cron() and
-- on_group_resolved() have no deadline unless one is given, and live through an outage.
BEGIN;
\ir policy.psql

-- Timers of a kind that name one of these tasks.
CREATE FUNCTION pg_temp.timers(VARIADIC names text[]) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM tq_internal.timer r WHERE EXISTS (SELECT FROM tq_internal.task t WHERE t.id = ANY (r.tasks) AND t.task_id = ANY (pg_temp.ids(VARIADIC names)))
$$;
CREATE FUNCTION pg_temp.times(j jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(j) AS k WHERE k IN ('deadline', 'expires')
$$;
CREATE FUNCTION pg_temp.deadline(name text) RETURNS interval LANGUAGE sql AS $$
	SELECT (t ->> 'deadline')::timestamptz - (t ->> 'created')::timestamptz FROM tq.task(pg_temp.id(name)) AS t
$$;

-- ---------------------------------------------------------------------------
-- None by default, and by NULL
-- ---------------------------------------------------------------------------

SELECT is(current_setting('tq.default_deadline'), '', 'no default deadline');
SELECT tq.enqueue('test/q-a', task_id => pg_temp.id('a')), tq.enqueue('test/q-b', task_id => pg_temp.id('b'), deadline => NULL, retry => 5);
SELECT tq.enqueue_tasks('test/q-m', '{"{}","{}"}', task_ids => pg_temp.ids('m1', 'm2'));
SELECT tq.enqueue('test/q-w', task_id => pg_temp.id('w'), dependencies => pg_temp.ids('a'));
SELECT tq.enqueue('test/q-l', task_id => pg_temp.id('l'), delay => '40 days');
SELECT is(pg_temp.times(tq.task(pg_temp.id(n))), NULL, 'no key in the definition: ' || n) FROM unnest('{a,b,m1,m2,w,l}'::text[]) AS n;
SELECT is(pg_temp.times(tq.status(pg_temp.id(n))), NULL, 'nor in the status: ' || n) FROM unnest('{a,b,m1,m2,w,l}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq.task_details WHERE deadline IS NULL AND expires IS NULL), 6::bigint, 'NULL in views');
SELECT is((SELECT count(*) FROM tq_internal.task WHERE deadline = 'infinity' AND expires = 'infinity' AND effective_deadline IS NULL), 6::bigint, 'infinity in the table');
SELECT step FROM tq.upkeep() WHERE tasks > 0 \g /dev/null
SELECT is(pg_temp.timers('a', 'b', 'm1', 'm2', 'w', 'l'), 0::bigint, 'no timer');
SELECT is((SELECT count(*) FROM tq_internal.message WHERE due IS NOT NULL), 0::bigint, 'nor one that is left to the publisher');
SELECT ok((tq.get_task_group(pg_temp.id('a')) ->> 'expires')::timestamptz > pg_temp.clock() + interval '30 days', 'a group expires when retention can be over');
SELECT pg_temp.keeps($$SELECT tq.status(tq.enqueue('test/q-a', task_id => pg_temp.id('a')))$$, 'a', 'a repeat');
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('a'), tq.task(pg_temp.id('a')))$$, 'TQ400', 'a definition needs a deadline');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('x'), pg_temp.def('x') - 'deadline')$$, 'TQ400', 'that of define_task, too');
SELECT is((SELECT bool_or(w::text ~ 'deadline') FROM tq.why(pg_temp.id('a')) AS w), false, 'why names none');

-- Years later: all of it can be claimed, and nothing was resolved.
SELECT is(pg_temp.pass('3000 days'), 'delayed 1', 'nothing is due but the delay');
SELECT is(pg_temp.take(n), 0, 'it can be claimed: ' || n) FROM unnest('{a,b,l}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq.claim_work('test/q-m', 'g', 'w', 5)), 2::bigint, 'those of one call, too');
SELECT is((SELECT wait FROM tq.reclaim_task(pg_temp.id('a'), 0) AS r, LATERAL (SELECT r.taken_until > pg_temp.clock() AS wait) AS x), true, 'a claim is prolonged');
SELECT is(tq.report_completed(pg_temp.id('a'), 0) ->> 'state', 'completed', 'reported');
SELECT is(tq.report_failed(pg_temp.id('b'), 0) ->> 'state', 'pending', 'retried');
SELECT is(pg_temp.take('w'), 0, 'its dependent runs');
SELECT is(tq.cancel_task(pg_temp.id('l')) ->> 'state', 'exception', 'canceled');
SELECT is(tq.rerun_task(pg_temp.id('l')) ->> 'state', 'pending', 'and rerun, without a deadline');
SELECT is(tq.reschedule_task(pg_temp.id('l'), pg_temp.clock() + interval '1000 days') ->> 'state', 'pending', 'to any time');
SELECT is(tq.status(pg_temp.id('l')) #>> '{runDetails,0,visibleAt}' IS NOT NULL, true, 'which it waits for');
SELECT is(pg_temp.timers('l'), 0::bigint, 'with no timer of a deadline');
SET tq.clock_offset = '0';

-- ---------------------------------------------------------------------------
-- Any interval; the setting
-- ---------------------------------------------------------------------------

SELECT tq.enqueue('test/q', task_id => pg_temp.id('d30'), deadline => '30 days'), tq.enqueue('test/q', task_id => pg_temp.id('d7000'), deadline => '7000 years');
SELECT is(pg_temp.deadline('d30'), interval '30 days', 'beyond tq.max_deadline');
SELECT is(pg_temp.timers('d30', 'd7000') > 0 OR EXISTS (SELECT FROM tq_internal.message WHERE due IS NOT NULL), true, 'with a timer');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', deadline => '9000 years')$$, 'TQ400', 'up to the year 9999');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', deadline => '170000000 years')$$, 'TQ400', 'up to the year 9999, far');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', deadline => '-170000000 years')$$, 'TQ400', 'not in the past, far');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', deadline => '-1 second')$$, 'TQ400', 'not in the past');
SELECT is(pg_temp.error($$SELECT tq.enqueue('test/q', deadline => '-170000000 years', delay => '1 hour')$$) ->> 'detail' ~ 'it is -infinity', true, 'nor after a delay');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', expires => '1 day')$$, 'TQ400', 'expires counts from the deadline');
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x', '{"$deadline": "30 days"}'))$$, 'TQ400', 'a definition keeps tq.max_deadline');

SET tq.default_deadline = '2 days';
SELECT tq.enqueue('test/q', task_id => pg_temp.id('s')), tq.enqueue('test/q', task_id => pg_temp.id('s0'), deadline => NULL), tq.enqueue('test/q', task_id => pg_temp.id('s1'), deadline => '1 hour');
SELECT tq.enqueue_tasks('test/q', '{"{}"}', task_ids => pg_temp.ids('sm'));
SELECT is(pg_temp.deadline(n), v, 'tq.default_deadline: ' || n) FROM (VALUES ('s', interval '2 days'), ('s0', NULL), ('s1', '1 hour'), ('sm', '2 days')) AS x (n, v);
SET tq.default_deadline = 'none';
SELECT is(current_setting('tq.default_deadline'), '', 'none');
SET tq.default_deadline = 'infinity';
SELECT is(current_setting('tq.default_deadline'), '', 'infinity is none');
SELECT pg_temp.throws(format('SET tq.default_deadline = %L', v), '22023', 'refused: ' || v) FROM unnest('{0,-1 day,soon}'::text[]) AS v;
RESET tq.default_deadline;

-- ---------------------------------------------------------------------------
-- Dependencies, groups, callbacks
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('r', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT tq.enqueue('test/q-n', task_id => pg_temp.id('n'), dependencies => pg_temp.ids('r'), requires => 'all-resolved');
SELECT is(pg_temp.state('n'), 'unscheduled', 'it may depend on a task that expires');
SELECT pg_temp.create('t', '{"$deps": ["n"], "$deadline": "2 days"}');
SELECT is(pg_temp.state('t'), 'unscheduled', 'and one with a deadline on it');
SELECT tq.enqueue('test/q-n2', task_id => pg_temp.id('n2'), task_group_id => pg_temp.id('g'));
SELECT pg_temp.create('g2', '{"$group": "g", "$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT tq.on_group_resolved(pg_temp.id('g'), 'test/q-cb', task_id => pg_temp.id('cb'));
SELECT is(pg_temp.pass('50 days'), 'deadline 7 expired 5', 'what has a deadline is resolved, and deleted');
SELECT is(pg_temp.state('n'), 'pending', 'its dependent goes on');
SELECT is(tq.get_task_group(pg_temp.id('g')) ->> 'taskGroupId', pg_temp.id('g')::text, 'the group is there, though past its expires');
SELECT is((SELECT state FROM tq.dependency_results(pg_temp.id('n'))), 'missing', 'the required task is missing');
SELECT pg_temp.work('n2', 'completed');
SELECT pg_temp.pass('51 days') \g /dev/null
SELECT is(pg_temp.times(tq.task(pg_temp.id('cb'))), NULL, 'a callback has no deadline, either');
SELECT is(pg_temp.take('cb'), 0, 'and is claimed');
SET tq.clock_offset = '0';

-- ---------------------------------------------------------------------------
-- Timeouts of a policy, repairs, dead letters
-- ---------------------------------------------------------------------------

SELECT tq.enqueue('test/q-tt', task_id => pg_temp.id('tt'), policy => '{"totalTimeout": 60}', deadline => NULL);
SELECT is(tq.status(pg_temp.id('tt')) ? 'deadline', true, 'a total timeout is an effective deadline');
SELECT tq.enqueue('test/q-tw', task_id => pg_temp.id('tw'), policy => '{"totalTimeout": 60}', dependencies => pg_temp.ids('tt'));
SELECT is(pg_temp.times(tq.status(pg_temp.id('tw'))), NULL, 'not before the first run is pending');
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', 'which ends the task');
SELECT is(pg_temp.timers('tt', 'tw'), 0::bigint, 'and no timer for its expiry is left');
SELECT is(tq.rerun_task(pg_temp.id('tt'), deadline => '1 day') ->> 'state', 'pending', 'a repair with a deadline');
SELECT is(pg_temp.times(tq.status(pg_temp.id('tt'))), 'deadline', 'which is effective; it never expires');
SELECT pg_temp.pass('2 days') \g /dev/null
SELECT is(pg_temp.look('tt') ~ 'deadline-exceeded$', true, 'and passes');
SET tq.clock_offset = '0';

SELECT tq.enqueue('test/q-rt', task_id => pg_temp.id('rt'), policy => '{"runTimeout": 60, "pendingTimeout": 600}');
SELECT is(pg_temp.take('rt'), 0, 'a run timeout without a deadline');
SELECT is(pg_temp.pass('61 seconds'), 'run-timeout 1', 'ends the run');
SELECT is(pg_temp.state('rt'), 'exception', 'of the task');
SET tq.clock_offset = '0';

SELECT tq.enqueue('test/q-dl', task_id => pg_temp.id('dl'), retries => 0, policy => '{"deadLetter": true}'), tq.enqueue('test/q-d9', task_id => pg_temp.id('d9'), deadline => '30 days', policy => '{"deadLetter": true}');
SELECT pg_temp.take(n), tq.report_failed(pg_temp.id(n), 0) FROM unnest('{dl,d9}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-dl') WHERE task ? 'deadline'), 0::bigint, 'a dead letter has none');
SET tq.clock_offset = '40 days';
SELECT is(tq.redrive(pg_temp.id('dl')) ->> 'taskId', pg_temp.id('dl')::text, 'a redrive reruns it at any time');
SELECT isnt(tq.redrive(pg_temp.id('d9')) ->> 'taskId', pg_temp.id('d9')::text, 'one past its deadline is a new task');
SELECT is((SELECT deadline - created FROM tq.task_details WHERE task_queue_id = 'test/q-d9' AND state = 'pending'), '30 days', 'with as long a deadline');
SELECT pg_temp.take('dl'), tq.report_failed(pg_temp.id('dl'), 1);
DELETE FROM tq_internal.task WHERE task_id = pg_temp.id('dl');
SELECT tq.redrive(pg_temp.id('dl')) ->> 'taskId' AS again \gset
SELECT is(pg_temp.times(tq.task(:'again')), NULL, 'a new task of it has no deadline, either');
SELECT is((SELECT expires_given FROM tq_internal.task WHERE task_id = :'again'), NULL, 'and is deleted by retention');
SET tq.clock_offset = '0';

-- ---------------------------------------------------------------------------
-- Unique keys, limits of groups, retention
-- ---------------------------------------------------------------------------

SELECT tq.enqueue('test/q-u', '{"v": 1}', pg_temp.id('u'), policy => '{"uniqueKey": "k", "onConflict": "replace"}');
SET tq.clock_offset = '100 days';
SELECT is(tq.enqueue('test/q-u', '{"v": 2}', policy => '{"uniqueKey": "k", "onConflict": "replace"}', delay => '1 hour')::text, pg_temp.id('u')::text, 'a unique key is held at any time');
SELECT is(tq.task(pg_temp.id('u')) -> 'payload', '{"v": 2}', 'and its task replaced');
SET tq.clock_offset = '0';

SELECT tq.enqueue('test/q-e', task_id => pg_temp.id('e1')), tq.enqueue('test/q-e', task_id => pg_temp.id('e2'), task_group_id => pg_temp.id('eg'));
SELECT r.outcome FROM tq.claim_work('test/q-e', 'g', 'w', 2) c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id]) r \g /dev/null
SELECT is((SELECT count(*) FROM tq.task_details WHERE task_queue_id = 'test/q-e' AND state = 'completed'), 2::bigint, 'two are completed');
SELECT is(pg_temp.pass('6 days'), '', 'they stay for their retention');
SELECT is(pg_temp.pass('8 days'), 'sweep 2', 'then they are deleted');
SELECT is((SELECT count(*) FROM tq_internal.task_group WHERE task_group_id = pg_temp.id('eg')), 1::bigint, 'their group stays until it expires');

SELECT * FROM finish();
ROLLBACK;
