"""Cases of parameters that few programs set: other axes, layouts, types, modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import tvm
from tests.relay.op.torch_reference import by_torch
from tvm import relay
from tvm.relay.op.registry import ops
from tvm.topi import testing as ref

from .advanced_indexing_cases import _multiplied
from .cases import RNG, Array, Case, _softmax, bools, floats, ints
from .random_cases import key, normal
from .special_cases import _deformed, _few_bits, _meaning
from .vision_cases import _prior, _proposal, _regular, _scores, boxes
from .window_cases import moved


def reduce_cases() -> list[Case]:
    """All axes but those named, kept with extent 1."""
    cases = []
    functions: dict[str, Callable[..., Array]] = {
        "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean,
        "variance": np.var, "all": np.all, "any": np.any,
    }  # fmt: skip
    for name, function in functions.items():
        data = bools(2, 3, 4) if name in ("all", "any") else floats(2, 3, 4)
        cases.append(Case(
            name, lambda x, n=name: getattr(relay, n)(x, -2, True, exclude=True), (data,),
            lambda x, f=function: f(x, (0, 2), keepdims=True), 1e-4,
        ))  # fmt: skip
    for name in ("argmax", "argmin"):
        for axis in ((0, 2), (1, 2)):
            rest = next(i for i in range(3) if i not in axis)
            cases.append(Case(
                name, lambda x, n=name, a=axis: getattr(relay, n)(x, a, True, exclude=True),
                (floats(2, 3, 4),),
                lambda x, n=name, r=rest: getattr(np, n)(x, r, keepdims=True).astype("int32"),
            ))  # fmt: skip
    return cases


def shaping_cases() -> list[Case]:
    reverse_reshape = relay.op.transform.reverse_reshape
    x = floats(2, 3, 4)
    rows: list[tuple[str, Callable[..., Any], tuple[Array, ...], Callable[..., Any]]] = [
        ("reinterpret", lambda a: relay.reinterpret(a, "int64"), (floats(3).astype("float64"),), lambda a: a.view("int64")),
        ("reinterpret", lambda a: relay.reinterpret(a, "uint8"), (ints(2, 3, dtype="int8"),), lambda a: a.view("uint8")),
        ("full", lambda a: relay.full(a, (2, 3), "int64"), (floats(low=2),), lambda a: np.full((2, 3), a).astype("int64")),
        ("shape_of", lambda a: relay.shape_of(a, "int64"), (x,), lambda a: np.array(a.shape)),
        ("ndarray_size", lambda a: relay.op.tensor.ndarray_size(a, "int64"), (x,), lambda a: np.array(a.size)),
        ("reshape", lambda a: relay.reshape(a, (0, 3), allowzero=True), (floats(0, 2),), lambda a: a.reshape(0, 3)),
        ("reshape_like", lambda a, b: relay.reshape_like(a, b, 1, 3, 0, 2), (floats(2, 6, 1, 5), floats(3, 2, 9)), lambda a, b: a.reshape(2, 3, 2, 5)),
        ("reshape_like", lambda a, b: relay.reshape_like(a, b, -2, None, 1), (floats(2, 6, 5), floats(7, 10, 3)), lambda a, b: a.reshape(2, 10, 3)),
        ("contrib_reverse_reshape", lambda a: reverse_reshape(a, (-1, 1, 0)), (x,), lambda a: a.reshape(6, 1, 4)),
        ("contrib_reverse_reshape", lambda a: reverse_reshape(a, (-1, 0)), (floats(2, 1, 3, 5),), lambda a: a.reshape(6, 5)),
        ("reverse", lambda a: relay.reverse(a, -1), (x,), lambda a: a[..., ::-1]),
        ("reverse", lambda a: relay.reverse(a, 0), (x,), lambda a: a[::-1]),
        ("repeat", lambda a: relay.repeat(a, 2, -1), (x,), lambda a: a.repeat(2, -1)),
        ("repeat", lambda a: relay.repeat(a, 1, 0), (x,), lambda a: a),
        ("gather_nd", lambda a, i: relay.gather_nd(a, i, index_rank=2), (x, ints(2, 5, low=0, high=2)), lambda a, i: a[i[0], i[1]]),
        ("sparse_to_dense", lambda i, v: relay.sparse_to_dense(i, (6,), v), (np.array([4, 1], "int32"), floats(2)), lambda i, v: _placed(6, i, v)),
        ("one_hot", lambda i: relay.one_hot(i, relay.const(3), relay.const(-1), 4, 0, "int32"), (ints(5, low=0, high=4),), lambda i: np.where(np.arange(4)[:, None] == i, 3, -1).astype("int32")),
        ("tile", lambda a: relay.tile(a, (2,)), (x,), lambda a: np.tile(a, 2)),
        ("cumprod", lambda a: relay.cumprod(a, 1, "float64", True), (x,), lambda a: (a.astype("float64").cumprod(1) / a)),
        ("nn.space_to_batch_nd", lambda a: relay.nn.space_to_batch_nd(a, (2,), [(1, 1)]), (floats(2, 4, 3),), lambda a: np.pad(a, ((0, 0), (1, 1), (0, 0))).reshape(2, 3, 2, 3).transpose(2, 0, 1, 3).reshape(4, 3, 3)),
        ("nn.batch_to_space_nd", lambda a: relay.nn.batch_to_space_nd(a, (2,), [(1, 0)]), (floats(4, 3, 5),), lambda a: a.reshape(2, 2, 3, 5).transpose(1, 2, 0, 3).reshape(2, 6, 5)[:, 1:]),
        ("nn.space_to_depth", lambda a: ops.nn.space_to_depth(a, block_size=3, mode="CRD"), (floats(1, 2, 3, 6),), by_torch(F.pixel_unshuffle, downscale_factor=3)),
        ("cast", lambda a: relay.cast(a, "uint8"), (ints(4, low=0, high=9),), lambda a: a.astype("uint8")),
    ]  # fmt: skip
    return [Case(*row) for row in rows]


def _placed(extent: int, places: Array, values: Array) -> Array:
    out = np.zeros(extent, values.dtype)
    out[places] = values
    return out


def number_cases() -> list[Case]:
    """Fixed-point products, random numbers, linear algebra."""
    linalg = relay.op.linalg
    numbers = ints(4, 3, low=-9000, high=9000)
    factors, shifts = ints(4, low=1 << 30, high=(1 << 31) - 1), ints(4, low=1, high=4)
    matrix = RNG.standard_normal((2, 3, 3)).astype("float32")
    lower = np.tril(matrix, -1)
    symmetric = matrix + matrix.swapaxes(1, 2)
    raw, taus = np.linalg.qr(floats(5, 3), "raw")
    q = by_torch(torch.linalg.householder_product)
    rows: list[tuple[str, Callable[..., Any], tuple[Array, ...], Callable[..., Any]]] = [
        ("fixed_point_multiply", lambda x: relay.fixed_point_multiply(x, 1 << 30, -3), (numbers,), lambda x: _multiplied(x, np.array(1 << 30), np.array(-3))),
        ("fixed_point_multiply_per_axis", lambda x, m, s: relay.op.tensor.fixed_point_multiply_per_axis(x, m, s, relay.const([0] * 4), True, False, [0]), (numbers, factors, shifts), lambda x, m, s: _multiplied(x, m[:, None], s[:, None])),
        ("random.normal", lambda k: relay.random.normal(k, (7,), "float64", 1.0).astuple(), (key(6),), lambda k: normal(k, (7,), 1.0, 1.0, "float64")),
        ("random.normal", lambda k: relay.random.normal(k, (2, 3, 4)).astuple(), (key(4),), lambda k: normal(k, (2, 3, 4), 0.0, 1.0)),
        ("linalg.solve_triangular", lambda a, b: linalg.solve_triangular(a, b, unit=True), (matrix, matrix), lambda a, b: np.linalg.solve(lower + np.eye(3, dtype="float32"), b)),
        ("linalg.householder_product", lambda v, t: linalg.householder_product(v, t, 3), (raw.T.copy(), taus), q),
        ("linalg.pivots_to_permutation", lambda p: linalg.pivots_to_permutation(p, 3), (np.array([[3, 3, 3]], "int32"),), lambda p: np.array([2, 0, 1], "int32")),
        ("linalg.eigh", lambda a: linalg.eigh(a, upper=True)[0], (np.triu(symmetric),), lambda a: np.linalg.eigvalsh(a, "U")),
    ]  # fmt: skip
    return [Case(*row, 1e-4) for row in rows]


def image_cases() -> list[Case]:
    image = relay.image
    rows: list[tuple[str, Callable[..., Any], tuple[Array, ...], Callable[..., Any]]] = [
        ("image.resize2d", lambda x: image.resize2d(x, (6, 3), layout="NHWC", out_dtype="float64"), (floats(1, 4, 5, 2),), lambda x: ref.resize2d_python(x, (1.5, 0.6), "NHWC", "bilinear", "half_pixel").astype("float64")),
        ("image.resize2d", lambda x: image.resize2d(x, (3, 4), (-0.5, 0.25, 1.0, 1.5), coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0), (floats(1, 2, 4, 5),), lambda x: _regions(x, (-0.5, 0.25), (1.0, 1.5), (3, 4), 7.0)),
        ("image.resize3d", lambda x: image.resize3d(x, (2, 3, 4), (0.0, -0.5, 0.25, 1.0, 1.0, 1.5), coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-2.0), (floats(1, 2, 3, 4, 5),), lambda x: _regions(x, (0.0, -0.5, 0.25), (1.0, 1.0, 1.5), (2, 3, 4), -2.0)),
        ("image.resize1d", lambda x: image.resize1d(x, 7, layout="NWC", method="cubic", cubic_exclude=1, cubic_alpha=-0.75, out_dtype="float64"), (floats(2, 5, 3),), lambda x: _cubic(x.transpose(0, 2, 1), (7,)).transpose(0, 2, 1).astype("float64")),
        ("image.resize3d", lambda x: image.resize3d(x, (3, 4, 2), layout="NDHWC", method="linear", coordinate_transformation_mode="align_corners", out_dtype="float64"), (floats(1, 2, 3, 3, 2),), lambda x: by_torch(F.interpolate, size=(3, 4, 2), mode="trilinear", align_corners=True)(moved(x, "NDHWC", "NCDHW")).transpose(0, 2, 3, 4, 1).astype("float64")),
        ("image.resize3d", lambda x: image.resize3d(x, (3, 5, 4), method="cubic", cubic_exclude=1, cubic_alpha=-0.75), (floats(1, 1, 4, 3, 5),), lambda x: _cubic(x, (3, 5, 4))),
        ("image.crop_and_resize", lambda x, b, i: image.crop_and_resize(x, b, i, (2, 3), "NHWC", "nearest_neighbor", 3.0, "float64"), (floats(2, 5, 6, 2), np.array([[0, 0, 1, 1], [0.2, -0.4, 1.1, 0.8]], "float32"), np.array([1, 0], "int32")), lambda x, b, i: _nearest_crops(x, b, i, (2, 3), 3.0)),
        ("image.dilation2d", lambda x, w: image.dilation2d(x, w, dilations=(1, 2), out_dtype="float64"), (floats(1, 2, 5, 6), floats(2, 2, 3)), _dilated),
        ("nn.upsampling3d", lambda x: relay.nn.upsampling3d(x, 2, 1, 3, "NDHWC", coordinate_transformation_mode="asymmetric"), (floats(1, 2, 3, 2, 4),), lambda x: x.repeat(2, 1).repeat(3, 3)),
        ("nn.upsampling3d", lambda x: relay.nn.upsampling3d(x, 2, 2, 2, method="trilinear", coordinate_transformation_mode="align_corners"), (floats(1, 2, 3, 2, 4),), by_torch(F.interpolate, scale_factor=2, mode="trilinear", align_corners=True)),
    ]  # fmt: skip
    return [Case(*row, 1e-4) for row in rows]


def _regions(
    x: Array, starts: tuple[float, ...], ends: tuple[float, ...], size: tuple[int, ...], beyond: float
) -> Array:  # fmt: skip
    """Linear interpolation of the region between starts and ends of each axis."""
    found, inside = x.astype("float64"), np.ones((), bool)
    for i, (start, end, count) in enumerate(zip(starts, ends, size, strict=True)):
        last = x.shape[2 + i] - 1
        at = start * last + np.arange(count) * (end - start) * last / (count - 1)
        low = np.clip(np.floor(at), 0, last).astype(int)
        high = np.clip(low + 1, 0, last)
        part = (at - low).reshape(-1, *[1] * (found.ndim - 3 - i))
        found = found.take(low, 2 + i) * (1 - part) + found.take(high, 2 + i) * part
        inside = inside[..., None] & ((at >= 0) & (at <= last))
    return np.where(inside, found, beyond).astype("float32")


def _cubic(x: Array, size: tuple[int, ...], alpha: float = -0.75) -> Array:
    """Cubic interpolation by elements inside alone, axis by axis."""
    found = x.astype("float64")
    for i, count in enumerate(size):
        extent = x.shape[2 + i]
        at = (np.arange(count) + 0.5) * extent / count - 0.5
        weights = np.zeros((count, extent))
        for row, place in enumerate(at):
            for k in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
                if 0 <= k < extent:
                    weights[row, k] = _cubic_weight(abs(place - k), alpha)
        weights /= weights.sum(1, keepdims=True)
        found = np.moveaxis(np.tensordot(found, weights, (2 + i, 1)), -1, 2 + i)
    return found.astype("float32")


def _cubic_weight(t: float, alpha: float) -> float:
    if t <= 1:
        return (alpha + 2) * t**3 - (alpha + 3) * t**2 + 1
    return alpha * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0


def _nearest_crops(x: Array, corners: Array, which: Array, size: tuple[int, int], beyond: float) -> Array:  # fmt: skip
    out = np.full((len(corners), *size, x.shape[3]), beyond)
    for n, (top, left, bottom, right) in enumerate(corners):
        for i, j in np.ndindex(*size):
            y = (top + i * (bottom - top) / (size[0] - 1)) * (x.shape[1] - 1)
            z = (left + j * (right - left) / (size[1] - 1)) * (x.shape[2] - 1)
            if 0 <= y <= x.shape[1] - 1 and 0 <= z <= x.shape[2] - 1:
                out[n, i, j] = x[which[n], int(y + 0.5), int(z + 0.5)]
    return out


def _dilated(x: Array, w: Array) -> Array:
    """The largest sums over windows with columns two apart."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (2, 5), (2, 3))[..., ::2]
    return (seen + w[None, :, None, None]).max((4, 5)).astype("float64")


