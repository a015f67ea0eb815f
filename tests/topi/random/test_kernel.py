"""Random numbers built with te, without a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi


def _run(build: Callable[[te.Tensor], list[te.Tensor]], state: np.ndarray) -> list[np.ndarray]:
    gen = te.placeholder((10,), "uint64", name="gen")
    outs = build(gen)
    kernel = tvm.build(te.create_schedule([out.op for out in outs]), [gen, *outs], "llvm")
    filled = [tvm.nd.array(np.zeros([int(d) for d in out.shape], str(out.dtype))) for out in outs]
    kernel(tvm.nd.array(state), *filled)
    return [array.numpy() for array in filled]


def _generate(state: np.ndarray, *shape: int) -> list[np.ndarray]:
    return _run(lambda gen: topi.random.threefry_generate(gen, shape), state)


def _key(seed: int) -> np.ndarray:
    found: np.ndarray = relay.random.threefry_key(seed).data.numpy()
    return found


def test_words_are_those_of_the_published_vectors() -> None:
    _, words = _generate(_key(0), 4)
    published = [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]
    assert words.tolist() == published


def test_unsigned_integers_wrap_around() -> None:
    assert topi.random.threefry_test_wrapping("llvm", tvm.cpu())


def test_numbers_drawn_in_parts_are_those_drawn_at_once() -> None:
    state, first = _generate(_key(7), 8)
    _, second = _generate(state, 12)
    _, whole = _generate(_key(7), 20)
    assert np.concatenate([first, second]).tolist() == whole.tolist()


def test_a_state_serves_no_word_twice() -> None:
    state, first = _generate(_key(7), 3)
    _, second = _generate(state, 5)
    assert not set(first.tolist()) & set(second.tolist())


def test_splitting_a_thousand_times_never_repeats_a_state() -> None:
    gen = te.placeholder((10,), "uint64", name="gen")
    outs = topi.random.threefry_split(gen)
    kernel = tvm.build(te.create_schedule(outs[0].op), [gen, *outs], "llvm")
    left, right = [tvm.nd.array(np.zeros(10, "uint64")) for _ in range(2)]
    state, seen = tvm.nd.array(_key(1)), set()
    for n in range(1000):
        kernel(state, left, right)
        seen.update([tuple(left.numpy()), tuple(right.numpy())])
        state = tvm.nd.array((left, right)[n % 2].numpy())
    assert len(seen) == 2000


@pytest.mark.parametrize(("dtype", "low", "high"), [("float32", -1.0, 3.0), ("float64", 5.0, 6.0)])
def test_uniform_numbers_fill_their_range_evenly(dtype: str, low: float, high: float) -> None:
    _, found = _run(lambda gen: topi.random.uniform(gen, low, high, (100, 100), dtype), _key(2))
    assert found.min() >= low
    assert found.max() < high
    counts = np.histogram(found, 10, (low, high))[0]
    assert abs(counts - 1000).max() < 150


def test_normal_numbers_have_the_moments_asked_for() -> None:
    def build(gen: te.Tensor) -> Any:
        return topi.random.normal(gen, 3.0, 2.0, (20000,), "float32")

    _, found = _run(build, _key(3))
    assert abs(found.mean() - 3.0) < 0.05
    assert abs(found.std() - 2.0) < 0.05


def test_integers_are_no_dtype_of_random_numbers() -> None:
    gen = te.placeholder((10,), "uint64", name="gen")
    with pytest.raises(ValueError, match="float32 or float64, not 'int32'"):
        topi.random.uniform(gen, 0.0, 1.0, (3,), "int32")
