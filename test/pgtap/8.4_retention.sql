-- doc/spec/taskcluster.md 8.4: tasks whose retention is over are deleted.
BEGIN;
\ir helper.psql

-- Enqueues a task, and resolves it unless reason is NULL.
CREATE FUNCTION pg_temp.made(name text, reason text, policy jsonb DEFAULT NULL, grp text DEFAULT NULL, deps text[] DEFAULT '{}', expires interval DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.enqueue('test/q-' || name, task_id => pg_temp.id(name), name => name, policy => policy, retries => 0, deadline => '1 day', expires => expires,
		task_group_id => pg_temp.id(grp), dependencies => ARRAY(SELECT pg_temp.id(d) FROM unnest(deps) AS d));
	IF reason IS NOT NULL THEN
		PERFORM pg_temp.take(name);
		RETURN pg_temp.report(name, reason);
	END IF;
	RETURN pg_temp.look(name);
END
$$;

-- Names of the tasks that exist.
CREATE FUNCTION pg_temp.left() RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(metadata ->> 'name', ' ' ORDER BY metadata ->> 'name' COLLATE "C") FROM tq_internal.task
$$;

-- A time of a task: created, deadline or expires.
CREATE FUNCTION pg_temp.time_of(name text, field text) RETURNS timestamptz
LANGUAGE sql AS $$
	SELECT (tq.task(pg_temp.id(name)) ->> field)::timestamptz
$$;

CREATE FUNCTION pg_temp.expires_after_deadline(name text) RETURNS interval
LANGUAGE sql AS $$
	SELECT pg_temp.time_of(name, 'expires') - pg_temp.time_of(name, 'deadline')
$$;

-- the stored expires: the longer retention after the deadline
SELECT pg_temp.made('c', 'completed');
SELECT pg_temp.made('f', 'failed');
SELECT pg_temp.made('x', 'malformed-payload');
SELECT pg_temp.made('given', 'completed', expires => '1 year');
SELECT pg_temp.resolved('created', 'completed', '{"$deadline": "1 hour"}');
SELECT pg_temp.made('short', 'completed', '{"retainCompleted": 3600}');
SELECT pg_temp.made('shortf', 'failed', '{"retainCompleted": 3600, "retainFailed": "2 days"}');
SELECT pg_temp.made('long', 'completed', '{"retainCompleted": "60 days"}');
SELECT is(pg_temp.expires_after_deadline(n), i, '8.4 expires: ' || n)
FROM (VALUES ('c', interval '30 days'), ('short', '30 days'), ('shortf', '2 days'), ('long', '60 days')) AS v (n, i);
SELECT is(pg_temp.time_of('given', 'expires'), pg_temp.time_of('given', 'deadline') + interval '1 year', '8.4 expires: given');
SELECT is(pg_temp.time_of('created', 'expires'), pg_temp.next_year(pg_temp.time_of('created', 'deadline')), '8.4 expires: created');
SELECT is((SELECT count(*) FROM tq_internal.task WHERE expires_given IS NULL), 6::bigint, '8.4 which of them go by retention is a column that is NULL');
SET tq.retain_completed = '40d';
SELECT pg_temp.made('later', 'failed');
SELECT is(pg_temp.expires_after_deadline('later'), interval '40 days', '8.4 expires: the longer of the two settings');
RESET tq.retain_completed;
SAVEPOINT s;

-- the retention of the outcome, of the policy first
SELECT is(pg_temp.pass(), '', '8.4 retention: nothing at once');
SELECT is(pg_temp.pass('59 minutes'), '', '8.4 retention: nor before an hour');
SELECT is(pg_temp.pass('61 minutes'), 'sweep 1', '8.4 retainCompleted');
SELECT is(pg_temp.left(), 'c created f given later long shortf x', '8.4 retainCompleted: of the completed task');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('short'))$$, 'TQ404', '8.4 retention: it is gone');
SELECT pg_temp.pass('49 hours');
SELECT is(pg_temp.left(), 'c created f given later long x', '8.4 retainFailed: of the failed task');
SELECT pg_temp.pass('7 days 1 minute');
SELECT is(pg_temp.left(), 'created f given later long x', '8.4 tq.retain_completed: 7 days');
SELECT pg_temp.pass('29 days 23 hours');
SELECT is(pg_temp.left(), 'created f given later long x', '8.4 tq.retain_failed: not before 30 days');
SELECT pg_temp.pass('30 days 1 minute');
SELECT is(pg_temp.left(), 'created given long', '8.4 tq.retain_failed: failed and exception');
SELECT is((SELECT count(*) FROM tq_internal.run r WHERE NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = r.task)), 0::bigint, '8.4 retention: with all rows');
SELECT is((SELECT count(*) FROM tq_internal.failure f), 0::bigint, '8.4 retention: with those of failures');
SELECT pg_temp.pass('60 days 1 minute');
SELECT is(pg_temp.left(), 'created given', '8.4 retainCompleted: longer than the setting');
SELECT pg_temp.pass('367 days');
SELECT is(pg_temp.left(), NULL, '8.4 expires of the others');
ROLLBACK TO s;