def network_cases() -> list[Case]:
    nn = relay.nn
    x = floats(2, 3, 6, 4)
    rows: list[tuple[str, Callable[..., Any], tuple[Array, ...], Callable[..., Any]]] = [
        ("nn.fast_softmax", lambda a: nn.fast_softmax(a, 1), (floats(2, 5, 3),), lambda a: _softmax(a, 1)),
        ("nn.log_softmax", lambda a: nn.log_softmax(a, 1), (floats(2, 5, 3),), lambda a: np.log(_softmax(a, 1))),
        ("nn.batch_norm", lambda a, g, b, m, v: nn.batch_norm(a, g, b, m, v, 3, 1e-3, False, False)[0], (x, floats(4), floats(4), floats(4), floats(4, low=0.5)), lambda a, g, b, m, v: (a - m) / np.sqrt(v + 1e-3)),
        ("nn.layer_norm", lambda a, g, b: nn.layer_norm(a, g, b, 1, 1e-2, False, False), (x, floats(3), floats(3)), lambda a, g, b: _normal(a, 1, 1e-2)),
        ("nn.layer_norm", lambda a, g, b: nn.layer_norm(a, g, b, -2, scale=False), (x, floats(6), floats(6)), lambda a, g, b: _normal(a, 2, 1e-5) + b[:, None]),
        ("nn.l2_normalize", lambda a: nn.l2_normalize(a, 30.0, [0, 3]), (x,), lambda a: a / np.sqrt(np.maximum((a * a).sum((0, 3), keepdims=True), 30))),
        ("nn.l2_normalize", lambda a: nn.l2_normalize(a, 1e-9), (x,), lambda a: a / np.linalg.norm(a)),
        ("nn.dropout", lambda a: nn.dropout(a, 0.2), (floats(3, 4),), lambda a: a),
        ("nn.lrn", lambda a: nn.lrn(a, 3, 3, 1.5, 0.1, 0.6), (x,), lambda a: by_torch(F.local_response_norm, size=3, alpha=0.1, beta=0.6, k=1.5)(moved(a, "NHWC", "NCHW")).transpose(0, 2, 3, 1)),
        ("nn.lrn", lambda a: nn.lrn(a, 4, 1, 2, 0.1), (x,), lambda a: by_torch(F.local_response_norm, size=4, alpha=0.1, beta=0.75, k=2.0)(a[:, ::-1].copy())[:, ::-1]),
        ("nn.dilate", lambda a: nn.dilate(a, (2, 1, 3)), (floats(2, 3, 2),), lambda a: _spread(a, (2, 1, 3))),
        ("nn.instance_norm", lambda a, g, b: nn.instance_norm(a, g, b, 1, 1e-3, False, False), (x, floats(3), floats(3)), lambda a, g, b: by_torch(F.instance_norm, eps=1e-3)(a)),
        ("nn.instance_norm", lambda a, g, b: nn.instance_norm(a, g, b, 3, 1e-3, True, False), (x, floats(4), floats(4)), lambda a, g, b: moved(by_torch(F.instance_norm, eps=1e-3)(moved(a, "NHWC", "NCHW")), "NCHW", "NHWC") + b),
        ("nn.matmul", lambda a, b: nn.matmul(a, b, 5, "int32"), (ints(3, 4, dtype="int8"), ints(4, 5, dtype="int8")), lambda a, b: a.astype("int32") @ b),
        ("nn.batch_matmul", lambda a, b: nn.batch_matmul(a, b, "int32", True, False), (ints(2, 4, 3, dtype="int8"), ints(2, 4, 5, dtype="int8")), lambda a, b: a.transpose(0, 2, 1).astype("int32") @ b),
        ("nn.batch_matmul", lambda a, b: nn.batch_matmul(a, b, "float64"), (floats(2, 3, 4), floats(1, 5, 4)), lambda a, b: a.astype("float64") @ b.transpose(0, 2, 1)),
        ("nn.depth_to_space", lambda a: nn.depth_to_space(a, 2, "NHWC", "CRD"), (floats(1, 2, 3, 8),), lambda a: moved(by_torch(F.pixel_shuffle, upscale_factor=2)(moved(a, "NHWC", "NCHW")), "NCHW", "NHWC")),
        ("nn.bitpack", lambda a: nn.bitpack(a, 2, 0, 1, "uint16", "words"), (_few_bits(32, 3, bits=2),), lambda a: _words(a, 2)),
    ]  # fmt: skip
    return [*[Case(*row, 1e-4) for row in rows], *_kernel_cases(), *_bitserial_cases()]


