# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# create.sh: the part create.  Default bindings, no client listens.
#
# One per transaction: the payload or definition is a parameter.  create.one, by
# pgbench, and create.fresh are about sessions that begin with the measurement, whose
# first calls count; the rows by the number of clients, by drive, about sessions that
# have created before; create.connect about connections of one creation each.  In bulk: drive, 4 clients, a thousand to a statement, all in one
# parameter: an array of payloads for a table and for enqueue_tasks(), definitions
# with new ids for create_tasks(), the JSON of their clients for graphile-worker
# and pg-boss.

create_clients=16

# created_one VARIANT [OPTION...]: by pgbench.
created_one() {
	fresh || exit
	pgbench_run "$(script "$1_create" 1)" "$create_clients" -T 1 "${@:2}" && pgbench_rate
}

created_by_connections() { created_one "$1" -C; }

# created_by VARIANT: by drive, each session after so many calls.
created_by() {
	fresh || exit
	drive_run "$(script "$1_create" 1)" -c "$create_clients" -w "$create_warm" -T 1 -p "payload=$work/payload" && drive_rate
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
	create_warm=20
	for create_clients in 1 4 16 64 200; do
		row "create.$create_clients" tasks/s "the same, $create_clients clients whose sessions have created before"
		turns_with_cost "create.$create_clients" created_by bare tq by_sql
	done
	create_warm=0
	for create_clients in 16 64 200; do
		row "create.fresh.$create_clients" tasks/s "the same, $create_clients clients that have just connected"
		turns_with_cost "create.fresh.$create_clients" created_by bare tq
	done
	create_clients=16
	row create.connect tasks/s 'the same, 16 clients with a connection for each'
	turns create.connect created_by_connections bare tq
	text "Sessions of enqueue() wait for: $(waits_of created_one tq)." \
		"Those of the bare table: $(waits_of created_one bare)."
	row create.bulk tasks/s 'create in bulk of 1000, 4 clients'
	turns_with_cost create.bulk created_bulk bare tq alike row "${peers[@]}"
	text "Sessions of create_tasks(), 1000 each, wait for: $(waits_of created_bulk tq)." \
		"Those of the bare table: $(waits_of created_bulk bare)."
	text 'bare has the index to claim by, row has its primary key only; tq is enqueue(), or in bulk' \
		'create_tasks() with whole definitions; definition is create_task(), alike is enqueue_tasks() with payloads;' \
		'by_sql is an SQL statement that writes the rows and entries of enqueue().'
}
