-- doc/spec/policy.md 3, 4, 10: other reports of a worker: the reasons
-- failed-terminal and canceled, errors, results; functions that read them; the views.
BEGIN;
\ir policy.psql

-- ---------------------------------------------------------------------------
-- resolve(…, 'failed-terminal')
-- ---------------------------------------------------------------------------

SAVEPOINT s;
SELECT pg_temp.running('plain'), pg_temp.running('policy', '{"policy": {"retryOn": ["failed", "worker-shutdown"], "deadLetter": true}}');
SELECT is(pg_temp.resolve('failed-terminal', 'plain', 'policy'), 'resolved resolved', 'failed-terminal: two runs');
SELECT is(pg_temp.look(n), 'failed 5: scheduled>failed/failed-terminal', 'failed-terminal: final, whatever retryOn lists; ' || n) FROM unnest('{plain,policy}'::text[]) AS n;
SELECT is(pg_temp.letters('test/q-policy'), 'policy failed-terminal', 'failed-terminal: a dead letter');
SELECT is(pg_temp.resolve('failed-terminal', 'plain', 'policy'), 'repeated repeated', 'failed-terminal: a repeat');
SELECT is(pg_temp.resolve('failed', 'plain', 'policy'), 'conflict conflict', 'failed-terminal: failed is another reason');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('plain'), 0)$$, 'TQ409', 'failed-terminal: also in the single form');
SELECT is(pg_temp.letters('test/q-policy'), 'policy failed-terminal', 'failed-terminal: one dead letter');
SELECT pg_temp.create('after', '{"$deps": ["plain"]}'), pg_temp.create('all', '{"$deps": ["plain"], "requires": "all-resolved"}');
SELECT is(pg_temp.look('after') || ' ' || pg_temp.look('all'), 'unscheduled 5: pending 5: scheduled>pending', 'failed-terminal: for dependents it is a failure');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('plain'))), 'pending 5: scheduled>failed/failed-terminal rerun>pending', 'failed-terminal: it can be rerun');
SELECT pg_temp.create('pending'), pg_temp.create('unscheduled', '{"$deps": ["unscheduled"]}');
SELECT is((SELECT string_agg(outcome, ' ' ORDER BY ordinality) FROM tq.resolve(pg_temp.ids('pending', 'unscheduled', 'nobody', 'policy'), '{0,0,0,1}', 'failed-terminal') WITH ORDINALITY AS r),
	'conflict not-found not-found not-found', 'failed-terminal: of a run that is not running');
