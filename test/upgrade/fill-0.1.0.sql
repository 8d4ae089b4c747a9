-- Data of every kind, by the functions of 0.1.0.  Their ids are slugs of names.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE ROLE shop_app;
CREATE ROLE shop_team;
SELECT tq.grant_queue('shop_app', 'shop/*', 'produce');
SELECT tq.grant_queue('shop_app', 'shop/*', 'work');
SELECT tq.grant_queue('shop_team', 'shop/*', 'manage');
SELECT tq.grant_scopes('shop_team', '{queue:list-task-group:*}');
CREATE FUNCTION id(name text) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS 'SELECT tq.stable_slugid(name)';

-- Subscriptions, one of which has read a part.
SELECT tq.subscribe('read', 'task-pending');
SELECT tq.subscribe('unread', 'task-completed', '#');
SELECT tq.bind('shop_events', 'task-failed', '#');

-- A graph: completed, failed, blocked, pending and running parts.
SELECT tq.enqueue('shop/build', '{"n": 1}', task_id => id('a'), task_group_id => id('g'), tags => '{"kind": "root"}', name => 'root');
SELECT tq.enqueue('shop/build', '{"n": 2}', task_id => id('b'), task_group_id => id('g'), dependencies => ARRAY[id('a')], priority => 'high');
SELECT tq.enqueue('shop/test', '{"n": 3}', task_id => id('c'), task_group_id => id('g'), dependencies => ARRAY[id('a'), id('b')]);
SELECT tq.enqueue('shop/test', '{"n": 4}', task_id => id('d'), task_group_id => id('g'), dependencies => ARRAY[id('c')], requires => 'all-resolved');
SELECT tq.enqueue('shop/test', '{"n": 5}', task_id => id('e'), task_group_id => id('g'), dependencies => ARRAY[id('b')]);
SELECT count(*) FROM tq.claim_work('shop/build', 'rack', 'w1');
SELECT tq.create_artifact(id('a'), 0, 'public/log', jsonb_build_object('storageType', 'inline', 'contentType', 'application/json',
	'expires', to_char((now() + interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'content', '{"lines": 3}'::jsonb));
SELECT tq.report_progress(id('a'), 0, 1, 2, 'half');
SELECT tq.report_completed(id('a'), 0, result => '{"built": true}');
SELECT count(*) FROM tq.claim_work('shop/build', 'rack', 'w1');
SELECT tq.report_failed(id('b'), 0, error => '{"code": 7}');

-- A sealed group, resolved; one with a callback, unresolved.
SELECT tq.enqueue('shop/mail', '{}', task_id => id('s1'), task_group_id => id('sealed'));
SELECT tq.seal_task_group(id('sealed'));
SELECT tq.enqueue('shop/mail', '{}', task_id => id('k1'), task_group_id => id('callback'));
SELECT tq.on_group_resolved(id('callback'), 'shop/mail', '{"done": true}', task_id => id('k2'));

-- Retries, delays, dead letters, keys, limits.
SELECT tq.enqueue('shop/retry', '{"r": 1}', task_id => id('r1'), retry => 3);
SELECT count(*) FROM tq.claim_work('shop/retry', 'rack', 'w2');
SELECT tq.report_failed(id('r1'), 0, error_message => 'first try', retry_delay => '1 hour');
SELECT tq.enqueue('shop/later', '{}', task_id => id('l1'), delay => '2 hours');
SELECT tq.enqueue('shop/dead', '{"x": 1}', task_id => id('x1'), policy => '{"deadLetter": true}');
SELECT count(*) FROM tq.claim_work('shop/dead', 'rack', 'w2');
SELECT tq.report_failed(id('x1'), 0, error => '{"code": 9}');
SELECT tq.enqueue('shop/key', '{}', task_id => id('u1'), policy => '{"uniqueKey": "one"}');
SELECT tq.enqueue('shop/key', '{}', task_id => id('u2'), policy => '{"serialKey": "row"}');
SELECT tq.enqueue('shop/key', '{}', task_id => id('u3'), policy => '{"serialKey": "row"}');
SELECT tq.set_queue('shop/limited', '{"concurrentLimit": 1}');
SELECT tq.enqueue('shop/limited', '{}', task_id => id('m1'));
SELECT tq.enqueue('shop/limited', '{}', task_id => id('m2'));
SELECT count(*) FROM tq.claim_work('shop/limited', 'rack', 'w3', tasks => 2);
SELECT tq.enqueue('shop/paused', '{}', task_id => id('p1'));
SELECT tq.pause_queue('shop/paused');
SELECT tq.enqueue('shop/gone', '{}', task_id => id('c1'));
SELECT tq.cancel_task(id('c1'));
SELECT tq.define_task(id('f1'), '{"taskQueueId": "shop/defined", "created": "2026-01-01T00:00:00Z", "deadline": "2026-01-02T00:00:00Z", "payload": {},
	"metadata": {"name": "n", "description": "d", "owner": "o@example.com", "source": "https://example.com"}}'::jsonb
	|| jsonb_build_object('created', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
		'deadline', to_char((now() + interval '1 day') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
SELECT tq.declare_worker('shop', 'build', 'rack', 'w9', now() + interval '1 day');
SELECT tq.quarantine_worker('shop', 'build', 'rack', 'w1', '2033-01-01', 'too hot');
SELECT tq.enqueue_tasks('shop/bulk', ARRAY(SELECT jsonb_build_object('i', i) FROM generate_series(1, 500) i));
SELECT count(*) FROM tq.claim_work('shop/bulk', 'rack', 'w4', tasks => 10);
SELECT count(*) FROM tq.upkeep();
CREATE TABLE reader AS SELECT id FROM tq.fetch('read', 3);
SELECT tq.ack('read', max(id)) FROM reader;

-- A recurring task that has fired; a pg_cron that would be in another database.
SET cron.database_name = 'elsewhere';
SELECT tq.schedule_cron('nightly', '0 6 * * *', 'shop/cron', '{"at": "$scheduled"}', retries => 1, overlap => 'skip');
SELECT tq.fire_cron('nightly', '2026-01-01 06:00+00'), tq.fire_cron('nightly', '2026-01-02 06:00+00');

-- A table of the user's, which refers to tasks.
CREATE TABLE orders (task_id tq.slugid PRIMARY KEY DEFAULT tq.slugid(), n int);
INSERT INTO orders (n) SELECT generate_series(1, 3);
