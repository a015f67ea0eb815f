"""The tracker: servers offer themselves, clients ask for a machine of some kind and wait until one is free.

A connection that ends takes with it what it offered and what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import hmac
import itertools
import json
import os
import struct
from collections.abc import Callable
from typing import Any

from tvm.rpc import base
from tvm.rpc.base import LOOPBACK, MAX_JSON_BYTES, TrackerCode, bind_address, pack_text
from tvm.rpc.loop import listening_socket, serve_connections
from tvm.rpc.process import Service

_PATIENCE = 20.0  # seconds for the rest of a message that has begun
_MAX_OFFERS = 1024  # of one connection

# address, port and match key of a server that is free
Offer = tuple[str, int, str]


class Scheduler:
    """Decides who gets which server."""

    def put(self, value: Any) -> None:
        """Offer a server."""
        raise NotImplementedError

    def request(self, user: str, priority: int, callback: Callable[[Any], bool]) -> None:
        """Ask for one; ``callback`` gets it, and tells whether it could be used."""
        raise NotImplementedError

    def remove(self, value: Any) -> None:
        """Take an offer back."""
        raise NotImplementedError

    def summary(self) -> dict[str, int]:
        """How many are free and how many wait."""
        raise NotImplementedError


class PriorityScheduler(Scheduler):
    """Gives servers to those of the highest priority, and among them to who came first.

    Parameters
    ----------
    key : str
        The kind of machine.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._count = itertools.count()
        self._values: list[Any] = []
        self._requests: list[tuple[int, int, Callable[[Any], bool]]] = []

    def _schedule(self) -> None:
        while self._requests and self._values:
            value = self._values.pop(0)
            *_, callback = heapq.heappop(self._requests)
            if not callback(value):
                self._values.insert(0, value)

    def put(self, value: Any) -> None:
        """Offer a server."""
        self._values.append(value)
        self._schedule()

    def request(self, user: str, priority: int, callback: Callable[[Any], bool]) -> None:
        """Ask for one; ``callback`` gets it, and tells whether it could be used."""
        heapq.heappush(self._requests, (-priority, next(self._count), callback))
        self._schedule()

    def cancel(self, callbacks: set[Callable[[Any], bool]]) -> None:
        """Forget the requests of these callbacks."""
        self._requests = [each for each in self._requests if each[2] not in callbacks]
        heapq.heapify(self._requests)

    def remove(self, value: Any) -> None:
        """Take an offer back."""
        if value in self._values:
            self._values.remove(value)
            self._schedule()

    def summary(self) -> dict[str, int]:
        """How many are free and how many wait."""
        return {"free": len(self._values), "pending": len(self._requests)}