SELECT pg_temp.running('x');
SELECT pg_temp.throws(format('SELECT tq.report_exception(pg_temp.id(''x''), 0, %L)', r), 'TQ400', 'report_exception is not for ' || r) FROM unnest('{failed-terminal,canceled,failed,skipped,pending-timeout,run-timeout,claim-expired}'::text[]) AS r;
SELECT pg_temp.throws(format('SELECT tq.resolve(pg_temp.ids(''x''), ''{0}'', %L)', r), 'TQ400', 'nor resolve() for ' || r) FROM unnest('{skipped,pending-timeout,run-timeout,claim-expired,deadline-exceeded,superseded,failure-retry}'::text[]) AS r;
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- resolve(…, 'canceled')
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('plain'), pg_temp.running('policy', '{"policy": {"retryOn": ["failed", "internal-error"], "deadLetter": true}}'), pg_temp.running('tolerated', '{"policy": {"onUnsuccessful": "tolerate"}}');
SELECT pg_temp.running('other', '{"policy": {"onUnsuccessful": "tolerate"}}');
SELECT pg_temp.create('after-' || n, jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{plain,tolerated,other}'::text[]) AS n;
SELECT is(pg_temp.resolve('canceled', 'plain', 'policy', 'tolerated'), 'resolved resolved resolved', 'canceled by the worker: three runs');
SELECT is(pg_temp.look(n), 'exception 5: scheduled>exception/canceled', 'canceled by the worker: final, ' || n) FROM unnest('{plain,policy,tolerated}'::text[]) AS n;
SELECT is(pg_temp.run('plain') ->> 'workerId', 'w1', 'canceled by the worker: which sends a message');
SELECT is(pg_temp.resolve('canceled', 'plain', 'tolerated'), 'repeated repeated', 'canceled by the worker: a repeat');
SELECT is(pg_temp.resolve('failed', 'plain'), 'conflict', 'canceled by the worker: another reason');
SELECT pg_temp.keeps($$SELECT tq.cancel_task(pg_temp.id('plain'))$$, 'plain', 'canceled by the worker: canceling it again changes nothing');
SELECT is(pg_temp.look('after-plain'), 'unscheduled 5:', 'canceled by the worker: dependents wait');
SELECT is(pg_temp.look('after-tolerated'), 'pending 5: scheduled>pending', 'canceled by the worker: unless that is tolerated');
SELECT is((SELECT count(*) FROM tq_internal.dead_letter), 0::bigint, 'canceled by the worker: no dead letter');
SELECT pg_temp.report('other', 'canceled');
SELECT is(pg_temp.look('after-other'), 'unscheduled 5:', 'canceled by a client: not tolerated by a policy');
SELECT is(pg_temp.look('other'), pg_temp.look('tolerated'), 'canceled by a client: the status is the same');
SELECT is(pg_temp.progress('tolerated') || ', ' || pg_temp.progress('other'), '1: e1 t1 canceled, 1: e1 canceled', 'but not to group_progress()');
SELECT pg_temp.create('late-' || n, jsonb_build_object('$deps', jsonb_build_array(n))) FROM unnest('{tolerated,other}'::text[]) AS n;
SELECT is(pg_temp.look('late-tolerated') || ', ' || pg_temp.look('late-other'), 'pending 5: scheduled>pending, unscheduled 5:', 'nor to dependents that are created later');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Errors
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('f'), pg_temp.running('e'), pg_temp.running('r'), pg_temp.running('none'), pg_temp.running('c');
SELECT is(pg_temp.line(tq.report_failed(pg_temp.id('f'), 0, '{"message": "no such file", "details": {"code": [1, null]}}')), 'failed 5: scheduled>failed/failed', 'error: with report_failed');
SELECT is(pg_temp.run('f') -> 'error', '{"message": "no such file", "details": {"code": [1, null]}}', 'error: the run shows it');
SELECT is(pg_temp.keys(pg_temp.run('f')), 'error reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'error: and nothing else');
SELECT is(pg_temp.line(tq.report_exception(pg_temp.id('e'), 0, 'internal-error', '{"message": "oops"}')), 'exception 5: scheduled>exception/internal-error', 'error: with report_exception');
SELECT is(pg_temp.run('e') -> 'error', '{"message": "oops"}', 'error: only a message');
SELECT is(pg_temp.line(tq.report_exception(task_id => pg_temp.id('r'), run_id => 0, reason => 'worker-shutdown', error => '{"details": 7}')), 'pending 4: scheduled>exception/worker-shutdown retry>pending', 'error: of a run that is retried, by name');
SELECT is(pg_temp.run('r', 0) -> 'error', '{"details": 7}', 'error: only details, which may be anything');
SELECT is(pg_temp.run('r', 1) ? 'error', false, 'error: the retry has none');
SELECT is(pg_temp.line(tq.report_failed(pg_temp.id('none'), 0, error => NULL)), 'failed 5: scheduled>failed/failed', 'error NULL: none');
SELECT is(pg_temp.run('none') ? 'error', false, 'error NULL: nor does the run show one');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('f'), 0, '{"message": "another"}')$$, 'f', 'error: a repeat with another changes nothing');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('f'), 0)$$, 'f', 'error: nor does one with none');
SELECT pg_temp.keeps($$SELECT tq.report_failed(pg_temp.id('none'), 0, '{"message": "later"}')$$, 'none', 'error: nor one that only a repeat has');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('c'), 0, jsonb_build_object('message', repeat('x', 70000)))$$, 'TQ400', 'error: 70,000 bytes are too many');
SELECT pg_temp.throws($$SELECT tq.report_exception(pg_temp.id('c'), 0, 'internal-error', jsonb_build_object('details', (SELECT jsonb_agg(n) FROM generate_series(1, 20000) AS n)))$$, 'TQ400', 'error: also of details');
SELECT is(pg_temp.state('c'), 'running', 'error: what was refused is still running');
SELECT is(tq.report_failed(pg_temp.id('c'), 0, jsonb_build_object('message', repeat('x', 60000))) ->> 'state', 'failed', 'error: 60,000 bytes are not');
SELECT is(length(pg_temp.run('c') #>> '{error,message}'), 60000, 'error: they are kept');
SELECT tq.rerun_task(pg_temp.id('f')) ->> 'state';
SELECT is(pg_temp.run('f', 0) #>> '{error,message}' || ' ' || (pg_temp.run('f', 1) ? 'error'), 'no such file false', 'error: a rerun leaves that of the run before');
SELECT pg_temp.work('f', 'completed');
SELECT is(pg_temp.run('f', 0) #>> '{error,message}', 'no such file', 'error: it stays');
ROLLBACK TO s;
-- any JSON, and error_message
CREATE FUNCTION pg_temp.failed_with(n int, args text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.running('any' || n);
	EXECUTE format('SELECT tq.report_failed(%L, 0, %s)', pg_temp.id('any' || n), args);
	RETURN pg_temp.run('any' || n) -> 'error';
END $$;
SELECT is(pg_temp.failed_with(n, args), expected::jsonb, 'error: ' || args) FROM (SELECT args, expected, row_number() OVER ()::int FROM (VALUES
	($$error => '"text"'$$, '"text"'), ($$error => '1.50'$$, '1.50'), ($$error => 'false'$$, 'false'), ($$error => '[]'$$, '[]'), ($$error => '{}'$$, '{}'),
	($$error => '[{"message": "x"}]'$$, '[{"message": "x"}]'), ($$error => '{"message": 1, "code": 2}'$$, '{"message": 1, "code": 2}'), ($$error => 'null'$$, NULL),
	($$error_message => 'no such file'$$, '{"message": "no such file"}'), ($$error_message => ''$$, '{"message": ""}'), ($$error_message => NULL$$, NULL),
	($$error_message => 'm', error => 'null'$$, '{"message": "m"}'), ($$error_message => 'm', error => '{"code": 2}'$$, '{"message": "m", "details": {"code": 2}}'),
	($$error_message => 'm', error => '{"message": "other"}'$$, '{"message": "m", "details": {"message": "other"}}'), ($$error_message => 'm', error => '"trace"'$$, '{"message": "m", "details": "trace"}')) AS v (args, expected)) AS w (args, expected, n);
SELECT pg_temp.running('ex', '{"policy": {"deadLetter": true}}');
SELECT is(tq.report_exception(pg_temp.id('ex'), 0, 'internal-error', error => '[1]', error_message => 'm') #> '{runDetails,0,error}', '{"message": "m", "details": [1]}', 'report_exception: error_message');
SELECT is(error, '{"message": "m", "details": [1]}', 'error_message: the dead letter has it') FROM tq.list_dead_letters('test/q-ex');
SELECT is(error, '{"message": "m", "details": [1]}', 'error_message: and the views') FROM tq.run_overview WHERE task_id = pg_temp.id('ex');
SELECT is((SELECT error FROM tq.failure_overview WHERE task_id = pg_temp.id('any1')), '"text"', 'error: a string in the views');
SELECT isnt(tq.why(pg_temp.id('any1'))::text, NULL, 'error: why() of a string');
-- a message that is too long is cut, so that both have 64 kB as JSON text
CREATE FUNCTION pg_temp.kept(error jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s, %s + %s, %s', octet_length(error::text), octet_length(error ->> 'message'), coalesce(octet_length(error -> 'details' ->> 'd'), 0), right(error ->> 'message', 10)) $$;
SELECT is(pg_temp.kept(pg_temp.failed_with(n, args)), expected, 'error_message: ' || args) FROM (SELECT args, expected, 100 + row_number() OVER ()::int FROM (VALUES
	($$error_message => repeat('y', 65521)$$, '65536, 65521 + 0, yyyyyyyyyy'), ($$error_message => repeat('y', 65522)$$, '65536, 65521 + 0, y... [cut]'),
	($$error_message => repeat('y', 9000000)$$, '65536, 65521 + 0, y... [cut]'), ($$error_message => repeat('é', 50000)$$, '65536, 65521 + 0, é... [cut]'),
	($$error_message => repeat('日本', 30000)$$, '65535, 65520 + 0, 日... [cut]'), ($$error_message => repeat('"', 50000)$$, '65536, 32765 + 0, "... [cut]'),
	($$error_message => repeat(E'\x01', 50000)$$, '65532, 10927 + 0, ' || E'\x01... [cut]'), ($$error_message => 'y' || repeat(E'\x01', 10920)$$, '65536, 10921 + 0, ' || repeat(E'\x01', 10)),
	($$error => jsonb_build_object('d', repeat('x', 40000)), error_message => repeat('y', 40000)$$, '65536, 25499 + 40000, y... [cut]'),
	($$error => jsonb_build_object('d', repeat('x', 65490)), error_message => repeat('y', 40000)$$, '65536, 9 + 65490, ... [cut]'),
	($$error => jsonb_build_object('d', repeat('x', 65490)), error_message => repeat('y', 9)$$, '65536, 9 + 65490, yyyyyyyyy')) AS v (args, expected)) AS w (args, expected, n);
SELECT pg_temp.running('big');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('big'), 0, error => to_jsonb(repeat('x', 65500)), error_message => 'a longer text')$$, 'TQ400', 'error: it is not cut, and must leave room');
SELECT is(pg_temp.state('big'), 'running', 'error: what was refused is still running');
-- a report that is refused for its content says how to report
SELECT is(pg_temp.error(call) ->> 'hint', hint, 'hint of ' || call) FROM (VALUES
	($$SELECT tq.report_failed(pg_temp.id('big'), 0, error => to_jsonb(repeat('x', 70000)))$$, 'Report without error, and say in error_message, which is cut, what went wrong. tq.create_artifact() keeps the rest.'),
	($$SELECT tq.report_completed(pg_temp.id('big'), 0, to_jsonb(repeat('x', 1100000)))$$, 'Report without result, or with a reference to where it is kept, such as an artifact of tq.create_artifact().'),
	($$SELECT tq.resolve(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('big'), 'runId', 0, 'reason', 'failed', 'error', repeat('x', 70000))))$$, 'No report of this call was stored. Repeat it without this "error", and say in "errorMessage", which is cut, what went wrong. tq.create_artifact() keeps the rest.'),
	($$SELECT tq.resolve(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('big'), 'runId', 0, 'result', repeat('x', 1100000))))$$, 'No report of this call was stored. Repeat it without this "result", or with a reference to where it is kept, such as an artifact of tq.create_artifact().')) AS v (call, hint);
SELECT tq.resolve(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('big'), 'runId', 0, 'reason', 'failed', 'errorMessage', repeat('y', 70000))));
SELECT is(pg_temp.kept(pg_temp.run('big') -> 'error'), '65536, 65521 + 0, y... [cut]', 'errorMessage is cut, too');
ROLLBACK TO s;
-- a failure that is retried; the dead letter has the last error
SELECT pg_temp.running('a', '{"policy": {"retryOn": ["failed"], "retries": 1, "deadLetter": true}}');
SELECT is(tq.report_failed(pg_temp.id('a'), 0, '{"message": "first"}') ->> 'state', 'pending', 'error: of a failure that is retried');
SELECT pg_temp.take('a');
SELECT is(tq.report_failed(pg_temp.id('a'), 1, '{"message": "second"}') ->> 'state', 'failed', 'error: and of the last');
SELECT is((SELECT string_agg(r #>> '{error,message}' || ' ' || coalesce(r ->> 'attempt', '-'), ', ') FROM jsonb_array_elements(tq.status(pg_temp.id('a')) -> 'runDetails') AS r), 'first -, second 1', 'error: each run has its own');
SELECT is(error, '{"message": "second"}', 'error: the dead letter has that of the last run') FROM tq.list_dead_letters('test/q-a');
SELECT is(runs -> 0 -> 'error', '{"message": "first"}', 'error: and its runs have theirs') FROM tq.list_dead_letters('test/q-a');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Results
-- ---------------------------------------------------------------------------

SELECT pg_temp.throws($$SELECT tq.result(pg_temp.id('nobody'))$$, 'TQ404', 'result: no such task');
SELECT pg_temp.create('unscheduled', '{"$deps": ["unscheduled"]}'), pg_temp.create('pending'), pg_temp.running('running');
SELECT is(tq.result(pg_temp.id(n)), NULL, 'result: none, ' || n) FROM unnest('{unscheduled,pending,running}'::text[]) AS n;
SELECT pg_temp.running('r' || n) FROM generate_series(1, 7) AS n;
SELECT is(tq.report_completed(pg_temp.id('r' || n), 0, result::jsonb) ->> 'state', 'completed', 'result: ' || result) FROM (VALUES (1, '{"rows": 7, "list": [1, null, "x"]}'), (2, '[]'), (3, '"text"'), (4, '12.50'), (5, 'false'), (6, '{}')) AS v (n, result);
SELECT is(tq.result(pg_temp.id('r' || n)), result::jsonb, 'result is as it was given: ' || result) FROM (VALUES (1, '{"rows": 7, "list": [1, null, "x"]}'), (2, '[]'), (3, '"text"'), (4, '12.50'), (5, 'false'), (6, '{}')) AS v (n, result);
SELECT is(tq.report_completed(task_id => pg_temp.id('r7'), run_id => 0, result => NULL) ->> 'state', 'completed', 'result NULL');
SELECT is(tq.result(pg_temp.id('r7')), NULL, 'result NULL: none');
SELECT is(pg_temp.keys(pg_temp.run('r1')), 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId', 'result: the status does not show it');
SELECT pg_temp.keeps($$SELECT tq.report_completed(pg_temp.id('r1'), 0, '"another"')$$, 'r1', 'result: a repeat with another changes nothing');
SELECT is(tq.result(pg_temp.id('r1')) -> 'rows', '7', 'result: the first stays');
SELECT pg_temp.keeps($$SELECT tq.report_completed(pg_temp.id('r7'), 0, '"another"')$$, 'r7', 'result: nor does one that only a repeat has');
SELECT is(tq.result(pg_temp.id('r7')), NULL, 'result: there is still none');
SELECT tq.rerun_task(pg_temp.id('r1')) ->> 'state';
SELECT is(tq.result(pg_temp.id('r1')), NULL, 'result: that of the last run, and a rerun has none yet');
SELECT pg_temp.take('r1');
SELECT is(tq.result(pg_temp.id('r1')), NULL, 'result: nor while it runs');
SELECT tq.report_completed(pg_temp.id('r1'), 1, '"second"') ->> 'state';
SELECT is(tq.result(pg_temp.id('r1')), '"second"', 'result: then its own');
SELECT tq.rerun_task(pg_temp.id('r1')) ->> 'state';
SELECT is(pg_temp.work('r1', 'failed'), 'failed 5: scheduled>completed/completed rerun>completed/completed rerun>failed/failed', 'result: a rerun that fails');
SELECT is(tq.result(pg_temp.id('r1')), NULL, 'result: has none');
-- limits
SET tq.max_inline_artifact = 1000;
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('running'), 0, to_jsonb(repeat('x', 2000)))$$, 'TQ400', 'result: greater than tq.max_inline_artifact');
SELECT is(pg_temp.state('running'), 'running', 'result: what was refused is still running');
RESET tq.max_inline_artifact;
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('running'), 0, to_jsonb(repeat('x', 1100000)))$$, 'TQ400', 'result: greater than 1 MB');
SELECT is(tq.report_completed(pg_temp.id('running'), 0, to_jsonb(repeat('x', 1000000))) ->> 'state', 'completed', 'result: nearly 1 MB');
SELECT is(length(tq.result(pg_temp.id('running')) #>> '{}'), 1000000, 'result: which is kept');
ROLLBACK TO s;
-- a refused report stores nothing
SELECT pg_temp.create('a');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('a'), 0, '1')$$, 'TQ409', 'result: of a task that is pending');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('a'), 0, '{"message": "x"}')$$, 'TQ409', 'error: of a task that is pending');
SELECT pg_temp.work('a', 'completed');
SELECT pg_temp.throws($$SELECT tq.report_failed(pg_temp.id('a'), 0, '{"message": "x"}')$$, 'TQ409', 'error: of a task that is completed');
SELECT is(tq.result(pg_temp.id('a')), NULL, 'result: its resolution had none');
ROLLBACK TO s;
-- with other details that the run has by its policy: a delay, an attempt, a deferral
SELECT pg_temp.create('a', '{"delay": 60, "policy": {"retryBackoff": {"delay": 60}}}');
SELECT pg_temp.pass('60 seconds');
SELECT pg_temp.take('a');
SELECT tq.defer_task(pg_temp.id('a'), 0, '60 seconds') ->> 'state';
SELECT pg_temp.pass('120 seconds');
SELECT pg_temp.take('a');
SELECT tq.report_exception(pg_temp.id('a'), 0, 'worker-shutdown', '{"message": "x"}') ->> 'state';
SELECT pg_temp.pass('180 seconds');
SELECT pg_temp.take('a');
SELECT tq.report_completed(pg_temp.id('a'), 1, '"y"') ->> 'state';
SELECT is(tq.result(pg_temp.id('a')), '"y"', 'result: of a delayed retry of a deferred run of a delayed task');
SELECT is(pg_temp.keys(pg_temp.run('a', 0)), 'error reasonCreated reasonResolved resolved runId scheduled started state takenUntil visibleAt workerGroup workerId', 'error: beside visibleAt');
SELECT is(pg_temp.keys(pg_temp.run('a', 1)), 'attempt reasonCreated reasonResolved resolved runId scheduled started state takenUntil visibleAt workerGroup workerId', 'result: beside visibleAt and attempt');
SELECT is(pg_temp.attempts('a') || ' ' || pg_temp.wait('a'), '0 1 00:01:00', 'result: which have not changed');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- dependency_results
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.results(name text) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(concat_ws(' ', pg_temp.name(task_id), state, result), ', ' ORDER BY ordinality), '')
	FROM tq.dependency_results(pg_temp.id(name)) WITH ORDINALITY AS r
