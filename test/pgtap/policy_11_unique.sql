-- doc/spec/policy.md 11.1: uniqueKey.
BEGIN;
\ir policy.psql

-- Creates a task with the key 'k' in the queue 'test/u', and this for its policy
-- and for itself; the name of the task that is there then.
CREATE FUNCTION pg_temp.make(name text, policy jsonb DEFAULT '{}', overrides jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.name((tq.create_task(pg_temp.id(name), pg_temp.def(name, '{"taskQueueId": "test/u"}' || overrides
		|| jsonb_build_object('policy', '{"uniqueKey": "k"}' || policy))) ->> 'taskId')::tq.slugid)
$$;
-- An element of create_tasks() like that.
CREATE FUNCTION pg_temp.element(name text, policy jsonb DEFAULT '{}', overrides jsonb DEFAULT '{}') RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('taskId', pg_temp.id(name)::text, 'task', pg_temp.def(name, '{"taskQueueId": "test/u"}' || overrides
		|| jsonb_build_object('policy', '{"uniqueKey": "k"}' || policy)))
$$;
-- The tasks that exist, by name.
CREATE FUNCTION pg_temp.there() RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(metadata ->> 'name', ' ' ORDER BY metadata ->> 'name'), '') FROM tq_internal.task
$$;
CREATE FUNCTION pg_temp.payload(name text) RETURNS jsonb
LANGUAGE sql AS $$ SELECT tq.task(pg_temp.id(name)) -> 'payload' $$;
-- The rows of keys, with the names of their tasks.
CREATE FUNCTION pg_temp.rows() RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(concat_ws(' ', u.key, CASE u.queue WHEN 0 THEN 'database' END, coalesce(t.metadata ->> 'name', '?')), ', ' ORDER BY u.key, u.queue), '')
	FROM tq_internal.unique_key u LEFT JOIN tq_internal.task t ON t.id = u.task
$$;
-- Gauges of a queue: unscheduled, delayed, pending, running.
CREATE FUNCTION pg_temp.gauges() RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', s.blocked, s.delayed, s.pending, s.running) = concat_ws(' ',
			(SELECT count(*) FROM tq_internal.unscheduled), (SELECT count(*) FROM tq_internal.delayed),
			(SELECT count(*) FROM tq_internal.pending), (SELECT count(*) FROM tq_internal.run WHERE state = 2)) || ''
	FROM tq.queue_stats s WHERE s.task_queue_id = 'test/u'
$$;
SAVEPOINT s;

-- ---------------------------------------------------------------------------
-- return
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.make('a'), 'a', 'return: the first task');
SELECT is(pg_temp.rows(), 'k a', 'return: has the key');
SELECT is(pg_temp.make('b'), 'a', 'return: create_task() gives the status of the task that is there');
SELECT is((tq.define_task(pg_temp.id('b'), pg_temp.def('b', '{"taskQueueId": "test/u", "policy": {"uniqueKey": "k"}}')) ->> 'taskId')::tq.slugid,
	pg_temp.id('a'), 'return: define_task() too');
