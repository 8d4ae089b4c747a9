# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what run sets, and the parts use
#
# lib.sh: what the parts of the bench stand on.  Sourced by run.
#
#	sql STATEMENT			the answer
#	row KEY UNIT TITLE		begins a row of the report
#	turns KEY COMMAND VARIANT...	measures the variants in turn, several times
#	turns_with_cost			the same, with server CPU and WAL per task
#	note KEY VARIANT FIGURE	a figure of a row
#	text LINE...			a line of the report
#	pgbench_run, drive_run, cycles	run scripts
#	fresh, load, pending_in		empty tables, a backlog, and what is left of it
#
# A part prints its rows and figures, as lines of fields with tabs between; run
# keeps them, and report makes tables of them.  Variants: tq; bare, a table
# that is claimed from by SKIP LOCKED and deleted from; keep, the same and
# completed by UPDATE; row, a table that is updated by its primary key; alike, tq
# with tasks that are created from payloads only; by_sql, the rows of tq in tables that
# SQL writes; graphile, pgboss and pgq.

database=tq_bench_$$
databases=("$database")

sql() { psql -XqAt -v ON_ERROR_STOP=1 -c "$1"; }

say() { echo "  $*" >&2; }

# scaled N [AT_LEAST]: a number of seconds, or of tasks.
scaled() { awk -v n="$1" -v s="$scale" -v l="${2:-1}" 'BEGIN { v = int(n * s + 0.5); print (v < l ? l : v) }'; }

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# ---------------------------------------------------------------------------
# What is measured
# ---------------------------------------------------------------------------

row() { printf 'row\t%s\t%s\t%s\n' "$@"; }

note() {
	printf 'value\t%s\t%s\t%s\n' "$@"
	say "$1 $2: $3"
}

text() { printf 'text\t%s\n' "$@"; }

# At the head of each part: where and when.
what_runs() {
	[ "$scale" = 1 ] || text "Scaled to $scale: shorter than is meant, for trying it out."
	text "$(date -u '+%Y-%m-%d %H:%M UTC'), tq $(git -c safe.directory='*' -C "$tq_root" describe --always --dirty 2>/dev/null || echo '?'), PostgreSQL $(sql 'SHOW server_version'), $(nproc) cores; $(
		sql "SELECT string_agg(name || ' ' || current_setting(name), ', ' ORDER BY name) FROM unnest('{fsync,
			synchronous_commit,wal_sync_method,full_page_writes,wal_level,shared_buffers,max_wal_size,autovacuum,jit}'::text[]) AS name")"
}

# turns KEY COMMAND VARIANT...: COMMAND VARIANT prints a figure.  In each round
# the variants come in another order.
turns() {
	local key=$1 command=$2 round variant value variants
	shift 2
	printf 'order\t%s\t%s\n' "$key" "$*"
	for ((round = 0; round < rounds; round++)); do
		mapfile -t variants < <(shuf -e -- "$@")
		for variant in "${variants[@]}"; do
			rm -f "$work/cost"
			value=$("$command" "$variant") || exit
			note "$key" "$variant" "$value"
			[ -z "$with_cost" ] || note_cost "$key" "$variant" "$value"
		done
	done
}

# The same where COMMAND prints tasks per second of its last run of pgbench or
# drive, with what these tasks cost the server.
turns_with_cost() { with_cost=yes turns "$@"; }
with_cost=''

# note_cost KEY VARIANT RATE: what the server has used in the last run, per task.
note_cost() {
	[ ! -f "$work/cost" ] || awk -v OFS='\t' -v key="$1" -v variant="$2" -v rate="$3" -v hz="$(getconf CLK_TCK)" '
		$3 * rate > 0 { n = $3 * rate; print "cost", key, variant, $1 / hz * 1e6 / n, $2 / n }' "$work/cost"
}

