"""The transport: a message of kombu is a task of tq, and its delivery a run.

A queue that lasts is a task queue.  A queue that does not (remote control, its replies,
events, broadcasts) is a binding: a running task in the task queue of its exchange, whose
claim the consumer keeps; who publishes to the exchange reads which bindings are running,
and creates a task for each.  If the consumer is gone, its claim expires, and with it the
binding; what was sent to it expires by its own pendingTimeout.

Threads: one thread drains events, any may acknowledge or publish; psycopg lets one at a
time use a connection.  `wake` is what others call for the draining thread to look again.
"""

import contextlib
import contextvars
import logging
import os
import select
import socket
from collections import deque
from datetime import datetime, timezone
from itertools import count
from queue import Empty
from time import monotonic
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple
from urllib.parse import quote

import psycopg
from amqp.protocol import queue_declare_ok_t  # type: ignore[import]
from kombu.transport import base, virtual  # type: ignore[import]
from kombu.utils.json import dumps  # type: ignore[import]
from kombu.utils.uuid import uuid  # type: ignore[import]

from . import names
from .claims import Claims, Run
from .waiter import Waiter

logger = logging.getLogger(__name__)

PUBLISH = """SELECT tq.enqueue(%(queue)s, %(payload)s::jsonb, name => %(name)s, priority => %(priority)s,
    retries => %(retries)s::int, run_at => %(run_at)s::timestamptz, deadline => NULL, policy => %(policy)s::jsonb)"""
CLAIM = """SELECT task_id, run_id, task_queue_id, payload
FROM tq.claim_work(%s::text[], 'kombu', %s, %s, claim_for => %s, mode => %s)"""
SIZE = "SELECT (tq.task_queue_counts(%s) ->> 'pendingTasks')::bigint"
PURGE = "CALL tq.cancel_tasks(%s, states => '{pending}')"
BINDINGS = "SELECT page, task_id, task -> 'payload' FROM tq.list_claimed_tasks(%s, %s, %s)"
BIND = """SELECT tq.enqueue(%(queue)s, %(payload)s::jsonb, task_id => %(task)s, name => %(name)s, retries => 0,
    deadline => NULL, policy => %(policy)s::jsonb)"""
CLAIM_BINDING = "SELECT run_id FROM tq.claim_task(%s, 0, 'kombu', %s, claim_for => %s)"

#: What is kept of a message that was broadcast, and of a binding.
BRIEFLY: Dict[str, Any] = {"retainCompleted": "1 min", "retainFailed": "1 min"}
TRANSIENT_TTL = 60.0
#: Headers that Celery has for people to read.
SHOWN = ("argsrepr", "kwargsrepr")
#: What Celery raises of a message that is none of its own; its worker would end, and be given it again.
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
BATCH = 32
PAGE = 1000

_within: "contextvars.ContextVar[Any]" = contextvars.ContextVar("tq.kombu.within", default=None)


@contextlib.contextmanager
def within(connection: Any) -> Iterator[None]:
    """What is sent to queues in this block is part of the transaction of that connection.

    It is one of psycopg 3 or 2, of Django, or of SQLAlchemy (its driver's); it is neither
    committed nor closed here.  Control commands and events are never part of it.
    """
    token = _within.set(connection)
    try:
        yield
    finally:
        _within.reset(token)


class Place(str):
    """The name of a queue that does not last, at one of its bindings."""

    task: str
    queue_id: str
    ttl: float


class Binding(NamedTuple):
    """A binding of this connection: which task it is, and where its messages are."""

    tag: str
    task: str
    queue_id: str


class QoS(virtual.QoS):  # type: ignore[misc]
    """Reports what is acknowledged; the channel puts back what is requeued or left."""

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.channel.claims.report(delivery_tag)
        self.channel.wake()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().reject(delivery_tag, requeue=requeue)
        self.channel.claims.report(delivery_tag, "failed", {"message": "rejected"})
        self.channel.wake()


