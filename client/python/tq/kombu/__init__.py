"""A transport of kombu, and so a broker of Celery, on tq: doc/celery.md.

    import tq.kombu                     # makes tq:// known
    app = Celery("shop", broker="tq://shop@db.example.org/shop")

Importing this module registers the scheme tq://.  transport.py is the transport,
claims.py keeps the claims of the messages that are not acknowledged yet, and names.py
says which queue of tq is which of kombu.
"""

from kombu.transport import TRANSPORT_ALIASES  # type: ignore[import]

from .transport import Channel, Transport, within

TRANSPORT_ALIASES["tq"] = "tq.kombu:Transport"

__all__ = ["Channel", "Transport", "within"]
