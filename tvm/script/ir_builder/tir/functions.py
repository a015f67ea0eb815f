"""Functions: parameters, attributes, result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.type import PrimType, Type
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var

from ..base import IRBuilder
from .frame import PrimFuncFrame, prim_func_frame
from .values import DTypeCall


def prim_func(is_private: bool = False) -> PrimFuncFrame:
    """Start a function; a private one has no global symbol."""
    return PrimFuncFrame(is_private)


def arg(name: str, obj: Var | Buffer) -> Any:
    """Add a parameter: a variable, or a buffer that its handle is bound to."""
    frame = prim_func_frame("T.arg")
    if isinstance(obj, Buffer):
        handle = Var(f"{name}_handle", "handle")
        frame.args.append(handle)
        frame.buffer_map[handle] = IRBuilder.name(name, obj)
        return obj
    if not isinstance(obj, Var):
        raise TypeError(f"T.arg requires a variable or a buffer, got {type(obj).__name__}")
    frame.args.append(IRBuilder.name(name, obj))
    return obj


def func_name(name: str) -> None:
    """The function's name."""
    frame = prim_func_frame("T.func_name")
    if frame.name is not None:
        raise ValueError(f"the function has the name {frame.name} already")
    frame.name = name


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    frame = prim_func_frame("T.func_attr")
    if frame.attrs:
        raise ValueError(f"the function has attributes already: {frame.attrs}")
    if frame.is_private and "global_symbol" in attrs:
        raise ValueError(f"a private function has no global_symbol, got {attrs['global_symbol']!r}")
    frame.attrs.update(attrs)


def func_ret(ret_type: Any) -> Type:
    """The type of the function's result."""
    frame = prim_func_frame("T.func_ret")
    if frame.ret_type is not None:
        raise ValueError(f"the function has the result type {frame.ret_type} already")
    kind = ret_type() if callable(ret_type) and not isinstance(ret_type, Type) else ret_type
    if isinstance(ret_type, DTypeCall):
        kind = PrimType(ret_type.dtype)
    elif isinstance(kind, Var):
        kind = PrimType(kind.dtype) if kind.type_annotation is None else kind.type_annotation
    if not isinstance(kind, Type):
        raise TypeError(f"T.func_ret requires a type such as T.int32, got {type(kind).__name__}")
    frame.ret_type = kind
    return kind
