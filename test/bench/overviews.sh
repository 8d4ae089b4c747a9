# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# overviews.sh: the part overviews.  How long each view and list takes among
# 5,000,000 tasks, planned and executed, in a session that has used it before.

overviews_times=5			# each, of which the median counts
overviews_ssd='-c random_page_cost=1.1 -c jit=off'

# overview KEY FILTER QUERY: measures a query.
overview() {
	local value
	sql "SELECT set_config('statement_timeout', '120s', false);
		SELECT many.milliseconds(q) FROM (VALUES (\$query\$$3\$query\$)) AS x (q), generate_series(0, $overviews_times)" |
		tail -n "$overviews_times" | while read -r value; do printf 'value\t%s\t%s\t%s\n' "$1" "$2" "$value"; done
	((PIPESTATUS[0] == 0)) || exit
}

# overviews KEY TITLE WHAT: two rows: as the server is set, and as for fast disks.
# Lines of a name and what follows "SELECT * FROM tq.WHAT" are read from the
# standard input; WHAT has @ for the name.
overviews() {
	local name rest lines
	mapfile -t lines
	row "overviews.$1" ms "$2"
	for rest in "${lines[@]}"; do
		name=${rest%%$'\t'*}
		overview "overviews.$1" "$name" "SELECT * FROM tq.${3//@/${name%%/*}}${3:+ }${rest#*$'\t'}" || exit
	done
	row "overviews.$1.ssd" ms "$2; $overviews_ssd"
	for rest in "${lines[@]}"; do
		name=${rest%%$'\t'*}
		PGOPTIONS="$PGOPTIONS $overviews_ssd" \
			overview "overviews.$1.ssd" "$name" "SELECT * FROM tq.${3//@/${name%%/*}}${3:+ }${rest#*$'\t'}" || exit
	done
	say "$1"
}

# of VIEW TITLE: the rows of a view.
of() { overviews "$1" "$2" "$1"; }

# Waits until the counters of the queues are right.
counted() {
	sql 'SELECT tq_internal.reset_queue_stats()' >/dev/null || return
	until [ "$(sql 'SELECT source FROM tq.queue_stats LIMIT 1')" = memory ]; do sleep 0.2; done
}

part_overviews() {
	local n completed pending running unscheduled failed required small large view
	n=$(scaled 5000000 50000)
	wanted default && fresh && sql "$(<"$bench/many.sql")" && sql "CALL many.fill($n, '5 days', true)" && sql 'VACUUM ANALYZE' && counted || exit
	completed=$(sql "SELECT many.task($n, 'completed')") pending=$(sql "SELECT many.task($n, 'pending')")
	running=$(sql "SELECT many.task($n, 'running')") unscheduled=$(sql "SELECT many.task($n, 'unscheduled')")
	failed=$(sql "SELECT many.task($n, 'failed')")
	required=$(sql "SELECT tq.stable_slugid('many task 49')")
	small=$(sql "SELECT tq.stable_slugid('many group 20')") large=$(sql "SELECT tq.stable_slugid('many group 0')")
	overviews_views
	overviews_functions
	overviews_indexed
	text "$n tasks, of which 2 % are unresolved; median of $overviews_times, in a session of its own for each, after a first one." \
		'queue: one of ten; rare: one that has a task in 500,000. worker: one of a hundred. group: of 100; large: of a' \
		'fortieth of all tasks. indexed: with the indexes that doc/operations.md offers.'
	sql 'DROP SCHEMA many CASCADE'
	fresh
}

