"""LLVM itself: from text to optimised modules and object code."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tvm.error import InternalError, LoweringError, TVMError
from tvm.target import CpuInfo, Target
from tvm.target.cpu import machine_cpu, machine_features
from tvm.target.triple import runs_here

from .library import llvm_for_all_targets, llvm_version, native_llvm
from .probe import check_bitcode
from .processors import check_abi, check_attributes, check_processor


class Machine:
    """LLVM's view of a target: its data layout, its optimiser, its assembler."""

    def __init__(self, target: Target, cpu: CpuInfo, opt_level: int) -> None:
        native = runs_here(cpu.triple)
        self._llvm = llvm = native_llvm() if native else llvm_for_all_targets()
        self._opt_level = opt_level
        try:
            llvm.Target.from_triple(cpu.triple)
        except RuntimeError as error:
            raise TVMError(f"LLVM does not know the triple {cpu.triple!r}: {error}") from None
        check_processor(machine_cpu(target), cpu.triple)
        check_attributes(target.mattr, cpu.triple)
        abi = str(target.attrs.get("mabi", ""))
        check_abi(abi, cpu.triple)
        self._machine = _target_machine(
            cpu.triple, machine_cpu(target), machine_features(target), opt_level, abi
        )
        self.layout = str(self._machine.target_data)

    @property
    def pointer_bits(self) -> int:
        """The size of a pointer."""
        found = re.search(r"-p:(\d+)", self.layout)
        return int(found[1]) if found else 64

    def parse(self, text: str, imports: Iterable[str] = (), context: Any = None) -> Any:
        """LLVM's module for the text, with others linked in; by default in a context of its own."""
        # what a context has named stays in it, so that a common one would grow with each module
        context = context or self._llvm.create_context()
        try:
            module = self._llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise _parse_error(str(error), text) from None
        _outlive(module, context)
        for item in imports:
            other = _import(self._llvm, item, context)
            try:
                module.link_in(other)
            except RuntimeError as error:
                raise LoweringError(f"import_llvm cannot link {_title(item)}: {error}") from None
        return module

    def optimized(self, text: str, imports: Iterable[str] = ()) -> Any:
        """The module for the text after LLVM's optimisations."""
        module = self.parse(text, imports)
        self._optimize(module, self._opt_level >= 2)
        try:
            module.verify()
        except RuntimeError:
            # joining scalars to vectors can leave uses before their definitions, on which code
            # generation would end the process
            module = self.parse(text, imports)
            self._optimize(module, False)
            module.verify()
        return module

    def _optimize(self, module: Any, joins_scalars: bool) -> None:
        builder = _pass_builder(self._machine, self._opt_level, joins_scalars)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        _dispose(passes)

    def object_code(self, module: Any) -> bytes:
        """The object file of an optimised module."""
        with module.clone() as copy:  # code generation changes it
            return bytes(self._machine.emit_object(copy))

    def assembly(self, module: Any) -> str:
        """The assembly text of an optimised module."""
        with module.clone() as copy:
            return str(self._machine.emit_assembly(copy))


# LLVM registers some kilobytes with each pass builder that are never freed
@lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, opt_level: int, abi: str) -> Any:
    return (
        native_llvm()
        .Target.from_triple(triple)
        .create_target_machine(
            cpu=cpu, features=features, opt=opt_level, reloc="pic", codemodel="default", abiname=abi
        )
    )


@lru_cache(maxsize=16)
def _pass_builder(machine: Any, opt_level: int, joins_scalars: bool) -> Any:
    llvm = native_llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization = opt_level >= 2
    options.slp_vectorization = joins_scalars
    return llvm.create_pass_builder(machine, options)


def _dispose(passes: Any) -> None:
    """Free a pass manager: in llvmlite an empty method of a base class hides the one that does."""
    llvm = native_llvm()
    if type(passes)._dispose is not llvm.ffi.ObjectRef._dispose:
        passes.close()
        return
    llvm.newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


def _outlive(module: Any, context: Any) -> None:
    """Let a context go after its module, which the garbage collector would do in any order."""
    # whom the finalizer holds is no garbage yet when the module is found to be some
    weakref.finalize(module, _let_go, context).atexit = False


def _let_go(context: Any) -> None:
    """What is to be done with a context whose module goes: nothing but forgetting it."""


def _parse_error(error: str, text: str) -> TVMError:
    """LLVM's complaint about a module; only calls of intrinsics are written as users wrote them."""
    found = re.search(r":(\d+):\d+: error: (.*)", error)
    line = text.splitlines()[int(found[1]) - 1].strip() if found else ""
    if found and "intrinsic" in found[2]:
        return LoweringError(
            f"call_llvm_intrin requires an intrinsic of LLVM {llvm_version()} with arguments that fit: "
            f"{found[2]}",
            hint=line,
        )
    return InternalError(f"LLVM rejects generated code: {error}", hint=line)


def _import(llvm: Any, item: str, context: Any) -> Any:
    """LLVM text, or the name of a file with text or bitcode."""
    is_text = "\n" in item or "{" in item
    try:
        data = item.encode() if is_text else Path(item).read_bytes()
        is_bitcode = data[:2] == b"BC"
        if is_bitcode:
            check_bitcode(data)
            return llvm.parse_bitcode(data, context)
        return llvm.parse_assembly(data.decode(), context)
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoweringError(
            f"import_llvm requires LLVM text, or a file of text or bitcode, got {_title(item)}: {reason}"
        ) from None


def _title(item: str) -> str:
    first = item.strip().splitlines()[0] if item.strip() else ""
    return repr(first if len(first) < 80 else first[:77] + "...")
