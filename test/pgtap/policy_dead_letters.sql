-- doc/spec/policy.md 2 (deadLetter), 10.13: dead letters and their
-- functions.
BEGIN;
\ir policy.psql

-- The letter of a task, in its own queue unless another is named.
CREATE FUNCTION pg_temp.letter(name text, queue text DEFAULT NULL) RETURNS SETOF tq.dead_letter_entry
LANGUAGE sql AS $$
	SELECT l.* FROM tq.list_dead_letters(coalesce(queue, 'test/q-' || name)) AS l
	WHERE l.task_id::text = pg_temp.id(name)::text
$$;

CREATE FUNCTION pg_temp.has_letter(name text, queue text DEFAULT NULL) RETURNS bool
LANGUAGE sql AS $$
	SELECT count(*) = 1 FROM pg_temp.letter(name, queue)
$$;

-- A definition that leaves a letter, with more for its policy and for itself.
CREATE FUNCTION pg_temp.mortal(policy jsonb DEFAULT '{}', overrides jsonb DEFAULT '{}') RETURNS jsonb
LANGUAGE sql AS $$
	SELECT overrides || jsonb_build_object('policy', '{"deadLetter": true}' || policy)
$$;

CREATE FUNCTION pg_temp.die(name text, policy jsonb DEFAULT '{}', overrides jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.resolved(name, 'failed', pg_temp.mortal(policy, overrides))
$$;

-- Redrive, and the id of the task that will run.
CREATE FUNCTION pg_temp.redriven(name text) RETURNS tq.slugid
LANGUAGE sql AS $$
	SELECT (tq.redrive(pg_temp.id(name)) ->> 'taskId')::tq.slugid
$$;

-- The same, and its definition.
CREATE FUNCTION pg_temp.redriven_task(name text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
	id tq.slugid := pg_temp.redriven(name);
BEGIN
	RETURN tq.task(id);
END
$$;

-- The task that was redriven from another; NULL when there is none.
CREATE FUNCTION pg_temp.heir(name text) RETURNS tq.slugid
LANGUAGE sql AS $$
	SELECT t.task_id FROM tq_internal.task t WHERE tq.task(t.task_id) #>> '{extra,redriveOf}' = pg_temp.id(name)::text
$$;

CREATE FUNCTION pg_temp.span(task jsonb, key text) RETURNS interval
LANGUAGE sql AS $$
	SELECT (task ->> key)::timestamptz - (task ->> 'created')::timestamptz
$$;

SAVEPOINT s;

-- ---------------------------------------------------------------------------
-- Columns of a letter
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('full', pg_temp.mortal('{"retries": 3, "pendingTimeout": 600}', '{"priority": "high", "routes": ["a.b"],
	"scopes": ["s:1"], "tags": {"k": "v"}, "extra": {"x": [1, 2]}, "$group": "g", "delay": 0, "$expires": "3 days"}'));
SELECT tq.report_failed(pg_temp.id('full'), 0, '{"message": "no", "details": {"line": 7}}');
SELECT results_eq($$SELECT task_id::text, reason, error, task, runs FROM pg_temp.letter('full')$$,
	$$SELECT pg_temp.id('full')::text, 'failed', '{"message": "no", "details": {"line": 7}}'::jsonb,
		tq.task(pg_temp.id('full')), pg_temp.runs(tq.status(pg_temp.id('full')))$$,
	'a letter has the reason, the error, the definition and the runs');
SELECT is((SELECT date_trunc('milliseconds', failed_at) FROM pg_temp.letter('full')), (pg_temp.run('full') ->> 'resolved')::timestamptz,
	'and when the task failed finally');
SELECT is((SELECT task -> 'policy' FROM pg_temp.letter('full')), '{"deadLetter": true, "retries": 3, "pendingTimeout": 600}'::jsonb, 'with the unchanged policy');

SELECT pg_temp.die('bare');
SELECT is((SELECT error FROM pg_temp.letter('bare')), NULL::jsonb, 'no error: NULL');
SELECT is((SELECT count(*) FROM tq_internal.dead_letter), 2::bigint, 'one letter for each');

-- several runs: the last one counts
SELECT pg_temp.running('many', pg_temp.mortal('{"retries": 1, "retryOn": ["failed"]}'));
SELECT tq.report_failed(pg_temp.id('many'), 0, '{"message": "first"}');
SELECT is(pg_temp.look('many') || ' ' || pg_temp.has_letter('many'), 'pending 0: scheduled>failed/failed failure-retry>pending false',
	'a failure that is retried writes no letter');
SELECT pg_temp.take('many');
SELECT tq.report_failed(pg_temp.id('many'), 1, '{"message": "second"}');
SELECT is((SELECT error ->> 'message' FROM pg_temp.letter('many')), 'second', 'the last one does, with its error');
SELECT is((SELECT runs FROM pg_temp.letter('many')), pg_temp.runs(tq.status(pg_temp.id('many'))), 'and all the runs');
SELECT is((SELECT jsonb_array_length(runs) || ' ' || (runs #>> '{0,error,message}') || ' ' || (runs #>> '{1,attempt}') FROM pg_temp.letter('many')), '2 first 1', 'with the keys of each');
SELECT pg_temp.running('quiet', pg_temp.mortal('{"retries": 1, "retryOn": ["failed"]}'));
SELECT tq.report_failed(pg_temp.id('quiet'), 0, '{"message": "first"}');
SELECT pg_temp.work('quiet', 'failed');
SELECT is((SELECT error FROM pg_temp.letter('quiet')), NULL::jsonb, 'the error of an earlier run is not shown as that of the last');

-- in the same transaction as the resolution
SAVEPOINT before;
SELECT pg_temp.die('undone');
SELECT ok(pg_temp.has_letter('undone'), 'a letter is there as soon as the task is final');
ROLLBACK TO before;
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-undone')), 0::bigint, 'and not if that is rolled back');

-- changed since: the definition at the time of the failure
SELECT pg_temp.create('changed', pg_temp.mortal());
SELECT tq.change_task_priority(pg_temp.id('changed'), 'highest');
SELECT pg_temp.work('changed', 'failed');
SELECT is((SELECT task ->> 'priority' FROM pg_temp.letter('changed')), 'highest', 'the definition is that at the time of the failure');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Which resolutions write a letter
-- ---------------------------------------------------------------------------

-- what a worker reports, in single form
SELECT is(pg_temp.resolved(reason, reason, pg_temp.mortal('{"retries": 0}')) || ' ' || pg_temp.letters('test/q-' || reason),
	CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END || ' 0: scheduled>' || CASE reason WHEN 'failed' THEN 'failed' ELSE 'exception' END
		|| '/' || reason || ' ' || reason || ' ' || reason, 'dies: ' || reason)
FROM unnest('{failed,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task}'::text[]) AS reason;
SELECT is(pg_temp.resolved('completed', 'completed', pg_temp.mortal()) || ' ' || pg_temp.letters('test/q-completed'),
	'completed 5: scheduled>completed/completed ', 'does not: completed');
ROLLBACK TO s;

-- in batch form
SELECT pg_temp.running(reason, pg_temp.mortal('{"retries": 0}'))
FROM unnest('{completed,failed,failed-terminal,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task,canceled}'::text[]) AS reason;
SELECT is(pg_temp.resolve(reason, reason) || ' ' || pg_temp.letters('test/q-' || reason), 'resolved ' || reason || ' ' || reason, 'resolve: ' || reason)
FROM unnest('{failed,failed-terminal,worker-shutdown,malformed-payload,resource-unavailable,internal-error,intermittent-task}'::text[]) AS reason;
SELECT is(pg_temp.resolve(reason, reason) || ' ' || pg_temp.letters('test/q-' || reason), 'resolved ', 'resolve writes none: ' || reason)
FROM unnest('{completed,canceled}'::text[]) AS reason;
SELECT is(pg_temp.look('canceled'), 'exception 0: scheduled>exception/canceled', 'a cancel that the worker reports is a resolution without a letter');
ROLLBACK TO s;

-- many at once, some with, some without, some retried
SELECT pg_temp.running('b' || n, CASE n % 3 WHEN 0 THEN pg_temp.mortal('{"retryOn": ["failed"], "retries": 1}') WHEN 1 THEN pg_temp.mortal() ELSE '{}' END || '{"taskQueueId": "test/many"}')
FROM generate_series(1, 250) AS n;
SELECT tq.resolve(array_agg(pg_temp.id('b' || n)), array_agg(0), 'failed') FROM generate_series(1, 250) AS n;
SELECT is((SELECT array_agg(task #>> '{metadata,name}' ORDER BY task #>> '{metadata,name}') FROM tq.list_dead_letters('test/many')),
	(SELECT array_agg('b' || n ORDER BY 'b' || n) FROM generate_series(1, 250) AS n WHERE n % 3 = 1), 'of 250 that fail in one call each has its letter if its policy has one');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/many') AS l WHERE l.task = tq.task(l.task_id) AND l.runs = pg_temp.runs(tq.status(l.task_id))), 84::bigint, 'and each its own');
ROLLBACK TO s;

-- by time
SELECT pg_temp.running('claim', pg_temp.mortal('{"retries": 0}'));
SELECT pg_temp.running('lost', pg_temp.mortal('{"lostRetries": 0}'));
SELECT pg_temp.running('run', pg_temp.mortal('{"runTimeout": 60, "claimTimeout": 60}'));
SELECT pg_temp.create('wait', pg_temp.mortal('{"pendingTimeout": 60}'));
SELECT pg_temp.running('z', pg_temp.mortal('{"retries": 1, "claimTimeout": 60}'));
SELECT pg_temp.running('plain', '{"retries": 0}');
SELECT pg_temp.create('dp', pg_temp.mortal('{}', '{"$deadline": "40 minutes"}'));
SELECT pg_temp.running('dr', pg_temp.mortal('{"claimTimeout": 3600}', '{"$deadline": "40 minutes"}'));
SELECT pg_temp.create('du', pg_temp.mortal('{}', '{"$deadline": "40 minutes", "$deps": ["dp"]}'));
SELECT pg_temp.create('dd', pg_temp.mortal('{}', '{"$deadline": "40 minutes", "delay": 600}'));
SELECT pg_temp.create('dt', pg_temp.mortal('{"totalTimeout": 1800}'));
SELECT pg_temp.running('alert', pg_temp.mortal('{"runTimeout": 60, "timeoutAlertOnly": true, "claimTimeout": 60}', '{"retries": 5}'));
SELECT pg_temp.pass('61 seconds');
SELECT is(pg_temp.letters('test/q-' || name), name || ' ' || reason, 'a letter by a timeout: ' || reason)
FROM (VALUES ('run', 'run-timeout'), ('wait', 'pending-timeout')) AS v (name, reason);
SELECT is(pg_temp.letters('test/q-open'), '', 'a claim that expired with a retry left writes none');
SELECT is(pg_temp.letters('test/q-alert'), '', 'nor does a timeout that only alerts');
SELECT pg_temp.pass('31 minutes');
SELECT is(pg_temp.letters('test/q-' || name), name || ' ' || reason, format('a letter by a timeout: %s (%s)', reason, name))
FROM (VALUES ('claim', 'claim-expired'), ('lost', 'claim-expired'), ('dt', 'deadline-exceeded')) AS v (name, reason);
SELECT is(pg_temp.look('plain') || pg_temp.letters('test/q-plain'), 'exception 0: scheduled>exception/claim-expired', 'a task without a policy has none');
SELECT is((SELECT date_trunc('milliseconds', failed_at) FROM pg_temp.letter('lost')), (pg_temp.run('lost') ->> 'resolved')::timestamptz, 'the time is that of the pass of upkeep()');
SELECT pg_temp.pass('41 minutes');
SELECT is(pg_temp.letters('test/q-' || name), name || ' deadline-exceeded', 'a letter by its deadline: ' || name) FROM unnest('{dp,dr,du,dd}'::text[]) AS name;
SELECT is((SELECT runs FROM pg_temp.letter('du')), pg_temp.runs(tq.status(pg_temp.id('du'))), 'with a run that was created resolved');
SELECT results_eq($$SELECT l.task, l.runs FROM unnest('{claim,lost,run,wait,dp,dr,du,dd,dt}'::text[]) AS name CROSS JOIN LATERAL pg_temp.letter(name) AS l$$,
	$$SELECT tq.task(pg_temp.id(name)), pg_temp.runs(tq.status(pg_temp.id(name))) FROM unnest('{claim,lost,run,wait,dp,dr,du,dd,dt}'::text[]) AS name$$, 'each is whole');
ROLLBACK TO s;

-- canceled, by whichever function
SELECT pg_temp.create('p', pg_temp.mortal());
SELECT pg_temp.running('r', pg_temp.mortal());
SELECT pg_temp.create('u', pg_temp.mortal('{}', '{"$deps": ["p"]}'));
SELECT pg_temp.report(name, 'canceled') FROM unnest('{p,r,u}'::text[]) AS name;
SELECT is(pg_temp.letters('test/q-' || name), '', 'cancel_task writes none: ' || name) FROM unnest('{p,r,u}'::text[]) AS name;
SELECT pg_temp.create('g1', pg_temp.mortal('{}', '{"$group": "g"}'));
SELECT tq.seal_task_group(pg_temp.id('g'));
SELECT tq.cancel_task_group(pg_temp.id('g'));
SELECT is(pg_temp.look('g1') || pg_temp.letters('test/q-g1'), 'exception 5: scheduled>exception/canceled', 'cancel_task_group writes none');
SELECT pg_temp.running('h1', pg_temp.mortal('{"onUnsuccessful": "cancel-group"}', '{"$group": "h"}'));
SELECT pg_temp.create('h2', pg_temp.mortal('{}', '{"$group": "h"}'));
SELECT pg_temp.report('h1', 'failed');
SELECT is(pg_temp.look('h2') || ', ' || pg_temp.letters('test/q-h2') || pg_temp.letters('test/q-h1'), 'exception 5: scheduled>exception/canceled, h1 failed', 'the failure that cancels a group writes one, the canceled tasks have none');
SELECT pg_temp.create('skip', pg_temp.mortal());
SELECT tq.skip_task(pg_temp.id('skip'));
SELECT is(pg_temp.letters('test/q-skip'), '', 'skip_task writes none');

-- not set
SELECT pg_temp.resolved('off', 'failed', '{"policy": {"deadLetter": false}}');
SELECT pg_temp.resolved('null', 'failed', '{"policy": {"deadLetter": null}}');
SELECT pg_temp.resolved('other', 'failed', '{"policy": {"retries": 3}}');
SELECT pg_temp.resolved('none', 'failed');
SELECT is(pg_temp.letters('test/q-' || name), '', 'deadLetter is not set: ' || name) FROM unnest('{off,"null",other,none}'::text[]) AS name;

-- under every value of onUnsuccessful
SELECT pg_temp.resolved('effect-' || effect, 'failed', pg_temp.mortal(jsonb_build_object('onUnsuccessful', effect)))
FROM unnest('{block,tolerate,forgive}'::text[]) AS effect;
SELECT ok(pg_temp.has_letter('effect-' || effect), 'a letter under onUnsuccessful ' || effect) FROM unnest('{block,tolerate,forgive}'::text[]) AS effect;

-- a report that is repeated, or too late
SELECT pg_temp.die('again');
CREATE TEMP TABLE first ON COMMIT DROP AS SELECT * FROM pg_temp.letter('again');
SELECT pg_temp.report('again', 'failed');
SELECT results_eq($$SELECT failed_at, runs FROM pg_temp.letter('again')$$, 'SELECT failed_at, runs FROM first', 'a report that is repeated changes no letter');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('again'), 0)$$, 'TQ409', 'nor does a refused one');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- redrive() before the deadline: a rerun
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('a', pg_temp.mortal('{"retries": 1, "retryOn": ["failed"], "lostRetries": 1}'));
SELECT pg_temp.report('a', 'failed');
SELECT pg_temp.work('a', 'failed');
CREATE TEMP TABLE answer ON COMMIT DROP AS SELECT tq.redrive(pg_temp.id('a')) AS status;
SELECT is(status, tq.status(pg_temp.id('a')), 'redrive() before the deadline returns the status of that task') FROM answer;
SELECT is(pg_temp.look('a'), 'pending 1: scheduled>failed/failed failure-retry>failed/failed rerun>pending', 'which has one more run, and its retries again');
SELECT is(pg_temp.attempts('a'), '0 1 0', 'that begins with attempt 0');
SELECT is(pg_temp.letters('test/q-a'), '', 'the letter is deleted');
SELECT is((SELECT count(*) FROM tq_internal.task), 1::bigint, 'there is no new task');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('a'))$$, 'TQ404', 'it cannot be redriven twice');
SELECT is(pg_temp.work('a', 'failed'), 'pending 0: scheduled>failed/failed failure-retry>failed/failed rerun>failed/failed failure-retry>pending', 'its retries can be used');
SELECT is(pg_temp.letters('test/q-a'), '', 'until then there is no letter');
SELECT pg_temp.work('a', 'failed');
SELECT is((SELECT jsonb_array_length(runs) FROM pg_temp.letter('a')), 4, 'when it fails again, there is one again');
SELECT pg_temp.redriven('a');
SELECT pg_temp.work('a', 'completed');
SELECT is(pg_temp.state('a') || pg_temp.letters('test/q-a'), 'completed', 'when it is completed there is none');
ROLLBACK TO s;

-- no delay is repeated
SELECT pg_temp.create('slow', pg_temp.mortal('{"delay": 60, "retryBackoff": {"delay": 60}}'));
SELECT pg_temp.pass('61 seconds');
SELECT pg_temp.work('slow', 'failed');
SELECT pg_temp.redriven('slow');
SELECT is(pg_temp.run('slow') ->> 'visibleAt', NULL::text, 'a rerun is not delayed');
SELECT is(pg_temp.take('slow'), 1, 'and can be claimed at once');
ROLLBACK TO s;

-- whatever its reason
SELECT pg_temp.create('w', pg_temp.mortal('{"pendingTimeout": 60}'));
SELECT pg_temp.pass('61 seconds');
SELECT pg_temp.redriven('w');
SELECT is(pg_temp.look('w'), 'pending 5: scheduled>exception/pending-timeout rerun>pending', 'a pending timeout is redriven');
SELECT is(pg_temp.pass('122 seconds'), 'pending-timeout 1', 'and has its time again');
SELECT ok(pg_temp.has_letter('w'), 'and its letter');
ROLLBACK TO s;

-- the limit of runs
SET tq.max_runs = 2;
SELECT pg_temp.die('max', '{"retries": 0}');
SELECT pg_temp.redriven('max');
SELECT pg_temp.work('max', 'failed');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('max'))$$, 'TQ409', 'a task that has all its runs cannot be redriven before its deadline');
SELECT ok(pg_temp.has_letter('max'), 'its letter stays');
RESET tq.max_runs;
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('max'))), 'pending 0: scheduled>failed/failed rerun>failed/failed rerun>pending', 'until it may have more');
ROLLBACK TO s;

