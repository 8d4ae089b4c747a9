-- Taskbroker's life-cycle on tq (doc/spec/taskbroker.md, doc/spec/policy.md 7 to
-- 10): every arrow of its diagram, its upkeep, and its cases BC-001 to BC-020. A
-- task gets its policy by taskbroker_policy(), and taskbroker_status() gives its status
-- in Taskbroker's terms.
--
-- Where tq differs on purpose:
--
--	retry		is not a state: the next run is created with the report (C5)
--	failure		is final at once, and its dead letter is written with it
--	expired		is a failure, not a deleted row (C8)
--	late and double reports are refused: a run has one worker (C4)
--	attempts	are counted by tq, not by the worker (C12)
BEGIN;
\ir policy.psql

-- An activation as a producer writes it; processing deadline 600 s by default.
CREATE FUNCTION pg_temp.activation(name text, fields jsonb, retry_state jsonb) RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('id', pg_temp.id(name)::uuid, 'application', 'app', 'namespace', 'ns', 'taskname', name,
		'parameters_bytes', 'gaRhcmdzkKZrd2FyZ3OA', 'headers', '{}'::jsonb, 'received_at', pg_temp.iso(pg_temp.base()),
		'processing_deadline_duration', 600,
		'retry_state', '{"attempts": 0, "max_attempts": 1, "on_attempts_exceeded": 1, "at_most_once": false}'::jsonb || retry_state) || fields
$$;

-- The task of an activation.  Its deadline is a day away, and it has its own queue
-- unless overridden.
CREATE FUNCTION pg_temp.send(name text, fields jsonb DEFAULT '{}', retry_state jsonb DEFAULT '{}', overrides jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('$deadline', '1 day',
		'policy', tq.taskbroker_policy(pg_temp.activation(name, fields, retry_state))) || overrides)
$$;

-- Its Taskbroker status; in PL/pgSQL, so that it sees earlier changes of the same statement.
CREATE FUNCTION pg_temp.word(name text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	RETURN tq.taskbroker_status(pg_temp.id(name));
END
$$;

-- Of several tasks.
CREATE FUNCTION pg_temp.words(VARIADIC names text[]) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(name || ' ' || coalesce(tq.taskbroker_status(pg_temp.id(name)), 'NULL'), ', ' ORDER BY n)
	FROM unnest(names) WITH ORDINALITY AS u (name, n)
$$;

-- ---------------------------------------------------------------------------
-- The arrows of the diagram
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT is(pg_temp.send('a'), 'pending 0: scheduled>pending', 'start -- add task --> pending');
SELECT is(pg_temp.word('a'), 'pending', 'start -- add task --> pending: its status');
SELECT is(pg_temp.send('d', '{"delay": 100}'), 'pending 0: scheduled>pending', 'start -- add task --> delay: a delayed run');
SELECT is(pg_temp.word('d'), 'delay', 'start -- add task --> delay: its status');
SELECT is(pg_temp.pass('100 seconds'), 'delayed 1', 'delay -- delay elapses --> pending: upkeep');
SELECT is(pg_temp.word('d'), 'pending', 'delay -- delay elapses --> pending: its status');
SELECT is(pg_temp.take('d'), 0, 'delay -- delay elapses --> pending: it can be claimed');
SELECT is(pg_temp.take('a'), 0, 'pending -- worker is given task --> processing: claimed');
SELECT is(pg_temp.words('a', 'd'), 'a processing, d processing', 'pending -- worker is given task --> processing: its status');
SELECT is(pg_temp.report('a', 'completed'), 'completed 0: scheduled>completed/completed', 'processing -- worker completes task --> complete');
SELECT is(pg_temp.word('a'), 'complete', 'processing -- worker completes task --> complete: its status');
SELECT is(pg_temp.resolve('failed-terminal', 'd'), 'resolved', 'processing -- worker fails task --> failure');
SELECT is(pg_temp.look('d'), 'failed 0: scheduled>failed/failed-terminal', 'processing -- worker fails task --> failure: it is final');
SELECT is(pg_temp.word('d'), 'failure', 'processing -- worker fails task --> failure: its status');
SELECT is(pg_temp.letters('test/q-d'), '', 'failure -- discard --> complete: a further pass finds nothing');
ROLLBACK TO s;

SELECT pg_temp.send('f', '{}', '{"on_attempts_exceeded": 2, "max_attempts": 3}');
SELECT pg_temp.take('f');
SELECT is(pg_temp.resolve('failed-terminal', 'f'), 'resolved', 'failure -- DLQ --> complete: a failure is not retried, though attempts are left');
SELECT is(pg_temp.look('f'), 'failed 2: scheduled>failed/failed-terminal', 'failure -- DLQ --> complete: nor are they spent');
SELECT is(pg_temp.letters('test/q-f'), 'f failed-terminal', 'failure -- DLQ --> complete: its dead letter exists');
SELECT is(pg_temp.word('f'), 'failure', 'failure -- DLQ --> complete: it stays visible until it expires');
SELECT lives_ok($$SELECT tq.discard_dead_letter(pg_temp.id('f'))$$, 'failure -- DLQ --> complete: a dead letter is discarded');
SELECT is(pg_temp.letters('test/q-f'), '', 'failure -- DLQ --> complete: and deleted');
SELECT is(pg_temp.word('f'), 'failure', 'failure -- DLQ --> complete: the task has not changed');
ROLLBACK TO s;

SELECT pg_temp.send('r', '{}', '{"max_attempts": 2}');
SELECT is(pg_temp.work('r', 'intermittent-task'), 'pending 0: scheduled>exception/intermittent-task task-retry>pending', 'processing -- worker requests retry --> retry');
SELECT is(pg_temp.word('r'), 'pending', 'retry -- new task append --> complete: the next run is created at once');
SELECT is(pg_temp.pass(), '', 'retry -- new task append --> complete: a further pass finds nothing');
SELECT is(pg_temp.take('r'), 1, 'retry -- new task append --> complete: it can be claimed');
ROLLBACK TO s;

SELECT pg_temp.send('t', '{}', '{"max_attempts": 2}');
SELECT pg_temp.take('t');
SET tq.clock_offset = '603 seconds';
SELECT is(pg_temp.word('t'), 'processing', 'processing -- processing_timeout expires --> pending: not by itself');
SELECT is(pg_temp.pass(), 'claim-expired 1', 'processing -- processing_timeout expires --> pending: upkeep');
SELECT is(pg_temp.look('t'), 'pending 1: scheduled>exception/claim-expired retry>pending', 'processing -- processing_timeout expires --> pending: no attempt is spent');
SELECT is(pg_temp.word('t'), 'pending', 'processing -- processing_timeout expires --> pending: its status');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- BC-001 to BC-004: tasks are created and handed out
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.send('a'), 'pending 0: scheduled>pending', 'BC-001 no delay: pending');
SELECT is(pg_temp.attempts('a'), '0', 'BC-001 no attempt has been made');
SELECT is(pg_temp.wait('a'), interval '0', 'BC-001 at once');
SELECT is(pg_temp.keys(pg_temp.run('a')), 'reasonCreated runId scheduled state', 'BC-001 the run shows nothing else');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), tq.task(pg_temp.id('a')))$$, 'a', 'BC-001 an existing id is not added again');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"delay": 100}');
SELECT is(pg_temp.word('a'), 'delay', 'BC-002 a delay of 100: delay');
SELECT is(pg_temp.wait('a'), interval '100 seconds', 'BC-002 delay_until is received_at + 100');
SELECT is(pg_temp.claims('test/q-a'), '', 'BC-002 it is not handed out');
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 0::bigint, 'BC-002 nor counted as pending');
SELECT is(pg_temp.pass('70 seconds'), '', 'BC-002 before its time upkeep() does not change it');
SELECT is(pg_temp.word('a'), 'delay', 'BC-002 it is delayed still');
SELECT pg_temp.send('long', '{"delay": 36000}');
SELECT is(pg_temp.wait('long'), interval '10 hours', 'BC-002 a delay may be longer than an hour: there is no cap (section 10, 7)');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"delay": 60}'), pg_temp.send('b', '{"delay": 600}');
SET tq.clock_offset = '61 seconds';
SELECT is(pg_temp.words('a', 'b'), 'a delay, b delay', 'BC-003 one is due, the other is not');
SELECT is(pg_temp.pass(), 'delayed 1', 'BC-003 upkeep releases one');
SELECT is(pg_temp.words('a', 'b'), 'a pending, b delay', 'BC-003 the one that is due');
SELECT is(pg_temp.pass(), '', 'BC-003 another pass changes nothing');
SELECT is(pg_temp.pass('601 seconds'), 'delayed 1', 'BC-003 a later pass releases the other');
SELECT is(pg_temp.words('a', 'b'), 'a pending, b pending', 'BC-003 then both are pending');
ROLLBACK TO s;

