"""Storage and tensors in it, as memory planning makes them."""

from __future__ import annotations

from typing import Any

from tvm.relax.expr import DataTypeImm, PrimValue, StringImm
from tvm.relax.op.infer import check_count
from tvm.relax.op.operator import Expr, Shape, operator
from tvm.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo


def _object(call: Any, bb: Any) -> Any:
    return ObjectStructInfo()


def _nothing(call: Any, bb: Any) -> Any:
    return TupleStructInfo([])


def _tensor(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    return TensorStructInfo(call.args[2], call.args[3].value)


def _imm(value: Any) -> Any:
    return DataTypeImm(value) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    return StringImm(value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    return PrimValue(value) if isinstance(value, int) else value


@operator("relax.memory.alloc_storage", infer=_object, FAllocator=True)
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
    return {"dtype": _imm(dtype), "storage_scope": _text(storage_scope)}


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
    return {"dtype": _imm(dtype)}


@operator("relax.memory.kill_storage", infer=_nothing, pure=False)
def kill_storage(storage: Expr) -> Expr:
    """End of some storage's life.

    Parameters
    ----------
    storage : Expr
    """


@operator("relax.memory.kill_tensor", infer=_nothing, pure=False)
def kill_tensor(tensor: Expr) -> Expr:
    """End of a tensor's life.

    Parameters
    ----------
    tensor : Expr
    """
