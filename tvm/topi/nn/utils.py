"""Padding in its many notations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te
from tvm.error import RuntimeValueError

from ..utils import dims, get_const_int


def get_pad_tuple(padding: Any, kernel: Any) -> tuple[int, int, int, int]:
    """(top, left, down, right) from a number, 2 or 4 numbers, "VALID" or "SAME"."""
    top, left, down, right = get_pad_tuple_generic(padding, kernel)
    return top, left, down, right


def get_pad_tuple1d(padding: Any, kernel: Any) -> tuple[int, int]:
    """(left, right) from a number, 1 or 2 numbers, "VALID" or "SAME"."""
    left, right = get_pad_tuple_generic(padding, [kernel] if isinstance(kernel, int) else kernel)
    return left, right


def get_pad_tuple_generic(padding: Any, kernel: Any) -> tuple[int, ...]:
    """The widths before each spatial axis, then those after."""
    rank = len(kernel)
    if isinstance(padding, str):
        if padding == "VALID":
            return (0,) * (2 * rank)
        if padding != "SAME":
            raise RuntimeValueError(f'padding must be numbers, "VALID" or "SAME", got {padding!r}')
        total = [get_const_int(k) - 1 for k in kernel]
        before = [(t + 1) // 2 for t in total]
        return (*before, *[t - b for t, b in zip(total, before, strict=True)])
    numbers = [padding] if isinstance(padding, int) else [get_const_int(p) for p in padding]
    if len(numbers) == 1:
        return tuple(numbers * (2 * rank))
    if len(numbers) == rank:
        return tuple(numbers * 2)
    if len(numbers) != 2 * rank:
        raise RuntimeValueError(f"padding requires 1, {rank} or {2 * rank} numbers, got {padding}")
    return tuple(numbers)


def dilated_window(kernel: Sequence[Any], dilation: Any) -> list[Any]:
    """How far windows reach along each axis; what the border of "SAME" is reckoned by."""
    steps = [dilation] * len(kernel) if isinstance(dilation, int) else list(dilation)
    return [(k - 1) * step + 1 for k, step in zip(kernel, steps, strict=True)]


def get_pad_tuple3d(padding: Any, kernel: Any) -> tuple[int, int, int, int, int, int]:
    """(front, top, left, back, down, right) from a number, 3 or 6 numbers, "VALID" or "SAME"."""
    return get_pad_tuple_generic(padding, kernel)  # type: ignore[return-value]


def infer_pad(data: te.Tensor, data_pad: te.Tensor | None) -> tuple[int, int]:
    """The (symmetric) border of NCHW data that was padded."""
    if data_pad is None:
        return 0, 0
    have, wide = dims(data.shape), dims(data_pad.shape)
    return (wide[2] - have[2]) // 2, (wide[3] - have[3]) // 2


def infer_pad3d(data: te.Tensor, data_pad: te.Tensor | None, layout: str) -> tuple[int, ...]:
    """The (symmetric) border of NCDHW or NDHWC data that was padded."""
    if data_pad is None:
        return 0, 0, 0
    have, wide = dims(data.shape), dims(data_pad.shape)
    return tuple([(wide[layout.index(a)] - have[layout.index(a)]) // 2 for a in "DHW"])


def infer_stride(data: te.Tensor, kernel: te.Tensor, out: te.Tensor) -> tuple[int, int]:
    """The steps of an NCHW convolution, from the (padded) data, the kernel and the result."""
    have, window, result = dims(data.shape), dims(kernel.shape), dims(out.shape)
    steps = [(have[k] - window[k]) // (result[k] - 1) if result[k] > 1 else 1 for k in (2, 3)]
    return steps[0], steps[1]
