# shellcheck shell=bash
#
# setup.sh: what test/check, test/demo and test/bench/run stand on.  Sourced.
#
#	tq_packages GROUP...	installs what is missing
#	tq_workdir				makes a temporary directory, all of which ends with us
#	tq_run LOG COMMAND...	runs a command that takes long, with a line of progress
#	tq_user COMMAND...		runs a command as an ordinary user
#	tq_build				builds and installs tq, for a copy of the server
#	tq_release ...			the same of a release, for another copy
#	tq_next					the same with the number of the next version
#	tq_node_pg				has the client of node that the documents' examples need
#	tq_node_web				has what drives a browser, and what looks for barriers in a page
#	tq_prometheus			has the programs of Prometheus, and starts no service
#	tq_cluster_start ...	starts a cluster that has tq loaded
#	tq_cluster_start_prepared	starts another, on which transactions may be prepared
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
tq_chosen=${TQ_MAJOR:-}			# its major version; test/check --postgres chooses it
tq_owner=''						# ordinary user, if we are root
tq_system=''					# root of the system; a test has another one
tq_job='' tq_job_stop=''		# what tq_run runs, and how it is stopped

# Nothing of the caller's environment shall lead to another server, language
# or make than what is meant.
for tq_name in "${!PG@}" MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES LANGUAGE "${!LC_@}"; do
	[ "$tq_name" = PG_CONFIG ] || unset "$tq_name"
done
unset tq_name
export LC_ALL=C.UTF-8

# tq_note TEXT...: says something, on a terminal in place of the line of progress.
tq_note() { printf '%s%s: %s\n' "$([ ! -t 2 ] || printf '\r\e[K')" "${0##*/}" "$*" >&2; }

# tq_die TEXT...: says why we cannot go on, and ends.
tq_die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# tq_log FILE COMMAND...: runs a command quietly.  If it fails, its first errors
# are shown, or its last lines where none is found.  It has a shell of its own,
# so that a trap of ours does not write to FILE.
tq_log() {
	local file=$1 code
	shift
	("$@") >"$file" 2>&1 && return
	code=$?
	tq_errors "$file" >&2
	return "$code"
}

# tq_errors FILE: the first errors of a log.  What make prints after them is
# about other files, or follows from them.
tq_errors() {
	local first lines
	lines=$(wc -l <"$1")
	first=$(grep -nEm1 '(^|[ :])(fatal )?error:|: undefined reference|^E: |\*\*\* ' "$1")
	first=$((${first%%:*} - 2))
	if ((first == -2)); then
		tail -n 40 "$1"
	elif ((lines > first + 40)); then
		tail -n +"$((first > 0 ? first : 1))" "$1" | head -n 40
		echo "[$((lines - first - 40)) more lines]"
	else
		tail -n +"$((first > 0 ? first : 1))" "$1"
	fi
}

# ---------------------------------------------------------------------------
# What takes long
# ---------------------------------------------------------------------------

