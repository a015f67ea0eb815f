"""Tensors of several workers, combined."""

from __future__ import annotations

from tvm.relax import op as _op

from .core import Tensor, wrap_nested


def ccl_allreduce(
    x: Tensor, op_type: str = "sum", in_group: bool = True, name: str = "ccl_allreduce"
) -> Tensor:
    """The tensors of all workers combined.

    Parameters
    ----------
    x : Tensor
        This worker's tensor.
    op_type : str
        How: sum, prod, min, max or avg.
    in_group : bool
        Whether workers of the own group alone are combined.
    name : str
        The name of the result.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.
    """
    made: Tensor = wrap_nested(_op.ccl.allreduce(x._expr, op_type, in_group), name)
    return made


def ccl_allgather(x: Tensor, num_workers: int, name: str = "ccl_allgather") -> Tensor:
    """The tensors of all workers, one behind the other.

    Parameters
    ----------
    x : Tensor
        This worker's tensor.
    num_workers : int
        How many workers there are.
    name : str
        The name of the result.

    Returns
    -------
    Tensor
        Of the dtype of ``x``; the first dimension is ``num_workers`` times as long.
    """
    made: Tensor = wrap_nested(_op.ccl.allgather(x._expr, num_workers), name)
    return made


def ccl_broadcast_from_worker0(x: Tensor, name: str = "broadcast_from_worker") -> Tensor:
    """The tensor of the first worker.

    Parameters
    ----------
    x : Tensor
        This worker's tensor.
    name : str
        The name of the result.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.
    """
    made: Tensor = wrap_nested(_op.ccl.broadcast_from_worker0(x._expr), name)
    return made
