"""LLVM in this process: set up once, when it is first needed."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache  # LLVM is set up once a process; importing it takes 0.1 s, so that `import tvm` does not
def native_llvm() -> Any:
    """LLVM's binding, ready for code of this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm


@cache
def llvm_for_all_targets() -> Any:
    """LLVM's binding, ready for code of any machine."""
    llvm = native_llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def llvm_version() -> str:
    """The version of LLVM and of its binding."""
    return str(native_llvm().llvm_version_info)


def llvm_lock() -> Any:
    """The lock that each call of LLVM takes."""
    return native_llvm().ffi.lib._lock
