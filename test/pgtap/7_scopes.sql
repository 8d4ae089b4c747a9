-- doc/spec/taskcluster.md 7: every function with every set of scopes that matters.
BEGIN;
\ir helper.psql
\ir ../calls.sql

CREATE ROLE scoped LOGIN;	-- as the owner of a recurring task must
CREATE ROLE admin IN ROLE tq_admin;

-- ---------------------------------------------------------------------------
-- 7.1 satisfaction
-- ---------------------------------------------------------------------------

SELECT is(tq_internal.satisfies(ARRAY[have], required), expected, format('7.1 %L for %L', have, required))
FROM (VALUES
	('a:b', 'a:b', true), ('a:b', 'a:bc', false), ('a:bc', 'a:b', false), ('a:B', 'a:b', false),
	('a:*', 'a:b', true), ('a:*', 'a:', true), ('a:*', 'a', false), ('*', 'a', true), ('*', '', true),
	('abc:*', 'abc:*', true), ('ab*', 'abc:*', true), ('abc:x', 'abc:*', false),
	('a:*:c', 'a:b:c', false), ('a:*:c', 'a:*:c', true)) AS v (have, required, expected);
SELECT is(tq_internal.satisfies('{}', 'a'), false, '7.1 no scope satisfies nothing');
SELECT is(tq_internal.satisfies('{b,a*}', 'ab'), true, '7.1 any of several');

-- ---------------------------------------------------------------------------
-- 7.2 what each function requires
-- ---------------------------------------------------------------------------

-- A task in each state: p pending, r running, c completed, u unscheduled, d dead, s of the
-- sealed group gs, all of queue test/q.  No pg_cron: that is in another database.
SET cron.database_name = 'elsewhere';
SELECT pg_temp.reach_all('test/q') \g /dev/null
SELECT tq.claim_work('test/other', 'g', 'w'), tq.declare_worker('test/q', 'g', 'w', now() + interval '1 day'),
	tq.subscribe('two', 'task-defined', 'route.a'), tq.subscribe('two', 'task-defined', 'route.b'), tq.subscribe('two', 'task-failed') \g /dev/null
SELECT tq.create_artifact(pg_temp.id('r'), 0, name, jsonb_build_object('expires', now() + interval '1 minute') || more::jsonb)
FROM (VALUES ('inline', '{"storageType": "inline", "contentType": "text/plain", "content": "x"}'),
	('link', '{"storageType": "link", "artifact": "inline", "contentType": "text/plain"}')) AS v (name, more) \g /dev/null
UPDATE tq_internal.cron SET role = 'scoped';

-- A row for each way of calling a function.  needs: the sets of scopes each of
-- which is enough.  First the samples of src/sql/functions, but those that are tested
-- elsewhere: what ends the transaction, what needs a commit (sql/scope.sql), credentials
-- (5.7_credentials.sql), and what only the owner may call.
CREATE TEMP TABLE rule (fn text, call text, needs jsonb);
INSERT INTO rule SELECT name, call, needs FROM pg_temp.samples('test/q') WHERE needs IS NOT NULL;
UPDATE rule SET call = format('SELECT 1 / (SELECT count(*) FROM (%s) AS r WHERE r::text ~ ''resolved'')', call) WHERE fn IN ('resolve', 'resolve_lines');

SELECT is(array(SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = 'tq'::regnamespace
		AND p.proname NOT IN (SELECT name FROM call) ORDER BY 1), '{}', '7.2 every function is in the table');
SELECT is(array(SELECT name FROM call WHERE name NOT IN (SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = schema::regnamespace) ORDER BY 1), '{}', '7.2 and nothing else');
SELECT is(array(SELECT fn FROM call JOIN pg_proc ON pronamespace = schema::regnamespace AND proname = name
		WHERE name NOT IN (SELECT fn FROM rule) AND prokind <> 'p' AND state NOT IN ('claimed', 'published') AND needs IS NOT NULL), '{}', '7.2 nor is another one tested elsewhere');

