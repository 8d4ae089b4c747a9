"""What a backend of Django does, by the functions of tq, in the transactions of the tests."""

from datetime import timedelta
from tempfile import TemporaryDirectory

from django.db import DatabaseError, connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from shop import tasks
from shop.models import Order

from tq.django import Backend, RunFailed
from tq.django.compat import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from tq.django.testing import advance, drain

LOGGER = BaseTaskBackend.__module__.split(".backends")[0]
READY, RUNNING, FAILED, SUCCESSFUL = (
    TaskResultStatus[name] for name in ("READY", "RUNNING", "FAILED", "SUCCESSFUL")
)


def sql(text, *values):
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()


class Enqueue(TransactionTestCase):
    """With transactions that end."""

    def tearDown(self):
        sql(
            "SELECT tq.cancel_task(task_id) FROM tq.task_overview WHERE state IN ('pending', 'running')"
        )

    def test_of_a_transaction_that_commits(self):
        with transaction.atomic():
            order = Order.objects.create()
            result = tasks.pay.enqueue(order.pk)
        self.assertEqual(tasks.pay.get_result(result.id).status, READY)

    def test_of_one_that_does_not(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            result = tasks.add.enqueue(1)
            self.assertEqual(tasks.add.get_result(result.id).status, READY)
            1 / 0
        with self.assertRaises(TaskResultDoesNotExist):
            tasks.add.get_result(result.id)

    def test_of_a_savepoint(self):
        with transaction.atomic():
            kept = tasks.add.enqueue(1)
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                lost = tasks.add.enqueue(2)
                1 / 0
        self.assertEqual(kept.status, tasks.add.get_result(kept.id).status)
        with self.assertRaises(TaskResultDoesNotExist):
            tasks.add.get_result(lost.id)

    async def test_asynchronously(self):
        result = await tasks.aadd.aenqueue(1, b=2)
        found = await tasks.aadd.aget_result(result.id)
        self.assertEqual(found, result)
        await result.arefresh()
        self.assertEqual((result.status, result.args, result.kwargs), (READY, [1], {"b": 2}))

    def test_what_a_missing_id_does_to_the_transaction(self):
        with transaction.atomic():
            for missing in ("123", "x" * 22, "AAAAAAAAQAyAAAAAAAAAAA", None):
                with self.assertRaises(TaskResultDoesNotExist):
                    tasks.add.get_result(missing)
            self.assertEqual(sql("SELECT 1"), [(1,)])


class Results(TestCase):
    """In the transaction of a test."""

    def test_success(self):
        result = tasks.add.enqueue(1, b=2)
        self.assertEqual((result.status, result.attempts, result.started_at), (READY, 0, None))
        self.assertEqual([done.id for done in drain()], [result.id])
        result.refresh()
        self.assertEqual(
            (result.status, result.return_value, result.attempts, result.errors),
            (SUCCESSFUL, 3, 1, []),
        )
        self.assertEqual(result.worker_ids, ["django/test"])
        self.assertLessEqual(result.enqueued_at, result.started_at)
        self.assertLessEqual(result.started_at, result.finished_at)
        self.assertEqual(result.last_attempted_at, result.started_at)

    def test_coroutine(self):
        result = tasks.aadd.enqueue("a", "b")
        self.assertEqual([done.return_value for done in drain()], ["ab"])
        self.assertEqual(tasks.aadd.get_result(result.id).args, ["a", "b"])

    def test_failure(self):
        for task, args, kind, text in (
            (tasks.fail, ["x"], ValueError, "ValueError: x\n"),
            (tasks.leave, [], SystemExit, "SystemExit: gone\n"),
            (tasks.fail_oddly, [], ValueError, "ValueError: ? and \n"),
            (tasks.unserializable, [], TypeError, ""),
        ):
            with self.subTest(task.name), self.assertLogs(LOGGER, level="ERROR"):
                result = task.enqueue(*args)
                drain()
                result.refresh()
                self.assertEqual(
                    (result.status, result.attempts, len(result.errors)), (FAILED, 1, 1)
                )
                self.assertIs(result.errors[0].exception_class, kind)
                self.assertTrue(result.errors[0].traceback.startswith("Traceback"))
                self.assertTrue(result.errors[0].traceback.endswith(text))
                with self.assertRaisesMessage(ValueError, "Task failed"):
                    result.return_value

    def test_failure_undoes_what_the_task_did(self):
        order = Order.objects.create()
        tasks.pay_and_fail.enqueue(order.pk)
        self.assertEqual([done.status for done in drain()], [FAILED])
        order.refresh_from_db()
        self.assertFalse(order.paid)
        tasks.pay.enqueue(order.pk)
        drain()
        order.refresh_from_db()
        self.assertTrue(order.paid)

    def test_retries(self):
        with TemporaryDirectory() as directory:
            result = tasks.fail_twice.enqueue(f"{directory}/attempts")
            self.assertEqual([done.status for done in drain()], [READY])
            for status in (READY, SUCCESSFUL):
                advance(timedelta(hours=1))
                self.assertEqual([done.status for done in drain()], [status])
        result.refresh()
        self.assertEqual((result.return_value, result.attempts), ("third", 3))
        self.assertEqual([error.exception_class for error in result.errors], [RuntimeError] * 2)
        self.assertIn("attempt 2", result.errors[1].traceback)
        self.assertLess(result.started_at, result.last_attempted_at)

    def test_retries_of_the_backend(self):
        with override_settings(
            TASKS={
                "default": {
                    "BACKEND": "tq.django.Backend",
                    "OPTIONS": {
                        "prefix": "shop/",
                        "enqueue": {
                            "retry": 1,
                            "tags": {"app": "shop"},
                            "deadline": timedelta(days=2),
                        },
                    },
                }
            }
        ):
            result = tasks.fail.enqueue("twice")
            self.assertEqual([done.status for done in drain()], [READY])
            advance("1 hour")
            self.assertEqual([(done.status, done.attempts) for done in drain()], [(FAILED, 2)])
            ((tags, lasts),) = sql(
                "SELECT tags, deadline - created > '2 days - 1 min'::interval FROM tq.task_details WHERE task_id = %s",
                result.id,
            )
            self.assertTrue(lasts)
            self.assertIn("shop", str(tags))

    def test_context(self):
        result = tasks.which.enqueue()
        drain()
        result.refresh()
        self.assertEqual(result.return_value, [result.id, 1, ["django/test"]])

    def test_run_after(self):
        when = timezone.now() + timedelta(days=1, microseconds=7)
        result = tasks.add.using(run_after=when).enqueue(1)
        self.assertEqual(drain(), [])
        self.assertEqual(tasks.add.get_result(result.id).task.run_after, when)
        advance("1 day 1 s")
        self.assertEqual([done.id for done in drain()], [result.id])

    def test_priorities(self):
        order = [
            tasks.add.using(priority=priority).enqueue(priority)
            for priority in (-100, -66, -40, -1, 0, 1, 33, 34, 67, 100)
        ]
        found = [done.args[0] for done in drain()]
        self.assertEqual(found, [67, 100, 34, 1, 33, 0, -1, -66, -40, -100])
        self.assertEqual(
            [tasks.add.get_result(one.id).task.priority for one in order],
            [-100, -66, -40, -1, 0, 1, 33, 34, 67, 100],
        )

    def test_queues(self):
        mail = tasks.add.using(queue_name="mail").enqueue(1)
        tasks.add.enqueue(2)
        self.assertEqual([done.id for done in drain(["mail"])], [mail.id])
        self.assertEqual(mail.task.queue_name, "mail")
        self.assertEqual(
            sql("SELECT task_queue_id, name FROM tq.task_details WHERE task_id = %s", mail.id),
            [("shop/mail", "shop.tasks.add")],
        )
        self.assertEqual([done.return_value for done in drain()], [2])

    def test_any_queue(self):
        with override_settings(TASKS={"default": {"BACKEND": "tq.django.Backend", "QUEUES": []}}):
            tasks.add.using(queue_name="other").enqueue(1)
            tasks.add.using(queue_name="another").enqueue(2)
            self.assertEqual(sorted(done.return_value for done in drain()), [1, 2])
            self.assertEqual(drain(), [])

    def test_cancel(self):
        result = tasks.add.enqueue(1)
        sql("SELECT tq.cancel_task(%s)", result.id)
        result.refresh()
        self.assertEqual((result.status, result.attempts), (FAILED, 0))
        self.assertEqual(
            [(error.exception_class, error.traceback) for error in result.errors],
            [(RunFailed, "canceled")],
        )
        self.assertIsNotNone(result.finished_at)

    def test_claims_that_expire(self):
        result = tasks.add.enqueue(1)
        sql("SELECT FROM tq.claim_work('shop/default', 'django', 'w')")
        result.refresh()
        self.assertEqual((result.status, result.worker_ids), (RUNNING, ["django/w"]))
        advance("1 hour")
        self.assertEqual([done.return_value for done in drain()], [1])
        result.refresh()
        self.assertEqual((result.attempts, result.worker_ids), (2, ["django/w", "django/test"]))
        self.assertEqual([error.traceback for error in result.errors], ["claim-expired"])

    def test_options_of_a_call(self):
        once = tasks.add.having(policy={"uniqueKey": "k"})
        first, second = once.enqueue(1), once.enqueue(2)
        self.assertEqual(first.id, second.id)
        self.assertEqual(hash(once), hash(once.using()))
        later = once.having(dependencies=[first.id], policy=None).enqueue(3)
        self.assertEqual([done.args for done in drain()], [[1], [3]])
        self.assertNotEqual(later.id, first.id)

    def test_what_is_no_task_of_django(self):
        for payload in (
            "[1]",
            '{"a": 1}',
            '{"func": "shop.tasks.time"}',
            '{"func": "os.system", "args": ["true"], "kwargs": {}}',
        ):
            ((task_id,),) = sql("SELECT tq.enqueue('shop/default', %s::jsonb)", payload)
            with self.assertRaises(TaskResultDoesNotExist):
                task_backends["default"].get_result(task_id)
            sql("SELECT tq.cancel_task(%s)", task_id)

    def test_invalid(self):
        with override_settings(TASKS={"default": {"BACKEND": "tq.django.Backend", "QUEUES": []}}):
            for name in ("a b", "", "a/b", "x" * 39):
                with self.subTest(name), self.assertRaisesMessage(
                    InvalidTask, "is no name of a queue of tq"
                ):
                    tasks.add.using(queue_name=name)
        with self.assertRaisesMessage(InvalidTask, "Option 'retrys' is none of"):
            tasks.add.having(retrys=1)
        with self.assertRaises(ValueError):
            tasks.add.enqueue(float("nan"))
        with self.assertRaises(DatabaseError), transaction.atomic():
            tasks.add.having(deadline="soon").enqueue(1)

    def test_signals(self):
        seen = []
        for signal in (task_enqueued, task_started, task_finished):

            def receiver(sender, task_result, signal=signal, **kwargs):
                seen.append(
                    (sender, task_result.task.name, task_result.status, task_result.attempts)
                )

            signal.connect(receiver, weak=False)
            self.addCleanup(signal.disconnect, receiver)
        tasks.add.enqueue(1)
        tasks.fail.enqueue("x")
        drain()
        self.assertEqual(
            seen,
            [
                (Backend, "add", READY, 0),
                (Backend, "fail", READY, 0),
                (Backend, "add", RUNNING, 1),
                (Backend, "add", SUCCESSFUL, 1),
                (Backend, "fail", RUNNING, 1),
                (Backend, "fail", FAILED, 1),
            ],
        )

    def test_without_time_zones(self):
        with self.settings(USE_TZ=False):
            result = tasks.add.enqueue(1)
            found = tasks.add.get_result(result.id)
            self.assertEqual(found, result)
            self.assertTrue(timezone.is_naive(found.enqueued_at))
            tasks.add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(2)
            self.assertEqual([done.args for done in drain()], [[1]])
