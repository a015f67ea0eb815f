"""Storage and tensors in it, as memory planning makes them."""

from __future__ import annotations

from typing import Any

from tvm.relax.op.infer import an_object, check_count, no_result
from tvm.relax.op.operator import Expr, Shape, as_data_type, as_string, operator
from tvm.relax.struct_info import TensorStructInfo


def _tensor(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    return TensorStructInfo(call.args[2], call.args[3].value)


@operator("relax.memory.alloc_storage", infer=an_object, FAllocator=True)
def alloc_storage(
    size: Shape, virtual_device_index: Expr, storage_scope: Expr, dtype: Expr
) -> Expr:
    """Storage of some size.

    Parameters
    ----------
    size : Expr
        Its bytes.
    virtual_device_index : int or Expr
        The device.
    storage_scope : str or Expr
        The memory of the device.
    dtype : str or Expr
        The data type.
    """
    return {"dtype": as_data_type(dtype), "storage_scope": as_string(storage_scope)}


@operator("relax.memory.alloc_tensor", infer=_tensor, FAllocator=True)
def alloc_tensor(storage: Expr, offset: Expr, shape: Shape, dtype: Expr) -> Expr:
    """A tensor in storage.

    Parameters
    ----------
    storage : Expr
    offset : int or Expr
        Where it begins.
    shape : tuple or Expr
    dtype : str or Expr
    """
    return {"dtype": as_data_type(dtype)}


@operator("relax.memory.kill_storage", infer=no_result, pure=False)
def kill_storage(storage: Expr) -> Expr:
    """End of some storage's life.

    Parameters
    ----------
    storage : Expr
    """


@operator("relax.memory.kill_tensor", infer=no_result, pure=False)
def kill_tensor(tensor: Expr) -> Expr:
    """End of a tensor's life.

    Parameters
    ----------
    tensor : Expr
    """
