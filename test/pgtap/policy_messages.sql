-- doc/spec/policy.md 4, 5, 10 (5, 9): the messages of tasks with policies: which
-- exchanges, in what order; task-alert; and that the status in them has none of
-- the keys of policies.  Written as in 6.0_transitions.sql.
\ir messages.psql
\ir policy.psql

INSERT INTO known VALUES ('g'), ('h');

-- Every message is kept, to be checked at the end.
CREATE TEMP TABLE log OF tq.exchange_message;
CREATE FUNCTION pg_temp.heard() RETURNS text
LANGUAGE sql AS $$
	WITH n AS (INSERT INTO log SELECT * FROM pg_temp.news() RETURNING *)
	SELECT coalesce(string_agg(pg_temp.notified((n.id, n.exchange, n.routing_key, n.cc, n.payload, n.published)::tq.exchange_message), ', ' ORDER BY n.id), '') FROM n
$$;
SELECT pg_temp.forget();

-- ---------------------------------------------------------------------------
-- Creation, delays
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a', '{"policy": {"retries": 1, "retryOn": ["failed", "worker-shutdown"], "retryBackoff": {"delay": 600}, "deadLetter": true}}');
SELECT is(pg_temp.heard(), 'DEF a unscheduled _._._, PEND a pending 0._._', 'create: as without a policy');
SELECT pg_temp.create('a', '{"policy": {"retries": 1, "retryOn": ["failed", "worker-shutdown"], "retryBackoff": {"delay": 600}, "deadLetter": true}}');
SELECT is(pg_temp.heard(), 'DEF a unscheduled _._._, PEND a pending 0._._', 'create: a repeat');
SELECT is(pg_temp.code($$SELECT pg_temp.create('a', '{"policy": {"retries": 2}}')$$), 'TQ409', 'create: another policy');
SELECT is(pg_temp.code($$SELECT pg_temp.create('b', '{"policy": {"foo": 2}}')$$), 'TQ400', 'create: an invalid one');
SELECT is(pg_temp.heard(), '', 'create: a refused call sends nothing');
SELECT pg_temp.create('d', '{"delay": 600}');
SELECT is(pg_temp.heard(), 'DEF d unscheduled _._._, PEND d pending 0._._', 'delay: task-pending is sent with the task');
SELECT ok(pg_temp.pass('10 minutes') ~ '(^| )delayed 1', 'delay: it is due');
SELECT is(pg_temp.heard(), '', 'delay: which sends nothing');
SELECT pg_temp.take('d');
SELECT is(pg_temp.heard(), 'RUN d running 0.wg.w1', 'delay: the claim');
RESET tq.clock_offset;
SELECT pg_temp.cancel('d');
SELECT is(pg_temp.heard(), 'EXC d exception 0.wg.w1, GROUP d', 'delay: canceled');

-- ---------------------------------------------------------------------------
-- Retries
-- ---------------------------------------------------------------------------

