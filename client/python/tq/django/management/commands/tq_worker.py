"""manage.py tq_worker: runs the tasks of a backend of tq, until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections, connections
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from tq import Context, Outcome, Worker

from ...backend import Backend
from ...compat import task_backends
from ...work import work_of


def source_of(alias: str) -> str:
    """Returns what a worker connects with: that of DATABASES, as libpq has it."""
    given = dict(connections[alias].get_connection_params())
    role = connections[alias].settings_dict["OPTIONS"].get("assume_role")
    if role:
        given["options"] = f"{given.get('options', '')} -c role={role}".strip()
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    return make_conninfo(**{key: value for key, value in given.items() if key in known})


class Command(BaseCommand):
    help = "Runs the tasks of a backend of tq, until SIGTERM or SIGINT."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--backend", default="default", help="its alias in TASKS")
        parser.add_argument(
            "--queue",
            action="append",
            help="a queue of Django, or several, of which the first has precedence; without it all of QUEUES",
        )
        parser.add_argument("--concurrency", type=int, default=10, help="threads, 10 without it")
        parser.add_argument(
            "--claim-for",
            help="an interval such as '1 min', after which a task of a worker that was killed runs again",
        )
        parser.add_argument(
            "--stop-timeout",
            type=float,
            default=30,
            help="seconds for what is running after SIGTERM, before it is given back; 30 without it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        backend = task_backends[options["backend"]]
        if not isinstance(backend, Backend):
            raise CommandError(f"TASKS[{options['backend']!r}] is no backend of tq.")
        names = options["queue"] or sorted(backend.queues)
        if not names:
            raise CommandError("QUEUES of the backend is empty: name queues with --queue.")
        if unknown := backend.queues and set(names) - backend.queues:
            raise CommandError(f"QUEUES of the backend has no {', '.join(sorted(unknown))}.")
        queues = [backend.queue_of(name) for name in names]
        work = work_of(backend)
        running: set[Context] = set()

        def alone(payload: Any, run: Context) -> Any:
            close_old_connections()
            running.add(run)
            try:
                return work(payload, run)
            except (
                KeyboardInterrupt
            ) as error:  # raised by the task: that of a key is not of a thread
                raise Outcome("KeyboardInterrupt") from error
            finally:
                close_old_connections()
                running.discard(run)

        source = source_of(backend.database)
        connections.close_all()
        self.stdout.write(f"working on {', '.join(queues)}; SIGTERM ends it")
        self.stdout.flush()
        Worker(
            source,
            queues[0] if len(queues) == 1 else queues,
            alone,
            concurrency=options["concurrency"],
            claim_for=options["claim_for"],
            stop_timeout=options["stop_timeout"],
            group="django",
            definition=True,
        ).run()
        if running:  # given back, but Python would wait for the threads
            logging.shutdown()
            os._exit(0)
