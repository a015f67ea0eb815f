"""Data as an object file, with no compiler.

The file has the form (word size, byte order, machine) of another object that it will be linked with.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

MAGIC = b"\x7fELF"
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOCATED = 2
_GLOBAL_DATA, _WEAK_DATA = 0x11, 0x21
_DATA_ALIGNMENT = 64
# Code of x86-64 reaches 2 GiB around it. What is more than a half of that lies apart from all others,
# in a section that linkers put behind them, and is found by its symbol's whole address.
FAR_SIZE = 1 << 30
_X86_64 = 62
_USED = 9  # bytes of the identification that have a meaning
_FAR = 0x10000000


@dataclass(frozen=True)
class _Form:
    """What objects for one machine have in common."""

    identification: bytes
    wide: bool  # 64-bit
    order: str  # of struct
    machine: int
    flags: int


def is_elf(code: bytes) -> bool:
    """Whether the bytes are an ELF file."""
    return code[:4] == MAGIC and len(code) >= 52


def machine_of(path: str) -> int | None:
    """The number of the machine that an ELF file is for; None if it is no such file."""
    try:
        with open(path, "rb") as file:
            header = file.read(52)
    except OSError:
        return None
    return _form_of(header).machine if is_elf(header) else None


def data_object(symbol: str, data: bytes, like: bytes) -> bytes:
    """An object file that defines ``symbol`` as ``data``, for the machine of the object ``like``."""
    return _object_of({symbol: data}, like, _GLOBAL_DATA)


def constants_object(constants: Mapping[str, bytes], like: bytes) -> bytes:
    """An object file of constants that several objects of one library may define, all the same way."""
    return _object_of(constants, like, _WEAK_DATA)


def _object_of(constants: Mapping[str, bytes], like: bytes, binding: int) -> bytes:
    form = _form_of(like)
    is_far = form.machine == _X86_64 and sum(map(len, constants.values())) >= FAR_SIZE
    place = b".lrodata" if is_far else b".rodata"
    names = [b"", place, b".symtab", b".strtab", b".shstrtab", b".note.GNU-stack"]
    section_names = b"\0".join(names) + b"\0"
    symbol_names, symbols, contents, at = b"\0", _symbol(form, 0, 0, 0, 0, 0), [], 0
    for symbol, content in constants.items():
        symbols += _symbol(form, len(symbol_names), binding, 1, at, len(content))
        symbol_names += symbol.encode() + b"\0"
        contents += [content, bytes(-len(content) % _DATA_ALIGNMENT)]
        at += len(content) + len(contents[-1])
    data = b"".join(contents[:-1])
    header_size, section_size, symbol_size = (64, 64, 24) if form.wide else (52, 40, 16)
    # kind, flags, content, link, info, alignment, size of an entry
    sections = [
        (_PROGBITS, _ALLOCATED | (_FAR if is_far else 0), data, 0, 0, _DATA_ALIGNMENT, 0),
        (_SYMTAB, 0, symbols, 3, 1, 8, symbol_size),
        (_STRTAB, 0, symbol_names, 0, 0, 1, 0),
        (_STRTAB, 0, section_names, 0, 0, 1, 0),
        (_PROGBITS, 0, b"", 0, 0, 1, 0),
    ]
    offset = header_size
    parts: list[bytes] = []
    table = [bytes(section_size)]
    for number, (kind, flags, content, link, info, alignment, entry) in enumerate(sections, 1):
        padding = -offset % alignment
        parts += [bytes(padding), content]
        offset += padding
        name = len(b"\0".join(names[:number])) + 1
        word = "Q" if form.wide else "I"
        table.append(
            struct.pack(
                f"{form.order}II4{word}II2{word}",
                name, kind, flags, 0, offset, len(content), link, info, alignment, entry,
            )
        )  # fmt: skip
        offset += len(content)
    padding = -offset % 8
    header = _header(form, offset + padding, header_size, section_size, len(table))
    return b"".join([header, *parts, bytes(padding), *table])


def _form_of(like: bytes) -> _Form:
    wide = like[4] == 2
    order = "<" if like[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", like, 18)
    (flags,) = struct.unpack_from(f"{order}I", like, 48 if wide else 36)
    return _Form(like[:_USED].ljust(16, b"\0"), wide, order, machine, flags)


def _header(form: _Form, table_offset: int, size: int, section_size: int, sections: int) -> bytes:
    word = "Q" if form.wide else "I"
    return form.identification + struct.pack(
        f"{form.order}HHI3{word}IHHHHHH",
        _RELOCATABLE, form.machine, 1, 0, 0, table_offset, form.flags,
        size, 0, 0, section_size, sections, 4,
    )  # fmt: skip


def _symbol(form: _Form, name: int, info: int, section: int, value: int, size: int) -> bytes:
    if form.wide:
        return struct.pack(f"{form.order}IBBHQQ", name, info, 0, section, value, size)
    return struct.pack(f"{form.order}IIIBBH", name, value, size, info, 0, section)