-- Then others.  <x> is the id of task or group x, DEF a definition.
INSERT INTO rule VALUES
	-- tasks
	('create_task', $$SELECT tq.create_task('<new>', DEF)$$, '[["queue:create-task:project:proj", "queue:scheduler-id:sched", "queue:create-task:low:test/q"],
		["queue:create-task:project:proj", "queue:scheduler-id:sched", "queue:create-task:highest:test/q"]]'),
	('create_task', $$SELECT tq.create_task('<new>', DEF || '{"scopes": ["mine:*", "xy"], "routes": ["r.1"]}')$$,
		'[["mine:*", "xy", "queue:route:r.1", "queue:create-task:project:proj", "queue:scheduler-id:sched", "queue:create-task:low:test/q"]]'),
	('create_tasks', $$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', '<new>', 'task', DEF),
		jsonb_build_object('taskId', '<new2>', 'task', DEF || '{"taskQueueId": "test/q2"}')))$$,
		'[["queue:create-task:project:proj", "queue:scheduler-id:sched", "queue:create-task:low:test/q", "queue:create-task:high:test/q2"]]'),
	('define_task', $$SELECT tq.define_task('<new>', DEF)$$, '[["queue:scheduler-id:sched", "queue:create-task:low:test/q"]]'),
	('enqueue', $$SELECT tq.enqueue('test/q')$$, '[["queue:create-task:project:none", "queue:scheduler-id:-", "queue:create-task:lowest:test/q"]]'),
	('enqueue', $$SELECT tq.enqueue('test/q', scopes => '{xy}', routes => '{r}')$$,
		'[["xy", "queue:route:r", "queue:create-task:project:none", "queue:scheduler-id:-", "queue:create-task:lowest:test/q"]]'),
	('enqueue_tasks', $$SELECT tq.enqueue_tasks('test/q', '{"{}","{}"}')$$,
		'[["queue:create-task:project:none", "queue:scheduler-id:-", "queue:create-task:very-low:test/q"]]'),
	('schedule_cron', $$SELECT tq.schedule_cron('cr2', '* * * * *', 'test/q')$$, '[["queue:schedule-cron:cr2", "queue:create-task:project:none", "queue:scheduler-id:-", "queue:create-task:lowest:test/q"], ["queue:schedule-cron-in-queue:test/q", "queue:create-task:project:none", "queue:scheduler-id:-", "queue:create-task:lowest:test/q"]]'),
	('tasks', $$SELECT tq.tasks('{<p>,<r>}')$$, '[["queue:get-task:<p>", "queue:get-task:<r>"], ["queue:get-task-in-queue:test/q"]]'),
	('statuses', $$SELECT tq.statuses('{<p>,<r>,<missing>}')$$,
		'[["queue:status:<p>", "queue:status:<r>", "queue:status:<missing>"], ["queue:status-in-queue:test/q", "queue:status:<missing>"]]'),
	-- workers
	('claim_work', $$SELECT tq.claim_work('{test/q,test/other}'::text[], 'g', 'w')$$, '[["queue:claim-work:test/q", "queue:claim-work:test/other", "queue:worker-id:g/w"]]'),
	('claim_work', $$SELECT tq.claim_work('{test/*}'::text[], 'g', 'w')$$, '[["queue:claim-work:test/*", "queue:worker-id:g/w"]]'),
	('claim_lines', $$SELECT tq_internal.claim_lines('{test/q,test/other}'::text[], 'g', 'w')$$, '[["queue:claim-work:test/q", "queue:claim-work:test/other", "queue:worker-id:g/w"]]'),
	('claim_lines', $$SELECT tq_internal.claim_lines('{test/*}'::text[], 'g', 'w')$$, '[["queue:claim-work:test/*", "queue:worker-id:g/w"]]'),
	('declare_worker', $$SELECT tq.declare_worker('test/q', 'g', 'w', '2000-01-01')$$, '[["queue:declare-worker:test/q/g/w#expires"]]'),
	('quarantine_worker', $$SELECT tq.quarantine_worker('test/q', 'g', 'w', '2000-01-01')$$, '[["queue:quarantine-worker:test/q/g/w"]]'),
	('report_exception', $$SELECT tq.report_exception('<r>', 0, 'internal-error')$$, '[["queue:resolve-task:<r>/0"], ["queue:resolve-task-in-queue:test/q"]]'),
	('report_completed', $$SELECT tq.report_completed('<c>', 0, result => '"secret"')$$, '[["queue:resolve-task:<c>/0"], ["queue:resolve-task-in-queue:test/q"]]'),	-- a repeat sends its messages again
	('resolve_and_claim', $$SELECT tq.resolve_and_claim('[]', 'test/q', 'g', 'w')$$, '[["queue:claim-work:test/q", "queue:worker-id:g/w"]]'),
	-- artifacts
	('create_artifact', $$SELECT tq.create_artifact('<r>', 0, 'new', jsonb_build_object('storageType', 'reference', 'url', 'https://example.com/', 'contentType', 'text/plain',
		'expires', now() + interval '1 minute'))$$, '[["queue:create-artifact:<r>/0"], ["queue:create-artifact-in-queue:test/q"]]'),
	('get_artifact', $$SELECT tq.get_artifact('<r>', 0, 'link')$$, '[["queue:get-artifact:link", "queue:get-artifact:inline"]]'),
	('get_latest_artifact', $$SELECT tq.get_latest_artifact('<r>', 'inline')$$, '[["queue:get-artifact:inline"]]'),
	-- messages
	('messages', $$SELECT tq.messages()$$, '[["queue:read-messages:*"]]'),
	('fetch', $$SELECT tq.fetch('two')$$, '[["queue:subscribe:two", "queue:read-messages:task-defined", "queue:read-messages:task-failed"]]');

