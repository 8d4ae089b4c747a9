"""The public test cases of the interface, with this backend in the place of those of Django.

TQ_DJANGO_CASES is a folder with the package tests of django-tasks, or tasks of Django's tests."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from unittest import SkipTest, TestSuite

from django.test import TransactionTestCase, override_settings

from tq.django import Backend
from tq.django.testing import drain

CASES = os.environ.get("TQ_DJANGO_CASES")
# What is of the backends of Django: they cannot get a result, or know no run_after; views of that project.
OWN = {
    "test_cannot_get_result",
    "test_cannot_refresh_result",
    "test_cannot_pass_run_after",
    "test_meaning_of_life_view",
    "test_get_result_from_different_request",
}


class Anywhere(Backend):
    """Gets a result also where a loop runs, which these test cases do, and Django forbids with a database."""

    def get_result(self, result_id):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return super().get_result(result_id)
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(self._get_and_close, result_id).result()

    def _get_and_close(self, result_id):
        try:
            return super().get_result(result_id)
        finally:
            self.connection.close()


class Collecting(Anywhere):
    """Has the results of all tasks that were enqueued, as the dummy backend has."""

    def __init__(self, alias, params):
        super().__init__(alias, params)
        self.results = []

    def clear(self):
        self.results.clear()

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        self.results.append(result)
        return result


class Running(Anywhere):
    """Runs a task when it is enqueued, as the immediate backend does."""

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        drain(backend=self.alias)
        result.refresh()
        return result


def settings(queues):
    return override_settings(
        TASKS={
            "default": {"BACKEND": queues[0], "QUEUES": queues[1]},
            "immediate": {
                "BACKEND": "test_public.Running",
                "QUEUES": [],
                "OPTIONS": {"prefix": "immediate/"},
            },
            "missing": {"BACKEND": "does.not.exist"},
        }
    )


def adopt(name, case, backend, queues):
    """Returns a test case like one of another module, with another backend, and with transactions."""
    module = import_module(name)
    for original, ours in (("DummyBackend", Collecting), ("ImmediateBackend", Running)):
        if hasattr(module, original):
            setattr(module, original, ours)
    found = getattr(module, case)
    own = {one: None for one in OWN if hasattr(found, one)}
    adopted = type(
        case,
        (found, TransactionTestCase),
        {**own, "databases": {"default"}, "__module__": __name__},
    )
    return settings((f"test_public.{backend.__name__}", queues))(adopted)


def load_tests(loader, standard, pattern):
    if not CASES:
        return standard
    suite = TestSuite()
    sys.path.insert(0, CASES)
    package = "tests.tests" if os.path.exists(f"{CASES}/tests/tests") else "tasks"
    for name, case, backend, queues in (
        ("test_tasks", "TaskTestCase", Collecting, ["default", "queue_1"]),
        ("test_immediate_backend", "ImmediateBackendTestCase", Running, []),
    ):
        suite.addTests(
            loader.loadTestsFromTestCase(adopt(f"{package}.{name}", case, backend, queues))
        )
    return suite


class Missing(TransactionTestCase):
    def test_public_cases(self):
        raise SkipTest("TQ_DJANGO_CASES names no folder with them")