SELECT pg_temp.take('a');
SELECT is(pg_temp.heard(), 'RUN a running 0.wg.w1', 'retry: the claim');
SELECT is(tq.report_failed(pg_temp.id('a'), 0, '{"message": "x"}') ->> 'state', 'pending', 'retry: a failure that is retried');
SELECT is(pg_temp.heard(), 'PEND a pending 1._._', 'retry: only task-pending of the next run, though it is delayed');
SELECT pg_temp.report('a', 'failed', 0);
SELECT is(pg_temp.heard(), 'PEND a pending 1._._', 'retry: a repeat of the report sends it again');
SELECT pg_temp.pass('10 minutes');
SELECT pg_temp.take('a', 'w2');
RESET tq.clock_offset;
SELECT is(pg_temp.heard(), 'RUN a running 1.wg.w2', 'retry: due and claimed');
SELECT pg_temp.report('a', 'failed', 0);
SELECT is(pg_temp.heard(), '', 'retry: a repeat after the next run was claimed sends nothing');
SELECT is(tq.report_failed(pg_temp.id('a'), 1, '{"message": "y"}') ->> 'state', 'failed', 'retry: the last run fails');
SELECT is(pg_temp.heard(), 'FAIL a failed 1.wg.w2, GROUP a', 'retry: task-failed');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-a')), 1::bigint, 'retry: and a dead letter, which has no message');
SELECT pg_temp.running('ft');
SELECT pg_temp.forget();
SELECT is(pg_temp.resolve('failed-terminal', 'ft'), 'resolved', 'failed-terminal');
SELECT is(pg_temp.heard(), 'FAIL ft failed 0.wg.w1, GROUP ft', 'failed-terminal: task-failed');
SELECT is(pg_temp.resolve('failed-terminal', 'ft'), 'repeated', 'failed-terminal: a repeat');
SELECT is(pg_temp.heard(), 'FAIL ft failed 0.wg.w1, GROUP ft', 'failed-terminal: is sent again');
SELECT pg_temp.running('ca');
SELECT pg_temp.forget();
SELECT is(pg_temp.resolve('canceled', 'ca'), 'resolved', 'canceled by its worker');
SELECT is(pg_temp.heard(), 'EXC ca exception 0.wg.w1, GROUP ca', 'canceled by its worker: task-exception');
SELECT is((SELECT payload #>> '{status,runs,0,reasonResolved}' FROM log ORDER BY id DESC OFFSET 1 LIMIT 1), 'canceled', 'canceled by its worker: its reason');
-- lost runs
SELECT pg_temp.running('lo', '{"policy": {"lostRetries": 1, "retries": 0}}');
SELECT pg_temp.forget();
SELECT ok(pg_temp.pass('20 minutes') ~ 'claim-expired 1', 'lost: a claim expires');
SELECT is(pg_temp.heard(), 'PEND lo pending 1._._', 'lost: only task-pending');
SELECT pg_temp.take('lo');
SELECT pg_temp.forget();
SELECT ok(pg_temp.pass('40 minutes') ~ 'claim-expired 1', 'lost: another expires');
RESET tq.clock_offset;
SELECT is(pg_temp.heard(), 'EXC lo exception 1.wg.w1, GROUP lo', 'lost: the last is a task-exception, of its worker');

-- ---------------------------------------------------------------------------
-- Timeouts
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('pt', '{"policy": {"pendingTimeout": 600}}'), pg_temp.running('rt', '{"policy": {"runTimeout": 600}}'), pg_temp.running('tt', '{"policy": {"totalTimeout": 600}}');
SELECT pg_temp.forget();
SELECT ok(pg_temp.pass('10 minutes') ~ 'deadline 1 run-timeout 1 pending-timeout 1', 'timeouts: three have passed');
RESET tq.clock_offset;
SELECT is(pg_temp.heard(), 'EXC tt exception 0._._, EXC rt exception 0.wg.w1, EXC pt exception 0._._, ' || (SELECT string_agg('GROUP ' || n, ', ' ORDER BY pg_temp.id(n)::uuid) FROM unnest('{tt,rt,pt}'::text[]) AS n),
	'timeouts: task-exception, in the order of the steps; a deadline names no worker, as always');
SELECT is((SELECT string_agg(payload #>> '{status,runs,0,reasonResolved}', ' ' ORDER BY id) FROM (SELECT * FROM log WHERE exchange = 'task-exception' ORDER BY id DESC LIMIT 3) AS l), 'deadline-exceeded run-timeout pending-timeout', 'timeouts: their reasons');
SELECT pg_temp.create('pr', '{"policy": {"pendingTimeout": 600, "retryOn": ["pending-timeout"]}}'), pg_temp.running('rr', '{"policy": {"runTimeout": 600, "retryOn": ["run-timeout"]}}');
SELECT pg_temp.forget();
SELECT ok(pg_temp.pass('10 minutes') ~ 'run-timeout 1 pending-timeout 1', 'timeouts that are retried: two');
RESET tq.clock_offset;
SELECT is(pg_temp.heard(), 'PEND rr pending 1._._, PEND pr pending 1._._', 'timeouts that are retried: only task-pending');
SELECT pg_temp.cancel('pr', 'rr');
SELECT pg_temp.forget();

-- ---------------------------------------------------------------------------
-- skip_task, defer_task
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('s1'), pg_temp.create('s2', '{"$deps": ["s2"], "$group": "g"}'), pg_temp.create('s3', '{"$deps": ["s2"], "$group": "g"}');
SELECT pg_temp.forget();
SELECT is(tq.skip_task(pg_temp.id('s1'), '"o"') ->> 'state', 'completed', 'skip: of a pending task');
SELECT is(pg_temp.heard(), 'COMP s1 completed 0.tq.skipped, GROUP s1', 'skip: task-completed, of a worker that the schema asks for');
SELECT is(tq.skip_task(pg_temp.id('s2')) ->> 'state', 'completed', 'skip: of an unscheduled task');
SELECT is(pg_temp.heard(), 'COMP s2 completed 0.tq.skipped, PEND s3 pending 0._._', 'skip: task-completed, then the dependents');
SELECT is((SELECT concat_ws(' ', r ->> 'reasonCreated', r ->> 'reasonResolved') FROM (SELECT payload #> '{status,runs,0}' AS r FROM log WHERE exchange = 'task-completed' ORDER BY id DESC LIMIT 1) AS l), 'skip skipped', 'skip: its reasons');
SELECT is(pg_temp.code($$SELECT tq.skip_task(pg_temp.id('ft'))$$), 'TQ409', 'skip: a conflict');
SELECT is(pg_temp.heard(), '', 'skip: which sends nothing');
SELECT pg_temp.running('de');
SELECT pg_temp.forget();
SELECT is(tq.defer_task(pg_temp.id('de'), 0, '10 minutes') ->> 'state', 'pending', 'defer');
SELECT is(pg_temp.heard(), 'PEND de pending 0._._', 'defer: task-pending of the same run, without a worker');
SELECT is(pg_temp.code($$SELECT tq.defer_task(pg_temp.id('de'), 0, '10 minutes')$$), 'TQ409', 'defer: a conflict');
SELECT is(pg_temp.heard(), '', 'defer: which sends nothing');
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.heard(), '', 'defer: nor does it when it is due');
SELECT pg_temp.take('de', 'w2');
SELECT is(pg_temp.heard(), 'RUN de running 0.wg.w2', 'defer: task-running, again');
RESET tq.clock_offset;
SELECT pg_temp.report('de', 'completed');
SELECT is(pg_temp.heard(), 'COMP de completed 0.wg.w2, GROUP de', 'defer: task-completed');

-- ---------------------------------------------------------------------------
-- tolerate, forgive, cancel-group
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('t1', '{"policy": {"onUnsuccessful": "tolerate"}}'), pg_temp.running('t2', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('t3');
SELECT pg_temp.create('d' || n, jsonb_build_object('$deps', jsonb_build_array('t' || n), '$group', 't' || n)) FROM generate_series(1, 3) AS n;
SELECT pg_temp.forget();
SELECT pg_temp.report('t1', 'failed');
SELECT is(pg_temp.heard(), 'FAIL t1 failed 0.wg.w1, PEND d1 pending 0._._', 'tolerate: task-failed, then the dependent');
SELECT pg_temp.report('t2', 'internal-error');
SELECT is(pg_temp.heard(), 'EXC t2 exception 0.wg.w1, PEND d2 pending 0._._', 'forgive: task-exception, then the dependent');
SELECT pg_temp.report('t3', 'failed');
SELECT is(pg_temp.heard(), 'FAIL t3 failed 0.wg.w1', 'block: task-failed, the dependent waits');
SELECT pg_temp.cancel('d1', 'd2', 'd3');
SELECT pg_temp.running('c1', '{"$group": "h", "policy": {"onUnsuccessful": "cancel-group"}}');
SELECT pg_temp.running('c2', '{"$group": "h"}'), pg_temp.create('c3', '{"$group": "h"}'), pg_temp.create('c4', '{"$group": "h", "$deps": ["c1"]}'), pg_temp.create('c5', '{"$deps": ["c3"], "requires": "all-resolved"}'), pg_temp.create('c6', '{"$group": "h", "delay": 600}');
SELECT pg_temp.forget();
SELECT pg_temp.report('c1', 'failed');
SELECT is((SELECT string_agg(m, ', ' ORDER BY m COLLATE "C") FROM unnest(string_to_array(h, ', ')) AS m) || '; first ' || split_part(h, ', ', 1),
	'EXC c2 exception 0.wg.w1, EXC c3 exception 0._._, EXC c4 exception 0._._, EXC c6 exception 0._._, FAIL c1 failed 0.wg.w1, GROUP h, PEND c5 pending 0._._; first FAIL c1 failed 0.wg.w1',
	'cancel-group: task-failed first, a task-exception for each other, once; those outside are released') FROM pg_temp.heard() AS h;
SELECT is((SELECT count(*) FROM log WHERE exchange = 'task-group-resolved' AND payload ->> 'taskGroupId' = pg_temp.id('h')::text), 1::bigint, 'cancel-group: the group is resolved once');
SELECT is((SELECT string_agg(DISTINCT payload #>> '{status,runs,0,reasonResolved}', ' ') FROM log WHERE exchange = 'task-exception' AND payload #>> '{status,taskGroupId}' = pg_temp.id('h')::text), 'canceled', 'cancel-group: they are canceled');
SELECT pg_temp.report('c1', 'failed', 0);
SELECT is(pg_temp.heard(), 'FAIL c1 failed 0.wg.w1, GROUP h', 'cancel-group: a repeat sends only its own');

-- ---------------------------------------------------------------------------
-- task-alert
-- ---------------------------------------------------------------------------

SELECT pg_temp.cancel('c5', 's3');
SELECT pg_temp.create('ap', '{"$deadline": "1 day", "routes": ["r.x"], "policy": {"pendingTimeout": 600, "timeoutAlertOnly": true}}'), pg_temp.create('at', '{"$deadline": "1 day", "policy": {"totalTimeout": 600, "timeoutAlertOnly": true}}');
SELECT pg_temp.running('ar', '{"$deadline": "1 day", "tags": {"a": "b"}, "policy": {"runTimeout": 600, "timeoutAlertOnly": true, "claimTimeout": 600}}');
SELECT pg_temp.forget();
CREATE TEMP TABLE alerted AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{ap,ar,at}'::text[]) AS n;
SELECT pg_temp.pass('9 minutes 30 seconds');
SELECT is(pg_temp.heard(), '', 'alert: not before its time');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('ar'), 0)$$, 'alert: a reclaim');
UPDATE alerted SET status = tq.status(pg_temp.id('ar')) WHERE n = 'ar';
SELECT pg_temp.pass('10 minutes');
SELECT is((SELECT string_agg(m, ', ' ORDER BY m COLLATE "C") FROM unnest(string_to_array(pg_temp.heard(), ', ')) AS m), 'task-alert ap pending 0._._, task-alert ar running 0.wg.w1, task-alert at pending 0._._', 'alert: one for each');
SELECT is(tq.status(pg_temp.id(n)), status, 'alert: nothing has changed, ' || n) FROM alerted;
SELECT is((SELECT payload ->> 'timeout' FROM log WHERE exchange = 'task-alert' AND payload #>> '{status,taskId}' = pg_temp.id(n)::text), t, 'alert: which timeout has passed, ' || n) FROM (VALUES ('ap', 'pending-timeout'), ('ar', 'run-timeout'), ('at', 'total-timeout')) AS v (n, t);
SELECT is((SELECT pg_temp.keys(payload) FROM log WHERE exchange = 'task-alert' AND payload #>> '{status,taskId}' = pg_temp.id(n)::text), keys, 'alert: keys of the payload, ' || n) FROM (VALUES ('ap', 'runId status task timeout version'), ('ar', 'runId status task timeout version workerGroup workerId'), ('at', 'runId status task timeout version')) AS v (n, keys);
-- as in a task-exception of the same task and run
SELECT pg_temp.cancel('ap', 'ar', 'at');
SELECT pg_temp.heard();
SELECT is(a.payload - '{status,timeout}'::text[], e.payload - 'status', 'alert: but for that, as task-exception, ' || n) FROM unnest('{ap,ar,at}'::text[]) AS n
	JOIN log AS a ON a.exchange = 'task-alert' AND a.payload #>> '{status,taskId}' = pg_temp.id(n)::text JOIN log AS e ON e.exchange = 'task-exception' AND e.payload #>> '{status,taskId}' = pg_temp.id(n)::text;
SELECT is(a.routing_key || a.cc::text, e.routing_key || e.cc::text, 'alert: also its routing key, and CC, ' || n) FROM unnest('{ap,ar,at}'::text[]) AS n
	JOIN log AS a ON a.exchange = 'task-alert' AND a.payload #>> '{status,taskId}' = pg_temp.id(n)::text JOIN log AS e ON e.exchange = 'task-exception' AND e.payload #>> '{status,taskId}' = pg_temp.id(n)::text;
SELECT is(cc, '{route.r.x}', 'alert: which is that of its routes') FROM log WHERE exchange = 'task-alert' AND payload #>> '{status,taskId}' = pg_temp.id('ap')::text;
RESET tq.clock_offset;
-- once for each run and time
SELECT pg_temp.create('al', '{"$deadline": "1 day", "policy": {"pendingTimeout": 600, "runTimeout": 1200, "claimTimeout": 1200, "totalTimeout": 3000, "timeoutAlertOnly": true}}');
SELECT pg_temp.forget();
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.heard(), 'task-alert al pending 0._._', 'alert: pending too long');
SELECT pg_temp.pass();
SELECT pg_temp.pass('15 minutes');
SELECT is(pg_temp.heard(), '', 'alert: once');
SELECT pg_temp.take('al');
SELECT pg_temp.forget();
SET tq.clock_offset = '34 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('al'), 0)$$, 'alert: a reclaim');
SELECT pg_temp.pass('35 minutes');
SELECT is(pg_temp.heard(), 'task-alert al running 0.wg.w1', 'alert: running too long');
SELECT pg_temp.pass();
SELECT is(pg_temp.heard(), '', 'alert: once');
SET tq.clock_offset = '36 minutes';
SELECT pg_temp.report('al', 'worker-shutdown');
SELECT is(pg_temp.heard(), 'PEND al pending 1._._', 'alert: it is retried');
SELECT pg_temp.pass('46 minutes');
SELECT is(pg_temp.heard(), 'task-alert al pending 1._._', 'alert: of the next run as well');
SELECT pg_temp.pass('50 minutes');
SELECT is(pg_temp.heard(), 'task-alert al pending 1._._', 'alert: the total timeout');
SELECT is((SELECT string_agg(payload ->> 'timeout', ' ' ORDER BY id) FROM log WHERE exchange = 'task-alert' AND payload #>> '{status,taskId}' = pg_temp.id('al')::text), 'pending-timeout run-timeout pending-timeout total-timeout', 'alert: their timeouts');
SELECT pg_temp.pass('2 hours');
SELECT is(pg_temp.heard(), '', 'alert: no more of them');
SELECT is(pg_temp.work('al', 'worker-shutdown'), 'pending 3: scheduled>exception/worker-shutdown retry>exception/worker-shutdown retry>pending', 'alert: long after, it is still retried');
SELECT pg_temp.cancel('al');
SELECT pg_temp.forget();
RESET tq.clock_offset;
-- the retry of a lost run inherits the time, and has its own alert, once
SELECT pg_temp.create('in', '{"$deadline": "1 day", "policy": {"pendingTimeout": 600, "claimTimeout": 180, "lostRetries": 2, "timeoutAlertOnly": true}}');
SET tq.clock_offset = '5 minutes';
SELECT pg_temp.take('in');
SELECT ok(pg_temp.pass('8 minutes') ~ 'claim-expired 1', 'alert: a run is lost');
SELECT pg_temp.forget();
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.heard(), 'task-alert in pending 1._._', 'alert: its retry is pending too long');
SELECT pg_temp.pass();
SELECT is(pg_temp.heard(), '', 'alert: once');
SELECT pg_temp.take('in');
SELECT pg_temp.cancel('in');
SELECT pg_temp.forget();
RESET tq.clock_offset;
-- none for runs that were resolved, claimed or deferred in time
SELECT pg_temp.running('n1', '{"policy": {"runTimeout": 600, "timeoutAlertOnly": true}}'), pg_temp.running('n2', '{"policy": {"pendingTimeout": 600, "timeoutAlertOnly": true}}'), pg_temp.running('n3', '{"policy": {"totalTimeout": 600, "timeoutAlertOnly": true}}');
SELECT pg_temp.running('n4', '{"policy": {"runTimeout": 600, "pendingTimeout": 60, "timeoutAlertOnly": true}}');
SELECT pg_temp.report('n1', 'completed'), pg_temp.report('n3', 'failed'), tq.defer_task(pg_temp.id('n4'), 0, '30 minutes') ->> 'state';
SELECT pg_temp.forget();
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.heard(), 'task-alert n4 pending 0.wg.w1', 'alert: only for a deferred run past its runTimeout, with its last worker');
SELECT is((SELECT payload ->> 'timeout' FROM log ORDER BY id DESC LIMIT 1), 'run-timeout', 'alert: which is its runTimeout');
RESET tq.clock_offset;
SELECT pg_temp.cancel('n2', 'n4');
SELECT pg_temp.heard();

-- ---------------------------------------------------------------------------
-- A run that has risen (6)
-- ---------------------------------------------------------------------------

SELECT tq.set_queue('test/aging', '{"agingInterval": 600}');
SELECT pg_temp.create('r', '{"taskQueueId": "test/aging", "priority": "low"}');
SELECT ok(pg_temp.pass('11 minutes') ~ '(^| )reorder 1', 'aging: it rises');
SELECT pg_temp.take('r');
SELECT is(pg_temp.heard(), 'DEF r unscheduled _._._, PEND r pending 0._._, RUN r running 0.wg.w1', 'aging: which sends nothing; it is claimed');
SELECT is((SELECT payload #>> '{status,priority}' FROM log ORDER BY id DESC LIMIT 1), 'low', 'aging: the message has the priority of the task');
RESET tq.clock_offset;
SELECT pg_temp.cancel('r');
SELECT pg_temp.heard();

-- ---------------------------------------------------------------------------
-- The status in the messages
-- ---------------------------------------------------------------------------

SELECT ok(count(*) > 60, 'there are messages') FROM log;
SELECT is((SELECT string_agg(DISTINCT exchange, ' ' ORDER BY exchange) FROM log), 'task-alert task-completed task-defined task-exception task-failed task-group-resolved task-pending task-running', 'of every exchange');
SELECT is((SELECT string_agg(DISTINCT key, ' ' ORDER BY key) FROM log, jsonb_object_keys(payload -> 'status') AS key),
	'deadline expires priority projectId provisionerId retriesLeft runs schedulerId state taskGroupId taskId taskQueueId workerType', 'keys of every status: those of Taskcluster');
SELECT is((SELECT string_agg(DISTINCT key, ' ' ORDER BY key) FROM log, jsonb_array_elements(payload #> '{status,runs}') AS run, jsonb_object_keys(run) AS key),
	'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'keys of every run: those of Taskcluster');
SELECT is((SELECT string_agg(DISTINCT key, ' ' ORDER BY key) FROM log, jsonb_object_keys(payload) AS key WHERE exchange <> 'task-alert'),
	'expires runId schedulerId status takenUntil task taskGroupId version workerGroup workerId', 'keys of every message: those of Taskcluster');
-- The same task, without and with a policy that does nothing here: the same messages.
SELECT pg_temp.running('same1', '{"taskQueueId": "test/same"}');
SELECT pg_temp.report('same1', 'worker-shutdown'), pg_temp.take('same1'), pg_temp.report('same1', 'failed');
SELECT pg_temp.running('same2', '{"taskQueueId": "test/same", "policy": {"runTimeout": 3600, "pendingTimeout": 3600, "deadLetter": true, "onUnsuccessful": "tolerate"}}');
SELECT pg_temp.report('same2', 'worker-shutdown'), pg_temp.take('same2'), pg_temp.report('same2', 'failed');
CREATE TEMP TABLE same OF tq.exchange_message;
INSERT INTO same SELECT * FROM pg_temp.news();
CREATE FUNCTION pg_temp.shape(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(exchange || ' ' || replace(routing_key, pg_temp.id(name)::text, 'ID') || ' '
		|| regexp_replace(replace(payload::text, pg_temp.id(name)::text, 'ID'), '\d{4}-\d\d-\d\dT[0-9:.]+Z', 'TIME', 'g'), E'\n' ORDER BY id)
	FROM same WHERE payload #>> '{status,taskId}' = pg_temp.id(name)::text OR payload ->> 'taskGroupId' = pg_temp.id(name)::text
$$;
SELECT is(pg_temp.shape('same2'), pg_temp.shape('same1'), 'a policy that does nothing: the same messages');
SELECT is((SELECT count(*) FROM same), 14::bigint, 'seven of each');

SELECT * FROM finish();