SELECT is(tq.enqueue('test/u', task_id => pg_temp.id('b'), policy => '{"uniqueKey": "k"}'), pg_temp.id('a'), 'return: enqueue() gives its id');
SELECT is(tq.enqueue('test/u', policy => '{"uniqueKey": "k"}'), pg_temp.id('a'), 'return: with an id of its own too');
SELECT is(tq.enqueue_tasks('test/u', '{"{}", "{}"}', policy => '{"uniqueKey": "k"}'), pg_temp.ids('a', 'a')::text[], 'return: enqueue_tasks() gives it in that place');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('b'), pg_temp.element('c', '{"uniqueKey": "other"}'))), 1::bigint, 'return: create_tasks() does not count it');
SELECT is(pg_temp.there(), 'a c', 'return: nothing else is there');
SELECT is((SELECT count(*) FROM tq_internal.task_key), 2::bigint, 'return: nor a key');
SELECT is(pg_temp.gauges(), 'true', 'return: counted as rows are');
SELECT is(pg_temp.make('d', '{}', '{"taskGroupId": "A8YKdqTBTpuQnJhQfqlNzA"}'), 'a', 'return: a task of another group');
SELECT is((SELECT count(*) FROM tq_internal.task_group), 0::bigint, 'return: the group is not joined');
SELECT is(pg_temp.make('d', '{}', '{"$deps": ["nowhere"]}'), 'a', 'return: its dependencies do not matter');
SELECT is(pg_temp.make('d', '{}', '{"taskQueueId": "test/v"}'), 'd', 'another queue has keys of its own');
SELECT is(pg_temp.make('e', '{"uniqueKey": "K"}'), 'e', 'case matters');
SELECT is(pg_temp.make('f', '{"uniqueScope": "database"}'), 'f', 'database: keys of queues are others');
SELECT is(pg_temp.make('g', '{"uniqueScope": "database"}', '{"taskQueueId": "test/w"}'), 'f', 'database: in another queue');
SELECT is(pg_temp.rows(), 'K e, k database f, k a, k d, other c', 'the rows of all');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- States
-- ---------------------------------------------------------------------------

SELECT pg_temp.make('a') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT is(pg_temp.make('b'), 'a', 'states: running');
SELECT pg_temp.report('a', 'worker-shutdown') \g /dev/null
SELECT is(pg_temp.look('a'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'states: (it is retried)');
SELECT is(pg_temp.make('b'), 'a', 'states: pending again');
SELECT pg_temp.work('a', 'completed') \g /dev/null
SELECT is(pg_temp.make('b'), 'b', 'states: completed no longer');
SELECT is(pg_temp.rows(), 'k b', 'states: the other task has the key');
SELECT pg_temp.report('b', 'canceled') \g /dev/null
SELECT is(pg_temp.make('c'), 'c', 'states: exception no longer');
SELECT pg_temp.work('c', 'failed') \g /dev/null
SELECT is(pg_temp.make('d', '{"uniqueStates": ["failed"]}'), 'c', 'states: failed, if they say so');
SELECT is(pg_temp.make('d', '{"uniqueStates": ["completed", "exception", "pending"]}'), 'd', 'states: those of the policy that is given');
SELECT is(pg_temp.make('e', '{"uniqueStates": ["completed"]}'), 'e', 'states: even if the task is pending');
SELECT is(pg_temp.make('f', '{}', '{"$deps": ["e"]}'), 'e', 'states: the last one has the key');
ROLLBACK TO s;
SELECT pg_temp.make('a', '{}', '{"$deps": ["a"]}') \g /dev/null
SELECT is(pg_temp.state('a'), 'unscheduled', 'states: (unscheduled)');
SELECT is(pg_temp.make('b'), 'a', 'states: unscheduled');
SELECT is(pg_temp.make('b', '{"uniqueStates": ["pending"]}'), 'b', 'states: not unscheduled');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Period
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.make('a', '{"uniquePeriod": "1 day"}'), 'a', 'period: the first');
SELECT pg_temp.work('a', 'completed') \g /dev/null
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 day"}'), 'a', 'period: completed');
SET tq.clock_offset = '23 hours 59 minutes';
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 day"}'), 'a', 'period: nearly over');
SAVEPOINT t;
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 hour"}'), 'b', 'period: that of the policy that is given');
ROLLBACK TO t;
SELECT is(pg_temp.make('b'), 'b', 'period: none in another policy');
ROLLBACK TO t;
SET tq.clock_offset = '24 hours 1 minute';
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 day"}'), 'b', 'period: over');
SET tq.clock_offset = '0';
ROLLBACK TO s;
SELECT pg_temp.make('a', '{"uniquePeriod": "1 hour"}', '{"$deadline": "1 day"}') \g /dev/null
SET tq.clock_offset = '2 hours';
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 hour"}'), 'a', 'period: over, but pending');
ROLLBACK TO s;
-- A period is kept, whatever the retention is.
SELECT tq.enqueue('test/u', task_id => pg_temp.id('a'), name => 'a', policy => '{"uniqueKey": "k", "uniquePeriod": "3 days", "retainCompleted": "1 hour"}') \g /dev/null
SELECT pg_temp.work('a', 'completed') \g /dev/null
SELECT pg_temp.pass('2 days 23 hours') \g /dev/null
SELECT is(pg_temp.make('b', '{"uniquePeriod": "3 days"}'), 'a', 'period: the task is kept so long');
SELECT pg_temp.pass('3 days 3 hours') \g /dev/null
SELECT is(pg_temp.there(), '', 'period: and not longer');
SELECT is(pg_temp.rows(), '', 'period: its key goes with it');
SET tq.clock_offset = '0';
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- reject
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.make('a', '{"onConflict": "reject"}'), 'a', 'reject: the first');
SELECT pg_temp.throws($$SELECT pg_temp.make('b', '{"onConflict": "reject"}')$$, 'TQ409', 'reject: create_task()');
SELECT is(pg_temp.error($$SELECT pg_temp.make('b', '{"onConflict": "reject"}')$$) ->> 'detail', format('Task "%s" holds "k" (uniqueKey).', pg_temp.id('a')), 'reject: says which');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/u', policy => '{"uniqueKey": "k", "onConflict": "reject"}')$$, 'TQ409', 'reject: enqueue()');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.element('c', '{"uniqueKey": "new"}'), pg_temp.element('b', '{"onConflict": "reject"}')))$$, 'TQ409', 'reject: a whole batch');
SELECT pg_temp.throws($$SELECT tq.enqueue_tasks('test/u', '{"{}", "{}"}', policy => '{"uniqueKey": "twice", "onConflict": "reject"}')$$, 'TQ409', 'reject: within a batch');
SELECT is(pg_temp.rows(), 'k a', 'reject: no row of a key is left');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"taskQueueId": "test/u", "policy": {"uniqueKey": "k", "onConflict": "reject"}}'))$$, 'a', 'reject: a repeat is a repeat');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- replace
-- ---------------------------------------------------------------------------

