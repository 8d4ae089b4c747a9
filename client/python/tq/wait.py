"""Waits for the end of a task."""

from __future__ import annotations

from typing import Any, Awaitable, NamedTuple, overload

from .calls import call_on
from .query import UNSET, AnyDatabase, AsyncDatabase, Database, Interval, ado, do, is_async, Steps


class Ended(NamedTuple):
    """The state of a task, unresolved when the time was over, and its result if it has one."""

    state: str
    result: Any


def steps(calls: Any, task: str, timeout: Interval) -> Steps:
    state = (yield calls.wait_for_task(task, wait=timeout))["result"]
    return Ended(state, (yield calls.result(task)) if state == "completed" else None)


@overload
def wait_for(db: Database, task: str, timeout: Interval = UNSET) -> Ended:
    ...


@overload
def wait_for(db: AsyncDatabase, task: str, timeout: Interval = UNSET) -> Awaitable[Ended]:
    ...


def wait_for(db: AnyDatabase, task: str, timeout: Interval = UNSET) -> Any:
    """Wait until a task is resolved, on a connection that it has until then."""
    return (ado if is_async(db) else do)(steps(call_on(db), task, timeout))
