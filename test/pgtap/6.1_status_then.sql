-- doc/spec/taskcluster.md 6.1: the status in a message is that of the transition,
-- whatever the state of the task when the message is read.
\ir messages.psql

-- The expected messages in order, recorded directly after each transition.
CREATE TEMP TABLE noted (n int GENERATED ALWAYS AS IDENTITY, message text, taken_until text, status jsonb);

-- Records a message about a task, that the last call has appended.
CREATE FUNCTION pg_temp.note(exchange text, name text, run_id int DEFAULT NULL) RETURNS void
LANGUAGE sql AS $$
	INSERT INTO noted (message, taken_until, status)
	SELECT concat_ws(' ', exchange, name, run_id), status -> 'runs' -> run_id ->> 'takenUntil', status
	FROM tq.status(pg_temp.id(name)) AS status
$$;

-- The same of task-defined, whose status is that of before the first run (D-06).
CREATE FUNCTION pg_temp.note_defined(name text, retries int) RETURNS void
LANGUAGE sql AS $$
	INSERT INTO noted (message, status)
	SELECT 'DEF ' || name, status || jsonb_build_object('state', 'unscheduled', 'runs', '[]'::jsonb, 'retriesLeft', retries)
	FROM tq.status(pg_temp.id(name)) AS status
$$;

-- ---------------------------------------------------------------------------
-- A task with many runs, in separate transactions
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('a', '{"retries": 3, "tags": {"x": "y"}}');
SELECT pg_temp.note_defined('a', 3), pg_temp.note('PEND', 'a', 0);
SELECT pg_temp.create('a', '{"retries": 3, "tags": {"x": "y"}}');
SELECT pg_temp.note_defined('a', 3), pg_temp.note('PEND', 'a', 0);
SELECT pg_temp.take('a');
SELECT pg_temp.note('RUN', 'a', 0);
SET tq.clock_offset = '5 minutes';
SELECT tq.reclaim_task(pg_temp.id('a'), 0);
RESET tq.clock_offset;
SELECT pg_temp.report('a', 'worker-shutdown');
SELECT pg_temp.note('PEND', 'a', 1);
SELECT pg_temp.report('a', 'worker-shutdown', 0);
SELECT pg_temp.note('PEND', 'a', 1);
SELECT pg_temp.take('a', 'w2');
SELECT pg_temp.note('RUN', 'a', 1);
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('a', 'worker-shutdown', 0);
SELECT pg_temp.note('EXC', 'a', 0);
SET tq.clock_offset = '5 minutes';
SELECT tq.reclaim_task(pg_temp.id('a'), 1);
RESET tq.clock_offset;
SELECT pg_temp.report('a', 'worker-shutdown', 0);
SELECT pg_temp.note('EXC', 'a', 0);
SELECT pg_temp.report('a', 'intermittent-task', 1);
SELECT pg_temp.note('EXC', 'a', 1), pg_temp.note('PEND', 'a', 2);
RESET tq.publish_retried_exceptions;
SELECT tq.claim_task(pg_temp.id('a'), 2, 'wg', 'w3');
SELECT pg_temp.note('RUN', 'a', 2);
SELECT tq.claim_task(pg_temp.id('a'), 2, 'wg', 'w3');
SELECT pg_temp.note('RUN', 'a', 2);
SET tq.clock_offset = '5 minutes';
SELECT tq.reclaim_task(pg_temp.id('a'), 2);
RESET tq.clock_offset;
SELECT tq.claim_task(pg_temp.id('a'), 2, 'wg', 'w3');
SELECT pg_temp.note('RUN', 'a', 2);
SELECT pg_temp.report('a', 'completed');
SELECT pg_temp.note('COMP', 'a', 2);
SELECT pg_temp.report('a', 'completed');
SELECT pg_temp.note('COMP', 'a', 2);
SELECT pg_temp.create('a', '{"retries": 3, "tags": {"x": "y"}}');
SELECT pg_temp.note_defined('a', 3);
SELECT tq.rerun_task(pg_temp.id('a'));
SELECT pg_temp.note('PEND', 'a', 3);
SELECT tq.rerun_task(pg_temp.id('a'));
SELECT pg_temp.note('PEND', 'a', 3);
SET tq.claim_timeout = '1min';
SELECT pg_temp.take('a', 'w4');
SELECT pg_temp.note('RUN', 'a', 3);
RESET tq.claim_timeout;
SELECT is(pg_temp.pass('2 minutes'), 'claim-expired 1', '6.1 a claim expires');
RESET tq.clock_offset;
SELECT pg_temp.note('PEND', 'a', 4);
SELECT pg_temp.cancel('a');
SELECT pg_temp.note('EXC', 'a', 4);
SELECT pg_temp.cancel('a');
SELECT pg_temp.note('EXC', 'a', 4);
SELECT tq.rerun_task(pg_temp.id('a'));
SELECT pg_temp.note('PEND', 'a', 5);
SELECT pg_temp.take('a');
SELECT pg_temp.note('RUN', 'a', 5);
SELECT pg_temp.report('a', 'failed');
SELECT pg_temp.note('FAIL', 'a', 5);
SELECT tq.rerun_task(pg_temp.id('a'));
SELECT pg_temp.note('PEND', 'a', 6);
SELECT pg_temp.take('a');
SELECT pg_temp.note('RUN', 'a', 6);
SELECT is(pg_temp.pass('61 minutes'), 'deadline 1', '6.1 the deadline passes');
RESET tq.clock_offset;
SELECT pg_temp.note('EXC', 'a', 6);

