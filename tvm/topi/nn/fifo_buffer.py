"""A buffer of the latest data: a window that moves along an axis."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import dims, real_axis


def fifo_buffer(data: te.Tensor, buffer: te.Tensor, axis: int) -> te.Tensor:
    """The buffer without its oldest entries, the data behind.

    Parameters
    ----------
    data, buffer : te.Tensor
        The new entries, and those before; they differ in extent along `axis` alone.
    axis : int
        The axis of time.
    """
    at = real_axis(axis, len(buffer.shape))
    kept = dims(buffer.shape)[at] - dims(data.shape)[at]

    def element(*i: Any) -> Any:
        older = buffer(*i[:at], i[at] + dims(data.shape)[at], *i[at + 1 :])
        newer = data(*i[:at], i[at] - kept, *i[at + 1 :])
        return tir.if_then_else(i[at] < kept, older, newer)

    return te.compute(buffer.shape, element, name="new_buffer", tag=tag.INJECTIVE)
