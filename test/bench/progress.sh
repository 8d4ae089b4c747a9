# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what run has set
#
# progress.sh: the part progress.  Reports of progress, and tasks that are created
# when a group resolves.

# progress_runs N: so many running runs, by number.
progress_runs() {
	local done=0
	fresh || exit
	load tq "$1" || exit
	sql 'DROP TABLE IF EXISTS progress_run; CREATE TABLE progress_run (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id text NOT NULL)' || exit
	for ((; done < $1; done += 500)); do
		sql "INSERT INTO progress_run (task_id) SELECT task_id FROM tq.claim_work('bench/w', 'g', 'w', 500)" || exit
	done
	sql 'VACUUM ANALYZE progress_run' && published
}

# progress_pass SCRIPT DONE: each run once, by eight clients; reports per second.
progress_pass() {
	pgbench_run "$(script "$1" 1)" 8 -t "$progress_each" -D "each=$progress_each" -D k=0 -D "done=$2" && pgbench_rate
}

# The first report of each run, or one that is later than a second.
progress_variant() {
	local kept=$with_cost
	progress_runs "$((8 * progress_each))" || exit
	case $1 in
		status) progress_pass progress_status 0 ;;
		first) progress_pass progress_report 1 ;;
		later | bound)
			[ "$1" = later ] || sql "SELECT tq.bind('bench_progress', 'task-progress')" >/dev/null || exit
			with_cost=''
			progress_pass progress_report 1 >/dev/null || exit
			with_cost=$kept
			sleep 1.1		# until a report is stored again
			published && progress_pass progress_report 2 || exit
			[ "$1" = later ] || sql "SELECT tq.unbind('bench_progress', 'task-progress')" >/dev/null
			;;
		often) pgbench_run "$(script progress_often 1)" 8 -T "$(scaled 3)" && pgbench_rate ;;
	esac
}

# A group for each task, which has a callback or not.  The callbacks belong to it.
progress_callback() {
	local kept=$with_cost
	fresh || exit
	sql 'TRUNCATE tq_internal.group_callback' || exit
	begin_cost
	with_cost=''
	pgbench_run "$(script "progress_$1" 1)" 8 -t "$progress_each" || exit
	until [ "$(sql 'SELECT count(*) FROM tq_internal.group_callback')" = 0 ]; do sleep 0.01; done
	with_cost=$kept
	pgbench_rate
	end_cost "$(awk '/actually processed/ { n = $NF + 0 } /^tps/ { print n / $3 }' "$work/out")"
}

part_progress() {
	progress_each=$(scaled 1000 200)
	wanted default
	row progress calls/s "progress of running runs, 8 clients"
	turns_with_cost progress progress_variant status first later bound often
	row progress.callback groups/s "a group of one task, which is created, and claimed and completed, 8 clients"
	turns_with_cost progress.callback progress_callback plain resolved
	text 'status: reads the status. first: the first report of a run. later: another one, after more than a second; bound:'
	text 'and task-progress is bound to a channel on which no session listens. often: each client reports on one run, as'
	text 'often as it can; one report a second is stored. resolved: the group has a callback; what the maintenance worker'
	text 'does for it is part of its cost.'
}
