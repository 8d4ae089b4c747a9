# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# graphs.sh: the part graphs.  Each graph is created in one call, and worked off
# by 16 clients that claim one task and complete it, or up to a hundred; a client
# that finds none waits for one in claim_work.

# What task i of 0 to graph_last depends on, in SQL.
dependencies() {
	local side=$graph_side
	case $1 in
		independent) echo "'[]'::jsonb" ;;
		fan-out) echo "CASE WHEN t.i > 0 THEN (SELECT jsonb_agg(id) FROM id WHERE i = 0) ELSE '[]'::jsonb END" ;;
		fan-in) echo "CASE WHEN t.i = 0 THEN (SELECT jsonb_agg(id) FROM id WHERE i > 0) ELSE '[]'::jsonb END" ;;
		grid) echo "(SELECT coalesce(jsonb_agg(id), '[]'::jsonb) FROM id
			WHERE (t.i >= $side AND i = t.i - $side) OR (t.i % $side > 0 AND i = t.i - 1))" ;;
		chain) echo "coalesce((SELECT jsonb_agg(id) FROM id WHERE i = t.i - 1), '[]'::jsonb)" ;;
	esac
}

# create_graph NAME TASKS: creates it.  The ids are in a table with an index, so
# that the grid is described soon.
create_graph() {
	psql -XqAt -v ON_ERROR_STOP=1 <<-SQL
		BEGIN;
		CREATE TEMP TABLE id ON COMMIT DROP AS SELECT i, tq.slugid()::text AS id FROM generate_series(0, $2 - 1) AS i;
		ALTER TABLE id ADD PRIMARY KEY (i);
		ANALYZE id;
		CREATE TEMP TABLE graph ON COMMIT DROP AS SELECT jsonb_agg(jsonb_build_object('taskId', t.id, 'task',
			'$(<"$work/definition")'::jsonb || jsonb_build_object('dependencies', $(dependencies "$1")))) AS tasks
			FROM id AS t;
		SELECT extract(epoch FROM clock_timestamp()) AS begin \gset
		SELECT tq.create_tasks(tasks) FROM graph \g /dev/null
		COMMIT;
		SELECT extract(epoch FROM clock_timestamp()) - :begin;
	SQL
}

# graph NAME TASKS BATCH: tasks per second of those who work it off.
graph() {
	local name=$1 tasks=$2 batch=$3 left
	fresh && create_graph "$name" "$tasks" >"$work/created" && forget_messages && sql 'VACUUM ANALYZE' && sql CHECKPOINT || exit
	drive_run "$(script tq_work "$batch")" -c 16 -n "$tasks" -T 600 || exit
	left=$(sql "SELECT $tasks - count(*) FROM tq_internal.run WHERE state = 3")
	((left == 0)) || { echo "$name: $left tasks were not completed" >&2; exit 1; }
	awk -v n="$tasks" '{ print n / $4 }' "$work/driven"
}

graph_one() { graph "$1" "$graph_tasks" 1; }

graph_hundred() { graph "$1" "$graph_tasks" 100; }

graph_chain() { graph chain "$((graph_tasks / 10))" 1; }

part_graphs() {
	local name
	graph_side=$(awk -v s="$scale" 'BEGIN { v = int(100 * sqrt(s)); print (v > 100 ? 100 : v < 20 ? 20 : v) }')
	graph_tasks=$((graph_side * graph_side))
	wanted default
	row graph tasks/s "graphs of $graph_tasks tasks, 16 workers, one task at a time"
	turns graph graph_one independent fan-out fan-in grid
	row graph.hundred tasks/s "graphs of $graph_tasks tasks, 16 workers, up to 100 at a time"
	turns graph.hundred graph_hundred independent fan-out fan-in grid
	row graph.chain tasks/s "a chain of $((graph_tasks / 10)), 16 workers, one task at a time"
	turns graph.chain graph_chain chain
	row graph.create tasks/s "graphs of $graph_tasks tasks, created in one call"
	for name in independent fan-out fan-in grid; do
		fresh && create_graph "$name" "$graph_tasks" >"$work/created" || exit
		note graph.create "$name" "$(awk -v n="$graph_tasks" 'NF { print n / $1 }' "$work/created")"
	done
}
