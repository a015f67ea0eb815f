"""What a tensor says of itself when the program runs."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.ir import extension
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import Call, PrimValue
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

from .infer import check_count, dims_of, fail
from .inspect_functions import read_by_function
from .operator import Expr, define, operator


def _prim(kind: str, of: Any = None) -> Any:
    def infer(call: Any, bb: Any) -> Any:
        check_count(call, 1)
        info = call.args[0].struct_info
        if not isinstance(info, TensorStructInfo):
            raise fail(call, f"requires a Tensor, got {info}")
        value = None if of is None else of(info)
        return PrimStructInfo(kind) if value is None else PrimStructInfo(value=value)

    return infer


def _imm(kind: str, value: Any) -> Any:
    return tir.IntImm(kind, value)


def _code(info: Any) -> Any:
    return None if info.dtype.is_void else _imm("uint8", info.dtype.type_code)


def _bits(info: Any) -> Any:
    return None if info.dtype.is_void else _imm("uint8", info.dtype.bits)


def _lanes(info: Any) -> Any:
    return None if info.dtype.is_void else _imm("uint16", info.dtype.lanes)


def _ndim(info: Any) -> Any:
    return None if info.ndim < 0 else _imm("int32", info.ndim)


def _define(name: str, infer: Any) -> Op:
    return define(
        f"relax.inspect.{name}", infer,
        FLegalize=read_by_function(name), RequiresArgumentShapes=False,
    )  # fmt: skip


tensor_dtype_code = _define("tensor_dtype_code", _prim("uint8", _code))
tensor_dtype_bits = _define("tensor_dtype_bits", _prim("uint8", _bits))
tensor_dtype_lanes = _define("tensor_dtype_lanes", _prim("uint16", _lanes))
tensor_ndim = _define("tensor_ndim", _prim("int32", _ndim))


def _axis(call: Any, dims_wanted: bool) -> tuple[Any, Any]:
    check_count(call, 2)
    info, where = [a.struct_info for a in call.args]
    if not isinstance(info, TensorStructInfo):
        raise fail(call, f"requires a Tensor, got {info}")
    if not isinstance(where, PrimStructInfo) or not where.dtype.is_int:
        raise fail(call, f"requires an integer as axis, got {where}")
    axis = getattr(where.value, "value", None)
    if axis is not None:
        if axis < 0:
            raise fail(call, f"requires an axis that is not negative, got {axis}")
        if 0 <= info.ndim <= axis:
            raise fail(call, f"requires an axis below {info.ndim}, got {axis}")
    return info, axis


def _infer_shape_i(call: Any, bb: Any) -> Any:
    info, axis = _axis(call, True)
    dims = dims_of(info)
    if dims is not None and axis is not None:
        return PrimStructInfo(value=dims[axis])
    return PrimStructInfo("int64")


def _infer_stride_i(call: Any, bb: Any) -> Any:
    _axis(call, False)
    return PrimStructInfo("int64")


tensor_shape_i = _define("tensor_shape_i", _infer_shape_i)
tensor_stride_i = _define("tensor_stride_i", _infer_stride_i)
tensor_byte_offset = _define("tensor_byte_offset", _prim("uint64"))
tensor_elem_offset = _define("tensor_elem_offset", _prim("uint64"))


class _DTypeProxy:
    """The data type of a tensor: ``x.dtype.bits`` is read at run time."""

    def __init__(self, tensor: RelayExpr) -> None:
        self.tensor = tensor

    @property
    def type_code(self) -> Call:
        """DLPack's code of the element type."""
        return Call(tensor_dtype_code, [self.tensor])

    @property
    def bits(self) -> Call:
        """The bits of an element."""
        return Call(tensor_dtype_bits, [self.tensor])

    @property
    def lanes(self) -> Call:
        """The lanes of an element."""
        return Call(tensor_dtype_lanes, [self.tensor])


class _AxisProxy:
    """The dimensions or strides of a tensor: ``x.shape[0]`` is read at run time."""

    def __init__(self, tensor: RelayExpr, op: Any, what: str) -> None:
        self.tensor, self.op, self.what = tensor, op, what

    def __getitem__(self, axis: Any) -> Call:
        if not isinstance(axis, (int, tir.IntImm, RelayExpr, tir.PrimExpr)):
            raise TypeError(f"{self.what} requires an integer, got {axis!r}")
        if isinstance(axis, (int, tir.IntImm)):
            axis = PrimValue(tir.IntImm("int64", int(axis)))
        elif isinstance(axis, tir.PrimExpr):
            axis = PrimValue(axis)
        return Call(self.op, [self.tensor, axis])


_PROXIES: dict[str, Any] = {
    "dtype": _DTypeProxy,
    "ndim": lambda tensor: Call(tensor_ndim, [tensor]),
    "shape": lambda tensor: _AxisProxy(tensor, tensor_shape_i, "shape"),
    "strides": lambda tensor: _AxisProxy(tensor, tensor_stride_i, "strides"),
    "byte_offset": lambda tensor: Call(tensor_byte_offset, [tensor]),
    "elem_offset": lambda tensor: Call(tensor_elem_offset, [tensor]),
}


def _inspect(tensor: RelayExpr, name: str) -> Any:
    info = tensor.struct_info_
    if info is not None and not isinstance(info, TensorStructInfo):
        raise TypeError(f"{name} requires a Tensor, got {tensor} which is {info}")
    return _PROXIES[name](tensor)


extension.relax_inspect.provide(_inspect)

__all__ = ["Expr", "operator"]
