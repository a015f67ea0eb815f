"""Winograd's convolution: the numbers of every shape, the groups of tiles, the choice."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi
from tvm.contrib import graph_executor
from tvm.target.cpu import cpu_info
from tvm.topi.nn.conv2d.winograd import input_line, kernel_matrix, output_line
from tvm.topi.x86.conv2d import (
    WinogradShape,
    choose_winograd,
    conv2d_NCHWc_winograd,
    winograd_tile,
)

TARGETS = ["llvm -mcpu=core-avx2", "llvm"]
Pads = tuple[int, int, int, int]


def _plain(data: np.ndarray, weight: np.ndarray, pads: Pads) -> np.ndarray:
    """NCHW data by OIHW weights."""
    top, left, bottom, right = pads
    padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwyx,ocyx->nohw", views, weight, optimize=True)


def _blocked(array: np.ndarray, block: int) -> np.ndarray:
    n, channels, height, width = array.shape
    return array.reshape(n, channels // block, block, height, width).transpose(0, 1, 3, 4, 2)


def _packed(weight: np.ndarray, tile: int, blocks: tuple[int, int]) -> np.ndarray:
    """OIHW weights transformed, as OHWI{i}i{o}o."""
    inner, outer = blocks
    reach, out_channels, channels = tile + 2, *weight.shape[:2]
    moved = topi.nn.winograd_weights(weight, tile).reshape(
        reach, reach, out_channels // outer, outer, channels // inner, inner
    )
    return moved.transpose(2, 0, 1, 4, 5, 3)


def _error(
    tile: int,
    shape: tuple[int, int, int, int],
    out_channels: int,
    blocks: tuple[int, int],
    pads: Pads,
    target: str = "llvm",
    group: int = 1,
) -> float:
    """The largest difference from numpy, as a share of the largest output."""
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, shape).astype("float32")
    weight = rng.uniform(-1, 1, (out_channels, shape[1], 3, 3)).astype("float32")
    bias = rng.uniform(-1, 1, (1, out_channels, 1, 1)).astype("float32")
    inputs = [
        _blocked(data, blocks[0]), _packed(weight, tile, (blocks[0], group * blocks[1])), _blocked(bias, blocks[1])
    ]  # fmt: skip
    holders = [te.placeholder(x.shape, name=f"in{i}") for i, x in enumerate(inputs)]
    where = tvm.target.Target(target)
    with where:
        layouts = [f"NCHW{block}c" for block in blocks]
        out = conv2d_NCHWc_winograd(*holders[:2], pads, tile, *layouts)
        out = topi.nn.relu(topi.add(out, holders[2]))
        s = topi.x86.schedule_conv2d_NCHWc_winograd([out])
        func = tvm.build(s, [*holders, out], where)
    expected = np.maximum(_plain(data, weight, pads) + bias, 0)
    result = tvm.nd.array(np.full([int(d) for d in out.shape], np.nan, "float32"))
    func(*[tvm.nd.array(np.ascontiguousarray(x)) for x in inputs], result)
    found = np.abs(result.numpy() - _blocked(expected, blocks[1])).max()
    return float(found / np.abs(expected).max())


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape, out_channels, blocks, pads",
    [
        ((1, 16, 14, 14), 32, (16, 16), (1, 1, 1, 1)),
        ((2, 32, 7, 9), 16, (16, 8), (1, 1, 1, 1)),
        ((1, 10, 17, 13), 21, (5, 7), (0, 0, 0, 0)),
        ((1, 8, 3, 3), 16, (8, 16), (0, 0, 0, 0)),
        ((3, 4, 5, 31), 24, (4, 8), (2, 0, 1, 3)),
        ((1, 16, 1, 1), 16, (16, 16), (1, 1, 1, 1)),
        ((1, 48, 23, 19), 96, (16, 32), (1, 1, 1, 1)),
    ],
)
def test_winograd_convolution_agrees_with_numpy(
    shape: tuple[int, int, int, int],
    out_channels: int,
    blocks: tuple[int, int],
    pads: Pads,
    target: str,
    tile: int,
) -> None:
    assert _error(tile, shape, out_channels, blocks, pads, target) < 1e-4


@pytest.mark.parametrize("group", [2, 4])
def test_groups_of_channels_lie_side_by_side(group: int) -> None:
    assert _error(4, (1, 16, 14, 11), 64, (16, 16), (1, 1, 1, 1), group=group) < 1e-4


def test_many_channels_keep_the_error_small() -> None:
    assert _error(4, (1, 1024, 9, 9), 16, (16, 16), (1, 1, 1, 1)) < 1.5e-6


@pytest.mark.parametrize("blocks", [(1024, 16), (8, 16)])
def test_sums_are_as_short_whatever_the_blocks_of_channels(blocks: tuple[int, int]) -> None:
    assert _error(4, (1, 1024, 9, 9), 16, blocks, (1, 1, 1, 1)) < 1.5e-6


@pytest.mark.parametrize("tile", [2, 4])
def test_transforms_of_a_line_are_its_correlation(tile: int) -> None:
    data = np.random.default_rng(0).uniform(-1, 1, tile + 2)
    window = np.array([0.3, -0.7, 0.2])
    products = (kernel_matrix(tile) @ window) * np.array(input_line(data, tile))
    expected = np.correlate(data, window)
    np.testing.assert_allclose(output_line(products, tile), expected, rtol=1e-12, atol=1e-12)


def test_groups_of_tiles_fit_the_registers() -> None:
    for target in TARGETS:
        info = cpu_info(tvm.target.Target(target))
        lanes = info.fp32_lanes
        for grid in [(1, 1), (2, 2), (4, 4), (7, 7), (13, 17), (14, 14), (56, 56)]:
            for chunks in [(1, 1), (2, 3), (4, 8), (32, 32)]:
                shape = WinogradShape(4, 1, grid, chunks, (lanes, lanes))
                found, _ = choose_winograd(shape, info)
                held = found.channel_blocks * (found.rows * found.columns + 1)
                assert held < info.vector_registers
                assert chunks[1] % found.channel_blocks == 0


def test_choice_follows_the_shape() -> None:
    def chosen(data_shape: tuple[int, ...], channels: int, dtype: str = "float32") -> int:
        blocks = (min(data_shape[1], 16), 16)
        found = winograd_tile(data_shape, channels, (1, 1, 1, 1), blocks, dtype)
        return 0 if found is None else found[0]

    with tvm.target.Target("llvm -mcpu=x86-64-v4"):
        assert chosen((1, 64, 56, 56), 64) == 4
        assert chosen((1, 64, 1, 1), 64) == 0
        assert chosen((1, 3, 224, 224), 64) == 0
        assert chosen((1, 64, 56, 56), 64, "float16") == 0
        # weights of 512 x 512 channels come from memory: the larger tile pays for many images
        assert chosen((1, 512, 7, 7), 512) < 4
        assert chosen((32, 512, 7, 7), 512) == 4
    with tvm.target.Target("llvm -mcpu=x86-64-v3"):  # they do so beside narrow vectors too
        assert chosen((1, 128, 28, 28), 128) == 4
        assert chosen((1, 512, 7, 7), 512) < 4


@pytest.mark.parametrize("tile", [2, 4])
def test_operators_on_plain_layouts_agree_with_the_convolution(tile: int) -> None:
    x = relay.var("x", shape=(2, 5, 9, 10))
    w = relay.var("w", shape=(7, 5, 3, 3))
    moved = relay.nn.contrib_conv2d_winograd_weight_transform(w, tile)
    out = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        x, moved, tile, padding=1, channels=7, kernel_size=3
    )
    rng = np.random.default_rng(1)
    data = rng.uniform(-1, 1, (2, 5, 9, 10)).astype("float32")
    weight = rng.uniform(-1, 1, (7, 5, 3, 3)).astype("float32")
    found = _run(relay.Function([x, w], out), {"x": data, "w": weight}, {})
    np.testing.assert_allclose(found, _plain(data, weight, (1, 1, 1, 1)), rtol=1e-4, atol=1e-4)


def test_build_transforms_constant_weights_and_no_others() -> None:
    x = relay.var("x", shape=(1, 64, 28, 28))
    w = relay.var("w", shape=(64, 64, 3, 3))
    func = relay.Function([x, w], relay.nn.conv2d(x, w, padding=1))
    rng = np.random.default_rng(2)
    data = rng.uniform(-1, 1, (1, 64, 28, 28)).astype("float32")
    weight = rng.uniform(-1, 1, (64, 64, 3, 3)).astype("float32")
    texts = []
    for params in ({}, {"w": weight}):
        with tvm.transform.PassContext(opt_level=3):
            mod = tvm.IRModule.from_expr(func)
            texts.append(str(relay.optimize(mod, "llvm", params)[0]))
        inputs = {"x": data} if params else {"x": data, "w": weight}
        found = _run(func, inputs, params)
        expected = _plain(data, weight, (1, 1, 1, 1))
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    assert "winograd" not in texts[0]
    assert "winograd_without_weight_transform" in texts[1]
    assert "weight_transform(" not in texts[1].replace("without_weight_transform(", "")


def test_windows_of_other_sizes_are_rejected() -> None:
    with pytest.raises(ValueError, match="requires tiles of 2 or 4 and 3x3 windows, got .* 5x5"):
        topi.nn.conv2d_winograd_weight_transform(te.placeholder((8, 8, 5, 5)), 2)


def _run(
    func: relay.Function, inputs: dict[str, np.ndarray], params: dict[str, np.ndarray]
) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(func), "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return np.asarray(module.get_output(0).numpy())


@pytest.mark.parametrize("channels", [16, 384])
def test_sums_are_added_up_in_registers(channels: int) -> None:
    with tvm.target.Target("llvm -mcpu=x86-64-v4"):
        data = te.placeholder((1, channels // 16, 13, 13, 16))
        kernel = te.placeholder((channels // 16, 4, 4, channels // 16, 16, 16))
        layouts = ("NCHW16c", "NCHW16c")
        conv = topi.x86.conv2d.conv2d_NCHWc_winograd(data, kernel, 1, 2, *layouts, "float32")
        s = topi.x86.schedule_conv2d_NCHWc_winograd([conv])
    stages = [stage for stage in s.stages if isinstance(stage.op, te.tensor.ComputeOp)]
    sums = [stage for stage in stages if stage.op.reduce_axis]
    assert sums and {stage.scope for stage in sums} == {"local"}
