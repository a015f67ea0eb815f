"""Draws of tokens: numpy's searches in cumulative sums say which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec

BATCH, VOCABULARY = 4, 11


def run(method: Any, *arrays: np.ndarray) -> np.ndarray:
    """What a method of a module computes."""

    names = "abcdef"[: len(arrays)]

    class Model(nn.Module):
        def ab(self, a: Any, b: Any) -> Any:
            return method(a, b)

        def abc(self, a: Any, b: Any, c: Any) -> Any:
            return method(a, b, c)

        def abcd(self, a: Any, b: Any, c: Any, d: Any) -> Any:
            return method(a, b, c, d)

        def abcdef(self, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
            return method(a, b, c, d, e, f)

    specs = {n: spec.Tensor(a.shape, str(a.dtype)) for n, a in zip(names, arrays, strict=True)}
    mod, _ = Model().export_tvm({names: specs})
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return machine[names](*[tvm.nd.array(a) for a in arrays]).numpy()


def distributions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, the same in descending order, and what these are of."""
    prob = np.random.default_rng(0).random((BATCH, VOCABULARY)).astype("float32") ** 3
    prob /= prob.sum(axis=1, keepdims=True)
    order = np.argsort(-prob, axis=1).astype("int32")
    return prob, np.take_along_axis(prob, order, 1), order


def kept(sorted_prob: np.ndarray, top_p: np.ndarray, top_k: np.ndarray) -> np.ndarray:
    """How many of each row are kept."""
    before = np.cumsum(sorted_prob, axis=1, dtype="float32")[:, :-1]
    places = np.arange(1, VOCABULARY)
    return 1 + ((before < top_p) & (places < top_k)).cumprod(axis=1).sum(axis=1)


LIMITS = [(0.6, 3), (0.05, 9), (2.0, 99), (0.8, 1)]
TOP_P = np.array([[p] for p, _ in LIMITS], "float32")
TOP_K = np.array([[k] for _, k in LIMITS], "int32")


@pytest.mark.parametrize("has_rows", [False, True])
def test_samples_are_where_sums_pass_the_numbers(has_rows: bool) -> None:
    prob = distributions()[0]
    uniform = np.array([[0.0], [0.3], [0.7], [0.99999]], "float32")
    rows = np.array([[2], [2], [0], [1]], "int64")
    given = [prob, uniform, *([rows] if has_rows else [])]
    found = run(op.multinomial_from_uniform, *given)
    used = rows[:, 0] if has_rows else np.arange(BATCH)
    sums = np.cumsum(prob, axis=1)[used]
    np.testing.assert_array_equal(found[:, 0], (sums <= uniform).sum(axis=1).clip(max=10))
    assert found.dtype == "int64"


def test_rows_are_required_where_samples_are_of_other_numbers() -> None:
    with pytest.raises(ValueError, match="3 samples of 4 rows"):
        run(op.multinomial_from_uniform, distributions()[0], np.zeros((3, 1), "float32"))


def test_samples_are_of_the_likeliest() -> None:
    _, sorted_prob, order = distributions()
    count = kept(sorted_prob, TOP_P, TOP_K)
    assert list(count[[1, 2, 3]]) == [1, VOCABULARY, 1]
    rng = np.random.default_rng(1)
    uniform = rng.random((40, 1)).astype("float32")
    rows = rng.integers(0, BATCH, (40, 1))
    found = run(
        op.sample_top_p_top_k_from_sorted_prob, sorted_prob, order, TOP_P, TOP_K, uniform, rows
    )
    sums = np.cumsum(sorted_prob, axis=1, dtype="float32")
    for sample, number, (row,) in zip(found[:, 0], uniform[:, 0], rows, strict=True):
        shares = sums[row, : count[row]] / sums[row, count[row] - 1]
        assert sample == order[row, min((shares <= number).sum(), count[row] - 1)]
    assert found.dtype == "int32"


def test_the_likeliest_have_the_sum_one() -> None:
    prob, sorted_prob, _ = distributions()
    found = run(op.renormalize_top_p_top_k_prob, prob, sorted_prob, TOP_P, TOP_K)
    last = kept(sorted_prob, TOP_P, TOP_K)[:, None] - 1
    likely = np.where(prob >= np.take_along_axis(sorted_prob, last, 1), prob, 0)
    np.testing.assert_allclose(found, likely / likely.sum(axis=1, keepdims=True), rtol=1e-5)
