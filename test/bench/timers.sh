# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# timers.sh: the part timers.  What is due later, and how exactly it is done
# when it is due; `run timers`, which sources this file and calls part_timers.
#
# Processor time is that of the maintenance worker, where /proc has it (schedstat).
# How late something was is the time that its run was resolved at, less the time
# that it was due; the maintenance worker takes that time when a batch begins.

timer_tables='tq_internal.task, tq_internal.run, tq_internal.pending, tq_internal.delayed, tq_internal.unscheduled, tq_internal.dependency, tq_internal.claim_timer, tq_internal.timer, tq_internal.task_group'

# Milliseconds of the maintenance worker's processor time.
worker_ms() { awk '{ print $1 / 1e6 }' "/proc/$(worker_pid)/schedstat" 2>/dev/null || echo 0; }

# Index entries of timers that were read; the maintenance worker reports them when
# it goes to sleep.
due_entries() {
	sleep 0.2
	sql "SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE indexrelname IN ('claim_timer_pkey', 'timer_pkey', 'delayed_due')"
}

worker_turns() { sql "SELECT batches FROM tq.maintenance_overview WHERE step = 'turn'"; }

less() { awk -v a="$1" -v b="$2" -v n="${3:-1}" 'BEGIN { printf "%.4g\n", (a - b) / n }'; }

# Empty tables but for a queue, and a maintenance worker that sleeps.
timers_fresh() {
	fresh && sql "SELECT tq.enqueue('bench/timers'); SELECT tq.cancel_task(task_id) FROM tq.claim_work('bench/timers', 'g', 'w')" >/dev/null
}

timers_fill() { PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" sql "SELECT timers.$1" >/dev/null; }

# In so many seconds from now.
due_in() { sql "SELECT date_trunc('milliseconds', clock_timestamp() + interval '$1 s')"; }

# turn_cost VARIANT: what a cycle costs, while what is there is not due.
turn_cost() {
	local cpu read n=50
	sql 'CALL timers.turns(5)' && cpu=$(worker_ms) read=$(due_entries) || exit
	sql "CALL timers.turns($n)" || exit
	note timers.turn "$1" "$(less "$(worker_ms)" "$cpu" "$n")"
	note timers.entries "$1" "$(less "$(due_entries)" "$read" "$n")"
}

# While clients claim and complete other tasks.
busy_cost() {
	local cpu turns seconds
	seconds=$(scaled 10 2)
	cpu=$(worker_ms) turns=$(worker_turns)
	cycles tq 1 16 -T "$seconds" >/dev/null || exit
	note timers.turns "$1" "$(less "$(worker_turns)" "$turns")"
	note timers.busy "$1" "$(less "$(worker_ms)" "$cpu" "$seconds")"
}

# taken VARIANT N FILL: what FILL makes, which is stale and due in days, is due
# at once; microseconds for each of the N tasks.
taken() {
	local cpu due
	timers_fill "$3" && sql "VACUUM tq_internal.claim_timer, tq_internal.timer" || exit
	due=$(due_in 2)
	sql "UPDATE tq_internal.claim_timer SET due = '$due' WHERE due > clock_timestamp() + interval '1 day';
		UPDATE tq_internal.timer SET due = '$due' WHERE kind = 1 AND due > clock_timestamp() + interval '10 days'" >/dev/null || exit
	cpu=$(worker_ms)
	sql "CALL timers.done('$due')" >/dev/null || exit
	note timers.stale "$1" "$(awk -v a="$(worker_ms)" -v b="$cpu" -v n="$2" 'BEGIN { print 1000 * (a - b) / n }')"
}

# instant WHAT N: N of them are due in one instant, and a deadline each 10 ms
# before and after it, while 4 clients claim and complete others.
instant() {
	local what=$1 n=$2 due load
	timers_fresh || exit
	due=$(due_in 4)
	case $what in
		claims) timers_fill "claims($n, 1, '$due', '0')" ;;
		hundreds) timers_fill "claims($n, 100, '$due', '0')" ;;
		deadlines) timers_fill "deadlines($n, '$due', '0')" ;;
		delays) timers_fill "delays($n, '$due', '0')" ;;
	esac || exit
	timers_fill "deadlines(400, '$due'::timestamptz - interval '1 s', '4 s')" || exit
	"$work/drive" -c 4 -T 7 -p "batch=$(batch_of tq 1)" "$(script tq_cycle 1)" >/dev/null &
	load=$!
	note timers.instant "$what" "$(sql "CALL timers.done('$due')")"
	sql "CALL timers.done('$due'::timestamptz + interval '3 s')" >/dev/null
	sql "SELECT format(E'value\ttimers.%s\t$what\t%s', unnest('{p50,p99,max}'::text[]), unnest(array[p50, p99, max]))
		FROM (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY late) AS p50, percentile_cont(0.99) WITHIN GROUP (ORDER BY late) AS p99,
			max(late) AS max
			FROM (SELECT 1000 * extract(epoch FROM r.resolved - t.deadline)::float8 AS late
				FROM tq_internal.task AS t JOIN tq_internal.run AS r ON r.task = t.id
				WHERE r.reason_resolved = 3 AND t.deadline <> '$due') AS x) AS y" || exit
	wait "$load" || exit
}

