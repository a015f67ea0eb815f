"""Windows of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeTypeError, RuntimeValueError

from . import tag
from .utils import dims


def window(
    a: te.Tensor,
    begins: Sequence[Any],
    strides: Sequence[Any],
    shape: Sequence[Any],
    name: str = "T_strided_slice",
) -> te.Tensor:
    """The elements at begin + i * stride along each axis."""

    def element(*indices: Any) -> Any:
        at = []
        for i, begin, stride in zip(indices, begins, strides, strict=True):
            index = i if isinstance(stride, int) and stride == 1 else i * stride
            at.append(index if isinstance(begin, int) and begin == 0 else index + begin)
        return a(*at)

    return te.compute(list(shape), element, name=name, tag=tag.INJECTIVE)


def strided_slice(
    a: te.Tensor,
    begin: Sequence[int] | te.Tensor,
    end: Sequence[int] | te.Tensor,
    strides: Sequence[int] | te.Tensor | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> te.Tensor:
    """Cut a window out of a tensor; numpy's rules for negative numbers.

    Parameters
    ----------
    a : te.Tensor
        The tensor.
    begin, end : sequence of int or tir.PrimExpr, or te.Tensor
        Where the window begins, and where it ends (with slice_mode "size", how long it is, -1 for
        all that follows). Those of an axis of which only the run knows are taken to lie inside.
        Tensors of the bounds and steps of the first axes give a window of open extents.
    strides : sequence of int or te.Tensor, optional
        The step along each axis, 1 by default.
    axes : sequence of int, optional
        The axes meant, the first ones by default.
    slice_mode : str
        "end" or "size".
    """
    if isinstance(begin, te.Tensor):
        return _data_bound_slice(a, begin, end, strides, axes)
    extents = dims(a.shape)
    begins, steps, shape = [0] * len(extents), [1] * len(extents), list(extents)
    begin, end = dims(begin), dims(end)
    is_open = False
    for position, axis in enumerate(axes if axes is not None else range(len(begin))):
        step = 1 if strides is None or slice_mode == "size" else _step(dims(strides), position)
        extent = extents[axis]
        stop = end[position] if position < len(end) else None
        if not all(v is None or isinstance(v, int) for v in (extent, begin[position], stop)):
            span = begin[position], stop, step
            begins[axis], shape[axis] = _open_span(span, extent, slice_mode == "size")
            steps[axis], is_open = step, True
            continue
        if slice_mode == "size" and stop is not None:
            first = begin[position] % extent if begin[position] < 0 else begin[position]
            stop = None if stop < 0 else first + stop
        chosen = range(extent)[slice(begin[position], stop, step)]
        begins[axis], steps[axis], shape[axis] = chosen.start, step, len(chosen)
    name = "T_dynamic_strided_slice" if is_open else "T_strided_slice"
    return window(a, begins, steps, shape, name if axes is None else f"{name}_with_axes")


def _data_bound_slice(
    a: te.Tensor, begin: te.Tensor, end: Any, strides: Any, axes: Sequence[int] | None
) -> te.Tensor:
    """A window of the first axes whose extents are the caller's, who has the result's shape."""
    if not isinstance(end, te.Tensor) or not isinstance(strides, te.Tensor):
        raise RuntimeTypeError("strided_slice requires tensors for all of begin, end and strides")
    if axes is not None:
        raise RuntimeValueError("strided_slice requires no axes where its bounds are tensors")
    count = int(dims(begin.shape)[0])
    open_extents = [tir.Var("dim", "int32") for _ in range(count)]
    return dynamic_strided_slice(a, begin, end, strides, [*open_extents, *a.shape[count:]])


def _open_span(span: tuple[Any, Any, int], extent: Any, is_size: bool) -> tuple[Any, Any]:
    """Where a window begins and how many elements it has, as expressions."""
    begin, stop, step = span
    first = begin + extent if isinstance(begin, int) and begin < 0 else begin
    if is_size:
        is_rest = stop is None or (isinstance(stop, int) and stop < 0)
        return first, extent - first if is_rest else stop
    if stop is None or (isinstance(stop, int) and stop > 0 and not isinstance(extent, int)):
        stop = extent if stop is None else tir.min(stop, extent)
    elif isinstance(stop, int) and stop < 0:
        stop = stop + extent
    count = stop - first if step > 0 else first - stop
    return first, tir.indexdiv(count + abs(step) - 1, abs(step)) if abs(step) > 1 else count


def dynamic_strided_slice(
    a: te.Tensor,
    begin: te.Tensor,
    end: te.Tensor,
    strides: te.Tensor,
    output_shape: Sequence[Any],
) -> te.Tensor:
    """Cut a window whose bounds are data out of a tensor.

    Parameters
    ----------
    a : te.Tensor
        The tensor.
    begin, end, strides : te.Tensor
        The bounds and the step of the first axes; inside the tensor.
    output_shape : sequence
        The window's shape; it says where the window ends.
    """
    count = int(dims(begin.shape)[0])
    rank = len(a.shape)
    begins = [begin(axis) if axis < count else 0 for axis in range(rank)]
    steps = [strides(axis) if axis < count else 1 for axis in range(rank)]
    return window(a, begins, steps, output_shape, "T_dynamic_strided_slice")


def _step(strides: Sequence[int], position: int) -> int:
    return int(strides[0] if len(strides) == 1 else strides[position])
