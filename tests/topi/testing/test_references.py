"""The references in numpy against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import topi
from tvm.topi import testing as ref

RNG = np.random.default_rng(11)


def _floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def _close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-5)


def _t(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]


def _conv_cases() -> list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    x1, x2, x3 = _floats(2, 4, 9), _floats(2, 4, 9, 8), _floats(1, 2, 5, 6, 7)
    w1, w2, w3 = _floats(6, 2, 3), _floats(6, 2, 3, 2), _floats(3, 2, 2, 3, 3)
    t1, t2, t3 = _floats(4, 3, 3), _floats(4, 3, 3, 4), _floats(2, 3, 2, 3, 3)
    d = _floats(4, 2, 3, 3)
    return [
        ("group_conv1d", lambda a, w: ref.group_conv1d_ncw_python(a, w, 2, 1, 2, 2), lambda a, w: F.conv1d(a, w, None, 2, 1, 2, 2), (x1, w1)),
        ("conv2d", lambda a, w: ref.conv2d_nchw_python(a, w, (2, 1), (1, 0), 2), lambda a, w: F.conv2d(a, w, None, (2, 1), (1, 0), 1, 2), (x2, w2)),
        ("conv3d", lambda a, w: ref.conv3d_ncdhw_python(a, w, 1, 1), lambda a, w: F.conv3d(a, w, None, 1, 1), (x3, w3)),
        ("conv1d_transpose", lambda a, w: ref.conv1d_transpose_ncw_python(a, w, 2, 1, 1), lambda a, w: F.conv_transpose1d(a, w, None, 2, 1, 1), (x1, t1)),
        ("conv2d_transpose", lambda a, w: ref.conv2d_transpose_nchw_python(a, w, 3, 2, (1, 0)), lambda a, w: F.conv_transpose2d(a, w, None, 3, 2, (1, 0)), (x2, t2)),
        ("group_transpose", lambda a, w: ref.conv2d_transpose_nchw_python(a, w, 1, 0, 0, 2), lambda a, w: F.conv_transpose2d(a, w, None, 1, 0, 0, 2), (x2, t2)),
        ("conv3d_transpose", lambda a, w: ref.conv3d_transpose_ncdhw_python(a, w, 2, 1, 1), lambda a, w: F.conv_transpose3d(a, w, None, 2, 1, 1), (x3, t3)),
        ("depthwise", lambda a, w: ref.depthwise_conv2d_python_nchw(a, w, 1, "SAME"), lambda a, w: F.conv2d(a, w.reshape(8, 1, 3, 3), None, 1, 1, 1, 4), (x2, d)),
        ("nhwc", lambda a, w: ref.conv2d_nhwc_python(a.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), 1, 1, 2).transpose(0, 3, 1, 2), lambda a, w: F.conv2d(a, w, None, 1, 1, 1, 2), (x2, w2)),
        ("backward_weight", lambda a, g: ref.conv2d_backward_weight_python(g, a, (3, 2), 2, 1, groups=2), lambda a, g: torch.nn.grad.conv2d_weight(a, (6, 2, 3, 2), g, 2, 1, 1, 2), (x2, _floats(2, 6, 5, 5))),
    ]  # fmt: skip


def _other_cases() -> list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    x, g = _floats(2, 4, 6, 5), _floats(4)
    grid2, grid3, volume = (
        _floats(2, 2, 3, 4) * 1.3,
        _floats(1, 3, 2, 3, 4) * 1.3,
        _floats(1, 2, 4, 5, 3),
    )
    theta = _floats(2, 2, 3)
    logits, targets = _floats(3, 5, 4), RNG.integers(0, 5, (3, 4))
    cases: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
        ("max_pool", lambda a: ref.poolnd_python(a, (3, 2), (2, 2), (1, 2), (1, 0), (1, 0), "max", ceil_mode=True), lambda a: F.max_pool2d(a, (3, 2), 2, (1, 0), (1, 2), True), (x,)),
        ("avg_pool", lambda a: ref.poolnd_python(a, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "avg", False, True), lambda a: F.avg_pool2d(a, (3, 3), 2, 1, True, False), (x,)),
        ("avg_pool_pad", lambda a: ref.poolnd_python(a, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "avg", True, True), lambda a: F.avg_pool2d(a, (3, 3), 2, 1, True, True), (x,)),
        ("adaptive", lambda a: ref.adaptive_pool(a, (4, 3), "avg", "NCHW"), lambda a: F.adaptive_avg_pool2d(a, (4, 3)), (x,)),
        ("layer_norm", lambda a, w: ref.layer_norm_python(a.swapaxes(1, 3), w, w, -1).swapaxes(1, 3), lambda a, w: F.layer_norm(a.transpose(1, 3), (4,), w, w).transpose(1, 3), (x, g)),
        ("group_norm", lambda a, w: ref.group_norm_python(a, w, w, 2, 1, (2, 3)), lambda a, w: F.group_norm(a, 2, w, w), (x, g)),
        ("instance_norm", lambda a, w: ref.instance_norm_python(a, w, w, (2, 3)), lambda a, w: F.instance_norm(a, weight=w, bias=w), (x, g)),
        ("rms_norm", lambda a: ref.rms_norm_python(a, np.ones(5, "float32"), -1), lambda a: F.rms_norm(a, (5,), eps=1e-5), (x,)),
        ("batch_norm", lambda a, w: ref.batch_norm(a, w, w, w * 0, w * 0 + 1, 1, 1e-5, True, True, True, 0.9)[0], lambda a, w: F.batch_norm(a, None, None, w, w, True), (x, g)),
        ("lrn", lambda a: ref.lrn_python(a, 3, 1, 2.0, 0.1, 0.75), lambda a: F.local_response_norm(a, 3, 0.1, 0.75, 2.0), (x,)),
        ("log_softmax", lambda a: ref.log_softmax_python(a), lambda a: F.log_softmax(a, 1), (x,)),
        ("nll_loss", lambda a, t: ref.nll_loss(a, t, np.arange(5.0), ignore_index=2), lambda a, t: F.nll_loss(a, t, torch.arange(5.0), ignore_index=2), (logits, targets)),
        ("depth_to_space", lambda a: ref.depth_to_space_python(a, 2, "CDR"), lambda a: F.pixel_shuffle(a, 2), (x,)),
        ("affine_grid", lambda a: ref.affine_grid_python(a, (3, 4)), lambda a: F.affine_grid(a, (2, 1, 3, 4), True).permute(0, 3, 1, 2), (theta,)),
        ("linear", lambda a: ref.resize2d_python(a, (2, 1.6), method="bilinear"), lambda a: F.interpolate(a, (12, 8), mode="bilinear", align_corners=True), (x,)),
        ("half_pixel", lambda a: ref.resize2d_python(a, (0.5, 2), method="bilinear", coordinate_transformation_mode="half_pixel"), lambda a: F.interpolate(a, (3, 10), mode="bilinear"), (x,)),
        ("nearest", lambda a: ref.resize2d_python(a, (2, 1.6), coordinate_transformation_mode="asymmetric"), lambda a: F.interpolate(a, (12, 8)), (x,)),
        ("trilinear", lambda a: ref.resize3d_python(a, (2, 1, 2), method="trilinear"), lambda a: F.interpolate(a, (8, 5, 6), mode="trilinear", align_corners=True), (volume,)),
        ("grid_sample_3d", lambda a, g: ref.grid_sample_python(a, g, "bilinear", "NCDHW", "border", False), lambda a, g: F.grid_sample(a, g.permute(0, 2, 3, 4, 1), "bilinear", "border", False), (volume, grid3)),
        ("attention", lambda a: ref.attention_python(a, a, a, None, 5**-0.5, "TopLeft", layout="BNSH")[0], lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True), (x,)),
    ]  # fmt: skip
    for method in ("nearest", "bilinear", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (True, False):
                cases.append((
                    f"grid_sample-{method}-{padding}-{align}",
                    lambda a, g, m=method, p=padding, c=align: ref.grid_sample_python(a, g, m, "NCHW", p, c),
                    lambda a, g, m=method, p=padding, c=align: F.grid_sample(a, g.permute(0, 2, 3, 1), m, p, c),
                    (x, grid2),
                ))  # fmt: skip
    return cases


@pytest.mark.parametrize(
    ("name", "reference", "torch_function", "arrays"), [*_conv_cases(), *_other_cases()],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_reference_agrees_with_torch(
    name: str, reference: Any, torch_function: Any, arrays: tuple[np.ndarray, ...]
) -> None:
    _close(reference(*arrays), torch_function(*_t(*arrays)))


def test_lstm_agrees_with_torch() -> None:
    cell = torch.nn.LSTM(3, 5)
    data = _floats(7, 2, 3)
    weights = [p.detach().numpy() for p in cell.parameters()]
    wanted = cell(torch.from_numpy(data))[0].detach().numpy()
    # PyTorch's order of gates is input, forget, cell, output
    _close(ref.lstm_python(data, *weights)[0], wanted)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_gradient_agrees_with_torch(kind: str) -> None:
    data, grad = _floats(1, 2, 6, 6), _floats(1, 2, 4, 4)
    x = torch.from_numpy(data).requires_grad_()
    pool = F.max_pool2d if kind == "max" else F.avg_pool2d
    pool(x, 3, 2, 1, ceil_mode=True)[:, :, :4, :4].backward(torch.from_numpy(grad))
    assert x.grad is not None
    _close(ref.pool_grad_nchw(data, grad, (3, 3), (2, 2), (1, 1, 1, 1), kind, True), x.grad)


def test_space_to_batch_and_back_gives_the_data() -> None:
    data = _floats(2, 6, 8, 3)
    there = ref.space_to_batch_nd_python(data, (2, 4), (1, 0), (1, 0))
    assert there.shape == (16, 4, 2, 3)
    back = ref.batch_to_space_nd_python(there, (2, 4), (1, 0), (1, 0))
    np.testing.assert_array_equal(back, data)


def test_slices_follow_their_modes() -> None:
    data = np.arange(24).reshape(4, 6)
    found = ref.strided_slice_python(data, (1, 2), (2, -1), None, "size")
    np.testing.assert_array_equal(found, data[1:3, 2:])
    set_ = ref.strided_set_python(data, np.zeros((2, 3), int), (0, 1), (4, 6), (2, 2))
    assert set_[0, 1] == set_[2, 5] == 0
    assert set_[1, 1] == data[1, 1]


def test_schedules_are_chosen_by_the_target() -> None:
    data = _floats(4, 5)
    ref.compare_numpy_tvm(
        [data], np.exp(data), "llvm", tvm.cpu(), topi.exp, ref.get_injective_schedule("llvm")
    )
    assert ref.dispatch("llvm", {"generic": 1, "cpu": 2}) == 2
    assert ref.dispatch("llvm", {"generic": 1, "gpu": 2}) == 1


def _last(*axes: np.ndarray) -> list[np.ndarray]:
    return [np.moveaxis(a, 1, -1) for a in axes]


def test_references_with_channels_last_agree_with_channels_first() -> None:
    volume, kernel = _floats(1, 4, 5, 4, 3), _floats(6, 2, 3, 2, 2)
    found = ref.conv3d_ndhwc_python(*_last(volume), kernel.transpose(2, 3, 4, 1, 0), 1, 1, 2)
    _close(np.moveaxis(found, -1, 1), ref.conv3d_ncdhw_python(volume, kernel, 1, 1, 2))
    image, weight = _floats(2, 4, 5, 6), _floats(4, 3, 3, 2)
    wanted = ref.conv2d_transpose_nchw_python(image, weight, (2, 1), 1, (1, 0))
    for layout, kernel in (("HWOI", weight.transpose(2, 3, 1, 0)), ("HWIO", weight.transpose(2, 3, 0, 1))):  # fmt: skip
        found = ref.conv2d_transpose_nhwc_python(*_last(image), kernel, layout, (2, 1), 1, (1, 0))
        _close(np.moveaxis(found, -1, 1), wanted)
    depthwise = _floats(4, 2, 3, 3)
    wanted = ref.depthwise_conv2d_python_nchw(image, depthwise, 2, "SAME")
    found = ref.depthwise_conv2d_python_nhwc(*_last(image), depthwise.transpose(2, 3, 0, 1), 2, "SAME")  # fmt: skip
    _close(np.moveaxis(found, -1, 1), wanted)
    pooled = ref.adaptive_pool_channel_first(image, (2, 3), "max", np.max)
    _close(
        ref.adaptive_pool_channel_last(*_last(image), (2, 3), "max", np.max),
        np.moveaxis(pooled, 1, -1),
    )


def test_depthwise_reference_of_blocked_channels() -> None:
    data, weight = _floats(1, 2, 5, 6, 4), _floats(2, 1, 3, 3, 1, 4)
    found = ref.depthwise_conv2d_python_nchwc(data, weight, 1, "SAME")
    plain = data.transpose(0, 1, 4, 2, 3).reshape(1, 8, 5, 6)
    kernel = weight.transpose(0, 5, 1, 4, 2, 3).reshape(8, 1, 3, 3)
    wanted = ref.depthwise_conv2d_python_nchw(plain, kernel, 1, "SAME")
    _close(found.transpose(0, 1, 4, 2, 3).reshape(1, 8, 5, 6), wanted)


def test_pieces_of_pooling_give_its_windows() -> None:
    data = _floats(1, 2, 5, 6)
    padded = ref.pad_tensor(data, -1.0, (1, 0), (0, 1), data.dtype)
    np.testing.assert_array_equal(padded, np.pad(data, ((0, 0), (0, 0), (1, 0), (0, 1)), constant_values=-1))  # fmt: skip
    window = ref.get_slice(2, padded, (1, 2), (2, 3), (2, 1), (1, 2))
    np.testing.assert_array_equal(window, padded[:, :, 2:4, 2:7:2])


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_resizing_by_axes_is_separable(method: str) -> None:
    volume, scale = _floats(1, 2, 3, 4, 5), (2, 1.5, 0.8)
    options = (method, "half_pixel")
    whole = ref.resize3d_ncdhw(volume, scale, *options)
    one = {"nearest_neighbor": ref.resize3d_nearest, "linear": ref.resize3d_linear,
           "cubic": ref.resize3d_cubic}[method]  # fmt: skip
    _close(whole[0, 1], one(volume[0, 1], scale, "half_pixel"))
    line = volume.reshape(1, 24, 5)
    wanted = ref.resize3d_ncdhw(volume, (1, 1, 0.8), *options).reshape(1, 24, 4)
    _close(ref.resize1d_python(line, (0.8,), "NCW", *options), wanted)
    if method == "nearest_neighbor":
        at = [ref.get_index(i, 5, 4, "half_pixel") for i in range(4)]
        np.testing.assert_array_equal(wanted, line[..., at])


def test_small_references() -> None:
    data = _floats(3, 4)
    _close(ref.l2_normalize_python(data, 1e-9, 1), F.normalize(torch.from_numpy(data), dim=1))
    np.testing.assert_array_equal(ref.slice_axis_python(data, 1, 1, -1), data[:, 1:-1])
    places = RNG.integers(0, 3, (2, 4))
    np.testing.assert_array_equal(ref.gather_python(data, 0, places), np.take_along_axis(data, places, 0))  # fmt: skip
    np.testing.assert_array_equal(ref.dilate_np(np.array([1, 2]), 3), [1, 0, 0, 2])
    blocks = ref.space_to_depth_python(_floats(1, 2, 4, 6), 2)
    assert blocks.shape == (1, 8, 2, 3)
    image, grid = _floats(1, 2, 4, 5), _floats(1, 2, 3, 3)
    _close(ref.grid_sample_2d(image, grid), ref.grid_sample_python(image, grid))


def test_transposed_reference_of_groups_is_that_of_each() -> None:
    data, weight = _floats(1, 4, 7), _floats(4, 3, 3)
    found = ref.group_conv1d_transpose_ncw_python(data, weight, 2, 1, (1,), 2)
    parts = [ref.conv1d_transpose_ncw_python(data[:, k : k + 2], weight[k : k + 2], 2, 1, (1,)) for k in (0, 2)]  # fmt: skip
    _close(found, np.concatenate(parts, 1))
