"""Operators whose arguments have extents that only the run knows, in the virtual machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay

from .cases import Case
from .test_all_ops import CASES, _as_list

# one call each, all of whose extents are left open; test_drawn_calls.py draws those of the others
NAMES = (
    "collapse_sum_like",
    "vision.proposal",
    "nn.sparse_dense",
    "linalg.eigh",
    "nn.fast_softmax",
)
OPEN = [next(case for case in reversed(CASES) if case.name == name) for name in NAMES]


def _run(params: list[relay.Var], body: Any, arrays: Any) -> list[np.ndarray]:
    mod = tvm.IRModule.from_expr(relay.Function(params, body))
    run = relay.create_executor(
        "vm", mod=mod, device=tvm.cpu(), target="llvm -opt-level=0"
    ).evaluate()
    found = run(*[tvm.nd.array(a) for a in arrays])
    return [found.numpy()] if isinstance(found, tvm.nd.NDArray) else [f.numpy() for f in found]


@pytest.mark.parametrize("case", OPEN, ids=str)
def test_open_extents_give_what_known_ones_give(case: Case) -> None:
    params = [
        relay.var(f"p{i}", shape=(relay.Any(),) * a.ndim, dtype=str(a.dtype))
        for i, a in enumerate(case.inputs)
    ]
    found = _run(params, case.build(*params), case.inputs)
    for have, want in zip(found, _as_list(case.expected(*case.inputs)), strict=True):
        assert have.shape == want.shape
        np.testing.assert_allclose(have, want, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize(
    ("shape", "wanted"), [((1, 3), (1, 3)), ((4, 3), (1, 3)), ((4, 3), (4, 1))]
)
def test_whether_an_axis_is_summed_is_known_to_the_run(
    shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    x, like = [relay.var(n, shape=(relay.Any(), relay.Any())) for n in ("x", "like")]
    data = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    over = tuple([i for i in range(2) if wanted[i] == 1 and shape[i] != 1])
    found = _run([x, like], relay.collapse_sum_like(x, like), [data, np.zeros(wanted, "float32")])
    np.testing.assert_array_equal(found[0], data.sum(over, keepdims=True))


@pytest.mark.parametrize("batches", [(1, 3), (3, 1), (2, 2)])
def test_a_batch_of_one_is_broadcast_when_the_run_meets_it(batches: tuple[int, int]) -> None:
    x = relay.var("x", shape=(relay.Any(), 2, 4))
    y = relay.var("y", shape=(relay.Any(), 5, 4))
    a, b = [np.random.default_rng(1).uniform(size=(n, m, 4)).astype("float32") for n, m in zip(batches, (2, 5), strict=True)]  # fmt: skip
    found = _run([x, y], relay.nn.batch_matmul(x, y), [a, b])
    np.testing.assert_allclose(found[0], a @ b.swapaxes(1, 2), rtol=1e-5)


def test_slices_count_from_the_end_of_open_axes() -> None:
    x, data = relay.var("x", shape=(relay.Any(), 4)), np.arange(28, dtype="float32").reshape(7, 4)
    for begin, end, step in (((-3, 0), (7, 4), (1, 1)), ((-1, -1), (-8, -3), (-2, -1))):
        found = _run([x], relay.strided_slice(x, begin, end, step), [data])
        wanted = data[tuple([slice(b, e, s) for b, e, s in zip(begin, end, step, strict=True)])]
        np.testing.assert_array_equal(found[0], wanted)


def test_squeeze_of_open_extents_requires_axes() -> None:
    x = relay.var("x", shape=(relay.Any(), 1))
    with pytest.raises(tvm.error.TypeCheckError, match="squeeze requires an axis where extents"):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.squeeze(x))))


@pytest.mark.parametrize("index", [-4, -3, 2, 3, 100])
def test_updates_outside_are_left_out(index: int) -> None:
    data, update = np.arange(6, dtype="float32").reshape(3, 2), np.full((1, 2), 9, "float32")
    at = np.full((1, 2), index, "int64")
    x, i, u = relay.var("x", shape=(3, 2)), relay.var("i", shape=(1, 2), dtype="int64"), relay.var("u", shape=(1, 2))  # fmt: skip
    wanted = data.copy()
    if -3 <= index < 3:
        wanted[index] = 9
    np.testing.assert_array_equal(
        _run([x, i, u], relay.scatter_elements(x, i, u, 0), [data, at, update])[0], wanted
    )
    tuples = relay.var("t", shape=(1, 1), dtype="int64")
    np.testing.assert_array_equal(
        _run([x, tuples, u], relay.scatter_nd(x, tuples, u), [data, at[:, :1], update])[0], wanted
    )


def test_scatter_takes_the_mean_of_an_element_and_its_update() -> None:
    data, at, update = np.array([1.0, 2, 3], "float32"), np.array([0, 2, 0]), np.array([3, 5, 4], "float32")  # fmt: skip
    x, i, u = relay.var("x", shape=(3,)), relay.var("i", shape=(3,), dtype="int64"), relay.var("u", shape=(3,))  # fmt: skip
    found = _run([x, i, u], relay.scatter_elements(x, i, u, 0, "mean"), [data, at, update])
    np.testing.assert_array_equal(found[0], [3, 2, 4])


def test_indices_outside_pick_the_nearest_element() -> None:
    data, at = np.arange(6, dtype="float32").reshape(3, 2), np.array([[5, -7], [1, 3]])
    x, i = relay.var("x", shape=(3, 2)), relay.var("i", shape=(2, 2), dtype="int64")
    clipped = at.clip(0, 2)
    found = _run([x, i], relay.gather(x, 0, i), [data, at])
    np.testing.assert_array_equal(found[0], np.take_along_axis(data, clipped, 0))
    found = _run([x, i], relay.gather_nd(x, i), [data, at])
    np.testing.assert_array_equal(found[0], data[clipped[0], at[1].clip(0, 1)])
