"""Failover under Patroni: what is lost, and how long it takes.  See failover.

Faults, each of the node that is the primary:

postmaster    kill -9 of the postmaster alone: Patroni sees it, and fails over
node          kill -9 of all processes of PostgreSQL and Patroni
stop          Patroni is asked to end, as by systemctl stop
lag           nothing is sent to the standbys any more; a second later as node
patroni       kill -9 of Patroni alone: the server goes on, as a primary that is none any more; not
              in asynchronous mode, in which clients stay there
etcd          its Patroni is cut off from etcd
pause         all its processes are stopped, and go on after another one has taken over
switchover    as an operator asks for it: patronictl switchover
planned       the same, prepared: the third node receives from the one that takes over, loop_wait is 2
"""
import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import clients
from clients import LATE, WORK, LogReader, Producer, Refused, Session, Subscriber, Unknown, Worker, slugid
from psycopg2.extras import Json
from servers import Cluster, Failed, wait_for

FAULTS = ("postmaster", "node", "lag", "stop", "patroni", "etcd", "pause", "switchover", "planned")
CLAIM_TIMEOUT = 30                  # seconds; a claim whose answer was lost is over then


class Tap:
    """Prints results."""

    count = failures = 0

    def ok(self, good, what, details=()):
        self.count += 1
        self.failures += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {what}", flush=True)
        for line in list(details)[:20]:
            print(f"#   {line}", flush=True)
        return good


def note(text):
    print(f"# {text}", flush=True)


