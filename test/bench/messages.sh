# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# messages.sh: the part messages: what they cost in detail.
#
# Clients that are measured do not wait for messages: what is published and
# delivered later is counted and waited for before the next run.  Processor time
# is that of the server's processes, where /proc has it.

now() { echo "$EPOCHREALTIME"; }

# ---------------------------------------------------------------------------
# Rates
# ---------------------------------------------------------------------------

# measured WANTED N CLIENTS: a run; prints life-cycles per second, messages
# published per second meanwhile, messages left at the end, seconds until these
# are delivered, life-cycles per second with that time, and microseconds of
# processor time of the clients' sessions per life-cycle and of the maintenance worker per
# message.
measured() {
	local n=$2 tps begin middle finish during left all cpu sessions worker
	fresh && wanted "$1" || exit
	sessions=$(cpu_of_sessions) worker=$(cpu_of_worker)
	begin=$(now)
	tps=$(cycles tq "$n" "$3" -T "$message_seconds") || exit
	middle=$(now)
	left=$(backlog) all=$(messages)
	during=$all
	followed
	finish=$(now)
	all=$(messages)
	worker=$(($(cpu_of_worker) - worker))
	unfollow
	sessions=$(($(cpu_of_sessions) - sessions))
	cpu="$sessions $worker"
	awk -v tps="$tps" -v n="$n" -v begin="$begin" -v middle="$middle" -v finish="$finish" \
		-v during="$during" -v left="$left" -v all="$all" -v s="$message_seconds" -v cpu="$cpu" 'BEGIN {
		split(cpu, c)
		rate = tps * n
		drain = left > 0 ? finish - middle : 0
		printf "%.0f %.0f %d %.2f %.0f %.1f %.1f\n", rate, during / (middle - begin), left, drain,
			rate * s / (s + drain), 10000 * c[1] / (rate * s), (all > 0 ? 10000 * c[2] / all : 0)
	}'
}

# The median of a column of a file.
column() { awk -v c="$2" '{ print $c }' "$1" | median; }

# ratio FILE FILE COLUMN: of the rounds, the median.
ratio() { paste -d' ' <(awk -v c="$3" '{ print $c }' "$1") <(awk -v c="$3" '{ print $c }' "$2") | awk '{ print 100 * $1 / $2 }' | median; }

message_table() {
	local n clients round what file
	echo "### Life-cycles while messages are published"
	echo
	echo "Each client creates n, claims n, completes n, in three transactions: five messages per life-cycle. Median"
	echo "of $rounds rounds of $message_seconds s, taken in turn; ratios are those of each round, to where nothing is bound."
	echo "What is left when the clients end is waited for: the second ratio counts that time as well. CPU is"
	echo "microseconds, of the clients' sessions per life-cycle, and of the maintenance worker per message."
	echo
	echo "| n | clients | messages | life-cycles/s | ratio | published/s | left | delivered after s | ratio with that | CPU sessions | CPU worker |"
	echo "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
	for n in 1 10 100; do
		for clients in "${message_clients[@]}"; do
			rm -f "$work"/measured.*
			for ((round = 0; round < rounds; round++)); do
				for what in none default listened fetched; do
					measured "$what" "$n" "$clients" >>"$work/measured.$what" || exit
				done
			done
			for what in none default listened fetched; do
				file=$work/measured.$what
				printf '| %d | %d | %s | %d | %.0f %% | %d | %d | %.2f | %.0f %% | %.0f | %s |\n' "$n" "$clients" "$what" \
					"$(column "$file" 1)" "$(ratio "$file" "$work/measured.none" 1)" "$(column "$file" 2)" \
					"$(column "$file" 3)" "$(column "$file" 4)" "$(ratio "$file" "$work/measured.none" 5)" \
					"$(column "$file" 6)" "$(column "$file" 7)"
			done
		done
	done
	echo
	echo "none: nothing is bound. default: the default channels, no client listens. listened: one client listens to all"
	echo "of them. fetched: one client fetches everything by a durable subscription, and no client listens."
	echo
}

# ---------------------------------------------------------------------------
# Slow flushes, and NOTIFY in a transaction
# ---------------------------------------------------------------------------

# flush fast|slow: a slow one is imitated by a wait of 1 ms before each.
flush() {
	local pid new
	case $1 in
		slow) sql "ALTER DATABASE $database SET commit_delay = 1000; ALTER DATABASE $database SET commit_siblings = 0" ;;
		fast) sql "ALTER DATABASE $database RESET commit_delay; ALTER DATABASE $database RESET commit_siblings" ;;
	esac || exit
	pid=$(worker_pid)
	[ -n "$pid" ] || return 0
	sql "SELECT pg_terminate_backend($pid)" >/dev/null || exit
	until new=$(worker_pid) && [ -n "$new" ] && [ "$new" != "$pid" ]; do sleep 0.05; done
}

# inserted bare|notify: rows per second into a bare table, one per transaction.
inserted() {
	fresh || exit
	pgbench_run "$(script "$1_create" 1)" 16 -T "$message_seconds" && pgbench_rate
}

