-- doc/spec/taskcluster.md 2.7: pictures of a task group.
BEGIN;
\ir helper.psql

-- A text without the id of a group.
CREATE FUNCTION pg_temp.plain(text, name text) RETURNS text LANGUAGE sql AS $$
	SELECT replace($1, pg_temp.id($2)::text, 'GROUP')
$$;
CREATE FUNCTION pg_temp.tree(name text, max int DEFAULT 200) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.plain(string_agg(line, E'\n' ORDER BY n), name) FROM tq.group_tree(pg_temp.id(name), max) WITH ORDINALITY AS u (line, n)
$$;

-- A small group: a is completed, b was lost, retried and failed, c runs, d waits
-- for all of them, e is delayed, f waits for schedule_task() and another group.
SELECT pg_temp.create('a', '{"$group": "g"}');
SELECT pg_temp.create('b', '{"$group": "g", "$deps": ["a"], "retries": 1}');
SELECT pg_temp.create('c', '{"$group": "g", "$deps": ["a"]}');
SELECT pg_temp.create('d', '{"$group": "g", "$deps": ["a", "b", "c"]}');
SELECT pg_temp.take('a'), pg_temp.report('a', 'completed');
SELECT pg_temp.take('b'), pg_temp.report('b', 'worker-shutdown');
SELECT pg_temp.take('b'), pg_temp.report('b', 'failed');
SELECT pg_temp.take('c');
SELECT pg_temp.create('elsewhere');
SELECT pg_temp.create('e', '{"$group": "g", "policy": {"delay": 600}}');
SELECT tq.define_task(pg_temp.id('f'), pg_temp.def('f', '{"$group": "g", "$deps": ["f", "elsewhere"]}')) IS NOT NULL;

SELECT is(pg_temp.tree('g'), $$task group GROUP, 6 tasks: 2 unscheduled, 1 pending, 1 running, 1 completed, 1 failed
# a  completed
|- x b  failed, 1 retry
|  `- . d  unscheduled  (also after a, c)
`- = c  running
- e  pending: delayed
. f  unscheduled, held, +1 outside$$, '2.7 group_tree');
SELECT is(pg_temp.plain(tq.group_dot(pg_temp.id('g')), 'g'), $$digraph tq {
	label="task group GROUP, 6 tasks: 2 unscheduled, 1 pending, 1 running, 1 completed, 1 failed";
	rankdir=LR;
	node [shape=box, fontname="sans-serif", fontsize=11];
	n0 [label="a\ncompleted", shape=box, style="filled", fillcolor="#009e73", fontcolor="#000000"];
	n1 [label="b\nfailed, 1 retry", shape=octagon, style="filled,bold", fillcolor="#d55e00", fontcolor="#000000"];
	n2 [label="c\nrunning", shape=cds, style="filled,bold", fillcolor="#56b4e9", fontcolor="#000000"];
	n3 [label="d\nunscheduled", shape=box, style="filled,dashed", fillcolor="#bbbbbb", fontcolor="#000000"];
	n4 [label="e\npending: delayed", shape=box, style="filled,rounded", fillcolor="#f0e442", fontcolor="#000000"];
	n5 [label="f\nunscheduled, held, +1 outside", shape=box, style="filled,dashed", fillcolor="#bbbbbb", fontcolor="#000000"];
	n0 -> n1;
	n0 -> n2;
	n0 -> n3;
	n1 -> n3;
	n2 -> n3;
}$$, '2.7 group_dot');
SELECT is(pg_temp.plain(tq.group_mermaid(pg_temp.id('g')), 'g'), $$%% task group GROUP, 6 tasks: 2 unscheduled, 1 pending, 1 running, 1 completed, 1 failed
flowchart LR
    n0["a<br/>completed"]:::completed
    n1{{"b<br/>failed, 1 retry"}}:::failed
    n2>"c<br/>running"]:::running
    n3["d<br/>unscheduled"]:::unscheduled
    n4("e<br/>pending: delayed"):::pending
    n5["f<br/>unscheduled, held, #43;1 outside"]:::unscheduled
    n0 --> n1
    n0 --> n2
    n0 --> n3
    n1 --> n3
    n2 --> n3
    classDef unscheduled fill:#bbbbbb,color:#000000
    classDef pending fill:#f0e442,color:#000000
    classDef running fill:#56b4e9,color:#000000
    classDef completed fill:#009e73,color:#000000
    classDef failed fill:#d55e00,color:#000000
    classDef exception fill:#cc79a7,color:#000000$$, '2.7 group_mermaid');

-- the group of one task, and what happens to it
SELECT pg_temp.create('one');
SELECT is(pg_temp.tree('one'), E'task group GROUP, 1 task: 1 pending\n- one  pending', '2.7 a group of one task');
SELECT pg_temp.take('one'), pg_temp.report('one', 'malformed-payload');
SELECT is(pg_temp.tree('one'), E'task group GROUP, 1 task: 1 exception\n! one  exception: malformed-payload', '2.7 an exception has its reason');
SELECT tq.rerun_task(pg_temp.id('one')) IS NOT NULL;
SELECT is(pg_temp.tree('one'), E'task group GROUP, 1 task: 1 pending\n- one  pending, 1 retry', '2.7 a task that is rerun is pending');
SELECT pg_temp.create('deleted', '{"$group": "last"}'), pg_temp.create('left', '{"$group": "last", "$deps": ["deleted"]}');
SELECT tq.delete_task(pg_temp.id('deleted'));
SELECT is(pg_temp.tree('last'), format(E'task group GROUP, blocked by %s, 1 task: 1 unscheduled\n. left  unscheduled, +1 outside', pg_temp.id('deleted')), '2.7 a deleted task is outside');
SELECT tq.enqueue('test/unnamed', task_id => pg_temp.id('unnamed')) IS NOT NULL;
SELECT is(pg_temp.tree('unnamed'), E'task group GROUP, 1 task: 1 pending\n- test/unnamed  pending', '2.7 a task without a name has that of its queue');
SELECT tq.seal_task_group(pg_temp.id('g')) IS NOT NULL;

