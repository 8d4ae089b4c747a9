"""What runs in a loop of asyncio, for programs that have none: the loop has a thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Callable, Generic, Optional, Protocol, Type, TypeVar

from .query import UNSET, Interval


class Runs(Protocol):
    async def __aenter__(self) -> Any:
        """Begin."""

    async def wait(self) -> None:
        """Wait until it has stopped."""

    async def stop(self, timeout: Interval = UNSET) -> None:
        """Stop it."""


T = TypeVar("T", bound=Runs)


class InThread(Generic[T]):
    """Begins with the block of a with, and stops at its end."""

    def __init__(self, inner: T) -> None:
        self._inner = inner
        self._begun: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: Future[None] = Future()

    def _main(self, begun: Callable[[], None] = lambda: None) -> None:
        try:
            asyncio.run(self._amain(begun))
        except BaseException as error:
            if not self._begun.done():
                self._begun.set_exception(error)
            if not self._ended.done():
                self._ended.set_exception(error)

    async def _amain(self, begun: Callable[[], None]) -> None:
        await self._inner.__aenter__()
        begun()
        self._begun.set_result(asyncio.get_running_loop())
        await self._inner.wait()
        self._ended.set_result(None)

    def __enter__(self) -> Any:
        threading.Thread(target=self._main, name="tq", daemon=True).start()
        self._begun.result()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()
        if kind is None:
            self.wait()

    def wait(self, timeout: Optional[float] = None) -> None:
        """Wait until it has stopped; raise the error for which it cannot work."""
        self._ended.result(timeout)

    def stop(self, timeout: Interval = UNSET) -> None:
        """Stop it, and wait until it has stopped."""
        if not self._ended.done():
            stopping = self._inner.stop(timeout)
            try:
                asyncio.run_coroutine_threadsafe(stopping, self._begun.result())
            except RuntimeError:
                stopping.close()  # the loop has ended meanwhile
        wait([self._ended])