-- a sealed group has the task already
SELECT pg_temp.running('in', pg_temp.mortal('{}', '{"$group": "g"}'));
SELECT tq.seal_task_group(pg_temp.id('g'));
SELECT pg_temp.report('in', 'failed');
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('in'))), 'pending 5: scheduled>failed/failed rerun>pending', 'a rerun in a sealed group');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- redrive() after the deadline: a new task
-- ---------------------------------------------------------------------------

SELECT pg_temp.die('old', '{"retries": 2}', '{"priority": "high", "routes": ["a.b"], "scopes": ["s:1"], "tags": {"k": "v"},
	"extra": {"x": [1, 2], "y": {"z": 1}}, "$group": "g", "$expires": "3 days", "$created": "-5 minutes", "schedulerId": "me", "projectId": "pr"}');
CREATE TEMP TABLE old ON COMMIT DROP AS SELECT tq.task(pg_temp.id('old')) AS task, tq.status(pg_temp.id('old')) AS status;
SELECT pg_temp.pass('61 minutes');
CREATE TEMP TABLE answer ON COMMIT DROP AS SELECT tq.redrive(pg_temp.id('old')) AS status;
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT (status ->> 'taskId')::tq.slugid AS id, tq.task((status ->> 'taskId')::tq.slugid) AS task FROM answer;
SELECT isnt(id::text, pg_temp.id('old')::text, 'redrive() past the deadline makes a new task') FROM new;
SELECT is(a.status, tq.status(n.id), 'and returns its status') FROM answer a, new n;
SELECT is(pg_temp.line(status), 'pending 2: scheduled>pending', 'which is pending') FROM answer;
SELECT is(n.task - '{created,deadline,expires,extra}'::text[], o.task - '{created,deadline,expires,extra}'::text[],
	'the definition is the same, the group included') FROM new n, old o;