-- Replaces <x> by the id of x, and DEF by a definition.
CREATE FUNCTION pg_temp.fill(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT DISTINCT m[1] FROM regexp_matches(t, '<(\w+)>', 'g') AS m LOOP
		t := replace(t, '<' || name || '>', pg_temp.id(name)::text);
	END LOOP;
	RETURN replace(t, 'DEF', quote_literal(pg_temp.def('new', '{"taskQueueId": "test/q", "schedulerId": "sched", "projectId": "proj", "priority": "low"}')) || '::jsonb');
END $$;
UPDATE rule SET call = pg_temp.fill(call), needs = pg_temp.fill(needs::text)::jsonb;

-- The SQLSTATE of a call by a role with these scopes; undone afterwards.  A
-- division by zero is the outcome forbidden of resolve().
-- How many rows a query about three tasks, of which one does not exist, has with these scopes.
CREATE FUNCTION pg_temp.seen(call text, scopes text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n text;
BEGIN
	PERFORM tq.grant_scopes('scoped', scopes::text[]);
	SET LOCAL ROLE scoped;
	EXECUTE format('SELECT count(*) FROM (%s) AS s', format(call, pg_temp.ids('p', 'r', 'missing'))) INTO n;
	RAISE EXCEPTION USING ERRCODE = 'XXOK1', MESSAGE = n;
EXCEPTION WHEN OTHERS THEN
	RETURN CASE SQLSTATE WHEN 'XXOK1' THEN SQLERRM ELSE SQLSTATE END;
END $$;
CREATE FUNCTION pg_temp.missing() RETURNS text[] LANGUAGE sql AS $$ SELECT array_agg(pg_temp.id(n)::text) FROM unnest('{missing,gmissing}'::text[]) AS n $$;
-- A task that the caller may not see is one that does not exist: that is refused, too.
CREATE FUNCTION pg_temp.attempt(call text, scopes text[], caller name DEFAULT 'scoped') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	IF scopes <> '{}' THEN
		PERFORM tq.grant_scopes('scoped', scopes);
	END IF;
	EXECUTE format('SET LOCAL ROLE %I', caller);
	EXECUTE call;
	RAISE EXCEPTION USING ERRCODE = 'ALLOW';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	IF call !~ ALL (pg_temp.missing()) AND (detail ~ 'no right to see it|the task was never created' OR SQLERRM ~ 'has no dead letter') THEN
		RETURN 'TQ403';
	END IF;
	RETURN replace(SQLSTATE, '22012', 'TQ403');
END $$;

-- Each set, each with one scope missing, and with one that is too long, too
-- short, or a prefix with a star.
CREATE TEMP VIEW trial AS
	WITH one AS (
		SELECT r.fn, r.call, r.needs, array(SELECT jsonb_array_elements_text(n.need)) AS need
		FROM rule AS r, jsonb_array_elements(r.needs) AS n (need)
	)
	SELECT fn, call, need AS scopes, 'ALLOW' AS expected, 'exact ' || need::text AS what FROM one
	UNION ALL
	SELECT DISTINCT fn, call, '{}'::text[], 'TQ403', 'no scope' FROM one WHERE need <> '{}'
	UNION ALL
	SELECT fn, call, array_remove(need, s), 'TQ403', 'without ' || s FROM one, unnest(need) AS s WHERE cardinality(need) > 1
	UNION ALL
	SELECT fn, call, array_replace(need, s, s || 'x'), 'TQ403', 'longer than ' || s FROM one, unnest(need) AS s WHERE s <> '*'
	UNION ALL
	SELECT fn, call, array_replace(need, s, left(s, -1)), 'TQ403', 'shorter than ' || s FROM one, unnest(need) AS s WHERE s <> '*'
	UNION ALL
	SELECT fn, call, array_replace(need, s, upper(s)), 'TQ403', 'upper case of ' || s FROM one, unnest(need) AS s WHERE s <> upper(s)
	UNION ALL
	SELECT fn, call, array_replace(need, s, left(s, -1) || '*'), 'ALLOW', 'star for the end of ' || s FROM one, unnest(need) AS s
	UNION ALL
	SELECT DISTINCT fn, call, '{*}'::text[], 'ALLOW', 'star' FROM one;
SELECT is(pg_temp.attempt(call, scopes), expected, format('7.2 %s: %s', fn, what)) FROM trial WHERE NOT (fn IN ('statuses', 'tasks') AND expected = 'TQ403') ORDER BY fn, call, what;
-- A list leaves out what the caller may not see.
SELECT is((SELECT pg_temp.seen(call, scopes)), expected, format('7.2 %s with %s', call, scopes)) FROM (VALUES
	('SELECT task_id FROM tq.statuses(%L)', '{}', '0'), ('SELECT task_id FROM tq.statuses(%L)', '{queue:status-in-queue:test/q}', '2'), ('SELECT task_id FROM tq.statuses(%L)', '{queue:status:*}', '2'),
	('SELECT task_id FROM tq.tasks(%L)', '{}', '0'), ('SELECT task_id FROM tq.tasks(%L)', '{queue:get-task-in-queue:test/q}', '2'), ('SELECT task_id FROM tq.tasks(%L)', '{queue:status-in-queue:test/q}', 'TQ403')) AS v (call, scopes, expected);
SELECT is(pg_temp.attempt(call, '{}', 'admin'), CASE WHEN call ~ 'cron.*''cr''' THEN 'TQ404' ELSE 'ALLOW' END,	-- it has no recurring task of that name
	format('7.2 %s: member of tq_admin', fn)) FROM rule ORDER BY fn, call;

-- ---------------------------------------------------------------------------
-- 2.0 order of errors
-- ---------------------------------------------------------------------------

-- 404 before 403: what needs fields of the task
SELECT is(pg_temp.attempt(pg_temp.fill(call), '{}'), 'TQ404', '2.0 not found before forbidden: ' || call)
FROM unnest(ARRAY[$$SELECT tq.schedule_task('<missing>')$$, $$SELECT tq.rerun_task('<missing>')$$, $$SELECT tq.cancel_task('<missing>')$$, $$SELECT tq.skip_task('<missing>')$$,
	$$SELECT tq.delete_task('<missing>')$$, $$SELECT tq.seal_task_group('<missing>')$$, $$SELECT tq.cancel_task_group('<missing>')$$, $$SELECT tq.retry_task_group('<missing>')$$, $$SELECT tq.change_task_priority('<missing>', 'low')$$,
	$$SELECT tq.change_task_group_priority('<missing>', 'low')$$, $$SELECT tq.claim_task('<missing>', 0, 'g', 'w')$$, $$SELECT tq.reclaim_task('<missing>', 0)$$, $$SELECT tq.status('<missing>')$$, $$SELECT tq.task('<missing>')$$, $$SELECT tq.result('<missing>')$$, $$SELECT tq.why('<missing>')$$, $$SELECT tq.get_task_group('<missing>')$$, $$SELECT tq.list_dependent_tasks('<missing>')$$,
	$$SELECT tq.report_completed('<missing>', 0)$$, $$SELECT tq.report_exception('<missing>', 0, 'internal-error')$$,
	$$SELECT tq.defer_task('<missing>', 0, '0')$$, $$SELECT tq.report_progress('<missing>', 0, 1, 2)$$, $$SELECT tq.redrive('<missing>')$$, $$SELECT tq.discard_dead_letter('<missing>')$$]) AS call;
-- 403 first: what the arguments say
SELECT is(pg_temp.attempt(pg_temp.fill(call), '{}'), 'TQ403', '2.0 forbidden before not found: ' || call)
FROM unnest(ARRAY[$$SELECT tq.reclaim_task('<p>', 1)$$, $$SELECT tq.report_progress('<p>', 1, 1, 2)$$, $$SELECT tq.get_worker('no/such', 'g', 'w')$$, $$SELECT tq.get_task_queue('no/such')$$, $$SELECT tq.get_latest_artifact('<missing>', 'x')$$,
	$$SELECT tq.list_artifacts('<missing>', 0)$$]) AS call;
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.report_completed('<p>', 0)$$), '{queue:status:*}'), 'TQ409', '2.11 a run that is not running: conflict before forbidden');
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.report_failed('<c>', 0)$$), '{queue:status:*}'), 'TQ409', '2.11 a run that ended otherwise: conflict before forbidden');
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.report_exception('<p>', 0, 'internal-error')$$), '{}'), 'TQ403', '2.12 forbidden before the state of the run');
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.reclaim_task('<p>', 0)$$), '{}'), 'TQ403', '2.10 forbidden before the state of the run');
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.cancel_task_group('<gp>')$$), '{queue:list-task-group:*}'), 'TQ409', '2.6 a group that is not sealed: conflict before forbidden');
-- what becomes unscheduled downstream
SELECT pg_temp.create('up', '{"taskQueueId": "test/up", "$group": "mine"}'), pg_temp.create('down', '{"taskQueueId": "test/down", "$deps": ["up"], "$group": "theirs"}'), pg_temp.create('near', '{"taskQueueId": "test/down", "$deps": ["up"], "$group": "mine"}') \g /dev/null
SELECT pg_temp.take('up'), pg_temp.report('up', 'failed'), pg_temp.report('near', 'canceled') \g /dev/null
SELECT is(pg_temp.attempt(format('SELECT tq.retry_task_group(%L)', pg_temp.id('mine')), ARRAY['queue:retry-task-group:-/' || pg_temp.id('mine')]), 'ALLOW', '2.20 the group is enough for its own tasks');
SELECT pg_temp.report('down', 'canceled') \g /dev/null
SELECT is(pg_temp.attempt(format('SELECT tq.retry_task_group(%L)', pg_temp.id('mine')), ARRAY['queue:retry-task-group:-/' || pg_temp.id('mine')]), 'ALLOW', '2.20 and for none of another');
SELECT is(pg_temp.state('down'), 'exception', '2.4 (8) which stays as it is');
SELECT is(pg_temp.attempt(format('SELECT tq.retry_task_group(%L)', pg_temp.id('mine')), ARRAY['queue:retry-task-group:-/' || pg_temp.id('mine'), 'queue:rerun-task-in-queue:test/down']), 'ALLOW', '2.20 with those of rerun_task, they are repaired');
SELECT is(pg_temp.attempt(format('SELECT tq.rerun_task(%L, downstream => true)', pg_temp.id('up')), '{queue:rerun-task-in-queue:test/up}'), 'ALLOW', '2.4 downstream: dependents without them stay');
SELECT is(pg_temp.attempt(format('SELECT tq.rerun_task(%L, downstream => true)', pg_temp.id('up')), '{queue:rerun-task-in-queue:test/up,queue:rerun-task-in-queue:test/down}'), 'ALLOW', '2.4 downstream: with all of them');
SELECT is(pg_temp.attempt(format('SELECT tq.rerun_task(%L)', pg_temp.id('up')), '{queue:rerun-task-in-queue:test/up}'), 'ALLOW', '2.4 without downstream the task is enough');
SELECT pg_temp.create('up2', '{"taskQueueId": "test/up2", "$group": "mine2"}'), pg_temp.create('down2', '{"taskQueueId": "test/down2", "$deps": ["up2"], "$group": "theirs2"}') \g /dev/null
SELECT pg_temp.take('up2'), pg_temp.report('up2', 'failed') \g /dev/null
SELECT is(pg_temp.attempt(format('SELECT tq.rerun_task(%L, downstream => true)', pg_temp.id('up2')), '{queue:rerun-task-in-queue:test/up2}'), 'ALLOW', '2.4 downstream: not for one that waits as before');
SELECT is(pg_temp.attempt(format('SELECT tq.rerun_task(%L, ''5 days'', true)', pg_temp.id('up2')), '{queue:rerun-task-in-queue:test/up2}'), 'ALLOW', '2.4 downstream: it gets no new deadline');
SELECT is(pg_temp.attempt(pg_temp.fill($$SELECT tq.create_artifact('<missing>', 0, 'x', jsonb_build_object('storageType', 'reference', 'url', 'https://example.com/', 'contentType', 'a/b', 'expires', now()))$$), '{}'),
	'TQ400', '2.15 no such task: bad input before forbidden');
