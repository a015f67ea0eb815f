"""How PyTorch's engines requantise integer sums to the scale of a result.

fbgemm     round((sums + bias / t) * (t / s)) + z        t: the data's scale times the weight's
onednn     round((sums * t + bias) * (1 / s) + z)
qnnpack    round((sums + round(bias / t)) * (t / s)) + z

They differ in ties, but for qnnpack, whose bias is an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay import qnn
from tvm.relay.expr import const
from tvm.relay.frontend.common import constant, infer_shape

# beyond as many groups the engine "x86" leaves convolutions to fbgemm
_ONEDNN_GROUPS = 100


class Engine(Enum):
    """Whose arithmetic a quantised layer follows."""

    FBGEMM = "fbgemm"
    ONEDNN = "onednn"
    QNNPACK = "qnnpack"


def engine_of_dense() -> Engine:
    """The engine of dense layers that are packed now."""
    chosen = _chosen()
    return Engine.FBGEMM if chosen == "x86" else Engine(chosen)


def engine_of_convolution(
    groups: int, output_padding: Sequence[int], zero_points: np.ndarray
) -> Engine:
    """The engine of convolutions that are packed now; "x86" chooses for each."""
    import torch

    chosen = _chosen()
    if chosen != "x86":
        return Engine(chosen)
    is_plain = not any(output_padding) and not zero_points.any()
    has_vnni = torch.cpu._is_vnni_supported()
    is_onednn = has_vnni and is_plain and groups <= _ONEDNN_GROUPS
    return Engine.ONEDNN if is_onednn else Engine.FBGEMM


def _chosen() -> str:
    import torch

    engine = str(torch.backends.quantized.engine)
    return engine if engine in [e.value for e in Engine] else "x86"


def requantized(
    engine: Engine,
    sums: RelayExpr,
    axis: int,
    scales: tuple[float, np.ndarray, float],
    bias: np.ndarray | None,
    relu: bool,
    zero_point: int,
    dtype: str,
) -> RelayExpr:
    """Integer sums by the scale of the result; `scales` are the data's, the weight's, the result's."""
    data_scale, weight_scales, step = scales
    unit = np.float32(data_scale) * weight_scales.astype("float32")
    added = None if bias is None else bias.astype("float32")
    real, point = _op.cast(sums, "float32"), zero_point
    if engine is Engine.ONEDNN:
        real = _op.multiply(real, _along(unit, sums, axis))
        real = real if added is None else _op.add(real, _along(added, sums, axis))
        real = _op.multiply(real, const(np.float32(1) / np.float32(step)))
    else:
        if added is not None:
            moved = added / unit
            moved = np.rint(moved) if engine is Engine.QNNPACK else moved
            real = _op.add(real, _along(moved, sums, axis))
        real = _op.multiply(real, _along(unit / np.float32(step), sums, axis))
    real = _op.nn.relu(real) if relu else real
    if engine is Engine.ONEDNN:
        real, point = _op.add(real, const(np.float32(zero_point))), 0
    return qnn.op.quantize(real, const(1.0), const(point, "int32"), out_dtype=dtype)


def _along(values: np.ndarray, sums: RelayExpr, axis: int) -> RelayExpr:
    """Per-channel numbers, shaped to broadcast."""
    rank = len(infer_shape(sums))
    return constant(values.reshape(-1, *[1] * (rank - 1 - axis)) if values.ndim else values)
