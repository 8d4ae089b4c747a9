-- The effects of a Conductor task on its workflow, and of the workflow on its tasks: a
-- workflow is a task group, a sequence is made of dependencies, optional is
-- forgive, permissive is tolerate, neither is cancel-group (doc/spec/conductor.md
-- 4, 8, 9; doc/spec/policy.md 7, 8, 10).
--
-- Each case is rolled back before the next, with its clock; not the last, because
-- finish() needs it.
BEGIN;
\ir conductor.psql

-- The workflow in a few words: its outcome, how many tasks are tolerated, and
-- how many are unscheduled, delayed, pending, running, completed, failed, exception.
CREATE FUNCTION pg_temp.wf() RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', coalesce(outcome, 'active'), 't' || tolerated, 'u' || unscheduled, 'd' || delayed, 'p' || pending, 'r' || running,
		'c' || completed, 'f' || failed, 'e' || exception)
	FROM tq.group_progress(pg_temp.id('wf'))
$$;

-- ---------------------------------------------------------------------------
-- Neither optional nor permissive: the first that fails ends the workflow
-- (t13, t14)
-- ---------------------------------------------------------------------------

-- One task of each kind in addition to 'a', of which one waits for it.
CREATE FUNCTION pg_temp.others() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.start('pend'), pg_temp.start('late', '{}', '{"startDelay": 600}'), pg_temp.polled('run'), pg_temp.polled('done'), pg_temp.polled('back'), pg_temp.polled('again'),
		pg_temp.start('opt', '{}', '{"optional": true}'), pg_temp.start('next', '{}', '{}', '{"$deps": ["a"]}');
	PERFORM pg_temp.report('done', 'completed'), pg_temp.callback('back', '10 minutes'), pg_temp.report('again', 'failed');
END
$$;
SAVEPOINT cc;
SELECT pg_temp.polled('a', '{"retryCount": 0}');
SELECT pg_temp.others();
SELECT is(pg_temp.wf(), 'active t0 u1 d3 p2 r2 c1 f0 e0', 't13 a workflow with tasks in every state');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a', 'pend', 'late', 'run', 'back', 'again', 'opt', 'next', 'done'), 'FAILED CANCELED CANCELED CANCELED CANCELED CANCELED CANCELED CANCELED COMPLETED',
	't13 one is FAILED, with no retries left: all that were not final are CANCELED');
SELECT is(pg_temp.wf(), 'failed t0 u0 d0 p0 r0 c1 f1 e7', 't13 the workflow is FAILED');
SELECT is(pg_temp.look(n), line, 't14 ' || n) FROM (VALUES
	('run', 'exception 3: scheduled>exception/canceled'), ('back', 'exception 3: scheduled>exception/canceled'),
	('again', 'exception 2: scheduled>failed/failed failure-retry>exception/canceled'),
	('next', 'exception 3: exception>exception/canceled')) AS v (n, line);
SELECT is(pg_temp.claims('test/q-' || n), '', 't14 there is nothing to be polled: ' || n) FROM unnest('{pend,late,back,again,opt,next}'::text[]) AS n;
SELECT is(pg_temp.update('run', 'completed'), 'conflict', 't14 its worker is ignored');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 hours'), '', 't14 nothing follows later');
SELECT is(pg_temp.wf(), 'failed t0 u0 d0 p0 r0 c1 f1 e7', 't14 the workflow has not changed');
ROLLBACK TO cc;

-- by any reason; that of the workflow is the first
SELECT pg_temp.polled('a', '{"retryCount": 5}');
SELECT pg_temp.others();
SELECT pg_temp.update('a', 'failed-terminal');
SELECT is(pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'FAILED_WITH_TERMINAL_ERROR CANCELED CANCELED CANCELED failed t0 u0 d0 p0 r0 c1 f1 e7', 't6 FAILED_WITH_TERMINAL_ERROR');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"retryCount": 5}');
SELECT pg_temp.others();
SELECT is(pg_temp.update('a', 'canceled'), 'resolved', 't7 CANCELED by its worker');
SELECT is(pg_temp.look('a') || ' ' || pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'exception 5: scheduled>exception/canceled CANCELED CANCELED CANCELED CANCELED canceled t0 u0 d0 p0 r0 c1 f0 e8',
	't7 is not retried; the workflow is TERMINATED');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"pollTimeoutSeconds": 60}');
