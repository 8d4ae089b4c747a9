-- doc/spec/taskcluster.md 2.0: one error names all faults of a definition, and of
-- the arguments of enqueue().
BEGIN;
\ir helper.psql

-- What is said of the only task does not name it.
CREATE FUNCTION pg_temp.fault(query text) RETURNS text
LANGUAGE sql AS $$ SELECT regexp_replace(pg_temp.refusal(query), ': Task "[^"]*": ', ': ') $$;

SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', priority => 'normal')$$),
	'invalid priority: priority must be highest, very-high, high, medium, low, very-low or lowest; it is "normal".', 'one fault of enqueue: its argument and value');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', priority => 'normal', requires => 'any', scheduler_id => 'a.b', project_id => '', routes => '{r,NULL}', scopes => '{a**}',
	tags => '{"t": 1, "u": "v"}', extra => '[]', name => repeat('n', 256), policy => '{"retries": -1}')$$),
	'10 faults in arguments: scheduler_id must be 1 to 38 letters, digits, "-" or "_"; it is "a.b"; project_id must be 1 to 500 letters, digits, ".", "_", "/" or "-"; it is ""; '
	'requires must be all-completed or all-resolved; it is "any"; priority must be highest, very-high, high, medium, low, very-low or lowest; it is "normal"; '
	'routes must not have a NULL element; item 2 is NULL; scopes must not have a scope that ends in "**"; it is "a**"; '
	'tags must be an object of strings of at most 4096 characters; that of "t" is 1; extra must be an object; it is []; name has 256 characters, and may have 255; it is "' || repeat('n', 100) || '..."; '
	'policy must have a "retries" that is a whole number from 0 to 2147483647, not -1.', 'ten faults of enqueue');
SELECT is(pg_temp.fault($$SELECT tq.enqueue_tasks('test/q', '{"{}"}', priority => 'normal', requires => 'any')$$) ~ '^2 faults in arguments: requires .*; priority ', true, 'enqueue_tasks');
SELECT is(pg_temp.fault($$SELECT pg_temp.create('a', '{"priority": "normal"}')$$),
	'invalid "priority" in task definition: "priority" must be highest, very-high, high, medium, low, very-low or lowest; it is "normal".', 'one fault of a definition');
SELECT is(pg_temp.fault($$SELECT tq.create_task(pg_temp.id('a'), '{"foo": 1, "bar": 2, "payload": 1, "metadata": [], "policy": 7, "delay": -1, "created": "now", "dependencies": ["x"], "routes": [1], "scopes": "s",
	"retries": 50, "provisionerId": "a b", "workerType": "w", "schedulerId": 1, "projectId": 2, "taskGroupId": "g", "tags": 1, "extra": 1}')$$) ~ '^17 faults in task definition: ', true, 'many faults of a definition');
SELECT is(pg_temp.fault($$SELECT tq.create_task(pg_temp.id('a'), '{}')$$),
	'5 faults in task definition: "taskQueueId" is required, or provisionerId and workerType; "payload" is required; "metadata" is required; "created" is required; "deadline" is required.', 'an empty definition');
SELECT is(pg_temp.fault($$SELECT tq.create_task(pg_temp.id('a'), '{"taskQueueId": 7, "policy": {"delay": 3}, "deadline": "x", "payload": 1, "metadata": 1, "created": 1}')$$),
	'5 faults in task definition: "taskQueueId" must be a string; it is 7; "payload" must be an object; it is 1; "metadata" must be an object; it is 1; "created" must be a string; it is 1; "deadline" must be a date-time such as 2026-01-31T12:00:00.000Z; it is "x".',
	'each value once');
SELECT is(pg_temp.fault(format('SELECT pg_temp.create(''a'', %L)', jsonb_build_object('scopes', (SELECT jsonb_agg('a**'::text) FROM generate_series(1, 50))))) ~ '; and 30 more\.$', true, 'a list that is too long is cut');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', deadline => '-6 days')$$), 'invalid deadline: deadline must not be negative; it is -518400 seconds.', 'a time: its value and unit');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', deadline => '7980 years')$$) ~ '^invalid deadline: deadline must be in or before the year 9999; it is ', true, 'a time: the limit');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', expires => '1 day')$$), 'invalid expires: expires counts from the deadline, and the task has none.', 'expires without a deadline');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', run_at => '9999-12-31 23:00+00')$$) ~ '^invalid run_at: run_at must be in or before the year 9999; it is 9999', true, 'run_at');
SELECT is(pg_temp.fault($$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a'), 'task', pg_temp.def('a') || '{"priority": 1, "requires": 1}')))$$) ~ '^2 faults', true, 'create_tasks');
SELECT is(pg_temp.fault($$SELECT tq.define_task(pg_temp.id('a'), pg_temp.def('a') || '{"priority": 1, "requires": 1}')$$) ~ '^2 faults', true, 'define_task');
SELECT is(pg_temp.fault($$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a'), 'task', pg_temp.def('a')), jsonb_build_object('taskId', pg_temp.id('b'), 'task', pg_temp.def('b') || '{"priority": 1}'),
	jsonb_build_object('taskId', pg_temp.id('c'), 'task', pg_temp.def('c') || '{"requires": 1, "deadline": "2000-01-01T00:00:00Z"}')))$$)
	~ format('^3 faults in task definition: Element 2, task "%s": "priority" must be a string; it is 1; element 3, task "%s": "requires" must be a string; it is 1; "deadline" must not be before "created", .*', pg_temp.id('b'), pg_temp.id('c')),
	true, 'all elements of create_tasks, with their numbers and ids');
