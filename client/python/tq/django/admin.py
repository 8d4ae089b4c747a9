"""Pages of the admin that list tasks by tq.find_tasks(), show one, and act on those ticked or found.

What a user may do is what Django lets them (view, change, delete), and the role of the
connection; what the database refuses is shown.  Each act has an entry in Django's log."""

from __future__ import annotations

import json
from typing import Any, Iterable

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from .apps import backends
from .backend import LEVELS, RESULT, SLUGID, Backend, json_of
from .models import TaskEntry

PAGE = 100
STATES = ("unscheduled", "pending", "running", "completed", "failed", "exception")
# Action: what it is called, the function for one task, the action of tq.apply().
ACTIONS = {
    "cancel": ("Cancel", "tq.cancel_task(%s)", "cancel"),
    "rerun": ("Run again", "tq.rerun_task(%s)", "rerun"),
    "now": ("Run now what is delayed", "tq.reschedule_task(%s)", "delay"),
    "schedule": ("Run without waiting for dependencies", "tq.schedule_task(%s)", "schedule"),
    "redrive": ("Run again what is a dead letter", "tq.redrive(%s)", "redrive"),
    "discard": ("Discard the dead letter", "tq.discard_dead_letter(%s)", "discard"),
    "delete": ("Delete", "tq.delete_task(%s)", "delete"),
    **{
        f"priority {level}": (
            f"Change the priority to {level}",
            f"tq.change_task_priority(%s, '{level}')",
            "priority",
        )
        for _, level in LEVELS
    },
}
FIND = """SELECT task_id::text, task_queue_id, name, state, reason, priority, created, resolved, error, page
    FROM tq.find_tasks(%s::jsonb, after => %s, max => %s)"""
APPLY = "CALL tq.apply(%s::jsonb, %s, %s::jsonb, dry_run => %s)"
RUNS = """SELECT run_id, state, coalesce(reason_resolved, reason_created) AS reason, worker_group || '/' || worker_id AS worker,
    scheduled, visible_at, started, resolved, done, total, message, error
    FROM tq.run_overview WHERE task_id = %s ORDER BY run_id"""
WHY = "SELECT reason, detail, advice FROM tq.why(%s)"


class Json(forms.JSONField):
    """One line, empty where nothing is given."""

    widget = forms.TextInput

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)


class Filter(forms.Form):
    """The keys of a filter of tq that the list has."""

    backend = forms.ChoiceField(required=False)
    queue = forms.CharField(
        required=False, help_text="of tq; a star at the end stands for all that begin so"
    )
    state = forms.MultipleChoiceField(required=False, choices=[(state, state) for state in STATES])
    name = forms.CharField(required=False, help_text="shop.tasks.mail, or shop.*")
    error = forms.CharField(required=False, help_text="has this text")
    payload = Json(required=False, help_text='contains {"args": [7]}')
    tags = Json(required=False, help_text='contain {"app": "shop"}')
    created_after = forms.DateTimeField(required=False)
    created_before = forms.DateTimeField(required=False)

    def __init__(self, found: dict[str, Backend], *args: Any) -> None:
        super().__init__(*args)
        self.fields["backend"].choices = [(alias, alias) for alias in found]
        self.found = found

    def backend_of(self) -> Backend:
        return self.found.get(self.data.get("backend", "")) or next(iter(self.found.values()))

    def of_tq(self) -> dict[str, Any]:
        """Returns it as tq has it: of the queues of the backend, if no other is named."""
        given: dict[str, Any] = {"queue": self.backend_of().prefix + "*"}
        names = {"created_after": "createdAfter", "created_before": "createdBefore"}
        for key, value in self.cleaned_data.items():
            if key != "backend" and value not in ("", None, []):
                given[names.get(key, key)] = value.isoformat() if key in names else value
        return given