SELECT is(pg_temp.attempt($$SELECT tq.enqueue('test/q', retries => 50)$$, '{}'), 'TQ400', '2.1 bad input before forbidden');
SELECT is(pg_temp.attempt($$SELECT tq.enqueue('test/q', deadline => '100 days')$$, '{}'), 'TQ403', '2.1 forbidden before the dates');

-- ---------------------------------------------------------------------------
-- Roles
-- ---------------------------------------------------------------------------

CREATE ROLE app IN ROLE scoped;
CREATE ROLE aloof NOINHERIT IN ROLE scoped;
CREATE FUNCTION pg_temp.scopes(caller name) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', caller);
	answer := tq.current_scopes();
	RESET ROLE;
	RETURN answer;
END $$;
SELECT is(tq.current_scopes(), '{*}', '7 a superuser has every scope');
SELECT is(pg_temp.scopes('admin'), '{*}', '7 so has a member of tq_admin');
SELECT is(pg_temp.scopes('scoped'), '{}', '7 another role has none');
SELECT tq.grant_scopes('scoped', '{b:*,a,b:c}') \g /dev/null
SELECT is(pg_temp.scopes('scoped'), '{a,b:*}', '7 what was granted, without what it covers');
SELECT is(pg_temp.scopes('app'), '{a,b:*}', '7 a member has them too');
SELECT is(pg_temp.scopes('aloof'), '{}', '7 but not one that does not inherit');
SELECT tq.grant_scopes('app', '{c}') \g /dev/null
SELECT is(pg_temp.scopes('app'), '{a,b:*,c}', '7 and its own');
SELECT is(pg_temp.scopes('scoped'), '{a,b:*}', '7 which its role has not');
REVOKE scoped FROM app;
SELECT is(pg_temp.scopes('app'), '{c}', '7 a membership that ends');
GRANT scoped TO app;
SELECT is(pg_temp.scopes('app'), '{a,b:*,c}', '7 a membership that begins');
SELECT tq.revoke_scopes('scoped', '{b:*,nothing}') \g /dev/null
SELECT is(pg_temp.scopes('app'), '{a,b:c,c}', '7 a revoked scope does not cover others any more');
ALTER ROLE scoped RENAME TO renamed;
SELECT is(pg_temp.scopes('renamed'), '{a,b:c}', '7 a role that is renamed keeps its scopes');
ALTER ROLE renamed RENAME TO scoped;
ALTER ROLE app SUPERUSER;
SELECT is(pg_temp.scopes('app'), '{*}', '7 a role that becomes a superuser');
ALTER ROLE app NOSUPERUSER;
SELECT is(pg_temp.scopes('app'), '{a,b:c,c}', '7 and is one no longer');

