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


def schedule_elementwise(
    compute: Callable[..., Any], dtypes: list[str], size: int, vectorize: int = 0
) -> tuple[te.Schedule, list[te.Tensor]]:
    """A schedule of ``out[i] = compute(in0[i], in1[i], ...)`` and its arguments."""
    inputs = [te.placeholder((size,), name=f"A{i}", dtype=dtype) for i, dtype in enumerate(dtypes)]
    out = te.compute((size,), lambda i: compute(*[tensor(i) for tensor in inputs]), name="out")
    schedule = te.create_schedule(out.op)
    if vectorize:
        _, inner = schedule[out].split(out.op.axis[0], factor=vectorize)
        schedule[out].vectorize(inner)
    return schedule, [*inputs, out]


def build_family(
    computes: dict[str, Callable[..., Any]], dtypes: list[str], size: int, vectorize: int = 0
) -> Any:
    """One module with an element-wise function for each entry: LLVM is started once."""
    functions = {}
    for name, compute in computes.items():
        schedule, args = schedule_elementwise(compute, dtypes, size, vectorize)
        functions[name] = tvm.lower(schedule, args, name=name)[name]
    return tvm.build(tvm.IRModule(functions), target="llvm")


def apply(
    compute: Callable[..., Any], *arrays: np.ndarray, out_dtype: str, vectorize: int = 0
) -> np.ndarray:
    """``compute`` applied element by element by compiled code."""
    size = len(arrays[0])
    schedule, args = schedule_elementwise(compute, [str(a.dtype) for a in arrays], size, vectorize)
    func = tvm.build(schedule, args, target="llvm")
    return run(func, *arrays, np.zeros(size, out_dtype))[-1]


def flat_function(
    body: Callable[..., tir.Stmt], *buffers: tir.Buffer, **attrs: Any
) -> tir.PrimFunc:
    """A function of flat buffers."""
    return tir.PrimFunc(buffers, body(*buffers), attrs={"tir.noalias": True, **attrs})
