-- doc/spec/policy.md 16: buckets in ids, and databases that are shards.
-- test/isolation/specs/create-vs-set-buckets.spec has what concurrent transactions see.
BEGIN;
\ir policy.psql

-- The id of a name, in a bucket.
CREATE FUNCTION pg_temp.id(name text, bucket int) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS $$
	SELECT overlay(overlay(overlay(md5(name) PLACING '4' FROM 13 FOR 1) PLACING '8' FROM 17 FOR 1) PLACING lpad(to_hex(bucket), 4, '0') FROM 29)::uuid::tq.slugid
$$;

-- 16.1 ids
SELECT is((SELECT count(DISTINCT tq_internal.bucket(tq.slugid())) > 500 FROM generate_series(1, 2000)), true, '16.1 buckets of random ids');
SELECT is(tq_internal.bucket(pg_temp.id('x', 700)), 700, '16.1 the last ten bits');
SELECT is(tq_internal.bucket(tq.enqueue('test/q', task_group_id => pg_temp.id('g', 5))), 5, '16.1.2 enqueue: the bucket of the group, in any database');
SELECT is((SELECT array_agg(DISTINCT tq_internal.bucket(id::tq.slugid)) FROM unnest(tq.enqueue_tasks('test/q', '{"1","2","3"}', task_group_id => pg_temp.id('g', 1023))) AS id), '{1023}', '16.1.2 enqueue_tasks');
SELECT is((SELECT count(DISTINCT tq_internal.bucket(id::tq.slugid)) > 50 FROM unnest(tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, ARRAY[200]))) AS id), true, '16.1.3 without a group: any bucket');
SELECT is((SELECT count(DISTINCT id) FROM unnest(tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, ARRAY[1000]), task_group_id => pg_temp.id('g', 1023))) AS id), 1000::bigint, '16.1.2 the ids of a group are distinct');
SELECT is(tq_internal.bucket(tq.on_group_resolved(pg_temp.id('g', 5), 'test/q')), 5, '16.1.2 on_group_resolved: the bucket of the group that it waits for');

-- 16.1.4 new ids begin with the time
SELECT is(pg_temp.is_timed(id), true, '16.1.4 begins with the time: ' || what)
FROM (VALUES ('slugid', tq.slugid()), ('true', tq.slugid(ordered => true)), ('slugid_in_bucket', tq_internal.slugid_in_bucket(7)), ('enqueue', tq.enqueue('test/q')),
	('enqueue with a group', tq.enqueue('test/q', task_group_id => pg_temp.id('g', 5))), ('on_group_resolved', tq.on_group_resolved(pg_temp.id('g', 5), 'test/q'))) AS v (what, id);
SELECT is(bool_and(pg_temp.is_timed(id::tq.slugid)), true, '16.1.4 enqueue_tasks') FROM unnest(tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, ARRAY[20]))) AS id;
SELECT is((SELECT pg_temp.is_timed(tq.slugid()) FROM set_config('tq.clock_offset', '20 days', true)), true, '16.1.4 tq.clock_offset does not shift it');
SELECT is((SELECT count(DISTINCT right(id::text, 12)) FROM (SELECT tq.slugid() AS id FROM generate_series(1, 2000)) AS s), 2000::bigint, '16.1.4 the rest is random');
SELECT is((SELECT bit_or(bits)::text || ' ' || bit_and(bits)::text FROM (SELECT right(uuid_send(tq.slugid()::uuid)::text, 20)::text AS hex FROM generate_series(1, 200)) AS s,
	LATERAL CAST('x' || hex AS bit(80)) AS bits), '0100' || repeat('1', 12) || '10' || repeat('1', 62) || ' 0100' || repeat('0', 12) || '10' || repeat('0', 62), '16.1.4 74 bits of it');
SELECT is(pg_temp.is_timed(tq.slugid(ordered => false)), false, '16.1.4 ordered => false');
SET LOCAL tq.clock_offset = 0;
SET LOCAL tq.ordered_ids = off;
SELECT is(pg_temp.is_timed(id), false, '16.1.4 tq.ordered_ids = off: ' || what)
FROM (VALUES ('slugid', tq.slugid()), ('slugid_in_bucket', tq_internal.slugid_in_bucket(7)), ('enqueue', tq.enqueue('test/q'))) AS v (what, id);
SELECT is(bool_or(pg_temp.is_timed(id::tq.slugid)), false, '16.1.4 off: enqueue_tasks') FROM unnest(tq.enqueue_tasks('test/q', '{1,2,3}')) AS id;
SELECT is(pg_temp.is_timed(tq.slugid(ordered => true)), false, '16.1.4 off, and ordered => true');
RESET tq.ordered_ids;