\set replace '{"onConflict": "replace"}'
SELECT is(pg_temp.make('a', :'replace', '{"payload": {"n": 1}}'), 'a', 'replace: the first');
SELECT pg_temp.look('a') AS before \gset
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}, "priority": "high"}'), 'a', 'replace: a pending task');
SELECT is(pg_temp.payload('a'), '{"n": 2}', 'replace: its payload');
SELECT is(tq.task(pg_temp.id('a')) ->> 'priority', 'high', 'replace: its priority');
SELECT is((SELECT priority::int FROM tq_internal.pending), 5, 'replace: that of its run');
SELECT is(tq.task(pg_temp.id('a')) #>> '{metadata,name}', 'a', 'replace: nothing else');
SELECT is(pg_temp.look('a'), :'before', 'replace: it is as it was');
SELECT is(pg_temp.there(), 'a', 'replace: no other task');
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 3}, "delay": 600}'), 'a', 'replace: with a delay');
SELECT is((SELECT count(*) FROM tq_internal.delayed), 1::bigint, 'replace: it is delayed');
SELECT is((SELECT count(*) FROM tq_internal.pending), 0::bigint, 'replace: and no longer pending');
SELECT is(pg_temp.wait('a') BETWEEN '599 s' AND '700 s', true, 'replace: from now on');
SELECT is(tq.task(pg_temp.id('a')) ->> 'delay', '600', 'replace: the definition says so');
SELECT is(pg_temp.gauges(), 'true', 'replace: counted as rows are');
SELECT is((SELECT count(*) FROM tq.claim_work('test/u', 'g', 'w')), 0::bigint, 'replace: it is not claimed');
SET tq.clock_offset = '9 minutes';
SELECT pg_temp.make('b', :'replace', '{"payload": {"n": 4}, "delay": 600}') \g /dev/null
SELECT pg_temp.pass('18 minutes') \g /dev/null
SELECT is((SELECT count(*) FROM tq.claim_work('test/u', 'g', 'w')), 0::bigint, 'replace: debounced');
SELECT pg_temp.pass('19 minutes 10 seconds') \g /dev/null
SELECT is((SELECT payload FROM tq.claim_work('test/u', 'g', 'w')), '{"n": 4}', 'replace: at last');
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 5}}'), 'a', 'replace: a running task');
SELECT is(pg_temp.payload('a'), '{"n": 4}', 'replace: stays as it is');
SELECT is(pg_temp.gauges(), 'true', 'replace: counted as rows are');
SELECT pg_temp.report('a', 'worker-shutdown') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 5}}'), 'a', 'replace: a task that was claimed');
SELECT is(pg_temp.payload('a'), '{"n": 4}', 'replace: stays as it is, too');
SET tq.clock_offset = '0';
ROLLBACK TO s;
SELECT pg_temp.make('a', :'replace', '{"delay": 600}') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}}'), 'a', 'replace: a delayed task by one at once');
SELECT is((SELECT payload FROM tq.claim_work('test/u', 'g', 'w')), '{"n": 2}', 'replace: can be claimed');
ROLLBACK TO s;
SELECT pg_temp.make('a', :'replace', '{"delay": 600, "$deadline": "20 minutes"}') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}, "delay": 1800}'), 'a', 'replace: a delay past the deadline');
SELECT is(pg_temp.wait('a'), '600 s'::interval, 'replace: leaves the time');
SELECT is(pg_temp.payload('a'), '{"n": 2}', 'replace: not the payload');
SELECT is(tq.task(pg_temp.id('a')) ->> 'delay', '600', 'replace: and the delay of the definition');
ROLLBACK TO s;
-- What was replaced can be redriven, with the delay that its definition has.
SELECT pg_temp.make('a', '{"deadLetter": true}', '{"delay": 600, "$deadline": "20 minutes"}') \g /dev/null
SELECT pg_temp.make('b', :'replace', '{"delay": 1800}') \g /dev/null
SELECT pg_temp.pass('21 minutes') \g /dev/null
SELECT is(tq.redrive(pg_temp.id('a')) ->> 'state', 'pending', 'replace: it can be redriven after its deadline');
SET tq.clock_offset = '0';
ROLLBACK TO s;
SELECT pg_temp.make('a', '{"deadLetter": true}', '{"$deadline": "20 minutes", "$deps": ["a"]}') \g /dev/null
SELECT tq.rerun_task(pg_temp.id('a'), '2 hours') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}, "delay": 1800}'), 'a', 'replace: a task with a later deadline');
SELECT ok(pg_temp.wait('a') BETWEEN '1800 s' AND '1860 s', 'replace: takes a delay up to that');
SELECT is(tq.task(pg_temp.id('a')) ->> 'delay', NULL, 'replace: its definition does not, if its own deadline is earlier');
SELECT pg_temp.pass('3 hours') \g /dev/null
SELECT is(tq.redrive(pg_temp.id('a')) ->> 'state', 'pending', 'replace: and can be redriven after both');
SET tq.clock_offset = '0';
ROLLBACK TO s;
SELECT pg_temp.make('a', :'replace', '{"$deps": ["a"]}') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}, "delay": 600, "priority": "low"}'), 'a', 'replace: an unscheduled task');
SELECT is(pg_temp.state('a'), 'unscheduled', 'replace: stays so');
SELECT tq.schedule_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.wait('a'), '600 s'::interval, 'replace: its delay counts from its schedule');
SELECT is((SELECT priority::int FROM tq_internal.delayed), 3, 'replace: its priority');
ROLLBACK TO s;
SELECT pg_temp.make('a', :'replace') \g /dev/null
SELECT pg_temp.take('a') \g /dev/null
SELECT tq.defer_task(pg_temp.id('a'), 0, interval '1 minute') \g /dev/null
SELECT is(pg_temp.make('b', :'replace', '{"payload": {"n": 2}}'), 'a', 'replace: a deferred task');
SELECT is(pg_temp.payload('a'), '{"task": "a"}', 'replace: was claimed');
ROLLBACK TO s;
SELECT pg_temp.make('a', '{"onConflict": "replace", "uniqueScope": "database"}') \g /dev/null
SELECT is(pg_temp.make('b', '{"onConflict": "replace", "uniqueScope": "database"}', '{"taskQueueId": "test/v"}'), 'a', 'replace: a task of another queue');
SELECT is(pg_temp.payload('a'), '{"task": "a"}', 'replace: stays as it is');
ROLLBACK TO s;
SELECT is(cardinality(ARRAY(SELECT DISTINCT unnest(tq.enqueue_tasks('test/u', '{"{\"n\": 1}", "{\"n\": 2}", "{\"n\": 3}"}', policy => '{"uniqueKey": "k", "onConflict": "replace"}')))), 1, 'replace: within a batch');
SELECT is((SELECT payload FROM tq_internal.task), '{"n": 3}', 'replace: the last one wins');
ROLLBACK TO s;
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('a'), pg_temp.element('b', '{"onConflict": "replace", "uniqueStates": ["failed"]}', '{"payload": {"n": 2}}'))), 1::bigint, 'replace: within a batch, whatever the states');
SELECT is(pg_temp.payload('a'), '{"n": 2}', 'replace: the first one is there');
ROLLBACK TO s;
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('a', '{}', '{"delay": 600}'), pg_temp.element('b', '{"onConflict": "replace"}'))), 1::bigint, 'replace: within a batch, a delayed task by one at once');
SELECT is((SELECT bool_and(p.has_detail) FROM tq_internal.pending p) IS NOT DISTINCT FROM (SELECT count(*) > 0 FROM tq_internal.run_detail), true, 'replace: its row knows of its detail');
ROLLBACK TO s;
-- Its timeouts go with its time.
SELECT pg_temp.make('a', '{"onConflict": "replace", "pendingTimeout": "5 minutes"}') \g /dev/null
SELECT pg_temp.make('b', '{"onConflict": "replace", "pendingTimeout": "5 minutes"}', '{"delay": 600}') \g /dev/null
SELECT pg_temp.pass('12 minutes') \g /dev/null
SELECT is(pg_temp.state('a'), 'pending', 'replace: the pending timeout counts from its new time');
SELECT pg_temp.pass('16 minutes') \g /dev/null
SELECT is(pg_temp.state('a'), 'exception', 'replace: and is over then');
SET tq.clock_offset = '0';
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Repeats, batches, dependencies
-- ---------------------------------------------------------------------------

