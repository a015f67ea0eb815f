"""Cases of quantised operators in other layouts, in groups, along other axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tvm import relay
from tvm.relay.op.registry import ops

from .cases import Array, Case, floats
from .qnn_cases import OPS, _whole, as_float, clipped, codes, requantized, scale, zero
from .window_cases import _last, _mean_of_windows, _plain, moved

_PARAMETERS = (zero(7), zero(2), scale(0.1), scale(0.2))
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def conv_cases() -> list[Case]:
    """Channels last, in groups, with gaps; and of these layouts into the usual one."""
    cases = []
    for rank in (1, 2, 3):
        window, dilation = (3, 2, 2)[:rank], (2, 1, 2)[:rank]
        options = {"groups": 2, "dilation": dilation, "padding": 1}
        layouts = {"data_layout": _last(rank), "kernel_layout": f"{_SPATIAL[rank]}IO"}

        def expected(x: Array, w: Array, rank: int = rank, options: Any = options) -> Array:
            image = moved(x, _last(rank), _plain(rank))
            kernel = moved(w, f"{_SPATIAL[rank]}IO", f"OI{_SPATIAL[rank]}")
            return _whole(getattr(F, f"conv{rank}d"), image, kernel, 7, 2, **options)

        arrays = (codes(2, *(7, 6, 5)[:rank], 4, dtype="uint8"), codes(*window, 2, 6))
        for out_layout in ("", _plain(rank)):
            attrs = {**options, **layouts, "kernel_size": window, "channels": 6, "out_layout": out_layout}  # fmt: skip
            cases.append(Case(
                f"qnn.conv{rank}d",
                lambda x, w, r=rank, a=attrs: getattr(OPS, f"conv{r}d")(x, w, *_PARAMETERS, **a),
                arrays,
                lambda x, w, f=expected, r=rank, o=out_layout: moved(f(x, w), _plain(r), o or _last(r)), 0,
            ))  # fmt: skip
    return cases


def transposed_cases() -> list[Case]:
    cases = []
    for rank in (1, 2, 3):
        window = (3, 2, 2)[:rank]
        options = {"stride": 2, "groups": 2, "output_padding": 1}
        attrs = {
            "strides": 2, "groups": 2, "output_padding": 1, "kernel_size": window, "channels": 6,
            "data_layout": _last(rank),
        }  # fmt: skip

        def expected(x: Array, w: Array, rank: int = rank, options: Any = options) -> Array:
            image = moved(x, _last(rank), _plain(rank))
            return _whole(getattr(F, f"conv_transpose{rank}d"), image, w, 7, 2, **options)

        arrays = (codes(1, *(4, 3, 3)[:rank], 4, dtype="uint8"), codes(4, 3, *window))
        for out_layout in ("", _plain(rank)):
            cases.append(Case(
                f"qnn.conv{rank}d_transpose",
                lambda x, w, r=rank, a=attrs, o=out_layout: getattr(OPS, f"conv{r}d_transpose")(x, w, *_PARAMETERS, out_layout=o, **a),
                arrays,
                lambda x, w, f=expected, r=rank, o=out_layout: moved(f(x, w), _plain(r), o or _last(r)), 0,
            ))  # fmt: skip
    dilated = {"dilation": 2, "padding": 1}
    for rank in (1, 2, 3):
        window, layout = (3, 2, 2)[:rank], f"OI{_SPATIAL[rank]}"
        cases.append(Case(
            f"qnn.conv{rank}d_transpose",
            lambda x, w, r=rank, k=window, n=layout: getattr(OPS, f"conv{r}d_transpose")(x, w, *_PARAMETERS, kernel_size=k, channels=3, kernel_layout=n, **dilated),
            (codes(1, 2, *(4, 3, 3)[:rank], dtype="uint8"), codes(3, 2, *window)),
            lambda x, w, r=rank: _whole(getattr(F, f"conv_transpose{r}d"), x, w.swapaxes(0, 1), 7, 2, **dilated), 0,
        ))  # fmt: skip
    return cases


def affine_cases() -> list[Case]:
    steps, zeros = np.array([0.5, 0.25, 2], "float32"), np.array([1, -2, 0], "int32")
    data = floats(3, 4, low=-99, high=99)
    return [
        Case("qnn.dequantize", lambda x: OPS.dequantize(x, scale(steps), zero(zeros), 0, "float16"), (codes(3, 4),), lambda x: ((x.astype("int32") - zeros[:, None]) * steps[:, None]).astype("float16"), 1e-3),
        Case("qnn.simulated_quantize", lambda x: OPS.simulated_quantize(x, scale(steps), zero(zeros), 0, "int8"), (data,), lambda x: np.clip(np.rint(x / steps[:, None]) + zeros[:, None], -128, 127).astype("float32")),
        Case("qnn.batch_matmul", lambda x, y: ops.qnn.batch_matmul(x, y, zero(1), zero(2), scale(0.1), scale(0.2), transpose_a=True, transpose_b=False, out_dtype="int32"), (codes(2, 5, 3), codes(2, 5, 4)), lambda x, y: (x.astype("int32") - 1).swapaxes(1, 2) @ (y.astype("int32") - 2), 0),
    ]  # fmt: skip


def axis_cases() -> list[Case]:
    """Scales and zero points of each row or each column of the arguments."""
    by_row, by_column = np.array([0.1, 0.3, 0.2]), np.array([0.2, 0.05, 0.4, 0.1])
    zeros = np.array([1, -3, 0, 5])
    cases = []
    for name in ("add", "subtract"):

        def build(x: relay.Expr, y: relay.Expr, name: str = name) -> relay.Expr:
            parameters = (scale(by_row), zero(zeros[:3]), scale(by_column), zero(zeros))
            output = (scale(0.25), zero(2))
            return getattr(OPS, name)(x, y, *parameters, *output, lhs_axis=0, rhs_axis=1)

        def expected(x: Array, y: Array, name: str = name) -> Array:
            rows = x.astype("int64") - zeros[:3, None]
            columns = y.astype("int64") - zeros
            a = np.stack([requantized(rows[i], by_row[i], 0, 0.25, 2, "int32") for i in range(3)])
            b = np.stack([requantized(columns[:, j], by_column[j], 0, 0.25, 2, "int32") for j in range(4)], 1)  # fmt: skip
            a, b = a.astype("int64"), b.astype("int64")
            return clipped(a + b - 2 if name == "add" else a - b + 2, "int8")

        cases.append(Case(f"qnn.{name}", build, (codes(3, 4), codes(3, 4)), expected, 0))

    def product(x: relay.Expr, y: relay.Expr) -> relay.Expr:
        """The axis is the second of the result, the first of one operand."""
        parameters = (scale([0.5]), zero(1), scale(by_column), zero(zeros), scale(0.25), zero(2))
        return OPS.mul(x, y, *parameters, lhs_axis=0, rhs_axis=0)

    def exact(x: Array, y: Array) -> Array:
        whole = (x.astype("int64") - 1) * (y.astype("int64") - zeros[:, None])
        rows = [requantized(whole[:, j], 0.5 * as_float(by_column[j]), 0, 0.25, 2, "int8") for j in range(4)]  # fmt: skip
        return np.stack(rows, 1)

    cases.append(Case("qnn.mul", product, (codes(3, 4, 2), codes(4, 2)), exact, 0))
    return cases


def pool_cases() -> list[Case]:
    window: dict[str, Any] = {"pool_size": (2, 3), "strides": (2, 1), "padding": (1, 0), "dilation": (2, 1)}  # fmt: skip
    data = (codes(1, 6, 7, 2, dtype="uint8"),)
    same = (scale(0.1), zero(9), scale(0.1), zero(9))

    def expected(x: Array) -> Array:
        image = moved(x, "NHWC", "NCHW").astype("int64") - 9
        return clipped(np.trunc(_mean_of_windows(image, window, True)) + 9, "uint8")

    def beyond(x: Array) -> Array:
        image = moved(x, "NHWC", "NCHW").astype("float64") - 9
        found = F.avg_pool2d(
            torch.from_numpy(image), 2, 2, ceil_mode=True, count_include_pad=False
        ).numpy()
        return moved(clipped(np.trunc(found) + 9, "uint8"), "NCHW", "NHWC")

    plain: dict[str, Any] = {"pool_size": 2, "strides": 2, "padding": 0, "dilation": 1}
    return [
        Case("qnn.avg_pool2d", lambda x: OPS.avg_pool2d(x, *same, **window, out_layout="NCHW"), data, expected, 0),
        Case("qnn.avg_pool2d", lambda x: OPS.avg_pool2d(x, *same, **plain, ceil_mode=True, count_include_pad=False), data, beyond, 0),
    ]  # fmt: skip


def qnn_option_cases() -> list[Case]:
    return [*affine_cases(), *conv_cases(), *transposed_cases(), *axis_cases(), *pool_cases()]
