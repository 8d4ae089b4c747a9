-- doc/spec/taskcluster.md 2.7: traces in OTLP, and the tag traceparent.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.spans(trace jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$
	SELECT jsonb_path_query(trace, '$.resourceSpans[*].scopeSpans[*].spans[*]')
$$;
CREATE FUNCTION pg_temp.parent() RETURNS text LANGUAGE sql AS $$ SELECT '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' $$;

-- the tag
SELECT lives_ok($$SELECT tq.enqueue('trace/q', task_id => pg_temp.id('tagged'), tags => jsonb_build_object('traceparent', pg_temp.parent()))$$, '2.7 a tag traceparent');
SELECT is((SELECT task #>> '{tags,traceparent}' FROM tq.claim_work('trace/q', 'g', 'w', definition => true)), pg_temp.parent(), '2.7 the claim hands it out');
SELECT pg_temp.throws(format('SELECT tq.enqueue(''trace/q'', tags => %L)', jsonb_build_object('traceparent', bad)), 'TQ400', '2.7 not a traceparent: ' || bad)
FROM (VALUES (''), ('x'), (upper(pg_temp.parent())), ('01' || substr(pg_temp.parent(), 3)), (pg_temp.parent() || '-x'), (left(pg_temp.parent(), 54)),
	('00-00000000000000000000000000000000-b7ad6b7169203331-01'), ('00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01'),
	('00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01'), ('00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')) AS v (bad);
SELECT lives_ok($$SELECT tq.enqueue('trace/other', tags => '{"traceparen": "x", "traceparents": "y"}')$$, '2.7 other tags are any');

-- a task that continues a trace
SELECT is((SELECT count(*) FROM pg_temp.spans(tq.trace_task(pg_temp.id('tagged')))), 1::bigint, '2.7 trace_task: while it runs, only its wait has ended');
SELECT tq.report_completed(pg_temp.id('tagged'), 0) IS NOT NULL;
SELECT is((SELECT array_agg(DISTINCT s ->> 'traceId') FROM pg_temp.spans(tq.trace_task(pg_temp.id('tagged'))) AS s), '{0af7651916cd43dd8448eb211c80319c}', '2.7 it is in the trace of its tag');
SELECT is((SELECT array_agg(s ->> 'name' || coalesce(' in ' || (s ->> 'parentSpanId' = 'b7ad6b7169203331'), '')) FROM pg_temp.spans(tq.trace_task(pg_temp.id('tagged'))) AS s),
	'{trace/q in true,trace/q wait in false,trace/q run in false}', '2.7 below its span; the wait and the run are below the task');

-- a group: retries and dependencies are links
SELECT pg_temp.create('a', '{"$group": "g"}'), pg_temp.create('b', '{"$group": "g", "$deps": ["a"]}');
SELECT pg_temp.take('a'), pg_temp.report('a', 'worker-shutdown'), pg_temp.take('a'), pg_temp.report('a', 'completed'), pg_temp.take('b'), pg_temp.report('b', 'failed');
CREATE TEMP TABLE span AS SELECT n, s FROM pg_temp.spans(tq.trace(pg_temp.id('g'))) WITH ORDINALITY AS x (s, n);
SELECT is((SELECT array_agg(s ->> 'name' || ' ' || coalesce(s #>> '{status,code}', '-') ORDER BY n) FROM span),
	'{a 1,"a wait -","a run 2","a wait -","a run 1",b 2,"b wait -","b run 2"}', '2.7 trace: a span for each task, wait and run, with its status');
SELECT is((SELECT count(DISTINCT s ->> 'traceId') FROM span), 1::bigint, '2.7 one trace');
SELECT is((SELECT count(DISTINCT s ->> 'spanId') FROM span), 8::bigint, '2.7 each span has an id');
SELECT is((SELECT s #> '{links,0,spanId}' FROM span WHERE n = 5), (SELECT s -> 'spanId' FROM span WHERE n = 3), '2.7 a retry is linked to the first attempt');
SELECT is((SELECT s #> '{links,0,spanId}' FROM span WHERE n = 6), (SELECT s -> 'spanId' FROM span WHERE n = 1), '2.7 a task to what it depends on');
SELECT is((SELECT s #>> '{status,message}' FROM span WHERE n = 3), 'worker-shutdown', '2.7 why a run ended is its status');
SELECT is(tq.trace(pg_temp.id('g')), tq.trace(pg_temp.id('g')), '2.7 the ids are the same each time');
SELECT is((SELECT count(*) FROM span WHERE s ->> 'traceId' ~ '^[0-9a-f]{32}$' AND s ->> 'spanId' ~ '^[0-9a-f]{16}$' AND s ->> 'startTimeUnixNano' ~ '^\d{19}$'
	AND (s ->> 'endTimeUnixNano')::numeric >= (s ->> 'startTimeUnixNano')::numeric AND jsonb_typeof(s -> 'kind') = 'number'), 8::bigint, '2.7 ids, times and kinds as OTLP has them');
SELECT is((SELECT array_agg(DISTINCT k) FROM span CROSS JOIN LATERAL jsonb_object_keys(s) AS k), '{attributes,endTimeUnixNano,kind,links,name,parentSpanId,spanId,startTimeUnixNano,status,traceId}', '2.7 no other keys');
SELECT is((SELECT a #>> '{value,intValue}' FROM span CROSS JOIN LATERAL jsonb_array_elements(s -> 'attributes') AS a WHERE n = 5 AND a ->> 'key' = 'tq.run_id'), '1', '2.7 attributes: the run');

-- what is of a definition is shown to those who may read it
SELECT tq.enqueue('trace/c', task_id => pg_temp.id('c'), name => 'secret', dependencies => ARRAY[pg_temp.id('a')], tags => jsonb_build_object('traceparent', pg_temp.parent())) \g /dev/null
SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('trace/c', 'g', 'w') \g /dev/null
SELECT pg_temp.id('c') AS c \gset
CREATE ROLE tracer;
SELECT tq.grant_queue('tracer', 'trace/c', 'read') \g /dev/null
SET ROLE tracer;
SELECT tq.trace_task(:'c') AS read \gset
RESET ROLE;
SELECT tq.revoke_queue('tracer', 'trace/c', 'read'), tq.grant_queue('tracer', 'trace/c', 'depend') \g /dev/null
SET ROLE tracer;
SELECT tq.trace_task(:'c') AS depend \gset
RESET ROLE;
CREATE FUNCTION pg_temp.seen(trace jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', s ->> 'name', s ->> 'traceId' = '0af7651916cd43dd8448eb211c80319c', s ->> 'parentSpanId', jsonb_array_length(s -> 'links')) FROM pg_temp.spans(trace) AS s LIMIT 1
$$;
SELECT is(pg_temp.seen(tq.trace_task(:'c')), 'secret t b7ad6b7169203331 1', '2.7 all of a definition');
SELECT is(pg_temp.seen(:'read'), 'secret t b7ad6b7169203331', '2.7 no link to a task that the caller may not read');
SELECT is(pg_temp.seen(:'depend'), 'trace/c f', '2.7 nothing of a definition that the caller may not read');

-- a task that is rerun has not ended; what ran has
SELECT tq.rerun_task(pg_temp.id('b')) IS NOT NULL;
SELECT is((SELECT array_agg(s ->> 'name') FROM pg_temp.spans(tq.trace_task(pg_temp.id('b'))) AS s), '{b wait,b run}', '2.7 a task that is rerun has not ended');
SELECT pg_temp.throws($$SELECT tq.trace(pg_temp.id('no such'))$$, 'TQ404', '2.7 trace of no group');
SELECT pg_temp.throws($$SELECT tq.trace_task(pg_temp.id('no such'))$$, 'TQ404', '2.7 trace_task of no task');

SELECT * FROM finish();
ROLLBACK;
