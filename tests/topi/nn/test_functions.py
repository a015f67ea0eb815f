"""Functions of topi.nn that relay composes of others: each against PyTorch or numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import te, topi

RNG = np.random.default_rng(5)
Array = np.ndarray


def floats(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype("float32")


def evaluated(build: Callable[..., te.Tensor], *arrays: Array) -> Array:
    """The result of a compute, its loops in order."""
    inputs = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    out = build(*inputs)
    func = tvm.build(te.create_schedule(out.op), [*inputs, out], "llvm")
    result = tvm.nd.empty([int(d) for d in out.shape], out.dtype)
    func(*[tvm.nd.array(a) for a in arrays], result)
    return result.numpy()


def _torch(function: Any, *arrays: Array, **options: Any) -> Array:
    return function(*[torch.from_numpy(np.ascontiguousarray(a)) for a in arrays], **options).numpy()


def _assert_close(found: Array, wanted: Any) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv1d(groups: int) -> None:
    x, w = floats(2, 4, 9), floats(6, 4 // groups, 3)
    wanted = _torch(F.conv1d, x, w, stride=2, padding=1, groups=groups)
    _assert_close(evaluated(lambda a, b: topi.nn.group_conv1d_ncw(a, b, 2, 1, 1, groups), x, w), wanted)  # fmt: skip
    last = x.transpose(0, 2, 1).copy(), w.transpose(2, 1, 0).copy()
    found = evaluated(lambda a, b: topi.nn.group_conv1d_nwc(a, b, 2, 1, 1, groups), *last)
    _assert_close(found.transpose(0, 2, 1), wanted)
    if groups == 1:
        _assert_close(evaluated(lambda a, b: topi.nn.conv1d_ncw(a, b, 2, 1), x, w), wanted)
        found = evaluated(lambda a, b: topi.nn.conv1d_nwc(a, b, 2, 1), *last)
        _assert_close(found.transpose(0, 2, 1), wanted)


def test_depth_to_space_and_back() -> None:
    x = floats(2, 8, 3, 4)
    _assert_close(evaluated(lambda a: topi.nn.depth_to_space(a, 2, mode="CRD"), x), _torch(F.pixel_shuffle, x, upscale_factor=2))  # fmt: skip
    there = evaluated(lambda a: topi.nn.depth_to_space(a, 2, "NHWC"), x.transpose(0, 2, 3, 1).copy())  # fmt: skip
    back = evaluated(lambda a: topi.nn.space_to_depth(a, 2, "NHWC"), there)
    _assert_close(back.transpose(0, 3, 1, 2), x)


def test_space_to_batch_and_back() -> None:
    x = floats(2, 5, 6, 3)
    there = evaluated(lambda a: topi.nn.space_to_batch_nd(a, [2, 3], [1, 0], [0, 3], 0.5), x)
    padded = np.pad(x, ((0, 0), (1, 0), (0, 3), (0, 0)), constant_values=0.5)
    parts = [padded[:, i::2, j::3] for i in range(2) for j in range(3)]
    _assert_close(there, np.concatenate(parts))
    _assert_close(evaluated(lambda a: topi.nn.batch_to_space_nd(a, [2, 3], [1, 0], [0, 3]), there), x)  # fmt: skip


def test_group_norm() -> None:
    x, gamma, beta = floats(2, 6, 4, 3), floats(6), floats(6)
    found = evaluated(lambda a, g, b: topi.nn.group_norm(a, g, b, 3, 1, [2, 3]), x, gamma, beta)
    arrays = [torch.from_numpy(a) for a in (x, gamma, beta)]
    _assert_close(found, F.group_norm(arrays[0], 3, arrays[1], arrays[2]).numpy())


def test_instance_norm() -> None:
    x, gamma, beta = floats(2, 5, 4, 3), floats(5), floats(5)
    found = evaluated(lambda a, g, b: topi.nn.instance_norm(a, g, b, [2, 3]), x, gamma, beta)
    arrays = [torch.from_numpy(a) for a in (x, gamma, beta)]
    wanted = F.instance_norm(arrays[0], weight=arrays[1], bias=arrays[2]).numpy()
    _assert_close(found, wanted)


def test_rms_norm() -> None:
    x, weight = floats(2, 3, 8), floats(8)
    found = evaluated(lambda a, w: topi.nn.rms_norm(a, w, [-1]), x, weight)
    _assert_close(found, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_nll_loss(reduction: str) -> None:
    x, weights = floats(3, 5, 4), np.abs(floats(5))
    targets = RNG.integers(0, 5, (3, 4)).astype("int64")
    targets[1, 2] = -100
    found = evaluated(lambda p, t, w: topi.nn.nll_loss(p, t, w, reduction, -100), x, targets, weights)  # fmt: skip
    arrays = [torch.from_numpy(a) for a in (x, targets, weights)]
    _assert_close(found, F.nll_loss(*arrays, reduction=reduction).numpy())


def test_scale_shift() -> None:
    x, scale, shift = floats(1, 3, 4, 5), floats(3), floats(3)
    wanted = x * scale[:, None, None] + shift[:, None, None]
    _assert_close(evaluated(topi.nn.scale_shift_nchw, x, scale, shift), wanted)
    last = evaluated(topi.nn.scale_shift_nhwc, x.transpose(0, 2, 3, 1).copy(), scale, shift)
    _assert_close(last.transpose(0, 3, 1, 2), wanted)
    blocked = evaluated(topi.nn.scale_shift_nchwc, x[..., None], scale[:, None], shift[:, None])
    _assert_close(blocked[..., 0], wanted)


def test_upsampling() -> None:
    x, volume = floats(1, 2, 3, 4), floats(1, 2, 2, 3, 4)
    _assert_close(evaluated(lambda a: topi.nn.upsampling(a, 2, 3), x), x.repeat(2, 2).repeat(3, 3))
    found = evaluated(lambda a: topi.nn.upsampling3d(a, 2, 2, 2, method="trilinear"), volume)
    _assert_close(found, _torch(F.interpolate, volume, scale_factor=2, mode="trilinear"))


@pytest.mark.parametrize("factor", [2, 1.5])
def test_upsampling_of_open_extents(factor: float) -> None:
    x, extents = floats(1, 2, 3, 4), (te.size_var("h"), te.size_var("w"))
    data = te.placeholder((1, 2, *extents))
    out = topi.nn.upsampling(data, factor, 2, method="bilinear", align_corners=True)
    function = tvm.build(te.create_schedule(out.op), [data, out], "llvm")
    found = tvm.nd.array(np.zeros((1, 2, round(3 * factor), 8), "float32"))
    function(tvm.nd.array(x), found)
    _assert_close(found.numpy(), evaluated(lambda a: topi.nn.upsampling(a, factor, 2, method="bilinear", align_corners=True), x))  # fmt: skip


def test_unpacked_channels_are_in_order() -> None:
    x = floats(1, 2, 3, 4, 8)
    found = evaluated(lambda a: topi.nn.unpack_NCHWc_to_nchw(a, "float32"), x)
    _assert_close(found, x.transpose(0, 1, 4, 2, 3).reshape(1, 16, 3, 4))


def test_signs_in_words_give_products_of_signs() -> None:
    x, w = floats(3, 64), floats(5, 64)
    packed = [evaluated(topi.nn.binarize_pack, a) for a in (x, w)]
    signs = [np.where(a >= 0, 1, -1) for a in (x, w)]
    found = evaluated(topi.nn.binary_dense, *packed)
    np.testing.assert_array_equal(found, signs[0] @ signs[1].T)


def test_padding_and_stride_are_inferred() -> None:
    data, padded = te.placeholder((1, 3, 8, 6)), te.placeholder((1, 3, 10, 10))
    assert topi.nn.infer_pad(data, padded) == (1, 2)
    assert topi.nn.infer_pad(data, None) == (0, 0)
    kernel, out = te.placeholder((4, 3, 3, 3)), te.placeholder((1, 4, 4, 8))
    assert topi.nn.infer_stride(padded, kernel, out) == (2, 1)
    wide = te.placeholder((1, 6, 8, 8, 3))
    assert topi.nn.infer_pad3d(te.placeholder((1, 4, 8, 6, 3)), wide, "NDHWC") == (1, 0, 1)
    assert topi.nn.get_pad_tuple3d("SAME", (3, 3, 3)) == (1,) * 6


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_depthwise_convolution(stride: int) -> None:
    x, w = floats(2, 3, 7, 6), floats(6, 1, 3, 3)
    data, kernel = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    out = F.conv2d(data, kernel, stride=stride, padding=1, groups=3)
    grad = floats(*out.shape)
    out.backward(torch.from_numpy(grad))
    last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (x, grad)]
    weight = np.ascontiguousarray(w.reshape(3, 2, 3, 3).transpose(2, 3, 0, 1))
    shapes = last[1].shape, last[0].shape, weight.shape
    found = evaluated(lambda f, g: topi.nn.depthwise_conv2d_backward_input_nhwc(f, g, shapes[0], shapes[1], stride, 1), weight, last[1])  # fmt: skip
    _assert_close(found.transpose(0, 3, 1, 2), data.grad.numpy())
    found = evaluated(lambda a, g: topi.nn.depthwise_conv2d_backward_weight_nhwc(a, g, shapes[0], shapes[2], stride, 1), last[0], last[1])  # fmt: skip
    _assert_close(found.transpose(2, 3, 0, 1).reshape(6, 1, 3, 3), kernel.grad.numpy())


@pytest.mark.parametrize("projected", [0, 2])
def test_lstm_over_a_sequence(projected: int) -> None:
    layer = torch.nn.LSTM(3, 4, proj_size=projected)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    weights = [getattr(layer, name).detach().numpy() for name in names]
    more = [layer.weight_hr_l0.detach().numpy()] if projected else []
    x, h, c = floats(5, 2, 3), floats(1, 2, projected or 4), floats(1, 2, 4)

    def build(*tensors: te.Tensor) -> te.Tensor:
        states = topi.nn.lstm(*tensors[:5], tensors[5], tensors[6], *tensors[7:])
        return states[0]

    found = evaluated(build, x, *weights, h[0], c[0], *more)
    arrays = [torch.from_numpy(a) for a in (x, h, c)]
    _assert_close(found, layer(arrays[0], (arrays[1], arrays[2]))[0].detach().numpy())


def test_lstm_from_the_end_gives_the_states_in_its_own_order() -> None:
    x, wi, wh = floats(4, 2, 3), floats(8, 3), floats(8, 2)
    backwards = evaluated(lambda a, b, c: topi.nn.lstm(a, b, c, reverse=True)[0], x, wi, wh)
    forwards = evaluated(lambda a, b, c: topi.nn.lstm(a, b, c)[0], x[::-1].copy(), wi, wh)
    _assert_close(backwards, forwards)
    _assert_close(backwards, topi.testing.lstm_python(x, wi, wh, reverse=True)[0])