overviews_views() {
	of task_overview 'task_overview, LIMIT 100, by' <<-END
		id	WHERE task_id = '$completed' LIMIT 100
		id-running	WHERE task_id = '$running' LIMIT 100
		queue	WHERE task_queue_id = 'many/q3' LIMIT 100
		queue-rare	WHERE task_queue_id = 'many/q10' LIMIT 100
		worker	WHERE worker = 'many/w3' LIMIT 100
		worker-rare	WHERE worker = 'many/w100' LIMIT 100
		worker-running	WHERE worker = 'many/w3' AND state = 'running' LIMIT 100
		name	WHERE name = 'name-500' LIMIT 100
		unscheduled	WHERE state = 'unscheduled' LIMIT 100
		pending	WHERE state = 'pending' LIMIT 100
		running	WHERE state = 'running' LIMIT 100
		failed	WHERE state = 'failed' LIMIT 100
		exception	WHERE state = 'exception' LIMIT 100
		completed-queue	WHERE state = 'completed' AND task_queue_id = 'many/q3' LIMIT 100
		completed-since	WHERE state = 'completed' AND since > now() - interval '4 hours' LIMIT 100
		pending-queue	WHERE state = 'pending' AND task_queue_id = 'many/q3' LIMIT 100
		failed-queue	WHERE state = 'failed' AND task_queue_id = 'many/q3' LIMIT 100
		all	LIMIT 100
	END
	of task_details 'task_details, LIMIT 100, by' <<-END
		id	WHERE task_id = '$completed' LIMIT 100
		group	WHERE task_group_id = '$small' LIMIT 100
		group-own	WHERE task_group_id = '$required' LIMIT 100
		group-large	WHERE task_group_id = '$large' LIMIT 100
		completed-group	WHERE task_group_id = '$large' AND state = 'completed' LIMIT 100
		failed-group	WHERE task_group_id = '$large' AND state = 'failed' LIMIT 100
		name	WHERE name = 'name-500' LIMIT 100
		tag	WHERE tags @> '{"number": "200"}' LIMIT 100
		tag-queue	WHERE tags @> '{"kind": "kind-110"}' AND task_queue_id = 'many/q0' LIMIT 100
		tag-group	WHERE tags @> '{"kind": "kind-510"}' AND task_group_id = '$small' LIMIT 100
		tag-failed	WHERE tags @> '{"kind": "kind-0"}' AND state = 'failed' LIMIT 100
		worker	WHERE worker_group = 'many' AND worker_id = 'w3' LIMIT 100
		pending	WHERE state = 'pending' LIMIT 100
		running	WHERE state = 'running' LIMIT 100
		failed	WHERE state = 'failed' LIMIT 100
		completed-time	WHERE state = 'completed' AND resolved > now() - interval '4 hours' LIMIT 100
		created	WHERE created > now() - interval '4 hours' LIMIT 100
	END
	of run_overview 'run_overview, LIMIT 100, by' <<-END
		id	WHERE task_id = '$completed' LIMIT 100
		all	LIMIT 100
	END
	of failure_overview 'failure_overview, LIMIT 100, by' <<-END
		id	WHERE task_id = '$failed' LIMIT 100
		latest	ORDER BY resolved DESC LIMIT 100
		queue	WHERE task_queue_id = 'many/q0' ORDER BY resolved DESC LIMIT 100
		reason	WHERE reason = 'deadline-exceeded' LIMIT 100
	END
	of dead_letter_overview 'dead_letter_overview, LIMIT 100, by' <<-END
		id	WHERE task_id = '$failed' LIMIT 100
		queue	WHERE task_queue_id = 'many/q0' ORDER BY failed_at DESC LIMIT 100
		all	LIMIT 100
	END
	of group_overview 'group_overview, LIMIT 100, by' <<-END
		group	WHERE task_group_id = '$small' LIMIT 100
		group-large	WHERE task_group_id = '$large' LIMIT 100
		all	LIMIT 100
	END
	of dependency_overview 'dependency_overview, LIMIT 100, by' <<-END
		id	WHERE task_id = '$unscheduled' LIMIT 100
		required	WHERE required_task_id = '$required' LIMIT 100
		unmet	WHERE NOT met LIMIT 100
		all	LIMIT 100
	END
	of queue_stats 'queue_stats, by' <<-END
		queue	WHERE task_queue_id = 'many/q3'
		all	LIMIT 100
	END
	of worker_overview 'worker_overview, by' <<-END
		queue	WHERE task_queue_id = 'many/q3'
		worker	WHERE worker_group = 'many' AND worker_id = 'w3'
		all	LIMIT 100
	END
	for view in waiter maintenance postponed binding subscription; do
		of "${view}_overview" "${view}_overview" <<<$'all\t'
	done
}

overviews_functions() {
	overviews function 'functions, lists of 100' @ <<-END
		list_pending_tasks	('many/q3', max => 100)
		list_claimed_tasks	('many/q3', max => 100)
		list_task_queues	(max => 100)
		list_workers	('many', 'q3', max => 100)
		get_worker	('many', 'q3', 'many', 'w3')
		list_task_group	('$large', max => 100)
		list_dependent_tasks	('$required', max => 100)
		list_dead_letters	('many/q0', max => 100)
		task_queue_counts	('many/q3')
		group_progress	('$small')
		group_progress/large	('$large')
		status	('$completed')
		why/completed	('$completed')
		why/pending	('$pending')
		why/running	('$running')
		why/unscheduled	('$unscheduled')
		why/failed	('$failed')
		health	()
	END
}

# With indexes that an administrator may add.
overviews_indexed() {
	sql "CREATE INDEX task_name ON tq_internal.task ((metadata ->> 'name')) WHERE (metadata ->> 'name') IS NOT NULL;
		CREATE INDEX task_tags ON tq_internal.task USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL;
		CREATE INDEX run_worker ON tq_internal.run (worker);
		CREATE INDEX task_created ON tq_internal.task (created);
		CREATE STATISTICS tq_internal.task_name_statistics ON (metadata ->> 'name') FROM tq_internal.task;
		ANALYZE tq_internal.task; ANALYZE tq_internal.run" || exit
	overviews indexed 'with indexes on names, tags, workers and times, LIMIT 100, by' '' <<-END
		name	task_overview WHERE name = 'name-500' LIMIT 100
		tag	task_details WHERE tags @> '{"number": "200"}' LIMIT 100
		worker-rare	task_overview WHERE worker = 'many/w100' LIMIT 100
		completed-created	task_details WHERE state = 'completed' AND created > now() - interval '4 hours' LIMIT 100
	END
	sql "SELECT format(E'text\tIndexes, MiB: %s', string_agg(relname || ' ' || round(pg_relation_size(oid) / 1048576.0), ', '))
		FROM pg_class WHERE relname IN ('task_name', 'task_tags', 'run_worker', 'task_created')"
}
