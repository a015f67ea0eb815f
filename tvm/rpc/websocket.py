"""WebSocket connections (RFC 6455) with the interface of asyncio's streams: each message carries bytes of the stream."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import struct
from typing import Any
from urllib.parse import urlsplit

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_MAX_FRAME = 1 << 30
_MAX_HEAD = 1 << 14
_PATIENCE = 20.0


class WebSocketWriter:
    """Writes bytes as binary messages; those of clients are masked, as the protocol demands."""

    def __init__(self, writer: asyncio.StreamWriter, is_client: bool) -> None:
        self._writer = writer
        self._is_client = is_client

    def write(self, data: bytes) -> None:
        self.write_frame(_BINARY, data)

    def write_frame(self, opcode: int, data: bytes) -> None:
        mask_bit = 0x80 if self._is_client else 0
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, mask_bit | size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | opcode, mask_bit | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, mask_bit | 127, size)
        if self._is_client:
            mask = os.urandom(4)
            head, data = head + mask, _masked(data, mask)
        self._writer.write(head + data)

    async def drain(self) -> None:
        await self._writer.drain()

    def is_closing(self) -> bool:
        return self._writer.is_closing()

    def close(self) -> None:
        self._writer.close()

    def get_extra_info(self, name: str) -> Any:
        return self._writer.get_extra_info(name)


def _masked(data: bytes, mask: bytes) -> bytes:
    repeated = (mask * (len(data) // 4 + 1))[: len(data)]
    number = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
    return number.to_bytes(len(data), "big")


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    text = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE)
    if len(text) > _MAX_HEAD:
        raise ConnectionError("a request of HTTP that is too long")
    first, *lines = text.decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines if line]
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _accept_text(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()


async def accept(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str
) -> tuple[asyncio.StreamReader, WebSocketWriter]:
    """The server's side; raises ConnectionError if the peer asks for something else than ``path``."""
    first, head = await _read_head(reader)
    words = first.split()
    key = head.get("sec-websocket-key")
    if len(words) != 3 or urlsplit(words[1]).path != path or key is None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        raise ConnectionError("no request for a WebSocket")
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + f"Sec-WebSocket-Accept: {_accept_text(key)}\r\n\r\n".encode()
    )
    return _stream_of(reader, WebSocketWriter(writer, is_client=False))


async def connect(url: str) -> tuple[asyncio.StreamReader, WebSocketWriter]:
    """The client's side.

    Parameters
    ----------
    url : str
        ``ws://host:port/path``.
    """
    parts = urlsplit(url)
    if parts.scheme != "ws" or parts.hostname is None:
        raise ValueError(f"a WebSocket's address begins with ws://, got {url!r}")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    first, head = await _read_head(reader)
    if " 101 " not in first or head.get("sec-websocket-accept") != _accept_text(key):
        raise ConnectionError(f"{url} is no WebSocket: {first}")
    return _stream_of(reader, WebSocketWriter(writer, is_client=True))


def _stream_of(
    reader: asyncio.StreamReader, writer: WebSocketWriter
) -> tuple[asyncio.StreamReader, WebSocketWriter]:
    stream = asyncio.StreamReader()
    pump = asyncio.ensure_future(_unpack(reader, writer, stream))
    stream.__dict__["pump"] = pump  # a task lives as long as somebody refers to it
    return stream, writer


async def _unpack(
    reader: asyncio.StreamReader, writer: WebSocketWriter, stream: asyncio.StreamReader
) -> None:
    """Feed the contents of frames to a stream, until the connection ends."""
    try:
        while True:
            first, second = await reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await reader.readexactly(8))
            if size > _MAX_FRAME:
                break
            mask = await reader.readexactly(4) if second & 0x80 else b""
            data = await reader.readexactly(size)
            data = _masked(data, mask) if mask else data
            opcode = first & 0x0F
            if opcode == _CLOSE:
                break
            if opcode == _PING:
                writer.write_frame(_PONG, data)
            elif opcode != _PONG:
                stream.feed_data(data)
    except (OSError, EOFError):
        pass
    finally:
        stream.feed_eof()
