# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# peers.sh: other queues.  Sourced by run.  None of them leaves anything in the
# system: pgq3 and its daemon are unpacked from Debian's packages, and
# graphile-worker and pg-boss come from npm (package.json has their versions),
# with a node that is new enough for them if there is none.  What cannot be had
# is said and left out.
#
# Their tables are in the same database as ours, made by their own migrations;
# the statements that are measured are those that they send (statements.mjs).

peers=()				# those that are there, of graphile, pgboss and pgq
peers_node=''			# the node that runs them

has_peer() { [[ " ${peers[*]} " == *" $1 "* ]]; }

# Are they wanted?  Not if no part asks for them.
peers_wanted() {
	[ "${TQ_BENCH_PEERS:-}" != no ] && [[ " ${parts[*]} " =~ \ (create|claim|churn|wait|clients|pgq)\  ]]
}

peer_missing() { echo "warning: $1 is left out: $2" >&2; }

# ---- PgQ ----

# Debian's packages of it, unpacked in $1.
peers_unpack_pgq() {
	local dir=$1 major packages
	major=$(tq_major)
	packages=("postgresql-$major-pgq3" pgqd)
	ldconfig -p | grep -q 'libevent-2\.1' ||
		packages+=("$(apt-cache depends pgqd | sed -n 's/.*Depends: \(libevent-2.1.*\)/\1/p' | head -n 1)")
	mkdir -p "$dir/deb" && (
		cd "$dir/deb" || exit
		apt-get download "${packages[@]}" || { tq_as_root apt-get update && apt-get download "${packages[@]}"; } || exit
		for package in *.deb; do dpkg -x "$package" "$dir" || exit; done
	) >"$dir/log" 2>&1
}

# peers_pgq: before the server is started, gives it the extension.
peers_pgq() {
	local dir=$TQ_TMP/pgq
	peers_wanted || return 0
	if [ "$("$tq_server" --pkglibdir)" != "/usr/lib/postgresql/$(tq_major)/lib" ]; then
		peer_missing pgq 'this is not the server of the distribution'
	elif ! peers_unpack_pgq "$dir"; then
		peer_missing pgq "$(tail -n 1 "$dir/log")"
	else
		chmod -R a+rX "$dir"
		tq_user cp -R "$dir/usr/lib/postgresql" "$TQ_TMP/pg/usr/lib/"
		tq_user cp -R "$dir/usr/share/postgresql" "$TQ_TMP/pg/usr/share/"
	fi
}

pgq_ready() {
	[ "$(sql "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgq'")" = 1 ] || return 0
	pgqd=${TQ_TMP:-}/pgq/usr/bin/pgqd
	[ -x "$pgqd" ] || pgqd=$(type -P pgqd)
	pgqd -V || { peer_missing pgq 'pgqd does not run'; return; }
	sql 'CREATE EXTENSION pgq' && sql "SELECT pgq.create_queue('bench')" >/dev/null || exit
	peers+=(pgq)
	{
		echo '[pgqd]'
		echo "base_connstr = host=$PGHOST port=${PGPORT:-5432} user=${PGUSER:-postgres}"
		echo "initial_database = $tq_home"
		echo "database_list = $PGDATABASE"
		echo "pidfile = $work/pgqd.pid"
		echo "logfile = $work/pgqd.log"
		echo 'syslog = 0'
	} >"$work/pgqd.ini"
}

# Its queue is created again; its tables are rotated, never emptied.
pgq_fresh() {
	sql "SELECT pgq.drop_queue('bench', true), pgq.create_queue('bench'), pgq.register_consumer('bench', 'bench')" >/dev/null
}

# Its daemon, with the library that may have been unpacked beside it.
pgqd() { LD_LIBRARY_PATH=${TQ_TMP:-}/pgq/usr/lib/$(uname -m)-linux-gnu "$pgqd" "$@" >/dev/null 2>&1; }

# The ticker, with the periods that it has by default.
pgq_ticker() { pgqd -q -d "$work/pgqd.ini"; }

pgq_ticker_stop() { [ ! -f "$work/pgqd.pid" ] || pgqd -q -k "$work/pgqd.ini" || true; }

# ---- graphile-worker and pg-boss ----

# Puts them, as package-lock.json says, into $work/npm, and keeps them in .build
# of the tree; fails if it cannot.
peers_npm() {
	local dir=$work/npm key kept new=$work/npm.tar.gz
	key=$(cat "$bench"/peers/package*.json | sha256sum | cut -c 1-12)
	kept=$tq_root/.build/bench-npm-$(uname -m)-$key.tar.gz
	mkdir -p "$dir" && cp "$bench"/peers/*.json "$bench"/peers/*.mjs "$dir"
	if ! { [ -f "$kept" ] && tar -C "$dir" -xzmf "$kept"; } 2>/dev/null; then
		(cd "$dir" && timeout 600 npm ci --cache "$work/npm-cache" --ignore-scripts --no-audit --no-fund \
			--no-update-notifier) >"$work/npm.log" 2>&1 || return
		tar -C "$dir" -czf "$new" node_modules && tq_keep "$new" "$kept"
	fi
	ln -sfn "$tq_root/client/node" "$dir/node_modules/tq-postgres" || return
	peers_node=$(command -v node)
	if [ "$(printf '%s\n' "v22.18" "$(node --version)" | sort -V | head -n 1)" != v22.18 ]; then
		peers_node=$(echo "$dir"/node_modules/node-linux-*/bin/node)
		[ -x "$peers_node" ] || { echo 'node is too old' >"$work/npm.log"; return 1; }
	fi
}

npm_ready() {
	tq_has node || tq_packages node >&2
	tq_has node || { peer_missing 'graphile-worker, pg-boss' 'there is no node and npm'; return; }
	if peers_npm && (cd "$work/npm" && "$peers_node" statements.mjs "$work/sql") >"$work/npm.log" 2>&1; then
		peers+=(graphile pgboss)
	else
		peer_missing 'graphile-worker, pg-boss' "$(grep -vE '^ *$|warn' "$work/npm.log" | tail -n 5 | paste -sd' ')"
	fi
}

# client WAY PEER N: a client of its own.
client() { (cd "$work/npm" && "$peers_node" client.mjs "$@") || exit; }

# After the database is there.
peers_ready() {
	peers_wanted || return 0
	pgq_ready
	npm_ready
}
