"""Clients of a test of failover, and the ledger of what they were answered.

The ledger is outside the servers.  It has only what was acknowledged: a call that ended
in any other way than with an answer has an unknown result, and is repeated.
"""
import base64
import json
import os
import random
import socket
import threading
import time
import uuid

import psycopg2
from psycopg2.extras import Json

WORK, LATE = "load/work", "load/late"
PATIENCE = 5                        # seconds for an answer, beyond what the call itself waits: 7 of a claim


class Unknown(Exception):
    """No answer: the call may or may not have taken effect."""


class Refused(Exception):
    """The answer is an error of tq, so the call had no effect."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = error.pgcode


def slugid():
    return base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()


class Watchdog:
    """Ends connections whose answer is late: a server that is stopped keeps them open."""

    def __init__(self):
        self.lock, self.due = threading.Lock(), {}
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            time.sleep(0.1)
            with self.lock:
                late = [call for call, (_, when) in self.due.items() if when < time.monotonic()]
                for call in late:
                    self.shut(self.due.pop(call)[0])

    def shut(self, fd):
        try:
            with socket.socket(fileno=os.dup(fd)) as one:
                one.shutdown(socket.SHUT_RDWR)
        except OSError:             # it has ended meanwhile
            pass

    def begin(self, fd, seconds):
        """A call begins on this socket; returns what ends it."""
        call = object()
        with self.lock:
            self.due[call] = (fd, time.monotonic() + seconds)
        return call

    def end(self, call):
        with self.lock:
            self.due.pop(call, None)


watchdog = Watchdog()


class Session:
    """A connection to whichever of the ports is the primary's; made when it is needed."""

    def __init__(self, ports, attributes="read-write"):
        self.ports, self.attributes = list(ports), attributes
        self.connection = self.port = None
        self.idle_until = 0.0       # when a host without work is left

    def connect(self):
        hosts = ",".join("127.0.0.1" for _ in self.ports)
        self.connection = psycopg2.connect(
            host=hosts, port=",".join(map(str, self.ports)), dbname="shop", user="app", password="change-me",
            connect_timeout=2, target_session_attrs=self.attributes, application_name="load")
        self.connection.autocommit = True
        self.port = self.connection.info.port

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def leave(self):
        """Has the next connection try this host last.

        It may be a primary that is none any more, and does not know yet.
        """
        last = self.port if self.connection else self.ports[0]
        self.close()
        self.ports.remove(last)
        self.ports.append(last)

    def idle(self):
        """Leaves a host that has no work: it may be an old primary that nothing fences.

        The next host is not left at once, because what creates tasks may still wait for
        an answer of the old one.
        """
        if time.monotonic() >= self.idle_until:
            self.leave()
            self.idle_until = time.monotonic() + 2 * PATIENCE

    def query(self, sql, arguments=(), wait=0.0):
        """Rows of one statement, committed; raises Unknown or Refused."""
        try:
            if not self.connection:
                self.connect()
            call = watchdog.begin(self.connection.fileno(), wait + PATIENCE)
            try:
                with self.connection.cursor() as cursor:
                    cursor.execute(sql, arguments)
                    rows = cursor.fetchall() if cursor.description else []
            finally:
                watchdog.end(call)
            if any("canceling" in notice for notice in self.connection.notices):
                raise Unknown("the wait for the standby was canceled")
            return rows
        except psycopg2.Error as error:
            if error.pgcode and error.pgcode.startswith("TQ"):
                raise Refused(error) from error
            self.leave()
            raise Unknown(str(error).strip()) from error


class Ledger:
    """What was acknowledged, when, and by which server."""

    def __init__(self, file, may_lose):
        self.lock = threading.RLock()
        self.may_lose = may_lose    # acks, so that messages come again
        self.out = open(file, "w", encoding="utf-8")
        self.created = {}           # task -> time
        self.claims = {}            # (task, run) -> [(worker, time, port)]
        self.resolved = {}          # (task, run) -> [(worker, (port, term))]
        self.refused = []           # (task, run, worker, reason) of claims that had not expired
        self.acked = {}             # reader -> id
        self.seen = {}              # reader -> {id: (exchange, task)}
        self.faults = []            # what must not be, in any mode
        self.last_claim = None      # (time, port)
        self.term = 0               # how many faults there were

    def write(self, *what):
        if what[0] == "unknown":
            what = [str(one).splitlines()[0] for one in what]
        with self.lock:
            self.out.write(f"{time.monotonic():.3f} {' '.join(map(str, what))}\n")

    def create(self, tasks, port):
        with self.lock:
            for task in tasks:
                self.created[task] = time.monotonic()
                self.write("created", task, port)

    def claim(self, task, run, worker, port):
        now = time.monotonic()
        with self.lock:
            self.claims.setdefault((task, run), []).append((worker, now, port))
            self.last_claim = (now, port)
            self.write("claimed", task, run, worker, port)

    def resolve(self, task, run, worker, port):
        with self.lock:
            self.resolved.setdefault((task, run), []).append((worker, (port, self.term)))
            self.write("resolved", task, run, worker, port)

    def refuse(self, task, run, worker, reason):
        with self.lock:
            self.refused.append((task, run, worker, reason))
            self.write("refused", task, run, worker, reason)

    def ack(self, reader, last, port):
        with self.lock:
            self.acked[reader] = last
            self.write("acked", reader, last, port)

    def fault(self, what):
        with self.lock:
            self.faults.append(what)
            self.write("fault", what)

    def messages(self, reader, rows, after, port):
        """Rows (id, exchange, task) that a reader got, who has read all up to an id."""
        seen = self.seen.setdefault(reader, {})
        highest = max(seen, default=0)
        last = 0 if self.may_lose else after
        for number, exchange, task in rows:
            self.write("message", reader, number, exchange, task, port)
            if number <= last:
                self.fault(f"{reader} got message {number} after {last}")
            if number not in seen and number < highest:
                self.fault(f"{reader} got message {number} only after {highest}")
            if seen.setdefault(number, (exchange, task)) != (exchange, task):
                self.fault(f"{reader} got message {number} as {(exchange, task)}, and before as {seen[number]}")
            last = number


