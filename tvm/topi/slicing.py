"""Windows of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from . import tag
from .utils import dims


def window(
    a: te.Tensor, begins: Sequence[Any], strides: Sequence[int], shape: Sequence[Any]
) -> te.Tensor:
    """The elements at begin + i * stride along each axis."""

    def element(*indices: Any) -> Any:
        at = []
        for i, begin, stride in zip(indices, begins, strides, strict=True):
            index = i if stride == 1 else i * stride
            at.append(index if isinstance(begin, int) and begin == 0 else index + begin)
        return a(*at)

    return te.compute(list(shape), element, name="T_strided_slice", tag=tag.INJECTIVE)


def strided_slice(
    a: te.Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> te.Tensor:
    """Cut a window out of a tensor of known shape; numpy's rules for negative numbers."""
    extents = dims(a.shape)
    begins, steps, shape = [0] * len(extents), [1] * len(extents), list(extents)
    for position, axis in enumerate(axes if axes is not None else range(len(begin))):
        step = 1 if strides is None or slice_mode == "size" else _step(strides, position)
        extent = extents[axis]
        stop = end[position] if position < len(end) else None
        if slice_mode == "size" and stop is not None:
            first = begin[position] % extent if begin[position] < 0 else begin[position]
            stop = None if stop < 0 else first + stop
        chosen = range(extent)[slice(begin[position], stop, step)]
        begins[axis], steps[axis], shape[axis] = chosen.start, step, len(chosen)
    return window(a, begins, steps, shape)


def _step(strides: Sequence[int], position: int) -> int:
    return int(strides[0] if len(strides) == 1 else strides[position])
