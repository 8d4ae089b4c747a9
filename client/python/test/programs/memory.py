"""memory.py QUEUE N...: works off so many tasks, time after time; prints blocks in use after each."""

import asyncio
import gc
import sys

import psycopg

import tq

UNRESOLVED = """SELECT FROM tq.task_overview
    WHERE task_queue_id = %s AND state IN ('pending', 'running') LIMIT 1"""
left = 0
done = None


async def work(payload, ctx):
    global left
    left -= 1
    if left == 0:
        done.set()


async def main(queue, *counts):
    global left, done
    connection = await psycopg.AsyncConnection.connect(autocommit=True)
    async with tq.AsyncWorker("", queue, work):
        for n in map(int, counts):
            left, done = n, asyncio.Event()
            for i in range(0, n, 1000):
                await tq.enqueue_many(connection, queue, list(range(i, i + 1000)))
            await done.wait()
            while await (await connection.execute(UNRESOLVED, [queue])).fetchone():
                await asyncio.sleep(0.02)
            gc.collect()
            print(sys.getallocatedblocks(), flush=True)


asyncio.run(main(*sys.argv[1:]))
