"""Functions that a target kind takes at the level of loops.

def @f(%x, Compiler="npu") { .. }   ->  @T.prim_func f        by the kind's `RelayToTIR`
@T.prim_func f                      ->  a runtime module      by `TIRToRuntime`, or as our own code
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tvm._ffi import get_global_func
from tvm.driver import build
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.runtime.module import Module
from tvm.support.scope import Scoped
from tvm.target import Target
from tvm.target.kind import TARGET_KINDS
from tvm.tir import PrimFunc

RELAY_TO_TIR = "RelayToTIR"
TIR_TO_RUNTIME = "TIRToRuntime"
_GIVEN: Scoped[dict[str, Target]] = Scoped("external targets")  # by kind


def is_external(target: Target) -> bool:
    """Whether other compilers make the functions for a target."""
    return bool(target.get_kind_attr("is_external_codegen") or target.get_kind_attr(RELAY_TO_TIR))


def external_targets(target: Any) -> AbstractContextManager[dict[str, Target]]:
    """Inside the block, the hooks see those of the given targets that are of their kinds."""
    given = Target.canon_multi_target(target) or []
    return _GIVEN.scope({t.kind.name: t for t in given if is_external(t)})


def given_target(kind: str) -> Target | None:
    """The target of an external kind that the build was given."""
    return (_GIVEN.current() or {}).get(kind)


def hooked_kind(func: Function) -> str | None:
    """The target kind that lowers a function, if its compiler is one."""
    kind = TARGET_KINDS.get(str(func.attrs["Compiler"]))
    return None if kind is None or RELAY_TO_TIR not in kind.attrs else kind.name


def compile_hooked(
    mod: IRModule,
    kind: str,
    functions: Sequence[Function],
    ours: Target,
    attrs: Mapping[str, Any],
) -> Module:
    """The module of the functions that a kind lowers.

    Parameters
    ----------
    mod : what they are part of.
    attrs : how modules of loops of this model are compiled.
    """
    target = given_target(kind) or Target(kind)
    lower = _callable(target.get_kind_attr(RELAY_TO_TIR))
    with target:
        lowered = lower(mod)
    if not isinstance(lowered, IRModule):
        raise TVMError(
            f"{RELAY_TO_TIR} of {kind} must return an IRModule, got {type(lowered).__name__}"
        )
    found = {
        str(func.attrs.get("global_symbol", gvar.name_hint)): func
        for gvar, func in lowered.functions.items()
        if isinstance(func, PrimFunc)
    }
    for func in functions:
        if (symbol := str(func.attrs["global_symbol"])) not in found:
            raise TVMError(
                f"{RELAY_TO_TIR} of {kind} must replace {symbol} by a PrimFunc, "
                f"it returned {list(found) or 'none'}"
            )
    named = IRModule({n: f.with_attr("global_symbol", n) for n, f in found.items()}, attrs=attrs)
    if (generate := target.get_kind_attr(TIR_TO_RUNTIME)) is None:
        return build(named, target=ours)
    with ours:
        made = _callable(generate)(named, target)
    if not isinstance(made, Module):
        raise TVMError(
            f"{TIR_TO_RUNTIME} of {kind} must return a runtime module, got {type(made).__name__}"
        )
    return made


def _callable(hook: Any) -> Callable[..., Any]:
    """A hook, which may be the name of a global function."""
    return get_global_func(hook) if isinstance(hook, str) else hook
