"""What a worker, and drain(), do with a run of a task of Django."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

from tq import Aborted, Context, MalformedPayload, Outcome

from .backend import Backend
from .compat import TaskContext as BaseContext
from .compat import TaskResultDoesNotExist, normalize_json


@dataclass(frozen=True, kw_only=True)
class TaskContext(BaseContext):
    """The context of a task that takes it, with what a run of tq can do."""

    run: Context

    def progress(self, done: int, total: Optional[int] = None, message: str = "") -> None:
        """Shows how far the run is: on the page of the admin, and in tq.run_overview."""
        self.run.progress(done, total, message)

    def check(self) -> None:
        """Raises where the run is canceled or its claim is lost, so that a task of many steps ends."""
        self.run.check()

    def complete(self, value: Any = None) -> None:
        """Completes the task in the transaction that is open, so that its work is done once."""
        connection = self.task_result.task.get_backend().connection
        connection.ensure_connection()
        self.run.complete(connection.connection, normalize_json(value))


def work_of(backend: Backend) -> Callable[[Any, Context], Any]:
    """Returns what a worker of tq does with a task of this backend."""

    def work(payload: Any, run: Context) -> Any:
        try:
            result = backend.result_of(run.status, run.task)
            return backend.run(result, TaskContext(task_result=result, run=run))
        except (Outcome, Aborted, KeyboardInterrupt):
            raise
        except TaskResultDoesNotExist as error:
            raise MalformedPayload(f"this is no task of Django: {error}") from error
        except BaseException as error:
            message, details = backend.failure_of(error)
            raise Outcome(message, details=details) from error

    return work
