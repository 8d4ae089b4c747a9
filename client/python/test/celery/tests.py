"""Tests of tq.kombu with real workers; run starts it.  Prints TAP."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

import kombu
import psycopg
from celery import chain, chord, group
from celery.exceptions import ChordError

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


def until(what, seconds=120, every=0.05):
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

    def __init__(self, *options, name="w", module="app", folder=".", **environment):
        self.output = open(os.path.join(WORK, f"worker-{name}.log"), "ab")
        self.node = f"{name}@test"
        options = ("-A", module, "worker", "-l", "info", "-n", self.node, *options)
        command = [sys.executable, "-m", "celery", *options]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=self.output, cwd=os.path.join(WORK, folder),
                                        start_new_session=True, env={**os.environ, **environment})  # fmt: skip

    def __enter__(self):
        try:
            until(lambda: self.process.poll() is not None or self.node in pong(self.node))
            assert self.process.poll() is None, "the worker has ended"
        except BaseException:
            self.__exit__()
            raise
        return self

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, signal_number=signal.SIGTERM, seconds=120):
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


def ask(what, *nodes):
    """What these workers answer, as soon as all have, however slow the machine is."""
    return getattr(inspect(*nodes, timeout=60), what)()


def pong(*nodes):
    """Which workers answer; a client whose session has ended gets an error, and asks again."""
    with contextlib.suppress(psycopg.OperationalError):
        return set(inspect(*nodes).ping() or {})
    return set()


# ---- tests ----


@test
def kombus_own_tests():
    if not os.path.exists("common.py"):
        return "skip: no source package"
    suite = os.path.join(os.path.dirname(__file__), "kombu_suite.py")
    out = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", suite],
                         env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + ":" + os.getcwd()},
                         capture_output=True, text=True, timeout=900)  # fmt: skip
    assert out.returncode == 0, out.stdout


@test
def canvas_with_results():
    with Worker("-c", "2"):
        assert app.add.delay(2, 3).get(timeout=120) == 5
        assert chain(app.add.s(1, 2), app.add.s(3), app.add.s(4))().get(timeout=120) == 10
        assert group(app.add.s(i, i) for i in range(5))().get(timeout=120) == [0, 2, 4, 6, 8]
        assert chord([app.add.s(i, i) for i in range(5)])(app.total.s()).get(timeout=120) == 20
        inner = app.spawn.delay(3).get(timeout=120)
        assert app.app.AsyncResult(inner).get(timeout=120) == 6
        assert (app.add.s(1, 1) | group(app.add.s(1), app.add.s(2)) | app.total.s())().get(
            timeout=120
        ) == 7


@test
def a_chord_whose_header_fails():
    with Worker("-c", "2"):
        try:
            chord([app.add.s(1, 1), app.fail.s("no")])(app.total.s()).get(timeout=120)
        except (ChordError, ValueError) as error:
            assert "no" in str(error), error
        else:
            raise AssertionError("the body has a result")
        until(lambda: set(states()) == {"completed"})


@test
def retries_and_times():
    with Worker("-c", "1"):
        assert app.flaky.delay("f").get(timeout=120) == 2
        assert lines()[-3:] == ["try f 0", "try f 1", "try f 2"]
        begin = time.time()
        app.when.apply_async(["soon"], countdown=2)
        app.when.apply_async(["late"], countdown=3600)
        word, eta = until(lambda: lines()[-1:][0].startswith("soon") and lines()[-1].split())[0:3:2]
        assert eta == "None" and float(lines()[-1].split()[-1]) >= begin + 2
        assert not ask("scheduled", "w@test")["w@test"], "the worker holds a task that is not due"
        assert states()["pending"] == 1 and app.app.control.purge() == 1


@test
def priorities():
    for number in (0, 9, 5, None, 7, 2):
        app.note.apply_async([number], priority=number)
    with Worker("-c", "1", TQ_PREFETCH="1"):
        until(lambda: len(lines()) == 6)
    assert lines() == ["9", "7", "5", "2", "0", "None"], lines()


@test
def late_acknowledgement_and_kill():
    worker = Worker("-c", "1", TQ_CLAIM_FOR="8").__enter__()
    app.late.delay("a", 600)
    until(lambda: lines() == ["begin a"])
    time.sleep(12)  # longer than a claim: it is kept
    assert lines() == ["begin a"] and states() == {"running": 1}
    worker.kill()
    with Worker("-c", "1", TQ_CLAIM_FOR="8"):
        until(lambda: lines() == ["begin a", "begin a"])
        time.sleep(10)
        assert lines() == ["begin a", "begin a"], "it was delivered more than once more"
        app.app.control.revoke(
            [ask("active", "w@test")["w@test"][0]["id"]], terminate=True, signal="SIGKILL"
        )
        until(lambda: states() == {"completed": 1} or states() == {"failed": 1})


@test
def early_acknowledgement_and_kill():
    worker = Worker("-c", "1", TQ_CLAIM_FOR="8").__enter__()
    app.slow.delay("a", 600)
    until(lambda: lines() == ["begin a"] and states() == {"completed": 1})
    worker.kill()
    with Worker("-c", "1", TQ_CLAIM_FOR="8"):
        app.note.delay("b")
        until(lambda: len(lines()) == 2)
        time.sleep(10)
        bindings = "SELECT count(*) FROM tq.task_details WHERE task_queue_id LIKE 'celery/\\_%%' AND state = 'running'"
        until(lambda: sql(bindings) == [(2,)])  # remote control and news, not those of the dead
    assert lines() == ["begin a", "b"]


@test
def remote_control():
    with Worker("-c", "1", name="one"), Worker("-c", "1", name="two"):
        both = ("one@test", "two@test")
        assert set(ask("ping", *both)) == set(both)
        revoked = "9d8aa7d5-2a8a-4ec5-93bd-ba0aee7a5d26"
        app.app.control.revoke(revoked)
        until(lambda: all(revoked in ids for ids in ask("revoked", *both).values()))
        app.note.apply_async(["never"], task_id=revoked, countdown=1)
        app.slow.delay("a", 600)
        until(lambda: lines() == ["begin a"])
        active = {node: tasks for node, tasks in ask("active", *both).items() if tasks}
        (task,) = [task for tasks in active.values() for task in tasks]
        assert task["name"] == "app.slow" and task["args"] == ["a", 600]
        app.app.control.revoke(task["id"], terminate=True)
        until(lambda: not any(ask("active", *both).values()))
        until(lambda: states() == {"completed": 2})
        assert lines() == ["begin a"]
        assert app.app.control.rate_limit("app.note", "10/m", destination=both, reply=True, timeout=60)
        assert set(ask("active_queues", *both)) == set(both)
    assert not sql(
        "SELECT FROM tq.task_details WHERE task_queue_id LIKE 'celery/\\_%%' AND state IN ('pending', 'running')"
    )


@test
def rate_limit():
    with Worker("-c", "2"):
        for number in range(6):
            app.limited.delay(number)
        until(lambda: len(lines()) == 6)
        times = sorted(float(line.split()[1]) for line in lines())
        assert times[-1] - times[0] > 1.5, times


@test
def warm_shutdown():
    with Worker("-c", "1") as worker:
        for word in "abcd":
            app.late.delay(word, 15 if word == "a" else 2)
        until(lambda: lines() == ["begin a"])
        until(lambda: states() == {"running": 4})
        worker.stop()
        assert lines() == ["begin a", "end a"] and states() == {"completed": 1, "pending": 3}
        assert sql("SELECT DISTINCT retries_left, (SELECT count(*) FROM jsonb_array_elements(tq.status(task_id) -> 'runs'))"
                   " FROM (SELECT task_id, (tq.status(task_id) ->> 'retriesLeft')::int AS retries_left FROM tq.task_details"
                   " WHERE state = 'pending') AS t") == [(5, 1)]  # fmt: skip
    with Worker("-c", "2"):
        until(lambda: states() == {"completed": 4})
    assert sorted(lines()) == sorted(
        f"{moment} {word}" for word in "abcd" for moment in ("begin", "end")
    )


@test
def cold_shutdown():
    with Worker("-c", "1") as worker:
        app.late.delay("a", 600)
        app.late.delay("b", 600)
        until(lambda: states() == {"running": 2} and lines() == ["begin a"])
        worker.stop(signal.SIGQUIT)
        until(lambda: states() == {"pending": 2})


@test
def server_restarts():
    with Worker("-c", "1", TQ_CLAIM_FOR="20") as worker:
        app.late.delay("a", 6)
        app.note.apply_async(["b"], countdown=1)
        until(lambda: lines() == ["begin a"])
        subprocess.run(["pg_ctl", "-D", "data", "-m", "fast", "-w", "restart", "-l", "server.log"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        until(lambda: "end a" in lines() and "b" in lines())
        until(lambda: states() == {"completed": 2}, 40)
        app.note.delay("c")
        until(lambda: "c" in lines())
        with open(worker.output.name) as output:
            assert "Restoring" not in output.read(), "Celery began from nothing"
        until(lambda: pong() == {"w@test"})
    assert sorted(lines()) == ["b", "begin a", "c", "end a"], lines()


@test
def sessions_are_ended():
    with Worker("-c", "1"):
        sessions = "FROM pg_stat_activity WHERE application_name = 'kombu'"
        for word in "abc":
            sql(f"SELECT pg_cancel_backend(pid) {sessions}")
            send(f"before {word}")
            until(lambda: f"before {word}" in lines())
            sql(f"SELECT pg_terminate_backend(pid) {sessions}")
            send(word)
            until(lambda: word in lines())
        until(lambda: pong() == {"w@test"})


@test
def two_workers_share():
    with Worker("-c", "1", name="one", TQ_PREFETCH="1"), Worker(
        "-c", "1", name="two", TQ_PREFETCH="1"
    ):
        for number in range(300):
            app.note.delay(number)
        until(lambda: len(lines()) >= 300 and states() == {"completed": 300})
        totals = [node["total"]["app.note"] for node in ask("stats", "one@test", "two@test").values()]
    assert sorted(map(int, lines())) == list(range(300)) and min(totals) > 10, totals


@test
def purge_and_size():
    for number in range(30):
        app.note.apply_async([number], countdown=3600 if number % 3 == 0 else None)
    with app.app.connection() as connection:
        assert connection.default_channel.queue_declare("celery", passive=True).message_count == 20
    assert app.app.control.purge() == 30 and states() == {"exception": 30}


@test
def hostile_messages():
    before = [{}, [], 7, {"properties": 1, "headers": {}}, {"properties": {"delivery_info": []}, "headers": {}},
              {"properties": {"delivery_info": {}}, "headers": {"task": ["x"]}, "body": "x"},
              {"properties": {"delivery_info": {}, "body_encoding": "base64"}, "headers": {}, "body": "\u00e4"},
              {"properties": {"delivery_info": {}, "body_encoding": "rot13"}, "headers": {}, "body": "x"}]  # fmt: skip
    for payload in before:
        sql("SELECT tq.enqueue('celery/celery', %s)", json.dumps(payload))
    with app.app.connection() as connection:
        producer = connection.Producer()
        for body, headers in (("{", {"task": "app.note", "id": "x"}), ("[1]", {"task": "app.note", "id": "x"}),
                              ("[[], {}, {}]", {"task": "app.nothing", "id": "x"}), ("not json", {}),
                              ("[[1, 2, 3], {}, {}]", {"task": "app.note", "id": "x", "eta": "yesterday"})):  # fmt: skip
            producer.publish(body, routing_key="celery", content_type="application/json", content_encoding="utf-8",
                             headers=headers)  # fmt: skip
        producer.publish(b"\x80\0", routing_key="celery", content_type="application/x-python-serialize",
                         content_encoding="binary", headers={"task": "app.note", "id": "x"})  # fmt: skip
    big = "x" * 4_000_000
    with Worker("-c", "1", TQ_CLAIM_FOR="8") as worker:
        app.note.delay("\0 NUL \ud800 \u20ac")
        assert len(app.note.delay(big).get(timeout=120)) == len(big)
        until(lambda: len(lines()) == 2 and set(states()) <= {"completed", "exception", "failed"})
        assert worker.process.poll() is None
    assert states()["exception"] == len(before), states()
    try:
        app.note.delay(big * 5)
    except psycopg.DatabaseError as error:
        assert error.sqlstate == "TQ400"
    else:
        raise AssertionError("a message above tq.max_payload was accepted")


@test
def a_transaction_of_the_caller():
    import psycopg2
    import sqlalchemy

    with psycopg.connect() as db, tq.kombu.within(db):
        app.note.delay("never")
        chain(app.add.s(1, 1), app.note.s()).delay()
        db.rollback()
    with psycopg2.connect("") as db, tq.kombu.within(db):
        app.note.delay("a")
        assert sql("SELECT count(*) FROM tq.task_details") == [(0,)]
    engine = sqlalchemy.create_engine("postgresql+psycopg2://")
    with engine.begin() as connection, tq.kombu.within(connection.connection):
        app.note.delay("b")
        assert sql("SELECT count(*) FROM tq.task_details") == [(1,)]
    with psycopg.connect() as db, tq.kombu.within(db):
        chain(app.add.s(1, 1), app.note.s()).delay()
    app.note.delay("c")
    with Worker("-c", "1"):
        until(lambda: sorted(lines()) == ["2", "a", "b", "c"])


@test
def broadcasts_reach_all():
    with Worker("-c", "1", name="one"), Worker("-c", "1", name="two"):
        app.note.apply_async(["hello"], queue="news")
        until(lambda: lines() == ["hello", "hello"])


@test
def a_broadcast_that_loses_its_connection():
    with app.app.connection_for_write() as connection:
        mailbox = app.app.control.mailbox(connection)
        mailbox._publish = lambda *given, **options: connection.transport.claims.lost.set()
        assert mailbox._broadcast("ping", reply=True, timeout=0.5) == []
        assert not connection.transport.claims.lost.is_set()


@test
def events():
    seen = set()
    with Worker("-c", "1", "-E"), app.app.connection() as connection:

        def handler(event):
            app.add.delay(1, 1) if not seen else None
            seen.add(event["type"])
            receiver.should_stop = seen >= {"task-received", "task-succeeded", "worker-heartbeat"}

        receiver = app.app.events.Receiver(connection, handlers={"*": handler})
        receiver.capture(limit=None, timeout=120)
    assert receiver.should_stop, seen


@test
def no_polls():
    with Worker("-c", "1", "--without-heartbeat", TQ_CLAIM_FOR="60"):
        begin = time.monotonic()
        idle = "SELECT min(now() - state_change) FROM pg_stat_activity WHERE application_name = 'kombu'"
        until(lambda: sql(idle)[0][0].total_seconds() > 4, 120, 0.5)
        sessions = sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kombu'")[0][
            0
        ]
        begin = time.time()
        app.note.delay("x")
        until(lambda: lines() == ["x"], 5, 0.005)  # sooner than a waiting session looks by itself
        return f"{sessions} sessions, first task after {(time.time() - begin) * 1000:.0f} ms"


@test
def other_pools():
    pools = ["solo", "threads"] + (["gevent"] if importlib.util.find_spec("gevent") else [])
    for pool in pools:
        with Worker("-P", pool, "-c", "2", name=pool, TQ_CLAIM_FOR="8"):
            app.late.delay(pool, 12)
            until(lambda: f"end {pool}" in lines())
            until(lambda: set(states()) == {"completed"})
    assert lines() == [f"{moment} {pool}" for pool in pools for moment in ("begin", "end")]


@test
def rights():
    sql("CREATE ROLE worker LOGIN")
    sql("CREATE ROLE web LOGIN")
    for access in ("produce", "work", "read"):
        sql(f"SELECT tq.grant_queue('worker', 'celery/*', '{access}')")
    sql("SELECT tq.grant_queue('web', 'celery/*', 'produce')")
    with kombu.Connection("tq://web@/postgres") as web, Worker(
        "-c", "1", PGUSER="worker", TQ_BACKEND="disabled://"
    ):
        app.note.apply_async(["x"], connection=web)
        until(lambda: lines() == ["x"] and states() == {"completed": 1})
        try:
            app.app.control.ping(connection=web, timeout=1)
        except psycopg.DatabaseError as error:
            assert error.sqlstate == "TQ403"
        else:
            raise AssertionError("a role that may only produce has remote control")
    sql(
        "SELECT tq.revoke_queue(r::regrole, 'celery/*', a) FROM unnest(ARRAY['worker', 'web']) AS r, unnest(ARRAY['produce', 'work', 'read']) AS a"
    )
    sql("DROP ROLE worker, web")


@test
def an_outage():
    """A task that ends while there is no server is not delivered again."""
    with Worker("-c", "1", TQ_CLAIM_FOR="90"):
        app.late.delay("a", 3)
        until(lambda: lines() == ["begin a"] and states() == {"running": 1})
        subprocess.run(
            ["pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        until(lambda: "end a" in lines())
        time.sleep(2)
        subprocess.run(
            ["pg_ctl", "-D", "data", "-w", "start", "-l", "server.log"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        until(lambda: states() == {"completed": 1}, 80)
        send("b")
        until(lambda: "b" in lines())
    assert lines() == ["begin a", "end a", "b"]


@test
def places_are_given_again():
    exchange = kombu.Exchange("letters", type="topic", durable=False)

    def consumer(connection, name, key):
        queue = kombu.Queue(name, exchange, key, durable=False, auto_delete=True)
        return kombu.Consumer(
            connection, [queue], callbacks=[lambda body, message: (got.append(body), message.ack())]
        )

    got = []
    for number in range(3):
        with kombu.Connection("tq://") as one, kombu.Connection("tq://") as two:
            with consumer(one, f"one-{number}", "a.*"), consumer(two, f"two-{number}", "#"):
                kombu.Queue("kept", exchange, "#")(one.default_channel).declare()
                one.Producer().publish(f"for both {number}", exchange="letters", routing_key="a.b")
                two.drain_events(timeout=60)  # the other one leaves its own
    places = sql(
        "SELECT task_queue_id, count(*)::int FROM tq.task_details WHERE task_queue_id LIKE 'celery/\\_letters%%' GROUP BY 1"
    )
    assert got == ["for both 0", "for both 1", "for both 2"], got
    assert dict(places) == {"celery/_letters": 6, "celery/_letters_0": 3, "celery/_letters_1": 3}
    with kombu.Connection("tq://") as one, consumer(one, "three", "#"):
        try:
            one.drain_events(timeout=1)
        except TimeoutError:
            pass
        one.Producer().publish("last", exchange="letters", routing_key="x")
        one.drain_events(timeout=60)
    assert got[3:] == ["last"], got
    assert states("celery/kept") == {"pending": 3}


@test
def forks():
    """A child that was forked by hand has sessions of its own, and leaves those of its parent."""
    with app.app.connection() as connection:
        app.note.apply_async(["a"], connection=connection)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                app.note.apply_async(["b"], connection=connection)
                connection.close()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        app.note.apply_async(["c"], connection=connection)
    with Worker("-c", "1"):
        until(lambda: lines() == ["a", "b", "c"])


@test
def pgbouncer():
    """A pooler that gives a session for the time of a transaction."""
    if not shutil.which("pgbouncer"):
        return "skip: no pgbouncer"
    with open("pgbouncer.ini", "w") as file:
        file.write(f"[databases]\n* = host={WORK} port=5432 user=postgres\n[pgbouncer]\nlisten_port = 6432\nlisten_addr =\n"
                   f"unix_socket_dir = {WORK}\nauth_type = any\npool_mode = transaction\n")  # fmt: skip
    pooler = subprocess.Popen(["pgbouncer", "-q", "pgbouncer.ini"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: os.path.exists(".s.PGSQL.6432"))
        with Worker("-c", "1", PGPORT="6432", TQ_POOLER="1", TQ_CLAIM_FOR="8"):
            for number in range(10):
                app.note.delay(number)
            app.late.delay("a", 12)
            until(lambda: lines()[-1:] == ["end a"])
            until(lambda: states() == {"completed": 11})
    finally:
        pooler.kill()
        pooler.wait()


@test
def the_document():
    """The programs that doc/celery.md shows, each as it stands."""
    os.makedirs("doc")
    with open(os.path.join(os.path.dirname(__file__), *[".."] * 4, "doc", "celery.md")) as file:
        for code in re.findall(r"^```py\n(.*?)^```$", file.read(), re.M | re.S):
            with open(os.path.join("doc", re.match(r"# (\w+\.py)", code).group(1)), "w") as program:
                program.write(code)

    def run(*command):
        return subprocess.run([sys.executable, *command], cwd="doc", check=True, timeout=300, stdout=subprocess.PIPE,
                              text=True).stdout  # fmt: skip

    with Worker("-c", "1", module="shop", folder="doc"):
        assert run("first.py") == "5\n" and run("order.py") == "7\n"
    if not shutil.which("redis-server"):
        return "skip: no redis-server for move.py"
    redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", f"{WORK}/redis", "--save", ""],
                             stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        until(lambda: os.path.exists(f"{WORK}/redis"))
        with kombu.Connection(f"redis+socket://{WORK}/redis") as old:
            for number in range(5):
                app.note.apply_async([number], connection=old, priority=number)
            app.note.apply_async(["late"], connection=old, countdown=3600)
        assert (
            run("move.py", f"redis+socket://{WORK}/redis", "celery", "nothing")
            == "celery 6\nnothing 0\n"
        )
    finally:
        redis.kill()
        redis.wait()
    with Worker("-c", "1"):
        until(lambda: lines() == ["4", "3", "2", "1", "0"] or lines() == ["3", "4", "1", "2", "0"])
    assert states() == {"completed": 7, "pending": 1}


def send(word):
    """As an application does that has lost its connection: it tries again."""
    for attempt in range(5):
        with contextlib.suppress(kombu.exceptions.OperationalError):
            return app.note.delay(word)
    raise AssertionError("could not be sent")


def main():
    chosen = sys.argv[1:]
    failed = 0
    for number, function in enumerate((t for t in tests if not chosen or t.__name__ in chosen), 1):
        begin, name = time.monotonic(), function.__name__.replace("_", " ")
        sql("DELETE FROM celery_taskmeta") if sql("SELECT to_regclass('celery_taskmeta')")[0][
            0
        ] else None
        sql(
            "SELECT tq.delete_task(task_id::tq.slugid) FROM tq.task_details WHERE task_queue_id LIKE 'celery/%%'"
        )
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
