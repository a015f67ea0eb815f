"""What a loop program takes, as struct info: tensors for its buffers."""

from __future__ import annotations

from tvm.ir import extension
from tvm.ir.type import PrimType, TupleType
from tvm.tir import PrimFunc
from tvm.tir.analysis import is_pure_function
from tvm.tir.expr import IntImm

from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


def prim_func_struct_info(func: PrimFunc) -> FuncStructInfo:
    """The struct info of a loop program."""
    params: list[StructInfo] = []
    for param in func.params:
        if (buffer := func.buffer_map.get(param)) is not None:
            is_wide = all([isinstance(d, IntImm) or d.dtype == "int64" for d in buffer.shape])
            if is_wide:
                params.append(TensorStructInfo(buffer.shape, buffer.dtype))
            else:
                params.append(TensorStructInfo(None, buffer.dtype, ndim=len(buffer.shape)))
        elif param.dtype.is_handle:
            params.append(ObjectStructInfo())
        else:
            params.append(PrimStructInfo(value=param))
    kind = func.ret_type
    if isinstance(kind, PrimType):
        is_void = kind.dtype.is_void or kind.dtype.is_handle
        ret: StructInfo = TupleStructInfo([]) if is_void else PrimStructInfo(kind.dtype)
    elif kind is None or (isinstance(kind, TupleType) and not kind.fields):
        ret = TupleStructInfo([])
    else:
        ret = ObjectStructInfo()
    return FuncStructInfo(params, ret, is_pure_function(func))


extension.struct_info_of.provide(PrimFunc, prim_func_struct_info)
