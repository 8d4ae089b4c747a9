"""Claims tasks of a queue, has a handler work on them, and reports.

The main connection claims, and waits in the database where there is nothing to do.  What has
ended is reported with the next claim.  While the main connection waits, and when a run takes
longer than a second, a second connection reports, reclaims, and listens for what is taken
from the worker; it is closed when nothing runs for a while.

All this is done in a loop of asyncio.  A handler that is a coroutine runs in it; one that
blocks has a thread of its own.  Worker is the same for programs without asyncio.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import logging
import math
import os
import re
import signal
import socket
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable, iscoroutinefunction
from time import monotonic
from typing import Any, Awaitable, Callable, Coroutine, Mapping, Optional, Sequence, TypeVar, Union

import psycopg
from psycopg import AsyncConnection

from .connection import Kept, Lost, Source, happens
from .errors import Outcome
from .query import UNSET, Interval, interval_of, seconds_of
from .run import Context, Run, text_of
from .threads import InThread

SIGNALS = (signal.SIGTERM, signal.SIGINT)
WAIT = "60 s"  # of a claim that finds nothing
LINGER = 0.005  # s in which what has just begun may end before a claim waits
AHEAD = 0.05  # s of work that are claimed ahead
LONG = 1.0  # s after which a run is reclaimed and listened for
TICK = 0.2  # s
POOLED = 5.0  # s between reclaims where notifications do not come
IDLE = 10.0  # s that the second connection is kept
CANCEL = 5.0  # s that a claim which is canceled may take
LAST_REPORTS = 10.0  # s for reports at the end, if there is no server
# What ends a statement, which may be repeated.
AGAIN = (Lost, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
LASTS = "extract(epoch FROM c.taken_until - clock_timestamp())::float8 AS lasts"
COLUMNS = f"c.task_id, c.run_id, c.payload, c.credentials, c.task, c.status, {LASTS}"
CLAIM = f"""SELECT 'claimed' AS outcome, {COLUMNS} FROM tq.claim_work(%s::text, %s, %s, %s,
    wait => %s, claim_for => %s::interval, definition => %s) c"""
CLAIM_SEVERAL = CLAIM.replace("%s::text", "%s::text[]").replace(
    COLUMNS, f"{COLUMNS}, task_queue_id"
)
BOTH = f"""SELECT c.outcome, {COLUMNS} FROM tq.resolve_and_claim(%s::jsonb, %s, %s, %s, %s,
    claim_for => %s::interval, definition => %s) c"""
RESOLVE = "SELECT outcome, task_id, run_id FROM tq.resolve(%s::jsonb)"
RECLAIM = f"""SELECT {LASTS} FROM tq.reclaim_task(%s, %s, claim_for => %s::interval,
    credentials => %s::jsonb) c"""
DEFER = "SELECT FROM tq.defer_task(%s, %s, %s::interval, credentials => %s::jsonb)"
PROGRESS = """SELECT FROM tq.report_progress(%s, %s, %s::bigint, %s::bigint, %s,
    credentials => %s::jsonb)"""
# The timeouts that a role has are for others; through a pooler nothing is set, and no channel is there.
BEGIN = """SELECT CASE WHEN own THEN quote_ident(tq.worker_channel(%s, %s)) END AS channel,
    (SELECT count(set_config(name, '0', false))
     FROM unnest('{statement_timeout,transaction_timeout,idle_session_timeout}'::text[]) AS name
     WHERE own AND current_setting(name, true) <> '0')
