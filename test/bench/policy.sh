# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# policy.sh: the part policy.  What policies cost tasks that have one, and that
# delayed tasks slow down no others.
#
# Life-cycles are those of part cycle, with fewer clients, and in more and shorter
# turns, as what differs is little.  Claims beside tasks that are delayed are those
# of part depth.  What is due is done by one call of upkeep(), in one transaction,
# by a session whose clock is ahead, in a database that has nothing else to do.

# shellcheck source=depth.sh
. "$bench/depth.sh"

# What is added to a definition.  Nothing of it comes to anything, but where tasks
# fail, and where they are delayed.
declare -A policy_keys=(
	[plain]=''
	[kept]='"policy": {"retries": 3, "retryOn": ["failed", "claim-expired", "worker-shutdown"], "retryBackoff": {"kind": "exponential", "delay": 10, "max": 600}, "deadLetter": true}, '
	[timed]='"policy": {"claimTimeout": 600, "runTimeout": 3600, "pendingTimeout": 3600}, '
	[failing]='"policy": {"retries": 1, "retryOn": ["failed"]}, '
	[delayed]='"delay": 72000, '
)

# Empty tables, also those that only policies fill.
policy_fresh() { sql 'TRUNCATE tq_internal.run_detail, tq_internal.dependency_counter, tq_internal.dead_letter' && fresh; }

# policy_batch WHAT N: a file with N definitions that have it.
policy_batch() {
	renew_definitions
	sed "s/\"task\": {/&${policy_keys[$1]}/g" "$work/tq.$2" >"$work/policy.batch" && echo "$work/policy.batch"
}

# The policy alone, for enqueue_tasks().
policy_file() {
	local keys=${policy_keys[$1]%, }
	printf '%s' "${keys#*: }" >"$work/policy.json" && echo "$work/policy.json"
}

# ---------------------------------------------------------------------------
# Life-cycles
# ---------------------------------------------------------------------------

# policy_ended WHAT LAST: all that were created have come to their end, which is
# that of run LAST, but for what was in the clients' hands when the time was
# over; and it was measured what is meant.
policy_ended() {
	local created ended with without=0
	read -r created ended with < <(psql -XqAt -F ' ' -c "SELECT (SELECT count(*) FROM tq_internal.task),
		(SELECT count(*) FROM tq_internal.run WHERE state = 3 AND run_id = $2), (SELECT count(policy) FROM tq_internal.task)")
	((ended * 100 + 16000 >= created * 98)) || { echo "$1: only $ended of $created tasks came to their end" >&2; exit 1; }
	[ "$1" != plain ] || without=$created
	((created > 0 && with + without == created)) || { echo "$1: $with of $created tasks have a policy" >&2; exit 1; }
}

# policy_cycles SCRIPT WHAT OPTION...: tasks per second.
policy_cycles() {
	local script=$1 what=$2 last=0
	shift 2
	[ "$what" != failing ] || last=1
	drive_run "$(script "$script" 10)" -c 8 -T "$(scaled 3)" "$@" && policy_ended "$what" "$last" || exit
	awk '{ print 10 * $2 }' "$work/driven"
}

policy_defined() {
	local script=tq_cycle
	[ "$1" != failing ] || script=failing_cycle
	policy_fresh || exit
	policy_cycles "$script" "$1" -p "batch=$(policy_batch "$1" 10)"
}

policy_alike() {
	policy_fresh || exit
	case $1 in
		plain) policy_cycles alike_cycle "$1" -p "batch=$(batch_of alike 10)" ;;
		*) policy_cycles policy_cycle "$1" -p "batch=$(batch_of alike 10)" -p "policy=$(policy_file "$1")" ;;
	esac
}

# ---------------------------------------------------------------------------
# Delayed tasks beside those that are claimed
# ---------------------------------------------------------------------------

# delayed_fill N: so many that can be claimed in twenty hours.
delayed_fill() {
	quietly
	PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" \
		drive_run "$(bulk_script tq)" -c 4 -t "$((($1 + 3999) / 4000))" -p "batch=$(policy_batch delayed 1000)" || exit
	(($(sql 'SELECT count(*) FROM tq_internal.delayed') >= $1)) || { echo 'the tasks are not delayed' >&2; exit 1; }
}

# ---------------------------------------------------------------------------
# A group that is cancelled
# ---------------------------------------------------------------------------

