"""What manage.py check says, of settings and of databases."""

from django.core import checks
from django.db import connection
from django.test import TestCase, TransactionTestCase, override_settings

from tq.django.apps import check_extension


def tasks(**options):
    return override_settings(
        TASKS={
            "default": {
                "BACKEND": "tq.django.Backend",
                "QUEUES": ["default", "a b"][: options.pop("queues", 1)],
                "OPTIONS": options,
            }
        }
    )


class Checks(TestCase):
    databases = {"default", "lite"}

    def ids(self, **given):
        return [
            message.id for message in checks.run_checks(**given) if message.id.startswith("tq.")
        ]

    def test_settings(self):
        self.assertEqual(self.ids(databases=["default", "lite"]), [])
        for options, found in (
            ({"database": "none"}, ["tq.E001"]),
            ({"database": "lite"}, ["tq.E002"]),
            ({"prefix": "a/b/"}, ["tq.E003"]),
            ({"queues": 2}, ["tq.E003"]),
            ({"enqueue": {"retrys": 1}}, ["tq.E004"]),
            ({"enqueue": {"retry": 1}, "prefix": ""}, []),
        ):
            with self.subTest(options), tasks(**options):
                self.assertEqual(self.ids(), found)
                if found != ["tq.E001"]:
                    self.assertEqual(
                        [message.id for message in check_extension(databases=["default", "lite"])],
                        [],
                    )


class Extension(TransactionTestCase):
    def test_database_without_extension(self):
        with connection.cursor() as cursor:
            cursor.execute("DROP EXTENSION tq CASCADE")
            try:
                (message,) = check_extension(databases=["default"])
                self.assertEqual(
                    (message.id, list(check_extension(databases=[])), list(check_extension())),
                    ("tq.W006", [], []),
                )
            finally:
                cursor.execute("CREATE EXTENSION tq")
            self.assertEqual(list(check_extension(databases=["default"])), [])