SELECT pg_temp.make('a') \g /dev/null
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a', '{"taskQueueId": "test/u", "policy": {"uniqueKey": "k"}}'))$$, 'a', 'repeat: of the holder');
SELECT pg_temp.throws($$SELECT pg_temp.make('a', '{}', '{"payload": {}}')$$, 'TQ409', 'repeat: of the holder, but another definition');
SELECT pg_temp.report('a', 'canceled') \g /dev/null
SELECT pg_temp.make('b') \g /dev/null
SELECT is(pg_temp.make('a'), 'a', 'repeat: of a task that holds its key no longer');
SELECT is(pg_temp.rows(), 'k b', 'repeat: takes nothing away');
SELECT is(pg_temp.make('c'), 'b', 'repeat: the other task still has the key');
SELECT tq.delete_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.rows(), '', 'delete: the key goes with the task');
SELECT is(pg_temp.make('a'), 'a', 'repeat: of a task whose key has no row');
SELECT is(pg_temp.rows(), 'k a', 'repeat: the row names that task');
SELECT is(pg_temp.make('c'), 'c', 'repeat: which does not hold it');
ROLLBACK TO s;
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('b'), pg_temp.element('a'), pg_temp.element('x', '{"uniqueKey": "l"}'),
	pg_temp.element('c', '{"uniqueStates": ["failed"]}'), pg_temp.element('y', '{"uniqueKey": "l"}'), pg_temp.element('z', '{"uniqueKey": null}'))), 3::bigint, 'batch: one for each key');
