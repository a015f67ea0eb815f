"""Build a schedule, run it on random numbers, compare with numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import te, tir
from tvm.topi.utils import dims

# extents that tiles do and do not divide
LENGTHS = (1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100)
N, M = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")


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


def check_at_lengths(
    inputs: Sequence[te.Tensor],
    out: te.Tensor,
    schedule: Callable[[te.Tensor], te.Schedule],
    reference: Callable[..., np.ndarray],
    target: tvm.target.Target,
    tolerance: float = 1e-5,
    span: int = 9,
) -> None:
    """One kernel of the open extents N and M gives what numpy gives at all lengths."""
    tensors = [*inputs, out]
    binds = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name) for t in tensors}
    with target:
        func = tvm.build(tvm.lower(schedule(out), tensors, binds=binds), target=target)
    rng = np.random.default_rng(5)
    for i, n in enumerate(LENGTHS):
        sizes = {N: n, M: LENGTHS[-1 - i]}
        shapes = [[sizes.get(d, d) for d in dims(t.shape)] for t in tensors]
        arrays = [
            (rng.integers(-9, 9, shape) * (span / 9)).astype(str(t.dtype))
            for shape, t in zip(shapes, inputs, strict=False)
        ]
        found = tvm.nd.array(np.full([int(d) for d in shapes[-1]], -77, str(out.dtype)))
        func(*[tvm.nd.array(a) for a in arrays], found)
        np.testing.assert_allclose(
            found.numpy(), reference(*arrays), rtol=tolerance, atol=tolerance, err_msg=f"length {n}"
        )
