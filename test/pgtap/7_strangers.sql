-- doc/scopes.md "Who may do what to whose": every function as a role that has every access
-- to its own queues, about what is its own, what is another application's, and what does
-- not exist.  Functions that end the transaction are in sql/scope.sql.
BEGIN;
\ir helper.psql
\ir ../calls.sql

-- Ids of the objects of one application differ from those of another.
CREATE OR REPLACE FUNCTION pg_temp.id(name text) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.stable_slugid(current_setting('tq_test.whose') || name)
$$;
SET cron.database_name = 'elsewhere';
SET tq_test.whose = 'mine';
SELECT pg_temp.reach_all('mine/q'), tq.declare_worker('mine/q', 'g', 'w', now() + interval '1 day') \g /dev/null
SELECT tq.unsubscribe('sub') \g /dev/null
SELECT tq.unschedule_cron('cr') \g /dev/null
SET tq_test.whose = 'theirs';
SELECT pg_temp.reach_all('bank/q'), tq.declare_worker('bank/q', 'g', 'w', now() + interval '1 day') \g /dev/null

CREATE ROLE guest;
SELECT tq.grant_queue('guest', 'mine/*', access) FROM unnest('{produce,work,read,manage,join,depend,unique}'::text[]) AS access \g /dev/null
SELECT tq.grant_scopes('guest', '{queue:scheduler-id:sched}') \g /dev/null

