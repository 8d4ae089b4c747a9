-- doc/spec/policy.md 15: recurring tasks, without pg_cron: what it calls is called here.
-- test/t/063_cron.pl has the real one.
BEGIN;
\ir policy.psql

CREATE ROLE app LOGIN;
CREATE ROLE member LOGIN IN ROLE app;
CREATE ROLE other LOGIN;
CREATE ROLE boss IN ROLE tq_admin;
SELECT tq.grant_queue('app', 'test/*', 'produce'), tq.grant_queue('other', 'test/*', 'produce') \g /dev/null

-- Ten seconds after the beginning of a minute, that many minutes from now.
CREATE FUNCTION pg_temp.minute(n int) RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT date_trunc('minute', now()) + interval '1 hour' + n * interval '1 minute'
$$;
CREATE FUNCTION pg_temp.at(n int) RETURNS text LANGUAGE sql AS $$
	SELECT set_config('tq.clock_offset', (pg_temp.minute(n) + interval '10 seconds' - clock_timestamp())::text, false)
$$;
CREATE FUNCTION pg_temp.payload(task_id tq.slugid) RETURNS jsonb LANGUAGE sql AS $$
	SELECT tq.task(task_id) -> 'payload'
$$;
CREATE FUNCTION pg_temp.states(queue text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(state, ' ' ORDER BY state), '') FROM tq.task_overview WHERE task_queue_id = queue
$$;

-- ---------------------------------------------------------------------------
-- Where pg_cron is
-- ---------------------------------------------------------------------------

SELECT pg_temp.throws($$SELECT tq.schedule_cron('a', '* * * * *', 'test/q')$$, '55000', '15.1 without pg_cron');
SELECT is(tq_internal.cron_time_zone(), NULL, '15.1 there is no time zone either');

-- A setting that no extension has defined stands for a pg_cron elsewhere.
SET cron.database_name = 'elsewhere';
SELECT is(command, format($$SELECT cron.schedule_in_database('tq:a', '* * * * *', 'SELECT tq_internal.fire_cron(''a'')', %L, %L)$$, current_database(), current_user), '15.1 in another database: the command')
FROM tq.schedule_cron('a', '* * * * *', 'test/a', '{"at": "$scheduled", "since": "$previous", "now": "$fired", "by": ["$name", {"$name": "$$scheduled"}, "$other", "x$name", 1, null]}');
SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, '15.1 nothing is created');

-- ---------------------------------------------------------------------------
-- One task for each minute
-- ---------------------------------------------------------------------------

