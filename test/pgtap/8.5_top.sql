-- doc/spec/taskcluster.md 8.5: top(), one screen of health, queues, workers and groups.
BEGIN;
\ir helper.psql

-- The lines, without what depends on the time.
CREATE FUNCTION pg_temp.screen(max int DEFAULT 10) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(regexp_replace(regexp_replace(line, '20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d(:\d\d)?', 'NOW'), 'health: .*', 'HEALTH'), E'\n' ORDER BY n) FROM tq.top(max) WITH ORDINALITY AS t (line, n)
$$;

SELECT is(pg_temp.screen(), $$tq 0.2.0, NOW: 0 pending, 0 running, 0 delayed, 0 blocked; 0/s in, 0/s out
HEALTH

QUEUE (0)                          PENDING RUNNING DELAYED BLOCKED    IN/s   OUT/s  OLDEST WORKERS

WORKER (0)                                  QUEUE                       STATE        RUNS   SEEN

GROUP (0 in progress)   # done, = of running tasks, x failed           DONE    TASKS RUNS FAILED$$, '8.5 top of an empty database');

SELECT pg_temp.create(n, '{"taskQueueId": "test/q", "$group": "g"}') FROM unnest('{a,b,c}'::text[]) AS n;
SELECT pg_temp.create('d', '{"taskQueueId": "test/other", "$group": "g", "$deps": ["a"]}');
SELECT pg_temp.create('e', '{"taskQueueId": "test/other", "policy": {"delay": 600}}');
SELECT tq.claim_work('test/q', 'wg', 'w1'), pg_temp.report('a', 'failed'), tq.claim_work('test/q', 'wg', 'w1');
SELECT tq.pause_queue('test/other') IS NOT NULL;
SET tq.clock_offset = '10 s';
SELECT is(regexp_replace(pg_temp.screen(), '1[0-3]s', '10s', 'g'), replace($$tq 0.2.0, NOW: 1 pending, 1 running, 1 delayed, 1 blocked; 0/s in, 0/s out
HEALTH

QUEUE (2)                          PENDING RUNNING DELAYED BLOCKED    IN/s   OUT/s  OLDEST WORKERS
test/q                                   1       1       0       0       0       0     10s       1
test/other (paused)                      0       0       1       1       0       0       -       0

WORKER (1)                                  QUEUE                       STATE        RUNS   SEEN
wg/w1                                       test/q                      running         1    10s

GROUP (1 in progress)   # done, = of running tasks, x failed           DONE    TASKS RUNS FAILED
GROUP_ID                [xxxxxxxxxx.............................]         1        4    1      1$$, 'GROUP_ID              ', pg_temp.id('g')::text), '8.5 top: queues, workers and groups');
RESET tq.clock_offset;
SELECT pg_temp.report('b', 'completed'), pg_temp.report('c', 'canceled'), pg_temp.report('d', 'canceled');
SELECT matches(pg_temp.screen(), 'GROUP \(0 in progress\)[^\n]*$', '8.5 top: a group that is resolved is not in progress');

-- progress of running tasks: in the bar of the group, and a section of its own
SELECT pg_temp.create(n, '{"taskQueueId": "test/p", "$group": "p"}') FROM unnest('{p1,p2,p3,p4}'::text[]) AS n;
SELECT tq.claim_work('test/p', 'wg', 'w1', 4) \g /dev/null
SELECT matches(pg_temp.screen(), 'FAILED\n[^\n]*$', '8.5 top: no progress was reported');
SELECT tq.report_progress(pg_temp.id('p1'), 0, 45, 90, 'secret') \g /dev/null
SELECT tq.report_progress(pg_temp.id('p2'), 0, 1234567, NULL) \g /dev/null
SELECT tq.report_progress(pg_temp.id('p3'), 0, 0, 0) \g /dev/null
SELECT tq.report_completed(pg_temp.id('p4'), 0) \g /dev/null
SET tq.clock_offset = '15 s';
SELECT is((SELECT string_agg(regexp_replace(line, '1[5-8]s', '15s'), E'\n' ORDER BY n) FROM tq.top() WITH ORDINALITY AS t (line, n) WHERE line ~ 'PROGRESS|test/p .*\['),
	(SELECT $$PROGRESS (3)            QUEUE                     # done                     DONE  TOTAL   SEEN$$ || string_agg(E'\n' || rpad(pg_temp.id(n)::text, 24) || line, '' ORDER BY pg_temp.id(n))
	FROM (VALUES ('p1', 'test/p                    [###########...........]     45     90    15s'), ('p2', 'test/p                    [......................]  1234k      -    15s'),
		('p3', 'test/p                    [......................]      0      0    15s')) AS v (n, line)), '8.5 top: progress');
SELECT matches(pg_temp.screen(), pg_temp.id('p')::text || '  \[#########====\.*\]', '8.5 top: progress in the bar of the group');
SELECT is(string_agg(line, E'\n') ~ 'secret', false, '8.5 top: no text of a task') FROM tq.top() AS line;
SELECT is((SELECT max(length(line)) <= 98 FROM tq.top() AS line), true, '8.5 top: at most 98 characters');
SELECT is((SELECT count(*) FROM tq.top(1) AS line WHERE line ~ 'test/p .*\['), 1::bigint, '8.5 top: at most max_rows');
RESET tq.clock_offset;
SELECT pg_temp.report(n, 'completed') FROM unnest('{p1,p2,p3}'::text[]) AS n \g /dev/null
SELECT is(string_agg(line, E'\n') ~ 'PROGRESS', false, '8.5 top: tasks that are not running have none') FROM tq.top() AS line;

-- long names, many rows, large numbers
SELECT tq.enqueue(repeat('p', 38) || '/' || repeat('w', 37) || n) IS NOT NULL FROM generate_series(0, 9) n, generate_series(0, n);
SELECT count(*) FROM generate_series(0, 9) n, tq.claim_work(repeat('p', 38) || '/' || repeat('w', 37) || n, repeat('g', 38), repeat('i', 38), 1000) WHERE n < 5;
SELECT tq.quarantine_worker(repeat('p', 38) || '/' || repeat('w', 37) || '1', repeat('g', 38), repeat('i', 38), pg_temp.clock() + interval '1 day', 'x') IS NOT NULL;
SELECT tq.enqueue('test/g', task_group_id => pg_temp.id('group' || n)) IS NOT NULL FROM generate_series(1, 30) n, generate_series(1, 2);
SELECT is((SELECT max(length(line)) <= 98 FROM tq.top(1000) AS line), true, '8.5 top: at most 98 characters');
SELECT matches((SELECT string_agg(line, E'\n') FROM tq.top(1000) AS line), 'pppppppppppppppppppppp\.\.\. +0 ', '8.5 top: long names are cut');
SELECT matches((SELECT string_agg(line, E'\n') FROM tq.top(1000) AS line), ' quarantined ', '8.5 top: a worker in quarantine');
SELECT is((SELECT count(*) FROM tq.top(3)), (2 + 3 * 5)::bigint, '8.5 top: at most max_rows of each');
SELECT is((SELECT count(*) FROM tq.top()), (2 + 3 * 2 + 10 + 7 + 10)::bigint, '8.5 top: ten by default');
SELECT is((SELECT count(*) FROM tq_internal.recent_group), 20::bigint, '8.5 top: new groups');
SELECT is(string_agg(tq_internal.short_count(n), ' ' ORDER BY n), '0 12 13 99999 100k 100k 99999k 100M 123456M', '8.5 top: short numbers') FROM unnest('{0,12.4,12.6,99999.4,99999.5,100000,99999999,100000000,123456789012}'::numeric[]) AS n;
SELECT is(string_agg(tq_internal.short_age(t), ' ' ORDER BY t), '0s 0s 99s 1m 99m 1h 99h 4d 4000d', '8.5 top: short times') FROM unnest('{-1 s,0,99.9 s,100 s,99 min 59 s,100 min,99 hours,100 hours,4000 days}'::interval[]) AS t;
SELECT is(tq_internal.short_age(NULL), NULL, '8.5 top: no time');

-- rights and faults
SELECT pg_temp.throws(format('SELECT tq.top(%s)', max), 'TQ400', '8.5 top: max_rows ' || max) FROM unnest('{0,1001}'::text[]) AS max;
SELECT pg_temp.throws('SELECT tq.top(NULL)', 'TQ400', '8.5 top: max_rows NULL');
SELECT pg_temp.unchanged('SELECT tq.top()', '8.5 top changes nothing');
SELECT is(current_setting('jit'), reset_val, '8.5 top leaves the settings of the session') FROM pg_settings WHERE name = 'jit';
SELECT * FROM finish();
ROLLBACK;
