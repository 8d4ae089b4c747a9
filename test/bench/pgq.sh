# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# pgq.sh: the part pgq.  PgQ is a log with a cursor for each consumer: no event
# is claimed, none is locked or marked, so what can be compared is what an event
# costs from its insertion until it was read, by one reader; for tq that is a
# task from its creation to its completion by one worker, a hundred at a time.

# Reads all batches; an empty one is passed over.  Prints events and seconds.
pgq_read() {
	local n=$1
	sql "DO \$\$ DECLARE batch bigint; n bigint; events bigint = 0; began timestamptz = clock_timestamp(); reading interval = '0'; BEGIN
		WHILE events < $n LOOP
			began = clock_timestamp();
			batch = pgq.next_batch('bench', 'bench');
			IF batch IS NULL THEN COMMIT; PERFORM pg_sleep(0.01); CONTINUE; END IF;
			SELECT count(*) INTO n FROM pgq.get_batch_events(batch) AS e WHERE e.ev_data IS NOT NULL;
			PERFORM pgq.finish_batch(batch);
			COMMIT;
			events = events + n;
			reading = reading + (clock_timestamp() - began);
		END LOOP;
		RAISE INFO '% events %', events, extract(epoch FROM reading); END \$\$" 2>&1 | sed -n 's/^INFO: *//p'
}

# pgq_log WHAT: events per second, inserted in bulk with the ticker at work, or
# read.
pgq_log() {
	local n=$pgq_events
	case $1 in
		pgq)
			fresh && pgq_ticker && fill pgq "$n" || exit
			pgq_read "$n" | awk '{ print $1 / $3 }'
			pgq_ticker_stop
			;;
		tq)
			fresh && load tq "$n" || exit
			drive_run "$(script tq_work 100)" -c 1 -n "$n" -T 600 || exit
			awk '{ print $3 / $4 }' "$work/driven"
			;;
	esac
}

part_pgq() {
	has_peer pgq || { echo 'pgq: not here' >&2; return; }
	pgq_events=$(scaled 200000 20000)
	row pgq.read tasks/s "PgQ: $pgq_events events read by one reader, in batches as its ticker makes them"
	turns pgq.read pgq_log tq pgq
	text 'tq: as many tasks claimed, a hundred at a time, and completed, by one worker. Of PgQ: next_batch,' \
		'get_batch_events, finish_batch, in a transaction; pgqd with its default periods. What an insertion costs is in part create.'
}
