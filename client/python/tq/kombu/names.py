"""Which queue of tq is which queue of kombu, and which priority is which.

Names of kombu may be any text, those of tq have two parts of 1 to 38 letters, digits,
"-" or "_".  A name that is one already stays as it is; another keeps what can be read
of it, and gets a digest, so that two names never meet.
"""

import hashlib
import re
import socket
from typing import Optional

#: Celery's priorities 0 to 9, of which 9 is the highest, as with RabbitMQ.
PRIORITIES = ("lowest", "very-low", "very-low", "low", "low") + (
    "medium", "high", "high", "very-high", "highest")  # fmt: skip


def short(name: str, room: int) -> str:
    """The name itself, or something like it that is as unique, of at most room characters."""
    if re.fullmatch("[A-Za-z0-9-][A-Za-z0-9_-]*", name) and len(name) <= room:
        return name
    digest = hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return re.sub("[^A-Za-z0-9-]+", "_", name).strip("_")[: room - 11] + "_" + digest[:10]


def queue_id(prefix: str, queue: str) -> str:
    """The task queue of a queue that lasts."""
    return f"{prefix}/{short(queue, 38)}"


def exchange_id(prefix: str, exchange: str) -> str:
    """The task queue of which each running task is a binding to the exchange."""
    return f"{prefix}/_{short(exchange, 30)}"


def place_id(prefix: str, exchange: str, place: int) -> str:
    """The task queue of the messages for one such binding; its number is given again later."""
    return f"{exchange_id(prefix, exchange)}_{place}"


def worker_id() -> str:
    """The name under which this host claims, the same each time, so that there are few."""
    return re.sub("[^A-Za-z0-9_.-]", "_", socket.gethostname())[:128] or "localhost"


def priority(value: Optional[object], names: "tuple[str, ...]") -> str:
    """A priority of kombu in the words of tq; what is no number is the lowest."""
    try:
        return names[max(0, min(int(str(value)), len(names) - 1))]
    except ValueError:
        return names[0]
