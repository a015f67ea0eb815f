"""Zero points of depthwise kernels that have several filters for each channel."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay

CHANNELS, FILTERS = 4, 2
KERNELS = {"OIHW": (CHANNELS, FILTERS, 3, 3), "HWOI": (3, 3, CHANNELS, FILTERS)}
DATA = {"OIHW": ("NCHW", (2, CHANNELS, 6, 6)), "HWOI": ("NHWC", (2, 6, 6, CHANNELS))}


def _expected(x: np.ndarray, w: np.ndarray, z: int, points: np.ndarray, layout: str) -> np.ndarray:
    """The sums, channels and filters counted together."""
    data = x if layout == "OIHW" else x.transpose(0, 3, 1, 2)
    kernel = w if layout == "OIHW" else w.transpose(2, 3, 0, 1)
    data = data.astype("int64") - z
    kernel = kernel.astype("int64") - np.broadcast_to(points, (CHANNELS, FILTERS))[..., None, None]
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,cfij->ncfhw", windows, kernel)
    sums = sums.reshape(len(x), CHANNELS * FILTERS, *sums.shape[-2:])
    return sums if layout == "OIHW" else sums.transpose(0, 2, 3, 1)


@pytest.mark.parametrize("layout", KERNELS)
@pytest.mark.parametrize("data_zero", [0, 7])
@pytest.mark.parametrize("count", [1, CHANNELS, CHANNELS * FILTERS])
def test_zero_points_of_channels_or_filters(layout: str, data_zero: int, count: int) -> None:
    data_layout, shape = DATA[layout]
    points = np.arange(1, count + 1, dtype="int32")
    x = relay.var("x", shape=shape, dtype="uint8")
    w = relay.var("w", shape=KERNELS[layout], dtype="uint8")
    one = relay.const(np.float32(1))
    zero = relay.const(points if count > 1 else points[0])
    call = relay.qnn.conv2d(
        x, w, relay.const(data_zero), zero, one, one, (3, 3), CHANNELS * FILTERS,
        groups=CHANNELS, data_layout=data_layout, kernel_layout=layout,
    )  # fmt: skip
    random = np.random.default_rng(count)
    values = [random.integers(0, 255, s).astype("uint8") for s in (shape, KERNELS[layout])]
    mod = tvm.IRModule.from_expr(relay.Function([x, w], call))
    found = relay.create_executor("graph", mod=mod).evaluate()(*values).numpy()
    by_filter = (
        points.reshape(-1, 1) if count == CHANNELS else points.reshape(-1, min(count, FILTERS))
    )
    np.testing.assert_array_equal(found, _expected(*values, data_zero, by_filter, layout))
