"""Operators on symbolic shapes are computed by the kernel library, and give what numpy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.ir import Op
from tvm.relax import op
from tvm.relax.backend.kernels import LowerToKernels

N, S = tir.Var("n", "int64"), tir.Var("s", "int64")


def tensor(name: str, *shape: Any, dtype: str = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorStructInfo(shape, dtype))


def constant(*shape: int) -> Any:
    return relax.const(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))


def module(params: list[relax.Var], *steps: Callable[..., Any]) -> tvm.IRModule:
    """A function whose steps take the value of the step before."""
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            value = bb.emit(steps[0](*params))
            for step in steps[1:]:
                value = bb.emit(step(value))
            result = bb.emit_output(value)
        bb.emit_func_output(result)
    return bb.get()


def called_operators(mod: tvm.IRModule) -> set[str]:
    """Operators of relax that are left once kernels are chosen."""
    with tvm.target.Target("llvm"):
        lowered = LowerToKernels()(mod)
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and isinstance(node.op, Op):
            found.add(node.op.name)

    relax.analysis.post_order_visit(lowered["main"], visit)
    return found - {"relax.call_dps_packed", "relax.call_pure_packed"}


def check(mod: tvm.IRModule, reference: Callable[..., Any], *cases: tuple[np.ndarray, ...]) -> None:
    assert not called_operators(mod)
    main = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"]
    for arrays in cases:
        found = main(*[tvm.nd.array(a) for a in arrays]).numpy()
        np.testing.assert_allclose(found, reference(*arrays), rtol=2e-4, atol=1e-5)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def test_a_layer_of_any_batch_and_sequence() -> None:
    w, b = constant(8, 16), constant(16)

    def reference(x: np.ndarray) -> np.ndarray:
        y = np.maximum(x @ w.data.numpy() + b.data.numpy(), 0)
        y = y.reshape(*x.shape[:2], 4, 4).transpose(0, 2, 1, 3)
        scores = np.exp(y @ y.transpose(0, 1, 3, 2))
        return (scores / scores.sum(-1, keepdims=True) @ y).transpose(0, 2, 1, 3)

    mod = module(
        [tensor("x", N, S, 8)],
        lambda x: op.matmul(x, w),
        lambda x: op.add(x, b),
        op.nn.relu,
        lambda x: op.reshape(x, (N, S, 4, 4)),
        lambda x: op.nn.attention(x, x, x, scale=1.0),
    )
    check(mod, reference, (numbers(1, 1, 8),), (numbers(2, 5, 8),))


def test_images_of_any_size() -> None:
    w = constant(4, 3, 3, 3)

    def reference(x: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, w.data.numpy()).mean((2, 3))

    mod = module(
        [tensor("x", 1, 3, N, S)],
        lambda x: op.nn.conv2d(x, w, padding=1),
        lambda x: op.mean(x, [2, 3]),
    )
    check(mod, reference, (numbers(1, 3, 6, 5),), (numbers(1, 3, 9, 16),))


def test_reshapes_that_bring_new_extents_are_views() -> None:
    mod = module(
        [tensor("x", N, S, 4)],
        op.exp,
        lambda x: op.reshape(x, (N * S, 4)),
        lambda x: op.add(x, x),
        lambda x: op.reshape(x, (N, S, 2, 2)),
        op.negative,
    )
    reference = lambda x: -2 * np.exp(x).reshape(*x.shape[:2], 2, 2)  # noqa: E731
    check(mod, reference, (numbers(3, 2, 4),), (numbers(1, 7, 4),))


def test_concatenation_along_a_symbolic_axis() -> None:
    mod = module(
        [tensor("x", N, 3), tensor("y", S, 3)],
        lambda x, y: op.concat([x, y], axis=0),
        lambda x: op.multiply(x, relax.const(np.float32(2))),
    )
    reference = lambda x, y: 2 * np.concatenate([x, y])  # noqa: E731
    check(mod, reference, (numbers(2, 3), numbers(5, 3)), (numbers(1, 3), numbers(1, 3)))


@pytest.mark.parametrize("wanted", [(N * 2,), (2, N)])
def test_derived_extents_meet_those_of_other_inputs(wanted: tuple[Any, ...]) -> None:
    mod = module(
        [tensor("x", N, 2), tensor("y", *wanted)],
        lambda x, y: op.add(op.reshape(op.permute_dims(x), wanted), y),
    )
    for n in (1, 4):
        x, y = numbers(n, 2), numbers(*[2 * n] if len(wanted) == 1 else [2, n])
        main = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"]
        found = main(tvm.nd.array(x), tvm.nd.array(y)).numpy()
        np.testing.assert_allclose(found, x.T.reshape(y.shape) + y, rtol=1e-6)


@pytest.mark.parametrize("units", [32, 70])
def test_tiles_of_rows_of_any_number(units: int) -> None:
    w = constant(16, units)
    mod = module([tensor("x", N, 16)], lambda x: op.matmul(x, w), op.nn.relu)
    reference = lambda x: np.maximum(x @ w.data.numpy(), 0)  # noqa: E731
    check(mod, reference, *[(numbers(rows, 16),) for rows in (1, 5, 6, 7, 13)])
