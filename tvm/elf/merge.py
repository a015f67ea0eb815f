"""Several object files as one, as ``ld -r`` makes it.

a.o (.text f, .bss slot), b.o (.text g, .bss slot)    ->    .text f g, .bss slot slot; f, g, slot
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.elf.read import Section, Symbol, read_object

_SYMTAB, _STRTAB, _RELA = 2, 3, 4
_ALLOCATED, _MERGED = 2, 0x30  # equal constants or strings may become one
_INFO_LINK = 0x40
_STACK_NOTE = ".note.GNU-stack"
_SECTION_KIND = 3  # of a local symbol that stands for its section
_HEADER, _ENTRY = 64, 64


@dataclass(eq=False)
class _Merged:
    """Sections of one name, one behind the other."""

    name: str
    kind: int
    flags: int
    size: int = 0
    alignment: int = 1
    contents: list[bytes] = field(default_factory=list)
    relocations: list[tuple[int, int, Symbol, int]] = field(default_factory=list)

    def append(self, section: Section) -> int:
        """Where the section begins."""
        padding = -self.size % section.alignment
        start = self.size + padding
        if section.has_content:
            self.contents += [bytes(padding), section.content]
        self.alignment = max(self.alignment, section.alignment)
        self.size = start + section.size
        return start


def merge_objects(codes: Sequence[bytes]) -> bytes:
    """One relocatable file of 64-bit little-endian ones; of equal weak definitions the first holds."""
    merged: dict[tuple[str, int, int], _Merged] = {}
    places: dict[int, tuple[_Merged, int]] = {}  # by the identity of sections
    symbols: list[tuple[int, Symbol]] = []
    parsed = [read_object(code, "a part of a module") for code in codes]
    for number, part in enumerate(parsed):
        for section in part.sections:
            if section.flags & _ALLOCATED or section.name == _STACK_NOTE:
                key = section.name, section.kind, section.flags & ~_MERGED
                into = merged.setdefault(key, _Merged(*key))
                places[id(section)] = into, into.append(section)
        symbols += [(number, symbol) for symbol in part.symbols]
    for part in parsed:
        for section in part.sections:
            if id(section) in places:
                into, start = places[id(section)]
                into.relocations += [
                    (start + r.offset, r.kind, r.symbol, r.addend) for r in section.relocations
                ]
    return _Writer(codes[0], list(merged.values()), places, symbols).text()


class _Writer:
    def __init__(
        self,
        like: bytes,
        sections: list[_Merged],
        places: dict[int, tuple[_Merged, int]],
        symbols: list[tuple[int, Symbol]],
    ) -> None:
        self.like = like
        self.sections = sections
        self.places = places
        self.numbers = {id(section): number for number, section in enumerate(sections, 1)}
        self.indices: dict[int, int] = {}  # of symbols, by identity
        self.starts: dict[int, int] = {}  # what symbols of sections add to addends
        self.names = bytearray(b"\0")
        self.local_count = 0
        self.table = self._symbols(symbols)

    def _symbols(self, symbols: list[tuple[int, Symbol]]) -> bytes:
        # the symbol of each section comes first
        rows = [bytes(24)]
        rows += [self._row("", _SECTION_KIND, 0, i, 0, 0) for i in self.numbers.values()]
        chosen: dict[str, Symbol] = {}
        for part, symbol in symbols:
            if not symbol.is_local:
                if _rank(symbol) > _rank(chosen.get(symbol.name)):
                    chosen[symbol.name] = symbol
            elif symbol.section is not None and id(symbol.section) in self.places:
                into, start = self.places[id(symbol.section)]
                if symbol.info == _SECTION_KIND:
                    self.indices[id(symbol)] = self.numbers[id(into)]
                    self.starts[id(symbol)] = start
                    continue
                self.indices[id(symbol)] = len(rows)
                # a name of its own, for LLVM's loader finds local symbols by their names
                rows.append(self._placed(f"{symbol.name}.{part}", symbol))
        self.local_count = len(rows)
        at = {}
        for name, symbol in chosen.items():
            at[name] = len(rows)
            rows.append(self._placed(name, symbol))
        for _, symbol in symbols:
            if not symbol.is_local:
                self.indices[id(symbol)] = at[symbol.name]
        return b"".join(rows)

    def _placed(self, name: str, symbol: Symbol) -> bytes:
        number, value = 0, symbol.value
        if symbol.section is not None:
            into, start = self.places[id(symbol.section)]
            number, value = self.numbers[id(into)], start + value
        return self._row(name, symbol.info, symbol.visibility, number, value, symbol.size)

    def _row(self, name: str, info: int, other: int, section: int, value: int, size: int) -> bytes:
        at = len(self.names) if name else 0
        if name:
            self.names += name.encode() + b"\0"
        return struct.pack("<IBBHQQ", at, info, other, section, value, size)

    def _relocation(self, offset: int, kind: int, symbol: Symbol, addend: int) -> bytes:
        addend += self.starts.get(id(symbol), 0)
        return struct.pack("<QQq", offset, self.indices[id(symbol)] << 32 | kind, addend)

    def text(self) -> bytes:
        """The file."""
        count = len(self.sections)
        relocated = [section for section in self.sections if section.relocations]
        table, names = count + len(relocated) + 1, count + len(relocated) + 2
        # name, kind, flags, content, size, link, info, alignment, size of an entry
        rows: list[tuple[str, int, int, bytes, int, int, int, int, int]] = [
            (s.name, s.kind, s.flags, b"".join(s.contents), s.size, 0, 0, s.alignment, 0)
            for s in self.sections
        ]
        for section in relocated:
            content = b"".join([self._relocation(*entry) for entry in section.relocations])
            number = self.numbers[id(section)]
            name = f".rela{section.name}"
            rows.append((name, _RELA, _INFO_LINK, content, len(content), table, number, 8, 24))
        rows.append(
            (".symtab", _SYMTAB, 0, self.table, len(self.table), names, self.local_count, 8, 24)
        )
        rows.append((".strtab", _STRTAB, 0, bytes(self.names), len(self.names), 0, 0, 1, 0))
        shown = b"\0" + b"".join([row[0].encode() + b"\0" for row in rows]) + b".shstrtab\0"
        rows.append((".shstrtab", _STRTAB, 0, shown, len(shown), 0, 0, 1, 0))
        return self._file(rows)

    def _file(self, rows: list[tuple[str, int, int, bytes, int, int, int, int, int]]) -> bytes:
        offset, name_at = _HEADER, 1
        parts: list[bytes] = []
        headers = [bytes(_ENTRY)]
        for name, kind, flags, content, size, link, info, alignment, entry in rows:
            padding = -offset % alignment
            parts += [bytes(padding), content]
            offset += padding
            headers.append(
                struct.pack(
                    "<II4QII2Q", name_at, kind, flags, 0, offset, size, link, info, alignment, entry
                )
            )
            offset += len(content)
            name_at += len(name.encode()) + 1
        padding = -offset % 8
        header = bytearray(self.like[:_HEADER])
        struct.pack_into("<Q", header, 40, offset + padding)
        struct.pack_into("<HHH", header, 58, _ENTRY, len(headers), len(headers) - 1)
        return b"".join([bytes(header), *parts, bytes(padding), *headers])


def _rank(symbol: Symbol | None) -> int:
    """A definition comes before a weak one, which comes before a mere use."""
    if symbol is None:
        return 0
    if symbol.section is None:
        return 1 if symbol.is_weak else 2
    return 3 if symbol.is_weak else 4
