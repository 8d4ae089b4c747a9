"""Helpers for tests of code that enqueues tasks, and of its handlers.

All is done in one transaction, which is rolled back at the end of the test.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, NamedTuple, Optional

from .calls import call_on
from .query import Interval, Steps, ado, do, interval_of, is_async, query
from .run import Run

CLAIM = """SELECT c.task_id, c.run_id, c.payload, c.credentials, c.task, c.status,
    'infinity'::float8 AS lasts FROM tq.claim_work(%s, 'test', 'test', 1, definition => true) c"""
# Pages of a thousand, each after the last row of the one before; the newest task is found first.
ENQUEUED = """WITH RECURSIVE f AS (
        SELECT 1000::bigint AS n, NULL AS page, NULL::tq.slugid AS task_id, NULL AS state
        UNION ALL SELECT f.n + t.n, t.page, t.task_id, t.state FROM f, LATERAL (
            SELECT row_number() OVER () AS n, * FROM tq.find_tasks(%s::jsonb, f.page, 1000, '1 hour')) t WHERE f.n %% 1000 = 0)
    SELECT task_id, state, tq.task(task_id) AS task FROM f WHERE task_id IS NOT NULL ORDER BY n DESC"""
ADVANCE = """SELECT set_config('tq.clock_offset', round(extract(epoch FROM %s::interval
    + coalesce(nullif(current_setting('tq.clock_offset'), ''), '0')::interval)) || ' s', true)"""

Handler = Callable[[Any, Any], Any]


class Drained(NamedTuple):
    """What became of a task."""

    task_id: str
    payload: Any
    state: str
    result: Any
    error: Optional[Exception]


class Enqueued(NamedTuple):
    """A task that is not resolved."""

    task_id: str
    state: str
    name: str
    payload: Any
    priority: str
    tags: Mapping[str, str]
    task: Mapping[str, Any]


def nothing(payload: Any, ctx: Any) -> None:
    """A handler that does nothing."""


def has(actual: Any, expected: Any) -> bool:
    """Return whether a dictionary has the keys that are expected, at any depth."""
    if not isinstance(expected, Mapping):
        return bool(actual == expected)
    return isinstance(actual, Mapping) and all(
        key in actual and has(actual[key], one) for key, one in expected.items()
    )


class Sandbox:
    """One transaction of a connection, which the end of the block rolls back.

    Its methods return what they say, or a coroutine of it, as the connection is.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.call: Any = call_on(connection)
        self._do = ado if is_async(connection) else do

    def __enter__(self) -> Any:
        if self.connection.autocommit:
            self.connection.execute("BEGIN")
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.rollback()

    async def __aenter__(self) -> Any:
        if self.connection.autocommit:
            await self.connection.execute("BEGIN")
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.connection.rollback()

    def drain(self, queue: str, handler: Handler = nothing, *, limit: int = 10000) -> Any:
        """Work on all that is due in a queue, and on what comes of it."""
        return self._do(self._drain(queue, handler, limit))

    def advance(self, interval: Interval) -> Any:
        """Let so much time pass for tq in this transaction: delays, retries, deadlines."""
        return self._do(self._advance(interval))

    def enqueued(self, queue: str) -> Any:
        """Return the unresolved tasks of a queue, the first created first."""
        return self._do(self._enqueued(queue))

    def assert_enqueued(self, queue: str, *, count: Optional[int] = None, **expected: Any) -> Any:
        """Fail unless a queue has such a task; of payload and tags the keys that are given."""
        return self._do(self._assert(queue, expected, count))

    def refute_enqueued(self, queue: str, **expected: Any) -> Any:
        """Fail if a queue has such a task."""
        return self._do(self._assert(queue, expected, 0))

    # ---- the steps of both kinds of connection ----

    def _query(self, text: str, *values: Any) -> Steps:
        return query(self.connection, text, values)

    def _work(self, row: Mapping[str, Any], queue: str, handler: Handler) -> Steps:
        """Do a run; what a handler that raises has done in the transaction is undone."""
        run = Run(row, queue, 0.0)
        error: Optional[Exception] = None
        yield from self._query("SAVEPOINT tq_run")
        try:
            run.report = run.completed((yield handler(run.payload, run.context)))
        except Exception as fault:
            error = fault
        if error:
            yield from self._query("ROLLBACK TO tq_run")
            run.report = run.failed(error)
        if getattr(error, "reason", None) == "defer":
            yield self.call.defer_task(*run.key, after=getattr(error, "retry_delay"))
        else:
            yield self.call.resolve(reports=[json.loads(run.report or "")])
        state = (yield self.call.status(run.task_id))["state"]
        result = (yield self.call.result(run.task_id)) if state == "completed" else None
        return Drained(run.task_id, run.payload, state, result, error)

    def _drain(self, queue: str, handler: Handler, limit: int) -> Steps:
        done: list[Drained] = []
        while True:
            rows = yield from self._query(CLAIM, queue)
            if not rows:
                return done
            if len(done) >= limit:
                raise AssertionError(
                    f"{queue} has more than {limit} tasks: does a handler enqueue its own again?"
                )
            done.append((yield from self._work(rows[0], queue, handler)))

    def _advance(self, interval: Interval) -> Steps:
        yield from self._query(ADVANCE, interval_of(interval))
        yield self.call.upkeep()

    def _enqueued(self, queue: str) -> Steps:
        wanted = {"queue": queue, "state": ["unscheduled", "pending", "running"]}
        rows = yield from self._query(ENQUEUED, json.dumps(wanted))
        return [
            Enqueued(
                row["task_id"],
                row["state"],
                row["task"]["metadata"]["name"],
                *(row["task"].get(key) for key in ("payload", "priority", "tags")),
                row["task"],
            )
            for row in rows
        ]

    def _assert(self, queue: str, expected: Mapping[str, Any], count: Optional[int]) -> Steps:
        everything = yield from self._enqueued(queue)
        found = [one for one in everything if has(one._asdict(), expected)]
        if len(found) != count if count is not None else not found:
            others = "".join(f"\n  {one.state} {json.dumps(one.payload)}" for one in everything)
            raise AssertionError(
                f"{queue} has {len(found)} tasks with {expected}, not {'one' if count is None else count}; all:{others}"
            )
        return found[0] if found else None


AsyncSandbox = Sandbox