# Hundredths of a second that the processes of the server have used; the
# postmaster knows those of processes that have ended.  `postmaster` is its number,
# where it is known.
ticks() {
	local p=${postmaster:-}
	[ -n "$p" ] || p=$(head -n 1 "$(sql 'SHOW data_directory')/postmaster.pid" 2>/dev/null)
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v p="$p" '
		$1 == p { sum += $14 + $15 + $16 + $17 }
		$4 == p { sum += $14 + $15 }
		END { print sum + 0 }'
}

# A run begins, and ends after so many seconds; what it leaves to the publisher
# belongs to it.
begin_cost() {
	[ -z "$with_cost" ] || read -r cost_ticks cost_wal < <(echo "$(ticks) $(sql 'SELECT pg_current_wal_insert_lsn()')")
}

end_cost() {
	[ -n "$with_cost" ] || return 0
	published && echo "$(($(ticks) - cost_ticks)) $(sql "SELECT pg_current_wal_insert_lsn() - '$cost_wal'::pg_lsn") $1" >"$work/cost"
}

# What the sessions of clients are waiting for during a command, sampled; prints
# the most frequent.
waits_of() {
	local pid
	echo "SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU') FROM pg_stat_activity
		WHERE application_name = 'pgbench' AND state = 'active' AND pid <> pg_backend_pid() \\watch 0.05" |
		PGAPPNAME=waits psql -XqAt 2>/dev/null >"$work/waits" &
	pid=$!
	"$@" >/dev/null
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	grep -v '^$' "$work/waits" | sort | uniq -c | sort -rn | awk '{ n[NR] = $1; e[NR] = $2; sum += $1 }
		END { for (i = 1; i <= 4 && i <= NR; i++) printf "%s%s %.0f %%", (i > 1 ? ", " : ""), e[i], 100 * n[i] / sum }'
}

# ---------------------------------------------------------------------------
# Tools, databases and data
# ---------------------------------------------------------------------------

# Our own programs, for the libpq of the server as it is installed; its copy
# has none.
make_tools() {
	local tool
	for tool in drive idle start waiters; do
		gcc -std=gnu99 -O2 -Wall -Wextra -o "$work/$tool" "$bench/$tool.c" \
			-I"$("$tq_server" --includedir)" -L"$("$tq_server" --libdir)" -lpq || exit
	done
}

# make_database NAME: a database with tq and bare tables, dropped at the end.
make_database() {
	[[ " ${databases[*]} " == *" $1 "* ]] || databases+=("$1")
	PGDATABASE=$tq_home psql -Xqc "CREATE DATABASE $1" || exit
	export PGDATABASE=$1 PGOPTIONS='-c client_min_messages=warning'
	sql 'CREATE EXTENSION tq' || exit
	sql 'CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL,
			worker text, taken_until timestamptz, resolved timestamptz) WITH (fillfactor = 70);
		CREATE TABLE bare_row (LIKE bare INCLUDING ALL) WITH (fillfactor = 70);
		CREATE INDEX bare_free ON bare (id) WHERE taken_until IS NULL;
		CREATE SEQUENCE by_sql_id CACHE 1000;
		CREATE TABLE by_sql_task (LIKE tq_internal.task, PRIMARY KEY (id), UNIQUE (task_id));
		CREATE TABLE by_sql_pending (LIKE tq_internal.pending INCLUDING DEFAULTS);
		CREATE UNIQUE INDEX ON by_sql_pending (queue, priority DESC, seq);
		CREATE TABLE by_sql_run (LIKE tq_internal.run INCLUDING DEFAULTS, PRIMARY KEY (task, run_id)) WITH (fillfactor = 50)' || exit
}

