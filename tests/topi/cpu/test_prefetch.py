"""Weights that come from memory are asked for a panel ahead."""

import pytest

import tvm
from tvm import te, topi
from tvm.topi.cpu.common import processor
from tvm.topi.nn.conv2d.cpu import schedule_conv2d_NCHWc
from tvm.topi.nn.dense.cpu import schedule_dense_pack


def conv_text(channels: int, out_channels: int, size: int, window: int) -> str:
    data = te.placeholder((1, channels // 16, size, size, 16))
    weights = te.placeholder((out_channels // 16, channels // 16, window, window, 16, 16))
    pad = window // 2
    conv = topi.nn.conv2d_NCHWc(
        data, weights, 1, (pad, pad, pad, pad), 1, "NCHW16c", "NCHW16c", "float32"
    )
    out = topi.nn.relu(conv)
    return str(tvm.lower(schedule_conv2d_NCHWc([out]), [data, weights, out]))


def dense_text(rows: int, inner: int, units: int) -> str:
    data, weights = te.placeholder((rows, inner)), te.placeholder((units // 32, inner, 32))
    out = topi.nn.relu(topi.nn.dense_pack(data, weights))
    return str(tvm.lower(schedule_dense_pack([out]), [data, weights, out]))


@pytest.mark.parametrize("window", [1, 3])
def test_a_convolution_prefetches_the_next_panel(window: int) -> None:
    with tvm.target.Target("llvm"):
        channels = 64 * processor().cores
        while channels * channels * window * window * 4 <= processor().l2 // 2:
            channels *= 2
        assert conv_text(channels, channels, 7, window).count("tir.prefetch") == 1


def test_a_dense_layer_prefetches_the_next_panel() -> None:
    with tvm.target.Target("llvm"):
        inner = processor().l2 // 2 // 4 // 128
        assert dense_text(64, inner, 256).count("tir.prefetch") == 1


def test_weights_that_stay_in_the_second_cache_are_not_prefetched() -> None:
    with tvm.target.Target("llvm"):
        assert "tir.prefetch" not in conv_text(64, 64, 14, 1)
        assert "tir.prefetch" not in dense_text(64, 64, 64)


def test_a_single_row_streams_by_itself() -> None:
    with tvm.target.Target("llvm"):
        assert "tir.prefetch" not in dense_text(1, processor().l2 // 512, 256)