-- names that mean something to what reads the picture
CREATE TEMP TABLE hostile (n int, name text, tree text, dot text, mermaid text);
INSERT INTO hostile VALUES
	(1, '</script><b>&amp;', '</script><b>&amp;', '</script><b>&amp;amp;', '#60;/script#62;#60;b#62;#38;amp#59;'),
	(2, $$a"b\c'd];$$, $$a"b\c'd];$$, $$a\"b\\c'd];$$, '#34;b#92;c#39;d#93;#59;'),
	(3, E'x\ny\tz\r\x1b[31mred\x7f\x01', 'x y z ?[31mred??', 'x y z ?[31mred??', 'x y z #63;#91;31mred#63;#63;'),
	(4, E'\u202Eevil\u2066\u200f\u0085\u2028\ufeff', '?evil?????', '?evil?????', '#63;evil#63;#63;#63;#63;#63;'),
	(5, 'שלום ✓', 'שלום ✓', 'שלום ✓', 'שלום ✓'),
	(6, '%%{init} `x` |[y] #35;', '%%{init} `x` |[y] #35;', '%%{init} `x` |[y] #35;', '#37;#37;#123;init#125; #96;x#96; #124;#91;y#93; #35;35#59;'),
	(7, repeat('ü', 61), repeat('ü', 57) || '...', repeat('ü', 57) || '...', repeat('ü', 57) || '...'),
	(8, repeat('ü', 60), repeat('ü', 60), repeat('ü', 60), repeat('ü', 60)),
	(9, '', '', '', '');
SELECT pg_temp.create('h' || n, jsonb_build_object('$group', 'h' || n, 'metadata', jsonb_build_object('name', name, 'description', '', 'owner', '', 'source', 'https://example.com/'))) FROM hostile ORDER BY n;
SELECT is(string_agg(pg_temp.tree('h' || n), E'\n' ORDER BY n), string_agg(format(E'task group GROUP, 1 task: 1 pending\n- %s  pending', tree), E'\n' ORDER BY n), '2.7 hostile names in group_tree') FROM hostile;
SELECT is(string_agg((SELECT split_part(line, '"', 2) FROM regexp_split_to_table(replace(tq.group_dot(pg_temp.id('h' || n)), '\"', '<quote>'), E'\n') AS u (line) WHERE line ~ '^\tn0'), E'\n' ORDER BY n),
	string_agg(replace(dot, '\"', '<quote>') || '\npending', E'\n' ORDER BY n), '2.7 hostile names in group_dot') FROM hostile;
SELECT ok(bool_and(tq.group_dot(pg_temp.id('h' || n)) ~ '^digraph tq \{\n\tlabel="[^"]*";\n\trankdir=LR;\n[^\n]*\n\tn0 \[label="([^"\\]|\\.)*", shape=box[^\n]*\];\n\}$'), '2.7 no name leaves its string in group_dot') FROM hostile;
SELECT is(string_agg(split_part(tq.group_mermaid(pg_temp.id('h' || n)), '"', 2), E'\n' ORDER BY n),
	string_agg(CASE n WHEN 2 THEN 'a#34;b#92;c#39;d#93;#59;' ELSE mermaid END || '<br/>pending', E'\n' ORDER BY n), '2.7 hostile names in group_mermaid') FROM hostile;

-- large groups: tasks of a level whose names differ in numbers, then in what
-- follows the first word, then levels
CREATE FUNCTION pg_temp.many(name text, n int, names text, needs text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format($f$SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(%1$L || n)::text,
		'task', jsonb_set(pg_temp.def('x', jsonb_build_object('$group', %1$L)), '{metadata,name}', to_jsonb((%2$s)::text))
		|| jsonb_build_object('dependencies', (SELECT coalesce(jsonb_agg(pg_temp.id(%1$L || x)::text), '[]') FROM unnest((%3$s)::int[]) AS x WHERE x > 0))) ORDER BY n)) FROM generate_series(1, %4$s) n$f$,
		name, names, needs, n);
END
$$;
SELECT pg_temp.many('fan', 302, $$CASE n WHEN 1 THEN 'split' WHEN 302 THEN 'join' ELSE 'shard ' || n END$$,
	$$CASE n WHEN 1 THEN '{}' WHEN 302 THEN (SELECT array_agg(x) FROM generate_series(2, 301) x) ELSE ARRAY[1] END$$);
SELECT is(pg_temp.tree('fan'), $$task group GROUP, 302 tasks: 301 unscheduled, 1 pending; drawn as one: tasks of one level whose names differ in numbers
- split  pending
`- . shard * (300 tasks)  300 unscheduled
   `- . join  unscheduled$$, '2.7 names that differ in numbers are one');