def _normal(x: Array, axis: int, epsilon: float) -> Array:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)


def _spread(x: Array, strides: tuple[int, ...]) -> Array:
    shape = [(n - 1) * s + 1 for n, s in zip(x.shape, strides, strict=True)]
    out = np.zeros(shape, x.dtype)
    out[tuple([slice(None, None, s) for s in strides])] = x
    return out


def _words(x: Array, bits: int) -> Array:
    """Words of 16 neighbours along the first axis; the bits' axis comes second."""
    planes = np.stack([(x >> b) & 1 for b in range(bits)], 1).astype("int64")
    parts = planes.reshape(-1, 16, *planes.shape[1:])
    return np.einsum("wibc,i->wbc", parts, 1 << np.arange(15, -1, -1)).astype("uint16")


def _kernel_cases() -> list[Case]:
    """Convolutions whose kernels come in tiles, are found, or see moved places."""
    nn = relay.nn
    data, grad = floats(2, 5, 6, 3), floats(2, 4, 5, 4)

    def to_kernel(g: Array, a: Array) -> Array:
        weight = torch.zeros((4, 3, 2, 2), dtype=torch.float64, requires_grad=True)
        image = torch.from_numpy(moved(a, "NHWC", "NCHW")).double()
        F.conv2d(image, weight).backward(torch.from_numpy(moved(g, "NHWC", "NCHW")).double())
        return moved(weight.grad.numpy(), "OIHW", "HWIO")

    def tiled(x: Any, w: Any) -> Any:
        tiles = nn.contrib_conv2d_gemm_weight_transform(w, 2, 3)
        return nn.contrib_conv2d_gemm_without_weight_transform(
            x, tiles, channels=5, kernel_size=(2, 2), data_layout="NHWC", kernel_layout="HWIO",
            out_layout="NHWC", out_dtype="int32",
        )  # fmt: skip

    def by_tiles(x: Array, w: Array) -> Array:
        image, kernel = moved(x, "NHWC", "NCHW"), moved(w, "HWIO", "OIHW")
        found = by_torch(F.conv2d)(image.astype("float64"), kernel.astype("float64"))
        return moved(found, "NCHW", "NHWC").astype("int32")

    def by_winograd(x: Any, w: Any) -> Any:
        return nn.contrib_conv3d_winograd_without_weight_transform(
            x, nn.contrib_conv3d_winograd_weight_transform(w, 2), 2, channels=2,
            kernel_size=(3, 3, 3), out_layout="NCDHW", out_dtype="float64",
        )  # fmt: skip

    places = (floats(1, 4, 5, 6), floats(1, 18, 5, 6), floats(2, 4, 3, 3))
    return [
        Case("nn.conv2d_backward_weight", lambda g, a: nn.conv2d_backward_weight(g, a, kernel_size=2, channels=4, grad_layout="NHWC", data_layout="NHWC", kernel_layout="HWIO", out_dtype="float64"), (grad, data), to_kernel, 1e-4),
        Case("nn.contrib_conv2d_gemm_without_weight_transform", tiled, (ints(1, 4, 4, 3, dtype="int8"), ints(2, 2, 3, 5, dtype="int8")), by_tiles, 0),
        Case("nn.contrib_conv2d_gemm_weight_transform", lambda w: nn.contrib_conv2d_gemm_weight_transform(w, 3, 2), (floats(1, 2, 2, 3),), lambda w: w.reshape(4, 3).reshape(2, 2, 1, 3).transpose(2, 0, 3, 1)),
        Case("nn.contrib_conv3d_winograd_without_weight_transform", by_winograd, (floats(1, 2, 4, 5, 6), floats(2, 2, 3, 3, 3)), lambda x, w: by_torch(F.conv3d)(x, w).astype("float64"), 1e-4),
        Case("nn.deformable_conv2d", lambda x, o, w: nn.deformable_conv2d(x, o, w, padding=1, channels=2, kernel_size=(3, 3), out_layout="NHWC", out_dtype="float64"), places, lambda x, o, w: moved(_deformed(x, o, w, 1, 1, 1, 1), "NCHW", "NHWC").astype("float64"), 1e-4),
    ]  # fmt: skip