-- settings apply to tasks that exist
SET tq.retain_completed = '1h';
SELECT is(pg_temp.pass('61 minutes'), 'sweep 2', '8.4 retention: a setting applies to tasks that exist');
SELECT is(pg_temp.left(), 'created f given later long shortf x', '8.4 retention: not to those that have a policy');
ROLLBACK TO s;

-- a rerun counts again
SET tq.retain_completed = '1h';
SELECT tq.rerun_task(pg_temp.id('c'));
SELECT is(pg_temp.pass('61 minutes'), 'sweep 1', '8.4 retention: not of a task that is rerun');
SELECT pg_temp.take('c'), pg_temp.report('c', 'completed');
SELECT is(pg_temp.pass(), '', '8.4 retention: counts from its last resolution');
SELECT is(pg_temp.pass('122 minutes'), 'sweep 1', '8.4 retention: after which it is deleted');
ROLLBACK TO s;

-- not while an unresolved task depends on it, in any unresolved state
SELECT pg_temp.made('lead', NULL, expires => '1 year');
SELECT pg_temp.made('d1', NULL, deps => '{c,lead}', expires => '1 year');
SET tq.retain_completed = '1h';
SELECT pg_temp.pass('2 hours');
SELECT ok(pg_temp.left() ~ '\mc\M', '8.4 retention: not while an unscheduled task depends on it');
SELECT pg_temp.take('lead'), pg_temp.report('lead', 'completed');
SELECT pg_temp.pass();
SELECT ok(pg_temp.left() ~ '\mc\M', '8.4 retention: nor a pending one');
SELECT pg_temp.take('d1');
SELECT pg_temp.pass();
SELECT ok(pg_temp.left() ~ '\mc\M', '8.4 retention: nor a running one');
SELECT is(tq.defer_task(pg_temp.id('d1'), 0, '1 hour') ->> 'state', 'pending', '8.4 deferred');
SELECT pg_temp.pass();
SELECT ok(pg_temp.left() ~ '\mc\M', '8.4 retention: nor a delayed one');
SELECT pg_temp.pass('3 hours 1 minute');
SELECT pg_temp.take('d1'), pg_temp.report('d1', 'completed');
SELECT pg_temp.pass();
SELECT ok(pg_temp.left() !~ '\mc\M', '8.4 retention: then it goes');
SELECT is((SELECT count(*) FROM tq_internal.dependency e WHERE e.required NOT IN (SELECT id FROM tq_internal.task)), 0::bigint, '8.4 retention: with its dependencies');
ROLLBACK TO s;

-- not while its group has an unresolved task
SELECT pg_temp.made('g1', 'completed', grp => 'g');
SELECT pg_temp.made('g', 'completed');
SELECT pg_temp.made('g2', NULL, grp => 'g', expires => '1 year');
SET tq.retain_completed = '1h';
SELECT pg_temp.pass('2 hours');
SELECT ok(pg_temp.left() ~ '\mg g1 g2\M', '8.4 retention: not while its group has an unresolved task');
SET tq.clock_offset = '2 hours 1 minute';	-- that a group is active is remembered, if it took long to find out
SELECT pg_temp.take('g2'), pg_temp.report('g2', 'completed');
SELECT is(pg_temp.pass(), 'sweep 2', '8.4 retention: then it goes, and the task that the group is named after');
SELECT ok(pg_temp.left() ~ '\mg2\M', '8.4 retention: a member with an expires of its own stays');
ROLLBACK TO s;

-- nor where the group has many other tasks
SELECT pg_temp.made('m1', 'completed', grp => 'm');
SELECT count(tq.enqueue('test/q-m', name => 'other', task_group_id => pg_temp.id('m'), deadline => '1 day', expires => '1 year')) FROM generate_series(1, 1000);
WITH claimed AS (SELECT task_id, run_id FROM tq.claim_work('test/q-m', 'group', 'worker', 1000))
SELECT count(*) FROM (SELECT tq.resolve(array_agg(task_id), array_agg(run_id)) FROM claimed) AS r;
SELECT pg_temp.made('m2', NULL, grp => 'm', expires => '1 year');
SET tq.retain_completed = '1h';
SELECT pg_temp.pass('2 hours');
SELECT ok(pg_temp.left() ~ '\mm1 m2\M', '8.4 retention: not while a large group has an unresolved task');
SET tq.clock_offset = '2 hours 1 minute';
SELECT pg_temp.take('m2'), pg_temp.report('m2', 'completed');
SELECT is(pg_temp.pass(), 'sweep 1', '8.4 retention: then it goes, with many that stay');
ROLLBACK TO s;

