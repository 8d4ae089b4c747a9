# shellcheck shell=bash
# shellcheck disable=SC2154	# what run has set
#
# clients.sh: the part clients.  Other queues through their own clients for
# node, set up as they recommend, and tq through pg, and by client/node; peers/client.mjs.
# The worker of client/python, and that of Celery on a Redis of its own; peers/python.py.

# Of Celery each kind of worker that has up to ten tasks at a time on two cores.
python_workers() {
	local round what n
	if ! { /usr/bin/python3 -c 'import celery, psycopg, redis' && command -v redis-server; } >/dev/null 2>&1; then
		echo 'clients.python: there is no celery and redis' >&2
		return
	fi
	n=$(scaled 20000 5000)
	row clients.python tasks/s "the worker of each for Python, tasks that do nothing: $n worked off"
	for ((round = 0; round < rounds; round++)); do
		for what in tq celery-solo-1 celery-prefork-2 celery-prefork-10 celery-threads-10; do
			fresh || exit
			note clients.python "$what" "$(PYTHONPATH=$tq_root/client/python /usr/bin/python3 "$bench/peers/python.py" "$what" \
				"$([ "$what" = celery-threads-10 ] && echo $((n / 20)) || echo "$n")")" || exit
		done
	done
	text 'clients.python: tq by tq.AsyncWorker, ten at a time; Celery by its pools, without results, gossip and heartbeats.'
}

part_clients() {
	local round what rates n
	python_workers
	has_peer graphile || { echo 'clients: there is no node with these' >&2; return; }
	n=$(scaled 50000 5000)
	n=$((n / 1000 * 1000))
	wanted default
	row clients.create tasks/s "through clients for node: $n created, a thousand to a call"
	row clients.work tasks/s "through clients for node: $n worked off by one process, which claims and completes many at once"
	row clients.worker tasks/s "the worker of each for node, ten handlers at a time that do nothing: $n worked off"
	for ((round = 0; round < rounds; round++)); do
		for what in tq graphile pgboss; do
			fresh || exit
			read -r -a rates < <(client work "$what" "$n") && ((${#rates[@]} == 2)) || exit
			note clients.create "$what" "${rates[0]}"
			note clients.work "$what" "${rates[1]}"
			fresh || exit
			read -r -a rates < <(client worker "$what" "$n") && ((${#rates[@]} == 2)) || exit
			note clients.worker "$what" "${rates[1]}"
		done
	done
	text 'graphile-worker: 24 jobs at once, localQueue of 500, completions in batches; pg-boss: 4 workers, batchSize' \
		'100, burstWhenBatchFull; tq: 4 connections, 100 at a time, in one statement. clients.worker: ten at once, tq by' \
		'client/node with what it does by default.'
}