SELECT pg_temp.others();
SELECT pg_temp.at(pg_temp.time('a') + interval '60 s');
SELECT is(pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'TIMED_OUT CANCELED CANCELED CANCELED timed-out t0 u0 d0 p0 r0 c1 f0 e8', 't8 TIMED_OUT by its poll');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60}');
SELECT pg_temp.others();
SELECT pg_temp.at(pg_temp.time('a', 'takenUntil'));
SELECT is(pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'TIMED_OUT CANCELED CANCELED CANCELED timed-out t0 u0 d0 p0 r0 c1 f0 e8', 't9 TIMED_OUT by timeoutSeconds');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 20, "retryCount": 0}');
SELECT pg_temp.others();
SELECT pg_temp.at(pg_temp.time('a', 'takenUntil'));
SELECT is(pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'TIMED_OUT CANCELED CANCELED CANCELED timed-out t0 u0 d0 p0 r0 c1 f0 e8', 't9 TIMED_OUT by its response');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 30}');
SELECT pg_temp.others();
SELECT pg_temp.at(pg_temp.time('a', 'scheduled') + interval '30 s');
SELECT is(pg_temp.words('a', 'pend', 'run', 'next') || ' ' || pg_temp.wf(), 'TIMED_OUT CANCELED CANCELED CANCELED timed-out t0 u0 d0 p0 r0 c1 f0 e8', 't9 TIMED_OUT by totalTimeoutSeconds');
ROLLBACK TO cc;

-- the reason is that of the first, whichever task that is
SELECT pg_temp.polled('x' || n, '{"retryCount": 0}') FROM generate_series(1, 7) AS n;
SELECT pg_temp.report('x4', 'failed');
SELECT is(pg_temp.wf(), 'failed t0 u0 d0 p0 r0 c0 f1 e6', 't13 FAILED, although six others are CANCELED at the same time');
ROLLBACK TO cc;
SELECT pg_temp.polled('x' || n, '{"timeoutSeconds": 30, "responseTimeoutSeconds": 30}') FROM generate_series(1, 3) AS n;
SELECT pg_temp.at(pg_temp.time('x3', 'takenUntil'));
SELECT matches(pg_temp.words('x1', 'x2', 'x3'), '^(TIMED_OUT|CANCELED)( (TIMED_OUT|CANCELED)){2}$', 't13 three are late in the same pass: none is left');
SELECT is(pg_temp.wf(), 'timed-out t0 u0 d0 p0 r0 c0 f0 e3', 't13 TIMED_OUT is the workflow');
ROLLBACK TO cc;

-- final tasks do not change, nor do those of another workflow
SELECT pg_temp.polled('a', '{"retryCount": 0}');
SELECT pg_temp.polled('c'), pg_temp.polled('o', '{"retryCount": 0}', '{"optional": true}'), pg_temp.start('s');
SELECT pg_temp.report('c', 'completed'), pg_temp.report('o', 'failed'), tq.skip_task(pg_temp.id('s')) IS NULL;
SELECT pg_temp.create('other', '{"$group": "another", "$deadline": "1 day", "$deps": ["a"]}');
SELECT pg_temp.create('alone', '{"$deadline": "1 day"}');
CREATE TEMP TABLE before AS SELECT n, tq.status(pg_temp.id(n)) AS status FROM unnest('{c,o,s,other,alone}'::text[]) AS n;
SELECT pg_temp.report('a', 'failed');
SELECT is(tq.status(pg_temp.id(n)), status, 't14 not touched: ' || n) FROM before;
SELECT is(tq.get_task_group(pg_temp.id('wf')) ? 'sealed', false, 't14 the group is not sealed');
SELECT is(pg_temp.start('new') || ' ' || pg_temp.outcome(), 'pending 3: scheduled>pending active', 't14 tq: a task that is created later is not canceled');
ROLLBACK TO cc;

-- a task with requires => all-resolved
SELECT pg_temp.polled('a', '{"retryCount": 0}');
SELECT pg_temp.start('all', '{}', '{}', '{"$deps": ["a"], "requires": "all-resolved"}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a', 'all') || pg_temp.claims('test/q-all'), 'FAILED CANCELED', 't14 tq: a task that waits for any resolution is CANCELED like the others');
ROLLBACK TO cc;