# group_end cancel|report|blocked: milliseconds of the call that ends a group: of
# cancel_task_group(), and of a report that cancels all others, which are
# pending, or wait for the one that is reported.
group_end() {
	local call="tq.cancel_task_group(:'grp')" left=0 required=''
	[ "$1" = cancel ] || call="tq.report_failed(:'first', :run_id)" left=1
	[ "$1" != blocked ] || required=", dependencies => ARRAY[:'first'::tq.slugid]"
	policy_fresh || exit
	psql -XqAt -v ON_ERROR_STOP=1 <<-SQL | policy_checked "$1" "$((policy_group - left))"
		SELECT tq.slugid() AS grp \gset
		SELECT tq.enqueue('bench/first', task_group_id => :'grp', policy => '{"onUnsuccessful": "cancel-group"}') AS first \gset
		SELECT tq.enqueue_tasks('bench/w', array_fill('$payload'::jsonb, ARRAY[$((policy_group - 1))]), task_group_id => :'grp' $required) \g /dev/null
		SELECT run_id FROM tq.claim_work('bench/first', 'g', 'w') \gset
		SELECT tq.seal_task_group(:'grp') \g /dev/null
		VACUUM ANALYZE;
		CHECKPOINT;
		SELECT extract(epoch FROM clock_timestamp()) AS begin \gset
		SELECT $call \g /dev/null
		SELECT extract(epoch FROM clock_timestamp()) AS finish \gset
		SELECT count(*), 1000 * (:finish - :begin) FROM tq_internal.run WHERE tq_internal.reason_resolved_name(reason_resolved) = 'canceled';
	SQL
}

# policy_checked WHAT N: reads how many were done, which shall be N, and the
# figure, which it prints.
policy_checked() {
	local all figure
	IFS='|' read -r all figure
	[ "$all" = "$2" ] || { echo "$1: ${all:-0} of $2 are done" >&2; exit 1; }
	echo "$figure"
}

# ---------------------------------------------------------------------------
# What is due
# ---------------------------------------------------------------------------

# due_tasks WHAT: tasks per second that are brought on by upkeep(), when it is
# two hours later, or for their deadlines a day and an hour; tasks by the hundred.
due_tasks() {
	local policy='{}' later='2 h' step=pending-timeout pending=0
	case $1 in
		deadline) later='25 h' step=deadline ;;
		timeout) policy='{"pendingTimeout": 3600}' ;;
		retried) policy='{"pendingTimeout": 3600, "retries": 1, "retryOn": ["pending-timeout"]}' pending=$policy_due ;;
		delayed) policy='{"delay": 3600}' step=delayed pending=$policy_due ;;
	esac
	printf '%s' "$policy" >"$work/policy.json"
	policy_fresh || exit
	PGOPTIONS="$PGOPTIONS -c synchronous_commit=off" drive_run "$(bulk_script policy)" -c 4 -t "$((policy_due / 400))" \
		-p "batch=$(batch_of alike 100)" -p "policy=$work/policy.json" || exit
	sql 'VACUUM ANALYZE' && sql CHECKPOINT || exit
	psql -XqAt -v ON_ERROR_STOP=1 <<-SQL | policy_checked "$1" "$policy_due"
		SET tq.clock_offset = '$later';
		SELECT extract(epoch FROM clock_timestamp()) AS begin \gset
		SELECT tasks FROM tq.upkeep() WHERE step = '$step' \gset
		SELECT extract(epoch FROM clock_timestamp()) AS finish \gset
		SELECT CASE WHEN count(*) = $pending THEN :tasks ELSE 0 END, :tasks / (:finish - :begin) FROM tq_internal.pending;
	SQL
}

due_variant() { in_database "${database}_due" due_tasks "$1"; }

part_policy() {
	# shellcheck disable=SC2034	# who empties tables: our databases have none of the peers'
	local backlog delayed peers=()
	backlog=40000 delayed=$(scaled 1000000 10000)
	policy_group=$(scaled 10000 1000) policy_due=$(($(scaled 100000 10000) / 400 * 400))
	wanted none
	row policy.cycle tasks/s 'create 10, claim 10, complete 10, 8 clients, by whole definitions'
	depth_turns policy.cycle policy_defined plain kept timed failing
	row policy.alike tasks/s 'the same, by enqueue_tasks()'
	depth_turns policy.alike policy_alike plain kept timed
	text 'plain has no policy; kept has one with retries, retryOn, retryBackoff and deadLetter, none of which is needed;' \
		'timed has times for the claim, the run and until it is claimed, none of which is over; failing fails once and is' \
		'retried at once, so that each task has two runs, that are claimed and resolved.'
	row policy.group ms "a group of $policy_group: until all is cancelled"
	turns policy.group group_end cancel report blocked
	text 'cancel is cancel_task_group(); report is a failed task whose policy cancels its group; in blocked the others' \
		'wait for that one. The group is sealed, and there are no other sessions.'

	depth_database none
	depth_database delayed
	in_database "${database}_delayed" delayed_fill "$delayed"
	in_database "${database}_delayed" fill tq "$backlog"
	in_database "${database}_delayed" wanted default
	in_database "${database}_delayed" sql 'VACUUM ANALYZE'
	in_database "${database}_none" load tq "$backlog"
	row policy.delayed tasks/s "claim 1, complete 1, 16 clients, backlog of $backlog; $delayed others of that queue are delayed, or none"
	depth_turns policy.delayed depth_variant none delayed
	depth_end none delayed

	depth_database due
	in_database "${database}_due" wanted none
	row policy.due tasks/s "upkeep() when $policy_due are due"
	turns policy.due due_variant deadline timeout retried delayed
	depth_end due
	wanted default
	text 'deadline has no policy; timeout ends its tasks by pendingTimeout, retried begins a new run in their place;' \
		'delayed become claimable.'
}
