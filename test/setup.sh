# setup.sh
#	  What test/check and test/demo stand on: packages, a build, a cluster.
#
#	  . test/setup.sh		(bash; the caller has set -u)
#
# Nothing of the system's PostgreSQL is touched: the build is installed into a
# copy of the server's directories under a temporary folder, and the server
# runs from there as an ordinary user, on a socket in that folder.  What stays
# behind is .build in the tree (ignored by git), so that a second run compiles
# only what has changed.

tq_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

tq_say() { printf '%s\n' "$*" >&2; }

tq_die() {
	tq_say "$*"
	exit 1
}

# The major version: of PG_CONFIG's server, or else the distribution's own.
tq_major() {
	if [ -n "${PG_CONFIG:-}" ]; then
		"$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
		return
	fi
	# shellcheck source=/dev/null
	case $(. /etc/os-release 2>/dev/null && printf '%s' "${VERSION_ID:-}") in
	12) printf '15\n' ;;
	13) printf '17\n' ;;
	*) ls /usr/lib/postgresql 2>/dev/null | sort -n | tail -n 1 ;;
	esac
}

# tq_package_names GROUP…: the Debian packages of these groups.
tq_package_names() {
	local group
	for group in "$@"; do
		case $group in
		compiler) echo gcc libc6-dev ;;
		make) echo make ;;
		server) [ -n "${PG_CONFIG:-}" ] || echo "postgresql-$TQ_MAJOR" ;;
		server-headers) [ -n "${PG_CONFIG:-}" ] || echo "postgresql-server-dev-$TQ_MAJOR" ;;
		pgtap) echo "postgresql-$TQ_MAJOR-pgtap libtap-parser-sourcehandler-pgtap-perl" ;;
		tap) echo perl libipc-run-perl ;;
		dbd) echo libdbd-pg-perl ;;
		*) tq_die "setup.sh: no package group \"$group\"" ;;
		esac
	done
}

tq_is_installed() {
	dpkg-query -W -f='${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# Debian makes a cluster of its own when a server comes in; not on our account.
tq_no_main_cluster='mkdir -p /etc/postgresql-common && printf "create_main_cluster = false\n" >>/etc/postgresql-common/createcluster.conf'

# tq_packages GROUP…: install what is missing, or say what to run and stop.
# A second run finds nothing missing and asks nobody.
tq_packages() {
	local missing='' package sudo=''
	TQ_MAJOR=$(tq_major)
	[ -n "$TQ_MAJOR" ] || tq_die "No PostgreSQL is known for this system: set PG_CONFIG to the pg_config of yours."
	for package in $(tq_package_names "$@"); do
		tq_is_installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		sudo -n true 2>/dev/null && sudo='sudo -n' ||
			tq_die "Packages are missing. Run this as root, and then again what you have just run:
  apt-get update && apt-get install -y --no-install-recommends$missing"
	fi
	tq_say "Installing:$missing"
	if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
		case $missing in *" postgresql-$TQ_MAJOR "* | *" postgresql-$TQ_MAJOR")
			$sudo sh -c "$tq_no_main_cluster" ;;
		esac
	fi
	$sudo apt-get update -qq >&2 &&
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
			>/dev/null || tq_die "apt-get could not install:$missing"
}

# tq_user CMD…: run as the ordinary user that owns the server: the caller, or
# postgres where the caller is root.
tq_user() {
	if [ "$(id -u)" = 0 ]; then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

# tq_cleanup: end everything that was started, and remove the folder.
tq_cleanup() {
	trap '' INT TERM HUP
	local children
	children=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$children" ] || kill $children 2>/dev/null
	[ -z "${TQ_TMP:-}" ] || {
		tq_cluster_stop
		rm -rf "$TQ_TMP"
	}
	TQ_TMP=''
}

# tq_workdir: a folder of our own, TQ_TMP, that is gone at the end whatever ends us.
tq_workdir() {
	TQ_TMP=$(tq_user mktemp -d "${TMPDIR:-/tmp}/tq.XXXXXX") || tq_die "no temporary folder can be made"
	export TQ_TMP
	tq_user chmod 755 "$TQ_TMP"
	trap tq_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}

# The files of the project, as git sees them or, without git, all but .build.
tq_files() {
	git -C "$tq_root" -c safe.directory="$tq_root" ls-files -co --exclude-standard 2>/dev/null ||
		(cd "$tq_root" && find . -path ./.build -prune -o -path ./.git -prune -o -type f -print | sed 's|^\./||')
}

# Bring .build/MAJOR up to date: changed files in, deleted ones out.
tq_sync() {
	local build=$1 file
	mkdir -p "$build"
	rm -rf "$build/sql" "$build/expected" "$build/test" "$build/.ci"
	(cd "$tq_root" && tq_files | while read -r file; do
		[ -e "$file" ] && printf '%s\0' "$file"
	done | tar --null -cf - -T - --owner=0 --group=0 2>/dev/null) | tar --keep-newer-files -xf - -C "$build" 2>/dev/null
	for file in "$build"/src/*.[ch] "$build"/src/sql/*.sql; do
		case $file in */tq--*) continue ;; esac
		[ -e "$tq_root/src/${file#"$build"/src/}" ] || rm -f "$file" "${file%.c}.o"
	done
}