def _bitserial_cases() -> list[Case]:
    def conv(x: Array, w: Array) -> Array:
        image, kernel = x.astype("float64"), _meaning(w, 2, False).astype("float64")
        return by_torch(F.conv2d, padding=1)(image, kernel).astype("int16")

    window = {"padding": 1, "channels": 2, "kernel_size": (1, 3), "activation_bits": 2, "weight_bits": 2, "pack_dtype": "uint8", "unipolar": False}  # fmt: skip
    return [
        Case("nn.bitserial_conv2d", lambda x, w: relay.nn.bitserial_conv2d(x, w, **window), (_few_bits(1, 8, 4, 3, bits=2), _few_bits(2, 8, 1, 3, bits=2)), conv, 0),
        Case("nn.bitserial_dense", lambda x, w: relay.nn.bitserial_dense(x, w, 3, 2, 1, "uint16", unipolar=False), (_few_bits(2, 16, bits=2), _few_bits(3, 16, bits=1)), lambda x, w: (x.astype("int16") @ w.T.astype("int16")), 0),
    ]  # fmt: skip


def pool_gradient_cases() -> list[Case]:
    """Gaps in the windows, and a result in another layout."""
    cases = []
    for kind in ("max", "avg"):
        op = getattr(relay.nn, f"{kind}_pool2d_grad")
        data, grad = moved(floats(1, 2, 6, 7), "NCHW", "NHWC"), floats(1, 2, 3, 3)

        def expected(g: Array, x: Array, kind: str = kind) -> Array:
            image = torch.from_numpy(moved(x, "NHWC", "NCHW")).requires_grad_()
            getattr(F, f"{kind}_pool2d")(image, (2, 3), 2).backward(torch.from_numpy(g))
            return moved(image.grad.numpy(), "NCHW", "NHWC")

        cases.append(Case(f"nn.{kind}_pool2d_grad", lambda g, x, op=op: op(g, x, (2, 3), 2, layout="NHWC", out_layout="NCHW"), (grad, data), expected, 1e-4))  # fmt: skip
    gaps: dict[str, Any] = {"pool_size": (2, 2), "strides": (1, 2), "padding": (1, 0, 1, 0), "dilation": (2, 1)}  # fmt: skip

    def of_means(g: Array, x: Array) -> Array:
        image = torch.from_numpy(x).requires_grad_()
        kernel = torch.full((2, 1, 2, 2), 0.25)
        F.conv2d(image, kernel, None, (1, 2), (1, 0), (2, 1), 2).backward(torch.from_numpy(g))
        return image.grad.numpy()

    def of_largest(g: Array, x: Array) -> Array:
        image = torch.from_numpy(x).requires_grad_()
        F.max_pool2d(image, 2, (1, 2), (1, 0), (2, 1)).backward(torch.from_numpy(g))
        return image.grad.numpy()

    arrays = (floats(1, 2, 5, 3), floats(1, 2, 5, 6))
    return [
        *cases,
        Case("nn.avg_pool2d_grad", lambda g, x: ops.nn.avg_pool2d_grad(g, x, **gaps, count_include_pad=True), arrays, of_means, 1e-4),
        Case("nn.max_pool2d_grad", lambda g, x: ops.nn.max_pool2d_grad(g, x, **gaps), arrays, of_largest, 1e-4),
    ]  # fmt: skip


