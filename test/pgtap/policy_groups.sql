-- doc/spec/policy.md 2 (10), 10 (6, 7): effects of the resolution of a task on its
-- dependents and its group: block, cancel-group, cancel-dependents, tolerate, forgive; outcomes.
BEGIN;
\ir policy.psql

-- A running task with that onUnsuccessful.
CREATE FUNCTION pg_temp.member(name text, effect text, overrides jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.running(name, jsonb_build_object('policy', jsonb_build_object('onUnsuccessful', effect)) || overrides)
$$;

-- Every reason for which a task can be final and unsuccessful, with the outcome
-- of a group in which it counts.
CREATE TEMP TABLE ends (reason text, state text, outcome text);
INSERT INTO ends VALUES ('failed', 'failed', 'failed'), ('failed-terminal', 'failed', 'failed'), ('worker-shutdown', 'exception', 'failed'), ('malformed-payload', 'exception', 'failed'),
	('resource-unavailable', 'exception', 'failed'), ('internal-error', 'exception', 'failed'), ('intermittent-task', 'exception', 'failed'), ('canceled', 'exception', 'canceled'),
	('deadline-exceeded', 'exception', 'timed-out'), ('claim-expired', 'exception', 'timed-out'), ('pending-timeout', 'exception', 'timed-out'), ('run-timeout', 'exception', 'timed-out');

-- Tasks prefix-reason, one for each, resolved for it; with that onUnsuccessful and no
-- retries.  Advances the clock by ten minutes.
CREATE FUNCTION pg_temp.end_all(prefix text, effect text, overrides jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	r text;
	name text;
	policy jsonb := jsonb_build_object('onUnsuccessful', effect, 'retries', 0, 'claimTimeout', 3600);
BEGIN
	FOR r IN SELECT reason FROM ends LOOP
		name := prefix || r;
		CASE r
			WHEN 'deadline-exceeded' THEN
				PERFORM pg_temp.running(name, jsonb_build_object('policy', policy, '$deadline', '10 minutes') || overrides);
			WHEN 'claim-expired' THEN
				PERFORM pg_temp.running(name, jsonb_build_object('policy', policy || '{"claimTimeout": 600}') || overrides);
			WHEN 'run-timeout' THEN
				PERFORM pg_temp.running(name, jsonb_build_object('policy', policy || '{"claimTimeout": 600, "runTimeout": 600}') || overrides);
			WHEN 'pending-timeout' THEN
				PERFORM pg_temp.create(name, jsonb_build_object('policy', policy || '{"pendingTimeout": 600}') || overrides);
			WHEN 'canceled', 'failed-terminal' THEN
				PERFORM pg_temp.running(name, jsonb_build_object('policy', policy) || overrides), pg_temp.resolve(r, name);
			ELSE
				PERFORM pg_temp.resolved(name, r, jsonb_build_object('policy', policy) || overrides);
		END CASE;
	END LOOP;
	PERFORM set_config('tq.clock_offset', (pg_temp.shift() + interval '10 minutes')::text, false);
	PERFORM tq.upkeep();
END
$$;

-- A dependent of each of the tasks prefix-reason.
CREATE FUNCTION pg_temp.dependents(prefix text, dependents text, requires text) RETURNS void
LANGUAGE sql AS $$
	SELECT pg_temp.create(dependents || reason, jsonb_build_object('$deps', jsonb_build_array(prefix || reason), 'requires', requires, '$deadline', '1 day')) FROM ends
$$;

-- Tasks that are resolved for each reason, while dependents wait for them.
CREATE FUNCTION pg_temp.waiting(effect text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
	policy jsonb := jsonb_build_object('onUnsuccessful', effect, 'retries', 0, 'claimTimeout', 3600);
	wanted text := CASE effect WHEN 'block' THEN 'unscheduled' ELSE 'pending' END;
	r record;
BEGIN
	PERFORM pg_temp.create('w-pending-timeout', jsonb_build_object('policy', policy || '{"pendingTimeout": 600}'));
	PERFORM pg_temp.running('w-deadline-exceeded', jsonb_build_object('policy', policy, '$deadline', '10 minutes'));
	PERFORM pg_temp.running('w-claim-expired', jsonb_build_object('policy', policy || '{"claimTimeout": 600}'));
	PERFORM pg_temp.running('w-run-timeout', jsonb_build_object('policy', policy || '{"runTimeout": 600, "claimTimeout": 600}'));
	PERFORM pg_temp.running('w-' || reason, jsonb_build_object('policy', policy)) FROM ends WHERE reason !~ 'timeout|expired|exceeded';
	PERFORM pg_temp.create('d-' || reason, jsonb_build_object('$deps', jsonb_build_array('w-' || reason))) FROM ends;
	PERFORM pg_temp.create('two-' || reason, jsonb_build_object('$deps', jsonb_build_array('w-' || reason, 'other'))) FROM ends;
	PERFORM pg_temp.resolve(reason, 'w-' || reason) FROM ends WHERE reason !~ 'timeout|expired|exceeded';
	PERFORM set_config('tq.clock_offset', '10 minutes', false);
	PERFORM tq.upkeep();
	FOR r IN SELECT * FROM ends LOOP
		RETURN NEXT is(concat_ws(' ', pg_temp.state('w-' || r.reason), pg_temp.run('w-' || r.reason) ->> 'reasonResolved', pg_temp.state('d-' || r.reason), pg_temp.state('two-' || r.reason)),
			concat_ws(' ', r.state, r.reason, wanted, 'unscheduled'), format('%s: a dependent, and one that also waits for another: %s', effect, r.reason));
	END LOOP;
	PERFORM pg_temp.work('other', 'completed');
	FOR r IN SELECT * FROM ends LOOP
		RETURN NEXT is(pg_temp.state('two-' || r.reason), wanted, format('%s: when the other is completed: %s', effect, r.reason));
	END LOOP;
END
$$;

-- A group with tasks in every state; its cause is running.  Others are outside.
CREATE FUNCTION pg_temp.everybody(policy jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	g jsonb := '{"$group": "g"}';
BEGIN
	PERFORM pg_temp.running('culprit', g || jsonb_build_object('policy', '{"onUnsuccessful": "cancel-group", "retries": 0, "deadLetter": true}'::jsonb || policy));
	PERFORM pg_temp.create('unscheduled', g || '{"$deps": ["unscheduled"]}');
	PERFORM pg_temp.create('waits', g || '{"$deps": ["culprit"]}');
	PERFORM pg_temp.create('cleans-up', g || '{"$deps": ["culprit"], "requires": "all-resolved"}');
	PERFORM pg_temp.create('pending', g || '{"policy": {"deadLetter": true}}');
	PERFORM pg_temp.create('delayed', g || '{"delay": 1800}');
	PERFORM pg_temp.resolved('backed-off', 'worker-shutdown', g || '{"policy": {"retryBackoff": {"delay": 1800}}}');
	PERFORM pg_temp.running('deferred', g), tq.defer_task(pg_temp.id('deferred'), 0, '30 minutes');
	PERFORM pg_temp.running('running', g || '{"policy": {"onUnsuccessful": "tolerate"}}');
	PERFORM pg_temp.running('another', g || '{"policy": {"onUnsuccessful": "cancel-group", "deadLetter": true}}');
	PERFORM pg_temp.resolved('completed', 'completed', g), pg_temp.resolved('failed', 'failed', g);
	-- outside
	PERFORM pg_temp.create('o-pending'), pg_temp.running('o-running'), pg_temp.create('o-waits', '{"$deps": ["culprit"]}'), pg_temp.create('o-cleans-up', '{"$deps": ["culprit"], "requires": "all-resolved"}');
	PERFORM pg_temp.create('o-after-running', '{"$deps": ["running"]}'), pg_temp.create('o-after-pending', '{"$deps": ["pending"], "requires": "all-resolved"}');
	PERFORM pg_temp.create('o-after-all', '{"$deps": ["unscheduled", "delayed", "deferred", "running", "another", "culprit", "completed"], "requires": "all-resolved"}');
END
$$;

-- Their expected states.
CREATE FUNCTION pg_temp.cancelled(how text) RETURNS SETOF text
LANGUAGE sql AS $$
	SELECT is(pg_temp.look(n), line, format('cancel-group, %s: %s', how, n)) FROM (VALUES
		('unscheduled', 'exception 5: exception>exception/canceled'), ('waits', 'exception 5: exception>exception/canceled'), ('pending', 'exception 5: scheduled>exception/canceled'),
		('delayed', 'exception 5: scheduled>exception/canceled'), ('backed-off', 'exception 4: scheduled>exception/worker-shutdown retry>exception/canceled'), ('deferred', 'exception 5: scheduled>exception/canceled'),
		('running', 'exception 5: scheduled>exception/canceled'), ('another', 'exception 5: scheduled>exception/canceled'), ('completed', 'completed 5: scheduled>completed/completed'), ('failed', 'failed 5: scheduled>failed/failed'),
		('o-pending', 'pending 5: scheduled>pending'), ('o-running', 'running 5: scheduled>running'), ('o-waits', 'unscheduled 5:'), ('o-cleans-up', 'pending 5: scheduled>pending'),
		('o-after-running', 'unscheduled 5:'), ('o-after-pending', 'pending 5: scheduled>pending'), ('o-after-all', 'pending 5: scheduled>pending')) AS v (n, line)
	UNION ALL SELECT is(pg_temp.look('cleans-up') ~ '^exception 5: .*>exception/canceled$', true, format('cancel-group, %s: cleans-up, which is in the group', how))
	UNION ALL SELECT is((SELECT string_agg(task #>> '{metadata,name}', ' ') FROM unnest('{culprit,pending,another}'::text[]) AS n, tq.list_dead_letters('test/q-' || n)), 'culprit', format('cancel-group, %s: only its cause has a dead letter', how))
	UNION ALL SELECT is((SELECT count(*) FROM tq.task_details WHERE task_group_id = pg_temp.id('g') AND state IN ('unscheduled', 'pending', 'running')), 0::bigint, format('cancel-group, %s: no task is left unresolved', how))
	UNION ALL SELECT is((SELECT count(*) FROM tq_internal.task JOIN (SELECT task FROM tq_internal.pending UNION ALL SELECT task FROM tq_internal.delayed UNION ALL SELECT task FROM tq_internal.unscheduled) AS w (task) ON w.task = id
		WHERE group_id = (SELECT id FROM tq_internal.task_group WHERE task_group_id = pg_temp.id('g'))), 0::bigint, format('cancel-group, %s: nor their rows', how))
$$;

-- ---------------------------------------------------------------------------
-- tolerate and forgive: dependents are released
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.end_all(e || '-', e) FROM unnest('{block,tolerate,forgive}'::text[]) AS e;
SELECT is(pg_temp.look(e || '-' || reason) ~ format(' 0: scheduled>%s/%s$', state, reason), true, format('ends: %s, %s', e, reason)) FROM ends, unnest('{block,tolerate,forgive}'::text[]) AS e;
SELECT pg_temp.dependents(e || '-', 'late-' || e || '-', 'all-completed') FROM unnest('{block,tolerate,forgive}'::text[]) AS e;
SELECT is(pg_temp.state('late-' || e || '-' || reason), CASE e WHEN 'block' THEN 'unscheduled' ELSE 'pending' END, format('%s: a dependent that is created after the resolution, %s', e, reason)) FROM ends, unnest('{block,tolerate,forgive}'::text[]) AS e;
ROLLBACK TO s;

SELECT pg_temp.create('other');
SELECT pg_temp.waiting('block');
ROLLBACK TO s;
SELECT pg_temp.create('other');
SELECT pg_temp.waiting('tolerate');
ROLLBACK TO s;
SELECT pg_temp.create('other');
SELECT pg_temp.waiting('forgive');
ROLLBACK TO s;

-- Resolutions that are not failures of a run: a client cancels, or an unscheduled task passes its deadline.
SELECT pg_temp.create('u', '{"$deps": ["u"], "policy": {"onUnsuccessful": "tolerate"}}'), pg_temp.create('p', '{"policy": {"onUnsuccessful": "tolerate"}}'), pg_temp.member('r', 'tolerate');
SELECT pg_temp.create('late', '{"$deps": ["late"], "$deadline": "10 minutes", "policy": {"onUnsuccessful": "tolerate"}}');
SELECT pg_temp.create('d' || n, jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{u,p,r,late}'::text[]) AS n;
SELECT pg_temp.report(n, 'canceled') FROM unnest('{u,p,r}'::text[]) AS n;
SELECT is(pg_temp.look('d' || n), 'unscheduled 5:', 'tolerate: not a task that cancel_task canceled, ' || n) FROM unnest('{u,p,r}'::text[]) AS n;
SELECT pg_temp.create('e' || n, jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{u,p,r}'::text[]) AS n;
SELECT is(pg_temp.look('e' || n), 'unscheduled 5:', 'tolerate: nor for one that is created later, ' || n) FROM unnest('{u,p,r}'::text[]) AS n;
SELECT pg_temp.pass('10 minutes');
SELECT is(pg_temp.look('dlate'), 'pending 5: scheduled>pending', 'tolerate: but a deadline, also of an unscheduled task');
ROLLBACK TO s;

-- Retries come first: only the final failure is tolerated.
SELECT pg_temp.running('a', '{"policy": {"onUnsuccessful": "tolerate", "retries": 1, "retryOn": ["failed"]}}');
SELECT pg_temp.create('d', '{"$deps": ["a"]}');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.look('d'), 'unscheduled 5:', 'tolerate: a failure that is retried meets nothing');
SELECT is(pg_temp.create('e', '{"$deps": ["a"]}'), 'unscheduled 5:', 'tolerate: nor of one that is created then');
SELECT is(pg_temp.progress('a'), '1: p1 -', 'tolerate: nor does the group count it');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.look('d') || ', ' || pg_temp.look('e'), 'pending 5: scheduled>pending, pending 5: scheduled>pending', 'tolerate: but the final failure does');
ROLLBACK TO s;

-- All by one call; a diamond; all-resolved dependents are released once.
SELECT pg_temp.member('t' || n, 'tolerate') FROM generate_series(1, 50) AS n;
SELECT pg_temp.create('all', jsonb_build_object('$deps', (SELECT jsonb_agg('t' || n) FROM generate_series(1, 50) AS n)));
SELECT pg_temp.create('res', jsonb_build_object('requires', 'all-resolved', '$deps', (SELECT jsonb_agg('t' || n) FROM generate_series(1, 50) AS n)));
SELECT is((SELECT count(*) FROM tq.resolve((SELECT array_agg(pg_temp.id('t' || n)) FROM generate_series(1, 49) AS n), array_fill(0, ARRAY[49]), 'failed') WHERE outcome = 'resolved'), 49::bigint, 'tolerate: 49 of 50 fail in one call');
SELECT is(pg_temp.look('all') || ' ' || pg_temp.look('res'), 'unscheduled 5: unscheduled 5:', 'tolerate: that is not enough');
SELECT pg_temp.report('t50', 'completed');
SELECT is(pg_temp.look('all') || ', ' || pg_temp.look('res'), 'pending 5: scheduled>pending, pending 5: scheduled>pending', 'tolerate: the last completes: all are met');
ROLLBACK TO s;
SELECT pg_temp.member('a', 'tolerate'), pg_temp.member('b', 'block');
SELECT pg_temp.create('d', '{"$deps": ["a", "b"]}'), pg_temp.create('da', '{"$deps": ["a"]}'), pg_temp.create('db', '{"$deps": ["b"]}');
SELECT is(pg_temp.resolve('failed', 'a', 'b'), 'resolved resolved', 'tolerate beside block: both fail in one call');
SELECT is(pg_temp.look('d') || ' ' || pg_temp.look('da') || ' ' || pg_temp.look('db'), 'unscheduled 5: pending 5: scheduled>pending unscheduled 5:', 'tolerate beside block: each by its own policy');
ROLLBACK TO s;

-- A chain continues after failures.
SELECT pg_temp.create('k0', '{"policy": {"onUnsuccessful": "forgive"}, "$group": "k"}');
SELECT pg_temp.create('k' || n, jsonb_build_object('$deps', jsonb_build_array('k' || n - 1), '$group', 'k', 'policy', '{"onUnsuccessful": "forgive"}'::jsonb)) FROM generate_series(1, 4) AS n;
SELECT pg_temp.work('k' || n, 'failed') FROM generate_series(0, 3) AS n;
SELECT is(pg_temp.work('k4', 'completed'), 'completed 5: scheduled>completed/completed', 'forgive: a chain of failures completes');
SELECT is(pg_temp.progress('k'), '5: c1 f4 t4 completed-with-errors', 'forgive: its group');
ROLLBACK TO s;

-- Reruns: a met dependency stays met; one that is created during a rerun waits for its resolution.
SELECT pg_temp.member('a', 'tolerate'), pg_temp.create('b');
SELECT pg_temp.create('sticky', '{"$deps": ["a", "b"]}');
SELECT pg_temp.report('a', 'failed');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.create('during', '{"$deps": ["a"]}'), 'unscheduled 5:', 'tolerate: created during a rerun, it is not met');
SELECT is(pg_temp.create('during2', '{"$deps": ["a", "b"]}'), 'unscheduled 5:', 'tolerate: nor with another');
SELECT pg_temp.work('b', 'completed');
SELECT is(pg_temp.look('sticky'), 'pending 5: scheduled>pending', 'tolerate: a dependency met before the rerun stays met');
SELECT is(pg_temp.look('during2'), 'unscheduled 5:', 'tolerate: the other one waits still');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.look('during') || ', ' || pg_temp.look('during2'), 'pending 5: scheduled>pending, pending 5: scheduled>pending', 'tolerate: the rerun fails: both are met');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT pg_temp.create('third', '{"$deps": ["a"]}');
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.look('third'), 'pending 5: scheduled>pending', 'tolerate: another rerun completes: met as well');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT pg_temp.report('a', 'canceled');
SELECT is(pg_temp.create('fourth', '{"$deps": ["a"]}'), 'unscheduled 5:', 'tolerate: a rerun that is canceled meets nothing');
ROLLBACK TO s;

-- all-completed of a blocked task that is rerun and completes, as usual
SELECT pg_temp.member('a', 'block');
SELECT pg_temp.create('d', '{"$deps": ["a"]}');
SELECT pg_temp.report('a', 'failed');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.look('d'), 'pending 5: scheduled>pending', 'block: a rerun that completes meets its dependents');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- group_progress: tolerated and outcome
-- ---------------------------------------------------------------------------

-- one unsuccessful task in a group beside one that completes, for each reason and effect
SELECT pg_temp.end_all(e || '-', e) FROM unnest('{block,tolerate,forgive}'::text[]) AS e;
SELECT is(pg_temp.progress(e || '-' || reason), format('1: %s%s %s', CASE state WHEN 'failed' THEN 'f1' ELSE 'e1' END, CASE e WHEN 'block' THEN '' ELSE ' t1' END,
	CASE e WHEN 'forgive' THEN 'completed-with-errors' ELSE outcome END), format('group_progress: %s, %s', e, reason)) FROM ends, unnest('{block,tolerate,forgive}'::text[]) AS e;
ROLLBACK TO s;
SELECT pg_temp.member(n, e, '{"$group": "g"}') FROM (VALUES (1, 'a', 'forgive'), (2, 'b', 'forgive'), (3, 'c', 'tolerate'), (4, 'd', 'block'), (5, 'e', 'block'), (6, 'f', 'forgive')) AS v (i, n, e) ORDER BY i;
SELECT is(pg_temp.progress('g'), '6: r6 -', 'group_progress: no outcome while tasks are active');
SELECT pg_temp.report('a', 'internal-error');
SELECT is(pg_temp.progress('g'), '6: r5 e1 t1 -', 'group_progress: one is forgiven');
SELECT pg_temp.report('b', 'completed');
SELECT pg_temp.report('f', 'canceled');
SELECT is(pg_temp.progress('g'), '6: r3 c1 e2 t1 -', 'group_progress: one that was canceled is not');
SAVEPOINT inner_savepoint;
SELECT pg_temp.report(n, 'completed') FROM unnest('{c,d,e}'::text[]) AS n;
SELECT is(pg_temp.progress('g'), '6: c4 e2 t1 canceled', 'group_progress: so it determines the outcome');
ROLLBACK TO inner_savepoint;
SELECT tq.rerun_task(pg_temp.id('f')) ->> 'state';
SELECT pg_temp.work('f', 'completed');
SELECT is(pg_temp.progress('g'), '6: r3 c2 e1 t1 -', 'group_progress: unless it is rerun');
SAVEPOINT inner_savepoint;
SELECT pg_temp.report(n, 'completed') FROM unnest('{c,d,e}'::text[]) AS n;
SELECT is(pg_temp.progress('g'), '6: c5 e1 t1 completed-with-errors', 'group_progress: only forgiven ones');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT is(pg_temp.progress('g'), '6: p1 c5 -', 'group_progress: a rerun of that one: active again');
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.progress('g'), '6: c6 completed', 'group_progress: which completes: it no longer counts');
ROLLBACK TO inner_savepoint;
SELECT pg_temp.report('c', 'failed');
SELECT pg_temp.resolve('canceled', 'd');
SELECT is(pg_temp.progress('g'), '6: r1 c2 f1 e2 t2 -', 'group_progress: tolerated, then one that blocks');
SELECT pg_temp.report('e', 'completed');
SELECT is(pg_temp.progress('g'), '6: c3 f1 e2 t2 failed', 'group_progress: the first that is not forgiven decides');
ROLLBACK TO s;
-- the order of the resolutions, not of the tasks
SELECT pg_temp.member(n, 'block', '{"$group": "g"}') FROM unnest('{a,b,c}'::text[]) AS n;
SELECT pg_temp.resolve('canceled', 'c');
SET tq.clock_offset = '1 second';
SELECT pg_temp.report('a', 'failed');
SELECT pg_temp.report('b', 'completed');
SELECT is(pg_temp.progress('g'), '3: c1 f1 e1 canceled', 'group_progress: by the time of the resolutions');
ROLLBACK TO s;
SELECT pg_temp.member('a', 'forgive', '{"$group": "g"}'), pg_temp.member('b', 'tolerate', '{"$group": "g"}');
SELECT pg_temp.report('a', 'failed');
SELECT pg_temp.pass('20 minutes 1 second');
SELECT pg_temp.take('b');
SELECT pg_temp.resolve('canceled', 'b');
SELECT is(pg_temp.progress('g'), '2: f1 e1 t2 canceled', 'group_progress: a retried run does not decide, the last does');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- cancel-dependents
-- ---------------------------------------------------------------------------
SELECT pg_temp.member('a', 'cancel-dependents', '{"$group": "g"}');
SELECT pg_temp.create('x'), pg_temp.create('free', '{"$group": "g"}');
SELECT pg_temp.create(n, (o || '{"$group": "g"}')::jsonb) FROM (VALUES (1, 'b', '{"$deps": ["a"]}'::jsonb), (2, 'c', '{"$deps": ["x", "b"]}'), (3, 'd', '{"$deps": ["c"]}'),
	(4, 'any', '{"$deps": ["a"], "requires": "all-resolved"}'), (5, 'anyc', '{"$deps": ["c"], "requires": "all-resolved"}'), (6, 'sched', '{"$deps": ["a"]}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.create('other', '{"$deps": ["a"], "$group": "h"}'), pg_temp.create('last', '{"$deps": ["sched"]}'), pg_temp.create('soon', '{"$deps": ["a"], "$deadline": "10 minutes"}');
SELECT tq.schedule_task(pg_temp.id('sched')) ->> 'state';
SELECT is(pg_temp.report('a', 'failed'), 'failed 5: scheduled>failed/failed', 'cancel-dependents: one fails');
SELECT is(pg_temp.look(n), 'exception 5: exception>exception/canceled', 'cancel-dependents: what waits for it is canceled, ' || n) FROM unnest('{b,c,d,other,soon}'::text[]) AS n;
SELECT is(pg_temp.look(n), 'pending 5: scheduled>pending', 'cancel-dependents: what requires all-resolved goes on, or has a run, or needs it not, ' || n) FROM unnest('{any,anyc,sched,x,free}'::text[]) AS n;
SELECT is(pg_temp.look('last'), 'unscheduled 5:', 'cancel-dependents: what waits for one that goes on waits');
SELECT is(tq.rerun_task(pg_temp.id('a'), downstream => true) ->> 'state', 'pending', 'cancel-dependents: a repair');
SELECT is(string_agg(pg_temp.state(n), ' '), 'unscheduled unscheduled unscheduled unscheduled', 'cancel-dependents: has them wait again') FROM unnest('{b,c,d,other}'::text[]) AS n;
SELECT pg_temp.work('a', 'failed');
SELECT is(string_agg(pg_temp.state(n), ' '), 'exception exception exception exception', 'cancel-dependents: and again') FROM unnest('{b,c,d,other}'::text[]) AS n;
SELECT is(pg_temp.pass(), '', 'cancel-dependents: upkeep() finds nothing');
ROLLBACK TO s;
-- not where the dependency was met before, nor when the task is canceled or retried
SELECT pg_temp.member('a', 'cancel-dependents'), pg_temp.create('x'), pg_temp.create('met', '{"$deps": ["a", "x"]}');
SELECT pg_temp.report('a', 'completed');
SELECT tq.rerun_task(pg_temp.id('a')) ->> 'state';
SELECT pg_temp.create('new', '{"$deps": ["a"]}');
SELECT pg_temp.work('a', 'failed');
SELECT is(pg_temp.state('met') || ' ' || pg_temp.state('new'), 'unscheduled exception', 'cancel-dependents: a dependency that was met stays met');
SELECT pg_temp.member('k', 'cancel-dependents'), pg_temp.create('k1', '{"$deps": ["k"]}');
SELECT pg_temp.report('k', 'canceled');
SELECT is(pg_temp.state('k1'), 'unscheduled', 'cancel-dependents: not when a client cancels the task');
SELECT pg_temp.member('r', 'cancel-dependents'), pg_temp.create('r1', '{"$deps": ["r"]}');
SELECT is(pg_temp.report('r', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'cancel-dependents: a retry');
SELECT is(pg_temp.state('r1'), 'unscheduled', 'cancel-dependents: cancels nothing');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- cancel-group
-- ---------------------------------------------------------------------------



SELECT pg_temp.everybody();
SELECT is(pg_temp.progress('g'), '12: u3 d3 p1 r3 c1 f1 -', 'cancel-group: a group with tasks in every state');
SELECT is(pg_temp.report('culprit', 'failed'), 'failed 0: scheduled>failed/failed', 'cancel-group: one fails');
SELECT pg_temp.cancelled('report_failed');
SELECT is(pg_temp.progress('g'), '12: c1 f2 e9 failed', 'cancel-group: the group has failed');
SELECT is(pg_temp.pass(), '', 'cancel-group: upkeep() finds nothing');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('running'), 0)$$, 'TQ409', 'cancel-group: the worker of another is refused');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('culprit'), 0)$$, 'culprit', 'cancel-group: a repeat of the report changes nothing');
SELECT is(pg_temp.create('new', '{"$group": "g"}'), 'pending 5: scheduled>pending', 'cancel-group: the group is not sealed');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('culprit'), 0)$$, 'culprit', 'cancel-group: a repeat does not cancel a new task');
SELECT is(pg_temp.state('new'), 'pending', 'cancel-group: which is pending');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('pending'))), 'pending 5: scheduled>exception/canceled rerun>pending', 'cancel-group: a canceled task can be rerun');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('culprit'))), 'pending 0: scheduled>failed/failed rerun>pending', 'cancel-group: so can its cause');
SELECT is(pg_temp.work('culprit', 'completed'), 'completed 0: scheduled>failed/failed rerun>completed/completed', 'cancel-group: which completes');
SELECT is(pg_temp.state('new') || ' ' || pg_temp.state('pending') || ' ' || pg_temp.state('o-waits'), 'pending pending pending', 'cancel-group: and cancels nothing');
ROLLBACK TO s;

