# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what it shares with setup.sh, chroot.sh and check
#
# packages.sh: the part `packages` of test/check.  Sourced by it, after chroot.sh.
#
# All is made of the archive of make dist, in which there is no git: packages of Debian,
# which lintian reads and a bare chroot installs, uses and removes (test/packages/chroot),
# and an installation by pgxnclient.  The chroot needs root; lintian and pgxnclient are
# skipped where they cannot be installed.

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

# The archives in TQ_TMP/packages/tree, from a repository of its own, and one of them unpacked.
packages_dist() {
	local dir=$TQ_TMP/packages
	tq_user env GIT_DIR="$dir/git" GIT_WORK_TREE="$TQ_TMP/src" sh -ec '
		git init -q
		git add -A
		git -c user.name=tq -c user.email=tq@localhost commit -qm tq' &&
		tq_user git clone -q "$dir/git" "$dir/tree" && tq_user make -C "$dir/tree" dist &&
		tq_user tar -C "$dir" -xzf "$dir/tree/tq-$1.tar.gz"
}

# As an ordinary user, for the one major that is tested.
packages_deb() {
	tq_user mkdir "$TQ_TMP/packages/debs" &&
		tq_user env PG_SUPPORTED_VERSIONS="$(tq_major)" DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
			make -C "$TQ_TMP/packages/debs" -f "../tq-$1/Makefile" deb
}

# The packages, and a source package of the archive.
packages_lintian() {
	local dir=$TQ_TMP/packages source=$TQ_TMP/packages/source
	tq_user mkdir "$source" && tq_user cp "$dir/tree/tq-$1.tar.gz" "$source/tq_$1.orig.tar.gz" &&
		tq_user tar -C "$source" -xzf "$source/tq_$1.orig.tar.gz" &&
		(cd "$source" && tq_user dpkg-source -b "tq-$1") || return
	tq_user lintian --fail-on error,warning --tag-display-limit 0 "$dir"/debs/tq_*.changes "$source"/tq_*.dsc
}

# pgxnclient builds and installs the zip, into a copy of the server that has no tq.
packages_pgxn() {
	local dir=$TQ_TMP/packages data=$TQ_TMP/packages/data bin
	tq_copy_server "$dir/pg" || return
	bin=$("$TQ_PG_CONFIG" --bindir)
	# it wants to see that this can be written
	tq_user mkdir -p "$("$TQ_PG_CONFIG" --libdir)"
	tq_user env MAKEFLAGS="-j$(nproc)" pgxn install --yes --nosudo --make make --pg_config "$TQ_PG_CONFIG" "$dir/tree/tq-$1.zip" || return
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

# packages_sources SUITE: what apt has here beside the release itself, as updates and security.
# A package depends on the minor version with which it was built, or a later one.
packages_sources() {
	# shellcheck disable=SC2016	# for apt to expand
	apt-get indextargets --format '$(CODENAME) deb $(REPO_URI) $(CODENAME) main' 'Origin: Debian' 'Created-By: Packages' 'Component: main' |
		sed -n "s/^$1-[^ ]* //p"
}

# A bare Debian with the tree and the packages.
packages_chroot() {
	local root=$1 suite
	suite=$(tq_suite "$tq_inner") || return
	tq_bootstrap "$suite" "$root" && tq_configure "$root" && tq_copy_tree "$root" &&
		packages_sources "$suite" >"$root/etc/apt/sources.list.d/test-check.list" &&
		cp -r "$TQ_TMP/packages/debs" "$root/tq/debs"
}

part_packages() {
	local version status=0 packages_steps=0
	version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$tq_root/tq.control")
	tq_user mkdir "$TQ_TMP/packages" || return
	packages_step 'make dist' packages_dist "$version" || return
	packages_step 'META.json is what PGXN asks for' "$TQ_TMP/src/test/packages/meta" "$TQ_TMP/packages/tq-$version" || status=1
	if tq_has pgxnclient; then
		packages_step 'pgxn install' packages_pgxn "$version" || status=1
	else
		packages_skip 'pgxn install' 'there is no pgxnclient'
	fi
	if ! tq_has debhelper || [ ! -x "/usr/lib/postgresql/$(tq_major)/bin/pg_config" ]; then
		packages_skip 'packages of Debian' 'there is no postgresql-server-dev-all, or the server is not of Debian'
		return "$status"
	fi
	packages_step 'make deb' packages_deb "$version" || return
	if tq_has lintian; then
		packages_step lintian packages_lintian "$version" || status=1
	else
		packages_skip lintian 'there is no lintian'
	fi
	if [ "$(id -u)" != 0 ]; then
		packages_skip 'packages in a chroot' 'it needs root'
		return "$status"
	fi
	tq_inner=$(tq_major)
	packages_step 'a bare chroot' packages_chroot "$TQ_TMP/packages/root" || return
	tq_enter "$TQ_TMP/packages/root" /tq/test/packages/chroot /tq/debs && return "$status"
}
