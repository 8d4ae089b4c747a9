# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what run and the parts set and use
#
# quick.sh: five rows, in little more than a minute; run --quick.

for file in create claim cycle; do
	# shellcheck disable=SC1090	# each is checked by itself
	. "$bench/$file.sh"
done

part_quick() {
	# short runs on small backlogs; the first round warms up what is common
	rounds=3
	wanted default
	row create.one tasks/s 'create one per transaction, 16 clients'
	turns create.one created_one bare tq
	row create.bulk tasks/s 'create in bulk of 1000, 4 clients'
	turns create.bulk created_bulk bare tq
	row claim.fresh tasks/s 'claim 1, complete 1, 16 clients'
	turns claim.fresh claimed_fresh bare tq
	row claim.hundred tasks/s 'claim 100, complete 100, 4 clients'
	turns claim.hundred claimed_hundred bare tq
	cycle_n=10
	row cycle.10 tasks/s 'create 10, claim 10, complete 10, 16 clients'
	turns cycle.10 cycle_variant row tq
	wanted default
}