-- two that fail in one call
SELECT pg_temp.polled(n, '{"retryCount": 0}') FROM unnest('{a,b,c}'::text[]) AS n;
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('a', 'b'), '{0,0}', 'failed')), 'resolved resolved', 't13 two fail in one call');
SELECT is(pg_temp.words('a', 'b', 'c') || ' ' || pg_temp.wf(), 'FAILED FAILED CANCELED failed t0 u0 d0 p0 r0 c0 f2 e1', 't13 both are FAILED, the third is CANCELED');
ROLLBACK TO cc;

-- a task past its deadline is not canceled
SELECT pg_temp.polled('a', '{"retryCount": 0}');
SELECT pg_temp.start('late', '{}', '{}', '{"$deadline": "1 minute"}');
SELECT pg_temp.start('b');
SELECT pg_temp.go(pg_temp.clock() + interval '2 minutes');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a', 'late', 'b'), 'FAILED SCHEDULED CANCELED', 't14 tq: a task past its deadline is not canceled');
SELECT is(pg_temp.pass() || ' ' || pg_temp.words('late') || ' ' || pg_temp.wf(), 'deadline 1 TIMED_OUT failed t0 u0 d0 p0 r0 c0 f1 e2', 't14 the deadline resolves it');
ROLLBACK TO cc;

-- a workflow that is named like one of its tasks
SELECT pg_temp.polled('a', '{"retryCount": 0}', '{}', '{"$group": "a"}');
SELECT pg_temp.polled('b', '{}', '{}', '{"$group": "a"}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome('a'), 'FAILED CANCELED failed', 't13 a workflow that is named like its first task');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{}', '{}', '{"$group": "a"}');
SELECT pg_temp.polled('b', '{"retryCount": 0}', '{}', '{"$group": "a"}');
SELECT pg_temp.report('b', 'failed');
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome('a'), 'CANCELED FAILED failed', 't13 and another task ends it');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"retryCount": 0}', '{}', '{"$group": "a"}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('a') || ' ' || pg_temp.outcome('a'), 'FAILED failed', 't13 a workflow of one task');
ROLLBACK TO cc;

-- retries come first: nothing is canceled while some are left
SELECT pg_temp.start('a', '{"retryCount": 2, "retryDelaySeconds": 5}');
SELECT pg_temp.polled('b');
SELECT is(pg_temp.failing('a', 2) || ', ' || pg_temp.words('b') || ' ' || pg_temp.outcome(), '5 5 SCHEDULED, IN_PROGRESS active', 't10 while retries are left, the workflow goes on');
SELECT is(pg_temp.failing('a', 1) || ', ' || pg_temp.words('b') || ' ' || pg_temp.outcome(), 'FAILED, CANCELED failed', 't13 then not');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- optional: COMPLETED_WITH_ERRORS (t11)
-- ---------------------------------------------------------------------------

