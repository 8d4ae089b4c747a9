"""Tests of tq.kombu with real workers; run starts it.  Prints TAP."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback

import kombu
import psycopg
from celery import chain, chord, group

import app
import tq.kombu

WORK = os.environ["TQ_WORK"]
LOG = os.environ["TQ_LOG"] = os.path.join(WORK, "log")
tests = []


def test(function):
    tests.append(function)
    return function


# ---- helpers ----


def sql(query, *values):
    with psycopg.connect(autocommit=True) as db:
        cursor = db.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def lines():
    with contextlib.suppress(FileNotFoundError):
        with open(LOG) as file:
            return file.read().splitlines()
    return []


def until(what, seconds=30, every=0.05):
    """Waits until it is true, and returns what it was."""
    end = time.monotonic() + seconds
    while not (value := what()):
        if time.monotonic() > end:
            raise AssertionError("waited in vain; the log has " + repr(lines()))
        time.sleep(every)
    return value


def states(queue="celery/celery"):
    return dict(
        sql(
            "SELECT state, count(*)::int FROM tq.task_details WHERE task_queue_id = %s GROUP BY 1",
            queue,
        )
    )


class Worker:
    """A worker of Celery in a process of its own."""

    def __init__(self, *options, name="w", **environment):
        self.output = open(os.path.join(WORK, f"worker-{name}.log"), "ab")
        self.node = f"{name}@test"
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "app",
            "worker",
            "-l",
            "info",
            "-n",
            self.node,
            *options,
        ]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=self.output, cwd=WORK,
                                        start_new_session=True, env={**os.environ, **environment})  # fmt: skip

    def __enter__(self):
        until(
            lambda: self.process.poll() is not None
            or self.node in (inspect(self.node).ping() or {}),
            40,
        )
        assert self.process.poll() is None, "the worker has ended"
        return self

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, signal_number=signal.SIGTERM, seconds=30):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.process.wait(seconds)

    def __exit__(self, *error):
        try:
            self.stop()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.output.close()


def inspect(*nodes, timeout=2):
    return app.app.control.inspect(destination=list(nodes) or None, timeout=timeout)


# ---- tests ----


@test
def kombus_own_tests():
    if not os.path.exists("common.py"):
        return "skip: no source package"
    suite = os.path.join(os.path.dirname(__file__), "kombu_suite.py")
    out = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", suite],
                         env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + ":" + os.getcwd()},
                         capture_output=True, text=True, timeout=200)  # fmt: skip
    assert out.returncode == 0, out.stdout


@test
def canvas_with_results():
    with Worker("-c", "2"):
        assert app.add.delay(2, 3).get(timeout=20) == 5
        assert chain(app.add.s(1, 2), app.add.s(3), app.add.s(4))().get(timeout=20) == 10
        assert group(app.add.s(i, i) for i in range(5))().get(timeout=20) == [0, 2, 4, 6, 8]
        assert chord([app.add.s(i, i) for i in range(5)])(app.total.s()).get(timeout=20) == 20
        inner = app.spawn.delay(3).get(timeout=20)
        assert app.app.AsyncResult(inner).get(timeout=20) == 6
        assert (app.add.s(1, 1) | group(app.add.s(1), app.add.s(2)) | app.total.s())().get(
            timeout=20
        ) == 7


@test
def retries_and_times():
    with Worker("-c", "1"):
        assert app.flaky.delay("f").get(timeout=20) == 2
        assert lines()[-3:] == ["try f 0", "try f 1", "try f 2"]
        begin = time.time()
        app.when.apply_async(["soon"], countdown=2)
        app.when.apply_async(["late"], countdown=3600)
        word, eta = until(lambda: lines()[-1:][0].startswith("soon") and lines()[-1].split())[0:3:2]
        assert eta == "None" and float(lines()[-1].split()[-1]) >= begin + 2
        assert not inspect().scheduled()["w@test"], "the worker holds a task that is not due"
        assert states()["pending"] == 1 and app.app.control.purge() == 1


def main():
    chosen = sys.argv[1:]
    failed = 0
    for number, function in enumerate((t for t in tests if not chosen or t.__name__ in chosen), 1):
        begin, name = time.monotonic(), function.__name__.replace("_", " ")
        try:
            note = function()
            print(
                f"ok {number} - {name}"
                + (f" # {note}" if note else f" ({time.monotonic() - begin:.1f} s)"),
                flush=True,
            )
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            print(
                "".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), flush=True
            )
            for log in sorted(os.listdir(WORK)):
                if log.startswith("worker-"):
                    with open(os.path.join(WORK, log), errors="replace") as file:
                        print(
                            "".join(f"# {log}: {line}\n" for line in file.read().splitlines()[-40:])
                        )
        for log in os.listdir(WORK):
            if log.startswith("worker-") or log == "log":
                os.unlink(os.path.join(WORK, log))
    print(f"1..{number}")
    sys.exit(failed > 0)


main()
