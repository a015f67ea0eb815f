"""Storage, tensors and calls of the virtual machine."""

from __future__ import annotations

from typing import Any

from tvm.relax.expr import DataTypeImm, StringImm
from tvm.relax.op.infer import check_count
from tvm.relax.op.operator import Expr, Shape, Tensors, operator
from tvm.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


def _object(call: Any, bb: Any) -> Any:
    return ObjectStructInfo()


def _nothing(call: Any, bb: Any) -> Any:
    return TupleStructInfo([])


def _tensor(call: Any, bb: Any) -> Any:
    check_count(call, 4)
    kind = call.args[3].value
    info = call.args[2].struct_info
    if isinstance(info, ShapeStructInfo) and info.values is None:
        return TensorStructInfo(None, kind, ndim=info.ndim)
    return TensorStructInfo(call.args[2], kind)


def _imm(value: Any) -> Any:
    return DataTypeImm(value) if isinstance(value, str) else value


@operator("relax.vm.alloc_storage", infer=_object, FAllocator=True)
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
    scope = StringImm(storage_scope) if isinstance(storage_scope, str) else storage_scope
    return {"dtype": _imm(dtype), "storage_scope": scope}


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
    return {"dtype": _imm(dtype)}


@operator("relax.vm.kill_object", infer=_nothing, pure=False)
def kill_object(obj: Expr) -> Expr:
    """Let go of a register's object.

    Parameters
    ----------
    obj : Expr
    """


@operator("relax.vm.call_tir_dyn", infer=_nothing, pure=False)
def call_tir_dyn(func: Expr, args: Tensors) -> Expr:
    """Call a loop program, the last argument of which is a shape whose dimensions it takes as numbers.

    Parameters
    ----------
    func : Expr
    args : Expr or tuple of Expr
    """