class Client(threading.Thread):
    """A thread that repeats one turn until it is stopped; unknown results end a turn."""

    def __init__(self, name, ports, ledger, seed):
        super().__init__(name=name, daemon=True)
        self.ledger, self.random = ledger, random.Random(f"{seed}{name}")
        self.random.shuffle(ports)
        self.session = Session(ports)
        self.stopping = threading.Event()
        self.error = None

    def run(self):
        while not self.stopping.is_set():
            try:
                self.turn()
            except Unknown as error:
                if not self.stopping.is_set():
                    self.ledger.write("unknown", self.name, error)
                self.stopping.wait(0.1)
            except Exception as error:          # a defect of the test, or an error that tq must not raise
                self.error = error
                self.ledger.fault(f"{self.name}: {type(error).__name__}: {error}")
                return
        self.session.close()

    def stop(self):
        self.stopping.set()

    def repeat(self, call):
        """Repeats a call whose result is unknown, until it is known."""
        while True:
            try:
                return call()
            except Unknown as error:
                self.ledger.write("unknown", self.name, error)
                if self.stopping.wait(0.1):
                    raise


class Producer(Client):
    """Creates tasks with ids of its own, one or five at a time."""

    def turn(self):
        ids = [slugid() for _ in range(self.random.choice((1, 1, 1, 5)))]
        if len(ids) == 1:
            self.repeat(lambda: self.session.query(
                "SELECT tq.enqueue(%s, '{}', task_id => %s)", (WORK, ids[0])))
        else:
            self.repeat(lambda: self.session.query(
                "SELECT tq.enqueue_tasks(%s, array_fill('{}'::jsonb, '{5}'), task_ids => %s::text[]::tq.slugid[])", (WORK, ids)))
        self.ledger.create(ids, self.session.port)
        self.stopping.wait(self.random.uniform(0.01, 0.05))


class Worker(Client):
    """Claims, waiting for work, and completes what it has, with its credentials."""

    def turn(self):
        rows = self.session.query(
            "SELECT task_id, run_id, extract(epoch FROM taken_until - clock_timestamp())::float8, credentials"
            " FROM tq.claim_work(%s, 'g', %s, 2, wait => '2 s')", (WORK, self.name), wait=2)
        if not rows:
            self.session.idle()
        until = [time.monotonic() + row[2] for row in rows]
        for task, run, _, _ in rows:
            self.ledger.claim(task, run, self.name, self.session.port)
        for (task, run, _, credentials), end in zip(rows, until):
            self.stopping.wait(self.random.uniform(0, 0.01))
            self.complete(task, run, credentials, end)

    def complete(self, task, run, credentials, end):
        try:
            self.repeat(lambda: self.session.query(
                "SELECT tq.report_completed(%s, %s, credentials => %s)", (task, run, Json(credentials))))
            self.ledger.resolve(task, run, self.name, self.session.port)
        except Refused as error:
            if time.monotonic() < end - 1:
                self.ledger.refuse(task, run, self.name, f"{error.code} {error}".splitlines()[0])


class Subscriber(Client):
    """Reads a durable subscription, and acknowledges what it has read."""

    def turn(self):
        after = self.ledger.acked.get(self.name, 0)
        rows = self.session.query(
            "SELECT id, exchange, payload #>> '{status,taskId}' FROM tq.fetch(%s, 200)", (self.name,))
        self.ledger.messages(self.name, rows, after, self.session.port)
        if rows:
            self.session.query("SELECT tq.ack(%s, %s)", (self.name, rows[-1][0]))
            self.ledger.ack(self.name, rows[-1][0], self.session.port)
        self.stopping.wait(0.1 if len(rows) < 200 else 0)


class LogReader(Client):
    """Reads the log of messages, and keeps its place itself."""

    place = 0

    def turn(self):
        rows = self.session.query(
            "SELECT id, exchange, payload #>> '{status,taskId}' FROM tq.messages(after => %s, max => 200, exchange => 'task-defined')", (self.place,))
        self.ledger.messages(self.name, rows, self.place, self.session.port)
        self.place = rows[-1][0] if rows else self.place
        self.stopping.wait(0.1 if len(rows) < 200 else 0)