$$;
SELECT pg_temp.throws($$SELECT tq.dependency_results(pg_temp.id('nobody'))$$, 'TQ404', 'dependency_results: no such task');
SELECT pg_temp.running(n) FROM unnest('{zz,aa,mm}'::text[]) AS n;
SELECT pg_temp.running('failed', '{"policy": {"onUnsuccessful": "tolerate"}}');
SELECT pg_temp.create('skipped'), pg_temp.create('pending'), pg_temp.create('self', '{"$deps": ["self"]}');
SELECT pg_temp.create('none'), pg_temp.create('d', '{"$deps": ["zz", "failed", "aa", "skipped", "mm", "pending"]}');
SELECT is(pg_temp.results('none'), '', 'dependency_results: it depends on nothing');
SELECT is(pg_temp.results('self'), 'self unscheduled', 'dependency_results: on itself');
SELECT is(pg_temp.results('d'), 'zz running, failed running, aa running, skipped pending, mm running, pending pending', 'dependency_results: states, in the order of its definition');
SELECT tq.report_completed(pg_temp.id('zz'), 0, '{"z": 1}') ->> 'state', tq.report_completed(pg_temp.id('aa'), 0, '[1]') ->> 'state', pg_temp.report('mm', 'completed'),
	tq.report_failed(pg_temp.id('failed'), 0, '{"message": "x"}') ->> 'state', tq.skip_task(pg_temp.id('skipped'), '"out"') ->> 'state';