-- a database that is no shard
SELECT is(tq_internal.buckets(), NULL, '16.2 no buckets are set');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L, task_group_id => %L)$$, pg_temp.id('other', 3), pg_temp.id('g', 5)), '16.3.5 refuses no id');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L)$$, pg_temp.id('lone', 900)), '16.3.5 nor a group');
SELECT lives_ok(format($$SELECT tq.on_group_resolved(%L, 'test/q', task_id => %L)$$, pg_temp.id('g', 5), pg_temp.id('end', 6)), '16.3.5 nor a task for its end');
SELECT tq.create_task(pg_temp.id('kept', 9), pg_temp.def('x', ('{"taskGroupId": "' || pg_temp.id('g', 5)::text || '"}')::jsonb)) \g /dev/null
SELECT lives_ok($$SELECT tq_internal.set_buckets('{[0,1024)}')$$, '16.2.1 all buckets');
SELECT is(tq_internal.buckets(), '{[0,1024)}', '16.2.1 as they were set');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L, task_group_id => %L)$$, pg_temp.id('other2', 3), pg_temp.id('g', 5)), '16.2.1 all buckets: no shard');

-- 16.2 arguments
SELECT pg_temp.throws(format('SELECT tq_internal.set_buckets(%L)', bad), 'TQ400', '16.2.1 bad: ' || bad)
FROM unnest(ARRAY['{[-1,5)}', '{[0,1025)}', '{[3,)}', '{(,5)}', '{[1024,1025)}', '{(,)}']) AS bad;
SELECT is(tq_internal.set_buckets('{[5,6),[0,3]}'), pg_current_xact_id(), '16.4.2 returns the transaction');
SELECT is(tq_internal.buckets(), '{[0,4),[5,6)}', '16.2.1 buckets');
SELECT is(tq_internal.buckets_settled(pg_current_xact_id()), false, '16.4.2 a change that is not committed is not settled');

-- 16.2, 16.1.3 ids of a shard
SELECT is((SELECT array_agg(DISTINCT tq_internal.bucket(id) ORDER BY tq_internal.bucket(id)) FROM (SELECT tq.enqueue('test/q') AS id FROM generate_series(1, 200)) AS x), '{0,1,2,3,5}', '16.1.3 enqueue: the own buckets');
SELECT is((SELECT array_agg(DISTINCT tq_internal.bucket(id::tq.slugid) ORDER BY tq_internal.bucket(id::tq.slugid)) FROM unnest(tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, ARRAY[200]))) AS id), '{0,1,2,3,5}', '16.1.3 enqueue_tasks');
SELECT is((SELECT count(DISTINCT id) FROM unnest(tq.enqueue_tasks('test/q', array_fill('{}'::jsonb, ARRAY[1000]))) AS id), 1000::bigint, '16.1.3 distinct ids');
SELECT is((SELECT bool_and(id::uuid::text ~ '^.{14}4.{4}[89ab]') FROM (SELECT tq.enqueue('test/q') AS id FROM generate_series(1, 50)) AS x), true, '16.1.1 version 4 UUIDs');

-- 16.3.1 new groups
SELECT pg_temp.throws(format($$SELECT tq.enqueue('test/q', task_id => %L)$$, pg_temp.id('new', 4)), 'TQ409', '16.3.1 enqueue: a new group of another shard');
SELECT pg_temp.throws(format($$SELECT tq.enqueue('test/q', task_group_id => %L)$$, pg_temp.id('new', 4)), 'TQ409', '16.3.1 and one that it would join');
SELECT pg_temp.throws(format($$SELECT tq.enqueue_tasks('test/q', '{"1"}', ARRAY[%L])$$, pg_temp.id('new', 4)), 'TQ409', '16.3.1 enqueue_tasks');
SELECT pg_temp.throws(format($$SELECT tq.create_task(%L, %L)$$, pg_temp.id('new', 4), pg_temp.def('x')), 'TQ409', '16.3.1 create_task');
SELECT pg_temp.throws(format($$SELECT tq.define_task(%L, %L)$$, pg_temp.id('new', 4), pg_temp.def('x')), 'TQ409', '16.3.1 define_task');
SELECT pg_temp.throws(format($$SELECT tq.create_tasks(%L)$$, jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a', 3), 'task', pg_temp.def('x')),
	jsonb_build_object('taskId', pg_temp.id('b', 4), 'task', pg_temp.def('x')))), 'TQ409', '16.3.1 create_tasks: one is enough');
