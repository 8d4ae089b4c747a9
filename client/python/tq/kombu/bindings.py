"""Queues that do not last: of remote control, its replies, events, broadcasts.

A binding of such a queue is a running task in the task queue of its exchange, whose claim
the consumer keeps.  Its place is a number that no other binding of the exchange has; the
task queue of that place has its messages.  If the consumer is gone, its claim expires, and
with it the binding; what was sent to it expires by its own pendingTimeout, and the next
consumer gets the place.

Locks: the place is the uniqueKey of the task, so that of two that want one, the second
waits for the first to commit, and then tries the next.
"""

from itertools import count
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import psycopg
from kombu.utils.json import dumps  # type: ignore[import]

from . import names
from .claims import Claims, Run

BINDINGS = "SELECT page, task_id, task -> 'payload' FROM tq.list_claimed_tasks(%s, %s, %s)"
BIND = """SELECT tq.enqueue(%(queue)s, %(payload)s::jsonb, task_id => %(task)s, name => %(name)s, retries => 0,
    deadline => NULL, policy => %(policy)s::jsonb)"""
CLAIM_BINDING = "SELECT run_id FROM tq.claim_task(%s, 0, 'kombu', %s, claim_for => %s)"
#: What is kept of a message that was broadcast, and of a binding.
BRIEFLY: Dict[str, Any] = {"retainCompleted": "1 min", "retainFailed": "1 min"}
PAGE = 1000

Db = psycopg.Connection[Any]
_numbers = count(1)


class Binding(NamedTuple):
    """A binding of this connection: which task it is, and where its messages are."""

    tag: str
    task: str
    queue_id: str


def bound(db: Db, queue_id: str) -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """The bindings of an exchange, those of other processes, too: their tasks and payloads."""
    page, more = None, True
    while more:
        rows = db.execute(BINDINGS, (queue_id, page, PAGE)).fetchall()
        for page, task, payload in rows:
            yield task, payload
        more = len(rows) == PAGE


def bind(db: Db, claims: Claims, prefix: str, exchange: str, row: Dict[str, Any]) -> Binding:
    """A binding is a task that is claimed; its place is the first that no other has."""
    queue_id = names.exchange_id(prefix, exchange)
    used = {binding["place"] for _, binding in bound(db, queue_id)}
    for place in (n for n in count() if n not in used):
        policy = dumps({"uniqueKey": str(place), **BRIEFLY})
        values: Dict[str, Any] = {"queue": queue_id, "payload": dumps({**row, "place": place}),
                  "name": row["queue"][:255], "policy": policy}  # fmt: skip
        with db.transaction():
            task = db.execute("SELECT tq.slugid()").fetchone()[0]  # type: ignore[index]
            if db.execute(BIND, {**values, "task": task}).fetchone()[0] != task:  # type: ignore[index]
                continue
            claimed = (task, names.worker_id(), f"{claims.claim_for} s")
            db.execute(CLAIM_BINDING, claimed)
        tag = f"binding {next(_numbers)}"
        claims.hold(tag, Run(task, 0))
        return Binding(tag, task, names.place_id(prefix, exchange, place))
    raise AssertionError
