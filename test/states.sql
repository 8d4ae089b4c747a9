-- States in which the samples of src/sql/functions succeed.  This follows the tables of
-- functions in test/calls.sql, which tests include after a pg_temp.id(text) of their own.
--
-- The task <t> of a state has an id by the letter of the state, its group <g>, a task <d>
-- that depends on it and other ids by this and another letter.  All states can be
-- reached in one database, in this order and in one transaction, but those without a
-- statement: they need a commit, or what only the test knows.
CREATE TEMP TABLE state (n serial, name text, letter text, statement text);
INSERT INTO state (name, letter, statement) VALUES
	('nothing', 'new', 'SELECT 1'),
	('pending', 'p', $$SELECT tq.enqueue('<q>', '{"a": "secret"}', '<t>', '<g>', scheduler_id => 'sched', project_id => 'proj', tags => '{"a": "secret"}', extra => '{"a": "secret"}'),
		tq.enqueue('<q>', task_id => '<d>', dependencies => '{<t>}')$$),
	('running', 'r', $$SELECT tq.enqueue('<q>', '{"a": "secret"}', '<t>', '<g>', scheduler_id => 'sched', project_id => 'proj', priority => 'highest', policy => '{"deadLetter": true}'),
		tq.enqueue('<q>', task_id => '<d>', dependencies => '{<t>}'), (SELECT run_id FROM tq.claim_work('<q>', 'g', 'w'))$$),
	('artifact', 'a', $$SELECT tq.enqueue('<q>', task_id => '<t>', priority => 'highest'), (SELECT run_id FROM tq.claim_work('<q>', 'g', 'w')),
		tq.create_artifact('<t>', 0, 'public/a', '{"storageType": "inline", "contentType": "text/plain", "content": "x", "expires": "<soon>"}')$$),
	('uploading', 'l', $$SELECT tq.enqueue('<q>', task_id => '<t>', scheduler_id => 'sched', project_id => 'proj', priority => 'highest'), (SELECT run_id FROM tq.claim_work('<q>', 'g', 'w')),
		tq.create_artifact('<t>', 0, 'public/a', '{"storageType": "object", "contentType": "text/plain", "uploadId": "<u>", "expires": "<soon>"}')$$),
	('completed', 'c', $$SELECT tq.enqueue('<q>', task_id => '<t>', task_group_id => '<g>', scheduler_id => 'sched', project_id => 'proj', priority => 'highest'),
		(SELECT run_id FROM tq.claim_work('<q>', 'g', 'w')), tq.report_completed('<t>', 0, result => '"secret"')$$),
	('dead', 'd', $$SELECT tq.enqueue('<q>', task_id => '<t>', scheduler_id => 'sched', project_id => 'proj', priority => 'highest', policy => '{"deadLetter": true}'),
		(SELECT run_id FROM tq.claim_work('<q>', 'g', 'w')), tq.report_failed('<t>', 0, error => '{"message": "secret"}')$$),
	('unscheduled', 'u', $$SELECT tq.enqueue('<q>', task_id => '<t>', task_group_id => '<g>', dependencies => '{<t>}', scheduler_id => 'sched', project_id => 'proj')$$),
	('sealed', 's', $$SELECT tq.enqueue('<q>', task_id => '<t>', task_group_id => '<g>', scheduler_id => 'sched', project_id => 'proj'), tq.seal_task_group('<g>')$$),
	('cron', 'o', $$SELECT name FROM tq.schedule_cron('cr', '* * * * *', '<q>', scheduler_id => 'sched', project_id => 'proj')$$),	-- with a pg_cron, or a setting of its name
	('subscribed', 'b', $$SELECT tq.subscribe('sub', 'task-defined')$$),
	('claimed', 'k', NULL),		-- <credentials> are those of a claim
	('published', 'm', NULL);	-- <m> is the id of a message that was published

-- What the placeholders of a sample stand for: those of a state, with the queue, and what
-- the test knows in addition or better.
CREATE FUNCTION pg_temp.facts(state text, queue text, more jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
	SELECT fact || jsonb_build_object('definition', jsonb_build_object('taskQueueId', queue, 'taskGroupId', fact -> 'g', 'schedulerId', 'sched', 'projectId', 'proj',
			'created', now() + shift, 'deadline', now() + shift + interval '1 hour', 'payload', '{"a": "secret"}'::jsonb, 'tags', '{"a": "secret"}'::jsonb,
			'metadata', '{"name": "secret", "description": "secret", "owner": "tq", "source": "https://example.com/"}'::jsonb))
	FROM state AS s, CAST(current_setting('tq.clock_offset') AS interval) AS shift,
		LATERAL (SELECT jsonb_build_object('t', pg_temp.id(s.letter), 'g', pg_temp.id('g' || s.letter), 'd', pg_temp.id('d' || s.letter), 'u', pg_temp.id('u' || s.letter),
			'n', pg_temp.id('n' || s.letter), 'c', pg_temp.id('c'), 'q', queue,
			'soon', now() + shift + interval '1 hour') || more) AS f (fact)
	WHERE s.name = facts.state
$$;
CREATE FUNCTION pg_temp.fill(sample text, facts jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	fact record;
BEGIN
	FOR fact IN SELECT key, value FROM jsonb_each_text(facts) LOOP
		sample := replace(sample, '<' || fact.key || '>', fact.value);
	END LOOP;
	RETURN sample;
END $$;

-- Reaches each state that has a statement, in the same queue.
CREATE FUNCTION pg_temp.reach_all(queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	s record;
BEGIN
	FOR s IN SELECT name, statement FROM state WHERE statement IS NOT NULL ORDER BY n LOOP
		EXECUTE pg_temp.fill(s.statement, pg_temp.facts(s.name, queue));
	END LOOP;
END $$;

-- The samples that a test can call once it has reached all states.  A role that may not call
-- them, or a standby, says so.
CREATE FUNCTION pg_temp.samples(queue text) RETURNS TABLE (n int, fn text, name text, oid oid, call text, does text, needs jsonb, class text, audited text[]) LANGUAGE sql AS $$
	SELECT c.n, c.fn, c.name, p.oid, format(CASE p.prokind WHEN 'p' THEN 'CALL %s.%s(%s)' ELSE 'SELECT * FROM %s.%s(%s)' END, c.schema, c.name, pg_temp.fill(c.args, f)),
		c.does, pg_temp.fill(c.needs::text, f)::jsonb, c.class, c.audited
	FROM call AS c JOIN state AS s ON s.name = c.state AND s.statement IS NOT NULL
		JOIN pg_proc AS p ON p.pronamespace = c.schema::regnamespace AND p.proname = c.name AND coalesce(p.proargnames[1:p.pronargs], '{}') = c.names,
		pg_temp.facts(c.state, queue) AS f
	WHERE NOT c.alone
	ORDER BY c.n
$$;
