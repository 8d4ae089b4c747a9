"""Made by client/make of client/interface.json: the functions of schema tq, with their types."""

# mypy: no-warn-return-any

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Awaitable, List, Literal, Optional, Sequence, TypedDict, Union, overload

from .query import (
    UNSET,
    AnyDatabase,
    AsyncDatabase,
    Database,
    Interval,
    Json,
    call,
    is_async,
)

Priority = Literal["highest", "very-high", "high", "medium", "low", "very-low", "lowest"]


class ApplyRow(TypedDict):
    tasks: Optional[int]
    refused: Any
    found: Any


class CancelTasksRow(TypedDict):
    tasks: Optional[int]


class ClaimTaskRow(TypedDict):
    task_id: str
    run_id: int
    worker_group: str
    worker_id: str
    taken_until: datetime
    payload: Any
    credentials: Any
    task: Any
    status: Any


class ClaimWorkRow(TypedDict):
    task_id: str
    run_id: int
    worker_group: str
    worker_id: str
    taken_until: datetime
    payload: Any
    credentials: Any
    task: Any
    status: Any


class ClaimWorkOfSeveralRow(TypedDict):
    task_id: str
    run_id: int
    worker_group: str
    worker_id: str
    taken_until: datetime
    payload: Any
    credentials: Any
    task_queue_id: str
    task: Any
    status: Any


class CriticalPathRow(TypedDict):
    place: Optional[int]
    task_id: Optional[str]
    name: Optional[str]
    state: Optional[str]
    begins: Optional[datetime]
    ends: Optional[datetime]
    waiting: Optional[timedelta]
    running: Optional[timedelta]
    retrying: Optional[timedelta]
    share: Optional[float]
    slack: Optional[timedelta]


class DependencyResultsRow(TypedDict):
    task_id: str
    state: str
    result: Any


class FailureGroupsRow(TypedDict):
    error: Optional[str]
    reason: Optional[str]
    tasks: Optional[int]
    first_failed: Optional[datetime]
    last_failed: Optional[datetime]
    task_queue_ids: Optional[List[str]]
    task_id: Optional[str]
    page: Optional[str]


class FetchRow(TypedDict):
    id: int
    exchange: str
    routing_key: str
    cc: List[str]
    payload: Any
    published: datetime


class FindGroupsRow(TypedDict):
    task_group_id: Optional[str]
    name: Optional[str]
    outcome: str
    tasks: Optional[int]
    unscheduled: Optional[int]
    delayed: Optional[int]
    pending: Optional[int]
    running: Optional[int]
    completed: Optional[int]
    failed: Optional[int]
    exception: Optional[int]
    first_created: Optional[datetime]
    last_resolved: Optional[datetime]
    sealed: Optional[datetime]
    page: Optional[str]


class FindTasksRow(TypedDict):
    task_id: Optional[str]
    task_queue_id: Optional[str]
    name: Optional[str]
    state: Optional[str]
    reason: Optional[str]
    priority: Optional[str]
    created: Optional[datetime]
    resolved: Optional[datetime]
    error: Optional[str]
    page: Optional[str]


class GroupProgressRow(TypedDict):
    tasks: int
    unscheduled: int
    delayed: int
    pending: int
    running: int
    completed: int
    failed: int
    exception: int
    tolerated: int
    outcome: str
    first_created: datetime
    last_resolved: datetime
    done: float
    blocked: Optional[bool]
    blocked_by: Optional[List[str]]


class GroupTasksRow(TypedDict):
    task_id: Optional[str]
    name: Optional[str]
    state: Optional[str]
    runs: Optional[int]
    detail: Optional[str]


class HealthRow(TypedDict):
    name: Optional[str]
    ok: Optional[bool]
    detail: Optional[str]
    hint: Optional[str]


class ListArtifactsRow(TypedDict):
    run_id: int
    name: str
    storage_type: str
    content_type: str
    content_length: Optional[int]
    expires: datetime
    present: bool


class ListClaimedTasksRow(TypedDict):
    task_id: str
    run_id: int
    worker_group: str
    worker_id: str
    claimed: datetime
    task: Any
    page: str


class ListDeadLettersRow(TypedDict):
    task_id: str
    failed_at: datetime
    reason: str
    error: Any
    task: Any
    runs: Any


class ListDependentTasksRow(TypedDict):
    task_id: str
    status: Any
    task: Any


class ListLatestArtifactsRow(TypedDict):
    run_id: int
    name: str
    storage_type: str
    content_type: str
    content_length: Optional[int]
    expires: datetime
    present: bool


class ListPendingTasksRow(TypedDict):
    task_id: str
    run_id: int
    task: Any
    inserted: datetime
    page: str


class ListTaskGroupRow(TypedDict):
    task_id: str
    status: Any
    task: Any


class ListTaskQueuesRow(TypedDict):
    task_queue_id: str
    provisioner_id: str
    worker_type: str
    expires: datetime
    last_date_active: datetime
    description: str
    stability: str
    page: str


class ListWorkersRow(TypedDict):
    worker_group: str
    worker_id: str
    first_claim: Optional[datetime]
    last_date_active: Optional[datetime]
    latest_task_id: str
    latest_run_id: int
    quarantine_until: Optional[datetime]
    page: str


class MessageRow(TypedDict):
    id: int
    exchange: str
    routing_key: str
    cc: List[str]
    payload: Any
    published: datetime


class MessagesRow(TypedDict):
    id: int
    exchange: str
    routing_key: str
    cc: List[str]
    payload: Any
    published: datetime


class MoveTasksRow(TypedDict):
    tasks: Optional[int]


class PauseCronRow(TypedDict):
    name: str
    schedule: str
    active: bool
    owner: str
    job_id: Optional[int]
    command: Optional[str]


class PrepareDropRow(TypedDict):
    moment: Optional[str]
    object: Optional[str]
    statement: Optional[str]


class QueueHistoryRow(TypedDict):
    task_queue_id: Optional[str]
    at: Optional[datetime]
    seconds: Optional[int]
    created_per_s: Optional[float]
    claimed_per_s: Optional[float]
    completed_per_s: Optional[float]
    failed_per_s: Optional[float]
    exception_per_s: Optional[float]
    retried_per_s: Optional[float]
    expired_claims_per_s: Optional[float]
    pending: Optional[int]
    delayed: Optional[int]
    blocked: Optional[int]
    running: Optional[int]
    wait_p50: Optional[timedelta]
    wait_p95: Optional[timedelta]
    wait_p99: Optional[timedelta]
    run_p50: Optional[timedelta]
    run_p95: Optional[timedelta]
    run_p99: Optional[timedelta]


class ReclaimTaskRow(TypedDict):
    task_id: str
    run_id: int
    worker_group: str
    worker_id: str
    taken_until: datetime
    payload: Any
    credentials: Any
    task: Any
    status: Any


class RerunPlanRow(TypedDict):
    task_id: Optional[str]
    state: Optional[str]
    action: Optional[str]
    why: Optional[str]


class ResolveRow(TypedDict):
    task_id: str
    run_id: int
    outcome: str


class ResolveOfSeveralRow(TypedDict):
    task_id: str
    run_id: int
    outcome: str


class ResolveAndClaimRow(TypedDict):
    task_id: str
    run_id: int
    outcome: str
    worker_group: Optional[str]
    worker_id: str
    taken_until: datetime
    payload: Any
    credentials: Any
    task: Any
    status: Any


class ResumeCronRow(TypedDict):
    name: str
    schedule: str
    active: bool
    owner: str
    job_id: Optional[int]
    command: Optional[str]


class ScheduleCronRow(TypedDict):
    name: str
    schedule: str
    active: bool
    owner: str
    job_id: Optional[int]
    command: Optional[str]


class StatusesRow(TypedDict):
    task_id: str
    status: Any


class TaskNameStatsRow(TypedDict):
    task_queue_id: Optional[str]
    name: Optional[str]
    completed: Optional[int]
    failed: Optional[int]
    exception: Optional[int]
    wait_p50: Optional[timedelta]
    wait_p95: Optional[timedelta]
    wait_p99: Optional[timedelta]
    run_p50: Optional[timedelta]
    run_p95: Optional[timedelta]
    run_p99: Optional[timedelta]


class TasksRow(TypedDict):
    task_id: str
    task: Any


class UnscheduleCronRow(TypedDict):
    name: str
    schedule: str
    active: bool
    owner: str
    job_id: Optional[int]
    command: Optional[str]


class UpkeepRow(TypedDict):
    step: Optional[str]
    tasks: Optional[int]


class WaitForTaskRow(TypedDict):
    result: Optional[str]


class WaitForTaskGroupRow(TypedDict):
    result: Optional[str]


class WhyRow(TypedDict):
    reason: Optional[str]
    detail: Optional[str]
    advice: Optional[str]


class WorkerRemovedRow(TypedDict):
    task_id: str
    run_id: int
    outcome: str