SELECT pg_temp.send(n, '{"processing_deadline_duration": 10}', '{}', '{"taskQueueId": "app/ns"}') FROM unnest('{a,b,c}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT is(pg_temp.claims('app/ns', 1), 'a', 'BC-004 get_task gives the oldest');
SELECT is(pg_temp.words('a', 'b', 'c'), 'a processing, b pending, c pending', 'BC-004 the others stay pending');
SELECT is(pg_temp.claimed_for('a'), interval '13 seconds', 'BC-004 the processing deadline is the duration and 3 s of grace');
SELECT is(pg_temp.claims('app/other', 1), '', 'BC-004 another namespace gets nothing');
SELECT is(pg_temp.claims('app2/ns', 1), '', 'BC-004 nor does another application');
SELECT is(pg_temp.claims('app/ns', 1, 'w2') || ' ' || pg_temp.claims('app/ns', 1, 'w3'), 'b c', 'BC-004 other workers get the others, in order');
SELECT is(pg_temp.claims('app/ns', 1), '', 'BC-004 then there is none: no error');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- BC-005 to BC-008: what a worker reports
-- ---------------------------------------------------------------------------

SELECT pg_temp.send('a', '{}', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.word('a'), 'complete', 'BC-005 complete');
SELECT is(pg_temp.pass(), '', 'BC-005 it is kept until it expires');
SELECT is(pg_temp.pass('41 minutes'), 'expired 1', 'BC-005 then upkeep deletes it');
SELECT pg_temp.throws($$SELECT tq.taskbroker_status(pg_temp.id('a'))$$, 'TQ404', 'BC-005 it is deleted');
ROLLBACK TO s;

SELECT pg_temp.send(n, '{}', r::jsonb, '{"$deadline": "10 minutes", "$expires": "10 minutes", "taskQueueId": "app/ns"}')
FROM (VALUES (1, 'discard', '{"on_attempts_exceeded": 1}'), (2, 'unspecified', '{"on_attempts_exceeded": 0}')) AS v (i, n, r) ORDER BY i;
SELECT is(pg_temp.claims('app/ns', 2), 'discard unspecified', 'BC-006 two that are to be discarded');
SELECT is(pg_temp.resolve('failed-terminal', 'discard', 'unspecified'), 'resolved resolved', 'BC-006 both fail');
SELECT is(pg_temp.words('discard', 'unspecified'), 'discard failure, unspecified failure', 'BC-006 which is final');
SELECT is(pg_temp.letters('app/ns'), '', 'BC-006 there are no dead letters');
SELECT is(pg_temp.pass('41 minutes'), 'expired 2', 'BC-006 upkeep deletes them');
SELECT is(pg_temp.letters('app/ns'), '', 'BC-006 and writes none');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{}', '{"on_attempts_exceeded": 2}', '{"$deadline": "10 minutes", "$expires": "10 minutes", "payload": {"args": [1, "x"], "kwargs": {"k": null}}}');
CREATE TEMP TABLE sent AS SELECT tq.task(pg_temp.id('a')) AS task;
SELECT is(pg_temp.work('a', 'failed'), 'failed 0: scheduled>failed/failed', 'BC-007 report_failed is final as well: only a retry is retried');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-a')), 1::bigint, 'BC-007 one dead letter');
SELECT is(l.task_id::text, pg_temp.id('a')::text, 'BC-007 with the same id') FROM tq.list_dead_letters('test/q-a') AS l;
SELECT is(l.task -> 'payload', sent.task -> 'payload', 'BC-007 with the same parameters') FROM tq.list_dead_letters('test/q-a') AS l, sent;
SELECT is(l.task, sent.task, 'BC-007 the whole definition') FROM tq.list_dead_letters('test/q-a') AS l, sent;
SELECT is(l.runs, pg_temp.runs(tq.status(pg_temp.id('a'))), 'BC-007 and its runs') FROM tq.list_dead_letters('test/q-a') AS l;
SELECT is(pg_temp.pass('41 minutes'), 'expired 1', 'BC-007 upkeep deletes the task');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('a'))$$, 'TQ404', 'BC-007 it is deleted');
SELECT is(pg_temp.letters('test/q-a'), 'a failed', 'BC-007 the dead letter is not');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{}', '{"max_attempts": 3}', '{"payload": {"args": [1]}}');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'pending 1: scheduled>exception/intermittent-task task-retry>pending', 'BC-008 one new run');
SELECT is(pg_temp.attempts('a'), '0 1', 'BC-008 which is the next attempt');
SELECT is((SELECT payload FROM tq.claim_work('test/q-a', 'wg', 'w2')), '{"args": [1]}', 'BC-008 with the same parameters');
SELECT is((SELECT count(*) FROM tq_internal.task), 1::bigint, 'BC-008 of the same task: there is no second one (C5)');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- BC-009 to BC-013, BC-015: processing deadlines
-- ---------------------------------------------------------------------------