-- every unsuccessful resolution
SELECT pg_temp.polled(n, d::jsonb, '{"optional": true}') FROM (VALUES
	('failed', '{"retryCount": 0}'), ('terminal', '{}'), ('canceled', '{}'),
	('response', '{"responseTimeoutSeconds": 60, "retryCount": 0}'),
	('task', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 0}'),
	('total', '{"totalTimeoutSeconds": 60}'), ('timewf', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "TIME_OUT_WF"}')) AS v (n, d);
SELECT pg_temp.start('poll', '{"pollTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 0}', '{"optional": true}');
SELECT pg_temp.start('after-' || n, '{}', '{}', jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{failed,terminal,canceled,response,task,total,timewf,poll}'::text[]) AS n;
SELECT pg_temp.report('failed', 'failed'), pg_temp.update('terminal', 'failed-terminal'), pg_temp.update('canceled', 'canceled');
SELECT pg_temp.at(pg_temp.time('poll') + interval '60 s');
SELECT is(pg_temp.words(n, 'after-' || n), 'COMPLETED_WITH_ERRORS SCHEDULED', 't11 an optional task that ends by ' || description) FROM (VALUES
	('failed', 'a failure'), ('terminal', 'a terminal failure'), ('canceled', 'a cancel of its worker'), ('response', 'its response timeout'), ('task', 'its task timeout'), ('poll', 'its poll timeout'),
	('total', 'its total timeout: tq: the workflow goes on, where Conductor terminates (doc/spec/policy.md C17)'), ('timewf', 'TIME_OUT_WF: tq: the workflow goes on, where Conductor terminates (doc/spec/policy.md C17)')) AS v (n, description);
SELECT is(pg_temp.wf(), 'active t8 u0 d0 p8 r0 c0 f2 e6', 't11 eight are tolerated, the workflow goes on');
SELECT pg_temp.take('after-' || n), pg_temp.report('after-' || n, 'completed') FROM unnest('{failed,terminal,canceled,response,task,total,timewf,poll}'::text[]) AS n;
SELECT is(pg_temp.wf(), 'completed-with-errors t8 u0 d0 p0 r0 c8 f2 e6', 't11 and is completed, with errors');
ROLLBACK TO cc;

-- the next may be created afterwards
SELECT pg_temp.polled('o', '{"retryCount": 0}', '{"optional": true}'), pg_temp.polled('p', '{"retryCount": 0}', '{"permissive": true}'), pg_temp.start('s'), pg_temp.polled('u', '{}', '{"optional": true}');
SELECT pg_temp.report('o', 'failed'), pg_temp.report('p', 'failed'), tq.skip_task(pg_temp.id('s')) IS NULL, pg_temp.report('u', 'canceled');
SELECT pg_temp.start('after-' || n, '{}', '{}', jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{o,p,s,u}'::text[]) AS n;
SELECT pg_temp.start('after-all', '{}', '{}', '{"$deps": ["o", "p", "s"]}');
SELECT is(pg_temp.words('after-o', 'after-p', 'after-s', 'after-all', 'after-u'), 'SCHEDULED SCHEDULED SCHEDULED SCHEDULED -', 't11 a task created after an optional or permissive failure, or a skip, is pending; after a cancel by a client, it waits');
SELECT is((SELECT string_agg(concat(name, CASE WHEN tolerated THEN '+' ELSE '-' END), ' ' ORDER BY name COLLATE "C") FROM tq.task_details WHERE name IN ('o', 'p', 's', 'u')), 'o+ p+ s- u-', 't11 the overview shows which are tolerated');
ROLLBACK TO cc;

-- a user's cancel is not a failure
SELECT pg_temp.polled('o', '{}', '{"optional": true}');
SELECT pg_temp.start('next', '{}', '{}', '{"$deps": ["o"]}');
SELECT pg_temp.report('o', 'canceled');
SELECT is(pg_temp.words('o', 'next') || ' ' || pg_temp.wf(), 'CANCELED - active t0 u1 d0 p0 r0 c0 f0 e1', 't11 tq: an optional task that a client cancels is CANCELED, and the next one waits (doc/spec/policy.md 10.6)');
ROLLBACK TO cc;
SELECT pg_temp.polled('a');
SELECT pg_temp.polled('b');
SELECT pg_temp.report('a', 'canceled');
SELECT is(pg_temp.words('a', 'b'), 'CANCELED IN_PROGRESS', 't13 tq: neither does such a cancel end the workflow (doc/spec/policy.md 10.6)');
ROLLBACK TO cc;

-- it has no errors if it succeeds
SELECT pg_temp.polled('o', '{"retryDelaySeconds": 0}', '{"optional": true}');
SELECT pg_temp.report('o', 'failed');
SELECT pg_temp.work('o', 'completed');
SELECT is(pg_temp.words('o') || ' ' || pg_temp.wf(), 'COMPLETED completed t0 u0 d0 p0 r0 c1 f0 e0', 't11 an optional task that is completed after a retry');
ROLLBACK TO cc;

-- optional, but another is not
SELECT pg_temp.polled('o', '{"retryCount": 0}', '{"optional": true}');
SELECT pg_temp.polled('a', '{"retryCount": 0}');
SELECT pg_temp.report('o', 'failed'), pg_temp.report('a', 'failed');
SELECT is(pg_temp.words('o', 'a') || ' ' || pg_temp.wf(), 'COMPLETED_WITH_ERRORS FAILED failed t1 u0 d0 p0 r0 c0 f2 e0', 't11 the first failure does not count, the second does');
ROLLBACK TO cc;
SELECT pg_temp.polled('o', '{"retryCount": 0}', '{"optional": true}');
SELECT pg_temp.polled('a', '{"responseTimeoutSeconds": 60, "retryCount": 0}');
SELECT pg_temp.report('o', 'failed');
SELECT pg_temp.at(pg_temp.time('a', 'takenUntil'));
SELECT is(pg_temp.outcome(), 'timed-out', 't11 of two that are unsuccessful the one that counts gives the outcome');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- permissive: the workflow goes on, and fails at its end (t12)
-- ---------------------------------------------------------------------------

SELECT pg_temp.start('p', '{"retryCount": 1, "retryDelaySeconds": 5}', '{"permissive": true}');
SELECT pg_temp.start('next', '{}', '{}', '{"$deps": ["p"]}');
SELECT pg_temp.polled('b');
SELECT is(pg_temp.failing('p', 1) || ', ' || pg_temp.words('next'), '5 SCHEDULED, -', 't12 a permissive task has its retries');
SELECT is(pg_temp.failing('p', 1) || ', ' || pg_temp.words('next', 'b'), 'FAILED, SCHEDULED IN_PROGRESS', 't12 then it is FAILED, and the next is SCHEDULED');
SELECT is(pg_temp.wf(), 'active t1 u0 d0 p1 r1 c0 f1 e0', 't12 the workflow goes on');
SELECT pg_temp.take('next');
SELECT pg_temp.report('next', 'completed'), pg_temp.report('b', 'completed');
SELECT is(pg_temp.wf(), 'failed t1 u0 d0 p0 r0 c2 f1 e0', 't12 and is FAILED when all its tasks are resolved');
ROLLBACK TO cc;
SELECT pg_temp.polled('p', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "timeoutPolicy": "RETRY", "retryCount": 0}', '{"permissive": true}');
SELECT pg_temp.start('next', '{}', '{}', '{"$deps": ["p"]}');
SELECT pg_temp.at(pg_temp.time('p', 'takenUntil'));
SELECT is(pg_temp.words('p', 'next'), 'TIMED_OUT SCHEDULED', 't12 permissive and TIMED_OUT');
SELECT pg_temp.work('next', 'completed');
SELECT is(pg_temp.outcome(), 'timed-out', 't12 the workflow is TIMED_OUT at its end');
ROLLBACK TO cc;
SELECT pg_temp.polled('p', '{"retryCount": 0}', '{"permissive": true, "optional": true}');
SELECT pg_temp.report('p', 'failed');
SELECT is(pg_temp.words('p') || ' ' || pg_temp.outcome(), 'COMPLETED_WITH_ERRORS completed-with-errors', 't11 optional takes precedence over permissive');
ROLLBACK TO cc;
SELECT pg_temp.polled('p', '{"retryCount": 0, "optional": true}');
SELECT pg_temp.polled('q', '{"retryCount": 0, "optional": true}', '{"optional": false}');
SELECT pg_temp.report('p', 'failed'), pg_temp.report('q', 'failed');
SELECT is(pg_temp.words('p', 'q'), 'COMPLETED_WITH_ERRORS FAILED', 't11 tq: optional is accepted in the task definition, the use in a workflow takes precedence (doc/spec/policy.md 9)');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- JOIN: a task that depends on several
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('good'), pg_temp.polled('opt', '{"retryCount": 0}', '{"optional": true}'), pg_temp.polled('perm', '{"retryCount": 0}', '{"permissive": true}'), pg_temp.start('skip');
SELECT pg_temp.start('join', '{}', '{}', '{"$deps": ["good", "opt", "perm", "skip"]}');
SELECT pg_temp.report('perm', 'failed');
SELECT is(pg_temp.words('join'), '-', 'JOIN with a permissive failure waits for all');
SELECT pg_temp.report('opt', 'failed');
SELECT tq.skip_task(pg_temp.id('skip')) IS NULL;
SELECT is(pg_temp.words('join'), '-', 'JOIN still');
SELECT tq.report_completed(pg_temp.id('good'), 0, result => '"yes"') IS NULL;
SELECT is(pg_temp.words('join'), 'SCHEDULED', 'JOIN then it is SCHEDULED');
SELECT is((SELECT string_agg(concat_ws(' ', pg_temp.name(task_id), state, result), ', ' ORDER BY ordinality) FROM tq.dependency_results(pg_temp.id('join')) WITH ORDINALITY AS u),
	'good completed "yes", opt failed, perm failed, skip completed', 'JOIN it can read their states and results');
ROLLBACK TO cc;
SELECT pg_temp.polled('good'), pg_temp.polled('bad', '{"retryCount": 0}');
SELECT pg_temp.start('join', '{}', '{}', '{"$deps": ["good", "bad"]}');
SELECT pg_temp.report('bad', 'failed');
SELECT is(pg_temp.words('good', 'bad', 'join'), 'CANCELED FAILED CANCELED', 'JOIN fails with the first that is neither');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- terminate, retry, rerun (doc/spec/conductor.md 9)
-- ---------------------------------------------------------------------------

SELECT pg_temp.polled('a');
SELECT pg_temp.others();
SELECT is((pg_temp.terminate(), pg_temp.outcome(), pg_temp.words('done', 'run')), (8, 'canceled'::text, 'COMPLETED CANCELED'::text), 'terminate: all that is not final');
SELECT is(tq.cancel_task_group(pg_temp.id('wf')) -> 'cancelledCount', '0', 'terminate: again does nothing');
SELECT is(pg_temp.outcome(), 'canceled', 'terminate: it stays TERMINATED');
ROLLBACK TO cc;
SELECT pg_temp.polled('a');
SELECT pg_temp.throws($$SELECT tq.cancel_task_group(pg_temp.id('wf'))$$, 'TQ409', 'terminate: tq: a workflow that may get more tasks is sealed first');
ROLLBACK TO cc;

-- retry: rerun the unsuccessful tasks
SELECT pg_temp.start('a', '{"retryCount": 1, "retryDelaySeconds": 5}');
SELECT pg_temp.start('b', '{}', '{}', '{"$deps": ["a"]}');
SELECT pg_temp.failing('a', 2);
SELECT is(pg_temp.words('a', 'b') || ' ' || pg_temp.outcome(), 'FAILED CANCELED failed', 't17 a workflow that is FAILED');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))), 'pending 1: scheduled>failed/failed failure-retry>failed/failed rerun>pending', 't17 retry: a new run, although no retries were left; they are reset');
SELECT is(pg_temp.claims('test/q-a') || ' ' || coalesce(pg_temp.run('a') ->> 'attempt', '-'), 'a 0', 't17 without a delay; tq: it is a first attempt again');
SELECT is(pg_temp.report('a', 'failed') || ' ' || pg_temp.wait('a') || ' ' || (pg_temp.run('a') ->> 'attempt'),
	'pending 0: scheduled>failed/failed failure-retry>failed/failed rerun>failed/failed failure-retry>pending 5 1', 't17 it has a delay of its own when it fails');
