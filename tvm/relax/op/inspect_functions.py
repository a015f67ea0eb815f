"""Loop programs that read a field of a tensor's descriptor, for ``relax.inspect``."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tir
from tvm.ir.type import PrimType
from tvm.relax.expr import Call
from tvm.script import tir as T
from tvm.support.dtype import dtype as as_dtype

# fields of DLTensor, by the numbers that tvm_struct_get knows them by
_NDIM, _TYPE_CODE, _TYPE_BITS, _TYPE_LANES, _BYTE_OFFSET = range(4, 9)

Legalize = Callable[[Any, Call], Any]


def _reader(field: int, dtype: str) -> tir.PrimFunc:
    """A function that returns one field."""
    tensor = tir.Var("dlpack_handle", "handle")
    value = tir.tvm_struct_get(tensor, 0, field, dtype)
    body = tir.Evaluate(tir.ret(value))
    attrs = {"tir.is_host_func": True, "tir.is_scheduled": True}
    return tir.PrimFunc([tensor], body, PrimType(as_dtype(dtype))).with_attrs(attrs)


def _extent_reader() -> Any:
    @T.prim_func(private=True)
    def _get_tensor_shape_i(dlpack_handle: T.handle, axis: T.int64) -> T.int64:
        T.func_attr({"tir.is_host_func": True, "tir.is_scheduled": True})
        ndim: T.int32 = T.tvm_struct_get(dlpack_handle, 0, 4, dtype="int32")
        assert T.int64(0) <= axis, "the axis of a dimension must not be negative"
        assert axis < T.Cast("int64", ndim), "the axis of a dimension must be below the rank"
        shape_ptr: T.handle("int64") = T.tvm_struct_get(dlpack_handle, 0, 2, dtype="handle")
        shape = T.decl_buffer(ndim, "int64", data=shape_ptr)
        extent: T.int64 = shape[axis]
        T.ret(extent)

    return _get_tensor_shape_i


def _stride_reader() -> Any:
    @T.prim_func(private=True)
    def _get_tensor_stride_i(dlpack_handle: T.handle, axis: T.int64) -> T.int64:
        T.func_attr({"tir.is_host_func": True, "tir.is_scheduled": True})
        ndim: T.int32 = T.tvm_struct_get(dlpack_handle, 0, 4, dtype="int32")
        assert T.int64(0) <= axis, "the axis of a stride must not be negative"
        assert axis < T.Cast("int64", ndim), "the axis of a stride must be below the rank"
        strides_ptr: T.handle("int64") = T.tvm_struct_get(dlpack_handle, 0, 3, dtype="handle")
        if T.isnullptr(strides_ptr):
            # a compact tensor states no strides
            shape_ptr: T.handle("int64") = T.tvm_struct_get(dlpack_handle, 0, 2, dtype="handle")
            shape = T.decl_buffer(ndim, "int64", data=shape_ptr)
            product_buf = T.allocate([1], "int64", "local")
            product = T.decl_buffer(1, "int64", data=product_buf, scope="local")
            product[0] = T.int64(1)
            for i in range(T.Cast("int64", ndim) - axis - T.int64(1)):
                product[0] = product[0] * shape[axis + T.int64(1) + i]
            T.ret(product[0])
        else:
            strides = T.decl_buffer(ndim, "int64", data=strides_ptr)
            stride: T.int64 = strides[axis]
            T.ret(stride)

    return _get_tensor_stride_i


def _elem_offset_reader() -> Any:
    @T.prim_func(private=True)
    def _get_tensor_elem_offset(dlpack_handle: T.handle) -> T.uint64:
        T.func_attr({"tir.is_host_func": True, "tir.is_scheduled": True})
        byte_offset: T.uint64 = T.tvm_struct_get(dlpack_handle, 0, 8, dtype="uint64")
        bits: T.uint8 = T.tvm_struct_get(dlpack_handle, 0, 6, dtype="uint8")
        lanes: T.uint16 = T.tvm_struct_get(dlpack_handle, 0, 7, dtype="uint16")
        T.ret(byte_offset * T.uint64(8) // (T.Cast("uint64", bits) * T.Cast("uint64", lanes)))

    return _get_tensor_elem_offset


_READERS: dict[str, Callable[[], Any]] = {
    "tensor_dtype_code": lambda: _reader(_TYPE_CODE, "uint8"),
    "tensor_dtype_bits": lambda: _reader(_TYPE_BITS, "uint8"),
    "tensor_dtype_lanes": lambda: _reader(_TYPE_LANES, "uint16"),
    "tensor_ndim": lambda: _reader(_NDIM, "int32"),
    "tensor_shape_i": _extent_reader,
    "tensor_stride_i": _stride_reader,
    "tensor_byte_offset": lambda: _reader(_BYTE_OFFSET, "uint64"),
    "tensor_elem_offset": _elem_offset_reader,
}


def read_by_function(name: str) -> Legalize:
    """Let a call of ``relax.inspect.NAME`` be one of a loop program that reads the descriptor."""

    def legalize(bb: Any, call: Call) -> Any:
        gvar = bb.add_func(_READERS[name](), f"_get_{name}")
        return Call(gvar, call.args)

    return legalize


__all__ = ["read_by_function"]
