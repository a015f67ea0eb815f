"""Object files as sections, symbols and relocations."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property

_RELOCATABLE = 1
_SYMBOL_TABLE, _RELA, _NO_BITS, _REL = 2, 4, 8, 9
_COMMON = 0xFFF2
_ABSOLUTE = 0xFFF1
_LOCAL, _WEAK = 0, 2
_LARGEST_ALIGNMENT = 1 << 21
_LARGEST_SIZE = 1 << 46


@dataclass(eq=False)
class Section:
    """A part of an object that comes into memory as one piece."""

    name: str
    kind: int
    flags: int
    size: int
    alignment: int
    content: bytes
    relocations: list[Relocation] = field(default_factory=list)
    address: int = 0

    @property
    def has_content(self) -> bool:
        """Whether the file holds its bytes, which are zeros otherwise."""
        return self.kind != _NO_BITS


@dataclass(frozen=True, eq=False)
class Symbol:
    """A name for a place in a section, or, without one, for something elsewhere."""

    name: str
    section: Section | None
    value: int
    size: int
    info: int
    visibility: int

    @property
    def is_local(self) -> bool:
        """Whether only its own object may mean it."""
        return self.info >> 4 == _LOCAL

    @property
    def is_weak(self) -> bool:
        """Whether another definition may take its place."""
        return self.info >> 4 == _WEAK

    @property
    def address(self) -> int:
        """Where it is, once sections have addresses."""
        assert self.section is not None
        return self.section.address + self.value


@dataclass(frozen=True)
class Relocation:
    """A place in a section that depends on an address."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """The parts of an object that come into memory, and its symbols."""

    machine: int
    flags: int
    sections: list[Section]
    symbols: list[Symbol]


def read_object(code: bytes, name: str) -> ObjectFile:
    """Parse a 64-bit little-endian relocatable file; ``name`` is for messages."""
    if code[:6] != b"\x7fELF\x02\x01" or len(code) < 64:
        raise ValueError(f"{name} is no object file for a 64-bit little-endian ELF machine")
    try:
        return _Reader(code).read()
    except (struct.error, IndexError, OverflowError, ValueError):
        raise ValueError(f"{name} is a damaged object file") from None


class _Reader:
    def __init__(self, code: bytes) -> None:
        self.code = code

    @cached_property
    def headers(self) -> list[tuple[int, ...]]:
        """Name, kind, flags, address, offset, size, link, info, alignment, entry size of sections."""
        (start,) = struct.unpack_from("<Q", self.code, 40)
        entry, count = struct.unpack_from("<HH", self.code, 58)
        if count == 0 and start:  # more sections than fit in the header's field
            (count,) = struct.unpack_from("<Q", self.code, start + 32)
        return [struct.unpack_from("<II4QII2Q", self.code, start + entry * i) for i in range(count)]

    def read(self) -> ObjectFile:
        kind, machine = struct.unpack_from("<HH", self.code, 16)
        (flags,) = struct.unpack_from("<I", self.code, 48)
        if kind != _RELOCATABLE:
            raise IndexError
        (names_index,) = struct.unpack_from("<H", self.code, 62)
        if names_index == 0xFFFF:
            names_index = self.headers[0][6]
        sections = [self._section(header, names_index) for header in self.headers]
        symbols: list[Symbol] = []
        for header in self.headers:
            if header[1] == _SYMBOL_TABLE:
                symbols = self._symbols(header, sections)
        for header in self.headers:
            if header[1] == _RELA:
                target = sections[header[7]]
                target.relocations = self._relocations(header, symbols)
                if any(r.offset + 4 > len(target.content) for r in target.relocations):
                    raise IndexError
            elif header[1] == _REL and header[5]:
                raise IndexError
        return ObjectFile(machine, flags, sections, symbols)

    def _section(self, header: tuple[int, ...], names_index: int) -> Section:
        name, kind, flags, _, offset, size, _, _, alignment, _ = header
        content = b"" if kind == _NO_BITS else self.code[offset : offset + size]
        if kind not in (0, _NO_BITS) and len(content) != size:
            raise IndexError
        if alignment & (alignment - 1) or alignment > _LARGEST_ALIGNMENT or size > _LARGEST_SIZE:
            raise IndexError
        return Section(
            self._text(self.headers[names_index], name), kind, flags, size, alignment or 1, content
        )

    def _symbols(self, table: tuple[int, ...], sections: list[Section]) -> list[Symbol]:
        offset, size, names = table[4], table[5], self.headers[table[6]]
        content = self.code[offset : offset + size]
        symbols = []
        for name, info, other, index, value, extent in struct.iter_unpack("<IBBHQQ", content):
            section: Section | None = None
            if index == _COMMON:  # value is the alignment
                section = Section("COMMON", _NO_BITS, 3, extent, value or 1, b"")
                sections.append(section)
                value = 0
            elif 0 < index < _ABSOLUTE:
                section = sections[index]
            symbols.append(Symbol(self._text(names, name), section, value, extent, info, other & 3))
        return symbols

    def _relocations(self, table: tuple[int, ...], symbols: list[Symbol]) -> list[Relocation]:
        content = self.code[table[4] : table[4] + table[5]]
        return [
            Relocation(offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)
            for offset, info, addend in struct.iter_unpack("<QQq", content)
        ]

    def _text(self, table: tuple[int, ...], offset: int) -> str:
        start = table[4] + offset
        end = self.code.index(b"\0", start) if offset < table[5] else start
        return self.code[start:end].decode()
