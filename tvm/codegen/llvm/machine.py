"""LLVM itself: from text to optimised modules, object code and addresses in this process."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tvm._ffi.libinfo import find_lib_path
from tvm.error import InternalError, LoweringError, TVMError
from tvm.target import CpuInfo, Target
from tvm.target.cpu import machine_cpu, machine_features
from tvm.target.host import host_triple
from tvm.target.triple import runs_here

from .processors import check_processor
from .system_lib import REGISTER

_SYMBOL_TABLE, _GLOBAL_SYMBOL = 2, 1


@cache  # LLVM is set up once a process; importing it takes 0.1 s, so that `import tvm` does not
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    # the runtime is not among the libraries that are visible to the whole process
    runtime = ctypes.CDLL(find_lib_path()[0])
    llvm.add_symbol(REGISTER, ctypes.cast(getattr(runtime, REGISTER), ctypes.c_void_p).value)
    return llvm


@cache
def _llvm_for_all_targets() -> Any:
    llvm = _llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def llvm_version() -> str:
    """The version of LLVM and of its binding."""
    return str(_llvm().llvm_version_info)


class Machine:
    """LLVM's view of a target: its data layout, its optimiser, its assembler."""

    def __init__(self, target: Target, cpu: CpuInfo, opt_level: int) -> None:
        native = runs_here(cpu.triple)
        self._llvm = llvm = _llvm() if native else _llvm_for_all_targets()
        self._opt_level = opt_level
        try:
            found = llvm.Target.from_triple(cpu.triple)
        except RuntimeError as error:
            raise TVMError(f"LLVM does not know the triple {cpu.triple!r}: {error}") from None
        check_processor(machine_cpu(target), cpu.triple)
        self._machine = found.create_target_machine(
            cpu=machine_cpu(target),
            features=machine_features(target),
            opt=opt_level,
            reloc="pic",
            codemodel="default",
            abiname=str(target.attrs.get("mabi", "")),
        )
        self.layout = str(self._machine.target_data)

    @property
    def pointer_bits(self) -> int:
        """The size of a pointer."""
        found = re.search(r"-p:(\d+)", self.layout)
        return int(found[1]) if found else 64

    def parse(self, text: str, imports: Iterable[str] = ()) -> Any:
        """LLVM's module for the text, with others linked in."""
        try:
            module = self._llvm.parse_assembly(text)
        except RuntimeError as error:
            raise _refused_text(str(error), text) from None
        for item in imports:
            other = _import(self._llvm, item)
            try:
                module.link_in(other)
            except RuntimeError as error:
                raise LoweringError(f"import_llvm cannot link {_title(item)}: {error}") from None
        return module

    def optimize(self, module: Any) -> None:
        """Run LLVM's optimisation pipeline on the module."""
        llvm = self._llvm
        options = llvm.create_pipeline_tuning_options(speed_level=self._opt_level)
        options.loop_vectorization = self._opt_level >= 2
        options.slp_vectorization = self._opt_level >= 2
        builder = llvm.create_pass_builder(self._machine, options)
        builder.getModulePassManager().run(module, builder)

    def object_code(self, module: Any) -> bytes:
        """The object file of an optimised module."""
        return bytes(self._machine.emit_object(module))

    def assembly(self, module: Any) -> str:
        """The assembly text of an optimised module."""
        return str(self._machine.emit_assembly(module))


def _refused_text(error: str, text: str) -> TVMError:
    """LLVM's complaint about a module; only calls of intrinsics are written as users wrote them."""
    found = re.search(r":(\d+):\d+: error: (.*)", error)
    line = text.splitlines()[int(found[1]) - 1].strip() if found else ""
    if found and "intrinsic" in found[2]:
        return LoweringError(
            f"call_llvm_intrin requires an intrinsic of LLVM {llvm_version()} with arguments that fit: "
            f"{found[2]}",
            hint=line,
        )
    return InternalError(f"LLVM refuses generated code: {error}", hint=line)


def _import(llvm: Any, item: str) -> Any:
    """LLVM text, or the name of a file with text or bitcode."""
    is_text = "\n" in item or "{" in item
    try:
        data = item.encode() if is_text else Path(item).read_bytes()
        is_bitcode = data[:2] == b"BC"
        return llvm.parse_bitcode(data) if is_bitcode else llvm.parse_assembly(data.decode())
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoweringError(
            f"import_llvm requires LLVM text, or a file of text or bitcode, got {_title(item)}: {reason}"
        ) from None


def _title(item: str) -> str:
    first = item.strip().splitlines()[0] if item.strip() else ""
    return repr(first if len(first) < 80 else first[:77] + "...")


class LoadedObject:
    """An object file in this process's memory, as long as this value lives."""

    def __init__(self, object_code: bytes) -> None:
        llvm = _llvm()
        process = ctypes.CDLL(None)
        # LLVM links a name that nobody defines to address 0
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
        empty = llvm.parse_assembly("")
        target = llvm.Target.from_triple(host_triple())
        self._engine = llvm.create_mcjit_compiler(empty, target.create_target_machine(jit=True))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """The address of a function or variable; 0 if there is none."""
        return int(
            self._engine.get_function_address(symbol)
            or self._engine.get_global_value_address(symbol)
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
