"""Pooling of plain layouts, a row at a time, beside PyTorch's."""

import numpy as np
import pytest
import torch

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
