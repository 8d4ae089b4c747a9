-- Rows of queues, workers and policies that have expired are deleted when nothing refers to them.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all
SET tq.message_retention = '1s';

-- Names, with whether a sweep has retired them
CREATE VIEW pg_temp.name AS
	SELECT 'queue ' || task_queue_id AS name, id, retired IS NOT NULL AS retired FROM tq_internal.queue WHERE task_queue_id ~ '^(gone|kept)'
	UNION ALL SELECT 'worker ' || q.task_queue_id || ' ' || worker_id, w.id, w.retired IS NOT NULL FROM tq_internal.worker w JOIN tq_internal.queue q ON q.id = w.queue WHERE task_queue_id ~ '^(gone|kept)'
	UNION ALL SELECT 'policy ' || (policy ->> 'claimTimeout'), id, retired IS NOT NULL FROM tq_internal.policy WHERE policy ->> 'claimTimeout' IN ('61', '62');
-- One sweep for each day from then on, until the condition holds
CREATE PROCEDURE pg_temp.sweep(days int, condition text) LANGUAGE plpgsql AS $$
DECLARE
	done bool;
BEGIN
	FOR i IN 0 .. 500 LOOP
		PERFORM set_config('tq.clock_offset', (days + 2 * i) || ' days', false);
		PERFORM tq.upkeep();
		COMMIT;
		EXECUTE 'SELECT ' || condition INTO done;
		COMMIT;
		EXIT WHEN done;
	END LOOP;
	PERFORM set_config('tq.clock_offset', '0', false);
END $$;

-- A task that expires soon, and one that stays for ten years
SELECT tq.enqueue('gone/q', task_id => pg_temp.id('short'), deadline => '1 hour', expires => '0', policy => '{"claimTimeout": 61}');
SELECT tq.enqueue('kept/q', task_id => pg_temp.id('long'), deadline => '1 hour', expires => '10 years', policy => '{"claimTimeout": 62}');
SELECT tq.enqueue('kept/q', task_id => pg_temp.id('second'), deadline => '1 hour', expires => '0', policy => '{"claimTimeout": 62}');
SELECT task_id FROM tq.claim_work('gone/q', 'g', 'brief');
SELECT task_id FROM tq.claim_work('kept/q', 'g', 'brief');
SELECT task_id FROM tq.claim_work('kept/q', 'g', 'other');
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('short'), 0));
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('long'), 0));
SELECT pg_temp.brief(tq.report_completed(pg_temp.id('second'), 0));
CREATE TEMP TABLE before AS SELECT * FROM pg_temp.name;
SELECT name, retired FROM before ORDER BY name COLLATE "C";

-- A row that nothing refers to is retired first, and is revived when it is used again: it
-- keeps its number.  The session has used it before.
CALL pg_temp.sweep(2, $$(SELECT retired FROM pg_temp.name WHERE name = 'policy 61')$$);
BEGIN;
SELECT tq.enqueue('gone/q', task_id => pg_temp.id('again'), policy => '{"claimTimeout": 61}');
SELECT n.name, n.id = b.id AS same, n.retired FROM pg_temp.name n JOIN before b USING (name) WHERE name = 'policy 61' ORDER BY n.id;
ROLLBACK;
SELECT name, retired FROM pg_temp.name WHERE name = 'policy 61';
CALL pg_temp.sweep(300, $$(SELECT retired FROM pg_temp.name WHERE name = 'worker gone/q brief')$$);
BEGIN;
SELECT count(*) FROM tq.claim_work('gone/q', 'g', 'brief');
SELECT n.name, n.id = b.id AS same, n.retired FROM pg_temp.name n JOIN before b USING (name) WHERE name = 'worker gone/q brief';
ROLLBACK;
CALL pg_temp.sweep(600, $$(SELECT retired FROM pg_temp.name WHERE name = 'queue gone/q')$$);
SELECT name FROM pg_temp.name WHERE name ~ 'gone|61';
BEGIN;
SELECT tq.enqueue('gone/q', task_id => pg_temp.id('again'));
SELECT n.name, n.id = b.id AS same, n.retired FROM pg_temp.name n JOIN before b USING (name) WHERE name ~ 'gone';
ROLLBACK;

-- Then it is deleted; what a task, a run or a worker refers to stays
CALL pg_temp.sweep(2000, $$NOT EXISTS (SELECT FROM tq_internal.queue WHERE task_queue_id = 'gone/q')$$);
SELECT name, retired FROM pg_temp.name ORDER BY name COLLATE "C";
SELECT pg_temp.brief(tq.status(pg_temp.id('long')));
SELECT tq.task(pg_temp.id('long')) #>> '{policy,claimTimeout}' AS policy;

-- The names can be used again, by a session that had the old numbers in its caches
SELECT tq.enqueue('gone/q', task_id => pg_temp.id('again'), policy => '{"claimTimeout": 61}');
SELECT task_id, run_id, worker_id FROM tq.claim_work('gone/q', 'g', 'brief');
SELECT pg_temp.brief(tq.status(pg_temp.id('again')));
SELECT tq.task(pg_temp.id('again')) #>> '{policy,claimTimeout}' AS policy;
SELECT n.name, n.id = b.id AS same, n.retired FROM pg_temp.name n JOIN before b USING (name) ORDER BY name COLLATE "C";

-- Nothing refers to a row that is not there
SELECT count(*) FROM tq_internal.task WHERE queue NOT IN (SELECT id FROM tq_internal.queue) OR policy NOT IN (SELECT id FROM tq_internal.policy);
SELECT count(*) FROM tq_internal.run WHERE worker NOT IN (SELECT id FROM tq_internal.worker);
