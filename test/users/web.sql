-- A web developer: the jobs of a shop, from the first order to a job that outlives an outage.
\ir helper.psql
CREATE ROLE users_web IN ROLE tq_producer, tq_worker;
GRANT SET ON PARAMETER tq.clock_offset TO users_web;
SELECT tq.grant_queue('users_web', 'shop/*', 'manage');
CREATE TABLE orders (id int, mailed boolean DEFAULT false);
GRANT ALL ON orders TO users_web;
SET ROLE users_web;

-- An order and its job are committed together, or neither is.
BEGIN;
INSERT INTO orders VALUES (16);
SELECT tq.enqueue('shop/mail', '{"order": 16}') AS lost \gset
ROLLBACK;
SELECT users.fails(format('SELECT tq.status(%L)', :'lost'), '^TQ404', 'what was rolled back was never enqueued');
BEGIN;
INSERT INTO orders VALUES (17);
SELECT tq.enqueue('shop/mail', '{"order": 17}', retry => 5, name => 'mail 17') AS mail \gset
COMMIT;
SELECT users.matches(users.why(:'mail'), '^no worker: no worker has asked its queue for work: start one', 'why says that a worker is missing');

-- The worker has no name; its result may be an array.
SELECT users.is(payload ->> 'order', '17', 'a worker that has no name claims it') FROM tq.claim_work('shop/mail', wait => '20 s');
BEGIN;
UPDATE orders SET mailed = true WHERE id = 17;
SELECT users.is(tq.report_completed(:'mail', 0, result => '["sent", 250]') ->> 'state', 'completed', 'the report is part of its transaction');
COMMIT;
CALL tq.wait_for_task(:'mail', wait => '20 s') \gset
SELECT users.is(:'result', 'completed', 'wait_for_task answers with the state');
SELECT users.is(tq.result(:'mail'), '["sent", 250]'::jsonb, 'the result of a job');

-- Errors lead out.
SELECT users.fails('SELECT tq.enqueue(''shop/mail'', policy => ''{"retry": 5}'')', '^TQ400 .*"retries".*retry => 5', 'retry in a policy: the argument, and the key');
SELECT users.fails('SELECT tq.enqueue(''shop/mail'', policy => ''{"claimTimeout": "soon"}'')', '"claimTimeout".*seconds.*"soon".*Give the key such a value', 'a key of a policy that has no such value: its form');
SELECT users.fails('SELECT tq.enqueue(''shop/mail'', priority => ''urgent'')', '^TQ400 .*highest.*"urgent".*leave it out for lowest', 'a priority that is none: those that there are, and the default');
SELECT users.fails('SELECT tq.enqueue(''shop mail'')', '^TQ400 .*provisionerId/workerType', 'the name of a queue: its form');
SELECT users.fails(format('SELECT tq.report_completed(%L, 1)', :'mail'), '^TQ404 .*run', 'a run that is none');

-- Errors of the server are what doc/troubleshooting.md lists.
SELECT users.fails('SELECT tq.' || call, want, 'the error of ' || call) FROM (VALUES
	('enqueue(''shop/mail'', ''{}''::json)', '^42883 function tq.enqueue\(unknown, json\) does not exist'),
	('enqueue(''shop/mail'', deadline => now())', '^42883 function tq.enqueue\(unknown, deadline => timestamp with time zone\) does not exist'),
	('enqueue(''shop/mail'', delay => 60)', '^42883 function tq.enqueue\(unknown, delay => integer\) does not exist'),
	('enqueue(''shop/mail'', priority => 9)', '^42883 function tq.enqueue\(unknown, priority => integer\) does not exist'),
	('resolve(''RQ1eqFahSj2gzZ_ujLeVjw'', 0)', '^42883 function tq.resolve\(unknown, integer\) does not exist'),
	('enqueue_tasks(''shop/mail'', ''[{"order": 1}]'')', '^22P02 malformed array literal'),
	('enqueue(''shop/mail'', dependencies => ''RQ1eqFahSj2gzZ_ujLeVjw'')', '^22P02 malformed array literal'),
	('enqueue(''{"order": 1}'', ''shop/mail'')', '^22P02 invalid input syntax for type json'),
	('cancel_tasks(''shop/mail'')', '^42809 tq.cancel_tasks\(unknown\) is a procedure')) AS v (call, want);

