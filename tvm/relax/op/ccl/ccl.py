"""Communication among workers."""

from __future__ import annotations

from typing import Any

from tvm.relax.op.infer import dims_of, fail, made, same, simplified, tensors
from tvm.relax.op.operator import Expr, Int, operator
from tvm.tir import IntImm, floordiv


@operator("relax.ccl.allreduce", "AllReduceAttrs", infer=same)
def allreduce(x: Expr, op_type: str = "sum", in_group: bool = True) -> Expr:
    """The tensors of all workers combined.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    op_type : str
        ``"sum"``, ``"prod"``, ``"min"``, ``"max"`` or ``"avg"``.
    in_group : bool
        Whether only workers of a group take part.
    """
    if op_type not in ("sum", "prod", "min", "max", "avg"):
        raise ValueError(f"allreduce requires sum, prod, min, max or avg, got {op_type!r}")


def _infer_gather(call: Any, bb: Any) -> Any:
    info = tensors(call, 1)[0]
    dims = dims_of(info)
    if not dims:
        return info
    return made([simplified(dims[0] * call.attrs.num_workers), *dims[1:]], info.dtype, info.vdevice)


@operator("relax.ccl.allgather", "AllGatherAttrs", infer=_infer_gather)
def allgather(x: Expr, num_workers: Int, in_group: bool = True) -> Expr:
    """The tensors of all workers, one after the other.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    num_workers : int
    in_group : bool
        Whether only workers of a group take part.
    """


@operator("relax.ccl.broadcast_from_worker0", infer=same)
def broadcast_from_worker0(x: Expr) -> Expr:
    """The tensor of the first worker.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    """


def _infer_scatter(call: Any, bb: Any) -> Any:
    info = tensors(call, 1)[0]
    dims = dims_of(info)
    if dims is None:
        return info
    count, axis = call.attrs.num_workers, call.attrs.axis
    if isinstance(dims[axis], IntImm) and dims[axis].value % count:
        raise fail(call, f"requires a dimension that {count} workers divide, got {dims[axis]}")
    new = list(dims)
    new[axis] = simplified(floordiv(new[axis], count))
    return made(new, info.dtype, info.vdevice)


@operator("relax.ccl.scatter_from_worker0", "ScatterCollectiveAttrs", infer=_infer_scatter)
def scatter_from_worker0(x: Expr, num_workers: Int, axis: int = 0) -> Expr:
    """Parts of the first worker's tensor, one for each worker.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    num_workers : int
    axis : int
        The axis that is divided.
    """