-- batches, and tasks that are locked
SET tq.retain_completed = '1h';
SET tq.expire_batch = 2;
SELECT pg_temp.made('b' || n, 'completed') FROM generate_series(1, 7) AS n;
SELECT is(pg_temp.pass('2 hours'), 'sweep 9', '8.4 retention: in batches, none forgotten');
ROLLBACK TO s;

-- dead letters
SELECT pg_temp.made('dl', 'failed', '{"deadLetter": true}');
SELECT pg_temp.pass('31 days');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-dl')), 1::bigint, '8.4 a dead letter outlives its task');
SELECT pg_temp.pass('89 days 23 hours');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-dl')), 1::bigint, '8.4 tq.retain_dead_letters: 90 days');
SELECT is(pg_temp.pass('90 days 1 minute'), 'sweep 1', '8.4 tq.retain_dead_letters: then it is deleted');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-dl')), 0::bigint, '8.4 tq.retain_dead_letters: gone');
ROLLBACK TO s;

-- 2.18 purge
SELECT pg_temp.made('p1', 'completed'), pg_temp.made('p2', 'failed'), pg_temp.made('other', 'completed');
UPDATE tq_internal.task SET queue = (SELECT queue FROM tq_internal.task WHERE task_id = pg_temp.id('p1')) WHERE task_id IN (pg_temp.id('p2'), pg_temp.id('given'), pg_temp.id('created'));
UPDATE tq_internal.task SET group_id = id WHERE task_id = pg_temp.id('given');	-- each update leaves an index entry
UPDATE tq_internal.task SET group_id = NULL WHERE task_id = pg_temp.id('given');
SELECT is(tq.purge('test/q-p1'), 0::bigint, '2.18 purge: a day old by default');
SELECT is(tq.purge('test/q-p1', older_than => '1 hour'), 0::bigint, '2.18 purge: nor younger than it says');
SELECT is(tq.purge('test/q-p1', '{}', '0'), 0::bigint, '2.18 purge: no states, no tasks');
SELECT is(tq.purge('test/q-p1', '{exception}', '0'), 0::bigint, '2.18 purge: of other states, none');
SELECT is(tq.purge('test/none', older_than => '0'), 0::bigint, '2.18 purge: a queue that does not exist');
SELECT is(tq.purge('test/q-p1', '{failed,failed}', '0'), 1::bigint, '2.18 purge: of these states');
SELECT is(tq.purge('test/q-p1', '{failed,completed}', '0', 1), 1::bigint, '2.18 purge: at most max');
SELECT is(pg_temp.left(), 'c created f later long other p1 short shortf x', '2.18 purge: the first created first, whatever its expires');
SELECT pg_temp.made('pdep', NULL, deps => '{p1}');
SELECT is(tq.purge('test/q-p1', older_than => '0'), 1::bigint, '2.18 purge: not one that an unresolved task depends on');
SELECT is(pg_temp.left(), 'c f later long other p1 pdep short shortf x', '2.18 purge: but the other one');
SELECT is(tq.purge('test/q-pdep', older_than => '0'), 0::bigint, '2.18 purge: nothing unresolved');
SELECT tq.cancel_task(pg_temp.id('pdep'));
SELECT is(tq.purge('test/q-p1', older_than => '0'), 1::bigint, '2.18 purge: when that is resolved');
SELECT pg_temp.throws(format('SELECT tq.purge(%s)', args), 'TQ400', '2.18 purge refuses ' || args)
FROM unnest(ARRAY['''x/y/z''', '''t/q'', ''{pending}''', '''t/q'', ''{""}''', '''t/q'', ''{NULL}''', '''t/q'', NULL', '''t/q'', older_than => ''-1 s''', '''t/q'', max => 0', '''t/q'', max => 1000001']) AS args;

-- Tasks of all kinds are deleted together, with others between them that stay,
-- more than a scan passes by.
CREATE FUNCTION pg_temp.strays(OUT rows text) LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	relation record;
BEGIN
	FOR relation IN SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'tq_internal'::regnamespace AND c.relkind = 'r' AND a.attname IN ('task', 'required', 'dependent')
		AND NOT a.attisdropped AND c.relname !~ '^(message|departed|dead_letter|audit)' ORDER BY 1, 2
	LOOP
		EXECUTE format('SELECT count(*) FROM tq_internal.%I r WHERE r.%I <> 0 AND NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.id = r.%2$I)',
			relation.relname, relation.attname) INTO n;
		rows := concat_ws(' ', rows, CASE WHEN n > 0 THEN relation.relname || ' ' || n END);
	END LOOP;
END
$$;
CREATE FUNCTION pg_temp.mixed() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	q CONSTANT jsonb = '{"taskQueueId": "test/mixed", "$deadline": "1 day"}';
BEGIN
	PERFORM pg_temp.resolved('plain1', 'completed', q);
	PERFORM pg_temp.resolved('fails', 'failed', q);
	PERFORM pg_temp.resolved('twice', 'completed', q);
	PERFORM tq.rerun_task(pg_temp.id('twice')), pg_temp.work('twice', 'completed');
	PERFORM pg_temp.resolved('rerun', 'completed', q);
	PERFORM pg_temp.resolved('plain2', 'completed', q);
	PERFORM pg_temp.resolved('grouped', 'completed', q || '{"$group": "mixed"}');
	PERFORM pg_temp.resolved('named', 'completed', q || '{"$group": "named"}');
	PERFORM pg_temp.resolved('joined', 'completed', q || '{"$group": "named"}');
	PERFORM pg_temp.resolved('required', 'completed', q);
	PERFORM pg_temp.resolved('dependent', 'completed', q || '{"$deps": ["required"]}');
	PERFORM pg_temp.resolved('needed', 'completed', q);
	PERFORM pg_temp.create('needs', q || '{"$deps": ["needed"], "taskQueueId": "test/mixed2"}');
	PERFORM pg_temp.running('artifact', q);
	PERFORM tq.create_artifact(pg_temp.id('artifact'), 0, 'a', jsonb_build_object('storageType', 'link', 'artifact', 'public/b', 'contentType', 'text/plain', 'expires', pg_temp.clock() + interval '1 hour'));
	PERFORM pg_temp.report('artifact', 'completed');
	PERFORM pg_temp.resolved('active', 'completed', q || '{"$group": "busy"}');
	PERFORM pg_temp.create('busy', q || '{"$group": "busy", "taskQueueId": "test/mixed2"}');
	PERFORM pg_temp.create('stay' || n, q || '{"taskQueueId": "test/mixed2"}') FROM generate_series(1, 40) AS n;
	PERFORM pg_temp.resolved('plain3', 'completed', q);
	PERFORM tq.rerun_task(pg_temp.id('rerun'));
END
$$;
CREATE FUNCTION pg_temp.left_of_mixed() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(n, ' ' ORDER BY n COLLATE "C") FROM unnest('{plain1,plain2,plain3,fails,twice,rerun,grouped,named,joined,required,dependent,needed,artifact,active}'::text[]) AS n
	WHERE EXISTS (SELECT FROM tq_internal.task t WHERE t.task_id = pg_temp.id(n))
$$;
DELETE FROM tq_internal.timer WHERE kind = 2;
SELECT pg_temp.mixed();
SAVEPOINT mixed;
SELECT is(tq.purge('test/mixed', older_than => '0'), 11::bigint, '8.4 a batch of tasks of all kinds');
SELECT is(pg_temp.left_of_mixed(), 'active needed rerun', '8.4 which leaves those that are needed, or run again');
SELECT is(pg_temp.strays(), '', '8.4 and no rows of the others');
SELECT is((SELECT count(DISTINCT g) FROM tq_internal.timer, unnest(tasks) AS g JOIN tq_internal.task_group p ON p.id = g WHERE kind = 2 AND p.task_group_id IN (pg_temp.id('mixed'), pg_temp.id('named'))),
	2::bigint, '8.4 the groups that they leave are to expire');
ROLLBACK TO mixed;
CREATE TEMP TABLE deleted (id bigint);
CREATE FUNCTION pg_temp.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO deleted VALUES (old.id); RETURN old; END $$;
CREATE TRIGGER note AFTER DELETE ON tq_internal.task FOR EACH ROW EXECUTE FUNCTION pg_temp.note_deleted();
SELECT is(tq.purge('test/mixed', older_than => '0'), 11::bigint, '8.4 the same with a trigger on the table');
SELECT is((SELECT count(*) FROM deleted), 11::bigint, '8.4 which is fired for each');
SELECT is(pg_temp.strays(), '', '8.4 and no rows are left either');

SELECT * FROM finish();
ROLLBACK;