SELECT is(n.task -> 'extra', '{"x": [1, 2], "y": {"z": 1}}'::jsonb || jsonb_build_object('redriveOf', pg_temp.id('old')::text), 'extra.redriveOf names the old one') FROM new n;
SELECT ok(pg_temp.near(task ->> 'created', pg_temp.clock()), 'created is now') FROM new;
SELECT is(pg_temp.span(n.task, key), pg_temp.span(o.task, key), key || ' comes as long after created as it did') FROM new n, old o, unnest('{deadline,expires}'::text[]) AS key;
SELECT is(tq.status(pg_temp.id('old')), status, 'the old task stays as it is') FROM old;
SELECT is(tq.task(pg_temp.id('old')), task, 'by its definition, too') FROM old;
SELECT is(pg_temp.letters('test/q-old'), '', 'the letter is deleted');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('old'))$$, 'TQ404', 'it cannot be redriven twice');
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('g'))), 2::bigint, 'the group has both');

-- and again
SELECT tq.report_failed(id, (SELECT run_id FROM tq.claim_work('test/q-old', 'wg', 'w')), '{"message": "still"}') FROM new;
SELECT results_eq($$SELECT l.task_id::text, l.error ->> 'message', l.task FROM tq.list_dead_letters('test/q-old') AS l$$,
	$$SELECT id::text, 'still', task FROM new$$, 'when the new task fails, it has its own letter');
