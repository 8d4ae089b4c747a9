-- doc/spec/taskcluster.md 1.6: groups, queues and workers as entities of their own.
BEGIN;
\ir helper.psql

-- task groups
SELECT pg_temp.create('a', '{"$group": "g", "schedulerId": "s", "$expires": "2 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('g')), jsonb_build_object('taskGroupId', pg_temp.id('g')::text, 'schedulerId', 's',
	'expires', pg_temp.iso(pg_temp.base() + interval '3 hours')), '1.6 the first task creates the group; it expires an hour later');
SELECT pg_temp.create('b', '{"$group": "g", "schedulerId": "s", "$expires": "5 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('g')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '6 hours'), '1.6 a task that expires later moves it');
SELECT pg_temp.create('c', '{"$group": "g", "schedulerId": "s", "$expires": "3 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('g')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '6 hours'), '1.6 one that expires earlier does not');
SELECT pg_temp.create('lone', '{"schedulerId": "s2", "$expires": "2 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('lone')), jsonb_build_object('taskGroupId', pg_temp.id('lone')::text, 'schedulerId', 's2',
	'expires', pg_temp.iso(pg_temp.base() + interval '3 hours')), '1.6 the group of a task alone');
SELECT pg_temp.create('more', '{"$group": "lone", "schedulerId": "s2", "$expires": "4 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('lone')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '5 hours'), '1.6 the same when another joins it');
SELECT pg_temp.create('less', '{"schedulerId": "s3", "$expires": "4 hours"}');
SELECT pg_temp.create('less2', '{"$group": "less", "schedulerId": "s3", "$expires": "2 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('less')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '5 hours'), '1.6 one that joins and expires earlier does not move it');
SELECT pg_temp.create('m1', '{"$group": "m", "$expires": "2 hours"}');
SELECT pg_temp.create('m', '{"$expires": "4 hours"}');
SELECT is(tq.get_task_group(pg_temp.id('m')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '5 hours'), '1.6 the task whose id is the group''s, created after others');

SELECT pg_temp.create('n1', '{"$group": "n", "$expires": "2 hours"}');
SELECT pg_temp.create('n2', '{"$group": "n", "$expires": "2 hours 30 minutes"}');
SELECT is(tq.get_task_group(pg_temp.id('n')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '3 hours'), '1.6 one that expires later, but not later than the group, does not move it');

-- workers
SELECT pg_temp.throws($$SELECT tq.get_worker('test/q', 'wg', 'w1')$$, 'TQ404', '1.6 an unknown worker');
SELECT is((SELECT count(*) FROM tq.claim_work('test/q', 'wg', 'w1')), 0::bigint, '1.6 a worker asks for work');
SELECT ok(pg_temp.near(w ->> 'expires', pg_temp.clock() + interval '1 day'), '1.6 worker: expires') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'firstClaim', pg_temp.clock()), '1.6 worker: firstClaim') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT ok(pg_temp.near(w ->> 'lastDateActive', pg_temp.clock()), '1.6 worker: lastDateActive') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT ok(NOT w ?| '{quarantineUntil,quarantineDetails}', '1.6 worker: nothing about a quarantine, if it never was in one') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT is(w -> 'recentTasks', '[]', '1.6 worker: no recent tasks yet') FROM tq.get_worker('test/q', 'wg', 'w1') AS w;
SELECT pg_temp.throws($$SELECT tq.get_worker('test/q', 'wg', 'w2')$$, 'TQ404', '1.6 another worker of the group is unknown');
SELECT pg_temp.throws($$SELECT tq.get_worker('test/r', 'wg', 'w1')$$, 'TQ404', '1.6 a worker belongs to its queue');

SELECT * FROM finish();
ROLLBACK;
