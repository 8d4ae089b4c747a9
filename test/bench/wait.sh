# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# wait.sh: the part wait.  Workers that wait for tasks: how soon they have one,
# and what many of them cost.  tq waits in claim_work(... wait); the bare table
# has NOTIFY in the producer's transaction, LISTEN, and then a claim.

# The queue of that name is known to all from before.
known_queue() { sql "SELECT tq.enqueue('$1'); SELECT tq.cancel_task(task_id) FROM tq.claim_work('$1', 'g', 'w')" >/dev/null; }

# idle_figures WHAT: p50, p99 and longest, after the answer to the commit, and
# after the statement was sent.
idle_figures() {
	fresh && known_queue bench/idle || exit
	case $1 in
		tq | bare) "$work/idle" "$1" "$(scaled 500 50)" 20 ;;
		*) client idle "$1" "$(scaled 200 20)" ;;
	esac
}

part_wait() {
	local what round figures variants=(bare tq) i
	! has_peer graphile || variants+=(graphile)
	! has_peer pgboss || variants+=(pgboss)
	wanted default
	row idle.p50 ms 'idle: from the answer to the commit to the claimed row, median'
	row idle.p99 ms 'idle: from the answer to the commit to the claimed row, 99th percentile'
	row idle.sent ms 'idle: from when the statement was sent, which counts its flush, median'
	for ((round = 0; round < rounds; round++)); do
		for what in "${variants[@]}"; do
			read -r -a figures < <(idle_figures "$what") && ((${#figures[@]} >= 6)) || exit
			for i in p50:0 p99:1 sent:3; do note "idle.${i%:*}" "$what" "${figures[${i#*:}]}"; done
		done
	done
	text 'graphile and pgboss are their own clients for node, which listen as well; the others are in C. Less than' \
		'zero: the worker had the row before the producer had its answer.'
	part_waiters
}

part_waiters() {
	local what woken most cpu variants=(bare tq) seconds
	seconds=$(scaled 30 5)
	row waiters.woken processes '256 waiters, a task a second: processes woken for a task, median'
	row waiters.most processes '256 waiters, a task a second: most woken for one task'
	row waiters.cpu '% of a core' '256 waiters, a task a second: processor time of their server processes'
	for what in "${variants[@]}"; do
		fresh || exit
		no_sessions waiters && known_queue bench/wait || exit
		read -r woken most cpu < <(PGAPPNAME=waiters "$work/waiters" "$what" 256 "$seconds") || exit
		note waiters.woken "$what" "$woken"
		note waiters.most "$what" "$most"
		note waiters.cpu "$what" "$cpu"
	done
}