FROM (SELECT pg_backend_pid() = %s AS own) AS session"""

Handler = Callable[[Any, Context], Any]

T = TypeVar("T")

log = logging.getLogger("tq")
numbers = itertools.count(1)


class AsyncWorker:
    """A worker of one queue, or of a list of them, the first one first."""

    def __init__(
        self,
        source: Source,
        queue: Union[str, Sequence[str]],
        handler: Handler,
        *,
        concurrency: int = 10,
        batch: int = 500,
        group: str = "python",
        id: Optional[str] = None,
        claim_for: Optional[Interval] = None,
        definition: bool = False,
        stop_timeout: Interval = 30,
        grace: Interval = 5,
    ) -> None:
        if concurrency < 1 or batch < 0:
            raise ValueError("concurrency is a number from 1, and batch from 0")
        name = f"{socket.gethostname()}-{os.getpid()}-{next(numbers)}"
        self.id = id or re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)[-128:]
        self._source, self._handler, self._group = source, handler, group
        self._queue = queue if isinstance(queue, str) else list(queue)
        self._concurrency, self._batch = concurrency, batch
        self._claim_for = interval_of(claim_for)
        self._last = [self._claim_for, definition]
        self._stop_timeout, self._grace = seconds_of(stop_timeout), seconds_of(grace)
        self._threads = (
            None if iscoroutinefunction(handler) else ThreadPoolExecutor(concurrency, "tq")
        )
        self._all: dict[tuple[str, int], Run] = {}
        self._ready: deque[Run] = deque()  # claimed, not begun
        self._running: set[Run] = set()
        self._ended: list[Run] = []  # to be reported
        self._mean = math.inf  # s that a run takes
        self._waits = False  # whether the main connection is in a claim that waits, or ended
        self._claimed = False  # whether a claim has succeeded
        #: Whether functions go on that were given back: Python waits for their threads at its end.
        self.busy = self._pooled = self._stopping = False
        self._side: Optional[Kept] = None
        self._reporting: Optional[asyncio.Task[None]] = None
        self._ticking: Optional[asyncio.Task[None]] = None
        self._stopped: Optional[asyncio.Task[None]] = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # ---- the life of a worker ----

    async def __aenter__(self) -> AsyncWorker:
        self._loop = asyncio.get_running_loop()
        self._change = asyncio.Event()
        self._main = Kept(self._source, "tq-worker-main", self._begin)
        self._claiming = self._loop.create_task(self._claim_until_stopped())
        self._done = self._keep(self._end())
        return self

    async def __aexit__(self, kind: object, *error: object) -> None:
        await self.stop()
        if kind is None:
            await self.wait()

    async def _end(self) -> None:
        await asyncio.wait([self._claiming])
        error = None if self._claiming.cancelled() else self._claiming.exception()
        await (self.stop(timeout=0) if error else self.stop())
        if error:
            raise error

    async def wait(self) -> None:
        """Wait until the worker has stopped; raise the error for which it cannot work."""
        await asyncio.shield(self._done)

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT."""
        async with self:
            self.take_signals()
            await self.wait()

    def take_signals(self) -> None:
        """Stop at SIGTERM or SIGINT; the second one is again what it was."""
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._signaled)

    def _signaled(self) -> None:
        for number in SIGNALS:
            self._loop.remove_signal_handler(number)
        self._keep(self.stop())

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have a coroutine done, and log its error: the loop alone would forget both."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, Lost):
            log.error("%s: %s", type(error).__name__, error)

    # ---- the loop of the main connection ----

    async def _claim_until_stopped(self) -> None:
        pause = 0.0
        while not self._stopping:
            try:
                if await self._turn():
                    pause = 0.0
            except AGAIN:
                pass  # it is made again; a wait was canceled
            except Exception as error:
                if not self._claimed:
                    raise
                log.error("no task can be claimed: %s", error)
                pause = min(max(0.1, 2 * pause), 30.0)
                await self._changed(pause)

    async def _turn(self) -> bool:
        """Report and claim once, or wait for something to do; return whether it has claimed."""
        room = self._room()
        if self._ended:
            await self._report(self._main, room)
            return room > 0
        if room == 0:
            return await self._changed()
        if self._running:
            await self._changed(LINGER)
            if self._ended or self._stopping:
                return False
        self._waits = True
        try:
            self._take(await self._claim(self._room() or 1, WAIT))
        finally:
            self._waits = False
        return True

    def _claim(self, runs: int, wait: str = "0") -> Awaitable[list[dict[str, Any]]]:
        text = CLAIM if isinstance(self._queue, str) else CLAIM_SEVERAL
        values = [self._queue, self._group, self.id, runs, wait, *self._last]
        return self._main.query(text, values, once=True)

    def _room(self) -> int:
        """Return how many runs to claim: what is running, and AHEAD of its time."""
        ahead = min(self._batch, int(self._concurrency * AHEAD / max(self._mean, 1e-6)))
        capacity = min(self._concurrency + ahead, 1000)
        used = len(self._ready) + len(self._running)
        if self._stopping or (self._ready and used > capacity / 2):
            return 0
        return max(capacity - used, 0)

    def _take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        now = monotonic()
        self._claimed = True
        queue = self._queue if isinstance(self._queue, str) else ""
        for row in rows:
            if row["outcome"] == "claimed":
                run = Run(row, queue, now, self._show_soon)
                self._all[run.key] = run
                self._ready.append(run)
        self._fill()
        if self._all and not self._ticking:
            self._ticking = self._loop.create_task(self._tick())

    async def _changed(self, timeout: Optional[float] = None) -> bool:
        """Wait until something has changed, or for a time."""
        self._change.clear()
        await happens(self._change, timeout)
        return False

    # ---- runs ----

    def _fill(self) -> None:
        while len(self._running) < self._concurrency and self._ready:
            run = self._ready.popleft()
            self._running.add(run)
            self._keep(self._perform(run))

    async def _perform(self, run: Run) -> None:
        began = monotonic()
        try:
            run.report = run.completed(await self._work(run))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if not run.abandoned:
                await self._fail(run, error)
        if run.showing:
            await run.showing
        if run.progress and not run.abandoned:
            await self._show(run)
        took = monotonic() - began
        self._mean = took if self._mean == math.inf else 0.9 * self._mean + 0.1 * took
        self._running.discard(run)
        self._finish(run)
        self._fill()

    async def _work(self, run: Run) -> Any:
        run.context.check()
        if not self._threads:
            return await self._cancelable(run, self._handler(run.payload, run.context))
        call = contextvars.copy_context().run
        result: Any = await self._loop.run_in_executor(
            self._threads, lambda: call(self._handler, run.payload, run.context)
        )
        return await self._cancelable(run, result) if isawaitable(result) else result

    async def _cancelable(self, run: Run, work: Awaitable[Any]) -> Any:
        run.working = asyncio.current_task()
        try:
            return await work
        finally:
            run.working = None

    async def _fail(self, run: Run, error: BaseException) -> None:
        run.report = run.failed(error)
        if not (isinstance(error, Outcome) and error.reason == "defer") or run.lost:
            return
        try:
            values = [*run.key, interval_of(error.retry_delay), run.credentials_json]
            await self._second().query(DEFER, values)
            run.lost = "deferred"
        except Exception as fault:
            run.report = run.refused(fault)

    def _finish(self, run: Run) -> None:
        """Have a run reported, unless its claim is lost."""
        if run.abandoned:
            return
        if run.lost and run.lost != "worker-shutdown":
            self._all.pop(run.key, None)
        else:
            self._ended.append(run)
        self._change.set()
        if self._waits:
            self._flush()

    def _lose(self, run: Run, reason: str) -> None:
        run.lose(reason)
        if run in self._ready:
            self._ready.remove(run)
            self._all.pop(run.key, None)
        log.debug("a run is taken: %s (task %s, run %s)", reason, *run.key)

    # ---- reports ----

    async def _report(self, connection: Kept, room: int = 0) -> None:
        """Report what has ended, and claim so many; what is refused is reported alone."""
        runs, self._ended = self._ended[:1000], self._ended[1000:]
        reports = f"[{','.join(run.report or '' for run in runs)}]"
        both = room > 0 and isinstance(self._queue, str)
        try:
            if both:
                values = [reports, self._queue, self._group, self.id, room, *self._last]
                rows = await connection.query(BOTH, values, once=True)
            else:
                rows = await connection.query(RESOLVE, [reports], once=True)
        except AGAIN:
            self._ended[:0] = runs
            raise
        except psycopg.Error:
            for run in runs:
                await self._report_alone(connection, run)
            return
        for run in runs:
            self._all.pop(run.key, None)
        if both:
            self._take(rows)
        elif room > 0:
            self._take(await self._claim(room))

    async def _report_alone(self, connection: Kept, run: Run) -> None:
        try:
            await connection.query(RESOLVE, [f"[{run.report}]"])
        except psycopg.Error as error:
            log.warning("a report is refused: %s (task %s, run %s)", error, *run.key)
            try:
                await connection.query(RESOLVE, [f"[{run.refused(error)}]"])
            except psycopg.Error as fault:
                log.error("%s (task %s, run %s)", fault, *run.key)
        self._all.pop(run.key, None)

    def _due(self) -> bool:
        return bool(self._waits and self._ended and not (self._side and self._side.closed))

    def _flush(self) -> None:
        """Report on the second connection while the main one waits."""
        if not self._reporting:
            self._reporting = self._keep(self._report_all())

    async def _report_all(self) -> None:
        try:
            while self._due():
                await self._report(self._second())
        except AGAIN as error:
            log.debug("%s", error)
        finally:
            self._reporting = None
        if self._due():
            self._flush()

    # ---- progress ----

    def _show_soon(self, run: Run) -> None:
        """Is called by the thread of the handler."""
        self._loop.call_soon_threadsafe(self._show_now, run)

    def _show_now(self, run: Run) -> None:
        if not run.showing and run in self._running and monotonic() > run.shown + LONG:
            run.showing = self._loop.create_task(self._show(run))

    async def _show(self, run: Run) -> None:
        progress, run.progress = run.progress, None
        run.shown = monotonic()
        if progress and not run.lost:
            values = [*run.key, *progress, run.credentials_json]
            try:
                await self._second().query(PROGRESS, values)
            except (psycopg.Error, Lost) as error:
                log.warning("progress is refused: %s (task %s, run %s)", error, *run.key)
        run.showing = None

    # ---- claims are kept ----

    def _second(self) -> Kept:
        if not self._side:
            self._side = Kept(self._source, "tq-worker-side", self._listen, self._notified)
        return self._side

    async def _begin(self, connection: AsyncConnection[Any]) -> Any:
        values = [self._group, self.id, connection.info.backend_pid]
        [row] = await (await connection.execute(BEGIN, values)).fetchall()
        return row["channel"]

    async def _listen(self, connection: AsyncConnection[Any]) -> None:
        """Listen, unless a pooler is between."""
        channel = await self._begin(connection)
        if not channel and not self._pooled:
            log.warning("a pooler is between: a cancel is seen after 5 seconds at most")
        self._pooled = not channel
        if channel:
            connection.add_notify_handler(lambda found: self._notified(found.payload))
            await connection.execute(f"LISTEN {channel}")
        for run in self._all.values():
            run.reclaim_at = 0.0  # what was taken before

    def _notified(self, payload: str) -> None:
        """Look whether the run is taken: any role may send a notification, and say what it likes."""
        try:
            said = json.loads(payload)
            run = self._all.get((said["taskId"], said["runId"]))
        except (ValueError, TypeError, KeyError):
            return
        if run and not run.report and not run.lost:
            run.said = text_of(said.get("reason", ""))
            if not run.reclaiming:
                self._keep(self._reclaim(run))

    async def _tick(self) -> None:
        idle_since = monotonic()
        while self._all or (self._side and monotonic() < idle_since + IDLE):
            await asyncio.sleep(TICK)
            now = monotonic()
            if self._all:
                idle_since = now
            for run in list(self._all.values()):
                if not run.report and not run.lost:
                    self._look(run, now)
        self._ticking = None
        if self._side and not self._stopping:
            side, self._side = self._side, None
            await side.close()

    def _look(self, run: Run, now: float) -> None:
        again = run.asked + POOLED if self._pooled else math.inf
        if now > run.valid_until:
            self._lose(run, "claim-expired")
        elif not run.reclaiming and now >= min(run.reclaim_at, again):
            self._keep(self._reclaim(run))
        elif not self._side and now > run.began + LONG:
            self._keep(self._second().connection())
        if run.progress:
            self._show_now(run)

    async def _reclaim(self, run: Run) -> None:
        run.reclaiming = True
        run.asked = monotonic()
        try:
            values = [*run.key, self._claim_for, run.credentials_json]
            rows = await self._second().query(RECLAIM, values)
            run.lasts(rows[0]["lasts"], monotonic())
        except psycopg.Error as error:
            if error.sqlstate and error.sqlstate.startswith("TQ4"):
                self._lose(run, run.said or "claim-lost")
            else:
                run.reclaim_at = monotonic() + (run.valid_until - monotonic()) / 2 + LONG
        except Lost:
            pass  # the worker ends
        run.reclaiming = False

    # ---- the end ----

    async def stop(self, timeout: Interval = UNSET) -> None:
        """Claim no more; wait for what is running, then abort it, and give it back."""
        if not self._stopped:
            given = self._stop_timeout if timeout is UNSET else seconds_of(timeout)
            self._stopped = self._loop.create_task(self._stop(given))
        await asyncio.shield(self._stopped)

    async def _stop(self, timeout: float) -> None:
        self._stopping = True
        self._change.set()
        await self._stop_claiming()
        self._waits = True  # reports go their own way now
        while self._ready:
            self._give_back(self._ready.popleft())
        self._flush()
        await self._until_idle(timeout)
        for run in self._running:
            run.lose("worker-shutdown")
        await self._until_idle(self._grace)
        self.busy = bool(self._running)
        for run in self._running:
            run.abandoned = True
            self._give_back(run)
        await self._last_reports()
        if self._threads:
            self._threads.shutdown(wait=False)
        for task in (self._ticking, self._reporting):
            if task:
                task.cancel()
        if self._side:
            await self._side.close()

    async def _stop_claiming(self) -> None:
        """Cancel a claim that waits, again until it has ended: it may not have begun."""
        end = monotonic() + CANCEL
        while not self._claiming.done() and monotonic() < end:
            if not self._main.is_open:
                await self._main.close()
            elif self._waits:
                self._keep(self._main.cancel())
            await asyncio.wait([self._claiming], timeout=CANCEL / 20)
        self._claiming.cancel()
        await asyncio.wait([self._claiming], timeout=CANCEL)
        await self._main.close()

    async def _last_reports(self) -> None:
        end = monotonic() + LAST_REPORTS
        while (self._ended or self._reporting) and monotonic() < end:
            self._flush()
            if self._reporting:
                await asyncio.wait([self._reporting], timeout=end - monotonic())

    def _give_back(self, run: Run) -> None:
        run.lose("worker-shutdown")
        if run.lost == "worker-shutdown":
            run.report = run.given_back()
            self._ended.append(run)

    async def _until_idle(self, timeout: float) -> None:
        end = monotonic() + timeout
        while self._running and monotonic() < end:
            await self._changed(min(end - monotonic(), 0.1))


class Worker(InThread[AsyncWorker]):
    """A worker for programs without asyncio: its loop has a thread of its own."""

    def __init__(
        self, source: Source, queue: Union[str, Sequence[str]], handler: Handler, **options: Any
    ) -> None:
        super().__init__(AsyncWorker(source, queue, handler, **options))
        self.id = self._inner.id

    def run(self) -> None:
        """Work until SIGTERM or SIGINT; for the main thread."""
        self._main(self._inner.take_signals)
        self.wait()
