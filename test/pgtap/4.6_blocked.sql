-- doc/spec/taskcluster.md 4.6: groups of which nothing can start any more, and why() of a
-- task that waits for others at any depth.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.blocked(grp text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', coalesce(blocked::text, blocked_by[1]), (SELECT string_agg(coalesce((SELECT t.metadata ->> 'name' FROM tq_internal.task t WHERE t.task_id = b::tq.slugid), 'gone'), ',' ORDER BY 1) FROM unnest(CASE WHEN blocked THEN blocked_by END) AS b))
	FROM tq.group_progress(pg_temp.id(grp))
$$;
CREATE FUNCTION pg_temp.roots(name text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(w.detail, '; ' ORDER BY w.detail), '') FROM tq.why(pg_temp.id(name)) AS w WHERE w.detail ~ '^(at the root|in all|it waits)'
$$;
CREATE FUNCTION pg_temp.make(name text, deps text[] DEFAULT '{}', grp text DEFAULT 'g', requires text DEFAULT 'all-completed') RETURNS void LANGUAGE sql AS $$
	SELECT FROM tq.enqueue('test/q-' || name, task_id => pg_temp.id(name), name => name, task_group_id => pg_temp.id(grp), retries => 0, requires => requires,
		dependencies => ARRAY(SELECT pg_temp.id(d) FROM unnest(deps) AS d))
$$;

SELECT pg_temp.make('lone', grp => 'lone');
SELECT is(pg_temp.blocked('lone'), 'false', 'a group of one');

-- A chain: it is blocked once the first has failed, and only then.
SAVEPOINT s;
SELECT pg_temp.make('a'), pg_temp.make('b', '{a}'), pg_temp.make('c', '{b}'), pg_temp.make('d', '{c}');
SELECT is(pg_temp.blocked('g'), 'false', 'what can be claimed is not blocked');
SELECT is(pg_temp.roots('d'), 'at the root: a: pending', 'why: what it waits for at any depth');
SELECT is(pg_temp.roots('b'), '', 'why: not what it depends on itself');
SELECT pg_temp.take('a');
SELECT is(pg_temp.blocked('g'), 'false', 'nor what runs');
SELECT is(pg_temp.roots('d'), 'at the root: a: running', 'why: running');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.blocked('g'), 'true a', 'blocked, by the task that failed');
SELECT is(pg_temp.progress('g'), '4: u3 f1 -', 'though it has no outcome');
SELECT is(pg_temp.roots('d'), 'at the root: a: failed', 'why: the root');
SELECT is(advice, format('SELECT tq.rerun_task(%L)', pg_temp.id('a')), 'why: what to do') FROM tq.why(pg_temp.id('d')) WHERE detail ~ '^at the root';
SELECT is(tq.report_html(pg_temp.id('g')) ~ ('Outcome: blocked by ' || pg_temp.id('a')), true, 'the page says so');
SELECT is((SELECT blocked FROM tq_internal.group_progress(pg_temp.id('g'))), NULL, 'group_progress for views does not look');
SELECT is((SELECT blocked FROM tq.group_overview WHERE task_group_id = pg_temp.id('g')), true, 'group_overview does');
SELECT matches((SELECT line FROM tq.group_tree(pg_temp.id('g')) AS line LIMIT 1), format('^task group %s, blocked by %s, ', pg_temp.id('g'), pg_temp.id('a')), 'group_tree says so');
SELECT matches(d, format('task group %s, blocked by %s, ', pg_temp.id('g'), pg_temp.id('a')), 'so do group_dot and group_mermaid') FROM unnest(ARRAY[tq.group_dot(pg_temp.id('g')), tq.group_mermaid(pg_temp.id('g'))]) AS d;
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.blocked('g'), 'false', 'a rerun ends that');
SELECT is((SELECT blocked FROM tq.group_overview WHERE task_group_id = pg_temp.id('g')), false, 'in group_overview, too');
SELECT pg_temp.work('a', 'failed');
SELECT tq.schedule_task(pg_temp.id('c')) \g /dev/null
SELECT is(pg_temp.blocked('g'), 'false', 'a task that is scheduled by hand, too');
SELECT pg_temp.work('c', 'completed');
SELECT is(pg_temp.state('d'), 'pending', 'as what depends on it');
SELECT pg_temp.work('d', 'completed');
SELECT is(pg_temp.blocked('g'), 'true a', 'what is left is blocked');
SELECT tq.cancel_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.blocked('g'), 'false', 'a group that has ended is not');
ROLLBACK TO s;

