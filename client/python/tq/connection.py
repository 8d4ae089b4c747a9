"""A connection of asyncio that is kept, and made again when it is lost.

It is made again after 0.1 to 10 seconds, longer each time, of which a part is random so that
not all clients come at once; of several hosts the next one each time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from typing import Any, Awaitable, Callable, Optional, Sequence, Union

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from .errors import error_of, is_lost
from .query import AsyncPool, Pool

FIRST = 0.1
LAST = 10.0
NOT_OF_LIBPQ = {"autocommit", "row_factory", "prepare_threshold", "cursor_factory", "context"}

log = logging.getLogger("tq")

#: What to connect to: a text such as 'host=a,b dbname=shop', or that of a pool.
Source = Union[str, Pool, AsyncPool, None]


class Lost(Exception):
    """The connection was lost before it had answered, or is closed."""


async def happens(event: asyncio.Event, timeout: Optional[float]) -> None:
    """Wait for an event, or for a time."""
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except asyncio.TimeoutError:
        pass


def parameters_of(source: Any) -> dict[str, Any]:
    """Return what to connect with."""
    if source is None or isinstance(source, str):
        return conninfo_to_dict(source or "")
    if not hasattr(source, "conninfo"):
        raise TypeError("give a pool, or a text to connect with: these connections are of its own")
    text = source.conninfo() if callable(source.conninfo) else source.conninfo
    return conninfo_to_dict(
        text, **{k: v for k, v in (source.kwargs or {}).items() if k not in NOT_OF_LIBPQ}
    )


def targets_of(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters that differ for each host, of which that of a primary is taken."""
    hosts = str(given.get("host") or os.environ.get("PGHOST", "")).split(",")
    ports = str(given.get("port") or os.environ.get("PGPORT", "")).split(",")
    if len(hosts) == 1 or given.get("hostaddr"):
        return [{}]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    session = given.get("target_session_attrs") or "read-write"
    return [
        {"host": host, "port": port, "target_session_attrs": session}
        for host, port in zip(hosts, ports)
    ]


class Kept:
    """begin(connection) is done with each new connection, before any query."""

    def __init__(
        self,
        source: Source,
        name: str,
        begin: Optional[Callable[[AsyncConnection[Any]], Awaitable[Any]]] = None,
        notified: Optional[Callable[[str], None]] = None,
    ) -> None:
        given = parameters_of(source)
        self._given = {"connect_timeout": 10, "application_name": name, **given}
        self._targets = targets_of(given)
        self._begin = begin
        self._notified = notified
        self._connection: Optional[AsyncConnection[Any]] = None
        self._opening: Optional[asyncio.Task[None]] = None
        self._fd = -1  # that is watched
        self._lock = asyncio.Lock()
        self._pause = 0.0
        self._turn = 0
        self.closed = False

    def parameters(self) -> dict[str, Any]:
        """Return what to connect with, to the host whose turn it is."""
        return {**self._given, **self._targets[self._turn % len(self._targets)]}

    async def _connect(self) -> AsyncConnection[Any]:
        connection: AsyncConnection[Any] = await AsyncConnection.connect(
            autocommit=True, prepare_threshold=None, row_factory=dict_row, **self.parameters()
        )
        try:
            if self._begin:
                await self._begin(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _open(self) -> None:
        """Connect; wait before that where the last time was in vain."""
        while not self._connection:
            try:
                await asyncio.sleep(self._pause * random.uniform(0.5, 1))
                self._connection = await self._connect()
                self._watch(self._connection)
            except psycopg.OperationalError as error:
                self._fault(error)

    def _fault(self, error: Exception) -> None:
        self._turn += 1
        self._pause = min(max(FIRST, 2 * self._pause), LAST)
        log.warning("%s", str(error).strip())

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def connection(self) -> AsyncConnection[Any]:
        """Return the connection of psycopg, as soon as there is one."""
        while not self._connection:
            if self.closed:
                raise Lost("the connection is closed")
            if not self._opening:
                self._opening = asyncio.ensure_future(self._open())
            opening = self._opening
            await asyncio.wait([opening])
            if self._opening is opening:
                self._opening = None
            if not opening.cancelled():
                opening.result()
        return self._connection

    async def query(
        self, text: str, values: Sequence[Any] = (), *, once: bool = False
    ) -> list[dict[str, Any]]:
        """Return the rows of a statement, repeated until it is answered unless it is once."""
        while True:
            connection = await self.connection()
            try:
                async with self._lock:
                    rows = await self._execute(connection, text, values)
                self._pause = 0.0
                return rows
            except psycopg.Error as error:
                if not is_lost(error, connection.closed):
                    raise error_of(error) from error
                await self._drop(connection, error)
                if once or self.closed:
                    raise Lost(str(error)) from error

    async def _execute(
        self, connection: AsyncConnection[Any], text: str, values: Sequence[Any]
    ) -> list[dict[str, Any]]:
        self._unwatch()
        try:
            cursor = await connection.execute(text, values)
            return await cursor.fetchall()
        finally:
            if connection is self._connection and not connection.closed:
                self._watch(connection)

    # ---- notifications, while no statement reads the socket ----

    def _watch(self, connection: AsyncConnection[Any]) -> None:
        if self._notified:
            self._fd = connection.fileno()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._fd, self._read, connection, self._notified)

    def _unwatch(self) -> None:
        """By its number, which libpq does not know any more when the connection is lost."""
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._fd = -1

    def _read(self, connection: AsyncConnection[Any], notified: Callable[[str], None]) -> None:
        try:
            connection.pgconn.consume_input()
            for found in iter(connection.pgconn.notifies, None):
                notified(found.extra.decode(errors="replace"))
        except psycopg.Error as error:
            self._unwatch()
            asyncio.ensure_future(self._drop(connection, error))

    # ---- the end ----

    async def _drop(self, connection: AsyncConnection[Any], error: Exception) -> None:
        if self._connection is connection:
            self._connection = None
            self._fault(error)
            await self._close(connection)
            if not self.closed and not self._opening:  # a notification may be missed meanwhile
                self._opening = asyncio.ensure_future(self._open())

    async def _close(self, connection: AsyncConnection[Any]) -> None:
        self._unwatch()
        await connection.close()

    async def cancel(self) -> None:
        """Ask the server to cancel what the connection is waiting for."""
        if self._connection:
            await asyncio.get_running_loop().run_in_executor(None, self._connection.cancel)

    async def close(self) -> None:
        self.closed = True
        connection, self._connection = self._connection, None
        if self._opening:
            self._opening.cancel()
        if connection:
            await self._close(connection)
