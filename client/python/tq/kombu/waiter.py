"""Waits in the database for messages of some queues, without blocking this process.

One session calls wait_for_work, and its socket becomes readable when the call ends: by the
commit of the first message, however long that takes.  So there are no polls.
"""

import contextlib
import select
from typing import Any, Callable, FrozenSet, Iterator, Optional

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus

WAIT = sql.SQL("CALL tq.wait_for_work({}::text[], {})")
WAIT_FOR = "5 minutes"


class Waiter:
    """A session that waits for messages of `queues`, or for nothing if there are none."""

    def __init__(self, connect: "Callable[[], psycopg.Connection[Any]]") -> None:
        self.connect = connect
        self.queues: FrozenSet[str] = frozenset()
        self.db: "Optional[psycopg.Connection[Any]]" = None

    def fileno(self) -> int:
        assert self.db is not None
        return self.db.fileno()

    def is_lost(self) -> bool:
        return self.db is not None and self.db.closed

    def wait_for(self, queues: FrozenSet[str]) -> bool:
        """Waits for these as well.  Returns whether the socket is a new one."""
        if queues <= self.queues:
            return False
        new = self.db is None
        if self.db is None:
            self.db = self.connect()
        self.end()
        query = WAIT.format(sql.Literal(sorted(queues)), sql.Literal(WAIT_FOR)).as_string(self.db)
        with self._lost():
            self.db.pgconn.send_query(query.encode())
            while self.db.pgconn.flush():
                select.select([], [self], [], 1)
        self.queues = queues
        return new

    def has_ended(self) -> bool:
        """Whether the wait is over, by work or by time; called when the socket is readable."""
        if self.db is None or not self.queues:
            return False
        with self._lost():
            self.db.pgconn.consume_input()
            if self.db.pgconn.is_busy():
                return False
            self._results()
        return True

    def end(self) -> None:
        """Ends a wait, whatever comes of it.

        A cancel that comes before the call has begun does nothing, so that it is repeated; one
        that comes after it may end the next call, which is a wait that is over, too.
        """
        while self.db is not None and self.queues:
            with self._lost():
                self.db.pgconn.get_cancel().cancel()
                select.select([self], [], [], 0.1)
                self.has_ended()

    def close(self) -> None:
        db, self.db = self.db, None
        self.queues = frozenset()
        if db is not None:
            db.close()

    def _results(self) -> None:
        assert self.db is not None
        self.queues = frozenset()
        error: Optional[psycopg.Error] = None
        while (result := self.db.pgconn.get_result()) is not None:
            if result.status == ExecStatus.FATAL_ERROR:
                error = psycopg.errors.error_from_result(result)
        if error is not None and error.sqlstate is None:
            raise psycopg.OperationalError(str(error))
        if error is not None and not isinstance(error, psycopg.errors.QueryCanceled):
            raise error

    @contextlib.contextmanager
    def _lost(self) -> Iterator[None]:
        """What libpq says of a lost connection, in the words of psycopg that kombu knows."""
        try:
            yield
        except psycopg.Error:
            raise
        except Exception as error:  # pq.PQerror, which is no psycopg.Error before 3.2
            raise psycopg.OperationalError(str(error)) from error