-- A part of it can go on; another group can, and cannot.
SELECT pg_temp.make('a'), pg_temp.make('x', grp => 'h'), pg_temp.make('b', '{a}'), pg_temp.make('c', '{x}'), pg_temp.make('e', '{b,c}');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.blocked('g'), 'false', 'a task waits for another group');
SELECT is(pg_temp.roots('e'), 'at the root: a: failed; at the root: x: pending', 'why: both roots');
SELECT pg_temp.make('y', '{x}', 'h');
SELECT pg_temp.work('x', 'failed');
SELECT is(pg_temp.blocked('g'), 'true a,x', 'which fails');
SELECT is(pg_temp.blocked('h'), 'true x', 'and is blocked itself');
ROLLBACK TO s;

-- What failures meet a dependency: all-resolved, and a tolerated one
SELECT pg_temp.make('a'), pg_temp.make('b', '{a}'), pg_temp.make('c', '{b}', requires => 'all-resolved');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.blocked('g'), 'true a', 'all-resolved waits for what never ends, either');
SELECT tq.skip_task(pg_temp.id('b')) \g /dev/null
SELECT is(pg_temp.blocked('g'), 'false', 'a skip ends that');
SELECT is(pg_temp.state('c'), 'pending', 'and the last is pending');
ROLLBACK TO s;

-- A call is waited for: no block.
SELECT pg_temp.create('self', '{"$group": "g", "$deps": ["self"]}'), pg_temp.make('b', '{self}'), pg_temp.make('c', '{b}');
SELECT is(pg_temp.blocked('g'), 'false', 'a task that waits for schedule_task() can start');
SELECT is(pg_temp.roots('c'), 'at the root: self: unscheduled', 'why: it is the root');
ROLLBACK TO s;

-- Tasks that were deleted: it is not known which of them had met a dependency.
SELECT pg_temp.make('a'), pg_temp.make('z'), pg_temp.make('b', '{a,z}'), pg_temp.make('c', '{b}');
SELECT pg_temp.work('z', 'completed');
SELECT tq.delete_task(pg_temp.id('z')) \g /dev/null
SELECT is(pg_temp.roots('c'), 'at the root: a: pending', 'what was met and deleted is no root');
SELECT tq.delete_task(pg_temp.id('a')) \g /dev/null
SELECT is(pg_temp.blocked('g'), 'true gone,gone', 'what was deleted blocks, and may have been met before');
SELECT is(pg_temp.roots('c') ~ format('at the root: %s: deleted', pg_temp.id('a')), true, 'why: deleted');
SELECT is(min(advice), format('SELECT tq.schedule_task(%L)', pg_temp.id('b')), 'why: schedule what waits for it') FROM tq.why(pg_temp.id('c')) WHERE detail ~ '^at the root';
ROLLBACK TO s;

-- A dependency that was met once stays so, when the required task fails later.
SELECT pg_temp.make('a'), pg_temp.make('w'), pg_temp.make('b', '{a,w}');
SELECT pg_temp.work('a', 'completed');
SELECT tq.rerun_task(pg_temp.id('a')) \g /dev/null
SELECT pg_temp.work('a', 'failed'), pg_temp.work('w', 'failed');
SELECT is(pg_temp.blocked('g'), 'true w', 'the one that is unmet blocks alone');
ROLLBACK TO s;

