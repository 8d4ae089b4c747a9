# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154	# what it shares with setup.sh and check
#
# chroot.sh: test/check for another major version of PostgreSQL, in a chroot of
# the Debian that has it.  Sourced by test/check, after setup.sh.
#
#	tq_chroot MAJOR ARGUMENT...	runs test/check ARGUMENT... there
#
# Needs root, and the right to mount.  The chroot is made by debootstrap from the
# mirror that apt uses here, and is kept for a week in .build/ of the tree: bare, and
# with the packages that were installed in it.
#
# All that runs in the chroot is in namespaces of its own, for mounts, processes
# and shared memory.  When their first process ends, or is killed with us, the
# kernel ends the others and unmounts everything.  No directory of this machine is
# mounted in the chroot, so that its removal takes nothing with it.

# shellcheck disable=SC2016	# for apt-get and other shells to expand
# shellcheck disable=SC2034,SC2154	# setup.sh and check share variables with us

tq_inner='' tq_chroot_kept='' tq_ran=''

# tq_suite MAJOR: the Debian that has it.  experimental is no Debian of its own: it
# is sid with more packages.
tq_suite() {
	case $1 in
		15) echo bookworm ;;
		17) echo trixie ;;
		18) echo sid ;;
		19) echo experimental ;;
		*) return 1 ;;
	esac
}

