"""Build small functions and run them beside numpy or the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tvm
from tvm import te, tir


def run(func: Any, *arrays: Any) -> list[np.ndarray]:
    """Call a compiled function on copies of the arrays; what they hold afterwards."""
    given = [tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    func(*given)
    return [
        g.numpy() if isinstance(a, np.ndarray) else a for g, a in zip(given, arrays, strict=True)
    ]


def elementwise(
    compute: Callable[..., Any],
    dtypes: list[str],
    size: int,
    vectorize: int = 0,
    target: str = "llvm",
) -> Any:
    """The function ``out[i] = compute(in0[i], in1[i], ...)``."""
    inputs = [te.placeholder((size,), name=f"A{i}", dtype=dtype) for i, dtype in enumerate(dtypes)]
    out = te.compute((size,), lambda i: compute(*[tensor(i) for tensor in inputs]), name="out")
    schedule = te.create_schedule(out.op)
    if vectorize:
        _, inner = schedule[out].split(out.op.axis[0], factor=vectorize)
        schedule[out].vectorize(inner)
    return tvm.build(schedule, [*inputs, out], target=target)


def apply(
    compute: Callable[..., Any], *arrays: np.ndarray, out_dtype: str, vectorize: int = 0
) -> np.ndarray:
    """``compute`` applied element by element by compiled code."""
    size = len(arrays[0])
    func = elementwise(compute, [str(a.dtype) for a in arrays], size, vectorize)
    return run(func, *arrays, np.zeros(size, out_dtype))[-1]


def flat_function(
    body: Callable[..., tir.Stmt], *buffers: tir.Buffer, **attrs: Any
) -> tir.PrimFunc:
    """A function of flat buffers."""
    return tir.PrimFunc(buffers, body(*buffers), attrs={"tir.noalias": True, **attrs})