SELECT pg_temp.send('a', '{}', '{"max_attempts": 3, "delay_on_retry": 60}');
SELECT pg_temp.take('a');
SELECT is(pg_temp.pass('603 seconds'), 'claim-expired 1', 'BC-009 a processing deadline has passed');
SELECT is(pg_temp.look('a'), 'pending 2: scheduled>exception/claim-expired retry>pending', 'BC-009 pending; all retries are left');
SELECT is(pg_temp.attempts('a'), '0 0', 'BC-009 it is the same attempt');
SELECT is(pg_temp.run('a') ? 'takenUntil', false, 'BC-009 the deadline is cleared');
SELECT is(pg_temp.wait('a'), interval '0', 'BC-009 at once: delay_on_retry is for retries');
SELECT is(pg_temp.take('a', 'w2'), 1, 'BC-009 it can be claimed');
SELECT is(pg_temp.claimed_for('a'), interval '603 seconds', 'BC-009 for as long as the first time');
ROLLBACK TO s;

SELECT pg_temp.send('a');
SELECT pg_temp.take('a');
SELECT is(pg_temp.pass('303 seconds'), '', 'BC-010 a deadline 5 minutes ahead');
SELECT is(pg_temp.word('a'), 'processing', 'BC-010 changes nothing');
SELECT is(pg_temp.report('a', 'completed'), 'completed 0: scheduled>completed/completed', 'BC-010 its worker completes it');
ROLLBACK TO s;

SELECT pg_temp.send(n, '{}', jsonb_build_object('at_most_once', true, 'on_attempts_exceeded', i), '{"taskQueueId": "app/ns"}') FROM (VALUES (1, 'discard'), (2, 'letter')) AS v (i, n) ORDER BY i;
SELECT is(pg_temp.claims('app/ns', 2), 'discard letter', 'BC-011 two that may run at most once');
SELECT is(pg_temp.pass('603 seconds'), 'claim-expired 2', 'BC-011 their deadline passes');
SELECT is(pg_temp.look(n), 'exception 0: scheduled>exception/claim-expired', 'BC-011 a failure, never pending again: ' || n) FROM unnest('{discard,letter}'::text[]) AS n;
SELECT is(pg_temp.words('discard', 'letter'), 'discard failure, letter failure', 'BC-011 their statuses');
SELECT is(pg_temp.claims('app/ns', 2), '', 'BC-011 no worker gets them a second time');
SELECT is(pg_temp.letters('app/ns'), 'letter claim-expired', 'BC-011 discarded, or a dead letter');
ROLLBACK TO s;
SELECT pg_temp.send('a', '{}', '{"at_most_once": true, "max_attempts": 3}');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'pending 1: scheduled>exception/intermittent-task task-retry>pending', 'BC-011 a retry that its worker requests does not count as such');
ROLLBACK TO s;

