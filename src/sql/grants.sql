-- ---------------------------------------------------------------------------
-- Grants
-- ---------------------------------------------------------------------------

-- The rights that ALTER DEFAULT PRIVILEGES gives away do not extend to tq.
DO $$
DECLARE
	grantee pg_catalog.text;
BEGIN
	FOR grantee IN
		SELECT DISTINCT pg_catalog.quote_ident(r.rolname)
		FROM (SELECT c.relacl AS acl FROM pg_catalog.pg_class c WHERE c.relnamespace IN ('tq'::pg_catalog.regnamespace, 'tq_internal'::pg_catalog.regnamespace)
			UNION ALL SELECT p.proacl FROM pg_catalog.pg_proc p WHERE p.pronamespace IN ('tq'::pg_catalog.regnamespace, 'tq_internal'::pg_catalog.regnamespace)
			UNION ALL SELECT n.nspacl FROM pg_catalog.pg_namespace n WHERE n.nspname = 'tq_internal') AS o
			CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) a
			JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
		WHERE r.rolname <> current_user
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL TABLES IN SCHEMA tq, tq_internal FROM %s', grantee);
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA tq, tq_internal FROM %s', grantee);
		EXECUTE pg_catalog.format('REVOKE ALL ON ALL ROUTINES IN SCHEMA tq, tq_internal FROM %s', grantee);
		EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA tq_internal FROM %s', grantee);
	END LOOP;
END
$$;
REVOKE ALL ON ALL TABLES IN SCHEMA tq, tq_internal FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA tq, tq_internal FROM PUBLIC;
REVOKE ALL ON SCHEMA tq_internal FROM PUBLIC;

-- Each function of schema tq checks the scopes of its caller.
REVOKE ALL ON ALL ROUTINES IN SCHEMA tq, tq_internal FROM PUBLIC;
GRANT USAGE ON SCHEMA tq TO PUBLIC;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA tq TO PUBLIC;
GRANT USAGE ON SCHEMA tq_internal TO PUBLIC;
DO $$	-- a column of the type of a row would keep its table from being altered
DECLARE
	row_type pg_catalog.text;
BEGIN
	FOR row_type IN SELECT t.oid::pg_catalog.regtype FROM pg_catalog.pg_type t WHERE t.typnamespace = 'tq_internal'::pg_catalog.regnamespace AND t.typtype = 'c' LOOP
		EXECUTE pg_catalog.format('REVOKE USAGE ON TYPE %s FROM PUBLIC', row_type);
	END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION	-- those that routers and tests call with the rights of a client, whose scopes they check
	tq_internal.slugid_in_bucket(int), tq_internal.bucket(tq.slugid), tq_internal.buckets(), tq_internal.set_buckets(int4multirange),
	tq_internal.buckets_settled(xid8), tq_internal.bucket_counts(), tq_internal.has_task(tq.slugid), tq_internal.has_task_group(tq.slugid),
	tq_internal.claim_lines(text, text, text, int, interval, interval, bool), tq_internal.claim_lines(text[], text, text, int, interval, interval, bool, text),
	tq_internal.resolve_lines(text, text, jsonb), tq_internal.fire_cron(text, timestamptz), tq_internal.reset_queue_stats(),
	tq_internal.satisfies(text[], text), tq_internal.topic_match(text, text) TO PUBLIC;
GRANT EXECUTE ON FUNCTION	-- input, output, operators and casts of a type that tables of any role may have
	tq_internal.slugid_in(cstring), tq_internal.slugid_out(tq.slugid), tq_internal.slugid_recv(internal), tq_internal.slugid_send(tq.slugid),
	tq_internal.slugid_cmp(tq.slugid, tq.slugid), tq_internal.slugid_hash(tq.slugid), tq_internal.slugid_hash_extended(tq.slugid, bigint),
	tq_internal.slugid_eq(tq.slugid, tq.slugid), tq_internal.slugid_ne(tq.slugid, tq.slugid),
	tq_internal.slugid_lt(tq.slugid, tq.slugid), tq_internal.slugid_le(tq.slugid, tq.slugid),
	tq_internal.slugid_gt(tq.slugid, tq.slugid), tq_internal.slugid_ge(tq.slugid, tq.slugid),
	tq_internal.slugid_larger(tq.slugid, tq.slugid), tq_internal.slugid_smaller(tq.slugid, tq.slugid),
	tq_internal.slugid_like(tq.slugid, text), tq_internal.slugid_not_like(tq.slugid, text),
	tq_internal.slugid_from_uuid(uuid), tq_internal.slugid_to_uuid(tq.slugid) TO PUBLIC;
