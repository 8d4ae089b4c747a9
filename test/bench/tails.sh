# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# tails.sh: the part tails.  The slowest of a hundred: how long from a commit to the
# claimed row at a worker that waits, and how long a claim takes, while nothing else
# happens, beside clients that use half of what the server can do, and beside these
# while something else goes on as well.  Each slice measures both: idle.c creates a
# task of another queue each 20 ms, and the clients write down how long claims take.
#
#	sweep		resolved tasks are deleted, whose retention is over
#	publish		10,000 tasks a second are created at once, and their messages published
#	create		the same without messages, what publish costs more is the publisher
#	apply		10,000 tasks at a time are created, and canceled by tq.apply()
#	vacuum		the tables that claims change are vacuumed again and again

# shellcheck source=wait.sh
. "$bench/wait.sh"
# shellcheck source=retention.sh
. "$bench/retention.sh"

tails_seconds=8 tails_settle=1 tails_clients=4
declare -A tails_waits

# tails_retain TIME: the maintenance worker is another one, which begins with a sweep of what is older.
tails_retain() {
	sql "ALTER SYSTEM SET tq.retain_completed = '$1'"
	maintenance off && sleep 0.3 && maintenance on
}

# tails_other NAME: a session that does it until it is killed.
tails_other() {
	local i more="SELECT count(tq.enqueue_tasks('bench/other', array_fill('$payload'::jsonb, ARRAY[1000]))) FROM generate_series(1, 10)"
	case $1 in
		create | publish) echo "$more \\watch 1" ;;
		apply) for ((i = 0; i < 100; i++)); do echo "$more; CALL tq.apply('{\"queue\": \"bench/other\"}', 'cancel');"; done ;;
		vacuum) echo 'VACUUM tq_internal.pending, tq_internal.run, tq_internal.task, tq_internal.claim_timer, tq_internal.timer \watch 0.1' ;;
	esac >"$work/other.sql"
	[ ! -s "$work/other.sql" ] || exec setsid psql -Xq -f "$work/other.sql" >/dev/null 2>"$work/other.err"
}

# tails_load: the clients, until they are killed.
tails_load() {
	rm -f "$work"/claims.*
	exec setsid "$work/drive" -c "$tails_clients" -T 1000 -R "$tails_rate" -l "$work/claims" -p "batch=$(batch_of tq 1)" "$(script tq_cycle 1)" >/dev/null
}

# tails_ended PID...: is killed with its children.
tails_ended() {
	local pid
	for pid in "$@"; do kill -- -"$pid"; wait "$pid"; done 2>/dev/null
}

tails_wake() { "$work/idle" tq "$((tails_seconds * 50))" 20 >"$work/wake"; }

# tails_slice WHAT: median and 99th percentile of wake-ups, and of claims, in ms.
tails_slice() {
	local what=$1 pids=() begin end wake
	fresh_tails "$what"
	if [ "$what" != idle ]; then
		tails_load & pids+=($!)
		tails_other "$what" & pids+=($!)
	fi
	sleep "$tails_settle"
	begin=$(date +%s.%N)
	tails_waits[$what]=$(waits_of tails_wake)
	end=$(date +%s.%N)
	sleep 0.5		# for what the clients have not written yet
	tails_ended "${pids[@]}"
	read -r -a wake <"$work/wake" && ((${#wake[@]} >= 6)) || exit
	note tails.wake.p50 "$what" "${wake[0]}"
	note tails.wake.p99 "$what" "${wake[1]}"
	[ "$what" != idle ] || return 0
	cat "$work"/claims.* | awk -v b="$begin" -v e="$end" '$1 >= b && $1 < e { print $2 }' | sort -n >"$work/claims"
	note tails.claim.p50 "$what" "$(tails_percentile 50)"
	note tails.claim.p99 "$what" "$(tails_percentile 99)"
}

tails_percentile() { awk -v p="$1" '{ v[NR] = $1 } END { if (NR == 0) exit 1; print v[int((NR - 1) * p / 100) + 1] }' "$work/claims"; }

# fresh_tails WHAT: what a slice begins with.
fresh_tails() {
	sql 'TRUNCATE tq_internal.pending' && known_queue bench/idle || exit
	case $1 in
		create) quietly ;;
		*) wanted default ;;
	esac
	tails_retain "$([ "$1" = sweep ] && echo 7d || echo 3650d)"
}

# Half of the life-cycles that the clients make when they do not wait.
tails_half() {
	cycles tq 1 "$tails_clients" -T 3 | awk '{ printf "%d", $1 / 2 }'
}

part_tails() {
	local round what home=$PGDATABASE order=(idle load sweep publish create apply vacuum)
	make_database "${database}_tails"
	make_definitions && sql "$(<"$bench/many.sql")" && sql "CALL many.fill($(scaled 3000000 100000), '60 days', false)" && sql 'VACUUM ANALYZE' || exit
	wanted default
	tails_retain 3650d
	tails_rate=$(tails_half) || exit
	row tails.wake.p50 ms 'from the answer to the commit to the claimed row of a worker that waits, median'
	row tails.wake.p99 ms 'the same, 99th percentile'
	row tails.claim.p50 ms "claims of $tails_clients clients at half of their rate, median"
	row tails.claim.p99 ms 'the same, 99th percentile'
	for what in wake.p50 wake.p99; do printf 'order\ttails.%s\t%s\n' "$what" "${order[*]}"; done
	for what in claim.p50 claim.p99; do printf 'order\ttails.%s\t%s\n' "$what" "${order[*]:1}"; done
	for ((round = 0; round < rounds; round++)); do
		for what in $(shuf -e "${order[@]}"); do tails_slice "$what"; done
	done
	text "Half of the rate is $tails_rate life-cycles a second. load is these clients alone, and the others are beside them."
	for what in "${order[@]:1}"; do text "Sessions of the clients wait for, $what: ${tails_waits[$what]}."; done
	sql 'ALTER SYSTEM RESET tq.retain_completed' && sql 'ALTER SYSTEM RESET tq.maintenance' && sql 'SELECT pg_reload_conf()' >/dev/null || exit
	export PGDATABASE=$home
	PGDATABASE=$tq_home psql -Xqc "DROP DATABASE ${database}_tails WITH (FORCE)"
}
