-- ---------------------------------------------------------------------------
-- Health, and one screen of everything
-- ---------------------------------------------------------------------------

-- Messages that are not visible in the last tick, as many as health() counts.
-- The order makes the planner read the index: the log has no statistics.
CREATE VIEW tq_internal.unpublished AS
	WITH t AS (SELECT (SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1) AS upto)
	SELECT m.xid, m.seq
	FROM t CROSS JOIN LATERAL pg_snapshot_xip(t.upto) AS x (xid)
		CROSS JOIN LATERAL (SELECT m.xid, m.seq FROM tq_internal.message m WHERE m.xid = x.xid ORDER BY m.xid, m.seq LIMIT 10001) AS m
	UNION ALL
	SELECT m.xid, m.seq
	FROM t CROSS JOIN LATERAL (SELECT m.xid, m.seq FROM tq_internal.message m WHERE m.xid >= COALESCE(pg_snapshot_xmax(t.upto), '0') ORDER BY m.xid, m.seq LIMIT 10001) AS m
	UNION ALL
	SELECT u.xid, u.task FROM tq_internal.underived u;
COMMENT ON VIEW tq_internal.unpublished IS 'messages that wait for the publisher: the first 10,001 of each transaction that was in progress at the last tick, and of the later ones; and new tasks whose messages it derives';

-- When the first of each kind of timer is due.  Rows that have expired may wait.
CREATE VIEW tq_internal.first_due AS
	SELECT (SELECT c.due FROM tq_internal.claim_timer c ORDER BY c.due LIMIT 1) AS due
	UNION ALL
	SELECT (SELECT d.visible_at FROM tq_internal.delayed d ORDER BY d.visible_at LIMIT 1)
	UNION ALL
	SELECT (SELECT t.due FROM tq_internal.timer t WHERE t.kind = k ORDER BY t.due LIMIT 1)
	FROM (VALUES (1), (3), (4), (5), (6), (7), (8)) AS v (k);	-- TqTimer, without TQ_TIMER_EXPIRE
COMMENT ON VIEW tq_internal.first_due IS 'when the next deadline, timeout, claim expiry or delay of each kind is due';

-- Transactions that hold back vacuum in this database, as far as the caller may
-- see them.  VACUUM itself does not.
CREATE VIEW tq_internal.open_transaction AS
	SELECT format('process %s', a.pid) AS name, a.xact_start AS began, a.backend_type IS NULL AS hidden
	FROM pg_catalog.pg_stat_activity a
	WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		AND (a.backend_type IS NULL OR (a.xact_start IS NOT NULL AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)))
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v WHERE v.pid = a.pid)
	UNION ALL
	SELECT format('prepared %s', tq_internal.shorten(gid, 18)), prepared, false
	FROM pg_catalog.pg_prepared_xacts WHERE database = current_database();
COMMENT ON VIEW tq_internal.open_transaction IS 'transactions of this database that hold back vacuum';

-- Tables that autovacuum cleans; the message log is emptied by TRUNCATE.  A
-- table is neglected when vacuum has not come for ten minutes though it should
-- within one, and vacuum is in vain when a million dead rows stay, which is more
-- than a minute of the highest load leaves.
CREATE VIEW tq_internal.dead_rows AS
	SELECT s.relname, s.n_dead_tup AS dead, s.dead > 100000 AND s.vacuumed < tq_internal.clock_now() - interval '10 minutes' AS is_neglected,
		s.dead > 1000000 AS is_in_vain
	FROM (SELECT relname, n_dead_tup, CASE WHEN n_dead_tup > n_live_tup THEN n_dead_tup ELSE 0 END AS dead,
			COALESCE(greatest(last_vacuum, last_autovacuum), '-infinity') AS vacuumed
		FROM pg_catalog.pg_stat_all_tables
		WHERE schemaname = 'tq_internal' AND relname !~ '^(message|tick)_\d') AS s;
COMMENT ON VIEW tq_internal.dead_rows IS 'tables with their dead rows, and whether vacuum does not come or is in vain';

-- Rows that do not fit into memory are written where the tables are, a megabyte, and
-- the file is gone at once.  The error undoes the settings.
CREATE FUNCTION tq_internal.write_fault() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true), set_config('temp_file_limit', '-1', true), set_config('log_temp_files', '-1', true);
	PERFORM count(*) FROM generate_series(1, 40000);
	RAISE EXCEPTION USING ERRCODE = 'TQ999';
EXCEPTION WHEN SQLSTATE 'TQ999' THEN
	RETURN NULL;
WHEN OTHERS THEN
	RETURN regexp_replace(SQLERRM, '^.*: ', '');
END
$$;
COMMENT ON FUNCTION tq_internal.write_fault() IS 'why no file of this database can be written; NULL: one can';

CREATE FUNCTION tq_internal.health_limits(given jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	defaults CONSTANT jsonb := '{"lateness": "5 seconds", "subscriptions": "1 hour", "notifications": 0.1, "oldest pending": "1 hour", "queues": {},
		"expired claims": 100, "transactions": "10 minutes", "limits": "1 hour", "replay": "1 minute", "failures": 100, "disk": "8191 PB", "wraparound": 1000000000}';
	limits jsonb;
	unknown text;
