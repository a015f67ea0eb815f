"""Blocked convolutions: the tiles and the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.topi.common import check
from tvm import te, topi
from tvm.target.cpu import cpu_info
from tvm.topi.nn.conv2d.cpu import Conv2dConfig, channel_block, choose_conv2d, column_bands

TARGETS = ["llvm -mcpu=core-avx2", "llvm"]


def _reference(
    data: np.ndarray, weight: np.ndarray, stride: int, pad: int, dilation: int = 1
) -> np.ndarray:
    kh, kw = weight.shape[2:4]
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0)))
    window = ((kh - 1) * dilation + 1, (kw - 1) * dilation + 1)
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axis=(2, 3))
    views = views[:, :, ::stride, ::stride, :, ::dilation, ::dilation]
    return np.einsum("nchwiyx,ocyxij->nohwj", views, weight)


def _blocked(
    channels: int,
    size: int,
    out_channels: int,
    kernel: int,
    blocks: tuple[int, int],
    batch: int = 1,
) -> tuple[te.Tensor, te.Tensor]:
    inner, outer = blocks
    data = te.placeholder((batch, channels // inner, size, size, inner), name="data")
    weight = te.placeholder(
        (out_channels // outer, channels // inner, kernel, kernel, inner, outer), name="weight"
    )
    return data, weight


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "channels, size, out_channels, kernel, stride, pad, blocks",
    [
        (16, 9, 32, 3, 1, 1, (16, 16)),
        (3, 15, 16, 7, 2, 3, (3, 16)),
        (8, 7, 24, 1, 1, 0, (8, 8)),
        (10, 6, 7, 3, 1, 1, (10, 7)),
        (16, 1, 64, 1, 1, 0, (16, 16)),
        (16, 24, 32, 3, 1, 1, (16, 16)),
        (16, 24, 16, 5, 2, 2, (16, 16)),
        (32, 13, 32, 3, 2, 1, (16, 32)),
    ],
)
def test_blocked_convolution_agrees_with_numpy(
    channels: int,
    size: int,
    out_channels: int,
    kernel: int,
    stride: int,
    pad: int,
    blocks: tuple[int, int],
    target: str,
) -> None:
    batch = 1 if size == 24 else 2  # one image: threads share its rows
    data, weight = _blocked(channels, size, out_channels, kernel, blocks, batch)
    out = topi.nn.conv2d_NCHWc(
        data, weight, stride, pad, 1, f"NCHW{blocks[0]}c", f"NCHW{blocks[1]}c"
    )
    check(
        [data, weight, topi.nn.relu(out)],
        topi.x86.schedule_conv2d_NCHWc,
        lambda x, w: np.maximum(_reference(x, w, stride, pad), 0),
        target,
    )


@pytest.mark.parametrize("config", [Conv2dConfig(1, 1), Conv2dConfig(2, 3), Conv2dConfig(1, 9, 3)])
def test_every_tile_gives_the_same_numbers(config: Conv2dConfig) -> None:
    data, weight = _blocked(16, 9, 32, 3, (16, 16))
    out = topi.nn.conv2d_NCHWc(data, weight, 1, 1, 1, "NCHW16c", "NCHW16c")
    check(
        [data, weight, out],
        lambda outs: topi.x86.schedule_conv2d_NCHWc(outs, config),
        lambda x, w: _reference(x, w, 1, 1),
    )


def test_dilated_convolution_agrees_with_numpy() -> None:
    data, weight = _blocked(16, 9, 16, 3, (16, 16))
    out = topi.nn.conv2d_NCHWc(data, weight, 1, 2, 2, "NCHW16c", "NCHW16c")
    check(
        [data, weight, out],
        topi.x86.schedule_conv2d_NCHWc,
        lambda x, w: _reference(x, w, 1, 2, 2),
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size, stride", [(9, 1), (10, 2), (7, 1), (1, 1), (12, 1), (16, 2)])
def test_depthwise_convolution_agrees_with_numpy(size: int, stride: int, target: str) -> None:
    data = te.placeholder((1, 3, size, size, 8), name="data")
    weight = te.placeholder((3, 1, 3, 3, 1, 8), name="weight")
    out = topi.nn.depthwise_conv2d_NCHWc(data, weight, stride, 1, 1, "NCHW8c", "NCHW8c")

    def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
        views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        views = views[:, :, ::stride, ::stride]
        return np.clip(np.einsum("nchwjyx,cyxj->nchwj", views, w[:, 0, :, :, 0]), -0.5, 0.5)

    outs = topi.clip(out, -0.5, 0.5)
    check([data, weight, outs], topi.x86.schedule_depthwise_conv2d_NCHWc, reference, target)


def test_accumulators_fit_the_registers() -> None:
    for target in TARGETS:
        info = cpu_info(tvm.target.Target(target))
        for chunk in (1, 2, 3, 4, 8, 32):
            for columns in (1, 7, 13, 14, 28, 56, 112):
                for vectors in (1, 2):
                    tile = choose_conv2d(chunk, 7, columns, vectors, 576, info)
                    used = tile.channel_blocks * vectors * (tile.columns * tile.rows + 1)
                    assert used < info.vector_registers
                    assert chunk % tile.channel_blocks == 0 and columns % tile.columns == 0


def test_blocks_are_full_vectors_where_channels_allow() -> None:
    assert [channel_block(c, 16) for c in (64, 24, 3, 10, 1001, 1)] == [16, 8, 3, 10, 13, 1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "dilation", "pad"), [(9, 6, 6), (7, 4, 5)])
def test_rows_of_zeros_may_be_left_out(size: int, dilation: int, pad: int, target: str) -> None:
    data, weight = _blocked(16, size, 32, 3, (16, 16))
    args = (data, weight, 1, pad, dilation, "NCHW16c", "NCHW16c")
    with tvm.target.Target(target):
        assert topi.x86.conv2d.should_skip_border_rows(topi.nn.conv2d_NCHWc(*args), pad)
        out = topi.nn.conv2d_NCHWc(*args, skip_border_rows=True)
    check(
        [data, weight, out],
        topi.x86.schedule_conv2d_NCHWc,
        lambda x, w: _reference(x, w, 1, pad, dilation),
        target,
    )


def test_few_rows_of_zeros_are_not_worth_a_test() -> None:
    data, weight = _blocked(16, 14, 32, 3, (16, 16))
    with tvm.target.Target("llvm"):
        out = topi.nn.conv2d_NCHWc(data, weight, 1, 1, 1, "NCHW16c", "NCHW16c")
        assert not topi.x86.conv2d.should_skip_border_rows(out, 1)


@pytest.mark.parametrize("columns", [9001, 9037])
def test_a_long_row_is_shared_in_bands_that_stay_in_the_cache(columns: int) -> None:
    data = te.placeholder((1, 4, 1, columns, 16), name="data")
    weight = te.placeholder((4, 4, 1, 3, 16, 16), name="weight")
    out = topi.nn.conv2d_NCHWc(data, weight, (1, 2), (0, 0), 1, "NCHW16c", "NCHW16c")
    with tvm.target.Target("llvm -num-cores=2") as target:
        info = cpu_info(target)
        assert column_bands(out.op, 200, info) >= 2
        assert column_bands(out.op, 3, info) == 0

    def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        views = np.lib.stride_tricks.sliding_window_view(x, 3, axis=3)[:, :, :, ::2]
        return np.einsum("nchwix,ocyxij->nohwj", views, w, optimize=True)

    check([data, weight, out], topi.x86.schedule_conv2d_NCHWc, reference, "llvm -num-cores=2")
