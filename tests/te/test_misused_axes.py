"""Axes that are used where they have no meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tvm
from tvm import te
from tvm.error import LoweringError


def test_a_sum_over_an_axis_of_the_result_is_rejected() -> None:
    a = te.placeholder((4, 8), name="A")
    for reducer in (te.sum, te.max, te.min):
        with pytest.raises(TypeError, match=r"requires one that te\.reduce_axis made, got j"):
            te.compute((4, 8), _combined(reducer, a))
    whole = te.placeholder((4,), "int32", name="W")
    with pytest.raises(TypeError, match="requires one that"):
        te.compute((4,), lambda i: te.sum(whole[i], i))
    te.compute((4,), lambda i: te.max(whole[i], i))  # the greater one of two values


def _combined(reducer: Callable[..., Any], a: te.Tensor) -> Callable[..., Any]:
    return lambda i, j: reducer(a[i, j], j)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_reduction_axis_outside_of_reductions_is_explained(target: str) -> None:
    a, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: a[i, k] + 1.0, name="B")
    with pytest.raises(LoweringError, match=r"got k, which is used but not defined") as raised:
        tvm.build(te.create_schedule(b.op), [a, b], target)
    assert "within a reduction over it" in str(raised.value)