def rows(cursor: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def said(error: DatabaseError) -> str:
    """Returns what the server says of an error."""
    diag = getattr(error.__cause__, "diag", None)
    parts = diag and [diag.message_primary, diag.message_detail, diag.message_hint]
    return "; ".join(filter(None, parts or [])) or str(error)


@admin.register(TaskEntry)
class TaskAdmin(admin.ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_deleted_objects(self, *args: Any) -> Any:
        raise PermissionDenied

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        raise PermissionDenied

    def history_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        return redirect("admin:tq_taskentry_change", object_id)

    # ---- actions ----

    def actions_of(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Returns the actions that Django lets a user do."""
        change, delete = self.has_change_permission(request), self.has_delete_permission(request)
        return [
            (action, ACTIONS[action][0])
            for action in ACTIONS
            if (delete if action in ("delete", "discard") else change)
        ]

    def _check(self, request: HttpRequest, action: str) -> None:
        if action not in dict(self.actions_of(request)):
            raise PermissionDenied

    def _log(self, request: HttpRequest, object_id: str, text: str, action: str) -> None:
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type=ContentType.objects.get_for_model(TaskEntry),
            object_id=object_id,
            object_repr=object_id[:200],
            action_flag=DELETION if action == "delete" else CHANGE,
            change_message=text,
        )

    def act(
        self, request: HttpRequest, backend: Backend, action: str, task_ids: Iterable[str]
    ) -> None:
        """Does an action with each task that is ticked; what is refused is shown."""
        self._check(request, action)
        label, function, _ = ACTIONS[action]
        done = 0
        for task_id in filter(SLUGID.fullmatch, task_ids):
            try:
                with transaction.atomic(using=backend.database):
                    with backend.connection.cursor() as cursor:
                        cursor.execute(f"SELECT {function}", [task_id])
                self._log(request, task_id, label, action)
                done += 1
            except DatabaseError as error:
                messages.error(request, f"{task_id}: {said(error)}")
        if done:
            messages.success(request, f"{label}: {done} task{'s' * (done != 1)}")

    def apply(
        self,
        request: HttpRequest,
        backend: Backend,
        action: str,
        given: dict[str, Any],
        dry_run: bool,
    ) -> tuple[Any, ...] | None:
        """Does an action with all tasks that a filter finds; returns how many, refused and found."""
        self._check(request, action)
        label, _, name = ACTIONS[action]
        arguments: dict[str, Any] = {}
        if name == "priority":
            arguments["priority"] = action.split()[1]
        elif name == "delay":
            arguments["until"] = timezone.now().isoformat()
        try:
            with backend.connection.cursor() as cursor:
                cursor.execute(APPLY, [json.dumps(given), name, json.dumps(arguments), dry_run])
                tasks, refused, found = cursor.fetchone()
        except DatabaseError as error:
            messages.error(request, said(error))
            return None
        refused, found = json_of(refused) or {}, json_of(found) or {}
        if not dry_run:
            self._log(request, "*", f"{label}: {json.dumps(given)}: {tasks}", action)
            messages.success(request, f"{label}: {tasks} task{'s' * (tasks != 1)}")
            for reason, count in refused.items():
                messages.warning(request, f"not done with {count}: {reason}")
        return tasks, refused, found

    # ---- pages ----

    def _page(
        self, request: HttpRequest, name: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        common = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        return TemplateResponse(request, f"admin/tq/{name}.html", {**common, **context})

    # tq.apply() commits, and so is not of a transaction of the request.
    @transaction.non_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        found = {backend.alias: backend for backend in backends()}
        if not found:
            raise Http404("TASKS has no backend of tq")
        form = Filter(found, request.GET)
        backend = form.backend_of()
        given = form.of_tq() if form.is_valid() else None
        if request.method == "POST":
            action = request.POST.get("action", "")
            if not request.POST.get("all"):
                self.act(request, backend, action, request.POST.getlist("_selected_action"))
            elif given is not None:
                sure = bool(request.POST.get("sure"))
                result = self.apply(request, backend, action, given, not sure)
                if result and not sure:
                    context = {"action": action, "label": ACTIONS[action][0], "result": result}
                    return self._page(request, "sure", f"{ACTIONS[action][0]}?", context)
            return redirect(request.get_full_path())
        tasks: list[dict[str, Any]] = []
        if given is not None:
            try:
                with backend.connection.cursor() as cursor:
                    after = request.GET.get("after") or None
                    cursor.execute(FIND, [json.dumps(given), after, PAGE])
                    tasks = rows(cursor)
            except DatabaseError as error:
                messages.error(request, said(error))
        # After a page that is full, or for which the budget was used, there may be more.
        last = tasks[-1] if tasks and (len(tasks) == PAGE or not tasks[-1]["task_id"]) else None
        query = request.GET.copy()
        query["after"] = last["page"] if last else ""
        context = {
            "form": form,
            "tasks": [task for task in tasks if task["task_id"]],
            "backend": backend,
            "several": len(found) > 1,
            "actions": self.actions_of(request),
            "next": query.urlencode() if last else "",
            "unfinished": last if last and not last["task_id"] else None,
        }
        return self._page(request, "tasks", "Tasks", context)

    @transaction.non_atomic_requests
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        # The log of Django links to it with each "_" as "_5F", which no id of 22 characters is.
        task_id = object_id if SLUGID.fullmatch(object_id) else unquote(object_id)
        found = {backend.alias: backend for backend in backends()}
        if not found or not SLUGID.fullmatch(task_id):
            raise Http404
        backend = Filter(found, request.GET).backend_of()
        if request.method == "POST":
            self.act(request, backend, request.POST.get("action", ""), [task_id])
            there = self._read(backend, task_id)
            return redirect(request.get_full_path() if there else self._list())
        context = self._read(backend, task_id)
        if context is None:
            raise Http404
        context["actions"] = self.actions_of(request)
        context["log"] = LogEntry.objects.filter(
            content_type=ContentType.objects.get_for_model(TaskEntry), object_id=task_id
        ).select_related("user")
        return self._page(request, "task", task_id, context)

    def _list(self) -> str:
        return reverse("admin:tq_taskentry_changelist", current_app=self.admin_site.name)

    def _read(self, backend: Backend, task_id: str) -> dict[str, Any] | None:
        """Returns what the page of a task shows, or nothing where there is none to be seen."""
        with backend.connection.cursor() as cursor:
            cursor.execute(RESULT, [task_id, task_id])
            row = cursor.fetchone()
            if row is None:
                return None
            status, definition = json_of(row[0]), json_of(row[1])
            cursor.execute(WHY, [task_id])
            why = rows(cursor)
            cursor.execute(RUNS, [task_id])
            runs = rows(cursor)
        for run in runs:
            error = json_of(run["error"])
            details = error.get("details") if isinstance(error, dict) else None
            run["message_of_error"] = error.get("message") if isinstance(error, dict) else None
            run["traceback"] = details.get("traceback") if isinstance(details, dict) else None
            if error is not None and not run["traceback"]:
                run["traceback"] = json.dumps(error, indent=2, ensure_ascii=False)
        return {
            "task_id": task_id,
            "status": status,
            "task": definition,
            "payload": json.dumps(definition["payload"], indent=2, ensure_ascii=False),
            "result": row[2] if status["state"] == "completed" else None,
            "why": why,
            "runs": runs,
        }