class Channel(virtual.Channel):  # type: ignore[misc]
    """A channel of kombu: what it consumes, and where it publishes."""

    QoS = QoS
    supports_fanout = True
    prefix = "celery"
    retries: Optional[int] = None
    priorities: Tuple[str, ...] = names.PRIORITIES
    queue_order_strategy = "round-robin"
    from_transport_options = virtual.Channel.from_transport_options + (
        "prefix", "retries", "priorities", "queue_order_strategy")  # fmt: skip

    def __init__(self, connection: "Transport", **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self.claims = connection.claims
        self.ready: "Deque[Tuple[str, Dict[str, Any]]]" = deque()
        self.unacknowledged: Set[str] = set()  # queues that are consumed with no_ack
        self.declared: Dict[str, float] = {}  # queues that do not last, and how long messages do

    # ---- publish ----

    def encode_body(self, body: Any, encoding: Optional[str] = None) -> "Tuple[Any, Optional[str]]":
        """Text stays text, which can be read in the database; jsonb has no NUL."""
        if isinstance(body, str) and "\0" not in body:
            return body, None
        encoded: "Tuple[Any, Optional[str]]" = super().encode_body(body, encoding or "base64")
        return encoded

    def _put(self, queue: str, message: Dict[str, Any], **kwargs: Any) -> None:
        headers, properties = message.get("headers") or {}, message["properties"]
        policy: Dict[str, Any] = {}
        if properties.get("expiration") is not None:
            policy["pendingTimeout"] = float(properties["expiration"]) / 1000
        values: Dict[str, Any] = {
            "queue": names.queue_id(self.prefix, queue),
            "name": str(headers.get("task") or queue)[:255],
            "priority": names.priority(properties.get("priority"), self.priorities),
            "retries": self.retries,
            "run_at": eta(headers),
        }
        db = _within.get()
        if isinstance(queue, Place):
            db = None
            properties = {**properties, "binding": queue.task}
            policy = {"pendingTimeout": queue.ttl, **policy, **BRIEFLY}
            values.update(queue=queue.queue_id, retries=0)
        shown = {key: readable(headers[key]) for key in SHOWN if headers.get(key)}
        payload = dumps({**message, "properties": properties, "headers": {**headers, **shown}})
        values.update(payload=payload, policy=dumps(policy) if policy else None)
        with contextlib.closing((db or self.connection.db).cursor()) as cursor:
            cursor.execute(PUBLISH, values)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **kwargs: Any) -> None:
        for queue in self._lookup(exchange, routing_key):
            self._put(queue, message, **kwargs)

    def _lookup(self, exchange: str, key: str, default: Optional[str] = None) -> List[str]:
        """The queues of a message: those that this process has bound, and bindings of others."""
        local = self.connection.bindings
        found = [q for q in super()._lookup(exchange, key, default) if q and q not in local]
        if not exchange or (found and self.typeof(exchange).type == "direct"):
            return found
        return found + list(dict.fromkeys(self._places(exchange, key)))

    def _places(self, exchange: str, key: str) -> "Iterator[Place]":
        """The bindings in the database that a routing key matches."""
        for task, binding in self.connection.bound(names.exchange_id(self.prefix, exchange)):
            place = Place(binding["queue"])
            place.task, place.ttl = task, binding["ttl"]
            place.queue_id = names.place_id(self.prefix, exchange, binding["place"])
            row = (binding["key"], binding["pattern"], place)
            if self.exchange_types[binding["type"]].lookup([row], exchange, key, None):
                yield place

    # ---- queues ----

    def prepare_queue_arguments(self, arguments: Any, **kwargs: Any) -> Any:
        return base.to_rabbitmq_queue_arguments(arguments, **kwargs)

    def queue_declare(
        self, queue: Optional[str] = None, passive: bool = False, **kwargs: Any
    ) -> Any:
        """A queue needs no declaration; how much is in it is counted only for those who ask."""
        queue = queue or f"amq.gen-{uuid()}"
        self._new_queue(queue, **kwargs)
        return queue_declare_ok_t(queue, self._size(queue) if passive else 0, 0)

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        if kwargs.get("auto_delete") or kwargs.get("exclusive") or not kwargs.get("durable", True):
            ttl = (kwargs.get("arguments") or {}).get("x-message-ttl", TRANSIENT_TTL * 1000)
            self.declared[queue] = ttl / 1000
            self.connection.bindings.setdefault(queue, [])

    def _queue_bind(self, exchange: str, key: str, pattern: Any, queue: str) -> None:
        bindings = self.connection.bindings.get(queue)
        if bindings is not None:
            ttl = self.declared.get(queue, TRANSIENT_TTL)
            row = dict(
                queue=queue, key=key, pattern=pattern, type=self.typeof(exchange).type, ttl=ttl
            )
            bindings.append(self.connection.bind(self.prefix, exchange, row))
            self.connection.wake()

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        self.declared.pop(queue, None)
        bindings = self.connection.bindings.pop(queue, None)
        if bindings is None:
            self._purge(queue)
        for binding in bindings or []:
            self.claims.report(binding.tag)

    def _size(self, queue: str) -> int:
        return 0 if queue in self.connection.bindings else self._number(SIZE, queue)

    def _purge(self, queue: str) -> int:
        return 0 if queue in self.connection.bindings else self._number(PURGE, queue)

    def _number(self, query: str, queue: str) -> int:
        row = self.connection.db.execute(query, (names.queue_id(self.prefix, queue),)).fetchone()
        return int(row[0]) if row else 0

    # ---- consume ----

    def sources(self) -> Dict[str, str]:
        """The task queues that are consumed, each with its queue of kombu."""
        return {
            task_queue: queue for queue in self._active_queues for task_queue in self.places(queue)
        }

    def places(self, queue: str) -> List[str]:
        """The task queues of a queue: its own, or one for each binding."""
        bindings = self.connection.bindings.get(queue)
        if bindings is None:
            return [names.queue_id(self.prefix, queue)]
        return [binding.queue_id for binding in bindings]

    def room(self) -> int:
        """How many messages may be delivered before others are acknowledged."""
        left: Optional[int] = self.qos.can_consume_max_estimate() if self._consumers else 0
        return BATCH if left is None else min(left, BATCH)

    def claim(self, sources: Dict[str, str], room: int) -> int:
        """Claims up to that many messages, which are delivered next."""
        claim_for, worker = f"{self.claims.claim_for} s", names.worker_id()
        rows = self.connection.db.execute(
            CLAIM, (list(sources), worker, room, claim_for, self.queue_order_strategy)).fetchall()  # fmt: skip
        for task, run, queue_id, payload in rows:
            tag = self._next_delivery_tag()
            self.claims.hold(tag, Run(task, run))
            if self._is_ours(payload, sources[queue_id], tag, run):
                self.ready.append((sources[queue_id], payload))
        return len(rows)

    def _is_ours(self, payload: Any, queue: str, tag: str, run: int) -> bool:
        """Completes a message as virtual channels want it, and reports one that is none."""
        try:
            properties, headers = payload["properties"], payload["headers"]
            properties["delivery_tag"] = tag
            properties["delivery_info"].update(redelivered=run > 0)
            if eta(headers) is not None:
                headers["eta"] = None  # the database has waited for it
            if not isinstance(headers.get("task", ""), str):
                raise TypeError("the name of the task is no text")
            self.Message(payload, channel=self)
        except Exception as error:
            logger.error(
                "A task in queue %s is no message: %s: %s", queue, type(error).__name__, error
            )
            self.claims.report(
                tag, "malformed-payload", {"message": f"no message of kombu: {error}"[:1000]}
            )
            return False
        bindings = self.connection.bindings.get(queue)
        if bindings is None or properties.get("binding") in [binding.task for binding in bindings]:
            return True
        self.claims.report(tag)  # it was sent to one who had this place before
        return False

    def deliver(self) -> int:
        """Delivers what was claimed.  Returns how many messages that were."""
        delivered = 0
        while self.ready and not self.closed:
            queue, payload = self.ready.popleft()
            tag = payload["properties"]["delivery_tag"]
            if queue in self.unacknowledged:
                self.claims.report(tag)
            try:
                self.connection._deliver(payload, queue)
            except UNREADABLE as error:
                if "task" not in payload["headers"]:
                    raise
                logger.exception("A message in queue %s cannot be received", queue)
                self.qos._quick_ack(tag)
                self.claims.report(tag, "malformed-payload", {"message": str(error)[:1000]})
            delivered += 1
        return delivered

    def _get(self, queue: str, timeout: Optional[float] = None) -> Dict[str, Any]:
        waiting = len(self.ready)
        while self.claim(dict.fromkeys(self.places(queue), queue), 1):
            if len(self.ready) > waiting:
                return self.ready.pop()[1]
        raise Empty()

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack=no_ack, **kwargs)
        if message is not None and no_ack:
            self.claims.report(message.delivery_tag)
        return message

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> Any:
        (self.unacknowledged.add if no_ack else self.unacknowledged.discard)(queue)
        super().basic_consume(queue, no_ack, *args, **kwargs)
        self.wake()

    def basic_qos(self, *args: Any, **kwargs: Any) -> None:
        super().basic_qos(*args, **kwargs)
        self.wake()

    def _next_delivery_tag(self) -> str:
        return f"message {next(self._delivery_tags)}"

    def _restore(self, message: Any) -> None:
        if self.connection is None or not self.connection.broken:
            self.claims.report(message.delivery_tag, None)

    def wake(self) -> None:
        if self.connection is not None:
            self.connection.wake()

    def close(self) -> None:
        """Puts back what is not acknowledged, and ends the queues that do not last."""
        if not self.closed:
            with contextlib.suppress(*self.connection.connection_errors):
                while self.ready:
                    tag = self.ready.popleft()[1]["properties"]["delivery_tag"]
                    if not self.connection.broken:
                        self.claims.report(tag, None)
            for queue in list(self.declared):
                self.queue_delete(queue)
        super().close()


