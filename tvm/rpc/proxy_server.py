"""The proxy's process: servers that nobody can reach connect to it, and clients are connected with them.

    client  ->  proxy  <-  server

What a tracker gives out for such a server is the proxy's address and a match key.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.rpc import base, websocket
from tvm.rpc.base import pack_int, pack_text
from tvm.rpc.loop import listening_socket, serve_connections
from tvm.rpc.proxy import ProxyOptions
from tvm.rpc.server import _server_env
from tvm.rpc.tracker_client import AsyncTrackerClient

_MAX_KEY_BYTES = 4096
_CHUNK = 1 << 18
_PATIENCE = 10.0  # seconds for a handshake
_PING_PERIOD = 2.0
_MAX_MISSING = 3  # looks at which a match key was taken and nobody came
_NO_PROOF = (
    "RPCError: this proxy requires a secret, which classic clients cannot prove to know: connect "
    "with classic-tvm and key_file=..., the proxy's --key-file"
)


@dataclass(eq=False)
class _Peer:
    """A client or a server."""

    reader: asyncio.StreamReader
    writer: Any
    key: str
    client_nonce: bytes = b""
    nonce: bytes = b""
    other: asyncio.Future[_Peer] = field(default_factory=lambda: _new_future())
    pairing: asyncio.Task[None] | None = None

    @property
    def side(self) -> str:
        return self.key.partition(":")[0]

    @property
    def match_key(self) -> str:
        return self.key.split()[0].partition(":")[2]

    def refuse(self, code: int) -> None:
        self.writer.write(pack_int(code))

    def accept(self, other_key: str, secret: bytes | None) -> None:
        """Tell the peer that it is connected with somebody of the other key."""
        proof = b""
        if secret is not None:
            proof = base.digest(
                secret, b"server", self.client_nonce, self.nonce, other_key.encode()
            )
        self.writer.write(pack_int(base.RPC_CODE_SUCCESS) + pack_text(other_key) + proof)


def _any_of(*futures: asyncio.Future[Any]) -> list[asyncio.Future[Any]]:
    return list(futures)


def _new_future() -> asyncio.Future[_Peer]:
    return asyncio.get_running_loop().create_future()


class _ProxyServer:
    """All peers that wait for another one."""

    def __init__(self, options: ProxyOptions, port: int) -> None:
        self.options = options
        self.secret = base.read_secret(options.key_file)
        self.port = port
        self.servers: dict[str, list[_Peer]] = {}
        self.clients: dict[str, list[_Peer]] = {}

    async def handle(self, reader: asyncio.StreamReader, writer: Any) -> None:
        peer = await asyncio.wait_for(self._greet(reader, writer), _PATIENCE)
        if peer is None:
            return
        if peer.side == "server":
            await self._serve(peer)
        else:
            await self._attend(peer)

    async def handle_web(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.handle(*await websocket.accept(reader, writer, "/ws"))

    async def _greet(self, reader: asyncio.StreamReader, writer: Any) -> _Peer | None:
        (magic,) = struct.unpack("<i", await reader.readexactly(4))
        if magic != base.RPC_MAGIC:
            return None
        (size,) = struct.unpack("<i", await reader.readexactly(4))
        if not 0 < size <= _MAX_KEY_BYTES:
            return None
        key = (await reader.readexactly(size)).decode(errors="replace")
        if not key.startswith(("client:", "server:")):
            return None
        peer = _Peer(reader, writer, key)
        if self.secret is not None and not await self._prove(peer, self.secret):
            return None
        return peer

    async def _prove(self, peer: _Peer, secret: bytes) -> bool:
        if base.PROOF_OPTION not in peer.key.split():
            if peer.side == "client":
                await self._explain(peer)
            else:
                peer.refuse(base.RPC_CODE_MISMATCH)
            return False
        peer.nonce = os.urandom(base.NONCE_BYTES)
        peer.writer.write(pack_int(base.RPC_CODE_PROVE) + peer.nonce)
        peer.client_nonce = await peer.reader.readexactly(base.NONCE_BYTES)
        proof = await peer.reader.readexactly(base.NONCE_BYTES)
        parts = (b"client", peer.nonce, peer.client_nonce, peer.key.encode())
        if hmac.compare_digest(proof, base.digest(secret, *parts)):
            return True
        peer.refuse(base.RPC_CODE_REFUSED)
        return False

    async def _explain(self, peer: _Peer) -> None:
        """Let a classic client begin, and answer its first message with the reason why not."""
        peer.accept(peer.key.replace("client:", "server:", 1), None)
        (size,) = struct.unpack("<Q", await peer.reader.readexactly(8))
        if size <= 1 << 20:
            await peer.reader.readexactly(size)
        text = _NO_PROOF.encode()
        body = struct.pack("<iiiQ", 5, 1, 11, len(text)) + text
        peer.writer.write(struct.pack("<Q", len(body)) + body)

    async def _serve(self, server: _Peer) -> None:
        """Let a server wait for a client, and offer it at the tracker meanwhile."""
        gone = asyncio.ensure_future(server.reader.read(1))  # it has nothing to say before
        offer = asyncio.ensure_future(self._offer(server))
        limit = self.options.timeout_server
        try:
            done, _ = await asyncio.wait(
                _any_of(server.other, gone, offer),
                timeout=limit,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            offer.cancel()
            self._forget(self.servers, server)
        if server.other not in done:
            gone.cancel()
            if not gone.done():
                server.refuse(base.RPC_CODE_MISMATCH)
            return
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        await self._forward(server, server.other.result())

    async def _offer(self, server: _Peer) -> None:
        key = server.match_key
        if self.options.tracker_addr is None:
            self._wait(self.servers, key, server)
            await asyncio.Event().wait()
            return
        client = await AsyncTrackerClient.connect(
            self.options.tracker_addr, self.secret, key, self.port
        )
        try:
            while True:
                match_key = base.random_key(key)
                self._forget(self.servers, server)
                self._wait(self.servers, match_key, server)
                await client.put(key, self.port, match_key)
                missing = 0
                while missing < _MAX_MISSING:
                    await asyncio.sleep(_PING_PERIOD)
                    missing = 0 if match_key in await client.pending() else missing + 1
        finally:
            client.close()

    async def _attend(self, client: _Peer) -> None:
        """Find a server for a client, which waits for one."""
        self._wait(self.clients, client.match_key, client)
        gone = asyncio.ensure_future(client.reader.read(1))
        try:
            await asyncio.wait(
                _any_of(client.other, gone),
                timeout=self.options.timeout_client,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._forget(self.clients, client)
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await gone
        if not client.other.done():
            client.refuse(base.RPC_CODE_MISMATCH)
            return
        await self._forward(client, client.other.result())

    def _wait(self, pool: dict[str, list[_Peer]], key: str, peer: _Peer) -> None:
        pool.setdefault(key, []).append(peer)
        while self.servers.get(key) and self.clients.get(key):
            server, client = self.servers[key].pop(0), self.clients[key].pop(0)
            server.accept(client.key, self.secret)
            client.accept(server.key, self.secret)
            server.other.set_result(client)
            client.other.set_result(server)

    @staticmethod
    def _forget(pool: dict[str, list[_Peer]], peer: _Peer) -> None:
        for key in list(pool):
            pool[key] = [each for each in pool[key] if each is not peer]
            if not pool[key]:
                del pool[key]

    @staticmethod
    async def _forward(source: _Peer, target: _Peer) -> None:
        """Hand on what comes, until one side ends; then the other one ends too."""
        try:
            while data := await source.reader.read(_CHUNK):
                target.writer.write(data)
                await target.writer.drain()
        finally:
            target.writer.close()


def listen(
    options: ProxyOptions, *, control: int = -1, ready: Callable[[int], None] | None = None
) -> None:
    """Serve as a proxy in this process, until it is interrupted or ``control`` ends."""
    ports = range(options.port, max(options.port_end, options.port + 1))
    sock = listening_socket(options.host, ports, options.reuse_addr)
    proxy = _ProxyServer(options, sock.getsockname()[1])
    listeners: list[tuple[Any, socket.socket]] = [(proxy.handle, sock)]
    if options.web_port:
        listeners.append((proxy.handle_web, listening_socket(options.host, [options.web_port])))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve_connections(listeners, control, ready))


def serve_websocket(url: str, key: str = "") -> None:
    """Serve clients of a proxy from this process, one after the other, over its WebSocket.

    Parameters
    ----------
    url : str
        ``ws://host:port/ws``.
    key : str
        The kind of machine.
    """
    folder = _server_env([])
    while True:
        asyncio.run(_serve_over_websocket(url, key))
        del folder
        folder = _server_env([])


async def _serve_over_websocket(url: str, key: str) -> None:
    reader, writer = await websocket.connect(url)
    writer.write(pack_int(base.RPC_MAGIC) + pack_text(f"server:{key}"))
    (answer,) = struct.unpack("<i", await reader.readexactly(4))
    if answer != base.RPC_CODE_SUCCESS:
        raise RuntimeError(f"the proxy at {url} refuses the key {key!r}: {answer - base.RPC_MAGIC}")
    (size,) = struct.unpack("<i", await reader.readexactly(4))
    await reader.readexactly(size)
    ours, theirs = socket.socketpair()
    session = threading.Thread(
        target=get_global_func("rpc.ServerLoop"), args=(theirs.detach(),), daemon=True
    )
    session.start()
    local_reader, local_writer = await asyncio.open_connection(sock=ours)
    await asyncio.wait(
        {
            asyncio.ensure_future(_copy(reader, local_writer)),
            asyncio.ensure_future(_copy(local_reader, writer)),
        },
        return_when=asyncio.FIRST_COMPLETED,
    )
    local_writer.close()
    writer.close()


async def _copy(reader: asyncio.StreamReader, writer: Any) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