SELECT is(pg_temp.results('d'), 'zz completed {"z": 1}, failed failed, aa completed [1], skipped completed "out", mm completed, pending pending', 'dependency_results: with results');
SELECT is((SELECT count(*) FROM tq.dependency_results(pg_temp.id('d')) WHERE result IS NULL), 3::bigint, 'dependency_results: NULL where there is none');
SELECT tq.rerun_task(pg_temp.id('zz')) ->> 'state';
SELECT is(pg_temp.results('d'), 'zz pending, failed failed, aa completed [1], skipped completed "out", mm completed, pending pending', 'dependency_results: of a rerun, its current state');
SELECT is((SELECT string_agg(pg_temp.name(d.task_id) || ' ' || d.state, ', ') FROM tq.claim_work('test/q-zz', 'wg', 'w1') AS c, tq.dependency_results(c.task_id) AS d), NULL, 'dependency_results: for a claimed task without dependencies');
ROLLBACK TO s;
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('m' || n)::text, 'task', pg_temp.def('m' || n, '{"taskQueueId": "test/m"}'))) FROM generate_series(1, 500) AS n)), 500::bigint, 'dependency_results: 500 tasks');
SELECT pg_temp.create('all', jsonb_build_object('$deps', (SELECT jsonb_agg('m' || n ORDER BY md5(n::text)) FROM generate_series(1, 500) AS n)));
CREATE TEMP TABLE claims AS SELECT * FROM tq.claim_work('test/m', 'wg', 'w1', 500);
SELECT count(tq.report_completed(task_id, run_id, payload)) FROM claims;
SELECT is((SELECT string_agg(result ->> 'task', ' ' ORDER BY ordinality) FROM tq.dependency_results(pg_temp.id('all')) WITH ORDINALITY AS r),
	(SELECT string_agg('m' || n, ' ' ORDER BY md5(n::text)) FROM generate_series(1, 500) AS n), 'dependency_results: 500, in order');
