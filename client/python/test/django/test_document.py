"""What doc/django.md shows, in a project of its own that a reader would have; and what it lists."""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase

from django.conf import settings

from tq.django import backend
from tq.django.compat import BaseTaskBackend

DOCUMENT = Path(__file__).parents[4] / "doc/django.md"
DATABASE = settings.DATABASES["default"]["NAME"] + "_document"
PROJECT = f"""\
from settings_of_tests import *
DATABASES = {{'default': {{**DATABASES['default'], 'NAME': '{DATABASE}'}}}}
INSTALLED_APPS = [app for app in INSTALLED_APPS if app not in ('tq.django', 'shop', 'django_tasks')]
TEST_RUNNER = 'django.test.runner.DiscoverRunner'
"""


class Document(TestCase):
    """Each block has the name of its file in its first line."""

    @classmethod
    def setUpClass(cls):
        cls.text = DOCUMENT.read_text()
        cls.blocks = {}
        for language, block in re.findall(r"^```(py|sh)\n(.*?)^```$", cls.text, re.M | re.S):
            cls.blocks[re.match(r"# (\S+)", block)[1] if language == "py" else "sh"] = block

    def manage(self, *arguments, fails=False, **environment):
        path = os.pathsep.join([self.directory, os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "manage.py", *arguments],
            cwd=self.directory,
            text=True,
            capture_output=True,
            timeout=120,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "DJANGO_SETTINGS_MODULE": "settings",
                **environment,
            },
        )
        self.assertEqual(bool(done.returncode), fails, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def psql(self, database, text):
        import psycopg

        with psycopg.connect(
            dbname=database, user=os.environ.get("PGUSER", "postgres"), autocommit=True
        ) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def write(self, name, text):
        file = Path(self.directory, name)
        file.parent.mkdir(exist_ok=True)
        if "django_tasks" in settings.INSTALLED_APPS:
            text = re.sub(r"from django.tasks import", "from django_tasks import", text)
            text = text.replace('["tq.django"', '["django_tasks", "tq.django"')
        file.write_text(text)

    def test_what_it_shows(self):
        self.directory = self.enterContext(TemporaryDirectory())
        self.psql("postgres", f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        self.psql("postgres", f"CREATE DATABASE {DATABASE}")
        self.addCleanup(self.psql, "postgres", f"DROP DATABASE {DATABASE} WITH (FORCE)")
        here = Path(__file__).parent
        self.write("settings_of_tests.py", (here / "settings.py").read_text())
        self.write("urls.py", (here / "urls.py").read_text())
        self.write("settings.py", PROJECT + self.blocks["settings.py"])
        self.write(
            "manage.py",
            "import sys\nfrom django.core.management import execute_from_command_line as run\nrun(sys.argv)\n",
        )
        self.write("shop/__init__.py", "")
        self.write("shop/models.py", (here / "shop/models.py").read_text())
        self.write("shop/tasks.py", self.blocks["shop/tasks.py"])
        self.write("shop/tests.py", self.blocks["shop/tests.py"])
        # A first task: the lines of the shell, but the worker, which goes on, for as long as it takes.
        task_id = None
        for line in self.blocks["sh"].splitlines():
            command = re.sub(r" {2,}# .*", "", line).replace(
                "python3", f"{sys.executable} -W ignore"
            )
            if "tq_worker" in command:
                worker = subprocess.Popen(
                    ["sh", "-c", "exec " + command],
                    stdout=subprocess.DEVNULL,
                    cwd=self.directory,
                    env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings"},
                )
                self.addCleanup(worker.wait)
                self.addCleanup(worker.terminate)
                self.assertEqual(
                    self.psql(DATABASE, f"CALL tq.wait_for_task('{task_id}', '1 minute')"),
                    [("completed",)],
                )
                self.assertEqual(
                    self.psql(DATABASE, f"SELECT tq.result('{task_id}')"), [("hello Ann",)]
                )
            else:
                done = subprocess.run(
                    ["sh", "-c", command],
                    cwd=self.directory,
                    text=True,
                    capture_output=True,
                    timeout=120,
                    env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings"},
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                task_id = done.stdout.split()[-1] if "enqueue" in command else None
        self.assertIn("OK", self.manage("test", "--noinput", "shop"))
        # The longer settings and tasks.
        self.write("settings.py", PROJECT + self.blocks["settings.py"] + self.blocks["tasks.py"])
        self.write("mail.py", self.blocks["mail.py"])
        self.manage("migrate", "--run-syncdb")
        printed = self.manage(
            "shell",
            "-c",
            "import mail; from shop.models import Order; from tq.django.testing import *; mail.newsletter.enqueue()\n"
            'first, second = mail.newsletter.enqueue(), mail.buy(); drain(); second.refresh(); print("result", second.return_value, Order.objects.get().paid)',
        )
        self.assertRegex(printed, r"result \{'order': 1\} 1\n")

    def test_what_it_lists(self):
        for least, level in backend.LEVELS:
            self.assertIn(f"`{level}`", self.text)
            self.assertRegex(self.text, rf"(?<![\d]){least}(?!\d)")
        listed = re.search(r"^\| `enqueue` \|.*$", self.text, re.M)[0]
        self.assertEqual(set(re.findall(r"`(\w+)`", listed)) - {"enqueue"}, set(backend.TYPES))
        self.assertTrue(
            all(
                getattr(backend.Backend, name)
                for name in vars(BaseTaskBackend)
                if name.startswith("supports_")
            )
        )
        source = "".join(path.read_text() for path in Path(backend.__file__).parent.glob("*.py"))
        self.assertEqual(
            set(re.findall(r"tq\.[EW]\d{3}", self.text)), set(re.findall(r"tq\.[EW]\d{3}", source))
        )
        command = (Path(backend.__file__).parent / "management/commands/tq_worker.py").read_text()
        self.assertEqual(
            set(re.findall(r"^\| `(--[\w-]+)`", self.text, re.M)),
            set(re.findall(r'"(--[\w-]+)"', command)),
        )
