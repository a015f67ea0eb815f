"""Computes that no importer calls, with their generic schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import te, topi

Array = np.ndarray
RNG = np.random.default_rng(8)
nn, generic = topi.nn, topi.generic


def _draw(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype("float32")


def _torch(function: Any, *arrays: Array, **options: Any) -> Array:
    return function(*[torch.from_numpy(np.ascontiguousarray(a)) for a in arrays], **options).numpy()


def _last(function: Any, data: Array, kernel: Array, **options: Any) -> Array:
    """Of data with channels last, and of a kernel (spatial, in, out)."""
    first = np.moveaxis(data, -1, 1)
    found = _torch(function, first, np.moveaxis(kernel, (-1, -2), (0, 1)), **options)
    return np.moveaxis(found, 1, -1)


def _rows() -> tuple[Array, Array, Array, Array]:
    """A matrix (3, 4), and its elements by rows."""
    dense = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 4, 0]], "float32")
    places = np.nonzero(dense)
    begins = np.array([0, 2, 2, 4], "int32")
    return dense, dense[places], places[1].astype("int32"), begins


MATRIX, *BY_ROWS = _rows()
X, W = _draw(2, 4, 9), _draw(4, 3, 3)
LINE, ROWS = _draw(4, 1), _draw(5, 4)
IMAGE, VOLUME = _draw(1, 6, 5, 4), _draw(1, 4, 5, 3, 4)

# a compute of tensors, its schedule, the arrays, what is expected
PROGRAMS: dict[str, tuple[Callable[..., Any], Any, Sequence[Array], Any]] = {
    "conv1d_transpose_ncw": (lambda x, w: nn.conv1d_transpose_ncw(x, w, 2, 1, "float32", 1), generic.schedule_conv1d_transpose_ncw, (X, W), lambda x, w: _torch(F.conv_transpose1d, x, w, stride=2, padding=1, output_padding=1)),
    "group_conv1d_transpose_ncw": (lambda x, w: nn.group_conv1d_transpose_ncw(x, w, 2, 1, "float32", 0, 2), generic.schedule_group_conv1d_transpose_ncw, (X, W), lambda x, w: _torch(F.conv_transpose1d, x, w, stride=2, padding=1, groups=2)),
    "group_conv2d_transpose_nchw": (lambda x, w: nn.group_conv2d_transpose_nchw(x, w, (1, 2), 1, "float32", (0, 1), 2), generic.schedule_group_conv2d_transpose_nchw, (IMAGE.transpose(0, 3, 1, 2).copy(), _draw(4, 3, 3, 3)), lambda x, w: _torch(F.conv_transpose2d, x, w, stride=(1, 2), padding=1, output_padding=(0, 1), groups=2)),
    "group_conv3d_transpose_ncdhw": (lambda x, w: nn.group_conv3d_transpose_ncdhw(x, w, 2, 1, "float32", 0, 2), generic.schedule_group_conv3d_transpose_ncdhw, (VOLUME, _draw(4, 3, 3, 3, 3)), lambda x, w: _torch(F.conv_transpose3d, x, w, stride=2, padding=1, groups=2)),
    "conv1d_nwc": (lambda x, w: nn.conv1d_nwc(x, w, 1, 1, 1), generic.schedule_conv1d_nwc, (_draw(2, 9, 4), _draw(3, 4, 5)), lambda x, w: _last(F.conv1d, x, w, padding=1)),
    "group_conv1d_nwc": (lambda x, w: nn.group_conv1d_nwc(x, w, 1, 1, 1, 2), generic.schedule_group_conv1d_nwc, (_draw(2, 9, 4), _draw(3, 2, 6)), lambda x, w: _last(F.conv1d, x, w, padding=1, groups=2)),
    "group_conv1d_ncw": (lambda x, w: nn.group_conv1d_ncw(x, w, 2, 1, 1, 2), generic.schedule_group_conv1d_ncw, (X, _draw(6, 2, 3)), lambda x, w: _torch(F.conv1d, x, w, stride=2, padding=1, groups=2)),
    "group_conv2d_nhwc": (lambda x, w: nn.group_conv2d_nhwc(x, w, 1, 1, 1, 2), generic.schedule_group_conv2d_nhwc, (IMAGE, _draw(3, 3, 2, 6)), lambda x, w: _last(F.conv2d, x, w, padding=1, groups=2)),
    "depthwise_conv2d_nhwc": (lambda x, w: nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1), generic.schedule_depthwise_conv2d_nhwc, (IMAGE, _draw(3, 3, 4, 2)), lambda x, w: np.moveaxis(_torch(F.conv2d, np.moveaxis(x, -1, 1), w.transpose(2, 3, 0, 1).reshape(8, 1, 3, 3), padding=1, groups=4), 1, -1)),
    "conv2d_winograd_nhwc": (lambda x, w: nn.conv2d_winograd_nhwc(x, w, 1, 1, 1, "float32"), generic.schedule_extern, (IMAGE, _draw(3, 3, 4, 5)), lambda x, w: _last(F.conv2d, x, w, padding=1)),
    "conv3d_ndhwc": (lambda x, w: nn.conv3d_ndhwc(x, w, 1, 1, 1, 1), generic.schedule_conv3d_ndhwc, (np.moveaxis(VOLUME, 1, -1).copy(), _draw(3, 3, 3, 4, 2)), lambda x, w: _last(F.conv3d, x, w, padding=1)),
    "csrmv_default": (lambda a, i, p, v: topi.sparse.csrmv_default(a, i, p, v), generic.schedule_extern, (*BY_ROWS, LINE), lambda a, i, p, v: MATRIX @ v),
    "csrmm_default": (lambda a, i, p, v: topi.sparse.csrmm_default(a, i, p, v), generic.schedule_extern, (*BY_ROWS, ROWS.T.copy()), lambda a, i, p, v: MATRIX @ v),
    "dense_si": (lambda a, i, p, w: topi.sparse.dense_si(a, i, p, w), generic.schedule_extern, (*BY_ROWS, ROWS), lambda a, i, p, w: MATRIX @ w.T),
    "dense_sw": (lambda x, a, i, p: topi.sparse.dense_sw(x, a, i, p), generic.schedule_extern, (ROWS, *BY_ROWS), lambda x, a, i, p: x @ MATRIX.T),
    "sparse_dense_sp_lhs": (nn.sparse_dense_sp_lhs, generic.schedule_sparse_dense, (*BY_ROWS, ROWS), lambda a, i, p, w: MATRIX @ w.T),
    "sparse_dense_sp_rhs": (nn.sparse_dense_sp_rhs, generic.schedule_sparse_dense, (ROWS, *BY_ROWS), lambda x, a, i, p: x @ MATRIX.T),
    "dilation2d_nhwc": (lambda x, w: topi.image.dilation2d_nhwc(x, w, 1, 0, 1), generic.schedule_dilation2d_nhwc, (IMAGE, _draw(2, 2, 4)), lambda x, w: np.max([x[:, i : i + 5, j : j + 4] + w[i, j] for i in range(2) for j in range(2)], 0)),
    "elemwise_sum": (lambda *x: topi.elemwise_sum(list(x)), generic.schedule_injective, (ROWS, ROWS, ROWS), lambda *x: 3 * ROWS),
    "global_pool": (lambda x: nn.global_pool(x, "max", "NHWC"), generic.schedule_adaptive_pool, (IMAGE,), lambda x: x.max((1, 2), keepdims=True)),
    "softmax_common": (lambda x: nn.softmax_common(x, 0, True), generic.schedule_fast_softmax, (ROWS,), lambda x: _torch(torch.softmax, x, dim=0)),
    "einsum": (lambda x, y: topi.einsum("ij,kj->ik", x, y), generic.schedule_einsum, (ROWS, ROWS), lambda x, y: x @ y.T),
    "matmul": (lambda x, y: nn.matmul(x, y, transpose_b=True), generic.schedule_matmul, (ROWS, ROWS), lambda x, y: x @ y.T),
    "sort": (lambda x: topi.sort(x, 1, False), generic.schedule_sort, (ROWS,), lambda x: -np.sort(-x, 1)),
    "argsort": (lambda x: topi.argsort(x, axis=1), generic.schedule_argsort, (ROWS,), lambda x: np.argsort(x, 1)),
    "topk": (lambda x: topi.topk(x, 2, ret_type="values"), generic.schedule_topk, (ROWS,), lambda x: -np.sort(-x, 1)[:, :2]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_uncommon_computes_agree_with_references(name: str) -> None:
    compute, schedule, arrays, expected = PROGRAMS[name]
    tensors = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    with tvm.target.Target("llvm"):
        made = compute(*tensors)
        out = made[0] if isinstance(made, list) else made
        function = tvm.build(schedule([out]), [*tensors, out], "llvm")
    found = tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype))
    function(*[tvm.nd.array(a) for a in arrays], found)
    np.testing.assert_allclose(found.numpy(), expected(*arrays), rtol=1e-4, atol=1e-5)
