-- doc/spec/taskcluster.md 2.1: enqueue, createTask for clients that write SQL.
BEGIN;
\ir helper.psql

-- Defaults
CREATE TEMP TABLE made AS SELECT tq.enqueue('test/enq') AS id;
SELECT is(pg_temp.line(tq.status(id)), 'pending 5: scheduled>pending', 'enqueue creates a pending task') FROM made;
SELECT is(pg_temp.keys(tq.task(id)), 'created dependencies extra metadata payload priority projectId provisionerId requires retries routes schedulerId scopes tags taskGroupId taskQueueId workerType',
	'enqueue: a definition like any other') FROM made;
SELECT is(tq.task(id) - '{created,deadline,expires,metadata}'::text[], jsonb_build_object('provisionerId', 'test', 'workerType', 'enq', 'taskQueueId', 'test/enq',
	'schedulerId', '-', 'projectId', 'none', 'taskGroupId', id::text, 'dependencies', '[]'::jsonb, 'requires', 'all-completed', 'routes', '[]'::jsonb,
	'priority', 'lowest', 'retries', 5, 'scopes', '[]'::jsonb, 'payload', '{}'::jsonb, 'tags', '{}'::jsonb, 'extra', '{}'::jsonb), 'enqueue: defaults') FROM made;
SELECT ok(pg_temp.near(tq.task(id) ->> 'created', pg_temp.clock()), 'enqueue: created now') FROM made;
SELECT tq.enqueue('test/d', task_id => pg_temp.id('d'), deadline => '1 day');
SELECT is((t ->> 'expires')::timestamptz, (t ->> 'deadline')::timestamptz + interval '30 days', 'enqueue: expires is the longer retention after the deadline') FROM tq.task(pg_temp.id('d')) AS t;
SELECT is(pg_temp.keys(tq.task(id) -> 'metadata'), 'description name owner source', 'enqueue: metadata has its four keys') FROM made;
SELECT ok(tq.task(id) #>> '{metadata,source}' ~ '^(https?://|ssh://|git@)', 'enqueue: source is of the required form') FROM made;
SELECT is(tq.create_task(pg_temp.id('d'), tq.task(pg_temp.id('d'))) ->> 'state', 'pending', 'enqueue: its definition is one for create_task, if it has a deadline');
SELECT isnt(tq.enqueue('test/enq')::text, tq.enqueue('test/enq')::text, 'enqueue: a new id each time');

-- Every argument
SELECT pg_temp.create('dep');
SELECT is(tq.enqueue(task_queue_id => 'test/enq2', payload => '{"a": [1]}', task_id => pg_temp.id('e'), task_group_id => pg_temp.id('g'),
	dependencies => pg_temp.ids('dep', 'e'), requires => 'all-resolved', priority => 'high', retries => 2, deadline => '2 hours', expires => '3 days',
	routes => '{r1,r2}', scopes => '{s1,s1}', tags => '{"t": "v"}', extra => '{"x": null}', name => 'e', scheduler_id => 'sched', project_id => 'proj')::text,
	pg_temp.id('e')::text, 'enqueue returns the id it was given');
SELECT is(tq.task(pg_temp.id('e')) - '{created,deadline,expires,metadata}'::text[], jsonb_build_object('provisionerId', 'test', 'workerType', 'enq2', 'taskQueueId', 'test/enq2',
	'schedulerId', 'sched', 'projectId', 'proj', 'taskGroupId', pg_temp.id('g')::text, 'dependencies', to_jsonb(ARRAY[pg_temp.id('dep')::text, pg_temp.id('e')::text]),
	'requires', 'all-resolved', 'routes', '["r1", "r2"]'::jsonb, 'priority', 'high', 'retries', 2, 'scopes', '["s1", "s1"]'::jsonb,
	'payload', '{"a": [1]}'::jsonb, 'tags', '{"t": "v"}'::jsonb, 'extra', '{"x": null}'::jsonb), 'enqueue: every argument is in the definition');
SELECT is(tq.task(pg_temp.id('e')) #>> '{metadata,name}', 'e', 'enqueue: name');
SELECT is((t ->> 'deadline')::timestamptz - (t ->> 'created')::timestamptz, interval '2 hours', 'enqueue: deadline') FROM tq.task(pg_temp.id('e')) AS t;
SELECT is((t ->> 'expires')::timestamptz - (t ->> 'deadline')::timestamptz, interval '3 days', 'enqueue: expires') FROM tq.task(pg_temp.id('e')) AS t;
SELECT is(pg_temp.look('e'), 'unscheduled 2:', 'enqueue: it waits for its dependencies');
SELECT is((SELECT payload FROM tq.claim_work('test/enq', 'wg', 'w1')), '{}'::jsonb, 'enqueue: the payload a worker gets');

-- The same checks
SELECT pg_temp.throws('SELECT tq.enqueue(' || args || ')', 'TQ400', 'enqueue refuses ' || args)
FROM unnest(ARRAY['''''', '''a b''', '''a.b/c''', '''t/q'', requires => ''any''',
	'''t/q'', priority => ''normal''', '''t/q'', retries => -1', '''t/q'', retries => 50', '''t/q'', deadline => ''8000 years''', '''t/q'', deadline => ''-1 minute''',
	'''t/q'', expires => ''-1 second''', '''t/q'', routes => ''{a,a}''', '''t/q'', routes => ''{""}''', '''t/q'', routes => ''{NULL}''',
	'''t/q'', scopes => ''{a**}''', '''t/q'', scopes => ''{NULL}''', '''t/q'', tags => ''{"a": 1}''', '''t/q'', tags => ''[]''', '''t/q'', extra => ''[]''',
	'''t/q'', name => repeat(''n'', 256)', '''t/q'', scheduler_id => ''''', '''t/q'', scheduler_id => ''a.b''', '''t/q'', project_id => ''a:b''',
	'''t/q'', dependencies => pg_temp.ids(''nobody'')', '''t/q'', dependencies => pg_temp.ids(''dep'', ''dep'')',
	'''t/q'', dependencies => ARRAY[NULL::tq.slugid]']) AS args;
SELECT pg_temp.throws($$SELECT tq.enqueue('test/enq2', task_id => pg_temp.id('e'))$$, 'TQ409', 'enqueue: an id that is used for another definition');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/enq2', task_group_id => pg_temp.id('g'))$$, 'TQ409', 'enqueue: another scheduler_id than the group''s');

SELECT * FROM finish();
ROLLBACK;
