"""A client of tq, the task queue inside PostgreSQL."""

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
from .wait import Ended, wait_for

__all__ = [
    "Aborted",
    "ArtifactError",
    "AsyncCalls",
    "BadInput",
    "Calls",
    "Conflict",
    "Defer",
    "Ended",
    "Forbidden",
    "Gone",
    "InternalError",
    "Interval",
    "Json",
    "MalformedPayload",
    "NotFound",
    "Outcome",
    "Priority",
    "ResourceUnavailable",
    "Retry",
    "Terminal",
    "TqError",
    "call",
    "enqueue",
    "enqueue_many",
    "wait_for",
]