-- created resolved
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.note_defined('u', 5);
SELECT pg_temp.cancel('u');
SELECT pg_temp.note('EXC', 'u', 0);
SELECT tq.rerun_task(pg_temp.id('u'));
SELECT pg_temp.note('PEND', 'u', 1);

-- two runs that are claimed by one call, and end differently
SELECT pg_temp.create(n, '{"taskQueueId": "test/two", "retries": 2}'), pg_temp.note_defined(n, 2), pg_temp.note('PEND', n, 0) FROM unnest('{x,y}'::text[]) AS n;
SELECT is(pg_temp.claims('test/two'), 'x y', '6.1 two are claimed at once');
SELECT pg_temp.note('RUN', 'x', 0), pg_temp.note('RUN', 'y', 0);
SET tq.clock_offset = '5 minutes';
SELECT tq.reclaim_task(pg_temp.id('y'), 0);
RESET tq.clock_offset;
SELECT tq.resolve(pg_temp.ids('x', 'y'), '{0,0}', 'worker-shutdown');
SELECT pg_temp.note('PEND', 'x', 1), pg_temp.note('PEND', 'y', 1);
SELECT is(pg_temp.claims('test/two', 1), 'x', '6.1 one of the retries is claimed');
SELECT pg_temp.note('RUN', 'x', 1);
SET tq.clock_offset = '5 minutes';
SELECT is(pg_temp.claims('test/two', 1), 'y', '6.1 and the other one later');
SELECT pg_temp.note('RUN', 'y', 1);
RESET tq.clock_offset;
SET tq.publish_retried_exceptions = on;
SELECT tq.resolve(pg_temp.ids('x', 'y'), '{0,0}', 'worker-shutdown');
SELECT pg_temp.note('EXC', 'x', 0), pg_temp.note('EXC', 'y', 0);
RESET tq.publish_retried_exceptions;
SELECT tq.resolve(pg_temp.ids('x', 'y'), '{1,1}');
SELECT pg_temp.note('COMP', 'x', 1), pg_temp.note('COMP', 'y', 1);

-- a priority that is changed before anything of the task is published
BEGIN;
SELECT pg_temp.create('p2', '{"priority": "low"}');
SELECT pg_temp.note_defined('p2', 5), pg_temp.note('PEND', 'p2', 0);
SELECT tq.change_task_priority(pg_temp.id('p2'), 'high');
SELECT pg_temp.note('task-priority-changed', 'p2');
SELECT tq.change_task_priority(pg_temp.id('p2'), 'medium');
SELECT pg_temp.note('task-priority-changed', 'p2');
COMMIT;

-- a priority that is changed
SELECT pg_temp.create('p', '{"priority": "low"}');
SELECT pg_temp.note_defined('p', 5), pg_temp.note('PEND', 'p', 0);
SELECT pg_temp.take('p');
SELECT pg_temp.note('RUN', 'p', 0);
SELECT tq.change_task_priority(pg_temp.id('p'), 'high');
SELECT pg_temp.note('task-priority-changed', 'p');
SELECT pg_temp.report('p', 'worker-shutdown');
SELECT pg_temp.note('PEND', 'p', 1);
SELECT tq.change_task_priority(pg_temp.id('p'), 'medium');
SELECT pg_temp.note('task-priority-changed', 'p');
SELECT pg_temp.take('p');
SELECT pg_temp.note('RUN', 'p', 1);
SELECT pg_temp.report('p', 'completed');
SELECT pg_temp.note('COMP', 'p', 1);

-- ---------------------------------------------------------------------------
-- All in one transaction: the last transition is made before the first message is published
-- ---------------------------------------------------------------------------

