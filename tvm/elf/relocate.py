"""What relocations mean on each machine: which need tables, and which bits they change."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

# (bytes, offset, target address, address of the place)
Patch = Callable[[bytearray, int, int, int], None]


@dataclass(frozen=True)
class Machine:
    """One machine's relocations; ``patches`` tells what each changes."""

    name: str
    page: int
    # kinds that mean the symbol's slot in the table of addresses
    table: frozenset[int]
    # kinds that call, so that a stub may stand between
    branches: frozenset[int]
    absolute: int
    # kinds for the loader: add the base, look up a symbol
    relative: int
    look_up: int
    patches: dict[int, Patch]
    stub_size: int
    # (address of the stub, address of the slot)
    stub: Callable[[int, int], bytes]


def _word(form: str) -> Patch:
    def patch(data: bytearray, offset: int, target: int, place: int) -> None:
        struct.pack_into(form, data, offset, target - place)

    return patch


def _absolute(data: bytearray, offset: int, target: int, _place: int) -> None:
    struct.pack_into("<Q", data, offset, target)


def _x86_stub(address: int, slot: int) -> bytes:
    """``jmp *slot(%rip)``"""
    return b"\xff\x25" + struct.pack("<i", slot - (address + 6)) + b"\xcc" * 10


X86_64 = Machine(
    name="x86-64",
    page=0x1000,
    table=frozenset({9, 41, 42}),
    branches=frozenset({4}),
    absolute=1,
    relative=8,
    look_up=6,
    patches={
        1: _absolute,
        2: _word("<i"), 4: _word("<i"), 9: _word("<i"), 41: _word("<i"), 42: _word("<i"),
        24: _word("<q"),
    },
    stub_size=16,
    stub=_x86_stub,
)  # fmt: skip


def _insert(data: bytearray, offset: int, value: int, bits: int, shift: int) -> None:
    mask = (1 << bits) - 1
    (instruction,) = struct.unpack_from("<I", data, offset)
    instruction = instruction & ~(mask << shift) | (value & mask) << shift
    struct.pack_into("<I", data, offset, instruction)


def _distance(bits: int, shift: int) -> Patch:
    """A distance in instructions."""

    def patch(data: bytearray, offset: int, target: int, place: int) -> None:
        distance = target - place
        if distance % 4 or not -(1 << bits + 1) <= distance < 1 << bits + 1:
            raise struct.error
        _insert(data, offset, distance >> 2, bits, shift)

    return patch


def _page_distance(data: bytearray, offset: int, target: int, place: int) -> None:
    pages = (target >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise struct.error
    _insert(data, offset, pages, 2, 29)
    _insert(data, offset, pages >> 2, 19, 5)


def _near(data: bytearray, offset: int, target: int, place: int) -> None:
    distance = target - place
    if not -(1 << 20) <= distance < 1 << 20:
        raise struct.error
    _insert(data, offset, distance, 2, 29)
    _insert(data, offset, distance >> 2, 19, 5)


def _in_page(scale: int) -> Patch:
    """The position in the page, in units of 2**scale bytes."""

    def patch(data: bytearray, offset: int, target: int, _place: int) -> None:
        if target % (1 << scale):
            raise struct.error
        _insert(data, offset, (target & 0xFFF) >> scale, 12, 10)

    return patch


def _arm_stub(address: int, slot: int) -> bytes:
    """``adrp x16, slot; ldr x17, [x16, slot]; br x17``"""
    code = bytearray(struct.pack("<4I", 0x90000010, 0xF9400211, 0xD61F0220, 0xD503201F))
    _page_distance(code, 0, slot, address)
    _in_page(3)(code, 4, slot, address)
    return bytes(code)


AARCH64 = Machine(
    name="AArch64",
    page=0x10000,
    table=frozenset({311, 312}),
    branches=frozenset({282, 283}),
    absolute=257,
    relative=1027,
    look_up=1025,
    patches={
        257: _absolute, 260: _word("<q"), 261: _word("<i"),
        273: _distance(19, 5), 274: _near, 275: _page_distance, 276: _page_distance,
        277: _in_page(0), 278: _in_page(0), 279: _distance(14, 5), 280: _distance(19, 5),
        282: _distance(26, 0), 283: _distance(26, 0),
        284: _in_page(1), 285: _in_page(2), 286: _in_page(3), 299: _in_page(4),
        311: _page_distance, 312: _in_page(3),
    },
    stub_size=16,
    stub=_arm_stub,
)  # fmt: skip

# by the number in the header of ELF files
MACHINES = {62: X86_64, 183: AARCH64}
