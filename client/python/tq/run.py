"""A run that a worker has: what its handler sees of it, and how it is reported."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import traceback
from typing import Any, Awaitable, Callable, Mapping, Optional, Tuple, overload

from .errors import Aborted, Outcome
from .query import UNSET, AnyDatabase, AsyncDatabase, Database, Json, either, interval_of, query

STACK = 4000  # characters of a stack that are kept
COMPLETE = """SELECT FROM tq.report_completed(%s, %s, result => %s::jsonb,
    credentials => %s::jsonb)"""


def text_of(value: Any) -> str:
    """Return a value as text, also one that cannot be made one, as the server can keep it."""
    try:
        text = str(value)
    except Exception:
        text = object.__repr__(value)
    return text.replace("\0", "").encode(errors="replace").decode()


class Context:
    """The run as its handler sees it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def task_id(self) -> str:
        return self._run.task_id

    @property
    def run_id(self) -> int:
        return self._run.run_id

    @property
    def queue(self) -> str:
        return self._run.queue

    @property
    def task(self) -> Any:
        """The definition of the task, if the worker asks for it."""
        return self._run.task

    @property
    def status(self) -> Any:
        """The status of the task, if the worker asks for it."""
        return self._run.status

    @property
    def credentials(self) -> Any:
        return self._run.credentials

    @property
    def canceled(self) -> threading.Event:
        """Set when the task is canceled, the claim is lost, or the worker ends.

        A handler of asyncio is canceled then, too.
        """
        return self._run.canceled

    @property
    def reason(self) -> Optional[str]:
        """Why it is canceled: canceled, deleted, claim-expired, worker-shutdown, …"""
        return self._run.lost

    def check(self) -> None:
        """Raise Aborted where the run is canceled: for a handler of many steps."""
        if self._run.lost:
            raise Aborted(self._run.lost)

    def progress(self, done: int, total: Optional[int] = None, message: str = "") -> None:
        """Show how far the run is; sent at most once a second."""
        numbers = (int(done), None if total is None else int(total))
        self._run.show((*numbers, text_of(message) if message else None))

    def result(self, value: Json) -> None:
        """Keep a result, for a handler that returns none."""
        self._run.result = value

    @overload
    def complete(self, db: Database, result: Json = UNSET) -> None:
        ...

    @overload
    def complete(self, db: AsyncDatabase, result: Json = UNSET) -> Awaitable[None]:
        ...

    def complete(self, db: AnyDatabase, result: Json = UNSET) -> Any:
        """Complete the run in the caller's transaction."""
        return self._run.complete(db, result)


class Run:
    """What a worker knows of a run."""

    def __init__(
        self,
        row: Mapping[str, Any],
        queue: str,
        now: float,
        shows: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.task_id: str = row["task_id"]
        self.run_id: int = row["run_id"]
        self.key = (self.task_id, self.run_id)
        self.queue: str = row.get("task_queue_id") or queue
        self.payload, self.credentials = row["payload"], row["credentials"]
        self.credentials_json = None if self.credentials is None else json.dumps(self.credentials)
        self.task, self.status = row["task"], row["status"]
        self.context = Context(self)
        self.canceled = threading.Event()
        self.result: Any = None  # of ctx.result()
        self.report: Optional[str] = None  # JSON, once it has ended
        self.completing = False  # ctx.complete() was called
        self.lost: Optional[str] = None  # why the claim is no longer ours
        self.said: Optional[str] = None  # what a notification says of it
        self.working: Optional[asyncio.Task[None]] = None  # while its handler works
        self.progress: Optional[Tuple[Any, ...]] = None  # that waits to be sent
        self.shown = -math.inf  # when the last one was sent
        self.showing: Optional[asyncio.Future[None]] = None  # while one is sent
        self.reclaiming = False
        self.asked = -math.inf  # when it was reclaimed
        self.abandoned = False  # given back while its handler goes on
        self._shows = shows
        self.began = now
        self.lasts(row["lasts"], now)

    def lasts(self, seconds: float, now: float) -> None:
        self.valid_until = now + seconds
        self.reclaim_at = now + seconds / 2

    def lose(self, reason: str) -> None:
        """Abort the work, for that reason."""
        if self.lost:
            return
        self.lost = reason
        self.canceled.set()
        if self.working:
            self.working.cancel()

    def show(self, progress: Tuple[Any, ...]) -> None:
        self.progress = progress
        self._shows(self)

    def complete(self, db: AnyDatabase, result: Json) -> Any:
        self.completing = True
        value = self.result if result is UNSET else result
        kept = None if value is None else json.dumps(value)
        values = [self.task_id, self.run_id, kept, self.credentials_json]
        return either(db, lambda connection: _nothing(query(connection, COMPLETE, values)))

    # ---- reports ----

    def _json(self, reason: Optional[str] = None, **report: Any) -> str:
        given = {"taskId": self.task_id, "runId": self.run_id, "reason": reason, **report}
        given = {key: value for key, value in given.items() if value is not None}
        if self.credentials is not None:
            given["credentials"] = self.credentials
        return json.dumps(given)

    def completed(self, value: Any) -> str:
        """Return the report of a handler that has returned a value."""
        # What its transaction has committed, this report cannot change; else it says so.
        if self.completing:
            return self._json(
                "failed", errorMessage="the transaction of ctx.complete() was not committed"
            )
        return self._json(result=self.result if value is None else value)

    def given_back(self) -> str:
        return self._json("worker-shutdown")

    def failed(self, error: BaseException) -> str:
        """Return the report of a handler that has raised."""
        if self.lost == "worker-shutdown":
            return self.given_back()
        if isinstance(error, Outcome):
            return self._outcome(error)
        stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        name = type(error).__name__
        details = {"name": name, "stack": text_of(stack[-STACK:])}
        return self._json("failed", errorMessage=f"{name}: {text_of(error)}", error=details)

    def _outcome(self, error: Outcome) -> str:
        reason = "failed" if error.reason == "defer" else error.reason
        message = text_of(error)
        try:
            delay = interval_of(error.retry_delay)
            return self._json(
                reason,
                errorMessage=message,
                error=error.details,
                retryDelay=delay,
                retriesLeft=error.retries_left,
            )
        except (TypeError, ValueError) as fault:
            return self._json(reason, errorMessage=f"{message} (its details: {fault})")

    def refused(self, error: BaseException) -> str:
        """Return the report in place of one that the database has refused."""
        return self._json("failed", errorMessage=f"the report was refused: {text_of(error)}")


def _nothing(steps: Any) -> Any:
    yield from steps
