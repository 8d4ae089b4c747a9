# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# memory.sh: the part memory.  One session, one claim_work per task, created
# and completed by the hundred.

part_memory() {
	local n line begin end process last
	n=$(scaled 1000000 20000)
	fresh || exit
	row memory KiB "one session, after a tenth of $n claims, and at their end: its memory contexts"
	row memory.process KiB "one session, after a tenth of $n claims, and at their end: anonymous memory of its process"
	"$bench/memory" "$n" >"$work/memory" || exit
	while IFS= read -r line; do text "$line"; done <"$work/memory"
	awk -F ' *[|] *' -v n="$n" '$2 + 0 >= n / 10 && !begin { begin = $3; process = $5 } { end = $3; last = $5 }
		END { print begin, end, process, last }' "$work/memory" >"$work/memory.ends"
	read -r begin end process last <"$work/memory.ends"
	note memory begin "$begin"
	note memory end "$end"
	if [ "$process" != '?' ]; then
		note memory.process begin "$process"
		note memory.process end "$last"
	fi
}
