"""The transport: the sessions of a connection of kombu, and what wakes it.

`drain_events`, or the event loop of a worker, sleeps until the session that waits for
messages has an answer, or until another thread calls `wake`; then each channel claims what
it has room for.  A lost session is replaced, while the claims stay (claims.py).
"""

import contextlib
import logging
import os
import select
import socket
from time import monotonic
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote

import psycopg
from kombu.transport import base, virtual  # type: ignore[import]

from .bindings import Binding
from .channel import Channel
from .claims import Claims
from .waiter import Waiter

logger = logging.getLogger(__name__)


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


def conninfo(client: Any) -> str:
    """The URL as libpq reads it: several hosts, parameters, and what is left to PGHOST."""
    if "://" in (client.hostname or ""):
        return f"postgresql:{str(client.hostname).split(':', 1)[1]}"
    password = ":" + quote(client.password, "") if client.password else ""
    login = f"{quote(client.userid, '')}{password}@" if client.userid else ""
    port = f":{client.port}" if client.port else ""
    database = (client.virtual_host or "").lstrip("/")
    return f"postgresql://{login}{client.hostname or ''}{port}/{database}"