-- Five lost runs in a row: five times handed out, and none of the attempts spent.
SELECT pg_temp.send(n, '{}', jsonb_build_object('max_attempts', 3, 'on_attempts_exceeded', i)) FROM (VALUES (1, 'discard'), (2, 'letter')) AS v (i, n) ORDER BY i;
SELECT is(pg_temp.take('discard') || ' ' || pg_temp.take('letter'), '0 0', 'BC-012 first run');
SELECT is(pg_temp.pass('11 minutes') || ', ' || pg_temp.words('discard', 'letter'),
	'claim-expired 2, discard pending, letter pending', 'BC-012 processing_attempts 1');
SELECT is(pg_temp.take('discard') || ' ' || pg_temp.take('letter'), '1 1', 'BC-012 second run');
SELECT is(pg_temp.pass('22 minutes') || ', ' || pg_temp.words('discard', 'letter'),
	'claim-expired 2, discard pending, letter pending', 'BC-012 processing_attempts 2');
SELECT is(pg_temp.take('discard') || ' ' || pg_temp.take('letter'), '2 2', 'BC-012 third run');
SELECT is(pg_temp.pass('33 minutes') || ', ' || pg_temp.words('discard', 'letter'),
	'claim-expired 2, discard pending, letter pending', 'BC-012 processing_attempts 3');
SELECT is(pg_temp.take('discard') || ' ' || pg_temp.take('letter'), '3 3', 'BC-012 fourth run');
SELECT is(pg_temp.pass('44 minutes') || ', ' || pg_temp.words('discard', 'letter'),
	'claim-expired 2, discard pending, letter pending', 'BC-013 processing_attempts 4');
SELECT is(pg_temp.look('letter'), 'pending 2: scheduled>exception/claim-expired retry>exception/claim-expired retry>exception/claim-expired retry>exception/claim-expired retry>pending',
	'BC-013 no attempt is spent');
SELECT is(pg_temp.attempts('letter'), '0 0 0 0 0', 'BC-013 they are all the first attempt');
SELECT is(pg_temp.letters('test/q-letter'), '', 'BC-013 there is no dead letter yet');
SELECT is(pg_temp.take('discard') || ' ' || pg_temp.take('letter'), '4 4', 'BC-012 fifth run');
SELECT is(pg_temp.pass('55 minutes'), 'claim-expired 2', 'BC-013 one pass does both');
SELECT is(pg_temp.look(n), 'exception 2: scheduled>exception/claim-expired retry>exception/claim-expired retry>exception/claim-expired retry>exception/claim-expired retry>exception/claim-expired',
	'BC-012 lost five times, it fails with retries left: ' || n) FROM unnest('{discard,letter}'::text[]) AS n;
SELECT is(pg_temp.words('discard', 'letter'), 'discard failure, letter failure', 'BC-012 their statuses');
SELECT is(pg_temp.letters('test/q-discard') || pg_temp.letters('test/q-letter'), 'letter claim-expired', 'BC-012 then the action of on_attempts_exceeded');
SELECT is(jsonb_array_length(l.runs), 5, 'BC-012 the dead letter has all five runs') FROM tq.list_dead_letters('test/q-letter') AS l;
SELECT is(pg_temp.pass(), '', 'BC-013 a further pass finds nothing');
ROLLBACK TO s;

-- Lost runs and retries are counted apart.
SELECT pg_temp.send('a', '{}', '{"max_attempts": 2}');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('11 minutes');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'pending 0: scheduled>exception/claim-expired retry>exception/intermittent-task task-retry>pending', 'BC-012 a lost run, then a retry');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('22 minutes');
SELECT is(pg_temp.look('a'), 'pending 0: scheduled>exception/claim-expired retry>exception/intermittent-task task-retry>exception/claim-expired retry>pending',
	'BC-012 no retry is left, but a lost run is retried');
SELECT is(pg_temp.attempts('a'), '0 0 1 1', 'BC-012 attempts are those that the worker requested');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{}', '{"max_attempts": 3}');
SELECT pg_temp.take('a', 'crashes');
SELECT is(pg_temp.pass('590 seconds') || pg_temp.word('a'), 'processing', 'BC-015 a worker is silent: before the deadline no change');
SELECT is(pg_temp.claims('test/q-a', 1, 'second'), '', 'BC-015 no other worker gets the task');
SELECT is(pg_temp.pass('604 seconds'), 'claim-expired 1', 'BC-015 after it');
SELECT is(pg_temp.word('a'), 'pending', 'BC-015 the task is pending');
SELECT is(pg_temp.claims('test/q-a', 1, 'second'), 'a', 'BC-015 a second worker gets the same');
SELECT is(pg_temp.report('a', 'completed'), 'completed 2: scheduled>exception/claim-expired retry>completed/completed', 'BC-015 and completes it');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- BC-014: six tasks, one pass
-- ---------------------------------------------------------------------------

