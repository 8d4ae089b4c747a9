"""A client of tq, the task queue inside PostgreSQL."""

from .app import App, Task
from .calls import AsyncCalls, Calls, Priority, enqueue, enqueue_many
from .calls import call_on as call
from .errors import (
    Aborted,
    ArtifactError,
    BadInput,
    Conflict,
    Defer,
    Forbidden,
    Gone,
    InternalError,
    MalformedPayload,
    NotFound,
    Outcome,
    ResourceUnavailable,
    Retry,
    Terminal,
    TqError,
)
from .query import Interval, Json
from .run import Context
from .subscribe import AsyncSubscription, Message, Subscription
from .wait import Ended, wait_for
from .worker import AsyncWorker, Worker

__all__ = [
    "Aborted",
    "App",
    "ArtifactError",
    "AsyncCalls",
    "AsyncSubscription",
    "AsyncWorker",
    "BadInput",
    "Calls",
    "Conflict",
    "Context",
    "Defer",
    "Ended",
    "Forbidden",
    "Gone",
    "InternalError",
    "Interval",
    "Json",
    "MalformedPayload",
    "Message",
    "NotFound",
    "Outcome",
    "Priority",
    "ResourceUnavailable",
    "Retry",
    "Subscription",
    "Task",
    "Terminal",
    "TqError",
    "Worker",
    "call",
    "enqueue",
    "enqueue_many",
    "wait_for",
]
