"""Names of releases 0.6 and 0.7, each under its spelling of today.

tvm.placeholder((4,))  ->  tvm.te.placeholder, with one DeprecationWarning that says so

``tvm`` asks here for names that it does not have. Names whose meaning changed with their place have
functions of their own, in :mod:`tvm.compat.api`; old modules are listed in ``MODULES``.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from tvm.support.deprecation import warn_renamed

TE_NAMES = """
    abs acos acosh asin asinh atan atanh ceil comm_reducer compute cos cosh create_schedule
    decl_tensor_intrin div erf exp extern floor floordiv floormod fmod if_then_else indexdiv indexmod
    isfinite isnan log log10 log2 max max_value min min_value nearbyint placeholder popcount
    power reduce_axis round rsqrt scan sigmoid sin sinh size_var sqrt sum tag_scope tan tanh
    thread_axis trace trunc truncdiv truncmod var
"""

TIR_NAMES = """
    all any call_extern call_llvm_intrin call_packed call_pure_extern decl_buffer likely
"""

API_NAMES = """
    BuildConfig build_config call_intrin call_pure_intrin current_build_config register_intrin_rule
"""

# old name in ``tvm`` -> its spelling today
NAMES: dict[str, str] = {
    **{name: f"tvm.te.{name}" for name in TE_NAMES.split()},
    **{name: f"tvm.tir.{name}" for name in TIR_NAMES.split()},
    **{name: f"tvm.compat.api.{name}" for name in API_NAMES.split()},
    "Range": "tvm.ir.Range",
    "TVMContext": "tvm.runtime.Device",
    "TVMType": "tvm.DataType",
    "context": "tvm.device",
    "load_json": "tvm.ir.load_json",
    "save_json": "tvm.ir.save_json",
    "make_node": "tvm.ir.make_node",
    "register_node": "tvm.register_object",
    "select": "tvm.tir.Select",
}

# old module in ``tvm`` -> its place today
MODULES: dict[str, str] = {
    "api": "tvm.compat.api",
    "attrs": "tvm.ir.attrs",
    "buffer": "tvm.tir.buffer",
    "build_module": "tvm.compat.build_module",
    "codegen": "tvm.target.codegen",
    "container": "tvm.runtime.container",
    "datatype": "tvm.target.datatype",
    "expr": "tvm.compat.expr",
    "generic": "tvm.tir.generic",
    "hybrid": "tvm.te.hybrid",
    "intrin": "tvm.compat.intrin",
    "ir_builder": "tvm.tir.ir_builder",
    "ir_pass": "tvm.compat.ir_pass",
    "make": "tvm.compat.make",
    "module": "tvm.compat.module",
    "ndarray": "tvm.runtime.ndarray",
    "object": "tvm.runtime.object",
    "parser": "tvm.relay.parser",
    "schedule": "tvm.te.schedule",
    "stmt": "tvm.compat.expr",
    "tag": "tvm.te.tag",
    "tensor": "tvm.te.tensor",
    "tensor_intrin": "tvm.te.tensor_intrin",
}

# what a module of this package stands for, in the words of a warning
MEANINGS = {
    "tvm.compat.api": "tvm, tvm.te and tvm.tir",
    "tvm.compat.build_module": "tvm.driver and tvm.transform.PassContext",
    "tvm.compat.expr": "tvm.tir",
    "tvm.compat.intrin": "tvm.tir and tvm.ir.register_intrin_lowering",
    "tvm.compat.ir_pass": "tvm.tir.transform, tvm.tir.stmt_functor and tvm.arith",
    "tvm.compat.make": "the constructors of tvm.tir",
    "tvm.compat.module": "tvm.runtime",
    "tvm.compat.api.BuildConfig": "tvm.transform.PassContext(config={...})",
    "tvm.compat.api.build_config": "tvm.transform.PassContext(config={...})",
    "tvm.compat.api.call_intrin": 'tvm.tir.call_intrin(dtype, "tir.<name>", ...)',
    "tvm.compat.api.call_pure_intrin": 'tvm.tir.call_intrin(dtype, "tir.<name>", ...)',
    "tvm.compat.api.current_build_config": "tvm.transform.PassContext.current()",
    "tvm.compat.api.register_intrin_rule": "tvm.ir.register_intrin_lowering",
}


def find_old_name(name: str) -> Any:
    """What ``tvm.<name>`` was in older releases, with a warning; KeyError if it was nothing."""
    if name in MODULES:
        place = MODULES[name]
        found: Any = importlib.import_module(place)
    else:
        place = NAMES[name]
        found = resolve(place)
    warn_renamed(f"tvm.{name}", MEANINGS.get(place, place), stacklevel=4)
    return found


def resolve(path: str) -> Any:
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def first_with(name: str, modules: tuple[ModuleType, ...], old: str) -> Any:
    """The name in the first module that has it."""
    for module in modules:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {old!r} has no attribute {name!r}")
