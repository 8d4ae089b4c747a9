-- doc/spec/policy.md 2, field 13: dropPayload removes payload and result at the completion.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.made(name text, policy jsonb DEFAULT '{"dropPayload": true}', retries int DEFAULT 0) RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('policy', policy, 'retries', retries, 'payload', '{"secret": 1}'::jsonb))
$$;
CREATE FUNCTION pg_temp.payload(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT tq.task(pg_temp.id(name)) ->> 'payload'
$$;

-- report_completed, of a run that this session has claimed
SELECT pg_temp.made('a');
SELECT is((SELECT payload FROM tq.claim_work('test/q-a', 'wg', 'w1')), '{"secret": 1}'::jsonb, 'dropPayload: the worker gets the payload');
SELECT is(pg_temp.payload('a'), '{"secret": 1}', 'dropPayload: it is stored while the task is running');
SELECT is(pg_temp.line(tq.report_completed(pg_temp.id('a'), 0, result => '{"secret": 2}')), 'completed 0: scheduled>completed/completed', 'dropPayload: completed with a result');
SELECT is(pg_temp.payload('a'), '{}', 'dropPayload: the payload is gone');
SELECT is(tq.result(pg_temp.id('a')), NULL, 'dropPayload: the result too');
SELECT is((SELECT count(*) FROM tq_internal.run_detail WHERE result IS NOT NULL), 0::bigint, 'dropPayload: nowhere');
SELECT is(pg_temp.made('a'), 'completed 0: scheduled>completed/completed', 'dropPayload: the definition can be sent again');
SELECT pg_temp.throws($$SELECT pg_temp.create('a', '{"policy": {"dropPayload": true}, "retries": 1}')$$, 'TQ409', 'dropPayload: with another value it differs');
SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'TQ409', 'dropPayload: it cannot be rerun');

-- resolve, claim_task
SELECT pg_temp.made('b'), pg_temp.made('c'), pg_temp.made('keep', '{"deadLetter": false}'), pg_temp.made('no', '{"dropPayload": false}');
SELECT count(*) FROM unnest('{b,c,keep,no}'::text[]) AS n, tq.claim_task(pg_temp.id(n), 0, 'wg', 'w2');
SELECT is((SELECT string_agg(outcome, ' ') FROM tq.resolve(pg_temp.ids('b', 'c', 'keep', 'no'), '{0,0,0,0}')), 'resolved resolved resolved resolved', 'dropPayload: resolve');
SELECT is((SELECT string_agg(pg_temp.payload(n), ' ') FROM unnest('{b,c,keep,no}'::text[]) AS n), '{} {} {"secret": 1} {"secret": 1}', 'dropPayload: of those whose policy says so');

-- task-completed is not published, the task of a report is not read
SELECT tq.unbind('tq_task_completed', 'task-completed');
SELECT pg_temp.made('u1'), pg_temp.made('u2'), pg_temp.made('u3', '{"dropPayload": false}');
SELECT pg_temp.take('u1');
SELECT count(*) FROM unnest('{u2,u3}'::text[]) AS n, tq.claim_task(pg_temp.id(n), 0, 'wg', 'w2');
SELECT tq.report_completed(pg_temp.id(n), 0, result => '1') FROM unnest('{u1,u2,u3}'::text[]) AS n;
SELECT is((SELECT string_agg(pg_temp.payload(n), ' ') FROM unnest('{u1,u2,u3}'::text[]) AS n), '{} {} {"secret": 1}', 'dropPayload: also if the report reads no task');
SELECT is((SELECT string_agg(coalesce(tq.result(pg_temp.id(n))::text, '-'), ' ') FROM unnest('{u1,u2,u3}'::text[]) AS n), '- - 1', 'dropPayload: and no result');
SELECT tq.bind('tq_task_completed', 'task-completed');

-- skipped
SELECT pg_temp.made('s');
SELECT is(pg_temp.line(tq.skip_task(pg_temp.id('s'), '{"secret": 3}')), 'completed 0: scheduled>completed/skipped', 'dropPayload: skipped');
SELECT is(pg_temp.payload('s'), '{}', 'dropPayload: a skipped task is completed');
SELECT is(tq.result(pg_temp.id('s')), NULL, 'dropPayload: and has no result');

-- a task that fails keeps it, for its retry, rerun and redrive
SELECT pg_temp.made('f', '{"dropPayload": true, "retryOn": ["failed"], "deadLetter": true}', 1);
SELECT pg_temp.take('f'), pg_temp.report('f', 'failed');
SELECT is((SELECT payload FROM tq.claim_work('test/q-f', 'wg', 'w1')), '{"secret": 1}'::jsonb, 'dropPayload: kept for a retry');
SELECT pg_temp.report('f', 'failed');
SELECT is(pg_temp.state('f'), 'failed', 'dropPayload: failed');
SELECT is(pg_temp.payload('f'), '{"secret": 1}', 'dropPayload: kept by a failure');
SELECT is(tq.redrive(pg_temp.id('f')) ->> 'state', 'pending', 'dropPayload: redriven');
SELECT is((SELECT payload FROM tq.claim_work('test/q-f', 'wg', 'w1')), '{"secret": 1}'::jsonb, 'dropPayload: with its payload');
SELECT pg_temp.report('f', 'completed');
SELECT is(pg_temp.payload('f'), '{}', 'dropPayload: dropped in the end');
SELECT is((SELECT count(*) FROM tq.list_dead_letters('test/q-f')), 0::bigint, 'dropPayload: and there is no dead letter with it');

-- not before the completion
SELECT pg_temp.made('p');
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('p'), pg_temp.def('p', '{"policy": {"dropPayload": true}, "retries": 0}'))$$, 'TQ409', 'dropPayload: before, a repeat with another payload differs');

SELECT * FROM finish();
ROLLBACK;
