"""Conversations that were damaged at random: a server answers or hangs up, and never crashes or waits for ever.

python -m tests.fuzz.test_rpc CASES SEED
"""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys

import tvm
from tvm.rpc.server import _server_env

RETURN, ACK = 4, 8
INT, NULL, DEVICE, TENSOR, TEXT, BYTES, HANDLE, DTYPE = 0, 4, 6, 7, 11, 12, 3, 5
INIT, CALL, FROM, TO, GET, FREE, ATTR, ALLOC, FREE_DATA, SYNC, AMONG, SCOPE = (
    2, 3, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17,
)  # fmt: skip


def packet(code: int, body: bytes) -> bytes:
    return struct.pack("<Qi", 4 + len(body), code) + body


def tensor(handle: int, extents: tuple[int, ...] = (4,), offset: int = 0) -> bytes:
    head = struct.pack("<QiiiBBH", handle, 1, 0, len(extents), 2, 32, 1)
    return head + struct.pack(f"<{len(extents)}q", *extents) + struct.pack("<Q", offset)


def arguments(*values: tuple[int, bytes]) -> bytes:
    codes = [code for code, _ in values]
    head = struct.pack(f"<i{len(codes)}i", len(codes), *codes)
    return head + b"".join([content for _, content in values])


def text(value: bytes, code: int = TEXT) -> tuple[int, bytes]:
    return code, struct.pack("<Q", len(value)) + value


def number(value: int, code: int = INT) -> tuple[int, bytes]:
    return code, struct.pack("<q", value)


CPU = (DEVICE, struct.pack("<ii", 1, 0))
FLOAT32 = (DTYPE, struct.pack("<BBHi", 2, 32, 1, 0))


def conversation() -> list[bytes]:
    """Messages of each kind; handles are given out in order, from 1."""
    values = struct.pack("<4f", 1, 2, 3, 4)
    return [
        packet(INIT, struct.pack("<Q", 5) + b"0.8.0" + arguments()),
        packet(GET, arguments(text(b"testing.echo"))),  # 1
        packet(CALL, struct.pack("<Q", 1) + arguments(number(7), text(b"abc"), (NULL, b""))),
        packet(CALL, struct.pack("<Q", 1) + arguments(text(b"\0\1\2", BYTES))),
        packet(ALLOC, arguments(CPU, number(16), number(64), FLOAT32)),  # 2
        packet(TO, tensor(2) + struct.pack("<Q", 16) + values),
        packet(FROM, tensor(2) + struct.pack("<Q", 16)),
        packet(CALL, struct.pack("<Q", 1) + arguments((TENSOR, tensor(2)))),  # 3: the array
        packet(SCOPE, arguments((TENSOR, tensor(0, (2, 3))), (NULL, b""))),  # 4
        packet(AMONG, arguments((TENSOR, tensor(2)), (TENSOR, tensor(3)), (NULL, b""))),
        packet(GET, arguments(text(b"tvm.rpc.server.upload"))),  # 5
        packet(CALL, struct.pack("<Q", 5) + arguments(text(b"file"), text(b"12", BYTES))),
        packet(ATTR, arguments(CPU, number(5))),
        packet(SYNC, arguments(CPU, (NULL, b""))),
        packet(FREE, arguments(number(3, HANDLE), number(13))),
        packet(FREE_DATA, arguments(CPU, number(2, HANDLE))),
        packet(1, b""),
    ]


def damaged(messages: list[bytes], rng: random.Random) -> bytes:
    messages = list(messages)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(messages))
        content = bytearray(messages[at])
        place = rng.randrange(max(len(content), 1))
        match rng.randrange(7):
            case 0:
                content[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                content[place : place + 1] = bytes([rng.choice((0, 1, 127, 128, 255))])
            case 2:
                del content[place:]
            case 3:
                content[place:place] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                size = rng.choice((4, 8))
                content[place : place + size] = rng.choice(
                    (b"\xff" * size, b"\0" * size, b"\xff" * (size - 1) + b"\x7f")
                )
            case 5:
                messages.insert(rng.randrange(len(messages)), bytes(content))
            case 6:
                messages.pop(at)
                continue
        messages[at] = bytes(content)
    return b"".join(messages)


def serve(content: bytes) -> bytes:
    """What a server answers to these bytes, in this process."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(content)
        ours.shutdown(socket.SHUT_WR)
        tvm.get_global_func("rpc.ServerLoop")(theirs.detach())
        answer = bytearray()
        while part := ours.recv(1 << 16):
            answer += part
    return bytes(answer)


def answers(content: bytes) -> list[int]:
    """The kinds of the messages of a server."""
    codes, at = [], 0
    while at < len(content):
        size, code = struct.unpack_from("<Qi", content, at)
        codes.append(code)
        at += 8 + size
    return codes


def run(cases: int, seed: int) -> None:
    folder = _server_env([])
    rng, messages = random.Random(seed), conversation()
    assert answers(serve(b"".join(messages))) == [RETURN] * 6 + [ACK] + [RETURN] * 9
    for case in range(cases):
        content = damaged(messages, rng)
        print(case, content.hex(), file=sys.stderr) if cases == 1 else serve(content)
    print(f"{cases} conversations")
    del folder


def test_damaged_conversations_end() -> None:
    command = [sys.executable, "-m", "tests.fuzz.test_rpc", "3000", "7"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
