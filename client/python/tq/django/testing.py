"""For tests: runs what is due in this process, by the connection and in the transaction of the test."""

from __future__ import annotations

import json
from typing import Any, Iterable

from django.db import transaction

from .backend import Backend, json_of
from .compat import TaskResult, task_backends

CLAIM = """SELECT task_id::text, run_id, status, task, credentials
    FROM tq.claim_work(%s::text[], 'django', 'test', definition => true)"""
PENDING = """SELECT DISTINCT task_queue_id FROM tq.find_tasks(jsonb_build_object('queue', %s::text, 'state', 'pending'), max => 1000, budget => '10 s')
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
        while True:
            queues = [tasks.queue_of(name) for name in queue_names or tasks.queues]
            if not queues:
                cursor.execute(PENDING, [tasks.prefix + "*"])
                queues = [name for name, in cursor.fetchall()]
            if queues:
                cursor.execute(CLAIM, [queues])
            row = cursor.fetchone() if queues else None
            if row is None:
                return done
            if len(done) >= limit:
                raise RuntimeError(
                    f"there are more than {limit} tasks: does a task enqueue itself?"
                )
            done.append(_run(tasks, cursor, *row))


def _run(tasks: Backend, cursor: Any, task_id: str, run_id: int, *claimed: Any) -> TaskResult:
    status, task, credentials = map(json_of, claimed)
    result = tasks.result_of(status, task)
    report = {"taskId": task_id, "runId": run_id}
    if credentials:
        report["credentials"] = credentials
    try:
        with transaction.atomic(using=tasks.database):
            report["result"] = tasks.run(result)
    except (Exception, SystemExit) as error:
        message, details = tasks.failure_of(error)
        report.update(reason="failed", errorMessage=message, error=details)
    cursor.execute("SELECT FROM tq.resolve(%s::jsonb)", [json.dumps([report])])
    return tasks.get_result(task_id)


def advance(interval: object, *, backend: str = "default") -> None:
    """Lets so much time pass for tq in this transaction: run_after, delays of retries, deadlines."""
    with task_backends[backend].connection.cursor() as cursor:
        cursor.execute(ADVANCE, [interval])
        cursor.execute("SELECT FROM tq.upkeep()")
