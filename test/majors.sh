# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what it shares with setup.sh, chroot.sh and check
#
# majors.sh: the part `majors` of test/check.  Sourced by it, after chroot.sh.
#
# The tests of dump, restore, pg_upgrade and logical replication once more, from the major
# version before to the one that is tested.  That is the one of an older Debian, whose
# packages are installed beside; for both tq is built.  It runs only in a chroot, because a
# system's own apt is not to be given the packages of another release.

majors_tests='test/t/010_dump_restore.pl test/t/011_slugid.pl test/t/077_hostile_logical.pl'

# majors_older MAJOR: the one before, of those that test/check knows.
majors_older() {
	case $1 in
		17) echo 15 ;;
		18) echo 17 ;;
		19) echo 18 ;;
		*) return 1 ;;
	esac
}

# Installs the server of the older one; of its headers only the files, because they would
# bring a compiler of their own.
majors_install() {
	local older suite
	if ! older=$(majors_older "${TQ_MAJOR:-none}"); then tq_die 'majors runs with --postgres 17, 18 or 19'; fi
	[ ! -f "/usr/include/postgresql/$older/server/postgres.h" ] || return 0
	suite=$(tq_suite "$older")
	tq_tmpdir
	echo "* PostgreSQL $older of Debian $suite"
	if ! apt-cache show "postgresql-$older" >/dev/null 2>&1; then
		sed -n "s/^\(deb [^ ]*\) .*/\1 $suite main/p" /etc/apt/sources.list >/etc/apt/sources.list.d/older.list
		printf '%s\n' 'Package: *' "Pin: release n=$suite" 'Pin-Priority: 100' >/etc/apt/preferences.d/older
	fi
	if ! { tq_apt update && tq_apt "postgresql-$older" && tq_log "$TQ_TMP/older.log" majors_headers "postgresql-server-dev-$older"; }; then
		tq_die "PostgreSQL $older cannot be installed"
	fi
}

majors_headers() {
	mkdir "$TQ_TMP/headers" && cd "$TQ_TMP/headers" && apt-get download "$1" && dpkg-deb -x ./*.deb /
}

# majors_build MAJOR: a copy of its server that has tq, whose pg_config it prints.
majors_build() {
	local dir=$TQ_TMP/older tq_server=/usr/lib/postgresql/$1/bin/pg_config
	tq_user mkdir -p "$dir" && tq_user cp -a "$TQ_TMP/src/." "$dir/src" && tq_user find "$dir/src" \( -name '*.o' -o -name '*.so' \) -delete &&
		tq_copy_server "$dir/pg" &&
		tq_log "$dir/build.log" tq_user make -C "$dir/src" --no-print-directory -s -j2 PG_CONFIG="$TQ_PG_CONFIG" with_llvm=no docdir= install || return
	echo "$TQ_PG_CONFIG"
}

part_majors() {
	local older
	older=$(majors_build "$(majors_older "$(tq_major)")") || return
	TQ_OLDER=$older PG_TEST_TIMEOUT_DEFAULT=${PG_TEST_TIMEOUT_DEFAULT:-120} \
		tq_make installcheck REGRESS= ISOLATION= PROVE_TESTS="$majors_tests" PROVE_FLAGS='--verbose --timer --jobs 2'
}
