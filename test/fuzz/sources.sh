# shellcheck shell=bash disable=SC2154	# $here is test/fuzz
#
# sources.sh: what a target of test/fuzz that runs by itself is compiled with.
#
# fuzz_link TARGET sets link: the target, its sources, and what they need.  The sources are
# those of its line "Sources:", or the one of its name in src/core or src/util.  A call
# of others is one of NULL.
fuzz_link() {
	local root=$here/../.. config=${TQ_PG_CONFIG:-${PG_CONFIG:-pg_config}}
	local source=$root/src/core/$1.c
	[ -f "$source" ] || source=$root/src/util/$1.c
	link=("$here/$1.c")
	if [ -f "$source" ]; then
		link+=("$source" -isystem "$("$config" --includedir-server)")
	else
		mapfile -t -O 1 link < <(sed -n 's/^ \* Sources: //p' "$here/$1.c" | tr ' ' '\n' | sed "s,^,$root/,")
		link+=(-iquote "$root/src/bin" -iquote "$root/src/bin/web" -isystem "$("$config" --includedir)" -DTQ_VERSION='""'
			-no-pie "-Wl,--unresolved-symbols=ignore-all" -lm)
	fi
}

# fuzz_lacks TARGET: says what is not installed.
fuzz_lacks() {
	[ "$1" != web ] || echo '#include <microhttpd.h>' | gcc -E - >/dev/null 2>&1 || echo 'libmicrohttpd-dev is not installed'
}