class Transport(virtual.Transport):  # type: ignore[misc]
    """A connection of kombu: up to three sessions, for calls, for the claims, and to wait."""

    Channel = Channel
    can_parse_url = True
    default_port = 5432
    polling_interval = None
    driver_type = "postgresql"
    driver_name = "tq"
    connection_errors = base.Transport.connection_errors + (
        psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction)  # fmt: skip
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.bindings: Dict[str, List[Binding]] = {}  # of queues that do not last
        self.numbers = count(1)
        self.hub: Any = None
        self.open()

    def open(self) -> None:
        options = self.client.transport_options
        self.pid, self.broken, self.conninfo = os.getpid(), False, conninfo(self.client)
        self.options: Dict[str, Any] = {
            "connect_timeout": int(self.client.connect_timeout or 5),
            "application_name": "kombu",
            **options.get("connect", {}),
        }
        self._db: "Optional[psycopg.Connection[Any]]" = None
        self.claims = Claims(self.connect, float(options.get("claim_for", 120)))
        self.waiter = Waiter(self.connect)
        self.pipe: Optional[Tuple[socket.socket, socket.socket]] = None
        self.awake = False
        self.lost_since: Optional[float] = None  # when, on the monotonic clock
        self.waiting_fd: Optional[int] = None  # that of the waiter, in the hub

    def driver_version(self) -> str:
        return str(psycopg.__version__)

    # ---- sessions ----

    def connect(self) -> "psycopg.Connection[Any]":
        db: "psycopg.Connection[Any]" = psycopg.connect(
            self.conninfo, autocommit=True, **self.options
        )
        return db

    @property
    def db(self) -> "psycopg.Connection[Any]":
        """The session for calls.  A child process makes its own, and leaves that of its parent."""
        if self.pid != os.getpid():
            _inherited.append((self._db, self.claims, self.waiter, self.pipe))
            self.open()
        if self._db is None:
            self._db = self.connect()
        if self._db.closed:
            self.broken = True
        return self._db

    def establish_connection(self) -> "Transport":
        if self.broken or self.claims.stopped is not None or not self.verify_connection(self):
            self.close_connection(self)
            self.open()
        self.db.execute("SELECT")
        established: Transport = super().establish_connection()
        return established

    def verify_connection(self, connection: Any) -> bool:
        lost = self.broken or self.claims.lost.is_set()
        return not lost and (self._db is None or not self._db.closed)

    def close_connection(self, connection: Any) -> None:
        """Acknowledges and puts back what is to be; after an error, keeps what may still end."""
        if self.pid != os.getpid():
            _inherited.append((self._db, self.claims, self.waiter, self.pipe))
            return
        self.broken = self.broken or self._db is None or self._db.closed
        super().close_connection(connection)
        with contextlib.suppress(*self.connection_errors):
            self.claims.stop(put_back=not self.broken)
        self._close_sessions()
        for end in self.pipe or ():
            if self.hub is not None:
                with contextlib.suppress(Exception):
                    self.hub.remove(end.fileno())
            end.close()
        self.pipe = self.hub = None

    # ---- bindings ----

    def bound(self, queue_id: str) -> "Iterator[Tuple[str, Dict[str, Any]]]":
        """The bindings of an exchange, those of other processes, too: their tasks and payloads."""
        page, more = None, True
        while more:
            rows = self.db.execute(BINDINGS, (queue_id, page, PAGE)).fetchall()
            for page, task, payload in rows:
                yield task, payload
            more = len(rows) == PAGE

    def bind(self, prefix: str, exchange: str, row: Dict[str, Any]) -> Binding:
        """A binding is a task that is claimed; its place is the first that no other has."""
        queue_id = names.exchange_id(prefix, exchange)
        used = {binding["place"] for _, binding in self.bound(queue_id)}
        for place in (n for n in count() if n not in used):
            policy = dumps({"uniqueKey": str(place), **BRIEFLY})
            values: Dict[str, Any] = {"queue": queue_id, "payload": dumps({**row, "place": place}),
                      "name": row["queue"][:255], "policy": policy}  # fmt: skip
            with self.db.transaction():
                task = self.db.execute("SELECT tq.slugid()").fetchone()[0]  # type: ignore[index]
                if self.db.execute(BIND, {**values, "task": task}).fetchone()[0] != task:  # type: ignore[index]
                    continue
                claimed = (task, names.worker_id(), f"{self.claims.claim_for} s")
                self.db.execute(CLAIM_BINDING, claimed)
            tag = f"binding {next(self.numbers)}"
            self.claims.hold(tag, Run(task, 0))
            return Binding(tag, task, names.place_id(prefix, exchange, place))
        raise AssertionError

    # ---- events ----

    def wake(self) -> None:
        """Has the thread that drains look for messages; any thread may call it."""
        pipe = self.pipe
        if not self.awake and pipe is not None:
            self.awake = True
            with contextlib.suppress(OSError):
                pipe[1].send(b".")

    def turn(self) -> int:
        """Delivers what is there, or else waits for more.  Returns how many were delivered."""
        if self.claims.lost.is_set():
            raise psycopg.OperationalError("the claim of a binding was lost")
        delivered, wanted, more = 0, set(), False
        for channel in list(self.channels):
            if channel is None or channel.closed:
                continue
            sources, room = channel.sources(), channel.room()
            if not sources or room <= 0:
                continue
            found = 0 if sources.keys() <= self.waiter.queues else channel.claim(sources, room)
            delivered += channel.deliver()
            more = more or found == room
            if channel.room() > 0:
                wanted |= sources.keys()
        if more:
            self.wake()
        elif wanted and self.waiter.wait_for(frozenset(wanted)):
            self._register()
        return delivered

    def on_readable(self, *args: Any) -> int:
        """Something has come: the end of a wait, or a byte of wake."""
        if self.pipe is None:  # closed since
            return 0
        try:
            self.waiter.has_ended()
            with contextlib.suppress(BlockingIOError):
                self.pipe[0].recv(4096)
            self.awake = False
            delivered = self.turn()
            self.lost_since = None
            return delivered
        except self.connection_errors as error:
            if not self._connects_again(error):
                raise
            return 0

    def _connects_again(self, error: BaseException) -> bool:
        """Whether the next turn, in a second, is with new sessions.

        The claims stay, and what runs goes on as if nothing had happened.  It is for kombu to
        connect from nothing where it has another URL, or where claims are lost by now.
        """
        self.broken = self._db is None or self._db.closed or self.waiter.is_lost()
        now, self.lost_since = monotonic(), self.lost_since or monotonic()
        lost = self.claims.lost.is_set() or now > self.lost_since + self.claims.claim_for
        if not self.broken or self.client.alt or lost:
            return False
        logger.warning("The connection was lost, trying again: %s", error)
        self._close_sessions()
        self.broken = False
        if self.hub is not None:
            self.hub.call_later(1, self.on_readable)
        return True

    def _close_sessions(self) -> None:
        if self.waiting_fd is not None and self.hub is not None:
            with contextlib.suppress(Exception):
                self.hub.remove(self.waiting_fd)
        self.waiter.close()
        if self._db is not None:
            self._db.close()
        self._db = self.waiting_fd = None

    def _pipe(self) -> socket.socket:
        if self.pipe is None:
            self.pipe = socket.socketpair()
            for end in self.pipe:
                end.setblocking(False)
        return self.pipe[0]

    def drain_events(self, connection: Any, timeout: Optional[float] = None, **kwargs: Any) -> None:
        """Delivers at least one message, or raises socket.timeout."""
        end = None if timeout is None else monotonic() + timeout
        wakes = self._pipe()
        while not self.on_readable():
            left = None if end is None else end - monotonic()
            if left is not None and left <= 0:
                raise socket.timeout()
            if self.lost_since is not None:
                left = 1 if left is None else min(left, 1)
            fds: List[Any] = [wakes] if self.waiter.db is None else [wakes, self.waiter]
            select.select(fds, [], [], left)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self.hub = loop
        loop.add_reader(self._pipe().fileno(), self.on_readable)
        if self.waiter.db is not None:
            self._register()
        self.wake()

    def _register(self) -> None:
        if self.hub is not None:
            self.waiting_fd = self.waiter.fileno()
            self.hub.add_reader(self.waiting_fd, self.on_readable)


#: What a child process has of its parent: not used, and not closed, which would end the session.
_inherited: List[Any] = []


def eta(headers: Dict[str, Any]) -> Optional[datetime]:
    """When a task is due, by Celery's header; a time without a zone is in UTC."""
    try:
        due = datetime.fromisoformat(headers["eta"].replace("Z", "+00:00"))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return due if due.tzinfo is not None else due.replace(tzinfo=timezone.utc)


def readable(text: Any) -> str:
    """The text without what jsonb does not take: NUL, and half of a character."""
    return str(text).encode("utf-8", "replace").decode().replace("\0", "?")


def conninfo(client: Any) -> str:
    """The URL as libpq reads it: several hosts, parameters, and what is left to PGHOST."""
    if "://" in (client.hostname or ""):
        return f"postgresql:{str(client.hostname).split(':', 1)[1]}"
    password = ":" + quote(client.password, "") if client.password else ""
    login = f"{quote(client.userid, '')}{password}@" if client.userid else ""
    port = f":{client.port}" if client.port else ""
    database = (client.virtual_host or "").lstrip("/")
    return f"postgresql://{login}{client.hostname or ''}{port}/{database}"
