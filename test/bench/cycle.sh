# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# cycle.sh: the part cycle.  Each client creates n, claims n and completes n, in
# three transactions: drive, as each task has a definition with a new id, which
# is a parameter; what is claimed comes to the client with its payload.

# What was left over was not done: tasks per second count what came to its end.
cycle_rate() {
	local what=$1 n=$2 tps created ended
	fresh || exit
	tps=$(cycles "$what" "$n" 16 -T 1) || exit
	if [[ $what != @(row|by_sql) ]]; then
		read -r created ended < <(psql -XqAt -F ' ' -c 'SELECT (SELECT count(*) FROM tq_internal.task), (SELECT count(*) FROM tq_internal.run WHERE state = 3)')
		((ended * 100 >= created * 98)) || { echo "only $ended of $created tasks came to their end" >&2; exit 1; }
	fi
	awk -v t="$tps" -v n="$n" 'BEGIN { printf "%.0f\n", t * n }'
}

cycle_variant() {
	case $1 in
		row | by_sql) cycle_rate "$1" "$cycle_n" ;;
		tq | alike) wanted none && cycle_rate "$1" "$cycle_n" ;;
		bound) wanted default && cycle_rate tq "$cycle_n" ;;
	esac
}

part_cycle() {
	for cycle_n in 1 10 100; do
		row "cycle.$cycle_n" tasks/s "create $cycle_n, claim $cycle_n, complete $cycle_n, 16 clients"
		turns_with_cost "cycle.$cycle_n" cycle_variant row tq bound alike by_sql
	done
	cycle_n=10
	text "Sessions of cycles of 10 wait for: $(waits_of cycle_variant bound)." \
		"Those of the table: $(waits_of cycle_variant row)."
	wanted default
	text 'row is inserted, and updated twice by its primary key. tq has nothing bound to its exchanges; bound has the' \
		'default bindings, and no client listens; alike is as tq, but creates by enqueue_tasks() with payloads only;' \
		'by_sql are SQL statements that write the rows and entries of alike, and find them by their keys.'
}
