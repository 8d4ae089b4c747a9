# shellcheck shell=bash
#
# setup.sh: what test/check, test/demo and test/bench/run stand on.  Sourced.
#
#	tq_packages GROUP...	installs what is missing
#	tq_workdir				makes a temporary directory, all of which ends with us
#	tq_user COMMAND...		runs a command as an ordinary user
#	tq_build				builds and installs tq, for a copy of the server
#	tq_node_pg				has the client of node that README's example needs
#	tq_cluster_start ...	starts a cluster that has tq loaded
#	tq_cluster_stop
#	tq_cleanup				what the trap of tq_workdir does
#
# Variables set for the caller: tq_root, the tree; TQ_TMP, the temporary
# directory; TQ_PG_CONFIG, the pg_config of the copy of the server.  PG_CONFIG,
# if set, is the server to use instead of the distribution's.
#
# The system's own PostgreSQL is read and never written: its clusters, its
# ports and its directories stay as they are.  Only packages are left behind,
# and what was built in .build/ of the tree, so that a second run is quick.

tq_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TQ_TMP='' TQ_PG_CONFIG=''
tq_server=${PG_CONFIG:-}		# pg_config of the server that is copied
tq_owner=''						# ordinary user, if we are root

# Nothing of the caller's environment shall lead to another server, language
# or make than what is meant.
for tq_name in "${!PG@}" MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES LANGUAGE "${!LC_@}"; do
	[ "$tq_name" = PG_CONFIG ] || unset "$tq_name"
done
unset tq_name
export LC_ALL=C.UTF-8

# tq_die TEXT...: says why we cannot go on, and ends.
tq_die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# tq_log FILE COMMAND...: runs a command quietly; its output is shown if it fails.
tq_log() {
	local file=$1 code
	shift
	"$@" >"$file" 2>&1 && return
	code=$?
	tail -n 60 "$file" >&2
	return "$code"
}

# ---------------------------------------------------------------------------
# Packages
# ---------------------------------------------------------------------------

# Major version of PostgreSQL: that of PG_CONFIG, or the distribution's.  A
# release that is not known here is asked by apt, which may need its lists.
tq_major() {
	local release
	if [ -n "${PG_CONFIG:-}" ]; then
		"$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/'
		return
	fi
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
	case $release in
		bookworm) echo 15 ;;
		trixie) echo 17 ;;
		*) apt-cache policy postgresql 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*\).*/\1/p' ;;
	esac
}

