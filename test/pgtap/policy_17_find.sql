-- doc/spec/policy.md 17: filters, and what find_tasks() finds.
BEGIN;
\ir policy.psql

-- The names of what a filter finds, read in pages of that size.
CREATE FUNCTION pg_temp.found(filter jsonb, size int DEFAULT 1000, budget interval DEFAULT '1 min') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	place text;
	names text[] := '{}';
	row record;
	n int;
	ended bool;
BEGIN
	LOOP
		n := 0;
		ended := true;
		FOR row IN SELECT * FROM tq.find_tasks(filter, place, size, budget) LOOP
			n := n + 1;
			place := row.page;
			ended := row.task_id IS NOT NULL;
			IF ended THEN
				names := names || coalesce(row.name, row.task_id::text);
			END IF;
		END LOOP;
		EXIT WHEN ended AND n < size OR cardinality(names) > 1000;
	END LOOP;
	RETURN array_to_string(names, ' ');
END
$$;

CREATE FUNCTION pg_temp.filter_refusal(filter text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	PERFORM tq.find_tasks(filter::jsonb);
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || ' ' || SQLERRM || ': ' || detail || ' ' || hint;
END
$$;

-- One task in each state, and more, in three queues.
CREATE TEMP TABLE by_filter (filter jsonb, expected text);
SELECT pg_temp.create('blocker', '{"taskQueueId": "find/a", "priority": "low"}');
SELECT pg_temp.create('waits', '{"taskQueueId": "find/a", "$deps": ["blocker"]}');
SELECT pg_temp.create('later', '{"taskQueueId": "find/a", "delay": 600}');
SELECT pg_temp.create('runs', '{"taskQueueId": "find/b"}'), pg_temp.take('runs', 'w9');
SELECT pg_temp.create('done', '{"taskQueueId": "find/b", "tags": {"kind": "mail", "part": "1"}}'), pg_temp.take('done'), pg_temp.report('done', 'completed');
SELECT pg_temp.create('fails', '{"taskQueueId": "find/b", "payload": {"order": 7, "lines": [{"id": 1}, {"id": 2}]}}'), pg_temp.take('fails');
SELECT tq.report_failed(pg_temp.id('fails'), 0, error => '{"message": "no route to 10.0.0.1", "code": "E\\d+"}') \g /dev/null
SELECT pg_temp.create('lost', '{"taskQueueId": "find/c", "retries": 0, "tags": {"kind": "mail", "part": "2"}}'), pg_temp.take('lost'), pg_temp.report('lost', 'worker-shutdown');
SELECT pg_temp.create('again', '{"taskQueueId": "find/c", "$group": "fleet"}'), pg_temp.take('again'), pg_temp.report('again', 'worker-shutdown');
SELECT pg_temp.create('member', '{"taskQueueId": "find/c", "$group": "fleet", "metadata": {"name": "a%b*", "description": "x", "owner": "ann_x@example.com", "source": "https://example.com/"}}');
SELECT pg_temp.create('keyed', '{"taskQueueId": "find/c", "policy": {"uniqueKey": "u1", "serialKey": "s1"}}');

SELECT is(pg_temp.found('{}'), 'keyed a%b* again lost fails done runs later waits blocker', '17.1 all tasks, 17.2.1 the newest first');
INSERT INTO by_filter SELECT f.filter::jsonb, f.expected
FROM (VALUES
	('{"queue": "find/a"}', 'later waits blocker'),
	('{"queue": ["find/a", "find/b"]}', 'fails done runs later waits blocker'),
	('{"queue": "find/*"}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"queue": "fin*"}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"queue": "nothing/*"}', ''),
	('{"queue": "find/unknown"}', ''),
	('{"state": "unscheduled"}', 'waits'),
	('{"state": ["pending"]}', 'keyed a%b* again later blocker'),
	('{"state": ["running", "completed"]}', 'done runs'),
	('{"state": ["failed", "exception"]}', 'lost fails'),
	('{"state": "pending", "queue": "find/c"}', 'keyed a%b* again'),
	('{"state": ["failed", "exception"], "queue": "find/b"}', 'fails'),
	('{"reason": "worker-shutdown"}', 'lost'),
	('{"reason": ["retry", "failed"]}', 'again fails'),
	('{"reason": "completed"}', 'done'),
	('{"name": "done"}', 'done'),
	('{"name": "a*"}', 'a%b* again'),
	('{"name": "a%b*"}', 'a%b*'),
	('{"name": "a_*"}', ''),
	('{"name": "*"}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"name": "%"}', ''),
	('{"owner": "ann_*"}', 'a%b*'),
	('{"owner": "ann.x@example.com"}', ''),
	('{"tags": {"kind": "mail"}}', 'lost done'),
	('{"tags": {"kind": "mail", "part": "2"}}', 'lost'),
	('{"tags": {}}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"payload": {"order": 7}}', 'fails'),
	('{"payload": {"lines": [{"id": 2}]}}', 'fails'),
	('{"payload": 7}', ''),
	('{"error": "route to"}', 'fails'),
	('{"error": "E\\\\d+"}', 'fails'),
	('{"error": "\"code\""}', 'fails'),
	('{"error": "r.ute"}', ''),
	('{"error": "route", "state": "completed"}', ''),
	('{"worker": "wg/w9"}', 'runs'),
	('{"worker": "wg/*"}', 'lost fails done runs'),
	('{"worker": "other/w"}', ''),
	('{"priority": ["low", "high"]}', 'blocker'),
	('{"runsAtLeast": 2}', 'again'),
	('{"runsAtLeast": 1, "state": ["unscheduled", "running"]}', 'runs'),
	('{"key": {"unique": "u1"}}', 'keyed'),
	('{"key": {"unique": "u1", "serial": "s1"}}', 'keyed'),
	('{"key": {"unique": "u1", "serial": "s2"}}', ''),
	('{"key": {"fairness": "u1"}}', ''),
	('{"resolvedAfter": "2000-01-01"}', 'lost fails done'),
	('{"resolvedBefore": "2000-01-01"}', ''),
	('{"createdAfter": "2000-01-01T12:00Z", "createdBefore": "9999-12-31T23:59:59.999999Z"}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"createdAfter": "0001-01-01 00:00:00+00", "createdBefore": "9999-12-31"}', 'keyed a%b* again lost fails done runs later waits blocker'),
	('{"createdAfter": "2000-01-01T12:00:00.5+05:30", "resolvedBefore": "9999-12-31T23:59:59-15"}', 'lost fails done'),
	('{"createdAfter": "2000-01-01", "createdBefore": "2000-01-02"}', '')) AS f (filter, expected);
SELECT is(pg_temp.found(filter), expected, '17.1 ' || filter::text) FROM by_filter;
SELECT is(pg_temp.found(jsonb_build_object('waitsFor', pg_temp.id('blocker'))), 'waits', '17.1 waitsFor');
SELECT is(pg_temp.found(jsonb_build_object('waitsFor', pg_temp.id('unknown'))), '', '17.1 waitsFor: of a task that does not exist');
SELECT is(pg_temp.found(jsonb_build_object('group', pg_temp.id('fleet'))), 'a%b* again', '17.1 group');
SELECT is(pg_temp.found(jsonb_build_object('group', tq.status(pg_temp.id('done')) ->> 'taskGroupId')), 'done', '17.1 group of one task');
SELECT is(pg_temp.found(jsonb_build_object('group', pg_temp.id('fleet'), 'state', 'pending', 'runsAtLeast', 2)), 'again', '17.1 several keys');
SELECT is(pg_temp.found(jsonb_build_object('createdAfter', pg_temp.iso(pg_temp.base()))), 'keyed a%b* again lost fails done runs later waits blocker', '17.1 createdAfter is inclusive');
SELECT is(pg_temp.found(jsonb_build_object('createdBefore', pg_temp.iso(pg_temp.base()))), '', '17.1 createdBefore is exclusive');
SELECT is(pg_temp.found(jsonb_build_object('resolvedAfter', tq.status(pg_temp.id('fails')) #>> '{runs,0,resolved}', 'queue', 'find/b', 'state', 'failed')), 'fails', '17.1 resolvedAfter is inclusive');


-- The same by an index that operators may make (doc/operations.md).
SAVEPOINT s;
CREATE INDEX task_of_queue ON tq_internal.task (queue, id);
SELECT is(pg_temp.found(filter || '{"queue": "find/*"}'), expected, '17.1 by the index: ' || filter::text) FROM by_filter WHERE NOT filter ? 'queue';
SELECT is(pg_temp.found('{"queue": ["find/c", "find/a"]}', n), 'keyed a%b* again lost later waits blocker', '17.2.3 by the index, in pages of ' || n) FROM generate_series(1, 8) AS n;
SELECT is(pg_temp.found('{"queue": "find/a"}', 1000, '0'), 'later waits blocker', '17.2.5 by the index, with a budget of 0');
SELECT is(pg_stat_get_xact_numscans('tq_internal.task_of_queue'::regclass) > 0, true, '17.1 the index is read');
ROLLBACK TO s;

-- The row.
SELECT row_eq($$SELECT task_id, task_queue_id, name, state, reason, priority, created, resolved, error FROM tq.find_tasks('{"error": "route"}')$$,
	ROW(pg_temp.id('fails'), 'find/b'::text, 'fails'::text, 'failed'::text, 'failed'::text, 'lowest'::text, pg_temp.base(), (tq.status(pg_temp.id('fails')) #>> '{runs,0,resolved}')::timestamptz, 'no route to 10.0.0.1'::text), '17.2 the row of a task');
SELECT is(o.state || coalesce(o.reason, ''), f.state || coalesce(f.reason, ''), '17.2 state and reason of ' || f.name || ' are those of task_overview')
FROM tq.find_tasks('{"queue": "find/*"}') AS f JOIN tq.task_overview AS o USING (task_id);

-- Pages.
SELECT is(pg_temp.found('{}', n), 'keyed a%b* again lost fails done runs later waits blocker', '17.2.3 in pages of ' || n) FROM generate_series(1, 11) AS n;
SELECT is(pg_temp.found('{"state": ["pending", "failed"]}', n), 'keyed a%b* again fails later blocker', '17.2.3 of a list, in pages of ' || n) FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.call_as('none', format('SELECT count(*) FROM tq.find_tasks(''{}'', %L)', page)), expected, '17.2.3 after ' || page)
FROM (VALUES ('0', '0'), ('1.2', 'TQ400 No row of this list has it as its page.'), ('x', 'TQ400 No row of this list has it as its page.'), ('', 'TQ400 No row of this list has it as its page.'),
	('99999999999999999999', 'TQ400 No row of this list has it as its page.'), ('1; DROP TABLE x', 'TQ400 No row of this list has it as its page.')) AS v (page, expected);

-- A task that changes its state between pages is found once.
CREATE TEMP TABLE place AS SELECT page, name FROM tq.find_tasks('{"state": ["pending"]}', max => 2);
SELECT is(string_agg(name, ' '), 'keyed a%b*', '17.2.4 the first page') FROM place;
SELECT tq.change_task_priority(pg_temp.id('blocker'), 'high') \g /dev/null
SELECT tq.cancel_task(pg_temp.id('keyed')) \g /dev/null
SELECT is((SELECT string_agg(name, ' ') FROM tq.find_tasks('{"state": ["pending"]}', min(page))), 'again later blocker', '17.2.4 the second one') FROM place;

-- Dead letters.
SELECT pg_temp.create('dead' || n, '{"taskQueueId": "find/dead", "retries": 0, "policy": {"deadLetter": true}}') FROM generate_series(1, 2) AS n \g /dev/null
SELECT pg_temp.take('dead1'), pg_temp.report('dead1', 'failed'), pg_temp.take('dead2'), pg_temp.report('dead2', 'worker-shutdown') \g /dev/null
SELECT pg_temp.create('plain', '{"taskQueueId": "find/dead", "retries": 0}'), pg_temp.take('plain'), pg_temp.report('plain', 'failed'), pg_temp.create('dead3', '{"taskQueueId": "find/dead", "policy": {"deadLetter": true}}') \g /dev/null
SELECT is(pg_temp.found(filter::jsonb), expected, '17.1 deadLetter: ' || filter) FROM (VALUES ('{"deadLetter": true}', 'dead2 dead1'), ('{"deadLetter": true, "state": "failed"}', 'dead1'), ('{"deadLetter": true, "state": "completed"}', ''),
	('{"deadLetter": true, "queue": "find/dead", "reason": "worker-shutdown"}', 'dead2'), ('{"deadLetter": false, "queue": "find/dead"}', 'dead3 plain'), ('{"deadLetter": true, "queue": "find/a"}', '')) AS v (filter, expected);
CREATE ROLE dead_reader;
SELECT tq.grant_queue('dead_reader', 'find/dead', 'read') \g /dev/null
SELECT is(pg_temp.call_as('dead_reader', 'SELECT count(*) FROM tq.find_tasks(''{"deadLetter": true}'')'), '0', '17.1.3 deadLetter: not without the right to list dead letters');
SELECT tq.grant_scopes('dead_reader', ARRAY['queue:dead-letters:find/dead']) \g /dev/null
SELECT is(pg_temp.call_as('dead_reader', 'SELECT count(*) FROM tq.find_tasks(''{"deadLetter": true}'')'), '2', '17.1.3 deadLetter: with it');
SELECT tq.redrive(pg_temp.id('dead1')) \g /dev/null
SELECT is(pg_temp.found('{"deadLetter": true}'), 'dead2', '17.1 deadLetter: one that is redriven is none');
SELECT tq.discard_dead_letter(pg_temp.id('dead2')) \g /dev/null
SELECT is(pg_temp.found('{"deadLetter": true}'), '', '17.1 deadLetter: nor one that is discarded');
SELECT tq.delete_task(t.task_id) FROM tq.task_overview AS t WHERE task_queue_id = 'find/dead' \g /dev/null

-- A budget.
SELECT pg_temp.create('many' || n, '{"taskQueueId": "find/many"}') FROM generate_series(1, 100) AS n \g /dev/null
SELECT is(pg_temp.found('{"queue": "find/a"}', 1000, '0'), 'later waits blocker', '17.2.5 pages of a budget of 0 come to an end');
SELECT is(pg_temp.found('{"payload": {"order": 7}}', 1000, '0'), 'fails', '17.2.5 so do those of small steps');
SELECT row_eq($$SELECT count(*), count(task_id), max(created) FROM tq.find_tasks('{"payload": {"order": 7}}', budget => '0')$$, ROW(1::bigint, 0::bigint, pg_temp.base()), '17.2.2 the last row has a page, and how far it came');
SELECT is(count(*), 0::bigint, '17.2.2 there is none when there is no more') FROM tq.find_tasks('{"payload": {"order": 8}}', budget => '1 hour');
SELECT is(tq_internal.find_size(1000, took::interval, left_over::interval), expected, '17.2.2 the next chunk after 1,000 in ' || took || ', with ' || left_over || ' left')
FROM (VALUES ('1 ms', '1 min', 2000), ('7 ms', '1 min', 1000), ('11 ms', '1 min', 500), ('1 ms', '30 ms', 1000), ('2 ms', '30 ms', 500), ('1 ms', '-1 ms', 500)) AS v (took, left_over, expected);
SELECT is(pg_temp.call_as('none', format('SELECT count(*) FROM tq.find_tasks(''{}'', budget => %L)', budget)), expected, '17.2.2 a budget of ' || budget)
FROM (VALUES ('-1 s', 'TQ400 It is "-00:00:01".'), ('1 hour 1 s', 'TQ400 It is "01:00:01".'), ('178000000 years', 'TQ400 It is "178000000 years".'), ('1 hour', '100'), ('0', '100')) AS v (budget, expected);
SELECT is(pg_temp.call_as('none', 'SELECT count(*) FROM tq.find_tasks(''{}'', max => 0)') ~ '^TQ400 ', true, '17.2.2 a max of 0');
SELECT is(pg_temp.call_as('none', 'SELECT count(*) FROM tq.find_tasks(NULL)') ~ '^TQ400 ', true, '17.1 no filter');

-- Refusals.
SELECT matches(pg_temp.filter_refusal(f.filter), f.expected, '17.1.1 ' || left(f.filter, 60))
FROM (VALUES
	('[]', '^TQ400 invalid filter: It is \[\.\.\.\], not an object|^TQ400 invalid filter: It is .*, not an object'),
	('{"stat": "pending"}', '^TQ400 invalid filter: It must not have the key "stat", but may have "state"\. A filter has keys of these: queue, state, '),
	('{"nothing like it": 1}', 'It must not have the key "nothing like it"\. A filter has keys'),
	('{"state": "done"}', '"state" has .*done.*\. Give some of unscheduled, pending'),
	('{"state": []}', '"state" has 0 names'),
	('{"state": null}', '"state" has null'),
	('{"state": [1]}', '"state" has 1\.'),
	('{"state": {"a": 1}}', '"state" has'),
	('{"reason": "because"}', '"reason" has'),
	('{"priority": "top"}', '"priority" has .*highest'),
	('{"queue": 7}', '"queue" has 7'),
	('{"queue": "a/b/c"}', '^TQ400 '),
	('{"queue": "a b*"}', '^TQ400 '),
	('{"name": 1}', '"name" is 1'),
	('{"tags": "x"}', '"tags" is "x"'),
	('{"error": ["x"]}', '"error" is'),
	('{"group": "x"}', '"group" is "x"'),
	('{"deadLetter": "true"}', '"deadLetter" is "true"\. Give true or false'),
	('{"deadLetter": null}', '"deadLetter" is null'),
	('{"waitsFor": 5}', '"waitsFor" is 5'),
	('{"worker": "x"}', '"worker" is "x"'),
	('{"createdAfter": "yesterday-ish"}', '"createdAfter" is "yesterday-ish"'),
	('{"createdAfter": "now"}', '^TQ400 .*"createdAfter" is "now"'),
	('{"createdBefore": "infinity"}', '^TQ400 .*"createdBefore" is "infinity"'),
	('{"resolvedAfter": "-infinity"}', '^TQ400 .*"resolvedAfter" is "-infinity"'),
	('{"resolvedBefore": "yesterday"}', '^TQ400 .*"resolvedBefore" is "yesterday"'),
	('{"createdBefore": "294276-12-31 23:59:59"}', '^TQ400 .*"createdBefore" is "294276-12-31 23:59:59"'),
	('{"createdAfter": "4714-11-24 00:00:00+00 BC"}', '^TQ400 .*"createdAfter" is "4714-11-24 00:00:00'),
	('{"createdAfter": "2026-02-30"}', '^TQ400 .*"createdAfter" is "2026-02-30"'),
	('{"createdAfter": "2026-01-31T25:00Z"}', '^TQ400 .*"createdAfter" is "2026-01-31T25:00Z"'),
	('{"createdAfter": "31.1.2026"}', '^TQ400 .*"createdAfter" is "31.1.2026"'),
	('{"createdAfter": ""}', '^TQ400 .*"createdAfter" is ""'),
	('{"createdBefore": 5}', '"createdBefore" is 5'),
	('{"resolvedAfter": "2026-13-01"}', '"resolvedAfter" is'),
	('{"runsAtLeast": 0}', '"runsAtLeast" is 0'),
	('{"runsAtLeast": 1.5}', '"runsAtLeast" is 1.5'),
	('{"runsAtLeast": "2"}', '"runsAtLeast" is "2"'),
	('{"runsAtLeast": 1e100}', '"runsAtLeast" is '),
	('{"key": "x"}', '"key" is "x"'),
	('{"key": {}}', '"key" is {}'),
	('{"key": {"other": "x"}}', '"key" is '),
	('{"key": {"unique": 7}}', '"key" is '),
	('{"owner": null}', '"owner" is null'),
	(format('{"payload": "%s"}', repeat('x', 1000000)), 'It has 10000\d\d bytes'),
	((SELECT format('{%s}', string_agg(format('"k%s": 1', n), ',')) FROM generate_series(1, 10000) AS n), '^TQ400 invalid filter: It (must not have the key|has \d+ bytes)'),
	(format('{"queue": [%s"x/y"]}', repeat('"x/y",', 100)), '"queue" has 101 names')) AS f (filter, expected);
SELECT is(pg_temp.found(format('{"payload": %s1%s}', repeat('[', 5000), repeat(']', 5000))::jsonb), '', '17.1 a payload that is nested deeply');

-- What a role of one queue finds.
CREATE ROLE finder;
SELECT is(pg_temp.call_as('finder', 'SELECT count(*) FROM tq.find_tasks(''{}'', budget => ''1 min'')'), '0', '17.1.3 a role without rights finds nothing');
SELECT tq.grant_queue('finder', 'find/b', 'read') \g /dev/null
SELECT is(pg_temp.call_as('finder', format('SELECT string_agg(name, '' '') FROM tq.find_tasks(%L, budget => ''1 min'')', filter)), expected, '17.1.3 a reader of find/b: ' || filter)
FROM (VALUES ('{}', 'fails done runs'), ('{"queue": "*"}', 'fails done runs'), ('{"queue": "find/c"}', 'NULL'), ('{"state": ["failed", "exception"]}', 'fails'), ('{"tags": {"kind": "mail"}}', 'done'),
	(jsonb_build_object('group', pg_temp.id('fleet'))::text, 'NULL'), (jsonb_build_object('waitsFor', pg_temp.id('blocker'))::text, 'NULL')) AS v (filter, expected);
SELECT tq.grant_queue('finder', 'find/a', 'depend') \g /dev/null
SELECT is(pg_temp.call_as('finder', format('SELECT string_agg(coalesce(name, ''-''), '' '') FROM tq.find_tasks(%L, budget => ''1 min'')', filter)), expected, '17.1.3 who sees find/a without definitions: ' || filter)
FROM (VALUES ('{}', 'fails done runs - - -'), ('{"name": "later"}', 'NULL'), ('{"payload": {}}', 'fails done runs'), ('{"state": "unscheduled"}', '-')) AS v (filter, expected);
SELECT tq.grant_scopes('finder', ARRAY['queue:status:' || pg_temp.id('lost')]) \g /dev/null
SELECT is(pg_temp.call_as('finder', 'SELECT count(*) FROM tq.find_tasks(''{"queue": "find/c"}'')'), '0', '17.1.3 a scope of one task finds none');
CREATE ROLE all_reader IN ROLE tq_reader;
SELECT is(pg_temp.call_as('all_reader', 'SELECT count(*) FROM tq.find_tasks(''{"queue": "find/c"}'')'), '4', '17.1.3 tq_reader finds all');

-- 17.5: groups.  The ids of the groups come back as their names.
CREATE FUNCTION pg_temp.groups(name text DEFAULT NULL, size int DEFAULT 1000, budget interval DEFAULT '1 min') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	place text;
	found text[] := '{}';
	row record;
	n int;
	is_cut bool;
BEGIN
	FOR i IN 1 .. 1000 LOOP
		n := 0;
		is_cut := false;
		FOR row IN SELECT * FROM tq.find_groups(name, place, size, budget) LOOP
			n := n + 1;
			place := row.page;
			is_cut := row.task_group_id IS NULL;
			found := CASE WHEN is_cut THEN found ELSE found || coalesce(row.name, '-') END;
		END LOOP;
		EXIT WHEN NOT is_cut AND n < size;
	END LOOP;
	RETURN array_to_string(found, ' ');
END
$$;
SELECT pg_temp.create(g || n, jsonb_build_object('taskQueueId', q, '$group', g)) FROM (VALUES ('g1_', 3, 'find/a'), ('g2_', 2, 'find/b'), ('g3_', 1, 'find/b')) AS v (g, tasks, q), generate_series(1, tasks) AS n \g /dev/null
SELECT tq.name_task_group(pg_temp.id('g1_'), 'build 1'), tq.name_task_group(pg_temp.id('g2_'), 'build 2'), tq.name_task_group(pg_temp.id('g3_'), E'b_ild"% \\') \g /dev/null
SELECT is(pg_temp.groups(), E'b_ild"% \\ build 2 build 1 -', '17.5.1 the newest first');
SELECT is(pg_temp.groups(pattern), expected, '17.5.1 by name: ' || pattern) FROM (VALUES ('build *', 'build 2 build 1'), ('build 1', 'build 1'), ('b*d 1', ''), (E'b_ild"% \\', E'b_ild"% \\'), ('*', E'b_ild"% \\ build 2 build 1'), ('', '')) AS v (pattern, expected);
SELECT is(pg_temp.groups(NULL, size, budget::interval), pg_temp.groups(), format('17.5.2 in pages of %s, with %s', size, budget)) FROM (VALUES (1, '1 min'), (2, '0'), (1000, '0')) AS v (size, budget);
SELECT is(pg_temp.groups('build 1', 1000, '0'), 'build 1', '17.5.2 pages of a budget of 0 come to an end');
SELECT row_eq($$SELECT count(*), count(task_group_id), count(page) FROM tq.find_groups('none', budget => '0')$$, ROW(1::bigint, 0::bigint, 1::bigint), '17.5.2 the last row has a page, and no group');
SELECT is(count(*), 0::bigint, '17.5.2 there is none when there is no more') FROM tq.find_groups('none', budget => '1 hour');
SELECT results_eq('SELECT task_group_id, name, outcome, tasks, unscheduled, delayed, pending, running, completed, failed, exception, first_created, last_resolved, sealed FROM tq.find_groups() ORDER BY 1',
	'SELECT task_group_id, name, outcome, tasks, unscheduled, delayed, pending, running, completed, failed, exception, first_created, last_resolved, sealed FROM tq.group_overview ORDER BY 1', '17.5 the rows of the view');
SELECT is(pg_temp.call_as('none', format('SELECT count(*) FROM tq.find_groups(%s)', arguments)) ~ '^TQ400 ', true, '17.5 refused: ' || arguments)
FROM unnest('{"max => 0","max => 1001","budget => ''-1 s''","after => ''x''","after => ''1.2''"}'::text[]) AS arguments;
CREATE ROLE lister;
SELECT is(pg_temp.call_as('lister', 'SELECT count(*) FROM tq.find_groups()'), '0', '17.5 a role without rights finds no group');
SELECT tq.grant_queue('lister', 'find/b', 'read') \g /dev/null
SELECT is(pg_temp.call_as('lister', 'SELECT string_agg(name, '' '') FROM tq.find_groups()'), E'b_ild"% \\ build 2', '17.5 a role of one queue finds those of its own');

SELECT * FROM finish();
ROLLBACK;