SELECT pg_temp.pass('130 minutes');
CREATE TEMP TABLE third ON COMMIT DROP AS SELECT (tq.redrive(id) ->> 'taskId')::tq.slugid AS third FROM new;
SELECT is(tq.task(third) -> 'extra', '{"x": [1, 2], "y": {"z": 1}}'::jsonb || jsonb_build_object('redriveOf', id::text),
	'redriveOf names its direct predecessor') FROM new, third;
ROLLBACK TO s;

-- a plain one: the group of its own id, no extra
SELECT pg_temp.die('old');
SET tq.clock_offset = '61 minutes';
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT pg_temp.redriven_task('old') AS task;
SELECT is(task -> 'extra', jsonb_build_object('redriveOf', pg_temp.id('old')::text), 'extra was empty') FROM new;
SELECT is(task ->> 'taskGroupId', pg_temp.id('old')::text, 'the old task''s own group stays the group') FROM new;
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('old'))), 2::bigint, 'which has two tasks then');
ROLLBACK TO s;

-- a task with an extra.redriveOf of its own
SELECT pg_temp.die('old', '{}', '{"extra": {"redriveOf": 7}}');
SET tq.clock_offset = '61 minutes';
SELECT is(pg_temp.redriven_task('old') #>> '{extra,redriveOf}', pg_temp.id('old')::text, 'redriveOf of the user is replaced');
ROLLBACK TO s;

-- of enqueue(), without metadata
SELECT tq.enqueue('test/q', task_id => pg_temp.id('e'), policy => '{"deadLetter": true}', deadline => '1 hour', expires => '1 day', payload => '{"n": 1}');
SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('test/q', 'wg', 'w');
SET tq.clock_offset = '61 minutes';
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT pg_temp.redriven_task('e') AS task;
SELECT is(task - '{created,deadline,expires,extra}'::text[], tq.task(pg_temp.id('e')) - '{created,deadline,expires,extra}'::text[], 'a task of enqueue() too') FROM new;
SELECT is(pg_temp.span(task, 'expires'), interval '25 hours', 'with its times') FROM new;
ROLLBACK TO s;

-- delay and budgets as defined
SELECT pg_temp.running('d', pg_temp.mortal('{"retries": 1, "retryOn": ["failed"], "lostRetries": 2, "runTimeout": 1000, "claimTimeout": 100, "onUnsuccessful": "tolerate"}'));
SELECT pg_temp.report('d', 'failed');
SELECT pg_temp.work('d', 'failed');
SELECT pg_temp.create('dl', pg_temp.mortal('{}', '{"delay": 90, "$deadline": "10 minutes"}'));
SELECT pg_temp.create('dp', pg_temp.mortal('{"delay": 90.5}', '{"$deadline": "10 minutes"}'));
SELECT pg_temp.pass('61 minutes');
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('d'))), 'pending 1: scheduled>pending', 'a new task has its retries');
CREATE TEMP TABLE delays ON COMMIT DROP AS SELECT name, tq.redrive(pg_temp.id(name)) AS status FROM unnest('{dl,dp}'::text[]) AS name;
SELECT is((status #>> '{runDetails,0,visibleAt}')::timestamptz - (status #>> '{runs,0,scheduled}')::timestamptz,
	CASE name WHEN 'dl' THEN interval '90 s' ELSE interval '90.5 s' END, 'and its delay: ' || name) FROM delays;
SELECT is(pg_temp.claims('test/q-dl'), '', 'it waits for that');
SELECT pg_temp.pass('63 minutes');
SELECT is((SELECT count(*) FROM tq.claim_work('test/q-dl', 'wg', 'w')), 1::bigint, 'and no longer');
ROLLBACK TO s;

-- the effective deadline is earlier
SELECT pg_temp.create('total', pg_temp.mortal('{"totalTimeout": 60}'));
SELECT pg_temp.pass('61 seconds');
SELECT is(pg_temp.letters('test/q-total'), 'total deadline-exceeded', 'a total time that is over');
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT pg_temp.redriven('total') AS id;
SELECT isnt(id::text, pg_temp.id('total')::text, 'makes a new task, although the deadline of the definition is in the future') FROM new;
SELECT is(pg_temp.span(tq.task(id), 'deadline'), interval '1 hour', 'with the deadline as defined') FROM new;
SELECT ok(pg_temp.near(tq.status(id) ->> 'deadline', pg_temp.clock() + interval '60 s'), 'and its total time from now on') FROM new;
ROLLBACK TO s;

-- expires: not past the latest possible time
SELECT pg_temp.die('late', '{}', '{"expires": "9999-12-30T23:59:59.000Z"}');
SET tq.clock_offset = '25 hours';
SELECT matches(pg_temp.redriven_task('late') ->> 'expires', '^9999-12-31', 'the latest possible time of expiry does not change');
ROLLBACK TO s;

-- its dependencies: met, if it ever ran
SELECT pg_temp.resolved('req', 'completed', '{"$expires": "80 minutes"}');
SELECT pg_temp.die('ran', '{}', '{"$deps": ["req"]}');
SELECT pg_temp.create('pend', pg_temp.mortal('{}', '{"$deps": ["req"]}'));
SELECT pg_temp.create('forced', pg_temp.mortal('{}', '{"$deps": ["forced"]}'));
SELECT tq.schedule_task(pg_temp.id('forced'));
SELECT pg_temp.create('rerun', pg_temp.mortal('{}', '{"$deps": ["rerun"]}'));
SELECT pg_temp.report('rerun', 'canceled');
SELECT tq.rerun_task(pg_temp.id('rerun'));
SELECT pg_temp.work('rerun', 'failed');
SELECT pg_temp.pass('3 hours');
SELECT pg_temp.pass();
SELECT pg_temp.throws($$SELECT tq.task(pg_temp.id('req'))$$, 'TQ404', 'the required task has expired');
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT name, pg_temp.redriven(name) AS id FROM unnest('{ran,pend,forced,rerun}'::text[]) AS name;
SELECT is(name || ': ' || pg_temp.line(tq.status(id)) || ' ' || (tq.task(id) ->> 'dependencies'), name || ': pending 5: scheduled>pending []', 'a task that ran is redriven without dependencies')
FROM new;
ROLLBACK TO s;

-- required again, if it never ran
SELECT pg_temp.create('req', '{"$deadline": "3 hours", "$expires": "1 day"}');
SELECT pg_temp.create('far', '{"$deadline": "1 hour", "$expires": "1 hour"}');
SELECT pg_temp.create('never', pg_temp.mortal('{}', '{"$deps": ["req"]}'));
SELECT pg_temp.create('never2', pg_temp.mortal('{}', '{"$deps": ["req"]}'));
SELECT pg_temp.create('gone', pg_temp.mortal('{}', '{"$deps": ["far", "req"]}'));
SELECT pg_temp.create('self', pg_temp.mortal('{}', '{"$deps": ["self", "req"]}'));
SELECT pg_temp.pass('61 minutes');
CREATE TEMP TABLE waiting ON COMMIT DROP AS SELECT name, pg_temp.redriven(name) AS id FROM unnest('{never,self}'::text[]) AS name;
SELECT is(pg_temp.line(tq.status(id)), 'unscheduled 5:', 'a task that never ran waits again: ' || name) FROM waiting;
SELECT is(tq.task(id) ->> 'dependencies', jsonb_build_array(pg_temp.id('req')::text)::text, 'for the same') FROM waiting WHERE name = 'never';
SELECT is(tq.task(id) ->> 'dependencies', jsonb_build_array(id::text, pg_temp.id('req')::text)::text, 'for the new task itself where it waited for itself') FROM waiting WHERE name = 'self';
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('gone'))$$, 'TQ400', 'a required task has expired, or expires too early: refused');
SELECT ok(pg_temp.has_letter('gone'), 'and its letter stays');
SELECT pg_temp.work('req', 'completed');
SELECT is(pg_temp.line(tq.status(id)), CASE name WHEN 'never' THEN 'pending 5: scheduled>pending' ELSE 'unscheduled 5:' END, 'a met dependency releases it: ' || name) FROM waiting;
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('never2'))), 'pending 5: scheduled>pending', 'and is met for a later redrive');
ROLLBACK TO s;