SELECT pg_temp.send('complete', '{}', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.send('overdue');
SELECT pg_temp.send('expired', '{"expires": 60}', '{"on_attempts_exceeded": 2}');
SELECT pg_temp.send('delay', '{"delay": 120}');
SELECT pg_temp.send('retry', '{}', '{"max_attempts": 2}');
SELECT pg_temp.send('dlq', '{}', '{"on_attempts_exceeded": 2}');
SELECT pg_temp.work('complete', 'completed');
SELECT pg_temp.take('overdue');
SET tq.clock_offset = '35 minutes';
SELECT pg_temp.take('retry'), pg_temp.take('dlq');
SET tq.clock_offset = '41 minutes';
SELECT pg_temp.report('retry', 'intermittent-task'), pg_temp.resolve('failed-terminal', 'dlq');
SELECT is(pg_temp.words('retry', 'overdue', 'expired', 'delay', 'dlq', 'complete'),
	'retry pending, overdue processing, expired pending, delay delay, dlq failure, complete complete',
	'BC-014 before: the retry is pending with its report, as the failure is final and has its dead letter');
SELECT is(pg_temp.look('retry'), 'pending 0: scheduled>exception/intermittent-task task-retry>pending', 'BC-014 before: 1 retried');
SELECT is(pg_temp.letters('test/q-dlq') || ', ' || pg_temp.letters('test/q-expired'), 'dlq failed-terminal, ', 'BC-014 before: 1 dead letter');
SELECT is(pg_temp.pass(), 'pending-timeout 1 claim-expired 1 delayed 1 expired 1', 'BC-014 one pass: 1 expired, 1 reset, 1 released, and the completed one removed');
SELECT is(pg_temp.words('retry', 'overdue', 'expired', 'delay', 'dlq'), 'retry pending, overdue pending, expired failure, delay pending, dlq failure', 'BC-014 after');
SELECT is(pg_temp.look(n), line, 'BC-014 after: ' || n) FROM (VALUES
	('retry', 'pending 0: scheduled>exception/intermittent-task task-retry>pending'),
	('overdue', 'pending 0: scheduled>exception/claim-expired retry>pending'),
	('expired', 'exception 0: scheduled>exception/pending-timeout'),
	('delay', 'pending 0: scheduled>pending'),
	('dlq', 'failed 0: scheduled>failed/failed-terminal')) AS v (n, line);
SELECT pg_temp.throws($$SELECT tq.taskbroker_status(pg_temp.id('complete'))$$, 'TQ404', 'BC-014 after: the completed one is deleted');
SELECT is(pg_temp.letters('test/q-dlq') || ', ' || pg_temp.letters('test/q-expired'), 'dlq failed-terminal, expired pending-timeout',
	'BC-014 after: the expired one has a dead letter too, as its activation asks (C8)');
SELECT is(pg_temp.pass(), '', 'BC-014 a second pass finds nothing');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- BC-016 to BC-018, BC-020: reports that are late, repeated, or of unknown tasks
-- ---------------------------------------------------------------------------

SELECT pg_temp.send('a');
SELECT pg_temp.take('a', 'first');
SELECT pg_temp.pass('604 seconds');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0)$$, 'TQ409', 'BC-016 late, while it is pending again: refused, not accepted (C4)');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 1)$$, 'TQ409', 'BC-016 nor does the first worker have the new run');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('a'), '{0}')), 'conflict', 'BC-016 the batch returns conflict, and raises no error');
SELECT is(pg_temp.word('a'), 'pending', 'BC-016 it stays pending');
SELECT pg_temp.take('a', 'second');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0)$$, 'TQ409', 'BC-017 late, after a second worker got it: refused');
SELECT is(pg_temp.word('a'), 'processing', 'BC-017 it stays with the second');
SELECT is(pg_temp.report('a', 'completed', 1), 'completed 0: scheduled>exception/claim-expired retry>completed/completed', 'BC-017 whose report counts');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('a'), 1)$$, 'TQ409', 'BC-017 no report overwrites it');
SELECT is(pg_temp.resolve('intermittent-task', 'a'), 'conflict', 'BC-017 not to retry it either');
SELECT pg_temp.keeps($$SELECT tq.report_completed(pg_temp.id('a'), 1)$$, 'a', 'BC-017 the same report again is harmless');
ROLLBACK TO s;

SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('nobody'), 0)$$, 'TQ404', 'BC-018 an unknown id: an error');
SELECT is((SELECT outcome FROM tq.resolve(pg_temp.ids('nobody'), '{0}')), 'not-found', 'BC-018 in a batch an outcome');
SELECT is((SELECT count(*) FROM tq.resolve('{}', '{}')), 0::bigint, 'BC-018 an empty batch is fine');
SELECT pg_temp.throws($$SELECT tq.taskbroker_status(pg_temp.id('nobody'))$$, 'TQ404', 'BC-018 the status of an unknown id');
SELECT pg_temp.throws(format('SELECT tq.resolve(pg_temp.ids(''nobody''), ''{0}'', %L)', r), 'TQ400', 'BC-018 a worker cannot set ' || r) FROM unnest('{pending,running,processing,delay,retry}'::text[]) AS r;

SELECT pg_temp.send(n, '{}', r::jsonb) FROM (VALUES ('f', '{"on_attempts_exceeded": 2, "max_attempts": 2}'), ('r', '{"max_attempts": 2}'), ('c', '{}')) AS v (n, r);
SELECT pg_temp.take('f'), pg_temp.take('r'), pg_temp.take('c');
SET tq.clock_offset = '604 seconds';
SELECT is(pg_temp.words('f', 'r', 'c'), 'f processing, r processing, c processing', 'BC-020 the deadline has passed, no pass has been made yet');
SELECT is(pg_temp.resolve('failed-terminal', 'f'), 'resolved', 'BC-020 a late worker reports a failure');
SELECT is(pg_temp.report('r', 'intermittent-task'), 'pending 0: scheduled>exception/intermittent-task task-retry>pending', 'BC-020 or a retry, which spends an attempt');
SELECT is(pg_temp.report('c', 'completed'), 'completed 0: scheduled>completed/completed', 'BC-020 or completes');
SELECT is(pg_temp.pass(), '', 'BC-020 upkeep finds nothing');
SELECT is(pg_temp.words('f', 'r', 'c') || ', ' || pg_temp.letters('test/q-f'), 'f failure, r pending, c complete, f failed-terminal', 'BC-020 they are as reported');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Retries: b12, b17, section 4
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.send('a', '{}', '{"max_attempts": 3, "on_attempts_exceeded": 2}'), 'pending 2: scheduled>pending', 'b12 max_attempts counts the first: 2 retries');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'pending 1: scheduled>exception/intermittent-task task-retry>pending', 'b12 the first asks for a retry');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'pending 0: scheduled>exception/intermittent-task task-retry>exception/intermittent-task task-retry>pending', 'b12 the second too');
SELECT is(pg_temp.letters('test/q-a'), '', 'b12 no dead letter while there is a run');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'exception 0: scheduled>exception/intermittent-task task-retry>exception/intermittent-task task-retry>exception/intermittent-task',
	'b12 the third is the last: attempts are exhausted (C12)');
