"""Tensors that destination-passing calls write to."""

from __future__ import annotations

from typing import Any

from tvm.relax.expr import DataTypeImm, PrimValue, StringImm
from tvm.relax.op.infer import check_count, fail, same_as_first
from tvm.relax.op.operator import Expr, Shape, operator
from tvm.relax.struct_info import ShapeStructInfo, TensorStructInfo


def _infer(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    if not isinstance(call.args[0].struct_info, ShapeStructInfo):
        raise fail(call, f"requires a Shape, got {call.args[0]}")
    if not isinstance(call.args[1], DataTypeImm):
        raise fail(call, f"requires a data type, got {call.args[1]}")
    return TensorStructInfo(call.args[0], call.args[1].value)


@operator("relax.builtin.alloc_tensor", infer=_infer, FAllocator=True)
def alloc_tensor(
    shape: Shape, dtype: Expr, runtime_device_index: Expr, storage_scope: Expr = "global"
) -> Expr:
    """A new tensor.

    Parameters
    ----------
    shape : tuple or Expr
    dtype : str or Expr
    runtime_device_index : int or Expr
        The device.
    storage_scope : str or Expr
        The memory of the device.
    """
    kind = DataTypeImm(dtype) if isinstance(dtype, str) else dtype
    scope = StringImm(storage_scope) if isinstance(storage_scope, str) else storage_scope
    return {"dtype": kind, "storage_scope": scope}


@operator("relax.builtin.stop_lift_params", infer=same_as_first)
def stop_lift_params(x: Expr) -> Expr:
    """What depends on this stays when transformations of parameters are lifted.

    Parameters
    ----------
    x : relax.Expr
    """


__all__ = ["PrimValue", "alloc_tensor", "stop_lift_params"]