-- For every reason.
SELECT pg_temp.everybody();
SELECT is(pg_temp.report('culprit', 'internal-error'), 'exception 0: scheduled>exception/internal-error', 'cancel-group: an exception');
SELECT pg_temp.cancelled('report_exception');
ROLLBACK TO s;
SELECT pg_temp.everybody();
SELECT is(pg_temp.resolve('failed-terminal', 'culprit', 'o-running'), 'resolved resolved', 'cancel-group: in a batch');
SELECT is(pg_temp.look('o-running'), 'failed 5: scheduled>failed/failed-terminal', 'cancel-group: the other of the batch has its own resolution');
SELECT is(pg_temp.progress('g'), '12: c1 f2 e9 failed', 'cancel-group: in a batch, its group');
ROLLBACK TO s;
SELECT pg_temp.everybody('{"claimTimeout": 600}');
SELECT is(pg_temp.pass('10 minutes'), 'claim-expired 1', 'cancel-group: a claim expires');
SELECT pg_temp.cancelled('claim-expired');
SELECT is(pg_temp.progress('g'), '12: c1 f1 e10 failed', 'cancel-group: the outcome of the group is that of the earlier failure');
ROLLBACK TO s;
SELECT pg_temp.everybody('{"runTimeout": 600}');
SELECT is(pg_temp.pass('10 minutes'), 'run-timeout 1', 'cancel-group: a run takes too long');
SELECT pg_temp.cancelled('run-timeout');
ROLLBACK TO s;
SELECT pg_temp.everybody('{"totalTimeout": 600}');
SELECT is(pg_temp.pass('10 minutes'), 'deadline 1', 'cancel-group: a task passes its total timeout');
SELECT pg_temp.cancelled('deadline');
ROLLBACK TO s;
SELECT pg_temp.everybody('{"pendingTimeout": 600}');
SELECT tq.cancel_task(pg_temp.id('culprit')) ->> 'state', tq.rerun_task(pg_temp.id('culprit')) ->> 'state';
SELECT is(pg_temp.progress('g'), '12: u2 d3 p3 r2 c1 f1 -', 'cancel-group: not if a client cancels the task');
SELECT is(pg_temp.pass('10 minutes'), 'pending-timeout 1', 'cancel-group: a run is pending too long');
SELECT is(pg_temp.progress('g'), '12: c1 f1 e10 failed', 'cancel-group: pending-timeout, its group');
ROLLBACK TO s;

