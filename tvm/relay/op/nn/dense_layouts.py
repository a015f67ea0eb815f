"""Layouts of dense layers as functions that programs register for ``FTVMAlterOpLayout``.

x86:  nn.dense(%x, %w)    ->    nn.contrib_dense_pack(%x, layout_transform(%w, "NC", "NC16n"))
Arm:  nn.dense(%x, %w)    ->    nn.matmul(%x, transpose(%w))

The usual build packs weights that are constants by the cost model; these pack every weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.target.cpu import cpu_info

from ..registry import ops


def alter_dense_layout(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[TensorType], out_type: TensorType
) -> RelayExpr | None:
    """A dense layer on x86 over columns in blocks; None if the number of columns is not known."""
    weight = tinfos[1]
    if weight.is_dynamic:
        return None
    units = weight.concrete_shape[0]
    # two vectors of results for each row
    widest = 2 * cpu_info().fp32_lanes
    block = max([columns for columns in range(1, widest + 1) if units % columns == 0])
    layout = f"NC{block}n"
    packed = ops.layout_transform(inputs[1], src_layout="NC", dst_layout=layout)
    return ops.nn.contrib_dense_pack(
        inputs[0], packed, weight_layout=layout, out_dtype=str(out_type.dtype)
    )


def alter_dense(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[TensorType], out_type: TensorType
) -> RelayExpr:
    """A dense layer, or a product with its right factor transposed, on Arm as a plain product."""
    is_plain = not getattr(attrs, "transpose_b", True)
    weight = inputs[1] if is_plain else ops.transpose(inputs[1])
    return ops.nn.matmul(
        inputs[0], weight, units=attrs.units, out_dtype=attrs.out_dtype,
        transpose_a=getattr(attrs, "transpose_a", False),
    )  # fmt: skip
