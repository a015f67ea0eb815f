"""Everything that ``T`` and ``I`` are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

from tvm.error import suggest
from tvm.ir.expr import GlobalVar
from tvm.tir import builtin, expr, gpu_op, math_op, op, stmt

from . import constructs, values
from .functions import module_attrs

# constructors of nodes that are written as they are
NODES = (
    "Add", "And", "Any", "Call", "CommReducer", "Div", "EQ", "FloatImm", "FloorDiv", "FloorMod",
    "GE", "GT", "IntImm", "IterVar", "LE", "LT", "Max", "Min", "Mod", "Mul", "NE", "Not", "Or",
    "Reduce", "Select", "Shuffle", "SizeVar", "StringImm", "Sub", "Var",
)  # fmt: skip
FUNCTIONS = (
    "all", "any", "ceildiv", "div", "floordiv", "floormod", "indexdiv", "indexmod", "truncdiv",
    "truncmod",
)  # fmt: skip
CONSTRUCTS = (
    "Assert", "Else", "If", "LetStmt", "Then", "While", "alloc_buffer", "allocate",
    "allocate_const", "attr", "axis", "block", "block_attr", "buffer_store", "decl_buffer",
    "env_thread", "evaluate", "func_attr", "grid", "init", "launch_thread", "let",
    "match_buffer", "parallel", "prefetch", "reads", "realize", "serial", "thread_binding",
    "unroll", "vectorized", "where", "writes",
)  # fmt: skip
_PACKED_CALLS = ("call_packed", "call_cpacked", "call_packed_lowered", "call_cpacked_lowered")
VALUES = (
    "Range", "buffer_var", "comm_reducer", "handle", "index_map", "iter_var", "meta_var", "ptr",
    "target",
    "var",
)  # fmt: skip


def tir_names() -> dict[str, Any]:
    """The names of ``T``, apart from the decorators."""
    names: dict[str, Any] = {name: getattr(expr, name) for name in NODES}
    functions = {name: getattr(math_op, name) for name in math_op.__all__}
    functions.update({name: getattr(builtin, name) for name in builtin.__all__})
    functions.update(gpu_op.FUNCTIONS)
    functions.update({name: getattr(op, name) for name in FUNCTIONS})
    names.update({name: _with_stated_dtype(call) for name, call in functions.items()})
    names.update({name: getattr(constructs, name) for name in CONSTRUCTS})
    names.update({name: getattr(values, name) for name in VALUES})
    names.update(values.scalar_types())
    names.update(
        Buffer=constructs.BufferType(),
        buffer_decl=constructs.buffer,
        buffer=constructs.buffer,
        Let=values.let_expr,
        Cast=op_cast,
        cast=_cast,
        Ramp=expr.Ramp,
        ramp=expr.Ramp,
        Broadcast=expr.Broadcast,
        broadcast=expr.Broadcast,
        min=op.minimum,
        max=op.maximum,
        boolean=names["bool"],
        void=values.DTypeCall(builtin.VOID),
        BufferLoad=expr.BufferLoad,
        BufferRegion=stmt.BufferRegion,
        fabs=names["abs"],
    )
    # as releases before 0.12 spell them
    names.update({f"tvm_{name}": names[name] for name in _PACKED_CALLS})
    return names


def _cast(value: Any, dtype: Any) -> Any:
    """``T.cast(x, "int16")``; `T.Cast` takes the data type first."""
    if isinstance(value, str):
        value, dtype = dtype, value
    return op_cast(dtype, value)


def _with_stated_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """``T.call_extern("f", x, dtype="int32")`` and ``T.exp(x, dtype="float32")``.

    The data type may be said last; where it is derived it may be said too.
    """
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "dtype" in named and named[0] != "dtype":
        return function
    comes_first = named[:1] == ("dtype",)

    @wraps(function)
    def call(*args: Any, dtype: Any = None, **keywords: Any) -> Any:
        if comes_first and dtype is not None:
            return function(dtype, *args, **keywords)
        return function(*args, **keywords)

    return call


def op_cast(dtype: Any, value: Any) -> Any:
    """A conversion, written with the dtype first; constants are not folded."""
    operand = expr.as_expr(value)
    return expr.Cast(values._dtype(dtype), operand)


def default_names() -> dict[str, Any]:
    """What a program in a string may use without importing it."""
    T = _Namespace(**tir_names())
    ir = SimpleNamespace(module_attrs=module_attrs, GlobalVar=GlobalVar)
    return {"T": T, "tir": T, "I": ir, "ir": ir}


class _Namespace(SimpleNamespace):
    """Knows vector types too."""

    def __getattr__(self, name: str) -> Any:
        found = values.vector_type(name)
        if found is None:
            raise AttributeError(f"T has no name {name!r}; {suggest(name, vars(self))}")
        return found