SELECT is(pg_temp.fault($$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('a'), 'task', pg_temp.def('a')), jsonb_build_object('taskId', pg_temp.id('b'), 'task', pg_temp.def('b') || '{"created": "2000-01-01T00:00:00Z"}'),
	jsonb_build_object('taskId', pg_temp.id('c'), 'task', pg_temp.def('c') || '{"deadline": "2000-01-01T00:00:00Z"}')))$$)
	~ '^2 faults in task definition: Element 2, task .*: "created" must not be more than 15 minutes in the past; it is 2000.*; element 3, ', true, 'and their times');
SELECT is(pg_temp.fault(format($$SELECT tq.enqueue_tasks('test/q', ARRAY['1', NULL, '%s', '2']::jsonb[], priority => 'x', deadline => '-1 s')$$, to_json(repeat('x', 17000000))))
	~ '^4 faults in arguments: priority .*; deadline must not be negative; it is -1 seconds; element 2: payloads must not be NULL; element 3: payloads has 170000\d\d bytes, and may have \d+ \(tq.max_payload\)\.$', true, 'and of enqueue_tasks');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', tags => jsonb_build_object('a', repeat('x', 4000), 'b', 1), extra => jsonb_build_object('x', repeat('x', 2000000)), deadline => '-1 hour', expires => '-1 day', delay => '-1 s', retries => 50, priority => 'x')$$)
	~ '^7 faults in arguments: delay must not be negative; it is -1000 milliseconds; retries must be a number from 0 to 49; it is 50; priority .*; tags .*; extra has 2\d+ bytes, and may have 1048576 \(tq.max_extra\); deadline must not be negative; it is -3600 seconds; expires must not be negative; it is -86400 seconds\.$',
	true, 'sizes, times and numbers in one error');
SELECT is(pg_temp.fault($$SELECT tq.enqueue('test/q', policy => '{"retries": 3.5, "maxAttempts": 4, "claimTimeout": "soon", "retryBackoff": {"delay": -1, "wait": 5}}')$$),
	'invalid policy: policy must have a "retries" that is a whole number from 0 to 2147483647, not 3.5, and must not have the key "maxAttempts", '
	'and must have a "claimTimeout" that is from 0.001 to 2147483647 seconds, as a number or as interval text, not "soon", '
	'and must have a "retryBackoff" that is an object, which must not have the key "wait", and must have a "delay" that is from 0 to 2147483647 seconds, as a number or as interval text, not -1.', 'all of a policy');
SELECT is(pg_temp.fault($$SELECT tq.set_queue('test/q', '{"paused": 1, "concurrency": 3}')$$),
	'invalid settings of queue "test/q": They must have a "paused" that is true or false, not 1, and must not have the key "concurrency".', 'all of the settings of a queue');