# Payloads of 200 bytes: one, and parameters of batches of them.
make_data() {
	local n
	payload=$(sql "SELECT jsonb_build_object('command', repeat('x', 185))")
	printf '%s' "$payload" >"$work/payload"
	for n in 1 10 100 1000; do
		sql "SELECT array_agg('$payload'::jsonb) FROM generate_series(1, $n)" >"$work/bare.$n"
	done
	ln -s bare.1000 "$work/pgq.1000"
	mkdir "$work/sql" && cp "$bench"/sql/* "$work/sql/"
	make_definitions
}

# A definition, and batches of them, in which drive puts new ids.
make_definitions() {
	local n definition
	definition=$(sql "SELECT jsonb_build_object('taskQueueId', 'bench/w', 'created', now(), 'deadline', now() + interval '1 day',
		'payload', '$payload'::jsonb, 'metadata', jsonb_build_object(
		'name', 'n', 'description', 'd', 'owner', 'o', 'source', 'https://example.org/'))")
	printf '%s' "$definition" >"$work/definition"
	for n in 1 10 100 1000; do
		sql "SELECT jsonb_agg(jsonb_build_object('taskId', repeat('@', 22), 'task', '$definition'::jsonb))
			FROM generate_series(1, $n)" >"$work/tq.$n"
	done
}

# A definition may be a quarter of an hour old, and no more.
renew_definitions() { [ -z "$(find "$work/definition" -mmin +4)" ] || make_definitions; }

# script NAME N: the script, for N tasks at a time; prints its name.  The number
# is written into it, so that no plan is made without knowing it.
script() {
	local name=$work/sql/$1
	if [ ! -f "$name.sql" ]; then
		name+=_$2
	elif grep -q ':n\>' "$name.sql"; then
		sed "s/:n\>/$2/g" "$name.sql" >"$name.of.$2"
		echo "$name.of.$2"
		return
	fi
	echo "$name.sql"
}

# pgbench_run SCRIPT CLIENTS OPTION...: runs pgbench; what it prints is in
# $work/out.
pgbench_run() {
	local script=$1 clients=$2 job=$payload
	shift 2
	[[ $script != *pgboss* ]] || job=$(<"$work/sql/pgboss_payload.json")
	begin_cost
	pgbench -n -M prepared -f "$script" -D payload="$job" -D def="$(<"$work/definition")" -D reports='[]' \
		-c "$clients" -j "$((clients < 4 ? clients : 4))" "$@" >"$work/out" 2>"$work/err" || echo failed >"$work/out"
	if ! grep -q 'failed transactions: 0 ' "$work/out"; then
		echo "$script has failed" >&2
		grep -hv '^pgbench (' "$work/err" "$work/out" | head -n 20 >&2
		exit 1
	fi
	end_cost "$(awk '/actually processed/ { n = $NF + 0 } /^tps/ { print n / $3 }' "$work/out")"
}

# Runs per second of the last pgbench_run.
pgbench_rate() { sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/out"; }

# drive_run SCRIPT OPTION...: runs drive; what it prints is in $work/driven.
drive_run() {
	local script=$1
	shift
	begin_cost
	"$work/drive" "$@" "$script" >"$work/driven" || exit
	end_cost "$(awk '{ print $4 }' "$work/driven")"
}

# Runs per second of the last drive_run.
drive_rate() { awk '{ print $2 }' "$work/driven"; }

# cycles WHAT N CLIENTS OPTION...: runs drive, prints runs per second, of
# which each creates n tasks, claims n and completes n.
cycles() {
	local what=$1 n=$2 clients=$3
	shift 3
	drive_run "$(script "${what}_cycle" "$n")" -c "$clients" -p "batch=$(batch_of "$what" "$n")" "$@" && drive_rate
}

# ---------------------------------------------------------------------------
# Empty tables, and backlogs
# ---------------------------------------------------------------------------

tables_of() {
	case $1 in
		tq | busy) echo tq_internal.task, tq_internal.run, tq_internal.run_detail, tq_internal.pending, tq_internal.delayed, tq_internal.unscheduled, tq_internal.dependency_counter, tq_internal.dependency, tq_internal.claim_timer, tq_internal.timer, tq_internal.dead_letter, tq_internal.task_group ;;
		bare | keep | notify) echo bare ;;
		row) echo bare_row ;;
		by_sql) echo by_sql_task, by_sql_pending, by_sql_run ;;
		graphile) echo graphile_worker._private_jobs ;;
		pgboss) echo pgboss.job_common ;;
		pgq) echo pgq.event_template ;;
	esac
}

# Each variant starts empty, nothing of before is still to be written, and the
# clients find their pages whole in the WAL after the checkpoint.
fresh() {
	local what
	renew_definitions
	forget_messages || exit
	for what in tq bare row by_sql "${peers[@]}"; do
		[ "$what" = pgq ] || sql "TRUNCATE $(tables_of "$what")" || exit
	done
	if has_peer pgq; then pgq_fresh || exit; fi
	sql CHECKPOINT
}

# load WHAT N: a backlog of N in an empty table, and statistics of it.
load() {
	local what=$1 n=$2 table
	case $what in busy) what=tq ;; keep) what=bare ;; esac
	[ "$what" != tq ] || quietly
	fill "$what" "$n" || exit
	[ "$what" != tq ] || wanted default
	for table in $(tables_of "$what" | tr -d ,); do sql "VACUUM ANALYZE $table" || exit; done
	sql CHECKPOINT
}

# No exchange is bound.
quietly() { wanted none; }

# fill WHAT N: N more, by the thousand.
fill() {
	local what=$1 n=$2
	renew_definitions
	PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" \
		drive_run "$(bulk_script "$what")" -c 4 -t "$(((n + 3999) / 4000))" -p "batch=$(batch_of "$what" 1000)"
}

bulk_script() { echo "$work/sql/$1_bulk.sql"; }

# batch_of WHAT N: the file of the parameter with N of them.
batch_of() {
	local of=$1
	case $of in row | alike | by_sql) of=bare ;; esac
	if [ -f "$work/sql/${of}_batch.json" ]; then echo "$work/sql/${of}_batch.json"; else echo "$work/$of.$2"; fi
}

# What can be claimed, and what is claimed and not completed.
pending_in() {
	case $1 in
		tq | busy) sql 'SELECT count(*) FROM tq_internal.pending' ;;
		bare | keep) sql 'SELECT count(*) FROM bare WHERE taken_until IS NULL' ;;
		graphile) sql 'SELECT count(*) FROM graphile_worker._private_jobs WHERE is_available' ;;
		pgboss) sql "SELECT count(*) FROM pgboss.job_common WHERE state < 'active'" ;;
	esac
}

running_in() {
	case $1 in
		tq | busy) sql 'SELECT count(*) FROM tq_internal.run WHERE state <> 3' ;;
		bare | keep) sql 'SELECT count(*) FROM bare WHERE taken_until IS NOT NULL AND resolved IS NULL' ;;
		graphile) sql 'SELECT count(*) FROM graphile_worker._private_jobs WHERE NOT is_available' ;;
		pgboss) sql "SELECT count(*) FROM pgboss.job_common WHERE state = 'active'" ;;
	esac
}

# No table of the database is vacuumed by itself, or is again.
autovacuum() {
	local change="SET (autovacuum_enabled = false)"
	[ "$1" = off ] || change='RESET (autovacuum_enabled)'
	sql "DO \$\$ DECLARE name regclass; BEGIN
		FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace::regnamespace::text !~ '^pg_|^information_schema'
		LOOP EXECUTE format('ALTER TABLE %s $change', name); END LOOP; END \$\$"
}

# Opens a transaction in the background, which holds a snapshot until its input
# ends.
hold_snapshot() {
	coproc snapshot { psql -XqAt -v ON_ERROR_STOP=1; }
	echo 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class;' >&"${snapshot[1]}"
	read -r -u "${snapshot[0]}" _
}

release_snapshot() {
	local pid=$snapshot_PID
	echo 'COMMIT;' >&"${snapshot[1]}"
	eval "exec ${snapshot[1]}>&-"
	wait "$pid"
}
