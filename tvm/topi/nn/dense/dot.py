"""Dense layers of narrow numbers, the weight in groups for dot-product instructions.

out[y, panel * 64 + x] = sum over group, k of data[y, group * 4 + k] * weight[panel, group, x, k]
"""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ...configuration import workload_attrs
from ...utils import dims
from .compute import crop, padded_rows, with_bias

DENSE_DOT = "dense_dot"


def dense_dot(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str = "int32"
) -> te.Tensor:
    """A dense layer with the weight in panels of groups.

    Parameters
    ----------
    data : te.Tensor
        (..., rows, inner)
    weight : te.Tensor
        (units / block, inner / group, block, group)
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str
        The dtype of the sums.
    """
    *lead, rows, _ = dims(data.shape)
    padded = padded_rows(rows)
    panels, groups, block, size = dims(weight.shape)
    group = te.reduce_axis((0, groups), name="group")
    k = te.reduce_axis((0, size), name="k")

    def element(*i: Any) -> Any:
        *outer, y, panel, x = i
        y = y if padded == rows else tir.min(y, rows - 1)
        value = data(*outer, y, group.var * size + k.var).astype(out_dtype)
        factor = weight(panel, group.var, x, k.var).astype(out_dtype)
        return te.sum(value * factor, axis=[group, k])

    rows_alone = ("TENSOR", (rows, groups * size), data.dtype)
    asked = workload_attrs("dense_int8.x86", rows_alone, weight, None, out_dtype)
    shape = (*lead, padded, panels, block)
    sums = te.compute(shape, element, name="T_dense_dot", tag=DENSE_DOT, attrs=asked)
    product = te.compute(
        (*lead, padded, panels * block),
        lambda *i: sums(*i[:-1], tir.indexdiv(i[-1], block), tir.indexmod(i[-1], block)),
        name="T_columns",
        tag="injective",
    )
    if padded != rows:
        product = crop(product, (*lead, rows, panels * block))
    return product if bias is None else with_bias(product, bias, out_dtype)