-- Many: ten are named, and the number.
SELECT pg_temp.make('r' || n) FROM generate_series(1, 12) AS n;
SELECT pg_temp.make('m', ARRAY(SELECT 'r' || n FROM generate_series(1, 12) AS n)), pg_temp.make('l', '{m}');
SELECT is(pg_temp.roots('l') ~ 'in all 12 tasks are at the root; 10 are shown$', true, 'why: their number');
SELECT is((SELECT array_agg(regexp_replace(detail, 'r\d+: ', '')) FROM tq.why(pg_temp.id('m'))), array_cat('{in all 12 are not met; 10 are shown}', array_fill('it depends on pending'::text, '{10}')),
	'why: ten of what it depends on itself, and their number');
SELECT is(count(*), 11::bigint, 'why: ten of them') FROM tq.why(pg_temp.id('l')) WHERE detail ~ '(^at|at) the root';
SELECT pg_temp.work('r7', 'failed');
SELECT is((SELECT count(*) FROM tq.why(pg_temp.id('m')) WHERE detail = 'it depends on r7: failed'), 1::bigint, 'why: one that has failed is among them');
SELECT pg_temp.work('r' || n, 'failed') FROM generate_series(1, 12) AS n WHERE n <> 7;
SELECT is((SELECT cardinality(blocked_by) FROM tq.group_progress(pg_temp.id('g'))), 10, 'blocked_by: ten');
SELECT is(max(length(detail)) <= 50 AND max(length(advice)) <= 49, true, 'why: short columns') FROM tq.why(pg_temp.id('l'));
ROLLBACK TO s;

-- Bounded: a chain of 5,000 in time, and more than 20,000 is unknown.
SELECT pg_temp.make('a'), pg_temp.make('c1', '{a}');
SELECT count(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('c' || n), 'task', pg_temp.def('c' || n, jsonb_build_object('$group', 'g', '$deps', jsonb_build_array('c' || n - 1))))) FROM generate_series(2, 5000) AS n)));
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.blocked('g'), 'true a', 'a chain of 5,000');
SELECT is(pg_temp.roots('c5000'), 'at the root: a: failed', 'why: of its last');
SELECT cardinality(tq.enqueue_tasks('test/wide', array_fill('{}'::jsonb, ARRAY[15001]), task_group_id => pg_temp.id('g'), dependencies => pg_temp.ids('c1')));
SELECT is((SELECT blocked FROM tq.group_overview WHERE task_group_id = pg_temp.id('g')), NULL, 'group_overview looks at 1,000');
SELECT is(pg_temp.blocked('g'), 'not known: more than 20000 unscheduled tasks', 'more than 20,000 unscheduled tasks');
ROLLBACK TO s;

-- What the caller may not see is not named, and nothing is reached through it.
CREATE ROLE guest;
SELECT tq.grant_scopes('guest', '{queue:list-task-group:*,queue:status-in-queue:test/q-a,queue:status-in-queue:test/q-c,queue:status-in-queue:test/q-d,queue:status-in-queue:test/q-e}') \g /dev/null
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pg_temp TO guest;
SELECT pg_temp.make('a'), pg_temp.make('h', '{a}'), pg_temp.make('d', '{h}'), pg_temp.make('hidden'), pg_temp.make('c', '{a,hidden}'), pg_temp.make('e', '{c}');
SELECT pg_temp.work('a', 'failed'), pg_temp.work('hidden', 'failed');
SET ROLE guest;
SELECT is((SELECT string_agg(detail, '; ' ORDER BY detail) FROM tq.why(pg_temp.id('e')) WHERE detail ~ '^at the root'), 'at the root: a: failed', 'why: only what may be seen');
SELECT is((SELECT string_agg(detail, '; ' ORDER BY detail) FROM tq.why(pg_temp.id('d')) WHERE detail ~ 'the root'), NULL, 'why: nor through what may not');
SELECT is((SELECT concat_ws(' ', blocked, array_to_string(blocked_by, ',')) FROM tq.group_progress(pg_temp.id('g'))), 't ' || pg_temp.id('a'), 'blocked_by: only what may be seen');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
