#!/usr/bin/env python3
"""tq as a system of github.com/hardbyte/postgresql-job-queue-benchmarking.

Its contract is that harness's CONTRIBUTING_ADAPTERS.md: settings come in the environment, and
samples go to standard output, a line of JSON each.  All statements are public functions of tq.
Batches and connections are those of the harness's other adapters in Python: a producer that
creates up to PRODUCER_BATCH_MAX tasks at once, and WORKER_COUNT connections that each claim up to
CONSUMER_BATCH_SIZE, work on them for JOB_WORK_MS each, and report them.

TQ_SHAPE=ahead is the shape that tq recommends for many tasks at a time: two connections claim 200
each, and WORKER_COUNT handlers work on what they have.  TQ_SYSTEM is its name in the results.
"""

import asyncio
import collections
import datetime
import json
import os
import signal
import time

import psycopg

QUEUE = "bench/long-horizon"
CREATE = "SELECT cardinality(tq.enqueue_tasks(%s, %s::text[]::jsonb[]))"
CLAIM = """SELECT task_id, run_id, payload
    FROM tq.claim_work(%s, 'bench', %s, tasks => %s, wait => '1 s', claim_for => '30 s')"""
RESOLVE = "SELECT count(*) FROM tq.resolve(%s::text[]::tq.slugid[], %s::int[])"
DEPTH = "SELECT (tq.task_queue_counts(%s) ->> 'pendingTasks')::int"
WINDOW = 30  # seconds of latencies in a percentile


def number(name, default):
    return int(os.environ.get(name) or default)


url = os.environ["DATABASE_URL"]
system = os.environ.get("TQ_SYSTEM", "tq")
instance = number("BENCH_INSTANCE_ID", 0)
sample_every = number("SAMPLE_EVERY_S", 5)
rate = number("PRODUCER_RATE", 800)
to_depth = os.environ.get("PRODUCER_MODE") == "depth-target"
target_depth = number("TARGET_DEPTH", 1000)
workers = number("WORKER_COUNT", 32)
padding = "x" * max(0, number("JOB_PAYLOAD_BYTES", 256) - 96)
work = number("JOB_WORK_MS", 1) / 1000
tick = number("PRODUCER_BATCH_MS", 10) / 1000
batch_max = number("PRODUCER_BATCH_MAX", 128)
# The formula of pgmq's adapter.
batch = number("CONSUMER_BATCH_SIZE", max(8, min(64, round(rate * 1.25 / (workers * 20)))))

stop = asyncio.Event()
created = completed = depth = 0
latencies = {name: collections.deque(maxlen=32768) for name in ("producer", "claim", "end_to_end")}


class Session:
    """A connection that is made again after it was lost."""

    connection = None

    async def rows(self, statement, *arguments):
        """The rows of a statement, or None if the connection was lost before they came."""
        try:
            if self.connection is None:
                self.connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
            return await (await self.connection.execute(statement, arguments)).fetchall()
        except psycopg.OperationalError:
            if self.connection is not None:
                await self.connection.close()
                self.connection = None
            await asyncio.sleep(0.1)
            return None


def took(name, milliseconds):
    latencies[name].append((time.monotonic(), milliseconds))


def aged(name, claims):
    now = time.time() * 1000
    for _, _, payload in claims:
        took(name, now - payload["enqueued_at_ms"])


async def create(session, n):
    """Creates n tasks at once."""
    global created
    payload = {"enqueued_at_ms": int(time.time() * 1000), "payload_padding": padding}
    payloads = [json.dumps({"seq": created + i, **payload}) for i in range(n)]
    began = time.monotonic()
    if await session.rows(CREATE, QUEUE, payloads) is not None:
        took("producer", (time.monotonic() - began) * 1000 / n)
        created += n


async def pending(session):
    """How many tasks wait, or None if the connection was lost."""
    rows = await session.rows(DEPTH, QUEUE)
    return rows and rows[0][0]