class _Connection:
    """One server or client."""

    def __init__(
        self, tracker: _TrackerServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.tracker = tracker
        self.reader = reader
        self.writer = writer
        self.address = str(writer.get_extra_info("peername")[0])
        self.info: dict[str, Any] = {}
        self.offers: dict[str, tuple[str, Any]] = {}  # by match key: the key, and what was put
        self.callbacks: dict[Callable[[Any], bool], str] = {}
        self.is_proven = tracker.secret is None
        self.nonces: tuple[str, str] | None = None

    async def run(self) -> None:
        magic = await asyncio.wait_for(self.reader.readexactly(4), _PATIENCE)
        if struct.unpack("<i", magic)[0] != base.RPC_TRACKER_MAGIC:
            return
        self.writer.write(magic)
        while (message := await self._message()) is not None:
            if not self._handle(message):
                return
            await asyncio.wait_for(self.writer.drain(), _PATIENCE)

    async def _message(self) -> Any:
        (size,) = struct.unpack("<i", await self.reader.readexactly(4))
        limit = MAX_JSON_BYTES if self.is_proven else 4096
        if not 0 < size <= limit:
            return None
        content = await asyncio.wait_for(self.reader.readexactly(size), _PATIENCE)
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            return None

    def answer(self, value: Any) -> None:
        self.writer.write(pack_text(json.dumps(value)))

    def _handle(self, message: Any) -> bool:
        """Do what a message asks for; whether the connection goes on."""
        if not isinstance(message, list) or not message:
            return False
        code, *args = message
        if code == TrackerCode.AUTHENTICATE:
            return self._authenticate(args)
        if not self.is_proven:
            self.answer(
                [
                    TrackerCode.FAIL,
                    "this tracker requires a secret: pass key_file=..., its --key-file",
                ]
            )
            return False
        handlers: dict[int, Callable[..., bool]] = {
            TrackerCode.PING: self._ping,
            TrackerCode.STOP: self._stop,
            TrackerCode.PUT: self._put,
            TrackerCode.REQUEST: self._request,
            TrackerCode.UPDATE_INFO: self._update,
            TrackerCode.SUMMARY: self._summary,
            TrackerCode.GET_PENDING_MATCHKEYS: self._pending,
        }
        if not isinstance(code, int) or code not in handlers:
            return False
        try:
            return handlers[code](*args)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return False  # of no use to anybody, and what it means nobody knows

    def _authenticate(self, args: list[Any]) -> bool:
        secret = self.tracker.secret
        if secret is None or len(args) != 1 or not isinstance(args[0], str):
            self.answer([TrackerCode.FAIL, "this tracker asks for no secret"])
            return False
        if self.nonces is None:
            own = os.urandom(base.NONCE_BYTES).hex()
            self.nonces = args[0], own
            proof = base.digest(secret, f"tracker{args[0]}{own}".encode()).hex()
            self.answer([TrackerCode.SUCCESS, own, proof])
            return True
        theirs, own = self.nonces
        expected = base.digest(secret, f"peer{own}{theirs}".encode()).hex()
        self.is_proven = hmac.compare_digest(expected, args[0])
        self.answer(TrackerCode.SUCCESS if self.is_proven else TrackerCode.FAIL)
        return self.is_proven

    def _ping(self) -> bool:
        self.answer(TrackerCode.SUCCESS)
        return True

    def _stop(self, key: str) -> bool:
        """Whoever is let in may not end it for all others; the process that has started it does."""
        self.answer(TrackerCode.FAIL)
        return True

    def _put(self, key: Any, value: list[Any], custom_address: str | None = None) -> bool:
        port, match_key = value
        if not isinstance(key, str) or not isinstance(match_key, str) or not isinstance(port, int):
            return False
        if len(self.offers) >= _MAX_OFFERS:
            return False
        offer = (self, custom_address or self.address, port, match_key)
        self._withdraw(match_key)
        self.offers[match_key] = key, offer
        self.answer(TrackerCode.SUCCESS)
        self.tracker.scheduler(key).put(offer)
        return True

    def _withdraw(self, match_key: str) -> None:
        if match_key in self.offers:
            key, offer = self.offers.pop(match_key)
            self.tracker.scheduler(key).remove(offer)

    def _request(self, key: Any, user: Any, priority: Any) -> bool:
        if not isinstance(key, str) or not isinstance(priority, int):
            return False

        def take(offer: tuple[_Connection, str, int, str]) -> bool:
            self.callbacks.pop(take, None)
            server, *rest = offer
            if self.writer.is_closing():
                return False
            server.offers.pop(offer[3], None)
            self.answer([TrackerCode.SUCCESS, rest])
            return True

        self.callbacks[take] = key
        self.tracker.scheduler(key).request(user, priority, take)
        return True

    def _update(self, info: dict[str, Any]) -> bool:
        address = list(info["addr"])
        address[0] = address[0] or self.address
        self.info = {**self.info, **info, "addr": address}
        self.answer(TrackerCode.SUCCESS)
        return True

    def _summary(self) -> bool:
        self.answer([TrackerCode.SUCCESS, self.tracker.summary()])
        return True

    def _pending(self) -> bool:
        self.answer(list(self.offers))
        return True

    def close(self) -> None:
        for key in set(self.callbacks.values()):
            self.tracker.scheduler(key).cancel(set(self.callbacks))
        for match_key in list(self.offers):
            self._withdraw(match_key)


class _TrackerServer:
    """All connections, and a scheduler for each key."""

    def __init__(self, secret: bytes | None) -> None:
        self.secret = secret
        self.connections: list[_Connection] = []
        self._schedulers: dict[str, PriorityScheduler] = {}

    def scheduler(self, key: str) -> PriorityScheduler:
        return self._schedulers.setdefault(key, PriorityScheduler(key))

    def summary(self) -> dict[str, Any]:
        servers = [each.info for each in self.connections if each.info]
        queues = {key: queue.summary() for key, queue in self._schedulers.items()}
        return {"queue_info": queues, "server_info": servers}

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, reader, writer)
        self.connections.append(connection)
        try:
            await connection.run()
        finally:
            self.connections.remove(connection)
            connection.close()


def listen(
    host: str,
    port: int,
    port_end: int,
    key_file: str | None,
    reuse_addr: bool = True,
    *,
    control: int = -1,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve as a tracker in this process, until it is interrupted or ``control`` ends."""
    server = _TrackerServer(base.read_secret(key_file))
    sock = listening_socket(host, range(port, port_end), reuse_addr)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_connections([(server.handle, sock)], control, ready))


class Tracker:
    """A tracker in a process of its own.

    Parameters
    ----------
    host : str
        The address to listen on. One that other machines reach needs ``key_file``, or
        ``insecure_allow_any``.
    port, port_end : int
        The first free port of this range.
    silent : bool
        Accepted for classic programs: it says nothing.
    reuse_addr : bool
        Whether a port may be used again right after another tracker has ended.
    timeout : float, optional
        Accepted for classic programs: peers that stall are dropped in any case.
    key_file : str, optional
        A file with a secret that servers and clients prove to know.
    insecure_allow_any : bool
        Whether everybody who reaches it may offer and ask for servers.

    Attributes
    ----------
    host : str
        The address.
    port : int
        The port.
    """

    def __init__(
        self,
        host: str = LOOPBACK,
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        key_file: str | None = None,
        insecure_allow_any: bool = False,
    ) -> None:
        self.host = bind_address("Tracker", host, key_file, insecure_allow_any)
        self.proc: Service | None = Service(
            listen, self.host, port, max(port_end, port + 1), key_file, reuse_addr
        )
        self.port = self.proc.port

    def terminate(self) -> None:
        """End the tracker."""
        if self.proc is not None:
            self.proc.terminate()
            self.proc = None

    def __del__(self) -> None:
        if getattr(self, "proc", None) is not None:
            self.terminate()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.terminate()
