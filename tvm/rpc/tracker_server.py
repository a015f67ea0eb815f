"""The tracker's process: servers offer themselves, clients ask for a machine of some kind and wait until one is free.

A connection that ends takes with it what it offered and what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import struct
from collections.abc import Callable
from typing import Any

from tvm.rpc import base
from tvm.rpc.base import MAX_JSON_BYTES, TrackerCode, pack_text
from tvm.rpc.loop import listening_socket, serve_connections
from tvm.rpc.scheduler import PriorityScheduler

_PATIENCE = 20.0  # seconds for the rest of a message that has begun
_MAX_OFFERS = 1024  # of one connection


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