SELECT is(tq_internal.has_task(pg_temp.id('a', 3)), false, '16.3.1 and none is created');
SELECT throws_like(format($$SELECT tq.enqueue('test/q', task_id => %L)$$, pg_temp.id('new', 4)), '%belongs to another shard', '16.3.1 the message');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L)$$, pg_temp.id('new', 3)), '16.3.1 a new group of this shard');

-- 16.3.2 ids outside of the bucket of their group
SELECT pg_temp.throws(format($$SELECT tq.enqueue('test/q', task_id => %L, task_group_id => %L)$$, pg_temp.id('m', 2), pg_temp.id('new', 3)), 'TQ400', '16.3.2 enqueue');
SELECT pg_temp.throws(format($$SELECT tq.create_task(%L, %L)$$, pg_temp.id('m', 2), pg_temp.def('x', ('{"taskGroupId": "' || pg_temp.id('new', 3)::text || '"}')::jsonb)), 'TQ400', '16.3.2 create_task');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L, task_group_id => %L)$$, pg_temp.id('m', 3), pg_temp.id('new', 3)), '16.3.2 in the bucket');
SELECT pg_temp.throws(format($$SELECT tq.on_group_resolved(%L, 'test/q', task_id => %L)$$, pg_temp.id('new', 3), pg_temp.id('end', 2)), 'TQ400', '16.3.2 on_group_resolved');
SELECT lives_ok(format($$SELECT tq.on_group_resolved(%L, 'test/q', task_id => %L)$$, pg_temp.id('new', 3), pg_temp.id('end', 3)), '16.3.2 on_group_resolved in the bucket');

-- 16.3.3 what exists
SELECT is(tq_internal.has_task_group(pg_temp.id('g', 1023)), true, '16.5.1 an old group in another bucket');
SELECT is(tq_internal.bucket(tq.enqueue('test/q', task_group_id => pg_temp.id('g', 1023))), 1023, '16.3.3 accepts tasks');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L, task_group_id => %L)$$, pg_temp.id('m', 1023), pg_temp.id('g', 1023)), '16.3.3 with ids of its bucket');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_id => %L)$$, pg_temp.id('g', 1023)), '16.3.3 the task that it is named after, too');
SELECT lives_ok(format($$SELECT tq.enqueue('test/q', task_group_id => %L)$$, pg_temp.id('lone', 900)), '16.3.3 a group of a single task');
SELECT is(tq.create_task(pg_temp.id('kept', 9), pg_temp.def('x', ('{"taskGroupId": "' || pg_temp.id('g', 5)::text || '"}')::jsonb)) ->> 'state', 'pending', '16.3.3 a task that exists is created again, whatever its bucket');
SELECT lives_ok(format($$SELECT tq.on_group_resolved(%L, 'test/q', task_id => %L)$$, pg_temp.id('g', 5), pg_temp.id('end', 6)), '16.3.3 and a task for the end of a group registered again');

-- 16.3.4 what tq creates by itself
SELECT tq.on_group_resolved(pg_temp.id('lone', 900), 'test/end', task_id => pg_temp.id('late', 900)) \g /dev/null
SELECT tq.cancel_task(id::tq.slugid) FROM (SELECT task_id AS id FROM tq.task_details WHERE task_group_id = pg_temp.id('lone', 900)) AS x \g /dev/null
SELECT count(*) FROM tq.upkeep() \g /dev/null
SELECT is(tq.status(pg_temp.id('late', 900)) ->> 'state', 'pending', '16.3.4 the task for the end of a group is not refused');
SAVEPOINT s;
SELECT tq_internal.set_buckets(NULL) \g /dev/null
SELECT is(tq_internal.buckets(), NULL, '16.2.1 NULL: no shard');
SELECT tq.enqueue('test/dead', task_id => pg_temp.id('dead', 77), policy => '{"deadLetter": true, "retries": 0}', deadline => '1 minute', expires => '1 minute') \g /dev/null
SELECT tq.enqueue('test/dead', task_id => pg_temp.id('stray', 78), task_group_id => pg_temp.id('grave', 79), policy => '{"deadLetter": true, "retries": 0}', deadline => '1 minute', expires => '1 minute') \g /dev/null
SELECT count(tq.report_failed(task_id, run_id)) FROM tq.claim_work('test/dead', 'g', 'w', 2) \g /dev/null
SET LOCAL tq.clock_offset = '1 day';
SELECT count(*) FROM tq.upkeep() \g /dev/null
SELECT count(*) FROM tq.upkeep() \g /dev/null
SELECT is(tq_internal.has_task_group(pg_temp.id('dead', 77)) OR tq_internal.has_task_group(pg_temp.id('grave', 79)), false, '16.5.1 a group that has expired is gone');
SELECT is(tq_internal.has_task(pg_temp.id('dead', 77)), true, '16.5.1 a dead letter is there');
SELECT tq_internal.set_buckets('{[0,4)}') \g /dev/null
SELECT is(tq_internal.bucket((tq.redrive(pg_temp.id('dead', 77)) ->> 'taskId')::tq.slugid), 77, '16.3.4 a redrive begins the group again, 16.1.2 in its bucket');
SELECT is(tq_internal.bucket((tq.redrive(pg_temp.id('stray', 78)) ->> 'taskId')::tq.slugid), 79, '16.1.2 and follows the group, not the dead task');
ROLLBACK TO s;

