"""Reads a durable subscription, and acknowledges what its handler has done."""

from __future__ import annotations

import asyncio
import logging
import re
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import dict_row

from .connection import Kept, Lost, Source, happens
from .query import UNSET, Interval
from .threads import InThread

LOOK = 60.0  # s after which it looks without a notification
STOP = 5.0  # s that a handler has to end
FETCH = "SELECT id, exchange, routing_key, cc, payload, published FROM tq.fetch(%s, %s)"
ACK = "SELECT FROM tq.ack(%s, %s)"
NO_POOLER = """a pooler is between, through which no notification comes
HINT:  Connect to the server itself, or give poll: seconds between two looks."""
FOR_GOOD = re.compile("0A|TQ4|42|3F")

Patterns = Union[Sequence[str], Mapping[str, Union[str, Sequence[str]]]]
Message = Mapping[str, Any]

log = logging.getLogger("tq")


def bindings_of(patterns: Patterns) -> list[tuple[str, str]]:
    """Return exchanges with a pattern of each."""
    if not isinstance(patterns, Mapping):
        return [(exchange, "#") for exchange in patterns]
    lists = {key: [one] if isinstance(one, str) else one for key, one in patterns.items()}
    return [(exchange, pattern) for exchange in lists for pattern in lists[exchange]]


def channel_of(exchange: str) -> str:
    """Return the channel of an exchange: tq_task_pending of task-pending."""
    name = re.sub("([A-Z])", r"-\1", exchange.rpartition("/")[2])
    return "tq_" + name.lower().replace("-", "_")


class AsyncSubscription:
    """Patterns are a list of exchanges, or have the patterns of each.

    With transaction the handler gets a connection, too, in whose transaction the message is
    acknowledged: what it does there is done once.  A handler that blocks gets one that blocks.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        patterns: Patterns,
        handler: Callable[..., Any],
        *,
        transaction: bool = False,
        max: int = 100,
        poll: Optional[float] = None,
    ) -> None:
        self.name = name
        self._source, self._handler = source, handler
        self._bindings = bindings_of(patterns)
        self._transaction, self._max, self._poll = transaction, max, poll
        self._stopping = False
        self._own: Optional[Connection[Any]] = None  # of a handler that blocks

    async def __aenter__(self) -> AsyncSubscription:
        self._news = asyncio.Event()
        self._kept = Kept(self._source, "tq-subscription", self._begin, self._notified)
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, kind: object, *error: object) -> None:
        await self.stop()
        if kind is None:
            await self.wait()

    async def wait(self) -> None:
        """Wait until it has stopped; raise the error for which it cannot begin."""
        await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.result()

    async def stop(self, timeout: Interval = UNSET) -> None:
        """End the reading; the subscription stays."""
        self._stopping = True
        self._news.set()
        if not self._kept.is_open:
            await self._kept.close()
        await asyncio.wait([self._reading], timeout=STOP)
        self._reading.cancel()
        await self._kept.close()
        if self._own:
            self._own.close()

    def _notified(self, payload: str) -> None:
        self._news.set()

    async def _begin(self, connection: AsyncConnection[Any]) -> None:
        [row] = await (await connection.execute("SELECT pg_backend_pid() AS pid")).fetchall()
        pooled = row["pid"] != connection.info.backend_pid
        if pooled and self._poll is None:
            raise psycopg.errors.FeatureNotSupported(NO_POOLER)
        connection.add_notify_handler(lambda found: self._news.set())
        for exchange, pattern in self._bindings:
            await connection.execute(
                "SELECT FROM tq.subscribe(%s, %s, %s)", [self.name, exchange, pattern]
            )
            if not pooled:
                await connection.execute(f"LISTEN {channel_of(exchange)}")
        self._news.set()

    async def _read(self) -> None:
        pause = 0.1
        while not self._stopping:
            fetched = False
            try:
                self._news.clear()
                messages = await self._kept.query(FETCH, [self.name, self._max])
                fetched = True
                for message in messages:
                    if not self._stopping:
                        await self._handle(message)
                pause = 0.1
                if not messages:
                    await happens(self._news, self._poll or LOOK)
            except Lost:
                pass  # it is made again
            except Exception as error:
                code = getattr(error, "sqlstate", None)
                if not fetched and code and FOR_GOOD.match(code):
                    await self._kept.close()
                    raise
                log.error("a message is handled again: %s", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, 30.0)

    async def _handle(self, message: Message) -> None:
        acknowledged = [self.name, message["id"]]
        if not self._transaction:
            await self._call(message)
            await self._kept.query(ACK, acknowledged)
        elif iscoroutinefunction(self._handler):
            connection = await self._kept.connection()
            async with connection.transaction():
                await self._handler(message, connection)
                await connection.execute(ACK, acknowledged)
        else:
            await self._in_thread(self._block, message, acknowledged)

    async def _call(self, message: Message) -> None:
        if iscoroutinefunction(self._handler):
            await self._handler(message)
        else:
            result = await self._in_thread(self._handler, message)
            if isawaitable(result):
                await result

    def _in_thread(self, *work: Any) -> Any:
        return asyncio.get_running_loop().run_in_executor(None, *work)

    def _block(self, message: Message, acknowledged: Sequence[Any]) -> None:
        if not self._own or self._own.closed:
            self._own = psycopg.connect(
                autocommit=True, row_factory=dict_row, **self._kept.parameters()
            )
        with self._own.transaction():
            self._handler(message, self._own)
            self._own.execute(ACK, acknowledged)


class Subscription(InThread[AsyncSubscription]):
    """A subscription for programs without asyncio: its loop has a thread of its own."""

    def __init__(
        self,
        source: Source,
        name: str,
        patterns: Patterns,
        handler: Callable[..., Any],
        *,
        transaction: bool = False,
        max: int = 100,
        poll: Optional[float] = None,
    ) -> None:
        super().__init__(
            AsyncSubscription(
                source, name, patterns, handler, transaction=transaction, max=max, poll=poll
            )
        )
        self.name = name
