# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# wanted.sh: the clients that get messages, waiting until they have them, and the
# processor time of all.  Sourced by run.

exchanges='(SELECT tq_internal.exchange_name(i) AS name FROM generate_series(1, 12) AS i) AS exchange'
channel="('tq_' || replace(name, '-', '_'))"
unpublished="FROM tq_internal.message AS m, (SELECT upto FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1) AS t
	WHERE m.xid >= pg_snapshot_xmin(t.upto) AND NOT pg_visible_in_snapshot(m.xid, t.upto)"
follower=''

# ---------------------------------------------------------------------------
# Waiting for messages
# ---------------------------------------------------------------------------

# Waits until all that is committed is published, and sent to the listeners; by
# the maintenance worker, or if there is none, by this script.
published() {
	local left="EXISTS (SELECT FROM tq_internal.unpublished) OR EXISTS (SELECT FROM tq_internal.tick WHERE unsent IS NOT NULL)"
	if [ -z "$(worker_pid)" ]; then
		while [ "$(sql "SELECT $left")" = t ]; do sql 'SELECT count(*) FROM tq.upkeep()' >/dev/null || return; done
		return
	fi
	sql "DO \$\$ DECLARE began timestamptz = clock_timestamp(); BEGIN
		WHILE $left LOOP
			IF clock_timestamp() > began + interval '10 min' THEN RAISE 'messages are not published'; END IF;
			COMMIT;
			PERFORM pg_sleep(0.01);
		END LOOP; END \$\$"
}

# Deletes all messages, so that each run has segments that are empty but for the
# last tick.
forget_messages() {
	published && sql "BEGIN;
		LOCK TABLE tq_internal.message, tq_internal.tick;
		CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1;
		UPDATE kept SET messages = 0;
		TRUNCATE tq_internal.message, tq_internal.tick;
		INSERT INTO tq_internal.tick SELECT * FROM kept;
		COMMIT"
}

# How many messages have been published since then.
messages() { sql 'SELECT coalesce(sum(messages), 0) FROM tq_internal.tick'; }

# Written and not published, or published and not with the follower.
backlog() {
	sql "SELECT coalesce((SELECT sum(octet_length(records) / 16) $unpublished), 0) + (SELECT 2 * count(*) FROM tq_internal.underived) +
		CASE WHEN '$follower' = '' THEN 0 ELSE (SELECT sum(messages) FROM tq_internal.tick) - $(cat "$work/followed" 2>/dev/null || echo 0) END"
}

# ---------------------------------------------------------------------------
# The clients that get messages
# ---------------------------------------------------------------------------

# wanted none|default|listened|fetched: nothing is bound; the default channels
# are, and no client listens; one client listens to all of them; one client
# fetches everything by a durable subscription, and acknowledges it.
wanted() {
	unfollow
	sql "SELECT count(tq.unsubscribe(name)) FROM tq_internal.subscription" >/dev/null || exit
	case $1 in
		none) sql "SELECT count(tq.unbind($channel, name)) FROM $exchanges" ;;
		*) sql "SELECT count(tq.bind($channel, name)) FROM $exchanges" ;;
	esac >/dev/null || exit
	case $1 in
		listened)
			mapfile -t channels < <(sql "SELECT $channel FROM $exchanges")
			follow listen "${channels[@]}"
			;;
		fetched)
			sql "SELECT count(tq.subscribe('bench', name)) FROM $exchanges" >/dev/null || exit
			follow fetch bench
			;;
	esac
}

follow() {
	rm -f "$work/followed"
	"$bench/follow" "$work/followed" "$@" &
	follower=$!
	until [ -f "$work/followed" ]; do
		kill -0 "$follower" 2>/dev/null || { echo 'follow has ended' >&2; exit 1; }
		sleep 0.01
	done
}

unfollow() {
	[ -n "$follower" ] || return 0
	kill "$follower" 2>/dev/null
	wait "$follower" 2>/dev/null
	follower=''
}

# Waits until the follower has all messages.
followed() {
	local all begin=$SECONDS
	published || exit
	[ -n "$follower" ] || return 0
	all=$(messages)
	until (($(cat "$work/followed") >= all)); do
		kill -0 "$follower" 2>/dev/null || { echo 'follow has ended' >&2; exit 1; }
		((SECONDS - begin < 600)) || { echo 'messages are not delivered' >&2; exit 1; }
		sleep 0.01
	done
}

# ---------------------------------------------------------------------------
# Processor time, in hundredths of a second; 0 where it cannot be known
# ---------------------------------------------------------------------------

worker_pid() { sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'tq worker' AND datname = current_database()"; }

cpu_of_worker() { awk '{ print $14 + $15 }' "/proc/$(worker_pid)/stat" 2>/dev/null || echo 0; }

# no_sessions NAME: waits until sessions of that name have ended.
no_sessions() {
	sql "DO \$\$ BEGIN
		WHILE EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$1') LOOP
			COMMIT;
			PERFORM pg_sleep(0.01);
		END LOOP; END \$\$"
}

# Of sessions that have ended.
cpu_of_sessions() {
	no_sessions pgbench
	awk '{ print $16 + $17 }' "/proc/$(awk '{ print $4 }' "/proc/$(worker_pid)/stat")/stat" 2>/dev/null || echo 0
}