# Copy the server's directories, which find each other relative to the binary.
tq_copy_server() {
	local config=$1 prefix=$2 dir real
	for dir in bindir pkglibdir sharedir includedir includedir-server; do
		real=$("$config" --$dir)
		tq_user mkdir -p "$prefix$real" && cp -a "$real/." "$prefix$real/" || return 1
	done
	[ "$(id -u)" != 0 ] || chown -R postgres "$prefix"
}

# The pg_config of a distribution's server: Debian has one for each major.
tq_system_pg_config() {
	local config=${PG_CONFIG:-/usr/lib/postgresql/$TQ_MAJOR/bin/pg_config}
	command -v "$config" || command -v pg_config
}

# tq_build: compile with warnings as errors and install into a private copy of
# the server.  Sets TQ_PG_CONFIG; the sources are at $TQ_TMP/src, the user's.
tq_build() {
	local config build bindir
	config=$(tq_system_pg_config) || tq_die "no pg_config found: set PG_CONFIG"
	build="$tq_root/.build/$TQ_MAJOR"
	mkdir -p "$tq_root/.build" 2>/dev/null && [ -w "$tq_root/.build" ] || build="$TQ_TMP/build"
	tq_sync "$build"
	make -s -j "$(nproc)" -C "$build" PG_CONFIG="$config" PG_CFLAGS="$(tq_warnings)" >"$TQ_TMP/build.log" 2>&1 || {
		cat "$TQ_TMP/build.log" >&2
		tq_die "the build failed"
	}
	cat "$TQ_TMP/build.log" >&2
	bindir=$("$config" --bindir)
	tq_copy_server "$config" "$TQ_TMP/pg" || tq_die "the server could not be copied"
	export TQ_PG_CONFIG="$TQ_TMP/pg$bindir/pg_config"
	make -s -C "$build" install PG_CONFIG="$TQ_PG_CONFIG" >/dev/null || tq_die "the installation failed"
	tq_user mkdir "$TQ_TMP/src" && (cd "$build" && tar -cf - .) | tq_user tar -xf - -C "$TQ_TMP/src"
	export PATH="$TQ_TMP/pg$bindir:$PATH"
}

# What our own builds are strict about; a released Makefile is not.
tq_warnings() {
	echo "-Wall -Wextra -Werror -Wdeclaration-after-statement -Wshadow=local -Wimplicit-fallthrough" \
		"-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers"
}

# tq_cluster_start [CONF-LINE…]: a cluster in TQ_TMP, on a socket there and no port.
tq_cluster_start() {
	tq_user initdb -D "$TQ_TMP/data" -U postgres -A trust --no-sync -E UTF8 --locale=C.UTF-8 >"$TQ_TMP/initdb.log" 2>&1 || {
		cat "$TQ_TMP/initdb.log" >&2
		tq_die "initdb failed"
	}
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$TQ_TMP'" \
		"shared_preload_libraries = 'tq'" "max_connections = 60" "max_prepared_transactions = 10" \
		"shared_buffers = 128MB" "fsync = off" "log_line_prefix = '%m [%p] %q%d '" "$@" |
		tq_user tee -a "$TQ_TMP/data/postgresql.conf" >/dev/null
	tq_user pg_ctl -D "$TQ_TMP/data" -l "$TQ_TMP/log" -w start >/dev/null || {
		cat "$TQ_TMP/log" >&2
		tq_die "the server did not start"
	}
	export PGHOST=$TQ_TMP PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

tq_cluster_stop() {
	[ -e "$TQ_TMP/data/postmaster.pid" ] || return 0
	tq_user "$TQ_TMP/pg/$("$TQ_PG_CONFIG" --bindir | sed "s|^$TQ_TMP/pg||")/pg_ctl" \
		-D "$TQ_TMP/data" -m immediate stop >/dev/null 2>&1
}
