"""Build a schedule, run it on random numbers, compare with numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import te


def check(
    tensors: Sequence[te.Tensor],
    schedule: Callable[[list[te.Tensor]], te.Schedule],
    reference: Callable[..., Any],
    target: str = "llvm",
    tolerance: float = 1e-4,
) -> None:
    """The last tensor is the output, the others are its inputs."""
    where = tvm.target.Target(target)
    with where:
        s = schedule([tensors[-1]])
        func = tvm.build(s, list(tensors), where)
    rng = np.random.default_rng(3)
    shapes = [tuple(int(d) for d in t.shape) for t in tensors]
    inputs = [
        rng.uniform(-1, 1, shape).astype(str(t.dtype))
        for shape, t in zip(shapes[:-1], tensors, strict=False)
    ]
    out = tvm.nd.array(np.zeros(shapes[-1], str(tensors[-1].dtype)))
    func(*[tvm.nd.array(x) for x in inputs], out)
    np.testing.assert_allclose(out.numpy(), reference(*inputs), rtol=tolerance, atol=tolerance)
