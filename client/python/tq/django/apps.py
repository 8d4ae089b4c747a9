from __future__ import annotations

from typing import Any, Iterable, Iterator

from django.apps import AppConfig
from django.core import checks
from django.db import connections

from .backend import Backend
from .compat import task_backends


def backends() -> Iterator[Backend]:
    """The backends of TASKS that are of tq."""
    return (backend for backend in task_backends.all() if isinstance(backend, Backend))


def check_extension(
    databases: Iterable[str] | None = None, **kwargs: Any
) -> Iterator[checks.CheckMessage]:
    """Whether the databases that are checked have the extension, which migrate makes."""
    for alias in {backend.database for backend in backends()} & set(databases or ()):
        if connections[alias].vendor != "postgresql":
            continue
        with connections[alias].cursor() as cursor:
            cursor.execute(
                "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'tq'), EXISTS (SELECT FROM pg_available_extensions WHERE name = 'tq')"
            )
            there, available = cursor.fetchone()
        if not available and not there:
            yield checks.Error(
                f"The server of the database {alias!r} has no extension tq.",
                hint="Install the package postgresql-NN-tq there.",
                id="tq.E005",
            )
        elif not there:
            yield checks.Warning(
                f"The database {alias!r} has no extension tq yet.",
                hint="manage.py migrate tq makes it, or CREATE EXTENSION tq.",
                id="tq.W006",
            )


class TqConfig(AppConfig):
    name = "tq.django"
    label = "tq"
    verbose_name = "tq"

    def ready(self) -> None:
        checks.register(check_extension, checks.Tags.database)
