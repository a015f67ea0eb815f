"""What servers, trackers, proxies and their clients agree on."""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import random
import socket
import stat
import struct
import time
import warnings
from collections.abc import Container
from pathlib import Path
from typing import Any

RPC_MAGIC = 0xFF271
RPC_TRACKER_MAGIC = 0x2F271
RPC_SESS_MASK = 128

# answers to a key
RPC_CODE_SUCCESS = RPC_MAGIC
RPC_CODE_DUPLICATE = RPC_MAGIC + 1
RPC_CODE_MISMATCH = RPC_MAGIC + 2
RPC_CODE_PROVE = RPC_MAGIC + 3
RPC_CODE_REFUSED = RPC_MAGIC + 4

LOOPBACK = "127.0.0.1"
NONCE_BYTES = 32
PROOF_OPTION = "-auth=hmac-sha256"
MAX_JSON_BYTES = 1 << 24
_LEAST_SECRET_BYTES = 16
_INT32 = struct.Struct("<i")


class TrackerCode:
    """Kinds of messages to a tracker; also its short answers."""

    FAIL = -1
    SUCCESS = 0
    PING = 1
    STOP = 2
    PUT = 3
    REQUEST = 4
    UPDATE_INFO = 5
    SUMMARY = 6
    GET_PENDING_MATCHKEYS = 7
    AUTHENTICATE = 8


def get_addr_family(addr: tuple[str, int]) -> socket.AddressFamily:
    """The family of sockets for an address.

    Parameters
    ----------
    addr : tuple of str and int
        Host and port.
    """
    return socket.getaddrinfo(addr[0], addr[1], 0, 0, socket.IPPROTO_TCP)[0][0]


def recvall(sock: socket.socket, nbytes: int) -> bytes:
    """Exactly so many bytes; raises OSError if the other side closes before.

    Parameters
    ----------
    sock : socket
        The socket.
    nbytes : int
        How many.
    """
    content = bytearray()
    while len(content) < nbytes:
        part = sock.recv(min(nbytes - len(content), 1 << 20))
        if not part:
            raise OSError("connection reset")
        content += part
    return bytes(content)


def sendjson(sock: socket.socket, data: Any) -> None:
    """Send a value as JSON.

    Parameters
    ----------
    sock : socket
        The socket.
    data : value
        Numbers, text, lists and dicts.
    """
    sock.sendall(pack_text(json.dumps(data)))


def recvjson(sock: socket.socket) -> Any:
    """The value that the other side sent as JSON.

    Parameters
    ----------
    sock : socket
        The socket.
    """
    (size,) = _INT32.unpack(recvall(sock, 4))
    if not 0 <= size <= MAX_JSON_BYTES:
        raise OSError(f"a message of {size} bytes, which no tracker sends")
    return json.loads(recvall(sock, size).decode())


def pack_int(value: int) -> bytes:
    """A number of 32 bits as bytes."""
    return _INT32.pack(value)


def pack_text(text: str) -> bytes:
    """A text with its length before it."""
    content = text.encode()
    return _INT32.pack(len(content)) + content


def random_key(prefix: str, delimiter: str = ":", cmap: Container[str] | None = None) -> str:
    """A key that begins with the prefix and that nobody can know.

    Parameters
    ----------
    prefix : str
        What it begins with.
    delimiter : str
        What stands between the prefix and the random number.
    cmap : container of str, optional
        Keys that are in use.
    """
    while True:
        key = prefix + delimiter + str(random.random())
        if not cmap or key not in cmap:
            return key


def split_random_key(key: str, delimiter: str = ":") -> list[str]:
    """The prefix and the random number of a key.

    Parameters
    ----------
    key : str
        What :func:`random_key` gave.
    delimiter : str
        What stands between the two.
    """
    return key.rsplit(delimiter, 1)


def connect_with_retry(
    addr: tuple[str, int], timeout: float = 60, retry_period: float = 5
) -> socket.socket:
    """A connected socket; as long as nobody is there, it is tried again.

    Parameters
    ----------
    addr : tuple of str and int
        Host and port.
    timeout : float
        For how many seconds.
    retry_period : float
        After how many seconds again.
    """
    limit = time.monotonic() + timeout
    while True:
        try:
            sock = socket.socket(get_addr_family(addr), socket.SOCK_STREAM)
            sock.connect(addr)
            return sock
        except OSError as error:
            sock.close()
            if time.monotonic() >= limit:
                raise RuntimeError(
                    f"nobody answers at {addr[0]}:{addr[1]} within {timeout} seconds: {error}"
                ) from error
            time.sleep(min(retry_period, max(limit - time.monotonic(), 0)))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind_address(who: str, host: str, key_file: str | None, insecure_allow_any: bool) -> str:
    """The address to listen on: one that others reach needs a secret, or consent to do without.

    Programs written for classic TVM say 0.0.0.0 by habit. They get the address of this machine's own
    programs, and a warning.
    """
    if is_loopback(host) or key_file or insecure_allow_any:
        return host
    if host in ("0.0.0.0", "::", ""):
        warn = f"{who} listens on {LOOPBACK} only: for other machines it needs key_file=..., or insecure_allow_any=True"
        warnings.warn(warn, stacklevel=3)
        return LOOPBACK
    raise ValueError(
        f"{who} on {host} lets everybody who reaches it run code: give it key_file=..., "
        "or say insecure_allow_any=True"
    )


def read_secret(key_file: str | os.PathLike[str] | None) -> bytes | None:
    """What both sides of a connection know, from a file that only its owner can read."""
    if key_file is None:
        return None
    path = Path(key_file)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"the key file {path} can be read by other users: chmod 600 {path}")
    secret = path.read_bytes().strip()
    if len(secret) < _LEAST_SECRET_BYTES:
        raise ValueError(
            f"the key file {path} needs at least {_LEAST_SECRET_BYTES} bytes: "
            f"head -c 32 /dev/urandom | base64 > {path}"
        )
    return secret


def digest(secret: bytes, *parts: bytes) -> bytes:
    """The proof that somebody knows the secret, for one use."""
    return hmac.new(secret, b"".join(parts), "sha256").digest()
