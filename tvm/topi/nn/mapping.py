"""Each channel times a factor plus a summand."""

from __future__ import annotations

from tvm import te

from .. import tag


def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, c, y, x] * Scale[c] + Shift[c]"""
    return te.compute(
        Input.shape,
        lambda n, c, y, x: Input(n, c, y, x) * Scale(c) + Shift(c),
        name="ScaleShift",
        tag=tag.BROADCAST,
    )


def scale_shift_nhwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, y, x, c] * Scale[c] + Shift[c]"""
    return te.compute(
        Input.shape,
        lambda n, y, x, c: Input(n, y, x, c) * Scale(c) + Shift(c),
        name="ScaleShift",
        tag=tag.BROADCAST,
    )


def scale_shift_nchwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Input[n, C, y, x, c] * Scale[C, c] + Shift[C, c]"""
    return te.compute(
        Input.shape,
        lambda n, co, y, x, ci: Input(n, co, y, x, ci) * Scale(co, ci) + Shift(co, ci),
        name="ScaleShift",
        tag=tag.BROADCAST,
    )