class Calls:
    """The functions of schema tq, on a connection that blocks."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def ack(self, name: str, id: int) -> None:
        """Acknowledge the messages of a durable subscription up to that id."""
        return call(
            self._db,
            locals(),
            "void ack(name text, id bigint)",
        )

    def add_dependencies(self, task_id: str, dependencies: Sequence[str]) -> Any:
        """Give an unscheduled task further dependencies; those that it has already change
        nothing; returns its status.
        """
        return call(
            self._db,
            locals(),
            "value add_dependencies(task_id tq.slugid, dependencies tq.slugid[])",
        )

    def apply(
        self,
        filter: Json,
        action: str,
        *,
        arguments: Optional[Json] = UNSET,
        dry_run: Optional[bool] = UNSET,
        max: Optional[int] = UNSET,
    ) -> ApplyRow:
        """Cancel, rerun, schedule, move, delay, redrive, discard, delete, expire, or give another
        priority to, all tasks that a filter finds, at most so many; commits after each batch,
        so not in a transaction block; tasks is how many, refused has the others by reason; a
        dry run has in found what it would be, by queue and state.
        """
        return call(
            self._db,
            locals(),
            "call apply(filter jsonb, action text, arguments jsonb, dry_run boolean, max bigint)",
        )

    def artifact_info(self, task_id: str, run_id: int, name: str) -> Any:
        """An artifact without its content, with the keys of Taskcluster; links are not followed."""
        return call(
            self._db,
            locals(),
            "value artifact_info(task_id tq.slugid, run_id integer, name text)",
        )

    def assume(self, credentials: Json) -> None:
        """Have the scopes of these credentials, in place of those of the role, until the
        transaction ends.
        """
        return call(
            self._db,
            locals(),
            "void assume(credentials jsonb)",
        )

    def bind(self, channel: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Bind a channel to an exchange, so that NOTIFY on it sends the messages that match."""
        return call(
            self._db,
            locals(),
            "void bind(channel text, exchange text, pattern text)",
        )

    def cancel_group_callbacks(self, task_group_id: str, *, task_id: Optional[str] = UNSET) -> int:
        """Take back what on_group_resolved() has registered for a group and has not created yet:
        the task of that id, or all; returns how many.
        """
        return call(
            self._db,
            locals(),
            "value cancel_group_callbacks(task_group_id tq.slugid, task_id tq.slugid)",
        )

    def cancel_task(self, task_id: str) -> Any:
        """Resolve an unresolved task as exception, canceled; returns its status."""
        return call(
            self._db,
            locals(),
            "value cancel_task(task_id tq.slugid)",
        )

    def cancel_task_group(self, task_group_id: str) -> Any:
        """Cancel every unresolved task of a sealed group."""
        return call(
            self._db,
            locals(),
            "value cancel_task_group(task_group_id tq.slugid)",
        )

    def cancel_tasks(
        self,
        task_queue_id: str,
        *,
        name: Optional[str] = UNSET,
        tags: Optional[Json] = UNSET,
        states: Optional[Sequence[str]] = UNSET,
        max: Optional[int] = UNSET,
    ) -> CancelTasksRow:
        """Cancel the tasks of a queue that are in one of these states and have this name and
        these tags, at most so many; commits after each batch, so not in a transaction block;
        tasks is how many.
        """
        return call(
            self._db,
            locals(),
            "call cancel_tasks(task_queue_id text, name text, tags jsonb, states text[], "
            "max bigint)",
        )

    def change_task_group_priority(self, task_group_id: str, priority: str) -> Any:
        """Change the priority of those tasks of a group that were never resolved."""
        return call(
            self._db,
            locals(),
            "value change_task_group_priority(task_group_id tq.slugid, priority text)",
        )

    def change_task_priority(self, task_id: str, priority: str) -> Any:
        """Change the priority of an unresolved task; returns its status."""
        return call(
            self._db,
            locals(),
            "value change_task_priority(task_id tq.slugid, priority text)",
        )

    def claim_task(
        self,
        task_id: str,
        run_id: int,
        *,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ClaimTaskRow]:
        """Claim this pending run; no row when the worker is quarantined; claim_for and definition
        as in claim_work().
        """
        return call(
            self._db,
            locals(),
            "rows claim_task(task_id tq.slugid, run_id integer, worker_group text, "
            "worker_id text, claim_for interval, definition boolean)",
        )

    @overload
    def claim_work(
        self,
        *,
        task_queue_id: str,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ClaimWorkRow]:
        """Claim up to that many pending runs of a queue, by priority, then in order; with wait,
        at most 60 s, sleep until there is one; for claim_for, or the claimTimeout; with their
        definitions and statuses if definition is true.
        """

    @overload
    def claim_work(
        self,
        *,
        task_queue_ids: Sequence[str],
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
        mode: Optional[str] = UNSET,
    ) -> List[ClaimWorkOfSeveralRow]:
        """Claim up to that many pending runs of several queues, or of patterns like app/*, which
        stand for all queues of a provisioner: in this order, or with mode round-robin in turns
        and equal shares.
        """

    def claim_work(self, **given: Any) -> Any:
        return call(
            self._db,
            given,
            "rows claim_work(task_queue_id text, worker_group text, worker_id text, "
            "tasks integer, wait interval, claim_for interval, definition boolean)",
            "rows claim_work(task_queue_ids text[], worker_group text, worker_id text, "
            "tasks integer, wait interval, claim_for interval, definition boolean, mode text)",
        )

    def conductor_policy(self, task_def: Json, *, workflow_task: Optional[Json] = UNSET) -> Any:
        """The policy that corresponds to a Conductor task definition and its use in a workflow."""
        return call(
            self._db,
            locals(),
            "value conductor_policy(task_def jsonb, workflow_task jsonb)",
        )

    def conductor_status(self, task_id: str) -> str:
        """The state of a task as a Conductor status; NULL while it is unscheduled."""
        return call(
            self._db,
            locals(),
            "value conductor_status(task_id tq.slugid)",
        )

    def create_artifact(
        self,
        task_id: str,
        run_id: int,
        name: str,
        artifact: Json,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Create an artifact of a run, from a Taskcluster createArtifact request; repeats of the
        same are harmless.
        """
        return call(
            self._db,
            locals(),
            "value create_artifact(task_id tq.slugid, run_id integer, name text, artifact jsonb, "
            "credentials jsonb)",
        )

    def create_task(self, task_id: str, task: Json) -> Any:
        """Create a task from a Taskcluster task definition; repeats of the same are harmless;
        returns its status.
        """
        return call(
            self._db,
            locals(),
            "value create_task(task_id tq.slugid, task jsonb)",
        )

    def create_tasks(self, tasks: Json) -> int:
        """Create many tasks, all or none, from [{"taskId", "task"}]; they may depend on each
        other; returns how many are new.
        """
        return call(
            self._db,
            locals(),
            "value create_tasks(tasks jsonb)",
        )

    def critical_path(self, task_group_id: str) -> List[CriticalPathRow]:
        """The chain of tasks that decided when a group ended, or is expected to decide it: how
        long each waited, ran and was retried, and by how much another would have come later.
        """
        return call(
            self._db,
            locals(),
            "rows critical_path(task_group_id tq.slugid)",
        )

    def current_scopes(self) -> List[str]:
        """The scopes of the caller, without those that others cover."""
        return call(
            self._db,
            locals(),
            "value current_scopes()",
        )

    def declare_worker(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        expires: Union[datetime, str],
        *,
        capacity: Optional[int] = UNSET,
        version: Optional[str] = UNSET,
    ) -> Any:
        """Make a worker and its queue known until then at least, with how many tasks it works on
        at a time and the version of its program; returns the worker.
        """
        return call(
            self._db,
            locals(),
            "value declare_worker(task_queue_id text, worker_group text, worker_id text, "
            "expires timestamp with time zone, capacity integer, version text)",
        )

    def defer_task(
        self,
        task_id: str,
        run_id: int,
        after: Interval,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Return a running run to its queue, to be claimed again after that time; returns the
        status of the task.
        """
        return call(
            self._db,
            locals(),
            "value defer_task(task_id tq.slugid, run_id integer, after interval, credentials jsonb)",
        )

    def define_task(self, task_id: str, task: Json) -> Any:
        """Create a task that depends on itself, so that it waits for schedule_task; returns its
        status.
        """
        return call(
            self._db,
            locals(),
            "value define_task(task_id tq.slugid, task jsonb)",
        )

    def delete_task(self, task_id: str) -> None:
        """Delete a task in any state, with its runs, artifacts and dead letter; tasks that depend
        on it stay unscheduled.
        """
        return call(
            self._db,
            locals(),
            "void delete_task(task_id tq.slugid)",
        )

    def dependency_results(self, task_id: str) -> List[DependencyResultsRow]:
        """State and result of each task that this one depends on, in the order of its definition;
        the state of one that has expired or was deleted is missing.
        """
        return call(
            self._db,
            locals(),
            "rows dependency_results(task_id tq.slugid)",
        )

    def discard_dead_letter(self, task_id: str) -> None:
        """Drop a dead letter; the task stays as it is."""
        return call(
            self._db,
            locals(),
            "void discard_dead_letter(task_id tq.slugid)",
        )

    def enqueue(
        self,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_id: Optional[str] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> str:
        """Create a task from SQL arguments; deadline counts from when the task becomes visible,
        NULL: none, left out: tq.default_deadline; expires from the deadline, or NULL: by
        retention; retry is how often failures and lost runs are retried, with backoff; returns
        its id.
        """
        return call(
            self._db,
            locals(),
            "value enqueue(task_queue_id text, payload jsonb, task_id tq.slugid, "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, name text, scheduler_id text, "
            "project_id text, policy jsonb, retry integer, run_at timestamp with time zone)",
        )

    def enqueue_tasks(
        self,
        task_queue_id: str,
        payloads: Sequence[Json],
        *,
        task_ids: Optional[Sequence[str]] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> List[str]:
        """Create a task for each payload, alike in all else, as enqueue does; returns their ids
        in the same order.
        """
        return call(
            self._db,
            locals(),
            "value enqueue_tasks(task_queue_id text, payloads jsonb[], task_ids tq.slugid[], "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, name text, scheduler_id text, "
            "project_id text, policy jsonb, retry integer, run_at timestamp with time zone)",
        )

    def failure_groups(
        self,
        *,
        filter: Optional[Json] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FailureGroupsRow]:
        """Tasks that a filter finds and that failed, in groups by reason and shape of their last
        error, the largest first, and the others as one without a reason; if the budget is
        used, a last row without a task says how far that came, and has the page after which to
        go on.
        """
        return call(
            self._db,
            locals(),
            "rows failure_groups(filter jsonb, after text, max integer, budget interval)",
        )

    def fetch(self, name: str, *, max: Optional[int] = UNSET) -> List[FetchRow]:
        """The first messages of a durable subscription that are not acknowledged."""
        return call(
            self._db,
            locals(),
            "rows fetch(name text, max integer)",
        )

    def find_groups(
        self,
        *,
        pattern: Optional[str] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FindGroupsRow]:
        """Task groups of tq.group_overview, the newest first, of that name, or whose name begins
        with what is before a star, until there are max, or the budget is used: then a last row
        without a group says so; go on after the page of the last row.
        """
        return call(
            self._db,
            locals(),
            "rows find_groups(pattern text, after text, max integer, budget interval)",
        )

    def find_tasks(
        self,
        filter: Json,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FindTasksRow]:
        """Tasks that a filter finds, newest first, until there are max, or the budget is used:
        then a last row without a task says how far that came; go on after the page of the last
        row.
        """
        return call(
            self._db,
            locals(),
            "rows find_tasks(filter jsonb, after text, max integer, budget interval)",
        )

    def finish_artifact(
        self,
        task_id: str,
        run_id: int,
        name: str,
        upload_id: str,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> None:
        """Mark the content of an object artifact as uploaded."""
        return call(
            self._db,
            locals(),
            "void finish_artifact(task_id tq.slugid, run_id integer, name text, "
            "upload_id tq.slugid, credentials jsonb)",
        )

    def get_artifact(self, task_id: str, run_id: int, name: str) -> Any:
        """Where the content of an artifact is, or inline the content; links are followed."""
        return call(
            self._db,
            locals(),
            "value get_artifact(task_id tq.slugid, run_id integer, name text)",
        )

    def get_latest_artifact(self, task_id: str, name: str) -> Any:
        """Get_artifact() of the last run."""
        return call(
            self._db,
            locals(),
            "value get_latest_artifact(task_id tq.slugid, name text)",
        )

    def get_task_group(self, task_group_id: str) -> Any:
        """TaskGroupId, schedulerId, expires and, once it is, sealed."""
        return call(
            self._db,
            locals(),
            "value get_task_group(task_group_id tq.slugid)",
        )

    def get_task_queue(self, task_queue_id: str) -> Any:
        """A queue: its settings, when a worker last asked it for work, and when it expires."""
        return call(
            self._db,
            locals(),
            "value get_task_queue(task_queue_id text)",
        )

    def get_worker(self, task_queue_id: str, worker_group: str, worker_id: str) -> Any:
        """A worker: when it was seen, its recent tasks, and its quarantines with their reasons."""
        return call(
            self._db,
            locals(),
            "value get_worker(task_queue_id text, worker_group text, worker_id text)",
        )

    def grant_queue(
        self,
        role: str,
        task_queue_id: str,
        access: str,
        *,
        workers: Optional[str] = UNSET,
    ) -> None:
        """Grant a role the scopes to produce, work, read, manage, join, depend or unique in a
        queue, or in all whose names begin like that when it ends in a star; work as workers of
        these names only.
        """
        return call(
            self._db,
            locals(),
            "void grant_queue(role regrole, task_queue_id text, access text, workers text)",
        )

    def grant_scopes(self, role: str, scopes: Sequence[str]) -> None:
        """Grant scopes to a role and its members; a star at the end of a scope stands for any
        text.
        """
        return call(
            self._db,
            locals(),
            "void grant_scopes(role regrole, scopes text[])",
        )

    def group_dot(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """The graph of a task group for Graphviz."""
        return call(
            self._db,
            locals(),
            "value group_dot(task_group_id tq.slugid, max_nodes integer)",
        )

    def group_gantt(self, task_group_id: str, *, max_rows: Optional[int] = UNSET) -> str:
        """The runs of a task group by worker and time, as an SVG."""
        return call(
            self._db,
            locals(),
            "value group_gantt(task_group_id tq.slugid, max_rows integer)",
        )

    def group_graph(
        self,
        task_group_id: str,
        *,
        max_nodes: Optional[int] = UNSET,
        link: Optional[str] = UNSET,
    ) -> str:
        """The graph of a task group as an SVG; with a link, such as /task?id=, the box of a task
        leads to that with its id.
        """
        return call(
            self._db,
            locals(),
            "value group_graph(task_group_id tq.slugid, max_nodes integer, link text)",
        )

    def group_mermaid(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """The graph of a task group as a flowchart of Mermaid."""
        return call(
            self._db,
            locals(),
            "value group_mermaid(task_group_id tq.slugid, max_nodes integer)",
        )

    def group_progress(self, task_group_id: str) -> Optional[GroupProgressRow]:
        """Number of tasks of a group in each state, its outcome, and whether it is blocked."""
        return call(
            self._db,
            locals(),
            "row group_progress(task_group_id tq.slugid)",
        )

    def group_tasks(self, task_group_id: str) -> List[GroupTasksRow]:
        """The tasks of a group as short rows, in the order of their creation: state, number of
        runs, and why the last one was resolved, or its progress.
        """
        return call(
            self._db,
            locals(),
            "rows group_tasks(task_group_id tq.slugid)",
        )

    def group_tree(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> List[str]:
        """A task group as lines for a terminal: each task below the last that it depends on, with
        its state.
        """
        return call(
            self._db,
            locals(),
            "values group_tree(task_group_id tq.slugid, max_nodes integer)",
        )

    def health(self, *, thresholds: Optional[Json] = UNSET) -> List[HealthRow]:
        """What keeps this database from working as it should: a row for each check, with a hint
        where it is not ok; thresholds of checks by name, others than the default ones.
        """
        return call(
            self._db,
            locals(),
            "rows health(thresholds jsonb)",
        )

    def latest_artifact_info(self, task_id: str, name: str) -> Any:
        """Artifact_info() of the last run."""
        return call(
            self._db,
            locals(),
            "value latest_artifact_info(task_id tq.slugid, name text)",
        )

    def list_artifacts(
        self,
        task_id: str,
        run_id: int,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListArtifactsRow]:
        """Artifacts of a run, by name; go on after the last name seen."""
        return call(
            self._db,
            locals(),
            "rows list_artifacts(task_id tq.slugid, run_id integer, after text, max integer)",
        )

    def list_claimed_tasks(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListClaimedTasksRow]:
        """Runs of a queue that workers have, in the order in which they were claimed; go on after
        the page of the last row.
        """
        return call(
            self._db,
            locals(),
            "rows list_claimed_tasks(task_queue_id text, after text, max integer)",
        )

    def list_dead_letters(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListDeadLettersRow]:
        """Tasks of a queue that failed for good, by task id; go on after the last id seen."""
        return call(
            self._db,
            locals(),
            "rows list_dead_letters(task_queue_id text, after tq.slugid, max integer)",
        )

    def list_dependent_tasks(
        self,
        task_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListDependentTasksRow]:
        """Tasks that name this one in their dependencies, by task id; go on after the last id
        seen.
        """
        return call(
            self._db,
            locals(),
            "rows list_dependent_tasks(task_id tq.slugid, after tq.slugid, max integer)",
        )

    def list_latest_artifacts(
        self,
        task_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListLatestArtifactsRow]:
        """List_artifacts() of the last run."""
        return call(
            self._db,
            locals(),
            "rows list_latest_artifacts(task_id tq.slugid, after text, max integer)",
        )

    def list_pending_tasks(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListPendingTasksRow]:
        """Runs of a queue that can be claimed, in the order in which they became pending; go on
        after the page of the last row.
        """
        return call(
            self._db,
            locals(),
            "rows list_pending_tasks(task_queue_id text, after text, max integer)",
        )

    def list_task_group(
        self,
        task_group_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListTaskGroupRow]:
        """Tasks of a group, by task id; go on after the last id seen."""
        return call(
            self._db,
            locals(),
            "rows list_task_group(task_group_id tq.slugid, after tq.slugid, max integer)",
        )

    def list_task_queues(
        self,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListTaskQueuesRow]:
        """Queues that workers ask for work, by name; go on after the last name."""
        return call(
            self._db,
            locals(),
            "rows list_task_queues(after text, max integer)",
        )

    def list_workers(
        self,
        task_queue_id: str,
        *,
        quarantined: Optional[bool] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListWorkersRow]:
        """Workers of a queue by group and id, all or only those that are, or are not, in
        quarantine; go on after the page of the last row.
        """
        return call(
            self._db,
            locals(),
            "rows list_workers(task_queue_id text, quarantined boolean, after text, max integer)",
        )

    def message(self, id: int) -> Optional[MessageRow]:
        """The message of that id, whole."""
        return call(
            self._db,
            locals(),
            "row message(id bigint)",
        )

    def messages(
        self,
        *,
        exchange: Optional[str] = UNSET,
        pattern: Optional[str] = UNSET,
        after: Optional[int] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[MessagesRow]:
        """Messages in the order of publication, after that id, which is counted from the last one
        if it is negative; go on after the last id seen.
        """
        return call(
            self._db,
            locals(),
            "rows messages(exchange text, pattern text, after bigint, max integer)",
        )

    def metrics(self) -> str:
        """What the server counts, in the text form of Prometheus; a queue beyond the first
        tq.metrics_queues counts as queue="other".
        """
        return call(
            self._db,
            locals(),
            "value metrics()",
        )

    def move_tasks(
        self,
        task_queue_id: str,
        to_task_queue_id: str,
        *,
        max: Optional[int] = UNSET,
    ) -> MoveTasksRow:
        """Move the unscheduled, delayed and pending tasks of a queue to another one, at most so
        many; commits after each batch, so not in a transaction block; tasks is how many.
        """
        return call(
            self._db,
            locals(),
            "call move_tasks(task_queue_id text, to_task_queue_id text, max bigint)",
        )

    def name_task_group(self, task_group_id: str, name: str) -> None:
        """Give a group a name, which views and pictures show beside its id; NULL: none."""
        return call(
            self._db,
            locals(),
            "void name_task_group(task_group_id tq.slugid, name text)",
        )

    def on_group_resolved(
        self,
        task_group_id: str,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_id: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retry: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        tags: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
    ) -> str:
        """Create a task, once, when no task of the group is unresolved any more; its payload has
        the outcome as "group"; deadline counts from then, NULL: none, left out:
        tq.default_deadline; returns its id.
        """
        return call(
            self._db,
            locals(),
            "value on_group_resolved(task_group_id tq.slugid, task_queue_id text, payload jsonb, "
            "task_id tq.slugid, priority text, retry integer, deadline interval, tags jsonb, "
            "name text, policy jsonb)",
        )

    def pause_cron(self, name: str, *, owner: Optional[str] = UNSET) -> List[PauseCronRow]:
        """Let a recurring task create no tasks until resume_cron()."""
        return call(
            self._db,
            locals(),
            "rows pause_cron(name text, owner text)",
        )

    def pause_queue(self, task_queue_id: str) -> Any:
        """Hand out no tasks of a queue until resume_queue(); nothing is lost, and time goes on."""
        return call(
            self._db,
            locals(),
            "value pause_queue(task_queue_id text)",
        )

    def prepare_drop(self) -> List[PrepareDropRow]:
        """Before DROP EXTENSION tq: unschedule the jobs of pg_cron that call only tq, and list
        what else is to be done, in that order: done, elsewhere, before, drop, after; statement
        NULL: by hand, or nothing.
        """
        return call(
            self._db,
            locals(),
            "rows prepare_drop()",
        )

    def purge(
        self,
        task_queue_id: str,
        *,
        states: Optional[Sequence[str]] = UNSET,
        older_than: Optional[Interval] = UNSET,
        max: Optional[int] = UNSET,
    ) -> int:
        """Delete resolved tasks of a queue that are in one of these states and were resolved so
        long ago, except those that unresolved tasks need; returns how many.
        """
        return call(
            self._db,
            locals(),
            "value purge(task_queue_id text, states text[], older_than interval, max integer)",
        )

    def quarantine_worker(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        quarantine_until: Union[datetime, str],
        *,
        quarantine_info: Optional[str] = UNSET,
    ) -> Any:
        """Let a worker claim no tasks until then; a past time ends the quarantine."""
        return call(
            self._db,
            locals(),
            "value quarantine_worker(task_queue_id text, worker_group text, worker_id text, "
            "quarantine_until timestamp with time zone, quarantine_info text)",
        )

    def queue_channel(self, task_queue_id: str) -> str:
        """The channel that is notified when runs of this queue become claimable."""
        return call(
            self._db,
            locals(),
            "value queue_channel(task_queue_id text)",
        )

    def queue_history(
        self,
        *,
        queue: Optional[str] = UNSET,
        since: Optional[Union[datetime, str]] = UNSET,
        until: Optional[Union[datetime, str]] = UNSET,
        step: Optional[Interval] = UNSET,
    ) -> List[QueueHistoryRow]:
        """What has happened in queues, a row for each step of each queue: rates, what there was
        at its end, and how long runs waited and took.
        """
        return call(
            self._db,
            locals(),
            "rows queue_history(queue text, since timestamp with time zone, "
            "until timestamp with time zone, step interval)",
        )

    def reclaim_task(
        self,
        task_id: str,
        run_id: int,
        *,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Optional[ReclaimTaskRow]:
        """Extend the claim on a running run, by claim_for from now, or the claimTimeout, after a
        wait that ends with the run; the payload is left out.
        """
        return call(
            self._db,
            locals(),
            "row reclaim_task(task_id tq.slugid, run_id integer, wait interval, "
            "claim_for interval, credentials jsonb)",
        )

    def redrive(self, task_id: str) -> Any:
        """Run a dead letter again: as a rerun, or past the deadline as a new task that refers to
        the old one; returns the status of the task that is to run.
        """
        return call(
            self._db,
            locals(),
            "value redrive(task_id tq.slugid)",
        )

    def redrive_queue(self, task_queue_id: str, *, max: Optional[int] = UNSET) -> int:
        """Redrive() up to that many dead letters of a queue, in the order in which they failed,
        skipping those that are locked or that a rule refuses; returns how many.
        """
        return call(
            self._db,
            locals(),
            "value redrive_queue(task_queue_id text, max integer)",
        )

    def report_completed(
        self,
        task_id: str,
        run_id: int,
        *,
        result: Optional[Json] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as completed, with a result for result(); returns the status of
        the task.
        """
        return call(
            self._db,
            locals(),
            "value report_completed(task_id tq.slugid, run_id integer, result jsonb, "
            "credentials jsonb)",
        )

    def report_exception(
        self,
        task_id: str,
        run_id: int,
        reason: str,
        *,
        error: Optional[Json] = UNSET,
        retry_delay: Optional[Interval] = UNSET,
        retries_left: Optional[int] = UNSET,
        error_message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as exception, with error, error_message, retry_delay and
        retries_left as report_failed() has; by default worker-shutdown and intermittent-task
        are retried while retries are left.
        """
        return call(
            self._db,
            locals(),
            "value report_exception(task_id tq.slugid, run_id integer, reason text, error jsonb, "
            "retry_delay interval, retries_left integer, error_message text, credentials jsonb)",
        )

    def report_failed(
        self,
        task_id: str,
        run_id: int,
        *,
        error: Optional[Json] = UNSET,
        retry_delay: Optional[Interval] = UNSET,
        retries_left: Optional[int] = UNSET,
        error_message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as failed, with an error, any JSON, and an error_message, which
        are kept as {message, details} if there is a message; retry_delay and retries_left
        override the policy for the next attempts; returns the status of the task.
        """
        return call(
            self._db,
            locals(),
            "value report_failed(task_id tq.slugid, run_id integer, error jsonb, "
            "retry_delay interval, retries_left integer, error_message text, credentials jsonb)",
        )

    def report_html(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """A task group as a page of HTML that needs no other file: progress, failures, graph and
        runs.
        """
        return call(
            self._db,
            locals(),
            "value report_html(task_group_id tq.slugid, max_nodes integer)",
        )

    def report_progress(
        self,
        task_id: str,
        run_id: int,
        done: int,
        total: int,
        *,
        message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Show how far a running run is: done of total, in any unit, or NULL; stored once a
        second at most; returns the status of the task.
        """
        return call(
            self._db,
            locals(),
            "value report_progress(task_id tq.slugid, run_id integer, done bigint, total bigint, "
            "message text, credentials jsonb)",
        )

    def rerun_plan(
        self,
        task_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> List[RerunPlanRow]:
        """What rerun_task() would do, without doing it: a row for each task that would get a run
        (rerun), wait again (wait), wait as before (waits), stay as it is (left), or make it
        refuse (refused), and why.
        """
        return call(
            self._db,
            locals(),
            "rows rerun_plan(task_id tq.slugid, deadline interval, downstream boolean)",
        )

    def rerun_task(
        self,
        task_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> Any:
        """Add a pending run to a resolved task, with a new deadline from now if one is given;
        downstream: the resolved tasks that depend on it wait for it again; returns its status.
        """
        return call(
            self._db,
            locals(),
            "value rerun_task(task_id tq.slugid, deadline interval, downstream boolean)",
        )

    def reschedule_task(
        self,
        task_id: str,
        *,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> Any:
        """Make the pending or delayed run of a task claimable at that time, NULL: now; returns
        its status.
        """
        return call(
            self._db,
            locals(),
            "value reschedule_task(task_id tq.slugid, run_at timestamp with time zone)",
        )

    @overload
    def resolve(self, *, reports: Json) -> List[ResolveRow]:
        """Resolve many runs, each as its report says: [{taskId, runId, reason, result, error,
        errorMessage, retryDelay, retriesLeft, credentials}]; returns an outcome for each
        instead of raising an error.
        """

    @overload
    def resolve(
        self,
        *,
        task_ids: Sequence[str],
        run_ids: Sequence[int],
        reason: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> List[ResolveOfSeveralRow]:
        """Resolve many runs for one reason; returns an outcome for each instead of raising an
        error.
        """

    def resolve(self, **given: Any) -> Any:
        return call(
            self._db,
            given,
            "rows resolve(reports jsonb)",
            "rows resolve(task_ids tq.slugid[], run_ids integer[], reason text, credentials jsonb)",
        )

    def resolve_and_claim(
        self,
        reports: Json,
        task_queue_id: str,
        *,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ResolveAndClaimRow]:
        """Resolve runs as resolve(reports) does, then claim up to that many as claim_work() does;
        returns first an outcome for each report, then the claims.
        """
        return call(
            self._db,
            locals(),
            "rows resolve_and_claim(reports jsonb, task_queue_id text, worker_group text, "
            "worker_id text, tasks integer, claim_for interval, definition boolean)",
        )

    def result(self, task_id: str) -> Any:
        """The result of the last run, as given to report_completed(), or the output given to
        skip_task(); NULL if there is none.
        """
        return call(
            self._db,
            locals(),
            "value result(task_id tq.slugid)",
        )

    def resume_cron(self, name: str, *, owner: Optional[str] = UNSET) -> List[ResumeCronRow]:
        """Let a recurring task create tasks again, and make its job in pg_cron again if that is
        missing.
        """
        return call(
            self._db,
            locals(),
            "rows resume_cron(name text, owner text)",
        )

    def resume_queue(self, task_queue_id: str) -> Any:
        """Hand out tasks of a paused queue again, first to the workers that wait."""
        return call(
            self._db,
            locals(),
            "value resume_queue(task_queue_id text)",
        )

    def retry_task_group(
        self,
        task_group_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        reasons: Optional[Sequence[str]] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> int:
        """Rerun the tasks of a group that ended without success for these reasons, by default any
        but canceled, with a new deadline from now if one is given; downstream: what depends on
        them waits for them again; returns how many tasks run again or wait again.
        """
        return call(
            self._db,
            locals(),
            "value retry_task_group(task_group_id tq.slugid, deadline interval, reasons text[], "
            "downstream boolean)",
        )

    def revoke_queue(self, role: str, task_queue_id: str, access: str) -> None:
        """Revoke what grant_queue() with the same arguments has granted, and nothing that another
        grant gives as well.
        """
        return call(
            self._db,
            locals(),
            "void revoke_queue(role regrole, task_queue_id text, access text)",
        )

    def revoke_scopes(self, role: str, scopes: Sequence[str]) -> None:
        """Revoke scopes that were granted to a role, each as it was granted."""
        return call(
            self._db,
            locals(),
            "void revoke_scopes(role regrole, scopes text[])",
        )

    def rotate_secret(self, *, revoke: Optional[bool] = UNSET) -> None:
        """Sign credentials with a new secret from now on; those of the claims that are out, and
        what on_group_resolved() has registered with them, stay valid, unless revoke is true.
        """
        return call(
            self._db,
            locals(),
            "void rotate_secret(revoke boolean)",
        )

    def run_cron_now(self, name: str, *, owner: Optional[str] = UNSET) -> str:
        """Create a task of a recurring task now, apart from its schedule; returns its id, or
        NULL: skipped, because the last one is unresolved.
        """
        return call(
            self._db,
            locals(),
            "value run_cron_now(name text, owner text)",
        )

    def schedule_cron(
        self,
        name: str,
        schedule: str,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        overlap: Optional[str] = UNSET,
    ) -> List[ScheduleCronRow]:
        """Have pg_cron create a task at each time of a schedule, as enqueue does, or change that;
        NULL: no deadline, and the default of enqueue of all else; returns one row.
        """
        return call(
            self._db,
            locals(),
            "rows schedule_cron(name text, schedule text, task_queue_id text, payload jsonb, "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, scheduler_id text, project_id text, "
            "policy jsonb, retry integer, overlap text)",
        )

    def schedule_task(self, task_id: str) -> Any:
        """Make an unscheduled task pending regardless of its dependencies; returns its status."""
        return call(
            self._db,
            locals(),
            "value schedule_task(task_id tq.slugid)",
        )

    def seal_task_group(self, task_group_id: str) -> Any:
        """Seal a group permanently, so that no more tasks can be created in it."""
        return call(
            self._db,
            locals(),
            "value seal_task_group(task_group_id tq.slugid)",
        )

    def set_queue(self, task_queue_id: str, settings: Json) -> Any:
        """Change settings of a queue: limits, timeouts, retention, default policy; null removes
        one; returns all.
        """
        return call(
            self._db,
            locals(),
            "value set_queue(task_queue_id text, settings jsonb)",
        )

    def skip_task(self, task_id: str, *, output: Optional[Json] = UNSET) -> Any:
        """Resolve an unscheduled or pending task as completed, skipped, so that its dependents go
        on; output is its result; returns its status.
        """
        return call(
            self._db,
            locals(),
            "value skip_task(task_id tq.slugid, output jsonb)",
        )

    @overload
    def slugid(self) -> str:
        """A new slugid, which begins with the time unless tq.ordered_ids is off."""

    @overload
    def slugid(self, *, ordered: bool) -> str:
        """The same; false: one that is random as a whole."""

    def slugid(self, **given: Any) -> Any:
        return call(
            self._db,
            given,
            "value slugid()",
            "value slugid(ordered boolean)",
        )

    def stable_slugid(self, name: str) -> str:
        """The slugid of a name: the same for the same name, always and everywhere."""
        return call(
            self._db,
            locals(),
            "value stable_slugid(name text)",
        )

    def status(self, task_id: str) -> Any:
        """The task status structure: state, retriesLeft, runs."""
        return call(
            self._db,
            locals(),
            "value status(task_id tq.slugid)",
        )

    def statuses(self, task_ids: Sequence[str]) -> List[StatusesRow]:
        """Status of each of these tasks; unknown ids are left out."""
        return call(
            self._db,
            locals(),
            "rows statuses(task_ids tq.slugid[])",
        )

    def subscribe(self, name: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Create a durable subscription, or bind it to another exchange."""
        return call(
            self._db,
            locals(),
            "void subscribe(name text, exchange text, pattern text)",
        )

    def task(self, task_id: str) -> Any:
        """The task definition, with every default filled in."""
        return call(
            self._db,
            locals(),
            "value task(task_id tq.slugid)",
        )

    def task_name_stats(
        self,
        *,
        queue: Optional[str] = UNSET,
        since: Optional[Union[datetime, str]] = UNSET,
        until: Optional[Union[datetime, str]] = UNSET,
    ) -> List[TaskNameStatsRow]:
        """Runs that have ended, by queue and name of their task, on the days between these times:
        how many, and how long they waited and took; name is NULL for all further names of a
        queue together.
        """
        return call(
            self._db,
            locals(),
            "rows task_name_stats(queue text, since timestamp with time zone, "
            "until timestamp with time zone)",
        )

    def task_queue_counts(self, task_queue_id: str) -> Any:
        """PendingTasks and claimedTasks of a queue."""
        return call(
            self._db,
            locals(),
            "value task_queue_counts(task_queue_id text)",
        )

    def taskbroker_policy(self, activation: Json) -> Any:
        """The policy that corresponds to a Taskbroker activation."""
        return call(
            self._db,
            locals(),
            "value taskbroker_policy(activation jsonb)",
        )

    def taskbroker_status(self, task_id: str) -> str:
        """The state of a task as a Taskbroker status."""
        return call(
            self._db,
            locals(),
            "value taskbroker_status(task_id tq.slugid)",
        )

    def tasks(self, task_ids: Sequence[str]) -> List[TasksRow]:
        """Definition of each of these tasks; unknown ids are left out."""
        return call(
            self._db,
            locals(),
            "rows tasks(task_ids tq.slugid[])",
        )

    def top(self, *, max_rows: Optional[int] = UNSET) -> List[str]:
        """One screen for \watch: health, queues, workers, groups in progress and the progress of
        running tasks, in lines of at most 98 characters.
        """
        return call(
            self._db,
            locals(),
            "values top(max_rows integer)",
        )

    def trace(self, task_group_id: str) -> Any:
        """What has ended of a task group, as a trace in the JSON of OTLP: tasks, their waits and
        runs.
        """
        return call(
            self._db,
            locals(),
            "value trace(task_group_id tq.slugid)",
        )

    def trace_task(self, task_id: str) -> Any:
        """What has ended of a task, as a trace in the JSON of OTLP."""
        return call(
            self._db,
            locals(),
            "value trace_task(task_id tq.slugid)",
        )

    def unbind(self, channel: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Remove a binding; also disables a default channel."""
        return call(
            self._db,
            locals(),
            "void unbind(channel text, exchange text, pattern text)",
        )

    def unschedule_cron(
        self,
        name: str,
        *,
        owner: Optional[str] = UNSET,
    ) -> List[UnscheduleCronRow]:
        """End a recurring task; the tasks that it has created stay."""
        return call(
            self._db,
            locals(),
            "rows unschedule_cron(name text, owner text)",
        )

    def unsubscribe(self, name: str) -> None:
        """Drop a durable subscription."""
        return call(
            self._db,
            locals(),
            "void unsubscribe(name text)",
        )

    def upkeep(self) -> List[UpkeepRow]:
        """One pass of maintenance: deadlines, timeouts, expired claims, delayed runs, expiry,
        and, outside of a transaction block, publication.
        """
        return call(
            self._db,
            locals(),
            "rows upkeep()",
        )

    def wait_for_task(self, task_id: str, *, wait: Optional[Interval] = UNSET) -> WaitForTaskRow:
        """Wait until a task is resolved, without holding a snapshot; result is its state, blocked
        if it can never start, or unresolved when the time is over.
        """
        return call(
            self._db,
            locals(),
            "call wait_for_task(task_id tq.slugid, wait interval)",
        )

    def wait_for_task_group(
        self,
        task_group_id: str,
        *,
        wait: Optional[Interval] = UNSET,
    ) -> WaitForTaskGroupRow:
        """Wait until no task of a group is unresolved, without holding a snapshot; result is its
        outcome, blocked if what is left can never start, or unresolved when the time is over.
        """
        return call(
            self._db,
            locals(),
            "call wait_for_task_group(task_group_id tq.slugid, wait interval)",
        )

    @overload
    def wait_for_work(self, *, task_queue_id: str, wait: Optional[Interval] = UNSET) -> None:
        """Sleep until a task of the queue can be claimed, at most that long, at most an hour;
        holds no snapshot, so not in a transaction block.
        """

    @overload
    def wait_for_work(
        self,
        *,
        task_queue_ids: Sequence[str],
        wait: Optional[Interval] = UNSET,
    ) -> None:
        """Sleep until a task of any of these queues, or patterns like app/*, can be claimed; the
        rest as for one queue.
        """

    def wait_for_work(self, **given: Any) -> Any:
        return call(
            self._db,
            given,
            "call wait_for_work(task_queue_id text, wait interval)",
            "call wait_for_work(task_queue_ids text[], wait interval)",
        )

    def why(self, task_id: str) -> List[WhyRow]:
        """Why a task does not move, or how it ended; and what to do."""
        return call(
            self._db,
            locals(),
            "rows why(task_id tq.slugid)",
        )

    def worker_channel(self, worker_group: str, worker_id: str) -> str:
        """The channel that is notified when a running run is taken from this worker: canceled,
        expired, timed out, removed or deleted.
        """
        return call(
            self._db,
            locals(),
            "value worker_channel(worker_group text, worker_id text)",
        )

    def worker_removed(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        *,
        reason: Optional[str] = UNSET,
    ) -> List[WorkerRemovedRow]:
        """Resolve the runs of a worker that is gone, or of those whose worker_id begins like
        that, as worker-shutdown, so that they are retried; the reason becomes their error.
        """
        return call(
            self._db,
            locals(),
            "rows worker_removed(task_queue_id text, worker_group text, worker_id text, "
            "reason text)",
        )


class AsyncCalls:
    """The functions of schema tq, on a connection of asyncio."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def ack(self, name: str, id: int) -> None:
        """Acknowledge the messages of a durable subscription up to that id."""
        return await call(
            self._db,
            locals(),
            "void ack(name text, id bigint)",
        )

    async def add_dependencies(self, task_id: str, dependencies: Sequence[str]) -> Any:
        """Give an unscheduled task further dependencies; those that it has already change
        nothing; returns its status.
        """
        return await call(
            self._db,
            locals(),
            "value add_dependencies(task_id tq.slugid, dependencies tq.slugid[])",
        )

    async def apply(
        self,
        filter: Json,
        action: str,
        *,
        arguments: Optional[Json] = UNSET,
        dry_run: Optional[bool] = UNSET,
        max: Optional[int] = UNSET,
    ) -> ApplyRow:
        """Cancel, rerun, schedule, move, delay, redrive, discard, delete, expire, or give another
        priority to, all tasks that a filter finds, at most so many; commits after each batch,
        so not in a transaction block; tasks is how many, refused has the others by reason; a
        dry run has in found what it would be, by queue and state.
        """
        return await call(
            self._db,
            locals(),
            "call apply(filter jsonb, action text, arguments jsonb, dry_run boolean, max bigint)",
        )

    async def artifact_info(self, task_id: str, run_id: int, name: str) -> Any:
        """An artifact without its content, with the keys of Taskcluster; links are not followed."""
        return await call(
            self._db,
            locals(),
            "value artifact_info(task_id tq.slugid, run_id integer, name text)",
        )

    async def assume(self, credentials: Json) -> None:
        """Have the scopes of these credentials, in place of those of the role, until the
        transaction ends.
        """
        return await call(
            self._db,
            locals(),
            "void assume(credentials jsonb)",
        )

    async def bind(self, channel: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Bind a channel to an exchange, so that NOTIFY on it sends the messages that match."""
        return await call(
            self._db,
            locals(),
            "void bind(channel text, exchange text, pattern text)",
        )

    async def cancel_group_callbacks(
        self,
        task_group_id: str,
        *,
        task_id: Optional[str] = UNSET,
    ) -> int:
        """Take back what on_group_resolved() has registered for a group and has not created yet:
        the task of that id, or all; returns how many.
        """
        return await call(
            self._db,
            locals(),
            "value cancel_group_callbacks(task_group_id tq.slugid, task_id tq.slugid)",
        )

    async def cancel_task(self, task_id: str) -> Any:
        """Resolve an unresolved task as exception, canceled; returns its status."""
        return await call(
            self._db,
            locals(),
            "value cancel_task(task_id tq.slugid)",
        )

    async def cancel_task_group(self, task_group_id: str) -> Any:
        """Cancel every unresolved task of a sealed group."""
        return await call(
            self._db,
            locals(),
            "value cancel_task_group(task_group_id tq.slugid)",
        )

    async def cancel_tasks(
        self,
        task_queue_id: str,
        *,
        name: Optional[str] = UNSET,
        tags: Optional[Json] = UNSET,
        states: Optional[Sequence[str]] = UNSET,
        max: Optional[int] = UNSET,
    ) -> CancelTasksRow:
        """Cancel the tasks of a queue that are in one of these states and have this name and
        these tags, at most so many; commits after each batch, so not in a transaction block;
        tasks is how many.
        """
        return await call(
            self._db,
            locals(),
            "call cancel_tasks(task_queue_id text, name text, tags jsonb, states text[], "
            "max bigint)",
        )

    async def change_task_group_priority(self, task_group_id: str, priority: str) -> Any:
        """Change the priority of those tasks of a group that were never resolved."""
        return await call(
            self._db,
            locals(),
            "value change_task_group_priority(task_group_id tq.slugid, priority text)",
        )

    async def change_task_priority(self, task_id: str, priority: str) -> Any:
        """Change the priority of an unresolved task; returns its status."""
        return await call(
            self._db,
            locals(),
            "value change_task_priority(task_id tq.slugid, priority text)",
        )

    async def claim_task(
        self,
        task_id: str,
        run_id: int,
        *,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ClaimTaskRow]:
        """Claim this pending run; no row when the worker is quarantined; claim_for and definition
        as in claim_work().
        """
        return await call(
            self._db,
            locals(),
            "rows claim_task(task_id tq.slugid, run_id integer, worker_group text, "
            "worker_id text, claim_for interval, definition boolean)",
        )

    @overload
    async def claim_work(
        self,
        *,
        task_queue_id: str,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ClaimWorkRow]:
        """Claim up to that many pending runs of a queue, by priority, then in order; with wait,
        at most 60 s, sleep until there is one; for claim_for, or the claimTimeout; with their
        definitions and statuses if definition is true.
        """

    @overload
    async def claim_work(
        self,
        *,
        task_queue_ids: Sequence[str],
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
        mode: Optional[str] = UNSET,
    ) -> List[ClaimWorkOfSeveralRow]:
        """Claim up to that many pending runs of several queues, or of patterns like app/*, which
        stand for all queues of a provisioner: in this order, or with mode round-robin in turns
        and equal shares.
        """

    async def claim_work(self, **given: Any) -> Any:
        return await call(
            self._db,
            given,
            "rows claim_work(task_queue_id text, worker_group text, worker_id text, "
            "tasks integer, wait interval, claim_for interval, definition boolean)",
            "rows claim_work(task_queue_ids text[], worker_group text, worker_id text, "
            "tasks integer, wait interval, claim_for interval, definition boolean, mode text)",
        )

    async def conductor_policy(
        self,
        task_def: Json,
        *,
        workflow_task: Optional[Json] = UNSET,
    ) -> Any:
        """The policy that corresponds to a Conductor task definition and its use in a workflow."""
        return await call(
            self._db,
            locals(),
            "value conductor_policy(task_def jsonb, workflow_task jsonb)",
        )

    async def conductor_status(self, task_id: str) -> str:
        """The state of a task as a Conductor status; NULL while it is unscheduled."""
        return await call(
            self._db,
            locals(),
            "value conductor_status(task_id tq.slugid)",
        )

    async def create_artifact(
        self,
        task_id: str,
        run_id: int,
        name: str,
        artifact: Json,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Create an artifact of a run, from a Taskcluster createArtifact request; repeats of the
        same are harmless.
        """
        return await call(
            self._db,
            locals(),
            "value create_artifact(task_id tq.slugid, run_id integer, name text, artifact jsonb, "
            "credentials jsonb)",
        )

    async def create_task(self, task_id: str, task: Json) -> Any:
        """Create a task from a Taskcluster task definition; repeats of the same are harmless;
        returns its status.
        """
        return await call(
            self._db,
            locals(),
            "value create_task(task_id tq.slugid, task jsonb)",
        )

    async def create_tasks(self, tasks: Json) -> int:
        """Create many tasks, all or none, from [{"taskId", "task"}]; they may depend on each
        other; returns how many are new.
        """
        return await call(
            self._db,
            locals(),
            "value create_tasks(tasks jsonb)",
        )

    async def critical_path(self, task_group_id: str) -> List[CriticalPathRow]:
        """The chain of tasks that decided when a group ended, or is expected to decide it: how
        long each waited, ran and was retried, and by how much another would have come later.
        """
        return await call(
            self._db,
            locals(),
            "rows critical_path(task_group_id tq.slugid)",
        )

    async def current_scopes(self) -> List[str]:
        """The scopes of the caller, without those that others cover."""
        return await call(
            self._db,
            locals(),
            "value current_scopes()",
        )

    async def declare_worker(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        expires: Union[datetime, str],
        *,
        capacity: Optional[int] = UNSET,
        version: Optional[str] = UNSET,
    ) -> Any:
        """Make a worker and its queue known until then at least, with how many tasks it works on
        at a time and the version of its program; returns the worker.
        """
        return await call(
            self._db,
            locals(),
            "value declare_worker(task_queue_id text, worker_group text, worker_id text, "
            "expires timestamp with time zone, capacity integer, version text)",
        )

    async def defer_task(
        self,
        task_id: str,
        run_id: int,
        after: Interval,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Return a running run to its queue, to be claimed again after that time; returns the
        status of the task.
        """
        return await call(
            self._db,
            locals(),
            "value defer_task(task_id tq.slugid, run_id integer, after interval, credentials jsonb)",
        )

    async def define_task(self, task_id: str, task: Json) -> Any:
        """Create a task that depends on itself, so that it waits for schedule_task; returns its
        status.
        """
        return await call(
            self._db,
            locals(),
            "value define_task(task_id tq.slugid, task jsonb)",
        )

    async def delete_task(self, task_id: str) -> None:
        """Delete a task in any state, with its runs, artifacts and dead letter; tasks that depend
        on it stay unscheduled.
        """
        return await call(
            self._db,
            locals(),
            "void delete_task(task_id tq.slugid)",
        )

    async def dependency_results(self, task_id: str) -> List[DependencyResultsRow]:
        """State and result of each task that this one depends on, in the order of its definition;
        the state of one that has expired or was deleted is missing.
        """
        return await call(
            self._db,
            locals(),
            "rows dependency_results(task_id tq.slugid)",
        )

    async def discard_dead_letter(self, task_id: str) -> None:
        """Drop a dead letter; the task stays as it is."""
        return await call(
            self._db,
            locals(),
            "void discard_dead_letter(task_id tq.slugid)",
        )

    async def enqueue(
        self,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_id: Optional[str] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> str:
        """Create a task from SQL arguments; deadline counts from when the task becomes visible,
        NULL: none, left out: tq.default_deadline; expires from the deadline, or NULL: by
        retention; retry is how often failures and lost runs are retried, with backoff; returns
        its id.
        """
        return await call(
            self._db,
            locals(),
            "value enqueue(task_queue_id text, payload jsonb, task_id tq.slugid, "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, name text, scheduler_id text, "
            "project_id text, policy jsonb, retry integer, run_at timestamp with time zone)",
        )

    async def enqueue_tasks(
        self,
        task_queue_id: str,
        payloads: Sequence[Json],
        *,
        task_ids: Optional[Sequence[str]] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> List[str]:
        """Create a task for each payload, alike in all else, as enqueue does; returns their ids
        in the same order.
        """
        return await call(
            self._db,
            locals(),
            "value enqueue_tasks(task_queue_id text, payloads jsonb[], task_ids tq.slugid[], "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, name text, scheduler_id text, "
            "project_id text, policy jsonb, retry integer, run_at timestamp with time zone)",
        )

    async def failure_groups(
        self,
        *,
        filter: Optional[Json] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FailureGroupsRow]:
        """Tasks that a filter finds and that failed, in groups by reason and shape of their last
        error, the largest first, and the others as one without a reason; if the budget is
        used, a last row without a task says how far that came, and has the page after which to
        go on.
        """
        return await call(
            self._db,
            locals(),
            "rows failure_groups(filter jsonb, after text, max integer, budget interval)",
        )

    async def fetch(self, name: str, *, max: Optional[int] = UNSET) -> List[FetchRow]:
        """The first messages of a durable subscription that are not acknowledged."""
        return await call(
            self._db,
            locals(),
            "rows fetch(name text, max integer)",
        )

    async def find_groups(
        self,
        *,
        pattern: Optional[str] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FindGroupsRow]:
        """Task groups of tq.group_overview, the newest first, of that name, or whose name begins
        with what is before a star, until there are max, or the budget is used: then a last row
        without a group says so; go on after the page of the last row.
        """
        return await call(
            self._db,
            locals(),
            "rows find_groups(pattern text, after text, max integer, budget interval)",
        )

    async def find_tasks(
        self,
        filter: Json,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
        budget: Optional[Interval] = UNSET,
    ) -> List[FindTasksRow]:
        """Tasks that a filter finds, newest first, until there are max, or the budget is used:
        then a last row without a task says how far that came; go on after the page of the last
        row.
        """
        return await call(
            self._db,
            locals(),
            "rows find_tasks(filter jsonb, after text, max integer, budget interval)",
        )

    async def finish_artifact(
        self,
        task_id: str,
        run_id: int,
        name: str,
        upload_id: str,
        *,
        credentials: Optional[Json] = UNSET,
    ) -> None:
        """Mark the content of an object artifact as uploaded."""
        return await call(
            self._db,
            locals(),
            "void finish_artifact(task_id tq.slugid, run_id integer, name text, "
            "upload_id tq.slugid, credentials jsonb)",
        )

    async def get_artifact(self, task_id: str, run_id: int, name: str) -> Any:
        """Where the content of an artifact is, or inline the content; links are followed."""
        return await call(
            self._db,
            locals(),
            "value get_artifact(task_id tq.slugid, run_id integer, name text)",
        )

    async def get_latest_artifact(self, task_id: str, name: str) -> Any:
        """Get_artifact() of the last run."""
        return await call(
            self._db,
            locals(),
            "value get_latest_artifact(task_id tq.slugid, name text)",
        )

    async def get_task_group(self, task_group_id: str) -> Any:
        """TaskGroupId, schedulerId, expires and, once it is, sealed."""
        return await call(
            self._db,
            locals(),
            "value get_task_group(task_group_id tq.slugid)",
        )

    async def get_task_queue(self, task_queue_id: str) -> Any:
        """A queue: its settings, when a worker last asked it for work, and when it expires."""
        return await call(
            self._db,
            locals(),
            "value get_task_queue(task_queue_id text)",
        )

    async def get_worker(self, task_queue_id: str, worker_group: str, worker_id: str) -> Any:
        """A worker: when it was seen, its recent tasks, and its quarantines with their reasons."""
        return await call(
            self._db,
            locals(),
            "value get_worker(task_queue_id text, worker_group text, worker_id text)",
        )

    async def grant_queue(
        self,
        role: str,
        task_queue_id: str,
        access: str,
        *,
        workers: Optional[str] = UNSET,
    ) -> None:
        """Grant a role the scopes to produce, work, read, manage, join, depend or unique in a
        queue, or in all whose names begin like that when it ends in a star; work as workers of
        these names only.
        """
        return await call(
            self._db,
            locals(),
            "void grant_queue(role regrole, task_queue_id text, access text, workers text)",
        )

    async def grant_scopes(self, role: str, scopes: Sequence[str]) -> None:
        """Grant scopes to a role and its members; a star at the end of a scope stands for any
        text.
        """
        return await call(
            self._db,
            locals(),
            "void grant_scopes(role regrole, scopes text[])",
        )

    async def group_dot(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """The graph of a task group for Graphviz."""
        return await call(
            self._db,
            locals(),
            "value group_dot(task_group_id tq.slugid, max_nodes integer)",
        )

    async def group_gantt(self, task_group_id: str, *, max_rows: Optional[int] = UNSET) -> str:
        """The runs of a task group by worker and time, as an SVG."""
        return await call(
            self._db,
            locals(),
            "value group_gantt(task_group_id tq.slugid, max_rows integer)",
        )

    async def group_graph(
        self,
        task_group_id: str,
        *,
        max_nodes: Optional[int] = UNSET,
        link: Optional[str] = UNSET,
    ) -> str:
        """The graph of a task group as an SVG; with a link, such as /task?id=, the box of a task
        leads to that with its id.
        """
        return await call(
            self._db,
            locals(),
            "value group_graph(task_group_id tq.slugid, max_nodes integer, link text)",
        )

    async def group_mermaid(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """The graph of a task group as a flowchart of Mermaid."""
        return await call(
            self._db,
            locals(),
            "value group_mermaid(task_group_id tq.slugid, max_nodes integer)",
        )

    async def group_progress(self, task_group_id: str) -> Optional[GroupProgressRow]:
        """Number of tasks of a group in each state, its outcome, and whether it is blocked."""
        return await call(
            self._db,
            locals(),
            "row group_progress(task_group_id tq.slugid)",
        )

    async def group_tasks(self, task_group_id: str) -> List[GroupTasksRow]:
        """The tasks of a group as short rows, in the order of their creation: state, number of
        runs, and why the last one was resolved, or its progress.
        """
        return await call(
            self._db,
            locals(),
            "rows group_tasks(task_group_id tq.slugid)",
        )

    async def group_tree(
        self,
        task_group_id: str,
        *,
        max_nodes: Optional[int] = UNSET,
    ) -> List[str]:
        """A task group as lines for a terminal: each task below the last that it depends on, with
        its state.
        """
        return await call(
            self._db,
            locals(),
            "values group_tree(task_group_id tq.slugid, max_nodes integer)",
        )

    async def health(self, *, thresholds: Optional[Json] = UNSET) -> List[HealthRow]:
        """What keeps this database from working as it should: a row for each check, with a hint
        where it is not ok; thresholds of checks by name, others than the default ones.
        """
        return await call(
            self._db,
            locals(),
            "rows health(thresholds jsonb)",
        )

    async def latest_artifact_info(self, task_id: str, name: str) -> Any:
        """Artifact_info() of the last run."""
        return await call(
            self._db,
            locals(),
            "value latest_artifact_info(task_id tq.slugid, name text)",
        )

    async def list_artifacts(
        self,
        task_id: str,
        run_id: int,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListArtifactsRow]:
        """Artifacts of a run, by name; go on after the last name seen."""
        return await call(
            self._db,
            locals(),
            "rows list_artifacts(task_id tq.slugid, run_id integer, after text, max integer)",
        )

    async def list_claimed_tasks(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListClaimedTasksRow]:
        """Runs of a queue that workers have, in the order in which they were claimed; go on after
        the page of the last row.
        """
        return await call(
            self._db,
            locals(),
            "rows list_claimed_tasks(task_queue_id text, after text, max integer)",
        )

    async def list_dead_letters(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListDeadLettersRow]:
        """Tasks of a queue that failed for good, by task id; go on after the last id seen."""
        return await call(
            self._db,
            locals(),
            "rows list_dead_letters(task_queue_id text, after tq.slugid, max integer)",
        )

    async def list_dependent_tasks(
        self,
        task_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListDependentTasksRow]:
        """Tasks that name this one in their dependencies, by task id; go on after the last id
        seen.
        """
        return await call(
            self._db,
            locals(),
            "rows list_dependent_tasks(task_id tq.slugid, after tq.slugid, max integer)",
        )

    async def list_latest_artifacts(
        self,
        task_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListLatestArtifactsRow]:
        """List_artifacts() of the last run."""
        return await call(
            self._db,
            locals(),
            "rows list_latest_artifacts(task_id tq.slugid, after text, max integer)",
        )

    async def list_pending_tasks(
        self,
        task_queue_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListPendingTasksRow]:
        """Runs of a queue that can be claimed, in the order in which they became pending; go on
        after the page of the last row.
        """
        return await call(
            self._db,
            locals(),
            "rows list_pending_tasks(task_queue_id text, after text, max integer)",
        )

    async def list_task_group(
        self,
        task_group_id: str,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListTaskGroupRow]:
        """Tasks of a group, by task id; go on after the last id seen."""
        return await call(
            self._db,
            locals(),
            "rows list_task_group(task_group_id tq.slugid, after tq.slugid, max integer)",
        )

    async def list_task_queues(
        self,
        *,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListTaskQueuesRow]:
        """Queues that workers ask for work, by name; go on after the last name."""
        return await call(
            self._db,
            locals(),
            "rows list_task_queues(after text, max integer)",
        )

    async def list_workers(
        self,
        task_queue_id: str,
        *,
        quarantined: Optional[bool] = UNSET,
        after: Optional[str] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[ListWorkersRow]:
        """Workers of a queue by group and id, all or only those that are, or are not, in
        quarantine; go on after the page of the last row.
        """
        return await call(
            self._db,
            locals(),
            "rows list_workers(task_queue_id text, quarantined boolean, after text, max integer)",
        )

    async def message(self, id: int) -> Optional[MessageRow]:
        """The message of that id, whole."""
        return await call(
            self._db,
            locals(),
            "row message(id bigint)",
        )

    async def messages(
        self,
        *,
        exchange: Optional[str] = UNSET,
        pattern: Optional[str] = UNSET,
        after: Optional[int] = UNSET,
        max: Optional[int] = UNSET,
    ) -> List[MessagesRow]:
        """Messages in the order of publication, after that id, which is counted from the last one
        if it is negative; go on after the last id seen.
        """
        return await call(
            self._db,
            locals(),
            "rows messages(exchange text, pattern text, after bigint, max integer)",
        )

    async def metrics(self) -> str:
        """What the server counts, in the text form of Prometheus; a queue beyond the first
        tq.metrics_queues counts as queue="other".
        """
        return await call(
            self._db,
            locals(),
            "value metrics()",
        )

    async def move_tasks(
        self,
        task_queue_id: str,
        to_task_queue_id: str,
        *,
        max: Optional[int] = UNSET,
    ) -> MoveTasksRow:
        """Move the unscheduled, delayed and pending tasks of a queue to another one, at most so
        many; commits after each batch, so not in a transaction block; tasks is how many.
        """
        return await call(
            self._db,
            locals(),
            "call move_tasks(task_queue_id text, to_task_queue_id text, max bigint)",
        )

    async def name_task_group(self, task_group_id: str, name: str) -> None:
        """Give a group a name, which views and pictures show beside its id; NULL: none."""
        return await call(
            self._db,
            locals(),
            "void name_task_group(task_group_id tq.slugid, name text)",
        )

    async def on_group_resolved(
        self,
        task_group_id: str,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_id: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retry: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        tags: Optional[Json] = UNSET,
        name: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
    ) -> str:
        """Create a task, once, when no task of the group is unresolved any more; its payload has
        the outcome as "group"; deadline counts from then, NULL: none, left out:
        tq.default_deadline; returns its id.
        """
        return await call(
            self._db,
            locals(),
            "value on_group_resolved(task_group_id tq.slugid, task_queue_id text, payload jsonb, "
            "task_id tq.slugid, priority text, retry integer, deadline interval, tags jsonb, "
            "name text, policy jsonb)",
        )

    async def pause_cron(self, name: str, *, owner: Optional[str] = UNSET) -> List[PauseCronRow]:
        """Let a recurring task create no tasks until resume_cron()."""
        return await call(
            self._db,
            locals(),
            "rows pause_cron(name text, owner text)",
        )

    async def pause_queue(self, task_queue_id: str) -> Any:
        """Hand out no tasks of a queue until resume_queue(); nothing is lost, and time goes on."""
        return await call(
            self._db,
            locals(),
            "value pause_queue(task_queue_id text)",
        )

    async def prepare_drop(self) -> List[PrepareDropRow]:
        """Before DROP EXTENSION tq: unschedule the jobs of pg_cron that call only tq, and list
        what else is to be done, in that order: done, elsewhere, before, drop, after; statement
        NULL: by hand, or nothing.
        """
        return await call(
            self._db,
            locals(),
            "rows prepare_drop()",
        )

    async def purge(
        self,
        task_queue_id: str,
        *,
        states: Optional[Sequence[str]] = UNSET,
        older_than: Optional[Interval] = UNSET,
        max: Optional[int] = UNSET,
    ) -> int:
        """Delete resolved tasks of a queue that are in one of these states and were resolved so
        long ago, except those that unresolved tasks need; returns how many.
        """
        return await call(
            self._db,
            locals(),
            "value purge(task_queue_id text, states text[], older_than interval, max integer)",
        )

    async def quarantine_worker(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        quarantine_until: Union[datetime, str],
        *,
        quarantine_info: Optional[str] = UNSET,
    ) -> Any:
        """Let a worker claim no tasks until then; a past time ends the quarantine."""
        return await call(
            self._db,
            locals(),
            "value quarantine_worker(task_queue_id text, worker_group text, worker_id text, "
            "quarantine_until timestamp with time zone, quarantine_info text)",
        )

    async def queue_channel(self, task_queue_id: str) -> str:
        """The channel that is notified when runs of this queue become claimable."""
        return await call(
            self._db,
            locals(),
            "value queue_channel(task_queue_id text)",
        )

    async def queue_history(
        self,
        *,
        queue: Optional[str] = UNSET,
        since: Optional[Union[datetime, str]] = UNSET,
        until: Optional[Union[datetime, str]] = UNSET,
        step: Optional[Interval] = UNSET,
    ) -> List[QueueHistoryRow]:
        """What has happened in queues, a row for each step of each queue: rates, what there was
        at its end, and how long runs waited and took.
        """
        return await call(
            self._db,
            locals(),
            "rows queue_history(queue text, since timestamp with time zone, "
            "until timestamp with time zone, step interval)",
        )

    async def reclaim_task(
        self,
        task_id: str,
        run_id: int,
        *,
        wait: Optional[Interval] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Optional[ReclaimTaskRow]:
        """Extend the claim on a running run, by claim_for from now, or the claimTimeout, after a
        wait that ends with the run; the payload is left out.
        """
        return await call(
            self._db,
            locals(),
            "row reclaim_task(task_id tq.slugid, run_id integer, wait interval, "
            "claim_for interval, credentials jsonb)",
        )

    async def redrive(self, task_id: str) -> Any:
        """Run a dead letter again: as a rerun, or past the deadline as a new task that refers to
        the old one; returns the status of the task that is to run.
        """
        return await call(
            self._db,
            locals(),
            "value redrive(task_id tq.slugid)",
        )

    async def redrive_queue(self, task_queue_id: str, *, max: Optional[int] = UNSET) -> int:
        """Redrive() up to that many dead letters of a queue, in the order in which they failed,
        skipping those that are locked or that a rule refuses; returns how many.
        """
        return await call(
            self._db,
            locals(),
            "value redrive_queue(task_queue_id text, max integer)",
        )

    async def report_completed(
        self,
        task_id: str,
        run_id: int,
        *,
        result: Optional[Json] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as completed, with a result for result(); returns the status of
        the task.
        """
        return await call(
            self._db,
            locals(),
            "value report_completed(task_id tq.slugid, run_id integer, result jsonb, "
            "credentials jsonb)",
        )

    async def report_exception(
        self,
        task_id: str,
        run_id: int,
        reason: str,
        *,
        error: Optional[Json] = UNSET,
        retry_delay: Optional[Interval] = UNSET,
        retries_left: Optional[int] = UNSET,
        error_message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as exception, with error, error_message, retry_delay and
        retries_left as report_failed() has; by default worker-shutdown and intermittent-task
        are retried while retries are left.
        """
        return await call(
            self._db,
            locals(),
            "value report_exception(task_id tq.slugid, run_id integer, reason text, error jsonb, "
            "retry_delay interval, retries_left integer, error_message text, credentials jsonb)",
        )

    async def report_failed(
        self,
        task_id: str,
        run_id: int,
        *,
        error: Optional[Json] = UNSET,
        retry_delay: Optional[Interval] = UNSET,
        retries_left: Optional[int] = UNSET,
        error_message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Resolve a running run as failed, with an error, any JSON, and an error_message, which
        are kept as {message, details} if there is a message; retry_delay and retries_left
        override the policy for the next attempts; returns the status of the task.
        """
        return await call(
            self._db,
            locals(),
            "value report_failed(task_id tq.slugid, run_id integer, error jsonb, "
            "retry_delay interval, retries_left integer, error_message text, credentials jsonb)",
        )

    async def report_html(self, task_group_id: str, *, max_nodes: Optional[int] = UNSET) -> str:
        """A task group as a page of HTML that needs no other file: progress, failures, graph and
        runs.
        """
        return await call(
            self._db,
            locals(),
            "value report_html(task_group_id tq.slugid, max_nodes integer)",
        )

    async def report_progress(
        self,
        task_id: str,
        run_id: int,
        done: int,
        total: int,
        *,
        message: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> Any:
        """Show how far a running run is: done of total, in any unit, or NULL; stored once a
        second at most; returns the status of the task.
        """
        return await call(
            self._db,
            locals(),
            "value report_progress(task_id tq.slugid, run_id integer, done bigint, total bigint, "
            "message text, credentials jsonb)",
        )

    async def rerun_plan(
        self,
        task_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> List[RerunPlanRow]:
        """What rerun_task() would do, without doing it: a row for each task that would get a run
        (rerun), wait again (wait), wait as before (waits), stay as it is (left), or make it
        refuse (refused), and why.
        """
        return await call(
            self._db,
            locals(),
            "rows rerun_plan(task_id tq.slugid, deadline interval, downstream boolean)",
        )

    async def rerun_task(
        self,
        task_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> Any:
        """Add a pending run to a resolved task, with a new deadline from now if one is given;
        downstream: the resolved tasks that depend on it wait for it again; returns its status.
        """
        return await call(
            self._db,
            locals(),
            "value rerun_task(task_id tq.slugid, deadline interval, downstream boolean)",
        )

    async def reschedule_task(
        self,
        task_id: str,
        *,
        run_at: Optional[Union[datetime, str]] = UNSET,
    ) -> Any:
        """Make the pending or delayed run of a task claimable at that time, NULL: now; returns
        its status.
        """
        return await call(
            self._db,
            locals(),
            "value reschedule_task(task_id tq.slugid, run_at timestamp with time zone)",
        )

    @overload
    async def resolve(self, *, reports: Json) -> List[ResolveRow]:
        """Resolve many runs, each as its report says: [{taskId, runId, reason, result, error,
        errorMessage, retryDelay, retriesLeft, credentials}]; returns an outcome for each
        instead of raising an error.
        """

    @overload
    async def resolve(
        self,
        *,
        task_ids: Sequence[str],
        run_ids: Sequence[int],
        reason: Optional[str] = UNSET,
        credentials: Optional[Json] = UNSET,
    ) -> List[ResolveOfSeveralRow]:
        """Resolve many runs for one reason; returns an outcome for each instead of raising an
        error.
        """

    async def resolve(self, **given: Any) -> Any:
        return await call(
            self._db,
            given,
            "rows resolve(reports jsonb)",
            "rows resolve(task_ids tq.slugid[], run_ids integer[], reason text, credentials jsonb)",
        )

    async def resolve_and_claim(
        self,
        reports: Json,
        task_queue_id: str,
        *,
        worker_group: Optional[str] = UNSET,
        worker_id: Optional[str] = UNSET,
        tasks: Optional[int] = UNSET,
        claim_for: Optional[Interval] = UNSET,
        definition: Optional[bool] = UNSET,
    ) -> List[ResolveAndClaimRow]:
        """Resolve runs as resolve(reports) does, then claim up to that many as claim_work() does;
        returns first an outcome for each report, then the claims.
        """
        return await call(
            self._db,
            locals(),
            "rows resolve_and_claim(reports jsonb, task_queue_id text, worker_group text, "
            "worker_id text, tasks integer, claim_for interval, definition boolean)",
        )

    async def result(self, task_id: str) -> Any:
        """The result of the last run, as given to report_completed(), or the output given to
        skip_task(); NULL if there is none.
        """
        return await call(
            self._db,
            locals(),
            "value result(task_id tq.slugid)",
        )

    async def resume_cron(self, name: str, *, owner: Optional[str] = UNSET) -> List[ResumeCronRow]:
        """Let a recurring task create tasks again, and make its job in pg_cron again if that is
        missing.
        """
        return await call(
            self._db,
            locals(),
            "rows resume_cron(name text, owner text)",
        )

    async def resume_queue(self, task_queue_id: str) -> Any:
        """Hand out tasks of a paused queue again, first to the workers that wait."""
        return await call(
            self._db,
            locals(),
            "value resume_queue(task_queue_id text)",
        )

    async def retry_task_group(
        self,
        task_group_id: str,
        *,
        deadline: Optional[Interval] = UNSET,
        reasons: Optional[Sequence[str]] = UNSET,
        downstream: Optional[bool] = UNSET,
    ) -> int:
        """Rerun the tasks of a group that ended without success for these reasons, by default any
        but canceled, with a new deadline from now if one is given; downstream: what depends on
        them waits for them again; returns how many tasks run again or wait again.
        """
        return await call(
            self._db,
            locals(),
            "value retry_task_group(task_group_id tq.slugid, deadline interval, reasons text[], "
            "downstream boolean)",
        )

    async def revoke_queue(self, role: str, task_queue_id: str, access: str) -> None:
        """Revoke what grant_queue() with the same arguments has granted, and nothing that another
        grant gives as well.
        """
        return await call(
            self._db,
            locals(),
            "void revoke_queue(role regrole, task_queue_id text, access text)",
        )

    async def revoke_scopes(self, role: str, scopes: Sequence[str]) -> None:
        """Revoke scopes that were granted to a role, each as it was granted."""
        return await call(
            self._db,
            locals(),
            "void revoke_scopes(role regrole, scopes text[])",
        )

    async def rotate_secret(self, *, revoke: Optional[bool] = UNSET) -> None:
        """Sign credentials with a new secret from now on; those of the claims that are out, and
        what on_group_resolved() has registered with them, stay valid, unless revoke is true.
        """
        return await call(
            self._db,
            locals(),
            "void rotate_secret(revoke boolean)",
        )

    async def run_cron_now(self, name: str, *, owner: Optional[str] = UNSET) -> str:
        """Create a task of a recurring task now, apart from its schedule; returns its id, or
        NULL: skipped, because the last one is unresolved.
        """
        return await call(
            self._db,
            locals(),
            "value run_cron_now(name text, owner text)",
        )

    async def schedule_cron(
        self,
        name: str,
        schedule: str,
        task_queue_id: str,
        *,
        payload: Optional[Json] = UNSET,
        task_group_id: Optional[str] = UNSET,
        dependencies: Optional[Sequence[str]] = UNSET,
        requires: Optional[str] = UNSET,
        priority: Optional[str] = UNSET,
        retries: Optional[int] = UNSET,
        deadline: Optional[Interval] = UNSET,
        expires: Optional[Interval] = UNSET,
        delay: Optional[Interval] = UNSET,
        routes: Optional[Sequence[str]] = UNSET,
        scopes: Optional[Sequence[str]] = UNSET,
        tags: Optional[Json] = UNSET,
        extra: Optional[Json] = UNSET,
        scheduler_id: Optional[str] = UNSET,
        project_id: Optional[str] = UNSET,
        policy: Optional[Json] = UNSET,
        retry: Optional[int] = UNSET,
        overlap: Optional[str] = UNSET,
    ) -> List[ScheduleCronRow]:
        """Have pg_cron create a task at each time of a schedule, as enqueue does, or change that;
        NULL: no deadline, and the default of enqueue of all else; returns one row.
        """
        return await call(
            self._db,
            locals(),
            "rows schedule_cron(name text, schedule text, task_queue_id text, payload jsonb, "
            "task_group_id tq.slugid, dependencies tq.slugid[], requires text, priority text, "
            "retries integer, deadline interval, expires interval, delay interval, routes text[], "
            "scopes text[], tags jsonb, extra jsonb, scheduler_id text, project_id text, "
            "policy jsonb, retry integer, overlap text)",
        )

    async def schedule_task(self, task_id: str) -> Any:
        """Make an unscheduled task pending regardless of its dependencies; returns its status."""
        return await call(
            self._db,
            locals(),
            "value schedule_task(task_id tq.slugid)",
        )

    async def seal_task_group(self, task_group_id: str) -> Any:
        """Seal a group permanently, so that no more tasks can be created in it."""
        return await call(
            self._db,
            locals(),
            "value seal_task_group(task_group_id tq.slugid)",
        )

    async def set_queue(self, task_queue_id: str, settings: Json) -> Any:
        """Change settings of a queue: limits, timeouts, retention, default policy; null removes
        one; returns all.
        """
        return await call(
            self._db,
            locals(),
            "value set_queue(task_queue_id text, settings jsonb)",
        )

    async def skip_task(self, task_id: str, *, output: Optional[Json] = UNSET) -> Any:
        """Resolve an unscheduled or pending task as completed, skipped, so that its dependents go
        on; output is its result; returns its status.
        """
        return await call(
            self._db,
            locals(),
            "value skip_task(task_id tq.slugid, output jsonb)",
        )

    @overload
    async def slugid(self) -> str:
        """A new slugid, which begins with the time unless tq.ordered_ids is off."""

    @overload
    async def slugid(self, *, ordered: bool) -> str:
        """The same; false: one that is random as a whole."""

    async def slugid(self, **given: Any) -> Any:
        return await call(
            self._db,
            given,
            "value slugid()",
            "value slugid(ordered boolean)",
        )

    async def stable_slugid(self, name: str) -> str:
        """The slugid of a name: the same for the same name, always and everywhere."""
        return await call(
            self._db,
            locals(),
            "value stable_slugid(name text)",
        )

    async def status(self, task_id: str) -> Any:
        """The task status structure: state, retriesLeft, runs."""
        return await call(
            self._db,
            locals(),
            "value status(task_id tq.slugid)",
        )

    async def statuses(self, task_ids: Sequence[str]) -> List[StatusesRow]:
        """Status of each of these tasks; unknown ids are left out."""
        return await call(
            self._db,
            locals(),
            "rows statuses(task_ids tq.slugid[])",
        )

    async def subscribe(self, name: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Create a durable subscription, or bind it to another exchange."""
        return await call(
            self._db,
            locals(),
            "void subscribe(name text, exchange text, pattern text)",
        )

    async def task(self, task_id: str) -> Any:
        """The task definition, with every default filled in."""
        return await call(
            self._db,
            locals(),
            "value task(task_id tq.slugid)",
        )

    async def task_name_stats(
        self,
        *,
        queue: Optional[str] = UNSET,
        since: Optional[Union[datetime, str]] = UNSET,
        until: Optional[Union[datetime, str]] = UNSET,
    ) -> List[TaskNameStatsRow]:
        """Runs that have ended, by queue and name of their task, on the days between these times:
        how many, and how long they waited and took; name is NULL for all further names of a
        queue together.
        """
        return await call(
            self._db,
            locals(),
            "rows task_name_stats(queue text, since timestamp with time zone, "
            "until timestamp with time zone)",
        )

    async def task_queue_counts(self, task_queue_id: str) -> Any:
        """PendingTasks and claimedTasks of a queue."""
        return await call(
            self._db,
            locals(),
            "value task_queue_counts(task_queue_id text)",
        )

    async def taskbroker_policy(self, activation: Json) -> Any:
        """The policy that corresponds to a Taskbroker activation."""
        return await call(
            self._db,
            locals(),
            "value taskbroker_policy(activation jsonb)",
        )

    async def taskbroker_status(self, task_id: str) -> str:
        """The state of a task as a Taskbroker status."""
        return await call(
            self._db,
            locals(),
            "value taskbroker_status(task_id tq.slugid)",
        )

    async def tasks(self, task_ids: Sequence[str]) -> List[TasksRow]:
        """Definition of each of these tasks; unknown ids are left out."""
        return await call(
            self._db,
            locals(),
            "rows tasks(task_ids tq.slugid[])",
        )

    async def top(self, *, max_rows: Optional[int] = UNSET) -> List[str]:
        """One screen for \watch: health, queues, workers, groups in progress and the progress of
        running tasks, in lines of at most 98 characters.
        """
        return await call(
            self._db,
            locals(),
            "values top(max_rows integer)",
        )

    async def trace(self, task_group_id: str) -> Any:
        """What has ended of a task group, as a trace in the JSON of OTLP: tasks, their waits and
        runs.
        """
        return await call(
            self._db,
            locals(),
            "value trace(task_group_id tq.slugid)",
        )

    async def trace_task(self, task_id: str) -> Any:
        """What has ended of a task, as a trace in the JSON of OTLP."""
        return await call(
            self._db,
            locals(),
            "value trace_task(task_id tq.slugid)",
        )

    async def unbind(self, channel: str, exchange: str, *, pattern: Optional[str] = UNSET) -> None:
        """Remove a binding; also disables a default channel."""
        return await call(
            self._db,
            locals(),
            "void unbind(channel text, exchange text, pattern text)",
        )

    async def unschedule_cron(
        self,
        name: str,
        *,
        owner: Optional[str] = UNSET,
    ) -> List[UnscheduleCronRow]:
        """End a recurring task; the tasks that it has created stay."""
        return await call(
            self._db,
            locals(),
            "rows unschedule_cron(name text, owner text)",
        )

    async def unsubscribe(self, name: str) -> None:
        """Drop a durable subscription."""
        return await call(
            self._db,
            locals(),
            "void unsubscribe(name text)",
        )

    async def upkeep(self) -> List[UpkeepRow]:
        """One pass of maintenance: deadlines, timeouts, expired claims, delayed runs, expiry,
        and, outside of a transaction block, publication.
        """
        return await call(
            self._db,
            locals(),
            "rows upkeep()",
        )

    async def wait_for_task(
        self,
        task_id: str,
        *,
        wait: Optional[Interval] = UNSET,
    ) -> WaitForTaskRow:
        """Wait until a task is resolved, without holding a snapshot; result is its state, blocked
        if it can never start, or unresolved when the time is over.
        """
        return await call(
            self._db,
            locals(),
            "call wait_for_task(task_id tq.slugid, wait interval)",
        )

    async def wait_for_task_group(
        self,
        task_group_id: str,
        *,
        wait: Optional[Interval] = UNSET,
    ) -> WaitForTaskGroupRow:
        """Wait until no task of a group is unresolved, without holding a snapshot; result is its
        outcome, blocked if what is left can never start, or unresolved when the time is over.
        """
        return await call(
            self._db,
            locals(),
            "call wait_for_task_group(task_group_id tq.slugid, wait interval)",
        )

    @overload
    async def wait_for_work(self, *, task_queue_id: str, wait: Optional[Interval] = UNSET) -> None:
        """Sleep until a task of the queue can be claimed, at most that long, at most an hour;
        holds no snapshot, so not in a transaction block.
        """

    @overload
    async def wait_for_work(
        self,
        *,
        task_queue_ids: Sequence[str],
        wait: Optional[Interval] = UNSET,
    ) -> None:
        """Sleep until a task of any of these queues, or patterns like app/*, can be claimed; the
        rest as for one queue.
        """

    async def wait_for_work(self, **given: Any) -> Any:
        return await call(
            self._db,
            given,
            "call wait_for_work(task_queue_id text, wait interval)",
            "call wait_for_work(task_queue_ids text[], wait interval)",
        )

    async def why(self, task_id: str) -> List[WhyRow]:
        """Why a task does not move, or how it ended; and what to do."""
        return await call(
            self._db,
            locals(),
            "rows why(task_id tq.slugid)",
        )

    async def worker_channel(self, worker_group: str, worker_id: str) -> str:
        """The channel that is notified when a running run is taken from this worker: canceled,
        expired, timed out, removed or deleted.
        """
        return await call(
            self._db,
            locals(),
            "value worker_channel(worker_group text, worker_id text)",
        )

    async def worker_removed(
        self,
        task_queue_id: str,
        worker_group: str,
        worker_id: str,
        *,
        reason: Optional[str] = UNSET,
    ) -> List[WorkerRemovedRow]:
        """Resolve the runs of a worker that is gone, or of those whose worker_id begins like
        that, as worker-shutdown, so that they are retried; the reason becomes their error.
        """
        return await call(
            self._db,
            locals(),
            "rows worker_removed(task_queue_id text, worker_group text, worker_id text, "
            "reason text)",
        )


@overload
def call_on(db: Database) -> Calls:
    ...


@overload
def call_on(db: AsyncDatabase) -> AsyncCalls:
    ...


def call_on(db: Any) -> Any:
    """The functions of schema tq, on a connection or a pool of either kind."""
    return AsyncCalls(db) if is_async(db) else Calls(db)


@overload
def enqueue(
    db: Database,
    queue: str,
    payload: Json = UNSET,
    *,
    task_id: Optional[str] = UNSET,
    task_group_id: Optional[str] = UNSET,
    dependencies: Optional[Sequence[str]] = UNSET,
    requires: Optional[str] = UNSET,
    priority: Optional[Priority] = UNSET,
    retries: Optional[int] = UNSET,
    deadline: Optional[Interval] = UNSET,
    expires: Optional[Interval] = UNSET,
    delay: Optional[Interval] = UNSET,
    routes: Optional[Sequence[str]] = UNSET,
    scopes: Optional[Sequence[str]] = UNSET,
    tags: Optional[Json] = UNSET,
    extra: Optional[Json] = UNSET,
    name: Optional[str] = UNSET,
    scheduler_id: Optional[str] = UNSET,
    project_id: Optional[str] = UNSET,
    policy: Optional[Json] = UNSET,
    retry: Optional[int] = UNSET,
    run_at: Optional[Union[datetime, str]] = UNSET,
) -> str:
    ...


@overload
def enqueue(
    db: AsyncDatabase,
    queue: str,
    payload: Json = UNSET,
    *,
    task_id: Optional[str] = UNSET,
    task_group_id: Optional[str] = UNSET,
    dependencies: Optional[Sequence[str]] = UNSET,
    requires: Optional[str] = UNSET,
    priority: Optional[Priority] = UNSET,
    retries: Optional[int] = UNSET,
    deadline: Optional[Interval] = UNSET,
    expires: Optional[Interval] = UNSET,
    delay: Optional[Interval] = UNSET,
    routes: Optional[Sequence[str]] = UNSET,
    scopes: Optional[Sequence[str]] = UNSET,
    tags: Optional[Json] = UNSET,
    extra: Optional[Json] = UNSET,
    name: Optional[str] = UNSET,
    scheduler_id: Optional[str] = UNSET,
    project_id: Optional[str] = UNSET,
    policy: Optional[Json] = UNSET,
    retry: Optional[int] = UNSET,
    run_at: Optional[Union[datetime, str]] = UNSET,
) -> Awaitable[str]:
    ...


def enqueue(db: AnyDatabase, queue: str, payload: Json = UNSET, **options: Any) -> Any:
    """Create a task from SQL arguments; deadline counts from when the task becomes visible, NULL:
    none, left out: tq.default_deadline; expires from the deadline, or NULL: by retention;
    retry is how often failures and lost runs are retried, with backoff; returns its id.
    """
    return call_on(db).enqueue(queue, payload=payload, **options)


@overload
def enqueue_many(
    db: Database,
    queue: str,
    payloads: Sequence[Json],
    *,
    task_ids: Optional[Sequence[str]] = UNSET,
    task_group_id: Optional[str] = UNSET,
    dependencies: Optional[Sequence[str]] = UNSET,
    requires: Optional[str] = UNSET,
    priority: Optional[Priority] = UNSET,
    retries: Optional[int] = UNSET,
    deadline: Optional[Interval] = UNSET,
    expires: Optional[Interval] = UNSET,
    delay: Optional[Interval] = UNSET,
    routes: Optional[Sequence[str]] = UNSET,
    scopes: Optional[Sequence[str]] = UNSET,
    tags: Optional[Json] = UNSET,
    extra: Optional[Json] = UNSET,
    name: Optional[str] = UNSET,
    scheduler_id: Optional[str] = UNSET,
    project_id: Optional[str] = UNSET,
    policy: Optional[Json] = UNSET,
    retry: Optional[int] = UNSET,
    run_at: Optional[Union[datetime, str]] = UNSET,
) -> List[str]:
    ...


@overload
def enqueue_many(
    db: AsyncDatabase,
    queue: str,
    payloads: Sequence[Json],
    *,
    task_ids: Optional[Sequence[str]] = UNSET,
    task_group_id: Optional[str] = UNSET,
    dependencies: Optional[Sequence[str]] = UNSET,
    requires: Optional[str] = UNSET,
    priority: Optional[Priority] = UNSET,
    retries: Optional[int] = UNSET,
    deadline: Optional[Interval] = UNSET,
    expires: Optional[Interval] = UNSET,
    delay: Optional[Interval] = UNSET,
    routes: Optional[Sequence[str]] = UNSET,
    scopes: Optional[Sequence[str]] = UNSET,
    tags: Optional[Json] = UNSET,
    extra: Optional[Json] = UNSET,
    name: Optional[str] = UNSET,
    scheduler_id: Optional[str] = UNSET,
    project_id: Optional[str] = UNSET,
    policy: Optional[Json] = UNSET,
    retry: Optional[int] = UNSET,
    run_at: Optional[Union[datetime, str]] = UNSET,
) -> Awaitable[List[str]]:
    ...


def enqueue_many(db: AnyDatabase, queue: str, payloads: Sequence[Json], **options: Any) -> Any:
    """Create a task for each payload, alike in all else, as enqueue does; returns their ids in
    the same order.
    """
    return call_on(db).enqueue_tasks(queue, payloads, **options)
