-- schedule_task, rerun_task, cancel_task, in each state of a task.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

CREATE FUNCTION pg_temp.make(name text, state text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.enqueue('regress/w', task_id => pg_temp.id(name),
		dependencies => CASE WHEN state = 'unscheduled' THEN ARRAY[pg_temp.id(name)] ELSE '{}' END);
	IF state IN ('running', 'completed', 'failed', 'exception') THEN
		PERFORM tq.claim_task(pg_temp.id(name), 0, 'g', 'w');
	END IF;
	IF state IN ('completed', 'failed') THEN
		PERFORM tq.resolve(ARRAY[pg_temp.id(name)], ARRAY[0], state);
	ELSIF state = 'exception' THEN
		PERFORM tq.report_exception(pg_temp.id(name), 0, 'internal-error');
	ELSIF state = 'canceled' THEN
		PERFORM tq.cancel_task(pg_temp.id(name));
	END IF;
END $$;
CREATE TEMP TABLE states AS SELECT place, state FROM unnest('{unscheduled,pending,running,completed,failed,exception,canceled}'::text[]) WITH ORDINALITY s (state, place);
SELECT count(pg_temp.make(op || place, state)) FROM states, unnest('{s,r,c}'::text[]) op;
SELECT state, pg_temp.brief(tq.status(pg_temp.id('s' || place))) FROM states ORDER BY place;

SELECT state, pg_temp.brief(tq.schedule_task(pg_temp.id('s' || place))) AS schedule_task FROM states ORDER BY place;
SELECT state, pg_temp.brief(tq.schedule_task(pg_temp.id('s' || place))) AS again FROM states ORDER BY place;
SELECT state, pg_temp.brief(tq.rerun_task(pg_temp.id('r' || place))) AS rerun_task FROM states ORDER BY place;
SELECT state, pg_temp.brief(tq.rerun_task(pg_temp.id('r' || place))) AS again FROM states ORDER BY place;
SELECT state, pg_temp.brief(tq.cancel_task(pg_temp.id('c' || place))) AS cancel_task FROM states ORDER BY place;
SELECT state, pg_temp.brief(tq.cancel_task(pg_temp.id('c' || place))) AS again FROM states ORDER BY place;

-- A resolved task has no row in the tables of unresolved tasks; the pending ones are claimable
SELECT (SELECT count(*) FROM tq_internal.unscheduled) AS unscheduled, (SELECT count(*) FROM tq_internal.pending) AS pending,
	(SELECT count(*) FROM tq_internal.run WHERE state = 2) AS running, (SELECT count(*) FROM tq_internal.run WHERE state > 2) AS resolved;
SELECT count(*) FROM tq.claim_work('regress/w', 'g', 'w', 100);

-- The order in the queue: priority, then the time of becoming pending; a rerun comes last
SELECT tq.enqueue('regress/o', task_id => pg_temp.id('o1'));
SELECT tq.enqueue('regress/o', task_id => pg_temp.id('o2'));
SELECT tq.enqueue('regress/o', task_id => pg_temp.id('o3'), priority => 'highest', dependencies => ARRAY[pg_temp.id('o3')]);
SELECT tq.enqueue('regress/o', task_id => pg_temp.id('o4'), priority => 'highest');
SELECT pg_temp.brief(tq.cancel_task(pg_temp.id('o1')));
SELECT pg_temp.brief(tq.rerun_task(pg_temp.id('o1')));
SELECT pg_temp.brief(tq.schedule_task(pg_temp.id('o3')));
SELECT task_id, run_id FROM tq.claim_work('regress/o', 'g', 'w', 4);

-- Unknown tasks, and past the deadline: nothing changes
SELECT pg_temp.stored() AS before \gset
SELECT f, a.* FROM unnest('{schedule,rerun,cancel}'::text[]) f, pg_temp.answer(format('SELECT tq.%s_task(pg_temp.id(''nobody''))', f)) a;
SET tq.clock_offset = '25 hours';
SELECT f, state, a.* FROM unnest('{schedule,rerun,cancel}'::text[]) f, states,
	pg_temp.answer(format('SELECT tq.%s_task(pg_temp.id(''%s''))', f, left(f, 1) || place)) a ORDER BY f COLLATE "C", place;
RESET tq.clock_offset;
SELECT pg_temp.stored() = :'before' AS unchanged;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