SELECT is((SELECT count(*) FROM tq.group_tree(pg_temp.id('fan'), 302)), 303::bigint, '2.7 as many as max_nodes are drawn');
SELECT pg_temp.many('words', 40, $$CASE WHEN n % 2 = 0 THEN 'build ' ELSE 'test ' END || chr(65 + n)$$, $$CASE WHEN n > 10 THEN ARRAY[n - 10] ELSE '{}' END$$);
SELECT is(pg_temp.tree('words', 8), $$task group GROUP, 40 tasks: 30 unscheduled, 10 pending; drawn as one: tasks of one level whose names begin alike
- test * (5 tasks)  5 pending
`- . test * (5 tasks)  5 unscheduled
   `- . test * (5 tasks)  5 unscheduled
      `- . test * (5 tasks)  5 unscheduled
- build * (5 tasks)  5 pending
`- . build * (5 tasks)  5 unscheduled
   `- . build * (5 tasks)  5 unscheduled
      `- . build * (5 tasks)  5 unscheduled$$, '2.7 names that begin alike are one');
SELECT is(pg_temp.tree('words', 2), $$task group GROUP, 40 tasks: 30 unscheduled, 10 pending; drawn as one: levels
- test B, ... (20 tasks)  10 unscheduled, 10 pending
`- . test V, ... (20 tasks)  20 unscheduled$$, '2.7 levels are one');
SELECT pg_temp.many('chain', 1000, $$'step ' || n$$, $$ARRAY[n - 1]$$);
SELECT is(pg_temp.tree('chain', 3), $$task group GROUP, 1000 tasks: 999 unscheduled, 1 pending; drawn as one: levels
- step * (334 tasks)  333 unscheduled, 1 pending
`- . step * (333 tasks)  333 unscheduled
   `- . step * (333 tasks)  333 unscheduled$$, '2.7 levels of a chain');
SELECT is(pg_temp.tree('chain', 1), $$task group GROUP, 1000 tasks: 999 unscheduled, 1 pending; drawn as one: levels
- step * (1000 tasks)  999 unscheduled, 1 pending$$, '2.7 at least one is drawn');
SELECT is((SELECT line FROM tq.group_tree(pg_temp.id('chain'), 1000) WITH ORDINALITY AS u (line, n) WHERE n = 14), '                                 [12] . step 13  unscheduled', '2.7 deep lines are indented no further');
SELECT is((SELECT max(length(line)) < 140 FROM tq.group_tree(pg_temp.id('chain'), 1000) AS line), true, '2.7 lines of a deep tree are not long');
SELECT pg_temp.many('dense', 250, $$'t' || n$$, $$(SELECT array_agg(x) FROM generate_series(1, n - 1) x)$$);
SELECT cmp_ok(length(tq.group_dot(pg_temp.id('dense'), 2000)), '<', 500000, '2.7 so are tasks with very many dependencies');

-- a Gantt chart of runs at known times: one of each worker at once, a retry, and
-- one that was never claimed
SELECT pg_temp.create('fetch', '{"$group": "times"}'), pg_temp.create('slow', '{"$group": "times", "retries": 1, "metadata": {"name": "<slow> & \"long\"", "description": "", "owner": "", "source": "https://example.com/"}}'), pg_temp.create('never', '{"$group": "times"}'), pg_temp.create('tiny', '{"$group": "times"}');
SELECT pg_temp.take('fetch', 'w1'), pg_temp.report('fetch', 'completed');
SELECT pg_temp.take('slow', 'w2'), pg_temp.report('slow', 'worker-shutdown');
SELECT pg_temp.take('slow', 'w1'), pg_temp.report('slow', 'failed');
SELECT pg_temp.take('tiny', 'w1'), pg_temp.report('tiny', 'completed');
SELECT pg_temp.report('never', 'canceled');
UPDATE tq_internal.run r SET scheduled = t0 + s * interval '1 second', started = CASE WHEN b >= 0 THEN t0 + b * interval '1 second' END, resolved = t0 + e * interval '1 second'
FROM (VALUES ('fetch', 0, 0, 1, 4.5), ('slow', 0, 0, 2, 6), ('slow', 1, 6, 7, 10), ('tiny', 0, 0, 5, 5.001), ('never', 0, 0, -1, 8)) AS v (name, run, s, b, e), (SELECT timestamptz '2026-01-02 03:04:05+00' AS t0) AS t
WHERE r.task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id(v.name)) AND r.run_id = v.run;
SELECT is(regexp_replace(pg_temp.plain(tq.group_gantt(pg_temp.id('times')), 'times'), '<style>.*</defs>', ''), $$<svg xmlns="http://www.w3.org/2000/svg" width="1030" height="168" viewBox="0 0 1030 168" role="img"><title>task group GROUP</title>

<rect class="back" width="1030" height="168"/>
<text x="10" y="16" class="bold">task group GROUP</text><text x="10" y="34" class="small">5 runs, 10 s from 2026-01-02T03:04:05.000Z&#59; dashed: the wait for a worker&#59; a triangle: a retry&#59; underlined: the critical path</text><text x="184" y="78" class="end">wg/w1</text><rect class="stripe" y="84" width="1030" height="20"/><text x="184" y="98" class="end">wg/w2</text><text x="184" y="118" class="end">not claimed</text>
<path class="grid" d="M190 60V124"/><text x="192" y="56" class="small">0 ms</text><path class="grid" d="M350 60V124"/><text x="352" y="56" class="small">2 s</text><path class="grid" d="M510 60V124"/><text x="512" y="56" class="small">4 s</text><path class="grid" d="M670 60V124"/><text x="672" y="56" class="small">6 s</text><path class="grid" d="M830 60V124"/><text x="832" y="56" class="small">8 s</text><path class="grid" d="M990 60V124"/><text x="992" y="56" class="small">10 s</text>
<path class="wait" d="M190 74H270"/><g><title>fetch, run 0: completed; waited 1 s, took 3.5 s</title><rect class="completed" x="270" y="67" width="280" height="14" rx="2"/><text x="288" y="78" class="small in">fetch</text></g>
<path class="wait" d="M550 74H590"/><g><title>tiny, run 0: completed; waited 5 s, took 1 ms</title><rect class="completed" x="590" y="67" width="1" height="14" rx="2"/></g>
<path class="wait" d="M670 74H750"/><g><title>&#60;slow&#62; &#38; &#34;long&#34;, run 1: failed; waited 1 s, took 3 s</title><rect class="failed" x="750" y="67" width="240" height="14" rx="2"/><rect fill="url(#p-failed)" x="750" y="67" width="16" height="14"/><path class="path" d="M750 82H990"/><path class="mark" d="M750 70l6 -5h-12z"/><text x="768" y="78" class="small in">&#60;slow&#62; &#38; &#34;long&#34;</text></g>
<path class="wait" d="M190 94H350"/><g><title>&#60;slow&#62; &#38; &#34;long&#34;, run 0: exception, worker-shutdown; waited 2 s, took 4 s</title><rect class="exception" x="350" y="87" width="320" height="14" rx="2"/><rect fill="url(#p-exception)" x="350" y="87" width="16" height="14"/><path class="path" d="M350 102H670"/><text x="368" y="98" class="small in">&#60;slow&#62; &#38; &#34;long&#34;</text></g>
<g><title>never, run 0: exception, canceled; waited 8 s</title><rect class="exception" x="190" y="107" width="640" height="14" rx="2"/><rect fill="url(#p-exception)" x="190" y="107" width="16" height="14"/><text x="208" y="118" class="small in">never</text></g>
<rect class="unscheduled" x="190" y="148" width="24" height="14" rx="2"/><text x="220" y="160" class="small">unscheduled</text><rect class="pending" x="300" y="148" width="24" height="14" rx="8"/><rect fill="url(#p-pending)" x="300" y="148" width="16" height="14"/><text x="330" y="160" class="small">pending</text><rect class="running" x="410" y="148" width="24" height="14" rx="2"/><rect fill="url(#p-running)" x="410" y="148" width="16" height="14"/><text x="440" y="160" class="small">running</text><rect class="completed" x="520" y="148" width="24" height="14" rx="2"/><text x="550" y="160" class="small">completed</text><rect class="failed" x="630" y="148" width="24" height="14" rx="2"/><rect fill="url(#p-failed)" x="630" y="148" width="16" height="14"/><text x="660" y="160" class="small">failed</text><rect class="exception" x="740" y="148" width="24" height="14" rx="2"/><rect fill="url(#p-exception)" x="740" y="148" width="16" height="14"/><text x="770" y="160" class="small">exception</text>
</svg>$$, '2.7 group_gantt');
SELECT pg_temp.create('wait', '{"$group": "waits"}');
SELECT matches(tq.group_gantt(pg_temp.id('waits')), '>not claimed<.*<title>wait, run 0: pending; waited [^<]*</title><rect class="pending"', '2.7 group_gantt has a run that is pending');
SELECT pg_temp.take('wait');
SELECT matches(tq.group_gantt(pg_temp.id('waits')), '>wg/w1<.*<title>wait, run 0: running; waited [^<]*, took [^<]*</title><rect class="running"', '2.7 group_gantt has a run that is running');
SELECT doesnt_match(tq.group_gantt(pg_temp.id('waits')), 'not claimed', '2.7 group_gantt has no row of unclaimed runs then');
SELECT pg_temp.create('alone', '{"$deps": ["alone"]}');
SELECT doesnt_match(tq.group_gantt(pg_temp.id('alone')), 'wait for', '2.7 group_gantt without a run');
SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('m' || n)::text, 'task', pg_temp.def('m' || n, '{"$group": "m", "taskQueueId": "test/m"}')) ORDER BY n) FROM generate_series(1, 120) n));
SELECT count(*) FROM generate_series(1, 12) AS w, tq.claim_work('test/m', 'g', 'w' || w, 10);
SELECT is((SELECT count(*) FROM regexp_matches(tq.group_gantt(pg_temp.id('m')), '<g>', 'g')), 97::bigint, '2.7 a worker has at most eight rows, and the run of the critical path is drawn alone');
SELECT matches(tq.group_gantt(pg_temp.id('m')), '<title>3 runs, the first: m7, run 0: running;', '2.7 of which the last has the rest');
SELECT matches(tq.group_gantt(pg_temp.id('m'), 12), '>106 more runs are not drawn: give a larger max_rows<', '2.7 rows that are not drawn are said');
SELECT ok(bool_and(tq.group_gantt(pg_temp.id('h' || n)) !~ '[^ -~\n]' AND xml_is_well_formed_document(tq.group_gantt(pg_temp.id('h' || n)))), '2.7 hostile names in group_gantt: ASCII, and well-formed') FROM hostile;
SELECT ok(bool_and(tq.group_gantt(pg_temp.id('h' || n)) LIKE '%<title>' || v.html || ', run 0%'), '2.7 hostile names in group_gantt are escaped')
FROM (VALUES (1, '&#60;/script&#62;&#60;b&#62;&#38;amp&#59;'), (2, 'a&#34;b&#92;c&#39;d]&#59;'), (3, 'x y z ?[31mred??'), (5, '&#1513;&#1500;&#1493;&#1501; &#10003;')) AS v (n, html);

-- a report: progress, failures with their errors, the graph, runs
SELECT pg_temp.create('p', '{"$group": "report"}'), pg_temp.create('q', '{"$group": "report", "$deps": ["p"], "retries": 1}'), pg_temp.create('r', '{"$group": "report", "$deps": ["p", "q"]}'), pg_temp.create('s', '{"$group": "report"}');
SELECT pg_temp.take('p'), pg_temp.report('p', 'completed'), pg_temp.take('q'), pg_temp.report('q', 'intermittent-task'), pg_temp.take('q', 'w.2');
SELECT tq.report_failed(pg_temp.id('q'), 1, error => '{"message": "boom <b>&\nline 2\u001b[0m", "details": [7]}') ->> 'state', pg_temp.report('s', 'canceled');
UPDATE tq_internal.run SET resolved = '2026-01-02 03:04:05+00' WHERE task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id('q')) AND run_id = 1;
UPDATE tq_internal.run SET resolved = '2026-01-02 03:04:06+00' WHERE task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id('s'));
CREATE TEMP TABLE page (name text, html text);
INSERT INTO page SELECT g, tq.report_html(pg_temp.id(g)) FROM unnest('{report,one,h1,h2,h3,h4,h5,h6,h7,h8,h9}'::text[]) AS g;
SELECT is((SELECT (regexp_match(html, '<p id="progress">(.*?)</p>'))[1] FROM page WHERE name = 'report'),
	format('4 tasks: 1 unscheduled, 1 completed, 1 failed, 1 exception.<br>Outcome: blocked by %s; 75 %% of the tasks are resolved; not sealed.', pg_temp.id('q')), '2.7 report_html: progress');
SELECT is((SELECT string_agg(m[1], E'\n') FROM page, regexp_matches(html, '<tr>(<td.*?)</tr>', 'g') AS m WHERE name = 'report'),
	format($$<td><bdi>s</bdi></td><td><bdi>exception: canceled</bdi></td><td class="error"><bdi></bdi></td><td><bdi>1</bdi></td><td><bdi></bdi></td><td><bdi>test/q-s</bdi></td><td><bdi>2026-01-02T03:04:06.000Z</bdi></td><td><bdi>%s</bdi></td>
<td><bdi>q</bdi></td><td><bdi>failed</bdi></td><td class="error"><bdi>boom &#60;b&#62;&#38;
line 2?[0m
&#123;&#34;details&#34;: [7]&#125;</bdi></td><td><bdi>2</bdi></td><td><bdi>wg/w.2</bdi></td><td><bdi>test/q-q</bdi></td><td><bdi>2026-01-02T03:04:05.000Z</bdi></td><td><bdi>%s</bdi></td>$$, pg_temp.id('s'), pg_temp.id('q')), '2.7 report_html: failures, the last one first');
SELECT is((SELECT regexp_replace((regexp_match(html, '<div class="wide" id="graph">\n(.*?)</svg>'))[1], '<rect class="unscheduled"[^>]*width="24".*', '') FROM page WHERE name = 'report'),
	$$<svg width="684" height="170" viewBox="0 0 684 170" role="img"><title>tasks and what they depend on</title>
<rect class="back" width="684" height="170"/>
<path class="line" d="M190 52C220 52 220 28 250 28"/><path class="tip" d="M250 28l-7 -4v8z"/>
<path class="line" d="M190 52C220 52 220 76 250 76h180C460 76 460 52 490 52"/><path class="tip" d="M490 52l-7 -4v8z"/>
<path class="line" d="M430 28C460 28 460 52 490 52"/><path class="tip" d="M490 52l-7 -4v8z"/>
<g class="node"><title>p: completed</title><rect class="completed" x="10" y="34" width="180" height="36" rx="2"/><text x="30" y="49" class="in">p</text><text x="30" y="63" class="small in">completed</text></g>
<g class="node"><title>q: failed, 1 retry</title><rect class="failed" x="250" y="10" width="180" height="36" rx="2"/><rect fill="url(#p-failed)" x="250" y="10" width="16" height="36"/><text x="270" y="25" class="in">q</text><text x="270" y="39" class="small in">failed, 1 retry</text></g>
<g class="node"><title>r: unscheduled</title><rect class="unscheduled" x="490" y="34" width="180" height="36" rx="2"/><text x="510" y="49" class="in">r</text><text x="510" y="63" class="small in">unscheduled</text></g>
<g class="node"><title>s: exception: canceled</title><rect class="exception" x="10" y="82" width="180" height="36" rx="2"/><rect fill="url(#p-exception)" x="10" y="82" width="16" height="36"/><text x="30" y="97" class="in">s</text><text x="30" y="111" class="small in">exception: canceled</text></g>
$$, '2.7 report_html: the graph');
SELECT matches((SELECT html FROM page WHERE name = 'report'), 'id="runs">.*>wg/w.2</text>.*<title>q, run 1: failed; waited [^<]*, took [^<]*</title>', '2.7 report_html: runs');
SELECT matches((SELECT html FROM page WHERE name = 'one'), '<p id="failures">None.</p>', '2.7 report_html: no failure');
SELECT ok(bool_and(html ~ '^<!DOCTYPE html>' AND html ~ '\n</html>$' AND html !~ '[^ -~\n]'), '2.7 report_html: ASCII') FROM page;
SELECT ok(bool_and(html !~* '<script|<a |<img|<link|<iframe|<object|href|src=|url\((?!#p-)|@import|javascript:|<[^>]* on[a-z]+='), '2.7 report_html: nothing that runs or loads anything') FROM page;
SELECT ok(bool_and(html LIKE '%<meta http-equiv="Content-Security-Policy" content="default-src ''none''; style-src ''unsafe-inline''">%'), '2.7 report_html: and nothing may') FROM page;
SELECT ok(bool_and(xml_is_well_formed_document(regexp_replace(replace(html, '<br>', ''), '<!DOCTYPE html>|<meta [^>]*>', '', 'g'))), '2.7 report_html: each element has its end, whatever the names') FROM page;
SELECT ok(bool_and(html LIKE '%prefers-color-scheme:dark%'), '2.7 report_html: dark and light') FROM page;
SELECT tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('z' || n)::text, 'task', pg_temp.def('z' || n, '{"$group": "z"}')) ORDER BY n) FROM generate_series(1, 101) n));
SELECT count(tq.cancel_task(pg_temp.id('z' || n))) FROM generate_series(1, 101) n;
SELECT is((SELECT count(*) FROM regexp_matches(tq.report_html(pg_temp.id('z')), '<tr><td>', 'g')), 100::bigint, '2.7 report_html: at most a hundred failures');
SELECT matches(tq.report_html(pg_temp.id('z')), '<p>The last 100 of 101.</p>.*Outcome: canceled;|Outcome: canceled;.*<p>The last 100 of 101.</p>', '2.7 report_html: of how many; the outcome');
SELECT matches(tq.report_html(pg_temp.id('fan'), 10), '<p>Drawn as one: tasks of one level whose names differ in numbers.</p>.*<title>300 x shard \*: 300 unscheduled</title>', '2.7 report_html: a large group');
SELECT cmp_ok(length(tq.report_html(pg_temp.id('dense'), 2000)), '<', 2000000, '2.7 report_html: very many dependencies');
SELECT cmp_ok(length(tq.report_html(pg_temp.id('chain'), 2000)), '<', 2000000, '2.7 report_html: a long chain');

-- the graph as an SVG
SELECT is((SELECT regexp_replace((regexp_match(s, '</defs>\n(.*?)</svg>'))[1], '<rect class="unscheduled"[^>]*width="24".*', '') FROM tq.group_graph(pg_temp.id('report')) AS s),
	(SELECT regexp_replace((regexp_match(html, '<div class="wide" id="graph">\n<svg[^\n]*\n(.*?)</svg>'))[1], '<rect class="unscheduled"[^>]*width="24".*', '') FROM page WHERE name = 'report'), '2.7 group_graph: that of report_html');
SELECT ok(bool_and(s ~ '^<svg xmlns="http://www.w3.org/2000/svg" width=' AND s ~ '<style>.*[.]tip\{' AND s ~ '\n</svg>$' AND s !~ '<a |[^ -~\n]' AND xml_is_well_formed_document(s)),
	'2.7 group_graph: a picture by itself, ASCII, without a link') FROM (SELECT tq.group_graph(pg_temp.id(n)) AS s FROM unnest('{report,one,chain}'::text[]) AS n) AS drawn;
SELECT is((SELECT string_agg(m[1], ' ' ORDER BY m[1]) FROM regexp_matches(tq.group_graph(pg_temp.id('report'), link => '/task?id='), '<a href="/task\?id&#61;([^"]*)"><g class="node">', 'g') AS m),
	(SELECT string_agg(task_id::text, ' ' ORDER BY task_id::text) FROM tq.task_details WHERE task_group_id = pg_temp.id('report')), '2.7 group_graph: each box leads to its task');
SELECT matches(tq.group_graph(pg_temp.id('report'), link => '/task?id='), format('<a href="/task\?id&#61;%s"><g class="node"><title>q: failed', pg_temp.id('q')), '2.7 to its own');
SELECT is(regexp_count, 0::bigint, '2.7 group_graph: a box of several tasks leads nowhere') FROM (SELECT count(*) AS regexp_count FROM regexp_matches(tq.group_graph(pg_temp.id('fan'), 10, '/task?id='), '<a [^>]*><g class="node"><title>\d+ x', 'g')) AS c;
SELECT ok(bool_and(s !~ '[^ -~\n]' AND xml_is_well_formed_document(s)), '2.7 hostile names in group_graph: ASCII, and well-formed') FROM hostile v CROSS JOIN LATERAL tq.group_graph(pg_temp.id('h' || n), link => '"><script>alert(1)</script>') AS s;
SELECT ok(bool_and(tq.group_graph(pg_temp.id('h' || n)) LIKE '%<title>' || v.html || ': pending</title>%'), '2.7 hostile names in group_graph are escaped')
FROM (VALUES (1, '&#60;/script&#62;&#60;b&#62;&#38;amp&#59;'), (2, 'a&#34;b&#92;c&#39;d]&#59;'), (5, '&#1513;&#1500;&#1493;&#1501; &#10003;')) AS v (n, html);
SELECT ok(bool_and(s !~* '<script|<foreign|<image|<use|style=|<[^>]* on[a-z]+='), '2.7 group_graph: nothing that runs') FROM hostile v CROSS JOIN LATERAL tq.group_graph(pg_temp.id('h' || n), link => '"onload="') AS s;
SELECT pg_temp.throws(format('SELECT tq.group_graph(%L, %s)', pg_temp.id('g'), max), 'TQ400', '2.7 group_graph: max_nodes ' || max) FROM unnest('{0,2001}'::text[]) AS max;

-- progress of running tasks
SELECT pg_temp.create('p1', '{"$group": "pr"}'), pg_temp.create('p2', '{"$group": "pr"}'), pg_temp.create('p3', '{"$group": "pr"}') \g /dev/null
SELECT pg_temp.take('p1'), pg_temp.take('p2'), pg_temp.take('p3') \g /dev/null
SELECT tq.report_progress(pg_temp.id('p1'), 0, 299, 300, E'\x1b[2J </title>"\n\u202efile 17'), tq.report_progress(pg_temp.id('p2'), 0, 17, NULL) \g /dev/null
SELECT is((SELECT string_agg(line, E'\n') FROM tq.group_tree(pg_temp.id('pr')) AS line WHERE line ~ '^= '), E'= p1  running: 99 %, ?[2J </title>" ?file 17\n= p2  running: 17 done\n= p3  running', '2.7 group_tree: progress');
SELECT matches(tq.group_dot(pg_temp.id('pr')), 'p1\\nrunning: 99 %, \?\[2J </title>\\" \?file 17"', '2.7 group_dot: progress');
SELECT matches(tq.group_mermaid(pg_temp.id('pr')), '"p2<br/>running: 17 done"', '2.7 group_mermaid: progress');
SELECT matches(tq.group_gantt(pg_temp.id('pr')), '<title>p1, run 0: running: 99 &#37;, \?\[2J &#60;/title&#62;&#34; \?file 17; waited ', '2.7 group_gantt: progress');
SELECT matches(tq.report_html(pg_temp.id('pr')), '<title>p1: running: 99 &#37;, \?\[2J &#60;/title&#62;&#34; \?file 17</title>', '2.7 report_html: progress');
SELECT tq.report_completed(pg_temp.id('p1'), 0), tq.defer_task(pg_temp.id('p2'), 0, '1 hour') \g /dev/null
SELECT is((SELECT count(*) FROM tq.group_tree(pg_temp.id('pr')) AS line WHERE line ~ '%|done'), 0::bigint, '2.7 of running tasks only');

-- tasks that are drawn as one are painted in the shares of their states
SELECT pg_temp.many('mix', 20, $$'part ' || n$$, $$'{}'$$) \g /dev/null
SELECT tq.skip_task(pg_temp.id('mix' || n)) FROM generate_series(1, 19) AS n \g /dev/null
SELECT tq.cancel_task(pg_temp.id('mix20')) \g /dev/null
SELECT is((SELECT line FROM regexp_split_to_table(tq.group_dot(pg_temp.id('mix'), 1), E'\n') AS line WHERE line ~ 'n0 '),
	E'\tn0 [label="part * (20 tasks)\\n19 completed, 1 exception", shape=box, style="striped", fillcolor="#cc79a7;0.05:#009e73;0.95", fontcolor="#000000"];', '2.7 group_dot: shares');
SELECT matches(tq.group_mermaid(pg_temp.id('mix'), 1), E'n0\\["part #42; \\(20 tasks\\).*"\\]:::completed\n    style n0 stroke:#cc79a7,stroke-width:4px\n', '2.7 group_mermaid: most, and a border');
SELECT matches(tq.report_html(pg_temp.id('mix'), 1), '<g><title>19 completed</title><rect class="completed" x="10" y="10" width="167.4" [^>]*/></g><g><title>1 exception</title><rect class="exception" x="177.4" y="10" width="12.6" ', '2.7 report_html: shares');
SELECT is((SELECT line FROM tq.group_tree(pg_temp.id('mix'), 1) AS line OFFSET 1), '! part * (20 tasks)  19 completed, 1 exception', '2.7 group_tree: the mark of what to look at first');

-- the name of a group
SELECT tq.name_task_group(pg_temp.id('mix'), E'nightly </b>"\u202e %%{init: {}}%%') \g /dev/null
SELECT matches((SELECT line FROM tq.group_tree(pg_temp.id('mix'), 1) AS line LIMIT 1), ' nightly </b>"\? %%', '2.7 group_tree: the name of the group');
SELECT matches(tq.group_dot(pg_temp.id('mix'), 1), 'nightly </b>\\"\? %%\{init', '2.7 group_dot: it is escaped');
SELECT matches(tq.group_mermaid(pg_temp.id('mix'), 1), 'nightly </b>"\? \?\?\?init: \?\?\?\?\?', '2.7 group_mermaid: it is no directive');
SELECT matches(picture, 'nightly &#60;/b&#62;&#34;\?', '2.7 group_gantt, report_html: it is escaped') FROM unnest(ARRAY[tq.group_gantt(pg_temp.id('mix')), tq.report_html(pg_temp.id('mix'), 1)]) AS picture;

-- faults
SELECT pg_temp.throws($$SELECT * FROM tq.group_tree(NULL)$$, 'TQ400', '2.7 no group');
SELECT pg_temp.throws($$SELECT tq.group_dot(tq.slugid())$$, 'TQ404', '2.7 a group that does not exist');
SELECT pg_temp.throws(format('SELECT tq.group_mermaid(%L, %s)', pg_temp.id('g'), max), 'TQ400', '2.7 max_nodes ' || max) FROM unnest('{0,2001,NULL}'::text[]) AS max WHERE max IS NOT NULL;
SELECT pg_temp.throws(format('SELECT tq.group_gantt(%L, %s)', pg_temp.id('g'), max), 'TQ400', '2.7 max_rows ' || max) FROM unnest('{0,1001}'::text[]) AS max;
SELECT pg_temp.throws(format('SELECT tq.group_mermaid(%L, NULL)', pg_temp.id('g')), 'TQ400', '2.7 max_nodes NULL');
SELECT pg_temp.unchanged(format('SELECT tq.group_tree(%L), tq.group_dot(%1$L), tq.group_mermaid(%1$L), tq.group_graph(%1$L), tq.group_gantt(%1$L), tq.report_html(%1$L)', pg_temp.id('g')), '2.7 pictures change nothing');
SELECT pg_temp.unchanged(format('SELECT a.*, b.* FROM tq.group_tree(%L) AS a, tq.group_tree(%1$L, 2) AS b', pg_temp.id('g')), '2.7 two in a statement');
SELECT pg_temp.unchanged(format('SELECT count(*) FROM (SELECT tq.group_tree(%L) LIMIT 1) AS s', pg_temp.id('g')), '2.7 of which not all rows are read');

-- A library that a session loads looks at the declaration before it reads an argument:
-- SQL of another version is refused.  All its functions, each declared otherwise.
CREATE FUNCTION pg_temp.misdeclared(library text, symbol text, arguments text, result text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	EXECUTE format('CREATE OR REPLACE FUNCTION pg_temp.misdeclared(%s) RETURNS %s AS %L, %L LANGUAGE C', arguments, result, '$libdir/' || library, symbol);
	EXECUTE format('SELECT * FROM pg_temp.misdeclared(%s)', call);
	RETURN 'called';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' ', SQLSTATE, SQLERRM, hint);
END
$$;
SELECT matches(pg_temp.misdeclared(library, symbol, arguments, result, call),
	format('^55000 function misdeclared[(][)] is of version \S+, and its library of version [0-9.]+ Restart .* ALTER EXTENSION %s UPDATE', CASE library WHEN 'tq_shard' THEN 'tq_shard' ELSE 'tq' END),
	format('2.7 %s(%s) -> %s is refused', symbol, arguments, result))
FROM (VALUES
	('tq_picture', 'tq_draw_tree', 'text, int', 'text', $$'a', 1$$),
	('tq_picture', 'tq_draw_tree', 'bigint, int, tq_internal.drawn_task[], bigint[]', 'text', $$1, 1, '{}', '{}'$$),
	('tq_picture', 'tq_draw_tree', 'text, int, tq_internal.drawn_run[], bigint[]', 'text', $$'a', 1, '{}', '{}'$$),
	('tq_picture', 'tq_draw_tree', 'text, int, tq_internal.drawn_task[], bigint[]', 'text', 'NULL, NULL, NULL, NULL'),
	('tq_picture', 'tq_draw_dot', 'text, int, tq_internal.drawn_task[], int[]', 'text', $$'a', 1, '{}', '{}'$$),
	('tq_picture', 'tq_draw_mermaid', 'text, int, tq_internal.drawn_task[], bigint[]', 'bigint', $$'a', 1, '{}', '{}'$$),
	('tq_picture', 'tq_draw_svg', 'text, int, tq_internal.drawn_task[], bigint[], text, text', 'text', $$'a', 1, '{}', '{}', '', ''$$),
	('tq_picture', 'tq_draw_gantt', 'text, int, tq_internal.drawn_task[], bigint[], timestamptz', 'text', $$'a', 1, '{}', '{}', now()$$),
	('tq_picture', 'tq_draw_report', 'text, int, tq_internal.drawn_task[], bigint[], tq_internal.drawn_run[], tq_internal.drawn_fault[], timestamptz', 'text',
		$$'a', 1, '{}', '{}', '{}', '{}', now()$$),
	('tq_picture', 'tq_critical_tasks', 'tq_internal.drawn_task[], bigint[], int[], int[], timestamptz', 'SETOF tq_internal.critical_task',
		$$'{}', '{}', '{}', '{}', now()$$),
	('tq_shard', 'tq_shard_cluster', '', 'bigint', ''),
	('tq_shard', 'tq_shard_lock_map', 'int', 'void', '1'),
	('tq_shard', 'tq_shard_unlock_map', '', 'text', ''),
	('tq_shard', 'tq_shard_lock_subscription', 'int', 'void', '1'),
	('tq_shard', 'tq_shard_one_partition', 'tq.slugid[], int[]', 'int', $$'{}', '{}'$$),
	('tq_shard', 'tq_shard_claim_order', 'int[], text', 'int[]', $$'{}', 'a'$$),
	('tq_shard', 'tq_shard_note_empty', 'bigint, int', 'bool', '1, 1'),
	('tq_shard', 'tq_shard_claims', 'text, int, text, text', 'SETOF tq.queue_claim', $$'a', 1, 'a', 'a'$$),
	('tq_shard', 'tq_shard_queue_claims', 'text, int, text, text', 'SETOF tq.claim', $$'a', 1, 'a', 'a'$$),
	('tq_shard', 'tq_shard_runs', 'int[], int[]', 'text', $$'{1}', '{1}'$$),
	('tq_shard', 'tq_shard_resolutions', 'tq.slugid[], int[]', 'SETOF tq.resolution', $$'{}', '{}'$$)
) AS v (library, symbol, arguments, result, call);
SELECT * FROM finish();
ROLLBACK;
