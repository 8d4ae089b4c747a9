"""Keeps the claims of a connection, and reports how they end.

A message that is not acknowledged is a claim of a run.  A thread prolongs the claims at a
third of their time, so that a task may take as long as it likes, and is claimed again soon
after its process was killed.  It also reports what was acknowledged: as many as there are
in one call, so that an acknowledgement makes no caller wait.

Locks: `lock` is taken before the connection is used, and while it is; `held` and `reports`
are changed by single operations of dict and deque, which are atomic.  A tag is in `held`
until one caller has popped it, so a run is reported once.
"""

import json
import logging
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional

import psycopg

logger = logging.getLogger(__name__)

RESOLVE = "SELECT task_id, run_id, outcome FROM tq.resolve(%s::jsonb)"
PUT_BACK = "SELECT tq.defer_task(%s, %s, '0')"
RECLAIM = """SELECT count(tq.reclaim_task(task_id::tq.slugid, run_id, claim_for => %s))
FROM unnest(%s::text[], %s::int[]) AS held (task_id, run_id)"""

AT_ONCE = 1000


class Run(NamedTuple):
    task: str
    run: int


class Report(NamedTuple):
    """How a run has ended; without a reason, it is put back."""

    run: Run
    reason: Optional[str] = "completed"
    error: Any = None

    def as_json(self) -> Dict[str, Any]:
        error = {} if self.error is None else {"error": self.error}
        return {"taskId": self.run.task, "runId": self.run.run, "reason": self.reason, **error}


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is to blame, and not the call."""
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))


class Claims:
    """The claims of one connection of kombu."""

    def __init__(self, connect: "Callable[[], psycopg.Connection[Any]]", claim_for: float) -> None:
        self.connect, self.claim_for = connect, claim_for
        self.held: Dict[str, Run] = {}
        self.reports: Deque[Report] = deque()
        self.lock = threading.RLock()
        self.due = threading.Event()
        self.lost = threading.Event()  # a binding of this connection was lost
        self.stopped: Optional[float] = None  # when, on the monotonic clock
        self.db: "Optional[psycopg.Connection[Any]]" = None
        self.thread: Optional[threading.Thread] = None

    def hold(self, tag: str, run: Run) -> None:
        """Keeps a claim from now on."""
        self.held[tag] = run
        if self.thread is None:
            self.thread = threading.Thread(target=self._keep, name="tq-claims", daemon=True)
            self.thread.start()

    def report(self, tag: str, reason: Optional[str] = "completed", error: Any = None) -> None:
        """Ends a claim: soon, or now if it is put back."""
        run = self.held.pop(tag, None)
        if run is None:
            return
        self.reports.append(Report(run, reason, error))
        if reason is None:
            self.flush()
        else:
            self.due.set()

    def flush(self) -> None:
        """Reports what is to be reported.  A report that does not arrive is repeated."""
        with self.lock:
            while self.reports:
                batch = [self.reports.popleft() for _ in range(min(AT_ONCE, len(self.reports)))]
                try:
                    self._send([r for r in batch if r.reason], [r for r in batch if not r.reason])
                except BaseException:
                    self.reports.extendleft(reversed(batch))
                    raise

    def stop(self, put_back: bool) -> None:
        """Puts back what is held; or prolongs it no longer, and reports what still ends in time."""
        if put_back:
            for tag in list(self.held):
                run = self.held.pop(tag, None)
                if run is not None:
                    self.reports.append(Report(run, None))
        self.stopped = time.monotonic()
        self.due.set()
        if put_back:
            self.flush()

    def _send(self, ends: List[Report], backs: List[Report]) -> None:
        if ends:
            self._resolve(ends)
        for back in backs:
            try:
                self._execute(PUT_BACK, back.run)
            except psycopg.DatabaseError as error:
                if is_lost(error):
                    raise
                logger.info("A message could not be put back: %s", error)

    def _resolve(self, ends: List[Report]) -> None:
        try:
            rows = self._execute(RESOLVE, (json.dumps([end.as_json() for end in ends]),))
        except psycopg.DatabaseError as error:
            if is_lost(error):
                raise
            logger.error("A message could not be acknowledged: %s", error)
            for end in ends if len(ends) > 1 else []:
                self._resolve([end])
            return
        for task, run, outcome in rows:
            if outcome not in ("resolved", "retried", "repeated"):
                logger.warning("Message %s, delivery %s: %s", task, run, outcome)

    def _keep(self) -> None:
        """The thread: reports what there is, and prolongs claims."""
        next_time = time.monotonic() + self.claim_for / 3
        while self._has_work():
            self.due.wait(max(0.0, next_time - time.monotonic()))
            self.due.clear()
            try:
                self.flush()
                if time.monotonic() >= next_time:
                    self._prolong(dict(self.held) if self.stopped is None else {})
                    next_time = time.monotonic() + self.claim_for / 3
            except Exception as error:
                logger.warning("Claims could not be kept, trying again: %s", error)
                self._disconnect()
                time.sleep(1)
                self.due.set()
        self._disconnect()

    def _has_work(self) -> bool:
        """Until it is stopped; after that, while a report can arrive before its claim expires."""
        if self.stopped is None:
            return True
        return bool(self.held or self.reports) and time.monotonic() < self.stopped + self.claim_for

    def _prolong(self, held: Dict[str, Run]) -> None:
        if not held:
            return
        tasks, runs = [r.task for r in held.values()], [r.run for r in held.values()]
        try:
            self._execute(RECLAIM, (f"{self.claim_for} s", tasks, runs))
        except psycopg.DatabaseError as error:
            if is_lost(error):
                raise
            self._prolong_each(held, error)

    def _prolong_each(self, held: Dict[str, Run], error: psycopg.Error) -> None:
        """One of them is lost: finds which, and holds it no longer."""
        if len(held) > 1:
            for tag, run in held.items():
                self._prolong({tag: run})
            return
        for tag, run in held.items():
            if self.held.pop(tag, None) is not None:
                logger.warning("Message %s is not ours any more: %s", run.task, error)
                if tag.startswith("binding"):
                    self.lost.set()

    def _execute(self, query: str, values: "tuple[Any, ...]") -> "List[tuple[Any, ...]]":
        with self.lock:
            if self.db is None or self.db.closed:
                self.db = self.connect()
            return self.db.execute(query, values).fetchall()

    def _disconnect(self) -> None:
        with self.lock:
            db, self.db = self.db, None
            if db is not None:
                db.close()