BEGIN;
SELECT pg_temp.create('o', '{"retries": 1, "$deps": ["a"]}');
SELECT pg_temp.note_defined('o', 1);
SELECT tq.schedule_task(pg_temp.id('o'));
SELECT pg_temp.note('PEND', 'o', 0);
SELECT pg_temp.take('o');
SELECT pg_temp.note('RUN', 'o', 0);
SELECT tq.reclaim_task(pg_temp.id('o'), 0);
SELECT pg_temp.report('o', 'intermittent-task');
SELECT pg_temp.note('PEND', 'o', 1);
SELECT pg_temp.take('o', 'w2');
SELECT pg_temp.note('RUN', 'o', 1);
SELECT pg_temp.report('o', 'worker-shutdown');
SELECT pg_temp.note('EXC', 'o', 1);
SELECT tq.rerun_task(pg_temp.id('o'));
SELECT pg_temp.note('PEND', 'o', 2);
COMMIT;

-- ---------------------------------------------------------------------------
-- All messages are read
-- ---------------------------------------------------------------------------

CREATE TEMP TABLE log AS
	SELECT row_number() OVER (ORDER BY id) AS n, m.* FROM pg_temp.messages_after(0) AS m WHERE exchange <> 'task-group-resolved';
SELECT is(count(*), (SELECT count(*) FROM noted), '6.1 as many messages as were recorded') FROM log;
SELECT is(concat_ws(' ', pg_temp.short(exchange), pg_temp.name((payload #>> '{status,taskId}')::tq.slugid), payload ->> 'runId'), message, format('6.1 message %s is %s', n, message))
FROM log JOIN noted USING (n) ORDER BY n;
SELECT is(payload -> 'status', status, format('6.1 message %s, %s: the status at that time', n, message)) FROM log JOIN noted USING (n) ORDER BY n;
SELECT is(payload ->> 'takenUntil', taken_until, format('6.1 message %s, %s: takenUntil at that time', n, message))
FROM log JOIN noted USING (n) WHERE exchange = 'task-running' ORDER BY n;
SELECT ok(NOT payload ? 'takenUntil', '6.1 only task-running has takenUntil: ' || message) FROM log JOIN noted USING (n) WHERE exchange <> 'task-running' AND n < 12;
SELECT is(string_agg(DISTINCT payload #>> '{task,tags}', ', '), '{"x": "y"}', '6.1 tags in every message of the task') FROM log WHERE payload #>> '{status,taskId}' = pg_temp.id('a')::text;
SELECT is(string_agg(DISTINCT payload #>> '{task,tags}', ', '), '{}', '6.1 an empty object where there are none') FROM log WHERE payload #>> '{status,taskId}' = pg_temp.id('x')::text;

-- the statuses in short form, because the comparison above does not distinguish two ends of a claim
SELECT is(string_agg(DISTINCT payload ->> 'takenUntil', ' '), (SELECT string_agg(DISTINCT taken_until, ' ') FROM noted WHERE message = 'RUN a 2'), '6.1 a claim that was prolonged has two ends')
FROM log WHERE exchange = 'task-running' AND payload #>> '{status,taskId}' = pg_temp.id('a')::text AND payload ->> 'runId' = '2';
SELECT is(string_agg(payload #>> '{status,retriesLeft}', '' ORDER BY n), '333332222211111113333222333333', '6.1 retriesLeft, of all messages of one task')
FROM log WHERE payload #>> '{status,taskId}' = pg_temp.id('a')::text;

-- reading changes nothing
SELECT is((SELECT md5(string_agg(m::text, E'\n' ORDER BY id)) FROM pg_temp.messages_after(0) AS m), (SELECT md5(string_agg(m::text, E'\n' ORDER BY id)) FROM pg_temp.messages_after(0) AS m), '6.1 read again, all is the same');
SELECT is((SELECT count(*) FROM pg_temp.messages_after(0) AS m LEFT JOIN log ON log.id = m.id AND log.payload = m.payload
	AND log.routing_key = m.routing_key AND log.cc = m.cc AND log.published = m.published AND log.exchange = m.exchange
	WHERE log.id IS NULL AND m.exchange <> 'task-group-resolved'), 0::bigint, '6.1 and not changed');
SELECT is((SELECT count(*) FROM log, LATERAL tq.message(log.id) AS m WHERE ROW(m.id, m.exchange, m.routing_key, m.cc, m.payload, m.published)
	IS DISTINCT FROM ROW(log.id, log.exchange, log.routing_key, log.cc, log.payload, log.published)), 0::bigint, '6.1 message() gives the same');
SELECT pg_temp.report('o', 'canceled');
SELECT is((SELECT count(*) FROM log, LATERAL tq.message(log.id) AS m WHERE m.payload IS DISTINCT FROM log.payload), 0::bigint, '6.1 also after one more transition');

SELECT * FROM finish();
