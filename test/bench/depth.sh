# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# depth.sh: the part depth.  Databases with tq beside each other: with shallow
# and deep backlogs, and with one queue and 10,000.  Each measurement claims and
# completes, one at a time with 16 clients, some thousands, and what it has
# taken is put back before the next; databases take turns.

depth_slice=8000			# so many at a time

in_database() {
	local to=$1
	shift
	PGDATABASE=$to "$@"
}

depth_database() {
	local name=${database}_$1 home=$PGDATABASE
	make_database "$name"
	export PGDATABASE=$home
}

# slice [SCRIPT]: seconds for a slice; then the backlog is what it was.
slice() {
	local name=${1:-tq_claim} fill=${2:-fill tq $depth_slice}
	forget_messages || exit
	pgbench_run "$(script "$name" 1)" 16 -t "$((depth_slice / 16))" || exit
	pgbench_rate
	wanted none && $fill && wanted default || exit
}

depth_variant() { in_database "${database}_$1" slice; }

spread_variant() {
	case $1 in
		spread) in_database "${database}_many" slice tq_spread queues_fill ;;
		*) in_database "${database}_$1" slice ;;
	esac
}

# queues_fill [TIMES]: one task more in each of the other queues.
queues_fill() {
	local i
	for ((i = 0; i < ${1:-1}; i++)); do
		renew_definitions
		PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" sql "DO \$\$ BEGIN
			FOR i IN 0..$((queues_many / 1000 - 1)) LOOP
				PERFORM tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', tq.slugid(), 'task',
					'$(<"$work/definition")'::jsonb || jsonb_build_object('taskQueueId', 'bench/q' || i * 1000 + j)))
					FROM generate_series(1, 1000) AS j));
				COMMIT;
			END LOOP; END \$\$" || exit
	done
}

part_depth() {
	local shallow deep backlog
	shallow=10000 deep=$(scaled 5000000 40000) backlog=$(scaled 200000 40000) queues_many=10000
	depth_database shallow
	depth_database deep
	in_database "${database}_shallow" load tq "$shallow"
	in_database "${database}_deep" load tq "$deep"
	row depth tasks/s "claim 1, complete 1, 16 clients, backlog of $shallow and of $deep"
	depth_turns depth depth_variant shallow deep
	depth_end shallow deep
	depth_database single
	depth_database many
	in_database "${database}_single" load tq "$backlog"
	in_database "${database}_many" queues_fill 20
	in_database "${database}_many" load tq "$backlog"
	row queues tasks/s "claim 1, complete 1, 16 clients, backlog of $backlog in a single queue, and in one among $queues_many"
	depth_turns queues spread_variant single many spread
	depth_end single many
	text "Slices of $depth_slice tasks. spread claims from any of the $queues_many other queues, which have 20 tasks each."
}

# More turns, as each is short.
depth_turns() { rounds=$((rounds * 3)) turns "$@"; }

depth_end() {
	local name
	for name in "$@"; do PGDATABASE=$tq_home psql -Xqc "DROP DATABASE ${database}_$name WITH (FORCE)" || exit; done
}