SELECT is(pg_temp.there(), 'b x z', 'batch: the first ones, whatever the states');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('b'), pg_temp.element('a'), pg_temp.element('x', '{"uniqueKey": "l"}'),
	pg_temp.element('c', '{"uniqueStates": ["failed"]}'), pg_temp.element('y', '{"uniqueKey": "l"}'), pg_temp.element('z', '{"uniqueKey": null}'))), 1::bigint, 'batch: by its own states');
SELECT is(pg_temp.there(), 'b c x z', 'batch: the one that the others do not matter to');
ROLLBACK TO s;
SELECT pg_temp.make('h') \g /dev/null
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.element('a'), pg_temp.element('d', '{"uniqueKey": null}', '{"$deps": ["a"]}')))$$, 'TQ409', 'dependency: on a task that is not created');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('a'), pg_temp.element('d', '{"uniqueKey": null}', '{"$deps": ["h"]}'))), 1::bigint, 'dependency: on the one that is there');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('p', '{"uniqueKey": "p"}'), pg_temp.element('q', '{"uniqueKey": "q"}', '{"$deps": ["p"]}'))), 2::bigint, 'dependency: between new tasks');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('p', '{"uniqueKey": "p"}'), pg_temp.element('q', '{"uniqueKey": "q"}', '{"$deps": ["p"]}'))), 0::bigint, 'dependency: a repeat of both');
SELECT is(tq.create_tasks(jsonb_build_array(pg_temp.element('r', '{"uniqueKey": "p", "onConflict": "replace"}', '{"payload": {"r": 1}}'), pg_temp.element('t', '{"uniqueKey": "t"}', '{"$deps": ["p", "h"]}'))), 1::bigint, 'dependency: on a task that is replaced');
SELECT is(pg_temp.payload('p'), '{"r": 1}', 'dependency: it is');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.element('a', '{}', '{"$deps": ["d2"]}'), pg_temp.element('d2', '{}', '{"$deps": ["a"]}')))$$, 'TQ400', 'dependency: a cycle is one, even if another task holds the key');
ROLLBACK TO s;

