"""A proxy's connection to a tracker, at which it offers one server."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from typing import Any

from tvm.rpc import base
from tvm.rpc.base import TrackerCode, pack_text

_PATIENCE = 10.0


class AsyncTrackerClient:
    """Asks a tracker, one message after the other; what it has offered ends with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(
        cls, addr: tuple[str, int], secret: bytes | None, key: str, port: int
    ) -> AsyncTrackerClient:
        """A connection that has told the tracker about the server."""
        reader, writer = await asyncio.open_connection(*addr)
        client = cls(reader, writer)
        writer.write(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        magic = await asyncio.wait_for(reader.readexactly(4), _PATIENCE)
        if struct.unpack("<i", magic)[0] != base.RPC_TRACKER_MAGIC:
            raise ConnectionError(f"{addr[0]}:{addr[1]} is no tracker")
        if secret is not None:
            await client._prove(secret)
        info = {"key": f"server:{key}", "addr": [None, port]}
        await client._ask(TrackerCode.UPDATE_INFO, info)
        return client

    async def put(self, key: str, port: int, match_key: str) -> None:
        """Offer the server, to whoever gets the match key."""
        await self._ask(TrackerCode.PUT, key, [port, match_key], None)

    async def pending(self) -> list[str]:
        """The match keys that nobody has asked for."""
        found: list[str] = await self._ask(TrackerCode.GET_PENDING_MATCHKEYS)
        return found

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    async def _ask(self, *message: Any) -> Any:
        self._writer.write(pack_text(json.dumps(message)))
        head = await asyncio.wait_for(self._reader.readexactly(4), _PATIENCE)
        (size,) = struct.unpack("<i", head)
        if not 0 < size <= base.MAX_JSON_BYTES:
            raise ConnectionError(f"the tracker sends a message of {size} bytes")
        return json.loads(await asyncio.wait_for(self._reader.readexactly(size), _PATIENCE))

    async def _prove(self, secret: bytes) -> None:
        nonce = os.urandom(base.NONCE_BYTES).hex()
        answer = await self._ask(TrackerCode.AUTHENTICATE, nonce)
        if not isinstance(answer, list) or len(answer) != 3:
            raise ConnectionError("the tracker asks for no secret, and may be anybody")
        _, other, proof = answer
        if proof != base.digest(secret, f"tracker{nonce}{other}".encode()).hex():
            raise ConnectionError("the tracker has another secret")
        await self._ask(
            TrackerCode.AUTHENTICATE, base.digest(secret, f"peer{other}{nonce}".encode()).hex()
        )
