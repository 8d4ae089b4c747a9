# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# limits.sh: the part limits.  What limits of a queue cost its claims, and that
# tasks whose keys are at their limits slow down no others.
#
# Claims are those of part depth, in databases beside each other.  No limit is ever
# reached.

# shellcheck source=depth.sh
. "$bench/depth.sh"

limits_keys=100

# limits_set SETTINGS: the queue that is measured has them.
limits_set() { sql "SELECT tq.set_queue('bench/w', '$1')" >/dev/null; }

# limits_park N: so many tasks wait for their keys, of each of which one runs.
limits_park() {
	local i n=$(($1 / limits_keys))
	limits_set '{"keyConcurrentLimit": 1}' || exit
	for ((i = 0; i < limits_keys; i++)); do
		PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" sql "SELECT count(*) FROM unnest(tq.enqueue_tasks('bench/w',
			array_fill('$payload'::jsonb, ARRAY[$n]), policy => '{\"concurrencyKey\": \"key $i\"}'))" >/dev/null || exit
	done
	until [ "$(sql 'SELECT count(*) FROM tq.upkeep()' >/dev/null && sql 'SELECT count(*) FROM tq_internal.timer WHERE kind = 7')" = 0 ]; do :; done
	sql "SELECT count(*) FROM tq.claim_work('bench/w', 'g', 'w', $limits_keys)" >/dev/null || exit
	(($(sql "SELECT count(*) FROM tq_internal.delayed WHERE visible_at = 'infinity'") == (n - 1) * limits_keys)) ||
		{ echo 'the tasks do not wait for their keys' >&2; exit 1; }
	sql 'DELETE FROM tq_internal.timer'	# their deadlines, as load does
}

part_limits() {
	local name backlog parked
	backlog=40000 parked=$(scaled 1000000 10000)
	for name in none concurrent rate both parked; do depth_database "$name"; done
	in_database "${database}_concurrent" limits_set '{"concurrentLimit": 1000}'
	in_database "${database}_rate" limits_set '{"rateCount": 100000000, "rateInterval": "1 min"}'
	in_database "${database}_both" limits_set '{"concurrentLimit": 1000, "rateCount": 100000000, "rateInterval": "1 min"}'
	in_database "${database}_parked" limits_park "$parked"
	in_database "${database}_parked" fill tq "$backlog"
	in_database "${database}_parked" wanted default
	in_database "${database}_parked" sql 'VACUUM ANALYZE'
	for name in none concurrent rate both; do in_database "${database}_$name" load tq "$backlog"; done
	row limits tasks/s "claim 1, complete 1, 16 clients, backlog of $backlog, in a queue with limits, or without"
	depth_turns limits depth_variant none concurrent rate both
	row limits.parked tasks/s "the same; $parked others of that queue wait for $limits_keys keys at their limits, or none"
	depth_turns limits.parked depth_variant none parked
	depth_end none concurrent rate both parked
	text 'No limit is reached, but for those of the keys.'
}