def vision_cases() -> list[Case]:
    corners, scores = boxes(9, 1), _scores(1, 9, 5)
    regions = np.array([[1, 1, 2, 9, 12], [0, -1, 3, 7.5, 10]], "float32")
    regular = (2, 5, 4, 0.4, 0.3)
    anchors = {"scales": (2.0,), "ratios": (0.5, 1.0, 2.0), "feature_stride": 8, "threshold": 0.7}
    limits = {"rpn_pre_nms_top_n": 12, "rpn_post_nms_top_n": 5, "rpn_min_size": 6}
    image = np.array([[30, 38, 1.2]], "float32")
    rpn = (_scores(1, 6, 4, 5), floats(1, 12, 4, 5, low=-0.3, high=0.3), image)
    return [
        Case("vision.multibox_prior", lambda a: relay.vision.multibox_prior(a, (0.5,), (1.0, 2.0), (0.25, 0.2), (0.25, 0.75)), (floats(1, 3, 4, 5),), lambda a: _prior(a, (0.5,), (1.0, 2.0), (0.25, 0.2), False, (0.25, 0.75))),
        Case("vision.roi_align", lambda a, r: relay.vision.roi_align(a, r, 2, 0.5, 2, aligned=True), (floats(2, 3, 7, 8), regions), _aligned, 1e-4),
        Case("vision.regular_non_max_suppression", lambda b, s: relay.vision.regular_non_max_suppression(b, s, *regular).astuple(), (corners, scores), lambda b, s: _regular(b, s, *regular)),
        Case("vision.proposal", lambda *a: relay.vision.proposal(*a, **anchors, **limits, iou_loss=False), rpn, lambda *a: _proposal(*a, *anchors.values(), *limits.values(), False), 1e-4),
    ]  # fmt: skip


