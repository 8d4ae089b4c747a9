-- doc/scopes.md "Two teams": what it sets up, and the rows of "Who may do what to whose",
-- each as either of them.  The numbers are those of the model there.
BEGIN;
\ir helper.psql

CREATE ROLE shop_app;
CREATE ROLE shop_ops;
CREATE ROLE bank_app;
CREATE ROLE bank_ops;
SELECT tq.grant_queue('shop_app', 'shop/*', 'produce') \g /dev/null
SELECT tq.grant_queue('shop_app', 'shop/*', 'work', 'shop/*') \g /dev/null
SELECT tq.grant_queue('shop_ops', 'shop/*', 'manage') \g /dev/null
SELECT tq.grant_queue('bank_app', 'bank/*', 'produce') \g /dev/null
SELECT tq.grant_queue('bank_app', 'bank/*', 'work', 'bank/*') \g /dev/null
SELECT tq.grant_queue('bank_ops', 'bank/*', 'manage') \g /dev/null

CREATE TEMP TABLE team AS SELECT * FROM (VALUES ('shop', 'bank'), ('bank', 'shop')) AS v (me, other);

-- A task of a team, by a short name.
CREATE FUNCTION pg_temp.enqueue(team text, name text, options text DEFAULT '') RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.call_as((team || '_app')::name, format('SELECT tq.enqueue(%L, %L, task_id => pg_temp.id(%L)%s)', team || '/' || name, format('{"secret": "%s"}', team), team || ' ' || name, options))
$$;
CREATE FUNCTION pg_temp.end_of(task text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', s ->> 'state', s #>> '{runs,-1,reasonResolved}') FROM tq.status(pg_temp.id(task)) AS s
$$;
CREATE FUNCTION pg_temp.fail(team text, name text) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.call_as((team || '_app')::name, format('SELECT tq.report_failed(task_id, run_id) ->> ''state'' FROM tq.claim_work(%L, %L, ''w1'')', team || '/' || name, team))
$$;
SELECT pg_temp.enqueue(me, name) FROM team, unnest('{plain,held,done}'::text[]) AS name \g /dev/null
SELECT pg_temp.call_as((me || '_app')::name, format('SELECT tq.report_completed(task_id, run_id, result => ''"secret"'') FROM tq.claim_work(%L, %L, ''w1'')', me || '/done', me)) FROM team \g /dev/null

-- 3: what is another's does not exist, word for word as an unused id.
SELECT is(replace(pg_temp.call_as((me || role)::name, format(call, pg_temp.id(other || ' plain'))), pg_temp.id(other || ' plain')::text, 'ID'),
	replace(pg_temp.call_as((me || role)::name, format(call, pg_temp.id('unused'))), pg_temp.id('unused')::text, 'ID'), format('3 %s%s: %s', me, role, call))
FROM team, unnest('{_app,_ops}'::text[]) AS role, unnest(ARRAY['SELECT tq.status(%L)', 'SELECT tq.task(%L)', 'SELECT tq.has_task(%L)', 'SELECT count(*) FROM tq.why(%L)', 'SELECT tq.cancel_task(%L)',
	'SELECT tq.rerun_task(%L)', 'SELECT tq.report_completed(%L, 0)', 'SELECT tq.list_task_group(%L)', 'SELECT tq.cancel_task_group(%L)', 'SELECT outcome FROM tq.resolve(ARRAY[%L]::tq.slugid[], ''{0}'')']) AS call;
SELECT matches(pg_temp.call_as((me || '_app')::name, format('SELECT tq.%s(''%s/plain''%s)', call, other, args)), '^TQ403 ', format('3 %s: %s of a foreign queue', me, call))
FROM team, (VALUES ('claim_work', ', ''g'', ''w'''), ('enqueue', ''), ('task_queue_counts', ''), ('set_queue', ', ''{"paused": true}''')) AS v (call, args);
SELECT is(pg_temp.call_as((me || role)::name, format('SELECT tq.status(%L) ->> ''state''', pg_temp.id(me || ' plain'))), 'pending', format('3 %s%s: its own', me, role)) FROM team, unnest('{_app,_ops}'::text[]) AS role;

-- 4: it names no foreign task, group or key; with the right for a queue it does.
SELECT matches(pg_temp.enqueue(me, 'named', format(', dependencies => ARRAY[%L]::tq.slugid[]', pg_temp.id(other || ' plain'))), '^TQ400 missing', '4 depend: ' || me) FROM team;
SELECT matches(pg_temp.enqueue(me, 'named', format(', task_group_id => %L', pg_temp.id(other || ' plain'))), '^TQ403 ', '4 join: ' || me) FROM team;
SELECT matches(pg_temp.enqueue(me, 'named', ', policy => ''{"uniqueKey": "k", "uniqueScope": "database"}'''), '^TQ403 ', '4 unique: ' || me) FROM team;
SELECT tq.grant_queue((me || '_app')::regrole, other || '/held', access) FROM team, unnest('{depend,join}'::text[]) AS access \g /dev/null
SELECT is(length(pg_temp.enqueue(me, 'depends', format(', dependencies => ARRAY[%L]::tq.slugid[], task_group_id => %L', pg_temp.id(other || ' held'), pg_temp.id(other || ' held')))), 22, '4 with the rights: ' || me) FROM team;

-- 5: a worker has the names of its grant, and no other.
SELECT matches(pg_temp.call_as((me || '_app')::name, format('SELECT tq.claim_work(''%s/none'', ''%s'', ''w'')', me, worker_group)), '^TQ403 ', format('5 %s: as a worker of %s', me, worker_group)) FROM team, unnest(ARRAY[other, 'else']) AS worker_group;

-- 6, 7: its operators see and repair all of it; what depends on it and is another's stays.
SELECT is(pg_temp.fail(me, 'held'), 'failed', '7 a task fails: ' || me) FROM team;
SELECT is(pg_temp.call_as((me || '_ops')::name, format('SELECT count(*) FROM tq.list_task_group(%L)', pg_temp.id(me || ' held'))), '2', '6 the group, with what has joined it: ' || me) FROM team;
SELECT is(pg_temp.call_as((me || '_ops')::name, format('SELECT tq.rerun_task(%L, downstream => true) ->> ''state''', pg_temp.id(me || ' held'))), 'pending', '7 a repair: ' || me) FROM team;
SELECT is(pg_temp.end_of(other || ' depends'), 'unscheduled', '7 what is another''s waits as before: ' || other) FROM team;

-- 1, 8: the name of a recurring task is its owner's; a policy has the rights of its creator when it acts.
SELECT matches(pg_temp.enqueue(me, 'policy', format(', task_group_id => %L, policy => ''{"onUnsuccessful": "cancel-group"}''', pg_temp.id(other || ' held'))), '^TQ403 .*cancel-task-group', '8 to join is not to cancel: ' || me) FROM team;

-- 2: rights are rows; one that is revoked takes no other.
SELECT tq.revoke_queue((me || '_app')::regrole, me || '/*', 'work') FROM team \g /dev/null
SELECT matches(pg_temp.call_as((me || '_app')::name, format('SELECT tq.claim_work(''%s/plain'', ''%s'', ''w'')', me, me)), '^TQ403 ', '2 no work: ' || me) FROM team;
SELECT is(length(pg_temp.enqueue(me, 'still')), 22, '2 but produces: ' || me) FROM team;

-- 12: what is stored has a bound as text.
SELECT matches(pg_temp.call_as((me || '_app')::name, format('SELECT tq.enqueue(%L, (SELECT jsonb_agg(''1e131071''::jsonb) FROM generate_series(1, 1000)))', me || '/size')), '^TQ400 ', '12 sizes as text: ' || me) FROM team;

-- 13: with the first grant of some queues, default channels carry ids.
SELECT is(detail, 'default channels carry ids', '13 notifications') FROM tq.health() WHERE name = 'listeners';

-- 14: an administrator sees all, and reads no secret.
CREATE ROLE chief;
GRANT tq_admin TO chief;
SELECT is(pg_temp.call_as('chief', format('SELECT tq.status(%L) ->> ''state''', pg_temp.id(me || ' plain'))), 'pending', '14 an administrator: ' || me) FROM team;
SELECT matches(pg_temp.call_as('chief', 'SELECT count(*) FROM tq_internal.secret'), '^42501 ', '14 not the secret');

SELECT * FROM finish();
ROLLBACK;