-- A failure is retried, later; a long message is cut and not refused.
SELECT tq.enqueue('shop/bill', '{"order": 17}', retry => 1) AS bill \gset
SELECT tq.claim_work('shop/bill') \g /dev/null
SELECT users.is(tq.report_failed(:'bill', 0, error_message => repeat('x', 70000)) ->> 'state', 'pending', 'a failure is retried');
SELECT users.matches(users.why(:'bill'), '^delayed: it cannot be claimed before .*\d\d:\d\d:\d\d[+-]\d\d', 'and waits until a time, with its zone');
SELECT users.is((SELECT concat_ws(' ', retrying, length(error ->> 'message') BETWEEN 60000 AND 65536) FROM tq.failure_overview WHERE task_id = :'bill'), 't t', 'with its error');
SELECT users.is((SELECT count(*) FROM tq.claim_work('shop/bill')), 0, 'until its time');
SELECT tq.reschedule_task(:'bill') \g /dev/null
SELECT users.is((SELECT run_id FROM tq.claim_work('shop/bill')), 1, 'or until it is rescheduled');
SELECT users.is(tq.report_failed(:'bill', 1, error_message => 'no paper') ->> 'state', 'failed', 'the last failure is final');
SELECT users.is((SELECT error ->> 'message' FROM tq.failure_overview WHERE task_id = :'bill'), 'no paper', 'and listed');
CALL tq.wait_for_task(:'bill', wait => '20 s') \gset
SELECT users.is(:'result', 'failed', 'wait_for_task answers with failed');

-- A worker that has to wait for something else puts its run back.
SELECT tq.enqueue('shop/ship') AS ship \gset
SELECT tq.claim_work('shop/ship') \g /dev/null
SELECT users.is(tq.defer_task(:'ship', 0, after => '10 minutes') ->> 'state', 'pending', 'a run is deferred');

-- The last repair.
SELECT users.is(tq.rerun_task(:'bill') ->> 'state', 'pending', 'a rerun');
SELECT users.is(users.work('{shop/bill}'), 1, 'works');

-- An outage of any length.
SELECT tq.enqueue('shop/mail', '{"order": 18}', retry => 5) AS parcel \gset
SELECT tq.enqueue('shop/mail', deadline => '30 days') AS offer \gset
BEGIN;
SET LOCAL tq.clock_offset = '25 days';
RESET ROLE;
SELECT tq.upkeep() \g /dev/null
SET LOCAL ROLE users_web;
SELECT users.is(users.state(:'parcel'), 'pending', 'after 25 days a job still waits');
SELECT users.is((SELECT count(*) FROM tq.claim_work('shop/mail', tasks => 10)), 2, 'and is claimed');
SET LOCAL tq.clock_offset = '31 days';
RESET ROLE;
SELECT tq.upkeep() \g /dev/null
SELECT users.is((SELECT array_agg(state || ' ' || coalesce(reason, '-') ORDER BY state) FROM tq.task_overview WHERE task_queue_id = 'shop/mail' AND state <> 'completed'),
	'{"exception deadline-exceeded","pending retry"}', 'only the one with a deadline ends by it; the claim of the other has expired');
SET LOCAL ROLE users_web;
SELECT users.matches(users.why(:'offer'), 'deadline-exceeded.*with a new deadline', 'why says how it can run again');
SELECT users.fails(format('SELECT tq.rerun_task(%L)', :'offer'), '^TQ409 .*deadline => ''1 day''', 'and so does the rerun that does not say so');
SELECT users.is(tq.rerun_task(:'offer', '1 day') ->> 'state', 'pending', 'with a new deadline it runs again');
ROLLBACK;
SET ROLE users_web;

-- Tests of one's own: a transaction sees its tasks, works on them, and leaves nothing.
BEGIN;
SELECT tq.enqueue('shop/draft', '{"order": 19}') \g /dev/null
SELECT users.is(users.work('{shop/draft}'), 1, 'a test drains what it has enqueued');
ROLLBACK;
SELECT users.is((SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/draft'), 0, 'and leaves nothing');

-- One job of a key.
SELECT tq.enqueue('shop/sync', policy => '{"uniqueKey": "stock"}') AS first \gset
SELECT users.is(tq.enqueue('shop/sync', policy => '{"uniqueKey": "stock"}')::text, :'first', 'a unique job exists once');
SELECT '1..' || currval('users.n');
