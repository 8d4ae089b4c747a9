# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# create.sh: the part create.  Default bindings, no client listens.
#
# One per transaction: pgbench, 16 clients, the payload or definition is a
# parameter.  In bulk: drive, 4 clients, a thousand to a statement, all in one
# parameter: an array of payloads for a table and for enqueue_tasks(), definitions
# with new ids for create_tasks(), the JSON of their clients for graphile-worker
# and pg-boss.

created_one() {
	fresh || exit
	pgbench_run "$(script "$1_create" 1)" 16 -T "$(scaled 6)" && pgbench_rate
}

created_bulk() {
	fresh || exit
	drive_run "$(bulk_script "$1")" -c 4 -T "$(scaled 5)" -p "batch=$(batch_of "$1" 1000)" || exit
	awk '{ print 1000 * $2 }' "$work/driven"
}

part_create() {
	wanted default
	row create.one tasks/s 'create one per transaction, 16 clients'
	turns create.one created_one bare tq definition row "${peers[@]}"
	row create.bulk tasks/s 'create in bulk of 1000, 4 clients'
	turns create.bulk created_bulk bare tq alike row "${peers[@]}"
	text 'bare has the index to claim by, row has its primary key only; tq is enqueue(), or in bulk' \
		'create_tasks() with whole definitions; definition is create_task(), alike is enqueue_tasks() with payloads.'
}
