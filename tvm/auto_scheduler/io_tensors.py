"""The inputs and outputs of tensors that a program returns."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.te.tensor import ComputeOp, PlaceholderOp, Tensor

from .layout_rewrite import LAYOUT_FREE
from .loops import constant_extent


def traverse_to_get_io_tensors(outs: Sequence[Tensor]) -> tuple[list[Tensor], bool, bool]:
    """Inputs and outputs, whether an input may lie in any order, and whether anything is reduced.

    Parameters
    ----------
    outs : list of Tensor
        The outputs.

    Returns
    -------
    list of Tensor, bool, bool
        No tensors if an operation is no compute, or has an open extent.
    """
    inputs: dict[Tensor, None] = {}
    seen: dict[object, None] = {}
    has_free = has_reduction = False
    waiting = list(outs)
    while waiting:
        tensor = waiting.pop()
        op = tensor.op
        if op in seen:
            continue
        seen[op] = None
        if isinstance(op, PlaceholderOp):
            inputs[tensor] = None
            continue
        if not isinstance(op, ComputeOp) or not _is_static(op):
            return [], False, False
        has_free = has_free or LAYOUT_FREE in op.attrs
        has_reduction = has_reduction or bool(op.reduce_axis)
        waiting.extend(op.input_tensors)
    return [*inputs, *outs], has_free, has_reduction


def _is_static(op: ComputeOp) -> bool:
    return all([constant_extent(axis) is not None for axis in op.root_iter_vars()])
