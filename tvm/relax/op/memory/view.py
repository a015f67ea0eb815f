"""Views: other shapes and data types over the same memory."""

from __future__ import annotations

from typing import Any

from tvm._ffi import register_func
from tvm.arith import Analyzer
from tvm.ir.env_func import EnvFunc
from tvm.relax.base import update_struct_info
from tvm.relax.expr import Call, DataTypeImm, ExternFunc, PrimValue, ShapeExpr, Tuple
from tvm.relax.op.base import shape_of
from tvm.relax.op.infer import check_count, dims_of, fail, product, simplified, tensor
from tvm.relax.op.operator import Expr, Shape, operator
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.support.dtype import dtype as as_dtype


def _is_absent(info: Any) -> bool:
    return isinstance(info, TupleStructInfo) and not info.fields


def _dtype_of(bb: Any, arg: Any) -> Any:
    """The data type that an argument says, looking through variables; None if it is unknown."""
    while arg is not None and not isinstance(arg, DataTypeImm):
        arg = bb.lookup_binding(arg) if hasattr(arg, "vid") else None
    return None if arg is None else arg.value


def _infer(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    info = tensor(call, 0)
    shape_info, dtype_info, offset_info = [a.struct_info for a in call.args[1:]]
    shape: Any = info.shape
    ndim = info.ndim
    if not _is_absent(shape_info):
        if not isinstance(shape_info, ShapeStructInfo):
            raise fail(call, f"requires a Shape, got {shape_info}")
        shape, ndim = call.args[1], shape_info.ndim
    kind = info.dtype
    if not _is_absent(dtype_info):
        if not isinstance(dtype_info, ObjectStructInfo):
            raise fail(call, f"requires a data type, got {dtype_info}")
        kind = _dtype_of(bb, call.args[2]) or as_dtype("void")
    offset = None
    if _is_absent(offset_info):
        offset = 0
    elif not isinstance(offset_info, PrimStructInfo) or offset_info.dtype != "int64":
        raise fail(call, f"requires relative_byte_offset of int64, got {offset_info}")
    elif offset_info.value is not None:
        offset = getattr(offset_info.value, "value", None)
    _check_bytes(call, info, shape, kind, offset)
    if shape is None:
        return TensorStructInfo(None, kind, info.vdevice, ndim)
    return TensorStructInfo(shape, kind, info.vdevice)


def _check_bytes(call: Any, info: Any, shape: Any, kind: Any, offset: int | None) -> None:
    """Reject a view that is known to be larger than the tensor."""
    if offset is None:
        return
    is_same = kind == info.dtype and shape is info.shape
    if is_same and offset:
        raise fail(call, f"requires a view that is not larger, got all of {info} from {offset} on")
    if is_same:
        return
    units = (1, 1)  # elements of a data type that stays tell, whatever it is
    if not kind.is_void and not info.dtype.is_void:
        units = ((info.dtype.bits + 7) // 8, (kind.bits + 7) // 8)
    elif kind != info.dtype or offset:
        return
    values = shape.values if isinstance(shape, ShapeExpr) else None
    if values is None and isinstance(
        known := getattr(shape, "struct_info_", None), ShapeStructInfo
    ):
        values = known.values
    old = info.dimensions
    if shape is info.shape:  # of one number of elements, whatever it is
        values = old = ()
    if values is None or old is None:
        return
    before, after = product(old) * units[0], product(values) * units[1] + offset
    if Analyzer().can_prove(simplified(after) > simplified(before)):
        raise fail(
            call, f"requires a view of at most {simplified(before)} bytes, got {simplified(after)}"
        )


def _absent(value: Any) -> Any:
    return Tuple([]) if value is None else value


def _same_view(bb: Any, call: Call) -> Any:
    """Views are no loop programs; a call of the runtime makes them."""
    return call


def _lower(bb: Any, call: Call) -> Any:
    """The call of the runtime: every part of the view is said."""
    data, shape, kind, offset = call.args
    info = data.struct_info
    if _is_absent(shape.struct_info):
        if info.shape is None:
            shape = shape_of(data)
        else:
            shape = info.shape
    if _is_absent(kind.struct_info):
        if info.dtype.is_void:
            raise fail(call, f"requires a tensor of known dtype, got {info}")
        kind = DataTypeImm(info.dtype)
    if _is_absent(offset.struct_info):
        offset = PrimValue(0)
    function = ExternFunc("runtime.TVMArrayCreateView", FUNC)
    made = Call(function, [data, shape, kind, offset])
    update_struct_info(made, call.struct_info)
    return made


@register_func("tvm.relax.struct_info.infer_view_sinfo", override=True)
def _infer_view(call: Any, bb: Any) -> Any:
    return _infer(call, bb)


_DERIVE = EnvFunc.get("tvm.relax.struct_info.infer_view_sinfo")
FUNC = FuncStructInfo.opaque_func(derive_func=_DERIVE, purity=True)


@operator("relax.memory.view", infer=_infer, FLegalize=_same_view, FLowerBuiltin=_lower)
def view(
    data: Expr, shape: Shape = None, dtype: Expr = None, relative_byte_offset: Expr = None
) -> Expr:
    """Another shape or data type over the memory of a tensor.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    shape : tuple of PrimExpr, or Expr, optional
        By default that of the tensor.
    dtype : str or Expr, optional
        By default that of the tensor.
    relative_byte_offset : int or Expr, optional
        Where the view begins.
    """
    kind = DataTypeImm(dtype) if isinstance(dtype, str) else dtype
    offset = (
        PrimValue(relative_byte_offset)
        if isinstance(relative_byte_offset, int)
        else relative_byte_offset
    )
    return {
        "shape": _absent(ShapeExpr(shape) if isinstance(shape, (list, tuple)) else shape),
        "dtype": _absent(kind),
        "relative_byte_offset": _absent(offset),
    }


def _infer_same(call: Any, bb: Any) -> Any:
    check_count(call, 1)
    return tensor(call, 0)


def _lower_offset(bb: Any, call: Call) -> Any:
    function = ExternFunc("vm.builtin.ensure_zero_offset")
    made = Call(function, call.args, None, [call.struct_info])
    update_struct_info(made, call.struct_info)
    return made


@operator("relax.memory.ensure_zero_offset", infer=_infer_same, FLowerBuiltin=_lower_offset)
def ensure_zero_offset(data: Expr) -> Expr:
    """A tensor that begins where its memory does.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


__all__ = ["dims_of", "ensure_zero_offset", "view"]
