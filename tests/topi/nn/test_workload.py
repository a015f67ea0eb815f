"""Convolutions as records of numbers, and the tiles that untuned templates start with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.topi.generic.conv2d import (
    fallback_schedule_cpu_1x1_int8,
    fallback_schedule_cpu_common_int8,
)
from tvm.topi.x86.conv2d_avx_common import _fallback_schedule

from tvm import autotvm, te, topi
from tvm.topi.nn.conv2d import _get_workload
from tvm.topi.nn.depthwise_conv2d import _get_workload as depthwise_workload

DATA, KERNEL = te.placeholder((1, 64, 32, 30)), te.placeholder((128, 64, 3, 3))


@pytest.mark.parametrize(
    ("padding", "dilation", "extents"),
    [((1, 1), 1, (32, 30)), ((0, 1, 0, 2), 1, (30, 31)), ("SAME", 2, (32, 30)), (0, (2, 1), (28, 28))],
)  # fmt: skip
def test_tiles_of_a_row_cover_it(padding: Any, dilation: Any, extents: tuple[int, int]) -> None:
    workload = _get_workload(DATA, KERNEL, (1, 1), padding, dilation, "float32")
    assert workload.out_extents() == extents
    cfg = autotvm.get_config()
    _fallback_schedule(cfg, workload)
    assert np.prod(cfg["tile_ow"].size) == extents[1]
    assert [np.prod(cfg[name].size) for name in ("tile_ic", "tile_oc")] == [64, 128]


def test_layouts_with_channels_last_give_the_same_record() -> None:
    plain = _get_workload(DATA, KERNEL, 2, 1, 1, "float32")
    last = te.placeholder((1, 32, 30, 64)), te.placeholder((3, 3, 64, 128))
    assert _get_workload(*last, 2, 1, 1, "float32", "NHWC") == plain
    with pytest.raises(ValueError, match="requires the layout"):
        _get_workload(*last, 2, 1, 1, "float32", "NCHW8c")


def test_each_channel_of_a_depthwise_convolution_is_a_group() -> None:
    found = depthwise_workload(DATA, te.placeholder((64, 2, 3, 3)), 1, 1, 1, "float32")
    assert (found.groups, found.in_filter, found.out_filter) == (64, 64, 128)


def test_tiles_of_narrow_numbers_fill_an_instruction() -> None:
    workload = _get_workload(DATA, te.placeholder((128, 64, 1, 1)), 1, 0, 1, "int32")
    for fallback in (fallback_schedule_cpu_common_int8, fallback_schedule_cpu_1x1_int8):
        cfg = autotvm.get_config()
        fallback(cfg, workload, 16, 4)
        assert cfg["tile_oc"].size == [8, 16] and cfg["tile_ic"].size[-1] % 4 == 0
        with pytest.raises(ValueError, match="requires output channels in blocks of 48"):
            fallback(cfg, workload, 48, 4)


def test_blocks_tell_the_layouts() -> None:
    task = (
        "conv2d_NCHWc.x86", ("TENSOR", (1, 64, 32, 30), "float32"),
        ("TENSOR", (128, 64, 3, 3), "float32"), (2, 2), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32",
    )  # fmt: skip
    cfg = autotvm.get_config()
    fallback_schedule_cpu_common_int8(cfg, _get_workload(DATA, KERNEL, 2, 1, 1, "float32"), 16, 8)
    given, made = topi.nn.conv2d_infer_layout(task, cfg)
    assert given == (((1, 4, 32, 30, 16), "NCHW16c"),)
    assert made == (((1, 8, 16, 15, 16), "NCHW16c"),)
