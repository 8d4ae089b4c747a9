"""Workers that are processes, on the database of the tests; what is waited for is a condition."""

import os
import signal
import subprocess
import sys
import time
from tempfile import TemporaryDirectory
from unittest.mock import patch

from django.core.management import CommandError, call_command
from django.db import connection
from django.test import TransactionTestCase, override_settings
from psycopg.conninfo import conninfo_to_dict
from shop import tasks
from shop.models import Order

from tq.django import RunFailed
from tq.django.compat import TaskResultStatus
from tq.django.management.commands.tq_worker import source_of

READY, RUNNING, FAILED, SUCCESSFUL = (
    TaskResultStatus[name] for name in ("READY", "RUNNING", "FAILED", "SUCCESSFUL")
)


class Worker(TransactionTestCase):
    def setUp(self):
        self.workers = []
        self.directory = self.enterContext(TemporaryDirectory())
        self.path = f"{self.directory}/said"

    def tearDown(self):
        for worker in self.workers:
            worker.kill()
            worker.communicate()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT tq.cancel_task(task_id) FROM tq.task_overview WHERE state IN ('pending', 'running')"
            )

    def start(self, *arguments, ready=True):
        worker = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "django", "tq_worker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TQ_DJANGO_DATABASE": connection.settings_dict["NAME"]},
        )
        self.workers.append(worker)
        if ready:
            line = worker.stdout.readline()
            self.assertIn("working on shop/", line)
        return worker

    def until(self, condition, what="the condition"):
        end = time.monotonic() + 60
        while not (found := condition()):
            self.assertLess(time.monotonic(), end, f"{what} is not met after a minute")
            time.sleep(0.02)
        return found

    def is_status(self, status, *results):
        def condition():
            for result in results:
                result.refresh()
            return all(result.status == status for result in results)

        self.until(condition, f"status {status}")

    def said(self):
        with open(self.path, "a+") as file:
            file.seek(0)
            return file.read().split()

    def test_what_becomes_of_tasks(self):
        self.start()
        order = Order.objects.create()
        results = [tasks.add.enqueue(n, 1) for n in range(20)] + [
            tasks.aadd.using(queue_name="mail").enqueue("a", "b"),
            tasks.pay.enqueue(order.pk),
        ]
        failed = [
            tasks.fail.enqueue("x"),
            tasks.leave.enqueue(),
            tasks.interrupt.enqueue(),
            tasks.unserializable.enqueue(),
            tasks.try_later.enqueue(),
        ]
        self.is_status(SUCCESSFUL, *results)
        self.is_status(FAILED, *failed)
        self.assertEqual(
            [result.return_value for result in results], [*range(1, 21), "ab", order.pk]
        )
        self.assertEqual(
            [result.errors[0].exception_class for result in failed],
            [ValueError, SystemExit, RunFailed, TypeError, RunFailed],
        )
        self.assertEqual([error.traceback for error in failed[-1].errors], ["not yet", "never"])
        self.assertTrue(
            all(one.startswith("django/") for result in results for one in result.worker_ids)
        )
        order.refresh_from_db()
        self.assertTrue(order.paid)

    def test_what_is_no_task(self):
        self.start()
        with connection.cursor() as cursor:
            cursor.execute(
                """SELECT tq.enqueue('shop/default', '{"func": "os.system", "args": ["touch %s"], "kwargs": {}}'::jsonb)"""
                % self.path
            )
            (task_id,) = cursor.fetchone()

            def reason():
                cursor.execute(
                    "SELECT reason_resolved FROM tq.task_details WHERE task_id = %s AND state = 'exception'",
                    [task_id],
                )
                return cursor.fetchone()

            self.assertEqual(self.until(reason), ("malformed-payload",))
        self.assertFalse(os.path.exists(self.path))

    def test_worker_that_is_killed(self):
        first = self.start("--claim-for", "2 s")
        result = tasks.die_once.enqueue()
        self.assertEqual(first.wait(60), -signal.SIGKILL)
        self.start("--claim-for", "2 s")
        self.is_status(SUCCESSFUL, result)
        self.assertEqual(
            (result.return_value, result.attempts, len(set(result.worker_ids))), (2, 2, 2)
        )
        self.assertEqual([error.traceback for error in result.errors], ["claim-expired"])

    def test_completion_in_the_transaction_of_the_task(self):
        worker = self.start("--claim-for", "2 s")
        orders = [Order.objects.create(), Order.objects.create()]
        result = tasks.pay_once.enqueue(orders[0].pk)
        self.is_status(SUCCESSFUL, result)
        self.assertEqual(result.return_value, {"order": orders[0].pk})
        killed = tasks.pay_once.enqueue(orders[1].pk, die=True)
        worker.wait(60)
        self.is_status(SUCCESSFUL, killed)
        self.assertEqual((killed.return_value, killed.attempts), ({"order": orders[1].pk}, 1))
        self.assertEqual(list(Order.objects.values_list("paid", flat=True)), [1, 1])

    def test_progress_and_cancel(self):
        self.start()
        result = tasks.count.enqueue(self.path)
        with connection.cursor() as cursor:

            def progress():
                cursor.execute(
                    "SELECT done, total, message FROM tq.run_overview WHERE task_id = %s AND done = 3",
                    [result.id],
                )
                return cursor.fetchone()

            self.assertEqual(self.until(progress), (3, 3, "counted"))
            cursor.execute("SELECT tq.cancel_task(%s)", [result.id])
        after = tasks.add.enqueue(1)
        self.is_status(SUCCESSFUL, after)
        self.is_status(FAILED, result)
        self.assertEqual([error.traceback for error in result.errors], ["canceled"])

    def test_end(self):
        worker = self.start("--concurrency", "1")
        ends, waits = tasks.nap.enqueue(self.path, 1), tasks.add.enqueue(1)
        self.until(self.said)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0)
        ends.refresh()
        waits.refresh()
        self.assertEqual(
            (ends.status, waits.status, self.said()), (SUCCESSFUL, READY, ["began", "ended"])
        )

    def test_end_of_what_does_not_end(self):
        worker = self.start("--stop-timeout", "0.1")
        result = tasks.nap.enqueue(self.path, 300)
        self.until(self.said)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(60), 0)
        self.is_status(READY, result)
        self.assertEqual([error.traceback for error in result.errors], ["worker-shutdown"])

    def test_what_it_connects_with(self):
        options = {"assume_role": "shop", "options": "-c lock_timeout=5s", "pool": False}
        with patch.dict(connection.settings_dict, {"OPTIONS": options}):
            found = conninfo_to_dict(source_of("default"))
        self.assertEqual(found["options"], "-c lock_timeout=5s -c role=shop")
        self.assertEqual(found["dbname"], connection.settings_dict["NAME"])

    def test_arguments(self):
        with self.assertRaisesMessage(CommandError, "has no nothing"):
            call_command("tq_worker", "--queue", "nothing")
        with override_settings(
            TASKS={"default": {"BACKEND": "tq.django.Backend", "QUEUES": []}}
        ), self.assertRaisesMessage(CommandError, "name queues with"):
            call_command("tq_worker")
        name = READY.__class__.__module__.split(".base")[0]
        with override_settings(
            TASKS={"default": {"BACKEND": f"{name}.backends.dummy.DummyBackend"}}
        ), self.assertRaisesMessage(CommandError, "is no backend of tq"):
            call_command("tq_worker")
