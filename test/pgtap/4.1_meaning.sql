-- doc/spec/taskcluster.md 4.1: when a dependency is met.
BEGIN;
\ir helper.psql

CREATE TEMP TABLE ends (reason text);
INSERT INTO ends VALUES ('completed'), ('failed'), ('malformed-payload'), ('resource-unavailable'), ('internal-error'), ('canceled'), ('worker-shutdown'), ('intermittent-task');

-- the resolution of the required task, for dependents created before it, and for one created after it
SELECT pg_temp.running('r-' || reason, '{"retries": 0}') FROM ends;
SELECT pg_temp.create('c-' || reason, format('{"$deps": ["r-%s"]}', reason)::jsonb) FROM ends;
SELECT pg_temp.create('a-' || reason, format('{"$deps": ["r-%s"], "requires": "all-resolved"}', reason)::jsonb) FROM ends;
SELECT is(pg_temp.state('c-' || reason) || ' ' || pg_temp.state('a-' || reason), 'unscheduled unscheduled', '4.1 not met while running') FROM ends;
SELECT pg_temp.report('r-' || reason, reason) FROM ends;
SELECT is(pg_temp.look('c-' || reason), CASE reason WHEN 'completed' THEN 'pending 5: scheduled>pending' ELSE 'unscheduled 5:' END, '4.1 all-completed, required task: ' || reason) FROM ends;
SELECT is(pg_temp.look('a-' || reason), 'pending 5: scheduled>pending', '4.1 all-resolved, required task: ' || reason) FROM ends;
SELECT is(pg_temp.create('c2-' || reason, format('{"$deps": ["r-%s"]}', reason)::jsonb), CASE reason WHEN 'completed' THEN 'pending 5: scheduled>pending' ELSE 'unscheduled 5:' END,
	'4.1 all-completed, created after the required task: ' || reason) FROM ends;
SELECT is(pg_temp.create('a2-' || reason, format('{"$deps": ["r-%s"], "requires": "all-resolved"}', reason)::jsonb), 'pending 5: scheduled>pending',
	'4.1 all-resolved, created after the required task: ' || reason) FROM ends;

-- deadline-exceeded
SELECT pg_temp.create('dl', '{"$deadline": "5 minutes"}');
SELECT pg_temp.create('c-dl', '{"$deps": ["dl"]}');
SELECT pg_temp.create('a-dl', '{"$deps": ["dl"], "requires": "all-resolved"}');
SELECT is(pg_temp.pass('5 minutes 1 second'), 'deadline 1', '4.1 a deadline');
SELECT is(pg_temp.state('c-dl') || ' ' || pg_temp.state('a-dl'), 'unscheduled pending', '4.1 meets all-resolved only');
RESET tq.clock_offset;

-- unresolved states meet nothing, neither before nor after
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.create('p');
SELECT pg_temp.running('r');
SELECT pg_temp.resolved('t', 'worker-shutdown');
SELECT is(pg_temp.create('x-' || n, format('{"$deps": ["%s"], "requires": "all-resolved"}', n)::jsonb), 'unscheduled 5:', '4.1 all-resolved, not met by a task that is ' || pg_temp.look(n))
FROM unnest('{u,p,r,t}'::text[]) AS n;

-- all of several
SELECT pg_temp.create(n) FROM unnest('{m1,m2,m3}'::text[]) AS n;
SELECT pg_temp.create('mc', '{"$deps": ["m1", "m2", "m3"]}');
SELECT pg_temp.create('ma', '{"$deps": ["m1", "m2", "m3"], "requires": "all-resolved"}');
SELECT pg_temp.take(n) FROM unnest('{m1,m2,m3}'::text[]) AS n;
SELECT pg_temp.report('m2', 'completed');
SELECT is(pg_temp.state('mc') || ' ' || pg_temp.state('ma'), 'unscheduled unscheduled', '4.1 one of three is not enough');
SELECT pg_temp.report('m3', 'failed');
SELECT is(pg_temp.state('mc') || ' ' || pg_temp.state('ma'), 'unscheduled unscheduled', '4.1 nor two');
SELECT pg_temp.report('m1', 'completed');
SELECT is(pg_temp.state('mc') || ' ' || pg_temp.state('ma'), 'unscheduled pending', '4.1 all-resolved needs all, all-completed all completed');
SELECT is(pg_temp.create('mx', '{"$deps": ["m1", "m2", "m3"]}') || ', ' || pg_temp.create('my', '{"$deps": ["m1", "m2"]}'), 'unscheduled 5:, pending 5: scheduled>pending', '4.1 the same at creation');

-- a released dependent is like any other task
SELECT is(pg_temp.take('ma'), 0, '4.1 a released dependent can be claimed');
SELECT is(pg_temp.report('ma', 'completed'), 'completed 5: scheduled>completed/completed', '4.1 and completed');

SELECT * FROM finish();
ROLLBACK;
