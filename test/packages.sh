# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what it shares with setup.sh, chroot.sh and check
#
# packages.sh: the part `packages` of test/check.  Sourced by it, after chroot.sh.
#
# All is made of the archive of make dist, in which there is no git: an installation by
# pgxnclient, which is skipped where that cannot be installed; and, in chroots of each
# suite of Debian, which need root, packages and an image (test/packages/chroot).

# packages_step NAME COMMAND...: runs a command, as a test; prints its last lines if it fails.
packages_step() {
	local log=$TQ_TMP/packages/log
	if ("${@:2}") >"$log" 2>&1; then
		echo "ok $((++packages_steps)) - $1"
	else
		echo "not ok $((++packages_steps)) - $1"
		tail -n 40 "$log" | cut -c 1-300 | sed 's/^/# /'
		return 1
	fi
}

packages_skip() { echo "ok $((++packages_steps)) - $1 # skip $2"; }

# The archives in TQ_TMP/packages/dist, from a repository of its own, and one of them unpacked
# as TQ_TMP/packages/tree.
packages_dist() {
	local dir=$TQ_TMP/packages
	tq_user env GIT_DIR="$dir/git" GIT_WORK_TREE="$TQ_TMP/src" sh -ec '
		git init -q
		git add -A
		git -c user.name=tq -c user.email=tq@localhost commit -qm tq' &&
		tq_user git clone -q "$dir/git" "$dir/dist" && tq_user make -C "$dir/dist" dist &&
		tq_user mkdir "$dir/tree" && tq_user tar -C "$dir/tree" --strip-components=1 -xzf "$dir/dist/tq-$1.tar.gz"
}

# pgxnclient builds and installs the zip, into a copy of the server that has no tq.
packages_pgxn() {
	local dir=$TQ_TMP/packages data=$TQ_TMP/packages/data bin
	tq_copy_server "$dir/pg" || return
	bin=$("$TQ_PG_CONFIG" --bindir)
	# it wants to see that this can be written
	tq_user mkdir -p "$("$TQ_PG_CONFIG" --libdir)"
	tq_user env MAKEFLAGS="-j$(nproc)" pgxn install --yes --nosudo --make make --pg_config "$TQ_PG_CONFIG" "$dir/dist/tq-$1.zip" || return
	tq_user "$bin/initdb" -D "$data" -U postgres -A trust --no-sync --encoding=UTF8 --locale=C.UTF-8 &&
		tq_user tee -a "$data/postgresql.conf" <<-END && tq_user "$bin/pg_ctl" -D "$data" -l "$dir/server.log" -w start || return
			shared_preload_libraries = 'tq'
			listen_addresses = ''
			unix_socket_directories = '$dir'
		END
	tq_user "$bin/psql" -XqAt -h "$dir" -p 5432 -U postgres -d postgres -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION tq' \
		-c "SELECT tq.enqueue('a/b', '{}')" -c "SELECT 1 / count(*) FROM tq.claim_work('a/b')"
	set -- "$?"
	tq_user "$bin/pg_ctl" -D "$data" -m fast -w stop
	return "$1"
}

# The last release with the debian/ of today, in TQ_TMP/packages/tree/old, if the clone has
# its commit; 0.1.0 has no programs, and no packages of Node and Python.
packages_old() {
	local dir=$TQ_TMP/packages/tree version commit git=(git -c safe.directory='*' -C "$tq_root")
	read -r version commit _ <<<"$(tail -n 1 "$dir/.ci/released")"
	"${git[@]}" cat-file -e "${commit%:*}" 2>/dev/null || return 0
	mkdir "$dir/old" && "${git[@]}" archive "${commit%:*}" | tar -C "$dir/old" -xf - && cp -r "$dir/debian" "$dir/old/" &&
		sed -i "1s/(.*)/($version-1)/" "$dir/old/debian/changelog" && cd "$dir/old/debian" || return
	[ -d ../src/bin ] || { rm tq-worker.* tq-web.* node-tq.* python3-tq.* && sed -i '/worker\|(web)\|tq-web/d' rules &&
		sed -i '/^Package: \(tq-worker\|tq-web\|node-tq\|python3-tq\)/,/^$/d' control control.in; }
}

# packages_build_root SUITE ROOT: a chroot with the tree and what a build needs, which is kept.
packages_build_root() {
	local before=''
	if tq_unpack "build-$1" "$2"; then before=$(cksum <"$2/var/lib/dpkg/status"); else tq_bare "$1" "$2"; fi &&
		tq_configure "$2" && cp -r "$TQ_TMP/packages/tree" "$2/tq" && tq_enter "$2" /tq/test/packages/chroot ready "$1" || return
	[ "$before" = "$(cksum <"$2/var/lib/dpkg/status")" ] || tq_keep_chroot "build-$1" "$2"
}

# packages_bare_root SUITE ROOT: a bare one, with the tree and the packages.
packages_bare_root() {
	tq_bare "$1" "$2" && tq_configure "$2" && cp -r "$TQ_TMP/packages/tree" "$2/tq" && cp -r "$TQ_TMP/packages/$1" "$2/tq/debs"
}

# packages_suite SUITE: builds the packages in a chroot; then in a bare one measures a first
# job, and in another installs an older package, upgrades, uses and removes it.
packages_suite() {
	local suite=$1 dir=$TQ_TMP/packages root=$TQ_TMP/packages/root-$1 status=0 act
	packages_step "$suite: a chroot for the build" packages_build_root "$suite" "$root" || return
	tq_enter "$root" /tq/test/packages/chroot build "$suite" || status=1
	cp -r "$root/tq/debs" "$dir/$suite" && rm -rf --one-file-system "$root" || return
	for act in first use; do
		packages_step "$suite: a bare chroot" packages_bare_root "$suite" "$root" || return
		tq_enter "$root" /tq/test/packages/chroot "$act" "$suite" || status=1
		rm -rf --one-file-system "$root"
	done
	return "$status"
}

part_packages() {
	local version suite status=0 packages_steps=0
	version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$tq_root/tq.control")
	tq_user mkdir "$TQ_TMP/packages" || return
	packages_step 'make dist' packages_dist "$version" || return
	packages_step 'META.json is what PGXN asks for' "$TQ_TMP/src/test/packages/meta" "$TQ_TMP/packages/tree" || status=1
	if tq_has pgxnclient; then
		packages_step 'pgxn install' packages_pgxn "$version" || status=1
	else
		packages_skip 'pgxn install' 'there is no pgxnclient'
	fi
	if [ "$(id -u)" != 0 ]; then
		packages_skip 'packages of Debian' 'they need root'
		return "$status"
	fi
	packages_step 'the last release, to upgrade from' packages_old || return
	for suite in "${suites[@]}"; do packages_suite "$suite" || status=1; done
	return "$status"
}