-- A rollback takes back grants that the session has used.
SAVEPOINT s;
SELECT tq.grant_scopes('app', '{*}') \g /dev/null
SELECT is(pg_temp.scopes('app'), '{*}', '7 star');
ROLLBACK TO s;
SELECT is(pg_temp.scopes('app'), '{a,b:c,c}', '7 a grant that is rolled back');

-- By SQL, as a restore writes.
INSERT INTO tq_internal.scope_grant VALUES ('app', 'd');
SELECT is(pg_temp.scopes('app'), '{a,b:c,c,d}', '7 a row that is inserted');
DELETE FROM tq_internal.scope_grant WHERE role = 'app'::regrole AND scope = 'd';
SELECT is(pg_temp.scopes('app'), '{a,b:c,c}', '7 a row that is deleted');

-- A function of another role
CREATE FUNCTION public.by_definer() RETURNS text[] LANGUAGE sql SECURITY DEFINER AS $$ SELECT tq.current_scopes() $$;
ALTER FUNCTION public.by_definer() OWNER TO app;
SET LOCAL ROLE scoped;
SELECT is(public.by_definer(), '{a,b:c,c}', '7 SECURITY DEFINER: the scopes of its owner');
RESET ROLE;

-- Dropped roles
SELECT tq.grant_scopes('aloof', '{x}') \g /dev/null
DROP ROLE aloof;
SELECT is((SELECT count(*) FROM tq_internal.scope_grant AS g WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = g.role)), 1::bigint, '7 a dropped role leaves a row');
SELECT tq.upkeep() \g /dev/null
SELECT is((SELECT count(*) FROM tq_internal.scope_grant AS g WHERE NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = g.role)), 0::bigint, '7 which maintenance deletes');