SELECT is(pg_temp.attempts('a'), '0 1 2', 'b12 retry_state.attempts of each');
SELECT is(pg_temp.word('a') || ', ' || pg_temp.letters('test/q-a'), 'failure, a intermittent-task', 'b12 a failure, and a dead letter');
ROLLBACK TO s;
SELECT pg_temp.send('a', '{}', '{"max_attempts": 1}');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'exception 0: scheduled>exception/intermittent-task', 'b12 one attempt: no retry');
SELECT is(pg_temp.word('a') || pg_temp.letters('test/q-a'), 'failure', 'b12 which is discarded');
ROLLBACK TO s;
SELECT is(pg_temp.create('a', jsonb_build_object('policy', tq.taskbroker_policy(pg_temp.activation('a', '{}', '{}') - 'retry_state'))), 'pending 0: scheduled>pending', 'b12 no retry_state: no retries');
SELECT is(pg_temp.work('a', 'intermittent-task'), 'exception 0: scheduled>exception/intermittent-task', 'b12 so a retry is a failure');
ROLLBACK TO s;
SELECT is(pg_temp.send('s' || spent, '{}', jsonb_build_object('attempts', spent, 'max_attempts', 3)), line, format('b17 %s attempts are spent already', spent))
FROM (VALUES (0, 'pending 2: scheduled>pending'), (1, 'pending 1: scheduled>pending'), (2, 'pending 0: scheduled>pending'), (3, 'pending 0: scheduled>pending'), (7, 'pending 0: scheduled>pending')) AS v (spent, line);
SELECT is(pg_temp.work('s1', 'intermittent-task'), 'pending 0: scheduled>exception/intermittent-task task-retry>pending', 'b17 one is left');
SELECT is(pg_temp.work('s1', 'intermittent-task'), 'exception 0: scheduled>exception/intermittent-task task-retry>exception/intermittent-task', 'b17 and then none');
SELECT is(pg_temp.work('s2', 'intermittent-task'), 'exception 0: scheduled>exception/intermittent-task', 'b17 none was left');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{}', '{"max_attempts": 3, "delay_on_retry": 90}');
SELECT is(pg_temp.wait('a'), interval '0', 'b17 delay_on_retry does not delay the first attempt');
SELECT pg_temp.work('a', 'intermittent-task');
SELECT is(pg_temp.word('a'), 'delay', 'b17 but a retry');
SELECT is(pg_temp.wait('a'), interval '90 seconds', 'b17 by that time');
SELECT is(pg_temp.claims('test/q-a'), '', 'b17 it is not handed out before');
SELECT is(pg_temp.pass('60 seconds') || pg_temp.word('a'), 'delay', 'b17 nor made pending');
SELECT is(pg_temp.pass('90 seconds') || ' ' || pg_temp.word('a'), 'delayed 1 pending', 'b17 but then');
SELECT pg_temp.work('a', 'intermittent-task');
SELECT is(pg_temp.wait('a'), interval '90 seconds', 'b17 the second retry waits as long: it does not grow');
ROLLBACK TO s;
SELECT pg_temp.send('a', '{"delay": 100}', '{"max_attempts": 2}');
SELECT pg_temp.pass('100 seconds');
SELECT pg_temp.work('a', 'intermittent-task');
SELECT is(pg_temp.wait('a'), interval '0', 'section 4: the original delay is dropped');
SELECT is(pg_temp.word('a'), 'pending', 'section 4: the retry is pending at once');
ROLLBACK TO s;

-- Values that a worker reports replace those of the activation; its
-- max_attempts is counted here from now on: retries_left.
SELECT pg_temp.send(n, '{}', '{"max_attempts": 2, "delay_on_retry": 30, "on_attempts_exceeded": 2}') FROM unnest('{more,less,later,neither}'::text[]) AS n;
SELECT pg_temp.take(n) FROM unnest('{more,less,later,neither}'::text[]) AS n;
SELECT is(pg_temp.line(tq.report_exception(pg_temp.id('more'), 0, 'intermittent-task', retries_left => 3)), 'pending 2: scheduled>exception/intermittent-task task-retry>pending', 'b12 with max_attempts 4: two are left after the next');
SELECT is(pg_temp.line(tq.report_exception(pg_temp.id('less'), 0, 'intermittent-task', retries_left => 0)), 'exception 1: scheduled>exception/intermittent-task', 'b12 with max_attempts 1: attempts are exhausted');
SELECT is(pg_temp.letters('test/q-less'), 'less intermittent-task', 'b12 with a dead letter');
SELECT is(pg_temp.line(tq.report_exception(pg_temp.id('later'), 0, 'intermittent-task', retry_delay => '90 seconds', retries_left => 5)), 'pending 4: scheduled>exception/intermittent-task task-retry>pending', 'b12 with both');
SELECT pg_temp.report('neither', 'intermittent-task');
SELECT is(pg_temp.wait('more')::text || ' ' || pg_temp.wait('later') || ' ' || pg_temp.wait('neither'), '00:00:30 00:01:30 00:00:30', 'b12 delay_on_retry: the reported one');
SELECT pg_temp.pass('90 seconds');
SELECT pg_temp.work('later', 'intermittent-task');
SELECT is(pg_temp.wait('later'), interval '90 seconds', 'b12 which stays so: non-null values overwrite what was stored');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Expiry: b16
-- ---------------------------------------------------------------------------

