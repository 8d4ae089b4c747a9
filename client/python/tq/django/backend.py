"""A backend of django.tasks: a task of Django is one of tq, made by the connection of Django.

It is therefore there exactly if the transaction of its caller commits.  What is in the
database is the truth: a result is built of the status of the task and of its runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from traceback import format_exception
from typing import Any, Iterable, Mapping

from django.conf import settings
from django.core import checks
from django.db import connections
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.module_loading import import_string

from .compat import (
    BaseTaskBackend,
    InvalidTask,
    Task as BaseTask,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
    task_finished,
    task_started,
)

# Of the seven priorities of tq 0 is the one in the middle, and any other is before or behind it.
LEVELS = (
    (67, "highest"),
    (34, "very-high"),
    (1, "high"),
    (0, "medium"),
    (-33, "low"),
    (-66, "very-low"),
    (-100, "lowest"),
)
STATES = {
    "completed": TaskResultStatus.SUCCESSFUL,
    "failed": TaskResultStatus.FAILED,
    "exception": TaskResultStatus.FAILED,
    "running": TaskResultStatus.RUNNING,
}

# Arguments of tq.enqueue() that a task, or the backend, may give.
TYPES = {
    "retry": "int",
    "retries": "int",
    "deadline": "interval",
    "expires": "interval",
    "policy": "jsonb",
    "tags": "jsonb",
    "extra": "jsonb",
    "task_group_id": "text",
    "dependencies": "text[]",
    "requires": "text",
    "routes": "text[]",
    "scopes": "text[]",
    "project_id": "text",
    "scheduler_id": "text",
}

TRACEBACK = 20000  # characters of a traceback that are kept, of its end
QUEUE = re.compile(r"([A-Za-z0-9_-]{1,38}/)?[A-Za-z0-9_-]{1,38}")
SLUGID = re.compile(r"[A-Za-z0-9_-]{8}[Q-T][A-Za-z0-9_-][CGKOSWaeimquy26-][A-Za-z0-9_-]{10}[AQgw]")
ENQUEUE = """SELECT id, (SELECT status FROM tq.statuses(ARRAY[id]))
    FROM tq.enqueue(%s, payload => %s::jsonb, priority => %s, run_at => %s::timestamptz, name => %s{}) AS id"""
RESULT = """SELECT s.status, t.task, tq.result(s.task_id)::text
    FROM tq.statuses(ARRAY[%s]::tq.slugid[]) s JOIN tq.tasks(ARRAY[%s]::tq.slugid[]) t USING (task_id)"""


class RunFailed(Exception):
    """Stands for the end of a run that raised no exception of Python: claim-expired, canceled, …"""


@dataclass(frozen=True, kw_only=True)
class Task(BaseTask):
    """A task of Django; options are arguments of tq.enqueue(), such as retry, deadline, policy."""

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def having(self, **options: Any) -> Task:
        """Returns the task with more of these arguments."""
        return replace(self, options={**self.options, **options})


def path_of(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def time_of(text: str | None) -> datetime | None:
    value = parse_datetime(text) if text else None
    return value if value is None or settings.USE_TZ else timezone.make_naive(value)


def json_of(value: Any) -> Any:
    """Returns what a jsonb is, which Django has the driver give as a text."""
    return json.loads(value) if isinstance(value, (str, bytes)) else value


def clean(text: str) -> str:
    """Returns a text without what no text of the server has."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def change(result: TaskResult, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(result, name, value)