SELECT pg_temp.at(0) \g /dev/null
SELECT tq_internal.fire_cron('a') AS a0 \gset
SELECT is(tq_internal.fire_cron('a'), :'a0', '15.3 twice in one minute: the same task');
SELECT is(pg_temp.states('test/a'), 'pending', '15.3 there is one');
SELECT is(pg_temp.payload(:'a0') ->> 'at', pg_temp.iso(pg_temp.minute(0)), '15.4 $scheduled is the minute');
SELECT is(pg_temp.payload(:'a0') ->> 'since', pg_temp.iso(created), '15.4 $previous is at first when it was scheduled')
FROM tq_internal.cron WHERE name = 'a';
SELECT ok((pg_temp.payload(:'a0') ->> 'now')::timestamptz BETWEEN pg_temp.minute(0) + interval '10 s' AND pg_temp.minute(1), '15.4 $fired is when');
SELECT is(pg_temp.payload(:'a0') -> 'by', '["a", {"$name": "$scheduled"}, "$other", "x$name", 1, null]', '15.4 whole strings only, and $$ is for one dollar sign');
SELECT is(tq.task(:'a0') #>> '{metadata,name}', 'a', '15.2 the task has the name');
SELECT pg_temp.at(1) \g /dev/null
SELECT tq_internal.fire_cron('a') AS a1 \gset
SELECT isnt(:'a1'::text, :'a0', '15.3 another minute, another task');
SELECT is(pg_temp.payload(:'a1') ->> 'since', pg_temp.iso(pg_temp.minute(0)), '15.4 $previous is the minute before');
SELECT is(tq_internal.fire_cron('a', pg_temp.minute(0)), :'a0', '15.3 a minute that is past: its task');
SELECT tq_internal.fire_cron('a', pg_temp.minute(-9)) AS back \gset
SELECT is(pg_temp.payload(:'back') ->> 'at', pg_temp.iso(pg_temp.minute(-9)), '15.5 one that was missed');
SELECT is(last_scheduled, pg_temp.minute(1), '15.5 which does not set the last one back') FROM tq.cron_overview WHERE name = 'a';
SELECT tq.delete_task(:'a1') \g /dev/null
SELECT is(tq_internal.fire_cron('a'), NULL, '15.3 a task that was deleted does not come back');
SELECT pg_temp.throws($$SELECT tq_internal.fire_cron('a', pg_temp.minute(2))$$, 'TQ400', '15.5 a time to come');
SELECT pg_temp.throws($$SELECT tq_internal.fire_cron('a', 'infinity')$$, 'TQ400', '15.5 infinity');
SELECT pg_temp.throws($$SELECT tq_internal.fire_cron('a', '-infinity')$$, 'TQ400', '15.5 minus infinity');
SELECT pg_temp.throws($$SELECT tq_internal.fire_cron('unknown')$$, 'TQ404', '15.3 one that does not exist');
SELECT isnt(tq.run_cron_now('a'), tq.run_cron_now('a'), '15.5 by hand: one for each call');
SELECT is(last_scheduled, pg_temp.minute(1), '15.5 apart from the schedule') FROM tq.cron_overview WHERE name = 'a';

-- The same, in seconds.
SELECT tq.schedule_cron('s', '30 Seconds', 'test/s', '{"at": "$scheduled"}') \g /dev/null
SELECT tq_internal.fire_cron('s', pg_temp.minute(0) + interval '7.9 s') AS s7 \gset
SELECT is(pg_temp.payload(:'s7') ->> 'at', pg_temp.iso(pg_temp.minute(0) + interval '7 s'), '15.3 in seconds: the second');
SELECT isnt(tq_internal.fire_cron('s', pg_temp.minute(0) + interval '8.1 s'), :'s7', '15.3 another second, another task');
SELECT is(tq_internal.fire_cron('s', pg_temp.minute(0) + interval '7 s'), :'s7', '15.3 the same second, the same task');

-- A row that is older than its tasks, as no restore of a whole database leaves it.
UPDATE tq_internal.cron SET last_scheduled = NULL, last_task = NULL WHERE name = 's';
SELECT is(tq_internal.fire_cron('s', pg_temp.minute(0) + interval '7 s'), :'s7', '15.3 the id of the task alone prevents a second one');

-- ---------------------------------------------------------------------------
-- Arguments
-- ---------------------------------------------------------------------------

SELECT lives_ok($$SELECT tq.schedule_cron('all', '0 6 * * *', 'test/all', '{}', task_group_id => pg_temp.id('g'), dependencies => '{}', requires => 'all-resolved', priority => 'high',
	retries => 3, deadline => '3 hours', expires => '1 month 2 days', delay => '90 seconds', routes => '{r.1}', scopes => '{xy}', tags => '{"a": "b''c"}',
	extra => '{"d": [1, "$name"]}', scheduler_id => 'sched', project_id => 'proj', policy => '{"retryOn": ["failed"]}')$$, '15.2 all arguments');
SELECT tq_internal.fire_cron('all', pg_temp.minute(0)) AS task \gset
SELECT is(tq.task(:'task') - '{created,deadline,expires,taskQueueId,provisionerId,workerType,payload,metadata}'::text[],
	jsonb_build_object('taskGroupId', pg_temp.id('g'), 'dependencies', '[]'::jsonb, 'requires', 'all-resolved', 'priority', 'high', 'retries', 3, 'routes', '["r.1"]'::jsonb,
		'scopes', '["xy"]'::jsonb, 'tags', '{"a": "b''c"}'::jsonb, 'extra', '{"d": [1, "$name"]}'::jsonb, 'schedulerId', 'sched', 'projectId', 'proj',
		'policy', '{"retryOn": ["failed"]}'::jsonb, 'delay', 90), '15.2 are those of the task');
SELECT is(tq.task(:'task') ->> 'deadline', pg_temp.iso((tq.task(:'task') ->> 'created')::timestamptz + interval '3 hours 90 seconds'), '15.2 the deadline counts as that of enqueue');
SELECT is((tq.task(:'task') ->> 'expires')::timestamptz, (tq.task(:'task') ->> 'deadline')::timestamptz + interval '1 month 2 days', '15.2 expires from the deadline');
SELECT tq.schedule_cron('retry', '0 6 * * *', 'test/retry', retry => 3) \g /dev/null
SELECT is(tq.task(tq_internal.fire_cron('retry', pg_temp.minute(0))) - '{taskGroupId,created,deadline,expires,metadata}'::text[], tq.task(tq.enqueue('test/retry', retry => 3)) - '{taskGroupId,created,deadline,expires,metadata}'::text[], '15.2 retry');
SELECT tq.schedule_cron('scalar', '0 6 * * *', 'test/scalar', '"$name"') \g /dev/null
SELECT is(pg_temp.payload(tq_internal.fire_cron('scalar', pg_temp.minute(0))), '"scalar"', '15.4 a payload that is a string');
SET intervalstyle = 'sql_standard';
SELECT tq.schedule_cron('style', '0 6 * * *', 'test/style', deadline => '1 day 2 hours') \g /dev/null
SET intervalstyle = 'iso_8601';
SELECT tq_internal.fire_cron('style', pg_temp.minute(0)) AS task \gset
SELECT is((tq.task(:'task') ->> 'deadline')::timestamptz - (tq.task(:'task') ->> 'created')::timestamptz, interval '26 hours', '15.2 whatever intervalstyle is');
RESET intervalstyle;

SELECT pg_temp.throws(format('SELECT tq.schedule_cron(%s)', arguments), code, '15.2 refused: ' || arguments)
FROM (VALUES ($$'', '* * * * *', 'test/q'$$, 'TQ400'), ($$repeat('x', 61), '* * * * *', 'test/q'$$, 'TQ400'), ($$E'a\tb', '* * * * *', 'test/q'$$, 'TQ400'),
	($$'b', '* * * * *', 'no queue'$$, 'TQ400'), ($$'b', '* * * * *', 'test/q', tags => '[]'$$, 'TQ400'), ($$'b', '* * * * *', 'test/q', overlap => 'maybe'$$, 'TQ400'),
	($$'b', '* * * * *', 'test/q', overlap => NULL$$, 'TQ400'), ($$'b', NULL, 'test/q'$$, 'TQ400'), ($$'b', '* * * * *', 'test/q', retries => 50$$, 'TQ400'),
	($$'b', '* * * * *', 'test/q', priority => 'extreme'$$, 'TQ400'), ($$'b', '* * * * *', 'test/q', deadline => '8000 years'$$, 'TQ400'),
	($$'b', '* * * * *', 'test/q', policy => '{"colour": 1}'$$, 'TQ400')) AS v (arguments, code);
SELECT is((SELECT count(*) FROM tq_internal.cron WHERE name IN ('', 'b')), 0::bigint, '15.2 nothing is left of them');
SELECT lives_ok($$SELECT tq.schedule_cron('it''s "a" \ b', '* * * * *', 'test/odd')$$, '15.2 a name with quotes');
SELECT isnt(tq.run_cron_now($$it's "a" \ b$$), NULL, '15.2 that fires');

-- ---------------------------------------------------------------------------
-- overlap
-- ---------------------------------------------------------------------------

SELECT tq.schedule_cron('skip', '* * * * *', 'test/skip', overlap => 'skip', deadline => '1 day'), tq.schedule_cron('replace', '* * * * *', 'test/replace', overlap => 'replace', deadline => '1 day') \g /dev/null
SELECT tq_internal.fire_cron(name, pg_temp.minute(-5)) FROM unnest('{skip,replace}'::text[]) AS name \g /dev/null
SELECT is(tq_internal.fire_cron('skip', pg_temp.minute(-4)), NULL, '15.3 skip: none while the last one is pending');
SELECT ok(last_skipped IS NOT NULL AND last_scheduled = pg_temp.minute(-4) AND last_state = 'pending', '15.3 the view says so') FROM tq.cron_overview WHERE name = 'skip';
SELECT is(tq.run_cron_now('skip'), NULL, '15.3 by hand neither');
SELECT isnt(tq_internal.fire_cron('replace', pg_temp.minute(-4)), NULL, '15.3 replace: another one');
SELECT is(pg_temp.states('test/replace'), 'exception pending', '15.3 the last one is canceled');
SELECT is((SELECT count(*) FROM tq.claim_work('test/skip', 'wg', 'w1') UNION ALL SELECT count(*) FROM tq.claim_work('test/replace', 'wg', 'w1') ORDER BY 1 LIMIT 1), 1::bigint, '15.3 both are claimed');
SELECT is(tq_internal.fire_cron('skip', pg_temp.minute(-3)), NULL, '15.3 skip: none while it is running');
SELECT isnt(tq_internal.fire_cron('replace', pg_temp.minute(-3)), NULL, '15.3 replace: one that is running too');
SELECT is(pg_temp.states('test/replace'), 'exception exception pending', '15.3 it is canceled');
SELECT tq.report_failed(last_task_id, 0) FROM tq.cron_overview WHERE name = 'skip' \g /dev/null
SELECT is(tq_internal.fire_cron('skip', pg_temp.minute(-3)), NULL, '15.3 a minute that was skipped stays so');
SELECT isnt(tq_internal.fire_cron('skip', pg_temp.minute(-2)), NULL, '15.3 once it has ended, the next one comes');
SET tq.clock_offset = '3 days';
SELECT isnt(tq_internal.fire_cron('skip'), NULL, '15.3 nor does one past its deadline stop it');
SELECT isnt(tq_internal.fire_cron('replace'), NULL, '15.3 in both');
SELECT pg_temp.at(1) \g /dev/null

-- A task of another role that holds the unique key is not the last task.
SET ROLE other;
SELECT tq.enqueue('test/key', policy => '{"uniqueKey": "k"}') AS held \gset
RESET ROLE;
SET ROLE app;
SELECT tq.schedule_cron('key', '* * * * *', 'test/key', policy => '{"uniqueKey": "k"}', overlap => 'replace') \g /dev/null
SELECT is(tq.run_cron_now('key'), :'held', '15.3 a firing that meets a unique key: the task that has it');
SELECT is(tq.run_cron_now('key'), :'held', '15.3 again');
RESET ROLE;
SELECT is(pg_temp.states('test/key'), 'pending', '15.3 replace does not cancel that');

-- ---------------------------------------------------------------------------
-- Pause
-- ---------------------------------------------------------------------------

SELECT is(active, false, '15.5 pause') FROM tq.pause_cron('style');
SELECT is(tq_internal.fire_cron('style'), NULL, '15.5 paused: nothing is created');
SELECT isnt(tq.run_cron_now('style'), NULL, '15.5 but by hand');
SELECT is(active, true, '15.5 resume') FROM tq.resume_cron('style');
SELECT isnt(tq_internal.fire_cron('style'), NULL, '15.5 it fires again');

-- ---------------------------------------------------------------------------
-- Rights
-- ---------------------------------------------------------------------------

SET ROLE app;
SELECT lives_ok($$SELECT tq.schedule_cron('mine', '* * * * *', 'test/mine')$$, '15.1 a role that may enqueue may schedule');
SELECT throws_ok($$SELECT tq.schedule_cron('not', '* * * * *', 'else/where')$$, 'TQ403', NULL, '15.1 but not in another queue');
RESET ROLE;
-- What a call answers, without the name of the caller.
CREATE FUNCTION pg_temp.answer(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE call;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN replace(concat_ws(' ', SQLSTATE, SQLERRM, detail, hint), 'mine', 'none');
END $$;
SELECT tq.grant_scopes('other', '{queue:schedule-cron:*}') \g /dev/null
SET ROLE other;
SELECT is(pg_temp.answer(format(call, 'mine')), pg_temp.answer(format(call, 'none')), '15.1 a foreign name is as one that is not in use: ' || call)
FROM unnest('{SELECT tq.pause_cron(''%s''),SELECT tq.resume_cron(''%s''),SELECT tq.unschedule_cron(''%s''),SELECT tq.run_cron_now(''%s''),SELECT tq_internal.fire_cron(''%s'')}'::text[]) AS call;
SELECT matches(pg_temp.answer($$SELECT tq.pause_cron('mine')$$), '^TQ404 ', '15.1 which does not exist');
SELECT is(pg_temp.answer($$SELECT tq.pause_cron('mine', 'app')$$), pg_temp.answer($$SELECT tq.pause_cron('none', owner => 'app')$$), '15.1 nor does it learn by naming the owner');
SELECT matches(pg_temp.answer($$SELECT tq.pause_cron('mine', 'app')$$), '^TQ403 ', '15.1 for which it has no right');
SELECT is(replace(pg_temp.answer($$SELECT tq.pause_cron('mine', 'absent')$$), 'absent', 'app'), pg_temp.answer($$SELECT tq.pause_cron('mine', 'app')$$), '15.1 nor whether there is that role');
SELECT is(owner, 'other', '15.1 another owner can have the same name') FROM tq.schedule_cron('mine', '0 7 * * *', 'test/theirs', '"theirs"');
SELECT pg_temp.payload(tq_internal.fire_cron('mine', pg_temp.minute(-3))) AS theirs \gset
RESET ROLE;
SET ROLE app;
SELECT tq_internal.fire_cron('mine', pg_temp.minute(-3)) AS mine \gset
SELECT is(pg_temp.payload(:'mine') || jsonb_build_array(:'theirs'::jsonb), '[{}, "theirs"]', '15.1 each fires its own');
RESET ROLE;
SELECT is(array_agg(owner || ' ' || schedule ORDER BY owner), '{app * * * * *,other 0 7 * * *}', '15.1 the view has both') FROM tq.cron_overview WHERE name = 'mine';
SET ROLE member;
SELECT throws_ok($$SELECT tq.pause_cron('mine')$$, 'TQ403', NULL, '15.1 a member of its owner has none of its own');
SELECT lives_ok($$SELECT tq.pause_cron('mine', owner => 'app')$$, '15.1 but may pause that of the owner');
RESET ROLE;
SELECT is(array_agg(owner || ' ' || coalesce(active, true) ORDER BY owner), '{app false,other true}', '15.1 and no other') FROM tq.cron_overview WHERE name = 'mine';
SET ROLE boss;
SELECT throws_ok($$SELECT tq.resume_cron('mine')$$, 'TQ404', NULL, '15.1 an admin means its own, too');
SELECT lives_ok($$SELECT tq.resume_cron('mine', 'app')$$, '15.1 or that of the owner that it names');
SELECT is(pg_temp.payload(tq.run_cron_now('mine', 'other')), '"theirs"', '15.1 whose task it is');
SELECT is(owner, 'app', '15.1 its owner stays') FROM tq.unschedule_cron('mine', 'app');
RESET ROLE;
SELECT pg_temp.throws($$SELECT tq.resume_cron('mine', 'app')$$, 'TQ404', '15.5 it is gone');
SELECT is(owner, 'other', '15.5 that of the other owner is not') FROM tq.resume_cron('mine', 'other');

CREATE ROLE gone LOGIN;
SELECT tq.grant_queue('gone', 'test/*', 'produce') \g /dev/null
SET ROLE gone;
SELECT FROM tq.schedule_cron('gone', '* * * * *', 'test/a');
RESET ROLE;
SELECT ok(ok, '15.1 health') FROM tq.health() WHERE name = 'cron';
SELECT is(fault, NULL, '15.1 no fault') FROM tq.cron_overview WHERE name = 'gone';
SELECT tq.revoke_queue('gone', 'test/*', 'produce') \g /dev/null
SELECT is(fault, 'its owner lacks scopes', '15.1 fault: the scopes were revoked') FROM tq.cron_overview WHERE name = 'gone';
SELECT throws_ok($$SELECT tq.run_cron_now('gone', 'gone')$$, 'TQ403', NULL, '15.1 no task');
SELECT tq.grant_queue('gone', 'test/*', 'produce') \g /dev/null
ALTER ROLE gone NOLOGIN;
SELECT is(fault, 'its owner cannot log in', '15.1 fault: it cannot log in') FROM tq.cron_overview WHERE name = 'gone';
SELECT is(format('%s %s', ok, detail), 'f gone', '15.1 health names it') FROM tq.health() WHERE name = 'cron';
SET ROLE boss;
SELECT is(count(fault), 1::bigint, '15.1 the view shows it to an admin') FROM tq.cron_overview;
RESET ROLE;
SELECT is(pg_temp.answer($$SELECT tq.run_cron_now('gone', 'gone')$$), 'TQ409 the owner of recurring task "gone" cannot log in Its owner is role "gone", and pg_cron runs a job as the role that owns it. '
	'Alter the role to LOGIN, or call tq.unschedule_cron() as a member of tq_admin.', '15.1 its owner cannot log in: no task');
SET ROLE gone;
SELECT throws_ok($$SELECT tq_internal.fire_cron('gone')$$, 'TQ409', NULL, '15.1 nor by the clock');
RESET ROLE;
DROP ROLE gone;
SELECT is(fault, 'its owner was dropped', '15.1 fault: it was dropped') FROM tq.cron_overview WHERE name = 'gone';
SELECT owner AS gone FROM tq.cron_overview WHERE name = 'gone' \gset
SELECT pg_temp.throws(format($$SELECT tq.run_cron_now('gone', %L)$$, :'gone'), 'TQ409', '15.1 its owner was dropped: no task');
SELECT is(command, format($$SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = 'tq:gone' AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = username) AND database = %L$$, current_database()),
	'15.1 an admin can unschedule it, by the name that the view has: its job is one of no role') FROM tq.unschedule_cron('gone', :'gone');

-- The id of the next firing is not one that another role could take.
SELECT isnt(tq_internal.fire_cron('a', pg_temp.minute(-50)), tq.stable_slugid(format('tq.cron %s %s', name, pg_temp.iso(pg_temp.minute(-50)))), '15.3 the id of a task is not made of what others know')
FROM tq_internal.cron WHERE name = 'a';
SELECT is(pg_temp.is_timed(id), false, '15.3.2 nor of a time') FROM tq_internal.cron WHERE name = 'a';
SELECT ok(NOT has_table_privilege('boss', 'tq_internal.cron', 'SELECT') AND NOT EXISTS (SELECT FROM information_schema.columns WHERE table_name = 'cron_overview' AND column_name = 'id'),
	'15.3 of what it is made, only the owner of the table reads');

-- ---------------------------------------------------------------------------
-- The next times, in the time zone of pg_cron
-- ---------------------------------------------------------------------------

SELECT is((SELECT string_agg(to_char(f AT TIME ZONE zone, 'MM-DD HH24:MI'), ', ') FROM unnest(tq_internal.next_firings(schedule, zone, at::timestamptz, 3)) AS f), fires, format('15.6 %s in %s', schedule, zone))
FROM (VALUES ('* * * * *', 'GMT', '2026-01-31 23:58:30+00', '01-31 23:59, 02-01 00:00, 02-01 00:01'), ('0 3 * * *', 'Europe/Berlin', '2026-03-28 12:00+00', '03-29 03:00, 03-30 03:00, 03-31 03:00'),
	('30 2 * * *', 'Europe/Berlin', '2026-03-28 12:00+00', '03-30 02:30, 03-31 02:30, 04-01 02:30'), ('5-59/20,0 8 * * mon-fri', 'GMT', '2026-01-02 08:30+00', '01-02 08:45, 01-05 08:00, 01-05 08:05'),
	('0 0 13 * 5', 'GMT', '2026-02-12 00:00+00', '02-13 00:00, 02-20 00:00, 02-27 00:00'), ('0 0 13 * *', 'GMT', '2026-02-12 00:00+00', '02-13 00:00, 03-13 00:00, 04-13 00:00'), ('0 0 * * 7', 'GMT', '2026-02-12 00:00+00', '02-15 00:00, 02-22 00:00, 03-01 00:00'),
	('0 12 29 feb *', 'GMT', '2096-03-01 00:00+00', '02-29 12:00'), ('0 0 $ * *', 'GMT', '2026-01-31 00:00+00', '02-28 00:00, 03-31 00:00, 04-30 00:00'), ('@daily', 'GMT', '2026-01-01 00:00+00', '01-02 00:00, 01-03 00:00, 01-04 00:00'),
	('30 seconds', 'GMT', '2026-01-01 00:00+00', '01-01 00:00, 01-01 00:01, 01-01 00:01'), ('0 0 31 2 *', 'GMT', '2026-01-01 00:00+00', NULL), ('60 * * * *', 'GMT', '2026-01-01 00:00+00', NULL), ('* * * *', 'GMT', '2026-01-01 00:00+00', NULL), ('0 0 * * *', NULL, '2026-01-01 00:00+00', NULL)) AS v (schedule, zone, at, fires);
SELECT is(next_fires[1], (SELECT date_trunc('minute', tq_internal.clock_now()) + interval '1 minute'), '15.6 next_fires') FROM tq.cron_overview WHERE name = 'a' AND owner = current_user;
SELECT tq.pause_cron('a') \g /dev/null
SELECT is(next_fires, NULL, '15.6 next_fires: it is paused') FROM tq.cron_overview WHERE name = 'a' AND owner = current_user;

-- ---------------------------------------------------------------------------
-- Audit trail
-- ---------------------------------------------------------------------------

TRUNCATE tq_internal.audit;
SET tq.audit = 'all';
SELECT tq.run_cron_now('a') AS task, tq.run_cron_now('skip') AS skipped \gset
SELECT is(array(SELECT format('%s %s %s', function, task_ids[1], arguments ->> 'name') FROM tq.audit WHERE :'task' = task_ids[1]::text ORDER BY id),
	ARRAY['enqueue ' || :'task' || ' ', 'run_cron_now ' || :'task' || ' a'], '15.5 run_cron_now leaves two rows with its task');
TRUNCATE tq_internal.audit;
SELECT tq_internal.fire_cron('a', pg_temp.minute(-99)) AS task \gset
SELECT is(array(SELECT format('%s %s %s', function, role, task_ids[1]) FROM tq.audit), ARRAY[format('enqueue %s %s', current_user, :'task')], '15.3 fire_cron that of enqueue');
RESET tq.audit;

SELECT * FROM finish();
ROLLBACK;