SELECT pg_temp.at(pg_temp.time('a'));
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.words('a', 'b'), 'COMPLETED CANCELED', 't17 tq: a CANCELED task must be rerun as well');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('b'))), 'pending 3: exception>exception/canceled rerun>pending', 't17 retry');
SELECT pg_temp.work('b', 'completed');
SELECT is(pg_temp.wf(), 'completed t0 u0 d0 p0 r0 c2 f0 e0', 't17 and the workflow is COMPLETED');
ROLLBACK TO cc;
SELECT pg_temp.start('a', '{"timeoutSeconds": 60, "responseTimeoutSeconds": 60, "pollTimeoutSeconds": 60}');
SELECT pg_temp.at(pg_temp.time('a') + interval '60 s');
SELECT tq.rerun_task(pg_temp.id('a')) IS NULL;
SELECT is(pg_temp.before(pg_temp.time('a') + interval '60 s'), '', 't17 retry of a TIMED_OUT task: it has its whole time to be polled');
SELECT pg_temp.go(pg_temp.time('a') + interval '50 s');
SELECT is(pg_temp.take('a'), 1, 't17 polled');
SELECT is(pg_temp.before(pg_temp.time('a', 'started') + interval '60 s'), '', 't17 and its whole time to run');
SELECT is(pg_temp.at(pg_temp.time('a', 'started') + interval '60 s') || ' ' || pg_temp.words('a'), 'run-timeout 1 TIMED_OUT', 't17 and no more');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"totalTimeoutSeconds": 60}');
SELECT pg_temp.at(pg_temp.time('a') + interval '61 s');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 't17 a total time that is over refuses it (13.12, doc/spec/policy.md C14)');
ROLLBACK TO cc;
-- the total time begins when a task is first pending, be that by a rerun
SELECT pg_temp.polled('first', '{"retryCount": 0}');
SELECT pg_temp.start(n, '{"totalTimeoutSeconds": 60, "pollTimeoutSeconds": 50, "timeoutPolicy": "RETRY"}', '{}', jsonb_build_object('$deps', '["first"]'::jsonb, '$group', 'g-' || n)) FROM unnest('{canceled,skipped,waits,scheduled}'::text[]) AS n;
SELECT pg_temp.report('canceled', 'canceled');
SELECT tq.skip_task(pg_temp.id('skipped')) IS NULL;
SELECT pg_temp.go(pg_temp.clock() + interval '10 minutes');
SELECT tq.rerun_task(pg_temp.id(n)) IS NULL FROM unnest('{canceled,skipped,waits}'::text[]) AS n;
SELECT tq.schedule_task(pg_temp.id('scheduled')) IS NULL;
SELECT is((tq.status(pg_temp.id(n)) ->> 'deadline')::timestamptz, pg_temp.time(n, 'scheduled') + interval '60 s', 't17 the total time begins when it is first pending: ' || n) FROM unnest('{canceled,skipped,waits,scheduled}'::text[]) AS n;
SELECT is(pg_temp.before(pg_temp.time('canceled') + interval '50 s'), '', 't17 so does the time to be polled: not before');
SELECT is(pg_temp.at(pg_temp.time('scheduled') + interval '50 s'), 'pending-timeout 4', 't17 but then');
SELECT is(pg_temp.at(pg_temp.time('scheduled', 'scheduled', -2) + interval '60 s') || ' ' || pg_temp.words('canceled', 'skipped', 'waits', 'scheduled'), 'deadline 4 TIMED_OUT TIMED_OUT TIMED_OUT TIMED_OUT', 't17 then they are over');
ROLLBACK TO cc;
SELECT pg_temp.polled('a', '{"retryCount": 2}', '{"optional": true}');
SELECT pg_temp.update('a', 'failed-terminal');
SELECT is(pg_temp.words('a') || ' ' || pg_temp.outcome(), 'COMPLETED_WITH_ERRORS completed-with-errors', 't18 an optional task');
SELECT tq.rerun_task(pg_temp.id('a')) IS NULL;
SELECT is(pg_temp.wf() || ' ' || pg_temp.words('a'), 'active t0 u0 d0 p1 r0 c0 f0 e0 SCHEDULED', 't18 is rerun, and no longer tolerated');
ROLLBACK TO cc;
SELECT pg_temp.start('a');
SELECT tq.skip_task(pg_temp.id('a'), '1') IS NULL;
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))) || ' ' || pg_temp.claims('test/q-a'), 'pending 3: scheduled>completed/skipped rerun>pending a', 't18 a skipped task is rerun');
SELECT is(tq.result(pg_temp.id('a')), NULL, 't18 its new run has no output yet');
ROLLBACK TO cc;

-- ---------------------------------------------------------------------------
-- Large workflows
-- ---------------------------------------------------------------------------

SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('m' || n)::text, 'task',
		pg_temp.def('m', '{"taskQueueId": "test/m", "$group": "wf", "$deadline": "1 day"}') || jsonb_build_object('policy', policy)))
	FROM generate_series(1, 2500) AS n, tq.conductor_policy('{"retryCount": 0}') AS policy)), 2500::bigint, 't14 a workflow of 2500 tasks');
SELECT is((SELECT count(*) FROM tq.claim_work('test/m', 'wg', 'w1', 1000)), 1000::bigint, 't14 1000 of them are polled');
SELECT is(pg_temp.update('m77', 'failed'), 'resolved', 't14 one of them fails');
SELECT is(pg_temp.wf(), 'failed t0 u0 d0 p0 r0 c0 f1 e2499', 't14 all others are CANCELED');
SELECT is((SELECT count(*) FROM tq.claim_work('test/m', 'wg', 'w1', 1000)), 0::bigint, 't14 none is left to be polled');
SELECT is(pg_temp.at(pg_temp.clock() + interval '2 hours'), '', 't14 none becomes pending');

SELECT * FROM finish();
ROLLBACK;
