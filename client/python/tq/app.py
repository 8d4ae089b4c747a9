"""Functions as tasks: what enqueues them, and what a worker does of them.

The payload of a task is the arguments of its function by name, so that any program can
enqueue it.  Where several functions share a queue, the name of the task says which it is.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from typing import (
    Any,
    Callable,
    Generic,
    Literal,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
    overload,
)

from .calls import enqueue
from .connection import Source
from .errors import MalformedPayload
from .query import AsyncDatabase, Database
from .run import Context
from .subscribe import AsyncSubscription, Patterns, Subscription
from .worker import AsyncWorker, Worker

if sys.version_info >= (3, 10):
    from typing import Concatenate, ParamSpec
else:
    from typing_extensions import Concatenate, ParamSpec

Queues = Union[str, Sequence[str]]
P = ParamSpec("P")
R = TypeVar("R")


class Task(Generic[P, R]):
    """A function with its queue, and what its tasks are enqueued with."""

    def __init__(
        self,
        function: Callable[..., R],
        queue: str,
        pass_context: bool,
        options: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self.function = function
        self.queue = queue
        self.pass_context = pass_context
        self.options: dict[str, Any] = {"name": function.__name__, **options}
        self._signature = inspect.signature(function)
        if pass_context:
            first, *others = self._signature.parameters.values()
            self._signature = self._signature.replace(parameters=others)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    def using(self, **options: Any) -> Task[P, R]:
        """Return the same with further options of enqueue: delay, run_at, priority, …"""
        return Task(self.function, self.queue, self.pass_context, {**self.options, **options})

    def payload(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the arguments by name, as the payload has them."""
        bound = self._signature.bind(*args, **kwargs).arguments
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
                raise TypeError(f"{self.__name__}() has arguments without a name")
            if parameter.kind == parameter.VAR_KEYWORD:
                bound.update(bound.pop(parameter.name, {}))
        return bound

    def enqueue(self, db: Database, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call, in the transaction of the connection; return its id."""
        return enqueue(db, self.queue, self.payload(*args, **kwargs), **self.options)

    async def aenqueue(self, db: AsyncDatabase, *args: P.args, **kwargs: P.kwargs) -> str:
        """Enqueue a call, on a connection of asyncio."""
        return await enqueue(db, self.queue, self.payload(*args, **kwargs), **self.options)

    def work(self, payload: Any, ctx: Context) -> R:
        """Call the function with the arguments of a payload."""
        context = (ctx,) if self.pass_context else ()
        try:
            self._signature.bind(**payload)
        except TypeError as error:
            raise MalformedPayload(f"{self.__name__}(): {error}") from error
        return self.function(*context, **payload)


class App:
    """The tasks of a program, and what its workers connect to."""

    def __init__(self, source: Source = None, **options: Any) -> None:
        self.source = source
        self.options = options
        self.queues: dict[str, dict[str, Task[Any, Any]]] = {}

    @overload
    def task(
        self, queue: str, *, pass_context: Literal[False] = False, **options: Any
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        ...

    @overload
    def task(
        self, queue: str, *, pass_context: Literal[True], **options: Any
    ) -> Callable[[Callable[Concatenate[Context, P], R]], Task[P, R]]:
        ...

    def task(self, queue: str, *, pass_context: bool = False, **options: Any) -> Any:
        """Make a function a task of that queue; options are those of enqueue."""

        def make(function: Callable[..., R]) -> Task[Any, R]:
            found: Task[Any, R] = Task(function, queue, pass_context, options)
            self.queues.setdefault(queue, {})[found.options["name"]] = found
            return found

        return make

    def _task_of(self, ctx: Context) -> Task[Any, Any]:
        tasks = self.queues.get(ctx.queue, {})
        if len(tasks) == 1:
            return next(iter(tasks.values()))
        name = ctx.task and ctx.task["metadata"]["name"]
        if name not in tasks:
            raise MalformedPayload(f"there is no task {name} of {ctx.queue}")
        return tasks[name]

    def work(self, payload: Any, ctx: Context) -> Any:
        """Do what a run of one of its queues asks for: a handler."""
        return self._task_of(ctx).work(payload, ctx)

    async def awork(self, payload: Any, ctx: Context) -> Any:
        """Do the same, where all functions are coroutines."""
        return await self._task_of(ctx).work(payload, ctx)

    def _given(self, queues: Optional[Queues], options: Mapping[str, Any]) -> Any:
        given = self.queues if queues is None else queues
        names = [given] if isinstance(given, str) else list(given)
        for name in names or ["any queue"]:
            if name not in self.queues and "*" not in name:
                raise ValueError(f"the app has no task of {name}: has its module been imported?")
        tasks = [task for one in self.queues.values() for task in one.values()]
        coroutines = all(inspect.iscoroutinefunction(task.function) for task in tasks)
        return {
            "queue": names[0] if len(names) == 1 else names,
            "handler": self.awork if coroutines else self.work,
            "definition": any(len(one) > 1 for one in self.queues.values()),
            **self.options,
            **options,
        }

    def worker(self, queues: Optional[Queues] = None, **options: Any) -> Worker:
        """Return a worker of these queues, or of all."""
        return Worker(self.source, **self._given(queues, options))

    def aworker(self, queues: Optional[Queues] = None, **options: Any) -> AsyncWorker:
        """Return a worker for programs of asyncio."""
        return AsyncWorker(self.source, **self._given(queues, options))

    def subscribe(
        self, name: str, patterns: Patterns, handler: Callable[..., Any], **options: Any
    ) -> Subscription:
        """Return what reads a durable subscription of that name."""
        return Subscription(self.source, name, patterns, handler, **options)

    def asubscribe(
        self, name: str, patterns: Patterns, handler: Callable[..., Any], **options: Any
    ) -> AsyncSubscription:
        """Return the same for programs of asyncio."""
        return AsyncSubscription(self.source, name, patterns, handler, **options)


def app_of(text: str) -> App:
    """Return the app that 'module:name' says."""
    module, _, name = text.partition(":")
    found = getattr(importlib.import_module(module), name or "app", None)
    if not isinstance(found, App):
        raise TypeError(f"{text} is no tq.App: give module:app")
    return found
