"""The gradient of a convolution's kernel: the data against the gradient of the result.

dw[o, i, y, x] = sum over n, r, c of grad[n, o, r, c] * data[n, i, r * s + y * d, c * s + x * d]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ...utils import dims
from ..pad import pad


def conv2d_backward_weight(
    grad: te.Tensor,
    data: te.Tensor,
    kernel_size: Sequence[int],
    padding: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
    out_dtype: str | None = None,
    layouts: tuple[str, str, str] = ("NCHW", "NCHW", "OIHW"),
) -> te.Tensor:
    """The gradient of the kernel.

    Parameters
    ----------
    grad, data : te.Tensor
        The gradient of the result, and the data.
    kernel_size, padding, strides, dilation, groups
        The convolution's parameters; padding is (top, left, bottom, right).
    out_dtype : str, optional
        The dtype of the sums, the data's by default.
    layouts : tuple of str
        The layouts of the gradient, the data and the kernel.
    """
    grad_layout, data_layout, kernel_layout = layouts
    given = dict(zip(grad_layout, dims(grad.shape), strict=True))
    have = dict(zip(data_layout, dims(data.shape), strict=True))
    before, after = [0] * 4, [0] * 4
    for k, axis in enumerate("HW"):
        before[data_layout.index(axis)] = padding[k]
        after[data_layout.index(axis)] = padding[k + 2]
    source = pad(data, before, after, name="data_pad") if any(padding) else data
    group_in, group_out = have["C"] // groups, given["C"] // groups
    over = {a: te.reduce_axis((0, given[a]), name=f"r{a.lower()}") for a in "NHW"}
    dtype = out_dtype or data.dtype

    def element(*i: Any) -> Any:
        at = dict(zip(kernel_layout, i, strict=True))
        grad_at = {"N": over["N"].var, "C": at["O"], "H": over["H"].var, "W": over["W"].var}
        channel = at["I"]
        if groups > 1:
            channel = channel + tir.indexdiv(at["O"], group_out) * group_in
        data_at = {"N": over["N"].var, "C": channel}
        for k, axis in enumerate("HW"):
            data_at[axis] = over[axis].var * strides[k] + at[axis] * dilation[k]
        left = grad(*[grad_at[a] for a in grad_layout]).astype(dtype)
        right = source(*[data_at[a] for a in data_layout]).astype(dtype)
        return te.sum(left * right, axis=list(over.values()))

    extents = {"O": given["C"], "I": group_in, "H": kernel_size[0], "W": kernel_size[1]}
    shape = [extents[a] for a in kernel_layout]
    return te.compute(shape, element, name="conv2d_backward_weight", tag="conv2d_backward_weight")
