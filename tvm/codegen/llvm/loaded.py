"""Object code in this process's memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from typing import Any

from tvm._ffi.libinfo import find_lib_path
from tvm.error import LoweringError
from tvm.target.host import host_triple

from .library import native_llvm
from .system_lib import REGISTER

_SYMBOL_TABLE, _GLOBAL_SYMBOL = 2, 1


class LoadedObject:
    """An object file in this process's memory, as long as this value lives.

    Parameters
    ----------
    object_code : bytes
        The file.
    jit : str
        Which of LLVM's loaders: ``mcjit`` or ``orcjit``.
    wanted : iterable of str
        The symbols whose addresses will be asked for; ``orcjit`` has to be told before.
    """

    def __init__(self, object_code: bytes, jit: str = "mcjit", wanted: Iterable[str] = ()) -> None:
        llvm = native_llvm()
        _add_runtime(llvm)
        _require_definitions(llvm, object_code)
        if jit == "orcjit":
            self._address = _load_by_orc(llvm, object_code, wanted)
            return
        empty = llvm.parse_assembly("")
        target = llvm.Target.from_triple(host_triple())
        engine = llvm.create_mcjit_compiler(empty, target.create_target_machine(jit=True))
        engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        engine.finalize_object()
        self._address = lambda symbol: (
            engine.get_function_address(symbol) or engine.get_global_value_address(symbol)
        )

    def address(self, symbol: str) -> int:
        """The address of a function or variable; 0 if there is none."""
        return int(self._address(symbol))


def _load_by_orc(llvm: Any, object_code: bytes, wanted: Iterable[str]) -> Any:
    builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
    names = list(wanted)
    for name in names:
        builder.export_symbol(name)
    compiler = llvm.create_lljit_compiler()
    library = builder.link(compiler, "kernels")
    addresses = {name: library[name] for name in names}

    def address(symbol: str) -> int:
        # the library goes with the last reference to it
        return addresses.get(symbol, 0) if library is not None else 0

    return address


def _add_runtime(llvm: Any) -> None:
    """The runtime's own library is not among those that the whole process sees."""
    runtime = ctypes.CDLL(find_lib_path()[0])
    address = ctypes.cast(getattr(runtime, REGISTER), ctypes.c_void_p).value
    llvm.add_symbol(REGISTER, address)


def _require_definitions(llvm: Any, object_code: bytes) -> None:
    """LLVM links a name that nobody defines to address 0."""
    process = ctypes.CDLL(None)
    missing = [
        name
        for name in undefined_symbols(object_code)
        if name != "_GLOBAL_OFFSET_TABLE_"
        and not (hasattr(process, name) or llvm.address_of_symbol(name))
    ]
    if missing:
        raise LoweringError(
            f"compiled code calls {', '.join(missing)}, which no loaded library defines",
            hint="load the library with ctypes.CDLL(path, ctypes.RTLD_GLOBAL) before tvm.build",
        )


def undefined_symbols(code: bytes) -> list[str]:
    """The names that a 64-bit ELF object uses and does not define; none for other formats."""
    if code[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQII", code, table + i * size) for i in range(count)]
    found = []
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for name, info, _, section, _, _ in struct.iter_unpack(
            "<IBBHQQ", code[offset : offset + length]
        ):
            if section == 0 and name and info >> 4 == _GLOBAL_SYMBOL:
                found.append(code[names + name : code.index(b"\0", names + name)].decode())
    return found
