"""What ``R`` has for programs that are being built."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from tvm.ir.attrs import DictAttrs, make_node
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.relax import expr as rx
from tvm.relax import op as relax_op
from tvm.relax.base import StructInfo
from tvm.relax.expr import ExternFunc, ShapeExpr, TupleGetItem, as_expr
from tvm.relax.op.base import call_tir
from tvm.relax.op.base import invoke_closure as make_invoke
from tvm.relax.struct_info import FuncStructInfo, as_prim_value
from tvm.relax.te_call import gen_call_tir_inputs
from tvm.tir.expr import as_expr as as_number

from ..base import IRBuilder
from ..ir.ir import decl_function, def_function
from . import frame as f

py_print = builtins.print  # `print` is an operator here

# ---- functions


def function(is_pure: bool = True, is_private: bool = False) -> f.FunctionFrame:
    """Start a function."""
    return f.FunctionFrame(is_pure, is_private)


def arg(name: builtins.str, struct_info: StructInfo) -> rx.Var:
    """Add a parameter."""
    var = rx.Var(name, struct_info)
    frame = f.function_frame()
    frame.params.append(var)
    frame.block_builder._define(var.struct_info_)
    return var


def func_name(name: builtins.str) -> None:
    """Name the function."""
    frame = f.function_frame()
    if frame.name is not None:
        raise ValueError(f"Duplicate function name, previous one is {frame.name}")
    frame.name = name


def func_attr(attrs: Mapping[builtins.str, Any]) -> None:
    """Attributes of the function."""
    frame = f.function_frame()
    for key in attrs:
        if key == "global_symbol" and frame.is_private:
            raise ValueError(
                "A private function may not have a global symbol: Specifying a global symbol "
                f"explicitly for a private function {frame.name} is not allowed"
            )
    frame.attrs.update(attrs)


def func_ret_struct_info(ret_sinfo: StructInfo) -> None:
    """The struct info of the function's result."""
    frame = f.function_frame()
    if frame.ret_struct_info is not None:
        raise ValueError(f"Duplicate return struct info, previous one is {frame.ret_struct_info}")
    frame.ret_struct_info = rx.as_struct_info(ret_sinfo, frame)


def func_ret_value(value: Any) -> None:
    """The result of the function."""
    frame = f.function_frame()
    if frame.output is not None:
        raise ValueError(
            "Relax functions do not support multiple return statement, or a return in a branch"
        )
    frame.output = as_expr(value)
    frame.close_block()


# ---- blocks and bindings


def dataflow() -> f.BlockFrame:
    """Start a dataflow block."""
    return f.BlockFrame(is_dataflow=True)


def output(*vars: rx.Var) -> None:
    """The variables of a dataflow block that are visible behind it."""
    frame = IRBuilder.current().last_frame(f.BlockFrame)
    if frame is None or not frame.is_dataflow:
        raise ValueError("R.output should appear inside a dataflow block")
    for var in vars:
        if not any(var is known for known in frame.emitted_vars):
            raise ValueError(
                f"An output variable is not emitted by this dataflow block: {var.name_hint}"
            )
    frame.output_vars.extend(vars)
    frame.block_ended = True


def emit(value: Any, annotate_struct_info: StructInfo | None = None) -> rx.Var:
    """Bind an expression to a new variable."""
    return f.emit(as_expr(value), annotate_struct_info)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> rx.Call:
    """A call of the loop program that a function of tensor expressions makes."""
    name = kwargs.pop("primfunc_name_hint", None) or func.__name__
    prim, call_args, info, numbers = gen_call_tir_inputs(func, *args, **kwargs)
    gvar = decl_function(name)
    def_function(name, prim)
    return call_tir(gvar, call_args, info, numbers)


def emit_match_cast(value: Any, struct_info: StructInfo) -> rx.Var:
    """Bind a value that is checked at run time."""
    frame = f.block_frame()
    var = frame.builder().match_cast(as_expr(value), struct_info)
    frame.emitted_vars.append(var)
    return var


def emit_var_binding(binding: rx.VarBinding) -> rx.Var:
    """Add a binding."""
    frame = f.block_frame()
    frame.builder().emit_normalized(binding)
    frame.emitted_vars.append(binding.var)
    return binding.var


def emit_with_sinfo(op: builtins.str, args: Any, sinfo_args: Any = None) -> rx.Call:
    """A call of an operator with struct info as arguments."""
    infos = sinfo_args if isinstance(sinfo_args, (list, builtins.tuple)) else [sinfo_args]
    return rx.Call(relax_op.get(op), [as_expr(a) for a in args], None, list(infos))


# ---- branches


def If(condition: Any) -> f.IfFrame:
    """Start a choice."""
    return f.IfFrame(as_expr(condition))


def Then() -> f.ThenFrame:
    """Start what is done where the condition holds."""
    return f.ThenFrame()


def Else() -> f.ElseFrame:
    """Start what is done elsewhere."""
    return f.ElseFrame()


# ---- expressions


def call_packed(func: builtins.str, *args: Any, sinfo_args: Any = None, **kwargs: Any) -> rx.Call:
    """Call a packed function.

    Parameters
    ----------
    func : str or Expr
        Its global name.
    args : Expr
    sinfo_args : StructInfo or list of StructInfo, optional
        Of the result, by default any object.
    kwargs
        Attributes of the call.
    """
    callee = ExternFunc(func) if isinstance(func, builtins.str) else func
    infos = list(sinfo_args) if isinstance(sinfo_args, (builtins.tuple, list)) else [sinfo_args]
    infos = [
        info for info in (rx.as_struct_info(i, call_packed) for i in infos) if info is not None
    ]
    attrs = None
    if kwargs:
        key = kwargs.pop("attrs_type_key", None)
        attrs = make_node(key, **kwargs) if key else DictAttrs(kwargs)
    return rx.Call(callee, [as_expr(a) for a in args], attrs, infos)


def invoke_closure(closure: Any, args: Any, sinfo_args: Any) -> rx.Call:
    """Call a closure."""
    return make_invoke(closure, args, sinfo_args)


def tuple(*fields: Any) -> rx.Tuple:
    """A tuple."""
    return rx.Tuple(
        fields[0] if len(fields) == 1 and isinstance(fields[0], (list, builtins.tuple)) else fields
    )


def shape(value: Any) -> ShapeExpr:
    """A shape."""
    return ShapeExpr(value)


def prim_value(value: Any) -> rx.PrimValue:
    """A number."""
    return rx.PrimValue(
        as_prim_value(value) if not hasattr(value, "asobject") else as_number(value)
    )


def str(value: Any) -> rx.StringImm:
    """A text."""
    return rx.StringImm(value)


def dtype(value: Any) -> rx.DataTypeImm:
    """A data type."""
    return rx.DataTypeImm(value)


def const(value: Any, dtype: Any = None) -> rx.Constant:
    """A constant."""
    return rx.const(value, dtype)


__all__ = [
    "Else", "ExternFunc", "FuncStructInfo", "GlobalVar", "If", "PrimExpr", "ShapeExpr", "Then",
    "TupleGetItem", "arg", "call_packed", "const", "dataflow", "dtype", "emit", "emit_match_cast",
    "emit_te", "emit_var_binding", "emit_with_sinfo", "func_attr", "func_name",
    "func_ret_struct_info", "func_ret_value", "function", "invoke_closure", "output", "prim_value",
    "shape", "str", "tuple",
]  # fmt: skip