-- a sealed group
SELECT pg_temp.running('in', pg_temp.mortal('{}', '{"$group": "g"}'));
SELECT tq.seal_task_group(pg_temp.id('g'));
SELECT pg_temp.report('in', 'failed');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('in'))$$, 'TQ409', 'a sealed group takes no new task');
SELECT ok(pg_temp.has_letter('in'), 'and the letter stays');
SELECT alike(pg_temp.error($$SELECT tq.redrive(pg_temp.id('in'))$$) ->> 'hint', '%tq.rerun_task()%', 'the hint leads to rerun_task()');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('in'), '1 hour')), 'pending 5: scheduled>failed/failed rerun>pending', 'which runs the task itself again');
ROLLBACK TO s;

-- a deadline that the server no longer allows for new definitions
SELECT pg_temp.die('long', '{}', '{"$deadline": "3 days"}');
SET tq.clock_offset = '73 hours';
SET tq.max_deadline = '1 d';
SELECT ok(pg_temp.redriven('long') IS NOT NULL, 'tq.max_deadline is no limit of a task that has existed');
RESET tq.max_deadline;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- The task has expired
-- ---------------------------------------------------------------------------

SELECT pg_temp.die('old', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes", "$group": "g", "extra": {"x": 1}}');
SELECT pg_temp.die('drop', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.die('reuse', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes", "payload": {"old": true}}');
CREATE TEMP TABLE before ON COMMIT DROP AS SELECT * FROM pg_temp.letter('old');
SELECT pg_temp.pass('5 hours');
SELECT pg_temp.pass();
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('old'))$$, 'TQ404', 'the task has expired');
SELECT results_eq($$SELECT failed_at, reason, task, runs FROM pg_temp.letter('old')$$, $$SELECT failed_at, reason, task, runs FROM before$$, 'its letter stays, and is whole');
SELECT is((SELECT count(*) FROM tq_internal.run_detail) + (SELECT count(*) FROM tq_internal.run) + (SELECT count(*) FROM tq_internal.task), 0::bigint, 'no other row stays');
CREATE TEMP TABLE new ON COMMIT DROP AS SELECT pg_temp.redriven('old') AS id;
SELECT is(pg_temp.line(tq.status(id)), 'pending 5: scheduled>pending', 'redrive() makes a new task of it') FROM new;
SELECT is(tq.task(n.id) - '{created,deadline,expires,extra}'::text[], b.task - '{created,deadline,expires,extra}'::text[], 'by the stored definition') FROM new n, before b;
SELECT is(tq.task(id) -> 'extra', jsonb_build_object('x', 1, 'redriveOf', pg_temp.id('old')::text), 'that names the old one') FROM new;
SELECT is(pg_temp.letters('test/q-old'), '', 'and deletes the letter');
SELECT tq.discard_dead_letter(pg_temp.id('drop'));
SELECT is(pg_temp.letters('test/q-drop'), '', 'a letter can be discarded when the task has expired');

-- the id is used again
SELECT pg_temp.create('reuse', pg_temp.mortal('{}', '{"payload": {"new": true}}'));
SELECT is((SELECT task -> 'payload' FROM pg_temp.letter('reuse')), '{"old": true}'::jsonb, 'an id that is used again does not change the old letter');
SAVEPOINT reuse;
SELECT isnt(pg_temp.redriven('reuse')::text, pg_temp.id('reuse')::text, 'its redrive is a new task');
SELECT is(pg_temp.look('reuse'), 'pending 5: scheduled>pending', 'not a rerun of the other one');
SELECT is(tq.task(pg_temp.heir('reuse')) -> 'payload', '{"old": true}'::jsonb, 'by the old definition');
ROLLBACK TO reuse;
SELECT pg_temp.take('reuse');
SELECT tq.report_exception(pg_temp.id('reuse'), 0, 'malformed-payload', error => '{"message": "bad"}');
SELECT results_eq($$SELECT reason, error, task, runs FROM pg_temp.letter('reuse')$$,
	$$SELECT 'malformed-payload', '{"message": "bad"}'::jsonb, tq.task(pg_temp.id('reuse')), pg_temp.runs(tq.status(pg_temp.id('reuse')))$$,
	'when that one fails, its letter replaces the old one');
SELECT ok(pg_temp.near(pg_temp.iso(failed_at), pg_temp.clock()), 'with its time') FROM pg_temp.letter('reuse');
SELECT is(pg_temp.line(tq.redrive(pg_temp.id('reuse'))), 'pending 5: scheduled>exception/malformed-payload rerun>pending', 'and its redrive is a rerun');
ROLLBACK TO s;

-- only these functions delete a letter, and time (8.4)
SELECT pg_temp.die('kept', '{}', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.pass('89 days');
SELECT pg_temp.pass();
SELECT ok(pg_temp.has_letter('kept'), 'a letter does not expire with its task');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- rerun_task(), discard_dead_letter()
-- ---------------------------------------------------------------------------

SELECT pg_temp.die('a');
SELECT tq.rerun_task(pg_temp.id('a'));
SELECT is(pg_temp.look('a') || pg_temp.letters('test/q-a'), 'pending 5: scheduled>failed/failed rerun>pending', 'rerun_task deletes the letter');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('a'))$$, 'TQ404', 'then there is nothing to redrive');
SELECT pg_temp.die('b');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('b'))$$, 'TQ409', 'past the deadline it is refused');
SELECT ok(pg_temp.has_letter('b'), 'and the letter stays');
SET tq.clock_offset = '0';
SELECT tq.cancel_task(pg_temp.id('b'));
SELECT ok(pg_temp.has_letter('b'), 'cancel_task of a task with a letter changes nothing');
SELECT tq.discard_dead_letter(pg_temp.id('b'));
SELECT is(pg_temp.look('b') || pg_temp.letters('test/q-b'), 'failed 5: scheduled>failed/failed', 'discard_dead_letter does not change the task');
SELECT pg_temp.throws($$SELECT tq.discard_dead_letter(pg_temp.id('b'))$$, 'TQ404', 'once');
SELECT pg_temp.throws($$SELECT tq.redrive(pg_temp.id('b'))$$, 'TQ404', 'a discarded letter is not redriven');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('b'))), 'pending 5: scheduled>failed/failed rerun>pending', 'but can be rerun');