ROLLBACK TO s;

-- ---------------------------------------------------------------------------
-- Views
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('plain'), pg_temp.create('delayed', '{"delay": 600}'), pg_temp.create('unscheduled', '{"$deps": ["unscheduled"]}'), pg_temp.create('total', '{"policy": {"totalTimeout": 60}}'),
	pg_temp.running('deferred'), pg_temp.running('retried', '{"policy": {"retryBackoff": {"delay": 60}}}'), pg_temp.running('lost', '{"policy": {"claimTimeout": 0.001, "lostRetries": 1}}'),
	pg_temp.running('tolerated', '{"policy": {"onUnsuccessful": "tolerate"}}'), pg_temp.running('forgiven', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('blocked', '{"policy": {"onUnsuccessful": "block"}}'),
	pg_temp.running('canceled', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('given-up', '{"policy": {"onUnsuccessful": "forgive"}}'), pg_temp.running('completed', '{"policy": {"onUnsuccessful": "forgive"}}');
SELECT tq.defer_task(pg_temp.id('deferred'), 0, '10 minutes') ->> 'state', tq.report_exception(pg_temp.id('retried'), 0, 'worker-shutdown', '{"message": "x"}') ->> 'state', pg_temp.pass(),
	pg_temp.report('tolerated', 'failed'), pg_temp.report('forgiven', 'internal-error'), pg_temp.report('blocked', 'failed'), pg_temp.report('canceled', 'canceled'), pg_temp.resolve('canceled', 'given-up'),
	tq.report_completed(pg_temp.id('completed'), 0, '"r"') ->> 'state';
SELECT is((SELECT string_agg(concat_ws(' ', state, reason_resolved, 'attempt', attempt, 'after', visible_at - scheduled, error, result), ', ' ORDER BY run_id) FROM tq.run_overview WHERE task_id = pg_temp.id(n)), line, 'run_overview: ' || n)
FROM (VALUES ('plain', 'pending attempt 0 after 00:00:00'), ('delayed', 'pending attempt 0 after 00:10:00'), ('unscheduled', NULL),
	('retried', 'exception worker-shutdown attempt 0 after 00:00:00 {"message": "x"}, pending attempt 1 after 00:01:00'),
	('lost', 'exception claim-expired attempt 0 after 00:00:00, pending attempt 0 after 00:00:00'), ('completed', 'completed completed attempt 0 after 00:00:00 "r"')) AS v (n, line);
SELECT is((SELECT concat_ws(' ', state, worker_id, attempt, date_trunc('minutes', visible_at - started)) FROM tq.run_overview WHERE task_id = pg_temp.id('deferred')), 'pending w1 0 00:10:00', 'run_overview: deferred, with its last worker and when it was started');
SELECT is((SELECT concat_ws(' ', state, last_run_id, 'tolerated', tolerated::text) FROM tq.task_details WHERE task_id = pg_temp.id(n)), line, 'task_overview: ' || n) FROM (VALUES
	('plain', 'pending 0 tolerated false'), ('delayed', 'pending 0 tolerated false'), ('deferred', 'pending 0 tolerated false'), ('retried', 'pending 1 tolerated false'), ('tolerated', 'failed 0 tolerated true'),
	('forgiven', 'exception 0 tolerated true'), ('blocked', 'failed 0 tolerated false'), ('canceled', 'exception 0 tolerated false'), ('given-up', 'exception 0 tolerated true'), ('completed', 'completed 0 tolerated false')) AS v (n, line);
SELECT is((SELECT coalesce(tolerated, false) FROM tq.task_details WHERE task_id = pg_temp.id('unscheduled')), false, 'task_overview: unscheduled');
SELECT is((SELECT pg_temp.iso(visible_at) FROM tq.task_details WHERE task_id = pg_temp.id(n)), pg_temp.run(n) ->> 'visibleAt', 'task_overview: visible_at, ' || n) FROM unnest('{plain,delayed,deferred,retried,completed}'::text[]) AS n;
SELECT is((SELECT pg_temp.iso(deadline) FROM tq.task_details WHERE task_id = pg_temp.id(n)), tq.status(pg_temp.id(n)) ->> 'deadline', 'task_overview: the effective deadline, ' || n) FROM unnest('{plain,total}'::text[]) AS n;
SELECT is((SELECT count(*) FROM tq.task_details), (SELECT count(*) FROM tq_internal.task), 'task_overview: each task once');
ROLLBACK TO s;

SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'no section leaves rows');
SELECT * FROM finish();
ROLLBACK;
