"""``tvm.api`` of old: the names that ``tvm`` itself had, and those that changed more than their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import te, tir
from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.instrument import DumpIR
from tvm.ir.op import register_intrin_lowering
from tvm.ir.transform import PassContext

from . import first_with

# option of a build configuration -> key of the context, and field of the pass's record
CONFIG_KEYS: dict[str, tuple[str, str | None]] = {
    "auto_unroll_max_step": ("tir.UnrollLoop", "auto_max_step"),
    "auto_unroll_max_depth": ("tir.UnrollLoop", "auto_max_depth"),
    "auto_unroll_max_extent": ("tir.UnrollLoop", "auto_max_extent"),
    "unroll_explicit": ("tir.UnrollLoop", "explicit_unroll"),
    "double_buffer_split_loop": ("tir.InjectDoubleBuffer", "split_loop"),
    "partition_const_loop": ("tir.LoopPartition", "partition_const_loop"),
    "add_lower_pass": ("tir.add_lower_pass", None),
    "detect_global_barrier": ("tir.detect_global_barrier", None),
    "instrument_bound_checkers": ("tir.instrument_bound_checkers", None),
    "disable_vectorize": ("tir.disable_vectorize", None),
    "disable_assert": ("tir.disable_assert", None),
    "restricted_func": ("tir.noalias", None),
    "data_alignment": ("te.data_alignment", None),
    "offset_factor": ("te.offset_factor", None),
}
# options without an equivalent, at the only value that means nothing
FIXED = {"disable_select_rewriting": False}


def build_config(**kwargs: Any) -> PassContext:
    """The context that the options of an old build configuration ask for.

    Parameters
    ----------
    kwargs
        ``auto_unroll_max_step=16``, ``unroll_explicit=False``, ``add_lower_pass=[(1, f)]``, ...
    """
    config: dict[str, Any] = {}
    instruments = [DumpIR(".")] if kwargs.pop("dump_pass_ir", False) else []
    for name, value in kwargs.items():
        if name in FIXED:
            if value != FIXED[name]:
                raise TVMError(f"build_config takes only {name}={FIXED[name]}, got {value}")
            continue
        if name not in CONFIG_KEYS:
            raise TVMError(f"build_config has no option {name!r}, there are {sorted(CONFIG_KEYS)}")
        key, field = CONFIG_KEYS[name]
        if field is None:
            config[key] = value
        else:
            config.setdefault(key, {})[field] = value
    return PassContext(config=config, instruments=instruments)


BuildConfig = build_config


def current_build_config() -> PassContext:
    """The context that holds here."""
    return PassContext.current()


def call_intrin(dtype: Any, func_name: str, *args: Any) -> PrimExpr:
    """Call an intrinsic by its bare name, such as ``"exp"``."""
    name = func_name if func_name.startswith("tir.") else f"tir.{func_name}"
    return tir.call_intrin(dtype, name, *args)


call_pure_intrin = call_intrin


def register_intrin_rule(
    target: str, intrin: str, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Tell how an intrinsic is lowered for a kind of target."""
    level = 11 if override else 10
    name = intrin if intrin.startswith("tir.") else f"tir.{intrin}"
    return register_intrin_lowering(name, target=target, f=f, level=level)


def __getattr__(name: str) -> Any:
    return first_with(name, (te, tir, tvm), "tvm.api")
