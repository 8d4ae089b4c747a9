# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what run has set
#
# repair.sh: the part repair.  Claims while an operator finds, groups, explains and
# changes tasks, and a page and Prometheus measure.

repair_calls() {
	cat <<-'END'
		SELECT count(*) FROM tq.find_tasks('{"payload": {"command": "none"}}');
		SELECT count(*) FROM tq.find_tasks('{"queue": "many/q3", "state": ["pending"]}');
		SELECT count(*) FROM tq.failure_groups();
		SELECT count(*) FROM tq.critical_path(tq.stable_slugid('many group 20'));
		SELECT length(tq.metrics());
		SELECT count(*) FROM tq.queue_history('many/q3');
		CALL tq.apply('{"queue": "many/q3", "state": ["failed"], "tags": {"kind": "kind-300"}}', 'rerun', max => 100);
		CALL tq.apply('{"queue": "many/q3", "state": ["pending"]}', 'cancel', max => 100);
	END
}

# How many tasks of the queue were completed, and when.
repair_done() { sql "SELECT completed, extract(epoch FROM clock_timestamp()) FROM tq.queue_stats WHERE task_queue_id = 'bench/w'" | tr '|' ' '; }

# repair_slice VARIANT: tasks per second that are completed, alone or beside the calls,
# which another session reads from descriptor 9.
repair_slice() {
	local begin end
	read -r -a begin < <(repair_done)
	[ "$1" = alone ] || repair_calls >&9
	sleep "$repair_seconds"
	read -r -a end < <(repair_done)
	echo "${begin[*]} ${end[*]}" | awk 'NF == 4 && $3 > $1 { print ($3 - $1) / ($4 - $2); ok = 1 } END { exit !ok }'
}

part_repair() {
	local n calls claims
	n=$(scaled 1000000 50000) repair_seconds=$(scaled 10 5)
	fresh && sql "$(<"$bench/many.sql")" && sql "CALL many.fill($n, '5 days', true)" && load tq 10000 && sql 'VACUUM ANALYZE' || exit
	row repair tasks/s "enqueue 1, claim 1, complete 1, 16 clients, beside $n other tasks, slices of $repair_seconds s"
	mkfifo "$work/calls" || exit
	psql -Xq -v ON_ERROR_STOP=1 <"$work/calls" >/dev/null &
	calls=$!
	exec 9>"$work/calls"
	repair_calls >&9		# the first of a session compile and plan
	pgbench_run "$(script tq_churn 1)" 16 -T "$((rounds * 2 * (repair_seconds + 4) + repair_seconds))" 9>&- &
	claims=$!
	sleep "$((repair_seconds / 2))"
	turns repair repair_slice alone beside
	kill -0 "$claims" || { echo 'pgbench ended before' >&2; exit 1; }
	exec 9>&-
	wait "$calls" && wait "$claims" || exit
	text 'beside: at the begin of a slice, two calls of find_tasks(), failure_groups(), critical_path(), metrics(),' \
		'queue_history() and two of apply(), one after the other.'
	sql 'DROP SCHEMA many CASCADE'
	fresh
}
