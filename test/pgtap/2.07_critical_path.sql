-- doc/spec/taskcluster.md 2.7: critical_path, and its marks in pictures.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.s(i interval) RETURNS text LANGUAGE sql AS $$ SELECT round(extract(epoch FROM i) / 10)::text || '0' $$;
CREATE FUNCTION pg_temp.at(clock interval) RETURNS void LANGUAGE sql AS $$ SELECT set_config('tq.clock_offset', clock::text, true) $$;
-- The path in words: name, state, seconds from the end of the row before, waited+ran+retried, slack.
CREATE FUNCTION pg_temp.path(g text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(format('%s %s %s=%s+%s+%s/%s', p.name, p.state, pg_temp.s(p.ends - p.begins), pg_temp.s(p.waiting), pg_temp.s(p.running),
		pg_temp.s(p.retrying), coalesce(pg_temp.s(p.slack), '-')), ', ' ORDER BY p.place)
	FROM tq.critical_path(pg_temp.id(g)) AS p
$$;

-- a, and b after it, which is retried, decide; c and d would have come 40 and 100 s later
SELECT pg_temp.create('a', '{"$group": "g"}'), pg_temp.create('c', '{"$group": "g"}');
SELECT pg_temp.create('b', '{"$group": "g", "$deps": ["a", "c"]}');
SELECT pg_temp.create('d', '{"$group": "g"}'), pg_temp.create('z', '{"$group": "g", "$deps": ["b", "d"]}');
SELECT pg_temp.at('10 s'), pg_temp.take('a'), pg_temp.take('c'), pg_temp.take('d');
SELECT pg_temp.at('60 s'), pg_temp.report('c', 'completed');
SELECT pg_temp.at('100 s'), pg_temp.report('a', 'completed');
SELECT pg_temp.at('120 s'), pg_temp.take('b');
SELECT pg_temp.at('150 s'), pg_temp.report('b', 'worker-shutdown');
SELECT pg_temp.at('160 s'), pg_temp.take('b');
SELECT pg_temp.at('200 s'), pg_temp.report('d', 'completed');
SELECT pg_temp.at('300 s'), pg_temp.report('b', 'completed');
SELECT pg_temp.at('310 s'), pg_temp.take('z');
SELECT pg_temp.at('400 s'), pg_temp.report('z', 'completed');
SELECT is(pg_temp.path('g'), 'a completed 100=10+90+00/40, b completed 200=10+140+50/100, z completed 100=10+90+00/100',
	'2.7 critical_path: from the first task to the last, with waits, runs, retries, and the slack');
SELECT is((SELECT array_agg(place || ' ' || round(share::numeric, 2) ORDER BY place) FROM tq.critical_path(pg_temp.id('g'))), '{1 0.25,2 0.50,3 0.25}', '2.7 critical_path: shares of the whole');
SELECT is((SELECT count(*) FROM regexp_matches(tq.group_gantt(pg_temp.id('g')), 'class="path"', 'g')), 4::bigint, '2.7 group_gantt: marks the runs of its tasks');
SELECT ok(tq.report_html(pg_temp.id('g')) LIKE '%Critical path: a, b, z.%', '2.7 report_html: names them');

-- one task, which was never claimed
SELECT pg_temp.at('0 s'), pg_temp.create('one', '{"$group": "lone"}');
SELECT pg_temp.at('50 s'), pg_temp.report('one', 'canceled');
SELECT is(pg_temp.path('lone'), 'one exception 50=50+00+00/-', '2.7 critical_path: a task that was canceled only waited');

-- the slack of days is said in days
SELECT pg_temp.at('0 s'), pg_temp.create('soon', '{"$group": "days"}'), pg_temp.create('late', '{"$group": "days", "$deadline": "5 days"}');
SELECT pg_temp.report('soon', 'canceled'), pg_temp.at('3 days'), pg_temp.report('late', 'canceled');
SELECT alike((SELECT slack::text FROM tq.critical_path(pg_temp.id('days'))), '3 days%', '2.7 critical_path: a slack of days');

-- a rerun of a required task, after the one that it released: not its release
SELECT pg_temp.at('0 s'), pg_temp.create('r', '{"$group": "rerun"}'), pg_temp.create('s', '{"$group": "rerun", "$deps": ["r"]}');
SELECT pg_temp.take('r'), pg_temp.at('10 s'), pg_temp.report('r', 'completed'), pg_temp.take('s'), pg_temp.at('20 s'), pg_temp.report('s', 'completed');
SELECT tq.rerun_task(pg_temp.id('r')) IS NOT NULL;
SELECT pg_temp.at('30 s'), pg_temp.take('r'), pg_temp.at('90 s'), pg_temp.report('r', 'completed');
SELECT is((SELECT string_agg(name, ' ' ORDER BY place) FROM tq.critical_path(pg_temp.id('rerun'))), 'r', '2.7 critical_path: ends with what ended last');
SELECT pg_temp.create('u', '{"$group": "rerun", "$deps": ["s"]}'), pg_temp.take('u'), pg_temp.at('100 s'), pg_temp.report('u', 'completed');
SELECT is((SELECT string_agg(name, ' ' ORDER BY place) FROM tq.critical_path(pg_temp.id('rerun'))), 's u', '2.7 critical_path: a rerun has not released what ran before');

-- a group that goes on: what runs decides, and what waits for it comes after
SELECT pg_temp.at('0 s'), pg_temp.create('x', '{"$group": "on"}'), pg_temp.create('y', '{"$group": "on", "$deps": ["x"]}');
SELECT pg_temp.at('10 s'), pg_temp.take('x'), pg_temp.at('30 s');
SELECT ok(pg_temp.path('on') LIKE 'x running %, y unscheduled %', '2.7 critical_path: of a group that goes on, what is expected to end last');
SELECT ok((SELECT bool_and(ends >= pg_temp.clock() - interval '5 seconds') FROM tq.critical_path(pg_temp.id('on'))), '2.7 critical_path: nothing unresolved ends before now');

-- a run takes 100 s
SELECT regexp_replace(pg_get_functiondef('tq_internal.queue_counters'::regproc), '\n LANGUAGE c.*',
	E'\n LANGUAGE plpgsql AS $f$ BEGIN FOR queue IN SELECT q.id FROM tq_internal.queue q LOOP run_p50 := ''100 s''; RETURN NEXT; END LOOP; END $f$') \gexec

-- dependencies that come later than their dependents: each of 150 tasks waits for the next
SELECT pg_temp.at('0 s'), pg_temp.create('v0', '{"$group": "back"}');
SELECT pg_temp.create('v' || n, '{"$group": "back", "$deps": ["v0"]}') FROM generate_series(1, 150) AS n \g /dev/null
SELECT tq.add_dependencies(pg_temp.id('v' || n), ARRAY[pg_temp.id('v' || n + 1)]) FROM generate_series(1, 149) AS n \g /dev/null
SELECT is((SELECT string_agg(name, ' ' ORDER BY place) FROM tq.critical_path(pg_temp.id('back'))), 'v0 ' || (SELECT string_agg('v' || n, ' ' ORDER BY n DESC) FROM generate_series(1, 150) AS n),
	'2.7 critical_path: of a chain whose tasks were created from its end');

-- so many dependencies are too many
UPDATE tq_internal.task SET dependencies = array_fill(pg_temp.id('v0'), ARRAY[500001]) WHERE task_id = pg_temp.id('v1');
SELECT pg_temp.throws($$SELECT * FROM tq.critical_path(pg_temp.id('back'))$$, 'TQ400', '2.7 critical_path: of more than 500,000 dependencies');

SELECT pg_temp.throws($$SELECT * FROM tq.critical_path(pg_temp.id('no such'))$$, 'TQ404', '2.7 critical_path: of no group');
SELECT pg_temp.throws($$SELECT * FROM tq.critical_path(NULL)$$, 'TQ400', '2.7 critical_path: NULL');

SELECT * FROM finish();
ROLLBACK;