notify_table() {
	local speed round
	echo "### NOTIFY in a transaction, and slow flushes"
	echo
	echo "16 clients: rows per second inserted into a bare table, each in a transaction, which calls NOTIFY or does"
	echo "not; and life-cycles of tq, n = 1, as above. A slow flush is one that waits for 1 ms (commit_delay)."
	echo
	echo "| flush | bare | bare, NOTIFY | ratio | tq, none | tq, listened | ratio | with what was left |"
	echo "|---|--:|--:|--:|--:|--:|--:|--:|"
	for speed in fast slow; do
		rm -f "$work"/measured.* "$work"/insert.*
		flush "$speed"
		for ((round = 0; round < rounds; round++)); do
			wanted none
			inserted bare >>"$work/insert.bare" || exit
			inserted notify >>"$work/insert.notify" || exit
			measured none 1 16 >>"$work/measured.none" || exit
			measured listened 1 16 >>"$work/measured.listened" || exit
		done
		printf '| %s | %.0f | %.0f | %.0f %% | %d | %d | %.0f %% | %.0f %% |\n' "$speed" \
			"$(median <"$work/insert.bare")" "$(median <"$work/insert.notify")" \
			"$(ratio "$work/insert.notify" "$work/insert.bare" 1)" \
			"$(column "$work/measured.none" 1)" "$(column "$work/measured.listened" 1)" \
			"$(ratio "$work/measured.listened" "$work/measured.none" 1)" "$(ratio "$work/measured.listened" "$work/measured.none" 5)"
	done
	flush fast
	echo
}

# ---------------------------------------------------------------------------
# Latency
# ---------------------------------------------------------------------------

latency_line() {
	local fifty last longest
	read -r fifty last longest < <("$bench/latency" "$samples") || exit
	echo "| $1 | $2 | $fifty | $last | $longest |"
}

latency_table() {
	local most half load
	echo "### From commit to delivery"
	echo
	echo "Milliseconds from when the commit has returned to when a client that listens has read the message; a task"
	echo "each 20 ms, $samples of them. Loaded: 8 other clients, n = 1, at half of what they reach; another client"
	echo "listens to everything."
	echo
	echo "| load | life-cycles/s | p50 | p99 | longest |"
	echo "|---|--:|--:|--:|--:|"
	fresh && wanted default || exit
	latency_line idle 0
	fresh && wanted listened || exit
	most=$(cycles tq 1 8 -T "$message_seconds") || exit
	followed
	fresh || exit
	half=$(awk -v most="$most" 'BEGIN { printf "%d", most / 2 }')
	cycles tq 1 8 -T "$((samples / 40 + 3))" -R "$half" >"$work/load" &
	load=$!
	until (($(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'") == 8)); do sleep 0.05; done
	latency_line loaded "$half"
	wait "$load" || exit
	followed
	unfollow
	echo
}

# ---------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------

ring_size() { sql "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'tq_internal.$1'::regclass"; }

mib() { awk -v b="$1" 'BEGIN { printf "%.1f MiB", b / 1048576 }'; }

# Lets upkeep() keep messages for a second only; prints how long it takes until
# none is left.
retention() {
	local begin=$SECONDS first
	first=$(now)
	while [ "$(sql "SELECT EXISTS (SELECT FROM tq_internal.message)")" = t ]; do
		((SECONDS - begin < 60)) || { echo 'messages stay' >&2; exit 1; }
		PGOPTIONS="$PGOPTIONS -c tq.message_retention=1" sql 'SELECT count(*) FROM tq.upkeep()' >/dev/null || exit
		sleep 0.1
	done
	awk -v a="$first" -v b="$(now)" 'BEGIN { printf "%.1f s", b - a }'
}

size_table() {
	local what all worker message tick left
	echo "### Sizes"
	echo
	echo "$message_tasks tasks by the hundred, one client; then tq.message_retention of a second. CPU is that of the"
	echo "maintenance worker, until everything was delivered."
	echo
	echo "| messages | | tq_internal.message | tq_internal.tick | CPU s per million | empty after | then tq_internal.message | tq_internal.tick |"
	echo "|--:|---|--:|--:|--:|--:|--:|--:|"
	for what in default listened; do
		fresh && wanted "$what" || exit
		worker=$(cpu_of_worker)
		cycles tq 100 1 -t "$((message_tasks / 100))" >/dev/null || exit
		followed
		worker=$(($(cpu_of_worker) - worker))
		all=$(messages)
		unfollow
		message=$(ring_size message) tick=$(ring_size tick)
		left=$(retention) || exit
		printf '| %d | %s | %s | %s | %.2f | %s | %s | %s |\n' "$all" "$what" "$(mib "$message")" "$(mib "$tick")" \
			"$(awk -v w="$worker" -v n="$all" 'BEGIN { print 10000 * w / n }')" "$left" \
			"$(mib "$(ring_size message)")" "$(mib "$(ring_size tick)")"
	done
	echo
}

part_messages() {
	[ -n "$(worker_pid)" ] || { echo 'messages: the server does not have tq preloaded' >&2; exit 1; }
	message_seconds=$(scaled 4) message_tasks=$(($(scaled 200000 20000) / 100 * 100)) samples=$(scaled 1000 100)
	message_clients=(4 16)
	((samples > 500)) || message_clients=(16)
	message_table
	notify_table
	latency_table
	size_table
	wanted default
}