-- Bad input
SELECT is(pg_temp.attempt(call, '{}', current_user), 'TQ400', '7 ' || left(call, 60))
FROM unnest(ARRAY[$$SELECT tq.grant_scopes('scoped', '{""}')$$, $$SELECT tq.grant_scopes('scoped', ARRAY[E'a\nb'])$$, $$SELECT tq.grant_scopes('scoped', '{ä}')$$,
	$$SELECT tq.grant_scopes('scoped', '{a**}')$$, $$SELECT tq.grant_scopes('scoped', ARRAY[repeat('a', 1501)])$$, $$SELECT tq.grant_scopes('scoped', array_fill('a'::text, '{1001}'))$$,
	$$SELECT tq.grant_scopes('-', '{a}')$$, $$SELECT tq.grant_scopes(1234567890::regrole, '{a}')$$, $$SELECT tq.grant_queue('scoped', 'test/', 'read')$$,
	$$SELECT tq.grant_queue('scoped', 'te.st*', 'read')$$, $$SELECT tq.grant_queue('scoped', 'a/b/*', 'read')$$, $$SELECT tq.grant_queue('scoped', 'test/*', 'own')$$]) AS call;
SELECT is(pg_temp.attempt($$SELECT tq.grant_scopes('scoped', ARRAY[repeat('a', 1500)])$$, '{}', current_user), 'ALLOW', '7 the longest scope');
SELECT is(pg_temp.attempt($$SELECT tq.revoke_scopes('tq_worker', '{queue:claim-work:*}')$$, '{}', current_user), 'TQ409', '7 a scope that a role has by the extension');