SELECT pg_temp.send(n, '{"expires": 300}', jsonb_build_object('on_attempts_exceeded', i, 'max_attempts', 3)) FROM (VALUES (1, 'discard'), (2, 'letter')) AS v (i, n);
SELECT is(pg_temp.pass('270 seconds'), '', 'b16 not yet expired');
SET tq.clock_offset = '300 seconds';
SELECT is(pg_temp.words('discard', 'letter'), 'discard pending, letter pending', 'b16 expired, but no pass has been made yet');
SELECT is(pg_temp.claims('test/q-discard'), '', 'b16 it is not handed out');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('discard'), 0, 'wg', 'w1')$$, 'TQ409', 'b16 not by its id either');
SELECT is(pg_temp.pass(), 'pending-timeout 2', 'b16 upkeep');
SELECT is(pg_temp.look(n), 'exception 2: scheduled>exception/pending-timeout', 'b16 a failure that is not retried, not a deleted row (C8): ' || n) FROM unnest('{discard,letter}'::text[]) AS n;
SELECT is(pg_temp.words('discard', 'letter'), 'discard failure, letter failure', 'b16 their statuses');
SELECT is(pg_temp.letters('test/q-discard') || pg_temp.letters('test/q-letter'), 'letter pending-timeout', 'b16 discarded, or a dead letter');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"expires": 300, "delay": 120}');
SELECT is(pg_temp.pass('120 seconds') || ' ' || pg_temp.word('a'), 'delayed 1 pending', 'b16 a delayed one: expires counts from received_at');
SELECT is(pg_temp.pass('270 seconds') || pg_temp.word('a'), 'pending', 'b16 not yet expired');
SELECT is(pg_temp.pass('300 seconds') || ' ' || pg_temp.word('a'), 'pending-timeout 1 failure', 'b16 expired, 180 s after it could be claimed');
ROLLBACK TO s;
SELECT pg_temp.send('a', '{"expires": 300, "delay": 120}');
SELECT pg_temp.pass('301 seconds');
SELECT is(pg_temp.look('a'), 'exception 0: scheduled>exception/pending-timeout', 'b16 both times have passed: one pass does both');
ROLLBACK TO s;
SELECT pg_temp.send('a', '{"expires": 300, "delay": 600}');
SELECT is(pg_temp.pass('301 seconds') || pg_temp.word('a'), 'delay', 'b16 a delayed one does not expire while it is delayed');
SELECT pg_temp.pass('601 seconds');
SELECT is(pg_temp.word('a'), 'failure', 'b16 but is expired as soon as it can be claimed');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"expires": 300}');
SET tq.clock_offset = '200 seconds';
SELECT pg_temp.take('a');
SELECT is(pg_temp.pass('400 seconds') || pg_temp.word('a'), 'processing', 'b16 a run that was started in time does not expire');
SELECT is(pg_temp.report('a', 'completed'), 'completed 0: scheduled>completed/completed', 'b16 and completes');
ROLLBACK TO s;

-- A retry is a new message: its time begins again.  The retry of a lost run is the same one.
SELECT pg_temp.send('a', '{"expires": 300}', '{"max_attempts": 2}');
SELECT pg_temp.take('a');
SET tq.clock_offset = '400 seconds';
SELECT pg_temp.report('a', 'intermittent-task');
SELECT is(pg_temp.pass() || pg_temp.word('a'), 'pending', 'section 4: the expiry of a retry begins again');
SELECT is(pg_temp.pass('670 seconds') || pg_temp.word('a'), 'pending', 'section 4: it lasts as long');
SELECT is(pg_temp.pass('700 seconds') || ' ' || pg_temp.word('a'), 'pending-timeout 1 failure', 'section 4: and is over then');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"expires": 900}', '{"max_attempts": 2, "on_attempts_exceeded": 2}');
SELECT pg_temp.take('a');
SELECT pg_temp.pass('604 seconds');
SELECT is(pg_temp.look('a'), 'pending 1: scheduled>exception/claim-expired retry>pending', 'a lost run is retried');
SELECT is(pg_temp.pass('870 seconds') || pg_temp.word('a'), 'pending', 'it inherits the expiry: not yet');
SET tq.clock_offset = '900 seconds';
SELECT is(pg_temp.claims('test/q-a'), '', 'it inherits the expiry: it is no longer handed out');
SELECT is(pg_temp.pass(), 'pending-timeout 1', 'it inherits the expiry: 900 s after the first was sent');
SELECT is(pg_temp.look('a'), 'exception 1: scheduled>exception/claim-expired retry>exception/pending-timeout', 'it inherits the expiry: a failure');
SELECT is(pg_temp.letters('test/q-a'), 'a pending-timeout', 'it inherits the expiry: and a dead letter');
ROLLBACK TO s;

SELECT pg_temp.send('a', '{"expires": 300}', '{"max_attempts": 2, "on_attempts_exceeded": 2}');
SET tq.clock_offset = '200 seconds';
SELECT pg_temp.take('a');
SELECT ok(pg_temp.pass('810 seconds') LIKE '%claim-expired%', 'an overdue and expired one is reset');
SELECT is(pg_temp.look('a'), 'exception 1: scheduled>exception/claim-expired retry>exception/pending-timeout', 'and expires in the same pass');
SELECT is(pg_temp.word('a') || ', ' || pg_temp.letters('test/q-a'), 'failure, a pending-timeout', 'with its dead letter');
SELECT is(pg_temp.claims('test/q-a') || pg_temp.pass(), '', 'no run is left to claim, and a further pass finds nothing');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- The worker's calls: section 7
-- ---------------------------------------------------------------------------