-- Its worker reports canceled: no dead letter, but the group is canceled.
SELECT pg_temp.everybody();
SELECT is(pg_temp.resolve('canceled', 'culprit'), 'resolved', 'cancel-group: canceled by its worker');
SELECT is((SELECT string_agg(pg_temp.state(n), ' ') FROM unnest('{unscheduled,waits,cleans-up,pending,delayed,backed-off,deferred,running,another}'::text[]) AS n),
	'exception exception exception exception exception exception exception exception exception', 'cancel-group: cancels the others');
SELECT is((SELECT count(*) FROM tq_internal.dead_letter), 0::bigint, 'cancel-group: none has a dead letter');
SELECT is(pg_temp.progress('g'), '12: c1 f1 e10 failed', 'cancel-group: canceled by its worker, its group');
ROLLBACK TO s;
-- A cancel by a client cancels that task alone.
SELECT pg_temp.everybody();
SELECT pg_temp.report('culprit', 'canceled');
SELECT is(pg_temp.progress('g'), '12: u2 d3 p2 r2 c1 f1 e1 -', 'cancel-group: not if a client cancels the task (its dependent is released)');
ROLLBACK TO s;
-- While retries are left the task is not resolved.
SELECT pg_temp.everybody('{"retries": 1, "retryOn": ["failed"]}');
SELECT is(pg_temp.report('culprit', 'failed'), 'pending 0: scheduled>failed/failed failure-retry>pending', 'cancel-group: not while it is retried');
SELECT is(pg_temp.progress('g'), '12: u3 d3 p2 r2 c1 f1 -', 'cancel-group: the others stay running');
SELECT pg_temp.work('culprit', 'failed');
SELECT is(pg_temp.progress('g'), '12: c1 f2 e9 failed', 'cancel-group: but with the final failure');
ROLLBACK TO s;
-- A completed or skipped one cancels nothing.
SELECT pg_temp.everybody();
SELECT pg_temp.report('culprit', 'completed');
SELECT is(pg_temp.progress('g'), '12: u1 d3 p3 r2 c2 f1 -', 'cancel-group: not if it completes');
SELECT is((SELECT string_agg(pg_temp.state(n), ' ') FROM unnest('{waits,cleans-up,o-waits}'::text[]) AS n), 'pending pending pending', 'cancel-group: its dependents are released');
ROLLBACK TO s;