-- no letter
SELECT pg_temp.create('alive', pg_temp.mortal());
SELECT pg_temp.throws(format('SELECT tq.%s(pg_temp.id(%L))', f, name), 'TQ404', format('%s: %s has no letter', f, name))
FROM unnest('{redrive,discard_dead_letter}'::text[]) AS f, unnest('{alive,nobody}'::text[]) AS name;
SELECT is(pg_temp.error($$SELECT tq.redrive(pg_temp.id('alive'))$$) - 'detail', jsonb_build_object('sqlstate', 'TQ404',
	'message', format('task "%s" has no dead letter', pg_temp.id('alive')), 'hint', 'tq.list_dead_letters() shows those of a queue.'), 'which names it, and where to look');
SELECT isnt(pg_temp.error($$SELECT tq.redrive(pg_temp.id('alive'))$$) ->> 'detail', '', 'and the possible reasons');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- redrive_queue()
-- ---------------------------------------------------------------------------

-- the given number, the oldest first, by time and not by id
CREATE FUNCTION pg_temp.die_in_turn(names text[], overrides jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. cardinality(names) LOOP
		PERFORM pg_temp.running(names[i], pg_temp.mortal('{}', overrides || '{"taskQueueId": "test/q"}'));
		PERFORM set_config('tq.clock_offset', i || ' seconds', true);
		PERFORM pg_temp.report(names[i], 'failed');
	END LOOP;
	PERFORM set_config('tq.clock_offset', '0', true);
END
$$;
SAVEPOINT s;
SELECT pg_temp.die_in_turn('{e,b,d,a,c}');
SELECT pg_temp.die('elsewhere');
SELECT is(tq.redrive_queue('test/q', 2), 2::bigint, 'redrive_queue returns the number');
SELECT is(pg_temp.letters('test/q'), 'a failed, c failed, d failed', 'the oldest are redriven first');
SELECT is(pg_temp.look('e') || ', ' || pg_temp.look('b'), 'pending 5: scheduled>failed/failed rerun>pending, pending 5: scheduled>failed/failed rerun>pending', 'by a rerun');
SELECT is(pg_temp.claims('test/q'), 'e b', 'and are claimed in that order');
SELECT is(tq.redrive_queue('test/q', 1), 1::bigint, 'not more than the given number');
SELECT is(pg_temp.letters('test/q'), 'a failed, c failed', 'the next is the next oldest');
SELECT is(tq.redrive_queue('test/q'), 2::bigint, 'all, if fewer are left');
SELECT is(tq.redrive_queue('test/q'), 0::bigint, 'then none');
SELECT is(pg_temp.letters('test/q-elsewhere'), 'elsewhere failed', 'other queues do not change');
SELECT is(tq.redrive_queue('test/unknown'), 0::bigint, 'an unknown queue has none');
ROLLBACK TO s;

-- failures within one millisecond are redriven in their order, whatever their ids
SELECT pg_temp.running(name, pg_temp.mortal('{}', '{"taskQueueId": "test/q"}')) FROM unnest('{a,b,c,d,e}'::text[]) AS name;
SELECT tq.resolve(pg_temp.ids('c', 'e', 'a', 'd', 'b'), '{0,0,0,0,0}', 'failed');
SELECT is((SELECT count(DISTINCT failed_at) FROM tq.list_dead_letters('test/q')), 1::bigint, 'five failures within one millisecond');
SELECT tq.redrive_queue('test/q', 1);
SELECT is(pg_temp.letters('test/q'), 'a failed, b failed, d failed, e failed', 'the first of a call is redriven first');
SELECT tq.redrive_queue('test/q', 2);
SELECT is(pg_temp.letters('test/q'), 'b failed, d failed', 'then the next two');
SELECT is(tq.redrive_queue('test/q'), 2::bigint, 'then the rest');
SELECT is(pg_temp.claims('test/q'), 'c e a d b', 'and they run in that order');
ROLLBACK TO s;

-- a task that was redriven and failed again is the last of that millisecond
SELECT pg_temp.running(name, pg_temp.mortal('{}', '{"taskQueueId": "test/q"}')) FROM unnest('{a,b}'::text[]) AS name;
SELECT tq.resolve(pg_temp.ids('a', 'b'), '{0,0}', 'failed');
SELECT tq.redrive(pg_temp.id('a'));
SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('test/q', 'wg', 'w');
UPDATE tq_internal.dead_letter SET failed_at = (SELECT min(failed_at) FROM tq_internal.dead_letter);
SELECT tq.redrive_queue('test/q', 1);
SELECT is(pg_temp.letters('test/q'), 'a failed', 'a letter that is written again goes to the end');
ROLLBACK TO s;

-- reruns, new tasks, and tasks that have expired, in one call
SELECT pg_temp.die_in_turn('{gone}', '{"$deadline": "10 minutes", "$expires": "10 minutes"}');
SELECT pg_temp.die_in_turn('{past,past2}', '{"$deadline": "1 hour", "$expires": "1 day", "$group": "g"}');
SELECT pg_temp.die_in_turn('{fresh}', '{"$deadline": "1 day"}');
SELECT pg_temp.pass('5 hours');
SELECT pg_temp.pass();
SELECT pg_temp.throws($$SELECT tq.task(pg_temp.id('gone'))$$, 'TQ404', 'one has expired');
SELECT is(tq.redrive_queue('test/q'), 4::bigint, 'all are redriven');
SELECT is(pg_temp.look('fresh'), 'pending 5: scheduled>failed/failed rerun>pending', 'the one whose deadline is in the future by a rerun');
SELECT is(pg_temp.line(tq.status(pg_temp.heir(name))), 'pending 5: scheduled>pending', 'the others by a new task: ' || name) FROM unnest('{gone,past,past2}'::text[]) AS name;
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('g'))), 4::bigint, 'each in its group');
SELECT is(pg_temp.letters('test/q'), '', 'no letter is left');
ROLLBACK TO s;

