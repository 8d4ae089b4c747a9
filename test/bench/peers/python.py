"""python.py PEER N: tasks a second of a worker in Python, ten at a time, that do nothing.

PEER is tq, by tq.AsyncWorker, or celery-POOL-CONCURRENCY, by Celery with its Redis transport:
results ignored, a Redis of its own that keeps nothing on disk.  N tasks are there before the
worker begins; the time is that from the first task to the last.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time

peer = sys.argv[1]
n = int(sys.argv[2])
payload = {"command": "x" * 185}


async def tq_worker():
    import psycopg

    import tq

    seen, began, done = 0, 0.0, asyncio.Event()

    async def work(payload, ctx):
        nonlocal seen, began
        seen += 1
        if seen == 1:
            began = time.monotonic()
        if seen == n:
            done.set()

    async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
        for i in range(0, n, 1000):
            await tq.enqueue_many(connection, "bench/python", [payload] * min(1000, n - i))
        async with tq.AsyncWorker("", "bench/python", work, concurrency=10):
            await done.wait()
            # The last reports are part of the work.
            unresolved = (
                "SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'bench/python'"
            )
            unresolved += " AND state IN ('pending', 'running')"
            while (await (await connection.execute(unresolved)).fetchone())[0]:
                await asyncio.sleep(0.01)
            return n / (time.monotonic() - began)


def celery_app():
    import celery

    app = celery.Celery("bench", broker=os.environ["BENCH_BROKER"])
    app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)

    @app.task(name="bench", ignore_result=True)
    def bench(payload):
        pass

    return app


def celery_worker(pool, concurrency):
    import redis

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/redis.sock"
        os.environ["BENCH_BROKER"] = f"redis+socket://{path}"
        server = subprocess.Popen(
            [
                *("redis-server", "--port", "0", "--unixsocket", path),
                *("--save", "", "--dir", folder),
            ],
            stdout=subprocess.DEVNULL,
        )
        worker = None
        try:
            while not os.path.exists(path):
                time.sleep(0.05)
            client = redis.Redis(unix_socket_path=path)
            app = celery_app()
            with app.producer_or_acquire() as producer:
                for _ in range(n):
                    app.tasks["bench"].apply_async([payload], producer=producer)
            worker = subprocess.Popen(
                [
                    *(sys.executable, __file__, "worker", "0", "--pool", pool),
                    *("--concurrency", concurrency, "--loglevel", "ERROR"),
                    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while client.llen("celery") == n:
                time.sleep(0.001)
            began = time.monotonic()
            while client.llen("celery") or client.hlen("unacked"):
                time.sleep(0.01)
            return n / (time.monotonic() - began)
        finally:
            for process in (worker, server):
                if process:
                    process.terminate()
                    process.wait()


if peer == "worker":
    celery_app().worker_main(["worker", *sys.argv[3:]])
elif peer == "tq":
    print(round(asyncio.run(tq_worker())))
else:
    print(round(celery_worker(*peer.split("-")[1:])))
