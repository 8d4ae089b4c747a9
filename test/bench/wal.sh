# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# wal.sh: the part wal.  Bytes of WAL from created to completed, by the life-cycles
# of part cycle, one client, when as many have gone before.

# wal WHAT N [CHECKPOINT]: bytes per task; from a checkpoint on it holds images
# of the pages that were there.  What the maintenance worker writes to publish
# the messages is counted as well.
wal() {
	local what=$1 n=$2 before tasks
	tasks=$(($(scaled 20000 2000) / n * n))
	fresh || exit
	cycles "$what" "$n" 1 -t "$((tasks / n))" >/dev/null && published || exit
	[ -z "${3:-}" ] || sql CHECKPOINT || exit
	before=$(sql 'SELECT pg_current_wal_insert_lsn()')
	cycles "$what" "$n" 1 -t "$((tasks / n))" >/dev/null && published || exit
	sql "SELECT round((pg_current_wal_insert_lsn() - '$before'::pg_lsn) / $tasks)"
}

# wal_created WHAT: bytes per task of a creation, one by one.
wal_created() {
	local before tasks create
	tasks=$(scaled 20000 2000)
	create=(drive_run "$(script "$1_create" 1)" -c 1 -t "$tasks" -p "payload=$work/payload")
	wanted default && fresh && "${create[@]}" && published || exit
	before=$(sql 'SELECT pg_current_wal_insert_lsn()')
	"${create[@]}" && published || exit
	sql "SELECT round((pg_current_wal_insert_lsn() - '$before'::pg_lsn) / $tasks)"
}

wal_variant() {
	case $1 in
		row) wal row "$wal_n" "$wal_from" ;;
		tq) wanted none && wal tq "$wal_n" "$wal_from" ;;
		bound) wanted default && wal tq "$wal_n" "$wal_from" ;;
	esac
}

part_wal() {
	autovacuum off || exit		# what it writes, it writes when it likes
	for wal_n in 1 10 100; do
		wal_from=checkpoint
		row "wal.$wal_n" bytes "WAL per task, n = $wal_n, from a checkpoint on"
		turns "wal.$wal_n" wal_variant row tq bound
		wal_from=''
		row "wal.$wal_n.on" bytes "WAL per task, n = $wal_n, when the checkpoint is some time ago"
		turns "wal.$wal_n.on" wal_variant row tq bound
	done
	row wal.create bytes 'WAL per task, create only, one per transaction, when the checkpoint is some time ago'
	turns wal.create wal_created bare tq
	autovacuum on && wanted default
	text 'tq has nothing bound to its exchanges; bound has the default bindings.'
}