-- a letter that is refused does not block the others
SELECT pg_temp.die_in_turn('{s1,s2}', '{"$group": "sealed"}');
SELECT tq.seal_task_group(pg_temp.id('sealed'));
SELECT pg_temp.die_in_turn('{ok1,ok2,ok3}');
SET tq.clock_offset = '61 minutes';
SET client_min_messages = error;
SELECT is(tq.redrive_queue('test/q', 2), 2::bigint, 'as many as requested, though older ones are refused');
SELECT is(pg_temp.letters('test/q'), 'ok3 failed, s1 failed, s2 failed', 'whose letters stay');
SELECT is(tq.redrive_queue('test/q', 1000), 1::bigint, 'all that are possible');
SELECT is(tq.redrive_queue('test/q', 1000), 0::bigint, 'which may be none');
SELECT is((SELECT count(*) FROM tq_internal.task), 8::bigint, 'a refused redrive leaves no rows');
SELECT pg_temp.throws($$SELECT tq.redrive_queue('test/q')$$, '00000', 'nor changed');
SET client_min_messages = warning;
ROLLBACK TO s;

-- also when all have the same time
SELECT pg_temp.running(name, pg_temp.mortal('{}', '{"taskQueueId": "test/q", "$group": "sealed"}')) FROM unnest('{s1,s2}'::text[]) AS name;
SELECT tq.seal_task_group(pg_temp.id('sealed'));
SELECT pg_temp.running('z', pg_temp.mortal('{}', '{"taskQueueId": "test/q"}'));
SELECT tq.resolve(pg_temp.ids('s1', 's2', 'z'), '{0,0,0}', 'failed');
SELECT is((SELECT array_agg(task #>> '{metadata,name}') FROM tq.list_dead_letters('test/q')), '{s1,s2,z}', 'the first are refused');
SET tq.clock_offset = '61 minutes';
SET client_min_messages = error;
SELECT is(tq.redrive_queue('test/q', 1), 1::bigint, 'the next ones of that time are tried');
SET client_min_messages = warning;
SELECT is(pg_temp.letters('test/q'), 's1 failed, s2 failed', 'and redriven');
ROLLBACK TO s;

-- the limit of runs
SET tq.max_runs = 2;
SELECT pg_temp.running(name, pg_temp.mortal('{"retries": 0}', '{"taskQueueId": "test/q"}')) FROM unnest('{full,room}'::text[]) AS name;
SELECT pg_temp.report('full', 'failed');
SELECT tq.redrive(pg_temp.id('full'));
SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('test/q', 'wg', 'w');
SELECT pg_temp.report('room', 'failed');
SET client_min_messages = error;
SELECT is(tq.redrive_queue('test/q'), 1::bigint, 'a task that has all its runs is skipped');
SET client_min_messages = warning;
SELECT is(pg_temp.letters('test/q'), 'full failed', 'and keeps its letter');
ROLLBACK TO s;

-- more than one call redrives: none is left out
SELECT tq.enqueue_tasks('test/bulk', array_fill('{}'::jsonb, ARRAY[1200]), policy => '{"deadLetter": true}', deadline => '1 hour');
SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'failed') FROM tq.claim_work('test/bulk', 'wg', 'w', 1000);
SELECT tq.resolve(array_agg(task_id), array_agg(run_id), 'failed') FROM tq.claim_work('test/bulk', 'wg', 'w', 1000);
SELECT is((SELECT count(*) FROM tq_internal.dead_letter), 1200::bigint, '1200 letters');
SELECT is(tq.redrive_queue('test/bulk'), 1000::bigint, 'by default 1000 are redriven');
SET tq.clock_offset = '61 minutes';
SELECT is(tq.redrive_queue('test/bulk', 1000), 200::bigint, 'then the rest, past its deadline');
SELECT is((SELECT count(*) FROM tq_internal.task), 1400::bigint, 'as new tasks');
SELECT is((SELECT count(DISTINCT tq.task(task_id) #>> '{extra,redriveOf}') FROM tq_internal.task), 200::bigint, 'one for each');
ROLLBACK TO s;

-- arguments
SELECT pg_temp.throws(query, 'TQ400', query) FROM unnest(ARRAY[
	$$SELECT tq.redrive(NULL)$$, $$SELECT tq.discard_dead_letter(NULL)$$,
	$$SELECT tq.redrive_queue(NULL)$$, $$SELECT tq.redrive_queue('test/')$$, $$SELECT tq.redrive_queue('')$$,
	$$SELECT tq.redrive_queue('test/q', NULL)$$, $$SELECT tq.redrive_queue('test/q', 0)$$, $$SELECT tq.redrive_queue('test/q', -1)$$,
	$$SELECT tq.redrive_queue('test/q', 1001)$$,
	$$SELECT * FROM tq.list_dead_letters(NULL)$$, $$SELECT * FROM tq.list_dead_letters('test/')$$,
	$$SELECT * FROM tq.list_dead_letters('test/q', NULL, 0)$$, $$SELECT * FROM tq.list_dead_letters('test/q', NULL, 1001)$$,
	$$SELECT * FROM tq.list_dead_letters('test/q', NULL, NULL)$$]) AS query;
SELECT pg_temp.throws($$SELECT tq.redrive('x')$$, '22P02', 'a text that is not a slugid');

-- ---------------------------------------------------------------------------
-- list_dead_letters()
-- ---------------------------------------------------------------------------

SELECT pg_temp.die_in_turn('{k,m,c,x,a,t,g}');
SELECT pg_temp.die('elsewhere');
CREATE TEMP TABLE listed ON COMMIT DROP AS SELECT ordinality AS n, task_id FROM tq.list_dead_letters('test/q')
	WITH ORDINALITY AS l;
SELECT is((SELECT string_agg(task_id::text, ' ' ORDER BY n) FROM listed), (SELECT string_agg(task_id::text, ' ' ORDER BY task_id) FROM listed), 'letters are listed by task id');
SELECT is((SELECT count(*) FROM listed), 7::bigint, 'those of the queue');
SELECT is((SELECT string_agg(task_id::text, ' ') FROM tq.list_dead_letters('test/q', NULL, 3)), (SELECT string_agg(task_id::text, ' ' ORDER BY n) FROM listed WHERE n <= 3), 'a first page');
SELECT is((SELECT string_agg(l.task_id::text, ' ') FROM tq.list_dead_letters('test/q', (SELECT task_id FROM listed WHERE n = 3), 3) AS l),
	(SELECT string_agg(task_id::text, ' ' ORDER BY n) FROM listed WHERE n BETWEEN 4 AND 6), 'the next, after the last id seen');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q', (SELECT task_id FROM listed WHERE n = 6), 3)), 1::bigint, 'the last one is shorter');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q', (SELECT task_id FROM listed WHERE n = 7))), 0::bigint, 'and after it there are none');
SELECT tq.discard_dead_letter(task_id) FROM listed WHERE n = 3;
SELECT is((SELECT string_agg(l.task_id::text, ' ') FROM tq.list_dead_letters('test/q', (SELECT task_id FROM listed WHERE n = 3), 1) AS l),
	(SELECT task_id::text FROM listed WHERE n = 4), 'a page can begin after a deleted id');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/unknown')), 0::bigint, 'an unknown queue has none');

SELECT * FROM finish();
ROLLBACK;