def rate_now():
    """The rate that is wanted, which phases of high load change."""
    try:
        with open(os.environ["PRODUCER_RATE_CONTROL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return rate


async def produce_to_depth():
    global depth
    session = Session()
    while not stop.is_set():
        waiting = await pending(session)
        if waiting is None:
            continue
        depth = waiting
        if depth < target_depth:
            await create(session, min(batch_max, target_depth - depth))
        else:
            await asyncio.sleep(tick)


async def produce_at_rate():
    session, credit, last = Session(), 0.0, time.monotonic()
    while not stop.is_set():
        await asyncio.sleep(tick)
        now = time.monotonic()
        credit, last = credit + rate_now() * (now - last), now
        while credit >= 1 and not stop.is_set():
            n = min(int(credit), batch_max)
            credit -= n
            await create(session, n)


async def resolve(session, claims):
    """Reports runs as completed, again if it is not known whether that was done."""
    global completed
    arguments = [claim[0] for claim in claims], [claim[1] for claim in claims]
    while await session.rows(RESOLVE, *arguments) is None:
        if stop.is_set():
            return
    aged("end_to_end", claims)
    completed += len(claims)


async def each(claims):
    """A worker of the plain shape works on its batch alone."""
    await asyncio.sleep(work * len(claims))


async def behind(handlers, claims):
    async def handle():
        async with handlers:
            await asyncio.sleep(work)

    await asyncio.gather(*(handle() for _ in claims))


async def consume(name, tasks, handle):
    session = Session()
    while not stop.is_set():
        claims = await session.rows(CLAIM, QUEUE, f"{instance}-{name}", tasks)
        if claims:
            aged("claim", claims)
            await handle(claims)
            await resolve(session, claims)


def consumers():
    if os.environ.get("TQ_SHAPE") != "ahead":
        return [consume(i, batch, each) for i in range(workers)]
    handlers = asyncio.Semaphore(workers)
    return [consume(i, 200, lambda claims: behind(handlers, claims)) for i in range(2)]


async def watch_depth():
    global depth
    session = Session()
    while not stop.is_set():
        depth = await pending(session) or 0
        await asyncio.sleep(0.25)


def percentiles(name):
    since = time.monotonic() - WINDOW
    values = sorted(value for at, value in latencies[name] if at >= since) or [0.0]
    return {f"{name}_p{p}_ms": values[round(p / 100 * (len(values) - 1))] for p in (50, 95, 99)}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def emit(record):
    print(json.dumps({**record, "system": system, "instance_id": instance}), flush=True)


async def sample():
    """Samples on the whole seconds that all systems use."""
    last = created, completed
    while not stop.is_set():
        await asyncio.sleep(sample_every - time.time() % sample_every)
        latency = {k: v for name in latencies for k, v in percentiles(name).items()}
        latency.update({k.replace("claim", "subscriber"): v for k, v in latency.items() if "claim" in k})
        rates = {
            "enqueue_rate": (created - last[0]) / sample_every,
            "completion_rate": (completed - last[1]) / sample_every,
        }
        # What is true of the whole system is said by one of its instances.
        state = {"queue_depth": depth, "producer_target_rate": rate_now()} if instance == 0 else {}
        last, t = (created, completed), now()
        for values, window in ((latency, WINDOW), (rates, sample_every), (state, 0)):
            for metric, value in values.items():
                emit(
                    {
                        "t": t,
                        "kind": "adapter",
                        "subject_kind": "adapter",
                        "subject": "",
                        "metric": metric,
                        "value": value,
                        "window_s": window,
                    }
                )


async def describe():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapter.json")) as file:
        manifest = json.load(file)
    version = "SELECT extversion FROM pg_extension WHERE extname = 'tq'"
    version = (await Session().rows(version))[0][0]
    emit(
        {
            "kind": "descriptor",
            "event_tables": manifest["event_tables"],
            "extensions": manifest["extensions"],
            "version": version,
            "schema_version": version,
            "db_name": url.rsplit("/", 1)[-1],
            "started_at": now(),
        }
    )


async def main():
    loop = asyncio.get_running_loop()
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number_of_signal, stop.set)
    await describe()
    parts = [produce_to_depth() if to_depth else produce_at_rate(), watch_depth(), sample(), *consumers()]
    tasks = [asyncio.create_task(part) for part in parts]
    await asyncio.wait([asyncio.create_task(stop.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    # A claim returns after a second at most, and what it has is worked on and reported.
    done, late = await asyncio.wait(tasks, timeout=4)
    for task in late:
        task.cancel()
    for task in done:
        task.result()


if __name__ == "__main__":
    asyncio.run(main())