BEGIN
	unknown := (SELECT min(k.key) FROM jsonb_object_keys(given) AS k (key) WHERE NOT defaults ? k.key);
	IF unknown IS NOT NULL THEN
		RAISE EXCEPTION 'there is no threshold "%"', tq_internal.clip(unknown) USING ERRCODE = 'TQ400', DETAIL = 'thresholds is ' || tq_internal.clip(given::text) || '.',
			HINT = 'Give ' || (SELECT string_agg(k.key, ', ' ORDER BY k.key) FROM jsonb_object_keys(defaults) AS k (key)) || '.';
	END IF;
	limits := defaults || jsonb_strip_nulls(given);
	PERFORM tq_internal.clock_now() - e.value::interval FROM jsonb_each_text(limits || (limits -> 'queues')) AS e
		WHERE e.key NOT IN ('queues', 'notifications', 'expired claims', 'failures', 'disk', 'wraparound');
	PERFORM (limits ->> 'notifications')::float8, (limits ->> 'expired claims')::bigint, (limits ->> 'failures')::int, (limits ->> 'wraparound')::bigint,
		pg_size_bytes(limits ->> 'disk');
	RETURN limits;
EXCEPTION WHEN data_exception THEN
	RAISE EXCEPTION 'invalid thresholds' USING ERRCODE = 'TQ400', DETAIL = SQLERRM || '; thresholds is ' || tq_internal.clip(given::text) || '.',
		HINT = 'Give an object such as {"oldest pending": "10 min", "queues": {"shop/nightly": "8 hours"}, "failures": 1000, "disk": "100 GB"}.';
END
$$;
COMMENT ON FUNCTION tq_internal.health_limits(jsonb) IS 'thresholds of health(): those given, and the default ones; raises TQ400 if one is invalid';

-- What goes with the next middle number of the version (doc/releasing.md), and what takes
-- its place.  So far nothing does.
CREATE FUNCTION tq_internal.deprecated() RETURNS TABLE (name text, instead text) LANGUAGE sql IMMUTABLE
	BEGIN ATOMIC
		SELECT d.name, d.instead FROM (VALUES (NULL::text, NULL::text)) AS d (name, instead) WHERE d.name IS NOT NULL;
	END;
COMMENT ON FUNCTION tq_internal.deprecated() IS 'functions and settings that go with the next version, and what takes their place';