# The pg_config of the server to use, once the server is there.
tq_find_server() {
	tq_server=${PG_CONFIG:-/usr/lib/postgresql/$(tq_major)/bin/pg_config}
	[[ $tq_server == */* ]] || tq_server=$(command -v "$tq_server")
}

# tq_has GROUP: is it there already?  Asks for the thing, not for the package,
# so that it may have come in another way.
tq_has() {
	case $1 in
		compiler) command -v gcc && echo '#include <stdio.h>' | gcc -E - ;;
		make) command -v make ;;
		server) [ -x "$("$tq_server" --bindir)/initdb" ] && [ -x "$("$tq_server" --bindir)/postgres" ] ;;
		server-headers)
			[ -f "$("$tq_server" --pgxs)" ] && [ -f "$("$tq_server" --includedir-server)/postgres.h" ] ;;
		pgtap) [ -f "$("$tq_server" --sharedir)/extension/pgtap.control" ] ;;
		pg-cron) [ -f "$("$tq_server" --sharedir)/extension/pg_cron.control" ] ;;
		tap) command -v prove && perl -MIPC::Run -MTest::More -e 1 ;;
		dbd) perl -MDBD::Pg -e 1 ;;
		psycopg) /usr/bin/python3 -c 'import psycopg' ;;
		jsonschema) /usr/bin/python3 -c 'import jsonschema' ;;
		spin) command -v spin ;;
		valgrind) command -v valgrind ;;
		node) command -v node && command -v npm ;;
		git) command -v git ;;
		debhelper) command -v dh && command -v dpkg-buildpackage && dh --list | grep -cx pgxs ;;
		*) tq_die "tq_packages: what is $1?" ;;
	esac >/dev/null 2>&1
}

# tq_package GROUP: its name in Debian.
tq_package() {
	local major
	major=$(tq_major)
	case $1 in
		compiler) echo gcc libc6-dev ;;
		make) echo make ;;
		server) echo "postgresql-$major" ;;
		server-headers) echo "postgresql-server-dev-$major" ;;
		pgtap) echo "postgresql-$major-pgtap" ;;
		pg-cron) echo "postgresql-$major-cron" ;;
		tap) echo perl libipc-run-perl ;;
		dbd) echo libdbd-pg-perl ;;
		psycopg) echo python3 python3-psycopg ;;
		jsonschema) echo python3 python3-jsonschema ;;
		spin) echo spin ;;
		valgrind) echo valgrind ;;
		node) echo nodejs npm ;;
		git) echo git ;;
		debhelper) echo debhelper dpkg-dev postgresql-server-dev-all ;;
	esac
}

# tq_as_root COMMAND...: runs a command as root.
tq_as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian makes and starts a cluster when it installs a server: not for us.  The
# file that says so is afterwards what it was, or would have been: Debian puts
# its own beside one that is there already.
tq_install() {
	# shellcheck disable=SC2016	# for that shell to expand
	tq_as_root env DEBIAN_FRONTEND=noninteractive sh -c '
		conf=/etc/postgresql-common/createcluster.conf kept=$conf.before-tq
		trap : INT TERM HUP
		mkdir -p "${conf%/*}"
		[ ! -f $conf ] || cp -p $conf $kept
		echo "create_main_cluster = false" >$conf
		apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" </dev/null
		code=$?
		if [ -f $kept ]; then
			mv $kept $conf
		elif [ -f $conf.ucf-dist ]; then
			mv $conf.ucf-dist $conf
		else
			rm -f $conf && rmdir "${conf%/*}"
		fi 2>/dev/null
		exit $code' sh "$@"
}

# tq_missing GROUP...: those of the groups that are not there.
tq_missing() {
	local group
	for group in "$@"; do tq_has "$group" || echo "$group"; done
}

# tq_may_miss GROUP: can the tests do without it?  They say what they skip.
tq_may_miss() { [[ $1 == pg-cron || $1 == node || $1 == debhelper ]]; }

# tq_needed GROUP...: those of the groups that they cannot do without.
tq_needed() {
	local group
	for group in "$@"; do tq_may_miss "$group" || echo "$group"; done
}

# tq_packages GROUP...: installs by apt-get what is missing of compiler, make,
# server, server-headers, pgtap, tap, dbd, psycopg, jsonschema, spin, valgrind, git,
# and of pg-cron, node and debhelper, which may stay away.  Where it may not, it
# prints the line that would, and exits.
tq_packages() {
	local missing needed packages group log
	[ -z "${PG_CONFIG:-}" ] || "$PG_CONFIG" --version >/dev/null || tq_die "PG_CONFIG=$PG_CONFIG does not work"
	tq_find_server
	mapfile -t missing < <(tq_missing "$@")
	((${#missing[@]} > 0)) || return 0
	needed=$(tq_needed "${missing[@]}" | paste -sd' ')
	if ! command -v apt-get >/dev/null; then
		[ -n "$needed" ] || return 0
		tq_die "please install: $needed (there is no apt-get here)"
	fi
	log=$(mktemp) || exit
	if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
		echo "* apt-get update"
		tq_log "$log" tq_as_root apt-get -o DPkg::Lock::Timeout=300 update || [ -z "$needed" ] ||
			tq_die 'apt-get update failed'
	fi
	[ -n "$(tq_major)" ] || tq_die 'which PostgreSQL does this system have? Please set PG_CONFIG'
	for group in "${missing[@]}"; do packages+=" $(tq_package "$group")"; done
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
		rm -f "$log"
		[ -n "$needed" ] || return 0
		printf '%s\n' "Some packages are missing.  Please run this as root, and then ${0##*/} again:" \
			"apt-get update && apt-get install -y --no-install-recommends$packages" >&2
		exit 1
	fi
	tq_install_missing "$log" "${missing[@]}"
	rm -f "$log"
}

# tq_install_missing LOG GROUP...: the second half of tq_packages.  What the
# tests can do without is installed by itself, so that it stops nothing else.
tq_install_missing() {
	local log=$1 group packages=() left
	shift
	for group in $(tq_needed "$@"); do
		# shellcheck disable=SC2207	# names of packages have no spaces
		packages+=($(tq_package "$group"))
	done
	if ((${#packages[@]} > 0)); then
		echo "* apt-get install ${packages[*]}"
		tq_log "$log" tq_install "${packages[@]}" || tq_die 'apt-get install failed'
	fi
	for group in "$@"; do
		# shellcheck disable=SC2046
		if ! tq_may_miss "$group" || ! apt-cache show $(tq_package "$group") >/dev/null 2>&1; then continue; fi
		echo "* apt-get install $(tq_package "$group")"
		# shellcheck disable=SC2046
		tq_install $(tq_package "$group") >"$log" 2>&1 || true
	done
	tq_find_server
	mapfile -t left < <(tq_missing "$@")
	group=$(tq_needed "${left[@]}" | paste -sd' ')
	[ -z "$group" ] || tq_die "still missing, for $tq_server: $group"
	for group in "${left[@]}"; do echo "warning: $group is not to be had here" >&2; done
}

# ---------------------------------------------------------------------------
# A place and a user
# ---------------------------------------------------------------------------

# tq_user COMMAND...: runs a command as an ordinary user: the caller, or if
# that is root, postgres.  PostgreSQL refuses to run as root.
tq_user() {
	if [ "$(id -u)" != 0 ]; then
		"$@"
		return
	fi
	# shellcheck disable=SC2016	# for that shell to expand
	HOME=${TQ_TMP:-/} setpriv --reuid="$tq_owner" --regid="$(id -g "$tq_owner")" --init-groups \
		sh -c 'cd . 2>/dev/null || cd /; exec "$@"' sh "$@"
}

# Makes the temporary directory, TQ_TMP, and has it removed at the end with all
# that runs in it, whichever end that is.  Everything that makes temporary
# files finds it in TMPDIR.  Its name is short, as sockets live in it.
tq_workdir() {
	if [ "$(id -u)" = 0 ]; then
		tq_owner=postgres
		id "$tq_owner" >/dev/null 2>&1 || tq_owner=nobody
	fi
	TQ_TMP=$(mktemp -d /tmp/tq.XXXXXX) || exit
	trap tq_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	[ -z "$tq_owner" ] || chown "$tq_owner:" "$TQ_TMP" || exit
	export TQ_TMP TMPDIR=$TQ_TMP
}

# Programs of ours: those that have our TQ_TMP in their environment.
tq_programs() {
	grep -lzxF "TQ_TMP=$TQ_TMP" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n' | grep -vx $$
}

# Servers of ours: those whose data directory is in TQ_TMP.
tq_servers() {
	local pid
	find "$TQ_TMP" -name postmaster.pid -exec head -qn 1 {} + 2>/dev/null | while read -r pid; do
		[[ $(readlink "/proc/$pid/cwd") != "$TQ_TMP"/* ]] || echo "$pid"
	done
}

# Ends all that runs in TQ_TMP, and removes it.  A server ends at once and takes
# its processes with it; what does not end within three seconds is killed.
tq_cleanup() {
	local try pids servers
	trap '' INT TERM HUP
	[ -d "$TQ_TMP" ] || return 0
	export -n TQ_TMP		# so that what looks for them is not found itself
	mapfile -t pids < <(jobs -p)
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null
	for try in {0..60}; do
		mapfile -t pids < <(tq_programs)
		mapfile -t servers < <(tq_servers)
		((${#pids[@]} + ${#servers[@]} > 0)) || break
		case $try in
			0 | 10 | 20) kill -TERM "${pids[@]}"; kill -QUIT "${servers[@]}" ;;
			30) kill -KILL "${pids[@]}" "${servers[@]}" ;;
		esac 2>/dev/null
		sleep 0.1
	done
	wait 2>/dev/null
	rm -rf "$TQ_TMP"
	trap - EXIT
}

# ---------------------------------------------------------------------------
# Building
# ---------------------------------------------------------------------------

# tq_files: the files of the tree, with NUL between: what git knows or would
# take, or else all.
tq_files() {
	local file
	{
		git -c safe.directory='*' -C "$tq_root" ls-files -coz --exclude-standard 2>/dev/null ||
			(cd "$tq_root" && find . \( -name .git -o -name .build -o -name '*.o' -o -name '*.so' \) \
				-prune -o -type f -print0)
	} | while IFS= read -rd '' file; do
		[ ! -f "$tq_root/$file" ] || printf '%s\0' "$file"
	done
}

# tq_copy_server: a copy of the server of which tq_server is the pg_config, in
# TQ_TMP/pg.  A server finds its files relative to its program, so that the
# copy is whole; what nobody writes to is linked only.
tq_copy_server() {
	local dir what prefix=$TQ_TMP/pg
	for what in pkglibdir sharedir pkgincludedir includedir-server bindir; do
		dir=$("$tq_server" --$what) || return
		if [ ! -d "$dir" ] || [ -e "$prefix$dir" ]; then continue; fi
		tq_user mkdir -p "$prefix${dir%/*}" || return
		if [ "$what" = bindir ]; then
			tq_user cp -RL "$dir" "$prefix$dir"
		else
			tq_user cp -RsT "$dir" "$prefix$dir"
		fi || return
	done
	rm -f "$prefix$("$tq_server" --pkglibdir)/tq.so" "$prefix$("$tq_server" --sharedir)"/extension/tq[.-]*
	TQ_PG_CONFIG=$prefix$("$tq_server" --bindir)/pg_config
	export TQ_PG_CONFIG
}

# tq_make ARGUMENT...: make in TQ_TMP/src, for the copy of the server.
tq_make() {
	tq_user make -C "$TQ_TMP/src" --no-print-directory PG_CONFIG="$TQ_PG_CONFIG" "$@"
}

# What our own builds are strict about, beyond the Makefile, which others use
# with compilers that we do not know.
tq_strict="-Werror -Wno-unknown-warning-option -Wshadow=local -Wswitch-enum -Wstrict-prototypes \
-Wold-style-definition -Wwrite-strings -Wformat=2 -Wlogical-op -Wduplicated-cond"

# What was built is kept in .build/ of the tree under a name that stands for
# all that went into it.  This is the name.
tq_build_key() {
	printf '%s-' "$(tq_major)"
	{
		"$tq_server" --version --bindir --configure
		gcc --version
		echo "$tq_strict"
		cd "$TQ_TMP/src" && find Makefile tq.control src -type f | sort | xargs sha256sum
	} | sha256sum | cut -c 1-20
}

# tq_build: copies the tree to TQ_TMP/src, builds it there, where a warning is
# an error, and installs it for a copy of the server, TQ_PG_CONFIG.  The copy's
# programs come first in PATH from then on.
tq_build() {
	local key kept
	tq_user mkdir "$TQ_TMP/src" || exit
	tq_files | tar -C "$tq_root" --null -T - -cf - | tq_user tar -C "$TQ_TMP/src" -xf - ||
		tq_die 'the tree could not be copied'
	tq_copy_server || tq_die 'the server could not be copied'
	key=$(tq_build_key) kept=$tq_root/.build/$key.tar
	if ! { [ -f "$kept" ] && tq_user tar -C "$TQ_TMP/src" -xmf - <"$kept"; } 2>/dev/null; then
		tq_log "$TQ_TMP/build.log" tq_make -s -j"$(nproc)" COPT="$tq_strict" || tq_die 'the build failed'
		tq_keep_build "$kept"
	fi
	tq_log "$TQ_TMP/install.log" tq_make install || tq_die 'make install failed'
	PATH=$("$TQ_PG_CONFIG" --bindir):$PATH
	export PATH
}

# tq_keep_build FILE: keeps what was built, in place of that of before.
tq_keep_build() {
	rm -f "${1%/*}/$(tq_major)"-*.tar 2>/dev/null
	(cd "$TQ_TMP/src" && tar -cf "$TQ_TMP/build.tar" src/*.o tq.so src/sql/tq--*.sql) && tq_keep "$TQ_TMP/build.tar" "$1"
}

# tq_keep FILE KEPT: moves a file into .build/ of the tree, for the next time,
# unless the tree cannot be written.
tq_keep() {
	local dir=${2%/*}
	mkdir -p "$dir" 2>/dev/null && [ -w "$dir" ] || return 0
	mv "$1" "$2.new" && mv "$2.new" "$2"
	chown -R --reference="$tq_root" "$dir" 2>/dev/null || true
}

# tq_node_pg: puts pg, npm's client for PostgreSQL, into TQ_TMP/node_modules,
# from the registry that npm is configured for, and keeps it in .build/ of the
# tree.  If that cannot be, it prints why.
tq_node_pg() {
	local kept=$tq_root/.build/node-pg.tar new=$TQ_TMP/node-pg.tar log=$TQ_TMP/npm.log
	tq_has node || { echo 'there is no node and npm'; return 1; }
	if { [ -f "$kept" ] && tq_user tar -C "$TQ_TMP" -xmf - <"$kept"; } 2>/dev/null; then return; fi
	if ! timeout 300 npm install --prefix "$TQ_TMP/npm" --cache "$TQ_TMP/npm-cache" --ignore-scripts --no-save \
		--no-package-lock --no-audit --no-fund --no-update-notifier --fetch-retries=1 pg@8 >"$log" 2>&1; then
		echo "npm install pg failed: $(grep -vE 'log|^ *$' "$log" | head -n 3 | paste -sd' ')"
		return 1
	fi
	tar -C "$TQ_TMP/npm" -cf "$new" node_modules && tq_user tar -C "$TQ_TMP" -xmf - <"$new" &&
		tq_keep "$new" "$kept"
}

# ---------------------------------------------------------------------------
# A cluster
# ---------------------------------------------------------------------------

# tq_cluster_start [LINE...]: makes a cluster in TQ_TMP and starts it, with the
# settings of test/tq.conf and then these lines.  It has a socket in TQ_TMP and
# no port; psql and others find it by the variables set here.
tq_cluster_start() {
	local data=$TQ_TMP/data
	tq_log "$TQ_TMP/initdb.log" tq_user initdb -D "$data" -U postgres -A trust --no-sync \
		--encoding=UTF8 --locale=C.UTF-8 || tq_die 'initdb failed'
	{
		cat "$tq_root/test/tq.conf"
		printf '%s\n' "listen_addresses = ''" "port = 5432" "unix_socket_directories = '$TQ_TMP'" "$@"
	} | tq_user tee -a "$data/postgresql.conf" >/dev/null
	export PGHOST=$TQ_TMP PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	tq_log "$TQ_TMP/start.log" tq_user pg_ctl -D "$data" -l "$TQ_TMP/server.log" -w start ||
		{ tail -n 30 "$TQ_TMP/server.log" >&2; tq_die 'the server does not start'; }
}

# Stops that cluster and removes its data: another may be started.
tq_cluster_stop() {
	tq_user pg_ctl -D "$TQ_TMP/data" -m fast -w stop >/dev/null
	rm -rf "$TQ_TMP/data"
}
