"""A channel: what it publishes and what it consumes, as tasks and runs of tq.

A queue that lasts is a task queue, a message a task, and its delivery a run.  A queue that
does not last has a place for each of its bindings (bindings.py): who publishes to an
exchange creates a task for each place that the routing key matches.

Threads: one thread drains events, any may acknowledge or publish; psycopg lets one at a
time use a connection.
"""

import contextlib
import contextvars
import logging
from collections import deque
from datetime import datetime, timezone
from queue import Empty
from typing import Any, Deque, Dict, Iterator, List, Optional, Set, Tuple

from amqp.protocol import queue_declare_ok_t  # type: ignore[import]
from kombu.transport import base, virtual  # type: ignore[import]
from kombu.utils.json import dumps  # type: ignore[import]
from kombu.utils.uuid import uuid  # type: ignore[import]

from . import names
from .bindings import BRIEFLY, bind, bound
from .claims import Run

logger = logging.getLogger(__name__)

PUBLISH = """SELECT tq.enqueue(%(queue)s, %(payload)s::jsonb, name => %(name)s, priority => %(priority)s,
    retries => %(retries)s::int, run_at => %(run_at)s::timestamptz, deadline => NULL, policy => %(policy)s::jsonb)"""
CLAIM = """SELECT task_id, run_id, task_queue_id, payload
FROM tq.claim_work(%s::text[], 'kombu', %s, %s, claim_for => %s, mode => %s)"""
SIZE = "SELECT (tq.task_queue_counts(%s) ->> 'pendingTasks')::bigint"
PURGE = "CALL tq.cancel_tasks(%s, states => '{pending}')"
TRANSIENT_TTL = 60.0
#: Headers that Celery has for people to read.
SHOWN = ("argsrepr", "kwargsrepr")
#: What Celery raises of a message that is none of its own; its worker would end, and be given it again.
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
BATCH = 32

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

    def __init__(self, connection: Any, **kwargs: Any) -> None:
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
        for task, binding in bound(self.connection.db, names.exchange_id(self.prefix, exchange)):
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
            bindings.append(bind(self.connection.db, self.claims, self.prefix, exchange, row))
            self.connection.wake()

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        self.declared.pop(queue, None)
        bindings = self.connection.bindings.pop(queue, None)
        if bindings is None:
            self._purge(queue)
        for binding in bindings or []:
            self.claims.report(binding.tag)

    def after_reply_message_received(self, queue: str) -> None:
        """The queue of the replies ends; that of a connection that was lost has ended with it."""
        if not self.closed:
            super().after_reply_message_received(queue)

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