-- What a session has been informed of is in a setting of its own, which is no secret.
CREATE FUNCTION tq_internal.say_deprecated(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	said text := coalesce(current_setting('tq_internal.said', true), '');
BEGIN
	IF strpos(said, name || ';') = 0 THEN
		PERFORM set_config('tq_internal.said', said || name || ';', false);
		RAISE NOTICE '% goes with the next version of tq', name
			USING HINT = (SELECT format('Use %s.', d.instead) FROM tq_internal.deprecated() d WHERE d.name = say_deprecated.name);
	END IF;
END
$$;
COMMENT ON FUNCTION tq_internal.say_deprecated(text) IS 'what a function that is deprecated() calls: a NOTICE, once in a session';

-- What an operator looks at first.  In psql the rows have at most 120 columns:
-- a detail has 51 characters, a hint 42.
CREATE FUNCTION tq_internal.health_check(limits jsonb) RETURNS TABLE (rank int, name text, ok bool, detail text, hint text) LANGUAGE sql
	BEGIN ATOMIC
		SELECT 1 AS rank, 'preload' AS name, p.loaded AS ok,
			CASE WHEN p.loaded THEN 'the server has preloaded tq' ELSE 'the server has not preloaded tq' END AS detail,
			'set shared_preload_libraries, restart' AS hint
		FROM (SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'tq.queue_slots') AS loaded) AS p	-- defined only then
		UNION ALL
		SELECT 0, 'version', v.library = v.sql, tq_internal.shorten(format('library %s, SQL %s%s', v.library, v.sql,
				(SELECT '; to go: ' || string_agg(d.name, ', ' ORDER BY d.name) FROM tq_internal.deprecated() d)), 50), 'ALTER EXTENSION tq UPDATE'
		FROM (SELECT tq_internal.library_version() AS library, (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'tq') AS sql) AS v
		UNION ALL
		SELECT 2, 'maintenance', a.state IN ('running', 'unused') OR pg_is_in_recovery(),
			CASE WHEN pg_is_in_recovery() THEN 'it begins when this standby is promoted'
				WHEN a.state = 'off' THEN 'tq.maintenance is off'
				WHEN a.state = 'unused' THEN 'it begins with the first call that writes'
				ELSE format('the maintenance worker is %s', a.state) END,
			CASE a.state WHEN 'off' THEN 'set tq.maintenance to on' ELSE 'see the server''s log, or call tq.upkeep()' END
		FROM tq_internal.maintenance_activity() a WHERE a.step = 'turn'
		UNION ALL
		SELECT 3, 'lateness', COALESCE(min(d.due) > tq_internal.clock_now() - (limits ->> 'lateness')::interval, true) OR pg_is_in_recovery(),
			CASE WHEN min(d.due) <= tq_internal.clock_now() THEN format('what is due has waited for %s', date_trunc('second', tq_internal.clock_now() - min(d.due)))
				ELSE 'nothing that is due waits' END,
			'see maintenance, steps'
		FROM tq_internal.first_due d
		UNION ALL
		SELECT 4, 'steps', count(*) = 0,
			COALESCE('failing: ' || tq_internal.shorten(string_agg(a.step, ', ' ORDER BY a.step), 42), 'no step fails'),
			'see error in tq.maintenance_overview'
		FROM tq_internal.maintenance_activity() a WHERE a.state = 'failing'
		UNION ALL
		SELECT 5, 'postponed', count(*) = 0,
			CASE WHEN count(*) = 0 THEN 'no step has failed for a task' ELSE format('tasks for which a step has failed: %s', count(*)) END,
			'see tq.postponed_overview'
		FROM tq_internal.postponed
		UNION ALL
		SELECT 6, 'worker slots', w.used < w.slots, format('%s of %s background workers are in use', w.used, w.slots),
			'raise max_worker_processes, restart'
		FROM (SELECT tq_internal.background_workers() AS used, current_setting('max_worker_processes')::int AS slots) AS w
		UNION ALL
		SELECT 7, 'publisher', count(*) <= 10000 OR pg_is_in_recovery(),
			format('%s%s rows of messages are not published', CASE WHEN count(*) > 10000 THEN 'more than ' ELSE '' END, least(count(*), 10000)),
			'see maintenance, steps; or it is behind'
		FROM (SELECT FROM tq_internal.unpublished LIMIT 10001) AS m
		UNION ALL
		SELECT 8, 'subscriptions', count(*) FILTER (WHERE s.late) = 0,
			COALESCE('unread: ' || tq_internal.shorten(string_agg(s.name, ', ' ORDER BY s.name) FILTER (WHERE s.late), 43),
				CASE WHEN count(*) = 0 THEN 'there are none' ELSE format('none of %s is unread for %s', count(*), limits ->> 'subscriptions') END),
			'read it, or tq.unsubscribe() it'
		FROM (SELECT name, COALESCE(oldest_unread < tq_internal.clock_now() - (limits ->> 'subscriptions')::interval, false) AS late FROM tq_internal.all_subscription_overview) AS s
		UNION ALL
		SELECT 9, 'notifications', pg_notification_queue_usage() < (limits ->> 'notifications')::float8,
			format('the notification queue is %s %% full', round(pg_notification_queue_usage()::numeric * 100)),
			'end the session that does not read it'
		UNION ALL
		SELECT 10, 'oldest pending', COALESCE(bool_and(NOT p.late), true),
			CASE WHEN count(*) = 0 THEN 'no run is pending'
				ELSE format('for %s in %s', date_trunc('second', (array_agg(tq_internal.clock_now() - p.scheduled ORDER BY p.late DESC, p.scheduled))[1]),
					tq_internal.shorten((array_agg(p.task_queue_id ORDER BY p.late DESC, p.scheduled))[1], 24)) END,
			'start workers; see tq.why() of a task'
		FROM (SELECT q.task_queue_id, p.scheduled,
				p.scheduled <= tq_internal.clock_now() - COALESCE(limits -> 'queues' ->> q.task_queue_id, limits ->> 'oldest pending')::interval AS late
			FROM tq_internal.queue q
				CROSS JOIN generate_series(1, 7) AS v (priority)
				CROSS JOIN LATERAL (SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = v.priority ORDER BY p.seq LIMIT 1) AS p) AS p
		UNION ALL
		SELECT 11, 'expired claims', COALESCE(x.claims <= (limits ->> 'expired claims')::numeric, true),
			COALESCE(x.claims || ' within an hour', 'not counted without a maintenance worker'),
			'workers have died, or reclaim too late'
		FROM (SELECT tq_internal.expired_claims() AS claims) AS x
		UNION ALL
		SELECT 12, 'transactions', COALESCE(min(t.began) > tq_internal.clock_now() - (limits ->> 'transactions')::interval, true),
			CASE WHEN count(t.began) = 0 THEN CASE WHEN bool_or(t.hidden) THEN 'none that you may see' ELSE 'none is open' END
				ELSE format('%s for %s', (array_agg(t.name ORDER BY t.began))[1], date_trunc('second', tq_internal.clock_now() - min(t.began))) END,
			'end it: it holds back vacuum'
		FROM tq_internal.open_transaction t
		UNION ALL
		SELECT 13, 'dead rows', NOT bool_or(d.is_neglected OR d.is_in_vain),
			format('%s in %s; %s in all', (array_agg(d.dead ORDER BY d.is_in_vain OR d.is_neglected DESC, d.dead DESC))[1],
				(array_agg(d.relname ORDER BY d.is_in_vain OR d.is_neglected DESC, d.dead DESC))[1],
				(SELECT pg_size_pretty(sum(pg_catalog.pg_total_relation_size(c.oid)))
				FROM pg_catalog.pg_class c WHERE c.relnamespace = 'tq_internal'::regnamespace AND c.relkind = 'r')),
			CASE WHEN bool_or(d.is_neglected) THEN 'vacuum does not come: is autovacuum on?' ELSE 'vacuum is in vain: see transactions' END
		FROM tq_internal.dead_rows d
		UNION ALL
		SELECT 14, 'paused', count(*) FILTER (WHERE s.waits) = 0,
			COALESCE(tq_internal.shorten(string_agg(s.task_queue_id, ', ' ORDER BY s.waits DESC, s.task_queue_id), 50), 'no queue is paused'),
			'tasks are pending: tq.resume_queue()'
		FROM (SELECT q.task_queue_id, EXISTS (SELECT FROM tq_internal.pending p WHERE p.queue = q.id) AS waits
			FROM tq_internal.queue_settings s JOIN tq_internal.queue q ON q.id = s.queue WHERE (s.settings -> 'paused')::bool) AS s
		UNION ALL
		SELECT 15, 'limits', COALESCE(min(s.oldest) > tq_internal.clock_now() - (limits ->> 'limits')::interval, true),
			COALESCE(tq_internal.shorten(string_agg(s.task_queue_id, ', ' ORDER BY s.oldest, s.task_queue_id), 50), 'no task waits for a concurrentLimit'),
			'it waits for long: more concurrentLimit'
		FROM (SELECT q.task_queue_id, p.oldest
			FROM tq_internal.queue_settings s JOIN tq_internal.queue q ON q.id = s.queue
				CROSS JOIN LATERAL (SELECT min(f.scheduled) AS oldest FROM generate_series(1, 7) AS y (priority) CROSS JOIN LATERAL (
					SELECT p.scheduled FROM tq_internal.pending p WHERE p.queue = q.id AND p.priority = y.priority ORDER BY p.seq LIMIT 1) AS f OFFSET 0) AS p
				CROSS JOIN LATERAL (SELECT c.running FROM tq_internal.queue_counters() AS c WHERE c.queue = q.id OFFSET 0) AS c
			WHERE (s.settings -> 'concurrentLimit')::int > 0 AND p.oldest IS NOT NULL AND c.running >= (s.settings -> 'concurrentLimit')::int) AS s
		UNION ALL
		SELECT 16, 'gates', COALESCE(min(t.due) > tq_internal.clock_now() - interval '5 s', true) OR pg_is_in_recovery(),
			CASE WHEN min(t.due) <= tq_internal.clock_now() THEN format('tasks with keys have waited for %s', date_trunc('second', tq_internal.clock_now() - min(t.due)))
				ELSE 'no key waits for maintenance' END,
			'see maintenance, steps'
		FROM (SELECT t.due FROM tq_internal.timer t WHERE t.kind = 7 ORDER BY t.due LIMIT 1) AS t	-- TQ_TIMER_GATE
		UNION ALL
		SELECT 17, 'replay', NOT r.is_standby OR r.is_current OR r.age < (limits ->> 'replay')::interval,
			CASE WHEN NOT r.is_standby THEN 'this server is no standby'
				WHEN r.is_current THEN 'all that this standby has received is replayed'
				WHEN r.last IS NULL THEN 'nothing has come since this standby was started'
				ELSE format('the last commit that is replayed is %s old', date_trunc('second', r.age)) END,
			'see pg_stat_wal_receiver; end long queries'
		FROM (SELECT pg_is_in_recovery() AS is_standby, l.last, tq_internal.clock_now() - COALESCE(l.last, pg_postmaster_start_time()) AS age,
			COALESCE(pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn(), false) AND EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver) AS is_current FROM (SELECT pg_last_xact_replay_timestamp() AS last) AS l) AS r
		UNION ALL
		SELECT 18, 'clock', COALESCE(a.ahead <= interval '1 s', true),
			CASE WHEN a.ahead > interval '1 s' THEN format('stored times are ahead of it by %s', date_trunc('second', a.ahead)) ELSE 'no stored time is ahead of it' END,
			'it was set back; see maintenance, steps'
		FROM tq_internal.clock_ahead a
		UNION ALL
		SELECT 19, 'listeners', true, format('default channels carry %s', CASE p.payload WHEN 'full' THEN 'full messages' WHEN 'ids' THEN 'ids' ELSE 'nothing' END),
			''
		FROM (SELECT CASE current_setting('tq.notify_payload') WHEN 'auto' THEN CASE WHEN tq_internal.is_shared() THEN 'ids' ELSE 'full' END
			ELSE current_setting('tq.notify_payload') END AS payload) AS p
		UNION ALL	-- while runs run there may be workers that have no time to ask
		SELECT 20, 'workers', COALESCE(bool_and(u.running > 0), true),
			CASE WHEN count(*) = 0 THEN format('workers ask for what is pending; %s wait', (SELECT count(*) FROM tq_internal.waiters() w WHERE w.queue IS NOT NULL))
				ELSE COALESCE('no worker has asked since ' || tq_internal.local_time((array_agg(u.asked ORDER BY u.running > 0, u.asked NULLS FIRST))[1]), 'no worker has ever asked')
					|| CASE WHEN count(*) > 1 THEN format(' (+%s)', count(*) - 1) ELSE '' END END,
			'start workers of ' || tq_internal.shorten((array_agg(u.task_queue_id ORDER BY u.running > 0, u.asked NULLS FIRST))[1], 24)
		FROM (SELECT a.task_queue_id, a.asked, COALESCE(c.running, 0) AS running
			FROM tq_internal.attended_queue a LEFT JOIN LATERAL (SELECT c.running FROM tq_internal.queue_counters() AS c WHERE c.queue = a.queue OFFSET 0) AS c ON true
			WHERE a.unattended) AS u
		UNION ALL
		SELECT 21, 'cron', count(f.fault) = 0,
			COALESCE(tq_internal.shorten(string_agg(f.name, ', ' ORDER BY f.name) FILTER (WHERE f.fault IS NOT NULL), 50), 'every recurring task may create tasks'),
			'see fault in tq.cron_overview'
		FROM tq_internal.cron_faults() f
		UNION ALL
		SELECT 22, 'policies', true,
			CASE WHEN count(*) = 0 THEN 'all that cancel a group have the role that needs it'
				ELSE format('cancel-group of dropped roles does nothing: %s', count(*)) END,
			''
		FROM (SELECT DISTINCT p.creator FROM tq_internal.policy p
			WHERE p.creator IS NOT NULL AND p.retired IS NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid = p.creator)) AS d
		UNION ALL	-- of the last 10,000, which may have been canceled, as many as the limit and one more
		SELECT 23, 'failures', count(*) <= (limits ->> 'failures')::int,
			CASE WHEN count(*) > (limits ->> 'failures')::int
				THEN format('more than %s in 10 minutes, in %s', limits ->> 'failures', tq_internal.shorten(mode() WITHIN GROUP (ORDER BY q.task_queue_id), 14))
				ELSE format('%s within 10 minutes', count(*)) END,
			'see tq.failure_overview'
		FROM (SELECT f.queue FROM (SELECT f.task, f.queue FROM tq_internal.failure f
				WHERE f.resolved > tq_internal.clock_now() - interval '10 minutes' ORDER BY f.resolved DESC LIMIT 10000) AS f
			WHERE (SELECT r.reason_resolved FROM tq_internal.run r WHERE r.task = f.task ORDER BY r.run_id DESC LIMIT 1) NOT IN (4, 16)	-- canceled
			LIMIT greatest((limits ->> 'failures')::int, 0)::bigint + 1) AS f
			JOIN tq_internal.queue q ON q.id = f.queue
		UNION ALL
		SELECT 24, 'disk', d.fault IS NULL AND d.size <= pg_size_bytes(limits ->> 'disk'),
			COALESCE('writes fail: ' || tq_internal.shorten(d.fault, 38), format('the database has %s', pg_size_pretty(d.size))),
			CASE WHEN d.fault IS NULL THEN 'add room, or keep less: see retention' ELSE 'make room: calls that write fail' END
		FROM (SELECT tq_internal.write_fault() AS fault, pg_database_size(current_database()) AS size) AS d
		UNION ALL
		SELECT 25, 'wraparound', greatest(w.xids, w.multixacts) <= (limits ->> 'wraparound')::bigint,
			format('%s million transactions are not frozen', greatest(w.xids, w.multixacts) / 1000000),
			'VACUUM (FREEZE); see transactions'
		FROM (SELECT age(d.datfrozenxid)::bigint AS xids, mxid_age(d.datminmxid)::bigint AS multixacts
			FROM pg_catalog.pg_database d WHERE d.datname = current_database()) AS w;
	END;