-- For each reason; it determines the outcome of the group, not the tasks that were canceled with it.
SELECT pg_temp.create('with-' || reason, jsonb_build_object('$group', 'cause-' || reason, '$deadline', '1 day')) FROM ends;
SELECT pg_temp.create('dep-' || reason, jsonb_build_object('$group', 'cause-' || reason, '$deadline', '1 day', '$deps', jsonb_build_array('with-' || reason))) FROM ends;
SELECT pg_temp.end_all('cause-', 'cancel-group');
SELECT is(pg_temp.look('with-' || reason) || ', ' || pg_temp.look('dep-' || reason), 'exception 5: scheduled>exception/canceled, exception 5: exception>exception/canceled', 'cancel-group: cancels, ' || reason) FROM ends;
SELECT is(pg_temp.progress('cause-' || reason), format('3: %s %s', CASE state WHEN 'failed' THEN 'f1 e2' ELSE 'e3' END, outcome), 'cancel-group: the outcome is that of its cause, ' || reason) FROM ends;
ROLLBACK TO s;

-- Two of one group in one call: each has its own resolution; so have those of two groups.
SELECT pg_temp.member(n, 'cancel-group', jsonb_build_object('$group', left(n, 1))) FROM unnest('{a1,a2,b1,b2,c1}'::text[]) AS n;
SELECT pg_temp.create(n, jsonb_build_object('$group', left(n, 1))) FROM unnest('{a3,b3,c3}'::text[]) AS n;
SELECT is(pg_temp.resolve('failed', 'a1', 'b1', 'a2'), 'resolved resolved resolved', 'cancel-group: three of two groups in one call');
SELECT is(pg_temp.progress('a') || ', ' || pg_temp.progress('b') || ', ' || pg_temp.progress('c'), '3: f2 e1 failed, 3: f1 e2 failed, 2: p1 r1 -', 'cancel-group: both groups, not the third');
ROLLBACK TO s;
SELECT pg_temp.member(n, 'cancel-group', '{"$group": "g", "$deadline": "10 minutes"}') FROM unnest('{a,b}'::text[]) AS n;
SELECT pg_temp.create('c', '{"$group": "g"}');
SELECT is(pg_temp.pass('10 minutes 1 second'), 'deadline 2', 'cancel-group: two meet their deadline in one pass');
SELECT is(pg_temp.look(n), line, 'cancel-group: ' || n) FROM (VALUES ('a', 'exception 5: scheduled>exception/deadline-exceeded'), ('b', 'exception 5: scheduled>exception/deadline-exceeded'), ('c', 'exception 5: scheduled>exception/canceled')) AS v (n, line);
SELECT is(pg_temp.progress('g'), '3: e3 timed-out', 'cancel-group: a deadline first, so the group has timed out');
ROLLBACK TO s;
-- A member past its deadline is resolved by the deadline.
SELECT pg_temp.member('a', 'cancel-group', '{"$group": "g"}'), pg_temp.create('late', '{"$group": "g", "$deadline": "5 minutes"}'), pg_temp.create('ok', '{"$group": "g"}');
SET tq.clock_offset = '5 minutes 1 second';
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.state('late') || ' ' || pg_temp.state('ok'), 'pending exception', 'cancel-group: one that is past its deadline is not canceled');
SELECT is(pg_temp.pass(), 'deadline 1', 'cancel-group: the deadline is processed');
SELECT is(pg_temp.look('late'), 'exception 5: scheduled>exception/deadline-exceeded', 'cancel-group: and resolves it');
SELECT is(pg_temp.progress('g'), '3: f1 e2 failed', 'cancel-group: the first resolution is that of its cause');
ROLLBACK TO s;
-- Alone, and as the group's own task.
SELECT pg_temp.member('alone', 'cancel-group');
SELECT is(pg_temp.report('alone', 'failed'), 'failed 5: scheduled>failed/failed', 'cancel-group: alone in its group');
SELECT pg_temp.member('own', 'cancel-group'), pg_temp.create('guest', '{"$group": "own"}');
SELECT pg_temp.report('own', 'failed');
SELECT is(pg_temp.look('guest'), 'exception 5: scheduled>exception/canceled', 'cancel-group: in the group that has its own id');
SELECT pg_temp.create('host'), pg_temp.member('guest2', 'cancel-group', '{"$group": "host"}');
SELECT pg_temp.report('guest2', 'failed');
SELECT is(pg_temp.look('host'), 'exception 5: scheduled>exception/canceled', 'cancel-group: also the task whose id the group has');
ROLLBACK TO s;
-- A sealed group, and a dependent in it that would be released.
SELECT pg_temp.member('a', 'cancel-group', '{"$group": "g"}'), pg_temp.create('b', '{"$group": "g"}');
SELECT tq.seal_task_group(pg_temp.id('g')) IS NULL;
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.progress('g'), '2: f1 e1 failed', 'cancel-group: a sealed group');
ROLLBACK TO s;
-- Many members.
SELECT pg_temp.member('a', 'cancel-group', '{"$group": "g"}');
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('m' || n)::text, 'task', pg_temp.def('m', jsonb_build_object('$group', 'g', 'taskQueueId', 'test/m') ||
	CASE n % 4 WHEN 0 THEN '{"delay": 60}'::jsonb WHEN 1 THEN '{"$deps": ["a"]}' ELSE '{}' END))) FROM generate_series(1, 3000) AS n)), 3000::bigint, 'cancel-group: 3000 members');
SELECT is((SELECT count(*) FROM tq.claim_work('test/m', 'wg', 'w1', 500)), 500::bigint, 'cancel-group: 500 are running');
SELECT pg_temp.report('a', 'failed');
SELECT is(pg_temp.progress('g'), '3001: f1 e3000 failed', 'cancel-group: all are canceled');
SELECT is((tq.task_queue_counts('test/m') -> 'pendingTasks')::bigint, 0::bigint, 'cancel-group: none is pending');
SELECT is(pg_temp.claims('test/m'), '', 'cancel-group: nor can be claimed');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