-- recurring tasks
SET LOCAL cron.database_name = 'elsewhere';
SELECT name FROM tq.schedule_cron('alone', '* * * * *', 'test/cron') \g /dev/null
SELECT name FROM tq.schedule_cron('member', '* * * * *', 'test/cron', task_group_id => pg_temp.id('g', 1023)) \g /dev/null
SELECT is((SELECT bool_and(tq_internal.bucket(tq.run_cron_now('alone')) = ANY ('{0,1,2,3,5}')) FROM generate_series(1, 20)), true, '16.1.3 run_cron_now');
SELECT is((SELECT bool_and(tq_internal.bucket(tq_internal.fire_cron('alone', now() - n * interval '1 minute')) = ANY ('{0,1,2,3,5}')) FROM generate_series(1, 20) AS n), true, '16.1.3 fire_cron');
SELECT is(tq_internal.fire_cron('alone', now() - interval '3 minutes'), tq_internal.fire_cron('alone', now() - interval '3 minutes'), '16.1.3 the same id again');
SELECT is(tq_internal.bucket(tq_internal.fire_cron('member', now() - interval '1 hour')), 1023, '16.1.2 fire_cron with a group');
SELECT is(tq_internal.bucket(tq.run_cron_now('member')), 1023, '16.1.2 run_cron_now with a group');

-- a shard without buckets
SELECT tq_internal.set_buckets('{}') \g /dev/null
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q')$$, 'TQ409', '16.3.1 a shard without buckets begins no group');
SELECT is(tq_internal.bucket(tq.enqueue('test/q', task_group_id => pg_temp.id('g', 1023))), 1023, '16.3.3 but its groups accept tasks');

-- 16.4.2 transactions that are none
SELECT pg_temp.throws($$SELECT tq_internal.buckets_settled('9223372036854775807')$$, 'TQ409', '16.4.2 a transaction that has changed nothing');
SELECT pg_temp.throws($$SELECT tq_internal.buckets_settled(NULL)$$, 'TQ400', '16.4.2 NULL');

-- 16.5.2 counts
DELETE FROM tq_internal.task_group;
DELETE FROM tq_internal.task;
TRUNCATE tq_internal.pending, tq_internal.delayed, tq_internal.unscheduled, tq_internal.run;
SELECT is((SELECT count(*) FROM tq_internal.bucket_counts()), 0::bigint, '16.5.2 no groups');
SELECT tq_internal.set_buckets(NULL) \g /dev/null
SELECT tq.enqueue('test/n', task_id => pg_temp.id('1', 8)), tq.enqueue('test/n', task_id => pg_temp.id('2', 8), delay => '1 hour'), tq.enqueue('test/n', task_group_id => pg_temp.id('1', 8)),
	tq.enqueue('test/n', task_id => pg_temp.id('3', 9), task_group_id => pg_temp.id('4', 10)), tq.enqueue('test/n', task_id => pg_temp.id('5', 11), dependencies => ARRAY[pg_temp.id('1', 8)]) \g /dev/null
SELECT tq.cancel_task(pg_temp.id('3', 9)) \g /dev/null
SELECT count(*) FROM tq.claim_work('test/n', 'g', 'w', 1) \g /dev/null
SELECT results_eq('SELECT * FROM tq_internal.bucket_counts()', $$VALUES (8, 2::bigint, 3::bigint), (10, 1, 0), (11, 1, 1)$$, '16.5.2 groups and unresolved tasks by the bucket of the group');

SELECT * FROM finish();
ROLLBACK;