# The mirror of Debian that apt uses here, not that of the security updates.
tq_mirror() {
	local origin codename uri
	# shellcheck disable=SC2016	# for apt to expand
	while IFS='|' read -r origin codename uri; do
		[[ $origin != Debian || $codename == *-* ]] || { echo "$uri"; return; }
	done < <(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' 'Component: main')
	return 1
}

# tq_jail COMMAND...: runs a command in namespaces of its own, in the background,
# as tq_job.
tq_stop_jail() { kill -KILL "$tq_job"; wait "$tq_job"; tq_job=''; } 2>/dev/null
tq_jail=(setpriv --pdeathsig KILL setsid unshare --mount --pid --ipc --fork --kill-child --mount-proc)

tq_jail_ca=/etc/ssl/test-check.crt

# The environment of what runs in the chroot: little of ours, and no TQ_TMP.
tq_jail_env() {
	local name
	printf '%s\0' PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TQ_MAJOR="$1"
	for name in TERM CI NO_COLOR http_proxy https_proxy no_proxy PG_TEST_TIMEOUT_DEFAULT; do
		[ -z "${!name:-}" ] || printf '%s\0' "$name=${!name}"
	done
	[ -z "${NODE_EXTRA_CA_CERTS:-}" ] || printf '%s\0' "NODE_EXTRA_CA_CERTS=$tq_jail_ca"
}

# tq_enter ROOT COMMAND...: runs a command in the chroot.
tq_enter_script='
	cd "$1" && mount -t proc proc proc && mount -t tmpfs tmpfs dev/shm &&
		mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts || exit
	exec chroot "$@"'
tq_enter() {
	local root=$1 env=()
	shift
	mapfile -d '' env < <(tq_jail_env "$tq_inner")
	tq_job_stop=tq_stop_jail
	"${tq_jail[@]}" env -i "${env[@]}" sh -c "$tq_enter_script" sh "$root" "$@" </dev/null &
	tq_job=$!
	wait "$tq_job"
	set -- "$?"
	tq_job=''
	return "$1"
}

# tq_unpack NAME ROOT: that chroot of the last time, if it was in the last week.
tq_unpack() {
	local kept=$tq_root/.build/$1.tar.zst
	[ -n "$(find "$kept" -mtime -7 2>/dev/null)" ] && mkdir "$2" || return
	echo "* unpacking $1 of the last time"
	zstd -dcq "$kept" | tar -C "$2" --numeric-owner -xpf - && [ -x "$2/usr/bin/apt-get" ] && return
	rm -rf "$2"
	return 1
}

# tq_bare SUITE ROOT: a chroot with what debootstrap installs, and no more.
tq_bare() {
	local mirror include=()
	tq_unpack "bare-$1" "$2" && return
	mkdir "$2" || return
	mirror=$(tq_mirror) || { tq_apt update && mirror=$(tq_mirror); } ||
		tq_die 'no mirror of Debian is in the configuration of apt'
	[[ $mirror != https:* ]] || include=(--include=ca-certificates)
	echo "* debootstrap $1"
	tq_job_stop=tq_stop_jail
	tq_run "$TQ_TMP/debootstrap.log" "${tq_jail[@]}" env -u TQ_TMP -u TMPDIR \
		debootstrap --variant=minbase "${include[@]}" "${1/experimental/sid}" "$2" "$mirror" ||
		{ tq_errors "$2/debootstrap/debootstrap.log" >&2; tq_die "debootstrap $1 failed"; }
	tq_keep_chroot "bare-$1" "$2"
}

# tq_bootstrap SUITE ROOT: the chroot of the last time, or a bare one.
tq_bootstrap() {
	tq_chroot_kept=yes
	tq_unpack "chroot-$1" "$2" && return
	tq_chroot_kept=''
	tq_bare "$1" "$2"
}

# tq_configure ROOT: what the chroot has of this machine: how names are looked
# up, and how apt and npm reach their servers.  A Release file may have expired
# on a mirror; its signature is checked all the same.
tq_configure() {
	local file ca=${NODE_EXTRA_CA_CERTS:-}
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d" && chmod +x "$1/usr/sbin/policy-rc.d" || return
	for file in /etc/resolv.conf /etc/hosts; do cp "$file" "$1/etc/" || return; done
	{
		apt-config dump | grep -E '^Acquire::(http|https|Retries|ForceIPv[46])[: ]'
		echo 'Acquire::Check-Valid-Until "false";'
	} >"$1/etc/apt/apt.conf.d/90-test-check"
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/test-check"
	# not where a package of the chroot has its own
	[ ! -f "$ca" ] || install -D -m 644 "$ca" "$1$tq_jail_ca"
}

# tq_experimental ROOT MAJOR: what a chroot of experimental has beyond that of sid: the
# server, and its pgTAP.  That is SQL only, so that the package for the major before is taken
# where experimental has none.
# shellcheck disable=SC2016	# for the shell in the chroot to expand
tq_experimental_script='
	apt-get update || exit
	! dpkg -s "postgresql-$1-pgtap" && ! apt-cache show "postgresql-$1-pgtap" || exit 0
	dir=$(mktemp -d) && cd "$dir" && chmod 755 . && apt-get download "postgresql-$2-pgtap" && dpkg-deb -R ./*.deb package || exit
	mv "package/usr/share/postgresql/$2" "package/usr/share/postgresql/$1" && rm -r package/usr/share/doc package/DEBIAN/md5sums &&
		sed -i "s/^Package: .*/Package: postgresql-$1-pgtap/; /^Depends:/d" package/DEBIAN/control &&
		dpkg-deb -b package pgtap.deb && dpkg -i pgtap.deb && rm -r "$dir"'
tq_experimental() {
	local file=$1/etc/apt/preferences.d/test-check
	sed -n 's/ sid / experimental /p' "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/experimental.list"
	printf '%s\n' "Package: src:postgresql-$2" 'Pin: release a=experimental' 'Pin-Priority: 500' >"$file"
	tq_enter "$1" sh -c "$tq_experimental_script" sh "$2" "$(($2 - 1))" >"$TQ_TMP/experimental.log" 2>&1 ||
		{ tq_errors "$TQ_TMP/experimental.log" >&2; return 1; }
}

# tq_copy_tree ROOT: the tree, and what of .build/ serves the tests.
tq_copy_tree() {
	mkdir -p "$1/tq/.build" &&
		tq_files | tar -C "$tq_root" --null -T - -cf - | tar -C "$1/tq" --no-same-owner -xf - || return
	cp "$tq_root/.build/$tq_inner"-*.tar "$tq_root/.build/node-pg.tar" "$1/tq/.build/" 2>/dev/null || true
}

# tq_keep_chroot NAME ROOT: keeps the chroot for the next time, without the tree.
tq_keep_chroot() {
	local new=$TQ_TMP/chroot.tar.zst
	echo "* keeping $1 for the next time"
	{
		tar -C "$2" --one-file-system --numeric-owner --exclude=./tq --exclude='./tmp/*' \
			--exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' -cf - . | zstd -q -1 -T0 -o "$new"
	} &
	wait $! && tq_keep "$new" "$tq_root/.build/$1.tar.zst"
}

# tq_keep_inner ROOT: what was built in the chroot is kept in .build/ of the tree.
tq_keep_inner() {
	local file
	for file in "$1/tq/.build/$tq_inner"-*.tar; do
		if [ ! -f "$file" ] || [ -f "$tq_root/.build/${file##*/}" ]; then continue; fi
		rm -f "$tq_root/.build/$tq_inner"-*.tar
		tq_keep "$file" "$tq_root/.build/${file##*/}"
	done
}

# tq_prepare SUITE ROOT ARGUMENT...: a chroot with the tree and all packages.
tq_prepare() {
	local suite=$1 root=$2 before
	shift 2
	tq_bootstrap "$suite" "$root" || tq_die 'the chroot could not be made'
	before=$(cksum <"$root/var/lib/dpkg/status")
	tq_configure "$root" || tq_die 'the chroot cannot be written'
	[ "$suite" != experimental ] || tq_experimental "$root" "$tq_inner" || tq_die "experimental cannot be added to sid"
	tq_copy_tree "$root" || tq_die 'the tree could not be copied'
	tq_enter "$root" /tq/test/check --packages "$@" || return
	if [ -z "$tq_chroot_kept" ] || [ "$before" != "$(cksum <"$root/var/lib/dpkg/status")" ]; then
		tq_keep_chroot "chroot-$suite" "$root"
	fi
}

# Sets tq_ran when the check there was started, which prints the last line then.
tq_chroot() {
	local suite root
	tq_inner=$1
	shift
	suite=$(tq_suite "$tq_inner") || tq_die "no Debian has PostgreSQL $tq_inner: say 15, 17, 18 or 19"
	[ "$(id -u)" = 0 ] || tq_die "--postgres $tq_inner needs root, because it makes a chroot"
	unshare --mount --pid --ipc --fork mount -t tmpfs tmpfs /mnt 2>/dev/null ||
		tq_die "--postgres $tq_inner needs the right to mount, which this container does not have"
	unset PG_CONFIG
	tq_packages debootstrap
	tq_tmpdir
	chmod 755 "$TQ_TMP"
	root=$TQ_TMP/root
	if ! tq_prepare "$suite" "$root" "$@"; then
		[ -n "$tq_chroot_kept" ] || return 1
		echo '* once more, because the chroot of the last time may be too old'
		rm -rf "$root" "$tq_root/.build/chroot-$suite.tar.zst"
		tq_prepare "$suite" "$root" "$@" || return
	fi
	tq_ran=yes
	tq_enter "$root" /tq/test/check "$@"
	set -- "$?"
	tq_keep_inner "$root"
	return "$1"
}