# Shows what apt-get (by its status lines) or debootstrap is at: on a terminal
# in one line that is written over, elsewhere in a line every two seconds.  It
# reads on when we are gone, because apt-get could not write otherwise.
tq_progress() {
	local line text width=80 said=$SECONDS live=''
	trap '' INT
	if [ -t 1 ] && [ -z "${CI:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
		live=yes
		width=$(stty size 2>/dev/null <&1)
		width=${width#* }
	fi
	((${width:-0} > 0)) || width=80
	while IFS= read -r line; do
		if [[ $line =~ ^(dl|pm)status:.*:([0-9]+)([.][0-9]+)?:(.*)$ ]]; then
			printf -v text '%3d %%  %s' "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}"
		elif [[ $line == 'I: '* ]]; then
			text=${line#I: }
		else
			continue
		fi
		kill -0 $$ 2>/dev/null || continue
		if [ -n "$live" ]; then
			printf '\r  %s\e[K' "${text:0:$((width - 3))}"
		elif ((SECONDS >= said + 2)); then
			said=$SECONDS
			printf '  %s\n' "$text"
		fi
	done
	if [ -n "$live" ] && kill -0 $$ 2>/dev/null; then printf '\r\e[K'; fi
}

# tq_run LOG COMMAND...: runs a command; what it prints are lines for
# tq_progress, and its errors go to LOG.  A signal to us ends the wait at once,
# and then tq_cleanup calls tq_job_stop.
tq_run() {
	local log=$1 code progress
	shift
	exec 4> >(tq_progress)
	progress=$!
	"$@" >&4 2>"$log" 4>&- </dev/null &
	tq_job=$!
	exec 4>&-
	wait "$tq_job"
	code=$?
	tq_job=''
	wait "$progress"
	return "$code"
}

# ---------------------------------------------------------------------------
# Packages
# ---------------------------------------------------------------------------

# Major versions of the distribution's servers that are installed.
tq_installed() {
	local dir
	for dir in "$tq_system"/usr/lib/postgresql/*/bin; do
		[ ! -x "$dir/postgres" ] || basename "${dir%/bin}"
	done | sort -n
}

# Major version of the distribution's PostgreSQL.  A release that is not known
# here is asked by apt, which may not have its lists; then an installed server is
# the answer.
tq_choose() {
	local release major
	release=$(sed -n 's/^VERSION_CODENAME=//p' "$tq_system/etc/os-release" 2>/dev/null)
	case $release in
		bookworm) major=15 ;;
		trixie) major=17 ;;
		*) major=$(apt-cache policy postgresql 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*\).*/\1/p') ;;
	esac
	if ! tq_installed | grep -qx "${major:-none}" &&
		! apt-cache show "postgresql-${major:-none}" >/dev/null 2>&1; then
		major=$(tq_installed | tail -n 1 | grep . || echo "$major")
	fi
	echo "$major"
}

# Sets the server to use: that of PG_CONFIG, or the distribution's.
tq_find_server() {
	if [ -n "${PG_CONFIG:-}" ]; then
		tq_chosen=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
	fi
	[ -n "$tq_chosen" ] || tq_chosen=$(tq_choose)
	tq_server=${PG_CONFIG:-$tq_system/usr/lib/postgresql/$tq_chosen/bin/pg_config}
	[[ $tq_server == */* ]] || tq_server=$(command -v "$tq_server")
}

# Its major version.
tq_major() {
	[ -n "$tq_chosen" ] || tq_find_server
	echo "$tq_chosen"
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
		tap) command -v prove && perl -MIPC::Run -MTest::More -MDBD::Pg -e 1 ;;
		dbd) perl -MDBD::Pg -e 1 ;;
		psycopg) /usr/bin/python3 -c 'import psycopg' ;;
		psycopg2) /usr/bin/python3 -c 'import psycopg2' ;;
		python-clients) /usr/bin/python3 -c 'import build, mypy, psycopg_pool, setuptools, wheel' ;;
		celery) /usr/bin/python3 -c 'import celery, kombu, psycopg, psycopg2, pytest, sqlalchemy' ;;
		asyncpg) /usr/bin/python3 -c 'import asyncpg' ;;
		jdbc) [ -f /usr/share/java/postgresql.jar ] ;;
		pgbouncer) command -v pgbouncer || [ -x /usr/sbin/pgbouncer ] ;;
		prometheus) command -v prometheus && command -v promtool ;;
		python) /usr/bin/python3 -c 'import json' ;;
		patroni) command -v patroni && command -v etcd && /usr/bin/python3 -c 'import etcd' ;;
		plproxy) [ -f "$("$tq_server" --sharedir)/extension/plproxy.control" ] ;;
		jsonschema) /usr/bin/python3 -c 'import jsonschema' ;;
		protobuf) /usr/bin/python3 -c 'import google.protobuf' ;;
		spin) command -v spin ;;
		valgrind) command -v valgrind ;;
		node) command -v node && command -v npm ;;
		languages) command -v python3 && command -v node && command -v ruby ;;
		git) command -v git ;;
		microhttpd) command -v pkg-config && pkg-config --exists libmicrohttpd zlib ;;
		chromium) command -v chromium ;;
		nginx) [ -x /usr/sbin/nginx ] ;;
		caddy) command -v caddy ;;
		debootstrap) command -v debootstrap && command -v zstd ;;
		pgxnclient) command -v pgxn ;;
		debhelper) command -v dh && command -v dh_python3 && command -v dpkg-buildpackage && dh --list | grep -cx pgxs ;;
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
		tap) echo perl libipc-run-perl libdbd-pg-perl ;;
		dbd) echo libdbd-pg-perl ;;
		psycopg) echo python3 python3-psycopg ;;
		psycopg2) echo python3 python3-psycopg2 ;;
		python-clients) echo mypy python3-build python3-psycopg-pool python3-setuptools python3-venv python3-wheel ;;
		celery) echo celery python3-psycopg python3-psycopg2 python3-pytest python3-sqlalchemy ;;
		asyncpg) echo python3 python3-asyncpg ;;
		jdbc) echo libpostgresql-jdbc-java ;;
		pgbouncer) echo pgbouncer ;;
		prometheus) echo prometheus ;;
		python) echo python3 ;;
		patroni) echo patroni etcd-server python3-etcd ;;
		plproxy) echo "postgresql-$major-plproxy" ;;
		jsonschema) echo python3 python3-jsonschema ;;
		protobuf) echo python3 python3-protobuf ;;
		spin) echo spin ;;
		valgrind) echo valgrind ;;
		node) echo nodejs npm ;;
		languages) echo python3 nodejs ruby ;;
		git) echo git ;;
		microhttpd) echo libmicrohttpd-dev zlib1g-dev pkg-config ;;
		chromium) echo chromium ;;
		nginx) echo nginx-light openssl ;;
		caddy) echo caddy openssl ;;
		debootstrap) echo debootstrap zstd ;;
		pgxnclient) echo pgxnclient ;;
		debhelper) echo debhelper dh-python dpkg-dev postgresql-server-dev-all ;;
	esac
}

# tq_as_root COMMAND...: runs a command as root.
tq_as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# What tq_apt runs as root, in a session of its own, which a Ctrl-C does not
# reach: PID CONF update, or PID CONF PACKAGES..., of which each is a list.  All
# are downloaded, and then installed list by list.  A TERM ends apt-get at once,
# but not dpkg once that has begun, because it would leave packages half installed;
# then the list is the last.  Whichever makes the directory `turn` first, apt-get
# just before it runs dpkg or the TERM, goes first.
#
# Debian makes and starts a cluster when it installs a server: not for us.  The
# file CONF that says so is afterwards what it was, or would have been: Debian
# puts its own beside one that is there already.  The downloads are in a
# directory of ours, so that none of them stays.
# shellcheck disable=SC2016	# for that shell to expand
tq_apt_script='
	pid=$1 conf=$2 kept=$2.before-tq dir="" apt="" stopped="" n=0
	shift 2
	restore() {
		if [ -f "$kept" ]; then
			mv "$kept" "$conf"
		elif [ -f "$conf.ucf-dist" ]; then
			mv "$conf.ucf-dist" "$conf"
		else
			rm -f "$conf" && rmdir "${conf%/*}"
		fi 2>/dev/null
		[ -z "$dir" ] || rm -rf "$dir"
	}
	stop() {
		stopped=yes
		if [ -n "$apt" ] && mkdir "$dir/turn$n" 2>/dev/null; then kill -TERM "-$apt"; fi
	}
	get() {
		n=$((n + 1)) apt=""
		[ -z "$stopped" ] || exit 143
		DEBIAN_FRONTEND=noninteractive setsid apt-get -o APT::Status-Fd=3 -o DPkg::Use-Pty=0 \
			-o DPkg::Lock::Timeout=300 -o Dir::Cache::archives="$dir" -o APT::Keep-Downloaded-Packages=true \
			-o DPkg::Pre-Invoke::="test -e $dir/begun$n || { mkdir $dir/turn$n && : >$dir/begun$n; }" \
			"$@" 3>&1 1>&2 </dev/null &
		apt=$!
		[ -z "$stopped" ] || stop
		while :; do
			wait $apt
			code=$?
			kill -0 $apt 2>/dev/null || break
		done
		[ $code = 0 ] || exit $code
	}
	trap stop TERM INT HUP
	trap restore EXIT
	mkdir -p "${conf%/*}" && dir=$(mktemp -d /tmp/tq-apt.XXXXXX) && chmod 755 "$dir" || exit
	if [ -f "$conf" ] && [ ! -f "$kept" ]; then cp -p "$conf" "$kept"; fi
	echo "create_main_cluster = false" >"$conf"
	echo $$ >"$pid"
	if [ "$1" = update ]; then
		get update
		exit
	fi
	get install -y --no-install-recommends --download-only $*
	for list in "$@"; do
		get install -y --no-install-recommends $list
	done'

# tq_apt update, tq_apt PACKAGES...: runs apt-get, with a line of progress.
tq_apt() {
	local code log=$TQ_TMP/apt.log
	rm -f "$TQ_TMP/apt.pid"
	tq_job_stop=tq_stop_apt
	tq_run "$log" tq_apt_as_root "$TQ_TMP/apt.pid" "$tq_system/etc/postgresql-common/createcluster.conf" "$@" && return
	code=$?
	tq_errors "$log" >&2
	return "$code"
}

# Its programs are not ours to kill: they must not have TQ_TMP.
tq_apt_as_root() {
	unset TQ_TMP TMPDIR
	tq_as_root setsid -w sh -c "$tq_apt_script" sh "$@"
}

# Ends apt-get at once; dpkg goes on.
tq_stop_apt() {
	local try
	for try in {0..20}; do
		[ ! -s "$TQ_TMP/apt.pid" ] || break
		sleep 0.1
	done
	# a bare system has no program kill
	tq_as_root sh -c "kill -TERM $(cat "$TQ_TMP/apt.pid")" 2>/dev/null
	for try in {0..10}; do
		kill -0 "$tq_job" 2>/dev/null || { tq_job=''; return; }
		sleep 0.1
	done
}

# tq_missing GROUP...: those of the groups that are not there.
tq_missing() {
	local group
	for group in "$@"; do tq_has "$group" || echo "$group"; done
}

# tq_may_miss GROUP: can the tests do without it?  They say what they skip.
tq_may_miss() { [[ " pg-cron node debhelper pgxnclient psycopg2 python-clients celery asyncpg jdbc pgbouncer chromium nginx caddy prometheus patroni plproxy debootstrap " == *" $1 "* ]]; }

# tq_needed GROUP...: those of the groups that they cannot do without.
tq_needed() {
	local group
	for group in "$@"; do tq_may_miss "$group" || echo "$group"; done
}

# tq_packages GROUP...: installs by apt-get what is missing of compiler, make,
# server, server-headers, pgtap, tap, dbd, psycopg, jsonschema, protobuf, spin, valgrind, languages, git,
# and of those of tq_may_miss, which may stay away.  Where it may not, it prints the
# line that would, and exits.
tq_packages() {
	local missing needed packages='' group
	[ -z "${PG_CONFIG:-}" ] || "$PG_CONFIG" --version >/dev/null || tq_die "PG_CONFIG=$PG_CONFIG does not work"
	tq_find_server
	mapfile -t missing < <(tq_missing "$@")
	((${#missing[@]} > 0)) || return 0
	needed=$(tq_needed "${missing[@]}" | paste -sd' ')
	if ! command -v apt-get >/dev/null; then
		[ -n "$needed" ] || return 0
		tq_die "please install: $needed (there is no apt-get here)"
	fi
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
		[ -n "$needed" ] || return 0
		[ -n "$(tq_major)" ] || tq_die 'which PostgreSQL does this system have? Please set PG_CONFIG'
		for group in "${missing[@]}"; do packages+=" $(tq_package "$group")"; done
		printf '%s\n' "Some packages are missing.  Please run this as root, and then $0 again:" \
			"apt-get update && apt-get install -y --no-install-recommends$packages" >&2
		exit 1
	fi
	tq_tmpdir
	tq_announce "${missing[@]}"
	echo "* apt-get update"
	tq_apt update || [ -z "$needed" ] || tq_die 'apt-get update failed'
	tq_find_server
	[ -n "$tq_chosen" ] || tq_die 'which PostgreSQL does this system have? Please set PG_CONFIG'
	tq_install_missing "${missing[@]}"
}

# tq_announce GROUP...: prints, in one line, the packages that are about to be
# installed.  Before apt has its lists, the server's version may be unknown.
tq_announce() {
	local group packages='' tq_chosen=${tq_chosen:-VERSION}
	for group in "$@"; do packages+=" $(tq_package "$group")"; done
	echo "* packages to install:$packages"
}

# tq_install GROUP...
tq_install() {
	local group lists=()
	for group in "$@"; do lists+=("$(tq_package "$group")"); done
	echo "* apt-get install ${lists[*]}"
	tq_apt "${lists[@]}"
}

# tq_install_missing GROUP...: the second half of tq_packages.  What the tests can
# do without is installed by itself, so that it stops nothing else.
tq_install_missing() {
	local group needed left
	mapfile -t needed < <(tq_needed "$@")
	((${#needed[@]} == 0)) || tq_install "${needed[@]}" || tq_die 'apt-get install failed'
	for group in "$@"; do
		# shellcheck disable=SC2046	# names of packages have no spaces
		if tq_may_miss "$group" && apt-cache show $(tq_package "$group") >/dev/null 2>&1; then
			tq_install "$group" 2>/dev/null || true
		fi
	done
	mapfile -t left < <(tq_missing "$@")
	group=$(tq_needed "${left[@]}" | paste -sd' ')
	[ -z "$group" ] || tq_die "still missing, for $tq_server: $group"
	for group in "${left[@]}"; do
		echo "warning: $group could not be installed; what needs it is skipped" >&2
	done
}

# ---------------------------------------------------------------------------
# A place and a user
# ---------------------------------------------------------------------------

# tq_user COMMAND...: runs a command as an ordinary user: the caller, or if
# that is root, postgres.  PostgreSQL refuses to run as root.
tq_user() {
	[ -z "${TQ_LIMIT:-}" ] || set -- timeout --foreground -k 10 "$TQ_LIMIT" "$@"
	if [ "$(id -u)" != 0 ]; then
		"$@"
		return
	fi
	# shellcheck disable=SC2016	# for that shell to expand
	HOME=${TQ_TMP:-/} setpriv --reuid="$tq_owner" --regid="$(id -g "$tq_owner")" --init-groups \
		sh -c 'cd . 2>/dev/null || cd /; exec "$@"' sh "$@"
}

# Makes the temporary directory, TQ_TMP, and has it removed at the end with all
# that runs in it, whichever end that is.  A caller may have a trap of its own
# for the end, which then calls tq_cleanup.  Everything that makes temporary
# files finds it in TMPDIR.  Its name is short, as sockets live in it.
tq_tmpdir() {
	[ -z "$TQ_TMP" ] || return 0
	[ -n "$(trap -p EXIT)" ] || trap tq_cleanup EXIT
	trap 'tq_interrupted 130' INT
	trap 'tq_interrupted 143' TERM
	trap 'tq_interrupted 129' HUP
	TQ_TMP=$(mktemp -d /tmp/tq.XXXXXX) || exit
	export TQ_TMP TMPDIR=$TQ_TMP
}

# tq_interrupted CODE: what a signal does.
tq_interrupted() {
	trap '' INT TERM HUP
	tq_note interrupted
	exit "$1"
}

# The same, with an ordinary user to own it, once the packages that make that
# user are there.
tq_workdir() {
	tq_tmpdir
	[ "$(id -u)" = 0 ] || return 0
	tq_owner=postgres
	id "$tq_owner" >/dev/null 2>&1 || tq_owner=nobody
	chown "$tq_owner:" "$TQ_TMP" || exit
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
# Only dpkg is waited for.
tq_cleanup() {
	local try pids servers
	trap '' INT TERM HUP
	[ -d "$TQ_TMP" ] || return 0
	[ -z "$tq_job" ] || "$tq_job_stop"
	export -n TQ_TMP		# so that what looks for them is not found itself
	mapfile -t pids < <(jobs -p | grep -vx "${tq_job:-0}")
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
	[ -n "$tq_job" ] || wait 2>/dev/null
	rm -rf "$TQ_TMP"
	trap - EXIT
	[ -n "$tq_job" ] || return 0
	# Another Ctrl-C ends us, and not dpkg.
	tq_note 'dpkg ends what it has begun, so that no package is left half installed'
	trap - INT TERM HUP
	wait "$tq_job"
}

# ---------------------------------------------------------------------------
# Building
# ---------------------------------------------------------------------------

# tq_files: the files of the tree, with NUL between: what git knows or would
# take, or else all that no build or test has made.
tq_files() {
	local file
	{
		git -c safe.directory='*' -C "$tq_root" ls-files -coz --exclude-standard 2>/dev/null ||
			(cd "$tq_root" && find . \( -name .git -o -name .build -o -name '*.o' -o -name '*.so' -o -path ./log \
				-o -path ./results -o -path ./output_iso -o -path './tmp_check*' \) -prune -o -type f -print0)
	} | while IFS= read -rd '' file; do
		[ ! -f "$tq_root/$file" ] || printf '%s\0' "$file"
	done
}

# tq_copy_server [DIRECTORY]: a copy of the server of which tq_server is the pg_config,
# there or in TQ_TMP/pg.  A server finds its files relative to its program, so that the
# copy is whole; what is never written to is linked only.
tq_copy_server() {
	local dir what prefix=${1:-$TQ_TMP/pg}
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
	rm -f "$prefix$("$tq_server" --pkglibdir)"/tq{,_picture,_shard}.so "$prefix$("$tq_server" --sharedir)"/extension/tq{,_shard}[.-]*
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
		cd "$TQ_TMP/src" && find Makefile tq.control tq_shard.control src -type f | sort | xargs sha256sum
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
		tq_log "$TQ_TMP/build.log" tq_make -s -j"$(nproc)" COPT="-pipe $tq_strict" || tq_die 'the build failed'
		tq_keep_build "$kept"
	fi
	tq_log "$TQ_TMP/install.log" tq_make install || tq_die 'make install failed'
	PATH=$("$TQ_PG_CONFIG" --bindir):$PATH
	export PATH
}

# tq_release VERSION COMMIT: builds a release, without tests and documents, and installs it
# for a copy of the server of its own, both in TQ_TMP/VERSION; prints the pg_config of that.
tq_release() {
	local dir=$TQ_TMP/$1 kept
	kept=$tq_root/.build/$(tq_major)-release-$1.tar
	tq_user mkdir -p "$dir/src" || return
	git -c safe.directory='*' -C "$tq_root" archive "$2" -- Makefile '*.control' src | tq_user tar -C "$dir/src" -xf - || return
	if [ -f "$kept" ]; then tq_user tar -C "$dir/src" -xmf - <"$kept"; fi
	tq_copy_server "$dir/pg" &&
		tq_log "$dir/build.log" tq_user make -C "$dir/src" --no-print-directory -s -j2 PG_CONFIG="$TQ_PG_CONFIG" docdir= install || return
	[ -f "$kept" ] || { (cd "$dir/src" && find . -name '*.o' -o -name '*.so' | tar -cf "$dir/build.tar" -T -) && tq_keep "$dir/build.tar" "$kept"; }
	echo "$TQ_PG_CONFIG"
}

# tq_next: a copy of the server with what tq_build has built, whose pg_config it prints;
# and, in TQ_TMP/next/src, built, the same tree as the version after this one.
tq_next() {
	local dir=$TQ_TMP/next version next
	version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$TQ_TMP/src/tq.control")
	next=${version%.*}.$((${version##*.} + 1))
	tq_user mkdir -p "$dir/src" && tq_user cp -a "$TQ_TMP/src/." "$dir/src" && tq_copy_server "$dir/pg" &&
		tq_log "$dir/install.log" tq_make docdir= install || return
	tq_user sed -i "s/^default_version = .*/default_version = '$next'/" "$dir/src/tq.control" "$dir/src/tq_shard.control" &&
		tq_user sed -i "s/^LASTVERSION =.*/LASTVERSION = $version/; s/^SERVED_TOO =.*/SERVED_TOO = \"$version\",/" "$dir/src/Makefile" &&
		tq_user rm -f "$dir"/src/src/util/version.o "$dir"/src/src/api/maintenance_api.o "$dir/src/tq.so" "$dir"/src/src/sql/upgrade/*.sql &&
		printf '%s\n' 'LOCK TABLE tq_internal.task IN ACCESS EXCLUSIVE MODE;' '-- ---- after the rest ----' | tq_user tee "$dir/src/src/sql/upgrade/$version.sql" >/dev/null &&
		tq_log "$dir/build.log" tq_user make -C "$dir/src" --no-print-directory -s -j2 PG_CONFIG="$TQ_PG_CONFIG" COPT="-pipe $tq_strict" || return
	echo "$TQ_PG_CONFIG"
}

# tq_keep_build FILE: keeps what was built, in place of that of before.
tq_keep_build() {
	find "${1%/*}" -name "$(tq_major)-*.tar" ! -name '*-release-*' -delete 2>/dev/null
	(cd "$TQ_TMP/src" && find src -name '*.inc' -o -name '*.o' | tar -cf "$TQ_TMP/build.tar" -T - tq.so tq_picture.so tq_shard.so \
		src/sql/tq--*.sql src/extras/router/tq_shard--*.sql) && tq_keep "$TQ_TMP/build.tar" "$1"
}

# tq_keep FILE KEPT: moves a file into .build/ of the tree, for the next time,
# unless the tree cannot be written.
tq_keep() {
	local dir=${2%/*}
	mkdir -p "$dir" 2>/dev/null && [ -w "$dir" ] || return 0
	mv "$1" "$2.new" && mv "$2.new" "$2"
	chown -R --reference="$tq_root" "$dir" 2>/dev/null || true
}

# tq_npm NAME PACKAGE...: puts packages of npm into TQ_TMP/node_modules, from the registry
# that npm is configured for, and keeps them as NAME in .build/ of the tree.  If that cannot
# be, it prints why.
tq_npm() {
	local kept=$tq_root/.build/$1.tar new=$TQ_TMP/$1.tar log=$TQ_TMP/npm.log
	shift
	tq_has node || { echo 'there is no node and npm'; return 1; }
	if { [ -f "$kept" ] && tq_user tar -C "$TQ_TMP" -xmf - <"$kept"; } 2>/dev/null; then return; fi
	if ! timeout 300 npm install --prefix "$TQ_TMP/npm" --cache "$TQ_TMP/npm-cache" --ignore-scripts --no-save \
		--no-package-lock --no-audit --no-fund --no-update-notifier --fetch-retries=1 "$@" >"$log" 2>&1; then
		echo "npm install $1 failed: $(grep -vE 'log|^ *$' "$log" | head -n 3 | paste -sd' ')"
		return 1
	fi
	tar -C "$TQ_TMP/npm" -cf "$new" node_modules && tq_user tar -C "$TQ_TMP" -xmf - <"$new" &&
		tq_keep "$new" "$kept"
}

tq_node_web() { tq_npm node-web playwright-core@1 axe-core@4; }

# tq_prometheus: puts prometheus and promtool into TQ_TMP/usr/bin, unless they are
# installed: Debian's package, which would start its service, is downloaded and unpacked, and
# what is needed of it kept in .build/ of the tree.  If that cannot be, it prints why.
tq_prometheus() {
	local kept=$tq_root/.build/prometheus.tar new=$TQ_TMP/prometheus.tar log=$TQ_TMP/prometheus.log
	! tq_has prometheus || return 0
	if { [ -f "$kept" ] && tq_user tar -C "$TQ_TMP" -xmf - <"$kept"; } 2>/dev/null; then return; fi
	# shellcheck disable=SC2016	# for that shell to expand
	if ! timeout 120 sh -c 'mkdir -p "$1" && cd "$1" && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .' \
		sh "$TQ_TMP/prometheus" >"$log" 2>&1; then
		echo "apt-get download prometheus failed: $(grep -v '^ *$' "$log" | tail -n 3 | paste -sd' ')"
		return 1
	fi
	tar -C "$TQ_TMP/prometheus" -cf "$new" ./usr/bin/prometheus ./usr/bin/promtool && rm -r "$TQ_TMP/prometheus" &&
		tq_user tar -C "$TQ_TMP" -xmf - <"$new" && tq_keep "$new" "$kept"
}

# tq_node_pg: pg, npm's client for PostgreSQL, and our package, which uses it.
tq_node_pg() { tq_npm node-pg pg@8 && tq_user ln -sfn "$TQ_TMP/src/client/node" "$TQ_TMP/node_modules/tq-postgres"; }

# tq_node_clients: what tests the package of client/node.
tq_node_clients() {
	local arch
	arch=$(node -p process.arch 2>/dev/null)
	tq_npm node-clients-2 pg@8 @types/pg@8 @types/node@20 typescript@5 tsd@0.33 publint@0.3 @arethetypeswrong/cli@0.18 vitest@3 \
		@opentelemetry/api@1 @opentelemetry/sdk-trace-base@2 @opentelemetry/context-async-hooks@2 \
		graphile-worker@0.18 pg-boss@12 "node-linux-${arch:-x64}@22"
}

# ---------------------------------------------------------------------------
# A cluster
# ---------------------------------------------------------------------------

# tq_cluster_start [LINE...]: makes a cluster in TQ_TMP and starts it, with the
# settings of test/tq.conf and then these lines.  It has a socket in TQ_TMP and
# no port; psql and others find it by the variables set here.
tq_cluster_start() {
	tq_cluster_make "$TQ_TMP/data" 5432 "$TQ_TMP/server.log" "$@"
	export PGHOST=$TQ_TMP PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

# tq_cluster_start_prepared: starts another one beside it, with the settings of
# test/prepared.conf.  Its socket has the number 5433, which is for PGPORT.
tq_cluster_start_prepared() {
	tq_cluster_make "$TQ_TMP/data-prepared" 5433 "$TQ_TMP/server-prepared.log" "$(cat "$tq_root/test/prepared.conf")"
}

# tq_cluster_make DATA PORT LOG [LINE...]
tq_cluster_make() {
	local data=$1 port=$2 log=$3
	shift 3
	tq_log "$TQ_TMP/initdb.log" tq_user initdb -D "$data" -U postgres -A trust --no-sync \
		--encoding=UTF8 --locale=C.UTF-8 || tq_die 'initdb failed'
	{
		cat "$tq_root/test/tq.conf"
		printf '%s\n' "listen_addresses = ''" "port = $port" "unix_socket_directories = '$TQ_TMP'" "$@"
	} | tq_user tee -a "$data/postgresql.conf" >/dev/null
	tq_log "$TQ_TMP/start.log" tq_user pg_ctl -D "$data" -l "$log" -w start ||
		{ tail -n 30 "$log" >&2; tq_die 'the server does not start'; }
}

# Stops that cluster and removes its data: another may be started.
tq_cluster_stop() {
	tq_user pg_ctl -D "$TQ_TMP/data" -m fast -w stop >/dev/null
	rm -rf "$TQ_TMP/data"
}