COMMENT ON FUNCTION tq_internal.health_check(jsonb) IS 'the rows of tq.health()';

CREATE FUNCTION tq.health(thresholds jsonb DEFAULT '{}') RETURNS TABLE (name text, ok bool, detail text, hint text)
	LANGUAGE tq_read AS $$
DECLARE
	was CONSTANT text := current_setting('jit');	-- it would cost a second
BEGIN
	PERFORM tq_internal.not_null(thresholds, 'thresholds'), tq_internal.require('queue:health'), set_config('jit', 'off', true);
	RETURN QUERY SELECT c.name, c.ok, c.detail, CASE WHEN NOT c.ok THEN c.hint END
		FROM tq_internal.health_check(tq_internal.health_limits(thresholds)) AS c ORDER BY c.rank;
	PERFORM set_config('jit', was, true);
END
$$;
COMMENT ON FUNCTION tq.health(jsonb) IS 'what keeps this database from working as it should: a row for each check, with a hint where it is not ok; thresholds of checks by name, others than the default ones';

-- ---- metrics ----

CREATE FUNCTION tq_internal.metric_label(name text, value text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_metric_label' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tq_internal.metric_label(text, text) IS 'a label of a metric, in which the value may have any character';

-- What tq.metrics() shows that is not of a queue.  Of subscriptions those with the first names.
CREATE VIEW tq_internal.other_metric AS
	WITH activity AS MATERIALIZED (SELECT * FROM tq_internal.maintenance_activity()), step AS (
		SELECT a.*, '{' || tq_internal.metric_label('step', a.step) || '} ' AS labels FROM activity a WHERE a.step <> 'turn'
	), subscription AS MATERIALIZED (
		SELECT '{' || tq_internal.metric_label('subscription', s.name) || '} ' AS labels, s.lost_before, t.last_id - s.acked_id AS unread,
			(SELECT k.published FROM tq_internal.tick k WHERE k.last_id > s.acked_id AND k.messages > 0 ORDER BY k.last_id LIMIT 1) AS oldest
		FROM (SELECT * FROM tq_internal.subscription ORDER BY name LIMIT current_setting('tq.metrics_queues')::int) AS s
			CROSS JOIN (SELECT tq_internal.published_id() AS last_id) AS t
	)
	SELECT 'tq_info' AS metric, 'gauge' AS kind, '1; the versions are its labels.' AS help,
		format('tq_info{%s,%s,%s} 1', tq_internal.metric_label('library', tq_internal.library_version()),
			tq_internal.metric_label('sql', (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'tq')),
			tq_internal.metric_label('postgresql', split_part(current_setting('server_version'), ' ', 1))) AS sample
	UNION ALL
	SELECT 'tq_maintenance_up', 'gauge', '1: the maintenance worker of this database runs; 0: it is absent, off, or not needed yet.',
		'tq_maintenance_up ' || (a.state = 'running')::int
	FROM activity a WHERE a.step = 'turn'
	UNION ALL
	SELECT 'tq_maintenance_batches_total', 'counter', 'Batches of a step of maintenance.', 'tq_maintenance_batches_total' || s.labels || s.batches FROM step s
	UNION ALL
	SELECT 'tq_maintenance_tasks_total', 'counter', 'Tasks, messages or rows that a step of maintenance has changed.', 'tq_maintenance_tasks_total' || s.labels || s.tasks FROM step s
	UNION ALL
	SELECT 'tq_maintenance_failures_total', 'counter', 'Failures of a step of maintenance.', 'tq_maintenance_failures_total' || s.labels || s.failures FROM step s
	UNION ALL
	SELECT 'tq_maintenance_failing', 'gauge', '1: the last batch of the step has failed.', 'tq_maintenance_failing' || s.labels || (s.state = 'failing')::int FROM step s
	UNION ALL
	SELECT 'tq_maintenance_late_seconds', 'gauge', 'How late the last batch of the step was.',
		'tq_maintenance_late_seconds' || s.labels || COALESCE(extract(epoch FROM s.last_late), 0) FROM step s
	UNION ALL
	SELECT 'tq_postponed_tasks', 'gauge', 'Tasks for which a step of maintenance has failed, 1000 at most.',
		'tq_postponed_tasks ' || (SELECT count(*) FROM (SELECT FROM tq_internal.postponed LIMIT 1000) AS p)
	UNION ALL
	SELECT 'tq_timers_late_seconds', 'gauge', 'How long the first deadline, timeout, claim or delay that is over has waited for maintenance.',
		'tq_timers_late_seconds ' || COALESCE(greatest(extract(epoch FROM tq_internal.clock_now() - min(d.due)), 0), 0) FROM tq_internal.first_due d
	UNION ALL
	SELECT 'tq_outbox_messages', 'gauge', 'Rows of messages, and new tasks whose messages are derived, that are not published; 1000 at most.', 'tq_outbox_messages ' || count(*)
	FROM (SELECT FROM tq_internal.unpublished LIMIT 1000) AS m
	UNION ALL
	SELECT 'tq_publisher_lag_seconds', 'gauge', 'How long ago messages were last published while some wait; 0: none waits.',
		'tq_publisher_lag_seconds ' || CASE WHEN EXISTS (SELECT FROM tq_internal.unpublished) THEN COALESCE(greatest(extract(epoch FROM tq_internal.clock_now()
			- (SELECT k.published FROM tq_internal.tick k ORDER BY k.last_id DESC LIMIT 1)), 0), 0) ELSE 0 END
	UNION ALL
	SELECT 'tq_subscription_unread_messages', 'gauge', 'Messages of the log that the subscription has not acknowledged, whether they are for it or not.',
		'tq_subscription_unread_messages' || s.labels || s.unread FROM subscription s
	UNION ALL
	SELECT 'tq_subscription_lag_seconds', 'gauge', 'How long ago the first of them was published.',
		'tq_subscription_lag_seconds' || s.labels || COALESCE(greatest(extract(epoch FROM tq_internal.clock_now() - s.oldest), 0), 0) FROM subscription s
	UNION ALL
	SELECT 'tq_subscription_lost', 'gauge', '1: messages were dropped before the subscription has acknowledged them.',
		'tq_subscription_lost' || s.labels || (s.lost_before IS NOT NULL)::int FROM subscription s
	UNION ALL
	SELECT 'tq_dead_letters', 'gauge', 'Dead letters, as the statistics of the server have them.',
		'tq_dead_letters ' || pg_catalog.pg_stat_get_live_tuples('tq_internal.dead_letter'::regclass)
	UNION ALL
	SELECT 'tq_notification_queue_usage_ratio', 'gauge', 'How full the queue of NOTIFY is, from 0 to 1.', 'tq_notification_queue_usage_ratio ' || pg_notification_queue_usage()
	UNION ALL
	SELECT 'tq_standby', 'gauge', '1: the server is a standby.', 'tq_standby ' || pg_is_in_recovery()::int;
COMMENT ON VIEW tq_internal.other_metric IS 'samples of tq.metrics() that are not of a queue';

CREATE FUNCTION tq.metrics() RETURNS text
	AS 'MODULE_PATHNAME', 'tq_metrics' LANGUAGE C;
COMMENT ON FUNCTION tq.metrics() IS 'what the server counts, in the text form of Prometheus; a queue beyond the first tq.metrics_queues counts as queue="other"';

-- A number in at most 7 characters, and a time in at most 5.
CREATE FUNCTION tq_internal.short_count(given numeric) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN n < 100000 THEN n::text
			WHEN n < 100000000 THEN trunc(n / 1000) || 'k'
			ELSE trunc(n / 1000000) || 'M' END
		FROM round(given) AS n;
	END;
COMMENT ON FUNCTION tq_internal.short_count(numeric) IS 'a number as tq.top() shows it';

CREATE FUNCTION tq_internal.short_age(given interval) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE
	BEGIN ATOMIC
		SELECT CASE WHEN s < 0 THEN '0s'
			WHEN s < 100 THEN trunc(s) || 's'
			WHEN s < 6000 THEN trunc(s / 60) || 'm'
			WHEN s < 360000 THEN trunc(s / 3600) || 'h'
			ELSE trunc(s / 86400) || 'd' END
		FROM (SELECT extract(epoch FROM given)) AS x (s);
	END;
COMMENT ON FUNCTION tq_internal.short_age(interval) IS 'a time as tq.top() shows it';

-- Groups that may be in progress: new ones, and those of runs that are running.
-- There may be too many groups to look at all.
CREATE VIEW tq_internal.recent_group AS
	SELECT g.id, g.task_group_id, p.*
	FROM (SELECT id FROM (SELECT id FROM tq_internal.task_group ORDER BY id DESC LIMIT 20) AS n
		UNION SELECT t.group_id FROM (SELECT r.task FROM tq_internal.claimed_run r LIMIT 50) AS r JOIN tq_internal.task t ON t.id = r.task WHERE t.group_id IS NOT NULL) AS i
		JOIN tq_internal.task_group g ON g.id = i.id
		CROSS JOIN LATERAL tq_internal.group_progress(g.task_group_id) AS p
	WHERE p.outcome IS NULL AND p.tasks > 0;
COMMENT ON VIEW tq_internal.recent_group IS 'groups in progress that tq.top() shows';

CREATE VIEW tq_internal.reported_run AS
	SELECT t.task_id, t.group_id, q.task_queue_id, r.started, d.done, d.total, d.done::float8 / nullif(d.total, 0) AS share, d.reported
	FROM tq_internal.claimed_run r
		CROSS JOIN LATERAL (SELECT * FROM tq_internal.run_detail x WHERE r.has_detail AND x.task = r.task AND x.run_id = r.run_id OFFSET 0) AS d	-- not hashed
		JOIN tq_internal.task t ON t.id = r.task
		JOIN tq_internal.queue q ON q.id = t.queue
	WHERE d.reported IS NOT NULL;
COMMENT ON VIEW tq_internal.reported_run IS 'running runs with a progress that tq.top() shows; no text of theirs, because its callers need not see tasks';

-- A line of twenty characters, as high as its parts of the greatest.
CREATE FUNCTION tq_internal.spark(parts float8[]) RETURNS text
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT string_agg(CASE WHEN getdatabaseencoding() = 'UTF8' AND current_setting('client_encoding') = 'UTF8' THEN chr(9600 + c.level) ELSE substr('_.-:=+*#', c.level, 1) END, '' ORDER BY c.nth)
		FROM (SELECT p.nth, CASE WHEN p.part > 0 THEN 1 + ceil(7 * p.part / max(p.part) OVER ())::int ELSE 1 END AS level FROM unnest(parts) WITH ORDINALITY AS p (part, nth)) AS c;
	END;
COMMENT ON FUNCTION tq_internal.spark(float8[]) IS 'numbers as a line of a character for each, as tq.top() shows them';

CREATE VIEW tq_internal.queue_spark AS
	WITH half AS MATERIALIZED (	-- the half minute that has not
		SELECT date_bin('30 s', tq_internal.clock_now(), 'epoch') AS begun
	), stored AS MATERIALIZED (	-- of twenty half minutes, which have ended
		SELECT h.queue, date_bin('30 s', h.at, 'epoch') AS at, h.created, h.completed + h.failed + h.exception AS ended FROM tq_internal.queue_history h
		WHERE h.seconds = 10 AND h.at >= (SELECT begun - interval '10 min' FROM half) AND h.at < (SELECT begun FROM half)
	), part AS (	-- each has a row without anything
		SELECT s.* FROM stored s
		UNION ALL SELECT q.queue, half.begun - g.n * interval '30 s', 0, 0
			FROM (SELECT DISTINCT s.queue FROM stored s) AS q CROSS JOIN half CROSS JOIN generate_series(1, 20) AS g (n)
	), whole AS (
		SELECT p.queue, p.at, sum(p.created) / 30.0 AS created, sum(p.ended) / 30.0 AS ended FROM part p GROUP BY 1, 2
	), line AS (
		SELECT w.queue, tq_internal.spark(array_agg(w.created ORDER BY w.at)) AS created, max(w.created) AS max_created, tq_internal.spark(array_agg(w.ended ORDER BY w.at)) AS ended, max(w.ended) AS max_ended,
			sum(w.created + w.ended) AS done
		FROM whole w GROUP BY w.queue
	)
	SELECT q.task_queue_id, l.created, l.max_created, l.ended, l.max_ended, row_number() OVER (ORDER BY l.done DESC, q.task_queue_id) AS n FROM line l JOIN tq_internal.queue q ON q.id = l.queue;
COMMENT ON VIEW tq_internal.queue_spark IS 'what happened in queues in the last ten minutes, as tq.top() shows it';

-- The lines of tq.top(): section, number within it (0: a heading), line.  In
-- psql the rows have at most 100 columns.
CREATE VIEW tq_internal.screen AS
	WITH queue AS MATERIALIZED (
		SELECT s.*, row_number() OVER (ORDER BY s.pending + s.running DESC, s.blocked + s.delayed DESC, s.task_queue_id) AS n FROM tq_internal.all_queue_stats s
	), worker AS MATERIALIZED (
		SELECT w.*, row_number() OVER (ORDER BY w.running DESC, w.last_date_active DESC NULLS LAST, w.task_queue_id, w.worker_group, w.worker_id) AS n FROM tq_internal.all_worker_overview w
	), task_group AS MATERIALIZED (
		SELECT g.*, g.completed + g.failed + g.exception AS ended, row_number() OVER (ORDER BY g.running DESC, g.first_created DESC, g.task_group_id) AS n FROM tq_internal.recent_group g
	), spark AS MATERIALIZED (
		SELECT * FROM tq_internal.queue_spark
	), progress AS MATERIALIZED (
		SELECT p.*, row_number() OVER (ORDER BY p.started, p.task_id) AS n FROM tq_internal.reported_run p
	)
	SELECT 1 AS section, 0::bigint AS n, format('tq %s, %s: %s pending, %s running, %s delayed, %s blocked; %s/s in, %s/s out',
		(SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'tq'), tq_internal.local_time(tq_internal.clock_now()),
		tq_internal.short_count(COALESCE(sum(pending), 0)), tq_internal.short_count(COALESCE(sum(running), 0)), tq_internal.short_count(COALESCE(sum(delayed), 0)),
		tq_internal.short_count(COALESCE(sum(blocked), 0)), tq_internal.short_count(COALESCE(sum(created_per_s), 0)::numeric), tq_internal.short_count(COALESCE(sum(ended_per_s), 0)::numeric)) AS line
	FROM queue
	UNION ALL
	SELECT 2, 0, CASE WHEN bool_and(h.ok) THEN format('health: all %s checks are ok', count(*))
		ELSE 'health: not ok: ' || tq_internal.shorten(string_agg(h.name || ': ' || h.detail, '; ' ORDER BY h.rank) FILTER (WHERE NOT h.ok), 81) END
	FROM tq_internal.health_check(tq_internal.health_limits('{}')) h
	UNION ALL
	SELECT 2, row_number() OVER (ORDER BY q.last_date_active NULLS FIRST, q.task_queue_id),
		format('%s: no worker has asked%s; %s pending, %s running', tq_internal.shorten(q.task_queue_id, 25), COALESCE(' since ' || tq_internal.local_time(q.last_date_active), ''),
			tq_internal.short_count(q.pending), tq_internal.short_count(q.running))
	FROM queue q WHERE q.unattended
	UNION ALL SELECT 3, 0, ''
	UNION ALL
	SELECT 4, 0, rpad(format('QUEUE (%s)', count(*)), 34) || ' PENDING RUNNING DELAYED BLOCKED    IN/s   OUT/s  OLDEST WORKERS' FROM queue
	UNION ALL
	SELECT 5, q.n, rpad(tq_internal.shorten(q.task_queue_id, 25) || CASE WHEN q.paused THEN ' (paused)' ELSE '' END, 34)
		|| (SELECT string_agg(lpad(f.field, 8), '' ORDER BY f.i) FROM unnest(ARRAY[tq_internal.short_count(q.pending), tq_internal.short_count(q.running),
			tq_internal.short_count(q.delayed), tq_internal.short_count(q.blocked), tq_internal.short_count(q.created_per_s::numeric), tq_internal.short_count(q.ended_per_s::numeric),
			COALESCE(tq_internal.short_age(q.oldest_pending), '-'), tq_internal.short_count(q.workers)]) WITH ORDINALITY AS f (field, i))
	FROM queue q
	UNION ALL SELECT 6, 0, '' WHERE EXISTS (SELECT FROM spark)
	UNION ALL
	SELECT 7, 0, rpad('LAST TEN MINUTES', 36) || rpad('IN', 20) || '   MAX/s  ' || rpad('OUT', 20) || '   MAX/s' FROM spark HAVING count(*) > 0
	UNION ALL
	SELECT 8, s.n, rpad(tq_internal.shorten(s.task_queue_id, 34), 36) || s.created || lpad(tq_internal.short_count(s.max_created), 8) || '  ' || s.ended || lpad(tq_internal.short_count(s.max_ended), 8)
	FROM spark s
	UNION ALL SELECT 9, 0, ''
	UNION ALL
	SELECT 10, 0, rpad(format('WORKER (%s)', count(*)), 44) || rpad('QUEUE', 28) || rpad('STATE', 12) || ' RUNS   SEEN' FROM worker
	UNION ALL
	SELECT 11, w.n, rpad(tq_internal.shorten(w.worker_group || '/' || w.worker_id, 43), 44) || rpad(tq_internal.shorten(w.task_queue_id, 27), 28) || rpad(w.state, 12)
		|| lpad(tq_internal.short_count(w.running), 5) || lpad(COALESCE(tq_internal.short_age(tq_internal.clock_now() - w.last_date_active), '-'), 7)
	FROM worker w
	UNION ALL SELECT 12, 0, ''
	UNION ALL
	SELECT 13, 0, rpad(format('GROUP (%s in progress)', count(*)), 24) || rpad('# done, = of running tasks, x failed', 42) || '     DONE    TASKS RUNS FAILED' FROM task_group
	UNION ALL
	SELECT 14, g.n, rpad(g.task_group_id::text, 24) || '[' || rpad(repeat('#', (39 * g.completed / g.tasks)::int) || repeat('=', floor(39 * COALESCE((SELECT sum(p.share) FROM progress p WHERE p.group_id = g.id), 0) / g.tasks)::int)
			|| repeat('x', ceil(39.0 * (g.failed + g.exception) / g.tasks)::int), 39, '.') || '] '
		|| lpad(tq_internal.short_count(g.ended), 9) || lpad(tq_internal.short_count(g.tasks), 9) || lpad(tq_internal.short_count(g.running), 5) || lpad(tq_internal.short_count(g.failed + g.exception), 7)
	FROM task_group g
	UNION ALL SELECT 15, 0, '' WHERE EXISTS (SELECT FROM progress)
	UNION ALL
	SELECT 16, 0, rpad(format('PROGRESS (%s)', count(*)), 24) || rpad('QUEUE', 26) || rpad('# done', 25) || '  DONE  TOTAL   SEEN' FROM progress HAVING count(*) > 0
	UNION ALL
	SELECT 17, p.n, rpad(p.task_id::text, 24) || rpad(tq_internal.shorten(p.task_queue_id, 25), 26)
		|| '[' || rpad(repeat('#', COALESCE(floor(22 * p.share)::int, 0)), 22, '.') || '] '
		|| lpad(tq_internal.short_count(p.done), 6) || lpad(COALESCE(tq_internal.short_count(p.total), '-'), 7) || lpad(tq_internal.short_age(tq_internal.clock_now() - p.reported), 7)
	FROM progress p;
COMMENT ON VIEW tq_internal.screen IS 'the lines of tq.top()';

CREATE FUNCTION tq.top(max_rows int DEFAULT 10) RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tq_top' LANGUAGE C;
COMMENT ON FUNCTION tq.top(int) IS 'one screen for \watch: health, queues, workers, groups in progress and the progress of running tasks, in lines of at most 98 characters';