-- Savepoints
SAVEPOINT t;
SELECT pg_temp.make('a') \g /dev/null
ROLLBACK TO t;
SELECT is(pg_temp.rows(), '', 'savepoint: rolled back');
SELECT is(pg_temp.make('b'), 'b', 'savepoint: the key is free');
SAVEPOINT t;
SELECT tq.cancel_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.make('c'), 'c', 'savepoint: free after the end');
ROLLBACK TO t;
SELECT is(pg_temp.make('c'), 'b', 'savepoint: which was rolled back');
ROLLBACK TO s;

-- Settings of the queue give the rest of a policy.
SELECT tq.set_queue('test/u', '{"policy": {"onConflict": "reject", "uniqueScope": "database"}}') \g /dev/null
SELECT pg_temp.make('a') \g /dev/null
SELECT is(pg_temp.rows(), 'k database a', 'default policy: the scope');
SELECT pg_temp.throws($$SELECT pg_temp.make('b')$$, 'TQ409', 'default policy: the action');
SELECT is(pg_temp.make('b', '{"onConflict": "return"}'), 'a', 'default policy: what a task gives wins');
ROLLBACK TO s;
-- A task that is not created needs no room.
SELECT tq.set_queue('test/u', '{"maxPending": 1}') \g /dev/null
SELECT pg_temp.make('a') \g /dev/null
SELECT is(pg_temp.make('b'), 'a', 'maxPending: a task that is not created');
SELECT pg_temp.throws($$SELECT pg_temp.make('b', '{"uniqueKey": "l"}')$$, 'TQ409', 'maxPending: one that would be');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Rerun, redrive, delete
-- ---------------------------------------------------------------------------

