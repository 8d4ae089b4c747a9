-- doc/spec/taskcluster.md 4.2: a task with many dependencies, which a striped
-- counter counts.
BEGIN;
\ir helper.psql

CREATE TEMP TABLE required AS SELECT n, tq.slugid() AS id FROM generate_series(1, 600) AS n;
SELECT tq.enqueue_tasks('test/many', array_fill('{}'::jsonb, ARRAY[600]), (SELECT array_agg(id ORDER BY n) FROM required), deadline => '2 days') IS NOT NULL;

CREATE FUNCTION pg_temp.stands(id tq.slugid) RETURNS text LANGUAGE sql AS $$ SELECT tq.status(id) ->> 'state' $$;
CREATE FUNCTION pg_temp.unmet(of tq.slugid) RETURNS int LANGUAGE sql AS $$ SELECT unmet FROM tq.task_details WHERE task_id = of $$;
CREATE FUNCTION pg_temp.dependent(requires text, n int) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.enqueue('test/dependent', dependencies => (SELECT array_agg(id ORDER BY r.n) FROM required r WHERE r.n <= $2), requires => $1, deadline => '1 day') $$;
-- claims and reports those of these numbers
CREATE FUNCTION pg_temp.done(first int, last int, reason text DEFAULT 'completed') RETURNS bigint LANGUAGE sql AS $$
	SELECT count(c) FROM required r, tq.claim_task(r.id, 0, 'g', 'w') c WHERE r.n BETWEEN first AND last;
	SELECT count(*) FROM tq.resolve((SELECT array_agg(id) FROM required r WHERE r.n BETWEEN first AND last),
		(SELECT array_agg(0) FROM required r WHERE r.n BETWEEN first AND last), reason) $$;

SELECT pg_temp.dependent('all-completed', 600) AS a, pg_temp.dependent('all-resolved', 600) AS b, pg_temp.dependent('all-completed', 300) AS c,
	pg_temp.dependent('all-completed', 255) AS few, pg_temp.dependent('all-completed', 600) AS early, pg_temp.dependent('all-completed', 600) AS canceled \gset
SELECT is((SELECT count(*) FROM tq_internal.dependency_counter), 64 * 5::bigint, '4.2 all but the task with few dependencies have a striped counter');
SELECT is((SELECT sum(unmet) FROM tq_internal.dependency_counter), 600 * 4 + 300::bigint, '4.2 every dependency is in one stripe');
SELECT is(pg_temp.unmet(:'a'), 600, '4.2 the overview shows their sum');
SELECT is(pg_temp.unmet(:'few'), 255, '4.2 and that of few');

SELECT is(tq.schedule_task(:'early') ->> 'state', 'pending', '2.3 one is scheduled early');
SELECT is(tq.cancel_task(:'canceled') ->> 'state', 'exception', '2.5 and one is canceled');

SELECT is(pg_temp.done(1, 1), 1::bigint, 'one is completed');
SELECT is(pg_temp.unmet(:'a'), 599, '4.2 one less');
SELECT is(pg_temp.done(2, 255), 254::bigint, 'more are completed');
SELECT is(pg_temp.stands(:'few'), 'pending', '4.2 few are met');
SELECT is(pg_temp.stands(:'c'), 'unscheduled', '4.2 many are not yet');
SELECT is(pg_temp.done(256, 299), 44::bigint, 'all but one of 300');
SELECT is(pg_temp.unmet(:'c'), 1, '4.2 one is left');
SELECT is(pg_temp.done(300, 300), 1::bigint, 'that one');
SELECT is(pg_temp.stands(:'c'), 'pending', '4.2 the last one met');
SELECT is(pg_temp.done(301, 599), 299::bigint, 'all but the last');
SELECT is(pg_temp.unmet(:'a') || ' ' || pg_temp.unmet(:'b'), '1 1', '4.2 both wait for one');
SELECT is(pg_temp.done(600, 600, 'failed'), 1::bigint, 'the last one fails');
SELECT is(pg_temp.stands(:'a') || ' ' || pg_temp.stands(:'b'), 'unscheduled pending', '4.1 which meets all-resolved only');
SELECT tq.rerun_task((SELECT id FROM required WHERE n = 600)) ->> 'state';
SELECT count(*) FROM tq.claim_task((SELECT id FROM required WHERE n = 600), 1, 'g', 'w');
SELECT tq.report_completed((SELECT id FROM required WHERE n = 600), 1) ->> 'state';
SELECT is(pg_temp.stands(:'a'), 'pending', '4.1 a rerun meets the rest');
SELECT is(pg_temp.stands(:'early') || ' ' || pg_temp.stands(:'canceled'), 'pending exception', '4.2 the others have not changed');

-- stripes are deleted with their tasks
SET LOCAL tq.clock_offset = '1000 days';
SELECT count(*) FROM generate_series(1, 4), LATERAL (SELECT pg_temp.pass()) AS u;
SELECT is((SELECT count(*) FROM tq_internal.dependency_counter), 0::bigint, '8.4 no stripe outlives its task');
SELECT * FROM finish();
ROLLBACK;
