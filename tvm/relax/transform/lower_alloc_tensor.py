"""Each tensor that has no place in a planned storage gets a storage of its own.

y = builtin.alloc_tensor((n, 4), "float32", 0)    ->    storage = memory.alloc_storage((n * 16,), 0, "global", "uint8")
                                                        y = memory.alloc_tensor(storage, 0, (n, 4), "float32")
"""

from __future__ import annotations

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import Call, DataTypeImm, Function, PrimValue, Var
from tvm.relax.struct_info import ShapeExpr, ShapeStructInfo
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import IntImm

from .binding_rewriter import BindingRewriter, function_pass, op_call

_UINT8 = as_dtype("uint8")


class _OwnStorage(BindingRewriter):
    def value(self, value: RelayExpr, var: Var) -> RelayExpr:
        if not isinstance(value, Call) or value.op is not Op.get("relax.builtin.alloc_tensor"):
            return value
        shape, element, device, scope = value.args
        assert isinstance(element, DataTypeImm)
        bytes_ = storage_bytes(shape, element)
        args = (ShapeExpr([bytes_]), device, scope, DataTypeImm(_UINT8))
        storage = self.emit(op_call("relax.memory.alloc_storage", *args), "storage")
        tensor = (storage, PrimValue(0), shape, element)
        return op_call("relax.memory.alloc_tensor", *tensor, info=value.struct_info_)


def element_bytes(kind: DType) -> int:
    """The bytes that an element takes."""
    return (kind.bits * kind.lanes + 7) // 8


def data_type_of(element: RelayExpr) -> DType:
    """The data type that an argument is."""
    assert isinstance(element, DataTypeImm)
    return element.value


def storage_bytes(shape: RelayExpr, element: DataTypeImm) -> object:
    """The bytes of a tensor, an expression over symbolic variables."""
    info = shape.struct_info_
    values = info.values if isinstance(info, ShapeStructInfo) else None
    if values is None:
        raise TVMError(f"an allocated tensor requires known dimensions, got the shape {shape}")
    total: PrimExpr = IntImm("int64", element_bytes(element.value))
    for extent in values:
        total = total * extent
    return total


def lower_alloc_tensor(func: Function, mod: IRModule) -> Function:
    """The function with tensors in storages."""
    return _OwnStorage(mod).function(func)


def LowerAllocTensor() -> Pass:
    """Give tensors that have no storage one of their own."""
    return function_pass("LowerAllocTensor", lower_alloc_tensor)