class Backend(BaseTaskBackend):
    task_class = Task
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.database: str = self.options.get("database", "default")
        self.prefix: str = self.options.get("prefix", "django/")
        self.defaults: Mapping[str, Any] = self.options.get("enqueue", {})

    @property
    def connection(self) -> Any:
        return connections[self.database]

    # ---- what is valid ----

    def queue_of(self, queue_name: str) -> str:
        """Returns the name that a queue has in tq."""
        return self.prefix + queue_name

    def validate_task(self, task: BaseTask) -> None:
        super().validate_task(task)
        if not QUEUE.fullmatch(self.queue_of(task.queue_name)):
            raise InvalidTask(
                f"Queue '{task.queue_name}' is no name of a queue of tq: with the prefix '{self.prefix}' it is "
                'one or two names of at most 38 letters, digits, "-" or "_".'
            )
        for name in getattr(task, "options", ()):
            if name not in TYPES:
                raise InvalidTask(f"Option '{name}' is none of {', '.join(sorted(TYPES))}.")

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        where = f"TASKS[{self.alias!r}]"
        if self.database not in connections:
            yield checks.Error(
                f"{where}: there is no database {self.database!r}.",
                hint='OPTIONS["database"] is a key of DATABASES.',
                id="tq.E001",
            )
        elif self.connection.vendor != "postgresql":
            yield checks.Error(
                f"{where}: the database {self.database!r} is not PostgreSQL.", id="tq.E002"
            )
        for name in sorted(self.queues):
            if not QUEUE.fullmatch(self.queue_of(name)):
                yield checks.Error(
                    f"{where}: {self.queue_of(name)!r} is no name of a queue of tq.",
                    hint='It is one or two names of at most 38 letters, digits, "-" or "_".',
                    id="tq.E003",
                )
        for name in self.defaults:
            if name not in TYPES:
                yield checks.Error(
                    f'{where}: OPTIONS["enqueue"] has {name!r}.',
                    hint=f'It may have {", ".join(sorted(TYPES))}.',
                    id="tq.E004",
                )

    # ---- enqueue ----

    def enqueue(self, task: BaseTask, args: Any, kwargs: Any) -> TaskResult:
        self.validate_task(task)
        result = TaskResult(
            task=task,
            id="",
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        payload = {
            "func": task.module_path,
            "args": result.args,
            "kwargs": result.kwargs,
            "priority": task.priority,
        }
        if task.run_after is not None:
            payload["run_after"] = task.run_after.isoformat()
        options = {**self.defaults, **getattr(task, "options", {})}
        extra = "".join(f", {name} => %s::{TYPES[name]}" for name in options)
        level = next(level for least, level in LEVELS if task.priority >= least)
        with self.connection.cursor() as cursor:
            cursor.execute(
                ENQUEUE.format(extra),
                [
                    self.queue_of(task.queue_name),
                    json.dumps(payload, allow_nan=False),
                    level,
                    task.run_after,
                    task.module_path[-255:],
                    *(
                        json.dumps(value) if TYPES[name] == "jsonb" and value is not None else value
                        for name, value in options.items()
                    ),
                ],
            )
            task_id, status = cursor.fetchone()
        change(result, id=task_id, enqueued_at=timezone.now())
        if status:  # not where the role may not see it
            self._update(result, json_of(status))
        task_enqueued.send(type(self), task_result=result)
        return result

    # ---- results ----

    def get_result(self, result_id: str) -> TaskResult:
        row = None
        if SLUGID.fullmatch(str(result_id)):
            with self.connection.cursor() as cursor:
                cursor.execute(RESULT, [result_id, result_id])
                row = cursor.fetchone()
        if row is None:
            raise TaskResultDoesNotExist(result_id)
        status, definition, value = row
        return self.result_of(json_of(status), json_of(definition), value and json.loads(value))

    def result_of(
        self, status: Mapping[str, Any], definition: Mapping[str, Any], value: Any = None
    ) -> TaskResult:
        """Returns the result of a task by what tq knows of it."""
        payload = definition["payload"]
        queue = definition["taskQueueId"]
        if (
            not isinstance(payload, dict)
            or not isinstance(payload.get("func"), str)
            or not queue.startswith(self.prefix)
        ):
            raise TaskResultDoesNotExist(status["taskId"])
        task = import_string(payload["func"])
        if not isinstance(task, BaseTask):
            raise TaskResultDoesNotExist(f'{payload["func"]} is no task')
        run_after = payload.get("run_after")
        result = TaskResult(
            task=replace(
                task,
                priority=payload.get("priority", 0),
                queue_name=queue[len(self.prefix) :],
                backend=self.alias,
                run_after=datetime.fromisoformat(run_after) if run_after else None,
            ),
            id=status["taskId"],
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=payload.get("args", []),
            kwargs=payload.get("kwargs", {}),
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        self._update(result, status)
        if result.status == TaskResultStatus.SUCCESSFUL:
            change(result, _return_value=value)
        return result

    def _update(self, result: TaskResult, status: Mapping[str, Any]) -> None:
        runs = status.get("runs", [])
        started = [run for run in runs if "started" in run]
        details = {one["runId"]: one for one in status.get("runDetails", [])}
        change(
            result,
            status=STATES.get(status["state"], TaskResultStatus.READY),
            worker_ids=[f"{run['workerGroup']}/{run['workerId']}" for run in started],
            errors=[
                self._error(run, details.get(run["runId"], {}).get("error"))
                for run in runs
                if run["state"] in ("failed", "exception")
            ],
        )
        if runs:
            change(result, enqueued_at=time_of(runs[0]["scheduled"]))
        if started:
            change(
                result,
                started_at=time_of(started[0]["started"]),
                last_attempted_at=time_of(started[-1]["started"]),
            )
        if result.is_finished:
            change(result, finished_at=time_of(runs[-1]["resolved"]))

    @staticmethod
    def _error(run: Mapping[str, Any], error: Any) -> TaskError:
        given = error if isinstance(error, dict) else {"message": error}
        details = given.get("details")
        details = details if isinstance(details, dict) else {}
        return TaskError(
            exception_class_path=details.get("exception", path_of(RunFailed)),
            traceback=details.get("traceback")
            or str(given.get("message") or run["reasonResolved"]),
        )

    # ---- execution ----

    @staticmethod
    def failure_of(error: BaseException) -> tuple[str, dict[str, str]]:
        """Returns message and details of an error, as get_result() reads them."""
        return (
            clean(f"{type(error).__name__}: {error}"),
            {
                "exception": path_of(type(error)),
                "traceback": clean("".join(format_exception(error))[-TRACEBACK:]),
            },
        )

    def run(self, result: TaskResult, context: TaskContext) -> Any:
        """Calls the function of a task whose run has begun; returns what it returns, or raises."""
        task_started.send(type(self), task_result=result)
        first = (context,) if result.task.takes_context else ()
        try:
            value = normalize_json(result.task.call(*first, *result.args, **result.kwargs))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            change(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
            result.errors.append(
                TaskError(
                    exception_class_path=path_of(type(error)),
                    traceback="".join(format_exception(error)),
                )
            )
            task_finished.send(type(self), task_result=result)
            raise
        change(
            result,
            status=TaskResultStatus.SUCCESSFUL,
            finished_at=timezone.now(),
            _return_value=value,
        )
        task_finished.send(type(self), task_result=result)
        return value
