"""Errors of the database by their SQLSTATE, and what a handler raises to end its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import psycopg

if TYPE_CHECKING:
    from .query import Interval, Json


class TqError(psycopg.DatabaseError):
    """An error of tq, with its SQLSTATE, and the detail and the hint of the server."""

    def __init__(self, error: psycopg.Error) -> None:
        super().__init__(str(error))
        self.sqlstate = error.sqlstate
        self.detail = error.diag.message_detail
        self.hint = error.diag.message_hint


class BadInput(TqError):
    """TQ400: an argument is not what it must be."""


class Forbidden(TqError):
    """TQ403: the role has not the scopes for this."""


class NotFound(TqError):
    """TQ404: there is no such task, run, or whatever was named."""


class Conflict(TqError):
    """TQ409: the state does not allow it, or the claim is lost."""


class Gone(TqError):
    """TQ410: what was asked for has been deleted."""


class ArtifactError(TqError):
    """TQ424: the artifact is an error, or a link to what is not there."""


CLASSES = {
    "TQ400": BadInput,
    "TQ403": Forbidden,
    "TQ404": NotFound,
    "TQ409": Conflict,
    "TQ410": Gone,
    "TQ424": ArtifactError,
}
LOST = ("08", "25006", "40", "53", "57P", "58")


def error_of(error: psycopg.Error) -> psycopg.Error:
    """Return the error that a client of tq sees for one of the driver."""
    found = CLASSES.get(error.sqlstate or "")
    return found(error) if found else error


def is_lost(error: psycopg.Error, closed: bool) -> bool:
    """Return whether the connection, or a primary at its other end, is lost.

    An error without SQLSTATE is one of the driver: of a value that it cannot send, for
    example.  It says that the connection is lost only where it is closed.
    """
    return closed or (error.sqlstate is not None and error.sqlstate.startswith(LOST))


# ---- what a handler raises ----


class Outcome(Exception):
    """Ends a run as its reason says."""

    reason = "failed"

    def __init__(
        self,
        message: str = "",
        *,
        retry_delay: Optional[Interval] = None,
        retries_left: Optional[int] = None,
        details: Json = None,
    ) -> None:
        super().__init__(message or self.reason)
        self.retry_delay = retry_delay
        self.retries_left = retries_left
        self.details = details


class Retry(Outcome):
    """The run is tried again after that time, while there are retries."""

    reason = "intermittent-task"

    def __init__(self, delay: Interval, message: str = "", *, details: Json = None) -> None:
        super().__init__(message, retry_delay=delay, details=details)


class Defer(Outcome):
    """The run is put back for that time; that is no attempt."""

    reason = "defer"

    def __init__(self, delay: Interval) -> None:
        super().__init__(f"put back for {delay}", retry_delay=delay)


class Terminal(Outcome):
    """The run has failed, and is not tried again, whatever its policy says."""

    reason = "failed-terminal"


class MalformedPayload(Outcome):
    """The payload is not what the handler works on."""

    reason = "malformed-payload"


class ResourceUnavailable(Outcome):
    """What the handler needs is not there."""

    reason = "resource-unavailable"


class InternalError(Outcome):
    """The worker itself is at fault."""

    reason = "internal-error"


class Aborted(Exception):
    """Why a run was taken from its handler: canceled, claim-expired, worker-shutdown, …"""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the run was ended: {reason}")
        self.reason = reason
