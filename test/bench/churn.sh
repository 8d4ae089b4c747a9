# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# churn.sh: the part churn.  8 clients, each of which creates one, claims one
# and completes it, on a backlog of 1,000, while a transaction with a snapshot
# is open, so that nothing dead can be vacuumed away.

# churn WHAT SECONDS EVERY: a run; its rates, one for each so many seconds, are in
# $work/churn.
churn() {
	local what=$1 seconds=$2 every=$3
	fresh && load "$what" 4000 && claim_away "$what" 3000 || exit
	hold_snapshot
	pgbench_run "$(script "${what}_churn" 1)" 8 -T "$seconds" -P "$every"
	release_snapshot
	sed -n 's/^progress: \([0-9.]*\) s, \([0-9.]*\) tps.*/\1 \2/p' "$work/err" >"$work/churn"
}

# claim_away WHAT N: of the backlog, so many are claimed and completed.
claim_away() {
	pgbench_run "$(script "$1_claim" 1000)" 1 -t "$(($2 / 1000))" && sql "VACUUM ANALYZE" && sql CHECKPOINT
}

part_churn() {
	local what at rate seconds every variants=(bare tq)
	! has_peer graphile || variants+=(graphile)
	! has_peer pgboss || variants+=(pgboss)
	seconds=$(scaled 90 9)
	every=$((seconds / 9))
	row churn tasks/s "enqueue 1, claim 1, complete 1, 8 clients, $seconds s under a held snapshot; by $every s"
	row churn.first tasks/s "under a held snapshot, the first $every s"
	row churn.last tasks/s "under a held snapshot, the last $every s"
	wanted default
	for what in "${variants[@]}"; do
		churn "$what" "$seconds" "$every" || exit
		while read -r at rate; do printf 'series\tchurn\t%s\t%s\t%s\n' "$what" "$at" "$rate"; done <"$work/churn"
		note churn.first "$what" "$(awk 'NR == 1 { print $2 }' "$work/churn")"
		note churn.last "$what" "$(awk 'NR <= 9 { last = $2 } END { print last }' "$work/churn")"
	done
}