SELECT is((SELECT count(*) FROM tq_internal.task), 0::bigint, 'nothing was created');

-- a key that is not known, with the nearest one that is, and a hint of all
SELECT is(pg_temp.detail(format('SELECT tq.enqueue(%L, policy => %L)', 'test/q', policy)), 'policy must not have the key ' || rest || '.', policy) FROM (VALUES
	('{"retry": 5}', '"retry", but may have "retries"'), ('{"claim_timeout": 5}', '"claim_timeout", but may have "claimTimeout"'), ('{"retryon": []}', '"retryon", but may have "retryOn"'),
	('{"dealy": 5}', '"dealy", but may have "delay"'), ('{"maxAttempts": 5}', '"maxAttempts"'), ('{"x": 5}', '"x"'), ('{"": 5}', '""'), (format('{"%s": 5}', repeat('é', 300)), '"' || repeat('é', 50) || '..."')) AS v (policy, rest);
SELECT is(pg_temp.detail($$SELECT tq.enqueue('test/q', policy => '{"retryBackoff": {"dellay": 5}}')$$), 'policy must have a "retryBackoff" that is an object, which must not have the key "dellay", but may have "delay".', 'within a key');
SELECT is(pg_temp.detail($$SELECT tq.set_queue('test/q', '{"concurentLimit": 5, "pause": true}')$$), 'They must not have the key "pause", but may have "paused", and must not have the key "concurentLimit", but may have "concurrentLimit".', 'settings of a queue');
SELECT matches(pg_temp.error($$SELECT tq.enqueue('test/q', policy => '{"retry": 5}')$$) ->> 'hint', '^The keys of a policy are retries, retryOn, .*; retry is an argument of tq\.enqueue\(\): retry => 5\.$', 'hint of a policy');
SELECT matches(pg_temp.error($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x', '{"policy": {"retry": 5}}'))$$) ->> 'hint', '^The keys of a policy are', 'of a definition');
SELECT matches(pg_temp.error(format('SELECT tq.set_queue(%L, %L)', 'test/q', settings)) ->> 'hint', '^The keys of settings are paused, .*, policy; one that is null is removed\. The keys of a policy are retries, .*\.$', 'of settings: ' || settings)
	FROM unnest('{"{\"pause\": true}", "{\"policy\": {\"retry\": 5}}"}'::text[]) AS settings;

-- a hint says what a key is that is left out, or what else leads out
SELECT is(pg_temp.error(query) ->> 'hint', hint, query) FROM (VALUES
	($$SELECT tq.enqueue('test/q', priority => 'normal')$$, 'Correct priority, or leave it out for lowest.'),
	($$SELECT tq.enqueue('test/q', deadline => '-1 s')$$, 'Correct deadline, or leave it out for none.'),
	($$SELECT tq.enqueue('test/q', deadline => '1 s', expires => '-1 s')$$, 'Correct expires, or leave it out for that of retention.'),
	($$SELECT tq.enqueue('test/q', scheduler_id => 'a.b')$$, 'Correct scheduler_id, or leave it out for "-".'),
	($$SELECT tq.enqueue('test/q', policy => '{"claimTimeout": "soon"}')$$, 'Give the key such a value, or leave it out for its default.'),
	($$SELECT tq.enqueue('test/q', policy => '{"claimTimeout": 2, "runTimeout": 1}')$$, 'Change one of the two keys, or leave it out.'),
	($$SELECT tq.set_queue('test/q', '{"maxPending": -1}')$$, 'Give the key such a value, or leave it out for its default.'),
	($$SELECT tq.enqueue_tasks('test/q', '{NULL}')$$, 'Leave the element out, or give the JSON value ''null''.'),
	($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x') || '{"priority": "normal"}')$$, 'Correct "priority", or leave it out for lowest, and send the definition again.'),
	($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x') - 'deadline')$$, 'Add it, and send the definition again.'),
	($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x') || '{"deadline": "x"}')$$, 'Correct "deadline" and send the definition again.'),
	($$SELECT tq.create_task(pg_temp.id('x'), pg_temp.def('x') || '{"retry": 5}')$$, 'Leave it out, or put it into "extra".')) AS v (query, hint);
SELECT * FROM finish();
ROLLBACK;