class Test:
    """One cluster, its load, and the faults."""

    def __init__(self, options, directory):
        self.options, self.directory, self.tap = options, directory, Tap()
        self.random = random.Random(options.seed)
        server_bin = subprocess.run([os.environ["TQ_PG_CONFIG"], "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
        self.cluster = Cluster(directory, server_bin, options.nodes, options.mode, options.ttl)
        self.ledger = clients.Ledger(f"{directory}/ledger", options.mode == "async")
        self.ports = [node.port for node in self.cluster.nodes]
        self.times = {}             # fault -> [seconds]
        self.late = []              # what became of claims of servers that were primaries no more
        self.load = []
        self.control = Session(self.ports)

    # ---- beginning ----

    def admin(self, sql, dbname="shop", port=None):
        """Statements of a superuser, on the primary."""
        node = self.cluster.primary()
        environment = dict(os.environ, PGPASSWORD="change-me", PGCONNECT_TIMEOUT="5", PGOPTIONS="-c statement_timeout=60s")
        done = subprocess.run(
            [f"{self.cluster.bin}/psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port or node.port),
             "-U", "postgres", "-d", dbname], input=sql, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return done.stdout.strip()

    def begin(self):
        self.cluster.start()
        self.admin("CREATE ROLE app LOGIN PASSWORD 'change-me';\nCREATE DATABASE shop;", "postgres")
        self.admin(f"""CREATE EXTENSION tq;
            GRANT tq_admin TO app;
            ALTER DATABASE shop SET tq.claim_timeout = '{CLAIM_TIMEOUT}s';
            ALTER DATABASE shop SET tq.credentials = on;
            SELECT tq.subscribe('subscriber', 'task-defined');
            SELECT tq.subscribe('subscriber', 'task-completed');""")
        for queue in (WORK, LATE):          # a queue's first use waits for its first commit
            self.ask("SELECT tq.cancel_task(tq.enqueue(%s)) IS NULL", queue)
        kinds = [Producer] * 2 + [Worker] * 4 + [Subscriber, LogReader]
        for number, kind in enumerate(kinds):
            name = kind.__name__.lower() + ("" if kind in (Subscriber, LogReader) else str(number))
            self.load.append(kind(name, list(self.ports), self.ledger, self.options.seed))
        for client in self.load:
            client.start()

    def ask(self, sql, *arguments, wait=0.0, session=None, seconds=120):
        """The rows of a statement, repeated until there is an answer."""
        session = session or self.control
        end = time.monotonic() + seconds
        while True:
            try:
                return session.query(sql, arguments, wait)
            except Unknown as error:
                if time.monotonic() > end:
                    raise Failed(f"no answer: {error}") from error
                time.sleep(0.1)

    # ---- faults ----

    def inject(self, kind, node):
        if kind == "postmaster":
            node.kill_postmaster()
        elif kind in ("node", "lag"):
            node.kill()
        elif kind == "stop":
            node.stop()
        elif kind == "patroni":
            node.kill_patroni()
        elif kind == "etcd":
            node.proxy.cut()
        elif kind == "pause":
            node.pause()
        elif kind in ("switchover", "planned"):
            thread = threading.Thread(target=self.cluster.switch_over, daemon=True)
            thread.start()

    def repair(self, kind, node):
        if kind in ("node", "lag", "patroni", "stop"):
            if kind == "stop":
                node.process.wait(60)
            node.start()
        elif kind == "etcd":
            node.proxy.heal()
        elif kind == "pause":
            node.resume()
        elif kind == "planned":
            self.cluster.end_cascade()

    def claimed_elsewhere(self, old_port, since):
        """When the first claim after a moment was answered by another server."""
        last = self.ledger.last_claim
        return last and last[1] != old_port and last[0] > since and last[0]

    def round(self, kind):
        self.cluster.wait_healthy()
        node = self.cluster.primary()
        begun = time.monotonic()
        wait_for("load", lambda: (self.ledger.last_claim or (0,))[0] > begun + 1, 60)
        late = LateClaim(self, node) if kind in ("patroni", "pause", "etcd") else None
        time.sleep(self.random.uniform(0, 0.5))         # anywhere in Patroni's cycle
        if kind == "lag":
            node.stop_sending()
            time.sleep(1)
        if kind == "planned":
            self.cluster.cascade()
        start = time.monotonic()
        self.ledger.term += 1
        self.ledger.write("inject", kind, node.name, node.port)
        self.inject(kind, node)
        first = wait_for(f"a claim after {kind}", lambda: self.claimed_elsewhere(node.port, start), 90)
        self.times.setdefault(kind, []).append(first - start)
        if late:
            late.claim(kind)
        self.ledger.write("repair", kind, node.name)
        self.repair(kind, node)
        if late:
            self.late.append((kind, late.check()))
        note(f"{kind:<11} {node.name} to {self.cluster.primary().name if self.cluster.primary() else '?'} in {first - start:5.1f} s")

    # ---- end ----

    def settle(self):
        """No more tasks; waits until all that were created are resolved, and read."""
        for client in self.load:
            if isinstance(client, Producer):
                client.stop()
        self.cluster.wait_healthy()
        wait_for("the end of all tasks", lambda: self.ask(
            "SELECT NOT EXISTS (SELECT FROM tq.task_overview WHERE task_queue_id = %s AND state IN ('pending', 'running'))",
            WORK)[0][0], 4 * CLAIM_TIMEOUT, 0.5)
        last = self.ask("SELECT tq_internal.published_id()")[0][0]
        wait_for("readers", lambda: self.ledger.acked.get("subscriber", 0) >= self.ask(
            "SELECT COALESCE(max(id), 0) FROM tq.messages(after => %s - 1000, exchange => 'task-completed')", last)[0][0] or not self.load[-2].is_alive(), 60, 0.5)
        time.sleep(1)
        for client in self.load:
            client.stop()
        for client in self.load:
            client.join(30)

    def lost(self):
        """What was acknowledged, and is not on the primary."""
        ledger = self.ledger
        there = dict(self.ask("SELECT task_id, state FROM tq.task_overview WHERE task_queue_id = %s", WORK))
        runs = {(task, run): (state, worker) for task, run, state, worker in self.ask(
            "SELECT task_id, run_id, state, worker_id FROM tq.run_overview")}
        created = [task for task in ledger.created if task not in there]
        resolved = [key for key, workers in ledger.resolved.items() if runs.get(key) != ("completed", workers[-1][0])]
        acked = self.ask("SELECT name, acked_id FROM tq.subscription_overview")
        acks = [f"{name}: {number} is less than {ledger.acked[name]}" for name, number in set(acked)
                if number < ledger.acked.get(name, 0)]
        return created, resolved, acks

    def check(self):
        tap, ledger, mode = self.tap, self.ledger, self.options.mode
        created, resolved, acks = self.lost()
        note(f"acknowledged: {len(ledger.created)} creations, {len(ledger.claims)} claims, {len(ledger.resolved)} resolutions, "
             f"{len(ledger.seen.get('subscriber', ()))} messages")
        twice = [f"{key} {who}" for key, who in ledger.claims.items() if len({name for name, _, _ in who}) > 1]
        if mode == "async":
            note(f"lost, as asynchronous replication may: {len(created)} creations, {len(resolved)} resolutions, "
                 f"{len(acks)} acks, {len(ledger.refused)} claims; {len(twice)} runs were claimed twice")
        else:
            tap.ok(not created, "no acknowledged creation is lost", created)
            tap.ok(not resolved, "no acknowledged resolution is lost", resolved)
            tap.ok(not acks, "no acknowledged ack is lost", acks)
            tap.ok(not ledger.refused, "no acknowledged claim is lost", ledger.refused)
            tap.ok(not twice, "no run was claimed twice", twice)
        both = [key for key, who in ledger.resolved.items() if self.both_accepted(who)]
        tap.ok(not both, "no run was resolved by two workers", both)
        for reader in ("subscriber", "logreader"):
            read = {task for exchange, task in ledger.seen[reader].values() if exchange == "task-defined"}
            missed = [task for task in ledger.created if task not in read and task not in set(created)]
            tap.ok(not missed, f"the {reader} got a message of each task", missed)
        tap.ok(not ledger.faults, "message ids only grow, and mean the same; clients ended as they should", ledger.faults)
        self.check_rebuilt()

    def both_accepted(self, who):
        """Whether reports of two workers were accepted; in asynchronous mode by one primary."""
        if self.options.mode != "async":
            return len({worker for worker, _ in who}) > 1
        return any(a[0] != b[0] and a[1] == b[1] for a in who for b in who)

    def check_rebuilt(self):
        """What is in shared memory, on a server that was promoted."""
        tap = self.tap
        wait_for("counters", lambda: self.ask(
            "SELECT source = 'memory' FROM tq.queue_stats WHERE task_queue_id = %s", WORK)[0][0], 60)
        counted = self.ask("SELECT pending, delayed, blocked, running FROM tq.queue_stats WHERE task_queue_id = %s", WORK)[0]
        tap.ok(counted == (0, 0, 0, 0), "counters: nothing is left", [counted])
        waiter = Session(self.ports)
        answer = {}
        thread = threading.Thread(target=lambda: answer.update(rows=self.ask(
            "SELECT task_id FROM tq.claim_work(%s, 'g', 'waiter', wait => '30 s')", LATE, wait=30, session=waiter)))
        while self.ask("SELECT count(*) FROM tq.claim_work(%s, 'g', 'none', 100)", LATE)[0][0]:
            pass
        thread.start()
        wait_for("a waiter", lambda: self.ask(
            "SELECT waiters > 0 FROM tq.queue_stats WHERE task_queue_id = %s", LATE)[0][0], 30)
        task, start = slugid(), time.monotonic()
        self.ask("SELECT tq.enqueue(%s, task_id => %s)", LATE, task)
        thread.join()
        seconds = time.monotonic() - start
        tap.ok(answer["rows"] == [(task,)] and seconds < 2, "wait queue: a creation wakes the session that waits", [f"{seconds:.3f} s"])
        with open(os.path.join(os.path.dirname(__file__), "../violations.sql"), encoding="utf-8") as file:
            found = self.admin(file.read())
        tap.ok(found == "", "the tables are consistent", found.splitlines())

    def check_late(self):
        for kind in dict.fromkeys(kind for kind, _ in self.late):
            found = [result for one, result in self.late if one == kind]
            bad = [result for result in found if not result.startswith(("refused", "fenced"))]
            self.tap.ok(not bad, f"{kind}: claims of the old primary are refused by the new one", sorted(set(found)))

    def check_logs(self):
        bad = []
        for node in self.cluster.nodes:
            with open(f"{self.directory}/{node.name}.log", encoding="utf-8", errors="replace") as log:
                bad += [line.strip() for line in log if re.search(r"PANIC|TRAP:|terminated by signal (?!9)", line)]
        self.tap.ok(not bad, "no server crashed by itself", bad)

    def table(self):
        note(f"seconds to the first claim; {self.options.nodes} nodes, {self.options.mode}, ttl {self.options.ttl}, seed {self.options.seed}")
        note(f"{'fault':<12}{'n':>4}{'median':>8}{'worst':>8}")
        for kind, times in self.times.items():
            note(f"{kind:<12}{len(times):>4}{statistics.median(times):>8.1f}{max(times):>8.1f}")

    def check_times(self):
        """The longest that each may take: Patroni's ttl, its cycle, and time to promote."""
        ttl = self.options.ttl
        for kind, times in self.times.items():
            limit = {"postmaster": 15, "switchover": 3, "planned": 3, "stop": 15}.get(kind, ttl + 10) + self.options.slack
            self.tap.ok(max(times) <= limit, f"{kind}: claims within {limit} s", [f"{seconds:.1f}" for seconds in times])

    def run(self):
        kinds = list(FAULTS) if self.options.fault == "all" else self.options.fault.split(",")
        if self.options.mode == "async" and "patroni" in kinds:
            kinds.remove("patroni")
        self.begin()
        note(f"ready: {len(self.cluster.nodes)} nodes")
        for _ in range(self.options.rounds):
            for kind in self.random.sample(kinds, len(kinds)):
                self.round(kind)
        self.settle()
        self.check()
        self.check_late()
        self.check_logs()
        self.table()
        self.check_times()


class LateClaim:
    """A client of the old primary that does not wait for standbys, and gets a claim there.

    Both servers have the task; a worker of the same name claims it from the new primary, too.
    What the late client then reports to the new primary must be refused.
    """

    def __init__(self, test, node):
        self.test, self.task, self.answer = test, slugid(), None
        test.ask("SELECT tq.enqueue(%s, task_id => %s)", LATE, self.task)
        for other in test.cluster.nodes:
            session = Session([other.port], "any")
            wait_for("a replica", lambda: self.has_task(session), 30)
            session.close()
        self.session = Session([node.port], "any")
        self.session.query("SET synchronous_commit = local")
        self.thread = threading.Thread(target=self.run, daemon=True)

    def has_task(self, session):
        try:
            return session.query("SELECT EXISTS (SELECT FROM tq.task_overview WHERE task_id = %s)", (self.task,))[0][0]
        except Unknown:
            return False

    def run(self):
        try:
            rows = self.session.query(
                "SELECT credentials FROM tq.claim_task(%s, 0, 'g', 'late')", (self.task,), wait=60)
            self.answer = rows[0][0] if rows else None
        except (Unknown, Refused) as error:
            self.test.ledger.write("late", error)

    def claim(self, kind):
        """Claims on both; a server that is stopped answers when it goes on."""
        test = self.test
        ports = [node.port for node in test.cluster.nodes if node.port != self.session.port]
        self.new = Session(ports)   # the old one may still answer to those who ask it first
        rows = test.ask("SELECT credentials FROM tq.claim_task(%s, 0, 'g', 'late')", self.task, session=self.new)
        self.valid = rows[0][0] if rows else None
        self.thread.start()
        if kind != "pause":
            self.thread.join(70)

    def check(self):
        """What became of the late claim."""
        test = self.test
        self.thread.join(70)
        test.ledger.write("late", self.task, bool(self.answer))
        self.session.close()
        if not self.answer:
            return "fenced: the old primary answered no more"
        report = "SELECT tq.report_completed(%s, 0, credentials => %s)"
        try:
            return f"accepted: {test.ask(report, self.task, Json(self.answer), session=self.new)}"
        except Refused as error:
            test.ask(report, self.task, Json(self.valid), session=self.new)
            return f"refused: {error.code}, and that of the new one accepted"
        finally:
            self.new.close()


def main():
    parser = argparse.ArgumentParser(prog="failover", description="Failover under Patroni: what is lost, and how long it takes.")
    parser.add_argument("--rounds", type=int, default=1, help="faults of each kind")
    parser.add_argument("--nodes", type=int, default=3, choices=(2, 3))
    parser.add_argument("--mode", default="strict", choices=("strict", "sync", "async"))
    parser.add_argument("--fault", default="all", help=f"all, or some of {','.join(FAULTS)}")
    parser.add_argument("--ttl", type=int, default=20, help="Patroni's ttl, in seconds")
    parser.add_argument("--slack", type=int, default=0, help="seconds that each may take longer than it should")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", help="where to leave the ledger and the logs")
    options = parser.parse_args()
    if options.fault != "all" and not set(options.fault.split(",")) <= set(FAULTS):
        parser.error(f"faults are {', '.join(FAULTS)}")
    if options.mode == "strict" and options.nodes < 3:
        parser.error("strict mode needs three nodes: with two, nothing commits while one is away")
    directory = tempfile.mkdtemp(prefix="failover.", dir=os.environ.get("TQ_TMP"))
    test = Test(options, directory)
    try:
        test.run()
    except Failed as error:
        test.tap.ok(False, str(error))
        for node in test.cluster.nodes:
            note(f"{node.name}: {test.cluster.view().get(node.name)}")
    finally:
        for client in test.load:
            client.stop()
        test.cluster.end()
        for client in test.load:
            client.join(10)
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            for name in os.listdir(directory):
                if os.path.isfile(f"{directory}/{name}"):
                    shutil.copy(f"{directory}/{name}", options.keep)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"1..{test.tap.count}", flush=True)
    sys.exit(1 if test.tap.failures else 0)


main()
