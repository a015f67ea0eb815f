"""Everything that ``T`` has, apart from what reads scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tvm.support.llvm_intrinsics import llvm_lookup_intrinsic_id
from tvm.tir import builtin, expr, gpu_op, math_op, op, stmt

from . import blocks, buffers, functions, loops, scopes, values

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
CONSTRUCTS: dict[Any, tuple[str, ...]] = {
    functions: ("arg", "func_attr", "func_name", "func_ret", "prim_func"),
    buffers: (
        "alloc_buffer", "allocate", "allocate_const", "buffer_store", "decl_buffer",
        "match_buffer", "prefetch", "realize",
    ),
    blocks: ("axis", "block", "block_attr", "init", "reads", "where", "writes"),
    loops: (
        "Else", "If", "Then", "While", "grid", "parallel", "serial", "thread_binding", "unroll",
        "vectorized",
    ),
    scopes: ("Assert", "LetStmt", "attr", "env_thread", "evaluate", "launch_thread", "let"),
}  # fmt: skip
_PACKED_CALLS = ("call_packed", "call_cpacked", "call_packed_lowered", "call_cpacked_lowered")
VALUES = (
    "Range", "buffer_var", "comm_reducer", "handle", "index_map", "iter_var", "meta_var", "ptr",
    "target",
    "var",
)  # fmt: skip


def tir_names() -> dict[str, Any]:
    """The names of ``T``, apart from the decorators."""
    names: dict[str, Any] = {name: getattr(expr, name) for name in NODES}
    calls = {name: getattr(math_op, name) for name in math_op.__all__}
    calls.update({name: getattr(builtin, name) for name in builtin.__all__})
    calls.update(gpu_op.FUNCTIONS)
    calls.update({name: getattr(op, name) for name in FUNCTIONS})
    names.update({name: _with_stated_dtype(call) for name, call in calls.items()})
    for module, words in CONSTRUCTS.items():
        names.update({name: getattr(module, name) for name in words})
    names.update({name: getattr(values, name) for name in VALUES})
    names.update(values.scalar_types())
    names.update(
        Buffer=buffers.BufferType(),
        Ptr=values.PtrType(),
        buffer_decl=buffers.buffer,
        buffer=buffers.buffer,
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
        llvm_lookup_intrinsic_id=llvm_lookup_intrinsic_id,
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
    named = _parameters(function)
    if "dtype" in named and named[0] != "dtype":
        return function
    comes_first = named[:1] == ("dtype",)

    @wraps(function)
    def call(*args: Any, dtype: Any = None, **keywords: Any) -> Any:
        if comes_first and dtype is not None:
            return function(dtype, *args, **keywords)
        return function(*args, **keywords)

    return call


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of those that can be said by name."""
    signature = getattr(function, "__signature__", None)
    if signature is not None:
        return tuple(signature.parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def op_cast(dtype: Any, value: Any) -> Any:
    """A conversion, written with the dtype first; constants are not folded."""
    operand = expr.as_expr(value)
    return expr.Cast(values._dtype(dtype), operand)
