# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what run has set
#
# shards.sh: the part shards.  What a router, which is a database with tq_shard,
# adds to calls, and what a task costs with one, two and four shards.
#
# The router and its four shards are databases of one server, nothing is bound in
# them, and direct is a client of the first shard.  CPU is that of all processes
# of the server; of the router's sessions too.  The first calls of a session cost
# more than the others, and a session of a router has one on each shard: so clients
# run long enough for that not to count.

shards_all=(1 2 3 4)

shards_at() { echo "${database}_shard$1"; }

# Empty shards, each with some buckets and a backlog, behind a router.
shards_make() {
	local n home=$PGDATABASE
	for n in "${shards_all[@]}"; do make_database "$(shards_at "$n")"; done
	databases+=("${database}_router")
	PGDATABASE=$tq_home psql -Xqc "CREATE DATABASE ${database}_router" || exit
	export PGDATABASE=${database}_router
	sql 'CREATE EXTENSION tq_shard CASCADE' || exit
	for n in "${shards_all[@]}"; do
		sql "CALL tq_shard.add_shard('shard$n', format('host=%s port=%s dbname=%s', '$(sql 'SHOW unix_socket_directories')',
			current_setting('port'), '$(shards_at "$n")'))" || exit
	done
	sql 'SELECT tq_shard.refresh()' >/dev/null || exit		# the shards that lost buckets are empty
	export PGDATABASE=$home
	for n in "${shards_all[@]}"; do PGDATABASE=$(shards_at "$n") quietly || exit; done
}

# shards_load THOUSANDS SHARD...: these have a backlog of so many thousand each, and
# nothing else.
shards_load() {
	local n thousands=$1
	shift
	for n in "$@"; do
		PGDATABASE=$(shards_at "$n") sql "TRUNCATE $(tables_of tq);
			SELECT sum(cardinality(tq.enqueue_tasks('bench/w', array_fill('$payload'::jsonb, ARRAY[1000]))))
			FROM generate_series(1, $thousands)" >/dev/null || exit
		PGDATABASE=$(shards_at "$n") sql 'VACUUM ANALYZE' || exit
	done
	sql CHECKPOINT
}

# shards_backlog VARIANT TASKS: so many and a few more, on one shard or on all.
shards_backlog() {
	if [ "$1" = direct ]; then
		shards_load "$(($2 / 1000 + 2))" 1
	else
		shards_load "$(($2 / 4000 + 2))" "${shards_all[@]}"
	fi
}

# shards_of VARIANT: the database that its clients call.
shards_of() { if [ "$1" = direct ]; then shards_at 1; else echo "${database}_router"; fi; }

# shards_cost KEY VARIANT TASKS COMMAND...: notes the server CPU of a command, in
# microseconds for each of so many tasks or calls.
shards_cost() {
	local key=$1 variant=$2 n=$3 before
	shift 3
	before=$(ticks)
	"$@" || exit
	note "$key" "$variant" "$(awk -v t="$(($(ticks) - before))" -v hz="$(getconf CLK_TCK)" -v n="$n" 'BEGIN { print t / hz * 1e6 / n }')"
}

# One call in each transaction, on tasks of their own and of the backlog.
shards_singles() {
	local variant=$1 times=$2 clients=4
	shards_backlog "$variant" "$((times * clients))"
	PGDATABASE=$(shards_of "$variant") shards_cost shards.single.cpu "$variant" "$((4 * times * clients))" \
		pgbench_run "$work/sql/shards_single.sql" "$clients" -r -t "$times"
	note shards.single "$variant" "$(awk -v r="$(pgbench_rate)" 'BEGIN { print 4 * r }')"
	awk '/^statement latencies/ { on = 1; next } on && $3 == "SELECT" { print $1 }' "$work/out" >"$work/calls"
	paste <(printf '%s\n' enqueue claim resolve status) "$work/calls" | while read -r name value; do
		note "shards.$name" "$variant" "$value"
	done
}

shards_hundreds() {
	local variant=$1 times=$2 clients=4
	shards_backlog "$variant" "$((100 * (times + 40) * clients))"
	PGDATABASE=$(shards_of "$variant") shards_cost shards.hundred.cpu "$variant" "$((100 * times * clients))" \
		drive_run "$(script shards_hundred 100)" -c "$clients" -t "$times" -w 40
	note shards.hundred "$variant" "$(awk '{ print 100 * $2 }' "$work/driven")"
}

# shards_drive SHARDS TIMES: life-cycles on so many of them at the same time, eight
# clients in all, each of which knows its shard.
shards_drive() {
	local n of pids=()
	of=$(script alike_cycle 10)
	for ((n = 1; n <= $1; n++)); do
		PGDATABASE=$(shards_at "$n") "$work/drive" -c "$((8 / $1))" -t "$2" -p "batch=$work/bare.10" \
			"$of" >/dev/null &
		pids+=($!)
	done
	for n in "${pids[@]}"; do wait "$n" || exit; done
}

shards_cycles() {
	shards_load 1 "${shards_all[@]}"
	shards_cost shards.cpu "$1" "$((80 * $2))" shards_drive "$1" "$2"
}

# shards_turns COMMAND TIMES VARIANT...: in each round in another order.
shards_turns() {
	local command=$1 times=$2 round variant variants
	shift 2
	for ((round = 0; round < rounds; round++)); do
		mapfile -t variants < <(shuf -e -- "$@")
		for variant in "${variants[@]}"; do "$command" "$variant" "$times" || exit; done
	done
}

# shards_row KEY UNIT TITLE VARIANT...
shards_row() {
	row "$1" "$2" "$3"
	printf 'order\t%s\t%s\n' "$1" "${*:4}"
}

part_shards() {
	local name
	if [ "$(sql "SELECT count(*) FROM pg_available_extensions WHERE name = 'plproxy'")" = 0 ]; then
		text 'There is no plproxy.'
		return
	fi
	shards_make
	shards_row shards.single calls/s 'enqueue, claim 1, resolve 1, status: each a transaction, 4 clients; before four shards' direct router
	shards_row shards.single.cpu us 'server CPU per call of these' direct router
	for name in enqueue claim resolve status; do shards_row "shards.$name" ms "$name, of these" direct router; done
	shards_turns shards_singles "$(scaled 10000)" direct router
	shards_row shards.hundred tasks/s 'claim 100, resolve 100, 4 clients' direct router
	shards_row shards.hundred.cpu us 'server CPU per task of these' direct router
	shards_turns shards_hundreds "$(scaled 5000)" direct router
	shards_row shards.cpu us 'server CPU per task: create 10, claim 10, resolve 10, 8 clients in all, direct, by number of shards' 1 2 4
	shards_turns shards_cycles "$(scaled 1000)" 1 2 4
	for name in router shard1 shard2 shard3 shard4; do PGDATABASE=$tq_home psql -Xqc "DROP DATABASE ${database}_$name WITH (FORCE)" || exit; done
}
