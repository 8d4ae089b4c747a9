-- What users see of the data, by what both versions have.
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT 'status', tq.status(task_id) - '{runs,runDetails}'::text[] FROM tq_internal.task ORDER BY id;
SELECT 'run', t.task_id, jsonb_array_elements(tq.status(t.task_id) -> 'runs') - '{attempt,error,progress,result,resolvedBy,visibleAt}'::text[] FROM tq_internal.task t ORDER BY t.id;
SELECT 'details', r.task_id, r.run_id, r.state, r.attempt, r.visible_at, r.error, r.result, r.done, r.total, r.message, r.reported FROM tq.run_overview r ORDER BY r.task_id, r.run_id;
SELECT 'task', tq.task(task_id) FROM tq_internal.task ORDER BY id;
SELECT 'result', id(n), tq.result(id(n)) FROM unnest('{a,b,s1}'::text[]) AS n;
SELECT 'required', (tq.dependency_results(id('c'))).*;
SELECT 'group', g, (tq.get_task_group(id(g))) FROM unnest('{g,sealed,callback}'::text[]) AS g;
SELECT 'member', g, (tq.list_task_group(id(g))).task_id FROM unnest('{g,sealed,callback}'::text[]) AS g ORDER BY 2, 3;
SELECT 'dependent', (tq.list_dependent_tasks(id('a'))).task_id ORDER BY 2;
SELECT 'artifact', a FROM tq.list_artifacts(id('a'), 0) AS a;
SELECT 'content', tq.get_latest_artifact(id('a'), 'public/log');
SELECT 'dead letter', d.task_id, d.reason, d.error FROM tq.dead_letter_overview d ORDER BY 2;
SELECT 'queue', q.task_queue_id, q.pending, q.running, q.delayed FROM tq.queue_stats q ORDER BY 2;
SELECT 'worker', w.task_queue_id, w.worker_group, w.worker_id, w.quarantine_until FROM tq.worker_overview w ORDER BY 2, 3, 4;
SELECT 'dependency', d.task_id, d.required_task_id FROM tq.dependency_overview d ORDER BY 2, 3;
SELECT 'callback', c.task_group_id, c.task_id FROM tq.callback_overview c ORDER BY 2, 3;
SELECT 'key', k.* FROM tq_internal.unique_key k ORDER BY k.key;
SELECT 'settings', s.settings FROM tq_internal.queue_settings s ORDER BY s.queue;
SELECT 'message', m.id, m.exchange, m.routing_key FROM tq.messages(after => 0) AS m ORDER BY m.id;
SELECT 'unread', f.id, f.exchange, f.routing_key FROM tq.fetch('read', 1000) AS f ORDER BY f.id;
SELECT 'audit', a.function, a.role, a.arguments FROM tq.audit a ORDER BY a.at, a.function, a.arguments::text;
SELECT 'recurring', c.name, c.owner, c.schedule, c.task_queue_id, c.payload, c.options, c.overlap, c.last_scheduled, c.last_task_id, c.last_state, c.last_skipped IS NULL
	FROM tq.cron_overview c ORDER BY c.name;
SELECT 'binding', b.channel, b.exchange FROM tq.binding_overview b ORDER BY b.channel, b.exchange;
SELECT 'order', o.n, o.task_id FROM orders o ORDER BY o.n;
