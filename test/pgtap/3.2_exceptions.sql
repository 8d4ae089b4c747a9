-- doc/spec/taskcluster.md 3.2 and 3.3: reasons of exceptions, whether they are
-- retried, and what the new run shows.  worker-removed and superseded have no
-- producer.
BEGIN;
\ir helper.psql

-- Resolve the task's last run for this reason, by the producer of that reason.  The
-- task must have a deadline in 15 minutes or 2 hours.
CREATE FUNCTION pg_temp.produce(name text, reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	CASE reason
		WHEN 'canceled' THEN PERFORM tq.cancel_task(pg_temp.id(name));
		WHEN 'claim-expired' THEN
			PERFORM set_config('tq.clock_offset', '25 minutes', true);
			PERFORM tq.upkeep();
			PERFORM set_config('tq.clock_offset', '0', true);
		WHEN 'deadline-exceeded' THEN
			PERFORM set_config('tq.clock_offset', '16 minutes', true);
			PERFORM tq.upkeep();
			PERFORM set_config('tq.clock_offset', '0', true);
		ELSE PERFORM pg_temp.report(name, reason);
	END CASE;
END
$$;

CREATE TEMP TABLE reasons (reason text, created text);
INSERT INTO reasons VALUES ('malformed-payload', NULL), ('resource-unavailable', NULL), ('internal-error', NULL), ('canceled', NULL), ('deadline-exceeded', NULL),
	('worker-shutdown', 'retry'), ('intermittent-task', 'task-retry'), ('claim-expired', 'retry');

-- each alone in the database, so that upkeep() does nothing else
CREATE FUNCTION pg_temp.outcome(reason text, retries int) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	name text := reason || '-' || retries;
	line text;
BEGIN
	PERFORM pg_temp.running(name, jsonb_build_object('retries', retries, '$deadline', CASE reason WHEN 'deadline-exceeded' THEN '15 minutes' ELSE '2 hours' END));
	PERFORM pg_temp.produce(name, reason);
	line := pg_temp.look(name);
	IF line NOT LIKE 'exception%' THEN
		PERFORM tq.cancel_task(pg_temp.id(name));	-- does not affect the next
	END IF;
	RETURN line;
END
$$;
SELECT is(pg_temp.outcome(reason, 5), format('pending 4: scheduled>exception/%s %s>pending', reason, created),
	format('3.2 %s, retries left: %s', reason, created)) FROM reasons WHERE created IS NOT NULL;
SELECT is(pg_temp.outcome(reason, 5), format('exception 5: scheduled>exception/%s', reason), format('3.2 %s, retries left: final, retriesLeft stays', reason))
FROM reasons WHERE created IS NULL;
SELECT is(pg_temp.outcome(reason, 0), format('exception 0: scheduled>exception/%s', reason), format('3.2 %s, no retries left: final', reason)) FROM reasons;

-- all retries are used up, one by one, whatever the mixture of reasons
SELECT pg_temp.running('mix', '{"retries": 3, "$deadline": "2 hours"}');
SELECT pg_temp.produce('mix', 'claim-expired');
SELECT is(pg_temp.look('mix'), 'pending 2: scheduled>exception/claim-expired retry>pending', '3.2 the first retry');
SELECT pg_temp.take('mix');
SELECT pg_temp.produce('mix', 'worker-shutdown');
SELECT is(pg_temp.look('mix'), 'pending 1: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>pending', '3.2 the second');
SELECT pg_temp.take('mix');
SELECT pg_temp.produce('mix', 'intermittent-task');
SELECT is(pg_temp.look('mix'), 'pending 0: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>exception/intermittent-task task-retry>pending', '3.2 the third');
SELECT pg_temp.take('mix');
SELECT pg_temp.produce('mix', 'claim-expired');
SELECT is(pg_temp.look('mix'), 'exception 0: scheduled>exception/claim-expired retry>exception/worker-shutdown retry>exception/intermittent-task task-retry>exception/claim-expired',
	'3.2 and no more: final');

-- completed and failed are never retried
SELECT is(pg_temp.resolved('never', 'failed'), 'failed 5: scheduled>failed/failed', '3.2 failed is final');

-- 3.3 reasonCreated
SELECT pg_temp.create('dep', '{"$deadline": "2 hours"}');
SELECT is(pg_temp.create('s1'), 'pending 5: scheduled>pending', '3.3 scheduled, by createTask');
SELECT pg_temp.create('s2', '{"$deps": ["dep"]}');
SELECT pg_temp.create('s3', '{"$deps": ["dep"]}');
SELECT is(pg_temp.line(tq.schedule_task(pg_temp.id('s2'))), 'pending 5: scheduled>pending', '3.3 scheduled, by scheduleTask');
SELECT pg_temp.work('dep', 'completed');
SELECT is(pg_temp.look('s3'), 'pending 5: scheduled>pending', '3.3 scheduled, by its dependencies');
SELECT is(pg_temp.resolved('r1', 'worker-shutdown'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '3.3 retry, after worker-shutdown');
SELECT is(pg_temp.resolved('r2', 'intermittent-task'), 'pending 4: scheduled>exception/intermittent-task task-retry>pending', '3.3 task-retry, after intermittent-task');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('u'))), 'pending 5: rerun>pending', '3.3 rerun, by rerunTask');
SELECT pg_temp.create('e1', '{"$deps": ["e1"]}');
SELECT is(pg_temp.report('e1', 'canceled'), 'exception 5: exception>exception/canceled', '3.3 exception, by cancelTask of a task without runs');
SELECT pg_temp.create('e2', '{"$deps": ["e2"], "$deadline": "1 minute"}');
SELECT pg_temp.produce('e2', 'deadline-exceeded');
SELECT is(pg_temp.look('e2'), 'exception 5: exception>exception/deadline-exceeded', '3.3 exception, by the deadline of a task without runs');
SELECT pg_temp.take('s1');
SELECT is(pg_temp.run('s1') ->> 'reasonCreated', 'scheduled', '3.3 a claim does not change it');

SELECT * FROM finish();
ROLLBACK;