def _aligned(x: Array, regions: Array) -> Array:
    """Means of 2x2 samples in 2x2 parts of each region, whose corners are half a pixel nearer."""
    out = np.zeros((len(regions), x.shape[1], 2, 2), "float32")
    for n, (image, left, top, right, bottom) in enumerate(regions):
        places = (np.arange(4) + 0.5) / 4
        ys = top * 0.5 - 0.5 + places * (bottom - top) * 0.5
        xs = left * 0.5 - 0.5 + places * (right - left) * 0.5
        samples = np.array([[_between(x[int(image)], y, z) for z in xs] for y in ys])
        out[n] = samples.reshape(2, 2, 2, 2, -1).mean((1, 3)).transpose(2, 0, 1)
    return out


def _between(image: Array, y: float, x: float) -> Array:
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(image.shape[0])
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = image[:, top, left] * (1 - x + left) + image[:, top, right] * (x - left)
    lower = image[:, bottom, left] * (1 - x + left) + image[:, bottom, right] * (x - left)
    return upper * (1 - y + top) + lower * (y - top)


def mark_cases() -> list[Case]:
    """What they name changes no value."""
    hints = relay.annotation
    named: list[tuple[str, Callable[[Any], Any]]] = [
        ("annotation.cast_hint", lambda a: hints.cast_hint(a, "uint8")),
        ("annotation.with_funcid", lambda a: ops.annotation.with_funcid(a, relay_func_id="other")),
        ("on_device", lambda a: hints.on_device(a, tvm.cpu(0), constrain_result=True, constrain_body=False)),
    ]  # fmt: skip
    return [
        Case(name, lambda a, f=f: relay.add(f(relay.exp(a)), a), (floats(2, 3),), lambda a: np.exp(a) + a)
        for name, f in named
    ]  # fmt: skip


def option_cases() -> list[Case]:
    return [
        *reduce_cases(),
        *shaping_cases(),
        *number_cases(),
        *image_cases(),
        *network_cases(),
        *pool_gradient_cases(),
        *vision_cases(),
        *mark_cases(),
    ]
