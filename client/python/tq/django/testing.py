"""For tests: runs what is due in this process, by the connection and in the transaction of the test."""

from __future__ import annotations

import math
from typing import Any, Iterable

from django.db import transaction

from tq import Outcome
from tq.query import interval_of
from tq.run import Run

from .backend import Backend, json_of
from .compat import TaskResult, task_backends
from .work import work_of

CLAIM = """SELECT task_id::text, task_queue_id, run_id, payload, credentials, task, status
    FROM tq.claim_work(%s::text[], 'django', 'test', definition => true)"""
PENDING = """SELECT DISTINCT task_queue_id
    FROM tq.find_tasks(jsonb_build_object('queue', %s::text, 'state', 'pending'), max => 1000, budget => '10 s')
    WHERE task_id IS NOT NULL"""
ADVANCE = """SELECT set_config('tq.clock_offset', round(extract(epoch FROM %s::interval
    + coalesce(nullif(current_setting('tq.clock_offset'), ''), '0')::interval)) || ' s', true)"""


def drain(
    queue_names: Iterable[str] = (), *, backend: str = "default", limit: int = 10000
) -> list[TaskResult]:
    """Runs all tasks that are due, and those that come of them; returns their results.

    A task that fails leaves nothing in the database but its error."""
    tasks: Backend = task_backends[backend]
    done: list[TaskResult] = []
    with tasks.connection.cursor() as cursor:
        while (run := _claim(tasks, cursor, queue_names or tasks.queues)) is not None:
            if len(done) >= limit:
                raise RuntimeError(f"there are more than {limit} tasks: does one enqueue itself?")
            _work(tasks, cursor, run)
            done.append(tasks.get_result(run.task_id))
    return done


def _claim(tasks: Backend, cursor: Any, queue_names: Iterable[str]) -> Run | None:
    queues = [tasks.queue_of(name) for name in queue_names]
    if not queues:
        cursor.execute(PENDING, [tasks.prefix + "*"])
        queues = [name for name, in cursor.fetchall()]
    if not queues:
        return None
    cursor.execute(CLAIM, [queues])
    row = cursor.fetchone()
    if row is None:
        return None
    names = ("payload", "credentials", "task", "status")
    task_id, queue, run_id, *values = row
    given = {"task_id": task_id, "run_id": run_id, "lasts": math.inf}
    return Run({**given, **dict(zip(names, map(json_of, values)))}, queue, 0)


def _work(tasks: Backend, cursor: Any, run: Run) -> None:
    try:
        with transaction.atomic(using=tasks.database):
            report = run.completed(work_of(tasks)(run.payload, run.context))
    except Outcome as error:
        report = run.failed(error)
        if error.reason == "defer":
            given = [run.task_id, run.run_id, interval_of(error.retry_delay)]
            cursor.execute("SELECT FROM tq.defer_task(%s, %s, %s::interval)", given)
            return
    cursor.execute("SELECT FROM tq.resolve(%s::jsonb)", [f"[{report}]"])


def advance(interval: Any, *, backend: str = "default") -> None:
    """Lets so much time pass for tq in this transaction: run_after, delays of retries, deadlines."""
    with task_backends[backend].connection.cursor() as cursor:
        cursor.execute(ADVANCE, [interval_of(interval)])
        cursor.execute("SELECT FROM tq.upkeep()")
