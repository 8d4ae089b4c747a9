"""Calls functions of tq by name, at once or as a coroutine, as the connection is.

What is done on a connection is written once, as a generator of steps: what a step yields is
a value of a connection that blocks, and an awaitable of one of asyncio.
"""

from __future__ import annotations

import json
import re
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from functools import lru_cache
from inspect import isawaitable
from typing import Any, Generator, Mapping, NamedTuple, Optional, Protocol, Sequence, Union

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from .errors import error_of


class Pool(Protocol):
    """A pool such as psycopg_pool.ConnectionPool."""

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        """Lend a connection for a block."""


class AsyncPool(Protocol):
    """A pool such as psycopg_pool.AsyncConnectionPool."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
        """Lend a connection for a block."""


Database = Union["Connection[Any]", Pool]
AsyncDatabase = Union["AsyncConnection[Any]", AsyncPool]
AnyDatabase = Union[Database, AsyncDatabase]

#: What json.dumps() makes JSON of.
Json = Union[None, bool, int, float, str, Sequence[Any], Mapping[str, Any]]
#: A number is seconds; a text as PostgreSQL reads an interval: '5 min'.
Interval = Union[float, str, timedelta]

Steps = Generator[Any, Any, Any]


class Unset:
    """In the place of an argument for which the server has a default."""

    def __repr__(self) -> str:
        return "..."


UNSET: Any = Unset()

UNITS = {
    **{"ms": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60},
    **{"h": 3600, "hour": 3600, "d": 86400, "day": 86400},
}


def seconds_of(interval: Interval) -> float:
    """Return the seconds of a time that the client itself waits: 30, or such as '5 min'."""
    if isinstance(interval, timedelta):
        return interval.total_seconds()
    if isinstance(interval, (int, float)):
        return interval
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|[a-z]+?)s?", interval)
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{interval!r} is no time such as 30 or '5 min'")
    return float(found[1]) * UNITS[found[2]]


def interval_of(value: Interval | None) -> str | None:
    """Return an interval as the server reads it."""
    return value if value is None or isinstance(value, str) else f"{seconds_of(value)} s"


# ---- connections of both kinds ----


def steps_on(db: Any, steps: Any) -> Steps:
    """Do steps(connection) on a connection, or on one of a pool."""
    if isinstance(db, (Connection, AsyncConnection)):
        return (yield from steps(db))
    if not hasattr(db, "connection"):
        raise TypeError(f"a connection of psycopg 3, or a pool of them, is no {type(db).__name__}")
    pooled = db.connection()
    if not hasattr(pooled, "__aenter__"):
        with pooled as connection:
            return (yield from steps(connection))
    connection = yield pooled.__aenter__()
    try:
        result = yield from steps(connection)
    except BaseException as error:
        yield pooled.__aexit__(type(error), error, error.__traceback__)
        raise
    yield pooled.__aexit__(None, None, None)
    return result


def do(steps: Steps) -> Any:
    """Do steps on a connection that blocks."""
    value = None
    try:
        while True:
            value = steps.send(value)
    except StopIteration as end:
        return end.value


async def ado(steps: Steps) -> Any:
    """Do steps on a connection of asyncio."""
    value: Any = None
    error: Optional[BaseException] = None
    try:
        while True:
            step = steps.throw(error) if error else steps.send(value)
            value, error = step, None
            if isawaitable(step):
                try:
                    value = await step
                except BaseException as fault:
                    error = fault
    except StopIteration as end:
        return end.value


def is_async(db: Any) -> bool:
    """Return whether a connection or a pool is one of asyncio."""
    return hasattr(type(db), "__aenter__")


def either(db: Any, steps: Any) -> Any:
    """Return what steps(connection) return, or a coroutine of it, as the connection is."""
    return (ado if is_async(db) else do)(steps_on(db, steps))


def query(connection: Any, text: str, values: Sequence[Any] = ()) -> Steps:
    """Return the rows of a statement, as dictionaries."""
    try:
        cursor = connection.cursor(row_factory=dict_row)
        yield cursor.execute(text, values)
        rows = (yield cursor.fetchall()) if cursor.description else []
        yield cursor.close()
        return rows
    except psycopg.Error as error:
        found = error_of(error)
        if found is error:
            raise
        raise found from error


# ---- calls ----


class Form(NamedTuple):
    """A function: what it returns, its name, and its arguments with their types."""

    returns: str
    name: str
    types: dict[str, str]

    def statement(self, names: Sequence[str]) -> str:
        given = ", ".join(f"{name} => %s::{self.types[name]}" for name in names)
        if self.returns == "call":
            return f"CALL tq.{self.name}({given})"
        if self.returns == "ids":
            return f"SELECT tq.{self.name}({given})::text[] AS {self.name}"
        if self.returns in ("value", "void"):
            return f"SELECT tq.{self.name}({given})"
        return f"SELECT * FROM tq.{self.name}({given})"

    def encode(self, name: str, value: Any) -> Any:
        kind = self.types[name]
        if value is None and name != "payload":
            return None
        if kind == "jsonb":
            return json.dumps(value)
        if kind == "jsonb[]":
            return [json.dumps(one) for one in value]
        return interval_of(value) if kind == "interval" else value

    def decode(self, rows: Any) -> Any:
        if self.returns == "rows":
            return rows
        if self.returns == "values":
            return [row[self.name] for row in rows]
        if self.returns in ("value", "ids"):
            return rows[0][self.name]
        return None if self.returns == "void" or not rows else rows[0]


@lru_cache(maxsize=None)
def form_of(text: str) -> Form:
    """Return the function of a text such as 'value status(task_id tq.slugid)'."""
    returns, name, given = re.fullmatch(r"(\w+) (\w+)\((.*)\)", text).groups()  # type: ignore[union-attr]
    types = dict(one.split(" ", 1) for one in given.split(", ")) if given else {}
    return Form(returns, name, types)


def call(db: Any, given: Mapping[str, Any], *texts: str) -> Any:
    """Call that of the functions which has the arguments that are given, and are not UNSET."""
    names = [name for name, value in given.items() if name != "self" and value is not UNSET]
    for form in map(form_of, texts):
        if form.types.keys() >= set(names):
            break
    else:
        raise TypeError(f"{form.name}() has no arguments {', '.join(names)} together")
    values = [form.encode(name, given[name]) for name in names]

    def steps(connection: Any) -> Steps:
        # A procedure commits: it does so by itself where no transaction is open.
        idle = connection.info.transaction_status == TransactionStatus.IDLE
        alone = form.returns == "call" and idle and not connection.autocommit
        if alone:
            yield set_autocommit(connection, True)
        try:
            rows = yield from query(connection, form.statement(names), values)
        finally:
            if alone and not connection.closed:
                yield set_autocommit(connection, False)
        return form.decode(rows)

    return either(db, steps)


def set_autocommit(connection: Any, value: bool) -> Any:
    if isinstance(connection, AsyncConnection):
        return connection.set_autocommit(value)
    connection.autocommit = value
    return None
