-- doc/spec/taskcluster.md 3.4: at most 50 runs.
BEGIN;
\ir helper.psql

-- Rerun and cancel until the task has n runs, the last of them resolved.
CREATE FUNCTION pg_temp.runs(name text, n int) RETURNS int
LANGUAGE plpgsql AS $$
BEGIN
	WHILE jsonb_array_length(tq.status(pg_temp.id(name)) -> 'runs') < n LOOP
		PERFORM tq.cancel_task(pg_temp.id(name));
		PERFORM tq.rerun_task(pg_temp.id(name));
	END LOOP;
	PERFORM tq.cancel_task(pg_temp.id(name));
	RETURN jsonb_array_length(tq.status(pg_temp.id(name)) -> 'runs');
END
$$;
CREATE FUNCTION pg_temp.short(status jsonb) RETURNS text
LANGUAGE sql AS $$
	SELECT format('%s, %s runs, %s left', status ->> 'state', jsonb_array_length(status -> 'runs'), status ->> 'retriesLeft')
$$;

SELECT pg_temp.create('a', '{"retries": 5}');
SELECT is(pg_temp.runs('a', 43), 43, '3.4 43 runs');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('a'))), 'pending, 44 runs, 5 left', '3.4 with 43 runs a rerun leaves 5 of 5 retries');
SELECT is(pg_temp.runs('a', 45), 45, '3.4 45 runs');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('a'))), 'pending, 46 runs, 4 left', '3.4 with 45 runs a rerun leaves 4');
SELECT is(pg_temp.runs('a', 48), 48, '3.4 48 runs');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('a'))), 'pending, 49 runs, 1 left', '3.4 with 48 runs a rerun leaves 1');
SELECT is(pg_temp.take('a'), 48, '3.4 the run is claimed');
SELECT is(pg_temp.short(tq.report_exception(pg_temp.id('a'), 48, 'worker-shutdown')), 'pending, 50 runs, 0 left', '3.4 its retry is run 50');
SELECT is(pg_temp.take('a'), 49, '3.4 it is claimed');
SELECT is(pg_temp.short(tq.report_exception(pg_temp.id('a'), 49, 'worker-shutdown')), 'exception, 50 runs, 0 left', '3.4 no more retries');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', '3.4 with 50 runs: conflict');
SELECT is((SELECT string_agg(run ->> 'runId', ',' ORDER BY n) FROM jsonb_array_elements(tq.status(pg_temp.id('a')) -> 'runs') WITH ORDINALITY AS u (run, n)),
	(SELECT string_agg(n::text, ',' ORDER BY n) FROM generate_series(0, 49) AS n), '1.4 the runs are dense, from 0 to 49, in order');

SELECT pg_temp.create('b', '{"retries": 5}');
SELECT is(pg_temp.runs('b', 49), 49, '3.4 49 runs');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('b'))), 'pending, 50 runs, 0 left', '3.4 with 49 runs a rerun leaves 0');
SELECT pg_temp.report('b', 'canceled');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('b'))$$, 'TQ409', '3.4 then no rerun');
SELECT pg_temp.throws(format('SELECT tq.claim_task(pg_temp.id(''b''), %s, ''wg'', ''w1'')', n), code, '3.4 no run to claim: ' || n) FROM (VALUES (49, 'TQ409'), (50, 'TQ404')) AS v (n, code);

-- 49 retries, all used
SELECT pg_temp.create('c', '{"retries": 49}');
DO $$
BEGIN
	FOR n IN 0..48 LOOP
		PERFORM pg_temp.take('c');
		PERFORM tq.report_exception(pg_temp.id('c'), n, 'intermittent-task');
	END LOOP;
END
$$;
SELECT is(pg_temp.short(tq.status(pg_temp.id('c'))), 'pending, 50 runs, 0 left', '3.4 49 retries make 50 runs');
SELECT pg_temp.take('c');
SELECT is(pg_temp.short(tq.report_exception(pg_temp.id('c'), 49, 'intermittent-task')), 'exception, 50 runs, 0 left', '3.4 and no more');

-- a rerun of an unscheduled task: min(retries, 49)
SELECT pg_temp.create('d', '{"retries": 49, "$deps": ["d"]}');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('d'))), 'pending, 1 runs, 49 left', '3.4 rerun of an unscheduled task');
SELECT pg_temp.report('d', 'canceled');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('d'))), 'pending, 2 runs, 48 left', '3.4 rerun with one run: 48 are left');

-- tq.max_runs
SET tq.max_runs = 3;
SELECT pg_temp.create('e', '{"retries": 5}');
SELECT pg_temp.report('e', 'canceled');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('e'))), 'pending, 2 runs, 1 left', '3.4 tq.max_runs: retriesLeft is capped');
SELECT pg_temp.report('e', 'canceled');
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('e'))), 'pending, 3 runs, 0 left', '3.4 tq.max_runs: to 0');
SELECT pg_temp.report('e', 'canceled');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('e'))$$, 'TQ409', '3.4 tq.max_runs: no more');
RESET tq.max_runs;
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('e'))), 'pending, 4 runs, 5 left', '3.4 tq.max_runs: until it is raised');


-- and it bounds retries as well as reruns
SET tq.max_runs = 2;
SELECT pg_temp.running('f', '{"retries": 5}');
SELECT is(pg_temp.short(tq.report_exception(pg_temp.id('f'), 0, 'worker-shutdown')), 'pending, 2 runs, 4 left', '3.4 tq.max_runs: a retry below it');
SELECT pg_temp.take('f');
SELECT is(pg_temp.short(tq.report_exception(pg_temp.id('f'), 1, 'worker-shutdown')), 'exception, 2 runs, 4 left', '3.4 tq.max_runs: no retry past it');
RESET tq.max_runs;
SELECT is(pg_temp.short(tq.rerun_task(pg_temp.id('f'))), 'pending, 3 runs, 5 left', '3.4 tq.max_runs: final until it is raised');

SELECT * FROM finish();
ROLLBACK;