GRANT EXECUTE ON FUNCTION tq_internal.is_awaited(xid8, bigint), tq_internal.underived_message() TO PUBLIC;	-- for every role that may dump the tables

-- Who may read all_x sees all rows of tq.x, and others what they may see; of what is no
-- queue's they see nothing.  pg_monitor sees names, states and times, but no payload, error or result.
GRANT SELECT ON ALL TABLES IN SCHEMA tq TO PUBLIC;
REVOKE ALL ON tq.maintenance_overview, tq.audit FROM PUBLIC;
GRANT SELECT ON tq_internal.visible_run_overview, tq_internal.visible_task_overview, tq_internal.visible_task_details, tq_internal.visible_failure_overview,
	tq_internal.visible_dead_letter_overview, tq_internal.visible_dependency_overview TO PUBLIC;
GRANT SELECT ON tq_internal.all_run_overview, tq_internal.all_task_details, tq_internal.all_failure_overview, tq_internal.all_dead_letter_overview,
	tq_internal.all_cron_overview TO tq_admin, tq_reader;
GRANT SELECT ON tq_internal.all_task_overview, tq_internal.all_group_overview, tq_internal.all_callback_overview, tq_internal.all_dependency_overview,
	tq_internal.all_queue_stats, tq_internal.all_worker_overview, tq_internal.all_waiter_overview, tq.maintenance_overview, tq_internal.all_postponed_overview,
	tq_internal.all_binding_overview, tq_internal.all_subscription_overview TO tq_admin, tq_reader, pg_monitor;
GRANT SELECT ON tq.audit TO tq_admin;	-- what roles do is not for all who read tasks
GRANT EXECUTE ON FUNCTION	-- those that views of all rows call
	tq_internal.maintenance_activity(), tq_internal.library_version(), tq_internal.published_id(), tq_internal.group_progress(tq.slugid), tq_internal.group_is_blocked(bigint, tq.slugid), tq_internal.waiters(), tq_internal.worker_activity(int), tq_internal.clock_now(),
	tq_internal.queue_counters(), tq_internal.count_state(), tq_internal.group_slug(bigint, tq.slugid), tq_internal.group_number(tq.slugid),
	tq_internal.expired_claims(), tq_internal.background_workers(), tq_internal.cron_jobs(), tq_internal.cron_faults(), tq_internal.cron_time_zone(), tq_internal.shorten(text, int),
	tq_internal.exchange_name(int) TO tq_admin, tq_reader, pg_monitor;
GRANT EXECUTE ON FUNCTION	-- those that views of visible rows call, too; they say nothing of what is stored
	tq_internal.state_name(int), tq_internal.reason_created_name(int), tq_internal.reason_resolved_name(int),
	tq_internal.priority_name(int), tq_internal.is_tolerated(jsonb, int), tq_internal.visible_queues(text) TO PUBLIC;
DO $$	-- the rows of all_x need the right to the view, and those of visible_x are the caller's
DECLARE
	rows_of pg_catalog.text;
BEGIN
	FOR rows_of IN
		SELECT f.oid::pg_catalog.regprocedure FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_type t ON t.oid = f.prorettype JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
		WHERE f.pronamespace = 'tq_internal'::pg_catalog.regnamespace AND f.proretset AND c.relkind = 'v' AND f.pronargs = 0
	LOOP
		EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', rows_of);
	END LOOP;
END
$$;

SELECT tq_internal.start_maintenance();
