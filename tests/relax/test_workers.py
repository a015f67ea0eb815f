"""Communication among workers becomes calls of the runtime's functions, here of one of two workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op
from tvm.script import relax as R

X = np.arange(8, dtype="float32").reshape(2, 4)


@pytest.fixture
def runtime() -> Iterator[list[Any]]:
    """What the functions were called with beside tensors; this worker is the second, the first has X."""
    calls: list[Any] = []

    def allreduce(x: Any, kind: Any, in_group: bool, out: Any) -> None:
        calls.append((list(kind), bool(in_group)))
        out.copyfrom(x.numpy() * 2)

    def allgather(x: Any, in_group: bool, out: Any) -> None:
        calls.append(bool(in_group))
        out.copyfrom(np.concatenate([X, x.numpy()]))

    def scatter(x: Any, in_group: bool, out: Any) -> None:
        calls.append(bool(in_group))
        out.copyfrom(x.numpy().reshape(2, *out.shape)[1])

    functions = {"allreduce": allreduce, "allgather": allgather, "scatter_from_worker0": scatter}
    for name, function in functions.items():
        tvm.register_func(f"runtime.disco.{name}", function)
    yield calls
    for name in functions:
        tvm._ffi.registry.remove_global_func(f"runtime.disco.{name}")


CASES = [
    (lambda x: op.ccl.allreduce(x, "max", False), X * 2, ([3], False)),
    (lambda x: op.ccl.allgather(x, 2), np.concatenate([X, X]), True),
    (lambda x: op.ccl.scatter_from_worker0(x, 2), X[1:], False),
    (lambda x: op.ccl.scatter_from_worker0(x, 2, axis=1), X[:, 2:], False),
]


@pytest.mark.parametrize("build, wanted, call", CASES)
def test_workers_communicate_by_the_runtime(
    runtime: list[Any], build: Callable[..., Any], wanted: np.ndarray, call: Any
) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 4), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(build(x)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.nd.array(X)).numpy(), wanted)
    assert runtime == [call]
