# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# claim.sh: the part claim.  A backlog, VACUUM ANALYZE, and then pgbench: each
# run of a script claims n and completes them, in two transactions.  The claim
# returns the ids only, in each variant.  Default bindings, no client listens.

# claimed WHAT N CLIENTS SECONDS BACKLOG [DEAD]: tasks per second that are
# claimed and completed; so many were claimed just before, and not vacuumed.  A backlog that
# does not last is doubled, for the other variants and rounds as well.
claimed() {
	local what=$1 n=$2 clients=$3 seconds=$4 backlog=$5 dead=${6:-0} before after=0 known=$work/backlog.$2.${6:-0}
	[ ! -f "$known" ] || backlog=$(<"$known")
	while :; do
		fresh && load "$what" "$((backlog + dead))" || exit
		((dead == 0)) || pgbench_run "$(script "${what}_take" 1000)" 1 -t "$((dead / 1000))" || exit
		[ "$what" != tq ] || forget_messages || exit
		sql CHECKPOINT
		before=$(pending_in "$what")
		pgbench_run "$(script "${what}_claim" "$n")" "$clients" -T "$seconds" || exit
		after=$(pending_in "$what")
		((after == 0)) || break
		say "$what: a backlog of $before does not last for $seconds s"
		backlog=$((2 * backlog))
		echo "$backlog" >"$known"
	done
	(($(running_in "$what") <= dead + n * clients)) || { echo "$what: not all was completed" >&2; exit 1; }
	awk -v done="$((before - after))" '/^number of transactions actually/ { runs = $NF + 0 } /^tps/ { tps = $3 }
		END { print done / runs * tps }' "$work/out"
}

claimed_fresh() { claimed "$1" 1 16 1 "$(scaled 40000 20000)"; }

claimed_dead() {
	autovacuum off || exit
	claimed "$1" 1 16 1 "$(scaled 40000 20000)" "$(scaled 100000 5000)" || exit
	autovacuum on
}

claimed_hundred() { claimed "$1" 100 4 1 "$(scaled 200000 100000)"; }

part_claim() {
	local others=()
	! has_peer graphile || others+=(graphile)
	! has_peer pgboss || others+=(pgboss)
	wanted default
	row claim.fresh tasks/s "claim 1, complete 1, 16 clients, fresh backlog of $(scaled 40000 20000) or more"
	turns_with_cost claim.fresh claimed_fresh bare tq busy keep "${others[@]}"
	row claim.dead tasks/s "claim 1, complete 1, 16 clients, after $(scaled 100000 5000) just claimed, no vacuum"
	turns_with_cost claim.dead claimed_dead bare tq "${others[@]}"
	row claim.hundred tasks/s "claim 100, complete 100, 4 clients, fresh backlog of $(scaled 200000 100000) or more"
	turns_with_cost claim.hundred claimed_hundred bare tq busy keep "${others[@]}"
	text "Sessions of claim_work() and resolve(), one by one, wait for: $(waits_of claimed_fresh tq)." \
		"Those of the bare table: $(waits_of claimed_fresh bare)."
	text 'bare deletes what is completed, keep updates it. busy is tq by a worker that completes what it has and' \
		'claims the next by resolve_and_claim().'
}