SELECT pg_temp.make('a') \g /dev/null
SELECT pg_temp.report('a', 'canceled') \g /dev/null
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.state('a'), 'pending', 'rerun: of the holder');
SELECT is(pg_temp.make('b'), 'a', 'rerun: it holds its key again');
SELECT pg_temp.report('a', 'canceled') \g /dev/null
SELECT pg_temp.make('b') \g /dev/null
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'rerun: while another one holds it');
SELECT is(pg_temp.error($$SELECT tq.rerun_task(pg_temp.id('a'))$$) ->> 'detail', format('Task "%s" holds it (uniqueKey).', pg_temp.id('b')), 'rerun: says which');
SELECT pg_temp.report('b', 'canceled') \g /dev/null
SELECT is(pg_temp.rows(), 'k b', 'rerun: (the key)');
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.rows(), 'k a', 'rerun: takes the key');
SELECT is(pg_temp.make('c'), 'a', 'rerun: and holds it');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'a', 'rerun: a repeat');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('b'))$$, 'TQ409', 'rerun: the other one now');
SELECT tq.delete_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.rows(), '', 'delete: no row');
SELECT tq.rerun_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.rows(), 'k b', 'rerun: a key without a row');
SELECT is(pg_temp.make('c'), 'b', 'rerun: is held');
ROLLBACK TO s;
SELECT pg_temp.make('a', '{"uniqueStates": ["failed"]}'), pg_temp.make('b', '{"uniqueStates": ["failed"]}') \g /dev/null
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.rows(), 'k b', 'rerun: of a task that is not resolved takes no key');
ROLLBACK TO s;
-- An unscheduled task: its rerun, with a deadline too, takes the key if it is free.
SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a', '{"taskQueueId": "test/u", "policy": {"uniqueKey": "k", "uniqueStates": ["exception"]}}')) \g /dev/null
SELECT pg_temp.make('b', '{"uniqueStates": ["exception"]}') \g /dev/null
SAVEPOINT r;
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.rows(), 'k a', 'rerun: of an unscheduled task takes the key');
ROLLBACK TO r;
SELECT tq.rerun_task(pg_temp.id('a'), '1 hour') \g /dev/null
SELECT is(pg_temp.rows(), 'k a', 'rerun: and with a deadline');
ROLLBACK TO r;
SELECT tq.cancel_task(pg_temp.id('b')) \g /dev/null
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'rerun: of an unscheduled task, while another one holds its key');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'), '1 hour')$$, 'TQ409', 'rerun: and with a deadline');
SELECT is(pg_temp.rows() || ' ' || pg_temp.state('a'), 'k b unscheduled', 'rerun: which changes nothing');
ROLLBACK TO s;
-- A stale row, as a deletion leaves it that finds the row locked.
SELECT pg_temp.make('a') \g /dev/null
UPDATE tq_internal.unique_key SET task = 1000000000;
SELECT is(pg_temp.make('b', '{"uniquePeriod": "1 day"}'), 'b', 'delete: a row of a task that is gone');
SELECT tq.delete_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.rows(), 'k b', 'delete: a row of another task stays');
ROLLBACK TO s;
-- Expiry
SELECT pg_temp.make('a', '{"uniqueStates": ["exception"], "uniqueScope": "database"}', '{"$expires": "2 hours"}') \g /dev/null
SELECT pg_temp.pass('70 minutes') \g /dev/null
SELECT is(pg_temp.make('b', '{"uniqueStates": ["exception"], "uniqueScope": "database"}'), 'a', 'expiry: before it');
SELECT pg_temp.pass('3 hours') \g /dev/null
SELECT is(pg_temp.there() || pg_temp.rows(), '', 'expiry: task and key');
SELECT is(pg_temp.make('b', '{"uniqueStates": ["exception"], "uniqueScope": "database"}'), 'b', 'expiry: the key is free');
SET tq.clock_offset = '0';
ROLLBACK TO s;
-- Dead letters: by a rerun, and by a new task.
SELECT pg_temp.make('a', '{"deadLetter": true, "retryOn": []}') \g /dev/null
SELECT pg_temp.work('a', 'failed') \g /dev/null
SELECT pg_temp.make('b', '{}', '{"$deadline": "1 day"}') \g /dev/null
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('a'))$$, 'TQ409', 'redrive: while another one holds the key');
SET client_min_messages = error;
SELECT is(tq.redrive_queue('test/u'), 0::bigint, 'redrive_queue: too');
SELECT is(pg_temp.letters('test/u'), 'a failed', 'redrive_queue: keeps the letter');
SAVEPOINT t;
SELECT pg_temp.report('b', 'canceled') \g /dev/null
SELECT is(tq.redrive(pg_temp.id('a')) ->> 'state', 'pending', 'redrive: when the key is free');
SELECT is(pg_temp.rows(), 'k a', 'redrive: takes the key');
ROLLBACK TO t;
SET tq.clock_offset = '2 hours';
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('a'))$$, 'TQ409', 'redrive: as a new task, which is never another one');
SELECT is(tq.redrive_queue('test/u'), 0::bigint, 'redrive_queue: too');
SELECT is(pg_temp.letters('test/u'), 'a failed', 'redrive_queue: keeps the letter');
SELECT pg_temp.report('b', 'canceled') \g /dev/null
SELECT is(tq.redrive_queue('test/u'), 1::bigint, 'redrive_queue: when the key is free');
SELECT is(pg_temp.rows(), 'k a', 'redrive: a new task has the key') WHERE (SELECT u.task <> t.id FROM tq_internal.unique_key u, tq_internal.task t WHERE t.task_id = pg_temp.id('a'));
SET tq.clock_offset = '0';
ROLLBACK TO s;
SELECT pg_temp.make('a', '{"deadLetter": true, "uniqueStates": ["failed"], "uniquePeriod": "1 day", "onConflict": "replace"}') \g /dev/null
SELECT pg_temp.work('a', 'failed') \g /dev/null
SET tq.clock_offset = '2 hours';
SELECT isnt((tq.redrive(pg_temp.id('a')) ->> 'taskId')::tq.slugid, pg_temp.id('a'), 'redrive: the dead task is not in its own way');
SET tq.clock_offset = '0';
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Scopes
-- ---------------------------------------------------------------------------

