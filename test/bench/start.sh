# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# start.sh: the part start.  What the first calls of a new session take, as each
# client pays it that connects for a job, and what an idle session needs.

# start_figures WHAT: of some new sessions.
start_figures() { "$work/start" "$1" "$(scaled 40 5)"; }

part_start() {
	local what round figures i
	wanted default
	fresh || exit
	sql "SELECT tq.enqueue('bench/start') FROM generate_series(1, 100);
		INSERT INTO bare (payload) SELECT '{}' FROM generate_series(1, 100)" >/dev/null || exit
	row start.create ms 'new session: the first create, median'
	row start.create.cpu ms 'new session: the first create, processor time of the server process'
	row start.create.second ms 'new session: the second create, median'
	row start.claim ms 'new session: the first claim, median'
	row start.claim.cpu ms 'new session: the first claim, processor time of the server process'
	row start.claim.second ms 'new session: the second claim, median'
	row start.contexts KiB 'idle session that has created and claimed: its memory contexts'
	row start.private KiB 'idle session that has created and claimed: private memory of its process'
	for ((round = 0; round < rounds; round++)); do
		for what in $(shuf -e bare tq); do
			read -r -a figures < <(start_figures "$what") && ((${#figures[@]} == 8)) || exit
			for i in create:0 create.second:1 claim:2 claim.second:3 create.cpu:4 claim.cpu:5 contexts:6 private:7; do
				[ "${figures[${i#*:}]}" = '?' ] || note "start.${i%:*}" "$what" "${figures[${i#*:}]}"
			done
		done
	done
	text 'A session runs SELECT 1 before. The bare table: INSERT with two indexes, DELETE of the first free row.'
}
