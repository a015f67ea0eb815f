"""Sorting along an axis, by the runtime's own sort (``tvm.contrib.sort.*``).

All orders are stable, and NaN counts as greater than every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.support.docstrings import described_by

from .utils import dims, get_const_int, real_axis


def _call(
    function: str, inputs: Sequence[te.Tensor], shape: Any, dtype: str, *options: Any
) -> te.Tensor:
    """A tensor that a packed function of the runtime fills."""
    return _call_of_several(function, inputs, shape, [dtype], *options)[0]


def _call_of_several(
    function: str, inputs: Sequence[te.Tensor], shape: Any, dtypes: list[Any], *options: Any
) -> list[te.Tensor]:
    """Tensors of one shape that a packed function of the runtime fills."""
    made = te.extern(
        [shape] * len(dtypes),
        list(inputs),
        lambda ins, filled: tir.call_packed(
            f"tvm.contrib.sort.{function}", *ins, *filled, *options
        ),
        dtype=dtypes,
        name=function,
        tag=f"{function}_cpu",
    )
    return made if isinstance(made, list) else [made]


def sort(data: te.Tensor, axis: int = -1, is_ascend: bool = True) -> te.Tensor:
    """The elements in order along an axis.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int
        The axis.
    is_ascend : bool
        The smallest first, or the greatest.
    """
    return _call("sort", [data], data.shape, data.dtype, axis, bool(is_ascend))


@described_by(sort)
def argsort(
    data: te.Tensor,
    valid_count: te.Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: str = "float32",
) -> te.Tensor:
    """The indices that put the elements in order along an axis.

    Parameters
    ----------
    valid_count : te.Tensor, optional
        How many elements of each row count (int32); those behind keep their positions.
    dtype : str
        The indices' dtype: int32, int64, float32 or float64.
    """
    options = (data.shape, dtype, axis, bool(is_ascend))
    if valid_count is None:
        return _call("argsort", [data], *options)
    return _call("argsort_nms", [data, valid_count], *options)


@described_by(argsort)
def topk(
    data: te.Tensor,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> te.Tensor | list[te.Tensor]:
    """The greatest (or smallest) elements along an axis, in order, and their indices.

    Parameters
    ----------
    k : int or PrimExpr
        How many; all of them if it is below 1.
    ret_type : str
        "both", "values" or "indices".
    is_ascend : bool
        The smallest, from the smallest on.
    """
    if ret_type not in ("both", "values", "indices"):
        raise RuntimeValueError(
            f"topk requires a ret_type of both, values or indices, got {ret_type!r}"
        )
    at = real_axis(axis, len(data.shape))
    shape = list(dims(data.shape))
    if not (isinstance(k, (int, tir.IntImm)) and get_const_int(k) < 1):
        shape[at] = k
    dtypes: dict[str, list[Any]] = {
        "values": [data.dtype], "indices": [dtype], "both": [data.dtype, dtype]
    }  # fmt: skip
    options = (shape[at], axis, ret_type, bool(is_ascend))
    made = _call_of_several("topk", [data], shape, dtypes[ret_type], *options)
    return made if len(made) > 1 else made[0]
