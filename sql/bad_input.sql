-- Every argument of every function and procedure: NULL, empty, too long, malformed.  The right SQLSTATE, and nothing changed.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

SELECT tq.enqueue('regress/w', task_id => pg_temp.id('one'), task_group_id => pg_temp.id('group'));
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('two'), dependencies => ARRAY[pg_temp.id('two')], task_group_id => pg_temp.id('group'));
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('three'));
SELECT count(*) FROM tq.claim_work('regress/w', 'g', 'w', 1);
SET tq.credentials = on;
CREATE TEMP TABLE given AS SELECT credentials FROM tq.reclaim_task(pg_temp.id('one'), 0);
RESET tq.credentials;
SELECT tq.enqueue('regress/d', task_id => pg_temp.id('dead'), policy => '{"deadLetter": true}');
SELECT r.outcome FROM tq.claim_work('regress/d', 'g', 'w') c, tq.resolve(ARRAY[c.task_id], ARRAY[c.run_id], 'failed-terminal') r;
-- A pg_cron that is in another database
SET cron.database_name = 'elsewhere';
SET client_min_messages = warning;
SELECT active FROM tq.schedule_cron('recur', '* * * * *', 'regress/w');
SELECT pg_temp.stored() AS before \gset

-- A successful call of each function, argument by argument
CREATE TEMP TABLE call (fn text, place serial, arg text, good text);
INSERT INTO call (fn, arg, good) VALUES
	('create_task', 'task_id', $$'new_____QAGAAAAAAAAAAA'$$), ('create_task', 'task', $$pg_temp.def()$$),
	('create_tasks', 'tasks', $$jsonb_build_array(jsonb_build_object('taskId', 'new_____QAGAAAAAAAAAAA', 'task', pg_temp.def()))$$),
	('define_task', 'task_id', $$'new_____QAGAAAAAAAAAAA'$$), ('define_task', 'task', $$pg_temp.def()$$),
	('enqueue', 'task_queue_id', $$'regress/w'$$), ('enqueue', 'payload', $$'{"a": 1}'$$), ('enqueue', 'task_id', $$'new_____QAGAAAAAAAAAAA'$$),
	('enqueue', 'task_group_id', $$'newgroupQAGAAAAAAAAAAA'$$), ('enqueue', 'dependencies', $$'{three___QAGAAAAAAAAAAA}'$$), ('enqueue', 'requires', $$'all-resolved'$$),
	('enqueue', 'priority', $$'high'$$), ('enqueue', 'retries', $$3$$), ('enqueue', 'deadline', $$'1 hour'$$), ('enqueue', 'expires', $$'1 day'$$), ('enqueue', 'delay', $$'0'$$),
	('enqueue', 'routes', $$'{r}'$$), ('enqueue', 'scopes', $$'{s}'$$), ('enqueue', 'tags', $$'{"t": "u"}'$$), ('enqueue', 'extra', $$'{"e": 1}'$$), ('enqueue', 'name', $$'n'$$),
	('enqueue', 'scheduler_id', $$'s'$$), ('enqueue', 'project_id', $$'p'$$), ('enqueue', 'policy', $$NULL$$), ('enqueue', 'retry', $$NULL$$), ('enqueue', 'run_at', $$NULL$$),
	('enqueue_tasks', 'task_queue_id', $$'regress/w'$$), ('enqueue_tasks', 'payloads', $$ARRAY['{"a": 1}'::jsonb]$$), ('enqueue_tasks', 'task_ids', $$'{new_____QAGAAAAAAAAAAA}'$$),
	('enqueue_tasks', 'task_group_id', $$'newgroupQAGAAAAAAAAAAA'$$), ('enqueue_tasks', 'dependencies', $$'{three___QAGAAAAAAAAAAA}'$$), ('enqueue_tasks', 'requires', $$'all-resolved'$$),
	('enqueue_tasks', 'priority', $$'high'$$), ('enqueue_tasks', 'retries', $$3$$), ('enqueue_tasks', 'deadline', $$'1 hour'$$), ('enqueue_tasks', 'expires', $$'1 day'$$), ('enqueue_tasks', 'delay', $$'0'$$),
	('enqueue_tasks', 'routes', $$'{r}'$$), ('enqueue_tasks', 'scopes', $$'{s}'$$), ('enqueue_tasks', 'tags', $$'{"t": "u"}'$$), ('enqueue_tasks', 'extra', $$'{"e": 1}'$$), ('enqueue_tasks', 'name', $$'n'$$),
	('enqueue_tasks', 'scheduler_id', $$'s'$$), ('enqueue_tasks', 'project_id', $$'p'$$), ('enqueue_tasks', 'policy', $$NULL$$), ('enqueue_tasks', 'retry', $$NULL$$), ('enqueue_tasks', 'run_at', $$NULL$$),
	('schedule_cron', 'name', $$'recur'$$), ('schedule_cron', 'schedule', $$'* * * * *'$$), ('schedule_cron', 'task_queue_id', $$'regress/w'$$), ('schedule_cron', 'payload', $$'{"a": 1}'$$), ('schedule_cron', 'task_group_id', $$'newgroupQAGAAAAAAAAAAA'$$), ('schedule_cron', 'dependencies', $$'{three___QAGAAAAAAAAAAA}'$$), ('schedule_cron', 'requires', $$'all-resolved'$$), ('schedule_cron', 'priority', $$'high'$$), ('schedule_cron', 'retries', $$3$$), ('schedule_cron', 'deadline', $$'1 hour'$$), ('schedule_cron', 'expires', $$'1 day'$$), ('schedule_cron', 'delay', $$'0'$$), ('schedule_cron', 'routes', $$'{r}'$$), ('schedule_cron', 'scopes', $$'{s}'$$), ('schedule_cron', 'tags', $$'{"t": "u"}'$$), ('schedule_cron', 'extra', $$'{"e": 1}'$$), ('schedule_cron', 'scheduler_id', $$'s'$$), ('schedule_cron', 'project_id', $$'p'$$), ('schedule_cron', 'policy', $$NULL$$), ('schedule_cron', 'retry', $$NULL$$), ('schedule_cron', 'overlap', $$'skip'$$),
	('unschedule_cron', 'name', $$'recur'$$), ('pause_cron', 'name', $$'recur'$$), ('resume_cron', 'name', $$'recur'$$), ('run_cron_now', 'name', $$'recur'$$),
	('fire_cron', 'name', $$'recur'$$), ('fire_cron', 'scheduled', $$'2026-01-01'$$),
	('schedule_task', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('rerun_task', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('rerun_task', 'deadline', $$'1 hour'$$), ('rerun_task', 'downstream', $$true$$), ('add_dependencies', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('add_dependencies', 'dependencies', $$'{three___QAGAAAAAAAAAAA}'$$), ('reschedule_task', 'task_id', $$'three___QAGAAAAAAAAAAA'$$), ('reschedule_task', 'run_at', $$NULL$$), ('cancel_task', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$),
	('status', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('task', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$),
	('statuses', 'task_ids', $$'{two_____QAGAAAAAAAAAAA}'$$), ('tasks', 'task_ids', $$'{two_____QAGAAAAAAAAAAA}'$$),
	('list_dependent_tasks', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('list_dependent_tasks', 'after', $$'two_____QAGAAAAAAAAAAA'$$), ('list_dependent_tasks', 'max', $$10$$),
	('get_task_group', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$),
	('list_task_group', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('list_task_group', 'after', $$'one_____QAGAAAAAAAAAAA'$$), ('list_task_group', 'max', $$10$$),
	('seal_task_group', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('cancel_task_group', 'task_group_id', $$'sealed__QAGAAAAAAAAAAA'$$),
	('retry_task_group', 'task_group_id', $$'sealed__QAGAAAAAAAAAAA'$$), ('retry_task_group', 'deadline', $$'1 hour'$$), ('retry_task_group', 'reasons', $$'{failed}'$$), ('retry_task_group', 'downstream', $$true$$),
	('group_progress', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$),
	('report_html', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('report_html', 'max_nodes', $$10$$),
	('group_gantt', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('group_gantt', 'max_rows', $$10$$),
	('group_mermaid', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('group_mermaid', 'max_nodes', $$10$$), ('group_dot', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('group_dot', 'max_nodes', $$10$$), ('group_tree', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('group_tree', 'max_nodes', $$10$$),
	('on_group_resolved', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('on_group_resolved', 'task_queue_id', $$'regress/cb'$$), ('on_group_resolved', 'payload', $$'{"x": 1}'$$), ('on_group_resolved', 'task_id', $$'callbackQAGAAAAAAAAAAA'$$),
	('on_group_resolved', 'priority', $$'lowest'$$), ('on_group_resolved', 'retry', $$5$$), ('on_group_resolved', 'deadline', $$'1 day'$$), ('on_group_resolved', 'tags', $$'{}'$$), ('on_group_resolved', 'name', $$NULL$$), ('on_group_resolved', 'policy', $$NULL$$),
	('cancel_group_callbacks', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('cancel_group_callbacks', 'task_id', $$'callbackQAGAAAAAAAAAAA'$$),
	('claim_work', 'task_queue_id', $$'regress/w'$$), ('claim_work', 'worker_group', $$'g'$$), ('claim_work', 'worker_id', $$'w'$$), ('claim_work', 'tasks', $$1$$), ('claim_work', 'wait', $$'0'$$),
	('claim_work#2', 'task_queue_ids', $$'{regress/w,regress/*}'$$), ('claim_work#2', 'worker_group', $$'g'$$), ('claim_work#2', 'worker_id', $$'w'$$), ('claim_work#2', 'tasks', $$1$$), ('claim_work#2', 'wait', $$'0'$$), ('claim_work#2', 'mode', $$'strict'$$),
	('wait_for_work', 'task_queue_id', $$'regress/w'$$), ('wait_for_work', 'wait', $$'0'$$), ('wait_for_work#2', 'task_queue_ids', $$'{regress/w,regress/*}'$$), ('wait_for_work#2', 'wait', $$'0'$$),
	('wait_for_task', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('wait_for_task', 'wait', $$'0'$$), ('wait_for_task_group', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('wait_for_task_group', 'wait', $$'0'$$),
	('cancel_tasks', 'task_queue_id', $$'regress/w'$$), ('cancel_tasks', 'name', $$'n'$$), ('cancel_tasks', 'tags', $$'{"t": "u"}'$$), ('cancel_tasks', 'states', $$'{pending}'$$), ('cancel_tasks', 'max', $$10$$),
	('move_tasks', 'task_queue_id', $$'regress/w'$$), ('move_tasks', 'to_task_queue_id', $$'regress/v'$$), ('move_tasks', 'max', $$10$$), ('install_cron_upkeep', 'schedule', $$'* * * * *'$$),
	('claim_task', 'task_id', $$'three___QAGAAAAAAAAAAA'$$), ('claim_task', 'run_id', $$0$$), ('claim_task', 'worker_group', $$'g'$$), ('claim_task', 'worker_id', $$'w'$$),
	('reclaim_task', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('reclaim_task', 'run_id', $$0$$), ('reclaim_task', 'credentials', $$NULL$$), ('reclaim_task', 'wait', $$'0'$$),
	('report_completed', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('report_completed', 'run_id', $$0$$), ('report_completed', 'credentials', $$NULL$$), ('report_completed', 'result', $$'{"r": 1}'$$),
	('report_failed', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('report_failed', 'run_id', $$0$$), ('report_failed', 'credentials', $$NULL$$), ('report_failed', 'error', $$'{"message": "m", "details": [1]}'$$), ('report_failed', 'retry_delay', $$'1 s'$$), ('report_failed', 'retries_left', $$3$$), ('report_failed', 'error_message', $$'m'$$),
	('report_exception', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('report_exception', 'run_id', $$0$$), ('report_exception', 'reason', $$'internal-error'$$), ('report_exception', 'credentials', $$NULL$$), ('report_exception', 'error', $$'{"message": "m"}'$$), ('report_exception', 'retry_delay', $$'1 s'$$), ('report_exception', 'retries_left', $$3$$), ('report_exception', 'error_message', $$'m'$$),
	('defer_task', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('defer_task', 'run_id', $$0$$), ('defer_task', 'after', $$'1 minute'$$), ('defer_task', 'credentials', $$NULL$$),
	('report_progress', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('report_progress', 'run_id', $$0$$), ('report_progress', 'done', $$1$$), ('report_progress', 'total', $$2$$), ('report_progress', 'message', $$'m'$$), ('report_progress', 'credentials', $$NULL$$),
	('assume', 'credentials', $$(SELECT credentials FROM given)$$), ('rotate_secret', 'revoke', $$false$$),
	('grant_scopes', 'role', $$'pg_database_owner'$$), ('grant_scopes', 'scopes', $$'{s}'$$), ('revoke_scopes', 'role', $$'pg_database_owner'$$), ('revoke_scopes', 'scopes', $$'{s}'$$),
	('grant_queue', 'role', $$'pg_database_owner'$$), ('grant_queue', 'task_queue_id', $$'regress/w'$$), ('grant_queue', 'access', $$'read'$$),
	('revoke_queue', 'role', $$'pg_database_owner'$$), ('revoke_queue', 'task_queue_id', $$'regress/w'$$), ('revoke_queue', 'access', $$'read'$$),
	('satisfies', 'have', $$'{s}'$$), ('satisfies', 'required', $$'s'$$),
	('delete_task', 'task_id', $$'three___QAGAAAAAAAAAAA'$$),
	('purge', 'task_queue_id', $$'regress/d'$$), ('purge', 'states', $$'{failed}'$$), ('purge', 'older_than', $$'0'$$), ('purge', 'max', $$10$$),
	('skip_task', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('skip_task', 'output', $$'{"o": 1}'$$),
	('result', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('dependency_results', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$),
	('list_dead_letters', 'task_queue_id', $$'regress/d'$$), ('list_dead_letters', 'after', $$'a_______QAGAAAAAAAAAAA'$$), ('list_dead_letters', 'max', $$10$$),
	('redrive', 'task_id', $$'dead____QAGAAAAAAAAAAA'$$), ('redrive_queue', 'task_queue_id', $$'regress/d'$$), ('redrive_queue', 'max', $$10$$),
	('discard_dead_letter', 'task_id', $$'dead____QAGAAAAAAAAAAA'$$),
	('conductor_policy', 'task_def', $$'{"retryCount": 1}'$$), ('conductor_policy', 'workflow_task', $$'{"optional": true}'$$),
	('taskbroker_policy', 'activation', $$'{"processing_deadline_duration": 5}'$$),
	('claim_lines', 'task_queue_id', $$'regress/w'$$), ('claim_lines', 'worker_group', $$'g'$$), ('claim_lines', 'worker_id', $$'w'$$), ('claim_lines', 'tasks', $$1$$), ('claim_lines', 'wait', $$'0'$$),
	('claim_lines#2', 'task_queue_ids', $$'{regress/w,regress/*}'$$), ('claim_lines#2', 'worker_group', $$'g'$$), ('claim_lines#2', 'worker_id', $$'w'$$), ('claim_lines#2', 'tasks', $$1$$), ('claim_lines#2', 'wait', $$'0'$$), ('claim_lines#2', 'mode', $$'strict'$$),
	('conductor_status', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('taskbroker_status', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$),
	('rate_until', 'queue', $$1$$),
	('is_tolerated', 'policy', $$'{"onUnsuccessful": "forgive"}'$$), ('is_tolerated', 'reason', $$2$$),
	('resolve', 'task_ids', $$'{one_____QAGAAAAAAAAAAA}'$$), ('resolve', 'run_ids', $$'{0}'$$), ('resolve', 'reason', $$'failed'$$), ('resolve', 'credentials', $$NULL$$),
	('resolve_lines', 'runs', $$E'one_____QAGAAAAAAAAAAA\t0\n'$$), ('resolve_lines', 'reason', $$'failed'$$), ('resolve_lines', 'credentials', $$NULL$$),
	('resolve_and_claim', 'reports', $$'[{"taskId": "one_____QAGAAAAAAAAAAA", "runId": 0}]'$$), ('resolve_and_claim', 'task_queue_id', $$'regress/w'$$), ('resolve_and_claim', 'worker_group', $$'g'$$), ('resolve_and_claim', 'worker_id', $$'w'$$), ('resolve_and_claim', 'tasks', $$1$$),
	('quarantine_worker', 'provisioner_id', $$'regress'$$), ('quarantine_worker', 'worker_type', $$'w'$$), ('quarantine_worker', 'worker_group', $$'g'$$), ('quarantine_worker', 'worker_id', $$'w'$$),
	('quarantine_worker', 'quarantine_until', $$'2000-01-01'$$), ('quarantine_worker', 'quarantine_info', $$'info'$$),
	('get_worker', 'provisioner_id', $$'regress'$$), ('get_worker', 'worker_type', $$'w'$$), ('get_worker', 'worker_group', $$'g'$$), ('get_worker', 'worker_id', $$'w'$$),
	('top', 'max_rows', $$10$$), ('why', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('status_row', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('queue_counts', 'task_queue_id', $$'regress/w'$$),
	('set_queue', 'task_queue_id', $$'regress/w'$$), ('set_queue', 'settings', $$'{"claimTimeout": 60}'$$), ('get_queue_settings', 'task_queue_id', $$'regress/w'$$),
	('pause_queue', 'task_queue_id', $$'regress/w'$$), ('resume_queue', 'task_queue_id', $$'regress/w'$$),
	('pending_tasks', 'task_queue_id', $$'regress/w'$$), ('task_queue_counts', 'task_queue_id', $$'regress/w'$$),
	('list_pending_tasks', 'task_queue_id', $$'regress/w'$$), ('list_pending_tasks', 'after', $$'1'$$), ('list_pending_tasks', 'max', $$10$$),
	('list_claimed_tasks', 'task_queue_id', $$'regress/w'$$), ('list_claimed_tasks', 'after', $$'1.1'$$), ('list_claimed_tasks', 'max', $$10$$),
	('list_task_queues', 'after', $$'regress/d'$$), ('list_task_queues', 'max', $$10$$), ('get_task_queue', 'task_queue_id', $$'regress/w'$$),
	('list_worker_types', 'provisioner_id', $$'regress'$$), ('list_worker_types', 'after', $$'d'$$), ('list_worker_types', 'max', $$10$$),
	('get_worker_type', 'provisioner_id', $$'regress'$$), ('get_worker_type', 'worker_type', $$'w'$$),
	('list_provisioners', 'after', $$'a'$$), ('list_provisioners', 'max', $$10$$), ('get_provisioner', 'provisioner_id', $$'regress'$$),
	('list_workers', 'provisioner_id', $$'regress'$$), ('list_workers', 'worker_type', $$'w'$$), ('list_workers', 'quarantined', $$false$$), ('list_workers', 'after', $$'a/b'$$), ('list_workers', 'max', $$10$$),
	('declare_worker', 'provisioner_id', $$'regress'$$), ('declare_worker', 'worker_type', $$'w'$$), ('declare_worker', 'worker_group', $$'g'$$), ('declare_worker', 'worker_id', $$'w'$$), ('declare_worker', 'expires', $$'2000-01-01'$$),
	('worker_removed', 'provisioner_id', $$'regress'$$), ('worker_removed', 'worker_type', $$'w'$$), ('worker_removed', 'worker_group', $$'g'$$), ('worker_removed', 'worker_id', $$'w'$$), ('worker_removed', 'reason', $$'gone'$$),
	('slugid_from_uuid', '', $$'01234567-89ab-4cde-8123-456789abcdef'$$),
	('set_buckets', 'buckets', $$'{[0,1024)}'$$), ('buckets_settled', 'xid', $$'0'$$), ('has_task', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('has_task_group', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$),
	('slugid_in_bucket', 'bucket', $$7$$), ('bucket', 'id', $$'one_____QAGAAAAAAAAAAA'$$),
	('stable_slugid', 'name', $$'a name'$$),
	('change_task_priority', 'task_id', $$'two_____QAGAAAAAAAAAAA'$$), ('change_task_priority', 'priority', $$'high'$$),
	('change_task_group_priority', 'task_group_id', $$'group___QAGAAAAAAAAAAA'$$), ('change_task_group_priority', 'priority', $$'high'$$),
	('create_artifact', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('create_artifact', 'run_id', $$0$$), ('create_artifact', 'name', $$'new'$$),
	('create_artifact', 'artifact', $$jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'expires', now() + interval '1 hour', 'content', 'x')$$), ('create_artifact', 'credentials', $$NULL$$),
	('finish_artifact', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('finish_artifact', 'run_id', $$0$$), ('finish_artifact', 'name', $$'object'$$),
	('finish_artifact', 'upload_id', $$'upload__QAGAAAAAAAAAAA'$$), ('finish_artifact', 'credentials', $$NULL$$),
	('get_artifact', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('get_artifact', 'run_id', $$0$$), ('get_artifact', 'name', $$'inline'$$),
	('get_latest_artifact', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('get_latest_artifact', 'name', $$'inline'$$),
	('artifact_info', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('artifact_info', 'run_id', $$0$$), ('artifact_info', 'name', $$'inline'$$),
	('latest_artifact_info', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('latest_artifact_info', 'name', $$'inline'$$),
	('list_artifacts', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('list_artifacts', 'run_id', $$0$$), ('list_artifacts', 'after', $$'a'$$), ('list_artifacts', 'max', $$10$$),
	('list_latest_artifacts', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('list_latest_artifacts', 'after', $$'a'$$), ('list_latest_artifacts', 'max', $$10$$),
	('topic_match', 'pattern', $$'a.#'$$), ('topic_match', 'routing_key', $$'a.b'$$),
	('bind', 'channel', $$'regress'$$), ('bind', 'exchange', $$'task-defined'$$), ('bind', 'routing_key_pattern', $$'#'$$),
	('unbind', 'channel', $$'regress'$$), ('unbind', 'exchange', $$'task-defined'$$), ('unbind', 'pattern', $$'#'$$),
	('queue_channel', 'task_queue_id', $$'regress/w'$$), ('worker_channel', 'worker_group', $$'g'$$), ('worker_channel', 'worker_id', $$'w'$$),
	('messages', 'after', $$0$$), ('messages', 'max', $$1$$), ('messages', 'exchange', $$'task-defined'$$), ('messages', 'pattern', $$'#'$$),
	('message', 'id', $$(SELECT max(id) FROM tq.messages())$$),
	('subscribe', 'name', $$'new'$$), ('subscribe', 'exchange', $$'task-defined'$$), ('subscribe', 'pattern', $$'#'$$),
	('unsubscribe', 'name', $$'regress'$$), ('fetch', 'name', $$'regress'$$), ('fetch', 'max', $$1$$), ('ack', 'name', $$'regress'$$), ('ack', 'id', $$0$$),
	('group_slug', 'group_id', $$0$$), ('group_slug', 'task_id', $$'one_____QAGAAAAAAAAAAA'$$), ('group_number', 'task_group_id', $$'sealed__QAGAAAAAAAAAAA'$$),
	('short_count', 'given', $$12$$), ('short_age', 'given', $$'1 min'::interval$$),
	('shorten', 'given', $$'a b'$$), ('shorten', 'size', $$10$$), ('local_time', 'given', $$'2100-01-01'::timestamptz$$), ('may_see_statements', 'role', $$10$$),
	('is_awaited', 'xid', $$'1'$$), ('exchange_name', 'exchange', $$1$$),
	('state_name', 'state', $$1$$), ('reason_created_name', 'reason', $$1$$), ('reason_resolved_name', 'reason', $$1$$), ('priority_name', 'priority', $$1$$);
SELECT tq.enqueue('regress/s', task_id => pg_temp.id('seal'), task_group_id => pg_temp.id('sealed'));
SELECT tq.seal_task_group(pg_temp.id('sealed')) ? 'sealed' AS sealed;
SELECT tq.create_artifact(pg_temp.id('one'), 0, 'inline', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'expires', now() + interval '1 hour', 'content', 'x'));
SELECT tq.create_artifact(pg_temp.id('one'), 0, 'object', jsonb_build_object('storageType', 'object', 'contentType', 'text/plain', 'expires', now() + interval '1 hour', 'uploadId', 'upload__QAGAAAAAAAAAAA')) ->> 'uploadId' AS upload;
SELECT tq.subscribe('regress', 'task-defined');
DO $$ BEGIN
	WHILE NOT EXISTS (SELECT FROM tq.messages()) LOOP PERFORM tq.upkeep(); COMMIT; END LOOP;
END $$;
SELECT pg_temp.stored() AS before \gset

CREATE TEMP VIEW called_by_bodies AS
	SELECT oid, proname, proargtypes FROM pg_proc p WHERE pronamespace = 'tq_internal'::regnamespace AND (prosrc ~ '^tq_(sql|body)_' OR prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql'));
-- Functions with arguments that are not in the list, without those of the type, and those that only bodies of functions call: none
SELECT proname, pg_get_function_identity_arguments(oid) FROM pg_proc
WHERE (pronamespace = 'tq'::regnamespace OR pronamespace = 'tq_internal'::regnamespace AND oid NOT IN (SELECT oid FROM called_by_bodies)) AND prokind IN ('f', 'p') AND pronargs > 0 AND proname !~ '^slugid' AND NOT EXISTS (SELECT FROM call WHERE split_part(fn, '#', 1) = proname);
-- Arguments that are not in the list: none
SELECT proname, a FROM pg_proc, unnest(proargnames[1:pronargs]) a
WHERE (pronamespace = 'tq'::regnamespace OR pronamespace = 'tq_internal'::regnamespace AND oid NOT IN (SELECT oid FROM called_by_bodies)) AND prokind IN ('f', 'p') AND proname !~ '^slugid' AND NOT EXISTS (SELECT FROM call WHERE split_part(fn, '#', 1) = proname AND arg = a)
	AND (proname, a) NOT IN (('cancel_tasks', 'tasks'), ('move_tasks', 'tasks'))	-- what the procedure returns
	AND (proname, a) <> ('resolve', 'reports');	-- the argument of resolve_and_claim()

-- The call with one argument replaced; name#2 is the second form of a function
-- CALL may return nothing, which EXECUTE ... INTO refuses.
CREATE FUNCTION pg_temp.called(statement text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; RETURN NULL; END $$;
CREATE FUNCTION pg_temp.call(f text, a text DEFAULT NULL, value text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT format(CASE WHEN EXISTS (SELECT FROM pg_proc WHERE proname = split_part(f, '#', 1) AND prokind = 'p' AND pronamespace = 'tq'::regnamespace) THEN 'SELECT pg_temp.called($c$CALL %s.%I(%s)$c$)' ELSE 'SELECT * FROM %s.%I(%s)' END,
		(SELECT p.pronamespace::regnamespace FROM pg_proc p WHERE p.proname = split_part(f, '#', 1) AND p.pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) LIMIT 1), split_part(f, '#', 1), string_agg(CASE WHEN arg = '' THEN '' ELSE arg || ' => ' END
		|| CASE WHEN arg = a THEN value ELSE good END, ', ' ORDER BY place))
	FROM call WHERE fn = f $$;

-- Valid arguments only: each call succeeds, or is that of a procedure, which ends transactions and says so after it has checked its arguments
SELECT fn, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM (SELECT fn, min(place) AS place FROM call GROUP BY fn) f, pg_temp.answer(pg_temp.call(fn)) a ORDER BY place;

-- NULL
SELECT fn, arg, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, pg_temp.answer(pg_temp.call(fn, arg, 'NULL')) a WHERE good <> 'NULL' ORDER BY place;

-- The empty string, for texts; a text that is too long, a word with a point, one that is not ASCII
CREATE TEMP VIEW text_argument AS
	SELECT fn, place, arg FROM call JOIN pg_proc ON pronamespace IN ('tq'::regnamespace, 'tq_internal'::regnamespace) AND proname = split_part(fn, '#', 1) AND (fn LIKE '%#2') = ('task_queue_ids' = ANY (proargnames) IS TRUE)
	WHERE proargtypes[array_position(proargnames, arg) - 1] = 'text'::regtype;
SELECT fn, arg, code, CASE WHEN code <> 'ok' OR fn !~ '^list_(task_q|worker_t|prov)' THEN left(message, 50) END AS message FROM text_argument, pg_temp.answer(pg_temp.call(fn, arg, '''''')) a ORDER BY place;
SELECT fn, arg, code, CASE WHEN code <> 'ok' OR fn !~ '^list_(task_q|worker_t|prov)' THEN left(message, 50) END AS message FROM text_argument, pg_temp.answer(pg_temp.call(fn, arg, $$repeat('a', 100000)$$)) a ORDER BY place;
SELECT fn, arg, code, CASE WHEN code <> 'ok' OR fn !~ '^list_(task_q|worker_t|prov)' THEN left(message, 50) END AS message FROM text_argument, pg_temp.answer(pg_temp.call(fn, arg, $$'a.b/c d'$$)) a ORDER BY place;
SELECT fn, arg, code FROM text_argument, pg_temp.answer(pg_temp.call(fn, arg, $$U&'pr\00e4/\00e4'$$)) a
WHERE current_setting('server_encoding') = 'UTF8' ORDER BY place;

-- Numbers that are too small or too great
SELECT fn, arg, value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, unnest('{-2147483648,-1,0,1000,1001,2147483647}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE arg IN ('max', 'tasks', 'bucket', 'run_id', 'retries', 'retries_left') AND good ~ '^\d' ORDER BY place, value::bigint;
SELECT fn, value, code, message FROM call, unnest('{-2147483648,-1,0,1,7,8,16,17,2147483647}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE fn LIKE '%\_name' ORDER BY place, value::bigint;

-- Invalid slugids
SELECT value, code, message, detail, hint FROM unnest(ARRAY['', 'x', 'one_____QAGAAAAAAAAAA', 'one_____QAGAAAAAAAAAAAA', 'one_____QAGAAAAAAAAAAB', 'one_____AAGAAAAAAAAAAA',
	'one_____QAAAAAAAAAAAAA', 'one____ QAGAAAAAAAAAAA', 'one____+QAGAAAAAAAAAAA', 'one____.QAGAAAAAAAAAAA', '01234567-89ab-4cde-8123-456789abcdef']) value,
	pg_temp.answer(pg_temp.call('status', 'task_id', quote_literal(value))) a;
SELECT * FROM pg_temp.answer($$SELECT '01234567-89ab-1cde-8123-456789abcdef'::uuid::tq.slugid$$);

-- Ids that do not exist
SELECT fn, arg, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, pg_temp.answer(pg_temp.call(fn, arg, $$'nobody__QAGAAAAAAAAAAA'$$)) a
WHERE good ~ '^''\w{22}''$' ORDER BY place;

-- Arrays: empty, with NULL, of two dimensions
SELECT fn, arg, value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, unnest(ARRAY['''{}''', '''{NULL}''', '''{{one_____QAGAAAAAAAAAAA},{two_____QAGAAAAAAAAAAA}}''']) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE arg IN ('task_ids', 'task_queue_ids', 'dependencies', 'routes', 'scopes') ORDER BY place, value COLLATE "C";

-- Intervals and times
SELECT fn, arg, value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, unnest(ARRAY['''-1 second''', '''0''', '''1 millisecond''', '''6 days''', '''1 month''', '''100000 years''', '''-100000 years''', '''2147483647 days''', '''178000000 years''']) value, pg_temp.answer(pg_temp.call(fn, arg, value)) a
WHERE fn IN ('enqueue', 'defer_task', 'report_failed') AND arg IN ('deadline', 'expires', 'delay', 'after', 'retry_delay') ORDER BY place, value COLLATE "C";
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['''infinity''', '''-infinity''', '''294276-12-31''', '''4713-01-01 BC''']) value, pg_temp.answer(pg_temp.call('quarantine_worker', 'quarantine_until', value)) a;
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['''infinity''', '''-infinity''', '''294276-12-31''', '''4713-01-01 BC''']) value, pg_temp.answer(pg_temp.call('declare_worker', 'expires', value)) a;

-- JSON of the wrong type
SELECT fn, arg, value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM call, unnest(ARRAY['null', 'true', '1', '"x"', '[]', '[1]', '[[]]', '{}', '{"x": 1}']) value, pg_temp.answer(pg_temp.call(fn, arg, quote_literal(value))) a
WHERE arg IN ('task', 'tasks', 'reports', 'payload', 'tags', 'extra', 'error', 'result', 'output', 'task_def', 'workflow_task', 'activation') AND fn !~ '^claim_(work|lines)' AND (fn, arg) <> ('resolve_and_claim', 'tasks') ORDER BY place, value COLLATE "C";
SELECT fn, arg, code, message, count(*)
FROM call, unnest(ARRAY['null', 'true', '1', '"x"', '[]', '[1]', '[[]]', '{}', '{"x": 1}']) value, pg_temp.answer(pg_temp.call(fn, arg, quote_literal(value))) a
WHERE arg IN ('policy', 'credentials') GROUP BY place, fn, arg, code, message ORDER BY place, code COLLATE "C", message COLLATE "C";

-- Invalid words
SELECT arg, value, code, message, detail, hint FROM call, unnest('{normal,HIGH,all-completed-or-not}'::text[]) value, pg_temp.answer(pg_temp.call(fn, arg, quote_literal(value))) a
WHERE arg IN ('priority', 'requires') AND fn = 'enqueue' ORDER BY place, value COLLATE "C";

-- Task queue ids and worker ids
SELECT left(value, 50) AS value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM unnest(ARRAY['regress', 'regress/', '/w', 'a/b/c', 'a.b/w', 'regress/W', 'regress/1', 'regress/w-', 'regress/' || repeat('w', 38), 'regress/' || repeat('w', 39),
	repeat('r', 38) || '/w', repeat('r', 39) || '/w', 'A_-9/w', ' regress/w', 'regress/w ']) value,
	pg_temp.answer(pg_temp.call('enqueue', 'task_queue_id', quote_literal(value))) a;
SELECT value, code, CASE WHEN code <> 'ok' THEN message END AS message
FROM unnest(ARRAY[repeat('w', 128), repeat('w', 129), 'A_-9', 'a.b', 'a%2E', 'a/b', 'a b', '_']) value,
	pg_temp.answer(pg_temp.call('claim_work', 'worker_id', quote_literal(value))) a;

SELECT left(value, 50) AS value, code, CASE WHEN code <> 'ok' THEN message END AS message, detail, hint
FROM unnest(ARRAY['{*}', '{*/*}', '{regress*}', '{regress/w*}', '{regress/**}', '{/*}', '{regress/w,a/b/c}', '{""}', '{regress/w,regress/w,regress/*}',
	(SELECT array_agg('regress/' || n)::text FROM generate_series(1, 100) n), (SELECT array_agg('regress/' || n % 100)::text FROM generate_series(1, 1000) n),
	(SELECT array_agg('regress/' || n)::text FROM generate_series(1, 101) n)]) value,
	pg_temp.answer(pg_temp.call('claim_work#2', 'task_queue_ids', quote_literal(value))) a;
SELECT value, code, message, detail, hint FROM unnest(ARRAY['Strict', 'fair', '']) value, pg_temp.answer(pg_temp.call('claim_work#2', 'mode', quote_literal(value))) a;

-- Bytes that are not valid text
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue(convert_from('\xff', 'UTF8'))$$);
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\u0000"}')$$);
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\ud800"}')$$);
SELECT code FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', '{"a": "\ud83d\ude00"}')$$);
\set bad `printf "'regress/\377'"`
\set VERBOSITY sqlstate
SELECT tq.enqueue(:bad);
SELECT tq.claim_work('regress/w', :bad, 'w');
SET client_encoding = 'LATIN1';
SELECT tq.enqueue(:bad);
SELECT tq.claim_work('regress/w', 'g', :bad);
RESET client_encoding;
\set VERBOSITY default

-- One bad value for each argument, by its type: errors that do not name the argument, or do not show the value: none.
-- Arguments of other types are refused by the type itself.  What does not exist (TQ404) is named as what it is; credentials
-- are secret; two arguments exclude each other.
CREATE TEMP TABLE bad (type regtype, value text, shown text);
INSERT INTO bad VALUES ('text', $$' bad value*'$$, ' bad value*'), ('int', '-7', '-7'), ('bigint', '-7', '-7'), ('interval', $$'-7 days'$$, '-7 days'), ('interval', $$'-7 days'$$, '-604800'),
	('timestamptz', $$'infinity'$$, 'infinity'), ('jsonb', $$'"bad"'$$, '"bad"'), ('text[]', $$'{NULL}'$$, '1'), ('text[]', $$'{" bad value*"}'$$, ' bad value*'), ('slugid[]', $$'{NULL}'$$, '1'), ('int[]', $$'{-7}'$$, '-7'), ('jsonb[]', $$'{NULL}'$$, '1');
SELECT fn, arg, code, message, detail
FROM call JOIN pg_proc ON pronamespace = 'tq'::regnamespace AND proname = split_part(fn, '#', 1) AND (fn LIKE '%#2') = ('task_queue_ids' = ANY (proargnames) IS TRUE)
	JOIN (SELECT type, value, array_agg(shown) AS shown FROM bad GROUP BY 1, 2) b ON type = proargtypes[array_position(proargnames, arg) - 1], pg_temp.answer(pg_temp.call(fn, arg, value)) a, concat_ws(' ', message, detail) said
WHERE code NOT IN ('ok', 'TQ404') AND message !~ 'inside a transaction block' AND arg NOT IN ('credentials', 'retry') AND NOT (said ~ ('\m' || arg || '\M') AND EXISTS (SELECT FROM unnest(shown) s WHERE strpos(said, s) > 0)) ORDER BY place;

SELECT pg_temp.stored() = :'before' AS unchanged;

-- Not all in subtransactions: what state a failed statement leaves in a session
BEGIN;
SELECT tq.enqueue('regress/w', task_id => pg_temp.id('gone'), task_group_id => pg_temp.id('gone'), scheduler_id => 'gone');
SELECT tq.enqueue('regress/new', task_id => pg_temp.id('gone2'), dependencies => ARRAY[pg_temp.id('nobody')]);
ROLLBACK;
SELECT pg_temp.stored() = :'before' AS unchanged;
SELECT tq.enqueue('regress/new', task_id => pg_temp.id('gone2'), task_group_id => pg_temp.id('gone'), scheduler_id => 'here');

-- What only bodies call answers NULL, or refuses it
SELECT count(*) > 10 AS many, count(*) FILTER (WHERE code = '42883') AS missing
FROM called_by_bodies p, pg_temp.answer(format('SELECT * FROM tq_internal.%I(%s)', proname, (
	SELECT string_agg(format('NULL::%s', CASE t WHEN '"any"'::regtype THEN 'text' ELSE format_type(t, NULL) END), ', ') FROM unnest(proargtypes) t))) a;
DELETE FROM errors WHERE code !~ '^TQ4';

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
-- Errors that are neither tq's nor the server's own for invalid input: none
SELECT DISTINCT code, message FROM errors WHERE code !~ '^(TQ4|22)';