-- ---------------------------------------------------------------------------
-- The roles of tq, and the rights to queues
-- ---------------------------------------------------------------------------

CREATE ROLE producer IN ROLE tq_producer;
CREATE ROLE worker IN ROLE tq_worker;
CREATE ROLE reader IN ROLE tq_reader;
CREATE ROLE monitor IN ROLE pg_monitor;
CREATE TEMP TABLE held (who name, fns text[]);
INSERT INTO held VALUES
	('producer', '{create_task,create_tasks,define_task,enqueue,enqueue_tasks,on_group_resolved,schedule_task,status,statuses,result,why,get_task_group,seal_task_group,pending_tasks,list_dependent_tasks}'),
	('worker', '{claim_work,claim_lines,claim_task,reclaim_task,report_completed,report_failed,report_exception,resolve,resolve_lines,resolve_and_claim,defer_task,report_progress,create_artifact,finish_artifact,get_artifact,task,status,dependency_results,declare_worker}'),
	('reader', '{status,statuses,task,tasks,result,why,list_task_group,group_progress,group_mermaid,group_dot,group_graph,group_tree,group_gantt,report_html,get_artifact,list_artifacts,messages,task_queue_counts,list_pending_tasks,list_workers,get_worker,health,top}'),
	('monitor', '{health,top,task_queue_counts,list_task_queues,get_task_queue,list_workers}');
SELECT is(pg_temp.attempt(r.call, '{}', h.who), 'ALLOW', format('%s may call %s', h.who, r.fn))
FROM held AS h, unnest(h.fns) AS fn JOIN rule AS r ON r.fn = fn.fn
WHERE r.call !~ 'mine:|scopes' ORDER BY h.who, r.fn;
SELECT is(pg_temp.attempt(r.call, '{}', h.who), 'TQ403', format('%s may not call %s', h.who, r.fn))
FROM (VALUES ('producer', '{cancel_task,rerun_task,skip_task,delete_task,purge,claim_work,report_completed,task,get_worker,messages,upkeep,grant_scopes,health,redrive}'::text[]),
	('worker', '{enqueue,cancel_task,rerun_task,delete_task,quarantine_worker,messages,upkeep,grant_scopes,seal_task_group,redrive}'),
	('reader', '{enqueue,cancel_task,claim_work,report_completed,seal_task_group,bind,subscribe,upkeep,reset_queue_stats,grant_scopes,redrive,create_artifact,declare_worker}'),
	('monitor', '{enqueue,status,task,result,why,list_dead_letters,get_artifact,messages,list_pending_tasks,get_worker,upkeep,grant_queue}')) AS h (who, fns),
	unnest(h.fns) AS fn JOIN rule AS r ON r.fn = fn.fn ORDER BY h.who, r.fn;

