"""Computations that schedulers are tried on, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm.meta_schedule.testing.te_workload import create_te_workload, matmul

from tvm import IRModule, te, topi
from tvm.testing import te_workload
from tvm.tir.analysis import estimate_tir_flops, find_anchor_block
from tvm.tir.interp import interpret
from tvm.topi import testing as reference

Array = np.ndarray[Any, Any]


def results_of(tensors: te_workload.Tensors) -> tuple[list[Array], Array]:
    """Inputs drawn at random, and what comes out."""
    rng = np.random.default_rng(0)
    *inputs, out = [
        rng.uniform(-1, 1, [int(extent) for extent in tensor.shape]).astype(tensor.dtype)
        for tensor in tensors
    ]
    interpret(te.create_prim_func(tensors), *inputs, out)
    return inputs, out


def channels_first(data: Array) -> Array:
    return np.moveaxis(data, -1, 1)


def convolved(data: Array, weight: Array, *args: Any) -> Array:
    """The reference, which has channels first, on arrays that have them last."""
    kernel = np.transpose(weight, (3, 2, 0, 1))
    found = reference.conv2d_nchw_python(channels_first(data), kernel, *args)
    return np.moveaxis(found, 1, -1)


CASES: list[tuple[te_workload.Tensors, Callable[..., Array]]] = [
    (te_workload.matmul_relu(3, 4, 5), lambda a, b: np.maximum(a @ b, 0)),
    (te_workload.batch_matmul_nkkm(2, 3, 4, 5), lambda x, y: x @ y),
    (
        te_workload.transpose_batch_matmul(2, 3, 2, 4),
        lambda q, v: np.einsum("bihd,bjhd->bhij", q, v),
    ),
    (
        te_workload.conv1d_nlc(1, 9, 4, 6, 3, 2, 1, groups=2),
        lambda x, w: np.concatenate(
            [
                convolved(x[:, None, :, 2 * g : 2 * g + 2], w[None, ..., 3 * g : 3 * g + 3],
                          (1, 2), (0, 1, 0, 1))[:, 0]
                for g in range(2)
            ],
            axis=-1,
        ),
    ),
    (te_workload.conv2d_nhwc(1, 7, 8, 3, 4, 3, 2, 1), lambda x, w: convolved(x, w, 2, 1)),
    (
        te_workload.conv3d_ndhwc(1, 4, 5, 6, 2, 3, 3, 1, 1),
        lambda x, w: np.moveaxis(
            reference.conv3d_ncdhw_python(channels_first(x), np.transpose(w, (4, 3, 0, 1, 2)), 1, 1),
            1, -1,
        ),
    ),
    (
        te_workload.depthwise_conv2d_nhwc(1, 6, 7, 3, 3, 1, 1),
        lambda x, w: np.stack(
            [convolved(x[..., c : c + 1], w[0, :, :, c, None, None], 1, 1)[..., 0] for c in range(3)],
            axis=-1,
        ),
    ),
    (
        te_workload.conv2d_transpose_nhwc(1, 4, 5, 3, 2, 4, 2, 1),
        lambda x, w: np.moveaxis(
            reference.conv2d_transpose_nchw_python(
                channels_first(x), np.transpose(w, (2, 3, 0, 1)), 2, 1, (0, 0)
            ),
            1, -1,
        ),
    ),
    (
        te_workload.conv2d_capsule_nhwijc(1, 5, 5, 2, 3, 3, 2, 1, 2),
        lambda x, w: sum(
            np.einsum(
                "nhwikc,kjcd->nhwijd",
                np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0)))[
                    :, r : r + 5 : 2, s : s + 5 : 2
                ],
                w[r, s],
            )
            for r in range(3)
            for s in range(3)
        ),
    ),
    (
        te_workload.conv2d_nhwc_bn_relu(1, 6, 6, 2, 3, 3, 1, 1),
        lambda x, w, b, o, s: np.maximum((convolved(x, w, 1, 1) + b) * s + o, 0),
    ),
    (
        te_workload.conv2d_nchw_bias_bn_relu(1, 6, 6, 2, 3, 3, 3, 1, 1),
        lambda x, w, b, s, o: np.maximum((reference.conv2d_nchw_python(x, w, 1, 1) + b) * s + o, 0),
    ),
    (
        te_workload.max_pool2d_nchw(1, 5, 6, 2, 1),
        lambda x: np.max(
            [
                np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)[
                    :, :, r : r + 6, s : s + 7
                ]
                for r in range(2)
                for s in range(2)
            ],
            axis=0,
        ),
    ),
    (te_workload.softmax_mn(3, 4), lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    (te_workload.norm_bmn(2, 3, 4), lambda a: np.sqrt((a * a).sum((1, 2)))),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_workloads_compute_what_they_say(case: int) -> None:
    tensors, expected = CASES[case]
    inputs, out = results_of(tensors)
    np.testing.assert_allclose(out, expected(*inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("first", [False, True], ids=["nhwc", "nchw"])
def test_winograd_convolves_with_transformed_weights(first: bool) -> None:
    build = te_workload.conv2d_winograd_nchw if first else te_workload.conv2d_winograd_nhwc
    data, weight, out = build(1, 6, 7, 2, 3, 6, padding=1)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, [int(extent) for extent in data.shape]).astype("float32")
    w = rng.uniform(-1, 1, (3, 3, 2, 3)).astype("float32")
    *_, g = topi.nn.winograd_transform_matrices(4, 3, "float32")
    matrix = np.zeros((6, 3), "float32")
    interpret(te.create_prim_func([g]), matrix)
    u = np.einsum("ar,bs,rsco->abco" if first else "ar,bs,rsco->aboc", matrix, matrix, w)
    result = np.zeros([int(extent) for extent in out.shape], "float32")
    interpret(te.create_prim_func([data, weight, out]), x, np.ascontiguousarray(u), result)
    expected = convolved(np.moveaxis(x, 1, -1) if first else x, w, 1, 1)
    found = np.moveaxis(result, 1, -1) if first else result
    np.testing.assert_allclose(found, expected, 1e-3, 1e-4)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("C1D", 2 * 128 * 128 * 3 * 64),
        ("C2D", 2 * 112 * 112 * 64 * 49 * 3),
        ("C3D", 2 * 8 * 112 * 112 * 64 * 343 * 3),
        ("GMM", 2 * 128**3),
        ("GRP", 2 * 28 * 28 * 128 * 9 * 16),
        ("DIL", 2 * 109 * 109 * 64 * 49 * 3),
        ("DEP", 2 * 112 * 112 * 32 * 9),
        ("T2D", 2 * 8 * 8 * 256 * 16 * 512),
        ("CAP", 2 * 8 * 8 * 16 * 32 * 9 * 4 * 32),
        ("NRM", 2 * 256 * 256),
        ("SFM", 5 * 256 * 256),
        ("CBR", (2 * 49 * 3 + 4) * 112 * 112 * 64),
        ("TBG", 2 * 12 * 128 * 128 * 64),
        ("C2D_WIN_NHWC", None),
        ("C2D_WIN_NCHW", None),
    ],
)
def test_each_name_is_a_function(name: str, flops: int | None) -> None:
    found = estimate_tir_flops(IRModule({"main": create_te_workload(name, 0)}))
    assert found == flops if flops else found > 0


def test_the_heaviest_block_is_the_anchor() -> None:
    a, b, c = matmul(16, 16, 16)
    mod = te.create_prim_func([a, b, topi.add(c, a)])
    block = find_anchor_block(IRModule({"main": mod}))
    assert block.name_hint == "C"
