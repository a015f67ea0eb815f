"""What a module computes stays the same over a pass."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm import relax


def run(mod: tvm.IRModule, *args: Any, name: str = "main") -> Any:
    """What a function of a module returns, as numpy arrays."""
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return _arrays(vm[name](*[tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in args]))


def _arrays(value: Any) -> Any:
    return value.numpy() if isinstance(value, tvm.nd.NDArray) else [_arrays(v) for v in value]


def random_arrays(func: relax.Function, seed: int = 0, **dims: int) -> list[np.ndarray]:
    """Values of a function's parameters; symbolic dimensions by name."""
    rng = np.random.default_rng(seed)
    shapes = [
        [getattr(d, "value", None) or dims[d.name] for d in p.struct_info.shape]
        for p in func.params
    ]
    return [
        rng.random(shape).astype(p.struct_info.dtype) + np.array(0.5, p.struct_info.dtype)
        for shape, p in zip(shapes, func.params, strict=True)
    ]


def assert_computes_the_same(
    before: tvm.IRModule, after: tvm.IRModule, rtol: float = 1e-5, **dims: int
) -> None:
    """Both modules are well formed, and their ``main`` agrees on random inputs."""
    assert relax.analysis.well_formed(after)
    args = random_arrays(before["main"], **dims)
    expected, got = run(before, *args), run(after, *args)
    for a, b in zip(_flat(expected), _flat(got), strict=True):
        np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-5)


def _flat(value: Any) -> list[np.ndarray]:
    return [value] if isinstance(value, np.ndarray) else [x for v in value for x in _flat(v)]