-- Rights to the queues test/*: what they allow there, and nothing elsewhere.
CREATE TEMP TABLE kind (access text, fns text[]);
INSERT INTO kind VALUES
	('produce', '{create_task,create_tasks,define_task,enqueue,enqueue_tasks,schedule_cron,unschedule_cron,pause_cron,resume_cron,run_cron_now,fire_cron,schedule_task,status,task,result,pending_tasks,get_task_group,list_task_group,group_progress,group_tree,group_dot,group_graph,group_mermaid,group_gantt,report_html,seal_task_group,on_group_resolved,cancel_group_callbacks,get_artifact,get_latest_artifact,list_artifacts,list_latest_artifacts,artifact_info,latest_artifact_info}'),
	('work', '{claim_work,claim_lines,claim_task,reclaim_task,report_completed,report_failed,report_exception,resolve,resolve_lines,resolve_and_claim,defer_task,report_progress,create_artifact,finish_artifact,status,task,dependency_results,declare_worker,get_artifact,get_latest_artifact,list_artifacts,list_latest_artifacts,artifact_info,latest_artifact_info}'),
	('read', '{status,task,tasks,result,why,task_queue_counts,list_pending_tasks,list_claimed_tasks,get_task_queue,list_workers,get_worker,get_task_group,list_task_group,group_progress,group_tree,group_dot,group_graph,group_mermaid,group_gantt,report_html,get_artifact,list_artifacts,artifact_info}'),
	('manage', '{status,task,schedule_task,add_dependencies,rerun_task,reschedule_task,cancel_task,skip_task,delete_task,change_task_priority,purge,list_dead_letters,redrive,redrive_queue,discard_dead_letter,quarantine_worker,worker_removed,get_worker,set_queue,pause_queue,resume_queue,get_task_group,list_task_group,seal_task_group,cancel_task_group,retry_task_group,change_task_group_priority,get_artifact}');
CREATE FUNCTION pg_temp.attempt_on(call text, queues text, access text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.grant_queue('scoped', queues, access);
	-- A schedulerId is no part of an access.
	RETURN pg_temp.attempt(call, '{queue:scheduler-id:sched}');
END $$;
CREATE TEMP VIEW of_kind AS
	SELECT k.access, k.fns, r.fn, r.call FROM kind AS k, rule AS r
	WHERE r.call !~ 'mine:|scopes|read-messages';
SAVEPOINT queues;
SELECT is(pg_temp.attempt_on(call, 'other/*', access), 'TQ403', format('%s of other queues: not %s', access, fn))
FROM of_kind WHERE fn = ANY (fns) AND fn NOT IN ('statuses', 'tasks') ORDER BY access, fn, call;
ROLLBACK TO queues;
SELECT is(pg_temp.attempt_on(call, 'test/*', access), 'ALLOW', format('%s of test/*: %s', access, fn))
FROM of_kind WHERE fn = ANY (fns) AND access = 'produce' ORDER BY fn, call;
ROLLBACK TO queues;
SELECT is(pg_temp.attempt_on(call, 'test/*', access), 'ALLOW', format('%s of test/*: %s', access, fn))
FROM of_kind WHERE fn = ANY (fns) AND access = 'work' ORDER BY fn, call;
SELECT is(pg_temp.attempt_on(call, 'test/*', access), 'TQ403', format('%s of test/*: not %s', access, fn))
FROM of_kind WHERE fn IN ('enqueue', 'cancel_task', 'delete_task', 'purge', 'redrive', 'upkeep', 'grant_scopes') AND access = 'work' ORDER BY fn, call;
ROLLBACK TO queues;
SELECT is(pg_temp.attempt_on(call, 'test/*', access), 'ALLOW', format('%s of test/*: %s', access, fn))
FROM of_kind WHERE fn = ANY (fns) AND access = 'read' ORDER BY fn, call;
SELECT is(pg_temp.attempt_on(call, 'test/*', access), 'TQ403', format('%s of test/*: not %s', access, fn))
FROM of_kind WHERE fn IN ('enqueue', 'cancel_task', 'claim_work', 'report_completed', 'delete_task', 'purge', 'list_dead_letters') AND access = 'read' ORDER BY fn, call;
ROLLBACK TO queues;
SELECT is(pg_temp.attempt_on(call, 'test/q', access), 'ALLOW', format('%s of test/q: %s', access, fn))
FROM of_kind WHERE fn = ANY (fns) AND access = 'manage' ORDER BY fn, call;
SELECT is(pg_temp.attempt_on($$SELECT tq.purge('test/q2')$$, 'test/q', 'manage'), 'TQ403', 'manage of test/q: not test/q2');
SELECT tq.revoke_queue('scoped', 'test/q', 'manage') \g /dev/null
SELECT is(pg_temp.scopes('scoped'), '{a,b:c}', 'revoke_queue() takes back what grant_queue() gave');

SELECT * FROM finish();
ROLLBACK;