CREATE ROLE producer;
SELECT tq.grant_scopes('producer', '{queue:create-task:*,queue:scheduler-id:*}') \g /dev/null
SELECT pg_temp.make('a', '{}', '{"scopes": ["secret"]}') \g /dev/null
CREATE TEMP TABLE b AS SELECT pg_temp.element('b') -> 'task' AS task;
GRANT SELECT ON b TO producer;
SET LOCAL ROLE producer;
SELECT is(tq.enqueue('test/u', policy => '{"uniqueKey": "k"}'), pg_temp.id('a'), 'scopes: enqueue() shows the id');
SELECT is(pg_temp.error($$SELECT tq.create_task(pg_temp.id('b'), task) FROM b$$) ->> 'sqlstate', 'TQ403', 'scopes: create_task() does not show a status that the caller may not see');
SELECT is(pg_temp.error($$SELECT tq.enqueue('test/u', policy => '{"uniqueKey": "k", "onConflict": "replace"}')$$) ->> 'sqlstate', 'TQ403', 'scopes: who may not create the task may not replace its payload');
RESET ROLE;
SELECT tq.grant_scopes('producer', '{secret,queue:status:*}') \g /dev/null
SET LOCAL ROLE producer;
SELECT is((SELECT tq.create_task(pg_temp.id('b'), task) FROM b) ->> 'taskId', pg_temp.id('a')::text, 'scopes: who may see it sees it');
SELECT is(tq.enqueue('test/u', '{"new": true}', policy => '{"uniqueKey": "k", "onConflict": "replace"}'), pg_temp.id('a'), 'scopes: who may create it may replace it');
RESET ROLE;
SELECT is(pg_temp.payload('a'), '{"new": true}', 'scopes: it is replaced');

SELECT * FROM finish();
ROLLBACK;
