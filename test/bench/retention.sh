# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# retention.sh: the part retention.  5,000,000 resolved tasks whose retention is
# over are deleted while 16 clients create, claim and complete: how long claims
# take with and without the sweep, in slices that alternate, and how large the
# tables are.  Maintenance is turned on and off for that, on the whole server.

retention_slice=10		# seconds
retention_settle=2		# of these, the first do not count

maintenance() {
	sql "ALTER SYSTEM SET tq.maintenance = $1" && sql 'SELECT pg_reload_conf()' >/dev/null || exit
}

# Tasks that the sweep has deleted.
swept() { sql "SELECT coalesce(sum(tasks), 0) FROM tq.maintenance_overview WHERE step = 'sweep'"; }

# A slice; what it was and when it began and ended goes to a file, with what has
# been deleted by then.
retention_slice() {
	local begin
	maintenance "$([ "$1" = with ] && echo on || echo off)"
	sleep "$retention_settle"
	begin=$(date +%s.%N)
	sleep "$((retention_slice - retention_settle))"
	echo "$1 $begin $(date +%s.%N) $(swept)" >>"$work/slices"
}

# Slices until all is deleted, at most so many pairs.
retention_slices() {
	local i n=$1 most=$2
	: >"$work/slices"
	retention_sizes 0
	for ((i = 1; i <= most; i++)); do
		for variant in $(shuf -e with without); do retention_slice "$variant"; done
		((i % 4 != 0)) || retention_sizes "$(awk -v s="$retention_slice" -v i="$i" 'BEGIN { print 2 * s * i }')"
		(($(swept) < n)) || break
	done
	retention_sizes "$(awk -v s="$retention_slice" -v i="$i" 'BEGIN { print 2 * s * i }')"
}

# MiB of tables and their indexes, after so many seconds.
retention_sizes() {
	local table mib all=''
	while IFS='|' read -r table mib; do
		printf 'series\tretention.size\t%s\t%s\t%s\n' "$table" "$1" "$mib"
		all+=" $table $mib"
	done < <(sql "SELECT relname, round(pg_relation_size(oid) / 1048576.0) FROM pg_class
		WHERE relname IN ('task', 'task_pkey', 'task_task_id_key', 'run', 'run_pkey') AND relnamespace = 'tq_internal'::regnamespace ORDER BY 1")
	text "After $1 s, $(swept) deleted; MiB:$all" ''
	say "$1 s, $(swept) deleted, MiB:$all"
}

# Of each slice: median and 99th percentile of the claims, and claims per second.
retention_figures() {
	local variant begin end rest figures before=''
	sort -n "$work"/claims.* >"$work/claims"
	while read -r variant begin end rest; do
		read -r -a figures < <(awk -v b="$begin" -v e="$end" '$1 >= e { exit } $1 >= b { print $2 }' "$work/claims" | sort -n |
			awk -v s="$(awk -v b="$begin" -v e="$end" 'BEGIN { print e - b }')" '{ v[NR] = $1 }
				END { print v[int(NR * 0.5) + 1], v[int(NR * 0.99) + 1], NR / s }')
		note retention.p50 "$variant" "${figures[0]}"
		note retention.p99 "$variant" "${figures[1]}"
		note retention.rate "$variant" "${figures[2]}"
		[ "$variant" != with ] || [ -z "$before" ] || note retention.beside tq "$(((rest - before) / retention_slice))"
		before=$rest
	done <"$work/slices"
}

# Alone, without clients: tasks deleted per second, and WAL for each.
retention_alone() {
	local wal before seconds
	seconds=$(scaled 20 2)
	wal=$(sql 'SELECT pg_current_wal_insert_lsn()')
	maintenance on
	sleep "$seconds"
	before=$(swept)
	((before > 0)) || { echo 'retention: nothing is deleted' >&2; exit 1; }
	note retention.alone tq "$((before / seconds))"
	note retention.wal tq "$(sql "SELECT round((pg_current_wal_insert_lsn() - '$wal'::pg_lsn) / $before)")"
	maintenance off
}

part_retention() {
	local n load home=$PGDATABASE
	n=$(scaled 5000000 50000)
	row retention.alone tasks/s 'tasks deleted by the sweep, without clients'
	row retention.beside tasks/s 'the same, while 16 clients create 1, claim 1, complete 1'
	row retention.wal bytes 'WAL for each of them'
	row retention.p50 ms 'claim while 16 clients create 1, claim 1, complete 1, with the sweep and without: median'
	row retention.p99 ms 'the same, 99th percentile'
	row retention.rate tasks/s 'the same, tasks created, claimed and completed'
	row retention.size MiB 'the same, size of tables and indexes over time, in seconds'
	maintenance off
	make_database "${database}_retention"
	quietly && make_definitions && sql "$(<"$bench/many.sql")" && sql "CALL many.fill($n, '60 days', false)" &&
		fill tq 1000 &&		# numbers continue behind those of the fill, and a publisher reads none of it again
		sql 'VACUUM ANALYZE' && sql CHECKPOINT || exit
	retention_alone
	setsid "$work/drive" -c 16 -T "$(scaled 500 70)" -l "$work/claims" -p "batch=$(batch_of tq 1)" "$(script tq_cycle 1)" >/dev/null &
	load=$!
	retention_slices "$n" "$(scaled 20 2)"
	text "$(swept) of $n tasks were deleted in $(awk '$1 == "with"' "$work/slices" | wc -l) slices of $retention_slice s."
	sleep 1			# for what the clients have not written yet
	kill -- -"$load"
	wait "$load" 2>/dev/null
	retention_figures
	sql 'ALTER SYSTEM RESET tq.maintenance' && sql 'SELECT pg_reload_conf()' >/dev/null || exit
	export PGDATABASE=$home
	PGDATABASE=$tq_home psql -Xqc "DROP DATABASE ${database}_retention WITH (FORCE)"
}
