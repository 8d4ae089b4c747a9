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

create_clients=16

created_one() {
	fresh || exit
	pgbench_run "$(script "$1_create" 1)" "$create_clients" -T 1 && pgbench_rate
}

created_bulk() {
	fresh || exit
	drive_run "$(bulk_script "$1")" -c 4 -T 1 -p "batch=$(batch_of "$1" 1000)" || exit
	awk '{ print 1000 * $2 }' "$work/driven"
}

part_create() {
	wanted default
	row create.one tasks/s 'create one per transaction, 16 clients'
	turns_with_cost create.one created_one bare tq definition row "${peers[@]}"
	for create_clients in 1 4 16 64 200; do
		row "create.$create_clients" tasks/s "the same, $create_clients clients"
		turns_with_cost "create.$create_clients" created_one bare tq
	done
	create_clients=16
	text "Sessions of enqueue() wait for: $(waits_of created_one tq)." \
		"Those of the bare table: $(waits_of created_one bare)."
	row create.bulk tasks/s 'create in bulk of 1000, 4 clients'
	turns_with_cost create.bulk created_bulk bare tq alike row "${peers[@]}"
	text "Sessions of create_tasks(), 1000 each, wait for: $(waits_of created_bulk tq)." \
		"Those of the bare table: $(waits_of created_bulk bare)."
	text 'bare has the index to claim by, row has its primary key only; tq is enqueue(), or in bulk' \
		'create_tasks() with whole definitions; definition is create_task(), alike is enqueue_tasks() with payloads.'
}