part_timers() {
	local n few what round
	n=$(scaled 1000000 10000) few=$(scaled 100000 1000)
	[ -n "$(worker_pid)" ] || { echo 'timers: the server does not have tq preloaded' >&2; exit 1; }
	sql "$(<"$bench/timers.sql")" || exit
	row timers.turn ms "a cycle of the maintenance worker in which one deadline is met: its processor time"
	row timers.entries entries 'the same: index entries read to find what is due'
	row timers.turns turns "16 clients claim and complete one at a time for $(scaled 10 2) s: cycles of the maintenance worker"
	row timers.busy 'ms/s' 'the same: its processor time'
	row timers.stale us "processor time of the maintenance worker for each of $few stale rows that come due"
	row timers.instant s '10,000 due in one instant, while 4 clients claim and complete: until the last is done'
	row timers.p50 ms 'others that are due then, one each 10 ms: late, median'
	row timers.p99 ms 'the same, 99th percentile'
	row timers.max ms 'the same, latest'

	wanted none
	timers_fresh && turn_cost empty && busy_cost empty || exit
	timers_fresh || exit
	timers_fill "claims($n, 1, clock_timestamp() + interval '2 h', '10 min')" &&
		timers_fill "deadlines($n, clock_timestamp() + interval '3 h', '10 min')" &&
		timers_fill "delays($n, clock_timestamp() + interval '3 h', '10 min')" && sql "VACUUM ANALYZE $timer_tables" || exit
	turn_cost full && busy_cost full || exit
	timers_fresh || exit
	hold_snapshot
	taken dead "$n" "claims($n, 1, clock_timestamp() + interval '2 days', '0', true)"
	turn_cost dead && busy_cost dead || exit
	release_snapshot

	for ((round = 0; round < rounds; round++)); do
		timers_fresh && taken one "$few" "claims($few, 1, clock_timestamp() + interval '2 days', '0', true)" || exit
		timers_fresh && taken hundred "$few" "claims($few, 100, clock_timestamp() + interval '2 days', '0', true)" || exit
		timers_fresh && taken deadline "$few" "deadlines($few, clock_timestamp() + interval '20 days', '0', true)" || exit
	done
	wanted default
	for ((round = 0; round < rounds; round++)); do
		for what in claims hundreds deadlines delays; do instant "$what" 10000 || exit; done
	done
	sql 'DROP SCHEMA timers CASCADE'
	text "empty: no tasks. full: $n claims, deadlines and delayed runs, none of them due. dead: $n stale claim timers that" \
		'were taken while a transaction holds a snapshot, so that they cannot be vacuumed away. one, hundred: claim timers of' \
		'so many tasks; deadline: of tasks that are resolved. claims: by claim timers of one task; hundreds: of a hundred.'
}
