"""Pooling of plain layouts, a row at a time, beside PyTorch's."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import tvm
from tvm import te, topi


@pytest.mark.parametrize(
    ("kind", "width", "kernel", "stride", "padding"),
    [
        ("max", 32, 3, 2, 1),
        ("avg", 32, 2, 2, 0),
        ("max", 56, 5, 3, 2),
        ("avg", 33, 3, 2, 1),
        ("max", 57, 3, 2, 0),
        ("avg", 35, 3, 1, 1),
    ],
)
def test_rows_of_windows(kind: str, width: int, kernel: int, stride: int, padding: int) -> None:
    x = torch.randn((2, 3, 17, width), generator=torch.Generator().manual_seed(0))
    pool = torch.nn.functional.max_pool2d if kind == "max" else torch.nn.functional.avg_pool2d
    expected = pool(x, kernel, stride, padding).relu().numpy()
    data = te.placeholder(tuple(x.shape), name="data")
    window = ([kernel] * 2, [stride] * 2, [1, 1], [padding] * 4, kind)
    out = topi.nn.relu(topi.nn.pool2d(data, *window, layout="NCHW"))
    with tvm.target.Target("llvm"):
        built = tvm.build(topi.x86.schedule_pool(out, "NCHW"), [data, out], "llvm")
    found = tvm.nd.empty(expected.shape)
    built(tvm.nd.array(x.numpy()), found)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((2, 4, 13, 13), 5, 1, 2), ((1, 8, 7, 21), 7, 1, 3), ((3, 3, 28, 28), 3, 1, 1),
        ((1, 5, 14, 14), 14, 14, 0), ((2, 3, 9, 70), 3, 1, 1), ((1, 2, 5, 5), 2, 1, 0),
        ((2, 4, 14, 14), 2, 2, 0), ((1, 3, 11, 27), 3, 2, 1),
    ],
)  # fmt: skip
def test_planes_with_their_borders(
    shape: tuple[int, ...], kernel: int, stride: int, padding: int, target: str
) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for kind, pool in (("max", functional.max_pool2d), ("avg", functional.avg_pool2d)):
        data = te.placeholder(shape, name="data")
        window = ([kernel] * 2, [stride] * 2, [1, 1], [padding] * 4, kind)
        out = topi.nn.pool2d(data, *window, layout="NCHW")
        expected = pool(x, kernel, stride, padding).numpy()
        _check(data, out, x.numpy(), expected, target)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
def test_windows_of_one_and_of_three_axes(target: str) -> None:
    x = torch.randn((2, 5, 41), generator=torch.Generator().manual_seed(0))
    data = te.placeholder((2, 5, 41), name="data")
    out = topi.nn.pool1d(data, [4], [1], [1], [1, 1], "max", layout="NCW")
    _check(data, out, x.numpy(), functional.max_pool1d(x, 4, 1, 1).numpy(), target)
    x = torch.randn((2, 3, 6, 7, 19), generator=torch.Generator().manual_seed(0))
    data = te.placeholder((2, 3, 6, 7, 19), name="data")
    out = topi.nn.pool3d(data, [3] * 3, [1] * 3, [1] * 3, [1] * 6, "avg", layout="NCDHW")
    _check(data, out, x.numpy(), functional.avg_pool3d(x, 3, 1, 1).numpy(), target)


def _check(
    data: te.Tensor, out: te.Tensor, x: np.ndarray, expected: np.ndarray, target: str
) -> None:
    with tvm.target.Target(target):
        built = tvm.build(topi.x86.schedule_pool(out, "NCHW"), [data, out], target)
    found = tvm.nd.empty(expected.shape)
    built(tvm.nd.array(x), found)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
