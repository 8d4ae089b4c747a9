"""A transport of kombu, and so a broker of Celery, on tq: doc/celery.md.

    import tq.kombu                     # makes tq:// known
    app = Celery("shop", broker="tq://shop@db.example.org/shop")

Importing this module registers the scheme tq://.  transport.py has the sessions,
channel.py the messages, bindings.py the queues that do not last; claims.py keeps the
claims of the messages that are not acknowledged yet, waiter.py waits for more, and
names.py says which queue of tq is which of kombu.
"""

from kombu.transport import TRANSPORT_ALIASES  # type: ignore[import]

from .channel import Channel, within
from .transport import Transport

TRANSPORT_ALIASES["tq"] = "tq.kombu:Transport"

__all__ = ["Channel", "Transport", "within"]
