"""Link objects into a shared library, with no other tool: what ``export_library`` needs, no more.

    headers, symbols, relocations, constants | code, stubs | data, table of addresses, dynamic, zeros

File offsets equal addresses. Each group is a segment of its own; calls of other libraries go through
stubs; the loader fills the table of addresses at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tvm.elf.read import ObjectFile, Relocation, Section, Symbol, read_object
from tvm.elf.relocate import MACHINES, Machine
from tvm.support.files import replacing

_PROGBITS, _STRTAB, _RELA, _HASH, _DYNAMIC, _NOBITS, _DYNSYM = 1, 3, 4, 5, 6, 8, 11
_NOTE, _INIT_ARRAY, _FINI_ARRAY, _UNWIND = 7, 14, 15, 0x70000001
_WRITE, _ALLOCATED, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_SHARED = 3
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_HIDDEN = (1, 2)
# what the C++ library would have to bring
_FOREIGN = ("_Z", "__cxa_", "__gxx_", "_Unwind_")
_NEEDED = ("libm.so.6", "libc.so.6")


class LinkError(ValueError):
    """The objects need a real linker."""


def link_shared(output: str | Path, objects: Sequence[str | Path]) -> None:
    """Write a shared library of x86-64 or AArch64 objects made by this compiler."""
    parsed = [read_object(Path(path).read_bytes(), str(path)) for path in objects]
    try:
        library = _Linker(parsed).link()
    except (struct.error, IndexError, OverflowError):
        raise LinkError("an object holds values that no object has") from None
    with replacing(output) as target:  # processes that have loaded the old one keep it
        target.write_bytes(library)
        target.chmod(0o755)


@dataclass
class _Group:
    """Sections of one segment."""

    flags: int  # of the segment: 4 read, 2 write, 1 execute
    sections: list[Section] = field(default_factory=list)
    start: int = 0
    end: int = 0
    file_end: int = 0

    def place(self, address: int, page: int) -> int:
        """Give each section its address; the end."""
        self.start = address = address + -address % page if self.sections else address
        self.file_end = address
        for section in self.sections:
            address += -address % section.alignment
            section.address = address
            address += section.size
            if section.has_content:
                self.file_end = address
        self.end = address
        return address


def _piece(name: str, kind: int, flags: int, alignment: int = 8, size: int = 0) -> Section:
    return Section(name, kind, flags | _ALLOCATED, size, alignment, b"")


class _Linker:
    def __init__(self, objects: Sequence[ObjectFile]) -> None:
        self.machine = _common_machine(objects)
        self.objects = objects
        self.definitions = _choose_definitions(objects)
        self.inputs = [s for each in objects for s in each.sections if _is_loaded(s)]
        self.imports = self._find_imports()
        loaded = {id(section) for section in self.inputs}
        self.exports = [
            symbol
            for symbol in self.definitions.values()
            if symbol.visibility not in _HIDDEN and id(symbol.section) in loaded
        ]
        self.slots = self._find_slots()
        self.stubs = {name: i for i, name in enumerate(self._called_imports())}
        self.hash = _piece(".hash", _HASH, 0)
        self.dynsym = _piece(".dynsym", _DYNSYM, 0)
        self.dynstr = _piece(".dynstr", _STRTAB, 0, 1)
        self.rela = _piece(".rela.dyn", _RELA, 0)
        self.plt = _piece(".plt", _PROGBITS, _EXECUTE, 16, len(self.stubs) * self.machine.stub_size)
        self.got = _piece(".got", _PROGBITS, _WRITE, 8, 8 * len(self.slots))
        self.dynamic = _piece(".dynamic", _DYNAMIC, _WRITE)
        self.names = b"\0"

    def link(self) -> bytes:
        groups = self._make_groups()
        self._fill_names()
        address = 64 + 56 * 5
        for group in groups:
            address = group.place(address, self.machine.page if group is not groups[0] else 8)
        sections = [s for group in groups for s in group.sections]
        groups[0].start = 0
        self._write_tables(sections)
        for section in self.inputs:
            self._relocate(section)
        return self._write_file(groups, sections)

    def _make_groups(self) -> list[_Group]:
        read, execute, write = _Group(4), _Group(5), _Group(6)
        read.sections = [self.hash, self.dynsym, self.dynstr, self.rela]
        constants: list[Section] = []
        zeros: list[Section] = []
        for section in self.inputs:
            if section.flags & _EXECUTE:
                execute.sections.append(section)
            elif not section.has_content:
                zeros.append(section)
            elif section.flags & _WRITE or self._has_absolute(section):
                write.sections.append(section)
            else:
                constants.append(section)
        # code reaches 2 GiB, so what is large stands far from it
        read.sections += sorted(constants, key=lambda s: -s.size)
        execute.sections.append(self.plt)
        write.sections.sort(key=lambda s: (s.kind in (_INIT_ARRAY, _FINI_ARRAY), s.kind, s.name))
        write.sections += [self.got, self.dynamic, *zeros]
        return [read, execute, write]

    def _has_absolute(self, section: Section) -> bool:
        return any(r.kind == self.machine.absolute for r in section.relocations)

    def _resolve(self, symbol: Symbol) -> Symbol | None:
        """The definition that a use of the symbol means; None if it is in another library."""
        if symbol.is_local:
            return symbol
        return self.definitions.get(symbol.name)

    def _relocations(self) -> Iterable[tuple[Section, Relocation]]:
        return ((section, r) for section in self.inputs for r in section.relocations)

    def _find_imports(self) -> list[str]:
        names = dict.fromkeys(
            r.symbol.name for _, r in self._relocations() if self._resolve(r.symbol) is None
        )
        foreign = [name for name in names if name.startswith(_FOREIGN)]
        if foreign:
            raise LinkError(f"the code needs the C++ library for {foreign[0]}")
        return list(names)

    def _find_slots(self) -> dict[str, int]:
        table = [r.symbol for _, r in self._relocations() if r.kind in self.machine.table]
        if any(symbol.is_local for symbol in table):
            raise LinkError("a local symbol stands in the table of addresses")
        names = dict.fromkeys([*(symbol.name for symbol in table), *self._called_imports()])
        return {name: i for i, name in enumerate(names)}

    def _called_imports(self) -> list[str]:
        known = set(self.imports)
        called = (r for _, r in self._relocations() if r.kind in self.machine.branches)
        return list(dict.fromkeys(r.symbol.name for r in called if r.symbol.name in known))

    def _fill_names(self) -> None:
        """Fix the sizes of the tables; addresses come later."""
        for name in [*self.imports, *(s.name for s in self.exports), *self._needed()]:
            self.names += name.encode() + b"\0"
        count = 1 + len(self.imports) + len(self.exports)
        self.dynsym.size = 24 * count
        self.dynstr.size = len(self.names)
        self.hash.size = 4 * (2 + _bucket_count(count) + count)
        absolute = sum(r.kind == self.machine.absolute for _, r in self._relocations())
        self.rela.size = 24 * (len(self.slots) + absolute)
        self.dynamic.size = 16 * (9 + len(self._needed()) + 2 * len(self._arrays()))

    def _needed(self) -> tuple[str, ...]:
        return _NEEDED if self.imports else ()

    def _arrays(self) -> list[tuple[int, int, list[Section]]]:
        """The tags of the loader, and the functions that run at the start and the end."""
        tags = ((_INIT_ARRAY, 25, 27), (_FINI_ARRAY, 26, 28))
        found = [
            (
                tag,
                size_tag,
                sorted((s for s in self.inputs if s.kind == kind), key=lambda s: s.name),
            )
            for kind, tag, size_tag in tags
        ]
        return [entry for entry in found if entry[2]]

    def _write_tables(self, sections: list[Section]) -> None:
        index = {id(section): i for i, section in enumerate(sections, 1)}
        offsets: dict[str, int] = {}
        at = 1
        for name in [*self.imports, *(s.name for s in self.exports), *self._needed()]:
            offsets[name] = at
            at += len(name.encode()) + 1
        needed = {r.symbol.name for _, r in self._relocations() if not r.symbol.is_weak}
        entries = [
            struct.pack("<IBBHQQ", offsets[n], 0x10 if n in needed else 0x20, 0, 0, 0, 0)
            for n in self.imports
        ]
        entries += [
            struct.pack(
                "<IBBHQQ", offsets[s.name], s.info, 0, index[id(s.section)], s.address, s.size
            )
            for s in self.exports
        ]
        self.dynsym.content = bytes(24) + b"".join(entries)
        self.dynstr.content = self.names
        self.hash.content = _hash_table([*self.imports, *(s.name for s in self.exports)])
        self.rela.content = self._dynamic_relocations()
        self.rela.size = len(self.rela.content)
        self.got.content = bytes(self.got.size)
        self.plt.content = b"".join(
            self.machine.stub(self._stub_address(name), self._slot_address(name))
            for name in self.stubs
        )
        self.dynamic.content = self._dynamic_entries(offsets)

    def _slot_address(self, name: str) -> int:
        return self.got.address + 8 * self.slots[name]

    def _stub_address(self, name: str) -> int:
        return self.plt.address + self.machine.stub_size * self.stubs[name]

    def _dynamic_relocations(self) -> bytes:
        numbers = {name: i for i, name in enumerate(self.imports, 1)}
        uses = [(self._slot_address(n), self.definitions.get(n), n, 0) for n in self.slots]
        uses += [
            (section.address + r.offset, self._resolve(r.symbol), r.symbol.name, r.addend)
            for section, r in self._relocations()
            if r.kind == self.machine.absolute
        ]
        entries = []
        for place, definition, name, addend in uses:
            if definition is None:
                info = numbers[name] << 32 | self._look_up_kind(addend)
                entries.append(struct.pack("<QQq", place, info, addend))
            else:
                value = definition.address + addend
                entries.append(struct.pack("<QQq", place, self.machine.relative, value))
        return b"".join(entries)

    def _look_up_kind(self, addend: int) -> int:
        return self.machine.absolute if addend else self.machine.look_up

    def _dynamic_entries(self, offsets: dict[str, int]) -> bytes:
        entries = [(1, offsets[name]) for name in self._needed()]
        entries += [(4, self.hash.address), (5, self.dynstr.address), (6, self.dynsym.address)]
        entries += [(10, self.dynstr.size), (11, 24)]
        entries += [(7, self.rela.address), (8, self.rela.size), (9, 24)]
        for tag, size_tag, sections in self._arrays():
            start = min(section.address for section in sections)
            end = max(section.address + section.size for section in sections)
            entries += [(tag, start), (size_tag, end - start)]
        entries.append((0, 0))
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def _relocate(self, section: Section) -> None:
        if not section.relocations:
            return
        data = bytearray(section.content)
        for relocation in section.relocations:
            patch = self.machine.patches.get(relocation.kind)
            if patch is None:
                raise LinkError(
                    f"relocation {relocation.kind} of {self.machine.name} is unknown here"
                )
            target = self._target(relocation)
            place = section.address + relocation.offset
            try:
                patch(data, relocation.offset, target + relocation.addend, place)
            except struct.error:
                raise LinkError(f"{relocation.symbol.name} is too far away") from None
        section.content = bytes(data)

    def _target(self, relocation: Relocation) -> int:
        name = relocation.symbol.name
        if relocation.kind in self.machine.table:
            return self._slot_address(name)
        definition = self._resolve(relocation.symbol)
        if definition is not None:
            if definition.section is None or not _is_loaded(definition.section):
                raise LinkError(f"{name} is not a place in memory")
            return definition.address
        if relocation.kind in self.machine.branches:
            return self._stub_address(name)
        if relocation.kind == self.machine.absolute:
            return 0
        raise LinkError(f"{name} is needed at link time, and no object defines it")

    def _write_file(self, groups: list[_Group], sections: list[Section]) -> bytes:
        segments = [
            (_LOAD, g.flags, g.start, g.file_end - g.start, g.end - g.start, self.machine.page)
            for g in groups
            if g.end > g.start
        ]
        dynamic = self.dynamic
        segments.append((_DYNAMIC_SEGMENT, 6, dynamic.address, dynamic.size, dynamic.size, 8))
        segments.append((_STACK, 6, 0, 0, 0, 16))
        program = b"".join(
            struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, extent, align)
            for kind, flags, start, size, extent, align in segments
        )
        parts = [bytes(64), program]
        at = 64 + len(program)
        for section in sections:
            if not section.has_content:
                continue
            parts += [bytes(section.address - at), section.content]
            at = section.address + len(section.content)
        table, names = self._section_table(sections, at)
        parts += [names, bytes(-(at + len(names)) % 8), table]
        table_offset = at + len(names) + -(at + len(names)) % 8
        parts[0] = struct.pack(
            "<16sHHIQQQIHHHHHH",
            b"\x7fELF\x02\x01\x01", _SHARED, self._machine_number(), 1, 0, 64, table_offset,
            self.objects[0].flags, 64, 56, len(segments), 64, len(sections) + 2, len(sections) + 1,
        )  # fmt: skip
        return b"".join(parts)

    def _machine_number(self) -> int:
        return self.objects[0].machine

    def _section_table(self, sections: list[Section], names_offset: int) -> tuple[bytes, bytes]:
        """What debuggers and profilers read; the loader does not."""
        names = b"\0"
        links = {id(self.dynsym): 3, id(self.hash): 2, id(self.rela): 2, id(self.dynamic): 3}
        sizes = {id(self.dynsym): 24, id(self.hash): 4, id(self.rela): 24, id(self.dynamic): 16}
        table = [bytes(64)]
        for section in sections:
            table.append(
                struct.pack(
                    "<II4QII2Q",
                    len(names), section.kind, section.flags & 7, section.address, section.address,
                    section.size, links.get(id(section), 0), int(section is self.dynsym),
                    section.alignment, sizes.get(id(section), 0),
                )
            )  # fmt: skip
            names += section.name.encode() + b"\0"
        own = len(names)
        names += b".shstrtab\0"
        table.append(
            struct.pack("<II4QII2Q", own, _STRTAB, 0, 0, names_offset, len(names), 0, 0, 1, 0)
        )
        return b"".join(table), names


def _common_machine(objects: Sequence[ObjectFile]) -> Machine:
    numbers = {each.machine for each in objects}
    if len(numbers) != 1 or not numbers <= set(MACHINES):
        raise LinkError(f"the objects are for machines {sorted(numbers)}")
    return MACHINES[numbers.pop()]


def _is_loaded(section: Section) -> bool:
    # there is no code here that unwinds, and notes are for linkers
    if section.kind in (_NOTE, _UNWIND) or section.name == ".eh_frame":
        return False
    if section.flags & _THREAD_LOCAL:
        raise LinkError("the code has thread-local variables")
    return bool(section.flags & _ALLOCATED)


def _choose_definitions(objects: Sequence[ObjectFile]) -> dict[str, Symbol]:
    chosen: dict[str, Symbol] = {}
    for each in objects:
        for symbol in each.symbols:
            if symbol.is_local or symbol.section is None:
                continue
            before = chosen.get(symbol.name)
            if before is None or (_is_tentative(before) and not _is_tentative(symbol)):
                chosen[symbol.name] = symbol
            elif not _is_tentative(symbol):
                raise LinkError(f"two objects define {symbol.name}")
    return chosen


def _is_tentative(symbol: Symbol) -> bool:
    assert symbol.section is not None
    return symbol.is_weak or symbol.section.name == "COMMON"


def _bucket_count(symbols: int) -> int:
    return max(1, symbols // 2)


def _hash_table(names: Sequence[str]) -> bytes:
    """The classic table by which the loader finds names; symbol 0 is no name."""
    count = len(names) + 1
    buckets, chains = [0] * _bucket_count(count), [0] * count
    for number, name in enumerate(names, 1):
        bucket = _hash_of(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + len(buckets) + count}I", len(buckets), count, *buckets, *chains)


def _hash_of(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value & 0xFFFFFFFF
