"""disturb.py: workers and servers that are killed, a pooler, a failover, memory; TAP.

PG_CONFIG names the installation, of which servers are started in a folder of their own.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import psycopg

import tq
import tq.worker
from tq.connection import Kept

folder = Path(tempfile.mkdtemp(prefix="tq-"))
here = Path(__file__).parent
conf = (here.parents[2] / "test" / "tq.conf").read_text()
bindir = subprocess.run([os.environ["PG_CONFIG"], "--bindir"], capture_output=True, text=True)
poolers = [path for path in ("/usr/sbin/pgbouncer", "/usr/bin/pgbouncer") if os.path.exists(path)]
children = []
for name in [name for name in os.environ if name.startswith("PG") and name != "PG_CONFIG"]:
    del os.environ[name]
os.environ.update(PGUSER="postgres", PGDATABASE="postgres", PGHOST=str(folder / "a"))


def command(name, *args):
    path = Path(bindir.stdout.strip()) / name
    subprocess.run([path, *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ctl(name, *args):
    command("pg_ctl", "-s", "-w", "-D", folder / name, "-l", folder / f"{name}.log", *args)


def settings(name, more=""):
    (folder / name / "postgresql.auto.conf").write_text(
        f"{conf}\nlisten_addresses = ''\nunix_socket_directories = '{folder / name}'\njit = off\n{more}"
    )


def connect(**options):
    return psycopg.connect(autocommit=True, **options)


def value(text, *values):
    with connect() as connection:
        return connection.execute(text, values).fetchone()[0]


def until(what, condition):
    end = time.monotonic() + 180
    while True:
        try:
            if condition():
                return
        except psycopg.OperationalError:
            pass
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)


def until_sql(text, *values):
    until(text, lambda: value(f"SELECT {text}", *values))


class Program:
    """A program of test/programs; what it prints comes as lines."""

    def __init__(self, name, *args):
        path = here / "programs" / f"{name}.py"
        self.process = subprocess.Popen(
            [sys.executable, path, *args], stdout=subprocess.PIPE, text=True
        )
        children.append(self.process)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def said(self, line):
        until(f"it says {line}", lambda: line in self.lines)

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        code = self.process.wait(1500)
        self.reader.join(10)
        return code


def test_a_worker_that_is_killed_loses_its_claim_and_another_has_the_run():
    with connect() as connection:
        task = tq.enqueue(connection, "kill/it", {"n": 1, "seconds": 600})
    worker = Program("worker", "kill/it", "2 s")
    worker.said("begin 1")
    worker.end(signal.SIGKILL)
    with tq.Worker("", "kill/it", lambda payload, ctx: "done"):
        until_sql("tq.status(%s) ->> 'state' = 'completed'", task)
    reason = value("SELECT tq.status(%s) #>> '{runs,0,reasonResolved}'", task)
    assert reason == "claim-expired", reason


def test_sigterm_gives_back_and_ends_the_worker():
    with connect() as connection:
        task = tq.enqueue(connection, "term/it", {"n": 1, "seconds": 600})
    worker = Program("worker", "term/it", "60 s")
    worker.said("begin 1")
    assert worker.end(signal.SIGTERM) == 0
    assert worker.lines[-1] == "end", worker.lines
    reason = value("SELECT tq.status(%s) #>> '{runs,0,reasonResolved}'", task)
    assert reason == "worker-shutdown", reason


def test_a_server_that_is_killed_is_waited_for():
    with connect() as connection:
        tq.call(connection).set_queue("restart/it", {"claimTimeout": 5})
        tq.enqueue_many(connection, "restart/it", list(range(500)))
    worked = []

    def work(payload, ctx):
        time.sleep(0.02)
        worked.append(payload)

    with tq.Worker("", "restart/it", work):
        until_sql("(SELECT count(*) > 50 FROM tq.task_overview WHERE state = 'completed')")
        ctl("a", "restart", "-m", "immediate")
        ctl("a", "restart", "-m", "fast")
        until_sql(
            "NOT EXISTS (SELECT FROM tq.task_overview WHERE task_queue_id = 'restart/it'"
            " AND state IN ('pending', 'running'))"
        )
    assert set(worked) == set(range(500))
    failed = (
        "SELECT count(*) FROM tq.task_overview WHERE task_queue_id = %s AND state <> 'completed'"
    )
    assert value(failed, "restart/it") == 0


def test_a_notification_of_another_role_takes_no_run():
    aborted = []

    def work(payload, ctx):
        aborted.append(ctx.canceled.wait(3))

    with connect() as connection:
        with tq.Worker("", "notify/it", work, group="g", id="w"):
            task = tq.enqueue(connection, "notify/it", {})
            until_sql("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%%')")
            forged = (
                "jsonb_build_object('taskId', %s::text, 'runId', 0, 'reason', 'canceled')::text"
            )
            connection.execute(f"SELECT pg_notify(tq.worker_channel('g', 'w'), {forged})", [task])
            connection.execute("SELECT pg_notify(tq.worker_channel('g', 'w'), '[]')")
            assert tq.wait_for(connection, task, 60).state == "completed"
    assert aborted == [False], aborted


def test_an_error_of_the_driver_is_no_lost_connection():
    async def ask():
        kept = Kept("", "kept")
        first = await kept.query("SELECT pg_backend_pid() AS pid")
        try:
            await asyncio.wait_for(kept.query("SELECT %s::text", ["\0"]), 10)
            raise AssertionError("NUL is sent")
        except psycopg.DataError:
            pass
        assert await kept.query("SELECT pg_backend_pid() AS pid") == first
        await kept.close()

    asyncio.run(ask())


def test_timeouts_of_a_role_end_no_claim_that_waits():
    options = "-c statement_timeout=200 -c idle_session_timeout=300"
    source = f"application_name=short options='{options}'"
    begun = "SELECT max(query_start) FROM pg_stat_activity WHERE application_name = 'short'"
    with tq.Worker(source, "short/it", lambda payload, ctx: time.sleep(payload) or "done"):
        until_sql(
            "EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'short'"
            " AND wait_event_type = 'Extension')"
        )
        began = value(begun)
        time.sleep(1.5)
        assert value(begun) == began
        with connect() as connection:
            task = tq.enqueue(connection, "short/it", 3)
            assert tq.wait_for(connection, task, 60) == ("completed", "done")


def test_a_report_that_is_canceled_comes_again():
    canceled = []
    execute = Kept._execute

    async def odd(self, connection, text, values):
        if "resolve" in text and len(canceled) < 3:
            canceled.append(text)
            text, values = "DO $$ BEGIN RAISE query_canceled; END $$", ()
        return await execute(self, connection, text, values)

    Kept._execute = odd
    try:
        with tq.Worker("", "again/it", lambda payload, ctx: 7), connect() as connection:
            task = tq.enqueue(connection, "again/it", {}, retry=0)
            assert tq.wait_for(connection, task, 60) == ("completed", 7)
    finally:
        Kept._execute = execute
    assert len(canceled) == 3


def test_stop_ends_a_worker_that_runs_in_the_main_thread():
    ended = threading.Event()
    worker = tq.Worker("", "run/it", print)

    def end():
        until_sql("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Extension')")
        worker.stop()
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    late = threading.Timer(120, os.kill, [os.getpid(), signal.SIGTERM])
    late.start()
    worker.run()
    late.cancel()
    assert ended.wait(30), "stop() returns"


def test_the_program_of_an_app_ends_as_a_program_does():
    (folder / "prog.py").write_text(
        "import atexit, time, tq\n"
        "app = tq.App()\n"
        "atexit.register(print, 'bye')\n"
        "@app.task('prog/it')\n"
        "def work(seconds):\n"
        "    print('begin', flush=True)\n"
        "    time.sleep(seconds)\n"
        "    return 'done'\n"
    )

    def begin(seconds, expected, *options):
        with connect() as connection:
            task = tq.enqueue(connection, "prog/it", {"seconds": seconds}, retries=0)
            command = [sys.executable, "-m", "tq", "worker", "prog:app", *options]
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
            children.append(process)
            assert process.stdout.readline() == "begin\n"
            if not seconds:
                assert tq.wait_for(connection, task, 60) == ("completed", "done")
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=120)[0] == expected
            assert process.returncode == 0

    begin(0, "bye\n")
    begin(600, "", "--stop-timeout", "0")  # a thread that goes on does not keep it


def test_what_is_wrong_is_said_at_once():
    app = tq.App()
    for queues in (None, ["no/queue"], "no/queue"):
        raises(ValueError, lambda: app.worker(queues))
    for options in ({"concurrency": 0}, {"batch": -1}, {"grace": "soon"}, {"stop_timeout": ""}):
        raises(ValueError, lambda: tq.Worker("", "no/queue", print, **options))
    for db in (None, "host=a", 7):
        raises(TypeError, lambda: tq.enqueue(db, "no/queue", {}))


def raises(kind, work):
    try:
        work()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def test_a_cancel_that_comes_too_early_does_not_keep_the_worker():
    async def nothing(self):
        pass

    cancel, Kept.cancel, tq.worker.CANCEL = Kept.cancel, nothing, 1.0
    try:
        with tq.Worker("", "early/it", print):
            until_sql("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Extension')")
            began = time.monotonic()
        assert time.monotonic() - began < 30, "it stops without the answer"
    finally:
        Kept.cancel, tq.worker.CANCEL = cancel, 5.0


def test_through_pgbouncer_in_transaction_mode():
    (folder / "bouncer.ini").write_text(
        f"[databases]\npostgres = user=postgres host={folder / 'a'}\n[pgbouncer]\n"
        f"pool_mode = transaction\nlisten_addr =\nunix_socket_dir = {folder}\nlisten_port = 6432\n"
        f"auth_type = any\nlogfile = {folder / 'bouncer.log'}\nmax_client_conn = 50\n"
        "default_pool_size = 10\n"
    )
    pooler = subprocess.Popen(
        [poolers[0], folder / "bouncer.ini"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    children.append(pooler)
    source = f"host={folder} port=6432"
    through = {"host": str(folder), "port": 6432, "prepare_threshold": None}
    until("PgBouncer answers", lambda: connect(**through).close() is None)
    aborted = threading.Event()

    def work(payload, ctx):
        if payload.get("long"):
            ctx.canceled.wait(60)
            aborted.set()
            ctx.check()
        return 1

    with connect(**through) as connection, tq.Worker(source, "pooled/it", work) as worker:
        quick = tq.enqueue(connection, "pooled/it", {})
        assert tq.wait_for(connection, quick, 60) == ("completed", 1)
        task = tq.enqueue(connection, "pooled/it", {"long": True})
        until_sql("tq.status(%s) ->> 'state' = 'running'", task)
        tq.call(connection).cancel_task(task)
        assert aborted.wait(60), "a cancel is seen by a reclaim"
        began = time.monotonic()
        worker.stop()
        assert time.monotonic() - began < 20, "a claim that waits is canceled through it"
    try:
        with tq.Subscription(source, "pooled", ["task-completed"], print) as subscription:
            subscription.wait(120)
        raise AssertionError("a subscription goes through a pooler")
    except psycopg.errors.FeatureNotSupported as error:
        assert "Connect to the server itself" in str(error), error
    pooler.terminate()


def test_a_failover_to_the_second_host():
    command(
        *("pg_basebackup", "-h", folder / "a", "-U", "postgres", "-D", folder / "b"),
        *("-R", "-X", "stream", "-c", "fast"),
    )
    (folder / "b" / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    auto = (folder / "b" / "postgresql.auto.conf").read_text()
    settings("b", "\n".join(line for line in auto.split("\n") if line.startswith("primary_")))
    ctl("b", "start")
    hosts = f"host={folder / 'b'},{folder / 'a'}"
    with tq.Worker(hosts, "over/it", lambda payload, ctx: 1):
        with connect() as connection:
            first = tq.enqueue(connection, "over/it", {})
            assert tq.wait_for(connection, first, 60).state == "completed"
        until_sql("(SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication)")
        ctl("a", "stop", "-m", "immediate")
        ctl("b", "promote")
        os.environ["PGHOST"] = str(folder / "b")
        with connect() as connection:
            second = tq.enqueue(connection, "over/it", {})
            assert tq.wait_for(connection, second, 60).state == "completed"


def test_memory_does_not_grow_with_the_tasks_that_were_done():
    program = Program("memory", "memory/it", "20000", "200000")
    assert program.end() == 0
    few, many = map(int, program.lines)
    assert many < few + 2000, f"{few} blocks after 20,000 tasks, {many} after 200,000 more"


def main():
    command(
        *("initdb", "-D", folder / "a", "-U", "postgres", "-A", "trust", "-N"),
        "--locale=C.UTF-8",
    )
    settings("a")
    ctl("a", "start")
    with connect() as connection:
        connection.execute("CREATE EXTENSION tq")
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for number, (name, test) in enumerate(tests, 1):
        text = name[5:].replace("_", " ")
        if len(sys.argv) > 1 and sys.argv[1] not in text:
            continue
        if "pgbouncer" in name and not poolers:
            print(f"ok {number} - {text} # skip there is no pgbouncer", flush=True)
            continue
        try:
            test()
            print(f"ok {number} - {text}", flush=True)
        except Exception:
            print(f"not ok {number} - {text}")
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)


try:
    main()
finally:
    for child in children:
        child.kill()
    for server in ("a", "b"):
        if (folder / server / "postmaster.pid").exists():
            ctl(server, "stop", "-m", "immediate")
    shutil.rmtree(folder, ignore_errors=True)
sys.stdout.flush()
os._exit(0)
