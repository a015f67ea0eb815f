"""Storage, tensors and calls of the virtual machine."""

from __future__ import annotations

from typing import Any

from tvm.relax.op.infer import an_object, check_count, no_result
from tvm.relax.op.operator import Expr, Shape, Tensors, as_data_type, as_string, operator
from tvm.relax.struct_info import ShapeStructInfo, TensorStructInfo


def _tensor(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    kind = call.args[3].value
    info = call.args[2].struct_info
    if isinstance(info, ShapeStructInfo) and info.values is None:
        return TensorStructInfo(None, kind, ndim=info.ndim)
    return TensorStructInfo(call.args[2], kind)


@operator("relax.vm.alloc_storage", infer=an_object, FAllocator=True)
def alloc_storage(
    shape: Shape, runtime_device_index: Expr, dtype: Expr, storage_scope: Expr = "global"
) -> Expr:
    """Storage for tensors.

    Parameters
    ----------
    shape : tuple or Expr
    runtime_device_index : int or Expr
    dtype : str or Expr
    storage_scope : str or Expr
    """
    return {"dtype": as_data_type(dtype), "storage_scope": as_string(storage_scope)}


@operator("relax.vm.alloc_tensor", infer=_tensor, FAllocator=True)
def alloc_tensor(storage: Expr, offset: Expr, shape: Shape, dtype: Expr) -> Expr:
    """A tensor in storage.

    Parameters
    ----------
    storage : Expr
    offset : int or Expr
    shape : tuple or Expr
    dtype : str or Expr
    """
    return {"dtype": as_data_type(dtype)}


@operator("relax.vm.kill_object", infer=no_result, pure=False)
def kill_object(obj: Expr) -> Expr:
    """Let go of a register's object.

    Parameters
    ----------
    obj : Expr
    """


@operator("relax.vm.call_tir_dyn", infer=no_result, pure=False)
def call_tir_dyn(func: Expr, args: Tensors) -> Expr:
    """Call a loop program, the last argument of which is a shape whose dimensions it takes as numbers.

    Parameters
    ----------
    func : Expr
    args : Expr or tuple of Expr
    """