-- The samples, about the objects of each.
CREATE TEMP TABLE sample (whose text, fn text, name text, call text, does text);
CREATE FUNCTION pg_temp.collect(whose text, queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('tq_test.whose', whose, false);
	INSERT INTO sample SELECT whose, s.fn, s.name, s.call, s.does FROM pg_temp.samples(queue) AS s WHERE s.needs IS NOT NULL;
	INSERT INTO thing SELECT whose, s.letter || prefix, pg_temp.id(prefix || s.letter)::text FROM state AS s, unnest('{"",g,d,u,n}'::text[]) AS prefix;
END $$;
CREATE TEMP TABLE thing (whose text, name text, id text);
SELECT pg_temp.collect('mine', 'mine/q'), pg_temp.collect('theirs', 'bank/q'), pg_temp.collect('nowhere', 'void/q') \g /dev/null

-- What a call answers, without a trace of it: the error, or "ok".
CREATE FUNCTION pg_temp.answer(whose text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	detail text;
	hint text;
	one record;
	lines text := '';
BEGIN
	BEGIN
		PERFORM set_config('role', 'guest', true);
		FOR one IN EXECUTE call LOOP
			lines := lines || one::text;
		END LOOP;
		RAISE EXCEPTION USING ERRCODE = 'XXOK1', MESSAGE = 'ok ' || lines;
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
		answer := CASE WHEN SQLSTATE = 'XXOK1' THEN SQLERRM ELSE concat_ws(' ', SQLSTATE, SQLERRM, detail, hint) END;
	END;
	FOR one IN SELECT t.name, t.id FROM thing AS t WHERE t.whose = answer.whose LOOP
		answer := replace(answer, one.id, '<' || one.name || '>');
	END LOOP;
	RETURN regexp_replace(answer, '(bank|void)/q', 'Q', 'g');
END $$;
CREATE TEMP TABLE answered AS SELECT s.*, pg_temp.answer(s.whose, s.call) AS answer FROM sample AS s;

-- About what is its own it may do everything but what needs scopes of its own: what concerns
-- all queues, routes and channels, or what only an administrator does.
SELECT is(a.answer ~ '^ok', NOT a.fn = ANY ('{ack,bind,bucket_counts,buckets_settled,fetch,fire_cron,grant_queue,grant_scopes,health,list_task_queues,messages,metrics,pause_cron,prepare_drop,
		reset_queue_stats,resume_cron,revoke_queue,revoke_scopes,rotate_secret,run_cron_now,set_buckets,subscribe,top,unbind,unschedule_cron,unsubscribe,upkeep}'::text[]),
	format('its own: %s: %s', a.fn, left(a.answer, 100)))
FROM answered AS a WHERE a.whose = 'mine' AND a.answer !~ 'cron cr' ORDER BY a.fn;

-- What another application has is what does not exist: the answers are the same.  It may
-- join groups of a schedulerId that it has, and the bucket is a part of the id.
SELECT is(t.answer, n.answer, 'another application''s: ' || t.fn)
FROM answered AS t JOIN answered AS n USING (fn)
WHERE t.whose = 'theirs' AND n.whose = 'nowhere' AND t.fn NOT IN ('slugid', 'slugid/2', 'slugid_in_bucket', 'bucket', 'has_task_group') ORDER BY t.fn;
-- It is refused, but where nothing is asked about it, or an answer says that it does not exist.
SELECT is(t.answer ~ '^TQ40[0-9] ', NOT t.fn = ANY ('{bucket,buckets,conductor_policy,current_scopes,failure_groups,find_groups,find_tasks,has_task,has_task_group,queue_channel,resolve,resolve/2,resolve_lines,satisfies,
		queue_history,slugid,slugid/2,slugid_in_bucket,stable_slugid,statuses,task_name_stats,tasks,taskbroker_policy,topic_match,worker_channel}'::text[]),
	format('another application''s: %s: %s', t.fn, left(t.answer, 100)))
FROM answered AS t WHERE t.whose = 'theirs' ORDER BY t.fn;
SELECT is(t.answer ~ 'not-found|\(f\)', true, 'another application''s: ' || t.fn) FROM answered AS t WHERE whose = 'theirs' AND fn IN ('resolve', 'resolve/2', 'resolve_lines', 'has_task');
SELECT is(t.answer, 'ok ', 'another application''s: no row of ' || t.fn) FROM answered AS t WHERE whose = 'theirs' AND fn IN ('queue_history', 'failure_groups', 'find_tasks', 'statuses', 'task_name_stats', 'tasks');
-- No answer names what is another application's, but the id that was asked for.
SELECT is((SELECT string_agg(t.fn, ', ' ORDER BY t.fn) FROM answered AS t WHERE whose = 'theirs' AND fn <> 'current_scopes' AND answer ~ 'secret|sched\y|proj\y'), NULL, 'nothing of it is shown');

-- The id of a task that exists cannot be taken; what its definition is stays hidden.
SET tq_test.whose = 'theirs';
SELECT matches(pg_temp.answer('theirs', format('SELECT tq.enqueue(''mine/q'', task_id => %L)', pg_temp.id('p'))), '^TQ409 task "<p>" exists with another definition The caller has no right to see it\.', 'an id that is taken');
SELECT matches(pg_temp.answer('theirs', format('SELECT tq.create_task(%L, %L)', pg_temp.id('p'), pg_temp.def('x', '{"taskQueueId": "mine/q"}') - '{schedulerId,taskGroupId}'::text[])), '^TQ409 .* The caller has no right to see it\.', 'by create_task');
-- Runs that another application's task has, or has not
SELECT is(regexp_replace(pg_temp.answer('theirs', format('SELECT %s', replace(call, '<r>', quote_literal(pg_temp.id(has))))), 'task "[^"]+"', 'T', 'g'),
	regexp_replace(pg_temp.answer('theirs', format('SELECT %s', replace(call, '<r>', quote_literal(pg_temp.id('nothing'))))), 'task "[^"]+"', 'T', 'g'), has || ': ' || call)
FROM unnest(ARRAY[$$tq.report_completed(<r>, 7)$$, $$tq.claim_task(<r>, 7, 'g', 'w')$$, $$tq.reclaim_task(<r>, 7)$$, $$tq.report_progress(<r>, 7, 1)$$, $$tq.defer_task(<r>, 7, '1 s')$$]) AS call, unnest('{p,r,c,u}'::text[]) AS has;
SELECT * FROM finish();
ROLLBACK;
