"""typed.py: what mypy --strict must accept, and refuse where a comment ignores its error."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg

import tq
from tq.testing import Sandbox

app = tq.App()


@app.task("shop/mail", retries=3)
def mail(to: str, number: int = 1) -> str:
    return to


@app.task("shop/page", pass_context=True)
async def page(ctx: tq.Context, name: str) -> None:
    ctx.progress(1, 2, name)


def calls(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    task: str = tq.enqueue(conn, "shop/mail", {"to": "ann"}, priority="high", delay="5 min")
    tasks: list[str] = tq.enqueue_many(conn, "shop/mail", [1, "two", None], run_at=datetime.now())
    tq.enqueue(conn, "shop/mail", priority="soon")  # type: ignore[call-overload]
    tq.enqueue(conn, "shop/mail", object())  # type: ignore[call-overload]
    tq.enqueue(conn, "shop/mail", retry="3")  # type: ignore[call-overload]
    tq.enqueue(conn, 7)  # type: ignore[call-overload]
    tq.call(conn).cancel_task(7)  # type: ignore[arg-type]
    tq.call(conn).cancel_task()  # type: ignore[call-arg]
    row = tq.call(conn).claim_work(task_queue_id="shop/mail", wait=timedelta(seconds=5))[0]
    run: int = row["run_id"]
    row["no"]  # type: ignore[typeddict-item]
    print(task, tasks, run, tq.wait_for(conn, task, 10).state)
    mail.enqueue(conn, "ann", number=2)
    mail.enqueue(conn, 7)  # type: ignore[arg-type]
    mail.using(delay=60).enqueue(conn, nobody="ann")  # type: ignore[call-arg]
    page.enqueue(conn, name="first")
    page.enqueue(conn, 7)  # type: ignore[arg-type]
    with Sandbox(conn) as box:
        state: str = box.drain("shop/mail")[0].state
        print(state)


async def acalls(conn: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    task: str = await tq.enqueue(conn, "shop/mail", {"to": "ann"})
    await mail.aenqueue(conn, "ann")
    mail.enqueue(conn, "ann")  # type: ignore[arg-type]
    await tq.call(conn).cancel_task(task)
    async with app.aworker(concurrency=2) as worker:
        await worker.stop(timeout="5 min")