SELECT pg_temp.send(n, '{}', '{"max_attempts": 2, "on_attempts_exceeded": 2}', '{"taskQueueId": "app/ns"}') FROM unnest('{a,b,c,d,e}'::text[]) WITH ORDINALITY AS u (n, i) ORDER BY i;
SELECT is(pg_temp.claims('app/ns', 4), 'a b c d', 'SetBatchActivationStatus: four are processed');
SELECT pg_temp.throws($$SELECT tq.resolve(pg_temp.ids('a', 'b'), '{0,0}', 'processing')$$, 'TQ400', 'SetBatchActivationStatus: an invalid status changes nothing');
SELECT is(pg_temp.resolve('completed', 'a', 'b'), 'resolved resolved', 'SetBatchActivationStatus: some complete');
SELECT is(pg_temp.resolve('failed-terminal', 'c'), 'resolved', 'SetBatchActivationStatus: some fail');
SELECT is((SELECT string_agg(outcome, ' ' ORDER BY ordinality) FROM tq.resolve(pg_temp.ids('d', 'nobody', 'e', 'a'), '{0,0,0,0}', 'intermittent-task') WITH ORDINALITY AS r),
	'retried not-found conflict conflict', 'SetBatchActivationStatus: some are to be retried; an unknown task or one of another worker is not changed');
SELECT is(pg_temp.words('a', 'b', 'c', 'd', 'e'), 'a complete, b complete, c failure, d pending, e pending', 'SetBatchActivationStatus: each has the status that was set');
SELECT is(pg_temp.letters('app/ns'), 'c failed-terminal', 'SetBatchActivationStatus: the failure has its dead letter');
SELECT is(pg_temp.claims('app/ns', 1) || ': ' || pg_temp.report('e', 'completed') || ', ' || pg_temp.claims('app/ns', 1),
	'e: completed 1: scheduled>completed/completed, d', 'SetTaskStatus with fetch_next_task: a report and a claim in one transaction');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- The policy, and the statuses
-- ---------------------------------------------------------------------------

SELECT is(tq.taskbroker_policy(pg_temp.activation('a', '{}', jsonb_build_object('on_attempts_exceeded', given))) -> 'deadLetter', wanted, 'on_attempts_exceeded ' || given::text)
FROM (VALUES ('2'::jsonb, 'true'::jsonb), ('"ON_ATTEMPTS_EXCEEDED_DEADLETTER"', 'true')) AS v (given, wanted);
SELECT is(coalesce(tq.taskbroker_policy(pg_temp.activation('a', '{}', jsonb_build_object('on_attempts_exceeded', given))) -> 'deadLetter', 'false'), 'false', 'on_attempts_exceeded ' || given::text)
FROM unnest(ARRAY['0', '1', '"ON_ATTEMPTS_EXCEEDED_UNSPECIFIED"', '"ON_ATTEMPTS_EXCEEDED_DISCARD"', 'null']::jsonb[]) AS given;
SELECT is(coalesce(tq.taskbroker_policy(pg_temp.activation('a', '{}', '{}')) ->> 'onUnsuccessful', 'block'), 'block', 'dependents, which Taskbroker does not have, wait');
SELECT pg_temp.create('unscheduled', '{"$deps": ["unscheduled"]}');
SELECT pg_temp.send(n, '{"delay": 60}') FROM unnest('{delayed,skipped}'::text[]) AS n;
SELECT pg_temp.send(n) FROM unnest('{canceled,late}'::text[]) AS n;
SELECT pg_temp.send('deferred');
SELECT pg_temp.take('deferred');
SELECT lives_ok($$SELECT tq.defer_task(pg_temp.id('deferred'), 0, '5 minutes')$$, 'a task is deferred');
SELECT lives_ok($$SELECT tq.skip_task(pg_temp.id('skipped'))$$, 'a task is skipped');
SELECT pg_temp.report('canceled', 'canceled');
SELECT is(pg_temp.words('delayed', 'deferred', 'skipped', 'canceled', 'late'), 'delayed delay, deferred delay, skipped complete, canceled failure, late pending', 'states that Taskbroker does not have map to its statuses');
SELECT lives_ok($$SELECT tq.taskbroker_status(pg_temp.id('unscheduled'))$$, 'also a task that is not scheduled');
SELECT ok(pg_temp.pass('1 day') LIKE 'deadline %', 'the deadline of a day');
SELECT is(pg_temp.words('delayed', 'deferred', 'late'), 'delayed failure, deferred failure, late failure', 'past the deadline every unresolved task has failed');
ROLLBACK TO s;

-- Not here, because it is not tq's:
--
--	BC-019		losing the store: committed tasks are in the WAL (test/t)
--	b1			a delay that was over when the message arrived: delays count from the
--				creation of the task
--	b3			kill switches and namespaces forwarded at ingest: not created at all
--	b6 to b9	push: claims by the broker itself
--	b21, b22	kill switches, demoted namespaces: cancel_task() by a client that knows them
--	section 4	the worker's own alarm, its guard for at-most-once, its list of
--				exceptions; the new id of a retry
--	section 5	the pause after a start, vacuum, gauges
--	section 6	ownership of partitions; a filter without application: a queue has both
--	section 8	backpressure

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
