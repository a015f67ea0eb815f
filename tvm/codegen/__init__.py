"""Code generators: from lowered functions to modules that run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm._ffi import get_global_func
from tvm._ffi.registry import register_func
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.runtime.module import Module
from tvm.target import Target

from .c import build_c
from .gpu import build_cuda, build_opencl
from .llvm import blob as _blob
from .llvm.build import build_llvm
from .llvm.load import load_llvm
from .llvm.parts import Lowering
from .nvptx import build_nvptx


def build_stackvm(mod: IRModule, target: Target) -> Module:
    """Code that runs in this process: the classic stack machine's programs as machine code."""
    del target
    return build_llvm(mod, Target("llvm"))


GENERATORS: dict[str, Callable[..., Module]] = {
    "llvm": build_llvm,
    "c": build_c,
    "stackvm": build_stackvm,
    "opencl": build_opencl,
    "cuda": build_cuda,
    "nvptx": build_nvptx,
}


def build_module(
    mod: IRModule,
    target: Target,
    versions: Sequence[tuple[Target, IRModule]] = (),
    lower: Lowering | None = None,
) -> Module:
    """Generate code for the functions of a lowered module.

    Parameters
    ----------
    versions : sequence of (Target, IRModule)
        The same functions lowered for better processors, for targets with ``-versions``.
    lower : callable, optional
        What brings functions for LLVM to the convention of the target's host; they have it otherwise.
    """
    if versions or lower is not None:
        return GENERATORS["llvm"](mod, target, versions, lower)
    return find_generator(target)(mod, target)


def find_generator(target: Target) -> Callable[..., Module]:
    """The code generator of a target: one of ours, or one that was registered for its kind."""
    found = GENERATORS.get(target.kind.name) or get_global_func(
        f"target.build.{target.kind}", allow_missing=True
    )
    if found is None:
        raise TVMError(
            f"no code generator for target {target.kind} is built in",
            hint=f"code generators: {', '.join(GENERATORS)}",
        )
    return found


for _kind, _generate in GENERATORS.items():
    register_func(f"target.build.{_kind}", _generate, override=True)
for _format in ("ll", "bc"):
    register_func(f"runtime.module.loadfile_{_format}", load_llvm, override=True)

__all__ = ["GENERATORS", "build_module", "find_generator"]
