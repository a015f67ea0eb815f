"""Object code in this process's memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tvm._ffi.libinfo import find_lib_path
from tvm.target.host import host_triple

from .library import native_llvm
from .system_lib import REGISTER

_SYMBOL_TABLE, _GLOBAL_SYMBOL, _WEAK_SYMBOL = 2, 1, 2


class LoadedObject:
    """Object files in this process's memory, as long as this value lives.

    Parameters
    ----------
    objects : list of bytes
        The files.
    wanted : iterable of str
        The symbols whose addresses will be asked for.
    jit : str
        Which of LLVM's loaders. ``orcjit`` takes one range of memory for the sections of an object.
        ``mcjit`` takes any free memory for each; offsets of 32 bits do not span what lies between
        them in a process with many mappings, and LLVM then ends the process.
    """

    def __init__(
        self, objects: Sequence[bytes], wanted: Iterable[str], jit: str = "orcjit"
    ) -> None:
        load = {"mcjit": _load_by_mcjit, "orcjit": _load_by_orc}[jit]
        self._address = load(native_llvm(), objects, wanted)

    def address(self, symbol: str) -> int:
        """The address of a function or variable; 0 if there is none."""
        return int(self._address(symbol))


def _load_by_mcjit(
    llvm: Any, objects: Sequence[bytes], wanted: Iterable[str]
) -> Callable[[str], int]:
    del wanted  # all can be asked for
    llvm.add_symbol(REGISTER, _runtime_address())
    empty = llvm.parse_assembly("")
    target = llvm.Target.from_triple(host_triple())
    engine = llvm.create_mcjit_compiler(empty, target.create_target_machine(jit=True))
    for object_code in reversed(objects):  # code comes behind what it uses
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
    engine.finalize_object()

    def address(symbol: str) -> int:
        return int(engine.get_function_address(symbol) or engine.get_global_value_address(symbol))

    return address


def _load_by_orc(
    llvm: Any, objects: Sequence[bytes], wanted: Iterable[str]
) -> Callable[[str], int]:
    builder = llvm.JITLibraryBuilder()
    for object_code in objects:
        builder = builder.add_object_img(object_code)
    builder = builder.import_symbol(REGISTER, _runtime_address()).add_current_process()
    names = list(wanted)
    for name in names:
        builder.export_symbol(name)
    compiler = llvm.create_lljit_compiler(use_jit_link=True)
    library = builder.link(compiler, "kernels")
    addresses = {name: int(library[name]) for name in names}

    def address(symbol: str) -> int:
        # the library goes with the last reference to it
        return addresses.get(symbol, 0) if library is not None else 0

    return address


def _runtime_address() -> int:
    """Where the runtime registers symbols: its library is not among those that all processes see."""
    runtime = ctypes.CDLL(find_lib_path()[0])
    return ctypes.cast(getattr(runtime, REGISTER), ctypes.c_void_p).value or 0


def undefined_names(objects: Sequence[bytes]) -> list[str]:
    """The names that objects use and neither they nor this process define; LLVM links them to address 0."""
    llvm = native_llvm()
    llvm.add_symbol(REGISTER, _runtime_address())
    process = ctypes.CDLL(None)
    defined = {name for code in objects for name in symbols_of(code, defined=True)}
    return [
        name
        for code in objects
        for name in symbols_of(code, defined=False)
        if name not in defined
        and name != "_GLOBAL_OFFSET_TABLE_"
        and not (hasattr(process, name) or llvm.address_of_symbol(name))
    ]


def symbols_of(code: bytes, defined: bool) -> list[str]:
    """The names that a 64-bit ELF object defines for others, or those that it only uses.

    None for other formats.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQII", code, table + i * size) for i in range(count)]
    bindings = (_GLOBAL_SYMBOL, _WEAK_SYMBOL) if defined else (_GLOBAL_SYMBOL,)
    found = []
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for name, info, _, section, _, _ in struct.iter_unpack(
            "<IBBHQQ", code[offset : offset + length]
        ):
            if name and (section != 0) == defined and info >> 4 in bindings:
                found.append(code[names + name : code.index(b"\0", names + name)].decode())
    return found
